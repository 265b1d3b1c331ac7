//! NUMA nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// One NUMA node.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// Node number.
    pub id: u32,
    /// Its logical CPUs; a node of memory alone has none.
    pub cpus: Vec<u32>,
    /// Its memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Distance to each node in the order of node numbers, as the firmware says it (10 = itself).
    pub distances: Vec<u32>,
}

pub(crate) fn read(root: &Root, total_bytes: Option<u64>, notes: &mut Notes) -> Vec<NumaNode> {
    const FOLDER: &str = "/sys/devices/system/node";
    let found: Vec<NumaNode> = root
        .numbered(FOLDER, "node")
        .into_iter()
        .map(|id| {
            let content = |file: &str| root.text(&format!("{FOLDER}/node{id}/{file}")).unwrap_or_default();
            NumaNode {
                id,
                cpus: text::cpu_list(&content("cpulist")).unwrap_or_default(),
                memory_bytes: text::kib_field(&content("meminfo"), &format!("Node {id} MemTotal")),
                distances: content("distance")
                    .split_whitespace()
                    .filter_map(|word| word.parse().ok())
                    .collect(),
            }
        })
        .collect();
    if found.is_empty() {
        notes.say("numa", format!("{FOLDER} lists no node (the kernel may be built without NUMA)"));
    }
    let sum: Option<u64> = found.iter().map(|node| node.memory_bytes).sum();
    if let (Some(sum), Some(total)) = (sum, total_bytes)
        && !found.is_empty()
        && sum.abs_diff(total) > total / 10
    {
        // Seen in a guest that takes its memory into use as it goes.
        notes.say(
            "numa.memory_bytes",
            format!("the nodes' memory adds up to {sum} bytes, /proc/meminfo says {total}"),
        );
    }
    found
}
