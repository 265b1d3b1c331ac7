//! What threads of a point's blocks were asked for, against what was counted in memory afterwards.

use latlab_record::Check;

use super::Abreast;

/// Of all blocks of a point.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many.
    pub blocks: usize,
    asked: u64,
    counted: u64,
    /// Counters that did not hold what was asked for.
    wrong: u64,
    /// Windows of the first thread without all of the others.
    alone: u64,
    /// Threads that were not on their CPU.
    displaced: usize,
}

impl Tally {
    /// Takes in a block. `counters`: of each, the operations that were asked for and those that it holds.
    pub fn add<W>(&mut self, done: &Abreast<W>, counters: impl IntoIterator<Item = [u64; 2]>) {
        self.blocks += 1;
        self.alone += done.alone;
        self.displaced += done.threads.iter().filter(|thread| thread.in_place == Some(false)).count();
        for [asked, counted] in counters {
            self.asked += asked;
            self.counted += counted;
            self.wrong += u64::from(asked != counted);
        }
    }

    /// That every operation was counted, with the check's name, what the operations are called and which
    /// threads `others` are; and that threads were where they belong.
    pub fn checks(&self, name: &str, operations: &str, others: &str) -> Vec<Check> {
        vec![
            Check {
                name: name.to_owned(),
                ok: self.asked > 0 && self.wrong == 0,
                detail: format!(
                    "{}{operations} asked for, {} counted; {} windows without {others} were left out",
                    self.asked, self.counted, self.alone
                ),
            },
            Check {
                name: "each thread on its CPU".to_owned(),
                ok: self.displaced == 0,
                detail: format!("{} times elsewhere in {} blocks", self.displaced, self.blocks),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use latlab_record::Observed;

    use super::*;
    use crate::rig::{Beside, Done};

    fn done(alone: u64, in_place: &[Option<bool>]) -> Abreast<()> {
        let thread = |in_place: &Option<bool>| Done {
            result: Beside::new((), 0),
            observed: Observed::default(),
            in_place: *in_place,
        };
        Abreast { threads: in_place.iter().map(thread).collect(), alone }
    }

    fn checks(tally: &Tally) -> [bool; 2] {
        let checks = tally.checks("writes", "", "the other thread");
        [checks[0].ok, checks[1].ok]
    }

    #[test]
    fn what_was_left_out_or_done_twice_fails_even_where_sums_agree() {
        let mut tally = Tally::default();
        assert_eq!(checks(&tally), [false, true], "nothing was asked for");
        tally.add(&done(0, &[None, Some(true)]), [[10, 10], [7, 7]]);
        assert_eq!(checks(&tally), [true, true]);
        tally.add(&done(2, &[Some(true)]), [[10, 9], [10, 11]]);
        assert_eq!(checks(&tally), [false, true]);
        let detail = &tally.checks("writes", " writes", "the other thread")[0].detail;
        assert_eq!(
            detail,
            "37 writes asked for, 37 counted; 2 windows without the other thread were left out"
        );
    }

    #[test]
    fn a_thread_that_was_elsewhere_fails_and_one_of_which_nobody_knows_does_not() {
        let mut tally = Tally::default();
        tally.add(&done(0, &[None, None]), [[1, 1]]);
        assert_eq!(checks(&tally), [true, true]);
        tally.add(&done(0, &[Some(true), Some(false)]), [[1, 1]]);
        assert_eq!(checks(&tally), [true, false]);
        assert_eq!(tally.checks("", "", "")[1].detail, "1 times elsewhere in 2 blocks");
    }
}
