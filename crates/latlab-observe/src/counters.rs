//! What the kernel counts for a CPU and a thread, before and after. Never inside timed code:
//! `/proc/interrupts` alone takes 70 us.

use std::collections::BTreeMap;
use std::fs;

use latlab_record::Observed;
use serde::Serialize;

use crate::observer::{Observer, Reading, sum};

/// Counters of this thread and of its CPU.
#[derive(Debug)]
pub struct CpuCounters {
    cpu: u32,
    observer: Observer,
}

/// Their values at one moment.
#[derive(Clone, Debug, Default)]
pub struct CpuReading {
    interrupts: BTreeMap<String, Line>,
    thread: Reading,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    count: u64,
    what: String,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The kernel's name for it: `LOC`, `24`.
    pub name: String,
    /// The kernel's description.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// What was counted between two readings. What could not be read is empty or absent, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counted {
    /// Interrupts of this CPU, the most frequent first.
    pub interrupts: Vec<Count>,
    /// Whether interrupts could be read at all.
    pub interrupts_known: bool,
    /// Switches, faults, steal and throttling of the thread.
    pub thread: Observed,
}

/// What the kernel counted of the causes that it counts one by one. `None` is what could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Switches of the thread.
    pub switches: Option<u64>,
    /// Its page faults.
    pub faults: Option<u64>,
    /// Interrupts of its CPU that other CPUs sent.
    pub interprocessor_interrupts: Option<u64>,
    /// All interrupts of its CPU.
    pub interrupts: Option<u64>,
}

impl CpuCounters {
    /// Of the calling thread on `cpu`.
    pub fn of_this_thread(cpu: u32) -> Self {
        Self { cpu, observer: Observer::of_this_thread(Some(cpu)) }
    }

    /// All of them now.
    pub fn read(&self) -> CpuReading {
        let interrupts = fs::read_to_string("/proc/interrupts").map(|text| column(&text, self.cpu));
        CpuReading { interrupts: interrupts.unwrap_or_default(), thread: self.observer.read() }
    }
}

impl CpuReading {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Counted {
        Counted {
            interrupts: grown(&self.interrupts, &earlier.interrupts),
            interrupts_known: !self.interrupts.is_empty(),
            thread: self.thread.since(&earlier.thread),
        }
    }
}

impl Counted {
    /// Interrupts of the local timer: `LOC` on x86, `arch_timer` on aarch64. `None` where interrupts cannot
    /// be read.
    pub fn timer_interrupts(&self) -> Option<u64> {
        self.interrupts_known
            .then(|| self.sum(|count| count.name == "LOC" || count.what.contains("arch_timer")))
    }

    /// Interrupts that other CPUs sent: reschedule, function call (TLB shootdowns among them).
    pub fn interprocessor_interrupts(&self) -> Option<u64> {
        // TLB shootdowns are function calls too, and `CAL` has counted them as well since Linux 4.9.
        const X86: [&str; 2] = ["RES", "CAL"];
        self.interrupts_known
            .then(|| self.sum(|count| X86.contains(&count.name.as_str()) || count.name.starts_with("IPI")))
    }

    /// All interrupts of this CPU. `None` where they cannot be read.
    pub fn all_interrupts(&self) -> Option<u64> {
        // TLB shootdowns are among the function calls.
        self.interrupts_known.then(|| self.sum(|count| count.name != "TLB"))
    }

    /// The causes that are counted one by one.
    pub fn tally(&self) -> Tally {
        let thread = &self.thread;
        Tally {
            switches: both(thread.voluntary_switches, thread.involuntary_switches),
            faults: both(thread.minor_faults, thread.major_faults),
            interprocessor_interrupts: self.interprocessor_interrupts(),
            interrupts: self.all_interrupts(),
        }
    }

    /// This and another time together; what either does not know is unknown.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            interrupts: together(&self.interrupts, &other.interrupts),
            interrupts_known: self.interrupts_known && other.interrupts_known,
            thread: sum(&self.thread, &other.thread),
        }
    }

    fn sum(&self, which: impl Fn(&Count) -> bool) -> u64 {
        self.interrupts.iter().filter(|count| which(count)).map(|count| count.count).sum()
    }
}

/// The sum of two counts; unknown where either is.
fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

/// Function calls that other CPUs have sent to this one so far, barriers among them; `None` where that cannot
/// be read. 70 us.
pub(crate) fn function_calls_now(cpu: u32) -> Option<u64> {
    function_calls(&column(&fs::read_to_string("/proc/interrupts").ok()?, cpu))
}

/// Not all that other CPUs send: a busy CPU is asked to reschedule thousands of times a second.
fn function_calls(lines: &BTreeMap<String, Line>) -> Option<u64> {
    lines.values().find(|line| line.what.contains("Function call")).map(|line| line.count)
}

fn grown(now: &BTreeMap<String, Line>, then: &BTreeMap<String, Line>) -> Vec<Count> {
    let counts = now
        .iter()
        .map(|(name, line)| Count {
            name: name.clone(),
            what: line.what.clone(),
            count: line.count.saturating_sub(then.get(name).map_or(0, |line| line.count)),
        })
        .filter(|count| count.count > 0);
    sorted(counts.collect())
}

/// The counts of both by name, the most frequent first.
fn together(a: &[Count], b: &[Count]) -> Vec<Count> {
    let mut counts = a.to_vec();
    for one in b {
        match counts.iter_mut().find(|own| own.name == one.name) {
            Some(own) => own.count += one.count,
            None => counts.push(one.clone()),
        }
    }
    sorted(counts)
}

/// The most frequent first.
fn sorted(mut counts: Vec<Count>) -> Vec<Count> {
    counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    counts
}

/// One CPU's column of `/proc/interrupts`: by the header, as CPUs that are offline have none.
fn column(text: &str, cpu: u32) -> BTreeMap<String, Line> {
    let mut lines = text.lines();
    let Some(header) = lines.next() else { return BTreeMap::new() };
    let cpus: Vec<&str> = header.split_ascii_whitespace().collect();
    let wanted = format!("CPU{cpu}");
    let Some(place) = cpus.iter().position(|name| *name == wanted) else { return BTreeMap::new() };
    lines
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let mut words = rest.split_ascii_whitespace();
            let count = words.nth(place)?.parse().ok()?;
            let what: Vec<&str> = words.skip(cpus.len() - place - 1).collect();
            Some((name.trim().to_owned(), Line { count, what: what.join(" ") }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       \n  24:          1          7  IO-APIC   5-edge      ACPI:Ged\n LOC:        100        900  Local timer interrupts\n RES:          5          6  Rescheduling interrupts\n ERR:          0\n";

    fn counted(now: &str, then: &str) -> Counted {
        let reading = |text| CpuReading { interrupts: column(text, 2), ..CpuReading::default() };
        reading(now).since(&reading(then))
    }

    #[test]
    fn the_column_of_a_cpu_is_found_by_its_name() {
        let lines = column(INTERRUPTS, 2);
        assert_eq!(lines["LOC"].count, 900);
        assert_eq!(lines["24"].what, "IO-APIC 5-edge ACPI:Ged");
        assert!(!lines.contains_key("ERR"), "a line without columns is nobody's");
        assert!(column(INTERRUPTS, 1).is_empty(), "a CPU that is offline has no column");
    }

    #[test]
    fn what_grew_is_listed_with_the_most_frequent_first() {
        let then = INTERRUPTS.replace("900", "650").replace("  6  Res", "  2  Res");
        let counted = counted(INTERRUPTS, &then);
        let names: Vec<(&str, u64)> =
            counted.interrupts.iter().map(|one| (one.name.as_str(), one.count)).collect();
        assert_eq!(names, [("LOC", 250), ("RES", 4)]);
        assert_eq!(counted.timer_interrupts(), Some(250));
        assert_eq!(counted.interprocessor_interrupts(), Some(4));
        assert_eq!(counted.all_interrupts(), Some(254));
        let tally = counted.tally();
        assert_eq!((tally.interprocessor_interrupts, tally.interrupts), (Some(4), Some(254)));
        assert_eq!(tally.switches, None, "no thread was read");
    }

    #[test]
    fn function_calls_are_told_from_other_interrupts_of_other_cpus() {
        assert_eq!(function_calls(&column(INTERRUPTS, 2)), None);
        let text = format!("{INTERRUPTS} CAL:          7         11  Function call interrupts\n");
        assert_eq!(function_calls(&column(&text, 2)), Some(11));
    }

    #[test]
    fn two_times_together_have_the_counts_of_both() {
        let one = counted(INTERRUPTS, &INTERRUPTS.replace("900", "650"));
        let two = counted(INTERRUPTS, &INTERRUPTS.replace("  6  Res", "  2  Res"));
        let both = one.and(&two);
        assert_eq!(both.timer_interrupts(), Some(250));
        assert_eq!(both.interprocessor_interrupts(), Some(4));
        assert_eq!(one.and(&counted("", "")).timer_interrupts(), None);
    }

    #[test]
    fn interrupts_that_cannot_be_read_are_unknown_and_not_zero() {
        assert_eq!(counted("", "").timer_interrupts(), None);
    }
}
