//! What operations that wait are made of, block by block.

use latlab_observe::{Attribution, Cause, Event, Interruption, Proof, Sample, split};

use crate::samples::{BlockData, Delay, Records};

/// After this thread was back on its CPU it took what was done within this time.
const PICKED_UP_NS: f64 = 50_000.0;

/// What each slow operation of a block that waits is made of. `records`: what is among the events.
pub(super) fn split_block(block: &mut BlockData, mut events: Vec<Event>, records: Records) {
    block.records = records;
    match records {
        Records::Incomplete => events.clear(),
        Records::Switches => events.retain(|event| event.cause != Cause::Device),
        Records::Requests => {}
    }
    events.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    let preempted_ns: f64 = events
        .iter()
        .filter(|event| event.cause == Cause::ContextSwitch)
        .map(|event| event.known_end_ns() - event.at_ns)
        .sum();
    block.delay_at_most_ns = block.observed.run_queue_delay_ns.map(|ns| (ns as f64 - preempted_ns).max(0.0));
    let longest_ns = events.iter().filter_map(|event| Some(event.end_ns? - event.at_ns)).fold(0.0, f64::max);
    for (slow, mark) in block.tail.iter().zip(&mut block.marks) {
        let sample = Sample { at_ns: slow.at_ns, ns: slow.value, interruption: Interruption::default() };
        let since_ns = mark.note.delay.map_or(sample.at_ns, |delay| delay.since_ns.min(sample.at_ns));
        let first = events.partition_point(|event| event.at_ns < since_ns - longest_ns);
        let beside: Vec<&Event> =
            events[first..].iter().take_while(|event| event.at_ns < sample.end_ns()).collect();
        // While a device works, that this thread is away costs nothing: only when it comes back too late for
        // the answer.
        let earliest_ns = if mark.note.under_way { sample.end_ns() - PICKED_UP_NS } else { sample.at_ns };
        // Where another thread is waited for, that this one was away after it had woken it costs nothing.
        let is_others = mark.note.delay.is_some_and(|delay| delay.at_end) && !mark.note.under_way;
        let mut own: Vec<Event> = beside
            .iter()
            .filter(|_| !is_others)
            .filter(|event| event.known_end_ns() > earliest_ns)
            // What a device had before is somebody else's, and of several under way whose it is cannot be
            // known.
            .filter(|event| {
                event.cause != Cause::Device || (event.at_ns >= sample.at_ns && !mark.note.under_way)
            })
            .map(|event| (*event).clone())
            .collect();
        if mark.note.under_way {
            own.push(Event {
                cause: Cause::Waiting,
                proof: Proof::UnderWay,
                at_ns: sample.at_ns,
                end_ns: Some(sample.end_ns()),
                who: None,
            });
        }
        if let Some(delay) = mark.note.delay {
            own.extend(ready(&sample, delay, &beside, records));
        }
        own.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        mark.split = split(&[sample], &own).pop();
    }
}

/// When this operation was ready without a CPU and no record says so: at the end of its sleeps, when it had
/// been woken; without records, at its end.
fn ready(sample: &Sample, delay: Delay, beside: &[&Event], records: Records) -> Vec<Event> {
    let at = |from: f64, to: f64| Event {
        cause: Cause::RunQueueDelay,
        proof: Proof::DelayCounter,
        at_ns: from,
        end_ns: Some(to),
        who: None,
    };
    if records == Records::Incomplete || delay.at_end {
        let late_ns = delay.ns.min(sample.ns);
        let mut found = vec![at(sample.end_ns() - late_ns, sample.end_ns())];
        if let Some(running_ns) = delay.running_ns {
            // Before it began, the thread ran.
            let within_ns = (running_ns - (sample.at_ns - delay.since_ns)).clamp(0.0, sample.ns - late_ns);
            found.push(Event {
                cause: Cause::Waiting,
                ..at(sample.at_ns, sample.end_ns() - late_ns - within_ns)
            });
        }
        return found;
    }
    let overlap = |event: &Event, from: f64| {
        let end_ns = event.known_end_ns();
        (end_ns.min(sample.end_ns()) - event.at_ns.max(from)).max(0.0)
    };
    // The count has all of it since it was last asked; preemptions have records of their own.
    let recorded: f64 = beside
        .iter()
        .filter(|event| event.cause == Cause::ContextSwitch)
        .map(|event| overlap(event, delay.since_ns))
        .sum();
    let mut left = (delay.ns - recorded).max(0.0);
    let mut found = Vec::new();
    for event in beside.iter().rev().filter(|event| event.cause == Cause::Waiting) {
        let lasted_ns = overlap(event, sample.at_ns).min(left);
        if lasted_ns > 0.0 {
            let end_ns = event.known_end_ns().min(sample.end_ns());
            found.push(at(end_ns - lasted_ns, end_ns));
            left -= lasted_ns;
        }
    }
    found
}

/// What took most of an operation's time: a sleep is one thing, also where the device's part of it is known.
pub(super) fn cause_of(one: &Attribution, ns: f64) -> Cause {
    let of = |wanted: &[Cause]| -> f64 {
        let own = one.parts.iter().filter(|part| wanted.contains(&part.cause));
        own.map(|part| part.explained_ns).sum()
    };
    let others_ns = match one.cause {
        Cause::Unexplained => ns - one.explained_ns,
        other => of(&[other]),
    };
    if one.cause == Cause::Device || of(&[Cause::Waiting, Cause::Device]) >= others_ns.max(1.0) {
        return Cause::Waiting;
    }
    one.cause
}
