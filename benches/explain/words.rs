//! Counts the words of a file, and says where its time went: `words FILE`; output as that of known.c.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::time::Instant;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

const CLOCK_THREAD_CPUTIME_ID: i32 = 3;

fn cpu() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: fills a timespec of ours.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.seconds as f64 + time.nanoseconds as f64 / 1e9
}

fn queued(file: &File) -> f64 {
    let mut line = [0; 128];
    let got = file.read_at(&mut line, 0).unwrap_or(0);
    let text = std::str::from_utf8(&line[..got]).unwrap_or("");
    let waited = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    waited.unwrap_or(0.0) / 1e9
}

/// CPU time, wall time since `begun` and time in the queue of one moment: again when the thread was taken off its CPU meanwhile.
fn moment(begun: Instant, schedstat: &File) -> [f64; 3] {
    loop {
        let queue = queued(schedstat);
        let here = [cpu(), begun.elapsed().as_secs_f64(), queue];
        if queued(schedstat) <= queue {
            return here;
        }
    }
}

fn main() -> std::io::Result<()> {
    let begun = Instant::now();
    let schedstat = File::open("/proc/thread-self/schedstat")?;
    let mut file = File::open(std::env::args().nth(1).expect("a file"))?;
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut sums = [0.0; 3];
    let (mut block, mut kept) = (vec![0; 1 << 16], 0);
    loop {
        let from = moment(begun, &schedstat);
        let got = file.read(&mut block[kept..])?;
        let until = moment(begun, &schedstat);
        for (sum, (until, from)) in sums.iter_mut().zip(until.into_iter().zip(from)) {
            *sum += until - from;
        }
        if got == 0 {
            break;
        }
        let text = &block[..kept + got];
        let end = text.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
        for word in text[..end].split(|byte| *byte == b' ') {
            *counts.entry(word.to_vec()).or_default() += 1;
        }
        let rest = text.len() - end;
        block.copy_within(end..kept + got, 0);
        kept = rest;
    }
    let [on_cpu, wall, queue] = sums;
    let words: u64 = counts.values().sum();
    println!(
        "{{\"total\": {:.6}, \"parts\": {{\"read\": {{\"cpu\": {on_cpu:.6}, \"wait\": {:.6}, \"queue\": {queue:.6}}}}}, \"words\": {words}}}",
        begun.elapsed().as_secs_f64(),
        wall - on_cpu - queue,
    );
    Ok(())
}
