//! The six requests to the kernel that a path takes, written out: libraries for netlink bring an asynchronous
//! runtime of their own or dozens of generated types, for messages of a few dozen bytes that have not changed
//! in twenty years (rtnetlink(7), `linux/rtnetlink.h`).

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket, socket_with,
};

use crate::NetError;

/// `NLM_F_REQUEST` with `NLM_F_ACK`; `NLM_F_CREATE` with `NLM_F_EXCL`, or with `NLM_F_REPLACE`.
const REQUEST: u16 = 0x1 | 0x4;
const NEW: u16 = 0x400 | 0x200;
const REPLACE: u16 = 0x400 | 0x100;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const NUD_PERMANENT: u16 = 0x80;
/// Frames that netem may hold: it drops the rest silently, and its own 1,000 are fewer than a long fast path
/// has under way.
const NETEM_FRAMES: u32 = 200_000;
const FRAME_BYTES: u64 = 1514;
const IPV4: u8 = 2;

/// A request as it grows.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        // Number and sender: one request at a time on a socket of its own.
        bytes.extend_from_slice(&[0; 8]);
        Self(bytes)
    }

    /// A plain part of the message.
    fn plain(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// `struct ifinfomsg`.
    fn link(self, index: u32, flags: u32) -> Self {
        self.plain(&[0; 4])
            .plain(&index.to_ne_bytes())
            .plain(&flags.to_ne_bytes())
            .plain(&flags.to_ne_bytes())
    }

    fn attribute(self, kind: u16, bytes: &[u8]) -> Self {
        self.nested(kind, |message| message.plain(bytes))
    }

    fn text(self, kind: u16, text: &str) -> Self {
        self.nested(kind, |message| message.plain(text.as_bytes()).plain(&[0]))
    }

    /// An attribute whose length is known when what is in it is written; the next begins at a multiple of
    /// four.
    fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 2]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        let mut filled = fill(self);
        let length = u16::try_from(filled.0.len() - at).unwrap_or(u16::MAX);
        filled.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        filled.0.resize(filled.0.len().next_multiple_of(4), 0);
        filled
    }

    fn finished(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }

    /// Sends it in the namespace in which this is called and waits for what the kernel says.
    fn ask(self, what: &'static str) -> Result<(), NetError> {
        let bytes = self.finished();
        answer_to(&bytes).map_err(NetError::system(what))
    }
}

fn answer_to(request: &[u8]) -> rustix::io::Result<()> {
    /// `struct nlmsghdr`, and the number in `struct nlmsgerr` behind it.
    const ERROR: std::ops::Range<usize> = 16..20;
    let flags = SocketFlags::CLOEXEC;
    // `NETLINK_ROUTE` is protocol 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    send(&socket, request, SendFlags::empty())?;
    // The kernel always answers a request that wants an acknowledgement.
    let mut answer = [0_u8; 4096];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let code = answer[..length].get(ERROR).and_then(|code| code.try_into().ok()).ok_or(Errno::BADMSG)?;
    match i32::from_ne_bytes(code) {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(-error)),
    }
}

/// The number of an interface in the namespace in which this is called.
pub(super) fn index(name: &str) -> Result<u32, NetError> {
    // Any socket will do to ask about an interface.
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None);
    socket.and_then(|socket| name_to_index(socket, name)).map_err(NetError::system("finding an interface"))
}

/// A pair of interfaces: one here, the other in another namespace.
pub(super) fn add_pair(
    name: &str,
    other: &str,
    there: &File,
    mac: [u8; 6],
    other_mac: [u8; 6],
) -> Result<(), NetError> {
    Message::new(libc::RTM_NEWLINK, NEW)
        .link(0, 0)
        .text(IFLA_IFNAME, name)
        .attribute(IFLA_ADDRESS, &mac)
        .nested(IFLA_LINKINFO, |info| {
            info.text(IFLA_INFO_KIND, "veth").nested(IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    peer.link(0, 0)
                        .text(IFLA_IFNAME, other)
                        .attribute(IFLA_ADDRESS, &other_mac)
                        .attribute(IFLA_NET_NS_FD, &there.as_raw_fd().to_ne_bytes())
                })
            })
        })
        .ask("making a pair of interfaces")
}

/// Switches an interface on.
pub(super) fn up(name: &str) -> Result<(), NetError> {
    Message::new(libc::RTM_NEWLINK, 0)
        .link(index(name)?, libc::IFF_UP.cast_unsigned())
        .ask("switching an interface on")
}

pub(super) fn add_address(name: &str, address: Ipv4Addr, prefix: u8) -> Result<(), NetError> {
    Message::new(libc::RTM_NEWADDR, NEW)
        .plain(&[IPV4, prefix, 0, 0])
        .plain(&index(name)?.to_ne_bytes())
        .attribute(IFA_LOCAL, &address.octets())
        .attribute(IFA_ADDRESS, &address.octets())
        .ask("giving an interface its address")
}

/// Says for ever where an address is.
pub(super) fn add_neighbour(name: &str, address: Ipv4Addr, mac: [u8; 6]) -> Result<(), NetError> {
    Message::new(libc::RTM_NEWNEIGH, REPLACE)
        .plain(&[IPV4, 0, 0, 0])
        .plain(&index(name)?.to_ne_bytes())
        .plain(&NUD_PERMANENT.to_ne_bytes())
        .plain(&[0, 0])
        .attribute(NDA_DST, &address.octets())
        .attribute(NDA_LLADDR, &mac)
        .ask("naming the neighbour")
}

/// Delays, and where there is a rate slows, what leaves through an interface.
pub(super) fn add_netem(
    name: &str,
    delay_ns: u64,
    rate_bit_per_s: Option<u64>,
    queue_bytes: Option<u64>,
) -> Result<(), NetError> {
    netem(index(name)?, delay_ns, rate_bit_per_s, queue_bytes).ask("the kernel's emulator (netem)")
}

fn netem(index: u32, delay_ns: u64, rate_bit_per_s: Option<u64>, queue_bytes: Option<u64>) -> Message {
    /// `TC_H_ROOT`.
    const ROOT: u32 = u32::MAX;
    let rate = rate_bit_per_s.map_or(0, |rate| rate / 8);
    // What waits for the link and what is on its way are one queue to netem.
    let under_way = rate.saturating_mul(delay_ns) / 1_000_000_000;
    let frames = queue_bytes.map_or(NETEM_FRAMES, |bytes| {
        u32::try_from((bytes + under_way) / FRAME_BYTES + 1).unwrap_or(NETEM_FRAMES)
    });
    Message::new(libc::RTM_NEWQDISC, REPLACE)
        .plain(&[0; 4])
        .plain(&index.to_ne_bytes())
        .plain(&0_u32.to_ne_bytes())
        .plain(&ROOT.to_ne_bytes())
        .plain(&0_u32.to_ne_bytes())
        .text(TCA_KIND, "netem")
        .nested(TCA_OPTIONS, |options| {
            // struct tc_netem_qopt: latency (given in nanoseconds below), limit, loss, gap, duplicate,
            // jitter.
            let mut options = options
                .plain(&0_u32.to_ne_bytes())
                .plain(&frames.to_ne_bytes())
                .plain(&[0; 16])
                .attribute(TCA_NETEM_LATENCY64, &delay_ns.to_ne_bytes());
            if rate > 0 {
                // struct tc_netem_rate: the rate in 32 bits, overheads and cells; all ones say that 64 bits
                // follow.
                let short = u32::try_from(rate).unwrap_or(u32::MAX);
                let mut plain = [0; 16];
                plain[..4].copy_from_slice(&short.to_ne_bytes());
                if short == u32::MAX {
                    options = options.attribute(TCA_NETEM_RATE64, &rate.to_ne_bytes());
                }
                options = options.attribute(TCA_NETEM_RATE, &plain);
            }
            options
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_know_their_length_and_begin_at_multiples_of_four() {
        let bytes =
            Message::new(7, 0).nested(1, |message| message.text(2, "abc").attribute(3, &[9; 6])).finished();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize, bytes.len());
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        // The outer one: itself, the text with its end, six bytes filled up.
        assert_eq!((number(16), number(18)), (4 + 8 + 12, 1));
        assert_eq!((number(20), number(22)), (8, 2));
        assert_eq!(&bytes[24..28], b"abc\0");
        assert_eq!((number(28), number(30)), (10, 3));
    }

    #[test]
    fn netem_gets_its_delay_in_nanoseconds_and_its_rate_in_bytes() {
        let has = |message: &[u8], part: &[u8]| message.windows(part.len()).any(|window| window == part);
        let slow = netem(1, 10_000_000, Some(200_000_000), None).finished();
        assert!(has(&slow, b"netem\0"));
        assert!(has(&slow, &10_000_000_u64.to_ne_bytes()));
        assert!(has(&slow, &25_000_000_u32.to_ne_bytes()));
        let fast = netem(1, 10_000_000, Some(100_000_000_000), Some(1 << 20)).finished();
        assert!(has(&fast, &12_500_000_000_u64.to_ne_bytes()));
    }
}
