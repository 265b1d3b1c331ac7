//! Events from the kernel's records. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use latlab_perf::{Record, What};

use super::roles::{Role, text, u64_at};
use crate::cause::{Cause, Event, Proof, TICK};

/// A switch record and the tracepoint of the same switch are written within this time of each other.
const SAME_SWITCH_NS: u64 = 50_000;

/// Pairs begins and ends. `tid` is the observed thread; `at_ns` turns the kernel's time into that of the
/// run's clock. Where
/// `sleeps` are part of the work, an absence that the thread asked for is [`Cause::Waiting`]; else each is a
/// context switch.
pub(crate) fn assemble(
    mut records: Vec<Record<'_>>,
    roles: &HashMap<u64, Role>,
    tid: u32,
    sleeps: bool,
    at_ns: impl Fn(u64) -> f64,
) -> Vec<Event> {
    records.sort_by_key(|record| record.time_ns);
    let event = |cause: Cause, proof: Proof, begin: u64, end: Option<u64>, who: Option<Arc<str>>| Event {
        cause,
        proof,
        at_ns: at_ns(begin),
        end_ns: end.map(&at_ns),
        who,
    };
    let mut events = Vec::new();
    let mut out: Option<(u64, bool)> = None;
    let mut next: Option<(u64, Arc<str>)> = None;
    // Handlers nest, and each kind within itself only in order.
    let mut entered: Vec<Entered> = Vec::new();
    for record in records {
        let Some(role) = roles.get(&record.event) else { continue };
        match (record.what, role) {
            (What::SwitchedOut { preempted }, _) => out = Some((record.time_ns, preempted)),
            (What::SwitchedIn, _) => {
                if let Some((begin, preempted)) = out.take() {
                    let who = next
                        .take()
                        .filter(|(at, _)| at.abs_diff(begin) < SAME_SWITCH_NS)
                        .map(|(_, name)| name);
                    let cause = if sleeps && !preempted { Cause::Waiting } else { Cause::ContextSwitch };
                    events.push(event(cause, Proof::SwitchRecord, begin, Some(record.time_ns), who));
                }
            }
            (What::Sample(sample), Role::NextThread { name_offset }) if record.tid == tid => {
                next = text(sample.raw(), *name_offset, 16).map(|name| (record.time_ns, name));
            }
            (What::Sample(_), Role::Moment(cause, proof)) => {
                events.push(event(*cause, *proof, record.time_ns, None, None));
            }
            (What::Sample(sample), Role::Enter(cause, which)) => {
                entered.push(Entered {
                    opened: *cause,
                    time_ns: record.time_ns,
                    who: which.name(sample.raw()),
                });
            }
            (What::Sample(sample), Role::Timer { function_offset, ticks }) => {
                let is_tick =
                    u64_at(sample.raw(), *function_offset).is_some_and(|function| ticks.contains(&function));
                if let Some(handler) = entered.iter_mut().rev().find(|own| own.is_timer())
                    && is_tick
                {
                    handler.who = Some(Arc::from(TICK));
                }
            }
            (What::Sample(_), Role::Leave(cause)) => {
                if let Some(index) = entered.iter().rposition(|own| own.opened == *cause) {
                    let handler = entered.remove(index);
                    let cause = if handler.is_timer() { Cause::TimerTick } else { *cause };
                    let end = Some(record.time_ns);
                    events.push(event(cause, Proof::Tracepoint, handler.time_ns, end, handler.who));
                }
            }
            (What::Sample(sample), Role::Lasted(cause, offset)) => {
                let begin = record.time_ns.saturating_sub(u64_at(sample.raw(), *offset).unwrap_or(0));
                let end = Some(record.time_ns);
                events.push(event(*cause, Proof::Tracepoint, begin, end, None));
            }
            _ => {}
        }
    }
    events
}

/// A handler that is under way.
struct Entered {
    opened: Cause,
    time_ns: u64,
    who: Option<Arc<str>>,
}

impl Entered {
    /// On aarch64 the local timer is an interrupt like any other, but for its name.
    fn is_timer(&self) -> bool {
        self.opened == Cause::TimerTick || matches!(self.who.as_deref(), Some("arch_timer" | TICK))
    }
}

#[cfg(test)]
mod tests {
    use latlab_perf::Sample;

    use super::*;
    use crate::live::system::roles::Which;

    const SWITCHES: u64 = 11;
    const FAULTS: u64 = 12;
    const ENTER: u64 = 13;
    const LEAVE: u64 = 14;
    const SCHED: u64 = 15;
    const TIMER: u64 = 16;
    const TID: u32 = 77;

    fn roles() -> HashMap<u64, Role> {
        HashMap::from([
            (SWITCHES, Role::Switches),
            (FAULTS, Role::Moment(Cause::PageFault, Proof::FaultRecord)),
            (ENTER, Role::Enter(Cause::Softirq, Which::Numbered(8, &["HI", "TIMER"]))),
            (LEAVE, Role::Leave(Cause::Softirq)),
            (SCHED, Role::NextThread { name_offset: 4 }),
        ])
    }

    fn record(event: u64, tid: u32, time_ns: u64, what: What<'_>) -> Record<'_> {
        Record { time_ns, pid: 1, tid, event, what }
    }

    fn sampled(event: u64, tid: u32, time_ns: u64, raw: &[u8]) -> Record<'_> {
        record(event, tid, time_ns, What::Sample(Sample::Raw(raw)))
    }

    fn left(preempted: bool, time_ns: u64) -> Record<'static> {
        record(SWITCHES, TID, time_ns, What::SwitchedOut { preempted })
    }

    fn back(time_ns: u64) -> Record<'static> {
        record(SWITCHES, TID, time_ns, What::SwitchedIn)
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn events(records: &[Record<'_>], roles: &HashMap<u64, Role>, sleeps: bool) -> Vec<Event> {
        assemble(records.to_vec(), roles, TID, sleeps, |time| time as f64)
    }

    #[test]
    fn a_switch_lasts_from_out_to_in_and_knows_who_ran() {
        let mut raw = [0_u8; 20];
        raw[4..9].copy_from_slice(b"rsync");
        let records = [
            sampled(SCHED, 5, 900, &[0; 20]),
            sampled(SCHED, TID, 1_000, &raw),
            left(false, 1_200),
            back(90_000),
        ];
        let made = events(&records, &roles(), false);
        assert_eq!(made.len(), 1);
        assert_eq!((made[0].at_ns, made[0].end_ns), (1_200.0, Some(90_000.0)));
        assert_eq!(made[0].who.as_deref(), Some("rsync"));
    }

    #[test]
    fn where_sleeping_is_work_only_what_was_not_asked_for_is_a_context_switch() {
        let records = [left(false, 1_000), back(90_000), left(true, 95_000), back(99_000)];
        let causes = |sleeps| -> Vec<Cause> {
            events(&records, &roles(), sleeps).iter().map(|event| event.cause).collect()
        };
        assert_eq!(causes(true), [Cause::Waiting, Cause::ContextSwitch]);
        assert_eq!(causes(false), [Cause::ContextSwitch; 2]);
    }

    #[test]
    fn records_from_two_rings_are_put_in_order() {
        let made = events(&[back(500), left(false, 100), sampled(FAULTS, TID, 50, &[])], &roles(), false);
        let causes: Vec<Cause> = made.iter().map(|event| event.cause).collect();
        assert_eq!(causes, [Cause::PageFault, Cause::ContextSwitch]);
    }

    #[test]
    fn a_handler_is_named_and_one_that_never_ended_is_left_out() {
        let mut raw = [0_u8; 12];
        raw[8] = 1;
        let records = [sampled(ENTER, 3, 10, &raw), sampled(LEAVE, 3, 30, &raw), sampled(ENTER, 3, 50, &raw)];
        let made = events(&records, &roles(), false);
        assert_eq!(made.len(), 1);
        assert_eq!(
            (made[0].at_ns, made[0].end_ns, made[0].who.as_deref()),
            (10.0, Some(30.0), Some("TIMER"))
        );
    }

    #[test]
    fn raw_data_that_are_too_short_name_nobody() {
        let cut =
            [sampled(ENTER, 3, 10, &[0; 9]), sampled(LEAVE, 3, 30, &[]), sampled(SCHED, TID, 40, &[0; 9])];
        let made = events(&[cut.as_slice(), &[left(false, 41), back(50)]].concat(), &roles(), false);
        let who: Vec<_> = made.iter().map(|event| (event.cause, event.who.as_deref())).collect();
        assert_eq!(who, [(Cause::Softirq, None), (Cause::ContextSwitch, None)]);
    }

    #[test]
    fn a_timers_interrupt_is_the_tick_only_if_the_ticks_handler_ran_in_it() {
        let roles = HashMap::from([
            (ENTER, Role::Enter(Cause::TimerTick, Which::Fixed(Arc::from("local_timer")))),
            (LEAVE, Role::Leave(Cause::TimerTick)),
            (TIMER, Role::Timer { function_offset: 8, ticks: vec![0xffff_8000] }),
        ]);
        let fired = |function: u64| [&[0_u8; 8][..], &function.to_ne_bytes(), &[0; 4]].concat();
        let (tick, other) = (fired(0xffff_8000), fired(0x1234));
        let records = [
            // While no interrupt is under way: of nobody here.
            sampled(TIMER, 3, 5, &tick),
            sampled(ENTER, 3, 10, &[]),
            sampled(TIMER, 3, 12, &tick),
            sampled(LEAVE, 3, 20, &[]),
            sampled(ENTER, 3, 30, &[]),
            sampled(TIMER, 3, 32, &other),
            sampled(LEAVE, 3, 40, &[]),
        ];
        let made = events(&records, &roles, false);
        let who: Vec<Option<&str>> = made.iter().map(|event| event.who.as_deref()).collect();
        assert_eq!(who, [Some(TICK), Some("local_timer")]);
        assert!(made.iter().all(|event| event.cause == Cause::TimerTick));
    }
}
