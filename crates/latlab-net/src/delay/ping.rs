//! Round trips of a datagram: is the path as long as it should be?

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use crate::NetError;

/// Time for all of them, so that a long path is measured with few.
const TIME_US: u64 = 200_000;
const MOST: u64 = 30;
const LEAST: u64 = 3;

/// A socket in the namespace in which this is called.
pub(super) fn socket(address: Ipv4Addr) -> Result<UdpSocket, NetError> {
    UdpSocket::bind((address, 0)).map_err(NetError::system("a socket at an end of the path"))
}

/// The shortest round trip, nanoseconds. One thread is both ends: the path alone is what takes time.
pub(super) fn least(client: &UdpSocket, server: &UdpSocket, rtt_us: u64) -> io::Result<u64> {
    let patience = Duration::from_micros(rtt_us) + Duration::from_secs(1);
    client.set_read_timeout(Some(patience))?;
    server.set_read_timeout(Some(patience))?;
    let to = server.local_addr()?;
    let mut least = u64::MAX;
    let mut lost = None;
    for number in 0..(TIME_US / rtt_us.max(1)).clamp(LEAST, MOST) {
        let mut bytes = number.to_be_bytes();
        let begun = Instant::now();
        let back = (|| {
            client.send_to(&bytes, to)?;
            let (_, from) = server.recv_from(&mut bytes)?;
            server.send_to(&bytes, from)?;
            client.recv_from(&mut bytes)
        })();
        match back {
            Ok(_) => least = least.min(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)),
            Err(error) if lost.is_none() => lost = Some(error),
            // Two in a row of so few: there is no path.
            Err(error) => return Err(error),
        }
    }
    Ok(least)
}
