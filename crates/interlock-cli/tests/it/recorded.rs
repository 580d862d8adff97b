//! A server that gives recorded answers and remembers what it was asked, on a port of its own, at a fixed time.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use interlock_testkit::wait::HANG;

use crate::interlock;

/// The key every command here is given.
pub(crate) const KEY: &str = "key-of-the-recorded-server";
/// 2026-11-15T12:00:30Z, as the server says with every answer.
const DATE: &str = "Sun, 15 Nov 2026 12:00:30 GMT";

/// A command that would go on by itself; it ends with its test, however that ends.
pub(crate) struct Spawned(pub(crate) std::process::Child);

impl Drop for Spawned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Spawned {
    pub(crate) fn start(command: &mut std::process::Command) -> Spawned {
        Spawned(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"))
    }

    /// What it prints, line by line.
    pub(crate) fn lines(&mut self) -> std::io::Lines<BufReader<std::process::ChildStdout>> {
        BufReader::new(self.0.stdout.take().expect("a pipe")).lines()
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

#[derive(Default)]
struct Book {
    /// Method and path with its query, and the answers to give, the last one for ever.
    answers: Vec<(String, VecDeque<Vec<u8>>)>,
    asked: Vec<RecordedRequest>,
}

/// The server; its thread ends with the process.
pub(crate) struct Recorded {
    pub(crate) address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

impl Recorded {
    pub(crate) fn start() -> Recorded {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let book = Arc::new(Mutex::new(Book::default()));
        let held = Arc::clone(&book);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let book = Arc::clone(&held);
                thread::spawn(move || answer(stream, &book));
            }
        });
        Recorded { address, book }
    }

    /// Answers a request with JSON; several answers to one request come in turn.
    pub(crate) fn on(&self, request: &str, status: u16, body: &str) -> &Recorded {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Said\r\ndate: {DATE}\r\ncontent-type: application/json\r\n");
        self.on_bytes(request, format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes())
    }

    /// Answers a request with whatever it is.
    pub(crate) fn on_bytes(&self, request: &str, answer: &[u8]) -> &Recorded {
        let mut book = self.book.lock().expect("the book");
        match book.answers.iter_mut().find(|(known, _)| known == request) {
            Some((_, answers)) => answers.push_back(answer.to_vec()),
            None => book.answers.push((request.to_owned(), VecDeque::from([answer.to_vec()]))),
        }
        drop(book);
        self
    }

    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        self.book.lock().expect("the book").asked.clone()
    }

    /// A command that talks to this server.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = interlock(arguments);
        command.env("INTERLOCK_URL", format!("http://{}", self.address)).env("INTERLOCK_API_KEY", KEY);
        command.env_remove("INTERLOCK_OPERATOR_KEY").env_remove("INTERLOCK_HOME");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> std::process::Output {
        self.command(arguments).output().expect("it runs")
    }
}

fn answer(stream: TcpStream, book: &Mutex<Book>) {
    let _ = stream.set_read_timeout(Some(HANG));
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let line = head.lines().next().unwrap_or("").trim_end_matches(" HTTP/1.1").to_owned();
    let answer = {
        let mut book = book.lock().expect("the book");
        book.asked.push(RecordedRequest { line: line.clone(), head, body: String::from_utf8(body).expect("UTF-8") });
        match book.answers.iter_mut().find(|(known, _)| *known == line) {
            Some((_, answers)) if answers.len() > 1 => answers.pop_front().expect("an answer"),
            Some((_, answers)) => answers[0].clone(),
            None => {
                let body = r#"{"error":{"code":"INTERLOCK-REQUEST-005","message":"no such route; see /openapi.json"}}"#;
                format!("HTTP/1.1 404 No\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
            }
        }
    };
    let _ = reader.get_mut().write_all(&answer);
}
