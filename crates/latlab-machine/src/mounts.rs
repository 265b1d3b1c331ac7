//! `/proc/self/mountinfo` (proc(5)): what is mounted where.

use std::path::Path;

use crate::text;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    /// `major:minor` as `stat` shows it.
    pub(crate) device: String,
    /// The folder of the file system that is mounted: `/`, unless it is a bind mount or a subvolume.
    pub(crate) root: String,
    pub(crate) point: String,
    pub(crate) options: Vec<String>,
    pub(crate) kind: String,
    pub(crate) source: String,
    pub(crate) super_options: Vec<String>,
}

/// Parses mountinfo; lines that are not as documented are left out.
pub(crate) fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mount> {
    // Optional fields stand between the options and a lone "-".
    let (front, back) = line.split_once(" - ")?;
    let front: Vec<&str> = front.split(' ').collect();
    let back: Vec<&str> = back.split(' ').collect();
    let [id, parent, device, root, point, options, ..] = front[..] else { return None };
    let [kind, source, ..] = back[..] else { return None };
    let list = |options: &str| options.split(',').map(unescape).collect();
    Some(Mount {
        id: id.parse().ok()?,
        parent: parent.parse().ok()?,
        device: text::clean(device),
        root: unescape(root),
        point: unescape(point),
        options: list(options),
        kind: text::clean(kind),
        source: text::clean(&unescape(source)),
        super_options: back.get(2).map(|options| list(options)).unwrap_or_default(),
    })
}

/// Space, tab, newline and backslash are written as `\040` and so on.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        if let Some(byte) = octal {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The mounts that a path can still reach: one below or at a later mount's point is hidden by it, unless it
/// is mounted on top of that one.
pub(crate) fn visible(mounts: Vec<Mount>) -> Vec<Mount> {
    let stands_on = |mount: &Mount, other: u64| {
        let mut at = mount.parent;
        // Bounded by the number of mounts, so that a damaged file with a circle ends.
        for _ in 0..mounts.len() {
            if at == other {
                return true;
            }
            match mounts.iter().find(|m| m.id == at) {
                Some(parent) if parent.parent != at => at = parent.parent,
                _ => return false,
            }
        }
        false
    };
    let hidden: Vec<bool> = mounts
        .iter()
        .enumerate()
        .map(|(i, mount)| {
            mounts[i + 1..]
                .iter()
                .any(|later| Path::new(&mount.point).starts_with(&later.point) && !stands_on(mount, later.id))
        })
        .collect();
    mounts.into_iter().zip(hidden).filter_map(|(mount, hidden)| (!hidden).then_some(mount)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_and_escapes_are_understood() {
        let mounts = parse(
            "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 propagate_from:2 - ext3 /dev/root \
                rw,errors=continue\n",
        );
        assert_eq!(mounts[0].point, "/mnt 2");
        assert_eq!(
            (mounts[0].root.as_str(), mounts[0].kind.as_str(), mounts[0].source.as_str()),
            ("/mnt1", "ext3", "/dev/root")
        );
        assert_eq!(mounts[0].options, ["rw", "noatime"]);
    }

    #[test]
    fn damaged_lines_are_left_out() {
        assert!(parse("36 35 98:0 / /\nnonsense - \n36 x 98:0 / / rw - ext4 a rw\n").is_empty());
    }

    #[test]
    fn a_mount_over_another_hides_it_and_what_is_below() {
        let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /data rw - ext4 /dev/sda2 rw\n\
                    3 2 8:3 / /data/deep rw - ext4 /dev/sda3 rw\n4 2 8:4 / /data rw - xfs /dev/sda4 rw\n\
                    5 4 8:5 / /data/deep rw - xfs /dev/sda5 rw\n";
        let left: Vec<u64> = visible(parse(text)).iter().map(|mount| mount.id).collect();
        assert_eq!(left, [1, 4, 5]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let text = "1 2 8:1 / /a rw - ext4 a rw\n2 1 8:2 / /a/b rw - ext4 b rw\n";
        assert!(!visible(parse(text)).is_empty());
    }
}
