use super::*;

const READ: Access = Access { read: true, write: false };

fn file(number: u32, target: &str, position: u64) -> Descriptor {
    Descriptor {
        number,
        target: target.to_owned(),
        kind: Kind::of(target),
        position: (Kind::of(target) == Kind::File).then_some(position),
        place: None,
        is_shared: false,
        access: READ,
    }
}

fn scan(at: u64, read: (u64, u64), descriptors: Vec<Descriptor>) -> Scan {
    let io = Io { read_chars: read.0, read_calls: read.1, ..Io::default() };
    Scan { at, process: 1, io: Some((io, io)), descriptors, waits: vec![], inherits: at == 0 }
}

/// A process that holds these when it begins to be watched.
fn begun(held: Vec<Descriptor>) -> Files {
    let mut files = Files::default();
    files.take(&scan(0, (0, 0), held));
    files
}

fn shown(files: &Files, read: u64) -> model::Files {
    let io = Io { read_chars: read, ..Io::default() };
    files.shown(0, Some(&io), false, |_| "program".to_owned())
}

fn read_bytes(files: &model::Files) -> u64 {
    crate::time::whole_ns(files.rows[0].read.unwrap().bytes)
}

#[test]
fn a_position_that_moves_is_bytes_with_their_calls_and_time() {
    let mut files = begun(vec![]);
    files.take(&scan(10, (1 << 20, 16), vec![file(3, "/data", 1 << 20)]));
    files.take(&scan(30, (3 << 20, 48), vec![file(3, "/data", 3 << 20)]));
    let shown = shown(&files, 3 << 20);
    let row = &shown.rows[0];
    let read = row.read.as_ref().unwrap();
    assert_eq!((row.name.as_str(), row.descriptors.as_slice()), ("/data", [3].as_slice()));
    assert_eq!((read.bytes, read.block_bytes), (f64::from(3 << 20), Some(65_536.0)));
    assert!((read.busy_s - 30e-9).abs() < 1e-15);
    assert_eq!((shown.read_share, row.seeks), (Some(1.0), 0));
}

#[test]
fn what_the_counters_do_not_know_of_was_a_seek() {
    let mut files = begun(vec![]);
    files.take(&scan(10, (4096, 1), vec![file(3, "/data", 1 << 30)]));
    let shown = shown(&files, 4096);
    assert_eq!((read_bytes(&shown), shown.rows[0].seeks), (4096, 1));
}

#[test]
fn seeks_farther_than_numbers_go_take_nothing_from_others() {
    let far = |number, position| file(number, &format!("/far{number}"), position);
    let mut files = begun(vec![far(3, 0), far(4, 0), file(5, "/a", 0)]);
    files.take(&scan(10, (8192, 2), vec![far(3, u64::MAX), far(4, u64::MAX), file(5, "/a", 8192)]));
    let shown = shown(&files, 8192);
    assert_eq!(shown.rows[0].name, "/a");
    assert_eq!(read_bytes(&shown), 8192);
}

/// A connection that has received so much.
fn connection(received_bytes: u64) -> tcp::Socket {
    tcp::Socket {
        here: ([127, 0, 0, 1], 80).into(),
        there: Some(([127, 0, 0, 1], 4711).into()),
        counters: tcp::Counters { received_bytes, sent_again: 2, ..tcp::Counters::default() },
        segment_bytes: 1448,
        round_trip_us: 45,
    }
}

#[test]
fn what_a_socket_carried_is_what_tcp_counts_of_it() {
    let mut files = begun(vec![file(3, "socket:[77]", 0)]);
    files.sockets(&[(77, connection(1_000)), (78, connection(5))]);
    // It was inherited, and another process has it too: that counts once.
    let other = Scan { process: 2, inherits: false, ..scan(10, (0, 0), vec![file(4, "socket:[77]", 0)]) };
    files.take(&scan(10, (900, 3), vec![file(3, "socket:[77]", 0), file(5, "socket:[99]", 0)]));
    files.take(&other);
    files.sockets(&[(77, connection(4_000))]);
    let found = shown(&files, 900);
    assert_eq!(found.rows[0].name, "tcp 127.0.0.1:80 to 127.0.0.1:4711");
    assert_eq!(read_bytes(&found), 3_000);
    assert_eq!((found.rows[0].round_trip_s, found.rows[0].sent_again), (Some(45e-6), Some(0)));
    assert!(found.rows[1..].iter().all(|row| row.read.is_none()), "{:?}", found.rows);
    assert_eq!(files.traffic().bytes, 3_000);
}

#[test]
fn where_a_descriptor_stood_before_is_not_the_programs() {
    let mut files = begun(vec![file(0, "/input", 5_000_000)]);
    files.take(&scan(10, (10_000, 2), vec![file(0, "/input", 5_010_000)]));
    assert_eq!(read_bytes(&shown(&files, 10_000)), 10_000);
}

#[test]
fn a_file_that_is_sought_in_takes_nothing_from_others() {
    let mut files = begun(vec![]);
    let both = vec![file(3, "/sought", 1 << 30), file(4, "/data", 100_000)];
    files.take(&scan(10, (104_096, 30), both));
    let shown = shown(&files, 104_096);
    assert_eq!((shown.rows[0].name.as_str(), read_bytes(&shown)), ("/data", 100_000));
    assert_eq!((shown.rows[1].seeks, shown.rows[0].seeks), (1, 0));
}

#[test]
fn bytes_without_a_position_go_to_the_one_descriptor_that_a_thread_was_seen_waiting_in() {
    let mut files = Files::default();
    let both = || vec![file(0, "pipe:[7]", 0), file(3, "/data", 0)];
    files.take(&scan(0, (0, 0), both()));
    // Nobody waited: it may have been any file, of which nothing is left to see.
    files.take(&scan(10, (1 << 16, 16), both()));
    assert_eq!(shown(&files, 1 << 16).read_share, Some(0.0));
    let mut waiting = scan(20, (2 << 16, 32), both());
    waiting.waits = vec![(3, false)];
    files.take(&waiting);
    files.take(&scan(30, (3 << 16, 48), both()));
    let one = shown(&files, 4 << 16);
    let read = one.rows[0].read.unwrap();
    assert_eq!((one.rows[0].name.as_str(), read_bytes(&one)), ("/data", 2 << 16));
    assert!((read.inferred - read.bytes).abs() < 1.0);
    let mut waiting = scan(40, (1 << 20, 64), both());
    waiting.waits = vec![(0, false)];
    files.take(&waiting);
    assert_eq!(read_bytes(&shown(&files, 1 << 20)), 2 << 16, "either of two");
}

#[test]
fn each_process_has_its_counters() {
    let mut files = Files::default();
    files.take(&scan(0, (1000, 1), vec![]));
    files.take(&scan(10, (2000, 2), vec![]));
    let mut child = scan(20, (100_000, 25), vec![file(3, "/data", 50_500)]);
    child.process = 2;
    child.inherits = false;
    files.take(&child);
    let mut counters: Vec<_> =
        files.counters().map(|(process, began, last)| (process, began.read_chars, last.read_chars)).collect();
    counters.sort_unstable();
    assert_eq!(counters, [(1, 1000, 2000), (2, 0, 100_000)]);
    assert_eq!(shown(&files, 101_000).read_share, Some(0.5));
    assert_eq!(files.of_regular_files(), 50_500);
}

fn shared(number: u32, position: u64) -> Descriptor {
    Descriptor { place: Some(7), is_shared: true, ..file(number, "/data", position) }
}

#[test]
fn a_position_that_two_descriptors_share_moves_once() {
    let mut files = begun(vec![]);
    // As much was read from elsewhere: the counters allow for both.
    files.take(&scan(10, (200_000, 20), vec![shared(3, 100_000), shared(4, 100_000)]));
    files.take(&scan(20, (400_000, 40), vec![shared(3, 200_000), shared(4, 200_000)]));
    let shown = shown(&files, 400_000);
    assert_eq!((read_bytes(&shown), shown.rows[0].seeks), (200_000, 0));
}

#[test]
fn processes_that_share_a_position_divide_what_it_has_moved_by_their_counters() {
    let mut files = begun(vec![shared(0, 0)]);
    let of = |process: u32, at: u64, read: u64, position: u64| Scan {
        process,
        inherits: false,
        ..scan(at, (read, read / 1000), vec![shared(0, position)])
    };
    // The first one has read from a pipe, too.
    files.take(&of(1, 10, 90_000, 100_000));
    files.take(&of(2, 10, 60_000, 100_000));
    let shown = shown(&files, 150_000);
    let of: Vec<_> = shown.rows.iter().map(|row| (row.process, row.read.unwrap().bytes, row.seeks)).collect();
    assert_eq!(of, [(1, 90_000.0, 0), (2, 10_000.0, 0)]);
}

#[test]
fn a_process_that_reads_nothing_leaves_a_shared_position_to_those_that_do() {
    let mut files = begun(vec![shared(0, 0)]);
    files.take(&scan(10, (0, 0), vec![shared(0, 100_000)]));
    let mut child = scan(20, (100_000, 10), vec![shared(0, 100_000)]);
    child.process = 2;
    files.take(&child);
    let shown = shown(&files, 100_000);
    assert_eq!((shown.rows[0].process, read_bytes(&shown)), (2, 100_000));
}

#[test]
fn a_file_that_is_left_out_is_left_out_once_however_often_it_is_looked_at() {
    let mut files = begun(vec![]);
    let many: Vec<Descriptor> =
        (0..3000).map(|number| file(number, &format!("/file{number}"), 8192)).collect();
    for at in 1..=5 {
        files.take(&scan(at, (3000 * 8192, 3000), many.clone()));
    }
    let shown = shown(&files, 3000 * 8192);
    assert_eq!(shown.rows.len() as u64 + shown.left_out, 3000);
}

#[test]
fn files_beyond_those_that_are_kept_are_counted() {
    let mut files = begun(vec![]);
    for number in 0..3000_u32 {
        let read = u64::from(number + 1) * 8192;
        let name = format!("/file{number}");
        files.take(&scan(u64::from(number) + 1, (read, 1), vec![file(3, &name, 8192)]));
    }
    let shown = shown(&files, 3000 * 8192);
    assert_eq!(shown.rows.len(), MOST_SHOWN);
    assert_eq!(shown.left_out, 3000 - MOST_SHOWN as u64);
}
