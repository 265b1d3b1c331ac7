//! Synthetic recordings with known ledgers.

use super::*;
use crate::account::mappings::{MOST_MAPS, Mapped};
use crate::account::records::FileId;
use crate::account::sweep::Swept;

const MS: u64 = 1_000_000;
const CPU: u64 = 1;
const SWITCH: u64 = 2;
const FAULT: u64 = 3;
/// In a file that is still being read.
const UNREAD: u64 = 0x40;

/// Names of the addresses that the tests use.
#[derive(Default)]
struct Fixed(Mapped);

const KERNEL: [(u64, &str); 8] = [
    (100, "schedule"),
    (101, "io_schedule"),
    (102, "filemap_read"),
    (103, "futex_do_wait"),
    (104, "exc_page_fault"),
    (105, "clear_page_erms"),
    (106, "do_sched_yield"),
    (107, "unheard_of"),
];

impl Names for Fixed {
    fn mapped(&mut self, pid: u32, map: &Map) -> Rc<str> {
        self.0.name(pid, map)
    }

    fn kernel(&mut self, address: u64) -> Rc<str> {
        let known = KERNEL.iter().find(|known| known.0 == address);
        Rc::from(known.map_or("?", |known| known.1))
    }

    fn user(&mut self, file: Option<(&Rc<str>, u64)>, _pid: u32, _address: u64) -> Option<Place> {
        let (object, offset) = file.map_or((Rc::from("?"), 0), |(path, offset)| (Rc::clone(path), offset));
        let function = match offset {
            0x10 => Some("main"),
            0x20 => Some("malloc"),
            0x30 => Some("__memmove_avx"),
            _ => None,
        };
        (offset != UNREAD).then(|| Place { function: function.map(Rc::from), object })
    }
}

struct Recording {
    stream: Stream<'static, Fixed>,
    sweep: Sweep<'static>,
}

impl Recording {
    fn begin() -> Self {
        let rules = Rules::built_in();
        let events = [(CPU, Event::Cpu(MS)), (SWITCH, Event::Switch), (FAULT, Event::Fault)].into();
        let mut recording =
            Self { stream: Stream::of(rules, Fixed::default(), events), sweep: Sweep::begin(rules, 0, 1, 8) };
        recording.sweep.switch_source(0, Source::Recorded);
        recording.at(0, 1, 1, What::Name { exec: true, name: "program".to_owned() });
        let map = What::Map {
            start: 0x1000,
            bytes: 0x1000,
            offset: 0,
            path: "program".to_owned(),
            file: FileId::default(),
        };
        recording.at(0, 1, 1, map);
        recording
    }

    fn at(&mut self, time: u64, pid: u32, tid: u32, what: What) {
        let record = Record { time, pid, tid, what };
        assert!(self.stream.take(&record, &mut self.sweep));
    }

    fn sample(&mut self, time: u64, tid: u32, event: u64, kernel: &[u64], user: &[u64]) {
        let what = What::Sample { event, kernel: kernel.to_vec(), user: user.to_vec() };
        self.at(time, 1, tid, what);
    }

    fn end(self, time: u64) -> (Swept, Stream<'static, Fixed>) {
        (self.sweep.end(time), self.stream)
    }
}

fn share(stream: &Stream<'_, Fixed>, category: Category) -> f64 {
    let of = stream.mix.reasons().filter(|of| Rules::built_in().category(of.0) == category);
    of.map(|(_, weight)| weight.sum).sum::<f64>() / stream.mix.total().sum
}

#[test]
fn samples_are_divided_by_code_and_cause() {
    let mut recording = Recording::begin();
    for at in 0..8 {
        let (kernel, user): (&[u64], &[u64]) = match at {
            0..4 => (&[], &[0x1010]),
            4 => (&[], &[0x1020, 0x1011]),
            5 => (&[], &[0x1030]),
            6 => (&[105, 104], &[0x1020, 0x1011]),
            _ => (&[102], &[0x1010]),
        };
        recording.sample(at * MS, 1, CPU, kernel, user);
    }
    let (_, stream) = recording.end(8 * MS);
    assert!((share(&stream, Category::Compute) - 0.5).abs() < 1e-9);
    for category in [Category::Allocator, Category::MemoryCopy, Category::PageFaults, Category::FileIoCpu] {
        assert!((share(&stream, category) - 0.125).abs() < 1e-9, "{category}");
    }
    let faults =
        stream.mix.reasons().find(|(reason, _)| Rules::built_in().category(*reason) == Category::PageFaults);
    assert_eq!(Rules::built_in().part(faults.unwrap().0), "in the allocator");
    let functions = stream.mix.functions(0.0);
    let main = functions.iter().find(|function| function.0 == Category::Compute);
    assert_eq!(main.unwrap().1, "main");
    assert_eq!(stream.mix.nameless(), Some(0.0));
}

#[test]
fn a_sample_whose_names_are_still_being_read_changes_nothing_and_comes_again() {
    let mut recording = Recording::begin();
    for event in [CPU, FAULT] {
        let what = What::Sample { event, kernel: vec![], user: vec![0x1010, 0x1000 + UNREAD + 1] };
        let record = Record { time: MS, pid: 1, tid: 1, what };
        assert!(!recording.stream.take(&record, &mut recording.sweep));
    }
    let (swept, stream) = recording.end(2 * MS);
    assert_eq!((stream.mix.total().samples, stream.mix.faults().count()), (0, 0));
    assert_eq!(swept.recorded.running, 2 * MS);
}

#[test]
fn a_sample_weighs_its_period_over_the_threads_that_run() {
    let mut recording = Recording::begin();
    recording.at(0, 1, 2, What::Start { parent: 1, by: 1 });
    recording.at(0, 1, 2, What::In);
    recording.sample(MS, 1, CPU, &[], &[0x1010]);
    recording.sample(MS, 2, CPU, &[], &[0x1020]);
    recording.at(MS, 1, 2, What::End);
    recording.sample(2 * MS, 1, CPU, &[], &[0x1010]);
    let (swept, stream) = recording.end(2 * MS);
    assert_eq!(swept.recorded.running, 2 * MS);
    assert!((share(&stream, Category::Allocator) - 0.25).abs() < 1e-9);
}

#[test]
fn a_switch_gets_its_reason_from_the_stack_before_it() {
    let mut recording = Recording::begin();
    recording.sample(MS, 1, SWITCH, &[100, 101, 102], &[]);
    recording.at(MS + 1, 1, 1, What::Out { preempted: false });
    recording.at(3 * MS + 1, 1, 1, What::In);
    recording.sample(4 * MS, 1, SWITCH, &[100], &[]);
    recording.at(4 * MS, 1, 1, What::Out { preempted: true });
    recording.at(5 * MS, 1, 1, What::In);
    recording.sample(6 * MS, 1, SWITCH, &[100, 106], &[]);
    recording.at(6 * MS, 1, 1, What::Out { preempted: false });
    recording.at(7 * MS, 1, 1, What::In);
    recording.sample(8 * MS, 1, SWITCH, &[107], &[]);
    recording.at(8 * MS, 1, 1, What::Out { preempted: false });
    let (swept, stream) = recording.end(10 * MS);
    let rules = Rules::built_in();
    assert_eq!(swept.recorded.waits.of_category(Category::StorageWait, rules), 2 * MS);
    assert_eq!(swept.recorded.ready, 2 * MS, "preempted, and gave up its CPU");
    assert_eq!(swept.recorded.waits.of_category(Category::Unexplained, rules), 2 * MS);
    assert_eq!(swept.recorded.running, 4 * MS);
    assert_eq!(stream.switches, 4);
}

#[test]
fn without_a_stack_the_reason_stays_open() {
    let mut recording = Recording::begin();
    recording.at(MS, 1, 1, What::Out { preempted: false });
    let waiting = recording.stream.waiting.clone();
    assert_eq!(waiting.get(&1), Some(&MS));
    let (swept, _) = recording.end(4 * MS);
    assert_eq!(swept.recorded.unknown, 3 * MS);
}

#[test]
fn a_child_has_its_parents_mappings_until_it_loads_a_program() {
    let mut recording = Recording::begin();
    recording.at(0, 9, 9, What::Start { parent: 1, by: 1 });
    let place = recording.stream.place(9, 0x1010);
    assert_eq!(place.unwrap().function.as_deref(), Some("main"));
    recording.at(1, 9, 9, What::Name { exec: true, name: "other".to_owned() });
    assert_eq!(recording.stream.place(9, 0x1010).unwrap().function, None);
}

#[test]
fn threads_and_maps_without_end_take_no_memory_without_end() {
    let mut recording = Recording::begin();
    for at in 0..200_000_u32 {
        let name = What::Name { exec: false, name: "t".to_owned() };
        recording.at(u64::from(at), 1, at + 10, name);
        if at < 20_000 {
            let map = What::Map {
                start: u64::from(at) * 0x1_0000,
                bytes: 16,
                offset: 0,
                path: "x".to_owned(),
                file: FileId::default(),
            };
            recording.at(u64::from(at), 1, 1, map);
        }
    }
    assert!(recording.stream.threads.len() <= MOST_THREADS);
    assert!(recording.stream.maps.of(1) <= MOST_MAPS);
}

#[test]
fn samples_at_an_instruction_that_touched_a_new_page_are_told_apart() {
    let mut recording = Recording::begin();
    for at in 0..10 {
        recording.sample(at * MS, 1, CPU, if at < 7 { &[105, 104] } else { &[] }, &[0x1010]);
    }
    recording.sample(10 * MS, 1, CPU, &[], &[0x1018]);
    recording.sample(11 * MS, 1, CPU, &[102], &[0x1018]);
    let (_, stream) = recording.end(12 * MS);
    let touching = stream.mix.touching();
    assert!((touching.kernel / MS as f64 - 7.0).abs() < 1e-9);
    assert_eq!(touching.user.len(), 1);
    assert!((touching.user[0].1 / MS as f64 - 3.0).abs() < 1e-9);
    let mut twice = stream.mix.clone();
    twice.add(&stream.mix);
    assert!((twice.touching().kernel / MS as f64 - 14.0).abs() < 1e-9);
}

#[test]
fn sampled_faults_say_who_touched_the_page() {
    let mut recording = Recording::begin();
    for at in 0..4 {
        recording.sample(at, 1, FAULT, &[], if at == 0 { &[0x1010] } else { &[0x1020] });
    }
    let (_, stream) = recording.end(MS);
    assert!((stream.mix.faults().map(|of| of.1).sum::<f64>() - 4.0).abs() < 1e-9);
    let allocates = |reason| Rules::built_in().category(reason) == Category::Allocator;
    let by_allocator = stream.mix.faults().filter(|of| allocates(of.0));
    assert!((by_allocator.map(|of| of.1).sum::<f64>() - 3.0).abs() < 1e-9);
}

#[test]
fn a_wait_that_another_thread_ends_is_counted_for_what_it_was_for() {
    let mut recording = Recording::begin();
    recording.stream.path = Some(Path::of(1));
    recording.stream.resume(0, &[], |_| 0);
    recording.at(0, 1, 1, What::Name { exec: true, name: "reader".to_owned() });
    recording.at(MS, 2, 2, What::Start { parent: 1, by: 1 });
    recording.at(MS, 2, 2, What::In);
    recording.at(MS, 2, 2, What::Name { exec: true, name: "writer".to_owned() });
    recording.sample(2 * MS, 1, SWITCH, &[100, 103], &[]);
    recording.at(2 * MS, 1, 1, What::Out { preempted: false });
    recording.at(8 * MS, 2, 2, What::Wake { thread: 1 });
    recording.at(9 * MS, 1, 1, What::In);
    recording.at(10 * MS, 1, 1, What::End);
    let path = recording.stream.path.take().and_then(|path| path.shown(10 * MS, true, 10 * MS)).unwrap();
    let wait = &path.ended[0];
    assert_eq!((wait.name.as_str(), wait.category, wait.count), ("reader", Category::Locks, 1));
    assert_eq!((wait.by_process, wait.by_name.as_deref()), (Some(2), Some("writer")));
    let longest = &path.steps[0];
    assert_eq!((longest.name.as_str(), longest.doing), ("writer", Some("on-cpu")));
    assert!((longest.share - 0.7).abs() < 1e-9);
}

#[test]
fn a_process_whose_events_are_over_ends_until_its_parent_goes_on() {
    let rules = Rules::built_in();
    let mut recording = Recording::begin();
    recording.at(0, 1, 1, What::Name { exec: true, name: "sh".to_owned() });
    recording.at(0, 9, 9, What::Start { parent: 1, by: 1 });
    recording.at(0, 9, 9, What::In);
    recording.at(MS, 1, 1, What::Out { preempted: false });
    let reason = rules.whole(Category::WaitingForChildren);
    recording.at(2 * MS, 1, 1, What::Learned { since: MS, reason });
    recording.at(10 * MS, 9, 9, What::End);
    recording.at(14 * MS, 1, 1, What::In);
    let (swept, _) = recording.end(15 * MS);
    assert_eq!(swept.recorded.running, 11 * MS);
    let waits = swept.recorded.waits;
    assert_eq!(waits.of(rules.whole(Category::StartAndExit)), 4 * MS);
    assert_eq!(waits.of(reason), 0);
}
