//! macOS, from the text of its own programs: `sysctl -a`, `mount`, `pmset -g batt`, `vm_stat`.
//!
//! Key names: Apple's developer documentation, "Determining system capabilities", and `sysctl(3)`.

use std::collections::BTreeMap;
use std::path::Path;

use latlab_stats::count::whole;

use crate::cache::{self, Cache, CacheKind, CacheSource};
use crate::calls::Calls;
use crate::cpu::{self, Cpu, Frequency};
use crate::cpuid::Registers;
use crate::file_systems::{self, Directory, FileSystem};
use crate::limits::{self, Limits};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::notes::Notes;
use crate::os::Os;
use crate::power::{self, PowerSource};
use crate::text;
use crate::tlb;
use crate::virt::{self, Virtualisation};

/// Output of the programs that [`describe_mac`] reads; empty where a program did not run.
#[derive(Clone, Debug, Default)]
pub struct MacText {
    /// `/usr/sbin/sysctl -a`.
    pub sysctl: String,
    /// `/sbin/mount`.
    pub mounts: String,
    /// `/usr/bin/pmset -g batt`.
    pub power: String,
    /// `/usr/bin/vm_stat`.
    pub vm_stat: String,
}

/// The keys of `sysctl -a`; lines that go on from the one before have no key and are left out.
struct Keys(BTreeMap<String, String>);

impl Keys {
    fn parse(text: &str) -> Self {
        let pair = |line: &str| {
            let (key, value) = line.split_once(": ").or_else(|| line.split_once(" = "))?;
            (!key.contains(char::is_whitespace)).then(|| Some((key.to_owned(), text::said(value)?)))?
        };
        Self(text.lines().filter_map(pair).collect())
    }

    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).cloned()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.parse().ok()
    }

    fn small(&self, key: &str) -> Option<u32> {
        u32::try_from(self.number(key)?).ok().filter(|number| *number > 0)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.number(key).map(|flag| flag != 0)
    }
}

/// Describes a Mac from captured text, and what `calls` says besides. Never fails.
pub fn describe_mac(texts: &MacText, calls: &Calls, dir: &Path) -> Machine {
    let mut notes = Notes::default();
    let keys = Keys::parse(&texts.sysctl);
    if keys.0.is_empty() {
        notes.say("cpu", "sysctl reported nothing");
    }
    // Under Rosetta CPUID describes a CPU that is not there.
    let translated = keys.flag("sysctl.proc_translated") == Some(true);
    let registers = calls.registers.as_ref().filter(|_| !translated);
    let virtualisation = virtualisation(&keys, translated, &mut notes);
    let mut cpu = cpu(&keys, registers, virtualisation.guest, &mut notes);
    cpu.power_source = power::from_pmset(&texts.power);
    if cpu.power_source == PowerSource::Unknown {
        notes.say("cpu.power_source", "pmset does not name it");
    }
    let said = registers.map(cache::from_cpuid).unwrap_or_default();
    let (caches, cache_agreement) = cache::cross_check(caches(&keys), said, false);
    if caches.is_empty() {
        notes.say("caches", "sysctl lists none");
    }
    let memory = memory(&keys, &texts.vm_stat, calls, &mut notes);
    let mut limits = Limits {
        rlimits: calls.rlimits,
        uid: calls.uid,
        root: calls.uid.map(|uid| uid == 0),
        ..Limits::default()
    };
    limits::set_usable(&mut limits, &memory, None, None);
    notes.say("limits.allowed_cpus", "macOS has no affinity: the system places threads");
    notes.say("disks", "macOS does not describe its disks to sysctl");
    notes.say("numa", "macOS does not report it");
    let (file_systems, dir) = file_systems(&texts.mounts, calls, dir, &mut notes);
    Machine {
        os: os(&keys, calls, &mut notes),
        tlbs: registers.map(tlb::from_cpuid).unwrap_or_default(),
        cpu,
        caches,
        cache_agreement,
        memory,
        limits,
        virtualisation,
        file_systems,
        dir,
        unknown: notes.into_unknown(),
        ..Machine::default()
    }
}

fn os(keys: &Keys, calls: &Calls, notes: &mut Notes) -> Os {
    let uname = calls.uname.as_ref();
    let product = keys.text("kern.osproductversion").map(|version| format!("macOS {version}"));
    Os {
        name: Some("macOS".to_owned()),
        kernel_release: notes.must(
            "os.kernel_release",
            keys.text("kern.osrelease"),
            "sysctl does not report it",
        ),
        kernel_version: keys.text("kern.version"),
        distribution: notes.must("os.distribution", product, "sysctl does not report it"),
        arch: uname.and_then(|uname| text::said(&uname.arch)).or_else(|| keys.text("hw.machine")),
        libc: calls.libc.clone(),
        host_name: keys.text("kern.hostname"),
    }
}

fn virtualisation(keys: &Keys, translated: bool, notes: &mut Notes) -> Virtualisation {
    let mut virt = Virtualisation { product: keys.text("hw.model"), ..Virtualisation::default() };
    virt.guest = notes.must(
        "virtualisation.guest",
        keys.flag("kern.hv_vmm_present"),
        "sysctl has no kern.hv_vmm_present",
    );
    if virt.guest == Some(true) {
        virt.evidence.push("kern.hv_vmm_present is 1".to_owned());
        virt::from_product(&mut virt);
    }
    if translated {
        virt.evidence
            .push("this program is translated by Rosetta: use a native one for measuring".to_owned());
    }
    virt
}

/// `sysctl` key suffixes and the Linux names of the same features.
const FEATURES: &[(&str, &str)] = &[
    ("hw.optional.AdvSIMD", "asimd"),
    ("hw.optional.neon", "asimd"),
    ("hw.optional.arm.FEAT_DotProd", "asimddp"),
    ("hw.optional.arm.FEAT_LSE", "atomics"),
    ("hw.optional.arm.FEAT_LSE2", "uscat"),
    ("hw.optional.arm.FEAT_LRCPC", "lrcpc"),
    ("hw.optional.arm.FEAT_SME", "sme"),
    ("hw.optional.arm.FEAT_BF16", "bf16"),
    ("hw.optional.arm.FEAT_I8MM", "i8mm"),
    ("hw.optional.arm.FEAT_DPB", "dcpop"),
    ("hw.optional.arm.FEAT_DPB2", "dcpodp"),
    ("hw.optional.arm.FEAT_ECV", "ecv"),
    // Intel Macs, without CPUID.
    ("hw.optional.sse4_2", "sse4_2"),
    ("hw.optional.avx1_0", "avx"),
    ("hw.optional.avx2_0", "avx2"),
    ("hw.optional.avx512f", "avx512f"),
    ("hw.optional.avx512bw", "avx512bw"),
    ("hw.optional.avx512vl", "avx512vl"),
];

fn cpu(keys: &Keys, registers: Option<&Registers>, guest: Option<bool>, notes: &mut Notes) -> Cpu {
    let levels = keys.number("hw.nperflevels");
    let mhz = |key: &str| {
        let hz = keys.number(key).filter(|hz| *hz > 0)?;
        Some(Frequency { mhz: hz as f64 / 1e6, source: key.to_owned() })
    };
    let model_name = keys.text("machdep.cpu.brand_string");
    let apple = model_name.as_deref().is_some_and(|name| name.starts_with("Apple"));
    let mut cpu = Cpu {
        vendor: keys.text("machdep.cpu.vendor").or_else(|| apple.then(|| "Apple".to_owned())),
        model_name,
        family: keys.small("machdep.cpu.family"),
        model: keys.small("machdep.cpu.model"),
        stepping: keys.number("machdep.cpu.stepping").and_then(|stepping| u32::try_from(stepping).ok()),
        logical_cpus: keys.small("hw.logicalcpu"),
        cores: keys.small("hw.physicalcpu"),
        sockets: keys.small("hw.packages"),
        hybrid: levels.map(|levels| levels > 1),
        base: mhz("hw.cpufrequency"),
        max: mhz("hw.cpufrequency_max"),
        ..Cpu::default()
    };
    cpu::number_cpus(&mut cpu);
    for (key, name) in FEATURES {
        if keys.flag(key) == Some(true) && !cpu.features.iter().any(|known| known == name) {
            cpu.features.push((*name).to_owned());
        }
    }
    if let Some(registers) = registers {
        cpu::add_cpuid(&mut cpu, registers);
        // sysctl names few features; CPUID is asked for the rest.
        for feature in registers.features() {
            if !cpu.features.contains(&feature) {
                cpu.features.push(feature);
            }
        }
    }
    if apple {
        // The chip's name is its microarchitecture's; its cores have no public part numbers.
        cpu.microarchitecture.clone_from(&cpu.model_name);
    } else {
        cpu::name_it(&mut cpu, guest, notes);
    }
    cpu.base = cpu.base.take().or_else(|| cpu::rate_in_name(cpu.model_name.as_deref()?));
    notes.missing(
        [
            ("cpu.logical_cpus", cpu.logical_cpus.is_none()),
            ("cpu.cores", cpu.cores.is_none()),
            ("cpu.base", cpu.base.is_none()),
            ("cpu.max", cpu.max.is_none()),
        ],
        "sysctl does not report it (clock rates: never on Apple silicon)",
    );
    cpu
}

/// Apple silicon lists the caches of each performance level, Intel Macs one set. No level has CPU numbers.
fn caches(keys: &Keys) -> Vec<Cache> {
    let line_bytes = keys.small("hw.cachelinesize");
    let mut caches = Vec::new();
    let mut add = |level, kind, size: Option<u64>, instances| {
        if let Some(size_bytes) = size.filter(|bytes| *bytes > 0) {
            caches.push(Cache {
                level,
                kind,
                size_bytes,
                line_bytes,
                ways: None,
                shared_cpus: Vec::new(),
                cpus: Vec::new(),
                instances,
                source: CacheSource::Sysctl,
            });
        }
    };
    let levels = keys.number("hw.nperflevels").unwrap_or(0).min(16);
    let mut sets: Vec<String> = (0..levels).map(|level| format!("hw.perflevel{level}.")).collect();
    if sets.is_empty() {
        sets.push("hw.".to_owned());
    }
    for set in sets {
        let key = |name: &str| format!("{set}{name}");
        let cores = keys.small(&key("physicalcpu"));
        // Intel Macs do not tell how many CPUs share an L2.
        let clusters = || {
            let sharing = keys.small(&key("cpusperl2"))?;
            Some(cores?.div_ceil(sharing))
        };
        add(1, CacheKind::Data, keys.number(&key("l1dcachesize")), cores);
        add(1, CacheKind::Instruction, keys.number(&key("l1icachesize")), cores);
        add(2, CacheKind::Unified, keys.number(&key("l2cachesize")), clusters());
        add(3, CacheKind::Unified, keys.number(&key("l3cachesize")), None);
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind));
    caches
}

fn memory(keys: &Keys, vm_stat: &str, calls: &Calls, notes: &mut Notes) -> Memory {
    let page_bytes = keys.number("hw.pagesize").or(calls.page_bytes);
    let swap = keys.text("vm.swapusage");
    Memory {
        total_bytes: notes.must("memory.total_bytes", keys.number("hw.memsize"), "sysctl has no hw.memsize"),
        available_bytes: notes.must(
            "memory.available_bytes",
            available(vm_stat),
            "vm_stat does not report it",
        ),
        swap_total_bytes: swap.as_deref().and_then(|swap| swap_part(swap, "total")),
        swap_used_bytes: swap.as_deref().and_then(|swap| swap_part(swap, "used")),
        page_bytes: notes.must("memory.page_bytes", page_bytes, "sysctl has no hw.pagesize"),
        ..Memory::default()
    }
}

/// Free, speculative and inactive pages: what can be had without compressing or swapping.
fn available(vm_stat: &str) -> Option<u64> {
    let page: u64 = vm_stat.lines().next()?.split("page size of ").nth(1)?.split(' ').next()?.parse().ok()?;
    let pages = |key| text::field(vm_stat, key, ':')?.trim_end_matches('.').parse::<u64>().ok();
    let sum = pages("Pages free")?.checked_add(pages("Pages inactive")?)?;
    sum.checked_add(pages("Pages speculative").unwrap_or(0))?.checked_mul(page)
}

/// A part of `total = 2048.00M  used = 1012.50M  free = 1035.50M`, bytes.
fn swap_part(swap: &str, name: &str) -> Option<u64> {
    let mut words = swap.split_whitespace().skip_while(|word| *word != name).skip(2);
    let mebibytes: f64 = words.next()?.strip_suffix('M')?.parse().ok()?;
    (0.0..1e12).contains(&mebibytes).then(|| whole(mebibytes * f64::from(1_u32 << 20)))
}

/// `/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)`.
fn mount(line: &str) -> Option<FileSystem> {
    let (front, back) = line.rsplit_once(" (")?;
    let (source, point) = front.split_once(" on ")?;
    let mut options = back.strip_suffix(')')?.split(", ");
    let kind = options.next()?;
    let options: Vec<&str> = options.collect();
    if matches!(kind, "devfs" | "autofs") {
        return None;
    }
    let disk = source.strip_prefix("/dev/disk").map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        format!("disk{}", &rest[..end])
    });
    Some(FileSystem {
        mount_point: text::clean(point),
        kind: text::clean(kind),
        source: text::clean(source),
        network: matches!(kind, "nfs" | "smbfs" | "afpfs" | "webdav" | "virtiofs")
            || !options.contains(&"local"),
        user_space: kind.contains("fuse"),
        read_only: options.contains(&"read-only"),
        in_memory: kind == "tmpfs",
        options: options
            .into_iter()
            .filter(|option| {
                matches!(
                    *option,
                    "async" | "synchronous" | "noatime" | "journaled" | "sealed" | "local" | "read-only"
                )
            })
            .map(str::to_owned)
            .collect(),
        disk: disk.map(|disk| text::clean(&disk)),
        ..FileSystem::default()
    })
}

fn file_systems(mounts: &str, calls: &Calls, dir: &Path, notes: &mut Notes) -> (Vec<FileSystem>, Directory) {
    let mut systems: Vec<FileSystem> = mounts.lines().filter_map(mount).collect();
    for system in systems.iter_mut().filter(|system| !system.network && !system.user_space) {
        file_systems::ask_space(system, calls);
    }
    let directory = file_systems::directory(&systems, calls, dir, |_| None, notes);
    (systems, directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_line_has_source_point_and_kind() {
        let system =
            mount("/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)").expect("a mount");
        assert_eq!((system.mount_point.as_str(), system.kind.as_str()), ("/", "apfs"));
        assert_eq!(system.disk.as_deref(), Some("disk3"));
        assert!(system.read_only && !system.network);
        assert!(
            mount("//bob@nas/share on /Volumes/share (smbfs, nodev, nosuid)")
                .is_some_and(|system| system.network)
        );
        assert_eq!(mount("map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)"), None);
    }

    #[test]
    fn available_memory_is_free_inactive_and_speculative_pages() {
        let text = "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free:  10.\nPages active: 99.\n\
                    Pages inactive:    20.\nPages speculative:   5.\n";
        assert_eq!(available(text), Some(35 * 16_384));
        assert_eq!(available(""), None);
    }

    #[test]
    fn swap_is_reported_in_mebibytes() {
        let swap = "total = 2048.00M  used = 1012.50M  free = 1035.50M  (encrypted)";
        assert_eq!(swap_part(swap, "total"), Some(2 << 30));
        assert_eq!(swap_part(swap, "none"), None);
    }
}
