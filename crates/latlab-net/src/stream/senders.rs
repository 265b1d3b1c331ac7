//! The ends that give: a thread a stream.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use serde::{Deserialize, Serialize};

use super::contents::{Amount, Contents, Digest};
use super::facts::TcpFacts;
use crate::NetError;
use crate::cpu::{is_kept_to, seat, time_ns};
use crate::joined::Joined;

/// Longest message, bytes.
pub const LONGEST_MESSAGE: usize = 1 << 20;
/// A ring that is shorter than this would be in the first-level cache, as no program's data are.
const LEAST_RING: usize = 128 << 10;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Bytes of one call: a power of two, 8 at least.
    pub message: usize,
    /// Of the contents; another one each time.
    pub seed: u64,
    /// The CPUs among which each stream's thread may move, streams in turn; when there are none, those of the
    /// thread that starts them.
    pub cpus: Vec<Vec<u32>>,
}

/// What one stream's sender did from its start to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What it gave.
    pub amount: Amount,
    /// Time on a CPU, ns.
    pub cpu_ns: u64,
    /// Whether its thread could run on its own CPUs only, where it was to.
    pub kept_to_its_cpus: bool,
    /// What TCP says while it is sent; none of other transports.
    pub tcp: Option<TcpFacts>,
}

/// Streams, at rest until they are told to go.
#[derive(Debug)]
pub struct Senders {
    hands: Vec<Hand>,
    going: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Hand {
    /// A second descriptor: what a thread asleep in a call is woken by.
    socket: OwnedFd,
    orders: Sender<()>,
    reports: Receiver<Result<Sent, NetError>>,
    /// Ends without orders.
    _thread: Joined,
    /// What its last rest said.
    last: Sent,
}

impl Senders {
    /// A thread for each of these connected sockets.
    /// Fails when the system refuses a thread, a message is no power of two, or a CPU may not be used.
    pub fn start(sockets: Vec<OwnedFd>, source: &Source) -> Result<Self, NetError> {
        if !source.message.is_power_of_two() || !(8..=LONGEST_MESSAGE).contains(&source.message) {
            return Err(NetError::system(format!("messages of {} bytes", source.message))(Errno::INVAL));
        }
        let going = Arc::new(AtomicBool::new(false));
        let mut all = Self { hands: Vec::new(), going: Arc::clone(&going) };
        for (number, socket) in sockets.into_iter().enumerate() {
            let own = socket.try_clone().map_err(NetError::system("a second descriptor of a socket"))?;
            let (orders, inbox) = channel();
            let (report, reports) = channel();
            let going = Arc::clone(&going);
            let message = source.message;
            let seed = source.seed ^ ((number as u64 + 1) << 48);
            let cpus = (!source.cpus.is_empty()).then(|| source.cpus[number % source.cpus.len()].clone());
            let thread = Joined::start(&format!("sender-{number}"), move || {
                let own_seat = cpus.as_deref().map(|cpus| (cpus, number));
                work_off(&socket, message, seed, own_seat, &going, &inbox, &report);
            });
            let thread = thread.map_err(NetError::system("starting a thread that sends"))?;
            all.hands.push(Hand { socket: own, orders, reports, _thread: thread, last: Sent::default() });
        }
        Ok(all)
    }

    /// All send from now on. Fails when one has ended.
    pub fn go(&self) -> Result<(), NetError> {
        self.going.store(true, Ordering::Release);
        for hand in &self.hands {
            if hand.orders.send(()).is_err() {
                self.going.store(false, Ordering::Release);
                return Err(NetError::Died);
            }
        }
        Ok(())
    }

    /// Of each stream, now.
    pub fn tcp(&self) -> Vec<Option<TcpFacts>> {
        self.hands.iter().map(|hand| TcpFacts::of(&hand.socket)).collect()
    }

    /// Whether all streams stand: one that has handed all that it sends to the system hears of nothing else.
    /// Errors: the first that the other side has reset, or that failed otherwise.
    pub fn check(&self) -> Result<(), NetError> {
        self.hands.iter().try_for_each(|hand| standing(&hand.socket))
    }

    /// All end the message that they are sending. Who cannot within this time is broken off.
    pub fn rest(&mut self, patience: Duration) -> Result<Vec<Sent>, NetError> {
        self.going.store(false, Ordering::Release);
        let until = Instant::now() + patience;
        let mut failed = None;
        for hand in &mut self.hands {
            let left = until.saturating_duration_since(Instant::now());
            let reported = hand.reports.recv_timeout(left).or_else(|error| match error {
                RecvTimeoutError::Disconnected => Ok(Err(NetError::Died)),
                RecvTimeoutError::Timeout => {
                    let _ = shutdown(&hand.socket, Shutdown::Both);
                    // Its call has ended by that.
                    let _ = hand.reports.recv_timeout(Duration::from_secs(1));
                    Err(NetError::Silent { seconds: patience.as_secs_f64() })
                }
            });
            match reported.and_then(|reported| reported) {
                Ok(sent) => hand.last = sent,
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(self.hands.iter().map(|hand| hand.last).collect()),
        }
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        self.going.store(false, Ordering::Release);
        for hand in &self.hands {
            let _ = shutdown(&hand.socket, Shutdown::Both);
        }
    }
}

fn work_off(
    socket: &OwnedFd,
    message: usize,
    seed: u64,
    own_seat: Option<(&[u32], usize)>,
    going: &AtomicBool,
    inbox: &Receiver<()>,
    report: &Sender<Result<Sent, NetError>>,
) {
    let mut contents = Contents::new(seed, LEAST_RING.max(message));
    let mut digest = Digest::default();
    let mut place = 0;
    while let Ok(()) = inbox.recv() {
        // Each time: who woke this thread has drawn it to its own CPU.
        let mut outcome = own_seat.map_or(Ok(()), |(cpus, number)| seat(cpus, number));
        while outcome.is_ok() && going.load(Ordering::Relaxed) {
            let own = contents.message(place, message);
            digest.take(place, own);
            outcome = whole(socket, own);
            place += message as u64;
        }
        let sent = outcome.map(|()| Sent {
            amount: Amount { bytes: place, digest: digest.value() },
            cpu_ns: time_ns(),
            kept_to_its_cpus: own_seat.is_none_or(|(cpus, _)| is_kept_to(cpus)),
            tcp: TcpFacts::of(&socket),
        });
        let failed = sent.is_err();
        if report.send(sent).is_err() || failed {
            return;
        }
    }
}

fn whole(socket: &impl AsFd, message: &[u8]) -> Result<(), NetError> {
    let mut sent = 0;
    while sent < message.len() {
        match send(socket, &message[sent..], SendFlags::NOSIGNAL) {
            Ok(more) => sent += more,
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET | Errno::PIPE) => return Err(NetError::Reset),
            Err(error) => return Err(NetError::system("sending a stream")(error)),
        }
    }
    Ok(())
}

fn standing(socket: impl AsFd) -> Result<(), NetError> {
    match sockopt::socket_error(socket).and_then(|error| error) {
        Ok(()) => Ok(()),
        Err(Errno::CONNRESET | Errno::PIPE) => Err(NetError::Reset),
        Err(error) => Err(NetError::system("a stream")(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_stream_that_was_reset_after_all_was_sent_does_not_stand() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        sender.write_all(&[1; 100]).unwrap();
        assert!(standing(&sender).is_ok());
        // Closed with bytes that nobody has read.
        drop(receiver);
        let begun = Instant::now();
        let mut reported = standing(&sender);
        while reported.is_ok() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
            reported = standing(&sender);
        }
        assert!(matches!(reported, Err(NetError::Reset)), "{reported:?}");
    }
}
