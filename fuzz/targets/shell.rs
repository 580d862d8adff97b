//! Any line: no panic; the label is the strictest effect; every span is a part of the text; a command that destroys,
//! on a line of its own behind it, is never hidden.
#![no_main]

use std::sync::OnceLock;

use interlock_core::call::Effect;
use interlock_verifiers::shell::{Setting, classify};

fn setting() -> &'static Setting {
    static SETTING: OnceLock<Setting> = OnceLock::new();
    SETTING.get_or_init(|| Setting::built_in().expect("the table is sound"))
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let analysis = classify(text, setting());
    let strictest = analysis.causes.iter().map(|found| found.effect).max().unwrap_or(Effect::ReadOnly);
    assert_eq!(analysis.label, strictest);
    for found in &analysis.causes {
        assert!(text.get(found.span.clone()).is_some(), "{:?} is no part of the text", found.span);
    }
    assert_eq!(classify(text, setting()), analysis, "the same text, another analysis");
    // A backslash at the end would take the line end with it.
    if !text.ends_with('\\') {
        let behind = classify(&format!("{text}\nrm x"), setting()).label;
        assert!(behind >= Effect::Unknown, "`rm x` behind the line is hidden: {behind}");
    }
});
