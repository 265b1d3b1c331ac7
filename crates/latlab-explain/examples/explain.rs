//! Explains a program without the command line: `explain [--level N] PROGRAM ARGUMENTS...`, or
//! `explain [--level N] --pid PID SECONDS`; the ledger as JSON on standard error.

use std::ffi::OsString;

use latlab_explain::{Request, Subject, explain};

fn main() {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut level = 1;
    if arguments.first().is_some_and(|first| first == "--level") {
        arguments.remove(0);
        level = arguments.remove(0).to_string_lossy().parse().expect("a level");
    }
    let number = |at: usize| arguments.get(at).and_then(|word| word.to_str()?.parse::<u32>().ok());
    let subject = if arguments.first().is_some_and(|first| first == "--pid") {
        Subject::Running {
            pid: number(1).expect("a process id"),
            for_ns: u64::from(number(2).expect("seconds")) * 1_000_000_000,
        }
    } else {
        Subject::Program(arguments)
    };
    let request = Request { subject, level, overhead: Request::USUAL_OVERHEAD, runs: 1, kept: Vec::new() };
    match explain(&request, || true) {
        Ok(explained) => {
            let text = serde_json::to_string(&explained).expect("plain data");
            eprintln!("{text}");
            std::process::exit(explained.program.exit_code.unwrap_or(1));
        }
        Err(error) => eprintln!("{error}"),
    }
}
