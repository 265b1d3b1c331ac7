//! Whether a disk has to move something to answer: what the distance from the last read adds to a read.
//!
//! A spinning disk moves its arm over the distance, roughly as its square root, and then waits for the sector
//! to come round: a read just behind the last one takes some tenths of a millisecond, one far away several
//! milliseconds, spread over a whole rotation (4.0 ms at 15,000 a minute, 11.1 ms at 5,400). On solid state
//! the distance does not matter. What a kernel says of a disk ("rotational") is no evidence: virtual disks on
//! flash say yes.

use crate::order::order_statistic_interval;
use crate::quantile::quantile;

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The distance adds nothing, and the answer comes before any platter could have turned.
    SolidState,
    /// The distance adds milliseconds, spread as over a rotation.
    Spinning,
    /// Neither can be said.
    Undecided,
}

/// What the distance adds, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seeking {
    /// The verdict.
    pub medium: Medium,
    /// Why, as a clause.
    pub reason: &'static str,
    /// Median far away less the median near by, ns.
    pub difference_ns: f64,
    /// Its interval, at least 95 %, ns.
    pub interval_ns: [f64; 2],
    /// Median near by, ns.
    pub near_ns: f64,
    /// Median far away, ns.
    pub far_ns: f64,
}

/// Reads of each kind below which nothing is concluded.
const LEAST: usize = 12;
/// Each median's interval; together the difference's is at least 95 %.
const LEVEL: f64 = 0.975;
/// From here on a difference is a movement: half of the fastest disk's rotation is 2 ms.
const MOVES_NS: f64 = 1e6;
/// Up to here it is none: flash whose neighbours come from a buffer differs by tens of us.
const STAYS_NS: f64 = 0.3e6;
/// A platter's answer takes longer than this nearly always, solid state's hardly ever.
const SLOW_NS: f64 = 2e6;
/// So much more often than near by far reads may be slow by chance.
const BY_CHANCE: f64 = 0.15;
/// Nothing but memory answers faster.
const MEMORY_NS: f64 = 2e3;
/// How far the middle 80 % of far reads lie apart where a rotation spreads them: 0.8 of 4.0 to 11.1 ms, and
/// what the arm adds.
const ROTATION_NS: [f64; 2] = [2.2e6, 14e6];
/// Medians of far reads of spinning disks.
const FAR_NS: [f64; 2] = [2e6, 25e6];

/// Judges times of reads just behind the last one and far away from it, ns, taken in turns. `None` for fewer
/// than twelve of a kind.
pub fn seeking(near: &[f64], far: &[f64]) -> Option<Seeking> {
    let sorted = |times: &[f64]| {
        let mut times: Vec<f64> = times.iter().copied().filter(|ns| ns.is_finite()).collect();
        times.sort_by(f64::total_cmp);
        (times.len() >= LEAST).then_some(times)
    };
    let (near, far) = (sorted(near)?, sorted(far)?);
    let (near_low, near_high) = order_statistic_interval(&near, 0.5, LEVEL).ok()?;
    let (far_low, far_high) = order_statistic_interval(&far, 0.5, LEVEL).ok()?;
    let (near_ns, far_ns) = (quantile(&near, 0.5), quantile(&far, 0.5));
    let interval_ns = [far_low - near_high, far_high - near_low];
    let slow =
        |times: &[f64]| times.iter().filter(|ns| **ns >= SLOW_NS).count() as f64 / times.len().max(1) as f64;
    let spread_ns = quantile(&far, 0.9) - quantile(&far, 0.1);
    let within = |value: f64, [low, high]: [f64; 2]| (low..=high).contains(&value);
    let (medium, reason) = if far_ns < MEMORY_NS {
        (Medium::Undecided, "memory answered, not a disk")
    } else if interval_ns[0] >= MOVES_NS && 2.0 * near_ns <= far_ns {
        if within(spread_ns, ROTATION_NS) && within(far_ns, FAR_NS) {
            (Medium::Spinning, "the distance adds milliseconds, spread as a rotation spreads them")
        } else {
            (Medium::Undecided, "the distance adds milliseconds, but not as an arm and a rotation do")
        }
    } else if far_high >= MOVES_NS {
        (
            Medium::Undecided,
            "every read takes milliseconds, near or far: a limit, a network or an array hides what answers",
        )
    } else if slow(&far) > slow(&near) + BY_CHANCE {
        (
            Medium::Undecided,
            "some far reads take milliseconds and others do not: a cache may stand before a spinning disk",
        )
    } else if interval_ns[1] <= STAYS_NS {
        (Medium::SolidState, "the distance adds nothing that an arm or a rotation would")
    } else {
        (Medium::Undecided, "too few reads for so much noise")
    };
    Some(Seeking { medium, reason, difference_ns: far_ns - near_ns, interval_ns, near_ns, far_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const MIB: f64 = 1024.0 * 1024.0;
    const RUNS: u64 = 300;

    /// Reads of one kind after the other: near by, then far away.
    fn judged(pairs: usize, mut read: impl FnMut(bool) -> f64) -> Medium {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            far.push(read(true));
            near.push(read(false));
        }
        seeking(&near, &far).expect("twelve and more").medium
    }

    /// How many of [`RUNS`] simulated disks get each verdict: solid state, spinning, undecided.
    fn verdicts(mut of: impl FnMut(&mut Rng) -> Medium) -> [u64; 3] {
        let mut counts = [0; 3];
        for seed in 0..RUNS {
            match of(&mut Rng::new(seed)) {
                Medium::SolidState => counts[0] += 1,
                Medium::Spinning => counts[1] += 1,
                Medium::Undecided => counts[2] += 1,
            }
        }
        counts
    }

    /// A disk whose platter turns all the time and whose arm moves when it must.
    struct Platter {
        rotation_ns: f64,
        track_bytes: f64,
        now_ns: f64,
        last_ns: f64,
        at: f64,
        /// Whether it goes on reading after an answer, into a buffer of its own.
        reads_ahead: bool,
    }

    impl Platter {
        fn new(rpm: f64, reads_ahead: bool, rng: &mut Rng) -> Self {
            Self {
                rotation_ns: 60e9 / rpm,
                track_bytes: 1.5 * MIB,
                now_ns: rng.uniform() * 1e9,
                last_ns: 0.0,
                at: 0.0,
                reads_ahead,
            }
        }

        fn read(&mut self, offset: f64, rng: &mut Rng) -> f64 {
            let begin = self.now_ns;
            // The command and the electronics, then the arm.
            let mut now = begin + 1e5 + 2e4 * rng.uniform();
            let tracks = ((offset / self.track_bytes).floor() - (self.at / self.track_bytes).floor()).abs();
            if tracks > 0.0 {
                now += 0.6e6 + 8e6 * (tracks * self.track_bytes / 4e12).sqrt();
            }
            // Until the sector has come round; tracks are skewed so that the next one is met in time.
            let behind = offset - self.at;
            let passed = self.reads_ahead
                && (0.0..MIB).contains(&behind)
                && self.last_ns + behind / self.track_bytes * self.rotation_ns < now;
            let wanted = (offset / self.track_bytes + 0.1 * (offset / self.track_bytes).floor()).fract();
            let angle = (now / self.rotation_ns).fract();
            if !passed {
                now += (wanted - angle).rem_euclid(1.0) * self.rotation_ns;
            }
            now += 4096.0 / self.track_bytes * self.rotation_ns;
            (self.at, self.last_ns) = (offset + 4096.0, now);
            // The program between two reads.
            self.now_ns = now + 2e4 + 1e4 * rng.uniform();
            now - begin
        }
    }

    fn spinning(rpm: f64, reads_ahead: bool, file_bytes: f64, pairs: usize, rng: &mut Rng) -> Medium {
        let mut disk = Platter::new(rpm, reads_ahead, rng);
        let mut last = 0.0;
        judged(pairs, |far| {
            if far {
                last = ((last + file_bytes * (0.25 + 0.5 * rng.uniform())) % file_bytes / 4096.0).floor()
                    * 4096.0;
            } else {
                last += 131_072.0;
            }
            disk.read(last, rng)
        })
    }

    fn lognormal(median_ns: f64, sigma: f64, rng: &mut Rng) -> f64 {
        median_ns * (sigma * rng.normal()).exp()
    }

    #[test]
    fn a_spinning_disk_of_any_speed_is_found_and_never_taken_for_solid_state() {
        for rpm in [5_400.0, 5_900.0, 7_200.0, 10_000.0, 15_000.0] {
            for (file, reads_ahead) in [(96.0, true), (1024.0, true), (1024.0, false), (4096.0, true)] {
                let [solid, found, _] = verdicts(|rng| spinning(rpm, reads_ahead, file * MIB, 40, rng));
                assert_eq!(solid, 0, "{rpm} a minute, {file} MiB, {reads_ahead}");
                assert!(
                    found * 100 >= 95 * RUNS,
                    "{rpm} a minute, {file} MiB, {reads_ahead}: {found} of {RUNS}"
                );
            }
        }
        // A quick profile has fewer reads: it may leave it open, and is still never wrong.
        let [solid, found, _] = verdicts(|rng| spinning(7_200.0, true, 96.0 * MIB, 18, rng));
        assert_eq!(solid, 0);
        assert!(found * 10 >= 7 * RUNS, "{found} of {RUNS}");
    }

    #[test]
    fn solid_state_is_found_with_tails_read_ahead_and_a_busy_cpu_and_never_taken_for_spinning() {
        for (median_ns, near_share, stall_share) in [
            (12e3, 1.0, 0.0),
            (60e3, 1.0, 0.01),
            (60e3, 0.3, 0.02),
            (150e3, 0.5, 0.05),
            // One read in five waits a scheduler's tick for its CPU, wherever it is.
            (60e3, 1.0, 0.2),
        ] {
            let [solid, spins, _] = verdicts(|rng| {
                judged(100, |far| {
                    let stall = if rng.uniform() < stall_share { 4e6 } else { 0.0 };
                    let own = if far { median_ns } else { median_ns * near_share };
                    lognormal(own, 0.25, rng) + stall
                })
            });
            assert_eq!(spins, 0, "{median_ns} {stall_share}");
            assert!(solid * 100 >= 97 * RUNS, "{median_ns} {near_share} {stall_share}: {solid} of {RUNS}");
        }
    }

    #[test]
    fn a_network_disk_with_a_tail_is_never_called_spinning() {
        for (median_ns, least_solid) in [(300e3, 95), (700e3, 80), (3e6, 0), (10e6, 0)] {
            let [solid, spins, _] = verdicts(|rng| {
                judged(100, |_| {
                    let tail = if rng.uniform() < 0.03 { 20e6 * rng.uniform() } else { 0.0 };
                    lognormal(median_ns, 0.3, rng) + tail
                })
            });
            assert_eq!(spins, 0, "{median_ns}");
            assert!(solid * 100 >= least_solid * RUNS, "{median_ns}: {solid} of {RUNS}");
            assert!(least_solid > 0 || solid == 0, "{median_ns}: a slow network hides what answers");
        }
    }

    #[test]
    fn a_limit_on_operations_hides_what_answers() {
        // A hundred a second, after a burst of none.
        let [solid, spins, _] = verdicts(|rng| judged(60, |_| 10e6 + 1e5 * rng.normal()));
        assert_eq!([solid, spins], [0, 0]);
    }

    #[test]
    fn far_reads_that_all_take_the_same_long_time_are_no_rotations() {
        // Chunks that are fetched from elsewhere at their first touch; what lies behind comes with them.
        let [solid, spins, _] =
            verdicts(|rng| judged(60, |far| if far { 27e6 + 3e6 * rng.uniform() } else { 60e3 }));
        assert_eq!([solid, spins], [0, 0]);
    }

    #[test]
    fn caches_before_a_spinning_disk_are_not_called_solid_state_unless_they_answer_nearly_all() {
        for hits in [0.4, 0.6, 0.7] {
            let [solid, ..] = verdicts(|rng| {
                judged(100, |far| {
                    if far && rng.uniform() >= hits {
                        1e6 + 8.3e6 * rng.uniform()
                    } else {
                        lognormal(80e3, 0.2, rng)
                    }
                })
            });
            assert!(solid * 100 <= 5 * RUNS, "{hits}: {solid} of {RUNS}");
        }
        let [solid, spins, _] = verdicts(|rng| judged(60, |_| lognormal(700.0, 0.1, rng)));
        assert_eq!([solid, spins], [0, 0], "memory is no medium");
    }

    #[test]
    fn too_few_reads_say_nothing() {
        assert_eq!(seeking(&[1.0; 11], &[1.0; 30]), None);
        assert_eq!(seeking(&[f64::NAN; 30], &[1.0; 30]), None);
    }
}
