//! `memory.core_to_core`: how long a cache line takes from one CPU to another and back.

mod choice;
mod clusters;
mod exchange;

use std::sync::Arc;

use latlab_harness::usable_cpus;
use latlab_probes_shared::prelude::*;
use latlab_stats::rng::Rng;

use clusters::{Cluster, Matrix};
use exchange::{Asked, CompareAndSwap, Line, LoadStore, Seen, Way, answer, ask};
use latlab_probes_shared::rig::{self, Done, Page, Rig, Work};

/// The probe.
pub struct CoreToCore;

/// About this long is a window, ns: a few hundred exchanges, and mostly free of timer ticks.
const WINDOW_NS: f64 = 20_000.0;
/// Windows of a block, shared by its lines.
const WINDOWS: u64 = 64;
/// Exchanges through a line before its first window: the line, its translation and the branches are then
/// known.
const WARM: u64 = 64;
/// Both cores are kept busy for so long before a block, ns.
const HEAT_NS: f64 = 1e6;
/// Distance of lines of a page that may be used: two lines, because some prefetchers fetch them in pairs.
const SLOT_BYTES: usize = 128;
/// Of half a page; the other half holds the answers.
const SLOTS: usize = 16;
const PAGE_BYTES: u64 = 4096;

/// CPUs at most that are paired with each other: 15, 28 and 190 pairs.
fn most_cpus(profile: Profile) -> usize {
    match profile {
        Profile::Quick => 6,
        Profile::Standard => 8,
        Profile::Thorough => 20,
    }
}

fn lines_of_a_home(profile: Profile) -> usize {
    if profile == Profile::Thorough { 8 } else { 4 }
}

fn chosen_cpus(env: &Env) -> Vec<u32> {
    choice::choose(&env.cpus, most_cpus(env.settings.profile), &env.machine, env.seed(21))
}

/// Pairs that are measured in every round.
const HEADLINE_PAIRS: usize = 3;

/// Two CPUs, and how they talk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    operation: Operation,
    from_cpu: u32,
    to_cpu: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    CompareAndSwap,
    LoadStore,
}

/// The lines that a pair used.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Details {
    lines: Vec<OfLine>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct OfLine {
    /// Its number in its page.
    line: usize,
    /// CPU that touched its page first.
    home_cpu: u32,
    /// Median round trip through it.
    p50_ns: Option<f64>,
}

/// Which CPUs are near each other.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    operations: Vec<Distances>,
}

/// Round trips of one operation.
#[derive(Serialize, JsonSchema)]
struct Distances {
    operation: Operation,
    /// Those of the matrix, in its order.
    cpus: Vec<u32>,
    /// Symmetric; `null` where there is none.
    matrix_ns: Vec<Vec<Option<f64>>>,
    clusters: Vec<Cluster>,
    /// Median round trip between clusters.
    between_ns: Option<f64>,
    /// Pairs whose blocks were disturbed.
    disturbed: Vec<[u32; 2]>,
    /// Whether only some of all pairs were measured.
    sampled: bool,
}

impl Probe for CoreToCore {
    type Point = Pair;
    type Evidence = Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = Talking<'env>;

    const SPEC: Spec = Spec {
        id: "memory.core_to_core",
        tier: Tier::Memory,
        title: "a cache line from core to core",
        question: "How long does it take to pass a message to another CPU, and which CPUs are near each \
            other?",
        method: "Two threads, each pinned to one CPU, exchange messages through a cache line. The figure is \
            a ROUND TRIP: there and back; tools that print half of it call it the one-way latency. \
A value is the mean over a window of about 20 µs of exchanges. Every pair of the CPUs that may be used is \
measured; where there are many, some are chosen, spread over all and each with a near one, \
and the findings say so (sampled).

Compare-and-swap: one word on one line; each side tries to replace the other's number by its own until it \
succeeds, as a lock does that spins on the exchange itself. \
Load-store: each side writes a word of its own and waits until the other's changes, on two lines; the \
waiting side reads a copy in its own cache, and a change costs an invalidation and a fetch in each direction.

Which path a line takes depends on where it lives: the NUMA node of its memory and the slice of the \
last-level cache that its address belongs to. So eight lines (sixteen in the thorough profile) are used in \
turn in every block, \
half from a page that was touched first on the one CPU, half from a page of the other, never two adjacent \
ones; the findings give the median of each. \
The asking side alternates from block to block. Both cores are kept busy for a millisecond before each \
block, because a core that slept is slow at first, and they start together.

Every exchange carries its number, and both sides add up what they received; the counts and sums of both \
sides must be those of the exchanges asked for. \
Both threads say on which CPU they were. A block in which either thread was switched out, or waited for the \
other for more than about 0.1 ms (which no running partner needs), is marked and repeated. \
A thread that waits that long yields its CPU, and gives up after a second.

Clusters come from the latencies alone (single linkage, cut at the widest gap if it is at least a factor of \
1.5); they are named after a NUMA node or a shared cache only where the machine describes exactly these \
CPUs. \
A virtual machine may run two of its CPUs on one core, and move them: what was measured holds for the time \
of the run.",
        method_version: 1,
        convention: "one round trip: a line from one CPU to the other and back",
        needs: &["two CPUs", "threads that can be pinned to a CPU"],
        touches: &["two CPUs at a time, busy; memory: a page for each CPU"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Pair> {
        if let Some(reason) = rig::no_two_cpus(env) {
            return Plan::no(reason);
        }
        let cpus = chosen_cpus(env);
        let memory_bytes = cpus.len() as u64 * PAGE_BYTES;
        if env.memory_bytes < memory_bytes {
            return Plan::no("needs a page of memory for each CPU");
        }
        Plan::of(points(env, &cpus)).memory(memory_bytes).cpus(2)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Pair]) -> Result<Talking<'env>> {
        Ok(Talking { env, rig: Rig::new(&env.clock, env.patience)?, pages: Vec::new() })
    }

    fn conclude(&self, header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let operations: Vec<Distances> = [Operation::CompareAndSwap, Operation::LoadStore]
            .into_iter()
            .filter_map(|operation| distances(header, operation, figures))
            .collect();
        (!operations.is_empty()).then_some(Findings { operations })
    }
}

fn points(env: &Env, cpus: &[u32]) -> Vec<Planned<Pair>> {
    let mut pairs = Vec::new();
    for (index, from) in cpus.iter().enumerate() {
        pairs.extend(cpus[index + 1..].iter().map(|to| (*from, *to)));
    }
    // The same pairs in every run: near and far ones.
    let apart = pairs.len().div_ceil(HEADLINE_PAIRS).max(1);
    let headline: Vec<(u32, u32)> = pairs.iter().copied().step_by(apart).collect();
    // What there is no time for should not be the same CPU's pairs.
    Rng::new(env.seed(22)).shuffle(&mut pairs);
    [(Operation::CompareAndSwap, 0), (Operation::LoadStore, 1)]
        .into_iter()
        .flat_map(|(operation, priority)| pairs.iter().map(move |pair| (operation, priority, *pair)))
        .map(|(operation, priority, (from_cpu, to_cpu))| Planned {
            rank: rank(
                env,
                operation == Operation::CompareAndSwap && headline.contains(&(from_cpu, to_cpu)),
                Rank::Detail,
            ),
            priority,
            setup_s: 0.3e-3,
            block_s: 3.5e-3,
            ..Planned::new(Pair { operation, from_cpu, to_cpu })
        })
        .collect()
}

fn matrix<'a>(figures: impl Iterator<Item = &'a Figure<CoreToCore>>) -> Matrix {
    let pairs = figures.map(|figure| (figure.point.from_cpu, figure.point.to_cpu, figure.result.p50));
    Matrix::of(&pairs.collect::<Vec<_>>())
}

fn distances(header: &Header, operation: Operation, figures: &[Figure<CoreToCore>]) -> Option<Distances> {
    let own: Vec<_> = figures.iter().filter(|figure| figure.point.operation == operation).collect();
    if own.is_empty() {
        return None;
    }
    let all = matrix(own.iter().copied());
    // What was disturbed is shown, and decides nothing as long as the others reach every CPU.
    let quiet = matrix(own.iter().copied().filter(|figure| !figure.result.disturbed));
    let deciding = if quiet.cpus == all.cpus { &quiet } else { &all };
    let (clusters, between_ns) = deciding.clusters(&header.machine);
    let disturbed = own.iter().filter(|figure| figure.result.disturbed);
    let usable = usable_cpus(&header.machine, &header.settings).len();
    Some(Distances {
        operation,
        clusters,
        between_ns,
        disturbed: disturbed.map(|figure| [figure.point.from_cpu, figure.point.to_cpu]).collect(),
        sampled: own.len() < usable * usable.saturating_sub(1) / 2,
        cpus: all.cpus,
        matrix_ns: all.ns,
    })
}

/// Two threads, and where they meet.
pub struct Talking<'env> {
    env: &'env Env,
    rig: Rig,
    /// A page for each CPU that was met, touched there first.
    pages: Vec<(u32, Arc<Page>)>,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    blocks: u64,
    /// Exchanges asked for, and seen through by the asking and by the answering side.
    asked: u64,
    seen: [u64; 2],
    /// Lines on which what a side was told does not add up.
    wrong_lines: u64,
    /// Blocks that were ended early; their exchanges are not in `asked`.
    cut_short: u64,
    /// Blocks in which a thread was not on its CPU.
    displaced: u64,
    /// Window means of each line, from blocks that were not disturbed.
    lines: Vec<Vec<f64>>,
}

impl Talking<'_> {
    fn page(&mut self, cpu: u32) -> Result<Arc<Page>> {
        let page = kept(&mut self.pages, cpu, || {
            let touching: Work<Result<Page>> = Box::new(|_| Page::new(PAGE_BYTES));
            let touched = self.rig.run(vec![(cpu, touching)])?.pop();
            let none = || ProbeError::Other("no page was made".to_owned());
            touched.ok_or_else(none)?.result.map(Arc::new)
        })?;
        Ok(Arc::clone(page))
    }

    /// Slots of the lines that a pair uses, each with the CPU that touches its page first.
    fn slots(&self, point: &Pair) -> Vec<(u32, usize)> {
        let (from, to) = (point.from_cpu, point.to_cpu);
        let mut rng = Rng::new(self.env.seed(23 + (u64::from(from) << 20) + u64::from(to)));
        let of_a_home = lines_of_a_home(self.env.settings.profile);
        let of = |home_cpu| {
            let mut slots: Vec<usize> = (0..SLOTS).collect();
            rng.shuffle(&mut slots);
            slots.into_iter().take(of_a_home).map(move |slot| (home_cpu, slot))
        };
        [from, to].into_iter().flat_map(of).collect()
    }

    fn lines(&mut self, point: &Pair) -> Result<Vec<Line>> {
        let slots = self.slots(point).into_iter();
        slots.map(|(cpu, slot)| Ok(Line { page: self.page(cpu)?, offset: slot * SLOT_BYTES })).collect()
    }

    fn exchange(&mut self, operation: Operation, cpus: [u32; 2], asked: &Asked) -> Result<[Done<Seen>; 2]> {
        match operation {
            Operation::CompareAndSwap => exchange::<CompareAndSwap>(&mut self.rig, cpus, asked),
            Operation::LoadStore => exchange::<LoadStore>(&mut self.rig, cpus, asked),
        }
    }
}

/// One round: the first CPU asks, the second answers.
fn exchange<W: Way>(rig: &mut Rig, cpus: [u32; 2], asked: &Asked) -> Result<[Done<Seen>; 2]> {
    with_partner::<W>(rig, cpus, asked, answer::<W>)
}

fn with_partner<W: Way>(
    rig: &mut Rig,
    cpus: [u32; 2],
    asked: &Asked,
    partner: fn(&mut rig::Place, &Asked) -> Seen,
) -> Result<[Done<Seen>; 2]> {
    for line in &asked.lines {
        line.reset();
    }
    let (asking, answering) = (asked.clone(), asked.clone());
    let asks: Work<Seen> = Box::new(move |place| ask::<W>(place, &asking));
    let answers: Work<Seen> = Box::new(move |place| partner(place, &answering));
    let done = rig.run(vec![(cpus[0], asks), (cpus[1], answers)])?;
    done.try_into().map_err(|_| ProbeError::Other("two threads were asked and not two answered".to_owned()))
}

impl Evidence {
    /// Takes in a block; whether it is free of disturbances.
    fn add(&mut self, asked: &Asked, done: &[Done<Seen>; 2]) -> bool {
        let [asking, answering] = [&done[0].result, &done[1].result];
        self.blocks += 1;
        self.wrong_lines += asking.wrong_lines + answering.wrong_lines;
        self.displaced += u64::from(done.iter().any(|side| side.in_place == Some(false)));
        if asking.cut_short {
            self.cut_short += 1;
            // The one exchange that was under way.
            self.wrong_lines += u64::from(asking.exchanges.abs_diff(answering.exchanges) > 1);
        } else {
            self.asked += asked.exchanges();
            self.seen[0] += asking.exchanges;
            self.seen[1] += answering.exchanges;
        }
        !asking.cut_short
            && done.iter().all(|side| side.result.stalls == 0 && !rig::was_switched_out(&side.observed))
    }

    fn checks(&self) -> Vec<Check> {
        let [asking, answering] = self.seen;
        vec![
            Check {
                name: "exchanges".to_owned(),
                ok: self.blocks > 0
                    && asking == self.asked
                    && answering == self.asked
                    && self.wrong_lines == 0,
                detail: format!(
                    "{} asked for, {asking} seen by the side that asks, {answering} by the side that \
                        answers; {} sums of numbers wrong; {} \
of {} blocks ended early",
                    self.asked, self.wrong_lines, self.cut_short, self.blocks
                ),
            },
            Check {
                name: "each thread on its CPU".to_owned(),
                ok: self.displaced == 0,
                detail: format!("{} of {} blocks with a thread elsewhere", self.displaced, self.blocks),
            },
        ]
    }
}

impl Session<CoreToCore> for Talking<'_> {
    fn select(&mut self, point: &Pair) -> Result<()> {
        self.lines(point).map(drop)
    }

    fn block(&mut self, point: &Pair, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let (operation, lines) = (point.operation, self.lines(point)?);
        let mut cpus = [point.from_cpu, point.to_cpu];
        if evidence.blocks % 2 == 1 {
            cpus.reverse();
        }
        block.set_waits();
        let clock = &self.env.clock;
        let mut asked = Asked { lines: lines[..1].to_vec(), warm: WARM, windows: 1, ops: 1, heat: 0 };
        asked.ops = rig::window_ops(clock, block, WINDOW_NS, |ops| {
            let [asking, _] = self.exchange(operation, cpus, &Asked { ops, ..asked.clone() })?;
            Ok(asking.result.windows.first().map(|(_, begin, end)| (*begin, *end)))
        })?;
        asked.windows = WINDOWS.div_ceil(lines.len() as u64);
        asked.heat = clock.ticks(HEAT_NS);
        asked.lines = lines;
        let done = self.exchange(operation, cpus, &asked)?;
        let windows = &done[0].result.windows;
        if windows.is_empty() {
            return Err(ProbeError::Other(format!(
                "CPU {} and {} could not exchange messages: something else keeps one of them busy",
                cpus[0], cpus[1]
            )));
        }
        evidence.lines.resize(asked.lines.len(), Vec::new());
        let quiet = evidence.add(&asked, &done);
        if !quiet {
            block.mark_disturbed();
        }
        for (line, begin, end) in windows {
            block.window(*begin, *end, asked.ops);
            if quiet {
                let ns = clock.ns(end.saturating_sub(*begin)) / asked.ops as f64;
                evidence.lines[*line].push(ns);
            }
        }
        rig::observe(block, done.iter().map(|side| &side.observed));
        Ok(())
    }

    fn proof(&mut self, point: &Pair, evidence: &Evidence) -> Proof<Details> {
        let lines = self.slots(point).into_iter().zip(&evidence.lines);
        let lines = lines.map(|((home_cpu, line), means)| OfLine {
            line,
            home_cpu,
            p50_ns: median(means.iter().copied()),
        });
        Proof::of(evidence.checks()).with(Details { lines: lines.collect() })
    }
}

#[cfg(test)]
mod tests;
