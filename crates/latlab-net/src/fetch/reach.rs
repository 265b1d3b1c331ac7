//! From a URL to a connected socket.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::{FetchError, Phase};
use super::url::Url;

/// A socket to the host, by the deadline.
pub(super) fn reach(
    url: &Url,
    deadline: Instant,
    ended: &mut dyn FnMut(Phase),
) -> Result<TcpStream, FetchError> {
    let addresses = resolve(url, deadline)?;
    ended(Phase::Resolve);
    let socket = connect(&addresses, deadline)?;
    ended(Phase::Connect);
    Ok(socket)
}

/// The addresses of a host. The system's resolver knows no time-out: it works in a thread that nobody waits
/// for any longer when time is up, and that ends when the resolver gives up. Its start, some ten
/// microseconds, is part of the phase.
fn resolve(url: &Url, deadline: Instant) -> Result<Vec<SocketAddr>, FetchError> {
    if let Ok(address) = url.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, url.port)]);
    }
    let (tell, reported) = mpsc::sync_channel(1);
    let asked = (url.host.clone(), url.port);
    std::thread::Builder::new()
        .name("latlab-resolve".to_owned())
        .spawn(move || {
            let found = asked.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            // Too late: nobody listens any more.
            let _ = tell.send(found);
        })
        .map_err(FetchError::System)?;
    match reported.recv_timeout(left(deadline, Phase::Resolve)?) {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Ok(Ok(_)) => Err(FetchError::NoName(url.host.clone())),
        Ok(Err(error)) => Err(FetchError::NoName(format!("{}: {error}", url.host))),
        Err(_) => Err(FetchError::TimedOut(Phase::Resolve)),
    }
}

/// The first that answers, in the resolver's order. The error is that of the first: the one that should have.
fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, FetchError> {
    let mut first = None;
    for address in addresses {
        let tried = TcpStream::connect_timeout(address, left(deadline, Phase::Connect)?)
            .and_then(|socket| socket.set_nodelay(true).map(|()| socket));
        match tried {
            Ok(socket) => return Ok(socket),
            Err(error) => {
                first.get_or_insert(FetchError::of(error, Phase::Connect));
            }
        }
    }
    Err(first.unwrap_or(FetchError::TimedOut(Phase::Connect)))
}

/// Time until the deadline; an error when there is none.
fn left(deadline: Instant, phase: Phase) -> Result<Duration, FetchError> {
    deadline
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or(FetchError::TimedOut(phase))
}
