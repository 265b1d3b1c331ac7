//! What the device itself counted: bytes that it says it moved, beside those that this process asked for.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use latlab_record::Check;
use latlab_storage::{DeviceCounters, DeviceSource, Direction, TIME_STEP_NS};

use crate::disk::words::{DevicePart, check};

/// Bytes are counted when a transfer completes, which is before its waiter wakes on the kernels that were
/// looked at; a device whose count comes later is asked again so often, with a pause each time.
const ASKED_AGAIN: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// The device under a file, or why it cannot be asked.
#[derive(Clone, Debug)]
pub(crate) struct Device(Result<Arc<DeviceSource>, String>);

impl Device {
    /// The partition or whole device that holds a file.
    pub(crate) fn under(file: impl AsFd) -> Self {
        let facts =
            rustix::fs::fstat(file).map_err(|errno| format!("the file does not say where it lies: {errno}"));
        let source = facts.and_then(|facts| DeviceSource::of(facts.st_dev));
        Self(source.map(Arc::new))
    }

    /// Counters that a test plants.
    #[cfg(test)]
    pub(crate) fn planted(source: Result<DeviceSource, String>) -> Self {
        Self(source.map(Arc::new))
    }

    /// Its kernel name; `None` where there is none to ask.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_ref().ok().map(|source| source.name())
    }

    fn read(&self) -> Option<DeviceCounters> {
        self.0.as_ref().ok()?.read()
    }
}

/// What it counted while blocks of samples were taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceCount {
    before: Option<DeviceCounters>,
    asked: u64,
    counted: u64,
    /// The first block of samples for which it counted too little: what others moved in one must not make up
    /// for what is missing in another.
    short: Option<String>,
    time: DeviceTime,
}

/// Which of a device's requests are those of the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A read for each, or a write.
    One(Direction),
    /// A read, then a write.
    ReadThenWrite,
    /// Writes, one after the other, and a flush.
    Durable,
}

/// How long the device had the requests that it counted, by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceTime {
    blocks: u64,
    pub(crate) sum: Option<DeviceCounters>,
}

/// Others used the device as well when it moved so many times the bytes.
const OTHERS: f64 = 1.1;
/// A request an operation, within what the ends of blocks change.
const ONE_EACH: std::ops::RangeInclusive<f64> = 0.95..=1.1;
/// Steps of the counter may make this much of the time, at most.
const COARSE: f64 = 0.1;

impl DeviceTime {
    pub(crate) fn add(&mut self, since: DeviceCounters) {
        self.sum = Some(self.sum.map_or(since, |sum| sum.and(since)));
        self.blocks += 1;
    }

    /// How much of the mean time of `operations`, which together took `ns` and were to move `bytes`, a
    /// request of theirs was with the device and its queue; or why the system does not say.
    pub(crate) fn of(&self, asked: Asked, operations: u64, ns: f64, bytes: u64) -> DevicePart {
        self.reported(asked, operations, ns, bytes)
            .unwrap_or_else(|not_reported| DevicePart::NotReported { not_reported })
    }

    fn reported(&self, asked: Asked, operations: u64, ns: f64, bytes: u64) -> Result<DevicePart, String> {
        let Some(sum) = self.sum.filter(|_| operations > 0) else {
            return Err("no counter here has the time of the device's requests".to_owned());
        };
        let reads = [sum.reads, sum.read_ns, sum.read_bytes];
        let writes = [sum.writes, sum.write_ns, sum.write_bytes];
        let kinds = match asked {
            Asked::One(Direction::Read) => vec![reads],
            // A flush is counted as a write of no bytes; that the kernel counts it among the flushes too adds
            // nothing.
            Asked::One(Direction::Write) | Asked::Durable => vec![writes],
            Asked::ReadThenWrite => vec![reads, writes],
        };
        let sum = |place: usize| kinds.iter().map(|kind| kind[place]).sum::<u64>() as f64;
        let (requests, with_device_ns, moved) = (sum(0), sum(1), sum(2));
        if moved > OTHERS * bytes as f64 {
            let times = moved / bytes.max(1) as f64;
            return Err(format!("others used the device: it moved {times:.1} times the bytes"));
        }
        let each = |sum: f64| sum / operations as f64;
        if matches!(asked, Asked::One(_)) && !ONE_EACH.contains(&each(requests)) {
            let requests = each(requests);
            return Err(format!(
                "an operation was {requests:.2} requests, whose times overlap or are shared"
            ));
        }
        if with_device_ns > ns {
            let why = "its requests took longer than the operations: their times overlap, or are others' too";
            return Err(why.to_owned());
        }
        // A counter in whole steps is up to one behind at either end of a block: the difference has a
        // variance of a sixth.
        let steps = (self.blocks as f64 * kinds.len() as f64 / 6.0).sqrt();
        let error_ns = 2.0 * steps * TIME_STEP_NS as f64;
        if error_ns > COARSE * with_device_ns {
            let why = "the device counts in milliseconds, and there are too few operations for that";
            return Err(why.to_owned());
        }
        Ok(DevicePart::Reported {
            operation_mean_ns: each(ns),
            device_mean_ns: each(with_device_ns),
            error_ns: each(error_ns),
            requests_per_operation: each(requests),
        })
    }
}

impl DeviceCount {
    /// See [`DeviceTime::of`].
    pub(crate) fn time(&self, asked: Asked, operations: u64, ns: f64) -> DevicePart {
        let times = if asked == Asked::ReadThenWrite { 2 } else { 1 };
        self.time.of(asked, operations, ns, times * self.asked)
    }

    pub(crate) fn begin(&mut self, device: &Device) {
        self.before = device.read();
    }

    /// After a block that moved so many bytes; waits a moment for a count that is late.
    pub(crate) fn end(&mut self, device: &Device, direction: Direction, bytes: u64) {
        let Some(before) = self.before.take() else { return };
        let now = || Some(device.read()?.since(before));
        let Some(mut since) = now() else { return };
        let bytes_of = |since: DeviceCounters| match direction {
            Direction::Read => since.read_bytes,
            Direction::Write => since.write_bytes,
        };
        for _ in 0..ASKED_AGAIN {
            if bytes_of(since) >= bytes {
                break;
            }
            std::thread::sleep(PAUSE);
            since = now().unwrap_or(since);
        }
        let counted = bytes_of(since);
        self.time.add(since);
        self.asked += bytes;
        self.counted += counted;
        if counted < bytes {
            self.short.get_or_insert(format!("{counted} of {bytes} bytes in a block of samples"));
        }
    }

    /// Whether the device counted at least what was asked for, in each block of samples. Others may add to
    /// it. Holds, and says why, where there is no device to ask.
    pub(crate) fn check(&self, device: &Device) -> Check {
        let Self { asked, counted, short, time: DeviceTime { blocks, .. }, .. } = self;
        let name = device.name().unwrap_or_default();
        let detail = match (&device.0, short) {
            (Err(reason), _) => format!("no device counter: {reason}"),
            (Ok(_), _) if *blocks == 0 => format!("no device counter: {name} was not asked"),
            (Ok(_), Some(short)) => {
                format!("{name} counted {short}: something else answered, or the rest never left memory")
            }
            (Ok(_), None) => {
                format!(
                    "{name} counted {counted} bytes for {asked} asked for, no fewer in any of {blocks} blocks"
                )
            }
        };
        check("device counted", short.is_none() || device.0.is_err(), detail)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn counted(requests: u64, ms: u64) -> DeviceCounters {
        DeviceCounters {
            reads: requests,
            read_bytes: requests * 4096,
            read_ns: ms * 1_000_000,
            writes: requests,
            write_bytes: requests * 4096,
            write_ns: ms * 1_000_000,
            flushes: Some(requests),
        }
    }

    fn of_blocks(blocks: u64, one: DeviceCounters) -> DeviceTime {
        let mut time = DeviceTime::default();
        (0..blocks).for_each(|_| time.add(one));
        time
    }

    const READ: Asked = Asked::One(Direction::Read);

    /// As a record has it.
    fn reported(time: DeviceTime, asked: Asked, operations: u64, ns: f64, bytes: u64) -> Value {
        json!(time.of(asked, operations, ns, bytes))
    }

    #[test]
    fn the_devices_part_of_an_operation_is_what_its_requests_took() {
        // Ten blocks of 1,000 reads of 60 us, 40 of which the device had; a sync is a write and a flush.
        let time = of_blocks(10, counted(1_000, 40));
        let read = reported(time, READ, 10_000, 6e8, 40_960_000);
        assert_eq!(read["device_mean_ns"], 40_000.0, "{read}");
        assert_eq!(read["operation_mean_ns"], 60_000.0);
        assert!(read["error_ns"].as_f64().is_some_and(|ns| ns < 400.0), "{read}");
        // A write, and the flush as a write of no bytes; the flush that is counted apart is the same one.
        let durable = reported(time, Asked::Durable, 5_000, 5e8, 40_960_000);
        assert_eq!(
            (&durable["device_mean_ns"], &durable["requests_per_operation"]),
            (&json!(80_000.0), &json!(2.0))
        );
        let both = reported(time, Asked::ReadThenWrite, 10_000, 1e9, 81_920_000);
        assert_eq!(both["device_mean_ns"], 80_000.0);
    }

    #[test]
    fn what_cannot_be_known_says_why() {
        let time = of_blocks(10, counted(1_000, 40));
        for (time, operations, ns, bytes, why) in [
            (DeviceTime::default(), 10, 6e8, 10, "no counter here"),
            (time, 10_000, 6e8, 20_480_000, "others used the device: it moved 2.0 times"),
            (time, 1_000, 6e8, 40_960_000, "10.00 requests"),
            (of_blocks(10, counted(10, 1)), 100, 6e8, 409_600, "milliseconds"),
            (time, 10_000, 3e8, 40_960_000, "overlap"),
        ] {
            let reported = reported(time, READ, operations, ns, bytes);
            assert!(
                reported["not_told"].as_str().is_some_and(|text| text.contains(why)),
                "{why}: {reported}"
            );
        }
    }
}
