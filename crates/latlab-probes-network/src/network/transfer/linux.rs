//! Linux: client and server in processes of their own.

use std::time::Duration;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps, without};
use latlab_record::{Check, Point, Work as Done};
use serde_json::{Value, json};

use super::{FILES, HTTP2, HTTPS, KEPT, OWN, POOL, TEN_FILES, count, libraries, many_s, one_s, order, sets};
use crate::network::linux::{at_quantile, estimate, median};
pub(super) use crate::peer::LIBRARIES;
use crate::peer::{
    EMULATED, Interpreter, Pair, Pairs, Protocol, Stamped, Transferred, WebServer, Work, is_named,
};

pub(super) const HERE: bool = true;
/// Beside what the transfers should take, many times over.
const PATIENCE_S: f64 = 10.0;
const TIMES: f64 = 20.0;
/// Little's law holds when rate x time is as near as this to what was under way.
const LITTLE: f64 = 0.05;
/// Times of single transfers that are kept for medians of phases.
const MOST_KEPT: usize = 20_000;

/// Whether the interpreter has this package.
pub(super) fn has_library(env: &Env, package: &str) -> bool {
    Interpreter::with(env, package).is_ok()
}

/// Why it has not.
pub(super) fn why_no_library(env: &Env, package: &str) -> Option<String> {
    Interpreter::with(env, package).err()
}

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Transfers {
        env,
        stamps: Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a transfer needs a real clock".to_owned()))?,
        pairs: Pairs::new(env),
        all: Vec::new(),
        libraries: json!(libraries(env)),
        selected: None,
    }))
}

/// What was found at a point.
#[derive(Default)]
struct Found {
    point: Point,
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
    phases: Vec<(&'static str, Vec<f64>)>,
    /// CPU time and time, ns: of client, server, and of the block.
    cpu_ns: [f64; 3],
    /// Sets of ten: by one, by the pool, and how much faster the pool was.
    sequential: Vec<f64>,
    pool: Vec<f64>,
    speed_up: Option<f64>,
}

pub(super) struct Transfers<'env> {
    env: &'env Env,
    stamps: Stamps,
    pub(super) pairs: Pairs<'env>,
    all: Vec<Found>,
    libraries: Value,
    selected: Option<usize>,
}

/// The client's work at a point.
fn work(env: &Env, point: &Point, workers: u32, count: u32) -> Work {
    let expected_s = many_s(env, point, count, workers);
    Work {
        bytes: point.file_bytes.unwrap_or(0),
        workers,
        count,
        kept: point.connections.as_deref() == Some(KEPT),
        protocol: match point.protocol.as_deref() {
            Some(HTTPS) => Protocol::Tls,
            Some(HTTP2) => Protocol::Streams,
            _ => Protocol::Plain,
        },
        patience: Duration::from_secs_f64(PATIENCE_S + TIMES * expected_s),
        library: point.engine.clone().filter(|engine| engine != OWN),
    }
}

/// Opens and warms up what is kept, and counts that.
fn prepare(pair: &mut Pair, work: &Work) -> Result<(), ProbeError> {
    let warmed = pair.client.prepare(work)?;
    pair.connections += warmed.connections;
    pair.requests += warmed.stamped.len() as u64;
    Ok(())
}

/// What went on while all workers had work: bytes a second; and under way on average, transfers a second, mean time.
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

impl Transfers<'_> {
    /// Does the work and looks at what it cost both sides.
    fn run(pair: &mut Pair, work: &Work, found: &mut Found) -> Result<Vec<Stamped>, ProbeError> {
        let cpu_ns = |pair: &Pair| [pair.client.cpu_ns(), pair.server.as_ref().and_then(WebServer::cpu_ns)];
        let before = cpu_ns(pair);
        let Transferred { stamped, connections } = pair.client.transfer(work)?;
        let after = cpu_ns(pair);
        pair.connections += connections;
        pair.requests += u64::from(work.count);
        found.transfers += stamped.len() as u64;
        found.missing += u64::from(work.count).saturating_sub(stamped.len() as u64);
        let first = stamped.iter().map(|own| own.begun).min();
        let last = stamped.iter().map(|own| own.last_byte).max();
        let cpu_ns = &mut found.block().cpu_ns;
        for (sum, (before, after)) in cpu_ns.iter_mut().zip(before.into_iter().zip(after)) {
            *sum += before.zip(after).map_or(0.0, |(before, after)| after.saturating_sub(before) as f64);
        }
        cpu_ns[2] += first.zip(last).map_or(0.0, |(first, last)| (last - first) as f64);
        Ok(stamped)
    }

    /// Ten files by one and by the pool, in the [`order`] of this block.
    fn ten(
        env: &Env,
        stamps: Stamps,
        pair: &mut Pair,
        data: &mut Block,
        found: &mut Found,
    ) -> Result<(), ProbeError> {
        let point = found.point.clone();
        let workers = point.concurrency.unwrap_or(POOL);
        let order = order(&point, found.blocks.len());
        found.blocks.push(OfBlock::default());
        let mut took: [Vec<f64>; 2] = Default::default();
        let repeated = order.iter().cycle().take(order.len() * sets(env, &point) as usize);
        for pooled in repeated {
            let own = work(env, &point, if *pooled { workers } else { 1 }, FILES);
            // Nothing is kept from set to set: opening what is kept is part of it.
            let nothing_kept = Work { kept: own.kept && own.library.is_some(), ..own.clone() };
            prepare(pair, &nothing_kept)?;
            let begun = stamps.begin();
            let stamped = Self::run(pair, &own, found)?;
            let (Some(first), Some(last)) =
                (stamped.iter().map(|own| own.begun).min(), stamped.iter().map(|own| own.last_byte).max())
            else {
                return Err(ProbeError::Proof("no transfer was told of".to_owned()));
            };
            let ends = [first, last].map(|ns| begun + env.clock.ticks(ns as f64));
            let ns = (last - first) as f64;
            took[usize::from(*pooled)].push(ns);
            if *pooled {
                data.span(ends[0], ends[1]);
                found.block().pool.push(ns);
                found.least_ns = Some(found.least_ns.map_or(last - first, |least| least.min(last - first)));
            } else {
                found.block().sequential.push(ns);
                data.channel("sequential", ends[0], ends[1]);
            }
        }
        if let [Some(alone), Some(pooled)] = took.map(|sets| median(&sets)) {
            found.block().speed_up = Some(alone / pooled);
        }
        Ok(())
    }

    fn sweep(
        env: &Env,
        stamps: Stamps,
        pair: &mut Pair,
        data: &mut Block,
        found: &mut Found,
    ) -> Result<(), ProbeError> {
        let point = found.point.clone();
        let workers = point.concurrency.unwrap_or(1);
        let own = work(env, &point, workers, count(env, &point));
        let begun = stamps.begin();
        found.blocks.push(OfBlock::default());
        let stamped = Self::run(pair, &own, found)?;
        let at = |ns: u64| begun + env.clock.ticks(ns as f64);
        let alone: Vec<f64> = stamped.iter().map(|own| own.ns() as f64).collect();
        found.block().median_ns = median(&alone);
        for transfer in &stamped {
            let (least, most) = found.bodies.unwrap_or((u64::MAX, 0));
            found.bodies = Some((least.min(transfer.bytes), most.max(transfer.bytes)));
            found.body_bytes += transfer.bytes;
            found.reopened += u64::from(own.kept && transfer.connected > 0);
            data.span(at(transfer.begun), at(transfer.last_byte));
            let ns = transfer.ns();
            found.least_ns = Some(found.least_ns.map_or(ns, |least| least.min(ns)));
            let keep = found.kept < MOST_KEPT;
            found.kept += usize::from(keep);
            let block = found.block();
            if keep {
                block.times.push(ns as f64);
                block.until_first_byte.push(transfer.first_byte.saturating_sub(transfer.begun) as f64);
            }
            for (name, from, to) in transfer.phases() {
                data.channel(name, at(from), at(to));
                if keep {
                    let ns = to.saturating_sub(from) as f64;
                    match block.phases.iter_mut().find(|(own, _)| *own == name) {
                        Some((_, all)) => all.push(ns),
                        None => block.phases.push((name, vec![ns])),
                    }
                }
            }
        }
        if is_named(&point) {
            found.block().rate = without_pauses(&stamped);
        } else if let Some((rate, little)) = steady(&stamped, workers) {
            (found.block().rate, found.block().little) = (Some(rate), Some(little));
        }
        let bodies: Vec<f64> = stamped
            .iter()
            .map(|own_stamps| {
                let ns = own_stamps.last_byte.saturating_sub(own_stamps.first_byte).max(1);
                own_stamps.bytes as f64 * 1e9 / ns as f64
            })
            .collect();
        found.block().throughput = median(&bodies);
        Ok(())
    }
}

impl AnySession for Transfers<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let path = point.path.as_deref().unwrap_or_default();
        let known = self.all.iter().position(|found| found.point == *point);
        let seen = known.is_some();
        self.selected = Some(known.unwrap_or_else(|| {
            self.all.push(Found { point: point.clone(), ..Found::default() });
            self.all.len() - 1
        }));
        let pair = self.pairs.on(path)?;
        let prepared = if point.operation.as_deref() == Some(TEN_FILES) {
            match &point.engine {
                Some(engine) if engine != OWN => {
                    let package =
                        LIBRARIES.iter().find(|(own, _)| own == engine).map_or("", |(_, package)| *package);
                    let interpreter = Interpreter::with(self.env, package).map_err(ProbeError::Other)?;
                    // What is loaded and started only once is no part of what a block costs.
                    let once: &[u32] = if seen { &[] } else { &[1, POOL] };
                    pair.client.have(&interpreter).and_then(|()| {
                        once.iter()
                            .try_for_each(|workers| prepare(pair, &work(self.env, point, *workers, FILES)))
                    })
                }
                _ => Ok(()),
            }
        } else {
            let workers = point.concurrency.unwrap_or(1);
            let own = work(self.env, point, workers, count(self.env, point));
            prepare(pair, &own)
        };
        if prepared.is_err() {
            self.pairs.give_up(path);
        }
        prepared
    }

    fn block(&mut self, data: &mut Block) -> Result<(), ProbeError> {
        let Some(found) = self.selected.and_then(|place| self.all.get_mut(place)) else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        data.set_waits();
        let path = found.point.path.clone().unwrap_or_default();
        let ten = found.point.operation.as_deref() == Some(TEN_FILES);
        let workers = found.point.concurrency.unwrap_or(1);
        let usual_s = if ten {
            many_s(self.env, &found.point, FILES, workers)
        } else {
            one_s(self.env, &found.point).max(many_s(self.env, &found.point, workers, workers))
        };
        data.set_tail_threshold_ns(3e9 * usual_s);
        let pair = self.pairs.on(&path)?;
        let done = if ten {
            Self::ten(self.env, self.stamps, pair, data, found)
        } else {
            Self::sweep(self.env, self.stamps, pair, data, found)
        };
        if done.is_err() {
            self.pairs.give_up(&path);
        }
        done
    }

    fn leave_out(&mut self, point: &Point, blocks: &[usize]) {
        if let Some(found) = self.all.iter_mut().find(|found| found.point == *point) {
            without(&mut found.blocks, blocks);
        }
    }

    fn proof(&mut self, point: &Point, _: &latlab_harness::Sampled) -> Proof {
        let Some(found) = self.all.iter().find(|found| found.point == *point) else {
            return Proof::default();
        };
        let Ok(pair) = self.pairs.on(point.path.as_deref().unwrap_or_default()) else {
            return Proof::default();
        };
        let mut checks = vec![found.whole()];
        checks.extend(pair.counted());
        let asked_ns = pair.route.details().asked_ns().unwrap_or(0);
        if point.path.as_deref() == Some(EMULATED) && pair.route.delays_packets() {
            let least_ns = found.least_ns.unwrap_or(0);
            checks.push(Check {
                name: "as long as the path".to_owned(),
                ok: least_ns >= asked_ns,
                detail: format!("the soonest took {least_ns} ns, the path {asked_ns} ns"),
            });
        }
        let mut flags: Vec<String> = pair.route.label().into_iter().collect();
        let mut findings = if point.operation.as_deref() == Some(TEN_FILES) {
            of_ten(found)
        } else {
            if let Some((off, detail)) = little(found)
                && off > LITTLE
            {
                flags.push(format!("Little's law does not hold: {detail}"));
            }
            of_sweep(found)
        };
        findings["route"] = json!(pair.route.details());
        findings["libraries"] = self.libraries.clone();
        if let Some(server) = &pair.server {
            findings["congestion_control"] = json!(server.congestion_control);
        } else {
            findings["reopened"] = json!(found.reopened);
            findings["bodies_bytes"] = json!(found.bodies.map(<[u64; 2]>::from));
            if found.reopened > 0 {
                flags.push(format!(
                    "the server closed its connection before {} of {} transfers: they opened it again",
                    found.reopened, found.transfers
                ));
            }
        }
        Proof {
            checks,
            work: Done {
                bytes: if is_named(point) {
                    found.body_bytes
                } else {
                    found.transfers * point.file_bytes.unwrap_or(0)
                },
                ..Done::default()
            },
            engine: point.engine.clone(),
            flags,
            findings: Some(findings),
            ..Proof::default()
        }
    }
}

impl Found {
    /// The one that is under way.
    fn block(&mut self) -> &mut OfBlock {
        if self.blocks.is_empty() {
            self.blocks.push(OfBlock::default());
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    fn each(&self, of: impl Fn(&OfBlock) -> Option<f64>) -> Vec<f64> {
        self.blocks.iter().filter_map(of).collect()
    }

    fn all(&self, of: impl Fn(&OfBlock) -> &[f64]) -> Vec<f64> {
        self.blocks.iter().flat_map(of).copied().collect()
    }

    fn whole(&self) -> Check {
        let ok = self.missing == 0 && self.transfers > 0;
        if is_named(&self.point) {
            return Check {
                name: "every answer ended".to_owned(),
                ok,
                detail: format!(
                    "{} answers, with status 200 and their last byte; {} without a word",
                    self.transfers, self.missing
                ),
            };
        }
        Check {
            name: "every body compared".to_owned(),
            ok,
            detail: format!(
                "{} files of {} bytes, each as long as asked for and every byte as it must be; {} without a word",
                self.transfers,
                self.point.file_bytes.unwrap_or(0),
                self.missing
            ),
        }
    }
}

/// How far rate x time is from what was under way, over all blocks, and in words; none without blocks.
fn little(found: &Found) -> Option<(f64, String)> {
    let blocks: Vec<[f64; 3]> = found.blocks.iter().filter_map(|block| block.little).collect();
    if blocks.is_empty() {
        return None;
    }
    let mean = |of: fn(&[f64; 3]) -> f64| blocks.iter().map(of).sum::<f64>() / blocks.len() as f64;
    let under_way = mean(|[under_way, ..]| *under_way);
    let products = mean(|[_, rate, time]| rate * time * 1e-9);
    let off = (products - under_way).abs() / under_way;
    Some((off, format!("{under_way:.2} under way on average, rate x time {products:.2}")))
}

fn of_sweep(found: &Found) -> Value {
    let sum = |of: usize| found.blocks.iter().map(|block| block.cpu_ns[of]).sum::<f64>();
    let share = |side: usize| (sum(2) > 0.0).then(|| sum(side) / sum(2));
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in found.blocks.iter().flat_map(|block| &block.phases) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let of_phase = |name: &str| {
        found.all(|block| {
            let own = block.phases.iter().find(|(own, _)| *own == name);
            own.map_or(&[], |(_, values)| values)
        })
    };
    let phases: serde_json::Map<String, Value> =
        names.into_iter().map(|name| (name.to_owned(), json!(estimate(&of_phase(name))))).collect();
    json!({
        "goodput_bytes_per_s": estimate(&found.each(|block| block.rate)),
        "throughput_bytes_per_s": estimate(&found.each(|block| block.throughput)),
        "transfers": found.transfers,
        "p99_ns": at_quantile(&found.all(|block| &block.times), 0.99),
        "least_ns": found.least_ns,
        "phases_ns": phases,
        "time_ns": estimate(&found.each(|block| block.median_ns)),
        "until_first_byte_ns": median(&found.all(|block| &block.until_first_byte)),
        "client_cpu_share": share(0),
        "server_cpu_share": share(1),
        "little": little(found).map(|(off, detail)| json!({ "off": off, "detail": detail })),
    })
}

fn of_ten(found: &Found) -> Value {
    let [sequential, pool] = [found.all(|block| &block.sequential), found.all(|block| &block.pool)];
    json!({
        "sequential_ns": estimate(&sequential),
        "pool_ns": estimate(&pool),
        "speed_up": estimate(&found.each(|block| block.speed_up)),
        "sets": pool.len() + sequential.len(),
        "least_ns": found.least_ns,
    })
}
