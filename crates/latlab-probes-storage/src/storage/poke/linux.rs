//! Linux: pokes into the files of the directory that is measured.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use latlab_harness::{self as harness, Block, Env, Kernel, ProbeError, Proof, Stamps, pin_this_thread};
use latlab_probes_shared::Result;
use latlab_record::{Check, Work, binary_size};
use latlab_stats::rng::Rng;
use latlab_storage::{Buffer, Direction, ProcessCounters, TestFile, missing, open_again, open_direct};
use rustix::fs::{Advice, OFlags, SeekFrom, fadvise, fsync, seek};
use rustix::io::{Errno, pread, pwrite, read};

use super::{Details, LARGE, PAGE_BYTES, Poke, Pokes, QUICK_LARGEST, SMALL, pages, pokes, wanted, written};
use crate::disk::{
    self, Access, Asked, COLD, DIRECT, Places, Target, Verified, WARM, answered_by_a_device, check, quantile,
    stamps, system,
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
    fn new(target: Target) -> Result<Self> {
        let file =
            open_again(&target.test.file, OFlags::RDWR).map_err(system("opening a file to poke into"))?;
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
    fn warm(&mut self, bytes: u64, helpers: &[u32]) -> Result<()> {
        if self.warm_bytes >= bytes && self.bring_back(bytes)? < bytes / 2 {
            return Ok(());
        }
        // What others left of it may lie there in large pieces. What somebody keeps mapped stays, and is warm
        // too.
        self.target.test.evict()?;
        let part = bytes.div_ceil(helpers.len() as u64 + 1).next_multiple_of(PAGE_BYTES);
        let read = |nth: u64| read_pages(&self.file, (nth * part).min(bytes)..((nth + 1) * part).min(bytes));
        std::thread::scope(|scope| {
            let help = |(nth, cpu): (u64, &u32)| {
                let (read, cpu) = (&read, *cpu);
                scope.spawn(move || {
                    pin_this_thread(cpu);
                    read(nth)
                })
            };
            let others: Vec<_> = (1..).zip(helpers).map(help).collect();
            let failed = |_| Err(ProbeError::Other("a thread that read a file failed".to_owned()));
            others.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).fold(read(0), Result::and)
        })?;
        self.warm_bytes = bytes;
        Ok(())
    }

    /// Pages that the kernel took back since they were warmed (it does that by itself where memory is
    /// watched, DAMON) are read again, when they are fewer than half; how many bytes were missing.
    fn bring_back(&self, bytes: u64) -> Result<u64> {
        let gone = missing(&self.file, bytes)?;
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

/// Through a descriptor without read-ahead, which brings single pages: to write one byte of a piece of 2 MiB,
/// ext4 looks at all of its blocks.
fn read_pages(file: &OwnedFd, range: std::ops::Range<u64>) -> Result<()> {
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
#[derive(Default)]
pub struct Evidence {
    disk: disk::Evidence,
    /// The order of the pages, and how many of its places were given. Warm pokes have none: any byte of the
    /// file is as good.
    places: Option<(Places, u64)>,
    pokes: u64,
    written: u64,
    read_ns: Vec<f64>,
    write_ns: Vec<f64>,
    whole_ns: Vec<f64>,
    /// By the kernel, for warm pokes that count.
    fetched: Option<u64>,
    /// Warm pokes that do not count.
    thrown: u64,
    /// Bytes that were fetched during these, and those that were missing right after a portion of them, at
    /// most.
    lost: u64,
    missing: u64,
    /// Blocks compared whole.
    compared: Verified,
}

/// What tests plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody evicts.
    NotEvicted,
    /// Other bytes are written back than were read.
    OtherBytes,
    /// The kernel takes the file's pages back before the first portion of a block, or before each.
    TakenBackOnce,
    TakenBack,
}

/// Files to poke into.
pub struct Session<'env> {
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
    #[cfg(test)]
    pub(super) fault: Option<Fault>,
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

pub(super) fn open<'env>(env: &'env Env, group: &[Pokes]) -> Result<Session<'env>> {
    let stamps = stamps(env)?;
    let mut spots = BTreeMap::new();
    let mut longest = PAGE_BYTES;
    for size in group.iter().map(|point| point.file_bytes) {
        if size == 0 || spots.contains_key(&spot_of(size)) {
            continue;
        }
        let target = if SMALL.contains(&size) {
            let place = env.disk.place()?;
            let seed = env.seed(SEEDS + size);
            let test = TestFile::lay_out(&place, env.disk.budget(), pages(size) * PAGE_BYTES, seed);
            Target::of(Arc::new(test?))
        } else {
            Target::open(env)?
        };
        let spot = Spot::new(target)?;
        longest = longest.max(spot.block_bytes);
        spots.insert(spot_of(size), spot);
    }
    let longest = usize::try_from(longest.next_power_of_two()).unwrap_or(usize::MAX);
    Ok(Session {
        env,
        stamps,
        rng: Rng::new(env.seed(SEEDS)),
        spots,
        buffer: Buffer::new(longest, longest),
        log: Vec::new(),
        held: Vec::new(),
        #[cfg(test)]
        fault: None,
    })
}

/// The file that serves a size.
fn at(spots: &mut BTreeMap<u64, Spot>, file_bytes: u64) -> Result<&mut Spot> {
    let spot = spots.get_mut(&spot_of(file_bytes));
    spot.ok_or_else(|| ProbeError::Other("the file was not made".to_owned()))
}

impl Session<'_> {
    /// The descriptor of a size's file.
    #[cfg(test)]
    pub(super) fn file(&self, file_bytes: u64) -> &OwnedFd {
        &self.spots[&spot_of(file_bytes)].file
    }

    fn poke(
        &mut self,
        &Pokes { file_bytes: size, path, .. }: &Pokes,
        found: &mut Evidence,
        block: &mut Block,
        count: u64,
    ) -> Result<()> {
        let spot = at(&mut self.spots, size)?;
        let contents = spot.target.test.contents;
        // Past the page cache the whole block that holds the byte.
        let (file, align) = match &spot.direct {
            Ok(direct) if path == DIRECT => (direct, spot.block_bytes),
            _ => (&spot.file, 1),
        };
        let length = usize::try_from(align).unwrap_or(usize::MAX);
        let bytes = &mut self.buffer.bytes_mut()[..length];
        for _ in 0..count {
            let page = found.next_page();
            let reach = if path == WARM { size } else { PAGE_BYTES.min(size - page) };
            let at = page + self.rng.below(usize::try_from(reach).unwrap_or(usize::MAX)) as u64;
            let base = at / align * align;
            let begin = self.stamps.begin();
            let sought = seek(file, SeekFrom::Start(base));
            let got = read(file, &mut *bytes);
            let between = self.stamps.end();
            let was = bytes[0];
            #[cfg(test)]
            if self.fault == Some(Fault::OtherBytes) {
                bytes[length / 2] ^= 1;
            }
            let put = pwrite(file, &*bytes, base);
            let end = self.stamps.end();
            sought.map_err(system("seeking"))?;
            moved(got, length)?;
            moved(put, length)?;
            if path == DIRECT {
                found.disk.verify(contents, base, bytes);
            }
            self.log.push((at, was));
            if path == WARM {
                self.held.push([begin, between, end]);
            } else {
                found.keep(block, [begin, between, end]);
            }
        }
        Ok(())
    }

    /// Keeps the warm pokes that are held, unless more of them than may be were answered by storage: then
    /// brings back what the kernel took.
    fn settle(
        &mut self,
        size: u64,
        found: &mut Evidence,
        block: &mut Block,
        before: Option<ProcessCounters>,
    ) -> Result<()> {
        let fetched = ProcessCounters::fetched_since(before);
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
        let spot = at(&mut self.spots, size)?;
        found.missing = found.missing.max(length_of(&missing(&spot.file, size)?));
        spot.warm(size, &helpers(self.env, size))
    }

    fn take(&mut self, point: &Pokes, found: &mut Evidence, block: &mut Block) -> Result<()> {
        let Pokes { file_bytes: size, path, .. } = *point;
        let profile = self.env.settings.profile;
        let spot = at(&mut self.spots, size)?;
        let target = spot.target.clone();
        let each = if path == DIRECT { spot.block_bytes } else { PAGE_BYTES };
        if path != WARM {
            // Also what an earlier round dirtied is flushed by its eviction.
            spot.warm_bytes = 0;
        }
        let bytes = written(profile, size, path) / PAGE_BYTES * each;
        self.env.disk.budget().spend(bytes)?;
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
            #[cfg(test)]
            let skipped = self.plant(&target);
            #[cfg(not(test))]
            let skipped = false;
            if path == COLD && !skipped {
                found.disk.chilled(target.chill()?);
            }
            if path != WARM {
                found.order(size, count, &mut self.rng);
            }
            found.disk.begin(&target, path);
            let before = ProcessCounters::of_this_thread();
            self.poke(point, found, block, count)?;
            found.disk.end(&target, Direction::Read, count * PAGE_BYTES);
            if path == WARM {
                self.settle(size, found, block, before)?;
            }
            left -= count;
        }
        if found.pokes == kept {
            return Err(ProbeError::Proof(found.taken_back(size)));
        }
        Ok(())
    }

    /// Whether nobody evicts; has the kernel take pages back.
    #[cfg(test)]
    fn plant(&mut self, target: &Target) -> bool {
        if matches!(self.fault, Some(Fault::TakenBackOnce | Fault::TakenBack)) {
            target.test.evict().expect("evicted");
        }
        self.fault = self.fault.filter(|fault| *fault != Fault::TakenBackOnce);
        self.fault == Some(Fault::NotEvicted)
    }

    /// Flushes, untimed, and verifies what was read and what is there now.
    fn verify(&mut self, &Pokes { file_bytes, path, .. }: &Pokes, found: &mut Evidence) -> Result<()> {
        let spot = at(&mut self.spots, file_bytes)?;
        let Some(contents) = spot.target.test.contents else { return Ok(()) };
        if path != DIRECT {
            fsync(&spot.file).map_err(system("flushing the poked pages"))?;
            let step = if path == WARM { COMPARED } else { 1 };
            for (at, byte) in self.log.iter().step_by(step) {
                found.disk.verify(Some(contents), *at, &[*byte]);
            }
        }
        let length = usize::try_from(spot.block_bytes).unwrap_or(usize::MAX);
        let step = (self.log.len() / WHOLE).max(1);
        for (at, _) in self.log.iter().step_by(step) {
            let base = at / spot.block_bytes * spot.block_bytes;
            let bytes = &mut self.buffer.bytes_mut()[..length];
            let file = spot.direct.as_ref().unwrap_or(&spot.file);
            pread(file, &mut *bytes, base).map_err(system("reading back what was poked"))?;
            found.compared.note(contents.verify(base, bytes));
        }
        Ok(())
    }
}

fn moved(found: rustix::io::Result<usize>, wanted: usize) -> Result<()> {
    match found.map_err(system("poking"))? {
        bytes if bytes == wanted => Ok(()),
        bytes => Err(ProbeError::Proof(format!("a poke moved {bytes} bytes instead of {wanted}"))),
    }
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

impl harness::Session<Poke> for Session<'_> {
    fn select(&mut self, point: &Pokes) -> Result<()> {
        let size = point.file_bytes;
        if size == 0 {
            return Ok(());
        }
        let spot = at(&mut self.spots, size)?;
        if point.path == WARM {
            spot.warm(size, &helpers(self.env, size))?;
        } else if point.path == DIRECT {
            if let Err(reason) = &spot.direct {
                return Err(ProbeError::Other(format!("no direct I/O: {reason}")));
            }
            // A page in the cache would have to be flushed and dropped by the transfer.
            spot.warm_bytes = 0;
            spot.target.chill()?;
        }
        Ok(())
    }

    fn block(&mut self, point: &Pokes, found: &mut Evidence, block: &mut Block) -> Result<()> {
        if point.file_bytes == 0 {
            block.each(&mut Nothing);
            return Ok(());
        }
        if point.path == WARM {
            block.set_tail_threshold_ns(WARM_TAIL_NS);
        } else {
            block.set_waits();
            block.set_tail_threshold_ns(DEVICE_TAIL_NS);
        }
        self.take(point, found, block)?;
        self.verify(point, found)
    }

    fn proof(&mut self, &Pokes { file_bytes: size, path, .. }: &Pokes, found: &Evidence) -> Proof<Details> {
        if size == 0 {
            let detail = "a file of 0 bytes: no system call is made";
            let nothing = check("nothing to read or write", true, detail);
            let flag = "the experiment's zero: timer overhead alone, without input or output";
            return Proof { flags: vec![flag.to_owned()], ..Proof::of(vec![nothing]) };
        }
        let Some(spot) = self.spots.get(&spot_of(size)) else { return Proof::default() };
        let mut checks = found.disk.checks(&spot.target, path, Direction::Read);
        let held =
            format!("{} poked blocks were read back whole and are as they were laid out", found.compared.all);
        checks.push(found.compared.check("contents unchanged", held));
        if path == WARM {
            checks.push(found.nothing_fetched());
        } else {
            checks.push(answered_by_a_device(quantile(&found.whole_ns, 0.5).unwrap_or(0.0)));
        }
        let nominal = wanted(self.env).contains(&size) || [LARGE, QUICK_LARGEST].contains(&size);
        let part = |size| {
            let size = binary_size(size);
            format!("poked into {size} of the test file: what there is of it, or what may be kept in memory")
        };
        let mut flags: Vec<_> = (spot_of(size) == 0 && !nominal).then(|| part(size)).into_iter().collect();
        flags.extend((found.thrown > 0).then(|| found.taken_back(size)));
        let whole_ns = found.whole_ns.iter().sum();
        let details = Details {
            pokes: found.pokes,
            read_p50_ns: quantile(&found.read_ns, 0.5),
            write_p50_ns: quantile(&found.write_ns, 0.5),
            written_bytes: found.written,
            device_time: asked_of(path).map(|asked| found.disk.device.time(asked, found.pokes, whole_ns)),
        };
        let work = Work { bytes: found.pokes * 2, ..Work::default() };
        Proof { work, flags, ..Proof::of(checks).with(details).by("psync") }
    }
}

impl Evidence {
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
        let Self { thrown, pokes, lost, missing, .. } = self;
        let all = thrown + pokes;
        format!(
            "{thrown} of {all} warm pokes do not count: the kernel had reclaimed pages of the file, {lost} \
                bytes were fetched during them (/proc/thread-self/io), and of {file_bytes} \
             bytes up to {missing} were missing right after (mincore); they were brought back before the \
                next pokes"
        )
    }

    /// Before a round of so many pokes: no page twice in it, and the rest of one order and the begin of the
    /// next would share some.
    pub(super) fn order(&mut self, file_bytes: u64, count: u64, rng: &mut Rng) {
        let pages = pages(file_bytes);
        match &mut self.places {
            Some((_, given)) if *given + count <= pages => *given += count,
            places => *places = Some((Places::random(PAGE_BYTES, pages, rng.next_u64()), count)),
        }
    }

    /// Where the next page of the order begins.
    pub(super) fn next_page(&mut self) -> u64 {
        self.places.as_mut().map_or(0, |(places, _)| places.next())
    }

    fn nothing_fetched(&self) -> Check {
        let pokes = self.pokes;
        let reported = |bytes| {
            format!("{bytes} bytes fetched from storage during {pokes} warm pokes (/proc/thread-self/io)")
        };
        let detail = self.fetched.map_or("this kernel does not count what is fetched".to_owned(), reported);
        let is_little = self.fetched.unwrap_or(0) <= pokes / FETCHED * PAGE_BYTES;
        check("answered by the page cache", pokes > 0 && is_little, detail)
    }
}
