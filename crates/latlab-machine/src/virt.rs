//! Virtual machine, WSL, container: what stands between this process and the hardware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::mounts::Mount;
use crate::notes::Notes;
use crate::os::Os;
use crate::root::Root;
use crate::text;

/// What stands between this process and the hardware.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Virtualisation {
    /// Whether this is a virtual machine; `None` when nothing tells. `false` only on positive evidence.
    pub guest: Option<bool>,
    /// The hypervisor's name: `KVM`, `Hyper-V`, `VMware`. Who runs it (a cloud, a micro VM) is in `product`.
    pub hypervisor: Option<String>,
    /// CPUID signatures as found.
    pub signatures: Vec<String>,
    /// Maker and name of the (virtual) machine as the firmware tells it.
    pub product: Option<String>,
    /// Windows Subsystem for Linux: 1 (no Linux kernel) or 2 (a virtual machine).
    pub wsl: Option<u8>,
    /// The container, if there is evidence of one. `None` is no proof that there is none.
    pub container: Option<Container>,
    /// What was found, in words.
    pub evidence: Vec<String>,
}

/// A container.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// `docker`, `podman`, `kubernetes`, `lxc`, ... or `unknown`.
    pub kind: String,
    /// What shows it.
    pub evidence: Vec<String>,
}

/// CPUID signatures (the hypervisors' own interface documents, and Linux's
/// `arch/x86/kernel/cpu/hypervisor.c`).
fn hypervisor_of(signature: &str) -> Option<&'static str> {
    Some(match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "VBoxVBoxVBox" => "VirtualBox",
        "TCGTCGTCGTCG" => "QEMU (emulated)",
        "bhyve bhyve" => "bhyve",
        "ACRNACRNACRN" => "ACRN",
        "prl hyperv" | "lrpepyh vr" => "Parallels",
        "QNXQVMBSQG" => "QNX",
        "VirtualApple" => "Rosetta",
        _ => return None,
    })
}

/// Words in a product's name that only virtual machines have.
const VIRTUAL_PRODUCTS: &[(&str, &str)] = &[
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("Virtual Machine", "Hyper-V"),
    ("Google Compute Engine", "KVM"),
    ("HVM domU", "Xen"),
    ("Apple Virtualization", "Apple Virtualization"),
    ("Parallels", "Parallels"),
    ("Bochs", "Bochs"),
    ("BHYVE", "bhyve"),
];

pub(crate) fn read(
    root: &Root,
    calls: &Calls,
    os: &Os,
    mounts: &[Mount],
    notes: &mut Notes,
) -> Virtualisation {
    let mut virt = Virtualisation { product: product(root), ..Virtualisation::default() };
    from_cpuid(&mut virt, calls);
    if virt.guest.is_none() {
        from_cpuinfo(&mut virt, root);
    }
    from_product(&mut virt);
    if let Ok(kind) = root.line("/sys/hypervisor/type") {
        virt.evidence.push(format!("/sys/hypervisor/type is {kind}"));
        // Xen's first domain has this file too, and drives the real hardware.
        if !root.text("/proc/xen/capabilities").unwrap_or_default().contains("control_d") {
            virt.guest = Some(true);
            virt.hypervisor =
                virt.hypervisor.take().or(Some(if kind == "xen" { "Xen".to_owned() } else { kind }));
        }
    }
    virt.wsl = os.kernel_release.as_deref().and_then(wsl);
    if virt.wsl == Some(2) {
        virt.guest = Some(true);
        virt.evidence.push("the kernel release is WSL2's".to_owned());
    }
    if virt.guest.is_none() {
        notes.say(
            "virtualisation.guest",
            "neither the CPU nor the firmware tells whether this is a virtual machine",
        );
    }
    virt.container = container(root, calls, mounts, &mut virt.evidence);
    virt
}

/// On x86 the hypervisor bit decides: hypervisors that hide it also hide what they do.
pub(crate) fn from_cpuid(virt: &mut Virtualisation, calls: &Calls) {
    let Some(registers) = &calls.registers else { return };
    virt.signatures = registers.hypervisor_signatures();
    let root_partition = registers.is_hyperv_root();
    virt.guest = Some(registers.under_hypervisor() && !root_partition);
    if root_partition {
        virt.evidence.push("Hyper-V runs below, and this is the system that owns the hardware".to_owned());
    } else if registers.under_hypervisor() {
        virt.evidence.push("CPUID has the hypervisor bit".to_owned());
        // The inner signature is the real one where KVM shows Hyper-V's first.
        virt.hypervisor = virt.signatures.iter().rev().find_map(|s| hypervisor_of(s)).map(str::to_owned);
    }
}

fn from_cpuinfo(virt: &mut Virtualisation, root: &Root) {
    let info = root.text("/proc/cpuinfo").unwrap_or_default();
    if let Some(flags) = text::field(&info, "flags", ':') {
        let guest = flags.split_whitespace().any(|flag| flag == "hypervisor");
        virt.guest = Some(guest);
        if guest {
            virt.evidence.push("/proc/cpuinfo has the hypervisor flag".to_owned());
        }
    }
}

/// The maker's word can show a guest, but not the lack of one.
pub(crate) fn from_product(virt: &mut Virtualisation) {
    let Some(product) = &virt.product else { return };
    let found = VIRTUAL_PRODUCTS.iter().find(|(word, _)| product.contains(word));
    if let (Some((_, hypervisor)), None | Some(true)) = (found, virt.guest) {
        virt.guest = Some(true);
        virt.evidence.push(format!("the firmware calls this {product}"));
        virt.hypervisor = virt.hypervisor.take().or_else(|| Some((*hypervisor).to_owned()));
    }
    // EC2 names its machines without a hypervisor "<type>.metal" or "<type>.metal-<size>".
    if virt.guest.is_none() && product.contains("Amazon EC2") {
        virt.guest = Some(!product.contains(".metal"));
        virt.evidence.push(format!("the firmware calls this {product}"));
    }
}

fn product(root: &Root) -> Option<String> {
    let dmi = |file: &str| root.line(&format!("/sys/class/dmi/id/{file}")).ok();
    match (dmi("sys_vendor"), dmi("product_name")) {
        (Some(vendor), Some(name)) if name.starts_with(&vendor) => Some(name),
        (Some(vendor), Some(name)) => Some(format!("{vendor} {name}")),
        (vendor, name) => vendor.or(name),
    }
    .or_else(|| root.line("/sys/firmware/devicetree/base/model").ok())
    .or_else(|| root.line("/proc/device-tree/model").ok())
}

/// WSL1 calls itself `4.4.0-19041-Microsoft`, WSL2 `5.15.153.1-microsoft-standard-WSL2`.
fn wsl(kernel_release: &str) -> Option<u8> {
    let release = kernel_release.to_lowercase();
    if release.contains("microsoft-standard") || release.contains("wsl2") {
        Some(2)
    } else if release.ends_with("-microsoft") {
        Some(1)
    } else {
        None
    }
}

/// Container engines lay the root over an image, and mount their own name files into it. A disk image made
/// from a container's image has neither, but still has the engine's mark.
fn built_by_an_engine(mounts: &[Mount]) -> bool {
    mounts.iter().any(|mount| match mount.point.as_str() {
        "/" => matches!(mount.kind.as_str(), "overlay" | "aufs" | "fuse.fuse-overlayfs"),
        "/etc/hosts" | "/etc/resolv.conf" | "/etc/hostname" => true,
        _ => false,
    })
}

fn container(root: &Root, calls: &Calls, mounts: &[Mount], remarks: &mut Vec<String>) -> Option<Container> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for (mark, kind) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if root.exists(mark) && built_by_an_engine(mounts) {
            found.push((kind, format!("{mark} exists")));
        } else if root.exists(mark) {
            remarks.push(format!(
                "{mark} exists, but no container engine mounted this root: it was made from an image"
            ));
        }
    }
    if root.exists("/var/run/secrets/kubernetes.io") {
        found.push(("kubernetes", "/var/run/secrets/kubernetes.io exists".to_owned()));
    }
    let reported = root.line("/run/systemd/container").ok();
    if let Some(kind) = &reported {
        found.push((kind, format!("/run/systemd/container says {kind}")));
    }
    if let Some(kind) = &calls.container {
        found.push((kind, format!("the environment says {kind}")));
    }
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    let own_path =
        |word: &str| groups.lines().any(|line| line.rsplit(':').next().unwrap_or_default().contains(word));
    for (word, kind) in [
        ("kubepods", "kubernetes"),
        ("/docker", "docker"),
        ("libpod", "podman"),
        ("/lxc", "lxc"),
        ("containerd", "containerd"),
    ] {
        if own_path(word) {
            found.push((kind, format!("the control group's path has {word}")));
        }
    }
    // Orchestrator before runtime: it set the limits.
    let kind = found
        .iter()
        .find(|(kind, _)| *kind == "kubernetes")
        .or_else(|| found.first())
        .map(|(kind, _)| text::clean(kind));
    let mut evidence: Vec<String> = found.into_iter().map(|(_, evidence)| evidence).collect();
    let status = root.text("/proc/self/status").unwrap_or_default();
    if text::field(&status, "NSpid", ':').is_some_and(|ids| ids.split_whitespace().count() > 1) {
        evidence.push("this process has another id outside".to_owned());
    }
    match kind {
        Some(kind) => Some(Container { kind, evidence }),
        None if evidence.is_empty() => None,
        None => Some(Container { kind: "unknown".to_owned(), evidence }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest_of(product: &str, guest: Option<bool>) -> Option<bool> {
        let mut virt =
            Virtualisation { product: Some(product.to_owned()), guest, ..Virtualisation::default() };
        from_product(&mut virt);
        virt.guest
    }

    #[test]
    fn the_kernel_release_tells_wsl() {
        assert_eq!(wsl("5.15.153.1-microsoft-standard-WSL2"), Some(2));
        assert_eq!(wsl("4.4.0-19041-Microsoft"), Some(1));
        assert_eq!(wsl("6.1.0-18-amd64"), None);
    }

    #[test]
    fn a_product_name_shows_a_guest_but_never_its_absence() {
        assert_eq!(guest_of("QEMU Standard PC", None), Some(true));
        assert_eq!(guest_of("LENOVO 20XW", None), None);
        assert_eq!(guest_of("Microsoft Corporation Surface Laptop", None), None);
    }

    #[test]
    fn metal_at_amazon_is_no_guest() {
        assert_eq!(guest_of("Amazon EC2 c7g.metal", None), Some(false));
        assert_eq!(guest_of("Amazon EC2 c7g.large", None), Some(true));
    }
}
