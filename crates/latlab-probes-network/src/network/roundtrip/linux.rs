//! Linux: a client here, an echo server in a child process.

use std::net::IpAddr;
use std::time::Duration;

use latlab_harness::{Block, Env, PointFields as _, ProbeError, Proof};
use latlab_net::echo::{Service, Waiting};
use latlab_record::{Check, Work};

use super::{IDLING_S, Placement, RoundTrip, Sides, Trip, WARM};
use crate::network::linux::{Echo, Served, Sum};
use crate::peer::{Route, check};
use latlab_probes_shared::linux::{Pinned, Task, runs_only_on, switches, thread_id};
use latlab_probes_shared::{median, other_cpu};

pub(super) const HERE: bool = true;
/// A block, and an answer of the child on its pipe, take milliseconds; a partner on a crowded CPU gets its
/// turn within some time slices.
const PATIENCE: Duration = Duration::from_secs(4);
/// A side that blocks sleeps, or is switched away from, in most round trips at least.
const SLEEPS: f64 = 0.5;
/// A side that polls is interrupted at times, far less than once in so many round trips.
const POLLS: f64 = 0.1;
/// A block is disturbed when the sides had the CPUs that they need for less than this.
const OWN_SHARE: f64 = 0.8;
/// As long after other work a sleeper's CPU still wakes up as then, ns.
const JUST_AFTER_NS: f64 = 20e6;
/// Far above a wake-up (some tens of microseconds).
const TAIL_NS: f64 = 500e3;

pub(super) fn open<'env>(env: &'env Env, _group: &[Trip]) -> Result<Session<'env>, ProbeError> {
    Session::new(env, PATIENCE)
}

impl Trip {
    fn waiting(self) -> Waiting {
        match self.placement {
            Placement::SameCpu | Placement::AcrossBlocking => Waiting::Blocking,
            Placement::AcrossPolling => Waiting::Polling,
        }
    }

    /// Both sides share a CPU.
    fn is_together(self) -> bool {
        self.placement == Placement::SameCpu
    }
}

/// The round trips of one point.
#[derive(Default)]
pub struct Evidence {
    /// Answers that were right, of timed round trips.
    right: u64,
    timed: u64,
    /// Switches of this thread in timed round trips, where they are counted; where it polls, only those that
    /// it asked for.
    switches: Sum,
    /// Round trips of sleepers just after other work, ns.
    just_after_work: Vec<f64>,
    address: Option<IpAddr>,
}

/// A client, and a server in a child process.
pub struct Session<'env> {
    env: &'env Env,
    echo: Echo<'env, Trip>,
    address: Option<IpAddr>,
    /// Of the visit: round trips of sleepers just after other work, ns.
    just_after_work: Vec<f64>,
    _home: Pinned,
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, patience: Duration) -> Result<Self, ProbeError> {
        Ok(Self {
            env,
            echo: Echo::new(env, &Route::loopback(), patience)?,
            address: None,
            just_after_work: Vec::new(),
            _home: Pinned::to(env.home_cpu)?,
        })
    }

    /// The server's CPU; `None` where there is no other one and the point needs it.
    fn cpu(&self, point: Trip) -> Option<u32> {
        if point.is_together() { Some(self.env.home_cpu) } else { other_cpu(self.env) }
    }

    /// So many round trips, each handed over with its stamps. What ends them is why.
    fn exchange(&mut self, count: u64, mut each: impl FnMut(u64, u64)) -> Result<(), ProbeError> {
        let mut left = count;
        self.echo.exchange(|begin, end| {
            each(begin, end);
            left -= 1;
            left > 0
        })
    }

    /// Round trips until both CPUs are as they are with those who mostly wait; the first of them are kept.
    fn idle(&mut self) -> Result<(), ProbeError> {
        let (clock, just_after) = (&self.env.clock, &mut self.just_after_work);
        let mut first = None;
        self.echo.exchange(|begin, end| {
            let first = *first.get_or_insert(begin);
            if clock.ns(begin.saturating_sub(first)) < JUST_AFTER_NS {
                just_after.push(clock.ns(end.saturating_sub(begin)));
            }
            clock.ns(end.saturating_sub(first)) < IDLING_S * 1e9
        })
    }

    /// What tells whether one was kept from its CPU, ns, only ever rising: of two that share one, the time
    /// that both had it; of a server that polls, the time that it waited for it. (The first is brought up to
    /// date only at the kernel's ticks while a process runs.)
    fn cpu_ns(&self, point: Trip) -> Option<u64> {
        let id = self.echo.server.id()?;
        if !point.is_together() {
            return waited_ns(id);
        }
        let id = i32::try_from(id).ok()?;
        Some(Task::Thread(thread_id()).cpu_ns()? + Task::Process(id).cpu_ns()?)
    }
}

/// How long the threads of a process were ready to run and had no CPU.
fn waited_ns(id: u32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let of = |thread: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    threads.filter_map(Result::ok).map(of).sum()
}

/// Whether one of the two was kept from its CPU.
fn was_disturbed(point: Trip, before_ns: u64, after_ns: u64, took_ns: f64) -> bool {
    let between = after_ns.saturating_sub(before_ns) as f64;
    if point.is_together() {
        between < OWN_SHARE * took_ns
    } else {
        // Who sleeps needs no CPU.
        point.waiting() == Waiting::Polling && between > (1.0 - OWN_SHARE) * took_ns
    }
}

impl latlab_harness::Session<RoundTrip> for Session<'_> {
    fn select(&mut self, point: &Trip) -> Result<(), ProbeError> {
        self.just_after_work.clear();
        let service = Service {
            transport: point.transport,
            waiting: point.waiting(),
            bytes: point.message_bytes,
            cpu: Some(self.cpu(*point).ok_or_else(|| ProbeError::no_point(&point.to_point()))?),
        };
        self.address = self.echo.connect(*point, service)?;
        self.exchange(WARM, |_, _| {})?;
        if point.idles() { self.idle() } else { Ok(()) }
    }

    fn block(&mut self, point: &Trip, evidence: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        if point.waiting() == Waiting::Blocking {
            block.set_waits();
        }
        block.set_tail_threshold_ns(TAIL_NS);
        let count = point.of_a_block(self.env.settings.profile);
        let before = (switches(), self.cpu_ns(*point), self.env.clock.now_ns());
        let mut right = 0;
        let outcome = self.exchange(count, |begin, end| {
            right += 1;
            block.span(begin, end);
        });
        let after = (switches(), self.cpu_ns(*point), self.env.clock.now_ns());
        evidence.address = self.address;
        evidence.just_after_work.append(&mut self.just_after_work);
        evidence.timed += count;
        evidence.right += right;
        evidence.switches.add(before.0.zip(after.0).map(|(before, after)| {
            // One that polls is pushed off a crowded CPU, and has not slept by that.
            let forced = match point.waiting() {
                Waiting::Blocking => after.1.saturating_sub(before.1),
                Waiting::Polling => 0,
            };
            after.0.saturating_sub(before.0) + forced
        }));
        if let (Some(before_ns), Some(after_ns)) = (before.1, after.1)
            && was_disturbed(*point, before_ns, after_ns, after.2 - before.2)
        {
            block.mark_disturbed();
        }
        outcome
    }

    fn proof(&mut self, point: &Trip, evidence: &Evidence) -> Proof<Sides> {
        let (served, failed) = self.echo.served(point);
        let cpus = [self.env.home_cpu, self.cpu(*point).unwrap_or(self.env.home_cpu)];
        let mut checks = evidence.checks(*point, &served, cpus);
        checks.extend(failed.map(|failed| check("the server ended when it was told", false, failed)));
        let sides = Sides {
            address: evidence.address,
            from_cpu: cpus[0],
            to_cpu: cpus[1],
            switches_per_round_trip: evidence.own_switches(),
            server_switches_per_round_trip: served.switches_each(),
            just_after_work_ns: median(evidence.just_after_work.iter().copied()),
        };
        Proof {
            work: Work { bytes: evidence.timed * 2 * point.message_bytes as u64, ..Work::default() },
            ..Proof::of(checks).with(sides).by("socket")
        }
    }
}

impl Evidence {
    /// Of this thread; emulated systems return zeros, which are none.
    fn own_switches(&self) -> Option<f64> {
        Some(self.switches.0? as f64 / self.timed.max(1) as f64)
    }

    fn checks(&self, point: Trip, served: &Served, [home_cpu, cpu]: [u32; 2]) -> Vec<Check> {
        let bytes = served.sent * point.message_bytes as u64;
        vec![
            check(
                "every answer was that of its request",
                self.timed > 0 && self.right == self.timed,
                format!("{} of {} answers, every byte compared", self.right, self.timed),
            ),
            check(
                "counted on both sides",
                served.sent > 0 && served.messages == served.sent && served.bytes == bytes,
                format!(
                    "{} messages of {bytes} bytes sent, {} of {} answered",
                    served.sent, served.messages, served.bytes
                ),
            ),
            check(
                "both sides kept to their CPUs",
                !served.strayed && runs_only_on(thread_id(), home_cpu),
                format!("CPU {home_cpu} and CPU {cpu}"),
            ),
            self.waited(point, served),
        ]
    }

    /// Whether both slept, or neither did.
    fn waited(&self, point: Trip, served: &Served) -> Check {
        let counted = self
            .own_switches()
            .zip(served.switches_each())
            // Emulated systems return zeros for those who sleep.
            .filter(|(own, theirs)| point.waiting() == Waiting::Polling || *own + *theirs > 0.0);
        let blocks = point.waiting() == Waiting::Blocking;
        check(
            if blocks { "both sides slept while they waited" } else { "neither side slept while it waited" },
            counted.is_none_or(
                |(own, theirs)| {
                    if blocks { own.min(theirs) >= SLEEPS } else { own.max(theirs) <= POLLS }
                },
            ),
            counted.map_or_else(
                || "switches are not counted here".to_owned(),
                |(own, theirs)| {
                    format!("{own:.2} switches of the client and {theirs:.2} of the server in a round trip")
                },
            ),
        )
    }
}

#[cfg(test)]
mod faults;
