//! Files in the directory that is measured, written and made durable.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_storage::{Buffer, Contents, Entry, Folder, Place};
use rustix::fs::{Mode, OFlags, fsync, openat};
use rustix::io::{pwrite, retry_on_intr};

use super::{
    BLOCK_BYTES, Details, Durable, FEWEST, FILE_BYTES, Found, Operation, Way, Write, operations, patience_ns,
};
use crate::disk::{stamps, system};

/// What is of one system: how it makes writes durable, and what it tells of them.
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
mod own;

pub(super) use own::{Counted, OPERATIONS, WAYS};

/// Operations slower than this keep their time stamps, ns: several times a flush that is absorbed, below one
/// tick of any scheduler.
const TAIL_NS: f64 = 1e6;
/// Where the salts of this probe's seeds begin.
const SEEDS: u64 = 0x5F_0000;

/// Bytes that files may take here, or why there can be none.
pub(super) fn room(env: &Env) -> Result<u64, String> {
    if let Some(reason) = crate::storage::not_asked_for(env) {
        return Err(reason);
    }
    let room = env.disk.place().and_then(|place| place.room());
    room.map(|room| room.largest_file()).map_err(|error| error.to_string())
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
    watch: own::Watch,
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
    #[cfg(test)]
    pub(super) fault: Option<Fault>,
}

/// What tests plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The file system does nothing when asked to sync.
    SyncsNothing,
    /// The disk keeps other bytes than were written.
    KeepsOtherBytes,
}

pub(super) fn open<'env>(env: &'env Env, group: &[Write]) -> Result<Session<'env>, ProbeError> {
    let place = env.disk.place()?;
    let mut session = Session {
        env,
        stamps: stamps(env)?,
        watch: own::Watch::new(env, &place),
        place,
        seeds: 0,
        buffer: Buffer::new(block_length(), block_length()),
        back: Buffer::new(block_length(), block_length()),
        targets: BTreeMap::new(),
        created: None,
        files: 0,
        full: Vec::new(),
        folder: None,
        #[cfg(test)]
        fault: None,
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

    /// A file to overwrite: written whole and flushed.
    fn lay_out(&mut self, write: Write) -> Result<(), ProbeError> {
        if !self.targets.contains_key(&write) {
            let seed = self.seed();
            let target = self.target(write, own::laid_out(self.env, &self.place, seed)?)?;
            self.targets.insert(write, target);
        }
        Ok(())
    }

    /// A file to append to that has room for so many bytes.
    fn grow(&mut self, write: Write, bytes: u64) -> Result<(), ProbeError> {
        if self.targets.get(&write).is_none_or(|target| target.at + bytes > FILE_BYTES) {
            let target = self.target(write, Arc::new(self.place.file(FILE_BYTES)?))?;
            self.full.extend(self.targets.insert(write, target));
        }
        Ok(())
    }

    fn target(&mut self, write: Write, plain: Arc<OwnedFd>) -> Result<Target, ProbeError> {
        Ok(Target { writing: own::opened_for(write.sync, &plain)?, plain, at: 0, contents: self.contents() })
    }

    /// Makes what was written durable; when that ended, where there was anything to do.
    fn sync(&self, way: Way, file: &OwnedFd) -> Result<Option<u64>, ProbeError> {
        #[cfg(test)]
        if self.fault == Some(Fault::SyncsNothing) {
            return Ok(None);
        }
        let synced = own::flush(way, file).map_err(system("syncing a file"))?;
        Ok(synced.then(|| self.stamps.end()))
    }

    /// One write into a file that is there.
    fn write(&mut self, write: Write) -> Result<Times, ProbeError> {
        let Write { operation, sync: way } = write;
        let at_end = |target: &Target| target.at + BLOCK_BYTES > FILE_BYTES;
        let again = operation == Operation::Overwrite && self.targets.get(&write).is_some_and(at_end);
        let renewed = again.then(|| self.contents());
        let no_file = || ProbeError::Other("the file was not made".to_owned());
        if let Some(contents) = renewed {
            // Once more from the begin, with other bytes.
            let target = self.targets.get_mut(&write).ok_or_else(no_file)?;
            (target.at, target.contents) = (0, contents);
        }
        let target = self.targets.get(&write).ok_or_else(no_file)?;
        target.contents.fill(target.at, self.buffer.bytes_mut());

        let begin = self.stamps.begin();
        let length = retry_on_intr(|| pwrite(&target.writing, self.buffer.bytes(), target.at));
        let written = self.stamps.end();
        whole(length)?;
        let synced = self.sync(way, &target.writing)?;
        self.targets.entry(write).and_modify(|target| target.at += BLOCK_BYTES);
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
        let flags = flags | own::flags_of(way);

        let begin = self.stamps.begin();
        let file = openat(folder, &name, flags, Mode::RUSR | Mode::WUSR);
        let created = self.stamps.end();
        let file = file.map_err(system("creating a file"))?;
        let length = retry_on_intr(|| pwrite(&file, self.buffer.bytes(), 0));
        let written = self.stamps.end();
        whole(length)?;
        let synced = self.sync(way, &file)?;
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
    fn verify(&mut self, write: Write, found: &mut Found) -> Result<(), ProbeError> {
        let last = match write.operation {
            Operation::Create => self.created.as_ref().map(|(file, contents)| (file.as_fd(), *contents, 0)),
            _ => self.targets.get(&write).map(|own| (own.plain.as_fd(), own.contents, own.at - BLOCK_BYTES)),
        };
        let Some((file, contents, offset)) = last else { return Ok(()) };
        // First: reading the bytes past the page cache would have them written.
        own::count_unsettled(file, &mut found.counted)?;
        #[cfg(test)]
        if self.fault == Some(Fault::KeepsOtherBytes) {
            pwrite(file, b"other", offset + 100).expect("five bytes");
        }
        own::read_back(file, self.back.bytes_mut(), offset)?;
        found.read_back.note(contents.verify(offset, self.back.bytes()));
        Ok(())
    }
}

fn block_length() -> usize {
    usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX)
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
        self.watch.begin(self.env, &mut found.counted);
        let bytes = found.bytes();
        let taken = self.take(*write, found, block);
        let bytes = found.bytes() - bytes;
        self.watch.end(self.env, &mut found.counted, bytes);
        taken?;
        self.verify(*write, found)
    }

    fn proof(&mut self, write: &Write, found: &Found) -> Proof<Details> {
        self.watch.proof(self.env, *write, found)
    }
}
