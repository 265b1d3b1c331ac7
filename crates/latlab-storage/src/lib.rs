//! Files of ours on the user's disk, and the evidence of what was done with them.
//!
//! ```text
//! Place ──► Scratch file (no name) ──► Contents written whole ──► extents: all written, none only reserved
//!   │  └──► Folder (one name, locked, swept)                 ├──► cache: evicted, looked at
//!   │                                                       └──► engine: one system call at a time, io_uring, threads
//!   └─ room: free space kept, limits, byte budget            └──► direct: alignment, and a transfer that the device counted
//! ```
//! Nothing here is timed, and nothing is believed without a look: a file system may accept a flag and ignore it.
//! Regular files in the user's own directory only; no setting of the machine is ever changed.

mod buffer;
mod contents;
mod counters;
mod default_directory;
mod error;
mod room;

#[cfg(target_os = "linux")]
mod cache;
#[cfg(target_os = "linux")]
mod direct;
#[cfg_attr(not(target_os = "linux"), path = "disk_elsewhere.rs")]
mod disk;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod extents;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod test_file;

pub use buffer::Buffer;
#[cfg(target_os = "linux")]
pub use cache::{Residency, evict, missing, residency};
pub use contents::{BLOCK_BYTES, Contents};
pub use counters::{DeviceCounters, DeviceSource, ProcessCounters, TIME_STEP_NS};
pub use default_directory::default_directory;
#[cfg(target_os = "linux")]
pub use direct::{Alignment, DirectEvidence, alignment, open_again, open_direct, try_direct};
pub use disk::Disk;
#[cfg(target_os = "linux")]
pub use engine::{Buffers, Direction, Engine, EngineKind, Patience, Transfer, open_engine, uring_allowed};
pub use error::StorageError;
#[cfg(target_os = "linux")]
pub use extents::{Extents, extents};
#[cfg(target_os = "linux")]
pub use folder::{Folder, open_folder, sweep};
#[cfg(target_os = "linux")]
pub use names::Entry;
#[cfg(target_os = "linux")]
pub use place::{Place, Purpose, open_existing};
pub use room::{Budget, CutShort, Room};
#[cfg(target_os = "linux")]
pub use test_file::{Direct, TestFile};
