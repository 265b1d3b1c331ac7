//! What a transfer should take: round trips, a connection that starts slowly, bytes over a rate.

/// Bytes of a segment's data on a path of 1500-byte packets, with TCP's time stamps (RFC 7323).
const SEGMENT_BYTES: f64 = 1448.0;
/// Segments that a new connection may have under way (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;
/// An answer's head, about.
const HEAD_BYTES: f64 = 130.0;

/// What a path is like, as far as transfers are concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    pub(super) rtt_ns: f64,
    /// Bytes of files that one connection gets through in a second when it has been going on; none where nobody knows.
    pub(super) bytes_per_s: Option<f64>,
}

/// What a model says of one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Predicted {
    /// Round trips that nothing hides: of the handshakes, of the request, and of a window that is too small.
    pub(super) round_trips: f64,
    /// Of these, those that a connection spends on starting slowly.
    pub(super) slow_start: f64,
    /// Time beside the round trips in which the rate is what limits, ns.
    pub(super) link_ns: f64,
}

impl Predicted {
    pub(super) fn ns(&self, rtt_ns: f64, floor_ns: f64) -> f64 {
        floor_ns + self.round_trips * rtt_ns + self.link_ns
    }
}

/// A transfer on a connection: `handshakes` are round trips before its request (1 for TCP, 1 more for TLS 1.3); 0 on one that is kept,
/// whose window is taken to be as wide as it needs.
pub(super) fn predict(way: Way, file_bytes: f64, handshakes: f64) -> Predicted {
    let byte_ns = way.bytes_per_s.map_or(0.0, |rate| 1e9 / rate);
    let mut left = file_bytes + HEAD_BYTES;
    let mut predicted = Predicted {
        round_trips: handshakes + 1.0,
        slow_start: 0.0,
        link_ns: 0.0,
    };
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

/// The same law with the round trip and what is paid once fitted to measured transfers: `time = floor + round_trips * rtt + link`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) floor_ns: f64,
    pub(super) rtt_ns: f64,
}

/// Least relative squares over (prediction, measured ns); none with fewer than three transfers or all of as many round trips.
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
    Some(Fit {
        rtt_ns,
        floor_ns: (y - rtt_ns * x) / w,
    })
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

/// In a word: `server-bound`, `client-bound`, `link-bound`, `round-trip-bound` or `slow-start-bound`.
pub(super) fn verdict(found: &Evidence) -> &'static str {
    let busy = if found.alone {
        found.server_cpu + found.client_cpu
    } else {
        found.server_cpu.max(found.client_cpu)
    };
    if busy >= BUSY {
        return if found.server_cpu >= found.client_cpu {
            "server-bound"
        } else {
            "client-bound"
        };
    }
    if found
        .throughput
        .is_some_and(|throughput| found.goodput >= NEAR * throughput)
    {
        return "link-bound";
    }
    if found.until_first_byte_ns >= 0.5 * found.all_ns {
        "round-trip-bound"
    } else {
        "slow-start-bound"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Way = Way {
        rtt_ns: 20e6,
        bytes_per_s: None,
    };

    #[test]
    fn round_trips_of_a_new_connection_are_those_of_its_windows() {
        let of = |bytes: f64| predict(FAR, bytes, 1.0).round_trips;
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
        assert_eq!(predict(FAR, 1024.0, 2.0).round_trips.to_string(), "3");
        assert_eq!(predict(FAR, 1_048_576.0, 0.0).round_trips.to_string(), "1");
    }

    #[test]
    fn a_link_that_is_full_ends_the_slow_start() {
        // 200 Mbit/s and 20 ms hold 500 kB: windows of 14, 29, 58, 116, 232 and 463 kB wait for their answers, the next does not.
        let way = Way {
            rtt_ns: 20e6,
            bytes_per_s: Some(25e6),
        };
        let large = predict(way, 10e6, 1.0);
        assert_eq!(large.slow_start.to_string(), "6");
        let in_windows = 14_480.0 * 63.0;
        assert!((large.link_ns - (10e6 + 130.0 - in_windows) * 40.0).abs() < 1.0);
    }

    #[test]
    fn a_fit_finds_the_round_trip_and_the_floor_that_were_put_in() {
        let measured: Vec<_> = [1024.0, 102_400.0, 1_048_576.0]
            .into_iter()
            .map(|bytes| {
                let predicted = predict(FAR, bytes, 1.0);
                (predicted, predicted.ns(21e6, 0.4e6))
            })
            .collect();
        let found = fit(&measured).expect("three transfers");
        assert!(
            (found.rtt_ns - 21e6).abs() < 1.0 && (found.floor_ns - 0.4e6).abs() < 10.0,
            "{found:?}"
        );
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
        assert_eq!(verdict(&idle), "round-trip-bound");
        let slow = Evidence {
            all_ns: 160e6,
            ..idle
        };
        assert_eq!(verdict(&slow), "slow-start-bound");
        let full = Evidence { goodput: 9e7, ..slow };
        assert_eq!(verdict(&full), "link-bound");
        let busy = Evidence {
            client_cpu: 0.9,
            ..full
        };
        assert_eq!(verdict(&busy), "client-bound");
        let server = Evidence {
            server_cpu: 0.95,
            ..busy
        };
        assert_eq!(verdict(&server), "server-bound");
        let in_turns = Evidence {
            client_cpu: 0.4,
            server_cpu: 0.5,
            ..slow
        };
        assert_eq!(verdict(&in_turns), "server-bound");
        let overlapping = Evidence {
            alone: false,
            ..in_turns
        };
        assert_eq!(verdict(&overlapping), "slow-start-bound");
    }
}
