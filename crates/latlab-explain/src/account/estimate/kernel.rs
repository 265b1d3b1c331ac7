//! What the kernel's work was for, where samples do not say: counts of it, each with what one costs on this
//! machine.
//!
//! Counts give each kind of work a cost from and to ([`Estimate::model`]). What is known of the whole, by
//! ticks or samples, bounds them all together ([`Estimate::by_counts`]). Where that leaves more than
//! [`STATED`] of wall time open for a kind, the work is left whole ([`Estimate::divide_kernel`]).

use std::collections::BTreeMap;

use super::Estimate;
use crate::account::interval::Range;
use crate::account::io::Io;
use crate::account::mix::Side;
use crate::account::sampled::Share;
use crate::account::sweep::Sums;
use crate::costs::Cost;
use crate::model::Method;
use crate::rules::Reason;
use crate::{Category, Counted};

/// Share of waits that must be for pipes and sockets before reads and writes are taken for theirs.
const WAITED: f64 = 0.05;
/// Shares of the kernel's work by counts are stated if none has a wider interval than this part of wall time.
const STATED: f64 = 0.2;

/// What counts of kernel work cost, nanoseconds of CPU time.
pub(super) struct Model {
    pub(super) parts: Vec<(Reason, Cost)>,
    /// So much of what is taken for pipes and sockets may have been work on files.
    pub(super) files_instead: f64,
}

/// The kernel's work that samples do not divide, nanoseconds of wall time.
#[derive(Default)]
pub(super) struct Kernel {
    pub(super) work: Share,
    /// Counts of so much time on a CPU are of it, those of all the program taken as evenly spread.
    pub(super) counts: f64,
    /// Ends of page faults, which were seen as user code.
    pub(super) faults: Vec<(Reason, Share)>,
    /// If it is left whole: what of it counts and costs give to each category.
    pub(super) within: Option<BTreeMap<Category, Share>>,
}

impl Estimate<'_> {
    /// How often threads were woken, by what they had waited for; where no counter tells, for how long they
    /// waited.
    pub(super) fn woken(&self) -> Counted {
        let of = |sums: fn(&Sums) -> &Counted| {
            let mut all = sums(&self.tally.scanned).clone();
            all.add(sums(&self.tally.recorded));
            all
        };
        let unknown = self.tally.scanned.unknown_wakes + self.tally.recorded.unknown_wakes;
        let woken = of(|sums| &sums.wakes);
        if woken.total() + unknown > 0 { woken } else { of(|sums| &sums.thread_waits) }
    }

    /// What counts of kernel work cost: nanoseconds of CPU time, of all the program's.
    pub(super) fn model(&self) -> Model {
        let (usage, costs) = (&self.tally.usage, self.costs);
        let mut instead = 0.0;
        let pages = usage.max_resident_bytes as f64 / 4096.0 * f64::from(self.tally.runs);
        let faults = costs.fault.times((usage.minor_faults + usage.major_faults) as f64);
        let mut parts = self.faults(faults);
        // More was touched than the processes can have held at their ends: it was given back before.
        let touched = (usage.minor_faults + usage.major_faults) as f64;
        let held = usage.max_resident_bytes as f64 / 4096.0 * self.tally.processes as f64;
        parts.push((self.gives_back(), costs.unmap.times((touched - held).max(0.0))));
        // What was met of it is no part of the time on a CPU.
        let ending = costs.unmap.times(pages).plus(costs.process.times(self.tally.processes as f64));
        let met = self.tally.ending_ns(self.rules);
        let left = |ns: f64| (ns - met).max(0.0);
        let ending = Cost { low: left(ending.low), mid: left(ending.mid), high: left(ending.high) };
        parts.push((self.whole(Category::StartAndExit), ending));
        // Giving up the CPU is part of what it was given up for.
        let woken = self.woken();
        for (reason, times) in woken.each() {
            let switches = usage.voluntary_switches as f64 * times as f64 / woken.total() as f64;
            let (category, cost) = match self.rules.category(reason) {
                Category::StorageWait => (Category::FileIoCpu, costs.switch.plus(costs.device)),
                category => (category, costs.switch),
            };
            parts.push((self.whole(category), cost.times(switches)));
        }
        let traffic = &usage.traffic;
        let mut uncounted = 1.0;
        if let Some(io) = usage.io {
            let chars = io.chars() as f64;
            let others = self.of_others(&io);
            let [pipe, network, tcp] = self.of_no_file(&io, others, &woken);
            uncounted -= (tcp * chars / (traffic.bytes as f64).max(1.0)).min(1.0);
            // What is thrown away is copied by nobody; at most it is what went neither to a disk nor through
            // the positions of files.
            let kept = io.written_bytes.min(io.written_chars);
            let thrown = ((io.written_chars - kept) as f64).min(others * chars);
            let (least, likely, most) = usage.discards.part();
            let bytes = Cost {
                low: costs.byte.low * (chars - most * thrown),
                mid: costs.byte.mid * (chars - likely * thrown),
                high: costs.byte.high * (chars - least * thrown),
            };
            let calls = costs.call.times((io.read_calls + io.write_calls) as f64);
            // Of what only waits say that it was of pipes or sockets, all may have been of files.
            let waited = |cost: Cost| Cost { low: 0.0, ..cost };
            let all = calls.plus(bytes);
            for (category, cost) in [
                (Category::Pipe, waited(all.times(pipe))),
                (Category::Network, waited(all.times(network))),
                (Category::Network, all.times(tcp)),
                (Category::FileIoCpu, all.times((1.0 - pipe - network - tcp).max(0.0))),
            ] {
                if cost.high > 0.0 {
                    parts.push((self.whole(category), cost));
                }
            }
            instead += all.high * (pipe + network);
            parts.push((self.whole(Category::FileIoCpu), costs.cold_byte.times(io.read_bytes as f64)));
        }
        if traffic.bytes > 0 {
            let (least, most) = traffic.sends;
            let sent = Cost {
                low: costs.send.low * least,
                mid: costs.send.mid * (least * most).sqrt(),
                high: costs.send.high * most,
            };
            // Bytes and calls that the counters of processes have are above.
            let received = costs.call.times(traffic.receives as f64);
            let others = received.plus(costs.byte.times(traffic.bytes as f64)).times(uncounted);
            parts.push((self.whole(Category::Network), sent.plus(others)));
        }
        Model { parts, files_instead: instead }
    }

    /// Share of the bytes read and written that were of no regular file, as far as the positions of files
    /// have moved, and disks.
    fn of_others(&self, io: &Io) -> f64 {
        let chars = io.chars() as f64;
        // What was on its way to or from a disk was a file's, too.
        let disk = io.read_bytes.min(io.read_chars) + io.written_bytes.min(io.written_chars);
        1.0 - (self.tally.usage.file_chars.max(disk) as f64 / chars.max(1.0)).min(1.0)
    }

    /// Of it, what was of pipes, of sockets that are not TCP's, and of TCP's, which the kernel counts. The
    /// others do not say of what they are: where threads wait for pipes or sockets, of those.
    fn of_no_file(&self, io: &Io, others: f64, woken: &Counted) -> [f64; 3] {
        let carried = self.tally.usage.traffic.bytes as f64;
        let tcp = (carried / (io.chars() as f64).max(1.0)).min(others);
        let of = |category| woken.of_category(category, self.rules) as f64 / (woken.total() as f64).max(1.0);
        // Waits for the network are TCP's where that was used.
        let network = if carried > 0.0 { 0.0 } else { of(Category::Network) };
        let pipe = of(Category::Pipe);
        let rest = if pipe + network > WAITED { others - tcp } else { 0.0 };
        [rest * pipe, rest * network, tcp]
    }

    /// Where giving memory back counts: with the allocator's work, where that can be told from user code.
    fn gives_back(&self) -> Reason {
        if self.sees_user() {
            let part = self.rules.named(Category::Allocator, "in the kernel");
            part.unwrap_or(self.whole(Category::Allocator))
        } else {
            self.whole(Category::PageFaults)
        }
    }

    /// Page faults of the allocator, and of other code, where user code can be told apart.
    pub(super) fn fault_reasons(&self) -> (Reason, Reason) {
        let part = |name| {
            let part = self.rules.named(Category::PageFaults, name);
            let part = part.filter(|_| self.sees_user());
            part.unwrap_or(self.whole(Category::PageFaults))
        };
        (part("in the allocator"), part("in other code"))
    }

    /// Page faults by whose code touched the page, where that was sampled.
    fn faults(&self, cost: Cost) -> Vec<(Reason, Cost)> {
        let mix = &self.tally.mix;
        let all: f64 = mix.faults().map(|of| of.1).sum();
        let allocates = |reason| self.rules.category(reason) == Category::Allocator;
        let allocating: f64 = mix.faults().filter(|of| allocates(of.0)).map(|of| of.1).sum();
        if all <= 0.0 {
            return vec![(self.whole(Category::PageFaults), cost)];
        }
        let (inside, outside) = self.fault_reasons();
        let share = allocating / all;
        vec![(inside, cost.times(share)), (outside, cost.times(1.0 - share))]
    }

    /// Some more of the kernel's work, with counts of so much time on a CPU.
    pub(super) fn kernel(&mut self, work: Share, counts: f64) {
        self.kernel.work = self.kernel.work.and(work);
        self.kernel.counts += counts;
    }

    /// What the counts of so much time on a CPU cost, nanoseconds of wall time.
    fn cost_of(&self, counts: f64) -> Model {
        let cpu = self.cpu();
        let scale = if cpu > 0.0 { counts / cpu } else { 0.0 };
        let Model { parts, files_instead } = self.model();
        let parts = parts.into_iter().map(|(reason, cost)| (reason, cost.times(scale)));
        Model { parts: parts.collect(), files_instead: files_instead * scale }
    }

    /// The kernel's work divided by what its counts cost, with what they leave of it.
    pub(super) fn by_counts(&self, work: Share, counts: f64) -> Vec<(Reason, Share)> {
        let Model { parts, files_instead } = self.cost_of(counts);
        let total = parts.iter().fold(Cost::default(), |sum, part| sum.plus(part.1));
        let (ns, range) = (work.of, work.range_ns());
        let rest = (ns - total.mid).max(0.0);
        let down = if ns < total.mid && total.mid > total.low {
            ((total.mid - ns) / (total.mid - total.low)).min(1.0)
        } else {
            0.0
        };
        let squeeze = if ns < total.low && total.low > 0.0 { ns / total.low } else { 1.0 };
        let mut divided = Vec::with_capacity(parts.len() + 2);
        for (reason, cost) in parts {
            let part = (cost.mid - down * (cost.mid - cost.low)) * squeeze;
            // The others take at least what they cost at least. What they leave may be of any that there was.
            let left = range.high - (total.low - cost.low);
            let longer = if cost.high > 0.0 { part + rest } else { part };
            let high = cost.high.max(longer).min(left).max(part);
            divided.push((reason, Share::within(part, Range { low: cost.low.min(part), high })));
        }
        let files = Range { low: 0.0, high: files_instead.min(range.high) };
        divided.push((self.whole(Category::FileIoCpu), Share::within(0.0, files)));
        let left = Range { low: 0.0, high: (range.high - total.low).max(rest) };
        divided.push((self.whole(Category::KernelCpu), Share::within(rest, left)));
        divided
    }

    fn by_category<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a (Reason, Share)>,
    ) -> BTreeMap<Category, Share> {
        let mut of: BTreeMap<Category, Share> = BTreeMap::new();
        for (reason, share) in parts {
            let sum = of.entry(self.rules.category(*reason)).or_default();
            *sum = sum.and(*share);
        }
        of
    }

    /// Whether these parts of the kernel's work are known well enough to be stated.
    pub(super) fn is_known(&self, parts: &[(Reason, Share)]) -> bool {
        let stated = STATED * self.tally.wall_ns as f64;
        self.by_category(parts).values().all(|of| of.below + of.above <= stated)
    }

    /// Gives the kernel's work to what it was for, or leaves it whole.
    pub(super) fn divide_kernel(&mut self) {
        let Kernel { work, counts, .. } = self.kernel;
        let faults = std::mem::take(&mut self.kernel.faults);
        let divided = if work.of + work.above > 0.0 { self.by_counts(work, counts) } else { Vec::new() };
        if self.is_known(&divided) {
            for (reason, share) in divided.into_iter().chain(faults) {
                self.spend((Side::Kernel, reason), share.of, share.range_ns(), Method::Modelled);
            }
            return;
        }
        let mut within = self.by_category(divided.iter().chain(&faults));
        let rest = within.remove(&Category::KernelCpu).unwrap_or_default();
        for category in Category::OF_THE_KERNEL {
            within.entry(category).or_insert(Share { above: rest.of, ..Share::default() });
        }
        self.kernel.within = Some(within);
        let whole = faults.iter().fold(work, |sum, (_, share)| sum.and(*share));
        let kernel = self.whole(Category::KernelCpu);
        self.spend((Side::Kernel, kernel), whole.of, whole.range_ns(), Method::Sampled);
    }
}
