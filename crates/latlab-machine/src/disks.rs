//! Block devices.

use latlab_stats::count::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interrupts::Interrupts;
use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// A block device and how the kernel queues for it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name: `nvme0n1`, `vda`.
    pub name: String,
    /// `major:minor`.
    pub device: Option<String>,
    /// Model, as the device tells it.
    pub model: Option<String>,
    /// Size, bytes.
    pub size_bytes: Option<u64>,
    /// The kernel's rotational flag. Not to be believed: virtual disks on flash say
    /// `true`, RAID controllers with spinning disks say `false`. Measure instead.
    pub rotational_flag: Option<bool>,
    /// Whether it can be taken out.
    pub removable: Option<bool>,
    /// Whether it is write-protected.
    pub read_only: Option<bool>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `write back` (a cache that needs flushes) or `write through`.
    pub write_cache: Option<String>,
    /// Smallest request, bytes.
    pub logical_block_bytes: Option<u64>,
    /// Smallest write without reading first, bytes.
    pub physical_block_bytes: Option<u64>,
    /// Preferred request size, bytes; 0 or `None` when the device names none.
    pub optimal_io_bytes: Option<u64>,
    /// Largest request that the kernel sends, bytes.
    pub max_request_bytes: Option<u64>,
    /// The link that it hangs on, in the kernel's words: `SATA 6.0 Gbps`, `PCIe 16.0 GT/s PCIe x4`,
    /// `USB 5000 Mbit/s`. `None` where there is none to be read: virtual disks have none.
    pub link: Option<String>,
    /// Most bytes a second that the link carries after its own coding; no figure of the disk can be higher.
    pub link_bytes_per_s: Option<u64>,
    /// Read-ahead window, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Requests that may wait.
    pub queue_requests: Option<u32>,
    /// CPUs to which the kernel routes its interrupts, or those of the disks that it is made of; empty when
    /// unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupt_cpus: Vec<u32>,
    /// Partitions.
    pub partitions: Vec<Partition>,
    /// Names of devices that this one is made of (device mapper, RAID).
    pub made_of: Vec<String>,
    /// Name that the device mapper gives. Private.
    #[schemars(extend("private" = true))]
    pub mapper_name: Option<String>,
}

/// A partition.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Kernel name.
    pub name: String,
    /// `major:minor`.
    pub device: Option<String>,
    /// Size, bytes.
    pub size_bytes: Option<u64>,
}

const FOLDER: &str = "/sys/block";
/// `size` counts these whatever the device's blocks are.
const SECTOR_BYTES: u64 = 512;

/// All devices that have a size.
pub(crate) fn read(root: &Root, notes: &mut Notes) -> Vec<Disk> {
    let names = root.names(FOLDER);
    if names.is_empty() {
        notes.say("disks", format!("{FOLDER} lists none"));
    }
    let interrupts = Interrupts::read(root);
    names.iter().map(|name| disk(root, name, &interrupts)).filter(|disk| disk.size_bytes != Some(0)).collect()
}

fn disk(root: &Root, name: &str, interrupts: &Interrupts) -> Disk {
    let folder = format!("{FOLDER}/{name}");
    let line = |file: &str| root.line(&format!("{folder}/{file}")).ok();
    let number = |file: &str| root.number::<u64>(&format!("{folder}/{file}")).ok();
    let flag = |file: &str| number(file).map(|flag| flag != 0);
    let kib = |file: &str| number(file).and_then(|kib| kib.checked_mul(1024));
    let hangs_on = link(root, name);
    Disk {
        name: text::clean(name),
        device: line("dev"),
        model: line("device/model").or_else(|| line("device/name")),
        size_bytes: size(root, &folder),
        rotational_flag: flag("queue/rotational"),
        removable: flag("removable"),
        read_only: flag("ro"),
        // A device without a choice shows "none" bare.
        scheduler: line("queue/scheduler").map(|choice| text::chosen(&choice).unwrap_or(choice)),
        write_cache: line("queue/write_cache"),
        logical_block_bytes: number("queue/logical_block_size"),
        physical_block_bytes: number("queue/physical_block_size"),
        optimal_io_bytes: number("queue/optimal_io_size"),
        max_request_bytes: kib("queue/max_sectors_kb"),
        link_bytes_per_s: hangs_on.as_ref().map(|(_, bytes_per_s)| *bytes_per_s),
        link: hangs_on.map(|(words, _)| words),
        read_ahead_bytes: kib("queue/read_ahead_kb"),
        queue_requests: root.number(&format!("{folder}/queue/nr_requests")).ok(),
        interrupt_cpus: interrupts.cpus(root, &folder),
        partitions: root
            .names(&folder)
            .into_iter()
            .filter(|part| root.exists(&format!("{folder}/{part}/partition")))
            .map(|part| Partition {
                device: line(&format!("{part}/dev")),
                size_bytes: size(root, &format!("{folder}/{part}")),
                name: text::clean(&part),
            })
            .collect(),
        made_of: root.names(&format!("{folder}/slaves")).iter().map(|name| text::clean(name)).collect(),
        mapper_name: line("dm/name"),
    }
}

/// What the device hangs on, and how many bytes a second that carries.
fn link(root: &Root, name: &str) -> Option<(String, u64)> {
    let folder = format!("{FOLDER}/{name}");
    // NVMe: the namespace's controller, and the PCI function behind it.
    for function in ["device/device", "device"] {
        let line = |file: &str| root.line(&format!("{folder}/{function}/{file}")).ok();
        if let (Some(speed), Some(width)) = (line("current_link_speed"), line("current_link_width"))
            && let Some(bytes_per_s) = pcie_bytes_per_s(&speed, &width)
        {
            return Some((format!("PCIe {speed} x{width}"), bytes_per_s));
        }
    }
    let path = root.target(&folder)?;
    let parts: Vec<&str> = path.split('/').collect();
    // .../ata3/host2/target2:0:0/2:0:0:0/block/sda: the link has its port's number.
    if let Some(port) = parts.iter().find_map(|part| part.strip_prefix("ata")?.parse::<u32>().ok()) {
        let speed = root.line(&format!("/sys/class/ata_link/link{port}/sata_spd")).ok()?;
        return Some((format!("SATA {speed}"), sata_bytes_per_s(&speed)?));
    }
    // .../usb2/2-1/2-1:1.0/host4/...: the device is the last folder with a bus and a port.
    let device = parts.iter().rfind(|part| {
        part.split_once('-')
            .is_some_and(|(bus, port)| bus.parse::<u32>().is_ok() && !port.is_empty() && !port.contains(':'))
    })?;
    let speed = root.line(&format!("/sys/bus/usb/devices/{device}/speed")).ok()?;
    Some((format!("USB {speed} Mbit/s"), usb_bytes_per_s(&speed)?))
}

/// `16.0 GT/s PCIe` and `4`: 8/10 of the bits are data below 8 GT/s, 128/130 from there on.
fn pcie_bytes_per_s(speed: &str, width: &str) -> Option<u64> {
    let transfers: f64 = speed.split_ascii_whitespace().next()?.parse().ok()?;
    let lanes: u32 = width.trim().parse().ok().filter(|lanes| (1..=32).contains(lanes))?;
    let coding = if transfers < 7.0 { 0.8 } else { 128.0 / 130.0 };
    whole(transfers * 1e9 * coding / 8.0 * f64::from(lanes))
}

/// `6.0 Gbps`: 8 of 10 bits are data.
fn sata_bytes_per_s(speed: &str) -> Option<u64> {
    let (number, unit) = speed.split_once(' ')?;
    let gigabits: f64 = number.parse().ok().filter(|_| unit == "Gbps")?;
    whole(gigabits * 1e9 * 0.8 / 8.0)
}

/// `5000`, in Mbit/s: 8 of 10 bits are data at 5 Gbit/s, 128 of 132 beyond; below, all are counted.
fn usb_bytes_per_s(speed: &str) -> Option<u64> {
    let megabits: f64 = speed.parse().ok()?;
    let coding = match megabits {
        below if below < 5_000.0 => 1.0,
        first if first < 10_000.0 => 0.8,
        _ => 128.0 / 132.0,
    };
    whole(megabits * 1e6 * coding / 8.0)
}

fn whole(bytes_per_s: f64) -> Option<u64> {
    (1e3..1e15).contains(&bytes_per_s).then(|| nearest(bytes_per_s))
}

fn size(root: &Root, folder: &str) -> Option<u64> {
    root.number::<u64>(&format!("{folder}/size")).ok()?.checked_mul(SECTOR_BYTES)
}

/// The device that holds a file system, by `major:minor` or by the path of the mount's source.
pub(crate) fn holding(disks: &[Disk], device: &str, source: &str) -> Option<String> {
    let name = source.strip_prefix("/dev/").unwrap_or_default();
    let is = |number: &Option<String>, known: &str| number.as_deref() == Some(device) || known == name;
    disks
        .iter()
        .find(|disk| {
            is(&disk.device, &disk.name)
                || disk.partitions.iter().any(|part| is(&part.device, &part.name))
                || disk
                    .mapper_name
                    .as_deref()
                    .is_some_and(|mapper| name.strip_prefix("mapper/") == Some(mapper))
        })
        .map(|disk| disk.name.clone())
}

/// The numbers of a disk and of those that it is made of, as `major:minor`.
pub(crate) fn below<'a>(disks: &'a [Disk], name: Option<&str>) -> Vec<&'a str> {
    let Some(own) = disks.iter().find(|disk| Some(disk.name.as_str()) == name) else { return Vec::new() };
    let made_of = disks.iter().filter(|disk| own.made_of.contains(&disk.name));
    made_of.chain([own]).filter_map(|disk| disk.device.as_deref()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_links_bytes_are_what_its_coding_leaves() {
        // As they are printed on boxes: 600 MB/s, 3.94 GB/s, 985 MB/s, 500 MB/s, 60 MB/s.
        assert_eq!(sata_bytes_per_s("6.0 Gbps"), Some(600_000_000));
        assert_eq!(pcie_bytes_per_s("8.0 GT/s PCIe", "4"), Some(3_938_461_538));
        assert_eq!(pcie_bytes_per_s("5.0 GT/s PCIe", "2"), Some(1_000_000_000));
        assert_eq!(usb_bytes_per_s("5000"), Some(500_000_000));
        assert_eq!(usb_bytes_per_s("480"), Some(60_000_000));
    }

    #[test]
    fn words_that_are_no_speed_are_none() {
        assert_eq!(sata_bytes_per_s("<unknown>"), None);
        assert_eq!(pcie_bytes_per_s("Unknown", "4"), None);
        assert_eq!(pcie_bytes_per_s("16.0 GT/s PCIe", "0"), None);
        assert_eq!(pcie_bytes_per_s("1e300 GT/s", "4"), None);
        assert_eq!(usb_bytes_per_s("fast"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_sata_disks_link_is_that_of_its_port_and_a_virtual_disk_has_none() {
        let tree = crate::root::tests::Tree::new("links");
        let sda = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";
        let vda = "sys/devices/pci0000:00/virtio1/block/vda";
        tree.file(&format!("{sda}/size"), "8\n");
        tree.file("sys/class/ata_link/link3/sata_spd", "6.0 Gbps\n");
        tree.file(&format!("{vda}/size"), "8\n");
        tree.link("sys/block/sda", sda);
        tree.link("sys/block/vda", vda);
        let disks = read(&tree.root(), &mut Notes::default());
        let of = |name: &str| disks.iter().find(|disk| disk.name == name).expect("listed");
        assert_eq!(of("sda").link.as_deref(), Some("SATA 6.0 Gbps"));
        assert_eq!(of("sda").link_bytes_per_s, Some(600_000_000));
        assert_eq!((&of("vda").link, of("vda").link_bytes_per_s), (&None, None));
    }
}
