//! The running Windows system. Never run by its authors: the parser is tested from captured text.

use std::path::Path;

use crate::calls::Calls;
use crate::cim::{WINDOWS_QUERY, describe_windows};
use crate::machine::Machine;
use crate::program;

pub(crate) fn describe(dir: &Path) -> Machine {
    let json = program::output(
        "powershell.exe",
        &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", WINDOWS_QUERY],
    );
    let calls = Calls { resolve, ..Calls::of_this_cpu() };
    describe_windows(&json.unwrap_or_default(), &calls, dir)
}

/// `canonicalize` would give the `\\?\` form, whose beginning no drive letter matches.
fn resolve(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
