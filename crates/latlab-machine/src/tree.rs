//! A Linux machine from its files.

use std::path::Path;

use crate::calls::Calls;
use crate::machine::Machine;
use crate::notes::Notes;
use crate::root::Root;
use crate::{boot, cache, cpu, disks, file_systems, kernel, limits, memory, mounts, numa, os, tlb, virt};

/// Describes the Linux machine whose `/proc`, `/sys` and `/etc` are below `root`, and what `calls` says
/// besides.
///
/// [`crate::describe`] calls it for the running system; tests and bug reports call it with captured trees.
/// Never fails.
pub fn describe_tree(root: &Root, calls: &Calls, dir: &Path) -> Machine {
    let mut notes = Notes::default();
    let registers = calls.registers.as_ref();
    let os = os::read(root, calls, &mut notes);
    let boot = boot::read(root, &mut notes);
    let mounts =
        mounts::parse(&notes.or("file_systems", root.text("/proc/self/mountinfo")).unwrap_or_default());
    let virtualisation = virt::read(root, calls, &os, &mounts, &mut notes);
    let cpu = cpu::read(root, registers, virtualisation.guest, &mut notes);
    // A user-mode emulator passes the host's files through.
    if os.arch.as_deref() == Some("aarch64") && cpu.parts.is_empty() && cpu.family.is_some() {
        notes
            .say("cpu", "/proc/cpuinfo describes an x86 CPU, but this is an aarch64 program: it is emulated");
    }
    let (caches, cache_agreement) = cache::read(root, registers, &mut notes);
    let memory = memory::read(root, calls, &mut notes);
    let mut limits = limits::read(root, calls, &mounts, &memory, &mut notes);
    let disks = disks::read(root, &mut notes);
    let (file_systems, dir) = file_systems::read(&mounts, &disks, calls, dir, &mut notes);
    let disk = dir.file_system.as_ref().and_then(|system| system.disk.as_deref());
    limits::set_disk(&mut limits, root, &mounts, &disks::below(&disks, disk));
    Machine {
        numa: numa::read(root, memory.total_bytes, &mut notes),
        clock_source: kernel::clock_source(root, &mut notes),
        kernel: kernel::read(root, &os, &boot, &mut notes),
        tlbs: registers.map(tlb::from_cpuid).unwrap_or_default(),
        os,
        boot,
        cpu,
        caches,
        cache_agreement,
        memory,
        limits,
        virtualisation,
        disks,
        file_systems,
        dir,
        unknown: notes.into_unknown(),
    }
}
