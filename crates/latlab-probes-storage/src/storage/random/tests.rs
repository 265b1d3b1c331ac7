use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;
use serde_json::{Value, json};

use super::*;
use crate::storage::read_random::Read;
use crate::storage::write_random::Write;

const MEMORY: u64 = 64 << 20;

fn blocks(block_bytes: u64, queue_depth: u32) -> Blocks {
    Blocks { block_bytes, queue_depth, path: DIRECT, engine: Engine::Psync }
}

fn result(block_bytes: u64, depth: u32, rate_per_s: f64) -> Figure<Random<Read>> {
    let point = blocks(block_bytes, depth);
    let details = Details { rate_per_s, second_half_to_first: Some(1.1), ..Details::default() };
    Figure { point, details: Some(details), result: PointResult::new(point.to_point(), 50_000.0) }
}

/// With another rate of its second half.
fn unlike_itself(block_bytes: u64, depth: u32, rate_per_s: f64, times: f64) -> Figure<Random<Read>> {
    let mut own = result(block_bytes, depth, rate_per_s);
    own.details.as_mut().expect("set").second_half_to_first = Some(times);
    own
}

fn concluded(figures: &[Figure<Random<Read>>]) -> Value {
    let findings = Random(Read).conclude(&testing::header(&testing::env(MEMORY)), figures);
    json!(findings.expect("measured"))
}

fn holds(findings: &Value, rule: &str) -> bool {
    let rules = findings["sanity"].as_array().expect("rules");
    let own = rules.iter().find(|own| own["rule"] == rule).expect(rule);
    own["holds"].as_bool().expect("a verdict")
}

#[test]
fn the_points_fit_one_cpu_64_mib_and_the_bytes_of_their_profile() {
    let mut env = testing::env_of_one_cpu(MEMORY);
    for (profile, most_bytes) in
        [(Profile::Quick, 70 << 20), (Profile::Standard, 520 << 20), (Profile::Thorough, 4u64 << 30)]
    {
        env.settings.profile = profile;
        for way in [Way::Read, Way::Write] {
            let points = plan(&env, way, Engine::IoUring);
            assert!(points.len() >= 7, "{profile:?} {way:?}");
            assert!(memory_bytes(&env, way, &points) <= MEMORY, "{profile:?} {way:?}");
            let bytes: u64 = points.iter().map(|planned| planned.run_bytes(profile)).sum();
            assert!(bytes <= most_bytes, "{profile:?} {way:?}: {bytes}");
            assert_eq!(bytes == 0, way == Way::Read);
        }
    }
}

#[test]
fn saturation_is_the_least_depth_with_nine_tenths_of_the_best_rate() {
    let findings = concluded(&[
        result(KIB_4, 32, 66e3),
        result(KIB_4, 1, 16e3),
        result(KIB_4, 16, 61e3),
        result(KIB_4, 4, 37e3),
        result(MIB, 1, 900.0),
        result(MIB, 4, 950.0),
    ]);
    let saturation = findings["saturation"].as_array().expect("a list");
    assert_eq!(saturation.len(), 2);
    assert_eq!(saturation[0]["depth"], 16);
    assert_eq!(saturation[0]["reached"], true);
    assert_eq!(saturation[1]["depth"], 1);
    assert!(holds(&findings, "each block size has its own rate"));
    assert!(holds(&findings, "answered by a device"));
    assert!(holds(&findings, "the first run is like the second"));
}

#[test]
fn a_queue_that_still_gained_is_not_saturated_and_one_rate_for_all_block_sizes_is_a_limiters() {
    let gained = concluded(&[result(KIB_4, 1, 16e3), result(KIB_4, 64, 99e3)]);
    assert_eq!(gained["saturation"][0]["reached"], false);
    let limited = concluded(&[result(KIB_4, 64, 3_000.0), result(KIB_64, 64, 3_000.4)]);
    assert!(!holds(&limited, "each block size has its own rate"));
}

#[test]
fn figures_of_memory_or_of_a_cache_that_filled_are_not_sane() {
    let mut fast = result(KIB_4, 1, 900e3);
    fast.result.p50 = 700.0;
    let findings = concluded(&[fast, unlike_itself(KIB_4, 4, 16e3, 0.2)]);
    assert!(!holds(&findings, "answered by a device"));
    assert!(!holds(&findings, "the first run is like the second"));
}

#[test]
fn a_point_that_is_not_like_itself_is_named_and_the_others_stand() {
    let noisy = unlike_itself(KIB_4, 4, 400e3, 3.0);
    let findings =
        concluded(&[result(KIB_4, 1, 16e3), noisy, result(KIB_4, 32, 66e3), result(KIB_4, 16, 61e3)]);
    let broken: Vec<&Value> =
        findings["sanity"].as_array().expect("rules").iter().filter(|rule| rule["holds"] == false).collect();
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0]["point"]["queue_depth"], 4);
    assert_eq!(findings["saturation"][0]["depth"], 16, "the noisy one is not the best");
}

#[test]
fn the_third_rule_of_disks_is_undecided_and_says_what_this_disk_is() {
    assert!(concluded(&[result(KIB_4, 1, 16e3)]).get("rules").is_none(), "no seeks");
    let mut alone = result(KIB_4, 1, 16e3);
    alone.details.as_mut().expect("set").seek = Some(Seek {
        medium: "solid state".to_owned(),
        reason: "the distance adds nothing that an arm or a rotation would".to_owned(),
        near_ns: 52e3,
        far_ns: 55e3,
        difference_ns: 3e3,
        interval_ns: [-1e3, 6e3],
        rotational_flag: Some(true),
        by_distance: Vec::new(),
    });
    let findings = concluded(&[alone]);
    let rule = &findings["rules"][0];
    assert_eq!(rule["verdict"], "undecided");
    let detail = rule["detail"].as_str().expect("words");
    for part in ["undecided here", "solid state", "52 µs", "-1 µs to 6 µs", "4 to 15 ms", "is ignored"] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::Arc;

    use latlab_harness::{self as harness, AnyProbe as _, Erased, Flight, Proof};
    use latlab_storage::{DeviceSource, Direct, DirectEvidence, TestFile};

    use super::super::work::{Evidence, Session};
    use super::*;
    use crate::disk::{Device, Target};
    use crate::storage::proved_once;

    /// `None` where the build folder is in memory, or has no direct I/O.
    fn target() -> Option<(Env, Target)> {
        crate::planted::target().filter(|(_, target)| target.test.direct.is_ok())
    }

    /// The proof of 4 KiB reads at depth 2.
    fn proof_of(session: &mut Session, seen: &Evidence) -> Proof<Details> {
        harness::Session::<Random<Read>>::proof(session, &blocks(KIB_4, 2), seen)
    }

    /// The same after one block of them.
    fn read_from(env: &Env, target: Target) -> Proof<Details> {
        let mut session = Session::on(env, Way::Read, target);
        proved_once::<Random<Read>>(&mut session, env, &blocks(KIB_4, 2)).expect("read")
    }

    #[test]
    fn every_depth_reads_and_writes_proves_it_and_leaves_the_file_as_it_was() {
        let Some((env, target)) = target() else { return };
        // A whole quick plan of writes is more than this test's budget.
        let writes: Vec<Planned> = Erased(Random(Write))
            .points(&env)
            .into_iter()
            .filter(|planned| planned.point.queue_depth <= Some(4))
            .collect();
        let spent = env.disk.budget().spent_bytes();
        for proof in testing::assert_proved(&Erased(Random(Write)), &env, &writes) {
            assert!(proof.work.bytes > 0);
        }
        let announced: u64 = writes.iter().map(|planned| planned.written_bytes).sum();
        assert!(env.disk.budget().spent_bytes() - spent <= announced);
        let reads = Erased(Random(Read)).points(&env);
        for (proof, planned) in
            testing::assert_proved(&Erased(Random(Read)), &env, &reads).into_iter().zip(&reads)
        {
            let findings = proof.findings.expect("findings");
            let [rate, bytes, depth] = ["rate_per_s", "bytes_per_s", "achieved_depth"]
                .map(|name| findings[name].as_f64().expect("a number"));
            assert!(rate > 0.0 && depth > 0.0 && (bytes / rate / 4096.0 - 1.0).abs() < 1e-9);
            let first_ns = findings["first_reads_ns"].as_f64();
            assert_eq!(first_ns.is_some(), planned.point.queue_depth == Some(1), "{first_ns:?}");
            assert!(first_ns.is_none_or(|ns| ns > 0.0));
            if let Some(seek) = findings["seek"].as_object() {
                for distance in seek["by_distance"].as_array().expect("three") {
                    assert!(distance["reads"].as_u64() >= Some(12), "{distance}");
                }
            }
        }
        let mut whole = vec![0; usize::try_from(target.test.bytes).expect("small")];
        assert_eq!(rustix::io::pread(&*target.test.file, &mut *whole, 0), Ok(whole.len()));
        let contents = target.test.contents.expect("ours");
        assert_eq!(contents.verify(0, &whole), Ok(()));
    }

    #[test]
    fn rates_are_of_the_blocks_that_count() {
        let Some((env, target)) = target() else { return };
        let mut session = Session::on(&env, Way::Read, target);
        let blocks = [900, 100, 920]
            .map(|operations| Flight { operations, elapsed_ns: 1e9, ..Flight::default() })
            .to_vec();
        let mut seen = Evidence { blocks, ..Evidence::default() };
        harness::Session::<Random<Read>>::leave_out(&mut session, &mut seen, &[1]);
        let details = proof_of(&mut session, &seen).findings.expect("details");
        assert!((details.rate_per_s - 910.0).abs() < 1e-9);
    }

    #[test]
    fn a_file_of_zeros_fails_the_proof() {
        let Some((env, target)) = target() else { return };
        let zeros = vec![0; usize::try_from(target.test.bytes).expect("small")];
        assert_eq!(rustix::io::pwrite(&*target.test.file, &zeros, 0), Ok(zeros.len()));
        rustix::fs::fdatasync(&*target.test.file).expect("flushed");
        let proof = read_from(&env, target);
        assert!(testing::failed(&proof).contains(&"contents verified"), "{:?}", proof.checks);
    }

    /// The test file, as if this descriptor were the direct one.
    fn through(target: &Target, evidence: Option<DirectEvidence>) -> Target {
        let test = &target.test;
        let alignment = test.direct.as_ref().expect("asked before").alignment;
        Target::of(Arc::new(TestFile {
            file: Arc::clone(&test.file),
            direct: Ok(Direct { file: Arc::clone(&test.file), alignment, evidence }),
            contents: test.contents,
            bytes: test.bytes,
            extents: test.extents,
        }))
    }

    #[test]
    fn a_path_that_ignores_o_direct_fails_the_proof() {
        let Some((env, target)) = target() else { return };
        // The trial found all that was read in the page cache, and nothing was fetched for it.
        let evidence =
            DirectEvidence { asked_bytes: 64 * 4096, counted_bytes: Some(0), resident_bytes: 64 * 4096 };
        let proof = read_from(&env, through(&target, Some(evidence)));
        assert!(testing::failed(&proof).contains(&"direct"), "{:?}", proof.checks);
    }

    #[test]
    fn a_device_counter_that_does_not_move_fails_the_proof() {
        let Some((env, mut target)) = target() else { return };
        // In the format of a device's, and nobody counts in it.
        let binary = std::env::current_exe().expect("the test binary has a path");
        let stat = binary.with_file_name(format!("still-{}", std::process::id()));
        std::fs::write(&stat, "5 0 40 0 5 0 40 0 0 0 0\n").expect("written");
        let still = DeviceSource::at("still", &stat);
        std::fs::remove_file(&stat).expect("ours");
        target.device = Device::planted(still);
        let proof = read_from(&env, target);
        assert_eq!(testing::failed(&proof), ["device counted"], "{:?}", proof.checks);
    }

    #[test]
    fn where_no_device_can_be_asked_the_record_says_so_and_stands() {
        let Some((env, mut target)) = target() else { return };
        target.device = Device::planted(DeviceSource::of(42));
        let proof = read_from(&env, target);
        assert!(testing::failed(&proof).is_empty(), "{:?}", proof.checks);
        let reported = proof.checks.iter().find(|check| check.name == "device counted");
        assert!(reported.expect("a check").detail.starts_with("no device counter"));
    }
}
