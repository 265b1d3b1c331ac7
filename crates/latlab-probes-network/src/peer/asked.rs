//! What the settings ask for, and who sits where.

use latlab_harness::{Env, Planned, Support};
use latlab_net::PathSpec;
use latlab_record::Settings;

use super::names::PathKind;
use latlab_probes_shared::{no_kernel, other_cpu};
use latlab_stats::count::nearest;

/// Requests and connections to that server come no faster than one in this time, and are so many a point:
/// nobody's server is loaded.
pub(crate) const NAMED_PAUSE_S: f64 = 0.1;
/// About what one of them takes, with the pause before it, s.
pub(crate) const NAMED_ONE_S: f64 = NAMED_PAUSE_S + 0.15;
pub(crate) const NAMED_MOST_BLOCKS: usize = 10;

/// How often a block asks it.
pub(crate) fn named_count(env: &Env) -> u32 {
    env.settings.profile.of([1, 2, 4])
}

/// The plan of a point, with no more blocks than that server may be asked where it is the one that is asked.
pub(crate) fn politely<P>(is_named: bool, planned: Planned<P>) -> Planned<P> {
    let most_blocks = if is_named { NAMED_MOST_BLOCKS } else { planned.most_blocks };
    Planned { most_blocks, ..planned }
}

/// Whether the user's server is asked by TLS; none where no server is named.
pub(crate) fn named_by_tls(settings: &Settings) -> Option<bool> {
    settings.url.as_ref().map(|url| url.starts_with("https://"))
}

/// The path that the settings ask for; none when they leave it at the loopback.
pub(crate) fn path_asked(settings: &Settings) -> Result<Option<PathSpec>, String> {
    let mut spec = match (&settings.distance, settings.delay_ms) {
        (Some(name), _) => PathSpec::preset(name).ok_or_else(|| format!("no distance is named {name:?}"))?,
        (None, Some(ms)) => PathSpec { rtt_us: nearest(ms * 1e3), rate_bit_per_s: None, queue_bytes: None },
        (None, None) if settings.rate_mbit.is_none() => return Ok(None),
        (None, None) => PathSpec { rtt_us: 0, rate_bit_per_s: None, queue_bytes: None },
    };
    spec.rate_bit_per_s = settings.rate_mbit.map(|mbit| nearest(mbit * 1e6));
    Ok(Some(spec))
}

/// The whole part of how often something fits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; large ones saturate")]
pub(crate) fn whole_part(value: f64) -> u32 {
    value as u32
}

/// The paths that this run has, what was asked for first.
pub(crate) fn paths(settings: &Settings) -> Vec<PathKind> {
    let named = settings.url.is_some().then_some(PathKind::Url);
    let emulated = matches!(path_asked(settings), Ok(Some(_))).then_some(PathKind::Emulated);
    named.into_iter().chain(emulated).chain([PathKind::Loopback]).collect()
}

/// Whether probes with a client and a server in processes of their own can run. `here` is whether they were
/// written for this system.
pub(crate) fn support(here: bool, env: &Env) -> Support {
    if let Err(reason) = path_asked(&env.settings) {
        return Support::No(reason);
    }
    support_beside(here, env, "child processes", "client and server share it")
}

/// Whether probes with these child processes can run, and what is lost on one CPU.
pub(crate) fn support_beside(here: bool, env: &Env, children: &str, on_one_cpu: &str) -> Support {
    if let Some(reason) = no_kernel(here, env) {
        return Support::No(reason);
    }
    if env.child.is_none() {
        return Support::No(format!("needs {children}, which cannot be started here"));
    }
    if other_cpu(env).is_none() {
        return Support::Degraded(format!("this process may use one CPU: {on_one_cpu}"));
    }
    Support::Yes
}

/// Who runs where: a client on the CPU that measures, its server on another one, a path on those that are
/// left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seats {
    pub(crate) client: u32,
    pub(crate) server: u32,
    pub(crate) path: Vec<u32>,
}

impl Seats {
    pub(crate) fn of(env: &Env) -> Self {
        let server = other_cpu(env).unwrap_or(env.home_cpu);
        let mut path: Vec<u32> =
            env.cpus.iter().copied().filter(|cpu| *cpu != env.home_cpu && *cpu != server).collect();
        if path.is_empty() {
            path.push(server);
        }
        Self { client: env.home_cpu, server, path }
    }
}
