//! Windows, from the JSON of one PowerShell command over CIM classes. WMIC is not used: new systems lack it.
//!
//! Classes and values: Microsoft's reference of the CIM Win32 provider and of the Storage Management API.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::calls::Calls;
use crate::cpu::{self, Cpu, Frequency};
use crate::cpuid::Registers;
use crate::disks::Disk;
use crate::file_systems::{Directory, FileSystem};
use crate::limits;
use crate::memory::Memory;
use crate::notes::Notes;
use crate::power::{self, PowerSource};
use crate::text;
use crate::virt::{self, Virtualisation};
use crate::{Limits, Machine, Os, tlb};

/// What `powershell.exe -NoProfile -NonInteractive -Command` is given. It reads only, needs no administrator, and leaves
/// out serial numbers.
pub const WINDOWS_QUERY: &str = "\
[Console]::OutputEncoding = [Text.Encoding]::UTF8; $ErrorActionPreference = 'SilentlyContinue'; \
[pscustomobject]@{ \
processor = @(Get-CimInstance Win32_Processor | Select-Object Name, Manufacturer, Architecture, NumberOfCores, \
NumberOfLogicalProcessors, NumberOfEnabledCore, MaxClockSpeed, HypervisorPresent); \
computer = @(Get-CimInstance Win32_ComputerSystem | Select-Object Name, Manufacturer, Model, HypervisorPresent, \
TotalPhysicalMemory, NumberOfLogicalProcessors); \
system = @(Get-CimInstance Win32_OperatingSystem | Select-Object Caption, Version, BuildNumber, OSArchitecture, \
TotalVisibleMemorySize, FreePhysicalMemory, FreeVirtualMemory); \
pagefile = @(Get-CimInstance Win32_PageFileUsage | Select-Object AllocatedBaseSize, CurrentUsage); \
battery = @(Get-CimInstance Win32_Battery | Select-Object BatteryStatus); \
plan = @(Get-CimInstance -Namespace root/cimv2/power Win32_PowerPlan | Where-Object IsActive | Select-Object ElementName); \
disk = @(Get-CimInstance Win32_DiskDrive | Select-Object Index, Model, Size, BytesPerSector, MediaType, InterfaceType); \
physical = @(Get-CimInstance -Namespace root/Microsoft/Windows/Storage MSFT_PhysicalDisk | Select-Object DeviceId, \
MediaType, PhysicalSectorSize, LogicalSectorSize); \
volume = @(Get-CimInstance Win32_LogicalDisk | Select-Object DeviceID, DriveType, FileSystem, Size, FreeSpace, \
ProviderName); \
partition = @(Get-CimInstance -Namespace root/Microsoft/Windows/Storage MSFT_Partition | Where-Object DriveLetter | \
Select-Object @{n='DriveLetter';e={[string]$_.DriveLetter}}, DiskNumber) \
} | ConvertTo-Json -Depth 4 -Compress";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    #[serde(deserialize_with = "lenient")]
    processor: Vec<Processor>,
    #[serde(deserialize_with = "lenient")]
    computer: Vec<Computer>,
    #[serde(deserialize_with = "lenient")]
    system: Vec<System>,
    #[serde(deserialize_with = "lenient")]
    pagefile: Vec<PageFile>,
    #[serde(deserialize_with = "lenient")]
    battery: Vec<Battery>,
    #[serde(deserialize_with = "lenient")]
    plan: Vec<Plan>,
    #[serde(deserialize_with = "lenient")]
    disk: Vec<DiskDrive>,
    #[serde(deserialize_with = "lenient")]
    physical: Vec<PhysicalDisk>,
    #[serde(deserialize_with = "lenient")]
    volume: Vec<LogicalDisk>,
    #[serde(deserialize_with = "lenient")]
    partition: Vec<DrivePartition>,
}

/// A list, one object alone (as PowerShell writes a list of one), or nothing; entries of another form are left out.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let entries = match Value::deserialize(from)? {
        Value::Array(entries) => entries,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Processor {
    name: Option<String>,
    manufacturer: Option<String>,
    architecture: Option<u16>,
    number_of_cores: Option<u32>,
    number_of_logical_processors: Option<u32>,
    max_clock_speed: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Computer {
    name: Option<String>,
    manufacturer: Option<String>,
    model: Option<String>,
    hypervisor_present: Option<bool>,
    total_physical_memory: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct System {
    caption: Option<String>,
    version: Option<String>,
    /// KiB.
    free_physical_memory: Option<u64>,
    /// KiB.
    free_virtual_memory: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PageFile {
    /// MiB.
    allocated_base_size: Option<u64>,
    /// MiB.
    current_usage: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Battery {
    battery_status: Option<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Plan {
    element_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DiskDrive {
    index: Option<u32>,
    model: Option<String>,
    size: Option<u64>,
    media_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PhysicalDisk {
    device_id: Option<String>,
    media_type: Option<u16>,
    physical_sector_size: Option<u64>,
    logical_sector_size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LogicalDisk {
    #[serde(rename = "DeviceID")]
    device_id: Option<String>,
    drive_type: Option<u32>,
    file_system: Option<String>,
    size: Option<u64>,
    free_space: Option<u64>,
    provider_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DrivePartition {
    drive_letter: Option<String>,
    disk_number: Option<u32>,
}

/// Describes a Windows machine from the JSON of [`WINDOWS_QUERY`], and what `calls` says besides. Never fails.
#[must_use]
pub fn describe_windows(json: &str, calls: &Calls, dir: &Path) -> Machine {
    let mut notes = Notes::default();
    // PowerShell may begin with a byte order mark.
    let answer: Answer = match serde_json::from_str(json.trim_start_matches('\u{feff}').trim()) {
        Ok(answer) => answer,
        Err(error) => {
            notes.say("machine", format!("PowerShell gave no readable answer: {error}"));
            Answer::default()
        }
    };
    let registers = calls.registers.as_ref();
    let virtualisation = virtualisation(&answer, calls, &mut notes);
    let cpu = cpu(&answer, registers, virtualisation.guest, &mut notes);
    let caches = registers.map(Registers::caches).unwrap_or_default();
    if caches.is_empty() {
        notes.say("caches", "CPUID lists none, and the firmware's table has sums over cores, not caches");
    }
    let memory = memory(&answer, calls, &mut notes);
    let mut limits = Limits::default();
    limits::set_usable(&mut limits, &memory, None, None);
    for (what, why) in [
        ("limits", "affinity and job limits are not read on Windows"),
        ("numa", "not read on Windows"),
        ("memory.page_bytes", "not asked for"),
        ("kernel.tick_hz", "Windows changes its timer period at run time"),
    ] {
        notes.say(what, why);
    }
    let (file_systems, dir) = file_systems(&answer, calls, dir, &mut notes);
    Machine {
        os: os(&answer, &mut notes),
        tlbs: registers.map(tlb::from_cpuid).unwrap_or_default(),
        disks: disks(&answer, &mut notes),
        cpu,
        caches,
        memory,
        limits,
        virtualisation,
        file_systems,
        dir,
        unknown: notes.into_unknown(),
        ..Machine::default()
    }
}

fn said(text: Option<&String>) -> Option<String> {
    text.and_then(|text| text::said(text))
}

fn os(answer: &Answer, notes: &mut Notes) -> Os {
    let system = answer.system.first();
    // Win32_Processor.Architecture.
    let arch = answer.processor.first().and_then(|processor| match processor.architecture? {
        0 => Some("x86"),
        5 => Some("arm"),
        9 => Some("x86_64"),
        12 => Some("aarch64"),
        _ => None,
    });
    let product = said(system.and_then(|system| system.caption.as_ref()));
    Os {
        name: Some("Windows".to_owned()),
        kernel_release: said(system.and_then(|system| system.version.as_ref())),
        kernel_version: None,
        distribution: notes.must("os.distribution", product, "Win32_OperatingSystem does not say it"),
        arch: notes.must("os.arch", arch, "Win32_Processor does not say it").map(str::to_owned),
        libc: None,
        host_name: said(answer.computer.first().and_then(|computer| computer.name.as_ref())),
    }
}

/// `HypervisorPresent` is true on a host with memory integrity too, so CPUID decides where it can.
fn virtualisation(answer: &Answer, calls: &Calls, notes: &mut Notes) -> Virtualisation {
    let computer = answer.computer.first();
    let part = |text: Option<&String>| said(text).unwrap_or_default();
    let product = format!(
        "{} {}",
        part(computer.and_then(|computer| computer.manufacturer.as_ref())),
        part(computer.and_then(|computer| computer.model.as_ref()))
    );
    let mut virt = Virtualisation { product: text::said(&product), ..Virtualisation::default() };
    virt::from_cpuid(&mut virt, calls);
    virt::from_product(&mut virt);
    if virt.guest.is_none() && computer.and_then(|computer| computer.hypervisor_present) == Some(false) {
        virt.guest = Some(false);
    }
    if virt.guest.is_none() {
        notes.say(
            "virtualisation.guest",
            "a hypervisor is present, but a Windows host with Hyper-V has one too",
        );
    }
    virt
}

fn cpu(answer: &Answer, registers: Option<&Registers>, guest: Option<bool>, notes: &mut Notes) -> Cpu {
    let sum = |count: fn(&Processor) -> Option<u32>| {
        answer.processor.iter().map(count).sum::<Option<u32>>().filter(|sum| *sum > 0)
    };
    let first = answer.processor.first();
    let mut cpu = Cpu {
        vendor: said(first.and_then(|processor| processor.manufacturer.as_ref())),
        model_name: said(first.and_then(|processor| processor.name.as_ref())),
        logical_cpus: sum(|processor| processor.number_of_logical_processors),
        cores: sum(|processor| processor.number_of_cores),
        sockets: u32::try_from(answer.processor.len()).ok().filter(|sockets| *sockets > 0),
        governor: said(answer.plan.first().and_then(|plan| plan.element_name.as_ref())),
        ..Cpu::default()
    };
    cpu.online = (0..cpu.logical_cpus.unwrap_or(0).min(4096)).collect();
    cpu.threads_per_core = cpu
        .logical_cpus
        .zip(cpu.cores)
        .filter(|(logical, cores)| logical % cores == 0)
        .map(|(logical, cores)| logical / cores);
    if let Some(registers) = registers {
        cpu::add_cpuid(&mut cpu, registers);
    }
    cpu::name_it(&mut cpu, guest, notes);
    // "Max" is the nominal rate of the product, not the boost.
    let nominal = first.and_then(|processor| processor.max_clock_speed).filter(|mhz| *mhz > 0);
    cpu.base = cpu.base.take().or_else(|| {
        Some(Frequency { mhz: nominal?.into(), source: "Win32_Processor.MaxClockSpeed".to_owned() })
    });
    cpu.power_source = answer
        .battery
        .first()
        .and_then(|battery| battery.battery_status)
        .map_or(PowerSource::Unknown, power::from_battery_status);
    if cpu.power_source == PowerSource::Unknown {
        notes.say(
            "cpu.power_source",
            "no battery is listed (usual on servers, desktops and virtual machines)",
        );
    }
    for (what, missing) in [
        ("cpu.logical_cpus", cpu.logical_cpus.is_none()),
        ("cpu.cores", cpu.cores.is_none()),
        ("cpu.base", cpu.base.is_none()),
        ("cpu.max", cpu.max.is_none()),
        ("cpu.governor", cpu.governor.is_none()),
    ] {
        if missing {
            notes.say(what, "neither CIM nor CPUID says it");
        }
    }
    cpu
}

fn memory(answer: &Answer, calls: &Calls, notes: &mut Notes) -> Memory {
    let system = answer.system.first();
    let kib = |number: Option<u64>| number.and_then(|kib| kib.checked_mul(1 << 10));
    let mib = |count: fn(&PageFile) -> Option<u64>| {
        answer.pagefile.iter().map(count).sum::<Option<u64>>().and_then(|mib| mib.checked_mul(1 << 20))
    };
    let total = answer.computer.first().and_then(|computer| computer.total_physical_memory);
    let free = kib(system.and_then(|system| system.free_physical_memory));
    Memory {
        total_bytes: notes.must("memory.total_bytes", total, "Win32_ComputerSystem does not say it"),
        available_bytes: notes.must("memory.available_bytes", free, "Win32_OperatingSystem does not say it"),
        swap_total_bytes: mib(|file| file.allocated_base_size),
        swap_used_bytes: mib(|file| file.current_usage),
        page_bytes: calls.page_bytes,
        // Windows always counts commitments.
        committable_bytes: kib(system.and_then(|system| system.free_virtual_memory)),
        ..Memory::default()
    }
}

fn disks(answer: &Answer, notes: &mut Notes) -> Vec<Disk> {
    if answer.disk.is_empty() {
        notes.say("disks", "Win32_DiskDrive lists none");
    }
    answer
        .disk
        .iter()
        .filter_map(|drive| {
            let index = drive.index?;
            let physical =
                answer.physical.iter().find(|disk| disk.device_id.as_deref() == Some(&index.to_string()));
            Some(Disk {
                name: disk_name(index),
                model: said(drive.model.as_ref()),
                size_bytes: drive.size,
                // MSFT_PhysicalDisk.MediaType: 3 HDD, 4 SSD, others unspecified.
                rotational_flag: physical.and_then(|disk| match disk.media_type? {
                    3 => Some(true),
                    4 => Some(false),
                    _ => None,
                }),
                removable: drive
                    .media_type
                    .as_deref()
                    .map(|kind| kind.starts_with("Removable") || kind.starts_with("External")),
                logical_block_bytes: physical.and_then(|disk| disk.logical_sector_size),
                physical_block_bytes: physical.and_then(|disk| disk.physical_sector_size),
                ..Disk::default()
            })
        })
        .collect()
}

fn disk_name(index: u32) -> String {
    format!("PhysicalDrive{index}")
}

fn file_systems(
    answer: &Answer,
    calls: &Calls,
    dir: &Path,
    notes: &mut Notes,
) -> (Vec<FileSystem>, Directory) {
    let disk_of = |letter: &str| {
        let partition =
            answer.partition.iter().find(|part| part.drive_letter.as_deref() == letter.strip_suffix(':'))?;
        partition.disk_number.map(disk_name)
    };
    let systems: Vec<FileSystem> = answer
        .volume
        .iter()
        .filter_map(|volume| {
            let letter = said(volume.device_id.as_ref())?;
            Some(FileSystem {
                kind: said(volume.file_system.as_ref())?,
                source: said(volume.provider_name.as_ref()).unwrap_or_else(|| letter.clone()),
                total_bytes: volume.size,
                available_bytes: volume.free_space,
                // Win32_LogicalDisk.DriveType: 4 network, 5 compact disc, 6 RAM disk.
                network: volume.drive_type == Some(4),
                read_only: volume.drive_type == Some(5),
                in_memory: volume.drive_type == Some(6),
                disk: disk_of(&letter),
                mount_point: letter,
                ..FileSystem::default()
            })
        })
        .collect();
    if systems.is_empty() {
        notes.say("file_systems", "Win32_LogicalDisk lists none");
    }
    let path = (calls.resolve)(dir);
    let shown = text::clean(&path.to_string_lossy());
    // Volumes mounted in folders are not listed here; a drive letter decides.
    let drive = |system: &&FileSystem| {
        shown
            .get(..system.mount_point.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(&system.mount_point))
    };
    let file_system = systems.iter().find(drive).cloned();
    if file_system.is_none() {
        notes.say("dir.file_system", "no listed drive holds the directory");
    }
    (systems, Directory { path: shown, file_system })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_does_without_wmic_and_serial_numbers() {
        assert!(!WINDOWS_QUERY.to_lowercase().contains("wmic"));
        assert!(!WINDOWS_QUERY.to_lowercase().contains("serial"));
        // One -Command argument: a double quote inside would end it early.
        assert!(!WINDOWS_QUERY.contains('"'));
    }

    #[test]
    fn no_answer_is_said_and_not_fatal() {
        let machine = describe_windows("The term is not recognised", &Calls::none(), Path::new("C:\\"));
        assert!(machine.unknown.iter().any(|unknown| unknown.what == "machine"));
        assert_eq!(machine.cpu.logical_cpus, None);
    }

    #[test]
    fn a_list_of_one_may_be_an_object_and_odd_entries_are_left_out() {
        let machine = describe_windows(
            r#"{"processor":{"Name":"X","NumberOfCores":2,"NumberOfLogicalProcessors":4},"disk":[{"Index":"x"},{"Index":1}]}"#,
            &Calls::none(),
            Path::new("C:\\"),
        );
        assert_eq!((machine.cpu.cores, machine.cpu.threads_per_core), (Some(2), Some(2)));
        assert_eq!(machine.disks.len(), 1);
    }
}
