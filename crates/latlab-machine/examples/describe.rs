//! Prints this machine as JSON. With `--cpuid`: the CPUID dump that the tests' captured trees hold.

use std::path::Path;

fn main() -> Result<(), serde_json::Error> {
    if std::env::args().any(|argument| argument == "--cpuid") {
        print!("{}", latlab_machine::Calls::of_this_cpu().registers.unwrap_or_default().dump());
    } else {
        println!("{}", serde_json::to_string_pretty(&latlab_machine::describe(Path::new(".")))?);
    }
    Ok(())
}
