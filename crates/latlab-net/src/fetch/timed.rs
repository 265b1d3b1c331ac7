//! A socket whose waits end at one deadline, however many they are: a server that sends a byte a second wins no time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connected socket with a deadline.
#[derive(Debug)]
pub(super) struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

impl Timed {
    pub(super) fn new(socket: TcpStream, deadline: Instant) -> Self {
        Self { socket, deadline }
    }

    /// Another deadline, for what comes next.
    pub(super) fn bound(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        self.deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .map(Some)
            .ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
