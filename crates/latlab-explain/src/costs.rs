//! What the kernel's work costs a piece, as measured on this machine, and what a count of it may therefore
//! have taken.

use serde::{Deserialize, Serialize};

/// Cost of one, nanoseconds: the range in which repeated measurements lay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Smallest of the repetitions.
    pub low: f64,
    /// Their median.
    pub mid: f64,
    /// Largest.
    pub high: f64,
}

impl Cost {
    /// From repetitions; `None` without any.
    pub(crate) fn of(mut repetitions: Vec<f64>) -> Option<Self> {
        repetitions.retain(|ns| ns.is_finite() && *ns > 0.0);
        repetitions.sort_by(f64::total_cmp);
        Some(Self {
            low: *repetitions.first()?,
            mid: latlab_stats::quantile(&repetitions, 0.5),
            high: *repetitions.last()?,
        })
    }

    /// From several rounds: from the smallest to the largest that any of them saw; `None` without any.
    fn of_rounds(rounds: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let mid = latlab_stats::median_of(rounds.clone().map(|cost| cost.mid))?;
        let low = rounds.clone().map(|cost| cost.low).fold(mid, f64::min);
        Some(Self { low, mid, high: rounds.map(|cost| cost.high).fold(mid, f64::max) })
    }

    /// A calm moment and a busy one differ by at least this much.
    fn at_another_time(self) -> Self {
        Self { low: self.low.min(0.7 * self.mid), high: self.high.max(1.5 * self.mid), ..self }
    }

    fn is_possible(self) -> bool {
        0.0 <= self.low && self.low <= self.mid && self.mid <= self.high && self.high.is_finite()
    }

    /// Of this many.
    pub(crate) fn times(self, count: f64) -> Self {
        Self { low: self.low * count, mid: self.mid * count, high: self.high * count }
    }

    /// Of both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, mid: self.mid + other.mid, high: self.high + other.high }
    }
}

/// Costs of kernel work, of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Costs {
    /// A minor page fault on fresh memory.
    pub fault: Cost,
    /// Share of its time that samples and the kernel's ticks take for user code: where the kernel has
    /// interrupts off, or a hypervisor works, they come when the instruction that touched the page goes on.
    pub fault_in_user: Cost,
    /// Giving back a page that was touched.
    pub unmap: Cost,
    /// A read or write call of a file, without its bytes.
    pub call: Cost,
    /// A piece of data handed to TCP, with its way to the other end of the loopback, and the answer that
    /// confirms it.
    pub send: Cost,
    /// A byte copied between a file in memory and the program.
    pub byte: Cost,
    /// A byte that came from a disk, beyond that: into a page that was just taken, which a host may have to
    /// find first.
    pub cold_byte: Cost,
    /// One operation of a disk that was waited for: asking for it, and its interrupt.
    pub device: Cost,
    /// A thread that leaves its CPU to wait, and comes back.
    pub switch: Cost,
    /// A sleep of microseconds: setting the timer, which a virtual machine's host does, leaving the CPU and
    /// coming back.
    pub sleep: Cost,
    /// Loading a small program, and ending it, without the pages that it touched.
    pub process: Cost,
}

impl Costs {
    /// What holds at other times, from several rounds; the usual costs without any.
    pub(crate) fn of_rounds(rounds: &[Self]) -> Self {
        let usual = Self::default();
        let of =
            |field: fn(&Self) -> Cost| Cost::of_rounds(rounds.iter().map(field)).unwrap_or(field(&usual));
        Self {
            fault: of(|costs| costs.fault),
            fault_in_user: of(|costs| costs.fault_in_user),
            unmap: of(|costs| costs.unmap).at_another_time(),
            call: of(|costs| costs.call).at_another_time(),
            send: of(|costs| costs.send).at_another_time(),
            byte: of(|costs| costs.byte),
            cold_byte: of(|costs| costs.cold_byte),
            device: of(|costs| costs.device),
            switch: of(|costs| costs.switch).at_another_time(),
            sleep: of(|costs| costs.sleep).at_another_time(),
            process: of(|costs| costs.process),
        }
    }

    /// Whether they can have been measured.
    pub(crate) fn are_possible(&self) -> bool {
        let Self { fault, fault_in_user, unmap, call, send, byte, cold_byte, device, switch, sleep, process } =
            *self;
        [fault, fault_in_user, unmap, call, send, byte, cold_byte, device, switch, sleep, process]
            .into_iter()
            .all(Cost::is_possible)
    }
}

impl Default for Costs {
    /// Where nothing could be measured: the ranges seen on common machines, wide on purpose.
    fn default() -> Self {
        let cost = |low: f64, mid: f64, high: f64| Cost { low, mid, high };
        Self {
            fault: cost(300.0, 1000.0, 5400.0),
            fault_in_user: cost(0.0, 0.03, 0.15),
            unmap: cost(30.0, 100.0, 300.0),
            call: cost(100.0, 300.0, 1000.0),
            send: cost(1000.0, 4000.0, 20_000.0),
            byte: cost(0.05, 0.1, 1.0),
            cold_byte: cost(0.05, 0.2, 2.5),
            device: cost(3000.0, 12_000.0, 80_000.0),
            switch: cost(1000.0, 2500.0, 6000.0),
            sleep: cost(1500.0, 6000.0, 40_000.0),
            process: cost(2e5, 6e5, 2e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_rounds_cost_what_any_of_them_saw() {
        let round = |low: f64, mid: f64, high: f64| {
            let cost = Cost { low, mid, high };
            Costs { fault: cost, call: cost, ..Costs::default() }
        };
        let costs =
            Costs::of_rounds(&[round(10.0, 20.0, 21.0), round(19.0, 20.0, 24.0), round(18.0, 30.0, 31.0)]);
        assert_eq!(costs.fault, Cost { low: 10.0, mid: 20.0, high: 31.0 });
        assert_eq!(costs.call, costs.fault);
        assert_eq!(costs.process, Costs::default().process);
    }

    #[test]
    fn what_calm_rounds_agree_on_may_still_be_dearer_at_another_time() {
        let calm = Cost { low: 99.0, mid: 100.0, high: 101.0 };
        let costs = Costs::of_rounds(&[Costs { call: calm, ..Costs::default() }]);
        assert_eq!(costs.call, Cost { low: 70.0, mid: 100.0, high: 150.0 });
    }

    #[test]
    fn without_a_round_the_usual_costs_hold() {
        assert_eq!(Costs::of_rounds(&[]).fault, Costs::default().fault);
    }
}
