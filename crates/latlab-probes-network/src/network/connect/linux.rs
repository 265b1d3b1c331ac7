//! Linux: client and server in processes of their own.

use std::time::Duration;

use super::{Connect, Opened, Opening, Phase};
use crate::peer::{Connects, Pairs, PathKind, Stamped, check};
use latlab_probes_shared::prelude::*;

pub(super) const HERE: bool = true;
/// A connection takes round trips of at most 2 s.
const PATIENCE: Duration = Duration::from_secs(10);
/// A whole handshake on a slow machine.
const TAIL_NS: f64 = 5e6;

pub(super) fn open<'env>(env: &'env Env, _group: &[Opening]) -> Result<Session<'env>> {
    let stamps = Stamps::of(&env.clock)
        .ok_or_else(|| ProbeError::Other("a connection needs a real clock".to_owned()))?;
    Ok(Session { env, stamps, pairs: Pairs::new(env) })
}

/// What was found at a point.
#[derive(Default)]
pub struct Evidence {
    opened: u64,
    /// Connections without all of their phases.
    incomplete: u64,
    least_ns: Option<u64>,
}

/// Clients and their servers.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    pairs: Pairs<'env>,
}

impl Phase {
    /// Its two ends.
    fn ends(self, stamped: &Stamped) -> (u64, u64) {
        match self {
            Self::Resolve => (stamped.begun, stamped.resolved),
            Self::Tls => (stamped.connected, stamped.secured),
            Self::Tcp => (stamped.resolved, stamped.connected),
        }
    }
}

impl latlab_harness::Session<Connect> for Session<'_> {
    fn select(&mut self, point: &Opening) -> Result<()> {
        let route = &self.pairs.on(point.path)?.route;
        if point.path == PathKind::Emulated && !route.delays_packets() {
            return Err(ProbeError::Other(format!(
                "no path can be emulated, and a server that waits before it answers does not delay \
                    handshakes: {}",
                route.details.why_not_better().unwrap_or_default()
            )));
        }
        Ok(())
    }

    fn block(&mut self, point: &Opening, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        block.set_waits();
        let (count, one_s) = point.block(self.env);
        block.set_tail_threshold_ns(TAIL_NS + 2e9 * one_s);
        let asked = Connects {
            name: (point.operation == Phase::Resolve).then(|| "localhost".to_owned()),
            tls: point.operation == Phase::Tls,
            count,
            patience: PATIENCE,
        };
        let pair = self.pairs.on(point.path)?;
        let begun = self.stamps.begin();
        let stamped = match pair.client.connect(&asked) {
            Ok(stamped) => stamped,
            Err(error) => {
                self.pairs.give_up(point.path);
                return Err(error);
            }
        };
        pair.connections += stamped.len() as u64;
        evidence.opened += stamped.len() as u64;
        for own in &stamped {
            let (from, to) = point.operation.ends(own);
            if to == 0 || to < from {
                evidence.incomplete += 1;
                continue;
            }
            evidence.least_ns = Some(evidence.least_ns.map_or(to - from, |least| least.min(to - from)));
            let at = |ns: u64| begun + self.env.clock.ticks(ns as f64);
            block.span(at(from), at(to));
            for (name, from, to) in own.phases() {
                block.channel(name, at(from), at(to));
            }
        }
        Ok(())
    }

    fn proof(&mut self, point: &Opening, evidence: &Evidence) -> Proof<Opened> {
        let Ok(pair) = self.pairs.on(point.path) else { return Proof::default() };
        let &Evidence { opened, incomplete, least_ns } = evidence;
        let least_ns = least_ns.unwrap_or(u64::MAX);
        let route = pair.route.details.clone();
        let mut checks: Vec<Check> = pair.counted().into_iter().collect();
        checks.push(check(
            "all phases",
            incomplete == 0 && opened > 0,
            format!("{} of {opened} connections had all of their phases", opened - incomplete),
        ));
        checks.extend(pair.as_long_as_the_path(least_ns));
        Proof {
            flags: pair.route.details.label().into_iter().collect(),
            ..Proof::of(checks).with(Opened { route, least_ns: least_ns.into() })
        }
    }
}
