//! The log: what is said about a request or an event, as one line. It decides which words a line may hold; it does not
//! know where a request came from, nor anything of its path, headers and body.
//!
//! A line is written by a thread of its own from a bounded queue. A log that cannot be written loses lines, which are
//! counted, and holds up nothing.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use interlock_core::{display, visible};
use interlock_runtime::clock::{Clock, SystemClock};

use super::Note;
use super::queue::{Queue, Taken, Taking};
use crate::write::{Object, time};

/// How many lines may wait; more are dropped.
const QUEUE_LEN: usize = 4096;
/// The most characters of a message.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// A log; its clones write to the same place.
#[derive(Debug, Clone)]
pub struct Log {
    format: LogFormat,
    queue: Arc<Queue<String>>,
}

/// What a log looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Warnings and faults, for people.
    Text,
    /// Requests and events, one JSON object a line.
    Json,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Info,
    /// The caller's mistake, or something to keep an eye on.
    Warn,
    /// Our trouble.
    Error,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    fn of_status(status: u16) -> Level {
        match status {
            0..=399 => Level::Info,
            400..=499 => Level::Warn,
            500.. => Level::Error,
        }
    }
}

/// What is known of a request without looking into it.
#[derive(Debug)]
pub(crate) struct RequestLine<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) method: &'a str,
    /// The pattern of the route, never the path.
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) micros: u64,
}

impl Log {
    /// A log that writes to `out`, one call a line.
    pub fn start(format: LogFormat, out: impl Write + Send + 'static) -> io::Result<Log> {
        let queue = Queue::start("log", QUEUE_LEN, move |lines| write_lines(lines, out))?;
        Ok(Log { format, queue: Arc::new(queue) })
    }

    /// Says that something happened. As text, information is left out and the message is all there is.
    pub fn event(&self, level: Level, event: &'static str, message: &str, fields: &[(&str, &str)]) {
        let message = cut(message);
        match self.format {
            LogFormat::Text if level == Level::Info => {}
            LogFormat::Text => self.queue.put(format!("interlock: {message}\n")),
            LogFormat::Json => {
                let message = Some(message.as_str()).filter(|message| !message.is_empty());
                let mut object = opened(level).text("event", event).optional_text("message", message);
                for (key, value) in fields {
                    object = object.text(key, &cut(value));
                }
                self.queue.put(ended(object));
            }
        }
    }

    /// Whether requests are logged.
    pub(crate) fn has_requests(&self) -> bool {
        self.format == LogFormat::Json
    }

    pub(crate) fn request(&self, line: &RequestLine<'_>, note: &Note) {
        let object = opened(Level::of_status(line.status))
            .text("request_id", line.request_id)
            .text("method", line.method)
            .text("route", line.route)
            .raw("status", line.status)
            .raw("micros", line.micros)
            .optional_text("agent_id", note.agent_id.as_deref())
            .optional_text("decision", note.decision)
            .optional_text("decision_id", note.decision_id.as_deref())
            .optional_text("code", note.code)
            .optional_text("approval_id", note.approval_id.as_deref());
        // The only words here that somebody outside chose.
        let by = note.by.as_deref().map(|name| display(name).to_string());
        self.queue.put(ended(object.optional_text("by", by.as_deref())));
    }

    /// How many lines were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Writes what waits, but takes no longer than this.
    pub fn close(&self, within: Duration) {
        self.queue.close(within);
    }
}

fn opened(level: Level) -> Object {
    Object::new().text("time", &time(SystemClock.now())).text("level", level.as_str())
}

fn ended(object: Object) -> String {
    let mut line = object.end();
    line.push('\n');
    line
}

/// A text without anything that could end a line or repaint a terminal, and of limited length.
fn cut(text: &str) -> String {
    visible(&text.chars().take(MESSAGE_CHARS_MAX).collect::<String>())
}

fn write_lines(lines: &Taking<String>, mut out: impl Write) {
    let mut torn = false;
    while let Taken::One(line) = lines.next() {
        // Half a line may be there already; the next one must not become part of it.
        let whole = if torn { format!("\n{line}") } else { line };
        match write_whole(&mut out, whole.as_bytes()) {
            Ok(()) => torn = false,
            Err(written) => {
                torn = torn || written > 0;
                lines.count_dropped(1);
            }
        }
    }
}

/// Writes everything, or says how much was written before an error.
fn write_whole(out: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = || bytes.len().saturating_sub(rest.len());
        match out.write(rest) {
            Ok(0) => return Err(written()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(written()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    /// Nothing that works takes as long.
    const HANG: Duration = Duration::from_secs(900);

    /// Writes what it is told to: so many bytes, or an error.
    #[derive(Clone, Default)]
    struct Plan {
        steps: Arc<Mutex<Vec<Option<usize>>>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Plan {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut steps = self.steps.lock().unwrap();
            let step = if steps.is_empty() { Some(bytes.len()) } else { steps.remove(0) };
            let count = step.ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?.min(bytes.len());
            self.written.lock().unwrap().extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_torn_line_does_not_swallow_the_next_one() {
        let plan = Plan::default();
        *plan.steps.lock().unwrap() = vec![Some(10), None, None];
        let log = Log::start(LogFormat::Json, plan.clone()).unwrap();
        for event in ["torn", "lost", "whole", "also"] {
            log.event(Level::Warn, event, "", &[]);
        }
        log.close(HANG);
        let written = String::from_utf8(plan.written.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines.len(), 3, "{written}");
        assert!(lines[1].ends_with(r#""level":"warn","event":"whole"}"#), "{written}");
        assert!(lines[2].ends_with(r#""level":"warn","event":"also"}"#), "{written}");
        assert_eq!(log.dropped(), 2);
    }

    #[test]
    fn a_stuck_log_holds_up_nobody() {
        struct Stuck;
        impl Write for Stuck {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                loop {
                    std::thread::park();
                }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = Log::start(LogFormat::Json, Stuck).unwrap();
        // Whoever waited for it would wait for ever.
        for _ in 0..QUEUE_LEN + 100 {
            log.event(Level::Info, "event", "", &[]);
        }
        log.close(Duration::from_millis(50));
        // One line may be in the thread's hands.
        assert!((99..=100).contains(&log.dropped()), "{}", log.dropped());
    }

    #[test]
    fn words_from_outside_stay_in_their_place() {
        let plan = Plan::default();
        let log = Log::start(LogFormat::Json, plan.clone()).unwrap();
        let name = "x\",\"level\":\"info\"}\n{\"forged\":1}\u{1b}[2J\u{202e}\u{9b}\u{2028}\0";
        let note = Note { by: Some(name.to_owned()), ..Note::default() };
        let line = RequestLine { request_id: "r", method: "GET", route: "/agents", status: 200, micros: 1 };
        log.request(&line, &note);
        log.event(Level::Error, "fault", name, &[("code", name)]);
        log.close(HANG);
        let written = String::from_utf8(plan.written.lock().unwrap().clone()).unwrap();
        assert_eq!(written.lines().count(), 2, "{written}");
        for line in written.lines() {
            assert!(line.chars().all(interlock_core::is_visible), "{line}");
            let document = interlock_core::json::parse(line, &interlock_core::json::Limits::STATE).unwrap();
            assert!(document.root().get("forged").is_none());
        }
    }

    #[test]
    fn text_is_for_warnings_and_faults_alone() {
        let plan = Plan::default();
        let log = Log::start(LogFormat::Text, plan.clone()).unwrap();
        log.event(Level::Info, "start", "all is well", &[]);
        log.event(Level::Error, "ledger_fault", "a\nb", &[]);
        log.close(HANG);
        assert_eq!(String::from_utf8(plan.written.lock().unwrap().clone()).unwrap(), "interlock: a\\u{a}b\n");
        assert!(!log.has_requests());
    }
}
