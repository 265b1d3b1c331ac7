//! Which event belongs to which gap, and what a gap is therefore made of. Pure: times in, causes out.
//!
//! Each event belongs to one sample, the one that it overlaps most; within a sample a nanosecond belongs to
//! one cause, the one that is furthest inside (while another thread runs, its interrupts are its own). What
//! no event covers stays unexplained, also in a gap that has a cause: the time around a handler is the price
//! of entering and leaving it, in a virtual machine mostly the host's.

use std::sync::Arc;

use serde::Serialize;

use crate::cause::{Cause, Event, Proof, Sample, TICK};
use crate::periodic::{Interference, Span, find_interference, median};

/// Events and samples are stamped by two clocks that were compared; and a handler's first record is written
/// some hundred nanoseconds after it was entered.
const MARGIN_NS: f64 = 1_000.0;
/// A handler that covers less of a gap is in it, but is not its cause, ...
const LEAST_SHARE: f64 = 0.1;
/// ... unless what it leaves uncovered is no longer than entering and leaving can take: in a virtual machine
/// an interrupt from another CPU with a handler of 0.3 us makes a gap of 10 to 20 us.
const ENTRY_NS: f64 = 25_000.0;
/// Switches without a switch record: what the flag says is true of signals and migrations too (85 % of
/// flagged gaps had a switch).
const FLAG_CONFIDENCE: f64 = 0.85;
/// Quota is enforced by taking a thread off its CPU until the next period, usually tens of milliseconds.
const SHORTEST_THROTTLE_NS: f64 = 500_000.0;
/// What has no times of its own, periodic interference or the interrupt flag, vouches for a gap up to so many
/// times the usual length of its gaps; the rest of a longer one is not its work.
const STRETCH: f64 = 3.0;
/// What accounts for less of a gap is not its cause: periodic gaps of 2 us claimed half of all stalls of 60
/// us that happened near a tick.
const VOUCHED_SHARE: f64 = 0.5;
/// Of a tick's gap the handler is a third or more, the rest is the way there and back: what has a record
/// there and took less is not its cause.
const HANDLER_SHARE: f64 = 1.0 / 3.0;
/// No interrupt usually takes longer: where nothing tells of switches, the median could be theirs.
const LONGEST_USUAL_NS: f64 = 50_000.0;
/// What the interrupt flag named, tracepoints confirmed to this part or better.
const INTERRUPT_CONFIDENCE: f64 = 0.9;
/// Where the flag says that this kernel was not entered, tracepoints had no event to this part or better.
const OUTSIDE_CONFIDENCE: f64 = 0.95;

/// One cause's part in a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// What shows it.
    pub proof: Proof,
    /// Begin of its first event, ns since the clock was opened.
    pub at_ns: f64,
    /// Nanoseconds of the sample that its events cover and nothing further inside does.
    pub explained_ns: f64,
    /// How many events.
    pub events: u32,
    /// Who or what, as far as it is known.
    pub who: Option<Arc<str>>,
}

/// What a sample was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// The cause that covers most of it.
    pub cause: Cause,
    /// What shows that cause; `None` of the unexplained.
    pub proof: Option<Proof>,
    /// Nanoseconds that are covered by the events of any cause, or that its interference or flag accounts
    /// for.
    pub explained_ns: f64,
    /// How far the cause can be believed, 0 to 1.
    pub confidence: f64,
    /// The periodic interference that it belongs to, an index into [`Attributed::periodic`].
    pub interference: Option<usize>,
    /// All causes with events in it, the largest first; also those too small to be its cause.
    pub parts: Vec<Part>,
}

impl Attribution {
    fn unexplained(parts: Vec<Part>) -> Self {
        Self {
            cause: Cause::Unexplained,
            proof: None,
            // What a small handler covers is explained even if it is not the cause.
            explained_ns: parts.iter().map(|part| part.explained_ns).sum(),
            confidence: 0.0,
            interference: None,
            parts,
        }
    }

    /// Gives it this cause.
    fn name(&mut self, cause: Cause, proof: Proof, explained_ns: f64, confidence: f64) {
        self.cause = cause;
        self.proof = Some(proof);
        self.explained_ns = explained_ns;
        self.confidence = confidence;
    }
}

/// What is known beside the events.
#[derive(Clone, Debug, Default)]
pub struct Context<'a> {
    /// Times during which a sample would have been noticed, in order: the ticks of periodic interference are
    /// expected only there.
    pub listened: &'a [Span],
    /// Whether every switch of the thread has an event, so that the rseq flag says nothing more.
    pub switches_are_recorded: bool,
    /// Local timer interrupts of this CPU while it was listened to, where the kernel counts them.
    pub timer_interrupts: Option<u64>,
    /// Samples of this length and more without [`crate::Interruption::interrupted`] were interrupted outside
    /// this kernel, as the work itself never takes so long, ns. `None` where it may, and where there is no
    /// such flag.
    pub outside_from_ns: Option<f64>,
    /// Time that the control group's quota held the process back, ns.
    pub throttled_ns: u64,
}

/// All samples with their causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributed {
    /// One a sample, in their order.
    pub each: Vec<Attribution>,
    /// Periodic causes, with what they are taken for.
    pub periodic: Vec<NamedInterference>,
    /// Events that lie in no sample: faster than the threshold, or while nobody listened.
    pub events_outside: usize,
}

/// Periodic interference and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedInterference {
    /// Its times.
    #[serde(flatten)]
    pub interference: Interference,
    /// What it is taken for.
    pub cause: Cause,
    /// Why.
    pub reason: String,
}

/// Finds the cause of each sample. Samples must be in order of time and not overlap; events in any order.
pub fn attribute(samples: &[Sample], events: &[Event], context: &Context<'_>) -> Attributed {
    let (mut owned, events_outside) = assign(samples, events);
    let mut each: Vec<Attribution> = samples
        .iter()
        .zip(&mut owned)
        .map(|(sample, events)| judge(sample, events, context.switches_are_recorded))
        .collect();
    name_throttling(samples, &mut each, context.throttled_ns);
    let free: Vec<bool> = each.iter().map(|one| one.cause == Cause::Unexplained).collect();
    let interrupts_ns = usual_interrupt(samples, &free);
    let periodic = name_interference(interference_of(samples, &free, context.listened), events, context);
    for (index, named) in periodic.iter().enumerate() {
        let interference = &named.interference;
        for &member in &interference.members {
            let (sample, one) = (&samples[member], &mut each[member]);
            one.interference = Some(index);
            if let Some(vouched_ns) = vouched(sample, interference.typical_ns) {
                let explained_ns = vouched_ns.max(one.explained_ns);
                one.name(named.cause, Proof::Period, explained_ns, interference.confidence());
            }
        }
    }
    for (index, named) in periodic.iter().enumerate().filter(|(_, named)| named.cause == Cause::TimerTick) {
        name_beside_records(samples, &mut each, index, &named.interference);
    }
    for (sample, one) in samples.iter().zip(&mut each) {
        // Periodic interference says more: which interrupt, or that it was the host's tick.
        if one.cause == Cause::Unexplained {
            name_by_flag(sample, one, interrupts_ns, context.outside_from_ns);
        }
    }
    Attributed { each, periodic, events_outside }
}

/// A tick often ends in a short switch, whose record alone would name the gap: it is the tick's where the
/// tick, as far as it takes so long, must have taken more.
fn name_beside_records(
    samples: &[Sample],
    each: &mut [Attribution],
    index: usize,
    interference: &Interference,
) {
    let flagged = samples.iter().any(|sample| sample.interruption.interrupted);
    for (sample, one) in samples.iter().zip(each) {
        let named = one.parts.first().filter(|part| part.cause == one.cause);
        let Some(recorded_ns) = named.map(|part| part.explained_ns) else { continue };
        let tick_ns = (sample.ns - one.explained_ns).min(STRETCH * interference.typical_ns);
        if one.explained_ns + tick_ns >= VOUCHED_SHARE * sample.ns
            && HANDLER_SHARE * tick_ns > recorded_ns
            && (sample.interruption.interrupted || !flagged)
            && interference.has_tick_at(samples, sample.at_ns)
        {
            one.name(Cause::TimerTick, Proof::Period, one.explained_ns + tick_ns, interference.confidence());
            one.interference = Some(index);
        }
    }
}

/// What the interrupt flag alone says: that there was an interrupt, or that there was none.
fn name_by_flag(sample: &Sample, one: &mut Attribution, interrupts_ns: f64, outside_from_ns: Option<f64>) {
    if sample.interruption.interrupted {
        if let Some(vouched_ns) = vouched(sample, interrupts_ns) {
            let explained_ns = vouched_ns.max(one.explained_ns);
            one.name(Cause::Interrupt, Proof::InterruptFlag, explained_ns, INTERRUPT_CONFIDENCE);
        }
    } else if outside_from_ns.is_some_and(|from_ns| sample.ns >= from_ns) && one.parts.is_empty() {
        one.name(Cause::Outside, Proof::InterruptFlag, sample.ns, OUTSIDE_CONFIDENCE);
    }
}

/// Periods among the free samples. Where interrupts are flagged, every gap of periodic interference has one
/// or none has, as it is this kernel's or comes from outside: each kind is searched alone, and what is found
/// comes with its kind.
fn interference_of(
    samples: &[Sample],
    free: &[bool],
    listened: &[Span],
) -> Vec<(Interference, Option<bool>)> {
    if !samples.iter().any(|sample| sample.interruption.interrupted) {
        let periodic = find_interference(samples, free, listened);
        return periodic.into_iter().map(|interference| (interference, None)).collect();
    }
    let mut periodic = Vec::new();
    for interrupted in [true, false] {
        let own: Vec<bool> = samples
            .iter()
            .zip(free)
            .map(|(sample, free)| *free && sample.interruption.interrupted == interrupted)
            .collect();
        let found = find_interference(samples, &own, listened);
        periodic.extend(found.into_iter().map(|interference| (interference, Some(interrupted))));
    }
    let ns = |interference: &Interference| interference.hit as f64 * interference.typical_ns;
    periodic.sort_by(|a, b| ns(&b.0).total_cmp(&ns(&a.0)));
    periodic
}

/// Median length of the gaps with an interrupt that no event names, those of periodic interference among
/// them; 0 where there is none.
fn usual_interrupt(samples: &[Sample], free: &[bool]) -> f64 {
    let own = samples.iter().zip(free).filter(|(sample, free)| **free && sample.interruption.interrupted);
    median(own.map(|(sample, _)| sample.ns).collect()).map_or(0.0, |median| median.min(LONGEST_USUAL_NS))
}

/// How much of a gap is accounted for by what usually takes so long; `None` where that is too little to be
/// its cause.
fn vouched(sample: &Sample, usual_ns: f64) -> Option<f64> {
    let vouched_ns = sample.ns.min(STRETCH * usual_ns);
    (vouched_ns >= VOUCHED_SHARE * sample.ns).then_some(vouched_ns)
}

/// What operations are made of that wait as part of their work, and may overlap: every cause with its own
/// time in each of them, and the rest unexplained. `events` in order of time. A page fault, of which only the
/// begin is known, takes at most until the thread next gave its CPU away.
pub fn split(samples: &[Sample], events: &[Event]) -> Vec<Attribution> {
    let longest_ns = events.iter().filter_map(|event| Some(event.end_ns? - event.at_ns)).fold(0.0, f64::max);
    samples
        .iter()
        .map(|sample| {
            let first = events.partition_point(|event| event.at_ns < sample.at_ns - longest_ns);
            let mut own: Vec<Event> = events[first..]
                .iter()
                .take_while(|event| event.at_ns < sample.end_ns())
                .filter(|event| event.known_end_ns() > sample.at_ns)
                .cloned()
                .collect();
            for index in 0..own.len() {
                if own[index].end_ns.is_none() {
                    let away = own[index + 1..].iter().find(|event| event.end_ns.is_some());
                    own[index].end_ns = Some(away.map_or(sample.end_ns(), |event| event.at_ns));
                }
            }
            let mut one = Attribution::unexplained(parts(sample, &mut own.iter().collect::<Vec<_>>()));
            if let Some(&Part { cause, proof, explained_ns, .. }) = one.parts.first()
                && explained_ns >= sample.ns - one.explained_ns
            {
                one.name(cause, proof, one.explained_ns, explained_ns / sample.ns);
            }
            one
        })
        .collect()
}

/// Each event to the sample that it overlaps most; how many have none.
fn assign<'a>(samples: &[Sample], events: &'a [Event]) -> (Vec<Vec<&'a Event>>, usize) {
    let mut owned = vec![Vec::new(); samples.len()];
    let mut outside = 0;
    for event in events {
        let end_ns = event.known_end_ns();
        let first = samples.partition_point(|sample| sample.end_ns() + MARGIN_NS < event.at_ns);
        let nearest = samples[first..]
            .iter()
            .take_while(|sample| sample.at_ns - MARGIN_NS <= end_ns)
            .map(|sample| end_ns.min(sample.end_ns()) - event.at_ns.max(sample.at_ns))
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        match nearest {
            Some((index, _)) => owned[first + index].push(event),
            None => outside += 1,
        }
    }
    (owned, outside)
}

fn judge(sample: &Sample, events: &mut [&Event], switches_are_recorded: bool) -> Attribution {
    let mut one = Attribution::unexplained(parts(sample, events));
    let named = one.parts.first().filter(|part| {
        part.explained_ns >= LEAST_SHARE * sample.ns || sample.ns - part.explained_ns <= ENTRY_NS
    });
    if let Some(&Part { cause, proof, explained_ns, .. }) = named {
        let share = explained_ns / sample.ns;
        let confidence = if share >= 0.5 {
            0.99
        } else if share >= 0.25 {
            0.9
        } else {
            0.7
        };
        one.name(cause, proof, one.explained_ns, confidence);
    } else if sample.interruption.preempted && !switches_are_recorded {
        one.name(Cause::ContextSwitch, Proof::RseqFlag, sample.ns, FLAG_CONFIDENCE);
    }
    one
}

/// What each cause covers of the sample, the largest part first.
fn parts(sample: &Sample, events: &mut [&Event]) -> Vec<Part> {
    events.sort_by(|a, b| {
        (a.cause.rank(), a.at_ns).partial_cmp(&(b.cause.rank(), b.at_ns)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut covered = Covered::default();
    let mut parts: Vec<Part> = Vec::new();
    for event in events.iter() {
        let from = event.at_ns.clamp(sample.at_ns, sample.end_ns());
        // Of what has no end, the rest of the sample is its work.
        let to = event.end_ns.map_or(sample.end_ns(), |end| end.clamp(from, sample.end_ns()));
        let explained_ns = covered.add(from, to);
        let known = parts.iter_mut().find(|part| part.cause == event.cause && part.proof == event.proof);
        if let Some(part) = known {
            part.explained_ns += explained_ns;
            part.events += 1;
            part.at_ns = part.at_ns.min(event.at_ns);
            // Of several timers in one gap the tick is worth naming.
            if event.who.as_deref() == Some(TICK) || part.who.is_none() {
                part.who.clone_from(&event.who);
            }
        } else {
            parts.push(Part {
                cause: event.cause,
                proof: event.proof,
                at_ns: event.at_ns,
                explained_ns,
                events: 1,
                who: event.who.clone(),
            });
        }
    }
    parts.sort_by(|a, b| b.explained_ns.total_cmp(&a.explained_ns));
    parts
}

/// Time that has an owner already; the few intervals of one gap.
#[derive(Default)]
struct Covered(Vec<(f64, f64)>);

impl Covered {
    /// Takes what is free between the two times and returns how much it was.
    fn add(&mut self, from: f64, to: f64) -> f64 {
        let taken: f64 = self.0.iter().map(|(begin, end)| (end.min(to) - begin.max(from)).max(0.0)).sum();
        // The intervals stay disjoint, or their overlaps would count twice.
        let (mut low, mut high) = (from, to);
        self.0.retain(|&(begin, end)| {
            let apart = end < low || begin > high;
            if !apart {
                low = low.min(begin);
                high = high.max(end);
            }
            apart
        });
        self.0.push((low, high));
        (to - from - taken).max(0.0)
    }
}

/// The longest absences from the CPU, up to the time that the quota's counter says was taken.
fn name_throttling(samples: &[Sample], each: &mut [Attribution], throttled_ns: u64) {
    if throttled_ns == 0 {
        return;
    }
    let mut absences: Vec<usize> = (0..samples.len())
        .filter(|&index| {
            each[index].cause == Cause::ContextSwitch && samples[index].ns >= SHORTEST_THROTTLE_NS
        })
        .collect();
    absences.sort_by(|a, b| samples[*b].ns.total_cmp(&samples[*a].ns));
    let mut left = throttled_ns as f64;
    for index in absences {
        // The counter is of the whole group: what is longer than what it has left was something else.
        if samples[index].ns > 1.1 * left {
            continue;
        }
        left -= samples[index].ns;
        let one = &mut each[index];
        one.name(Cause::Throttled, Proof::QuotaCounter, one.explained_ns, 0.8);
    }
}

/// Rates of kernels' ticks (`CONFIG_HZ`): only periodic interference with one of them can be a tick. One that
/// no interrupt here accounts for is the host's.
const TICKS_HZ: [f64; 10] = [100.0, 128.0, 200.0, 250.0, 256.0, 300.0, 500.0, 512.0, 1000.0, 1024.0];
/// A tick's rate is exact but for the difference of two clocks.
const TICK_TOLERANCE: f64 = 5e-4;

/// What kernels are usually built with.
const USUAL_TICKS_HZ: [f64; 3] = [100.0, 250.0, 1000.0];

/// Which periodic interference is this CPU's own tick, if any is. It has a tick's rate, and its local timer's
/// interrupts are counted, at least as many. A host's tick can have both, when programs set timers here too:
/// the own one is then the one that accounts for most of the count, and none is where a faster usual tick
/// would fit the count as well and was not found, unless the flag says that it is not the host's. While
/// another thread has the CPU for half of the time the host's is often found first, so the order says
/// nothing.
fn own_tick(periodic: &[(Interference, Option<bool>)], counted_per_s: Option<f64>) -> Option<usize> {
    let counted = counted_per_s?;
    let hz = |index: usize| periodic[index].0.hz();
    (0..periodic.len())
        .filter(|&index| periodic[index].1 != Some(false) && is_tick(hz(index)) && counted >= 0.9 * hz(index))
        .max_by(|&a, &b| hz(a).total_cmp(&hz(b)))
        .filter(|&index| {
            let own = hz(index);
            let faster = |tick: &f64| *tick > 1.01 * own && counted >= 0.9 * tick;
            periodic[index].1 == Some(true) || !USUAL_TICKS_HZ.iter().any(faster)
        })
}

fn is_tick(hz: f64) -> bool {
    TICKS_HZ.iter().any(|tick| (hz / tick - 1.0).abs() < TICK_TOLERANCE)
}

/// Names the source of each periodic interference.
fn name_interference(
    periodic: Vec<(Interference, Option<bool>)>,
    events: &[Event],
    context: &Context<'_>,
) -> Vec<NamedInterference> {
    // Those that have an event each belong to no interference.
    let recorded = events.iter().filter(|event| event.cause == Cause::TimerTick).count() as u64;
    let seconds: f64 = context.listened.iter().map(|span| span.to_ns - span.from_ns).sum::<f64>() / 1e9;
    let counted_per_s = context.timer_interrupts.map(|count| count.saturating_sub(recorded) as f64 / seconds);
    let own = own_tick(&periodic, counted_per_s);
    let left_per_s = counted_per_s.map(|counted| {
        let taken = own.map_or(0.0, |index| periodic[index].0.hz());
        (counted - taken).max(0.0)
    });
    periodic
        .into_iter()
        .enumerate()
        .map(|(index, (interference, interrupted))| {
            let hz = interference.hz();
            let (cause, reason) = match (left_per_s, counted_per_s) {
                _ if interrupted == Some(false) => (
                    if is_tick(hz) { Cause::HostTick } else { Cause::Periodic },
                    format!(
                        "{}this kernel had no interrupt in these gaps: its cause is outside this kernel",
                        if is_tick(hz) { "the rate of a kernel's tick, and " } else { "" }
                    ),
                ),
                (_, Some(counted)) if own == Some(index) => (
                    Cause::TimerTick,
                    format!("this CPU's local timer interrupts: {counted:.0} a second in /proc/interrupts"),
                ),
                (Some(_), _) if is_tick(hz) && own.is_some() && interrupted.is_some() => (
                    Cause::Periodic,
                    "the rate of a kernel's tick, but this CPU's own tick is another and these gaps have an \
                        interrupt: perhaps a timer that a program set"
                        .to_owned(),
                ),
                (Some(_), _) if is_tick(hz) && own.is_some() => (
                    Cause::HostTick,
                    "the rate of a kernel's tick, and this CPU's own tick is another: its cause is outside \
                        this kernel"
                        .to_owned(),
                ),
                (Some(left), _) if is_tick(hz) && left >= 0.9 * hz => (
                    Cause::Periodic,
                    format!(
                        "the rate of a kernel's tick; this CPU's own or the host's, as this kernel counts \
                            {left:.0} timer interrupts a second"
                    ),
                ),
                (Some(left), _) if is_tick(hz) => (
                    Cause::HostTick,
                    format!(
                        "the rate of a kernel's tick, but this kernel counts only {left:.0} more timer \
                            interrupts a second: its cause is outside this kernel"
                    ),
                ),
                (Some(left), _) if left >= 0.9 * hz => (
                    Cause::Periodic,
                    "not a rate of kernel ticks; this kernel counts as many timer interrupts: perhaps a \
                        timer that a program set"
                        .to_owned(),
                ),
                (Some(_), _) => (Cause::Periodic, "no interrupt of this kernel has this rate".to_owned()),
                (None, _) if is_tick(hz) => (
                    Cause::Periodic,
                    "the rate of a kernel's tick; whether this kernel's or the host's is unknown, as \
                        interrupts cannot be counted here"
                        .to_owned(),
                ),
                (None, _) => (Cause::Periodic, "interrupts cannot be counted here".to_owned()),
            };
            NamedInterference { interference, cause, reason }
        })
        .collect()
}

/// How the classification by period alone compares with the truth of events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Samples that events name a timer tick.
    pub truly: usize,
    /// Samples that their period named a timer tick, from time stamps alone.
    pub found: usize,
    /// Of the true ones, the share that was found.
    pub recall: f64,
    /// Of the found ones, the share that is true: an event of the timer lies in it.
    pub precision: f64,
}

/// Compares what the period alone says with what events say, over samples of at least `least_ns`. `None`
/// where either has no timer tick. Where the events tell the tick from timers that somebody set, which have
/// no period, only the tick counts.
pub fn agreement(
    samples: &[Sample],
    truth: &[Attribution],
    blind: &[Attribution],
    least_ns: f64,
) -> Option<Agreement> {
    let (mut truly, mut found, mut both, mut right) = (0, 0, 0, 0);
    let of_timer = |one: &Attribution| one.parts.iter().find(|part| part.cause == Cause::TimerTick).cloned();
    let is_known = |part: &Part| part.who.as_deref() == Some(TICK);
    let reported = truth.iter().filter_map(of_timer).any(|part| is_known(&part));
    let has_tick = |one: &Attribution| of_timer(one).is_some_and(|part| !reported || is_known(&part));
    for ((sample, truth), blind) in samples.iter().zip(truth).zip(blind) {
        if sample.ns < least_ns {
            continue;
        }
        let is = truth.cause == Cause::TimerTick && has_tick(truth);
        let says = blind.cause == Cause::TimerTick;
        truly += usize::from(is);
        found += usize::from(says);
        both += usize::from(is && says);
        right += usize::from(says && has_tick(truth));
    }
    (truly > 0 && found > 0).then(|| Agreement {
        truly,
        found,
        recall: both as f64 / truly as f64,
        precision: right as f64 / found as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interruption;

    fn gap(at_ns: f64, ns: f64) -> Sample {
        Sample { at_ns, ns, interruption: Interruption::default() }
    }

    fn event(cause: Cause, at_ns: f64, end_ns: Option<f64>) -> Event {
        Event { cause, proof: Proof::Tracepoint, at_ns, end_ns, who: None }
    }

    fn counting(listened: &[Span], timer_interrupts: Option<u64>) -> Context<'_> {
        Context { listened, timer_interrupts, ..Context::default() }
    }

    fn judged(samples: &[Sample], events: &[Event]) -> Attributed {
        attribute(samples, events, &Context::default())
    }

    #[test]
    fn an_event_explains_its_own_time_and_names_the_gap_where_the_rest_is_the_price_of_entering() {
        use Cause::{Ipi, PageFault, TimerTick, Unexplained};
        for (what, gap_ns, (cause, from_ns, to_ns), expected, explained_ns) in [
            ("a handler", 40_000.0, (TimerTick, 10_000.0, Some(28_000.0)), TimerTick, 18_000.0),
            ("a sliver of a gap", 300_000.0, (TimerTick, 10_000.0, Some(15_000.0)), Unexplained, 5_000.0),
            ("a tiny one in a short gap", 14_000.0, (Ipi, 12_000.0, Some(12_300.0)), Ipi, 300.0),
            ("a fault whose end is not known", 2_000.0, (PageFault, 300.0, None), PageFault, 1_700.0),
        ] {
            let event = event(cause, 1e6 + from_ns, to_ns.map(|to_ns| 1e6 + to_ns));
            let one = &judged(&[gap(1e6, gap_ns)], &[event]).each[0];
            assert_eq!((one.cause, one.parts[0].cause), (expected, cause), "{what}");
            assert!((one.explained_ns - explained_ns).abs() < 1e-6, "{what}: {one:?}");
        }
        let found = judged(&[gap(1e6, 40_000.0)], &[event(TimerTick, 1_010_000.0, Some(1_028_000.0))]);
        assert!((found.each[0].confidence - 0.9).abs() < 1e-9);
        let nothing = &judged(&[gap(1e6, 50_000.0)], &[]).each[0];
        assert_eq!((nothing.cause, nothing.explained_ns, nothing.proof), (Unexplained, 0.0, None));
    }

    #[test]
    fn while_another_thread_runs_its_interrupts_are_its_own() {
        let found = judged(
            &[gap(1e6, 100_000.0)],
            &[
                event(Cause::TimerTick, 1_020_000.0, Some(1_030_000.0)),
                event(Cause::ContextSwitch, 1_005_000.0, Some(1_095_000.0)),
                event(Cause::Softirq, 1_092_000.0, Some(1_098_000.0)),
            ],
        );
        let one = &found.each[0];
        assert_eq!(one.cause, Cause::ContextSwitch);
        let explained: Vec<(Cause, f64)> =
            one.parts.iter().map(|part| (part.cause, part.explained_ns.round())).collect();
        assert_eq!(
            explained,
            [(Cause::ContextSwitch, 90_000.0), (Cause::Softirq, 3_000.0), (Cause::TimerTick, 0.0)]
        );
        assert!(one.explained_ns <= 100_000.0);
    }

    #[test]
    fn an_event_belongs_to_one_gap_the_one_that_it_overlaps_most() {
        let samples = [gap(1e6, 2_000.0), gap(1_002_500.0, 2_000.0)];
        let found = judged(&samples, &[event(Cause::Ipi, 1_001_900.0, Some(1_004_000.0))]);
        assert_eq!(found.each[0].cause, Cause::Unexplained);
        assert_eq!(found.each[1].cause, Cause::Ipi);
    }

    #[test]
    fn an_event_far_from_every_gap_is_counted_as_outside() {
        let found = judged(&[gap(1e6, 2_000.0)], &[event(Cause::Ipi, 1_010_000.0, Some(1_011_000.0))]);
        assert_eq!((found.each[0].cause, found.events_outside), (Cause::Unexplained, 1));
    }

    #[test]
    fn the_flag_speaks_only_where_switches_are_not_recorded() {
        let flagged = [Sample {
            interruption: Interruption { preempted: true, interrupted: false },
            ..gap(1e6, 80_000.0)
        }];
        let found = judged(&flagged, &[]);
        assert_eq!((found.each[0].cause, found.each[0].proof), (Cause::ContextSwitch, Some(Proof::RseqFlag)));
        let context = Context { switches_are_recorded: true, ..Context::default() };
        assert_eq!(attribute(&flagged, &[], &context).each[0].cause, Cause::Unexplained);
    }

    fn interrupted(gap: Sample) -> Sample {
        Sample { interruption: Interruption { preempted: false, interrupted: true }, ..gap }
    }

    #[test]
    fn the_interrupt_flag_names_what_neither_an_event_nor_a_period_does() {
        let (mut samples, listened) = ticks(4e6, 4.0);
        samples = samples.into_iter().map(interrupted).collect();
        // At no regular times: an interrupt, the host, a switch that has its record, and a host that was away
        // for longer than interrupts take.
        let at = |index: u32, ns| gap(2.9e6 + f64::from(index * index) * 7.3e6, ns);
        samples.extend([
            interrupted(at(3, 15_000.0)),
            at(5, 15_000.0),
            interrupted(at(7, 80_000.0)),
            interrupted(at(9, 300_000.0)),
        ]);
        samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        let switch = event(Cause::ContextSwitch, at(7, 0.0).at_ns, Some(at(7, 80_000.0).end_ns()));
        let context = Context {
            listened: &listened,
            timer_interrupts: Some(1_001),
            switches_are_recorded: true,
            ..Context::default()
        };
        let found = attribute(&samples, std::slice::from_ref(&switch), &context);
        let cause = |index: u32| {
            let at_ns = at(index, 0.0).at_ns;
            let place = samples.iter().position(|sample| sample.at_ns >= at_ns);
            found.each[place.expect("it is among them")].clone()
        };
        assert_eq!(
            [3, 5, 7, 9].map(|index| cause(index).cause),
            [Cause::Interrupt, Cause::Unexplained, Cause::ContextSwitch, Cause::Unexplained]
        );
        assert_eq!(cause(3).proof, Some(Proof::InterruptFlag));
        let ticks = found.each.iter().filter(|one| one.cause == Cause::TimerTick).count();
        assert!(ticks + 6 >= samples.len(), "{ticks} of {}", samples.len());
        // Where the work itself takes no time, what this kernel did not take was interrupted outside of it.
        let outside_too = Context { outside_from_ns: Some(0.0), ..context };
        let causes = |found: &Attributed| -> Vec<Cause> { found.each.iter().map(|one| one.cause).collect() };
        let outside = attribute(&samples, &[switch], &outside_too);
        for ((sample, before), after) in samples.iter().zip(causes(&found)).zip(causes(&outside)) {
            let is_outside = before == Cause::Unexplained && !sample.interruption.interrupted;
            assert_eq!(after, if is_outside { Cause::Outside } else { before });
        }
        assert_eq!(causes(&outside).iter().filter(|cause| **cause == Cause::Outside).count(), 1);
    }

    #[test]
    fn an_own_tick_next_to_the_hosts_is_told_from_it_by_the_interrupt() {
        // In step: every second tick of the host's 100 Hz falls on one of the own 250 Hz.
        let (own, listened) = ticks(4e6, 4.0);
        let mut samples: Vec<Sample> = own.into_iter().map(interrupted).collect();
        samples.extend((0..400).map(|tick| gap(1e6 + 25_000.0 + f64::from(tick) * 1e7, 30_000.0)));
        samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        // Nobody counts interrupts here.
        let context = Context { listened: &listened, ..Context::default() };
        let found = attribute(&samples, &[], &context);
        for (sample, one) in samples.iter().zip(&found.each) {
            let expected = if sample.interruption.interrupted { Cause::Periodic } else { Cause::HostTick };
            assert_eq!(one.cause, expected, "{sample:?}");
        }
    }

    #[test]
    fn throttling_takes_the_longest_absences_up_to_what_the_counter_says() {
        let samples = [gap(1e6, 60e6), gap(1e8, 70e6), gap(2e8, 1e6), gap(3e8, 30_000.0)];
        let events: Vec<Event> =
            samples.iter().map(|gap| event(Cause::ContextSwitch, gap.at_ns, Some(gap.end_ns()))).collect();
        let context = Context { throttled_ns: 130_000_000, ..Context::default() };
        let causes: Vec<Cause> =
            attribute(&samples, &events, &context).each.iter().map(|one| one.cause).collect();
        assert_eq!(causes, [Cause::Throttled, Cause::Throttled, Cause::ContextSwitch, Cause::ContextSwitch]);
    }

    fn part_of(one: &Attribution, cause: Cause) -> f64 {
        let own = one.parts.iter().find(|part| part.cause == cause);
        own.map_or(0.0, |part| part.explained_ns)
    }

    #[test]
    fn an_operation_that_waits_is_split_into_what_it_waited_for() {
        // 2 ms: 1.5 asleep of which 0.3 ready, a first touch before it, 0.2 preempted after it.
        let events = [
            event(Cause::PageFault, 1.01e6, None),
            event(Cause::Waiting, 1.05e6, Some(2.55e6)),
            event(Cause::RunQueueDelay, 2.25e6, Some(2.55e6)),
            event(Cause::ContextSwitch, 2.6e6, Some(2.8e6)),
        ];
        let found = split(&[gap(1e6, 2e6)], &events);
        for (cause, ns) in [
            (Cause::PageFault, 40_000.0),
            (Cause::Waiting, 1.2e6),
            (Cause::RunQueueDelay, 3e5),
            (Cause::ContextSwitch, 2e5),
        ] {
            assert!((part_of(&found[0], cause) - ns).abs() < 1e-6, "{cause}: {found:?}");
        }
        assert_eq!(found[0].cause, Cause::Waiting);
        assert!((found[0].explained_ns - 1.74e6).abs() < 1e-6);
    }

    #[test]
    fn operations_that_are_under_way_together_all_lose_the_time_in_which_the_thread_was_away() {
        let events = [event(Cause::ContextSwitch, 1.2e6, Some(1.7e6))];
        let found = split(&[gap(1e6, 1e6), gap(1.1e6, 1e6), gap(1.8e6, 1e6)], &events);
        let away: Vec<f64> = found.iter().map(|one| part_of(one, Cause::ContextSwitch)).collect();
        assert_eq!(away, [5e5, 5e5, 0.0]);
        assert_eq!(found[2].cause, Cause::Unexplained);
    }

    #[test]
    fn what_is_mostly_unexplained_has_no_cause_but_keeps_its_parts() {
        let found = split(&[gap(1e6, 1e6)], &[event(Cause::Waiting, 1.1e6, Some(1.3e6))]);
        assert_eq!(found[0].cause, Cause::Unexplained);
        assert!((found[0].explained_ns - 2e5).abs() < 1e-6);
    }

    fn ticks(period_ns: f64, seconds: f64) -> (Vec<Sample>, [Span; 1]) {
        let times = std::iter::successors(Some(1e6), |at| Some(at + period_ns));
        let samples = times.take_while(|at| *at < 1e6 + seconds * 1e9).map(|at| gap(at, 20_000.0)).collect();
        let listened = Span { from_ns: 0.0, to_ns: seconds * 1e9 + 2e6 };
        (samples, [listened])
    }

    #[test]
    fn a_comb_is_this_kernels_tick_only_if_its_timer_interrupts_are_counted() {
        for (interrupts, cause) in
            [(Some(1_010), Cause::TimerTick), (Some(40), Cause::HostTick), (None, Cause::Periodic)]
        {
            let (samples, listened) = ticks(4e6, 4.0);
            let found = attribute(&samples, &[], &counting(&listened, interrupts));
            assert_eq!(found.periodic.len(), 1);
            assert_eq!(found.periodic[0].cause, cause);
            let named = found.each.iter().filter(|one| one.cause == cause).count();
            assert!(named + 2 >= samples.len(), "{named} of {}", samples.len());
        }
    }

    #[test]
    fn a_comb_without_a_kernels_rate_is_no_tick_however_many_timer_interrupts_there_are() {
        let (samples, listened) = ticks(1e8, 6.0);
        let found = attribute(&samples, &[], &counting(&listened, Some(2_000)));
        assert_eq!(found.periodic.len(), 1, "10 Hz");
        assert_eq!(found.periodic[0].cause, Cause::Periodic);
    }

    #[test]
    fn a_cpu_has_one_tick_of_its_own() {
        let (mut samples, listened) = ticks(4e6, 4.0);
        samples.extend((0..400).map(|tick| gap(3.1e6 + f64::from(tick) * 1e7, 30_000.0)));
        samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        let context = counting(&listened, Some(1_600));
        let mut causes: Vec<Cause> =
            attribute(&samples, &[], &context).periodic.iter().map(|named| named.cause).collect();
        causes.sort_unstable();
        assert_eq!(causes, [Cause::TimerTick, Cause::HostTick]);
    }

    #[test]
    fn the_own_tick_accounts_for_most_of_the_count_whichever_was_found_first() {
        let interference = |hz: f64| Interference {
            period_ns: 1e9 / hz,
            phase_ns: 0.0,
            window_ns: [1e4; 2],
            ticks: 500,
            hit: 500,
            by_chance: 1.0,
            typical_ns: 2e4,
            members: Vec::new(),
        };
        let periodic = [100.0, 250.0, 1000.0, 10.0].map(|hz| (interference(hz), None));
        assert_eq!(own_tick(&periodic, Some(282.0)), Some(1));
        assert_eq!(own_tick(&periodic, Some(110.0)), Some(0));
        assert_eq!(
            own_tick(&periodic[..1], Some(282.0)),
            None,
            "its own may be one of 250 Hz that was not found"
        );
        assert_eq!(own_tick(&periodic, Some(40.0)), None, "10 Hz is nobody's tick");
        assert_eq!(own_tick(&periodic, None), None);
        let outside = [100.0, 250.0].map(|hz| (interference(hz), Some(hz > 200.0)));
        assert_eq!(own_tick(&outside, Some(282.0)), Some(1));
        assert_eq!(
            own_tick(&outside, Some(110.0)),
            None,
            "the one of 100 Hz had no interrupt of this kernel"
        );
        assert_eq!(
            own_tick(&outside, Some(1_500.0)),
            Some(1),
            "programs set timers too, and it is not the host's"
        );
    }

    #[test]
    fn timers_that_somebody_set_are_no_ticks_that_a_comb_should_find() {
        let (mut samples, listened) = ticks(4e6, 4.0);
        let tick = |gap: &Sample, who: &str| Event {
            who: Some(Arc::from(who)),
            ..event(Cause::TimerTick, gap.at_ns + 5_000.0, Some(gap.at_ns + 15_000.0))
        };
        let mut events: Vec<Event> = samples.iter().map(|gap| tick(gap, TICK)).collect();
        // As many again, at no regular times.
        let others: Vec<Sample> =
            (0..500).map(|index| gap(3e6 + f64::from(index * index % 499) * 8e6, 20_000.0)).collect();
        events.extend(others.iter().map(|gap| tick(gap, "local_timer")));
        samples.extend(others);
        samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        samples.dedup_by(|later, earlier| later.at_ns < earlier.end_ns());
        let context = counting(&listened, Some(1_500));
        let truth = attribute(&samples, &events, &context);
        let blind = attribute(&samples, &[], &context);
        let agreement = agreement(&samples, &truth.each, &blind.each, 10_000.0).expect("ticks on both sides");
        assert!(agreement.truly <= 1_000, "{agreement:?}");
        assert!(agreement.recall > 0.99 && agreement.precision > 0.99, "{agreement:?}");
    }

    #[test]
    fn a_stall_that_is_far_longer_than_the_gaps_of_a_comb_is_not_charged_to_it() {
        let (mut samples, listened) = ticks(4e6, 4.0);
        for sample in &mut samples {
            sample.ns = 2_000.0;
        }
        samples[500].ns = 60_000.0;
        let context = Context { listened: &listened, ..Context::default() };
        let found = attribute(&samples, &[], &context);
        assert_eq!(found.each[500].cause, Cause::Unexplained);
        assert_eq!(found.each[501].cause, Cause::Periodic);
    }

    #[test]
    fn a_stall_at_a_tick_is_not_charged_to_the_tick() {
        let (mut samples, listened) = ticks(4e6, 4.0);
        samples[500].ns = 1_500_000.0;
        let found = attribute(&samples, &[], &counting(&listened, Some(1_000)));
        assert_eq!(found.each[500].cause, Cause::Unexplained);
        assert_eq!(found.each[501].cause, Cause::TimerTick);
    }

    #[test]
    fn a_tick_that_ends_in_a_short_switch_is_a_tick_and_one_before_a_long_one_is_not() {
        let (mut samples, listened) = ticks(4e6, 4.0);
        // As long as a tick with a short switch, but where none is due.
        let between = samples[700].at_ns + 1.5e6;
        samples.insert(701, gap(between, 20_000.0));
        samples[600].ns = 200_000.0;
        samples[601].ns = 1_000_000.0;
        let switch = |sample: &Sample, ns: f64| {
            event(Cause::ContextSwitch, sample.end_ns() - ns, Some(sample.end_ns()))
        };
        let events = [
            switch(&samples[500], 3_000.0),
            switch(&samples[501], 15_000.0),
            switch(&samples[600], 150_000.0),
            switch(&samples[601], 3_000.0),
            switch(&samples[701], 3_000.0),
        ];
        let found = attribute(&samples, &events, &counting(&listened, Some(1_000)));
        let cause = |index: usize| found.each[index].cause;
        assert_eq!(cause(500), Cause::TimerTick);
        assert_eq!(found.each[500].proof, Some(Proof::Period));
        assert!((found.each[500].explained_ns - 20_000.0).abs() < 1e-6);
        assert_eq!(found.each[500].parts.len(), 1, "the switch is in it all the same");
        for other in [501, 600, 701] {
            assert_eq!(cause(other), Cause::ContextSwitch, "{other}");
        }
        assert_eq!(cause(601), Cause::Unexplained, "neither takes so long");
    }

    #[test]
    fn timer_interrupts_that_have_their_events_are_no_interference() {
        // 250 Hz with events, 100 Hz without: the count is that of the events.
        let (mut samples, listened) = ticks(4e6, 4.0);
        let events: Vec<Event> = samples
            .iter()
            .map(|gap| event(Cause::TimerTick, gap.at_ns + 5_000.0, Some(gap.at_ns + 15_000.0)))
            .collect();
        samples.extend((0..400).map(|tick| gap(3.1e6 + f64::from(tick) * 1e7, 30_000.0)));
        samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        let found = attribute(&samples, &events, &counting(&listened, Some(1_001)));
        let causes: Vec<Cause> = found.periodic.iter().map(|named| named.cause).collect();
        assert_eq!(causes, [Cause::HostTick]);
    }

    #[test]
    fn gaps_with_an_event_of_their_own_belong_to_no_interference() {
        let (samples, listened) = ticks(4e6, 4.0);
        let events: Vec<Event> = samples
            .iter()
            .map(|gap| event(Cause::TimerTick, gap.at_ns + 5_000.0, Some(gap.at_ns + 15_000.0)))
            .collect();
        let context = counting(&listened, Some(1_000));
        let truth = attribute(&samples, &events, &context);
        assert_eq!(truth.periodic, []);
        let blind = attribute(&samples, &[], &context);
        let agreement = agreement(&samples, &truth.each, &blind.each, 10_000.0).expect("ticks on both sides");
        assert!(agreement.recall > 0.99 && agreement.precision > 0.99, "{agreement:?}");
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn no_more_is_explained_than_there_is(
                spans in proptest::collection::vec((0_u32..3_000, 1_u32..400, 0_usize..7, proptest::bool::ANY), 0..30),
            ) {
                let causes = [
                    Cause::ContextSwitch, Cause::PageFault, Cause::TimerTick, Cause::Ipi, Cause::DeviceInterrupt,
                    Cause::Softirq, Cause::Nmi,
                ];
                let events: Vec<Event> = spans
                    .iter()
                    .map(|(at, ns, cause, ends)| event(causes[*cause], f64::from(*at), ends.then(|| f64::from(at + ns))))
                    .collect();
                let samples = [gap(500.0, 700.0), gap(1_300.0, 400.0), gap(2_000.0, 900.0)];
                let found = judged(&samples, &events);
                let owned: u32 = found.each.iter().flat_map(|one| &one.parts).map(|part| part.events).sum();
                prop_assert_eq!(owned as usize + found.events_outside, events.len());
                for (sample, one) in samples.iter().zip(&found.each) {
                    prop_assert!(one.explained_ns <= sample.ns + 1e-6, "{:?}", one);
                }
            }
        }
    }
}
