//! `memory.false_sharing`: what two threads that write different variables cost each other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use latlab_harness::{
    AnyProbe, AnySession, Block, Env, MemorySource, Operations, Planned, PointResult, ProbeError, Proof,
    Rank, Reach, Spec, Support, Tier, ratio,
};
use latlab_record::{Check, Header, Point, Record, Unit};
use serde_json::json;

use latlab_probes_shared::rig::{self, Abreast, CAN_PIN, Page, Rig, Toil, abreast};

/// The probe.
pub struct FalseSharing;

static SPEC: Spec = Spec {
    id: "memory.false_sharing",
    tier: Tier::Memory,
    title: "two writers and one cache line",
    question: "What do two threads that count in variables of their own cost each other when the variables are neighbours?",
    method: "Two threads on two CPUs each increment a counter of their own, which the other never reads. Only the distance of the two counters changes: 8 bytes (one cache line), \
64 (neighbouring lines, which some prefetchers fetch in pairs), 128 and 4096 bytes. The same thread alone is the control. \
A store is a load, an addition and a store of the word, as `*count += 1` is where the counter is in memory; an add is one atomic addition. Accesses are volatile or atomic: the compiler merges no two of them and keeps none in a register.

A value is the time for one write of ONE thread while both were running, the mean over a window of about 20 us; the other thread writes without pause from before the first window until after the last, and windows that its own time stamps do not cover are left out. \
The threads change places from block to block. Both are at work for 0.3 ms before the first window, because a core that slept is slow at first. \
Afterwards both counters must hold exactly the number of writes asked for, and both threads say on which CPU they were. A block in which either was switched out is marked and repeated.

A store that waits for its line is buffered, the core goes on and reads its own count back from the buffer, and whoever has the line may write to it many times before it must be given away. So both threads doing nothing else is the kindest case for plain stores: some cores hide nearly all of it. An atomic addition waits for its line every time and shows what the traffic costs.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one write of one thread",
    needs: &["two CPUs", "threads that can be kept on a CPU"],
    touches: &["two CPUs, busy; memory: two pages"],
    saturates: false,
    operations: Operations::Unwatched,
};

const STORE: &str = "store";
const ADD: &str = "add";
const WINDOW_NS: f64 = 20_000.0;
const WINDOWS: u32 = 64;
/// Distance, and when it is measured: the ends first.
const DISTANCES: [(u64, u8); 4] = [(8, 0), (128, 0), (64, 1), (4096, 1)];
/// Two pages: the second counter may be one page on.
const BYTES: u64 = 8192;

impl AnyProbe for FalseSharing {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let MemorySource::Simulated(_) = env.memory {
            return Support::No("simulated memory has no second CPU".to_owned());
        }
        if !CAN_PIN {
            return Support::No("this system does not let a program keep threads on a CPU".to_owned());
        }
        if env.cpus.len() < 2 {
            return Support::No("needs two CPUs; this run may use one".to_owned());
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let mut points = Vec::new();
        for operation in [STORE, ADD] {
            let mut add = |threads, offset_bytes: Option<u64>, priority| {
                points.push(Planned {
                    // One line for two threads, and one for each.
                    rank: if threads == 2 && priority == 0 {
                        env.headline_but_quick(Rank::Detail)
                    } else {
                        Rank::Detail
                    },
                    priority,
                    setup_s: 10e-6,
                    block_s: 2.2e-3,
                    // Lines of their own stay in the caches of their cores.
                    reach: if offset_bytes.is_some_and(|bytes| bytes <= 64) {
                        Reach::Shared
                    } else {
                        Reach::Private
                    },
                    ..Planned::new(Point {
                        operation: Some(operation.to_owned()),
                        offset_bytes,
                        threads: Some(threads),
                        ..Point::default()
                    })
                });
            };
            if env.cpus.len() > 1 {
                for (distance, priority) in DISTANCES {
                    add(2, Some(distance), priority);
                }
            }
            add(1, None, 0);
        }
        points.sort_by_key(|planned| planned.priority);
        points
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        BYTES
    }

    fn cpus(&self, _env: &Env) -> u32 {
        2
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        Ok(Box::new(Writing {
            env,
            rig: Rig::new(&env.clock, env.patience)?,
            page: Arc::new(Page::new(BYTES)?),
            selected: None,
            evidence: HashMap::new(),
        }))
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let operations: Vec<serde_json::Value> = [STORE, ADD]
            .iter()
            .filter_map(|operation| {
                let at = |threads, offset_bytes| {
                    results.iter().find(|result| {
                        let point = &result.point;
                        point.operation.as_deref() == Some(operation)
                            && (point.threads, point.offset_bytes) == (Some(threads), offset_bytes)
                    })
                };
                let ns = |result: Option<&PointResult>| result.map(|result| result.p50);
                let same = at(2, Some(8))?;
                // Beyond the reach of prefetchers that fetch lines in pairs.
                let own = at(2, Some(128)).or_else(|| at(2, Some(4096)))?;
                Some(json!({
                    "operation": operation,
                    "same_line_ns": same.p50,
                    "neighbouring_line_ns": ns(at(2, Some(64))),
                    "own_line_ns": own.p50,
                    "alone_ns": ns(at(1, None)),
                    "slowdown": (own.p50 > 0.0).then(|| ratio(same, own)),
                }))
            })
            .collect();
        if operations.is_empty() {
            return Vec::new();
        }
        vec![SPEC.derived(json!({ "operations": operations }))]
    }
}

/// The two CPUs: the run's own, and another one that is not said to be the same core's second thread.
fn pair(env: &Env) -> [u32; 2] {
    let home = env.home_cpu;
    let same_core = |cpu: u32| {
        env.machine.caches.iter().any(|cache| {
            cache.level == 1 && cache.shared_cpus.contains(&home) && cache.shared_cpus.contains(&cpu)
        })
    };
    let others = || env.cpus.iter().copied().filter(|cpu| *cpu != home);
    let other = others().find(|cpu| !same_core(*cpu)).or_else(|| others().next()).unwrap_or(home);
    [home, other]
}

struct Writing<'env> {
    env: &'env Env,
    rig: Rig,
    page: Arc<Page>,
    selected: Option<Point>,
    evidence: HashMap<Point, Evidence>,
}

/// What the blocks of a point have shown.
#[derive(Default)]
struct Evidence {
    blocks: u64,
    asked: u64,
    /// What was in the counters afterwards.
    counted: u64,
    /// Counters that did not hold what their thread was asked for.
    wrong: u64,
    /// Windows without the other thread.
    alone: u64,
    displaced: u64,
}

/// A thread's increments, one after the other.
#[derive(Clone)]
struct Increments {
    page: Arc<Page>,
    offset: usize,
    atomic: bool,
}

impl Toil for Increments {
    const CHUNK: u64 = 64;

    fn run(&mut self, ops: u64) {
        let word = self.page.word(self.offset);
        if self.atomic {
            for _ in 0..ops {
                word.fetch_add(1, Ordering::Relaxed);
            }
        } else {
            // In a register of its own: counted at base plus index, some cores take seven cycles for what takes them one here.
            let word = std::hint::black_box(word.as_ptr());
            for _ in 0..ops {
                // SAFETY: the word is borrowed from the page, and this thread is the only one that uses it in a round.
                unsafe { word.write_volatile(word.read_volatile().wrapping_add(1)) };
            }
        }
    }
}

impl Evidence {
    /// Takes in a block; whether it is free of disturbances.
    fn add(&mut self, done: &Abreast<Increments>) -> bool {
        self.blocks += 1;
        self.alone += done.alone;
        for thread in &done.threads {
            let counted = thread.work.page.word(thread.work.offset).load(Ordering::Relaxed);
            self.asked += thread.ops;
            self.counted += counted;
            self.wrong += u64::from(counted != thread.ops);
            self.displaced += u64::from(thread.in_place == Some(false));
        }
        done.alone == 0 && done.threads.iter().all(|thread| !rig::was_switched_out(&thread.observed))
    }

    fn checks(&self) -> Vec<Check> {
        vec![
            Check {
                name: "writes".to_owned(),
                ok: self.blocks > 0 && self.wrong == 0 && self.counted == self.asked && self.asked > 0,
                detail: format!(
                    "{} asked for, {} counted; {} windows without the other thread were left out",
                    self.asked, self.counted, self.alone
                ),
            },
            Check {
                name: "each thread on its CPU".to_owned(),
                ok: self.displaced == 0,
                detail: format!("{} times elsewhere in {} blocks", self.displaced, self.blocks),
            },
        ]
    }
}

impl AnySession for Writing<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = Some(point.clone());
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some(point) = self.selected.clone() else {
            return Err(ProbeError::Other("no distance is selected".to_owned()));
        };
        let evidence = self.evidence.entry(point.clone()).or_default();
        let mut cpus = pair(self.env);
        if evidence.blocks % 2 == 1 {
            cpus.reverse();
        }
        let distance = usize::try_from(point.offset_bytes.unwrap_or(0)).unwrap_or(0);
        let works: Vec<(u32, Increments)> = cpus
            .into_iter()
            .zip([0, distance])
            .take(point.threads.unwrap_or(1) as usize)
            .map(|(cpu, offset)| {
                let work = Increments {
                    page: Arc::clone(&self.page),
                    offset,
                    atomic: point.operation.as_deref() == Some(ADD),
                };
                (cpu, work)
            })
            .collect();
        let done = abreast(&mut self.rig, &self.env.clock, block, WINDOW_NS, WINDOWS, &works, || {
            for (_, work) in &works {
                work.page.word(work.offset).store(0, Ordering::Relaxed);
            }
        })?;
        if !evidence.add(&done) {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(evidence) = self.evidence.get(point) else {
            return Proof::default();
        };
        let cpus = pair(self.env);
        let threads = point.threads.unwrap_or(1) as usize;
        Proof {
            checks: evidence.checks(),
            // One thread alone changes its CPU from block to block too.
            findings: Some(json!({ "cpus": cpus, "threads": threads })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::RemoteBlock;
    use latlab_record::Kind;

    use super::*;
    use latlab_probes_testing as testing;

    #[test]
    fn every_distance_and_the_control_are_proved_with_stores_and_additions() {
        let env = testing::env(64 << 20);
        let points = FalseSharing.points(&env);
        if env.cpus.len() > 1 {
            assert_eq!(points.len(), 10);
            testing::assert_proved(&FalseSharing, &env, &points);
        }
    }

    #[test]
    fn a_write_that_was_left_out_or_lost_fails_the_proof() {
        let page = Arc::new(Page::new(BYTES).expect("two pages"));
        let env = testing::env(64 << 20);
        let mut rig = Rig::new(&env.clock, env.patience).expect("a real clock");
        for (change, ok) in [(0, true), (1, false), (u64::MAX, false)] {
            let mut evidence = Evidence::default();
            let works = [(env.home_cpu, Increments { page: Arc::clone(&page), offset: 8, atomic: false })];
            RemoteBlock::take(&env.clock, Some(100), |block| {
                let done = abreast(&mut rig, &env.clock, block, WINDOW_NS, 4, &works, || {
                    page.word(8).store(change, Ordering::Relaxed);
                })?;
                evidence.add(&done);
                Ok(())
            })
            .expect("one thread works");
            assert_eq!(evidence.checks()[0].ok, ok, "{}", evidence.checks()[0].detail);
        }
    }

    #[test]
    fn one_cpu_is_not_enough_and_says_so() {
        let env = testing::env_of_one_cpu(64 << 20);
        assert!(matches!(FalseSharing.supports(&env), Support::No(_)));
        assert!(FalseSharing.points(&env).iter().all(|planned| planned.point.threads == Some(1)));
    }

    #[test]
    fn the_second_cpu_is_not_the_other_thread_of_the_same_core() {
        let mut env = testing::env(64 << 20);
        env.cpus = vec![0, 1, 2, 3];
        env.home_cpu = 2;
        env.machine.caches = vec![latlab_machine::Cache {
            level: 1,
            kind: latlab_machine::CacheKind::Data,
            size_bytes: 1 << 15,
            line_bytes: None,
            ways: None,
            shared_cpus: vec![0, 2],
            cpus: vec![0, 1, 2, 3],
            instances: None,
            source: latlab_machine::CacheSource::Cpuid,
        }];
        assert_eq!(pair(&env), [2, 1]);
        env.cpus = vec![0, 2];
        assert_eq!(pair(&env), [2, 0], "better than none");
    }

    #[test]
    fn the_slowdown_is_that_of_the_shared_line_over_lines_of_their_own() {
        let env = testing::env(64 << 20);
        let result = |threads, offset_bytes, p50| {
            PointResult::new(
                Point {
                    operation: Some(ADD.to_owned()),
                    offset_bytes,
                    threads: Some(threads),
                    ..Point::default()
                },
                p50,
            )
        };
        let all = [
            result(2, Some(8), 30.0),
            result(2, Some(64), 6.0),
            result(2, Some(128), 5.0),
            result(1, None, 4.9),
        ];
        let records = FalseSharing.conclude(&testing::header(&env), &all);
        assert_eq!(records[0].kind, Kind::Derived);
        assert_eq!(
            records[0].findings,
            Some(json!({ "operations": [{
                "operation": "add", "same_line_ns": 30.0, "neighbouring_line_ns": 6.0, "own_line_ns": 5.0,
                "alone_ns": 4.9, "slowdown": {"value": 6.0},
            }]}))
        );
        assert!(FalseSharing.conclude(&testing::header(&env), &all[1..]).is_empty());
    }
}
