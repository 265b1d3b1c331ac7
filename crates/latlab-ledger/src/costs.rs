//! What the kernel's work costs a piece, as measured on this machine, and what a count of it may therefore have taken.

/// Cost of one, nanoseconds: the range in which repeated measurements lay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Costs {
    /// A minor page fault on fresh memory.
    pub fault: Cost,
    /// Share of its time that samples and the kernel's ticks take for user code: where the kernel has interrupts off, or a hypervisor works, they come
    /// when the instruction that touched the page goes on.
    pub fault_in_user: Cost,
    /// Giving back a page that was touched.
    pub unmap: Cost,
    /// A read or write call of a file, without its bytes.
    pub call: Cost,
    /// A byte copied between a file in memory and the program.
    pub byte: Cost,
    /// A byte that came from a disk, beyond that: into a page that was just taken, which a host may have to find first.
    pub cold_byte: Cost,
    /// One operation of a disk that was waited for: asking for it, and its interrupt.
    pub device: Cost,
    /// A thread that leaves its CPU to wait, and comes back.
    pub switch: Cost,
    /// A sleep of microseconds: setting the timer, which a virtual machine's host does, leaving the CPU and coming back.
    pub sleep: Cost,
    /// Loading a small program, and ending it, without the pages that it touched.
    pub process: Cost,
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
            byte: cost(0.05, 0.1, 1.0),
            cold_byte: cost(0.05, 0.2, 2.5),
            device: cost(3000.0, 12_000.0, 80_000.0),
            switch: cost(1000.0, 2500.0, 6000.0),
            sleep: cost(1500.0, 6000.0, 40_000.0),
            process: cost(2e5, 6e5, 2e6),
        }
    }
}
