//! Linux: a client here, an echo server in a child process.

use std::io::{BufRead, Write};
use std::time::Duration;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, serve_child};
use latlab_net::echo::{Address, Counts, Reply, Server, Service, Transport, Waiting, answer};
use latlab_record::{Check, Point, Work};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{BLOCKING, IDLING_S, POLLING, SAME, TCP, UDP, UNIX, WARM, trips};
use crate::network::linux::{Ask, Echo, failed, median};
use crate::peer::{Place, Route};
use latlab_probes_shared::linux::{Pinned, Task, runs_only_on, switches, thread_id};
use latlab_probes_shared::other_cpu;

pub(super) const HERE: bool = true;
/// A block, and an answer of the child on its pipe, take milliseconds; a partner on a crowded CPU gets its turn within some time slices.
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

/// What the child is asked.
#[derive(Serialize, Deserialize)]
pub(crate) enum Request {
    /// Listen, in place of what there was.
    Serve {
        place: Place,
        service: Service,
        /// Done with the third message and those after it.
        #[cfg(test)]
        planted: Option<Reply>,
    },
    /// End it, and say what was counted.
    End,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Told {
    Listening(Address),
    Ended(Option<Counts>),
}

/// The child: a server at a time, until its input ends.
pub(super) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut server: Option<Server> = None;
    let mut there = false;
    serve_child(input, output, move |request| match request {
        Request::Serve {
            place,
            service,
            #[cfg(test)]
            planted,
        } => {
            server = None;
            if !there {
                place.take()?;
                there = true;
            }
            let started = Server::start(service, move |number, message| {
                answer(message);
                #[cfg(test)]
                if let Some(fault) = planted
                    && number >= 3
                {
                    return fault;
                }
                let _ = number;
                Reply::Whole
            })
            .map_err(failed)?;
            let address = started.address().clone();
            server = Some(started);
            Ok(Told::Listening(address))
        }
        Request::End => match server.take() {
            Some(server) => server.end().map(|counts| Told::Ended(Some(counts))).map_err(failed),
            None => Ok(Told::Ended(None)),
        },
    })
}

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Trips::new(env, PATIENCE)?))
}

/// What is asked of a point.
#[derive(Clone, Copy)]
struct Asked {
    transport: Transport,
    waiting: Waiting,
    bytes: usize,
    /// Both sides share a CPU.
    together: bool,
    cpu: u32,
}

impl Asked {
    fn ask(self) -> Ask {
        Ask { transport: self.transport, waiting: self.waiting, bytes: self.bytes, cpu: self.cpu }
    }
}

/// The round trips of one point.
struct Found {
    point: Point,
    asked: Asked,
    /// Answers that were right, of timed round trips.
    right: u64,
    timed: u64,
    /// Messages sent, warming up included.
    sent: u64,
    served: Counts,
    /// The server's thread could go elsewhere once.
    strayed: bool,
    /// Switches of this thread in timed round trips; where it polls, only those that it asked for.
    switches: Option<u64>,
    server_switches: Option<u64>,
    /// Round trips of sleepers just after other work, ns.
    just_after_work: Vec<f64>,
    address: Option<Address>,
}

struct Trips<'env> {
    env: &'env Env,
    echo: Echo<'env>,
    /// The point that has the connection.
    open: Option<usize>,
    _home: Pinned,
    all: Vec<Found>,
}

impl<'env> Trips<'env> {
    fn new(env: &'env Env, patience: Duration) -> Result<Self, ProbeError> {
        Ok(Self {
            env,
            echo: Echo::new(env, &Route::loopback(), patience)?,
            open: None,
            _home: Pinned::to(env.home_cpu)?,
            all: Vec::new(),
        })
    }

    fn asked(&self, point: &Point) -> Option<Asked> {
        let placement = point.placement.as_deref()?;
        let together = placement == SAME;
        Some(Asked {
            transport: match point.transport.as_deref()? {
                TCP => Transport::Tcp,
                UDP => Transport::Udp,
                UNIX => Transport::Unix,
                _ => return None,
            },
            waiting: match placement {
                SAME | BLOCKING => Waiting::Blocking,
                POLLING => Waiting::Polling,
                _ => return None,
            },
            bytes: usize::try_from(point.message_bytes?).ok()?,
            together,
            cpu: if together { self.env.home_cpu } else { other_cpu(self.env)? },
        })
    }

    /// Ends what is open, and adds what the server counted.
    fn close(&mut self) -> Result<(), ProbeError> {
        let Some(place) = self.open.take() else {
            return Ok(());
        };
        let Some((requests, counts)) = self.echo.close()? else {
            return Ok(());
        };
        let found = &mut self.all[place];
        found.sent += requests;
        found.served.messages += counts.messages;
        found.served.bytes += counts.bytes;
        found.strayed |= !counts.kept_to_its_cpu;
        found.server_switches =
            found.server_switches.zip(counts.switches).map(|(earlier, own)| earlier + own);
        Ok(())
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
    fn idle(&mut self, place: usize) -> Result<(), ProbeError> {
        let (clock, just_after) = (&self.env.clock, &mut self.all[place].just_after_work);
        let mut first = None;
        self.echo.exchange(|begin, end| {
            let first = *first.get_or_insert(begin);
            if clock.ns(begin.saturating_sub(first)) < JUST_AFTER_NS {
                just_after.push(clock.ns(end.saturating_sub(begin)));
            }
            clock.ns(end.saturating_sub(first)) < IDLING_S * 1e9
        })
    }

    /// What tells whether one was kept from its CPU, ns, only ever rising: of two that share one, the time that both had it; of a
    /// server that polls, the time that it waited for it. (The first is brought up to date only at the kernel's ticks while a process runs.)
    fn cpu_ns(&self, asked: Asked) -> Option<u64> {
        let id = self.echo.server_id()?;
        if !asked.together {
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
fn was_disturbed(asked: Asked, before_ns: u64, after_ns: u64, took_ns: f64) -> bool {
    let between = after_ns.saturating_sub(before_ns) as f64;
    if asked.together {
        between < OWN_SHARE * took_ns
    } else {
        // Who sleeps needs no CPU.
        asked.waiting == Waiting::Polling && between > (1.0 - OWN_SHARE) * took_ns
    }
}

impl AnySession for Trips<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        // A server that failed at the end of its point has failed that point, in its proof.
        let _ = self.close();
        let asked = self
            .asked(point)
            .ok_or_else(|| ProbeError::Other(format!("no such point: {}", point.label())))?;
        let address = self.echo.connect(asked.ask())?;
        let place = if let Some(known) = self.all.iter().position(|found| found.point == *point) {
            known
        } else {
            self.all.push(Found {
                point: point.clone(),
                asked,
                right: 0,
                timed: 0,
                sent: 0,
                served: Counts::default(),
                strayed: false,
                switches: Some(0),
                server_switches: Some(0),
                just_after_work: Vec::new(),
                address: None,
            });
            self.all.len() - 1
        };
        self.all[place].address = Some(address);
        self.open = Some(place);
        self.exchange(WARM, |_, _| {})?;
        if asked.waiting == Waiting::Blocking && !asked.together {
            self.idle(place)?;
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some(place) = self.open else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        let asked = self.all[place].asked;
        if asked.waiting == Waiting::Blocking {
            block.set_waits();
        }
        block.set_tail_threshold_ns(TAIL_NS);
        let placement = self.all[place].point.placement.clone().unwrap_or_default();
        let count = trips(self.env.settings.profile, &placement, asked.bytes as u64);
        let before = (switches(), self.cpu_ns(asked), self.env.clock.now_ns());
        let mut right = 0;
        let outcome = self.exchange(count, |begin, end| {
            right += 1;
            block.span(begin, end);
        });
        let after = (switches(), self.cpu_ns(asked), self.env.clock.now_ns());
        let found = &mut self.all[place];
        found.timed += count;
        found.right += right;
        let switched = before.0.zip(after.0).map(|(before, after)| {
            // One that polls is pushed off a crowded CPU, and has not slept by that.
            let forced = match asked.waiting {
                Waiting::Blocking => after.1.saturating_sub(before.1),
                Waiting::Polling => 0,
            };
            after.0.saturating_sub(before.0) + forced
        });
        found.switches = found.switches.zip(switched).map(|(earlier, own)| earlier + own);
        if let (Some(before_ns), Some(after_ns)) = (before.1, after.1)
            && was_disturbed(asked, before_ns, after_ns, after.2 - before.2)
        {
            block.mark_disturbed();
        }
        outcome
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let closed = self.close();
        let Some(found) = self.all.iter().find(|found| found.point == *point) else {
            return Proof::default();
        };
        let (own, theirs) = (found.own_switches(), found.their_switches());
        let mut checks = found.checks(self.env.home_cpu);
        if let Err(error) = closed {
            checks.push(Check {
                name: "the server ended when it was told".to_owned(),
                ok: false,
                detail: error.to_string(),
            });
        }
        let address = match &found.address {
            Some(Address::Ip(address)) => Some(address.ip().to_string()),
            _ => None,
        };
        Proof {
            checks,
            work: Work { bytes: found.timed * 2 * found.asked.bytes as u64, ..Work::default() },
            engine: Some("socket".to_owned()),
            findings: Some(json!({
                "address": address,
                "from_cpu": self.env.home_cpu,
                "to_cpu": found.asked.cpu,
                "switches_per_round_trip": own,
                "server_switches_per_round_trip": theirs,
                "just_after_work_ns": median(&found.just_after_work),
            })),
            ..Proof::default()
        }
    }
}

impl Found {
    /// Of this thread; emulated systems return zeros, which are none.
    fn own_switches(&self) -> Option<f64> {
        let per = self.switches? as f64 / self.timed.max(1) as f64;
        Some(per)
    }

    fn their_switches(&self) -> Option<f64> {
        let per = self.server_switches? as f64 / self.served.messages.max(1) as f64;
        Some(per)
    }

    fn checks(&self, home_cpu: u32) -> Vec<Check> {
        let bytes = self.sent * self.asked.bytes as u64;
        vec![
            Check {
                name: "every answer was that of its request".to_owned(),
                ok: self.timed > 0 && self.right == self.timed,
                detail: format!("{} of {} answers, every byte compared", self.right, self.timed),
            },
            Check {
                name: "counted on both sides".to_owned(),
                ok: self.sent > 0 && self.served.messages == self.sent && self.served.bytes == bytes,
                detail: format!(
                    "{} messages of {bytes} bytes sent, {} of {} answered",
                    self.sent, self.served.messages, self.served.bytes
                ),
            },
            Check {
                name: "both sides kept to their CPUs".to_owned(),
                ok: !self.strayed && runs_only_on(thread_id(), home_cpu),
                detail: format!("CPU {home_cpu} and CPU {}", self.asked.cpu),
            },
            self.waited(),
        ]
    }

    /// Whether both slept, or neither did.
    fn waited(&self) -> Check {
        let counted = self
            .own_switches()
            .zip(self.their_switches())
            // Emulated systems return zeros for those who sleep.
            .filter(|(own, theirs)| self.asked.waiting == Waiting::Polling || *own + *theirs > 0.0);
        let blocks = self.asked.waiting == Waiting::Blocking;
        Check {
            name: if blocks {
                "both sides slept while they waited"
            } else {
                "neither side slept while it waited"
            }
            .to_owned(),
            ok: counted.is_none_or(
                |(own, theirs)| {
                    if blocks { own.min(theirs) >= SLEEPS } else { own.max(theirs) <= POLLS }
                },
            ),
            detail: counted.map_or_else(
                || "switches are not counted here".to_owned(),
                |(own, theirs)| {
                    format!("{own:.2} switches of the client and {theirs:.2} of the server in a round trip")
                },
            ),
        }
    }
}

#[cfg(test)]
mod faults;
