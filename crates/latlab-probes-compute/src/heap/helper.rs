//! The child process in which a heap is measured, with the allocator that is to answer.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use latlab_harness::{Child, RemoteBlock};
use latlab_probes_shared::prelude::*;

use crate::no_memory;

/// Whose `malloc`, as in a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Name {
    System,
    Mimalloc,
    Jemalloc,
}

/// An allocator that may be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allocator {
    pub(crate) name: Name,
    /// What is preloaded; none for the C library's own.
    pub(crate) preload: Option<PathBuf>,
}

impl Allocator {
    pub(crate) const SYSTEM: Self = Self { name: Name::System, preload: None };
}

/// File names of the libraries, the newest first. Debian's packages are libmimalloc2.0 and libjemalloc2.
const LIBRARIES: [(Name, &[&str]); 2] = [
    (Name::Mimalloc, &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"]),
    (Name::Jemalloc, &["libjemalloc.so.2", "libjemalloc.so"]),
];

/// Where libraries lie on the usual distributions.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib"].map(PathBuf::from).to_vec();
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    for root in ["/usr/lib", "/lib", "/usr/local/lib"] {
        folders.push(Path::new(root).join(&triplet));
    }
    folders
}

/// The allocators that can be preloaded here, and the names of those that are not installed.
pub(crate) fn found() -> (Vec<Allocator>, Vec<Name>) {
    if !cfg!(target_os = "linux") {
        return (Vec::new(), Vec::new());
    }
    found_in(&folders())
}

fn found_in(folders: &[PathBuf]) -> (Vec<Allocator>, Vec<Name>) {
    let (mut present, mut missing) = (Vec::new(), Vec::new());
    for (name, files) in LIBRARIES {
        let path = files
            .iter()
            .flat_map(|file| folders.iter().map(move |folder| folder.join(file)))
            .find(|path| is_for_this_machine(path));
        match path {
            Some(path) => present.push(Allocator { name, preload: Some(path) }),
            None => missing.push(name),
        }
    }
    (present, missing)
}

/// Whether this is a library for this architecture: `/usr/lib` may hold those of others.
fn is_for_this_machine(path: &Path) -> bool {
    // ELF header: magic, ..., `e_machine` at 18 (x86-64 is 62, AArch64 is 183), little-endian on both.
    let machine: u16 = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return false,
    };
    let mut header = [0u8; 20];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut header))
        .is_ok_and(|()| header.starts_with(b"\x7fELF") && header[18..] == machine.to_le_bytes())
}

/// Why heaps cannot be measured here at all, where they cannot.
pub(crate) fn refused(env: &Env, is_enough: bool, needed: &str) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("allocation is measured on Linux only, so far".to_owned());
    }
    if env.child.is_none() {
        return Some("needs a child process of its own, which cannot be started here".to_owned());
    }
    no_memory(env, is_enough, needed)
}

/// Starts a child with the allocator preloaded, whatever the user has preloaded for himself.
pub(crate) fn start(env: &Env, program: &str, allocator: &Allocator) -> Result<Child> {
    let command = env
        .child
        .as_ref()
        .ok_or_else(|| ProbeError::Other("no child process can be started here".to_owned()))?;
    let preload = allocator.preload.as_ref().map_or_else(OsString::new, |path| path.clone().into_os_string());
    // One arena: whichever thread of the child allocates, it is from the heap that grows in place, as in a
    // program of one thread.
    let environment = [("LD_PRELOAD", preload), ("MALLOC_ARENA_MAX", OsString::from("1"))];
    Child::start(command, program, &environment)
}

/// A child's block in which its thread waited for a CPU for more than this share of the time is repeated, as
/// the scheduler does with blocks of its own thread.
const LOST_SHARE: f64 = 0.2;

/// Adds a child's block, and marks it where the child was kept from its CPU.
pub(crate) fn absorb(block: &mut Block, remote: &RemoteBlock) {
    if was_kept_from_its_cpu(remote) {
        block.mark_disturbed();
    }
    block.absorb(remote);
}

fn was_kept_from_its_cpu(remote: &RemoteBlock) -> bool {
    let waited = remote.observed.run_queue_delay_ns.unwrap_or(0);
    waited as f64 > LOST_SHARE * remote.timed_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_another_architecture_or_none_at_all_is_not_taken() {
        let folder = std::env::temp_dir().join(format!("latlab-libraries-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        let mut header = [0u8; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        header[18] = 40;
        std::fs::write(folder.join("libmimalloc.so.2"), header).expect("writable");
        std::fs::write(folder.join("libjemalloc.so.2"), b"not a library").expect("writable");
        let (present, missing) = found_in(std::slice::from_ref(&folder));
        header[18] = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        std::fs::write(folder.join("libjemalloc.so.2"), header).expect("writable");
        let (own, _) = found_in(std::slice::from_ref(&folder));
        std::fs::remove_dir_all(&folder).expect("removable");
        assert_eq!((present, missing), (Vec::new(), vec![Name::Mimalloc, Name::Jemalloc]));
        if ["x86_64", "aarch64"].contains(&std::env::consts::ARCH) {
            assert_eq!(own.len(), 1);
            assert_eq!(own[0].name, Name::Jemalloc);
        }
    }

    #[test]
    fn a_block_whose_child_waited_for_its_cpu_is_repeated() {
        let remote = |waited_ns| RemoteBlock {
            values: vec![100.0],
            ops: 10_000,
            ops_per_window: Some(10_000),
            observed: latlab_record::Observed {
                run_queue_delay_ns: Some(waited_ns),
                ..latlab_record::Observed::default()
            },
        };
        assert!(!was_kept_from_its_cpu(&remote(100_000)));
        assert!(was_kept_from_its_cpu(&remote(300_000)));
    }
}
