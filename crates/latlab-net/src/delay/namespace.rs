//! Namespaces of our own, as root or as an ordinary user.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::NetError;

/// How another process enters one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    process: u32,
    user: Option<i32>,
    network: i32,
}

/// Where the path lies. Gone with the last process that holds them.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// The user namespace that owns the others; none when this process could do without.
    user: Option<File>,
    pub(super) client: File,
    pub(super) server: File,
    /// Where this process stays.
    pub(super) between: File,
}

impl Namespaces {
    pub(super) fn make() -> Result<Self, NetError> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads != 1 {
            return Err(NetError::NoNamespaces(format!(
                "the process that makes one has {threads} threads instead of one"
            )));
        }
        let user = match unshare(UnshareFlags::NEWNET) {
            Ok(()) => None,
            Err(_) => Some(own_user()?),
        };
        Self::below(user)
    }

    /// Others, with the same owner.
    pub(super) fn again(self) -> Result<Self, NetError> {
        Self::below(self.user)
    }

    fn below(user: Option<File>) -> Result<Self, NetError> {
        let another = || {
            unshare(UnshareFlags::NEWNET)?;
            File::open("/proc/self/ns/net")
        };
        let three = || Ok([another()?, another()?, another()?]);
        let [client, server, between] =
            three().map_err(|error: io::Error| NetError::NoNamespaces(why(&error)))?;
        Ok(Self { user, client, server, between })
    }

    /// How another process enters this end.
    pub(super) fn entry(&self, end: &File) -> Entry {
        let user = self.user.as_ref().map(AsRawFd::as_raw_fd);
        Entry { process: std::process::id(), user, network: end.as_raw_fd() }
    }

    /// Does something in one of them, and comes back.
    pub(super) fn inside<T>(
        &self,
        namespace: &File,
        work: impl FnOnce() -> Result<T, NetError>,
    ) -> Result<T, NetError> {
        go(namespace, LinkNameSpaceType::Network)?;
        let done = work();
        go(&self.between, LinkNameSpaceType::Network)?;
        done
    }
}

/// Moves this process, which has one thread, to one end of a path.
/// Fails when the keeper has gone, or this process has threads or lacks the right.
pub fn enter(entry: &Entry) -> Result<(), NetError> {
    let open = |number: i32| {
        File::open(format!("/proc/{}/fd/{number}", entry.process))
            .map_err(NetError::system("finding the path's keeper"))
    };
    let network = open(entry.network)?;
    if let Some(user) = entry.user {
        go(&open(user)?, LinkNameSpaceType::User)?;
    }
    go(&network, LinkNameSpaceType::Network)
}

fn go(namespace: &File, kind: LinkNameSpaceType) -> Result<(), NetError> {
    move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(NetError::system("entering a namespace"))
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: neither the descriptors nor the file system's root are among what is unshared; namespaces of
    // users and networks change no memory and no descriptor of this process.
    Ok(unsafe { unshare_unsafe(what) }?)
}

/// A user namespace in which this user is who it was, with the right to make networks.
fn own_user() -> Result<File, NetError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).map_err(|error| NetError::NoNamespaces(why(&error)))?;
    let write = |path: &str, text: &str| {
        std::fs::write(path, text).map_err(NetError::system("naming this user in its own namespace"))
    };
    // The kernel wants this before an ordinary user may name its group (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    File::open("/proc/self/ns/user").map_err(NetError::system("a user namespace"))
}

/// What is in the way, as far as this machine says.
fn why(error: &io::Error) -> String {
    let says = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let setting = [
        ("kernel.apparmor_restrict_unprivileged_userns", "1"),
        ("user.max_user_namespaces", "0"),
        ("user.max_net_namespaces", "0"),
        ("kernel.unprivileged_userns_clone", "0"),
    ]
    .into_iter()
    .find(|(name, value)| says(&format!("/proc/sys/{}", name.replace('.', "/")), value));
    match setting {
        Some((name, value)) => format!("{error}; the system is set to {name}={value}"),
        None => format!("{error}; a container's rules may forbid it"),
    }
}
