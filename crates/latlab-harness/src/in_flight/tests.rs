use latlab_clock::SimulatedClock;

use super::*;

/// A simulated disk: `servers` operations at a time, each `service_ns` long; one of them stalls.
struct Disk {
    time: SimulatedClock,
    service_ns: f64,
    servers: usize,
    /// When each operation under way will be done, ns.
    under_way: Vec<(u32, f64)>,
    submitted: u64,
    /// At this operation everything stops for so long, ns.
    stall: Option<(u64, f64)>,
    most_under_way: usize,
    /// A wait with a limit lasts so long instead, or until one is done.
    oversleeps_ns: Option<f64>,
    /// Handing an operation over takes so long.
    submit_ns: f64,
}

impl Disk {
    fn new(time: &SimulatedClock, service_ns: f64, servers: usize) -> Self {
        Self {
            time: time.clone(),
            service_ns,
            servers,
            under_way: Vec::new(),
            submitted: 0,
            stall: None,
            most_under_way: 0,
            oversleeps_ns: None,
            submit_ns: 0.0,
        }
    }
}

impl Queue for Disk {
    fn submit(&mut self, token: u32) -> Result<(), ProbeError> {
        assert!(self.under_way.iter().all(|(own, _)| *own != token), "token {token} is under way");
        self.time.advance_ns(self.submit_ns);
        let now = self.time.true_ns();
        let mut ends: Vec<f64> = self.under_way.iter().map(|(_, end)| *end).collect();
        ends.sort_by(f64::total_cmp);
        // It begins when a server is free.
        let begin = if ends.len() < self.servers { now } else { ends[ends.len() - self.servers].max(now) };
        let mut end = begin + self.service_ns;
        if let Some((at, for_ns)) = self.stall
            && self.submitted == at
        {
            end += for_ns;
        }
        self.submitted += 1;
        self.under_way.push((token, end));
        self.most_under_way = self.most_under_way.max(self.under_way.len());
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut dyn FnMut(u32)) -> Result<(), ProbeError> {
        let mut wait = wait;
        if let (Some(ns), Wait::AtMostNs(_)) = (self.oversleeps_ns, wait) {
            wait = Wait::AtMostNs(ns);
        }
        let now = self.time.true_ns();
        let first = self.under_way.iter().map(|(_, end)| *end).fold(f64::INFINITY, f64::min);
        let until = match wait {
            Wait::No => now,
            Wait::ForOne => first.max(now),
            Wait::AtMostNs(ns) => first.clamp(now, now + ns),
        };
        self.time.advance_ns(until - now);
        let until = self.time.true_ns();
        self.under_way.sort_by(|a, b| a.1.total_cmp(&b.1));
        while self.under_way.first().is_some_and(|(_, end)| *end <= until + 1e-3) {
            let (token, _) = self.under_way.remove(0);
            done(token);
        }
        Ok(())
    }
}

const ENDLESS: f64 = 1e18;

fn flown(
    disk: impl FnOnce(&SimulatedClock) -> Disk,
    depth: u32,
    arrivals: Arrivals,
    limits: Limits,
) -> (Flight, crate::BlockData, Disk) {
    let time = SimulatedClock::ideal();
    let clock = Clock::simulated(time.clone());
    let mut disk = disk(&time);
    let (mut ops, mut threshold) = (None, 0.0);
    let mut block = Block::new(&clock, &mut ops, &mut threshold);
    let flight = block.in_flight(&mut disk, depth, arrivals, limits).expect("a disk without faults");
    (flight, block.into_data(), disk)
}

#[test]
fn a_closed_loop_keeps_its_depth_and_littles_law_finds_it() {
    for depth in [1, 4, 32] {
        let limits = Limits { operations: 3_200, begin_within_ns: ENDLESS };
        let (flight, data, disk) =
            flown(|time| Disk::new(time, 50_000.0, 8), depth, Arrivals::Closed, limits);
        assert_eq!((flight.operations, data.ops), (3_200, 3_200));
        assert_eq!(disk.most_under_way, depth as usize);
        let achieved = flight.achieved_depth();
        assert!((achieved / f64::from(depth) - 1.0).abs() < 0.03, "{achieved} of {depth}");
        let rate = flight.rate_per_s();
        let expected = f64::from(depth.min(8)) * 1e9 / 50_000.0;
        assert!((rate / expected - 1.0).abs() < 0.03, "{rate} of {expected}");
    }
}

fn at_random(per_s: f64, seed: u64) -> Arrivals {
    Arrivals::Poisson { per_s, seed }
}

/// How many took over 10 ms.
fn slow_ones(histogram: &Histogram) -> u64 {
    let occupied = histogram.occupied();
    let slow = occupied.iter().filter(|(ns, _)| *ns > 10e6);
    slow.map(|(_, count)| count).sum()
}

#[test]
fn in_an_open_loop_a_stall_falls_on_all_who_were_due_in_it() {
    let arrivals = at_random(5_000.0, 11);
    let limits = Limits { operations: 10_000, begin_within_ns: ENDLESS };
    let stalled =
        |time: &SimulatedClock| Disk { stall: Some((5_000, 200e6)), ..Disk::new(time, 50_000.0, 1) };
    // One at a time: everybody who comes in the 200 ms waits for the end of it.
    let (flight, data, _) = flown(stalled, 1, arrivals, limits);
    let slow = slow_ones(&data.histogram.expect("operations"));
    assert!((800..1_300).contains(&slow), "about 1,000 came in 200 ms at 5,000 a second: {slow}");
    assert!(flight.held_back >= slow - 1, "{}", flight.held_back);
    assert_eq!(slow_ones(&flight.service), 1, "a loop that waits would have seen one");
}

#[test]
fn a_block_that_ends_in_a_stall_goes_through_it() {
    let arrivals = at_random(5_000.0, 11);
    // 20 ms, and in the midst of them a stall of 200 ms.
    let limits = Limits { operations: 100, begin_within_ns: ENDLESS };
    let stalled = |time: &SimulatedClock| Disk { stall: Some((50, 200e6)), ..Disk::new(time, 50_000.0, 1) };
    let (flight, data, _) = flown(stalled, 64, arrivals, limits);
    let slow = slow_ones(&data.histogram.expect("operations"));
    assert!(
        (800..1_300).contains(&slow),
        "about 1,000 were due in it, 900 of them after the block's last: {slow}"
    );
    assert!(flight.operations < 1_500, "{}", flight.operations);
    // Without a stall it ends when it has done what it was to do.
    let (flight, _, _) = flown(|time| Disk::new(time, 50_000.0, 1), 64, arrivals, limits);
    assert!((100..110).contains(&flight.operations), "{}", flight.operations);
}

/// Slowest operation, and how many were recorded.
fn slowest(data: &crate::BlockData) -> (f64, u64) {
    let histogram = data.histogram.as_ref().expect("operations");
    let occupied = histogram.occupied();
    (occupied.last().map_or(0.0, |(ns, _)| *ns), occupied.iter().map(|(_, count)| count).sum())
}

#[test]
fn who_was_late_by_this_threads_fault_is_counted_and_is_no_sample() {
    let arrivals = at_random(1_000.0, 11);
    let limits = Limits { operations: 2_000, begin_within_ns: ENDLESS };
    // While one is under way the thread sleeps until that one is done, whatever comes meanwhile.
    let sleepy = |time: &SimulatedClock| Disk { oversleeps_ns: Some(1e9), ..Disk::new(time, 500_000.0, 64) };
    let (flight, data, _) = flown(sleepy, 64, arrivals, limits);
    assert!((400..1_600).contains(&flight.late), "{}", flight.late);
    let (slowest_ns, samples) = slowest(&data);
    assert!(slowest_ns < 560_000.0, "{slowest_ns}");
    assert_eq!(samples, flight.operations - flight.late);
}

#[test]
fn who_waited_while_others_were_handed_over_waited_for_the_queue() {
    let arrivals = at_random(5_000.0, 11);
    let limits = Limits { operations: 2_000, begin_within_ns: ENDLESS };
    let slow_to_take = |time: &SimulatedClock| Disk { submit_ns: 150_000.0, ..Disk::new(time, 50_000.0, 64) };
    let (flight, data, _) = flown(slow_to_take, 64, arrivals, limits);
    assert_eq!(flight.late, 0, "none is left out");
    let (slowest_ns, samples) = slowest(&data);
    assert_eq!(samples, flight.operations);
    assert!(samples >= 2_000, "{samples}");
    assert!(slowest_ns > 400_000.0, "and their waits count: {slowest_ns}");
}

#[test]
fn an_open_loop_comes_at_its_rate_and_in_its_time() {
    let arrivals = at_random(1_000.0, 5);
    let limits = Limits { operations: u64::MAX, begin_within_ns: 4e9 };
    let (flight, data, _) = flown(|time| Disk::new(time, 20_000.0, 64), 64, arrivals, limits);
    assert!((3_800..4_200).contains(&flight.operations), "{}", flight.operations);
    assert!((flight.elapsed_ns - 4e9).abs() < 0.02e9, "{}", flight.elapsed_ns);
    assert_eq!(flight.held_back, 0);
    let p50 = data.p50();
    assert!((p50 - 20_000.0).abs() < 500.0, "{p50}");
}

#[test]
fn a_closed_loop_ends_in_time_and_waits_for_what_is_under_way() {
    let limits = Limits { operations: u64::MAX, begin_within_ns: 1e6 };
    let (flight, _, disk) = flown(|time| Disk::new(time, 100_000.0, 4), 4, Arrivals::Closed, limits);
    assert_eq!(flight.operations, 40);
    assert!(disk.under_way.is_empty());
}

#[test]
fn nothing_due_in_the_time_is_nothing_done() {
    let arrivals = at_random(1e-6, 5);
    let limits = Limits { operations: 10, begin_within_ns: 1e6 };
    let (flight, data, _) = flown(|time| Disk::new(time, 1.0, 1), 1, arrivals, limits);
    assert_eq!((flight.operations, data.ops), (0, 0));
}
