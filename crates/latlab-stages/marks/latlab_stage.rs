//! Marks stages of a Rust program for `latlab explain`. One file, no dependencies: copy it beside your
//! sources. It needs Rust 1.82 or newer.
//!
//! ```ignore
//! mod latlab_stage;
//! {
//!     let mut read = latlab_stage::stage("read");
//!     let n = file.read(&mut buffer)?;
//!     read.bytes(n as u64);
//! } // ends here
//! ```
//! Nothing happens unless the environment names a ring in `LATLAB_STAGES`, which `latlab explain` does. The
//! ring's form, which the files for other languages share: a header of 64 bytes (magic `LATSTG01`, u32 slots,
//! u32 names, u64 cursor), 256 names of 64 bytes (u32 state: 0 free, 1 being written, 2 there; u32 length;
//! text of at most 56), then slots of 64 bytes (u64 index + 1, written last; u64 `CLOCK_MONOTONIC` in ns; u64
//! bytes; u64 index + 1 of the begin, in an end; u32 process, thread, name, kind: 0 begin, 1 end). A writer
//! takes a slot by adding 1 to the cursor.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const MAGIC: u64 = u64::from_le_bytes(*b"LATSTG01");
const NAMES: u32 = 256;
const NAME_BYTES: usize = 56;
const HEADER_BYTES: usize = 64;
const SLOTS_AT: usize = HEADER_BYTES + NAMES as usize * 64;

/// A ring of marks, mapped into this process.
pub struct Ring {
    base: *mut u8,
    mask: u64,
}

// SAFETY: all access to the mapping goes through atomics, and it stays mapped while the process lives.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// A stage under way; it ends when this is dropped.
pub struct Stage {
    ring: Option<&'static Ring>,
    name: u32,
    bytes: u64,
    begun: u64,
}

/// Begins a stage. Names longer than 56 bytes are cut.
#[must_use]
pub fn stage(name: &str) -> Stage {
    let ring = ring();
    let (name, begun) = ring.map_or((0, 0), |ring| {
        let name = ring.name(name);
        (name, ring.begin(name))
    });
    Stage { ring, name, bytes: 0, begun }
}

impl Stage {
    /// Says how many bytes the stage has gone through so far.
    pub fn bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(ring) = self.ring {
            ring.end(self.name, self.begun, self.bytes);
        }
    }
}

/// The ring that the environment names; `None`: nobody listens.
#[must_use]
pub fn ring() -> Option<&'static Ring> {
    static RING: OnceLock<Option<Ring>> = OnceLock::new();
    RING.get_or_init(|| Ring::open(&std::env::var_os("LATLAB_STAGES")?)).as_ref()
}

impl Ring {
    fn open(path: &std::ffi::OsStr) -> Option<Self> {
        use std::os::fd::AsRawFd as _;
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        if length <= SLOTS_AT {
            return None;
        }
        // SAFETY: a new shared mapping of a file that is open and that long; it is never unmapped.
        let base = unsafe { mmap(std::ptr::null_mut(), length, 3, 1, file.as_raw_fd(), 0) };
        if base.is_null() || base as usize == usize::MAX {
            return None;
        }
        // SAFETY: mapped above, `length` bytes.
        unsafe { Self::over(base, length) }
    }

    /// The ring that lies in a mapping; `None` when there is none in it.
    ///
    /// # Safety
    /// `length` bytes at `base` are mapped for as long as this lives, and page-aligned.
    #[must_use]
    pub unsafe fn over(base: *mut u8, length: usize) -> Option<Self> {
        let ring = Self { base, mask: 0 };
        let slots = ring.u32(8).load(Ordering::Acquire);
        let fits = length >= SLOTS_AT + slots as usize * 64;
        (ring.u64(0).load(Ordering::Acquire) == MAGIC && slots.is_power_of_two() && fits)
            .then_some(Self { base, mask: u64::from(slots) - 1 })
    }

    // Each field lies at a multiple of its size from a page's begin.
    #[allow(clippy::cast_ptr_alignment)]
    fn u64(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the mapping, aligned, and only ever reached by atomics.
        unsafe { &*self.base.add(at).cast() }
    }

    // Each field lies at a multiple of its size from a page's begin.
    #[allow(clippy::cast_ptr_alignment)]
    fn u32(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and only ever reached by atomics.
        unsafe { &*self.base.add(at).cast() }
    }

    /// The number of a name, which is entered if it is new; the last one where there is no room.
    #[must_use]
    pub fn name(&self, name: &str) -> u32 {
        let mut end = name.len().min(NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let text = &name.as_bytes()[..end];
        for number in 0..NAMES - 1 {
            let at = HEADER_BYTES + number as usize * 64;
            let state = self.u32(at);
            if state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Acquire).is_ok() {
                self.write_name(at, text);
                return number;
            }
            // Whoever writes it needs nanoseconds; one that died in between has left a name without text.
            for _ in 0..10_000 {
                if state.load(Ordering::Acquire) == 2 {
                    break;
                }
                std::hint::spin_loop();
            }
            if state.load(Ordering::Acquire) == 2 && self.is_name(at, text) {
                return number;
            }
        }
        let last = HEADER_BYTES + (NAMES as usize - 1) * 64;
        if self.u32(last).compare_exchange(0, 1, Ordering::Acquire, Ordering::Acquire).is_ok() {
            self.write_name(last, b"(further names)");
        }
        NAMES - 1
    }

    fn write_name(&self, at: usize, text: &[u8]) {
        for (place, chunk) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.u64(at + 8 + place * 8).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.u32(at + 4).store(u32::try_from(text.len()).unwrap_or(0), Ordering::Relaxed);
        self.u32(at).store(2, Ordering::Release);
    }

    fn is_name(&self, at: usize, text: &[u8]) -> bool {
        self.u32(at + 4).load(Ordering::Relaxed) as usize == text.len()
            && text.chunks(8).enumerate().all(|(place, chunk)| {
                self.u64(at + 8 + place * 8).load(Ordering::Relaxed).to_le_bytes()[..chunk.len()] == *chunk
            })
    }

    /// Writes that a stage begins; what its end must name.
    #[must_use]
    pub fn begin(&self, name: u32) -> u64 {
        self.write(name, 0, 0, 0)
    }

    /// Writes that a stage ends.
    pub fn end(&self, name: u32, begun: u64, bytes: u64) {
        self.write(name, 1, begun, bytes);
    }

    fn write(&self, name: u32, kind: u32, begun: u64, bytes: u64) -> u64 {
        let index = self.u64(16).fetch_add(1, Ordering::Relaxed);
        let at = SLOTS_AT + usize::try_from(index & self.mask).unwrap_or(0) * 64;
        let (process, thread) = who();
        // No reader may take the old number for that of the new contents.
        self.u64(at).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.u64(at + 8).store(now_ns(), Ordering::Relaxed);
        self.u64(at + 16).store(bytes, Ordering::Relaxed);
        self.u64(at + 24).store(begun, Ordering::Relaxed);
        self.u32(at + 32).store(process, Ordering::Relaxed);
        self.u32(at + 36).store(thread, Ordering::Relaxed);
        self.u32(at + 40).store(name, Ordering::Relaxed);
        self.u32(at + 44).store(kind, Ordering::Relaxed);
        let number = index.wrapping_add(1);
        self.u64(at).store(number, Ordering::Release);
        number
    }
}

/// How often this process came out of a fork: what is remembered of threads is of before.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

fn who() -> (u32, u32) {
    use std::cell::Cell;
    thread_local! {
        static WHO: Cell<(u32, u32, u32)> = const { Cell::new((u32::MAX, 0, 0)) };
    }
    static ONCE: OnceLock<()> = OnceLock::new();
    let forks = FORKS.load(Ordering::Relaxed);
    WHO.with(|who| {
        let (of, process, thread) = who.get();
        if of == forks {
            return (process, thread);
        }
        // SAFETY: neither call takes a pointer that must live; the handler only adds to a number.
        let (process, thread) = unsafe {
            ONCE.get_or_init(|| {
                pthread_atfork(None, None, Some(forked));
            });
            (u32::try_from(getpid()).unwrap_or(0), u32::try_from(gettid()).unwrap_or(0))
        };
        who.set((forks, process, thread));
        (process, thread)
    })
}

/// `CLOCK_MONOTONIC`, ns.
#[must_use]
pub fn now_ns() -> u64 {
    let mut time = [0_i64; 2];
    // SAFETY: on 64-bit Linux the structure is these two integers.
    unsafe { clock_gettime(1, time.as_mut_ptr()) };
    u64::try_from(time[0] * 1_000_000_000 + time[1]).unwrap_or(0)
}

unsafe extern "C" {
    fn mmap(at: *mut u8, length: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn clock_gettime(clock: i32, time: *mut i64) -> i32;
    fn getpid() -> i32;
    fn gettid() -> i32;
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> i32;
}
