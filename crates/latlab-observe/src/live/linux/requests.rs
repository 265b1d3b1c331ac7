//! What block devices were asked for and when they had done it, from the kernel's records of every CPU. Pure.

use std::collections::{HashMap, HashSet};

use latlab_perf::{Record, What};

use super::roles::Role;

/// When requests were with their devices, by the kernel's clock: handed over, ended. Only of devices that the
/// observed thread handed a request to itself, now or before (`devices`); a flush is handed over by a thread
/// of the kernel's.
pub(crate) fn at_devices(
    mut records: Vec<Record<'_>>,
    roles: &HashMap<u64, Role>,
    tid: u32,
    devices: &mut HashSet<u32>,
) -> Vec<(u64, u64)> {
    records.sort_by_key(|record| record.time_ns);
    let mut handed_over: HashMap<(u32, u64), u64> = HashMap::new();
    let mut found = Vec::new();
    for record in records {
        let What::Sample(sample) = record.what else { continue };
        match roles.get(&record.event) {
            Some(Role::HandedOver(fields)) => {
                let Some(request) = fields.of(sample.raw()) else { continue };
                if record.tid == tid {
                    devices.insert(request.0);
                }
                handed_over.insert(request, record.time_ns);
            }
            Some(Role::Ended(fields)) => {
                let request = fields.of(sample.raw());
                let begun = request.and_then(|request| Some((request.0, handed_over.remove(&request)?)));
                found.extend(begun.map(|(device, begun)| (device, begun, record.time_ns)));
            }
            _ => {}
        }
    }
    found.retain(|(device, _, _)| devices.contains(device));
    found.into_iter().map(|(_, begun, ended)| (begun, ended)).collect()
}

#[cfg(test)]
mod tests {
    use latlab_perf::Sample;

    use super::*;
    use crate::live::system::roles::RequestFields;

    const ISSUE: u64 = 1;
    const COMPLETE: u64 = 2;
    const TID: u32 = 77;
    const KERNEL: u32 = 8;
    const FIELDS: RequestFields = RequestFields { device: 8, sector: 16 };

    /// Event, thread, time, device, first sector.
    type Reported = (u64, u32, u64, u32, u64);

    fn raw((_, _, _, device, sector): &Reported) -> Vec<u8> {
        [&[0; 8][..], &device.to_ne_bytes(), &[0; 4], &sector.to_ne_bytes()].concat()
    }

    fn found(reported: &[Reported], bytes: usize, devices: &mut HashSet<u32>) -> Vec<(u64, u64)> {
        let roles = HashMap::from([(ISSUE, Role::HandedOver(FIELDS)), (COMPLETE, Role::Ended(FIELDS))]);
        let raw: Vec<Vec<u8>> = reported.iter().map(raw).collect();
        let reported = reported.iter().zip(&raw).map(|(&(event, tid, time_ns, _, _), raw)| Record {
            time_ns,
            pid: 1,
            tid,
            event,
            what: What::Sample(Sample::Raw(&raw[..bytes])),
        });
        at_devices(reported.collect(), &roles, TID, devices)
    }

    #[test]
    fn a_write_and_the_flush_that_a_thread_of_the_kernel_sends_are_with_the_device_and_other_devices_are_nobodys()
     {
        let reported = [
            (COMPLETE, 0, 160, 1, u64::MAX),
            (ISSUE, TID, 10, 1, 800),
            (ISSUE, 5, 20, 2, 800),
            (COMPLETE, 0, 60, 1, 800),
            (COMPLETE, 0, 70, 2, 800),
            (ISSUE, KERNEL, 100, 1, 0),
            // Was handed over before anybody looked.
            (COMPLETE, 0, 170, 1, 4_000),
            // Has not ended.
            (ISSUE, TID, 180, 1, 900),
        ];
        assert_eq!(found(&reported, 24, &mut HashSet::new()), [(10, 60), (100, 160)]);
    }

    #[test]
    fn a_device_once_used_stays_known_and_none_is_guessed() {
        let flush = [(ISSUE, KERNEL, 100, 1, 0), (COMPLETE, 0, 160, 1, 0)];
        assert_eq!(found(&flush, 24, &mut HashSet::new()), []);
        assert_eq!(found(&flush, 24, &mut HashSet::from([1])), [(100, 160)]);
        assert_eq!(found(&flush, 9, &mut HashSet::from([1])), [], "the records are damaged");
    }
}
