//! `kernel.syscall`: what it costs to ask the kernel for something that it can answer at once.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Spec, Support,
    Tier, ratio,
};
use latlab_probes_shared::no_kernel;
use latlab_record::{Header, Point, Record, Unit};
use serde_json::json;

#[cfg_attr(target_os = "linux", path = "syscall/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Syscall;

static SPEC: Spec = Spec {
    id: "kernel.syscall",
    tier: Tier::Kernel,
    title: "system calls that do nothing",
    question: "What does it cost to ask the kernel for anything at all?",
    method: "Calls that the kernel answers at once, made in a row through the C library's syscall(), in windows of about 20 us; a window's mean is one value. \
What remains is the way into the kernel and back, with what this kernel does on it against attacks that leak memory between the two.

getppid is the shortest call: it reads one number, and no library caches it. read-0 reads no bytes from /dev/null: a file descriptor is looked up and the file's own function called. \
futex-wake looks for a sleeper where nobody sleeps: a lock's release that found it had to ask.

clock_gettime is made both ways. clock_gettime-vdso is what programs do: the C library reads the counter in memory that the kernel shares with every process, and no call is made. \
clock_gettime-syscall asks the kernel itself. Where both cost the same, this machine's clock cannot be read without the kernel, and every time stamp costs a system call.

Every answer is checked: the parent's id, no bytes, nobody woken, a time that is not before the one before. The addition that counts right answers is part of the figure, below a nanosecond.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one call",
    needs: &[],
    touches: &["/dev/null, reading no bytes"],
    saturates: false,
    operations: Operations::Unwatched,
};

const GETPPID: &str = "getppid";
const READ: &str = "read-0";
const VDSO: &str = "clock_gettime-vdso";
const CLOCK: &str = "clock_gettime-syscall";
const FUTEX: &str = "futex-wake";
/// In the order in which they are given up last.
const OPERATIONS: [&str; 5] = [GETPPID, VDSO, CLOCK, READ, FUTEX];

impl AnyProbe for Syscall {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        no_kernel(work::HERE, env).map_or(Support::Yes, Support::No)
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        OPERATIONS
            .into_iter()
            .map(|operation| Planned {
                rank: match operation {
                    GETPPID => Rank::Headline,
                    VDSO | READ => env.headline_but_quick(Rank::Detail),
                    _ => Rank::Detail,
                },
                reach: Reach::First,
                ..Planned::new(Point { operation: Some(operation.to_owned()), ..Point::default() })
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        0
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let of =
            |operation| results.iter().find(|result| result.point.operation.as_deref() == Some(operation));
        let (Some(vdso), Some(call)) = (of(VDSO), of(CLOCK)) else {
            return Vec::new();
        };
        let findings = json!({
            "getppid_ns": of(GETPPID).map(|result| result.p50),
            "clock_syscall_over_vdso": ratio(call, vdso),
        });
        vec![SPEC.derived(findings)]
    }
}
