//! The kernel's perf records as bytes, decoded. Pure; the layout is that of `perf_event_open(2)` with [`SAMPLE_TYPE`].

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;
/// What every sample carries; other records end with who, when, where and of which event.
pub const SAMPLE_TYPE: u64 =
    SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN;
const TRAILER: usize = 32;

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const SWITCH: u32 = 14;
const MISC_OUT: u16 = 1 << 13;
const MISC_PREEMPTED: u16 = 1 << 14;
const MISC_EXEC: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;
/// Addresses from here on are marks between the parts of a call chain.
const MARKS: u64 = 0xffff_ffff_ffff_f000;
const MARK_KERNEL: u64 = 0xffff_ffff_ffff_ff80;
const MARK_USER: u64 = 0xffff_ffff_ffff_fe00;
/// Longer chains are cut.
const DEEPEST: usize = 64;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What happened.
    pub what: What,
}

/// What the kernel says of a mapped file, by which it is known again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileId {
    /// Of its device.
    pub major: u32,
    /// Of its device.
    pub minor: u32,
    /// 0: there is no file, or the kernel has not said which.
    pub inode: u64,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An event fired.
    Sample {
        /// Which.
        event: u64,
        /// Addresses in the kernel, the running function first.
        kernel: Vec<u64>,
        /// Addresses in user code, the running function first.
        user: Vec<u64>,
    },
    /// The thread left its CPU.
    Out {
        /// It could have gone on.
        preempted: bool,
    },
    /// It came to a CPU.
    In,
    /// A file was mapped to be executed.
    Map {
        /// First address.
        start: u64,
        /// Bytes.
        bytes: u64,
        /// Offset in the file.
        offset: u64,
        /// Its path.
        path: String,
        /// Which one it is.
        file: FileId,
    },
    /// The thread has this name now.
    Name {
        /// As it loaded a new program.
        exec: bool,
        /// Name.
        name: String,
    },
    /// The thread was started by this process.
    Start {
        /// Its parent's id; equal to `pid` for another thread of a process.
        parent: u32,
    },
    /// It ends.
    End,
    /// Records that there was no room for.
    Lost(u64),
    /// Not the kernel's: why the thread waits that left its CPU at this time, found in /proc.
    Learned {
        /// When it began to wait.
        since: u64,
        /// Why.
        reason: crate::rules::Reason,
    },
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn text_at(bytes: &[u8], from: usize) -> Option<String> {
    let text = bytes.get(from..bytes.len().checked_sub(TRAILER)?)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// Decodes a run of records; what is unknown or damaged is skipped, a length that cannot be ends the run.
pub fn decode(mut bytes: &[u8], into: &mut Vec<Record>) {
    while let (Some(kind), Some(misc), Some(size)) = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6)) {
        let size = usize::from(size);
        if size < 8 || size > bytes.len() {
            return;
        }
        let (record, rest) = bytes.split_at(size);
        bytes = rest;
        into.extend(one(kind, misc, record));
    }
}

fn one(kind: u32, misc: u16, record: &[u8]) -> Option<Record> {
    if kind == SAMPLE {
        return sample(record);
    }
    let trailer = record.len().checked_sub(TRAILER).filter(|at| *at >= 8)?;
    let who = (u32_at(record, trailer)?, u32_at(record, trailer + 4)?);
    let time = u64_at(record, trailer + 8)?;
    let (who, what) = match kind {
        LOST => (who, What::Lost(u64_at(record, 16)?)),
        SWITCH if misc & MISC_OUT != 0 => (who, What::Out { preempted: misc & MISC_PREEMPTED != 0 }),
        SWITCH => (who, What::In),
        COMM => {
            let name = What::Name { exec: misc & MISC_EXEC != 0, name: text_at(record, 16)? };
            ((u32_at(record, 8)?, u32_at(record, 12)?), name)
        }
        FORK | EXIT => {
            let what = if kind == EXIT { What::End } else { What::Start { parent: u32_at(record, 12)? } };
            ((u32_at(record, 8)?, u32_at(record, 16)?), what)
        }
        MMAP2 => {
            let file =
                FileId { major: u32_at(record, 40)?, minor: u32_at(record, 44)?, inode: u64_at(record, 48)? };
            let map = What::Map {
                // An id of its contents may lie in this place.
                file: if misc & MISC_BUILD_ID == 0 { file } else { FileId::default() },
                start: u64_at(record, 16)?,
                bytes: u64_at(record, 24)?,
                offset: u64_at(record, 32)?,
                path: text_at(record, 72)?,
            };
            ((u32_at(record, 8)?, u32_at(record, 12)?), map)
        }
        _ => return None,
    };
    Some(Record { time, pid: who.0, tid: who.1, what })
}

fn sample(record: &[u8]) -> Option<Record> {
    let address = u64_at(record, 16)?;
    let count = usize::try_from(u64_at(record, 48)?).ok()?; // 56 bytes are there from here on
    let (mut kernel, mut user, mut in_kernel) = (Vec::new(), Vec::new(), false);
    for at in 0..count.min((record.len() - 56) / 8) {
        let next = u64_at(record, 56 + 8 * at)?;
        if next >= MARKS {
            in_kernel = next == MARK_KERNEL;
            if !in_kernel && next != MARK_USER {
                break;
            }
        } else if in_kernel && kernel.len() < DEEPEST {
            kernel.push(next);
        } else if !in_kernel && user.len() < DEEPEST {
            user.push(next);
        }
    }
    // Without permission to look into the kernel the chain may be empty: the address of the event is always there.
    if kernel.is_empty() && user.is_empty() && address < MARKS >> 1 {
        user.push(address);
    }
    Some(Record {
        time: u64_at(record, 32)?,
        pid: u32_at(record, 24)?,
        tid: u32_at(record, 28)?,
        what: What::Sample { event: u64_at(record, 8)?, kernel, user },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of this kind with this body and, unless it is a sample, the trailer.
    fn bytes(kind: u32, misc: u16, body: &[u64], trailer: Option<(u32, u32, u64)>) -> Vec<u8> {
        let mut bytes: Vec<u8> = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if let Some((pid, tid, time)) = trailer {
            bytes.extend(pid.to_ne_bytes());
            bytes.extend(tid.to_ne_bytes());
            for word in [time, 0, 5] {
                bytes.extend(word.to_ne_bytes());
            }
        }
        let size = u16::try_from(bytes.len() + 8).unwrap();
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(misc.to_ne_bytes());
        record.extend(size.to_ne_bytes());
        record.extend(bytes);
        record
    }

    fn pair(low: u32, high: u32) -> u64 {
        let mut bytes = low.to_ne_bytes().to_vec();
        bytes.extend(high.to_ne_bytes());
        u64::from_ne_bytes(bytes.try_into().unwrap())
    }

    fn decoded(bytes: &[u8]) -> Vec<Record> {
        let mut records = Vec::new();
        decode(bytes, &mut records);
        records
    }

    #[test]
    fn a_samples_chain_is_divided_at_the_kernels_marks() {
        let chain = [MARK_KERNEL, 0xffff_8000_0000_0001, 0xffff_8000_0000_0002, MARK_USER, 0x55, 0x66];
        let mut body = vec![9, 0x55, pair(7, 8), 100, 3, chain.len() as u64];
        body.extend(chain);
        let records = decoded(&bytes(SAMPLE, 0, &body, None));
        assert_eq!(records[0].time, 100);
        assert_eq!((records[0].pid, records[0].tid), (7, 8));
        let What::Sample { event, kernel, user } = &records[0].what else { panic!("{records:?}") };
        assert_eq!((*event, kernel.len(), user.as_slice()), (9, 2, [0x55, 0x66].as_slice()));
    }

    #[test]
    fn a_sample_without_a_chain_keeps_its_address() {
        let records = decoded(&bytes(SAMPLE, 0, &[9, 0x55, pair(7, 8), 100, 3, 0], None));
        assert!(matches!(&records[0].what, What::Sample { user, .. } if user == &[0x55]));
    }

    #[test]
    fn switches_forks_names_and_maps_are_decoded() {
        let out = bytes(SWITCH, MISC_OUT | MISC_PREEMPTED, &[], Some((7, 8, 50)));
        assert_eq!(decoded(&out)[0].what, What::Out { preempted: true });
        let fork = bytes(FORK, 0, &[pair(20, 7), pair(20, 8), 60], Some((7, 8, 60)));
        let fork = &decoded(&fork)[0];
        assert_eq!((fork.pid, fork.tid, &fork.what), (20, 20, &What::Start { parent: 7 }));
        let name =
            bytes(COMM, MISC_EXEC, &[pair(7, 8), u64::from_ne_bytes(*b"cat\0\0\0\0\0")], Some((7, 8, 70)));
        let exec = What::Name { exec: true, name: "cat".to_owned() };
        assert_eq!(decoded(&name)[0].what, exec);
        let path = u64::from_ne_bytes(*b"/lib/a\0\0");
        let map = bytes(
            MMAP2,
            0,
            &[pair(7, 8), 0x1000, 0x2000, 0x40, pair(8, 1), 99, 0, 0, path],
            Some((7, 8, 80)),
        );
        assert!(
            matches!(&decoded(&map)[0].what, What::Map { start: 0x1000, offset: 0x40, path, file: FileId { major: 8, minor: 1, inode: 99 }, .. } if path == "/lib/a")
        );
    }

    #[test]
    fn fuzz_of_records_finds_no_harm() {
        let path: Vec<u64> = b"/usr/lib/libc.so.6"
            .chunks(8)
            .map(|part| part.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte)))
            .collect();
        let sample = [9, 0x55, pair(7, 8), 100, 3, 4, MARK_KERNEL, 0xffff_8000_0000_0001, MARK_USER, 0x55];
        let map = [&[pair(7, 8), 0x1000, 0x2000, 0x40, pair(8, 1), 99, 0, 0], path.as_slice()].concat();
        let who = Some((7, 8, 50));
        let valid = [
            bytes(SAMPLE, 0, &sample, None),
            bytes(SWITCH, MISC_OUT, &[], who),
            bytes(FORK, 0, &[pair(20, 7), pair(20, 8), 60], who),
            bytes(COMM, MISC_EXEC, &[pair(7, 8), u64::from_ne_bytes(*b"cat\0\0\0\0\0")], who),
            bytes(MMAP2, 0, &map, who),
            bytes(LOST, 0, &[1, 2], who),
            bytes(EXIT, 0, &[pair(20, 7), pair(20, 8), 60], who),
        ];
        let whole = valid.concat();
        assert_eq!(decoded(&whole).len(), valid.len());
        let inputs = std::env::var("LATLAB_FUZZ").ok();
        let inputs: u64 = inputs.map_or(1_000, |inputs| inputs.parse().unwrap());
        let mut understood = 0;
        for seed in 0..inputs {
            let mut random = latlab_stats::rng::Rng::new(seed);
            let mut bytes = whole.clone();
            for _ in 0..random.below(12) {
                let at = random.below(bytes.len());
                let byte = random.next_u64().to_le_bytes()[0];
                match random.below(5) {
                    0 => bytes[at] = byte,
                    1 => bytes[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
                    2 => bytes.insert(at, byte),
                    3 => bytes.truncate(at + 1),
                    _ => drop(bytes.splice(at..at, valid[random.below(valid.len())].clone())),
                }
            }
            let tried = std::panic::catch_unwind(|| decoded(&bytes));
            let records = tried.unwrap_or_else(|_| panic!("failed with seed {seed}"));
            understood += records.len();
            assert!(records.len() <= bytes.len() / 8, "seed {seed}");
            for record in &records {
                match &record.what {
                    What::Sample { kernel, user, .. } => {
                        assert!(kernel.len() <= DEEPEST && user.len() <= DEEPEST, "seed {seed}");
                    }
                    What::Map { path: text, .. } | What::Name { name: text, .. } => {
                        // What is no UTF-8 becomes three bytes.
                        assert!(text.len() <= 3 * bytes.len() && !text.contains('\0'), "seed {seed}");
                    }
                    _ => {}
                }
            }
        }
        assert!(understood > 0, "some records are understood");
    }

    #[test]
    fn damaged_bytes_never_panic_and_end_the_run() {
        let mut good = bytes(SWITCH, 0, &[], Some((7, 8, 50)));
        good.extend([1, 2, 3]);
        assert_eq!(decoded(&good).len(), 1);
        let mut random = latlab_stats::rng::Rng::new(3);
        for _ in 0..2000 {
            let length = random.below(200);
            let noise: Vec<u8> = (0..length).map(|_| u8::try_from(random.below(12)).unwrap()).collect();
            decoded(&noise);
        }
        let cut = bytes(SAMPLE, 0, &[9, 0x55], None);
        assert_eq!(decoded(&cut), []);
    }
}
