//! Any statement in any dialect: no panic, the same outcome twice, and nothing is called read-only that a scan without
//! a grammar takes for a write. The first byte chooses the dialect.
#![no_main]

use std::sync::OnceLock;

use interlock_core::action::ActionText;
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits, quote};
use interlock_verifiers::sql::{Dialect, Sql};
use interlock_verifiers::{Ground, Outcome, Risk, Status, Verifier};

fn ground(trusted: bool) -> &'static Ground {
    static GROUNDS: OnceLock<[Ground; 2]> = OnceLock::new();
    let [agent, operator] = GROUNDS.get_or_init(|| {
        let bundle = Bundle::built_in().expect("the built-in bundle loads");
        [false, true].map(|trusts_action| {
            let ground = Ground::load(&bundle).expect("and is understood");
            Ground { trusts_action, ..ground }
        })
    });
    if trusted { operator } else { agent }
}

fn ask(text: &str, dialect: &str, trusted: bool) -> Outcome {
    let source = format!("{{\"query\":{},\"parameters\":{{\"dialect\":\"{dialect}\"}}}}", quote(text));
    let document = json::parse(&source, &Limits::STATE).expect("what is quoted can be read");
    let action = ActionText {
        kind: "execute_sql",
        query: document.root().get("query"),
        code: None,
        target: None,
        parameters: document.root().get("parameters"),
    };
    Sql.verify(&action, ground(trusted))
}

fn is_low(outcome: &Outcome) -> bool {
    outcome.status == Status::Verified && outcome.risk == Some(Risk::Low)
}

/// Words that begin or make a write; the text must have no quotes and no signs that may be a part of a word.
fn writes(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '$');
    let mut words = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).peekable();
    let begins = ["select", "with", "values", "table", "explain", "show", "describe", "desc", "pragma"];
    if words.peek().is_none_or(|first| !begins.contains(&first.as_str())) {
        return true;
    }
    let shows = words.peek().is_some_and(|first| first == "show" || first == "pragma");
    let writing = [
        "insert", "update", "delete", "drop", "alter", "create", "truncate", "grant", "revoke", "into", "exec",
        "execute", "merge", "shutdown", "outfile", "dumpfile",
    ];
    let calls = ["pg_sleep(", "xp_cmdshell(", "load_file(", "nextval(", "setval("];
    let calls = calls.iter().any(|call| text.to_ascii_lowercase().contains(call));
    calls || (!shows && words.any(|word| writing.contains(&word.as_str())))
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let names = Dialect::ALL.map(Dialect::name);
    let dialect = *names.get(usize::from(*first) % 7).unwrap_or(&"generic");
    let outcome = ask(text, dialect, true);
    assert_eq!(outcome, ask(text, dialect, true), "the same text, another outcome");
    assert_eq!(outcome.certificate.is_empty(), outcome.status == Status::Uncertain);
    if is_low(&outcome) && !text.contains(['\'', '"', '`', '[', '$', '@', '#']) {
        assert!(!writes(text), "{dialect} calls it read-only");
        assert!(!text.trim_end().trim_end_matches(';').contains(';') && !text.contains("/*"), "{dialect}");
    }
    if outcome.status == Status::Verified {
        // An agent's word lowers nothing.
        let unsaid = ask(text, "generic", true);
        assert!(!is_low(&ask(text, dialect, false)) || is_low(&unsaid), "{dialect} was believed");
        if dialect == "generic" && is_low(&outcome) {
            for name in names {
                assert!(is_low(&ask(text, name, true)), "low without a dialect, but not in {name}");
            }
        }
        let stacked = format!("{} ; DROP TABLE x", text.trim_end().trim_end_matches(';'));
        assert_ne!(ask(&stacked, dialect, true).status, Status::Verified, "a second statement in {dialect}");
    }
});
