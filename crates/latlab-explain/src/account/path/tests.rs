//! Schedules of which the critical path is known.

use latlab_stats::rng::Rng;

use super::*;

const MS: u64 = 1_000_000;
/// The program's process and its main thread.
const MAIN: u32 = 1;
const NAMED: [(u32, &str); 4] = [(MAIN, "main"), (2, "a"), (3, "b"), (4, "c")];

/// Records of threads, each a process of its own, at times in milliseconds.
struct Play(Path);

impl Play {
    fn begin() -> Self {
        let mut path = Path::of(MAIN);
        path.resume(0, []);
        let mut play = Self(path);
        play.is_named(0, MAIN, true);
        play
    }

    fn is_named(&mut self, at: u64, thread: u32, loads: bool) {
        let name = NAMED.iter().find(|known| known.0 == thread).map(|known| Rc::from(known.1));
        let of = Of { process: thread, thread, name: name.as_ref() };
        self.0.is_named(at * MS, of, loads);
    }

    fn starts(&mut self, at: u64, thread: u32) {
        self.0.starts(at * MS, of(thread), MAIN, MAIN);
        self.is_named(at, thread, false);
        self.runs(at, thread);
    }

    fn runs(&mut self, at: u64, thread: u32) {
        self.runs_after(at, thread, Category::Unexplained);
    }

    /// It waited for this, and nobody is known to have ended that.
    fn runs_after(&mut self, at: u64, thread: u32, waited: Category) {
        self.0.runs(at * MS, of(thread), waited);
    }

    fn waits(&mut self, at: u64, thread: u32) {
        self.0.leaves(at * MS, of(thread), true);
    }

    fn is_preempted(&mut self, at: u64, thread: u32) {
        self.0.leaves(at * MS, of(thread), false);
    }

    /// One ends the wait of another, which comes to a CPU so much later.
    fn wakes(&mut self, at: u64, by: u32, thread: u32, waited: Category, later: u64) {
        self.0.wakes(at * MS, by, thread, waited);
        self.runs(at + later, thread);
    }

    fn ends(&mut self, at: u64, thread: u32) {
        self.0.ends(at * MS, thread);
    }

    fn shown(self, at: u64) -> model::Path {
        self.0.shown(at * MS, true, at * MS).unwrap()
    }
}

fn of(thread: u32) -> Of<'static> {
    Of { process: thread, thread, name: None }
}

/// Who did what for how many milliseconds.
fn steps(path: &model::Path) -> Vec<(&str, &str, f64)> {
    assert!((path.steps.iter().map(|step| step.share).sum::<f64>() - 1.0).abs() < 1e-9);
    path.steps
        .iter()
        .map(|step| (step.name.as_str(), step.doing.unwrap_or(""), millis(step.seconds)))
        .collect()
}

/// Who waited for what, and who ended it after how many milliseconds.
fn ended(path: &model::Path) -> Vec<(&str, &str, &str, f64, u64)> {
    let row = |wait: &'_ EndedWait| (wait.category.name(), millis(wait.seconds), wait.count);
    let rows = path.ended.iter().map(|wait| (wait, row(wait)));
    rows.map(|(wait, (category, ms, count))| {
        (wait.name.as_str(), category, wait.by_name.as_deref().unwrap_or("nobody"), ms, count)
    })
    .collect()
}

fn millis(seconds: f64) -> f64 {
    (1e3 * seconds).round()
}

#[test]
fn of_a_pipeline_the_path_is_the_slow_stage() {
    let mut play = Play::begin();
    let (a, b, c) = (2, 3, 4);
    for stage in [a, b, c] {
        play.starts(0, stage);
    }
    play.waits(0, MAIN);
    play.waits(0, b);
    play.waits(0, c);
    // The first stage makes an item in 1 ms, the second needs 10 ms for one, the third 1 ms. Each pipe has
    // room for one item.
    play.wakes(1, a, b, Category::Pipe, 0);
    play.waits(2, a);
    for item in 0..5 {
        let done = 11 + 10 * item;
        play.wakes(done, b, c, Category::Pipe, 0);
        play.wakes(done, b, a, Category::Pipe, 0);
        play.waits(done + 1, c);
        if item < 4 {
            play.waits(done + 1, a);
        }
    }
    play.ends(52, a);
    // As the second ends, the third finds the end of the pipe.
    play.wakes(53, b, c, Category::Pipe, 0);
    play.ends(53, b);
    play.ends(54, c);
    play.runs_after(54, MAIN, Category::WaitingForChildren);
    play.ends(54, MAIN);
    let path = play.shown(54);
    assert_eq!(steps(&path), [("b", "on-cpu", 52.0), ("a", "on-cpu", 1.0), ("c", "on-cpu", 1.0)]);
    let ended = ended(&path);
    for wait in [
        ("a", "pipe", "b", 45.0, 5),
        ("c", "pipe", "b", 48.0, 6),
        ("b", "pipe", "a", 1.0, 1),
        ("main", "waiting-for-children", "c", 54.0, 1),
    ] {
        assert!(ended.contains(&wait), "{ended:?}");
    }
}

#[test]
fn who_waits_for_a_lock_hangs_on_who_has_it() {
    let mut play = Play::begin();
    let (holder, other) = (2, 3);
    play.starts(0, holder);
    play.starts(0, other);
    play.waits(0, MAIN);
    play.waits(1, other);
    play.wakes(6, holder, other, Category::Locks, 1);
    play.wakes(10, other, MAIN, Category::Locks, 0);
    play.ends(12, MAIN);
    let path = play.shown(12);
    assert_eq!(
        steps(&path),
        [("a", "on-cpu", 6.0), ("b", "on-cpu", 3.0), ("main", "on-cpu", 2.0), ("b", "run-queue-wait", 1.0)]
    );
    assert_eq!(
        ended(&path),
        [("main", "locks", "b", 10.0, 1), ("b", "locks", "a", 5.0, 1)],
        "up to the wake-up, not to the CPU"
    );
}

#[test]
fn where_threads_are_joined_the_path_is_the_longest_one() {
    let mut play = Play::begin();
    play.is_preempted(2, MAIN);
    play.runs(3, MAIN);
    for worker in [2, 3, 4] {
        play.starts(3, worker);
    }
    play.waits(3, MAIN);
    play.wakes(5, 2, MAIN, Category::Locks, 0);
    play.ends(5, 2);
    play.waits(5, MAIN);
    // The second worker, joined next, is the long one; the third has ended before.
    play.ends(7, 4);
    play.wakes(23, 3, MAIN, Category::Locks, 0);
    play.ends(23, 3);
    play.ends(24, MAIN);
    let path = play.shown(24);
    assert_eq!(
        steps(&path),
        [("b", "on-cpu", 20.0), ("main", "on-cpu", 3.0), ("main", "run-queue-wait", 1.0)]
    );
}

#[test]
fn a_parent_hangs_on_what_its_child_waited_for() {
    let mut play = Play::begin();
    play.starts(1, 2);
    play.waits(1, MAIN);
    play.waits(2, 2);
    play.runs_after(9, 2, Category::StorageWait);
    play.ends(10, 2);
    play.runs_after(12, MAIN, Category::WaitingForChildren);
    play.ends(13, MAIN);
    let path = play.shown(14);
    let steps = steps(&path);
    assert_eq!(steps[0], ("a", "storage-wait", 7.0));
    for step in [
        ("a", "on-cpu", 2.0),
        ("main", "on-cpu", 2.0),
        // Until its parent goes on, the child's memory is taken down.
        ("a", "start-and-exit", 2.0),
        ("main", "start-and-exit", 1.0),
    ] {
        assert!(steps.contains(&step), "{steps:?}");
    }
    assert!(ended(&path).contains(&("a", "storage-wait", "nobody", 7.0, 1)));
}

#[test]
fn a_wait_for_another_thing_does_not_hang_on_a_child_that_ended_meanwhile() {
    let mut play = Play::begin();
    play.starts(0, 2);
    play.waits(1, MAIN);
    play.ends(3, 2);
    play.runs_after(9, MAIN, Category::Sleep);
    // The child has ended before this wait.
    play.waits(10, MAIN);
    play.runs_after(12, MAIN, Category::WaitingForChildren);
    let path = play.shown(12);
    assert_eq!(
        steps(&path),
        [("main", "sleep", 8.0), ("main", "on-cpu", 2.0), ("main", "waiting-for-children", 2.0)]
    );
}

#[test]
fn a_signal_says_that_the_end_of_a_child_has_ended_another_wait() {
    for reported in [true, false] {
        let mut play = Play::begin();
        play.starts(0, 2);
        play.waits(0, MAIN);
        play.ends(6, 2);
        // As make waits at the pipe of its jobs.
        play.runs_after(8, MAIN, Category::Pipe);
        if reported {
            play.0.child_ended(9 * MS, MAIN);
            play.0.child_ended(9 * MS, MAIN);
        }
        play.waits(10, MAIN);
        // The next wait has nothing to do with it.
        play.runs_after(13, MAIN, Category::Pipe);
        play.0.child_ended(13 * MS, MAIN);
        let path = play.shown(13);
        if reported {
            let expected = [
                ("a", "on-cpu", 6.0),
                ("main", "pipe", 3.0),
                ("main", "on-cpu", 2.0),
                ("a", "start-and-exit", 2.0),
            ];
            assert_eq!(steps(&path), expected);
            assert_eq!(ended(&path), [("main", "pipe", "a", 6.0, 1), ("main", "pipe", "nobody", 3.0, 1)]);
        } else {
            assert_eq!(steps(&path), [("main", "pipe", 11.0), ("main", "on-cpu", 2.0)]);
            assert_eq!(ended(&path), [("main", "pipe", "nobody", 11.0, 2)]);
        }
    }
}

#[test]
fn a_sleeper_hangs_on_nobody() {
    let mut play = Play::begin();
    play.waits(1, MAIN);
    // By an interrupt, or by a program that is not followed.
    play.0.wakes(5 * MS, 99, MAIN, Category::Sleep);
    play.runs_after(9, MAIN, Category::Sleep);
    let path = play.shown(10);
    assert_eq!(steps(&path), [("main", "sleep", 8.0), ("main", "on-cpu", 2.0)]);
    assert_eq!(ended(&path), [("main", "sleep", "nobody", 8.0, 1)]);
}

#[test]
fn what_was_not_recorded_takes_no_time_on_the_path() {
    let mut play = Play::begin();
    play.starts(0, 2);
    play.waits(2, MAIN);
    let states = |main, other| [(of(MAIN), 0, main), (of(2), MAIN, other)];
    play.0.pause(5 * MS, |_| Category::Pipe);
    play.0.resume(105 * MS, states(State::Waiting(None), State::Running));
    play.wakes(107, 2, MAIN, Category::Pipe, 0);
    // Whoever ended this wait, it was not seen.
    play.waits(108, MAIN);
    play.0.pause(109 * MS, |_| Category::Sleep);
    play.0.resume(209 * MS, states(State::Running, State::Running));
    play.runs(210, MAIN);
    play.ends(212, MAIN);
    let path = play.shown(212);
    assert!((path.recorded_share - 12.0 / 212.0).abs() < 1e-9);
    assert_eq!(
        steps(&path),
        [
            ("a", "on-cpu", 7.0),
            ("main", "on-cpu", 3.0),
            ("main", "run-queue-wait", 1.0),
            ("main", "sleep", 1.0)
        ]
    );
    assert_eq!(ended(&path), [("main", "pipe", "a", 5.0, 1)]);
}

#[test]
fn what_is_attached_to_has_no_path_and_ended_waits() {
    let mut path = Path::of(MAIN);
    assert!(Path::of(MAIN).shown(9 * MS, true, 9 * MS).is_none());
    path.resume(0, [(of(MAIN), 0, State::Waiting(None)), (of(2), MAIN, State::Running)]);
    path.wakes(4 * MS, 2, MAIN, Category::Network);
    let path = path.shown(8 * MS, false, 16 * MS).unwrap();
    assert_eq!((path.recorded_share, path.steps.len(), path.ended.len()), (0.5, 0, 1));
}

#[test]
fn of_many_processes_those_of_one_name_are_reported_together() {
    let mut play = Play::begin();
    let name = Rc::from("cc");
    for child in 0..1_000 {
        let thread = 10 + child;
        let at = 10 * u64::from(child);
        play.starts(at, thread);
        let of = Of { process: thread, thread, name: Some(&name) };
        play.0.is_named(at * MS, of, true);
        play.waits(at + 1, MAIN);
        play.ends(at + 9, thread);
        play.runs_after(at + 9, MAIN, Category::WaitingForChildren);
    }
    let path = play.shown(10_000);
    assert_eq!(steps(&path), [("cc", "on-cpu", 9_000.0), ("main", "on-cpu", 1_000.0)]);
    assert_eq!(path.steps[0].process, None);
    assert_eq!(ended(&path), [("main", "waiting-for-children", "cc", 8_000.0, 1_000)]);
}

#[test]
fn what_is_beyond_the_rows_is_the_last_of_them() {
    let mut play = Play::begin();
    for at in 0..200 {
        let name = Rc::from(format!("name {at}"));
        play.0.is_named(at * at * MS, Of { name: Some(&name), ..of(MAIN) }, false);
    }
    let path = play.shown(200 * 200);
    let steps = steps(&path);
    assert_eq!(steps.len(), MOST_SHOWN);
    assert_eq!(steps[MOST_SHOWN - 1].0, OTHERS);
    assert!(path.steps.iter().map(|step| step.seconds).sum::<f64>() > 39.999);
}

/// What every thread carries sums to the time that was recorded, whatever records come in whatever order.
#[test]
fn no_time_is_lost_or_made_whatever_records_come() {
    for seed in 0..60 {
        let mut random = Rng::new(seed);
        let mut below = |most: u64| random.next_u64() % most;
        let threads = 2 + below(12);
        let names: Vec<Rc<str>> = (0..400).map(|at| Rc::from(format!("{at}"))).collect();
        let mut path = Path::of(MAIN);
        let mut now = 0;
        for _ in 0..1_000 {
            // Times may be equal, and some come late.
            now = (now + below(3) * below(1_000_000)).saturating_sub(below(2) * below(1_000));
            let mut any = || u32::try_from(1 + below(threads)).unwrap();
            let (thread, other) = (any(), any());
            // Threads 1, 2 and 3 are one process, and so on.
            let process = |thread: u32| 1 + (thread - 1) / 3 * 3;
            let name = &names[usize::try_from(below(if seed % 3 == 0 { 400 } else { 4 })).unwrap()];
            let of = Of { process: process(thread), thread, name: Some(name) };
            let category = Category::ALL[usize::try_from(below(Category::ALL.len() as u64)).unwrap()];
            match below(40) {
                0..10 => path.runs(now, of, category),
                10..16 => path.leaves(now, of, true),
                16..20 => path.leaves(now, of, false),
                20..30 => path.wakes(now, thread, other, category),
                30..33 => path.starts(now, of, process(other), other),
                33..35 => path.is_named(now, of, below(2) == 0),
                35..37 => path.ends(now, thread),
                37 if below(2) == 0 => path.child_ended(now, thread),
                37 => path.pause(now, |_| category),
                _ => {
                    let states = [State::Running, State::Ready, State::Waiting(None)];
                    let state = states[usize::try_from(below(3)).unwrap()];
                    let seen = Of { process: process(other), thread: other, name: None };
                    path.resume(now, [(of, 0, state), (seen, process(thread), State::Running)]);
                }
            }
            for known in path.threads.values() {
                assert_eq!(known.carried.sum(), known.at, "{seed}");
                assert!(
                    known.at <= path.clock
                        && known.carried.parts.len() <= MOST_PARTS + Category::ALL.len() + 1
                );
            }
            let counted: u32 = path.processes.values().map(|process| process.threads).sum();
            assert_eq!(counted as usize, path.threads.len());
            assert!(path.processes.values().all(|process| process.threads > 0));
        }
        assert!(path.names.all.len() <= 2 * MOST_NAMES + 1);
        assert!(path.waits.len() <= 2 * MOST_WAITS + 2 * Category::ALL.len());
        let recorded = path.clock as f64 / 1e9;
        let path = path.shown(now, true, now.max(1)).unwrap();
        if !path.steps.is_empty() {
            assert!((path.steps.iter().map(|step| step.seconds).sum::<f64>() - recorded).abs() < 1e-6);
            assert!((path.steps.iter().map(|step| step.share).sum::<f64>() - 1.0).abs() < 1e-9);
        }
        assert!(path.steps.len() <= MOST_SHOWN && path.ended.len() <= MOST_SHOWN);
    }
}

#[test]
fn a_damaged_time_ends_no_bookkeeping() {
    let mut play = Play::begin();
    play.0.leaves(u64::MAX, of(MAIN), true);
    play.0.pause(u64::MAX, |_| Category::Sleep);
    play.0.resume(0, [(of(MAIN), 0, State::Running), (of(2), MAIN, State::Waiting(None))]);
    for at in [5, u64::MAX, 7] {
        play.0.wakes(at, MAIN, 2, Category::Pipe);
        play.0.leaves(at, of(2), true);
    }
    assert_eq!(steps(&play.shown(9))[0].1, "on-cpu");
}

#[test]
fn threads_beyond_those_that_are_followed_end_no_waits() {
    let mut play = Play::begin();
    for thread in 2..10_000 {
        play.0.starts(MS, of(thread), MAIN, MAIN);
    }
    play.waits(1, MAIN);
    assert_eq!(play.0.threads.len(), MOST_THREADS);
    play.0.wakes(3 * MS, 9_999, MAIN, Category::Pipe);
    play.runs_after(4, MAIN, Category::Pipe);
    let path = play.shown(4);
    assert_eq!(steps(&path), [("main", "pipe", 3.0), ("main", "on-cpu", 1.0)]);
}
