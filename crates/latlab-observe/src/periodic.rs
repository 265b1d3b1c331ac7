//! Periodic causes, found in time stamps alone.
//!
//! A kernel's tick, a host's tick that no counter of a guest shows, a program that wakes sixty times a
//! second: each leaves gaps at the ticks of periodic interference. The detector needs no privilege and no
//! operating system, only times.
//!
//! 1. **Candidates**: rates that kernels and programs use, and whatever the distances between gaps favour.
//! 2. **Fold**: for each period near a candidate, gaps are laid over one period; the phase under which the
//!    most *ticks*, the expected times, (not gaps: a burst is one tick) have a gap wins. A tick that could
//!    not be seen does not count: nobody listened, the thread was away already, or the gap belongs to
//!    periodic interference that was found before.
//! 3. **Judgement**: periodic interference must have most of its ticks, and more than chance gives at the
//!    rate of the gaps, by so much that all the periods and phases that were tried cannot make up for it
//!    (Chernoff's bound of the binomial tail). A burst in the gaps' rate only lowers what chance gives, as
//!    `1 - exp(-x)` is concave.
//! 4. **Track**: a second-order loop follows the ticks through the whole time, so a slow drift does not smear
//!    the interference; the period is the slope of a least-squares line through the ticks that were hit.
//!
//! Each tick claims one gap, the longest in its window.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and counts are bounded by the length of a recording, far below 2^53"
)]

use serde::Serialize;

use crate::cause::Sample;

/// Rates that are looked for by name, Hz: ticks of kernels (24 to 1024 for guests of any host), displays and
/// media, common intervals of programs.
const USUAL_HZ: [f64; 34] = [
    1024.0, 1000.0, 512.0, 500.0, 300.0, 256.0, 250.0, 240.0, 200.0, 144.0, 128.0, 125.0, 120.0, 100.0, 90.0,
    75.0, 64.0, 60.0, 50.0, 48.0, 40.0, 30.0, 25.0, 24.0, 20.0, 16.0, 15.0, 10.0, 8.0, 5.0, 4.0, 3.0, 2.0,
    1.0,
];
/// How far a usual rate may be off: the clocks of guest and host differ by tens of ppm, cheap quartz by 100.
const USUAL_TOLERANCE: f64 = 3e-4;
/// Width of the window in which a tick is looked for: a tick's arrival jitters by some 10 us in a virtual
/// machine.
const WINDOW_NS: f64 = 50_000.0;
/// Fewest ticks of periodic interference.
const FEWEST_TICKS: f64 = 20.0;
/// Part of the ticks that could be seen which must have a gap, beyond chance. Above one half, so that nothing
/// is found at twice its rate.
const LEAST_COVERAGE: f64 = 0.55;
/// Logarithm of the chance below which periodic interference is believed: 1e-13 against some 1e7 periods and
/// phases that are tried.
const LEAST_SURPRISE: f64 = 30.0;
/// Of candidates that explain nearly as much, the shortest period: 100 Hz, not its half.
const NEARLY: f64 = 0.9;
/// The first part of the recording in which periods are tried, at least.
const FIRST_PART_NS: f64 = 4e9;
/// As many gaps a second, the longest, are folded; more is only time.
const FOLDED_PER_S: f64 = 600.0;
/// Most periods in one recording.
const MOST_PERIODS: usize = 8;
/// By how much a period may leave the one that was guessed.
const MOST_BEND: f64 = 1e-3;
/// Gaps of this length and more are searched first: ticks last longer than most of a hypervisor's exits.
const LONG_NS: f64 = 5_000.0;
/// Longest distance between two gaps that is looked at for periods that nobody foresaw.
const LONGEST_LAG_NS: f64 = 120e6;
/// Bin of those distances.
const LAG_BIN_NS: f64 = 10_000.0;

/// A time during which gaps would have been noticed, ns since the clock was opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its begin.
    pub from_ns: f64,
    /// Its end.
    pub to_ns: f64,
}

/// A periodic cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interference {
    /// Distance of its ticks, ns; good to about 1 ppm of the clock where the interference does not drift.
    pub period_ns: f64,
    /// Its first tick, ns since the clock was opened.
    pub phase_ns: f64,
    /// How long before and after a tick its gaps begin, ns.
    pub window_ns: [f64; 2],
    /// Ticks that could be seen.
    #[serde(rename = "teeth")]
    pub ticks: u64,
    /// Of those, how many had a gap.
    pub hit: u64,
    /// How many would have one by chance.
    pub by_chance: f64,
    /// Median length of its gaps, ns.
    pub typical_ns: f64,
    /// Its gaps, as indices of the samples.
    #[serde(skip)]
    pub members: Vec<usize>,
}

impl Interference {
    /// Ticks a second.
    pub fn hz(&self) -> f64 {
        1e9 / self.period_ns
    }

    /// Whether one of its ticks lies where a gap begins that is not its own, by the distance from the nearest
    /// that is: the period may drift.
    pub(crate) fn has_tick_at(&self, samples: &[Sample], at_ns: f64) -> bool {
        let next = self.members.partition_point(|member| samples[*member].at_ns < at_ns);
        let around = [next.checked_sub(1), Some(next)];
        let nearest = around
            .into_iter()
            .flatten()
            .filter_map(|place| self.members.get(place))
            .map(|member| at_ns - samples[*member].at_ns)
            .min_by(|a, b| a.abs().total_cmp(&b.abs()));
        let [before, after] = self.window_ns;
        nearest.is_some_and(|distance| {
            let off = distance - (distance / self.period_ns).round() * self.period_ns;
            -before <= off && off <= after
        })
    }

    /// The share of its gaps that are not there by chance: how far one of them can be believed to be its own.
    pub fn confidence(&self) -> f64 {
        if self.hit == 0 {
            return 0.0;
        }
        (1.0 - self.by_chance / self.hit as f64).clamp(0.0, 1.0)
    }
}

/// The periodic interference in
/// `samples`, which are in order of time; those that explain most come first. Only samples that are `free`
/// can belong to one; the others say where a tick could not be seen. `listened` are the times during which a
/// gap would have been noticed, in order.
///
/// # Panics
/// When `free` is not as long as `samples`.
pub fn find_interference(samples: &[Sample], free: &[bool], listened: &[Span]) -> Vec<Interference> {
    assert_eq!(samples.len(), free.len(), "one flag a sample");
    let (Some(first), Some(last)) = (listened.first(), listened.last()) else { return Vec::new() };
    let mut search = Search {
        samples,
        free: free.to_vec(),
        listened,
        from_ns: first.from_ns,
        to_ns: last.to_ns,
        listened_ns: listened.iter().map(|span| span.to_ns - span.from_ns).sum(),
    };
    let mut periodic = Vec::new();
    let mut searched = usize::MAX;
    for least_ns in [LONG_NS, 0.0] {
        while periodic.len() < MOST_PERIODS {
            let pool = search.pool(least_ns);
            // Nothing new since the last search.
            if pool.len() == searched {
                break;
            }
            let Some(interference) = search.best(&pool) else {
                searched = pool.len();
                break;
            };
            for member in &interference.members {
                search.free[*member] = false;
            }
            periodic.push(interference);
        }
    }
    periodic
}

struct Search<'a> {
    samples: &'a [Sample],
    /// Samples that belong to no interference yet.
    free: Vec<bool>,
    listened: &'a [Span],
    from_ns: f64,
    to_ns: f64,
    listened_ns: f64,
}

/// A period and a phase that stood out.
#[derive(Clone, Copy, Debug)]
struct Guess {
    period_ns: f64,
    /// Middle of the window of the first tick.
    phase_ns: f64,
    /// Ticks hit beyond chance, a second, times the share of its ticks that they are: 250 and 100 Hz in step
    /// lie on the grid of 500 Hz, and fill only three fifths of it.
    worth: f64,
}

/// How many of its ticks periodic interference hits.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    seen: u64,
    hit: u64,
    by_chance: f64,
}

impl Tally {
    fn coverage(&self) -> f64 {
        if self.seen == 0 {
            return 0.0;
        }
        let (got, chance) = (self.hit as f64 / self.seen as f64, self.by_chance / self.seen as f64);
        if chance >= 1.0 { 0.0 } else { (got - chance) / (1.0 - chance) }
    }

    /// Bound of the negative logarithm of the chance of so many hits.
    fn surprise(&self) -> f64 {
        let seen = self.seen as f64;
        if self.seen == 0 || self.hit as f64 <= self.by_chance {
            return 0.0;
        }
        let (got, chance) = (self.hit as f64 / seen, (self.by_chance / seen).max(1e-9));
        let miss = if got < 1.0 { (1.0 - got) * ((1.0 - got) / (1.0 - chance)).ln() } else { 0.0 };
        seen * (got * (got / chance).ln() + miss)
    }
}

impl Search<'_> {
    /// Free samples of at least this length, the longest when there are too many, in order of time.
    fn pool(&self, least_ns: f64) -> Vec<usize> {
        let mut pool: Vec<usize> = (0..self.samples.len())
            .filter(|&index| self.free[index] && self.samples[index].ns >= least_ns)
            .collect();
        let most = (FOLDED_PER_S * self.listened_ns / 1e9).max(200.0) as usize;
        if pool.len() > most {
            pool.select_nth_unstable_by(most, |a, b| self.samples[*b].ns.total_cmp(&self.samples[*a].ns));
            pool.truncate(most);
            pool.sort_unstable();
        }
        pool
    }

    fn best(&self, pool: &[usize]) -> Option<Interference> {
        if (pool.len() as f64) < FEWEST_TICKS * LEAST_COVERAGE {
            return None;
        }
        let times: Vec<f64> = pool.iter().map(|&index| self.samples[index].at_ns).collect();
        let mut guesses: Vec<Guess> = self
            .candidates(&times)
            .into_iter()
            .filter_map(|(period_ns, tolerance)| self.fold(&times, period_ns, tolerance))
            .collect();
        let most = guesses.iter().map(|guess| guess.worth).fold(0.0, f64::max);
        guesses.retain(|guess| guess.worth >= NEARLY * most);
        guesses.sort_by(|a, b| a.period_ns.total_cmp(&b.period_ns));
        guesses.into_iter().find_map(|guess| self.track(&times, guess))
    }

    /// Periods to try, with how far each may be off.
    fn candidates(&self, times: &[f64]) -> Vec<(f64, f64)> {
        let longest = (self.to_ns - self.from_ns) / FEWEST_TICKS;
        let mut all: Vec<(f64, f64)> = USUAL_HZ
            .iter()
            .map(|hz| (1e9 / hz, USUAL_TOLERANCE))
            .filter(|(period_ns, _)| *period_ns <= longest)
            .collect();
        for period_ns in periods_by_distance(times) {
            let known = |&(other, tolerance): &(f64, f64)| (period_ns / other - 1.0).abs() < tolerance / 2.0;
            if period_ns <= longest && !all.iter().any(known) {
                // The centre of a peak of distances is good to some microseconds in 60 ms.
                all.push((period_ns, USUAL_TOLERANCE));
            }
        }
        all
    }

    /// The period near `about_ns` and the phase under which the most ticks are hit in the first part of the
    /// recording.
    fn fold(&self, times: &[f64], about_ns: f64, tolerance: f64) -> Option<Guess> {
        let enough = times.get(400).map_or(f64::INFINITY, |at| at - self.from_ns);
        let part_ns = FIRST_PART_NS.max(24.0 * about_ns).max(enough).min(self.to_ns - self.from_ns);
        let part = &times[..times.partition_point(|at| *at < self.from_ns + part_ns)];
        let width_ns = WINDOW_NS.min(about_ns / 4.0);
        // Between two steps, the last tick of the part moves by a quarter of the window.
        let step = width_ns / (4.0 * part_ns);
        let steps = (tolerance / step).ceil() as i64;
        let bins = (2.0 * about_ns / width_ns).ceil() as usize;
        let mut counts = vec![(0_u32, u32::MAX); bins];
        let (mut best, mut most) = (None, 0);
        for offset in -steps..=steps {
            let period_ns = about_ns * (1.0 + offset as f64 * step);
            counts.fill((0, u32::MAX));
            let per_ns = period_ns.recip();
            for at in part {
                let turns = (at - self.from_ns) * per_ns;
                let tick = turns as u32;
                let bin = ((turns - f64::from(tick)) * bins as f64) as usize;
                let (count, last) = &mut counts[bin.min(bins - 1)];
                if *last != tick {
                    *count += 1;
                    *last = tick;
                }
            }
            for bin in 0..bins {
                let hits = counts[bin].0 + counts[(bin + 1) % bins].0;
                if hits > most {
                    most = hits;
                    best = Some((period_ns, (bin as f64 + 1.0) / bins as f64));
                }
            }
        }
        // Ticks that could not be seen are not known yet; while others have the CPU most of the time, and
        // lose it at ticks, that is six of seven. The exact test decides.
        if f64::from(most) < LEAST_COVERAGE / 16.0 * part_ns / about_ns {
            return None;
        }
        let (period_ns, turn) = best?;
        let (period_ns, phase_ns) = straightened(part, period_ns, self.from_ns + turn * period_ns, width_ns);
        let ticks: Vec<f64> = ticks_between(phase_ns, period_ns, self.from_ns, self.from_ns + part_ns);
        let tally = self.tally(part, &ticks, [width_ns / 2.0; 2]);
        let believed = tally.coverage() >= LEAST_COVERAGE && tally.surprise() >= LEAST_SURPRISE / 2.0;
        believed.then_some(Guess {
            period_ns,
            phase_ns,
            worth: tally.coverage() * (tally.hit as f64 - tally.by_chance) / (part_ns / 1e9),
        })
    }

    /// Follows the ticks through the whole recording, and judges them.
    fn track(&self, times: &[f64], guess: Guess) -> Option<Interference> {
        // Gains of the loop: a phase error decays over 20 ticks, a period error over some hundreds.
        const PHASE_GAIN: f64 = 0.05;
        const PERIOD_GAIN: f64 = 0.001;
        let reach = WINDOW_NS.min(guess.period_ns / 8.0);
        let (shortest, longest) = (guess.period_ns * (1.0 - MOST_BEND), guess.period_ns * (1.0 + MOST_BEND));
        let mut ticks = Vec::new();
        let (mut at, mut period) = (guess.phase_ns, guess.period_ns);
        let (mut indices, mut hits) = (Vec::new(), Vec::new());
        while at < self.to_ns {
            ticks.push(at);
            let residual = nearest(times, at).map(|time| time - at).filter(|off| off.abs() <= reach);
            if let Some(residual) = residual {
                indices.push((ticks.len() - 1) as f64);
                hits.push(at + residual);
                at += PHASE_GAIN * residual;
                period = (period + PERIOD_GAIN * residual).clamp(shortest, longest);
            }
            at += period;
        }
        let window_ns = self.window(&ticks, guess.period_ns);
        let tally = self.tally(times, &ticks, window_ns);
        if (tally.seen as f64) < FEWEST_TICKS
            || tally.coverage() < LEAST_COVERAGE
            || tally.surprise() < LEAST_SURPRISE
        {
            return None;
        }
        let (phase_ns, period_ns) = line(&indices, &hits)?;
        let (members, typical_ns) = self.members(&ticks, window_ns);
        Some(Interference {
            period_ns,
            phase_ns,
            window_ns,
            ticks: tally.seen,
            hit: tally.hit,
            by_chance: tally.by_chance,
            typical_ns,
            members,
        })
    }

    /// How many of the ticks could be seen and were hit by one of `times`.
    fn tally(&self, times: &[f64], ticks: &[f64], [before, after]: [f64; 2]) -> Tally {
        let mut tally = Tally::default();
        for tick in ticks {
            let (from, to) = (tick - before, tick + after);
            let next = times.partition_point(|at| *at < from);
            let hit = times.get(next).is_some_and(|at| *at <= to);
            if hit || self.could_be_seen(from, to) {
                tally.seen += 1;
                tally.hit += u64::from(hit);
            }
        }
        let chance = 1.0 - (-(times.len() as f64) * (before + after) / self.listened_ns).exp();
        // The interference's own gaps are not chance; what remains when they are taken away is.
        let others = (times.len() as f64 - tally.hit as f64).max(0.0);
        let rest = 1.0 - (-others * (before + after) / self.listened_ns).exp();
        // Before it is known whether there is periodic interference, all gaps count as chance; one that has
        // nearly all its ticks cannot be told from that only when gaps are so dense that nothing could be.
        let chance = if tally.hit as f64 > 0.5 * tally.seen as f64 { rest } else { chance };
        tally.by_chance = chance * tally.seen as f64;
        tally
    }

    /// Whether a gap that begins between these times would have been noticed and could belong to periodic
    /// interference that is not known yet.
    fn could_be_seen(&self, from_ns: f64, to_ns: f64) -> bool {
        let span = self.listened.partition_point(|span| span.to_ns < to_ns);
        if self.listened.get(span).is_none_or(|span| span.from_ns > from_ns) {
            return false;
        }
        let next = self.samples.partition_point(|sample| sample.at_ns < from_ns);
        if next > 0 && self.samples[next - 1].end_ns() > from_ns {
            return false;
        }
        self.samples[next..]
            .iter()
            .zip(&self.free[next..])
            .take_while(|(sample, _)| sample.at_ns <= to_ns)
            .all(|(_, free)| *free)
    }

    /// How long before and after its tick a gap of this interference begins: where more of them begin than
    /// elsewhere.
    fn window(&self, ticks: &[f64], period_ns: f64) -> [f64; 2] {
        const BIN_NS: f64 = 5_000.0;
        const WIDEST_NS: f64 = 400_000.0;
        // A quarter of all time at most: what lies in the window by chance is claimed.
        let reach = (period_ns / 8.0).min(WIDEST_NS);
        let bins = (2.0 * reach / BIN_NS).floor().max(2.0) as usize;
        let mut counts = vec![0_u32; bins];
        for (sample, free) in self.samples.iter().zip(&self.free) {
            let Some(tick) = nearest(ticks, sample.at_ns).filter(|_| *free) else { continue };
            let bin = (sample.at_ns - tick + reach) / BIN_NS;
            if bin >= 0.0 && (bin as usize) < bins {
                counts[bin as usize] += 1;
            }
        }
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        let usual = f64::from(sorted[bins / 2]);
        // Above the fluctuation of the others, and more than two ticks in a thousand.
        let least = usual + 3.0 * usual.sqrt() + (0.002 * ticks.len() as f64).max(1.0);
        let middle = (reach / BIN_NS) as usize;
        let stands_out = |bin: usize| f64::from(counts[bin]) > least;
        let from = (0..middle).rev().take_while(|bin| stands_out(*bin)).last().unwrap_or(middle);
        let to = (middle..bins).take_while(|bin| stands_out(*bin)).last().unwrap_or(middle);
        let least_half = (WINDOW_NS / 4.0).min(period_ns / 16.0);
        [(reach - from as f64 * BIN_NS).max(least_half), ((to + 1) as f64 * BIN_NS - reach).max(least_half)]
    }

    /// The longest free sample in each tick's window, and their median length. What is far shorter than that
    /// is something else that happened to be there. Where none begins in the window, one that lasts across
    /// the tick, and is not far longer, holds it: two ticks close to each other make one gap, which begins
    /// with the first.
    fn members(&self, ticks: &[f64], [before, after]: [f64; 2]) -> (Vec<usize>, f64) {
        const SHORTEST_OF_TYPICAL: f64 = 0.2;
        const LONGEST_OF_TYPICAL: f64 = 3.0;
        let begins = |tick: &f64| {
            let next = self.samples.partition_point(|sample| sample.at_ns < tick - before);
            (next..self.samples.len())
                .take_while(|index| self.samples[*index].at_ns <= tick + after)
                .filter(|index| self.free[*index])
                .max_by(|a, b| self.samples[*a].ns.total_cmp(&self.samples[*b].ns))
        };
        let mut members: Vec<usize> = ticks.iter().filter_map(begins).collect();
        let typical = median(members.iter().map(|&index| self.samples[index].ns).collect()).unwrap_or(0.0);
        members.retain(|&index| self.samples[index].ns >= SHORTEST_OF_TYPICAL * typical);
        let lasts = |tick: &f64| {
            let last = self.samples.partition_point(|sample| sample.at_ns < tick - before).checked_sub(1)?;
            let sample = &self.samples[last];
            let holds = sample.end_ns() > *tick && sample.ns <= LONGEST_OF_TYPICAL * typical;
            (holds && self.free[last]).then_some(last)
        };
        members.extend(ticks.iter().filter_map(lasts));
        members.sort_unstable();
        members.dedup();
        (members, typical)
    }
}

/// Distances that gaps favour: peaks among the distances of all pairs, followed to a multiple far away, which
/// says them precisely.
fn periods_by_distance(times: &[f64]) -> Vec<f64> {
    const MOST: usize = 8;
    let bins = (LONGEST_LAG_NS / LAG_BIN_NS) as usize;
    let mut counts = vec![0_f64; bins];
    for (index, at) in times.iter().enumerate() {
        for later in &times[index + 1..] {
            let bin = ((later - at) / LAG_BIN_NS) as usize;
            if bin >= bins {
                break;
            }
            counts[bin] += 1.0;
        }
    }
    // Five bins are the width of two jitters.
    let smooth: Vec<f64> =
        (0..bins).map(|bin| counts[bin.saturating_sub(2)..(bin + 3).min(bins)].iter().sum()).collect();
    let usual = median(smooth.clone()).unwrap_or(0.0);
    let least = usual + 6.0 * usual.max(1.0).sqrt();
    let centre = |around: f64, reach: f64| -> Option<f64> {
        let from = ((around - reach) / LAG_BIN_NS).max(0.0) as usize;
        let to = (((around + reach) / LAG_BIN_NS) as usize + 1).min(bins);
        let peak = (from..to).max_by(|a, b| smooth[*a].total_cmp(&smooth[*b]))?;
        if smooth[peak] <= least {
            return None;
        }
        let near = peak.saturating_sub(2)..(peak + 3).min(bins);
        let (mut sum, mut weight) = (0.0, 0.0);
        for bin in near {
            sum += (bin as f64 + 0.5) * counts[bin];
            weight += counts[bin];
        }
        Some(sum / weight * LAG_BIN_NS)
    };
    // A millisecond: nothing that interrupts a thread more often is periodic interference that can be told
    // from a busy machine.
    let shortest = (900_000.0 / LAG_BIN_NS) as usize;
    let mut peaks: Vec<usize> = (shortest..bins - 1)
        .filter(|&bin| smooth[bin] > least && smooth[bin] >= smooth[bin - 1] && smooth[bin] > smooth[bin + 1])
        .collect();
    peaks.sort_unstable_by(|a, b| smooth[*b].total_cmp(&smooth[*a]));
    peaks.truncate(MOST);
    peaks
        .into_iter()
        .filter_map(|bin| {
            let mut multiple = 1.0;
            let mut period = centre((bin as f64 + 0.5) * LAG_BIN_NS, 2.0 * LAG_BIN_NS)?;
            while 2.0 * multiple * period < LONGEST_LAG_NS - 5.0 * LAG_BIN_NS {
                multiple *= 2.0;
                period = centre(multiple * period, 4.0 * LAG_BIN_NS)? / multiple;
            }
            Some(period)
        })
        .collect()
}

/// Period and phase by least squares through the gaps nearest to the ticks; the phase is that of the first
/// tick not before `phase_ns`.
fn straightened(times: &[f64], period_ns: f64, phase_ns: f64, width_ns: f64) -> (f64, f64) {
    let (mut period, mut phase) = (period_ns, phase_ns);
    for _ in 0..2 {
        let (mut indices, mut hits) = (Vec::new(), Vec::new());
        for at in times {
            let tick = ((at - phase) / period).round();
            if (at - phase - tick * period).abs() <= width_ns / 2.0 {
                indices.push(tick);
                hits.push(*at);
            }
        }
        // A line through a few gaps of few ticks can have any slope.
        let near = |slope: f64| (slope / period_ns - 1.0).abs() < MOST_BEND;
        if let Some((intercept, slope)) = line(&indices, &hits).filter(|(_, slope)| near(*slope)) {
            (phase, period) = (intercept, slope);
        }
    }
    (period, phase)
}

/// The one in the middle, the upper one of two; `None` of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Intercept and slope of the least-squares line.
fn line(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let n = x.len() as f64;
    if x.len() < 2 {
        return None;
    }
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let (mut cross, mut square) = (0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        cross += (x - mean_x) * (y - mean_y);
        square += (x - mean_x) * (x - mean_x);
    }
    (square > 0.0).then(|| {
        let slope = cross / square;
        (mean_y - slope * mean_x, slope)
    })
}

fn ticks_between(phase_ns: f64, period_ns: f64, from_ns: f64, to_ns: f64) -> Vec<f64> {
    let first = ((from_ns - phase_ns) / period_ns).ceil();
    let count = ((to_ns - phase_ns) / period_ns).ceil() - first;
    (0..count.max(0.0) as u64).map(|tick| phase_ns + (first + tick as f64) * period_ns).collect()
}

/// The value nearest to `at` of a sorted list.
fn nearest(sorted: &[f64], at: f64) -> Option<f64> {
    let next = sorted.partition_point(|value| *value < at);
    let around = [next.checked_sub(1).and_then(|index| sorted.get(index)), sorted.get(next)];
    around.into_iter().flatten().copied().min_by(|a, b| (a - at).abs().total_cmp(&(b - at).abs()))
}

#[cfg(test)]
mod tests;
