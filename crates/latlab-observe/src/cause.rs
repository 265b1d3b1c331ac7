//! The words of attribution: causes, what shows them, and events with their time.
//!
//! All times are nanoseconds since the run's [`latlab_clock::Clock`] was opened, as in a record's tail
//! samples.

use std::sync::Arc;

use serde::Serialize;
use strum::{Display, IntoStaticStr};

use crate::gaps::Interruption;

/// What took the time of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display, IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
    /// This kernel was not entered, and the work itself never takes so long: the host, the firmware or the
    /// hardware.
    Outside,
    /// No evidence names a cause.
    Unexplained,
}

impl Cause {
    /// The name as it stands in files: `context-switch`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Which of two causes owns a nanosecond that both cover: what is further inside. While another thread
    /// runs, its interrupts are its own.
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

/// What shows a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Proof {
    /// The kernel's record of this thread's switches, with both times.
    SwitchRecord,
    /// The kernel's record of this thread's page faults.
    FaultRecord,
    /// The kernel's tracepoints on this CPU, at the begin and the end of a handler.
    Tracepoint,
    /// The kernel took back the thread's restartable sequence: it was preempted, migrated, or got a signal.
    RseqFlag,
    /// The processor cleared a selector of the thread, as it does on the way back from an interrupt or an
    /// exception; or it did not.
    InterruptFlag,
    /// It comes with a period, and at the time that the period predicts.
    #[serde(rename = "comb")]
    #[strum(serialize = "comb")]
    Period,
    /// The control group's counter of throttled time grew by what the longest absences last.
    QuotaCounter,
    /// The thread's counter of time in which it was ready but not running grew by so much over this
    /// operation.
    DelayCounter,
    /// It was handed to the kernel, and this thread had not got it back.
    UnderWay,
}

impl Proof {
    /// The name as it stands in files: `switch-record`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Who it was when the local timer's interrupt was the kernel's tick, and not a timer that somebody set. Only
/// where that could be seen.
pub(crate) const TICK: &str = "tick";

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

impl Event {
    /// When it ended, or began where only that is known.
    pub fn known_end_ns(&self) -> f64 {
        self.end_ns.unwrap_or(self.at_ns)
    }
}

/// A time-stamped span that wants a cause: a gap of a loop that only reads the clock, or a slow operation of
/// any probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it began.
    pub at_ns: f64,
    /// How long it took.
    pub ns: f64,
    /// What the flags said after it.
    pub interruption: Interruption,
}

impl Sample {
    /// When it ended.
    pub fn end_ns(&self) -> f64 {
        self.at_ns + self.ns
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn a_name_is_the_same_in_files_and_in_print() {
        for cause in Cause::VARIANTS {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
            assert_eq!(cause.to_string(), cause.name());
        }
        for proof in Proof::VARIANTS {
            assert_eq!(serde_json::to_value(proof).unwrap(), proof.name());
        }
        // Files have these: another name of a variant is another format.
        let causes: Vec<&str> = Cause::VARIANTS.iter().map(|cause| cause.name()).collect();
        assert_eq!(
            causes.join(" "),
            "context-switch run-queue-delay waiting device throttled page-fault timer-tick ipi \
            device-interrupt interrupt softirq nmi host-tick periodic outside unexplained"
        );
        let proofs: Vec<&str> = Proof::VARIANTS.iter().map(|proof| proof.name()).collect();
        assert_eq!(
            proofs.join(" "),
            "switch-record fault-record tracepoint rseq-flag interrupt-flag comb quota-counter \
                delay-counter under-way"
        );
    }
}
