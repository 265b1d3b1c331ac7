//! Every call that a program makes, by the tracepoints `raw_syscalls`: for those who allow any overhead, as root at level 1.
//!
//! The records have rings of their own: a call is two of them, a hundred bytes each, and what there is no room for is no other record.

use std::collections::HashMap;
use std::io;

use latlab_perf::{Detail, Event, Flags, Kind, Ring, Tracefs, What, Whose};
use syscalls::Errno;

use crate::account::calls::{Calls, Sum};
use crate::model;
use crate::watch::calls;

const CALL: &str = "raw_syscalls/sys_enter";
const RETURN: &str = "raw_syscalls/sys_exit";
/// Records of all rings together, and the most of one, bytes: those are 10,000 calls and their returns.
const ALL_BYTES: usize = 64 << 20;
const MOST_BYTES: usize = 2 << 20;
/// Records of different CPUs are put in order; one may come this late.
const LATE_NS: u64 = 3_000_000;

/// One of the two tracepoints: its number, and where its fields lie.
#[derive(Clone, Copy, Debug)]
struct Point {
    id: u64,
    number: usize,
    /// Of a return.
    result: Option<usize>,
}

impl Point {
    fn find(tracefs: &Tracefs, name: &str, result: Option<&str>) -> Option<Self> {
        let offset = |field| tracefs.offset(name, field);
        let result = match result {
            Some(field) => Some(offset(field)?),
            None => None,
        };
        Some(Self { id: tracefs.id(name)?, number: offset("id")?, result })
    }

    /// The number of the call, and what it returns if it does; `None` where the record is damaged.
    fn told(self, raw: &[u8]) -> Option<(i64, Option<i64>)> {
        let field = |at: usize| Some(i64::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let result = match self.result {
            Some(at) => Some(field(at)?),
            None => None,
        };
        Some((field(self.number)?, result))
    }

    fn event(self, start: Flags) -> Event {
        Event {
            kind: Kind::Tracepoint(self.id),
            period: 1,
            flags: start | Flags::INHERIT | Flags::EXCLUDE_HV,
            detail: Detail::Raw,
            clock: libc::CLOCK_MONOTONIC,
            deepest: 0,
        }
    }
}

/// A record: when, of which thread, of which call, and what it returns if it does.
type Step = (u64, u32, i64, Option<i64>);

/// See the module.
#[derive(Debug)]
pub(crate) struct Traced {
    points: [Point; 2],
    rings: Vec<(u32, Ring)>,
    events: HashMap<u64, Point>,
    /// What has been read, the last of it not yet counted.
    late: Vec<Step>,
    calls: Calls,
}

impl Traced {
    /// Nothing is open yet. `None`: the kernel does not tell of calls, or not this user.
    pub(crate) fn find() -> Option<Self> {
        let tracefs = Tracefs::open().ok()?;
        Some(Self {
            points: [Point::find(&tracefs, CALL, None)?, Point::find(&tracefs, RETURN, Some("ret"))?],
            rings: Vec::new(),
            events: HashMap::new(),
            late: Vec::new(),
            calls: Calls::default(),
        })
    }

    fn open() -> io::Result<Vec<(u32, Ring)>> {
        let own = Event {
            kind: Kind::Dummy,
            period: 1,
            flags: Flags::EXCLUDE_KERNEL,
            detail: Detail::None,
            clock: libc::CLOCK_MONOTONIC,
            deepest: 0,
        };
        Ring::of_each_cpu(own, |cpus| (ALL_BYTES / cpus).min(MOST_BYTES))
    }

    /// Follows these threads and whatever they start. `on_exec`: from the next exec on; else at once.
    ///
    /// # Errors
    /// The kernel refuses an event; nothing is followed then.
    pub(crate) fn start(&mut self, threads: &[u32], on_exec: bool) -> io::Result<()> {
        if self.rings.is_empty() {
            self.rings = Self::open()?;
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
        for (_, ring) in &mut self.rings {
            for told in ring.drain(|_| Detail::Raw) {
                match &told.what {
                    What::Sample(sample) => {
                        let point = self.events.get(&told.event);
                        if let Some((number, result)) = point.and_then(|point| point.told(sample.raw())) {
                            self.late.push((told.time_ns, told.tid, number, result));
                        }
                    }
                    What::Lost(records) => self.calls.lost += records,
                    _ => {}
                }
            }
        }
        // Of one moment, a thread comes back before it calls again.
        self.late.sort_by_key(|step| (step.0, step.3.is_none()));
        let newest = self.late.last().map_or(0, |step| step.0);
        let until = if all { u64::MAX } else { newest.saturating_sub(LATE_NS) };
        let ready = self.late.partition_point(|step| step.0 < until);
        for (time, thread, number, result) in self.late.drain(..ready) {
            match result {
                None => self.calls.begins(time, thread, number),
                Some(result) => self.calls.ends(time, thread, number, result),
            }
        }
    }

    /// What the program asked of the kernel, those that took longest first.
    pub(crate) fn told(&mut self) -> model::Calls {
        self.read(true);
        let mut of: Vec<model::Call> = self.calls.of.iter().map(|(number, sum)| call(*number, sum)).collect();
        of.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
        model::Calls { of, lost: self.calls.lost }
    }
}

fn call(number: i64, sum: &Sum) -> model::Call {
    let mut errors: Vec<model::CallError> = sum
        .errors
        .iter()
        .map(|(error, times)| model::CallError { name: error_name(*error), times: *times })
        .collect();
    errors.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.name.cmp(&b.name)));
    model::Call {
        name: calls::name(number).map_or_else(|| number.to_string(), ToOwned::to_owned),
        times: sum.times,
        seconds: sum.ns as f64 / 1e9,
        longest_s: sum.longest_ns as f64 / 1e9,
        errors,
    }
}

fn error_name(error: i64) -> String {
    let known = i32::try_from(error).ok().and_then(|error| Errno::new(error).name());
    known.map_or_else(|| error.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_tells_its_call_and_what_it_returns() {
        let point = Point { id: 1, number: 8, result: Some(16) };
        let mut raw = [0_u8; 24];
        raw[8..16].copy_from_slice(&3_i64.to_ne_bytes());
        raw[16..].copy_from_slice(&(-2_i64).to_ne_bytes());
        assert_eq!(point.told(&raw), Some((3, Some(-2))));
        assert_eq!(Point { result: None, ..point }.told(&raw), Some((3, None)));
        for damaged in 0..raw.len() {
            assert_eq!(point.told(&raw[..damaged]), None);
        }
        assert_eq!(Point { number: usize::MAX, ..point }.told(&raw), None);
    }

    #[test]
    fn calls_and_errors_have_their_names_or_their_numbers() {
        let errors = [(libc::ENOENT.into(), 2), (99_999, 3)].into();
        let told = call(libc::SYS_openat, &Sum { times: 9, ns: 2_000_000_000, longest_ns: 500, errors });
        assert_eq!((told.name.as_str(), told.times, told.seconds, told.longest_s), ("openat", 9, 2.0, 5e-7));
        let errors: Vec<(&str, u64)> =
            told.errors.iter().map(|error| (error.name.as_str(), error.times)).collect();
        assert_eq!(errors, [("99999", 3), ("ENOENT", 2)]);
        assert_eq!(call(1_000_000, &Sum::default()).name, "1000000");
    }
}
