//! What kernel work costs on this machine, measured when the program has ended, if it is not known yet.

use std::fs::File;
use std::io::{self, Read as _, Write as _, pipe};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::ptr;
use std::time::Duration;

use latlab_perf::this_thread;
use rustix::fs::{MemfdFlags, memfd_create};

use super::clock::thread_cpu_ns;
use super::recorder::Recorder;
use super::rounds::rounds;
use crate::account::interval::of_share;
use crate::account::records::What;
use crate::account::stream::Event;
use crate::costs::{Cost, Costs};

const REPETITIONS: usize = 7;
const PAGES: usize = 256;
const BLOCK: usize = 64 << 10;
/// Between samples of page faults, and how long they are sampled, CPU time: some two hundred.
const SAMPLED_NS: u64 = 197_003;
const SAMPLED_FOR_NS: u64 = 40_000_000;

/// Measures in a quarter of a second; what cannot be measured keeps the wide range of
/// [`Costs::default`]. `recording`: whether samples may be taken; if so, whether in the kernel.
pub(crate) fn measure(recording: Option<bool>) -> Costs {
    Costs::of_rounds(&rounds(|| once(recording)))
}

/// Some ten milliseconds, some fifty where samples may be taken.
fn once(recording: Option<bool>) -> Costs {
    let usual = Costs::default();
    let (faults, unmaps) = pages(REPETITIONS);
    let (calls, bytes) = copies();
    // Host and page size make a fault twice as dear from one minute to the next: the range is kept at least
    // that wide.
    let fault = Cost::of(faults).map_or(usual.fault, |cost| Cost {
        low: cost.low * 0.7,
        high: cost.high * 1.5,
        ..cost
    });
    Costs {
        fault,
        fault_in_user: recording.and_then(fault_in_user).unwrap_or(usual.fault_in_user),
        unmap: Cost::of(unmaps).unwrap_or(usual.unmap),
        call: Cost::of(calls).unwrap_or(usual.call),
        send: Cost::of(sends().unwrap_or_default()).map_or(usual.send, |cost| Cost {
            // Nobody waited for it: a thread that is woken by what comes may be on another CPU.
            high: cost.high * 3.0,
            ..cost
        }),
        // What was measured lay in a cache; a file of any size is copied from memory.
        byte: Cost::of(bytes).map_or(usual.byte, |cost| Cost {
            low: cost.low,
            mid: cost.mid * 1.5,
            high: cost.high * 5.0,
        }),
        switch: Cost::of(switches()).map_or(usual.switch, |cost| Cost {
            // Waiting for a device or another CPU wakes more slowly than a pipe does.
            high: cost.high * 2.0,
            ..cost
        }),
        sleep: Cost::of(sleeps()).unwrap_or(usual.sleep),
        // Not without a disk; the range is that of bare metal to virtual machines.
        cold_byte: usual.cold_byte,
        device: usual.device,
        process: usual.process,
    }
}

fn per(count: usize, work: impl FnOnce()) -> f64 {
    let before = thread_cpu_ns();
    work();
    thread_cpu_ns().saturating_sub(before) as f64 / count as f64
}

/// Touching fresh pages, and giving them back: nanoseconds a page.
fn pages(repetitions: usize) -> (Vec<f64>, Vec<f64>) {
    let page = rustix::param::page_size();
    let bytes = page * PAGES;
    let (mut faults, mut unmaps) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        // SAFETY: a new private mapping of our own, touched within its length and given back as a whole. No
        // huge pages: the advice is taken or refused, and small mappings have none.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map = libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0);
            if map == libc::MAP_FAILED {
                return (faults, unmaps);
            }
            libc::madvise(map, bytes, libc::MADV_NOHUGEPAGE);
            faults.push(per(PAGES, || {
                for at in 0..PAGES {
                    map.cast::<u8>().add(at * page).write_volatile(1);
                }
            }));
            unmaps.push(per(PAGES, || {
                libc::munmap(map, bytes);
            }));
        }
    }
    (faults, unmaps)
}

/// Where samples of code that only touches pages fall: the share of them that is in user code.
fn fault_in_user(sees_kernel: bool) -> Option<Cost> {
    let mut recorder = Recorder::of(sees_kernel, SAMPLED_NS);
    // Nobody asks for the callers, and the ring is read at the end only.
    recorder.most_stack = 0;
    recorder.start(&[this_thread()], false).ok()?;
    let until = thread_cpu_ns() + SAMPLED_FOR_NS;
    let mut ns = 0.0;
    while thread_cpu_ns() < until {
        let touched = pages(1).0;
        ns += touched.iter().sum::<f64>() * PAGES as f64;
        if touched.is_empty() {
            break;
        }
    }
    recorder.stop();
    let mut records = Vec::new();
    recorder.drain(|record, _| records.push(record));
    let samples = records.iter().filter(|record| {
        matches!(&record.what, What::Sample { event, kernel, .. }
            if kernel.is_empty() && matches!(recorder.events.get(event), Some(Event::Cpu(_))))
    });
    let worth = ns / SAMPLED_NS as f64;
    let share = samples.count() as f64 / worth.max(1.0);
    let range = of_share(share, worth);
    (worth >= 1.0).then_some(Cost { low: range.low, mid: share.min(1.0), high: range.high })
}

/// Reading a file that is in memory: one byte at a time, and in blocks.
fn copies() -> (Vec<f64>, Vec<f64>) {
    let Ok(file) = memfd_create("latlab-costs", MemfdFlags::CLOEXEC) else { return (Vec::new(), Vec::new()) };
    let mut file = File::from(file);
    let mut block = vec![1_u8; BLOCK];
    if (0..16).any(|_| file.write_all(&block).is_err()) {
        return (Vec::new(), Vec::new());
    }
    let (mut calls, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        let call = per(256, || {
            for at in 0..256 {
                let _ = file.read_at(&mut block[..1], at);
            }
        });
        let whole = per(16 * BLOCK, || {
            for at in 0..16 {
                let _ = file.read_at(&mut block, at * BLOCK as u64);
            }
        });
        calls.push(call);
        bytes.push((whole - call / BLOCK as f64).max(0.01));
    }
    (calls, bytes)
}

/// Sending a few bytes through TCP on the loopback, where nobody waits for them.
fn sends() -> io::Result<Vec<f64>> {
    const ROUNDS: usize = 32;
    const BYTES: usize = 64;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut here = TcpStream::connect(listener.local_addr()?)?;
    let (mut there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    // Another process may have connected first.
    there.set_read_timeout(Some(Duration::from_millis(100)))?;
    (0..REPETITIONS)
        .map(|_| {
            let mut sent = Ok(());
            let cost = per(ROUNDS, || sent = (0..ROUNDS).try_for_each(|_| here.write_all(&[1; BYTES])));
            sent?;
            there.read_exact(&mut [0; BYTES * ROUNDS])?;
            Ok(cost)
        })
        .collect()
}

/// Waiting on a pipe that another thread fills: CPU time of one wait and wake.
fn switches() -> Vec<f64> {
    const ROUNDS: usize = 100;
    let (Ok((mut here, mut there)), Ok((mut back, mut answer))) = (pipe(), pipe()) else { return Vec::new() };
    let mut byte = [0_u8; 1];
    let helper = std::thread::Builder::new().spawn(move || {
        let mut byte = [0_u8; 1];
        while here.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
    });
    let Ok(helper) = helper else { return Vec::new() };
    let costs = (0..REPETITIONS).map(|_| {
        per(ROUNDS, || {
            for _ in 0..ROUNDS {
                let _ = there.write_all(&byte);
                let _ = back.read_exact(&mut byte);
            }
        })
    });
    let costs = costs.collect();
    drop(there);
    let _ = helper.join();
    drop(back);
    costs
}

/// Sleeping for as short as the system lets one: CPU time of one sleep.
fn sleeps() -> Vec<f64> {
    // Each takes a tenth of a millisecond, mostly asleep, and whoever explains a short program waits for
    // them.
    const ROUNDS: usize = 2;
    (0..REPETITIONS)
        .map(|_| {
            per(ROUNDS, || {
                for _ in 0..ROUNDS {
                    std::thread::sleep(Duration::from_micros(1));
                }
            })
        })
        .collect()
}
