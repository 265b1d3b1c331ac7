//! A short listen to every CPU, then a longer one to the quietest: how disturbed this machine is right now.

use std::sync::atomic::{AtomicBool, Ordering};

use latlab_clock::Clock;
use latlab_stats::count::index;
use serde::Serialize;

use crate::gaps::{Buffer, NoFlag, Quiet};
use crate::live::pin_to;
use crate::noise::{Noise, NoiseError, Request, hear, on_own_thread, turn};

/// Of the time, what goes to all CPUs; the rest is for the quietest.
const SURVEY_SHARE: f64 = 0.4;
/// Visits to each CPU, so that what happens at one moment falls on all alike.
const ROUNDS: f64 = 4.0;
/// Shorter visits would miss the tick of 250 Hz or more; where there are CPUs too many, they get fewer
/// visits, then not all get one.
const LEAST_VISIT_NS: f64 = 5e6;
/// Gaps of one visit for which there is room: one every microsecond.
const ROOM: usize = 1 << 16;

/// What one CPU lost in a few short listens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuNoise {
    /// Which one.
    pub cpu: u32,
    /// Time listened to, s.
    pub seconds: f64,
    /// Gaps over the threshold.
    pub gaps: u64,
    /// Of that time, the share in them.
    pub lost_share: f64,
    /// The longest, ns.
    pub longest_ns: f64,
}

/// All that was heard.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// The CPUs that were listened to, in order of their numbers; none where threads cannot be kept on one.
    pub cpus: Vec<CpuNoise>,
    /// How many this process may use: of very many not all are listened to.
    pub allowed: usize,
    /// A longer listen to the quietest of them.
    pub quietest: Noise,
}

/// Listens to `cpus` for `request.seconds` in all, on a thread of its own. The CPU of the request is listened
/// to where threads cannot be kept on a CPU. Fails when the clock is simulated, no thread can be started, or
/// `go_on` said no.
pub fn survey(
    clock: &Clock,
    cpus: &[u32],
    request: &Request,
    mut go_on: impl FnMut() -> bool,
) -> Result<Survey, NoiseError> {
    let stopped = AtomicBool::new(false);
    let all_ns = SURVEY_SHARE * request.seconds * 1e9;
    let found =
        on_own_thread(&stopped, &mut go_on, || visits(clock, cpus, request.threshold_ns, all_ns, &stopped))?;
    if stopped.load(Ordering::Relaxed) {
        return Err(NoiseError::Stopped);
    }
    let request = Request {
        seconds: (1.0 - SURVEY_SHARE) * request.seconds,
        cpu: least_disturbed(&found).unwrap_or(request.cpu),
        ..*request
    };
    Ok(Survey { allowed: cpus.len(), quietest: hear(clock, &request, go_on)?, cpus: found })
}

/// The CPU that lost the least time in gaps of a microsecond or more while each was listened to for
/// `listen_ns` or so; `None` where threads cannot be kept on one. Leaves the thread on one of them. Fails
/// when the clock is simulated.
pub fn quietest(clock: &Clock, cpus: &[u32], listen_ns: f64) -> Result<Option<u32>, NoiseError> {
    let all_ns = listen_ns * cpus.len() as f64;
    Ok(least_disturbed(&visits(clock, cpus, 1_000.0, all_ns, &AtomicBool::new(false))?))
}

/// The last of equals: interrupts usually go to the first.
fn least_disturbed(found: &[CpuNoise]) -> Option<u32> {
    let least = found.iter().rev().min_by(|a, b| a.lost_share.total_cmp(&b.lost_share))?;
    Some(least.cpu)
}

fn visits(
    clock: &Clock,
    cpus: &[u32],
    threshold_ns: f64,
    all_ns: f64,
    stopped: &AtomicBool,
) -> Result<Vec<CpuNoise>, NoiseError> {
    let (chosen, rounds, visit_ns) = plan(cpus, all_ns);
    let mut found: Vec<(CpuNoise, f64)> = Vec::new();
    let mut buffer = Buffer::new(ROOM);
    for round in 0..rounds {
        for cpu in &chosen {
            if stopped.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            if !pin_to(*cpu) {
                continue;
            }
            buffer.clear();
            let heard = turn(clock, &mut NoFlag, visit_ns, threshold_ns, &mut Quiet, &mut buffer)?;
            if round == 0 {
                let new = CpuNoise { cpu: *cpu, seconds: 0.0, gaps: 0, lost_share: 0.0, longest_ns: 0.0 };
                found.push((new, 0.0));
            }
            let Some((one, lost_ns)) = found.iter_mut().find(|(one, _)| one.cpu == *cpu) else { continue };
            for gap in buffer.gaps() {
                let ns = clock.ns(gap.end - gap.begin);
                one.gaps += 1;
                one.longest_ns = one.longest_ns.max(ns);
                *lost_ns += ns;
            }
            one.seconds += clock.ns(heard.end - heard.begin) / 1e9;
            one.lost_share = *lost_ns / (one.seconds * 1e9).max(1.0);
        }
    }
    Ok(found.into_iter().map(|(one, _)| one).collect())
}

/// Which CPUs are visited, how often, and for how long each time.
fn plan(cpus: &[u32], all_ns: f64) -> (Vec<u32>, usize, f64) {
    let most = index(all_ns / LEAST_VISIT_NS).max(1);
    let step = cpus.len().div_ceil(most).max(1);
    let chosen: Vec<u32> = cpus.iter().copied().step_by(step).collect();
    let count = chosen.len().max(1) as f64;
    let rounds = (all_ns / (count * LEAST_VISIT_NS)).clamp(1.0, ROUNDS).floor();
    (chosen, index(rounds), all_ns / (count * rounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    fn request(seconds: f64) -> Request {
        Request { seconds, cpu: 0, threshold_ns: 1_000.0, highest: Level::PerfRecords }
    }

    #[test]
    fn every_cpu_gets_four_visits_or_fewer_where_there_are_many_and_none_is_too_short() {
        let cpus = |count| (0..count).collect::<Vec<u32>>();
        assert_eq!(plan(&cpus(4), 0.8e9), (cpus(4), 4, 50e6));
        assert_eq!(plan(&cpus(64), 0.8e9), (cpus(64), 2, 6.25e6));
        let (chosen, rounds, visit_ns) = plan(&cpus(512), 0.8e9);
        assert_eq!((chosen.len(), rounds), (128, 1));
        assert!(visit_ns >= LEAST_VISIT_NS);
        assert!(plan(&[], 1e9).0.is_empty());
    }

    #[test]
    fn the_quietest_of_those_that_were_listened_to_is_listened_to_longer() {
        let clock = Clock::open();
        let found = survey(&clock, &[0], &request(0.1), || true).expect("a thread starts");
        assert_eq!(found.allowed, 1);
        for one in &found.cpus {
            assert_eq!(one.cpu, 0);
            assert!(one.seconds >= 0.0399 && one.lost_share <= 1.0, "{one:?}");
            assert!(one.longest_ns <= one.seconds * 1e9);
        }
        assert_eq!(found.quietest.cpu, 0);
        assert!(found.quietest.seconds >= 0.0599);
    }

    #[test]
    fn an_interrupt_ends_it() {
        let clock = Clock::open();
        let refused = survey(&clock, &[0], &request(5.0), || false);
        assert_eq!(refused.err(), Some(NoiseError::Stopped));
    }
}
