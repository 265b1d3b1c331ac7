//! Many at once on servers that do right, and on those that do wrong.

use std::net::TcpListener;
use std::thread::JoinHandle;

use super::super::tests::{BOUND, HELLO, any, ours, serving, times_out_in};
use super::*;
use crate::serve::is_body;

fn open(url: &str, connections: usize, patience: Duration) -> Result<Pool, FetchError> {
    let trust = Trust::nobody()?;
    Pool::open(&Url::parse(url)?, &trust, None, connections, patience, &any)
}

/// Asks once at every place and waits for all.
fn ask_all(pool: &mut Pool, places: usize) -> Result<Vec<Answer>, FetchError> {
    let mut answers = vec![None; places];
    for place in 0..places {
        pool.ask(place)?;
    }
    while answers.iter().any(Option::is_none) {
        pool.wait(None, &mut |place, answer| answers[place] = Some(answer))?;
    }
    Ok(answers.into_iter().flatten().collect())
}

/// A server whose connections are used like this, one after the other, until `most` have come.
fn server(most: usize, serve: fn(TcpStream)) -> (String, JoinHandle<()>) {
    let (address, serving) = serving(most, serve);
    (format!("http://{address}/file"), serving)
}

/// Reads a request; false when there is none any more.
fn read(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 4096]), Ok(1..))
}

/// Why the first of two requests on one connection fails.
fn failure(serve: fn(TcpStream), patience: Duration) -> FetchError {
    let (url, serving) = server(1, serve);
    let mut pool = open(&url, 1, patience).expect("it listens");
    let error = ask_all(&mut pool, 1).expect_err("no server answers so");
    drop(pool);
    serving.join().expect("the server");
    error
}

#[test]
fn all_are_under_way_at_once_and_every_byte_is_compared() {
    let server = ours(None);
    let address = server.listening().address;
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    for scheme in ["http", "https"] {
        let url = Url::parse(&format!("{scheme}://{address}/bytes/300000")).expect("a URL");
        let before = server.served();
        let mut pool = Pool::open(&url, &trust, None, 8, BOUND, &is_body).expect("connections");
        for _ in 0..3 {
            let answers = ask_all(&mut pool, 8).expect("answers");
            assert!(answers.iter().all(|answer| answer.body_bytes == 300_000 && answer.kept));
        }
        assert_eq!(pool.opened(), 8);
        assert_eq!(server.served().requests - before.requests, 24);
    }
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    let mut pool = Pool::open(&url, &trust, None, 1, BOUND, &is_body).expect("a connection");
    let error = ask_all(&mut pool, 1).expect_err("a text is no such body");
    assert!(matches!(error, FetchError::Garbage(_)), "{error:?}");
}

#[test]
fn a_guarded_server_is_asked_for_its_challenge_and_every_request_is_signed() {
    let secret = b"a secret of tests only";
    let server = ours(Some(secret));
    let url = Url::parse(&format!("http://{}/bytes/10", server.listening().address)).expect("a URL");
    let trust = Trust::nobody().expect("TLS");
    let mut pool = Pool::open(&url, &trust, Some(secret), 4, BOUND, &is_body).expect("a challenge");
    ask_all(&mut pool, 4).expect("all are served");
    assert_eq!(server.served().refused, 0);
    let mut pool = Pool::open(&url, &trust, None, 1, BOUND, &any).expect("it listens");
    let error = ask_all(&mut pool, 1).expect_err("unsigned");
    assert!(matches!(error, FetchError::Status(401)), "{error:?}");
}

#[test]
fn a_connection_that_the_server_closed_while_it_was_idle_is_opened_again() {
    // Without a word, in the middle of keeping it.
    let (url, serving) = server(3, |mut stream| {
        let _ = read(&mut stream) && stream.write_all(HELLO).is_ok();
    });
    let mut pool = open(&url, 1, BOUND).expect("it listens");
    for _ in 0..3 {
        let answers = ask_all(&mut pool, 1).expect("an answer");
        assert!(answers[0].kept);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(pool.opened(), 3);
    serving.join().expect("the server");
    // As announced, by a header or by the protocol's age.
    let (url, serving) = server(2, |mut stream| {
        let _ = read(&mut stream) && stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").is_ok();
    });
    let mut pool = open(&url, 1, BOUND).expect("it listens");
    for _ in 0..2 {
        let answers = ask_all(&mut pool, 1).expect("an answer");
        assert_eq!(answers[0], Answer { body_bytes: 5, kept: false });
    }
    assert_eq!(pool.opened(), 2);
    serving.join().expect("the server");
}

#[test]
fn a_connection_that_the_server_closed_before_its_first_request_is_opened_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let url = format!("http://{}/file", listener.local_addr().expect("an address"));
    let mut pool = open(&url, 1, BOUND).expect("it listens");
    drop(listener.accept().expect("a client"));
    let begun = Instant::now();
    while !pool.members[0].was_closed_unused() {
        assert!(begun.elapsed() < BOUND);
        std::thread::sleep(Duration::from_millis(1));
    }
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client again");
        read(&mut stream) && stream.write_all(HELLO).is_ok()
    });
    assert_eq!(ask_all(&mut pool, 1).expect("an answer").len(), 1);
    assert_eq!(pool.opened(), 2);
    assert!(serving.join().expect("the server"));
}

#[test]
fn an_answer_in_pieces_is_one_answer() {
    fn serve(mut stream: TcpStream) {
        let _ = read(&mut stream);
        for byte in HELLO {
            let _ = stream.write_all(&[*byte]);
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = read(&mut stream);
    }
    let (url, serving) = server(1, serve);
    let mut pool = open(&url, 1, BOUND).expect("it listens");
    assert_eq!(ask_all(&mut pool, 1).expect("an answer")[0].body_bytes, 5);
    drop(pool);
    serving.join().expect("the server");
}

/// What an answer can be besides is a matter of reading it, which is the same for a connection alone.
#[test]
fn a_connection_on_which_the_first_request_fails_is_not_opened_again() {
    let error = failure(|mut stream| assert!(read(&mut stream)), BOUND);
    assert!(matches!(error, FetchError::Truncated { got: 0 } | FetchError::Reset), "{error:?}");
    let cut = |mut stream: TcpStream| {
        let _ = read(&mut stream) && stream.write_all(&HELLO[..HELLO.len() - 2]).is_ok();
    };
    let error = failure(cut, BOUND);
    assert!(matches!(error, FetchError::Truncated { got: 3 }), "{error:?}");
}

#[test]
fn a_server_that_never_answers_costs_its_time_out_once() {
    times_out_in(Phase::FirstByte, |patience| {
        failure(
            |mut stream| {
                while read(&mut stream) {}
            },
            patience,
        )
    });
    // A handshake that nobody answers.
    times_out_in(Phase::Tls, |patience| {
        let (url, serving) = server(1, |mut stream| while read(&mut stream) {});
        let error = open(&url.replace("http:", "https:"), 1, patience).err().expect("no handshake");
        serving.join().expect("the server");
        error
    });
}

#[test]
fn whoever_does_not_wait_gets_what_is_there() {
    let server = ours(None);
    let url = format!("http://{}/bytes/10", server.listening().address);
    let mut pool = open(&url, 2, BOUND).expect("it listens");
    pool.wait(None, &mut |_, _| panic!("nobody was asked")).expect("nothing");
    pool.ask(0).expect("sent");
    let mut answered = 0;
    while answered == 0 {
        pool.wait(Some(Duration::ZERO), &mut |_, _| answered += 1).expect("an answer");
    }
    assert_eq!(answered, 1);
}

#[test]
fn nobody_is_trusted_by_default_and_nobody_who_listens_is_refused() {
    let server = ours(None);
    let address = server.listening().address;
    let error = open(&format!("https://{address}/"), 2, BOUND).err().expect("self-signed");
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
    drop(server);
    let error = open(&format!("http://{address}/"), 2, BOUND).err().expect("nobody listens");
    assert!(matches!(error, FetchError::Refused), "{error:?}");
}
