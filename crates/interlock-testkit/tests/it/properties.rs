//! What no list of cases can say.

use interlock_core::json::{self, Limits};
use interlock_core::state::StateGuard;
use interlock_testkit::generate::{Random, any_json, any_number};
use interlock_testkit::reference::{self, Json};
use proptest::prelude::*;

/// More by `PROPTEST_CASES`.
const SEEDS: u64 = 20_000;

fn parse(text: &str) -> json::Document<'_> {
    json::parse(text, &Limits::CONFIG).unwrap_or_else(|error| panic!("{error} in {text}"))
}

proptest! {
    #[test]
    fn canonical_text_is_a_fixed_point(value in any_json()) {
        let text = value.to_json();
        let canonical = json::canonical(parse(&text).root());
        prop_assert!(canonical.is_ascii());
        prop_assert_eq!(json::canonical(parse(&canonical).root()), canonical);
    }

    #[test]
    fn a_value_equals_its_canonical_text(value in any_json()) {
        let text = value.to_json();
        let document = parse(&text);
        let canonical = json::canonical(document.root());
        prop_assert!(json::equal(document.root(), parse(&canonical).root()));
    }

    #[test]
    fn parsing_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json::parse_bytes(&bytes, &Limits::STATE);
    }

    #[test]
    fn we_accept_what_serde_json_accepts(text in "[\\[\\]{}\",:0-9eE+.tfn\\\\u\\- ]{0,24}") {
        agree(&text)?;
    }

    #[test]
    fn mutilated_json_is_judged_like_serde_json_judges_it(value in any_json(), at in any::<usize>(), byte in any::<u8>()) {
        let mut bytes = value.to_json().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            agree(&text)?;
        }
    }

    #[test]
    fn numbers_are_ordered_by_value(left in any_number(), right in any_number()) {
        let small = |text: &str| text.split_once(['e', 'E']).is_none_or(|(_, exponent)| exponent.len() < 4);
        prop_assume!(small(&left) && small(&right));
        let text = format!("[{left},{right}]");
        let document = parse(&text);
        let numbers: Vec<_> = document.root().as_array().unwrap().map(|item| item.as_number().unwrap()).collect();
        prop_assert_eq!(numbers[0].cmp_value(&numbers[1]), reference::compare_numbers(&left, &right));
    }

    #[test]
    fn equality_agrees_with_the_reference(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let (left, right) = (random.value(3), random.value(3));
        let (left_text, right_text) = (left.to_json(), right.to_json());
        let (a, b) = (parse(&left_text), parse(&right_text));
        prop_assert_eq!(json::equal(a.root(), b.root()), reference::equal(&left, &right));
        prop_assert!(json::equal(a.root(), a.root()));
    }
}

/// Acceptance must agree with `serde_json`, but for what we refuse on purpose.
fn agree(text: &str) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    let deliberate = |error: &json::JsonError| {
        use json::JsonErrorKind::*;
        matches!(
            error.kind,
            DuplicateKey(_) | DuplicateNormalizedKey(_) | ExponentTooLarge(_) | TooManyDigits(_) | TooDeep { .. }
        )
    };
    match (json::parse(text, &Limits::CONFIG), theirs) {
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
        // It refuses numbers beyond a double.
        (Ok(_), Err(error)) if error.to_string().contains("out of range") => {}
        (Ok(_), Err(error)) => prop_assert!(false, "only serde_json refuses {text}: {error}"),
        (Err(error), Ok(_)) => prop_assert!(deliberate(&error), "only we refuse {text}: {error}"),
    }
    Ok(())
}

#[test]
fn schema_verification_agrees_with_the_reference() {
    let (mut accepted, mut refused) = (0_u32, 0_u32);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let schema = random.schema(3);
        let value = random.value_for(&schema);
        let guard =
            StateGuard::load(&schema.to_json(), None, &[]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let text = value.to_json();
        let ruling = guard.verify_payload(text.as_str());
        let expected = reference::accepts(&schema, &value);
        assert_eq!(ruling.is_ok(), expected, "seed {seed}: {ruling:?}\n{}\n{text}", schema.to_json());
        *if expected { &mut accepted } else { &mut refused } += 1;
        if let Ok(state) = ruling {
            let again = guard.verify_payload(state.canonical());
            assert!(again.is_ok(), "seed {seed}: the canonical text is refused: {again:?}");
        }
    }
    assert!(accepted > 3_000 && refused > 3_000, "{accepted} accepted, {refused} refused: the generator is lopsided");
}

#[test]
fn what_the_guard_accepts_the_jsonschema_crate_accepts() {
    let mut accepted = 0_u32;
    for seed in 0..SEEDS / 4 {
        let mut random = Random::new(seed ^ 0x5EED);
        let schema = random.schema(3);
        let value = random.value_for(&schema);
        let guard = StateGuard::load(&schema.to_json(), None, &[]).expect("a well-formed schema");
        let text = value.to_json();
        let Ok(state) = guard.verify_payload(text.as_str()) else { continue };
        // Normalised on both sides, and without numbers that a double cannot hold: that crate compares doubles.
        let normalized_schema = json::canonical(guard.schema().source().root());
        if [state.canonical(), &normalized_schema]
            .iter()
            .any(|text| text.contains("99999999999999999999") || text.contains("0000000001"))
        {
            continue;
        }
        let schema: serde_json::Value = serde_json::from_str(&normalized_schema).expect("JSON");
        let state: serde_json::Value = serde_json::from_str(state.canonical()).expect("JSON");
        assert!(jsonschema::is_valid(&schema, &state), "seed {seed}:\n{schema}\n{state}");
        accepted += 1;
    }
    assert!(accepted > 500, "only {accepted} states were accepted");
}

#[test]
fn transitions_agree_with_the_reference() {
    let schema = interlock_testkit::conformance::OPEN_SCHEMA;
    let (mut allowed, mut refused) = (0_u32, 0_u32);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let rules = random.rules();
        let current = random.task_state();
        let proposed = random.next_state(&current);
        let guard = StateGuard::load(schema, Some(&rules.to_json()), &[]).expect("well-formed rules");
        let (current_text, proposed_text) = (current.to_json(), proposed.to_json());
        let ruling = guard.verify_transition(current_text.as_str(), proposed_text.as_str());
        let expected = reference::transition_allowed(&rules, &current, &proposed);
        assert_eq!(
            ruling.is_ok(),
            expected,
            "seed {seed}: {ruling:?}\n{}\n{current_text}\n{proposed_text}",
            rules.to_json()
        );
        *if expected { &mut allowed } else { &mut refused } += 1;
        if let Ok(transition) = ruling {
            let (current, proposed) = (transition.current().canonical(), transition.proposed().canonical());
            assert!(guard.verify_transition(current, proposed).is_ok(), "seed {seed}: canonical texts are refused");
            assert!(guard.verify_transition(proposed, proposed).is_ok(), "seed {seed}: standing still is refused");
        }
    }
    assert!(allowed > 2_000 && refused > 2_000, "{allowed} allowed, {refused} refused: the generator is lopsided");
}

#[test]
fn the_reference_is_not_blind() {
    let schema = Json::object([("type", Json::text("integer"))]);
    assert!(reference::accepts(&schema, &Json::Number("1".to_owned())));
    assert!(!reference::accepts(&schema, &Json::Number("1.0".to_owned())));
    assert!(reference::compare_numbers("-1e1", "-9.99").is_lt());
    assert!(reference::compare_numbers("-0", "0.0e2").is_eq());
}
