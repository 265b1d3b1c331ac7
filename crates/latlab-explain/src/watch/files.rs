//! Looks at the descriptors of the program in /proc, seldom enough to cost little.

use std::collections::HashMap;

use rustix::fs::{CWD, FileType};

use super::calls;
use super::clock::{now_ns, thread_cpu_ns};
use super::proc_file::{io_of, is_of_kind, text, value};
use super::sockets;
use crate::account::discards::Discarding;
use crate::account::files::{Access, Descriptor, Files, Kind, Scan};
use crate::account::io::{Account, Io, Whole, whole};
use crate::account::tcp::Traffic;
use crate::model;

/// Scanning may take one part in so many of one CPU.
const SHARE: u64 = 200;
const LEAST_NS: u64 = 1_000_000;
const MOST_NS: u64 = 50_000_000;
/// A file that is read to the end of the program is seen but for the last part in so many.
const PARTS: u64 = 100;
const MOST_PROCESSES: usize = 32;
const MOST_DESCRIPTORS: usize = 256;
/// Threads of all processes together that are asked at one scan in which call they wait: the kernel may make
/// whoever asks wait for a tick.
const MOST_ASKED: usize = MOST_PROCESSES;
/// Of one process.
const MOST_THREADS: usize = 8;
/// Descriptors of one file that are compared with each other at one scan.
const MOST_COMPARED: usize = 256;
/// Reads of two positions until one is between two scans of the other: programs also go back.
const ATTEMPTS: usize = 3;
/// Files of which it is known which descriptors share a position.
const MOST_PLACES: usize = 2048;

/// The position of an open file.
#[derive(Debug)]
struct Place {
    number: u64,
    /// A process and its descriptor that has it.
    of: (u32, u32),
    /// Another one has it too.
    is_shared: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Descriptors {
    files: Files,
    places: HashMap<String, Vec<Place>>,
    numbers: u64,
    left_to_compare: usize,
    begin: u64,
    next: u64,
    /// CPU time of one scan of all processes.
    pub(crate) cost_ns: u64,
    scans: usize,
    last: u64,
    refused: bool,
    /// The kernel does not say which descriptors share a position.
    by_position: bool,
    /// What may have gone to `/dev/null`.
    pub(crate) discarding: Discarding,
}

impl Descriptors {
    pub(crate) fn begin(now: u64) -> Self {
        Self {
            files: Files::default(),
            places: HashMap::new(),
            numbers: 0,
            left_to_compare: MOST_COMPARED,
            begin: now,
            next: now,
            cost_ns: 0,
            scans: 0,
            last: now,
            refused: false,
            by_position: false,
            discarding: Discarding::default(),
        }
    }

    /// What processes hold before they are watched.
    pub(crate) fn inherit(&mut self, processes: &[u32]) {
        for process in processes.iter().take(MOST_PROCESSES) {
            self.scan(*process, &[], true);
        }
        self.ask_for_sockets(self.begin);
    }

    /// What the kernel counts of the sockets that were seen since then.
    fn ask_for_sockets(&mut self, since: u64) {
        if self.files.has_sockets(since) {
            self.files.sockets(&sockets::all());
        }
    }

    /// Scans once more before the end, whatever it costs.
    pub(crate) fn last(&mut self, processes: impl Iterator<Item = (u32, Vec<u32>)>) {
        self.next = 0;
        self.step(processes);
    }

    /// Looks at these processes, when it is time to.
    pub(crate) fn step(&mut self, processes: impl Iterator<Item = (u32, Vec<u32>)>) {
        let now = now_ns();
        if now < self.next {
            return;
        }
        let before = thread_cpu_ns();
        let mut processes: Vec<(u32, Vec<u32>)> = processes.collect();
        processes.sort_unstable();
        let many = processes.len().max(1);
        // Parents first, as long as all can be looked at.
        if many > MOST_PROCESSES {
            processes.rotate_left(self.scans * MOST_PROCESSES % many);
        }
        self.left_to_compare = MOST_COMPARED;
        let each = (MOST_ASKED / many).clamp(1, MOST_THREADS);
        for (process, threads) in processes.into_iter().take(MOST_PROCESSES) {
            self.scan(process, &asked(process, threads, self.scans, each), false);
        }
        self.ask_for_sockets(now);
        self.scans += 1;
        self.last = now;
        let cost = thread_cpu_ns() - before;
        self.cost_ns = if self.cost_ns == 0 { cost } else { (3 * self.cost_ns + cost) / 4 };
        let usual = ((now - self.begin) / PARTS).clamp(LEAST_NS, MOST_NS);
        self.next = now_ns() + usual.max(SHARE * self.cost_ns);
    }

    fn scan(&mut self, process: u32, threads: &[u32], inherits: bool) {
        let before = io_of(process);
        let entries = match std::fs::read_dir(format!("/proc/{process}/fd")) {
            Ok(entries) => entries,
            Err(error) => {
                self.refused |= error.kind() == std::io::ErrorKind::PermissionDenied;
                return;
            }
        };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut descriptors: Vec<Descriptor> =
            numbers.take(MOST_DESCRIPTORS).filter_map(|number| descriptor(process, number)).collect();
        self.compare(process, &mut descriptors);
        let after = io_of(process);
        self.refused |= before.is_none();
        let written = after.map(|io| io.written_chars);
        self.discarding.scan(process, written, &descriptors);
        self.files.take(&Scan {
            at: now_ns(),
            process,
            io: before.zip(after),
            descriptors,
            waits: threads.iter().filter_map(|thread| waits_in(process, *thread)).collect(),
            inherits,
        });
    }

    /// Gives descriptors the numbers of their positions, and says which of these others have too.
    fn compare(&mut self, process: u32, descriptors: &mut [Descriptor]) {
        let files = |descriptor: &&mut Descriptor| descriptor.position.is_some();
        for descriptor in descriptors.iter_mut().filter(files) {
            descriptor.place = Some(self.place(process, descriptor));
        }
        for descriptor in descriptors.iter_mut().filter(files) {
            let places = self.places.get(&descriptor.target).into_iter().flatten();
            let mut mine = places.filter(|place| Some(place.number) == descriptor.place);
            descriptor.is_shared = mine.any(|place| place.is_shared);
        }
    }

    fn place(&mut self, process: u32, descriptor: &Descriptor) -> u64 {
        if self.places.len() >= MOST_PLACES && !self.places.contains_key(&descriptor.target) {
            self.places.clear();
        }
        let places = self.places.entry(descriptor.target.clone()).or_default();
        let mine = (process, descriptor.number);
        if let Some(known) = places.iter().find(|place| place.of == mine) {
            return known.number;
        }
        let mut same = None;
        places.retain_mut(|place| {
            if same.is_some() || self.left_to_compare == 0 {
                return true;
            }
            self.left_to_compare -= 1;
            let is_same = match same_place(place.of, mine) {
                Err(libc::ESRCH | libc::EBADF) => None,
                Err(_) => {
                    self.by_position = true;
                    stand_together(place.of, mine)
                }
                Ok(is_same) => Some(is_same),
            };
            if is_same == Some(true) {
                place.is_shared = true;
                same = Some(place.number);
            }
            // Gone, or it may not be asked.
            is_same.is_some()
        });
        same.unwrap_or_else(|| {
            self.numbers += 1;
            places.push(Place { number: self.numbers, of: mine, is_shared: false });
            self.numbers
        })
    }

    /// Bytes and calls of all processes. `root`: of the one that was started or named, now; `parent`: of any;
    /// `orphans` ended after theirs.
    pub(crate) fn whole(
        &self,
        root: (u32, Io, Io),
        parent: impl Fn(u32) -> u32,
        is_orphan: impl Fn(u32) -> bool,
    ) -> Whole {
        let (root, began, last) = root;
        let others = self.files.counters().filter(|(process, ..)| *process != root);
        let mut accounts: Vec<Account> = others
            .map(|(process, began, last)| {
                let now = io_of(process);
                Account {
                    process,
                    parent: parent(process),
                    began,
                    last: now.unwrap_or(last),
                    is_there: now.is_some(),
                    is_orphan: is_orphan(process),
                }
            })
            .collect();
        accounts.push(Account { process: root, parent: 0, began, last, is_there: true, is_orphan: false });
        whole(&accounts)
    }

    /// Bytes read from and written to regular files.
    pub(crate) fn of_regular_files(&self) -> u64 {
        self.files.of_regular_files()
    }

    /// What a socket is connected to.
    pub(crate) fn peer(&self, target: &str) -> Option<String> {
        self.files.peer(target)
    }

    /// What its TCP sockets carried.
    pub(crate) fn traffic(&self) -> Traffic {
        self.files.traffic()
    }

    /// What was found. `io`: the counters of all processes.
    pub(crate) fn shown(&self, io: Option<&Io>, name: impl Fn(u32) -> String) -> model::Files {
        let spent = self.last.saturating_sub(self.begin) as f64 / 1e9;
        model::Files {
            every_s: (self.scans > 0).then(|| spent / self.scans as f64),
            by_position: self.by_position,
            ..self.files.shown(self.begin, io, self.refused, name)
        }
    }
}

/// Which threads of a process are asked now: always the first one, the others in turn.
fn asked(process: u32, mut threads: Vec<u32>, turn: usize, most: usize) -> Vec<u32> {
    threads.retain(|thread| *thread != process);
    threads.sort_unstable();
    let others = most.saturating_sub(1);
    let many = threads.len().max(1);
    threads.rotate_left(turn * others % many);
    threads.truncate(others);
    threads.insert(0, process);
    threads
}

/// Whether two descriptors have one position, as after `dup` or `fork`; else the kernel's error.
fn same_place(one: (u32, u32), other: (u32, u32)) -> Result<bool, libc::c_int> {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: numbers only; the call compares, and changes nothing.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one.0, other.0, KCMP_FILE, one.1, other.1) };
    if order >= 0 {
        return Ok(order == 0);
    }
    Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS))
}

/// What can be had instead: whether two descriptors of one file were opened alike and stand where a shared
/// one would, the other at a moment between two scans of the one. Two that only happen to (at the beginning,
/// where nothing has moved yet, or both at the end) count once: what is missing then is said, and what counts
/// twice would not be. `None`: one is not there.
fn stand_together(one: (u32, u32), other: (u32, u32)) -> Option<bool> {
    for _ in 0..ATTEMPTS {
        let (from, at, to) = (stands(one)?, stands(other)?, stands(one)?);
        if from.1 != at.1 {
            return Some(false);
        }
        if from.0 <= at.0 && at.0 <= to.0 {
            return Some(true);
        }
    }
    Some(false)
}

/// Where a descriptor stands, and how the file was opened.
fn stands(of: (u32, u32)) -> Option<(u64, libc::c_int)> {
    let about = text(&format!("/proc/{}/fdinfo/{}", of.0, of.1));
    // Whether it is closed on exec is the descriptor's own.
    let opened = flags(&about)? & !libc::O_CLOEXEC;
    Some((value(&about, "pos:")?.parse().ok()?, opened))
}

/// Whether a descriptor is of a folder.
fn is_folder(process: u32, number: u32) -> bool {
    is_of_kind(CWD, &format!("/proc/{process}/fd/{number}"), FileType::Directory)
}

fn flags(about: &str) -> Option<libc::c_int> {
    libc::c_int::from_str_radix(value(about, "flags:")?, 8).ok()
}

/// In which descriptor's call a thread waits, and whether it writes.
fn waits_in(process: u32, thread: u32) -> Option<(u32, bool)> {
    let line = text(&format!("/proc/{process}/task/{thread}/syscall"));
    let writes = match calls::of_line(&line)? {
        "read" | "readv" | "pread64" | "preadv" | "preadv2" => false,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => true,
        _ => return None,
    };
    Some((u32::try_from(calls::argument(&line, 0)?).ok()?, writes))
}

fn descriptor(process: u32, number: u32) -> Option<Descriptor> {
    let link = std::fs::read_link(format!("/proc/{process}/fd/{number}")).ok()?;
    let target = link.to_string_lossy().into_owned();
    let kind = Kind::of(&target);
    if kind == Kind::Other {
        return None;
    }
    let about = text(&format!("/proc/{process}/fdinfo/{number}"));
    let flags = flags(&about)?;
    // Where a folder stands is no number of bytes.
    if flags & libc::O_DIRECTORY != 0 {
        return None;
    }
    let mode = flags & libc::O_ACCMODE;
    let position: Option<u64> = (kind == Kind::File).then(|| value(&about, "pos:")?.parse().ok()).flatten();
    // `tar` and others open folders like files.
    if position > Some(0) && mode == libc::O_RDONLY && is_folder(process, number) {
        return None;
    }
    Some(Descriptor {
        number,
        target,
        kind,
        position,
        place: None,
        is_shared: false,
        access: Access { read: mode != libc::O_WRONLY, write: mode != libc::O_RDONLY },
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_file_that_a_process_reads_is_found_with_the_bytes_that_it_read() {
        let path = std::env::temp_dir().join(format!("latlab-descriptors-{}", std::process::id()));
        std::fs::write(&path, vec![0; 300_000]).unwrap();
        // It reads once, and waits until somebody takes the bytes.
        let mut reads = Command::new("dd")
            .args(["bs=200000", "count=1"])
            .stdin(std::fs::File::open(&path).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while stands((reads.id(), 0)).is_some_and(|at| at.0 < 200_000) {
            std::thread::yield_now();
        }
        let mut descriptors = Descriptors::begin(now_ns());
        descriptors.step([(reads.id(), vec![])].into_iter());
        reads.kill().unwrap();
        reads.wait().unwrap();
        let found = descriptors.shown(None, |_| String::new());
        std::fs::remove_file(&path).unwrap();
        let name = path.to_string_lossy();
        let row = found.rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!((row.kind.as_str(), row.read.unwrap().bytes), ("file", 200_000.0));
    }

    #[test]
    fn descriptors_that_were_copied_share_their_position_and_others_of_the_file_do_not() {
        let process = std::process::id();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let copy = file.try_clone().unwrap();
        let other = std::fs::File::open("/proc/self/exe").unwrap();
        let number = |file: &std::fs::File| u32::try_from(file.as_raw_fd()).unwrap();
        let mut all: Vec<Descriptor> =
            [&file, &copy, &other].into_iter().filter_map(|file| descriptor(process, number(file))).collect();
        Descriptors::begin(now_ns()).compare(process, &mut all);
        assert_eq!(all[0].place, all[1].place);
        assert_ne!(all[0].place, all[2].place);
        let shared: Vec<bool> = all.iter().map(|found| found.is_shared).collect();
        assert_eq!(shared, [true, true, false]);
    }

    #[test]
    fn where_the_kernel_does_not_say_it_descriptors_that_stand_together_share_their_position() {
        let process = std::process::id();
        let of = |file: &std::fs::File| (process, u32::try_from(file.as_raw_fd()).unwrap());
        let mut file = std::fs::File::open("/proc/self/exe").unwrap();
        let copy = file.try_clone().unwrap();
        let other = std::fs::File::open("/proc/self/exe").unwrap();
        // Nothing has moved: no bytes depend on it yet.
        assert_eq!(stand_together(of(&file), of(&other)), Some(true));
        file.read_exact(&mut [0; 4096]).unwrap();
        assert_eq!(stand_together(of(&file), of(&copy)), Some(true));
        assert_eq!(stand_together(of(&file), of(&other)), Some(false));
        let writes = std::fs::OpenOptions::new().append(true).open("/dev/null").unwrap();
        assert_eq!(stand_together(of(&other), of(&writes)), Some(false));
        assert_eq!(stand_together(of(&file), (process, u32::MAX)), None);
    }

    #[test]
    fn a_folder_that_was_opened_like_a_file_has_no_bytes() {
        let folder = std::fs::File::open(std::env::temp_dir()).unwrap();
        let number = u32::try_from(folder.as_raw_fd()).unwrap();
        assert!(is_folder(std::process::id(), number));
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let number = u32::try_from(file.as_raw_fd()).unwrap();
        assert!(!is_folder(std::process::id(), number));
        assert!(!is_folder(std::process::id(), u32::MAX));
    }

    #[test]
    fn the_first_thread_is_always_asked_and_the_others_take_turns() {
        let threads: Vec<u32> = (100..200).collect();
        let mut met = std::collections::HashSet::new();
        for turn in 0..100 {
            let asked = asked(100, threads.clone(), turn, MOST_THREADS);
            assert_eq!((asked[0], asked.len()), (100, MOST_THREADS));
            met.extend(asked);
        }
        assert_eq!(met.len(), threads.len());
        assert_eq!(asked(100, threads, 7, 1), [100]);
    }
}
