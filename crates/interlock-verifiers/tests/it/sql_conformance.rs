//! Runs `conformance/sql/*.jsonl` against the engine, and checks every certificate against the action it is for.

use std::fs;
use std::path::PathBuf;

use interlock_core::Digest;
use interlock_core::action::ActionText;
use interlock_core::json::{self, Document, Limits, Value};
use interlock_verifiers::sql::{Databases, Sql};
use interlock_verifiers::{Ground, Outcome, Status, Verifier};

/// Fewer cases than these are a directory that was not found.
const CASES_MIN: usize = 150;

/// What SQLite understands and the parser does not: false alarms that are known.
const BEYOND_THE_PARSER: [&str; 3] = ["1 << 4, 256 >> 2", "email IS NOT 'dairy", "INDEXED BY"];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sql")
}

fn ground() -> Ground {
    let databases = Databases::load(None).unwrap();
    Ground { databases, commands: interlock_verifiers::shell::Commands::load(None).unwrap(), trusts_action: true }
}

fn verify(action: Value<'_>) -> Outcome {
    let action = ActionText {
        kind: "execute_sql",
        query: action.get("query"),
        code: None,
        target: action.get("target"),
        parameters: action.get("parameters"),
    };
    Sql.verify(&action, &ground())
}

/// A word, or a list of words of which any will do.
fn allows(expected: Option<Value<'_>>, found: &str) -> bool {
    let Some(expected) = expected else { return true };
    match expected.as_array() {
        Some(mut list) => list.any(|item| item.as_str().is_some_and(|item| item.text() == found)),
        None => expected.as_str().is_some_and(|expected| expected.text() == found),
    }
}

/// What is wrong with an outcome.
fn complaint(case: Value<'_>, outcome: &Outcome) -> Option<String> {
    let expect = case.get("expect").unwrap();
    let risk = outcome.risk.map_or("none", |risk| risk.as_str());
    let status = outcome.status.to_string();
    let failed: Vec<_> = outcome.checks.iter().filter(|check| !check.passed).map(|check| check.name).collect();
    let wrong = if !allows(expect.get("status"), &status) {
        "status"
    } else if outcome.status == Status::Verified && !allows(expect.get("risk"), risk) {
        "risk"
    } else if let Some(check) = expect.get("failed_check")
        && outcome.status != Status::Uncertain
        && !failed.iter().any(|failed| allows(Some(check), failed))
    {
        "failed_check"
    } else {
        return None;
    };
    let messages: Vec<_> = outcome.checks.iter().filter(|check| !check.passed).map(|check| &check.message).collect();
    Some(format!("{wrong}: found {status} {risk} {failed:?} {messages:?}\n    {}", case.source()))
}

/// The parts of the contract that hold for every outcome.
fn check_contract(case: Value<'_>, outcome: &Outcome) {
    let text =
        case.get("action").unwrap().get("query").and_then(|query| query.as_str()).map_or("", |query| query.text());
    assert_eq!(outcome.certificate.is_empty(), outcome.status == Status::Uncertain, "{}", case.source());
    if !outcome.certificate.is_empty() {
        let certificate = json::parse(&outcome.certificate, &Limits::CONFIG).unwrap();
        assert_eq!(json::canonical(certificate.root()), outcome.certificate, "canonical: {}", case.source());
        let digest = certificate.root().get("statement_sha256").and_then(|digest| digest.as_str()).unwrap();
        assert_eq!(format!("sha256:{}", digest.text()), Digest::of(&[text]).to_string());
    }
    for check in &outcome.checks {
        let shows_text = text.len() > 20 && check.message.contains(text);
        assert!(!shows_text, "a message shows the text: {}", case.source());
    }
}

#[test]
fn the_cases_of_the_directory_hold() {
    let mut cases = 0;
    let mut complaints = Vec::new();
    let mut files: Vec<_> = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "jsonl")) {
        for line in fs::read_to_string(file).unwrap().lines().filter(|line| !line.is_empty()) {
            let document: Document<'_> = json::parse(line, &Limits::CONFIG).unwrap();
            let case = document.root();
            cases += 1;
            let outcome = verify(case.get("action").unwrap());
            check_contract(case, &outcome);
            if let Some(complaint) = complaint(case, &outcome) {
                complaints.push(format!("{}: {complaint}", file.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(cases >= CASES_MIN, "only {cases} cases");
    assert!(complaints.is_empty(), "{} of {cases} cases:\n{}", complaints.len(), complaints.join("\n"));
}

/// The statements that `scripts/sql-test` runs on real databases.
#[test]
fn statements_for_real_databases_are_proven_read_only() {
    let mut complaints = Vec::new();
    let text = fs::read_to_string(directory().join("real/read_only.jsonl")).unwrap();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let document = json::parse(line, &Limits::CONFIG).unwrap();
        let word = |name| document.root().get(name).and_then(|word| word.as_str()).map(|word| word.text()).unwrap();
        let action = format!(
            "{{\"query\":{},\"parameters\":{{\"dialect\":{}}}}}",
            json::quote(word("query")),
            json::quote(word("dialect"))
        );
        let outcome = verify(json::parse(&action, &Limits::CONFIG).unwrap().root());
        let is_beyond_the_parser = BEYOND_THE_PARSER.iter().any(|part| word("query").contains(part));
        assert!(!is_beyond_the_parser || outcome.status == Status::Failed, "it can be parsed by now: {line}");
        if is_beyond_the_parser {
            continue;
        }
        if outcome.status != Status::Verified || outcome.risk != Some(interlock_verifiers::Risk::Low) {
            let failed: Vec<_> = outcome.checks.iter().filter(|check| !check.passed).collect();
            complaints.push(format!("{} {:?} {failed:?}\n    {}", outcome.status, outcome.risk, word("query")));
        }
    }
    assert!(text.lines().count() >= CASES_MIN);
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}
