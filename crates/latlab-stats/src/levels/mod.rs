//! Cache levels and TLB reach, read from curves of latency by size.
//!
//! A level is a plateau of the curve; its capacity is a bracket between two measured sizes, never one number:
//! sharing, page colouring and neighbours make the *effective* capacity smaller than the nominal one and let
//! it drift.

mod curve;
mod refine;
mod segments;
mod tlb;

use crate::rng::Rng;
use curve::Curve;
use segments::Plateau;

pub use curve::CurvePoint;
pub use refine::refine_sizes;
pub use tlb::{Boundary, PairedPoint, tlb_reach};

/// A known TLB boundary, so that it is not taken for a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TlbStep {
    /// Entries times page size.
    pub reach_bytes: f64,
    /// What missing it costs in the access order of this curve, in ns.
    pub step_ns: f64,
}

/// Neighbouring levels differ at least by this factor, which is lmbench's: below it, noise and slopes look
/// alike.
const MIN_RATIO: f64 = 1.35;
/// Curves drawn for the confidence.
const RESAMPLES: u32 = 200;

/// One plateau and the boundary above it.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Median of the plateau's points, ns.
    pub latency_ns: f64,
    /// Smallest and largest of the plateau's undisturbed points, ns.
    pub range_ns: (f64, f64),
    /// First size on the plateau.
    pub from_bytes: f64,
    /// Last size still on the plateau: above it the level begins to miss.
    pub to_bytes: f64,
    /// Effective capacity: between the last size at which at most a quarter of the loads miss and the first
    /// at which more than half do, judged by the next level's latency. None where the sweep ended on the
    /// plateau.
    pub bracket: Option<(f64, f64)>,
    /// First size on the next plateau: the transition is complete. None where the sweep ended before.
    pub upper_end_bytes: Option<f64>,
    /// Share of resampled curves with this boundary within one step of the bracket. None without a boundary.
    pub confidence: Option<f64>,
    /// A TLB boundary nearby explains at least half of the rise: perhaps no cache ends here.
    pub tlb_suspect: bool,
    /// Sizes on the plateau.
    pub points: usize,
    /// Of these, disturbed ones.
    pub disturbed: usize,
}

/// Finds the plateaus of a latency curve and brackets their ends.
///
/// Method: points of one size are merged; a weighted isotonic fit in the L1 norm (latency cannot fall with
/// size; medians, so that a spike is outvoted rather than smeared); log-latency over log-size is cut into
/// plateaus and ramps by least squares with BIC's penalty; plateaus that differ by less than a factor of
/// 1.35, or flow into each other without a step, are one. Any order of points; points without a positive
/// finite size and latency are left out.
///
/// `seed` is that of the draws for the confidence, `tlb` the boundaries found by [`tlb_reach`].
pub fn find_levels(points: &[CurvePoint], seed: u64, tlb: &[TlbStep]) -> Vec<Level> {
    find(points, RESAMPLES, seed, tlb)
}

fn find(points: &[CurvePoint], resamples: u32, seed: u64, tlb: &[TlbStep]) -> Vec<Level> {
    let curve = Curve::new(points);
    let found = segments::plateaus(&curve);
    let boundaries = boundaries(&curve, &found);
    let confidence = confidences(&curve, &boundaries, resamples, seed);
    let levels = found.iter().zip(&boundaries).zip(confidence);
    let mut levels: Vec<Level> = levels.map(|((p, b), c)| describe(&curve, *p, b.as_ref(), c)).collect();
    for i in 0..levels.len() {
        let next = levels.get(i + 1).map(|l| l.latency_ns);
        levels[i].tlb_suspect = tlb_explains(&levels[i], next, tlb);
    }
    levels
}

/// Indices into the curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    lo: usize,
    hi: usize,
    complete: Option<usize>,
}

/// Share of misses up to which a size counts as fitting, and from which it does not.
const FITS: f64 = 0.25;
const MISSES: f64 = 0.5;

fn boundaries(curve: &Curve, found: &[Plateau]) -> Vec<Option<Edge>> {
    let edge = |i: usize, p: &Plateau| {
        let here = curve.median(p.from, p.to);
        let Some(next) = found.get(i + 1) else {
            // The sweep ended on the way up: only where it is clearly above the plateau can be said, and not
            // from one last point, which nothing can outvote.
            let hi = (p.to + 1..curve.len()).find(|&j| curve.fit[j] >= here * MIN_RATIO)?;
            let raised =
                (p.to + 1..curve.len()).filter(|&j| curve.fit[j] >= here * f64::midpoint(1.0, MIN_RATIO));
            if raised.count() < 2 {
                return None;
            }
            return Some(Edge { lo: hi - 1, hi, complete: None });
        };
        let rise = curve.median(next.from, next.to) - here;
        let share = |j: usize| (curve.fit[j] - here) / rise;
        let lo = (p.to..next.from).rev().find(|&j| share(j) <= FITS).unwrap_or(p.to);
        let hi = (lo + 1..=next.from).find(|&j| share(j) > MISSES).unwrap_or(next.from);
        Some(Edge { lo, hi, complete: Some(next.from) })
    };
    found.iter().enumerate().map(|(i, p)| edge(i, p)).collect()
}

fn describe(curve: &Curve, p: Plateau, edge: Option<&Edge>, confidence: Option<f64>) -> Level {
    let on = p.from..=p.to;
    let disturbed = on.clone().filter(|&i| curve.disturbed[i]).count();
    let points = p.to - p.from + 1;
    let counted = on.filter(|&i| disturbed == points || !curve.disturbed[i]).map(|i| curve.raw[i]);
    // The latency is of all points: where most of them are disturbed, those that are not may all lie to one
    // side of it.
    let latency_ns = curve.median(p.from, p.to);
    let range_ns = counted.fold((latency_ns, latency_ns), |(a, b), x| (a.min(x), b.max(x)));
    Level {
        latency_ns,
        range_ns,
        from_bytes: curve.size[p.from],
        to_bytes: curve.size[p.to],
        bracket: edge.map(|e| (curve.size[e.lo], curve.size[e.hi])),
        upper_end_bytes: edge.and_then(|e| e.complete).map(|i| curve.size[i]),
        confidence,
        tlb_suspect: false,
        points,
        disturbed,
    }
}

fn confidences(curve: &Curve, boundaries: &[Option<Edge>], resamples: u32, seed: u64) -> Vec<Option<f64>> {
    let mut hits = vec![0_u32; boundaries.len()];
    let mut rng = Rng::new(seed);
    for _ in 0..resamples {
        let drawn = curve.draw(&mut rng);
        let again = self::boundaries(&drawn, &segments::plateaus(&drawn));
        for (hit, edge) in hits.iter_mut().zip(boundaries) {
            let near = |e: &Edge| {
                again.iter().flatten().any(|a| a.lo.abs_diff(e.lo) <= 1 && a.hi.abs_diff(e.hi) <= 1)
            };
            *hit += u32::from(edge.as_ref().is_some_and(near));
        }
    }
    let share = |(hit, edge): (u32, &Option<Edge>)| {
        edge.filter(|_| resamples > 0).map(|_| f64::from(hit) / f64::from(resamples))
    };
    hits.into_iter().zip(boundaries).map(share).collect()
}

fn tlb_explains(level: &Level, next_ns: Option<f64>, tlb: &[TlbStep]) -> bool {
    let (Some((lo, hi)), Some(next)) = (level.bracket, next_ns) else { return false };
    // Half an octave: pages beside the array and set conflicts move a TLB's knee by less.
    let slack = std::f64::consts::SQRT_2;
    tlb.iter().any(|t| {
        t.reach_bytes >= lo / slack
            && t.reach_bytes <= hi * slack
            && t.step_ns >= 0.5 * (next - level.latency_ns)
    })
}

#[cfg(test)]
mod tests;
