//! Linux: mappings, getrusage(2), mincore(2).

use std::rc::Rc;

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::walk::to_usize;
use latlab_record::Histogram;
use latlab_stats::modes;
use latlab_stats::rng::Rng;
use rustix::mm::Advice;

use super::{AROUND, Distribution, Fault, HUGE, Mode, Operation, Sizes, Touch, likely, sizes};
use crate::region::{self, Faults, Region, Scratch, Trust, faults_of_this_thread};

/// Pages touched of a file from its device in one block.
const MAJOR_TOUCHES: usize = 48;
/// A block of touches that wait for a device ends after this, with at least so many touches: a disk that
/// turns takes 10 ms for one.
const LONGEST_NS: f64 = 60e6;
const LEAST_TOUCHES: usize = 4;
/// Mappings of single pages in one block; each takes two of the 65,530 that a process may have.
const SINGLE_PAGES: usize = 512;
/// Stray faults of the measuring thread itself are at most one in so many touches.
const STRAYS: u64 = 64;
/// Fewer further faults than one in so many touches of 64 KiB are not the mapping's.
const STRAY: u64 = 8;
/// Times that a file is mapped anew in one block of faults that map 64 KiB each: 128 of them fit into a file.
const AROUND_ROUNDS: usize = 4;

pub(super) fn supports() -> Support {
    let trust = Trust::of_this_system();
    match trust.loss() {
        None => Support::Yes,
        Some(loss) if trust.shows_faults() => Support::Degraded(loss),
        Some(loss) => Support::No(loss),
    }
}

pub(super) fn open(env: &Env) -> Result<Session<'_>> {
    Session::new(env, sizes(env))
}

/// How a page is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// What was seen at one point so far.
#[derive(Default)]
pub struct Evidence {
    histogram: Histogram,
    rounds: u64,
    touches: u64,
    /// Rounds of touches with exactly one fault each.
    exact: u64,
    /// Touches that were no fault.
    without_fault: u64,
    /// Faults beyond one a touch.
    further_faults: u64,
    /// Pages that had memory before they were touched, or had none afterwards.
    there_before: u64,
    missing_after: u64,
    /// Pages that a fault should have mapped along and did not.
    not_mapped_along: u64,
    wrong_contents: u64,
    /// Huge pages asked for and obtained.
    huge: Option<(u64, u64)>,
}

impl Evidence {
    /// `faults` of the kind that the touches should have made.
    fn count(&mut self, touches: usize, faults: u64) {
        let touches = touches as u64;
        self.rounds += 1;
        self.touches += touches;
        self.exact += u64::from(faults == touches);
        self.without_fault += touches.saturating_sub(faults);
        self.further_faults += faults.saturating_sub(touches);
    }
}

/// What touches are made with, and the files that are touched.
pub struct Session<'env> {
    env: &'env Env,
    sizes: Sizes,
    stamps: Stamps,
    trust: Trust,
    /// Touched before anything is measured.
    spans: Vec<(u64, u64)>,
    /// Where the touches of a round go, in bytes from the base.
    offsets: Vec<usize>,
    rng: Rng,
    turn: u64,
    original: Option<Rc<Scratch>>,
    minor_file: Option<Rc<Scratch>>,
    /// Why the file of minor faults lies in memory, where it does.
    no_disk: Option<String>,
    major_file: Option<Rc<Scratch>>,
    /// A page that a test touches before its time.
    #[cfg(test)]
    pub(super) planted: Option<usize>,
}

/// The file that is kept there, made when it is first needed.
fn file_of(place: &mut Option<Rc<Scratch>>, make: impl FnOnce() -> Result<Scratch>) -> Result<Rc<Scratch>> {
    let file = match place.take() {
        Some(file) => file,
        None => Rc::new(make()?),
    };
    Ok(Rc::clone(place.insert(file)))
}

/// Touches each offset between two stamps. Returns the sum of what was read, how many touches were made
/// before `limit` ticks were over, and the faults that this thread took meanwhile.
#[inline(never)]
fn touch(
    stamps: Stamps,
    region: &Region,
    offsets: &[usize],
    access: Access,
    tag: u64,
    limit: u64,
    spans: &mut [(u64, u64)],
) -> (u64, usize, Faults) {
    let mut sum = 0u64;
    let mut made = 0;
    let before = faults_of_this_thread();
    let first = stamps.begin();
    for (offset, span) in offsets.iter().zip(spans) {
        let begin = stamps.begin();
        // SAFETY: the offsets lie inside the mapping, on pages that may be accessed this way, and are
        // multiples of a page.
        unsafe {
            let word = region.word(*offset);
            match access {
                Access::Read => sum = sum.wrapping_add(word.read_volatile()),
                Access::Write => word.write_volatile(written(tag, *offset)),
            }
        }
        let end = stamps.end();
        *span = (begin, end);
        made += 1;
        if end.saturating_sub(first) > limit && made >= LEAST_TOUCHES {
            break;
        }
    }
    (sum, made, faults_of_this_thread().since(before))
}

/// What a touch writes: another value at each place and in each round.
fn written(tag: u64, offset: usize) -> u64 {
    tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (offset as u64 + 1)
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, sizes: Sizes) -> Result<Self> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("touching pages takes real time".to_owned()))?;
        let most = to_usize(sizes.span / sizes.page).max(to_usize(sizes.huge_pages));
        let mut spans = Vec::with_capacity(most);
        spans.resize(most, (1, 1));
        // The instrument's own pages are touched now, so that its first faults are not counted among those
        // that are measured.
        let trial = Region::anonymous(2 * region::page_bytes(), Pages::Base)?;
        for access in [Access::Read, Access::Write] {
            touch(stamps, &trial, &[0, region::page_bytes()], access, 0, u64::MAX, &mut spans);
        }
        Ok(Self {
            env,
            sizes,
            stamps,
            trust: Trust::of_this_system(),
            spans,
            offsets: Vec::with_capacity(most),
            rng: Rng::new(env.seed(0xFA17)),
            turn: 0,
            original: None,
            minor_file: None,
            no_disk: None,
            major_file: None,
            #[cfg(test)]
            planted: None,
        })
    }

    fn span(&self) -> usize {
        to_usize(self.sizes.span)
    }

    /// One round of touches of
    /// `self.offsets`, into the block and the evidence: reads, where it is said what each offset `holds`, or
    /// writes. `before` is how many pages of the region should have memory, where that is known.
    fn round(
        &mut self,
        evidence: &mut Evidence,
        block: &mut Block,
        region: &Region,
        holds: Option<&dyn Fn(usize) -> u64>,
        before: Option<usize>,
        major: bool,
    ) {
        let access = if holds.is_some() { Access::Read } else { Access::Write };
        #[cfg(test)]
        self.plant(region, access);
        self.turn += 1;
        let there = before.filter(|_| self.trust.residency).and_then(|wanted| {
            let found = region.resident()?;
            Some(found.abs_diff(wanted) as u64)
        });
        let limit = self.env.clock.ticks(LONGEST_NS);
        let (sum, made, faults) =
            touch(self.stamps, region, &self.offsets, access, self.turn, limit, &mut self.spans);
        self.offsets.truncate(made);
        let picoseconds = latlab_harness::Picoseconds::of(&self.env.clock);
        for (begin, end) in &self.spans[..made] {
            block.span(*begin, *end);
            evidence.histogram.record(picoseconds.in_ticks(end.saturating_sub(*begin)));
        }
        let wrong = if let Some(holds) = holds {
            let wanted = self.offsets.iter().map(|offset| holds(*offset)).fold(0, u64::wrapping_add);
            u64::from(sum != wanted)
        } else {
            // SAFETY: inside the mapping, as above.
            let word = |offset: usize| unsafe { region.word(offset).read_volatile() };
            let differs = |offset: &&usize| word(**offset) != written(self.turn, **offset);
            self.offsets.iter().filter(differs).count() as u64
        };
        evidence.count(made, if major { faults.major } else { faults.minor });
        evidence.there_before += there.unwrap_or(0);
        evidence.wrong_contents += wrong;
    }

    /// Touches a page before its time.
    #[cfg(test)]
    fn plant(&mut self, region: &Region, access: Access) {
        if let Some(nth) = self.planted
            && let Some(offset) = self.offsets.get(nth % self.offsets.len().max(1))
        {
            // SAFETY: as in `touch`.
            unsafe {
                let word = region.word(*offset);
                match access {
                    Access::Read => std::hint::black_box(word.read_volatile()),
                    Access::Write => {
                        word.write_volatile(7);
                        7
                    }
                };
            }
        }
    }

    /// After touches of memory: exactly the touched pages have some.
    fn check_residency(&self, evidence: &mut Evidence, region: &Region) {
        let wanted = self.offsets.len();
        if self.trust.residency
            && let Some(found) = region.resident()
        {
            evidence.missing_after += found.abs_diff(wanted) as u64;
        }
    }

    fn every(&mut self, step: usize, bytes: usize) {
        self.offsets.clear();
        self.offsets.extend((0..bytes).step_by(step));
    }

    fn anonymous(&mut self, operation: Operation, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let (span, page) = (self.span(), to_usize(self.sizes.page));
        let region = Region::anonymous(span, Pages::Base)?;
        self.every(page, span);
        let mut before = Some(0);
        match operation {
            Operation::Recycled => {
                region.touch();
                let failed = |error| refused("giving memory back (MADV_DONTNEED)", error);
                region.advise(Advice::LinuxDontNeed).map_err(failed)?;
            }
            Operation::WriteAfterRead => {
                read_all(&region, page);
                // The page of zeros counts as memory.
                before = None;
            }
            _ => {}
        }
        let zeros: &dyn Fn(usize) -> u64 = &|_| 0;
        let holds = (operation == Operation::FirstRead).then_some(zeros);
        self.round(evidence, block, &region, holds, before, false);
        self.check_residency(evidence, &region);
        Ok(())
    }

    fn huge(&mut self, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let count = self.sizes.huge_pages;
        let bytes = to_usize(count * HUGE);
        let region = Region::anonymous(bytes, Pages::Huge)?;
        self.every(to_usize(HUGE), bytes);
        self.round(evidence, block, &region, None, Some(0), false);
        let a_huge_page = to_usize(HUGE / self.sizes.page);
        let obtained = region.resident().map_or(0, |pages| pages / a_huge_page) as u64;
        let trusted = self.trust.residency;
        let (asked, had) = evidence.huge.unwrap_or_default();
        // Where nothing says how large a page is, it counts as not obtained.
        evidence.huge = Some((asked + count, had + if trusted { obtained } else { 0 }));
        Ok(())
    }

    /// A private mapping of a file in memory, read everywhere and then written.
    fn copy(&mut self, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let (span, page) = (self.span(), to_usize(self.sizes.page));
        let original = file_of(&mut self.original, || Scratch::in_memory(self.env, span))?;
        let region = Region::private_file(original.file(), span)?;
        let _refused = region.advise(Advice::LinuxNoHugepage);
        read_all(&region, page);
        self.every(page, span);
        // Whether a page is the file's or its copy, mincore does not say; the count of faults does.
        self.round(evidence, block, &region, None, None, false);
        Ok(())
    }

    fn file_minor(&mut self, around: bool, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let (page, span) = (to_usize(self.sizes.page), self.span());
        let scratch = file_of(&mut self.minor_file, || {
            Scratch::create(self.env, span).or_else(|reason| {
                self.no_disk = Some(format!("degraded: the file lies in memory, because {reason}"));
                Scratch::in_memory(self.env, span)
            })
        })?;
        if scratch.cached()? < span / page {
            scratch.warm()?;
        }
        if around {
            self.with_neighbours(&scratch, evidence, block)
        } else {
            self.one_by_one(&scratch, evidence, block)
        }
    }

    fn one_by_one(&mut self, scratch: &Scratch, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let page = to_usize(self.sizes.page);
        let pages = SINGLE_PAGES.min(scratch.bytes() / page);
        let region = Region::one_by_one(scratch.file(), pages)?;
        self.every(2 * page, region.bytes());
        let holds = |offset| scratch.word(offset / 2);
        self.round(evidence, block, &region, Some(&holds), Some(pages), false);
        Ok(())
    }

    fn with_neighbours(
        &mut self,
        scratch: &Scratch,
        evidence: &mut Evidence,
        block: &mut Block,
    ) -> Result<()> {
        let page = to_usize(self.sizes.page);
        for _ in 0..AROUND_ROUNDS {
            let region = Region::shared_file(scratch.file(), scratch.bytes())?;
            // The kernel maps the aligned 64 KiB of address space around a fault, as far as the mapping
            // reaches.
            let to_border = region.base().align_offset(to_usize(AROUND)).min(scratch.bytes());
            self.every(to_usize(AROUND), scratch.bytes() - to_border);
            for offset in &mut self.offsets {
                *offset += to_border;
            }
            let holds = |offset| scratch.word(offset);
            self.round(evidence, block, &region, Some(&holds), Some(scratch.bytes() / page), false);
            let before = faults_of_this_thread();
            for offset in (to_border..scratch.bytes()).step_by(page) {
                // SAFETY: inside the mapping.
                std::hint::black_box(unsafe { region.base().add(offset).read_volatile() });
            }
            if self.trust.faults {
                evidence.not_mapped_along += faults_of_this_thread().since(before).minor;
            }
        }
        Ok(())
    }

    fn file_major(&mut self, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let page = to_usize(self.sizes.page);
        let span = self.span();
        let scratch = file_of(&mut self.major_file, || {
            let scratch = Scratch::create(self.env, span)?;
            scratch.reads_single_pages()?;
            Ok(scratch)
        })?;
        scratch.evict()?;
        let region = Region::shared_file(scratch.file(), scratch.bytes())?;
        let failed = |error| refused("turning read-ahead off (MADV_RANDOM)", error);
        region.advise(Advice::Random).map_err(failed)?;
        // Without repetition, and never the neighbour of a page that was just read: devices and hosts read
        // ahead too.
        let pages = scratch.bytes() / page;
        let stride = (pages / MAJOR_TOUCHES).max(1);
        self.offsets.clear();
        for slot in 0..MAJOR_TOUCHES.min(pages / stride) {
            self.offsets.push((slot * stride + self.rng.below(stride.div_ceil(2))) * page);
        }
        self.rng.shuffle(&mut self.offsets);
        block.set_waits();
        let holds = |offset| scratch.word(offset);
        self.round(evidence, block, &region, Some(&holds), Some(0), true);
        Ok(())
    }

    fn checks(&self, point: &Touch, evidence: &Evidence) -> Vec<Check> {
        let operation = point.operation;
        let mut checks = Vec::new();
        let mut add = |name: &str, ok, detail| {
            checks.push(Check { name: name.to_owned(), ok, detail });
        };
        if self.trust.faults {
            let kind = if operation == Operation::FileMajor { "major" } else { "minor" };
            // A stray fault of the thread's own could stand in for one that was missed: there are few of
            // them, or most rounds have none.
            let few = evidence.further_faults <= (evidence.touches / STRAYS).max(2);
            let ok = evidence.rounds > 0
                && evidence.without_fault == 0
                && (few || 2 * evidence.exact > evidence.rounds);
            add(
                "one fault a touch",
                ok,
                format!(
                    "{} touches, {} without a {kind} fault, {} further faults; {} of {} rounds exact",
                    evidence.touches,
                    evidence.without_fault,
                    evidence.further_faults,
                    evidence.exact,
                    evidence.rounds
                ),
            );
        }
        if self.trust.residency && !matches!(operation, Operation::WriteAfterRead | Operation::CopyOnWrite) {
            let (name, what) = match operation {
                Operation::FileMinor => ("all of the file in the page cache", "pages were not"),
                Operation::FileMajor => ("none of the file in the page cache", "pages were"),
                _ => ("only what was touched has memory", "pages had memory before their touch"),
            };
            add(
                name,
                evidence.there_before == 0 && evidence.missing_after == 0,
                format!("{} {what}; {} differ afterwards", evidence.there_before, evidence.missing_after),
            );
        }
        if point.size_bytes == AROUND && self.trust.faults && self.sizes.page < AROUND {
            add(
                "a fault maps 64 KiB",
                // Were less mapped at once, each touch would leave one fault or more behind; a stray one of
                // the thread's own is none of that.
                evidence.not_mapped_along * STRAY < evidence.touches,
                format!("{} of the pages around needed a fault of their own", evidence.not_mapped_along),
            );
        }
        if let Some((asked, had)) = evidence.huge {
            add(
                "huge pages obtained",
                asked == had,
                format!("{had} of {asked} touches were given memory for a whole huge page (mincore)"),
            );
        }
        add(
            "contents",
            evidence.touches > 0 && evidence.wrong_contents == 0,
            format!(
                "{} of {} touches read or wrote something else",
                evidence.wrong_contents, evidence.touches
            ),
        );
        checks
    }

    fn modes(&self, point: &Touch, evidence: &Evidence) -> Vec<Mode> {
        let found = modes::modes(&evidence.histogram.occupied(), self.env.clock.facts.quantum_ns);
        let first = found.first().map_or(1.0, |mode| mode.p50_ns);
        let guest = self.env.machine.virtualisation.guest;
        let named = |(nth, times): (usize, modes::Mode)| {
            let above = times.p50_ns / first;
            let likely = likely(point.operation, point.pages, nth, above, times.share, guest);
            Mode { times, likely }
        };
        found.into_iter().enumerate().map(named).collect()
    }
}

/// Reads a word of each page, so that each is mapped.
fn read_all(region: &Region, page: usize) {
    for offset in (0..region.bytes()).step_by(page) {
        // SAFETY: inside the mapping.
        std::hint::black_box(unsafe { region.base().add(offset).read_volatile() });
    }
}

impl latlab_harness::Session<Fault> for Session<'_> {
    fn select(&mut self, point: &Touch) -> Result<()> {
        if point.operation == Operation::Recycled && self.trust.residency && !self.trust.discard {
            return Err(ProbeError::Other("MADV_DONTNEED takes no memory away on this system".to_owned()));
        }
        Ok(())
    }

    fn block(&mut self, point: &Touch, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        match point.operation {
            Operation::FirstWrite if point.pages == Pages::Huge => self.huge(evidence, block),
            Operation::CopyOnWrite => self.copy(evidence, block),
            Operation::FileMinor => self.file_minor(point.size_bytes != self.sizes.page, evidence, block),
            Operation::FileMajor => self.file_major(evidence, block),
            operation => self.anonymous(operation, evidence, block),
        }
    }

    fn proof(&mut self, point: &Touch, evidence: &Evidence) -> Proof<Distribution> {
        let is_minor = point.operation == Operation::FileMinor;
        let distribution = Distribution {
            modes: self.modes(point, evidence),
            touches: evidence.touches,
            faults_counted: self.trust.faults,
        };
        Proof {
            flags: self.no_disk.iter().filter(|_| is_minor).cloned().collect(),
            ..Proof::of(self.checks(point, evidence)).with(distribution)
        }
    }
}
