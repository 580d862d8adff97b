//! Every case of `conformance/mcp-control`: lines in, lines and questions out.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::PathBuf;

use interlock_core::json::{self, Document, Json, Limits, Value};
use interlock_mcp::{CallId, ControlAnswer, ControlFault, ControlRequest, Output, PREFIX, Session};

use crate::sent;

/// The fewest cases there are.
const CASES_MIN: usize = 75;

#[test]
fn every_case_holds() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/mcp-control");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).expect("the cases").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut count, mut failed) = (0, Vec::new());
    for file in files {
        assert!(file.extension().is_some_and(|end| end == "jsonl"), "nobody reads {}", file.display());
        let mut names = BTreeSet::new();
        for line in fs::read_to_string(&file).expect("a file").lines() {
            let case = json::parse(line, &Limits::CONFIG).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let name = only(case.root(), &["name", "prefix", "steps"]).get("name").and_then(|name| name.as_str());
            let name = name.expect("a name").text().to_owned();
            assert!(names.insert(name.clone()), "{name} stands twice");
            count += 1;
            if let Err(what) = check(&case) {
                failed.push(format!("{}: {name}: {what}", file.file_stem().unwrap().display()));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count} cases failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= CASES_MIN, "only {count} cases were found");
}

fn check(case: &Document<'_>) -> Result<(), String> {
    let prefix = case.root().get("prefix").and_then(|prefix| prefix.as_str()).map_or(PREFIX, |prefix| prefix.text());
    let mut session = Session::new(prefix, "1.2.3").expect("a prefix");
    let mut waiting: VecDeque<(CallId, ControlRequest)> = VecDeque::new();
    for (number, step) in case.root().get("steps").and_then(|steps| steps.as_array()).expect("steps").enumerate() {
        let step = only(step, &["in", "raw", "answer", "fault", "out", "calls", "exact", "text"]);
        let (mut lines, mut calls) = (Vec::new(), Vec::new());
        match (step.get("in"), step.get("raw"), step.get("answer"), step.get("fault")) {
            (Some(message), None, None, None) => {
                split(session.receive(message.source().as_bytes()), &mut lines, &mut calls);
            }
            (None, Some(raw), None, None) => {
                let raw = raw.as_str().expect("a text").text().to_owned();
                split(session.receive(raw.as_bytes()), &mut lines, &mut calls);
            }
            (None, None, Some(answer), None) => {
                let (id, request) = waiting.pop_front().expect("a call that waits");
                lines.extend(session.answer(id, ControlAnswer::read(&request, answer.source())));
            }
            (None, None, None, Some(fault)) => {
                let text =
                    |name: &str| fault.get(name).and_then(|text| text.as_str()).expect("a text").text().to_owned();
                let fault = ControlFault::new(text("reason")).and_then_do(text("next"));
                lines.extend(session.answer(waiting.pop_front().expect("a call that waits").0, Err(fault)));
            }
            _ => panic!("a step is one of `in`, `raw`, `answer` and `fault`"),
        }
        let at = |what: String| format!("step {}: {what}", number + 1);
        let answers: Vec<Json> = lines.iter().map(|line| sent(line)).collect();
        let expected = list(step.get("out"));
        let exact = step.get("exact").and_then(|exact| exact.as_bool()).unwrap_or(false);
        let holds = |(answer, expected): (&Json, &Json)| match exact {
            true => answer.canonical() == expected.canonical(),
            false => covers(answer, expected),
        };
        if answers.len() != expected.len() || !answers.iter().zip(&expected).all(holds) {
            return Err(at(format!("sent {lines:#?}")));
        }
        if let Some(part) = step.get("text").and_then(|part| part.as_str()) {
            let Some(Json::Object(result)) = answers.first().and_then(|answer| answer.as_object()?.get("result"))
            else {
                return Err(at("no result".to_owned()));
            };
            let Some(Json::Array(content)) = result.get("content") else { return Err(at("no content".to_owned())) };
            let text = content[0].as_object().unwrap()["text"].as_str().unwrap();
            if !text.contains(part.text()) {
                return Err(at(format!("the text is {text}")));
            }
        }
        let asked: Vec<String> = calls.iter().map(|(_, request)| request.to_json().canonical()).collect();
        let wanted: Vec<String> = list(step.get("calls")).iter().map(Json::canonical).collect();
        if asked != wanted {
            return Err(at(format!("asked {asked:#?}")));
        }
        waiting.extend(calls);
        assert_eq!(session.is_waiting(), !waiting.is_empty());
    }
    Ok(())
}

fn split(outputs: Vec<Output>, lines: &mut Vec<String>, calls: &mut Vec<(CallId, ControlRequest)>) {
    for output in outputs {
        match output {
            Output::Send(line) => lines.push(line),
            Output::Call { id, request } => calls.push((id, request)),
        }
    }
}

/// Whether an answer holds what is expected: of objects these members at least, of an error's message a part.
fn covers(answer: &Json, expected: &Json) -> bool {
    match (answer, expected) {
        (Json::Object(answer), Json::Object(expected)) => expected.iter().all(|(key, expected)| {
            let Some(answer) = answer.get(key) else { return false };
            match (key.as_str(), answer, expected) {
                ("message", Json::String(answer), Json::String(part)) => answer.contains(part),
                _ => covers(answer, expected),
            }
        }),
        (Json::Array(answer), Json::Array(expected)) => {
            answer.len() == expected.len()
                && answer.iter().zip(expected).all(|(answer, expected)| covers(answer, expected))
        }
        _ => answer.canonical() == expected.canonical(),
    }
}

fn list(value: Option<Value<'_>>) -> Vec<Json> {
    value.map(|value| value.as_array().expect("a list").map(Json::of).collect()).unwrap_or_default()
}

/// The value, if it has no member but these.
fn only<'d>(value: Value<'d>, known: &[&str]) -> Value<'d> {
    for (key, _) in value.as_object().expect("an object") {
        assert!(known.contains(&key.text()), "nobody reads `{}`", key.text());
    }
    value
}
