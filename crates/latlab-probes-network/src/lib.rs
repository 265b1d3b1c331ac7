//! Probes of the network: sockets, and what is behind them.

pub mod network;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "there the probes only say what they would measure")
)]
mod peer;

use latlab_probes_shared::Program;

/// The programs that run in child processes of the measuring process, by the id of the probe that asks them,
/// or by what several ask for.
pub static PROGRAMS: &[(&str, Program)] = &[
    #[cfg(target_os = "linux")]
    ("network.client", peer::fetch),
    #[cfg(target_os = "linux")]
    ("network.path", peer::keep),
    #[cfg(target_os = "linux")]
    ("network.roundtrip", network::run::<network::Answers>),
    #[cfg(target_os = "linux")]
    ("network.sockets", network::serve_sockets),
    #[cfg(target_os = "linux")]
    ("network.throughput", network::run::<network::Receives>),
    #[cfg(target_os = "linux")]
    ("network.web", peer::serve),
];

#[cfg(test)]
latlab_probes_testing::as_a_child!(|name, input, output| {
    latlab_probes_shared::run_program(PROGRAMS, name, input, output)
});
