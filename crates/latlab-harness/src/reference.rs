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

    /// The two quietest of all readings of this run so far, cost by cost: what a later probe is judged by. Empty where
    /// it does not remember.
    fn earlier(&self) -> Vec<ReferenceReading> {
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

/// A private cache holds what it held: more than this over the quietest reading is a busy core.
const PRIVATE_DRIFT: f64 = 1.25;
/// The shared cache moves more without harm (page colouring, prefetch state).
const SHARED_DRIFT: f64 = 1.6;

/// The two quietest readings so far, cost by cost.
#[derive(Clone, Debug, Default)]
pub struct Quietest(Vec<ReferenceReading>);

impl Quietest {
    /// Takes one more reading into account.
    pub fn push(&mut self, reading: ReferenceReading) {
        self.0.push(reading);
        let sorted = |of: fn(&ReferenceReading) -> f64| {
            let mut costs: Vec<f64> = self.0.iter().map(of).collect();
            costs.sort_by(f64::total_cmp);
            costs
        };
        let private = sorted(|reading| reading.private_ns);
        let shared = sorted(|reading| reading.shared_ns);
        self.0 = private
            .into_iter()
            .zip(shared)
            .map(|(private_ns, shared_ns)| ReferenceReading {
                private_ns,
                shared_ns,
            })
            .take(2)
            .collect();
    }

    /// The quietest first.
    #[must_use]
    pub fn readings(&self) -> &[ReferenceReading] {
        &self.0
    }
}

/// All readings of a probe's time, judged against the quiet ones among them and among those before.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    readings: Vec<(f64, ReferenceReading)>,
    seen: usize,
    quietest: Quietest,
}

impl Drift {
    /// Goes on from what earlier probes met: a neighbour who is there for the whole of a short probe is noticed too.
    pub(crate) fn after(earlier: Vec<ReferenceReading>) -> Self {
        let mut drift = Self::default();
        for reading in earlier {
            drift.judge_by(reading);
        }
        drift
    }

    fn judge_by(&mut self, reading: ReferenceReading) {
        self.seen += 1;
        self.quietest.push(reading);
    }

    pub(crate) fn push(&mut self, at_ns: f64, reading: ReferenceReading) {
        self.readings.push((at_ns, reading));
        self.judge_by(reading);
    }

    /// The second quietest: one reading in a moment of boosted frequency must not condemn the rest.
    fn quiet(&self) -> Option<&ReferenceReading> {
        self.quietest.readings().get(usize::from(self.seen > 2))
    }

    pub(crate) fn last_ns(&self) -> Option<f64> {
        self.readings.last().map(|(at_ns, _)| *at_ns)
    }

    /// Whether the last reading had drifted from the quiet ones.
    pub(crate) fn is_drifted(&self) -> bool {
        self.readings
            .last()
            .is_some_and(|(_, reading)| self.moved(reading))
    }

    /// Whether the reading before or after this span of time had drifted.
    pub(crate) fn disturbs(&self, from_ns: f64, to_ns: f64) -> bool {
        let after = self.readings.partition_point(|(at_ns, _)| *at_ns < to_ns);
        let before = self.readings.partition_point(|(at_ns, _)| *at_ns <= from_ns);
        let beside = [before.checked_sub(1), Some(after)];
        beside
            .into_iter()
            .flatten()
            .filter_map(|index| self.readings.get(index))
            .any(|(_, reading)| self.moved(reading))
    }

    fn moved(&self, reading: &ReferenceReading) -> bool {
        self.quiet().is_some_and(|quiet| {
            reading.private_ns > PRIVATE_DRIFT * quiet.private_ns
                || reading.shared_ns > SHARED_DRIFT * quiet.shared_ns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: ReferenceReading = ReferenceReading {
        private_ns: 3.7,
        shared_ns: 11.0,
    };

    #[test]
    fn a_neighbour_that_takes_the_shared_cache_marks_the_time_beside_it() {
        let mut drift = Drift::default();
        drift.push(0.0, QUIET);
        drift.push(
            10.0,
            ReferenceReading {
                shared_ns: 134.0,
                ..QUIET
            },
        );
        drift.push(20.0, QUIET);
        drift.push(
            30.0,
            ReferenceReading {
                shared_ns: 12.5,
                ..QUIET
            },
        );
        assert!(drift.disturbs(5.0, 6.0) && drift.disturbs(15.0, 16.0));
        assert!(!drift.disturbs(25.0, 26.0));
        assert!(!drift.is_drifted());
    }

    #[test]
    fn busy_first_readings_are_found_once_quiet_ones_follow() {
        let mut drift = Drift::default();
        drift.push(
            0.0,
            ReferenceReading {
                private_ns: 9.5,
                shared_ns: 30.0,
            },
        );
        assert!(!drift.disturbs(1.0, 2.0));
        drift.push(10.0, QUIET);
        drift.push(20.0, QUIET);
        assert!(drift.disturbs(1.0, 2.0));
        assert!(!drift.disturbs(11.0, 12.0));
    }

    #[test]
    fn a_neighbour_who_is_there_for_a_whole_probe_is_told_by_the_quiet_before_it() {
        let busy = ReferenceReading {
            shared_ns: 134.0,
            ..QUIET
        };
        let mut alone = Drift::default();
        let mut informed = Drift::after(vec![QUIET, QUIET]);
        for at in [0.0, 10.0, 20.0] {
            alone.push(at, busy);
            informed.push(at, busy);
        }
        assert!(!alone.disturbs(11.0, 12.0));
        assert!(informed.disturbs(11.0, 12.0));
    }

    #[test]
    fn one_reading_in_a_boosted_moment_does_not_condemn_the_rest() {
        let mut drift = Drift::default();
        drift.push(
            0.0,
            ReferenceReading {
                private_ns: 2.8,
                shared_ns: 8.0,
            },
        );
        drift.push(10.0, QUIET);
        drift.push(20.0, QUIET);
        assert!(!drift.disturbs(11.0, 12.0));
    }
}
