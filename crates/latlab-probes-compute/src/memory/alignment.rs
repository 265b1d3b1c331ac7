//! `memory.alignment`: what a load or a store costs that does not begin where its size divides the address.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "read and written as unaligned, which is what this probe is about"
)]

use latlab_probes_shared::prelude::*;
use latlab_record::Work;

use crate::no_memory;

use latlab_probes_shared::walk::{Arena, LINE_BYTES, PAGE_BYTES, mmix, to_usize};

#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), path = "alignment/assembly.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "alignment/portable.rs")]
mod accesses;

/// The probe.
pub struct Alignment;

/// Bytes of an access.
const ACCESS: u64 = 8;
/// Bytes over which accesses to lines go round: within every first-level cache (32 KiB at least).
const ROUND_BYTES: u64 = 16 << 10;
/// Places at the end of a page. Their lines share two sets of a cache that is indexed by the offset within a
/// page, and four ways are the fewest met.
const PAGE_ENDS: u64 = 4;
/// One page more, for what crosses the last page's end.
const AREA_BYTES: u64 = (PAGE_ENDS + 1) * PAGE_BYTES;
/// Accesses in one turn of the loops.
const TURN: u64 = 8;
/// What a store adds to the number before: odd, so that no two turns of a block write the same.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

const ALIGNED: u64 = 0;
const LINE_CROSSING: u64 = LINE_BYTES - ACCESS / 2;
const PAGE_CROSSING: u64 = PAGE_BYTES - ACCESS / 2;
const PAGE_END: u64 = PAGE_BYTES - ACCESS;
/// Most important first.
const OFFSETS: [u64; 6] = [ALIGNED, LINE_CROSSING, PAGE_CROSSING, PAGE_END, 4, 1];
/// The quick profile has time for these.
const FIRST_OFFSETS: usize = 3;

/// Accesses of one kind, all at the same place of their lines or pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    operation: Access,
    offset_bytes: u64,
    /// Of an access.
    size_bytes: u64,
    working_set_bytes: u64,
}

impl Place {
    fn new(operation: Access, offset_bytes: u64) -> Self {
        Self { operation, offset_bytes, size_bytes: ACCESS, working_set_bytes: ROUND_BYTES }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Access {
    Load,
    Store,
}

/// What the blocks of a point have proved.
#[derive(Clone, Copy, Default)]
pub struct Evidence {
    blocks: Compared,
    accesses: u64,
}

/// What the accesses of a point have in common.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// The end of what lies within each access.
    crosses: Boundary,
    /// Places before the first one comes again.
    places: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Boundary {
    Line,
    Page,
    Nothing,
}

/// What accesses cost by where they begin.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    load: Costs,
    store: Costs,
}

/// Time of one access.
#[derive(Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
struct Costs {
    aligned_ns: Option<f64>,
    within_line_ns: Option<f64>,
    line_crossing_ns: Option<f64>,
    page_end_ns: Option<f64>,
    page_crossing_ns: Option<f64>,
}

/// How many places the accesses of one offset have before the first one comes again, and their distance: one
/// in each line of [`ROUND_BYTES`], or one at the end of each of [`PAGE_ENDS`] pages.
fn spread(offset: u64) -> (u64, u64) {
    if offset < LINE_BYTES { (ROUND_BYTES / LINE_BYTES, LINE_BYTES) } else { (PAGE_ENDS, PAGE_BYTES) }
}

impl Probe for Alignment {
    type Point = Place;
    type Evidence = Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = Accessing;

    const SPEC: Spec = Spec {
        id: "memory.alignment",
        tier: Tier::Memory,
        title: "aligned and unaligned accesses",
        question: "What does it cost to read or write an unaligned number?",
        method: "Independent 8-byte loads and stores, in assembly, within 16 KiB, which the first-level \
            cache holds. \
An offset below 64 is where each access begins within its line: 0 is aligned, 1 and 4 are not but stay \
within the line, at 60 the access has four bytes in one line and four in the next. \
Each of 256 lines is accessed in sequence, always at the same offset; some CPUs serve two such accesses a \
cycle although they can load three adjacent words. At 4,092 the access has four bytes in one page and four \
in the next; there are four such places, visited in turn, because \
more of them would not fit the two sets of the first-level cache into which the ends and the beginnings of \
all pages fall. Offset 4,088 is its control: the same four places, aligned.

This is throughput: what such accesses cost in a loop that has plenty of them, most of it hidden by overlap \
where they are aligned. \
A load that waits for an unaligned one waits longer than the difference shown here. For the program, a \
store ends when it is in the store buffer; in a long sequence each waits for the one before \
to leave the buffer. That wait is measured.

Pages are of 4 KiB (huge ones are refused), so that a page's end is one. The memory is read before each \
block. Loads are added up and the sum is compared with what the bytes there give; stores write a number \
that changes every eight accesses, and \
after each block every place must hold the last one that was due there. A value is the mean of a window of \
about 20 µs; the loop's own instructions are hidden behind the accesses.",
        method_version: 1,
        convention: "one 8-byte access",
        needs: &["64 KiB of memory"],
        touches: &["memory: 40 KiB"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Place> {
        if let Some(reason) = no_memory(env, env.memory_bytes >= 2 * AREA_BYTES, "64 KiB of memory") {
            return Plan::no(reason);
        }
        let mut points = Vec::new();
        for (nth, offset) in OFFSETS.into_iter().enumerate() {
            let first = nth < FIRST_OFFSETS;
            if !first && env.settings.profile == Profile::Quick {
                continue;
            }
            points.extend([Access::Load, Access::Store].map(|operation| Planned {
                priority: u8::from(!first),
                block_s: 1.5e-3,
                cache_scope: CacheScope::First,
                ..Planned::new(Place::new(operation, offset))
            }));
        }
        Plan::of(points).memory(2 * AREA_BYTES)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Place]) -> Result<Accessing> {
        Accessing::open(env.seed(31))
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let of = |operation| {
            let ns = |offset| Some(result_at(figures, &Place::new(operation, offset))?.p50);
            Costs {
                aligned_ns: ns(ALIGNED),
                within_line_ns: ns(4),
                line_crossing_ns: ns(LINE_CROSSING),
                page_end_ns: ns(PAGE_END),
                page_crossing_ns: ns(PAGE_CROSSING),
            }
        };
        (!figures.is_empty()).then(|| Findings { load: of(Access::Load), store: of(Access::Store) })
    }
}

/// Accesses of one block to one area.
struct Accesses {
    area: *mut u8,
    stores: bool,
    offset: u64,
    /// Made since the block began.
    made: u64,
    /// Of what was loaded.
    sum: u64,
    /// What the first turn stores; another one each block.
    first: u64,
}

impl Accesses {
    fn places(&self) -> u64 {
        spread(self.offset).0
    }

    /// Where the access after `made` others goes.
    fn place(&self, made: u64) -> *mut u8 {
        let (places, distance) = spread(self.offset);
        self.area.wrapping_add(to_usize(made % places * distance + self.offset))
    }

    /// What that access stores.
    fn value(&self, made: u64) -> u64 {
        self.first.wrapping_add((made / TURN).wrapping_mul(STEP))
    }

    /// One access, for what is no whole turn of the loops.
    fn one(&mut self) {
        let place = std::hint::black_box(self.place(self.made)).cast::<u64>();
        // SAFETY: a place of any spread and its 8 bytes lie in the area.
        unsafe {
            if self.stores {
                place.write_unaligned(self.value(self.made));
            } else {
                self.sum = self.sum.wrapping_add(place.read_unaligned());
            }
        }
        self.made += 1;
    }

    fn turns(&mut self, turns: u64) {
        let begin = self.area.wrapping_add(to_usize(self.offset));
        let first = to_usize(self.made % self.places() * LINE_BYTES);
        let (pages, value) = (self.offset >= LINE_BYTES, self.value(self.made));
        // SAFETY: the loops access the places of `place` from the one after `made` accesses on, which lie in
        // the area; `made` is a multiple of a turn here.
        unsafe {
            match (self.stores, pages) {
                (false, false) => self.sum = self.sum.wrapping_add(accesses::load_lines(begin, first, turns)),
                (false, true) => self.sum = self.sum.wrapping_add(accesses::load_pages(begin, turns)),
                (true, false) => accesses::store_lines(begin, first, turns, value),
                (true, true) => accesses::store_pages(begin, turns, value),
            }
        }
        self.made += turns * TURN;
    }

    /// The sum of what so many accesses load.
    fn expected_sum(&self) -> u64 {
        let places = self.places();
        (0..places)
            .map(|nth| {
                let times = self.made / places + u64::from(nth < self.made % places);
                let place = self.place(nth).cast::<u64>();
                // SAFETY: as in `one`.
                unsafe { place.read_unaligned() }.wrapping_mul(times)
            })
            .fold(0, u64::wrapping_add)
    }

    /// Places that do not hold the last number that was due there.
    fn wrong_places(&self) -> u64 {
        let places = self.places();
        (0..places)
            .map(|nth| {
                // The last access to this place, if there was one.
                let due = (self.made > nth).then(|| self.made - 1 - (self.made - 1 - nth) % places);
                let place = self.place(nth).cast::<u64>();
                // SAFETY: as in `one`.
                let found = unsafe { place.read_unaligned() };
                u64::from(found != due.map_or(0, |made| self.value(made)))
            })
            .sum()
    }
}

impl Batch for Accesses {
    fn run(&mut self, ops: u64) -> u64 {
        let mut left = ops;
        while left > 0 && !self.made.is_multiple_of(TURN) {
            self.one();
            left -= 1;
        }
        if left >= TURN {
            self.turns(left / TURN);
            left %= TURN;
        }
        for _ in 0..left {
            self.one();
        }
        self.sum.wrapping_add(self.made)
    }
}

/// Both areas.
pub struct Accessing {
    /// Bytes that differ from place to place: loaded.
    constant: Arena,
    /// Stored to.
    variable: Arena,
    pages: Check,
    /// Begun so far, of all points.
    blocks: u64,
}

impl Accessing {
    fn open(seed: u64) -> Result<Self> {
        let constant = Arena::new(AREA_BYTES, Pages::Base, &[])?;
        let variable = Arena::new(AREA_BYTES, Pages::Base, &[])?;
        let mut state = seed | 1;
        for offset in 0..AREA_BYTES {
            // Its high byte repeats nowhere in the area.
            state = mmix(state);
            // SAFETY: inside the arena.
            unsafe {
                constant.base().add(to_usize(offset)).write(state.to_be_bytes()[0]);
            };
        }
        let pages = constant.pages_check();
        Ok(Self { constant, variable, pages, blocks: 0 })
    }

    /// The accesses of a block that begins: stores find zeros, and every line is in the cache.
    fn begin(&mut self, point: &Place) -> Result<Accesses> {
        let offset = point.offset_bytes;
        if !OFFSETS.contains(&offset) {
            return Err(ProbeError::no_point(&point.to_point()));
        }
        let stores = point.operation == Access::Store;
        let area = if stores { &self.variable } else { &self.constant };
        for byte in (0..AREA_BYTES).map(|offset| area.base().wrapping_add(to_usize(offset))) {
            // SAFETY: inside the arena.
            unsafe {
                if stores {
                    byte.write_volatile(0);
                } else {
                    byte.read_volatile();
                }
            }
        }
        self.blocks += 1;
        Ok(Accesses { area: area.base(), stores, offset, made: 0, sum: 0, first: self.blocks << 32 | 1 })
    }
}

impl Evidence {
    /// Compares what a block did with what it should have done.
    fn add(&mut self, done: &Accesses) {
        let right = if done.stores { done.wrong_places() == 0 } else { done.expected_sum() == done.sum };
        self.blocks.one(right && done.made > 0);
        self.accesses += done.made;
    }
}

impl Session<Alignment> for Accessing {
    fn block(&mut self, point: &Place, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let mut accesses = self.begin(point)?;
        block.batches(&mut accesses);
        evidence.add(&accesses);
        Ok(())
    }

    fn proof(&mut self, point: &Place, evidence: &Evidence) -> Proof<Details> {
        let check = match point.operation {
            Access::Load => {
                evidence.blocks.check("checksum", "what ", "blocks loaded summed to the bytes that are there")
            }
            Access::Store => evidence.blocks.check(
                "destination",
                "after ",
                "blocks every place held the last number due there",
            ),
        };
        let crosses = match point.offset_bytes {
            LINE_CROSSING => Boundary::Line,
            PAGE_CROSSING => Boundary::Page,
            _ => Boundary::Nothing,
        };
        // Within a huge page there would be no page to cross.
        let proof = Proof::of(vec![check, self.pages.clone()])
            .with(Details { crosses, places: spread(point.offset_bytes).0 })
            .by(accesses::ENGINE);
        Proof { work: Work { bytes: evidence.accesses * ACCESS, ..Work::default() }, ..proof }
    }
}

#[cfg(test)]
mod tests;
