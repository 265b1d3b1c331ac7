use super::*;

fn rules() -> &'static Rules {
    Rules::built_in()
}

fn named(reason: Option<Reason>) -> (Category, &'static str) {
    let reason = reason.expect("a rule fits");
    (rules().category(reason), rules().part(reason))
}

/// Stack of kernel functions, the running one first.
fn waits(stack: &[&str]) -> (Category, &'static str) {
    let fit = stack.iter().fold(Fit::default(), |fit, name| fit.and(rules().wait_fit(name)));
    named(rules().wait_by(fit))
}

fn busy(stack: &[&str], allocating: bool) -> (Category, &'static str) {
    let fit = stack.iter().fold(Fit::default(), |fit, name| fit.and(rules().busy_fit(name)));
    named(rules().busy_by(fit, allocating))
}

/// Stack of user functions with their files, the running one first.
fn user(stack: &[(&str, &str)]) -> Option<(Category, &'static str)> {
    let mut fit = 0;
    for (at, (function, object)) in stack.iter().enumerate() {
        let (leaf, caller) = rules().user_fit(function, object);
        fit |= if at == 0 { leaf } else { caller };
    }
    rules().user_by(fit).map(|reason| named(Some(reason)))
}

#[test]
fn the_built_in_rules_can_be_read_and_no_table_outgrows_its_mask() {
    let rules = Rules::parse(TEXT).expect("readable");
    assert_eq!(rules.version(), 3);
    assert!(rules.wait.len() <= 64 && rules.busy.len() <= 64 && rules.user.len() <= 64);
    for &category in Category::ALL {
        assert_eq!(rules.category(rules.whole(category)), category);
    }
}

#[test]
fn an_unknown_key_is_an_error_and_not_silently_ignored() {
    let wrong = TEXT.replacen("part =", "parts =", 1);
    assert!(Rules::parse(&wrong).is_err());
}

#[test]
fn a_read_waits_for_what_its_descriptor_is() {
    let wait = |name, kind| named(rules().wait_in_call(name, kind)).0;
    assert_eq!(wait("read", Kind::File), Category::StorageWait);
    assert_eq!(wait("read", Kind::Socket), Category::Network);
    assert_eq!(wait("read", Kind::Pipe), Category::Pipe);
    assert_eq!(wait("read", Kind::Terminal), Category::Sleep);
    assert_eq!(wait("(fault)", Kind::Other), Category::StorageWait);
    assert_eq!(wait("futex", Kind::Other), Category::Locks);
    assert_eq!(wait("clock_nanosleep", Kind::Other), Category::Sleep);
    assert_eq!(wait("wait4", Kind::Other), Category::WaitingForChildren);
    assert_eq!(wait("poll", Kind::Socket), Category::Network);
    assert_eq!(wait("poll", Kind::Pipe), Category::Pipe);
    assert_eq!(wait("epoll_wait", Kind::Event), Category::Locks);
    assert_eq!(wait("select", Kind::Timer), Category::Sleep);
    assert_eq!(wait("epoll_pwait", Kind::Other), Category::Network);
    assert_eq!(rules().wait_in_call("getpid", Kind::Other), None);
}

#[test]
fn descriptors_are_told_apart_by_their_links() {
    for (link, kind) in [
        ("socket:[123]", Kind::Socket),
        ("pipe:[5]", Kind::Pipe),
        ("/dev/pts/3", Kind::Terminal),
        ("anon_inode:[eventfd]", Kind::Event),
        ("anon_inode:[timerfd]", Kind::Timer),
        ("anon_inode:[eventpoll]", Kind::Other),
        ("anon_inode:[pidfd]", Kind::Process),
        ("/home/x/pipe:", Kind::File),
    ] {
        assert_eq!(Kind::of_link(link), kind, "{link}");
    }
}

#[test]
fn a_wait_is_named_by_its_kernel_stack() {
    let cold_read = [
        "__schedule",
        "schedule",
        "io_schedule",
        "folio_wait_bit_common",
        "filemap_get_pages",
        "filemap_read",
        "vfs_read",
        "ksys_pread64",
    ];
    assert_eq!(waits(&cold_read), (Category::StorageWait, "reading and writing"));
    let cold_page = [
        "schedule",
        "io_schedule",
        "folio_wait_bit_common",
        "filemap_fault",
        "__do_fault",
        "asm_exc_page_fault",
    ];
    assert_eq!(waits(&cold_page), (Category::StorageWait, "page fault"));
    assert_eq!(waits(&["schedule", "wait_woken", "sk_wait_data", "tcp_recvmsg_locked"]).0, Category::Network);
    assert_eq!(waits(&["schedule", "futex_do_wait", "__futex_wait", "do_futex"]).0, Category::Locks);
    assert_eq!(waits(&["schedule", "do_nanosleep", "hrtimer_nanosleep"]).0, Category::Sleep);
    assert_eq!(waits(&["schedule", "anon_pipe_read", "vfs_read"]).0, Category::Pipe);
    assert_eq!(waits(&["schedule", "do_wait", "kernel_wait4"]).0, Category::WaitingForChildren);
    assert_eq!(waits(&["schedule", "schedule_hrtimeout_range", "ep_poll"]).0, Category::Network);
}

#[test]
fn work_in_the_kernel_is_named_by_the_call_and_not_by_the_leaf() {
    // The timer cannot interrupt code with interrupts off: samples pile up where they are switched on again.
    let read = [
        "_raw_spin_unlock_irqrestore",
        "filemap_get_pages",
        "filemap_read",
        "vfs_read",
        "ksys_read",
        "do_syscall_64",
    ];
    assert_eq!(busy(&read, false), (Category::FileIoCpu, "reading"));
    let tail_called = ["_copy_to_iter", "filemap_read", "do_syscall_64"];
    assert_eq!(busy(&tail_called, false), (Category::FileIoCpu, "reading"));
    let fault =
        ["clear_page_erms", "do_anonymous_page", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];
    assert_eq!(busy(&fault, true), (Category::PageFaults, "in the allocator"));
    assert_eq!(busy(&fault, false), (Category::PageFaults, "in other code"));
    let mapped =
        ["next_uptodate_folio", "filemap_map_pages", "do_read_fault", "handle_mm_fault", "exc_page_fault"];
    assert_eq!(busy(&mapped, false), (Category::PageFaults, "of file mappings"));
    let cold = [
        "submit_bio_noacct",
        "page_cache_ra_unbounded",
        "filemap_fault",
        "handle_mm_fault",
        "exc_page_fault",
    ];
    assert_eq!(busy(&cold, false), (Category::FileIoCpu, "reading for page faults"));
    let interrupted = [
        "handle_softirqs",
        "__irq_exit_rcu",
        "common_interrupt",
        "asm_common_interrupt",
        "vfs_read",
        "do_syscall_64",
    ];
    assert_eq!(busy(&interrupted, false).0, Category::InterruptsForOthers);
    let loopback =
        ["tcp_v4_rcv", "net_rx_action", "do_softirq", "__local_bh_enable_ip", "tcp_sendmsg", "do_syscall_64"];
    assert_eq!(busy(&loopback, false).0, Category::Network);
    assert_eq!(busy(&["unmap_page_range", "exit_mmap", "mmput", "do_exit"], false).0, Category::StartAndExit);
    assert_eq!(busy(&["anon_pipe_write", "vfs_write", "ksys_write"], false).0, Category::Pipe);
    let other = busy(&["__do_sys_getppid", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"], false);
    assert_eq!(other, (Category::KernelCpu, "other system calls"));
}

#[test]
fn recording_is_not_the_work_of_the_call_that_is_recorded() {
    let traced = [
        "perf_swevent_event",
        "perf_tp_event",
        "perf_trace_sys_enter",
        "syscall_trace_enter",
        "do_syscall_64",
    ];
    assert_eq!(busy(&traced, false), (Category::KernelCpu, "recording of events"));
    let switched =
        ["perf_event_output_forward", "__perf_event_task_sched_out", "__schedule", "pipe_read", "vfs_read"];
    assert_eq!(busy(&switched, false), (Category::KernelCpu, "recording of events"));
}

#[test]
fn c_and_cpp_allocators_are_found_in_the_callers_too() {
    let in_malloc = [("_int_malloc", "libc.so.6"), ("malloc", "libc.so.6"), ("main", "list")];
    assert_eq!(user(&in_malloc), Some((Category::Allocator, "C library")));
    let cleared = [("__memset_avx2_unaligned_erms", "libc.so.6"), ("calloc", "libc.so.6"), ("main", "list")];
    assert_eq!(user(&cleared).map(|found| found.0), Some(Category::Allocator));
    let copied = [("__memmove_avx_unaligned_erms", "libc.so.6"), ("main", "copy")];
    assert_eq!(user(&copied).map(|found| found.0), Some(Category::MemoryCopy));
    assert_eq!(
        user(&[("operator new(unsigned long)", "libstdc++.so.6")]).map(|found| found.0),
        Some(Category::Allocator)
    );
    assert_eq!(user(&[("main", "list")]), None);
}

#[test]
fn rust_go_python_java_and_node_have_their_rules() {
    for (function, object, category) in [
        ("__rdl_alloc", "wc", Category::Allocator),
        ("mi_malloc", "libmimalloc.so", Category::Allocator),
        ("runtime.mallocgc", "wc", Category::Allocator),
        ("runtime.growslice", "wc", Category::Allocator),
        ("runtime.gcDrain", "wc", Category::GarbageCollection),
        ("runtime.memmove", "wc", Category::MemoryCopy),
        ("_PyObject_Malloc", "python3.11", Category::Allocator),
        ("unicode_dealloc", "python3.11", Category::Allocator),
        ("gc_collect_main", "python3.11", Category::GarbageCollection),
        ("G1ParScanThreadState::do_oop_evac", "libjvm.so", Category::GarbageCollection),
        ("v8::internal::Scavenger::Process", "node", Category::GarbageCollection),
        ("_dl_relocate_object", "ld-linux-x86-64.so.2", Category::StartAndExit),
    ] {
        assert_eq!(user(&[(function, object)]).map(|found| found.0), Some(category), "{function}");
    }
    let threads = rules().thread_fit("GC Thread#0");
    assert_eq!(
        rules().user_by(threads).map(|reason| rules().category(reason)),
        Some(Category::GarbageCollection)
    );
    assert_eq!(rules().thread_fit("main"), 0);
}

#[test]
fn a_collector_that_allocates_is_the_collector() {
    let stack = [("runtime.mallocgc", "wc"), ("runtime.gcDrain", "wc"), ("runtime.gcBgMarkWorker", "wc")];
    assert_eq!(user(&stack).map(|found| found.0), Some(Category::GarbageCollection));
}

#[test]
fn what_python_calls_back_from_a_destructor_is_not_the_allocator() {
    let stack = [("PyEval_EvalDefault", "python3.11"), ("subtype_dealloc", "python3.11")];
    assert_eq!(user(&stack), None);
}
