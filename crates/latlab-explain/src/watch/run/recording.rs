//! What is recorded of a program: read from the rings, put in order, and handed on.

use std::collections::HashMap;

use crate::account::path::Path;
use crate::account::records::{Record, What};
use crate::account::stream::{self, Stream};
use crate::account::sweep::{State, Sweep};
use crate::account::weights::{Kept, RECORDED_NS, Stretches, Weighed};
use crate::governor::{Counts, Price};
use crate::rules::Rules;
use crate::watch::proc_file::text;
use crate::watch::recorder::{FAULT_PERIOD, Recorder};
use crate::watch::scan::Scanner;
use crate::watch::symbols::Symbols;
use crate::watch::unwind::{Top, Unwinder};
use crate::watch::{maps, now_ns};

/// Records that wait to be put in order; more are taken as they are.
const MOST_PENDING: usize = 1 << 18;
/// Copies of stacks that wait until their files are read, bytes: two seconds' of two CPUs. Of what comes
/// beyond, callers are those that the kernel found.
const MOST_WAITING: usize = 32 << 20;
/// Threads whose reason is asked for at once.
const MOST_ASKED: usize = 32;

/// A record that waits.
struct Pending {
    record: Record,
    /// What the callers of a sample are found by.
    top: Option<Top>,
    /// Its callers are found, and its mapping is known.
    is_unwound: bool,
}

impl Pending {
    fn of(record: Record, top: Option<Top>) -> Self {
        Self { record, top, is_unwound: false }
    }
}

/// See the module.
pub(super) struct Recording {
    pub(super) recorder: Recorder,
    pub(super) stream: Stream<'static, Symbols>,
    unwinder: Unwinder,
    pending: Vec<Pending>,
    /// Bytes of the stacks of these.
    waiting: usize,
    pub(super) faults_on: bool,
    /// Whether events are open.
    pub(super) on: bool,
    /// Events could not be opened again.
    pub(super) given_up: bool,
    /// CPU time of the program and of its sweep when events were opened, and what had been recorded by then.
    pub(super) from: (u64, u64, Counts),
    /// Of threads that left a CPU to wait, by the records read last: when, of which process, and whether the
    /// reason was asked for.
    asked: HashMap<u32, (u64, u32, bool)>,
    /// When counters and names are to be read again.
    pub(super) seldom: u64,
    /// What was recorded and what was not, with what the counters said where the last stretch ended.
    stretches: Stretches,
    cut: Cut,
}

/// Counters at the end of a stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    /// Recorded CPU time, and wall time in which a thread ran.
    recorded: (u64, u64),
    /// Switches and starts that were recorded.
    of: Counts,
    /// CPU time, switches and starts that were not recorded.
    unrecorded_ns: u64,
    unrecorded: Counts,
}

impl Recording {
    /// `main`: the program's process.
    pub(super) fn of(recorder: Recorder, rules: &'static Rules, main: u32, on: bool) -> Self {
        let events = recorder.events.clone();
        let mut stream = Stream::of(rules, Symbols::default(), events);
        stream.path = recorder.wakes.is_ok().then(|| Path::of(main));
        Self {
            recorder,
            stream,
            unwinder: Unwinder::default(),
            pending: Vec::new(),
            waiting: 0,
            faults_on: true,
            on,
            given_up: false,
            from: (0, 0, Counts::default()),
            asked: HashMap::new(),
            seldom: 0,
            stretches: Stretches::default(),
            cut: Cut::default(),
        }
    }

    pub(super) fn recorded(&self) -> Counts {
        Counts { switches: self.stream.switches, starts: self.stream.starts, faults: 0 }
    }

    /// A stretch of what was recorded ends, if it is long enough or the last of its slice.
    pub(super) fn cut(&mut self, sweep: &mut Sweep<'_>, last: bool, price: Price) {
        let (cpu_ns, running_ns) = sweep.recorded_ns();
        let cpu_ns_past = cpu_ns.saturating_sub(self.cut.recorded.0) as f64;
        if !last && cpu_ns_past < RECORDED_NS {
            return;
        }
        let of = self.recorded();
        let mix = std::mem::take(&mut self.stream.mix);
        let kept = Kept {
            sampled_ns: mix.total().samples as f64 * self.recorder.period_ns as f64,
            mix,
            stages: sweep.stages().take_samples(),
            running_ns: running_ns.saturating_sub(self.cut.recorded.1) as f64,
        };
        let cost_ns = price.of_waiting(of.since(self.cut.of));
        self.stretches.recorded(cpu_ns_past, cost_ns, kept);
        self.cut.recorded = (cpu_ns, running_ns);
        self.cut.of = of;
    }

    /// A stretch of what was not recorded ends: `cpu_ns` and `counts` are the program's so far, recorded or
    /// not.
    pub(super) fn pass(&mut self, cpu_ns: u64, counts: Option<Counts>, price: Price) {
        // The kernel brings the CPU time of a running thread up to date at its tick: what is missing now
        // comes later.
        let unrecorded_ns = cpu_ns.saturating_sub(self.cut.recorded.0);
        let past = unrecorded_ns.saturating_sub(self.cut.unrecorded_ns);
        if past == 0 {
            return;
        }
        let unrecorded = counts.unwrap_or_default().since(self.recorded());
        let cost_ns = price.of_waiting(unrecorded.since(self.cut.unrecorded));
        self.stretches.unrecorded(past as f64, cost_ns);
        self.cut.unrecorded_ns = unrecorded_ns;
        self.cut.unrecorded = unrecorded;
    }

    /// What the counters say before anything is watched.
    pub(super) fn begin(&mut self, counts: Option<Counts>) {
        self.cut.unrecorded = counts.unwrap_or_default();
    }

    /// Recording begins again.
    pub(super) fn begin_slice(&mut self) {
        self.stretches.begin_slice();
    }

    /// What all samples say of the program, which used so much CPU time by the kernel's last word.
    pub(super) fn weigh(&mut self, cpu_ns: u64, sweep: &mut Sweep<'_>) -> Weighed {
        let unrecorded_ns = cpu_ns.saturating_sub(self.cut.recorded.0);
        let stretches = std::mem::take(&mut self.stretches);
        let weighed = stretches.weigh(unrecorded_ns as f64, self.recorder.sees_kernel);
        for (samples, by) in &weighed.stages {
            sweep.stages().give_samples(samples, *by);
        }
        weighed
    }

    /// Mappings and names of processes that ran before.
    pub(super) fn knows_already(&mut self, scanner: &Scanner) {
        for (pid, threads) in scanner.threads() {
            let maps = maps::of(pid);
            self.unwinder.has_mapped(pid, maps.clone());
            self.stream.has_mapped(pid, maps);
            for tid in threads {
                let name = text(&format!("/proc/{pid}/task/{tid}/comm"));
                self.stream.is_named(tid, name.trim_end());
            }
        }
    }

    /// Reads what the rings hold: where the records that came now begin, and what there is of them. Its cost
    /// is reported at once; they are put in order later.
    pub(super) fn read(&mut self) -> (usize, Counts, u64) {
        let from = self.pending.len();
        let (pending, waiting) = (&mut self.pending, &mut self.waiting);
        self.recorder.drain(|record, top| {
            let top = top.filter(|top| *waiting + top.bytes() <= MOST_WAITING);
            *waiting += top.as_ref().map_or(0, Top::bytes);
            pending.push(Pending::of(record, top));
        });
        let (mut counts, mut samples) = (Counts::default(), 0);
        for pending in &self.pending[from..] {
            match &pending.record.what {
                What::Out { .. } => counts.switches += 1,
                What::Start { .. } => counts.starts += 1,
                What::Sample { event, .. } => match self.recorder.events.get(event) {
                    Some(stream::Event::Cpu(_)) => samples += 1,
                    Some(stream::Event::Fault) => counts.faults += FAULT_PERIOD,
                    _ => {}
                },
                // A switch makes at least three records: in, out, and its stack or nothing.
                What::Lost(records) => counts.switches += records / 3,
                _ => {}
            }
        }
        (from, counts, samples)
    }

    /// Hands records before `until` to the stream, in order: where it does not wait for the names of
    /// functions, as far as they are known. Whether that is all of them.
    pub(super) fn take(&mut self, until: u64, waits: bool, sweep: &mut Sweep<'_>) -> bool {
        self.pending.sort_by_key(|pending| pending.record.time);
        let is_full = self.pending.len() > MOST_PENDING;
        let waits = is_full || waits;
        let all = self.pending.partition_point(|pending| is_full || pending.record.time < until);
        let ready = self.unwind(all, waits);
        self.stream.names.waits = waits;
        let left = self.pending[..ready].iter().position(|pending| !self.stream.take(&pending.record, sweep));
        self.pending.drain(..left.unwrap_or(ready));
        left.is_none() && ready == all
    }

    /// Finds the callers of the first of these samples, as early as it can be done: mappings are those of
    /// their time, and stacks take memory. Of how many.
    fn unwind(&mut self, all: usize, waits: bool) -> usize {
        for (at, pending) in self.pending[..all].iter_mut().enumerate() {
            if pending.is_unwound {
                continue;
            }
            if let (What::Sample { user, .. }, Some(top)) = (&mut pending.record.what, &pending.top) {
                let Some(callers) = self.unwinder.callers(pending.record.pid, top, user, waits) else {
                    return at;
                };
                *user = callers;
                self.waiting -= top.bytes();
                pending.top = None;
            }
            self.unwinder.take(&pending.record);
            pending.is_unwound = true;
        }
        all
    }

    /// The program has ended: what is not read of its files by then stays unread.
    pub(super) fn has_ended(&mut self) {
        self.stream.names.has_ended();
        self.unwinder.has_ended();
    }

    /// What threads wait for is not followed any more.
    pub(super) fn forget_waits(&mut self) {
        self.stream.waiting.clear();
        self.stream.polling.clear();
        self.asked.clear();
    }

    /// Asks /proc what descriptors threads wait for: the kernel's stack says that they do, and not what those
    /// are.
    pub(super) fn ask_what_is_polled(&mut self, scanner: &mut Scanner) {
        let polling = self.stream.polling.iter().take(MOST_ASKED);
        let polling: Vec<(u32, u32, u64)> = polling.map(|(tid, (pid, since))| (*tid, *pid, *since)).collect();
        for (tid, pid, since) in polling {
            // Before it is asked: what waits is there then, and the program has not ended.
            let time = now_ns();
            if let Some(State::Waiting(Some(reason))) = scanner.one(pid, tid) {
                let what = What::Learned { since, reason };
                self.pending.push(Pending::of(Record { time, pid, tid, what }, None));
            } else {
                // It waits no more.
                self.stream.polling.remove(&tid);
            }
        }
    }

    /// Asks /proc why threads wait that have left their CPU and not come back, by the records read last.
    pub(super) fn ask(&mut self, from: usize, scanner: &mut Scanner) {
        for Pending { record, .. } in &self.pending[from..] {
            let known = self.asked.get(&record.tid).map_or(0, |known| known.0);
            match record.what {
                What::Out { preempted: false } if record.time >= known => {
                    self.asked.insert(record.tid, (record.time, record.pid, false));
                }
                What::Out { .. } | What::In | What::End if record.time >= known => {
                    self.asked.remove(&record.tid);
                }
                _ => {}
            }
        }
        let open: Vec<(u32, u64, u32)> = self
            .asked
            .iter()
            .filter(|(_, asked)| !asked.2)
            .map(|(tid, asked)| (*tid, asked.0, asked.1))
            .take(MOST_ASKED)
            .collect();
        let unexplained = self.stream.unexplained();
        for (tid, since, pid) in open {
            let time = now_ns();
            if let Some(State::Waiting(reason)) = scanner.one(pid, tid) {
                let reason = reason.unwrap_or(unexplained);
                let what = What::Learned { since, reason };
                self.pending.push(Pending::of(Record { time, pid, tid, what }, None));
                if let Some(asked) = self.asked.get_mut(&tid) {
                    asked.2 = true;
                }
            }
        }
    }
}
