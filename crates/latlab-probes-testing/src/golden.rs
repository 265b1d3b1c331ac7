//! What was written down once, before code was moved, and must come out again byte for byte.

use std::path::Path;

use latlab_record::{Record, to_json};

/// A record as a run file has it: numbers of few digits, the same with every mathematical library.
///
/// # Panics
/// When it is no JSON.
pub fn as_line(record: &Record) -> String {
    let bytes = to_json(record).expect("a record is JSON");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Compares lines with those of a file of the workspace, named from its root; with `LATLAB_GOLDEN=write` in
/// the environment writes them there.
///
/// # Panics
/// At the first line that differs, or when the file cannot be read or written.
pub fn assert_golden(file: &str, lines: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var("LATLAB_GOLDEN").is_ok_and(|wish| wish == "write") {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let golden: Vec<&str> = text.lines().collect();
    for (number, (line, golden)) in lines.iter().zip(&golden).enumerate() {
        assert_eq!(line, golden, "{file}, line {}", number + 1);
    }
    assert_eq!(lines.len(), golden.len(), "{file} has another number of lines");
    assert!(!golden.is_empty(), "{file} is empty");
}
