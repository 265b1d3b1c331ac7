//! The kernel's perf records as bytes, and the events that they are evidence of. Pure; the layout is that of `perf_event_open(2)` with
//! [`SAMPLE_TYPE`].

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Cause, Event, Proof, requests};

const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;
/// What every record carries: who, when, where and of which event.
pub(crate) const SAMPLE_TYPE: u64 = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_IDENTIFIER;
/// The same with the tracepoint's own fields.
pub(crate) const SAMPLE_TYPE_RAW: u64 = SAMPLE_TYPE | SAMPLE_RAW;

const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const MISC_SWITCH_OUT: u16 = 1 << 13;
/// The thread would have run on. Linux 4.17 and later; before, nobody knows.
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Identifier at the end of a record that is no sample: ids, time, CPU, event; 8 bytes each.
const TRAILER: usize = 32;

/// What a record of an event is to be taken as.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Switches of the observed thread, as `PERF_RECORD_SWITCH`.
    Switches,
    /// Something that happened at a moment.
    Moment(Cause, Proof),
    /// A handler was entered; with the field of the record that says which.
    Enter(Cause, Which),
    /// It was left.
    Leave(Cause),
    /// It was left, and says at this offset of the raw data how long it took, ns.
    Lasted(Cause, usize),
    /// A timer of the kernel ran out: the address of its handler stands at this offset, and one of these handlers is the tick.
    Timer {
        /// Offset of `function` in the raw data.
        function_offset: usize,
        /// Addresses of the tick's handlers.
        ticks: Vec<u64>,
    },
    /// A block device was handed a request.
    HandedOver(requests::Which),
    /// It had done it.
    Ended(requests::Which),
    /// The scheduler chose another thread: whose name stands at this offset.
    NextThread {
        /// Offset of `next_comm` in the raw data.
        name_offset: usize,
    },
}

/// How a handler is named by its tracepoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Which {
    /// By the tracepoint itself.
    Fixed(Arc<str>),
    /// By a number at this offset in the raw data, of these names.
    Numbered(usize, &'static [&'static str]),
    /// By a text whose place is said by the 32 bits at this offset.
    Text(usize),
}

impl Role {
    /// Whether samples of the event must carry its own fields.
    pub(crate) fn needs_raw(&self) -> bool {
        matches!(
            self,
            Self::NextThread { .. }
                | Self::Timer { .. }
                | Self::Lasted(..)
                | Self::HandedOver(_)
                | Self::Ended(_)
                | Self::Enter(_, Which::Numbered(..) | Which::Text(_))
        )
    }
}

/// One record that means something here. Times are the kernel's, nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamp {
    pub(crate) time_ns: u64,
    pub(crate) tid: u32,
    pub(crate) event: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    SwitchedOut { preempted: bool },
    SwitchedIn,
    Sample(Vec<u8>),
}

/// What one drain of a ring gave.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) stamps: Vec<Stamp>,
    /// Records for which the ring had no room.
    pub(crate) lost: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Decodes a run of records; `raw` says of an event whether its samples carry raw data. What is unknown or damaged is skipped; a length
/// that cannot be ends the run.
pub(crate) fn decode(mut bytes: &[u8], raw: impl Fn(u64) -> bool, into: &mut Decoded) {
    while let (Some(kind), Some(misc), Some(size)) = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6)) {
        let size = usize::from(size);
        if size < 8 || size > bytes.len() {
            return;
        }
        let (record, rest) = bytes.split_at(size);
        bytes = rest;
        match kind {
            RECORD_LOST => into.lost += u64_at(record, 16).unwrap_or(0),
            RECORD_SAMPLE => into.stamps.extend(sample(record, &raw)),
            RECORD_SWITCH => into.stamps.extend(switch(record, misc)),
            _ => {}
        }
    }
}

fn sample(record: &[u8], raw: &impl Fn(u64) -> bool) -> Option<Stamp> {
    let event = u64_at(record, 8)?;
    let data = if raw(event) {
        let length = u32_at(record, 40)? as usize;
        record.get(44..44 + length)?.to_vec()
    } else {
        Vec::new()
    };
    Some(Stamp { event, tid: u32_at(record, 20)?, time_ns: u64_at(record, 24)?, what: What::Sample(data) })
}

fn switch(record: &[u8], misc: u16) -> Option<Stamp> {
    let trailer = record.get(record.len().checked_sub(TRAILER)?..)?;
    Some(Stamp {
        tid: u32_at(trailer, 4)?,
        time_ns: u64_at(trailer, 8)?,
        event: u64_at(trailer, 24)?,
        what: if misc & MISC_SWITCH_OUT == 0 {
            What::SwitchedIn
        } else {
            What::SwitchedOut { preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0 }
        },
    })
}

/// Who it was when the local timer's interrupt was the kernel's tick, and not a timer that somebody set. Only where that could be seen.
pub(crate) const TICK: &str = "tick";

/// A switch record and the tracepoint of the same switch are written within this time of each other.
const SAME_SWITCH_NS: u64 = 50_000;

/// Pairs begins and ends. `tid` is the observed thread; `at_ns` turns the kernel's time into that of the run's clock. Where `sleeps` are
/// part of the work, an absence that the thread asked for is [`Cause::Waiting`]; else each is a context switch.
pub(crate) fn assemble(
    mut stamps: Vec<Stamp>,
    roles: &HashMap<u64, Role>,
    tid: u32,
    sleeps: bool,
    at_ns: impl Fn(u64) -> f64,
) -> Vec<Event> {
    stamps.sort_by_key(|stamp| stamp.time_ns);
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
    for stamp in stamps {
        let Some(role) = roles.get(&stamp.event) else {
            continue;
        };
        match (&stamp.what, role) {
            (What::SwitchedOut { preempted }, _) => out = Some((stamp.time_ns, *preempted)),
            (What::SwitchedIn, _) => {
                if let Some((begin, preempted)) = out.take() {
                    let who = next
                        .take()
                        .filter(|(at, _)| at.abs_diff(begin) < SAME_SWITCH_NS)
                        .map(|(_, name)| name);
                    let cause = if sleeps && !preempted { Cause::Waiting } else { Cause::ContextSwitch };
                    events.push(event(cause, Proof::SwitchRecord, begin, Some(stamp.time_ns), who));
                }
            }
            (What::Sample(raw), Role::NextThread { name_offset }) if stamp.tid == tid => {
                next = text(raw, *name_offset, 16).map(|name| (stamp.time_ns, name));
            }
            (What::Sample(_), Role::Moment(cause, proof)) => {
                events.push(event(*cause, *proof, stamp.time_ns, None, None));
            }
            (What::Sample(raw), Role::Enter(cause, which)) => {
                entered.push(Entered { opened: *cause, time_ns: stamp.time_ns, who: named(raw, which) });
            }
            (What::Sample(raw), Role::Timer { function_offset, ticks }) => {
                let is_tick = u64_at(raw, *function_offset).is_some_and(|function| ticks.contains(&function));
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
                    let end = Some(stamp.time_ns);
                    events.push(event(cause, Proof::Tracepoint, handler.time_ns, end, handler.who));
                }
            }
            (What::Sample(raw), Role::Lasted(cause, offset)) => {
                let begin = stamp.time_ns.saturating_sub(u64_at(raw, *offset).unwrap_or(0));
                let end = Some(stamp.time_ns);
                events.push(event(*cause, Proof::Tracepoint, begin, end, None));
            }
            (What::Sample(_), _) => {}
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

fn named(raw: &[u8], which: &Which) -> Option<Arc<str>> {
    match which {
        Which::Fixed(name) => Some(Arc::clone(name)),
        Which::Numbered(offset, names) => {
            names.get(u32_at(raw, *offset)? as usize).map(|name| Arc::from(*name))
        }
        Which::Text(offset) => {
            let place = u32_at(raw, *offset)?;
            text(raw, (place & 0xffff) as usize, (place >> 16) as usize)
        }
    }
}

/// A text of at most `length` bytes that ends at its first zero.
fn text(raw: &[u8], offset: usize, length: usize) -> Option<Arc<str>> {
    let bytes = raw.get(offset..offset + length)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (end > 0).then(|| Arc::from(String::from_utf8_lossy(&bytes[..end]).as_ref()))
}

/// Offset of a field in a tracepoint's raw data, from its `format` file: `field:char next_comm[16]; offset:40; size:16; ...`.
pub(crate) fn field_offset(format: &str, field: &str) -> Option<usize> {
    format.lines().find_map(|line| {
        let declaration = line.trim_start().strip_prefix("field:")?;
        let (declaration, rest) = declaration.split_once(';')?;
        let name = declaration.split_ascii_whitespace().next_back()?;
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        // `__data_loc char[] name`: the type holds the brackets.
        (name == field).then_some(())?;
        let offset = rest.split_once("offset:")?.1;
        offset.split_once(';')?.0.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCHES: u64 = 11;
    const FAULTS: u64 = 12;
    const ENTER: u64 = 13;
    const LEAVE: u64 = 14;
    const SCHED: u64 = 15;
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

    fn header(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(body.len() + 8).unwrap();
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
    }

    fn ids(tid: u32, time: u64, event: Option<u64>) -> Vec<u8> {
        let mut bytes = [&1_u32.to_ne_bytes()[..], &tid.to_ne_bytes(), &time.to_ne_bytes(), &[0; 8]].concat();
        if let Some(event) = event {
            bytes.extend(event.to_ne_bytes());
        }
        bytes
    }

    fn switched(out: bool, time: u64) -> Vec<u8> {
        let misc = if out { MISC_SWITCH_OUT } else { 0 };
        header(RECORD_SWITCH, misc, &ids(TID, time, Some(SWITCHES)))
    }

    fn sampled(event: u64, tid: u32, time: u64, raw: Option<&[u8]>) -> Vec<u8> {
        let mut body = [&event.to_ne_bytes()[..], &ids(tid, time, None)].concat();
        if let Some(raw) = raw {
            body.extend(u32::try_from(raw.len()).unwrap().to_ne_bytes());
            body.extend(raw);
        }
        header(RECORD_SAMPLE, 0, &body)
    }

    fn events(bytes: &[u8]) -> (Vec<Event>, u64) {
        events_where(bytes, false)
    }

    fn events_where(bytes: &[u8], sleeps: bool) -> (Vec<Event>, u64) {
        let mut decoded = Decoded::default();
        decode(bytes, |event| event >= ENTER, &mut decoded);
        let lost = decoded.lost;
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let made = assemble(decoded.stamps, &roles(), TID, sleeps, |time| time as f64);
        (made, lost)
    }

    #[test]
    fn a_switch_lasts_from_out_to_in_and_knows_who_ran() {
        let mut raw = [0_u8; 20];
        raw[4..9].copy_from_slice(b"rsync");
        let bytes = [
            sampled(SCHED, 5, 900, Some(&[0; 20])),
            sampled(SCHED, TID, 1_000, Some(&raw)),
            switched(true, 1_200),
            switched(false, 90_000),
        ]
        .concat();
        let (made, _) = events(&bytes);
        assert_eq!(made.len(), 1);
        assert_eq!((made[0].at_ns, made[0].end_ns), (1_200.0, Some(90_000.0)));
        assert_eq!(made[0].who.as_deref(), Some("rsync"));
    }

    #[test]
    fn where_sleeping_is_work_only_what_was_not_asked_for_is_a_context_switch() {
        let misc = MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT;
        let bytes = [
            switched(true, 1_000),
            switched(false, 90_000),
            header(RECORD_SWITCH, misc, &ids(TID, 95_000, Some(SWITCHES))),
            switched(false, 99_000),
        ]
        .concat();
        let causes = |sleeps| -> Vec<Cause> {
            let (made, _) = events_where(&bytes, sleeps);
            made.iter().map(|event| event.cause).collect()
        };
        assert_eq!(causes(true), [Cause::Waiting, Cause::ContextSwitch]);
        assert_eq!(causes(false), [Cause::ContextSwitch; 2]);
    }

    #[test]
    fn records_from_two_rings_are_put_in_order() {
        let bytes = [switched(false, 500), switched(true, 100), sampled(FAULTS, TID, 50, None)].concat();
        let (made, _) = events(&bytes);
        let causes: Vec<Cause> = made.iter().map(|event| event.cause).collect();
        assert_eq!(causes, [Cause::PageFault, Cause::ContextSwitch]);
    }

    #[test]
    fn a_handler_is_named_and_one_that_never_ended_is_left_out() {
        let mut raw = [0_u8; 12];
        raw[8] = 1;
        let bytes = [
            sampled(ENTER, 3, 10, Some(&raw)),
            sampled(LEAVE, 3, 30, Some(&raw)),
            sampled(ENTER, 3, 50, Some(&raw)),
        ]
        .concat();
        let (made, _) = events(&bytes);
        assert_eq!(made.len(), 1);
        assert_eq!(
            (made[0].at_ns, made[0].end_ns, made[0].who.as_deref()),
            (10.0, Some(30.0), Some("TIMER"))
        );
    }

    #[test]
    fn a_timers_interrupt_is_the_tick_only_if_the_ticks_handler_ran_in_it() {
        const TIMER: u64 = 21;
        let roles = HashMap::from([
            (ENTER, Role::Enter(Cause::TimerTick, Which::Fixed(Arc::from("local_timer")))),
            (LEAVE, Role::Leave(Cause::TimerTick)),
            (TIMER, Role::Timer { function_offset: 8, ticks: vec![0xffff_8000] }),
        ]);
        let fired = |function: u64, time| {
            let raw = [&[0_u8; 8][..], &function.to_ne_bytes(), &[0; 4]].concat();
            sampled(TIMER, 3, time, Some(&raw))
        };
        let bytes = [
            // While no interrupt is under way: of nobody here.
            fired(0xffff_8000, 5),
            sampled(ENTER, 3, 10, None),
            fired(0xffff_8000, 12),
            sampled(LEAVE, 3, 20, None),
            sampled(ENTER, 3, 30, None),
            fired(0x1234, 32),
            sampled(LEAVE, 3, 40, None),
        ]
        .concat();
        let mut decoded = Decoded::default();
        decode(&bytes, |event| event == TIMER, &mut decoded);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let made = assemble(decoded.stamps, &roles, TID, false, |time| time as f64);
        let who: Vec<Option<&str>> = made.iter().map(|event| event.who.as_deref()).collect();
        assert_eq!(who, [Some(TICK), Some("local_timer")]);
        assert!(made.iter().all(|event| event.cause == Cause::TimerTick));
    }

    #[test]
    fn lost_records_are_counted_and_unknown_ones_skipped() {
        let lost = [&9_u64.to_ne_bytes()[..], &41_u64.to_ne_bytes()].concat();
        let bytes =
            [header(4, 0, &[1; 16]), header(RECORD_LOST, 0, &lost), switched(true, 1), switched(false, 2)]
                .concat();
        let (made, lost) = events(&bytes);
        assert_eq!((made.len(), lost), (1, 41));
    }

    #[test]
    fn damage_ends_quietly() {
        let whole = [switched(true, 1), sampled(ENTER, 3, 10, Some(&[0; 12]))].concat();
        for length in 0..whole.len() {
            let (made, lost) = events(&whole[..length]);
            assert_eq!((made.len(), lost), (0, 0));
        }
        assert_eq!(events(&[0; 64]).0, []);
    }

    #[test]
    fn a_fields_offset_is_read_from_the_format() {
        let format = "name: sched_switch\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                      \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                      \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";
        assert_eq!(field_offset(format, "prev_comm"), Some(8));
        assert_eq!(field_offset(format, "prev_pid"), Some(24));
        assert_eq!(field_offset(format, "name"), Some(12));
        assert_eq!(field_offset(format, "next_pid"), None);
    }
}
