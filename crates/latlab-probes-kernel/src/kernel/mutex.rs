//! `kernel.mutex`: what a lock costs, free and fought over.

use std::sync::{Arc, PoisonError};

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::rig::{Abreast, CAN_PIN, Rig, Tally, Toil, abreast};

/// The probe.
pub struct Mutex;

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

/// How many threads want the lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    operation: Turn,
    threads: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Turn {
    LockUnlock,
}

/// How the threads of a point shared the lock; nothing where each block was disturbed.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// Each thread's share of the acquisitions, the one on the run's own CPU first.
    shares: Vec<Option<f64>>,
    /// Between any two acquisitions.
    together_ns: Option<f64>,
}

impl Probe for Mutex {
    type Point = Wanted;
    type Evidence = Evidence;
    type Details = Sharing;
    type Findings = Nothing;
    type Session<'env> = Locking<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.mutex",
        tier: Tier::Kernel,
        title: "a lock, uncontended and contended",
        question: "What does it cost to take a lock, and how much more when other threads want it too?",
        method: "The mutex of Rust's standard library: on Linux a futex, as the C library's is. A thread \
            locks it, increments the counter inside, unlocks it, and repeats this immediately. \
With one thread the lock is free: two atomic operations, and the kernel is never called. With more threads, \
each on a CPU of its own, all do the same without pause: the line with the lock moves from core to core, and \
a thread that finds the lock taken spins for a while (100 iterations) and then sleeps in the kernel until \
it is woken.

A value is the time for one lock and unlock of ONE thread, the mean over a window of about 20 µs for one \
thread and 200 µs for more; the others work from before the first window until after the last, and windows \
that their time stamps do not cover are left out. \
The timed thread differs from block to block. Such a lock is not fair: its last owner takes it again more \
easily, in bursts. So the findings give the share that each thread got and the time between any two \
acquisitions (together_ns), which is what the lock lets through.

All threads run for 0.3 ms before the first window. Afterwards the counter must hold the sum of all \
increments asked for. Going to sleep is part of the work; a block in which another program took a thread's \
CPU is marked and repeated.",
        method_version: 1,
        convention: "one lock and unlock of one thread, with one addition inside",
        needs: &["two CPUs for more than the free lock"],
        touches: &["as many CPUs as threads, busy"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Wanted> {
        if latlab_harness::Stamps::of(&env.clock).is_none() {
            return Plan::no("simulated time does not pass on several threads");
        }
        let most = env.cpus.len().min(most_threads(env.settings.profile));
        let counts = std::iter::successors(Some(1u32), |threads| threads.checked_mul(2));
        let counts: Vec<u32> = counts.take_while(|threads| *threads as usize <= most).collect();
        let plan = Plan::of(counts.iter().map(|threads| planned(env, *threads)).collect())
            .cpus(counts.last().copied().unwrap_or(1));
        if env.cpus.len() < 2 {
            return plan.degraded("only the uncontended lock: this run may use one CPU");
        }
        if !CAN_PIN {
            return plan.degraded("threads cannot be pinned here");
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Wanted]) -> Result<Locking<'env>> {
        Ok(Locking { env, rig: Rig::new(&env.clock, env.patience)?, lock: Arc::new(Lock::default()) })
    }
}

fn planned(env: &Env, threads: u32) -> Planned<Wanted> {
    Planned {
        rank: rank(env, threads <= 2, Rank::Curve),
        setup_s: 10e-6,
        block_s: if threads == 1 { 2e-3 } else { 5.5e-3 },
        priority: u8::from(threads > 2),
        cache_scope: if threads == 1 { CacheScope::First } else { CacheScope::Shared },
        ..Planned::new(Wanted { operation: Turn::LockUnlock, threads })
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

/// Threads and the lock that they want.
pub struct Locking<'env> {
    env: &'env Env,
    rig: Rig,
    lock: Arc<Lock>,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    tally: Tally,
    /// Of the undisturbed blocks: each thread's share of the acquisitions, the one on the first CPU first; ns
    /// between any two.
    shares: Vec<Vec<f64>>,
    together_ns: Vec<f64>,
}

impl Evidence {
    /// Takes in a block whose first thread was on the CPU `first` in order; whether it is free of
    /// disturbances.
    fn add(&mut self, done: &Abreast<Turns>, counted: u64, first: usize, ns_per_tick: f64) -> bool {
        let asked: u64 = done.threads.iter().map(|thread| thread.result.ops).sum();
        self.tally.add(done, [[asked, counted]]);
        let quiet = done.alone == 0
            && done.threads.iter().all(|thread| thread.observed.involuntary_switches.unwrap_or(0) == 0);
        if quiet {
            let rates: Vec<f64> = done.threads.iter().map(|thread| thread.result.rate()).collect();
            let sum: f64 = rates.iter().sum();
            let mut shares: Vec<f64> = rates.iter().map(|rate| rate / sum).collect();
            shares.rotate_right(first);
            self.shares.push(shares);
            self.together_ns.push(ns_per_tick / sum);
        }
        quiet
    }

    fn sharing(&self) -> Sharing {
        let threads = self.shares.first().map_or(0, Vec::len);
        let of = |index: usize| median(self.shares.iter().map(|block| block[index]));
        Sharing {
            shares: (0..threads).map(of).collect(),
            together_ns: median(self.together_ns.iter().copied()),
        }
    }
}

impl Session<Mutex> for Locking<'_> {
    fn block(&mut self, point: &Wanted, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let all = std::iter::once(self.env.home_cpu).chain(other_cpus(self.env));
        let mut cpus: Vec<u32> = all.take(point.threads as usize).collect();
        let first = evidence.tally.blocks % cpus.len();
        cpus.rotate_left(first);
        let works: Vec<(u32, Turns)> =
            cpus.into_iter().map(|cpu| (cpu, Turns(Arc::clone(&self.lock)))).collect();
        let (window_ns, windows) =
            if point.threads == 1 { (WINDOW_NS, WINDOWS) } else { (CONTENDED_WINDOW_NS, CONTENDED_WINDOWS) };
        let done = abreast(&mut self.rig, &self.env.clock, block, window_ns, windows, &works, || {
            self.lock.reset(0);
        })?;
        if !evidence.add(&done, self.lock.counted(), first, self.env.clock.ns(1 << 20) / f64::from(1 << 20)) {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Wanted, evidence: &Evidence) -> Proof<Sharing> {
        let checks = evidence.tally.checks("counter", " additions under the lock", "all threads");
        Proof::of(checks).with(evidence.sharing()).by("std::sync::Mutex")
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{AnyProbe as _, Erased, RemoteBlock, Support};
    use latlab_probes_testing as testing;

    use super::*;

    #[test]
    fn the_free_lock_and_the_one_that_all_want_are_proved_and_shared_out() {
        let env = testing::env(64 << 20);
        let points = Erased(Mutex).points(&env);
        assert_eq!(points[0].point.threads, Some(1));
        assert_eq!(points.len(), env.cpus.len().min(4).ilog2() as usize + 1);
        for (proof, planned) in testing::assert_proved(&Erased(Mutex), &env, &points).iter().zip(&points) {
            let found = proof.findings.clone().expect("shares");
            let sharing: Sharing = serde_json::from_value(found).expect("as it was said");
            let shares: f64 = sharing.shares.iter().flatten().sum();
            // None when the block was disturbed.
            assert!(
                shares.abs() < 1e-9 || (shares - 1.0).abs() < 1e-9,
                "{}: {shares}",
                planned.point.label()
            );
        }
    }

    #[test]
    fn threads_end_at_the_number_of_cpus_and_the_profile() {
        let mut env = testing::env(64 << 20);
        for (cpus, most) in [(1, 1u32), (2, 2), (3, 2), (96, 4)] {
            env.cpus = (0..cpus).collect();
            let plan = Mutex.plan(&env);
            assert_eq!((plan.cpus, plan.points.len()), (most, most.ilog2() as usize + 1));
            // One CPU has the free lock, and the loss is said.
            assert_eq!(matches!(plan.support, Support::Degraded(_)), cpus == 1 || !CAN_PIN);
        }
        env.settings.profile = Profile::Thorough;
        assert_eq!(Mutex.plan(&env).cpus, 64);
    }

    #[test]
    fn an_addition_that_was_lost_fails_the_proof() {
        let env = testing::env(64 << 20);
        let mut locking = Mutex.open(&env, &[]).expect("a real clock");
        let point = Wanted { operation: Turn::LockUnlock, threads: 2 };
        let last = env.cpus[env.cpus.len() - 1];
        for (change, ok) in [(0, true), (u64::MAX, false), (1, false)] {
            let lock = Arc::clone(&locking.lock);
            let works = [env.cpus[0], last].map(|cpu| (cpu, Turns(Arc::clone(&lock))));
            let mut evidence = Evidence::default();
            RemoteBlock::take(&env.clock, Some(50), |block| {
                let done = abreast(&mut locking.rig, &env.clock, block, WINDOW_NS, 4, &works, || {
                    lock.reset(change);
                })?;
                evidence.add(&done, lock.counted(), 0, 1.0);
                Ok(())
            })
            .expect("both threads work");
            let check = &locking.proof(&point, &evidence).checks[0];
            assert_eq!(check.ok, ok, "{}", check.detail);
        }
    }
}
