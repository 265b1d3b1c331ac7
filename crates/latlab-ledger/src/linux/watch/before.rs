//! What a process had used when it began to be watched.

use crate::io::Io;
use crate::system::launch::Ended;
use crate::system::proc_file::{after_name, io_of, text};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) queue_ns: u64,
    pub(super) faults: u64,
    pub(super) major_faults: u64,
    pub(super) switches: (u64, u64),
    pub(super) io: Option<Io>,
    resident: u64,
}

impl Before {
    /// Of the process that is to become the program: its CPU time is not the program's.
    pub(super) fn of(pid: u32) -> Self {
        let line = text(&format!("/proc/{pid}/schedstat"));
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
        let (system_ns, queue_ns) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { system_ns, queue_ns, faults: stat_field(pid, 7), io: io_of(pid), ..Self::default() }
    }

    /// Of a process that runs already.
    pub(super) fn of_running(pid: u32) -> Self {
        // SAFETY: asks for a number.
        let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
        let ns = |field| stat_field(pid, field) * (1_000_000_000 / ticks);
        let status = text(&format!("/proc/{pid}/status"));
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Self {
            user_ns: ns(11),
            system_ns: ns(12),
            queue_ns: 0,
            faults: stat_field(pid, 7),
            major_faults: stat_field(pid, 9),
            switches: (
                of("voluntary_ctxt_switches:").unwrap_or(0),
                of("nonvoluntary_ctxt_switches:").unwrap_or(0),
            ),
            io: io_of(pid),
            resident: of("VmHWM:").unwrap_or(0) * 1024,
        }
    }

    pub(super) fn ended(self) -> Ended {
        Ended {
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            minor_faults: self.faults,
            major_faults: self.major_faults,
            voluntary_switches: self.switches.0,
            involuntary_switches: self.switches.1,
            max_resident_bytes: self.resident,
            ..Ended::default()
        }
    }
}

/// A number of `/proc/PID/stat`, counted from the state, 0.
fn stat_field(pid: u32, field: usize) -> u64 {
    let stat = text(&format!("/proc/{pid}/stat"));
    after_name(&stat).and_then(|rest| rest.split(' ').nth(field)?.parse().ok()).unwrap_or(0)
}
