//! A path between two processes, kept by a third. Each needs to be alone in its process, which libtest's
//! tests are not: so this program is its own harness, and what it starts again in other roles.

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

    const SPEC: PathSpec = PathSpec { rtt_us: 20_000, rate_bit_per_s: None, queue_bytes: None };

    pub(crate) fn main() {
        if let Ok(role) = std::env::var(ROLE) {
            return in_a_role(&role);
        }
        let slow = PathSpec { rate_bit_per_s: Some(50_000_000), ..SPEC };
        // The path, the least time of the load (ns), and whether an ordinary user keeps it.
        let tests = [
            ("a_connection_over_the_path_takes_its_round_trip_and_so_does_each_answer", SPEC, 0, false),
            ("an_ordinary_user_has_the_same_path", SPEC, 0, true),
            ("a_path_with_a_rate_is_never_faster", slow, 160_000_000, false),
        ];
        let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
        let is_chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
        let mut passed = 0;
        for (name, spec, least_load_ns, ordinary) in tests {
            if is_chosen(name) {
                println!("test {name} ...");
                a_path_is_as_long_as_was_asked(&spec, least_load_ns, ordinary);
                passed += 1;
            }
        }
        // As libtest says it; a test that fails ends the process.
        println!("test result: ok. {passed} passed; 0 failed");
    }

    /// Set for the test binary when it is started again: what it is to do.
    const ROLE: &str = "LATLAB_TEST_PATH";
    /// And the path that it is to keep.
    const KEEPS: &str = "LATLAB_TEST_PATH_SPEC";
    const ANSWERS: usize = 20;
    /// What goes one way at the end.
    const LOAD_BYTES: usize = 1_000_000;
    /// No wait of these tests takes longer, even under emulation.
    const BOUND: Duration = Duration::from_secs(30);

    /// This test binary again, in another role and with one thread, as a person without rights or as whoever
    /// runs the tests.
    fn again(role: &str, spec: &PathSpec, ordinary: bool) -> std::process::Child {
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
            .env(KEEPS, serde_json::to_string(spec).expect("JSON"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts")
    }

    fn in_a_role(role: &str) {
        let stdin = io::stdin();
        if role == "keeper" {
            let spec = std::env::var(KEEPS).expect("a path to keep");
            let spec: PathSpec = serde_json::from_str(&spec).expect("a path to keep");
            let kept = keep(&spec, stdin.as_fd(), &mut |path| {
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
            for _ in 0..ANSWERS {
                stream.read_exact(&mut bytes).expect("a message");
                stream.write_all(&bytes).expect("sent");
            }
            let mut load = vec![0; LOAD_BYTES];
            stream.read_exact(&mut load).expect("the load");
            stream.write_all(&bytes).expect("sent");
            return;
        }
        enter(&path.client).expect("the client's end");
        let begun = Instant::now();
        let mut stream = TcpStream::connect_timeout(&(SERVER, 7).into(), BOUND).expect("a connection");
        let connected = begun.elapsed();
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(BOUND)).expect("a time-out");
        let mut round_trips: Vec<Duration> = (0..ANSWERS)
            .map(|_| {
                let begun = Instant::now();
                stream.write_all(&[1; 8]).expect("sent");
                stream.read_exact(&mut [0; 8]).expect("an answer");
                begun.elapsed()
            })
            .collect();
        round_trips.sort();
        let begun = Instant::now();
        stream.write_all(&vec![1; LOAD_BYTES]).expect("sent");
        stream.read_exact(&mut [0; 8]).expect("an answer");
        let load = begun.elapsed();
        let figures = [connected, round_trips[0], round_trips[ANSWERS / 2], load];
        let figures = figures.map(|figure| figure.as_nanos().to_string());
        println!("figures {}", figures.join(" "));
    }

    /// The first line of a child that begins with one of these words, without it.
    fn reported(from: &mut impl BufRead, words: [&str; 2]) -> (usize, String) {
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

    /// A path's figures (nanoseconds: least round trip of the keeper's, connect, least and middle round trip
    /// by TCP, and the load), or why there are none.
    fn measured(spec: &PathSpec, ordinary: bool) -> Result<(Established, [u64; 4]), String> {
        let mut keeper = again("keeper", spec, ordinary);
        let mut said = BufReader::new(keeper.stdout.take().expect("a pipe"));
        let (refused, text) = reported(&mut said, ["path", "refused"]);
        let result = if refused == 1 {
            Err(text)
        } else {
            let path: Established = serde_json::from_str(&text).expect("a path");
            let mut server = again("server", spec, ordinary);
            let mut client = again("client", spec, ordinary);
            let line = format!("{text}\n");
            let mut server_said = BufReader::new(server.stdout.take().expect("a pipe"));
            let to_server = server.stdin.as_mut().expect("a pipe");
            to_server.write_all(line.as_bytes()).expect("told");
            assert_eq!(reported(&mut server_said, ["ready", "failed"]).0, 0);
            let to_client = client.stdin.as_mut().expect("a pipe");
            to_client.write_all(line.as_bytes()).expect("told");
            let mut client_said = BufReader::new(client.stdout.take().expect("a pipe"));
            let (failed, figures) = reported(&mut client_said, ["figures", "failed"]);
            assert_eq!(failed, 0, "{figures}");
            let figures: Vec<u64> =
                figures.split(' ').map(|figure| figure.parse().expect("a number")).collect();
            client.wait().expect("it ended");
            server.wait().expect("it ended");
            Ok((path, figures.try_into().expect("four figures")))
        };
        drop(keeper.stdin.take());
        let ended = keeper.wait().expect("the keeper ends when its input does");
        assert!(ended.success());
        result
    }

    /// Under emulation, in a container or with a hardened kernel there may be no path: then there is a
    /// reason.
    fn a_path_is_as_long_as_was_asked(spec: &PathSpec, least_load_ns: u64, ordinary: bool) {
        match measured(spec, ordinary) {
            Ok((path, figures)) => {
                println!("{path:?} {figures:?}");
                // Never shorter: that would be a shortcut around the path. How much longer is the machine's
                // affair.
                assert!(path.least_rtt_ns >= 20_000_000, "{path:?}");
                assert!(figures.iter().all(|figure| *figure >= 20_000_000), "{figures:?}");
                assert!(figures[3] >= least_load_ns, "{figures:?}");
            }
            Err(reason) => {
                println!("no path: {reason}");
                assert!(!reason.is_empty());
            }
        }
    }
}
