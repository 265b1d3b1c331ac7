//! The operating system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::{Calls, Libc};
use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// The operating system.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Os {
    /// `Linux`, `macOS`, `Windows`.
    pub name: Option<String>,
    /// Kernel release (Linux, macOS) or build number (Windows).
    pub kernel_release: Option<String>,
    /// Kernel build line.
    pub kernel_version: Option<String>,
    /// Distribution or product with version, for people.
    pub distribution: Option<String>,
    /// Instruction set: `x86_64`, `aarch64`.
    pub arch: Option<String>,
    /// The C library that this process uses.
    pub libc: Option<Libc>,
    /// Host name. Private.
    #[schemars(extend("private" = true))]
    pub host_name: Option<String>,
}

pub(crate) fn read(root: &Root, calls: &Calls, notes: &mut Notes) -> Os {
    let uname = calls.uname.as_ref();
    let mut named =
        |what: &str, called: Option<&String>, file: &str| match called.and_then(|name| text::said(name)) {
            Some(name) => Some(name),
            None => notes.or(what, root.line(file)),
        };
    let mut os = Os {
        name: named("os.name", uname.map(|u| &u.system), "/proc/sys/kernel/ostype"),
        kernel_release: named("os.kernel_release", uname.map(|u| &u.release), "/proc/sys/kernel/osrelease"),
        kernel_version: named("os.kernel_version", uname.map(|u| &u.version), "/proc/sys/kernel/version"),
        arch: named("os.arch", uname.map(|u| &u.arch), "/proc/sys/kernel/arch"),
        host_name: named("os.host_name", uname.map(|u| &u.host), "/proc/sys/kernel/hostname"),
        distribution: None,
        libc: calls.libc.clone(),
    };
    if os.libc.is_none() {
        notes.say("os.libc", "the C library does not report its name");
    }
    let release = root.text("/etc/os-release").or_else(|_| root.text("/usr/lib/os-release"));
    os.distribution = notes.or("os.distribution", release).and_then(|release| distribution(&release));
    os
}

/// The product's name and version of an `os-release` file.
pub(crate) fn distribution(os_release: &str) -> Option<String> {
    let value = |key| {
        text::field(os_release, key, '=')
            .map(|value| value.trim_matches(['"', '\'']))
            .filter(|value| !value.is_empty())
    };
    let pretty = value("PRETTY_NAME").map(str::to_owned);
    pretty
        .or_else(|| {
            let name = value("NAME")?;
            Some(value("VERSION_ID").map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
        })
        .and_then(|name| text::said(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pretty_name_is_preferred() {
        let debian =
            "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(distribution(debian).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(distribution("NAME=Alpine\nVERSION_ID=3.20\n").as_deref(), Some("Alpine 3.20"));
        assert_eq!(distribution("PRETTY_NAME=\"\"\n"), None);
    }
}
