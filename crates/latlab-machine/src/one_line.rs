//! The machine in one line, for headers.

use crate::machine::Machine;
use crate::text;

/// `Intel Xeon (family 6 model 167) · 4 CPUs of 4 · 23 GiB · Linux 6.18 in a virtual machine · ext4 on vda`.
///
/// Parts that are unknown are said to be or left out; limits are named where they bind (`0.5 CPUs of 8`, `256 MiB of 31
/// GiB`). Holds no private fields.
#[must_use]
pub fn one_line(machine: &Machine) -> String {
    let parts = [
        Some(cpu(machine)),
        Some(cpus(machine)),
        Some(memory(machine)),
        Some(system(machine)),
        storage(machine),
    ];
    text::clean(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

fn cpu(machine: &Machine) -> String {
    let cpu = &machine.cpu;
    let name = cpu.model_name.as_deref().map(short_name).filter(|name| !name.is_empty());
    let known = name.or_else(|| cpu.vendor.clone());
    let detail = cpu
        .microarchitecture
        .clone()
        .or_else(|| Some(format!("family {} model {}", cpu.family?, cpu.model?)));
    match (known, detail) {
        (Some(name), Some(detail)) => format!("{name} ({detail})"),
        (name, detail) => name.or(detail).unwrap_or_else(|| "unknown CPU".to_owned()),
    }
}

/// Drops trade marks, the clock rate, the number of cores and the words that every name has.
fn short_name(model_name: &str) -> String {
    let name = model_name.split('@').next().unwrap_or_default();
    let name = ["(R)", "(r)", "(TM)", "(tm)", "®", "™"]
        .iter()
        .fold(name.to_owned(), |name, mark| name.replace(mark, " "));
    let words: Vec<&str> = name
        .split_whitespace()
        .filter(|word| !matches!(*word, "CPU" | "Processor" | "processor") && !word.ends_with("-Core"))
        .collect();
    words.join(" ")
}

fn cpus(machine: &Machine) -> String {
    let online = machine.cpu.logical_cpus.map(u64::from);
    let allowed = Some(machine.limits.allowed_cpus.len() as u64).filter(|count| *count > 0);
    let quota = machine.limits.cgroup.as_ref().and_then(|cgroup| cgroup.cpu_quota);
    let quota = quota.filter(|quota| allowed.or(online).is_none_or(|cpus| *quota < cpus as f64));
    let plural = |count: u64| if count == 1 { "CPU" } else { "CPUs" };
    match (quota, allowed, online) {
        (Some(quota), _, Some(online)) => format!("{} CPUs of {online}", (quota * 100.0).round() / 100.0),
        (Some(quota), ..) => format!("{} CPUs", (quota * 100.0).round() / 100.0),
        (None, Some(allowed), Some(online)) => format!("{allowed} {} of {online}", plural(allowed)),
        (None, Some(count), None) | (None, None, Some(count)) => format!("{count} {}", plural(count)),
        (None, None, None) => "unknown number of CPUs".to_owned(),
    }
}

fn memory(machine: &Machine) -> String {
    let limit = machine.limits.cgroup.as_ref().and_then(|cgroup| cgroup.memory_limit_bytes);
    match (limit, machine.memory.total_bytes) {
        (Some(limit), Some(total)) if limit < total => format!("{} of {}", in_units(limit), in_units(total)),
        (_, Some(total)) => in_units(total),
        (Some(limit), None) => in_units(limit),
        (None, None) => "unknown memory".to_owned(),
    }
}

/// Whole MiB, GiB or TiB, rounded down: what is there, not what was bought.
fn in_units(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => format!("{} MiB", bytes >> 20),
        0x4000_0000..0x100_0000_0000 => format!("{} GiB", bytes >> 30),
        _ => format!("{:.1} TiB", bytes as f64 / f64::from(1_u32 << 20) / f64::from(1_u32 << 20)),
    }
}

fn system(machine: &Machine) -> String {
    let name = machine.os.name.as_deref().unwrap_or("unknown system");
    let mut words = match (name, &machine.os.kernel_release, &machine.os.distribution) {
        ("Linux", Some(release), _) => format!("Linux {}", major_minor(release)),
        ("Linux", ..) => "Linux".to_owned(),
        // The product's name says more than the kernel's number there.
        (_, _, Some(product)) => product.clone(),
        _ => name.to_owned(),
    };
    let virt = &machine.virtualisation;
    let inside = match (&virt.container, virt.wsl, virt.guest) {
        (Some(_), _, Some(true)) => " in a container in a virtual machine",
        (Some(_), ..) => " in a container",
        (None, Some(2), _) => " in WSL2",
        (None, Some(_), _) => " in WSL1",
        (None, None, Some(true)) => " in a virtual machine",
        (None, None, Some(false) | None) => "",
    };
    words.push_str(inside);
    words
}

fn major_minor(release: &str) -> String {
    release.split(['.', '-']).take(2).collect::<Vec<_>>().join(".")
}

fn storage(machine: &Machine) -> Option<String> {
    let system = machine.dir.file_system.as_ref()?;
    let place = match &system.disk {
        Some(disk) => format!(" on {disk}"),
        None if system.in_memory => " in memory".to_owned(),
        None if system.network => " over a network or from the host".to_owned(),
        // A plain device name; longer sources may hold names that people gave.
        None => match system.source.strip_prefix("/dev/") {
            Some(device) if !device.contains('/') => format!(" on {device}"),
            _ => String::new(),
        },
    };
    Some(format!("{}{place}", system.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_every_name_has() {
        assert_eq!(short_name("Intel(R) Xeon(R) Processor"), "Intel Xeon");
        assert_eq!(short_name("AMD Ryzen 9 5950X 16-Core Processor"), "AMD Ryzen 9 5950X");
        assert_eq!(
            short_name("11th Gen Intel(R) Core(TM) i7-1185G7 @ 3.00GHz"),
            "11th Gen Intel Core i7-1185G7"
        );
    }

    #[test]
    fn memory_is_rounded_down_to_its_unit() {
        assert_eq!(in_units(256 << 20), "256 MiB");
        assert_eq!(in_units(24_683_660 * 1024), "23 GiB");
        assert_eq!(in_units(3 << 39), "1.5 TiB");
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_still_has_a_line() {
        assert_eq!(
            one_line(&Machine::default()),
            "unknown CPU · unknown number of CPUs · unknown memory · unknown system"
        );
    }
}
