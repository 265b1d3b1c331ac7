//! Whatever another program writes into the ring or the lines is read without harm, in bounded memory.
#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;

use latlab_stages::writer::Ring;
use latlab_stages::{Event, Lines, Listener};
use latlab_stats::rng::Rng;

const SLOTS: u32 = 64;

/// How many inputs to try.
fn inputs() -> u64 {
    let wanted = std::env::var("LATLAB_FUZZ").ok();
    wanted.map_or(1_000, |inputs| inputs.parse().expect("LATLAB_FUZZ is a number"))
}

/// Runs one input from each seed; a seed that fails is printed.
fn each_seed(mut tried: impl FnMut(&mut Rng)) {
    struct Seed(u64);
    impl Drop for Seed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("failed with seed {}", self.0);
            }
        }
    }
    for seed in 0..inputs() {
        let seed = Seed(seed);
        tried(&mut Rng::new(seed.0));
    }
}

/// A word as somebody would choose it who wants to do harm.
fn word(random: &mut Rng) -> u64 {
    let bits = random.next_u64();
    match random.below(4) {
        0 => bits,
        1 => [0, 1, u64::MAX, 1 << 63, 1 << 32, 2][random.below(6)],
        2 => bits % 300,
        _ => bits >> random.below(64),
    }
}

fn opened(path: &str) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).open(path).expect("the file")
}

#[test]
fn fuzz_of_the_ring_finds_no_harm() {
    each_seed(|random| {
        let mut listener = Listener::new(SLOTS).expect("memory");
        // SAFETY: both live to the end of this input, which keeps them in this order.
        let ring: Ring = unsafe { listener.ring().writer() }.expect("a header");
        let known = ["read", "parse", "write"].map(|name| ring.name(name));
        let [(_, path), _] = listener.environment();
        let memory = opened(&path);
        let bytes = memory.metadata().expect("open").len();
        let mut names = HashSet::new();
        for _ in 0..3 {
            for _ in 0..random.below(100) {
                let begun = ring.begin(known[random.below(3)]);
                ring.end(known[random.below(3)], begun, 1);
            }
            for _ in 0..random.below(30) {
                // Often the cursor and the slots, of which there are few.
                let at = match random.below(3) {
                    0 => 16,
                    1 => 64 + 256 * 64 + 8 * random.below(SLOTS as usize * 8) as u64,
                    _ => 8 * random.below(usize::try_from(bytes).expect("small") / 8) as u64,
                };
                memory.write_all_at(&word(random).to_le_bytes(), at).expect("in the file");
            }
            let mut marks = 0;
            listener.drain(|event| {
                if let Event::Mark(mark) = event {
                    marks += 1;
                    names.insert(mark.name.clone());
                }
            });
            assert!(marks <= SLOTS, "{marks} marks of {SLOTS} slots");
        }
        listener.finish(word(random), |_| ());
        assert!(names.len() <= 257, "{names:?}");
        assert!(listener.heard().stages.len() <= 257);
    });
}

#[test]
fn fuzz_of_lines_finds_no_harm() {
    let valid =
        b"begin sort at=1000\nend sort at=5000 bytes=12\nbegin \xc3\xa9t\xc3\xa9\nend \xc3\xa9t\xc3\xa9\n";
    each_seed(|random| {
        let mut bytes = valid.repeat(1 + random.below(3));
        for _ in 0..random.below(12) {
            let at = random.below(bytes.len());
            let byte = random.next_u64().to_le_bytes()[0];
            match random.below(5) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at + 1),
                3 => bytes.extend(vec![byte; random.below(2000)]),
                _ => bytes.splice(at..at, u64::MAX.to_string().into_bytes()).for_each(drop),
            }
        }
        let mut lines = Lines::default();
        let (mut understood, mut refused) = (0, 0);
        let mut left = &bytes[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(1 + random.below(left.len()));
            for line in lines.take(now) {
                match line {
                    Ok(line) => {
                        understood += 1;
                        assert!(!line.name.is_empty() && line.name.chars().count() <= 56);
                        assert!(!line.name.contains(|c: char| c.is_control() || c.is_ascii_whitespace()));
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(error.line.chars().count() <= 80);
                    }
                }
            }
            left = later;
        }
        let ends = bytes.split(|byte| *byte == b'\n').count() - 1;
        assert!(understood + refused <= ends, "{understood} + {refused} of {ends}");
    });
}

#[test]
fn fuzz_of_the_file_of_lines_finds_no_harm() {
    let mut listener = Listener::new(SLOTS).expect("memory");
    let [_, (_, path)] = listener.environment();
    let file = opened(&path);
    each_seed(|random| {
        let length = file.metadata().expect("open").len();
        match random.below(100) {
            0 => file.set_len(word(random) >> 20).expect("holes take no memory"),
            1..15 => file.set_len(length.min(word(random))).expect("shorter"),
            _ => {
                let name = word(random);
                let text = match random.below(4) {
                    0 => format!("begin {name}\n"),
                    1 => format!("end {name} at={} bytes={}\n", word(random), word(random)),
                    2 => format!("end {}", name % 8),
                    _ => format!("begin {} at={}\nend {}\n", name % 8, word(random), name % 8),
                };
                file.write_all_at(text.as_bytes(), length.min(1 << 40)).expect("room");
            }
        }
        let mut marks = 0;
        listener.drain(|_| marks += 1);
        assert!(marks <= 1 << 18, "{marks}");
    });
    listener.finish(0, |_| ());
    let heard = listener.heard();
    assert!(heard.stages.len() <= 257, "{}", heard.stages.len());
    assert!(heard.stages.iter().any(|row| row.count > 0), "some lines are understood");
}
