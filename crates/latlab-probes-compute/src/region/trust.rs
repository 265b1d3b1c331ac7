//! What this system's own counts are worth: tried on pages whose answers are known.

use latlab_harness::Support;
use latlab_probes_shared::linux::usage;
use latlab_record::Pages;
use rustix::mm::Advice;

use super::{Region, page_bytes};

/// Page faults of a thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Answered from memory.
    pub(crate) minor: u64,
    /// Answered from a device.
    pub(crate) major: u64,
}

impl Faults {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            minor: self.minor.saturating_sub(before.minor),
            major: self.major.saturating_sub(before.major),
        }
    }
}

/// As getrusage(2) counts them; zeros where it refuses.
pub(crate) fn faults_of_this_thread() -> Faults {
    usage().map_or_else(Faults::default, |usage| Faults {
        minor: u64::try_from(usage.ru_minflt).unwrap_or(0),
        major: u64::try_from(usage.ru_majflt).unwrap_or(0),
    })
}

/// Which of the kernel's answers held on a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    /// getrusage(2) counts one fault for each first touch and none for a second one.
    pub(crate) faults: bool,
    /// mincore(2) knows which pages were touched.
    pub(crate) residency: bool,
    /// `MADV_DONTNEED` takes memory away.
    pub(crate) discard: bool,
}

/// Pages of the trial.
const PAGES: usize = 64;
/// Trials at most: the first ones may also count what the instrument itself touches first.
const TRIALS: usize = 4;

impl Trust {
    /// Tries; a few hundred microseconds at most.
    pub(crate) fn of_this_system() -> Self {
        let mut trust = Self { faults: false, residency: false, discard: false };
        for _ in 0..TRIALS {
            let Ok(region) = Region::anonymous(PAGES * page_bytes(), Pages::Base) else { break };
            let untouched = region.resident();
            let before = faults_of_this_thread();
            region.touch();
            let between = faults_of_this_thread();
            region.touch();
            let after = faults_of_this_thread();
            let touched = region.resident();
            let discarded = region.advise(Advice::LinuxDontNeed).is_ok();
            let known = untouched == Some(0) && touched == Some(PAGES);
            trust.residency |= known;
            trust.discard |= known && discarded && region.resident() == Some(0);
            trust.faults |= between.since(before).minor == PAGES as u64 && after == between;
            if trust.faults && trust.residency && trust.discard {
                break;
            }
        }
        trust
    }

    /// Whether anything shows that a touch was a fault.
    pub(crate) fn shows_faults(self) -> bool {
        self.faults || self.residency
    }

    /// Of a probe that sees what it did by mincore: whether that is `seen`, and whether `all` of its points
    /// work; else what is lost.
    pub(crate) fn support(seen: bool, all: bool, lost: &str, unseen: &str) -> Support {
        match (seen, all) {
            (true, true) => Support::Yes,
            (true, false) => Support::Degraded(lost.to_owned()),
            (false, _) => Support::No(format!(
                "mincore does not say here which pages have memory, so nothing shows {unseen}"
            )),
        }
    }

    /// What is lost, for the user; `None` where nothing is.
    pub(crate) fn loss(self) -> Option<String> {
        match (self.faults, self.residency) {
            (true, true) => None,
            (false, true) => Some(
                "this system does not count a thread's page faults faithfully: that each touch was one is \
                    known from mincore alone"
                    .to_owned(),
            ),
            (true, false) => Some(
                "mincore does not say here which pages have memory: that each touch was a fault is known \
                    from the count alone"
                    .to_owned(),
            ),
            (false, false) => Some(
                "neither the count of page faults (getrusage) nor the state of pages (mincore) is faithful \
                    here, so nothing shows that a \
touch was a fault"
                    .to_owned(),
            ),
        }
    }
}

/// Whether `MAP_POPULATE` gives a mapping its pages: emulators take the flag and do nothing.
pub(crate) fn map_populate_works() -> bool {
    Region::plain(PAGES * page_bytes(), true).is_ok_and(|region| region.resident() == Some(PAGES))
}

/// Whether `MADV_POPULATE_WRITE` does (Linux 5.14 and newer).
pub(crate) fn populate_write_works() -> bool {
    Region::anonymous(PAGES * page_bytes(), Pages::Base).is_ok_and(|region| {
        region.advise(Advice::LinuxPopulateWrite).is_ok() && region.resident() == Some(PAGES)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said_and_nothing_is_said_where_nothing_is() {
        let trust = |faults, residency| Trust { faults, residency, discard: true };
        assert_eq!(trust(true, true).loss(), None);
        for lossy in [trust(false, true), trust(true, false), trust(false, false)] {
            assert!(lossy.loss().is_some_and(|loss| loss.len() > 40), "{lossy:?}");
        }
        assert!(!trust(false, false).shows_faults());
    }

    #[test]
    fn a_trial_leaves_an_answer_that_the_next_one_gives_again() {
        assert_eq!(Trust::of_this_system(), Trust::of_this_system());
    }
}
