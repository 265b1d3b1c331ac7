//! `memory.stride`: what the order of independent accesses to one array costs: sequential, strided, random.

#![expect(clippy::cast_ptr_alignment, reason = "buffers begin on a page, and offsets are whole words")]
#![expect(clippy::inline_always, reason = "the timed loop must hold no call, whatever the profile")]

use std::collections::{BTreeSet, HashMap};

use latlab_probes_shared::prelude::*;
use latlab_record::{Order, significant};

use super::with_pages;
use crate::{levels, no_memory};
use latlab_probes_shared::walk::{Arena, Cycle, LINE_BYTES, mmix, to_usize};

/// The probe.
pub struct Stride;

const LARGEST: u64 = 1 << 30;
const SMALLEST: u64 = 64 << 10;
/// Bytes of the word that an access reads.
const WORD: u64 = 8;
/// In the order in which they are given up last.
const STRIDES: [u64; 8] = [64, 4096, 256, 1024, 128, 512, 2048, 8192];

/// An order of the accesses to an array.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visits {
    working_set_bytes: u64,
    order: Order,
    stride_bytes: u64,
}

/// What an access uses, and what it costs to know where it goes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Details {
    bytes_used_per_access: u64,
    /// The median over these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_byte_ns: Option<f64>,
    /// Time to compute an address of the random order, without the access.
    #[serde(skip_serializing_if = "Option::is_none")]
    address_ns: Option<f64>,
}

/// What random order costs.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    arrays: Vec<Factors>,
}

/// An access in random order over one in another order.
#[derive(Serialize, JsonSchema)]
struct Factors {
    working_set_bytes: u64,
    /// Over the next word.
    random_over_sequential_words: Estimate,
    /// Over the next line.
    random_over_sequential_lines: Option<Estimate>,
}

impl Probe for Stride {
    type Point = Visits;
    type Evidence = Compared;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = Reading;

    const SPEC: Spec = Spec {
        id: "memory.stride",
        tier: Tier::Memory,
        title: "sequential, strided and random order",
        question: "What does it cost to access an array in another order than from front to back?",
        method: "One 8-byte word an access is read and added up, over the same array in each order. No \
            access waits for another, so the CPU overlaps as many as it can: \
this is the cost of a loop over independent elements, several times below the latency that \
memory.load.dependent shows where the order is random.

Sequential order reads every word (8 bytes on). Strided order reads one word, advances by the stride to the \
end of the array, and returns for another line within the stride until every line was read once: \
a matrix read by columns. The lines within a stride are taken in random order, because after their \
neighbours they would be found in a cache, fetched along with them. \
Up to some stride the prefetchers follow; they stop at the page's end, and from 4 KiB on every access needs \
another translation too.

Random order takes one word of each line, every line once, in a full cycle of eight interleaved \
congruential generators whose bits are mixed: the addresses are computed, not loaded, so nothing but the \
accesses themselves uses memory, \
and no prefetcher can follow. Computing an address takes about a nanosecond, which the accesses hide when \
they leave the caches; in the small array it is part of the figure, and is measured alone (address_ns).

Loads are volatile: the compiler can neither merge, widen nor drop one. The sum of what each block read is \
compared with the one that the order and the known contents give. \
A value is the mean of a window of about 20 µs. Before each block the small array is read once; the large \
one, which no cache holds, is not prepared, and each order continues where it ended.",
        method_version: 1,
        convention: "one 8-byte word an access; a line of 64 bytes is moved for each line that is met",
        needs: &["1 MiB of memory"],
        touches: &["memory: an array of 256 MiB (up to 1 GiB beside large caches and in the thorough \
            profile), at most a quarter of what may be used"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Visits> {
        let (small, large) = arrays(env);
        if let Some(reason) = no_memory(env, large >= SMALLEST, "1 MiB of memory") {
            return Plan::no(reason);
        }
        let mut points = of_array(env, large, 0);
        if small != large {
            points.extend(of_array(env, small, 1));
        }
        let plan = Plan::of(points).memory(large);
        if large < levels::LEAST_RAM {
            return plan.degraded(format!(
                "the array ends at {}: a quarter of the memory that may be used",
                binary_size(large)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Visits]) -> Result<Reading> {
        let (small, largest) = arrays(env);
        let wanted = group.iter().map(|point| point.working_set_bytes);
        let large = wanted.max().unwrap_or(largest).min(largest);
        let array = array(large, &env.populating_cpus())?;
        let (address_ns, pages) = (address_ns(env, large), array.pages_check());
        Ok(Reading { walks: Vec::new(), small, address_ns, pages, array })
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let sizes: BTreeSet<u64> = figures.iter().map(|figure| figure.point.working_set_bytes).collect();
        let at = |working_set_bytes, order, stride_bytes| {
            result_at(figures, &Visits { working_set_bytes, order, stride_bytes })
        };
        // Random order over each of the others.
        let [words, lines] =
            [(Order::Sequential, WORD), (Order::Strided, LINE_BYTES)].map(|(order, stride)| {
                let pairs = sizes.iter().filter_map(|size| {
                    Some((*size, [at(*size, Order::Random, LINE_BYTES)?, at(*size, order, stride)?]))
                });
                let (sizes, pairs): (Vec<u64>, Vec<[&PointResult; 2]>) = pairs.unzip();
                sizes.into_iter().zip(ratios(&pairs)).collect::<HashMap<_, _>>()
            });
        let factors = |size: &u64| {
            Some(Factors {
                working_set_bytes: *size,
                random_over_sequential_words: *words.get(size)?,
                random_over_sequential_lines: lines.get(size).copied(),
            })
        };
        let arrays: Vec<Factors> = sizes.iter().filter_map(factors).collect();
        (!arrays.is_empty()).then_some(Findings { arrays })
    }
}

/// All orders of one array; `first` is the priority of the shortest of them.
fn of_array(env: &Env, working_set_bytes: u64, first: u8) -> Vec<Planned<Visits>> {
    let is_large = working_set_bytes == arrays(env).1;
    let ends = [(Order::Sequential, WORD), (Order::Random, LINE_BYTES)];
    let between = STRIDES.map(|stride| (Order::Strided, stride));
    let planned = |(order, stride_bytes)| Planned {
        // Front to back against random order, in memory; how they fare between is a curve.
        rank: rank(
            env,
            order != Order::Strided && is_large && env.settings.profile != Profile::Thorough,
            Rank::Curve,
        ),
        priority: first + if stride_bytes <= 4096 { 0 } else { 2 },
        setup_s: if is_large { 1e-5 } else { 1e-3 },
        block_s: 1.5e-3,
        cache_scope: levels::cache_scope(working_set_bytes, &env.machine),
        ..Planned::new(Visits { working_set_bytes, order, stride_bytes })
    };
    ends.into_iter().chain(between).map(planned).collect()
}

/// The small array (half of the second-level cache, so that it surely fits) and the large one; powers of two,
/// as the random order needs.
fn arrays(env: &Env) -> (u64, u64) {
    let most = if env.settings.profile == Profile::Thorough { LARGEST } else { levels::ram_bytes(env) };
    let large = levels::power_of_two(env.memory_bytes).min(most);
    let small = levels::power_of_two(levels::second(&env.machine) / 2);
    (small.max(SMALLEST).min(large), large)
}

/// An arena of words: each holds a number of its own, so that the sum tells which were read.
fn array(bytes: u64, helpers: &[u32]) -> Result<Arena> {
    let arena = Arena::new(bytes, Pages::Base, helpers)?;
    for offset in (0..bytes).step_by(to_usize(WORD)) {
        // SAFETY: the arena has `bytes`.
        unsafe { arena.base().wrapping_add(to_usize(offset)).cast::<u64>().write(value(offset)) };
    }
    Ok(arena)
}

/// What the word at an offset holds: an odd multiple, so any access that is left out, doubled or elsewhere
/// changes a sum.
#[inline(always)]
fn value(offset: u64) -> u64 {
    (offset / WORD).wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1
}

/// Where an order has come to.
#[derive(Clone, Debug)]
enum Course {
    /// Word after word.
    Words { next: u64 },
    /// One word a stride, then another line within the stride.
    Lines { stride: u64, next: u64, lines: Cycle, sweep: u64 },
    /// Every line once, in the order of eight generators.
    Random { generators: [u64; LANES], step: u64 },
}

/// Generators side by side: one alone would make an access wait for a multiplication (1.3 ns).
const LANES: usize = 8;

/// One step of all lanes is eight steps of the generator: what multiplies the state and what is added to it.
const fn leap() -> (u64, u64) {
    let (mut of_zero, mut of_one, mut step) = (0u64, 1u64, 0);
    while step < LANES {
        (of_zero, of_one) = (mmix(of_zero), mmix(of_one));
        step += 1;
    }
    (of_one.wrapping_sub(of_zero), of_zero)
}
const LEAP: (u64, u64) = leap();

/// Of all lanes, each a step on from the one before.
fn generators(seed: u64) -> [u64; LANES] {
    let mut generators = [seed; LANES];
    for lane in 1..LANES {
        generators[lane] = mmix(generators[lane - 1]);
    }
    generators
}

/// The line that a generator's state stands for: its high half is mixed into the low one, whose own cycle is
/// short.
#[inline(always)]
fn line_of(state: u64, mask: u64, half: u32) -> u64 {
    let line = state & mask;
    line ^ (line >> half)
}

impl Course {
    /// `None` for an order that is not one of this probe's, or does not divide an array of `bytes`.
    fn new(point: &Visits, seed: u64) -> Option<Self> {
        let (bytes, stride) = (point.working_set_bytes, point.stride_bytes);
        let lines = bytes / LINE_BYTES;
        if stride < WORD || !bytes.is_multiple_of(stride) || !lines.is_power_of_two() || lines < LANES as u64
        {
            return None;
        }
        match point.order {
            Order::Sequential => Some(Self::Words { next: 0 }),
            Order::Strided => {
                let lines = Cycle::random((stride / LINE_BYTES).max(1), seed);
                Some(Self::Lines { stride, next: 0, lines, sweep: 0 })
            }
            Order::Random => Some(Self::Random { generators: generators(seed), step: 0 }),
            _ => None,
        }
    }

    /// Visits the next `ops` offsets of an array of `bytes`; the sum of what `visit` answers.
    #[inline(always)]
    fn advance(&mut self, bytes: u64, ops: u64, visit: impl Fn(u64) -> u64) -> u64 {
        let mut left = ops;
        let mut sum = 0u64;
        while left > 0 {
            let (count, row) = match self {
                Self::Words { next } => {
                    let count = left.min((bytes - *next) / WORD);
                    let row = ascending(*next, WORD, count, &visit);
                    *next = (*next + count * WORD) % bytes;
                    (count, row)
                }
                Self::Lines { stride, next, lines, sweep } => {
                    let first = lines.place(*sweep) * LINE_BYTES;
                    let count = left.min((bytes - *next) / *stride);
                    let row = ascending(*next + first, *stride, count, &visit);
                    *next += count * *stride;
                    if *next == bytes {
                        *next = 0;
                        *sweep = (*sweep + 1) % lines.places();
                    }
                    (count, row)
                }
                Self::Random { generators, step } => {
                    let lines = bytes / LINE_BYTES;
                    let count = left.min(lines - *step);
                    let row =
                        in_random_order(lines, generators, *step, count, |line| visit(line * LINE_BYTES));
                    *step = (*step + count) % lines;
                    (count, row)
                }
            };
            left -= count;
            sum = sum.wrapping_add(row);
        }
        sum
    }
}

/// Visits `count` offsets, `stride` bytes apart.
#[inline(always)]
fn ascending(first: u64, stride: u64, count: u64, visit: impl Fn(u64) -> u64) -> u64 {
    // Additions to one sum would wait for each other, a cycle each.
    let mut sums = [0u64; 4];
    let mut offset = first;
    for _ in 0..count / 8 {
        for turn in 0..8 {
            let sum = &mut sums[to_usize(turn % 4)];
            *sum = sum.wrapping_add(visit(offset + turn * stride));
        }
        offset += 8 * stride;
    }
    for turn in 0..count % 8 {
        sums[0] = sums[0].wrapping_add(visit(offset + turn * stride));
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

/// Visits the lines of steps `step..step + count` of the cycle. Lane
/// `n` of the generators is at the first step not yet made that is `n` modulo the number of lanes.
#[inline(always)]
fn in_random_order(
    lines: u64,
    generators: &mut [u64; LANES],
    step: u64,
    count: u64,
    visit: impl Fn(u64) -> u64,
) -> u64 {
    let (mask, half) = (lines - 1, lines.trailing_zeros().div_ceil(2));
    let mut sum = 0u64;
    let mut one = |state: &mut u64| {
        sum = sum.wrapping_add(visit(line_of(*state, mask, half)));
        *state = state.wrapping_mul(LEAP.0).wrapping_add(LEAP.1);
    };
    let width = LANES as u64;
    let before = ((width - step % width) % width).min(count);
    for nth in 0..before {
        one(&mut generators[to_usize((step + nth) % width)]);
    }
    for _ in 0..(count - before) / width {
        for state in generators.iter_mut() {
            one(state);
        }
    }
    for state in &mut generators[..to_usize((count - before) % width)] {
        one(state);
    }
    sum
}

/// An order under way, and what it has read.
struct Walk {
    /// Of the array.
    base: *const u8,
    bytes: u64,
    course: Course,
    /// Where `course` was when the sum was last compared.
    compared: Course,
    ops: u64,
    sum: u64,
}

impl Walk {
    fn new(array: &Arena, point: &Visits, seed: u64) -> Option<Self> {
        let bytes = Some(point.working_set_bytes).filter(|bytes| *bytes <= array.bytes())?;
        let course = Course::new(point, seed)?;
        Some(Self { base: array.base(), bytes, compared: course.clone(), course, ops: 0, sum: 0 })
    }

    /// Whether the sum of what was read since the last comparison is the one that the order and the contents
    /// give; untimed, without memory.
    fn is_right(&mut self) -> bool {
        let expected = self.compared.advance(self.bytes, self.ops, value);
        let right = expected == self.sum && self.ops > 0;
        (self.ops, self.sum) = (0, 0);
        right
    }
}

impl Batch for Walk {
    fn run(&mut self, ops: u64) -> u64 {
        let base = self.base;
        // SAFETY: a course stays below the array's size: rows end at it, lines are masked by their number,
        // and both are multiples of 8.
        let read = |offset| unsafe { base.wrapping_add(to_usize(offset)).cast::<u64>().read_volatile() };
        self.sum = self.sum.wrapping_add(self.course.advance(self.bytes, ops, read));
        self.ops += ops;
        self.sum
    }
}

/// The cost of computing an address of the random order, without the access, ns.
fn address_ns(env: &Env, bytes: u64) -> f64 {
    const STEPS: u64 = 1 << 14;
    let costs = (0..9).map(|_| {
        let mut generators = [1; LANES];
        let begin = env.clock.now_ns();
        let sum = in_random_order(bytes / LINE_BYTES, &mut generators, 0, STEPS, std::hint::black_box);
        std::hint::black_box(sum);
        (env.clock.now_ns() - begin) / STEPS as f64
    });
    median(costs).unwrap_or(f64::NAN)
}

/// The array, and how far each order has come.
pub struct Reading {
    walks: Vec<(Visits, Walk)>,
    small: u64,
    address_ns: f64,
    pages: Check,
    /// Declared after the walks: they point into it.
    array: Arena,
}

impl Reading {
    /// The walk of a point, which begins when it is first needed.
    fn walk(&mut self, point: &Visits) -> Result<&mut Walk> {
        kept(&mut self.walks, *point, || {
            let walk = Walk::new(&self.array, point, 0x5DEE_CE66);
            walk.ok_or_else(|| ProbeError::no_point(&point.to_point()))
        })
    }
}

impl Session<Stride> for Reading {
    fn select(&mut self, point: &Visits) -> Result<()> {
        self.walk(point)?;
        if point.working_set_bytes <= self.small {
            let words = self.small / WORD;
            let base = self.array.base();
            // SAFETY: the small array is the beginning of the large one.
            let read = |offset| unsafe { base.wrapping_add(to_usize(offset)).cast::<u64>().read_volatile() };
            std::hint::black_box(ascending(0, WORD, words, read));
        }
        Ok(())
    }

    fn block(&mut self, point: &Visits, sums: &mut Compared, block: &mut Block) -> Result<()> {
        let walk = self.walk(point)?;
        block.batches(walk);
        sums.one(walk.is_right());
        Ok(())
    }

    fn proof(&mut self, point: &Visits, sums: &Compared) -> Proof<Details> {
        let address_ns = (self.address_ns * 1e3).round() / 1e3;
        let details = Details {
            bytes_used_per_access: WORD,
            per_byte_ns: None,
            address_ns: (point.order == Order::Random).then_some(address_ns),
        };
        let after = "blocks summed to what the array holds there";
        let proof = Proof::of(vec![sums.check("checksum", "the words read in ", after)]).with(details);
        with_pages(proof.by("independent 8-byte loads"), &self.pages)
    }

    fn add_samples(&self, details: Option<Details>, sampled: &Sampled) -> Option<Details> {
        let per_byte_ns = sampled.p50.map(|p50| significant(p50 / WORD as f64));
        Some(Details { per_byte_ns, ..details? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(bytes: u64) -> Arena {
        super::array(bytes, &[]).expect("a small arena")
    }

    fn all_orders(working_set_bytes: u64) -> Vec<Visits> {
        let point = |order, stride_bytes| Visits { working_set_bytes, order, stride_bytes };
        let mut points = vec![point(Order::Sequential, WORD), point(Order::Random, LINE_BYTES)];
        points.extend(STRIDES.map(|stride| point(Order::Strided, stride)));
        points
    }

    #[test]
    fn every_order_reads_every_place_once_however_it_is_cut_into_windows() {
        let bytes = 64 << 10;
        for point in all_orders(bytes) {
            let each = if point.order == Order::Sequential { WORD } else { LINE_BYTES };
            for window in [1, 3, 8, 13, 1_000] {
                let mut course = Course::new(&point, 77).expect("a known order");
                let seen = std::cell::RefCell::new(Vec::new());
                while (seen.borrow().len() as u64) < 2 * bytes / each {
                    course.advance(bytes, window, |offset| {
                        seen.borrow_mut().push(offset);
                        0
                    });
                }
                for sweep in seen.into_inner().chunks_exact(to_usize(bytes / each)) {
                    let mut sorted = sweep.to_vec();
                    sorted.sort_unstable();
                    assert!(sorted.iter().copied().eq((0..bytes).step_by(to_usize(each))), "{point:?}");
                }
            }
        }
    }

    #[test]
    fn what_was_read_in_windows_of_any_size_passes_the_comparison() {
        let array = array(64 << 10);
        for point in all_orders(64 << 10) {
            let mut walk = Walk::new(&array, &point, 77).expect("a known order");
            for window in [1, 3, 8, 13, 1_000, 100_000] {
                walk.run(window);
                walk.run(window);
                assert!(walk.is_right(), "{point:?}");
            }
        }
    }

    #[test]
    fn an_access_that_was_left_out_or_made_elsewhere_fails_the_proof() {
        let array = array(64 << 10);
        for point in all_orders(64 << 10) {
            let mut walk = Walk::new(&array, &point, 77).expect("a known order");
            walk.run(100);
            walk.ops += 1;
            assert!(!walk.is_right(), "{point:?}");
        }
        let walk = &mut Walk::new(&array, &all_orders(64 << 10)[0], 77).expect("a known order");
        assert!(!walk.is_right(), "nothing was read");
    }

    #[test]
    fn random_order_meets_every_line_and_repeats_no_distance() {
        for bits in [3, 4, 10, 15] {
            let lines = 1u64 << bits;
            let mut generators = generators(5);
            let seen = std::cell::RefCell::new(Vec::new());
            in_random_order(lines, &mut generators, 0, lines, |line| {
                seen.borrow_mut().push(line);
                0
            });
            let order = seen.into_inner();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..lines).collect::<Vec<_>>());
            if bits == 15 {
                let steps: Vec<i64> =
                    order.windows(2).map(|pair| pair[1].cast_signed() - pair[0].cast_signed()).collect();
                let repeated = steps.windows(2).filter(|pair| pair[0] == pair[1]).count();
                let near = steps.iter().filter(|step| step.abs() <= 2).count();
                assert!(repeated < 50 && near < 50, "{repeated} repeated, {near} near");
            }
        }
    }

    #[test]
    fn a_changed_word_fails_the_proof() {
        let array = array(64 << 10);
        // SAFETY: the first word of line 100.
        unsafe { array.base().wrapping_add(6_400).cast::<u64>().write(1) };
        for point in all_orders(64 << 10) {
            let mut walk = Walk::new(&array, &point, 77).expect("a known order");
            walk.run(64 << 10);
            assert!(!walk.is_right(), "{point:?}");
        }
    }
}
