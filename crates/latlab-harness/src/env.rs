//! The surroundings of a measurement, fixed for a whole run.

use std::ffi::OsString;
use std::path::PathBuf;

use latlab_clock::Clock;
use latlab_machine::Machine;
use latlab_record::{Profile, Rank, Settings};
use latlab_stats::rng::mixed;
use latlab_storage::Disk;

use crate::{Batch, SimulatedMemory};

/// The interpreter that latlab runs in, for probes of what its programs pay.
pub trait Interpreter {
    /// Such as `CPython 3.11.7`.
    fn name(&self) -> String;

    /// Its program file, where it is known.
    fn executable(&self) -> Option<PathBuf>;

    /// A program whose function `run(n)` does `n` operations and returns an integer, as work to be timed.
    /// Errors: what the interpreter says of the program.
    fn compile(&self, program: &str) -> Result<Box<dyn Batch>, String>;
}

/// Whose memory the memory probes walk.
#[derive(Debug)]
pub enum MemorySource {
    /// This machine's.
    Real,
    /// A planted hierarchy with known answers, for tests.
    Simulated(SimulatedMemory),
}

/// Everything that probes may know and use.
pub struct Env {
    /// What this computer is.
    pub machine: Machine,
    /// The one clock of the run.
    pub clock: Clock,
    /// What the user asked for.
    pub settings: Settings,
    /// CPUs that may be used, ascending; never empty.
    pub cpus: Vec<u32>,
    /// The round of the run, from 0.
    pub round: u32,
    /// The CPU that single-threaded probes are pinned to.
    pub home_cpu: u32,
    /// Most memory that a session may hold: a quarter of what this process may use, bytes.
    pub memory_bytes: u64,
    /// Real or simulated.
    pub memory: MemorySource,
    /// Absent when the core runs without one (tests of the core).
    pub interpreter: Option<Box<dyn Interpreter>>,
    /// The command that starts a [`Child`](crate::Child), to which the child program's name is appended.
    /// Absent when the core runs alone (tests give their own).
    pub child: Option<Vec<OsString>>,
    /// The disk that storage probes measure; opened by the first that asks.
    pub disk: Disk,
    /// Folder in which the user's Python packages lie (the one that holds `NumPy`), for programs that import
    /// them.
    pub packages: Option<PathBuf>,
    /// Every wait for a thread or process that others may keep from its CPU is this many times as long as in
    /// a run, where it is 1: tests, which ask for no figure, outwait a busy machine.
    pub patience: u32,
}

impl Env {
    /// Headline, but in a quick run, whose rounds have time for a dozen figures.
    pub fn headline_but_quick(&self, in_quick: Rank) -> Rank {
        if self.settings.profile == Profile::Quick { in_quick } else { Rank::Headline }
    }

    /// CPUs whose threads may help this one to populate memory, three at most: they share the page faults.
    /// None on a machine of several NUMA nodes, where pages land near the CPU that touches them first.
    pub fn populating_cpus(&self) -> Vec<u32> {
        if self.machine.numa.len() > 1 {
            return Vec::new();
        }
        self.cpus.iter().copied().filter(|cpu| *cpu != self.home_cpu).take(3).collect()
    }

    /// The run's own CPU, and another one that is not said to be the same core's second thread; the same one
    /// twice where there is no other.
    pub fn two_cores(&self) -> [u32; 2] {
        let home = self.home_cpu;
        let same_core = |cpu: u32| {
            let mut first_level = self.machine.caches.iter().filter(|cache| cache.level == 1);
            first_level.any(|cache| cache.shared_cpus.contains(&home) && cache.shared_cpus.contains(&cpu))
        };
        let others = || self.cpus.iter().copied().filter(|cpu| *cpu != home);
        [home, others().find(|cpu| !same_core(*cpu)).or_else(|| others().next()).unwrap_or(home)]
    }

    /// A seed for one use, different for each `salt` and each round, and the same again for the same run
    /// seed: a round that read the places of the one before it would find them in a cache of the disk, and
    /// would share its luck with a random order.
    pub fn seed(&self, salt: u64) -> u64 {
        mixed(seed(&self.settings, salt).wrapping_add(u64::from(self.round)))
    }
}

/// [`Env::seed`] of what concerns the whole run with these settings.
pub fn seed(settings: &Settings, salt: u64) -> u64 {
    // Neighbouring salts give unrelated seeds.
    mixed(settings.seed.wrapping_add(salt.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// The CPUs that a run with these settings may measure on, ascending. What the user names and may not be used
/// is left out: a thread that is sent there stays where it is, beside another one, and both halve each
/// other's figures.
pub fn usable_cpus(machine: &Machine, settings: &Settings) -> Vec<u32> {
    let mut cpus = machine.limits.allowed_cpus.clone();
    if cpus.is_empty() {
        // Systems that do not say which.
        cpus.clone_from(&machine.cpu.online);
    }
    if cpus.is_empty() {
        cpus.push(0);
    }
    cpus.sort_unstable();
    cpus.dedup();
    if let Some(wanted) = &settings.cpus {
        let both: Vec<u32> = cpus.iter().copied().filter(|cpu| wanted.contains(cpu)).collect();
        if !both.is_empty() {
            cpus = both;
        }
    }
    if settings.gentle {
        // The last one: interrupts usually go to the first.
        cpus.drain(..cpus.len() - 1);
    }
    cpus
}

#[cfg(test)]
impl Env {
    /// One CPU, and memory that costs nothing, on this clock.
    pub(crate) fn planted(clock: &latlab_clock::SimulatedClock) -> Self {
        let memory = SimulatedMemory {
            levels: vec![],
            translation: vec![],
            huge_pages_effective: true,
            clock: clock.clone(),
        };
        Self {
            machine: Machine::default(),
            clock: Clock::simulated(clock.clone()),
            settings: Settings { seed: 42, ..Settings::default() },
            cpus: vec![0],
            round: 0,
            home_cpu: 0,
            memory_bytes: 1 << 30,
            memory: MemorySource::Simulated(memory),
            interpreter: None,
            child: None,
            packages: None,
            patience: 1,
            disk: Disk::new(std::path::Path::new("."), 0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_may_not_be_used_are_left_out_and_one_always_stays() {
        let wanting =
            |cpus: Option<&[u32]>| Settings { cpus: cpus.map(<[u32]>::to_vec), ..Settings::default() };
        let of = |allowed: &[u32], settings: &Settings| {
            let mut machine = Machine::default();
            machine.limits.allowed_cpus = allowed.to_vec();
            usable_cpus(&machine, settings)
        };
        assert_eq!(of(&[3, 1, 2], &wanting(None)), [1, 2, 3]);
        assert_eq!(of(&[1, 2, 3], &wanting(Some(&[3, 3, 999, 2]))), [2, 3]);
        for nothing in [&[][..], &[999]] {
            assert_eq!(of(&[1, 2], &wanting(Some(nothing))), [1, 2]);
        }
        assert_eq!(of(&[], &wanting(None)), [0]);
        let gentle = Settings { gentle: true, ..wanting(Some(&[0, 2])) };
        assert_eq!(of(&[0, 1, 2], &gentle), [2]);
    }

    #[test]
    fn where_nobody_says_which_cpus_are_allowed_all_that_are_online_are() {
        let mut machine = Machine::default();
        machine.cpu.online = vec![0, 1, 2];
        assert_eq!(usable_cpus(&machine, &Settings::default()), [0, 1, 2]);
    }

    #[test]
    fn the_second_cpu_is_not_the_other_thread_of_the_same_core() {
        let mut env = Env::planted(&latlab_clock::SimulatedClock::ideal());
        assert_eq!(env.two_cores(), [0, 0]);
        env.cpus = vec![0, 1, 2, 3];
        env.home_cpu = 2;
        env.machine.caches = vec![latlab_machine::Cache {
            level: 1,
            kind: latlab_machine::CacheKind::Data,
            size_bytes: 1 << 15,
            line_bytes: None,
            ways: None,
            shared_cpus: vec![0, 2],
            cpus: vec![0, 1, 2, 3],
            instances: None,
            source: latlab_machine::CacheSource::Cpuid,
        }];
        assert_eq!(env.two_cores(), [2, 1]);
        env.cpus = vec![0, 2];
        assert_eq!(env.two_cores(), [2, 0], "better than none");
    }
}
