//! What records give: exact, but for the ends of waits. A thread that was woken is ready and not waiting
//! until it gets a CPU, and runs before the record of that is written ([`crate::account::woken`]).

use super::Estimate;
use crate::Category;
use crate::account::interval::{Range, of_share};
use crate::account::mix::Side;
use crate::account::sampled::Share;
use crate::account::woken;
use crate::model::Method;
use crate::rules::Reason;

/// How records are known of which so much had to be divided by what the counters say.
fn method_of(divided: f64) -> Method {
    if divided > 0.0 { Method::Sampled } else { Method::Counted }
}

/// What each of these gives of some time: as much as its weight says, and what one has not, the others give
/// as far as they have it. `of`: what there is of each, and its weight.
fn shared(ns: f64, of: &[(f64, f64)]) -> Vec<f64> {
    let weights: f64 = of.iter().map(|of| of.1).sum();
    let given: Vec<f64> = of.iter().map(|(has, weight)| (ns * weight / weights.max(1.0)).min(*has)).collect();
    let left = ns - given.iter().sum::<f64>();
    let have: f64 = of.iter().zip(&given).map(|(of, given)| of.0 - given).sum();
    let part = if have > 0.0 { (left / have).clamp(0.0, 1.0) } else { 0.0 };
    of.iter().zip(given).map(|(of, given)| given + part * (of.0 - given)).collect()
}

/// A recorded wait: its reason if that is known, and how often all threads waited so.
#[derive(Clone, Copy)]
struct Wait {
    reason: Option<Reason>,
    ns: f64,
    times: f64,
}

impl Estimate<'_> {
    pub(super) fn recorded(&mut self) {
        let sums = &self.tally.recorded;
        if sums.wall == 0 {
            return;
        }
        self.account.exact(self.whole(Category::StartAndExit), sums.absent as f64);
        let mut waits: Vec<Wait> = Vec::new();
        let mut wait = |reason, ns: u64, times: u64| {
            waits.push(Wait { reason, ns: ns as f64, times: times as f64 });
        };
        sums.waits.each().for_each(|(reason, ns)| wait(Some(reason), ns, sums.all_waited.of(reason)));
        wait(None, sums.unknown, sums.unknown_all_waited);
        // Records also have on a CPU what the kernel does not count: while it served interrupts, or the host
        // ran others.
        let counted = (self.tally.usage.cpu_ns() as f64 / (sums.thread_running as f64).max(1.0)).min(1.0);
        let running = sums.running as f64 * counted;
        let before = self.running_before_records(running);
        // Of what records call ready, first that of which the kernel knows nothing.
        let mut ready = sums.ready as f64;
        let known = self.tally.delay.recorded_ns as f64 / (sums.thread_ready as f64).max(1.0);
        let of_ready = (ready * (1.0 - known)).clamp(0.0, before.of);
        let of: Vec<(f64, f64)> = waits.iter().map(|wait| (wait.ns, wait.times)).collect();
        let ran = shared(before.of - of_ready, &of);
        let rest = (before.of - of_ready - ran.iter().sum::<f64>()).clamp(0.0, ready - of_ready);
        ready -= of_ready + rest;
        let (each, by_others) = (woken::delay_of_each(self.tally), woken::caused_by_others(self.tally));
        let part = |ns: f64| if before.of > 0.0 { ns / before.of } else { 0.0 };
        let mut ends = 0.0;
        for (Wait { reason, ns, times }, ran) in waits.into_iter().zip(&ran) {
            let left = ns - ran;
            let end = (each * times).min(left);
            ends += end;
            let at = left - end * by_others;
            let Some(reason) = reason else {
                self.unknown(at);
                continue;
            };
            let low = left - end.max(2.0 * end * by_others) - ran * part(before.above);
            let range = Range { low: low.max(0.0), high: left + ran * part(before.below) };
            self.account.add(reason, at, range, method_of(end + ran));
        }
        let woken = ends * by_others;
        let most = ready + (2.0 * woken).max(ends);
        let range =
            Range { low: ready, high: most.min(woken::recorded_delay(self.tally)).max(ready + woken) };
        self.account.add(self.whole(Category::RunQueueWait), ready + woken, range, method_of(woken));
        self.account.exact(self.whole(Category::InterruptsForOthers), sums.running as f64 - running);
        self.on_cpu(running, Range { low: running, high: running }, 0.0);
        let placed = of_ready + ran.iter().sum::<f64>() + rest;
        self.recording_on_cpu(placed, before);
    }

    /// Wall time in which threads ran of which the record was not written yet. It ends waits, of which some
    /// found all other threads waiting, too; and all CPUs together had at least the CPU time. `running`: by
    /// the records.
    fn running_before_records(&self, running: f64) -> Share {
        let ns = self.before_records;
        if ns <= 0.0 {
            return Share::default();
        }
        let sums = &self.tally.recorded;
        let alone = (sums.all_waited.total() + sums.unknown_all_waited) as f64;
        let least = ((ns + sums.thread_running as f64) / self.tally.places() - running).clamp(0.0, ns);
        let of = (ns * (alone / sums.all_wakes().max(1.0)).min(1.0)).max(least);
        Share::within(of, Range { low: least, high: ns })
    }

    /// Recording ran for so long, of wall time; `before`: as it was thought, of which there may not be as
    /// much.
    fn recording_on_cpu(&mut self, ns: f64, before: Share) {
        let reason = self.rules.named(Category::KernelCpu, "recording of events");
        let reason = reason.unwrap_or(self.whole(Category::KernelCpu));
        self.running += ns;
        let range = before.range_ns();
        let range = Range { low: range.low.min(ns), high: range.high.max(ns) };
        let is_exact = range.high - range.low < 1.0;
        self.spend((Side::Kernel, reason), ns, range, method_of(if is_exact { 0.0 } else { ns }));
    }

    /// Waits that were over before their reason could be read are taken for those of the same program that
    /// could be read in time.
    fn unknown(&mut self, ns: f64) {
        let mut given = 0.0;
        for (reason, share, from) in self.tally.unread.reasons() {
            let range = of_share(share, from).times(ns);
            given += share;
            self.account.add(reason, ns * share, range, Method::Sampled);
        }
        let rest = ns * (1.0 - given).max(0.0);
        // Where none was read in time, they are taken for those that scans met.
        let (scanned, scans) = (&self.tally.scanned, self.tally.scans as f64);
        let met = (scanned.waits.total() + scanned.unknown) as f64;
        let mut left = rest;
        for (reason, seen) in scanned.waits.each().filter(|_| rest > 0.0) {
            let share = seen as f64 / met;
            let range = of_share(share, scans).times(rest);
            left -= rest * share;
            self.account.add(reason, rest * share, range, Method::Sampled);
        }
        let unexplained = self.whole(Category::Unexplained);
        self.account.exact(unexplained, left.max(0.0));
    }
}
