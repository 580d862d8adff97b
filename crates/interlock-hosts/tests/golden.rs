//! Every event of every host: what it is read as, and what each reply to it looks like, byte for byte.
//!
//! `golden/HOST/EVENT[-case].in.json` is what a host sends; the `.out.txt` beside it is written by `UPDATE_GOLDEN=1`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use interlock_core::call::Call;
use interlock_hosts::{Host, HostEvent, Kind, Reply, event_names, read, render};

/// Where the script lies by which commands carry their tickets.
const SCRIPT: &str = "/srv/a b/.interlock/bin/run.sh";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn every_event_is_read_and_answered_as_written_down() {
    for host in Host::ALL {
        let directory = golden().join(host.as_str());
        let mut events = BTreeSet::new();
        let mut expected = BTreeSet::new();
        for path in files(&directory, ".in.json") {
            let bytes = fs::read(&path).expect("an event");
            let event = read(host, &bytes, Some(SCRIPT)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            let stem = name.strip_suffix(".in.json").expect("the suffix");
            assert_eq!(stem.split('-').next(), Some(event.name), "{name} is another event");
            events.insert(event.name);
            let out = directory.join(format!("{stem}.out.txt"));
            expected.insert(out.clone());
            compare(&out, &shown(&event));
        }
        assert_eq!(events, event_names(host).collect(), "{host}: an event without a file");
        let found: BTreeSet<_> = files(&directory, ".out.txt").into_iter().collect();
        assert_eq!(found, expected, "{host}: an answer without its event");
    }
}

/// Whatever is said before a tool runs, an answer that lets it run is silent or rewrites its command, and any other is
/// understood as a refusal or a question. Codex alone is told to allow, and only what is rewritten.
#[test]
fn no_answer_allows_in_the_host_s_name() {
    for host in Host::ALL {
        for path in files(&golden().join(host.as_str()), ".in.json") {
            let event = read(host, &fs::read(&path).expect("an event"), Some(SCRIPT)).expect("readable");
            for reply in replies() {
                let said = render(&event, &reply);
                assert!(said.exit == 0 || said.exit == 2, "no host reads another code");
                let rewrites = said.stdout.contains("\"updatedInput\"") || said.stdout.contains("\"tool_input\"");
                let allows = said.stdout.contains("\"allow\"");
                assert_eq!(allows, host == Host::Codex && rewrites, "{}", said.stdout);
                assert!(!said.stdout.contains("\"approve\""));
                let is_first = matches!(event.kind, Kind::BeforeTool { ticket: None, echo: false, .. });
                assert!(!rewrites || (is_first && matches!(reply, Reply::Rewrite { .. })));
                if said.exit == 2 {
                    assert!(!said.stderr.trim().is_empty(), "a refusal without a reason is ignored");
                }
                if let Kind::BeforeTool { .. } = event.kind {
                    let asks = said.exit == 0 && said.stdout.contains("\"ask\"");
                    match reply {
                        Reply::Pass { .. } => {
                            assert_eq!((said.exit, said.stdout.as_str(), said.stderr.as_str()), (0, "", ""));
                        }
                        Reply::Rewrite { .. } => assert!(said.exit == if rewrites { 0 } else { 2 }),
                        Reply::Ask { .. } => assert!(said.exit == 2 || asks),
                        Reply::Deny { .. } | Reply::Continue { .. } => assert_eq!(said.exit, 2),
                    }
                }
                if let Kind::Stop { already_active: true } | Kind::SubagentStop { already_active: true } = event.kind {
                    assert_eq!((said.exit, said.stdout.as_str()), (0, ""), "it would go on for ever");
                }
            }
        }
    }
}

fn replies() -> [Reply; 8] {
    [
        Reply::Pass { context: None },
        Reply::Pass { context: Some("phase: explore".to_owned()) },
        Reply::Rewrite { ticket: "AAAABBBBCCCCDDDD".to_owned(), script: SCRIPT.to_owned(), note: None },
        Reply::Rewrite {
            ticket: "AAAABBBBCCCCDDDD".to_owned(),
            script: SCRIPT.to_owned(),
            note: Some("what it deletes is kept".to_owned()),
        },
        Reply::Deny { reason: "not in this phase".to_owned() },
        Reply::Deny { reason: " \n".to_owned() },
        Reply::Ask { reason: "is \"this\" right?".to_owned() },
        Reply::Continue { reason: "the tests were not run".to_owned() },
    ]
}

fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(suffix)));
    paths.sort();
    paths
}

fn compare(path: &Path, text: &str) {
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, text).expect("written");
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, text, "{}: run with UPDATE_GOLDEN=1 and look at the difference", path.display());
}

fn shown(event: &HostEvent) -> String {
    let mut out = String::new();
    let HostEvent { host, name, session, cwd, roots, subagent, may_ask, kind } = event;
    writeln!(out, "{host} {name}\nsession {session:?} cwd {cwd:?} subagent {subagent:?} may_ask {may_ask}").unwrap();
    if !roots.is_empty() {
        writeln!(out, "roots {roots:?}").unwrap();
    }
    match kind {
        Kind::BeforeTool { call, call_id, ticket, echo } => {
            writeln!(out, "before {call_id:?} echo {echo}").unwrap();
            show_ticket(&mut out, ticket.as_deref());
            show_call(&mut out, call);
        }
        Kind::AfterTool { call, call_id, ticket, echo, result } => {
            writeln!(out, "after {call_id:?} echo {echo}").unwrap();
            show_ticket(&mut out, ticket.as_deref());
            show_call(&mut out, call);
            writeln!(
                out,
                "  ok {:?} exit_code {:?} repeats_input {}",
                result.ok, result.exit_code, result.repeats_input
            )
            .unwrap();
            writeln!(out, "  response {}", result.response).unwrap();
        }
        other => writeln!(out, "{other:?}").unwrap(),
    }
    for reply in replies() {
        let said = render(event, &reply);
        writeln!(out, "\n{reply:?}\n  exit {} stderr {:?}\n  {}", said.exit, said.stderr, said.stdout.trim_end())
            .unwrap();
    }
    out
}

fn show_ticket(out: &mut String, ticket: Option<&str>) {
    if let Some(ticket) = ticket {
        writeln!(out, "  ticket {ticket:?}").unwrap();
    }
}

fn show_call(out: &mut String, call: &Call) {
    writeln!(out, "  tool {:?} family {:?} mcp {:?}", call.tool, call.family, call.mcp).unwrap();
    if call.bookkeeping {
        writeln!(out, "  bookkeeping").unwrap();
    }
    writeln!(out, "  input {}", call.input.canonical()).unwrap();
    let intent = &call.intent;
    writeln!(out, "  commands {:?} directory {:?}", intent.commands, intent.directory).unwrap();
    writeln!(out, "  reads {:?} urls {:?}", intent.reads, intent.urls).unwrap();
    if !intent.patterns.is_empty() {
        writeln!(out, "  patterns {:?}", intent.patterns).unwrap();
    }
    for change in &intent.writes {
        writeln!(out, "  writes {:?} lines {:?} deletes {}", change.path, change.lines, change.deletes).unwrap();
    }
    writeln!(out, "  unread {:?}", intent.unread).unwrap();
}
