//! What is marked is heard: by this process, by its threads and children, faster than it is read, and by
//! lines.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use latlab_stages::writer::{Ring, now_ns};
use latlab_stages::{Event, Heard, Listener, Mark, Span, Spans, StageRow};

fn listener(slots: u32) -> (Listener, Ring) {
    let listener = Listener::new(slots).expect("memory");
    // SAFETY: both live to the end of the test, which keeps them in this order.
    let ring = unsafe { listener.ring().writer() }.expect("a header");
    (listener, ring)
}

/// The marks since the last time.
fn marks(listener: &mut Listener) -> Vec<Mark> {
    let mut marks = Vec::new();
    listener.drain(|event| {
        if let Event::Mark(mark) = event {
            marks.push(mark.clone());
        }
    });
    marks
}

/// The spans that ended since the last time.
fn spans(listener: &mut Listener) -> Vec<Span> {
    let mut spans = Spans::default();
    marks(listener).into_iter().filter_map(|mark| spans.take(mark)).collect()
}

fn row<'a>(heard: &'a Heard, name: &str) -> &'a StageRow {
    heard.stages.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no stage {name}"))
}

/// A stage that goes through so many bytes.
fn once(ring: &Ring, name: u32, bytes: u64) {
    let begun = ring.begin(name);
    ring.end(name, begun, bytes);
}

#[test]
fn a_stage_has_its_time_its_bytes_and_its_thread() {
    let (mut listener, ring) = listener(64);
    let read = ring.name("read");
    let before = now_ns();
    once(&ring, read, 4096);
    let after = now_ns();
    let spans = spans(&mut listener);
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*span.name, span.bytes, span.cut), ("read", 4096, false));
    assert_eq!(span.process, std::process::id());
    assert!(span.thread != 0);
    assert!(before <= span.begin_ns && span.begin_ns <= span.end_ns && span.end_ns <= after);
}

#[test]
fn time_in_a_stage_within_another_is_not_the_outer_ones_own() {
    let (mut listener, ring) = listener(64);
    let (outer, inner) = (ring.name("outer"), ring.name("inner"));
    let first = ring.begin(outer);
    let second = ring.begin(inner);
    ring.end(inner, second, 0);
    ring.end(outer, first, 0);
    let spans = spans(&mut listener);
    let heard = listener.heard();
    let (outer, inner) = (row(&heard, "outer"), row(&heard, "inner"));
    assert!((outer.seconds - outer.self_seconds - inner.seconds).abs() < 1e-12);
    assert_eq!(spans.iter().map(|span| span.depth).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn stages_that_were_taken_out_are_in_no_sum_until_they_are_put_back() {
    let (mut listener, ring) = listener(64);
    let run = |listener: &mut Listener, names: &[&str]| {
        for name in names {
            let name = ring.name(name);
            once(&ring, name, 8);
        }
        listener.finish(now_ns(), |_| ());
    };
    run(&mut listener, &["read", "write"]);
    let first = listener.take_table();
    run(&mut listener, &["read", "sum"]);
    let heard = listener.heard();
    assert_eq!((row(&heard, "read").count, heard.stages.len()), (1, 2));
    listener.put_back(&first);
    let heard = listener.heard();
    assert_eq!((row(&heard, "read").count, row(&heard, "read").bytes), (2, Some(16)));
    assert_eq!((row(&heard, "write").count, row(&heard, "sum").count), (1, 1));
}

#[test]
fn what_is_written_faster_than_it_is_read_is_lost_and_counted() {
    let (mut listener, ring) = listener(64);
    let name = ring.name("fast");
    for _ in 0..100 {
        once(&ring, name, 0);
    }
    marks(&mut listener);
    let heard = listener.heard();
    assert_eq!(heard.lost, 200 - 64);
    assert_eq!(row(&heard, "fast").count, 32);
    assert_eq!(heard.unmatched, 0);
}

#[test]
fn what_was_open_before_marks_were_lost_is_not_taken_for_what_comes_after() {
    let (mut listener, ring) = listener(64);
    let (outer, fast) = (ring.name("outer"), ring.name("fast"));
    let begun = ring.begin(outer);
    marks(&mut listener);
    ring.end(outer, begun, 0);
    for _ in 0..64 {
        once(&ring, fast, 0);
    }
    let mut lost = 0;
    listener.drain(|event| lost += u32::from(matches!(event, Event::Lost)));
    let heard = listener.heard();
    assert_eq!((lost, heard.unmatched, heard.stages.len()), (1, 1, 1));
}

#[test]
fn a_program_that_ends_in_a_stage_ends_it_then() {
    let (mut listener, ring) = listener(64);
    let begun = ring.begin(ring.name("last"));
    marks(&mut listener);
    listener.finish(now_ns(), |_| ());
    let heard = listener.heard();
    let last = row(&heard, "last");
    assert_eq!((last.count, last.cut), (1, 1));
    assert!(last.seconds > 0.0 && begun == 1);
}

#[test]
fn threads_that_write_at_once_lose_nothing_while_there_is_room() {
    let (mut listener, ring) = listener(1 << 14);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let ring = &ring;
            scope.spawn(move || {
                for turn in 0..500 {
                    let name = ring.name(["a", "b", "c"][(thread + turn) % 3]);
                    once(ring, name, 1);
                }
            });
        }
    });
    let spans = spans(&mut listener);
    assert_eq!(spans.len(), 2000);
    let heard = listener.heard();
    assert_eq!((heard.lost, heard.unmatched), (0, 0));
    assert_eq!(heard.stages.iter().filter_map(|row| row.bytes).sum::<u64>(), 2000);
}

#[test]
fn more_names_than_there_is_room_for_share_one() {
    let (mut listener, ring) = listener(1 << 10);
    for number in 0..300 {
        let name = ring.name(&format!("stage {number}"));
        once(&ring, name, 0);
    }
    marks(&mut listener);
    let heard = listener.heard();
    assert_eq!(row(&heard, "stage 254").count, 1);
    assert_eq!(row(&heard, "(further names)").count, 45);
}

#[test]
fn a_name_is_cut_between_characters() {
    let (mut listener, ring) = listener(64);
    let name = ring.name(&"é".repeat(40));
    once(&ring, name, 0);
    assert_eq!(*marks(&mut listener)[0].name, *"é".repeat(28));
}

#[test]
fn memory_that_another_program_has_spoilt_is_read_without_harm() {
    let (mut listener, ring) = listener(64);
    let begun = ring.begin(u32::MAX);
    ring.end(7, begun + 1000, u64::MAX);
    listener.finish(0, |_| ());
    let heard = listener.heard();
    assert_eq!(heard.stages.len(), 1);
    assert!(heard.stages[0].max_ns == 0.0 && heard.unmatched == 1);
}

#[test]
fn lines_of_a_file_are_stages_of_the_program_as_a_whole() {
    let (mut listener, _ring) = listener(64);
    let [_, (_, path)] = listener.environment();
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file");
    file.write_all(b"begin sort at=1000\nend sort at=5000 bytes=12\nbegin w").expect("room");
    let sorted = spans(&mut listener);
    assert_eq!(sorted.len(), 1);
    assert_eq!((sorted[0].ns(), sorted[0].bytes, sorted[0].thread), (4000, 12, 0));
    file.write_all(b"rite\nnonsense\nend sort\n").expect("room");
    assert!(spans(&mut listener).is_empty());
    listener.finish(now_ns(), |_| ());
    let heard = listener.heard();
    assert_eq!((row(&heard, "sort").count, row(&heard, "write").cut), (1, 1));
    assert_eq!((heard.refused, heard.unmatched), (1, 1));
    assert!(heard.first_refused.expect("one").contains("nonsense"));
}

/// The file behind the ring or the lines, as a program opens it.
fn file(listener: &Listener, which: usize) -> std::fs::File {
    let path = &listener.environment()[which].1;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).open(path).expect("the file")
}

#[test]
fn a_program_cannot_shorten_or_lengthen_the_ring_under_its_reader() {
    let (mut listener, ring) = listener(64);
    let begun = ring.begin(ring.name("read"));
    let file = file(&listener, 0);
    for length in [0, 4096, 1 << 40] {
        let error = file.set_len(length).expect_err("it is sealed");
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::PERM.raw_os_error()));
    }
    ring.end(ring.name("read"), begun, 0);
    assert_eq!(marks(&mut listener).len(), 2);
}

#[test]
fn a_ring_that_is_overwritten_is_read_on() {
    let (mut listener, ring) = listener(64);
    let memory = file(&listener, 0);
    for cursor in [u64::MAX, 0, 1 << 63, 5] {
        memory.write_all_at(&cursor.to_le_bytes(), 16).expect("room");
        assert!(marks(&mut listener).len() <= 64);
    }
    let begun = ring.begin(ring.name("read"));
    assert_eq!((begun, marks(&mut listener).len()), (6, 1));
    memory.write_all_at(&vec![0xff; 64 + 256 * 64 + 64 * 64], 0).expect("room");
    assert!(marks(&mut listener).len() <= 1, "one has the number that its slot has");
    assert!(listener.heard().lost > 0);
}

#[test]
fn names_are_bounded_whatever_the_ring_says() {
    let (mut listener, ring) = listener(64);
    let memory = file(&listener, 0);
    let mut names = std::collections::HashSet::new();
    for turn in 0..1000_u32 {
        // Numbers that no name has, and names that are written over.
        let _ = ring.begin(if turn % 2 == 0 { 256 + turn } else { turn % 256 });
        let mut entry = [2, 4].map(u32::to_le_bytes).concat();
        entry.extend(turn.to_string().bytes());
        entry.resize(64, 0);
        memory.write_all_at(&entry, 64 + u64::from(turn % 256) * 64).expect("room");
        names.extend(marks(&mut listener).into_iter().map(|mark| mark.name));
    }
    assert!(names.contains("(no name)"), "{names:?}");
    assert!((100..=257).contains(&names.len()), "{}", names.len());
}

#[test]
fn lines_that_were_cut_off_are_forgotten_and_what_comes_then_is_read() {
    let (mut listener, _ring) = listener(64);
    let lines = file(&listener, 1);
    lines.write_all_at(b"begin first\nbegin seco", 0).expect("room");
    assert_eq!(marks(&mut listener).len(), 1);
    lines.set_len(0).expect("not sealed");
    lines.write_all_at(b"end first\n", 0).expect("room");
    let spans = marks(&mut listener);
    assert_eq!((spans.len(), &*spans[0].name), (1, "first"));
    assert_eq!(listener.heard().refused, 0);
}

#[test]
fn of_a_file_of_terabytes_the_end_is_read_and_the_rest_is_counted() {
    let (mut listener, _ring) = listener(64);
    let lines = file(&listener, 1);
    lines.write_all_at(b"begin first\n", 0).expect("room");
    assert_eq!(marks(&mut listener).len(), 1);
    lines.set_len(1 << 40).expect("holes take no memory");
    let mut lost = 0;
    listener.drain(|event| lost += u32::from(matches!(event, Event::Lost)));
    assert_eq!(lost, 1);
    lines.write_all_at(b"\nbegin last\nend last\n", 1 << 40).expect("room");
    listener.finish(now_ns(), |_| ());
    let heard = listener.heard();
    assert_eq!(row(&heard, "last").count, 1);
    assert!(heard.unread_bytes >= (1 << 40) - (32 << 20), "{}", heard.unread_bytes);
    assert_eq!((heard.refused, heard.stages.len()), (1, 1));
}

#[test]
fn lines_with_ever_new_names_share_one_and_none_is_of_the_future() {
    let (mut listener, _ring) = listener(64);
    let lines = file(&listener, 1);
    let text: String = (0..2000)
        .flat_map(|number| [format!("begin n{number}\n"), format!("end n{number} at={}\n", u64::MAX)])
        .collect();
    lines.write_all_at(text.as_bytes(), 0).expect("room");
    listener.finish(now_ns(), |_| ());
    let heard = listener.heard();
    assert_eq!(heard.stages.len(), 257);
    assert_eq!(row(&heard, "(further names)").count, 2000 - 256);
    let longest = heard.stages.iter().map(|row| row.max_ns).fold(0.0, f64::max);
    assert!(longest <= now_ns() as f64, "{longest}");
}

#[test]
fn a_thread_in_ever_more_stages_keeps_those_that_it_began_first() {
    let mut spans = Spans::default();
    let mark =
        |number, of| Mark { number, at_ns: number, of, bytes: 0, process: 1, thread: 1, name: "deep".into() };
    for number in 1..=5000 {
        assert!(spans.take(mark(number, None)).is_none());
    }
    let depth = |spans: &mut Spans, of| spans.take(mark(6000, Some(of))).map(|span| span.depth);
    assert_eq!(depth(&mut spans, 1000), Some(999));
    assert_eq!(depth(&mut spans, 5000), Some(0), "not known");
}
