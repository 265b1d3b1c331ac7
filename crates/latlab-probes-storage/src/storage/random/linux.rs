//! Random blocks at a depth, on Linux.

use latlab_harness::{self as harness, Arrivals, Flight, Limits, Queue, Wait, without};
use latlab_probes_shared::open_loop::median_service;
use latlab_probes_shared::prelude::*;
use latlab_record::Work;

use self::seek::Seeks;
use super::{
    Blocks, Details, KIB_4, Marker, Random, WARM_UP_S, Way, buffers, is_warmed, read_s, seeks_at, writes,
};
use crate::disk::{self, Asked, DIRECT, Flow, Places, Target, answered_by_a_device, quantile};

mod seek;

/// Below this share of the depth that was asked for the figure says so.
const REACHED: f64 = 0.9;
/// Writes take at most so many times their planned time: a slow disk does fewer.
const PATIENCE: f64 = 3.0;

/// Reads of a warm-up at most.
const MOST_WARM_UP: u32 = 10_000;

/// What was seen at one point.
#[derive(Default)]
pub struct Evidence {
    pub(super) flight: Flight,
    pub(super) disk: disk::Evidence,
    pub(super) engine: &'static str,
    pub(super) flag: Option<String>,
    /// The flights of the blocks that count.
    pub(super) blocks: Vec<Flight>,
    /// How long each of the first reads of a visit took, ns.
    pub(super) first_ns: Vec<f64>,
}

/// Lets a few reads pass before the first that counts: the first through a new ring waits for its set-up.
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

pub(crate) fn open(env: &Env, way: Way) -> Result<Session<'_>, ProbeError> {
    Ok(Session::on(env, way, Target::open(env)?))
}

/// Blocks of the test file, in random order.
pub struct Session<'env> {
    env: &'env Env,
    way: Way,
    target: Target,
    /// The order goes on from point to point, one for each block size: no place comes twice before all came.
    orders: Vec<(u64, Places)>,
    /// Of the point that was selected.
    flow: Option<(Blocks, Flow)>,
    /// Of this visit: how long each of its first reads took, ns.
    first_ns: Vec<f64>,
    /// At the point of single small reads.
    seeks: Option<Seeks>,
}

impl<'env> Session<'env> {
    pub(super) fn on(env: &'env Env, way: Way, target: Target) -> Self {
        Self {
            env,
            way,
            target,
            orders: Vec::new(),
            flow: None,
            first_ns: Vec::new(),
            seeks: if way == Way::Read { Seeks::new(env) } else { None },
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
    fn settle(&mut self, point: &Blocks, flow: &mut Flow) -> Result<(), ProbeError> {
        if !is_warmed(self.way, point) {
            return Ok(());
        }
        let clock = &self.env.clock;
        let first_ns = 1e9 * read_s(self.env.settings.profile, point.block_bytes, 1);
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
                self.first_ns.push(ended - now);
            }
            now = ended;
        }
        Ok(())
    }

    /// The flow of a point: the one that is open, or a new one in its place.
    fn flow(&mut self, point: &Blocks) -> Result<Flow, ProbeError> {
        match self.flow.take() {
            Some((own, flow)) if own == *point => return Ok(flow),
            Some((own, flow)) => self.orders.push((own.block_bytes, flow.end())),
            None => {}
        }
        let Blocks { block_bytes, queue_depth: depth, .. } = *point;
        let places = self.order(block_bytes);
        match self.way {
            Way::Read => {
                let mut flow =
                    Flow::open(&self.target, DIRECT, self.way.direction(), [depth; 2], block_bytes, places)?;
                // What was verified of the blocks of the warm-up is kept too: they hold what they must.
                warm_up(&mut flow, depth)?;
                Ok(flow)
            }
            Way::Write => {
                let wanted = writes(self.env.settings.profile, block_bytes, depth);
                let slots = buffers(self.env, block_bytes, wanted);
                let slots = u32::try_from(slots).unwrap_or(u32::MAX);
                Flow::open(&self.target, DIRECT, self.way.direction(), [depth, slots], block_bytes, places)
            }
        }
    }

    /// Reads as many blocks as are begun in a time, or writes as many as were planned.
    fn fly(&self, point: &Blocks, flow: &mut Flow, block: &mut Block) -> Result<Flight, ProbeError> {
        let (profile, direction) = (self.env.settings.profile, self.way.direction());
        let Blocks { block_bytes, queue_depth: depth, .. } = *point;
        let begin_within_ns = 1e9 * read_s(profile, block_bytes, depth);
        let mut flown = Flight::default();
        if self.way == Way::Read {
            let limits = Limits { operations: u64::MAX, begin_within_ns };
            flow.evidence.begin(&self.target, DIRECT);
            flown = block.in_flight(flow, depth, Arrivals::Closed, limits)?;
            flow.evidence.end(&self.target, direction, flown.operations * block_bytes);
            return Ok(flown);
        }
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
        Ok(flown)
    }
}

impl<M: Marker> harness::Session<Random<M>> for Session<'_> {
    fn select(&mut self, point: &Blocks) -> Result<(), ProbeError> {
        self.first_ns.clear();
        let mut seen = disk::Evidence::default();
        if seeks_at(self.way, point)
            && let Some(seeks) = &mut self.seeks
        {
            seeks.take(self.env, &self.target, &mut seen)?;
        }
        let mut flow = self.flow(point)?;
        flow.evidence.join(seen);
        let settled = self.settle(point, &mut flow);
        self.flow = Some((*point, flow));
        settled
    }

    fn block(&mut self, point: &Blocks, seen: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        let Some((own, mut flow)) = self.flow.take() else {
            return Err(ProbeError::Other("no point was selected".to_owned()));
        };
        // Four times what a disk of 1 GB/s needs for all that is under way, and never what every second read
        // takes.
        let under_way = (point.block_bytes * u64::from(point.queue_depth)) as f64;
        block.set_tail_threshold_ns(1e6 + 4.0 * under_way);
        seen.engine = flow.engine();
        seen.flag.clone_from(&flow.flag);
        seen.first_ns.append(&mut self.first_ns);
        let flown = flow.seen_by(&mut seen.disk, |flow| self.fly(point, flow, block));
        self.flow = Some((own, flow));
        let flown = flown?;
        seen.flight.add(&flown);
        seen.blocks.push(flown);
        Ok(())
    }

    fn leave_out(&mut self, seen: &mut Evidence, blocks: &[usize]) {
        without(&mut seen.blocks, blocks);
    }

    fn proof(&mut self, point: &Blocks, seen: &Evidence) -> Proof<Details> {
        let direction = self.way.direction();
        let Evidence { flight, disk, blocks, .. } = seen;
        let Blocks { block_bytes, queue_depth: depth, .. } = *point;
        let mut checks = disk.checks(&self.target, DIRECT, direction);
        if block_bytes == KIB_4 {
            checks.push(answered_by_a_device(median_service(flight)));
        }
        let mut counted = Flight::default();
        for block in blocks {
            counted.add(block);
        }
        let (rate_per_s, achieved_depth) = (counted.rate_per_s(), counted.achieved_depth());
        let mut flags = self.target.flags();
        flags.extend(seen.flag.clone());
        if achieved_depth < REACHED * f64::from(depth) {
            flags.push(format!("depth {achieved_depth:.1} of {depth} was reached"));
        }
        let seeks = self.seeks.as_ref().filter(|_| seeks_at(self.way, point));
        let details = Details {
            rate_per_s,
            bytes_per_s: rate_per_s * block_bytes as f64,
            achieved_depth,
            first_reads_ns: quantile(&seen.first_ns, 0.5),
            second_half_to_first: second_to_first(blocks),
            device_time: Some(disk.device.time(
                Asked::One(direction),
                flight.operations,
                flight.under_way_ns,
            )),
            seek: seeks.and_then(|seeks| seeks.findings(self.env, &self.target)),
        };
        let bytes = flight.operations * block_bytes;
        let work = Work { bytes, device_bytes: disk.counted, ..Work::default() };
        Proof { work, flags, ..Proof::of(checks).with(details).by(seen.engine) }
    }
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
