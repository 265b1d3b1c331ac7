//! `alloc.reuse`: what a work buffer costs that is allocated in each iteration, against two buffers that are
//! swapped.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use latlab_harness::{Child, RemoteBlock, serve_child};
use latlab_probes_shared::prelude::*;

use crate::heap::{self, Allocator, FaultTally, Region, block_of_windows, nanoseconds};

/// The probe.
pub struct Reuse;

/// Sizes of one array, in the order in which they are given up last.
const SIZES: [u64; 6] = [1 << 20, 64 << 10, 4 << 10, LARGEST, 4 << 20, 16 << 20];
/// Beyond glibc's largest threshold.
const LARGEST: u64 = 64 << 20;
/// Added in the thorough profile.
const MORE: [u64; 4] = [16 << 10, 256 << 10, 32 << 20, 8 << 20];
/// The largest of the first priority: larger ones take up to tens of milliseconds an iteration.
const CHEAP: u64 = 1 << 20;
/// From here on a size's history matters: glibc's thresholds begin at 128 KiB.
const OWN_PROCESS: u64 = 128 << 10;
/// Words of an array whose iterations are one window each, with nothing before it: no private cache holds
/// one.
const LONG: usize = (4 << 20) / 8;

/// Where the new array of an iteration comes from, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    operation: Source,
    size_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    Fresh,
    Swapped,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    /// After blocks: whether the array's sum was what the iterations make of it.
    sums: Compared,
    faults: FaultTally,
}

/// What an iteration paid.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Paid {
    /// Page faults without I/O; nothing where they are not counted.
    minor_faults_per_iteration: Option<f64>,
}

/// Both ways beside each other.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    sizes: Vec<Pair>,
}

/// One iteration with arrays of a size.
#[derive(Serialize, JsonSchema)]
struct Pair {
    size_bytes: u64,
    fresh_ns: f64,
    swapped_ns: f64,
    /// Fresh over swapped.
    ratio: Option<Estimate>,
    fresh_minor_faults: Option<f64>,
}

impl Probe for Reuse {
    type Point = Iteration;
    type Evidence = Evidence;
    type Details = Paid;
    type Findings = Findings;
    type Session<'env> = Steps<'env>;

    const SPEC: Spec = Spec {
        id: "alloc.reuse",
        tier: Tier::Alloc,
        title: "a buffer allocated each time or kept",
        question: "Does it pay to keep a work buffer instead of allocating one in each iteration?",
        method: "An iteration computes a new array from an old one, as a simulation does from time step to \
            time step: each 8-byte word is the sum of the old one and its two neighbours, so every byte of \
            both arrays is touched. \
Fresh: the new array comes from malloc, the old one is freed after the step. Swapped: two arrays that were \
touched before alternate. The work is the same; the difference is the allocator and the page faults.

What a fresh array costs depends on where its pages come from. Below 128 KiB they are in the heap. glibc \
gives larger ones a mapping of their own, but freeing the first raises that threshold to its size, up to 32 \
MiB, so that from the second iteration on they come from the heap too, \
which keeps them; above 32 MiB each iteration pays for all pages again. Each size from 128 KiB on therefore \
has a process of its own, whose thresholds no other size has changed, and which has done two iterations \
before the first value: a program's steady state. \
minor_faults_per_iteration counts them.

Each iteration triples the sum of all words (modulo 2^64); after every block the sum of the array is \
compared with that, so an omitted word is noticed. \
A value is a window of at least 50 µs, or one iteration that takes longer, timed by the system's monotonic \
clock.",
        method_version: 1,
        convention: "one iteration: a new array computed from an old one of the same size",
        needs: &["child processes", "Linux"],
        touches: &["memory: up to four arrays of 64 MiB, at most a quarter of what may be used, in child \
            processes"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Iteration> {
        let sizes = sizes(env);
        let largest = sizes.iter().copied().max().unwrap_or(0);
        if let Some(reason) = heap::refused(env, largest > 0, "32 KiB of memory") {
            return Plan::no(reason);
        }
        let both = |size: &u64| [Source::Fresh, Source::Swapped].map(|source| planned(source, *size));
        // Two arrays that are kept and two that come and go, of this size and of the smaller ones.
        let plan = Plan::of(sizes.iter().flat_map(both).collect()).memory(sizes.iter().sum::<u64>() * 4);
        if largest < LARGEST {
            let largest = binary_size(largest);
            return plan
                .degraded(format!("arrays end at {largest}: an eighth of the memory that may be used"));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Iteration]) -> Result<Steps<'env>> {
        Ok(Steps { env, children: Vec::new() })
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let sizes: BTreeSet<u64> = figures.iter().map(|figure| figure.point.size_bytes).collect();
        let of = |size_bytes, operation| {
            figures.iter().find(|figure| figure.point == Iteration { operation, size_bytes })
        };
        let pairs: Vec<[&Figure<Self>; 2]> = sizes
            .into_iter()
            .filter_map(|size| Some([of(size, Source::Fresh)?, of(size, Source::Swapped)?]))
            .collect();
        let results: Vec<[&PointResult; 2]> =
            pairs.iter().map(|pair| pair.map(|figure| &figure.result)).collect();
        let sizes: Vec<Pair> = pairs
            .iter()
            .zip(ratios(&results))
            .map(|([fresh, swapped], ratio)| Pair {
                size_bytes: fresh.point.size_bytes,
                fresh_ns: fresh.result.p50,
                swapped_ns: swapped.result.p50,
                ratio: (swapped.result.p50 > 0.0).then_some(ratio),
                fresh_minor_faults: fresh.details.as_ref().and_then(|paid| paid.minor_faults_per_iteration),
            })
            .collect();
        (!sizes.is_empty()).then_some(Findings { sizes })
    }
}

fn planned(operation: Source, size_bytes: u64) -> Planned<Iteration> {
    // 4 GB/s through two arrays, and 5 us a fault.
    let faults = if operation == Source::Fresh && size_bytes > 32 << 20 {
        size_bytes as f64 / 4096.0 * 5e-6
    } else {
        0.0
    };
    Planned {
        rank: Rank::Curve,
        priority: match size_bytes {
            LARGEST => 1,
            size => 2 * u8::from(size > CHEAP),
        },
        setup_s: if size_bytes >= OWN_PROCESS { 3e-3 } else { 1e-4 },
        block_s: 4e-3_f64.max(size_bytes as f64 / 4e9 + faults),
        ..Planned::new(Iteration { operation, size_bytes })
    }
}

/// Whose four arrays, with those of all smaller sizes, fit.
fn sizes(env: &Env) -> Vec<u64> {
    let mut sizes = SIZES.to_vec();
    if env.settings.profile == Profile::Thorough {
        sizes.extend(MORE);
    }
    let largest = env.memory_bytes / 8;
    // With all powers of two below it, a size makes less than twice itself.
    sizes.retain(|size| *size <= largest);
    sizes
}

#[derive(Serialize, Deserialize)]
struct Request {
    fresh: bool,
    size_bytes: u64,
    ops_per_window: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Answer {
    block: RemoteBlock,
    /// Whether the array's sum was what the iterations make of it.
    sum_held: bool,
    /// Where the kernel counts them.
    faults: Option<u64>,
}

/// The child's side.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let counts_faults = heap::counts_faults();
    let mut fields: Vec<((usize, bool), Field)> = Vec::new();
    serve_child(input, output, |request: Request| {
        let words = usize::try_from(request.size_bytes / 8).unwrap_or(usize::MAX);
        let field = kept(&mut fields, (words, request.fresh), || Field::new(words, request.fresh))?;
        let answer = field.answer(request.ops_per_window)?;
        Ok(Answer { faults: answer.faults.filter(|_| counts_faults), ..answer })
    })
}

/// Where the next array comes from.
enum Next {
    Malloc,
    /// The other one of a pair, in the memory of both.
    Other(*mut u64, #[expect(dead_code, reason = "holds the arrays")] Region),
}

/// An array that is computed anew in each iteration.
struct Field {
    words: usize,
    now: *mut u64,
    next: Next,
    /// What its words must add up to.
    sum: u64,
    /// Planted by tests: the last words of each step are left out.
    left_out: usize,
}

impl Field {
    fn new(words: usize, fresh: bool) -> Result<Self> {
        let bytes = words.saturating_mul(8);
        let (now, next) = if fresh {
            (allocate(bytes)?, Next::Malloc)
        } else {
            let region = heap::new_pages(bytes.saturating_mul(2))?;
            let now = region.word(0);
            // SAFETY: the region has room for both.
            (now, Next::Other(unsafe { now.add(words) }, region))
        };
        // SAFETY: an array of so many words, which nobody else refers to.
        let array =
            unsafe { std::slice::from_raw_parts_mut(now.cast::<std::mem::MaybeUninit<u64>>(), words) };
        let mut sum = 0u64;
        for (place, word) in (1u64..).zip(array) {
            let value = place.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            word.write(value);
            sum = sum.wrapping_add(value);
        }
        let mut field = Self { words, now, next, sum, left_out: 0 };
        // The second array's pages, and whatever the first free changes in the allocator.
        field.step()?;
        field.step()?;
        Ok(field)
    }

    fn is_fresh(&self) -> bool {
        matches!(self.next, Next::Malloc)
    }

    /// One iteration.
    fn step(&mut self) -> Result<()> {
        let next = match &self.next {
            Next::Malloc => allocate(self.words * 8)?,
            Next::Other(other, _) => *other,
        };
        // SAFETY: two different arrays of so many words, each referred to by this field only; the old one was
        // filled.
        unsafe { compute(self.now, next, self.words, self.left_out) };
        self.sum = self.sum.wrapping_mul(3);
        match &mut self.next {
            // SAFETY: from malloc, freed once, and not used any more.
            Next::Malloc => unsafe { libc::free(self.now.cast()) },
            Next::Other(other, _) => *other = self.now,
        }
        self.now = black_box(next);
        Ok(())
    }

    fn run(&mut self, iterations: u64) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..iterations {
            self.step()?;
        }
        Ok(nanoseconds(begun))
    }

    fn sum_holds(&self) -> bool {
        // SAFETY: the current array was filled by the last iteration.
        let array = unsafe { std::slice::from_raw_parts(self.now, self.words) };
        array.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)) == self.sum
    }

    fn answer(&mut self, ops_per_window: Option<u64>) -> Result<Answer> {
        let are_long = self.words > LONG;
        let (block, faults) = block_of_windows(ops_per_window, are_long, |ops| self.run(ops))?;
        Ok(Answer { faults: Some(faults), sum_held: self.sum_holds(), block })
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        if self.is_fresh() {
            // SAFETY: from malloc, and freed once.
            unsafe { libc::free(self.now.cast()) };
        }
    }
}

fn allocate(bytes: usize) -> Result<*mut u64> {
    // SAFETY: any size may be asked for; what is not there is null.
    let block = unsafe { libc::malloc(bytes) }.cast::<u64>();
    if block.is_null() {
        return Err(ProbeError::Other(format!("{bytes} bytes were refused")));
    }
    Ok(block)
}

/// Each new word is the sum of three old ones, the ends joined to a ring.
///
/// # Safety
/// `old` and `new` are different arrays of `words`, at least three, and `old` was written.
unsafe fn compute(old: *const u64, new: *mut u64, words: usize, left_out: usize) {
    // SAFETY: the caller's promise; the middle ends a word before the end.
    unsafe {
        new.write((*old.add(words - 1)).wrapping_add(*old).wrapping_add(*old.add(1)));
        for place in 1..words - 1 - left_out {
            let sum = (*old.add(place - 1)).wrapping_add(*old.add(place)).wrapping_add(*old.add(place + 1));
            new.add(place).write(sum);
        }
        new.add(words - 1).write((*old.add(words - 2)).wrapping_add(*old.add(words - 1)).wrapping_add(*old));
    }
}

/// Child processes, by the size of arrays that move thresholds.
pub struct Steps<'env> {
    env: &'env Env,
    children: Vec<(Option<u64>, Child)>,
}

impl Steps<'_> {
    fn child(&mut self, point: &Iteration) -> Result<&mut Child> {
        // Swapped arrays have mappings of the probe's own, which no allocator knows of: only fresh ones have
        // a history.
        let moves = point.operation == Source::Fresh && point.size_bytes >= OWN_PROCESS;
        let own = moves.then_some(point.size_bytes);
        kept(&mut self.children, own, || heap::start(self.env, Reuse::SPEC.id, &Allocator::SYSTEM))
    }
}

impl Session<Reuse> for Steps<'_> {
    fn select(&mut self, point: &Iteration) -> Result<()> {
        self.child(point).map(drop)
    }

    fn block(&mut self, point: &Iteration, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let request = Request {
            fresh: point.operation == Source::Fresh,
            size_bytes: point.size_bytes,
            ops_per_window: block.chosen_window_ops(),
        };
        let answer: Answer = self.child(point)?.ask(&request)?;
        heap::absorb(block, &answer.block);
        evidence.add(&answer);
        Ok(())
    }

    fn proof(&mut self, _point: &Iteration, evidence: &Evidence) -> Proof<Paid> {
        let paid = Paid { minor_faults_per_iteration: evidence.faults.per_op() };
        Proof::of(vec![evidence.sums()]).with(paid).by(&heap::answering().engine())
    }
}

impl Evidence {
    fn add(&mut self, answer: &Answer) {
        self.sums.one(answer.sum_held);
        self.faults.add(answer.faults, answer.block.ops);
    }

    fn sums(&self) -> Check {
        let after = "blocks the array's words added up to what the iterations make of them";
        self.sums.check("checksum", "after ", after)
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::Erased;
    use latlab_probes_testing as testing;
    use serde_json::json;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn both_ways_compute_the_same_and_a_word_that_is_left_out_is_noticed() {
        let mut sums = Vec::new();
        for fresh in [true, false] {
            let mut field = Field::new(512, fresh).expect("4 KiB are there");
            field.run(5).expect("memory is there");
            assert!(field.sum_holds(), "{fresh}");
            sums.push(field.sum);
            field.left_out = 1;
            field.run(1).expect("memory is there");
            assert!(!field.sum_holds(), "{fresh}: planted");
        }
        assert_eq!(sums[0], sums[1]);
    }

    #[test]
    fn the_sum_of_a_ring_triples_with_each_step() {
        let old = [1u64, 10, 100, 1_000];
        let mut new = [0u64; 4];
        // SAFETY: two arrays of four words.
        unsafe { compute(old.as_ptr(), new.as_mut_ptr(), 4, 0) };
        assert_eq!(new, [1_011, 111, 1_110, 1_101]);
        assert_eq!(new.iter().sum::<u64>(), 3 * old.iter().sum::<u64>());
    }

    #[test]
    fn one_block_whose_sum_did_not_hold_fails_the_proof() {
        let answer = |sum_held| Answer { block: RemoteBlock::default(), sum_held, faults: Some(0) };
        let holds = |blocks: &[bool]| {
            let mut evidence = Evidence::default();
            for sum_held in blocks {
                evidence.add(&answer(*sum_held));
            }
            evidence.sums().ok
        };
        assert!(holds(&[true, true]));
        assert!(!holds(&[true, false]));
        assert!(!holds(&[]));
    }

    #[test]
    fn sizes_are_compared_where_both_ways_were_measured() {
        let result = |operation, size_bytes, p50| PointResult {
            findings: Some(json!({"minor_faults_per_iteration": 256.0})),
            ..PointResult::new(Iteration { operation, size_bytes }.to_point(), p50)
        };
        let env = testing::env(64 << 20);
        let results = [
            result(Source::Fresh, 1 << 20, 600.0),
            result(Source::Swapped, 1 << 20, 200.0),
            result(Source::Fresh, 4096, 600.0),
        ];
        assert_eq!(
            testing::conclusion(&Erased(Reuse), &env, &results)["sizes"],
            json!([{"size_bytes": 1 << 20, "fresh_ns": 600.0, "swapped_ns": 200.0, "ratio": {"value": 3.0}, "fresh_minor_faults": 256.0}])
        );
        assert!(testing::conclusion(&Erased(Reuse), &env, &[]).is_null());
    }
}
