//! Probes of the network: sockets, and what is behind them.

pub mod connect;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod http;
#[cfg(target_os = "linux")]
mod linux;
pub mod loaded;
pub mod roundtrip;
pub mod throughput;
pub mod transfer;

#[cfg(all(test, target_os = "linux"))]
use linux::trial;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Answers, Receives, run, serve_sockets};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use latlab_harness::{AnyProbe, Erased, Plan, Support};
    use latlab_probes_testing as testing;

    /// Each with where both sides are when they have one CPU, where its points say so.
    const PROBES: [(&dyn AnyProbe, Option<&str>); 6] = [
        (&Erased(super::connect::Connect), None),
        (&Erased(super::http::Http), None),
        (&Erased(super::loaded::Loaded), Some("same-cpu")),
        (&Erased(super::roundtrip::RoundTrip), Some("same-cpu")),
        (&Erased(super::throughput::Throughput), Some("anywhere")),
        (&Erased(super::transfer::Transfer), None),
    ];

    #[test]
    fn one_cpu_is_enough_and_is_said_and_without_a_child_process_there_is_no_other_side() {
        let mut env = testing::env_of_one_cpu(64 << 20);
        for (probe, placement) in PROBES {
            let id = probe.spec().id;
            let Plan { support, points, memory_bytes, .. } = probe.plan(&env);
            assert!(
                matches!(&support, Support::Degraded(why) if why.contains("one CPU")),
                "{id}: {support:?}"
            );
            assert!(memory_bytes <= env.memory_bytes && !points.is_empty(), "{id}");
            assert!(points.iter().all(|planned| planned.point.placement.as_deref() == placement), "{id}");
            assert!(points.iter().all(|planned| planned.point.streams <= Some(4)), "{id}");
        }
        env.child = None;
        for (probe, _) in PROBES {
            let plan = probe.plan(&env);
            assert!(matches!(plan.support, Support::No(_)) && plan.points.is_empty(), "{}", probe.spec().id);
        }
    }
}
