//! What of a thread's user code is needed to find the functions that called the running one.

use std::ops::RangeInclusive;

/// Registers of user code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Address of the instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The frame pointer: on x86-64 `rbp`, on aarch64 `x29`.
    pub frame: u64,
    /// The link register of aarch64, `x30`; 0 elsewhere.
    pub link: u64,
}

/// Registers, and a copy of the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct User<'a> {
    /// As they were when the event fired, or when the kernel was called.
    pub registers: Registers,
    /// From the stack pointer upwards: as much as was asked for, or less where less could be read.
    pub stack: &'a [u8],
}

/// Numbers of these registers, as the kernel counts them and in the order in which a sample has them; in
/// `asm/perf_regs.h`.
#[cfg(target_arch = "x86_64")]
const NUMBERS: RangeInclusive<u32> = 6..=8;
#[cfg(target_arch = "aarch64")]
const NUMBERS: RangeInclusive<u32> = 29..=32;
/// Elsewhere the kernel has other ones.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(clippy::reversed_empty_ranges, reason = "there is none")]
const NUMBERS: RangeInclusive<u32> = 1..=0;

/// Which registers a sample is to have, a bit for each.
pub(crate) fn mask() -> u64 {
    NUMBERS.map(|number| 1 << number).sum()
}

impl Registers {
    /// Takes them from the front of a sample; `next` takes a number.
    pub(crate) fn take(mut next: impl FnMut() -> Option<u64>) -> Option<Self> {
        let mut all = [0; 4];
        for (register, _) in all.iter_mut().zip(NUMBERS) {
            *register = next()?;
        }
        let [first, second, third, fourth] = all;
        Some(if cfg!(target_arch = "aarch64") {
            Self { frame: first, link: second, stack: third, instruction: fourth }
        } else {
            Self { frame: first, stack: second, instruction: third, link: fourth }
        })
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn registers_are_those_that_were_asked_for_in_the_kernels_order() {
        let mut count = 0;
        let registers = Registers::take(|| {
            count += 1;
            Some(count)
        })
        .unwrap();
        assert_eq!(count, u64::from(mask().count_ones()));
        if cfg!(target_arch = "aarch64") {
            assert_eq!(mask(), 0b1111 << 29);
            assert_eq!(registers, Registers { frame: 1, link: 2, stack: 3, instruction: 4 });
        } else {
            assert_eq!(mask(), 0b1_1100_0000);
            assert_eq!(registers, Registers { frame: 1, stack: 2, instruction: 3, link: 0 });
        }
        assert_eq!(Registers::take(|| None), None);
    }
}
