//! Spans of time of many rows in bounded memory: where there are too many, neighbours that are no longer than
//! the grain become one.

/// The first grain, nanoseconds.
const FIRST_NS: u64 = 10_000;

/// Some time of a row.
pub(crate) trait Span {
    /// Whether `next`, the following one, has become a part of it.
    fn takes(&mut self, next: &Self, grain_ns: u64) -> bool;
}

pub(crate) trait Row {
    type Span: Span;
    fn spans(&mut self) -> &mut Vec<Self::Span>;
}

/// The grain of some rows with at most `MOST` spans together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grain<const MOST: usize> {
    ns: u64,
    spans: usize,
}

impl<const MOST: usize> Grain<MOST> {
    pub(crate) fn ns(&self) -> u64 {
        self.ns
    }

    /// A further span of the row at `at`.
    pub(crate) fn push<R: Row>(&mut self, rows: &mut [R], at: usize, next: R::Span) {
        let spans = rows[at].spans();
        if spans.last_mut().is_some_and(|last| last.takes(&next, self.ns)) {
            return;
        }
        spans.push(next);
        self.spans += 1;
        // One span a row is left when the grain is as long as the program: it always gets there.
        while self.spans > MOST {
            self.coarsen(rows);
        }
    }

    fn coarsen<R: Row>(&mut self, rows: &mut [R]) {
        self.ns = self.ns.saturating_mul(2).max(FIRST_NS);
        self.spans = 0;
        for row in rows {
            let spans = row.spans();
            spans.dedup_by(|next, last| last.takes(next, self.ns));
            // The room that it had is for other rows.
            spans.shrink_to_fit();
            self.spans += spans.len();
        }
    }
}
