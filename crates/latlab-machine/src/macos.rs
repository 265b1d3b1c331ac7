//! The running Mac. Never run by its authors: the parsers are tested from captured text.

#[path = "unix.rs"]
mod unix;

use std::path::Path;

use crate::calls::{Calls, Libc};
use crate::machine::Machine;
use crate::program;
use crate::sysctl::{MacText, describe_mac};

pub(crate) fn describe(dir: &Path) -> Machine {
    let text = |path, arguments: &[&str]| program::output(path, arguments).unwrap_or_default();
    let texts = MacText {
        sysctl: text("/usr/sbin/sysctl", &["-a"]),
        mounts: text("/sbin/mount", &[]),
        power: text("/usr/bin/pmset", &["-g", "batt"]),
        vm_stat: text("/usr/bin/vm_stat", &[]),
    };
    let libc = Libc { name: "libSystem".to_owned(), version: None };
    describe_mac(&texts, &Calls { libc: Some(libc), ..unix::calls() }, dir)
}
