//! Work that is timed, as the harness calls it.

/// Operations that are timed in windows: the window's mean is one sample.
pub trait Batch {
    /// Does `ops` operations; returns something that depends on all of them.
    fn run(&mut self, ops: u64) -> u64;
}

/// An operation that is timed alone. Everything is inlined into the timed loop.
pub trait Kernel {
    /// What the operation is done on.
    type Arg: Copy;
    /// Chooses the next operation; untimed.
    fn arg(&mut self) -> Self::Arg;
    /// The operation; returns something that depends on it.
    fn op(&mut self, arg: Self::Arg) -> u64;
}

/// What the single operations of a probe do by themselves. It decides what can be a cause of a slow one, and
/// what is cheap enough to be watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operations {
    /// None are timed one by one on this thread: only periods in their time stamps are looked for.
    #[default]
    Unwatched,
    /// They never enter the kernel: switches, faults and interrupts are all somebody else's.
    UserSpace,
    /// They are page faults, or make and unmake mappings. Faults are not recorded: each would take some 0.2
    /// us longer.
    Faults,
    /// System calls, of which sleeping is part of the work in a block that waits
    /// ([`Block::set_waits`](crate::Block::set_waits)). Their switches are too short for records (a round
    /// trip within one CPU took a third longer with them, and 17 % with events that recorded nothing): the
    /// thread's own counters are read after each operation.
    SystemCalls,
    /// System calls that wait for a disk: of blocks that wait one of four is recorded, for root with when
    /// devices were handed requests and had done them; in the others the thread's own counters are read after
    /// each operation. Interrupts are not recorded, because an answer is several of them.
    Disk,
}

impl Operations {
    /// Whether interrupts are recorded beside them by tracepoints, where that is allowed: changing to other
    /// probes and back takes a second.
    pub fn are_traced(self) -> bool {
        matches!(self, Self::UserSpace | Self::Faults)
    }
}
