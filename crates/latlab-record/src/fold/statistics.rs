//! The statistics of figures: by CPU and round, moderated by kin.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use latlab_stats::{Folded, fold_rounds, min_samples, moments, quantile, weighted};

use super::points::PointLines;
use crate::estimate::LEVEL;
use crate::{
    CacheScope, Channel, CpuFigure, Difference, EncodedHistogram, Histogram, Record, RoundFigure, Spread,
    Summary, significant,
};

/// What a figure says, by the names of its summary; the mean is no quantile.
const STATISTICS: [(&str, Option<f64>); 6] = [
    ("p50", Some(0.5)),
    ("p90", Some(0.9)),
    ("p99", Some(0.99)),
    ("p999", Some(0.999)),
    ("p9999", Some(0.9999)),
    ("mean", None),
];
/// Why what one round measured has no interval.
const NO_KIN: &str = "and too few similar points show how much rounds vary";
const TOO_WIDE: &str =
    "it would exceed ten times the figure: its rounds, or those of similar points, differ too much";

/// Gives each figure its statistics with their intervals, what its rounds say alone, and what they differ by.
pub(super) fn complete(figures: &mut [Record], points: &[PointLines]) {
    let mut series = Vec::new();
    for (figure, point) in points.iter().enumerate() {
        if point.good.is_empty() {
            continue;
        }
        series.push(Series::of(figure, None, &point.good));
        let mut names: Vec<&str> = Vec::new();
        for channel in point.good.iter().flat_map(|line| &line.channels) {
            if !names.contains(&channel.name.as_str()) {
                names.push(&channel.name);
                series.push(Series::of(figure, Some(&channel.name), &point.good));
            }
        }
        figures[figure].channels.clear();
    }
    let mut kin: BTreeMap<Kinship, Vec<usize>> = BTreeMap::new();
    for (index, series) in series.iter().enumerate() {
        kin.entry(kinship(series.lines[0], series.channel)).or_default().push(index);
    }
    for group in kin.values() {
        for statistic in 0..STATISTICS.len() {
            fold_kin(&mut series, group, statistic);
        }
    }
    for series in series {
        let figure = &mut figures[series.figure];
        match series.channel {
            None => {
                figure.rounds = series.rounds();
                figure.spread = series.spread();
                figure.histogram = series.histogram;
                figure.summary = Some(series.summary);
            }
            Some(name) => figure.channels.push(Channel {
                name: name.to_owned(),
                samples: series.samples,
                summary: series.summary,
                histogram: series.histogram,
            }),
        }
    }
}

/// One statistic of all kin together.
fn fold_kin(series: &mut [Series], group: &[usize], statistic: usize) {
    let with: Vec<(usize, Vec<Vec<f64>>)> = group
        .iter()
        .filter_map(|index| Some((*index, series[*index].statistics[statistic].take()?)))
        .collect();
    let points: Vec<Vec<Vec<f64>>> = with.iter().map(|(_, cpus)| cpus.clone()).collect();
    for ((index, _), folded) in with.iter().zip(fold_rounds(&points, LEVEL)) {
        let Some(folded) = folded else { continue };
        series[*index].take_in(statistic, folded);
    }
}

/// Whose rounds differ alike: points of the same probe and the same cache scope.
type Kinship<'a> = (&'a str, u32, Option<CacheScope>, u8, u8, Option<&'a str>);

pub(super) fn kinship<'a>(first: &'a Record, channel: Option<&'a str>) -> Kinship<'a> {
    let (kind, unit) = (first.kind as u8, first.unit as u8);
    (&first.probe, first.method, first.cache_scope, kind, unit, channel)
}

/// The samples of a point, or of one channel of it, in one round.
struct Part<'a> {
    round: u32,
    cpu: Option<u32>,
    samples: u64,
    summary: &'a Summary,
    histogram: Option<&'a EncodedHistogram>,
    values: &'a [f64],
}

struct Series<'a> {
    figure: usize,
    channel: Option<&'a str>,
    lines: &'a [&'a Record],
    cpus: Vec<(Option<u32>, Vec<Part<'a>>)>,
    samples: u64,
    /// By CPU and round, until they are folded.
    statistics: [Option<Vec<Vec<f64>>>; STATISTICS.len()],
    summary: Summary,
    median: Option<Folded>,
    histogram: Option<EncodedHistogram>,
}

impl<'a> Series<'a> {
    fn of(figure: usize, channel: Option<&'a str>, good: &'a [&'a Record]) -> Self {
        let mut by_cpu: BTreeMap<Option<u32>, Vec<Part>> = BTreeMap::new();
        for part in good.iter().filter_map(|line| Part::of(line, channel)) {
            by_cpu.entry(part.cpu).or_default().push(part);
        }
        let mut series = Self {
            figure,
            channel,
            lines: good,
            samples: 0,
            cpus: by_cpu.into_iter().collect(),
            statistics: Default::default(),
            summary: Summary::default(),
            median: None,
            histogram: None,
        };
        series.draw();
        series
    }

    fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.cpus.iter().flat_map(|(_, parts)| parts)
    }

    /// What its rounds say before kin are asked.
    fn draw(&mut self) {
        let pools: Vec<OnceCell<Pool>> = self.cpus.iter().map(|_| OnceCell::new()).collect();
        for (slot, (name, q)) in STATISTICS.iter().enumerate() {
            match self.by_round(name, *q, &pools) {
                Ok(values) => self.statistics[slot] = values,
                Err(reason) => {
                    self.summary.refused.insert((*name).to_owned(), reason);
                }
            }
        }
        let each = |of: fn(&Summary) -> Option<f64>| {
            let found = self.parts().filter_map(|part| of(part.summary));
            found.filter(|value| value.is_finite()).collect::<Vec<f64>>()
        };
        let least = |values: Vec<f64>| values.into_iter().min_by(f64::total_cmp);
        let most = |values: Vec<f64>| values.into_iter().max_by(f64::total_cmp);
        let blocks = (
            least(each(|summary| summary.between_blocks.map(|ends| ends[0]))),
            most(each(|summary| summary.between_blocks.map(|ends| ends[1]))),
        );
        let summary = Summary {
            min: least(each(|summary| summary.min)),
            max: most(each(|summary| summary.max)),
            std: each(|summary| summary.std).first().copied(),
            between_blocks: blocks.0.zip(blocks.1).map(<[f64; 2]>::from),
            refused: std::mem::take(&mut self.summary.refused),
            ..Summary::default()
        };
        let samples = self.parts().map(|part| part.samples);
        self.samples = samples.fold(0, u64::saturating_add);
        let first = self.parts().next().and_then(|part| part.histogram.cloned());
        self.histogram = first;
        self.summary = summary;
        if self.parts().count() > 1 {
            let all = Pool::of(self.parts());
            self.summary.std = all.std().map(significant);
            self.histogram = all.histogram.map(|histogram| histogram.encode());
        }
    }

    /// A statistic by CPU and round; by CPU alone where a round has too few samples for it. `None` where no
    /// round has it.
    fn by_round(
        &self,
        name: &str,
        q: Option<f64>,
        pools: &[OnceCell<Pool>],
    ) -> Result<Option<Vec<Vec<f64>>>, String> {
        let mut by_cpu = Vec::new();
        for ((_, parts), pool) in self.cpus.iter().zip(pools) {
            let own: Option<Vec<f64>> = parts.iter().map(|part| statistic(part.summary, name)).collect();
            match (own, q) {
                (Some(own), _) => by_cpu.push(own),
                (None, None) => return Ok(None),
                (None, Some(q)) => {
                    let need = min_samples(q, LEVEL);
                    let have = parts.iter().map(Part::kept).fold(0, u64::saturating_add);
                    let enough = parts.len() > 1 && have >= need;
                    let pooled = enough.then(|| pool.get_or_init(|| Pool::of(parts)).quantile(q));
                    match pooled.flatten() {
                        Some(value) => by_cpu.push(vec![value]),
                        None => return Err(self.too_few(have, need)),
                    }
                }
            }
        }
        Ok(Some(by_cpu))
    }

    fn too_few(&self, have: u64, need: u64) -> String {
        let place = if self.cpus.len() > 1 { " on one of the CPUs" } else { "" };
        let taken = self.parts().all(|part| part.kept() == part.samples);
        let kept = if taken { "" } else { " kept" };
        format!("{have} samples{kept}{place}, needs {need}")
    }

    fn take_in(&mut self, slot: usize, folded: Folded) {
        let (name, _) = STATISTICS[slot];
        if let Some(place) = self.summary.place(name) {
            *place = Some(significant(folded.value));
        }
        match folded.interval {
            Some(ends) => {
                let ends = self.not_within_a_step(name, folded.value, ends).map(significant);
                self.summary.intervals.insert(name.to_owned(), ends);
            }
            None if name == STATISTICS[0].0 => {
                let positive = self.parts().all(|part| statistic(part.summary, name) > Some(0.0));
                let why = match (folded.rounds, self.cpus.len()) {
                    _ if !positive => "only positive values have an interval".to_owned(),
                    (None, 1) => format!("measured once, {NO_KIN}"),
                    (None, cpus) => format!("measured once on each of {cpus} CPUs, {NO_KIN}"),
                    (Some(_), _) => TOO_WIDE.to_owned(),
                };
                self.summary.refused.insert(format!("{name} interval"), why);
            }
            None => {}
        }
        if name == STATISTICS[0].0 {
            self.median = Some(folded);
        }
    }

    /// An interval that is as wide as the clock's step where each value is a number of steps: what lies
    /// between two of them, no round tells.
    fn not_within_a_step(&self, name: &str, value: f64, (lo, hi): (f64, f64)) -> [f64; 2] {
        let lines = self.lines.iter().filter_map(|line| line.resolution_ns);
        let step = lines.fold(0.0, f64::max);
        // The mean of many steps lies between them.
        if name == "mean" || hi - lo >= step {
            return [lo, hi];
        }
        let lo = lo.min((value - step / 2.0).max(value / 2.0));
        [lo, hi.max(lo + step)]
    }

    fn rounds(&self) -> Vec<RoundFigure> {
        let mut rounds: Vec<RoundFigure> = self
            .parts()
            .filter_map(|part| {
                Some(RoundFigure { round: part.round, cpu: part.cpu?, p50: statistic(part.summary, "p50")? })
            })
            .collect();
        rounds.sort_by_key(|figure| figure.round);
        rounds
    }

    fn spread(&self) -> Option<Spread> {
        let median = self.median.as_ref()?;
        let by_cpu = self.cpus.iter().zip(&median.by_cpu);
        Some(Spread {
            within: within(self.lines).map(significant),
            rounds: median.rounds.map(significant),
            cpus: median.cpus.map(significant),
            differ: median.differ.then_some(Difference::Unknown),
            by_cpu: by_cpu
                .filter_map(|((cpu, parts), p50)| {
                    Some(CpuFigure {
                        cpu: (*cpu)?,
                        p50: significant((*p50)?),
                        rounds: u32::try_from(parts.len()).unwrap_or(u32::MAX),
                    })
                })
                .collect(),
        })
    }
}

impl<'a> Part<'a> {
    fn of(line: &'a Record, channel: Option<&str>) -> Option<Self> {
        let (samples, summary, histogram, values) = match channel {
            None => {
                let values = line.values.as_deref().unwrap_or_default();
                (line.samples, line.summary.as_ref()?, &line.histogram, values)
            }
            Some(name) => {
                let own = line.channels.iter().find(|own| own.name == name)?;
                (own.samples, &own.summary, &own.histogram, &[][..])
            }
        };
        let (round, cpu, histogram) = (line.round.unwrap_or(0), line.cpu, histogram.as_ref());
        Some(Self { round, cpu, samples, summary, histogram, values })
    }

    /// Samples that a pool can take: a line keeps all single operations, and not always all batch means.
    fn kept(&self) -> u64 {
        self.histogram.map_or(self.values.len() as u64, |_| self.samples)
    }
}

/// The samples of several rounds together.
struct Pool {
    histogram: Option<Histogram>,
    /// Ascending.
    values: Vec<f64>,
    ends: [f64; 2],
}

impl Pool {
    fn of<'a, 'b: 'a>(parts: impl IntoIterator<Item = &'a Part<'b>>) -> Self {
        let mut pool = Self { histogram: None, values: Vec::new(), ends: [f64::INFINITY, f64::NEG_INFINITY] };
        for part in parts {
            if let Some(stored) = part.histogram {
                // What is damaged is left out of the shape; the statistics of its round stand in its summary.
                let _left_out = pool.histogram.get_or_insert_default().add(stored);
            }
            pool.values.extend(part.values.iter().filter(|value| value.is_finite()));
            pool.ends[0] = pool.ends[0].min(part.summary.min.unwrap_or(f64::INFINITY));
            pool.ends[1] = pool.ends[1].max(part.summary.max.unwrap_or(f64::NEG_INFINITY));
        }
        pool.values.sort_by(f64::total_cmp);
        pool
    }

    /// A bucket stands for its middle, which lies beyond the extremes when they share the bucket; a quantile
    /// never does.
    fn quantile(&self, q: f64) -> Option<f64> {
        let value = match &self.histogram {
            Some(histogram) => weighted::quantile_counts(&histogram.occupied(), q),
            None => quantile(&self.values, q),
        };
        let [least, most] = self.ends;
        let within = if least <= most { value.clamp(least, most) } else { value };
        within.is_finite().then_some(within)
    }

    fn std(&self) -> Option<f64> {
        match &self.histogram {
            Some(histogram) => histogram.std_ns(),
            None => moments(&self.values)?.std,
        }
    }
}

fn statistic(summary: &Summary, name: &str) -> Option<f64> {
    let value = match name {
        "p50" => summary.p50,
        "p90" => summary.p90,
        "p99" => summary.p99,
        "p999" => summary.p999,
        "p9999" => summary.p9999,
        _ => summary.mean,
    };
    value.filter(|value| value.is_finite())
}

/// Standard deviation of the logarithm between the undisturbed blocks of one round; of all where it has no
/// two of them.
fn within(good: &[&Record]) -> Option<f64> {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for line in good {
        let logs = |quiet: bool| -> Vec<f64> {
            let own = line.blocks.iter().filter(|block| !(quiet && block.disturbed));
            own.map(|block| block.p50.ln()).filter(|log| log.is_finite()).collect()
        };
        let mut own = logs(true);
        if own.len() < 2 {
            own = logs(false);
        }
        let n = own.len() as f64;
        let mean = own.iter().sum::<f64>() / n.max(1.0);
        squares += own.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        degrees += (n - 1.0).max(0.0);
    }
    (degrees > 0.0).then(|| (squares / degrees).sqrt())
}
