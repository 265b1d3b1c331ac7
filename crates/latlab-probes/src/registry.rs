//! The one ordered list of probes, each with its seconds in the quick, standard and thorough profile.
//!
//! A new probe is one file in the folder of its tier and one entry here; a test compares the two.

use latlab_harness::{Probe, Share};

use crate::alloc::malloc::Malloc;
use crate::alloc::nodes::Nodes;
use crate::alloc::reuse::Reuse;
use crate::clock::read::Read;
use crate::kernel::context_switch::ContextSwitch;
use crate::kernel::mutex::Mutex;
use crate::kernel::noise::Noise;
use crate::kernel::spawn::Spawn;
use crate::kernel::syscall::Syscall;
use crate::kernel::timer::Timer;
use crate::kernel::wakeup::Wakeup;
use crate::memory::alignment::Alignment;
use crate::memory::bandwidth::Bandwidth;
use crate::memory::core_to_core::CoreToCore;
use crate::memory::false_sharing::FalseSharing;
use crate::memory::load_dependent::LoadDependent;
use crate::memory::loaded::Loaded;
use crate::memory::parallelism::Parallelism;
use crate::memory::poke::Poke;
use crate::memory::prefetch::Prefetch;
use crate::memory::stride::Stride;
use crate::network::connect::Connect;
use crate::network::http::{Http, SHARE as HTTP_SHARE};
use crate::network::loaded::Loaded as NetworkLoaded;
use crate::network::roundtrip::RoundTrip;
use crate::network::throughput::Throughput;
use crate::network::transfer::Transfer;
use crate::python::object::Object;
use crate::storage::files::Files;
use crate::storage::first_touch::FirstTouch;
use crate::storage::poke::Poke as FilePoke;
use crate::storage::rate::Rate;
use crate::storage::read_sequential::ReadSequential;
use crate::storage::reread::Reread;
use crate::storage::steady::Steady;
use crate::storage::sync::Durable;
use crate::storage::write_sequential::WriteSequential;
use crate::storage::{read_random, write_random};
use crate::vm::fault::Fault;
use crate::vm::map::Map;
use crate::vm::zero::Zero;

/// A probe and its share of a run.
pub struct Entry {
    /// The probe.
    pub probe: &'static (dyn Probe + Sync),
    /// Its seconds.
    pub share: Share,
}

/// Laying out the disk's test file, before the first probe that needs it: nobody's time.
pub(crate) static LAYOUT: Share = Share([0.3, 2.0, 9.0]);

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
    Entry {
        probe: &Parallelism,
        share: Share([0.3, 1.0, 6.0]),
    },
    Entry {
        probe: &Prefetch,
        share: Share([0.3, 1.2, 6.0]),
    },
    Entry {
        probe: &Alignment,
        share: Share([0.15, 0.7, 4.0]),
    },
    Entry {
        probe: &Loaded,
        share: Share([0.7, 3.0, 20.0]),
    },
    Entry {
        probe: &CoreToCore,
        share: Share([0.5, 2.5, 15.0]),
    },
    Entry {
        probe: &FalseSharing,
        share: Share([0.15, 0.8, 4.0]),
    },
    Entry {
        probe: &Fault,
        share: Share([0.5, 1.6, 10.0]),
    },
    Entry {
        probe: &Map,
        share: Share([0.2, 0.6, 4.0]),
    },
    Entry {
        probe: &Zero,
        share: Share([0.15, 0.4, 3.0]),
    },
    Entry {
        probe: &Malloc,
        share: Share([0.5, 1.8, 10.0]),
    },
    Entry {
        probe: &Nodes,
        share: Share([0.6, 2.1, 10.0]),
    },
    Entry {
        probe: &Reuse,
        share: Share([0.2, 0.8, 4.0]),
    },
    Entry {
        probe: &Object,
        share: Share([0.4, 1.3, 8.0]),
    },
    Entry {
        probe: &Syscall,
        share: Share([0.2, 0.6, 4.0]),
    },
    Entry {
        probe: &ContextSwitch,
        share: Share([0.4, 1.2, 7.0]),
    },
    Entry {
        probe: &Wakeup,
        share: Share([0.2, 0.7, 5.0]),
    },
    Entry {
        probe: &Spawn,
        share: Share([0.3, 0.9, 5.0]),
    },
    Entry {
        probe: &Timer,
        share: Share([0.2, 0.4, 3.0]),
    },
    Entry {
        probe: &Mutex,
        share: Share([0.2, 0.5, 3.0]),
    },
    Entry {
        probe: &Noise,
        share: Share([1.5, 4.0, 30.0]),
    },
    Entry {
        probe: &ReadSequential,
        share: Share([1.8, 5.0, 30.5]),
    },
    Entry {
        probe: &WriteSequential,
        share: Share([1.9, 5.0, 30.5]),
    },
    Entry {
        probe: &read_random::PROBE,
        share: Share([0.8, 2.5, 25.0]),
    },
    Entry {
        probe: &write_random::PROBE,
        share: Share([0.6, 2.0, 25.0]),
    },
    Entry {
        probe: &Rate,
        share: Share([0.6, 2.5, 20.0]),
    },
    Entry {
        probe: &FilePoke,
        share: Share([0.7, 3.0, 20.0]),
    },
    Entry {
        probe: &Durable,
        share: Share([0.6, 2.0, 10.0]),
    },
    Entry {
        probe: &Files,
        share: Share([0.7, 4.0, 20.0]),
    },
    Entry {
        probe: &Reread,
        share: Share([0.1, 0.3, 2.0]),
    },
    Entry {
        probe: &FirstTouch,
        share: Share([0.0, 0.0, 10.0]),
    },
    Entry {
        probe: &Steady,
        share: Share([0.0, 0.0, 45.0]),
    },
    Entry {
        probe: &RoundTrip,
        share: Share([1.4, 3.5, 12.0]),
    },
    Entry {
        probe: &Throughput,
        share: Share([1.3, 3.0, 10.0]),
    },
    Entry {
        probe: &NetworkLoaded,
        share: Share([0.4, 1.5, 10.0]),
    },
    Entry {
        probe: &Connect,
        share: Share([0.3, 1.0, 5.0]),
    },
    Entry {
        probe: &Transfer,
        share: Share([0.8, 2.5, 20.0]),
    },
    Entry {
        probe: &Http,
        share: HTTP_SHARE,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

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
        for tier in [
            "clock", "memory", "vm", "alloc", "python", "kernel", "storage", "network",
        ] {
            // A tier's folder comes with its first probe.
            for file in std::fs::read_dir(source.join(tier)).into_iter().flatten() {
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

    #[test]
    fn no_probe_plans_more_memory_than_it_may_use() {
        let env = testing::env(64 << 20);
        for entry in REGISTRY {
            let bytes = entry.probe.memory_bytes(&env);
            assert!(bytes <= env.memory_bytes, "{}: {bytes}", entry.probe.spec().id);
        }
    }
}
