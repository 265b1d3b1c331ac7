//! What the kernel and the device counted: whether bytes really moved.

use std::path::Path;

/// Bytes that this process, or one thread of it, made block devices move, from `/proc/self/io` (needs no right).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessCounters {
    /// Fetched from storage.
    pub read_bytes: u64,
    /// Sent to storage, or made dirty in the page cache.
    pub write_bytes: u64,
}

impl ProcessCounters {
    /// Now; `None` where the kernel does not tell.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/io").ok()?)
    }

    /// Now, of the calling thread alone: other threads may use the disk meanwhile. `None` where the kernel does not tell.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/io").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
        };
        Some(Self {
            read_bytes: field("read_bytes")?,
            write_bytes: field("write_bytes")?,
        })
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
        }
    }
}

/// What a block device did for everybody, from `/sys/dev/block/M:m/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes completed; `None` before Linux 5.5.
    pub flushes: Option<u64>,
}

/// `stat` counts these whatever the device's blocks are.
const SECTOR_BYTES: u64 = 512;

impl DeviceCounters {
    /// Of the device with this number, as in [`std::fs::Metadata`]'s `dev`; `None` where there is none to ask (overlay, network).
    #[must_use]
    pub fn of(major: u32, minor: u32) -> Option<Self> {
        let folder = format!("/sys/dev/block/{major}:{minor}");
        Self::parse(&std::fs::read_to_string(Path::new(&folder).join("stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text
            .split_ascii_whitespace()
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self {
            reads: *numbers.first()?,
            read_bytes: numbers.get(2)? * SECTOR_BYTES,
            writes: *numbers.get(4)?,
            write_bytes: numbers.get(6)? * SECTOR_BYTES,
            flushes: numbers.get(15).copied(),
        })
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            flushes: self
                .flushes
                .zip(earlier.flushes)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_moved_is_read_by_name() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 9\n";
        let counters = ProcessCounters::parse(text).expect("both are there");
        assert_eq!((counters.read_bytes, counters.write_bytes), (4096, 8192));
        assert_eq!(ProcessCounters::parse("rchar: 1\n"), None);
    }

    #[test]
    fn a_devices_counters_are_in_sectors_and_old_kernels_count_no_flushes() {
        let old = "  10 0 80 1 20 0 160 2 0 3 3";
        let counters = DeviceCounters::parse(old).expect("eleven numbers");
        assert_eq!((counters.reads, counters.read_bytes), (10, 40_960));
        assert_eq!((counters.writes, counters.write_bytes), (20, 81_920));
        assert_eq!(counters.flushes, None);
        let new = DeviceCounters::parse(&format!("{old} 0 0 0 0 7 1")).expect("seventeen numbers");
        assert_eq!(new.flushes, Some(7));
        assert_eq!(new.since(counters).flushes, None);
        assert_eq!(DeviceCounters::parse("none"), None);
    }
}
