//! Linux: pipe(2), eventfd(2), futex(2); a partner by clone or fork; a watch that keeps every wait bounded.

mod exchange;
mod partner;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use latlab_harness::{AnySession, Batch, Block, Env, ProbeError, Proof};
use latlab_record::{Check, Point};
use serde_json::json;

use super::{ALONE, EVENTFD, FUTEX, PIPE, PROCESSES, SAME, other_cpu, window};
use exchange::{Exchange, Kind, STOP, Side};
use latlab_probes_shared::linux::{Pinned, Task, runs_only_on, switches, thread_id};
use partner::{Partner, answer};
use watch::Watch;

pub(super) const HERE: bool = true;
/// Longest wait for an answer. A block takes milliseconds; a partner on a crowded CPU gets its turn within some time slices.
const PATIENCE: Duration = Duration::from_secs(5);
/// A block is disturbed when the two had their shared CPU for less than this.
const OWN_SHARE: f64 = 0.8;
/// Switches that a round trip on one CPU has at least on each side, but for those that a preemption saved.
const SWITCHES: f64 = 0.9;

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Switching::new(env, answer, PATIENCE * env.patience)?))
}

struct Switching<'env> {
    env: &'env Env,
    /// What partners do: in tests, something wrong.
    answer: fn(&Side),
    /// Before the watch: partners end first.
    all: Vec<Trips>,
    selected: usize,
    watch: Watch,
    _home: Pinned,
}

/// The round trips of one point. The partner stays, asleep, between visits.
struct Trips {
    point: Point,
    exchange: Arc<Exchange>,
    /// `None`: this thread alone.
    partner: Option<Partner>,
    cpu: u32,
    token: u32,
    made: u64,
    right: u64,
    /// Nothing can be sent or received any more.
    broken: bool,
    /// Round trips during which switches were counted, and those of this thread.
    counted: u64,
    switches: u64,
}

impl Batch for Trips {
    fn run(&mut self, ops: u64) -> u64 {
        if self.partner.is_some() { self.there_and_back(ops) } else { self.alone(ops) }
    }
}

/// Even, so that an answer is never a question; far below [`STOP`].
fn after(token: u32) -> u32 {
    (token + 2) & 0x3FFF_FFFE
}

impl Trips {
    fn there_and_back(&mut self, ops: u64) -> u64 {
        let home = self.exchange.home();
        for _ in 0..ops {
            if self.broken {
                break;
            }
            let sent = self.token;
            let answer = if home.send(sent) { home.receive() } else { None };
            match answer {
                Some(answer) if answer < STOP => self.right += u64::from(answer == sent + 1),
                _ => self.broken = true,
            }
            self.made += 1;
            self.token = after(sent).max(2);
        }
        self.right
    }

    fn alone(&mut self, ops: u64) -> u64 {
        let own = self.exchange.itself();
        for _ in 0..ops {
            let mut right = true;
            for token in [self.token, self.token + 1] {
                right &= own.send(token) && own.receive() == Some(token);
            }
            self.made += 1;
            self.right += u64::from(right);
            self.broken |= !right;
            if self.broken {
                // A pipe that holds what it should not would block the next writing one day.
                break;
            }
            self.token = after(self.token).max(2);
        }
        self.right
    }

    /// Time on a CPU of both sides, ns.
    fn cpu_ns(&self) -> Option<u64> {
        let partner = self.partner.as_ref()?.task().cpu_ns()?;
        Some(partner + Task::Thread(thread_id()).cpu_ns()?)
    }

    fn on_same_cpu(&self) -> bool {
        self.point.placement.as_deref() == Some(SAME)
    }
}

impl<'env> Switching<'env> {
    fn new(env: &'env Env, answer: fn(&Side), patience: Duration) -> Result<Self, ProbeError> {
        Ok(Self {
            env,
            answer,
            all: Vec::new(),
            selected: 0,
            watch: Watch::start(patience)?,
            _home: Pinned::to(env.home_cpu)?,
        })
    }

    fn trips(&self, point: &Point) -> Result<Trips, ProbeError> {
        let kind = match point.operation.as_deref() {
            Some(PIPE | ALONE) => Kind::Pipe,
            Some(EVENTFD) => Kind::Eventfd,
            Some(FUTEX) => Kind::Futex,
            other => {
                return Err(ProbeError::Other(format!(
                    "there is no exchange by {}",
                    other.unwrap_or("nothing")
                )));
            }
        };
        let processes = point.between.as_deref() == Some(PROCESSES);
        let exchange = Arc::new(Exchange::new(kind, processes)?);
        let cpu = if point.placement.as_deref() == Some(SAME) {
            self.env.home_cpu
        } else {
            other_cpu(self.env).ok_or_else(|| ProbeError::Other("needs two CPUs".to_owned()))?
        };
        let partner = if point.operation.as_deref() == Some(ALONE) {
            None
        } else if processes {
            Some(Partner::fork(&exchange, cpu, self.answer)?)
        } else {
            Some(Partner::spawn(&exchange, cpu, self.answer)?)
        };
        Ok(Trips {
            point: point.clone(),
            exchange,
            partner,
            cpu,
            token: 2,
            made: 0,
            right: 0,
            broken: false,
            counted: 0,
            switches: 0,
        })
    }
}

impl AnySession for Switching<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = if let Some(known) = self.all.iter().position(|trips| trips.point == *point) {
            known
        } else {
            let trips = self.trips(point)?;
            self.all.push(trips);
            self.all.len() - 1
        };
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let trips = self
            .all
            .get_mut(self.selected)
            .ok_or_else(|| ProbeError::Other("no exchange is selected".to_owned()))?;
        let (ops, windows) = window(trips.point.placement.as_deref().unwrap_or(SAME));
        block.set_window_ops(ops);
        block.set_windows(windows);
        block.set_waits();
        self.watch.begin(&trips.exchange, trips.partner.as_ref());
        let (made, begun_ns) = (trips.made, self.env.clock.now_ns());
        let before = (switches(), trips.cpu_ns());
        block.batches(trips);
        let after = (switches(), trips.cpu_ns());
        let took_ns = self.env.clock.now_ns() - begun_ns;
        let fired = self.watch.end();
        if trips.broken || fired {
            trips.broken = true;
            let how = trips
                .partner
                .as_mut()
                .map_or("the pipe does not hold what was written".to_owned(), |partner| {
                    partner.how_it_ended(fired)
                });
            return Err(ProbeError::Other(format!("no answer came back: {how}")));
        }
        if let (Some(before), Some(after)) = (before.0, after.0) {
            trips.counted += trips.made - made;
            trips.switches += (after.0 + after.1).saturating_sub(before.0 + before.1);
        }
        if let (true, Some(before), Some(after)) = (trips.on_same_cpu(), before.1, after.1)
            && (after.saturating_sub(before) as f64) < OWN_SHARE * took_ns
        {
            block.mark_disturbed();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(trips) = self.all.iter().find(|trips| trips.point == *point) else {
            return Proof::default();
        };
        let mut checks = vec![Check {
            name: "every answer was the number sent and one more".to_owned(),
            ok: trips.made > 0 && trips.right == trips.made && !trips.broken,
            detail: format!("{} of {} answers were right", trips.right, trips.made),
        }];
        let per_trip = (trips.counted > 0).then(|| trips.switches as f64 / trips.counted as f64);
        if let Some(partner) = &trips.partner {
            checks.push(Check {
                name: "both sides kept to their CPUs".to_owned(),
                ok: runs_only_on(partner.task().id(), trips.cpu)
                    && runs_only_on(thread_id(), self.env.home_cpu),
                detail: format!("CPU {} and CPU {}", self.env.home_cpu, trips.cpu),
            });
            if trips.on_same_cpu() {
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
        Proof {
            checks,
            findings: Some(json!({
                "switches_per_round_trip": per_trip,
                "partner_cpu": trips.partner.as_ref().map(|_| trips.cpu),
            })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests;
