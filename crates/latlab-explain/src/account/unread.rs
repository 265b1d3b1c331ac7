//! Waits that were over before their reason could be read, and what they are taken for: the reasons of waits
//! about as long that were not.

use std::collections::BTreeMap;

use crate::Counted;
use crate::rules::Reason;

/// By length: powers of two of nanoseconds.
const LENGTHS: usize = 40;

fn length(ns: u64) -> usize {
    usize::try_from(ns.max(1).ilog2()).unwrap_or(0).min(LENGTHS - 1)
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unread {
    /// Waits whose reason was read, by length.
    read: BTreeMap<usize, Counted>,
    /// Wall time of the others, by length, nanoseconds.
    wall: BTreeMap<usize, u64>,
    /// The same of their threads' time.
    waited: BTreeMap<usize, u64>,
}

impl Unread {
    /// A wait of this length had this reason.
    pub(crate) fn read(&mut self, ns: u64, reason: Reason) {
        self.read.entry(length(ns)).or_default().count(reason, 1);
    }

    /// Of a wait of this length nobody knows the reason; so much wall time was its own.
    pub(crate) fn unread(&mut self, ns: u64, wall: u64) {
        *self.wall.entry(length(ns)).or_default() += wall;
        *self.waited.entry(length(ns)).or_default() += ns;
    }

    /// Adds those of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (at, counts) in &other.read {
            self.read.entry(*at).or_default().add(counts);
        }
        for (sums, others) in [(&mut self.wall, &other.wall), (&mut self.waited, &other.waited)] {
            for (at, ns) in others {
                *sums.entry(*at).or_default() += ns;
            }
        }
    }

    /// Reasons for unread wall time: share of it, and the waits that this is known from. Together at most 1;
    /// the rest is unknown.
    pub(crate) fn reasons(&self) -> Vec<(Reason, f64, f64)> {
        self.divided(&self.wall)
    }

    /// The same for the time of all threads, whatever the others did meanwhile.
    pub(crate) fn thread_reasons(&self) -> Vec<(Reason, f64, f64)> {
        self.divided(&self.waited)
    }

    fn divided(&self, unread: &BTreeMap<usize, u64>) -> Vec<(Reason, f64, f64)> {
        let all: u64 = unread.values().sum();
        let mut shares: Vec<(Reason, f64, f64)> = Vec::new();
        if all == 0 || self.read.is_empty() {
            return shares;
        }
        for (at, ns) in unread.iter().filter(|(_, ns)| **ns > 0) {
            let Some((known, total)) = self.near(*at) else { continue };
            for (reason, count) in known.each() {
                let share = *ns as f64 / all as f64 * count as f64 / total as f64;
                match shares.iter_mut().find(|known| known.0 == reason) {
                    Some(known) => {
                        known.1 += share;
                        known.2 = known.2.max(total as f64);
                    }
                    None => shares.push((reason, share, total as f64)),
                }
            }
        }
        shares
    }

    /// What waits of about this length were for: those within a factor of four, or the nearest there are.
    fn near(&self, at: usize) -> Option<(Counted, u64)> {
        const ENOUGH: u64 = 10;
        let mut sum = Counted::default();
        for distance in 0..LENGTHS {
            for side in [at.checked_sub(distance), Some(at + distance).filter(|_| distance > 0)] {
                if let Some(counts) = side.and_then(|at| self.read.get(&at)) {
                    sum.add(counts);
                }
            }
            let total = sum.total();
            if total >= ENOUGH || (distance >= 2 && total > 0) {
                return Some((sum, total));
            }
        }
        let total = sum.total();
        (total > 0).then_some((sum, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unread_wait_is_taken_for_those_about_as_long() {
        let (short, long) = (Reason(1), Reason(2));
        let mut unread = Unread::default();
        for _ in 0..20 {
            unread.read(100_000, short);
            unread.read(5_000_000, long);
        }
        unread.unread(90_000, 300);
        unread.unread(6_000_000, 700);
        let mut reasons = unread.reasons();
        reasons.sort_by_key(|known| known.0);
        assert_eq!(reasons.iter().map(|known| known.0).collect::<Vec<_>>(), [short, long]);
        assert!((reasons[0].1 - 0.3).abs() < 1e-9 && (reasons[1].1 - 0.7).abs() < 1e-9);
        let mut twice = unread.clone();
        twice.add(&unread);
        assert!((twice.reasons().iter().map(|known| known.1).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn where_nothing_was_read_nothing_is_said() {
        let mut unread = Unread::default();
        unread.unread(1000, 5);
        assert!(unread.reasons().is_empty());
    }
}
