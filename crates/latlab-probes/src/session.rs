//! One round of a run: its CPU, its points, the order of its probes, their deadlines, and what is reported to
//! the watching process.
//!
//! ```text
//! Request ──► Env (machine, clock, the round's CPU, memory) ──► Deal: this round's points
//!                     ──► headline points of all probes, then the rest, in an order of the round's own: run_probe ──► Event per line
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use latlab_clock::{Clock, ClockFacts};
use latlab_harness::{
    Env, Interpreter, MemorySource, NoReference, Operations, Plan, Planned, Progress, Rank, Reference, Share,
    Sink, Spec, give_the_rest, give_way_to_others, left_to_measure, pass_seconds, passes, pin_this_thread,
    plan_shares, run_probe, seconds, usable_cpus,
};
use latlab_machine::Machine;
use latlab_probes_shared::walk::ReferenceChase;
use latlab_probes_storage::disk;
use latlab_record::{PlannedProbe, Point, Profile, Record, Settings, Tool, Totals, to_json};
use latlab_stats::rng::{Rng, mixed};
use latlab_storage::{Budget, Disk, default_directory};
use serde::{Deserialize, Serialize};

use crate::deal::{self, Deal, Part};
use crate::registry::{Entry, LAYOUT, REGISTRY};

/// Memory that is assumed where nobody says how much may be used.
const MEMORY_UNKNOWN: u64 = 256 << 20;
/// Headline points may take so many times what their round has: on a busy machine or a slow disk they come
/// before the rest.
const HEADLINE_TIMES: f64 = 1.5;

/// What the watching process asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Request {
    /// What the user asked for.
    pub settings: Settings,
    /// Which round of the run, from 0; those of its first pass are followed by those of further ones.
    pub round: u32,
    /// When the run began, ns of the system's monotonic clock; now, where nobody says. All rounds tell times
    /// since then.
    pub begun_ns: Option<u64>,
    /// When the run is to have measured, ns of the same clock; else the settings decide.
    pub ends_ns: Option<u64>,
    /// Memory that the run's first round found that it may use, bytes.
    pub usable_memory_bytes: Option<u64>,
    /// Points that are not wanted in this round: they exist already, or a worker died on them.
    pub done: Vec<(String, Point)>,
    /// Bytes that the rounds before it wrote.
    pub written_bytes: u64,
    /// Probes that are not wanted any more.
    pub done_probes: Vec<String>,
    /// What probes asked for in earlier rounds, given what they found.
    pub further: Vec<(String, Planned)>,
    /// Open descriptor of the test file that an earlier round laid out.
    pub test_file: Option<i32>,
    /// Folder of the user's Python packages (the one that holds `NumPy`).
    pub packages: Option<PathBuf>,
}

/// What the process around the core lends it.
#[derive(Default)]
pub struct Host {
    /// The interpreter that latlab runs in.
    pub interpreter: Option<Box<dyn Interpreter>>,
    /// The command that starts a process which calls [`run_child`](crate::run_child) with its last argument.
    pub child: Option<Vec<OsString>>,
    /// The test file that an earlier round laid out.
    pub test_file: Option<File>,
}

/// What is planned, before anything is touched.
#[derive(Clone, Debug, Serialize)]
pub struct RunPlan {
    /// Line by line, for one pass.
    pub probes: Vec<PlannedProbe>,
    /// The disk's test file, where a probe needs it.
    pub layout: Option<Layout>,
    /// Passes that there is time for: rounds go on until figures agree.
    pub passes: u64,
    /// Wall seconds: of one pass as it is planned, of several at most.
    pub seconds: f64,
    /// Most memory held at once, bytes.
    pub memory_bytes: u64,
    /// Most bytes written to files.
    pub written_bytes: u64,
    /// Most CPUs busy at once.
    pub cpus: u32,
    /// Globs that match no probe.
    pub unmatched: Vec<String>,
}

/// Writing the disk's common test file, before the first probe that needs it and in time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// As large as the most demanding probe needs it.
    pub written_bytes: u64,
    /// Seconds set aside for it; what is not written by then stays out of the file.
    pub seconds: f64,
}

/// One line to the watching process.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    Hello {
        machine: &'a Machine,
        clock: &'a ClockFacts,
        tool: Tool,
        /// Of a pass.
        plan: &'a [PlannedProbe],
        rounds: u32,
        /// Those of a pass that measure nothing.
        idle: &'a [u32],
        /// The CPUs of the run in the order in which rounds take them.
        cpus: &'a [u32],
        round: u32,
        cpu: u32,
        /// For measuring in this round and those after it, at most.
        left_s: f64,
        /// By the whole run, at most.
        written_bytes: u64,
        /// By each further pass, at most.
        again_bytes: u64,
    },
    Begin {
        probe: &'a str,
        point: &'a Point,
        /// So far.
        written_bytes: u64,
        /// And until the next event, at most.
        most_bytes: u64,
    },
    Progress {
        probe: &'a str,
        point: String,
        p50: Option<f64>,
        unit: latlab_record::Unit,
    },
    Record {
        record: &'a Record,
    },
    /// The test file is laid out; whoever opens this descriptor of the worker's keeps it for the rounds to
    /// come.
    TestFile {
        fd: i32,
    },
    /// What a probe would like to measure besides in the rounds to come.
    Further {
        probe: &'a str,
        points: &'a [Planned],
    },
    End {
        stopped_by: &'a str,
        totals: &'a Totals,
    },
}

/// The descriptions of all probes, in the order in which they run.
pub fn list() -> Vec<&'static Spec> {
    REGISTRY.iter().map(|entry| entry.probe.spec()).collect()
}

/// What measured: version, compiler and target.
pub fn tool() -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("LATLAB_COMMIT").map(str::to_owned),
        build: format!(
            "{}-{} {}",
            std::env::consts::ARCH,
            std::env::consts::OS,
            if cfg!(debug_assertions) { "debug" } else { "release" }
        ),
    }
}

/// What a run with these settings would do here.
pub fn plan(settings: &Settings, host: Host) -> RunPlan {
    let machine = latlab_machine::describe(&directory(settings));
    let env = surroundings(machine, Clock::open_os(), settings.clone(), host);
    let whole = Whole::of(&env, &[]);
    RunPlan {
        layout: (whole.layout_bytes > 0)
            .then_some(Layout { written_bytes: whole.layout_bytes, seconds: whole.layout_s }),
        passes: whole.passes,
        seconds: match whole.passes {
            1 if settings.budget_s.is_none() => pass_seconds(&whole.shares, settings.profile),
            _ => seconds(settings),
        },
        memory_bytes: whole.planned.iter().map(|probe| probe.memory_bytes).max().unwrap_or(0),
        written_bytes: whole.announced(&env),
        cpus: whole.planned.iter().map(|probe| probe.cpus).max().unwrap_or(1),
        unmatched: settings
            .only
            .iter()
            .chain(&settings.skip)
            .filter(|glob| !REGISTRY.iter().any(|entry| matches(glob, entry.probe.spec().id)))
            .cloned()
            .collect(),
        probes: whole.planned,
    }
}

/// A whole run as it is planned: the same in all of its rounds.
struct Whole {
    /// Of a pass.
    rounds: u32,
    passes: u64,
    /// Bytes that each pass after the first writes.
    again_bytes: u64,
    /// In the order in which rounds take them.
    cpus: Vec<u32>,
    chosen: Vec<&'static Entry>,
    plans: Vec<Plan<Point>>,
    deal: Deal,
    shares: Vec<Share>,
    /// Size of the disk's common test file, bytes; 0 without one.
    layout_bytes: u64,
    /// Seconds to lay it out.
    layout_s: f64,
    /// Line by line, without the layout of the test file.
    planned: Vec<PlannedProbe>,
}

impl Whole {
    fn of(env: &Env, done_probes: &[String]) -> Self {
        let settings = &env.settings;
        let rounds = deal::rounds(settings.profile, settings.budget_s);
        let cpus = deal::cpus(&env.machine, &env.cpus, rounds);
        let turns = deal::turns(&cpus, settings.seed);
        let chosen = chosen(settings, done_probes);
        let plans: Vec<Plan<Point>> = chosen.iter().map(|entry| entry.probe.plan(env)).collect();
        let layout_bytes = test_file_bytes(&plans);
        let shares = shares(settings, &chosen, layout_bytes);
        let (layout_s, seconds) = apart(plan_shares(&shares, settings));
        // A program that waits for the disk ends up where the disk interrupts, so its curves are measured
        // there.
        let interrupted = env.machine.interrupted_by_the_disk(&cpus);
        let interrupted = interrupted.first().and_then(|first| cpus.iter().position(|cpu| cpu == first));
        let parts: Vec<Part> = chosen
            .iter()
            .zip(&plans)
            .zip(&seconds)
            .map(|((entry, plan), seconds)| Part {
                place: interrupted
                    .filter(|_| entry.probe.spec().operations == Operations::Disk)
                    .or_else(|| REGISTRY.iter().position(|other| std::ptr::eq(other, *entry)))
                    .unwrap_or(0),
                points: &plan.points,
                seconds: *seconds,
            })
            .collect();
        let places: Vec<usize> =
            turns.iter().map(|turn| cpus.iter().position(|cpu| cpu == turn).unwrap_or(0)).collect();
        let deal = Deal::new(&parts, rounds, cpus.len(), &places);
        let planned = chosen
            .iter()
            .zip(&plans)
            .zip(&seconds)
            .enumerate()
            .map(|(part, ((entry, plan), seconds))| {
                planned(entry.probe.spec(), plan, *seconds, |planned| deal.times(part, planned))
            })
            .collect();
        let again: Vec<u64> = parts
            .iter()
            .enumerate()
            .flat_map(|(part, own)| own.points.iter().map(move |planned| (part, planned)))
            .filter(|(_, planned)| planned.rank != Rank::Once)
            .map(|(part, planned)| deal.times(part, planned) * planned.round_bytes())
            .collect();
        let (again_bytes, is_repeated) = (again.iter().sum(), !again.is_empty());
        Self {
            rounds,
            passes: if is_repeated { passes(&shares, settings) } else { 1 },
            again_bytes,
            cpus: turns,
            chosen,
            plans,
            deal,
            shares,
            layout_bytes,
            layout_s,
            planned,
        }
    }

    /// The place of the first probe that needs the test file.
    fn first_on_disk(&self) -> Option<usize> {
        self.plans.iter().position(|plan| plan.test_file_bytes > 0)
    }

    /// The most that the run writes: the test file and what the first pass asks for, then as much again by
    /// those after it at most; or what may be written in all.
    fn announced(&self, env: &Env) -> u64 {
        let first = self.layout_bytes + self.planned.iter().map(|probe| probe.written_bytes).sum::<u64>();
        let again = self.again_bytes.saturating_mul(self.passes - 1).min(first);
        (first + again).min(env.disk.budget().limit_bytes())
    }

    /// The plan with the layout of the test file, so that what the first pass writes adds up.
    fn announced_plan(&self) -> Vec<PlannedProbe> {
        let mut plan = self.planned.clone();
        if let Some(first) = self.first_on_disk() {
            plan[first].written_bytes += self.layout_bytes;
            plan[first].seconds += self.layout_s;
        }
        plan
    }

    /// What a round measures: the headline points of all probes and then the rest, each in an order of its
    /// own.
    fn turns(&self, env: &Env, round: u32, request: &Request) -> [Vec<Turn>; 2] {
        let mut rng = Rng::new(mixed(env.seed(u64::from(round))));
        [true, false].map(|headline| {
            let mut order: Vec<usize> = (0..self.chosen.len()).collect();
            rng.shuffle(&mut order);
            // Those that are traced follow each other, at the end of the headline and the begin of the rest.
            order.sort_by_key(|part| self.chosen[*part].probe.spec().operations.are_traced() == headline);
            let turns = order.into_iter();
            turns.filter_map(|part| Turn::of(self, part, round, request, headline)).collect()
        })
    }

    fn cpu(&self, round: u32) -> u32 {
        self.cpus[round as usize % self.cpus.len()]
    }
}

/// Runs one round, telling `out` a JSON object a line. `cancelled` is asked between blocks.
/// Fails when `out` cannot be written: the watching process is gone, and there is nobody to measure for.
pub fn run(
    request: &Request,
    host: Host,
    out: &mut dyn Write,
    cancelled: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    let started = Instant::now();
    let mut machine = latlab_machine::describe(&directory(&request.settings));
    let usable = &mut machine.limits.usable_memory_bytes;
    *usable = usable_memory(*usable, request.usable_memory_bytes);
    let mut host = host;
    let test_file = host.test_file.take();
    let mut env = surroundings(machine, Clock::open(), request.settings.clone(), host);
    env.packages.clone_from(&request.packages);
    if let Some(begun_ns) = request.begun_ns {
        env.clock.begin_at(begun_ns);
    }
    if env.settings.gentle {
        give_way_to_others();
    }
    let adopted = test_file.is_some_and(|file| env.disk.adopt(file));
    let whole = Whole::of(&env, &request.done_probes);
    let round = request.round;
    env.round = round;
    env.home_cpu = whole.cpu(round);
    pin_this_thread(env.home_cpu);
    let layout_bytes = if adopted { 0 } else { whole.layout_bytes };
    let layout_s = if layout_bytes > 0 { whole.layout_s } else { 0.0 };

    let written_bytes = whole.announced(&env);
    env.disk.budget().announce(written_bytes);
    env.disk.budget().count(request.written_bytes);
    let mut reference = reference(&env);
    let ready_s = started.elapsed().as_secs_f64();
    let left_s = request.ends_ns.map_or_else(
        || left_to_measure(&env.settings, ready_s),
        |ends_ns| ends_ns.saturating_sub(latlab_clock::monotonic_ns()) as f64 / 1e9,
    );
    let round_s = (left_s - layout_s).max(0.0) * whole.deal.share(round);
    let begun_s = env.clock.now_ns() / 1e9;
    let mut teller = Teller {
        out,
        cancelled,
        round,
        cpu: env.home_cpu,
        budget: env.disk.budget(),
        failed: None,
        totals: Totals::default(),
    };
    teller.tell(&Event::Hello {
        machine: &env.machine,
        clock: &env.clock.facts,
        tool: tool(),
        plan: &whole.announced_plan(),
        rounds: whole.rounds,
        idle: &whole.deal.idle(),
        cpus: &whole.cpus,
        round,
        cpu: env.home_cpu,
        left_s,
        written_bytes,
        again_bytes: whole.again_bytes,
    });
    if layout_bytes > 0 && layout_s > 0.0 {
        // Dying of it must have a name.
        let first = whole.first_on_disk();
        let id = first.map_or("", |first| whole.chosen[first].probe.spec().id);
        teller.begin(id, &Point::default(), layout_bytes);
        disk::lay_out(&env, layout_bytes, Duration::from_secs_f64(layout_s));
        if let Some(fd) = env.disk.test_file_descriptor() {
            teller.tell(&Event::TestFile { fd });
        }
    }
    let turns = whole.turns(&env, round, request);
    // Where headline points take longer than planned, the rest of this round and of those to come has less.
    let headline_s = (HEADLINE_TIMES * round_s).min(left_s - layout_s).max(0.0);
    let interrupted = measure(&env, turns, [headline_s, round_s], reference.as_mut(), &mut teller);
    drop(reference);
    teller.totals.seconds = env.clock.now_ns() / 1e9 - begun_s;
    teller.totals.written_bytes = env.disk.budget().spent_bytes();
    let sums = std::mem::take(&mut teller.totals);
    let stopped_by = if interrupted { "interrupted" } else { "completed" };
    teller.tell(&Event::End { stopped_by, totals: &sums });
    teller.failed.map_or(Ok(()), Err)
}

/// Measures the headline points of all probes within the first of these seconds, and then the rest in shares
/// of what is left of the second; whether the user ended it.
fn measure(
    env: &Env,
    [headline, rest]: [Vec<Turn>; 2],
    seconds: [f64; 2],
    reference: &mut dyn Reference,
    teller: &mut Teller,
) -> bool {
    let ends_ns = seconds.map(|s| env.clock.now_ns() + s * 1e9);
    for (turns, in_shares, ends_ns) in [(headline, false, ends_ns[0]), (rest, true, ends_ns[1])] {
        let all_s: f64 = turns.iter().map(|turn| turn.seconds).sum();
        let mut deadline_ns = env.clock.now_ns();
        let left_ns = (ends_ns - deadline_ns).max(0.0);
        for turn in &turns {
            // A running sum: what one probe leaves over goes to those after it.
            deadline_ns += left_ns * turn.seconds / all_s.max(f64::MIN_POSITIVE);
            let deadline_ns = if in_shares { deadline_ns } else { ends_ns };
            let probe = turn.entry.probe;
            let outcome = run_probe(probe, env, &turn.points, deadline_ns, reference, teller);
            if !outcome.further.is_empty() {
                teller.tell(&Event::Further { probe: probe.spec().id, points: &outcome.further });
            }
            teller.totals.disturbed_blocks += outcome.disturbed_blocks;
            if outcome.cancelled || teller.failed.is_some() {
                return true;
            }
        }
    }
    false
}

/// A probe in this round.
struct Turn {
    entry: &'static Entry,
    points: Vec<Planned>,
    seconds: f64,
}

impl Turn {
    /// `None` where this round has nothing of it. That a probe cannot run here is said by the first round.
    fn of(whole: &Whole, part: usize, round: u32, request: &Request, headline: bool) -> Option<Self> {
        let entry = whole.chosen[part];
        let id = entry.probe.spec().id;
        let is_done = |point: &Point| {
            let mut done = request.done.iter();
            done.any(|(probe, done)| probe == id && done == point)
        };
        if whole.plans[part].points.is_empty() {
            let unsaid = headline && round == 0 && !is_done(&Point::default());
            return unsaid.then_some(Self { entry, points: Vec::new(), seconds: 0.0 });
        }
        let further = request.further.iter().filter(|(probe, _)| probe == id);
        let mut points: Vec<Planned> = Vec::new();
        for planned in whole.plans[part].points.iter().chain(further.map(|(_, planned)| planned)) {
            let wanted = (planned.rank == Rank::Headline) == headline
                && whole.deal.is_dealt(part, planned, round)
                && !is_done(&planned.point)
                && points.iter().all(|known| known.point != planned.point);
            if wanted {
                points.push(planned.clone());
            }
        }
        let seconds = if headline {
            points.iter().map(Planned::round_s).sum()
        } else {
            whole.deal.seconds(part, round)
        };
        (!points.is_empty()).then_some(Self { entry, points, seconds })
    }
}

/// Whose file system is measured: the one that the user named, else that of the user's cache.
fn directory(settings: &Settings) -> PathBuf {
    settings.dir.as_ref().map_or_else(default_directory, PathBuf::from)
}

/// Bytes that a run may write in the quick, standard and thorough profile: flash wears, and other people need
/// the disk too.
const WRITTEN_BYTES: [u64; 3] = [512 << 20, 4 << 30, 16 << 30];

/// Bytes that this run may write.
fn written_at_most(settings: &Settings) -> u64 {
    settings.max_bytes.unwrap_or(settings.profile.of(WRITTEN_BYTES))
}

fn surroundings(machine: Machine, clock: Clock, settings: Settings, host: Host) -> Env {
    let cpus = usable_cpus(&machine, &settings);
    let settings = Settings { profile: affordable(&settings), ..settings };
    let usable = machine.limits.usable_memory_bytes.unwrap_or(MEMORY_UNKNOWN);
    let disk = Disk::new(&directory(&settings), written_at_most(&settings), settings.seed);
    Env {
        round: 0,
        home_cpu: cpus[0],
        memory_bytes: usable / 4,
        machine,
        clock,
        settings,
        cpus,
        memory: MemorySource::Real,
        interpreter: host.interpreter,
        child: host.child,
        packages: None,
        patience: 1,
        disk,
    }
}

/// Memory that a round may use, bytes: as the run's first round found it, for sizes of working sets follow
/// from it and all rounds measure the same points. A quarter of it is used, so `now` may be as little as half
/// of that before the sizes follow what is left.
fn usable_memory(now: Option<u64>, first: Option<u64>) -> Option<u64> {
    match (now, first) {
        (Some(now), Some(first)) if now < first / 2 => Some(now),
        (now, first) => first.or(now),
    }
}

/// The profile whose sizes a budget can pay for: populating and building the arenas of a longer one would
/// leave no time to measure in them.
fn affordable(settings: &Settings) -> Profile {
    // Before the disk was looked at, nobody knows whether there will be a test file.
    let shares = usual_shares(settings, &chosen(settings, &[]), 0);
    let whole_s = pass_seconds(&shares, settings.profile);
    if settings.budget_s.is_some_and(|budget_s| budget_s < whole_s / 2.0) {
        Profile::Quick
    } else {
        settings.profile
    }
}

fn reference(env: &Env) -> Box<dyn Reference + '_> {
    match ReferenceChase::new(&env.clock, &env.memory) {
        Ok(chase) => Box::new(chase),
        Err(_) => Box::new(NoReference),
    }
}

fn chosen(settings: &Settings, done: &[String]) -> Vec<&'static Entry> {
    REGISTRY
        .iter()
        .filter(|entry| {
            let spec = entry.probe.spec();
            let only = settings.only.is_empty() || settings.only.iter().any(|glob| matches(glob, spec.id));
            let skipped = settings.skip.iter().any(|glob| matches(glob, spec.id));
            let too_loud = settings.gentle && spec.saturates;
            let wanted = entry.probe.wanted(settings);
            only && !skipped && !too_loud && wanted && !done.iter().any(|id| id == spec.id)
        })
        .collect()
}

/// The largest that a probe which can run needs; it is laid out once for all.
fn test_file_bytes(plans: &[Plan<Point>]) -> u64 {
    plans.iter().map(|plan| plan.test_file_bytes).max().unwrap_or(0)
}

/// One for laying out the test file, which may be none, then one a probe.
fn usual_shares(settings: &Settings, chosen: &[&Entry], test_file_bytes: u64) -> Vec<Share> {
    let layout = if test_file_bytes > 0 { LAYOUT } else { Share([0.0; 3]) };
    std::iter::once(layout)
        .chain(chosen.iter().map(|entry| entry.probe.share(settings).unwrap_or(entry.share)))
        .collect()
}

/// As [`usual_shares`], and what they leave over of the profile's time for a probe that these settings slow
/// down. A budget is split in the usual proportions: else that probe would leave the others a part of too
/// little.
fn shares(settings: &Settings, chosen: &[&Entry], test_file_bytes: u64) -> Vec<Share> {
    let mut shares = usual_shares(settings, chosen, test_file_bytes);
    let slow = chosen.iter().position(|entry| entry.probe.takes_the_rest(settings));
    if let (Some(place), None) = (slow, settings.budget_s) {
        // The first is the test file's.
        give_the_rest(&mut shares, 1 + place, settings.profile);
    }
    shares
}

/// The layout's seconds and those of the probes.
fn apart(mut seconds: Vec<f64>) -> (f64, Vec<f64>) {
    let layout_s = seconds.remove(0);
    (layout_s, seconds)
}

/// A line of the plan, without the layout of the test file; `times` says in how many rounds of a pass a point
/// is measured.
fn planned(spec: &Spec, plan: &Plan<Point>, seconds: f64, times: impl Fn(&Planned) -> u64) -> PlannedProbe {
    let runs = !plan.points.is_empty();
    let written = |planned: &Planned| times(planned) * planned.round_bytes();
    PlannedProbe {
        id: spec.id.to_owned(),
        points: plan.points.len() as u64,
        seconds: if runs { seconds } else { 0.0 },
        memory_bytes: if runs { plan.memory_bytes } else { 0 },
        written_bytes: plan.points.iter().map(written).sum(),
        cpus: if runs { plan.cpus } else { 0 },
    }
}

/// `memory.*` matches `memory.load.dependent`; `*` any text, `?` one character; an id's beginning up to a dot
/// matches too (`memory`).
fn matches(glob: &str, id: &str) -> bool {
    fn rest(glob: &[u8], id: &[u8]) -> bool {
        match (glob.split_first(), id.split_first()) {
            (None, None) => true,
            (Some((b'*', tail)), _) => rest(tail, id) || (!id.is_empty() && rest(glob, &id[1..])),
            (Some((b'?', tail)), Some((_, left))) => rest(tail, left),
            (Some((a, tail)), Some((b, left))) => a == b && rest(tail, left),
            _ => false,
        }
    }
    let beginning = id.strip_prefix(glob).is_some_and(|left| left.starts_with('.'));
    // A glob longer than any id, or with more stars than parts, is no name of ours; it would only cost time.
    let sensible = glob.len() <= 200 && glob.bytes().filter(|byte| *byte == b'*').count() <= 8;
    beginning || (sensible && rest(glob.as_bytes(), id.as_bytes()))
}

/// Writes events; remembers when nobody listens any more.
struct Teller<'a> {
    out: &'a mut dyn Write,
    cancelled: &'a dyn Fn() -> bool,
    round: u32,
    cpu: u32,
    budget: &'a Budget,
    failed: Option<std::io::Error>,
    totals: Totals,
}

impl Teller<'_> {
    fn tell(&mut self, event: &Event) {
        if self.failed.is_some() {
            return;
        }
        let reported = to_json(event).map_err(std::io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.out.write_all(&line)?;
            self.out.flush()
        });
        self.failed = reported.err();
    }
}

impl Sink for Teller<'_> {
    fn begin(&mut self, probe: &'static str, point: &Point, most_bytes: u64) {
        self.tell(&Event::Begin { probe, point, written_bytes: self.budget.spent_bytes(), most_bytes });
    }

    fn progress(&mut self, progress: &Progress) {
        let unit = REGISTRY
            .iter()
            .map(|entry| entry.probe.spec())
            .find(|spec| spec.id == progress.probe)
            .map_or(latlab_record::Unit::Ns, |spec| spec.unit);
        self.tell(&Event::Progress {
            probe: progress.probe,
            point: progress.point.label(),
            p50: progress.p50,
            unit,
        });
    }

    fn record(&mut self, record: Record) {
        let kind: &str = record.kind.into();
        *self.totals.records.entry(kind.to_owned()).or_default() += 1;
        let record = Record { round: Some(self.round), cpu: Some(self.cpu), ..record };
        self.tell(&Event::Record { record: &record });
    }

    fn cancelled(&self) -> bool {
        self.failed.is_some() || (self.cancelled)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_ids_as_people_expect() {
        for glob in
            ["memory.*", "memory", "memory.load", "*dependent", "memory.load.dependent", "m?mory*", "*"]
        {
            assert!(matches(glob, "memory.load.dependent"), "{glob}");
        }
        for glob in ["", "mem", "memory.loa", "storage.*", "memory.load.dependent.more", "?"] {
            assert!(!matches(glob, "memory.load.dependent"), "{glob}");
        }
    }

    #[test]
    fn a_glob_made_to_be_slow_is_refused_at_once() {
        let hostile = "*a".repeat(100) + "b";
        assert!(!matches(&hostile, &"a".repeat(200)));
    }

    #[test]
    fn a_glob_that_matches_nothing_is_named_in_the_plan() {
        let settings =
            Settings { only: vec!["memory.*".to_owned(), "nosuch".to_owned()], ..Settings::default() };
        let plan = plan(&settings, Host::default());
        assert_eq!(plan.unmatched, ["nosuch"]);
        assert!(!plan.probes.is_empty());
        assert!(plan.probes.iter().all(|probe| probe.points > 0 && probe.seconds > 0.0));
    }

    #[test]
    fn transfers_over_a_path_have_what_the_others_leave_of_the_profiles_time() {
        let seconds = |settings: Settings| plan(&settings, Host::default()).seconds;
        let transfers = |delay_ms| Settings {
            only: vec!["network.transfer".to_owned()],
            delay_ms,
            ..Settings::default()
        };
        assert!(seconds(transfers(None)) < 10.0);
        assert!((seconds(transfers(Some(20.0))) - 90.0).abs() < 1e-6);
        let far = Settings { only: vec!["network.*".to_owned()], ..transfers(Some(20.0)) };
        assert!((seconds(far.clone()) - 90.0).abs() < 1e-6);
        let with_budget = Settings { budget_s: Some(40.0), ..far };
        assert!((seconds(with_budget.clone()) - 40.0).abs() < 1e-6);
        // And of a budget the others have what they would have without a path.
        let apart = |settings: &Settings| {
            let shares = shares(settings, &chosen(settings, &[]), 0);
            plan_shares(&shares, settings)
        };
        let near = Settings { delay_ms: None, ..with_budget.clone() };
        assert_eq!(apart(&with_budget), apart(&near));
        // Everything takes as long as without a path.
        let all = |delay_ms| Settings {
            skip: vec!["storage.*".to_owned()],
            only: Vec::new(),
            ..transfers(delay_ms)
        };
        let more_s = seconds(all(Some(20.0))) - seconds(all(None));
        assert!((0.0..=90.0).contains(&more_s), "{more_s}");
        assert!(seconds(all(Some(20.0))) <= 90.0 + 1e-6);
    }

    /// The disk below the test binary.
    fn on_this_disk(only: &str) -> Settings {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let folder = binary.parent().expect("in a folder");
        Settings {
            only: vec![only.to_owned()],
            dir: Some(folder.to_str().expect("UTF-8").to_owned()),
            max_bytes: Some(64 << 20),
            profile: Profile::Quick,
            ..Settings::default()
        }
    }

    #[test]
    fn laying_the_test_file_out_is_planned_apart_and_takes_no_probes_seconds() {
        let settings = on_this_disk("storage.read");
        let plan = plan(&settings, Host::default());
        let Some(layout) = plan.layout else {
            // The build folder is in memory.
            assert!(plan.probes.iter().all(|probe| probe.points == 0));
            return;
        };
        assert!(layout.written_bytes > 0 && layout.seconds > 0.0);
        let own: u64 = plan.probes.iter().map(|probe| probe.written_bytes).sum();
        assert_eq!(own + layout.written_bytes, plan.written_bytes, "announced with the rest");
        for (planned, entry) in plan.probes.iter().zip(chosen(&settings, &[])) {
            assert!((planned.seconds - entry.share.0[0]).abs() < 1e-9, "{}", planned.id);
        }
        assert_eq!(super::plan(&on_this_disk("memory"), Host::default()).layout, None);
    }

    #[test]
    fn a_run_lays_the_test_file_out_once_and_writes_no_more_than_it_announced() {
        let request = Request {
            settings: Settings { budget_s: Some(0.5), ..on_this_disk("storage.read") },
            ..Request::default()
        };
        let planned = plan(&request.settings, Host::default());
        let Some(layout) = planned.layout else { return };
        let mut reported = Vec::new();
        run(&request, Host::default(), &mut reported, &|| false).expect("a vector takes all");
        let events: Vec<serde_json::Value> = reported
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let written = events.last().expect("events")["totals"]["written_bytes"].as_u64().expect("counted");
        assert!(
            written > 0 && written <= layout.written_bytes,
            "reading writes the test file and nothing else: {written}"
        );
        let announced: u64 = events[0]["plan"]
            .as_array()
            .expect("the plan")
            .iter()
            .filter_map(|probe| probe["written_bytes"].as_u64())
            .sum();
        assert_eq!(announced, planned.written_bytes);
    }

    #[test]
    fn later_rounds_have_the_memory_of_the_first_until_half_of_it_is_gone() {
        assert_eq!(usable_memory(Some(200), None), Some(200));
        assert_eq!(usable_memory(Some(130), Some(200)), Some(200));
        assert_eq!(usable_memory(Some(300), Some(200)), Some(200));
        assert_eq!(usable_memory(Some(99), Some(200)), Some(99));
        assert_eq!(usable_memory(None, Some(200)), Some(200));
        assert_eq!(usable_memory(None, None), None);
    }

    #[test]
    fn a_whole_run_asks_for_no_more_than_it_may_write() {
        for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
            let settings = Settings { profile, max_bytes: None, ..on_this_disk("*") };
            let plan = plan(&settings, Host::default());
            let layout = plan.layout.map_or(0, |layout| layout.written_bytes);
            let asked: u64 = plan.probes.iter().map(|probe| probe.written_bytes).sum();
            let limit = profile.of(WRITTEN_BYTES);
            assert!(layout + asked <= limit, "{profile:?}: {layout} + {asked} of {limit}");
        }
    }

    #[test]
    fn further_passes_write_at_most_as_much_as_the_first() {
        let announced = |only: &str| {
            let settings = Settings { profile: Profile::Standard, max_bytes: None, ..on_this_disk(only) };
            let plan = plan(&settings, Host::default());
            let layout = plan.layout.map_or(0, |layout| layout.written_bytes);
            let probes: u64 = plan.probes.iter().map(|probe| probe.written_bytes).sum();
            (plan.written_bytes, layout + probes)
        };
        let (writing, first) = announced("storage.write.random");
        assert!(first == 0 || (first < writing && writing <= 2 * first), "{writing}, {first}");
        for only_one_pass in ["*", "storage.read.random", "storage.steady"] {
            let (all, first) = announced(only_one_pass);
            assert_eq!(all, first, "{only_one_pass}");
        }
    }

    #[test]
    fn gentle_uses_one_cpu_and_nothing_that_saturates() {
        let settings = Settings { gentle: true, ..Settings::default() };
        let plan = plan(&settings, Host::default());
        assert_eq!(plan.cpus, 1);
        let loud: Vec<&str> = list().iter().filter(|spec| spec.saturates).map(|spec| spec.id).collect();
        assert!(plan.probes.iter().all(|probe| !loud.contains(&probe.id.as_str())));
    }

    #[test]
    fn a_budget_far_below_the_profile_takes_the_sizes_that_it_can_pay_for() {
        let with =
            |budget_s| affordable(&Settings { profile: Profile::Thorough, budget_s, ..Settings::default() });
        assert_eq!(with(None), Profile::Thorough);
        assert_eq!(with(Some(2.0)), Profile::Quick);
        assert_eq!(with(Some(1e6)), Profile::Thorough);
    }

    #[test]
    fn a_listener_that_goes_away_ends_the_run() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let error =
            run(&Request::default(), Host::default(), &mut Gone, &|| false).expect_err("nobody listens");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}
