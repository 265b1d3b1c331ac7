//! `clock.read`: what reading each clock costs, and the smallest step that each one shows.

use latlab_clock::{Clock, OsClockId, Source, os_clocks};
use latlab_probes_shared::prelude::*;

/// The probe.
pub struct Read;

/// Readings of which the smallest step is kept.
const STEPS: u64 = 20_000;
const PYTHON: [(&str, &str); 4] = [
    ("python.time.time", "time.time"),
    ("python.time.perf_counter", "time.perf_counter"),
    ("python.time.perf_counter_ns", "time.perf_counter_ns"),
    ("python.time.monotonic_ns", "time.monotonic_ns"),
];

/// What programs ask, and the dearest: the ends of what is said of clocks.
const HEADLINE: [&str; 3] = ["CLOCK_MONOTONIC", "CLOCK_PROCESS_CPUTIME_ID", "python.time.perf_counter"];

/// Which clock is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    clock: String,
}

/// What a clock showed.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    /// The smallest difference above zero between two readings in a row, ns; nothing where it never moved.
    resolution_ns: Option<f64>,
}

impl Probe for Read {
    type Point = Named;
    type Evidence = ();
    type Details = Resolution;
    type Findings = Nothing;
    type Session<'env> = Reading<'env>;

    const SPEC: Spec = Spec {
        id: "clock.read",
        tier: Tier::Clock,
        title: "cost and step of every clock",
        question: "What does it cost to read a clock here, and how small a difference can it show?",
        method: "Each clock that a program here could use is read again and again, in windows of about 20 \
            µs; a window's mean is one value. \
The counter is read with the fences that latlab's own timed regions have, because that is what a timed \
region costs.

The step is the smallest difference above zero between two consecutive readings, over 20,000 of them: what \
the clock shows, not its nominal resolution. \
A clock whose step is larger than its cost returns the same time twice; one whose step is far below its \
cost can only time what is longer than the cost.

Python's clocks are called from a loop of Python code, sixteen calls an iteration, in the interpreter that \
latlab runs in: that is what a Python program pays.",
        method_version: 1,
        convention: "one reading",
        touches: &["nothing"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Named> {
        let own = own_name(&env.clock);
        let of_python = PYTHON.iter().map(|(name, _)| *name).filter(|_| env.interpreter.is_some());
        let names =
            std::iter::once(own).chain(os_clocks().into_iter().map(|(name, _)| name)).chain(of_python);
        let planned = |name: &str| Planned {
            rank: rank(env, HEADLINE.contains(&name) || name == own, Rank::Detail),
            cache_scope: CacheScope::First,
            ..Planned::new(Named { clock: name.to_owned() })
        };
        Plan::of(names.map(planned).collect())
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Named]) -> Result<Reading<'env>> {
        Ok(Reading { env, reader: None, steps: Vec::new() })
    }
}

/// The clock of the run, as a point's name.
fn own_name(clock: &Clock) -> &'static str {
    match &clock.source {
        Source::Hardware(_) if cfg!(target_arch = "aarch64") => "cntvct",
        Source::Hardware(_) => "tsc",
        Source::Os(_) => "latlab's fallback clock",
        Source::Simulated(_) => "simulated",
    }
}

/// The clock that is read now, and the steps of those that were.
pub struct Reading<'env> {
    env: &'env Env,
    reader: Option<Box<dyn Batch + 'env>>,
    /// Smallest step of each clock met so far, ns, looked for at its first visit; `None` when it never moved.
    steps: Vec<(String, Option<f64>)>,
}

struct Own<'env>(&'env Clock);
struct System(OsClockId);

impl Batch for Own<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        let source = &self.0.source;
        (0..ops).fold(0, |sum, _| sum ^ source.now())
    }
}

impl Batch for System {
    fn run(&mut self, ops: u64) -> u64 {
        (0..ops).fold(0, |sum, _| sum ^ self.0.read())
    }
}

/// Smallest difference above zero between readings in a row.
fn smallest_step(mut read: impl FnMut() -> u64) -> Option<u64> {
    let mut last = read();
    let mut smallest = None;
    for _ in 0..STEPS {
        let now = read();
        let step = now.saturating_sub(last);
        if step > 0 {
            smallest = Some(smallest.map_or(step, |least: u64| least.min(step)));
        }
        last = now;
    }
    smallest
}

/// Calls a clock of Python's sixteen times a turn.
fn python_reader(call: &str) -> String {
    let calls = "    c()\n".repeat(16);
    let calls = calls.replace("    c()", "        c()");
    format!(
        "import time\ndef run(n, c={call}):\n    for _ in range(n // 16):\n{calls}    for _ in range(n % 16):\n        c()\n    return 1\n"
    )
}

/// Returns the smallest step in picoseconds, 0 when the clock never moved.
fn python_step(call: &str) -> String {
    let unit = if call.ends_with("_ns") { "1_000" } else { "1_000_000_000_000" };
    format!(
        "import time\ndef run(n, c={call}):\n    least = 0\n    last = c()\n    for _ in range(n):\n        now = c()\n        step = now - last\n        \
if step > 0 and (least == 0 or step < least):\n            least = step\n        last = now\n    return round(least * {unit})\n"
    )
}

impl Reading<'_> {
    fn python(&self, program: &str) -> Result<Box<dyn Batch>> {
        let interpreter =
            self.env.interpreter.as_ref().ok_or_else(|| ProbeError::Other("no interpreter".to_owned()))?;
        interpreter.compile(program).map_err(ProbeError::Other)
    }
}

impl<'env> Session<Read> for Reading<'env> {
    fn select(&mut self, Named { clock: name }: &Named) -> Result<()> {
        let clock: &'env Clock = &self.env.clock;
        let known = self.steps.iter().any(|(known, _)| known == name);
        let mut step_ns = None;
        if name == own_name(clock) {
            self.reader = Some(Box::new(Own(clock)));
            if !known {
                step_ns = smallest_step(|| clock.source.now()).map(|ticks| clock.ns(ticks));
            }
        } else if let Some((_, id)) = os_clocks().into_iter().find(|(own, _)| own == name) {
            self.reader = Some(Box::new(System(id)));
            if !known {
                step_ns = smallest_step(|| id.read()).map(|ns| ns as f64);
            }
        } else if let Some((_, call)) = PYTHON.iter().find(|(own, _)| own == name) {
            self.reader = Some(self.python(&python_reader(call))?);
            if !known {
                let ps = self.python(&python_step(call))?.run(STEPS);
                step_ns = (ps > 0).then_some(ps as f64 / 1e3);
            }
        } else {
            return Err(ProbeError::Other(format!("there is no clock {name} here")));
        }
        if !known {
            self.steps.push((name.clone(), step_ns));
        }
        Ok(())
    }

    fn block(&mut self, _point: &Named, _evidence: &mut (), block: &mut Block) -> Result<()> {
        let reader =
            self.reader.as_mut().ok_or_else(|| ProbeError::Other("no clock is selected".to_owned()))?;
        block.batches(reader.as_mut());
        Ok(())
    }

    fn proof(&mut self, Named { clock: name }: &Named, _evidence: &()) -> Proof<Resolution> {
        let step = self.steps.iter().find(|(own, _)| own == name).and_then(|(_, step)| *step);
        let moves = Check {
            name: "the clock moves".to_owned(),
            ok: step.is_some() || name.contains("COARSE"),
            detail: step.map_or_else(
                || format!("no difference in {STEPS} readings in a row"),
                |ns| format!("smallest difference {ns:.3} ns"),
            ),
        };
        let interpreter = self.env.interpreter.as_ref().filter(|_| name.starts_with("python."));
        Proof {
            engine: interpreter.map(|interpreter| interpreter.name()),
            ..Proof::of(vec![moves]).with(Resolution { resolution_ns: step })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_step_ignores_repeated_readings() {
        let mut readings = [5u64, 5, 5, 31, 31, 57, 67].into_iter().chain(std::iter::repeat(67));
        assert_eq!(smallest_step(|| readings.next().unwrap_or(67)), Some(10));
    }

    #[test]
    fn a_clock_that_never_moves_has_no_step() {
        assert_eq!(smallest_step(|| 42), None);
    }

    #[test]
    fn the_python_programs_define_run_and_name_the_clock() {
        for (_, call) in PYTHON {
            for program in [python_reader(call), python_step(call)] {
                assert!(program.contains(&format!("def run(n, c={call})")), "{program}");
                assert!(!program.contains('\t'));
            }
        }
    }
}
