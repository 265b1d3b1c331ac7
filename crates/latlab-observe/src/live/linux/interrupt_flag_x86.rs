//! The interrupt flag: a selector that the processor clears.
//!
//! A return from an interrupt or an exception to user space (`IRET`) sets the data segment registers that
//! hold a null selector to zero (Intel's manual, volume 2, IRET, `RETURN-TO-OUTER-PRIVILEGE-LEVEL`; used for
//! the same end by `SegScope`, HPCA 2024). There are four null selectors: a thread that has put 1 into ES
//! finds 0 there if its kernel was entered meanwhile, and 1 if only a host, the firmware or the hardware kept
//! it. ES has no other use in 64-bit code; a system call (`SYSRET`) and a switch of threads keep it. Reading
//! it takes a cycle, writing it fifteen: no system call, no permission.

use std::arch::asm;

use super::disturb::FreshPages;

/// A null selector that is not zero.
const RAISED: u32 = 1;
/// Tries of a pair of instructions between which an interrupt may come.
const TRIES: u32 = 8;

#[derive(Debug)]
pub(crate) struct InterruptFlag {
    /// What ES held before; of one thread, like the flag of rseq.
    before: u32,
    _of_one_thread: std::marker::PhantomData<*const ()>,
}

impl InterruptFlag {
    /// The calling thread's, if a page fault clears it here. Where the kernel returns in another way (FRED),
    /// or an emulator does, nothing does.
    pub(crate) fn open() -> Result<Self, String> {
        let flag = Self { before: selector(), _of_one_thread: std::marker::PhantomData };
        if !(0..TRIES).any(|_| stays_raised()) {
            return Err("this emulator keeps no null selector".to_owned());
        }
        let mut pages = FreshPages::new(1).map_err(|error| format!("a page to try it with: {error}"))?;
        raise(RAISED);
        pages.touch();
        if selector() == RAISED {
            return Err("this kernel comes back from interrupts without clearing a null selector".to_owned());
        }
        Ok(flag)
    }

    /// Whether the thread came back from an interrupt or an exception since it was raised last; raises it
    /// again.
    #[inline]
    #[expect(clippy::unused_self, reason = "whoever has one has raised the flag of this thread")]
    pub(crate) fn was_interrupted(&mut self) -> bool {
        let interrupted = selector() != RAISED;
        if interrupted {
            raise(RAISED);
        }
        interrupted
    }
}

impl Drop for InterruptFlag {
    fn drop(&mut self) {
        raise(self.before);
    }
}

fn stays_raised() -> bool {
    raise(RAISED);
    selector() == RAISED
}

#[inline]
fn selector() -> u32 {
    let selector: u32;
    // SAFETY: reads a register. Not `pure`: it changes by itself.
    unsafe { asm!("mov {:e}, es", out(reg) selector, options(nomem, nostack, preserves_flags)) };
    selector
}

#[inline]
fn raise(selector: u32) {
    // SAFETY: only null selectors, or what was there before, are written; 64-bit code addresses nothing by
    // ES.
    unsafe { asm!("mov es, {:e}", in(reg) selector, options(nomem, nostack, preserves_flags)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fault_takes_the_flag_and_asking_raises_it_again() {
        // Under emulation there may be none.
        let Ok(mut flag) = InterruptFlag::open() else { return };
        let mut pages = FreshPages::new(4).expect("four pages");
        flag.was_interrupted();
        for _ in 0..4 {
            assert!(pages.touch());
            assert!(flag.was_interrupted());
        }
        assert!(
            (0..1_000).any(|_| !flag.was_interrupted()),
            "not every two questions have an interrupt between them"
        );
    }

    #[test]
    fn the_register_is_left_as_it_was() {
        let before = selector();
        if let Ok(flag) = InterruptFlag::open() {
            drop(flag);
            assert_eq!(selector(), before);
        }
    }
}
