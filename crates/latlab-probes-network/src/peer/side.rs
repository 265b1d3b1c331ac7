//! A child process that takes part in an exchange: where it sits, and how long it is waited for.

use std::time::Duration;

use latlab_harness::Child;
use latlab_net::delay::{Entry, enter};
use latlab_net::echo::Watch;
use latlab_net::end_with_the_parent;
use latlab_probes_shared::prelude::*;
use serde::de::DeserializeOwned;

use latlab_probes_shared::linux::{Task, run_on};

/// A child that is waited for no longer than was said; one that is late is killed.
#[derive(Debug)]
pub(crate) struct Side {
    /// Before the watch: it is ended first.
    child: Child,
    watch: Watch,
    program: &'static str,
    /// [`Env::patience`].
    times: u32,
}

impl Side {
    /// Starts the child program of this name.
    pub(crate) fn start(env: &Env, program: &'static str) -> Result<Self, ProbeError> {
        let command = env
            .child
            .as_ref()
            .ok_or_else(|| ProbeError::Other("no child process can be started here".to_owned()))?;
        Ok(Self {
            child: Child::start(command, program, &[])?,
            watch: Watch::start().map_err(|error| failed(&error))?,
            program,
            times: env.patience,
        })
    }

    /// Asks and waits for the answer, so long at most; in tests longer, as [`Env::patience`] says.
    pub(crate) fn ask<Q: Serialize, A: DeserializeOwned>(
        &mut self,
        request: &Q,
        patience: Duration,
    ) -> Result<A, ProbeError> {
        let patience = patience * self.times;
        if !self.child.is_gone() {
            self.watch.arm_process(self.child.id(), patience);
        }
        let reported = self.child.ask(request);
        if self.watch.disarm() {
            return Err(ProbeError::Other(format!(
                "the process of {} did not answer within {} s and was killed",
                self.program,
                patience.as_secs_f64()
            )));
        }
        reported
    }

    /// Whether it has ended, or was killed: nothing can be asked of it.
    pub(crate) fn is_gone(&self) -> bool {
        self.child.is_gone()
    }

    /// The time that its threads have had a CPU, ns.
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        Task::Process(i32::try_from(self.id()).ok()?).cpu_ns()
    }

    /// Its process id, for its counters.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Where a child does its work: the first thing that it is told.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The end of a path; none on the loopback.
    pub(crate) end: Option<Entry>,
    pub(crate) cpus: Vec<u32>,
}

impl Place {
    /// Takes this process there, unless it `is` there; to be called while it has one thread.
    pub(crate) fn take_once(&self, is: &mut bool) -> Result<(), ProbeError> {
        if !*is {
            self.take()?;
            *is = true;
        }
        Ok(())
    }

    /// Takes this process there; to be called while it has one thread.
    pub(crate) fn take(&self) -> Result<(), ProbeError> {
        // Where that is refused, the end of the input ends it.
        let _ = end_with_the_parent();
        if !self.cpus.is_empty() {
            run_on(&self.cpus)?;
        }
        match &self.end {
            Some(end) => enter(end).map_err(|error| failed(&error)),
            None => Ok(()),
        }
    }
}

/// A proof of work, with its evidence in words and numbers.
pub(crate) fn check(name: &str, ok: bool, detail: String) -> Check {
    Check { name: name.to_owned(), ok, detail }
}

/// An error as one of a probe, by its words.
pub(crate) fn failed(error: &dyn std::error::Error) -> ProbeError {
    ProbeError::Other(error.to_string())
}
