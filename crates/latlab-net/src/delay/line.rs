//! The delay line: frames come in at one end, wait as long as the path is, and leave at the other.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, eth, recv, send, socket_with,
};

use super::netlink;
use crate::NetError;
use crate::PathSpec;
use crate::joined::Joined;

/// The longest frame that comes when offloads are off, with room for tags.
const LONGEST_FRAME: usize = 2048;
/// So long before a frame is due the line stays awake: waking up takes about as long.
const AWAKE_NS: u64 = 60_000;
/// Frames taken from one side before the other has its turn.
const TURN: usize = 64;
/// Buffers of the sockets, bytes: 50 ms at 10 Gbit/s.
const SOCKET_BYTES: libc::c_int = 64 << 20;
/// What may be under way in one direction, bytes; beyond it frames are dropped, as if the path were that
/// short of buffers.
const MOST_UNDER_WAY: u64 = 256 << 20;

/// What the kernel's interface holds in 16 bits and the C library declares as an `int`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "constants of packet(7), all small"
)]
const fn short(constant: libc::c_int) -> u16 {
    constant as u16
}

/// The size of what a call is handed.
#[expect(clippy::cast_possible_truncation, reason = "structures of some bytes")]
const fn size<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

/// Frames on their way in one direction. Pure: the time is given.
#[derive(Debug)]
pub(super) struct Direction {
    delay_ns: u64,
    /// Nanoseconds that a byte takes on the link; 0 for no rate.
    byte_ns: f64,
    queue_bytes: u64,
    under_way: VecDeque<(u64, Vec<u8>)>,
    under_way_bytes: u64,
    /// When the link will have sent what waits for it.
    link_free_ns: u64,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
}

impl Direction {
    pub(super) fn new(spec: &PathSpec) -> Self {
        Self {
            delay_ns: spec.one_way_ns(),
            byte_ns: spec.rate_bit_per_s.map_or(0.0, |rate| 8e9 / rate.max(1) as f64),
            queue_bytes: spec.queue(),
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            link_free_ns: 0,
            spare: Vec::new(),
        }
    }

    /// Takes a frame in; false when there is no room and it is dropped.
    pub(super) fn take(&mut self, now_ns: u64, frame: &[u8]) -> bool {
        let bytes = frame.len() as u64;
        let waits_ns = self.link_free_ns.saturating_sub(now_ns);
        let full =
            self.byte_ns > 0.0 && waits_ns as f64 / self.byte_ns + bytes as f64 > self.queue_bytes as f64;
        if full || self.under_way_bytes + bytes > MOST_UNDER_WAY {
            return false;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a frame takes less than 2^64 ns on any link, and more than none"
        )]
        let sends_ns = (bytes as f64 * self.byte_ns) as u64;
        self.link_free_ns = now_ns + waits_ns + sends_ns;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.under_way_bytes += bytes;
        self.under_way.push_back((self.link_free_ns + self.delay_ns, buffer));
        true
    }

    /// Hands out the next frame that has arrived.
    pub(super) fn arrived(&mut self, now_ns: u64, out: &mut dyn FnMut(&[u8])) -> bool {
        if self.next_ns().is_none_or(|due| due > now_ns) {
            return false;
        }
        let Some((_, frame)) = self.under_way.pop_front() else { return false };
        out(&frame);
        self.under_way_bytes -= frame.len() as u64;
        self.spare.push(frame);
        true
    }

    /// When the next one arrives.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.under_way.front().map(|(due, _)| *due)
    }
}

/// A socket that receives and sends whole frames at one interface.
#[derive(Debug)]
pub(super) struct Wire(OwnedFd);

impl Wire {
    /// At an interface of the namespace in which this is called.
    pub(super) fn open(interface: &str) -> Result<Self, NetError> {
        let index = netlink::index(interface)?;
        Self::at(index).map_err(NetError::system("a socket for whole frames"))
    }

    fn at(index: u32) -> io::Result<Self> {
        /// `PACKET_IGNORE_OUTGOING` (Linux 4.20): what we send ourselves does not come back.
        const IGNORE_OUTGOING: libc::c_int = 23;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = Self(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(eth::ALL))?);
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = short(libc::AF_PACKET);
        address.sll_protocol = short(libc::ETH_P_ALL).to_be();
        address.sll_ifindex = index.cast_signed();
        // SAFETY: the address is of the size that is said and lives through the call.
        let bound = unsafe {
            libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), size::<libc::sockaddr_ll>())
        };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all-zero is a valid packet_mreq.
        let mut all: libc::packet_mreq = unsafe { std::mem::zeroed() };
        all.mr_ifindex = index.cast_signed();
        all.mr_type = short(libc::PACKET_MR_PROMISC);
        socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)?;
        socket.set(libc::SOL_PACKET, IGNORE_OUTGOING, &1_i32)?;
        for (force, plain) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            socket
                .set(libc::SOL_SOCKET, force, &SOCKET_BYTES)
                .or_else(|_| socket.set(libc::SOL_SOCKET, plain, &SOCKET_BYTES))?;
        }
        Ok(socket)
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the value is of the size that is said; the callers pair each option with its type.
        let set = unsafe {
            libc::setsockopt(self.0.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), size::<T>())
        };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The next frame, if there is one.
    fn receive<'a>(&self, buffer: &'a mut [u8; LONGEST_FRAME]) -> Option<&'a [u8]> {
        let (length, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty()).ok()?;
        Some(&buffer[..length])
    }

    /// A frame that the kernel has no room for is lost, as on any network.
    fn send(&self, frame: &[u8]) {
        let _ = send(&self.0, frame, SendFlags::empty());
    }
}

/// A running line; ended when this is dropped.
#[derive(Debug)]
pub(super) struct Line {
    /// Closing it ends the thread.
    _stop: OwnedFd,
    _thread: Joined,
}

impl Line {
    pub(super) fn start(spec: &PathSpec, wires: [Wire; 2]) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let directions = [Direction::new(spec), Direction::new(spec)];
        let thread = Joined::start("latlab-path", move || {
            sleep_exactly();
            // Without its sockets there is no path, which its users notice at once.
            let _ = forward(&wires, directions, stopped.as_fd());
        })?;
        Ok(Self { _stop: stop.into(), _thread: thread })
    }
}

/// The kernel may let a thread sleep 50 us longer than it asked (timer slack); not this one.
fn sleep_exactly() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn forward(wires: &[Wire; 2], mut directions: [Direction; 2], stop: BorrowedFd<'_>) -> io::Result<()> {
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut buffer = [0; LONGEST_FRAME];
    loop {
        let mut came = 0;
        for (wire, direction) in wires.iter().zip(&mut directions) {
            for _ in 0..TURN {
                let Some(frame) = wire.receive(&mut buffer) else { break };
                direction.take(now(), frame);
                came += 1;
            }
        }
        for (wire, direction) in wires.iter().rev().zip(&mut directions) {
            while direction.arrived(now(), &mut |frame| wire.send(frame)) {}
        }
        let next = directions.iter().filter_map(Direction::next_ns).min();
        let pause = next.map(|next| next.saturating_sub(now() + AWAKE_NS));
        if came > 0 || pause == Some(0) {
            continue;
        }
        let descriptors = [stop, wires[0].0.as_fd(), wires[1].0.as_fd()];
        if wait_for(&descriptors, pause.map(Duration::from_nanos))? {
            return Ok(());
        }
    }
}

/// Waits until one of them can be read or was closed at its other end. Returns whether the first one is.
pub(super) fn wait_for(descriptors: &[BorrowedFd<'_>], most: Option<Duration>) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> =
        descriptors.iter().map(|own| PollFd::from_borrowed_fd(*own, PollFlags::IN)).collect();
    let most = most.and_then(|most| Timespec::try_from(most).ok());
    match poll(&mut polled, most.as_ref()) {
        Ok(_) => Ok(polled.first().is_some_and(|first| !first.revents().is_empty())),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
