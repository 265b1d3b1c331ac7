//! Systems without a reader.

use std::path::Path;

use crate::machine::Machine;
use crate::notes::Unknown;

pub(crate) fn describe(_dir: &Path) -> Machine {
    let why = format!("there is no reader for {} yet", std::env::consts::OS);
    Machine { unknown: vec![Unknown { what: "machine".to_owned(), why }], ..Machine::default() }
}
