//! POSIX calls alone: files without a name in the directory that is measured, written, made durable and read back. Nothing here counts what reached the
//! device, so only the bytes are proved.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Check, Point, Work};
use latlab_storage::{Contents, Room, StorageError};
use rustix::fs::{Mode, OFlags};
use serde_json::json;

use crate::disk::answered_by_a_device;
use crate::storage::sync::{BLOCK_BYTES, FILE_BYTES, Operation, Way, asked, block_s, operations};

/// Makes what was written durable; whether there was anything to do.
pub(super) type Flush = fn(Way, BorrowedFd<'_>) -> rustix::io::Result<bool>;

const SEEDS: u64 = 0x5F_8000;
/// A block ends early when it takes so many times what was planned, but not before so many operations.
const PATIENCE: f64 = 4.0;
const FEWEST: u64 = 4;
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

#[derive(Default)]
struct Found {
    point: Point,
    whole_ns: Vec<f64>,
    write_ns: Vec<f64>,
    sync_ns: Vec<f64>,
    verified: u64,
    wrong: Option<String>,
}

pub(super) struct Syncing<'env> {
    env: &'env Env,
    stamps: Stamps,
    directory: PathBuf,
    flush: Flush,
    seeds: u64,
    buffer: Vec<u8>,
    targets: Vec<((Operation, Way), Target)>,
    /// Files that are full: closing them deletes them, which would slow down what follows.
    full: Vec<Target>,
    found: Vec<Found>,
    selected: (Operation, Way),
    /// As if the disk kept other bytes than were written.
    #[cfg(test)]
    pub(super) keeps_other_bytes: bool,
}

fn system(what: &str) -> impl FnOnce(std::io::Error) -> ProbeError {
    let what = what.to_owned();
    move |source| ProbeError::System { what, source }
}

fn refused(error: &StorageError) -> ProbeError {
    ProbeError::Other(error.to_string())
}

impl<'env> Syncing<'env> {
    pub(super) fn new(env: &'env Env, directory: &Path, flush: Flush) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("simulated time does not pass on a disk".to_owned()))?;
        Ok(Self {
            env,
            stamps,
            directory: directory.to_owned(),
            flush,
            seeds: 0,
            buffer: vec![0; usize::try_from(BLOCK_BYTES).unwrap_or(0)],
            targets: Vec::new(),
            full: Vec::new(),
            found: Vec::new(),
            selected: (Operation::Overwrite, Way::Fsync),
            #[cfg(test)]
            keeps_other_bytes: false,
        })
    }

    fn contents(&mut self) -> Contents {
        self.seeds += 1;
        Contents::new(self.env.seed(SEEDS + self.seeds))
    }

    /// A file whose name is taken away before anything is written: nothing is left however this process ends.
    fn nameless(&self) -> Result<OwnedFd, ProbeError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let room = room(&self.directory).map_err(ProbeError::Other)?;
        room.admit(FILE_BYTES).map_err(|error| refused(&error))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".latlab-{}-sync-{number}", std::process::id()));
        let path = self.directory.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| system("making a file")(errno.into()))?;
        std::fs::remove_file(&path).map_err(system("removing a file's name"))?;
        Ok(file)
    }

    fn spend(&self, bytes: u64) -> Result<(), ProbeError> {
        let budget = self.env.disk.budget();
        budget.spend(bytes).map_err(|error| refused(&error))
    }

    /// The file of the selected point with room for `blocks` more: one to overwrite is written whole and flushed, one that is to grow is empty.
    fn prepare(&mut self, blocks: u64) -> Result<usize, ProbeError> {
        let (operation, way) = self.selected;
        let place = self.targets.iter().position(|(own, _)| *own == self.selected);
        match (operation, place) {
            (Operation::Overwrite, Some(place)) => return Ok(place),
            (_, Some(place)) if self.targets[place].1.at + blocks * BLOCK_BYTES <= FILE_BYTES => {
                return Ok(place);
            }
            (_, Some(place)) => self.full.push(self.targets.swap_remove(place).1),
            (_, None) => {}
        }
        let file = File::from(self.nameless()?);
        if operation == Operation::Overwrite {
            self.spend(FILE_BYTES)?;
            let contents = self.contents();
            for at in (0..FILE_BYTES).step_by(self.buffer.len()) {
                contents.fill(at, &mut self.buffer);
                file.write_all_at(&self.buffer, at).map_err(system("laying out a file"))?;
            }
            (self.flush)(way, file.as_fd()).map_err(|errno| system("flushing a file")(errno.into()))?;
        }
        let contents = self.contents();
        let target = Target { file, at: 0, contents };
        self.targets.push((self.selected, target));
        Ok(self.targets.len() - 1)
    }

    fn take(&mut self, block: &mut Block, found: &mut Found) -> Result<(), ProbeError> {
        let profile = self.env.settings.profile;
        let (operation, way) = self.selected;
        let most = operations(profile, operation);
        let place = self.prepare(most)?;
        let ns = |begin: u64, end: u64| self.env.clock.ns(end.saturating_sub(begin));
        let patience = self.env.clock.ticks(PATIENCE * block_s(profile) * 1e9);
        let first = self.stamps.begin();
        for done in 0..most {
            self.spend(operation.written_blocks() * BLOCK_BYTES)?;
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
            let flushed = (self.flush)(way, target.file.as_fd());
            let end = self.stamps.end();
            let moved = moved.map_err(system("writing 4 KiB"))?;
            if moved != self.buffer.len() {
                return Err(ProbeError::Other(format!("the disk took {moved} of {BLOCK_BYTES} bytes")));
            }
            flushed.map_err(|errno| system("syncing a file")(errno.into()))?;
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

impl AnySession for Syncing<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = asked(point).ok_or_else(|| ProbeError::no_point(point))?;
        self.prepare(1).map(drop)
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        let (operation, way) = self.selected;
        let point = crate::storage::sync::point(operation, way);
        let place = self.found.iter().position(|found| found.point == point);
        let mut found = place.map_or_else(Found::default, |place| self.found.swap_remove(place));
        found.point = point;
        let taken = self.take(block, &mut found);
        self.found.push(found);
        taken
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(found) = self.found.iter().find(|found| found.point == *point) else {
            return Proof::default();
        };
        let quantile = |values: &[f64], q| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            (!sorted.is_empty()).then(|| latlab_stats::quantile(&sorted, q))
        };
        let bytes = found.whole_ns.len() as u64 * BLOCK_BYTES;
        Proof {
            checks: vec![
                Check {
                    name: "contents verified".to_owned(),
                    ok: found.wrong.is_none() && found.verified > 0,
                    detail: found.wrong.clone().unwrap_or_else(|| {
                        format!(
                            "the last write of each of {} blocks was read back (it may have come from memory) and is what was written",
                            found.verified
                        )
                    }),
                },
                answered_by_a_device(quantile(&found.whole_ns, 0.5).unwrap_or(0.0)),
            ],
            work: Work {
                bytes,
                ..Work::default()
            },
            engine: Some("psync".to_owned()),
            flags: vec![UNCOUNTED.to_owned()],
            findings: Some(json!({
                "bytes": bytes,
                "write_p50_ns": quantile(&found.write_ns, 0.5),
                "sync_p50_ns": quantile(&found.sync_ns, 0.5),
                "sync_p10_ns": quantile(&found.sync_ns, 0.1),
            })),
            ..Proof::default()
        }
    }
}
