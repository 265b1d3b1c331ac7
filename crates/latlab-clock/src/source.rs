//! What a timed region is bracketed with.

/// A source of raw ticks that a timed region is bracketed with.
///
/// Implementations are `#[inline(always)]`: a call between the stamp and the work would be timed too.
/// Ticks mean nothing by themselves; [`crate::Clock::ns`] turns differences of them into nanoseconds.
///
/// Both methods are compiler barriers for memory, not for registers: arithmetic that touches no memory may be
/// moved across them, so a kernel must load, store, or pass its operands through `std::hint::black_box`.
pub trait TimeSource {
    /// Ticks at the start of a timed region: earlier work is complete, later work has not begun.
    fn begin(&self) -> u64;
    /// Ticks at the end: the region's loads are complete, later work has not begun.
    ///
    /// Stores are not waited for: a store is over for the program once it is in the store buffer, and
    /// draining the buffer would charge the region with work that never delays the program.
    ///
    /// It is the reading of the start, unless a cheaper one will do.
    #[inline(always)]
    fn end(&self) -> u64 {
        self.begin()
    }
}
