//! The callers of a sampled function, by the call frame information (`.eh_frame`) of its file: what lets
//! exceptions find their handlers says of each instruction where its function keeps the address that it
//! returns to. Most programs are compiled without frame pointers, and have only this.
//!
//! A sample has registers and the top of the stack. [`Unwinder`] follows the mappings of processes as records
//! tell of them, has the information of their files read beside, and goes from function to function. Where a
//! file has none, as code that is made at run time, and in the kernel's own page of code, the frame pointer
//! leads on. Where the copy of the stack ends, so do the callers, unless the kernel has found more of them by
//! frame pointers.
//!
//! Files and stacks are the watched program's, and may be made to do harm. Every address is looked up, every
//! length is checked, an expression has a bounded number of steps, and what is parsed is counted in a
//! [`Budget`].

use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, Encoding, EndianSlice, Evaluation, EvaluationResult, Location,
    NativeEndian, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection as _, Value,
};
use latlab_perf::{Registers, User};
use object::{Object as _, ObjectSection as _};

use super::beside::{Beside, is_file};
use super::budget::Budget;
use super::image::Image;
use super::segments::Segments;
use crate::account::mappings::{Map, Mapped, Mappings};
use crate::account::records::Record;

/// Deeper callers are left out, as they are where the kernel finds them.
const DEEPEST: usize = 48;
/// Rules that are kept, of all files.
const MOST_RULES: usize = 1 << 16;
/// Operations of an expression; that of a table of jumps into libraries has 9.
const MOST_OPERATIONS: u32 = 100;
/// Steps of looking for the information of one instruction, beside reading it; and of all instructions of a
/// sample, which is 64 KiB of it. What was read is kept: the next sample comes further.
const LOOKUP_STEPS: u64 = 16;
const SAMPLE_STEPS: u64 = 1 << 12;
/// Bytes of the index before its rows.
const HEAD: usize = 12;
/// The one form of index that linkers write: version 1, addresses of 4 bytes, those of rows counted from the
/// index itself.
const FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// By the numbers that DWARF gives to the registers of this CPU.
#[cfg(target_arch = "aarch64")]
mod number {
    use gimli::{AArch64, Register};

    pub(super) const STACK: Register = AArch64::SP;
    pub(super) const FRAME: Register = AArch64::X29;
    pub(super) const RETURN: Register = AArch64::X30;
}
#[cfg(not(target_arch = "aarch64"))]
mod number {
    use gimli::{Register, X86_64};

    pub(super) const STACK: Register = X86_64::RSP;
    pub(super) const FRAME: Register = X86_64::RBP;
    pub(super) const RETURN: Register = X86_64::RA;
}

type Slice<'a> = EndianSlice<'a, NativeEndian>;

/// What of a sample the callers are found by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Top {
    registers: Registers,
    /// From the stack pointer upwards.
    bytes: Box<[u8]>,
}

impl Top {
    /// Of the stack it has so much.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn word(&self, address: u64) -> Result<u64, Stop> {
        let at = address.checked_sub(self.registers.stack).ok_or(Stop::Astray)?;
        let rest = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)).ok_or(Stop::Beyond)?;
        rest.first_chunk().map(|word| u64::from_ne_bytes(*word)).ok_or(Stop::Beyond)
    }
}

impl From<User<'_>> for Top {
    fn from(user: User<'_>) -> Self {
        Self { registers: user.registers, bytes: Box::from(user.stack) }
    }
}

/// Why there is no next caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The outermost function was reached.
    Outermost,
    /// The stack goes on where no copy of it is.
    Beyond,
    /// No code of this process is there, or what is there does not lead to its caller.
    Astray,
    /// The file is still being read.
    Unread,
}

/// Where a value of the caller is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Nowhere: there is no caller.
    Nowhere,
    /// In the same register as here.
    Same,
    /// At this distance from the frame's address.
    Saved(i64),
    /// Where an expression leads to.
    At(UnwindExpression<usize>),
    /// What an expression yields.
    Is(UnwindExpression<usize>),
}

/// Of which the frame's address is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Base {
    Stack(i64),
    Frame(i64),
    /// What an expression yields.
    Is(UnwindExpression<usize>),
}

/// How to get from an instruction to the caller of its function.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rule {
    /// The address of the frame: the stack pointer as it was before the call.
    base: Base,
    frame: Place,
    returns_to: Place,
}

/// The call frame information of a file.
#[derive(Debug, Default)]
struct Information {
    segments: Segments,
    /// Its index, by address, and where that is loaded.
    index: Vec<u8>,
    index_at: u64,
    entries: Vec<u8>,
    entries_at: u64,
}

impl Information {
    fn read(_: &str, file: Option<File>, budget: &Rc<Budget>) -> Self {
        file.and_then(|file| Self::of(file, budget)).unwrap_or_default()
    }

    fn of(file: File, budget: &Rc<Budget>) -> Option<Self> {
        let image = Image::of(file, budget)?;
        let parsed = image.parsed()?;
        let section = |name| Some((image.section(&parsed, name)?, parsed.section_by_name(name)?.address()));
        let (index, index_at) = section(".eh_frame_hdr").filter(|(index, _)| index.starts_with(&FORM))?;
        let (entries, entries_at) = section(".eh_frame")?;
        Some(Self { segments: Segments::of(&parsed), index, index_at, entries, entries_at })
    }

    /// Where the entry for an address is, as the index says; it may be that of another function.
    fn entry(&self, address: u64) -> Option<usize> {
        let (head, rows) = self.index.split_at_checked(HEAD)?;
        let count = u32::from_ne_bytes(*head.last_chunk()?);
        let (rows, _) = rows.as_chunks::<8>();
        let rows = &rows[..rows.len().min(usize::try_from(count).ok()?)];
        let part = |row: &[u8; 8], at: usize| {
            let bytes = [row[at], row[at + 1], row[at + 2], row[at + 3]];
            self.index_at.wrapping_add_signed(i64::from(i32::from_ne_bytes(bytes)))
        };
        let after = rows.partition_point(|row| part(row, 0) <= address);
        let entry = part(rows[..after].last()?, 4).checked_sub(self.entries_at)?;
        usize::try_from(entry).ok()
    }

    fn section(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.entries, NativeEndian);
        section.set_address_size(8);
        if cfg!(target_arch = "aarch64") {
            // It has one instruction of its own, for signed addresses.
            section.set_vendor(gimli::Vendor::AArch64);
        }
        section
    }

    /// The rule at an address; `None`: there is none, or none that is understood.
    fn rule(&self, address: u64, context: &mut UnwindContext<usize>, budget: &Budget) -> Option<Rule> {
        budget.step(LOOKUP_STEPS)?;
        let section = self.section();
        let bases = BaseAddresses::default().set_eh_frame(self.entries_at).set_eh_frame_hdr(self.index_at);
        let entry = gimli::EhFrameOffset(self.entry(address)?);
        let entry = section.fde_from_offset(&bases, entry, EhFrame::cie_from_offset).ok()?;
        budget.pass(entry.entry_len() as u64)?;
        budget.pass(entry.cie().entry_len() as u64)?;
        let row = entry.unwind_info_for_address(&section, &bases, context, address).ok()?;
        let base = match row.cfa() {
            CfaRule::RegisterAndOffset { register: number::STACK, offset } => Base::Stack(*offset),
            CfaRule::RegisterAndOffset { register: number::FRAME, offset } => Base::Frame(*offset),
            CfaRule::RegisterAndOffset { .. } => return None,
            CfaRule::Expression(expression) => Base::Is(*expression),
        };
        let place = |register| {
            Some(match row.register(register) {
                None | Some(RegisterRule::SameValue) => Place::Same,
                Some(RegisterRule::Undefined) => Place::Nowhere,
                Some(RegisterRule::Offset(offset)) => Place::Saved(offset),
                Some(RegisterRule::Expression(expression)) => Place::At(expression),
                Some(RegisterRule::ValExpression(expression)) => Place::Is(expression),
                _ => return None,
            })
        };
        Some(Rule { base, frame: place(number::FRAME)?, returns_to: place(number::RETURN)? })
    }

    /// What an expression yields. `frame`: the address of the frame, with which those begin that say where a
    /// register is.
    fn value(
        &self,
        expression: UnwindExpression<usize>,
        frame: Option<u64>,
        registers: &Registers,
        top: &Top,
    ) -> Result<u64, Stop> {
        let expression = expression.get(&self.section()).map_err(|_| Stop::Astray)?;
        let encoding = Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let mut evaluation = Evaluation::new(expression.0, encoding);
        evaluation.set_max_iterations(MOST_OPERATIONS);
        if let Some(frame) = frame {
            evaluation.set_initial_value(frame);
        }
        let mut state = evaluation.evaluate();
        loop {
            state = match state.map_err(|_| Stop::Astray)? {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = value_of(registers, register).ok_or(Stop::Astray)?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    evaluation.resume_with_memory(Value::Generic(top.word(address)?))
                }
                _ => return Err(Stop::Astray),
            };
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Ok(address),
                _ => Err(Stop::Astray),
            },
            _ => Err(Stop::Astray),
        }
    }

    /// The registers of the caller. `is_first`: of the function that was running.
    fn caller(&self, rule: &Rule, here: &Registers, is_first: bool, top: &Top) -> Result<Registers, Stop> {
        let frame = match rule.base {
            Base::Stack(offset) => here.stack.wrapping_add_signed(offset),
            Base::Frame(offset) => here.frame.wrapping_add_signed(offset),
            Base::Is(expression) => self.value(expression, None, here, top)?,
        };
        // Only a function that has called none may have no frame, where calls do not write to the stack.
        if frame < here.stack || (frame == here.stack && !is_first) {
            return Err(Stop::Astray);
        }
        let of = |place: Place, same: Result<u64, Stop>| match place {
            Place::Nowhere => Err(Stop::Outermost),
            Place::Same => same,
            Place::Saved(offset) => top.word(frame.wrapping_add_signed(offset)),
            Place::At(expression) => top.word(self.value(expression, Some(frame), here, top)?),
            Place::Is(expression) => self.value(expression, Some(frame), here, top),
        };
        // Nobody but aarch64 has a register for it, and there its value holds until the function calls
        // another.
        let link = if is_first && cfg!(target_arch = "aarch64") { Ok(here.link) } else { Err(Stop::Astray) };
        let instruction = of(rule.returns_to, link)?;
        let frame_pointer = match of(rule.frame, Ok(here.frame)) {
            // It is of no more use; or it was taken off the stack a moment ago, as the end of a function
            // does.
            Err(Stop::Outermost | Stop::Astray) => here.frame,
            other => other?,
        };
        Ok(Registers { instruction, stack: frame, frame: frame_pointer, link: 0 })
    }
}

fn value_of(registers: &Registers, register: Register) -> Option<u64> {
    match register {
        number::STACK => Some(registers.stack),
        number::FRAME => Some(registers.frame),
        number::RETURN => Some(registers.instruction),
        _ => None,
    }
}

/// The registers of the caller of a function that has a frame pointer.
fn by_frame_pointer(here: &Registers, top: &Top) -> Result<Registers, Stop> {
    if here.frame == 0 {
        return Err(Stop::Outermost);
    }
    if here.frame < here.stack {
        return Err(Stop::Astray);
    }
    let frame = top.word(here.frame)?;
    let instruction = top.word(here.frame.wrapping_add(8))?;
    Ok(Registers { instruction, stack: here.frame.saturating_add(16), frame, link: 0 })
}

/// The address itself: aarch64 may have signed it in the bits that no address of a program has.
fn unsigned(address: u64) -> u64 {
    const BITS: u64 = (1 << 48) - 1;
    if cfg!(target_arch = "aarch64") { address & BITS } else { address }
}

/// See the module.
pub(crate) struct Unwinder {
    mappings: Mappings,
    mapped: Mapped,
    files: Beside<Information>,
    rules: HashMap<(Rc<str>, u64), Option<Rule>>,
    context: UnwindContext<usize>,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self {
            mappings: Mappings::default(),
            mapped: Mapped::default(),
            files: Beside::of(Information::read),
            rules: HashMap::new(),
            context: UnwindContext::new(),
        }
    }
}

impl Unwinder {
    /// The mappings of a process that ran before it was followed.
    pub(crate) fn has_mapped(&mut self, pid: u32, mut maps: Vec<Map>) {
        for map in &mut maps {
            map.path = self.mapped.name(pid, map);
        }
        self.mappings.has(pid, maps);
    }

    /// The next record, if it is of mappings; times never decrease.
    pub(crate) fn take(&mut self, record: &Record) {
        self.mappings.take(record, |map| self.mapped.name(record.pid, map));
    }

    /// The program has ended: what is not read by then stays unread.
    pub(crate) fn has_ended(&mut self) {
        self.files.has_ended();
    }

    /// Addresses in user code, the running function first, with the mappings of now.
    /// `by_kernel`: those that the kernel has found by frame pointers. `waits`: files are read at once; else
    /// `None` says that one is still being read, and it is to be asked again.
    pub(crate) fn callers(
        &mut self,
        pid: u32,
        top: &Top,
        by_kernel: &[u64],
        waits: bool,
    ) -> Option<Vec<u64>> {
        let mut found = Vec::new();
        let mut here = top.registers;
        let budget = Budget::of(0, SAMPLE_STEPS);
        let stop = loop {
            let is_first = found.is_empty();
            here.instruction = unsigned(here.instruction);
            if here.instruction == 0 && !is_first {
                break Stop::Outermost;
            }
            // A caller's address is where it will go on: the call is before it.
            let address = here.instruction.wrapping_sub(u64::from(!is_first));
            let Some(map) = self.mappings.at(pid, address).cloned() else { break Stop::Astray };
            found.push(here.instruction);
            if found.len() == DEEPEST {
                break Stop::Outermost;
            }
            match self
                .rule(&map, address, &budget, waits)
                .and_then(|rule| self.caller(&map, rule, &here, is_first, top))
            {
                Ok(caller) => here = caller,
                Err(stop) => break stop,
            }
        };
        match stop {
            Stop::Unread => None,
            // There is no such code, as far as is known.
            Stop::Astray if found.is_empty() => Some(by_kernel.to_vec()),
            Stop::Beyond => {
                let last = found.last().and_then(|last| by_kernel.iter().position(|address| address == last));
                let more = last.map_or(&[][..], |last| &by_kernel[last + 1..]);
                found.extend(more.iter().take(DEEPEST - found.len()));
                Some(found)
            }
            Stop::Outermost | Stop::Astray => Some(found),
        }
    }

    /// The rule at an address; none where the frame pointer is all that there is.
    fn rule(&mut self, map: &Map, address: u64, budget: &Budget, waits: bool) -> Result<Option<Rule>, Stop> {
        if !is_file(&map.path) {
            return Ok(None);
        }
        if !self.files.knows(&map.path, &self.mapped, waits) {
            return Err(Stop::Unread);
        }
        let Some(information) = self.files.get(&map.path) else { return Ok(None) };
        let offset = (address - map.start).saturating_add(map.offset);
        let key = (Rc::clone(&map.path), offset);
        if let Some(rule) = self.rules.get(&key) {
            return Ok(*rule);
        }
        let at = information.segments.address(offset).unwrap_or(offset);
        let rule = information.rule(at, &mut self.context, budget);
        if budget.is_spent() {
            return Err(Stop::Astray);
        }
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        self.rules.insert(key, rule);
        Ok(rule)
    }

    fn caller(
        &mut self,
        map: &Map,
        rule: Option<Rule>,
        here: &Registers,
        is_first: bool,
        top: &Top,
    ) -> Result<Registers, Stop> {
        match (rule, self.files.get(&map.path)) {
            (Some(rule), Some(information)) => information.caller(&rule, here, is_first, top),
            _ => by_frame_pointer(here, top),
        }
    }
}

#[cfg(test)]
mod tests;
