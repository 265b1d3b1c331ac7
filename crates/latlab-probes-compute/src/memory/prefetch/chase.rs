//! A chase whose order is free: every line holds its own address, and the next place is that, once loaded,
//! plus a distance.
//!
//! So one memory serves all strides and random order alike, without a chain for each of them; and in each
//! order a load needs what the one before it brought, like a pointer. The address varies from line to line: a
//! CPU that guesses the values of loads learns nothing that it would not learn of a chain of pointers in the
//! same order.

use latlab_harness::Batch;

use latlab_probes_shared::walk::{Cycle, LINE_BYTES, follow_strided, link, to_usize};

/// Gives each line of `bytes` its own address.
///
/// # Safety
/// From `base` on, `bytes` must be ours, and begin on a line.
pub(super) unsafe fn lay(base: *mut u8, bytes: u64) {
    for offset in (0..bytes).step_by(to_usize(LINE_BYTES)) {
        let line = base.wrapping_add(to_usize(offset));
        // SAFETY: the caller promises the bytes.
        unsafe { line.cast::<*const u8>().write(line) };
    }
}

/// An order in which every line is visited once before any is visited again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Course {
    /// From the first line on to the end by so many lines, then the same from another of the lines within the
    /// first stride, until all were visited. Those are taken in random order: after its neighbours a line
    /// would be found in a cache, fetched along with them.
    Strided { lines: u64, within: Cycle },
    /// A random cycle.
    Random(Cycle),
}

impl Course {
    /// `stride` and the number of lines are powers of two, `stride` in bytes.
    pub(super) fn strided(lines: u64, stride: u64, seed: u64) -> Self {
        Self::Strided { lines, within: Cycle::random(stride / LINE_BYTES, seed) }
    }

    fn lines(&self) -> u64 {
        match self {
            Self::Strided { lines, .. } => *lines,
            Self::Random(cycle) => cycle.places(),
        }
    }

    /// Offset of the line that is visited at a step, bytes.
    #[inline]
    pub(super) fn offset(&self, step: u64) -> u64 {
        match self {
            Self::Strided { lines, within } => {
                let lap = lines / within.places();
                (within.place(step / lap) + step % lap * within.places()) * LINE_BYTES
            }
            Self::Random(cycle) => cycle.place(step) * LINE_BYTES,
        }
    }

    fn after(&self, step: u64) -> u64 {
        if step + 1 == self.lines() { 0 } else { step + 1 }
    }
}

/// A walk under way. It refers into an arena that its owner keeps.
pub(super) struct Chase {
    base: *const u8,
    course: Course,
    /// What was loaded last: the address of the line of `step`.
    at: *const u8,
    step: u64,
}

impl Chase {
    /// # Safety
    /// From `base` on, each line of the course must hold its own address while this walk is used.
    pub(super) unsafe fn new(base: *const u8, course: Course) -> Self {
        let at = base.wrapping_add(to_usize(course.offset(0)));
        Self { base, course, at, step: 0 }
    }

    fn address(&self, step: u64) -> *const u8 {
        self.base.wrapping_add(to_usize(self.course.offset(step)))
    }

    /// Touches all lines in the order of the walk, ending where it stands: the caches hold what an endless
    /// walk would have left.
    pub(super) fn warm(&self) {
        let mut step = self.step;
        for _ in 0..self.course.lines() {
            step = self.course.after(step);
            // SAFETY: a line of the course.
            unsafe { self.address(step).read_volatile() };
        }
    }

    /// Whether the place is the one where so many steps lead; untimed, once a block. The walk goes on from
    /// there.
    pub(super) fn verify(&mut self) -> bool {
        let right = self.at == self.address(self.step);
        self.at = self.address(self.step);
        right
    }

    /// One step to another part of the course.
    #[inline]
    fn jump(&mut self) {
        let next = self.course.after(self.step);
        let distance = self.course.offset(next).wrapping_sub(self.course.offset(self.step));
        let place = self.at.wrapping_add(to_usize(distance));
        // SAFETY: `at` was loaded from the line of `step`, so this is the line of `next`.
        self.at = unsafe { link(place).read_volatile() };
        self.step = next;
    }
}

impl Batch for Chase {
    fn run(&mut self, ops: u64) -> u64 {
        let mut left = ops;
        match self.course {
            Course::Strided { lines, within } => {
                let lap = lines / within.places();
                while left > 0 {
                    let straight = left.min(lap - 1 - self.step % lap);
                    // SAFETY: these steps stay in the lap, whose lines lie a stride apart and hold their own
                    // addresses.
                    self.at = unsafe { follow_strided(self.at, within.places() * LINE_BYTES, straight) };
                    self.step += straight;
                    left -= straight;
                    if left > 0 {
                        self.jump();
                        left -= 1;
                    }
                }
            }
            Course::Random(cycle) => {
                let mut offset = self.course.offset(self.step);
                for _ in 0..left {
                    self.step = self.course.after(self.step);
                    // Not waited for: the next distances are computed while a load is under way.
                    let next = cycle.place(self.step) * LINE_BYTES;
                    let place = self.at.wrapping_add(to_usize(next.wrapping_sub(offset)));
                    // SAFETY: as in `jump`.
                    self.at = unsafe { link(place).read_volatile() };
                    offset = next;
                }
            }
        }
        self.at.addr() as u64
    }
}
