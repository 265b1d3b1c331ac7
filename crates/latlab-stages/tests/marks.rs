//! What is marked is heard: by this process, by its threads and children, faster than it is read, and by lines.
#![cfg(target_os = "linux")]

use std::io::Write as _;

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
    marks(listener)
        .into_iter()
        .filter_map(|mark| spans.take(mark))
        .collect()
}

fn row<'a>(heard: &'a Heard, name: &str) -> &'a StageRow {
    heard
        .stages
        .iter()
        .find(|row| row.name == name)
        .unwrap_or_else(|| panic!("no stage {name}"))
}

#[test]
fn a_stage_has_its_time_its_bytes_and_its_thread() {
    let (mut listener, ring) = listener(64);
    let read = ring.name("read");
    let before = now_ns();
    let begun = ring.begin(read);
    ring.end(read, begun, 4096);
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
fn what_is_written_faster_than_it_is_read_is_lost_and_counted() {
    let (mut listener, ring) = listener(64);
    let name = ring.name("fast");
    for _ in 0..100 {
        let begun = ring.begin(name);
        ring.end(name, begun, 0);
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
        let begun = ring.begin(fast);
        ring.end(fast, begun, 0);
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
                    let begun = ring.begin(name);
                    ring.end(name, begun, 1);
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
        let begun = ring.begin(name);
        ring.end(name, begun, 0);
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
    let begun = ring.begin(name);
    ring.end(name, begun, 0);
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
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(path)
        .expect("the file");
    file.write_all(b"begin sort at=1000\nend sort at=5000 bytes=12\nbegin w")
        .expect("room");
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
