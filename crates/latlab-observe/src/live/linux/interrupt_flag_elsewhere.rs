//! Processors that leave no trace of an interrupt in a register that the thread can read.

#[derive(Debug)]
pub(crate) struct InterruptFlag;

impl InterruptFlag {
    pub(crate) fn open() -> Result<Self, String> {
        Err("only x86-64 processors leave such a trace".to_owned())
    }

    #[expect(clippy::unused_self, reason = "as where there is such a flag")]
    pub(crate) fn was_interrupted(&mut self) -> bool {
        false
    }
}
