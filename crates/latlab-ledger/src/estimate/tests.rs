use super::*;

const SECOND: u64 = 1_000_000_000;

fn rules() -> &'static Rules {
    Rules::built_in()
}

fn costs() -> Costs {
    let exactly = |ns: f64| Cost {
        low: ns,
        mid: ns,
        high: ns,
    };
    Costs {
        fault: exactly(1000.0),
        unmap: exactly(0.0),
        call: exactly(200.0),
        byte: exactly(0.1),
        cold_byte: exactly(0.0),
        device: exactly(0.0),
        switch: exactly(0.0),
        process: exactly(0.0),
    }
}

/// One second of one thread, looked at a thousand times: `busy` percent of it on the CPU, the rest waiting for this.
fn looked(busy: u64, waits: Category) -> Tally {
    let mut tally = Tally {
        runs: 1,
        wall_ns: SECOND,
        wall_range_ns: (SECOND, SECOND),
        most_threads: 1,
        processes: 1,
        looks: 1000,
        ..Tally::default()
    };
    let ns = busy * 10_000_000;
    tally.looked.wall = SECOND;
    tally.looked.running = ns;
    tally.looked.thread_running = ns;
    tally.looked.waits.count(rules().whole(waits), SECOND - ns);
    tally.looked.thread_waits.count(rules().whole(waits), SECOND - ns);
    tally.usage.user_ns = ns;
    tally.usage.queue_ns = Some(0);
    tally
}

fn share(ledger: &Ledger, category: Category) -> f64 {
    ledger
        .rows
        .iter()
        .filter(|row| row.name == category)
        .map(|row| row.share)
        .sum()
}

fn assert_closed(ledger: &Ledger) {
    let sum: f64 = ledger.rows.iter().map(|row| row.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert!(ledger.closure.holds, "{:?}", ledger.closure);
    for row in &ledger.rows {
        assert!(row.low <= row.share && row.share <= row.high, "{row:?}");
    }
}

#[test]
fn looks_alone_name_waits_and_leave_user_code_whole() {
    let ledger = ledger(&looked(25, Category::Network), rules(), &costs());
    assert_closed(&ledger);
    assert!((share(&ledger, Category::Network) - 0.75).abs() < 1e-6);
    assert!((share(&ledger, Category::UserCpu) - 0.25).abs() < 1e-6);
    let names: Vec<_> = ledger.rows.iter().map(|row| row.name).collect();
    for unseen in Category::OF_USER_CODE {
        assert!(!names.contains(&unseen), "{unseen} cannot be known at this level");
    }
    assert!(names.contains(&Category::Unexplained), "always shown");
    let user = ledger
        .rows
        .iter()
        .find(|row| row.name == Category::UserCpu)
        .unwrap();
    let allocator = user
        .within
        .iter()
        .find(|within| within.name == Category::Allocator)
        .unwrap();
    assert!(allocator.low.abs() < 1e-12 && allocator.high >= 0.25 && allocator.high < 0.3);
}

#[test]
fn of_one_thread_the_counters_know_better_than_the_looks() {
    let mut tally = looked(50, Category::StorageWait);
    tally.usage.user_ns = 300_000_000;
    tally.usage.queue_ns = Some(100_000_000);
    let ledger = ledger(&tally, rules(), &costs());
    assert_closed(&ledger);
    assert!((share(&ledger, Category::UserCpu) - 0.3).abs() < 1e-6);
    assert!((share(&ledger, Category::RunQueueWait) - 0.1).abs() < 1e-6);
    assert!((share(&ledger, Category::StorageWait) - 0.6).abs() < 1e-6);
}

#[test]
fn kernel_time_is_divided_by_what_its_pieces_cost_and_the_rest_is_unexplained() {
    let mut tally = looked(100, Category::Sleep);
    tally.usage.user_ns = 200_000_000;
    tally.usage.system_ns = 800_000_000;
    tally.usage.minor_faults = 300_000;
    tally.usage.io = Some(crate::tally::Io {
        read_chars: 1_000_000_000,
        read_calls: 500_000,
        ..crate::tally::Io::default()
    });
    let ledger = ledger(&tally, rules(), &costs());
    assert_closed(&ledger);
    assert!((share(&ledger, Category::PageFaults) - 0.3).abs() < 0.01);
    assert!((share(&ledger, Category::FileIoCpu) - 0.2).abs() < 0.01);
    let rest = ledger
        .rows
        .iter()
        .find(|row| row.name == Category::Unexplained)
        .unwrap();
    assert!((rest.share - 0.3).abs() < 0.1, "{rest:?}");
    assert!(rest.high > 0.25);
}

#[test]
fn recorded_waits_without_a_reason_follow_those_that_were_read_in_time() {
    let mut tally = looked(0, Category::Sleep);
    tally.looked = crate::sweep::Sums::default();
    tally.recorded.wall = SECOND;
    tally.recorded.unknown = SECOND;
    tally.unread.unread(1000, SECOND);
    for at in 0..400 {
        let category = if at % 4 == 0 {
            Category::StorageWait
        } else {
            Category::Network
        };
        tally.unread.read(1000, rules().whole(category));
    }
    let ledger = ledger(&tally, rules(), &costs());
    assert_closed(&ledger);
    assert!((share(&ledger, Category::Network) - 0.75).abs() < 1e-6);
    assert!((share(&ledger, Category::StorageWait) - 0.25).abs() < 1e-6);
}

#[test]
fn samples_divide_the_cpu_and_say_how_well_they_know_it() {
    let mut tally = looked(0, Category::Sleep);
    tally.looked = crate::sweep::Sums::default();
    tally.recorded.wall = SECOND;
    tally.recorded.running = SECOND;
    tally.recorded.thread_running = SECOND;
    tally.sees_kernel = true;
    for at in 0..1000 {
        let category = if at % 4 == 0 {
            Category::Allocator
        } else {
            Category::Compute
        };
        tally.mix.sample(rules().whole(category), 1e6);
    }
    let ledger = ledger(&tally, rules(), &costs());
    assert_closed(&ledger);
    let allocator = ledger
        .rows
        .iter()
        .find(|row| row.name == Category::Allocator)
        .unwrap();
    assert!((allocator.share - 0.25).abs() < 1e-6);
    assert!(
        allocator.high - allocator.low > 0.04 && allocator.high - allocator.low < 0.07,
        "{allocator:?}"
    );
    assert!(!ledger.rows.iter().any(|row| row.name == Category::UserCpu));
}

#[test]
fn samples_of_user_code_leave_the_kernel_to_its_counts() {
    let mut tally = looked(0, Category::Sleep);
    tally.looked = crate::sweep::Sums::default();
    tally.recorded.wall = SECOND;
    tally.recorded.running = SECOND;
    tally.recorded.thread_running = SECOND;
    tally.usage.user_ns = 600_000_000;
    tally.usage.system_ns = 400_000_000;
    tally.usage.minor_faults = 400_000;
    for _ in 0..600 {
        tally.mix.sample(rules().whole(Category::Compute), 1e6);
    }
    let ledger = ledger(&tally, rules(), &costs());
    assert_closed(&ledger);
    assert!((share(&ledger, Category::Compute) - 0.6).abs() < 1e-6);
    assert!((share(&ledger, Category::PageFaults) - 0.4).abs() < 0.01);
}

#[test]
fn the_books_do_not_close_when_time_was_given_away_twice() {
    let mut tally = looked(50, Category::Sleep);
    tally.wall_ns = SECOND * 9 / 10;
    let ledger = ledger(&tally, rules(), &costs());
    assert!(!ledger.closure.holds);
}
