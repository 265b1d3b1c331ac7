//! What carries out reads and writes: one system call at a time, `io_uring`, or a pool of threads.
//!
//! The engine is part of a figure: one at a time `io_uring` is about 11 % slower than a plain system call, and a pool adds a wake-up to each
//! operation. Containers often forbid `io_uring`; then the pool keeps several operations under way.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;
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
    /// Which buffer: below the depth, and not under way.
    pub token: u32,
    /// Where in the file, bytes.
    pub offset: u64,
    /// Which way.
    pub direction: Direction,
}

/// How long to wait for a transfer to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// Until one has ended.
    ForOne,
    /// Until one has ended, or so long.
    AtMost(Duration),
}

/// Carries out transfers, `depth` at a time at most, each with a buffer of its own.
pub trait Engine {
    /// `psync`, `io_uring`, `threads`: as in a point.
    fn name(&self) -> &'static str;

    /// The buffer of a token that is not under way.
    ///
    /// # Panics
    /// When the token's transfer is under way, or there is no such token.
    fn buffer(&mut self, token: u32) -> &mut Buffer;

    /// Begins a transfer. `psync` is done when it returns.
    ///
    /// # Errors
    /// When the system refuses it, the token's last transfer is still under way, or there is no such token.
    fn submit(&mut self, transfer: Transfer) -> Result<(), StorageError>;

    /// Calls `done` for each transfer that has ended whole.
    ///
    /// # Errors
    /// When a transfer failed or was cut short.
    fn reap(&mut self, patience: Patience, done: &mut dyn FnMut(u32)) -> Result<(), StorageError>;
}

/// The engines of this system, for a file that the caller keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind<'cpus> {
    /// One preadv2(2) or pwritev2(2) after the other.
    Psync,
    /// `io_uring`.
    Uring,
    /// A pool of threads.
    Threads {
        /// How many, which is how many transfers may be under way.
        count: u32,
        /// Where they run: the thread that asks is usually pinned to one CPU, and its threads would all be there too. Without any they stay where
        /// this thread may run.
        cpus: &'cpus [u32],
    },
}

/// Opens an engine with these buffers, at least as many as transfers will be under way.
///
/// # Errors
/// [`StorageError::Refused`] when this system or container does not allow it; what the system says when it gives no more threads.
pub fn open_engine(
    kind: EngineKind<'_>,
    file: &Arc<OwnedFd>,
    buffers: Buffers,
) -> Result<Box<dyn Engine>, StorageError> {
    Ok(match kind {
        EngineKind::Psync => Box::new(Psync { file: Arc::clone(file), buffers, ended: Vec::new() }),
        EngineKind::Uring => Box::new(Uring::open(Arc::clone(file), buffers)?),
        EngineKind::Threads { count, cpus } => Box::new(Threads::start(file, count, cpus, buffers)?),
    })
}

/// The buffers that are not under way, by token. A transfer owns its buffer until it has ended, so that nothing else can reach it.
pub struct Buffers(Vec<Option<Buffer>>);

impl Buffers {
    /// So many of `block_bytes` at multiples of `alignment` bytes.
    #[must_use]
    pub fn new(count: u32, block_bytes: usize, alignment: usize) -> Self {
        let buffer = |_| Some(Buffer::new(block_bytes, alignment));
        Self((0..count).map(buffer).collect())
    }

    fn get(&mut self, token: u32) -> &mut Buffer {
        let buffer = self.0.get_mut(token as usize).and_then(Option::as_mut);
        buffer.expect("the token exists and is not under way")
    }

    /// For a transfer that begins.
    fn take(&mut self, token: u32) -> Result<Buffer, StorageError> {
        let buffer = self.0.get_mut(token as usize).and_then(Option::take);
        buffer.ok_or_else(|| {
            StorageError::Refused(format!("transfer {token} is under way, or there is no such buffer"))
        })
    }

    /// From a transfer that has ended.
    fn put_back(&mut self, token: u32, buffer: Buffer) {
        self.0[token as usize] = Some(buffer);
    }
}

/// The whole block, or why not.
fn transfer(
    file: &OwnedFd,
    buffer: &mut Buffer,
    offset: u64,
    direction: Direction,
) -> Result<(), StorageError> {
    let (moved, what) = match direction {
        Direction::Read => (rustix::io::pread(file, &mut *buffer.bytes_mut(), offset), "reading a block"),
        Direction::Write => (rustix::io::pwrite(file, buffer.bytes(), offset), "writing a block"),
    };
    let moved = moved.map_err(StorageError::asking(what))?;
    whole(moved, buffer.bytes().len(), what)
}

fn whole(moved: usize, asked: usize, what: &str) -> Result<(), StorageError> {
    if moved == asked {
        return Ok(());
    }
    Err(StorageError::Refused(format!("{what}: {moved} of {asked} bytes were moved")))
}

struct Psync {
    file: Arc<OwnedFd>,
    buffers: Buffers,
    ended: Vec<u32>,
}

impl Engine for Psync {
    fn name(&self) -> &'static str {
        "psync"
    }

    fn buffer(&mut self, token: u32) -> &mut Buffer {
        self.buffers.get(token)
    }

    fn submit(&mut self, asked: Transfer) -> Result<(), StorageError> {
        let mut buffer = self.buffers.take(asked.token)?;
        let moved = transfer(&self.file, &mut buffer, asked.offset, asked.direction);
        self.buffers.put_back(asked.token, buffer);
        moved.map(|()| self.ended.push(asked.token))
    }

    fn reap(&mut self, _patience: Patience, done: &mut dyn FnMut(u32)) -> Result<(), StorageError> {
        self.ended.drain(..).for_each(done);
        Ok(())
    }
}

/// How long the end of an engine waits for its last transfers.
const LAST_WAIT: Duration = Duration::from_secs(30);

struct Uring {
    ring: IoUring,
    file: Arc<OwnedFd>,
    buffers: Buffers,
    /// By token: what the kernel reads or writes until its completion.
    under_way: Vec<Option<(Buffer, Direction)>>,
}

impl Uring {
    fn open(file: Arc<OwnedFd>, buffers: Buffers) -> Result<Self, StorageError> {
        let entries = u32::try_from(buffers.0.len()).unwrap_or(u32::MAX).next_power_of_two();
        let ring = IoUring::new(entries).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => StorageError::Refused(
                "io_uring is not allowed here (kernel.io_uring_disabled, or the container's filter of system calls)".to_owned(),
            ),
            _ => StorageError::System {
                what: "opening io_uring".to_owned(),
                source: error,
            },
        })?;
        let mut known = io_uring::Probe::new();
        let asked = ring.submitter().register_probe(&mut known);
        if asked.is_ok()
            && !(known.is_supported(opcode::Read::CODE) && known.is_supported(opcode::Write::CODE))
        {
            return Err(StorageError::Refused(
                "this kernel's io_uring cannot read and write (it needs Linux 5.6)".to_owned(),
            ));
        }
        Ok(Self { ring, file, under_way: buffers.0.iter().map(|_| None).collect(), buffers })
    }

    fn wait(&mut self, patience: Patience) -> std::io::Result<()> {
        let waited = match patience {
            Patience::None => return Ok(()),
            Patience::ForOne => self.ring.submitter().submit_and_wait(1),
            Patience::AtMost(limit) => {
                let limit = types::Timespec::from(limit);
                let arguments = types::SubmitArgs::new().timespec(&limit);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
        };
        match waited {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Engine for Uring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn buffer(&mut self, token: u32) -> &mut Buffer {
        self.buffers.get(token)
    }

    fn submit(&mut self, asked: Transfer) -> Result<(), StorageError> {
        let mut buffer = self.buffers.take(asked.token)?;
        let length = buffer.bytes().len();
        let Ok(length) = u32::try_from(length) else {
            self.buffers.put_back(asked.token, buffer);
            return Err(StorageError::Refused("a block of 4 GiB or more".to_owned()));
        };
        let file = types::Fd(self.file.as_raw_fd());
        let entry = match asked.direction {
            Direction::Read => {
                opcode::Read::new(file, buffer.bytes_mut().as_mut_ptr(), length).offset(asked.offset).build()
            }
            Direction::Write => {
                opcode::Write::new(file, buffer.bytes().as_ptr(), length).offset(asked.offset).build()
            }
        };
        // SAFETY: the buffer's memory stays where it is and belongs to `under_way` alone until the completion is seen; the drop of this engine
        // waits for that, or gives the memory up. The engine holds the file open.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(asked.token))) };
        if pushed.is_err() {
            self.buffers.put_back(asked.token, buffer);
            return Err(StorageError::Refused("more transfers than the queue has room for".to_owned()));
        }
        self.under_way[asked.token as usize] = Some((buffer, asked.direction));
        self.ring.submit().map_err(|source| StorageError::System {
            what: "handing a transfer to io_uring".to_owned(),
            source,
        })?;
        Ok(())
    }

    fn reap(&mut self, patience: Patience, done: &mut dyn FnMut(u32)) -> Result<(), StorageError> {
        if self.ring.completion().is_empty() {
            self.wait(patience)
                .map_err(|source| StorageError::System { what: "waiting for io_uring".to_owned(), source })?;
        }
        let mut failed = None;
        for entry in self.ring.completion() {
            let token = u32::try_from(entry.user_data()).unwrap_or(u32::MAX);
            let ended = self.under_way.get_mut(token as usize).and_then(Option::take);
            let Some((buffer, direction)) = ended else {
                continue;
            };
            let bytes = buffer.bytes().len();
            self.buffers.put_back(token, buffer);
            let what = if direction == Direction::Read { "reading a block" } else { "writing a block" };
            let moved = usize::try_from(entry.result())
                .map_err(|_| StorageError::asking(what)(Errno::from_raw_os_error(-entry.result())))
                .and_then(|moved| whole(moved, bytes, what));
            match moved {
                Ok(()) => done(token),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.under_way.iter().any(Option::is_some)
            && let Some(left) = LAST_WAIT.checked_sub(begun.elapsed())
        {
            // Whether a transfer failed does not matter any more.
            let _ = self.reap(Patience::AtMost(left), &mut |_| {});
        }
        for (buffer, _) in self.under_way.drain(..).flatten() {
            // The device never answered, and may still write there: this memory is given up for good.
            std::mem::forget(buffer);
        }
    }
}

/// What goes to a thread of the pool and comes back.
struct Job {
    token: u32,
    thread: usize,
    offset: u64,
    direction: Direction,
    buffer: Buffer,
}

struct Threads {
    buffers: Buffers,
    inboxes: Vec<Sender<Job>>,
    /// Threads that wait for a transfer.
    idle: Vec<usize>,
    ended: Receiver<(Job, Result<(), StorageError>)>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    fn start(
        file: &Arc<OwnedFd>,
        threads: u32,
        cpus: &[u32],
        buffers: Buffers,
    ) -> Result<Self, StorageError> {
        let (report, ended) = channel();
        let threads = threads as usize;
        let mut allowed = CpuSet::new();
        for cpu in cpus.iter().map(|cpu| *cpu as usize) {
            if cpu < CpuSet::MAX_CPU {
                allowed.set(cpu);
            }
        }
        let mut pool = Self {
            inboxes: Vec::with_capacity(threads),
            handles: Vec::with_capacity(threads),
            idle: (0..threads).collect(),
            buffers,
            ended,
        };
        for number in 0..threads {
            let (orders, inbox) = channel::<Job>();
            let (report, file) = (report.clone(), Arc::clone(file));
            let thread = std::thread::Builder::new()
                .name(format!("storage-{number}"))
                .spawn(move || {
                    if allowed.count() > 0 {
                        // Where this is refused the threads stay where they are, and are slower.
                        let _moved = sched_setaffinity(None, &allowed);
                    }
                    while let Ok(mut job) = inbox.recv() {
                        let moved = transfer(&file, &mut job.buffer, job.offset, job.direction);
                        if report.send((job, moved)).is_err() {
                            break;
                        }
                    }
                })
                .map_err(|source| StorageError::System {
                    what: "starting a thread for transfers".to_owned(),
                    source,
                })?;
            pool.inboxes.push(orders);
            pool.handles.push(thread);
        }
        Ok(pool)
    }
}

impl Engine for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn buffer(&mut self, token: u32) -> &mut Buffer {
        self.buffers.get(token)
    }

    fn submit(&mut self, asked: Transfer) -> Result<(), StorageError> {
        let buffer = self.buffers.take(asked.token)?;
        let Some(thread) = self.idle.pop() else {
            self.buffers.put_back(asked.token, buffer);
            return Err(StorageError::Refused("more transfers at once than threads".to_owned()));
        };
        let job =
            Job { token: asked.token, thread, offset: asked.offset, direction: asked.direction, buffer };
        let gone = |_| StorageError::Refused("a thread for transfers ended unexpectedly".to_owned());
        self.inboxes[thread].send(job).map_err(gone)
    }

    fn reap(&mut self, patience: Patience, done: &mut dyn FnMut(u32)) -> Result<(), StorageError> {
        let mut next = match patience {
            Patience::None => self.ended.try_recv().ok(),
            Patience::ForOne => self.ended.recv().ok(),
            Patience::AtMost(limit) => self.ended.recv_timeout(limit).ok(),
        };
        let mut failed = None;
        while let Some((job, moved)) = next {
            let token = job.token;
            self.idle.push(job.thread);
            self.buffers.put_back(token, job.buffer);
            match moved {
                Ok(()) => done(token),
                Err(error) => failed = Some(error),
            }
            next = self.ended.try_recv().ok();
        }
        failed.map_or(Ok(()), Err)
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

/// Whether `io_uring` may be used here, with the reason when not.
///
/// # Errors
/// The reason.
pub fn uring_allowed(file: &Arc<OwnedFd>) -> Result<(), StorageError> {
    Uring::open(Arc::clone(file), Buffers::new(1, 4096, 4096)).map(|_| ())
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

    fn engines(file: &Arc<OwnedFd>, depth: u32) -> Vec<Box<dyn Engine>> {
        [EngineKind::Psync, EngineKind::Uring, EngineKind::Threads { count: depth, cpus: &[] }]
            .into_iter()
            .filter_map(|kind| match open_engine(kind, file, Buffers::new(depth, BLOCK, BLOCK)) {
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
    fn reaped(engine: &mut dyn Engine) -> Vec<u32> {
        let mut done = Vec::new();
        while done.is_empty() {
            engine
                .reap(Patience::AtMost(Duration::from_secs(10)), &mut |token| done.push(token))
                .expect("no error");
        }
        done
    }

    fn holds(engine: &mut dyn Engine, token: u32, block: u64) -> Result<(), String> {
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
                for token in reaped(&mut *engine) {
                    assert_eq!(
                        holds(&mut *engine, token, blocks[token as usize]),
                        Ok(()),
                        "{}",
                        engine.name()
                    );
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
        let mut engine = open_engine(threads, &file, Buffers::new(6, BLOCK, BLOCK)).expect("threads");
        let mut done = Vec::new();
        for pair in [[0, 1], [2, 3], [4, 5]] {
            for token in pair {
                engine.submit(read(token, token.into())).expect("a thread is idle");
            }
            let third = (pair[0] + 2) % 6;
            assert!(engine.submit(read(third, third.into())).is_err(), "none is idle");
            let before = done.len();
            while done.len() < before + 2 {
                done.extend(reaped(&mut *engine));
            }
        }
        for token in 0..6u32 {
            assert_eq!(holds(&mut *engine, token, token.into()), Ok(()), "{token}");
        }
    }

    #[test]
    fn every_engine_writes_and_what_it_wrote_is_there() {
        let (_own, file) = written("writes");
        for (round, mut engine) in (10u64..).zip(engines(&file, 1)) {
            Contents::new(round).fill(8192, engine.buffer(0).bytes_mut());
            engine.submit(Transfer { token: 0, offset: 8192, direction: Direction::Write }).expect("taken");
            reaped(&mut *engine);
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
            let submitted = engine.submit(read(0, BLOCKS));
            let reaped =
                submitted.and_then(|()| engine.reap(Patience::ForOne, &mut |_| panic!("nothing was read")));
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
            assert_eq!(reaped(&mut *engine), [0], "{}", engine.name());
            assert_eq!(holds(&mut *engine, 0, 0), Ok(()));
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
