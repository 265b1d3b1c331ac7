//! What carries out reads and writes: one system call at a time, `io_uring`, or a pool of threads.
//!
//! The engine is part of a figure: one at a time `io_uring` is about 11 % slower than a plain system call,
//! and a pool adds a wake-up to each operation. Containers often forbid `io_uring`; then the pool keeps
//! several operations under way.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use rustix::io::{Errno, pread, pwrite};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{Buffer, StorageError};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file.
    Read,
    /// Into the file.
    Write,
}

/// One transfer of a whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which buffer: below their number, and not under way.
    pub token: u32,
    /// Where in the file, bytes.
    pub offset: u64,
    /// Which way.
    pub direction: Direction,
}

/// The engines of this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind<'cpus> {
    /// One preadv2(2) or pwritev2(2) after the other, done when it was submitted.
    Psync,
    /// `io_uring`.
    Uring,
    /// A pool of threads.
    Threads {
        /// How many, which is how many transfers may be under way.
        count: u32,
        /// Where they run: the thread that asks is usually pinned to one CPU, and its threads would all be
        /// there too. Without any they stay where this thread may run.
        cpus: &'cpus [u32],
    },
}

/// A transfer that was begun. It owns its buffer until it has ended, so that nothing else can reach it.
struct Job {
    transfer: Transfer,
    buffer: Buffer,
}

impl Job {
    fn run(&mut self, file: &OwnedFd) -> Result<usize, Errno> {
        match self.transfer.direction {
            Direction::Read => pread(file, self.buffer.bytes_mut(), self.transfer.offset),
            Direction::Write => pwrite(file, self.buffer.bytes(), self.transfer.offset),
        }
    }

    /// The whole block, or why not.
    fn check(&self, moved: Result<usize, Errno>) -> Result<(), StorageError> {
        let what = match self.transfer.direction {
            Direction::Read => "reading a block",
            Direction::Write => "writing a block",
        };
        let (moved, asked) = (moved.map_err(StorageError::asking(what))?, self.buffer.bytes().len());
        if moved == asked {
            return Ok(());
        }
        Err(StorageError::Refused(format!("{what}: {moved} of {asked} bytes were moved")))
    }
}

/// Gets each job that has ended, and how many bytes it moved.
type Ended<'a> = &'a mut dyn FnMut(Job, Result<usize, Errno>);

trait Driver {
    /// Begins a job. Gives it back where it refuses it.
    fn begin(&mut self, job: Job) -> Result<(), (Option<Job>, StorageError)>;

    fn reap(&mut self, patience: Duration, ended: Ended<'_>) -> Result<(), StorageError>;
}

/// Carries out transfers on a file, each with a buffer of its own.
pub struct Engine {
    name: &'static str,
    driver: Box<dyn Driver>,
    /// Those that are not under way, by token.
    buffers: Vec<Option<Buffer>>,
}

impl Engine {
    /// With so many buffers of `block_bytes` at multiples of `alignment` bytes, at least as many as transfers
    /// will be under way. Errors: [`StorageError::Refused`] when this system or container does not allow it;
    /// what the system says when it gives no more threads.
    pub fn open(
        kind: EngineKind<'_>,
        file: &Arc<OwnedFd>,
        buffers: u32,
        block_bytes: usize,
        alignment: usize,
    ) -> Result<Self, StorageError> {
        let (name, driver): (_, Box<dyn Driver>) = match kind {
            EngineKind::Psync => ("psync", Box::new(Psync { file: Arc::clone(file), ended: Vec::new() })),
            EngineKind::Uring => ("io_uring", Box::new(Uring::open(Arc::clone(file), buffers)?)),
            EngineKind::Threads { count, cpus } => ("threads", Box::new(Threads::start(file, count, cpus)?)),
        };
        let buffers = (0..buffers).map(|_| Some(Buffer::new(block_bytes, alignment))).collect();
        Ok(Self { name, driver, buffers })
    }

    /// `psync`, `io_uring`, `threads`: as in a point.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The buffer of a token that is not under way.
    ///
    /// # Panics
    /// When the token's transfer is under way, or there is no such token.
    pub fn buffer(&mut self, token: u32) -> &mut Buffer {
        let buffer = self.buffers.get_mut(token as usize).and_then(Option::as_mut);
        buffer.expect("the token exists and is not under way")
    }

    /// Begins a transfer. Fails when the system refuses it, the token's last transfer is still under way, or
    /// there is no such token.
    pub fn submit(&mut self, transfer: Transfer) -> Result<(), StorageError> {
        let token = transfer.token as usize;
        let buffer = self.buffers.get_mut(token).and_then(Option::take).ok_or_else(|| {
            StorageError::Refused(format!("transfer {token} is under way, or there is no such buffer"))
        })?;
        self.driver.begin(Job { transfer, buffer }).map_err(|(refused, error)| {
            self.buffers[token] = refused.map(|job| job.buffer);
            error
        })
    }

    /// Waits so long at most for a transfer to end, and calls `done` for each that has ended whole.
    /// Fails when a transfer failed or was cut short.
    pub fn reap(&mut self, patience: Duration, done: &mut dyn FnMut(u32)) -> Result<(), StorageError> {
        let (buffers, mut failed) = (&mut self.buffers, None);
        self.driver.reap(patience, &mut |job, moved| {
            let (token, checked) = (job.transfer.token, job.check(moved));
            buffers[token as usize] = Some(job.buffer);
            match checked {
                Ok(()) => done(token),
                Err(error) => failed = Some(error),
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

struct Psync {
    file: Arc<OwnedFd>,
    ended: Vec<(Job, Result<usize, Errno>)>,
}

impl Driver for Psync {
    fn begin(&mut self, mut job: Job) -> Result<(), (Option<Job>, StorageError)> {
        let moved = job.run(&self.file);
        self.ended.push((job, moved));
        Ok(())
    }

    fn reap(&mut self, _patience: Duration, ended: Ended<'_>) -> Result<(), StorageError> {
        self.ended.drain(..).for_each(|(job, moved)| ended(job, moved));
        Ok(())
    }
}

/// How long the end of an engine waits for its last transfers.
const LAST_WAIT: Duration = Duration::from_secs(30);

struct Uring {
    ring: IoUring,
    file: Arc<OwnedFd>,
    /// By token: what the kernel reads or writes until its completion.
    under_way: Vec<Option<Job>>,
}

/// Whether `io_uring` may be used here.
pub fn uring_allowed() -> bool {
    ring(1).is_ok()
}

fn ring(entries: u32) -> Result<IoUring, StorageError> {
    let ring = IoUring::new(entries.next_power_of_two()).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => StorageError::Refused(
            "io_uring is not allowed here (kernel.io_uring_disabled, or the container's filter of system \
                calls)"
                .to_owned(),
        ),
        _ => StorageError::asking("opening io_uring")(error),
    })?;
    let mut known = io_uring::Probe::new();
    let asked = ring.submitter().register_probe(&mut known);
    if asked.is_ok() && !(known.is_supported(opcode::Read::CODE) && known.is_supported(opcode::Write::CODE)) {
        return Err(StorageError::Refused(
            "this kernel's io_uring cannot read and write (it needs Linux 5.6)".to_owned(),
        ));
    }
    Ok(ring)
}

impl Uring {
    fn open(file: Arc<OwnedFd>, buffers: u32) -> Result<Self, StorageError> {
        Ok(Self { ring: ring(buffers)?, file, under_way: (0..buffers).map(|_| None).collect() })
    }
}

impl Driver for Uring {
    fn begin(&mut self, mut job: Job) -> Result<(), (Option<Job>, StorageError)> {
        let Ok(length) = u32::try_from(job.buffer.bytes().len()) else {
            return Err((Some(job), StorageError::Refused("a block of 4 GiB or more".to_owned())));
        };
        let file = types::Fd(self.file.as_raw_fd());
        let Transfer { token, offset, direction } = job.transfer;
        let base = job.buffer.bytes_mut().as_mut_ptr();
        let entry = match direction {
            Direction::Read => opcode::Read::new(file, base, length).offset(offset).build(),
            Direction::Write => opcode::Write::new(file, base, length).offset(offset).build(),
        };
        // SAFETY: the buffer's memory stays where it is and belongs to `under_way` alone until the completion
        // is seen; the drop of this engine waits for that, or gives the memory up. The engine holds the file
        // open.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(token))) };
        if pushed.is_err() {
            let full = "more transfers than the queue has room for".to_owned();
            return Err((Some(job), StorageError::Refused(full)));
        }
        self.under_way[token as usize] = Some(job);
        let handed = self.ring.submit().map_err(StorageError::asking("handing a transfer to io_uring"));
        handed.map(drop).map_err(|error| (None, error))
    }

    fn reap(&mut self, patience: Duration, ended: Ended<'_>) -> Result<(), StorageError> {
        if self.ring.completion().is_empty() && !patience.is_zero() {
            let limit = types::Timespec::from(patience);
            let arguments = types::SubmitArgs::new().timespec(&limit);
            match self.ring.submitter().submit_with_args(1, &arguments) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
                    return Err(StorageError::asking("waiting for io_uring")(error));
                }
                _ => {}
            }
        }
        for entry in self.ring.completion() {
            let token = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
            if let Some(job) = self.under_way.get_mut(token).and_then(Option::take) {
                let failed = |_| Errno::from_raw_os_error(-entry.result());
                ended(job, usize::try_from(entry.result()).map_err(failed));
            }
        }
        Ok(())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.under_way.iter().any(Option::is_some)
            && let Some(left) = LAST_WAIT.checked_sub(begun.elapsed())
        {
            // Whether a transfer failed does not matter any more.
            let _ = self.reap(left, &mut |_, _| {});
        }
        // The device never answered, and may still write there: this memory is given up for good.
        self.under_way.drain(..).flatten().for_each(std::mem::forget);
    }
}

/// Goes to a thread of the pool, whose number it carries, and comes back.
type Order = (usize, Job);

struct Threads {
    inboxes: Vec<Sender<Order>>,
    /// Threads that wait for a transfer.
    idle: Vec<usize>,
    ended: Receiver<(Order, Result<usize, Errno>)>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    fn start(file: &Arc<OwnedFd>, threads: u32, cpus: &[u32]) -> Result<Self, StorageError> {
        let (report, ended) = channel();
        let mut allowed = CpuSet::new();
        cpus.iter()
            .map(|cpu| *cpu as usize)
            .filter(|cpu| *cpu < CpuSet::MAX_CPU)
            .for_each(|cpu| allowed.set(cpu));
        let idle = (0..threads as usize).collect();
        let mut pool = Self { inboxes: Vec::new(), idle, ended, handles: Vec::new() };
        for number in 0..threads {
            let (orders, inbox) = channel::<Order>();
            let (report, file) = (report.clone(), Arc::clone(file));
            let work = move || {
                if allowed.count() > 0 {
                    // Where this is refused the threads stay where they are, and are slower.
                    let _moved = sched_setaffinity(None, &allowed);
                }
                while let Ok((thread, mut job)) = inbox.recv() {
                    let moved = job.run(&file);
                    if report.send(((thread, job), moved)).is_err() {
                        break;
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("storage-{number}")).spawn(work);
            pool.handles.push(thread.map_err(StorageError::asking("starting a thread for transfers"))?);
            pool.inboxes.push(orders);
        }
        Ok(pool)
    }
}

impl Driver for Threads {
    fn begin(&mut self, job: Job) -> Result<(), (Option<Job>, StorageError)> {
        let Some(thread) = self.idle.pop() else {
            return Err((Some(job), StorageError::Refused("more transfers at once than threads".to_owned())));
        };
        self.inboxes[thread].send((thread, job)).map_err(|gone| {
            let why = "a thread for transfers ended unexpectedly".to_owned();
            (Some(gone.0.1), StorageError::Refused(why))
        })
    }

    fn reap(&mut self, patience: Duration, ended: Ended<'_>) -> Result<(), StorageError> {
        let mut next = self.ended.recv_timeout(patience).ok();
        while let Some(((thread, job), moved)) = next {
            self.idle.push(thread);
            ended(job, moved);
            next = self.ended.try_recv().ok();
        }
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // A closed inbox ends its thread, after the transfer that it is at.
        self.inboxes.clear();
        for thread in self.handles.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Contents;
    use crate::place::tests::{Own, file};

    const BLOCK: usize = 4096;
    const BLOCKS: u64 = 64;

    fn written(name: &str) -> (Own, Arc<OwnedFd>) {
        let (own, file) = file(name, BLOCKS * BLOCK as u64);
        let mut bytes = vec![0; BLOCK * usize::try_from(BLOCKS).expect("small")];
        Contents::new(3).fill(0, &mut bytes);
        rustix::io::pwrite(&file, &bytes, 0).expect("written");
        (own, Arc::new(file))
    }

    fn engines(file: &Arc<OwnedFd>, depth: u32) -> Vec<Engine> {
        [EngineKind::Psync, EngineKind::Uring, EngineKind::Threads { count: depth, cpus: &[] }]
            .into_iter()
            .filter_map(|kind| match Engine::open(kind, file, depth, BLOCK, BLOCK) {
                Ok(engine) => Some(engine),
                // A container may forbid io_uring; never the others.
                Err(StorageError::Refused(_)) if kind == EngineKind::Uring => None,
                Err(error) => panic!("{error}"),
            })
            .collect()
    }

    fn read(token: u32, block: u64) -> Transfer {
        Transfer { token, offset: block * BLOCK as u64, direction: Direction::Read }
    }

    /// What has ended: one at least.
    fn reaped(engine: &mut Engine) -> Vec<u32> {
        let mut done = Vec::new();
        while done.is_empty() {
            engine.reap(LAST_WAIT, &mut |token| done.push(token)).expect("no error");
        }
        done
    }

    fn holds(engine: &mut Engine, token: u32, block: u64) -> Result<(), String> {
        Contents::new(3).verify(block * BLOCK as u64, engine.buffer(token).bytes())
    }

    #[test]
    fn every_engine_reads_the_blocks_that_were_asked_for() {
        let (_own, file) = written("engines");
        for mut engine in engines(&file, 4) {
            let (mut begun, mut ended) = (0, 0);
            let mut blocks = [0; 4];
            let mut free = vec![0u32, 1, 2, 3];
            while ended < BLOCKS {
                while begun < BLOCKS
                    && let Some(token) = free.pop()
                {
                    blocks[token as usize] = begun;
                    engine.submit(read(token, begun)).expect("taken");
                    begun += 1;
                }
                for token in reaped(&mut engine) {
                    let held = holds(&mut engine, token, blocks[token as usize]);
                    assert_eq!(held, Ok(()), "{}", engine.name());
                    free.push(token);
                    ended += 1;
                }
            }
        }
    }

    #[test]
    fn threads_serve_more_buffers_than_they_are_and_no_more_transfers_at_once() {
        let (_own, file) = written("slots");
        let threads = EngineKind::Threads { count: 2, cpus: &[] };
        let mut engine = Engine::open(threads, &file, 6, BLOCK, BLOCK).expect("threads");
        let mut done = Vec::new();
        for pair in [[0, 1], [2, 3], [4, 5]] {
            for token in pair {
                engine.submit(read(token, token.into())).expect("a thread is idle");
            }
            let third = (pair[0] + 2) % 6;
            assert!(engine.submit(read(third, third.into())).is_err(), "none is idle");
            let before = done.len();
            while done.len() < before + 2 {
                done.extend(reaped(&mut engine));
            }
        }
        for token in 0..6u32 {
            assert_eq!(holds(&mut engine, token, token.into()), Ok(()), "{token}");
        }
    }

    #[test]
    fn every_engine_writes_and_what_it_wrote_is_there() {
        let (_own, file) = written("writes");
        for (round, mut engine) in (10u64..).zip(engines(&file, 1)) {
            Contents::new(round).fill(8192, engine.buffer(0).bytes_mut());
            engine.submit(Transfer { token: 0, offset: 8192, direction: Direction::Write }).expect("taken");
            reaped(&mut engine);
            let mut back = vec![0; BLOCK];
            rustix::io::pread(&*file, &mut back, 8192).expect("read");
            assert_eq!(Contents::new(round).verify(8192, &back), Ok(()), "{}", engine.name());
        }
    }

    #[test]
    fn a_transfer_that_is_cut_short_is_an_error_of_every_engine() {
        let (_own, file) = written("short");
        for mut engine in engines(&file, 1) {
            // Beyond the file's end there is nothing to read.
            engine.submit(read(0, BLOCKS)).expect("taken");
            let reaped = engine.reap(LAST_WAIT, &mut |_| panic!("nothing was read"));
            let error = reaped.expect_err("0 bytes are no block");
            assert!(error.to_string().contains("0 of 4096 bytes"), "{}: {error}", engine.name());
        }
    }

    #[test]
    fn a_buffer_that_is_under_way_cannot_be_reached_or_submitted_again() {
        let (_own, file) = written("owned");
        for mut engine in engines(&file, 2) {
            if engine.name() == "psync" {
                continue; // Its transfers have ended when they are submitted.
            }
            engine.submit(read(0, 0)).expect("taken");
            let again = engine.submit(read(0, 0)).expect_err("its buffer is not there");
            assert!(again.to_string().contains("under way"), "{again}");
            let reached = std::panic::AssertUnwindSafe(|| engine.buffer(0).bytes().len());
            assert!(std::panic::catch_unwind(reached).is_err(), "{}", engine.name());
            assert_eq!(reaped(&mut engine), [0], "{}", engine.name());
            assert_eq!(holds(&mut engine, 0, 0), Ok(()));
            engine.submit(read(0, 0)).expect("free again");
        }
    }

    #[test]
    fn nothing_under_way_is_left_when_an_engine_is_dropped() {
        let (_own, file) = written("drop");
        for mut engine in engines(&file, 4) {
            for token in 0..4 {
                engine.submit(read(token, token.into())).expect("taken");
            }
            drop(engine);
        }
        assert_eq!(Arc::strong_count(&file), 1, "every engine and thread has let go of the file");
    }
}
