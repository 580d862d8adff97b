//! The cases under `conformance/gate/`: agents, requests in order, and what each must be answered.

use std::collections::BTreeMap;
use std::fs;

use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Content, Limits, Value};
use serde::Deserialize;

use crate::conformance::files_under;
use crate::service::{Answer, Client, OPERATOR_KEY, Server};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    case: Vec<GateCase>,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateCase {
    /// Unique in its file.
    pub name: String,
    #[serde(default)]
    bundle: String,
    agent: Option<String>,
    request: Vec<GateRequest>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateRequest {
    verify: Option<String>,
    tool: Option<String>,
    get: Option<String>,
    post: Option<String>,
    register: Option<String>,
    body: Option<String>,
    token: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    advance_ms: u64,
    status: Option<u16>,
    decision: Option<String>,
    code: Option<String>,
    message: Option<String>,
    expect: Option<String>,
    #[serde(default)]
    absent: Vec<String>,
    times: Option<usize>,
    #[serde(default)]
    as_agent: bool,
}

impl GateCase {
    /// The codes it expects.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        self.request.iter().filter_map(|request| request.code.as_deref())
    }
}

/// Every file of cases: its name and its cases.
pub fn load() -> Vec<(String, Vec<GateCase>)> {
    let top = crate::repository().join("conformance/gate");
    let files: Vec<_> = files_under(&top)
        .iter()
        .map(|path| {
            let name = path.strip_prefix(&top).expect("below the top").display().to_string();
            let text = fs::read_to_string(path).expect("a case file");
            let file: RawFile =
                toml::from_str(&text).unwrap_or_else(|error| panic!("conformance/gate/{name}: {error}"));
            (name, file.case)
        })
        .collect();
    assert!(!files.is_empty(), "there are no cases of the gate");
    files
}

/// Runs a case on a fresh server and tells everything that is not as it should be.
pub fn run(case: &GateCase, start: impl Fn(Bundle) -> Server) -> Result<(), String> {
    let bundle = Bundle::load(&case.bundle, &BTreeMap::new(), false).map_err(|error| format!("bundle: {error}"))?;
    let server = start(bundle);
    let mut client = server.client();
    let default = r#"{"name":"a","type":"supervised","principal_id":"p"}"#;
    let mut names = Names {
        own: register(&mut client, case.agent.as_deref().unwrap_or(default))?,
        foreign: register(&mut client, default)?,
        approver: create_key(&mut client, r#"{"name":"ann","role":"approver"}"#)?,
        registrar: create_key(&mut client, r#"{"name":"reg","role":"registrar","max_trust":1}"#)?,
        approval: String::new(),
        decision: String::new(),
        key: (String::new(), String::new()),
        cursor: String::new(),
        former: String::new(),
        repetition: 1,
    };
    let mut wrong = Vec::new();
    for (position, request) in case.request.iter().enumerate() {
        server.clock.advance(request.advance_ms);
        for repetition in 1..=request.times.unwrap_or(1) {
            names.repetition = repetition;
            let answer = request.send(&mut client, &names)?;
            if let Err(reason) = request.check(&answer, &names) {
                wrong.push(format!("request {}: {reason}\n    {} {}", position + 1, answer.status, answer.body));
            }
            names.learn(&answer, request.as_agent);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}

/// What stands for `{…}` in a case: what is known from the start, and what answers told.
#[derive(Debug)]
struct Names {
    own: TestAgent,
    foreign: TestAgent,
    approver: String,
    registrar: String,
    approval: String,
    decision: String,
    /// Id and secret of the last key that was made.
    key: (String, String),
    cursor: String,
    /// The own token before the last rotation.
    former: String,
    /// The how manieth time a request is sent.
    repetition: usize,
}

impl Names {
    fn fill(&self, text: &str) -> String {
        text.replace("{agent}", &self.own.id)
            .replace("{token}", &self.own.token)
            .replace("{foreign}", &self.foreign.id)
            .replace("{approval}", &self.approval)
            .replace("{decision}", &self.decision)
            .replace("{key_id}", &self.key.0)
            .replace("{key}", &self.key.1)
            .replace("{cursor}", &self.cursor)
            .replace("{n}", &self.repetition.to_string())
    }

    fn learn(&mut self, answer: &Answer, as_agent: bool) {
        let Ok(document) = json::parse(&answer.body, &Limits::STATE) else { return };
        let read = |key: &str| document.root().get(key)?.as_str().map(|text| text.text().to_owned());
        let learn = |known: &mut String, key: &str| {
            if let Some(told) = read(key) {
                *known = told;
            }
        };
        learn(&mut self.approval, "approval_id");
        learn(&mut self.decision, "decision_id");
        learn(&mut self.key.0, "key_id");
        learn(&mut self.key.1, "key");
        learn(&mut self.cursor, "next_cursor");
        match (read("agent_id"), read("agent_token")) {
            (Some(id), Some(token)) if as_agent || id == self.own.id => {
                self.former = std::mem::replace(&mut self.own, TestAgent { id, token }).token;
            }
            _ => {}
        }
    }
}

/// Makes an operator's key.
pub fn create_key(client: &mut Client, body: &str) -> Result<String, String> {
    let headers = [("authorization", &*format!("Bearer {OPERATOR_KEY}"))];
    let answer = client.send("POST", "/keys", &headers, body).map_err(|error| error.to_string())?;
    let document = json::parse(&answer.body, &Limits::STATE).map_err(|error| error.to_string())?;
    let key = document.root().get("key").and_then(|key| key.as_str()).map(|key| key.text().to_owned());
    key.ok_or_else(|| format!("no key: {} {}", answer.status, answer.body))
}

/// An agent with its token.
#[derive(Debug, Clone)]
pub struct TestAgent {
    /// Its id.
    pub id: String,
    /// Its token.
    pub token: String,
}

/// Registers an agent.
pub fn register(client: &mut Client, body: &str) -> Result<TestAgent, String> {
    register_with(client, OPERATOR_KEY, body)
}

/// Registers an agent with an operator's key.
pub fn register_with(client: &mut Client, key: &str, body: &str) -> Result<TestAgent, String> {
    let headers = [("authorization", &*format!("Bearer {key}"))];
    let answer = client.send("POST", "/agents/register", &headers, body).map_err(|error| error.to_string())?;
    let read = |key: &str| {
        let document = json::parse(&answer.body, &Limits::STATE).ok()?;
        document.root().get(key)?.as_str().map(|text| text.text().to_owned())
    };
    match (read("agent_id"), read("agent_token")) {
        (Some(id), Some(token)) => Ok(TestAgent { id, token }),
        _ => Err(format!("not registered: {} {}", answer.status, answer.body)),
    }
}

impl GateRequest {
    fn send(&self, client: &mut Client, names: &Names) -> Result<Answer, String> {
        let Names { own, foreign, .. } = names;
        let fill = |text: &str| names.fill(text);
        let agent = &own.id;
        let (method, path, body) = match (&self.verify, &self.tool, &self.get, &self.post, &self.register) {
            (Some(body), None, None, None, None) => ("POST", format!("/agents/{agent}/verify"), Some(body)),
            (None, Some(tool), None, None, None) => {
                ("POST", format!("/agents/{agent}/tools/{tool}"), self.body.as_ref())
            }
            (None, None, Some(path), None, None) => ("GET", path.clone(), None),
            (None, None, None, Some(path), None) => ("POST", path.clone(), self.body.as_ref()),
            (None, None, None, None, Some(body)) => ("POST", "/agents/register".to_owned(), Some(body)),
            _ => return Err("a request must be of exactly one kind".to_owned()),
        };
        let operator = format!("Bearer {OPERATOR_KEY}");
        let mut headers: Vec<(&str, String)> = Vec::new();
        match self.token.as_deref().unwrap_or(if self.register.is_some() { "operator" } else { "own" }) {
            "own" => headers.push(("x-agent-token", own.token.clone())),
            "foreign" => headers.push(("x-agent-token", foreign.token.clone())),
            "wrong" => headers.push(("x-agent-token", format!("qwed_agent_{}", "0".repeat(64)))),
            "operator" => headers.push(("authorization", operator)),
            "approver" => headers.push(("authorization", format!("Bearer {}", names.approver))),
            "registrar" => headers.push(("authorization", format!("Bearer {}", names.registrar))),
            "former" => headers.push(("x-agent-token", names.former.clone())),
            "key" => headers.push(("authorization", format!("Bearer {}", names.key.1))),
            "none" => {}
            other => return Err(format!("unknown token `{other}`")),
        }
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), fill(value))));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = body.map(|body| fill(body)).unwrap_or_default();
        client.send(method, &fill(&path), &headers, &body).map_err(|error| format!("{method} {path}: {error}"))
    }

    fn check(&self, answer: &Answer, names: &Names) -> Result<(), String> {
        let default = if self.register.is_some() { 201 } else { 200 };
        let status = self.status.unwrap_or(default);
        if answer.status != status {
            return Err(format!("status {} instead of {status}", answer.status));
        }
        let document = json::parse(&answer.body, &Limits::STATE).map_err(|error| format!("no JSON: {error}"))?;
        let root = document.root();
        let text = |path: &[&str]| {
            let found = path.iter().try_fold(root, |value, key| value.get(key))?;
            found.as_str().map(|text| text.text().to_owned())
        };
        let same = |what: &str, found: Option<String>, wanted: &Option<String>| match wanted {
            Some(wanted) if found.as_ref() != Some(wanted) => Err(format!("{what} {found:?} instead of {wanted:?}")),
            _ => Ok(()),
        };
        same("decision", text(&["decision"]), &self.decision)?;
        same("code", text(&["error", "code"]), &self.code)?;
        if let Some(part) = &self.message
            && !text(&["error", "message"]).unwrap_or_default().contains(part)
        {
            return Err(format!("the message does not say {part:?}"));
        }
        for key in &self.absent {
            if root.get(key).is_some() {
                return Err(format!("`{key}` must not be there"));
            }
        }
        if let Some(expected) = &self.expect {
            let expected = names.fill(expected);
            let expected = json::parse(&expected, &Limits::STATE).map_err(|error| format!("expect: {error}"))?;
            is_subset(expected.root(), root)?;
        }
        Ok(())
    }
}

/// Objects by subset, everything else by value.
fn is_subset(expected: Value<'_>, found: Value<'_>) -> Result<(), String> {
    match expected.content() {
        Some(Content::Object(members)) => {
            for (key, value) in members {
                let member =
                    found.get(key.text()).ok_or_else(|| format!("{}.{} is missing", found.path(), key.text()))?;
                is_subset(value, member)?;
            }
            Ok(())
        }
        Some(Content::Array(items)) => {
            let others = found.as_array().ok_or_else(|| format!("{} is no list", found.path()))?;
            if items.len() != others.len() {
                return Err(format!("{} has {} items instead of {}", found.path(), others.len(), items.len()));
            }
            items.zip(others).try_for_each(|(item, other)| is_subset(item, other))
        }
        _ if json::equal(expected, found) => Ok(()),
        _ => Err(format!("{} is {} instead of {}", found.path(), found.source(), expected.source())),
    }
}
