//! Linux: pokes into the files of the directory that is measured.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use latlab_harness::{AnySession, Block, Env, Kernel, Planned, ProbeError, Proof, Stamps, pin_this_thread};
use latlab_record::{Check, Point, Work, binary_size};
use latlab_stats::rng::Rng;
use latlab_storage::{Buffer, Direction, TestFile, missing, open_direct};
use rustix::fs::{Advice, Mode, OFlags, SeekFrom, fadvise, fsync, seek};
use rustix::io::{Errno, pread, pwrite, read};
use serde_json::json;

use super::{LARGE, PAGE_BYTES, QUICK_LARGEST, SMALL, pages, pokes, wanted, written};
use crate::disk::{
    Access, Asked, COLD, DIRECT, Evidence, Places, Target, WARM, answered_by_a_device, refused,
};

/// Pokes slower than this keep their time stamps, ns: several times the median.
const WARM_TAIL_NS: f64 = 10e3;
const DEVICE_TAIL_NS: f64 = 500e3;
/// Of the bytes that warm pokes read, one in so many is compared: computing a block takes as long as a poke.
const COMPARED: usize = 16;
/// Poked blocks compared whole after each block of samples.
const WHOLE: usize = 4;
/// Of warm pokes one in so many may have met a page that the kernel took away meanwhile.
const FETCHED: u64 = 100;
/// A block of warm pokes is taken in so many portions: those that met more such pages do not count.
const PORTIONS: u64 = 8;
/// Bytes read at a time while warming.
const CHUNK_BYTES: usize = 1 << 20;
const SEEDS: u64 = 0x70_0000;

pub(super) fn open<'env>(
    env: &'env Env,
    group: &[Planned],
) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Poking::new(env, group).map(|session| Box::new(session) as Box<dyn AnySession>)
}

/// A file to poke into.
struct Spot {
    target: Target,
    /// A descriptor of our own: its position and its advice (no read-ahead) are nobody else's.
    file: OwnedFd,
    direct: Result<OwnedFd, String>,
    /// What direct transfers are here: a page, or what the file system asks for.
    block_bytes: u64,
    /// How much of it is in the page cache.
    warm_bytes: u64,
}

impl Spot {
    fn new(target: Target) -> Result<Self, ProbeError> {
        let path = format!("/proc/self/fd/{}", target.test.file.as_raw_fd());
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(system("opening a file to poke into"))?;
        fadvise(&file, 0, None, Advice::Random).map_err(system("turning read-ahead off"))?;
        let (direct, block_bytes) = match &target.test.direct {
            Ok(own) => (
                open_direct(&file).map_err(|error| error.to_string()),
                own.alignment.offset_bytes.max(PAGE_BYTES),
            ),
            Err(reason) => (Err(reason.clone()), PAGE_BYTES),
        };
        Ok(Self { target, file, direct, block_bytes, warm_bytes: 0 })
    }

    /// With the help of these CPUs: having the pages takes longer than reading them.
    fn warm(&mut self, bytes: u64, helpers: &[u32]) -> Result<(), ProbeError> {
        if self.warm_bytes >= bytes && self.bring_back(bytes)? < bytes / 2 {
            return Ok(());
        }
        // What others left of it may lie there in large pieces. What somebody keeps mapped stays, and is warm too.
        self.target.test.evict().map_err(refused)?;
        let part = bytes.div_ceil(helpers.len() as u64 + 1).next_multiple_of(PAGE_BYTES);
        let file = &self.file;
        std::thread::scope(|scope| {
            let mut begin = part;
            let mut reading = Vec::new();
            for cpu in helpers {
                let range = begin.min(bytes)..(begin + part).min(bytes);
                begin += part;
                reading.push(scope.spawn(move || {
                    pin_this_thread(*cpu);
                    read_pages(file, range)
                }));
            }
            let own = read_pages(file, 0..part.min(bytes));
            let others = reading.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(ProbeError::Other("a thread that read a file failed".to_owned())))
            });
            others.fold(own, Result::and)
        })?;
        self.warm_bytes = bytes;
        Ok(())
    }

    /// Pages that the kernel took back since they were warmed (it does that by itself where memory is watched, DAMON) are read again, when they are
    /// fewer than half; how many bytes were missing.
    fn bring_back(&self, bytes: u64) -> Result<u64, ProbeError> {
        let gone = missing(&self.file, bytes).map_err(refused)?;
        let lost = length_of(&gone);
        if lost < bytes / 2 {
            for range in gone {
                read_pages(&self.file, range)?;
            }
        }
        Ok(lost)
    }
}

/// Bytes of all ranges.
fn length_of(ranges: &[std::ops::Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Through a descriptor without read-ahead, which brings single pages: to write one byte of a piece of 2 MiB, ext4 looks at all of its blocks.
fn read_pages(file: &OwnedFd, range: std::ops::Range<u64>) -> Result<(), ProbeError> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = range.start;
    while at < range.end {
        let length = CHUNK_BYTES.min(usize::try_from(range.end - at).unwrap_or(CHUNK_BYTES));
        match pread(file, &mut chunk[..length], at) {
            Ok(0) => break,
            Ok(more) => at += more as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(system("reading a file to warm it")(errno)),
        }
    }
    Ok(())
}

/// What was found at one point in all of its blocks.
struct Found {
    evidence: Evidence,
    places: Places,
    /// Places that this order of the pages has given.
    placed: u64,
    pokes: u64,
    written: u64,
    read_ns: Vec<f64>,
    write_ns: Vec<f64>,
    whole_ns: Vec<f64>,
    /// By the kernel, for warm pokes that count.
    fetched: Option<u64>,
    /// Warm pokes that do not count.
    thrown: u64,
    /// Bytes that were fetched during these, and those that were missing right after a portion of them, at most.
    lost: u64,
    missing: u64,
    /// Blocks compared whole, and the first that was changed.
    compared: u64,
    changed: Option<String>,
}

/// What tests plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Another process has the file mapped, so evicting it does nothing.
    Mapped,
    /// Nobody evicts.
    NotEvicted,
    /// Other bytes are written back than were read.
    OtherBytes,
    /// The kernel takes the file's pages back before the first portion of a block, or before each.
    TakenBackOnce,
    TakenBack,
}

pub(super) struct Poking<'env> {
    env: &'env Env,
    stamps: Stamps,
    rng: Rng,
    /// By the size that they serve; the test file by 0.
    spots: BTreeMap<u64, Spot>,
    buffer: Buffer,
    /// Places and what was read there, in this block.
    log: Vec<(u64, u8)>,
    /// Stamps of warm pokes of which it is not known yet whether they count.
    held: Vec<[u64; 3]>,
    found: BTreeMap<Point, Found>,
    selected: Point,
    #[cfg(test)]
    fault: Option<Fault>,
}

/// Which file serves a size.
fn spot_of(file_bytes: u64) -> u64 {
    if SMALL.contains(&file_bytes) { file_bytes } else { 0 }
}

/// Where threads may help to warm a size: for a file of a few pages they would take longer than its pages.
fn helpers(env: &Env, file_bytes: u64) -> Vec<u32> {
    if spot_of(file_bytes) > 0 { Vec::new() } else { env.populating_cpus() }
}

/// What a poke asks of the device before it is over; what the page cache took is flushed later.
fn asked_of(path: Access) -> Option<Asked> {
    match path {
        COLD => Some(Asked::One(Direction::Read)),
        DIRECT => Some(Asked::ReadThenWrite),
        _ => None,
    }
}

fn asked(point: &Point) -> (u64, Access) {
    (point.file_bytes.unwrap_or(0), Access::of(point))
}

impl<'env> Poking<'env> {
    pub(super) fn new(env: &'env Env, group: &[Planned]) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("simulated time does not pass on a disk".to_owned()))?;
        let mut spots = BTreeMap::new();
        let mut longest = PAGE_BYTES;
        for planned in group {
            let (size, _) = asked(&planned.point);
            if size == 0 || spots.contains_key(&spot_of(size)) {
                continue;
            }
            let target = if SMALL.contains(&size) {
                let place = env.disk.place().map_err(refused)?;
                let seed = env.seed(SEEDS + size);
                let test = TestFile::lay_out(&place, env.disk.budget(), pages(size) * PAGE_BYTES, seed);
                Target::of(Arc::new(test.map_err(refused)?))
            } else {
                Target::open(env)?
            };
            let spot = Spot::new(target)?;
            longest = longest.max(spot.block_bytes);
            spots.insert(spot_of(size), spot);
        }
        let longest = usize::try_from(longest.next_power_of_two()).unwrap_or(usize::MAX);
        Ok(Self {
            env,
            stamps,
            rng: Rng::new(env.seed(SEEDS)),
            spots,
            buffer: Buffer::new(longest, longest),
            log: Vec::new(),
            held: Vec::new(),
            found: BTreeMap::new(),
            selected: Point::default(),
            #[cfg(test)]
            fault: None,
        })
    }

    #[cfg(test)]
    pub(super) fn is_told_what_is_fetched() -> bool {
        fetched_bytes().is_some()
    }

    /// What the page cache holds of the selected point's file, bytes.
    #[cfg(test)]
    pub(super) fn resident_bytes(&self) -> u64 {
        let (size, _) = asked(&self.selected);
        latlab_storage::residency(&self.spots[&spot_of(size)].file).expect("asked").resident_bytes
    }

    #[cfg(test)]
    pub(super) fn places_of_a_round(&mut self, count: u64) -> Vec<u64> {
        let size = self.selected.file_bytes.expect("selected");
        let found = self.found.get_mut(&self.selected).expect("selected");
        found.order(size, count, &mut self.rng);
        (0..count).map(|_| found.places.next()).collect()
    }

    #[cfg(test)]
    pub(super) fn plant(&mut self, fault: Fault) {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        self.fault = Some(fault);
        if fault != Fault::Mapped {
            return;
        }
        for spot in self.spots.values() {
            let bytes = usize::try_from(spot.target.test.bytes).expect("small");
            let nowhere = std::ptr::null_mut();
            let flags = MapFlags::SHARED | MapFlags::POPULATE;
            // SAFETY: a new mapping at an address of the kernel's choice; a test's, it stays until the end of the process.
            unsafe { mmap(nowhere, bytes, ProtFlags::READ, flags, &spot.file, 0) }.expect("mapped");
        }
    }

    /// So many pokes, one after the other.
    fn poke(&mut self, block: &mut Block, found: &mut Found, count: u64) -> Result<(), ProbeError> {
        let (size, path) = asked(&self.selected);
        let spot = self.spots.get(&spot_of(size)).ok_or_else(not_made)?;
        let contents = spot.target.contents();
        let direct = if path == DIRECT { spot.direct.as_ref().ok() } else { None };
        let length = usize::try_from(spot.block_bytes).unwrap_or(usize::MAX);
        for _ in 0..count {
            let page = match path {
                // Any byte of the file, also one of the same page again.
                WARM => 0,
                _ => found.places.next(),
            };
            let reach = if path == WARM { size } else { PAGE_BYTES.min(size - page) };
            let at = page + self.rng.below(usize::try_from(reach).unwrap_or(usize::MAX)) as u64;
            let (begin, between, end);
            if let Some(file) = direct {
                let base = at / spot.block_bytes * spot.block_bytes;
                let bytes = &mut self.buffer.bytes_mut()[..length];
                begin = self.stamps.begin();
                let sought = seek(file, SeekFrom::Start(base));
                let got = read(file, &mut *bytes);
                between = self.stamps.end();
                #[cfg(test)]
                if self.fault == Some(Fault::OtherBytes) {
                    bytes[2_000] ^= 1;
                }
                let put = pwrite(file, &*bytes, base);
                end = self.stamps.end();
                sought.map_err(system("seeking"))?;
                moved(got, length)?;
                moved(put, length)?;
                found.evidence.look(contents, base, bytes);
                self.log.push((at, 0));
            } else {
                let mut byte = [0];
                begin = self.stamps.begin();
                let sought = seek(&spot.file, SeekFrom::Start(at));
                let got = read(&spot.file, &mut byte);
                between = self.stamps.end();
                let was = byte[0];
                #[cfg(test)]
                if self.fault == Some(Fault::OtherBytes) {
                    byte[0] ^= 1;
                }
                let put = pwrite(&spot.file, &byte, at);
                end = self.stamps.end();
                sought.map_err(system("seeking"))?;
                moved(got, 1)?;
                moved(put, 1)?;
                self.log.push((at, was));
            }
            if path == WARM {
                self.held.push([begin, between, end]);
            } else {
                found.keep(block, [begin, between, end]);
            }
        }
        Ok(())
    }

    /// Keeps the warm pokes that are held, unless more of them than may be were answered by storage: then brings back what the kernel took.
    fn settle(
        &mut self,
        block: &mut Block,
        found: &mut Found,
        before: Option<u64>,
    ) -> Result<(), ProbeError> {
        let fetched = before.zip(fetched_bytes()).map(|(then, now)| now.saturating_sub(then));
        let pokes = self.held.len() as u64;
        if fetched.unwrap_or(0) <= pokes / FETCHED * PAGE_BYTES {
            for stamps in self.held.drain(..) {
                found.keep(block, stamps);
            }
            if let Some(bytes) = fetched {
                *found.fetched.get_or_insert(0) += bytes;
            }
            return Ok(());
        }
        self.held.clear();
        found.thrown += pokes;
        found.lost += fetched.unwrap_or(0);
        let (size, _) = asked(&self.selected);
        let spot = self.spots.get_mut(&spot_of(size)).ok_or_else(not_made)?;
        found.missing = found.missing.max(length_of(&missing(&spot.file, size).map_err(refused)?));
        spot.warm(size, &helpers(self.env, size))
    }

    fn take(&mut self, block: &mut Block, found: &mut Found) -> Result<(), ProbeError> {
        let point = self.selected.clone();
        let (size, path) = asked(&point);
        let profile = self.env.settings.profile;
        let bytes = written(profile, size, path);
        let spot = self.spots.get_mut(&spot_of(size)).ok_or_else(not_made)?;
        let bytes = bytes / PAGE_BYTES * if path == DIRECT { spot.block_bytes } else { PAGE_BYTES };
        self.env.disk.budget().spend(bytes).map_err(refused)?;
        found.written += bytes;
        self.log.clear();
        let mut left = pokes(profile, size, path);
        self.log.reserve(usize::try_from(left).unwrap_or(0));
        let portion = left.div_ceil(PORTIONS);
        let kept = found.pokes;
        while left > 0 {
            let count = match path {
                COLD => left.min(pages(size)),
                WARM => left.min(portion),
                _ => left,
            };
            if path == COLD {
                #[cfg(test)]
                let skipped = self.fault == Some(Fault::NotEvicted);
                #[cfg(not(test))]
                let skipped = false;
                let spot = self.spots.get_mut(&spot_of(size)).ok_or_else(not_made)?;
                if !skipped {
                    // Also what an earlier round dirtied is flushed by it.
                    spot.warm_bytes = 0;
                    found.evidence.chilled(spot.target.chill()?);
                }
            }
            if path != WARM {
                found.order(size, count, &mut self.rng);
            }
            let target = self.spots.get(&spot_of(size)).ok_or_else(not_made)?.target.clone();
            #[cfg(test)]
            self.take_back(&target);
            found.evidence.begin(&target, path);
            let before = fetched_bytes();
            self.poke(block, found, count)?;
            found.evidence.end(&target, Direction::Read, count * PAGE_BYTES);
            if path == WARM {
                self.settle(block, found, before)?;
            }
            left -= count;
        }
        if found.pokes == kept {
            return Err(ProbeError::Proof(found.taken_back(size)));
        }
        Ok(())
    }

    #[cfg(test)]
    fn take_back(&mut self, target: &Target) {
        if matches!(self.fault, Some(Fault::TakenBackOnce | Fault::TakenBack)) {
            target.test.evict().expect("evicted");
        }
        self.fault = self.fault.filter(|fault| *fault != Fault::TakenBackOnce);
    }

    /// Flushes, untimed, and looks at what was read and at what is there now.
    fn look(&mut self, found: &mut Found) -> Result<(), ProbeError> {
        let (size, path) = asked(&self.selected);
        let spot = self.spots.get(&spot_of(size)).ok_or_else(not_made)?;
        let Some(contents) = spot.target.contents() else {
            return Ok(());
        };
        if path != DIRECT {
            fsync(&spot.file).map_err(system("flushing the poked pages"))?;
            let step = if path == WARM { COMPARED } else { 1 };
            for (at, byte) in self.log.iter().step_by(step) {
                found.evidence.look(Some(contents), *at, &[*byte]);
            }
        }
        let length = usize::try_from(spot.block_bytes).unwrap_or(usize::MAX);
        let step = (self.log.len() / WHOLE).max(1);
        for (at, _) in self.log.iter().step_by(step) {
            let base = at / spot.block_bytes * spot.block_bytes;
            let bytes = &mut self.buffer.bytes_mut()[..length];
            let file = spot.direct.as_ref().unwrap_or(&spot.file);
            pread(file, &mut *bytes, base).map_err(system("reading back what was poked"))?;
            found.compared += 1;
            if let Err(text) = contents.verify(base, bytes) {
                found.changed.get_or_insert(text);
            }
        }
        Ok(())
    }
}

/// From storage by this thread: what others of the process read is no poke.
fn fetched_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok())
}

fn not_made() -> ProbeError {
    ProbeError::Other("the file was not made".to_owned())
}

fn moved(found: rustix::io::Result<usize>, wanted: usize) -> Result<(), ProbeError> {
    match found.map_err(system("poking"))? {
        bytes if bytes == wanted => Ok(()),
        bytes => Err(ProbeError::Proof(format!("a poke moved {bytes} bytes and not {wanted}"))),
    }
}

fn system(what: &str) -> impl FnOnce(Errno) -> ProbeError {
    let what = what.to_owned();
    move |errno| ProbeError::System { what, source: errno.into() }
}

/// The poke that touches nothing.
struct Nothing;

impl Kernel for Nothing {
    type Arg = u64;

    #[inline]
    fn arg(&mut self) -> u64 {
        0
    }

    #[inline]
    fn op(&mut self, at: u64) -> u64 {
        at
    }
}

impl AnySession for Poking<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = point.clone();
        let (size, path) = asked(point);
        if size == 0 {
            return Ok(());
        }
        let spot = self.spots.get_mut(&spot_of(size)).ok_or_else(not_made)?;
        match path {
            WARM => spot.warm(size, &helpers(self.env, size))?,
            DIRECT => {
                if let Err(reason) = &spot.direct {
                    return Err(ProbeError::Other(format!("no direct I/O: {reason}")));
                }
                // A page in the cache would have to be flushed and dropped by the transfer.
                spot.warm_bytes = 0;
                spot.target.chill()?;
            }
            _ => {}
        }
        if !self.found.contains_key(point) {
            let seed = self.rng.next_u64();
            let found = Found {
                evidence: Evidence::default(),
                places: Places::random(PAGE_BYTES, pages(size), seed),
                placed: 0,
                pokes: 0,
                written: 0,
                read_ns: Vec::new(),
                write_ns: Vec::new(),
                whole_ns: Vec::new(),
                fetched: None,
                thrown: 0,
                lost: 0,
                missing: 0,
                compared: 0,
                changed: None,
            };
            self.found.insert(point.clone(), found);
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let (size, path) = asked(&self.selected);
        if size == 0 {
            block.each(&mut Nothing);
            return Ok(());
        }
        if path == WARM {
            block.set_tail_threshold_ns(WARM_TAIL_NS);
        } else {
            block.set_waits();
            block.set_tail_threshold_ns(DEVICE_TAIL_NS);
        }
        let mut found = self.found.remove(&self.selected).ok_or_else(not_made)?;
        let done = self.take(block, &mut found).and_then(|()| self.look(&mut found));
        self.found.insert(self.selected.clone(), found);
        done
    }

    fn proof(&mut self, point: &Point, _: &latlab_harness::Sampled) -> Proof {
        let (size, path) = asked(point);
        let work = |bytes| Work { bytes, ..Work::default() };
        if size == 0 {
            return Proof {
                checks: vec![Check {
                    name: "nothing to read or write".to_owned(),
                    ok: true,
                    detail: "a file of 0 bytes: no system call is made".to_owned(),
                }],
                work: work(0),
                flags: vec![
                    "the experiment's zero: the instrument alone, without any input or output".to_owned(),
                ],
                ..Proof::default()
            };
        }
        let (Some(found), Some(spot)) = (self.found.get(point), self.spots.get(&spot_of(size))) else {
            return Proof::default();
        };
        let median = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            (!sorted.is_empty()).then(|| latlab_stats::quantile(&sorted, 0.5))
        };
        let mut checks = found.evidence.checks(&spot.target, path, Direction::Read);
        checks.push(found.unchanged());
        if path == WARM {
            checks.push(found.nothing_fetched());
        } else {
            checks.push(answered_by_a_device(median(&found.whole_ns).unwrap_or(0.0)));
        }
        let nominal = wanted(self.env).contains(&size) || [LARGE, QUICK_LARGEST].contains(&size);
        let mut flags = Vec::new();
        if spot_of(size) == 0 && !nominal {
            flags.push(format!(
                "poked into {} of the test file: what there is of it, or what may be kept in memory",
                binary_size(size)
            ));
        }
        if found.thrown > 0 {
            flags.push(found.taken_back(size));
        }
        Proof {
            checks,
            work: work(found.pokes * 2),
            engine: Some("psync".to_owned()),
            flags,
            findings: Some(json!({
                "pokes": found.pokes,
                "read_p50_ns": median(&found.read_ns),
                "write_p50_ns": median(&found.write_ns),
                "written_bytes": found.written,
                "device_time": asked_of(path).map(|asked| {
                    let whole_ns = found.whole_ns.iter().sum();
                    found.evidence.device_time(asked, found.pokes, whole_ns)
                }),
            })),
            ..Proof::default()
        }
    }
}

impl Found {
    /// A poke that counts.
    fn keep(&mut self, block: &mut Block, [begin, between, end]: [u64; 3]) {
        block.span(begin, end);
        block.channel("read", begin, between);
        block.channel("write", between, end);
        self.read_ns.push(block.span_ns(begin, between));
        self.write_ns.push(block.span_ns(between, end));
        self.whole_ns.push(block.span_ns(begin, end));
        self.pokes += 1;
    }

    /// Why warm pokes do not count.
    fn taken_back(&self, file_bytes: u64) -> String {
        format!(
            "{} of {} warm pokes do not count: the kernel had taken pages of the file back, {} bytes were fetched during them (/proc/thread-self/io), and of {} \
             bytes up to {} were missing right after (mincore); they were brought back before the next pokes",
            self.thrown,
            self.thrown + self.pokes,
            self.lost,
            file_bytes,
            self.missing
        )
    }

    /// Before a round of so many pokes: no page twice in it, and the rest of one order and the begin of the next would share some.
    fn order(&mut self, file_bytes: u64, count: u64, rng: &mut Rng) {
        if self.placed + count > pages(file_bytes) {
            self.places = Places::random(PAGE_BYTES, pages(file_bytes), rng.next_u64());
            self.placed = 0;
        }
        self.placed += count;
    }

    fn unchanged(&self) -> Check {
        Check {
            name: "contents unchanged".to_owned(),
            ok: self.compared > 0 && self.changed.is_none(),
            detail: self.changed.clone().unwrap_or_else(|| {
                format!("{} poked blocks were read back whole and are as they were laid out", self.compared)
            }),
        }
    }

    fn nothing_fetched(&self) -> Check {
        let detail = match self.fetched {
            Some(bytes) => format!(
                "{bytes} bytes fetched from storage during {} warm pokes (/proc/thread-self/io)",
                self.pokes
            ),
            None => "this kernel does not count what is fetched".to_owned(),
        };
        Check {
            name: "answered by the page cache".to_owned(),
            ok: self.pokes > 0 && self.fetched.unwrap_or(0) <= self.pokes / FETCHED * PAGE_BYTES,
            detail,
        }
    }
}
