use latlab_clock::SimulatedClock;

use super::*;

#[test]
fn a_gathered_block_counts_the_operations_of_all_its_windows() {
    let block = RemoteBlock::gather(100, |values| {
        values.extend([2.0, 3.0]);
        Ok(())
    })
    .expect("two windows");
    assert_eq!((block.ops, block.ops_per_window), (200, Some(100)));
    assert!((block.timed_ns() - 500.0).abs() < 1e-9);
    assert!(RemoteBlock::gather(1, |_| Ok(())).is_err(), "no window");
}

/// What `work` leaves in a block of a record that has so many operations a window already, and how many it
/// has then.
fn taken(clock: &Clock, ops: Option<u64>, work: impl FnOnce(&mut Block)) -> (BlockData, Option<u64>) {
    let (mut ops, mut threshold) = (ops, 0.0);
    let mut block = Block::new(clock, &mut ops, &mut threshold);
    work(&mut block);
    (block.into_data(), ops)
}

/// Work that is interrupted once.
struct Interrupted {
    time: SimulatedClock,
    op_ns: f64,
    calls: u32,
    at_call: u32,
    for_ns: f64,
}

impl Batch for Interrupted {
    fn run(&mut self, ops: u64) -> u64 {
        self.calls += 1;
        self.time.advance_ns(ops as f64 * self.op_ns);
        if self.calls == self.at_call {
            self.time.advance_ns(self.for_ns);
        }
        ops
    }
}

fn interrupted(op_ns: f64, at_call: u32, for_ns: f64) -> (Clock, Interrupted) {
    let time = SimulatedClock::ideal();
    let clock = Clock::simulated(time.clone());
    let work = Interrupted { time, op_ns, calls: 0, at_call, for_ns };
    (clock, work)
}

#[test]
fn an_interrupt_while_the_window_is_chosen_does_not_shorten_all_windows() {
    for at_call in 1..14 {
        let (clock, mut work) = interrupted(1.0, at_call, 4e6);
        let ops = taken(&clock, None, |block| block.batches(&mut work)).1.expect("chosen");
        assert!((10_000..=40_000).contains(&ops), "interrupted at call {at_call}: {ops} operations");
    }
}

#[test]
fn the_first_window_after_other_work_does_not_count() {
    let (clock, mut work) = interrupted(1.0, 1, 5_000.0);
    let (data, _) = taken(&clock, Some(1_000), |block| block.batches(&mut work));
    assert_eq!(data.ops, 64_000);
    assert!(data.values.iter().all(|ns| (ns - 1.0).abs() < 1e-9), "{:?}", data.values);
}

#[test]
fn a_window_in_which_the_clock_did_not_move_has_no_endless_rate() {
    let (clock, mut work) = interrupted(0.0, 0, 0.0);
    let (data, _) = taken(&clock, Some(16), |block| block.rates(&mut work, 64));
    assert!(data.values.iter().all(|rate| rate.is_finite()), "{:?}", data.values);
}

#[test]
fn spans_and_windows_that_were_stamped_elsewhere_are_samples_like_others() {
    let (clock, _) = interrupted(0.0, 0, 0.0);
    let (data, _) = taken(&clock, None, |block| {
        block.set_tail_threshold_ns(500.0);
        block.span(clock.ticks(100.0), clock.ticks(200.0));
        block.span(clock.ticks(1_000.0), clock.ticks(3_000.0));
    });
    let histogram = data.histogram.expect("spans are single operations");
    assert_eq!((data.ops, histogram.total()), (2, 2));
    let longest = histogram.max_ns().expect("two operations");
    assert!((longest - 2_000.0).abs() < 30.0, "{longest}");
    assert_eq!(data.tail.len(), 1);

    let (data, ops) = taken(&clock, None, |block| block.window(0, clock.ticks(1_000.0), 10));
    assert_eq!((data.ops, ops), (10, Some(10)));
    assert!((data.values[0] - 100.0).abs() < 1.0, "{:?}", data.values);
}

#[test]
fn bytes_that_others_moved_are_a_rate() {
    let (clock, _) = interrupted(0.0, 0, 0.0);
    let (data, _) = taken(&clock, None, |block| {
        block.rate(clock.ticks(0.0), clock.ticks(2_000.0), 6_000);
        block.rate(clock.ticks(5.0), clock.ticks(5.0), 1);
    });
    assert!((data.values[0] - 3e9).abs() < 1e7, "{:?}", data.values);
    assert!(data.values[1].is_finite(), "{:?}", data.values);
    assert_eq!((data.ops, data.bytes), (2, 6_001));
}

#[test]
fn phases_have_distributions_of_their_own() {
    let (clock, _) = interrupted(0.0, 0, 0.0);
    let (data, _) = taken(&clock, None, |block| {
        for operation in 0..10 {
            let at = clock.ticks(f64::from(operation) * 1_000.0);
            block.channel("open", at, at + clock.ticks(200.0));
            block.channel("close", at + clock.ticks(200.0), at + clock.ticks(300.0));
            block.span(at, at + clock.ticks(300.0));
        }
    });
    let found: Vec<(&str, u64)> = data.channels.iter().map(|(name, all)| (*name, all.total())).collect();
    assert_eq!(found, [("open", 10), ("close", 10)]);
    let longest = data.channels[0].1.max_ns().expect("ten");
    assert!((longest - 200.0).abs() < 5.0, "{longest}");
}

#[test]
fn a_block_that_a_child_took_counts_as_if_taken_here() {
    let (clock, mut work) = interrupted(2.0, 0, 0.0);
    let remote = RemoteBlock::take(&clock, Some(1_000), |block| {
        block.batches(&mut work);
        Ok(())
    })
    .expect("work was done");
    let (data, ops) = taken(&clock, None, |block| block.absorb(&remote));
    assert_eq!((data.ops, ops), (64_000, Some(1_000)));
    assert!(data.values.iter().all(|ns| (ns - 2.0).abs() < 1e-9));
    assert!(RemoteBlock::take(&clock, None, |_| Ok(())).is_err(), "nothing was done");
}

#[test]
fn ticks_become_picoseconds_without_a_way_through_floats() {
    let clock = Clock::open();
    let picoseconds = Picoseconds::of(&clock);
    for ticks in [0, 1, 26, 38, 1_000, 123_456_789] {
        let ps = picoseconds.in_ticks(ticks) as f64;
        assert!((ps - clock.ns(ticks) * 1e3).abs() <= 1.0 + ps * 1e-9, "{ticks} ticks: {ps}");
    }
    assert!(picoseconds.in_ticks(u64::MAX) > 1 << 50, "saturates");
}

#[test]
fn room_for_slow_operations_is_given_back() {
    struct Quick(SimulatedClock);
    impl Kernel for Quick {
        type Arg = ();
        fn arg(&mut self) {}
        fn op(&mut self, (): ()) -> u64 {
            self.0.advance_ns(10.0);
            0
        }
    }
    let time = SimulatedClock::ideal();
    let clock = Clock::simulated(time.clone());
    let (data, _) = taken(&clock, None, |block| block.each(&mut Quick(time)));
    assert_eq!(data.tail.capacity(), 0);
}
