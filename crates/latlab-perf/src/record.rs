//! Records as bytes, decoded. Pure.

use byteorder::NativeEndian;
use linux_perf_event_reader::constants::{
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER, PERF_RECORD_MISC_MMAP_BUILD_ID,
};
use linux_perf_event_reader::{
    CommOrExecRecord, ContextSwitchRecord, ForkOrExitRecord, LostRecord, Mmap2FileId, Mmap2InodeAndVersion,
    Mmap2Record, RawData, RecordType, TaskWasPreempted,
};
use perf_event_open_sys::bindings::PERF_SAMPLE_REGS_ABI_64;

use crate::user::{Registers, User};

/// Bytes of the header: kind, flags, size.
const HEADER: usize = 8;
/// Bytes of the identity at the end of a record that is no sample: process and thread, time, CPU, event.
const IDENTITY: usize = 32;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'a> {
    /// By the clock that the event asked for, nanoseconds.
    pub time_ns: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Id of the event.
    pub event: u64,
    /// What happened.
    pub what: What<'a>,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq)]
pub enum What<'a> {
    /// The event fired.
    Sample(Sample<'a>),
    /// The thread left its CPU.
    SwitchedOut {
        /// It would have run on. Linux 4.17 and later; before, nobody knows.
        preempted: bool,
    },
    /// It came to a CPU.
    SwitchedIn,
    /// A file was mapped to be executed.
    Mapped(Box<Mapping>),
    /// The thread has this name now.
    Named {
        /// As it loaded a new program.
        exec: bool,
        /// The name.
        name: Box<str>,
    },
    /// The thread was started.
    Started {
        /// By this process; equal to `pid` for another thread of a process.
        parent: u32,
        /// By this thread of it.
        by: u32,
    },
    /// The thread ends.
    Ended,
    /// So many records were lost, as there was no room for them.
    Lost(u64),
}

/// A file that was mapped.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Which file it is, where the kernel does not say an id of its contents instead.
    pub file: Option<Mmap2InodeAndVersion>,
    /// Its path.
    pub path: String,
}

/// What the samples of an event say besides their identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    None,
    /// A tracepoint's own fields.
    Raw,
    /// The address of the instruction, and of those that called it.
    Chain,
    /// The same, with registers and a copy of the stack of user code. Only x86-64 and aarch64 have it.
    Stack {
        /// How much of the stack; whole words of it are copied.
        bytes: u16,
    },
}

/// What a sample says besides its identity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample<'a> {
    /// Nothing.
    Plain,
    /// The tracepoint's own fields.
    Raw(&'a [u8]),
    /// The addresses of a call chain.
    Chain {
        /// Of the instruction at which the event fired.
        address: u64,
        /// As they lie in memory: the running function first, and marks between those of the kernel and of
        /// user code.
        chain: &'a [[u8; 8]],
        /// Where it was asked for; `None` also of kernel threads and of 32-bit programs.
        user: Option<User<'a>>,
    },
}

impl<'a> Sample<'a> {
    /// The tracepoint's own fields; empty where the event does not say them.
    pub fn raw(self) -> &'a [u8] {
        if let Self::Raw(raw) = self { raw } else { &[] }
    }

    /// Registers and stack of user code.
    pub fn user(self) -> Option<User<'a>> {
        if let Self::Chain { user, .. } = self { user } else { None }
    }

    /// Addresses of the call chain in the kernel and in user code, the running function first; of each
    /// `deepest` at most.
    pub fn divided(self, deepest: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut kernel, mut user, mut in_kernel) = (Vec::new(), Vec::new(), false);
        let Self::Chain { address, chain, .. } = self else { return (kernel, user) };
        for next in chain.iter().map(|next| u64::from_ne_bytes(*next)) {
            if next >= PERF_CONTEXT_MAX {
                in_kernel = next == PERF_CONTEXT_KERNEL;
                if !in_kernel && next != PERF_CONTEXT_USER {
                    break;
                }
            } else if in_kernel && kernel.len() < deepest {
                kernel.push(next);
            } else if !in_kernel && user.len() < deepest {
                user.push(next);
            }
        }
        // Without permission to look into the kernel the chain may be empty: the address of the event is
        // always there.
        if kernel.is_empty() && user.is_empty() && address < PERF_CONTEXT_MAX >> 1 {
            user.push(address);
        }
        (kernel, user)
    }
}

/// The records in these bytes.
/// `detail`: what the samples of an event say, as in [`Event::detail`](crate::Event::detail). What is unknown
/// or damaged is left out; a length that cannot be ends it.
pub fn records(mut bytes: &[u8], detail: impl Fn(u64) -> Detail) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        loop {
            let mut body = bytes;
            let kind = RecordType(next_u32(&mut body)?);
            let (misc, size) = (next_u16(&mut body)?, next_u16(&mut body)?);
            let body = body.get(..usize::from(size).checked_sub(HEADER)?)?;
            bytes = &bytes[usize::from(size)..];
            let record = match kind {
                RecordType::SAMPLE => sample(body, &detail),
                kind => other(kind, misc, body),
            };
            if record.is_some() {
                return record;
            }
        }
    })
}

/// Takes the next bytes from the front.
#[inline]
fn next<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

#[inline]
fn next_u16(bytes: &mut &[u8]) -> Option<u16> {
    next(bytes).map(u16::from_ne_bytes)
}

#[inline]
fn next_u32(bytes: &mut &[u8]) -> Option<u32> {
    next(bytes).map(u32::from_ne_bytes)
}

#[inline]
fn next_u64(bytes: &mut &[u8]) -> Option<u64> {
    next(bytes).map(u64::from_ne_bytes)
}

#[inline]
fn sample(mut body: &[u8], detail: impl Fn(u64) -> Detail) -> Option<Record<'_>> {
    let event = next_u64(&mut body)?;
    let detail = detail(event);
    let has_chain = matches!(detail, Detail::Chain | Detail::Stack { .. });
    let address = if has_chain { next_u64(&mut body)? } else { 0 };
    let (pid, tid) = (next_u32(&mut body)?, next_u32(&mut body)?);
    let time_ns = next_u64(&mut body)?;
    let _cpu = next_u64(&mut body)?;
    let sample = match detail {
        Detail::None => Sample::Plain,
        Detail::Raw => {
            let length = usize::try_from(next_u32(&mut body)?).ok()?;
            Sample::Raw(body.get(..length)?)
        }
        Detail::Chain => {
            let count = usize::try_from(next_u64(&mut body)?).ok()?;
            let (chain, _) = body.as_chunks();
            Sample::Chain { address, chain: &chain[..count.min(chain.len())], user: None }
        }
        Detail::Stack { .. } => {
            let count = usize::try_from(next_u64(&mut body)?).ok()?;
            let (chain, rest) = body.split_at_checked(count.checked_mul(8)?)?;
            let (user, is_known) = user(rest)?;
            Sample::Chain { address, chain: chain.as_chunks().0, user: is_known.then_some(user) }
        }
    };
    Some(Record { time_ns, pid, tid, event, what: What::Sample(sample) })
}

/// The registers and the stack at the end of a sample, and whether they are those of a 64-bit program;
/// `None`: it is damaged.
fn user(mut body: &[u8]) -> Option<(User<'_>, bool)> {
    // Of a kernel thread there are none, and of a 32-bit program they are others.
    let abi = next_u64(&mut body)?;
    let is_known = abi == u64::from(PERF_SAMPLE_REGS_ABI_64);
    let registers = if abi == 0 { Registers::default() } else { Registers::take(|| next_u64(&mut body))? };
    let room = usize::try_from(next_u64(&mut body)?).ok()?;
    let (stack, mut rest) = body.split_at_checked(room)?;
    let copied = if room == 0 { 0 } else { usize::try_from(next_u64(&mut rest)?).ok()? };
    Some((User { registers, stack: stack.get(..copied)? }, is_known))
}

fn other(kind: RecordType, misc: u16, body: &[u8]) -> Option<Record<'_>> {
    let (body, mut identity) = body.split_at_checked(body.len().checked_sub(IDENTITY)?)?;
    let who = (next_u32(&mut identity)?, next_u32(&mut identity)?);
    let time_ns = next_u64(&mut identity)?;
    let _cpu = next_u64(&mut identity)?;
    let event = next_u64(&mut identity)?;
    let body = RawData::Single(body);
    let of = |pid: i32, tid: i32| (pid.cast_unsigned(), tid.cast_unsigned());
    let ((pid, tid), what) = match kind {
        RecordType::LOST => (who, What::Lost(LostRecord::parse::<NativeEndian>(body).ok()?.count)),
        RecordType::SWITCH => (who, switched(misc)),
        RecordType::COMM => {
            let named = CommOrExecRecord::parse::<NativeEndian>(body, misc).ok()?;
            let what = What::Named { exec: named.is_execve, name: text(named.name).into() };
            (of(named.pid, named.tid), what)
        }
        RecordType::FORK | RecordType::EXIT => {
            let task = ForkOrExitRecord::parse::<NativeEndian>(body).ok()?;
            let (parent, by) = of(task.ppid, task.ptid);
            let started = What::Started { parent, by };
            (of(task.pid, task.tid), if kind == RecordType::EXIT { What::Ended } else { started })
        }
        RecordType::MMAP2 => {
            let ((pid, tid), mapping) = mapping(misc, body)?;
            (of(pid, tid), What::Mapped(Box::new(mapping)))
        }
        _ => return None,
    };
    Some(Record { time_ns, pid, tid, event, what })
}

#[inline]
fn switched(misc: u16) -> What<'static> {
    match ContextSwitchRecord::from_misc(misc) {
        ContextSwitchRecord::In { .. } => What::SwitchedIn,
        ContextSwitchRecord::Out { preempted, .. } => {
            What::SwitchedOut { preempted: preempted == TaskWasPreempted::Yes }
        }
    }
}

fn mapping(misc: u16, body: RawData<'_>) -> Option<((i32, i32), Mapping)> {
    // An id of its contents takes the place of the inode. It is left out, and the reader is not shown that it
    // is there: it asserts its length.
    let has_inode = misc & PERF_RECORD_MISC_MMAP_BUILD_ID == 0;
    let map = Mmap2Record::parse::<NativeEndian>(body, misc & !PERF_RECORD_MISC_MMAP_BUILD_ID).ok()?;
    let file = match map.file_id {
        Mmap2FileId::InodeAndVersion(inode) => Some(inode).filter(|_| has_inode),
        Mmap2FileId::BuildId(_) => None,
    };
    let mapping = Mapping {
        start: map.address,
        bytes: map.length,
        offset: map.page_offset,
        file,
        path: text(map.path),
    };
    Some(((map.pid, map.tid), mapping))
}

fn text(bytes: RawData<'_>) -> String {
    String::from_utf8_lossy(&bytes.as_slice()).into_owned()
}

#[cfg(test)]
mod tests;
