//! Perf events of Linux: `perf_event_open(2)`, the ring that the kernel writes records to, the records, and
//! the tracepoints of tracefs.
//!
//! Two crates use it. `latlab-observe` records its own thread and the tracepoints of its CPU, and drains
//! between timed blocks. `latlab-explain` follows whole programs on all CPUs. Each says what it wants as an
//! [`Event`], adds events to a [`Ring`], and iterates over the [`Record`]s that [`Ring::drain`] copied out.
//!
//! The kernel's definitions come from two crates.
//! `perf-event-open-sys` has the attributes, the first page of a ring, the system call and the `ioctl`
//! requests. `linux-perf-event-reader` has the flags as types, and the layout of the records that tell of
//! comms, forks, exits, mappings, switches and losses. This is read here instead:
//!
//! - A sample. The reader multiplies the length of a call chain that it finds in the record, unchecked: a
//!   damaged record overflows that. It also asks for each of 25 fields whether it is there, of a record that
//!   comes a thousand times a second and more.
//! - The header, and the identity at the end of other records, as the reader wants a whole attribute for the
//!   latter. It is the same for all events of this crate.
//!
//! And the reader asserts the length of a build id, so it is never shown one.
//!
//! Nothing in a record is trusted. A length, count or text that does not fit makes the record unknown; the
//! next one is found by the header.
//!
//! On other systems the crate is empty.

#![cfg(target_os = "linux")]

mod close;
mod event;
mod record;
mod ring;
mod tracefs;
mod user;

pub use close::{close_all_but, close_beside};
pub use event::{Event, Kind, Whose, held, instructions, reason};
pub use linux_perf_event_reader::{AttrFlags as Flags, Mmap2InodeAndVersion as Inode};
pub use record::{Detail, Mapping, Record, Sample, What, records};
pub use ring::{Ring, cpus, this_thread};
pub use tracefs::Tracefs;
pub use user::{Registers, User};
