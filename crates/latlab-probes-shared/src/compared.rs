//! What was compared with what it should be.

use latlab_record::Check;

/// Things that were compared with what they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Compared {
    /// How many.
    pub all: u64,
    /// Those that differed.
    pub wrong: u64,
}

impl Compared {
    /// Takes in several.
    #[inline]
    pub fn add(&mut self, all: u64, wrong: u64) {
        self.all += all;
        self.wrong += wrong;
    }

    /// Takes in one.
    #[inline]
    pub fn one(&mut self, is_right: bool) {
        self.add(1, u64::from(!is_right));
    }

    /// That there were some and all were right, reported as `before` 3 of 4 `after`.
    pub fn check(&self, name: &str, before: &str, after: &str) -> Check {
        let right = self.all - self.wrong.min(self.all);
        Check {
            name: name.to_owned(),
            ok: self.all > 0 && self.wrong == 0,
            detail: format!("{before}{right} of {} {after}", self.all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_compared_and_one_that_differs_are_no_proof() {
        let mut walks = Compared::default();
        assert!(!walks.check("ends", "", "walks").ok);
        walks.one(true);
        walks.add(2, 0);
        assert!(walks.check("ends", "", "walks").ok);
        walks.one(false);
        let check = walks.check("ends", "after ", "walks all was well");
        assert!(!check.ok);
        assert_eq!(check.detail, "after 3 of 4 walks all was well");
    }
}
