//! `kernel.spawn`: what it costs to start a thread or a process and to wait for its end.

use std::path::PathBuf;

#[cfg_attr(unix, path = "spawn/unix.rs")]
#[cfg_attr(not(unix), path = "spawn/other.rs")]
mod system;

use latlab_probes_shared::prelude::*;
use system::Start;

/// The probe.
pub struct Spawn;

/// Where `true` lies: the usual place, and the one before the two folders became one.
const TRUE: [&str; 2] = ["/usr/bin/true", "/bin/true"];

/// What is started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    operation: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    Thread,
    ForkExit,
    #[serde(rename = "posix_spawn")]
    PosixSpawn,
    Python,
}

impl What {
    const ALL: [Self; 4] = [Self::Thread, Self::ForkExit, Self::PosixSpawn, Self::Python];

    /// Starts in a block.
    fn starts(self, profile: Profile) -> u32 {
        let [quick, others] = match self {
            Self::Thread => [60, 200],
            Self::ForkExit => [20, 40],
            Self::PosixSpawn => [8, 16],
            Self::Python => [2, 3],
        };
        if profile == Profile::Quick { quick } else { others }
    }

    /// About what one takes, s; from a virtual machine of 2025.
    fn each_s(self) -> f64 {
        match self {
            Self::Thread => 20e-6,
            Self::ForkExit => 350e-6,
            Self::PosixSpawn => 700e-6,
            Self::Python => 10e-3,
        }
    }

    /// What starts it, where that is here.
    fn start(self, env: &Env) -> Result<Start> {
        let here = |path: Option<PathBuf>, operation| {
            path.ok_or_else(|| ProbeError::Other(format!("there is nothing to start for {operation}")))
        };
        match self {
            Self::Thread => Ok(Start::thread()),
            Self::ForkExit => Ok(Start::fork()),
            Self::PosixSpawn => Start::program(&here(program_true(), "posix_spawn")?, &[]),
            Self::Python => Start::program(&here(python(env), "python")?, &["-I", "-S", "-c", "pass"]),
        }
    }
}

/// What a fork copied.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Memory of the measuring process that was in RAM, where the system tells.
    resident_bytes: Option<u64>,
}

fn program_true() -> Option<PathBuf> {
    TRUE.iter().map(PathBuf::from).find(|path| path.is_file())
}

fn python(env: &Env) -> Option<PathBuf> {
    env.interpreter.as_ref()?.executable()
}

impl Probe for Spawn {
    type Point = Started;
    type Evidence = Ends;
    type Details = Memory;
    type Findings = Nothing;
    type Session<'env> = Starting<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.spawn",
        tier: Tier::Kernel,
        title: "starting threads and processes",
        question: "What does it cost to start a thread, a process or a Python interpreter, and to wait for its end?",
        method: "Each start is timed alone, from the call to the joined thread or the reaped process. What is started does nothing and ends at once. \
It runs on the same CPU as the thread that starts it and waits, because it inherits that thread's affinity: two switches are part of the figure, waking another CPU is not.

\"thread\" is pthread_create and pthread_join with the default attributes; the C library keeps the stacks of ended threads, so only the first one is mapped. \
\"fork-exit\" is fork, _exit in the child and waitpid. Fork copies the page tables of the whole process, and both sides then fault on what they write: the cost grows with the memory that the process holds, \
which is recorded (resident_bytes). It is that of the measuring process, some tens of MiB; a process of gigabytes pays milliseconds. \
\"posix_spawn\" starts the program true: no page table is copied, but a program is loaded. \
\"python\" starts the interpreter that runs latlab, by posix_spawn, as `python -I -S -c pass`: without site-packages and the user's settings. With them it takes a third longer at least, and as much more as packages do at its start.

Programs are found in the page cache: each is started once before it is timed. A program that has not ended after ten seconds is killed and the point fails.

Proof: each thread and each forked child ends with a code computed from its number, which is compared; true and Python must end with 0.",
        method_version: 1,
        convention: "one start, from the call to the joined or reaped end",
        needs: &["threads and processes"],
        touches: &["threads and processes, one at a time"],
        operations: Operations::SystemCalls,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Started> {
        if !system::AVAILABLE {
            return Plan::no("threads and processes are started by POSIX calls, which this system has not");
        }
        if Stamps::of(&env.clock).is_none() {
            return Plan::no("processes do not run in simulated time");
        }
        let here = What::ALL.into_iter().filter(|operation| operation.start(env).is_ok());
        let plan = Plan::of(here.map(|operation| planned(env, operation)).collect());
        if program_true().is_none() {
            return plan.degraded("there is no program true in /usr/bin or /bin to start");
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Started]) -> Result<Starting<'env>> {
        Starting::new(env, What::start)
    }
}

fn planned(env: &Env, operation: What) -> Planned<Started> {
    let is_headline = matches!(operation, What::Thread | What::ForkExit);
    Planned {
        rank: rank(env, is_headline, Rank::Detail),
        block_s: operation.each_s() * f64::from(operation.starts(env.settings.profile)),
        // One untimed start before each visit.
        setup_s: operation.each_s(),
        reach: Reach::Shared,
        ..Planned::new(Started { operation })
    }
}

/// What became of a point's starts.
#[derive(Default)]
pub struct Ends {
    /// Numbers the starts; each one's end depends on it.
    count: u64,
    /// The first one that ended otherwise than it should have.
    wrong: Option<String>,
    resident_bytes: Option<u64>,
}

impl Ends {
    /// One start; returns its begin and end.
    fn once(&mut self, start: &Start, stamps: Stamps) -> Result<(u64, u64)> {
        self.count += 1;
        let begin = stamps.begin();
        let ended = start.once(self.count)?;
        let end = stamps.end();
        let expected = start.expected(self.count);
        if ended != expected && self.wrong.is_none() {
            self.wrong = Some(format!("start {} ended with {ended}, not with {expected}", self.count));
        }
        Ok((begin, end))
    }

    /// Takes in what became of others.
    fn add(&mut self, others: Self) {
        self.count += others.count;
        self.wrong = self.wrong.take().or(others.wrong);
        self.resident_bytes = others.resident_bytes.or(self.resident_bytes);
    }
}

type Make = fn(What, &Env) -> Result<Start>;

/// What the selected point starts.
pub struct Starting<'env> {
    env: &'env Env,
    stamps: Stamps,
    /// Replaced in tests by one that starts something else.
    make: Make,
    start: Option<Start>,
    /// The start before the visit, for the evidence of its block.
    untimed: Ends,
}

impl<'env> Starting<'env> {
    fn new(env: &'env Env, make: Make) -> Result<Self> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("processes do not run in simulated time".to_owned()))?;
        Ok(Self { env, stamps, make, start: None, untimed: Ends::default() })
    }
}

impl Session<Spawn> for Starting<'_> {
    fn select(&mut self, point: &Started) -> Result<()> {
        let start = (self.make)(point.operation, self.env)?;
        self.untimed = Ends { resident_bytes: system::resident_bytes(), ..Ends::default() };
        self.untimed.once(&start, self.stamps)?;
        self.start = Some(start);
        Ok(())
    }

    fn block(&mut self, point: &Started, ends: &mut Ends, block: &mut Block) -> Result<()> {
        let Some(start) = &self.start else {
            return Err(ProbeError::Other("nothing to start is selected".to_owned()));
        };
        ends.add(std::mem::take(&mut self.untimed));
        block.set_waits();
        for _ in 0..point.operation.starts(self.env.settings.profile) {
            let (begin, end) = ends.once(start, self.stamps)?;
            block.span(begin, end);
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Started, ends: &Ends) -> Proof<Memory> {
        let all = || format!("{} starts, each joined or reaped", ends.count);
        let check = Check {
            name: "each ended as it should".to_owned(),
            ok: ends.count > 0 && ends.wrong.is_none(),
            detail: ends.wrong.clone().unwrap_or_else(all),
        };
        Proof::of(vec![check]).with(Memory { resident_bytes: ends.resident_bytes })
    }
}

#[cfg(test)]
mod tests;
