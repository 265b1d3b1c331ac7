//! The measuring core without Python: reads a request (one line of JSON) and prints the worker's events.
//!
//! `echo '{"settings":{"profile":"quick","only":["memory.load*"]}}' | cargo run --release --example measure`

use std::ffi::OsString;

use latlab_probes::run_child;
use latlab_probes::session::{Host, Request, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--child") {
        let program = arguments.next().ok_or("--child needs the name of a program")?;
        let known = run_child(
            &program,
            &mut std::io::stdin().lock(),
            &mut std::io::stdout().lock(),
        )?;
        return known
            .then_some(())
            .ok_or_else(|| format!("no child program {program}").into());
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    let host = Host {
        interpreter: None,
        child: Some(vec![std::env::current_exe()?.into(), OsString::from("--child")]),
    };
    run(&request, host, &mut std::io::stdout().lock(), &|| false)?;
    Ok(())
}
