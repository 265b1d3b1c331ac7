//! Requests that are answered, and servers that answer wrongly or not at all.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use latlab_harness::{AnyProbe as _, Erased, Probe as _, Session as _};
use latlab_probes_testing as testing;

use super::*;
use crate::network::trial;

/// For servers that never answer; those that do have [`testing::LONG`].
const SHORT: Duration = Duration::from_millis(300);
/// Few enough requests a second for an emulated machine.
const RATE: u64 = 200;

fn env(url: Option<String>, cpus: usize) -> Env {
    let mut env = testing::env(64 << 20);
    env.cpus.truncate(cpus);
    env.settings.url = url;
    env.settings.requests_per_s = Some(RATE);
    // Half a second.
    env.settings.budget_s = Some(1.0);
    env.settings.only = vec![Http::SPEC.id.to_owned()];
    env
}

#[test]
fn requests_at_a_rate_are_answered_and_prove_themselves_on_one_cpu_and_on_all() {
    for cpus in [1, usize::MAX] {
        let env = env(None, cpus);
        let points = Erased(Http).points(&env);
        let proofs = testing::assert_proved(&Erased(Http), &env, &points);
        let findings = proofs[0].findings.clone().expect("findings");
        let answers: Answers = serde_json::from_value(findings).expect("as it was said");
        let Offered { offered_per_s, service_p50_ns, .. } = &answers.offered;
        let is_known = |number: &Option<serde_json::Number>| {
            number.as_ref().and_then(serde_json::Number::as_f64) > Some(0.0)
        };
        assert!(is_known(offered_per_s) && is_known(service_p50_ns));
        assert_eq!((answers.connections_opened, answers.least_body_bytes), (32, Some(1024)));
    }
}

/// A server that answers `right` requests on each connection and then this, or nothing; for as long as the
/// test runs.
fn server(right: usize, then: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let address = listener.local_addr().expect("an address");
    let serve = move |mut stream: TcpStream| {
        for _ in 0..right {
            let asked = matches!(stream.read(&mut [0; 4096]), Ok(1..));
            if !asked || stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
        let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(then));
        // One that never answers waits until its client has gone.
        while then.is_empty() && matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}/")
}

/// Why there is no figure.
fn reason(url: &str, patience: Duration) -> String {
    let env = env(Some(url.to_owned()), usize::MAX);
    let point = Http.plan(&env).points[0].point;
    trial::reason(&env, || Session::new(&env, patience), &point)
}

/// As `reason`, and that it holds these words.
fn ends_with(url: &str, words: &str) {
    let text = reason(url, testing::LONG);
    assert!(text.contains(words), "{text}");
}

#[test]
fn whatever_a_server_does_wrong_ends_the_probe_with_its_reason() {
    for (right, then, words) in [
        (4, &b"220 ready\r\n\r\n"[..], "the response is invalid"),
        (4, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "status 503"),
        (0, b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n", "redirection"),
        (4, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "ended after 2 bytes"),
    ] {
        ends_with(&server(right, then), words);
    }
    let text = reason(&server(4, b""), SHORT);
    assert!(text.contains("did not answer within 0.3 s: nothing came"), "{text}");
}

#[test]
fn a_server_that_was_never_there_is_said_without_its_name() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    ends_with(&format!("http://{address}/"), "refused");
    let text = reason("http://no-such-name.invalid/", testing::LONG);
    assert!(text.contains("no address") || text.contains("not resolved"), "{text}");
    assert!(!text.contains("no-such-name"), "{text}");
}

#[test]
fn a_request_that_one_side_did_not_count_fails_the_proof() {
    assert!(counted(5, 5).ok);
    assert!(!counted(5, 4).ok);
    let env = env(None, usize::MAX);
    let mut session = Session::new(&env, PATIENCE).expect("a server of ours");
    let point = Http.plan(&env).points[0].point;
    session.select(&point).expect("open");
    let mut evidence = Evidence::default();
    evidence.flight.operations = 1;
    let failed = |session: &mut Session<'_>| -> Vec<String> {
        let proof = session.proof(&point, &evidence);
        testing::failed(&proof).into_iter().map(str::to_owned).collect()
    };
    assert!(failed(&mut session).is_empty());
    // One that was sent and is not answered.
    session.asker.asked += 1;
    assert_eq!(failed(&mut session), ["every request was answered", COUNTED]);
    // One that was cut.
    session.asker.asked -= 1;
    session.asker.bodies = Some((1, ANSWER_BYTES));
    assert_eq!(failed(&mut session), ["every answer was the one expected"]);
}
