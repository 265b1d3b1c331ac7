//! Prints this machine: one line, then JSON. With `--cpuid`: the CPUID dump that the tests' captured trees hold.

use std::path::Path;

fn main() -> Result<(), serde_json::Error> {
    let machine = latlab_machine::describe(Path::new("."));
    if std::env::args().any(|argument| argument == "--cpuid") {
        print!("{}", latlab_machine::Calls::of_this_cpu().registers.unwrap_or_default().dump());
    } else {
        println!("{}\n{}", latlab_machine::one_line(&machine), serde_json::to_string_pretty(&machine)?);
    }
    Ok(())
}
