//! `storage.reread`: the same file read again and again, against its contents kept in memory.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Spec, Support, Tier,
};
use latlab_record::{Header, Point, Profile, Record, Unit, binary_size};
use serde_json::json;

#[cfg_attr(target_os = "linux", path = "reread/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Reread;

static SPEC: Spec = Spec {
    id: "storage.reread",
    tier: Tier::Storage,
    title: "reading a file again against keeping it",
    question: "What does it cost to read the same file again and again instead of keeping what was read?",
    method: "A file of random bytes is written once, and read until the page cache holds all of it. Then, one value each: \
it is opened, read as a whole into memory that is already there, closed, and its bytes are added up (reread); or the bytes of the last reading are added up where they are (kept). \
The adding is in both, because a program that reads wants the bytes; so the difference is the reading alone. Opening, reading, closing and adding have their own distributions.

The disk has no part in it: the kernel's count of bytes fetched from storage must not move. This is the favourable case for reading again; a file that left the page cache in between costs what storage.files calls cold.

Both sums must be that of what was written, so neither can be left out. Memory that a program asks for anew at each reading costs page faults besides (alloc.reuse).",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one whole file, its bytes added up",
    needs: &["a directory on a disk"],
    touches: &["a file of up to 10 MB in a private folder that is removed at the end"],
    saturates: false,
    operations: Operations::Disk,
};

const REREAD: &str = "reread";
const KEPT: &str = "kept";
/// Decimal, as the lesson has it.
const SIZES: [(u64, Profile); 4] = [
    (10_000_000, Profile::Quick),
    (1_000_000, Profile::Standard),
    (10_000, Profile::Standard),
    (100_000, Profile::Thorough),
];

fn sizes(env: &Env) -> Vec<u64> {
    SIZES
        .iter()
        .filter(|(_, first)| match env.settings.profile {
            Profile::Quick => *first == Profile::Quick,
            Profile::Standard => *first != Profile::Thorough,
            Profile::Thorough => true,
        })
        .map(|(size, _)| *size)
        .collect()
}

impl AnyProbe for Reread {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let Some(reason) = super::refusal(env) {
            return Support::No(reason);
        }
        let need = self.memory_bytes(env);
        if env.memory_bytes < need {
            return Support::No(format!(
                "needs {} of memory; {} may be used here",
                binary_size(need),
                binary_size(env.memory_bytes)
            ));
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let mut points = Vec::new();
        for file_bytes in sizes(env) {
            for operation in [REREAD, KEPT] {
                points.push(Planned {
                    // What the page cache gives.
                    rank: Rank::Curve,
                    block_s: (readings(file_bytes) * file_bytes) as f64 / 8e9,
                    ..Planned::new(Point {
                        file_bytes: Some(file_bytes),
                        operation: Some(operation.to_owned()),
                        ..Point::default()
                    })
                });
            }
        }
        super::announce_laid_out(&mut points, |point| Some((point.file_bytes?, point.file_bytes?)));
        points
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        SIZES[0].0 + (1 << 20)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let p50 = |size, operation| {
            let at = |result: &&PointResult| {
                result.point.file_bytes == Some(size) && result.point.operation.as_deref() == Some(operation)
            };
            results.iter().find(at).map(|result| result.p50)
        };
        let ratios: Vec<_> = SIZES
            .into_iter()
            .filter_map(|(size, _)| {
                let (again, kept) = (p50(size, REREAD)?, p50(size, KEPT)?);
                Some(
                    json!({ "file_bytes": size, "reread_ns": again, "kept_ns": kept, "ratio": again / kept }),
                )
            })
            .collect();
        if ratios.is_empty() {
            return Vec::new();
        }
        let findings = json!({ "ratios": ratios });
        vec![SPEC.derived(findings)]
    }
}

/// Readings in one block: a few of a large file, some hundred of a small one.
fn readings(file_bytes: u64) -> u64 {
    (16_000_000 / file_bytes.max(1)).clamp(2, 200)
}
