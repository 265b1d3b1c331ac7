//! `memory.false_sharing`: what two threads that write different variables cost each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::rig::{self, Page, Rig, Tally, Toil, abreast};

/// The probe.
pub struct FalseSharing;

const WINDOW_NS: f64 = 20_000.0;
const WINDOWS: u32 = 64;
/// Two pages: the second counter may be one page on.
const BYTES: u64 = 8192;
/// Distance of the counters in bytes, and when it is measured: the ends first. `None` is one thread alone,
/// the control.
const LAYOUTS: [(Option<usize>, u8); 5] =
    [(Some(8), 0), (Some(128), 0), (None, 0), (Some(64), 1), (Some(4096), 1)];

/// Two counters, or one: how they are written and how far apart they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    operation: Write,
    threads: u32,
    offset_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Write {
    Store,
    Add,
}

/// Where the threads of a point ran.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    cpus: [u32; 2],
    threads: u32,
}

/// What two writers cost each other.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    operations: Vec<Cost>,
}

/// Time of one write by one thread.
#[derive(Serialize, JsonSchema)]
struct Cost {
    operation: Write,
    same_line_ns: f64,
    neighbouring_line_ns: Option<f64>,
    own_line_ns: f64,
    alone_ns: Option<f64>,
    slowdown: Option<Estimate>,
}

impl Probe for FalseSharing {
    type Point = Counters;
    type Evidence = Tally;
    type Details = Placement;
    type Findings = Findings;
    type Session<'env> = Writers<'env>;

    const SPEC: Spec = Spec {
        id: "memory.false_sharing",
        tier: Tier::Memory,
        title: "two writers and one cache line",
        question: "How much do two threads slow each other down when each counts in its own variable and \
            the variables are adjacent?",
        method: "Two threads on two CPUs each increment a counter of their own, which the other never \
            reads. Only the distance of the two counters changes: 8 bytes (one cache line), \
64 (neighbouring lines, which some prefetchers fetch in pairs), 128 and 4096 bytes. The same thread alone \
is the control. \
A store is a load, an addition and a store of the word, as `*count += 1` is where the counter is in memory; \
an add is one atomic addition. Accesses are volatile or atomic: the compiler merges no two of them and \
keeps none in a register.

A value is the time for one write of ONE thread while both were running, the mean over a window of about 20 \
µs; the other thread writes without pause from before the first window until after the last, and windows \
that its own time stamps do not cover are left out. \
The threads swap places from block to block. Both run for 0.3 ms before the first window, because a core \
that slept is slow at first. \
Afterwards both counters must hold exactly the number of writes asked for, and both threads say on which \
CPU they were. A block in which either was switched out is marked and repeated.

A store that waits for its line is buffered, the core goes on and reads its own count back from the buffer, \
and the core that has the line may write to it many times before it must hand it over. So two threads that \
do nothing else are the most favourable case for plain stores: some cores hide nearly all of the cost. An \
atomic addition waits for its line every time and shows what the traffic costs.",
        method_version: 1,
        convention: "one write of one thread",
        needs: &["two CPUs", "threads that can be pinned to a CPU"],
        touches: &["two CPUs, busy; memory: two pages"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Counters> {
        if let Some(reason) = rig::no_two_cpus(env) {
            return Plan::no(reason);
        }
        let of = |operation| {
            LAYOUTS.map(|(offset_bytes, priority)| planned(env, operation, offset_bytes, priority))
        };
        let mut points = [of(Write::Store), of(Write::Add)].concat();
        points.sort_by_key(|planned| planned.priority);
        Plan::of(points).memory(BYTES).cpus(2)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Counters]) -> Result<Writers<'env>> {
        let rig = Rig::new(&env.clock, env.patience)?;
        Ok(Writers { env, cpus: env.two_cores(), rig, page: Arc::new(Page::new(BYTES)?) })
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let operations: Vec<Cost> =
            [Write::Store, Write::Add].into_iter().filter_map(|operation| cost(operation, figures)).collect();
        (!operations.is_empty()).then_some(Findings { operations })
    }
}

fn planned(env: &Env, operation: Write, offset_bytes: Option<usize>, priority: u8) -> Planned<Counters> {
    // One line for two threads, and one for each.
    let is_headline = offset_bytes.is_some() && priority == 0;
    // Lines of their own stay in the caches of their cores.
    let is_shared = offset_bytes.is_some_and(|bytes| bytes <= 64);
    let threads = if offset_bytes.is_some() { 2 } else { 1 };
    Planned {
        rank: rank(env, is_headline, Rank::Detail),
        priority,
        setup_s: 10e-6,
        block_s: 2.2e-3,
        cache_scope: if is_shared { CacheScope::Shared } else { CacheScope::Private },
        ..Planned::new(Counters { operation, threads, offset_bytes })
    }
}

fn cost(operation: Write, figures: &[Figure<FalseSharing>]) -> Option<Cost> {
    let at = |threads, offset_bytes| result_at(figures, &Counters { operation, threads, offset_bytes });
    let p50 = |threads, offset_bytes| at(threads, offset_bytes).map(|result| result.p50);
    let same = at(2, Some(8))?;
    // Beyond the reach of prefetchers that fetch lines in pairs.
    let own = at(2, Some(128)).or_else(|| at(2, Some(4096)))?;
    Some(Cost {
        operation,
        same_line_ns: same.p50,
        neighbouring_line_ns: p50(2, Some(64)),
        own_line_ns: own.p50,
        alone_ns: p50(1, None),
        slowdown: (own.p50 > 0.0).then(|| ratio(same, own)),
    })
}

/// A thread's increments, one after the other.
#[derive(Clone)]
struct Increments {
    page: Arc<Page>,
    offset: usize,
    atomic: bool,
}

impl Increments {
    fn word(&self) -> &AtomicU64 {
        self.page.word(self.offset)
    }
}

impl Toil for Increments {
    const CHUNK: u64 = 64;

    fn run(&mut self, ops: u64) {
        let word = self.word();
        if self.atomic {
            for _ in 0..ops {
                word.fetch_add(1, Ordering::Relaxed);
            }
        } else {
            // In a register of its own: counted at base plus index, some cores take seven cycles for what
            // takes them one here.
            let word = std::hint::black_box(word.as_ptr());
            for _ in 0..ops {
                // SAFETY: the word is borrowed from the page, and this thread is the only one that uses it in
                // a round.
                unsafe { word.write_volatile(word.read_volatile().wrapping_add(1)) };
            }
        }
    }
}

/// Two threads and their counters.
pub struct Writers<'env> {
    env: &'env Env,
    cpus: [u32; 2],
    rig: Rig,
    page: Arc<Page>,
}

impl Writers<'_> {
    /// What each thread does in a block, and where: they change places from block to block.
    fn works(&self, point: &Counters, block: usize) -> Vec<(u32, Increments)> {
        let mut cpus = self.cpus;
        if block % 2 == 1 {
            cpus.reverse();
        }
        let works = cpus.into_iter().zip([0, point.offset_bytes.unwrap_or(0)]).map(|(cpu, offset)| {
            (cpu, Increments { page: Arc::clone(&self.page), offset, atomic: point.operation == Write::Add })
        });
        works.take(point.threads as usize).collect()
    }
}

impl Session<FalseSharing> for Writers<'_> {
    fn block(&mut self, point: &Counters, tally: &mut Tally, block: &mut Block) -> Result<()> {
        let works = self.works(point, tally.blocks);
        let reset = || works.iter().for_each(|(_, work)| work.word().store(0, Ordering::Relaxed));
        let done = abreast(&mut self.rig, &self.env.clock, block, WINDOW_NS, WINDOWS, &works, reset)?;
        let counted =
            |thread: &rig::Beside<Increments>| [thread.ops, thread.work.word().load(Ordering::Relaxed)];
        tally.add(&done, done.threads.iter().map(|thread| counted(&thread.result)));
        if done.alone > 0 || done.threads.iter().any(|thread| rig::was_switched_out(&thread.observed)) {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Counters, tally: &Tally) -> Proof<Placement> {
        // One thread alone changes its CPU from block to block too.
        let placement = Placement { cpus: self.cpus, threads: point.threads };
        Proof::of(tally.checks("writes", "", "the other thread")).with(placement)
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{Erased, RemoteBlock};
    use latlab_probes_shared::rig::CAN_PIN;
    use latlab_probes_testing as testing;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_that_was_left_out_or_lost_fails_the_proof() {
        let env = testing::env(64 << 20);
        let mut writers = FalseSharing.open(&env, &[]).expect("a real clock");
        let point = Counters { operation: Write::Store, threads: 1, offset_bytes: None };
        for (change, ok) in [(0, true), (1, false), (u64::MAX, false)] {
            let (works, mut tally) = (writers.works(&point, 0), Tally::default());
            RemoteBlock::take(&env.clock, Some(100), |block| {
                let begin = || works[0].1.word().store(change, Ordering::Relaxed);
                let done = abreast(&mut writers.rig, &env.clock, block, WINDOW_NS, 4, &works, begin)?;
                tally.add(&done, [[done.threads[0].result.ops, works[0].1.word().load(Ordering::Relaxed)]]);
                Ok(())
            })
            .expect("one thread works");
            let check = &writers.proof(&point, &tally).checks[0];
            assert_eq!(check.ok, ok, "{}", check.detail);
        }
    }

    #[test]
    fn there_are_ten_points_on_two_cpus_and_one_cpu_is_said_not_to_be_enough() {
        let mut env = testing::env_of_one_cpu(64 << 20);
        assert!(matches!(FalseSharing.plan(&env).support, Support::No(_)));
        env.cpus = vec![0, 1];
        assert_eq!(FalseSharing.plan(&env).points.len(), if CAN_PIN { 10 } else { 0 });
    }

    #[test]
    fn the_slowdown_is_that_of_the_shared_line_over_lines_of_their_own() {
        let result = |threads, offset_bytes, p50| {
            PointResult::new(Counters { operation: Write::Add, threads, offset_bytes }.to_point(), p50)
        };
        let all = [
            result(2, Some(8), 30.0),
            result(2, Some(64), 6.0),
            result(2, Some(128), 5.0),
            result(1, None, 4.9),
        ];
        let env = testing::env(64 << 20);
        assert_eq!(
            testing::conclusion(&Erased(FalseSharing), &env, &all),
            json!({ "operations": [{
                "operation": "add", "same_line_ns": 30.0, "neighbouring_line_ns": 6.0, "own_line_ns": 5.0,
                "alone_ns": 4.9, "slowdown": {"value": 6.0},
            }]})
        );
        assert!(testing::conclusion(&Erased(FalseSharing), &env, &all[1..]).is_null());
    }
}
