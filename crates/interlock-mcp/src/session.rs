//! One client's session: which messages are answered at once, which ask the daemon, and which get nothing.
//!
//! The era is a property of each request, not of the session: a request that names its revision is modern, everything
//! else is served under what `initialize` agreed on. So a client may probe in one era and go on in the other.

use std::collections::BTreeMap;

use interlock_core::display;
use interlock_core::json::{self, Items, Json, Limits, Value};

use crate::control::{ControlAnswer, ControlFault, ControlRequest};
use crate::message::{Message, NoMessage, Problem, RequestId, answer, envelope, object};
use crate::revision::Revision;
use crate::text;
use crate::tools::{PrefixError, Tool, Tools};

/// The longest line, its end not counted.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most messages in a batch.
pub const BATCH_MAX: usize = 64;
/// The most calls that may wait for an answer.
pub const CALLS_MAX: usize = 64;

/// What is to be done with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Write this line to the client. It holds no line break.
    Send(String),
    /// Ask the daemon, and hand its answer to [`Session::answer`].
    Call {
        /// Which call it is.
        id: CallId,
        /// What to ask.
        request: ControlRequest,
    },
}

/// A call of one session that waits for an answer. It is ours: two clients' ids may be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(u64);

/// A session with one client.
#[derive(Debug)]
pub struct Session {
    tools: Tools,
    version: String,
    /// What `initialize` agreed on.
    agreed: Option<Revision>,
    calls: BTreeMap<CallId, Call>,
    batches: BTreeMap<u64, Batch>,
    /// The last number given to a call or a batch.
    last: u64,
}

#[derive(Debug)]
struct Call {
    /// Who asked; `None` when the client does not want to know any more.
    asker: Option<RequestId>,
    revision: Revision,
    batch: Option<u64>,
}

/// Answers to one batch go out together, when the last is there.
#[derive(Debug, Default)]
struct Batch {
    answers: Vec<String>,
    waiting: usize,
}

/// What a message leads to.
enum Step {
    Nothing,
    Say(String),
    Ask(CallId, ControlRequest),
}

impl Session {
    /// A session whose tools are named `<prefix>_get_state` and `<prefix>_transition`.
    pub fn new(prefix: &str, version: &str) -> Result<Session, PrefixError> {
        Ok(Session {
            tools: Tools::new(prefix)?,
            version: version.to_owned(),
            agreed: None,
            calls: BTreeMap::new(),
            batches: BTreeMap::new(),
            last: 0,
        })
    }

    /// Takes one line from the client, without its end.
    pub fn receive(&mut self, line: &[u8]) -> Vec<Output> {
        if line.len() > LINE_BYTES_MAX {
            let what = format!("a line has at most {LINE_BYTES_MAX} bytes");
            return vec![Output::Send(Problem::malformed(what).answer(None))];
        }
        if line.trim_ascii().is_empty() {
            return Vec::new();
        }
        let document = match json::parse_bytes(line, &Limits { bytes: LINE_BYTES_MAX, ..Limits::STATE }) {
            Ok(document) => document,
            Err(error) => return vec![Output::Send(Problem::unreadable(&error).answer(None))],
        };
        match document.root().as_array() {
            Some(messages) => self.take_batch(messages),
            None => match self.take(document.root(), None) {
                Step::Nothing => Vec::new(),
                Step::Say(line) => vec![Output::Send(line)],
                Step::Ask(id, request) => vec![Output::Call { id, request }],
            },
        }
    }

    /// The line to send now that a call has its answer. There is none for a call that the client cancelled, or while
    /// other calls of the same batch still wait.
    pub fn answer(&mut self, id: CallId, said: Result<ControlAnswer, ControlFault>) -> Option<String> {
        let call = self.calls.remove(&id)?;
        let line = call.asker.map(|asker| answer(&asker, self.call_result(call.revision, said)));
        let Some(number) = call.batch else { return line };
        let batch = self.batches.get_mut(&number)?;
        batch.answers.extend(line);
        batch.waiting = batch.waiting.saturating_sub(1);
        self.close_batch(number)
    }

    /// Whether calls wait for an answer.
    pub fn is_waiting(&self) -> bool {
        !self.calls.is_empty()
    }

    fn take_batch(&mut self, messages: Items<'_>) -> Vec<Output> {
        let refused = |what: String| vec![Output::Send(Problem::malformed(what).answer(None))];
        if !self.agreed.is_some_and(Revision::has_batches) {
            return refused("a line holds one message; only revision 2025-03-26 has batches".to_owned());
        }
        if messages.len() == 0 || messages.len() > BATCH_MAX {
            return refused(format!("a batch has 1 to {BATCH_MAX} messages"));
        }
        let number = self.next_number();
        let (mut batch, mut outputs) = (Batch::default(), Vec::new());
        for message in messages {
            match self.take(message, Some(number)) {
                Step::Nothing => {}
                Step::Say(line) => batch.answers.push(line),
                Step::Ask(id, request) => {
                    batch.waiting = batch.waiting.saturating_add(1);
                    outputs.push(Output::Call { id, request });
                }
            }
        }
        self.batches.insert(number, batch);
        outputs.extend(self.close_batch(number).map(Output::Send));
        outputs
    }

    /// The answer to a whole batch, once nothing of it waits.
    fn close_batch(&mut self, number: u64) -> Option<String> {
        if self.batches.get(&number)?.waiting > 0 {
            return None;
        }
        let answers = self.batches.remove(&number)?.answers;
        (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
    }

    fn take(&mut self, message: Value<'_>, batch: Option<u64>) -> Step {
        match Message::read(message) {
            Err(NoMessage { answer }) => Step::Say(answer),
            Ok(Message::Response) => Step::Nothing,
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(params);
                }
                // Whatever else it is, nobody waits for an answer, and nothing runs without one.
                Step::Nothing
            }
            Ok(Message::Request { id, method, params }) => match self.serve(&id, method, params, batch) {
                Ok(step) => step,
                Err(problem) => Step::Say(problem.answer(Some(&id))),
            },
        }
    }

    /// Who cancels does not want an answer. What was asked may have happened all the same.
    fn cancel(&mut self, params: Option<Value<'_>>) {
        let cancelled = params.and_then(|params| params.get("requestId")).and_then(RequestId::read);
        if cancelled.is_some() {
            for call in self.calls.values_mut().filter(|call| call.asker == cancelled) {
                call.asker = None;
            }
        }
    }

    fn serve(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<Value<'_>>,
        batch: Option<u64>,
    ) -> Result<Step, Problem> {
        if method == "initialize" {
            if batch.is_some() {
                return Err(Problem::malformed("`initialize` stands alone, not in a batch"));
            }
            return Ok(Step::Say(answer(id, self.initialize(params)?)));
        }
        let named = envelope(params)?;
        if named.is_some() && batch.is_some() {
            return Err(Problem::malformed("revision 2026-07-28 has no batches"));
        }
        let revision = || named.or(self.agreed).ok_or_else(Problem::no_revision);
        let result = match method {
            "ping" if named.is_none() => object([]),
            "server/discover" if named.is_some() => self.discover(),
            "server/discover" => return Err(Problem::no_revision()),
            "tools/list" => self.list(revision()?, params)?,
            "tools/call" => {
                let revision = revision()?;
                return self.call(id, revision, params, batch);
            }
            _ => return Err(Problem::no_method(method)),
        };
        Ok(Step::Say(answer(id, result)))
    }

    fn initialize(&mut self, params: Option<Value<'_>>) -> Result<Json, Problem> {
        let wanted = params.and_then(|params| params.get("protocolVersion")).and_then(|wanted| wanted.as_str());
        let wanted = wanted.ok_or_else(|| Problem::invalid("`protocolVersion` must be a string"))?;
        if self.agreed.is_some() {
            return Err(Problem::malformed("the session is open already"));
        }
        let revision = Revision::negotiate(wanted.text());
        self.agreed = Some(revision);
        Ok(object([
            ("protocolVersion", revision.as_str().into()),
            ("capabilities", capabilities()),
            ("serverInfo", self.server_info(revision)),
            ("instructions", Json::String(self.tools.instructions())),
        ]))
    }

    fn discover(&self) -> Json {
        self.complete_cached(vec![
            ("supportedVersions", Revision::supported()),
            ("capabilities", capabilities()),
            ("instructions", Json::String(self.tools.instructions())),
        ])
    }

    fn list(&self, revision: Revision, params: Option<Value<'_>>) -> Result<Json, Problem> {
        // There is one page, so no cursor is one of ours.
        if params.is_some_and(|params| params.get("cursor").is_some()) {
            return Err(Problem::invalid("there is no such cursor"));
        }
        let tools = vec![("tools", self.tools.list(revision))];
        Ok(if revision.is_modern() { self.complete_cached(tools) } else { object(tools) })
    }

    fn call(
        &mut self,
        id: &RequestId,
        revision: Revision,
        params: Option<Value<'_>>,
        batch: Option<u64>,
    ) -> Result<Step, Problem> {
        let params = params.ok_or_else(|| Problem::invalid("`params` is missing"))?;
        let mut members = params.as_object().ok_or_else(|| Problem::invalid("`params` must be an object"))?;
        if let Some((key, _)) = members.find(|(key, _)| !["name", "arguments", "_meta"].contains(&key.text())) {
            return Err(Problem::invalid(format!("a call of this server has no '{}'", display(key.text()))));
        }
        let name = params.get("name").and_then(|name| name.as_str());
        let name = name.ok_or_else(|| Problem::invalid("`name` must be a string"))?.text();
        let tool = self.tools.find(name).ok_or_else(|| {
            let [state, transition] = [Tool::GetState, Tool::Transition].map(|tool| self.tools.name(tool));
            let unknown = display(name);
            Problem::invalid(format!("there is no tool '{unknown}' here, only `{state}` and `{transition}`"))
        })?;
        let arguments = params.get("arguments");
        if arguments.is_some_and(|arguments| arguments.as_object().is_none()) {
            return Err(Problem::invalid("`arguments` must be an object"));
        }
        if self.calls.values().any(|call| call.asker.as_ref() == Some(id)) {
            return Err(Problem::malformed("a request with this id waits for its answer"));
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(Problem::busy(CALLS_MAX));
        }
        match ControlRequest::read(tool, arguments) {
            Ok(request) => {
                let call = CallId(self.next_number());
                self.calls.insert(call, Call { asker: Some(id.clone()), revision, batch });
                Ok(Step::Ask(call, request))
            }
            // A result and no error: models see results, and mend what they wrote.
            Err(fault) => Ok(Step::Say(answer(id, self.call_result(revision, Err(fault))))),
        }
    }

    fn call_result(&self, revision: Revision, said: Result<ControlAnswer, ControlFault>) -> Json {
        let (text, structured, is_error) = match said {
            Ok(answer) => {
                let text = text::of_answer(&answer);
                match answer {
                    ControlAnswer::State(data) | ControlAnswer::Transition(data) => (text, data, false),
                    ControlAnswer::Refusal(data) => (text, data, true),
                }
            }
            Err(fault) => (text::of_fault(&fault), fault.to_json(), true),
        };
        let block = |text: String| object([("type", "text".into()), ("text", Json::String(text))]);
        let mut content = vec![block(text)];
        let mut members = vec![("isError", Json::Bool(is_error))];
        if revision.has_structure() {
            members.push(("structuredContent", structured));
        } else {
            content.push(block(structured.canonical()));
        }
        members.push(("content", Json::Array(content)));
        if revision.is_modern() { self.complete(members) } else { object(members) }
    }

    /// A modern result.
    fn complete(&self, mut members: Vec<(&str, Json)>) -> Json {
        let info = self.server_info(Revision::V2026_07_28);
        members.push(("resultType", "complete".into()));
        members.push(("_meta", object([("io.modelcontextprotocol/serverInfo", info)])));
        object(members)
    }

    /// A modern result that clients may keep. Ours is not worth keeping: asking again costs a line.
    fn complete_cached(&self, mut members: Vec<(&str, Json)>) -> Json {
        members.push(("ttlMs", Json::from(0_u64)));
        members.push(("cacheScope", "private".into()));
        self.complete(members)
    }

    fn server_info(&self, revision: Revision) -> Json {
        let mut members = vec![("name", Json::from("interlock")), ("version", self.version.as_str().into())];
        if revision.has_structure() {
            members.push(("title", "Interlock".into()));
        }
        object(members)
    }

    fn next_number(&mut self) -> u64 {
        self.last = self.last.saturating_add(1);
        self.last
    }
}

/// Tools, the same for the whole session.
fn capabilities() -> Json {
    object([("tools", object([]))])
}
