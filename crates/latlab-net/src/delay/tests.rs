//! The line by a clock that the test turns; `tests/path.rs` has the path itself, in processes of their own.

use std::os::fd::AsFd;

use super::line::Direction;
use super::*;

const SPEC: PathSpec = PathSpec { rtt_us: 20_000, rate_bit_per_s: None, queue_bytes: None };
const ONE_WAY_NS: u64 = 10_000_000;

fn arrived(direction: &mut Direction, now_ns: u64) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while direction.arrived(now_ns, &mut |frame| frames.push(frame.to_vec())) {}
    frames
}

#[test]
fn a_frame_arrives_when_half_the_round_trip_is_over_and_in_order() {
    let mut direction = Direction::new(&SPEC);
    assert_eq!(direction.next_ns(), None);
    assert!(direction.take(5, b"first"));
    assert!(direction.take(7, b"second"));
    assert_eq!(direction.next_ns(), Some(ONE_WAY_NS + 5));
    assert!(arrived(&mut direction, ONE_WAY_NS + 4).is_empty());
    assert_eq!(arrived(&mut direction, ONE_WAY_NS + 5), [b"first"]);
    assert_eq!(arrived(&mut direction, u64::MAX), [b"second"]);
}

#[test]
fn a_rate_spreads_frames_and_what_does_not_fit_its_queue_is_dropped() {
    let mut direction = Direction::new(&PathSpec {
        // A byte takes a microsecond.
        rate_bit_per_s: Some(8_000_000),
        queue_bytes: Some(3000),
        ..SPEC
    });
    let frame = [0; 1000];
    let taken = (0..5).filter(|_| direction.take(0, &frame)).count();
    assert_eq!(taken, 3);
    for number in 1..=3 {
        assert_eq!(direction.next_ns(), Some(ONE_WAY_NS + number * 1_000_000));
        assert_eq!(arrived(&mut direction, ONE_WAY_NS + number * 1_000_000).len(), 1);
    }
    // The link is idle again: no debt, no credit.
    assert!(direction.take(50_000_000, &frame));
    assert_eq!(direction.next_ns(), Some(50_000_000 + 1_000_000 + ONE_WAY_NS));
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut direction = Direction::new(&SPEC);
    let frame = [0; 1500];
    let taken = (0..300_000).filter(|_| direction.take(0, &frame)).count();
    assert!(taken * 1500 <= 256 << 20);
    assert!(!direction.take(1, &frame));
    assert_eq!(arrived(&mut direction, u64::MAX).len(), taken);
    assert!(direction.take(2, &frame), "there is room again");
}

#[test]
fn presets_have_names() {
    assert_eq!(PathSpec::preset("london-california").map(|spec| spec.rtt_us), Some(140_000));
    assert!(PathSpec::preset("same-rack").is_some());
    assert!(PathSpec::preset("moon").is_none());
}

#[test]
fn a_process_with_threads_is_told_that_it_cannot() {
    let (stop, _keeps_waiting) = io::pipe().expect("a pipe");
    let tells = std::thread::spawn(move || keep(&SPEC, stop.as_fd(), &mut |_| Ok(())));
    let error = tells.join().expect("no panic").expect_err("two threads at least");
    assert!(error.to_string().contains("threads instead of one"), "{error}");
}
