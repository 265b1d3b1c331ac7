//! Windows, from the JSON of one PowerShell command over CIM classes. WMIC is not used: new systems lack it.
//!
//! Classes and values: Microsoft's reference of the CIM Win32 provider and of the Storage Management API.

use std::path::Path;

use serde_json::{Map, Value};

use crate::cache;
use crate::calls::Calls;
use crate::cpu::{self, Cpu, Frequency};
use crate::cpuid::Registers;
use crate::disks::Disk;
use crate::file_systems::{Directory, FileSystem};
use crate::limits::{self, Limits};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::notes::Notes;
use crate::os::Os;
use crate::power::{self, PowerSource};
use crate::text;
use crate::tlb;
use crate::virt::{self, Virtualisation};

/// What `powershell.exe -NoProfile -NonInteractive -Command` is given. It reads only, needs no administrator,
/// and leaves out serial numbers.
pub const WINDOWS_QUERY: &str = "\
[Console]::OutputEncoding = [Text.Encoding]::UTF8; $ErrorActionPreference = 'SilentlyContinue'; \
[pscustomobject]@{ \
processor = @(Get-CimInstance Win32_Processor | Select-Object Name, Manufacturer, Architecture, \
NumberOfCores, \
NumberOfLogicalProcessors, NumberOfEnabledCore, MaxClockSpeed, HypervisorPresent); \
computer = @(Get-CimInstance Win32_ComputerSystem | Select-Object Name, Manufacturer, Model, \
HypervisorPresent, \
TotalPhysicalMemory, NumberOfLogicalProcessors); \
system = @(Get-CimInstance Win32_OperatingSystem | Select-Object Caption, Version, BuildNumber, \
OSArchitecture, \
TotalVisibleMemorySize, FreePhysicalMemory, FreeVirtualMemory); \
pagefile = @(Get-CimInstance Win32_PageFileUsage | Select-Object AllocatedBaseSize, CurrentUsage); \
battery = @(Get-CimInstance Win32_Battery | Select-Object BatteryStatus); \
plan = @(Get-CimInstance -Namespace root/cimv2/power Win32_PowerPlan | Where-Object IsActive | \
Select-Object ElementName); \
disk = @(Get-CimInstance Win32_DiskDrive | Select-Object Index, Model, Size, BytesPerSector, MediaType, \
InterfaceType); \
physical = @(Get-CimInstance -Namespace root/Microsoft/Windows/Storage MSFT_PhysicalDisk | Select-Object \
DeviceId, \
MediaType, PhysicalSectorSize, LogicalSectorSize); \
volume = @(Get-CimInstance Win32_LogicalDisk | Select-Object DeviceID, DriveType, FileSystem, Size, \
FreeSpace, \
ProviderName); \
partition = @(Get-CimInstance -Namespace root/Microsoft/Windows/Storage MSFT_Partition | Where-Object \
DriveLetter | \
Select-Object @{n='DriveLetter';e={[string]$_.DriveLetter}}, DiskNumber) \
} | ConvertTo-Json -Depth 4 -Compress";

/// The objects that were answered, by the query's names of their classes.
struct Answer(Map<String, Value>);

impl Answer {
    /// Those of one class: a list, one object alone (as PowerShell writes a list of one), or nothing. Entries
    /// that are no objects are left out; a property of another form is unknown.
    fn all(&self, class: &str) -> impl Iterator<Item = &Value> + Clone {
        let rows = match self.0.get(class) {
            Some(Value::Array(rows)) => rows.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        rows.iter().filter(|row| row.is_object())
    }

    /// The first of one class; where there is none, a value without properties.
    fn first(&self, class: &str) -> &Value {
        self.all(class).next().unwrap_or(&Value::Null)
    }
}

fn number<T: TryFrom<u64>>(object: &Value, property: &str) -> Option<T> {
    T::try_from(object[property].as_u64()?).ok()
}

fn said(object: &Value, property: &str) -> Option<String> {
    text::said(object[property].as_str()?)
}

/// Describes a Windows machine from the JSON of [`WINDOWS_QUERY`], and what `calls` says besides. Never
/// fails.
pub fn describe_windows(json: &str, calls: &Calls, dir: &Path) -> Machine {
    let mut notes = Notes::default();
    // PowerShell may begin with a byte order mark.
    let answer = serde_json::from_str(json.trim_start_matches('\u{feff}').trim()).unwrap_or_else(|error| {
        notes.say("machine", format!("PowerShell gave no readable answer: {error}"));
        Map::new()
    });
    let answer = Answer(answer);
    let registers = calls.registers.as_ref();
    let virtualisation = virtualisation(&answer, calls, &mut notes);
    let cpu = cpu(&answer, registers, virtualisation.guest, &mut notes);
    let caches = registers.map(cache::from_cpuid).unwrap_or_default();
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

fn os(answer: &Answer, notes: &mut Notes) -> Os {
    let system = answer.first("system");
    // Win32_Processor.Architecture.
    let arch = match number::<u16>(answer.first("processor"), "Architecture") {
        Some(0) => Some("x86"),
        Some(5) => Some("arm"),
        Some(9) => Some("x86_64"),
        Some(12) => Some("aarch64"),
        _ => None,
    };
    let product = said(system, "Caption");
    Os {
        name: Some("Windows".to_owned()),
        kernel_release: said(system, "Version"),
        kernel_version: None,
        distribution: notes.must("os.distribution", product, "Win32_OperatingSystem does not report it"),
        arch: notes.must("os.arch", arch, "Win32_Processor does not report it").map(str::to_owned),
        libc: None,
        host_name: said(answer.first("computer"), "Name"),
    }
}

/// `HypervisorPresent` is true on a host with memory integrity too, so CPUID decides where it can.
fn virtualisation(answer: &Answer, calls: &Calls, notes: &mut Notes) -> Virtualisation {
    let computer = answer.first("computer");
    let part = |property| said(computer, property).unwrap_or_default();
    let product = format!("{} {}", part("Manufacturer"), part("Model"));
    let mut virt = Virtualisation { product: text::said(&product), ..Virtualisation::default() };
    virt::from_cpuid(&mut virt, calls);
    virt::from_product(&mut virt);
    if virt.guest.is_none() && computer["HypervisorPresent"].as_bool() == Some(false) {
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
    let processors = answer.all("processor");
    let sum = |property| {
        let each = processors.clone().map(|processor| number::<u32>(processor, property));
        each.sum::<Option<u32>>().filter(|sum| *sum > 0)
    };
    let first = answer.first("processor");
    let mut cpu = Cpu {
        vendor: said(first, "Manufacturer"),
        model_name: said(first, "Name"),
        logical_cpus: sum("NumberOfLogicalProcessors"),
        cores: sum("NumberOfCores"),
        sockets: u32::try_from(processors.clone().count()).ok().filter(|sockets| *sockets > 0),
        governor: said(answer.first("plan"), "ElementName"),
        ..Cpu::default()
    };
    cpu::number_cpus(&mut cpu);
    if let Some(registers) = registers {
        cpu::add_cpuid(&mut cpu, registers);
    }
    cpu::name_it(&mut cpu, guest, notes);
    // "Max" is the nominal rate of the product, not the boost.
    let nominal = number::<u32>(first, "MaxClockSpeed").filter(|mhz| *mhz > 0);
    cpu.base = cpu.base.take().or_else(|| {
        Some(Frequency { mhz: nominal?.into(), source: "Win32_Processor.MaxClockSpeed".to_owned() })
    });
    cpu.power_source = number(answer.first("battery"), "BatteryStatus")
        .map_or(PowerSource::Unknown, power::from_battery_status);
    if cpu.power_source == PowerSource::Unknown {
        notes.say(
            "cpu.power_source",
            "no battery is listed (usual on servers, desktops and virtual machines)",
        );
    }
    notes.missing(
        [
            ("cpu.logical_cpus", cpu.logical_cpus.is_none()),
            ("cpu.cores", cpu.cores.is_none()),
            ("cpu.base", cpu.base.is_none()),
            ("cpu.max", cpu.max.is_none()),
            ("cpu.governor", cpu.governor.is_none()),
        ],
        "neither CIM nor CPUID reports it",
    );
    cpu
}

fn memory(answer: &Answer, calls: &Calls, notes: &mut Notes) -> Memory {
    let system = answer.first("system");
    let kib = |property| number::<u64>(system, property).and_then(|kib| kib.checked_mul(1 << 10));
    let mib = |property| {
        let each = answer.all("pagefile").map(|file| number::<u64>(file, property));
        each.sum::<Option<u64>>().and_then(|mib| mib.checked_mul(1 << 20))
    };
    let total = number(answer.first("computer"), "TotalPhysicalMemory");
    let free = kib("FreePhysicalMemory");
    Memory {
        total_bytes: notes.must("memory.total_bytes", total, "Win32_ComputerSystem does not report it"),
        available_bytes: notes.must(
            "memory.available_bytes",
            free,
            "Win32_OperatingSystem does not report it",
        ),
        swap_total_bytes: mib("AllocatedBaseSize"),
        swap_used_bytes: mib("CurrentUsage"),
        page_bytes: calls.page_bytes,
        // Windows always counts commitments.
        committable_bytes: kib("FreeVirtualMemory"),
        ..Memory::default()
    }
}

fn disks(answer: &Answer, notes: &mut Notes) -> Vec<Disk> {
    if answer.all("disk").next().is_none() {
        notes.say("disks", "Win32_DiskDrive lists none");
    }
    let disk = |drive: &Value| {
        let index: u32 = number(drive, "Index")?;
        let mut physical = answer.all("physical");
        let physical = physical.find(|disk| disk["DeviceId"].as_str() == Some(&index.to_string()));
        let physical = physical.unwrap_or(&Value::Null);
        let removable = |kind: &str| kind.starts_with("Removable") || kind.starts_with("External");
        Some(Disk {
            name: disk_name(index),
            model: said(drive, "Model"),
            size_bytes: number(drive, "Size"),
            // MSFT_PhysicalDisk.MediaType: 3 HDD, 4 SSD, others unspecified.
            rotational_flag: match number::<u16>(physical, "MediaType") {
                Some(3) => Some(true),
                Some(4) => Some(false),
                _ => None,
            },
            removable: drive["MediaType"].as_str().map(removable),
            logical_block_bytes: number(physical, "LogicalSectorSize"),
            physical_block_bytes: number(physical, "PhysicalSectorSize"),
            ..Disk::default()
        })
    };
    answer.all("disk").filter_map(disk).collect()
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
        let letter = letter.strip_suffix(':');
        let partition = answer.all("partition").find(|part| part["DriveLetter"].as_str() == letter)?;
        number(partition, "DiskNumber").map(disk_name)
    };
    let file_system = |volume: &Value| {
        let letter = said(volume, "DeviceID")?;
        let drive_type = number::<u32>(volume, "DriveType");
        Some(FileSystem {
            kind: said(volume, "FileSystem")?,
            source: said(volume, "ProviderName").unwrap_or_else(|| letter.clone()),
            total_bytes: number(volume, "Size"),
            available_bytes: number(volume, "FreeSpace"),
            // Win32_LogicalDisk.DriveType: 4 network, 5 compact disc, 6 RAM disk.
            network: drive_type == Some(4),
            read_only: drive_type == Some(5),
            in_memory: drive_type == Some(6),
            disk: disk_of(&letter),
            mount_point: letter,
            ..FileSystem::default()
        })
    };
    let systems: Vec<FileSystem> = answer.all("volume").filter_map(file_system).collect();
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
