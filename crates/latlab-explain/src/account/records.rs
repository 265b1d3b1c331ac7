//! What is known to have happened to a thread, and when.

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What happened.
    pub what: What,
}

/// What the kernel says of a mapped file, by which it is known again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    /// Of its device.
    pub major: u32,
    /// Of its device.
    pub minor: u32,
    /// 0: there is no file, or the kernel has not said which.
    pub inode: u64,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// An event fired.
    Sample {
        event: u64,
        /// Addresses in the kernel, the running function first.
        kernel: Vec<u64>,
        /// Addresses in user code, the running function first.
        user: Vec<u64>,
    },
    /// The thread left its CPU.
    Out {
        /// It could have gone on.
        preempted: bool,
    },
    /// It came to a CPU.
    In,
    /// A file was mapped to be executed.
    Map {
        /// First address.
        start: u64,
        bytes: u64,
        /// Offset in the file.
        offset: u64,
        path: String,
        file: FileId,
    },
    /// The thread has this name now.
    Name {
        /// As it loaded a new program.
        exec: bool,
        name: String,
    },
    /// The thread was started by this process.
    Start {
        /// Its parent's id; equal to `pid` for another thread of a process.
        parent: u32,
        /// The thread of it that did so.
        by: u32,
    },
    /// The thread ends the wait of another one.
    Wake {
        /// The one that waited; of the program or not.
        thread: u32,
    },
    /// The thread is told by a signal that a child of its process has ended.
    ChildEnded,
    /// It ends.
    End,
    /// Records that there was no room for.
    Lost(u64),
    /// Not the kernel's: why the thread waits that left its CPU at this time, found in /proc.
    Learned {
        /// When it began to wait.
        since: u64,
        /// Why.
        reason: crate::rules::Reason,
    },
}
