//! What the real server tells about itself: lines that nobody outside can forge, spans that a collector can read, and
//! neither ever in the way of a request.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use interlock_core::json::{self, Limits, Value};
use interlock_core::{Digest, is_visible};
use interlock_testkit::gate::{TestAgent, register_with};
use interlock_testkit::service::{Answer, Client};
use interlock_testkit::wait::{HANG, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");
const KEY: &str = "operator-key-of-this-test";
/// In everything that comes from outside, and so in nothing that is told.
const MARK: &str = "m4rk";

struct Served {
    child: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// A server with its standard error wherever the shell puts it: `$0` is the program, `$1` the data directory.
    fn through_shell(data: &Path, script: &str, flags: &[&str], stderr: Stdio) -> Served {
        let mut command = Command::new("bash");
        command.args(["-c", script, PROGRAM]).arg(data).args(flags);
        command.env("INTERLOCK_OPERATOR_KEY", KEY).env_remove("INTERLOCK_HOME").env_remove("LD_LIBRARY_PATH");
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('"').next()).expect("an address");
        Served { address: address.parse().expect("an address"), child }
    }

    fn start(data: &Path, flags: &[&str], stderr: Stdio) -> Served {
        Served::through_shell(data, SERVE, flags, stderr)
    }

    fn client(&self) -> Client {
        Client::new(self.address)
    }

    fn stop(&mut self) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill");
        assert!(self.child.wait().expect("an end").success());
    }

    fn metric(&self, name: &str) -> u64 {
        let answer = self.client().send("GET", "/metrics", &[("x-api-key", KEY)], "").expect("metrics");
        let line = answer.body.lines().find(|line| line.starts_with(&format!("{name} "))).expect("the metric");
        line.split(' ').nth(1).and_then(|value| value.parse().ok()).expect("a number")
    }

    fn wait_for(&self, name: &str, least: u64) {
        until(&format!("{name} is {least}"), || self.metric(name) >= least);
    }

    fn agent(&self) -> TestAgent {
        let body = r#"{"name":"a","type":"supervised","principal_id":"p","budget":{"max_daily_cost_usd":null,
            "max_requests_per_hour":null,"max_requests_per_day":null}}"#;
        register_with(&mut self.client(), KEY, body).expect("an agent")
    }
}

const SERVE: &str = "data=\"$1\"; shift; exec \"$0\" serve --json --listen 127.0.0.1:0 --data \"$data\" \"$@\"";

/// A directory that passes the start-up checks: ours alone, in one that others cannot write.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(Path::new(PROGRAM).parent().expect("a directory")).expect("a directory")
}

fn verify(client: &mut Client, agent: &TestAgent, headers: &[(&str, &str)], kind: &str, step: u64) -> Answer {
    let body = format!(
        r#"{{"action":{{"type":"{kind}","query":"{step}+1"}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
    );
    let headers = [&[("x-agent-token", agent.token.as_str())][..], headers].concat();
    client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer")
}

/// The text of a member, `a.b.c`.
fn text_at(text: &str, path: &str) -> Option<String> {
    let document = json::parse(text, &Limits::STATE).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found = path.split('.').try_fold(document.root(), |value, key| value.get(key))?;
    Some(found.as_str().map_or_else(|| found.source().to_owned(), |text| text.text().to_owned()))
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

/// Lines that are one strict JSON object each, with known members and nothing that moves a cursor.
fn check_lines(text: &str) -> Vec<String> {
    const KNOWN: [&str; 16] = [
        "time",
        "level",
        "event",
        "message",
        "version",
        "listen",
        "request_id",
        "method",
        "route",
        "status",
        "micros",
        "agent_id",
        "decision",
        "decision_id",
        "code",
        "approval_id",
    ];
    assert!(text.ends_with('\n'), "the last line is whole");
    let lines: Vec<String> = text.split_terminator('\n').map(str::to_owned).collect();
    for line in &lines {
        assert!(line.chars().all(is_visible), "{line}");
        let document = json::parse(line, &Limits::STATE).unwrap_or_else(|error| panic!("{error}: {line}"));
        let members = document.root().as_object().unwrap_or_else(|| panic!("no object: {line}"));
        for (key, _) in members {
            assert!(KNOWN.contains(&key.text()) || key.text() == "by", "{line}");
        }
        assert!(text_at(line, "event").is_some() != text_at(line, "request_id").is_some(), "{line}");
    }
    lines
}

#[test]
fn nobody_outside_can_forge_a_line() {
    let scratch = scratch();
    let path = scratch.path().join("log");
    let log = File::create(&path).expect("a log");
    let mut served = Served::start(&scratch.path().join("data"), &["--log", "json"], log.into());
    let mut client = served.client();
    // As it stands in JSON, in a path, and in a header.
    let hostile = format!(
        r#"{MARK}\",\"level\":\"error\"}}\n{{\"event\":\"{MARK}\"}}\r\u001b[2J\u009b\u0000\u202e\u2028\ud83d\ude00\u007f"#
    );
    let in_path = format!("{MARK}%22%7D%0A%7B%22event%22:1%7D%0D%1B%00%E2%80%AE%C2%9B");
    let in_header = format!("{MARK}\"}}\t{{\"event\":1}}\u{9b}\u{202e}");
    let bearer = format!("Bearer {KEY}");
    let operator = ("authorization", bearer.as_str());
    let mut sent = 0_usize;
    let mut statuses = Vec::new();
    let mut send = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let headers = [&[("x-request-id", in_header.as_str()), ("traceparent", &in_header)][..], headers].concat();
        let answer = client.send(method, path, &headers, body).unwrap_or_else(|error| panic!("{path}: {error}"));
        let id = header(&answer, "x-request-id").expect("an id").to_owned();
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        sent += 1;
        statuses.push((id, answer.status));
        answer
    };
    let answer = send(
        "POST",
        "/agents/register",
        &[operator],
        &format!(
            r#"{{"name":"{hostile}","type":"supervised","principal_id":"{hostile}","description":"{hostile}",
            "framework":"{hostile}","model":"{hostile}","permissions":{{"blocked_tools":["{hostile}"]}}}}"#
        ),
    );
    assert_eq!(answer.status, 201, "{}", answer.body);
    let id = text_at(&answer.body, "agent_id").expect("an id");
    let token = text_at(&answer.body, "agent_token").expect("a token");
    let agent = ("x-agent-token", token.as_str());
    let context = |step: u64| {
        format!(r#""context":{{"conversation_id":"{hostile}","step_number":{step},"user_intent":"{hostile}"}}"#)
    };
    let verify_path = format!("/agents/{id}/verify");
    for (step, kind) in [(1, "calculate"), (2, hostile.as_str()), (3, "send_email")] {
        let action = format!(
            r#"{{"type":"{kind}","query":"{hostile}","code":"{hostile}","target":"{hostile}","parameters":{{"{hostile}":"{hostile}"}}}}"#
        );
        let answer = send("POST", &verify_path, &[agent], &format!(r#"{{"action":{action},{}}}"#, context(step)));
        assert!(answer.body.contains("decision_id"), "{}", answer.body);
    }
    let body = format!(r#"{{"action":{{"type":"send_email","parameters":{{"to":"{MARK}"}}}},{}}}"#, context(4));
    let answer = send("POST", &verify_path, &[agent], &body);
    assert!(answer.body.contains("PENDING"), "{}", answer.body);
    let answer = send("POST", &verify_path, &[agent, ("idempotency-key", &in_header)], &format!("{{\"{hostile}\":1}}"));
    assert_eq!(answer.status, 400, "{}", answer.body);
    send("POST", &verify_path, &[agent], &hostile);
    send("POST", &verify_path, &[("x-agent-token", &in_header)], "{}");
    send("POST", &verify_path, &[("authorization", &in_header)], "{}");
    let tool = format!(r#"{{"parameters":{{"a":"{hostile}"}},"justification":"{hostile}",{}}}"#, context(5));
    send("POST", &format!("/agents/{id}/tools/{in_path}"), &[agent], &tool);
    send("POST", &format!("/agents/{in_path}/verify"), &[agent], "{}");
    send("GET", &format!("/agents/{in_path}"), &[operator], "");
    send("GET", &format!("/agents/{id}/activity?limit={in_path}&{in_path}={in_path}"), &[operator], "");
    send("GET", &format!("/approvals/{in_path}"), &[operator], "");
    send("GET", &format!("/{in_path}"), &[operator], "");
    send("GET", "/agents/%ff", &[operator], "");
    send(&format!("{MARK}-METHOD"), "/agents", &[operator], "");
    send("POST", &format!("/keys/{in_path}/revoke"), &[operator], &format!(r#"{{"reason":"{hostile}"}}"#));
    let answer = send("POST", "/keys", &[operator], &format!(r#"{{"name":"key {hostile}","role":"approver"}}"#));
    let key = text_at(&answer.body, "key").unwrap_or_else(|| panic!("no key: {}", answer.body));
    let answer = send("GET", "/approvals?status=pending", &[("x-api-key", &key)], "");
    let approval = answer.body.split("\"approval_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let approval = approval.unwrap_or_else(|| panic!("no ticket: {}", answer.body)).to_owned();
    let reason = format!(r#"{{"reason":"{hostile}"}}"#);
    let answer = send("POST", &format!("/approvals/{approval}/deny"), &[("x-api-key", &key)], &reason);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let trust = format!(r#"{{"request":"trust_elevation","to_level":3,"justification":"{hostile}"}}"#);
    send("POST", &format!("/agents/{id}/trust"), &[agent], &trust);
    send("POST", &format!("/agents/{id}/suspend"), &[operator], &reason);
    served.stop();

    let text = fs::read_to_string(&path).expect("UTF-8");
    let lines = check_lines(&text);
    let requests: Vec<&String> = lines.iter().filter(|line| text_at(line, "request_id").is_some()).collect();
    assert_eq!(requests.len(), sent, "one line a request");
    for (line, (id, status)) in requests.iter().zip(&statuses) {
        assert_eq!(text_at(line, "request_id").as_ref(), Some(id));
        assert_eq!(text_at(line, "status"), Some(status.to_string()), "{line}");
    }
    for secret in [KEY, &token, &key] {
        assert!(!text.contains(secret), "a secret is in the log");
    }
    // The name of a key is told, and nothing else that was chosen outside.
    for line in &requests {
        let by = text_at(line, "by").unwrap_or_default();
        assert_eq!(line.matches(MARK).count(), by.matches(MARK).count(), "{line}");
        assert!(!line.contains(&in_path), "{line}");
    }
    let denied = requests.iter().find(|line| line.contains("/approvals/{id}/deny")).expect("its line");
    assert!(text_at(denied, "by").is_some_and(|by| by.starts_with("key m4rk\\\"")), "{denied}");
    assert_eq!(text_at(denied, "approval_id"), Some(approval), "{denied}");
    assert_eq!(text_at(denied, "agent_id"), Some(id.clone()), "{denied}");
    let told = |route: &str, key: &str| {
        let line = requests.iter().rev().find(|line| text_at(line, "route").as_deref() == Some(route));
        text_at(line.unwrap_or_else(|| panic!("no line for {route}")), key)
    };
    assert_eq!(told("/agents/{id}/tools/{tool}", "decision").as_deref(), Some("DENIED"));
    assert_eq!(told("/agents/{id}/verify", "code").as_deref(), Some("QWED-AGENT-001"));
    assert_eq!(told("/agents/register", "agent_id"), Some(id));
    assert_eq!(told("/agents", "method").as_deref(), Some("other"));
    assert_eq!(told("none", "code").as_deref(), Some("INTERLOCK-REQUEST-005"));
    let events: Vec<_> = lines.iter().filter_map(|line| text_at(line, "event")).collect();
    assert_eq!(events, ["start", "stop"]);
}

#[test]
fn a_line_says_what_was_ruled() {
    let scratch = scratch();
    let path = scratch.path().join("log");
    let log = File::create(&path).expect("a log");
    let mut served = Served::start(&scratch.path().join("data"), &["--log", "json"], log.into());
    let (agent, mut client) = (served.agent(), served.client());
    let answer = verify(&mut client, &agent, &[("x-request-id", "mine-1.a_B")], "calculate", 1);
    assert_eq!(header(&answer, "x-request-id"), Some("mine-1.a_B"));
    let pending = verify(&mut client, &agent, &[("x-request-id", "mine-2")], "send_email", 2);
    served.stop();
    let lines = check_lines(&fs::read_to_string(&path).expect("UTF-8"));
    let of = |id: &str| {
        let line = lines.iter().find(|line| text_at(line, "request_id").as_deref() == Some(id));
        line.unwrap_or_else(|| panic!("no line for {id}")).clone()
    };
    for (id, answer) in [("mine-1.a_B", &answer), ("mine-2", &pending)] {
        let line = of(id);
        for key in ["decision", "decision_id", "approval_id"] {
            assert_eq!(text_at(&line, key), text_at(&answer.body, key), "{key}: {line}");
        }
        assert_eq!(text_at(&line, "code"), text_at(&answer.body, "error.code"), "{line}");
        assert_eq!(text_at(&line, "agent_id"), Some(agent.id.clone()), "{line}");
        assert_eq!(text_at(&line, "route").as_deref(), Some("/agents/{id}/verify"), "{line}");
        assert!(text_at(&line, "micros").and_then(|micros| micros.parse::<u64>().ok()).is_some(), "{line}");
    }
}

#[test]
fn without_logs_and_traces_there_is_no_id() {
    let scratch = scratch();
    for (flags, expected) in [(&[][..], false), (&["--log", "off"], false), (&["--log", "json"], true)] {
        let served = Served::start(&scratch.path().join("data"), flags, Stdio::null());
        let answer = served.client().send("GET", "/healthz", &[("x-request-id", "a")], "").expect("an answer");
        assert_eq!(header(&answer, "x-request-id").is_some(), expected, "{flags:?}");
    }
    let served =
        Served::start(&scratch.path().join("data"), &["--otlp", "http://127.0.0.1:1/v1/traces"], Stdio::null());
    let answer = served.client().send("GET", "/healthz", &[("x-request-id", "a")], "").expect("an answer");
    assert_eq!(header(&answer, "x-request-id"), Some("a"));
}

#[test]
fn a_caller_who_leaves_has_a_line_as_well() {
    let scratch = scratch();
    let path = scratch.path().join("log");
    let log = File::create(&path).expect("a log");
    let served = Served::start(&scratch.path().join("data"), &["--log", "json"], log.into());
    let (agent, mut client) = (served.agent(), served.client());
    let pending = verify(&mut client, &agent, &[], "send_email", 1);
    let approval = text_at(&pending.body, "approval_id").expect("a ticket");
    let request = format!(
        "GET /approvals/{approval}?wait=30 HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nx-request-id: leaving\r\n\r\n"
    );
    let left =
        || fs::read_to_string(&path).expect("UTF-8").lines().find(|line| line.contains("leaving")).map(str::to_owned);
    // Who leaves before the request was read was never there, so each stays a little longer than the one before.
    let mut stays = Duration::from_millis(10);
    until("one has a line", || {
        let mut stream = TcpStream::connect(served.address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        thread::sleep(stays);
        drop(stream);
        stays = (2 * stays).min(Duration::from_secs(5));
        left().is_some()
    });
    assert_eq!(left().and_then(|line| text_at(&line, "status")).as_deref(), Some("499"));
}

#[test]
fn a_log_that_cannot_be_written_breaks_nothing() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let check = |served: &mut Served, what: &str| {
        let (agent, mut client) = (served.agent(), served.client());
        for step in 1..=20 {
            let answer = verify(&mut client, &agent, &[], "calculate", step);
            assert!(answer.body.contains("APPROVED"), "{what}: {}", answer.body);
        }
    };
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let mut served = Served::start(&data, &["--log", "json"], full.into());
    check(&mut served, "full");
    served.wait_for("interlock_log_dropped_total", 21);
    served.stop();

    let closed = SERVE.replace("exec", "exec 2>&-; exec");
    let mut served = Served::through_shell(&data, &closed, &["--log", "json"], Stdio::null());
    check(&mut served, "closed");
    served.stop();

    let mut served = Served::start(&data, &["--log", "json"], Stdio::piped());
    drop(served.child.stderr.take());
    check(&mut served, "nobody reads");
    served.wait_for("interlock_log_dropped_total", 20);
    served.stop();

    // Somebody holds the pipe and does not read it: it fills, then the queue does.
    let mut served = Served::start(&data, &["--log", "json"], Stdio::piped());
    let held = served.child.stderr.take();
    let mut client = served.client();
    for _ in 0..5_500 {
        client.send("GET", "/healthz", &[], "").expect("an answer");
    }
    check(&mut served, "stuck");
    assert!(served.metric("interlock_log_dropped_total") > 100);
    // Nobody will ever read what is left, and it ends all the same.
    served.stop();
    drop(held);
}

#[test]
fn faults_and_refused_starts_have_lines() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    for (format, expected) in [("json", true), ("text", true), ("off", false)] {
        let path = scratch.path().join(format);
        let log = File::create(&path).expect("a log");
        let served = Served::start(&data, &["--log", format], log.into());
        let agent = served.agent();
        // A directory in the place of the temporary file: no checkpoint can be written.
        while fs::create_dir(data.join(".checkpoint.tmp")).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
        let mut client = served.client();
        let mut step = 0;
        until("there is a fault", || {
            step += 1;
            verify(&mut client, &agent, &[], "calculate", step);
            served.metric("interlock_ledger_faults_total") > 0
        });
        fs::remove_dir(data.join(".checkpoint.tmp")).expect("removed");
        let said = || fs::read_to_string(&path).expect("UTF-8");
        let message = "the ledger is not available, everything is denied: checkpoint";
        until("it has a line", || !expected || said().contains(message));
        assert_eq!(said().contains(message), expected, "{format}: {}", said());
        match format {
            "json" => {
                let lines = check_lines(&said());
                let line = lines.iter().find(|line| line.contains(message)).expect("its line");
                let told = (text_at(line, "event"), text_at(line, "level"));
                assert_eq!(told, (Some("ledger_fault".to_owned()), Some("error".to_owned())));
            }
            "text" => assert!(said().starts_with("interlock: the ledger is not available"), "{}", said()),
            _ => assert_eq!(said(), ""),
        }
    }
    let _served = Served::start(&data, &[], Stdio::null());
    let mut second = Command::new(PROGRAM);
    second.args(["serve", "--listen", "127.0.0.1:0", "--log", "json", "--data"]).arg(&data);
    second.env("INTERLOCK_OPERATOR_KEY", KEY).env_remove("INTERLOCK_HOME").env("LD_LIBRARY_PATH", "/nowhere");
    second.env_remove("CARGO");
    let output = second.output().expect("the server");
    assert_eq!(output.status.code(), Some(1));
    let lines = check_lines(std::str::from_utf8(&output.stderr).expect("UTF-8"));
    let told: Vec<_> = lines.iter().map(|line| (text_at(line, "event"), text_at(line, "code"))).collect();
    let expected = [("environment", None), ("fault", Some("INTERLOCK-ENV-004"))];
    assert_eq!(told, expected.map(|(event, code)| (Some(event.to_owned()), code.map(str::to_owned))));
}

/// A receiver of traces that answers each request with what `answer` says, and hands on the bodies.
fn collector(answer: impl Fn(usize) -> &'static str + Send + 'static) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, bodies) = channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let (mut head, mut line) = (String::new(), String::new());
            while stream.read_line(&mut line).is_ok_and(|count| count > 2) {
                head.push_str(&std::mem::take(&mut line));
            }
            let head = head.to_ascii_lowercase();
            assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
            assert!(head.contains("content-type: application/json\r\n"), "{head}");
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next());
            let mut body = vec![0; length.and_then(|length| length.parse().ok()).expect("a length")];
            stream.read_exact(&mut body).expect("a body");
            let answered = stream.get_mut().write_all(answer(number).as_bytes());
            if answered.is_err() || sender.send(String::from_utf8(body).expect("UTF-8")).is_err() {
                return;
            }
        }
    });
    (address, bodies)
}

const ACCEPTED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 21\r\n\r\n{\"partialSuccess\":{}}";

/// A span as it came, checked against the rules of OTLP in JSON.
#[derive(Debug, PartialEq)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    is_error: bool,
    attributes: Vec<(String, String)>,
}

impl Span {
    fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

fn only_keys(value: Value<'_>, known: &[&str]) {
    for (key, _) in value.as_object().expect("an object") {
        assert!(known.contains(&key.text()), "{} in {}", key.text(), value.source());
    }
}

fn string(value: Value<'_>, key: &str) -> String {
    value
        .get(key)
        .and_then(|text| text.as_str())
        .unwrap_or_else(|| panic!("{key}: {}", value.source()))
        .text()
        .to_owned()
}

fn items<'d>(value: Value<'d>, key: &str) -> Vec<Value<'d>> {
    let found = value.get(key).and_then(|list| list.as_array());
    found.unwrap_or_else(|| panic!("{key}: {}", value.source())).collect()
}

fn attributes(value: Value<'_>) -> Vec<(String, String)> {
    let list = items(value, "attributes").into_iter().map(|attribute| {
        only_keys(attribute, &["key", "value"]);
        let value = attribute.get("value").expect("a value");
        only_keys(value, &["stringValue", "boolValue"]);
        assert_eq!(value.as_object().expect("an object").count(), 1, "one kind of value");
        let told = value.get("boolValue").map(|flag| flag.as_bool().expect("a boolean").to_string());
        (string(attribute, "key"), told.unwrap_or_else(|| string(value, "stringValue")))
    });
    list.collect()
}

fn spans(body: &str) -> Vec<Span> {
    let document = json::parse(body, &Limits::STATE).unwrap_or_else(|error| panic!("{error}: {body}"));
    only_keys(document.root(), &["resourceSpans"]);
    let mut found = Vec::new();
    for resource in items(document.root(), "resourceSpans") {
        only_keys(resource, &["resource", "scopeSpans"]);
        let about = attributes(resource.get("resource").expect("a resource"));
        let version = env!("CARGO_PKG_VERSION");
        let expected = [("service.name", "interlock"), ("service.version", version)];
        assert_eq!(about, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        for scope in items(resource, "scopeSpans") {
            only_keys(scope, &["scope", "spans"]);
            only_keys(scope.get("scope").expect("a scope"), &["name", "version"]);
            let listed = items(scope, "spans");
            assert!(!listed.is_empty(), "nobody sends empty envelopes");
            found.extend(listed.into_iter().map(span));
        }
    }
    found
}

fn span(span: Value<'_>) -> Span {
    let known = [
        "traceId",
        "spanId",
        "parentSpanId",
        "name",
        "kind",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "attributes",
        "status",
    ];
    only_keys(span, &known);
    let id = |key: &str, digits: usize| {
        let id = string(span, key);
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        assert!(id.len() == digits && id.bytes().all(hex) && id.bytes().any(|byte| byte != b'0'), "{key}: {id}");
        id
    };
    // 64-bit integers are strings, enumerations are numbers.
    let nanos = |key: &str| string(span, key).parse::<u64>().expect("nanoseconds");
    let (start, end) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_nanos();
    assert!(start <= end && u128::from(end) <= now && u128::from(start) + 60_000_000_000 > now, "{start} {end}");
    let number = |value: Value<'_>, key: &str| value.get(key).and_then(|number| number.as_number()?.to_i128());
    assert_eq!(number(span, "kind"), Some(2), "a server's");
    let status = span.get("status");
    if let Some(status) = status {
        only_keys(status, &["code", "message"]);
        assert_eq!(number(status, "code"), Some(2), "an error");
    }
    Span {
        trace: id("traceId", 32),
        id: id("spanId", 16),
        parent: span.get("parentSpanId").map(|_| id("parentSpanId", 16)),
        name: string(span, "name"),
        is_error: status.is_some(),
        attributes: attributes(span),
    }
}

/// The first digits of a digest.
fn digits(pieces: &[&str], count: usize) -> String {
    Digest::of(pieces).to_string()["sha256:".len()..][..count].to_owned()
}

#[test]
fn a_ruling_is_a_span_and_an_execution_its_child() {
    let scratch = scratch();
    let (address, bodies) = collector(|_| ACCEPTED);
    let url = format!("http://{address}/v1/traces");
    let mut served = Served::start(&scratch.path().join("data"), &["--otlp", &url], Stdio::null());
    let (agent, mut client) = (served.agent(), served.client());
    let headers = [("x-agent-token", agent.token.as_str())];
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";
    let parent = format!("00-{TRACE}-{PARENT}-01");

    let plain = verify(&mut client, &agent, &[("x-request-id", "r1")], "calculate", 1);
    let inside = verify(&mut client, &agent, &[("traceparent", &parent)], "calculate", 2);
    let denied = verify(&mut client, &agent, &[("traceparent", &parent.to_uppercase())], "no_such_action", 3);
    let pending = verify(&mut client, &agent, &[], "send_email", 4);
    let malformed = client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, "{}").expect("an answer");
    let hostile = format!("/agents/{}/tools/{MARK}%22%0A%7B", agent.id);
    let body = r#"{"context":{"conversation_id":"t","step_number":1}}"#;
    let tool = client.send("POST", &hostile, &headers, body).expect("an answer");
    // Asked again under the same key, it is the same ruling.
    let key = [("idempotency-key", "k")];
    let once = verify(&mut client, &agent, &key, "calculate", 5);
    let again = verify(&mut client, &agent, &key, "calculate", 5);
    // Nobody ruled on this.
    client.send("POST", &format!("/agents/{}/verify", agent.id), &[], "{}").expect("an answer");
    let decision = |answer: &Answer| {
        text_at(&answer.body, "decision_id").unwrap_or_else(|| panic!("no decision: {}", answer.body))
    };
    assert_eq!(decision(&once), decision(&again));
    for (ruling, success, extra) in [(&plain, true, None), (&inside, false, Some(("traceparent", parent.as_str())))] {
        let body = format!(r#"{{"decision_id":"{}","success":{success}}}"#, decision(ruling));
        let headers: Vec<_> = headers.into_iter().chain(extra).collect();
        let path = format!("/agents/{}/executions", agent.id);
        let answer = client.send("POST", &path, &headers, &body).expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.body);
        let twice = client.send("POST", &path, &headers, &body).expect("an answer");
        assert_eq!(twice.status, 409, "{}", twice.body);
    }
    served.stop();
    let text = bodies.try_iter().collect::<Vec<_>>();
    assert!(!text.concat().contains(MARK), "{text:?}");
    let spans: Vec<Span> = text.iter().flat_map(|body| spans(body)).collect();
    let of = |answer: &Answer, child: bool| {
        let id = decision(answer);
        let own =
            |span: &&Span| span.attribute("interlock.decision_id") == Some(&id) && (span.name == "execution") == child;
        let mut found: Vec<&Span> = spans.iter().filter(own).collect();
        assert_eq!(found.len(), 1, "{id} {child}: {spans:#?}");
        found.remove(0)
    };
    let derived = |answer: &Answer| (digits(&["trace\n", &decision(answer)], 32), digits(&[&decision(answer)], 16));

    let told = of(&plain, false);
    assert_eq!((told.trace.clone(), told.id.clone()), derived(&plain));
    assert_eq!((told.parent.clone(), told.name.as_str(), told.is_error), (None, "verify calculate", false));
    for (key, value) in [
        ("interlock.decision", "APPROVED"),
        ("interlock.agent_id", agent.id.as_str()),
        ("interlock.risk_level", "low"),
        ("interlock.enforced", "true"),
        ("interlock.request_id", "r1"),
    ] {
        assert_eq!(told.attribute(key), Some(value), "{told:?}");
    }
    let child = of(&plain, true);
    assert_eq!((&child.trace, child.parent.as_ref(), child.is_error), (&told.trace, Some(&told.id), false));
    assert_ne!(child.id, told.id);

    let told = of(&inside, false);
    assert_eq!((told.trace.as_str(), told.parent.as_deref()), (TRACE, Some(PARENT)));
    assert_eq!(told.id, derived(&inside).1);
    let child = of(&inside, true);
    assert_eq!((child.trace.as_str(), child.parent.as_ref(), child.is_error), (TRACE, Some(&told.id), true));

    let told = of(&denied, false);
    assert_eq!((told.trace.clone(), told.parent.as_ref(), told.is_error), (derived(&denied).0, None, true));
    assert_eq!(told.attribute("interlock.code"), text_at(&denied.body, "error.code").as_deref());
    assert_eq!(told.name, "verify no_such_action");
    assert!(spans.iter().all(|span| span.parent.as_ref() != Some(&told.id)), "a denial has no child");
    assert!(!of(&pending, false).is_error);
    assert!(of(&pending, false).attribute("interlock.approval_id").is_some());
    assert_eq!(of(&malformed, false).name, "verify");
    assert_eq!(of(&tool, false).name, "tool (not shown)");
    assert_eq!(of(&once, false).attribute("interlock.decision"), Some("APPROVED"));
    assert_eq!(spans.len(), 9, "{spans:#?}");
}

#[test]
fn a_collector_that_fails_delays_nothing_and_what_it_misses_is_counted() {
    const RULINGS: u64 = 10;
    let failing = collector(|_| "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    let picky =
        collector(|_| "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"4\"}}");
    // Takes connections and never answers.
    let slow = TcpListener::bind("127.0.0.1:0").expect("a port");
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    for (what, address, dropped) in [
        ("failing", failing.0, RULINGS),
        ("picky", picky.0, 4),
        ("slow", slow.local_addr().expect("an address"), RULINGS),
        ("gone", gone, RULINGS),
    ] {
        let scratch = scratch();
        let log = scratch.path().join("log");
        let flags = ["--otlp", &format!("http://{address}/v1/traces"), "--log", "json"];
        let stderr = File::create(&log).expect("a log");
        let mut served = Served::start(&scratch.path().join("data"), &flags, stderr.into());
        let (agent, mut client) = (served.agent(), served.client());
        for step in 1..=RULINGS {
            let answer = verify(&mut client, &agent, &[], "calculate", step);
            assert!(answer.body.contains("APPROVED"), "{what}: {}", answer.body);
        }
        // Had they waited for what is told of them, all of it would be settled by now.
        assert!(what == "picky" || served.metric("interlock_trace_dropped_total") < dropped, "{what}");
        served.wait_for("interlock_trace_dropped_total", dropped);
        // Never more than there were; a picky one may have got them in several batches.
        assert!(served.metric("interlock_trace_dropped_total") <= RULINGS, "{what}");
        served.stop();
        let lines = check_lines(&fs::read_to_string(&log).expect("UTF-8"));
        let said = lines.iter().filter(|line| text_at(line, "event").as_deref() == Some("otlp_failing")).count();
        assert_eq!(said, usize::from(what != "picky"), "{what}: it is said once");
    }
}

#[test]
fn a_collector_that_comes_back_gets_what_waited() {
    let scratch = scratch();
    let busy = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
    let (address, bodies) = collector(move |number| if number == 0 { busy } else { ACCEPTED });
    let url = format!("http://{address}");
    let mut served = Served::start(&scratch.path().join("data"), &["--otlp", &url], Stdio::null());
    let (agent, mut client) = (served.agent(), served.client());
    verify(&mut client, &agent, &[], "calculate", 1);
    let first = bodies.recv_timeout(HANG).expect("a request");
    assert_eq!(bodies.recv_timeout(HANG).expect("the same again"), first);
    assert_eq!(spans(&first).len(), 1);
    assert_eq!(served.metric("interlock_trace_dropped_total"), 0);
    served.stop();
}

#[test]
fn an_address_that_cannot_be_meant_is_refused() {
    for (url, said) in [
        ("https://127.0.0.1:4318/v1/traces", "https is not supported"),
        ("127.0.0.1:4318", "expected http://HOST:PORT/PATH"),
        ("http://user@host:4318", "no user, query or fragment"),
    ] {
        let output = crate::run(&["serve", "--otlp", url]);
        let error = crate::text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{url}: {error}");
    }
}
