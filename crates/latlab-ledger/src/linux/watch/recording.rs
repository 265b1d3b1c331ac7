//! What is recorded of a program: read from the rings, put in order, and handed on.

use std::collections::HashMap;

use crate::governor::Counts;
use crate::records::{Record, What};
use crate::rules::Rules;
use crate::stream::{self, Stream};
use crate::sweep::{State, Sweep};
use crate::system::look::Looker;
use crate::system::proc_file::text;
use crate::system::recorder::{FAULT_PERIOD, Recorder};
use crate::system::symbols::Symbols;
use crate::system::{maps, now_ns};

/// Records that wait to be put in order; more are taken as they are.
const MOST_PENDING: usize = 1 << 18;
/// Threads whose reason is asked for at once.
const MOST_ASKED: usize = 32;

/// See the module.
pub(super) struct Recording {
    pub(super) recorder: Recorder,
    pub(super) stream: Stream<'static, Symbols>,
    pending: Vec<Record>,
    pub(super) faults_on: bool,
    /// Whether events are open.
    pub(super) on: bool,
    /// Events could not be opened again.
    pub(super) given_up: bool,
    /// CPU time of the program and of its sweep when events were opened.
    pub(super) from: (u64, u64),
    /// Of threads that left a CPU to wait, by the records read last: when, of which process, and whether the reason was asked for.
    asked: HashMap<u32, (u64, u32, bool)>,
    /// When counters and names are to be read again.
    pub(super) seldom: u64,
}

impl Recording {
    pub(super) fn of(recorder: Recorder, rules: &'static Rules, on: bool) -> Self {
        let events = recorder.events.clone();
        Self {
            recorder,
            stream: Stream::of(rules, Symbols::default(), events),
            pending: Vec::new(),
            faults_on: true,
            on,
            given_up: false,
            from: (0, 0),
            asked: HashMap::new(),
            seldom: 0,
        }
    }

    /// Names of the functions in files that are mapped. To be read before anything is recorded: of a large program they take many
    /// milliseconds, in which nobody would govern what recording costs.
    pub(super) fn learns_names(&mut self, looker: &Looker) {
        for pid in looker.pids() {
            for map in maps::of(pid) {
                self.stream.names.know(&map.path);
            }
        }
    }

    /// Mappings and names of processes that ran before.
    pub(super) fn knows_already(&mut self, looker: &Looker) {
        for (pid, threads) in looker.threads() {
            self.stream.has_mapped(pid, maps::of(pid));
            for tid in threads {
                let name = text(&format!("/proc/{pid}/task/{tid}/comm"));
                self.stream.is_named(tid, name.trim_end());
            }
        }
    }

    /// Reads what the rings hold: where the records that came now begin, and what there is of them. Its cost is told at once; they are put
    /// in order later.
    pub(super) fn read(&mut self) -> (usize, Counts, u64) {
        let from = self.pending.len();
        self.recorder.drain(&mut self.pending);
        let (mut counts, mut samples) = (Counts::default(), 0);
        for record in &self.pending[from..] {
            match &record.what {
                What::Out { .. } => counts.switches += 1,
                What::Start { .. } => counts.starts += 1,
                What::Sample { event, .. } => match self.recorder.events.get(event) {
                    Some(stream::Event::Cpu(_)) => samples += 1,
                    Some(stream::Event::Fault) => counts.faults += FAULT_PERIOD,
                    _ => {}
                },
                // A switch makes three records: in, out, and its stack or nothing.
                What::Lost(records) => counts.switches += records / 3,
                _ => {}
            }
        }
        (from, counts, samples)
    }

    /// Hands records before `until` to the stream, in order.
    pub(super) fn take(&mut self, until: u64, sweep: &mut Sweep<'_>) {
        self.pending.sort_by_key(|record| record.time);
        let until = if self.pending.len() > MOST_PENDING {
            u64::MAX
        } else {
            until
        };
        let ready = self.pending.partition_point(|record| record.time < until);
        for record in self.pending.drain(..ready) {
            self.stream.take(&record, sweep);
        }
    }

    /// What threads wait for is not followed any more.
    pub(super) fn forget_waits(&mut self) {
        self.stream.waiting.clear();
        self.stream.polling.clear();
        self.asked.clear();
    }

    /// Asks /proc what descriptors threads wait for: the kernel's stack says that they do, and not what those are.
    pub(super) fn ask_what_is_polled(&mut self, looker: &mut Looker) {
        let polling = self.stream.polling.iter().take(MOST_ASKED);
        let polling: Vec<(u32, u32, u64)> = polling.map(|(tid, (pid, since))| (*tid, *pid, *since)).collect();
        for (tid, pid, since) in polling {
            if let Some(State::Waiting(Some(reason))) = looker.one(pid, tid) {
                let what = What::Learned { since, reason };
                let time = now_ns();
                self.pending.push(Record { time, pid, tid, what });
            } else {
                // It waits no more.
                self.stream.polling.remove(&tid);
            }
        }
    }

    /// Asks /proc why threads wait that have left their CPU and not come back, by the records read last.
    pub(super) fn ask(&mut self, from: usize, looker: &mut Looker) {
        for record in &self.pending[from..] {
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
            if let Some(State::Waiting(reason)) = looker.one(pid, tid) {
                let reason = reason.unwrap_or(unexplained);
                let what = What::Learned { since, reason };
                let time = now_ns();
                self.pending.push(Record { time, pid, tid, what });
                if let Some(asked) = self.asked.get_mut(&tid) {
                    asked.2 = true;
                }
            }
        }
    }
}
