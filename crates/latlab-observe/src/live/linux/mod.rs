//! Linux: the interrupt flag, rseq, perf records, tracepoints, counters.

mod affinity;
mod counters;
#[cfg_attr(target_arch = "x86_64", path = "interrupt_flag_x86.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "interrupt_flag_elsewhere.rs")]
mod interrupt_flag;
mod records;
mod requests;
mod roles;
mod rseq;
#[cfg_attr(target_arch = "x86_64", path = "thread_pointer_x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "thread_pointer_aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "thread_pointer_elsewhere.rs")]
mod thread_pointer;
mod tracepoints;

pub(crate) mod disturb;

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use latlab_clock::{Clock, OsClockId, os_clock};
use latlab_perf::{Detail, Flags, Kind, Record, Ring, Tracefs, What, Whose, close_beside, held, reason};

use crate::cause::{Cause, Event, Proof};
use crate::level::{Level, Rung, Wanted};
use roles::Role;

pub use affinity::{is_pinned_to, pin_to};
pub(crate) use counters::{DelayFile, ThreadCounters};
pub(crate) use interrupt_flag::InterruptFlag;
pub(crate) use rseq::RseqFlag;

/// The clock that records are stamped with.
const RECORD_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
/// Room for the records of one thread between two drains: 256 KiB are 5,000 of them, and half of what an
/// ordinary user may lock.
const THREAD_BYTES: usize = 256 << 10;
/// Room for the tracepoints of one CPU; root may lock more.
const CPU_BYTES: usize = 4 << 20;

/// Room for the requests that one CPU handed over or saw ended: 4,000 of them.
const REQUEST_BYTES: usize = 512 << 10;
/// On more CPUs than this requests are not watched: half a mebibyte for each would be memory that the run
/// does not report it takes.
const MOST_CPUS: u32 = 64;

/// Keep the tracepoints of requests in use from the first probe of a disk to the end of the process, so that
/// the kernel waits for their end once, not after each probe.
static HELD: OnceLock<Vec<OwnedFd>> = OnceLock::new();

/// The records of one thread and, with permission, of its CPU. Bound to the thread that opened it.
#[derive(Debug)]
pub(crate) struct Sources {
    rings: Vec<Ring>,
    devices: Devices,
    roles: HashMap<u64, Role>,
    tid: u32,
    bridge: Option<Bridge>,
    rungs: Vec<Rung>,
    wanted: Wanted,
    pub(crate) sees_switches: bool,
    pub(crate) sees_faults: bool,
    pub(crate) sees_requests: bool,
}

impl Drop for Sources {
    fn drop(&mut self) {
        let rings = self.rings.drain(..).chain(self.devices.rings.drain(..));
        close_beside(rings.flat_map(Ring::into_events).collect());
    }
}

/// Requests to block devices.
#[derive(Debug, Default)]
struct Devices {
    /// One a CPU: a device's answer comes to any of them.
    rings: Vec<Ring>,
    /// Whether they are written to now.
    recorded: bool,
    /// Numbers of those that this thread uses.
    used: HashSet<u32>,
}

/// The same moments by the run's clock, ticks, and by the one that records are stamped with, ns.
#[derive(Clone, Copy, Debug)]
struct Bridge {
    kernel: OsClockId,
    first: (u64, u64),
    last: (u64, u64),
}

/// Every one of these is recorded.
fn event(kind: Kind, flags: Flags, detail: Detail) -> latlab_perf::Event {
    latlab_perf::Event { kind, period: 1, flags, detail, clock: RECORD_CLOCK, deepest: 0 }
}

/// A tracepoint, with what its role looks at.
fn of_point(point: &tracepoints::Point) -> latlab_perf::Event<'static> {
    event(Kind::Tracepoint(point.id), Flags::empty(), point.role.detail())
}

impl Bridge {
    fn new(clock: &Clock) -> Option<Self> {
        let kernel = os_clock("CLOCK_MONOTONIC_RAW")?;
        let first = clock.beside(kernel)?;
        Some(Self { kernel, first, last: first })
    }

    /// A time of the kernel's by the run's clock.
    fn at_ns(&self, clock: &Clock, kernel_ns: u64) -> f64 {
        let ((first, from), (last, to)) = (self.first, self.last);
        let (first, last) = (clock.at_ns(first), clock.at_ns(last));
        // Anchors of the same moment say nothing about the rate; both clocks then tick alike.
        let rate = if to > from + 1_000_000 { (last - first) / (to - from) as f64 } else { 1.0 };
        if kernel_ns >= from {
            first + (kernel_ns - from) as f64 * rate
        } else {
            first - (from - kernel_ns) as f64 * rate
        }
    }
}

impl Sources {
    /// Opens what may be opened of what is wanted, for the calling thread on `cpu`; says why what is missing
    /// is.
    pub(crate) fn open(clock: &Clock, cpu: Option<u32>, wanted: Wanted) -> Self {
        let highest = wanted.highest;
        let mut sources = Self {
            rings: Vec::new(),
            devices: Devices::default(),
            roles: HashMap::new(),
            tid: rustix::thread::gettid().as_raw_pid().cast_unsigned(),
            bridge: Bridge::new(clock),
            rungs: Vec::new(),
            wanted,
            sees_switches: false,
            sees_faults: false,
            sees_requests: false,
        };
        let perf = if highest < Level::PerfRecords {
            Rung::missing(Level::PerfRecords, "not asked for")
        } else if sources.bridge.is_none() {
            Rung::missing(Level::PerfRecords, "CLOCK_MONOTONIC_RAW cannot be read")
        } else {
            sources.open_thread()
        };
        let tracepoints = match cpu {
            _ if highest < Level::Tracepoints => Rung::missing(Level::Tracepoints, "not asked for"),
            None => Rung::missing(Level::Tracepoints, "the thread is not pinned to one CPU"),
            Some(_) if sources.bridge.is_none() => {
                Rung::missing(Level::Tracepoints, "CLOCK_MONOTONIC_RAW cannot be read")
            }
            Some(cpu) => sources.open_cpu(cpu),
        };
        sources.rungs = vec![perf, tracepoints];
        if wanted.requests && sources.bridge.is_some() {
            sources.open_requests();
        }
        sources
    }

    pub(crate) fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The records that an ordinary user may have of the own thread. Switches come as records of an event
    /// that counts nothing: counting them gives zero without permission to look into the kernel, as that is
    /// where they happen.
    fn open_thread(&mut self) -> Rung {
        let mut refused = Vec::new();
        let mut ring: Option<Ring> = None;
        let faults = Role::Moment(Cause::PageFault, Proof::FaultRecord);
        for (name, kind, flags, role) in [
            ("switches", Kind::Dummy, Flags::CONTEXT_SWITCH, Role::Switches),
            ("page faults", Kind::PageFaults, Flags::empty(), faults),
        ] {
            let is_switches = role == Role::Switches;
            if !is_switches && !self.wanted.faults {
                continue;
            }
            let event = event(kind, flags | Flags::EXCLUDE_KERNEL | Flags::EXCLUDE_HV, Detail::None);
            match add(&mut ring, event, Whose::ThisThread, THREAD_BYTES) {
                Ok(id) => {
                    self.roles.insert(id, role);
                    self.sees_switches |= is_switches;
                    self.sees_faults |= !is_switches;
                }
                Err(error) => refused.push(format!("{name}: {}", reason(&error))),
            }
        }
        self.rings.extend(ring);
        Rung {
            level: Level::PerfRecords,
            available: self.sees_switches || self.sees_faults,
            reason: (!refused.is_empty()).then(|| refused.join("; ")),
        }
    }

    fn open_cpu(&mut self, cpu: u32) -> Rung {
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(reason) => return Rung::missing(Level::Tracepoints, reason),
        };
        let mut refused: Vec<String> = Vec::new();
        let mut ring: Option<Ring> = None;
        let mut any = false;
        for point in tracepoints::wanted(&tracefs, self.sees_faults || !self.wanted.faults) {
            match add(&mut ring, of_point(&point), Whose::Everybody { cpu }, CPU_BYTES) {
                Ok(id) => {
                    any = true;
                    self.roles.insert(id, point.role);
                }
                Err(error) => {
                    refused.push(format!("{}: {}", point.name, reason(&error)));
                    if !any {
                        // What refuses the first refuses them all: one reason is enough.
                        break;
                    }
                }
            }
        }
        self.rings.extend(ring);
        let reason = if any || !refused.is_empty() {
            (!refused.is_empty()).then(|| refused.join("; "))
        } else {
            Some("this kernel has no tracepoints of interrupts".to_owned())
        };
        Rung { level: Level::Tracepoints, available: any, reason }
    }

    /// All or none: a request whose end nobody saw would be taken for one that the device did not have.
    fn open_requests(&mut self) {
        let cpus = latlab_perf::cpus();
        let tracefs = Tracefs::open().ok().filter(|_| cpus <= MOST_CPUS);
        let Some(points) = tracefs.and_then(|tracefs| tracepoints::requests(&tracefs)) else { return };
        HELD.get_or_init(|| held(&points.each_ref().map(|point| point.id)));
        let mut rings = Vec::new();
        for cpu in 0..cpus {
            let mut ring: Option<Ring> = None;
            for point in &points {
                match add(&mut ring, of_point(point), Whose::Everybody { cpu }, REQUEST_BYTES) {
                    Ok(id) => drop(self.roles.insert(id, point.role.clone())),
                    // Switched off: no request comes there.
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                    Err(_) => return,
                }
            }
            rings.extend(ring);
        }
        self.devices.rings = rings;
    }

    /// Spans in which devices had requests of this thread.
    fn drain_requests(&mut self) -> Vec<(u64, u64)> {
        let devices = &mut self.devices;
        let (records, lost) = drain(&mut devices.rings, |_| Detail::Raw);
        let found = requests::at_devices(records, &self.roles, self.tid, &mut devices.used);
        self.sees_requests = devices.recorded && !devices.used.is_empty() && lost == 0;
        found
    }

    pub(crate) fn record_requests(&mut self, on: bool) {
        for ring in &self.devices.rings {
            ring.switch_all(on);
        }
        self.devices.recorded = on && !self.devices.rings.is_empty();
    }

    /// From now on records are written.
    pub(crate) fn start(&mut self, clock: &Clock) {
        for ring in &self.rings {
            ring.switch_all(true);
        }
        self.drain(clock);
    }

    /// From now on no records are written.
    pub(crate) fn stop(&mut self) {
        for ring in &self.rings {
            ring.switch_all(false);
        }
    }

    /// What happened since the last drain, and how many records were lost. No system call but reading the
    /// clock.
    pub(crate) fn drain(&mut self, clock: &Clock) -> (Vec<Event>, u64) {
        let Some(bridge) = &mut self.bridge else { return (Vec::new(), 0) };
        if self.rings.is_empty() {
            return (Vec::new(), 0);
        }
        if let Some(now) = clock.beside(bridge.kernel) {
            bridge.last = now;
        }
        let bridge = *bridge;
        let at_ns = |time| bridge.at_ns(clock, time);
        let roles = &self.roles;
        let detail = |event: u64| roles.get(&event).map_or(Detail::None, Role::detail);
        let (records, lost) = drain(&mut self.rings, detail);
        let mut events = records::assemble(records, roles, self.tid, self.wanted.sleeps, at_ns);
        let requests = self.drain_requests();
        events.extend(requests.into_iter().map(|(begun, ended)| Event {
            cause: Cause::Device,
            proof: Proof::Tracepoint,
            at_ns: at_ns(begun),
            end_ns: Some(at_ns(ended)),
            who: None,
        }));
        (events, lost)
    }
}

/// Opens an event into a ring, making the ring with the first.
fn add(
    ring: &mut Option<Ring>,
    event: latlab_perf::Event<'static>,
    whose: Whose,
    bytes: usize,
) -> std::io::Result<u64> {
    if let Some(ring) = ring {
        return ring.join(event, whose);
    }
    let (made, id) = Ring::open(event, whose, bytes)?;
    *ring = Some(made);
    Ok(id)
}

/// All records of these rings, and how many were lost.
fn drain(rings: &mut [Ring], detail: impl Fn(u64) -> Detail + Copy) -> (Vec<Record<'_>>, u64) {
    let mut lost = 0;
    let mut records: Vec<Record<'_>> = Vec::new();
    for ring in rings {
        records.extend(ring.drain(detail).filter(|record| !is_of_lost(record, &mut lost)));
    }
    (records, lost)
}

/// Whether a record says how many were lost, which are then added to `lost`.
fn is_of_lost(record: &Record, lost: &mut u64) -> bool {
    let What::Lost(count) = record.what else { return false };
    *lost += count;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_records_are_counted_and_are_no_records_themselves() {
        let reported = [What::Lost(41), What::SwitchedIn, What::Lost(1)];
        let records = reported.map(|what| Record { time_ns: 1, pid: 7, tid: 8, event: 5, what });
        let mut lost = 0;
        let of_lost = records.map(|record| is_of_lost(&record, &mut lost));
        assert_eq!((of_lost, lost), ([true, false, true], 42));
    }
}
