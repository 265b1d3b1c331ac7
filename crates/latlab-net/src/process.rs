//! Servers are processes of their own, and must not outlive the one that measures.

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::NetError;

/// Has the kernel kill this process when the thread that started it ends, however it ends.
pub fn end_with_the_parent() -> Result<(), NetError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(NetError::system("ending with the parent"))
}
