//! When recording may be on: its cost, by rates and calibrated costs, stays within a share of the program's
//! own CPU time.
//!
//! Records cost per switch and per fault, not per second: a program that only blocks and wakes would take
//! twice as long. So a program is looked at first, and the kernel's counters tell how often it switches and
//! faults. Recording begins when what a slice of it would cost at that rate has been earned, the share of the
//! CPU time used so far, and goes on while what it has cost stays below that. Otherwise it pauses until
//! another slice has been earned.

use serde::{Deserialize, Serialize};

/// What recording costs a piece, nanoseconds of the program's own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "each figure says its unit")]
pub(crate) struct Price {
    /// A thread that leaves a CPU and comes back.
    pub switch_ns: f64,
    /// A sample.
    pub sample_ns: f64,
    /// A page fault while faults are recorded.
    pub fault_ns: f64,
    /// Opening the events of a thread that runs, and closing them.
    pub open_ns: f64,
    /// A thread or process that is started, and ends, with the events that it inherits.
    pub start_ns: f64,
}

/// Page faults are recorded in one of this many slices of time.
pub(crate) const FAULT_SLICES: u64 = 10;
/// A slice shorter than this, of CPU time, says little of what the program does.
const SLICE_NS: f64 = 5_000_000.0;
/// CPU time between counts from which a rate is taken.
const COUNTED_NS: u64 = 1_500_000;
/// What a slice costs more than this, times what was expected, is a reason to end it early.
const DEARER: f64 = 2.0;
/// How much of having come late is remembered from one time to the next: tens of times.
const FORGET: f64 = 0.97;
/// A slice is expected to cost at least this part of what the last one did: counters do not know of
/// everything.
const LAST: f64 = 0.5;

/// How much there was of what recording costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Threads that left a CPU.
    pub switches: u64,
    /// Page faults that would be recorded.
    pub faults: u64,
    /// Threads and processes started.
    pub starts: u64,
}

impl Counts {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            switches: self.switches.saturating_sub(before.switches),
            faults: self.faults.saturating_sub(before.faults),
            starts: self.starts.saturating_sub(before.starts),
        }
    }
}

impl Price {
    /// What is typical of several rounds; nothing without any.
    pub(crate) fn of_rounds(rounds: &[Self]) -> Self {
        let of = |field: fn(&Self) -> f64| latlab_stats::median_of(rounds.iter().map(field)).unwrap_or(0.0);
        Self {
            switch_ns: of(|price| price.switch_ns),
            sample_ns: of(|price| price.sample_ns),
            fault_ns: of(|price| price.fault_ns),
            open_ns: of(|price| price.open_ns),
            start_ns: of(|price| price.start_ns),
        }
    }

    /// Whether it can have been measured.
    pub(crate) fn is_possible(&self) -> bool {
        let Self { switch_ns, sample_ns, fault_ns, open_ns, start_ns } = *self;
        [switch_ns, sample_ns, fault_ns, open_ns, start_ns].into_iter().all(|ns| ns.is_finite() && ns >= 0.0)
    }

    /// Time on the CPU between samples, nanoseconds, from `least` on: samples take at most half of what
    /// recording may cost, as they come whatever the program does. `overhead`: see [`Governor::with`].
    pub(crate) fn period_ns(&self, least: u64, overhead: f64) -> u64 {
        // Slower than this is no sampling any more.
        const MOST_NS: f64 = 10_007_000.0;
        let fair = (self.sample_ns / (overhead / 2.0)).min(MOST_NS);
        crate::time::whole_ns(fair).max(least)
    }

    /// What switches and starts cost. Faults are recorded now and then, and are no measure of a stretch.
    pub(crate) fn of_waiting(&self, counts: Counts) -> f64 {
        self.of(Counts { faults: 0, ..counts })
    }

    fn of(&self, counts: Counts) -> f64 {
        counts.switches as f64 * self.switch_ns
            + counts.faults as f64 * self.fault_ns
            + counts.starts as f64 * self.start_ns
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    /// CPU time at which it began.
    begun: u64,
    /// Spent before.
    before_ns: f64,
    /// What it was expected to cost.
    expected_ns: f64,
}

/// See the module. Lives through all runs of a program: what was learned of one holds for the next.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    price: Price,
    overhead: f64,
    /// Cost of the samples per nanosecond.
    sampling: f64,
    /// CPU time of the runs before this one.
    earlier_ns: u64,
    spent_ns: f64,
    /// Spent before this run.
    run_ns: f64,
    /// Cost per nanosecond of CPU time: by the counters; of the last slice.
    rate: Option<f64>,
    last: f64,
    counted: (u64, Counts),
    slice: Slice,
    on: bool,
    /// By how much the watcher came late, nanoseconds: the most of late.
    late_ns: f64,
}

impl Governor {
    /// Recording is off, and nothing is known of the program.
    /// `period_ns`: CPU time between samples; `overhead`: share of the program's CPU time that recording may
    /// cost, of its wall time as much or less. Without a bound, all is recorded.
    pub(crate) fn with(price: Price, period_ns: u64, overhead: f64) -> Self {
        Self {
            price,
            overhead,
            sampling: price.sample_ns / (period_ns as f64).max(1.0),
            earlier_ns: 0,
            spent_ns: 0.0,
            run_ns: 0.0,
            rate: None,
            last: 0.0,
            counted: (0, Counts::default()),
            slice: Slice::default(),
            on: false,
            late_ns: 0.0,
        }
    }

    /// What recording costs a piece.
    pub(crate) fn price(&self) -> Price {
        self.price
    }

    /// What recording has cost in this run, nanoseconds.
    pub(crate) fn spent_ns(&self) -> f64 {
        self.spent_ns - self.run_ns
    }

    /// A run begins; the counters stand at `counts`.
    pub(crate) fn begin(&mut self, counts: Counts) {
        self.run_ns = self.spent_ns;
        self.counted = (0, counts);
    }

    /// The run has used this CPU time, and there was so much in it. Recording is off.
    pub(crate) fn end(&mut self, cpu_ns: u64, counts: Counts) {
        self.earlier_ns += cpu_ns;
        self.on = false;
        if cpu_ns > 0 {
            self.rate = Some(self.price.of(counts) / cpu_ns as f64);
        }
    }

    /// So much was recorded since the last time.
    pub(crate) fn recorded(&mut self, counts: Counts, samples: u64) {
        self.spent_ns += self.price.of(counts) + samples as f64 * self.price.sample_ns;
    }

    /// Events were opened for so many threads.
    pub(crate) fn opened(&mut self, threads: usize) {
        self.spent_ns += threads as f64 * self.price.open_ns;
    }

    /// The counters of the run so far; `None`: they cannot be read, and only what slices cost is known.
    pub(crate) fn counted(&mut self, cpu_ns: u64, counts: Option<Counts>) {
        let past = cpu_ns.saturating_sub(self.counted.0);
        if past < COUNTED_NS {
            return;
        }
        let cost = counts.map_or(0.0, |counts| {
            let cost = self.price.of(counts.since(self.counted.1));
            self.counted = (cpu_ns, counts);
            cost
        });
        self.rate = Some(cost / past as f64);
    }

    /// The watcher came so much later than it wanted to: a slice that is begun may go on for as long before
    /// it can be ended.
    pub(crate) fn came_late(&mut self, ns: u64) {
        self.late_ns = (self.late_ns * FORGET).max(ns as f64);
    }

    /// Whether recording is to be on from now on. `cpu_ns` is what this run has used, of which `threads` run
    /// now.
    pub(crate) fn decide(&mut self, cpu_ns: u64, threads: usize) -> bool {
        if self.overhead.is_infinite() {
            self.on = true;
            return true;
        }
        let now = self.earlier_ns + cpu_ns;
        let allowed = self.overhead * now as f64;
        if self.on {
            let past = now.saturating_sub(self.slice.begun) as f64;
            let cost = self.spent_ns - self.slice.before_ns;
            if past > 0.0 {
                self.last = cost / past.max(SLICE_NS);
            }
            // It was paid for in advance.
            let paid = past < SLICE_NS && cost <= DEARER * self.slice.expected_ns;
            let late_ns = self.last * threads as f64 * self.late_ns;
            self.on = paid || self.spent_ns + late_ns <= allowed;
        } else if let Some(rate) = self.rate {
            let rate = self.sampling + rate.max(LAST * self.last - self.sampling);
            let threads = threads as f64;
            let expected_ns = rate * (SLICE_NS + threads * self.late_ns) + threads * self.price.open_ns;
            self.on = self.spent_ns + expected_ns <= allowed;
            if self.on {
                self.slice = Slice { begun: now, before_ns: self.spent_ns, expected_ns };
            }
        }
        self.on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SHARE: f64 = 0.02;
    const PRICE: Price = Price {
        switch_ns: 8000.0,
        sample_ns: 4000.0,
        fault_ns: 200.0,
        open_ns: 50_000.0,
        start_ns: 30_000.0,
    };

    fn switches(switches: u64) -> Counts {
        Counts { switches, ..Counts::default() }
    }

    /// Runs a program that switches this often; the time recorded of it, and what that cost, as shares, and
    /// when recording began.
    fn governed(switches_per_ms: impl Fn(u64) -> u64, ms: u64) -> (f64, f64, u64) {
        let mut governor = Governor::with(PRICE, MS, SHARE);
        governor.begin(switches(0));
        let (mut recorded, mut counted, mut began) = (0_u64, 0, 0);
        for at in 1..=ms {
            counted += switches_per_ms(at);
            if governor.on {
                recorded += 1;
                governor.recorded(switches(switches_per_ms(at)), 1);
            } else if at % 4 == 0 {
                governor.counted(at * MS, Some(switches(counted)));
            }
            if governor.decide(at * MS, 1) && began == 0 {
                began = at;
                governor.opened(1);
            }
        }
        (recorded as f64 / ms as f64, governor.spent_ns() / (ms * MS) as f64, began)
    }

    #[test]
    fn nothing_is_recorded_before_the_counters_have_shown_how_often_a_program_switches() {
        let mut governor = Governor::with(PRICE, MS, SHARE);
        governor.begin(switches(1000));
        assert!(!governor.decide(100 * MS, 1));
        governor.counted(100 * MS, Some(switches(1001)));
        assert!(governor.decide(100 * MS, 1));
    }

    #[test]
    fn a_quiet_program_is_recorded_from_its_first_milliseconds_on() {
        let (recorded, cost, began) = governed(|_| 1, 1000);
        assert!(recorded > 0.98 && cost < 0.02, "{recorded} {cost}");
        assert!(began <= 16, "{began}");
    }

    #[test]
    fn dear_samples_are_taken_less_often() {
        assert_eq!(PRICE.period_ns(997_009, SHARE), 997_009);
        let dear = Price { sample_ns: 40_000.0, ..PRICE };
        assert_eq!(dear.period_ns(997_009, SHARE), 4_000_000);
        assert_eq!(dear.period_ns(997_009, f64::INFINITY), 997_009);
    }

    #[test]
    fn without_a_bound_all_is_recorded_from_the_first_instruction_on() {
        let mut governor = Governor::with(PRICE, MS, f64::INFINITY);
        governor.begin(switches(0));
        assert!(governor.decide(0, 1));
        governor.recorded(switches(100_000), 0);
        assert!(governor.decide(MS, 4));
    }

    #[test]
    fn a_ping_pong_is_recorded_in_slices_that_it_has_paid_for() {
        for ms in [100, 300, 2000] {
            let (recorded, cost, began) = governed(|_| 36, ms);
            assert!(cost <= SHARE, "{cost} in {ms}");
            assert!(recorded < 0.1, "{recorded} in {ms}");
            assert!(began > 60, "the first slice is earned before it is spent: {began}");
        }
    }

    #[test]
    fn who_comes_late_waits_until_as_much_has_been_earned() {
        // Of two threads that switch all the time; on a busy machine each slice goes on until the watcher
        // gets a CPU.
        for (late_ms, learns) in [(0, true), (40, true), (40, false)] {
            let mut governor = Governor::with(PRICE, MS, SHARE);
            governor.begin(switches(0));
            let (mut at, mut worst) = (0, 0.0_f64);
            while at < 4000 {
                let past = if governor.on { 4 + 2 * late_ms } else { 4 };
                at += past;
                if learns {
                    governor.came_late(late_ms * MS);
                }
                if governor.on {
                    governor.recorded(switches(20 * past), past);
                    worst = worst.max(governor.spent_ns() / (at * MS) as f64);
                } else {
                    governor.counted(at * MS, Some(switches(20 * at)));
                }
                governor.decide(at * MS, 2);
            }
            assert!(worst > 0.0, "it is recorded all the same");
            assert_eq!(worst <= 1.25 * SHARE, learns, "{worst} {late_ms}");
        }
    }

    #[test]
    fn a_program_that_becomes_quiet_is_recorded_again() {
        let (recorded, _, _) = governed(|at| if at < 300 { 50 } else { 0 }, 2000);
        assert!(recorded > 0.75, "{recorded}");
    }

    #[test]
    fn a_program_that_becomes_busy_is_no_longer() {
        let (recorded, cost, _) = governed(|at| if at < 1000 { 0 } else { 60 }, 2000);
        assert!(cost < 0.021, "{cost}");
        assert!(recorded < 0.6, "{recorded}");
    }

    #[test]
    fn what_counters_do_not_know_of_is_learned_from_the_last_slice() {
        let mut governor = Governor::with(PRICE, MS, SHARE);
        governor.begin(Counts::default());
        let mut recorded = 0;
        for at in 1..=2000_u64 {
            governor.counted(at * MS, Some(Counts::default()));
            if governor.on {
                recorded += 1;
                // Threads of a moment, met by no scan.
                governor.recorded(Counts { starts: 20, ..Counts::default() }, 1);
            }
            governor.decide(at * MS, 1);
        }
        let cost = governor.spent_ns() / (2000 * MS) as f64;
        assert!(cost < 0.022 && recorded < 100, "{cost} {recorded}");
    }

    #[test]
    fn a_second_run_begins_with_what_the_first_has_taught() {
        let mut governor = Governor::with(PRICE, MS, SHARE);
        for run in 0..40 {
            governor.begin(switches(0));
            let on = governor.decide(0, 1);
            assert!(run > 0 || !on);
            if on {
                governor.recorded(switches(1), 1);
            }
            governor.end(2 * MS, switches(1));
        }
        assert!(governor.decide(0, 1), "forty runs have earned a slice");
        governor.begin(switches(0));
        assert!(governor.spent_ns() < 1.0, "what is spent is reported of each run");
    }

    #[test]
    fn without_counters_a_slice_tells() {
        let mut governor = Governor::with(PRICE, MS, SHARE);
        governor.begin(Counts::default());
        governor.counted(10 * MS, None);
        assert!(governor.decide(10 * MS, 1));
        governor.recorded(switches(300), 1);
        assert!(!governor.decide(15 * MS, 1));
    }
}
