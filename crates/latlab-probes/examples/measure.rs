//! The measuring core without Python: reads a request (one line of JSON) and prints the worker's events.
//!
//! `echo '{"settings":{"profile":"quick","only":["memory.load*"]}}' | cargo run --release --example measure`

use latlab_probes::session::{Request, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    run(&request, None, &mut std::io::stdout().lock(), &|| false)?;
    Ok(())
}
