//! Perf events that follow a program, its threads and its children.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use latlab_perf::{Detail, Flags, Kind, Ring, Tracefs, Whose, held, reason};

use crate::account::records::{FileId, Record, What};
use crate::account::stream::Event;
use crate::watch::proc_file::text;
use crate::watch::traced::Traced;
use crate::watch::unwind::Top;

/// Least time on the CPU between samples: a thousand a second, out of step with whatever comes in whole
/// milliseconds.
pub(crate) const LEAST_PERIOD_NS: u64 = 997_009;
/// One fault of this many is recorded.
pub(crate) const FAULT_PERIOD: u64 = 61;
/// Deeper callers say nothing of what the running function does.
const DEEPEST: u16 = 48;
/// More than the kernel records: a damaged record takes no more.
const LONGEST_CHAIN: usize = 64;
/// Why nobody is told who ends a wait.
pub(crate) const NEEDS_LEVEL_1: &str = "it takes level 1";
/// Records of all rings together, and the least and the most of one, bytes.
const ALL_BYTES: usize = 32 << 20;
const LEAST_BYTES: usize = 32 << 10;
const MOST_BYTES: usize = 2 << 20;
/// Of the stack, what a sample has at most, bytes; see docs/method/explain.md.
pub(crate) const MOST_STACK: u16 = 8 << 10;
/// Samples with such a copy that a ring has room for: an eighth of a second's, of one CPU.
const SAMPLES: usize = 128;
/// What an ordinary user may lock for each CPU where the kernel does not report it, KiB: its own default with
/// pages of 4 KiB.
const USUAL_LOCK_KIB: usize = 516;

/// Threads times CPUs that events may be opened for: three descriptors each, of the usual 1024.
const MOST_FOLLOWED: usize = 200;
/// The same with five descriptors each.
const MOST_WITH_WAKES: usize = 120;
/// The tracepoint of a thread that ends a wait. It fires in the thread that does so.
const WAKING: &str = "sched/sched_waking";
/// The tracepoint of a thread to which a signal comes.
const SIGNAL: &str = "signal/signal_deliver";
/// Of a tracepoint's flags: an interrupt did it, not the thread that it came to
/// (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`).
const IN_INTERRUPT: u8 = 0x08 | 0x10;
/// The first of all namespaces of process ids (`PROC_PID_INIT_INO`), whose numbers tracepoints use.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// See the module. While it is stopped no event exists: even one that is off costs the program at every
/// switch.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// One for each CPU, owned by an event of the watcher's own that never fires.
    rings: Vec<(u32, Ring)>,
    pub(crate) period_ns: u64,
    pub(crate) events: HashMap<u64, Event>,
    pub(crate) sees_kernel: bool,
    /// Keep the tracepoints in use, so that the kernel waits for their end once, not at every pause.
    held: Vec<OwnedFd>,
    /// Where every call is recorded.
    pub(crate) calls: Option<Traced>,
    /// Where records say who ends a wait; else why they do not.
    pub(crate) wakes: Result<Wakes, String>,
    /// Of the stack, what samples have at most, bytes; 0: they have none, and callers are found by frame
    /// pointers.
    pub(crate) most_stack: u16,
}

/// The tracepoints that say who ends waits: their numbers, and where their fields lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wakes {
    waking: u64,
    flags: usize,
    pid: usize,
    signal: u64,
    number: usize,
}

impl Wakes {
    /// Looked up once.
    pub(crate) fn find() -> Result<Self, String> {
        static FOUND: OnceLock<Result<Wakes, String>> = OnceLock::new();
        FOUND.get_or_init(Self::look_up).clone()
    }

    fn look_up() -> Result<Self, String> {
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        if namespace.is_ok_and(|namespace| namespace.as_os_str() != FIRST_NAMESPACE) {
            return Err(
                "in a container with its own process ids, tracepoints use other thread ids".to_owned()
            );
        }
        let tracefs = Tracefs::open()?;
        let found = || {
            let [flags, pid] = ["common_flags", "pid"].map(|field| tracefs.offset(WAKING, field));
            let (waking, signal) = (tracefs.id(WAKING)?, tracefs.id(SIGNAL)?);
            let number = tracefs.offset(SIGNAL, "sig")?;
            Some(Self { waking, flags: flags?, pid: pid?, signal, number })
        };
        found().ok_or_else(|| format!("this kernel has no tracepoint {WAKING} or {SIGNAL}"))
    }

    /// Events that keep the tracepoints in use; those that could be opened.
    pub(crate) fn held(self) -> Vec<OwnedFd> {
        held(&[self.waking, self.signal])
    }

    /// The thread whose wait this one has ended; `None`: an interrupt did it, or the fields are damaged.
    fn woken(self, raw: &[u8], by: u32) -> Option<u32> {
        let flags = raw.get(self.flags)?;
        let pid = u32::from_ne_bytes(*raw.get(self.pid..)?.first_chunk()?);
        (flags & IN_INTERRUPT == 0 && pid != by).then_some(pid)
    }

    /// Whether a signal says that a child has ended.
    fn of_child(self, raw: &[u8]) -> bool {
        let number = raw.get(self.number..).and_then(|rest| rest.first_chunk());
        number.is_some_and(|number| i32::from_ne_bytes(*number) == libc::SIGCHLD)
    }

    /// What a record of such an event tells, if that is something.
    fn reported(self, event: Event, raw: &[u8], by: u32) -> Option<What> {
        match event {
            Event::Wake => self.woken(raw, by).map(|thread| What::Wake { thread }),
            Event::Signal => self.of_child(raw).then_some(What::ChildEnded),
            _ => None,
        }
    }
}

fn event(kind: Kind, period: u64, flags: Flags) -> latlab_perf::Event {
    let detail = if matches!(kind, Kind::Tracepoint(_)) { Detail::Raw } else { Detail::Chain };
    let flags = flags | Flags::INHERIT | Flags::EXCLUDE_HV;
    latlab_perf::Event { period, detail, deepest: DEEPEST, ..latlab_perf::Event::of(kind, flags) }
}

/// What of the stack a sample has, where rings are so large.
fn detail(ring_bytes: usize, most_stack: u16) -> Detail {
    let bytes = u16::try_from(ring_bytes / SAMPLES).unwrap_or(u16::MAX).min(most_stack);
    let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if is_known && bytes > 0 { Detail::Stack { bytes } } else { Detail::Chain }
}

impl From<latlab_perf::Record<'_>> for Record {
    fn from(reported: latlab_perf::Record<'_>) -> Self {
        use latlab_perf::What as Reported;
        let what = match reported.what {
            Reported::Sample(sample) => {
                let (kernel, user) = sample.divided(LONGEST_CHAIN);
                What::Sample { event: reported.event, kernel, user }
            }
            Reported::SwitchedOut { preempted } => What::Out { preempted },
            Reported::SwitchedIn => What::In,
            Reported::Mapped(mapping) => What::Map {
                start: mapping.start,
                bytes: mapping.bytes,
                offset: mapping.offset,
                path: mapping.path,
                file: mapping.file.map_or_else(FileId::default, |file| FileId {
                    major: file.major,
                    minor: file.minor,
                    inode: file.inode,
                }),
            },
            Reported::Named { exec, name } => What::Name { exec, name: name.into() },
            Reported::Started { parent, by } => What::Start { parent, by },
            Reported::Ended => What::End,
            Reported::Lost(records) => What::Lost(records),
        };
        Self { time: reported.time_ns, pid: reported.pid, tid: reported.tid, what }
    }
}

/// Bytes of records that each CPU's ring has: a power of two of whole pages. `lock_bytes`: what may be locked
/// for each CPU, together with the page that comes before the records; `None`: as much as is wanted.
fn bytes_of_each(cpus: usize, page_bytes: usize, lock_bytes: Option<usize>) -> usize {
    let share = (ALL_BYTES / cpus.max(1)).clamp(LEAST_BYTES, MOST_BYTES);
    let allowed = lock_bytes.map_or(share, |bytes| share.min(bytes.saturating_sub(page_bytes)));
    page_bytes << (allowed / page_bytes).max(1).ilog2()
}

/// What an ordinary user may lock for each CPU.
fn lock_bytes() -> usize {
    let kib = text("/proc/sys/kernel/perf_event_mlock_kb").trim().parse();
    kib.unwrap_or(USUAL_LOCK_KIB).saturating_mul(1024)
}

impl Recorder {
    /// Nothing is open yet: while any process has an event of a task, every switch of every thread takes a
    /// little longer.
    pub(crate) fn of(sees_kernel: bool, period_ns: u64) -> Self {
        let wakes = if sees_kernel { Wakes::find() } else { Err(NEEDS_LEVEL_1.to_owned()) };
        Self {
            rings: Vec::new(),
            held: Vec::new(),
            calls: None,
            period_ns,
            events: HashMap::new(),
            sees_kernel,
            wakes,
            most_stack: MOST_STACK,
        }
    }

    /// Makes room for records.
    fn open(sees_kernel: bool) -> Result<Vec<(u32, Ring)>, String> {
        let bytes = |cpus| bytes_of_each(cpus, rustix::param::page_size(), (!sees_kernel).then(lock_bytes));
        let own = event(Kind::Dummy, 1, Flags::EXCLUDE_KERNEL);
        Ring::of_each_cpu(own, bytes).map_err(|error| reason(&error))
    }

    /// Opens all events for these threads and whatever they start. `on_exec`: they go on with the next exec;
    /// else at once.
    pub(crate) fn start(&mut self, threads: &[u32], on_exec: bool) -> Result<(), String> {
        if self.rings.is_empty() {
            self.rings = Self::open(self.sees_kernel)?;
            self.held = self.wakes.as_ref().map_or_else(|_| Vec::new(), |wakes| wakes.held());
        }
        let (count, cpus) = (threads.len(), self.rings.len());
        let too_many = |what| format!("{count} threads on {cpus} CPUs are too many {what}");
        if count * cpus > MOST_FOLLOWED {
            return Err(too_many("to attach to"));
        }
        if self.wakes.is_ok() && count * cpus > MOST_WITH_WAKES {
            self.wakes = Err(too_many("for an event more"));
        }
        // Records of the events before have been read.
        self.events.clear();
        let hidden = if self.sees_kernel { Flags::empty() } else { Flags::EXCLUDE_KERNEL };
        let start = if on_exec { Flags::ENABLE_ON_EXEC } else { Flags::empty() };
        let tree = Flags::EXCLUDE_KERNEL
            | start
            | Flags::MMAP
            | Flags::MMAP2
            | Flags::COMM
            | Flags::COMM_EXEC
            | Flags::TASK;
        // One that was opened with less room than others has as many samples.
        let room = self.rings.iter().map(|(_, ring)| ring.bytes()).min().unwrap_or(0);
        let detail = detail(room, self.most_stack);
        let clock = event(Kind::CpuClock, self.period_ns, hidden | start | Flags::CONTEXT_SWITCH);
        let kinds = [
            (event(Kind::Dummy, 1, tree), None),
            (latlab_perf::Event { detail, ..clock }, Some(Event::Cpu(self.period_ns))),
            if self.sees_kernel {
                let flags = start | Flags::EXCLUDE_CALLCHAIN_USER;
                (event(Kind::ContextSwitches, 1, flags), Some(Event::Switch))
            } else {
                (event(Kind::PageFaults, FAULT_PERIOD, hidden | start), Some(Event::Fault))
            },
        ];
        for &tid in threads {
            for (cpu, ring) in &mut self.rings {
                for (followed, event) in kinds {
                    let id = match ring.join(followed, Whose::Thread { tid, cpu: *cpu }) {
                        Ok(id) => id,
                        // It has ended meanwhile.
                        Err(error) if !on_exec && error.raw_os_error() == Some(libc::ESRCH) => continue,
                        Err(error) => {
                            let reported = reason(&error);
                            self.stop();
                            return Err(reported);
                        }
                    };
                    if let Some(event) = event {
                        self.events.insert(id, event);
                    }
                }
                if let Ok(wakes) = self.wakes {
                    for (number, stands_for) in [(wakes.waking, Event::Wake), (wakes.signal, Event::Signal)] {
                        let point = event(Kind::Tracepoint(number), 1, start);
                        match ring.join(point, Whose::Thread { tid, cpu: *cpu }) {
                            Ok(id) => drop(self.events.insert(id, stands_for)),
                            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                            // All else can be had without.
                            Err(error) => self.wakes = Err(reason(&error)),
                        }
                    }
                }
            }
        }
        // All else can be had without.
        self.calls.take_if(|calls| calls.start(threads, on_exec).is_err());
        if !on_exec {
            for (_, ring) in &self.rings {
                ring.switch_all(true);
            }
        }
        Ok(())
    }

    /// Closes all events; what they have recorded stays to be read.
    pub(crate) fn stop(&mut self) {
        for (_, ring) in &mut self.rings {
            ring.leave();
        }
        if let Some(calls) = &mut self.calls {
            calls.stop();
        }
    }

    /// Fault records on or off; where the kernel is seen there are none.
    pub(crate) fn switch_faults(&self, on: bool) {
        if !self.sees_kernel {
            for (_, ring) in &self.rings {
                // After the ring's own come three a thread, the faults last.
                for at in (3..ring.events()).step_by(3) {
                    ring.switch(at, on);
                }
            }
        }
    }

    /// All records so far, and what the callers of samples are found by.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Record, Option<Top>)) {
        if let Some(calls) = &mut self.calls {
            calls.read(false);
        }
        let (events, wakes, most) = (&self.events, self.wakes.as_ref().ok(), self.most_stack);
        let detail = |id| match events.get(&id) {
            Some(Event::Cpu(_)) => detail(usize::MAX, most),
            Some(Event::Wake | Event::Signal) => Detail::Raw,
            _ => Detail::Chain,
        };
        for (_, ring) in &mut self.rings {
            for reported in ring.drain(detail) {
                let (time, pid, tid) = (reported.time_ns, reported.pid, reported.tid);
                match (&reported.what, events.get(&reported.event)) {
                    (latlab_perf::What::Sample(sample), Some(event @ (Event::Wake | Event::Signal))) => {
                        if let Some(what) = wakes.and_then(|wakes| wakes.reported(*event, sample.raw(), tid))
                        {
                            each(Record { time, pid, tid, what }, None);
                        }
                    }
                    (latlab_perf::What::Sample(sample), _) => {
                        let user = sample.user().map(Top::from);
                        each(Record::from(reported), user);
                    }
                    _ => each(Record::from(reported), None),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use latlab_perf::{Inode, Mapping, What as Reported, this_thread};

    use super::*;

    #[test]
    fn a_mapping_of_which_the_kernel_does_not_say_the_inode_is_of_no_known_file() {
        let mapping = Mapping { start: 1, bytes: 2, offset: 3, file: None, path: "/lib/a".to_owned() };
        let reported = latlab_perf::Record {
            time_ns: 50,
            pid: 7,
            tid: 8,
            event: 5,
            what: Reported::Mapped(Box::new(mapping)),
        };
        let (path, file) = ("/lib/a".to_owned(), FileId::default());
        let what = What::Map { start: 1, bytes: 2, offset: 3, path, file };
        assert_eq!(Record::from(reported), Record { time: 50, pid: 7, tid: 8, what });
    }

    #[test]
    fn what_perf_tells_is_kept_with_its_thread_and_time() {
        let inode = Inode { major: 8, minor: 1, inode: 99, inode_generation: 5 };
        let mapping = Mapping { start: 1, bytes: 2, offset: 3, file: Some(inode), path: "/lib/a".to_owned() };
        let file = FileId { major: 8, minor: 1, inode: 99 };
        let reported = [
            (Reported::SwitchedOut { preempted: true }, What::Out { preempted: true }),
            (Reported::SwitchedOut { preempted: false }, What::Out { preempted: false }),
            (Reported::SwitchedIn, What::In),
            (
                Reported::Mapped(Box::new(mapping)),
                What::Map { start: 1, bytes: 2, offset: 3, path: "/lib/a".to_owned(), file },
            ),
            (
                Reported::Named { exec: true, name: "cat".into() },
                What::Name { exec: true, name: "cat".to_owned() },
            ),
            (
                Reported::Named { exec: false, name: "b".into() },
                What::Name { exec: false, name: "b".to_owned() },
            ),
            (Reported::Started { parent: 6, by: 9 }, What::Start { parent: 6, by: 9 }),
            (Reported::Ended, What::End),
            (Reported::Lost(41), What::Lost(41)),
        ];
        for (what, kept) in reported {
            let reported = latlab_perf::Record { time_ns: 50, pid: 7, tid: 8, event: 5, what };
            assert_eq!(Record::from(reported), Record { time: 50, pid: 7, tid: 8, what: kept });
        }
    }

    #[test]
    fn a_wake_up_is_the_threads_own_work_and_of_another_one() {
        let wakes = Wakes { waking: 1, flags: 2, pid: 24, signal: 2, number: 8 };
        let mut raw = [0_u8; 36];
        raw[24..28].copy_from_slice(&77_u32.to_ne_bytes());
        // Preemption or interrupts may be off meanwhile.
        for (flags, woken) in [(0, Some(77)), (0x01 | 0x04 | 0x80, Some(77)), (0x08, None), (0x10, None)] {
            raw[2] = flags;
            assert_eq!(wakes.woken(&raw, 8), woken, "{flags:#x}");
        }
        raw[2] = 0;
        assert_eq!(wakes.woken(&raw, 77), None, "itself");
        for damaged in 0..28 {
            assert_eq!(wakes.woken(&raw[..damaged], 8), None);
        }
        assert_eq!(Wakes { pid: usize::MAX, ..wakes }.woken(&raw, 8), None);
        for (signal, reported) in [(libc::SIGCHLD, Some(What::ChildEnded)), (libc::SIGTERM, None)] {
            raw[8..12].copy_from_slice(&signal.to_ne_bytes());
            assert_eq!(wakes.reported(Event::Signal, &raw, 8), reported);
            assert_eq!(wakes.reported(Event::Signal, &raw[..11], 8), None);
        }
    }

    #[test]
    fn who_ends_a_wait_is_recorded_where_tracefs_can_be_read() {
        let mut recorder = Recorder::of(true, LEAST_PERIOD_NS);
        let this = this_thread();
        if recorder.start(&[this], false).is_err() || recorder.wakes.is_err() {
            return;
        }
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (tell, reported) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            tell.send(this_thread()).unwrap();
            while receive.recv().is_ok() {}
        });
        let other_tid = reported.recv().unwrap();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            send.send(()).unwrap();
        }
        drop(send);
        other.join().unwrap();
        recorder.stop();
        let mut records = Vec::new();
        recorder.drain(|record, _| records.push(record));
        let wakes = records
            .iter()
            .filter(|record| record.tid == this && record.what == What::Wake { thread: other_tid });
        assert!(wakes.count() >= 10, "it may be awake now and then");
    }

    #[test]
    fn rings_are_whole_pages_within_what_may_be_locked_on_any_machine() {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            // The kernel's own default: 512 KiB and a page.
            let usual = (512 << 10) + page;
            for cpus in 1..=512 {
                for lock in [None, Some(usual), Some(64 << 10), Some(0)] {
                    let bytes = bytes_of_each(cpus, page, lock);
                    assert!(bytes.is_multiple_of(page) && (bytes / page).is_power_of_two(), "{cpus} {page}");
                    assert!(cpus * bytes <= ALL_BYTES || bytes <= LEAST_BYTES.max(page), "{cpus} {page}");
                    assert!(bytes <= MOST_BYTES);
                    // One page is the least that the kernel makes.
                    assert!(bytes == page || lock.is_none_or(|lock| bytes + page <= lock), "{cpus} {page}");
                }
                assert_eq!(
                    bytes_of_each(cpus, page, Some(usual)),
                    bytes_of_each(cpus, page, None).min(512 << 10)
                );
            }
        }
        assert_eq!(bytes_of_each(2, 4096, None), MOST_BYTES);
        assert_eq!(bytes_of_each(512, 64 << 10, None), 64 << 10);
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn a_ring_has_room_for_an_eighth_of_a_seconds_samples_of_any_size() {
        for (ring, bytes) in [(MOST_BYTES, 8192), (512 << 10, 4096), (LEAST_BYTES, 256), (usize::MAX, 8192)] {
            assert_eq!(detail(ring, MOST_STACK), Detail::Stack { bytes });
            assert!(usize::from(bytes) * SAMPLES <= ring);
        }
        assert_eq!(detail(MOST_BYTES, 0), Detail::Chain);
        assert_eq!(detail(0, MOST_STACK), Detail::Chain);
    }
}
