//! Threads that stay on CPUs of the session's choice, start together and are watched while they work.
//!
//! ```text
//! Rig ──(CPU, work) for each thread──► pin ► counters ► start line ► work ► counters ──► Done
//! ```
//! Threads persist from round to round and move to another CPU when a round says so. Every wait in here has a
//! bound: who waits longer than a partner that runs would ever take lets others run, and gives up when the
//! round is over.

mod abreast;
mod page;
mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use latlab_clock::Clock;
use latlab_harness::{Block, Env, MemorySource, ProbeError, Stamps, pin_this_thread};
use latlab_observe::{Observer, Reading};
use latlab_record::Observed;

use crate::{Joined, Result, start_thread};

pub use abreast::{Abreast, Beside, Toil, abreast};
pub use page::Page;
pub use tally::Tally;

/// A round that lasts longer than this is cut short with what it has, ns: fifty times what a block takes.
const ENOUGH_NS: f64 = 100e6;
/// A round that has nothing after this long fails, ns: hundreds of a busy scheduler's time slices (3 to 4
/// ms).
const LONGEST_NS: f64 = 1e9;
/// Rounds at most until one has a window in which all threads were at work.
const ROUNDS: u32 = 3;
/// Turns on the start line between two clock reads; each has a pause in it, so this is up to 0.2 ms.
const START_SPINS: u32 = 1 << 12;

/// Whether threads can be kept on one CPU.
pub const CAN_PIN: bool = cfg!(target_os = "linux");

/// Whether the calling thread runs on this CPU now; `None` when the kernel does not say.
#[cfg(target_os = "linux")]
fn is_on(cpu: u32) -> Option<bool> {
    // SAFETY: asks for a number.
    let here = u32::try_from(unsafe { libc::sched_getcpu() }).ok()?;
    Some(here == cpu)
}

/// Whether the calling thread runs on this CPU now: not known here.
#[cfg(not(target_os = "linux"))]
fn is_on(_cpu: u32) -> Option<bool> {
    None
}

/// Why no two threads can be measured beside each other in these surroundings; `None` when they can.
pub fn no_two_cpus(env: &Env) -> Option<&'static str> {
    if let MemorySource::Simulated(_) = env.memory {
        return Some("simulated memory has no second CPU");
    }
    if !CAN_PIN {
        return Some("this system cannot pin threads to a CPU");
    }
    (env.cpus.len() < 2).then_some("needs two CPUs; this run may use one")
}

/// Operations of a window of about so many nanoseconds, chosen as
/// [`Block::window_ops`] does it, by trials that may fail: `trial` does so many operations in one window,
/// whose begin and end it returns. Errors: the first one of the trials.
pub fn window_ops(
    clock: &Clock,
    block: &mut Block,
    window_ns: f64,
    mut trial: impl FnMut(u64) -> Result<Option<(u64, u64)>>,
) -> Result<u64> {
    let mut failed = None;
    let ops = block.window_ops(window_ns, |ops| match trial(ops) {
        Ok(span) => span.map_or(f64::INFINITY, |(begin, end)| clock.ns(end.saturating_sub(begin))),
        Err(error) => {
            failed.get_or_insert(error);
            f64::INFINITY
        }
    });
    failed.map_or(Ok(ops), Err)
}

/// What one thread does in a round.
pub type Work<R> = Box<dyn FnOnce(&mut Place) -> R + Send>;

/// What became of one thread's work.
pub struct Done<R> {
    /// What it returned.
    pub result: R,
    /// What happened to the thread meanwhile.
    pub observed: Observed,
    /// Whether it was on the CPU that it was sent to, before and after; `None` where the system does not say.
    pub in_place: Option<bool>,
}

/// Several threads, waiting for a round.
pub struct Rig {
    stamps: Stamps,
    enough: u64,
    longest: u64,
    rounds: u32,
    hands: Vec<Hand>,
}

/// Dropped in this order: without orders the thread ends.
struct Hand {
    orders: Sender<Order>,
    _thread: Joined,
}

/// A work that reports for itself; it is given its thread's counters.
type Errand = Box<dyn FnOnce(&Arc<Observer>) + Send>;

struct Order {
    cpu: u32,
    work: Errand,
}

/// What the threads of one round share.
struct Round {
    threads: usize,
    arrived: AtomicUsize,
    /// Threads whose work has ended and whose counters were read.
    finished: AtomicUsize,
    /// Somebody gave up, or died: nobody waits for anybody any more.
    over: AtomicBool,
}

/// A thread's place in a round.
pub struct Place {
    /// Reads the clock.
    pub stamps: Stamps,
    round: Arc<Round>,
    started: usize,
    /// The counters when all had started for the first time.
    before: Option<Reading>,
    /// The thread's, once it is on its CPU.
    observer: Option<Arc<Observer>>,
    enough_at: u64,
    longest_at: u64,
}

impl Place {
    /// Waits until every thread of the round is here as often as this one. False when the round is over.
    ///
    /// What happened to the thread before the first start does not count: orders are still being given, by a
    /// thread that may need this CPU for it.
    pub fn start(&mut self) -> bool {
        self.started += 1;
        let met = self.meet(&self.round.arrived, self.started * self.round.threads);
        if self.before.is_none() {
            self.before = self.observer.as_ref().map(|observer| observer.read());
        }
        met && !self.is_over()
    }

    /// Waits until so many have come.
    fn meet(&self, count: &AtomicUsize, all: usize) -> bool {
        count.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0u32;
        while count.load(Ordering::Acquire) < all {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(START_SPINS) && !self.give_way() {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Keeps this core busy for so long, so that it runs at the frequency at which it will work.
    pub fn heat(&self, ticks: u64) {
        let end = self.stamps.begin().saturating_add(ticks);
        while self.stamps.end() < end && !self.is_over() {}
    }

    /// Lets somebody else run on this CPU, because a partner is late. False when the round is over: stop
    /// waiting.
    #[cold]
    #[must_use]
    #[inline]
    pub fn give_way(&self) -> bool {
        if self.stamps.begin() > self.longest_at {
            self.end();
        }
        if self.is_over() {
            return false;
        }
        std::thread::yield_now();
        true
    }

    /// Whether the round took so long that what there is must do.
    #[inline]
    pub fn is_enough(&self) -> bool {
        self.stamps.begin() > self.enough_at
    }

    /// Ends the round for all.
    pub fn end(&self) {
        self.round.over.store(true, Ordering::Release);
    }

    /// Whether the round has ended.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.round.over.load(Ordering::Acquire)
    }
}

/// Ends the round when its thread dies.
struct Mortal(Arc<Round>);

impl Drop for Mortal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.over.store(true, Ordering::Release);
        }
    }
}

impl Rig {
    /// Without threads yet. It waits and tries `patience` times as long as a run does.
    /// Errors: with a simulated clock: its time does not pass on several threads.
    pub fn new(clock: &Clock, patience: u32) -> Result<Self> {
        let stamps = Stamps::of(clock)
            .ok_or_else(|| ProbeError::Other("several threads need a real clock".to_owned()))?;
        Ok(Self {
            stamps,
            enough: clock.ticks(f64::from(patience) * ENOUGH_NS),
            longest: clock.ticks(f64::from(patience) * LONGEST_NS),
            rounds: patience * ROUNDS,
            hands: Vec::new(),
        })
    }

    /// One round: each work on its CPU, on a thread of its own. Returns in the order of the works, when all
    /// have ended. Fails when a thread cannot be started, or died.
    pub fn run<R: Send + 'static>(&mut self, works: Vec<(u32, Work<R>)>) -> Result<Vec<Done<R>>> {
        while self.hands.len() < works.len() {
            let hand = Hand::new(self.hands.len())?;
            self.hands.push(hand);
        }
        let round = Arc::new(Round {
            threads: works.len(),
            arrived: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let now = self.stamps.begin();
        let (report, reports) = channel();
        let mut all: Vec<Option<Done<R>>> = works.iter().map(|_| None).collect();
        for (index, ((cpu, work), hand)) in works.into_iter().zip(&self.hands).enumerate() {
            let mut place = Place {
                stamps: self.stamps,
                round: Arc::clone(&round),
                started: 0,
                before: None,
                observer: None,
                enough_at: now.saturating_add(self.enough),
                longest_at: now.saturating_add(self.longest),
            };
            let report: Sender<(usize, Done<R>)> = report.clone();
            let work = move |observer: &Arc<Observer>| {
                place.observer = Some(Arc::clone(observer));
                let mortal = Mortal(Arc::clone(&place.round));
                let was_there = is_on(cpu);
                let result = work(&mut place);
                let after = observer.read();
                let observed =
                    place.before.as_ref().map_or_else(Observed::default, |before| after.since(before));
                let in_place = was_there.and_then(|then| Some(then && is_on(cpu)?));
                drop(mortal);
                // A report wakes the session's thread, which may share a CPU with one that still works.
                place.meet(&place.round.finished, place.round.threads);
                // A session that stopped listening has failed already.
                let _ = report.send((index, Done { result, observed, in_place }));
            };
            let order = Order { cpu, work: Box::new(work) };
            if hand.orders.send(order).is_err() {
                round.over.store(true, Ordering::Release);
            }
        }
        drop(report);
        // Ends when the last thread has reported or died.
        for (index, done) in reports {
            all[index] = Some(done);
        }
        let gone = || ProbeError::Other("a measuring thread ended unexpectedly".to_owned());
        all.into_iter().map(|done| done.ok_or_else(gone)).collect()
    }
}

impl Hand {
    fn new(index: usize) -> Result<Self> {
        let (orders, inbox) = channel();
        let thread = start_thread(format!("rig-{index}"), "starting a thread", move || work_off(&inbox))?;
        Ok(Self { orders, _thread: thread.into() })
    }
}

fn work_off(inbox: &Receiver<Order>) {
    let mut home: Option<(u32, Arc<Observer>)> = None;
    while let Ok(Order { cpu, work }) = inbox.recv() {
        if home.as_ref().is_none_or(|(own, _)| *own != cpu) {
            pin_this_thread(cpu);
            home = None;
        }
        let (_, observer) = home.get_or_insert_with(|| (cpu, Arc::new(Observer::of_this_thread(Some(cpu)))));
        work(observer);
    }
}

/// Adds to the block what happened on the threads that worked. The control group's throttling is the same for
/// all of them and is counted once, by the session's own thread.
pub fn observe<'a>(block: &mut Block, threads: impl Iterator<Item = &'a Observed>) {
    for observed in threads {
        block.observe_elsewhere(&Observed {
            throttled_ns: observed.throttled_ns.map(|_| 0),
            ..observed.clone()
        });
    }
}

/// Whether a thread whose work never waits for the kernel was off its CPU.
pub fn was_switched_out(observed: &Observed) -> bool {
    observed.voluntary_switches.unwrap_or(0) + observed.involuntary_switches.unwrap_or(0) > 0
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn rig() -> Rig {
        Rig::new(&Clock::open(), 20).expect("a real clock")
    }

    fn works<R: 'static>(work: fn(&mut Place, usize) -> R) -> Vec<(u32, Work<R>)> {
        (0..2).map(|index| (0, Box::new(move |place: &mut Place| work(place, index)) as Work<R>)).collect()
    }

    #[test]
    fn threads_start_together_even_where_they_share_a_cpu_and_serve_round_after_round() {
        let mut rig = rig();
        for _ in 0..3 {
            let done = rig
                .run(works(|place, index| {
                    let both = place.start() && place.start();
                    (both, index, std::thread::current().id())
                }))
                .expect("both live");
            assert!(done.iter().all(|done| done.result.0));
            assert_eq!((done[0].result.1, done[1].result.1), (0, 1));
            assert_ne!(done[0].result.2, done[1].result.2);
        }
    }

    #[test]
    fn a_partner_that_never_comes_is_not_waited_for_longer_than_the_bound() {
        let begun = Instant::now();
        let mut rig = Rig::new(&Clock::open(), 1).expect("a real clock");
        let done = rig.run(works(|place, index| index == 1 || place.start())).expect("both end");
        assert!(!done[0].result, "there was no start");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_partner_that_dies_ends_the_round_and_the_rig_says_so_from_then_on() {
        let mut rig = rig();
        for _ in 0..2 {
            let failed = rig.run(works(|place, index| {
                assert!(index == 0, "planted");
                place.start()
            }));
            let error = failed.err().expect("a thread died");
            assert!(error.to_string().contains("unexpectedly"), "{error}");
        }
    }

    #[test]
    fn a_thread_that_was_off_its_cpu_is_noticed() {
        let observed = Observed { throttled_ns: Some(5), voluntary_switches: Some(1), ..Observed::default() };
        assert!(was_switched_out(&observed));
        assert!(!was_switched_out(&Observed::default()));
    }
}
