use super::*;

const MS: u64 = 1_000_000;

fn rules() -> &'static Rules {
    Rules::built_in()
}

fn wait(category: Category) -> State {
    State::Waiting(Some(rules().whole(category)))
}

fn sweep() -> Sweep<'static> {
    let mut sweep = Sweep::begin(rules(), 0, 1, 8);
    sweep.switch_source(0, Source::Recorded);
    sweep
}

/// Time that was given away: all of it, unless there is a fault in the sweep.
fn given(sums: &Sums) -> u64 {
    sums.running + sums.ready + sums.waits.total() + sums.unknown + sums.absent
}

fn ms(swept: &Swept, category: Category) -> u64 {
    swept.recorded.waits.of_category(category, rules()) / MS
}

#[test]
fn every_instant_is_given_away_once_whatever_the_threads_do() {
    let states = [
        State::Running,
        State::Ready,
        State::Waiting(None),
        wait(Category::StorageWait),
        wait(Category::Locks),
        wait(Category::WaitingForChildren),
    ];
    let mut random = latlab_stats::rng::Rng::new(7);
    let mut sweep = sweep();
    let mut now = 0;
    for _ in 0..20_000 {
        now += random.below(1000) as u64;
        let thread = u32::try_from(random.below(12)).unwrap();
        match random.below(10) {
            0 => sweep.remove(now, thread),
            1 => sweep.learn(now, thread, rules().whole(Category::Sleep)),
            2 => {
                sweep.switch_source(
                    now,
                    if random.below(2) == 0 { Source::Scanned } else { Source::Recorded },
                );
            }
            _ => sweep.set(now, thread, thread / 3, states[random.below(states.len())]),
        }
    }
    let swept = sweep.end(now + 10);
    assert_eq!(given(&swept.recorded) + given(&swept.scanned), now + 10);
    assert_eq!(swept.recorded.wall + swept.scanned.wall, now + 10);
    assert_eq!(swept.most, 12);
}

#[test]
fn time_before_and_after_all_threads_is_start_and_exit() {
    let mut sweep = sweep();
    sweep.set(2 * MS, 1, 1, State::Running);
    sweep.remove(7 * MS, 1);
    let swept = sweep.end(10 * MS);
    assert_eq!((swept.recorded.absent / MS, swept.recorded.running / MS), (5, 5));
}

#[test]
fn a_loop_that_waits_for_its_own_threads_waits_for_what_they_do() {
    let readiness = State::Waiting(rules().named(Category::Network, "readiness"));
    for (other, found) in [
        (Category::StorageWait, Category::StorageWait),
        (Category::Locks, Category::Network),
        (Category::Sleep, Category::Network),
    ] {
        let mut sweep = sweep();
        sweep.set(0, 1, 1, readiness);
        sweep.set(0, 2, 1, wait(other));
        assert_eq!(ms(&sweep.end(10 * MS), found), 10, "{other}");
    }
}

#[test]
fn who_polls_the_pipes_of_a_process_waits_for_what_that_does() {
    let named = |category, part| State::Waiting(rules().named(category, part));
    let readiness = named(Category::Network, "readiness");
    let pipes = rules().named(Category::Pipe, "readiness of pipes").unwrap();
    let mut sweep = sweep();
    sweep.set(0, 1, 1, readiness);
    sweep.set(0, 2, 2, wait(Category::Sleep));
    // Only now it is found out what is polled.
    sweep.learn(2 * MS, 1, pipes);
    sweep.set(8 * MS, 2, 2, State::Running);
    sweep.remove(9 * MS, 2);
    let swept = sweep.end(10 * MS);
    let of = |category| ms(&swept, category);
    assert_eq!((of(Category::Network), of(Category::Sleep), of(Category::Pipe)), (2, 6, 1));
    for part in ["readiness", "readiness of sockets"] {
        let State::Waiting(Some(reason)) = named(Category::Network, part) else {
            panic!("{part}");
        };
        assert!(!rules().is_outside(reason), "its own threads may be at the other end");
    }
}

#[test]
fn a_wait_behind_a_running_thread_costs_no_wall_time() {
    let mut sweep = sweep();
    sweep.set(0, 1, 1, wait(Category::Locks));
    sweep.set(0, 2, 1, State::Running);
    sweep.set(0, 3, 1, State::Running);
    let swept = sweep.end(10 * MS);
    assert_eq!(swept.recorded.running, 10 * MS);
    assert_eq!(swept.recorded.thread_running, 20 * MS);
    assert_eq!(ms(&swept, Category::Locks), 0);
    assert_eq!(swept.recorded.thread_waits.of_category(Category::Locks, rules()), 10 * MS);
}

#[test]
fn ready_without_a_cpu_is_the_run_queue_only_while_nothing_of_the_program_runs() {
    let mut sweep = sweep();
    sweep.set(0, 1, 1, State::Running);
    sweep.set(0, 2, 1, State::Ready);
    sweep.set(4 * MS, 1, 1, wait(Category::StorageWait));
    sweep.set(6 * MS, 2, 1, State::Running);
    let swept = sweep.end(10 * MS);
    assert_eq!((swept.recorded.running / MS, swept.recorded.ready / MS), (8, 2));
    assert_eq!(swept.recorded.thread_ready / MS, 6);
    assert_eq!(ms(&swept, Category::StorageWait), 0);
}

#[test]
fn the_root_of_a_chain_of_waits_gets_the_time() {
    // A shell waits for its children; a consumer waits on the pipe of a producer that sleeps.
    let mut sweep = sweep();
    sweep.set(0, 1, 1, wait(Category::WaitingForChildren));
    sweep.set(0, 2, 2, wait(Category::Pipe));
    sweep.set(0, 3, 3, wait(Category::Sleep));
    sweep.set(5 * MS, 3, 3, wait(Category::StorageWait));
    let swept = sweep.end(8 * MS);
    assert_eq!((ms(&swept, Category::Sleep), ms(&swept, Category::StorageWait)), (5, 3));
    assert_eq!(ms(&swept, Category::Pipe) + ms(&swept, Category::WaitingForChildren), 0);
}

#[test]
fn the_main_threads_wait_for_the_outside_comes_before_that_of_idle_threads() {
    let mut sweep = sweep();
    sweep.set(0, 2, 1, wait(Category::Network));
    sweep.set(0, 1, 1, wait(Category::Sleep));
    let swept = sweep.end(3 * MS);
    assert_eq!((ms(&swept, Category::Sleep), ms(&swept, Category::Network)), (3, 0));
}

#[test]
fn idle_threads_at_a_lock_take_nothing_from_a_wait_whose_reason_comes_later() {
    let mut sweep = sweep();
    sweep.set(0, 2, 1, wait(Category::Locks));
    sweep.set(0, 1, 1, State::Waiting(None));
    sweep.learn(2 * MS, 1, rules().whole(Category::Network));
    sweep.set(3 * MS, 1, 1, State::Waiting(None));
    let swept = sweep.end(4 * MS);
    assert_eq!((ms(&swept, Category::Network), ms(&swept, Category::Locks)), (3, 0));
    assert_eq!(swept.recorded.unknown, MS);
}

#[test]
fn a_reason_that_is_learned_late_counts_from_the_beginning_of_the_wait() {
    let mut sweep = sweep();
    sweep.set(0, 1, 1, State::Waiting(None));
    sweep.learn(4 * MS, 1, rules().whole(Category::Network));
    sweep.set(6 * MS, 1, 1, State::Waiting(None));
    let swept = sweep.end(7 * MS);
    assert_eq!(ms(&swept, Category::Network), 6);
    assert_eq!(swept.recorded.unknown, MS);
}

#[test]
fn short_waits_are_taken_for_the_short_ones_that_were_read_in_time() {
    let mut sweep = sweep();
    for at in 0..10 {
        sweep.set(at * 2 * MS, 1, 1, State::Waiting(None));
        if at % 5 == 0 {
            sweep.learn(at * 2 * MS + MS / 2, 1, rules().whole(Category::Network));
        }
        sweep.set(at * 2 * MS + MS, 1, 1, State::Running);
    }
    let swept = sweep.end(20 * MS);
    assert_eq!((ms(&swept, Category::Network), swept.recorded.unknown / MS), (2, 8));
    let reasons = swept.unread.reasons();
    assert_eq!(reasons.len(), 1);
    assert_eq!(rules().category(reasons[0].0), Category::Network);
    assert!((reasons[0].1 - 1.0).abs() < 1e-9);
}

#[test]
fn a_scan_stands_for_the_time_since_the_scan_before() {
    let mut sweep = Sweep::begin(rules(), 0, 1, 8);
    sweep.scan(2 * MS, &[(1, 1, State::Running)]);
    sweep.scan(3 * MS, &[(1, 1, wait(Category::Sleep)), (2, 2, State::Running)]);
    sweep.scan(5 * MS, &[(1, 1, wait(Category::Sleep))]);
    let swept = sweep.end(5 * MS);
    assert_eq!(swept.scanned.running, 3 * MS);
    assert_eq!(swept.scanned.waits.of_category(Category::Sleep, rules()), 2 * MS);
    assert_eq!(swept.scanned.thread_waits.of_category(Category::Sleep, rules()), 3 * MS);
}

#[test]
fn each_process_is_accounted_for_by_itself() {
    let mut sweep = sweep();
    sweep.set(0, 1, 1, wait(Category::WaitingForChildren));
    sweep.set(0, 20, 20, State::Running);
    sweep.set(0, 30, 30, wait(Category::Pipe));
    sweep.set(6 * MS, 20, 20, wait(Category::StorageWait));
    sweep.remove(9 * MS, 20);
    let swept = sweep.end(10 * MS);
    let slow = &swept.processes[&20];
    assert_eq!((slow.busy, slow.to - slow.from), (6 * MS, 9 * MS));
    assert_eq!(slow.waits.of_category(Category::StorageWait, rules()), 3 * MS);
    assert_eq!(swept.processes[&30].waits.of_category(Category::Pipe, rules()), 10 * MS);
}
