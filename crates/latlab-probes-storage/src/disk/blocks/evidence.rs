//! What shows that blocks were read and written as they should have been.

use latlab_record::Check;
use latlab_storage::{
    BLOCK_BYTES, Contents, Direct, DirectEvidence, Direction, Extents, ProcessCounters, Residency,
};

use super::device::DeviceCount;
use super::target::Target;
use crate::disk::words::{Access, BUFFERED, COLD, DIRECT, Verified, WARM, check, reported};

/// What speaks for the blocks of one point: gathered while they are taken, reported as checks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Blocks of the file whose header was verified.
    verified: Verified,
    /// Bytes moved, and those that the kernel counted meanwhile.
    moved: u64,
    pub(crate) counted: Option<u64>,
    watched: u64,
    before: Option<ProcessCounters>,
    /// And those that the device counted.
    pub(crate) device: DeviceCount,
    /// What was found after the evictions.
    chilled: u64,
    source: &'static str,
    /// The block of contents that was computed last, for blocks that hold no header.
    expected: Option<(u64, Vec<u8>)>,
}

impl Evidence {
    /// Verifies the first and the last header of a block that was read; blocks below 4 KiB, of which most
    /// hold none, are compared whole. Cheap (two lines of the cache), and no part of what is timed.
    pub(crate) fn verify(&mut self, contents: Option<Contents>, offset: u64, bytes: &[u8]) {
        let Some(contents) = contents else { return };
        let found = if bytes.len() < BLOCK_BYTES {
            self.compare(contents, offset, bytes)
        } else {
            let last = bytes.len() / BLOCK_BYTES * BLOCK_BYTES - BLOCK_BYTES;
            contents
                .verify_headers(offset, &bytes[..BLOCK_BYTES])
                .and_then(|()| contents.verify_headers(offset + last as u64, &bytes[last..]))
        };
        self.verified.note(found);
    }

    fn compare(&mut self, contents: Contents, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let begin = offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        if self.expected.as_ref().is_none_or(|(own, _)| *own != begin) {
            let mut whole = vec![0; BLOCK_BYTES];
            contents.fill(begin, &mut whole);
            self.expected = Some((begin, whole));
        }
        let from = usize::try_from(offset - begin).unwrap_or(0);
        let expected = self.expected.as_ref().and_then(|(_, whole)| whole.get(from..from + bytes.len()));
        if expected == Some(bytes) {
            return Ok(());
        }
        Err(if bytes.iter().all(|byte| *byte == 0) {
            format!("the bytes at {offset} are all zeros: they were never written, or lost")
        } else {
            format!("the bytes at {offset} are not what was written there")
        })
    }

    /// Verifies every header of a block: for one in a while, outside of what is timed.
    pub(crate) fn verify_all(&mut self, contents: Option<Contents>, offset: u64, bytes: &[u8]) {
        let Some(contents) = contents else { return };
        if bytes.len() < BLOCK_BYTES {
            return self.verify(Some(contents), offset, bytes);
        }
        self.verified.note(contents.verify_headers(offset, bytes));
    }

    pub(crate) fn chilled(&mut self, residency: Residency) {
        self.chilled += 1;
        self.source = residency.source;
    }

    /// Before a block of samples: what the kernel and the device have counted until now.
    pub(crate) fn begin(&mut self, target: &Target, path: Access) {
        if reaches_the_device(path) {
            self.device.begin(&target.device);
        }
        self.before = ProcessCounters::now();
    }

    /// After a block of samples that moved so many bytes.
    pub(crate) fn end(&mut self, target: &Target, direction: Direction, bytes: u64) {
        self.device.end(&target.device, direction, bytes);
        self.moved += bytes;
        if let (Some(before), Some(now)) = (self.before.take(), ProcessCounters::now()) {
            let since = now.since(before);
            *self.counted.get_or_insert(0) += match direction {
                Direction::Read => since.read_bytes,
                Direction::Write => since.write_bytes,
            };
            self.watched += bytes;
        }
    }

    /// As if so many bytes had been moved, and so many counted.
    #[cfg(test)]
    pub(crate) fn of_counts(moved: u64, counted: Option<u64>) -> Self {
        Self { moved, watched: moved, counted, ..Self::default() }
    }

    /// What was seen of other blocks on the same way.
    pub(crate) fn join(&mut self, other: Self) {
        self.verified.join(other.verified);
    }

    /// As checks of a record. `path` decides which: a cold figure needs its evictions, a direct or cold one
    /// the kernel's count.
    pub(crate) fn checks(&self, target: &Target, path: Access, direction: Direction) -> Vec<Check> {
        let mut checks = vec![written_extents(&target.test.extents)];
        // What was written is verified where it was read back; and of a file of the user's nobody knows what
        // is in it.
        if target.test.contents.is_some() && (direction == Direction::Read || self.verified.all > 0) {
            let held = format!("{} blocks read held what was written there", self.verified.all);
            checks.push(self.verified.check("contents verified", held));
        }
        if path == COLD {
            checks.push(self.evicted_check());
        }
        if path == DIRECT {
            checks.push(trial_check(target));
        }
        if path != WARM {
            checks.push(self.counted_check(direction));
        }
        if reaches_the_device(path) {
            checks.push(self.device.check(&target.device));
        }
        checks
    }

    fn evicted_check(&self) -> Check {
        let detail = format!("evicted 100.0 % ({}) before {} blocks", self.source, self.chilled);
        check("evicted", self.chilled > 0, detail)
    }

    fn counted_check(&self, direction: Direction) -> Check {
        let (verb, counted) = match direction {
            Direction::Read => ("read", "fetched from storage"),
            Direction::Write => ("written", "sent towards storage"),
        };
        let detail = match self.counted {
            Some(bytes) => format!("{} bytes {verb}, {bytes} {counted} (/proc/self/io)", self.watched),
            None => format!("{} bytes {verb}; this kernel does not count", self.moved),
        };
        let is_counted = self.counted.is_none_or(|bytes| bytes >= self.watched);
        check("counted by the kernel", is_counted && self.moved > 0, detail)
    }
}

/// Whether what is read or written this way has been at the device when its block of samples ends.
fn reaches_the_device(path: Access) -> bool {
    path != WARM && path != BUFFERED
}

/// No byte of the file is a hole or only reserved.
fn written_extents(extents: &Extents) -> Check {
    let Extents { written_bytes, pieces, exact, .. } = extents;
    let as_reported = if *exact { "" } else { " as far as this file system reports" };
    let all = || format!("{written_bytes} bytes in {pieces} pieces, none only reserved{as_reported}");
    reported("extents written", extents.all_written().map(|()| all()))
}

fn trial_check(target: &Target) -> Check {
    let not_tried = || Ok("accepted; the user's file is not tried, the kernel's count decides".to_owned());
    let direct = target.test.direct.as_ref().map_err(Clone::clone);
    let tried = |direct: &Direct| direct.evidence.as_ref().map_or_else(not_tried, DirectEvidence::is_direct);
    reported("direct", direct.and_then(tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_that_were_never_written_fail_the_proof() {
        let written = Extents { written_bytes: 8192, pieces: 1, exact: true, ..Extents::default() };
        assert!(written_extents(&written).ok);
        let reserved = Extents { unwritten_bytes: 4096, ..written };
        assert!(!written_extents(&reserved).ok);
        let hole = Extents { hole_bytes: 4096, ..written };
        assert!(!written_extents(&hole).ok);
    }
}
