//! What wall time is spent on. The names are part of the published JSON.

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

/// One row of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Category {
    /// The program's own instructions, as far as no other row has them.
    Compute,
    /// Functions that only move bytes in memory.
    MemoryCopy,
    /// Getting and giving back memory, in user code and in the kernel calls made for it.
    Allocator,
    /// The garbage collector's work.
    GarbageCollection,
    /// Time in user code that nothing here can look into: the four rows above, unseparated.
    UserCpu,
    /// The kernel's work on page faults.
    PageFaults,
    /// The kernel's work on files: copying, metadata, submitting.
    FileIoCpu,
    /// The kernel's work of which no other row speaks: calls that it does not count, where it cannot be
    /// sampled.
    KernelCpu,
    /// Waiting for a disk.
    StorageWait,
    /// The kernel's work on sockets, and waiting for them.
    Network,
    /// The kernel's work on pipes, and waiting for the other end.
    Pipe,
    /// The kernel's work on locks, and waiting for them.
    Locks,
    /// Ready to run while other programs had the CPUs.
    RunQueueWait,
    /// Sleeping on purpose.
    Sleep,
    /// Waiting for a process that this program started, while nothing is known of that one.
    WaitingForChildren,
    /// Loading the program, and tearing its memory down.
    StartAndExit,
    /// Interrupts served while the program was on the CPU, on behalf of whoever.
    InterruptsForOthers,
    /// Everything without a known cause.
    Unexplained,
}

impl Category {
    /// All of them, in the order in which they are listed.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// What only samples of user code can tell apart.
    pub const OF_USER_CODE: [Self; 4] =
        [Self::Compute, Self::MemoryCopy, Self::Allocator, Self::GarbageCollection];

    /// What the kernel's work may be that is not divided; of some of these there are waits as well.
    pub const OF_THE_KERNEL: [Self; 8] = [
        Self::FileIoCpu,
        Self::PageFaults,
        Self::StartAndExit,
        Self::Allocator,
        Self::Network,
        Self::Pipe,
        Self::Locks,
        Self::InterruptsForOthers,
    ];

    /// Where it stands in [`Category::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name as it is written.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Which of several threads' waits an instant belongs to, when all threads wait: the lowest. A wait for
    /// the outside comes before a wait for another thread or process of the program, which is only its
    /// consequence.
    pub fn wait_order(self) -> u8 {
        match self {
            Self::StorageWait => 0,
            Self::Network => 1,
            Self::PageFaults => 2,
            Self::Sleep => 3,
            Self::Pipe => 4,
            Self::StartAndExit => 5,
            Self::Locks => 6,
            Self::WaitingForChildren => 8,
            _ => 7,
        }
    }

    /// Whether a wait of this kind is for the outside, whatever else the program does.
    pub fn is_outside(self) -> bool {
        matches!(self, Self::StorageWait | Self::Network | Self::Sleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_is_written_as_it_is_printed() {
        for category in Category::ALL {
            assert_eq!(serde_json::to_string(category).unwrap(), format!("\"{category}\""));
        }
        // Files have these: another name of a variant is another format.
        let names: Vec<String> = Category::ALL.iter().map(ToString::to_string).collect();
        let reported = "compute memory-copy allocator garbage-collection user-cpu page-faults file-io-cpu \
            kernel-cpu storage-wait \
                    network pipe locks run-queue-wait sleep waiting-for-children start-and-exit \
                    interrupts-for-others unexplained";
        assert_eq!(names.join(" "), reported);
    }

    #[test]
    fn waiting_for_a_child_explains_an_instant_only_when_nothing_else_does() {
        let last = Category::ALL.iter().max_by_key(|category| category.wait_order());
        assert_eq!(last, Some(&Category::WaitingForChildren));
    }
}
