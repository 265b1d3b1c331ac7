//! What the kernel and the device counted: whether bytes really moved.

use std::path::Path;

/// Bytes that this process, or one thread of it, made block devices move, from `/proc/self/io` (needs no
/// right).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessCounters {
    /// Fetched from storage.
    pub read_bytes: u64,
    /// Sent to storage, or made dirty in the page cache.
    pub write_bytes: u64,
}

impl ProcessCounters {
    /// Now; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/io").ok()?)
    }

    /// Now, of the calling thread alone: other threads may use the disk meanwhile. `None` where the kernel
    /// does not tell.
    pub fn of_this_thread() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/io").ok()?)
    }

    /// Bytes that the calling thread fetched from storage since `earlier`; `None` where the kernel does not
    /// tell.
    pub fn fetched_since(earlier: Option<Self>) -> Option<u64> {
        Some(Self::of_this_thread()?.since(earlier?).read_bytes)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
        };
        Some(Self { read_bytes: field("read_bytes")?, write_bytes: field("write_bytes")? })
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
    /// Time that read requests took from when they were made until the kernel saw them done, summed over
    /// them, ns in steps of [`TIME_STEP_NS`].
    pub read_ns: u64,
    /// The same of write requests; one that asks for a flush is among them, with all of its time.
    pub write_ns: u64,
}

/// `stat` counts these whatever the device's blocks are.
const SECTOR_BYTES: u64 = 512;
/// `stat` counts time in these steps, ns.
pub const TIME_STEP_NS: u64 = 1_000_000;

impl DeviceCounters {
    fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> =
            text.split_ascii_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(Self {
            reads: *numbers.first()?,
            read_bytes: numbers.get(2)? * SECTOR_BYTES,
            writes: *numbers.get(4)?,
            write_bytes: numbers.get(6)? * SECTOR_BYTES,
            flushes: numbers.get(15).copied(),
            read_ns: numbers.get(3)? * TIME_STEP_NS,
            write_ns: numbers.get(7)? * TIME_STEP_NS,
        })
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.each(earlier, u64::saturating_sub)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            reads: of(self.reads, other.reads),
            read_bytes: of(self.read_bytes, other.read_bytes),
            writes: of(self.writes, other.writes),
            write_bytes: of(self.write_bytes, other.write_bytes),
            flushes: self.flushes.zip(other.flushes).map(|(own, other)| of(own, other)),
            read_ns: of(self.read_ns, other.read_ns),
            write_ns: of(self.write_ns, other.write_ns),
        }
    }
}

/// Where the counters of the device under a file are read. It stays open: a reading costs microseconds, and
/// no part of them a path.
#[derive(Debug)]
pub struct DeviceSource {
    name: String,
    stat: std::fs::File,
}

impl DeviceSource {
    /// Of the partition or whole device with this number, as in a file's `st_dev`. Errors: why there is none,
    /// as a clause: a file system without a device of its own (overlay, network, btrfs, memory), a device
    /// whose counting is switched off, a system that does not show it.
    #[cfg(target_os = "linux")]
    pub fn of(number: rustix::fs::Dev) -> Result<Self, String> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        if major == 0 {
            let why = "the file system has no block device of its own (overlay, network, btrfs, ZFS, memory)";
            return Err(why.to_owned());
        }
        let folder = std::path::PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let name = std::fs::canonicalize(&folder)
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .ok_or_else(|| format!("/sys does not show the device {major}:{minor}"))?;
        // A partition has none of its own, and lies in its device's folder.
        for switch in ["queue/iostats", "../queue/iostats"] {
            let found = std::fs::read_to_string(folder.join(switch));
            if found.is_ok_and(|text| text.trim() == "0") {
                return Err(format!("{name} does not count (queue/iostats is 0)"));
            }
        }
        Self::at(&name, &folder.join("stat"))
    }

    /// A file in the format of `/sys/dev/block/M:m/stat`. Errors: why it cannot be read, as a clause.
    pub fn at(name: &str, stat: &Path) -> Result<Self, String> {
        let file = std::fs::File::open(stat).map_err(|error| format!("{name} shows no counters: {error}"))?;
        let source = Self { name: name.to_owned(), stat: file };
        match source.read() {
            Some(_) => Ok(source),
            None => Err(format!("{name} shows no counters that can be read")),
        }
    }

    /// The device's kernel name: `vda`, `nvme0n1p2`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Now; `None` when the device is gone.
    pub fn read(&self) -> Option<DeviceCounters> {
        use std::io::{Read, Seek};
        // Seventeen numbers of twenty digits at most.
        let mut text = [0u8; 512];
        let mut file = &self.stat;
        file.rewind().ok()?;
        let length = file.read(&mut text).ok()?;
        DeviceCounters::parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_cannot_be_asked_says_why() {
        #[cfg(target_os = "linux")]
        for (major, why) in [(0, "no block device"), (4_000, "/sys does not show")] {
            let reason = DeviceSource::of(rustix::fs::makedev(major, 42)).expect_err("no block device");
            assert!(reason.contains(why), "{reason}");
        }
        let missing = DeviceSource::at("sdz", Path::new("/nothing/here")).expect_err("not there");
        assert!(missing.starts_with("sdz"), "{missing}");
    }

    #[test]
    fn counters_are_read_anew_each_time() {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let path = binary.with_file_name(format!("stat-{}", std::process::id()));
        std::fs::write(&path, "1 0 8 0 0 0 0 0 0 0 0\n").expect("written");
        let source = DeviceSource::at("planted", &path).expect("eleven numbers");
        let before = source.read().expect("there");
        std::fs::write(&path, "2 0 24 0 0 0 0 0 0 0 0\n").expect("written");
        let moved = source.read().expect("there").since(before);
        std::fs::remove_file(&path).expect("ours");
        assert_eq!((moved.reads, moved.read_bytes), (1, 16 * 512));
    }

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
        assert_eq!((counters.read_ns, counters.write_ns), (1_000_000, 2_000_000));
        assert_eq!(counters.flushes, None);
        let new = DeviceCounters::parse(&format!("{old} 0 0 0 0 7 1")).expect("seventeen numbers");
        assert_eq!(new.flushes, Some(7));
        assert_eq!(new.since(counters).flushes, None);
        assert_eq!(DeviceCounters::parse("none"), None);
    }
}
