//! Kernel options given at boot, and CPU vulnerability mitigations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// What the boot loader told the kernel, as far as it changes timings.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Boot {
    /// Options that matter to measurements; others are not kept (they may hold names and keys).
    pub options: Vec<BootOption>,
    /// CPU vulnerabilities that this CPU has, and what the kernel does about each.
    pub mitigations: Vec<Mitigation>,
}

/// One kernel option.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct BootOption {
    /// Name as typed.
    pub name: String,
    /// What stands after `=`.
    pub value: Option<String>,
}

/// One vulnerability and its state.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Mitigation {
    /// The kernel's name of the vulnerability.
    pub name: String,
    /// `Vulnerable...` or `Mitigation: ...`.
    pub state: String,
}

/// Options that change the cost of system calls, switches, interrupts, idling, pages or clocks
/// (kernel-parameters.txt of the Linux documentation; `deferred_init` and `nested_pvm` are guest kernels'
/// own).
const MATTER: &str = "\
    amd_iommu amd_pstate audit clocksource cpufreq.default_governor cpuidle.governor cpuidle.off \
    cpuidle_haltpoll.force debug_pagealloc default_hugepagesz deferred_init gather_data_sampling \
    haltpoll.guest_halt_poll_ns hugepages hugepagesz hugetlb_free_vmemmap idle init_on_alloc \
    init_on_free intel_idle.max_cstate intel_iommu intel_pstate iommu iommu.strict irqaffinity isolcpus \
    kvm-clock l1tf maxcpus mds mem mitigations nested_pvm no-kvmclock no-steal-acc nohlt nohz nohz_full \
    nopti nosmt nospectre_v1 nospectre_v2 notsc nowatchdog nr_cpus numa numa_balancing page_poison \
    pcie_aspm preempt processor.max_cstate psi pti rcu_nocb_poll rcu_nocbs retbleed sched_autogroup \
    skew_tick slub_debug spec_store_bypass_disable spectre_v2 split_lock_detect srbds swiotlb threadirqs \
    transparent_hugepage transparent_hugepage_shmem tsc tsx workqueue.power_efficient zswap.enabled";

pub(crate) fn read(root: &Root, notes: &mut Notes) -> Boot {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let options =
        notes.or("boot.options", root.text("/proc/cmdline")).map(|line| options(&line)).unwrap_or_default();
    let names = root.names(FOLDER);
    if names.is_empty() {
        notes.say("boot.mitigations", format!("{FOLDER} does not exist"));
    }
    let mitigations = names
        .into_iter()
        .filter_map(|name| {
            Some(Mitigation { state: root.line(&format!("{FOLDER}/{name}")).ok()?, name: text::clean(&name) })
        })
        .filter(|mitigation| mitigation.state != "Not affected")
        .collect();
    Boot { options, mitigations }
}

/// The options of a kernel command line that matter here. What stands after a lone `--` belongs to the first
/// program.
pub(crate) fn options(command_line: &str) -> Vec<BootOption> {
    words(command_line)
        .into_iter()
        .take_while(|word| word != "--")
        .filter_map(|word| {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(text::clean(value))),
                None => (word.as_str(), None),
            };
            // The kernel takes '-' and '_' for the same letter.
            let same = |known: &str| known.replace('-', "_") == name.replace('-', "_");
            MATTER.split(' ').any(same).then(|| BootOption { name: text::clean(name), value })
        })
        .collect()
}

/// Splits at spaces outside double quotes, which are dropped.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().expect("starts with one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> Vec<String> {
        options(line)
            .into_iter()
            .map(|o| o.value.map_or(o.name.clone(), |value| format!("{}={value}", o.name)))
            .collect()
    }

    #[test]
    fn only_options_that_change_timings_are_kept() {
        let line =
            "root=UUID=1234 isolcpus=2-3 nohz_full=2-3 quiet secret=x transparent_hugepage=never nosmt";
        assert_eq!(named(line), ["isolcpus=2-3", "nohz_full=2-3", "transparent_hugepage=never", "nosmt"]);
    }

    #[test]
    fn arguments_of_the_first_program_are_not_options() {
        assert_eq!(named("mitigations=off -- isolcpus=1"), ["mitigations=off"]);
    }

    #[test]
    fn quotes_hold_a_value_together_and_dashes_are_underscores() {
        assert_eq!(
            named("tsc=\"reliable nowatchdog\" rcu-nocbs=1"),
            ["tsc=reliable nowatchdog", "rcu-nocbs=1"]
        );
    }
}
