//! The only way from a contained command to a network: a proxy that connects to named hosts and writes each of them down.
//!
//! It listens at a socket of the command's own network namespace and connects from outside it. It understands `CONNECT`
//! and plain requests with a whole address; it looks into neither answers nor encrypted streams. One request to a
//! connection, so that a second one cannot name another host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::hosts::{Asked, Hosts, is_public, split_port};
use crate::Reached;
use crate::start::NAMED_MAX;

/// How many connections there may be at once.
const CONNECTIONS_MAX: usize = 64;
/// How long a request may be before its body.
const HEAD_LEN_MAX: usize = 16 * 1024;
/// How long it may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// How long a host may take to answer a call.
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// How long a connection may be silent.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// How many addresses of a host are tried.
const ADDRESSES_MAX: usize = 8;

/// A proxy that serves as long as this is kept.
pub(crate) struct Proxy {
    desk: Arc<Desk>,
    /// Closes when this goes, which ends the thread.
    _stop: OwnedFd,
}

struct Desk {
    hosts: Hosts,
    reached: Mutex<Vec<Reached>>,
    open: AtomicUsize,
}

impl Proxy {
    /// Serves at a socket that already listens.
    pub(crate) fn serve(socket: OwnedFd, hosts: Hosts) -> io::Result<Proxy> {
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        let desk = Arc::new(Desk { hosts, reached: Mutex::new(Vec::new()), open: AtomicUsize::new(0) });
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let theirs = Arc::clone(&desk);
        thread::Builder::new().name("proxy".to_owned()).spawn(move || theirs.accept(&listener, &stopped))?;
        Ok(Proxy { desk, _stop: stop })
    }

    /// Which hosts were asked for, each once.
    pub(crate) fn reached(&self) -> Vec<Reached> {
        self.desk.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a request asks for.
struct Request {
    asked: Asked,
    port: u16,
    /// What the host is sent first; empty for a tunnel.
    first: Vec<u8>,
    is_tunnel: bool,
}

/// Why a request is answered with a refusal.
struct Refused(&'static str, String);

impl Desk {
    fn accept(self: Arc<Desk>, listener: &TcpListener, stopped: &OwnedFd) {
        loop {
            let mut polled = [PollFd::new(listener, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
            match rustix::event::poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let [_, is_over] = polled.map(|one| !one.revents().is_empty());
            if is_over {
                return;
            }
            let Ok((client, _)) = listener.accept() else { continue };
            // Whoever holds too many gets none; the command's own doing.
            if self.open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
                self.open.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let desk = Arc::clone(&self);
            let spawned = thread::Builder::new().spawn(move || {
                let _ = desk.converse(client);
                desk.open.fetch_sub(1, Ordering::AcqRel);
            });
            if spawned.is_err() {
                self.open.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    fn converse(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nonblocking(false)?;
        let (head, rest) = read_head(&mut client)?;
        let result = parse(&head).and_then(|request| Ok((self.connect(&request)?, request)));
        let (mut host, request) = match result {
            Ok(connected) => connected,
            Err(Refused(status, why)) => {
                let length = why.len().saturating_add(1);
                return write!(
                    client,
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
                );
            }
        };
        if request.is_tunnel {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        }
        host.write_all(&request.first)?;
        host.write_all(&rest)?;
        for stream in [&client, &host] {
            stream.set_read_timeout(Some(IDLE_TIME))?;
            stream.set_write_timeout(Some(IDLE_TIME))?;
        }
        let (mut from_client, mut to_host) = (client.try_clone()?, host.try_clone()?);
        let up = thread::Builder::new().spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_host);
            let _ = to_host.shutdown(Shutdown::Write);
        })?;
        let _ = io::copy(&mut host, &mut client);
        let _ = client.shutdown(Shutdown::Both);
        let _ = host.shutdown(Shutdown::Both);
        let _ = up.join();
        Ok(())
    }

    fn connect(&self, request: &Request) -> Result<TcpStream, Refused> {
        let Request { asked, port, .. } = request;
        let allowed = self.hosts.allow(asked, *port);
        self.note(asked, allowed);
        if !allowed {
            return Err(Refused(
                "403 Forbidden",
                format!("`{asked}` port {port} is not among the hosts of this profile"),
            ));
        }
        let addresses: Vec<SocketAddr> = match asked {
            Asked::Address(address) => vec![SocketAddr::new(*address, *port)],
            Asked::Name(name) => {
                let found = (name.as_str(), *port).to_socket_addrs();
                let found = found.map_err(|_| Refused("502 Bad Gateway", format!("`{asked}` has no address")))?;
                let (public, others): (Vec<_>, Vec<_>) =
                    found.take(ADDRESSES_MAX).partition(|address| is_public(address.ip()));
                if public.is_empty() && !others.is_empty() {
                    self.note(asked, false);
                    let why = format!("`{asked}` leads to an address of this machine or of a private network");
                    return Err(Refused("403 Forbidden", why));
                }
                public
            }
        };
        let connected = addresses.iter().find_map(|at| TcpStream::connect_timeout(at, CONNECT_TIME).ok());
        connected.ok_or_else(|| Refused("502 Bad Gateway", format!("`{asked}` port {port} could not be reached")))
    }

    fn note(&self, asked: &Asked, allowed: bool) {
        let one = Reached { host: asked.to_string(), allowed };
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.len() < NAMED_MAX && !reached.contains(&one) {
            reached.push(one);
        }
    }
}

/// Reads up to the empty line, and what came behind it.
fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let until = Instant::now().checked_add(HEAD_TIME);
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = until.and_then(|until| until.checked_duration_since(Instant::now()));
        let left = left.filter(|left| !left.is_zero()).ok_or(io::ErrorKind::TimedOut)?;
        client.set_read_timeout(Some(left))?;
        let count = client.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(part.get(..count).unwrap_or(&[]));
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end.saturating_add(4));
            return Ok((read, rest));
        }
        if read.len() > HEAD_LEN_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn parse(head: &[u8]) -> Result<Request, Refused> {
    let bad = |why: &str| Refused("400 Bad Request", why.to_owned());
    let text = std::str::from_utf8(head).map_err(|_| bad("the request is not text"))?;
    let (line, fields) = text.split_once("\r\n").ok_or_else(|| bad("the request has no line"))?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the request has no address"));
    };
    if !version.starts_with("HTTP/1.") || fields.contains('\0') {
        return Err(bad("the request is not HTTP/1"));
    }
    if method == "CONNECT" {
        let (asked, port) = authority(target).ok_or_else(|| bad("the host cannot be read"))?;
        let port = port.ok_or_else(|| bad("the port is missing"))?;
        return Ok(Request { asked, port, first: Vec::new(), is_tunnel: true });
    }
    let rest = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://")).and(target.get(7..));
    let rest = rest.ok_or_else(|| bad("only `CONNECT` and requests with a whole address are passed on"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end).ok_or_else(|| bad("the address cannot be read"))?;
    let (asked, port) = authority(host).ok_or_else(|| bad("the host cannot be read"))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    // The host that is asked is the one that was allowed, whatever the fields say.
    let mut first = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for field in fields.split("\r\n").filter(|field| !field.is_empty()) {
        let name = field.split(':').next().unwrap_or("").trim().to_ascii_lowercase();
        let is_ours =
            matches!(name.as_str(), "host" | "connection" | "keep-alive" | "upgrade") || name.starts_with("proxy-");
        if !is_ours && !field.starts_with([' ', '\t']) && !field.contains('\n') {
            first.push_str(field);
            first.push_str("\r\n");
        }
    }
    first.push_str("\r\n");
    Ok(Request { asked, port: port.unwrap_or(80), first: first.into_bytes(), is_tunnel: false })
}

/// A host and its port, as they stand in an address.
fn authority(text: &str) -> Option<(Asked, Option<u16>)> {
    if text.contains('@') {
        return None;
    }
    let (host, port) = split_port(text)?;
    Some((Asked::parse(host)?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_rewritten() {
        let read = |text: &str| parse(text.as_bytes()).ok().map(|it| (it.asked.to_string(), it.port, it.is_tunnel));
        assert_eq!(read("CONNECT a.org:443 HTTP/1.1\r\n\r\n"), Some(("a.org".to_owned(), 443, true)));
        assert_eq!(read("CONNECT [::1]:443 HTTP/1.1\r\n\r\n"), Some(("::1".to_owned(), 443, true)));
        assert_eq!(read("GET http://A.org/x HTTP/1.1\r\n\r\n"), Some(("a.org".to_owned(), 80, false)));
        assert_eq!(read("GET HTTP://a.org:81?x HTTP/1.0\r\n\r\n"), Some(("a.org".to_owned(), 81, false)));
        for text in [
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT x@a.org:443 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET http://u@a.org/ HTTP/1.1\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/2\r\n\r\n",
            "GET  http://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org\\@b.org/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let text = "POST http://a.org/p HTTP/1.1\r\nHost: b.org\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\n\
                    Content-Length: 3\r\n folded\r\n\r\n";
        let first = parse(text.as_bytes()).ok().map(|it| String::from_utf8(it.first).expect("UTF-8"));
        let expected = "POST /p HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(first.as_deref(), Some(expected));
    }
}
