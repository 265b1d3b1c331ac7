//! `kernel.mutex`: what a lock costs, free and fought over.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use latlab_harness::{
    AnyProbe, AnySession, Block, Env, Operations, Planned, ProbeError, Proof, Rank, Reach, Spec, Support,
    Tier,
};
use latlab_record::{Check, Point, Profile, Unit};
use serde_json::json;

use latlab_probes_shared::rig::{self, Abreast, CAN_PIN, Rig, Toil, abreast};

/// The probe.
pub struct Mutex;

static SPEC: Spec = Spec {
    id: "kernel.mutex",
    tier: Tier::Kernel,
    title: "a lock, free and fought over",
    question: "What does it cost to take a lock, and how much more when other threads want it too?",
    method: "The mutex of Rust's standard library: on Linux a futex, as the C library's is. A thread locks it, increments the counter inside, unlocks it, and does so again at once. \
With one thread the lock is free: two atomic operations, and the kernel is never called. With more threads, each on a CPU of its own, all do the same without pause: the line with the lock moves from core to core, \
who finds the lock taken spins for a while (100 turns) and then sleeps in the kernel until it is woken.

A value is the time for one lock and unlock of ONE thread, the mean over a window of about 20 us for one thread and 200 us for more; the others work from before the first window until after the last, and windows that their time stamps do not cover are left out. \
The timed thread is another one in each block. Such a lock is not fair: who has it takes it again more easily, in bursts. So the findings give the share that each thread got and the time between any two acquisitions (together_ns), which is what the lock lets through.

All threads are at work for 0.3 ms before the first window. Afterwards the counter must hold the sum of all increments asked for. Going to sleep is part of the work; a block in which a thread was made to leave its CPU for somebody else is marked and repeated.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one lock and unlock of one thread, with one addition inside",
    needs: &["two CPUs for more than the free lock"],
    touches: &["as many CPUs as threads, busy"],
    saturates: false,
    operations: Operations::Unwatched,
};

const LOCK_UNLOCK: &str = "lock-unlock";
const WINDOW_NS: f64 = 20_000.0;
const WINDOWS: u32 = 64;
/// Longer where threads sleep and wake up (tens of microseconds), so that most windows are alike.
const CONTENDED_WINDOW_NS: f64 = 200_000.0;
const CONTENDED_WINDOWS: u32 = 24;

fn most_threads(profile: Profile) -> usize {
    match profile {
        Profile::Quick => 4,
        Profile::Standard => 16,
        Profile::Thorough => 64,
    }
}

impl AnyProbe for Mutex {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if latlab_harness::Stamps::of(&env.clock).is_none() {
            return Support::No("simulated time does not pass on several threads".to_owned());
        }
        if env.cpus.len() < 2 {
            return Support::Degraded("only the free lock: this run may use one CPU".to_owned());
        }
        if !CAN_PIN {
            return Support::Degraded("threads choose their CPUs themselves here".to_owned());
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let most = env.cpus.len().min(most_threads(env.settings.profile));
        let counts = std::iter::successors(Some(1u32), |threads| threads.checked_mul(2));
        counts
            .take_while(|threads| *threads as usize <= most)
            .map(|threads| Planned {
                rank: if threads <= 2 { env.headline_but_quick(Rank::Curve) } else { Rank::Curve },
                setup_s: 10e-6,
                block_s: if threads == 1 { 2e-3 } else { 5.5e-3 },
                priority: u8::from(threads > 2),
                reach: if threads == 1 { Reach::First } else { Reach::Shared },
                ..Planned::new(Point {
                    operation: Some(LOCK_UNLOCK.to_owned()),
                    threads: Some(threads),
                    ..Point::default()
                })
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        0
    }

    fn cpus(&self, env: &Env) -> u32 {
        self.points(env).iter().filter_map(|planned| planned.point.threads).max().unwrap_or(1)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        Ok(Box::new(Locking {
            env,
            rig: Rig::new(&env.clock, env.patience)?,
            lock: Arc::new(Lock::default()),
            selected: None,
            evidence: HashMap::new(),
        }))
    }
}

/// The lock and what it guards, on lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct Lock(std::sync::Mutex<u64>);

impl Lock {
    fn counted(&self) -> u64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reset(&self, to: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

/// One thread's use of it.
#[derive(Clone)]
struct Turns(Arc<Lock>);

impl Toil for Turns {
    const CHUNK: u64 = 8;

    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            let mut counter = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counter = counter.wrapping_add(1);
        }
    }
}

struct Locking<'env> {
    env: &'env Env,
    rig: Rig,
    lock: Arc<Lock>,
    selected: Option<u32>,
    evidence: HashMap<u32, Evidence>,
}

/// What the blocks of a point have shown.
#[derive(Default)]
struct Evidence {
    blocks: usize,
    asked: u64,
    counted: u64,
    wrong: u64,
    alone: u64,
    displaced: u64,
    /// Of the undisturbed blocks: each thread's share of the acquisitions, the one on the first CPU first; ns between any two.
    shares: Vec<Vec<f64>>,
    together_ns: Vec<f64>,
}

impl Evidence {
    /// Takes in a block whose first thread was on the CPU `first` in order; whether it is free of disturbances.
    fn add(&mut self, done: &Abreast<Turns>, counted: u64, first: usize, ns_per_tick: f64) -> bool {
        let asked: u64 = done.threads.iter().map(|thread| thread.ops).sum();
        self.blocks += 1;
        self.asked += asked;
        self.counted += counted;
        self.wrong += u64::from(counted != asked);
        self.alone += done.alone;
        self.displaced += done.threads.iter().filter(|thread| thread.in_place == Some(false)).count() as u64;
        let quiet = done.alone == 0
            && done.threads.iter().all(|thread| thread.observed.involuntary_switches.unwrap_or(0) == 0);
        if quiet {
            let rates: Vec<f64> = done.threads.iter().map(rig::Beside::rate).collect();
            let sum: f64 = rates.iter().sum();
            let mut shares: Vec<f64> = rates.iter().map(|rate| rate / sum).collect();
            shares.rotate_right(first);
            self.shares.push(shares);
            self.together_ns.push(ns_per_tick / sum);
        }
        quiet
    }

    fn checks(&self) -> Vec<Check> {
        vec![
            Check {
                name: "counter".to_owned(),
                ok: self.blocks > 0 && self.asked > 0 && self.wrong == 0,
                detail: format!(
                    "{} additions under the lock asked for, {} counted; {} windows without all threads were left out",
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

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| latlab_stats::quantile(&values, 0.5))
}

impl AnySession for Locking<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = point.threads.filter(|threads| *threads > 0);
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some(threads) = self.selected else {
            return Err(ProbeError::Other("no number of threads is selected".to_owned()));
        };
        let evidence = self.evidence.entry(threads).or_default();
        let count = threads as usize;
        let mut cpus: Vec<u32> = std::iter::once(self.env.home_cpu)
            .chain(self.env.cpus.iter().copied().filter(|cpu| *cpu != self.env.home_cpu))
            .take(count)
            .collect();
        let first = evidence.blocks % cpus.len();
        cpus.rotate_left(first);
        let works: Vec<(u32, Turns)> =
            cpus.into_iter().map(|cpu| (cpu, Turns(Arc::clone(&self.lock)))).collect();
        let (window_ns, windows) =
            if threads == 1 { (WINDOW_NS, WINDOWS) } else { (CONTENDED_WINDOW_NS, CONTENDED_WINDOWS) };
        let done = abreast(&mut self.rig, &self.env.clock, block, window_ns, windows, &works, || {
            self.lock.reset(0);
        })?;
        if !evidence.add(&done, self.lock.counted(), first, self.env.clock.ns(1 << 20) / f64::from(1 << 20)) {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(evidence) = point.threads.and_then(|threads| self.evidence.get(&threads)) else {
            return Proof::default();
        };
        let threads = evidence.shares.first().map_or(0, Vec::len);
        let shares: Vec<Option<f64>> = (0..threads)
            .map(|index| median(evidence.shares.iter().map(|block| block[index]).collect()))
            .collect();
        Proof {
            checks: evidence.checks(),
            engine: Some("std::sync::Mutex".to_owned()),
            findings: Some(json!({
                "shares": shares,
                "together_ns": median(evidence.together_ns.clone()),
            })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::RemoteBlock;

    use super::*;
    use latlab_probes_testing as testing;

    #[test]
    fn the_free_lock_and_the_one_that_all_want_are_proved() {
        let env = testing::env(64 << 20);
        let points = Mutex.points(&env);
        assert_eq!(points[0].point.threads, Some(1));
        assert_eq!(points.len(), env.cpus.len().min(4).ilog2() as usize + 1);
        for (proof, planned) in testing::assert_proved(&Mutex, &env, &points).iter().zip(&points) {
            let findings = proof.findings.as_ref().expect("shares");
            let shares: f64 = findings["shares"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .sum();
            // None when the block was disturbed.
            assert!(
                shares.abs() < 1e-9 || (shares - 1.0).abs() < 1e-9,
                "{}: {shares}",
                planned.point.label()
            );
        }
    }

    #[test]
    fn on_one_cpu_there_is_the_free_lock_and_the_loss_is_said() {
        let env = testing::env_of_one_cpu(64 << 20);
        assert!(matches!(Mutex.supports(&env), Support::Degraded(_)));
        assert_eq!((Mutex.points(&env).len(), Mutex.cpus(&env)), (1, 1));
    }

    #[test]
    fn threads_end_at_the_number_of_cpus_and_the_profile() {
        let mut env = testing::env(64 << 20);
        for (cpus, most) in [(1, 1), (2, 2), (3, 2), (96, 4)] {
            env.cpus = (0..cpus).collect();
            assert_eq!(Mutex.cpus(&env), most);
        }
        env.settings.profile = Profile::Thorough;
        assert_eq!(Mutex.cpus(&env), 64);
    }

    #[test]
    fn an_addition_that_was_lost_fails_the_proof() {
        let env = testing::env(64 << 20);
        let mut rig = Rig::new(&env.clock, env.patience).expect("a real clock");
        let lock = Arc::new(Lock::default());
        let last = env.cpus[env.cpus.len() - 1];
        for (change, ok) in [(0, true), (u64::MAX, false), (1, false)] {
            let works = [env.cpus[0], last].map(|cpu| (cpu, Turns(Arc::clone(&lock))));
            let mut evidence = Evidence::default();
            RemoteBlock::take(&env.clock, Some(50), |block| {
                let done = abreast(&mut rig, &env.clock, block, WINDOW_NS, 4, &works, || {
                    lock.reset(change);
                })?;
                evidence.add(&done, lock.counted(), 0, 1.0);
                Ok(())
            })
            .expect("both threads work");
            assert_eq!(evidence.checks()[0].ok, ok, "{}", evidence.checks()[0].detail);
        }
    }
}
