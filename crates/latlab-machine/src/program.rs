//! Runs a program of the operating system and takes its output, within a time.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Each program has this long; PowerShell needs seconds on a cold system.
const LONGEST: Duration = Duration::from_secs(20);
const MOST_BYTES: u64 = 8 << 20;

/// Standard output as text; `None` if it cannot be started or takes too long.
pub(crate) fn output(path: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let pipe = child.stdout.take()?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(MOST_BYTES).read_to_end(&mut bytes);
        // Nobody waits any more when the time was over.
        _ = send.send(read.map(|_| bytes));
    });
    let bytes = receive.recv_timeout(LONGEST);
    // Ends it if it still runs; one that has ended is only collected.
    _ = child.kill();
    _ = child.wait();
    Some(String::from_utf8_lossy(&bytes.ok()?.ok()?).into_owned())
}
