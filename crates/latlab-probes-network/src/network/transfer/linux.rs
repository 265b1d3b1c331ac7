//! Linux: client and server in processes of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use latlab_harness::{Block, Env, Probe as _, ProbeError, Proof, Stamps, without};
use latlab_probes_shared::median;
use latlab_record::{Check, Estimate, Work as Done};
use latlab_stats::{order_statistic_interval, quantile};

use super::details::{Experiment, Found, Library, Little, Server, Singles, Times};
use super::{FILES, Fetch, Kept, POOL, Transfer};
use crate::peer::{Engine, Interpreter, Pair, Pairs, PathKind, Stamped, Transferred, Work, check};

pub(super) const HERE: bool = true;
/// Beside what the transfers should take, many times over.
const PATIENCE_S: f64 = 10.0;
const TIMES: f64 = 20.0;
/// Little's law holds when rate x time is as near as this to what was under way.
const LITTLE: f64 = 0.05;
/// Times of single transfers that are kept for medians of phases.
const MOST_KEPT: usize = 20_000;

/// Why a library of Python's cannot be measured; none where it can.
pub(super) fn why_not(env: &Env, engine: Engine) -> Option<String> {
    Interpreter::with(env, engine).err()
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Fetch]) -> Result<Session<'env>, ProbeError> {
    Ok(Session {
        env,
        stamps: Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a transfer needs a real clock".to_owned()))?,
        pairs: Pairs::new(env),
        libraries: libraries(env),
        loaded: Vec::new(),
    })
}

/// What a run takes beside the blocks of its points: beginning and ending, s.
const AROUND_S: f64 = 5.0;
/// How much longer than planned it may take until a library had its turn: looking for the knee adds points,
/// and on a busy machine all take longer.
const LONGER: f64 = 1.5;

/// Python's libraries: why one is not measured here, and the budget that reaches each of its points over the
/// path.
pub(super) fn libraries(env: &Env) -> Vec<Library> {
    let points = Transfer.plan(env).points;
    let budget_s = |last: u8| {
        let needed = points.iter().filter(|planned| planned.priority <= last);
        let planned_s: f64 =
            needed.map(|planned| planned.first_s + 6.0 * (planned.setup_s + planned.block_s)).sum();
        ((AROUND_S + LONGER * planned_s) / 10.0).ceil() * 10.0
    };
    let far = |engine| {
        let is_far = move |point: Fetch| point.path == PathKind::Emulated && point.engine == engine;
        let own = points.iter().filter(move |planned| is_far(planned.point));
        own.map(|planned| (planned.point, budget_s(planned.priority))).collect()
    };
    Engine::LIBRARIES
        .map(|engine| Library { engine, not_measured: why_not(env, engine), far: far(engine) })
        .into()
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    transfers: u64,
    /// Transfers that the client did not tell of.
    missing: u64,
    least_ns: Option<u64>,
    /// Bytes of the shortest and the longest body, and of all.
    bodies: Option<(u64, u64)>,
    body_bytes: u64,
    /// Transfers on a kept connection that had to open it again.
    reopened: u64,
    blocks: Vec<OfBlock>,
    /// Transfers in them whose times are kept.
    kept: usize,
}

/// What was found in one block.
#[derive(Default)]
struct OfBlock {
    /// Bytes a second while all worked.
    rate: Option<f64>,
    /// Meanwhile: under way on average, transfers a second, mean time of one.
    little: Option<[f64; 3]>,
    /// Bytes a second from the first to the last byte, the median transfer.
    throughput: Option<f64>,
    /// Median time of one.
    median_ns: Option<f64>,
    times: Vec<f64>,
    until_first_byte: Vec<f64>,
    phases: BTreeMap<&'static str, Vec<f64>>,
    /// CPU time and time, ns: of client, server, and of the block.
    cpu_ns: [f64; 3],
    /// Sets of ten: by one, by the pool, and how much faster the pool was.
    sequential: Vec<f64>,
    pool: Vec<f64>,
    speed_up: Option<f64>,
}

/// Clients and their servers.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    pairs: Pairs<'env>,
    libraries: Vec<Library>,
    /// Points whose library was loaded and warmed up.
    loaded: Vec<Fetch>,
}

/// The client's work at a point.
fn work(env: &Env, point: Fetch, workers: u32, count: u32) -> Work {
    Work {
        bytes: point.bytes(),
        workers,
        count,
        kept: point.connections == Kept,
        protocol: point.protocol,
        patience: Duration::from_secs_f64(PATIENCE_S + TIMES * point.many_s(env, count, workers)),
        library: (!point.is_own()).then_some(point.engine),
    }
}

/// Opens and warms up what is kept, and counts that.
fn prepare(pair: &mut Pair, work: &Work) -> Result<(), ProbeError> {
    let warmed = pair.client.prepare(work)?;
    pair.connections += warmed.connections;
    pair.requests += warmed.stamped.len() as u64;
    Ok(())
}

/// What went on while all workers had work: bytes a second; and under way on average, transfers a second,
/// mean time.
pub(super) fn steady(stamped: &[Stamped], workers: u32) -> Option<(f64, [f64; 3])> {
    let mut ends: Vec<u64> = stamped.iter().map(|own| own.last_byte).collect();
    ends.sort_unstable();
    // From the first round's end to when there is no more work to be taken.
    let from = *ends.get((workers as usize).checked_sub(1)?)?;
    let to = stamped.iter().map(|own| own.begun).max()?;
    let (from, to) = if to > from && ends.len() > 2 * workers as usize {
        (from, to)
    } else {
        // So few that there is no middle: all of it.
        (stamped.iter().map(|own| own.begun).min()?, *ends.last()?)
    };
    let span = (to - from) as f64;
    let mut under_way = 0.0;
    let (mut done, mut times, mut bytes) = (0.0, 0.0, 0.0);
    for own in stamped {
        let overlap = own.last_byte.min(to).saturating_sub(own.begun.max(from));
        under_way += overlap as f64;
        // A turn that ends with the window belongs to it, whichever of its ends is stamped first.
        if own.last_byte > from && own.last_byte <= to {
            done += 1.0;
            times += own.ns() as f64;
            bytes += own.bytes as f64;
        }
    }
    if done == 0.0 {
        return None;
    }
    let per_s = 1e9 / span;
    Some((bytes * per_s, [under_way / span, done * per_s, times / done]))
}

/// Bytes a second of transfers that come one at a time, without the pauses between them.
fn without_pauses(stamped: &[Stamped]) -> Option<f64> {
    let bytes: u64 = stamped.iter().map(|own| own.bytes).sum();
    let ns: u64 = stamped.iter().map(Stamped::ns).sum();
    (ns > 0).then(|| bytes as f64 * 1e9 / ns as f64)
}

/// The median with its 95 % interval, which fewer than six do not have. It stays where the run has no other
/// round of the point.
fn estimate(mut values: Vec<f64>) -> Option<Estimate> {
    values.sort_by(f64::total_cmp);
    let ends = order_statistic_interval(&values, 0.5, 0.95).ok();
    let [low, high] = [ends.map(|own| own.0), ends.map(|own| own.1)];
    Some(Estimate { value: median(values)?, low, high })
}

/// Does the work and looks at what it cost both sides.
fn run(pair: &mut Pair, work: &Work, evidence: &mut Evidence) -> Result<Vec<Stamped>, ProbeError> {
    let cpu_ns = |pair: &Pair| {
        [pair.client.side.cpu_ns(), pair.server.as_ref().and_then(|server| server.side.cpu_ns())]
    };
    let before = cpu_ns(pair);
    let Transferred { stamped, connections } = pair.client.transfer(work)?;
    let after = cpu_ns(pair);
    pair.connections += connections;
    pair.requests += u64::from(work.count);
    evidence.transfers += stamped.len() as u64;
    evidence.missing += u64::from(work.count).saturating_sub(stamped.len() as u64);
    let cpu_ns = &mut evidence.block().cpu_ns;
    for (sum, (before, after)) in cpu_ns.iter_mut().zip(before.into_iter().zip(after)) {
        *sum += before.zip(after).map_or(0.0, |(before, after)| after.saturating_sub(before) as f64);
    }
    cpu_ns[2] += ends(&stamped).map_or(0.0, |(first, last)| (last - first) as f64);
    Ok(stamped)
}

/// The begin of the first and the end of the last.
fn ends(stamped: &[Stamped]) -> Option<(u64, u64)> {
    let first = stamped.iter().map(|own| own.begun).min();
    first.zip(stamped.iter().map(|own| own.last_byte).max())
}

impl Session<'_> {
    /// Ten files by one and by the pool, in the [`Fetch::order`] of this block.
    fn ten(&mut self, point: Fetch, evidence: &mut Evidence, data: &mut Block) -> Result<(), ProbeError> {
        let (env, stamps) = (self.env, self.stamps);
        let pair = self.pairs.on(point.path)?;
        let order = point.order(evidence.blocks.len());
        evidence.blocks.push(OfBlock::default());
        let mut took: [Vec<f64>; 2] = Default::default();
        let repeated = order.iter().cycle().take(order.len() * point.sets(env) as usize);
        for pooled in repeated {
            let own = work(env, point, if *pooled { point.concurrency } else { 1 }, FILES);
            // Nothing is kept from set to set: opening what is kept is part of it.
            let nothing_kept = Work { kept: own.kept && own.library.is_some(), ..own.clone() };
            prepare(pair, &nothing_kept)?;
            let begun = stamps.begin();
            let stamped = run(pair, &own, evidence)?;
            let Some((first, last)) = ends(&stamped) else {
                return Err(ProbeError::Proof("no transfer was reported".to_owned()));
            };
            let [from, to] = [first, last].map(|ns| begun + env.clock.ticks(ns as f64));
            let ns = last - first;
            took[usize::from(*pooled)].push(ns as f64);
            if *pooled {
                data.span(from, to);
                evidence.block().pool.push(ns as f64);
                evidence.took(ns);
            } else {
                evidence.block().sequential.push(ns as f64);
                data.channel("sequential", from, to);
            }
        }
        if let [Some(alone), Some(pooled)] = took.map(median) {
            evidence.block().speed_up = Some(alone / pooled);
        }
        Ok(())
    }

    fn sweep(&mut self, point: Fetch, evidence: &mut Evidence, data: &mut Block) -> Result<(), ProbeError> {
        let (env, stamps) = (self.env, self.stamps);
        let pair = self.pairs.on(point.path)?;
        let workers = point.concurrency;
        let own = work(env, point, workers, point.count(env));
        let begun = stamps.begin();
        evidence.blocks.push(OfBlock::default());
        let stamped = run(pair, &own, evidence)?;
        let at = |ns: u64| begun + env.clock.ticks(ns as f64);
        evidence.block().median_ns = median(stamped.iter().map(|own| own.ns() as f64));
        for transfer in &stamped {
            let (least, most) = evidence.bodies.unwrap_or((u64::MAX, 0));
            evidence.bodies = Some((least.min(transfer.bytes), most.max(transfer.bytes)));
            evidence.body_bytes += transfer.bytes;
            evidence.reopened += u64::from(own.kept && transfer.connected > 0);
            data.span(at(transfer.begun), at(transfer.last_byte));
            evidence.took(transfer.ns());
            let keep = evidence.kept < MOST_KEPT;
            evidence.kept += usize::from(keep);
            let block = evidence.block();
            if keep {
                block.times.push(transfer.ns() as f64);
                block.until_first_byte.push(transfer.first_byte.saturating_sub(transfer.begun) as f64);
            }
            for (name, from, to) in transfer.phases() {
                data.channel(name, at(from), at(to));
                if keep {
                    block.phases.entry(name).or_default().push(to.saturating_sub(from) as f64);
                }
            }
        }
        let block = evidence.block();
        if point.is_named() {
            block.rate = without_pauses(&stamped);
        } else if let Some((rate, little)) = steady(&stamped, workers) {
            (block.rate, block.little) = (Some(rate), Some(little));
        }
        block.throughput = median(stamped.iter().map(|own| {
            let ns = own.last_byte.saturating_sub(own.first_byte).max(1);
            own.bytes as f64 * 1e9 / ns as f64
        }));
        Ok(())
    }

    /// Opens what a point needs.
    fn prepare(&mut self, point: Fetch) -> Result<(), ProbeError> {
        let env = self.env;
        let pair = self.pairs.on(point.path)?;
        if !point.is_ten() {
            return prepare(pair, &work(env, point, point.concurrency, point.count(env)));
        }
        if point.is_own() {
            return Ok(());
        }
        let interpreter = Interpreter::with(env, point.engine).map_err(ProbeError::Other)?;
        pair.client.have(&interpreter)?;
        // What is loaded and started only once is no part of what a block costs.
        if !self.loaded.contains(&point) {
            self.loaded.push(point);
            for workers in [1, POOL] {
                prepare(pair, &work(env, point, workers, FILES))?;
            }
        }
        Ok(())
    }
}

impl latlab_harness::Session<Transfer> for Session<'_> {
    fn select(&mut self, point: &Fetch) -> Result<(), ProbeError> {
        self.prepare(*point).inspect_err(|_| self.pairs.give_up(point.path))
    }

    fn block(&mut self, point: &Fetch, evidence: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        let workers = point.concurrency;
        let usual_s = if point.is_ten() {
            point.many_s(self.env, FILES, workers)
        } else {
            point.one_s(self.env).max(point.many_s(self.env, workers, workers))
        };
        block.set_tail_threshold_ns(3e9 * usual_s);
        let done = if point.is_ten() {
            self.ten(*point, evidence, block)
        } else {
            self.sweep(*point, evidence, block)
        };
        done.inspect_err(|_| self.pairs.give_up(point.path))
    }

    fn leave_out(&mut self, evidence: &mut Evidence, blocks: &[usize]) {
        without(&mut evidence.blocks, blocks);
    }

    fn proof(&mut self, point: &Fetch, evidence: &Evidence) -> Proof<Found> {
        let Ok(pair) = self.pairs.on(point.path) else { return Proof::default() };
        let route = pair.route.details.clone();
        let mut checks = vec![evidence.whole(*point)];
        checks.extend(pair.counted());
        checks.extend(pair.as_long_as_the_path(evidence.least_ns.unwrap_or(0)));
        let mut flags: Vec<String> = pair.route.details.label().into_iter().collect();
        let times = if point.is_ten() {
            Times::Ten(evidence.sets())
        } else {
            let little = evidence.little();
            if let Some(Little { detail, .. }) = little.as_ref().filter(|own| own.off > LITTLE) {
                flags.push(format!("Little's law does not hold: {detail}"));
            }
            Times::Single(evidence.singles(little))
        };
        let server = if let Some(server) = &pair.server {
            Server::Own { congestion_control: server.listening.congestion_control.clone() }
        } else {
            if evidence.reopened > 0 {
                flags.push(format!(
                    "the server closed its connection before {} of {} transfers: they opened it again",
                    evidence.reopened, evidence.transfers
                ));
            }
            Server::Named { reopened: evidence.reopened, bodies_bytes: evidence.bodies.map(<[u64; 2]>::from) }
        };
        let bytes = if point.is_named() { evidence.body_bytes } else { evidence.transfers * point.bytes() };
        let found =
            Found { route, libraries: self.libraries.clone(), least_ns: evidence.least_ns, server, times };
        Proof {
            work: Done { bytes, ..Done::default() },
            flags,
            ..Proof::of(checks).with(found).by(point.engine.name())
        }
    }
}

impl Evidence {
    /// The one that is under way.
    fn block(&mut self) -> &mut OfBlock {
        if self.blocks.is_empty() {
            self.blocks.push(OfBlock::default());
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    /// A transfer, or a set of ten, took so long.
    fn took(&mut self, ns: u64) {
        self.least_ns = Some(self.least_ns.map_or(ns, |least| least.min(ns)));
    }

    fn each(&self, of: impl Fn(&OfBlock) -> Option<f64>) -> Vec<f64> {
        self.blocks.iter().filter_map(of).collect()
    }

    fn all(&self, of: impl Fn(&OfBlock) -> &[f64]) -> Vec<f64> {
        self.blocks.iter().flat_map(of).copied().collect()
    }

    fn whole(&self, point: Fetch) -> Check {
        let Self { transfers, missing, .. } = self;
        let (name, detail) = if point.is_named() {
            let detail = format!(
                "{transfers} answers, with status 200 and their last byte; {missing} without a response"
            );
            ("every answer ended", detail)
        } else {
            let detail = format!(
                "{transfers} files of {} bytes, each as long as asked for and every byte as it must be; \
                    {missing} without a response",
                point.bytes()
            );
            ("every body compared", detail)
        };
        check(name, *missing == 0 && *transfers > 0, detail)
    }

    /// How far rate x time is from what was under way, over all blocks; none without blocks.
    fn little(&self) -> Option<Little> {
        let blocks: Vec<[f64; 3]> = self.blocks.iter().filter_map(|block| block.little).collect();
        if blocks.is_empty() {
            return None;
        }
        let mean = |of: fn(&[f64; 3]) -> f64| blocks.iter().map(of).sum::<f64>() / blocks.len() as f64;
        let under_way = mean(|[under_way, ..]| *under_way);
        let products = mean(|[_, rate, time]| rate * time * 1e-9);
        Some(Little {
            off: (products - under_way).abs() / under_way,
            detail: format!("{under_way:.2} under way on average, rate x time {products:.2}"),
        })
    }

    fn singles(&self, little: Option<Little>) -> Singles {
        let sum = |of: usize| self.blocks.iter().map(|block| block.cpu_ns[of]).sum::<f64>();
        let share = |side: usize| (sum(2) > 0.0).then(|| sum(side) / sum(2));
        let mut phases: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, values) in self.blocks.iter().flat_map(|block| &block.phases) {
            phases.entry(*name).or_default().extend(values);
        }
        let phases = phases.into_iter();
        let mut times = self.all(|block| &block.times);
        times.sort_by(f64::total_cmp);
        Singles {
            goodput_bytes_per_s: estimate(self.each(|block| block.rate)),
            throughput_bytes_per_s: estimate(self.each(|block| block.throughput)),
            transfers: self.transfers,
            p99_ns: (!times.is_empty()).then(|| quantile(&times, 0.99)),
            phases_ns: Some(
                phases.filter_map(|(name, values)| Some((name.to_owned(), estimate(values)?))).collect(),
            ),
            time_ns: estimate(self.each(|block| block.median_ns)),
            until_first_byte_ns: median(self.all(|block| &block.until_first_byte)),
            client_cpu_share: share(0),
            server_cpu_share: share(1),
            little,
        }
    }

    fn sets(&self) -> Experiment {
        let [sequential, pool] = [self.all(|block| &block.sequential), self.all(|block| &block.pool)];
        let sets = pool.len() + sequential.len();
        Experiment {
            sequential_ns: estimate(sequential),
            pool_ns: estimate(pool),
            speed_up: estimate(self.each(|block| block.speed_up)),
            sets,
        }
    }
}
