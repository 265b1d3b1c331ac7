use super::*;
use crate::Category::{Allocator, Compute, FileIoCpu, Sleep, StorageWait, UserCpu};
use crate::account::sweep::{Source, State, Sweep};

const MS: u64 = 1_000_000;

fn rules() -> &'static Rules {
    Rules::built_in()
}

fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn begin(at: u64, thread: u32, number: u64, stage: &str) -> Change {
    Change { at, process: 1, thread, what: What::Begin(number, name(stage)) }
}

fn end(at: u64, thread: u32, number: u64) -> Change {
    Change { at, process: 1, thread, what: What::End(number) }
}

fn sweep(changes: &[Change]) -> Sweep<'static> {
    let mut sweep = Sweep::begin(rules(), 0, 1, 8);
    sweep.switch_source(0, Source::Recorded);
    for change in changes {
        sweep.stages().expect(change.clone());
    }
    sweep
}

fn of<'a>(sums: &'a Sums, stage: &str) -> &'a Got {
    sums.each().find(|(name, _)| *name == stage).unwrap_or_else(|| panic!("no {stage}")).1
}

#[test]
fn time_goes_to_the_innermost_stage_and_every_instant_to_one() {
    let mut sweep = sweep(&[
        begin(10 * MS, 1, 1, "outer"),
        begin(20 * MS, 1, 2, "inner"),
        end(50 * MS, 1, 2),
        end(60 * MS, 1, 1),
    ]);
    sweep.set(0, 1, 1, State::Running);
    sweep.set(30 * MS, 1, 1, State::Waiting(Some(rules().whole(Sleep))));
    sweep.set(40 * MS, 1, 1, State::Running);
    let sums = sweep.end(100 * MS).stages;
    let is = |ns: f64, ms: f64| assert!((ns / 1e6 - ms).abs() < 1e-6, "{ns} is not {ms} ms");
    is(of(&sums, "outer").running, 20.0);
    is(of(&sums, "inner").running, 20.0);
    is(of(&sums, "inner").waits[&rules().whole(Sleep)], 10.0);
    is(of(&sums, "").running, 50.0);
    is(sums.each().map(|(_, got)| got.time).sum(), 100.0);
}

#[test]
fn threads_that_run_at_once_share_the_instant_between_their_stages() {
    let mut sweep = sweep(&[begin(0, 1, 1, "a"), begin(0, 2, 2, "b"), begin(0, 3, 3, "b")]);
    for thread in 1..=3 {
        sweep.set(1, thread, 1, State::Running);
    }
    let sums = sweep.end(1 + 30 * MS).stages;
    assert!((of(&sums, "a").running - 10e6).abs() < 10.0);
    assert!((of(&sums, "b").running - 20e6).abs() < 10.0);
}

#[test]
fn a_reason_that_is_learned_later_moves_the_stages_time_too() {
    let mut sweep = sweep(&[begin(0, 1, 1, "read")]);
    sweep.set(1, 1, 1, State::Waiting(None));
    sweep.learn(10 * MS, 1, rules().whole(StorageWait));
    let sums = sweep.end(20 * MS).stages;
    let got = of(&sums, "read");
    assert!(got.unknown < 1.0);
    assert!((got.waits[&rules().whole(StorageWait)] - 20e6).abs() < 10.0);
}

#[test]
fn a_stage_of_the_program_as_a_whole_holds_for_every_thread_without_one() {
    let whole = Change { at: 0, process: 0, thread: 0, what: What::Begin(9, name("sort")) };
    let mut sweep = sweep(&[whole, begin(0, 2, 1, "own")]);
    sweep.set(1, 1, 1, State::Running);
    sweep.set(1, 2, 1, State::Running);
    let sums = sweep.end(1 + 10 * MS).stages;
    assert!((of(&sums, "sort").running - 5e6).abs() < 10.0);
    assert!((of(&sums, "own").running - 5e6).abs() < 10.0);
}

#[test]
fn after_lost_marks_nothing_is_taken_for_open() {
    let lost = Change { at: 10 * MS, process: 0, thread: 0, what: What::Lost };
    let mut sweep = sweep(&[begin(0, 1, 1, "a"), lost, end(30 * MS, 1, 1)]);
    sweep.set(0, 1, 1, State::Running);
    let sums = sweep.end(40 * MS).stages;
    assert!((of(&sums, "a").running - 10e6).abs() < 10.0);
    assert!((of(&sums, "").running - 30e6).abs() < 10.0);
}

#[test]
fn a_program_without_marks_has_no_stages() {
    let mut sweep = sweep(&[]);
    sweep.set(0, 1, 1, State::Running);
    assert!(sweep.end(MS).stages.is_empty());
}

#[test]
fn a_scan_that_comes_late_counts_for_the_stage_at_its_own_moment() {
    let mut sweep = Sweep::begin(rules(), 0, 1, 8);
    for change in [begin(0, 1, 1, "work"), end(90 * MS, 1, 1), begin(95 * MS, 1, 2, "nap")] {
        sweep.stages().expect(change);
    }
    sweep.scan(MS, &[(1, 1, State::Running)]);
    sweep.scan(100 * MS, &[(1, 1, State::Waiting(Some(rules().whole(Sleep))))]);
    let sums = sweep.end(100 * MS).stages;
    assert!((of(&sums, "work").time - 90e6).abs() < 10.0);
    assert!((of(&sums, "nap").time - 5e6).abs() < 10.0);
    assert!(of(&sums, "work").waits.is_empty());
    assert!(of(&sums, "nap").waits.len() == 1);
}

/// Two stages: one computes and allocates, one waits for a disk.
fn example() -> Sums {
    let mut sums = Sums::default();
    *sums.of(&name("parse")) = Got {
        time: 60.0,
        running: 60.0,
        samples: BTreeMap::from([(rules().whole(Compute), 30.0), (rules().whole(Allocator), 10.0)]),
        ..Got::default()
    };
    *sums.of(&name("read")) = Got {
        time: 40.0,
        running: 10.0,
        waits: BTreeMap::from([(rules().whole(StorageWait), 30.0)]),
        samples: BTreeMap::from([(rules().whole(FileIoCpu), 5.0)]),
        ..Got::default()
    };
    sums
}

#[test]
fn stages_and_ledger_say_the_same_of_each_category() {
    let ledger = [(Compute, 0.44), (Allocator, 0.16), (FileIoCpu, 0.11), (StorageWait, 0.29)];
    let on_cpu = [(Compute, 44.0), (Allocator, 16.0), (FileIoCpu, 11.0)];
    let table = divided(&example(), rules(), &ledger, &on_cpu, Some(true));
    for (stage, share) in [("parse", 0.6), ("read", 0.4)] {
        let parts = &table.iter().find(|row| row.0 == stage).unwrap().1;
        assert!((parts.values().sum::<f64>() - share).abs() < 1e-9, "{stage}");
    }
    for (category, share) in ledger {
        let sum: f64 = table.iter().filter_map(|row| row.1.get(&Doing::On(category))).sum();
        assert!((sum - share).abs() < 0.011, "{category} {sum}");
    }
}

#[test]
fn without_samples_time_on_the_cpu_is_not_divided() {
    let ledger = [(UserCpu, 0.6), (FileIoCpu, 0.1), (StorageWait, 0.3)];
    let on_cpu = [(UserCpu, 60.0), (FileIoCpu, 10.0)];
    let mut sums = example();
    for got in sums.by_name.values_mut() {
        got.samples.clear();
    }
    let table = divided(&sums, rules(), &ledger, &on_cpu, None);
    let parse = &table.iter().find(|row| row.0 == "parse").unwrap().1;
    assert_eq!(parse.keys().collect::<Vec<_>>(), [&Doing::OnCpuOrReady]);
    let read = &table.iter().find(|row| row.0 == "read").unwrap().1;
    assert!((read[&Doing::OnCpuOrReady] - 0.1).abs() < 1e-6);
    assert!((read[&Doing::On(StorageWait)] - 0.3).abs() < 1e-6);
}

#[test]
fn changes_of_any_order_are_put_in_order_among_the_last_ones() {
    let mut stages = ByStage::default();
    for turn in 0..5000 {
        stages.expect(begin(1_000_000 - turn, 1, turn, "read"));
    }
    let ordered: Vec<u64> = stages.pending.iter().map(|change| change.at).collect();
    assert_eq!(ordered.len(), 5000);
    assert!(ordered.is_sorted());
    // What belongs further forward counts from where it was put.
    assert_eq!((ordered[0], ordered[4999]), (1_000_000 - 1024, 1_000_000));
}

#[test]
fn ever_more_threads_with_open_stages_are_bounded() {
    let mut stages = ByStage::default();
    for thread in 0..100_000 {
        stages.expect(begin(u64::from(thread), thread, u64::from(thread) + 1, "read"));
        stages.change();
    }
    assert_eq!((stages.open.len(), stages.opened), (MOST_OPEN, MOST_OPEN));
    stages.expect(end(100_000, 7, 8));
    stages.change();
    assert_eq!((stages.open.len(), stages.opened), (MOST_OPEN - 1, MOST_OPEN - 1));
}
