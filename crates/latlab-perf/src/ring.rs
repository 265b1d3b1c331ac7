//! Events and the memory that the kernel writes their records to.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use perf_event_open_sys::ioctls;
use rustix::mm::{MapFlags, ProtFlags};

use crate::{Detail, Event, Record, Whose, records};

/// No ring is larger, bytes.
const LARGEST: usize = 1 << 30;
/// No more CPUs have rings.
const MOST_CPUS: u32 = 1024;

/// CPUs that there may be, those that are switched off too; 0 where the system does not say.
pub fn cpus() -> u32 {
    // SAFETY: asks for a number.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(0)
}

/// The calling thread.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_pid().cast_unsigned()
}

/// What a ring for so many bytes of records takes, bytes: the kernel wants a power of two of whole pages.
fn ring_bytes(wanted: usize, page_bytes: usize) -> usize {
    page_bytes * wanted.clamp(1, LARGEST).div_ceil(page_bytes).next_power_of_two()
}

fn done(status: libc::c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn id_of(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0_u64;
    // SAFETY: the request writes one u64 to the address given.
    done(unsafe { ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Events and the memory that the kernel writes their records to.
#[derive(Debug)]
pub struct Ring {
    events: Vec<OwnedFd>,
    page: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    /// What was drained last; records that wrap around the end are whole here.
    copy: Vec<u8>,
}

impl Ring {
    /// A ring for so many bytes of records, in whole pages, with its first event, and that event's id. Takes
    /// less when less may be locked. Errors: the kernel refuses the event, or memory for its records;
    /// [`reason`](crate::reason) says what would lift it.
    pub fn open(event: Event<'_>, whose: Whose, bytes: usize) -> io::Result<(Self, u64)> {
        let event = event.open(whose)?;
        let id = id_of(&event)?;
        let page_bytes = rustix::param::page_size();
        let mut data_bytes = ring_bytes(bytes, page_bytes);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let page = loop {
            let bytes = page_bytes + data_bytes;
            // SAFETY: a new mapping of a descriptor of ours, at no address in particular.
            match unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &event, 0) } {
                Ok(mapped) => {
                    break NonNull::new(mapped.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
                }
                Err(error) if data_bytes <= page_bytes => return Err(error.into()),
                Err(_) => data_bytes /= 2,
            }
        };
        let ring =
            Self { events: vec![event], page, page_bytes, data_bytes, copy: Vec::with_capacity(data_bytes) };
        Ok((ring, id))
    }

    /// One for each CPU, owned by this event of the calling thread, which is to be one that never fires.
    /// `bytes` for records, given how many CPUs there are. Errors: as [`open`](Self::open); a CPU that is
    /// switched off has no ring, and that is none.
    pub fn of_each_cpu(own: Event<'_>, bytes: impl FnOnce(usize) -> usize) -> io::Result<Vec<(u32, Self)>> {
        let cpus = cpus().clamp(1, MOST_CPUS);
        let bytes = bytes(cpus as usize);
        let mut rings = Vec::new();
        for cpu in 0..cpus {
            match Self::open(own, Whose::Thread { tid: this_thread(), cpu }, bytes) {
                Ok((ring, _)) => rings.push((cpu, ring)),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(rings)
    }

    /// One more event that writes into the same ring; its id.
    pub fn join(&mut self, event: Event<'_>, whose: Whose) -> io::Result<u64> {
        let event = event.open(whose)?;
        // SAFETY: both descriptors are ours; the request takes an integer.
        done(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), self.events[0].as_raw_fd()) })?;
        let id = id_of(&event)?;
        self.events.push(event);
        Ok(id)
    }

    /// How many events write here, the first one too.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Room for records, bytes: less than was asked for where less may be locked.
    pub fn bytes(&self) -> usize {
        self.data_bytes
    }

    /// Closes all events but the first; what they have written stays.
    pub fn leave(&mut self) {
        self.events.truncate(1);
    }

    /// Its events without the memory, for who closes them.
    pub fn into_events(mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.events)
    }

    /// Switches all events on or off.
    pub fn switch_all(&self, on: bool) {
        (0..self.events()).for_each(|at| self.switch(at, on));
    }

    /// Switches one event on or off, in the threads that inherited it too. `at` counts from the first event,
    /// 0.
    pub fn switch(&self, at: usize, on: bool) {
        if let Some(event) = self.events.get(at) {
            let request = if on { ioctls::ENABLE } else { ioctls::DISABLE };
            // SAFETY: a descriptor of ours; the request takes no argument. It cannot fail on an event that
            // was opened.
            unsafe { request(event.as_raw_fd(), 0) };
        }
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both counters lie in the first page of the mapping, aligned, and live as long as it; the
        // kernel changes them as atomics too.
        unsafe { self.page.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// All whole records; makes room for more. No system call; only names and mappings take memory.
    /// `detail`: what the samples of an event say, as in [`Event::detail`].
    pub fn drain(&mut self, detail: impl Fn(u64) -> Detail) -> impl Iterator<Item = Record<'_>> {
        let (head_at, tail_at) =
            (offset_of!(perf_event_mmap_page, data_head), offset_of!(perf_event_mmap_page, data_tail));
        // Pairs with the kernel's release: what the head says is written.
        let head = self.counter(head_at).load(Ordering::Acquire);
        let tail = self.counter(tail_at).load(Ordering::Relaxed);
        let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX).min(self.data_bytes);
        let from = usize::try_from(tail % self.data_bytes as u64).unwrap_or(0);
        let first = length.min(self.data_bytes - from);
        self.copy.clear();
        // SAFETY: the data pages follow the first page and are `data_bytes` long; both parts lie within them,
        // and the kernel does not write there before the tail has moved.
        unsafe {
            let data = self.page.add(self.page_bytes).as_ptr();
            self.copy.extend_from_slice(std::slice::from_raw_parts(data.add(from), first));
            self.copy.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        // The kernel may write over what was read.
        self.counter(tail_at).store(head, Ordering::Release);
        records(&self.copy, detail)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.page.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Kind, What};

    #[test]
    fn a_ring_is_a_power_of_two_of_whole_pages_of_any_size() {
        for page in [4096, 16 << 10, 64 << 10] {
            for wanted in (0..200).map(|at| at * 997).chain([1 << 20, (1 << 20) + 1, usize::MAX]) {
                let bytes = ring_bytes(wanted, page);
                assert!(bytes.is_multiple_of(page) && (bytes / page).is_power_of_two(), "{bytes} of {page}");
                assert!(
                    bytes >= wanted.min(LARGEST) && bytes < 2 * wanted.clamp(page, LARGEST + 1),
                    "{bytes} for {wanted}"
                );
            }
        }
    }

    #[test]
    fn the_switches_of_this_thread_come_round_and_round_a_ring_of_one_page() {
        let flags = Flags::EXCLUDE_KERNEL | Flags::EXCLUDE_HV | Flags::CONTEXT_SWITCH;
        let switches = Event::of(Kind::Dummy, flags);
        // Under emulation and in sandboxes there may be none.
        let Ok((mut ring, id)) = Ring::open(switches, Whose::ThisThread, 1) else { return };
        ring.switch_all(true);
        let (mut last_ns, mut all) = (0, 0);
        for _ in 0..40 {
            for _ in 0..8 {
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
            let (mut out, mut back) = (0, 0);
            for record in ring.drain(|_| Detail::None) {
                assert!(record.event == id && record.time_ns >= last_ns, "{record:?}");
                last_ns = record.time_ns;
                match record.what {
                    What::SwitchedOut { .. } => out += 1,
                    What::SwitchedIn => back += 1,
                    _ => panic!("{record:?}"),
                }
            }
            // A sleep may be over before the thread is away.
            assert_eq!(out, back);
            all += out;
        }
        assert!(all > 100, "{all} of 320 times: more than two pages of records");
        ring.switch_all(false);
        ring.drain(|_| Detail::None).for_each(drop);
        std::thread::sleep(std::time::Duration::from_micros(10));
        assert_eq!(ring.drain(|_| Detail::None).count(), 0);
    }
}
