use super::*;

fn frame(function: &str, line: u32) -> Frame {
    Frame { function: Rc::from(function), file: Rc::from("program.py"), line }
}

// Tables as the interpreters make them for:
//
//     def f(x):          # line 1
//         y = x + 1
//
//         while y:
//             y -= 1
//         return y
const OF_3_10: &[u8] = &[8, 1, 4, 2, 8, 1, 4, 255, 4, 2];

#[test]
fn lines_of_3_10_are_found() {
    // The last one is behind the end.
    let lines =
        [(0, Some(2)), (3, Some(2)), (4, Some(4)), (6, Some(5)), (10, Some(4)), (12, Some(6)), (14, None)];
    for (at, line) in lines {
        assert_eq!(LineTable::Pairs.line(OF_3_10, 1, at), line, "{at}");
    }
    assert_eq!(LineTable::Pairs.line(&[2, 0x80, 2, 1], 7, 0), None, "no line");
    assert_eq!(LineTable::Pairs.line(&[2, 0x80, 2, 1], 7, 1), Some(8));
}

/// An entry of the newer table: kind, code units, the bytes after it.
fn entry(kind: u8, units: u8, rest: &[u8]) -> Vec<u8> {
    [&[0x80 | kind << 3 | (units - 1)], rest].concat()
}

#[test]
fn lines_of_3_11_are_found() {
    let table = [
        entry(15, 1, &[]),               // none
        entry(10, 2, &[1, 9]),           // the first line again
        entry(11, 3, &[0, 4]),           // one on
        entry(3, 2, &[0x12]),            // the same, short
        entry(13, 1, &[3]),              // one back
        entry(14, 8, &[64, 1, 0, 2, 5]), // thirty-two on
        entry(12, 1, &[0, 1]),           // two on
    ]
    .concat();
    let line = |at| LineTable::Locations.line(&table, 10, at);
    let lines: Vec<_> = (0..19).map(line).collect();
    assert_eq!(lines[0], None);
    assert_eq!(&lines[1..3], [Some(10); 2]);
    assert_eq!(&lines[3..6], [Some(11); 3]);
    assert_eq!(&lines[6..8], [Some(11); 2]);
    assert_eq!(lines[8], Some(10));
    assert_eq!(&lines[9..17], [Some(42); 8]);
    assert_eq!(lines[17], Some(44));
    assert_eq!(lines[18], None);
}

/// The same function, compiled by Python 3.11 and 3.12.
const OF_3_11: &[u8] = &[
    128, 0, 216, 8, 9, 136, 65, 137, 5, 128, 65, 224, 10, 11, 240, 0, 1, 5, 15, 216, 8, 9, 136, 81, 137, 6,
    136, 1, 240, 3, 0, 11, 12, 240, 0, 1, 5, 15, 224, 11, 12, 128, 72,
];
const OF_3_12: &[u8] = &[
    128, 0, 216, 8, 9, 136, 65, 137, 5, 128, 65, 225, 10, 11, 216, 8, 9, 136, 81, 137, 6, 136, 1, 242, 3, 0,
    11, 12, 224, 11, 12, 128, 72,
];

#[test]
fn tables_of_real_interpreters_are_read_as_they_read_them_themselves() {
    let lines = |table, units: u64| -> Vec<u32> {
        let line = |at| LineTable::Locations.line(table, 1, at);
        let mut lines: Vec<u32> = (0..units).map_while(line).collect();
        assert_eq!(lines.len() as u64, units);
        assert_eq!(line(units), None);
        lines.dedup();
        lines
    };
    assert_eq!(lines(OF_3_11, 17), [1, 2, 4, 5, 4, 6]);
    assert_eq!(lines(OF_3_12, 18), [1, 2, 4, 5, 4, 6]);
    let at = |byte: u64| LineTable::Locations.line(OF_3_11, 1, byte / 2);
    assert_eq!((at(2), at(12), at(20), at(28), at(30)), (Some(2), Some(4), Some(5), Some(4), Some(6)));
}

#[test]
fn damaged_tables_have_no_lines_and_do_no_harm() {
    let mut random = latlab_stats::rng::Rng::new(5);
    for _ in 0..2000 {
        let table: Vec<u8> =
            (0..random.below(40)).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
        for at in [0, 1, 7, 1000] {
            let _ = LineTable::Locations.line(&table, 1, at);
            let _ = LineTable::Pairs.line(&table, 1, at);
        }
    }
}

#[test]
fn shares_sum_to_one_and_callers_have_what_they_call() {
    let mut read = Read { reads: 10, ..Read::default() };
    for at in 0..10 {
        let leaf = if at < 7 { frame("f", 3) } else { frame("g", 6) };
        read.stack(vec![leaf, frame("main", 9)], 1e6, at != 9);
    }
    read.stack(Vec::new(), 10e6, false);
    let reported = read.reported().unwrap();
    let sum = |places: &[PythonPlace]| places.iter().map(|place| place.share).sum::<f64>();
    assert!((sum(&reported.functions) - 1.0).abs() < 1e-9 && (sum(&reported.lines) - 1.0).abs() < 1e-9);
    let f = &reported.functions[0];
    assert_eq!((f.name.as_str(), f.line), ("f", None));
    assert!((f.share - 0.35).abs() < 1e-9 && (f.busy_share - 7.0 / 9.0).abs() < 1e-9);
    assert!(f.low < 0.35 && f.high > 0.35);
    assert_eq!((reported.lines[0].name.as_str(), reported.lines[0].line), ("f", Some(3)));
    assert!((reported.nameless_share - 0.5).abs() < 1e-9);
    assert_eq!(reported.stacks[0].frames, ["main", "f"]);
    assert!(reported.functions.iter().all(|place| place.name != "main"), "it never ran itself");
}

#[test]
fn a_function_that_calls_itself_counts_once() {
    let mut read = Read { reads: 2, ..Read::default() };
    read.stack(vec![frame("f", 3), frame("f", 4), frame("main", 9)], 1e6, true);
    read.stack(vec![frame("main", 9)], 1e6, true);
    let reported = read.reported().unwrap();
    let of = |name: &str| reported.functions.iter().find(|place| place.name == name).unwrap();
    assert!((of("f").within - 0.5).abs() < 1e-9);
    assert!((of("main").within - 1.0).abs() < 1e-9 && (of("main").share - 0.5).abs() < 1e-9);
}

#[test]
fn runs_add_up_and_the_long_tail_is_one_row() {
    let mut all = Read::default();
    for run in 0..2_u32 {
        let mut read = Read { reads: 30, ..Read::default() };
        for at in 0..30 {
            read.stack(vec![frame(&format!("f{at}"), at + 1)], 1e6 * f64::from(60 - at + run), true);
        }
        all.add(&read);
    }
    let reported = all.reported().unwrap();
    assert_eq!(reported.functions.len(), 21);
    assert_eq!(reported.functions[20].name, "[10 more]");
    assert!((reported.functions.iter().map(|place| place.share).sum::<f64>() - 1.0).abs() < 1e-9);
    assert_eq!(reported.reads, 60);
    assert_eq!(Read::default().reported(), None);
}
