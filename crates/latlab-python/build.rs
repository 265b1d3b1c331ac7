//! Writes down what the extension was built from and with, for the header of every run file.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A source archive has no commit, even when it was unpacked inside somebody else's repository.
    if Path::new("../../.git").exists() {
        let log = Path::new("../../.git/logs/HEAD");
        if log.exists() {
            println!("cargo::rerun-if-changed={}", log.display());
        }
        if let Some(commit) = line_of("git", &["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo::rustc-env=LATLAB_COMMIT={commit}");
        }
    }
    let compiler = std::env::var("RUSTC")
        .ok()
        .and_then(|rustc| line_of(&rustc, &["--version"]))
        .unwrap_or_else(|| "unknown compiler".to_owned());
    let target = std::env::var("TARGET").unwrap_or_default();
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=LATLAB_BUILD={compiler}, {target}, {profile}");
}

/// First line of what a program prints; `None` when it is missing or fails.
fn line_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
