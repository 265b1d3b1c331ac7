//! A path between two processes, kept by a third. Each needs to be alone in its process, which libtest's tests are not: so this program is
//! its own harness, and what it starts again in other roles.

#[cfg(target_os = "linux")]
fn main() {
    path::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod path {
    use std::io::{self, BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use latlab_net::delay::{Established, PathSpec, SERVER, enter, keep};

    const SPEC: PathSpec = PathSpec {
        rtt_us: 20_000,
        rate_bit_per_s: None,
        queue_bytes: None,
    };

    /// Every test by its name, and what it does.
    const TESTS: [(&str, fn()); 2] = [
        (
            "a_connection_over_the_path_takes_its_round_trip_and_so_does_each_answer",
            a_connection_over_the_path_takes_its_round_trip_and_so_does_each_answer,
        ),
        (
            "an_ordinary_user_has_the_same_path",
            an_ordinary_user_has_the_same_path,
        ),
    ];

    pub(crate) fn main() {
        if let Ok(role) = std::env::var(ROLE) {
            in_a_role(&role);
            return;
        }
        let filters: Vec<String> = std::env::args()
            .skip(1)
            .filter(|word| !word.starts_with('-'))
            .collect();
        for (name, test) in TESTS {
            if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
                println!("test {name} ...");
                test();
            }
        }
    }

    /// Set for the test binary when it is started again: what it is to do.
    const ROLE: &str = "LATLAB_TEST_PATH";
    /// No wait of these tests takes longer, even under emulation.
    const BOUND: Duration = Duration::from_secs(30);

    /// This test binary again, in another role and with one thread, as a person without rights or as whoever runs the tests.
    fn again(role: &str, ordinary: bool) -> std::process::Child {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let runner = cfg!(target_arch = "aarch64")
            .then(|| std::env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").ok())
            .flatten()
            .unwrap_or_default();
        let who = if ordinary && rustix::process::geteuid().is_root() {
            "setpriv --reuid=65534 --regid=65534 --clear-groups "
        } else {
            ""
        };
        let script = format!("exec {who}{runner} \"$0\"");
        Command::new("/bin/sh")
            .args(["-c", &script])
            .arg(binary)
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts")
    }

    fn in_a_role(role: &str) {
        let stdin = io::stdin();
        if role == "keeper" {
            let kept = keep(&SPEC, stdin.as_fd(), &mut |path| {
                let line = serde_json::to_string(path).map_err(io::Error::other)?;
                println!("path {line}");
                Ok(())
            });
            if let Err(error) = kept {
                println!("refused {error}");
            }
            return;
        }
        let mut line = String::new();
        stdin.lock().read_line(&mut line).expect("a path");
        let path: Established = serde_json::from_str(&line).expect("a path");
        if role == "server" {
            enter(&path.server).expect("the server's end");
            let listener = TcpListener::bind((SERVER, 7)).expect("its address");
            println!("ready");
            let (mut stream, _) = listener.accept().expect("a client");
            let mut bytes = [0; 8];
            while stream.read_exact(&mut bytes).is_ok() {
                stream.write_all(&bytes).expect("sent");
            }
            return;
        }
        enter(&path.client).expect("the client's end");
        let begun = Instant::now();
        let mut stream = TcpStream::connect_timeout(&(SERVER, 7).into(), BOUND).expect("a connection");
        let connected = begun.elapsed();
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(BOUND)).expect("a time-out");
        let mut round_trips: Vec<Duration> = (0..20)
            .map(|_| {
                let begun = Instant::now();
                stream.write_all(&[1; 8]).expect("sent");
                stream.read_exact(&mut [0; 8]).expect("an answer");
                begun.elapsed()
            })
            .collect();
        round_trips.sort();
        println!(
            "figures {} {} {}",
            connected.as_nanos(),
            round_trips[0].as_nanos(),
            round_trips[10].as_nanos()
        );
    }

    /// The first line of a child that begins with one of these words, without it.
    fn told(from: &mut impl BufRead, words: [&str; 2]) -> (usize, String) {
        for line in from.lines() {
            let line = line.expect("a line");
            for (number, word) in words.iter().enumerate() {
                if let Some(rest) = line.strip_prefix(word) {
                    return (number, rest.trim().to_owned());
                }
            }
        }
        (1, "it ended without a word".to_owned())
    }

    /// A path's figures (nanoseconds: least round trip of the keeper's, connect, least and middle round trip by TCP), or why there are none.
    fn measured(ordinary: bool) -> Result<(Established, [u64; 3]), String> {
        let mut keeper = again("keeper", ordinary);
        let mut said = BufReader::new(keeper.stdout.take().expect("a pipe"));
        let (refused, text) = told(&mut said, ["path", "refused"]);
        let result = if refused == 1 {
            Err(text)
        } else {
            let path: Established = serde_json::from_str(&text).expect("a path");
            let mut server = again("server", ordinary);
            let mut client = again("client", ordinary);
            let line = format!("{text}\n");
            let mut server_said = BufReader::new(server.stdout.take().expect("a pipe"));
            let to_server = server.stdin.as_mut().expect("a pipe");
            to_server.write_all(line.as_bytes()).expect("told");
            assert_eq!(told(&mut server_said, ["ready", "failed"]).0, 0);
            let to_client = client.stdin.as_mut().expect("a pipe");
            to_client.write_all(line.as_bytes()).expect("told");
            let mut client_said = BufReader::new(client.stdout.take().expect("a pipe"));
            let (failed, figures) = told(&mut client_said, ["figures", "failed"]);
            assert_eq!(failed, 0, "{figures}");
            let figures: Vec<u64> = figures
                .split(' ')
                .map(|figure| figure.parse().expect("a number"))
                .collect();
            client.wait().expect("it ended");
            server.wait().expect("it ended");
            Ok((path, [figures[0], figures[1], figures[2]]))
        };
        drop(keeper.stdin.take());
        let ended = keeper.wait().expect("the keeper ends when its input does");
        assert!(ended.success());
        result
    }

    /// Under emulation, in a container or with a hardened kernel there may be no path: then there is a reason.
    fn a_path_is_as_long_as_was_asked(ordinary: bool) {
        match measured(ordinary) {
            Ok((path, figures)) => {
                println!("{path:?} {figures:?}");
                // Never shorter: that would be a shortcut around the path. How much longer is the machine's affair.
                assert!(path.least_rtt_ns >= 20_000_000, "{path:?}");
                assert!(figures.iter().all(|figure| *figure >= 20_000_000), "{figures:?}");
            }
            Err(reason) => {
                println!("no path: {reason}");
                assert!(!reason.is_empty());
            }
        }
    }

    fn a_connection_over_the_path_takes_its_round_trip_and_so_does_each_answer() {
        a_path_is_as_long_as_was_asked(false);
    }

    fn an_ordinary_user_has_the_same_path() {
        a_path_is_as_long_as_was_asked(true);
    }
}
