//! Every case of `conformance/`: a line of text and what the verifier must answer.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use interlock_core::action::ActionText;
use interlock_core::json::{self, Limits, Value};
use interlock_verifiers::math::Math;
use interlock_verifiers::shell::Commands;
use interlock_verifiers::sql::Databases;
use interlock_verifiers::{Ground, Outcome, Status, Verifier, math};

use crate::math::check_shape;
use crate::math_recheck::recheck;

/// The fewest cases of a verifier.
const CASES_MIN: usize = 150;

struct Case {
    name: String,
    line: String,
    hostile: bool,
}

/// The cases of one verifier, from all files of its folder.
fn cases(verifier: &str) -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(verifier);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        for line in fs::read_to_string(&file).expect("a file").lines().filter(|line| !line.trim().is_empty()) {
            let document =
                json::parse(line, &Limits::CONFIG).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let text = |name: &str| {
                document.root().get(name).and_then(|member| member.as_str()).map(|text| text.text().to_owned())
            };
            let hostile = match text("kind").as_deref() {
                Some("hostile") => true,
                Some("harmless") => false,
                other => panic!("kind {other:?} in {}", file.display()),
            };
            cases.push(Case { name: text("name").expect("a name"), line: line.to_owned(), hostile });
        }
    }
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "a name is used twice");
    assert!(cases.len() >= CASES_MIN, "only {} cases for {verifier}", cases.len());
    let hostile = cases.iter().filter(|case| case.hostile).count();
    let harmless = cases.len() - hostile;
    assert!(hostile.min(harmless) * 2 >= hostile.max(harmless), "{hostile} hostile and {harmless} harmless cases");
    cases
}

/// The statuses that are right: one, or several where the text leaves it open.
fn statuses(expect: Value<'_>) -> Vec<String> {
    let status = expect.get("status").expect("a status");
    let text = |value: Value<'_>| value.as_str().expect("a status").text().to_owned();
    status.as_array().map_or_else(|| vec![text(status)], |list| list.map(text).collect())
}

#[test]
fn math() {
    let databases = Databases::load(None).expect("the databases that are built in");
    let commands = Commands::load(None).expect("the commands that are built in");
    let ground = Ground { databases, commands, trusts_action: true };
    for case in cases("math") {
        let document = json::parse(&case.line, &Limits::CONFIG).expect("a case");
        let (action, expect) =
            (document.root().get("action").expect("action"), document.root().get("expect").expect("expect"));
        let query = action.get("query");
        assert!(query.and_then(|query| query.as_str()).is_some(), "{}: no query", case.name);
        let parameters = action.get("parameters");
        let action = ActionText { kind: "calculate", query, code: None, target: None, parameters };
        let outcome = Math.verify(&action, &ground);
        check_shape(&case.name, &outcome);
        assert!(statuses(expect).contains(&outcome.status.to_string()), "{}: {outcome:?}", case.name);
        if outcome.status != Status::Uncertain {
            recheck(&outcome.certificate);
        }
        let text = |name: &str| expect.get(name).and_then(|member| member.as_str()).map(|text| text.text().to_owned());
        if let Some(value) = text("value") {
            assert!(outcome.certificate.contains(&format!("\"values\":[\"{value}\"")), "{}: {outcome:?}", case.name);
        }
        if let (Some(value), Status::Corrected) = (text("corrected_value"), outcome.status) {
            assert_eq!(stated_value(&outcome), value, "{}: {outcome:?}", case.name);
        }
        // An approval of a hostile text would be a miss.
        let may_approve = statuses(expect).contains(&"VERIFIED".to_owned());
        assert!(!case.hostile || may_approve || outcome.status != Status::Verified, "{}", case.name);
    }
}

/// The number that a corrected text states, in lowest terms; without units, signs of currency and words.
fn stated_value(outcome: &Outcome) -> String {
    let corrected = outcome.corrected.as_deref().expect("a corrected text");
    let (_, stated) = corrected.rsplit_once(['=', '≈']).expect("a relation");
    let stated = stated.trim_start_matches('>').split(" to ").next().expect("a value");
    let number: String =
        stated.chars().filter(|character| character.is_ascii_digit() || "-./e".contains(*character)).collect();
    let number = number.trim_end_matches('e');
    // Read by the engine, but without the words around it.
    let certificate = math::verify(number, None).certificate;
    let (_, values) = certificate.split_once("\"values\":[\"").expect("a value");
    values.split('"').next().expect("a value").to_owned()
}
