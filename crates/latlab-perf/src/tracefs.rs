//! The tracepoints of this kernel: their numbers, and where the fields of their records lie.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

/// Where tracefs is usually mounted.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The folder `events` of tracefs: the mounted one, or one that only this process sees and that is gone with
/// it.
#[derive(Debug)]
pub struct Tracefs(Folder);

#[derive(Debug)]
enum Folder {
    Mounted(PathBuf),
    Own(OwnedFd),
}

impl Tracefs {
    /// Finds it or, where nobody has mounted it and this process may, makes a mount that is attached nowhere.
    /// Errors: why it cannot be read, and what would allow it.
    pub fn open() -> Result<Self, String> {
        for place in USUAL {
            let events = Path::new(place).join("events");
            if File::open(events.join("sched/sched_switch/id")).is_ok() {
                return Ok(Self(Folder::Mounted(events)));
            }
        }
        let detached = detached().map_err(io::Error::from);
        detached.map(|root| Self(Folder::Own(root))).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "needs root: the numbers of tracepoints are in tracefs, which this user may not read"
                    .to_owned()
            }
            Some(libc::ENODEV) => "this kernel was built without tracing".to_owned(),
            Some(libc::ENOSYS) => {
                "tracefs is not mounted, and this kernel or sandbox has no fsopen(2)".to_owned()
            }
            _ => format!("tracefs is not mounted and cannot be opened: {error}"),
        })
    }

    fn read(&self, path: &str) -> io::Result<String> {
        match &self.0 {
            Folder::Mounted(events) => std::fs::read_to_string(events.join(path)),
            Folder::Own(root) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let file = rustix::fs::openat(root, format!("events/{path}"), flags, Mode::empty())?;
                let mut text = String::new();
                File::from(file).read_to_string(&mut text)?;
                Ok(text)
            }
        }
    }

    /// The number of a tracepoint, as `sched/sched_switch`; `None` where this kernel does not have it.
    pub fn id(&self, name: &str) -> Option<u64> {
        self.read(&format!("{name}/id")).ok()?.trim().parse().ok()
    }

    /// Offset of a field in a tracepoint's raw data.
    pub fn offset(&self, name: &str, field: &str) -> Option<usize> {
        field_offset(&self.read(&format!("{name}/format")).ok()?, field)
    }
}

/// tracefs as a mount that is attached nowhere: visible to this process only, gone when it is closed.
fn detached() -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
}

/// Offset of a field, from a tracepoint's `format` file: `field:char next_comm[16]; offset:40; size:16; ...`.
fn field_offset(format: &str, field: &str) -> Option<usize> {
    format.lines().find_map(|line| {
        let declaration = line.trim_start().strip_prefix("field:")?;
        let (declaration, rest) = declaration.split_once(';')?;
        let name = declaration.split_ascii_whitespace().next_back()?;
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        // `__data_loc char[] name`: the type holds the brackets.
        (name == field).then_some(())?;
        let offset = rest.split_once("offset:")?.1;
        offset.split_once(';')?.0.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fields_offset_is_read_from_the_format() {
        let format = "name: sched_switch\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                      \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                      \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";
        assert_eq!(field_offset(format, "prev_comm"), Some(8));
        assert_eq!(field_offset(format, "prev_pid"), Some(24));
        assert_eq!(field_offset(format, "name"), Some(12));
        assert_eq!(field_offset(format, "next_pid"), None);
    }

    #[test]
    fn the_switch_has_a_number_and_fields_where_tracefs_can_be_read() {
        let Ok(tracefs) = Tracefs::open() else { return };
        assert!(tracefs.id("sched/sched_switch").is_some());
        assert!(tracefs.offset("sched/sched_switch", "next_comm").is_some_and(|offset| offset >= 8));
        assert_eq!(tracefs.id("sched/no_such_point"), None);
    }
}
