//! A second look at the points of a run, when all probes were measured: most important points first, as many as there is time for.
//!
//! A point's blocks lie within tenths of a second, so what differs between two runs (pages elsewhere, another core of the host below
//! this one, a neighbour, a clock frequency) is in none of them. The second look opens a session of its own and comes as late as the
//! run allows; what it finds makes no record, but wider intervals ([`between_looks`]).

use latlab_harness::{Env, Progress, Reference, Sink, run_probe};
use latlab_record::{Kind, LookedAgain, Point, Record};
use latlab_stats::{Look, Seen, between_looks};

use crate::registry::Entry;

/// Share of a run's time for it in the quick, standard and thorough profile. Six blocks of a point take 10 to 100 ms; a quick run has few seconds, of which
/// the last probes before it may use some.
pub(crate) const SHARE: [f64; 3] = [0.2, 0.12, 0.1];
/// Blocks that a figure needs for an interval.
const BLOCKS: f64 = 6.0;
/// The least that opening and closing a probe's session takes, s.
const OPEN_S: f64 = 0.01;
/// Of the time that is left, so much is given away: the first look's costs are estimates of the second one's.
const PLANNED_SHARE: f64 = 0.8;
const LEVEL: f64 = 0.95;

/// A record's median, as far as a second look is concerned.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    probe: String,
    point: Point,
    p50: f64,
    interval: Option<[f64; 2]>,
    disturbed: bool,
    /// When its first block began, ns.
    at_ns: f64,
    /// When its last block ended, ns.
    ended_ns: f64,
    blocks: usize,
}

impl Figure {
    /// `None` for what has no figure of its own.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let summary = record.summary.as_ref()?;
        let measured = matches!(record.kind, Kind::BatchMean | Kind::PerOp);
        measured.then_some(())?;
        Some(Self {
            probe: record.probe.clone(),
            point: record.point.clone(),
            p50: summary.p50?,
            interval: summary.intervals.get("p50").copied(),
            disturbed: record.flags.iter().any(|flag| flag == "disturbed"),
            at_ns: record.blocks.first().map_or(0.0, |block| block.at_ns),
            ended_ns: record
                .blocks
                .last()
                .map_or(0.0, |block| block.at_ns + block.duration_ns),
            blocks: record.blocks.len(),
        })
    }

    fn look(&self) -> Look {
        let [lo, hi] = self.interval.unwrap_or([self.p50; 2]);
        Look {
            value: self.p50,
            lo,
            hi,
        }
    }

    /// A second look that had time for fewer than six blocks is known no better than the first one.
    fn look_beside(&self, first: &Self) -> Look {
        let own = first.look();
        let times = self.p50 / own.value;
        match self.interval {
            None if times.is_finite() => Look {
                value: self.p50,
                lo: own.lo * times,
                hi: own.hi * times,
            },
            _ => self.look(),
        }
    }
}

/// A probe's points to be measured again.
struct Turn<'a> {
    entry: &'a Entry,
    points: Vec<Point>,
    need_s: f64,
}

/// Measures again what `first` has of these probes, until `deadline_ns` at the latest.
pub(crate) fn look(
    env: &Env,
    chosen: &[&Entry],
    first: &[Figure],
    deadline_ns: f64,
    reference: &mut dyn Reference,
    sink: &mut dyn Sink,
) -> Vec<Figure> {
    let repeated: Vec<(&Entry, Cost, Vec<Point>)> = chosen
        .iter()
        .filter(|entry| entry.probe.repeats(&env.settings))
        .filter_map(|entry| {
            let cost = cost(first, entry.probe.spec().id)?;
            Some((*entry, cost, known(env, entry, first)))
        })
        .collect();
    let left_s = (deadline_ns - env.clock.now_ns()) / 1e9;
    let wanted: Vec<(Cost, usize)> = repeated
        .iter()
        .map(|(_, cost, points)| (*cost, points.len()))
        .collect();
    let counts = dealt(&wanted, PLANNED_SHARE * left_s);
    let turns: Vec<Turn> = repeated
        .into_iter()
        .zip(&counts)
        .filter(|(_, count)| **count > 0)
        .map(|((entry, cost, mut points), count)| {
            points.truncate(*count);
            Turn {
                entry,
                need_s: cost.open_s + *count as f64 * cost.point_s,
                points,
            }
        })
        .collect();
    let mut left_need_s: f64 = turns.iter().map(|turn| turn.need_s).sum();
    let mut found = Vec::new();
    for turn in turns {
        let now_ns = env.clock.now_ns();
        if sink.cancelled() || now_ns >= deadline_ns {
            break;
        }
        // What one leaves over goes to those after it.
        let own_ns = (deadline_ns - now_ns) * turn.need_s / left_need_s;
        left_need_s -= turn.need_s;
        let mut looker = Looker {
            told: sink,
            wanted: turn.points,
            found: Vec::new(),
        };
        run_probe(turn.entry.probe, env, now_ns + own_ns, reference, &mut looker);
        found.append(&mut looker.found);
    }
    found
}

/// What the first look at a probe took.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// From the last block of the probe before it to its own first one, s.
    open_s: f64,
    /// Six blocks of one point, with all that is between blocks, s.
    point_s: f64,
}

/// `None` for a probe without a figure. Its points took turns, so that all of its blocks together say what one costs.
fn cost(first: &[Figure], probe: &str) -> Option<Cost> {
    let own = || first.iter().filter(|figure| figure.probe == probe);
    let begun_ns = own().map(|figure| figure.at_ns).reduce(f64::min)?;
    let ended_ns = own().map(|figure| figure.ended_ns).fold(begun_ns, f64::max);
    let blocks: usize = own().map(|figure| figure.blocks).sum();
    let before_ns = first
        .iter()
        .filter(|figure| figure.probe != probe && figure.ended_ns <= begun_ns)
        .map(|figure| figure.ended_ns)
        .reduce(f64::max);
    Some(Cost {
        open_s: before_ns.map_or(0.0, |ns| (begun_ns - ns) / 1e9).max(OPEN_S),
        point_s: BLOCKS * (ended_ns - begun_ns) / 1e9 / blocks.max(1) as f64,
    })
}

/// How many points of each probe, of those that it has, fit into `left_s`: one of each, from the cheapest probe to the dearest, then a second one of
/// each, and so on.
fn dealt(probes: &[(Cost, usize)], mut left_s: f64) -> Vec<usize> {
    let mut counts = vec![0; probes.len()];
    let mut order: Vec<usize> = (0..probes.len()).collect();
    let rounds = probes.iter().map(|(_, points)| *points).max().unwrap_or(0);
    for round in 0..rounds {
        let next_s = |probe: usize| {
            let cost = probes[probe].0;
            cost.point_s + if round == 0 { cost.open_s } else { 0.0 }
        };
        order.retain(|probe| probes[*probe].1 > round);
        order.sort_by(|a, b| next_s(*a).total_cmp(&next_s(*b)));
        order.retain(|probe| {
            let fits = next_s(*probe) <= left_s;
            if fits {
                left_s -= next_s(*probe);
                counts[*probe] += 1;
            }
            fits
        });
    }
    counts
}

/// The points of a probe that have a figure, most important first, as far as what they write was announced.
fn known(env: &Env, entry: &Entry, first: &[Figure]) -> Vec<Point> {
    let id = entry.probe.spec().id;
    let mut left_bytes = env.disk.budget().left_bytes();
    let mut planned = entry.probe.points(env);
    planned.sort_by_key(|planned| planned.priority);
    let mut known = Vec::new();
    for planned in planned {
        let has_figure = first
            .iter()
            .any(|figure| figure.probe == id && figure.point == planned.point);
        if has_figure && planned.written_bytes <= left_bytes {
            left_bytes -= planned.written_bytes;
            known.push(planned.point);
        }
    }
    known
}

/// Keeps figures instead of handing records on. It names no point that is begun: if the process dies in it, no record is missing.
struct Looker<'a> {
    told: &'a mut dyn Sink,
    wanted: Vec<Point>,
    found: Vec<Figure>,
}

impl Sink for Looker<'_> {
    fn begin(&mut self, _probe: &'static str, _point: &Point) {}

    fn progress(&mut self, progress: &Progress) {
        self.told.progress(progress);
    }

    fn record(&mut self, record: Record) {
        self.found.extend(Figure::of(&record));
    }

    fn cancelled(&self) -> bool {
        self.told.cancelled()
    }

    fn excluded(&self, _probe: &str, point: &Point) -> bool {
        !self.wanted.contains(point)
    }
}

/// What both looks say of each figure of the first one that has an interval of its own: see [`between_looks`].
pub(crate) fn compared(first: &[Figure], second: &[Figure]) -> Vec<LookedAgain> {
    let mut groups: Vec<Vec<(&Figure, Option<&Figure>)>> = Vec::new();
    for figure in first {
        let later = second
            .iter()
            .find(|later| later.probe == figure.probe && later.point == figure.point);
        match groups.iter_mut().find(|group| group[0].0.probe == figure.probe) {
            Some(group) => group.push((figure, later)),
            None => groups.push(vec![(figure, later)]),
        }
    }
    let seen: Vec<Vec<Seen>> = groups
        .iter()
        .map(|group| {
            group
                .iter()
                .map(|(figure, later)| Seen {
                    first: figure.look(),
                    // A disturbed figure is one of the disturbance: how far it lies off says nothing of others. Nor does one of too few
                    // samples for an interval: what it is off by may be their scatter.
                    second: later
                        .filter(|later| figure.interval.is_some() && !figure.disturbed && !later.disturbed)
                        .map(|later| later.look_beside(figure)),
                })
                .collect()
        })
        .collect();
    let intervals = between_looks(&seen, LEVEL);
    groups
        .iter()
        .zip(intervals)
        .flat_map(|(group, intervals)| group.iter().zip(intervals))
        .filter_map(|((figure, later), interval)| {
            // What its samples cannot support, those of others cannot either.
            figure.interval?;
            let (lo, hi) = interval?;
            Some(LookedAgain {
                probe: figure.probe.clone(),
                point: figure.point.clone(),
                p50: later.map(|later| later.p50),
                interval: later.and_then(|later| later.interval),
                later_s: later.map(|later| rounded((later.at_ns - figure.at_ns) / 1e9)),
                between_looks: [lo, hi].map(rounded),
            })
        })
        .collect()
}

/// Five digits, as in a record.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(probe: &str, nodes: u64, p50: f64) -> Figure {
        Figure {
            probe: probe.to_owned(),
            point: Point {
                nodes: Some(nodes),
                ..Point::default()
            },
            p50,
            interval: Some([p50 * 0.99, p50 * 1.01]),
            disturbed: false,
            at_ns: 1e9,
            ended_ns: 1.1e9,
            blocks: 6,
        }
    }

    #[test]
    fn every_figure_of_a_probe_that_was_looked_at_twice_has_an_interval_between_looks() {
        let first = [
            figure("a", 1, 10.0),
            figure("b", 1, 5.0),
            figure("a", 2, 20.0),
            figure("c", 1, 7.0),
        ];
        let later = Figure {
            at_ns: 26e9,
            ..figure("a", 1, 13.0)
        };
        let found = compared(&first, &[later, figure("b", 1, 5.0)]);
        let named: Vec<(&str, Option<f64>)> = found.iter().map(|own| (own.probe.as_str(), own.p50)).collect();
        assert_eq!(named, [("a", Some(13.0)), ("a", None), ("b", Some(5.0))]);
        assert_eq!(found[0].later_s, Some(25.0));
        assert!(found[0].between_looks[0] < 9.9 && found[0].between_looks[1] >= 13.13);
        assert!(
            found[1].between_looks[1] > 20.2,
            "its neighbour moved: {:?}",
            found[1]
        );
    }

    #[test]
    fn a_figure_of_too_few_samples_for_an_interval_gets_none_by_another_look() {
        let few = |nodes, p50| Figure {
            interval: None,
            ..figure("a", nodes, p50)
        };
        let first = [figure("a", 1, 10.0), few(2, 20.0), few(3, 30.0)];
        let found = compared(&first, &[figure("a", 1, 10.0), figure("a", 2, 90.0)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].between_looks[1] < 10.5,
            "its scatter is not others': {found:?}"
        );
    }

    #[test]
    fn each_probe_has_its_first_point_before_any_has_its_second() {
        let probe = |open_s, point_s, points| (Cost { open_s, point_s }, points);
        let probes = [
            probe(1.0, 0.1, 3),
            probe(0.1, 0.2, 3),
            probe(0.0, 0.1, 0),
            probe(0.1, 0.1, 2),
        ];
        assert_eq!(dealt(&probes, 0.1), [0, 0, 0, 0]);
        assert_eq!(dealt(&probes, 0.65), [0, 1, 0, 2], "the cheapest probes first");
        assert_eq!(dealt(&probes, 1.65), [1, 1, 0, 1]);
        assert_eq!(
            dealt(&probes, 1.75),
            [1, 1, 0, 2],
            "equals in the order of the round before"
        );
        assert_eq!(dealt(&probes, 9.0), [3, 3, 0, 2]);
    }

    #[test]
    fn what_a_second_look_costs_is_what_the_first_one_took() {
        let timed = |probe: &str, nodes: u64, at_ns: f64, ended_ns: f64| Figure {
            at_ns,
            ended_ns,
            blocks: 5,
            ..figure(probe, nodes, 1.0)
        };
        let first = [
            timed("a", 1, 1e9, 2e9),
            timed("b", 1, 2.5e9, 3.4e9),
            timed("b", 2, 2.6e9, 3.5e9),
        ];
        let found = cost(&first, "b").expect("it has figures");
        assert!((found.open_s - 0.5).abs() < 1e-9, "{found:?}");
        assert!(
            (found.point_s - 0.6).abs() < 1e-9,
            "10 blocks in a second: {found:?}"
        );
        assert_eq!(cost(&first, "c"), None);
    }

    #[test]
    fn a_disturbed_look_widens_nothing() {
        let first = [figure("a", 1, 10.0), figure("a", 2, 20.0), figure("a", 3, 30.0)];
        let quiet = [figure("a", 1, 10.0), figure("a", 2, 20.0)];
        let mut second = quiet.to_vec();
        second.push(Figure {
            disturbed: true,
            ..figure("a", 3, 300.0)
        });
        let found = compared(&first, &second);
        assert_eq!(found[2].p50, Some(300.0), "it is told");
        assert!(found[2].between_looks[1] < 32.0, "{:?}", found[2]);
    }
}
