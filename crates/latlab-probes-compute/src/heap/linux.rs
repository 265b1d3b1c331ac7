//! Linux: mmap(2), getrusage(2), dladdr(3).

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use latlab_harness::ProbeError;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A private mapping without a page yet, huge pages refused.
pub(crate) struct Region {
    base: *mut u8,
    bytes: usize,
}

impl Region {
    pub(crate) fn new(bytes: usize) -> Result<Self, ProbeError> {
        let bytes = bytes.max(1).next_multiple_of(page_bytes());
        // SAFETY: a fresh private mapping at an address of the kernel's choice touches nothing of ours.
        let base = unsafe {
            mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .map_err(|error| ProbeError::System {
            what: format!("mapping {} MiB", bytes >> 20),
            source: error.into(),
        })?;
        // SAFETY: the range is ours; the advice changes no content. A kernel without huge pages refuses it, and has none.
        let _advised = unsafe { madvise(base, bytes, Advice::LinuxNoHugepage) };
        Ok(Self { base: base.cast(), bytes })
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers into it any more.
        let _unmapped = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}

/// Bytes of a base page.
pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Page faults without I/O of this thread so far.
pub(crate) fn minor_faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage of ours; all-zero is a valid one.
    let faults = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_minflt
    };
    u64::try_from(faults).unwrap_or(0)
}

/// Whether the kernel counts this thread's page faults one by one: some sandboxes and emulators answer zero, or count their own.
pub(crate) fn counts_faults() -> bool {
    const PAGES: usize = 256;
    let Ok(region) = Region::new(PAGES * page_bytes()) else {
        return false;
    };
    let touch = || {
        let before = minor_faults();
        for page in 0..PAGES {
            // SAFETY: inside the region.
            unsafe { region.base().add(page * page_bytes()).write_volatile(1) };
        }
        minor_faults() - before
    };
    let (first, second) = (touch(), touch());
    let pages = PAGES as u64;
    (pages..=pages + pages / 16).contains(&first) && second <= pages / 16
}

/// What the dynamic linker binds this name to.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero; RTLD_DEFAULT searches what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// File name of the library that this name is bound to.
pub(crate) fn file_of(name: &CStr) -> Option<String> {
    let address = symbol(name)?;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr(3) fills the structure when it answers other than zero; all-zero is a valid one.
    let info = unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's own string, which lives as long as the library.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    Some(path.rsplit('/').next().unwrap_or(&path).to_owned())
}
