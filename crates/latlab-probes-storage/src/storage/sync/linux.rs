//! Linux: files on the directory that is measured.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_machine::Disk;
use latlab_record::{Check, Work};
use latlab_storage::{
    Buffer, Contents, DeviceSource, Direction, Entry, Folder, Place, ProcessCounters, TestFile, evict,
    open_again, open_direct, residency,
};
use rustix::fs::{Mode, OFlags, fdatasync, fsync, openat};
use rustix::io::{pread, pwrite, retry_on_intr};
use strum::VariantArray as _;

use super::{
    BLOCK_BYTES, Details, Durable, FEWEST, FILE_BYTES, Found, OnLinux, Operation, Way, Write, operations,
    patience_ns,
};
use crate::disk::{Asked, Device, DeviceCount, DeviceTime, check, stamps, system};

/// Operations slower than this keep their time stamps, ns: several times a flush that is absorbed, below one tick of any scheduler.
const TAIL_NS: f64 = 1e6;
/// Where the salts of this probe's seeds begin.
const SEEDS: u64 = 0x5F_0000;

pub(super) const OPERATIONS: &[Operation] = Operation::VARIANTS;
pub(super) const WAYS: &[Way] = &[Way::Fsync, Way::Fdatasync, Way::ODsync, Way::DirectFdatasync];

/// Bytes that files may take here, or why there can be none.
pub(super) fn room(env: &Env) -> Result<u64, String> {
    match crate::storage::refusal(env) {
        Some(reason) => Err(reason),
        None => crate::disk::room(env),
    }
}

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
    DeviceSource::of(major.parse().ok()?, minor.parse().ok()?).ok()
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

/// A file that is written block after block.
struct Target {
    /// As the way to make it durable wants it: through the page cache, `O_DSYNC`, past the page cache.
    writing: OwnedFd,
    /// The same file through the page cache.
    plain: Arc<OwnedFd>,
    /// Where the next block goes, bytes.
    at: u64,
    /// What is written in this pass over the file.
    contents: Contents,
}

/// What the kernel and the device counted of the blocks of a point.
#[derive(Default)]
pub(super) struct Counted {
    /// Bytes, by the kernel for this process; `None` where it does not count.
    bytes: Option<u64>,
    flushes: Option<u64>,
    device_writes: Option<u64>,
    /// Bytes that the device under the files counted.
    on_device: DeviceCount,
    /// How long the whole device had its writes and flushes.
    at_device: DeviceTime,
    /// Time in which some program waited for a CPU, and all of it, us; `None` where the kernel does not tell.
    waited_us: Option<u64>,
    watched_us: f64,
    /// Bytes that still waited to be written after the last sync of a block; `None` where the kernel does not tell.
    unsettled: Option<u64>,
}

/// Stamps of one operation: its begin, the file made, written, synced, the directory synced.
struct Times {
    begin: u64,
    created: Option<u64>,
    written: u64,
    synced: Option<u64>,
    named: Option<u64>,
}

impl Times {
    fn end(&self) -> u64 {
        self.named.or(self.synced).unwrap_or(self.written)
    }
}

/// Files that are written and made durable.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    place: Arc<Place>,
    /// The whole device, because flushes are not counted for partitions.
    device: Option<DeviceSource>,
    /// The partition or device that the files lie on.
    under: Device,
    /// Seeds given out.
    seeds: u64,
    buffer: Buffer,
    back: Buffer,
    /// Those to overwrite and to append to.
    targets: BTreeMap<Write, Target>,
    /// The last file that was created.
    created: Option<(OwnedFd, Contents)>,
    files: u64,
    /// Files that are full: closing them deletes them, which would slow down what follows.
    full: Vec<Target>,
    folder: Option<Folder>,
    /// As if the file system did nothing when asked to sync.
    #[cfg(test)]
    pub(super) syncs_nothing: bool,
    /// As if the disk kept other bytes than were written.
    #[cfg(test)]
    pub(super) keeps_other_bytes: bool,
}

pub(super) fn open<'env>(env: &'env Env, group: &[Write]) -> Result<Session<'env>, ProbeError> {
    let stamps = stamps(env)?;
    let place = env.disk.place()?;
    let mut session = Session {
        env,
        stamps,
        under: Device::under(place.directory()),
        place,
        device: disk_of(env).and_then(source_of),
        seeds: 0,
        buffer: Buffer::new(block_length(), block_length()),
        back: Buffer::new(block_length(), block_length()),
        targets: BTreeMap::new(),
        created: None,
        files: 0,
        full: Vec::new(),
        folder: None,
        #[cfg(test)]
        syncs_nothing: false,
        #[cfg(test)]
        keeps_other_bytes: false,
    };
    for write in group {
        match write.operation {
            // What is refused here is refused again, and then said, when the point is selected.
            Operation::Overwrite => drop(session.lay_out(*write)),
            Operation::Create if session.folder.is_none() => {
                session.folder = Some(Folder::create(&session.place)?);
            }
            Operation::Append | Operation::Create => {}
        }
    }
    Ok(session)
}

impl Session<'_> {
    /// Another one for each file and each pass over it.
    fn seed(&mut self) -> u64 {
        self.seeds += 1;
        self.env.seed(SEEDS + self.seeds)
    }

    fn contents(&mut self) -> Contents {
        Contents::new(self.seed())
    }

    /// A file to overwrite: written whole, flushed, every extent looked at.
    fn lay_out(&mut self, write: Write) -> Result<(), ProbeError> {
        if self.targets.contains_key(&write) {
            return Ok(());
        }
        let seed = self.seed();
        let test = TestFile::lay_out(&self.place, self.env.disk.budget(), FILE_BYTES, seed)?;
        let target = Target {
            writing: opened_for(write.sync, &test.file)?,
            plain: test.file,
            at: 0,
            contents: self.contents(),
        };
        self.targets.insert(write, target);
        Ok(())
    }

    /// A file to append to that has room for so many bytes.
    fn grow(&mut self, write: Write, bytes: u64) -> Result<(), ProbeError> {
        if self.targets.get(&write).is_some_and(|target| target.at + bytes <= FILE_BYTES) {
            return Ok(());
        }
        let plain = Arc::new(self.place.file(FILE_BYTES)?);
        let target =
            Target { writing: opened_for(write.sync, &plain)?, plain, at: 0, contents: self.contents() };
        self.full.extend(self.targets.insert(write, target));
        Ok(())
    }

    /// One write into a file that is there.
    fn write(&mut self, write: Write) -> Result<Times, ProbeError> {
        let Write { operation, sync: way } = write;
        let at_end = |target: &Target| target.at + BLOCK_BYTES > FILE_BYTES;
        let again = operation == Operation::Overwrite && self.targets.get(&write).is_some_and(at_end);
        let renewed = again.then(|| self.contents());
        let target = self.targets.get_mut(&write);
        let target = target.ok_or_else(|| ProbeError::Other("the file was not made".to_owned()))?;
        if let Some(contents) = renewed {
            // Once more from the begin, with other bytes.
            target.at = 0;
            target.contents = contents;
        }
        target.contents.fill(target.at, self.buffer.bytes_mut());

        let begin = self.stamps.begin();
        let length = retry_on_intr(|| pwrite(&target.writing, self.buffer.bytes(), target.at));
        let written = self.stamps.end();
        whole(length)?;
        #[cfg(test)]
        let way = if self.syncs_nothing { Way::ODsync } else { way };
        let synced = sync(way, &target.writing)?.then(|| self.stamps.end());
        target.at += BLOCK_BYTES;
        Ok(Times { begin, created: None, written, synced, named: None })
    }

    /// A new file with one block, named durably.
    fn create(&mut self, way: Way) -> Result<Times, ProbeError> {
        let contents = self.contents();
        contents.fill(0, self.buffer.bytes_mut());
        // Closing is no part of it.
        self.created = None;
        self.files += 1;
        let name = Entry::File(self.files).name();
        let folder = self
            .folder
            .as_ref()
            .ok_or_else(|| ProbeError::Other("the folder was not made".to_owned()))?
            .directory();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = flags | flags_of(way);

        let begin = self.stamps.begin();
        let file = openat(folder, &name, flags, Mode::RUSR | Mode::WUSR);
        let created = self.stamps.end();
        let file = file.map_err(system("creating a file"))?;
        let length = retry_on_intr(|| pwrite(&file, self.buffer.bytes(), 0));
        let written = self.stamps.end();
        whole(length)?;
        #[cfg(test)]
        let way = if self.syncs_nothing { Way::ODsync } else { way };
        let synced = sync(way, &file)?.then(|| self.stamps.end());
        retry_on_intr(|| fsync(folder)).map_err(system("syncing the directory"))?;
        let named = Some(self.stamps.end());
        self.created = Some((file, contents));
        Ok(Times { begin, created: Some(created), written, synced, named })
    }

    fn take(&mut self, write: Write, found: &mut Found, block: &mut Block) -> Result<(), ProbeError> {
        let profile = self.env.settings.profile;
        let Write { operation, sync } = write;
        let most = operations(profile, operation);
        if operation == Operation::Append {
            self.grow(write, most * BLOCK_BYTES)?;
        }
        let patience = self.env.clock.ticks(patience_ns(profile));
        let first = self.stamps.begin();
        for done in 0..most {
            let budget = self.env.disk.budget();
            budget.spend(operation.written_blocks() * BLOCK_BYTES)?;
            let times = match operation {
                Operation::Create => self.create(sync)?,
                _ => self.write(write)?,
            };
            self.keep(block, found, &times);
            if done + 1 >= FEWEST && times.end().saturating_sub(first) > patience {
                break;
            }
        }
        Ok(())
    }

    fn keep(&self, block: &mut Block, found: &mut Found, times: &Times) {
        let ns = |begin: u64, end: u64| self.env.clock.ns(end.saturating_sub(begin));
        block.span(times.begin, times.end());
        found.whole_ns.push(ns(times.begin, times.end()));
        let parts = [
            ("create", times.created),
            ("write", Some(times.written)),
            ("sync", times.synced),
            ("directory", times.named),
        ];
        let mut last = times.begin;
        for (name, end) in parts {
            let Some(end) = end else { continue };
            block.channel(name, last, end);
            match name {
                "write" => found.write_ns.push(ns(last, end)),
                "sync" => found.sync_ns.push(ns(last, end)),
                _ => {}
            }
            last = end;
        }
    }

    /// What the last write left: nothing that waits, and the same bytes on the disk.
    fn look(&mut self, write: Write, found: &mut Found) -> Result<(), ProbeError> {
        let (file, contents, offset) = if write.operation == Operation::Create {
            let Some((file, contents)) = &self.created else {
                return Ok(());
            };
            (file.as_fd(), *contents, 0)
        } else {
            let Some(target) = self.targets.get(&write) else {
                return Ok(());
            };
            (target.plain.as_fd(), target.contents, target.at - BLOCK_BYTES)
        };
        // First: looking at the bytes past the page cache would have them written.
        if let Some(waiting) = residency(file)?.unsettled_bytes {
            *found.counted.unsettled.get_or_insert(0) += waiting;
        }
        #[cfg(test)]
        if self.keeps_other_bytes {
            pwrite(file, b"other", offset + 100).expect("five bytes");
        }
        let read = if let Ok(direct) = open_direct(file) {
            retry_on_intr(|| pread(&direct, &mut *self.back.bytes_mut(), offset))
        } else {
            // No way past the page cache: then with nothing in it.
            evict(file)?;
            retry_on_intr(|| pread(file, &mut *self.back.bytes_mut(), offset))
        };
        read.map_err(system("reading back what was written"))?;
        found.verified += 1;
        if let Err(text) = contents.verify(offset, self.back.bytes()) {
            found.wrong.get_or_insert(text);
        }
        Ok(())
    }
}

fn block_length() -> usize {
    usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX)
}

fn flags_of(way: Way) -> OFlags {
    match way {
        Way::Fsync | Way::Fdatasync | Way::FullFsync => OFlags::empty(),
        Way::ODsync => OFlags::DSYNC,
        Way::DirectFdatasync => OFlags::DIRECT,
    }
}

fn opened_for(way: Way, file: &OwnedFd) -> Result<OwnedFd, ProbeError> {
    if way == Way::DirectFdatasync {
        return Ok(open_direct(file)?);
    }
    open_again(file, OFlags::RDWR | flags_of(way)).map_err(system("opening a file to write durably"))
}

/// Whether there was anything to do after the write.
fn sync(way: Way, file: &OwnedFd) -> Result<bool, ProbeError> {
    match way {
        // The last one is not offered here.
        Way::Fsync | Way::FullFsync => retry_on_intr(|| fsync(file)),
        Way::Fdatasync | Way::DirectFdatasync => retry_on_intr(|| fdatasync(file)),
        Way::ODsync => return Ok(false),
    }
    .map_err(system("syncing a file"))?;
    Ok(true)
}

fn whole(written: rustix::io::Result<usize>) -> Result<(), ProbeError> {
    let written = written.map_err(system("writing 4 KiB"))?;
    if written == block_length() {
        return Ok(());
    }
    Err(ProbeError::Other(format!("the disk took {written} of {BLOCK_BYTES} bytes")))
}

impl harness::Session<Durable> for Session<'_> {
    fn select(&mut self, write: &Write) -> Result<(), ProbeError> {
        if write.operation == Operation::Overwrite {
            self.lay_out(*write)?;
        }
        Ok(())
    }

    fn block(&mut self, write: &Write, found: &mut Found, block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        block.set_tail_threshold_ns(TAIL_NS);
        let device = self.device.as_ref().and_then(DeviceSource::read);
        let process = ProcessCounters::now();
        found.counted.on_device.begin(&self.under);
        let (pressure, begun_ns) = (cpu_pressure_us(), self.env.clock.now_ns());
        let bytes = found.bytes();
        let taken = self.take(*write, found, block);
        let (bytes, counted) = (found.bytes() - bytes, &mut found.counted);
        if let (Some(before), Some(now)) = (pressure, cpu_pressure_us()) {
            *counted.waited_us.get_or_insert(0) += now.saturating_sub(before);
            counted.watched_us += (self.env.clock.now_ns() - begun_ns) / 1e3;
        }
        counted.on_device.end(&self.under, Direction::Write, bytes);
        if let (Some(before), Some(now)) = (process, ProcessCounters::now()) {
            // Block by block: the file system's own bytes in one must not make up for what is missing in another.
            *counted.bytes.get_or_insert(0) += now.since(before).write_bytes.min(bytes);
        }
        if let (Some(before), Some(now)) = (device, self.device.as_ref().and_then(DeviceSource::read)) {
            let since = now.since(before);
            counted.at_device.add(since);
            *counted.device_writes.get_or_insert(0) += since.writes;
            if let Some(flushes) = since.flushes {
                *counted.flushes.get_or_insert(0) += flushes;
            }
        }
        taken?;
        self.look(*write, found)
    }

    fn proof(&mut self, write: &Write, found: &Found) -> Proof<Details> {
        let (operations, counted) = (found.whole_ns.len() as u64, &found.counted);
        let each = |count: u64| count as f64 / operations.max(1) as f64;
        let disk = disk_of(self.env);
        let told = OnLinux {
            cpu_pressure: counted.waited_us.map(|waited| waited as f64 / counted.watched_us.max(1.0)),
            flushes_per_operation: counted.flushes.map(each),
            device_writes_per_operation: counted.device_writes.map(each),
            write_cache: disk.and_then(|disk| disk.write_cache.clone()),
            made_of_others: disk.map(|disk| !disk.made_of.is_empty()),
            file_system: file_system(self.env),
            device_time: Some(counted.at_device.of(
                Asked::Durable,
                operations,
                found.whole_ns.iter().sum(),
                found.bytes() * write.operation.written_blocks(),
            )),
        };
        Proof {
            work: Work { bytes: found.bytes(), device_bytes: counted.bytes, ..Work::default() },
            ..Proof::of(checks(found, &self.under)).with(found.details(Some(told))).by("psync")
        }
    }
}

fn checks(found: &Found, device: &Device) -> Vec<Check> {
    let (bytes, Counted { bytes: counted, unsettled, on_device, .. }) = (found.bytes(), &found.counted);
    let blocks = found.verified;
    let waits = match unsettled {
        Some(bytes) => format!("{bytes} bytes still waited to be written after {blocks} blocks (cachestat)"),
        None => "this kernel does not tell what waits to be written".to_owned(),
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
