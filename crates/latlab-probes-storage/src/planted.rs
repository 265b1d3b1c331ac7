//! What tests plant: a directory of their own, and a file that somebody keeps in memory.

use std::path::PathBuf;

use latlab_harness::{AnyProbe, Env};
use latlab_probes_testing as testing;

/// An own empty directory beside the test binary; removed at the end.
pub(crate) struct Own(pub(crate) PathBuf);

impl Own {
    pub(crate) fn new(name: &str) -> Self {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let path = binary.with_file_name(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the build folder can be written");
        Self(path)
    }

    pub(crate) fn entries(&self) -> usize {
        std::fs::read_dir(&self.0).expect("readable").count()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// These surroundings, where this probe finds a disk in them: the build folder may be in memory.
pub(crate) fn on_a_disk(probe: &dyn AnyProbe, env: Env) -> Option<Env> {
    testing::has_disk(probe, &env).then_some(env)
}

/// A test file, and the surroundings in which it was laid out; `None` where the build folder is in memory.
#[cfg(target_os = "linux")]
pub(crate) fn target() -> Option<(Env, crate::disk::Target)> {
    let env = testing::env(64 << 20);
    let no_disk = matches!(crate::disk::support(&env), latlab_harness::Support::No(_));
    let target = (!no_disk).then(|| crate::disk::Target::open(&env).expect("room"))?;
    Some((env, target))
}

/// Keeps the first bytes of a file in memory, as another program that has it mapped. Under emulation the
/// pages are not held.
#[cfg(target_os = "linux")]
pub(crate) struct Mapped {
    pub(crate) base: *mut std::ffi::c_void,
    bytes: usize,
}

#[cfg(target_os = "linux")]
impl Mapped {
    pub(crate) fn new(file: impl std::os::fd::AsFd, bytes: usize) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap};

        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, flags, file, 0) };
        let base = base.expect("mapped");
        for page in (0..bytes).step_by(4096) {
            // SAFETY: inside the mapping; the file is as long.
            unsafe { base.cast::<u8>().add(page).read_volatile() };
        }
        Self { base, bytes }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; nothing refers to it.
        unsafe { rustix::mm::munmap(self.base, self.bytes) }.expect("unmapped");
    }
}
