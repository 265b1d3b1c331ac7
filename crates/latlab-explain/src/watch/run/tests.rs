use std::io::Write as _;

use super::*;
use crate::Request;

const FREE: Tracing = Tracing {
    recording: None,
    price: Price { switch_ns: 0.0, sample_ns: 0.0, fault_ns: 0.0, open_ns: 0.0, start_ns: 0.0 },
    overhead: Request::USUAL_OVERHEAD,
};
const FAR_NS: u64 = 60_000_000_000;

/// This process, looked at by itself.
fn watching(governor: &mut Governor) -> Watching<'_> {
    let pid = std::process::id();
    let mut watching = Watching::of(pid, Rules::built_in(), FREE, governor, false);
    watching.begin(Usage::default());
    watching
}

fn governor() -> Governor {
    Governor::with(FREE.price, 1_000_000, FREE.overhead)
}

#[test]
fn what_reading_files_costs_is_not_the_cost_of_a_scan() {
    let files: Vec<std::fs::File> =
        (0..200).filter_map(|_| std::fs::File::open("/proc/self/exe").ok()).collect();
    let mut governor = governor();
    let mut watching = watching(&mut governor);
    watching.next = 0;
    watching.step(None, || false);
    let left = thread_cpu_ns() - watching.used;
    assert_eq!(watching.scans, 1);
    let cost = watching.descriptors.cost_ns;
    assert!(left < cost / 2, "{left} of {cost} ns for {} files", files.len());
}

#[test]
fn a_scan_counts_to_the_moment_at_which_it_began() {
    let gate = std::sync::Arc::new(std::sync::Mutex::new(()));
    let closed = gate.lock().unwrap();
    let wait = || {
        let gate = std::sync::Arc::clone(&gate);
        std::thread::spawn(move || drop(gate.lock()))
    };
    let threads: Vec<_> = (0..100).map(|_| wait()).collect();
    let mut governor = governor();
    let mut watching = watching(&mut governor);
    let used = thread_cpu_ns();
    watching.scan();
    let cost = thread_cpu_ns() - used;
    let since = now_ns() - watching.sweep.now();
    assert!(since > cost / 2, "the scan itself, of {cost} ns, comes after it: {since} ns");
    drop(closed);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn what_has_ended_when_recording_is_to_begin_is_not_absent_since_the_last_scan() {
    let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut governor = governor();
    let mut watching = Watching::of(child.id(), Rules::built_in(), FREE, &mut governor, true);
    watching.begin(Usage::default());
    watching.scan();
    drop(child.stdin.take());
    while !has_ended(i32::try_from(child.id()).unwrap()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    watching.resume();
    let end = now_ns();
    let swept = watching.sweep.end(end);
    child.wait().unwrap();
    assert_eq!((swept.scanned.absent, swept.recorded.wall), (0, 0));
}

#[test]
fn a_read_of_python_code_brings_no_scan_of_threads_along() {
    let mut governor = governor();
    let mut watching = watching(&mut governor);
    watching.next = now_ns() + FAR_NS;
    watching.python = Python::due_at(now_ns());
    watching.step(None, || false);
    assert_eq!(watching.scans, 0);
    assert!(watching.python.due() > now_ns(), "it was read");
}

#[test]
fn lines_are_heard_between_two_scans() {
    let mut listener = Listener::new(64).unwrap();
    let mut governor = governor();
    let mut watching = watching(&mut governor);
    let [_, (_, lines)] = listener.environment();
    watching.listener = Some(&mut listener);
    watching.next = now_ns() + FAR_NS;
    let mut file = std::fs::OpenOptions::new().append(true).open(lines).unwrap();
    for line in ["begin nap\n", "end nap\n"] {
        file.write_all(line.as_bytes()).unwrap();
        watching.step(None, || false);
    }
    assert_eq!(watching.scans, 0);
    let heard = listener.heard();
    assert_eq!(heard.stages[0].count, 1);
}

#[test]
#[expect(clippy::zombie_processes, reason = "that is waited for by what is tested")]
fn what_a_program_wrote_is_known_from_waiting_for_it() {
    let child = std::process::Command::new("head")
        .args(["-c", "1000000", "/dev/zero"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    while !has_ended(pid) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let (ended, counted) = reap_with_io(pid);
    assert_eq!(ended.exit_code, Some(0));
    // Other tests write meanwhile.
    let written = counted.unwrap().written_chars;
    assert!((1_000_000..5_000_000).contains(&written), "{written}");
}

#[test]
fn the_distance_of_readings_counts_where_it_is_that_of_scans() {
    assert_eq!(late(true, 30, 24, 10), 6);
    assert_eq!(late(false, 30, 24, 10), 20);
    assert_eq!(late(true, 20, 24, 10), 0);
}

#[test]
fn nobody_waits_for_the_end_of_a_process_once_it_is_not_asked_for() {
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let stamp = EndStamp::of(i32::try_from(child.id()).unwrap());
    assert!(stamp.thread.is_some());
    let (tell, reported) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(stamp);
        tell.send(()).unwrap();
    });
    let ended = reported.recv_timeout(std::time::Duration::from_mins(1));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    drop(child.stdin.take());
    child.wait().unwrap();
    ended.expect("the thread has ended before the process");
}

#[test]
fn what_is_counted_and_not_recorded_was_run_by_threads_without_events() {
    // A tenth, and what is late.
    assert!(!is_incomplete(0, 0) && !is_incomplete(120_000_000, 100_000_000));
    assert!(is_incomplete(140_000_000, 100_000_000) && is_incomplete(30_000_000, 0));
}
