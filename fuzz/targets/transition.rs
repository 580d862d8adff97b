//! Any rules and any two states: no panic; an accepted transition is accepted in canonical form and can stand still.
#![no_main]

use interlock_core::state::StateGuard;

const OPEN: &str = r#"{"type": "object", "properties": {}, "additionalProperties": true}"#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, '\u{1f}');
    let (Some(rules), Some(current), Some(proposed)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(guard) = StateGuard::load(OPEN, Some(rules), &[]) else { return };
    let _ = guard.lint();
    if let Ok(transition) = guard.verify_transition(current, proposed) {
        let (current, proposed) = (transition.current().canonical(), transition.proposed().canonical());
        assert!(guard.verify_transition(current, proposed).is_ok(), "the canonical texts are refused");
        assert!(guard.verify_transition(proposed, proposed).is_ok(), "standing still is refused");
    }
});
