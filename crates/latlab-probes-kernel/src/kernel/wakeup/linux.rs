//! Linux: a futex.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Check, Point};
use serde_json::json;

use super::{other_cpu, wakes};
use latlab_probes_shared::linux::{Pinned, Scope, runs_only_on, switches, thread_id, wait_while, wake_one};

pub(super) const HERE: bool = true;
/// A sleeper that does not say that it is about to sleep, or was not woken, for so long is given up: a hundred times the longest
/// time slice.
const PATIENCE: Duration = Duration::from_secs(3);
/// The last number that the word takes: the sleeper ends.
const END: u32 = u32::MAX;

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    let stamps =
        Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other("waking needs a real clock".to_owned()))?;
    let cpu = other_cpu(env).ok_or_else(|| ProbeError::Other("needs two CPUs".to_owned()))?;
    Ok(Box::new(Waking {
        env,
        stamps,
        sleeper: Sleeper::start(cpu, stamps, sleep_on_a_futex)?,
        _home: Pinned::to(env.home_cpu)?,
        patience: PATIENCE * env.patience,
        all: Vec::new(),
        selected: 0,
    }))
}

/// What the two threads share. The word that is slept on has a line of its own: watching the others must not disturb it.
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
    thread: Option<JoinHandle<()>>,
    cpu: u32,
}

impl Sleeper {
    fn start(cpu: u32, stamps: Stamps, sleep: Sleep) -> Result<Self, ProbeError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sleeper".to_owned())
            .spawn(move || run(&theirs, cpu, stamps, sleep))
            .map_err(|source| ProbeError::System {
                what: "starting a thread that sleeps".to_owned(),
                source,
            })?;
        Ok(Self { shared, thread: Some(thread), cpu })
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.shared.word.0.store(END, Ordering::Release);
        let _ = wake_one(&self.shared.word.0, Scope::Threads);
        if let Some(thread) = self.thread.take() {
            // A sleeper that panicked has already failed its block.
            let _ = thread.join();
        }
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
        let Some(next) = sleep(&shared.word.0, number) else {
            return;
        };
        // Taken before anything else, stored where the next announcement makes it visible.
        shared.woken_at.store(stamps.end(), Ordering::Relaxed);
        number = next;
    }
}

/// The wake-ups of one point.
#[derive(Debug)]
struct Wakes {
    point: Point,
    woken: u64,
    /// Nobody was asleep.
    missed: u64,
    /// The woken thread's stamp lies before the wake call.
    backwards: u64,
    /// Times that the sleeper's CPU switched away from it; `None` where that is not counted.
    switches: Option<u64>,
}

struct Waking<'env> {
    env: &'env Env,
    stamps: Stamps,
    sleeper: Sleeper,
    _home: Pinned,
    patience: Duration,
    all: Vec<Wakes>,
    selected: usize,
}

impl Waking<'_> {
    /// Watches until the sleeper is about to sleep on the word's present number.
    fn wait_for_the_sleeper(&self) -> Result<(), ProbeError> {
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
                        "the sleeper could not be kept on CPU {}",
                        self.sleeper.cpu
                    )));
                }
                let ended = self.sleeper.thread.as_ref().is_none_or(JoinHandle::is_finished);
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
    fn wake(&self, sleep_ticks: u64) -> Result<(u64, u64, usize), ProbeError> {
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

impl AnySession for Waking<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = if let Some(known) = self.all.iter().position(|wakes| wakes.point == *point) {
            known
        } else {
            self.all.push(Wakes {
                point: point.clone(),
                woken: 0,
                missed: 0,
                backwards: 0,
                switches: Some(0),
            });
            self.all.len() - 1
        };
        self.wait_for_the_sleeper()
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let sleep_ns = self
            .all
            .get(self.selected)
            .and_then(|wakes| wakes.point.sleep_ns)
            .ok_or_else(|| ProbeError::Other("no sleep is selected".to_owned()))?;
        match u32::try_from(self.sleeper.shared.id.load(Ordering::Acquire)) {
            Ok(sleeper) if sleeper > 0 => block.set_waits_for(sleeper),
            _ => block.set_waits(),
        }
        // The slowest ways out of an idle state that a machine states are some hundreds of microseconds.
        block.set_tail_threshold_ns(500e3);
        let sleep_ticks = self.env.clock.ticks(sleep_ns as f64);
        // The first one has slept since the last block, and longer than the point says.
        self.wake(0)?;
        let before = self.switches();
        let (mut woken, mut missed, mut backwards) = (0, 0, 0);
        for _ in 0..wakes(self.env.settings.profile, sleep_ns) {
            let (begin, ran, sleepers) = self.wake(sleep_ticks)?;
            if sleepers == 0 {
                missed += 1;
                continue;
            }
            woken += 1;
            backwards += u64::from(ran < begin);
            block.span(begin, ran);
        }
        let switched = before.zip(self.switches()).map(|(before, after)| after.saturating_sub(before));
        let own = &mut self.all[self.selected];
        own.woken += woken;
        own.missed += missed;
        own.backwards += backwards;
        own.switches = own.switches.zip(switched).map(|(earlier, own)| earlier + own);
        if woken == 0 {
            return Err(ProbeError::Proof("no wake-up found the sleeper asleep".to_owned()));
        }
        if missed > woken {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(own) = self.all.iter().find(|wakes| wakes.point == *point) else {
            return Proof::default();
        };
        let id = self.sleeper.shared.id.load(Ordering::Acquire);
        // Emulated systems return zeros.
        let counted = own.switches.filter(|switches| *switches > 0);
        Proof {
            checks: vec![
                Check {
                    name: "every wake-up that counts found the sleeper asleep".to_owned(),
                    // Others on its CPU make the sleeper late; one that never sleeps is never woken.
                    ok: own.woken > 0,
                    detail: format!(
                        "the kernel had a sleeper to wake {} times, and none {} times, which are not counted",
                        own.woken, own.missed
                    ),
                },
                Check {
                    name: "the sleeper gave up its CPU each time".to_owned(),
                    ok: counted.is_none_or(|switches| switches >= own.woken),
                    detail: counted.map_or_else(
                        || "switches are not counted here".to_owned(),
                        |switches| format!("{switches} voluntary switches, {} sleeps", own.woken),
                    ),
                },
                Check {
                    name: "the woken thread's stamps lie after the calls".to_owned(),
                    ok: own.backwards == 0,
                    detail: format!("{} of {} lie before", own.backwards, own.woken),
                },
                Check {
                    name: "sleeper and waker kept to their CPUs".to_owned(),
                    ok: runs_only_on(id, self.sleeper.cpu) && runs_only_on(thread_id(), self.env.home_cpu),
                    detail: format!("CPU {} woke CPU {}", self.env.home_cpu, self.sleeper.cpu),
                },
            ],
            engine: Some("futex".to_owned()),
            findings: Some(json!({ "from_cpu": self.env.home_cpu, "to_cpu": self.sleeper.cpu })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{AnyProbe, Planned, Support, measure_once};

    use super::*;
    use crate::kernel::wakeup::{ACROSS, Wakeup};
    use latlab_probes_testing as testing;

    #[test]
    fn wake_ups_are_proved_after_every_length_of_sleep() {
        let env = testing::env(64 << 20);
        if env.cpus.len() < 2 {
            return;
        }
        testing::assert_proved(&Wakeup, &env, &Wakeup.points(&env));
    }

    #[test]
    fn one_cpu_is_refused_in_words() {
        let env = testing::env_of_one_cpu(64 << 20);
        let Support::No(reason) = Wakeup.supports(&env) else {
            panic!("there is nobody to wake");
        };
        assert!(reason.contains("two CPUs"), "{reason}");
    }

    /// The probe with a sleeper that does what a test plants, and little patience.
    struct Planted(Sleep);

    impl AnyProbe for Planted {
        fn spec(&self) -> &'static latlab_harness::Spec {
            Wakeup.spec()
        }
        fn supports(&self, env: &Env) -> Support {
            Wakeup.supports(env)
        }
        fn points(&self, _: &Env) -> Vec<Planned> {
            vec![Planned::new(Point {
                sleep_ns: Some(1_000_000),
                placement: Some(ACROSS.to_owned()),
                ..Point::default()
            })]
        }
        fn memory_bytes(&self, _: &Env) -> u64 {
            0
        }
        fn open<'env>(
            &'env self,
            env: &'env Env,
            _: &[Planned],
        ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
            let stamps = Stamps::of(&env.clock).expect("a real clock");
            Ok(Box::new(Waking {
                env,
                stamps,
                sleeper: Sleeper::start(env.home_cpu, stamps, self.0)?,
                _home: Pinned::to(env.home_cpu)?,
                patience: testing::LONG,
                all: Vec::new(),
                selected: 0,
            }))
        }
    }

    /// On the CPU of the one who wakes, so that these tests need no second one: it gives way where the real one sleeps.
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

    fn measure(sleep: Sleep) {
        let env = testing::env(64 << 20);
        let planted = Planted(sleep);
        let _ = measure_once(&planted, &env, &planted.points(&env));
    }

    #[test]
    #[should_panic(expected = "no wake-up found the sleeper asleep")]
    fn a_sleeper_that_does_not_sleep_gives_no_figure() {
        measure(watches);
    }

    #[test]
    #[should_panic(expected = "the thread that sleeps ended")]
    fn a_sleeper_that_is_gone_is_not_waited_for() {
        measure(gone);
    }
}
