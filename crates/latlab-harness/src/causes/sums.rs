//! Slow operations of the blocks that count, summed up by their causes.

use latlab_observe::Cause;
use latlab_record::{TailCause, TailPart};

use crate::samples::{BlockData, counted};

/// Writes into each tail sample the cause that `of` knows for its time, and sums up those of the blocks that
/// count, the most frequent first.
pub(super) fn write_into(
    blocks: &mut [BlockData],
    of: impl Fn(f64) -> Option<(Cause, f64)>,
) -> Vec<TailCause> {
    let mut rows = Rows::default();
    let counted = times_of_counted(blocks);
    for block in blocks {
        let counts = counted.contains(&block.at_ns);
        for sample in &mut block.tail {
            let (cause, explained_ns) = of(sample.at_ns).unwrap_or((Cause::Unexplained, 0.0));
            sample.cause = name_of(cause);
            if counts {
                rows.count(cause, sample.value, explained_ns);
            }
        }
    }
    rows.sorted()
}

pub(super) fn times_of_counted(blocks: &[BlockData]) -> Vec<f64> {
    let (counted, _) = counted(blocks);
    counted.iter().map(|block| block.at_ns).collect()
}

pub(super) fn name_of(cause: Cause) -> Option<String> {
    (cause != Cause::Unexplained).then(|| cause.name().to_owned())
}

/// How many slow operations each cause has.
#[derive(Default)]
pub(super) struct Rows(Vec<(Cause, TailCause)>);

impl Rows {
    pub(super) fn count(&mut self, cause: Cause, ns: f64, explained_ns: f64) {
        let rows = &mut self.0;
        let place = rows.iter().position(|(own, _)| *own == cause).unwrap_or_else(|| {
            let row = TailCause { cause: cause.name().to_owned(), count: 0, ns: 0.0, explained_ns: 0.0 };
            rows.push((cause, row));
            rows.len() - 1
        });
        let row = &mut rows[place].1;
        row.count += 1;
        row.ns += ns;
        row.explained_ns += explained_ns.min(ns);
    }

    pub(super) fn sorted(self) -> Vec<TailCause> {
        let mut causes: Vec<TailCause> = self.0.into_iter().map(|(_, row)| row).collect();
        causes.sort_by(|a, b| b.count.cmp(&a.count).then(b.ns.total_cmp(&a.ns)));
        for row in &mut causes {
            (row.ns, row.explained_ns) = (row.ns.round(), row.explained_ns.round());
        }
        causes
    }
}

/// How much of their time each cause has.
#[derive(Default)]
pub(super) struct Parts(Vec<TailPart>);

impl Parts {
    fn of(&mut self, name: &str) -> &mut TailPart {
        let place = self.0.iter().position(|part| part.cause == name);
        let place = place.unwrap_or_else(|| {
            self.0.push(TailPart { cause: name.to_owned(), ns: 0.0, at_most_more_ns: None });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    pub(super) fn add(&mut self, name: &str, ns: f64) {
        self.of(name).ns += ns;
    }

    pub(super) fn at_most(&mut self, name: &str, ns: f64) {
        *self.of(name).at_most_more_ns.get_or_insert(0.0) += ns;
    }

    pub(super) fn sorted(mut self) -> Vec<TailPart> {
        for part in &mut self.0 {
            part.ns = part.ns.round();
            part.at_most_more_ns = part.at_most_more_ns.map(f64::round);
        }
        self.0.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        self.0
    }
}
