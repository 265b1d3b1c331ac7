//! `kernel.syscall`: what it costs to ask the kernel for something that it can answer at once.

use latlab_probes_shared::no_kernel;
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "syscall/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Syscall;

/// In the order in which they are given up last.
const CALLS: [Call; 5] =
    [Call::Getppid, Call::ClockGettimeVdso, Call::ClockGettimeSyscall, Call::Read0, Call::FutexWake];

/// Which call is made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    operation: Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Call {
    Getppid,
    #[serde(rename = "read-0")]
    Read0,
    #[serde(rename = "clock_gettime-vdso")]
    ClockGettimeVdso,
    #[serde(rename = "clock_gettime-syscall")]
    ClockGettimeSyscall,
    FutexWake,
}

/// Who serves the clock decides whether it can be read without a call.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServedBy {
    clock_source: String,
}

/// What calls cost.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// The shortest call.
    getppid_ns: Option<f64>,
    /// What asking the kernel for the time costs, over what programs do.
    clock_syscall_over_vdso: Estimate,
}

impl Probe for Syscall {
    type Point = Made;
    type Evidence = work::Evidence;
    type Details = ServedBy;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.syscall",
        tier: Tier::Kernel,
        title: "system calls that do nothing",
        question: "What does the cheapest request to the kernel cost?",
        method: "Calls that the kernel answers immediately, made consecutively through the C library's \
            syscall(), in windows of about 20 µs; a window's mean is one value. \
What remains is the entry into the kernel and the return, including this kernel's mitigations of attacks \
that leak memory between the two.

getppid is the shortest call: it reads one number, and no library caches it. read-0 reads no bytes from \
/dev/null: a file descriptor is looked up and the file's own function called. \
futex-wake looks for a sleeping thread where there is none, as a lock's release does when it has to ask the \
kernel.

clock_gettime is made both ways. clock_gettime-vdso is what programs do: the C library reads the counter in \
memory that the kernel shares with every process, and no call is made. \
clock_gettime-syscall asks the kernel itself. Where both cost the same, this machine's clock cannot be read \
without the kernel, and every time stamp costs a system call.

Every answer is checked: the parent's id, no bytes, no thread woken, a time that is not earlier than the \
previous one. The addition that counts right answers is part of the figure, below a nanosecond.",
        method_version: 1,
        convention: "one call",
        touches: &["/dev/null, reading no bytes"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Made> {
        if let Some(reason) = no_kernel(work::HERE, env) {
            return Plan::no(reason);
        }
        let points = CALLS.map(|operation| Planned {
            rank: match operation {
                Call::Getppid => Rank::Headline,
                Call::ClockGettimeVdso | Call::Read0 => env.headline_but_quick(Rank::Detail),
                Call::ClockGettimeSyscall | Call::FutexWake => Rank::Detail,
            },
            cache_scope: CacheScope::First,
            ..Planned::new(Made { operation })
        });
        Plan::of(points.to_vec())
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Made]) -> Result<work::Session<'env>> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let of = |operation| result_at(figures, &Made { operation });
        Some(Findings {
            getppid_ns: of(Call::Getppid).map(|result| result.p50),
            clock_syscall_over_vdso: ratio(of(Call::ClockGettimeSyscall)?, of(Call::ClockGettimeVdso)?),
        })
    }
}
