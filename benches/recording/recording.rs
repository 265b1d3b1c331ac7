//! What recording one sample costs: the budget is 3 ns.
//!
//! The harness records a single operation in three steps: ticks become picoseconds, the histogram counts them, and slow
//! ones keep their time stamp. They happen between the timed regions, so they cost time but bias nothing.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latlab_clock::{Clock, Source, TimeSource};
use latlab_harness::Picoseconds;
use latlab_record::Histogram;
use latlab_stats::rng::Rng;

const SAMPLES: usize = 4_096;

/// Durations like those of pokes: most near 20 ns, one in a hundred some hundreds, one in a thousand over the threshold.
fn durations(scale: f64) -> Vec<u64> {
    let mut rng = Rng::new(7);
    (0..SAMPLES)
        .map(|_| {
            let ns = match rng.below(1_000) {
                0 => 5_000.0,
                1..10 => 400.0,
                _ => 18.0 + 8.0 * rng.uniform(),
            };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "planted durations")]
            let duration = (ns * scale) as u64;
            duration
        })
        .collect()
}

fn histogram(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recording");
    group.throughput(Throughput::Elements(SAMPLES as u64));
    let picoseconds = durations(1_000.0);
    group.bench_function("histogram", |bencher| {
        let mut histogram = Histogram::new();
        bencher.iter(|| {
            for ps in black_box(&picoseconds) {
                histogram.record(*ps);
            }
        });
        black_box(histogram.total());
    });

    let ticks = durations(2.6);
    group.bench_function("ticks to histogram and tail", |bencher| {
        let mut histogram = Histogram::new();
        let mut tail: Vec<(u64, u64)> = Vec::with_capacity(SAMPLES);
        let picoseconds = Picoseconds::of(&Clock::open());
        let threshold = black_box(2_600);
        bencher.iter(|| {
            tail.clear();
            for (at, ticks) in black_box(&ticks).iter().enumerate() {
                histogram.record(picoseconds.in_ticks(*ticks));
                if *ticks >= threshold && tail.len() < tail.capacity() {
                    tail.push((at as u64, *ticks));
                }
            }
            black_box(&tail);
        });
        black_box(histogram.total());
    });
    group.finish();
}

/// A whole timed region with and without its recording; the difference is the recording where it happens.
fn region<T: TimeSource>(criterion: &mut Criterion, time: &T, clock: &Clock) {
    let mut group = criterion.benchmark_group("empty timed region");
    group.bench_function("alone", |bencher| {
        bencher.iter(|| {
            let begin = time.begin();
            black_box(time.end().saturating_sub(begin))
        });
    });
    group.bench_function("recorded", |bencher| {
        let mut histogram = Histogram::new();
        let picoseconds = Picoseconds::of(clock);
        bencher.iter(|| {
            let begin = time.begin();
            let ticks = time.end().saturating_sub(begin);
            histogram.record(picoseconds.in_ticks(ticks));
        });
        black_box(histogram.total());
    });
    group.finish();
}

fn regions(criterion: &mut Criterion) {
    let clock = Clock::open();
    match &clock.source {
        Source::Hardware(time) => region(criterion, time, &clock),
        Source::Os(time) => region(criterion, time, &clock),
        Source::Simulated(_) => {}
    }
}

criterion_group!(recording, histogram, regions);
criterion_main!(recording);
