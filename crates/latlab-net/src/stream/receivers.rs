//! The ends that take: a thread a stream.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use serde::{Deserialize, Serialize};

use super::arrivals::{Arrivals, MOST_STREAMS};
use super::contents::{Amount, Digest, within};
use crate::NetError;
use crate::cpu::{is_kept_to, seat, time_ns};
use crate::listen::{Clock, Listening, has_come};
use crate::serving::{Serving, Stop};
use crate::sockets::Transport;

/// A receiver to which nobody comes, or that gets nothing so long after it was connected to, gives up. What
/// comes later has no timer in its calls: it ends with its owner.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is taken at once at most: as much as iperf3 takes, and half of what a second-level cache holds.
const ROOM: usize = 128 << 10;

/// What is to be received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sink {
    /// TCP or Unix.
    pub transport: Transport,
    /// How many connections.
    pub streams: usize,
    /// The CPUs among which each stream's thread may move, streams in turn; when there are none, those of the
    /// thread that starts them.
    pub cpus: Vec<Vec<u32>>,
}

/// What one stream's receiver did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// What it took.
    pub amount: Amount,
    /// Time on a CPU, ns.
    pub cpu_ns: u64,
    /// Whether its thread could run on its own CPUs only, to the end, where it was to.
    pub kept_to_its_cpus: bool,
}

/// What a receiver does wrong, to see whether that is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Counts a byte more than came, once.
    OneMore,
    /// Changes a page on its way, every time.
    Spoils,
    /// Takes nothing any more after so many bytes.
    Stops(u64),
    /// Closes the connection after so many bytes.
    Closes(u64),
}

impl Sink {
    /// Starts receivers at any free port of this address; a Unix socket has none. They end once the senders
    /// have closed their ends; who has not is broken off. Fails when the system refuses a socket or a thread,
    /// or there is no such address.
    pub fn start(
        self,
        ip: IpAddr,
        arrivals: Arrivals,
        fault: Option<Fault>,
    ) -> Result<Serving<Vec<Received>>, NetError> {
        Serving::start(self.transport, ip, "receivers", move |listening, stop| {
            run(&self, &listening, stop, &arrivals, fault, &Instant::now)
        })
    }
}

fn run(
    sink: &Sink,
    listening: &Listening,
    stop: &Stop,
    arrivals: &Arrivals,
    fault: Option<Fault>,
    clock: &Clock,
) -> Result<Vec<Received>, NetError> {
    let is_late = |since: Instant| stop.is_set() || clock().saturating_duration_since(since) > PATIENCE;
    let is_late = &is_late;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..sink.streams.min(MOST_STREAMS) {
            let begun = clock();
            let Some(socket) = listening.somebody(&|| is_late(begun), 0)? else { break };
            let connected = clock();
            stop.shuts(&socket)?;
            let cpus = (!sink.cpus.is_empty()).then(|| &sink.cpus[number % sink.cpus.len()][..]);
            let thread = std::thread::Builder::new()
                .name(format!("receiver-{number}"))
                .spawn_scoped(scope, move || {
                    receive(&socket, (number, cpus), stop, arrivals, fault, &|| is_late(connected))
                })
                .map_err(NetError::system("starting a thread that receives"))?;
            threads.push(thread);
        }
        threads.into_iter().map(|thread| thread.join().map_err(|_| NetError::Died)?).collect()
    })
}

fn receive(
    socket: &OwnedFd,
    (number, cpus): (usize, Option<&[u32]>),
    stop: &Stop,
    arrivals: &Arrivals,
    fault: Option<Fault>,
    give_up: &dyn Fn() -> bool,
) -> Result<Received, NetError> {
    if let Some(cpus) = cpus {
        seat(cpus, number)?;
    }
    let count = arrivals.of_stream(number);
    let mut room = vec![0xA5; ROOM];
    let mut digest = Digest::default();
    let (mut bytes, mut verified) = (0_u64, 0_u64);
    if !has_come(socket, give_up).map_err(NetError::system("waiting for a stream"))? {
        // The sender hears of it, though there is a second descriptor.
        let _ = shutdown(socket, Shutdown::Both);
    }
    loop {
        // Each byte goes where its place in the stream puts it, so that no word is ever cut in two.
        let at = within(bytes, ROOM);
        match recv(socket, &mut room[at..], RecvFlags::empty()) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => break,
            Ok((_, more)) => bytes += more as u64,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(NetError::system("receiving a stream")(error)),
        }
        match fault {
            Some(Fault::Spoils) => room[at] ^= 1,
            Some(Fault::Stops(after)) if bytes > after => {
                while !stop.is_set() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                break;
            }
            Some(Fault::Closes(after)) if bytes > after => {
                // With its second descriptor: only then is it closed.
                stop.forget_sockets();
                break;
            }
            _ => {}
        }
        let whole = bytes - bytes % 8;
        let from = within(verified, ROOM);
        let length = usize::try_from(whole - verified).unwrap_or(0);
        digest.take(verified, &room[from..from + length]);
        verified = whole;
        let reported = bytes + u64::from(fault == Some(Fault::OneMore));
        count.store(reported, Ordering::Release);
    }
    Ok(Received {
        amount: Amount { bytes: bytes + u64::from(fault == Some(Fault::OneMore)), digest: digest.value() },
        cpu_ns: time_ns(),
        kept_to_its_cpus: cpus.is_none_or(is_kept_to),
    })
}

#[cfg(test)]
mod tests;
