//! The code that a process has mapped.

use std::fs::File;
use std::io::Read as _;
use std::rc::Rc;

use crate::account::mappings::Map;
use crate::account::records::FileId;

/// Of a longer list the rest is left out, bytes: a large browser's has one.
const LONGEST: u64 = 16 << 20;

/// From `/proc/PID/maps`; empty when it may not be read.
pub(crate) fn of(pid: u32) -> Vec<Map> {
    let maps = list(pid);
    let code = maps.lines().filter_map(parsed).filter(|(is_code, _)| *is_code);
    code.map(|(_, map)| map).collect()
}

/// The same with data.
pub(crate) fn all(pid: u32) -> Vec<Map> {
    let maps = list(pid);
    maps.lines().filter_map(parsed).map(|(_, map)| map).collect()
}

fn list(pid: u32) -> String {
    let mut bytes = Vec::new();
    // What came before an error counts.
    let _ =
        File::open(format!("/proc/{pid}/maps")).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line, and whether it is of code.
fn parsed(line: &str) -> Option<(bool, Map)> {
    // The path may hold blanks, also at its end.
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = number(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let file = FileId {
        major: u32::from_str_radix(major, 16).ok()?,
        minor: u32::from_str_radix(minor, 16).ok()?,
        inode: words.next()?.parse().ok()?,
    };
    let path = words.next().unwrap_or("").trim_start_matches(' ');
    let map = Map {
        start: number(start)?,
        end: number(end)?,
        offset,
        path: Rc::from(if path.is_empty() { "//anon" } else { path }),
        file,
    };
    Some((is_code, map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_and_data_left_out() {
        let line = "55d0-55f0 r-xp 00002000 08:1f 1234                       /usr/bin/with  blank";
        let (is_code, code) = parsed(line).unwrap();
        assert!(is_code);
        assert_eq!((code.start, code.end, code.offset), (0x55d0, 0x55f0, 0x2000));
        assert_eq!(code.path.as_ref(), "/usr/bin/with  blank");
        let file = FileId { major: 8, minor: 31, inode: 1234 };
        assert_eq!(code.file, file);
        assert!(!parsed("55d0-55f0 rw-p 00002000 08:01 1234   /usr/bin/x").unwrap().0);
        for none in ["7f00-7f10 rwxp 00000000 00:00 0", "7f00-7f10 rwxp 00000000 00:00 0 "] {
            assert_eq!(parsed(none).unwrap().1.path.as_ref(), "//anon");
        }
        assert_eq!(parsed("nonsense"), None);
    }

    #[test]
    fn this_process_has_mapped_itself() {
        assert!(!of(std::process::id()).is_empty());
    }

    #[test]
    fn fuzzed_lists_of_mappings_do_no_harm() {
        let text = "55d0-55f0 r-xp 00002000 08:1f 1234                       /usr/bin/with  blank\n\
                    7f00-7f10 rwxp 00000000 00:00 0 \n\
                    ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";
        let mut understood = 0;
        super::super::sample::fuzz(|random| {
            let mut bytes = text.as_bytes().to_vec();
            random.change(&mut bytes);
            let changed = String::from_utf8_lossy(&bytes);
            for (line, map) in changed.lines().filter_map(|line| Some((line, parsed(line)?.1))) {
                understood += 1;
                let is_path = *map.path == *"//anon" || line.ends_with(&*map.path);
                assert!(is_path && !map.path.is_empty(), "{line:?}");
            }
        });
        assert!(understood > 0, "no line was understood");
    }
}
