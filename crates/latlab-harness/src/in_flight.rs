//! Operations of which several are under way at once: closed loops at a depth, open loops at a rate.
//!
//! ```text
//! closed   submit ──────────────► done        the next one is submitted when one is done: depth operations, always
//! open     due ──(late)─► submit ► done        due times are drawn before, and nothing moves them: response = done - due
//! ```
//! A loop that waits for its answers before it asks again asks less while the disk stalls, and its quantiles
//! hide the stall (coordinated omission: the p99 of the same 14,000 requests a second was 123 us asked that
//! way and 741 us asked in time). So in an open loop the latency of a request begins when it was *due*, also
//! when the limit of operations under way held it back.
//!
//! A block must not hide a stall either: one that ended with its last due time would leave out whoever came
//! in the rest of it. So an open loop goes on asking until all that it was to do are done, and those who were
//! due by then count as well (as regenerative simulation cuts a queue's time into cycles where nobody waits).

use std::time::Duration;

use latlab_clock::{Clock, Source, TimeSource};
use latlab_record::{Histogram, TailSample};
use latlab_stats::rng::Rng;

use crate::block::{Picoseconds, TAIL_ROOM};
use crate::samples::{Candidate, Note};
use crate::slow::{CANDIDATES, LONG_WAIT_NS};
use crate::{Block, ProbeError};

/// How long [`Queue::reap`] may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wait {
    /// Not at all: what is done already.
    No,
    /// Until at least one operation is done.
    ForOne,
    /// Until one is done or so many ns have passed.
    AtMostNs(f64),
}

/// Something that works on several operations at once: a disk behind `io_uring`, a pool of threads, a
/// simulated one.
pub trait Queue {
    /// Hands an operation over; `token` is below the depth and not under way. What it does is for the queue
    /// to choose: the next offset, the next request. Fails when it cannot be handed over.
    fn submit(&mut self, token: u32) -> Result<(), ProbeError>;

    /// Calls `done` with the token of each operation that has completed. Fails when an operation failed.
    fn reap(&mut self, wait: Wait, done: &mut dyn FnMut(u32)) -> Result<(), ProbeError>;
}

/// When the next operation comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// As soon as one is done.
    Closed,
    /// At random times, so many a second on average, independent of each other and of the answers.
    Poisson {
        /// Operations a second.
        per_s: f64,
        /// Of the times.
        seed: u64,
    },
}

/// When a block of operations ends: at the first of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Operations. An open loop does those besides that are due before all of these are done: a block that
    /// ends in a stall goes through it.
    pub operations: u64,
    /// Time in which operations are begun, ns; those under way are waited for.
    pub begin_within_ns: f64,
}

/// What a block of operations under way together came to.
#[derive(Clone, Default)]
pub struct Flight {
    /// Operations done.
    pub operations: u64,
    /// From the first submission (or due time) to the last completion, ns.
    pub elapsed_ns: f64,
    /// Sum of all times from submission to completion, ns: over `elapsed_ns` it is the depth that was
    /// achieved (Little's law).
    pub under_way_ns: f64,
    /// Times from submission to completion: what the device needed, without the wait for its turn.
    pub service: Histogram,
    /// Operations that were due but had to wait because the depth was reached.
    pub held_back: u64,
    /// Operations that were handed over more than 50 us after they were due although there was room and
    /// nothing was just being handed over: this thread slept too long or lost its CPU. They are no samples,
    /// unless there are no others in the block.
    pub late: u64,
    /// From the begin to the last due time of an open loop, ns.
    pub due_ns: f64,
    /// Operations of a closed loop that ended while the depth was kept, and for how long it was kept, ns.
    /// Filling and draining would lower the rate of a short block.
    pub kept_operations: u64,
    /// See [`Self::kept_operations`].
    pub kept_ns: f64,
}

impl Flight {
    /// Operations a second; of a closed loop, while its depth was kept.
    pub fn rate_per_s(&self) -> f64 {
        if self.kept_operations > 0 && self.kept_ns > 0.0 {
            return self.kept_operations as f64 * 1e9 / self.kept_ns;
        }
        self.operations as f64 * 1e9 / self.elapsed_ns.max(1.0)
    }

    /// Mean number of operations that were under way, by Little's law: the rate times the mean time under
    /// way.
    pub fn achieved_depth(&self) -> f64 {
        self.rate_per_s() / 1e9 * self.under_way_ns / self.operations.max(1) as f64
    }

    /// Operations a second that an open loop asked for.
    pub fn offered_per_s(&self) -> f64 {
        self.operations as f64 * 1e9 / self.due_ns.max(1.0)
    }

    /// Both, one after the other.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.elapsed_ns += other.elapsed_ns;
        self.under_way_ns += other.under_way_ns;
        self.service.merge(&other.service);
        self.held_back += other.held_back;
        self.late += other.late;
        self.due_ns += other.due_ns;
        self.kept_operations += other.kept_operations;
        self.kept_ns += other.kept_ns;
    }
}

impl Block<'_> {
    /// Keeps up to `depth` operations under way and records the time of each: from submission in a closed
    /// loop, from the due time in an open one. The block counts as one whose thread waits.
    pub fn in_flight<Q: Queue>(
        &mut self,
        queue: &mut Q,
        depth: u32,
        arrivals: Arrivals,
        limits: Limits,
    ) -> Result<Flight, ProbeError> {
        self.set_waits();
        let clock = self.clock();
        match &clock.source {
            Source::Hardware(time) => fly(self, time, clock, queue, depth, arrivals, limits),
            Source::Os(time) => fly(self, time, clock, queue, depth, arrivals, limits),
            Source::Simulated(time) => fly(self, time, clock, queue, depth, arrivals, limits),
        }
    }
}

/// The times of one operation that is under way, ticks.
#[derive(Clone, Copy, Default)]
struct Times {
    due: u64,
    submitted: u64,
    /// By this thread's fault.
    late: bool,
    /// One of those that the block was to do.
    asked_for: bool,
}

impl Times {
    fn of(due: u64, submitted: u64, late: bool, asked_for: bool) -> Self {
        Self { due, submitted, late, asked_for }
    }
}

/// Draws the times at which operations are due.
struct Schedule<'a> {
    clock: &'a Clock,
    rng: Rng,
    mean_ns: f64,
    next_ns: f64,
    begin: u64,
}

impl<'a> Schedule<'a> {
    /// None in a closed loop.
    fn of(arrivals: Arrivals, clock: &'a Clock, begin: u64) -> Option<Self> {
        let Arrivals::Poisson { per_s, seed } = arrivals else { return None };
        let mut schedule = Self {
            clock,
            rng: Rng::new(seed),
            mean_ns: 1e9 / per_s.max(f64::MIN_POSITIVE),
            next_ns: 0.0,
            begin,
        };
        schedule.advance();
        Some(schedule)
    }

    /// Ticks at which the next operation is due.
    fn next(&self) -> u64 {
        self.begin.saturating_add(self.clock.ticks(self.next_ns))
    }

    fn advance(&mut self) {
        // The gaps of a Poisson process are exponential; 1 - u is never 0.
        self.next_ns += -(1.0 - self.rng.uniform()).ln() * self.mean_ns;
    }
}

/// Who may still begin.
struct Coming {
    /// Of those that the block was to do, the ones that have not ended.
    to_do: u64,
    /// Nobody begins, or is due, after this: ticks.
    until: u64,
}

impl Coming {
    /// When the one is due that may begin now, if there is one.
    fn due(&self, schedule: Option<&Schedule>, now: u64) -> Option<u64> {
        match schedule {
            None => (now < self.until).then_some(now),
            Some(schedule) => Some(schedule.next()).filter(|due| *due <= now.min(self.until)),
        }
    }

    /// One of those has ended; with the last of them ends the block.
    fn one_less(&mut self, end: u64) {
        self.to_do -= 1;
        if self.to_do == 0 {
            self.until = self.until.min(end);
        }
    }
}

/// Slow operations, as many as there is room for.
#[derive(Default)]
struct Tail {
    samples: Vec<TailSample>,
    dropped: u64,
}

impl Tail {
    fn push(&mut self, sample: TailSample) {
        if self.samples.len() < TAIL_ROOM {
            self.samples.push(sample);
        } else {
            self.dropped += 1;
        }
    }
}

/// While the depth was kept: the submission that reached it first, and the end of the last wait before which
/// it was reached; each with its ticks and the operations that had ended. Whoever was under way when the time
/// was over is counted with all of its time: leaving it out would leave out the slow ones, which are the
/// likeliest to be under way just then.
#[derive(Default)]
struct Kept {
    first: Option<(u64, u64)>,
    last: Option<(u64, u64)>,
}

impl Kept {
    /// Operations that ended in between, and how long it was, ns.
    fn span(&self, clock: &Clock) -> (u64, f64) {
        match (self.first, self.last) {
            (Some(first), Some(last)) => (last.1 - first.1, clock.ns(last.0 - first.0)),
            _ => (0, 0.0),
        }
    }
}

/// The times of a block's operations. Those that were late by this thread's fault lie apart.
#[derive(Default)]
struct Samples {
    responses: Histogram,
    services: Histogram,
    late_responses: Histogram,
    late_services: Histogram,
    tail: Tail,
    /// All operations while there is room, of which the slowest will be kept.
    candidates: Vec<Candidate>,
}

impl Samples {
    /// One operation that ended; from its submission, ticks.
    fn add(&mut self, clock: &Clock, picoseconds: Picoseconds, threshold: u64, own: Times, end: u64) -> u64 {
        let response = end.saturating_sub(own.due);
        let service = end.saturating_sub(own.submitted);
        let (responses, services) = if own.late {
            (&mut self.late_responses, &mut self.late_services)
        } else {
            (&mut self.responses, &mut self.services)
        };
        responses.record(picoseconds.in_ticks(response));
        services.record(picoseconds.in_ticks(service));
        if own.late {
            return service;
        }
        if self.candidates.len() < self.candidates.capacity().min(CANDIDATES) {
            self.candidates.push(Candidate {
                begin: own.due,
                ticks: response,
                note: Note { under_way: true, ..Note::default() },
            });
        } else if response >= threshold {
            self.tail.push(TailSample {
                at_ns: clock.at_ns(own.due),
                value: clock.ns(response),
                cause: None,
            });
        }
        service
    }

    /// Where all were late, they are what there is.
    fn or_late(mut self) -> Self {
        if self.responses.total() == 0 {
            self.responses.merge(&self.late_responses);
            self.services.merge(&self.late_services);
        }
        self
    }
}

/// How to wait where the next operation is due in so long. A thread that sleeps to the end would come late:
/// the last stretch is spun, as where nothing is under way.
fn wait_at_most(clock: &Clock, left_ns: f64) -> Wait {
    if matches!(clock.source, Source::Simulated(_)) {
        return if left_ns > 0.0 { Wait::AtMostNs(left_ns) } else { Wait::No };
    }
    if left_ns > SPIN_NS { Wait::AtMostNs(left_ns - SPIN_NS) } else { Wait::No }
}

fn fly<T: TimeSource, Q: Queue>(
    block: &mut Block,
    time: &T,
    clock: &Clock,
    queue: &mut Q,
    depth: u32,
    arrivals: Arrivals,
    limits: Limits,
) -> Result<Flight, ProbeError> {
    let depth = depth.max(1);
    let picoseconds = Picoseconds::of(clock);
    let threshold = clock.ticks(block.tail_threshold_ns());
    let mut samples = Samples { candidates: block.take_candidates(), ..Samples::default() };
    // Alone, and handed over by this thread: what its counters say is of this operation.
    let alone = depth == 1 && arrivals == Arrivals::Closed;
    let mut flight = Flight::default();
    let mut times = vec![Times::default(); depth as usize];
    let mut free: Vec<u32> = (0..depth).rev().collect();
    let begin = time.begin();
    let mut schedule = Schedule::of(arrivals, clock, begin);
    let (mut handed_over, mut under_way_ticks, mut last_end) = (0u64, 0u64, begin);
    let mut kept = Kept::default();
    // Whoever was due before this had no place.
    let (mut full_until, mut last_due) = (begin, begin);
    // Who is due after this and waits while others are handed over waits for the queue: that is no fault of
    // this thread's.
    let mut woke = begin;
    let late_ticks = clock.ticks(LATE_NS);
    let mut coming =
        Coming { to_do: limits.operations, until: begin.saturating_add(clock.ticks(limits.begin_within_ns)) };
    loop {
        // Hand over whatever may begin now.
        while schedule.is_some() || handed_over < limits.operations {
            let now = time.begin();
            let Some(due) = coming.due(schedule.as_ref(), now) else { break };
            let Some(token) = free.pop() else { break };
            let mut late = false;
            if let Some(schedule) = &mut schedule {
                schedule.advance();
                if due < full_until {
                    flight.held_back += 1;
                } else {
                    late = woke.saturating_sub(due) > late_ticks;
                    flight.late += u64::from(late);
                }
            }
            last_due = due;
            let asked_for = handed_over < limits.operations;
            times[token as usize] = Times::of(due, now, late, asked_for);
            queue.submit(token)?;
            handed_over += 1;
            if free.is_empty() {
                kept.first.get_or_insert((now, flight.operations));
            }
        }
        let idle = free.len() == depth as usize;
        let due_next = schedule.as_ref().map(Schedule::next).filter(|due| *due <= coming.until);
        if idle {
            let Some(due) = due_next else { break };
            idle_until(clock, time, due);
            woke = time.end();
            continue;
        }
        let full = free.is_empty();
        let (first, asked) = (samples.candidates.len(), time.end());
        let wait = match due_next {
            // The next one can begin before one of these is done.
            Some(due) if !full => wait_at_most(clock, clock.ns(due.saturating_sub(time.begin()))),
            _ => Wait::ForOne,
        };
        queue.reap(wait, &mut |token| {
            let end = time.end();
            last_end = last_end.max(end);
            let Some(own) = times.get(token as usize).copied() else { return };
            under_way_ticks += samples.add(clock, picoseconds, threshold, own, end);
            flight.operations += 1;
            if own.asked_for {
                coming.one_less(end);
            }
            if full {
                full_until = full_until.max(end);
                kept.last = Some((end, flight.operations));
            }
            free.push(token);
        })?;
        woke = time.end();
        let waited_ns = clock.ns(woke.saturating_sub(asked));
        note_those(block, &mut samples.candidates[first..], alone, waited_ns);
    }
    let samples = samples.or_late();
    flight.service = samples.services.clone();
    flight.elapsed_ns = clock.ns(last_end.saturating_sub(begin));
    flight.under_way_ns = clock.ns(under_way_ticks);
    if schedule.is_some() {
        flight.due_ns = clock.ns(last_due.saturating_sub(begin));
    } else {
        (flight.kept_operations, flight.kept_ns) = kept.span(clock);
    }
    hand_over(block, samples, schedule.is_some().then_some(&flight.service));
    Ok(flight)
}

/// The block's share. The service times are told apart in an open loop; in a closed one the two are one.
fn hand_over(block: &mut Block, samples: Samples, service: Option<&Histogram>) {
    let number = samples.responses.total();
    block.return_candidates(samples.candidates);
    block.add_operations(&samples.responses, samples.tail.samples, samples.tail.dropped, number);
    if let Some(service) = service {
        block.channel_mut("service").merge(service);
    }
}

/// Right after a wait of `waited_ns`: what the thread's counters say of those that ended with it.
fn note_those(block: &mut Block, ended: &mut [Candidate], alone: bool, waited_ns: f64) {
    let Some(first) = ended.first_mut() else { return };
    if alone {
        first.note = block.note(block.clock().ns(first.ticks));
    } else if waited_ns >= LONG_WAIT_NS {
        let mut note = block.note(waited_ns);
        note.under_way = true;
        if let Some(delay) = &mut note.delay {
            (delay.ns, delay.at_end) = (delay.ns.min(waited_ns), true);
            delay.running_ns = None;
        }
        for own in ended {
            own.note = note;
        }
    }
}

/// A request handed over later than this is named: several times what handing one over takes (10 us on a
/// virtual disk), ns.
const LATE_NS: f64 = 50_000.0;

/// A sleeping thread is woken up to 60 us late (the kernel's timer slack and the way out of idle): the last
/// stretch is spun.
const SPIN_NS: f64 = 120_000.0;

fn idle_until<T: TimeSource>(clock: &Clock, time: &T, due: u64) {
    if let Source::Simulated(simulated) = &clock.source {
        let now = time.begin();
        simulated.advance_ns(clock.ns(due.saturating_sub(now)));
        return;
    }
    loop {
        let now = time.begin();
        if now >= due {
            return;
        }
        let left_ns = clock.ns(due - now);
        if left_ns > SPIN_NS {
            std::thread::sleep(Duration::from_secs_f64((left_ns - SPIN_NS) / 1e9));
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
