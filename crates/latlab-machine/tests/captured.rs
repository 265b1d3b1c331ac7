//! Whole machines from captured trees: `tests/fixtures/<name>/tree.txt` holds files as `grep -rH ''` prints
//! them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use latlab_machine::{
    CacheKind, CacheSource, Calls, CgroupVersion, DiskLimits, MacText, Machine, MemoryBound, PowerSource,
    Registers, Root, Seccomp, describe_mac, describe_tree, describe_windows,
};

const MIB: u64 = 1 << 20;

fn fixture(name: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).join(file);
    fs::read_to_string(path).unwrap_or_default()
}

/// Unpacks a captured tree into a folder of its own, for each test anew.
fn unpack(name: &str, test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{test}"));
    _ = fs::remove_dir_all(&folder);
    let tree = fixture(name, "tree.txt");
    assert!(!tree.is_empty(), "no tree of {name}");
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in tree.lines() {
        let (path, content) = line.split_once(':').expect("path:content");
        match files.last_mut() {
            Some((latest, whole)) if *latest == path => whole.push_str(content),
            _ => files.push((path, content.to_owned())),
        }
        files.last_mut().expect("just added").1.push('\n');
    }
    for (path, text) in files {
        let file = folder.join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().expect("below the folder")).expect("writable");
        let mut bytes = text.into_bytes();
        if path == "/proc/config.gz" {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&bytes).expect("in memory");
            bytes = packed.finish().expect("in memory");
        }
        fs::write(file, bytes).expect("writable");
    }
    folder
}

fn registers(name: &str) -> Option<Registers> {
    Some(fixture(name, "cpuid.txt")).filter(|dump| !dump.is_empty()).map(|dump| Registers::parse(&dump))
}

fn machine_at(name: &str, test: &str, dir: &str) -> Machine {
    let calls = Calls { registers: registers(name), page_bytes: Some(4096), ..Calls::none() };
    describe_tree(&Root::at(unpack(name, test)), &calls, Path::new(dir))
}

fn why(machine: &Machine, what: &str) -> String {
    let found = machine.unknown.iter().find(|unknown| unknown.what == what);
    found.map(|unknown| unknown.why.clone()).unwrap_or_default()
}

fn file_system_kind(machine: &Machine, path: &str) -> String {
    machine.file_system_of(Path::new(path)).map(|system| system.kind.clone()).unwrap_or_default()
}

#[test]
fn a_micro_vm_whose_features_contradict_its_model_number_has_no_microarchitecture() {
    let machine = machine_at("intel-micro-vm", "name", "/tmp");
    assert_eq!(machine.cpu.microarchitecture, None);
    assert!(why(&machine, "cpu.microarchitecture").contains("Rocket Lake, which has no amx_tile"));
}

#[test]
fn a_micro_vm_is_described_from_its_files() {
    let machine = machine_at("intel-micro-vm", "files", "/tmp");
    assert_eq!(machine.virtualisation.guest, Some(true));
    assert_eq!(machine.virtualisation.hypervisor.as_deref(), Some("KVM"));
    // The image was made from a container's; no engine mounted this root.
    assert_eq!(machine.virtualisation.container, None);
    assert_eq!(machine.kernel.tick_hz, Some(250));
    assert_eq!(machine.kernel.preemption.model.as_deref(), Some("none"));
    assert_eq!(machine.kernel.preemption.dynamic, Some(true));
    assert_eq!(machine.clock_source.available, ["tsc", "kvm-clock"]);
    assert_eq!(machine.limits.root, Some(true));
    assert_eq!(machine.limits.cgroup.as_ref().and_then(|cgroup| cgroup.version), Some(CgroupVersion::V1));
    assert_eq!(machine.limits.cgroup.as_ref().and_then(|cgroup| cgroup.memory_limit_bytes), None);
    assert_eq!(machine.limits.usable_memory_bytes, Some(24_329_676 * 1024));
    let options: Vec<&str> = machine.boot.options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(options, ["mitigations", "cpuidle_haltpoll.force", "deferred_init"]);
    let open: Vec<&str> =
        machine.boot.mitigations.iter().map(|mitigation| mitigation.name.as_str()).collect();
    assert_eq!(open, ["retbleed", "spectre_v1"]);
    let disks: Vec<&str> = machine.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(disks, ["vda"], "a loop device without a size is no disk");
    assert_eq!(machine.disks[0].size_bytes, Some(256 << 30));
    assert_eq!(file_system_kind(&machine, "/dev/shm/x"), "tmpfs");
    assert!(!why(&machine, "numa.memory_bytes").is_empty(), "nodes have less memory than the machine");
}

#[test]
fn caches_that_cpuid_and_sysfs_agree_on_say_so() {
    let machine = machine_at("intel-micro-vm", "caches", "/");
    assert_eq!((machine.cache_agreement.compared, machine.cache_agreement.differences.len()), (4, 0));
    let l3 = machine.caches.last().expect("caches");
    assert_eq!((l3.level, l3.size_bytes, l3.source), (3, 480 * MIB, CacheSource::SysfsAndCpuid));
    assert_eq!((l3.shared_cpus.as_slice(), l3.instances), ([0, 1, 2, 3].as_slice(), Some(1)));
    let l1 = &machine.caches[0];
    assert_eq!(
        (l1.kind, l1.shared_cpus.as_slice(), l1.instances),
        (CacheKind::Data, [0].as_slice(), Some(4))
    );
}

#[test]
fn an_epyc_guest_is_named_by_a_feature_of_its_generation() {
    let machine = machine_at("amd-epyc-guest", "name", "/srv/my data/set");
    assert_eq!(machine.cpu.microarchitecture.as_deref(), Some("Zen 5"));
    assert_eq!(machine.cpu.family, Some(26));
    assert_eq!(machine.cpu.model_name.as_deref(), Some("AMD EPYC"));
    assert_eq!(machine.memory.total_bytes.map(|bytes| bytes >> 30), Some(15));
    assert!(machine.os.kernel_release.as_deref().is_some_and(|release| release.starts_with("6.8")));
    assert_eq!(machine.limits.allowed_cpus, [0, 1]);
    assert_eq!(machine.limits.root, Some(false));
    assert_eq!(machine.numa.len(), 2);
    assert_eq!(
        (machine.numa[1].cpus.as_slice(), machine.numa[1].distances.as_slice()),
        ([2, 3].as_slice(), [20, 10].as_slice())
    );
    assert_eq!(machine.memory.huge_pools[0].free, 60);
    assert_eq!(machine.kernel.tick_hz, Some(1000));
    assert_eq!(machine.kernel.preemption.model.as_deref(), Some("voluntary"));
    let system = machine.dir.file_system.as_ref().expect("a file system");
    assert!(system.network);
    assert_eq!(
        system.options,
        ["rw", "relatime", "vers=4.2", "rsize=1048576", "wsize=1048576", "hard", "proto=tcp"]
    );
}

#[test]
fn a_cache_that_two_sources_size_differently_is_reported() {
    let machine = machine_at("amd-epyc-guest", "caches", "/");
    assert_eq!(machine.cache_agreement.compared, 4);
    assert_eq!(
        machine.cache_agreement.differences,
        ["CPUID lists L3 of 32768 KiB (16 ways, lines of 64 bytes), sysfs L3 of 16384 KiB (16 ways, \
                lines of 64 bytes)"]
    );
    assert_eq!(machine.caches.last().map(|cache| cache.source), Some(CacheSource::Sysfs));
}

#[test]
fn the_tlbs_of_an_amd_cpu_are_listed() {
    let machine = machine_at("amd-epyc-guest", "tlb", "/");
    let data =
        machine.tlbs.iter().find(|tlb| tlb.page_bytes == [4096] && tlb.kind == latlab_machine::TlbKind::Data);
    assert_eq!(data.and_then(|tlb| tlb.entries), Some(96));
}

#[test]
fn a_laptop_on_battery_is_on_battery_and_its_mouse_does_not_count() {
    let machine = machine_at("laptop-on-battery", "power", "/home/u");
    assert_eq!(machine.cpu.power_source, PowerSource::Battery);
    assert_eq!(machine.cpu.governor.as_deref(), Some("powersave"));
    assert_eq!(machine.cpu.boost, Some(true));
    assert_eq!(machine.cpu.base.as_ref().map(|rate| rate.mhz), Some(3000.0));
    assert_eq!(machine.cpu.max.as_ref().map(|rate| rate.mhz), Some(4800.0));
}

#[test]
fn a_laptop_with_two_threads_a_core_is_bare_metal() {
    let machine = machine_at("laptop-on-battery", "cpu", "/home/u");
    let cpu = &machine.cpu;
    assert_eq!(
        (cpu.logical_cpus, cpu.cores, cpu.sockets, cpu.threads_per_core),
        (Some(8), Some(4), Some(1), Some(2))
    );
    assert_eq!(cpu.microarchitecture.as_deref(), Some("Tiger Lake"));
    assert_eq!(machine.virtualisation.guest, Some(false));
    assert_eq!(machine.caches[0].shared_cpus, [0, 4]);
    assert_eq!(machine.caches[0].instances, Some(4));
    assert_eq!(machine.kernel.preemption.model.as_deref(), Some("full"));
}

#[test]
fn file_systems_find_their_disk_through_partitions_and_the_device_mapper() {
    let machine = machine_at("laptop-on-battery", "disks", "/boot");
    let disk_of = |path: &str| machine.file_system_of(Path::new(path)).and_then(|system| system.disk.clone());
    assert_eq!(disk_of("/boot/efi").as_deref(), Some("nvme0n1"));
    assert_eq!(disk_of("/home/u").as_deref(), Some("dm-0"));
    assert_eq!(disk_of("/tmp"), None);
    let mapper = machine.disks.iter().find(|disk| disk.name == "dm-0").expect("dm-0");
    assert_eq!(mapper.made_of, ["nvme0n1p2"]);
    let nvme = machine.disks.iter().find(|disk| disk.name == "nvme0n1").expect("nvme0n1");
    assert_eq!((nvme.model.as_deref(), nvme.partitions.len()), (Some("Samsung SSD 980 PRO 1TB"), 2));
}

#[test]
fn an_arm_server_is_described_without_cpuid() {
    let machine = machine_at("aarch64-server", "all", "/var/tmp");
    assert_eq!(machine.cpu.vendor.as_deref(), Some("Arm"));
    assert_eq!(machine.cpu.microarchitecture.as_deref(), Some("Neoverse N1"));
    assert!(machine.cpu.features.iter().any(|feature| feature == "asimd"));
    assert_eq!(machine.cpu.sockets, Some(2));
    assert_eq!(
        machine.cpu.governor.as_deref(),
        Some("ondemand, performance"),
        "governors that differ are all named"
    );
    assert_eq!(machine.cpu.boost, Some(false));
    assert!(machine.caches.iter().all(|cache| cache.source == CacheSource::Sysfs));
    assert_eq!(machine.virtualisation.guest, None, "nothing tells, so nothing is guessed");
    assert!(!why(&machine, "virtualisation.guest").is_empty());
    assert_eq!(machine.limits.perf_event_paranoid, Some(-1));
    assert!(
        machine.limits.capabilities.as_ref().is_some_and(|all| all.iter().any(|one| one == "CAP_PERFMON"))
    );
    // Strict overcommit: what is committed counts, not what is free.
    assert_eq!(machine.limits.usable_memory_bound, Some(MemoryBound::Commit));
    assert_eq!(machine.limits.usable_memory_bytes, Some(60_000_000 * 1024));
}

#[test]
fn an_emulated_program_is_told_that_the_cpu_is_not_its_own() {
    let folder = unpack("intel-micro-vm", "emulated");
    fs::write(folder.join("proc/sys/kernel/arch"), "aarch64\n").expect("writable");
    let machine = describe_tree(&Root::at(folder), &Calls::none(), Path::new("/"));
    assert!(why(&machine, "cpu").contains("emulated"));
    assert!(why(&machine_at("intel-micro-vm", "native", "/"), "cpu").is_empty());
}

#[test]
fn a_container_has_the_strictest_limit_of_all_its_ancestors() {
    let machine = machine_at("cgroup-v2-container", "limits", "/srv");
    let cgroup = machine.limits.cgroup.as_ref().expect("cgroup limits");
    assert_eq!(cgroup.version, Some(CgroupVersion::V2));
    assert_eq!((cgroup.cpu_quota, cgroup.cpu_period_us), (Some(0.5), Some(100_000)));
    assert_eq!(cgroup.memory_limit_bytes, Some(256 * MIB));
    assert_eq!(machine.limits.usable_cpus, Some(0.5));
    // 256 MiB less 200 MiB in use, of which 100 MiB are file cache that can go.
    assert_eq!(machine.limits.usable_memory_bytes, Some(156 * MIB));
    assert_eq!(machine.limits.usable_memory_bound, Some(MemoryBound::Cgroup));
    assert_eq!(machine.limits.seccomp, Some(Seccomp::Filter));
    assert_eq!(machine.limits.no_new_privileges, Some(true));
}

#[test]
fn a_kubernetes_pod_is_a_container_in_a_virtual_machine() {
    let machine = machine_at("cgroup-v2-container", "kind", "/srv");
    let container = machine.virtualisation.container.as_ref().expect("a container");
    assert_eq!(container.kind, "kubernetes");
    assert!(container.evidence.len() >= 2);
    assert_eq!(machine.virtualisation.guest, Some(true));
    assert_eq!(machine.os.distribution.as_deref(), Some("Alpine Linux 3.20.3"));
    assert!(machine.dir.file_system.as_ref().is_some_and(|system| system.overlay));
    assert!(
        machine
            .file_system_of(Path::new("/data/x"))
            .is_some_and(|system| system.network && system.user_space)
    );
}

#[test]
fn version_1_groups_are_found_below_a_mount_that_shows_a_part_of_the_hierarchy() {
    let machine = machine_at("cgroup-v1-container", "limits", "/");
    let cgroup = machine.limits.cgroup.as_ref().expect("cgroup limits");
    assert_eq!(cgroup.version, Some(CgroupVersion::V1));
    assert_eq!(cgroup.cpu_quota, Some(1.5));
    assert_eq!(machine.limits.usable_cpus, Some(1.5), "two CPUs allowed, time for one and a half");
    assert_eq!(cgroup.memory_limit_bytes, Some(512 * MIB));
    assert_eq!(cgroup.memory_left_bytes, Some(462 * MIB));
    assert_eq!(
        machine.virtualisation.container.as_ref().map(|container| container.kind.as_str()),
        Some("docker")
    );
    assert_eq!(machine.cpu.microarchitecture.as_deref(), Some("Cascade Lake"));
}

#[test]
fn limits_of_the_measured_disk_are_the_strictest_of_all_groups_above() {
    for (name, version) in
        [("cgroup-v1-container", CgroupVersion::V1), ("cgroup-v2-container", CgroupVersion::V2)]
    {
        let limits = machine_at(name, "disk", "/etc/hosts").limits;
        let cgroup = limits.cgroup.expect("cgroup limits");
        assert_eq!(cgroup.version, Some(version));
        let disk = DiskLimits {
            read_bytes_per_s: Some(MIB),
            write_requests_per_s: Some(100),
            ..DiskLimits::default()
        };
        assert_eq!(cgroup.disk, Some(disk), "{name}");
        let other = machine_at(name, "other-disk", "/").limits.cgroup.expect("cgroup limits");
        assert_eq!(other.disk, None, "{name}");
    }
}

#[test]
fn wsl2_is_a_virtual_machine_whose_windows_drive_is_far_away() {
    let machine = machine_at("wsl2", "all", "/mnt/c/Users");
    assert_eq!(machine.virtualisation.wsl, Some(2));
    assert_eq!(machine.virtualisation.guest, Some(true));
    assert_eq!(machine.virtualisation.hypervisor.as_deref(), Some("Hyper-V"));
    assert_eq!(machine.cpu.threads_per_core, Some(2));
    let system = machine.dir.file_system.as_ref().expect("a file system");
    assert!(system.network);
    assert!(!system.options.iter().any(|option| option.contains("aname")));
}

#[test]
fn huge_pages_that_a_parent_has_forbidden_are_told_apart_from_the_machines_mode() {
    let thp = machine_at("cgroup-v2-container", "huge", "/srv").memory.thp;
    assert_eq!(thp.enabled.as_deref(), Some("madvise"));
    assert_eq!(thp.this_process, Some(false));
    let older = machine_at("no-sys", "huge", "/").memory.thp;
    assert_eq!(older.this_process, None, "kernels before 5.0 do not say");
}

#[test]
fn without_sys_the_rest_is_reported_and_the_gaps_are_named() {
    let machine = machine_at("no-sys", "all", "/");
    assert_eq!(machine.cpu.logical_cpus, Some(2), "from /proc/cpuinfo");
    assert_eq!(machine.memory.total_bytes, Some(4_000_000 * 1024));
    assert!(machine.caches.is_empty());
    for what in
        ["caches", "numa", "disks", "cpu.cores", "cpu.governor", "clock_source.current", "memory.thp.enabled"]
    {
        assert!(!why(&machine, what).is_empty(), "{what} is unknown without a reason");
    }
}

#[test]
fn with_everything_absent_a_description_is_all_reasons() {
    let machine = describe_tree(&Root::at("/nonexistent/root"), &Calls::none(), Path::new("anything"));
    assert_eq!(machine.cpu.logical_cpus, None);
    assert_eq!(machine.limits.usable_memory_bytes, None);
    assert_eq!(machine.dir.file_system, None);
    assert!(machine.unknown.len() > 20);
    assert!(machine.unknown.iter().all(|unknown| !unknown.what.is_empty() && !unknown.why.is_empty()));
}

#[test]
fn hostile_text_in_files_reaches_no_terminal() {
    let folder = unpack("no-sys", "hostile");
    let escape = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    fs::write(folder.join("proc/sys/kernel/osrelease"), format!("6.1{escape}")).expect("writable");
    fs::write(folder.join("proc/cpuinfo"), format!("processor: 0\nmodel name : Evil{escape}\n"))
        .expect("writable");
    fs::write(
        folder.join("proc/self/mountinfo"),
        format!("1 0 0:5 / /{escape} rw - ext4{escape} x{escape} rw\n"),
    )
    .expect("writable");
    fs::write(folder.join("proc/config.gz"), b"\x1f\x8bnot an archive").expect("writable");
    let machine = describe_tree(&Root::at(folder), &Calls::none(), Path::new("/"));
    let json = serde_json::to_string(&machine).expect("plain data");
    assert!(!json.contains("\\u001b") && !json.contains("\\u0007"), "{json}");
}

#[test]
fn binary_garbage_in_every_file_is_survived() {
    let folder = unpack("intel-micro-vm", "garbage");
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("readable").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                fs::write(entry.path(), b"\xff\x00-1:\n18446744073709551616 kB,9-0 - [\n\n(")
                    .expect("writable");
            }
        }
    }
    let machine = describe_tree(&Root::at(folder), &Calls::none(), Path::new("/"));
    assert_eq!(machine.memory.total_bytes, None);
    assert!(machine.caches.is_empty());
    assert!(!why(&machine, "caches").is_empty());
}

#[test]
fn a_description_survives_json() {
    let machine = machine_at("laptop-on-battery", "json", "/");
    let json = serde_json::to_string(&machine).expect("plain data");
    assert_eq!(serde_json::from_str::<Machine>(&json).expect("the same"), machine);
}

#[test]
fn private_fields_are_marked_in_the_schema() {
    let schema = schemars::schema_for!(Machine).to_value();
    for (kind, field) in
        [("Os", "host_name"), ("FileSystem", "mount_point"), ("FileSystem", "source"), ("Directory", "path")]
    {
        let property = &schema["$defs"][kind]["properties"][field];
        assert_eq!(property["private"], serde_json::Value::Bool(true), "{kind}.{field}");
    }
}

#[test]
fn this_computer_is_described_without_fail() {
    let machine = latlab_machine::describe(Path::new("."));
    assert!(machine.os.name.is_some());
}

fn mac(name: &str, dir: &str) -> Machine {
    let texts = MacText {
        sysctl: fixture(name, "sysctl.txt"),
        mounts: fixture(name, "mount.txt"),
        power: fixture(name, "pmset.txt"),
        vm_stat: fixture(name, "vm_stat.txt"),
    };
    describe_mac(&texts, &Calls::none(), Path::new(dir))
}

#[test]
fn an_apple_chip_has_caches_for_each_performance_level() {
    let machine = mac("mac-m2-pro", "/Volumes/share/x");
    assert_eq!(machine.cpu.model_name.as_deref(), Some("Apple M2 Pro"));
    assert_eq!(machine.cpu.hybrid, Some(true));
    assert_eq!(machine.virtualisation.guest, Some(false));
    assert_eq!(machine.cpu.power_source, PowerSource::Mains);
    assert_eq!(machine.memory.page_bytes, Some(16_384));
    assert_eq!(machine.memory.available_bytes, Some(395_000 * 16_384));
    let l1: Vec<(u64, Option<u32>)> = machine
        .caches
        .iter()
        .filter(|c| c.level == 1 && c.kind == CacheKind::Data)
        .map(|c| (c.size_bytes, c.instances))
        .collect();
    assert_eq!(l1, [(128 << 10, Some(6)), (64 << 10, Some(4))]);
    let l2: Vec<(u64, Option<u32>)> =
        machine.caches.iter().filter(|cache| cache.level == 2).map(|c| (c.size_bytes, c.instances)).collect();
    assert_eq!(l2, [(16 << 20, Some(2)), (4 << 20, Some(1))]);
    assert!(machine.caches.iter().all(|cache| cache.line_bytes == Some(128)));
    assert!(machine.dir.file_system.as_ref().is_some_and(|system| system.network));
    assert_eq!(machine.cpu.features, ["asimd", "asimddp", "atomics"]);
}

#[test]
fn an_intel_mac_on_battery_is_named_by_its_numbers() {
    let machine = mac("mac-intel", "/");
    assert_eq!(machine.cpu.microarchitecture.as_deref(), Some("Coffee Lake"));
    assert_eq!(machine.cpu.threads_per_core, Some(2));
    assert_eq!(machine.cpu.power_source, PowerSource::Battery);
    assert_eq!(machine.cpu.features, ["sse4_2", "avx", "avx2"]);
    assert_eq!(machine.caches.len(), 4);
}

#[test]
fn a_windows_host_with_memory_integrity_is_no_guest() {
    let calls = Calls { registers: registers("windows-11"), ..Calls::none() };
    let machine = describe_windows(&fixture("windows-11", "cim.json"), &calls, Path::new("c:\\Users\\u"));
    assert_eq!(machine.virtualisation.guest, Some(false));
    assert_eq!(machine.cpu.microarchitecture.as_deref(), Some("Tiger Lake"));
    assert_eq!(machine.cpu.threads_per_core, Some(2));
    assert_eq!(machine.cpu.max.as_ref().map(|rate| rate.mhz), Some(4800.0));
    assert_eq!(machine.cpu.power_source, PowerSource::Mains);
    assert_eq!(machine.caches.len(), 4);
    assert_eq!(machine.tlbs.iter().filter(|tlb| tlb.level == Some(2)).count(), 2);
    assert_eq!(machine.memory.available_bytes, Some(7 << 30));
    assert_eq!(machine.limits.usable_memory_bound, Some(MemoryBound::Commit));
    let system = machine.dir.file_system.as_ref().expect("drive C");
    assert_eq!((system.kind.as_str(), system.disk.as_deref()), ("NTFS", Some("PhysicalDrive0")));
    assert_eq!(machine.disks[1].removable, Some(true));
}

#[test]
fn a_windows_machine_without_cpuid_does_not_take_a_hypervisor_for_a_guest() {
    let machine = describe_windows(&fixture("windows-11", "cim.json"), &Calls::none(), Path::new("Z:\\data"));
    assert_eq!(machine.virtualisation.guest, None);
    assert!(why(&machine, "virtualisation.guest").contains("Hyper-V"));
    assert!(why(&machine, "caches").contains("sums"));
    assert!(machine.dir.file_system.as_ref().is_some_and(|system| system.network));
}
