use crate::quantile::median;

/// Two chains of equal node count, measured in the same round: packed on consecutive lines, spread one node a
/// page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedPoint {
    /// Nodes, and pages of the spread chain.
    pub pages: f64,
    /// ns a load of the packed chain.
    pub packed_ns: f64,
    /// ns a load of the spread chain.
    pub spread_ns: f64,
    /// Lower end of the interval of the paired difference, ns.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// Where the translation cost (spread minus packed) steps up: a TLB's reach lies between the two page counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boundary {
    /// Last page count before the steepest rise.
    pub pages_lo: f64,
    /// First page count after it.
    pub pages_hi: f64,
    /// Last page count with no rise at all: the TLB begins to miss above it. Equal to `pages_lo` for a sharp
    /// knee.
    pub begins_pages: f64,
    /// Rise of the translation cost from before the boundary to `pages_hi`, ns.
    pub step_ns: f64,
    /// It persists for two further points and its interval lies above what was before. False: a candidate
    /// only.
    pub detected: bool,
}

/// Smallest rise that counts, ns: about two core cycles. Smaller ones were not repeatable.
const LEAST_EFFECT_NS: f64 = 0.5;
/// Clock and loop leave at least this much, ns.
const LEAST_NOISE_NS: f64 = 0.1;
/// Points after the first raised one that must stay raised.
const FURTHER: usize = 2;

/// Boundaries of TLB reach from paired chains, ascending by pages; any order of points.
///
/// The difference of each pair is free of what the caches do to both chains. A boundary exceeds the cost
/// before it by the least effect of 0.5 ns and by the noise floor max(0.1 ns, 1.5 * median of |adjacent
/// differences|), taken of what the isotonic fit leaves, so that the steps themselves do not count as noise.
/// Behind the last TLB the cost rises on and on (page tables fall out of the caches): one rise is one
/// boundary, bracketed where it is steepest.
pub fn tlb_reach(points: &[PairedPoint]) -> Vec<Boundary> {
    let usable = |p: &&PairedPoint| p.pages > 0.0 && p.packed_ns.is_finite() && p.spread_ns.is_finite();
    let mut points: Vec<&PairedPoint> = points.iter().filter(usable).collect();
    points.sort_by(|a, b| a.pages.total_cmp(&b.pages));
    let cost: Vec<f64> = points.iter().map(|p| p.spread_ns - p.packed_ns).collect();
    let least = noise_floor(&cost).max(LEAST_EFFECT_NS);

    let mut found = Vec::new();
    let mut start = 0;
    while start + 1 < cost.len() {
        let Some((before, first)) = first_raised(&cost, start, least) else { break };
        let top = end_of_rise(&points, &cost, first, least);
        let steepest = steepest(&points, &cost, first - 1, top);
        let tested = &cost[first..(first + FURTHER + 1).min(cost.len())];
        let persists = tested.len() == FURTHER + 1 && tested.iter().all(|c| c - before > least);
        // A single raised point that falls back is a disturbance, not even a candidate; at the end nobody
        // knows.
        if persists || tested.len() <= FURTHER {
            found.push(Boundary {
                pages_lo: points[steepest].pages,
                pages_hi: points[steepest + 1].pages,
                begins_pages: points[first - 1].pages,
                step_ns: cost[steepest + 1] - before,
                detected: persists && points[steepest + 1].lo > before,
            });
            start = top;
        } else {
            start = first + tested.iter().position(|c| c - before <= least).unwrap_or(1);
        }
    }
    found
}

/// The level from `start` on, and the first point above it.
fn first_raised(cost: &[f64], start: usize, least: f64) -> Option<(f64, usize)> {
    let mut level = vec![cost[start]];
    for (i, &c) in cost.iter().enumerate().skip(start + 1) {
        let before = median(&level);
        if c - before > least {
            return Some((before, i));
        }
        level.push(c);
    }
    None
}

/// The last point of a rise. It is over when half an octave brings less than the least effect: dips and rests
/// inside a rise are shorter, plateaus between two TLBs longer.
fn end_of_rise(points: &[&PairedPoint], cost: &[f64], first: usize, least: f64) -> usize {
    let mut top = first;
    loop {
        let far = |p: &&PairedPoint| p.pages >= points[top].pages * std::f64::consts::SQRT_2;
        let ahead = points.iter().position(far).unwrap_or(points.len() - 1);
        if ahead <= top || cost[ahead] - cost[top] <= least {
            return top;
        }
        top = ahead;
    }
}

/// The gap in `from..to` over which the cost grows fastest by ratio and octave. What is below the least
/// effect counts as that, or the first tenths of a nanosecond would win.
fn steepest(points: &[&PairedPoint], cost: &[f64], from: usize, to: usize) -> usize {
    let growth = |i: usize| {
        let ratio = cost[i + 1].max(LEAST_EFFECT_NS) / cost[i].max(LEAST_EFFECT_NS);
        ratio.log2() / (points[i + 1].pages / points[i].pages).log2().max(f64::MIN_POSITIVE)
    };
    (from..to).max_by(|&a, &b| growth(a).total_cmp(&growth(b))).unwrap_or(from)
}

fn noise_floor(cost: &[f64]) -> f64 {
    let fit = isotonic_mean(cost);
    let rest: Vec<f64> = cost.iter().zip(&fit).map(|(c, f)| c - f).collect();
    let adjacent: Vec<f64> = rest.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    if adjacent.is_empty() { LEAST_NOISE_NS } else { (1.5 * median(&adjacent)).max(LEAST_NOISE_NS) }
}

/// Isotonic regression in the L2 norm: falling neighbours share their mean.
fn isotonic_mean(y: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &v in y {
        let mut pool = (v, 1);
        while let Some((before, n)) = pools.pop_if(|before| before.0 > pool.0) {
            let total = n + pool.1;
            pool = ((before * n as f64 + pool.0 * pool.1 as f64) / total as f64, total);
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|&(v, n)| std::iter::repeat_n(v, n)).collect()
}
