//! Linux: what the kernel and the device count.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use latlab_harness::{Env, ProbeError, Proof};
use latlab_machine::Disk;
use latlab_record::{Check, Work};
use latlab_storage::{
    DeviceCounters, DeviceSource, Direction, Place, ProcessCounters, TestFile, evict, open_again,
    open_direct, residency,
};
use rustix::fs::{OFlags, fdatasync, fsync};
use rustix::io::{Errno, pread, retry_on_intr};
use strum::VariantArray as _;

use crate::disk::{Asked, Device, DeviceCount, DeviceTime, check, system};
use crate::storage::sync::{Details, FILE_BYTES, Found, OnLinux, Operation, Way, Write};

pub(crate) const OPERATIONS: &[Operation] = Operation::VARIANTS;
pub(crate) const WAYS: &[Way] = &[Way::Fsync, Way::Fdatasync, Way::ODsync, Way::DirectFdatasync];

/// The device that holds the directory.
fn disk_of(env: &Env) -> Option<&Disk> {
    let number = env.disk.place().ok()?.device();
    let name = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let is = |device: &Option<String>| device.as_deref() == Some(name.as_str());
    env.machine
        .disks
        .iter()
        .find(|disk| is(&disk.device) || disk.partitions.iter().any(|part| is(&part.device)))
}

fn source_of(disk: &Disk) -> Option<DeviceSource> {
    let (major, minor) = disk.device.as_deref()?.split_once(':')?;
    DeviceSource::of(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?)).ok()
}

/// Time since boot in which at least one program waited for a CPU, us (Linux 4.20, where it is switched on).
fn cpu_pressure_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Its kind, options and journal, in a sentence.
fn file_system(env: &Env) -> Option<String> {
    let own = env.machine.dir.file_system.as_ref()?;
    // The description's directory may be another one.
    if own.disk != disk_of(env).map(|disk| disk.name.clone()) {
        return None;
    }
    let journal = match (own.kind.as_str(), own.source.strip_prefix("/dev/")) {
        ("ext4" | "ext3", Some(device)) => match journalled(device) {
            Some(true) => "; with a journal",
            Some(false) => {
                "; without a journal, so a sync commits nothing and costs less than on the usual ext4"
            }
            None => "",
        },
        _ => "",
    };
    Some(format!("file system {} with the options {}{journal}", own.kind, own.options.join(", ")))
}

/// ext4's journal shows up as `/proc/fs/jbd2/sda1-8`.
fn journalled(device: &str) -> Option<bool> {
    let prefix = format!("{device}-");
    let names = std::fs::read_dir(Path::new("/proc/fs/jbd2")).ok()?;
    Some(names.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)))
}

/// What the kernel and the device counted of the blocks of a point.
#[derive(Default)]
pub(crate) struct Counted {
    /// Bytes, by the kernel for this process; `None` where it does not count.
    bytes: Option<u64>,
    /// Bytes that the device under the files counted.
    on_device: DeviceCount,
    /// What the whole device counted, and how long it had its writes and flushes.
    at_device: DeviceTime,
    /// Time in which some program waited for a CPU, and all of it, us; `None` where the kernel does not tell.
    waited_us: Option<u64>,
    watched_us: f64,
    /// Bytes that still waited to be written after the last sync of a block; `None` where the kernel does not
    /// tell.
    unsettled: Option<u64>,
}

/// Asks the kernel and the device before and after each block of samples.
pub(super) struct Watch {
    /// The whole device, because flushes are not counted for partitions.
    device: Option<DeviceSource>,
    /// The partition or device that the files lie on.
    under: Device,
    before: Before,
}

/// What was known before the block.
#[derive(Default)]
struct Before {
    device: Option<DeviceCounters>,
    process: Option<ProcessCounters>,
    pressure_us: Option<u64>,
    now_ns: f64,
}

impl Watch {
    pub(super) fn new(env: &Env, place: &Place) -> Self {
        let device = disk_of(env).and_then(source_of);
        Self { device, under: Device::under(place.directory()), before: Before::default() }
    }

    pub(super) fn begin(&mut self, env: &Env, counted: &mut Counted) {
        let (device, process) = (self.device.as_ref().and_then(DeviceSource::read), ProcessCounters::now());
        counted.on_device.begin(&self.under);
        let (pressure_us, now_ns) = (cpu_pressure_us(), env.clock.now_ns());
        self.before = Before { device, process, pressure_us, now_ns };
    }

    /// After a block that wrote so many bytes.
    pub(super) fn end(&mut self, env: &Env, counted: &mut Counted, bytes: u64) {
        let Before { device, process, pressure_us, now_ns } = std::mem::take(&mut self.before);
        if let (Some(before), Some(now)) = (pressure_us, cpu_pressure_us()) {
            *counted.waited_us.get_or_insert(0) += now.saturating_sub(before);
            counted.watched_us += (env.clock.now_ns() - now_ns) / 1e3;
        }
        counted.on_device.end(&self.under, Direction::Write, bytes);
        if let (Some(before), Some(now)) = (process, ProcessCounters::now()) {
            // Block by block: the file system's own bytes in one must not make up for what is missing in
            // another.
            *counted.bytes.get_or_insert(0) += now.since(before).write_bytes.min(bytes);
        }
        if let (Some(before), Some(now)) = (device, self.device.as_ref().and_then(DeviceSource::read)) {
            counted.at_device.add(now.since(before));
        }
    }

    pub(super) fn proof(&self, env: &Env, write: Write, found: &Found) -> Proof<Details> {
        let (operations, counted) = (found.whole_ns.len() as u64, &found.counted);
        let each = |count: u64| count as f64 / operations.max(1) as f64;
        let on_device = counted.at_device.sum;
        let disk = disk_of(env);
        let reported = OnLinux {
            cpu_pressure: counted.waited_us.map(|waited| waited as f64 / counted.watched_us.max(1.0)),
            flushes_per_operation: on_device.and_then(|sum| sum.flushes).map(each),
            device_writes_per_operation: on_device.map(|sum| each(sum.writes)),
            write_cache: disk.and_then(|disk| disk.write_cache.clone()),
            made_of_others: disk.map(|disk| !disk.made_of.is_empty()),
            file_system: file_system(env),
            device_time: Some(counted.at_device.of(
                Asked::Durable,
                operations,
                found.whole_ns.iter().sum(),
                found.bytes() * write.operation.written_blocks(),
            )),
        };
        Proof {
            work: Work { bytes: found.bytes(), device_bytes: counted.bytes, ..Work::default() },
            ..Proof::of(checks(found, &self.under)).with(found.details(Some(reported))).by("psync")
        }
    }
}

fn checks(found: &Found, device: &Device) -> Vec<Check> {
    let (bytes, Counted { bytes: counted, unsettled, on_device, .. }) = (found.bytes(), &found.counted);
    let blocks = found.read_back.all;
    let waits = match unsettled {
        Some(bytes) => format!("{bytes} bytes still waited to be written after {blocks} blocks (cachestat)"),
        None => "this kernel does not report what waits to be written".to_owned(),
    };
    let sent = match counted {
        Some(counted) => {
            format!("{bytes} bytes written, at least {counted} sent towards storage (/proc/self/io)")
        }
        None => format!("{bytes} bytes written; this kernel does not count"),
    };
    vec![
        found.contents_check("read back"),
        check("nothing waits after the sync", blocks > 0 && unsettled.unwrap_or(0) == 0, waits),
        check("counted by the kernel", bytes > 0 && counted.is_none_or(|counted| counted >= bytes), sent),
        on_device.check(device),
        found.device_check(),
    ]
}

/// A file with its blocks written, flushed, every extent looked at.
pub(super) fn laid_out(env: &Env, place: &Place, seed: u64) -> Result<Arc<OwnedFd>, ProbeError> {
    Ok(TestFile::lay_out(place, env.disk.budget(), FILE_BYTES, seed)?.file)
}

pub(super) fn flags_of(way: Way) -> OFlags {
    match way {
        Way::Fsync | Way::Fdatasync | Way::FullFsync => OFlags::empty(),
        Way::ODsync => OFlags::DSYNC,
        Way::DirectFdatasync => OFlags::DIRECT,
    }
}

pub(super) fn opened_for(way: Way, file: &OwnedFd) -> Result<OwnedFd, ProbeError> {
    if way == Way::DirectFdatasync {
        return Ok(open_direct(file)?);
    }
    open_again(file, OFlags::RDWR | flags_of(way)).map_err(system("opening a file to write durably"))
}

/// Whether there was anything to do after the write.
pub(super) fn flush(way: Way, file: &OwnedFd) -> Result<bool, Errno> {
    match way {
        // The last one is not offered here.
        Way::Fsync | Way::FullFsync => retry_on_intr(|| fsync(file)),
        Way::Fdatasync | Way::DirectFdatasync => retry_on_intr(|| fdatasync(file)),
        Way::ODsync => return Ok(false),
    }
    .map(|()| true)
}

/// What still waits to be written, where the kernel tells.
pub(super) fn count_unsettled(file: BorrowedFd<'_>, counted: &mut Counted) -> Result<(), ProbeError> {
    if let Some(waiting) = residency(file)?.unsettled_bytes {
        *counted.unsettled.get_or_insert(0) += waiting;
    }
    Ok(())
}

pub(super) fn read_back(file: BorrowedFd<'_>, back: &mut [u8], offset: u64) -> Result<(), ProbeError> {
    let read = if let Ok(direct) = open_direct(file) {
        retry_on_intr(|| pread(&direct, &mut *back, offset))
    } else {
        // No way past the page cache: then with nothing in it.
        evict(file)?;
        retry_on_intr(|| pread(file, &mut *back, offset))
    };
    read.map(drop).map_err(system("reading back what was written"))
}
