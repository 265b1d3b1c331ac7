//! What the curves of `memory.load.dependent` say of the hierarchy: levels, translation, effective page size.
//!
//! Found from the latencies alone, validated by each round alone, and only then put beside what the CPU says
//! of itself.

use std::collections::BTreeMap;

use latlab_harness::seed;
use latlab_machine::Machine;
use latlab_probes_shared::prelude::*;
use latlab_record::Order;
use latlab_stats::count::nearest;
use latlab_stats::levels::{CurvePoint, Level, PairedPoint, TlbStep, find_levels, tlb_reach};

use super::LoadDependent;
use crate::levels::reported;

/// A walk and what it took.
type Walked = Figure<LoadDependent>;

/// What the curves say of the hierarchy.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    levels: Vec<Found>,
    /// What TLBs reach.
    tlb: Vec<Translation>,
    /// By which the hardware translates where huge pages were asked for; null where it cannot be told.
    effective_page_bytes: Option<u64>,
    /// Median over the points.
    core_ghz: Option<f64>,
    /// Page size of the curve that the levels are from.
    curve_pages: Pages,
    ram: Ram,
}

/// A level, and what the CPU says of it.
#[derive(Serialize, JsonSchema)]
struct Found {
    name: String,
    latency_ns: Estimate,
    /// Latency in core cycles.
    cycles: Option<f64>,
    /// First size on the plateau.
    from_bytes: f64,
    /// Last size on the plateau.
    to_bytes: f64,
    /// Effective capacity; null where the curve ends on the plateau.
    end_bytes: Option<Estimate>,
    /// First size on the next plateau.
    upper_end_bytes: Option<f64>,
    reported_bytes: Option<u64>,
    /// Whether each round alone puts the end there; null where fewer than two rounds have points on both
    /// sides.
    validated: Option<bool>,
    /// Share of resampled curves that have this end, 0 to 1.
    confidence: Option<f64>,
    /// Translation explains at least half of the rise: perhaps no cache ends here.
    tlb_suspect: bool,
    /// Why it is less than reported.
    note: Option<String>,
}

/// From where on translation costs more.
#[derive(Serialize, JsonSchema)]
struct Translation {
    /// Most pages that were still translated without it.
    pages_lo: f64,
    /// Fewest pages that were not.
    pages_hi: f64,
    step_ns: f64,
}

/// Latency of the largest working set; null where the curve does not leave the caches.
#[derive(Serialize, JsonSchema)]
struct Ram {
    /// In page-local order.
    working_set_bytes: Option<u64>,
    page_local_ns: Option<f64>,
    random_ns: Option<f64>,
    /// In random order over huge pages.
    huge_random_ns: Option<f64>,
}

/// A round confirms a boundary when its points below the bracket are answered by the level and those above
/// are not: on either side of this share of the way to the next level's latency, the middle of what a bracket
/// means (a quarter misses, half).
const CONFIRMED_SHARE: f64 = 0.375;
/// An effective capacity below this share of the reported one is remarked on.
const FAR_BELOW: f64 = 0.75;
/// RAM answers no faster than this anywhere (row access, fabric and controller), ns.
const RAM_AT_LEAST_NS: f64 = 40.0;
/// Share of the 4 KiB pages' translation cost that huge pages still pay: above, they are 4 KiB in hardware;
/// below the second, they are huge there too; between, it is not known.
const STILL_PAID: f64 = 0.5;
const NOT_PAID: f64 = 0.2;
/// Translation costs below this are not compared, ns.
const COMPARABLE_NS: f64 = 1.0;

/// The curve over 4 KiB pages in page-local order.
pub(super) fn curve(figures: &[Walked]) -> Vec<CurvePoint> {
    let point = |Figure { point, result, .. }: &Walked| {
        let [lo_ns, hi_ns] = result.interval.unwrap_or([result.p50; 2]);
        CurvePoint {
            size_bytes: point.working_set_bytes as f64,
            p50_ns: result.p50,
            lo_ns,
            hi_ns,
            disturbed: result.disturbed,
        }
    };
    let mut points: Vec<CurvePoint> = figures.iter().filter(|figure| on_curve(figure)).map(point).collect();
    points.sort_by(|a, b| a.size_bytes.total_cmp(&b.size_bytes));
    points
}

fn on_curve(Figure { point, .. }: &Walked) -> bool {
    point.nodes.is_none() && point.pages == Pages::Base && point.order == Order::PageLocal
}

/// Everything that follows from the points together; the form is documented in the reference.
pub(super) fn findings(header: &Header, figures: &[Walked]) -> Findings {
    let machine = &header.machine;
    let base = paired(figures, Pages::Base);
    let huge = paired(figures, Pages::Huge);
    let boundaries: Vec<_> = tlb_reach(&base).into_iter().filter(|boundary| boundary.detected).collect();
    let steps: Vec<TlbStep> = boundaries
        .iter()
        .map(|boundary| TlbStep { reach_bytes: boundary.pages_lo * 4096.0, step_ns: boundary.step_ns })
        .collect();
    let levels = find_levels(&curve(figures), seed(&header.settings, 3), &steps);
    let named = named(levels, machine);
    let with_next: Vec<(&Level, Option<f64>)> = named
        .iter()
        .enumerate()
        .map(|(index, (level, _))| (level, named.get(index + 1).map(|(next, _)| next.latency_ns)))
        .collect();
    let rounds = Rounds::of(figures);
    let latencies =
        rounds.estimates(&with_next, |(level, _), figures| plateau(level, figures, |own| Some(own.p50)));
    let ends =
        rounds.estimates(&with_next, |(level, next_ns), figures| crossing(level, (*next_ns)?, figures));
    let levels: Vec<Found> = named
        .iter()
        .zip(&with_next)
        .zip(latencies.into_iter().zip(ends))
        .map(|(((level, name), (_, next_ns)), (latency, end))| {
            // The plateau is that of the curve without its spikes; it holds what its sizes differ by.
            let latency = latency.map_or(Estimate::once(level.latency_ns), |own| own.about(level.latency_ns));
            let latency = latency.reaching(level.range_ns.into());
            let bracket = level.bracket.map(<[f64; 2]>::from);
            let end = bracket.map(|bracket| {
                let middle = (bracket[0] * bracket[1]).sqrt();
                end.map_or(Estimate::once(middle), |end| end.about(middle)).reaching(bracket)
            });
            let number = name.strip_prefix('L').and_then(|digits| digits.parse().ok());
            let reported_bytes = number.and_then(|number| reported(machine, number));
            Found {
                name: name.clone(),
                latency_ns: latency,
                cycles: plateau(level, figures, |own| own.cycles),
                from_bytes: level.from_bytes,
                to_bytes: level.to_bytes,
                end_bytes: end,
                upper_end_bytes: level.upper_end_bytes,
                reported_bytes,
                validated: validated(level, *next_ns, figures),
                confidence: level.confidence,
                tlb_suspect: level.tlb_suspect,
                note: note(level, reported_bytes, number, machine),
            }
        })
        .collect();
    let largest = |order, pages| {
        figures
            .iter()
            .filter(|Figure { point, .. }| {
                point.nodes.is_none() && point.order == order && point.pages == pages
            })
            .max_by_key(|figure| figure.point.working_set_bytes)
    };
    // The largest working set is RAM only where the curve has left the last cache. In another order it may be
    // a small one, where the time ran out.
    let ram = named.iter().find(|(_, name)| name == "RAM");
    let latency = |order, pages| {
        let (begin, figure) = (ram?.0.from_bytes, largest(order, pages)?);
        (figure.point.working_set_bytes as f64 >= begin).then_some(figure.result.p50)
    };
    Findings {
        levels,
        tlb: boundaries
            .iter()
            .map(|boundary| Translation {
                pages_lo: boundary.pages_lo,
                pages_hi: boundary.pages_hi,
                step_ns: boundary.step_ns,
            })
            .collect(),
        effective_page_bytes: effective_page(&base, &huge),
        core_ghz: median(
            figures.iter().filter_map(|Figure { result, .. }| Some(result.cycles? / result.p50)),
        ),
        curve_pages: Pages::Base,
        ram: Ram {
            working_set_bytes: largest(Order::PageLocal, Pages::Base)
                .map(|figure| figure.point.working_set_bytes),
            page_local_ns: latency(Order::PageLocal, Pages::Base),
            random_ns: latency(Order::Random, Pages::Base),
            huge_random_ns: latency(Order::Random, Pages::Huge),
        },
    }
}

/// Names by the caches that the CPU reports: a level takes the name of the cache whose size is nearest to
/// where it ends. The last plateau is RAM if it is slow enough and goes on to the end of the curve. A plateau
/// between the last cache and RAM is a step of that cache's soft end (a share of it, a slice further away),
/// not a cache of its own.
fn named(levels: Vec<Level>, machine: &Machine) -> Vec<(Level, String)> {
    let last_cache = (1..=4u8).rev().find(|number| reported(machine, *number).is_some()).unwrap_or(4);
    let count = levels.len();
    let mut next_cache = 1u8;
    let mut named: Vec<(Level, String)> = Vec::new();
    for (index, level) in levels.into_iter().enumerate() {
        let ram =
            index + 1 == count && index > 0 && level.bracket.is_none() && level.latency_ns >= RAM_AT_LEAST_NS;
        let name = match level.bracket {
            _ if ram => "RAM".to_owned(),
            None => "beyond the last level found".to_owned(),
            Some(_) if next_cache > last_cache => {
                if let Some((cache, _)) = named.last_mut() {
                    cache.upper_end_bytes = level.upper_end_bytes;
                    cache.range_ns.1 = level.range_ns.1;
                }
                continue;
            }
            Some((lo, hi)) => {
                let middle = (lo * hi).sqrt();
                let number = (next_cache..=last_cache)
                    .filter_map(|number| Some((number, reported(machine, number)? as f64)))
                    .min_by(|(_, a), (_, b)| (a / middle).ln().abs().total_cmp(&(b / middle).ln().abs()))
                    .map_or(next_cache, |(number, _)| number);
                next_cache = number + 1;
                format!("L{number}")
            }
        };
        named.push((level, name));
    }
    named
}

/// Median over the points on a level's plateau.
fn plateau(level: &Level, figures: &[Walked], of: impl Fn(&PointResult) -> Option<f64>) -> Option<f64> {
    let sizes = level.from_bytes..=level.to_bytes;
    let on_it = figures
        .iter()
        .filter(|figure| on_curve(figure) && sizes.contains(&(figure.point.working_set_bytes as f64)));
    median(on_it.filter_map(|figure| of(&figure.result)))
}

/// Where a level ends by these points: between the two sizes that leave fewest points on the wrong side of
/// the way up to the next level.
fn crossing(level: &Level, next_ns: f64, figures: &[Walked]) -> Option<f64> {
    let (lo, hi) = level.bracket?;
    let threshold = level.latency_ns + CONFIRMED_SHARE * (next_ns - level.latency_ns);
    let mut points: Vec<(f64, bool)> = figures
        .iter()
        .filter(|figure| on_curve(figure))
        .map(|Figure { point, result, .. }| (point.working_set_bytes as f64, result.p50 > threshold))
        .filter(|(size, _)| (lo / 4.0..=hi * 4.0).contains(size))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.first()?.0 > lo || points.last()?.0 < hi {
        return None;
    }
    let mut wrong = points.iter().filter(|(_, above)| !above).count();
    let middle = (lo * hi).sqrt();
    points
        .windows(2)
        .map(|pair| {
            wrong = if pair[0].1 { wrong + 1 } else { wrong - 1 };
            (wrong, (pair[0].0 * pair[1].0).sqrt())
        })
        .min_by(|(one, at), (other, place)| {
            let far = |bytes: &f64| (bytes / middle).ln().abs();
            one.cmp(other).then(far(at).total_cmp(&far(place)))
        })
        .map(|(_, bytes)| bytes)
}

/// Whether in each of two or more rounds the points of that round alone put the boundary where it was found.
/// `None` where fewer have points on both sides of it, or the level has no boundary. A fifth of a round's
/// points may lie on the wrong side: neighbours move single points.
fn validated(level: &Level, next_ns: Option<f64>, figures: &[Walked]) -> Option<bool> {
    let ((lo, hi), next_ns) = (level.bracket?, next_ns?);
    let threshold = level.latency_ns + CONFIRMED_SHARE * (next_ns - level.latency_ns);
    // Of each round: points below the bracket, above it, and on the wrong side.
    let mut rounds: BTreeMap<u32, [usize; 3]> = BTreeMap::new();
    for Figure { point, result, .. } in figures.iter().filter(|figure| on_curve(figure)) {
        let size = point.working_set_bytes as f64;
        let is_above = size >= hi;
        if (lo / 2.0..=lo).contains(&size) || (hi..=hi * 2.0).contains(&size) {
            for round in &result.rounds {
                let counts = rounds.entry(round.round).or_default();
                counts[usize::from(is_above)] += 1;
                counts[2] += usize::from(is_above != (round.result.p50 > threshold));
            }
        }
    }
    rounds.retain(|_, [below, above, _]| *below > 0 && *above > 0);
    (rounds.len() > 1).then(|| rounds.values().all(|[below, above, wrong]| wrong * 5 <= below + above))
}

fn note(level: &Level, reported: Option<u64>, number: Option<u8>, machine: &Machine) -> Option<String> {
    let (reported, (lo, hi)) = (reported?, level.bracket?);
    let whole = reported as f64;
    let size = |bytes: f64| binary_size(nearest(bytes));
    if hi >= FAR_BELOW * whole {
        return None;
    }
    let shared = number.is_some_and(|number| number >= 3);
    let upper = level.upper_end_bytes.filter(|end| *end >= FAR_BELOW * whole);
    Some(if shared {
        let why = if machine.virtualisation.hypervisor.is_some() {
            "cores of other guests share it, or this machine has only a part of it"
        } else {
            "it is shared with other cores, or split between clusters of them"
        };
        format!(
            "less than the {} reported: {why}; other virtual machines on this host change it",
            binary_size(reported)
        )
    } else if let Some(end) = upper {
        format!(
            "begins to miss at {} of {} (pages that collide in its sets, translations and code share it) \
                and is exceeded by {}",
            size(lo),
            binary_size(reported),
            size(end)
        )
    } else {
        format!("less than the {} reported", binary_size(reported))
    })
}

fn paired(figures: &[Walked], pages: Pages) -> Vec<PairedPoint> {
    let chain = |order| {
        figures.iter().filter(move |figure| figure.point.pages == pages && figure.point.order == order)
    };
    let mut pairs: Vec<PairedPoint> = chain(Order::Spread)
        .filter_map(|Figure { point, result: spread, .. }| {
            let packed = &chain(Order::Packed).find(|packed| packed.point.nodes == point.nodes)?.result;
            let [spread_lo, spread_hi] = spread.interval.unwrap_or([spread.p50; 2]);
            let [packed_lo, packed_hi] = packed.interval.unwrap_or([packed.p50; 2]);
            Some(PairedPoint {
                pages: point.nodes? as f64,
                packed_ns: packed.p50,
                spread_ns: spread.p50,
                lo: spread_lo - packed_hi,
                hi: spread_hi - packed_lo,
            })
        })
        .collect();
    pairs.sort_by(|a, b| a.pages.total_cmp(&b.pages));
    pairs
}

/// The page size that the hardware translates by when huge pages were asked for, read from what translation
/// still costs.
fn effective_page(base: &[PairedPoint], huge: &[PairedPoint]) -> Option<u64> {
    let shares: Vec<f64> = base
        .iter()
        .filter_map(|small| {
            let large = huge.iter().find(|large| (large.pages - small.pages).abs() < 0.5)?;
            let cost = small.spread_ns - small.packed_ns;
            (cost >= COMPARABLE_NS).then(|| (large.spread_ns - large.packed_ns) / cost)
        })
        .collect();
    if shares.len() < 3 {
        return None;
    }
    let share = median(shares)?;
    if share >= STILL_PAID {
        Some(4096)
    } else if share <= NOT_PAID {
        Some(2 << 20)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{Env, PointFields as _, RoundResult};
    use latlab_probes_testing as testing;
    use serde_json::json;

    use super::*;
    use crate::memory::load_dependent::Walk;

    fn result(size: u64, ns: f64) -> PointResult {
        of(size, ns, Order::PageLocal)
    }

    fn of(working_set_bytes: u64, ns: f64, order: Order) -> PointResult {
        let walk = Walk { working_set_bytes, pages: Pages::Base, order, nodes: None };
        PointResult { interval: Some([ns * 0.99, ns * 1.01]), ..PointResult::new(walk.to_point(), ns) }
    }

    fn figures(results: &[PointResult]) -> Vec<Walked> {
        results.iter().filter_map(Figure::of).collect()
    }

    fn pair_of(pages: f64, delta: f64) -> PairedPoint {
        PairedPoint { pages, packed_ns: 4.0, spread_ns: 4.0 + delta, lo: delta - 0.1, hi: delta + 0.1 }
    }

    #[test]
    fn huge_pages_that_still_pay_for_translation_are_small_in_hardware() {
        let small: Vec<PairedPoint> =
            (0..6).map(|n| pair_of(f64::from(128 << n), f64::from(2 + n))).collect();
        let same: Vec<PairedPoint> =
            (0..6).map(|n| pair_of(f64::from(128 << n), f64::from(2 + n) * 0.9)).collect();
        let free: Vec<PairedPoint> = (0..6).map(|n| pair_of(f64::from(128 << n), 0.05)).collect();
        assert_eq!(effective_page(&small, &same), Some(4096));
        assert_eq!(effective_page(&small, &free), Some(2 << 20));
        assert_eq!(effective_page(&small, &[]), None);
    }

    /// What a size took in each of these rounds.
    fn in_rounds(size: u64, of_round: &[(u32, f64)]) -> PointResult {
        let rounds = of_round.iter().map(|(round, p50)| RoundResult {
            round: *round,
            cpu: 0,
            result: result(size, *p50),
        });
        PointResult { rounds: rounds.collect(), ..result(size, of_round[0].1) }
    }

    #[test]
    fn a_round_puts_an_end_where_fewest_of_its_points_are_on_the_wrong_side() {
        let level = level(4.0, Some((48e3, 64e3)));
        let sizes = [32_000, 40_000, 48_000, 56_000, 64_000, 72_000];
        let of_round = |ns: [f64; 6]| -> Vec<PointResult> {
            sizes.into_iter().zip(ns).map(|(size, ns)| result(size, ns)).collect()
        };
        let ends = |ns| crossing(&level, 15.0, &figures(&of_round(ns))).map(f64::round);
        let between = |lo: f64, hi: f64| Some((lo * hi).sqrt().round());
        assert_eq!(ends([4.0, 4.0, 4.1, 4.2, 14.0, 15.0]), between(56e3, 64e3));
        assert_eq!(ends([4.0, 4.0, 12.0, 14.0, 14.0, 15.0]), between(40e3, 48e3));
        // A spike is outvoted.
        assert_eq!(ends([4.0, 15.0, 4.1, 4.2, 14.0, 15.0]), between(56e3, 64e3));
        assert_eq!(crossing(&level, 15.0, &figures(&of_round([4.0; 6])[..3])), None, "nothing above");
    }

    #[test]
    fn two_rounds_confirm_a_boundary_or_do_not() {
        let level = level(4.0, Some((48e3, 64e3)));
        let judged = |results: &[PointResult]| validated(&level, Some(15.0), &figures(results));
        let above = in_rounds(70_000, &[(0, 15.0), (3, 15.0)]);
        let confirming = in_rounds(45_000, &[(0, 4.0), (3, 4.1)]);
        assert_eq!(judged(&[confirming.clone(), above.clone()]), Some(true));
        let denying = in_rounds(45_000, &[(0, 4.0), (3, 15.0)]);
        assert_eq!(judged(&[denying, above.clone()]), Some(false));
        // In one round of the two nothing was measured below.
        let once = in_rounds(45_000, &[(3, 4.0)]);
        assert_eq!(judged(&[once, above]), None);
        // Each point twice, and never both in one round.
        let [below, above] =
            [in_rounds(45_000, &[(0, 4.0), (1, 4.0)]), in_rounds(70_000, &[(2, 15.0), (3, 15.0)])];
        assert_eq!(judged(&[below, above]), None);
        assert_eq!(judged(&[]), None);
    }

    #[test]
    fn a_fifth_of_a_round_s_points_may_lie_on_the_wrong_side() {
        let level = level(4.0, Some((48e3, 64e3)));
        let results = |moved: usize| -> Vec<PointResult> {
            (0..5)
                .map(|nth| {
                    let ns = if nth < moved { 15.0 } else { 4.0 };
                    in_rounds(40_000 + nth as u64, &[(0, 4.0), (1, ns)])
                })
                .chain([in_rounds(70_000, &[(0, 15.0), (1, 15.0)])])
                .collect()
        };
        assert_eq!(validated(&level, Some(15.0), &figures(&results(1))), Some(true));
        assert_eq!(validated(&level, Some(15.0), &figures(&results(2))), Some(false));
    }

    fn two_caches() -> Machine {
        Machine {
            caches: vec![testing::cache(1, 48 << 10), testing::cache(2, 2 << 20)],
            ..Machine::default()
        }
    }

    #[test]
    fn a_small_working_set_is_not_ram_where_the_time_ran_out_before_a_large_one() {
        let env = Env { machine: two_caches(), ..testing::env(1 << 20) };
        let header = testing::header(&env);
        let latency = |size: u64| match size {
            0..=49_152 => 1.4,
            49_153..=2_097_152 => 4.5,
            _ => 110.0,
        };
        let mut results: Vec<PointResult> = (10..28)
            .flat_map(|power| [1 << power, 3 << (power - 1)])
            .map(|size| result(size, latency(size)))
            .collect();
        let ram = |results: &[PointResult]| json!(findings(&header, &figures(results)).ram);
        results.push(of(1 << 20, 5.6, Order::Random));
        let small = ram(&results);
        assert_eq!(small["page_local_ns"], 110.0, "{small}");
        assert!(small["random_ns"].is_null(), "{small}");
        results.push(of(64 << 20, 180.0, Order::Random));
        assert_eq!(ram(&results)["random_ns"], 180.0);
    }

    #[test]
    fn a_step_between_the_last_cache_and_ram_is_no_cache_of_its_own() {
        let machine = two_caches();
        let found = vec![
            level(1.0, Some((48e3, 64e3))),
            level(4.0, Some((1e6, 2e6))),
            level(20.0, Some((8e6, 12e6))),
            level(100.0, None),
        ];
        let names: Vec<String> = named(found, &machine).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["L1", "L2", "RAM"]);
    }

    fn level(latency_ns: f64, bracket: Option<(f64, f64)>) -> Level {
        Level {
            latency_ns,
            range_ns: (latency_ns, latency_ns),
            from_bytes: 0.0,
            to_bytes: 0.0,
            bracket,
            upper_end_bytes: bracket.map(|(_, hi)| hi),
            confidence: None,
            tlb_suspect: false,
            points: 0,
            disturbed: 0,
        }
    }
}
