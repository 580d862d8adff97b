//! Any text: no panic; the same text gets the same outcome; a finding has a certificate, and a correction holds.
#![no_main]

use interlock_verifiers::{Status, math};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The first line is the query, the second the expected value.
    let (query, expected) = text.split_once('\n').map_or((text, None), |(query, expected)| (query, Some(expected)));
    let outcome = math::verify(query, expected);
    assert_eq!(outcome, math::verify(query, expected), "not the same twice");
    assert_eq!(outcome.certificate.is_empty(), outcome.status == Status::Uncertain, "no certificate, or one too many");
    assert_eq!(outcome.corrected.is_some(), outcome.status == Status::Corrected, "no correction, or one too many");
    assert!(outcome.checks.iter().all(|check| check.passed) == (outcome.status == Status::Verified), "checks");
    if let Some(corrected) = outcome.corrected.filter(|text| text.len() <= math::TEXT_BYTES_MAX) {
        assert_eq!(math::verify(&corrected, None).status, Status::Verified, "a correction that does not hold");
    }
});
