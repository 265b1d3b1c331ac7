//! What is marked is heard: by this process, by its threads and children, faster than it is read, and by lines.
#![cfg(target_os = "linux")]

use std::io::Write as _;

use latlab_stages::writer::{Ring, now_ns};
use latlab_stages::{Heard, Listener, Span, StageRow};

fn listener(slots: u32) -> (Listener, Ring) {
    let listener = Listener::new(slots).expect("memory");
    // SAFETY: both live to the end of the test, which keeps them in this order.
    let ring = unsafe { listener.ring().writer() }.expect("a header");
    (listener, ring)
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
    let spans = listener.drain();
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((span.name.as_str(), span.bytes, span.cut), ("read", 4096, false));
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
    let spans = listener.drain();
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
    listener.drain();
    let heard = listener.heard();
    assert_eq!(heard.lost, 200 - 64);
    assert_eq!(row(&heard, "fast").count, 32);
}

#[test]
fn a_program_that_ends_in_a_stage_ends_it_then() {
    let (mut listener, ring) = listener(64);
    let begun = ring.begin(ring.name("last"));
    listener.drain();
    let spans = listener.finish(now_ns());
    assert_eq!(spans.len(), 1);
    assert!(spans[0].cut && spans[0].ns() > 0, "{begun}");
    assert_eq!(row(&listener.heard(), "last").cut, 1);
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
    let spans = listener.drain();
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
    listener.drain();
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
    assert_eq!(listener.drain()[0].name, "é".repeat(28));
}

#[test]
fn memory_that_another_program_has_spoilt_is_read_without_harm() {
    let (mut listener, ring) = listener(64);
    let begun = ring.begin(u32::MAX);
    ring.end(7, begun + 1000, u64::MAX);
    let spans: Vec<Span> = listener.finish(0);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].ns(), 0);
    assert_eq!(listener.heard().unmatched, 1);
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
    let spans = listener.drain();
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].ns(), spans[0].bytes, spans[0].thread), (4000, 12, 0));
    file.write_all(b"rite\nnonsense\nend sort\n").expect("room");
    assert!(listener.drain().is_empty());
    let left = listener.finish(now_ns());
    assert_eq!(
        left.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(),
        ["write"]
    );
    let heard = listener.heard();
    assert_eq!((heard.refused, heard.unmatched), (1, 1));
    assert!(heard.first_refused.expect("one").contains("nonsense"));
}
