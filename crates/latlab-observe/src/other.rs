//! Systems without a reader yet: every counter is unknown.

use latlab_record::Observed;

#[derive(Debug)]
pub(crate) struct Sources;

impl Sources {
    pub(crate) fn open(_cpu: Option<u32>) -> Self {
        Self
    }

    pub(crate) fn read(&self) -> Observed {
        Observed::default()
    }
}

#[derive(Debug)]
pub(crate) struct DelayFile;

impl DelayFile {
    pub(crate) fn open(_thread: Option<u32>) -> Option<Self> {
        None
    }

    #[expect(clippy::unused_self, reason = "as where there is such a file")]
    pub(crate) fn read_ns(&self) -> Option<u64> {
        None
    }
}
