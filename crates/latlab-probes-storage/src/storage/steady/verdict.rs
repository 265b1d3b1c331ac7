//! What a series of bandwidths lets one say.

use latlab_record::binary_size;
use latlab_stats::{Changes, changes, rise};

use super::series::{SLICE_S, mean};
use crate::disk::{Way, curve};

/// Seconds below which nothing is called sustained: shorter than any burst that matters.
const LEAST_S: f64 = 20.0;
/// The last level holds for so many seconds ...
const LEAST_LEVEL_S: f64 = 10.0;
/// ... and for this share of all.
const LEAST_SHARE: f64 = 1.0 / 3.0;
/// SNIA, Solid State Storage Performance Test Specification: in steady state five rounds lie within 20 % of
/// their mean, and the line through them rises or falls by 10 % of it at most.
const ROUNDS: usize = 5;
const MOST_EXCURSION: f64 = 0.2;
const MOST_RISE: f64 = 0.1;
/// A step that comes so near the end of a round of the file has to do with it.
const NEAR: f64 = 0.05;

/// A level of bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Regime {
    /// Where it begins among the slices.
    first_slice: usize,
    /// Bytes moved before it.
    pub(super) from_bytes: f64,
    /// Seconds under way before it.
    pub(super) from_s: f64,
    /// How long it was.
    pub(super) seconds: f64,
    /// Its bytes over its time.
    pub(super) bytes_per_s: f64,
}

/// What is said of a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) regimes: Vec<Regime>,
    pub(super) trend: bool,
    pub(super) sustained: bool,
    /// A sentence: what it rests on, or why it is not.
    pub(super) why: String,
    /// A sentence for each step down or up.
    pub(super) steps: Vec<String>,
}

/// Of the slices of one stream. `bytes_ended_it`: the bytes that may be written were used up before the time.
pub(super) fn judge(slices: &[f64], operation: Way, file_bytes: u64, bytes_ended_it: bool) -> Verdict {
    let found = changes(slices);
    let regimes = regimes(slices, found.as_ref());
    let trend = found.as_ref().is_some_and(|found| found.trend);
    let (sustained, why) = match doubt(slices, &regimes, trend, bytes_ended_it) {
        Some(reason) => (false, reason),
        None => (true, basis(&regimes, operation)),
    };
    Verdict { steps: steps(&regimes, operation, file_bytes), regimes, trend, sustained, why }
}

fn regimes(slices: &[f64], found: Option<&Changes>) -> Vec<Regime> {
    let regime = |(from, to): (usize, usize)| Regime {
        first_slice: from,
        from_bytes: mean(&slices[..from]) * from as f64 * SLICE_S,
        from_s: from as f64 * SLICE_S,
        seconds: (to - from) as f64 * SLICE_S,
        bytes_per_s: mean(&slices[from..to]),
    };
    match found {
        Some(found) => found.levels.iter().map(|level| regime((level.from, level.to))).collect(),
        None if slices.is_empty() => Vec::new(),
        None => vec![regime((0, slices.len()))],
    }
}

/// Why it must not be called sustained.
fn doubt(slices: &[f64], regimes: &[Regime], trend: bool, bytes_ended_it: bool) -> Option<String> {
    let seconds = slices.len() as f64 * SLICE_S;
    let (Some(last), true) = (regimes.last(), seconds >= LEAST_S) else {
        let ended = if bytes_ended_it {
            "; its limit on writes was reached (raise --max-bytes, or run this probe alone)"
        } else {
            ""
        };
        return Some(format!(
            "only {seconds:.1} s were measured and bursts last longer: at least {LEAST_S:.0} s are \
                needed{ended}"
        ));
    };
    let whole = rise(slices) / mean(slices);
    if trend {
        return Some(format!(
            "it {} throughout: by {:.0} % from the first second to the last",
            verb(whole),
            whole.abs() * 100.0
        ));
    }
    if last.seconds < LEAST_LEVEL_S.max(LEAST_SHARE * seconds) {
        return Some(format!(
            "its last level began only {:.1} s before the end of {seconds:.0} s",
            last.seconds
        ));
    }
    let own = &slices[last.first_slice..];
    let third = &slices[slices.len() - slices.len() / 3..];
    for (part, name) in [(own, "its last level"), (third, "its last third")] {
        let rise = rise(part) / mean(part);
        if rise.abs() > MOST_RISE {
            return Some(format!(
                "{name} still {} by {:.0} % from its beginning to its end",
                verb(rise),
                rise.abs() * 100.0
            ));
        }
    }
    let excursion = excursion(own);
    (excursion > MOST_EXCURSION).then(|| {
        format!(
            "the five parts of its last level differ by {:.0} % of their mean; steady ones lie within {:.0} \
                %",
            excursion * 100.0,
            MOST_EXCURSION * 100.0
        )
    })
}

/// How far the largest of five parts is from the smallest, as a share of the mean.
fn excursion(level: &[f64]) -> f64 {
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| mean(&level[level.len() * round / ROUNDS..level.len() * (round + 1) / ROUNDS]))
        .collect();
    let largest = rounds.iter().copied().fold(0.0, f64::max);
    let smallest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    (largest - smallest) / mean(level).max(f64::MIN_POSITIVE)
}

fn basis(regimes: &[Regime], operation: Way) -> String {
    let Some(last) = regimes.last() else { return String::new() };
    let longer = if operation == Way::Write {
        "a larger write cache, or credits that last longer, would not have shown"
    } else {
        "credits that last longer would not have shown"
    };
    format!(
        "the last {:.0} s ({:.1} GB) neither rise nor fall by more than {:.0} %; {longer}",
        last.seconds,
        last.seconds * last.bytes_per_s / 1e9,
        MOST_RISE * 100.0
    )
}

fn verb(rise: f64) -> &'static str {
    if rise < 0.0 { "falls" } else { "rises" }
}

fn steps(regimes: &[Regime], operation: Way, file_bytes: u64) -> Vec<String> {
    regimes
        .windows(2)
        .map(|pair| {
            let (before, after) = (pair[0].bytes_per_s, pair[1].bytes_per_s);
            let at = pair[1].from_bytes;
            let rounds = at / file_bytes.max(1) as f64;
            let at_a_rounds_end = rounds > 1.0 - NEAR && (rounds - rounds.round()).abs() < NEAR;
            let likely = if operation == Way::Read && after > before && at_a_rounds_end {
                format!(
                    "the file of {} begins again there, and a cache below (a host's, a controller's) \
                        answers from then on",
                    binary_size(file_bytes)
                )
            } else if after > before {
                "what had slowed it down ended: other users of the disk, or the drive's own unfinished work"
                    .to_owned()
            } else if operation == Way::Write {
                "as when a write cache is full, or burst credits are used up".to_owned()
            } else {
                "as when burst credits are used up, or other programs begin to use the disk".to_owned()
            };
            format!(
                "after {:.1} GB ({:.1} s) from {} to {}: {likely}",
                at / 1e9,
                pair[1].from_s,
                curve::rate(before),
                curve::rate(after)
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use latlab_stats::rng::Rng;

    use super::*;

    const FILE: u64 = 4 << 30;

    /// Levels in MB/s, each for so many seconds.
    fn slices(levels: &[(f64, f64)]) -> Vec<f64> {
        let mut rng = Rng::new(11);
        levels
            .iter()
            .flat_map(|(level, seconds)| {
                let ends = std::iter::successors(Some(SLICE_S), |end| Some(end + SLICE_S));
                ends.take_while(move |end| end <= seconds).map(move |_| *level)
            })
            .map(|level| level * 1e6 * (1.0 + 0.03 * rng.normal()))
            .collect()
    }

    fn why(slices: &[f64]) -> String {
        let verdict = judge(slices, Way::Write, FILE, false);
        assert!(!verdict.sustained, "{verdict:?}");
        verdict.why
    }

    #[test]
    fn a_level_that_holds_is_sustained_and_says_how_far_that_goes() {
        let verdict = judge(&slices(&[(1000.0, 22.0)]), Way::Read, FILE, false);
        assert!(verdict.sustained && verdict.steps.is_empty(), "{verdict:?}");
        assert_eq!(
            verdict.why,
            "the last 22 s (21.9 GB) neither rise nor fall by more than 10 %; credits that last longer \
                would not have shown"
        );
        assert_eq!(verdict.regimes.len(), 1);
        let after_a_burst = judge(&slices(&[(2000.0, 6.0), (500.0, 18.0)]), Way::Write, FILE, false);
        assert!(after_a_burst.sustained, "{after_a_burst:?}");
        assert_eq!(after_a_burst.regimes.len(), 2);
        assert!((after_a_burst.regimes[1].from_bytes / 12e9 - 1.0).abs() < 0.02);
        assert!((after_a_burst.regimes[1].bytes_per_s / 5e8 - 1.0).abs() < 0.02);
        assert!(after_a_burst.why.contains("(9.0 GB)") && after_a_burst.why.contains("larger write cache"));
        assert_eq!(after_a_burst.steps.len(), 1);
        assert!(
            after_a_burst.steps[0].starts_with("after 11.9 GB (6.0 s) from 1.99 GB/s to 498 MB/s: ")
                && after_a_burst.steps[0]
                    .ends_with("as when a write cache is full, or burst credits are used up"),
            "{:?}",
            after_a_burst.steps
        );
    }

    #[test]
    fn a_few_seconds_are_never_sustained_however_steady() {
        assert_eq!(
            why(&slices(&[(1000.0, 19.5)])),
            "only 19.5 s were measured and bursts last longer: at least 20 s are needed"
        );
        let ended = judge(&slices(&[(2000.0, 1.0)]), Way::Write, FILE, true);
        assert!(!ended.sustained && ended.why.ends_with("run this probe alone)"), "{ended:?}");
        let nothing = judge(&[], Way::Read, FILE, false);
        assert!(!nothing.sustained && nothing.regimes.is_empty());
        assert_eq!(judge(&[1e9], Way::Read, FILE, false).regimes.len(), 1);
    }

    #[test]
    fn what_still_moves_is_not_sustained() {
        let falling: Vec<f64> = slices(&[(1000.0, 24.0)])
            .iter()
            .enumerate()
            .map(|(nth, rate)| rate * (1.0 - 0.5 * nth as f64 / 96.0))
            .collect();
        let text = why(&falling);
        assert!(text.starts_with("it falls throughout: by "), "{text}");
        let late = why(&slices(&[(2000.0, 18.0), (500.0, 6.0)]));
        assert_eq!(late, "its last level began only 6.0 s before the end of 24 s");
        // A cliff, and then it goes on falling.
        let sagging: Vec<f64> = slices(&[(3000.0, 6.0), (1000.0, 20.0)])
            .iter()
            .enumerate()
            .map(|(nth, rate)| rate * (1.0 - 0.002 * (nth as f64 - 24.0).max(0.0)))
            .collect();
        let text = why(&sagging);
        assert!(text.contains("still falls by"), "{text}");
    }

    #[test]
    fn parts_that_differ_are_not_steady() {
        let waves: Vec<f64> = slices(&[(1000.0, 25.0)])
            .iter()
            .enumerate()
            .map(|(nth, rate)| rate * if (nth / 20) % 2 == 0 { 1.0 } else { 0.7 })
            .collect();
        assert!(excursion(&waves) > MOST_EXCURSION);
        assert!(!judge(&waves, Way::Read, FILE, false).sustained);
        assert!(excursion(&slices(&[(1000.0, 25.0)])) < 0.03);
    }

    #[test]
    fn a_step_up_where_the_file_begins_again_is_a_cache_below() {
        let twice = judge(&slices(&[(1000.0, 4.25), (3000.0, 20.0)]), Way::Read, 4_250_000_000, false);
        assert!(twice.steps[0].contains("begins again there"), "{:?}", twice.steps);
        let elsewhere = judge(&slices(&[(1000.0, 4.25), (3000.0, 20.0)]), Way::Read, 3_000_000_000, false);
        assert!(elsewhere.steps[0].contains("slowed it down"), "{:?}", elsewhere.steps);
        let down = judge(&slices(&[(1000.0, 4.0), (300.0, 20.0)]), Way::Read, FILE, false);
        assert!(down.steps[0].contains("other programs begin to use the disk"), "{:?}", down.steps);
    }
}
