//! What a network card would do for the kernel is switched off at the ends: a frame that waits in the line
//! must be whole and no longer than the link allows.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::NetError;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// `linux/ethtool.h`: checksums of what comes and goes, segmentation by the card, by the kernel, and putting
/// together.
const SETTINGS: [(u32, bool); 5] = [
    (0x15, false), // ETHTOOL_SRXCSUM: not every driver can
    (0x17, true),  // ETHTOOL_STXCSUM
    (0x1f, true),  // ETHTOOL_STSO
    (0x24, true),  // ETHTOOL_SGSO
    (0x2c, true),  // ETHTOOL_SGRO
];

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Switches them off for an interface of the namespace in which this is called.
pub(super) fn off(interface: &str) -> Result<(), NetError> {
    // Any socket will do to ask about an interface.
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(NetError::system("a socket to ask with"))?;
    for (command, needed) in SETTINGS {
        let mut value = Value { command, data: 0 };
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from.cast_signed() as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the name ends with a zero; the data points to an ethtool_value, which these commands read;
        // both live through the call.
        let answer = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if answer != 0 && needed {
            return Err(NetError::system("switching offloads off")(io::Error::last_os_error()));
        }
    }
    Ok(())
}
