//! Any text in any format: no panic; a refusal says why and where; what loads has a canonical text that loads to the same.
#![no_main]

use interlock_core::workflow::Workflow;
use interlock_workflow::{Format, Limits, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let format = match first {
        b'j' => Format::Json,
        b't' => Format::Toml,
        _ => Format::Yaml,
    };
    let problems = match load(text, format, &Limits::MAX) {
        Ok(loaded) => {
            let again = Workflow::from_text(loaded.workflow.text()).expect("the canonical text loads");
            assert_eq!(format!("{again:?}"), format!("{:?}", loaded.workflow), "another workflow");
            loaded.warnings
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a word");
            problems
        }
    };
    for problem in &problems {
        assert!(text.get(problem.span.clone()).is_some(), "outside the text: {problem:?}");
        assert!(problem.line >= 1 && problem.column >= 1, "{problem:?}");
    }
});
