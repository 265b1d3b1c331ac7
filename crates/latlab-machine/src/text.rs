//! Text of the kernel's file formats, turned into values.

/// The longest string taken from a file: longer ones are cut (names and options are short; this is a guard).
const LONGEST: usize = 512;

/// Makes a foreign string safe to print: control and text-direction characters become U+FFFD, ends are
/// trimmed.
pub(crate) fn clean(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .chars()
        .take(LONGEST)
        .map(|c| if obeyed_by_terminals(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

fn obeyed_by_terminals(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `clean`, and nothing at all for an empty result.
pub(crate) fn said(text: &str) -> Option<String> {
    Some(clean(text)).filter(|text| !text.is_empty())
}

/// Whether a list of words holds this one.
pub(crate) fn listed(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The kernel's CPU list format: `0-3,8,10-11`. An empty list is valid.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    // More CPUs than any kernel supports (NR_CPUS is 8192): bounds the work on damaged text.
    const MOST: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if last >= MOST || first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// A size as sysfs writes it: `48K`, `1024K`, `32M`, or plain bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let scale: u64 = match unit {
        "" | "B" => 1,
        "K" | "k" | "kB" | "KB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// The chosen word of a sysfs choice: `always [madvise] never`, or `none (full)` in debugfs.
pub(crate) fn chosen(text: &str) -> Option<String> {
    text.split_whitespace().find_map(|word| {
        let inner = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'))
            .or_else(|| word.strip_prefix('(').and_then(|word| word.strip_suffix(')')))?;
        said(inner)
    })
}

/// The value of the first `key<separator>value` line; spaces and tabs around both are ignored.
pub(crate) fn field<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The value in bytes of a `Key:   1234 kB` line.
pub(crate) fn kib_field(text: &str, key: &str) -> Option<u64> {
    let value = field(text, key, ':')?;
    value.strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok())?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_list_is_ranges_and_single_numbers() {
        assert_eq!(cpu_list("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
    }

    #[test]
    fn a_damaged_cpu_list_is_no_list() {
        for damaged in ["3-1", "a", "0-", "0-4294967295", "-1"] {
            assert_eq!(cpu_list(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn sizes_carry_binary_units() {
        assert_eq!(size("48K\n"), Some(49_152));
        assert_eq!(size("32M"), Some(32 << 20));
        assert_eq!(size("491520K"), Some(480 << 20));
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(size("18446744073709551615G"), None);
        assert_eq!(size("big"), None);
    }

    #[test]
    fn the_chosen_word_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("none voluntary (full) lazy").as_deref(), Some("full"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn terminal_commands_do_not_survive_cleaning() {
        assert_eq!(clean("  Disk\u{1b}[2J \u{202e}x\0\n"), "Disk\u{fffd}[2J \u{fffd}x");
    }
}
