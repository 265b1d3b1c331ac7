//! What was computed must be proved, and what was not must be found.

use latlab_clock::SimulatedClock;
use latlab_harness::{MemorySource, SimulatedMemory};
use latlab_probes_testing as testing;

use super::*;

/// In runs of any length, as windows are.
fn run(kernel: &mut impl Batch) -> u64 {
    for ops in [1, 3, 8, 13, 255, 1_000, 5] {
        kernel.run(ops);
    }
    1_285
}

#[test]
fn each_kernel_in_runs_of_any_length_computes_what_is_known() {
    let (mut chain, mut branches, mut interpreter) =
        (IntegerChain::new(5), Branches::new(5), Interpreter::new(5));
    let (mut float, mut sums) = (FloatChain::new(), FloatSums::new());
    let made = [run(&mut chain), run(&mut branches), run(&mut interpreter), run(&mut float), run(&mut sums)];
    assert_eq!(made, [chain.made, branches.made, interpreter.made, float.made, sums.made]);
    assert!(chain.is_right() && branches.is_right() && interpreter.is_right());
    assert!(float.is_right() && sums.is_right());
}

#[test]
fn the_results_are_those_of_two_steps_by_hand() {
    let mut chain = IntegerChain::new(1);
    chain.run(2);
    let once = 6_364_136_223_846_793_005_u64.wrapping_add(1_442_695_040_888_963_407);
    assert_eq!(
        chain.state,
        once.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
    );
    let mut sums = FloatSums::new();
    sums.run(18);
    let steps = sums.sums.map(|sum| sum / 3.0);
    assert_eq!(steps[..3], [2.0, 2.0, 1.0]);
    assert_eq!(steps.iter().sum::<f64>().to_bits(), 18.0_f64.to_bits());
}

#[test]
fn a_step_that_was_not_made_is_found() {
    let (mut chain, mut branches, mut interpreter) =
        (IntegerChain::new(5), Branches::new(5), Interpreter::new(5));
    let (mut float, mut sums) = (FloatChain::new(), FloatSums::new());
    run(&mut chain);
    run(&mut branches);
    run(&mut interpreter);
    run(&mut float);
    run(&mut sums);
    for made in [&mut chain.made, &mut branches.made, &mut interpreter.made, &mut float.made, &mut sums.made]
    {
        *made += 1;
    }
    assert!(!chain.is_right() && !branches.is_right() && !interpreter.is_right());
    assert!(!float.is_right() && !sums.is_right());
}

#[test]
fn a_result_that_changed_is_found() {
    let (mut branches, mut float, mut sums) = (Branches::new(5), FloatChain::new(), FloatSums::new());
    run(&mut branches);
    run(&mut float);
    run(&mut sums);
    branches.sum ^= 1;
    float.sum += 1.0;
    sums.sums[7] -= 1.0;
    assert!(!branches.is_right() && !float.is_right() && !sums.is_right());
}

#[test]
fn a_kernel_that_did_nothing_proves_nothing() {
    assert!(!IntegerChain::new(5).is_right() && !Branches::new(5).is_right());
    assert!(!Interpreter::new(5).is_right() && !FloatChain::new().is_right() && !FloatSums::new().is_right());
    let mut session = Computing { seed: 1, blocks: 0 };
    let point = Which { operation: Operation::Interpreter };
    let mut evidence = Compared::default();
    assert!(!session.proof(&point, &evidence).checks[0].ok);
    evidence.one(true);
    assert!(session.proof(&point, &evidence).checks[0].ok);
    evidence.one(false);
    assert!(!session.proof(&point, &evidence).checks[0].ok);
}

#[test]
fn half_of_the_branches_are_taken() {
    // 10,000 tosses: 50 is one standard deviation.
    let taken = (0..10_000).scan(IntegerChain::new(9), |chain, _| Some(chain.run(1) >> 63)).sum::<u64>();
    assert!((4_700..=5_300).contains(&taken), "{taken}");
}

#[test]
fn every_round_of_every_profile_has_the_same_five_points() {
    let mut env = testing::env_of_one_cpu(1 << 20);
    for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
        env.settings.profile = profile;
        let plan = Mix.plan(&env);
        assert_eq!(
            plan.points.iter().map(|planned| planned.point).collect::<Vec<_>>(),
            OPERATIONS.map(|operation| Which { operation })
        );
        assert!(plan.points.iter().all(|planned| planned.rank == Rank::Headline));
    }
}

#[test]
fn where_memory_is_simulated_it_says_that_it_cannot_run() {
    let clock = SimulatedClock::ideal();
    let memory =
        SimulatedMemory { levels: Vec::new(), translation: Vec::new(), huge_pages_effective: false, clock };
    let env = Env { memory: MemorySource::Simulated(memory), ..testing::env_of_one_cpu(1 << 20) };
    assert!(matches!(Mix.plan(&env).support, Support::No(_)));
}
