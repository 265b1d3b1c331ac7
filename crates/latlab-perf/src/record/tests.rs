use super::*;

// As linux/perf_event.h has them.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const SWITCH: u32 = 14;
const MISC_13: u16 = 1 << 13;
const MISC_14: u16 = 1 << 14;
const MARK_KERNEL: u64 = 0xffff_ffff_ffff_ff80;
const MARK_USER: u64 = 0xffff_ffff_ffff_fe00;

/// Whose records these are: process 7, thread 8, time 50, event 5.
const WHO: [u64; 4] = [pair(7, 8), 50, 3, 5];
const NAME: u64 = u64::from_ne_bytes(*b"cat\0\0\0\0\0");
const CHAINS: u64 = 9;
const RAW: u64 = 10;
const STACKS: u64 = 12;
const DEEPEST: usize = 64;

/// Two numbers in one word, as a little-endian machine has them.
const fn pair(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// A record of this kind with these words.
fn bytes(kind: u32, misc: u16, words: &[&[u64]]) -> Vec<u8> {
    let body: Vec<u8> = words.concat().iter().flat_map(|word| word.to_ne_bytes()).collect();
    let size = u16::try_from(body.len() + 8).unwrap();
    [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), &body].concat()
}

fn map(misc: u16) -> Vec<u8> {
    let path = b"/lib/libc.so\0\0\0\0".as_chunks::<8>().0.iter().map(|part| u64::from_ne_bytes(*part));
    let path: Vec<u64> = path.collect();
    bytes(MMAP2, misc, &[&[pair(7, 8), 0x1000, 0x2000, 0x40, pair(8, 1), 99, 0, 0], &path, &WHO])
}

fn decoded(bytes: &[u8]) -> Vec<Record<'_>> {
    let detail = |event| match event {
        CHAINS => Detail::Chain,
        RAW => Detail::Raw,
        STACKS => Detail::Stack { bytes: 32 },
        _ => Detail::None,
    };
    records(bytes, detail).collect()
}

fn divided(words: &[&[u64]]) -> (Vec<u64>, Vec<u64>) {
    let bytes = bytes(SAMPLE, 0, words);
    let What::Sample(sample) = &decoded(&bytes)[0].what else { panic!("no sample") };
    sample.divided(DEEPEST)
}

#[test]
fn a_samples_chain_is_divided_at_the_kernels_marks() {
    let (low, high) = (0xffff_8000_0000_0001, 0xffff_8000_0000_0002);
    let head = [CHAINS, 0x55, pair(7, 8), 100, 3];
    let chain = [MARK_KERNEL, low, high, MARK_USER, 0x55, 0x66];
    assert_eq!(divided(&[&head, &[6], &chain]), (vec![low, high], vec![0x55, 0x66]));
    assert_eq!(
        divided(&[&head, &[u64::MAX], &chain]),
        (vec![low, high], vec![0x55, 0x66]),
        "as far as it goes"
    );
    assert_eq!(divided(&[&head, &[2], &chain]), (vec![low], vec![]));
    assert_eq!(divided(&[&head, &[0]]), (vec![], vec![0x55]), "its address alone");
    assert_eq!(divided(&[&head, &[200], &[0x66; 200]]).1, [0x66; DEEPEST]);
}

/// What is behind the identity of a sample with registers and a stack: the chain, the ABI, registers, room
/// for the stack, the stack, what was copied.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn with_stack(chain: &[u64], abi: u64, room: &[u64], copied: u64) -> Vec<u8> {
    let registers: &[u64] = match abi {
        0 => &[],
        _ if cfg!(target_arch = "aarch64") => &[0x77, 0x99, 0x7f00, 0x55],
        _ => &[0x77, 0x7f00, 0x55],
    };
    let (count, bytes_of_room) = ([chain.len() as u64], [8 * room.len() as u64]);
    let copied: &[u64] = if room.is_empty() { &[] } else { &[copied] };
    let head = [STACKS, 0x55, pair(7, 8), 100, 3];
    bytes(SAMPLE, 0, &[&head, &count, chain, &[abi], registers, &bytes_of_room, room, copied])
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn a_samples_registers_and_stack_are_behind_its_chain() {
    let user = |bytes: &[u8]| {
        let What::Sample(sample) = decoded(bytes)[0].what else { panic!("no sample") };
        assert_eq!(sample.divided(DEEPEST), (vec![0xffff_8000_0000_0001], vec![0x55]));
        sample.user().map(|user| (user.registers, user.stack.to_vec()))
    };
    let chain = [MARK_KERNEL, 0xffff_8000_0000_0001, MARK_USER, 0x55];
    let link = if cfg!(target_arch = "aarch64") { 0x99 } else { 0 };
    let registers = Registers { instruction: 0x55, stack: 0x7f00, frame: 0x77, link };
    let room = [1_u64, 2, 3, 4];
    let stack = |words: usize| room[..words].iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(user(&with_stack(&chain, 2, &room, 32)), Some((registers, stack(4))));
    assert_eq!(user(&with_stack(&chain, 2, &room, 16)), Some((registers, stack(2))), "less was there");
    assert_eq!(user(&with_stack(&chain, 2, &[], 0)), Some((registers, vec![])), "nothing was there");
    assert_eq!(user(&with_stack(&chain, 0, &[], 0)), None, "a kernel thread");
    assert_eq!(user(&with_stack(&chain, 1, &room, 32)), None, "a 32-bit program");
    assert_eq!(decoded(&with_stack(&chain, 2, &room, 33)), [], "more than there was room for");
    let mut damaged = with_stack(&chain, 2, &room, 32);
    damaged[48..56].copy_from_slice(&(u64::MAX / 8 + 2).to_ne_bytes());
    assert_eq!(decoded(&damaged), [], "a chain of no possible length");
}

#[test]
fn a_samples_fields_are_whole_or_it_is_left_out() {
    let head = [RAW, pair(7, 8), 100, 3];
    let whole = bytes(SAMPLE, 0, &[&head, &[pair(12, 1), pair(2, 3)]]);
    let found = decoded(&whole);
    assert_eq!((found[0].time_ns, found[0].pid, found[0].tid, found[0].event), (100, 7, 8, RAW));
    let What::Sample(sample) = found[0].what else { panic!("{found:?}") };
    let expected: Vec<u8> = [1_u32, 2, 3].iter().flat_map(|field| field.to_ne_bytes()).collect();
    assert_eq!(sample, Sample::Raw(&expected));
    assert_eq!(decoded(&bytes(SAMPLE, 0, &[&head, &[pair(13, 1), pair(2, 3)]])), []);
    assert_eq!(decoded(&bytes(SAMPLE, 0, &[&head])), []);
    let plain = bytes(SAMPLE, 0, &[&[11, pair(7, 8), 100, 3]]);
    assert_eq!(decoded(&plain)[0].what, What::Sample(Sample::Plain));
}

#[test]
fn every_other_kind_says_what_happened_and_to_whom() {
    let inode = Mmap2InodeAndVersion { major: 8, minor: 1, inode: 99, inode_generation: 0 };
    let mapped = |file| {
        let path = "/lib/libc.so".to_owned();
        What::Mapped(Box::new(Mapping { start: 0x1000, bytes: 0x2000, offset: 0x40, file, path }))
    };
    let started = [pair(20, 7), pair(21, 9), 60];
    let named = |exec| What::Named { exec, name: "cat".into() };
    let both = MISC_13 | MISC_14;
    for (bytes, (pid, tid), what) in [
        (bytes(SWITCH, both, &[&WHO]), (7, 8), What::SwitchedOut { preempted: true }),
        (bytes(SWITCH, MISC_13, &[&WHO]), (7, 8), What::SwitchedOut { preempted: false }),
        (bytes(SWITCH, 0, &[&WHO]), (7, 8), What::SwitchedIn),
        (bytes(FORK, 0, &[&started, &WHO]), (20, 21), What::Started { parent: 7, by: 9 }),
        (bytes(EXIT, 0, &[&started, &WHO]), (20, 21), What::Ended),
        (bytes(COMM, MISC_13, &[&[pair(1, 2), NAME], &WHO]), (1, 2), named(true)),
        (bytes(COMM, 0, &[&[pair(1, 2), NAME], &WHO]), (1, 2), named(false)),
        (map(0), (7, 8), mapped(Some(inode))),
        (map(MISC_14), (7, 8), mapped(None)),
        (bytes(LOST, 0, &[&[9, 41], &WHO]), (7, 8), What::Lost(41)),
    ] {
        let expected = Record { time_ns: 50, pid, tid, event: 5, what };
        assert_eq!(decoded(&bytes), [expected]);
    }
}

#[test]
fn a_text_ends_with_its_zero_or_where_the_identity_begins() {
    let text = u64::from_ne_bytes(*b"whatever");
    let long = bytes(COMM, 0, &[&[pair(1, 2), text], &WHO]);
    assert_eq!(decoded(&long)[0].what, What::Named { exec: false, name: "whatever".into() });
}

#[test]
fn unknown_records_are_skipped_and_a_length_that_cannot_be_ends_the_run() {
    let known = bytes(SWITCH, 0, &[&WHO]);
    let unknown = bytes(99, 0, &[&WHO]);
    assert_eq!(decoded(&[unknown.as_slice(), &known].concat()).len(), 1);
    for size in [0_u16, 7, 0xffff] {
        let mut damaged = known.clone();
        damaged[6..8].copy_from_slice(&size.to_ne_bytes());
        assert_eq!(decoded(&[damaged.as_slice(), &known].concat()), [], "{size}");
    }
    assert_eq!(decoded(&[0; 64]), []);
}

#[test]
fn a_record_that_is_cut_anywhere_is_left_out() {
    for whole in valid() {
        assert_eq!(decoded(&whole).len(), 1);
        for length in 0..whole.len() {
            assert_eq!(decoded(&whole[..length]), []);
        }
    }
}

/// One record of each kind.
fn valid() -> Vec<Vec<u8>> {
    let chain = [4, MARK_KERNEL, 0xffff_8000_0000_0001, MARK_USER, 0x55];
    vec![
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        with_stack(&chain[1..], 2, &[1, 2], 16),
        bytes(SAMPLE, 0, &[&[CHAINS, 0x55, pair(7, 8), 100, 3], &chain]),
        bytes(SAMPLE, 0, &[&[RAW, pair(7, 8), 100, 3, pair(4, 1)]]),
        bytes(SWITCH, MISC_13, &[&WHO]),
        bytes(FORK, 0, &[&[pair(20, 7), pair(20, 8), 60], &WHO]),
        bytes(COMM, MISC_13, &[&[pair(7, 8), NAME], &WHO]),
        map(0),
        bytes(LOST, 0, &[&[1, 2], &WHO]),
        bytes(EXIT, 0, &[&[pair(20, 7), pair(20, 8), 60], &WHO]),
    ]
}

#[test]
fn fuzz_of_records_finds_no_harm() {
    let valid = valid();
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
            let text: &str = match &record.what {
                What::Sample(sample) => {
                    let (kernel, user) = sample.divided(DEEPEST);
                    assert!(kernel.len() <= DEEPEST && user.len() <= DEEPEST, "seed {seed}");
                    assert!(sample.raw().len() <= bytes.len(), "seed {seed}");
                    assert!(sample.user().is_none_or(|user| user.stack.len() <= bytes.len()), "seed {seed}");
                    continue;
                }
                What::Mapped(mapping) => &mapping.path,
                What::Named { name, .. } => name,
                _ => continue,
            };
            // What is no UTF-8 becomes three bytes.
            assert!(text.len() <= 3 * bytes.len() && !text.contains('\0'), "seed {seed}");
        }
    }
    assert!(understood > 0, "some records are understood");
}

#[test]
fn noise_never_panics() {
    let mut random = latlab_stats::rng::Rng::new(3);
    for _ in 0..2000 {
        let length = random.below(200);
        let noise: Vec<u8> = (0..length).map(|_| u8::try_from(random.below(12)).unwrap()).collect();
        decoded(&noise);
    }
}
