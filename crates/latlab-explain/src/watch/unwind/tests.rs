//! Stacks and call frame information that are made here, with known callers.

use super::super::sample;
use super::*;
use crate::account::records::{FileId, What};

/// Where the file is loaded, and where in it its parts say that they are.
const LOADED: u64 = 0x5000_0000;
const INDEX_AT: u64 = 0x2_0000;
const ENTRIES_AT: u64 = 0x3_0000;
/// The stack pointer.
const STACK: u64 = 0x7f00_0000;
/// Functions at these addresses of the file, each of 256 bytes.
const LEAF: u64 = 0x1000;
const MIDDLE: u64 = 0x1100;
const START: u64 = 0x1200;
/// Code that was made at run time, which has frame pointers.
const MADE: u64 = 0x9000_0000;
/// Instructions of call frame information.
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const UNDEFINED: u8 = 0x07;
const OFFSET: u8 = 0x80;

fn register(register: Register) -> u8 {
    u8::try_from(register.0).unwrap()
}

/// With its length before it, in whole words.
fn padded(mut body: Vec<u8>) -> Vec<u8> {
    while !(body.len() + 4).is_multiple_of(8) {
        body.push(0);
    }
    let mut entry = u32::try_from(body.len()).unwrap().to_ne_bytes().to_vec();
    entry.extend(body);
    entry
}

/// The caller's address is in the word below the frame, which begins so many bytes above the stack pointer.
fn plain(bytes: u8) -> Vec<u8> {
    vec![DEF_CFA, register(number::STACK), bytes, OFFSET | register(number::RETURN), 1]
}

/// Information on functions: their addresses and instructions.
fn information(functions: &[(u64, Vec<u8>)]) -> Information {
    let mut common = vec![0, 0, 0, 0, 1];
    // Addresses of 8 bytes; distances in words downwards.
    common.extend(b"zR\0\x01\x78");
    common.extend([register(number::RETURN), 1, 0]);
    let mut entries = padded(common);
    let mut rows = Vec::new();
    for (address, instructions) in functions {
        let at = entries.len();
        let mut body = u32::try_from(at + 4).unwrap().to_ne_bytes().to_vec();
        body.extend(address.to_ne_bytes());
        body.extend(256_u64.to_ne_bytes());
        body.push(0);
        body.extend(instructions);
        entries.extend(padded(body));
        for part in [*address, ENTRIES_AT + at as u64] {
            rows.extend(i32::try_from(part.cast_signed() - INDEX_AT.cast_signed()).unwrap().to_ne_bytes());
        }
    }
    entries.extend([0; 4]);
    let mut index = FORM.to_vec();
    index.extend([0; 4]);
    index.extend(u32::try_from(functions.len()).unwrap().to_ne_bytes());
    index.extend(rows);
    let segments = Segments::default();
    Information { segments, index, index_at: INDEX_AT, entries, entries_at: ENTRIES_AT }
}

/// A function with a frame of two words, one of four, and the outermost one.
fn three() -> Information {
    let outermost = vec![UNDEFINED, register(number::RETURN)];
    information(&[(LEAF, plain(16)), (MIDDLE, plain(32)), (START, outermost)])
}

/// Of a process that has mapped the file, and memory for code.
fn unwinder(of: Information) -> Unwinder {
    let mut unwinder = Unwinder::default();
    let file = FileId { major: 8, minor: 1, inode: 7 };
    for (start, path) in [(LOADED, "/bin/a"), (MADE, "//anon")] {
        let what = What::Map { start, bytes: 0x1_0000, offset: 0, path: path.to_owned(), file };
        unwinder.take(&Record { time: 1, pid: 1, tid: 1, what });
    }
    unwinder.files.put("/bin/a", of);
    unwinder
}

fn top(instruction: u64, frame: u64, words: &[u64]) -> Top {
    let registers = Registers { instruction, stack: STACK, frame, link: 0 };
    Top { registers, bytes: words.iter().flat_map(|word| word.to_ne_bytes()).collect() }
}

/// An address in a function, behind a call.
fn back(function: u64) -> u64 {
    LOADED + function + 0x20
}

#[test]
fn callers_are_found_by_what_the_file_says_of_their_frames() {
    let mut unwinder = unwinder(three());
    let stack = [1, back(MIDDLE), 2, 3, 4, back(START), 5, 6];
    let callers = unwinder.callers(1, &top(LOADED + LEAF, 0, &stack), &[], true);
    assert_eq!(callers, Some(vec![LOADED + LEAF, back(MIDDLE), back(START)]));
}

#[test]
fn a_call_that_is_the_last_instruction_of_a_function_is_its_own() {
    let mut unwinder = unwinder(three());
    // What it would go on with belongs to the function behind it.
    let stack = [1, LOADED + START, 2, 3, 4, back(START)];
    let callers = unwinder.callers(1, &top(LOADED + LEAF, 0, &stack), &[], true);
    assert_eq!(callers, Some(vec![LOADED + LEAF, LOADED + START, back(START)]));
}

#[test]
fn code_without_information_is_left_by_its_frame_pointer() {
    let mut unwinder = unwinder(three());
    let stack = [1, 2, STACK + 40, MADE + 0x80, 3, 0, back(START)];
    let callers = unwinder.callers(1, &top(MADE + 8, STACK + 16, &stack), &[], true);
    assert_eq!(callers, Some(vec![MADE + 8, MADE + 0x80, back(START)]));
    let uncovered = LOADED + 0x5000;
    let callers = unwinder.callers(1, &top(uncovered, STACK + 40, &stack), &[], true);
    assert_eq!(callers, Some(vec![uncovered, back(START)]));
    let callers = unwinder.callers(1, &top(uncovered, STACK - 8, &stack), &[], true);
    assert_eq!(callers, Some(vec![uncovered]), "a register with something else in it");
}

#[test]
fn callers_beyond_the_copy_of_the_stack_are_those_that_the_kernel_found() {
    let mut unwinder = unwinder(three());
    let top = top(LOADED + LEAF, 0, &[1, back(MIDDLE), 2, 3]);
    let by_kernel = [LOADED + LEAF, back(MIDDLE), 0x88, 0x99];
    let callers = unwinder.callers(1, &top, &by_kernel, true);
    assert_eq!(callers, Some(vec![LOADED + LEAF, back(MIDDLE), 0x88, 0x99]));
    let callers = unwinder.callers(1, &top, &[LOADED + LEAF, 0x88, 0x99], true);
    assert_eq!(callers, Some(vec![LOADED + LEAF, back(MIDDLE)]), "it went another way");
    let callers = unwinder.callers(2, &top, &by_kernel, true);
    assert_eq!(callers, Some(by_kernel.to_vec()), "of a process of which nothing is known");
}

#[test]
fn what_leads_to_no_code_or_down_the_stack_ends_the_callers() {
    let mut unwinder = unwinder(three());
    let leaf = LOADED + LEAF;
    let callers = unwinder.callers(1, &top(leaf, 0, &[1, 0x1234, 2, 3]), &[leaf, 0x1234], true);
    assert_eq!(callers, Some(vec![leaf]));
    // Frames of no size, each the caller of itself.
    let none = vec![DEF_CFA, register(number::STACK), 0, OFFSET | register(number::RETURN), 0];
    let mut unwinder = self::unwinder(information(&[(LEAF, none)]));
    let callers = unwinder.callers(1, &top(leaf, 0, &[leaf, leaf]), &[], true);
    assert_eq!(callers.map(|callers| callers.len()), Some(2));
}

#[test]
fn an_expression_is_evaluated_with_registers_and_the_stack() {
    // What lies where the stack pointer leads to, plus 8, is the address of the frame:
    // `breg 0; deref; plus_uconst 8`.
    let breg = 0x70 + register(number::STACK);
    let deref = vec![DEF_CFA_EXPRESSION, 5, breg, 0, 0x06, 0x23, 8, OFFSET | register(number::RETURN), 1];
    let mut unwinder =
        unwinder(information(&[(LEAF, deref), (START, vec![UNDEFINED, register(number::RETURN)])]));
    let stack = [STACK + 16, 1, back(START), 2];
    let callers = unwinder.callers(1, &top(LOADED + LEAF, 0, &stack), &[], true);
    assert_eq!(callers, Some(vec![LOADED + LEAF, back(START)]));
}

#[test]
fn an_expression_that_jumps_to_itself_ends() {
    let endless = vec![DEF_CFA_EXPRESSION, 3, 0x2f, 0xfd, 0xff, OFFSET | register(number::RETURN), 1];
    let mut unwinder = unwinder(information(&[(LEAF, endless)]));
    let callers = unwinder.callers(1, &top(LOADED + LEAF, 0, &[back(MIDDLE); 4]), &[], true);
    assert_eq!(callers, Some(vec![LOADED + LEAF]));
}

#[test]
fn a_stack_without_end_has_so_many_callers_and_no_more() {
    let mut unwinder = unwinder(three());
    let stack = [back(LEAF); 400];
    let callers = unwinder.callers(1, &top(LOADED + LEAF, 0, &stack), &[], true).unwrap();
    assert_eq!(callers.len(), DEEPEST);
}

#[test]
fn this_very_program_has_information_on_its_functions() {
    let budget = Rc::new(Budget::here());
    let path = std::env::current_exe().unwrap();
    let of = Information::of(File::open(&path).unwrap(), &budget).unwrap();
    let own = this_very_program_has_information_on_its_functions as fn() as usize as u64;
    let maps = super::super::maps::of(std::process::id());
    let map = maps.iter().find(|map| (map.start..map.end).contains(&own)).unwrap();
    let at = of.segments.address(own - map.start + map.offset).unwrap();
    let rule = of.rule(at, &mut UnwindContext::new(), &budget).unwrap();
    // Before its first instruction.
    let (base, returns_to) =
        if cfg!(target_arch = "aarch64") { (0, Place::Same) } else { (8, Place::Saved(-8)) };
    assert_eq!((rule.base, rule.returns_to), (Base::Stack(base), returns_to));
}

#[test]
fn what_is_no_program_has_no_information_and_does_no_harm() {
    let budget = Rc::new(Budget::of(1 << 20, 1 << 20));
    for bytes in [Vec::new(), vec![0x7f; 100], sample::elf(&sample::named("work"))] {
        assert!(Information::of(sample::file(&bytes), &budget).is_none());
    }
    let index = sample::Section { claims: Some(1 << 40), ..sample::debug(".eh_frame_hdr", FORM.to_vec()) };
    assert!(Information::of(sample::file(&sample::elf(&[index])), &budget).is_none());
}

#[test]
fn entries_of_any_length_are_a_bounded_number_of_steps() {
    let long = |bytes| information(&[(LEAF, [plain(8), vec![0; bytes]].concat())]);
    let stack = [back(LEAF); 60];
    let top = top(back(LEAF), 0, &stack);
    // Two rules are read, that of the first instruction and that of all others.
    let mut unwinder = unwinder(long(20 << 10));
    assert_eq!(unwinder.callers(1, &top, &[], true).unwrap().len(), DEEPEST);
    let mut unwinder = self::unwinder(long(40 << 10));
    assert_eq!(unwinder.callers(1, &top, &[], true).unwrap().len(), 2, "the second would be too much");
    assert_eq!(unwinder.callers(1, &top, &[], true).unwrap().len(), DEEPEST, "the first is known");
    let mut unwinder = self::unwinder(long(1 << 20));
    assert_eq!((0..9).map(|_| unwinder.callers(1, &top, &[], true).unwrap().len()).max(), Some(1));
}

#[test]
fn fuzzed_information_and_stacks_do_no_harm() {
    let of = three();
    let expressions =
        [vec![DEF_CFA_EXPRESSION, 5, 0x77, 0, 0x06, 0x23, 8, 0x90, 1], vec![0x16, 16, 2, 0x77, 8]];
    let both = information(&[(LEAF, expressions[0].clone()), (MIDDLE, expressions[1].clone())]);
    let stack = [STACK + 16, back(MIDDLE), STACK + 40, back(LEAF), 4, back(START), STACK, back(MIDDLE)];
    let mut found = 0;
    sample::fuzz(|random| {
        let of = if random.below(2) == 0 { &of } else { &both };
        let (mut index, mut entries) = (of.index.clone(), of.entries.clone());
        let mut bytes = top(0, 0, &stack).bytes.into_vec();
        let changed = [&mut index, &mut entries, &mut bytes];
        for part in changed {
            if random.below(2) == 0 {
                random.change(part);
            }
        }
        let numbers =
            [0, 1, STACK, STACK + 16, LOADED + LEAF, LOADED + MIDDLE, MADE, u64::MAX, u64::MAX - 7, 1 << 63];
        let mut number = || numbers[random.below(numbers.len())];
        let registers = Registers { instruction: number(), stack: number(), frame: number(), link: number() };
        let top = Top { registers, bytes: bytes.into() };
        let segments = Segments::default();
        let of = Information { segments, index, index_at: number(), entries, entries_at: number() };
        let of = if number() > STACK {
            of
        } else {
            Information { index_at: INDEX_AT, entries_at: ENTRIES_AT, ..of }
        };
        let callers = unwinder(of).callers(1, &top, &[1; 60], true).unwrap();
        assert!(callers.len() <= 60);
        found += usize::from((2..=DEEPEST).contains(&callers.len()));
    });
    assert!(found > 0, "no caller was found");
}
