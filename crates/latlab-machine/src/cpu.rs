//! The processor.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpuid::{self, Registers};
use crate::microarchitecture::{self, Identity};
use crate::notes::Notes;
use crate::power::{self, PowerSource};
use crate::root::{Root, Why};
use crate::text;

/// The processor, as the kernel and CPUID tell it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    /// `GenuineIntel`, `AuthenticAMD`, `Arm`, `Apple`.
    pub vendor: Option<String>,
    /// Name that the CPU, or the hypervisor, gives.
    pub model_name: Option<String>,
    /// `Zen 5`, `Neoverse N1`. Only where it is certain: `None` if features contradict the model number, or
    /// if it is a hypervisor's word alone.
    pub microarchitecture: Option<String>,
    /// x86: display family.
    pub family: Option<u32>,
    /// x86: display model.
    pub model: Option<u32>,
    /// x86: stepping.
    pub stepping: Option<u32>,
    /// Arm: the cores by part number.
    pub parts: Vec<CorePart>,
    /// Logical CPUs that are online.
    pub logical_cpus: Option<u32>,
    /// Their numbers; empty when unknown.
    pub online: Vec<u32>,
    /// Cores of those, as this system sees them: a hypervisor may show two threads of a core as two cores.
    pub cores: Option<u32>,
    /// Packages of those.
    pub sockets: Option<u32>,
    /// Most logical CPUs a core has here.
    pub threads_per_core: Option<u32>,
    /// Whether cores of several kinds share the package.
    pub hybrid: Option<bool>,
    /// Features that matter to measuring, named as Linux names them.
    pub features: Vec<String>,
    /// Nominal clock rate.
    pub base: Option<Frequency>,
    /// Highest clock rate.
    pub max: Option<Frequency>,
    /// Frequency governor (of all CPUs, joined by `, ` if they differ).
    pub governor: Option<String>,
    /// Frequency driver.
    pub frequency_driver: Option<String>,
    /// Energy preference of `intel_pstate` and `amd_pstate`.
    pub energy_preference: Option<String>,
    /// Whether the CPU may exceed its nominal rate.
    pub boost: Option<bool>,
    /// Idle driver: what happens between two wake-ups.
    pub idle_driver: Option<String>,
    /// Idle governor.
    pub idle_governor: Option<String>,
    /// Mains or battery.
    pub power_source: PowerSource,
}

/// A clock rate and who says so.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Frequency {
    /// MHz.
    pub mhz: f64,
    /// The file, CPUID leaf or name it is from.
    pub source: String,
}

/// A kind of Arm core.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct CorePart {
    /// MIDR implementer.
    pub implementer: u32,
    /// MIDR part number.
    pub part: u32,
    /// Its name, if it is in the table.
    pub name: Option<String>,
    /// Logical CPUs of this kind.
    pub cpus: Vec<u32>,
}

/// aarch64 features that matter to measuring; `asimd` is NEON.
const ARM_FEATURES: &[&str] = &[
    "asimd", "asimddp", "atomics", "uscat", "lrcpc", "sve", "sve2", "sme", "bf16", "i8mm", "dcpop", "dcpodp",
    "ecv", "mops",
];

const CPUS: &str = "/sys/devices/system/cpu";

pub(crate) fn read(
    root: &Root,
    registers: Option<&Registers>,
    guest: Option<bool>,
    notes: &mut Notes,
) -> Cpu {
    let info = notes.or("cpu (/proc/cpuinfo)", root.text("/proc/cpuinfo")).unwrap_or_default();
    let mut cpu = from_cpuinfo(&info);
    if let Some(registers) = registers {
        add_cpuid(&mut cpu, registers);
    }
    read_topology(root, &info, &mut cpu, notes);
    read_rates(root, &mut cpu, notes);
    cpu.power_source = power::read(root, notes);
    name_it(&mut cpu, guest, notes);
    cpu
}

/// What `/proc/cpuinfo` says of the first CPU, and of all Arm cores.
pub(crate) fn from_cpuinfo(info: &str) -> Cpu {
    let value = |key| text::field(info, key, ':');
    let number = |key| value(key).and_then(|value| value.parse().ok());
    let flags: BTreeSet<&str> =
        value("flags").or_else(|| value("Features")).unwrap_or_default().split_whitespace().collect();
    let known = cpuid::feature_names().chain(ARM_FEATURES.iter().copied());
    Cpu {
        vendor: value("vendor_id").and_then(text::said),
        model_name: value("model name").and_then(text::said),
        family: number("cpu family"),
        model: number("model"),
        stepping: number("stepping"),
        features: known.filter(|feature| flags.contains(feature)).map(str::to_owned).collect(),
        parts: arm_parts(info),
        ..Cpu::default()
    }
}

fn arm_parts(info: &str) -> Vec<CorePart> {
    let hexadecimal = |value: &str| u32::from_str_radix(value.trim_start_matches("0x"), 16).ok();
    let mut parts: Vec<CorePart> = Vec::new();
    for block in info.split("\n\n") {
        let value = |key| text::field(block, key, ':');
        let (Some(cpu), Some(implementer), Some(part)) = (
            value("processor").and_then(|number| number.parse().ok()),
            value("CPU implementer").and_then(hexadecimal),
            value("CPU part").and_then(hexadecimal),
        ) else {
            continue;
        };
        match parts.iter_mut().find(|known| (known.implementer, known.part) == (implementer, part)) {
            Some(known) => known.cpus.push(cpu),
            None => parts.push(CorePart {
                implementer,
                part,
                name: microarchitecture::arm(implementer, part).1.map(str::to_owned),
                cpus: vec![cpu],
            }),
        }
    }
    parts
}

/// Adds what CPUID knows and the kernel did not say.
pub(crate) fn add_cpuid(cpu: &mut Cpu, registers: &Registers) {
    let meaning = registers.meaning();
    cpu.vendor = cpu
        .vendor
        .take()
        .or_else(|| meaning.get_vendor_info().and_then(|vendor| text::said(vendor.as_str())));
    cpu.model_name = cpu
        .model_name
        .take()
        .or_else(|| meaning.get_processor_brand_string().and_then(|brand| text::said(brand.as_str())));
    if let Some(version) = meaning.get_feature_info() {
        cpu.family = cpu.family.or(Some(version.family_id().into()));
        cpu.model = cpu.model.or(Some(version.model_id().into()));
        cpu.stepping = cpu.stepping.or(Some(version.stepping_id().into()));
    }
    if cpu.features.is_empty() {
        cpu.features = registers.features();
    }
    cpu.hybrid = Some(registers.is_hybrid());
    let rate =
        |mhz: u16| (mhz > 0).then(|| Frequency { mhz: mhz.into(), source: "CPUID leaf 16h".to_owned() });
    if let Some(rates) = meaning.get_processor_frequency_info() {
        cpu.base = rate(rates.processor_base_frequency());
        cpu.max = rate(rates.processor_max_frequency());
    }
}

fn read_topology(root: &Root, info: &str, cpu: &mut Cpu, notes: &mut Notes) {
    let online = root.read_as(&format!("{CPUS}/online"), text::cpu_list).or_else(|why| {
        let listed: Vec<u32> = info
            .lines()
            .filter_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == "processor"))
            .filter_map(|(_, number)| number.trim().parse().ok())
            .collect();
        if listed.is_empty() { Err(why) } else { Ok(listed) }
    });
    cpu.online = notes.or("cpu.logical_cpus", online).unwrap_or_default();
    cpu.logical_cpus = u32::try_from(cpu.online.len()).ok().filter(|count| *count > 0);

    let of = |number: u32, file: &str| format!("{CPUS}/cpu{number}/topology/{file}");
    let siblings: Result<BTreeSet<Vec<u32>>, Why> =
        cpu.online.iter().map(|n| root.read_as(&of(*n, "thread_siblings_list"), text::cpu_list)).collect();
    if let Some(cores) = notes.or("cpu.cores", siblings).filter(|cores| !cores.is_empty()) {
        cpu.cores = u32::try_from(cores.len()).ok();
        // Siblings that are offline do not count; the lists name online CPUs only.
        cpu.threads_per_core = cores.iter().filter_map(|core| u32::try_from(core.len()).ok()).max();
    }
    // Firmware that does not know writes -1.
    let packages: Result<BTreeSet<u32>, Why> =
        cpu.online.iter().map(|n| root.number(&of(*n, "physical_package_id"))).collect();
    let packages = notes.or("cpu.sockets", packages);
    cpu.sockets = packages.and_then(|ids| u32::try_from(ids.len()).ok()).filter(|count| *count > 0);
    if !cpu.parts.is_empty() {
        cpu.hybrid = Some(cpu.parts.len() > 1);
    }
}

fn read_rates(root: &Root, cpu: &mut Cpu, notes: &mut Notes) {
    let first = cpu.online.first().copied().unwrap_or(0);
    let folder = format!("{CPUS}/cpu{first}/cpufreq");
    let rate = |file: &str| {
        let path = format!("{folder}/{file}");
        let khz: f64 = root.number(&path).ok()?;
        (khz > 0.0).then(|| Frequency { mhz: khz / 1000.0, source: path })
    };
    cpu.base = rate("base_frequency")
        .or_else(|| cpu.base.take())
        .or_else(|| rate_in_name(cpu.model_name.as_deref()?));
    cpu.max = rate("cpuinfo_max_freq").or_else(|| cpu.max.take());
    notes.missing(
        [("cpu.base", cpu.base.is_none()), ("cpu.max", cpu.max.is_none())],
        "neither cpufreq nor the CPU reports it (usual in virtual machines)",
    );
    let governors: Result<BTreeSet<String>, Why> =
        cpu.online.iter().map(|n| root.line(&format!("{CPUS}/cpu{n}/cpufreq/scaling_governor"))).collect();
    cpu.governor = notes
        .or("cpu.governor", governors)
        .map(|all| all.into_iter().collect::<Vec<_>>().join(", "))
        .filter(|all| !all.is_empty());
    cpu.frequency_driver = root.line(&format!("{folder}/scaling_driver")).ok();
    cpu.energy_preference = root.line(&format!("{folder}/energy_performance_preference")).ok();
    let switch = |path: &str, on: &str| root.line(path).ok().map(|state| state == on);
    cpu.boost = switch(&format!("{CPUS}/intel_pstate/no_turbo"), "0")
        .or_else(|| switch(&format!("{CPUS}/cpufreq/boost"), "1"))
        .or_else(|| switch(&format!("{folder}/boost"), "1"));
    if cpu.boost.is_none() {
        notes.say("cpu.boost", "no driver reports it (usual in virtual machines)");
    }
    cpu.idle_driver = root.line(&format!("{CPUS}/cpuidle/current_driver")).ok();
    cpu.idle_governor = root.line(&format!("{CPUS}/cpuidle/current_governor_ro")).ok();
}

/// Intel's brand strings end in the nominal rate: `... @ 2.60GHz` (SDM, "brand string method").
pub(crate) fn rate_in_name(model_name: &str) -> Option<Frequency> {
    let (_, rate) = model_name.rsplit_once('@')?;
    let ghz: f64 = rate.trim().strip_suffix("GHz")?.trim().parse().ok()?;
    (ghz > 0.0).then(|| Frequency { mhz: (ghz * 1000.0).round(), source: "model name".to_owned() })
}

/// Numbers the logical CPUs and shares them out to the cores, where the system only counts both.
pub(crate) fn number_cpus(cpu: &mut Cpu) {
    cpu.online = (0..cpu.logical_cpus.unwrap_or(0).min(4096)).collect();
    let counts = cpu.logical_cpus.zip(cpu.cores).filter(|(logical, cores)| logical % cores == 0);
    cpu.threads_per_core = counts.map(|(logical, cores)| logical / cores);
}

/// Fills in vendor and microarchitecture.
pub(crate) fn name_it(cpu: &mut Cpu, guest: Option<bool>, notes: &mut Notes) {
    if let Some(first) = cpu.parts.first() {
        cpu.vendor = cpu
            .vendor
            .take()
            .or_else(|| microarchitecture::arm(first.implementer, first.part).0.map(str::to_owned));
        let names: Option<Vec<String>> = cpu.parts.iter().map(|part| part.name.clone()).collect();
        cpu.microarchitecture = names.map(|names| names.join(" + "));
        if cpu.microarchitecture.is_none() {
            notes.say(
                "cpu.microarchitecture",
                format!(
                    "part {:#x} of implementer {:#x} is not in this tool's table",
                    first.part, first.implementer
                ),
            );
        }
    } else if let (Some(vendor), Some(family), Some(model)) = (&cpu.vendor, cpu.family, cpu.model) {
        let name = microarchitecture::x86(&Identity {
            vendor,
            family,
            model,
            stepping: cpu.stepping.unwrap_or(0),
            model_name: cpu.model_name.as_deref().unwrap_or_default(),
            features: &cpu.features,
            guest,
        });
        match name {
            Ok(name) => cpu.microarchitecture = Some(name.to_owned()),
            Err(why) => notes.say("cpu.microarchitecture", why),
        }
    }
    notes.missing(
        [("cpu.vendor", cpu.vendor.is_none()), ("cpu.features", cpu.features.is_empty())],
        "neither the kernel nor the CPU reports it",
    );
    // Arm CPUs carry no name; the part number stands for it.
    if cpu.model_name.is_none() && cpu.parts.is_empty() {
        notes.say("cpu.model_name", "neither the kernel nor the CPU reports it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_in_a_brand_string_is_the_nominal_one() {
        let rate = rate_in_name("Intel(R) Xeon(R) CPU @ 2.20GHz").expect("a rate");
        assert!((rate.mhz - 2200.0).abs() < f64::EPSILON);
        assert_eq!(rate_in_name("AMD EPYC 9R14"), None);
        assert_eq!(rate_in_name("x @ 0.00GHz"), None);
    }

    #[test]
    fn big_and_little_cores_are_two_parts() {
        let info = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd05\n\nprocessor : 1\nCPU implementer : 0x41\n\
                    CPU part : 0xd0b\n\nprocessor : 2\nCPU implementer : 0x41\nCPU part : 0xd0b\n";
        let parts = arm_parts(info);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1].cpus, [1, 2]);
    }

    #[test]
    fn only_features_that_matter_are_kept() {
        let cpu = from_cpuinfo("flags\t\t: fpu avx2 sse4_2 syscall\n");
        assert_eq!(cpu.features, ["sse4_2", "avx2"]);
    }
}
