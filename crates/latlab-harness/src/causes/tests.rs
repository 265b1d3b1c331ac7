use latlab_clock::SimulatedClock;
use latlab_observe::{Interruption, Proof};
use latlab_record::{Histogram, TailSample};

use super::*;

/// Blocks of 2 ms that follow each other at once; each sample is (time, length).
fn blocks(count: usize, samples: &[(f64, f64)]) -> Vec<BlockData> {
    (0..count)
        .map(|index| {
            let (from_ns, to_ns) = (index as f64 * 2e6, (index + 1) as f64 * 2e6);
            let own = samples.iter().filter(|(at, _)| (from_ns..to_ns).contains(at));
            BlockData {
                at_ns: from_ns,
                duration_ns: to_ns - from_ns,
                ops: 20_000,
                histogram: Some(Histogram::new()),
                listened: vec![Span { from_ns, to_ns }],
                tail: own.map(|&(at_ns, value)| TailSample { at_ns, value, cause: None }).collect(),
                ..BlockData::default()
            }
        })
        .collect()
}

fn judged(blocks: &mut [BlockData], events: &[Event]) -> Option<TailCauses> {
    let clock = Clock::simulated(SimulatedClock::ideal());
    let mut listening = Listening::default();
    for block in blocks.iter() {
        listening.hear(block, events.to_vec(), 0);
    }
    listening.judge(&clock, blocks, 1_000.0).causes
}

fn rows(causes: &TailCauses) -> Vec<(&str, u64)> {
    causes.causes.iter().map(|row| (row.cause.as_str(), row.count)).collect()
}

fn event(cause: Cause, at_ns: f64, ns: f64) -> Event {
    Event { cause, proof: Proof::Tracepoint, at_ns, end_ns: Some(at_ns + ns), who: None }
}

#[test]
fn each_planted_event_names_its_sample_and_the_rest_stays_unexplained() {
    let mut blocks = blocks(6, &[(1e6, 12_000.0), (3e6, 40_000.0), (5e6, 15_000.0)]);
    let events = [event(Cause::TimerTick, 1.001e6, 9_000.0), event(Cause::ContextSwitch, 3.001e6, 38_000.0)];
    let found = judged(&mut blocks, &events).expect("there is a tail");
    assert_eq!(rows(&found), [("context-switch", 1), ("unexplained", 1), ("timer-tick", 1)]);
    let tail: Vec<Option<&str>> =
        blocks.iter().flat_map(|block| block.tail.iter().map(|sample| sample.cause.as_deref())).collect();
    assert_eq!(tail, [Some("timer-tick"), Some("context-switch"), None]);
    for row in &found.causes {
        assert!(row.explained_ns <= row.ns, "{row:?}");
    }
    assert!(found.causes.iter().any(|row| row.cause == "unexplained"
        && row.ns.total_cmp(&15_000.0).is_eq()
        && row.explained_ns.total_cmp(&0.0).is_eq()));
}

#[test]
fn an_event_while_nothing_was_timed_names_nothing() {
    let mut blocks = blocks(6, &[(1e6, 12_000.0)]);
    blocks[0].listened = vec![Span { from_ns: 0.9e6, to_ns: 1.5e6 }];
    let mut listening = Listening::default();
    listening.hear(&blocks[0], vec![event(Cause::PageFault, 1.7e6, 500.0)], 0);
    assert!(listening.heard.events.is_empty());
    let clock = Clock::simulated(SimulatedClock::ideal());
    let found = listening.judge(&clock, &mut blocks, 1_000.0).causes.expect("a tail");
    assert_eq!(rows(&found), [("unexplained", 1)]);
}

#[test]
fn a_tick_without_events_is_a_comb_over_many_blocks() {
    // 250 Hz for 0.4 s; one tick in five is in no operation.
    let ticks: Vec<(f64, f64)> =
        (0..100).filter(|tick| tick % 5 != 0).map(|tick| (1e6 + f64::from(tick) * 4e6, 6_000.0)).collect();
    let found = judged(&mut blocks(200, &ticks), &[]).expect("a tail");
    assert_eq!(rows(&found), [("periodic", 80)], "which one cannot be known here");
    assert_eq!(found.level, "time stamps");
}

/// One block that waits, its operations at these times; nothing is known of them yet.
fn waiting(samples: &[(f64, f64)], notes: &[Note]) -> BlockData {
    let mut block =
        BlockData { ops: 1_000, waits: true, histogram: Some(Histogram::new()), ..BlockData::default() };
    for (&(at_ns, ns), note) in samples.iter().zip(notes) {
        block.push_slow(at_ns, ns, *note);
    }
    block
}

fn part_of(block: &BlockData, index: usize, cause: Cause) -> f64 {
    let split = block.marks[index].split.as_ref().expect("split");
    let own = split.parts.iter().find(|part| part.cause == cause);
    own.map_or(0.0, |part| part.explained_ns)
}

fn delayed(ns: f64, since_ns: f64) -> Note {
    Note { delay: Some(Delay { ns, since_ns, at_end: false, running_ns: None }), ..Note::default() }
}

#[test]
fn time_that_a_woken_thread_stood_in_line_is_not_the_disks() {
    // Asleep for 800 us; 300 us of being ready are counted, 100 of which were a preemption with a record of
    // its own.
    let mut block = waiting(&[(1e6, 1e6)], &[delayed(300_000.0, 0.9e6)]);
    let events = vec![
        event(Cause::Waiting, 1.1e6, 800_000.0),
        event(Cause::ContextSwitch, 0.92e6, 40_000.0),
        event(Cause::ContextSwitch, 1.92e6, 60_000.0),
    ];
    split_block(&mut block, events, Records::Switches);
    assert!((part_of(&block, 0, Cause::RunQueueDelay) - 200_000.0).abs() < 1.0);
    assert!((part_of(&block, 0, Cause::Waiting) - 600_000.0).abs() < 1.0);
    assert!((part_of(&block, 0, Cause::ContextSwitch) - 60_000.0).abs() < 1.0);
}

#[test]
fn of_a_sleep_the_device_has_what_it_had_a_request_for_and_the_rest_is_the_way_there_and_back() {
    let sleeps = [(1e6, 1e6), (3e6, 1e6)];
    let mut block = waiting(&sleeps, &[Note::default(); 2]);
    let events = vec![
        event(Cause::Waiting, 1.1e6, 850_000.0),
        // A write, then the flush.
        event(Cause::Device, 1.15e6, 300_000.0),
        event(Cause::Device, 1.5e6, 400_000.0),
        // Somebody else's, from before.
        event(Cause::Device, 2.9e6, 900_000.0),
        event(Cause::Waiting, 3.1e6, 850_000.0),
    ];
    split_block(&mut block, events.clone(), Records::Requests);
    assert!((part_of(&block, 0, Cause::Device) - 700_000.0).abs() < 1.0);
    assert!((part_of(&block, 0, Cause::Waiting) - 150_000.0).abs() < 1.0);
    assert!(part_of(&block, 1, Cause::Device) < 1.0);
    let mut unknown = waiting(&sleeps, &[Note::default(); 2]);
    split_block(&mut unknown, events, Records::Switches);
    assert!((part_of(&unknown, 0, Cause::Waiting) - 850_000.0).abs() < 1.0);
}

#[test]
fn where_requests_were_recorded_the_device_and_the_way_to_it_are_told_apart() {
    let real = Clock::open();
    let found = |known: [bool; 2]| {
        let mut blocks: Vec<BlockData> = [0.0, 1e7]
            .iter()
            .zip(known)
            .map(|(&from_ns, known)| {
                let mut block = waiting(&[(from_ns, 1e6)], &[delayed(0.0, from_ns)]);
                block.at_ns = from_ns;
                let records = if known { Records::Requests } else { Records::Switches };
                let events = vec![
                    event(Cause::Waiting, from_ns, 900_000.0),
                    event(Cause::Device, from_ns + 1e5, 600_000.0),
                ];
                split_block(&mut block, events, records);
                block
            })
            .collect();
        let mut listening = Listening::default();
        listening.evidence = Some(Evidence::of_this_thread(&real, None, Level::TimeStamps));
        let causes = listening.judge(&real, &mut blocks, 1_000.0).causes;
        let parts = causes.expect("a tail").parts;
        let some = parts.into_iter().filter(|part| part.ns > 0.0);
        some.map(|part| (part.cause, part.ns)).collect::<Vec<_>>()
    };
    let named = |name: &str, ns: f64| (name.to_owned(), ns);
    assert_eq!(found([true, true]), [named("device", 1.2e6), named("way", 6e5)]);
    let some = [named("waiting", 9e5), named("device", 6e5), named("way", 3e5)];
    assert_eq!(found([true, false]), some);
}

#[test]
fn of_the_blocks_that_wait_for_a_disk_one_of_four_is_recorded_and_of_others_all() {
    let real = Clock::open();
    let recorded = |operations, waits: bool| {
        let mut listening = Listening::default();
        listening.operations = operations;
        listening.evidence = Some(Evidence::of_this_thread(&real, None, Level::PerfRecords));
        let blocks = (0..9).map(|_| {
            listening.begin(&real);
            if waits {
                listening.begin_to_wait(&real, None);
            }
            !listening.paused
        });
        blocks.collect::<Vec<bool>>()
    };
    let one_of_four: Vec<bool> = (0..9).map(|block| block % 4 == 0).collect();
    assert_eq!(recorded(Operations::Disk, true), one_of_four);
    assert_eq!(recorded(Operations::Disk, false), [true; 9]);
    assert_eq!(recorded(Operations::SystemCalls, true), [true; 9]);
}

#[test]
fn without_records_the_count_of_an_operation_is_all_that_is_known_and_never_more_than_it() {
    let mut block = waiting(&[(1e6, 1e6), (3e6, 1e5)], &[delayed(300_000.0, 0.9e6), delayed(5e6, 2.9e6)]);
    split_block(&mut block, vec![event(Cause::Waiting, 1.1e6, 800_000.0)], Records::Incomplete);
    assert!((part_of(&block, 0, Cause::RunQueueDelay) - 300_000.0).abs() < 1.0);
    assert!(part_of(&block, 0, Cause::Waiting) < 1.0, "records with gaps are none");
    assert!((part_of(&block, 1, Cause::RunQueueDelay) - 1e5).abs() < 1.0);
}

#[test]
fn what_a_thread_neither_ran_nor_stood_in_line_it_slept() {
    let mut block = waiting(&[(1e6, 1e6)], &[delayed(300_000.0, 0.9e6)]);
    let delay = block.marks[0].note.delay.as_mut().expect("given");
    // 100 us before it began, 50 in it.
    delay.running_ns = Some(150_000.0);
    split_block(&mut block, Vec::new(), Records::Incomplete);
    assert!((part_of(&block, 0, Cause::RunQueueDelay) - 300_000.0).abs() < 1.0);
    assert!((part_of(&block, 0, Cause::Waiting) - 650_000.0).abs() < 1.0);
}

#[test]
fn a_thread_that_is_away_while_a_device_works_delays_nothing_but_what_it_picks_up_late() {
    let under_way = Note { under_way: true, ..Note::default() };
    let mut block = waiting(&[(1e6, 1e6), (1e6, 3e6)], &[under_way; 2]);
    split_block(&mut block, vec![event(Cause::ContextSwitch, 1.5e6, 490_000.0)], Records::Switches);
    assert!((part_of(&block, 0, Cause::ContextSwitch) - 490_000.0).abs() < 1.0);
    assert!((part_of(&block, 0, Cause::Waiting) - 510_000.0).abs() < 1.0);
    assert!((part_of(&block, 1, Cause::Waiting) - 3e6).abs() < 1.0);
}

#[test]
fn what_is_split_adds_up_and_what_was_not_asked_is_a_bound() {
    let clock = Clock::simulated(SimulatedClock::ideal());
    let mut six: Vec<BlockData> = (0..6)
        .map(|index| {
            let from_ns = f64::from(index) * 1e7;
            let mut block = waiting(&[(from_ns, 1e6)], &[Note::default()]);
            block.at_ns = from_ns;
            block.observed.run_queue_delay_ns = Some(200_000);
            split_block(&mut block, vec![event(Cause::Waiting, from_ns, 900_000.0)], Records::Switches);
            block
        })
        .collect();
    let mut listening = Listening::default();
    assert_eq!(listening.judge(&clock, &mut six, 1_000.0).causes, None, "nothing listened");
    let real = Clock::open();
    listening.evidence = Some(Evidence::of_this_thread(&real, None, Level::TimeStamps));
    listening.operations = Operations::Disk;
    let found = listening.judge(&clock, &mut six, 1_000.0).causes.expect("a tail");
    assert_eq!(rows(&found), [("waiting", 6)]);
    let parts: Vec<(&str, f64, Option<f64>)> =
        found.parts.iter().map(|part| (part.cause.as_str(), part.ns, part.at_most_more_ns)).collect();
    assert_eq!(parts, [("waiting", 5.4e6, None), ("run-queue-delay", 0.0, Some(1.2e6))]);
    assert_eq!(six[0].tail[0].cause.as_deref(), Some("waiting"));
}

#[test]
fn the_flag_names_a_switch_only_where_switches_have_no_records() {
    let mut six = blocks(6, &[(1e6, 12_000.0)]);
    six[0].marks = vec![crate::samples::Mark {
        note: Note { interruption: Interruption { preempted: true, interrupted: true }, ..Note::default() },
        split: None,
    }];
    let found = judged(&mut six, &[]).expect("a tail");
    assert_eq!(rows(&found), [("context-switch", 1)]);
}

#[test]
fn what_fell_between_two_operations_completes_a_period() {
    // One tick in two hits an operation: without the others there is no period to be found.
    let times = |parity: i32| -> Vec<(f64, f64)> {
        (0..100)
            .filter(|tick| tick % 2 == parity)
            .map(|tick| (1e6 + f64::from(tick) * 4e6, 6_000.0))
            .collect()
    };
    let mut all = blocks(200, &times(0));
    for (at_ns, ns) in times(1) {
        let own = all.iter_mut().find(|block| at_ns < block.at_ns + block.duration_ns);
        own.expect("within the blocks").gaps.push(Sample {
            at_ns,
            ns,
            interruption: Interruption::default(),
        });
    }
    let found = judged(&mut all, &[]).expect("a tail");
    assert_eq!(rows(&found), [("periodic", 50)]);
}

#[test]
fn blocks_that_do_not_all_wait_have_no_causes_nor_has_what_is_usually_slow() {
    let tick = [event(Cause::TimerTick, 1.001e6, 9_000.0)];
    let mut mixed = blocks(6, &[(1e6, 12_000.0)]);
    mixed[2].waits = true;
    assert_eq!(judged(&mut mixed, &tick), None);
    let mut usual = blocks(6, &[(1e6, 12_000.0)]);
    usual[0].ops = 19;
    assert_eq!(judged(&mut usual, &tick), None);
    assert!(usual[0].tail[0].cause.is_none());
}

#[test]
fn more_than_there_is_room_for_has_no_causes_rather_than_wrong_ones() {
    let mut many = blocks(6, &[(1e6, 12_000.0)]);
    many[1].tail = vec![many[0].tail[0].clone(); MOST];
    many[1].ops = u64::MAX / USUAL;
    assert_eq!(judged(&mut many, &[]), None);
}

#[test]
fn what_a_session_knows_itself_is_written_by_time() {
    let mut blocks = blocks(6, &[(1e6, 12_000.0), (3e6, 40_000.0)]);
    let known = KnownCauses {
        level: Level::Rseq,
        each: vec![KnownCause { at_ns: 3e6, cause: Cause::HostTick, explained_ns: 30_000.0 }],
    };
    let found = known.judged(&mut blocks, 1_000.0).causes.expect("what it knows");
    assert_eq!(rows(&found), [("host-tick", 1), ("unexplained", 1)]);
    assert_eq!(found.level, "rseq");
    assert!((found.causes[0].explained_ns - 30_000.0).abs() < 1e-9);
}

#[test]
fn a_disturbed_block_is_not_in_the_sum() {
    let mut seven = blocks(7, &[(1e6, 12_000.0), (3e6, 12_000.0)]);
    seven[1].disturbed = true;
    let found = judged(&mut seven, &[]).expect("a tail");
    assert_eq!(rows(&found), [("unexplained", 1)]);
}
