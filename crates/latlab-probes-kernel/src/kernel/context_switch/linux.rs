//! Linux: pipe(2), eventfd(2), futex(2); a partner by clone or fork; a watch that keeps every wait bounded.

mod exchange;
mod partner;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use latlab_probes_shared::linux::{Pinned, Task, runs_only_on, switches, thread_id};
use latlab_probes_shared::prelude::*;

use super::{Between, ContextSwitch, Exchanged, Means, SameCpu, Switches, other_cpu, window};
use exchange::{Exchange, Kind, STOP, Side};
use partner::{Partner, answer};
use watch::Watch;

pub(super) const HERE: bool = true;
/// Longest wait for an answer. A block takes milliseconds; a partner on a crowded CPU gets its turn within
/// some time slices.
const PATIENCE: Duration = Duration::from_secs(5);
/// A block is disturbed when the two had their shared CPU for less than this.
const OWN_SHARE: f64 = 0.8;
/// Switches that a round trip on one CPU has at least on each side, but for those that a preemption saved.
const SWITCHES: f64 = 0.9;

pub(super) fn open(env: &Env) -> Result<Session<'_>> {
    Session::new(env, answer, PATIENCE * env.patience)
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    /// Whether they were right.
    answers: Compared,
    /// Round trips during which switches were counted, and those of this thread.
    counted: u64,
    switches: u64,
}

/// This thread with its partners.
pub struct Session<'env> {
    env: &'env Env,
    /// What partners do: in tests, something wrong.
    answer: fn(&Side),
    /// Before the watch: partners end first.
    lanes: Vec<(Exchanged, Lane)>,
    watch: Watch,
    _home: Pinned,
}

/// The exchange of one point. The partner stays, asleep, between visits.
struct Lane {
    exchange: Arc<Exchange>,
    /// `None`: this thread alone.
    partner: Option<Partner>,
    cpu: u32,
    token: u32,
    /// Nothing can be sent or received any more.
    broken: bool,
}

/// The round trips of a block.
struct Trips<'a> {
    lane: &'a Lane,
    token: u32,
    broken: bool,
    answers: Compared,
}

impl Batch for Trips<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        if self.lane.partner.is_some() { self.there_and_back(ops) } else { self.alone(ops) }
    }
}

/// Even, so that an answer is never a question; far below [`STOP`].
fn after(token: u32) -> u32 {
    (token + 2) & 0x3FFF_FFFE
}

impl Trips<'_> {
    fn there_and_back(&mut self, ops: u64) -> u64 {
        let home = self.lane.exchange.home();
        for _ in 0..ops {
            if self.broken {
                break;
            }
            let sent = self.token;
            let answer = if home.send(sent) { home.receive() } else { None };
            self.broken |= answer.is_none_or(|answer| answer >= STOP);
            self.answers.one(answer == Some(sent + 1));
            self.token = after(sent).max(2);
        }
        self.answers.all
    }

    fn alone(&mut self, ops: u64) -> u64 {
        let own = self.lane.exchange.itself();
        for _ in 0..ops {
            let mut right = true;
            for token in [self.token, self.token + 1] {
                right &= own.send(token) && own.receive() == Some(token);
            }
            self.answers.one(right);
            self.broken |= !right;
            if self.broken {
                // A pipe that holds what it should not would block the next writing one day.
                break;
            }
            self.token = after(self.token).max(2);
        }
        self.answers.all
    }
}

impl Lane {
    /// Time on a CPU of both sides, ns.
    fn cpu_ns(&self) -> Option<u64> {
        let partner = self.partner.as_ref()?.task.cpu_ns()?;
        Some(partner + Task::Thread(thread_id()).cpu_ns()?)
    }

    /// Its further round trips, given the answers so far.
    fn trips(&self, answers: Compared) -> Trips<'_> {
        Trips { lane: self, token: self.token, broken: self.broken, answers }
    }
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, answer: fn(&Side), patience: Duration) -> Result<Self> {
        let (watch, home) = (Watch::start(patience)?, Pinned::to(env.home_cpu)?);
        Ok(Self { env, answer, lanes: Vec::new(), watch, _home: home })
    }

    /// The lane of a point, made when it is first needed.
    fn lane(&mut self, point: Exchanged) -> Result<&mut Lane> {
        kept(&mut self.lanes, point, || Lane::new(point, self.env, self.answer))
    }
}

impl Lane {
    fn new(point: Exchanged, env: &Env, answer: fn(&Side)) -> Result<Self> {
        let kind = match point.operation {
            Means::Pipe | Means::PipeAlone => Kind::Pipe,
            Means::Eventfd => Kind::Eventfd,
            Means::Futex => Kind::Futex,
        };
        let exchange = Arc::new(Exchange::new(kind, point.between == Some(Between::Processes))?);
        let cpu = if point.placement == SameCpu {
            env.home_cpu
        } else {
            other_cpu(env).ok_or_else(|| ProbeError::Other("needs two CPUs".to_owned()))?
        };
        let partner = match point.between {
            None => None,
            Some(Between::Processes) => Some(Partner::fork(&exchange, cpu, answer)?),
            Some(Between::Threads) => Some(Partner::spawn(&exchange, cpu, answer)?),
        };
        Ok(Self { exchange, partner, cpu, token: 2, broken: false })
    }
}

impl latlab_harness::Session<ContextSwitch> for Session<'_> {
    fn select(&mut self, point: &Exchanged) -> Result<()> {
        self.lane(*point).map(drop)
    }

    fn block(&mut self, point: &Exchanged, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let lane = kept(&mut self.lanes, *point, || Lane::new(*point, self.env, self.answer))?;
        let (ops, windows) = window(point.placement);
        block.set_window_ops(ops);
        block.set_windows(windows);
        block.set_waits();
        self.watch.begin(&lane.exchange, lane.partner.as_ref());
        let mut trips = lane.trips(std::mem::take(&mut evidence.answers));
        let (made, begun_ns) = (trips.answers.all, self.env.clock.now_ns());
        let before = (switches(), lane.cpu_ns());
        block.batches(&mut trips);
        let after = (switches(), lane.cpu_ns());
        let took_ns = self.env.clock.now_ns() - begun_ns;
        let fired = self.watch.end();
        let Trips { token, broken, answers, .. } = trips;
        let made = answers.all - made;
        (lane.token, lane.broken, evidence.answers) = (token, broken || fired, answers);
        if lane.broken {
            let how = lane
                .partner
                .as_ref()
                .map_or("the pipe does not hold what was written".to_owned(), |partner| {
                    partner.how_it_ended(fired)
                });
            return Err(ProbeError::Other(format!("no answer came back: {how}")));
        }
        if let (Some(before), Some(after)) = (before.0, after.0) {
            evidence.counted += made;
            evidence.switches += (after.0 + after.1).saturating_sub(before.0 + before.1);
        }
        if let (true, Some(before), Some(after)) = (point.placement == SameCpu, before.1, after.1)
            && (after.saturating_sub(before) as f64) < OWN_SHARE * took_ns
        {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Exchanged, evidence: &Evidence) -> Proof<Switches> {
        let Some(lane) = known(&self.lanes, point) else { return Proof::default() };
        let answered =
            evidence.answers.check("every answer was the number sent and one more", "", "answers were right");
        let mut checks = vec![Check { ok: answered.ok && !lane.broken, ..answered }];
        let per_trip = (evidence.counted > 0).then(|| evidence.switches as f64 / evidence.counted as f64);
        if let Some(partner) = &lane.partner {
            checks.push(Check {
                name: "both sides kept to their CPUs".to_owned(),
                ok: runs_only_on(partner.task.id(), lane.cpu) && runs_only_on(thread_id(), self.env.home_cpu),
                detail: format!("CPU {} and CPU {}", self.env.home_cpu, lane.cpu),
            });
            if point.placement == SameCpu {
                // Emulated systems return zeros.
                let counted = per_trip.filter(|switches| *switches > 0.0);
                checks.push(Check {
                    name: "the CPU switched between them".to_owned(),
                    ok: counted.is_none_or(|switches| switches >= SWITCHES),
                    detail: counted.map_or_else(
                        || "switches are not counted here".to_owned(),
                        |switches| format!("{switches:.3} switches of this side in a round trip"),
                    ),
                });
            }
        }
        Proof::of(checks).with(Switches {
            switches_per_round_trip: per_trip,
            partner_cpu: lane.partner.as_ref().map(|_| lane.cpu),
        })
    }
}

#[cfg(test)]
mod tests;
