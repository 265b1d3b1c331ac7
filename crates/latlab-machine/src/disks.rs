//! Block devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The kernel's rotational flag. Not to be believed: virtual disks on flash say `true`, RAID controllers with spinning
    /// disks say `false`. Measure instead.
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
    /// Read-ahead window, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Requests that may wait.
    pub queue_requests: Option<u32>,
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
    names
        .iter()
        .map(|name| disk(root, name))
        .filter(|disk| disk.size_bytes != Some(0))
        .collect()
}

fn disk(root: &Root, name: &str) -> Disk {
    let folder = format!("{FOLDER}/{name}");
    let line = |file: &str| root.line(&format!("{folder}/{file}")).ok();
    let number = |file: &str| root.number::<u64>(&format!("{folder}/{file}")).ok();
    let flag = |file: &str| number(file).map(|flag| flag != 0);
    let kib = |file: &str| number(file).and_then(|kib| kib.checked_mul(1024));
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
        read_ahead_bytes: kib("queue/read_ahead_kb"),
        queue_requests: root.number(&format!("{folder}/queue/nr_requests")).ok(),
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
        made_of: root
            .names(&format!("{folder}/slaves"))
            .iter()
            .map(|name| text::clean(name))
            .collect(),
        mapper_name: line("dm/name"),
    }
}

fn size(root: &Root, folder: &str) -> Option<u64> {
    root.number::<u64>(&format!("{folder}/size"))
        .ok()?
        .checked_mul(SECTOR_BYTES)
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
