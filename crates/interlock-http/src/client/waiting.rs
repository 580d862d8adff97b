//! Connections of those who wait: everything ends by a deadline, however slowly the other side drips.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use interlock_runtime::startup::StartupFault;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::address::Address;
use super::message::{Answer, Request};
use crate::tls::encrypted;

/// A connection of any kind.
pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectFault {
    /// Nobody is there, or nobody answers.
    Unreachable(io::Error),
    /// There is nothing to speak TLS with.
    Trust(StartupFault),
}

/// A stream, and when whatever it is asked for has to have ended.
#[derive(Debug)]
pub struct Timed<S> {
    stream: S,
    deadline: Instant,
}

/// A stream that can be told how long to wait.
trait Patience {
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

/// Opens a connection, encrypted if the address says so; `authorities` are believed beside the machine's own.
pub fn connect(
    address: &Address,
    authorities: Option<&Path>,
    connect_time_max: Duration,
    deadline: Instant,
) -> Result<Box<dyn Stream>, ConnectFault> {
    let found = (address.host.as_str(), address.port).to_socket_addrs().map_err(ConnectFault::Unreachable)?;
    let mut failed = io::Error::other("the name has no address");
    for candidate in found {
        match TcpStream::connect_timeout(&candidate, connect_time_max) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                let stream = Timed { stream, deadline };
                if !address.is_encrypted {
                    return Ok(Box::new(stream));
                }
                let encrypted = encrypted(stream, &address.host, authorities).map_err(ConnectFault::Trust)?;
                return Ok(Box::new(encrypted));
            }
            Err(error) => failed = error,
        }
    }
    Err(ConnectFault::Unreachable(failed))
}

/// Connects to a socket, or gives up at the deadline: the system itself would wait for ever while the queue of a listener
/// is full.
pub fn connect_unix(socket: &Path, deadline: Instant) -> io::Result<Timed<UnixStream>> {
    let stream = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let stream = Timed { stream: UnixStream::from(stream), deadline };
    // The time for sending is the time for connecting as well.
    stream.stream.wait_to_write(stream.left()?)?;
    match net::connect(&stream.stream, &SocketAddrUnix::new(socket)?) {
        Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        other => Ok(other.map(|()| stream)?),
    }
}

/// Sends a request and reads the answer, with a body of at most so many bytes.
pub fn exchange(mut stream: impl Stream, request: &Request<'_>, body_bytes_max: usize) -> io::Result<Answer> {
    let sent = stream.write_all(&request.bytes()?).and_then(|()| stream.flush());
    // Whoever answers before everything was read is heard all the same.
    match (sent, Answer::read(&mut BufReader::new(stream), body_bytes_max)) {
        (Err(error), Err(_)) => Err(error),
        (_, answer) => answer,
    }
}
