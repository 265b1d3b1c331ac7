//! Connections to the far end of a route, from whichever namespace it begins in.

use std::io::{BufRead, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use latlab_harness::{Env, ProbeError, serve_child};
use latlab_net::NetError;
use latlab_net::sockets::{Address, Hatch, Transport, connect, hand_over};
use serde::{Deserialize, Serialize};

use super::failed;
use crate::peer::{Place, Route, Side};

/// The name of the program that connects.
const PROGRAM: &str = "network.sockets";

#[derive(Serialize, Deserialize)]
struct Connect {
    place: Place,
    hatch: RawFd,
    address: Address,
    transport: Transport,
    patience: Duration,
}

/// The process that connects at the near end of a path, until its input ends.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub(crate) fn serve_sockets(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut there = false;
    serve_child(input, output, move |asked: Connect| {
        if !there {
            asked.place.take()?;
            there = true;
        }
        hand_over(asked.hatch, &asked.address, asked.transport, asked.patience).map_err(failed)
    })
}

/// What connects: this process itself, or one at the near end of an emulated path.
pub(crate) struct Reach {
    near: Option<(Side, Hatch, Place)>,
    patience: Duration,
}

impl Reach {
    /// For this route.
    ///
    /// # Errors
    /// When a process at its near end cannot be had.
    pub(crate) fn over(env: &Env, route: &Route, patience: Duration) -> Result<Self, ProbeError> {
        let near = if route.delays_packets() {
            let hatch = Hatch::new().map_err(failed)?;
            let side =
                hatch.inherited_by(|_| Ok::<_, NetError>(Side::start(env, PROGRAM))).map_err(failed)??;
            Some((side, hatch, route.client(Vec::new())))
        } else {
            None
        };
        Ok(Self { near, patience })
    }

    /// A connected socket.
    ///
    /// # Errors
    /// When nobody listens there within the time.
    pub(crate) fn connect(&mut self, address: &Address, transport: Transport) -> Result<OwnedFd, ProbeError> {
        let Some((side, hatch, place)) = &mut self.near else {
            return connect(address, transport, self.patience).map_err(failed);
        };
        let asked = Connect {
            place: place.clone(),
            hatch: hatch.number(),
            address: address.clone(),
            transport,
            patience: self.patience,
        };
        let () = side.ask(&asked, 2 * self.patience)?;
        hatch.take().map_err(failed)
    }
}
