//! Requests as they are written, and answers as they are read: HTTP/1.1, one exchange for each connection.

use std::io::{self, BufRead, Read};

/// The most bytes before a body.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How many headers an answer may have.
const HEADERS_MAX: usize = 100;

/// A request, in parts.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`, `POST`.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The value of the `host` header.
    pub authority: &'a str,
    /// Headers beside those that every request has.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is sent; nothing for a `GET`.
    pub body: Option<&'a [u8]>,
}

impl Request<'_> {
    /// The whole request. An error says that a part of it would have ended its line early.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let is_part = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        let parts = [self.method, self.target, self.authority].into_iter();
        let headers = self.headers.iter().flat_map(|(name, value)| [*name, *value]);
        if !parts.chain(headers).all(is_part) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a header cannot hold this"));
        }
        let Request { method, target, authority, .. } = self;
        let version = env!("CARGO_PKG_VERSION");
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\nuser-agent: interlock/{version}\r\n"
        );
        for (name, value) in self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = self.body {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.unwrap_or_default());
        Ok(bytes)
    }
}

/// What comes before the body of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The status: 200 to 599, those before the one that counts being left out.
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header by its name in lower case; the first, if there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads a head. Interim answers come before the one that counts.
    pub fn read(stream: &mut impl BufRead) -> io::Result<Head> {
        loop {
            let head = Head::read_one(stream)?;
            if head.status >= 200 {
                return Ok(head);
            }
        }
    }

    fn read_one(stream: &mut impl BufRead) -> io::Result<Head> {
        let mut lines = stream.take(u64::try_from(HEAD_BYTES_MAX).unwrap_or(u64::MAX));
        let first = read_line(&mut lines)?;
        let mut words = first.splitn(3, ' ');
        let version = words.next().unwrap_or("");
        let status = words.next().and_then(|status| status.parse().ok()).filter(|status| (100..600).contains(status));
        let Some(status) = status.filter(|_| version.starts_with("HTTP/1.")) else {
            return Err(invalid("the first line is no status line"));
        };
        let mut head = Head { status, headers: Vec::new() };
        loop {
            let line = read_line(&mut lines)?;
            if line.is_empty() {
                return Ok(head);
            }
            if head.headers.len() >= HEADERS_MAX {
                return Err(invalid("there are too many headers"));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no name"))?;
            head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// How long the body is; `None` if only its end tells.
    pub fn length(&self) -> io::Result<Option<u64>> {
        let mut found = None;
        for (_, value) in self.headers.iter().filter(|(name, _)| name == "content-length") {
            let length = value.parse().map_err(|_| invalid("content-length is not a number"))?;
            if found.replace(length).is_some_and(|other| other != length) {
                return Err(invalid("there are two lengths"));
            }
        }
        Ok(found)
    }

    /// Whether the body comes in chunks.
    pub fn is_chunked(&self) -> io::Result<bool> {
        match self.header("transfer-encoding") {
            None => Ok(false),
            Some(coding) if coding.eq_ignore_ascii_case("chunked") => Ok(true),
            Some(_) => Err(invalid("its transfer-encoding is not chunked")),
        }
    }
}

/// An answer: a status that came counts, whatever became of the body behind it.
#[derive(Debug)]
pub struct Answer {
    /// Status and headers.
    pub head: Head,
    /// What follows them.
    pub body: io::Result<Vec<u8>>,
}

impl Answer {
    /// Reads an answer with a body of at most so many bytes.
    pub fn read(stream: &mut impl BufRead, body_bytes_max: usize) -> io::Result<Answer> {
        let head = Head::read(stream)?;
        let body = read_body(stream, &head, body_bytes_max);
        Ok(Answer { head, body })
    }

    /// The body as a text, with the head.
    pub fn text(self) -> io::Result<(Head, String)> {
        let body = String::from_utf8(self.body?).map_err(|_| invalid("the body is not UTF-8"))?;
        Ok((self.head, body))
    }
}

fn read_body(stream: &mut impl BufRead, head: &Head, bytes_max: usize) -> io::Result<Vec<u8>> {
    let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if head.is_chunked()? {
        return read_chunks(stream, bytes_max);
    }
    let mut body = Vec::new();
    let length = head.length()?;
    if length.is_some_and(|length| length > bytes_max) {
        return Err(too_large());
    }
    let read = stream.take(length.unwrap_or_else(|| bytes_max.saturating_add(1))).read_to_end(&mut body)?;
    let read = u64::try_from(read).unwrap_or(u64::MAX);
    match length {
        Some(length) if read != length => Err(io::ErrorKind::UnexpectedEof.into()),
        None if read > bytes_max => Err(too_large()),
        Some(_) | None => Ok(body),
    }
}

fn read_chunks(stream: &mut impl BufRead, bytes_max: u64) -> io::Result<Vec<u8>> {
    let line_max = u64::try_from(HEAD_BYTES_MAX).unwrap_or(u64::MAX);
    let (mut body, mut read) = (Vec::new(), 0_u64);
    loop {
        let line = read_line(&mut stream.take(line_max))?;
        let digits = line.split(';').next().unwrap_or("").trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk has no size"))?;
        if size == 0 {
            // Whatever trails is of no interest; the connection ends here.
            return Ok(body);
        }
        read = read.saturating_add(size);
        if read > bytes_max {
            return Err(too_large());
        }
        if u64::try_from(stream.take(size).read_to_end(&mut body)?).ok() != Some(size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !read_line(&mut stream.take(line_max))?.is_empty() {
            return Err(invalid("a chunk is longer than it says"));
        }
    }
}

fn read_line(lines: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let end = line.strip_suffix('\n').ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(end.strip_suffix('\r').unwrap_or(end).to_owned())
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn too_large() -> io::Error {
    invalid("the body is larger than any answer of Interlock")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, max: usize) -> Result<(u16, io::Result<String>), io::Error> {
        let answer = Answer::read(&mut text.as_bytes(), max)?;
        let status = answer.head.status;
        Ok((status, answer.text().map(|(_, body)| body)))
    }

    #[test]
    fn answers_are_read_by_their_length_their_chunks_or_to_their_end() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}and more",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.0 200\r\n\r\n{}",
            "HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        ] {
            let (status, body) = read(text, 2).unwrap();
            assert_eq!((status, body.unwrap().as_str()), (200, "{}"), "{text}");
        }
    }

    /// A status that came counts; the body behind it is no answer.
    #[test]
    fn bodies_that_lie_are_told_from_their_status() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 1\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
            "HTTP/1.1 200 OK\r\n\r\n{\"longer\":1}",
            "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"longer\":1}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\n{\"longer\":1}\r\n0\r\n\r\n",
        ] {
            let (status, body) = read(text, 4).unwrap();
            assert!(status == 200 && body.is_err(), "{text}: {body:?}");
        }
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        let long = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(HEAD_BYTES_MAX));
        for text in [
            "",
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 99 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nx\r\n\r\n",
            &many,
            &long,
        ] {
            assert!(read(text, 4).is_err(), "{}", text.get(..40).unwrap_or(text));
        }
    }

    #[test]
    fn no_part_of_a_request_ends_its_line() {
        let good = Request { method: "GET", target: "/", authority: "h", headers: &[("a", "b")], body: None };
        assert!(good.bytes().unwrap().ends_with(b"\r\na: b\r\n\r\n"));
        for headers in [&[("a", "b\r\nc: d")], &[("a\n", "b")], &[("a", "\u{e9}")]] {
            assert!(Request { headers, ..good }.bytes().is_err(), "{headers:?}");
        }
        assert!(Request { target: "/ HTTP/1.1\r\nx: y", ..good }.bytes().is_err());
    }
}
