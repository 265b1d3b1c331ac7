//! C libraries that do not tell their version at run time: musl by decision, others unknown to this tool.

use crate::os::Libc;

pub(super) fn libc() -> Libc {
    let name = if cfg!(target_env = "musl") { "musl" } else { "unknown" };
    Libc { name: name.to_owned(), version: None }
}
