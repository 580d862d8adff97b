//! Any text as a schema, and another as a state: no panic, and an accepted state's canonical text is accepted too.
#![no_main]

use interlock_core::state::StateGuard;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (schema, state) = text.split_once('\u{1f}').unwrap_or((text, "{}"));
    if let Ok(guard) = StateGuard::load(schema, None, &[])
        && let Ok(verified) = guard.verify_payload(state)
    {
        assert!(guard.verify_payload(verified.canonical()).is_ok(), "the canonical text is refused");
    }
});
