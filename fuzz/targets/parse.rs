//! Any bytes: no panic; what is accepted prints back to itself; `serde_json` agrees on what is JSON.
#![no_main]

use interlock_core::json::{self, JsonErrorKind, Limits};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let theirs = std::str::from_utf8(bytes).ok().map(serde_json::from_str::<serde_json::Value>);
    match json::parse_bytes(bytes, &Limits::CONFIG) {
        Ok(document) => {
            let canonical = json::canonical(document.root());
            let again = json::parse(&canonical, &Limits::CONFIG).expect("canonical text is JSON");
            assert_eq!(json::canonical(again.root()), canonical, "not a fixed point");
            assert!(json::equal(document.root(), again.root()), "canonical text is another value");
            if let Some(Err(error)) = theirs {
                // It refuses numbers beyond a double and nesting beyond its own limit.
                let theirs_only = ["out of range", "recursion limit"];
                let reason = error.to_string();
                assert!(theirs_only.iter().any(|part| reason.contains(part)), "only serde_json refuses: {reason}");
            }
        }
        Err(error) => {
            let deliberate = matches!(
                error.kind,
                JsonErrorKind::DuplicateKey(_)
                    | JsonErrorKind::DuplicateNormalizedKey(_)
                    | JsonErrorKind::TooDeep { .. }
                    | JsonErrorKind::TooManyDigits(_)
                    | JsonErrorKind::ExponentTooLarge(_)
            );
            assert!(deliberate || !matches!(theirs, Some(Ok(_))), "only we refuse: {error}");
        }
    }
});
