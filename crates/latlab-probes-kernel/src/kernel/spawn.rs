//! `kernel.spawn`: what it costs to start a thread or a process and to wait for its end.

use std::path::PathBuf;

use latlab_harness::{
    AnyProbe, AnySession, Block, Env, Operations, Planned, ProbeError, Proof, Rank, Reach, Spec, Stamps,
    Support, Tier,
};
use latlab_record::{Check, Point, Profile, Unit};
use serde_json::json;

#[cfg_attr(unix, path = "spawn/unix.rs")]
#[cfg_attr(not(unix), path = "spawn/other.rs")]
mod system;

use system::Start;

/// The probe.
pub struct Spawn;

static SPEC: Spec = Spec {
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
    unit: Unit::Ns,
    convention: "one start, from the call to the joined or reaped end",
    needs: &["threads and processes"],
    touches: &["threads and processes, one at a time"],
    saturates: false,
    operations: Operations::SystemCalls,
};

/// An operation: its name, and what a block of it takes.
struct Operation {
    name: &'static str,
    /// Starts in a block: in the quick profile, in the others.
    starts: [u32; 2],
    /// About what one takes, s; from a virtual machine of 2025.
    each_s: f64,
}

static OPERATIONS: &[Operation] = &[
    Operation { name: "thread", starts: [60, 200], each_s: 20e-6 },
    Operation { name: "fork-exit", starts: [20, 40], each_s: 350e-6 },
    Operation { name: "posix_spawn", starts: [8, 16], each_s: 700e-6 },
    Operation { name: "python", starts: [2, 3], each_s: 10e-3 },
];

/// Where `true` lies: the usual place, and the one before the two folders became one.
const TRUE: [&str; 2] = ["/usr/bin/true", "/bin/true"];

impl Operation {
    fn starts(&self, profile: Profile) -> u32 {
        self.starts[usize::from(profile != Profile::Quick)]
    }
}

fn program_true() -> Option<PathBuf> {
    TRUE.iter().map(PathBuf::from).find(|path| path.is_file())
}

fn python(env: &Env) -> Option<PathBuf> {
    env.interpreter.as_ref()?.executable()
}

impl AnyProbe for Spawn {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if !system::AVAILABLE {
            return Support::No(
                "threads and processes are started by POSIX calls, which this system has not".to_owned(),
            );
        }
        if Stamps::of(&env.clock).is_none() {
            return Support::No("processes do not run in simulated time".to_owned());
        }
        if program_true().is_none() {
            return Support::Degraded("there is no program true in /usr/bin or /bin to start".to_owned());
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        OPERATIONS
            .iter()
            .filter(|operation| match operation.name {
                "posix_spawn" => program_true().is_some(),
                "python" => python(env).is_some(),
                _ => true,
            })
            .map(|operation| Planned {
                rank: match operation.name {
                    "thread" | "fork-exit" => env.headline_but_quick(Rank::Detail),
                    _ => Rank::Detail,
                },
                block_s: operation.each_s * f64::from(operation.starts(env.settings.profile)),
                // One untimed start before each visit.
                setup_s: operation.each_s,
                reach: Reach::Shared,
                ..Planned::new(Point { operation: Some(operation.name.to_owned()), ..Point::default() })
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        0
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("processes do not run in simulated time".to_owned()))?;
        Ok(Box::new(Starting::new(env, stamps, start)))
    }
}

/// What does one start of this operation.
fn start(env: &Env, operation: &str) -> Result<Start, ProbeError> {
    let absent = || ProbeError::Other(format!("there is nothing to start for {operation}"));
    match operation {
        "thread" => Ok(Start::thread()),
        "fork-exit" => Ok(Start::fork()),
        "posix_spawn" => Start::program(&program_true().ok_or_else(absent)?, &[]),
        "python" => Start::program(&python(env).ok_or_else(absent)?, &["-I", "-S", "-c", "pass"]),
        _ => Err(absent()),
    }
}

/// What became of an operation's starts.
struct Tally {
    operation: String,
    /// Numbers the starts; each one's end depends on it.
    count: u64,
    /// The first one that ended otherwise than it should have.
    wrong: Option<String>,
    resident_bytes: Option<u64>,
}

struct Starting<'env> {
    env: &'env Env,
    stamps: Stamps,
    /// Replaced in tests by one that starts something else.
    make: fn(&Env, &str) -> Result<Start, ProbeError>,
    start: Option<Start>,
    tallies: Vec<Tally>,
    selected: usize,
}

impl<'env> Starting<'env> {
    fn new(env: &'env Env, stamps: Stamps, make: fn(&Env, &str) -> Result<Start, ProbeError>) -> Self {
        Self { env, stamps, make, start: None, tallies: Vec::new(), selected: 0 }
    }
}

impl Tally {
    /// One start; returns its begin and end.
    fn once(&mut self, start: &Start, stamps: Stamps) -> Result<(u64, u64), ProbeError> {
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
}

impl AnySession for Starting<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let operation = point.operation.clone().unwrap_or_default();
        let start = (self.make)(self.env, &operation)?;
        let known = self.tallies.iter().position(|tally| tally.operation == operation);
        self.selected = known.unwrap_or_else(|| {
            self.tallies.push(Tally { operation, count: 0, wrong: None, resident_bytes: None });
            self.tallies.len() - 1
        });
        let tally = &mut self.tallies[self.selected];
        tally.resident_bytes = system::resident_bytes();
        tally.once(&start, self.stamps)?;
        self.start = Some(start);
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let (Some(start), Some(tally)) = (&self.start, self.tallies.get_mut(self.selected)) else {
            return Err(ProbeError::Other("nothing to start is selected".to_owned()));
        };
        let starts = OPERATIONS
            .iter()
            .find(|operation| operation.name == tally.operation)
            .map_or(1, |operation| operation.starts(self.env.settings.profile));
        block.set_waits();
        for _ in 0..starts {
            let (begin, end) = tally.once(start, self.stamps)?;
            block.span(begin, end);
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let operation = point.operation.as_deref().unwrap_or_default();
        let Some(tally) = self.tallies.iter().find(|tally| tally.operation == operation) else {
            return Proof::default();
        };
        Proof {
            checks: vec![Check {
                name: "each ended as it should".to_owned(),
                ok: tally.count > 0 && tally.wrong.is_none(),
                detail: tally
                    .wrong
                    .clone()
                    .unwrap_or_else(|| format!("{} starts, each joined or reaped", tally.count)),
            }],
            findings: Some(json!({ "resident_bytes": tally.resident_bytes })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests;
