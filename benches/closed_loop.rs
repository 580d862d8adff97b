//! A load generator that takes little: one thread, one wait for all connections, requests from prepared parts, and of
//! each answer only status, length and decision are read. It runs on the cores of the server it measures, so what it
//! takes the server does not get. Every answer is checked.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// How many steps a conversation has before the next one begins.
const STEPS: u32 = 50;
/// More than any answer has.
const ANSWER_BYTES_MAX: usize = 4096;

/// What is asked.
pub(crate) enum Load {
    /// `GET /healthz`.
    Health,
    /// An approved calculation, by the agents with these ids and tokens in turn, in conversations with this name.
    Approvals { agents: Vec<(String, String)>, name: String },
}

/// Asks over so many connections at once, each waiting for its answer before it asks again. Returns answers a second.
pub(crate) fn run(address: SocketAddr, connections: usize, load: &Load, time: Duration) -> f64 {
    let mut poll = Poll::new().expect("a selector");
    let mut lanes: Vec<Lane> = (0..connections).map(|number| Lane::open(address, number, load)).collect();
    for (number, lane) in lanes.iter_mut().enumerate() {
        poll.registry().register(&mut lane.stream, Token(number), Interest::READABLE).expect("registered");
    }
    let mut events = Events::with_capacity(connections);
    let (start, mut answered, mut open) = (Instant::now(), 0_u64, connections);
    lanes.iter_mut().for_each(Lane::ask);
    let (mut is_over, mut rate) = (false, 0.0);
    while open > 0 {
        poll.poll(&mut events, Some(Duration::from_secs(30))).expect("events");
        assert!(!events.is_empty(), "no answer for half a minute");
        if !is_over && start.elapsed() >= time {
            (is_over, rate) = (true, answered as f64 / start.elapsed().as_secs_f64());
        }
        for event in &events {
            let lane = &mut lanes[event.token().0];
            if !lane.is_answered() {
                continue;
            }
            answered += 1;
            if is_over {
                open -= 1;
            } else {
                lane.ask();
            }
        }
    }
    rate
}

struct Lane {
    stream: TcpStream,
    /// Up to the length of the body.
    head: Vec<u8>,
    /// How its conversations begin; none if there is no body.
    conversation: Option<String>,
    conversation_number: u32,
    step: u32,
    request: Vec<u8>,
    answer: Box<[u8; ANSWER_BYTES_MAX]>,
    filled: usize,
}

impl Lane {
    fn open(address: SocketAddr, number: usize, load: &Load) -> Lane {
        let stream = std::net::TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        stream.set_nonblocking(true).expect("a socket");
        let (head, conversation) = match load {
            Load::Health => (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), None),
            Load::Approvals { agents, name } => {
                let (id, token) = &agents[number % agents.len()];
                let head = format!(
                    "POST /agents/{id}/verify HTTP/1.1\r\nhost: x\r\nx-agent-token: {token}\r\ncontent-length: "
                );
                (head.into_bytes(), Some(format!("{name}-{number}")))
            }
        };
        Lane {
            stream: TcpStream::from_std(stream),
            head,
            conversation,
            conversation_number: 0,
            step: 0,
            request: Vec::with_capacity(1024),
            answer: Box::new([0; ANSWER_BYTES_MAX]),
            filled: 0,
        }
    }

    fn ask(&mut self) {
        self.request.clear();
        self.request.extend_from_slice(&self.head);
        if let Some(conversation) = &self.conversation {
            self.step += 1;
            if self.step > STEPS {
                (self.conversation_number, self.step) = (self.conversation_number + 1, 1);
            }
            let (mut step, mut number) = (Decimal::default(), Decimal::default());
            let (step, number) = (step.of(self.step), number.of(self.conversation_number));
            let parts: [&[u8]; 8] = [
                b"{\"action\":{\"type\":\"calculate\",\"query\":\"",
                step,
                b" + 2 * 3\"},\"context\":{\"conversation_id\":\"",
                conversation.as_bytes(),
                b"-",
                number,
                b"\",\"step_number\":",
                step,
            ];
            let length = parts.iter().map(|part| part.len()).sum::<usize>() + 2;
            self.request.extend_from_slice(Decimal::default().of(length as u32));
            self.request.extend_from_slice(b"\r\n\r\n");
            parts.iter().for_each(|part| self.request.extend_from_slice(part));
            self.request.extend_from_slice(b"}}");
        }
        // Nothing else is under way on this connection, so there is room for a small request.
        let sent = self.stream.write(&self.request).expect("sent");
        assert_eq!(sent, self.request.len(), "sent in part");
    }

    /// Reads what has come. True once the answer is whole; anything but the expected one ends the benchmark.
    fn is_answered(&mut self) -> bool {
        match self.stream.read(&mut self.answer[self.filled..]) {
            Ok(length) => {
                assert!(length > 0, "the connection was closed");
                self.filled += length;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => panic!("no answer: {error}"),
        }
        let text = &self.answer[..self.filled];
        let Some(body) = body_of(text) else { return false };
        let expected: &[u8] = if self.conversation.is_some() { b"{\"decision\":\"APPROVED\"" } else { b"ok\n" };
        let right = text.starts_with(b"HTTP/1.1 200 OK\r\n") && body.starts_with(expected);
        assert!(right, "not as expected: {}", String::from_utf8_lossy(text));
        self.filled = 0;
        true
    }
}

/// The body of an answer, once it is whole.
fn body_of(text: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut length) = (text, 0);
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = rest.split_at(end + 1);
        rest = after;
        if line == b"\r\n" {
            break;
        }
        if let Some(digits) = line.strip_prefix(b"content-length: ") {
            length = digits.trim_ascii().iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
        }
    }
    (rest.len() >= length).then_some(rest)
}

/// The digits of a number, without an allocation.
#[derive(Default)]
struct Decimal([u8; 10]);

impl Decimal {
    fn of(&mut self, mut number: u32) -> &[u8] {
        let mut first = self.0.len();
        loop {
            first -= 1;
            self.0[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return &self.0[first..];
            }
        }
    }
}
