//! Which tracepoints tell what keeps a CPU from its thread, and their numbers on this kernel.

use std::io::{self, BufRead as _};
use std::sync::{Arc, LazyLock};

use latlab_perf::Tracefs;

use super::roles::{RequestFields, Role, Which};
use crate::cause::{Cause, Proof};

/// Vectors of x86 that handlers have tracepoints for; which there are differs between kernels. `irq_work` is
/// left out: the kernel refuses its exit to perf, whose own records it would wake.
const VECTORS: [(&str, Cause); 13] = [
    ("local_timer", Cause::TimerTick),
    ("reschedule", Cause::Ipi),
    ("call_function", Cause::Ipi),
    ("call_function_single", Cause::Ipi),
    ("x86_platform_ipi", Cause::Ipi),
    ("hypervisor_callback", Cause::DeviceInterrupt),
    ("vector", Cause::DeviceInterrupt),
    ("spurious_apic", Cause::DeviceInterrupt),
    ("error_apic", Cause::DeviceInterrupt),
    ("thermal_apic", Cause::DeviceInterrupt),
    ("threshold_apic", Cause::DeviceInterrupt),
    ("deferred_error_apic", Cause::DeviceInterrupt),
    ("posted_msi", Cause::DeviceInterrupt),
];

/// In the order of the kernel's `enum` in include/linux/interrupt.h.
const SOFTIRQS: &[&str] =
    &["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// A tracepoint of this kernel.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) role: Role,
}

/// Where this kernel's tick is handled: `tick_nohz_handler` since Linux 6.9, `tick_sched_timer` before. Empty
/// where the addresses are hidden. Looked up once a process, in 45 ms.
static TICK_HANDLERS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let Ok(file) = std::fs::File::open("/proc/kallsyms") else { return Vec::new() };
    io::BufReader::new(file)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let name = words.nth(1)?;
            let is_tick = name == "tick_nohz_handler" || name == "tick_sched_timer";
            // Zero is what those see who may not see it.
            (is_tick && address != 0).then_some(address)
        })
        .collect()
});

/// Those of a request of a block device: handed over, ended. `None` where this kernel has them not.
pub(crate) fn requests(tracefs: &Tracefs) -> Option<[Point; 2]> {
    let point = |name: &str, role: fn(RequestFields) -> Role| {
        Some(Point {
            name: name.to_owned(),
            id: tracefs.id(name)?,
            role: role(RequestFields {
                device: tracefs.offset(name, "dev")?,
                sector: tracefs.offset(name, "sector")?,
            }),
        })
    };
    Some([point("block/block_rq_issue", Role::HandedOver)?, point("block/block_rq_complete", Role::Ended)?])
}

/// The tracepoints of this kernel that are evidence here. Where there are records of faults already, their
/// tracepoint says nothing more.
pub(crate) fn wanted(tracefs: &Tracefs, faults_are_recorded: bool) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |name: String, role: Option<Role>| {
        if let (Some(id), Some(role)) = (tracefs.id(&name), role) {
            points.push(Point { name, id, role });
        }
    };
    let sched = tracefs.offset("sched/sched_switch", "next_comm");
    add("sched/sched_switch".to_owned(), sched.map(|name_offset| Role::NextThread { name_offset }));
    for (vector, cause) in VECTORS {
        let enter = Role::Enter(cause, Which::Fixed(Arc::from(vector)));
        add(format!("irq_vectors/{vector}_entry"), Some(enter));
        add(format!("irq_vectors/{vector}_exit"), Some(Role::Leave(cause)));
    }
    // aarch64 and others: interprocessor interrupts have tracepoints of their own, the timer is an ordinary
    // interrupt.
    let enter = Role::Enter(Cause::Ipi, Which::Fixed(Arc::from("ipi")));
    add("ipi/ipi_entry".to_owned(), Some(enter));
    add("ipi/ipi_exit".to_owned(), Some(Role::Leave(Cause::Ipi)));
    let text = tracefs.offset("irq/irq_handler_entry", "name").map(Which::Text);
    add("irq/irq_handler_entry".to_owned(), text.map(|which| Role::Enter(Cause::DeviceInterrupt, which)));
    add("irq/irq_handler_exit".to_owned(), Some(Role::Leave(Cause::DeviceInterrupt)));
    let function = tracefs.offset("timer/hrtimer_expire_entry", "function");
    let ticks = TICK_HANDLERS.clone();
    add(
        "timer/hrtimer_expire_entry".to_owned(),
        function.filter(|_| !ticks.is_empty()).map(|function_offset| Role::Timer { function_offset, ticks }),
    );
    let vector = tracefs.offset("irq/softirq_entry", "vec");
    add(
        "irq/softirq_entry".to_owned(),
        vector.map(|offset| Role::Enter(Cause::Softirq, Which::Numbered(offset, SOFTIRQS))),
    );
    add("irq/softirq_exit".to_owned(), Some(Role::Leave(Cause::Softirq)));
    let lasted = tracefs.offset("nmi/nmi_handler", "delta_ns");
    add("nmi/nmi_handler".to_owned(), lasted.map(|offset| Role::Lasted(Cause::Nmi, offset)));
    if !faults_are_recorded {
        add("exceptions/page_fault_user".to_owned(), Some(Role::Moment(Cause::PageFault, Proof::Tracepoint)));
    }
    points
}
