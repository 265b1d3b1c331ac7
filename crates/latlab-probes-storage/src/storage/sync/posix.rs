//! POSIX calls alone: files without a name in the directory that is measured, written, made durable and read back. Nothing here counts what reached the
//! device, so only the bytes are proved.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use latlab_harness::{Block, Env, ProbeError, Proof, Session, Stamps};
use latlab_record::Work;
use latlab_storage::{Contents, Room};

use crate::disk::{stamps, system};
use crate::storage::sync::{
    BLOCK_BYTES, Details, Durable, FEWEST, FILE_BYTES, Found, Operation, Way, Write, operations, patience_ns,
};

/// Makes what was written durable; whether there was anything to do.
pub(super) type Flush = fn(Way, BorrowedFd<'_>) -> rustix::io::Result<bool>;

const SEEDS: u64 = 0x5F_8000;
const UNCOUNTED: &str = "neither bytes sent to storage nor flushes are counted on this system";

/// What the directory has room for: one of this user's own, no link to one.
pub(super) fn room(directory: &Path) -> Result<Room, String> {
    let facts = std::fs::symlink_metadata(directory)
        .map_err(|error| format!("looking at the directory that is measured: {error}"))?;
    if !facts.is_dir() {
        return Err(
            "files need a directory, and a symbolic link is none: name the directory itself with --dir"
                .to_owned(),
        );
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!(
            "the directory belongs to another user (uid {}): name one of yours with --dir",
            facts.uid()
        ));
    }
    let space = rustix::fs::statvfs(directory).map_err(|errno| format!("asking for free space: {errno}"))?;
    Ok(Room {
        available_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        largest_file_bytes: rustix::process::getrlimit(rustix::process::Resource::Fsize).current,
    })
}

/// A file that is written block after block, and what is written in this pass over it.
struct Target {
    file: File,
    at: u64,
    contents: Contents,
}

/// Files that are written and made durable.
pub struct Syncing<'env> {
    env: &'env Env,
    stamps: Stamps,
    directory: PathBuf,
    flush: Flush,
    seeds: u64,
    buffer: Vec<u8>,
    targets: Vec<(Write, Target)>,
    /// Files that are full: closing them deletes them, which would slow down what follows.
    full: Vec<Target>,
    /// As if the disk kept other bytes than were written.
    #[cfg(test)]
    pub(super) keeps_other_bytes: bool,
}

impl<'env> Syncing<'env> {
    pub(super) fn new(env: &'env Env, directory: &Path, flush: Flush) -> Result<Self, ProbeError> {
        Ok(Self {
            env,
            stamps: stamps(env)?,
            directory: directory.to_owned(),
            flush,
            seeds: 0,
            buffer: vec![0; usize::try_from(BLOCK_BYTES).unwrap_or(0)],
            targets: Vec::new(),
            full: Vec::new(),
            #[cfg(test)]
            keeps_other_bytes: false,
        })
    }

    fn contents(&mut self) -> Contents {
        self.seeds += 1;
        Contents::new(self.env.seed(SEEDS + self.seeds))
    }

    /// A file whose name is taken away before anything is written: nothing is left however this process ends.
    fn nameless(&self) -> Result<File, ProbeError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let room = room(&self.directory).map_err(ProbeError::Other)?;
        room.admit(FILE_BYTES)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".latlab-{}-sync-{number}", std::process::id()));
        let path = self.directory.join(name);
        let mut as_new = File::options();
        as_new.read(true).write(true).create_new(true).mode(0o600);
        let file = as_new.open(&path).map_err(system("making a file"))?;
        std::fs::remove_file(&path).map_err(system("removing a file's name"))?;
        Ok(file)
    }

    /// The file of a point with room for `blocks` more: one to overwrite is written whole and flushed, one that is to grow is empty.
    fn prepare(&mut self, write: Write, blocks: u64) -> Result<usize, ProbeError> {
        let Write { operation, sync } = write;
        let place = self.targets.iter().position(|(own, _)| *own == write);
        match (operation, place) {
            (Operation::Overwrite, Some(place)) => return Ok(place),
            (_, Some(place)) if self.targets[place].1.at + blocks * BLOCK_BYTES <= FILE_BYTES => {
                return Ok(place);
            }
            (_, Some(place)) => self.full.push(self.targets.swap_remove(place).1),
            (_, None) => {}
        }
        let file = self.nameless()?;
        if operation == Operation::Overwrite {
            self.env.disk.budget().spend(FILE_BYTES)?;
            let contents = self.contents();
            for at in (0..FILE_BYTES).step_by(self.buffer.len()) {
                contents.fill(at, &mut self.buffer);
                file.write_all_at(&self.buffer, at).map_err(system("laying out a file"))?;
            }
            (self.flush)(sync, file.as_fd()).map_err(system("flushing a file"))?;
        }
        let contents = self.contents();
        let target = Target { file, at: 0, contents };
        self.targets.push((write, target));
        Ok(self.targets.len() - 1)
    }

    fn take(&mut self, write: Write, found: &mut Found, block: &mut Block) -> Result<(), ProbeError> {
        let profile = self.env.settings.profile;
        let Write { operation, sync } = write;
        let most = operations(profile, operation);
        let place = self.prepare(write, most)?;
        let ns = |begin: u64, end: u64| self.env.clock.ns(end.saturating_sub(begin));
        let patience = self.env.clock.ticks(patience_ns(profile));
        let first = self.stamps.begin();
        for done in 0..most {
            self.env.disk.budget().spend(operation.written_blocks() * BLOCK_BYTES)?;
            if self.targets[place].1.at + BLOCK_BYTES > FILE_BYTES {
                // Once more from the begin, with other bytes.
                let contents = self.contents();
                let target = &mut self.targets[place].1;
                (target.at, target.contents) = (0, contents);
            }
            let target = &mut self.targets[place].1;
            target.contents.fill(target.at, &mut self.buffer);
            let begin = self.stamps.begin();
            let moved = target.file.write_at(&self.buffer, target.at);
            let written = self.stamps.end();
            let flushed = (self.flush)(sync, target.file.as_fd());
            let end = self.stamps.end();
            let moved = moved.map_err(system("writing 4 KiB"))?;
            if moved != self.buffer.len() {
                return Err(ProbeError::Other(format!("the disk took {moved} of {BLOCK_BYTES} bytes")));
            }
            flushed.map_err(system("syncing a file"))?;
            target.at += BLOCK_BYTES;
            block.span(begin, end);
            block.channel("write", begin, written);
            block.channel("sync", written, end);
            found.whole_ns.push(ns(begin, end));
            found.write_ns.push(ns(begin, written));
            found.sync_ns.push(ns(written, end));
            if done + 1 >= FEWEST && end.saturating_sub(first) > patience {
                break;
            }
        }
        let target = &self.targets[place].1;
        let offset = target.at - BLOCK_BYTES;
        #[cfg(test)]
        if self.keeps_other_bytes {
            target.file.write_all_at(b"other", offset + 100).expect("five bytes");
        }
        let mut back = vec![0; self.buffer.len()];
        target.file.read_exact_at(&mut back, offset).map_err(system("reading back what was written"))?;
        found.verified += 1;
        if let Err(text) = target.contents.verify(offset, &back) {
            found.wrong.get_or_insert(text);
        }
        Ok(())
    }
}

impl Session<Durable> for Syncing<'_> {
    fn select(&mut self, write: &Write) -> Result<(), ProbeError> {
        self.prepare(*write, 1).map(drop)
    }

    fn block(&mut self, write: &Write, found: &mut Found, block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        self.take(*write, found, block)
    }

    fn proof(&mut self, _write: &Write, found: &Found) -> Proof<Details> {
        let read_back = found.contents_check("read back (it may have come from memory)");
        Proof {
            work: Work { bytes: found.bytes(), ..Work::default() },
            flags: vec![UNCOUNTED.to_owned()],
            ..Proof::of(vec![read_back, found.device_check()]).with(found.details(None)).by("psync")
        }
    }
}
