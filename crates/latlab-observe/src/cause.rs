//! The words of attribution: causes, what shows them, and events with their time.
//!
//! All times are nanoseconds since the run's [`latlab_clock::Clock`] was opened, as in a record's tail samples.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gaps::Taken;

/// What took the time of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Another thread ran on this CPU.
    ContextSwitch,
    /// Ready, but no CPU was free for it: the kernel counts how long, not when.
    RunQueueDelay,
    /// Asleep until what it had asked for was there: a device's answer, another thread's.
    Waiting,
    /// A block device had a request of the operation and had not done it.
    Device,
    /// The control group's CPU quota was used up.
    Throttled,
    /// A page was touched for which the kernel had to do something first.
    PageFault,
    /// The local timer's interrupt: the kernel's tick, or a timer that somebody set.
    TimerTick,
    /// Another CPU's request: reschedule, function call, TLB shootdown.
    Ipi,
    /// A device's interrupt.
    DeviceInterrupt,
    /// Some interrupt of this kernel, or an exception; which, could not be seen.
    Interrupt,
    /// Deferred work of the kernel after an interrupt.
    Softirq,
    /// A non-maskable interrupt.
    Nmi,
    /// Periodic, with the rate of a kernel's tick, and counted by no interrupt of this kernel.
    HostTick,
    /// Periodic, of unknown origin.
    Periodic,
    /// This kernel was not entered, and the work itself never takes so long: the host, the firmware or the hardware.
    Outside,
    /// No evidence names a cause.
    Unexplained,
}

impl Cause {
    /// The name as it stands in files: `context-switch`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ContextSwitch => "context-switch",
            Self::RunQueueDelay => "run-queue-delay",
            Self::Waiting => "waiting",
            Self::Device => "device",
            Self::Throttled => "throttled",
            Self::PageFault => "page-fault",
            Self::TimerTick => "timer-tick",
            Self::Ipi => "ipi",
            Self::DeviceInterrupt => "device-interrupt",
            Self::Interrupt => "interrupt",
            Self::Softirq => "softirq",
            Self::Nmi => "nmi",
            Self::HostTick => "host-tick",
            Self::Periodic => "periodic",
            Self::Outside => "outside",
            Self::Unexplained => "unexplained",
        }
    }

    /// Which of two causes owns a nanosecond that both cover: what is further inside. While another thread runs, its interrupts are its own.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::RunQueueDelay => 0,
            Self::ContextSwitch | Self::Throttled => 1,
            Self::Device => 2,
            Self::Waiting => 3,
            Self::Nmi => 4,
            Self::TimerTick | Self::Ipi | Self::DeviceInterrupt | Self::Interrupt => 5,
            Self::Softirq => 6,
            Self::PageFault => 7,
            Self::HostTick | Self::Periodic | Self::Outside => 8,
            Self::Unexplained => 9,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What shows a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The kernel's record of this thread's switches, with both times.
    SwitchRecord,
    /// The kernel's record of this thread's page faults.
    FaultRecord,
    /// The kernel's tracepoints on this CPU, at the begin and the end of a handler.
    Tracepoint,
    /// The kernel took back the thread's restartable sequence: it was preempted, migrated, or got a signal.
    RseqFlag,
    /// The processor cleared a selector of the thread, as it does on the way back from an interrupt or an exception; or it did not.
    InterruptFlag,
    /// It comes with a period, and at the time that the period foretells.
    Comb,
    /// The control group's counter of throttled time grew by what the longest absences last.
    QuotaCounter,
    /// The thread's counter of time in which it was ready but not running grew by so much over this operation.
    DelayCounter,
    /// It was handed to the kernel, and this thread had not got it back.
    UnderWay,
}

impl Proof {
    /// The name as it stands in files: `switch-record`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SwitchRecord => "switch-record",
            Self::FaultRecord => "fault-record",
            Self::Tracepoint => "tracepoint",
            Self::RseqFlag => "rseq-flag",
            Self::InterruptFlag => "interrupt-flag",
            Self::Comb => "comb",
            Self::QuotaCounter => "quota-counter",
            Self::DelayCounter => "delay-counter",
            Self::UnderWay => "under-way",
        }
    }
}

/// Something that the kernel says happened on the observed thread or its CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What it is evidence of.
    pub cause: Cause,
    /// What says so.
    pub proof: Proof,
    /// When it began.
    pub at_ns: f64,
    /// When it ended; `None` when only its begin is known.
    pub end_ns: Option<f64>,
    /// Who or what: a program's name, an interrupt's.
    pub who: Option<Arc<str>>,
}

/// A time-stamped span that wants a cause: a gap of a loop that only reads the clock, or a slow operation of any probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it began.
    pub at_ns: f64,
    /// How long it took.
    pub ns: f64,
    /// What the flags said after it.
    pub taken: Taken,
}

impl Sample {
    /// When it ended.
    #[must_use]
    pub fn end_ns(&self) -> f64 {
        self.at_ns + self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_printed_as_it_stands_in_files() {
        let all = [
            Cause::ContextSwitch,
            Cause::RunQueueDelay,
            Cause::Waiting,
            Cause::Device,
            Cause::Throttled,
            Cause::PageFault,
            Cause::TimerTick,
            Cause::Ipi,
            Cause::DeviceInterrupt,
            Cause::Interrupt,
            Cause::Softirq,
            Cause::Nmi,
            Cause::HostTick,
            Cause::Periodic,
            Cause::Outside,
            Cause::Unexplained,
        ];
        for cause in all {
            assert_eq!(serde_json::to_string(&cause).unwrap(), format!("\"{cause}\""));
        }
    }
}
