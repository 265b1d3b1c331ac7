//! How often and how long a runtime stopped its program. Java ([`java`]) and Go ([`go`]) count that
//! themselves. Of V8 ([`v8`]), functions are watched.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use super::budget::Budget;
use super::now_ns;
use super::proc_file::{field, text};
use crate::model::Pauses;

mod go;
mod java;
mod v8;

use go::Programs;
use java::Machine;
use v8::{Engine, Probes};

/// From one scan to the next, nanoseconds.
const EVERY_NS: u64 = 5_000_000;
/// For so long a process is asked for counters: it may yet become another program, or load a virtual machine.
const ASKED_NS: u64 = 3_000_000_000;
/// More processes than this are not asked at once, and the counters of no more are kept.
const MOST_PROCESSES: usize = 256;
/// A scan takes at most this part of a CPU; where functions are watched, new threads are to be found soon,
/// and any overhead is allowed.
const PART: u64 = 20;
const PART_WITH_FUNCTIONS: u64 = 2;
/// At the end, what the counters mean may take this long to find out: the user waits.
const LONGEST_NS: u64 = 1_000_000_000;
/// In the line of `stat`, counted from the state: the process's flags, of which this one says that it is a
/// copy of its parent until its first exec.
const FLAGS: usize = 6;
const NO_EXEC: u32 = 0x40;

/// The counters of one process.
trait Counters: Debug {
    /// Reads them; whether they are still there.
    fn scan(&mut self) -> bool;

    /// What there was before is not the program's that is watched.
    fn has_run(&mut self);

    /// What they say at the end.
    fn reported(&mut self, process: u32, budget: &Rc<Budget>) -> Vec<Pauses>;
}

/// The counters of a process while it is watched, and after.
#[derive(Debug)]
struct Found {
    process: u32,
    counters: Box<dyn Counters>,
    is_there: bool,
}

/// A process that may have counters.
#[derive(Debug)]
struct Asked {
    first: u64,
    last: u64,
    /// The program for which the answer is known.
    program: Option<PathBuf>,
    /// Files that have no functions of V8. What it maps later may have them.
    searched: HashSet<Rc<str>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pausing {
    found: Vec<Found>,
    asked: HashMap<u32, Asked>,
    programs: Programs,
    /// `None`: functions are not to be watched.
    probes: Option<Probes>,
    /// Processes that are met now began while they were watched.
    has_scanned: bool,
    next_ns: u64,
}

impl Pausing {
    /// With functions watched, where the kernel can do that.
    pub(crate) fn with_functions() -> Self {
        Self { probes: Probes::find(), ..Self::default() }
    }

    /// At a scan of these processes. `launched`: they were started by latlab, and nothing of them came
    /// before.
    pub(crate) fn scan(&mut self, now: u64, pids: impl Iterator<Item = u32>, launched: bool) {
        if now < self.next_ns {
            return;
        }
        let begin = now_ns();
        for found in self.found.iter_mut().filter(|found| found.is_there) {
            found.is_there = found.counters.scan();
            if !found.is_there {
                // Its number may be another program's by now.
                self.asked.remove(&found.process);
            }
        }
        for pid in pids {
            if let Some(mut counters) = self.ask(now, pid) {
                if !launched && !self.has_scanned {
                    counters.has_run();
                }
                self.found.push(Found { process: pid, counters, is_there: true });
            }
        }
        self.has_scanned = true;
        self.asked.retain(|_, asked| asked.last == now);
        let end = now_ns();
        let part = if self.probes.is_some() { PART_WITH_FUNCTIONS } else { PART };
        self.next_ns = end + EVERY_NS.max(part * (end - begin));
    }

    /// The counters of a process, if it has any that are not known yet.
    fn ask(&mut self, now: u64, pid: u32) -> Option<Box<dyn Counters>> {
        if self.asked.len() >= MOST_PROCESSES && !self.asked.contains_key(&pid) {
            return None;
        }
        let new = Asked { first: now, last: now, program: None, searched: HashSet::new() };
        let asked = self.asked.entry(pid).or_insert(new);
        asked.last = now;
        if now - asked.first > ASKED_NS
            || self.found.len() >= MOST_PROCESSES
            || self.found.iter().any(|found| found.process == pid && found.is_there)
        {
            return None;
        }
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let is_java = program.file_name().is_some_and(|name| name == "java");
        // These two load what tells of pauses as they run.
        let node = self.probes.filter(|_| v8::is_node(&program));
        let is_known = asked.program.as_ref() == Some(&program);
        if is_known && !is_java && node.is_none() || !has_own_program(pid) {
            return None;
        }
        let found: Option<Box<dyn Counters>> = if is_java {
            Machine::find(pid).map(|machine| Box::new(machine) as _)
        } else if let Some(engine) =
            node.and_then(|probes| Engine::find(pid, &program, probes, &mut asked.searched))
        {
            Some(Box::new(engine))
        } else if is_known {
            None
        } else {
            self.programs.find(pid, &program).map(|process| Box::new(process) as _)
        };
        asked.program = Some(program);
        found
    }

    /// The pauses of each, those that took longest first.
    pub(crate) fn reported(&mut self) -> Vec<Pauses> {
        let budget = Rc::new(Budget::here());
        budget.end_by(now_ns() + LONGEST_NS);
        let reported = |found: &mut Found| found.counters.reported(found.process, &budget);
        let mut all: Vec<Pauses> = self.found.iter_mut().flat_map(reported).collect();
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.kind.cmp(&b.kind)));
        all
    }
}

/// Whether a process runs a program of its own: between a fork and the exec, its counters are its parent's.
fn has_own_program(pid: u32) -> bool {
    let flags = field::<u32>(&text(&format!("/proc/{pid}/stat")), FLAGS);
    flags.is_some_and(|flags| flags & NO_EXEC == 0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_copy_of_its_parent_has_no_program_of_its_own_until_the_exec() {
        let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // SAFETY: the child only waits to be ended, for a minute at most.
        let copy = unsafe { libc::fork() };
        if copy == 0 {
            // SAFETY: as above.
            unsafe {
                libc::sleep(60);
                libc::_exit(0);
            }
        }
        let until = Instant::now() + Duration::from_secs(10);
        while !has_own_program(program.id()) && Instant::now() < until {
            std::thread::yield_now();
        }
        let (of_copy, of_program) =
            (has_own_program(copy.try_into().unwrap()), has_own_program(program.id()));
        // SAFETY: the child of this test.
        unsafe {
            libc::kill(copy, libc::SIGKILL);
            libc::waitpid(copy, std::ptr::null_mut(), 0);
        }
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!((of_copy, of_program), (false, true));
        assert!(!has_own_program(u32::MAX));
    }

    #[test]
    fn a_program_without_counters_is_asked_once() {
        let own = std::process::id();
        let mut pausing = Pausing::default();
        pausing.scan(1, [own, u32::MAX].into_iter(), true);
        assert_eq!(pausing.asked[&own].program, std::env::current_exe().ok());
        assert_eq!(pausing.asked[&u32::MAX].program, None);
        assert!(pausing.found.is_empty() && pausing.reported().is_empty());
        pausing.next_ns = 0;
        pausing.scan(2, [own].into_iter(), true);
        assert!(!pausing.asked.contains_key(&u32::MAX), "it is not there any more");
    }
}
