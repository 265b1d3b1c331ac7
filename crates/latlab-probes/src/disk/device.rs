//! What the device itself counted: bytes that it says it moved, beside those that this process asked for.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use latlab_record::Check;
use latlab_storage::{DeviceCounters, DeviceSource, Direction};

/// Bytes are counted when a transfer completes, which is before its waiter wakes on the kernels that were looked at; a device whose count comes
/// later is asked again so often, with a pause each time.
const ASKED_AGAIN: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// The device under a file, or why it cannot be asked.
#[derive(Clone, Debug)]
pub(crate) struct Device(Result<Arc<DeviceSource>, String>);

impl Device {
    /// The partition or whole device that holds a file.
    pub(crate) fn under(file: impl AsFd) -> Self {
        Self(
            rustix::fs::fstat(file)
                .map_err(|errno| format!("the file does not say where it lies: {errno}"))
                .and_then(|facts| {
                    DeviceSource::of(rustix::fs::major(facts.st_dev), rustix::fs::minor(facts.st_dev))
                })
                .map(Arc::new),
        )
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
    blocks: u64,
    asked: u64,
    counted: u64,
    /// The first block of samples for which it counted too little: what others moved in one must not make up for what is missing in another.
    short: Option<String>,
}

impl DeviceCount {
    /// Before a block of samples.
    pub(crate) fn begin(&mut self, device: &Device) {
        self.before = device.read();
    }

    /// After a block that moved so many bytes; waits a moment for a count that is late.
    pub(crate) fn end(&mut self, device: &Device, direction: Direction, bytes: u64) {
        let Some(before) = self.before.take() else {
            return;
        };
        let since = || {
            let since = device.read()?.since(before);
            Some(match direction {
                Direction::Read => since.read_bytes,
                Direction::Write => since.write_bytes,
            })
        };
        let Some(mut counted) = since() else { return };
        for _ in 0..ASKED_AGAIN {
            if counted >= bytes {
                break;
            }
            std::thread::sleep(PAUSE);
            counted = since().unwrap_or(counted);
        }
        self.blocks += 1;
        self.asked += bytes;
        self.counted += counted;
        if counted < bytes {
            self.short
                .get_or_insert(format!("{counted} of {bytes} bytes in a block of samples"));
        }
    }

    /// Whether the device counted at least what was asked for, in each block of samples. Others may add to it. Holds, and says why, where there
    /// is no device to ask.
    pub(crate) fn check(&self, device: &Device) -> Check {
        let (ok, detail) = match (&device.0, &self.short) {
            (Err(reason), _) => (true, format!("no device counter: {reason}")),
            (Ok(source), _) if self.blocks == 0 => (
                true,
                format!("no device counter: {} was not asked", source.name()),
            ),
            (Ok(source), Some(short)) => (
                false,
                format!(
                    "{} counted {short}: something else answered, or the rest never left memory",
                    source.name()
                ),
            ),
            (Ok(source), None) => (
                true,
                format!(
                    "{} counted {} bytes for {} asked for, no fewer in any of {} blocks",
                    source.name(),
                    self.counted,
                    self.asked,
                    self.blocks
                ),
            ),
        };
        Check {
            name: "device counted".to_owned(),
            ok,
            detail,
        }
    }
}
