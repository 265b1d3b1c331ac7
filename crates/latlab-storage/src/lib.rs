//! Files of ours on the user's disk, and the evidence of what was done with them.
//!
//! ```text
//! Place ──► Scratch file (no name) ──► Contents written whole ──► extents: all written, none only reserved
//!   │  └──► Folder (one name, locked, swept)                 ├──► cache: evicted, looked at
//!   │                                                       └──► engine: one system call at a time, io_uring, threads
//!   └─ room: free space kept, limits, byte budget            └──► direct: alignment, and a transfer that the device counted
//! ```
//! Nothing here is timed, and nothing is believed without a check: a file system may accept a flag and ignore
//! it. Regular files in the user's own directory only; no setting of the machine is ever changed.

mod buffer;
mod contents;
mod counters;
mod default_directory;
mod disk;
mod error;
mod room;

#[cfg(target_os = "linux")]
mod cache;
#[cfg(target_os = "linux")]
mod direct;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod extents;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod names;
#[cfg(unix)]
mod place;
#[cfg(target_os = "linux")]
mod test_file;

pub use buffer::Buffer;
pub use contents::{BLOCK_BYTES, Contents};
pub use counters::{DeviceCounters, DeviceSource, ProcessCounters, TIME_STEP_NS};
pub use default_directory::default_directory;
pub use disk::Disk;
pub use error::StorageError;
pub use room::{Budget, CutShort, Room};

#[cfg(unix)]
pub use {
    folder::{Folder, open_folder, sweep},
    names::Entry,
    place::{Place, Purpose, open_existing},
};

#[cfg(target_os = "linux")]
pub use {
    cache::{Residency, evict, missing, residency},
    direct::{Alignment, DirectEvidence, open_again, open_direct},
    engine::{Direction, Engine, EngineKind, Transfer, uring_allowed},
    extents::{Extents, extents},
    test_file::{Direct, TestFile},
};
