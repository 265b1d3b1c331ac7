//! Linux: client and server in processes of their own.

use std::time::Duration;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Check, Point, Work};
use serde_json::json;

use super::{RESOLVE, TLS, block};
use crate::peer::{Connects, EMULATED, Pairs, Stamped};

pub(super) const HERE: bool = true;
/// A connection takes round trips of at most 2 s.
const PATIENCE: Duration = Duration::from_secs(10);
/// A whole handshake on a slow machine.
const TAIL_NS: f64 = 5e6;

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Connections {
        env,
        stamps: Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a connection needs a real clock".to_owned()))?,
        pairs: Pairs::new(env),
        all: Vec::new(),
        selected: None,
    }))
}

/// What was found at a point.
struct Found {
    point: Point,
    opened: u64,
    /// Connections without all of their phases.
    incomplete: u64,
    least_ns: u64,
}

pub(super) struct Connections<'env> {
    env: &'env Env,
    stamps: Stamps,
    pub(super) pairs: Pairs<'env>,
    all: Vec<Found>,
    selected: Option<usize>,
}

/// The two ends of the phase that a point is about.
fn of(operation: &str, stamped: &Stamped) -> (u64, u64) {
    match operation {
        RESOLVE => (stamped.begun, stamped.resolved),
        TLS => (stamped.connected, stamped.secured),
        _ => (stamped.resolved, stamped.connected),
    }
}

impl AnySession for Connections<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let path = point.path.as_deref().unwrap_or_default();
        let route = &self.pairs.on(path)?.route;
        if path == EMULATED && !route.delays_packets() {
            let why = &route.findings()["why_not_better"][0];
            return Err(ProbeError::Other(format!(
                "a server that waits before it answers delays no handshake, and no path can be had: {}",
                why.as_str().unwrap_or_default()
            )));
        }
        let known = self.all.iter().position(|found| found.point == *point);
        self.selected = Some(known.unwrap_or_else(|| {
            self.all.push(Found { point: point.clone(), opened: 0, incomplete: 0, least_ns: u64::MAX });
            self.all.len() - 1
        }));
        Ok(())
    }

    fn block(&mut self, data: &mut Block) -> Result<(), ProbeError> {
        let Some(found) = self.selected.and_then(|place| self.all.get_mut(place)) else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        data.set_waits();
        let (count, one_s) = block(self.env, &found.point);
        data.set_tail_threshold_ns(TAIL_NS + 2e9 * one_s);
        let operation = found.point.operation.clone().unwrap_or_default();
        let path = found.point.path.clone().unwrap_or_default();
        let asked = Connects {
            name: (operation == RESOLVE).then(|| "localhost".to_owned()),
            tls: operation == TLS,
            count,
            patience: PATIENCE,
        };
        let pair = self.pairs.on(&path)?;
        let begun = self.stamps.begin();
        let stamped = match pair.client.connect(&asked) {
            Ok(stamped) => stamped,
            Err(error) => {
                self.pairs.give_up(&path);
                return Err(error);
            }
        };
        pair.connections += stamped.len() as u64;
        found.opened += stamped.len() as u64;
        for own in &stamped {
            let (from, to) = of(&operation, own);
            if to == 0 || to < from {
                found.incomplete += 1;
                continue;
            }
            found.least_ns = found.least_ns.min(to - from);
            let at = |ns: u64| begun + self.env.clock.ticks(ns as f64);
            data.span(at(from), at(to));
            for (name, from, to) in own.phases() {
                data.channel(name, at(from), at(to));
            }
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(found) = self.all.iter().find(|found| found.point == *point) else {
            return Proof::default();
        };
        let path = point.path.as_deref().unwrap_or_default();
        let Ok(pair) = self.pairs.on(path) else {
            return Proof::default();
        };
        let mut checks: Vec<Check> = pair.counted().into_iter().collect();
        checks.push(Check {
            name: "all phases".to_owned(),
            ok: found.incomplete == 0 && found.opened > 0,
            detail: format!(
                "{} of {} connections had all of their phases",
                found.opened - found.incomplete,
                found.opened
            ),
        });
        let asked_ns = pair.route.findings()["rtt_ns"].as_u64().unwrap_or(0);
        if path == EMULATED && pair.route.delays_packets() {
            checks.push(Check {
                name: "as long as the path".to_owned(),
                ok: found.least_ns >= asked_ns,
                detail: format!("the soonest took {} ns, the path {asked_ns} ns", found.least_ns),
            });
        }
        Proof {
            checks,
            work: Work::default(),
            engine: None,
            flags: pair.route.label().into_iter().collect(),
            findings: Some(json!({
                "route": pair.route.findings(),
                "least_ns": found.least_ns,
            })),
            ..Proof::default()
        }
    }
}
