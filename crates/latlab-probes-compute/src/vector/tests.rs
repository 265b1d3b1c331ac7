use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::Arc;

use super::*;

/// Lines that begin on a line, with a guard line after them that no kernel may touch.
struct Buffer {
    base: *mut u8,
    lines: usize,
}

const GUARD: u64 = 0xDEAD_BEEF_0BAD_F00D;

impl Buffer {
    fn new(lines: usize) -> Self {
        // SAFETY: the layout has a size.
        let base = unsafe { alloc_zeroed(Self::layout(lines)) };
        let mut buffer = Self { base, lines };
        buffer.all_words()[lines * 8..].fill(GUARD);
        buffer
    }

    fn layout(lines: usize) -> Layout {
        Layout::from_size_align((lines + 1) * LINE_BYTES, 4096).expect("small")
    }

    fn all_words(&mut self) -> &mut [u64] {
        // SAFETY: allocated with this many words, aligned, zeroed.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), (self.lines + 1) * 8) }
    }

    fn words(&mut self) -> Vec<u64> {
        let lines = self.lines;
        let all = self.all_words();
        assert!(all[lines * 8..].iter().all(|word| *word == GUARD), "written beyond the end");
        all[..lines * 8].to_vec()
    }

    fn filled(lines: usize, seed: u64) -> (Self, Contents) {
        let buffer = Self::new(lines);
        // SAFETY: the buffer has the lines.
        let contents = unsafe { Contents::fill(buffer.base, lines, seed) };
        (buffer, contents)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by us with this layout.
        unsafe { dealloc(self.base, Self::layout(self.lines)) };
    }
}

/// Around every number of lines in a turn of the unrolled loops (1 to 16 lines), and none at all.
fn odd_sizes() -> impl Iterator<Item = usize> {
    (0..=50).chain([127, 128, 129, 1_000])
}

fn for_every_kernel_and_size(test: impl Fn(&Kernels, usize)) {
    for kernels in available() {
        for lines in odd_sizes() {
            test(kernels, lines);
        }
    }
}

#[test]
fn the_widest_set_of_this_cpu_comes_first_and_the_portable_one_last() {
    let names: Vec<&str> = available().iter().map(|kernels| kernels.isa).collect();
    assert_eq!(names.last(), Some(&"scalar"));
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    assert!(names.len() > 1, "{names:?}");
}

#[test]
fn a_read_folds_every_word_of_its_last_pass_whatever_their_number() {
    for_every_kernel_and_size(|kernels, lines| {
        let (mut buffer, contents) = Buffer::filled(lines, 3);
        let by_hand = buffer.words().iter().fold(0, |all, word| all ^ word);
        assert_eq!(contents.checksum(0, lines), by_hand);
        for passes in [0, 1, 2, 7] {
            // SAFETY: the buffer has the lines and the CPU the instructions.
            let sum = unsafe { (kernels.read)(buffer.base, lines, passes) };
            assert_eq!(
                sum,
                by_hand * u64::from(passes > 0),
                "{} {lines} lines, {passes} passes",
                kernels.isa
            );
        }
    });
}

#[test]
fn a_change_of_any_single_word_changes_the_checksum() {
    for kernels in available() {
        let (mut buffer, contents) = Buffer::filled(21, 5);
        for place in 0..21 * 8 {
            buffer.all_words()[place] ^= 1 << (place % 64);
            // SAFETY: as above.
            let folded = unsafe { (kernels.read)(buffer.base, 21, 1) };
            assert_ne!(folded, contents.checksum(0, 21), "{} {place}", kernels.isa);
            buffer.all_words()[place] ^= 1 << (place % 64);
        }
    }
}

#[test]
fn both_writes_reach_every_word_and_nothing_beyond() {
    for_every_kernel_and_size(|kernels, lines| {
        for write in [Some(kernels.write), kernels.write_nt].into_iter().flatten() {
            let mut buffer = Buffer::new(lines);
            // SAFETY: as above.
            unsafe { write(buffer.base, lines, 3, 0x0123_4567_89AB_CDEF) };
            assert_eq!(buffer.words(), vec![0x0123_4567_89AB_CDEF; lines * 8], "{} {lines}", kernels.isa);
        }
    });
}

#[test]
fn no_pass_writes_nothing() {
    for kernels in available() {
        let mut buffer = Buffer::new(9);
        let (from, _) = Buffer::filled(9, 1);
        // SAFETY: as above.
        unsafe {
            (kernels.write)(buffer.base, 9, 0, 7);
            (kernels.copy)(buffer.base, from.base, 9, 0);
            (kernels.triad)(buffer.base, from.base, from.base, 9, 0, 3.0);
        }
        assert_eq!(buffer.words(), vec![0; 9 * 8], "{}", kernels.isa);
    }
}

#[test]
fn a_copy_equals_its_source_and_leaves_it_alone() {
    for_every_kernel_and_size(|kernels, lines| {
        let (mut from, contents) = Buffer::filled(lines, 9);
        let mut to = Buffer::new(lines);
        // SAFETY: as above; two allocations do not overlap.
        unsafe { (kernels.copy)(to.base, from.base, lines, 2) };
        let source: Vec<u64> = (0..lines * 8).map(|place| contents.word(place)).collect();
        assert_eq!(to.words(), source, "{} {lines}", kernels.isa);
        assert_eq!(from.words(), source, "{} {lines}", kernels.isa);
    });
}

#[test]
fn a_triad_is_exact_in_every_element() {
    for_every_kernel_and_size(|kernels, lines| {
        let (left, b) = Buffer::filled(lines, 21);
        let (right, c) = Buffer::filled(lines, 22);
        let mut to = Buffer::new(lines);
        for factor in [3.0, 5.0] {
            // SAFETY: as above.
            unsafe { (kernels.triad)(to.base, left.base, right.base, lines, 1, factor) };
            let expected: Vec<u64> = (0..lines * 8)
                .map(|i| f64::from_bits(c.word(i)).mul_add(factor, f64::from_bits(b.word(i))).to_bits())
                .collect();
            assert_eq!(
                to.words(),
                expected,
                "{} {lines}: also when product and sum are rounded once",
                kernels.isa
            );
        }
    });
}

#[test]
fn checksums_are_known_for_any_part() {
    let (mut buffer, contents) = Buffer::filled(300, 4);
    let words = buffer.words();
    for (from, lines) in [(0, 0), (0, 300), (1, 63), (63, 2), (64, 64), (100, 199), (299, 1), (300, 0)] {
        let by_hand = words[from * 8..(from + lines) * 8].iter().fold(0, |all, word| all ^ word);
        assert_eq!(contents.checksum(from, lines), by_hand, "{from}+{lines}");
    }
}

#[test]
fn words_differ_from_place_to_place() {
    let (mut buffer, _) = Buffer::filled(1_000, 4);
    let mut words = buffer.words();
    words.sort_unstable();
    words.dedup();
    assert!(words.len() > 7_950, "{} distinct of 8,000", words.len());
    assert!(words.iter().all(|word| (1.0..2.0).contains(&f64::from_bits(*word))));
}

/// Copying a MiB of a field of a MiB, from this line and to that one.
fn copying(field: &Arc<Field>, source: usize, dest: usize) -> Result<Streams, latlab_harness::ProbeError> {
    let stream_lines = 8192;
    let shape = Shape { operation: Operation::Copy, stream_lines, slice_lines: stream_lines, source, dest };
    Streams::new(field, shape)
}

#[test]
fn streams_lie_inside_their_field_wherever_they_begin() {
    let field = Arc::new(Field::new(1 << 20, latlab_record::Pages::Base, &[], 3).expect("1.5 MiB"));
    assert!(copying(&field, 0, 0).is_ok());
    assert!(copying(&field, 8192, 0).is_ok());
    for (source, dest) in [(8193, 0), (0, 1), (usize::MAX, 0), (0, usize::MAX), (usize::MAX - 8191, 0)] {
        assert!(copying(&field, source, dest).is_err(), "{source} {dest}");
    }
}

#[test]
fn words_beyond_the_streams_are_neither_spoilt_nor_compared() {
    let field = Arc::new(Field::new(1 << 20, latlab_record::Pages::Base, &[], 3).expect("1.5 MiB"));
    let streams = copying(&field, 0, 0).expect("it fits");
    let refused =
        |work: &dyn Fn() -> u64| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
    for (at, lines) in [(8192, 1), (1, 8192), (usize::MAX, 2)] {
        assert!(
            refused(&|| {
                streams.spoil(at, lines, 1);
                0
            }),
            "{at} {lines}"
        );
        assert!(refused(&|| streams.wrong_words(at, lines)), "{at} {lines}");
    }
}
