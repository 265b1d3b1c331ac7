//! Known work, repeated about once a second: when its cost moves, the machine moved.
//!
//! A neighbour that no counter of this guest showed (no steal, no load) once moved a 4 MiB chase from 6 to
//! 134 ns. Only repeating the same measurement finds that.

/// Costs of the reference chases, ns a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceReading {
    /// A working set of 256 KiB: moves when a thread on the same core does.
    pub private_ns: f64,
    /// A working set of 4 MiB: moves when another core or guest takes the shared cache.
    pub shared_ns: f64,
}

/// Something that can be measured again and again.
pub trait Reference {
    /// One reading; a few milliseconds. `None` when there is no reference here.
    fn read(&mut self) -> Option<ReferenceReading>;

    /// All readings of this run so far, with their times on the run's clock, ns: what a later probe is judged
    /// by. Empty where it does not remember.
    fn earlier(&self) -> Vec<(f64, ReferenceReading)> {
        Vec::new()
    }
}

/// No reference: nothing is ever marked.
#[derive(Debug, Default)]
pub struct NoReference;

impl Reference for NoReference {
    fn read(&mut self) -> Option<ReferenceReading> {
        None
    }
}

/// A private cache holds what it held: more than this over the quiet readings is a busy core.
const PRIVATE_DRIFT: f64 = 1.25;
/// The shared cache moves more without harm (page colouring, prefetch state).
const SHARED_DRIFT: f64 = 1.6;

/// All readings of a run so far, judged against the quiet ones among them.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    readings: Vec<(f64, ReferenceReading)>,
    private_ns: Vec<f64>,
    shared_ns: Vec<f64>,
}

impl Drift {
    /// Goes on from what earlier probes met: a neighbour who is there for the whole of a short probe is
    /// noticed too, and a probe that begins right after another one needs no reading of its own for that.
    pub(crate) fn after(earlier: Vec<(f64, ReferenceReading)>) -> Self {
        let mut drift = Self::default();
        for (at_ns, reading) in earlier {
            drift.push(at_ns, reading);
        }
        drift
    }

    pub(crate) fn push(&mut self, at_ns: f64, reading: ReferenceReading) {
        self.readings.push((at_ns, reading));
        for (sorted, cost) in
            [(&mut self.private_ns, reading.private_ns), (&mut self.shared_ns, reading.shared_ns)]
        {
            let place = sorted.partition_point(|other| *other < cost);
            sorted.insert(place, cost);
        }
    }

    /// The lower quartile, the second quietest at least: what is usual in the quieter part of the run. The
    /// quietest of many readings is a lucky moment that would condemn all others on a machine whose shared
    /// cache is never still.
    fn quiet(sorted: &[f64]) -> Option<f64> {
        let index = (sorted.len() / 4).max(usize::from(sorted.len() > 2));
        sorted.get(index).copied()
    }

    pub(crate) fn last_ns(&self) -> Option<f64> {
        self.readings.last().map(|(at_ns, _)| *at_ns)
    }

    /// Whether the last reading had drifted from the quiet ones.
    pub(crate) fn is_drifted(&self) -> bool {
        self.readings.last().is_some_and(|(_, reading)| self.moved(reading, true))
    }

    /// Whether the reading before or after this span of time had drifted. Work that stays in the private
    /// caches does not care for the shared one.
    pub(crate) fn disturbs(&self, from_ns: f64, to_ns: f64, leaves_private: bool) -> bool {
        let after = self.readings.partition_point(|(at_ns, _)| *at_ns < to_ns);
        let before = self.readings.partition_point(|(at_ns, _)| *at_ns <= from_ns);
        let beside = [before.checked_sub(1), Some(after)];
        beside
            .into_iter()
            .flatten()
            .filter_map(|index| self.readings.get(index))
            .any(|(_, reading)| self.moved(reading, leaves_private))
    }

    fn moved(&self, reading: &ReferenceReading, leaves_private: bool) -> bool {
        let over = |cost: f64, sorted: &[f64], drift: f64| {
            Self::quiet(sorted).is_some_and(|quiet| cost > drift * quiet)
        };
        over(reading.private_ns, &self.private_ns, PRIVATE_DRIFT)
            || (leaves_private && over(reading.shared_ns, &self.shared_ns, SHARED_DRIFT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: ReferenceReading = ReferenceReading { private_ns: 3.7, shared_ns: 11.0 };

    #[test]
    fn a_neighbour_that_takes_the_shared_cache_marks_the_time_beside_it() {
        let mut drift = Drift::default();
        drift.push(0.0, QUIET);
        drift.push(10.0, ReferenceReading { shared_ns: 134.0, ..QUIET });
        drift.push(20.0, QUIET);
        drift.push(30.0, ReferenceReading { shared_ns: 12.5, ..QUIET });
        assert!(drift.disturbs(5.0, 6.0, true) && drift.disturbs(15.0, 16.0, true));
        assert!(!drift.disturbs(25.0, 26.0, true));
        assert!(!drift.is_drifted());
    }

    #[test]
    fn busy_first_readings_are_found_once_quiet_ones_follow() {
        let mut drift = Drift::default();
        drift.push(0.0, ReferenceReading { private_ns: 9.5, shared_ns: 30.0 });
        assert!(!drift.disturbs(1.0, 2.0, true));
        drift.push(10.0, QUIET);
        drift.push(20.0, QUIET);
        assert!(drift.disturbs(1.0, 2.0, true));
        assert!(!drift.disturbs(11.0, 12.0, true));
    }

    #[test]
    fn a_neighbour_who_is_there_for_a_whole_probe_is_known_by_the_quiet_before_it() {
        let busy = ReferenceReading { shared_ns: 134.0, ..QUIET };
        let mut alone = Drift::default();
        let mut informed = Drift::after(vec![(-20.0, QUIET), (-10.0, QUIET)]);
        for at in [0.0, 10.0, 20.0] {
            alone.push(at, busy);
            informed.push(at, busy);
        }
        assert!(!alone.disturbs(11.0, 12.0, true));
        assert!(informed.disturbs(11.0, 12.0, true));
    }

    #[test]
    fn one_reading_in_a_boosted_moment_does_not_condemn_the_rest() {
        let mut drift = Drift::default();
        drift.push(0.0, ReferenceReading { private_ns: 2.8, shared_ns: 8.0 });
        drift.push(10.0, QUIET);
        drift.push(20.0, QUIET);
        assert!(!drift.disturbs(11.0, 12.0, true));
    }

    #[test]
    fn work_in_the_private_caches_does_not_care_for_the_shared_one() {
        let busy = ReferenceReading { shared_ns: 134.0, ..QUIET };
        let mut drift = Drift::after(vec![(-20.0, QUIET), (-10.0, QUIET)]);
        drift.push(0.0, busy);
        assert!(drift.disturbs(1.0, 2.0, true));
        assert!(!drift.disturbs(1.0, 2.0, false));
    }

    #[test]
    fn one_lucky_reading_among_many_does_not_condemn_a_cache_that_is_never_still() {
        let mut drift = Drift::default();
        for (at, shared_ns) in [18.0, 30.0, 34.0, 29.0, 36.0, 31.0, 40.0, 33.0].into_iter().enumerate() {
            drift.push(at as f64 * 10.0, ReferenceReading { shared_ns, ..QUIET });
        }
        assert!(!drift.disturbs(41.0, 42.0, true));
    }
}
