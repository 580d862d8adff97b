//! Workflows: what loads and what does not, by cases; the schema for editors against the loader; damaged texts.

use interlock_core::workflow::Workflow;
use interlock_testkit::generate::Random;
use interlock_testkit::workflow::cases;
use interlock_workflow::{Format, Limits, PROBLEMS_MAX, SCHEMA, load, templates};

#[test]
fn the_cases() {
    let cases = cases();
    for (file, case) in &cases {
        println!("{file}: {}", case.name);
        case.run();
    }
    assert!(cases.len() >= 140, "cases were lost");
}

fn schema() -> jsonschema::Validator {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("JSON");
    assert!(jsonschema::meta::is_valid(&schema), "the schema is no schema");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

/// The good texts there are: cases that load, and templates.
fn good_texts() -> Vec<(String, Format)> {
    let loading =
        cases().into_iter().filter(|(_, case)| case.loads()).map(|(_, case)| (case.text.clone(), case.format()));
    loading.chain(templates().iter().map(|template| (template.text.to_owned(), template.format))).collect()
}

#[test]
fn the_schema_accepts_what_loads() {
    let schema = schema();
    for (text, format) in good_texts() {
        let workflow = load(&text, format, &Limits::MAX).expect("a good text").workflow;
        let document = serde_json::from_str(workflow.text()).expect("JSON");
        assert!(schema.is_valid(&document), "{text}\n{:?}", schema.validate(&document));
    }
}

#[test]
fn what_the_schema_refuses_does_not_load() {
    let schema = schema();
    let mut refused = 0_u32;
    // Cases in JSON that must not load: many of them are wrong in shape, the rest is beyond a schema.
    for (_, case) in cases().iter().filter(|(_, case)| !case.loads() && case.format() == Format::Json) {
        if let Ok(document) = serde_json::from_str::<serde_json::Value>(&case.text) {
            refused += u32::from(!schema.is_valid(&document));
        }
    }
    assert!(refused >= 50, "only {refused} cases are refused by the schema");
    // Good documents with a piece put elsewhere or replaced.
    let (mut seen, mut odd) = (0_u32, 0_u32);
    let good: Vec<serde_json::Value> = good_texts()
        .iter()
        .map(|(text, format)| load(text, *format, &Limits::MAX).expect("a good text").workflow)
        .map(|workflow| serde_json::from_str(workflow.text()).expect("JSON"))
        .collect();
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let mut document = good[random.below(good.len())].clone();
        let piece = pick(&mut random, &good);
        *place(&mut random, &mut document) = piece;
        if !schema.is_valid(&document) {
            odd += 1;
            let text = document.to_string();
            assert!(load(&text, Format::Json, &Limits::MAX).is_err(), "seed {seed}: loads: {text}");
        }
        seen += 1;
    }
    assert!(odd > seen / 4, "only {odd} of {seen} documents were refused by the schema");
}

/// Some value of some document, or one that fits nowhere.
fn pick(random: &mut Random, good: &[serde_json::Value]) -> serde_json::Value {
    let odd = [
        serde_json::json!(null),
        serde_json::json!(0),
        serde_json::json!(-1.5),
        serde_json::json!(""),
        serde_json::json!("a\nb"),
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!(["x", 1]),
        serde_json::json!({"observed": 1}),
    ];
    if random.below(3) == 0 {
        return odd[random.below(odd.len())].clone();
    }
    let mut document = good[random.below(good.len())].clone();
    place(random, &mut document).clone()
}

/// Some place in a document.
fn place<'d>(random: &mut Random, mut at: &'d mut serde_json::Value) -> &'d mut serde_json::Value {
    loop {
        let children = match &*at {
            serde_json::Value::Array(items) => items.len(),
            serde_json::Value::Object(members) => members.len(),
            _ => 0,
        };
        if children == 0 || random.below(6) == 0 {
            return at;
        }
        let chosen = random.below(children);
        at = match at {
            serde_json::Value::Array(items) => &mut items[chosen],
            serde_json::Value::Object(members) => members.values_mut().nth(chosen).expect("a member"),
            _ => unreachable!("it has children"),
        };
    }
}

#[test]
fn damaged_texts_are_refused_in_good_order() {
    let good = good_texts();
    let pieces = [
        "\"",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\n",
        "  ",
        "- ",
        "&a",
        "*a",
        "!t ",
        "<<: ",
        "é",
        "\u{200b}",
        "0",
        "1e9999999",
        "null",
        "final",
        "observed.",
        "'",
        "#",
        "|",
        ">",
        "= ",
        "[[",
        "\t",
        "\r",
        "%",
        "---\n",
        "? ",
    ];
    let (mut loaded, mut refused) = (0_u32, 0_u32);
    for seed in 0..20_000 {
        let mut random = Random::new(seed ^ 0xF10);
        let (text, format) = &good[random.below(good.len())];
        let mut text: Vec<char> = text.chars().collect();
        for _ in 0..=random.below(4) {
            let at = random.below(text.len() + 1);
            let end = (at + random.below(12)).min(text.len());
            match random.below(3) {
                0 => drop(text.drain(at..end)),
                1 => drop(text.splice(at..at, pieces[random.below(pieces.len())].chars())),
                _ => {
                    let copied: Vec<char> = text[at..end].to_vec();
                    let to = random.below(text.len() + 1);
                    drop(text.splice(to..to, copied));
                }
            }
        }
        let text: String = text.into_iter().collect();
        let (problems, sound) = match load(&text, *format, &Limits::MAX) {
            Ok(loaded) => {
                let again = Workflow::from_text(loaded.workflow.text()).expect("the canonical text is read");
                assert_eq!(format!("{again:?}"), format!("{:?}", loaded.workflow), "seed {seed}");
                (loaded.warnings, true)
            }
            Err(problems) => (problems, false),
        };
        *if sound { &mut loaded } else { &mut refused } += 1;
        assert!(sound || !problems.is_empty(), "seed {seed}: refused without a word");
        assert!(problems.len() <= PROBLEMS_MAX + 1, "seed {seed}");
        assert!(problems.is_sorted_by_key(|problem| problem.span.start), "seed {seed}: not in order");
        for problem in &problems {
            let before = text.get(..problem.span.start).expect("on a character");
            assert!(text.get(problem.span.clone()).is_some(), "seed {seed}: {problem:?}");
            assert_eq!(problem.line, before.matches('\n').count() + 1, "seed {seed}: {problem:?}");
            assert_eq!(problem.column, before.chars().rev().take_while(|c| *c != '\n').count() + 1, "seed {seed}");
        }
    }
    assert!(loaded > 1_000 && refused > 5_000, "{loaded} loaded, {refused} refused: the damage is lopsided");
}
