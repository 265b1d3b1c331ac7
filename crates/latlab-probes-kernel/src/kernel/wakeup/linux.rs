//! Linux: a futex.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use latlab_probes_shared::linux::{Pinned, Scope, runs_only_on, switches, thread_id, wait_while, wake_one};
use latlab_probes_shared::prelude::*;
use latlab_probes_shared::{Joined, start_thread};

use super::{Cpus, Slept, Wakeup, other_cpu, wakes};

pub(super) const HERE: bool = true;
/// A sleeper that does not say that it is about to sleep, or was not woken, for so long is given up: a
/// hundred times the longest time slice.
const PATIENCE: Duration = Duration::from_secs(3);
/// The last number that the word takes: the sleeper ends.
const END: u32 = u32::MAX;

pub(super) fn open(env: &Env) -> Result<Session<'_>> {
    let cpu = other_cpu(env).ok_or_else(|| ProbeError::Other("needs two CPUs".to_owned()))?;
    Session::new(env, cpu, sleep_on_a_futex, PATIENCE * env.patience)
}

/// What the two threads share. The word that is slept on has a line of its own: watching the others must not
/// disturb it.
#[derive(Debug, Default)]
struct Shared {
    word: Line<AtomicU32>,
    /// The number of the word on which the sleeper is about to sleep.
    ready: Line<AtomicU32>,
    /// When it first ran again.
    woken_at: AtomicU64,
    /// How often its CPU switched away from it at its own wish; `u64::MAX` where that is not counted.
    switches: AtomicU64,
    /// Its id, once it runs on its CPU; negative when it could not get there.
    id: AtomicI32,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// How the sleeper waits for the word to change from a number; the new one.
type Sleep = fn(&AtomicU32, u32) -> Option<u32>;

fn sleep_on_a_futex(word: &AtomicU32, value: u32) -> Option<u32> {
    wait_while(word, value, Scope::Threads)
}

#[derive(Debug)]
struct Sleeper {
    shared: Arc<Shared>,
    thread: Joined,
    cpu: u32,
}

impl Sleeper {
    fn start(cpu: u32, stamps: Stamps, sleep: Sleep) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let work = move || run(&theirs, cpu, stamps, sleep);
        let thread = start_thread("sleeper", "starting a thread that sleeps", work)?;
        Ok(Self { shared, thread: thread.into(), cpu })
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.shared.word.0.store(END, Ordering::Release);
        let _ = wake_one(&self.shared.word.0, Scope::Threads);
    }
}

/// The sleeper's thread.
fn run(shared: &Shared, cpu: u32, stamps: Stamps, sleep: Sleep) {
    let Ok(_pinned) = Pinned::to(cpu) else {
        shared.id.store(-1, Ordering::Release);
        return;
    };
    shared.id.store(thread_id(), Ordering::Release);
    let mut number = shared.word.0.load(Ordering::Acquire);
    while number != END {
        let voluntary = switches().map_or(u64::MAX, |(voluntary, _)| voluntary);
        shared.switches.store(voluntary, Ordering::Relaxed);
        shared.ready.0.store(number.wrapping_add(1), Ordering::Release);
        let Some(next) = sleep(&shared.word.0, number) else { return };
        // Taken before anything else, stored where the next announcement makes it visible.
        shared.woken_at.store(stamps.end(), Ordering::Relaxed);
        number = next;
    }
}

/// What the blocks of a point have shown.
#[derive(Debug, Default)]
pub struct Evidence {
    woken: u64,
    /// Nobody was asleep.
    missed: u64,
    /// The woken thread's stamp lies before the wake call.
    backwards: u64,
    /// Times that the sleeper's CPU switched away from it.
    switches: u64,
    /// Switches were not counted, at least in one block.
    uncounted: bool,
}

/// A thread that sleeps on its CPU and this one, which wakes it.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    sleeper: Sleeper,
    _home: Pinned,
    patience: Duration,
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, cpu: u32, sleep: Sleep, patience: Duration) -> Result<Self> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("waking needs a real clock".to_owned()))?;
        let sleeper = Sleeper::start(cpu, stamps, sleep)?;
        Ok(Self { env, stamps, sleeper, _home: Pinned::to(env.home_cpu)?, patience })
    }

    /// Watches until the sleeper is about to sleep on the word's present number.
    fn wait_for_the_sleeper(&self) -> Result<()> {
        let shared = &self.sleeper.shared;
        let number = shared.word.0.load(Ordering::Relaxed).wrapping_add(1);
        let mut begun = None;
        let mut spins = 0u32;
        while shared.ready.0.load(Ordering::Acquire) != number {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 12) {
                let begun = *begun.get_or_insert_with(Instant::now);
                if shared.id.load(Ordering::Acquire) < 0 {
                    return Err(ProbeError::Other(format!(
                        "the sleeper could not be pinned to CPU {}",
                        self.sleeper.cpu
                    )));
                }
                let ended = self.sleeper.thread.0.as_ref().is_none_or(JoinHandle::is_finished);
                if ended || begun.elapsed() > self.patience {
                    let why = if ended { "ended" } else { "did not wake up" };
                    return Err(ProbeError::Other(format!("the thread that sleeps {why}")));
                }
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// One sleep and its end: the stamps of the call and of the sleeper, and how many slept.
    fn wake(&self, sleep_ticks: u64) -> Result<(u64, u64, usize)> {
        let asleep = self.stamps.end();
        let shared = &self.sleeper.shared;
        let number = shared.word.0.load(Ordering::Relaxed);
        // 2^32 wake-ups take days; the last number must not come up.
        let next = (number + 1) % END;
        while self.stamps.end().saturating_sub(asleep) < sleep_ticks {
            std::hint::spin_loop();
        }
        let begin = self.stamps.begin();
        shared.word.0.store(next, Ordering::Release);
        let woken = wake_one(&shared.word.0, Scope::Threads)
            .ok_or_else(|| ProbeError::Other("the system refuses futexes".to_owned()))?;
        self.wait_for_the_sleeper()?;
        Ok((begin, shared.woken_at.load(Ordering::Relaxed), woken))
    }

    fn switches(&self) -> Option<u64> {
        let count = self.sleeper.shared.switches.load(Ordering::Relaxed);
        (count != u64::MAX).then_some(count)
    }
}

impl latlab_harness::Session<Wakeup> for Session<'_> {
    fn select(&mut self, _point: &Slept) -> Result<()> {
        self.wait_for_the_sleeper()
    }

    fn block(&mut self, point: &Slept, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        match u32::try_from(self.sleeper.shared.id.load(Ordering::Acquire)) {
            Ok(sleeper) if sleeper > 0 => block.set_waits_for(sleeper),
            _ => block.set_waits(),
        }
        // The slowest ways out of an idle state that a machine states are some hundreds of microseconds.
        block.set_tail_threshold_ns(500e3);
        let sleep_ticks = self.env.clock.ticks(point.sleep_ns as f64);
        // The first one has slept since the last block, and longer than the point says.
        self.wake(0)?;
        let before = self.switches();
        let (mut woken, mut missed, mut backwards) = (0, 0, 0);
        for _ in 0..wakes(self.env.settings.profile, point.sleep_ns) {
            let (begin, ran, sleepers) = self.wake(sleep_ticks)?;
            if sleepers == 0 {
                missed += 1;
                continue;
            }
            woken += 1;
            backwards += u64::from(ran < begin);
            block.span(begin, ran);
        }
        match before.zip(self.switches()) {
            Some((before, after)) => evidence.switches += after.saturating_sub(before),
            None => evidence.uncounted = true,
        }
        evidence.woken += woken;
        evidence.missed += missed;
        evidence.backwards += backwards;
        if woken == 0 {
            return Err(ProbeError::Proof("no wake-up found the sleeper asleep".to_owned()));
        }
        if missed > woken {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Slept, evidence: &Evidence) -> Proof<Cpus> {
        let id = self.sleeper.shared.id.load(Ordering::Acquire);
        let (from_cpu, to_cpu) = (self.env.home_cpu, self.sleeper.cpu);
        // Emulated systems return zeros.
        let is_counted = !evidence.uncounted && evidence.switches > 0;
        let checks = vec![
            Check {
                name: "every wake-up that counts found the sleeper asleep".to_owned(),
                // Others on its CPU make the sleeper late; one that never sleeps is never woken.
                ok: evidence.woken > 0,
                detail: format!(
                    "the kernel had a sleeper to wake {} times, and none {} times, which are not counted",
                    evidence.woken, evidence.missed
                ),
            },
            Check {
                name: "the sleeper gave up its CPU each time".to_owned(),
                ok: !is_counted || evidence.switches >= evidence.woken,
                detail: if is_counted {
                    format!("{} voluntary switches, {} sleeps", evidence.switches, evidence.woken)
                } else {
                    "switches are not counted here".to_owned()
                },
            },
            Check {
                name: "the woken thread's stamps lie after the calls".to_owned(),
                ok: evidence.backwards == 0,
                detail: format!("{} of {} lie before", evidence.backwards, evidence.woken),
            },
            Check {
                name: "sleeper and waker kept to their CPUs".to_owned(),
                ok: runs_only_on(id, to_cpu) && runs_only_on(thread_id(), from_cpu),
                detail: format!("CPU {from_cpu} woke CPU {to_cpu}"),
            },
        ];
        Proof::of(checks).with(Cpus { from_cpu, to_cpu }).by("futex")
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{Probe as _, RemoteBlock, Session as _, Support};
    use latlab_probes_testing as testing;

    use super::*;
    use crate::kernel::Placement;

    #[test]
    fn one_cpu_is_refused_in_words() {
        let env = testing::env_of_one_cpu(64 << 20);
        let Support::No(reason) = Wakeup.plan(&env).support else {
            panic!("there is nobody to wake");
        };
        assert!(reason.contains("two CPUs"), "{reason}");
    }

    /// On the CPU of the one who wakes, so that these tests need no second one: it gives way where the real
    /// one sleeps.
    fn watches(word: &AtomicU32, value: u32) -> Option<u32> {
        loop {
            let now = word.load(Ordering::Acquire);
            if now != value {
                return Some(now);
            }
            std::thread::yield_now();
        }
    }

    fn gone(_: &AtomicU32, _: u32) -> Option<u32> {
        None
    }

    /// Takes a block with a sleeper that does what a test plants, with little patience; why that failed.
    fn error(sleep: Sleep) -> String {
        let env = testing::env(64 << 20);
        let point = Slept { sleep_ns: 1_000_000, placement: Placement::AcrossBlocking };
        let mut session = Session::new(&env, env.home_cpu, sleep, testing::LONG).expect("a real clock");
        let measured = session.select(&point).and_then(|()| {
            let block = |block: &mut Block| session.block(&point, &mut Evidence::default(), block);
            RemoteBlock::take(&env.clock, None, block)
        });
        measured.expect_err("there is no figure").to_string()
    }

    #[test]
    fn a_sleeper_that_does_not_sleep_gives_no_figure() {
        assert_eq!(error(watches), "no wake-up found the sleeper asleep");
    }

    #[test]
    fn a_sleeper_that_is_gone_is_not_waited_for() {
        assert_eq!(error(gone), "the thread that sleeps ended");
    }
}
