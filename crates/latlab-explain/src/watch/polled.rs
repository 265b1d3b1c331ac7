//! For what kind of descriptors a thread waits in `poll`, `select` or `epoll_wait`: the call says nothing of
//! that, its arguments do.

use std::collections::HashMap;

use super::memory::gather;
use super::proc_file::text;
use crate::rules::Kind;

/// Descriptors that are looked at, of a call; a server may have tens of thousands.
const MOST_DESCRIPTORS: usize = 64;
/// Calls kept.
const MOST_KEPT: usize = 4096;
/// What a call waits for is read again after it was asked for so often: what is in an epoll changes.
const ASKED_AGAIN: u32 = 64;

/// A call: process, number of the call, and its first three arguments.
type Call = (u32, &'static str, [u64; 3]);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Polled {
    known: HashMap<Call, (Kind, u32)>,
}

impl Polled {
    /// Whether a call is one of these.
    pub(crate) fn is(name: &str) -> bool {
        matches!(
            name,
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2"
        )
    }

    /// What such a call of a process waits for. Where it cannot be read: [`Kind::Other`].
    pub(crate) fn kind(&mut self, pid: u32, name: &'static str, arguments: [u64; 3]) -> Kind {
        let call = (pid, name, arguments);
        if let Some((kind, asked)) = self.known.get_mut(&call).filter(|known| known.1 < ASKED_AGAIN) {
            *asked += 1;
            return *kind;
        }
        let descriptors = match name {
            "poll" | "ppoll" => of_poll(pid, arguments[0], arguments[1]),
            "select" | "pselect6" => of_select(pid, arguments[0], [arguments[1], arguments[2]]),
            _ => of_epoll(pid, arguments[0]),
        };
        let kind = descriptors.map_or(Kind::Other, |of| first(of.into_iter().map(|fd| kind(pid, fd))));
        if self.known.len() >= MOST_KEPT {
            self.known.clear();
        }
        self.known.insert(call, (kind, 0));
        kind
    }
}

/// What a descriptor of a process is.
pub(crate) fn kind(pid: u32, fd: u64) -> Kind {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    link.map_or(Kind::Other, |link| Kind::of_link(&link.to_string_lossy()))
}

/// Of several kinds the one that is said: what comes from elsewhere before what the program's own threads do.
/// Nothing is nothing but a time.
fn first(kinds: impl Iterator<Item = Kind>) -> Kind {
    const ORDER: [Kind; 7] =
        [Kind::Socket, Kind::Pipe, Kind::Process, Kind::Terminal, Kind::Event, Kind::Other, Kind::File];
    let place = |kind: Kind| ORDER.iter().position(|known| *known == kind);
    let mut found = None;
    for kind in kinds {
        found = found.into_iter().chain(place(kind)).min();
        if found == Some(0) {
            break;
        }
    }
    found.map_or(Kind::Timer, |at| ORDER[at])
}

/// The descriptors of an array of `struct pollfd`; those below zero are passed over.
fn of_poll(pid: u32, address: u64, count: u64) -> Option<Vec<u64>> {
    const BYTES: usize = 8;
    let count = usize::try_from(count).ok()?.min(MOST_DESCRIPTORS);
    let mut bytes = vec![0_u8; count * BYTES];
    let got = gather(pid, &[(address, bytes.len())], &mut bytes).ok()?;
    let descriptors = bytes.get(..got)?.chunks_exact(BYTES);
    let number = |entry: &[u8]| i32::from_ne_bytes(entry[..4].try_into().unwrap_or_default());
    Some(descriptors.filter_map(|entry| u64::try_from(number(entry)).ok()).collect())
}

/// The descriptors in two sets of bits.
fn of_select(pid: u32, count: u64, sets: [u64; 2]) -> Option<Vec<u64>> {
    let bits = usize::try_from(count).ok()?.min(1024);
    let mut found = Vec::new();
    for address in sets.into_iter().filter(|address| *address != 0) {
        let mut bytes = vec![0_u8; bits.div_ceil(64) * 8];
        let got = gather(pid, &[(address, bytes.len())], &mut bytes).ok()?;
        let is_set = |bit: &usize| bytes[..got].get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
        found.extend((0..bits).filter(is_set).filter_map(|bit| u64::try_from(bit).ok()));
    }
    found.truncate(MOST_DESCRIPTORS);
    Some(found)
}

/// The descriptors in an epoll, by what the kernel says of it.
fn of_epoll(pid: u32, descriptor: u64) -> Option<Vec<u64>> {
    let about = text(&format!("/proc/{pid}/fdinfo/{descriptor}"));
    (!about.is_empty()).then(|| targets(&about).take(MOST_DESCRIPTORS).collect())
}

fn targets(about: &str) -> impl Iterator<Item = u64> {
    let lines = about.lines().filter_map(|line| line.strip_prefix("tfd:"));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn what_comes_from_elsewhere_is_said_first() {
        let of = |kinds: &[Kind]| first(kinds.iter().copied());
        assert_eq!(of(&[Kind::Event, Kind::Pipe, Kind::Timer]), Kind::Pipe);
        assert_eq!(of(&[Kind::Pipe, Kind::Socket]), Kind::Socket);
        assert_eq!(of(&[Kind::Timer, Kind::Event]), Kind::Event);
        assert_eq!(of(&[]), Kind::Timer);
    }

    #[test]
    fn an_epoll_is_what_is_in_it() {
        let about = "pos:\t0\nflags:\t02\nmnt_id:\t15\ntfd:       13 events:  2000001b data: 6c07 pos:0\ntfd:        9 events: 19\n";
        assert_eq!(targets(about).collect::<Vec<_>>(), [13, 9]);
    }

    #[test]
    fn the_descriptors_of_a_call_are_read_where_they_may_be() {
        let (pipe, _write) = std::io::pipe().unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let of = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let kind = |fds: &[i32]| {
            let entries: Vec<_> = fds.iter().map(|fd| of(*fd)).collect();
            let arguments = [entries.as_ptr().expose_provenance() as u64, entries.len() as u64, 0];
            Polled::default().kind(std::process::id(), "poll", arguments)
        };
        let (pipe, socket) = (pipe.as_raw_fd(), socket.as_raw_fd());
        let found = kind(&[-1, pipe]);
        if found == Kind::Other {
            // Emulators do not read the memory of others.
            return;
        }
        assert_eq!(found, Kind::Pipe);
        assert_eq!(kind(&[pipe, socket]), Kind::Socket);
        assert_eq!(kind(&[-1]), Kind::Timer);
        let bit = 1_u64 << (pipe % 64);
        let mut set = [0_u64; 16];
        set[usize::try_from(pipe).unwrap() / 64] = bit;
        let arguments = [1024, set.as_ptr().expose_provenance() as u64, 0];
        let mut polled = Polled::default();
        assert_eq!(polled.kind(std::process::id(), "pselect6", arguments), Kind::Pipe);
    }

    #[test]
    fn what_cannot_be_read_is_something_else() {
        let mut polled = Polled::default();
        assert_eq!(polled.kind(std::process::id(), "poll", [8, 1, 0]), Kind::Other);
        assert_eq!(polled.kind(u32::MAX, "epoll_wait", [3, 0, 0]), Kind::Other);
    }
}
