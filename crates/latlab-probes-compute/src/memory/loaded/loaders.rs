//! Threads that keep the memory busy, each on a CPU and a part of memory of its own, parked between runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use latlab_clock::Clock;
use latlab_harness::{Batch, ProbeError, Stamps, pin_this_thread};
use latlab_observe::Observer;
use latlab_record::{Observed, Pages};

use latlab_probes_shared::{Compared, start_thread};

use crate::vector::{self, Field, Kernels, Operation, Pass, Shape, Streams, Tally};

/// Lines of one turn: a page, so that a delay between two turns spreads the load evenly (0.4 us at full speed) and still costs little
/// where there is none.
const TURN_LINES: usize = 64;
const LINE_BYTES: u64 = vector::LINE_BYTES as u64;
/// Traffic of a turn: lines that are written are read before and written back later.
const READ_TURN_BYTES: u64 = TURN_LINES as u64 * LINE_BYTES;
const WRITE_TURN_BYTES: u64 = 2 * READ_TURN_BYTES;
/// A thread that waited longer for its CPU than this share of its run was no steady load.
const LOST_SHARE: f64 = 0.1;
/// Step of the kernel's count of stolen time, ns.
const STEAL_TICK_NS: f64 = 10e6;
/// Starting and parking take microseconds; a thread that does neither in this time is kept from its CPU altogether.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A pattern of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    Read,
    /// Two reading turns, one writing turn: three lines read for one written back.
    ReadMore,
    Write,
}

impl Mix {
    /// With so many percent of the traffic reading.
    pub(super) fn of(read_percent: u32) -> Option<Self> {
        match read_percent {
            100 => Some(Self::Read),
            75 => Some(Self::ReadMore),
            50 => Some(Self::Write),
            _ => None,
        }
    }

    pub(super) fn reads(self) -> bool {
        self != Self::Write
    }

    pub(super) fn writes(self) -> bool {
        self != Self::Read
    }

    /// Reading and writing turns that follow each other.
    fn turns(self) -> (u64, u64) {
        match self {
            Self::Read => (1, 0),
            Self::ReadMore => (2, 1),
            Self::Write => (0, 1),
        }
    }

    const ALL: [Self; 3] = [Self::Read, Self::ReadMore, Self::Write];
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) threads: usize,
    pub(super) mix: Mix,
    pub(super) delay_steps: u32,
}

/// Time on other threads.
#[derive(Clone, Copy)]
pub(super) struct Clocking {
    stamps: Stamps,
    ns_per_tick: f64,
}

impl Clocking {
    pub(super) fn of(clock: &Clock) -> Option<Self> {
        const MANY: u64 = 1 << 40;
        Some(Self { stamps: Stamps::of(clock)?, ns_per_tick: clock.ns(MANY) / MANY as f64 })
    }
}

const PARK: u8 = 0;
const RUN: u8 = 1;
const END: u8 = 2;

/// Read by all threads in every turn and written between runs only, so it stays in their caches.
#[repr(align(128))]
#[derive(Default)]
struct Orders {
    command: AtomicU8,
    threads: AtomicUsize,
    mix: AtomicUsize,
    delay_steps: AtomicU32,
}

/// Of one thread; on lines of its own, because it is written in every turn.
#[repr(align(128))]
#[derive(Default)]
struct Own {
    read_turns: AtomicU64,
    write_turns: AtomicU64,
    /// Set while it works.
    running: AtomicBool,
    /// Whether it waited too long for its CPU in its last run.
    lost_its_cpu: AtomicBool,
}

/// Turns of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    read_turns: u64,
    write_turns: u64,
}

impl Count {
    /// Bytes between caches and memory.
    pub(super) fn traffic_since(&self, earlier: &Self) -> u64 {
        (self.read_turns - earlier.read_turns) * READ_TURN_BYTES
            + (self.write_turns - earlier.write_turns) * WRITE_TURN_BYTES
    }
}

/// What load threads have shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// Of reading turns.
    pub(super) checksums: Compared,
    /// That were written.
    pub(super) words: Compared,
    /// Counters of turns that differ from the place reached in memory.
    pub(super) wrong_counts: u64,
    /// Threads that made no turn.
    pub(super) idle_threads: u64,
    pub(super) isa: &'static str,
}

/// What is looked after from outside.
struct Part {
    read: Stream,
    write: Stream,
}

struct Stream {
    streams: Streams,
    tally: Arc<Tally>,
}

impl Stream {
    fn new(field: &Arc<Field>, operation: Operation, bytes: u64) -> Result<Self, ProbeError> {
        let lines = usize::try_from(bytes / LINE_BYTES).unwrap_or(0) / TURN_LINES * TURN_LINES;
        let shape = Shape { operation, stream_lines: lines, slice_lines: TURN_LINES, source: 0, dest: 0 };
        Ok(Self { streams: Streams::new(field, shape)?, tally: Arc::default() })
    }

    fn pass(&self, kernels: &'static Kernels) -> Result<Pass, ProbeError> {
        Pass::new(self.streams.clone(), kernels, Arc::clone(&self.tally))
    }

    /// Where so many turns from here on end.
    fn after(&self, at: usize, turns: u64) -> usize {
        let slices = (self.streams.shape().stream_lines / TURN_LINES) as u64;
        let nth = (at / TURN_LINES) as u64;
        usize::try_from((nth + turns % slices) % slices).unwrap_or(0) * TURN_LINES
    }
}

struct Loader {
    own: Arc<Own>,
    part: Part,
    thread: Option<JoinHandle<()>>,
    /// Before the current run: turns, places, checksums.
    before: Option<Before>,
}

struct Before {
    count: Count,
    read_at: usize,
    write_at: usize,
    checksums: (u64, u64),
}

impl Loader {
    fn count(&self) -> Count {
        Count {
            read_turns: self.own.read_turns.load(Ordering::Acquire),
            write_turns: self.own.write_turns.load(Ordering::Acquire),
        }
    }
}

/// The threads.
pub(super) struct Loaders {
    orders: Arc<Orders>,
    team: Vec<Loader>,
    isa: &'static str,
    running: Option<Run>,
    runs: u64,
    patience: Duration,
}

impl Loaders {
    /// One thread on each of these CPUs, with `bytes` to read and half as much to write each, made on that thread.
    /// When one or its memory is refused, those that were started have ended.
    pub(super) fn start(
        cpus: &[u32],
        bytes: u64,
        seed: u64,
        clocking: Clocking,
        patience: Duration,
    ) -> Result<Self, ProbeError> {
        let kernels = vector::available()[0];
        let orders = Arc::new(Orders::default());
        let mut all = Self {
            orders: Arc::clone(&orders),
            team: Vec::with_capacity(cpus.len()),
            isa: kernels.isa,
            running: None,
            runs: 0,
            patience,
        };
        let mut starting = Starting { orders: Arc::clone(&orders), threads: Vec::new() };
        let mut reports = Vec::new();
        for (nth, cpu) in cpus.iter().copied().enumerate() {
            let (report, made) = channel();
            let own: Arc<Own> = Arc::default();
            let (orders, theirs) = (Arc::clone(&orders), Arc::clone(&own));
            let life = move || {
                pin_this_thread(cpu);
                work(nth, cpu, bytes, seed, kernels, clocking, &orders, &theirs, &report);
            };
            let thread = start_thread(format!("load-{nth}"), format!("starting load thread {nth}"), life)?;
            starting.threads.push(thread);
            reports.push((own, made));
        }
        let mut parts = Vec::new();
        for (own, made) in reports {
            let part = made
                .recv()
                .map_err(|_| ProbeError::Other("a load thread ended unexpectedly".to_owned()))??;
            parts.push((own, part));
        }
        for ((own, part), thread) in parts.into_iter().zip(starting.threads.drain(..)) {
            all.team.push(Loader { own, part, thread: Some(thread), before: None });
        }
        Ok(all)
    }

    pub(super) fn len(&self) -> usize {
        self.team.len()
    }

    /// Lets the first threads run; returns when all of them work.
    pub(super) fn run(&mut self, run: &Run) -> Result<(), ProbeError> {
        self.runs += 1;
        let threads = run.threads.min(self.team.len());
        for loader in &mut self.team[..threads] {
            let Part { read, write } = &loader.part;
            if run.mix.writes() {
                write.streams.spoil(write.tally.at(), TURN_LINES, self.runs);
            }
            loader.before = Some(Before {
                count: loader.count(),
                read_at: read.tally.at(),
                write_at: write.tally.at(),
                checksums: read.tally.checksums(),
            });
        }
        self.orders.threads.store(threads, Ordering::Relaxed);
        self.orders.mix.store(run.mix as usize, Ordering::Relaxed);
        self.orders.delay_steps.store(run.delay_steps, Ordering::Relaxed);
        self.orders.command.store(RUN, Ordering::Release);
        self.running = Some(run.clone());
        for loader in &self.team[..threads] {
            if let Some(thread) = &loader.thread {
                thread.thread().unpark();
            }
        }
        let begun = |loader: &Loader| {
            loader.before.as_ref().is_some_and(|before| {
                loader.own.running.load(Ordering::Acquire) && loader.count().traffic_since(&before.count) > 0
            })
        };
        self.wait_for("begin", |loaders| loaders[..threads].iter().all(begun))
    }

    /// Turns so far.
    pub(super) fn counts(&self) -> Vec<Count> {
        self.team.iter().map(Loader::count).collect()
    }

    /// Parks all threads, and looks at what they did since they were started. Whether every thread had its CPU to itself.
    pub(super) fn park(&mut self, shown: &mut Shown) -> Result<bool, ProbeError> {
        self.orders.command.store(PARK, Ordering::Release);
        self.wait_for("stop", |loaders| {
            loaders.iter().all(|loader| !loader.own.running.load(Ordering::Acquire))
        })?;
        shown.isa = self.isa;
        let mut kept_their_cpus = true;
        let Some(run) = self.running.take() else {
            return Ok(kept_their_cpus);
        };
        for loader in &mut self.team {
            let Some(before) = loader.before.take() else {
                continue;
            };
            kept_their_cpus &= !loader.own.lost_its_cpu.load(Ordering::Acquire);
            let count = loader.count();
            let Part { read, write } = &loader.part;
            let checksums = read.tally.checksums();
            shown.checksums.add(checksums.0 - before.checksums.0, checksums.1 - before.checksums.1);
            let turns =
                (count.read_turns - before.count.read_turns, count.write_turns - before.count.write_turns);
            shown.idle_threads += u64::from(turns == (0, 0));
            shown.wrong_counts += u64::from(read.after(before.read_at, turns.0) != read.tally.at());
            shown.wrong_counts += u64::from(write.after(before.write_at, turns.1) != write.tally.at());
            if run.mix.writes() {
                let wrong = write.streams.wrong_words(before.write_at, TURN_LINES);
                shown.words.add(write.streams.shape().slice_words(), wrong);
            }
        }
        Ok(kept_their_cpus)
    }

    fn wait_for(&self, what: &str, done: impl Fn(&[Loader]) -> bool) -> Result<(), ProbeError> {
        let begun = Instant::now();
        while !done(&self.team) {
            let gone =
                self.team.iter().any(|loader| loader.thread.as_ref().is_none_or(JoinHandle::is_finished));
            if gone {
                return Err(ProbeError::Other("a load thread ended unexpectedly".to_owned()));
            }
            if begun.elapsed() > self.patience {
                return Err(ProbeError::Other(format!(
                    "a load thread did not {what} within {} s: its CPU is taken by others",
                    self.patience.as_secs()
                )));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Loaders {
    fn drop(&mut self) {
        let threads = self.team.iter_mut().filter_map(|loader| loader.thread.take());
        end(&self.orders, threads);
    }
}

/// Threads that may not all come up.
struct Starting {
    orders: Arc<Orders>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            end(&self.orders, self.threads.drain(..));
        }
    }
}

/// Ends these threads: each looks at its orders after every turn.
fn end(orders: &Orders, threads: impl Iterator<Item = JoinHandle<()>>) {
    orders.command.store(END, Ordering::Release);
    for thread in threads {
        thread.thread().unpark();
        // One that panicked has failed its block already.
        let _ = thread.join();
    }
}

/// A load thread's life.
#[expect(clippy::too_many_arguments, reason = "the one call is a few lines above")]
fn work(
    nth: usize,
    cpu: u32,
    bytes: u64,
    seed: u64,
    kernels: &'static Kernels,
    clocking: Clocking,
    orders: &Orders,
    own: &Own,
    report: &Sender<Result<Part, ProbeError>>,
) {
    let made = make(nth, bytes, seed, kernels);
    let (mut read, mut write) = match made {
        Ok((part, read, write)) => {
            if report.send(Ok(part)).is_err() {
                return;
            }
            (read, write)
        }
        Err(reason) => {
            let _ = report.send(Err(reason));
            return;
        }
    };
    let observer = Observer::of_this_thread(Some(cpu));
    let mut sink = 0u64;
    loop {
        match orders.command.load(Ordering::Acquire) {
            END => break,
            RUN if nth < orders.threads.load(Ordering::Relaxed) => {
                let before = observer.read();
                let begun = clocking.stamps.begin();
                own.running.store(true, Ordering::Release);
                sink ^= turns(orders, own, &mut read, &mut write);
                let took_ns = clocking.stamps.end().saturating_sub(begun) as f64 * clocking.ns_per_tick;
                let lost = lost(&observer.read().since(&before), took_ns);
                own.lost_its_cpu.store(lost, Ordering::Release);
                own.running.store(false, Ordering::Release);
            }
            _ => std::thread::park(),
        }
    }
    std::hint::black_box(sink);
}

fn make(
    nth: usize,
    bytes: u64,
    seed: u64,
    kernels: &'static Kernels,
) -> Result<(Part, Pass, Pass), ProbeError> {
    let field = Arc::new(Field::new(bytes, Pages::Base, &[], seed ^ nth as u64)?);
    let read = Stream::new(&field, Operation::Read, bytes)?;
    let write = Stream::new(&field, Operation::Write, bytes / 2)?;
    let passes = (read.pass(kernels)?, write.pass(kernels)?);
    Ok((Part { read, write }, passes.0, passes.1))
}

/// Turns until other orders come.
fn turns(orders: &Orders, own: &Own, read: &mut Pass, write: &mut Pass) -> u64 {
    let mix = Mix::ALL[orders.mix.load(Ordering::Relaxed) % Mix::ALL.len()];
    let delay_steps = orders.delay_steps.load(Ordering::Relaxed);
    let (reading, writing) = mix.turns();
    let mut sink = 1;
    while orders.command.load(Ordering::Relaxed) == RUN {
        for _ in 0..reading {
            sink ^= read.run(1);
            count(&own.read_turns);
            sink = delay(delay_steps, sink);
        }
        for _ in 0..writing {
            sink ^= write.run(1);
            count(&own.write_turns);
            sink = delay(delay_steps, sink);
        }
    }
    sink
}

/// One more; written by one thread only, so without a locked instruction, which would wait for every access under way.
#[inline]
fn count(turns: &AtomicU64) {
    turns.store(turns.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// Multiplications that wait for each other: no memory, no pause instruction (40 to 140 cycles, by CPU).
#[inline(never)]
fn delay(steps: u32, mut value: u64) -> u64 {
    for _ in 0..steps {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    value
}

/// Whether a thread was kept from its CPU in a run. Where the system does not say, its progress alone is looked at.
fn lost(observed: &Observed, took_ns: f64) -> bool {
    let waited = observed.run_queue_delay_ns.unwrap_or(0) + observed.throttled_ns.unwrap_or(0);
    let stolen = observed.steal_ns.unwrap_or(0) as f64;
    waited as f64 > LOST_SHARE * took_ns || stolen > LOST_SHARE * took_ns.max(2.0 * STEAL_TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 2 << 20;

    fn started() -> Loaders {
        let clocking = Clocking::of(&Clock::open()).expect("a real clock");
        Loaders::start(&[0, 0], BYTES, 3, clocking, 20 * PATIENCE).expect("two threads start")
    }

    fn parked(loaders: &mut Loaders) -> Shown {
        let mut shown = Shown::default();
        loaders.park(&mut shown).expect("they stop");
        shown
    }

    fn run(mix: Mix) -> Run {
        Run { threads: 2, mix, delay_steps: 10 }
    }

    #[test]
    fn threads_work_when_told_prove_it_and_are_parked_again() {
        let mut loaders = started();
        for mix in Mix::ALL {
            loaders.run(&run(mix)).expect("they begin");
            let ended = parked(&mut loaders);
            assert_eq!((ended.idle_threads, ended.wrong_counts), (0, 0), "{mix:?}");
            assert_eq!(ended.checksums.all > 0, mix.reads(), "{mix:?}");
            assert_eq!(ended.words.all > 0, mix.writes(), "{mix:?}");
            assert_eq!((ended.checksums.wrong, ended.words.wrong), (0, 0), "{mix:?}");
            let parked: Vec<u64> = loaders.counts().iter().map(|count| count.read_turns).collect();
            std::thread::sleep(Duration::from_millis(2));
            let later: Vec<u64> = loaders.counts().iter().map(|count| count.read_turns).collect();
            assert_eq!(parked, later, "{mix:?}");
        }
    }

    #[test]
    fn threads_that_are_not_wanted_stay_parked() {
        let mut loaders = started();
        let one = Run { threads: 1, ..run(Mix::Read) };
        let before = loaders.counts();
        loaders.run(&one).expect("it begins");
        parked(&mut loaders);
        let after = loaders.counts();
        assert!(after[0].traffic_since(&before[0]) > 0);
        assert_eq!(after[1].traffic_since(&before[1]), 0);
    }

    #[test]
    fn a_load_that_reads_something_else_is_noticed() {
        let mut loaders = started();
        let word = loaders.team[1].part.read.streams.source(0, 0).cast_mut();
        // SAFETY: a byte of the field, whose thread is parked.
        unsafe { word.write(word.read() ^ 1) };
        loaders.run(&run(Mix::Read)).expect("they begin");
        assert!(parked(&mut loaders).checksums.wrong > 0);
    }

    #[test]
    fn a_load_that_does_not_write_is_noticed() {
        let mut loaders = started();
        loaders.run(&run(Mix::Read)).expect("they begin");
        let write = &loaders.team[0].part.write;
        write.streams.spoil(write.tally.at(), TURN_LINES, 1);
        loaders.running = Some(run(Mix::Write));
        assert!(parked(&mut loaders).words.wrong > 0);
    }

    #[test]
    fn a_turn_that_was_counted_and_not_made_is_noticed() {
        let mut loaders = started();
        loaders.run(&run(Mix::Read)).expect("they begin");
        loaders.orders.command.store(PARK, Ordering::Release);
        loaders
            .wait_for("stop", |all| all.iter().all(|loader| !loader.own.running.load(Ordering::Acquire)))
            .expect("they stop");
        count(&loaders.team[0].own.read_turns);
        assert_eq!(parked(&mut loaders).wrong_counts, 1);
    }

    #[test]
    fn no_thread_outlives_its_owner_even_in_the_middle_of_a_run() {
        let mut loaders = started();
        let orders = Arc::clone(&loaders.orders);
        loaders.run(&run(Mix::ReadMore)).expect("they begin");
        drop(loaders);
        assert_eq!(Arc::strong_count(&orders), 1);
    }

    #[test]
    fn memory_that_is_refused_is_a_reason_and_no_thread_stays() {
        let clocking = Clocking::of(&Clock::open()).expect("a real clock");
        let error = Loaders::start(&[0, 0], 1 << 60, 3, clocking, 20 * PATIENCE)
            .err()
            .expect("nobody has an exbibyte");
        assert!(error.to_string().contains("MiB"), "{error}");
    }

    #[test]
    fn a_thread_that_waited_for_its_cpu_was_no_steady_load() {
        let waited = |ns| Observed { run_queue_delay_ns: Some(ns), ..Observed::default() };
        assert!(!lost(&waited(50_000), 1e6));
        assert!(lost(&waited(150_000), 1e6));
        assert!(!lost(&Observed::default(), 1e6), "not known");
    }

    #[test]
    fn a_mix_is_the_share_of_traffic_that_its_name_says() {
        for (percent, mix) in [(100, Mix::Read), (75, Mix::ReadMore), (50, Mix::Write)] {
            assert_eq!(Mix::of(percent), Some(mix));
            let (reading, writing) = mix.turns();
            let (read, written) = (reading + writing, writing);
            assert_eq!(100 * read / (read + written), u64::from(percent));
        }
        assert_eq!(Mix::of(60), None);
    }
}
