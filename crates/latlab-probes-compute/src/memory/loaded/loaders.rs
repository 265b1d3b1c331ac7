//! Threads that keep the memory busy, each on a CPU and a part of memory of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use latlab_harness::pin_this_thread;
use latlab_observe::Observer;
use latlab_probes_shared::prelude::*;
use latlab_record::Observed;

use latlab_probes_shared::start_thread;
use latlab_probes_shared::walk::mmix;

use crate::vector::{self, Field, Kernels, Operation, Pass, Shape, Streams, Tally};

/// Lines of one turn: a page, so that a delay between two turns spreads the load evenly (0.4 us at full
/// speed) and still costs little where there is none.
const TURN_LINES: usize = 64;
const LINE_BYTES: u64 = vector::LINE_BYTES as u64;
/// Traffic of a turn: lines that are written are read before and written back later.
const READ_TURN_BYTES: u64 = TURN_LINES as u64 * LINE_BYTES;
const WRITE_TURN_BYTES: u64 = 2 * READ_TURN_BYTES;
/// A thread that waited longer for its CPU than this share of its run was no steady load.
const LOST_SHARE: f64 = 0.1;
/// Step of the kernel's count of stolen time, ns.
const STEAL_TICK_NS: f64 = 10e6;
/// Beginning and stopping take microseconds; a thread that does neither in this time is kept from its CPU
/// altogether.
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
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) threads: usize,
    pub(super) mix: Mix,
    pub(super) delay_steps: u32,
}

/// Whether a run is over. Every thread looks at it in each turn, so it stays in their caches.
#[repr(align(128))]
#[derive(Default)]
struct Over(AtomicBool);

/// Turns of one thread; on lines of their own, because one is written in every turn.
#[repr(align(128))]
#[derive(Default)]
struct Turns {
    read: AtomicU64,
    write: AtomicU64,
}

impl Turns {
    fn count(&self) -> Count {
        Count { read: self.read.load(Ordering::Acquire), write: self.write.load(Ordering::Acquire) }
    }
}

/// How many there were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count {
    read: u64,
    write: u64,
}

impl Count {
    /// Bytes between caches and memory.
    pub(super) fn traffic_since(&self, earlier: &Self) -> u64 {
        (self.read - earlier.read) * READ_TURN_BYTES + (self.write - earlier.write) * WRITE_TURN_BYTES
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

/// What is inspected from outside.
struct Stream {
    streams: Streams,
    tally: Arc<Tally>,
}

impl Stream {
    fn new(field: &Arc<Field>, operation: Operation, bytes: u64) -> Result<Self> {
        let lines = usize::try_from(bytes / LINE_BYTES).unwrap_or(0) / TURN_LINES * TURN_LINES;
        let shape = Shape { operation, stream_lines: lines, slice_lines: TURN_LINES, source: 0, dest: 0 };
        Ok(Self { streams: Streams::new(field, shape)?, tally: Arc::default() })
    }

    fn pass(&self, kernels: &'static Kernels) -> Result<Pass> {
        Pass::new(self.streams.clone(), kernels, Arc::clone(&self.tally))
    }

    /// Where so many turns from here on end.
    fn after(&self, at: usize, turns: u64) -> usize {
        let slices = (self.streams.shape().stream_lines / TURN_LINES) as u64;
        let nth = (at / TURN_LINES) as u64;
        usize::try_from((nth + turns % slices) % slices).unwrap_or(0) * TURN_LINES
    }
}

/// The memory of one thread, and the thread while it runs.
struct Loader {
    cpu: u32,
    turns: Arc<Turns>,
    read: Stream,
    write: Stream,
    kernels: &'static Kernels,
    /// For reading and for writing; the thread has them while it runs.
    passes: Option<[Pass; 2]>,
    running: Option<Running>,
}

struct Running {
    mix: Mix,
    /// When it began: turns, places, checksums.
    count: Count,
    read_at: usize,
    write_at: usize,
    checksums: (u64, u64),
    /// Returns the passes, and whether it waited too long for its CPU.
    thread: JoinHandle<([Pass; 2], bool)>,
}

fn gone() -> ProbeError {
    ProbeError::Other("a load thread ended unexpectedly".to_owned())
}

impl Loader {
    /// Memory near this CPU: `bytes` to read and half as much to write.
    fn new(cpu: u32, bytes: u64, seed: u64, kernels: &'static Kernels) -> Result<Self> {
        pin_this_thread(cpu);
        let field = Arc::new(Field::new(bytes, Pages::Base, &[], seed)?);
        let read = Stream::new(&field, Operation::Read, bytes)?;
        let write = Stream::new(&field, Operation::Write, bytes / 2)?;
        let passes = Some([read.pass(kernels)?, write.pass(kernels)?]);
        Ok(Self { cpu, turns: Arc::default(), read, write, kernels, passes, running: None })
    }

    fn start(&mut self, run: Run, nth_run: u64, over: &Arc<Over>) -> Result<()> {
        if run.mix.writes() {
            self.write.streams.spoil(self.write.tally.at(), TURN_LINES, nth_run);
        }
        // A thread that could not be started has taken them along.
        let mut passes = match self.passes.take() {
            Some(passes) => passes,
            None => [self.read.pass(self.kernels)?, self.write.pass(self.kernels)?],
        };
        let (cpu, turns, over) = (self.cpu, Arc::clone(&self.turns), Arc::clone(over));
        let work = move || {
            pin_this_thread(cpu);
            let observer = Observer::of_this_thread(Some(cpu));
            let (before, begun) = (observer.read(), Instant::now());
            std::hint::black_box(work(run, &over, &turns, &mut passes));
            let took_ns = begun.elapsed().as_secs_f64() * 1e9;
            (passes, lost(&observer.read().since(&before), took_ns))
        };
        self.running = Some(Running {
            mix: run.mix,
            count: self.turns.count(),
            read_at: self.read.tally.at(),
            write_at: self.write.tally.at(),
            checksums: self.read.tally.checksums(),
            thread: start_thread(
                format!("load-{cpu}"),
                format!("starting a load thread on CPU {cpu}"),
                work,
            )?,
        });
        Ok(())
    }

    /// Puts away what a run has left that was given up, and whose thread is over by now.
    fn clear(&mut self) -> Result<()> {
        if let Some(running) = self.running.take() {
            self.passes = Some(running.thread.join().map_err(|_| gone())?.0);
        }
        Ok(())
    }

    fn has_begun(&self, running: &Running) -> bool {
        self.turns.count().traffic_since(&running.count) > 0
    }

    /// Inspects what a run has left. Whether its thread had its CPU to itself.
    fn inspect(&mut self, running: Running, shown: &mut Shown) -> Result<bool> {
        let (passes, lost) = running.thread.join().map_err(|_| gone())?;
        self.passes = Some(passes);
        let Self { read, write, .. } = self;
        let (now, checksums) = (self.turns.count(), read.tally.checksums());
        let (reads, writes) = (now.read - running.count.read, now.write - running.count.write);
        shown.checksums.add(checksums.0 - running.checksums.0, checksums.1 - running.checksums.1);
        shown.idle_threads += u64::from(reads + writes == 0);
        shown.wrong_counts += u64::from(read.after(running.read_at, reads) != read.tally.at());
        shown.wrong_counts += u64::from(write.after(running.write_at, writes) != write.tally.at());
        if running.mix.writes() {
            let wrong = write.streams.wrong_words(running.write_at, TURN_LINES);
            shown.words.add(write.streams.shape().slice_words(), wrong);
        }
        Ok(!lost)
    }
}

pub(super) struct Loaders {
    over: Arc<Over>,
    team: Vec<Loader>,
    isa: &'static str,
    runs: u64,
    patience: Duration,
}

impl Loaders {
    /// One for each of these CPUs, with `bytes` to read and half as much to write each, made on that CPU.
    pub(super) fn new(cpus: &[u32], bytes: u64, seed: u64, patience: Duration) -> Result<Self> {
        let kernels = vector::available()[0];
        let team: Result<Vec<Loader>> = std::thread::scope(|scope| {
            let make = |(nth, cpu): (u64, &u32)| {
                let cpu = *cpu;
                let named = std::thread::Builder::new().name(format!("load-{cpu}"));
                named.spawn_scoped(scope, move || Loader::new(cpu, bytes, seed ^ nth, kernels))
            };
            let threads: Vec<_> = (0..).zip(cpus).map(make).collect();
            let refused = |error| refused("starting a load thread", error);
            threads.into_iter().map(|thread| thread.map_err(refused)?.join().map_err(|_| gone())?).collect()
        });
        Ok(Self { over: Arc::default(), team: team?, isa: kernels.isa, runs: 0, patience })
    }

    pub(super) fn len(&self) -> usize {
        self.team.len()
    }

    /// Starts the first threads; returns when all of them work.
    pub(super) fn start(&mut self, run: Run) -> Result<()> {
        self.over.0.store(true, Ordering::Release);
        self.wait_for("stop", |_, running| running.thread.is_finished())?;
        self.team.iter_mut().try_for_each(Loader::clear)?;
        self.runs += 1;
        self.over.0.store(false, Ordering::Release);
        let mut first = self.team.iter_mut().take(run.threads);
        first
            .try_for_each(|loader| loader.start(run, self.runs, &self.over))
            .and_then(|()| {
                self.wait_for("begin", |loader, running| {
                    loader.has_begun(running) || running.thread.is_finished()
                })
            })
            .inspect_err(|_| self.over.0.store(true, Ordering::Release))
    }

    /// Turns so far.
    pub(super) fn counts(&self) -> Vec<Count> {
        self.team.iter().map(|loader| loader.turns.count()).collect()
    }

    /// Ends all threads, and looks at what they did. Whether every one had its CPU to itself.
    pub(super) fn stop(&mut self, shown: &mut Shown) -> Result<bool> {
        self.over.0.store(true, Ordering::Release);
        self.wait_for("stop", |_, running| running.thread.is_finished())?;
        shown.isa = self.isa;
        let mut kept_their_cpus = true;
        for loader in &mut self.team {
            if let Some(running) = loader.running.take() {
                kept_their_cpus &= loader.inspect(running, shown)?;
            }
        }
        Ok(kept_their_cpus)
    }

    fn wait_for(&self, what: &str, done: impl Fn(&Loader, &Running) -> bool) -> Result<()> {
        let begun = Instant::now();
        let is_done = |loader: &Loader| loader.running.as_ref().is_none_or(|running| done(loader, running));
        while !self.team.iter().all(is_done) {
            if begun.elapsed() > self.patience {
                return Err(ProbeError::Other(format!(
                    "a load thread did not {what} within {} s: other programs use its CPU",
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
        self.over.0.store(true, Ordering::Release);
        for running in self.team.iter_mut().filter_map(|loader| loader.running.take()) {
            // One that panicked has failed its block already.
            let _ = running.thread.join();
        }
    }
}

/// Turns until the run is over.
fn work(run: Run, over: &Over, turns: &Turns, [read, write]: &mut [Pass; 2]) -> u64 {
    let (reading, writing) = run.mix.turns();
    let mut sink = 1;
    while !over.0.load(Ordering::Relaxed) {
        for _ in 0..reading {
            sink ^= read.run(1);
            count(&turns.read);
            sink = delay(run.delay_steps, sink);
        }
        for _ in 0..writing {
            sink ^= write.run(1);
            count(&turns.write);
            sink = delay(run.delay_steps, sink);
        }
    }
    sink
}

/// One more; written by one thread only, so without a locked instruction, which would wait for every access
/// under way.
#[inline]
fn count(turns: &AtomicU64) {
    turns.store(turns.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// Multiplications that wait for each other: no memory, no pause instruction (40 to 140 cycles, by CPU).
#[inline(never)]
fn delay(steps: u32, mut value: u64) -> u64 {
    for _ in 0..steps {
        value = mmix(value);
    }
    value
}

/// Whether a thread was kept from its CPU in a run. Where the system does not say, its progress alone is
/// looked at.
fn lost(observed: &Observed, took_ns: f64) -> bool {
    let waited = observed.run_queue_delay_ns.unwrap_or(0) + observed.throttled_ns.unwrap_or(0);
    let stolen = observed.steal_ns.unwrap_or(0) as f64;
    waited as f64 > LOST_SHARE * took_ns || stolen > LOST_SHARE * took_ns.max(2.0 * STEAL_TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXES: [Mix; 3] = [Mix::Read, Mix::ReadMore, Mix::Write];

    fn two() -> Loaders {
        Loaders::new(&[0, 0], 2 << 20, 3, 20 * PATIENCE).expect("4 MiB are there")
    }

    fn started(mix: Mix) -> Loaders {
        let mut loaders = two();
        loaders.start(run(mix)).expect("they begin");
        loaders
    }

    fn stopped(loaders: &mut Loaders) -> Shown {
        let mut shown = Shown::default();
        loaders.stop(&mut shown).expect("they stop");
        shown
    }

    fn run(mix: Mix) -> Run {
        Run { threads: 2, mix, delay_steps: 10 }
    }

    #[test]
    fn threads_work_when_told_prove_it_and_stop() {
        let mut loaders = two();
        for mix in MIXES {
            loaders.start(run(mix)).expect("they begin");
            let ended = stopped(&mut loaders);
            assert_eq!((ended.idle_threads, ended.wrong_counts), (0, 0), "{mix:?}");
            assert_eq!(ended.checksums.all > 0, mix.reads(), "{mix:?}");
            assert_eq!(ended.words.all > 0, mix.writes(), "{mix:?}");
            assert_eq!((ended.checksums.wrong, ended.words.wrong), (0, 0), "{mix:?}");
            let then = loaders.counts();
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(loaders.counts(), then, "{mix:?}");
        }
    }

    #[test]
    fn a_run_that_was_given_up_does_not_hold_up_the_next_one() {
        let mut loaders = started(Mix::Write);
        loaders.start(run(Mix::Write)).expect("they begin again");
        let ended = stopped(&mut loaders);
        assert_eq!((ended.idle_threads, ended.wrong_counts, ended.words.wrong), (0, 0, 0));
        // A thread that could not be started takes its passes along.
        loaders.team[0].passes = None;
        loaders.start(run(Mix::Write)).expect("they begin once more");
        let ended = stopped(&mut loaders);
        assert_eq!((ended.idle_threads, ended.wrong_counts, ended.words.wrong), (0, 0, 0));
    }

    #[test]
    fn threads_that_are_not_wanted_do_nothing() {
        let mut loaders = two();
        let before = loaders.counts();
        loaders.start(Run { threads: 1, ..run(Mix::Read) }).expect("it begins");
        stopped(&mut loaders);
        let after = loaders.counts();
        assert!(after[0].traffic_since(&before[0]) > 0);
        assert_eq!(after[1].traffic_since(&before[1]), 0);
    }

    #[test]
    fn a_load_that_reads_something_else_is_noticed() {
        let mut loaders = two();
        let word = loaders.team[1].read.streams.source(0, 0).cast_mut();
        // SAFETY: a byte of the field, whose thread has not begun.
        unsafe { word.write(word.read() ^ 1) };
        loaders.start(run(Mix::Read)).expect("they begin");
        assert!(stopped(&mut loaders).checksums.wrong > 0);
    }

    #[test]
    fn a_load_that_does_not_write_is_noticed() {
        let mut loaders = started(Mix::Read);
        let loader = &mut loaders.team[0];
        loader.write.streams.spoil(loader.write.tally.at(), TURN_LINES, 1);
        loader.running.as_mut().expect("it runs").mix = Mix::Write;
        assert!(stopped(&mut loaders).words.wrong > 0);
    }

    #[test]
    fn a_turn_that_was_counted_and_not_made_is_noticed() {
        let mut loaders = started(Mix::Read);
        loaders.over.0.store(true, Ordering::Release);
        loaders.wait_for("stop", |_, running| running.thread.is_finished()).expect("they stop");
        count(&loaders.team[0].turns.read);
        assert_eq!(stopped(&mut loaders).wrong_counts, 1);
    }

    #[test]
    fn no_thread_outlives_its_owner_even_in_the_middle_of_a_run() {
        let loaders = started(Mix::ReadMore);
        let over = Arc::clone(&loaders.over);
        drop(loaders);
        assert_eq!(Arc::strong_count(&over), 1);
    }

    #[test]
    fn memory_that_is_refused_is_a_reason() {
        let error = Loaders::new(&[0, 0], 1 << 60, 3, PATIENCE).err().expect("nobody has an exbibyte");
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
