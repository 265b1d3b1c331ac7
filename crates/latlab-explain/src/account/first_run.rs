//! Whether the first of several runs is one like the others: its caches may have been cold, as theirs are
//! not.

use crate::account::tally::Tally;

/// Runs after the first from which on they show how far runs differ.
const LEAST: usize = 2;

/// What cold caches change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    wall_ns: u64,
    device_bytes: u64,
    major_faults: u64,
}

impl Run {
    pub(crate) fn of(tally: &Tally) -> Self {
        let device_bytes = tally.usage.io.map_or(0, |io| io.read_bytes);
        Self { wall_ns: tally.wall_ns, device_bytes, major_faults: tally.usage.major_faults }
    }
}

/// Why the first run is not put together with the others: in wall time, in bytes from a disk or in page
/// faults that waited for one it lies further above all of them than they are apart.
pub(crate) fn kept_apart(runs: &[Run]) -> Option<String> {
    let (first, others) = runs.split_first()?;
    if others.len() < LEAST {
        return None;
    }
    let wall = Compared::of(first, others, |run| run.wall_ns);
    let bytes = Compared::of(first, others, |run| run.device_bytes);
    let faults = Compared::of(first, others, |run| run.major_faults);
    if ![wall, bytes, faults].iter().any(Compared::is_far_above) {
        return None;
    }
    let mut said = vec![wall.said("wall time", |ns| format!("{:.1} ms", ns as f64 / 1e6))];
    if bytes.is_far_above() {
        said.push(bytes.said("read from a disk", |bytes| format!("{} KiB", bytes >> 10)));
    }
    if faults.is_far_above() {
        said.push(faults.said("page faults that waited for a disk", |faults| faults.to_string()));
    }
    Some(format!(
        "These figures leave out the first of {} runs, whose caches may have been cold: {}.",
        runs.len(),
        said.join(", ")
    ))
}

/// A figure of the first run, and the range of the others'.
#[derive(Clone, Copy)]
struct Compared {
    first: u64,
    low: u64,
    high: u64,
}

impl Compared {
    fn of(first: &Run, others: &[Run], figure: fn(&Run) -> u64) -> Self {
        let low = others.iter().map(figure).min().unwrap_or(0);
        let high = others.iter().map(figure).max().unwrap_or(0);
        Self { first: figure(first), low, high }
    }

    fn is_far_above(&self) -> bool {
        self.first.saturating_sub(self.high) > self.high - self.low
    }

    fn said(&self, what: &str, shown: impl Fn(u64) -> String) -> String {
        let (first, low, high) = (shown(self.first), shown(self.low), shown(self.high));
        let others = if low == high { high } else { format!("{low} to {high}") };
        format!("{what} {first} (the others {others})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wall_ms: u64, device_kib: u64, major_faults: u64) -> Run {
        Run { wall_ns: wall_ms * 1_000_000, device_bytes: device_kib << 10, major_faults }
    }

    #[test]
    fn a_first_run_with_cold_caches_is_kept_apart_and_said() {
        let runs = [run(412, 12_288, 9), run(101, 0, 0), run(110, 16, 0), run(104, 0, 1)];
        assert_eq!(
            kept_apart(&runs).unwrap(),
            "These figures leave out the first of 4 runs, whose caches may have been cold: wall time 412.0 \
                ms (the others 101.0 ms to \
             110.0 ms), read from a disk 12288 KiB (the others 0 KiB to 16 KiB), page faults that waited \
                for a disk 9 (the others 0 to 1)."
        );
        let slow = [run(412, 0, 0), run(101, 0, 0), run(101, 0, 0)];
        assert!(kept_apart(&slow).unwrap().ends_with("cold: wall time 412.0 ms (the others 101.0 ms)."));
    }

    #[test]
    fn each_figure_alone_keeps_it_apart() {
        for first in [run(130, 0, 0), run(105, 4096, 0), run(105, 0, 3)] {
            assert!(kept_apart(&[first, run(101, 0, 0), run(110, 0, 0)]).is_some(), "{first:?}");
        }
    }

    #[test]
    fn a_first_run_like_the_others_is_one_of_them() {
        let (one, other) = (run(101, 0, 1), run(110, 64, 0));
        for first in [run(90, 0, 0), run(105, 32, 1), run(118, 100, 2)] {
            assert_eq!(kept_apart(&[first, one, other]), None, "{first:?}");
        }
    }

    #[test]
    fn two_runs_do_not_show_which_is_unusual() {
        assert_eq!(kept_apart(&[run(412, 12_288, 9), run(101, 0, 0)]), None);
        assert_eq!(kept_apart(&[]), None);
    }
}
