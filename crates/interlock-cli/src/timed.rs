//! A connection on which everything ends by a deadline, however slowly the other side drips.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// A stream, and when whatever it is asked for has to have ended.
pub(crate) struct Timed<S> {
    pub(crate) stream: S,
    pub(crate) deadline: Instant,
}

/// A stream that can be told how long to wait.
pub(crate) trait Patience {
    fn wait_to_read(&self, time: Duration) -> io::Result<()>;
    fn wait_to_write(&self, time: Duration) -> io::Result<()>;
}

impl Patience for TcpStream {
    fn wait_to_read(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }

    fn wait_to_write(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }
}

impl Patience for UnixStream {
    fn wait_to_read(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }

    fn wait_to_write(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }
}

impl<S> Timed<S> {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl<S: Patience + Read> Read for Timed<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.wait_to_read(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl<S: Patience + Write> Write for Timed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.wait_to_write(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Connects to a socket, or gives up at the deadline: the system itself would wait for ever while the queue of a listener
/// is full.
pub(crate) fn connect_unix(socket: &Path, deadline: Instant) -> io::Result<Timed<UnixStream>> {
    let (connected, result) = channel();
    let socket = socket.to_owned();
    thread::spawn(move || {
        // Whoever asked may have given up.
        let _ = connected.send(UnixStream::connect(socket));
    });
    let left = deadline.saturating_duration_since(Instant::now());
    let stream = result.recv_timeout(left).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    Ok(Timed { stream, deadline })
}
