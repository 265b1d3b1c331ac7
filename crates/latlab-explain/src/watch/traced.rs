//! Every call that a program makes, by the tracepoints `raw_syscalls`: for those who allow any overhead, as
//! root at level 1.
//!
//! The records have rings of their own: a call is two of them, a hundred bytes each, and what there is no
//! room for is no other record.

use std::collections::HashMap;
use std::io::{self, Read as _};

use latlab_perf::{Detail, Event, Flags, Kind, Ring, Tracefs, What, Whose};
use syscalls::Errno;

use crate::account::calls::Calls;
use crate::account::calls_on::{CallsOn, Meaning, On, Sum, meaning};
use crate::account::files::Kind as FileKind;
use crate::model;
use crate::watch::calls;
use crate::watch::clock::{LATE_NS, now_ns};

const CALL: &str = "raw_syscalls/sys_enter";
const RETURN: &str = "raw_syscalls/sys_exit";
/// Records of all rings together, and the most of one, bytes: those are 10,000 calls and their returns.
const ALL_BYTES: usize = 64 << 20;
const MOST_BYTES: usize = 2 << 20;
/// Calls after which a process runs another program.
const EXECS: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];
/// Processes of which it is known what they run.
const MOST_PROCESSES: usize = 65_536;
/// Calls have smaller numbers.
const MOST_NUMBERS: i64 = 1_024;
/// Files that are reported.
const MOST_FILES: usize = 64;

/// One of the two tracepoints: its number, and where its fields lie.
#[derive(Clone, Copy, Debug)]
struct Point {
    id: u64,
    number: usize,
    /// Arguments of a call, the result of a return.
    more: usize,
    is_call: bool,
}

/// What a record tells beside the number of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reported {
    /// Of nothing: records were lost here, or none were made.
    Gap,
    /// What the call returned. Of one moment, a thread comes back before it calls again.
    Return(i64),
    /// Its first arguments.
    Call([u64; 3]),
}

impl Point {
    fn find(tracefs: &Tracefs, name: &str, more: &str, is_call: bool) -> Option<Self> {
        let offset = |field| tracefs.offset(name, field);
        Some(Self { id: tracefs.id(name)?, number: offset("id")?, more: offset(more)?, is_call })
    }

    /// The number of the call, and what else is reported; `None` where the record is damaged.
    fn reported(self, raw: &[u8]) -> Option<(i64, Reported)> {
        let field = |at: usize| Some(i64::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let argument = |nth: usize| Some(field(self.more.checked_add(8 * nth)?)?.cast_unsigned());
        let reported = if self.is_call {
            Reported::Call([argument(0)?, argument(1)?, argument(2)?])
        } else {
            Reported::Return(field(self.more)?)
        };
        Some((field(self.number)?, reported))
    }

    fn event(self, start: Flags) -> Event<'static> {
        let flags = start | Flags::INHERIT | Flags::EXCLUDE_HV;
        Event { detail: Detail::Raw, ..Event::of(Kind::Tracepoint(self.id), flags) }
    }
}

/// A record: when, of which process and thread, of which call, and what else.
type Step = (u64, (u32, u32), i64, Reported);

/// See the module.
#[derive(Debug)]
pub(crate) struct Traced {
    points: [Point; 2],
    rings: Vec<(u32, Ring)>,
    events: HashMap<u64, Point>,
    /// What has been read, the last of it not yet counted.
    late: Vec<Step>,
    /// Whether processes run programs of 32 bits, whose calls have other numbers.
    narrow: HashMap<u32, bool>,
    has_narrow: bool,
    /// How often it was stopped and started again.
    restarts: u64,
    /// The time of the newest record.
    newest: u64,
    /// What calls do with descriptors, by number; what is not in it does nothing with any.
    meanings: HashMap<i64, Meaning>,
    calls: Calls,
}

impl Traced {
    /// Nothing is open yet. `None`: the kernel does not tell of calls, or not this user.
    pub(crate) fn find() -> Option<Self> {
        let tracefs = Tracefs::open().ok()?;
        Some(Self {
            points: [
                Point::find(&tracefs, CALL, "args", true)?,
                Point::find(&tracefs, RETURN, "ret", false)?,
            ],
            rings: Vec::new(),
            events: HashMap::new(),
            late: Vec::new(),
            narrow: HashMap::new(),
            has_narrow: false,
            restarts: 0,
            newest: 0,
            meanings: (0..MOST_NUMBERS)
                .filter_map(|number| Some((number, meaning(calls::name(number)?))))
                .collect(),
            calls: Calls::default(),
        })
    }

    fn open() -> io::Result<Vec<(u32, Ring)>> {
        let own = Event::of(Kind::Dummy, Flags::EXCLUDE_KERNEL);
        Ring::of_each_cpu(own, |cpus| (ALL_BYTES / cpus).min(MOST_BYTES))
    }

    /// Follows these threads and whatever they start. `on_exec`: from the next exec on; else at once.
    /// Errors: the kernel refuses an event; nothing is followed then.
    pub(crate) fn start(&mut self, threads: &[u32], on_exec: bool) -> io::Result<()> {
        if self.rings.is_empty() {
            self.rings = Self::open()?;
        } else {
            // Since it was stopped, anything may have been opened and closed.
            self.restarts += 1;
            self.late.push((now_ns(), (0, 0), 0, Reported::Gap));
        }
        self.events.clear();
        let start = if on_exec { Flags::ENABLE_ON_EXEC } else { Flags::empty() };
        for &tid in threads {
            for (cpu, ring) in &mut self.rings {
                for point in self.points {
                    match ring.join(point.event(start), Whose::Thread { tid, cpu: *cpu }) {
                        Ok(id) => drop(self.events.insert(id, point)),
                        // It has ended meanwhile.
                        Err(error) if !on_exec && error.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(error) => {
                            self.stop();
                            return Err(error);
                        }
                    }
                }
            }
        }
        if !on_exec {
            self.rings.iter().for_each(|(_, ring)| ring.switch_all(true));
        }
        Ok(())
    }

    /// Closes all events; what they have recorded stays to be read.
    pub(crate) fn stop(&mut self) {
        self.rings.iter_mut().for_each(|(_, ring)| ring.leave());
    }

    /// Counts what has come, but for what another CPU may yet have something before; `all`: that too.
    pub(crate) fn read(&mut self, all: bool) {
        let mut asked = Vec::new();
        // Those may have become something else.
        self.narrow.retain(|_, narrow| !*narrow);
        for (_, ring) in &mut self.rings {
            let mut last = self.newest.saturating_sub(LATE_NS);
            for reported in ring.drain(|_| Detail::Raw) {
                match &reported.what {
                    What::Sample(sample) => {
                        let point = self.events.get(&reported.event);
                        if self.narrow.len() >= MOST_PROCESSES {
                            self.narrow.clear();
                        }
                        if *self.narrow.entry(reported.pid).or_insert_with(|| is_narrow(reported.pid)) {
                            self.has_narrow = true;
                        } else if let Some((number, more)) =
                            point.and_then(|point| point.reported(sample.raw()))
                        {
                            if more == Reported::Return(0) && EXECS.contains(&number) {
                                self.narrow.remove(&reported.pid);
                            }
                            let meaning = self.meanings.get(&number);
                            if let (Some(meaning), Reported::Return(result)) = (meaning, more)
                                && let Some(opened) = CallsOn::opened(meaning.effect, 0, result)
                            {
                                asked.push((reported.pid, opened));
                            }
                            self.late.push((reported.time_ns, (reported.pid, reported.tid), number, more));
                        }
                    }
                    What::Lost(records) => {
                        self.calls.lost += records;
                        // Some time between these two.
                        self.late
                            .extend([last, reported.time_ns].map(|time| (time, (0, 0), 0, Reported::Gap)));
                    }
                    _ => {}
                }
                last = reported.time_ns;
            }
        }
        // Before what was opened is closed again, which may be soon.
        asked.sort_unstable();
        asked.dedup();
        for (process, number) in asked {
            let from = now_ns();
            if let Some(target) = target(process, number) {
                self.calls.on.found_early(process, number, target, [from, now_ns()]);
            }
        }
        self.late.sort_by_key(|step| (step.0, step.3));
        self.newest = self.late.last().map_or(self.newest, |step| step.0.max(self.newest));
        let until = if all { u64::MAX } else { self.newest.saturating_sub(LATE_NS) };
        let ready = self.late.partition_point(|step| step.0 < until);
        for (time, of, number, reported) in self.late.drain(..ready) {
            let call = (number, self.meanings.get(&number).copied().unwrap_or(Meaning::NOTHING));
            match reported {
                Reported::Call(arguments) => self.calls.begins(time, of, call, arguments),
                Reported::Return(result) => self.calls.ends(time, of, call, result),
                Reported::Gap => self.calls.gap(time),
            }
        }
        for (id, process, number) in self.calls.on.not_asked() {
            if let Some(target) = target(process, number) {
                self.calls.on.found(id, target, now_ns());
            }
        }
    }

    /// What the program asked of the kernel, those that took longest first.
    /// `process`: the name of one; `peer`: what a socket is connected to.
    pub(crate) fn reported(
        &mut self,
        process: impl Fn(u32) -> String,
        peer: impl Fn(&str) -> Option<String>,
    ) -> model::Calls {
        self.read(true);
        self.calls.on.end();
        let mut of: Vec<model::Call> = self
            .calls
            .of
            .iter()
            .map(|(number, sum)| model::Call { name: call_name(*number), sum: reported(sum) })
            .collect();
        of.sort_by(|a, b| b.sum.seconds.total_cmp(&a.sum.seconds).then_with(|| a.name.cmp(&b.name)));
        let mut on: Vec<_> = self.calls.on.of.iter().collect();
        on.sort_by_key(|(_, on)| std::cmp::Reverse(on.sum.ns));
        let left_out = on.len().saturating_sub(MOST_FILES);
        on.truncate(MOST_FILES);
        let row = |((number, target), on): (&(u32, Option<String>), &On)| model::CallsOn {
            name: target.as_ref().map(|target| peer(target).unwrap_or_else(|| target.clone())),
            kind: target.as_ref().map(|target| FileKind::of(target).to_string()),
            process: *number,
            process_name: process(*number),
            sum: reported(&on.sum),
            read_bytes: on.read_bytes,
            written_bytes: on.written_bytes,
        };
        model::Calls {
            of,
            on: on.into_iter().map(row).collect(),
            left_out,
            has_narrow: self.has_narrow,
            restarts: self.restarts,
            lost: self.calls.lost + self.calls.on.crowded,
        }
    }
}

/// Whether a process runs a program of 32 bits.
fn is_narrow(process: u32) -> bool {
    let mut begin = [0; 5];
    let file = std::fs::File::open(format!("/proc/{process}/exe"));
    let read = file.and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"\x7fELF\x01"
}

/// What a descriptor is of now.
fn target(process: u32, number: u32) -> Option<String> {
    let target = std::fs::read_link(format!("/proc/{process}/fd/{number}")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

fn reported(sum: &Sum) -> model::CallSum {
    let mut errors: Vec<model::CallError> = sum
        .errors
        .iter()
        .map(|(error, times)| model::CallError { name: error_name(*error), times: *times })
        .collect();
    errors.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.name.cmp(&b.name)));
    let seconds = |ns: u64| ns as f64 / 1e9;
    model::CallSum { times: sum.times, seconds: seconds(sum.ns), longest_s: seconds(sum.longest_ns), errors }
}

fn call_name(number: i64) -> String {
    calls::name(number).map_or_else(|| number.to_string(), ToOwned::to_owned)
}

fn error_name(error: i64) -> String {
    let known = i32::try_from(error).ok().and_then(|error| Errno::new(error).name());
    known.map_or_else(|| error.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_tell_calls_with_their_arguments_and_what_they_return() {
        let call = Point { id: 1, number: 8, more: 16, is_call: true };
        let raw: Vec<u8> = [0_i64, 3, 4, 5, 6].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(call.reported(&raw), Some((3, Reported::Call([4, 5, 6]))));
        let end = Point { is_call: false, ..call };
        assert_eq!(end.reported(&raw[..24]), Some((3, Reported::Return(4))));
        for damaged in 0..24 {
            assert_eq!(end.reported(&raw[..damaged]), None);
            assert_eq!(call.reported(&raw[..damaged + 16]), None);
        }
        for at in [usize::MAX, usize::MAX - 8] {
            assert_eq!(Point { more: at, ..call }.reported(&raw), None);
        }
    }

    #[test]
    fn calls_and_errors_have_their_names_or_their_numbers() {
        let errors = [(libc::ENOENT.into(), 2), (99_999, 3)].into();
        let reported = reported(&Sum { times: 9, ns: 2_000_000_000, longest_ns: 500, errors });
        assert_eq!((reported.times, reported.seconds, reported.longest_s), (9, 2.0, 5e-7));
        let errors: Vec<(&str, u64)> =
            reported.errors.iter().map(|error| (error.name.as_str(), error.times)).collect();
        assert_eq!(errors, [("99999", 3), ("ENOENT", 2)]);
        assert_eq!([libc::SYS_openat, 1_000_000].map(call_name), ["openat", "1000000"]);
    }
}
