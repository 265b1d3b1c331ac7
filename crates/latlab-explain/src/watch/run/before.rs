//! What a process had used when it began to be watched.

use rustix::param::clock_ticks_per_second;

use crate::account::tally::Usage;
use crate::watch::proc_file::{field, io_of, text, value};

/// Of the process that is to become the program: its CPU time is not the program's.
pub(super) fn of(pid: u32) -> Usage {
    let line = text(&format!("/proc/{pid}/schedstat"));
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    Usage {
        system_ns: numbers.next().unwrap_or(0),
        minor_faults: stat_field(pid, 7),
        io: io_of(pid),
        ..Usage::default()
    }
}

/// Of a process that runs already.
pub(super) fn of_running(pid: u32) -> Usage {
    let ns = |field| stat_field(pid, field) * (1_000_000_000 / clock_ticks_per_second().max(1));
    let status = text(&format!("/proc/{pid}/status"));
    let of = |name: &str| value(&status, name)?.split_whitespace().next()?.parse::<u64>().ok();
    Usage {
        user_ns: ns(11),
        system_ns: ns(12),
        minor_faults: stat_field(pid, 7),
        major_faults: stat_field(pid, 9),
        voluntary_switches: of("voluntary_ctxt_switches:").unwrap_or(0),
        involuntary_switches: of("nonvoluntary_ctxt_switches:").unwrap_or(0),
        max_resident_bytes: of("VmHWM:").unwrap_or(0) * 1024,
        io: io_of(pid),
        ..Usage::default()
    }
}

/// A number of `/proc/PID/stat`, counted from the state, 0.
fn stat_field(pid: u32, at: usize) -> u64 {
    field(&text(&format!("/proc/{pid}/stat")), at).unwrap_or(0)
}
