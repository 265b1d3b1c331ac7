//! What block devices were asked for and when they had done it, from the kernel's records of every CPU. Pure.

use std::collections::{HashMap, HashSet};

use crate::records::{Role, Stamp, What, u32_at, u64_at};

/// Offsets of the fields that say which request a record is about, in the raw data of its tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) device: usize,
    pub(crate) sector: usize,
}

impl Which {
    fn of(self, raw: &[u8]) -> Option<(u32, u64)> {
        let sector = u64_at(raw, self.sector)?;
        // A flush is about no sector: 0 where it is handed over, the largest number where it has ended.
        let sector = if sector == u64::MAX { 0 } else { sector };
        Some((u32_at(raw, self.device)?, sector))
    }
}

/// When requests were with their devices, by the kernel's clock: handed over, ended. Only of devices that the observed thread handed a request to
/// itself, now or before (`devices`); a flush is handed over by a thread of the kernel's.
pub(crate) fn at_devices(
    mut stamps: Vec<Stamp>,
    roles: &HashMap<u64, Role>,
    tid: u32,
    devices: &mut HashSet<u32>,
) -> Vec<(u64, u64)> {
    stamps.sort_by_key(|stamp| stamp.time_ns);
    let mut handed_over: HashMap<(u32, u64), u64> = HashMap::new();
    let mut found = Vec::new();
    for stamp in &stamps {
        let What::Sample(raw) = &stamp.what else { continue };
        match roles.get(&stamp.event) {
            Some(Role::HandedOver(which)) => {
                let Some(request) = which.of(raw) else { continue };
                if stamp.tid == tid {
                    devices.insert(request.0);
                }
                handed_over.insert(request, stamp.time_ns);
            }
            Some(Role::Ended(which)) => {
                let request = which.of(raw);
                let begun = request.and_then(|request| Some((request.0, handed_over.remove(&request)?)));
                found.extend(begun.map(|(device, begun)| (device, begun, stamp.time_ns)));
            }
            _ => {}
        }
    }
    found.retain(|(device, _, _)| devices.contains(device));
    found.into_iter().map(|(_, begun, ended)| (begun, ended)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUE: u64 = 1;
    const COMPLETE: u64 = 2;
    const TID: u32 = 77;
    const KERNEL: u32 = 8;
    const WHICH: Which = Which { device: 8, sector: 16 };

    fn stamp(event: u64, tid: u32, time_ns: u64, (device, sector): (u32, u64)) -> Stamp {
        let raw = [&[0; 8][..], &device.to_ne_bytes(), &[0; 4], &sector.to_ne_bytes()];
        Stamp { time_ns, tid, event, what: What::Sample(raw.concat()) }
    }

    fn found(stamps: &[Stamp], devices: &mut HashSet<u32>) -> Vec<(u64, u64)> {
        let roles = HashMap::from([(ISSUE, Role::HandedOver(WHICH)), (COMPLETE, Role::Ended(WHICH))]);
        at_devices(stamps.to_vec(), &roles, TID, devices)
    }

    #[test]
    fn a_write_and_the_flush_that_a_thread_of_the_kernel_sends_are_with_the_device_and_other_devices_are_nobodys()
     {
        let stamps = [
            stamp(COMPLETE, 0, 160, (1, u64::MAX)),
            stamp(ISSUE, TID, 10, (1, 800)),
            stamp(ISSUE, 5, 20, (2, 800)),
            stamp(COMPLETE, 0, 60, (1, 800)),
            stamp(COMPLETE, 0, 70, (2, 800)),
            stamp(ISSUE, KERNEL, 100, (1, 0)),
            // Was handed over before anybody looked.
            stamp(COMPLETE, 0, 170, (1, 4_000)),
            // Has not ended.
            stamp(ISSUE, TID, 180, (1, 900)),
        ];
        assert_eq!(found(&stamps, &mut HashSet::new()), [(10, 60), (100, 160)]);
    }

    #[test]
    fn a_device_once_used_stays_known_and_none_is_guessed() {
        let flush = [stamp(ISSUE, KERNEL, 100, (1, 0)), stamp(COMPLETE, 0, 160, (1, 0))];
        assert_eq!(found(&flush, &mut HashSet::new()), []);
        assert_eq!(found(&flush, &mut HashSet::from([1])), [(100, 160)]);
        let mut damaged = flush.to_vec();
        damaged[0].what = What::Sample(vec![0; 9]);
        assert_eq!(found(&damaged, &mut HashSet::from([1])), []);
    }
}
