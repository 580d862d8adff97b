//! Workflows registered over HTTP: on record before they are answered, idempotent, versions without gaps, found again
//! after a restart, and the newest is what a run is started with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use interlock_core::action::Actor;
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits};
use interlock_core::ledger::{Entry, EntryKind, TransitionOutcome};
use interlock_core::workflow::{Context, Workflow};
use interlock_core::{Code, Digest};
use interlock_http::hooks::{RUN_SCRIPT, SHELL_PREFIX};
use interlock_runtime::coding_agents::agent_id;
use interlock_runtime::ledger::{
    Answer as Recorded, Command, MemoryStore, RunChange, SqliteReader, SqliteStore, StartGround, Store,
    TransitionCommand, replay, verify,
};
use interlock_testkit::gate::{create_key, register};
use interlock_testkit::service::{Answer, Client, OPERATOR_KEY, START_MS, Server};

const FLOW: &str = r#"{"initial":"planning","id":"fix","description":"Fix a bug.","states":{
  "planning":{"on":{"READY":"working"},"allowed_tools":["Read"]},
  "working":{"on":{"DONE":"done"}},"done":{"type":"final"}}}"#;
const OTHER: &str = r#"{"id":"fix","initial":"only","states":{"only":{"on":{"END":"done"}},"done":{"type":"final"}}}"#;

fn bundle() -> Bundle {
    Bundle::load("", &BTreeMap::new(), false).expect("a bundle")
}

fn flow(id: &str) -> String {
    format!(
        r#"{{"id":{},"initial":"a","states":{{"a":{{"on":{{"END":"z"}}}},"z":{{"type":"final"}}}}}}"#,
        json::quote(id)
    )
}

fn send(client: &mut Client, method: &str, path: &str, body: &str) -> Answer {
    client.send(method, path, &[("x-api-key", OPERATOR_KEY)], body).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn post(client: &mut Client, workflow: &str) -> Answer {
    send(client, "POST", "/workflows", &format!(r#"{{"workflow":{workflow}}}"#))
}

fn start(client: &mut Client, project: &str, workflow: &str) -> Answer {
    send(client, "POST", "/runs", &format!(r#"{{"host":"codex","project":"{project}","workflow":{workflow}}}"#))
}

fn has(answer: &Answer, status: u16, parts: &[&str]) {
    let all = parts.iter().all(|part| answer.body.contains(part));
    assert!(answer.status == status && all, "{status} {parts:?}: {} {}", answer.status, answer.body);
    assert!(answer.head.contains("application/json"), "{}", answer.head);
}

/// A member of an answer, as it stands there.
fn member(answer: &Answer, key: &str) -> String {
    let document = json::parse(&answer.body, &Limits::STATE).unwrap_or_else(|error| panic!("{error}: {}", answer.body));
    document.root().get(key).unwrap_or_else(|| panic!("no {key}: {}", answer.body)).source().to_owned()
}

fn registrations(server: &Server) -> usize {
    let entries = (0..server.ledger.size()).map(|index| server.ledger.entry(index).expect("read").expect("an entry"));
    let kinds = entries.map(|bytes| Entry::from_bytes(&bytes).expect("an entry").kind);
    kinds.filter(|kind| *kind == EntryKind::WorkflowRegistered).count()
}

fn is_sound(server: &Server) {
    server.ledger.with_reader(|reader| {
        let report = verify(reader, None, START_MS, &mut |_, _| {}).expect("verified");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let again = replay(reader, None, &mut |_, _| {}).expect("replayed");
        assert_eq!((again.differences_count, again.findings.len()), (0, 0), "{again:?}");
    });
}

fn on_every_store(test: impl Fn(&Server)) {
    let scratch = tempfile::tempdir().expect("a directory");
    let stores: [Box<dyn Store>; 2] =
        [Box::new(MemoryStore::default()), Box::new(SqliteStore::open(scratch.path()).expect("a store"))];
    for store in stores {
        let server = Server::start(store, None, bundle());
        test(&server);
        is_sound(&server);
    }
}

#[test]
fn a_workflow_is_registered_once_listed_and_read() {
    on_every_store(|server| {
        let mut client = server.client();
        has(&send(&mut client, "GET", "/workflows", ""), 200, &[r#"{"workflows":[],"next_cursor":null}"#]);
        let size = server.ledger.size();
        let first = post(&mut client, FLOW);
        has(&first, 201, &[r#""id":"fix","version":1,"digest":"sha256:"#, r#""description":"Fix a bug.","states":3"#]);
        has(&first, 201, &[r#""registered_at":"2026-11-15T12:00:30.000Z","registered_by":"operator""#]);
        assert_eq!((server.ledger.size(), member(&first, "entry")), (size + 1, size.to_string()));
        // The same workflow, spelled otherwise and later, is the same.
        server.clock.advance(1_000);
        let spelled: String = FLOW.replace(r#""id":"fix","#, "").replacen('{', r#"{ "id": "f\u0069x", "#, 1);
        let again = post(&mut client, &spelled);
        has(&again, 200, &[]);
        assert_eq!((again.body, server.ledger.size()), (first.body.clone(), size + 1), "nothing new");
        let listed = send(&mut client, "GET", "/workflows", "");
        assert_eq!(listed.body, format!(r#"{{"workflows":[{}],"next_cursor":null}}"#, first.body));
        let read = send(&mut client, "GET", "/workflows/fix", "");
        has(&read, 200, &[first.body.trim_end_matches('}')]);
        let text = member(&read, "workflow");
        assert_eq!(json::quote(&Digest::of(&[&text]).to_string()), member(&read, "digest"), "what the digest covers");
        assert_eq!(Workflow::from_text(&text).expect("a workflow").text(), text);
        // Another one is the second, the first again the third.
        let second = post(&mut client, OTHER);
        has(&second, 201, &[r#""version":2"#, r#""states":2"#, r#""registered_at":"2026-11-15T12:00:31.000Z""#]);
        assert!(!second.body.contains("description"), "{}", second.body);
        assert!(send(&mut client, "GET", "/workflows/fix", "").body.contains(r#""initial":"only""#));
        has(&post(&mut client, FLOW), 201, &[r#""version":3"#, r#""states":3"#]);
        has(&post(&mut client, FLOW), 200, &[r#""version":3"#]);
        assert_eq!(registrations(server), 3);
        let entries = send(&mut client, "GET", &format!("/audit/entries?from={size}"), "");
        has(
            &entries,
            200,
            &[r#""kind":"workflow_registered""#, r#""body":{"workflow_registered":{"id":"fix","version":2,"#],
        );
    });
}

#[test]
fn what_looks_wrong_is_told_and_does_not_keep_a_workflow_out() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    let odd = r#"{"id":"odd","initial":"a","guards":{"never":{"field":"n","op":"in","value":["x"]},
        "neither":{"field":"n","op":"eq","value":"y"}},"states":{
        "a":{"on":{"GO":{"target":"z","guards":["never","neither"]},"END":"z"}},"z":{"type":"final"}}}"#;
    has(&post(&mut client, odd), 201, &[r#""id":"odd""#]);
    let read = send(&mut client, "GET", "/workflows/odd", "");
    has(
        &read,
        200,
        &[r#""findings":[{"severity":"error","name":"contradiction","path":"states.a.on.GO[0]","message":"#],
    );
    for template in interlock_workflow::templates() {
        let loaded = interlock_workflow::load(template.text, template.format, &interlock_workflow::Limits::MAX);
        let text = loaded.expect("a template").workflow.text().to_owned();
        has(&post(&mut client, &text), 201, &[template.name]);
        let read = send(&mut client, "GET", &format!("/workflows/{}", template.name), "");
        has(&read, 200, &[&text]);
        assert!(!member(&read, "findings").contains(r#""severity":"error""#), "{}", read.body);
    }
}

#[test]
fn requests_that_nobody_should_send_register_nothing() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    let size = server.ledger.size();
    let states: String = (0..=10_000).map(|n| format!(r#""s{n}":{{"on":{{"E":"s{}"}}}},"#, n + 1)).collect();
    let many =
        format!(r#"{{"workflow":{{"id":"w","initial":"s0","states":{{{states}"s10001":{{"type":"final"}}}}}}}}"#);
    let deep = format!(r#"{{"workflow":{{"id":"w","meta":{{"a":{}1{}}}}}}}"#, "[".repeat(40), "]".repeat(40));
    let long = format!(r#"{{"workflow":{}}}"#, flow(&"x".repeat(129)));
    let huge = format!(r#"{{"workflow":{{"id":"w","description":"{}"}}}}"#, "x".repeat(1 << 20));
    let twice = r#"{"workflow":{"id":"a","id":"b","initial":"z","states":{"z":{"type":"final"}}}}"#;
    let no_state = r#"{"workflow":{"id":"w","initial":"a","states":{"a":{"on":{"END":"y"}},"z":{"type":"final"}}}}"#;
    let unknown = r#"{"workflow":{"id":"w","initial":"z","states":{"z":{"type":"final"}},"more":1}}"#;
    for (body, status, code, message) in [
        ("", 400, "INTERLOCK-REQUEST-001", "not strict JSON"),
        ("[]", 400, "INTERLOCK-REQUEST-001", "must be a JSON object"),
        ("{", 400, "INTERLOCK-REQUEST-001", "not strict JSON"),
        ("{}", 400, "INTERLOCK-REQUEST-001", "workflow is required"),
        (r#"{"workflow":null}"#, 400, "INTERLOCK-REQUEST-001", "workflow is required"),
        (r#"{"workflow":{},"id":"w"}"#, 400, "INTERLOCK-REQUEST-002", "unknown field `id`"),
        (r#"{"definition":{}}"#, 400, "INTERLOCK-REQUEST-002", "unknown field `definition`"),
        (r#"{"workflow":"fix"}"#, 400, "INTERLOCK-CONFIG-001", "the workflow cannot be loaded"),
        (r#"{"workflow":[]}"#, 400, "INTERLOCK-CONFIG-001", "the workflow cannot be loaded"),
        (r#"{"workflow":{}}"#, 400, "INTERLOCK-CONFIG-001", "`id` is missing"),
        (twice, 400, "INTERLOCK-REQUEST-001", "id"),
        (no_state, 400, "INTERLOCK-CONFIG-001", "states.a.on.END: there is no state `y`"),
        (unknown, 400, "INTERLOCK-CONFIG-001", "more: "),
        (&many, 400, "INTERLOCK-CONFIG-001", "10000 states"),
        (&deep, 400, "INTERLOCK-CONFIG-001", "the workflow cannot be loaded"),
        (&long, 400, "INTERLOCK-CONFIG-001", "longer than 128 characters"),
        (&huge, 413, "INTERLOCK-REQUEST-003", "at most 1048576 bytes"),
    ] {
        let answer = send(&mut server.client(), "POST", "/workflows", body);
        has(&answer, status, &[code, message]);
        // A run refuses the same workflow with the same words.
        if code == "INTERLOCK-CONFIG-001" && body != r#"{"workflow":"fix"}"# {
            let written = body.strip_prefix(r#"{"workflow":"#).and_then(|body| body.strip_suffix('}')).expect("one");
            let refused = start(&mut server.client(), "/srv/shop", written);
            assert_eq!((refused.status, refused.body), (answer.status, answer.body));
        }
    }
    let bytes = client.send_bytes("POST", "/workflows", &[("x-api-key", OPERATOR_KEY)], b"\xff{}").expect("an answer");
    has(&bytes, 400, &["INTERLOCK-REQUEST-001"]);
    for (method, path, status, code) in [
        ("GET", "/workflows?limit=0", 400, "INTERLOCK-REQUEST-001"),
        ("GET", "/workflows?limit=1001", 400, "INTERLOCK-REQUEST-001"),
        ("GET", "/workflows?cursor=", 400, "INTERLOCK-REQUEST-001"),
        ("GET", "/workflows?cursor=%FF", 400, "INTERLOCK-REQUEST-001"),
        ("GET", &format!("/workflows?cursor={}", "x".repeat(129)), 400, "INTERLOCK-REQUEST-001"),
        ("GET", "/workflows?page=2", 400, "INTERLOCK-REQUEST-002"),
        ("GET", "/workflows/fix", 404, "INTERLOCK-WF-007"),
        ("GET", "/workflows/%FF", 400, "INTERLOCK-REQUEST-001"),
        ("GET", "/workflows/%00", 404, "INTERLOCK-WF-007"),
        ("GET", &format!("/workflows/{}", "x".repeat(5_000)), 404, "INTERLOCK-WF-007"),
        ("POST", "/workflows/fix", 405, "INTERLOCK-REQUEST-005"),
        ("DELETE", "/workflows", 405, "INTERLOCK-REQUEST-005"),
    ] {
        has(&send(&mut client, method, path, ""), status, &[code]);
    }
    assert_eq!(server.ledger.size(), size, "something was recorded");
    has(&send(&mut client, "GET", "/workflows", ""), 200, &[r#""workflows":[]"#]);
}

#[test]
fn only_admins_see_and_register_workflows() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let approver = create_key(&mut client, r#"{"name":"ann","role":"approver"}"#).expect("a key");
    let registrar = create_key(&mut client, r#"{"name":"reg","role":"registrar"}"#).expect("a key");
    let admin = create_key(&mut client, r#"{"name":"bob","role":"admin"}"#).expect("a key");
    let size = server.ledger.size();
    let body = format!(r#"{{"workflow":{FLOW}}}"#);
    let asked = [("GET", "/workflows", ""), ("GET", "/workflows/fix", ""), ("POST", "/workflows", body.as_str())];
    for (headers, status, code) in [
        (vec![], 401, "INTERLOCK-AUTH-001"),
        (vec![("x-api-key", "wrong")], 401, "INTERLOCK-AUTH-001"),
        (vec![("x-agent-token", agent.token.as_str())], 401, "INTERLOCK-AUTH-001"),
        (vec![("x-api-key", approver.as_str())], 403, "INTERLOCK-AUTH-002"),
        (vec![("x-api-key", registrar.as_str())], 403, "INTERLOCK-AUTH-002"),
    ] {
        for (method, path, body) in asked {
            has(&client.send(method, path, &headers, body).expect("an answer"), status, &[code]);
        }
    }
    assert_eq!(server.ledger.size(), size, "something was recorded");
    let made = client.send("POST", "/workflows", &[("x-api-key", &admin)], &body).expect("an answer");
    has(&made, 201, &[r#""registered_by":"bob""#]);
    has(&client.send("GET", "/workflows/fix", &[("x-api-key", &admin)], "").expect("an answer"), 200, &[FLOW_START]);
}

const FLOW_START: &str = r#""workflow":{"description":"Fix a bug.","id":"fix","initial":"planning""#;

#[test]
fn a_list_is_read_page_by_page_whatever_the_ids_are() {
    on_every_store(|server| {
        let mut client = server.client();
        // In the order of their bytes, which is that of both stores.
        let ids = ["Z", "a b", "a/b", "b?c#d&e=1%41", "quote\"d", "z", "é", "日本"];
        for id in ids.iter().rev() {
            has(&post(&mut client, &flow(id)), 201, &[&json::quote(id)]);
        }
        for limit in [1, 2, 3, 8, 9] {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = send(&mut client, "GET", &format!("/workflows?limit={limit}{cursor}"), "");
                has(&page, 200, &[]);
                let document = json::parse(&page.body, &Limits::STATE).expect("JSON");
                let rows = document.root().get("workflows").and_then(|rows| rows.as_array()).expect("rows");
                let rows: Vec<String> = rows
                    .map(|row| row.get("id").and_then(|id| id.as_str()).expect("an id").text().to_owned())
                    .collect();
                assert!(rows.len() <= limit && !rows.is_empty(), "{}", page.body);
                found.extend(rows);
                match document.root().get("next_cursor").and_then(|next| next.as_str()) {
                    Some(next) => cursor = format!("&cursor={}", encode(next.text())),
                    None => break,
                }
            }
            assert_eq!(found, ids, "{limit} at a time");
        }
        for id in ids {
            has(&send(&mut client, "GET", &format!("/workflows/{}", encode(id)), ""), 200, &[&json::quote(id)]);
        }
        // However an id is composed, it is the same.
        let composed = format!(r#""id":{},"version":1"#, json::quote("é"));
        has(&send(&mut client, "GET", "/workflows/e%CC%81", ""), 200, &[&composed]);
        has(&post(&mut client, &flow("e\u{301}")), 200, &[&composed]);
        has(&start(&mut client, "/srv/shop", "\"e\u{301}\""), 201, &[r#""state":"a""#, &json::quote("é")]);
        has(&send(&mut client, "GET", "/workflows/A", ""), 404, &["INTERLOCK-WF-007"]);
    });
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Moves a run, as its agent would.
fn moves(server: &Server, project: &str, event: &str) -> bool {
    let (agent, event) = (agent_id("codex", project), event.to_owned());
    let data = Context::default();
    let command = TransitionCommand { agent, event, data, expected_revision: None };
    let answer = server.ledger.submit_and_wait(Command::Transition(Box::new(command)));
    let Recorded::Recorded(recorded) = answer else { panic!("not recorded: {answer:?}") };
    let interlock_core::ledger::Body::Transitioned(made) = recorded.entry.body else { panic!("no transition") };
    matches!(made.outcome, TransitionOutcome::Moved { .. })
}

#[test]
fn a_run_is_started_with_the_newest_and_keeps_what_it_was_started_with() {
    on_every_store(|server| {
        let mut client = server.client();
        let digest = member(&post(&mut client, FLOW), "digest");
        let begun = start(&mut client, "/srv/shop", r#""fix""#);
        has(&begun, 201, &[r#""workflow":"fix","state":"planning""#, r#""allowed_tools":["Read"]"#]);
        assert_eq!(member(&begun, "workflow_digest"), digest);
        // Written out, it would have been the same run but for its id.
        let written = start(&mut client, "/srv/other", FLOW);
        assert_eq!(member(&written, "workflow_digest"), digest);
        let newer = member(&post(&mut client, OTHER), "digest");
        assert!(!moves(server, "/srv/shop", "END"), "an event of the newer one");
        assert!(moves(server, "/srv/shop", "READY"));
        let path = format!("/runs/{}", agent_id("codex", "/srv/shop"));
        let standing = send(&mut client, "GET", &path, "");
        has(&standing, 200, &[r#""state":"working""#]);
        assert_eq!(member(&standing, "workflow_digest"), digest);
        let anew = start(&mut client, "/srv/shop", r#""fix""#);
        has(&anew, 201, &[r#""state":"only""#]);
        assert_eq!(member(&anew, "workflow_digest"), newer);
        assert!(moves(server, "/srv/shop", "END"));
        let body = r#"{"host":"codex","project":"/srv/third","workflow":"fix","session":"s1"}"#;
        has(&send(&mut client, "POST", "/runs", body), 201, &[r#""state":"only""#]);
    });
}

/// Whoever wrote such a setting counts on it: without a runner for the host no run begins, however it is asked for.
#[test]
fn what_only_a_runner_enforces_begins_nothing_where_there_is_none() {
    on_every_store(|server| {
        let home = tempfile::tempdir().expect("a directory");
        let _ = Arc::clone(&server.service).with_home(home.path().to_owned());
        let mut client = server.client();
        let text = r#"{"id":"kept","initial":"a","states":{"a":{"blocked_env":["TOKEN"],"on":{"END":"z"}},"z":{"type":"final"}}}"#;
        has(&post(&mut client, text), 201, &[]);
        has(&send(&mut client, "GET", "/workflows/kept", ""), 200, &["needs-runner", text]);
        let begin = |client: &mut Client, host: &str, workflow: &str| {
            let body = format!(r#"{{"host":"{host}","project":"/srv/shop","workflow":{workflow}}}"#);
            send(client, "POST", "/runs", &body)
        };
        let size = server.ledger.size();
        for workflow in [text, r#""kept""#] {
            for (host, remedy) in [
                ("codex", "`interlock install codex` puts it in its place"),
                ("claude-code", "`interlock install claude-code` puts it in its place"),
                ("cursor", "lets no command line be handed to one"),
            ] {
                let refused = ["INTERLOCK-CONFIG-001", "`blocked_env`, which a runner enforces", remedy];
                has(&begin(&mut client, host, workflow), 400, &refused);
            }
        }
        assert_eq!(server.ledger.size(), size, "something was recorded");
        std::fs::create_dir(home.path().join("bin")).expect("a directory");
        std::fs::write(home.path().join(RUN_SCRIPT), "").expect("written");
        for workflow in [text, r#""kept""#] {
            has(&begin(&mut client, "claude-code", workflow), 400, &["INTERLOCK-CONFIG-001"]);
            has(&begin(&mut client, "cursor", workflow), 400, &["INTERLOCK-CONFIG-001"]);
            has(&begin(&mut client, "codex", workflow), 201, &[r#""state":"a""#]);
        }
        std::fs::write(home.path().join(SHELL_PREFIX), "").expect("written");
        has(&begin(&mut client, "claude-code", text), 201, &[]);
        // What the transaction finds counts, whatever was looked at before it.
        let by = Actor { name: "operator".to_owned(), key_id: None };
        let (workflow, run_id) = ("kept".to_owned(), "run_0123456789abcdef0123456789abcdef".to_owned());
        let ground = StartGround { has_runner: false, scripts: BTreeMap::new() };
        let change = RunChange::StartRegistered { workflow, run_id, session: None, ground, by };
        let command = Command::ChangeRun { agent: agent_id("codex", "/srv/shop"), change };
        let answer = server.ledger.submit_and_wait(command);
        assert!(matches!(answer, Recorded::Refused(Code::ConfigInvalid)), "{answer:?}");
        assert!(moves(server, "/srv/shop", "END"), "a run that began goes on");
    });
}

#[test]
fn a_run_of_no_registered_workflow_makes_nobody_known() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    has(&post(&mut client, FLOW), 201, &[]);
    let size = server.ledger.size();
    for (workflow, status, code) in [
        (r#""unknown""#.to_owned(), 404, "INTERLOCK-WF-007"),
        (r#""Fix""#.to_owned(), 404, "INTERLOCK-WF-007"),
        (r#""fix ""#.to_owned(), 404, "INTERLOCK-WF-007"),
        (r#""""#.to_owned(), 404, "INTERLOCK-WF-007"),
        (json::quote(&"x".repeat(100_000)), 404, "INTERLOCK-WF-007"),
        (json::quote(FLOW), 404, "INTERLOCK-WF-007"),
        ("1".to_owned(), 400, "INTERLOCK-CONFIG-001"),
        ("true".to_owned(), 400, "INTERLOCK-CONFIG-001"),
        (r#"["fix"]"#.to_owned(), 400, "INTERLOCK-CONFIG-001"),
        (r#"{"id":"fix"}"#.to_owned(), 400, "INTERLOCK-CONFIG-001"),
    ] {
        has(&start(&mut client, "/srv/shop", &workflow), status, &[code]);
    }
    let approver = create_key(&mut client, r#"{"name":"ann","role":"approver"}"#).expect("a key");
    let body = r#"{"host":"codex","project":"/srv/shop","workflow":"fix"}"#;
    let refused = client.send("POST", "/runs", &[("x-api-key", &approver)], body).expect("an answer");
    has(&refused, 403, &["INTERLOCK-AUTH-002"]);
    assert_eq!(server.ledger.size(), size + 1, "only the key");
    has(&send(&mut client, "GET", "/runs", ""), 200, &[r#""runs":[]"#]);
}

#[test]
fn many_at_once_make_one_registration_and_versions_without_gaps() {
    on_every_store(|server| {
        let barrier = Barrier::new(8);
        let ask = |texts: &[&str]| -> Vec<(u16, String)> {
            thread::scope(|scope| {
                let asking: Vec<_> = (0..8)
                    .map(|number| {
                        let (text, barrier) = (texts[number % texts.len()].to_owned(), &barrier);
                        scope.spawn(move || {
                            let mut client = server.client();
                            barrier.wait();
                            let answer = post(&mut client, &text);
                            (answer.status, member(&answer, "version"))
                        })
                    })
                    .collect();
                asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
            })
        };
        let same = ask(&[FLOW]);
        assert_eq!(same.iter().filter(|(status, _)| *status == 201).count(), 1, "{same:?}");
        assert!(same.iter().all(|(_, version)| version == "1"), "{same:?}");
        assert_eq!(registrations(server), 1);
        let different = ask(&[OTHER, FLOW]);
        let mut made: Vec<usize> = different
            .iter()
            .filter(|(status, _)| *status == 201)
            .map(|(_, version)| version.parse().expect("a number"))
            .collect();
        made.sort_unstable();
        assert_eq!(made, (2..made.len() + 2).collect::<Vec<_>>(), "{different:?}");
        assert_eq!(registrations(server), made.len() + 1);
    });
}

/// A data directory in which two workflows are registered, one of them twice.
fn filled(directory: &Path) {
    let server = Server::start(Box::new(SqliteStore::open(directory).expect("a store")), None, bundle());
    let mut client = server.client();
    for text in [FLOW, OTHER, &flow("w")] {
        has(&post(&mut client, text), 201, &[]);
    }
}

#[test]
fn a_restart_keeps_every_workflow() {
    let scratch = tempfile::tempdir().expect("a directory");
    filled(scratch.path());
    let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), None, bundle());
    let mut client = server.client();
    let listed = send(&mut client, "GET", "/workflows", "");
    has(&listed, 200, &[r#""id":"fix","version":2"#, r#""id":"w","version":1"#]);
    has(&post(&mut client, OTHER), 200, &[r#""version":2"#]);
    has(&send(&mut client, "GET", "/workflows/fix", ""), 200, &[r#""initial":"only""#]);
    has(&start(&mut client, "/srv/shop", r#""fix""#), 201, &[r#""state":"only""#]);
    has(&post(&mut client, FLOW), 201, &[r#""version":3"#]);
    drop(server);
    let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), None, bundle());
    assert!(!moves(&server, "/srv/shop", "READY"), "the run is in what it was started with");
    assert!(moves(&server, "/srv/shop", "END"));
    is_sound(&server);
}

#[test]
fn an_audit_finds_every_edit_of_registered_workflows() {
    let entry = |change: &str| {
        format!(
            "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), {change}) AS BLOB) WHERE number IN (1, 2)"
        )
    };
    for (sql, finding) in [
        ("DELETE FROM workflows WHERE id = 'fix'".to_owned(), "the workflow `fix` has entries and no row"),
        ("UPDATE workflows SET row = replace(row, '\"version\":2', '\"version\":1')".to_owned(), "row of the workflow"),
        ("UPDATE workflows SET row = replace(row, '\"entry\":3', '\"entry\":1')".to_owned(), "row of the workflow"),
        ("INSERT INTO workflows SELECT 'v', replace(row, '\"id\":\"w\"', '\"id\":\"v\"') FROM workflows WHERE id = 'w'"
            .to_owned(), "the row of the workflow `v`"),
        ("UPDATE workflows SET id = 'v' WHERE id = 'w'".to_owned(), "the row of the workflow `v`"),
        (entry(r#"'"version":2', '"version":3'"#), "it is not the next workflow under this id"),
        (entry(r#"'"id":"fix","version"', '"id":"fox","version"'"#), "it is not the next workflow under this id"),
        (entry(r#"'only', 'once'"#), "it is not the next workflow under this id"),
        (entry(r#"'\"initial\":\"only\"', '\"initial\":\"none\"'"#), "its workflow cannot be read"),
        (entry(r#"'"name":"operator"', '"name":"somebody"'"#), "root of the head"),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        filled(scratch.path());
        let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
        connection.execute_batch(&sql).expect("tampered");
        drop(connection);
        let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
        let found = verify(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit").findings;
        assert!(found.iter().any(|found| found.contains(finding)), "{sql}: {found:?}");
    }
}

#[test]
fn a_row_that_speaks_of_another_text_is_neither_shown_nor_started() {
    for sql in [
        r#"UPDATE workflows SET row = replace(row, '"entry":3', '"entry":1')"#,
        r#"UPDATE workflows SET row = replace(row, '"entry":3', '"entry":0')"#,
        r#"UPDATE workflows SET row = replace(row, '"entry":3', '"entry":99')"#,
        "DELETE FROM workflows WHERE id = 'fix'; UPDATE workflows SET id = 'fix'",
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        filled(scratch.path());
        let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
        connection.execute_batch(sql).expect("tampered");
        drop(connection);
        let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), None, bundle());
        let mut client = server.client();
        has(&send(&mut client, "GET", "/workflows/fix", ""), 503, &["INTERLOCK-FAULT-002"]);
        let Answer { status, body, .. } = start(&mut client, "/srv/shop", r#""fix""#);
        assert!([500, 503].contains(&status) && body.contains("INTERLOCK-FAULT-00"), "{sql}: {status} {body}");
        let path = format!("/runs/{}", agent_id("codex", "/srv/shop"));
        has(&send(&mut client, "GET", &path, ""), 200, &[r#""run":null"#]);
    }
}
