use latlab_harness::{AnyProbe as _, Erased, PointResult, Support};
use latlab_probes_testing as testing;
use latlab_record::Record;
use serde_json::json;

use super::*;

/// An interpreter that knows the probe's programs by their text and answers as they would; real ones run them
/// in the tests of the installed command.
struct Reader {
    /// An operation whose program leaves something out.
    skipping: Option<Operation>,
    numpy: bool,
}

struct Answer {
    program: &'static Program,
    elements: u64,
    skips: bool,
    audit: bool,
}

impl Batch for Answer {
    fn run(&mut self, ops: u64) -> u64 {
        let whole =
            if self.audit { ops * self.elements } else { (self.program.expected)(ops, self.elements) };
        whole.wrapping_sub(u64::from(self.skips))
    }
}

struct Version;

impl Batch for Version {
    fn run(&mut self, part: u64) -> u64 {
        [2, 4, 1][usize::try_from(part).expect("small")]
    }
}

impl Interpreter for Reader {
    fn name(&self) -> String {
        "CPython 3.11.7".to_owned()
    }

    fn executable(&self) -> Option<std::path::PathBuf> {
        None
    }

    fn compile(&self, text: &str) -> Result<Box<dyn Batch>, String> {
        if text.contains("PACKAGES = ") {
            assert!(text.contains("PACKAGES = \"/a \\\"strange\\\" folder\""), "{text}");
            return if self.numpy {
                Ok(Box::new(Version))
            } else {
                Err("ModuleNotFoundError: No module named 'numpy'".to_owned())
            };
        }
        for program in PROGRAMS {
            for elements in program.sizes.iter().map(|(elements, _)| *elements).chain([0]) {
                let plain = program.text(elements);
                let audit = text == format!("{plain}\nrun = audit\n");
                if audit || text == plain {
                    return Ok(Box::new(Answer {
                        program,
                        elements,
                        skips: self.skipping == Some(program.operation),
                        audit,
                    }));
                }
            }
        }
        Err(format!("no program of this probe: {text}"))
    }
}

fn env(skipping: Option<Operation>, numpy: bool) -> Env {
    Env {
        interpreter: Some(Box::new(Reader { skipping, numpy })),
        packages: Some("/a \"strange\" folder".into()),
        settings: latlab_record::Settings {
            profile: Profile::Standard,
            ..latlab_record::Settings::default()
        },
        ..testing::env_of_one_cpu(64 << 20)
    }
}

#[test]
fn every_program_proves_its_work_on_one_cpu_and_64_mib() {
    let env = env(None, true);
    let points = Erased(Object).points(&env);
    assert!(Object.plan(&env).memory_bytes <= env.memory_bytes);
    let proofs = testing::assert_proved(&Erased(Object), &env, &points);
    for (planned, proof) in points.iter().zip(proofs) {
        let array =
            planned.point.operation.as_deref().is_some_and(|operation| operation.starts_with("numpy-"));
        let engine = if array { "CPython 3.11.7, NumPy 2.4.1" } else { "CPython 3.11.7" };
        assert_eq!(proof.engine.as_deref(), Some(engine));
    }
}

#[test]
fn a_program_that_skips_work_fails_its_proof() {
    let mut env = env(None, true);
    let points = Erased(Object).points(&env);
    for program in PROGRAMS {
        env.interpreter = Some(Box::new(Reader { skipping: Some(program.operation), numpy: true }));
        let planned = points
            .iter()
            .find(|planned| {
                Step::of_point(&planned.point).is_some_and(|step| step.operation == program.operation)
            })
            .expect("planned");
        let outcomes = latlab_harness::measure_once(&Erased(Object), &env, std::slice::from_ref(planned));
        let failed = outcomes[0].1.checks.iter().any(|check| !check.ok);
        assert!(failed, "{:?}", program.operation);
    }
}

#[test]
fn without_numpy_its_points_fail_with_the_reason_and_the_others_go_on() {
    let records = testing::records(&Erased(Object), &env(None, false));
    let reason = |record: &Record| record.error.as_ref().map(|error| error.text.clone());
    let failed: Vec<String> = records.iter().filter_map(reason).collect();
    assert!(failed.iter().any(|text| text.contains("No module named 'numpy'")), "{failed:?}");
    assert!(records.iter().any(|record| record.summary.is_some()));
}

#[test]
fn where_the_folder_of_numpy_is_unknown_no_array_is_offered() {
    let mut env = env(None, true);
    env.packages = None;
    let plan = Object.plan(&env);
    assert!(matches!(plan.support, Support::Degraded(reason) if reason.contains("NumPy")));
    let is_array = |point| Program::of(point).is_none_or(|program| program.numpy);
    assert!(!plan.points.iter().any(|planned| is_array(&planned.point)));
}

#[test]
fn the_core_alone_has_no_interpreter() {
    let env = testing::env_of_one_cpu(64 << 20);
    assert!(matches!(Object.plan(&env).support, Support::No(reason) if reason.contains("interpreter")));
}

#[test]
fn a_longer_literal_replaces_the_one_in_the_program() {
    let literal = Program::of(&Step { operation: Operation::ListLiteral, elements: None }).expect("known");
    assert!(literal.text(10).contains(LITERAL));
    let text = literal.text(1_000);
    assert!(text.contains("ELEMENTS = 1000\n") && text.contains(", 998, 999]") && !text.contains(LITERAL));
}

#[test]
fn what_follows_says_the_cost_of_an_element_and_the_share_of_the_loop() {
    let result = |operation, elements, p50| PointResult::new(Step { operation, elements }.to_point(), p50);
    let results = [
        result(Operation::Loop, None, 1.0),
        result(Operation::Call, None, 40.0),
        result(Operation::ListAppend, Some(1_000), 32_000.0),
    ];
    let env = env(None, true);
    assert_eq!(
        testing::conclusion(&Erased(Object), &env, &results),
        json!({"loop_ns": 1.0, "operations": [
            {"operation": "call", "elements": null, "p50_ns": 40.0, "per_element_ns": null, "loop_share": {"value": 0.025}},
            {"operation": "list-append", "elements": 1_000, "p50_ns": 32_000.0, "per_element_ns": 32.0, "loop_share": {"value": 0.0005}},
        ]})
    );
    assert!(testing::conclusion(&Erased(Object), &env, &[]).is_null());
}
