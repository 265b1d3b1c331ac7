//! The side that answers: one thread, one connection, one message size.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::wire::{Fruitless, Waiting, Wire};
use crate::NetError;
use crate::cpu::{is_kept_to, keep_to, switches};
use crate::listen::{Clock, Listening};
use crate::serving::{Serving, Stop};
use crate::sockets::Transport;

/// A server to which nobody comes, one whose first message is not whole so long after it was connected to,
/// and one that polls and is asked nothing, ends after so long. One that blocks has no timer in its calls: it
/// ends with its owner.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Service {
    /// What carries the messages.
    pub transport: Transport,
    /// Size of every message, 16 bytes at least.
    pub bytes: usize,
    /// How it waits.
    pub waiting: Waiting,
    /// The CPU that its thread is kept on.
    pub cpu: Option<u32>,
}

/// What is sent for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The message as it is now.
    Whole,
    /// The same twice.
    Twice,
    /// So many bytes of it.
    Part(usize),
    /// Nothing.
    Nothing,
    /// The connection is ended.
    Close,
    /// The connection is reset.
    Reset,
}

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages that came whole.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Switches away from its thread meanwhile, of one that polls only those that it asked for; `None` where
    /// they are not counted.
    pub switches: Option<u64>,
    /// Whether its thread could run on its own CPU only, to the end.
    pub kept_to_its_cpu: bool,
}

impl Service {
    /// Starts a server at any free port of this address; a Unix socket has none. `reply` turns a message into
    /// its answer: the number of the message from 1, and its bytes. Fails when the system refuses a socket or
    /// a thread, or there is no such address.
    pub fn start(
        self,
        ip: IpAddr,
        reply: impl FnMut(u64, &mut [u8]) -> Reply + Send + 'static,
    ) -> Result<Serving<Counts>, NetError> {
        Serving::start(self.transport, ip, "echo", move |listening, stop| {
            run(self, listening, stop, reply, &Instant::now)
        })
    }
}

fn run(
    service: Service,
    listening: Listening,
    stop: &Stop,
    reply: impl FnMut(u64, &mut [u8]) -> Reply,
    clock: &Clock,
) -> Result<Counts, NetError> {
    let counts = serve(service, listening, stop, reply, clock);
    // The last descriptor: the other side is not left waiting.
    stop.forget_sockets();
    counts
}

fn serve(
    service: Service,
    listening: Listening,
    stop: &Stop,
    mut reply: impl FnMut(u64, &mut [u8]) -> Reply,
    clock: &Clock,
) -> Result<Counts, NetError> {
    if let Some(cpu) = service.cpu {
        keep_to(&[cpu])?;
    }
    let mut message = vec![0xA5; service.bytes];
    let mut counts = Counts::default();
    let stopped = || stop.is_set();
    let begun = clock();
    let is_late = |since: Instant| stopped() || clock().saturating_duration_since(since) > PATIENCE;
    let Some(socket) = listening.somebody(&|| is_late(begun), service.bytes)? else { return Ok(counts) };
    let connected = clock();
    drop(listening);
    stop.shuts(&socket)?;
    let wire = Wire { socket, transport: service.transport, waiting: service.waiting, patience: PATIENCE };
    let mut got = 0;
    let mut received = wire.receive_or_give_up(&mut message, &mut got, &|| is_late(connected));
    // One that polls is pushed off a crowded CPU, and has not slept by that.
    let polls = service.waiting == Waiting::Polling;
    let before = switches(polls);
    while !stopped() {
        match received {
            Ok(()) => {}
            // Nobody asks any more: an idle server that polls must not take a CPU from others for ever.
            Err(Fruitless::Gone | Fruitless::Late | Fruitless::Failed(NetError::Reset)) => break,
            Err(Fruitless::Failed(error)) => return Err(error),
        }
        counts.messages += 1;
        counts.bytes += got as u64;
        let answer = match reply(counts.messages, &mut message) {
            Reply::Whole => wire.send(&message, &stopped),
            Reply::Twice => wire.send(&message, &stopped).and_then(|()| wire.send(&message, &stopped)),
            Reply::Part(bytes) => wire.send(&message[..bytes.min(message.len())], &stopped),
            Reply::Nothing => Ok(()),
            Reply::Close => break,
            Reply::Reset => {
                // Closing it now sends a reset instead of the rest.
                let _ = rustix::net::sockopt::set_socket_linger(&wire.socket, Some(Duration::ZERO));
                break;
            }
        };
        if answer.is_err() {
            break;
        }
        received = wire.receive(&mut message, &mut got, &stopped);
    }
    counts.switches = before.zip(switches(polls)).map(|(before, after)| after.saturating_sub(before));
    counts.kept_to_its_cpu = service.cpu.is_none_or(|cpu| is_kept_to(&[cpu]));
    Ok(counts)
}

#[cfg(test)]
mod tests;
