//! The GNU C library's heap: mallopt(3), `malloc_trim`(3).

/// glibc's defaults (malloc.c: `DEFAULT_MMAP_THRESHOLD_MIN`, `DEFAULT_TRIM_THRESHOLD`, `DEFAULT_TOP_PAD`),
/// bytes.
const DEFAULT_BYTES: i32 = 128 << 10;
/// malloc.c: `DEFAULT_MMAP_MAX`.
const DEFAULT_MAPPINGS: i32 = 65_536;

/// Fixes the thresholds where they are in a new process: what an earlier build allocated and freed would move
/// them.
pub(crate) fn as_in_a_new_process() {
    // SAFETY: mallopt takes integers; no other thread of this child allocates now.
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, DEFAULT_MAPPINGS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, DEFAULT_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, DEFAULT_BYTES);
        libc::mallopt(libc::M_TOP_PAD, DEFAULT_BYTES);
    }
}

/// Lets the heap grow by itself and keep every page that is freed. Small free blocks are merged on the way
/// (mallopt does that), so the next blocks are cut from the top of the heap as in a heap that grows.
pub(crate) fn keep_what_is_freed() {
    // SAFETY: as above.
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
    }
}

/// Whether freed pages can be kept on purpose.
pub(crate) const fn can_keep() -> bool {
    true
}

/// Bytes of the heap that a block takes: what may be used of it, and its size before it.
pub(crate) fn chunk_bytes(block: usize) -> usize {
    // SAFETY: any size may be asked for; null has no usable bytes; freed once.
    unsafe {
        let block = libc::malloc(block);
        let usable = libc::malloc_usable_size(block);
        libc::free(block);
        usable + size_of::<usize>()
    }
}

/// Hands every free page back to the system.
pub(crate) fn give_back() {
    // SAFETY: malloc_trim takes an integer.
    unsafe { libc::malloc_trim(0) };
}

/// The end of the heap that grows in place; blocks above it, or far below, have mappings of their own.
#[expect(clippy::unnecessary_wraps, reason = "other C libraries have none")]
pub(crate) fn break_address() -> Option<usize> {
    // SAFETY: sbrk(0) moves nothing.
    let end = unsafe { libc::sbrk(0) };
    Some(end.addr())
}

/// Name and version of the C library.
pub(crate) fn library_version() -> (&'static str, Option<String>) {
    // SAFETY: the library's own string, which lives as long as the process.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    ("glibc", Some(version.to_string_lossy().into_owned()))
}
