//! Which files a program read and wrote, by where its descriptors stand when they are looked at.
//!
//! A position that has moved on since the last scan is bytes read or written, as far as the process's own
//! counters allow for them: what is more was a seek, most likely where most has moved. Bytes that moved no
//! position (`pread`, pipes, sockets) are taken for those of the one descriptor that a thread has been seen
//! waiting in, where there is only one: files may have been opened and closed between two scans, so that
//! being the only open one says nothing. Calls are known for times in which one file alone was used.
//!
//! Descriptors that were copied (`dup`, `fork`) share one position: however many of them see it move, it has
//! moved once.
//!
//! What TCP sockets carried the kernel counts itself ([`crate::account::tcp`]).

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};

use crate::account::io::Io;
use crate::account::tcp::{self, Connections, Traffic};
use crate::model;

/// Files of all processes together; more are counted.
const MOST_ROWS: usize = 2048;
/// Shown: those with the most bytes.
const MOST_SHOWN: usize = 64;
const MOST_PROCESSES: usize = 1024;
const MOST_DESCRIPTORS: usize = 8;
/// Files that are left out are counted up to this many.
const MOST_COUNTED: usize = 65_536;
/// Positions that are followed at once.
const MOST_PLACES: usize = 4096;
/// Positions and counters are not read at one moment: they agree to this.
const AGREE: f64 = 0.1;
/// Less than this between two scans says nothing of where it came from.
const LEAST: u64 = 4096;

/// What a descriptor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal.
    Terminal,
    /// Another device.
    Device,
    /// Nothing that bytes come from: epoll, timers.
    Other,
}

impl Kind {
    /// By what `/proc/PID/fd/N` points to.
    pub(crate) fn of(target: &str) -> Self {
        if target.starts_with("pipe:") {
            Self::Pipe
        } else if target.starts_with("socket:") {
            Self::Socket
        } else if target.starts_with("/dev/pts/")
            || target.starts_with("/dev/tty")
            || target == "/dev/console"
        {
            Self::Terminal
        } else if target.starts_with("/dev/") && !target.starts_with("/dev/shm/") {
            Self::Device
        } else if target.starts_with("/memfd:") || !target.starts_with('/') {
            Self::Other
        } else {
            Self::File
        }
    }
}

/// What may be done with a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Read.
    pub read: bool,
    /// Write.
    pub write: bool,
}

/// One open descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Its number.
    pub number: u32,
    /// What it is of.
    pub target: String,
    /// The same in a word.
    pub kind: Kind,
    /// Where it stands; absent where it has no position.
    pub position: Option<u64>,
    /// The number of that position; absent: it is not known whether others have it.
    pub place: Option<u64>,
    /// Other descriptors have the same.
    pub is_shared: bool,
    /// See [`Access`].
    pub access: Access,
}

/// One process, looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scan {
    /// When, nanoseconds.
    pub at: u64,
    /// Which.
    pub process: u32,
    /// Its counters before the descriptors were looked at, and after.
    pub io: Option<(Io, Io)>,
    /// Its descriptors.
    pub descriptors: Vec<Descriptor>,
    /// Descriptors in whose call a thread waits, and whether it writes.
    pub waits: Vec<(u32, bool)>,
    /// What it holds was there before it was watched: where it stands is where it begins.
    pub inherits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

impl Way {
    fn may(self, access: Access) -> bool {
        match self {
            Self::Read => access.read,
            Self::Write => access.write,
        }
    }

    /// Bytes and calls.
    fn counted(self, io: &Io) -> (u64, u64) {
        match self {
            Self::Read => (io.read_chars, io.read_calls),
            Self::Write => (io.written_chars, io.write_calls),
        }
    }
}

/// Bytes one way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moved {
    bytes: f64,
    /// Of them, inferred from what a thread has waited in.
    inferred: f64,
    /// A thread has waited in it.
    waited: bool,
    /// Bytes and calls of times in which nothing else was used.
    alone: (u64, u64),
    /// Time in which they moved.
    busy_ns: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    process: u32,
    target: String,
    kind: Kind,
    descriptors: Vec<u32>,
    opened: u64,
    seeks: u64,
    scans: u64,
    /// It was there before its process was watched.
    was_there: bool,
    seen: (u64, u64),
    /// By [`Way`].
    moved: [Moved; 2],
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Process {
    at: u64,
    /// Its counters when it began to be watched.
    began: Io,
    io: Option<(Io, Io)>,
    /// By number: which row, and where it stood.
    open: HashMap<u32, (usize, Option<u64>)>,
    known: bool,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Files {
    rows: Vec<Row>,
    by_key: HashMap<(u32, String), usize>,
    processes: HashMap<u32, Process>,
    places: HashMap<u64, Place>,
    connections: Connections,
    /// What was found and not kept: hashes of process and name.
    left_out: HashSet<u64>,
    scans: u64,
}

/// A position, which several descriptors may share.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    stood: u64,
    /// Bytes that it has moved on since it is shared, and that no process was given yet.
    left: u64,
}

/// How far a position went, and what may have moved it.
struct Step {
    row: usize,
    bytes: u64,
    access: Access,
    /// Of a position that is shared.
    place: Option<u64>,
}

impl Files {
    /// A process has been looked at.
    pub(crate) fn take(&mut self, scan: &Scan) {
        self.scans += 1;
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&scan.process) {
            for descriptor in &scan.descriptors {
                self.leave_out(scan.process, descriptor);
            }
            return;
        }
        let mut before = self.processes.remove(&scan.process).unwrap_or_default();
        let first = !before.known;
        if let (true, Some(io)) = (first && scan.inherits, scan.io) {
            before.began = io.0;
        }
        let mut open = HashMap::with_capacity(scan.descriptors.len());
        let mut steps = Vec::new();
        // Of those that are shared: what has moved, or gone back, has done so once.
        let mut places = HashSet::new();
        let mut candidates: Vec<(usize, Access)> = Vec::new();
        for descriptor in &scan.descriptors {
            let Some(row) = self.row(scan, descriptor) else { continue };
            let known = before.open.get(&descriptor.number).filter(|known| known.0 == row);
            if known.is_none() {
                self.rows[row].opened += 1;
            }
            let began = match known {
                Some((_, position)) => *position,
                None if first && scan.inherits => descriptor.position,
                None => Some(0),
            };
            if let (Some(to), Some(from)) = (descriptor.position, began) {
                let left = self.unclaimed(descriptor, from, to);
                let place = descriptor.place.filter(|_| descriptor.is_shared);
                let is_copy = place.is_some_and(|place| !places.insert(place));
                let bytes = to.saturating_sub(from).min(left);
                self.rows[row].seeks += u64::from(to < from && !is_copy);
                if bytes > 0 && !is_copy {
                    steps.push(Step { row, bytes, access: descriptor.access, place });
                }
            }
            for (_, writes) in scan.waits.iter().filter(|wait| wait.0 == descriptor.number) {
                let way = if *writes { Way::Write } else { Way::Read };
                self.rows[row].moved[way as usize].waited = true;
            }
            if known.is_some() {
                candidates.push((row, descriptor.access));
            }
            open.insert(descriptor.number, (row, descriptor.position));
        }
        if !(first && scan.inherits) {
            // A new process has counted from nothing.
            let was = before.io.unwrap_or_default();
            let past = if first { 0 } else { scan.at.saturating_sub(before.at) };
            self.moved(&steps, &candidates, was, scan.io, past);
        }
        self.processes.insert(
            scan.process,
            Process { at: scan.at, began: before.began, io: scan.io.or(before.io), open, known: true },
        );
    }

    /// A descriptor stands at `to` now, and stood at `from` when its process was last looked at, or when it
    /// was opened: how much its position has moved that is no process's yet.
    fn unclaimed(&mut self, descriptor: &Descriptor, from: u64, to: u64) -> u64 {
        let Some(number) = descriptor.place else { return u64::MAX };
        if self.places.len() >= MOST_PLACES && !self.places.contains_key(&number) {
            self.places.clear();
        }
        let place = self.places.entry(number).or_insert(Place { stood: from, left: 0 });
        let moved = to.saturating_sub(place.stood);
        place.stood = to;
        if descriptor.is_shared {
            // Whoever is looked at first sees it move.
            place.left = place.left.saturating_add(moved);
            place.left
        } else {
            u64::MAX
        }
    }

    fn leave_out(&mut self, process: u32, descriptor: &Descriptor) {
        if self.left_out.len() < MOST_COUNTED && descriptor.kind != Kind::Other {
            let mut hasher = DefaultHasher::new();
            (process, &descriptor.target).hash(&mut hasher);
            self.left_out.insert(hasher.finish());
        }
    }

    fn row(&mut self, scan: &Scan, descriptor: &Descriptor) -> Option<usize> {
        if descriptor.kind == Kind::Other {
            return None;
        }
        let key = (scan.process, descriptor.target.clone());
        let at = match self.by_key.get(&key) {
            Some(at) => *at,
            None if self.rows.len() >= MOST_ROWS => {
                self.leave_out(scan.process, descriptor);
                return None;
            }
            None => {
                self.rows.push(Row {
                    process: scan.process,
                    target: descriptor.target.clone(),
                    kind: descriptor.kind,
                    descriptors: Vec::new(),
                    opened: 0,
                    seeks: 0,
                    scans: 0,
                    was_there: scan.inherits,
                    seen: (scan.at, scan.at),
                    moved: Default::default(),
                });
                self.by_key.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        let row = &mut self.rows[at];
        row.scans += u64::from(row.scans == 0 || row.seen.1 < scan.at);
        row.seen.1 = scan.at;
        if row.descriptors.len() < MOST_DESCRIPTORS && !row.descriptors.contains(&descriptor.number) {
            row.descriptors.push(descriptor.number);
        }
        Some(at)
    }

    /// Gives what has moved since the last scan to files. `was`, `is`: the counters around both scans.
    fn moved(
        &mut self,
        steps: &[Step],
        candidates: &[(usize, Access)],
        was: (Io, Io),
        is: Option<(Io, Io)>,
        past: u64,
    ) {
        // From before the last scan until after this one: no more than this can have moved. And from scan to
        // scan.
        let most = is.map(|is| is.1.since(&was.0));
        let exact = is.map(|is| is.0.since(&was.0));
        for way in [Way::Read, Way::Write] {
            let mut mine: Vec<&Step> = steps
                .iter()
                .filter(|step| way.may(step.access))
                .filter(|step| {
                    // What can do both did what the counters say more of.
                    let both = step.access.read && step.access.write;
                    let reads = exact.is_none_or(|io| io.read_chars >= io.written_chars);
                    !both || reads == (way == Way::Read)
                })
                .collect();
            mine.sort_by_key(|step| step.bytes);
            let allowed = most.as_ref().map_or(u64::MAX, |io| way.counted(io).0);
            let counted = exact.as_ref().map_or((0, 0), |io| way.counted(io));
            self.give(way, &mine, allowed, past);
            self.know_calls(way, &mine, allowed, counted);
            if mine.is_empty() && counted.0 >= LEAST {
                self.infer(way, candidates, counted, past);
            }
        }
    }

    /// Gives each position what it has moved, the shortest first, as far as it is allowed for; the rest was a
    /// seek.
    fn give(&mut self, way: Way, steps: &[&Step], allowed: u64, past: u64) {
        let mut left = allowed;
        for step in steps {
            let moved = step.bytes.min(left);
            left -= moved;
            let row = &mut self.rows[step.row];
            if let Some(place) = step.place.and_then(|number| self.places.get_mut(&number)) {
                // What is more was another process's, which is looked at later, or a seek of either.
                place.left -= moved.min(place.left);
            } else {
                row.seeks += u64::from((moved as f64) < (1.0 - AGREE) * step.bytes as f64);
            }
            let to = &mut row.moved[way as usize];
            to.bytes += moved as f64;
            to.busy_ns += past;
        }
    }

    /// Where one file alone was used, the calls were its own.
    fn know_calls(&mut self, way: Way, steps: &[&Step], allowed: u64, counted: (u64, u64)) {
        let Some(first) = steps.first() else { return };
        if steps.iter().any(|step| step.row != first.row) {
            return;
        }
        let sum = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.bytes));
        let moved = sum.min(allowed) as f64;
        if (moved - counted.0 as f64).abs() <= AGREE * moved {
            let to = &mut self.rows[first.row].moved[way as usize];
            to.alone.0 += counted.0;
            to.alone.1 += counted.1;
        }
    }

    /// Gives bytes that moved no position to the one descriptor that a thread has been seen waiting in, if
    /// there is only one.
    fn infer(&mut self, way: Way, candidates: &[(usize, Access)], counted: (u64, u64), past: u64) {
        let mut from: Vec<usize> = candidates
            .iter()
            .filter(|candidate| way.may(candidate.1))
            .map(|candidate| candidate.0)
            .filter(|row| self.rows[*row].moved[way as usize].waited)
            .collect();
        from.sort_unstable();
        from.dedup();
        if let [only] = from[..] {
            let to = &mut self.rows[only].moved[way as usize];
            to.bytes += counted.0 as f64;
            to.inferred += counted.0 as f64;
            to.alone.0 += counted.0;
            to.alone.1 += counted.1;
            to.busy_ns += past;
        }
    }

    /// Whether a process has a socket that was seen at this moment or later.
    pub(crate) fn has_sockets(&self, since: u64) -> bool {
        self.rows.iter().any(|row| row.kind == Kind::Socket && row.seen.1 >= since)
    }

    /// TCP sockets of this machine, by number: those that the program has are followed.
    pub(crate) fn sockets(&mut self, all: &[(u64, tcp::Socket)]) {
        let all: HashMap<u64, &tcp::Socket> = all.iter().map(|(number, socket)| (*number, socket)).collect();
        // Of a socket that several processes have, the first one has the bytes.
        let mut reported = HashSet::new();
        for row in &mut self.rows {
            let Some(number) = row.socket() else { continue };
            if let Some(socket) = all.get(&number) {
                self.connections.take(number, **socket, row.was_there);
            }
            if let Some((_, counters)) = self.connections.of(number)
                && reported.insert(number)
            {
                row.carried(&counters);
            }
        }
    }

    /// Both ends of the connection that is known by this name of a socket.
    pub(crate) fn peer(&self, target: &str) -> Option<String> {
        let (socket, _) = self.connections.of(socket(target)?)?;
        Some(socket.name())
    }

    /// What TCP sockets carried.
    pub(crate) fn traffic(&self) -> Traffic {
        self.connections.traffic()
    }

    /// Each process's counters when it began to be watched, and at the last scan.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (u32, Io, Io)> {
        let of = |(id, process): (&u32, &Process)| Some((*id, process.began, process.io?.1));
        self.processes.iter().filter_map(of)
    }

    /// Bytes read from and written to regular files, as far as they were found.
    pub(crate) fn of_regular_files(&self) -> u64 {
        let files = self.rows.iter().filter(|row| row.kind == Kind::File);
        crate::time::whole_ns(files.map(Row::total).sum())
    }

    /// As it is written. `begin`: when the program was started; `io`: the counters of all its processes;
    /// `refused`: some hid theirs.
    pub(crate) fn shown(
        &self,
        begin: u64,
        io: Option<&Io>,
        refused: bool,
        name: impl Fn(u32) -> String,
    ) -> model::Files {
        let sum = |way: Way| -> f64 { self.rows.iter().map(|row| row.moved[way as usize].bytes).sum() };
        let counted = |way: fn(&Io) -> u64| io.map(way).filter(|of| *of > 0).map(|of| of as f64);
        let share = |bytes: f64, of: Option<f64>| of.map(|of| (bytes / of).min(1.0));
        let (read, written) = (counted(|io| io.read_chars), counted(|io| io.written_chars));
        let mut rows: Vec<&Row> = self
            .rows
            .iter()
            // What was seen once was closed when the program was loaded.
            .filter(|row| {
                row.total() > 0.0 || (row.scans > 1 && matches!(row.kind, Kind::Pipe | Kind::Socket))
            })
            .collect();
        rows.sort_by(|a, b| b.total().total_cmp(&a.total()).then(a.target.cmp(&b.target)));
        let left_out = self.left_out.len() as u64 + rows.len().saturating_sub(MOST_SHOWN) as u64;
        rows.truncate(MOST_SHOWN);
        let seconds = |at: u64| at.saturating_sub(begin) as f64 / 1e9;
        model::Files {
            rows: rows
                .into_iter()
                .map(|row| (row, row.socket().and_then(|number| self.connections.of(number))))
                .map(|(row, tcp)| model::File {
                    name: tcp.map_or_else(|| row.target.clone(), |(socket, _)| socket.name()),
                    kind: row.kind.to_string(),
                    process: row.process,
                    process_name: name(row.process),
                    descriptors: row.descriptors.clone(),
                    opened: row.opened,
                    seeks: row.seeks,
                    from_s: seconds(row.seen.0),
                    to_s: seconds(row.seen.1),
                    read: row.moved[Way::Read as usize].shown(),
                    written: row.moved[Way::Write as usize].shown(),
                    round_trip_s: tcp
                        .map(|(socket, _)| f64::from(socket.round_trip_us) / 1e6)
                        .filter(|round_trip_s| *round_trip_s > 0.0),
                    sent_again: tcp.map(|(_, counters)| counters.sent_again),
                })
                .collect(),
            scans: self.scans,
            left_out,
            read_share: share(sum(Way::Read), read),
            written_share: share(sum(Way::Write), written),
            counted_read_bytes: read,
            counted_written_bytes: written,
            refused,
            ..model::Files::default()
        }
    }
}

/// The number of a socket.
fn socket(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

impl Row {
    /// The number of its socket.
    fn socket(&self) -> Option<u64> {
        socket(&self.target)
    }

    /// What the kernel counted of its connection.
    fn carried(&mut self, counters: &tcp::Counters) {
        let busy_ns = self.seen.1 - self.seen.0;
        for (way, bytes) in [(Way::Read, counters.received_bytes), (Way::Write, counters.sent_bytes)] {
            let waited = self.moved[way as usize].waited;
            self.moved[way as usize] = Moved { bytes: bytes as f64, waited, busy_ns, ..Moved::default() };
        }
    }

    fn total(&self) -> f64 {
        self.moved.iter().map(|moved| moved.bytes).sum()
    }
}

impl Moved {
    fn shown(&self) -> Option<model::Moved> {
        (self.bytes > 0.0).then(|| model::Moved {
            bytes: self.bytes.round(),
            inferred: self.inferred.round(),
            block_bytes: (self.alone.1 > 0).then(|| self.alone.0 as f64 / self.alone.1 as f64),
            block_known: (self.alone.0 as f64 / self.bytes).min(1.0),
            busy_s: self.busy_ns as f64 / 1e9,
        })
    }
}

#[cfg(test)]
mod tests;
