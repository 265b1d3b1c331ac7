//! `alloc.reuse`: what a work buffer costs that is allocated in each iteration, against two buffers that are swapped.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use latlab_harness::{
    AnyProbe, AnySession, Block, Child, Env, Operations, Planned, PointResult, ProbeError, Proof, Rank,
    RemoteBlock, Spec, Support, Tier, ratios, serve_child,
};
use latlab_record::{Check, Header, Point, Profile, Record, Unit, binary_size};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::heap::{self, Allocator, Region};

/// The probe.
pub struct Reuse;

static SPEC: Spec = Spec {
    id: "alloc.reuse",
    tier: Tier::Alloc,
    title: "a buffer allocated each time or kept",
    question: "Does it pay to keep a work buffer instead of allocating one in each iteration?",
    method: "An iteration computes a new array from an old one, as a simulation does from time step to time step: each 8-byte word is the sum of the old one and its two neighbours, so every byte of both arrays is touched. \
Fresh: the new array comes from malloc, the old one is freed after the step. Swapped: two arrays that were touched before take turns. The work is the same; the difference is the allocator and the page faults.

What a fresh array costs depends on where its pages come from. Below 128 KiB they are in the heap. glibc gives larger ones a mapping of their own, but freeing the first raises that threshold to its size, up to 32 MiB, so that from the second iteration on they come from the heap too, \
which keeps them; above 32 MiB each iteration pays for all pages again. Each size from 128 KiB on therefore has a process of its own, whose thresholds no other size has moved, and which has done two iterations before the first value: a program's steady state. \
minor_faults_per_iteration says what was paid.

Each iteration triples the sum of all words (modulo 2^64); after every block the sum of the array is compared with that, so a word that was left out is noticed. \
A value is a window of at least 50 us, or one iteration that takes longer, timed by the system's monotonic clock.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one iteration: a new array computed from an old one of the same size",
    needs: &["child processes", "Linux"],
    touches: &["memory: up to four arrays of 64 MiB, at most a quarter of what may be used, in child processes"],
    saturates: false,
    operations: Operations::Unwatched,
};

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
/// Windows of short iterations take about this long.
const WINDOW_NS: f64 = 50_000.0;
/// A block of windows takes about this long, unless one iteration takes longer.
const BLOCK_NS: f64 = 3e6;
/// Words of an array whose iterations are one window each, with nothing before it: no private cache holds one.
const LONG: usize = (4 << 20) / 8;
/// Windows in a block.
const WINDOWS: f64 = 40.0;

impl AnyProbe for Reuse {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let Support::No(reason) = heap::supported(env) {
            return Support::No(reason);
        }
        let sizes = sizes(env);
        let Some(largest) = sizes.iter().max() else {
            return Support::No(format!(
                "needs 32 KiB of memory; {} may be used here",
                binary_size(env.memory_bytes)
            ));
        };
        if *largest < LARGEST {
            return Support::Degraded(format!(
                "arrays end at {}: an eighth of the memory that may be used",
                binary_size(*largest)
            ));
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let mut points = Vec::new();
        for size in sizes(env) {
            for operation in [FRESH, SWAPPED] {
                // 4 GB/s through two arrays, and 5 us a fault.
                let faults =
                    if operation == FRESH && size > 32 << 20 { size as f64 / 4096.0 * 5e-6 } else { 0.0 };
                points.push(Planned {
                    rank: Rank::Curve,
                    priority: match size {
                        LARGEST => 1,
                        size => 2 * u8::from(size > CHEAP),
                    },
                    setup_s: if size >= OWN_PROCESS { 3e-3 } else { 1e-4 },
                    block_s: 4e-3_f64.max(size as f64 / 4e9 + faults),
                    ..Planned::new(Point {
                        operation: Some(operation.to_owned()),
                        size_bytes: Some(size),
                        ..Point::default()
                    })
                });
            }
        }
        points
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        // Two arrays that are kept and two that come and go, of this size and of the smaller ones.
        sizes(env).iter().sum::<u64>() * 4
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        Ok(Box::new(Steps { env, children: Vec::new(), selected: None, ledgers: Vec::new() }))
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        conclude(results).into_iter().collect()
    }
}

const FRESH: &str = "fresh";
const SWAPPED: &str = "swapped";

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
    faults: u64,
    iterations: u64,
    counts_faults: bool,
}

/// The child's side.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let counts_faults = heap::counts_faults();
    let mut fields: Vec<Field> = Vec::new();
    serve_child(input, output, |request: Request| {
        let words = usize::try_from(request.size_bytes / 8).unwrap_or(usize::MAX);
        let known = fields.iter().position(|field| field.words == words && field.is_fresh() == request.fresh);
        let place = if let Some(place) = known {
            place
        } else {
            fields.push(Field::new(words, request.fresh)?);
            fields.len() - 1
        };
        let mut answer = fields[place].answer(request.ops_per_window)?;
        answer.counts_faults = counts_faults;
        Ok(answer)
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
    fn new(words: usize, fresh: bool) -> Result<Self, ProbeError> {
        let bytes = words.saturating_mul(8);
        let (now, next) = if fresh {
            (allocate(bytes)?, Next::Malloc)
        } else {
            let region = Region::new(bytes.saturating_mul(2))?;
            let now = words_at(&region);
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
    fn step(&mut self) -> Result<(), ProbeError> {
        let next = match &self.next {
            Next::Malloc => allocate(self.words * 8)?,
            Next::Other(other, _) => *other,
        };
        // SAFETY: two different arrays of so many words, each referred to by this field only; the old one was filled.
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

    fn run(&mut self, iterations: u64) -> Result<f64, ProbeError> {
        let begun = Instant::now();
        for _ in 0..iterations {
            self.step()?;
        }
        Ok(begun.elapsed().as_secs_f64() * 1e9)
    }

    fn sum_holds(&self) -> bool {
        // SAFETY: the current array was filled by the last iteration.
        let array = unsafe { std::slice::from_raw_parts(self.now, self.words) };
        array.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)) == self.sum
    }

    fn answer(&mut self, ops_per_window: Option<u64>) -> Result<Answer, ProbeError> {
        let ops = match ops_per_window {
            Some(ops) => ops,
            None => self.window_ops()?,
        };
        let windows = if self.words > LONG {
            1
        } else {
            // A window that does not count brings the caches back.
            let first = self.run(ops)?;
            whole((BLOCK_NS / first.max(1.0)).clamp(1.0, WINDOWS))
        };
        let before = heap::minor_faults();
        let block = RemoteBlock::gather(ops, |values| {
            for _ in 0..windows {
                values.push(self.run(ops)? / ops as f64);
            }
            Ok(())
        })?;
        let faults = heap::minor_faults() - before;
        Ok(Answer { faults, iterations: block.ops, sum_held: self.sum_holds(), block, counts_faults: false })
    }

    /// Doubled until a trial can be trusted, the shorter of two, and scaled.
    fn window_ops(&mut self) -> Result<u64, ProbeError> {
        let mut ops = 1u64;
        loop {
            let mut took = self.run(ops)?;
            if took < WINDOW_NS {
                took = took.min(self.run(ops)?);
            }
            if took >= WINDOW_NS / 4.0 || ops >= 1 << 30 {
                return Ok(whole((ops as f64 * WINDOW_NS / took.max(1.0)).round()));
            }
            ops *= 2;
        }
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

#[expect(clippy::cast_ptr_alignment, reason = "regions begin on a page")]
fn words_at(region: &Region) -> *mut u64 {
    region.base().cast::<u64>()
}

fn allocate(bytes: usize) -> Result<*mut u64, ProbeError> {
    // SAFETY: any size may be asked for; what is not there is null.
    let block = unsafe { libc::malloc(bytes) }.cast::<u64>();
    if block.is_null() {
        return Err(ProbeError::Other(format!("{bytes} bytes were refused")));
    }
    Ok(block)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and at least one is done"
)]
fn whole(count: f64) -> u64 {
    (count as u64).max(1)
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

struct Process {
    /// Of sizes that move thresholds: the size and the operation.
    own: Option<(u64, bool)>,
    child: Child,
}

struct Ledger {
    point: Point,
    answers: Vec<Answer>,
}

struct Steps<'env> {
    env: &'env Env,
    children: Vec<Process>,
    selected: Option<(usize, bool, Point)>,
    ledgers: Vec<Ledger>,
}

impl AnySession for Steps<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let unknown = || ProbeError::no_point(point);
        let fresh = match point.operation.as_deref() {
            Some(FRESH) => true,
            Some(SWAPPED) => false,
            _ => return Err(unknown()),
        };
        let size = point.size_bytes.ok_or_else(unknown)?;
        // Swapped arrays have mappings of the probe's own, which no allocator knows of: only fresh ones have a history.
        let own = (fresh && size >= OWN_PROCESS).then_some((size, fresh));
        let place = if let Some(place) = self.children.iter().position(|process| process.own == own) {
            place
        } else {
            let child = heap::start(self.env, SPEC.id, &Allocator::SYSTEM)?;
            self.children.push(Process { own, child });
            self.children.len() - 1
        };
        self.selected = Some((place, fresh, point.clone()));
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some((place, fresh, point)) = self.selected.clone() else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        let request = Request {
            fresh,
            size_bytes: point.size_bytes.unwrap_or(0),
            ops_per_window: block.chosen_window_ops(),
        };
        let answer: Answer = self.children[place].child.ask(&request)?;
        heap::absorb(block, &answer.block);
        let answer = Answer { block: RemoteBlock::default(), ..answer };
        if let Some(ledger) = self.ledgers.iter_mut().find(|ledger| ledger.point == point) {
            ledger.answers.push(answer);
        } else {
            self.ledgers.push(Ledger { point, answers: vec![answer] });
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let mut proof = Proof::default();
        let Some(ledger) = self.ledgers.iter().find(|ledger| ledger.point == *point) else {
            return proof;
        };
        proof.engine = Some(heap::answering().engine());
        proof.checks.push(sums(&ledger.answers));
        let counted = ledger.answers.iter().all(|answer| answer.counts_faults);
        let faults: u64 = ledger.answers.iter().map(|answer| answer.faults).sum();
        let iterations: u64 = ledger.answers.iter().map(|answer| answer.iterations).sum();
        proof.findings = Some(json!({
            "minor_faults_per_iteration": counted.then(|| faults as f64 / iterations.max(1) as f64),
        }));
        proof
    }
}

fn sums(answers: &[Answer]) -> Check {
    let held = answers.iter().filter(|answer| answer.sum_held).count();
    Check {
        name: "checksum".to_owned(),
        ok: !answers.is_empty() && held == answers.len(),
        detail: format!(
            "after {held} of {} blocks the array's words added up to what the iterations make of them",
            answers.len()
        ),
    }
}

fn conclude(results: &[PointResult]) -> Option<Record> {
    let mut sizes: Vec<u64> = results.iter().filter_map(|result| result.point.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |size: u64, operation: &str| {
        results.iter().find(|result| {
            result.point.size_bytes == Some(size) && result.point.operation.as_deref() == Some(operation)
        })
    };
    let pairs: Vec<[&PointResult; 2]> =
        sizes.into_iter().filter_map(|size| Some([of(size, FRESH)?, of(size, SWAPPED)?])).collect();
    let rows: Vec<Value> = pairs
        .iter()
        .zip(ratios(&pairs))
        .map(|([fresh, swapped], ratio)| {
            let faults =
                fresh.findings.as_ref().map(|findings| findings["minor_faults_per_iteration"].clone());
            json!({
                "size_bytes": fresh.point.size_bytes,
                "fresh_ns": fresh.p50,
                "swapped_ns": swapped.p50,
                "ratio": (swapped.p50 > 0.0).then_some(ratio),
                "fresh_minor_faults": faults,
            })
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    Some(SPEC.derived(json!({ "sizes": rows })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_probes_testing as testing;

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
        let answer = |sum_held| Answer {
            block: RemoteBlock::default(),
            sum_held,
            faults: 0,
            iterations: 1,
            counts_faults: true,
        };
        assert!(sums(&[answer(true), answer(true)]).ok);
        assert!(!sums(&[answer(true), answer(false)]).ok);
        assert!(!sums(&[]).ok);
    }

    #[test]
    fn sizes_are_compared_where_both_ways_were_measured() {
        let result = |operation: &str, size, p50| PointResult {
            findings: Some(json!({"minor_faults_per_iteration": 256.0})),
            ..PointResult::new(
                Point { operation: Some(operation.to_owned()), size_bytes: Some(size), ..Point::default() },
                p50,
            )
        };
        let record = conclude(&[
            result(FRESH, 1 << 20, 600.0),
            result(SWAPPED, 1 << 20, 200.0),
            result(FRESH, 4096, 600.0),
        ])
        .expect("a record");
        let findings = record.findings.expect("findings");
        assert_eq!(
            findings["sizes"],
            json!([{"size_bytes": 1 << 20, "fresh_ns": 600.0, "swapped_ns": 200.0, "ratio": {"value": 3.0}, "fresh_minor_faults": 256.0}])
        );
        assert!(conclude(&[]).is_none());
    }

    #[test]
    fn arrays_fit_small_machines() {
        for memory_bytes in [32 << 10, 64 << 20, 8 << 30] {
            for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
                let mut env = testing::env_of_one_cpu(memory_bytes);
                env.settings.profile = profile;
                assert!(Reuse.memory_bytes(&env) <= memory_bytes, "{memory_bytes}");
                assert!(!Reuse.points(&env).is_empty());
            }
        }
        assert!(matches!(Reuse.supports(&testing::env(1 << 10)), Support::No(_)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn both_ways_are_proved_in_child_processes() {
        let env = testing::env_of_one_cpu(8 << 20);
        let proofs = testing::assert_proved(&Reuse, &env, &Reuse.points(&env));
        assert!(proofs.len() >= 6);
    }
}
