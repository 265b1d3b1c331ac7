//! `kernel.spawn`: what it costs to start a thread or a process and to wait for its end.

use std::path::PathBuf;

#[cfg_attr(unix, path = "spawn/unix.rs")]
#[cfg_attr(not(unix), path = "elsewhere/mod.rs")]
mod work;

use latlab_probes_shared::prelude::*;

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

    /// Whether there is something to start.
    fn is_here(self, env: &Env) -> bool {
        match self {
            Self::Thread | Self::ForkExit => true,
            Self::PosixSpawn => program_true().is_some(),
            Self::Python => python(env).is_some(),
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
    type Evidence = work::Evidence;
    type Details = Memory;
    type Findings = Nothing;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.spawn",
        tier: Tier::Kernel,
        title: "starting threads and processes",
        question: "What does it cost to start a thread, a process or a Python interpreter, and to wait for \
            its end?",
        method: "Each start is timed alone, from the call to the joined thread or the reaped process. What \
            is started does nothing and ends immediately. \
It runs on the same CPU as the thread that starts it and waits, because it inherits that thread's affinity: \
two switches are part of the figure, waking another CPU is not.

\"thread\" is pthread_create and pthread_join with the default attributes; the C library keeps the stacks \
of ended threads, so only the first one is mapped. \
\"fork-exit\" is fork, _exit in the child and waitpid. Fork copies the page tables of the whole process, \
and both sides then fault on what they write: the cost grows with the memory that the process holds, \
which is recorded (resident_bytes). It is that of the measuring process, some tens of MiB; a process of \
gigabytes pays milliseconds. \
\"posix_spawn\" starts the program true: no page table is copied, but a program is loaded. \
\"python\" starts the interpreter that runs latlab, by posix_spawn, as `python -I -S -c pass`: without \
site-packages and the user's settings. With them it takes at least a third longer, plus what packages do at \
its start.

Programs are found in the page cache: each is started once before it is timed. A program that has not ended \
after ten seconds is killed and the point fails.

Proof: each thread and each forked child ends with a code computed from its number, which is compared; true \
and Python must end with 0.",
        method_version: 1,
        convention: "one start, from the call to the joined or reaped end",
        needs: &["threads and processes"],
        touches: &["threads and processes, one at a time"],
        operations: Operations::SystemCalls,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Started> {
        if !work::HERE {
            return Plan::no("this system lacks the POSIX calls that start threads and processes");
        }
        if Stamps::of(&env.clock).is_none() {
            return Plan::no("processes do not run in simulated time");
        }
        let here = What::ALL.into_iter().filter(|operation| operation.is_here(env));
        let plan = Plan::of(here.map(|operation| planned(env, operation)).collect());
        if program_true().is_none() {
            return plan.degraded("/usr/bin and /bin have no program `true` to start");
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Started]) -> Result<work::Session<'env>> {
        work::open(env)
    }
}

fn planned(env: &Env, operation: What) -> Planned<Started> {
    let is_headline = matches!(operation, What::Thread | What::ForkExit);
    Planned {
        rank: rank(env, is_headline, Rank::Detail),
        block_s: operation.each_s() * f64::from(operation.starts(env.settings.profile)),
        // One untimed start before each visit.
        setup_s: operation.each_s(),
        cache_scope: CacheScope::Shared,
        ..Planned::new(Started { operation })
    }
}

#[cfg(test)]
mod tests {
    use latlab_probes_testing as testing;

    use super::*;

    struct Installed(Option<PathBuf>);

    impl latlab_harness::Interpreter for Installed {
        fn name(&self) -> String {
            "CPython 3.11.7".to_owned()
        }

        fn executable(&self) -> Option<PathBuf> {
            self.0.clone()
        }

        fn compile(&self, _: &str) -> Result<Box<dyn latlab_harness::Batch>, String> {
            Err("not here".to_owned())
        }
    }

    #[test]
    fn python_is_offered_only_where_its_program_is_known() {
        let mut env = testing::env_of_one_cpu(64 << 20);
        for (interpreter, offered) in
            [(None, false), (Some(None), false), (Some(Some("/usr/bin/python3".into())), true)]
        {
            env.interpreter = interpreter.map(|program| Box::new(Installed(program)) as Box<_>);
            let points = Spawn.plan(&env).points;
            let is_offered = points.iter().any(|planned| planned.point.operation == What::Python);
            assert_eq!(is_offered, offered && work::HERE);
        }
    }
}
