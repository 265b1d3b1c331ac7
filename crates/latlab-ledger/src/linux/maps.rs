//! The code that a process has mapped.

use std::rc::Rc;

use super::proc_file::text;
use crate::stream::Map;

/// From `/proc/PID/maps`; empty when it may not be read.
pub(crate) fn of(pid: u32) -> Vec<Map> {
    text(&format!("/proc/{pid}/maps"))
        .lines()
        .filter_map(parsed)
        .collect()
}

fn parsed(line: &str) -> Option<Map> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let executable = words.next()?.contains('x');
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = number(words.next()?)?;
    // Device and inode; the path may hold blanks.
    let path = words
        .nth(2)
        .map_or("//anon", |path| line.find(path).map_or(path, |at| &line[at..]));
    executable.then_some(Map {
        start: number(start)?,
        end: number(end)?,
        offset,
        path: Rc::from(path.trim_end()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_and_data_left_out() {
        let code = parsed("55d0-55f0 r-xp 00002000 08:01 1234   /usr/bin/with blank").unwrap();
        assert_eq!((code.start, code.end, code.offset), (0x55d0, 0x55f0, 0x2000));
        assert_eq!(code.path.as_ref(), "/usr/bin/with blank");
        assert_eq!(parsed("55d0-55f0 rw-p 00002000 08:01 1234   /usr/bin/x"), None);
        assert_eq!(
            parsed("7f00-7f10 rwxp 00000000 00:00 0").unwrap().path.as_ref(),
            "//anon"
        );
    }

    #[test]
    fn this_process_has_mapped_itself() {
        assert!(!of(std::process::id()).is_empty());
    }
}
