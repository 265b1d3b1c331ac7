//! Linux: the files of a directory as regions, and the two readings of a region.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_probes_shared::Compared;
use latlab_record::Work;
use latlab_stats::order_statistic_interval;
use latlab_storage::{Buffer, ProcessCounters, evict, extents, open_folder, residency};
use rustix::fs::{Advice, AtFlags, Dir, FileType, Mode, OFlags, fadvise, fstat, openat, statat};
use rustix::io::Errno;

use super::{Details, FirstTouch, Reading, Survey, blocks_of};
use crate::disk::{Places, Timed, answered_by_a_device, check, quantile, stamps, system, whole};

/// What lies closer together is fetched together: 6 to 69 MiB were seen.
const REGION: u64 = 16 << 20;
/// Eight blocks of 1 MiB would be all of a smaller one; two are the least.
const LEAST_REGION: u64 = 2 << 20;
/// A directory of more entries is surveyed as far as this.
const MOST_ENTRIES: usize = 20_000;
const MOST_DEPTH: usize = 16;
/// The survey must not take the time of measuring.
const SURVEY_TIME: Duration = Duration::from_millis(500);
/// Ten times what is read: drawn from many files, and with spare ones for files that change meanwhile.
const WANTED: usize = 480;
/// A file of which so much lies in the page cache was read by something.
const TOUCHED: f64 = 0.1;

/// A stretch of a file that no other region shares.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// Of the regular file, from the directory down.
    names: Vec<CString>,
    begin: u64,
    bytes: u64,
}

/// A region, whatever names its file has: device, inode, and where it begins.
type Who = (u64, u64, u64);

/// The directory, and what in it can be read.
pub(super) struct Pool {
    root: OwnedFd,
    regions: VecDeque<Region>,
    pub(super) survey: Survey,
}

fn root(env: &Env) -> Result<OwnedFd, String> {
    let path = env.settings.first_touch.as_deref().ok_or("no directory was named (--first-touch)")?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => {
            "--first-touch needs a directory, not a symbolic link: name the directory itself".to_owned()
        }
        other => format!("opening the directory (--first-touch): {}", std::io::Error::from(other)),
    })
}

impl Pool {
    pub(super) fn survey(env: &Env) -> Result<Self, String> {
        let root = root(env)?;
        let facts = fstat(&root).map_err(|errno| {
            format!("looking at the directory (--first-touch): {}", std::io::Error::from(errno))
        })?;
        let (device, until) = (facts.st_dev, Instant::now() + SURVEY_TIME);
        let mut walk = Walk { device, until, entries: 0, known: HashSet::new(), files: Vec::new() };
        walk.descend(root.as_fd(), &mut Vec::new());
        // The same order each time it is surveyed in a run, so that what was planned is what is read.
        walk.files.sort_by(|a, b| a.names.cmp(&b.names));
        let mut pool =
            Self { root, regions: VecDeque::new(), survey: Survey { direct: true, ..Survey::default() } };
        let mut regions = Vec::new();
        for file in shuffled(&walk.files, env.seed(0xF187)) {
            if regions.len() >= WANTED {
                break;
            }
            match pool.usable(&file.names) {
                Ok(direct) => {
                    pool.survey.direct &= direct;
                    pool.survey.files += 1;
                    regions.extend(cut(file));
                }
                Err(()) => pool.survey.left_out += 1,
            }
        }
        pool.survey.regions = regions.len() as u64;
        pool.survey.bytes = regions.iter().map(|region| region.bytes).sum();
        pool.regions = shuffled(&regions, env.seed(0xF188)).cloned().collect();
        Ok(pool)
    }

    /// Whether it can be read first, and directly; none of its blocks is read.
    fn usable(&self, names: &[CString]) -> Result<bool, ()> {
        let file = self.open(names, false).map_err(|_| ())?;
        extents(&file).map_err(|_| ())?.all_written().map_err(|_| ())?;
        let found = residency(&file).map_err(|_| ())?;
        // Of other people's files mincore(2) says that all is there.
        let reported = found.source == "cachestat" || found.resident_bytes < found.total_bytes;
        if reported && 1.0 - found.evicted_share() > TOUCHED {
            return Err(());
        }
        Ok(self.open(names, true).is_ok())
    }

    /// Opens it for reading, name by name: none of them may be a link.
    fn open(&self, names: &[CString], direct: bool) -> Result<OwnedFd, Errno> {
        let (name, folders) = names.split_last().ok_or(Errno::NOENT)?;
        let mut folder: Option<OwnedFd> = None;
        for own in folders {
            folder = Some(open_folder(folder.as_ref().unwrap_or(&self.root).as_fd(), own)?);
        }
        let folder = folder.as_ref().unwrap_or(&self.root);
        // Without O_NONBLOCK a pipe would wait for its writer.
        let mut flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if direct {
            flags |= OFlags::DIRECT;
        }
        let file = match openat(folder, name, flags | OFlags::NOATIME, Mode::empty()) {
            // Only a file's owner may read it unnoticed.
            Err(Errno::PERM) => openat(folder, name, flags, Mode::empty())?,
            other => other?,
        };
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        if kind == FileType::RegularFile { Ok(file) } else { Err(Errno::INVAL) }
    }

    pub(super) fn next(&mut self) -> Option<(OwnedFd, Who, Region)> {
        while let Some(region) = self.regions.pop_front() {
            self.survey.bytes -= region.bytes;
            self.survey.regions -= 1;
            let Ok(file) = self.open(&region.names, self.survey.direct) else { continue };
            let Ok(facts) = fstat(&file) else { continue };
            if u64::try_from(facts.st_size).unwrap_or(0) < region.begin + region.bytes {
                continue;
            }
            return Some((file, (facts.st_dev, facts.st_ino, region.begin), region));
        }
        None
    }

    /// A region is put back as if it had not been read: what must not happen.
    #[cfg(test)]
    pub(super) fn plant_again(&mut self) {
        if let Some(first) = self.regions.front().cloned() {
            self.survey.bytes += first.bytes;
            self.survey.regions += 1;
            self.regions.push_front(first);
        }
    }
}

/// In an order that the seed decides.
fn shuffled<T>(all: &[T], seed: u64) -> impl Iterator<Item = &T> {
    let mut order = Places::random(1, all.len() as u64, seed);
    (0..all.len()).map(move |_| &all[usize::try_from(order.next()).unwrap_or(0)])
}

/// A whole file, in regions.
fn cut(file: &Region) -> Vec<Region> {
    (0..file.bytes.div_ceil(REGION))
        .map(|nth| Region {
            names: file.names.clone(),
            begin: nth * REGION,
            bytes: (file.bytes - nth * REGION).min(REGION),
        })
        .filter(|region| region.bytes >= LEAST_REGION)
        .collect()
}

struct Walk {
    device: u64,
    until: Instant,
    entries: usize,
    /// Inodes: a second name of a file is no second file.
    known: HashSet<u64>,
    /// Whole ones.
    files: Vec<Region>,
}

impl Walk {
    fn descend(&mut self, folder: BorrowedFd<'_>, names: &mut Vec<CString>) {
        // What cannot be listed is passed over.
        let Ok(listing) = Dir::read_from(folder) else { return };
        let mut own: Vec<CString> = listing
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_owned())
            .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
            .take(MOST_ENTRIES)
            .collect();
        own.sort();
        for name in own {
            self.entries += 1;
            if self.entries > MOST_ENTRIES || Instant::now() > self.until {
                return;
            }
            let Ok(facts) = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if facts.st_dev != self.device {
                continue;
            }
            let bytes = u64::try_from(facts.st_size).unwrap_or(0);
            names.push(name.clone());
            match FileType::from_raw_mode(facts.st_mode) {
                FileType::RegularFile if bytes >= LEAST_REGION && self.known.insert(facts.st_ino) => {
                    self.files.push(Region { names: names.clone(), begin: 0, bytes });
                }
                FileType::Directory if names.len() < MOST_DEPTH => {
                    if let Ok(below) = open_folder(folder, &name) {
                        self.descend(below.as_fd(), names);
                    }
                }
                _ => {}
            }
            names.pop();
        }
    }
}

/// Begin and end of each transfer of a reading.
type Transfers = Vec<(u64, u64)>;

/// What is known of the blocks of one size.
#[derive(Default)]
struct State {
    /// Readings that were taken with their other half and wait to be asked for.
    waiting: [VecDeque<Transfers>; 2],
    /// First over second, of each region.
    ratios: Vec<f64>,
    timed: [Timed; 2],
    blocks: Compared,
    evicted: u64,
    source: &'static str,
    asked: u64,
    counted: Option<u64>,
    /// Regions that were read before by this run.
    again: u64,
}

/// The regions, and what is known of those that were read.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    pub(super) pool: Pool,
    states: HashMap<u64, State>,
    read: HashSet<Who>,
    buffer: Buffer,
    /// Turns a byte of each second reading over, to see it noticed.
    #[cfg(test)]
    pub(super) plant_other_bytes: bool,
}

/// The sum of a block's words: what it costs is outside of what is timed.
fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum: u64, word| sum.rotate_left(5).wrapping_add(u64::from_ne_bytes(*word)))
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Reading]) -> Result<Session<'env>, ProbeError> {
    Ok(Session {
        env,
        stamps: stamps(env)?,
        pool: Pool::survey(env).map_err(ProbeError::Other)?,
        states: HashMap::new(),
        read: HashSet::new(),
        buffer: Buffer::new(1 << 20, 4096),
        #[cfg(test)]
        plant_other_bytes: false,
    })
}

impl Session<'_> {
    /// Reads a fresh region for the first time, and again.
    fn touch(&mut self, block: &Block, block_bytes: u64) -> Result<(), ProbeError> {
        let (file, who, region) = self.pool.next().ok_or_else(|| {
            ProbeError::Other(
                "no region is left that this run has not read: first readings cannot be repeated".to_owned(),
            )
        })?;
        let state = self.states.entry(block_bytes).or_default();
        state.again += u64::from(!self.read.insert(who));
        let within = region.bytes / block_bytes;
        let mut places = Places::random(block_bytes, within, self.env.seed(region.begin ^ who.1));
        let offsets: Vec<u64> =
            (0..blocks_of(block_bytes, region.bytes)).map(|_| region.begin + places.next()).collect();
        let length = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        let before = ProcessCounters::of_this_thread();
        let mut sums = Vec::with_capacity(offsets.len());
        let mut totals = [0.0; 2];
        for (nth, total) in totals.iter_mut().enumerate() {
            if !self.pool.survey.direct {
                let left = evict(&file)?;
                left.is_cold().map_err(ProbeError::Proof)?;
                fadvise(&file, 0, None, Advice::Random).map_err(system("advising how a file is read"))?;
                state.evicted += 1;
                state.source = left.source;
            }
            let mut reading = Transfers::with_capacity(offsets.len());
            for (place, offset) in offsets.iter().enumerate() {
                let bytes = &mut self.buffer.bytes_mut()[..length];
                // What is not brought must be missing from the sum.
                bytes[0] = !bytes[0];
                let from = self.stamps.begin();
                let moved = rustix::io::pread(&file, &mut *bytes, *offset);
                let to = self.stamps.end();
                whole(moved, length, "reading a block of a file that was there")?;
                let ns = block.span_ns(from, to);
                *total += ns;
                state.timed[nth].add(ns, block_bytes);
                reading.push((from, to));
                #[cfg(test)]
                if self.plant_other_bytes && nth == 1 {
                    bytes[9] ^= 1;
                }
                let found = sum(bytes);
                if nth == 0 {
                    sums.push(found);
                } else {
                    state.blocks.one(sums[place] == found);
                }
            }
            state.waiting[nth].push_back(reading);
        }
        let asked = 2 * offsets.len() as u64 * block_bytes;
        if let Some(fetched) = ProcessCounters::fetched_since(before) {
            *state.counted.get_or_insert(0) += fetched;
            state.asked += asked;
        }
        state.ratios.push(totals[0] / totals[1].max(1.0));
        Ok(())
    }
}

impl harness::Session<FirstTouch> for Session<'_> {
    fn block(&mut self, point: &Reading, (): &mut (), block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        let (nth, block_bytes) = (point.operation as usize, point.block_bytes);
        block.set_tail_threshold_ns(Timed::tail_ns(false, block_bytes));
        // Both readings of a region are taken together, whichever is asked for first; the other one waits for
        // its turn.
        if self.states.entry(block_bytes).or_default().waiting[nth].is_empty() {
            self.touch(block, block_bytes)?;
        }
        let state = self.states.entry(block_bytes).or_default();
        for (from, to) in state.waiting[nth].pop_front().unwrap_or_default() {
            block.span(from, to);
        }
        Ok(())
    }

    fn proof(&mut self, point: &Reading, (): &()) -> Proof<Details> {
        let nth = point.operation as usize;
        let Some(state) = self.states.get(&point.block_bytes) else { return Proof::default() };
        let (regions, again) = (state.ratios.len(), state.again);
        let counted = match state.counted {
            Some(counted) => {
                format!("{} bytes read, {counted} fetched from storage (/proc/thread-self/io)", state.asked)
            }
            None => "this kernel does not count".to_owned(),
        };
        let mut checks = vec![
            state.blocks.check("the same bytes both times", "", "blocks"),
            check(
                "each region once",
                again == 0,
                format!("{regions} regions, {again} of them read before by this run"),
            ),
            check(
                "counted by the kernel",
                state.counted.is_none_or(|counted| counted >= state.asked),
                counted,
            ),
        ];
        if !self.pool.survey.direct {
            let detail = format!("evicted 100.0 % ({}) before {} readings", state.source, state.evicted);
            checks.push(check("evicted", state.evicted > 0, detail));
        }
        checks.extend(state.timed[nth].median_ns().map(answered_by_a_device));
        let mut sorted = state.ratios.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let interval = order_statistic_interval(&sorted, 0.5, 0.95).ok();
        let [first, second] = &state.timed;
        let details = Details {
            bytes_per_s: state.timed[nth].bytes_per_s(),
            ratio: quantile(&state.ratios, 0.5),
            interval: interval.map(<[f64; 2]>::from),
            total_ratio: second.bytes_per_s() / first.bytes_per_s().max(f64::MIN_POSITIVE),
            regions: state.ratios.len() as u64,
            left_regions: self.pool.survey.regions,
            left_bytes: self.pool.survey.bytes,
        };
        let bytes = state.blocks.all * point.block_bytes;
        let work = Work { bytes, device_bytes: state.counted, ..Work::default() };
        Proof { work, ..Proof::of(checks).with(details).by("psync") }
    }
}
