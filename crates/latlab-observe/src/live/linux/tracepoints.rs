//! Which tracepoints tell what keeps a CPU from its thread, and their numbers on this kernel.

use std::ffi::CString;
use std::io::{self, BufRead, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::perf::is_readable;
use crate::records::{Role, Which, field_offset};
use crate::{Cause, Proof, requests};

/// Where tracefs is usually mounted.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Vectors of x86 that handlers have tracepoints for; which there are differs between kernels. `irq_work` is left out: the kernel refuses
/// its exit to perf, whose own records it would wake.
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

/// The folder `events` of tracefs: the mounted one, or one that only this process sees and that is gone with it.
#[derive(Debug)]
pub(crate) enum Folder {
    Mounted(PathBuf),
    Own(OwnedFd),
}

impl Folder {
    /// Finds it or, where nobody has mounted it and this process may, makes a mount that is attached nowhere.
    pub(crate) fn open() -> Result<Self, String> {
        for place in USUAL {
            let events = Path::new(place).join("events");
            if is_readable(&events.join("sched/sched_switch/id")) {
                return Ok(Self::Mounted(events));
            }
        }
        detached().map(Self::Own).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "needs root: the numbers of tracepoints are in tracefs, which this user may not read"
                    .to_owned()
            }
            Some(libc::ENODEV) => "this kernel was built without tracing".to_owned(),
            Some(libc::ENOSYS) => {
                "tracefs is not mounted, and this kernel or sandbox has no fsopen(2)".to_owned()
            }
            _ => format!("tracefs is not mounted and cannot be opened: {error}"),
        })
    }

    fn read(&self, path: &str) -> io::Result<String> {
        match self {
            Self::Mounted(events) => std::fs::read_to_string(events.join(path)),
            Self::Own(root) => {
                let name = CString::new(format!("events/{path}"))?;
                // SAFETY: a descriptor of ours and a terminated path.
                let fd = unsafe {
                    libc::openat(root.as_raw_fd(), name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC)
                };
                if fd < 0 {
                    return Err(io::Error::last_os_error());
                }
                // SAFETY: the kernel has just given us this descriptor.
                let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                Ok(text)
            }
        }
    }

    fn id(&self, name: &str) -> Option<u64> {
        self.read(&format!("{name}/id")).ok()?.trim().parse().ok()
    }

    fn offset(&self, name: &str, field: &str) -> Option<usize> {
        field_offset(&self.read(&format!("{name}/format")).ok()?, field)
    }
}

/// tracefs as a mount that is attached nowhere: visible to this process only, gone when it is closed.
fn detached() -> io::Result<OwnedFd> {
    // From linux/mount.h, which libc does not carry for every target.
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;
    const READ_ONLY: libc::c_uint = 1;
    let owned = |fd: libc::c_long| {
        let fd = libc::c_int::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    // SAFETY: a terminated name and flags.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), FSOPEN_CLOEXEC) })?;
    // SAFETY: a descriptor of ours; this command takes no key and no value.
    let status = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            std::ptr::null::<u8>(),
            std::ptr::null::<u8>(),
            0,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor of ours and flags.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, READ_ONLY) })
}

/// Where this kernel's tick is handled: `tick_nohz_handler` since Linux 6.9, `tick_sched_timer` before. Empty where the addresses are hidden.
fn tick_handlers() -> Vec<u64> {
    let Ok(file) = std::fs::File::open("/proc/kallsyms") else {
        return Vec::new();
    };
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
}

/// Those of a request of a block device: handed over, ended. `None` where this kernel has them not.
pub(crate) fn requests(folder: &Folder) -> Option<[Point; 2]> {
    let point = |name: &str, role: fn(requests::Which) -> Role| {
        Some(Point {
            name: name.to_owned(),
            id: folder.id(name)?,
            role: role(requests::Which {
                device: folder.offset(name, "dev")?,
                sector: folder.offset(name, "sector")?,
            }),
        })
    };
    Some([point("block/block_rq_issue", Role::HandedOver)?, point("block/block_rq_complete", Role::Ended)?])
}

/// The tracepoints of this kernel that are evidence here. Where there are records of faults already, their tracepoint says nothing more.
pub(crate) fn wanted(folder: &Folder, faults_are_recorded: bool) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |name: String, role: Option<Role>| {
        if let (Some(id), Some(role)) = (folder.id(&name), role) {
            points.push(Point { name, id, role });
        }
    };
    let sched = folder.offset("sched/sched_switch", "next_comm");
    add("sched/sched_switch".to_owned(), sched.map(|name_offset| Role::NextThread { name_offset }));
    for (vector, cause) in VECTORS {
        let enter = Role::Enter(cause, Which::Fixed(Arc::from(vector)));
        add(format!("irq_vectors/{vector}_entry"), Some(enter));
        add(format!("irq_vectors/{vector}_exit"), Some(Role::Leave(cause)));
    }
    // aarch64 and others: interprocessor interrupts have tracepoints of their own, the timer is an ordinary interrupt.
    let enter = Role::Enter(Cause::Ipi, Which::Fixed(Arc::from("ipi")));
    add("ipi/ipi_entry".to_owned(), Some(enter));
    add("ipi/ipi_exit".to_owned(), Some(Role::Leave(Cause::Ipi)));
    let text = folder.offset("irq/irq_handler_entry", "name").map(Which::Text);
    add("irq/irq_handler_entry".to_owned(), text.map(|which| Role::Enter(Cause::DeviceInterrupt, which)));
    add("irq/irq_handler_exit".to_owned(), Some(Role::Leave(Cause::DeviceInterrupt)));
    let function = folder.offset("timer/hrtimer_expire_entry", "function");
    let ticks = tick_handlers();
    add(
        "timer/hrtimer_expire_entry".to_owned(),
        function.filter(|_| !ticks.is_empty()).map(|function_offset| Role::Timer { function_offset, ticks }),
    );
    let vector = folder.offset("irq/softirq_entry", "vec");
    add(
        "irq/softirq_entry".to_owned(),
        vector.map(|offset| Role::Enter(Cause::Softirq, Which::Numbered(offset, SOFTIRQS))),
    );
    add("irq/softirq_exit".to_owned(), Some(Role::Leave(Cause::Softirq)));
    let lasted = folder.offset("nmi/nmi_handler", "delta_ns");
    add("nmi/nmi_handler".to_owned(), lasted.map(|offset| Role::Lasted(Cause::Nmi, offset)));
    if !faults_are_recorded {
        add("exceptions/page_fault_user".to_owned(), Some(Role::Moment(Cause::PageFault, Proof::Tracepoint)));
    }
    points
}
