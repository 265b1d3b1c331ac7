//! Random blocks at a depth, on Linux.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use latlab_harness::{
    AnySession, Arrivals, Block, Env, Flight, Limits, ProbeError, Proof, Queue, Wait, without,
};
use latlab_record::{Point, Work};
use latlab_storage::{Direction, uring_allowed};
use serde_json::json;

use self::seek::Seeks;
use super::{KIB_4, WARM_UP_S, Way, buffers, is_warmed, read_s, seeks_at, sizes, writes};
use crate::disk::{Asked, DIRECT, Evidence, Flow, Places, Target, answered_by_a_device};

mod seek;

/// Below this share of the depth that was asked for the figure says so.
const REACHED: f64 = 0.9;
/// Writes take at most so many times their planned time: a slow disk does fewer.
const PATIENCE: f64 = 3.0;

/// Reads of a warm-up at most.
const MOST_WARM_UP: u32 = 10_000;

/// What carries out more than one transfer at a time here.
pub(crate) fn deep_engine() -> &'static str {
    let allowed = File::open("/dev/null").map(|file| uring_allowed(&Arc::new(OwnedFd::from(file))));
    if matches!(allowed, Ok(Ok(()))) { "io_uring" } else { "threads" }
}

/// What was gathered at one point.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) flight: Flight,
    pub(crate) evidence: Evidence,
    pub(crate) engine: &'static str,
    pub(crate) flag: Option<String>,
    /// The flights of the blocks that count.
    pub(super) blocks: Vec<Flight>,
    /// How long each of the first reads of a visit took, ns.
    first_ns: Vec<f64>,
}

/// Of all points so far, each once.
#[derive(Default)]
pub(crate) struct Ledger(Vec<(Point, Gathered)>);

impl Ledger {
    pub(crate) fn of(&mut self, point: &Point) -> &mut Gathered {
        let place = self.0.iter().position(|(own, _)| own == point).unwrap_or_else(|| {
            self.0.push((point.clone(), Gathered::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

/// The median time from submission to end, ns; 0 without any.
pub(crate) fn median_service(flight: &Flight) -> f64 {
    match flight.service.total() {
        0 => 0.0,
        _ => latlab_stats::weighted::quantile_counts(&flight.service.occupied(), 0.5),
    }
}

/// Lets a few reads pass before the first that counts: the first through a new ring waits for its set-up.
///
/// # Errors
/// What the disk says.
pub(crate) fn warm_up(flow: &mut Flow, depth: u32) -> Result<(), ProbeError> {
    for token in 0..depth {
        flow.submit(token)?;
    }
    let mut ended = 0;
    while ended < depth {
        let before = ended;
        flow.reap(Wait::ForOne, &mut |_| ended += 1)?;
        if ended == before {
            return Err(ProbeError::Other("the disk gave no answer".to_owned()));
        }
    }
    Ok(())
}

pub(crate) fn open<'env>(env: &'env Env, way: Way) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Random::on(env, way, Target::open(env)?)))
}

/// One point's flow, and what all points came to.
pub(super) struct Random<'env> {
    env: &'env Env,
    way: Way,
    target: Target,
    /// The order goes on from point to point, one for each block size: no place comes twice before all came.
    orders: Vec<(u64, Places)>,
    selected: Option<(Point, Flow)>,
    /// At the point of single small reads.
    seeks: Option<Seeks>,
    pub(super) ledger: Ledger,
}

impl<'env> Random<'env> {
    pub(super) fn on(env: &'env Env, way: Way, target: Target) -> Self {
        Self {
            env,
            way,
            target,
            orders: Vec::new(),
            selected: None,
            seeks: if way == Way::Read { Seeks::new(env) } else { None },
            ledger: Ledger::default(),
        }
    }

    fn direction(&self) -> Direction {
        match self.way {
            Way::Read => Direction::Read,
            Way::Write => Direction::Write,
        }
    }

    /// Takes the order of this block size, or begins one.
    fn order(&mut self, block_bytes: u64) -> Places {
        if let Some(place) = self.orders.iter().position(|(own, _)| *own == block_bytes) {
            return self.orders.swap_remove(place).1;
        }
        let salt = block_bytes.rotate_left(8) ^ u64::from(self.way == Way::Write);
        Places::random(block_bytes, self.target.blocks(block_bytes), self.env.seed(salt))
    }

    /// Reads one block at a time for [`WARM_UP_S`], and keeps how long the first of them took.
    fn settle(&mut self) -> Result<(), ProbeError> {
        let Some((point, flow)) = self.selected.as_mut().filter(|(point, _)| is_warmed(self.way, point))
        else {
            return Ok(());
        };
        let clock = &self.env.clock;
        let first_ns = 1e9 * read_s(self.env.settings.profile, sizes(point).0, 1);
        let gathered = self.ledger.of(point);
        let begun = clock.now_ns();
        let mut now = begun;
        // Counted too: simulated time does not pass by reading.
        for _ in 0..MOST_WARM_UP {
            if now - begun >= 1e9 * WARM_UP_S {
                break;
            }
            warm_up(flow, 1)?;
            let ended = clock.now_ns();
            if now - begun < first_ns {
                gathered.first_ns.push(ended - now);
            }
            now = ended;
        }
        Ok(())
    }

    /// Closes the flow that is open, and keeps what it saw.
    fn put_away(&mut self) {
        if let Some((point, flow)) = self.selected.take() {
            let (places, evidence) = flow.end();
            self.orders.push((sizes(&point).0, places));
            self.ledger.of(&point).evidence = evidence;
        }
    }
}

impl AnySession for Random<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        if seeks_at(self.way, point)
            && let Some(seeks) = &mut self.seeks
        {
            seeks.take(self.env, &self.target, &mut self.ledger.of(point).evidence)?;
        }
        if self.selected.as_ref().is_some_and(|(own, _)| own == point) {
            return self.settle();
        }
        self.put_away();
        let (block_bytes, depth) = sizes(point);
        let places = self.order(block_bytes);
        let mut flow = match self.way {
            Way::Read => Flow::reading(&self.target, DIRECT, depth, block_bytes, places)?,
            Way::Write => {
                let wanted = writes(self.env.settings.profile, block_bytes, depth);
                let slots = buffers(self.env, block_bytes, wanted);
                let slots = u32::try_from(slots).unwrap_or(u32::MAX);
                Flow::writing(&self.target, DIRECT, depth, slots, block_bytes, places)?
            }
        };
        if self.way == Way::Read {
            warm_up(&mut flow, depth)?;
        }
        let gathered = self.ledger.of(point);
        gathered.engine = flow.engine();
        gathered.flag.clone_from(&flow.flag);
        // A look at the blocks of the warming up is kept too: they hold what they must.
        let warming = std::mem::replace(&mut flow.evidence, std::mem::take(&mut gathered.evidence));
        flow.evidence.join(warming);
        self.selected = Some((point.clone(), flow));
        self.settle()
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let direction = self.direction();
        let Some((point, flow)) = &mut self.selected else {
            return Err(ProbeError::Other("no point was selected".to_owned()));
        };
        let profile = self.env.settings.profile;
        let (block_bytes, depth) = sizes(point);
        // Four times what a disk of 1 GB/s needs for all that is under way, and never what every second read takes.
        block.set_tail_threshold_ns(1e6 + 4.0 * (block_bytes * u64::from(depth)) as f64);
        let begin_within_ns = 1e9 * read_s(profile, block_bytes, depth);
        let mut flown = Flight::default();
        if self.way == Way::Read {
            let limits = Limits { operations: u64::MAX, begin_within_ns };
            flow.evidence.begin(&self.target, DIRECT);
            flown = block.in_flight(flow, depth, Arrivals::Closed, limits)?;
            flow.evidence.end(&self.target, direction, flown.operations * block_bytes);
        } else {
            let wanted = writes(profile, block_bytes, depth);
            let mut left_ns = PATIENCE * begin_within_ns;
            while flown.operations < wanted && left_ns > 0.0 {
                let ready = flow.prepare(self.env.disk.budget(), wanted - flown.operations)?;
                let limits = Limits { operations: ready, begin_within_ns: left_ns };
                flow.evidence.begin(&self.target, DIRECT);
                let part = block.in_flight(flow, depth, Arrivals::Closed, limits)?;
                flow.evidence.end(&self.target, direction, part.operations * block_bytes);
                left_ns -= part.elapsed_ns;
                flown.add(&part);
            }
        }
        let gathered = self.ledger.of(point);
        gathered.flight.add(&flown);
        gathered.blocks.push(flown);
        Ok(())
    }

    fn leave_out(&mut self, point: &Point, blocks: &[usize]) {
        without(&mut self.ledger.of(point).blocks, blocks);
    }

    fn proof(&mut self, point: &Point) -> Proof {
        if self.selected.as_ref().is_some_and(|(own, _)| own == point) {
            self.put_away();
        }
        let direction = self.direction();
        let gathered = self.ledger.of(point);
        let (block_bytes, depth) = sizes(point);
        let mut checks = gathered.evidence.checks(&self.target, DIRECT, direction);
        if block_bytes == KIB_4 {
            checks.push(answered_by_a_device(median_service(&gathered.flight)));
        }
        let mut counted = Flight::default();
        gathered.blocks.iter().for_each(|block| counted.add(block));
        let (rate, achieved) = (counted.rate_per_s(), counted.achieved_depth());
        let mut flags = self.target.flags();
        flags.extend(gathered.flag.clone());
        let seek = (self.seeks.as_ref())
            .filter(|_| seeks_at(self.way, point))
            .and_then(|seeks| seeks.findings(self.env, &self.target));
        if achieved < REACHED * f64::from(depth) {
            flags.push(format!("depth {achieved:.1} of {depth} was reached"));
        }
        Proof {
            checks,
            work: Work {
                bytes: gathered.flight.operations * block_bytes,
                device_bytes: gathered.evidence.device_bytes(),
                ..Work::default()
            },
            engine: Some(gathered.engine.to_owned()),
            flags,
            findings: Some(json!({
                "rate_per_s": rate,
                "bytes_per_s": rate * block_bytes as f64,
                "achieved_depth": achieved,
                "first_reads_ns": median(&mut gathered.first_ns),
                "second_half_to_first": second_to_first(&gathered.blocks),
                "device_time": gathered.evidence.device_time(
                    Asked::One(direction),
                    gathered.flight.operations,
                    gathered.flight.under_way_ns,
                ),
                "seek": seek,
            })),
            ..Proof::default()
        }
    }
}

/// `None` of nothing.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| latlab_stats::quantile(values, 0.5))
}

/// The mean rate of the later half of the blocks over that of the earlier half; none of fewer than four.
fn second_to_first(blocks: &[Flight]) -> Option<f64> {
    if blocks.len() < 4 {
        return None;
    }
    let (first, second) = blocks.split_at(blocks.len() / 2);
    let mean = |blocks: &[Flight]| blocks.iter().map(Flight::rate_per_s).sum::<f64>() / blocks.len() as f64;
    Some(mean(second) / mean(first).max(f64::MIN_POSITIVE))
}
