//! A socket whose waits end at one deadline, however many they are: a server that sends a byte a second wins
//! no time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connected socket with a deadline; without one it never waits.
#[derive(Debug)]
pub(super) struct Timed {
    socket: TcpStream,
    deadline: Option<Instant>,
}

impl Timed {
    pub(super) fn new(socket: TcpStream, deadline: Instant) -> Self {
        Self { socket, deadline: Some(deadline) }
    }

    /// A socket that does not block: whoever uses it looks after its time.
    #[cfg(target_os = "linux")]
    pub(super) fn unblocking(socket: TcpStream) -> Self {
        Self { socket, deadline: None }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Another deadline, for what comes next.
    pub(super) fn bound(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Tells the socket how long it may wait, where it waits.
    fn wait_with(&self, set: fn(&TcpStream, Option<Duration>) -> io::Result<()>) -> io::Result<()> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or(io::ErrorKind::TimedOut)?;
        set(&self.socket, Some(left))
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait_with(TcpStream::set_read_timeout)?;
        self.socket.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_with(TcpStream::set_write_timeout)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
