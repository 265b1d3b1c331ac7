//! What else runs beside a thread that measures.

/// Keeps the calling thread on one CPU where the system allows it. Where it does not, figures are noisier and
/// the machine's description says that affinity is unknown.
pub fn pin_this_thread(cpu: u32) {
    let _pinned = latlab_observe::pin_to(cpu);
}

/// Puts this process into the idle class of I/O, where the system has one: it then reads and writes only when
/// nobody else wants to. What cannot be had is no error: figures are the same, neighbours notice more.
pub fn give_way_to_others() {
    #[cfg(target_os = "linux")]
    {
        // From linux/ioprio.h, which libc does not carry: the class stands above the 13 bits of the level.
        const WHO_PROCESS: libc::c_int = 1;
        const CLASS_IDLE: libc::c_int = 3 << 13;
        // SAFETY: ioprio_set(2) takes three integers and touches no memory; 0 is the calling thread.
        let _status = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
    }
}
