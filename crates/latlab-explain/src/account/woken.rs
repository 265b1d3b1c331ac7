//! The ends of waits: a thread that was woken is ready, not waiting, until it gets a CPU. No record tells
//! when that was, but the kernel counts how long threads were ready, and what records of preempted threads do
//! not account for came at the ends of waits, to each as much.
//!
//! Then it runs before the record of that: the kernel opens the events of a thread that comes to its CPU in
//! that thread's own time.

use std::collections::BTreeMap;

use crate::Category;
use crate::account::sweep::Seen;
use crate::account::tally::Tally;
use crate::account::unread::Unread;
use crate::rules::{Reason, Rules};

/// Time by reason, nanoseconds.
pub(crate) type Waits = BTreeMap<Reason, f64>;

/// Run-queue delay while switches were recorded, thread time: records of preempted threads have a part of it.
pub(crate) fn recorded_delay(tally: &Tally) -> f64 {
    (tally.delay.recorded_ns as f64).max(tally.recorded.thread_ready as f64)
}

/// Run-queue delay while threads were sampled, thread time.
pub(crate) fn sampled_delay(tally: &Tally) -> f64 {
    (tally.usage.queue_ns.unwrap_or(0) as f64 - recorded_delay(tally)).max(0.0)
}

/// Run-queue delay at the end of a recorded wait, on average: what records of preempted threads do not have
/// came there.
pub(crate) fn delay_of_each(tally: &Tally) -> f64 {
    let sums = &tally.recorded;
    let wakes = sums.all_wakes();
    let after_wake_up = recorded_delay(tally) - sums.thread_ready as f64;
    if wakes > 0.0 { after_wake_up / wakes } else { 0.0 }
}

/// CPU time for which no thread was seen on a CPU, up to what recording takes: it ran before the records of
/// its coming to a CPU. Thread time.
pub(crate) fn before_records(tally: &Tally, rules: &Rules) -> f64 {
    let (scanned, recorded) = (&tally.scanned, &tally.recorded);
    if recorded.wall == 0 {
        return 0.0;
    }
    // Loading a program takes CPU time, too.
    let sampled = scanned.wall as f64 * tally.places();
    let seen = (recorded.thread_running + recorded.absent) as f64 + sampled;
    (tally.cpu_ns(rules) - seen).clamp(0.0, tally.recording_ns as f64)
}

/// Part of the delay after wake-ups that other programs caused, not this one's own threads: only that one can
/// come while all of them wait. It is taken for that of preempted threads, which is recorded.
pub(crate) fn caused_by_others(tally: &Tally) -> f64 {
    let sums = &tally.recorded;
    if tally.most_threads <= tally.cpus {
        return 1.0;
    }
    sums.thread_ready_for_others as f64 / (sums.thread_ready as f64).max(1.0)
}

/// Of recorded waits, what was no waiting at their ends, in thread time: by reason, and of those whose reason
/// is not known.
pub(crate) fn at_ends(tally: &Tally, rules: &Rules) -> (Waits, f64) {
    let sums = &tally.recorded;
    let wakes = sums.all_wakes();
    let each = delay_of_each(tally) + before_records(tally, rules) / wakes.max(1.0);
    let of = |count: u64, ns: u64| (count as f64 * each).min(ns as f64);
    let known = sums.wakes.each();
    let known = known.map(|(reason, count)| (reason, of(count, sums.thread_waits.of(reason))));
    (known.collect(), of(sums.unknown_wakes, sums.thread_unknown))
}

/// Adds time whose reason is not known to the reasons of waits about as long.
fn divide(waits: &mut Waits, unknown: f64, reasons: &[(Reason, f64, f64)]) {
    for (reason, share, _) in reasons {
        *waits.entry(*reason).or_default() += unknown * share;
    }
}

/// The same by category, those that there are.
pub(crate) fn by_category(waits: &Waits, rules: &Rules) -> Vec<(Category, f64)> {
    let of = |category| {
        let of = waits.iter().filter(|(reason, _)| rules.category(**reason) == category);
        (category, of.map(|(_, ns)| ns).sum::<f64>())
    };
    Category::ALL.iter().copied().map(of).filter(|(_, ns)| *ns > 0.0).collect()
}

/// Time that all threads waited, whatever the others did, by reason.
pub(crate) fn thread_waits(tally: &Tally, rules: &Rules) -> Waits {
    let (ends, unknown_ends) = at_ends(tally, rules);
    let mut waits = Waits::new();
    for (reason, ns) in tally.scanned.thread_waits.each() {
        *waits.entry(reason).or_default() += ns as f64;
    }
    for (reason, ns) in tally.recorded.thread_waits.each() {
        let end = ends.get(&reason).copied().unwrap_or(0.0);
        *waits.entry(reason).or_default() += ns as f64 - end;
    }
    let unknown = tally.recorded.thread_unknown as f64 - unknown_ends;
    divide(&mut waits, unknown.max(0.0), &tally.unread.thread_reasons());
    waits
}

/// A process's own time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnTime {
    /// A thread of it ran or was ready.
    pub busy: f64,
    /// All of them waited, by reason.
    pub waits: Waits,
}

/// The time of one process. `counted`: how many of its threads ran or were ready on average, by the kernel's
/// counters, which know the ends of waits. Waits that were over before their reason was read are taken for
/// its own that were not, or else for those of the whole program.
pub(crate) fn of_process(seen: &Seen, program: &Unread, counted: Option<f64>) -> OwnTime {
    let wall = (seen.to - seen.from) as f64;
    let (busy, at_once) = (seen.busy as f64, seen.thread_busy as f64);
    let busy = match counted {
        Some(threads) if at_once > 0.0 => (busy * threads * wall / at_once).min(wall),
        _ => busy,
    };
    let mut waits: Waits = seen.waits.each().map(|(reason, ns)| (reason, ns as f64)).collect();
    let own = seen.unread.thread_reasons();
    let reasons = if own.is_empty() { program.thread_reasons() } else { own };
    divide(&mut waits, seen.unknown as f64, &reasons);
    let known: f64 = waits.values().sum();
    let left = (wall - busy).max(0.0);
    if known > 0.0 {
        for ns in waits.values_mut() {
            *ns *= left / known;
        }
    }
    OwnTime { busy, waits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::sweep::{Source, State, Sweep, Swept};

    const MS: u64 = 1_000_000;

    fn whole(category: Category) -> Reason {
        Rules::built_in().whole(category)
    }

    fn recorded() -> Sweep<'static> {
        let mut sweep = Sweep::begin(Rules::built_in(), 0, 1, 8);
        sweep.switch_source(0, Source::Recorded);
        sweep
    }

    fn tally(swept: &Swept, queue_ns: u64) -> Tally {
        let mut tally = Tally {
            runs: 1,
            wall_ns: swept.recorded.wall + swept.scanned.wall,
            scanned: swept.scanned.clone(),
            recorded: swept.recorded.clone(),
            unread: swept.unread.clone(),
            ..Tally::default()
        };
        tally.usage.user_ns = swept.recorded.thread_running;
        tally.usage.queue_ns = Some(queue_ns);
        tally.delay.recorded_ns = queue_ns;
        tally
    }

    /// Three stages of a pipeline that take 2, 5 and 1 ms an item, each at the pipe for the rest of 5 ms:
    /// every wait ends `late` ms before its thread gets a CPU. What the records show, and the time ready of
    /// each.
    fn pipeline(late: u64) -> (Swept, [u64; 3]) {
        let mut sweep = recorded();
        let mut ready = [0; 3];
        for item in 0..100 {
            let begin = item * 5 * MS;
            for (at, work) in [2, 5, 1].into_iter().enumerate() {
                let pid = 10 + u32::try_from(at).unwrap();
                // The slow one has no waits; of the others' 3 and 4 ms of waiting the last `late` were spent
                // ready.
                let state = State::Waiting(Some(whole(Category::Pipe)));
                if work < 5 {
                    sweep.set(begin, pid, pid, state);
                    ready[at] += late * MS;
                } else {
                    sweep.set(begin, pid, pid, State::Running);
                }
            }
            sweep.set(begin + 3 * MS, 10, 10, State::Running);
            sweep.set(begin + 4 * MS, 12, 12, State::Running);
        }
        (sweep.end(500 * MS), ready)
    }

    #[test]
    fn the_end_of_a_wait_in_the_run_queue_is_no_waiting_of_a_stage() {
        for late in [0, 1, 2] {
            let (swept, ready) = pipeline(late);
            for (at, busy_ms) in [2, 5, 1].into_iter().enumerate() {
                let seen = &swept.processes[&(10 + u32::try_from(at).unwrap())];
                let counted = (busy_ms * 100 * MS + ready[at]) as f64 / (500 * MS) as f64;
                let own = of_process(seen, &swept.unread, Some(counted));
                let pipe = own.waits.get(&whole(Category::Pipe)).copied().unwrap_or(0.0);
                let truth = ((5 - busy_ms) * 100 * MS - ready[at]) as f64;
                assert!((pipe - truth).abs() < 1e6, "stage {at}: {pipe} {truth}");
                assert!((own.busy + pipe - 5e8).abs() < 1e6);
            }
        }
    }

    #[test]
    fn without_counters_a_process_has_what_was_seen_of_it() {
        let (swept, _) = pipeline(1);
        let own = of_process(&swept.processes[&10], &swept.unread, None);
        assert!((own.busy - 200e6).abs() < 1e-3);
        assert!((own.waits[&whole(Category::Pipe)] - 300e6).abs() < 1e-3);
    }

    /// Three threads on one lock, 4 ms each in turn: a wait of 8 ms, of which only every tenth is met before
    /// it is over.
    #[test]
    fn waits_at_a_lock_that_are_over_before_they_are_read_are_in_the_table_of_threads() {
        let mut sweep = recorded();
        for turn in 0..300 {
            let now = turn * 4 * MS;
            let thread = |at: u64| u32::try_from(1 + (turn + at) % 3).unwrap();
            sweep.set(now, thread(0), 1, State::Running);
            sweep.set(now, thread(2), 1, State::Waiting(None));
            if turn % 10 == 0 {
                sweep.learn(now + MS, thread(2), whole(Category::Locks));
            }
        }
        let swept = sweep.end(1200 * MS);
        let waits = thread_waits(&tally(&swept, 0), Rules::built_in());
        let truth = 2.0 * 1200e6;
        let locks = waits[&whole(Category::Locks)];
        assert!((locks / truth - 1.0).abs() < 0.02, "{locks} of {truth}");
    }

    #[test]
    fn a_reason_that_is_learned_counts_for_the_process_from_the_beginning_of_the_wait() {
        let mut sweep = recorded();
        sweep.set(0, 1, 1, State::Waiting(None));
        sweep.learn(4 * MS, 1, whole(Category::Network));
        sweep.set(6 * MS, 1, 1, State::Running);
        let swept = sweep.end(7 * MS);
        let seen = &swept.processes[&1];
        assert_eq!(seen.waits.of(whole(Category::Network)), 6 * MS);
        assert_eq!((seen.unknown, seen.busy), (0, MS));
    }

    /// A client: 60 replies of 5 ms and 60 sleeps of 3 ms, between them 2 ms of work, and each wait ends
    /// `late` ms before the thread runs.
    fn client(late_ms: u64) -> Tally {
        let mut sweep = recorded();
        let mut now = 0;
        for _ in 0..60 {
            for (category, ms) in [(Category::Network, 5), (Category::Sleep, 3)] {
                sweep.set(now, 1, 1, State::Waiting(Some(whole(category))));
                now += (ms + late_ms) * MS;
                sweep.set(now, 1, 1, State::Running);
                now += MS;
            }
        }
        sweep.set(now, 1, 1, State::Waiting(None));
        let swept = sweep.end(now);
        tally(&swept, 120 * late_ms * MS)
    }

    #[test]
    fn each_wait_ends_with_as_much_time_in_the_run_queue() {
        let tally = client(2);
        let (ends, _) = at_ends(&tally, Rules::built_in());
        for category in [Category::Network, Category::Sleep] {
            assert!((ends[&whole(category)] - 120e6).abs() < 1e-3, "{ends:?}");
        }
        let waits = thread_waits(&tally, Rules::built_in());
        assert!((waits[&whole(Category::Network)] - 300e6).abs() < 1e-3);
        assert!((waits[&whole(Category::Sleep)] - 180e6).abs() < 1e-3);
    }
}
