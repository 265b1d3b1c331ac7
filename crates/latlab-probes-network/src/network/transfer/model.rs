//! What a transfer should take: round trips, a connection that starts slowly, bytes over a rate.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

/// Bytes of a segment's data on a path of 1500-byte packets, with TCP's time stamps (RFC 7323).
const SEGMENT_BYTES: f64 = 1448.0;
/// Segments that a new connection may have under way (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;
/// An answer's head, about.
const HEAD_BYTES: f64 = 130.0;
/// How much faster than it has seen bytes arrive BBR sends while it looks for the rate: 2 / ln 2, less the
/// margin of one in a hundred (Linux, `bbr_high_gain` and `bbr_pacing_margin_percent`).
const STARTUP_GAIN: f64 = 2.885 * 0.99;

/// How TCP lets a new connection get faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// The window doubles with each round trip and leaves at once: Reno, CUBIC.
    Doubling,
    /// The window doubles too, but leaves at a pace: BBR, while it starts.
    Paced,
}

impl Growth {
    /// By the name of the congestion control.
    pub(super) fn of(congestion: Option<&str>) -> Self {
        if congestion.is_some_and(|name| name.starts_with("bbr")) { Self::Paced } else { Self::Doubling }
    }
}

/// What a path is like, as far as transfers are concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    pub(super) rtt_ns: f64,
    /// Bytes of files that one connection gets through in a second when it has been going on; none where
    /// nobody knows.
    pub(super) bytes_per_s: Option<f64>,
}

/// What a model says of one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Predicted {
    /// Round trips that nothing hides: of the handshakes, of the request, and of a window that is too small
    /// or that leaves at a pace.
    pub(super) round_trips: f64,
    /// Of these, those that a connection spends on starting slowly, or on its pace; no whole number where
    /// windows leave at a pace.
    pub(super) slow_start: f64,
    /// Time beside the round trips in which the rate is what limits, ns.
    pub(super) link_ns: f64,
}

impl Predicted {
    pub(super) fn ns(&self, rtt_ns: f64, floor_ns: f64) -> f64 {
        floor_ns + self.round_trips * rtt_ns + self.link_ns
    }
}

/// A transfer on a connection: `handshakes` are round trips before its request (1 for TCP, 1 more for TLS
/// 1.3); 0 on one that is kept, whose window is taken to be as wide as it needs, and whose pace, where it has
/// one, to be that of files like this one.
pub(super) fn predict(way: Way, file_bytes: f64, handshakes: f64, growth: Growth) -> Predicted {
    let byte_ns = way.bytes_per_s.map_or(0.0, |rate| 1e9 / rate);
    let mut left = file_bytes + HEAD_BYTES;
    let mut predicted = Predicted { round_trips: handshakes + 1.0, slow_start: 0.0, link_ns: 0.0 };
    if growth == Growth::Paced && way.rtt_ns > 0.0 {
        let (unhindered_ns, hindered_ns) = if handshakes > 0.0 {
            let gap_ns = byte_ns * SEGMENT_BYTES;
            (paced(way.rtt_ns, 0.0, left, STARTUP_GAIN), paced(way.rtt_ns, gap_ns, left, STARTUP_GAIN))
        } else {
            let own_ns = kept_pace(left) * way.rtt_ns;
            (own_ns, own_ns.max(left * byte_ns))
        };
        predicted.slow_start = unhindered_ns / way.rtt_ns;
        predicted.round_trips += predicted.slow_start;
        predicted.link_ns = (hindered_ns - unhindered_ns).max(0.0);
        return predicted;
    }
    if handshakes > 0.0 {
        let mut window = FIRST_WINDOW * SEGMENT_BYTES;
        // Each answer to a window lets twice as much go, until the link is never idle between two of them.
        while left > window && window * byte_ns < way.rtt_ns {
            left -= window;
            window *= 2.0;
            predicted.slow_start += 1.0;
        }
        predicted.round_trips += predicted.slow_start;
    }
    predicted.link_ns = left * byte_ns;
    predicted
}

/// Round trips from the first segment's sending to the last one's on a kept connection that BBR paces and
/// that carries one such file after the other: what it sent in `x` round trips is acknowledged after `1 +
/// x`, which is the best rate that it sees, and the next leaves at the gain times that: `x = (1 + x) / gain`.
fn kept_pace(bytes: f64) -> f64 {
    let segments = (bytes / SEGMENT_BYTES).ceil();
    // The first one waits for nothing.
    (segments - 1.0) / segments / (STARTUP_GAIN - 1.0)
}

/// A segment under way, as the sender remembers it.
struct Sent {
    acknowledged_ns: f64,
    ns: f64,
    /// What had arrived when it was sent, and when that was known.
    delivered: f64,
    delivered_ns: f64,
    /// When the segment was sent whose arrival was known last.
    earlier_ns: f64,
}

/// From the first segment's sending to the last one's leaving the link, ns, on a connection that starts as
/// BBR does; `gap_ns` is what the link takes for a segment. Segment by segment, because the pace follows from
/// how fast the last ones arrived, which follows from the pace. As Linux does it (`tcp_rate.c`, `tcp_bbr.c`,
/// `tcp_output.c`): the first ten leave at once; each arrival lets two more go, no sooner than the pace
/// allows; the pace is the best rate of delivery seen over a round trip, times `gain`.
fn paced(rtt_ns: f64, gap_ns: f64, bytes: f64, gain: f64) -> f64 {
    let segments = (bytes / SEGMENT_BYTES).ceil();
    let (mut window, mut sent, mut delivered) = (FIRST_WINDOW, 0.0, 0.0);
    let (mut delivered_ns, mut earlier_ns, mut allowed_ns) = (0.0_f64, 0.0_f64, 0.0_f64);
    let (mut now_ns, mut left_ns) = (0.0_f64, 0.0_f64);
    let mut best = FIRST_WINDOW / rtt_ns;
    let mut under_way: VecDeque<Sent> = VecDeque::new();
    while sent < segments {
        let room = (under_way.len() as f64) < window;
        if room && allowed_ns <= now_ns {
            if under_way.is_empty() {
                (delivered_ns, earlier_ns) = (now_ns, now_ns);
            }
            left_ns = left_ns.max(now_ns) + gap_ns;
            under_way.push_back(Sent {
                acknowledged_ns: left_ns + rtt_ns,
                ns: now_ns,
                delivered,
                delivered_ns,
                earlier_ns,
            });
            sent += 1.0;
            if sent >= FIRST_WINDOW {
                allowed_ns = now_ns + 1.0 / (gain * best);
            }
            continue;
        }
        let arrives_ns = under_way.front().map_or(f64::INFINITY, |own| own.acknowledged_ns);
        if room && allowed_ns < arrives_ns {
            now_ns = allowed_ns;
            continue;
        }
        let Some(own) = under_way.pop_front() else { break };
        now_ns = own.acknowledged_ns;
        delivered += 1.0;
        window += 1.0;
        (delivered_ns, earlier_ns) = (now_ns, own.ns);
        let took_ns = (own.ns - own.earlier_ns).max(now_ns - own.delivered_ns);
        // What came in less than a round trip is a burst, no rate.
        if took_ns >= 0.999 * rtt_ns {
            best = best.max((delivered - own.delivered) / took_ns);
        }
    }
    left_ns
}

/// The same law with the round trip and what is paid once fitted to measured transfers:
/// `time = floor + round_trips * rtt + link`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) floor_ns: f64,
    pub(super) rtt_ns: f64,
}

/// Least relative squares over (prediction, measured ns); none with fewer than three transfers or all of as
/// many round trips.
pub(super) fn fit(measured: &[(Predicted, f64)]) -> Option<Fit> {
    if measured.len() < 3 {
        return None;
    }
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (predicted, ns) in measured {
        let weight = 1.0 / (ns * ns);
        let value = ns - predicted.link_ns;
        w += weight;
        x += weight * predicted.round_trips;
        y += weight * value;
        xx += weight * predicted.round_trips * predicted.round_trips;
        xy += weight * predicted.round_trips * value;
    }
    let scale = w * xx - x * x;
    if scale <= 1e-9 * w * xx {
        return None;
    }
    let rtt_ns = (w * xy - x * y) / scale;
    Some(Fit { rtt_ns, floor_ns: (y - rtt_ns * x) / w })
}

/// What limits a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// Whether there is never more than one: then the two sides take turns.
    pub(super) alone: bool,
    /// Share of its time in which the client's, and the server's, process had a CPU.
    pub(super) client_cpu: f64,
    pub(super) server_cpu: f64,
    /// Bytes of files a second, all transfers together.
    pub(super) goodput: f64,
    /// What one connection that has been going on gets through; none where it was not measured.
    pub(super) throughput: Option<f64>,
    /// Median of the time until the first byte of the answer, and of all of it, ns.
    pub(super) until_first_byte_ns: f64,
    pub(super) all_ns: f64,
}

/// A CPU that is busy for so much of the time is what limits.
const BUSY: f64 = 0.85;
/// So near to what the path lets through, the path is what limits.
const NEAR: f64 = 0.8;

/// What limits, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::enum_variant_names, reason = "so records name it")]
pub(super) enum Verdict {
    ServerBound,
    ClientBound,
    LinkBound,
    RoundTripBound,
    SlowStartBound,
}

/// The first that fits: a CPU, the link, waiting for the first byte, the start of the connection.
pub(super) fn verdict(found: &Evidence) -> Verdict {
    let busy = if found.alone {
        found.server_cpu + found.client_cpu
    } else {
        found.server_cpu.max(found.client_cpu)
    };
    if busy >= BUSY {
        return if found.server_cpu >= found.client_cpu {
            Verdict::ServerBound
        } else {
            Verdict::ClientBound
        };
    }
    if found.throughput.is_some_and(|throughput| found.goodput >= NEAR * throughput) {
        return Verdict::LinkBound;
    }
    if found.until_first_byte_ns >= 0.5 * found.all_ns {
        Verdict::RoundTripBound
    } else {
        Verdict::SlowStartBound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Way = Way { rtt_ns: 20e6, bytes_per_s: None };

    #[test]
    fn round_trips_of_a_new_connection_are_those_of_its_windows() {
        let of = |bytes: f64| predict(FAR, bytes, 1.0, Growth::Doubling).round_trips;
        // 10, 30, 70, 150 segments have gone after 1, 2, 3, 4 windows.
        for (bytes, round_trips) in [
            (1024.0, "2"),
            (30.0 * 1448.0 - 130.0, "3"),
            (30.0 * 1448.0, "4"),
            (102_400.0, "5"),
            (1_048_576.0, "8"),
        ] {
            assert_eq!(of(bytes).to_string(), round_trips, "{bytes}");
        }
        let round_trips = |bytes: f64, handshakes: f64| {
            predict(FAR, bytes, handshakes, Growth::Doubling).round_trips.to_string()
        };
        assert_eq!(round_trips(1024.0, 2.0), "3");
        assert_eq!(round_trips(1_048_576.0, 0.0), "1");
    }

    #[test]
    fn a_pace_without_limit_is_doubling_and_a_pace_adds_parts_of_round_trips() {
        for bytes in [1024.0, 102_530.0, 1_048_706.0, 10e6] {
            let unpaced = paced(20e6, 0.0, bytes, 1e12) / 20e6;
            let doubling = predict(FAR, bytes - HEAD_BYTES, 1.0, Growth::Doubling).slow_start;
            assert!((unpaced - doubling).abs() < 1e-3, "{bytes}: {unpaced}");
        }
        let of = |bytes: f64| predict(FAR, bytes, 1.0, Growth::Paced);
        // The first window leaves at once.
        assert!((of(14_000.0).round_trips - 2.0).abs() < 1e-9);
        // The second: twenty at 2.856 times the first ten a round trip, so that its last one leaves (after
        // nineteen gaps) 0.66 of one later.
        let second = of(30.0 * SEGMENT_BYTES - HEAD_BYTES).slow_start;
        assert!((second - 1.0 - 19.0 / (10.0 * STARTUP_GAIN)).abs() < 0.04, "{second}");
        let (small, large) = (of(102_400.0).round_trips, of(1_048_576.0).round_trips);
        assert!(5.1 < small && small < 5.3 && 8.4 < large && large < 8.7, "{small} {large}");
        // A link that carries a window in a round trip's half adds to it, and one that is full decides alone.
        let full = predict(Way { rtt_ns: 20e6, bytes_per_s: Some(1e6) }, 10e6, 1.0, Growth::Paced);
        assert!((full.ns(20e6, 0.0) / 10.05e9 - 1.0).abs() < 0.01, "{full:?}");
        // On a kept connection the best rate ever seen is that of a file that came in a round trip and its
        // own sending.
        let kept = |rate: Option<f64>, bytes: f64| {
            let way = Way { bytes_per_s: rate, ..FAR };
            predict(way, bytes, 0.0, Growth::Paced).ns(20e6, 0.0) / 20e6
        };
        assert!((kept(None, 1_048_576.0) - 1.538).abs() < 0.01);
        assert!((kept(None, 1024.0) - 1.0).abs() < 1e-9);
        // 4 ms of a link are hidden by 11 ms of pace; 40 ms are not.
        assert!((kept(Some(25e6), 102_400.0) - kept(None, 102_400.0)).abs() < 1e-9);
        assert!((kept(Some(25e6), 1_000_000.0) - 3.0).abs() < 0.01);
        assert_eq!(Growth::of(Some("bbr")), Growth::Paced);
        assert_eq!(Growth::of(Some("cubic")), Growth::of(None));
    }

    #[test]
    fn a_link_that_is_full_ends_the_slow_start() {
        // 200 Mbit/s and 20 ms hold 500 kB: windows of 14, 29, 58, 116, 232 and 463 kB wait for their
        // answers, the next does not.
        let way = Way { rtt_ns: 20e6, bytes_per_s: Some(25e6) };
        let large = predict(way, 10e6, 1.0, Growth::Doubling);
        assert_eq!(large.slow_start.to_string(), "6");
        let in_windows = 14_480.0 * 63.0;
        assert!((large.link_ns - (10e6 + 130.0 - in_windows) * 40.0).abs() < 1.0);
    }

    #[test]
    fn a_fit_finds_the_round_trip_and_the_floor_that_were_put_in() {
        let measured: Vec<_> = [1024.0, 102_400.0, 1_048_576.0]
            .into_iter()
            .map(|bytes| {
                let predicted = predict(FAR, bytes, 1.0, Growth::Doubling);
                (predicted, predicted.ns(21e6, 0.4e6))
            })
            .collect();
        let found = fit(&measured).expect("three transfers");
        assert!((found.rtt_ns - 21e6).abs() < 1.0 && (found.floor_ns - 0.4e6).abs() < 10.0, "{found:?}");
        assert_eq!(fit(&measured[..2]), None);
        assert_eq!(fit(&[measured[0]; 3]), None);
    }

    #[test]
    fn what_limits_is_what_is_busy_else_the_link_else_waiting() {
        let idle = Evidence {
            alone: true,
            client_cpu: 0.1,
            server_cpu: 0.1,
            goodput: 1e6,
            throughput: Some(1e8),
            until_first_byte_ns: 40e6,
            all_ns: 41e6,
        };
        assert_eq!(verdict(&idle), Verdict::RoundTripBound);
        let slow = Evidence { all_ns: 160e6, ..idle };
        assert_eq!(verdict(&slow), Verdict::SlowStartBound);
        let full = Evidence { goodput: 9e7, ..slow };
        assert_eq!(verdict(&full), Verdict::LinkBound);
        let busy = Evidence { client_cpu: 0.9, ..full };
        assert_eq!(verdict(&busy), Verdict::ClientBound);
        let server = Evidence { server_cpu: 0.95, ..busy };
        assert_eq!(verdict(&server), Verdict::ServerBound);
        let in_turns = Evidence { client_cpu: 0.4, server_cpu: 0.5, ..slow };
        assert_eq!(verdict(&in_turns), Verdict::ServerBound);
        let overlapping = Evidence { alone: false, ..in_turns };
        assert_eq!(verdict(&overlapping), Verdict::SlowStartBound);
    }
}
