//! The one ordered list of probes, each with its seconds in the quick, standard and thorough profile.
//!
//! A new probe is one file in the folder of its tier and one entry here;
//! `tests/repo/test_registry_is_the_folder.py` compares the two.

use latlab_harness::{AnyProbe, Erased, Share};

use latlab_probes_compute::alloc::malloc::Malloc;
use latlab_probes_compute::alloc::nodes::Nodes;
use latlab_probes_compute::alloc::reuse::Reuse;
use latlab_probes_compute::clock::read::Read;
use latlab_probes_compute::cpu::mix::Mix;
use latlab_probes_compute::memory::alignment::Alignment;
use latlab_probes_compute::memory::bandwidth::Bandwidth;
use latlab_probes_compute::memory::core_to_core::CoreToCore;
use latlab_probes_compute::memory::false_sharing::FalseSharing;
use latlab_probes_compute::memory::load_dependent::LoadDependent;
use latlab_probes_compute::memory::loaded::Loaded;
use latlab_probes_compute::memory::parallelism::Parallelism;
use latlab_probes_compute::memory::poke::Poke;
use latlab_probes_compute::memory::prefetch::Prefetch;
use latlab_probes_compute::memory::stride::Stride;
use latlab_probes_compute::python::object::Object;
use latlab_probes_compute::vm::fault::Fault;
use latlab_probes_compute::vm::map::Map;
use latlab_probes_compute::vm::zero::Zero;
use latlab_probes_kernel::kernel::context_switch::ContextSwitch;
use latlab_probes_kernel::kernel::mutex::Mutex;
use latlab_probes_kernel::kernel::noise::Noise;
use latlab_probes_kernel::kernel::spawn::Spawn;
use latlab_probes_kernel::kernel::syscall::Syscall;
use latlab_probes_kernel::kernel::timer::Timer;
use latlab_probes_kernel::kernel::wakeup::Wakeup;
use latlab_probes_network::network::connect::Connect;
use latlab_probes_network::network::http::{Http, SHARE as HTTP_SHARE};
use latlab_probes_network::network::loaded::Loaded as NetworkLoaded;
use latlab_probes_network::network::roundtrip::RoundTrip;
use latlab_probes_network::network::throughput::Throughput;
use latlab_probes_network::network::transfer::Transfer;
use latlab_probes_storage::storage::files::Files;
use latlab_probes_storage::storage::first_touch::FirstTouch;
use latlab_probes_storage::storage::poke::Poke as FilePoke;
use latlab_probes_storage::storage::random::Random;
use latlab_probes_storage::storage::rate::Rate;
use latlab_probes_storage::storage::read_random::Read as RandomRead;
use latlab_probes_storage::storage::read_sequential::ReadSequential;
use latlab_probes_storage::storage::reread::Reread;
use latlab_probes_storage::storage::steady::Steady;
use latlab_probes_storage::storage::sync::Durable;
use latlab_probes_storage::storage::write_random::Write as RandomWrite;
use latlab_probes_storage::storage::write_sequential::WriteSequential;

/// A probe and its share of a run.
pub struct Entry {
    /// The probe.
    pub probe: &'static (dyn AnyProbe + Sync),
    /// Its seconds: enough for three blocks of each point. All shares together stay so far below 30, 90 and
    /// 600 s that a run has time for what is around them.
    pub share: Share,
}

/// Laying out the disk's test file, before the first probe that needs it: nobody's time.
pub(crate) static LAYOUT: Share = Share([0.3, 2.0, 9.0]);

/// All probes, in the order in which they run.
pub static REGISTRY: &[Entry] = &[
    Entry { probe: &Erased(Read), share: Share([0.5, 1.0, 3.0]) },
    Entry { probe: &Erased(LoadDependent), share: Share([3.9, 11.0, 60.0]) },
    Entry { probe: &Erased(Poke), share: Share([1.0, 3.0, 25.0]) },
    Entry { probe: &Erased(Bandwidth), share: Share([1.3, 4.0, 20.0]) },
    Entry { probe: &Erased(Stride), share: Share([0.7, 2.0, 15.0]) },
    Entry { probe: &Erased(Parallelism), share: Share([0.3, 1.0, 6.0]) },
    Entry { probe: &Erased(Prefetch), share: Share([0.3, 1.2, 6.0]) },
    Entry { probe: &Erased(Alignment), share: Share([0.15, 0.7, 4.0]) },
    Entry { probe: &Erased(Loaded), share: Share([0.7, 3.0, 20.0]) },
    Entry { probe: &Erased(CoreToCore), share: Share([0.5, 2.5, 15.0]) },
    Entry { probe: &Erased(FalseSharing), share: Share([0.15, 0.8, 4.0]) },
    Entry { probe: &Erased(Fault), share: Share([0.5, 1.6, 10.0]) },
    Entry { probe: &Erased(Map), share: Share([0.2, 0.6, 4.0]) },
    Entry { probe: &Erased(Zero), share: Share([0.15, 0.4, 3.0]) },
    Entry { probe: &Erased(Malloc), share: Share([0.5, 1.8, 10.0]) },
    Entry { probe: &Erased(Nodes), share: Share([0.6, 2.1, 10.0]) },
    Entry { probe: &Erased(Reuse), share: Share([0.2, 0.8, 4.0]) },
    Entry { probe: &Erased(Object), share: Share([0.4, 1.3, 8.0]) },
    Entry { probe: &Erased(Mix), share: Share([0.15, 0.5, 3.0]) },
    Entry { probe: &Erased(Syscall), share: Share([0.2, 0.6, 4.0]) },
    Entry { probe: &Erased(ContextSwitch), share: Share([0.4, 1.2, 7.0]) },
    Entry { probe: &Erased(Wakeup), share: Share([0.2, 0.7, 5.0]) },
    Entry { probe: &Erased(Spawn), share: Share([0.3, 0.9, 5.0]) },
    Entry { probe: &Erased(Timer), share: Share([0.2, 0.4, 3.0]) },
    Entry { probe: &Erased(Mutex), share: Share([0.2, 0.5, 3.0]) },
    Entry { probe: &Erased(Noise), share: Share([1.5, 4.0, 30.0]) },
    Entry { probe: &Erased(ReadSequential), share: Share([1.8, 5.0, 30.5]) },
    Entry { probe: &Erased(WriteSequential), share: Share([1.9, 5.0, 30.5]) },
    Entry { probe: &Erased(Random(RandomRead)), share: Share([0.8, 2.5, 25.0]) },
    Entry { probe: &Erased(Random(RandomWrite)), share: Share([0.6, 2.0, 25.0]) },
    Entry { probe: &Erased(Rate), share: Share([0.6, 2.5, 20.0]) },
    Entry { probe: &Erased(FilePoke), share: Share([0.7, 3.0, 20.0]) },
    Entry { probe: &Erased(Durable), share: Share([0.6, 2.0, 10.0]) },
    Entry { probe: &Erased(Files), share: Share([0.7, 4.0, 20.0]) },
    Entry { probe: &Erased(Reread), share: Share([0.1, 0.3, 2.0]) },
    Entry { probe: &Erased(FirstTouch), share: Share([0.0, 0.0, 10.0]) },
    Entry { probe: &Erased(Steady), share: Share([0.0, 0.0, 45.0]) },
    Entry { probe: &Erased(RoundTrip), share: Share([1.4, 3.5, 12.0]) },
    Entry { probe: &Erased(Throughput), share: Share([1.3, 3.0, 10.0]) },
    Entry { probe: &Erased(NetworkLoaded), share: Share([0.4, 1.5, 10.0]) },
    Entry { probe: &Erased(Connect), share: Share([0.3, 1.0, 5.0]) },
    Entry { probe: &Erased(Transfer), share: Share([0.8, 2.5, 20.0]) },
    Entry { probe: &Erased(Http), share: HTTP_SHARE },
];

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_harness::{Env, Planned, Rank, Support};
    use latlab_probes_testing as testing;
    use latlab_record::Profile;

    #[test]
    fn every_probe_explains_itself() {
        for entry in REGISTRY {
            let spec = entry.probe.spec();
            assert!(spec.id.starts_with(&format!("{}.", spec.tier.name())), "{}", spec.id);
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
            let bytes = entry.probe.plan(&env).memory_bytes;
            assert!(bytes <= env.memory_bytes, "{}: {bytes}", entry.probe.spec().id);
        }
    }

    #[test]
    fn the_seconds_of_all_probes_fit_in_each_profile() {
        let shares: Vec<Share> = REGISTRY.iter().map(|entry| entry.share).collect();
        for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
            let whole_s = latlab_harness::seconds(&latlab_record::Settings { profile, ..Default::default() });
            let pass_s = latlab_harness::pass_seconds(&shares, profile);
            assert!(pass_s <= whole_s + 1e-9, "{profile:?}: {pass_s} of {whole_s} s");
        }
    }

    #[test]
    fn every_probe_proves_its_work_at_its_smallest_points_on_one_cpu_and_on_all() {
        for entry in REGISTRY {
            testing::assert_proved_at_its_smallest_points(entry.probe);
        }
    }

    /// A machine with two CPUs, a third level of 32 MiB and memory enough for whatever is planned.
    #[cfg(target_os = "linux")]
    fn described(profile: Profile) -> Env {
        let mut env = testing::env(16 << 30);
        env.cpus = vec![0, 1];
        env.home_cpu = 0;
        env.settings.profile = profile;
        env.machine.limits.usable_cpus = None;
        env.machine.numa.clear();
        env.machine.caches.retain(|cache| cache.level <= 2);
        env.machine.caches.push(latlab_machine::Cache {
            level: 3,
            kind: latlab_machine::CacheKind::Unified,
            size_bytes: 32 << 20,
            ..env.machine.caches[0].clone()
        });
        let binary = std::env::current_exe().expect("the test binary has a path");
        env.disk = latlab_storage::Disk::new(binary.parent().expect("in a folder"), 4 << 30, 3);
        env
    }

    #[cfg(target_os = "linux")]
    fn plans(env: &Env) -> Vec<(&'static str, Vec<Planned>)> {
        REGISTRY
            .iter()
            .filter(|entry| entry.probe.wanted(&env.settings))
            .filter(|entry| !matches!(entry.probe.supports(env), Support::No(_)))
            .map(|entry| (entry.probe.spec().id, entry.probe.points(env)))
            .collect()
    }

    #[cfg(target_os = "linux")]
    fn of_rank(plans: &[(&'static str, Vec<Planned>)], rank: Rank) -> Vec<(&'static str, Planned)> {
        let points = |(id, points): &(&'static str, Vec<Planned>)| {
            let id = *id;
            let own = points.iter().filter(|planned| planned.rank == rank).cloned();
            own.map(move |planned| (id, planned)).collect::<Vec<_>>()
        };
        plans.iter().flat_map(points).collect()
    }

    /// What rungs of the ladder are made of, without those that need an interpreter, and those of a disk
    /// where there is one.
    #[cfg(target_os = "linux")]
    fn named_by_rungs(env: &Env) -> Vec<&'static str> {
        let mut names = vec![
            "memory.load.dependent",
            "memory.poke",
            "memory.bandwidth",
            "memory.core_to_core",
            "vm.fault",
            "alloc.malloc",
            "kernel.syscall",
            "kernel.context_switch",
            "kernel.mutex",
            "kernel.wakeup",
            "kernel.spawn",
            "network.roundtrip",
            "network.throughput",
            "network.loaded",
        ];
        if testing::has_disk(&Erased(Random(RandomRead)), env) {
            names.extend([
                "storage.read.random",
                "storage.read.sequential",
                "storage.poke",
                "storage.sync",
                "storage.files",
            ]);
        }
        names
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_standard_round_has_a_headline_of_each_rung_within_eight_seconds() {
        let env = described(Profile::Standard);
        let plans = plans(&env);
        let headline = of_rank(&plans, Rank::Headline);
        let has_disk = testing::has_disk(&Erased(Random(RandomRead)), &env);
        let least = if has_disk { 80 } else { 60 };
        assert!((least..=120).contains(&headline.len()), "{}", headline.len());
        for id in named_by_rungs(&env) {
            assert!(headline.iter().any(|(own, _)| *own == id), "{id}");
        }
        let seconds = seconds(&headline);
        assert!(seconds < 8.0, "{seconds}");
        let once: Vec<&str> = of_rank(&plans, Rank::Once).iter().map(|(id, _)| *id).collect();
        assert_eq!(once, ["kernel.noise"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_quick_round_has_the_first_pages_figures_within_three_seconds() {
        let env = described(Profile::Quick);
        let headline = of_rank(&plans(&env), Rank::Headline);
        assert!((15..=45).contains(&headline.len()), "{}", headline.len());
        let mut wanted = vec![
            "memory.load.dependent",
            "memory.bandwidth",
            "vm.fault",
            // No row of that page, but what predictions of programs need of any run.
            "cpu.mix",
            "kernel.syscall",
            "kernel.context_switch",
        ];
        if testing::has_disk(&Erased(Random(RandomRead)), &env) {
            wanted.extend([
                "storage.read.sequential",
                "storage.read.random",
                "storage.sync",
                "storage.files",
            ]);
        }
        let mut found: Vec<&str> = headline.iter().map(|(id, _)| *id).collect();
        found.dedup();
        assert_eq!(found, wanted);
        let seconds = seconds(&headline);
        assert!(seconds < 3.0, "{seconds}");
    }

    #[cfg(target_os = "linux")]
    fn seconds(points: &[(&'static str, Planned)]) -> f64 {
        points.iter().map(|(_, planned)| planned.first_s + planned.setup_s + 2.0 * planned.block_s).sum()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_lasts_or_is_somebody_elses_is_measured_in_one_round() {
        let once = |env: &Env| {
            let mut ids: Vec<&str> = of_rank(&plans(env), Rank::Once).iter().map(|(id, _)| *id).collect();
            ids.dedup();
            ids
        };
        let mut env = described(Profile::Thorough);
        let found = once(&env);
        assert!(found.starts_with(&["memory.poke", "kernel.noise"]), "{found:?}");
        let known = ["memory.poke", "kernel.noise", "storage.poke", "storage.steady"];
        assert!(found.iter().all(|id| known.contains(id)), "{found:?}");

        env = described(Profile::Standard);
        env.settings.url = Some("http://127.0.0.1:9/".to_owned());
        assert!(once(&env).ends_with(&["network.connect", "network.transfer", "network.http"]));
        for (id, points) in plans(&env) {
            let is_ours = |planned: &Planned| planned.point.path.as_deref() == Some("loopback");
            let theirs = ["network.http", "network.transfer", "network.connect"].contains(&id);
            let mut asked = points.iter().filter(|planned| theirs && !is_ours(planned));
            assert!(asked.all(|planned| planned.rank == Rank::Once), "{id}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn no_headline_needs_more_memory_than_one_that_no_cache_holds() {
        for profile in [Profile::Quick, Profile::Standard] {
            for (id, planned) in of_rank(&plans(&described(profile)), Rank::Headline) {
                let bytes = planned.point.working_set_bytes.unwrap_or(0);
                assert!(bytes <= 256 << 20, "{id}: {}", planned.point.label());
            }
        }
    }
}
