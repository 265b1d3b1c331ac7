//! The loop that does nothing but read the clock, and writes down when it was kept from reading it.
//!
//! No system call, no allocation and no lock inside: a probe that asks the kernel something after each gap is
//! preempted in its own call and never sees it (half of the injected switches were missed that way).

use latlab_clock::TimeSource;

/// A time between two clock reads that was longer than the threshold, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The last clock read before it.
    pub begin: u64,
    /// The first clock read after it.
    pub end: u64,
    /// What the flags said afterwards.
    pub interruption: Interruption,
}

/// Room for gaps, all of it touched before it is needed.
#[derive(Debug)]
pub struct Buffer {
    gaps: Vec<Gap>,
    used: usize,
    /// Gaps for which there was no room.
    pub dropped: u64,
}

impl Buffer {
    /// Room for `most` gaps.
    pub fn new(most: usize) -> Self {
        let touched = Gap { begin: 1, ..Gap::default() };
        Self {
            // Not zeros: those would come as untouched pages.
            gaps: vec![touched; most],
            used: 0,
            dropped: 0,
        }
    }

    /// What was written since it was last emptied.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps[..self.used]
    }

    /// Makes room again.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    #[inline]
    fn push(&mut self, gap: Gap) {
        if let Some(place) = self.gaps.get_mut(self.used) {
            *place = gap;
            self.used += 1;
        } else {
            self.dropped += 1;
        }
    }
}

/// What flags can tell of the time since they were raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruption {
    /// The kernel took back the rseq flag: the thread lost its CPU.
    pub preempted: bool,
    /// The thread came back from an interrupt or an exception; false where that leaves no trace.
    pub interrupted: bool,
}

/// What happened to this thread since it was asked last. Asked inside timed loops: no system call.
pub trait Flag {
    /// Answers, and raises the flags again.
    fn interruption(&mut self) -> Interruption;
}

/// Where there is no such flag.
#[derive(Clone, Copy, Debug)]
pub struct NoFlag;

impl Flag for NoFlag {
    #[inline]
    fn interruption(&mut self) -> Interruption {
        Interruption::default()
    }
}

/// What the self-test does between two clock reads.
pub trait Disturber {
    /// Called at every clock read; whatever it takes becomes a gap.
    fn step(&mut self, now: u64);
}

/// Listening without disturbing.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Disturber for Quiet {
    #[inline]
    fn step(&mut self, _now: u64) {}
}

/// What one turn of the loop covered, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// First clock read.
    pub begin: u64,
    /// Last clock read.
    pub end: u64,
    /// Clock reads.
    pub clock_reads: u64,
}

/// Reads the clock for `ticks` and writes down every gap of more than `threshold` ticks.
pub fn listen<T: TimeSource, F: Flag, D: Disturber>(
    time: &T,
    ticks: u64,
    threshold: u64,
    flag: &mut F,
    disturber: &mut D,
    into: &mut Buffer,
) -> Heard {
    // Raised here, as what happened before is not a gap's.
    flag.interruption();
    let begin = time.end();
    let until = begin.saturating_add(ticks);
    let mut clock_reads = 1;
    let mut last = begin;
    while last < until {
        let now = time.end();
        clock_reads += 1;
        if now.saturating_sub(last) > threshold {
            into.push(Gap { begin: last, end: now, interruption: flag.interruption() });
        }
        disturber.step(now);
        // A counter that stands still, or runs back between CPUs, must not hold the loop for ever; simulated
        // ones advance by reading.
        last = now.max(last);
    }
    Heard { begin, end: last, clock_reads }
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;

    use super::*;

    /// Lets time pass at chosen clock reads.
    struct Script<'a> {
        clock: &'a SimulatedClock,
        clock_reads: u64,
        stalls: &'a [(u64, f64)],
    }

    impl Disturber for Script<'_> {
        fn step(&mut self, _now: u64) {
            self.clock_reads += 1;
            for (at, ns) in self.stalls {
                if *at == self.clock_reads {
                    self.clock.advance_ns(*ns);
                }
            }
        }
    }

    struct EveryOther(bool);

    impl Flag for EveryOther {
        fn interruption(&mut self) -> Interruption {
            self.0 = !self.0;
            Interruption { preempted: self.0, interrupted: false }
        }
    }

    fn heard(stalls: &[(u64, f64)], room: usize) -> (Heard, Buffer) {
        let clock = SimulatedClock::new(20.0, 1.0);
        let ticks = |ns| latlab_clock::Clock::simulated(SimulatedClock::ideal()).ticks(ns);
        let mut buffer = Buffer::new(room);
        let mut script = Script { clock: &clock, clock_reads: 0, stalls };
        let heard = listen(
            &clock,
            ticks(100_000.0),
            ticks(1_000.0),
            &mut EveryOther(false),
            &mut script,
            &mut buffer,
        );
        (heard, buffer)
    }

    #[test]
    fn every_stall_over_the_threshold_is_written_down_with_its_time() {
        let (heard, buffer) = heard(&[(10, 5_000.0), (20, 500.0), (30, 1_200.0)], 8);
        assert_eq!(buffer.gaps().len(), 2);
        assert_eq!(buffer.dropped, 0);
        for gap in buffer.gaps() {
            assert!(gap.begin >= heard.begin && gap.end <= heard.end && gap.end > gap.begin);
        }
        let [first, second] = buffer.gaps() else { panic!("two gaps") };
        assert!(first.end - first.begin > second.end - second.begin);
        assert!(heard.clock_reads > 1_000);
    }

    #[test]
    fn the_flag_is_raised_at_the_start_and_asked_once_a_gap() {
        // Asked at the start (true), then once a gap: false, true.
        let (_, buffer) = heard(&[(10, 5_000.0), (30, 2_000.0)], 8);
        let flags: Vec<bool> = buffer.gaps().iter().map(|gap| gap.interruption.preempted).collect();
        assert_eq!(flags, [false, true]);
    }

    #[test]
    fn gaps_without_room_are_counted() {
        let (_, mut buffer) = heard(&[(10, 5_000.0), (20, 5_000.0), (30, 5_000.0)], 2);
        assert_eq!((buffer.gaps().len(), buffer.dropped), (2, 1));
        buffer.clear();
        assert!(buffer.gaps().is_empty());
    }
}
