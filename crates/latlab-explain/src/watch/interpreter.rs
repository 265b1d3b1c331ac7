//! What a program needs to be started by: the interpreter of a script, the dynamic loader of an ELF file.
//! Where that is missing the kernel says that there is no such file, of a program that is there.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::budget::Budget;
use super::image::Image;
use super::mapped;

/// As the kernel follows scripts whose interpreters are scripts.
const DEEPEST: u32 = 5;
/// What the kernel reads of a script's first line.
const FIRST_LINE: u64 = 256;
/// Where `execvpe` looks without a `PATH`.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// The interpreter or loader that is missing, if this program is there and that is not.
pub(crate) fn missing(program: &OsStr) -> Option<PathBuf> {
    let mut file = place(program)?;
    for _ in 0..DEEPEST {
        let next = interpreter(&file)?;
        if !next.exists() {
            return Some(next);
        }
        file = next;
    }
    None
}

/// The file that is run by this name.
fn place(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(USUAL_PATH));
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    let file = mapped::own(program.to_str()?)?;
    (&file).take(FIRST_LINE).read_to_end(&mut head).ok()?;
    let name = match head.strip_prefix(b"#!") {
        Some(line) => of_script(line).to_vec(),
        None => loader(file)?,
    };
    (!name.is_empty()).then(|| PathBuf::from(OsString::from_vec(name)))
}

/// The first word of the rest of a script's first line. A carriage return is part of it: the kernel knows no
/// other ends of lines.
fn of_script(line: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.split(is_blank).find(|word| !word.is_empty()).unwrap_or_default()
}

fn loader(file: std::fs::File) -> Option<Vec<u8>> {
    let image = Image::of(file, &Rc::new(Budget::here()))?;
    let mut name = image.section(&image.parsed()?, ".interp")?;
    name.truncate(name.iter().position(|byte| *byte == 0)?);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// What is missing of a program with this content.
    fn missing_of(name: &str, content: &[u8]) -> Option<String> {
        let path = std::env::temp_dir().join(format!("latlab-interpreter-{name}-{}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        let missing = missing(path.as_os_str());
        std::fs::remove_file(path).unwrap();
        missing.map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_script_names_its_interpreter_in_its_first_line() {
        assert_eq!(missing_of("there", b"#!/bin/sh\n/nowhere/at/all\n"), None);
        assert_eq!(missing_of("words", b"#! /nowhere/perl -w\n").as_deref(), Some("/nowhere/perl"));
        assert_eq!(missing_of("return", b"#!/bin/sh\r\n:\r\n").as_deref(), Some("/bin/sh\r"));
        assert_eq!(missing_of("empty", b"#!\n"), None);
    }

    #[test]
    fn a_program_names_its_loader() {
        let name = b"/nowhere/ld.so\0".to_vec();
        let program = sample::elf(&[sample::debug(".interp", name)]);
        assert_eq!(missing_of("elf", &program).as_deref(), Some("/nowhere/ld.so"));
        assert_eq!(missing_of("static", &sample::elf(&[])), None);
        assert_eq!(missing(std::env::current_exe().unwrap().as_os_str()), None);
    }

    #[test]
    fn a_program_that_is_not_there_misses_nothing_else() {
        assert_eq!(missing(OsStr::new("/nowhere/at/all")), None);
        assert_eq!(missing(OsStr::new("nowhere-at-all")), None);
    }
}
