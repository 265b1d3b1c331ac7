//! Probes without their types: what the registry lists and the scheduler calls, outside of what is timed.
//!
//! ```text
//! registry ──► AnyProbe ──open──► AnySession      select, block, proof: by the record's point
//!                 ▲                    ▲
//!            Erased<P> ─────────► Erasing<P>      keeps each point of the group with its evidence
//!                 │                    │
//!              P: Probe ───open──► P::Session     block(point, evidence, block), proof(point, evidence)
//! ```
//! What a probe and a session answer is said in [`Probe`] and [`Session`].

use latlab_record::{Header, Point, Record, Settings};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::contract::{Figure, Nothing, PointFields, Probe, Session};
use crate::{
    Block, Env, Plan, Planned, PointResult, ProbeError, Proof, Result, Sampled, Share, Spec, Support,
};

/// The JSON Schemas of a probe's findings; none where it has none.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// Of a point's record.
    pub details: Option<Value>,
    /// Of the conclusion.
    pub findings: Option<Value>,
}

/// A probe without its types, as the scheduler calls it.
pub trait AnyProbe {
    /// See [`Probe::SPEC`].
    fn spec(&self) -> &'static Spec;

    /// See [`Probe::wanted`].
    fn wanted(&self, _settings: &Settings) -> bool {
        true
    }

    /// See [`Probe::share`].
    fn share(&self, _settings: &Settings) -> Option<Share> {
        None
    }

    /// See [`Probe::takes_the_rest`].
    fn takes_the_rest(&self, _settings: &Settings) -> bool {
        false
    }

    /// See [`Probe::plan`].
    fn plan(&self, env: &Env) -> Plan<Point>;

    /// Whether it can run here.
    fn supports(&self, env: &Env) -> Support {
        self.plan(env).support
    }

    /// What it would like to measure.
    fn points(&self, env: &Env) -> Vec<Planned> {
        self.plan(env).points
    }

    /// What findings hold: of a point's record, and of the conclusion.
    fn schemas(&self) -> Schemas {
        Schemas::default()
    }

    /// See [`Probe::open`]. Fails when the system refuses a resource, or a point is none of this probe.
    fn open<'env>(&'env self, env: &'env Env, group: &[Planned]) -> Result<Box<dyn AnySession + 'env>>;

    /// See [`Probe::refine`].
    fn refine(&self, _env: &Env, _results: &[PointResult]) -> Vec<Planned> {
        Vec::new()
    }

    /// See [`Probe::conclude`]: as derived records, with the point that is left out.
    fn conclude(&self, _header: &Header, _results: &[PointResult]) -> Vec<Record> {
        Vec::new()
    }
}

/// The measuring of one group of points without their types: one virtual call a block.
pub trait AnySession {
    /// See [`Session::select`]. Fails when the point cannot be set up, or is none of this group.
    fn select(&mut self, point: &Point) -> Result<()>;

    /// See [`Session::block`]: at the selected point. Fails when the work failed, or no point is selected.
    fn block(&mut self, block: &mut Block) -> Result<()>;

    /// See [`Session::leave_out`].
    fn leave_out(&mut self, _point: &Point, _blocks: &[usize]) {}

    /// See [`Session::proof`]. `sampled`: what the samples of the blocks that count say.
    fn proof(&mut self, point: &Point, sampled: &Sampled) -> Proof;

    /// See [`Session::closing_s`].
    fn closing_s(&self) -> f64 {
        0.0
    }
}

/// A probe as the registry has it.
pub struct Erased<P>(pub P);

impl<P: Probe> AnyProbe for Erased<P> {
    fn spec(&self) -> &'static Spec {
        const { &P::SPEC }
    }

    fn wanted(&self, settings: &Settings) -> bool {
        self.0.wanted(settings)
    }

    fn share(&self, settings: &Settings) -> Option<Share> {
        self.0.share(settings)
    }

    fn takes_the_rest(&self, settings: &Settings) -> bool {
        self.0.takes_the_rest(settings)
    }

    fn plan(&self, env: &Env) -> Plan<Point> {
        let Plan { support, points, memory_bytes, cpus, test_file_bytes } = self.0.plan(env);
        Plan { support, points: points.iter().map(erased).collect(), memory_bytes, cpus, test_file_bytes }
    }

    fn schemas(&self) -> Schemas {
        // Details of a figure are folded from its rounds, so the schema is that of reading.
        let details = schema_of::<P::Details>(SchemaSettings::draft2020_12().for_deserialize());
        let findings = schema_of::<P::Findings>(SchemaSettings::draft2020_12().for_serialize());
        Schemas { details, findings }
    }

    fn refine(&self, env: &Env, results: &[PointResult]) -> Vec<Planned> {
        self.0.refine(env, &figures(results)).iter().map(erased).collect()
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Planned]) -> Result<Box<dyn AnySession + 'env>> {
        let own = |planned: &Planned| {
            P::Point::of_point(&planned.point).ok_or_else(|| ProbeError::no_point(&planned.point))
        };
        let points: Vec<P::Point> = group.iter().map(own).collect::<Result<_, _>>()?;
        let session = self.0.open(env, &points)?;
        let known = group.iter().zip(points).map(|(planned, point)| Known {
            record: planned.point.clone(),
            point,
            evidence: P::Evidence::default(),
        });
        Ok(Box::new(Erasing::<P> { session, points: known.collect(), selected: None }))
    }

    fn conclude(&self, header: &Header, results: &[PointResult]) -> Vec<Record> {
        let findings = self.0.conclude(header, &figures(results));
        let findings = findings.and_then(|findings| serde_json::to_value(findings).ok());
        let left_out = self.0.left_out(header).map(|(point, reason)| P::SPEC.unsupported(point, reason));
        left_out.into_iter().chain(findings.map(|findings| P::SPEC.derived(findings))).collect()
    }
}

/// With all that it refers to in place: types of several probes have the same names. None of [`Nothing`].
fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Option<Value> {
    if T::schema_id() == Nothing::schema_id() {
        return None;
    }
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    Some(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// As the scheduler knows it.
fn erased<P: PointFields>(planned: &Planned<P>) -> Planned {
    let point = planned.point.to_point();
    debug_assert!(P::of_point(&point).as_ref() == Some(&planned.point), "{}", point.label());
    planned.at(point)
}

/// What is a figure of this probe's points.
fn figures<P: Probe>(results: &[PointResult]) -> Vec<Figure<P>> {
    results.iter().filter_map(Figure::of).collect()
}

struct Known<P: Probe> {
    record: Point,
    point: P::Point,
    evidence: P::Evidence,
}

struct Erasing<'env, P: Probe> {
    session: P::Session<'env>,
    points: Vec<Known<P>>,
    selected: Option<usize>,
}

impl<P: Probe> Erasing<'_, P> {
    fn place(&self, point: &Point) -> Result<usize> {
        let place = self.points.iter().position(|known| known.record == *point);
        place.ok_or_else(|| ProbeError::no_point(point))
    }
}

impl<P: Probe> AnySession for Erasing<'_, P> {
    fn select(&mut self, point: &Point) -> Result<()> {
        let place = self.place(point)?;
        self.selected = Some(place);
        self.session.select(&self.points[place].point)
    }

    fn block(&mut self, block: &mut Block) -> Result<()> {
        let Some(place) = self.selected else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        let Known { point, evidence, .. } = &mut self.points[place];
        self.session.block(point, evidence, block)
    }

    fn leave_out(&mut self, point: &Point, blocks: &[usize]) {
        if let Ok(place) = self.place(point) {
            self.session.leave_out(&mut self.points[place].evidence, blocks);
        }
    }

    fn closing_s(&self) -> f64 {
        self.session.closing_s()
    }

    fn proof(&mut self, point: &Point, sampled: &Sampled) -> Proof {
        let Ok(place) = self.place(point) else { return Proof::default() };
        let Known { point, evidence, .. } = &self.points[place];
        let Proof { checks, work, engine, flags, mut findings, causes } = self.session.proof(point, evidence);
        if checks.iter().all(|check| check.ok) {
            findings = self.session.add_samples(findings, sampled);
        }
        let findings = findings.and_then(|details| serde_json::to_value(details).ok());
        Proof { checks, work, engine, flags, findings, causes }
    }
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;
    use latlab_record::{Check, Kind};
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    struct Counting;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Place {
        operation: Way,
        threads: Option<u32>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Way {
        Up,
        UpAndDown,
    }

    #[derive(Clone, Serialize, Deserialize, JsonSchema)]
    struct Counted {
        blocks: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        p50: Option<f64>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Sum {
        blocks: u32,
        points: usize,
    }

    struct Counter;

    const PLACES: [Place; 2] =
        [Place { operation: Way::Up, threads: None }, Place { operation: Way::UpAndDown, threads: Some(2) }];

    impl Probe for Counting {
        type Point = Place;
        type Evidence = u32;
        type Details = Counted;
        type Findings = Sum;
        type Session<'env> = Counter;

        const SPEC: Spec = Spec::planted("test.counting");

        fn plan(&self, _env: &Env) -> Plan<Place> {
            Plan::of(PLACES.map(|place| Planned { block_s: 7.0, ..Planned::new(place) }).to_vec())
                .degraded("slowly")
                .memory(5)
                .cpus(3)
                .test_file(7)
        }

        fn open<'env>(&'env self, _env: &'env Env, _group: &[Place]) -> Result<Counter> {
            Ok(Counter)
        }

        fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Sum> {
            let details = figures.iter().filter_map(|figure| figure.details.as_ref());
            let blocks = details.map(|details| details.blocks).sum();
            (blocks > 0).then_some(Sum { blocks, points: figures.len() })
        }
    }

    impl Session<Counting> for Counter {
        fn block(&mut self, point: &Place, blocks: &mut u32, _block: &mut Block) -> Result<()> {
            *blocks += point.threads.unwrap_or(1);
            Ok(())
        }

        fn proof(&mut self, _point: &Place, blocks: &u32) -> Proof<Counted> {
            let check = Check { name: "counted".to_owned(), ok: *blocks > 0, detail: String::new() };
            Proof::of(vec![check]).with(Counted { blocks: *blocks, p50: None }).by("hand")
        }

        fn add_samples(&self, counted: Option<Counted>, sampled: &Sampled) -> Option<Counted> {
            Some(Counted { p50: sampled.p50, ..counted? })
        }
    }

    fn env() -> Env {
        Env::planted(&SimulatedClock::ideal())
    }

    #[test]
    fn the_plan_is_the_probes_with_points_as_records_have_them() {
        let (probe, env) = (Erased(Counting), env());
        let points = probe.points(&env);
        let reported: Vec<String> = points.iter().map(|planned| json!(planned.point).to_string()).collect();
        assert_eq!(reported, [r#"{"operation":"up"}"#, r#"{"operation":"up-and-down","threads":2}"#]);
        assert!(points.iter().all(|planned| (planned.block_s - 7.0).abs() < f64::EPSILON));
        assert_eq!(probe.supports(&env), Support::Degraded("slowly".to_owned()));
        let Plan { memory_bytes, cpus, test_file_bytes, .. } = probe.plan(&env);
        assert_eq!((memory_bytes, cpus, test_file_bytes), (5, 3, 7));
        assert_eq!(probe.spec().id, "test.counting");
    }

    #[test]
    fn each_point_keeps_the_evidence_of_its_own_blocks() {
        let (probe, env) = (Erased(Counting), env());
        let points = probe.points(&env);
        let mut session = probe.open(&env, &points).expect("nothing is needed");
        let (mut ops, mut threshold) = (None, 0.0);
        let mut block = Block::new(&env.clock, &mut ops, &mut threshold);
        assert!(session.block(&mut block).is_err(), "no point is selected");
        for place in [0, 1, 0, 0] {
            session.select(&points[place].point).expect("of this group");
            session.block(&mut block).expect("it counts");
        }
        for (place, blocks) in [(0, 3), (1, 2)] {
            let proof = session.proof(&points[place].point, &Sampled::default());
            assert_eq!(proof.findings, Some(json!({ "blocks": blocks })));
            assert_eq!((proof.checks.len(), proof.engine.as_deref()), (1, Some("hand")));
        }
    }

    #[test]
    fn what_the_samples_say_is_added_only_where_the_proof_holds() {
        let (probe, env) = (Erased(Counting), env());
        let points = probe.points(&env);
        let mut session = probe.open(&env, &points).expect("nothing is needed");
        let (mut ops, mut threshold) = (None, 0.0);
        session.select(&points[0].point).expect("of this group");
        session.block(&mut Block::new(&env.clock, &mut ops, &mut threshold)).expect("it counts");
        let sampled = Sampled { p50: Some(2.5), ..Sampled::default() };
        let mut details = |place: usize| session.proof(&points[place].point, &sampled).findings;
        assert_eq!(details(0), Some(json!({ "blocks": 1, "p50": 2.5 })));
        assert_eq!(details(1), Some(json!({ "blocks": 0 })), "no block of it was counted");
    }

    #[test]
    fn a_point_of_another_probe_or_of_another_group_is_refused_by_its_name() {
        let (probe, env) = (Erased(Counting), env());
        let sideways = Planned::new(Point { operation: Some("sideways".to_owned()), ..Point::default() });
        let refused =
            probe.open(&env, std::slice::from_ref(&sideways)).err().expect("no point of this probe");
        assert!(refused.to_string().contains("sideways"), "{refused}");
        let points = probe.points(&env);
        let mut session = probe.open(&env, &points[..1]).expect("nothing is needed");
        assert!(session.select(&points[1].point).is_err());
        assert!(session.proof(&points[1].point, &Sampled::default()).checks.is_empty());
    }

    #[test]
    fn the_schemas_are_those_of_details_and_conclusions() {
        let Schemas { details, findings } = Erased(Counting).schemas();
        let required = |schema: Option<Value>| schema.expect("there is one")["required"].clone();
        assert_eq!(required(details), json!(["blocks"]));
        assert_eq!(required(findings), json!(["blocks", "points"]));
        assert_eq!(schema_of::<Nothing>(SchemaSettings::default()), None);
    }

    #[test]
    fn conclusions_are_made_of_the_probes_own_points_and_details() {
        let env = env();
        let mut results: Vec<PointResult> = Erased(Counting)
            .points(&env)
            .into_iter()
            .map(|planned| PointResult::new(planned.point, 1.0))
            .collect();
        results.push(PointResult::new(Point::default(), 1.0));
        let run = include_str!("../../../tests/data/run-rounds.latlab.jsonl").lines().next();
        let header: Header = serde_json::from_str(run.expect("a line")).expect("a header");
        let conclude = |results: &[PointResult]| Erased(Counting).conclude(&header, results);
        assert!(conclude(&results).is_empty(), "nothing was counted");
        results[1].findings = Some(json!({ "blocks": 4 }));
        results[0].findings = Some(json!({ "of an older version": 4 }));
        let concluded = conclude(&results);
        assert_eq!(concluded[0].findings, Some(json!({ "blocks": 4, "points": 2 })));
        assert_eq!((concluded[0].kind, concluded[0].probe.as_str()), (Kind::Derived, "test.counting"));
    }
}
