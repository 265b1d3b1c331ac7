//! Which figures another CPU has otherwise, and why.
//!
//! Six rounds say little of one figure, and a run has a hundred: asked one by one either chance speaks or
//! nothing does. But what makes CPUs differ (who handles a disk's interrupts, another kind of core, another
//! cache) moves all figures that reach equally far. So the question is asked once of a group: figures of one
//! tier and cache scope, and as a group of their own those whose operations wait for the disk one at a time.
//! A group's rounds are the units: what one says is the median, over the group's figures, of how far it lies
//! from them, so that figures which move together count once.
//!
//! At most one run in twenty on a machine whose CPUs are alike says anything of any figure (simulated below):
//! half of the 5 % belong to the one group of which the machine says beforehand how its CPUs will differ
//! (they wait for a disk whose interrupts only some of the CPUs handle: these are faster, one-sided), half to
//! all groups together (Holm, A simple sequentially rejective multiple test procedure, 1979). Where the
//! machine says nothing, all of it belongs to all. Of a group whose CPUs differ, a figure is named where the
//! 95 % interval of its own ratio does not hold 1, it points the same way, and it is worth moving a program
//! for.

use std::collections::BTreeMap;

use latlab_machine::Machine;
use latlab_stats::{anova, mean, median};

use crate::{CacheScope, CpuFigure, Difference, Header, Point, Record, Unit};

/// Runs on alike CPUs that say anything.
const LEVEL: f64 = 0.05;
/// CPUs that are nearer (a tenth) are alike for any program.
const LEAST_RATIO: f64 = 1.1;
/// Larger blocks take the disk longer than the way to it.
const SMALL_BLOCK: u64 = 64 << 10;

/// Tier, cache scope, and whether the operations wait for the disk.
type Group = (String, Option<CacheScope>, bool);

/// Leaves [`crate::Spread::differ`], which says of each figure alone that its CPUs differ, where its group's
/// do, with the reason.
pub(super) fn tell(header: &Header, figures: &mut [Record]) {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (index, figure) in figures.iter_mut().enumerate() {
        match group(figure) {
            Some(group) => groups.entry(group).or_default().push(index),
            None => figure.spread.iter_mut().for_each(|spread| spread.differ = None),
        }
    }
    let handlers = handlers(header);
    let scores: Vec<Scores> =
        groups.values().map(|group| Scores::of(group.iter().map(|index| &figures[*index]))).collect();
    let known = |(_, _, waits): &Group| *waits && !handlers.is_empty();
    let predicted: Vec<bool> = groups
        .keys()
        .zip(&scores)
        .map(|(group, scores)| known(group) && scores.are_less_on(&handlers))
        .collect();
    let level = if groups.keys().any(known) { LEVEL / 2.0 } else { LEVEL };
    let found = holm(&scores.iter().map(Scores::chance).collect::<Vec<_>>(), level);
    for (place, ((_, _, waits), group)) in groups.iter().enumerate() {
        for index in group {
            let figure = &mut figures[*index];
            let unit = figure.unit;
            let step = figure.resolution_ns.filter(|_| unit == Unit::Ns).unwrap_or(0.0);
            let Some(spread) = figure.spread.as_mut().filter(|spread| spread.differ.is_some()) else {
                continue;
            };
            let reported = ends(&spread.by_cpu, unit).filter(|(fast, slow)| {
                let ratio = (fast.p50 / slow.p50).max(slow.p50 / fast.p50);
                let way = scores[place].mean(fast.cpu) < scores[place].mean(slow.cpu);
                let seen = (slow.p50 - fast.p50).abs() > step;
                (found[place] || predicted[place]) && way && seen && ratio >= LEAST_RATIO
            });
            spread.differ = reported.map(|(fast, slow)| {
                let by_interrupts = *waits && handlers.contains(&fast.cpu) && !handlers.contains(&slow.cpu);
                if by_interrupts {
                    Difference::DiskInterrupts
                } else {
                    of_machine(&header.machine, fast.cpu, slow.cpu)
                }
            });
        }
    }
}

/// `None` of a figure that says nothing of the CPU that it was measured on.
fn group(figure: &Record) -> Option<Group> {
    let spread = figure.spread.as_ref()?;
    let sound = figure.checks.iter().all(|check| check.ok) && figure.point.from_cpu.is_none();
    if !sound || spread.rounds.is_none() || spread.by_cpu.len() < 2 {
        return None;
    }
    let (tier, _) = figure.probe.split_once('.')?;
    let waits = tier == "storage" && waits_for_the_disk(&figure.point);
    Some((tier.to_owned(), figure.cache_scope.filter(|_| !waits), waits))
}

/// One small request after the other, past the page cache or flushed.
fn waits_for_the_disk(point: &Point) -> bool {
    let reaches_it =
        point.sync.is_some() || matches!(point.path.as_deref(), Some("direct" | "buffered-fsync-each"));
    reaches_it
        && point.queue_depth.unwrap_or(1) <= 1
        && point.block_bytes.is_none_or(|bytes| bytes <= SMALL_BLOCK)
}

/// The run's CPUs that handle the interrupts of the disk that it measures; none where nobody knows, or all
/// do, or none does.
fn handlers(header: &Header) -> Vec<u32> {
    // A file of the user's may lie on another disk.
    if header.settings.file.is_some() {
        return Vec::new();
    }
    header.machine.interrupted_by_the_disk(&header.cpus)
}

/// How far each round of a group lies from its figures, as a logarithm: positive is slower.
struct Scores(BTreeMap<u32, Vec<f64>>);

impl Scores {
    fn of<'a>(figures: impl Iterator<Item = &'a Record>) -> Self {
        let mut away: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
        for figure in figures {
            let sign = if figure.unit == Unit::BytesPerS { -1.0 } else { 1.0 };
            let mut by_cpu: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
            for own in &figure.rounds {
                let log = sign * own.p50.ln();
                by_cpu.entry(own.cpu).or_default().push((own.round, log));
            }
            let centre =
                by_cpu.values().map(|own| own.iter().map(|(_, log)| log).sum::<f64>() / own.len() as f64);
            let centre = centre.sum::<f64>() / by_cpu.len() as f64;
            for (cpu, (round, log)) in
                by_cpu.iter().flat_map(|(cpu, own)| own.iter().map(move |own| (cpu, own)))
            {
                away.entry((*cpu, *round)).or_default().push(log - centre);
            }
        }
        let mut scores: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for ((cpu, _), figures) in away {
            scores.entry(cpu).or_default().push(median(&figures));
        }
        Self(scores)
    }

    fn chance(&self) -> Option<f64> {
        anova(&self.0.values().cloned().collect::<Vec<_>>())
    }

    /// Whether these CPUs are faster than the others, one-sided at half of [`LEVEL`].
    fn are_less_on(&self, cpus: &[u32]) -> bool {
        let of = |on: bool| -> Vec<f64> {
            let own = self.0.iter().filter(|(cpu, _)| cpus.contains(cpu) == on);
            own.flat_map(|(_, scores)| scores).copied().collect()
        };
        let sides = [of(true), of(false)];
        anova(&sides).is_some_and(|chance| chance <= LEVEL) && mean(&sides[0]) < mean(&sides[1])
    }

    fn mean(&self, cpu: u32) -> f64 {
        self.0.get(&cpu).map_or(f64::NAN, |scores| mean(scores))
    }
}

/// Which of these tests reject, of all together at this level.
fn holm(chances: &[Option<f64>], level: f64) -> Vec<bool> {
    let mut order: Vec<(usize, f64)> =
        chances.iter().enumerate().filter_map(|(place, chance)| Some((place, (*chance)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut found = vec![false; chances.len()];
    for (nth, (place, chance)) in order.iter().enumerate() {
        if *chance > level / (order.len() - nth) as f64 {
            break;
        }
        found[*place] = true;
    }
    found
}

/// The fastest and the slowest.
fn ends(by_cpu: &[CpuFigure], unit: Unit) -> Option<(&CpuFigure, &CpuFigure)> {
    let least = by_cpu.iter().min_by(|a, b| a.p50.total_cmp(&b.p50))?;
    let most = by_cpu.iter().max_by(|a, b| a.p50.total_cmp(&b.p50))?;
    Some(if unit == Unit::BytesPerS { (most, least) } else { (least, most) })
}

/// What the machine says of two CPUs: the largest of what sets them apart.
fn of_machine(machine: &Machine, fast: u32, slow: u32) -> Difference {
    let part = |cpu: u32| machine.cpu.parts.iter().position(|part| part.cpus.contains(&cpu));
    let caches = |cpu: u32| -> Vec<usize> {
        let own = machine.caches.iter().enumerate();
        own.filter(|(_, cache)| cache.cpus.contains(&cpu)).map(|(place, _)| place).collect()
    };
    let node = |cpu: u32| machine.numa.iter().position(|node| node.cpus.contains(&cpu));
    let last = machine.caches.iter().max_by_key(|cache| cache.level);
    // Only who shares the first of them is known.
    let shares = |cpu: u32| last.is_some_and(|cache| cache.shared_cpus.contains(&cpu));
    if part(fast) != part(slow) || caches(fast) != caches(slow) {
        Difference::CoreKind
    } else if node(fast) != node(slow) {
        Difference::NumaNode
    } else if shares(fast) != shares(slow) {
        Difference::LastCache
    } else {
        Difference::Unknown
    }
}

#[cfg(test)]
mod tests {
    use latlab_machine::{Cache, CacheKind, CacheSource, CorePart, Disk, FileSystem, NumaNode};
    use latlab_stats::rng::Rng;

    use super::*;
    use crate::fold::fold;
    use crate::fold::tests::{header, line};
    use crate::{Check, Summary};

    /// Figures of a run: probe, cache scope, a point's path and its block.
    const FIGURES: [(&str, CacheScope, Option<&str>); 7] = [
        ("storage.read.random", CacheScope::Shared, Some("direct")),
        ("storage.write.sequential", CacheScope::Shared, Some("buffered-fsync-each")),
        ("storage.poke", CacheScope::Shared, Some("buffered-warm")),
        ("memory.load.dependent", CacheScope::First, None),
        ("memory.load.dependent", CacheScope::Shared, None),
        ("kernel.syscall", CacheScope::First, None),
        ("network.roundtrip", CacheScope::Private, None),
    ];

    /// A figure of the table in one round; `nth` makes it a point of its own.
    fn record(of: (&str, CacheScope, Option<&str>), nth: u64, round: u32, cpu: u32, p50: f64) -> Record {
        let (probe, scope, path) = of;
        Record {
            probe: probe.to_owned(),
            cache_scope: Some(scope),
            point: Point { path: path.map(str::to_owned), files: Some(nth), ..Point::default() },
            summary: Some(Summary { p50: Some(p50), ..Summary::default() }),
            values: None,
            ..line(nth, round, cpu, p50)
        }
    }

    /// A run on these CPUs, of which those handle the disk's interrupts.
    fn on(cpus: &[u32], handlers: &[u32]) -> Header {
        let mut header = header(&[]);
        header.cpus = cpus.to_vec();
        header.machine.disks =
            vec![Disk { name: "vda".to_owned(), interrupt_cpus: handlers.to_vec(), ..Disk::default() }];
        header.machine.dir.file_system =
            Some(FileSystem { disk: Some("vda".to_owned()), ..FileSystem::default() });
        header
    }

    /// What is said of the figures of a run in which each round's figures lie where `log` says.
    fn reported(
        header: &Header,
        each: u32,
        log: impl Fn(usize, usize, u32, u32) -> f64,
    ) -> Vec<(String, Option<Difference>)> {
        let mut lines = Vec::new();
        let cpus = (0..each).flat_map(|_| header.cpus.iter().copied());
        for (round, cpu) in (0..).zip(cpus) {
            for (place, of) in FIGURES.into_iter().enumerate() {
                for nth in 0..4 {
                    let p50 = 100.0 * log(place, nth, round, cpu).exp();
                    lines.push(record(of, nth as u64, round, cpu, p50));
                }
            }
        }
        fold(header, &lines)
            .into_iter()
            .map(|figure| (figure.probe, figure.spread.and_then(|spread| spread.differ)))
            .collect()
    }

    /// What rounds are like: most figures agree to some percent, some not at all, some have two states of
    /// which a round draws one; what a neighbour does moves all figures that reach equally far, now and then
    /// by much.
    fn noise(seed: u64) -> impl Fn(usize, usize, u32, u32) -> f64 {
        let mut rng = Rng::new(seed);
        let draws: Vec<f64> = (0..20_000).map(|_| rng.normal()).collect();
        let coins: Vec<f64> = (0..20_000).map(|_| rng.uniform()).collect();
        move |place, nth, round, _| {
            let own = place * 100 + nth * 20 + round as usize;
            // The first two wait for the same disk.
            let shared = 10_000 + place.max(1) * 100 + round as usize;
            let spread = [0.005, 0.03, 0.1, 0.2][nth];
            let neighbour = if coins[shared] < 0.1 { 0.3 } else { 0.04 };
            let state = if nth == 3 && coins[own] < 0.5 { 0.7 } else { 0.0 };
            spread * draws[own] + neighbour * draws[shared] + state
        }
    }

    #[test]
    fn of_cpus_that_are_alike_at_most_one_run_in_twenty_says_anything() {
        const RUNS: u64 = 200;
        for (cpus, each) in [(&[0, 1][..], 3), (&[0, 1], 2), (&[0, 1, 2], 2), (&[0, 1], 6)] {
            for handlers in [&[][..], &[1]] {
                let header = on(cpus, handlers);
                let wrong = (1..=RUNS)
                    .filter(|seed| {
                        let found = reported(&header, each, noise(*seed));
                        found.iter().any(|(_, differ)| differ.is_some())
                    })
                    .count();
                println!(
                    "{} CPUs, {each} rounds each, handled by {handlers:?}: {wrong} of {RUNS}",
                    cpus.len()
                );
                assert!(wrong as f64 <= LEVEL * RUNS as f64, "{wrong} of {RUNS}");
            }
        }
    }

    #[test]
    fn a_disk_whose_interrupts_one_cpu_handles_is_reported_and_nothing_else() {
        let header = on(&[0, 1], &[1]);
        let mut found = 0;
        for seed in 1..=50 {
            let noise = noise(seed);
            let waits = |place| place < 2;
            let slower = |place, cpu| if waits(place) && cpu == 0 { 0.35 } else { 0.0 };
            let all = reported(&header, 3, |place, nth, round, cpu| {
                slower(place, cpu) + 0.5 * noise(place, nth.min(2), round, cpu)
            });
            let of = |differ: Difference| all.iter().filter(move |(_, reported)| *reported == Some(differ));
            found += u32::from(of(Difference::DiskInterrupts).count() > 0);
            assert_eq!(of(Difference::Unknown).count(), 0, "{all:?}");
            assert!(
                of(Difference::DiskInterrupts)
                    .all(|(probe, _)| probe.starts_with("storage.") && probe != "storage.poke")
            );
        }
        assert!(found >= 40, "{found} of 50");
    }

    /// All figures differ: CPU 1 is 30 % faster, or it moves 30 % more.
    fn plain(header: &Header) -> Vec<Record> {
        let lines = (0..6).flat_map(|round| {
            let cpu = header.cpus[round as usize % header.cpus.len()];
            FIGURES.into_iter().map(move |of| {
                let faster = if cpu == 1 { 1.3 } else { 1.0 };
                let p50 = (100.0 + f64::from(round)) / faster;
                let mut line = record(of, 0, round, cpu, p50);
                if of.0.starts_with("network.") {
                    line.unit = Unit::BytesPerS;
                    line.summary.as_mut().expect("a figure").p50 = Some(1e4 / p50);
                }
                line
            })
        });
        fold(header, &lines.collect::<Vec<_>>())
    }

    fn differ(figures: &[Record], probe: &str) -> Option<Difference> {
        let figure = figures.iter().find(|figure| figure.probe == probe).expect("measured");
        figure.spread.as_ref().and_then(|spread| spread.differ)
    }

    #[test]
    fn the_interrupts_are_the_reason_only_where_they_can_be() {
        let reason = |header: &Header| differ(&plain(header), "storage.read.random");
        assert_eq!(reason(&on(&[0, 1], &[1])), Some(Difference::DiskInterrupts));
        for elsewhere in [&[][..], &[0], &[0, 1], &[7]] {
            assert_eq!(reason(&on(&[0, 1], elsewhere)), Some(Difference::Unknown), "{elsewhere:?}");
        }
        let mut users = on(&[0, 1], &[1]);
        users.settings.file = Some("file-1".to_owned());
        assert_eq!(reason(&users), Some(Difference::Unknown), "its disk is not known");
        assert_eq!(differ(&plain(&on(&[0, 1], &[1])), "storage.poke"), Some(Difference::Unknown));
        assert_eq!(differ(&plain(&on(&[0, 1], &[1])), "network.roundtrip"), Some(Difference::Unknown));
    }

    #[test]
    fn nothing_is_said_of_one_cpu_of_failed_proofs_of_pairs_and_of_what_is_too_little() {
        assert!(
            plain(&on(&[1], &[1]))
                .iter()
                .all(|figure| { figure.spread.as_ref().is_some_and(|spread| spread.differ.is_none()) })
        );
        let lines = |change: &dyn Fn(&mut Record), apart: f64| {
            let lines = (0..6u32).map(|round| {
                let p50 = 100.0 + f64::from(round) / 10.0 + apart * f64::from(round % 2);
                let mut line = record(FIGURES[5], 0, round, round % 2, p50);
                change(&mut line);
                line
            });
            differ(&fold(&on(&[0, 1], &[]), &lines.collect::<Vec<_>>()), "kernel.syscall")
        };
        assert_eq!(lines(&|_| {}, 30.0), Some(Difference::Unknown));
        assert_eq!(lines(&|_| {}, 9.0), None);
        assert_eq!(lines(&|line| line.resolution_ns = Some(40.0), 30.0), None);
        assert_eq!(lines(&|line| line.point.from_cpu = Some(0), 30.0), None);
        let failed = Check { name: "checksum".to_owned(), ok: false, detail: String::new() };
        assert_eq!(lines(&|line| line.checks = vec![failed.clone()], 30.0), None);
    }

    #[test]
    fn other_reasons_are_what_the_machine_says_of_the_two_cpus() {
        let reason = |change: &dyn Fn(&mut Machine)| {
            let mut header = on(&[0, 1], &[]);
            change(&mut header.machine);
            differ(&plain(&header), "kernel.syscall")
        };
        let cache = |cpus: &[u32], shared: &[u32]| Cache {
            level: 3,
            kind: CacheKind::Unified,
            size_bytes: 32 << 20,
            line_bytes: None,
            ways: None,
            shared_cpus: shared.to_vec(),
            cpus: cpus.to_vec(),
            instances: None,
            source: CacheSource::Sysfs,
        };
        let part = |cpu| CorePart { implementer: 0x41, part: 0xd00 + cpu, name: None, cpus: vec![cpu] };
        let node = |id| NumaNode { id, cpus: vec![id], memory_bytes: None, distances: Vec::new() };
        let one_cache = |machine: &mut Machine| machine.caches = vec![cache(&[0, 1], &[0])];
        assert_eq!(reason(&|machine| machine.cpu.parts = vec![part(0), part(1)]), Some(Difference::CoreKind));
        assert_eq!(
            reason(&|machine| machine.caches = vec![cache(&[0], &[0]), cache(&[1], &[1])]),
            Some(Difference::CoreKind)
        );
        assert_eq!(reason(&one_cache), Some(Difference::LastCache));
        assert_eq!(
            reason(&|machine| {
                one_cache(machine);
                machine.numa = vec![node(0), node(1)];
            }),
            Some(Difference::NumaNode)
        );
        assert_eq!(
            reason(&|machine| machine.caches = vec![cache(&[0, 1], &[0, 1])]),
            Some(Difference::Unknown)
        );
    }

    #[test]
    fn a_test_rejects_as_holm_says() {
        let of = |chances: &[f64]| holm(&chances.iter().copied().map(Some).collect::<Vec<_>>(), 0.05);
        assert_eq!(of(&[0.01, 0.04, 0.03]), [true, false, false]);
        assert_eq!(of(&[0.01, 0.04, 0.02]), [true, true, true]);
        assert_eq!(holm(&[None, Some(0.04)], 0.05), [false, true]);
    }
}
