//! Counts the words on standard input, the most frequent first: in one small buffer, in place.

mod latlab_stage;
use latlab_stage::stage;
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};

type Counts = HashMap<Box<[u8]>, u64>;

fn add(counts: &mut Counts, word: &[u8]) {
    if let Some(count) = counts.get_mut(word) {
        *count += 1;
    } else if !word.is_empty() {
        counts.insert(word.into(), 1);
    }
}

fn main() -> io::Result<()> {
    let (mut counts, mut input) = (Counts::new(), io::stdin().lock());
    let mut buffer = vec![0; 64 << 10];
    let mut kept = 0; // bytes at the front of the buffer: a word that has begun and not ended
    loop {
        let got = {
            let mut reading = stage("reading");
            let got = input.read(&mut buffer[kept..])?;
            reading.bytes(got as u64);
            got
        };
        if got == 0 {
            break;
        }
        let _processing = stage("processing");
        let (mut start, end) = (0, kept + got);
        buffer[kept..end].make_ascii_lowercase();
        for at in kept..end {
            if matches!(buffer[at], b' ' | b'\t'..=b'\r') {
                add(&mut counts, &buffer[start..at]);
                start = at + 1;
            }
        }
        buffer.copy_within(start..end, 0);
        kept = end - start;
        if kept == buffer.len() {
            buffer.resize(2 * kept, 0);
        }
    }
    add(&mut counts, &buffer[..kept]);

    let sorting = stage("sorting");
    let mut ordered: Vec<_> = counts.iter().collect();
    ordered.sort_unstable_by(|one, other| other.1.cmp(one.1));
    drop(sorting);

    let _outputting = stage("outputting");
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (word, count) in ordered {
        out.write_all(word)?;
        writeln!(out, " {count}")?;
    }
    out.flush()
}
