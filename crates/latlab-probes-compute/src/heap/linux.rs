//! Linux: new pages, counted faults, dladdr(3).

use std::ffi::{CStr, c_void};

use latlab_probes_shared::prelude::*;
use rustix::mm::Advice;

use crate::region::faults_of_this_thread;
pub(crate) use crate::region::{Region, page_bytes};

/// A private mapping without a page yet, huge pages refused.
pub(crate) fn new_pages(bytes: usize) -> Result<Region> {
    let region = Region::plain(bytes, false)
        .map_err(|error| refused(format!("mapping {} MiB", bytes >> 20), error))?;
    // A kernel without huge pages refuses the advice, and has none.
    let _advised = region.advise(Advice::LinuxNoHugepage);
    Ok(region)
}

/// Page faults without I/O of this thread so far.
pub(crate) fn minor_faults() -> u64 {
    faults_of_this_thread().minor
}

/// Whether the kernel counts this thread's page faults one by one: some sandboxes and emulators answer zero,
/// or count their own.
pub(crate) fn counts_faults() -> bool {
    const PAGES: usize = 256;
    let Ok(region) = new_pages(PAGES * page_bytes()) else { return false };
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
