//! Which round of a pass measures which points, on which CPU, and how long.
//!
//! ```text
//! allowed CPUs ──► cpus: those of the run ──► turns: one a round, in an order of the seed's
//! points of all probes ──► Deal: headline in every round; of a probe's groups each curve in a few rounds of one CPU,
//!                                details and what is measured once in one ──► seconds of each probe in each round
//! ```
//! A worker deals anew in each round: the same points give the same deal. Where a run has further passes,
//! each is dealt as the first, without what is measured once. Which CPU a curve or a detail is measured on
//! depends on its probe and on the machine only, so that two runs of one machine measure it on the same one.

use latlab_harness::{Planned, Rank};
use latlab_machine::{CacheKind, Machine};
use latlab_record::Profile;
use latlab_stats::rng::{Rng, mixed};

/// A shorter round would spend most of its time on starting its process and on filling its memory.
const LEAST_ROUND_S: f64 = 2.0;

/// Rounds of a pass: those of its profile, or as many as a small budget pays for. They divide those of the
/// profile, so that CPUs take equal parts.
pub(crate) fn rounds(profile: Profile, budget_s: Option<f64>) -> u32 {
    let usual = profile.rounds();
    let paid_for = |rounds: &u32| budget_s.is_none_or(|s| f64::from(*rounds) * LEAST_ROUND_S <= s);
    let mut fewer = (1..=usual).rev().filter(|rounds| usual.is_multiple_of(*rounds));
    fewer.find(paid_for).unwrap_or(1)
}

/// The CPUs that the rounds of a run take in turn, ascending: the same in every run of a machine. Their
/// number is the largest divisor of the rounds that leaves each CPU two rounds or more. They are spread
/// evenly over the allowed ones, which spreads them over sockets and last-level caches; of CPUs that share a
/// core one is taken as far as there are cores enough.
pub(crate) fn cpus(machine: &Machine, allowed: &[u32], rounds: u32) -> Vec<u32> {
    let fit = |number: &u32| rounds.is_multiple_of(*number) && *number as usize <= allowed.len();
    let number = (1..=(rounds / 2).max(1)).rev().find(fit).unwrap_or(1) as usize;
    let kinds = [fastest(machine, allowed), allowed.to_vec()];
    let own = kinds
        .into_iter()
        .flat_map(|cpus| [one_a_core(machine, &cpus), cpus])
        .find(|cpus| cpus.len() >= number)
        .unwrap_or_default();
    (0..number).map(|nth| own[nth * own.len() / number]).collect()
}

/// On a machine of several kinds of cores, those with the largest second-level cache.
fn fastest(machine: &Machine, allowed: &[u32]) -> Vec<u32> {
    let second = machine.caches.iter().filter(|cache| cache.level == 2);
    let Some(largest) = second.max_by_key(|cache| cache.size_bytes) else { return allowed.to_vec() };
    let is_known = |cpu: &&u32| largest.cpus.is_empty() || largest.cpus.contains(cpu);
    allowed.iter().filter(is_known).copied().collect()
}

/// The first CPU of each core: systems number the threads of a core in a row or a number of cores apart.
fn one_a_core(machine: &Machine, cpus: &[u32]) -> Vec<u32> {
    let first = machine.caches.iter().find(|cache| cache.level == 1 && cache.kind != CacheKind::Instruction);
    let threads = first.map_or(&[][..], |cache| &cache.shared_cpus);
    let [one, two, ..] = threads else { return cpus.to_vec() };
    let (apart, together) = ((two - one).max(1), u32::try_from(threads.len()).unwrap_or(1));
    cpus.iter().copied().filter(|cpu| (cpu / apart).is_multiple_of(together)).collect()
}

/// The CPUs in the order in which rounds take them.
pub(crate) fn turns(cpus: &[u32], seed: u64) -> Vec<u32> {
    let mut turns = cpus.to_vec();
    Rng::new(mixed(seed)).shuffle(&mut turns);
    turns
}

/// A probe as far as the deal is concerned.
pub(crate) struct Part<'a> {
    /// It says which of the CPUs its curves and details are measured on: this one, counted round and round.
    pub(crate) place: usize,
    pub(crate) points: &'a [Planned],
    /// Seconds that it has in the whole run.
    pub(crate) seconds: f64,
}

/// What each round measures.
pub(crate) struct Deal {
    rounds: u32,
    units: Vec<Unit>,
    /// Seconds of each part in each round, for all but its headline points.
    seconds: Vec<Vec<f64>>,
    /// Estimated seconds of the headline points of all parts, in each round.
    headline_s: f64,
}

/// Points of one probe that are measured in the same rounds.
struct Unit {
    part: usize,
    rank: Rank,
    group: u16,
    rounds: Vec<u32>,
    cost_s: f64,
}

impl Deal {
    /// Deals the points to the rounds so that these take about as long as each other, by the estimates of the
    /// plan.
    pub(crate) fn new(parts: &[Part], rounds: u32, cpus: usize, turns: &[usize]) -> Self {
        let mut units = units(parts);
        let mut loads = vec![0.0; rounds as usize];
        for unit in units.iter_mut().filter(|unit| unit.rank == Rank::Headline) {
            unit.rounds = (0..rounds).collect();
            for load in &mut loads {
                *load += unit.cost_s;
            }
        }
        let mut order: Vec<usize> =
            (0..units.len()).filter(|index| units[*index].rank != Rank::Headline).collect();
        order.sort_by(|a, b| units[*b].cost_s.total_cmp(&units[*a].cost_s));
        for index in order {
            let unit = &mut units[index];
            let cpu = parts[unit.part].place % cpus;
            let mut own: Vec<u32> =
                (0..rounds).filter(|round| turns[*round as usize % turns.len()] == cpu).collect();
            own.sort_by(|a, b| loads[*a as usize].total_cmp(&loads[*b as usize]));
            own.truncate(unit.rank.rounds(rounds) as usize);
            for round in &own {
                loads[*round as usize] += unit.cost_s;
            }
            own.sort_unstable();
            unit.rounds = own;
        }
        let headline = units.iter().filter(|unit| unit.rank == Rank::Headline);
        let headline_s = headline.map(|unit| unit.cost_s).sum();
        let seconds = parts
            .iter()
            .enumerate()
            .map(|(part, own)| {
                let cost_s = |round: u32| -> f64 {
                    let measured = units
                        .iter()
                        .filter(|unit| unit.part == part && unit.rank != Rank::Headline)
                        .filter(|unit| unit.rounds.contains(&round));
                    measured.map(|unit| unit.cost_s).sum()
                };
                let all_s: f64 = (0..rounds).map(cost_s).sum();
                (0..rounds).map(|round| own.seconds * cost_s(round) / all_s.max(f64::MIN_POSITIVE)).collect()
            })
            .collect();
        Self { rounds, units, seconds, headline_s }
    }

    /// Whether a point of this part is measured in this round of the run. A point that was asked for later is
    /// measured with those of its kind.
    pub(crate) fn is_dealt(&self, part: usize, planned: &Planned, round: u32) -> bool {
        let again = round >= self.rounds;
        let once = planned.rank == Rank::Once;
        !(again && once) && self.rounds_of(part, planned).contains(&(round % self.rounds))
    }

    fn rounds_of(&self, part: usize, planned: &Planned) -> &[u32] {
        self.units
            .iter()
            .find(|unit| unit.part == part && unit.rank == planned.rank && unit.group == group(planned))
            .map_or(&[], |unit| &unit.rounds)
    }

    /// The rounds of a pass that measure nothing.
    pub(crate) fn idle(&self) -> Vec<u32> {
        let measures = |round: &u32| self.units.iter().any(|unit| unit.rounds.contains(round));
        (0..self.rounds).filter(|round| !measures(round)).collect()
    }

    /// In how many rounds of a pass a point is measured.
    pub(crate) fn times(&self, part: usize, planned: &Planned) -> u64 {
        self.rounds_of(part, planned).len() as u64
    }

    /// Seconds of this part in this round for all but its headline points, in a pass that has all of its
    /// time.
    pub(crate) fn seconds(&self, part: usize, round: u32) -> f64 {
        self.seconds[part][(round % self.rounds) as usize]
    }

    /// The part of this round in what is left of its pass, from 0 to 1.
    pub(crate) fn share(&self, round: u32) -> f64 {
        let rest = |round: u32| self.seconds.iter().map(|own| own[round as usize]).sum::<f64>();
        let own = |round: u32| self.headline_s + rest(round);
        let round = round % self.rounds;
        own(round) / (round..self.rounds).map(own).sum::<f64>().max(f64::MIN_POSITIVE)
    }
}

/// Headline points share every round, whatever session they need.
fn group(planned: &Planned) -> u16 {
    if planned.rank == Rank::Headline { 0 } else { planned.group }
}

fn units(parts: &[Part]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (part, own) in parts.iter().enumerate() {
        for planned in own.points {
            let (rank, group) = (planned.rank, group(planned));
            let cost_s = planned.round_s();
            let known =
                units.iter_mut().find(|unit| unit.part == part && unit.rank == rank && unit.group == group);
            match known {
                Some(unit) => unit.cost_s += cost_s,
                None => units.push(Unit { part, rank, group, rounds: Vec::new(), cost_s }),
            }
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use latlab_machine::{Cache, CacheSource};
    use latlab_record::Point;

    use super::*;

    fn planned(rank: Rank, group: u16, nodes: u64, block_s: f64) -> Planned {
        Planned { rank, group, block_s, ..Planned::new(Point { nodes: Some(nodes), ..Point::default() }) }
    }

    fn rounds_of(deal: &Deal, part: usize, planned: &Planned) -> Vec<u32> {
        (0..deal.rounds).filter(|round| deal.is_dealt(part, planned, *round)).collect()
    }

    fn first_level(shared_cpus: &[u32]) -> Machine {
        let cache = Cache {
            level: 1,
            kind: CacheKind::Data,
            size_bytes: 32 << 10,
            line_bytes: Some(64),
            ways: None,
            shared_cpus: shared_cpus.to_vec(),
            cpus: Vec::new(),
            instances: None,
            source: CacheSource::Sysfs,
        };
        Machine { caches: vec![cache], ..Machine::default() }
    }

    #[test]
    fn a_small_budget_has_fewer_rounds_and_one_at_least() {
        for (profile, budget_s, expected) in [
            (Profile::Quick, None, 4),
            (Profile::Standard, None, 6),
            (Profile::Thorough, None, 12),
            (Profile::Standard, Some(600.0), 6),
            (Profile::Standard, Some(12.0), 6),
            (Profile::Standard, Some(11.0), 3),
            (Profile::Quick, Some(5.0), 2),
            (Profile::Quick, Some(3.9), 1),
            (Profile::Thorough, Some(0.1), 1),
        ] {
            assert_eq!(rounds(profile, budget_s), expected, "{profile:?} {budget_s:?}");
        }
    }

    #[test]
    fn each_cpu_of_a_run_has_two_rounds_or_more() {
        let all: Vec<u32> = (0..64).collect();
        let machine = Machine::default();
        for (rounds, allowed, expected) in [
            (6, 64, 3),
            (6, 3, 3),
            (6, 2, 2),
            (6, 1, 1),
            (4, 64, 2),
            (4, 3, 2),
            (12, 64, 6),
            (12, 5, 4),
            (1, 64, 1),
        ] {
            let own = cpus(&machine, &all[..allowed], rounds);
            assert_eq!(own.len(), expected, "{rounds} rounds on {allowed} CPUs");
            assert!(own.is_sorted_by(|a, b| a < b), "each once: {own:?}");
        }
    }

    #[test]
    fn the_cpus_of_a_run_are_spread_over_cores_and_over_the_machine() {
        let all: Vec<u32> = (0..16).collect();
        assert_eq!(cpus(&first_level(&[0]), &all, 4), [0, 8]);
        assert_eq!(cpus(&first_level(&[0, 8]), &all, 4), [0, 4], "8 is the second thread of 0");
        assert_eq!(cpus(&first_level(&[0, 1]), &all, 4), [0, 8]);
        assert_eq!(cpus(&first_level(&[0, 8]), &[0, 8], 4), [0, 8], "there is but one core");
    }

    #[test]
    fn of_several_kinds_of_cores_those_with_the_largest_second_level_are_taken() {
        let mut machine = first_level(&[0]);
        for (size_bytes, cpus) in [(512 << 10, 0..4), (2 << 20, 4..8)] {
            machine.caches.push(Cache {
                level: 2,
                size_bytes,
                cpus: cpus.collect(),
                ..machine.caches[0].clone()
            });
        }
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(cpus(&machine, &all, 4), [4, 6]);
        assert_eq!(cpus(&machine, &[0, 1], 4), [0, 1], "none of those is allowed");
    }

    #[test]
    fn rounds_take_the_cpus_in_turn_in_an_order_of_the_seeds() {
        let orders: Vec<Vec<u32>> = (0..20).map(|seed| turns(&[1, 5], seed)).collect();
        assert!(orders.contains(&vec![1, 5]) && orders.contains(&vec![5, 1]));
        assert_eq!(turns(&[1, 5], 7), orders[7]);
    }

    #[test]
    fn a_point_is_in_as_many_rounds_as_its_rank_says_and_a_curve_keeps_to_one_cpu() {
        let points = [
            planned(Rank::Headline, 0, 1, 0.01),
            planned(Rank::Curve, 0, 2, 0.01),
            planned(Rank::Curve, 0, 3, 0.01),
            planned(Rank::Detail, 1, 4, 0.01),
            planned(Rank::Once, 2, 5, 0.01),
        ];
        for (rounds, curve) in [(4, 2), (6, 2), (12, 4)] {
            for place in [7, 8] {
                let part = Part { place, points: &points, seconds: 1.0 };
                let deal = Deal::new(&[part], rounds, 2, &[1, 0]);
                let own: Vec<Vec<u32>> = points.iter().map(|planned| rounds_of(&deal, 0, planned)).collect();
                assert_eq!(own[0].len(), rounds as usize);
                assert_eq!((own[1].len(), &own[1]), (curve, &own[2]), "neighbours share a round");
                assert_eq!((own[3].len(), own[4].len()), (1, 1));
                let cpu = |round: &u32| usize::from(round.is_multiple_of(2));
                let same = own[1..].iter().flatten().all(|round| cpu(round) == place % 2);
                assert!(same, "{own:?}");
                assert_eq!(deal.times(0, &points[1]), curve as u64);
            }
        }
    }

    #[test]
    fn a_further_pass_is_dealt_as_the_first_without_what_is_measured_once() {
        let points = [
            planned(Rank::Headline, 0, 1, 0.01),
            planned(Rank::Curve, 0, 2, 0.01),
            planned(Rank::Detail, 1, 3, 0.01),
            planned(Rank::Once, 2, 4, 0.01),
        ];
        let part = Part { place: 0, points: &points, seconds: 1.0 };
        let deal = Deal::new(&[part], 6, 2, &[0, 1]);
        for round in 0..6 {
            for planned in &points {
                let first = deal.is_dealt(0, planned, round);
                let again = [round + 6, round + 60].map(|later| deal.is_dealt(0, planned, later));
                assert_eq!(again, [first && planned.rank != Rank::Once; 2], "round {round}");
            }
            assert!((deal.seconds(0, round) - deal.seconds(0, round + 6)).abs() < 1e-12);
            assert!((deal.share(round) - deal.share(round + 60)).abs() < 1e-12);
        }
    }

    #[test]
    fn rounds_that_measure_nothing_are_named() {
        let idle = |points: &[Planned]| {
            let part = Part { place: 0, points, seconds: 1.0 };
            Deal::new(&[part], 6, 2, &[0, 1]).idle()
        };
        assert!(idle(&[planned(Rank::Headline, 0, 1, 0.01)]).is_empty());
        assert_eq!(idle(&[]), [0, 1, 2, 3, 4, 5]);
        let once = planned(Rank::Once, 0, 1, 0.01);
        assert_eq!(idle(std::slice::from_ref(&once)).len(), 5);
        let curve = planned(Rank::Curve, 0, 1, 0.01);
        assert!(idle(&[curve]).iter().filter(|round| *round % 2 == 1).count() == 3);
    }

    #[test]
    fn what_was_asked_for_later_is_measured_with_those_of_its_kind() {
        let points = [planned(Rank::Curve, 3, 1, 0.01)];
        let part = Part { place: 0, points: &points, seconds: 1.0 };
        let deal = Deal::new(&[part], 6, 2, &[0, 1]);
        let later = planned(Rank::Curve, 3, 99, 0.01);
        assert_eq!(rounds_of(&deal, 0, &later), rounds_of(&deal, 0, &points[0]));
        assert!(rounds_of(&deal, 0, &planned(Rank::Curve, 4, 98, 0.01)).is_empty());
    }

    #[test]
    fn rounds_take_about_as_long_as_each_other_and_a_probe_as_long_as_its_share() {
        let points: Vec<Vec<Planned>> = (0..12)
            .map(|probe| {
                (0..6)
                    .map(|nth| {
                        let rank = [Rank::Headline, Rank::Curve, Rank::Detail][nth as usize % 3];
                        planned(rank, nth, u64::from(nth), 0.01 * f64::from(probe + 1))
                    })
                    .collect()
            })
            .collect();
        let parts: Vec<Part> = points
            .iter()
            .enumerate()
            .map(|(place, points)| Part { place, points, seconds: (place + 1) as f64 })
            .collect();
        let deal = Deal::new(&parts, 6, 2, &[0, 1]);
        for (part, own) in parts.iter().enumerate() {
            let all: f64 = (0..6).map(|round| deal.seconds(part, round)).sum();
            assert!((all - own.seconds).abs() < 1e-9);
        }
        let mut left = 1.0;
        let shares: Vec<f64> = (0..6)
            .map(|round| {
                let own = left * deal.share(round);
                left -= own;
                own
            })
            .collect();
        assert!(left.abs() < 1e-9);
        assert!(shares.iter().all(|share| (0.12..0.22).contains(share)), "{shares:?}");
    }
}
