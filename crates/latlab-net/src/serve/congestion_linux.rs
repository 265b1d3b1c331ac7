//! By what TCP decides how much may be under way: Linux says it of each socket.

use std::os::fd::AsFd;

/// Of the connections of this listener.
pub(super) fn of(listener: &impl AsFd) -> Option<String> {
    rustix::net::sockopt::tcp_congestion(listener).ok()
}
