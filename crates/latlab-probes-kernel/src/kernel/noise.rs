//! `kernel.noise`: what keeps a thread from its work that only reads the clock.

use latlab_harness::{KnownCause, KnownCauses, is_pinned_to};
use latlab_observe::noise::{Judged, Listener, NoiseError, Request};
use latlab_observe::{Cause, Level};
use latlab_probes_shared::no_kernel;
use latlab_probes_shared::prelude::*;
use serde_json::Value;

/// The probe.
pub struct Noise;

/// Shorter gaps are not looked at: of those, an interrupt-free core has some too.
const THRESHOLD_NS: f64 = 1_000.0;
/// Length of the planted stall: longer than what usually comes by itself.
const STALL_NS: f64 = 50_000.0;
/// Nothing is heard on a CPU that is kept for one thread alone; then a block goes on for so long at most.
const MOST_PER_BLOCK_S: f64 = 2.0;
/// One turn of the listener.
const TURN_NS: f64 = 250e6;
/// Handlers are named; programs are not, as other people's business does not belong into a file.
const NAMED: [Cause; 4] = [Cause::TimerTick, Cause::Ipi, Cause::DeviceInterrupt, Cause::Softirq];

/// A thread that listens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listened {
    operation: Operation,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    Listen,
}

/// The figures of `latlab noise`, without what the record holds already and without other programs' names.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Heard {
    /// Time in gaps, of the time listened to.
    lost_share: f64,
    /// Gaps a second.
    per_s: f64,
    /// As `latlab noise` tells them.
    #[serde(flatten)]
    noise: serde_json::Map<String, Value>,
}

impl Probe for Noise {
    type Point = Listened;
    type Evidence = ();
    type Details = Heard;
    type Findings = Nothing;
    type Session<'env> = Listening<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.noise",
        tier: Tier::Kernel,
        title: "what interrupts a thread",
        question: "How often, for how long and by what is a program interrupted that makes no system calls?",
        method: "A thread on one CPU does nothing but read the time stamp counter. Whenever two readings \
            lie more than a microsecond apart, something interrupted it: that is a gap, and each gap is one \
            value, with its time. \
There is no system call, lock or allocation in the loop: a loop that asks the kernel something after each \
gap is preempted in its own call and misses half of the switches.

Each gap gets its cause from the evidence that this user may read. Tracepoints of this CPU's interrupts, \
softirqs and switches need root. Records of this thread's switches and page faults, and the flag that the \
kernel clears for a preempted thread, need no privilege, nor does a register that x86-64 processors clear \
on the way back from an interrupt: it says of each gap whether this kernel was entered. \
Gaps that none of them names may be periodic: a period is accepted when most of its instants have a gap, \
where chance would give that once in 1e13 times. It is this kernel's tick when /proc/interrupts counts as \
many timer interrupts, and the host's when it has a tick's rate and its gaps had no interrupt of this \
kernel, or nothing here counts it. What only the register names is some interrupt, or, where this kernel \
was not entered, time that was lost outside of it. \
What remains is unexplained and shown as such. A handler's own time is counted as explained; in a virtual \
machine about as much again goes into leaving and entering the guest, which is part of the gap.

No block is left out as disturbed, because disturbances are what is measured. Before each block a stall of \
known length is planted and must be found; it does not count. Between blocks, for less than a millisecond, \
nothing is recorded.

Gaps are counted a second. How many operations meet one depends on how long an operation takes: at 300 gaps \
a second, one in 33,000 of 100 ns and one in 333 of 10 µs.",
        method_version: 1,
        convention: "one clock read",
        touches: &["one CPU"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Listened> {
        if let Some(reason) = no_kernel(cfg!(target_os = "linux"), env) {
            return Plan::no(reason);
        }
        Plan::of(vec![Planned {
            rank: Rank::Once,
            setup_s: 1e-3,
            block_s: block_s(env.settings.profile),
            // It ends when its time does: gaps come when they come, and each second tells more of the rare
            // ones.
            least_blocks: usize::MAX,
            cache_scope: CacheScope::Disturbances,
            ..Planned::new(Listened { operation: Operation::Listen })
        }])
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Listened]) -> Result<Listening<'env>> {
        let request = Request {
            seconds: 0.0,
            cpu: env.home_cpu,
            threshold_ns: THRESHOLD_NS,
            highest: Level::Tracepoints,
        };
        let listener = Listener::of_this_thread(&env.clock, request, is_pinned_to(env.home_cpu));
        Ok(Listening {
            listener: listener.map_err(failed)?,
            block_ns: block_s(env.settings.profile) * 1e9,
            stalls: Vec::new(),
        })
    }
}

/// With 24 blocks at most, these fill the profile's 1.5, 4 and 30 seconds.
fn block_s(profile: Profile) -> f64 {
    match profile {
        Profile::Quick => 0.07,
        Profile::Standard => 0.17,
        Profile::Thorough => 1.25,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: NoiseError) -> ProbeError {
    ProbeError::Other(error.to_string())
}

/// Listens on this CPU.
pub struct Listening<'a> {
    listener: Listener<'a>,
    block_ns: f64,
    /// What was found of each planted stall, ns.
    stalls: Vec<Option<f64>>,
}

impl Session<Noise> for Listening<'_> {
    fn select(&mut self, _point: &Listened) -> Result<()> {
        self.stalls.push(self.listener.rehearse(STALL_NS).map_err(failed)?);
        Ok(())
    }

    fn block(&mut self, _point: &Listened, _evidence: &mut (), block: &mut Block) -> Result<()> {
        block.set_tail_threshold_ns(THRESHOLD_NS);
        let (mut heard_ns, mut gaps) = (0.0, 0);
        while heard_ns < self.block_ns || (gaps == 0 && heard_ns < MOST_PER_BLOCK_S * 1e9) {
            let left_ns = (self.block_ns - heard_ns).max(self.block_ns.min(TURN_NS) / 10.0);
            let (heard, found) = self.listener.turn(left_ns.min(TURN_NS)).map_err(failed)?;
            heard_ns += block.span_ns(heard.begin, heard.end);
            gaps += found.len();
            let spans = found.iter().map(|gap| (gap.begin, gap.end));
            block.listened(heard.begin, heard.end, heard.clock_reads, spans);
        }
        if gaps == 0 {
            return Err(ProbeError::Other(format!(
                "nothing interrupted this CPU for 1 µs or more in {:.1} s: there is no gap to report",
                heard_ns / 1e9
            )));
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Listened, _evidence: &()) -> Proof<Heard> {
        let judged = self.listener.judge();
        Proof {
            checks: checks(judged.as_ref(), &self.stalls),
            engine: judged.as_ref().map(|judged| judged.noise.level.name().to_owned()),
            causes: judged.as_ref().map(causes),
            findings: judged.map(heard),
            ..Proof::default()
        }
    }

    fn closing_s(&self) -> f64 {
        // What judging all gaps takes, most of it looking for periods.
        0.1
    }
}

fn causes(judged: &Judged) -> KnownCauses {
    let each = judged.samples.iter().zip(&judged.each).map(|(sample, one)| KnownCause {
        at_ns: sample.at_ns,
        cause: one.cause,
        explained_ns: one.explained_ns,
    });
    KnownCauses { level: judged.noise.level, each: each.collect() }
}

fn checks(judged: Option<&Judged>, stalls: &[Option<f64>]) -> Vec<Check> {
    let found: Vec<f64> = stalls.iter().copied().flatten().collect();
    let shortest = found.iter().copied().fold(f64::INFINITY, f64::min);
    // One clock made and measured the stall; a tick's rounding is all they can differ by.
    let heard = found.len() == stalls.len() && shortest >= 0.999 * STALL_NS;
    let mut checks = vec![Check {
        name: "planted stalls were heard".to_owned(),
        ok: heard && !stalls.is_empty(),
        detail: format!(
            "{} of {} stalls of {:.0} µs, the shortest as a gap of {:.1} µs",
            found.len(),
            stalls.len(),
            STALL_NS / 1e3,
            if found.is_empty() { 0.0 } else { shortest / 1e3 }
        ),
    }];
    let Some(judged) = judged else { return checks };
    let noise = &judged.noise;
    let heard_ns = noise.seconds * 1e9;
    // Time that is in no gap went into steps; a loop that did more than read the clock would take longer
    // ones.
    let step_ns = (heard_ns - noise.gaps_ns) / (heard_ns / noise.step_ns).max(1.0);
    checks.push(Check {
        name: "the loop did nothing but look".to_owned(),
        ok: step_ns > 0.0 && step_ns < THRESHOLD_NS / 4.0,
        detail: format!(
            "a clock read every {step_ns:.1} ns while uninterrupted; gaps count from {THRESHOLD_NS:.0} ns"
        ),
    });
    let apart = judged
        .samples
        .windows(2)
        // One gap may begin at the clock read that ended the other; ticks become nanoseconds with a rounding.
        .all(|pair| pair[0].end_ns() <= pair[1].at_ns + 1.0);
    checks.push(Check {
        name: "gaps follow each other".to_owned(),
        ok: apart && noise.gaps_ns <= heard_ns,
        detail: format!(
            "{} gaps without overlap take {:.3} ms of {:.0} ms",
            noise.gaps,
            noise.gaps_ns / 1e6,
            heard_ns / 1e6
        ),
    });
    checks
}

/// Without other programs' names and what the record holds already.
fn heard(judged: Judged) -> Heard {
    let mut noise = judged.noise;
    noise.longest.clear();
    for row in &mut noise.causes {
        if !NAMED.contains(&row.cause) {
            row.who.clear();
        }
    }
    // Devices are numbered by the kernel; their names may be somebody's.
    noise.counted.interrupts.clear();
    Heard {
        lost_share: noise.gaps_ns / (noise.seconds * 1e9),
        per_s: noise.gaps as f64 / noise.seconds,
        noise: serde_json::to_value(noise)
            .ok()
            .and_then(|noise| noise.as_object().cloned())
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::Erased;
    use latlab_probes_testing as testing;
    use latlab_record::Record;

    use super::*;

    /// Of a run of eight visits: each hears one gap at least, and a median takes six.
    fn record() -> Record {
        let env = testing::env(64 << 20);
        let record = testing::records_of_visits(&Erased(Noise), &env, 8).remove(0);
        assert!(record.error.is_none(), "{:?}", record.error);
        record
    }

    #[test]
    fn its_record_holds_each_gap_with_a_time_and_shares_that_add_up() {
        let record = record();
        assert_eq!(record.tail.len() as u64 + record.tail_dropped, record.samples);
        assert!(record.tail.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        let findings = record.findings.as_ref().expect("figures");
        let rows = findings["causes"].as_array().expect("rows");
        let sum = |field: &str| rows.iter().filter_map(|row| row[field].as_f64()).sum::<f64>();
        assert!((sum("share_time") - 1.0).abs() < 1e-9);
        assert!((sum("per_s") - findings["per_s"].as_f64().unwrap()).abs() < 1e-6);
        let lost = findings["lost_share"].as_f64().unwrap();
        assert!(lost > 0.0 && lost <= 1.0, "{lost}");
        assert!((sum("ns_per_s") / 1e9 / lost - 1.0).abs() < 1e-9);
        // The causes of the record are those of the figures.
        let causes = &record.tail_causes.as_ref().expect("causes").causes;
        if record.tail_dropped > 0 {
            // An emulated or crowded machine has more gaps than are kept, and those at least have causes.
            let attributed = causes.iter().map(|row| row.count).sum::<u64>();
            assert!((record.tail.len() as u64..=record.samples).contains(&attributed));
            return;
        }
        assert_eq!(causes.iter().map(|row| row.count).sum::<u64>(), record.samples);
        for row in rows {
            let same = causes.iter().find(|one| row["cause"] == one.cause.as_str());
            assert_eq!(same.map(|one| one.count), row["count"].as_u64(), "{row}");
        }
        assert!(record.work.ops > record.samples, "operations are clock reads");
    }

    #[test]
    fn no_block_is_left_out_as_disturbed() {
        let record = record();
        assert!(!record.blocks.is_empty());
        assert!(record.blocks.iter().all(|block| !block.disturbed));
    }

    #[test]
    fn a_stall_that_was_not_heard_fails_the_proof() {
        for stalls in [&[Some(50_100.0), None][..], &[Some(20_000.0)], &[]] {
            assert!(!checks(None, stalls)[0].ok, "{stalls:?}");
        }
        assert!(checks(None, &[Some(50_100.0)])[0].ok);
    }

    #[test]
    fn a_loop_that_did_more_than_read_the_clock_fails_the_proof() {
        let env = testing::env(64 << 20);
        let request = Request {
            seconds: 0.0,
            cpu: env.home_cpu,
            threshold_ns: THRESHOLD_NS,
            highest: Level::TimeStamps,
        };
        let mut listener = Listener::of_this_thread(&env.clock, request, false).expect("a real clock");
        listener.turn(20e6).expect("a real clock");
        let mut judged = listener.judge().expect("a turn");
        let stalls = [Some(50_100.0)];
        assert!(checks(Some(&judged), &stalls)[1].ok);
        judged.noise.step_ns *= 100.0;
        judged.noise.gaps_ns = 0.0;
        assert!(!checks(Some(&judged), &stalls)[1].ok);
        judged.noise.gaps_ns = 1e12;
        assert!(!checks(Some(&judged), &stalls)[2].ok);
    }

    #[test]
    fn names_of_programs_stay_out_of_the_file() {
        let findings = record().findings.expect("figures");
        for row in findings["causes"].as_array().expect("rows") {
            let named = NAMED.iter().any(|cause| row["cause"] == cause.name());
            assert!(named || row["who"].as_array().is_some_and(Vec::is_empty), "{row}");
        }
    }
}
