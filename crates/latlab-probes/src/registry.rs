//! The one ordered list of probes, each with its seconds in the quick, standard and thorough profile.
//!
//! A new probe is one file in the folder of its tier and one entry here; a test compares the two.

use latlab_harness::{Probe, Share};

use crate::clock::read::Read;
use crate::memory::bandwidth::Bandwidth;
use crate::memory::load_dependent::LoadDependent;
use crate::memory::poke::Poke;
use crate::memory::stride::Stride;

/// A probe and its share of a run.
pub struct Entry {
    /// The probe.
    pub probe: &'static (dyn Probe + Sync),
    /// Its seconds.
    pub share: Share,
}

/// All probes, in the order in which they run.
pub static REGISTRY: &[Entry] = &[
    Entry {
        probe: &Read,
        share: Share([0.5, 1.0, 3.0]),
    },
    Entry {
        probe: &LoadDependent,
        share: Share([4.0, 11.0, 60.0]),
    },
    Entry {
        probe: &Poke,
        share: Share([1.0, 3.0, 25.0]),
    },
    Entry {
        probe: &Bandwidth,
        share: Share([1.3, 4.0, 20.0]),
    },
    Entry {
        probe: &Stride,
        share: Share([0.7, 2.0, 15.0]),
    },
];

#[cfg(test)]
mod tests {
    use latlab_clock::Clock;
    use latlab_harness::{Env, MemorySource, Support, measure_once};
    use latlab_record::{Profile, Settings};

    use super::*;

    /// `memory.load.dependent` lives in `src/memory/load_dependent.rs`.
    fn file_of(id: &str) -> String {
        let (tier, rest) = id.split_once('.').expect("ids have a tier");
        format!("{tier}/{}.rs", rest.replace('.', "_"))
    }

    #[test]
    fn the_registry_and_the_folders_name_the_same_probes() {
        let mut listed: Vec<String> = REGISTRY
            .iter()
            .map(|entry| file_of(entry.probe.spec().id))
            .collect();
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut present = Vec::new();
        for tier in ["clock", "memory"] {
            for file in std::fs::read_dir(source.join(tier)).expect("the tier has a folder") {
                let name = file.expect("readable").file_name().into_string().expect("UTF-8");
                if name != "mod.rs"
                    && std::path::Path::new(&name)
                        .extension()
                        .is_some_and(|own| own == "rs")
                {
                    present.push(format!("{tier}/{name}"));
                }
            }
        }
        listed.sort();
        present.sort();
        assert_eq!(listed, present);
    }

    #[test]
    fn every_probe_explains_itself() {
        for entry in REGISTRY {
            let spec = entry.probe.spec();
            assert!(
                spec.id.starts_with(&format!("{}.", spec.tier.name())),
                "{}",
                spec.id
            );
            assert!(spec.question.ends_with('?'), "{}", spec.id);
            assert!(spec.method.len() > 200, "{}: a method is paragraphs", spec.id);
            assert!(
                !spec.title.is_empty() && spec.method_version > 0 && !spec.touches.is_empty(),
                "{}",
                spec.id
            );
        }
    }

    /// This machine with 64 MiB for the probes.
    fn small_env() -> Env {
        let machine = latlab_machine::describe(std::path::Path::new("."));
        let cpu = machine.limits.allowed_cpus.first().copied().unwrap_or(0);
        Env {
            machine,
            clock: Clock::open(),
            settings: Settings {
                profile: Profile::Quick,
                ..Settings::default()
            },
            cpus: vec![cpu],
            home_cpu: cpu,
            memory_bytes: 64 << 20,
            memory: MemorySource::Real,
            interpreter: None,
        }
    }

    #[test]
    fn every_probe_proves_its_work_at_its_smallest_points() {
        let env = small_env();
        for entry in REGISTRY {
            let id = entry.probe.spec().id;
            assert!(!matches!(entry.probe.supports(&env), Support::No(_)), "{id}");
            let mut points = entry.probe.points(&env);
            points.sort_by_key(|planned| planned.point.working_set_bytes);
            points.truncate(8);
            let outcomes = measure_once(entry.probe, &env, &points);
            for (planned, (samples, proof)) in points.iter().zip(outcomes) {
                let label = planned.point.label();
                assert!(samples > 0, "{id}: {label} has no samples");
                assert!(!proof.checks.is_empty(), "{id}: {label} proves nothing");
                // Whether huge pages are to be had is a matter of the machine, not of the work.
                for check in proof
                    .checks
                    .iter()
                    .filter(|check| check.name != "huge pages obtained")
                {
                    assert!(check.ok, "{id}: {label}: {} ({})", check.name, check.detail);
                }
            }
        }
    }

    #[test]
    fn no_probe_plans_more_memory_than_it_may_use() {
        let env = small_env();
        for entry in REGISTRY {
            let bytes = entry.probe.memory_bytes(&env);
            assert!(bytes <= env.memory_bytes, "{}: {bytes}", entry.probe.spec().id);
        }
    }
}
