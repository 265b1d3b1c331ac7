use std::collections::BTreeMap;
use std::rc::Rc;

use super::rows::MOST_TEXT;
use super::*;
use crate::Category::{
    Allocator, Compute, FileIoCpu, GarbageCollection, InterruptsForOthers, KernelCpu, Locks, Network,
    PageFaults, Pipe, RunQueueWait, Sleep, StartAndExit, StorageWait, Unexplained, UserCpu,
};
use crate::Counted;
use crate::account::io::Io;
use crate::account::mix::Mix;
use crate::account::tcp::Traffic;
use crate::model::Within;

const SECOND: u64 = 1_000_000_000;

fn rules() -> &'static Rules {
    Rules::built_in()
}

fn costs() -> Costs {
    let exactly = |ns: f64| Cost { low: ns, mid: ns, high: ns };
    Costs {
        fault: exactly(1000.0),
        fault_in_user: exactly(0.0),
        unmap: exactly(0.0),
        call: exactly(200.0),
        send: exactly(10_000.0),
        byte: exactly(0.1),
        cold_byte: exactly(0.0),
        device: exactly(0.0),
        switch: exactly(0.0),
        sleep: exactly(0.0),
        process: exactly(0.0),
    }
}

/// One second of one thread, scanned a thousand times: `busy` percent of it on the CPU, the rest waiting for
/// this.
fn scanned(busy: u64, waits: Category) -> Tally {
    let mut tally = Tally {
        runs: 1,
        wall_ns: SECOND,
        wall_range_ns: (SECOND, SECOND),
        most_threads: 1,
        processes: 1,
        cpus: 4,
        scans: 1000,
        ..Tally::default()
    };
    let ns = busy * 10_000_000;
    tally.scanned.wall = SECOND;
    tally.scanned.running = ns;
    tally.scanned.thread_running = ns;
    tally.scanned.by_runnable = BTreeMap::from([((0, 0), SECOND - ns), ((1, 0), ns)]);
    tally.scanned.waits.count(rules().whole(waits), SECOND - ns);
    tally.scanned.thread_waits.count(rules().whole(waits), SECOND - ns);
    tally.scanned.wakes.count(rules().whole(waits), u64::from(busy < 100));
    tally.usage.user_ns = ns;
    tally.usage.queue_ns = Some(0);
    tally
}

/// As a row of its own.
fn stated(ledger: &Ledger, category: Category) -> f64 {
    ledger.rows.iter().filter(|row| row.name == category).map(|row| row.share).sum()
}

/// With what of it counts give to the category where the kernel's work is left whole.
fn share(ledger: &Ledger, category: Category) -> f64 {
    let own = stated(ledger, category);
    let within = &row(ledger, KernelCpu).within;
    if category == KernelCpu {
        own - within.iter().map(|within| within.share).sum::<f64>()
    } else {
        own + within.iter().filter(|within| within.name == category).map(|within| within.share).sum::<f64>()
    }
}

/// What of the kernel's work, which is left whole, may be of a category.
fn within(ledger: &Ledger, category: Category) -> &Within {
    row(ledger, KernelCpu).within.iter().find(|within| within.name == category).unwrap()
}

fn row(ledger: &Ledger, category: Category) -> &Row {
    ledger.rows.iter().find(|row| row.name == category).unwrap()
}

fn assert_shares<const N: usize>(ledger: &Ledger, within: f64, shares: [(Category, f64); N]) {
    for (category, wanted) in shares {
        let found = share(ledger, category);
        assert!((found - wanted).abs() < within, "{category} {found} of {wanted}: {:?}", ledger.rows);
    }
}

/// The ledger, whose rows must add up to the whole.
fn closed(tally: &Tally, costs: &Costs) -> Ledger {
    let ledger = ledger(tally, rules(), costs);
    assert_closed(&ledger);
    let (cpu, wall) = (tally.usage.cpu_ns() as f64, tally.wall_ns as f64);
    if ledger.contradiction.is_none() {
        let allowed = cpu / f64::from(tally.cpus.max(1)) - 1.0..=cpu.min(wall) + 1.0;
        assert!(allowed.contains(&ledger.running_ns), "{} of {allowed:?}", ledger.running_ns);
        let most = (tally.usage.queue_ns.unwrap_or(0) + tally.delay.unread_ns) as f64;
        assert!(share(&ledger, RunQueueWait) * wall <= most + 1.0, "{:?}", ledger.rows);
        let Range { low, high } = ledger.computing;
        let user: f64 = Category::OF_USER_CODE.iter().map(|category| stated(&ledger, *category)).sum();
        let user = user + stated(&ledger, UserCpu);
        assert!(low - 1e-6 <= user && user <= high + 1e-6, "{user} in {low} to {high}: {:?}", ledger.rows);
    }
    ledger
}

#[test]
fn of_all_user_code_more_is_known_than_of_what_it_consists_of() {
    let mut tally = ran(false);
    (tally.usage.user_ns, tally.usage.system_ns) = (900_000_000, 100_000_000);
    for at in 0..18 {
        let what = Category::OF_USER_CODE[at % 4];
        tally.mix.sample(rules().whole(what), 5e7);
    }
    tally.sampled_ns = 1e9;
    let ledger = closed(&tally, &costs());
    let Range { low, high } = ledger.computing;
    let widest = ledger.rows.iter().map(|row| row.high - row.low).fold(0.0, f64::max);
    // Ticks know of some 250 samples how much user code there is.
    assert!(high - low < 0.1 && widest > 0.25, "{low} to {high}, {widest}");
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
fn scans_alone_name_waits_and_leave_user_code_whole() {
    let ledger = closed(&scanned(25, Network), &costs());
    assert_shares(&ledger, 1e-6, [(Network, 0.75), (UserCpu, 0.25)]);
    let names: Vec<_> = ledger.rows.iter().map(|row| row.name).collect();
    for unseen in Category::OF_USER_CODE {
        assert!(!names.contains(&unseen), "{unseen} cannot be known at this level");
    }
    assert!(names.contains(&Unexplained), "always shown");
    let user = row(&ledger, UserCpu);
    let allocator = user.within.iter().find(|within| within.name == Allocator).unwrap();
    assert!(allocator.low.abs() < 1e-12 && allocator.high >= 0.25 && allocator.high < 0.3);
}

#[test]
fn of_one_thread_the_counters_know_better_than_the_scans() {
    let mut tally = scanned(50, StorageWait);
    tally.usage.user_ns = 300_000_000;
    tally.usage.queue_ns = Some(100_000_000);
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 1e-6, [(UserCpu, 0.3), (RunQueueWait, 0.1), (StorageWait, 0.6)]);
}

#[test]
fn waits_for_a_cpu_that_ended_with_their_process_are_no_sleep() {
    let mut tally = scanned(50, Sleep);
    tally.most_threads = 2;
    tally.usage.user_ns = 200_000_000;
    tally.usage.queue_ns = Some(100_000_000);
    let found = closed(&tally, &costs());
    // All delay was counted: samples do not know better.
    assert_shares(&found, 1e-6, [(Sleep, 0.7), (RunQueueWait, 0.1)]);
    tally.delay.unread_ns = 250_000_000;
    let found = closed(&tally, &costs());
    assert_shares(&found, 1e-6, [(Sleep, 0.5), (UserCpu, 0.2), (RunQueueWait, 0.3)]);
    assert!(row(&found, RunQueueWait).high <= 0.35 + 1e-9);
}

#[test]
fn what_the_host_took_is_no_sleep_and_no_run_queue_delay() {
    let mut tally = scanned(50, Sleep);
    tally.usage.user_ns = 400_000_000;
    tally.delay.stolen_ns = 150_000_000;
    let found = closed(&tally, &costs());
    assert_shares(&found, 1e-6, [(Sleep, 0.5), (UserCpu, 0.4), (InterruptsForOthers, 0.1)]);
    // Records have on the CPU what the kernel does not count.
    let mut tally = ran(true);
    tally.usage.user_ns = 900_000_000;
    samples(&mut tally.mix, 400, rules().whole(Compute), 1e6);
    let found = closed(&tally, &costs());
    assert_shares(&found, 1e-6, [(Compute, 0.9), (InterruptsForOthers, 0.1)]);
}

#[test]
fn threads_cannot_have_run_for_longer_than_their_cpu_time() {
    // Four threads, one of them on a CPU or ready nearly all the time, and a tenth of a second of CPU time
    // between them.
    let mut tally = scanned(90, Locks);
    tally.most_threads = 4;
    tally.scanned.by_runnable = BTreeMap::from([((0, 0), SECOND / 10), ((2, 0), 9 * SECOND / 10)]);
    tally.usage.user_ns = SECOND / 10;
    tally.usage.queue_ns = Some(17 * SECOND / 10);
    let found = closed(&tally, &costs());
    let row = row(&found, RunQueueWait);
    assert!(row.low > 0.75 && row.high < 0.9, "{row:?}");
}

#[test]
fn a_counter_that_no_ledger_can_satisfy_is_named() {
    let mut tally = scanned(50, Sleep);
    tally.cpus = 2;
    tally.usage.user_ns = 2 * SECOND;
    assert_eq!(closed(&tally, &costs()).contradiction, None);
    tally.usage.user_ns = 3 * SECOND;
    let found = closed(&tally, &costs());
    let said = found.contradiction.as_deref().unwrap_or("");
    assert!(said.contains("3.000 s of CPU time, more than 2 CPUs have in 1.000 s"), "{said}");
    assert_shares(&found, 1e-9, [(Unexplained, 1.0)]);
}

#[test]
fn kernel_time_is_divided_by_what_its_pieces_cost_and_the_rest_is_other_work() {
    let mut tally = scanned(100, Sleep);
    (tally.usage.user_ns, tally.usage.system_ns) = (200_000_000, 800_000_000);
    tally.usage.minor_faults = 300_000;
    tally.usage.io = Some(Io { read_chars: 1_000_000_000, read_calls: 500_000, ..Io::default() });
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 0.01, [(PageFaults, 0.3), (FileIoCpu, 0.2)]);
    assert_shares(&ledger, 0.01, [(KernelCpu, 0.3)]);
    // They leave too much open for a row of each.
    let kernel = row(&ledger, KernelCpu);
    assert!((kernel.share - 0.8).abs() < 0.01 && kernel.high - kernel.low < 0.15, "{kernel:?}");
    assert!(ledger.rows.iter().all(|row| row.name != FileIoCpu && row.name != PageFaults));
    let faults = within(&ledger, PageFaults);
    assert!((faults.low - 0.3).abs() < 0.01 && (faults.high - 0.6).abs() < 0.01, "{faults:?}");
    // Where they come to about all of it, there is one.
    tally.usage.minor_faults = 580_000;
    let ledger = closed(&tally, &costs());
    let faults = row(&ledger, PageFaults);
    assert!((faults.share - 0.58).abs() < 0.01 && faults.high - faults.low < 0.2, "{faults:?}");
    assert!(within(&ledger, Network).share.abs() < 1e-12);
}

#[test]
fn what_ticks_do_not_see_around_waits_is_the_kernels() {
    let twenty = Cost { low: 20_000.0, mid: 20_000.0, high: 20_000.0 };
    let costs = Costs {
        sleep: twenty,
        // Counts of calls bound nothing.
        call: Cost { low: 0.0, mid: 1e3, high: 1e9 },
        ..costs()
    };
    let queued = |waits, switches, queue_ns| {
        let mut tally = scanned(50, waits);
        tally.usage.queue_ns = Some(queue_ns);
        (tally.usage.user_ns, tally.usage.system_ns) = (300_000_000, 200_000_000);
        tally.usage.voluntary_switches = switches;
        tally.usage.io = Some(Io { read_calls: 1, ..Io::default() });
        let ledger = closed(&tally, &costs);
        let row = row(&ledger, UserCpu);
        (row.share, row.high - row.low)
    };
    let user = |waits, switches| queued(waits, switches, 0);
    let wide = |switches| user(StorageWait, switches).1;
    assert!((user(StorageWait, 0).0 - 0.3).abs() < 1e-6);
    // Half of 20 us around each of 5,000 waits: a tenth of the CPU time.
    assert!((user(StorageWait, 5_000).0 - 0.27).abs() < 1e-6);
    // Waits that ended with 20 us in the run queue: half of the CPUs did not idle.
    let busy = queued(StorageWait, 5_000, 100_000_000).0;
    assert!((busy - 0.285).abs() < 1e-6, "{busy}");
    assert!((user(Sleep, 5_000).0 - 0.3 * (1.0 - 11.0 / 50.0)).abs() < 1e-6);
    // With so many it cannot be known, and is not said to be.
    assert!((user(Pipe, 200_000).0 - 0.24).abs() < 1e-6);
    assert!(wide(0) < wide(5_000) && wide(5_000) < wide(200_000));
}

#[test]
fn files_that_were_read_are_no_pipe_although_a_pipe_was_waited_for() {
    let mut tally = scanned(50, Pipe);
    (tally.usage.user_ns, tally.usage.system_ns) = (300_000_000, 200_000_000);
    // 500 MB of a file, and as much into a pipe.
    tally.usage.io = Some(Io {
        read_chars: 500_000_000,
        read_calls: 250_000,
        written_chars: 500_000_000,
        write_calls: 250_000,
        ..Io::default()
    });
    tally.usage.file_chars = 500_000_000;
    let found = closed(&tally, &costs());
    assert_shares(&found, 0.01, [(FileIoCpu, 0.1), (Pipe, 0.6)]);
    // Where no position was seen to move, the waits are all that is known.
    tally.usage.file_chars = 0;
    let found = closed(&tally, &costs());
    assert!(share(&found, FileIoCpu) < 0.01);
    // Pipes have no disk: what was written for one was a file's, though it was closed before any scan.
    tally.usage.io.as_mut().unwrap().written_bytes = 500_000_000;
    let found = closed(&tally, &costs());
    assert_shares(&found, 0.01, [(FileIoCpu, 0.1)]);
}

#[test]
fn what_is_thrown_away_is_no_work_on_files() {
    let mut tally = scanned(100, Network);
    (tally.usage.user_ns, tally.usage.system_ns) = (700_000_000, 300_000_000);
    // 1 GB from a socket, which no counter knows, into /dev/null.
    tally.usage.io = Some(Io { written_chars: 1_000_000_000, write_calls: 100_000, ..Io::default() });
    let of = |tally: &Tally| share(&closed(tally, &costs()), FileIoCpu);
    assert!((of(&tally) - 0.12).abs() < 0.01);
    tally.usage.discards =
        crate::account::discards::Discards { alone: 1_000_000_000, beside_files: 0, times: 300, seen: true };
    assert!((of(&tally) - 0.02).abs() < 0.01);
    // Files in memory reach no disk either: with one open meanwhile, they may have got it.
    let alone = tally.usage.discards;
    tally.usage.discards.beside_files = std::mem::take(&mut tally.usage.discards.alone);
    let found = ledger(&tally, rules(), &costs());
    let files = within(&found, FileIoCpu);
    assert!((files.share - 0.12).abs() < 0.01 && files.low < 0.03, "{files:?}");
    tally.usage.discards = alone;
    // What went to a disk was not thrown away.
    tally.usage.io.as_mut().unwrap().written_bytes = 1_000_000_000;
    assert!((of(&tally) - 0.12).abs() < 0.01);
}

#[test]
fn what_the_kernel_does_for_tcp_is_the_networks() {
    let mut tally = scanned(90, Network);
    (tally.usage.user_ns, tally.usage.system_ns) = (200_000_000, 700_000_000);
    let traffic = Traffic { bytes: 20_000_000, sends: (50_000.0, 50_000.0), receives: 50_000 };
    // By `send` and `recv`, which the counters of a process do not know: 10 us a piece that is sent, 200 ns a
    // call, 0.1 ns a byte.
    tally.usage.traffic = traffic;
    let of = |tally: &Tally, category| share(&closed(tally, &costs()), category);
    assert!((of(&tally, Network) - 0.1 - 0.512).abs() < 1e-6);
    let rest = of(&tally, KernelCpu);
    assert!((0.1..0.19).contains(&rest), "{rest}");
    // By `read` and `write`: nothing counts twice, and nothing of it is work on files.
    tally.usage.io = Some(Io {
        read_chars: 10_000_000,
        read_calls: 50_000,
        written_chars: 10_000_000,
        write_calls: 50_000,
        ..Io::default()
    });
    assert!((of(&tally, Network) - 0.1 - 0.522).abs() < 1e-6);
    assert!(of(&tally, FileIoCpu) < 1e-9);
    // What is waited for is not taken for what is read where TCP says what that was.
    tally.usage.io.as_mut().unwrap().read_chars += 1_000_000_000;
    assert!((of(&tally, FileIoCpu) - 0.1).abs() < 0.03);
}

#[test]
fn a_part_of_the_kernels_work_is_at_most_what_the_others_leave() {
    let mut tally = scanned(100, Sleep);
    (tally.usage.user_ns, tally.usage.system_ns) = (200_000_000, 800_000_000);
    tally.usage.minor_faults = 500_000;
    tally.usage.traffic = Traffic { bytes: 1, sends: (30_000.0, 30_000.0), receives: 0 };
    let costs = Costs { send: Cost { low: 1_000.0, mid: 10_000.0, high: 1e6 }, ..costs() };
    let ledger = ledger(&tally, rules(), &costs);
    let network = within(&ledger, Network);
    assert!(network.high < 0.45, "{network:?}");
}

#[test]
fn recorded_waits_without_a_reason_follow_those_that_were_read_in_time() {
    let mut tally = scanned(0, Sleep);
    tally.scanned = crate::account::sweep::Sums::default();
    tally.recorded.wall = SECOND;
    tally.recorded.unknown = SECOND;
    tally.unread.unread(1000, SECOND);
    for at in 0..400 {
        let category = if at % 4 == 0 { StorageWait } else { Network };
        tally.unread.read(1000, rules().whole(category));
    }
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 1e-6, [(Network, 0.75), (StorageWait, 0.25)]);
}

#[test]
fn recorded_waits_of_which_none_was_read_in_time_are_those_that_scans_met() {
    let mut tally = scanned(0, StorageWait);
    tally.scanned.wall = SECOND / 2;
    tally.scanned.waits = Counted::default();
    tally.scanned.waits.count(rules().whole(StorageWait), 400_000_000);
    tally.scanned.unknown = 100_000_000;
    tally.recorded.wall = SECOND / 2;
    tally.recorded.unknown = SECOND / 2;
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 1e-6, [(StorageWait, 0.8), (Unexplained, 0.2)]);
}

#[test]
fn samples_divide_the_cpu_and_say_how_well_they_know_it() {
    let mut tally = scanned(0, Sleep);
    tally.scanned = crate::account::sweep::Sums::default();
    records(&mut tally, SECOND);
    tally.usage.user_ns = SECOND;
    tally.sees_kernel = true;
    for at in 0..1000 {
        let category = if at % 4 == 0 { Allocator } else { Compute };
        tally.mix.sample(rules().whole(category), 1e6);
    }
    let ledger = closed(&tally, &costs());
    let allocator = row(&ledger, Allocator);
    assert!((allocator.share - 0.25).abs() < 1e-6);
    assert!(allocator.high - allocator.low > 0.04 && allocator.high - allocator.low < 0.07, "{allocator:?}");
    assert!(!ledger.rows.iter().any(|row| row.name == UserCpu));
}

#[test]
fn samples_of_user_code_leave_the_kernel_to_its_counts() {
    let mut tally = scanned(0, Sleep);
    tally.scanned = crate::account::sweep::Sums::default();
    records(&mut tally, SECOND);
    (tally.usage.user_ns, tally.usage.system_ns) = (600_000_000, 400_000_000);
    tally.usage.minor_faults = 400_000;
    samples(&mut tally.mix, 600, rules().whole(Compute), 1e6);
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 1e-6, [(Compute, 0.6)]);
    assert_shares(&ledger, 0.01, [(PageFaults, 0.4)]);
}

#[test]
fn one_sample_of_user_code_knows_next_to_nothing_however_many_ticks_there_were() {
    for sees_kernel in [false, true] {
        let mut tally = ran(sees_kernel);
        tally.usage.user_ns = SECOND;
        tally.mix.sample(rules().whole(GarbageCollection), 1e9);
        let ledger = closed(&tally, &costs());
        let collecting = row(&ledger, GarbageCollection);
        assert!(collecting.low < 0.3 && collecting.high > 0.99, "{collecting:?}");
        // Wilson's interval of none of one.
        let computing = row(&ledger, Compute);
        assert!(computing.share < 1e-9 && computing.high > 0.7, "{computing:?}");
    }
}

/// So much time was recorded, in which a thread ran.
fn records(tally: &mut Tally, wall: u64) {
    tally.recorded.wall = wall;
    tally.recorded.running = wall;
    tally.recorded.thread_running = wall;
}

/// Waits of all threads that were recorded: what for, nanoseconds together, and how often.
fn waited(tally: &mut Tally, waits: [(Category, u64, u64); 2]) {
    for (category, ns, times) in waits {
        let reason = rules().whole(category);
        tally.recorded.waits.count(reason, ns);
        tally.recorded.thread_waits.count(reason, ns);
        tally.recorded.wakes.count(reason, times);
        tally.recorded.all_waited.count(reason, times);
    }
}

/// One second in which a thread ran, all of it recorded.
fn ran(sees_kernel: bool) -> Tally {
    let mut tally = scanned(100, Sleep);
    tally.scanned = crate::account::sweep::Sums::default();
    records(&mut tally, SECOND);
    tally.sees_kernel = sees_kernel;
    tally
}

/// A loop that touches pages for 600 ms, gives them back for 60 and computes for 340, with a sample a 100 us.
/// Of the faults' samples every tenth falls on the instruction that touched the page, as the kernel's ticks
/// do.
fn touches_pages(sees_kernel: bool) -> (Tally, Costs) {
    let mut tally = ran(sees_kernel);
    let (path, faults) = (Rc::from("/bin/known"), 400_000);
    let (compute, fault) = (rules().whole(Compute), named(PageFaults, "in other code"));
    for at in 0..3400 {
        tally.mix.sample(compute, 1e5);
        tally.mix.at(&path, 0x2000 + at % 7, compute, 1e5);
    }
    for at in 0..6000 {
        if at % 10 == 0 {
            tally.mix.sample(compute, 1e5);
            tally.mix.at(&path, 0x1000, compute, 1e5);
        } else if sees_kernel {
            tally.mix.sample(fault, 1e5);
            tally.mix.in_kernel(fault, 1e5);
            tally.mix.touched(&path, 0x1000, 1e5);
        }
    }
    if sees_kernel {
        for _ in 0..600 {
            let unmap = named(Allocator, "in the kernel");
            tally.mix.sample(unmap, 1e5);
            tally.mix.in_kernel(unmap, 1e5);
        }
    } else {
        tally.mix.touched(&path, 0x1000, 0.0);
    }
    (tally.usage.user_ns, tally.usage.system_ns) = (400_000_000, 600_000_000);
    tally.usage.minor_faults = faults;
    let each = |ns: f64| ns / faults as f64;
    let costs = Costs {
        fault: Cost { low: each(0.5 * 600e6), mid: each(540e6), high: each(2.0 * 600e6) },
        fault_in_user: Cost { low: 0.07, mid: 0.1, high: 0.13 },
        unmap: Cost { low: each(50e6), mid: each(60e6), high: each(70e6) },
        ..costs()
    };
    (tally, costs)
}

fn samples(mix: &mut Mix, many: u32, reason: Reason, weight: f64) {
    for _ in 0..many {
        mix.sample(reason, weight);
    }
}

fn named(category: Category, part: &str) -> Reason {
    rules().named(category, part).unwrap()
}

#[test]
fn the_part_of_a_page_fault_that_samples_take_for_user_code_is_the_faults() {
    for sees_kernel in [true, false] {
        let (tally, costs) = touches_pages(sees_kernel);
        let ledger = closed(&tally, &costs);
        let truth = [(PageFaults, 0.60), (Allocator, 0.06), (Compute, 0.34)];
        assert_shares(&ledger, 0.01, truth);
    }
}

#[test]
fn an_instruction_that_mostly_finds_its_page_keeps_its_samples() {
    let (mut tally, costs) = touches_pages(true);
    let path = Rc::from("/bin/known");
    let compute = rules().whole(Compute);
    // It computes for as long again, and touches no new page.
    for _ in 0..10_000 {
        tally.mix.sample(compute, 1e5);
        tally.mix.at(&path, 0x1000, compute, 1e5);
    }
    tally.usage.user_ns += SECOND;
    tally.recorded.wall = 2 * SECOND;
    tally.recorded.running = 2 * SECOND;
    tally.wall_ns = 2 * SECOND;
    let ledger = closed(&tally, &costs);
    assert_shares(&ledger, 0.005, [(PageFaults, 0.30), (Compute, 0.67)]);
}

#[test]
fn without_samples_the_interval_knows_that_ticks_take_a_part_of_page_faults_for_user_code() {
    let (mut tally, mut costs) = touches_pages(false);
    tally.mix = crate::account::mix::Mix::default();
    costs.fault_in_user = Costs::default().fault_in_user;
    let ledger = closed(&tally, &costs);
    let (user, faults) = (row(&ledger, UserCpu), within(&ledger, PageFaults));
    assert!(user.low < 0.34 && 0.34 < user.high, "{user:?}");
    assert!(faults.low < 0.66 && 0.66 < faults.high, "{faults:?}");
    assert!((user.share - 0.34).abs() < 0.05 && (faults.share - 0.66).abs() < 0.05);
    assert!(!ledger.rows.iter().any(|row| row.name == Allocator));
}

#[test]
fn where_all_of_a_few_samples_fell_in_the_kernel_its_ticks_still_know_of_user_code() {
    let mut tally = ran(true);
    (tally.usage.user_ns, tally.usage.system_ns) = (400_000_000, 600_000_000);
    let reading = named(FileIoCpu, "reading");
    samples(&mut tally.mix, 5, reading, 1e6);
    tally.mix.in_kernel(reading, 5.0 * 1e6);
    let ledger = closed(&tally, &costs());
    let user = row(&ledger, UserCpu);
    assert!((user.share - 0.4).abs() < 0.02, "{user:?}");
    assert!(user.low < 0.4 && 0.4 < user.high);
    assert!(ledger.rows.iter().all(|row| row.name != Compute), "no sample tells it apart");
}

#[test]
fn stacks_of_long_names_are_listed_as_far_as_there_is_room() {
    let mut tally = ran(true);
    let compute = rules().whole(Compute);
    let name: Rc<str> = Rc::from("n".repeat(4096));
    for number in 1..=300 {
        let frames = vec![Rc::clone(&name); number];
        tally.mix.sample(compute, 1e6);
        tally.mix.stack(Compute, Side::User, frames, number as f64);
    }
    let listed = ledger(&tally, rules(), &costs()).stacks;
    let text: usize = listed.iter().flat_map(|stack| &stack.frames).map(String::len).sum();
    assert!(text <= MOST_TEXT && text > MOST_TEXT / 2, "{text}");
}

#[test]
fn functions_and_stacks_of_a_category_have_no_more_than_it_has() {
    for sees_kernel in [true, false] {
        let (mut tally, costs) = touches_pages(sees_kernel);
        let path: Rc<str> = Rc::from("/bin/known");
        let spot = |name: &str, weight| crate::account::mix::Spot {
            function: Some(Rc::from(name)),
            object: Rc::from("known"),
            weight,
        };
        // `touches` has all instructions that touched a page, and as much of its own.
        for (name, offset, weight) in
            [("touches", 0x1000, 60e6), ("touches", 0x2000, 60e6), ("computes", 0x2001, 280e6)]
        {
            tally.mix.function(Compute, name, "known", weight);
            tally.mix.spot(Compute, &path, offset, spot(name, weight));
            let frames = vec![Rc::from(name)];
            tally.mix.stack(Compute, Side::User, frames, weight);
        }
        if sees_kernel {
            tally.mix.function(PageFaults, "clear_page", "[kernel]", 540e6);
            tally.mix.function(Allocator, "unmap", "[kernel]", 60e6);
        }
        let ledger = closed(&tally, &costs);
        for row in &ledger.rows {
            let stacks = ledger.stacks.iter().filter(|stack| stack.name == row.name);
            let (functions, stacks): (f64, f64) = (
                row.functions.iter().map(|function| function.share).sum(),
                stacks.map(|stack| stack.share).sum(),
            );
            assert!(functions <= row.share + 1e-9 && stacks <= row.share + 1e-9, "{row:?}");
        }
        let function = |category, name: &str| {
            let of = ledger.rows.iter().filter(|row| row.name == category).flat_map(|row| &row.functions);
            let found = of.clone().find(|function| function.name == name);
            found.map_or(0.0, |function| function.share)
        };
        // What ended page faults is no time of the instruction's function.
        assert!((function(Compute, "touches") - 0.06).abs() < 0.003);
        assert!((function(Compute, "computes") - 0.28).abs() < 0.01);
        let faults = function(PageFaults, "clear_page");
        assert!((faults - if sees_kernel { 0.6 } else { 0.0 }).abs() < 0.01);
        let symbols = crate::account::by_place::symbols(&tally.mix, &ledger.sampled);
        let sum: f64 = symbols.iter().map(|row| row.on_cpu.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}

#[test]
fn samples_of_a_program_that_leaves_its_cpu_all_the_time_count_less_than_ticks() {
    let user_of = |switches| {
        let mut tally = ran(true);
        (tally.usage.user_ns, tally.usage.system_ns) = (400_000_000, 600_000_000);
        tally.switches = switches;
        // Of what came due in the kernel much came in user code.
        samples(&mut tally.mix, 800, rules().whole(Compute), 1e6);
        let reading = named(FileIoCpu, "reading");
        samples(&mut tally.mix, 200, reading, 1e6);
        tally.mix.in_kernel(reading, 200.0 * 1e6);
        let ledger = closed(&tally, &costs());
        row(&ledger, Compute).clone()
    };
    let (never, always) = (user_of(0), user_of(50_000));
    assert!(never.share > 0.7, "{never:?}");
    assert!((always.share - 0.4).abs() < 0.02, "{always:?}");
    assert!(always.low < 0.4 && 0.4 < always.high);
}

#[test]
fn samples_that_a_virtual_machine_missed_are_no_work_of_the_kernel() {
    let mut tally = ran(false);
    records(&mut tally, 10 * SECOND);
    tally.wall_ns = 10 * SECOND;
    (tally.usage.user_ns, tally.usage.system_ns) = (9_950_000_000, 50_000_000);
    samples(&mut tally.mix, 9300, rules().whole(Compute), 1e6);
    let ledger = closed(&tally, &costs());
    assert!(share(&ledger, Compute) > 0.99);
    assert!(share(&ledger, Unexplained) < 0.01);
}

#[test]
fn the_ends_of_recorded_waits_that_were_spent_ready_are_waiting_for_a_cpu() {
    let mut tally = ran(true);
    tally.recorded.running = 400_000_000;
    tally.recorded.thread_running = 400_000_000;
    tally.usage.user_ns = 400_000_000;
    tally.usage.queue_ns = Some(90_000_000);
    tally.delay.recorded_ns = 90_000_000;
    waited(&mut tally, [(Network, 400_000_000, 200), (Sleep, 200_000_000, 100)]);
    samples(&mut tally.mix, 400, rules().whole(Compute), 1e6);
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 1e-6, [(RunQueueWait, 0.09), (Network, 0.34), (Sleep, 0.17)]);
}

#[test]
fn what_a_thread_ran_before_the_record_of_it_is_recording_and_no_part_of_its_waits() {
    for sees_kernel in [false, true] {
        // For 400 ms by records and 450 ms by its counters, with 20 ms ready at the ends of waits.
        let mut tally = ran(sees_kernel);
        records(&mut tally, 400_000_000);
        tally.recorded.wall = SECOND;
        tally.usage.user_ns = 300_000_000;
        tally.usage.system_ns = 150_000_000;
        tally.usage.queue_ns = Some(20_000_000);
        tally.delay.recorded_ns = 20_000_000;
        tally.recording_ns = 60_000_000;
        waited(&mut tally, [(Pipe, 100_000_000, 3000), (Sleep, 500_000_000, 1000)]);
        samples(&mut tally.mix, 400, rules().whole(Compute), 1e6);
        tally.sampled_ns = 400_000_000.0;
        let ledger = closed(&tally, &costs());
        assert!((ledger.running_ns - 450e6).abs() < 1.0 && (ledger.cpu_ns - 450e6).abs() < 1.0, "{ledger:?}");
        assert_shares(
            &ledger,
            1e-6,
            [
                (RunQueueWait, 0.02),
                // Three of four waits were for the pipe: so much of both is taken from it.
                (Pipe, 0.1 - 0.75 * 0.07),
                (Sleep, 0.5 - 0.25 * 0.07),
            ],
        );
        let recording = row(&ledger, KernelCpu).parts.iter().find(|part| part.name == "recording of events");
        assert!((recording.unwrap().share - 0.05).abs() < 1e-6, "{recording:?}");
    }
}

#[test]
fn what_one_kind_of_wait_cannot_have_held_before_records_the_others_held() {
    let mut tally = ran(false);
    records(&mut tally, 400_000_000);
    tally.recorded.wall = SECOND;
    tally.usage.user_ns = 470_000_000;
    tally.recording_ns = 90_000_000;
    waited(&mut tally, [(Pipe, 10_000_000, 3000), (Sleep, 590_000_000, 1000)]);
    let ledger = closed(&tally, &costs());
    assert!((ledger.running_ns - 470e6).abs() < 1.0 && (ledger.cpu_ns - 470e6).abs() < 1.0, "{ledger:?}");
    assert_shares(&ledger, 1e-6, [(Pipe, 0.0), (Sleep, 0.53)]);
    // The table of threads takes from each what ended it, too.
    let waits = woken::thread_waits(&tally, rules());
    assert!((waits[&rules().whole(Sleep)] - (590e6 - 70e6 / 4.0)).abs() < 1.0, "{waits:?}");
}

#[test]
fn where_records_have_more_than_the_kernel_counts_no_wait_was_recording() {
    let mut tally = ran(true);
    records(&mut tally, 500_000_000);
    tally.recorded.wall = SECOND;
    tally.usage.user_ns = 400_000_000;
    tally.recording_ns = 90_000_000;
    let sleep = rules().whole(Sleep);
    tally.recorded.waits.count(sleep, 500_000_000);
    tally.recorded.wakes.count(sleep, 10);
    tally.recorded.all_waited.count(sleep, 10);
    samples(&mut tally.mix, 400, rules().whole(Compute), 1e6);
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 1e-6, [(Sleep, 0.5), (InterruptsForOthers, 0.1)]);
    assert!((ledger.running_ns - 400e6).abs() < 1.0, "{ledger:?}");
}

#[test]
fn a_function_of_a_quiet_part_that_was_recorded_more_has_its_share_of_the_whole_run() {
    use crate::account::weights::{Kept, Stretches};
    const MS: f64 = 1e6;
    let mut stretches = Stretches::default();
    let slice = |stretches: &mut Stretches, ms: usize, cost: f64, wanted: usize| {
        stretches.begin_slice();
        let mut kept = Kept { running_ns: ms as f64 * MS, sampled_ns: ms as f64 * MS, ..Kept::default() };
        for at in 0..ms {
            let name = if at % 10 < wanted { "wanted" } else { "other" };
            kept.mix.sample(rules().whole(Compute), MS);
            kept.mix.function(Compute, name, "program", MS);
        }
        stretches.recorded(ms as f64 * MS, cost * ms as f64 * MS, kept);
    };
    // A second that waits often, a tenth of it recorded, and half a second that does not.
    for _ in 0..10 {
        stretches.unrecorded(90.0 * MS, 0.2 * 90.0 * MS);
        slice(&mut stretches, 10, 0.2, 1);
    }
    slice(&mut stretches, 500, 0.0, 7);
    let mut tally = scanned(90, StorageWait);
    tally.wall_ns += 600_000_000;
    records(&mut tally, 600_000_000);
    tally.usage.user_ns = 1_500_000_000;
    tally.sees_kernel = true;
    let weighed = stretches.weigh(900.0 * MS, true);
    tally.mix = weighed.mix;
    tally.sampled_ns = weighed.of_ns;
    let found = closed(&tally, &costs());
    let symbols = crate::account::by_place::symbols(&tally.mix, &found.sampled);
    let wanted = &symbols.iter().find(|symbol| symbol.name == "wanted").unwrap().on_cpu;
    // (0.1 * 1000 + 0.7 * 500) / 1500; each sample taken for as much it would be 60 %.
    assert!((wanted.cpu_share - 0.3).abs() < 0.01, "{wanted:?}");
    let wide = (wanted.high - wanted.low) / wanted.share * wanted.cpu_share;
    assert!(wide > 0.1 && wide < 0.25, "600 equal samples have 0.07: {wide}");
}

#[test]
fn what_nothing_like_it_was_recorded_of_is_user_code_as_a_whole_and_counted_in_the_kernel() {
    for sees_kernel in [true, false] {
        // Four seconds of a program that does nothing but compute, half of it in one function, after one that
        // waits all the time, of which nothing was recorded: a tenth of it in user code, the rest in the
        // kernel.
        let mut tally = scanned(100, Sleep);
        tally.wall_ns = 5 * SECOND;
        records(&mut tally, 4 * SECOND);
        tally.sees_kernel = sees_kernel;
        (tally.usage.user_ns, tally.usage.system_ns) = (4_100_000_000, 900_000_000);
        tally.usage.voluntary_switches = 10_000;
        tally.scanned.wakes.count(rules().whole(StorageWait), 10_000);
        for at in 0..4000 {
            let name = if at % 2 == 0 { "wanted" } else { "other" };
            tally.mix.sample(rules().whole(Compute), 1e6);
            tally.mix.function(Compute, name, "program", 1e6);
        }
        tally.sampled_ns = 4e9;
        tally.unlike = crate::account::weights::Unlike { ns: 1e9, of_ns: 5e9, cost: 1e9, of_cost: 1e9 };
        let mut costs = costs();
        costs.switch = Cost { low: 60_000.0, mid: 90_000.0, high: 120_000.0 };
        let found = closed(&tally, &costs);
        assert_shares(&found, 0.01, [(Compute, 0.8), (UserCpu, 0.02), (FileIoCpu, 0.18)]);
        let symbols = crate::account::by_place::symbols(&tally.mix, &found.sampled);
        let wanted = &symbols.iter().find(|symbol| symbol.name == "wanted").unwrap().on_cpu;
        assert!((wanted.share - 0.4).abs() < 0.01, "{wanted:?}");
        assert!(wanted.high > 0.42, "it may have run in the other part: {wanted:?}");
        assert!(symbols.iter().any(|symbol| symbol.name == "[of the program, not recorded]"));
    }
}

#[test]
fn the_accounting_check_fails_when_time_was_counted_twice() {
    let mut tally = scanned(50, Sleep);
    tally.wall_ns = SECOND * 9 / 10;
    let ledger = ledger(&tally, rules(), &costs());
    assert!(!ledger.closure.holds);
}

#[test]
fn what_recording_takes_is_the_kernels_only_where_it_was_recorded() {
    // A tenth of a second was recorded, a fifth of it by the recording itself; user code has all but a tenth
    // of the rest, as ticks say.
    let mut tally = scanned(90, Sleep);
    tally.wall_ns = SECOND;
    (tally.scanned.running, tally.scanned.thread_running) = (800_000_000, 800_000_000);
    tally.scanned.by_runnable = BTreeMap::from([((0, 0), 100_000_000), ((1, 0), 800_000_000)]);
    tally.scanned.wall = 900_000_000;
    records(&mut tally, 100_000_000);
    tally.scanned.waits = crate::Counted::default();
    tally.scanned.waits.count(rules().whole(Sleep), 100_000_000);
    (tally.usage.user_ns, tally.usage.system_ns) = (794_000_000, 106_000_000);
    for _ in 0..72 {
        tally.mix.sample(rules().whole(Compute), 1e6);
    }
    tally.sampled_ns = 1e8;
    let computing = |recording_ns| {
        let mut tally = tally.clone();
        tally.recording_ns = recording_ns;
        share(&closed(&tally, &costs()), Compute)
    };
    let (with, without) = (computing(0), computing(20_000_000));
    assert!((without - 0.9 * 0.88).abs() < 0.02 && with < without - 0.02, "{with} {without}");
}

#[test]
fn a_process_that_was_met_ending_has_that_time_and_nobody_else_has_its_cpu_time() {
    // A second: 0.7 s of user code, 0.1 s of the kernel's work for it, 0.2 s in which scans met it ending.
    let mut tally = scanned(80, StartAndExit);
    (tally.usage.user_ns, tally.usage.system_ns) = (700_000_000, 300_000_000);
    let ledger = closed(&tally, &costs());
    assert_shares(&ledger, 0.04, [(UserCpu, 0.7), (StartAndExit, 0.2), (KernelCpu, 0.1)]);
    assert!((ledger.cpu_ns / ledger.running_ns - 1.0).abs() < 1e-6, "{ledger:?}");
}
