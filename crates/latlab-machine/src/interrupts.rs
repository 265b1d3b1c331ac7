//! Which CPUs handle a device's interrupts.

use std::collections::HashMap;

use crate::root::Root;
use crate::text;

/// A device has vectors that hardly ever come (its settings changed, its administration queue): fewer than
/// one in so many of its interrupts.
const RARE: u64 = 100;
/// Folders between a block device and the function of the bus that interrupts: SCSI has five.
const MOST_UP: usize = 8;
/// Block devices on top of each other: a file system on a volume on an encrypted RAID has three.
const MOST_DOWN: usize = 8;

/// How often each interrupt came since the system was started.
pub(crate) struct Interrupts(HashMap<u32, u64>);

impl Interrupts {
    pub(crate) fn read(root: &Root) -> Self {
        Self::of(&root.text("/proc/interrupts").unwrap_or_default())
    }

    /// `36:  0  2538349  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0`, below a line with a word for each
    /// CPU.
    fn of(table: &str) -> Self {
        let mut lines = table.lines();
        let cpus = lines.next().unwrap_or_default().split_whitespace().count();
        let counts = lines.filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let counts = rest.split_whitespace().take(cpus);
            let sum = counts.map_while(|word| word.parse::<u64>().ok());
            Some((number.trim().parse().ok()?, sum.fold(0, u64::saturating_add)))
        });
        Self(counts.collect())
    }

    /// The CPUs to which the kernel routes the interrupts of a block device, or of those that it is made of;
    /// ascending. Empty when unknown.
    pub(crate) fn cpus(&self, root: &Root, folder: &str) -> Vec<u32> {
        let numbers = numbers(root, folder, MOST_DOWN);
        let count = |number: &u32| self.0.get(number).copied().unwrap_or(0);
        let all = numbers.iter().map(count).fold(0, u64::saturating_add);
        let usual =
            numbers.iter().filter(|number| count(number) > 0 && count(number).saturating_mul(RARE) >= all);
        let routes = usual.map(|number| {
            let file = format!("/proc/irq/{number}/effective_affinity_list");
            root.read_as(&file, text::cpu_list)
        });
        // One that cannot be read may be handled anywhere.
        let Ok(routes) = routes.collect::<Result<Vec<_>, _>>() else { return Vec::new() };
        let mut cpus: Vec<u32> = routes.into_iter().flatten().collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

/// The numbers of the interrupts of the bus function behind a block device.
fn numbers(root: &Root, folder: &str, most_down: usize) -> Vec<u32> {
    let below = root.names(&format!("{folder}/slaves"));
    if !below.is_empty() && most_down > 0 {
        let of = below.iter().flat_map(|name| {
            let part = format!("{folder}/slaves/{name}");
            let whole = if root.exists(&format!("{part}/partition")) { "/.." } else { "" };
            numbers(root, &format!("{part}{whole}"), most_down - 1)
        });
        return of.collect();
    }
    let mut place = format!("{folder}/device");
    for _ in 0..MOST_UP {
        // Every PCI function has the file; its number is that of a line which it shares, and 0 is none.
        if let Ok(line) = root.number::<u32>(&format!("{place}/irq")) {
            let own = root.numbered(&format!("{place}/msi_irqs"), "");
            return if own.is_empty() && line > 0 { vec![line] } else { own };
        }
        place.push_str("/..");
    }
    Vec::new()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::root::tests::Tree;

    const TABLE: &str = "\
           CPU0       CPU1
 35:          0          1  PCI-MSIX-0000:00:02.0   0-edge  virtio1-config
 36:          7    2538349  PCI-MSIX-0000:00:02.0   1-edge  virtio1-req.0
 41:       5249       5000  PCI-MSIX-0000:00:04.0   1-edge  virtio3-rx
NMI:          0          0  Non-maskable interrupts
ERR:          0
";

    /// `vda` on a function with these interrupts, each with where it is routed.
    fn planted(name: &str, routes: &[(u32, Option<&str>)]) -> Tree {
        let tree = Tree::new(&format!("interrupts-{name}"));
        let function = "sys/devices/pci0000:00/0000:00:02.0";
        tree.file(&format!("{function}/irq"), "11\n");
        tree.file(&format!("{function}/virtio1/block/vda/vda1/partition"), "1\n");
        tree.link(&format!("{function}/virtio1/block/vda/device"), &format!("{function}/virtio1"));
        tree.link("sys/block/vda", &format!("{function}/virtio1/block/vda"));
        for (number, route) in routes {
            tree.file(&format!("{function}/msi_irqs/{number}"), "msix\n");
            if let Some(route) = route {
                tree.file(&format!("proc/irq/{number}/effective_affinity_list"), route);
            }
        }
        tree
    }

    fn cpus(tree: &Tree, table: &str, disk: &str) -> Vec<u32> {
        Interrupts::of(table).cpus(&tree.root(), &format!("/sys/block/{disk}"))
    }

    #[test]
    fn a_disks_interrupts_are_handled_where_those_that_come_are_routed() {
        let tree = planted("routed", &[(35, Some("0\n")), (36, Some("1\n"))]);
        assert_eq!(cpus(&tree, TABLE, "vda"), [1]);
    }

    #[test]
    fn a_volume_has_the_interrupts_of_the_disk_below_its_partition() {
        let tree = planted("volume", &[(36, Some("1\n")), (41, Some("0,2-3\n"))]);
        let part = "sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/vda1";
        tree.link("sys/block/dm-0/slaves/vda1", part);
        tree.link("sys/block/dm-1/slaves/dm-0", "sys/block/dm-0");
        assert_eq!(cpus(&tree, &TABLE.replace("2538349", "5000"), "dm-1"), [0, 1, 2, 3]);
    }

    #[test]
    fn a_function_without_vectors_has_its_line() {
        let tree = planted("line", &[]);
        tree.file("proc/irq/11/effective_affinity_list", "0\n");
        assert_eq!(cpus(&tree, "CPU0\n11: 500 IO-APIC 11-fasteoi ahci\n", "vda"), [0]);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let tree = planted("unknown", &[(36, Some("1\n")), (41, None)]);
        let none: [u32; 0] = [];
        assert_eq!(cpus(&tree, TABLE, "vda"), [1], "41 hardly ever comes");
        assert_eq!(cpus(&tree, &TABLE.replace("2538349", "5000"), "vda"), none, "41 may go anywhere");
        assert_eq!(cpus(&tree, "", "vda"), none, "no /proc/interrupts");
        assert_eq!(cpus(&tree, TABLE, "loop0"), none, "no such disk");
    }
}
