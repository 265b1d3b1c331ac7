//! Mounted file systems.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::disks::{self, Disk};
use crate::mounts::{self, Mount};
use crate::notes::Notes;
use crate::text;

/// A mounted file system that can hold data.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each a column of its own in the run file"
)]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    /// Where it is mounted. Private.
    #[schemars(extend("private" = true))]
    pub mount_point: String,
    /// Type: `ext4`, `xfs`, `tmpfs`.
    pub kind: String,
    /// Device or server. Private.
    #[schemars(extend("private" = true))]
    pub source: String,
    /// Mount options that change timings.
    pub options: Vec<String>,
    /// Size, bytes; `None` when it was not asked (network, user space) or not answered.
    pub total_bytes: Option<u64>,
    /// What an ordinary user may still write, bytes.
    pub available_bytes: Option<u64>,
    /// Lives in memory: no disk is measured there.
    pub in_memory: bool,
    /// A layer over others, as in containers.
    pub overlay: bool,
    /// On another machine, or shared with the host of a virtual machine.
    pub network: bool,
    /// Served by a program.
    pub user_space: bool,
    /// Mounted read-only.
    pub read_only: bool,
    /// The block device below, as in [`crate::Disk::name`].
    pub disk: Option<String>,
}

/// The directory that was asked about.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Its path without symbolic links; of the nearest ancestor if it does not exist. Private.
    #[schemars(extend("private" = true))]
    pub path: String,
    /// Its file system.
    pub file_system: Option<FileSystem>,
}

/// Types that hold no data of users.
const PSEUDO: &str = "\
    autofs binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs \
    fuse.gvfsd-fuse fuse.lxcfs fuse.portal fusectl hugetlbfs mqueue nfsd nsfs proc pstore resctrl \
    rpc_pipefs securityfs selinuxfs sysfs tracefs";

/// Served by another machine, or (9p, virtiofs, vboxsf, drvfs, ...) by the host.
const NETWORK: &str = "\
    9p afs beegfs ceph cifs drvfs fuse.glusterfs fuse.s3fs fuse.sshfs gfs2 gpfs lustre nfs nfs4 ocfs2 \
    prl_fs smb3 smbfs vboxsf virtiofs vmhgfs fuse.vmhgfs-fuse fuse.rclone";

/// Options, before `=`, that change timings. Others are left out: some hold paths and user names.
const OPTIONS: &str = "\
    actimeo allocsize async autodefrag barrier cache commit compress compress-force data datacow dax \
    delalloc dirsync discard discard=async hard huge inode32 inode64 journal_async_commit \
    journal_checksum largeio lazytime local logbsize logbufs metacopy msize nconnect noac noatime \
    nobarrier nodatacow nodatasum nodelalloc nodiratime nodiscard norelatime nossd proto relatime ro \
    rsize rw size soft space_cache ssd strictatime stripe sunit swalloc swidth sync trans vers volatile \
    wsize";

/// The file systems among the mounts, and the one of `dir`.
pub(crate) fn read(
    mounts: &[Mount],
    disks: &[Disk],
    calls: &Calls,
    dir: &Path,
    notes: &mut Notes,
) -> (Vec<FileSystem>, Directory) {
    let visible = mounts::visible(mounts.to_vec());
    let kept: Vec<&Mount> = visible.iter().filter(|mount| !text::listed(PSEUDO, &mount.kind)).collect();
    let mut systems: Vec<FileSystem> = kept.iter().map(|mount| file_system(mount, disks)).collect();
    for system in systems.iter_mut().filter(|system| !system.network && !system.user_space) {
        ask_space(system, calls);
    }
    if systems.is_empty() {
        notes.say("file_systems", "no mount of a file system that holds data is listed");
    }

    // The mount's number is exact where the kernel tells it (5.8); the path is right unless mounts changed
    // since.
    let by_number = |path: &Path| {
        let id = (calls.mount_id)(path)?;
        kept.iter().position(|mount| mount.id == id)
    };
    let directory = directory(&systems, calls, dir, by_number, notes);
    (systems, directory)
}

/// The directory's file system; its size is asked for even if it is a network's.
pub(crate) fn directory(
    systems: &[FileSystem],
    calls: &Calls,
    dir: &Path,
    by_number: impl Fn(&Path) -> Option<usize>,
    notes: &mut Notes,
) -> Directory {
    let path = (calls.resolve)(dir);
    let mut file_system =
        by_number(&path).map_or_else(|| holding(systems, &path), |index| systems.get(index)).cloned();
    match file_system.as_mut() {
        None => notes.say("dir.file_system", "no listed mount holds the directory"),
        Some(system) if system.total_bytes.is_none() => {
            ask_space(system, calls);
            if system.total_bytes.is_none() {
                notes.say("dir.file_system.total_bytes", "the file system does not report its size");
            }
        }
        Some(_) => {}
    }
    Directory { path: text::clean(&path.to_string_lossy()), file_system }
}

pub(crate) fn ask_space(system: &mut FileSystem, calls: &Calls) {
    let space = (calls.space)(Path::new(&system.mount_point));
    system.total_bytes = space.map(|space| space.total_bytes);
    system.available_bytes = space.map(|space| space.available_bytes);
}

fn file_system(mount: &Mount, disks: &[Disk]) -> FileSystem {
    let kind = mount.kind.as_str();
    let user_space = kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.");
    let mut options: Vec<String> = Vec::new();
    for option in mount.options.iter().chain(&mount.super_options) {
        let name = option.split('=').next().unwrap_or_default();
        if text::listed(OPTIONS, name) && !options.contains(option) {
            options.push(text::clean(option));
        }
    }
    let read_only =
        [&mount.options, &mount.super_options].iter().any(|list| list.iter().any(|option| option == "ro"));
    if read_only {
        options.retain(|option| option != "rw");
    }
    FileSystem {
        mount_point: text::clean(&mount.point),
        kind: mount.kind.clone(),
        source: mount.source.clone(),
        options,
        total_bytes: None,
        available_bytes: None,
        in_memory: matches!(kind, "tmpfs" | "ramfs")
            || mount.source.starts_with("/dev/ram")
            || mount.source.starts_with("/dev/zram"),
        overlay: matches!(kind, "overlay" | "aufs" | "fuse.fuse-overlayfs" | "unionfs"),
        network: text::listed(NETWORK, kind),
        user_space,
        read_only,
        disk: disks::holding(disks, &mount.device, &mount.source),
    }
}

/// The last of the file systems with the longest mount point that `path` lies under.
pub(crate) fn holding<'a>(systems: &'a [FileSystem], path: &Path) -> Option<&'a FileSystem> {
    systems
        .iter()
        .filter(|system| path.starts_with(&system.mount_point))
        .max_by_key(|system| Path::new(&system.mount_point).components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mount_point: &str, kind: &str) -> FileSystem {
        FileSystem { mount_point: mount_point.to_owned(), kind: kind.to_owned(), ..FileSystem::default() }
    }

    fn kind_of(systems: &[FileSystem], path: &str) -> Option<String> {
        holding(systems, Path::new(path)).map(|system| system.kind.clone())
    }

    #[test]
    fn the_longest_mount_point_holds_the_path() {
        let systems = [at("/", "ext4"), at("/home", "xfs"), at("/home/a/b", "tmpfs")];
        assert_eq!(kind_of(&systems, "/home/a/c").as_deref(), Some("xfs"));
        assert_eq!(kind_of(&systems, "/homes").as_deref(), Some("ext4"));
        assert_eq!(kind_of(&systems, "/home/a/b").as_deref(), Some("tmpfs"));
        assert_eq!(kind_of(&systems, "relative"), None);
    }

    #[test]
    fn options_with_paths_and_names_are_left_out() {
        let mounts = mounts::parse(
            "9 1 0:40 / /merged rw,relatime - overlay overlay ro,lowerdir=/secret/l,username=bob,volatile\n",
        );
        let system = file_system(&mounts[0], &[]);
        assert_eq!(system.options, ["relatime", "ro", "volatile"]);
        assert!(system.overlay && system.read_only);
    }
}
