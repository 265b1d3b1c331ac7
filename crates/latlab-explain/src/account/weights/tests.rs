use latlab_stats::rng::Rng;

use super::*;
use crate::Category;
use crate::account::interval::of_share;
use crate::rules::Rules;

const MS: f64 = 1e6;
/// What a stretch costs to record that waits often.
const DEAR: f64 = 0.2;
const ROUNDS: u64 = 600;

fn chance(random: &mut Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A program of one thread that is sampled each millisecond, in user code or in the kernel.
struct Program {
    random: Rng,
    stretches: Stretches,
    sees_kernel: bool,
    /// CPU time in the function `wanted`, of all, and what was not recorded.
    truth: (f64, f64),
    unrecorded_ns: f64,
}

impl Program {
    fn begin(seed: u64) -> Self {
        Self {
            random: Rng::new(seed),
            stretches: Stretches::default(),
            sees_kernel: true,
            truth: (0.0, 0.0),
            unrecorded_ns: 0.0,
        }
    }

    fn ran(&mut self, ms: u32, wanted: f64) {
        self.truth.0 += f64::from(ms) * MS * wanted;
        self.truth.1 += f64::from(ms) * MS;
    }

    fn unrecorded(&mut self, ms: u32, cost: f64, wanted: f64) {
        for _ in 0..ms {
            self.stretches.unrecorded(MS, cost * MS);
        }
        self.unrecorded_ns += f64::from(ms) * MS;
        self.ran(ms, wanted);
    }

    fn recorded(&mut self, ms: u32, cost: f64, wanted: f64) {
        for from in (0..ms).step_by(4) {
            let mut kept = Kept::default();
            let long = 4.min(ms - from);
            for _ in 0..long {
                let name = if chance(&mut self.random) < wanted { "wanted" } else { "other" };
                if self.sees_kernel || name == "wanted" {
                    let compute = Rules::built_in().whole(Category::Compute);
                    kept.mix.sample(compute, MS);
                    kept.mix.function(Category::Compute, name, "program", MS);
                    kept.sampled_ns += MS;
                }
            }
            kept.running_ns = f64::from(long) * MS;
            self.stretches.recorded(kept.running_ns, cost * kept.running_ns, kept);
        }
        self.ran(ms, wanted);
    }

    fn slice(&mut self, ms: u32, cost: f64, wanted: f64) {
        self.stretches.begin_slice();
        self.recorded(ms, cost, wanted);
    }

    /// Share of the function, by how many samples it is known, and the truth.
    fn end(self) -> (f64, f64, f64) {
        let weighed = self.stretches.weigh(self.unrecorded_ns, self.sees_kernel);
        let functions = weighed.mix.functions(0.0);
        let of = |wanted: &str| {
            let of = functions.iter().filter(|function| function.1 == wanted);
            of.map(|function| function.3).sum::<f64>()
        };
        let all = if self.sees_kernel { weighed.mix.total().sum } else { weighed.of_ns };
        (of("wanted") / all, weighed.mix.worth(), self.truth.0 / self.truth.1)
    }
}

/// How far the mean is from the truth, how often the interval holds it, and how wide it is, of many runs.
fn many(run: impl Fn(&mut Program)) -> (f64, f64, f64) {
    let (mut off, mut held, mut width) = (0.0, 0.0, 0.0);
    for seed in 0..ROUNDS {
        let mut program = Program::begin(seed);
        run(&mut program);
        let (share, worth, truth) = program.end();
        let range = of_share(share, worth);
        off += share - truth;
        held += f64::from(u8::from((range.low..=range.high).contains(&truth)));
        width += range.high - range.low;
    }
    let rounds = ROUNDS as f64;
    (off / rounds, held / rounds, width / rounds)
}

#[test]
fn what_is_recorded_from_end_to_end_keeps_its_samples() {
    let mut program = Program::begin(1);
    program.slice(500, 0.0, 0.3);
    let (_, worth, _) = program.end();
    assert!((worth - 500.0).abs() < 1e-6, "{worth}");
}

#[test]
fn a_part_that_waits_often_and_one_that_computes_come_out_at_the_truth() {
    let (off, held, width) = many(|program| {
        for _ in 0..20 {
            program.unrecorded(45, DEAR, 0.1);
            program.slice(5, DEAR, 0.1);
        }
        program.slice(500, 0.0, 0.7);
    });
    assert!(off.abs() < 0.01, "{off}");
    assert!(held >= 0.93, "{held}");
    assert!(width < 0.2, "{width}");
}

#[test]
fn a_slice_that_goes_on_into_the_quiet_part_does_not_stand_for_what_came_before() {
    let (off, held, _) = many(|program| {
        for _ in 0..6 {
            program.unrecorded(60, DEAR, 0.0);
            program.slice(8, DEAR, 0.0);
        }
        program.unrecorded(60, DEAR, 0.0);
        program.slice(8, DEAR, 0.0);
        program.recorded(400, 0.0, 1.0);
    });
    assert!(off.abs() < 0.01 && held >= 0.93, "{off} {held}");
}

#[test]
fn parts_that_take_turns_are_told_apart_by_what_they_cost() {
    let (off, held, _) = many(|program| {
        for turn in 0..40 {
            if turn % 4 == 1 {
                program.unrecorded(15, DEAR, 0.2);
                program.slice(5, DEAR, 0.2);
            } else {
                program.unrecorded(20, DEAR, 0.2);
            }
            program.slice(20, 0.0, 0.9);
        }
    });
    assert!(off.abs() < 0.015 && held >= 0.93, "{off} {held}");
}

#[test]
fn slices_that_differ_from_each_other_make_the_interval_wider() {
    // What was recorded of a part says all of it, but not where the next begins.
    let (off, held, _) = many(|program| {
        for _ in 0..60 {
            let wanted = if chance(&mut program.random) < 0.4 { 1.0 } else { 0.0 };
            program.unrecorded(20, DEAR, wanted);
            program.slice(8, DEAR, wanted);
            program.unrecorded(20, DEAR, wanted);
        }
    });
    assert!(off.abs() < 0.01 && held >= 0.93, "{off} {held}");
    let (off, held, _) = many(|program| {
        for _ in 0..60 {
            for recorded in [false, false, false, false, true] {
                let wanted = if chance(&mut program.random) < 0.4 { 1.0 } else { 0.0 };
                if recorded {
                    program.slice(8, DEAR, wanted);
                } else {
                    program.unrecorded(8, DEAR, wanted);
                }
            }
        }
    });
    assert!(off.abs() < 0.01 && held >= 0.93, "{off} {held}");
}

#[test]
fn what_nothing_like_it_was_recorded_of_is_not_taken_for_what_was() {
    let mut program = Program::begin(1);
    program.unrecorded(100, DEAR, 0.0);
    program.unrecorded(100, 0.0, 0.5);
    program.slice(300, 0.0, 0.5);
    let weighed = program.stretches.weigh(program.unrecorded_ns, true);
    let unlike = weighed.unlike;
    assert!((unlike.of_cpu() - 0.2).abs() < 1e-9, "{unlike:?}");
    assert!((unlike.of_switches() - 1.0).abs() < 1e-9, "{unlike:?}");
    // The others stand for themselves and for what is like them.
    assert!((weighed.of_ns / MS - 400.0).abs() < 1e-6, "{}", weighed.of_ns);
    assert!((weighed.mix.total().sum / MS - 400.0).abs() < 1e-6);
}

#[test]
fn a_moment_around_a_recorded_run_is_as_the_run() {
    let mut program = Program::begin(1);
    program.slice(1, 0.0, 0.5);
    program.stretches.unrecorded(0.3 * MS, 0.1 * MS);
    let weighed = program.stretches.weigh(0.3 * MS, true);
    assert!(weighed.unlike.ns.abs() < 1e-9, "{:?}", weighed.unlike);
    assert!((weighed.of_ns / MS - 1.3).abs() < 1e-9, "{}", weighed.of_ns);
}

#[test]
fn samples_of_user_code_alone_know_how_much_of_all_of_it_there_is() {
    let (off, _, _) = many(|program| {
        program.sees_kernel = false;
        for _ in 0..20 {
            program.unrecorded(45, DEAR, 0.1);
            program.slice(5, DEAR, 0.1);
        }
        program.slice(500, 0.0, 0.7);
    });
    assert!(off.abs() < 0.01, "{off}");
}

#[test]
fn slices_too_short_for_a_sample_are_as_what_was_not_recorded() {
    let (off, held, _) = many(|program| {
        for turn in 0..30 {
            program.unrecorded(20, DEAR, 0.2);
            program.stretches.begin_slice();
            program.stretches.recorded(0.8 * MS, DEAR * 0.8 * MS, Kept::default());
            program.unrecorded(20, DEAR, 0.2);
            if turn % 2 == 0 {
                program.slice(5, DEAR, 0.2);
            }
        }
        program.slice(600, 0.0, 0.9);
    });
    assert!(off.abs() < 0.015 && held >= 0.93, "{off} {held}");
}

#[test]
fn a_long_run_is_kept_in_fewer_stretches() {
    let mut program = Program::begin(7);
    for turn in 0..4000 {
        let wanted = if turn < 2000 { 0.1 } else { 0.9 };
        program.unrecorded(20, DEAR, wanted);
        program.slice(if turn % 3 == 0 { 8 } else { 4 }, DEAR, wanted);
    }
    assert!(program.stretches.list.len() <= MOST);
    let (share, _, truth) = program.end();
    assert!((share - truth).abs() < 0.02, "{share} {truth}");
}

#[test]
fn what_no_scan_met_is_as_all_the_rest() {
    let mut program = Program::begin(3);
    program.unrecorded(1, DEAR, 0.0);
    program.slice(4, DEAR, 0.0);
    program.slice(400, 0.0, 0.5);
    // A hundred milliseconds of processes that came and went.
    program.unrecorded_ns += 100.0 * MS;
    let (share, _, _) = program.end();
    assert!((share - 0.5).abs() < 0.1, "{share}");
}

#[test]
fn without_samples_there_is_nothing_to_weigh() {
    let mut stretches = Stretches::default();
    stretches.unrecorded(10.0 * MS, 0.0);
    stretches.begin_slice();
    stretches.recorded(0.0, 0.0, Kept::default());
    let weighed = stretches.weigh(10.0 * MS, true);
    assert!(weighed.mix.total().sum.abs() < 1e-9 && weighed.mix.worth().abs() < 1e-9);
    assert_eq!(weighed.unlike, Unlike::default(), "other runs may have recorded it");
}
