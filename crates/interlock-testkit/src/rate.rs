//! The cases under `conformance/rate/`: requests at given times, and what a limiter must say to each. They run against
//! anything that keeps windows.

use std::fs;

use interlock_core::Digest;
use interlock_http::{RateLimits, Verdict};
use serde::Deserialize;

use crate::conformance::files_under;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    case: Vec<RateCase>,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateCase {
    /// Unique in its file.
    pub name: String,
    per_key: Option<u32>,
    global: Option<u32>,
    /// How many keys may have windows; absent: as many as ever.
    pub windows_max: Option<usize>,
    request: Vec<RateRequest>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateRequest {
    at_ms: u64,
    key: Option<String>,
    times: Option<usize>,
    allowed: bool,
    limit: Option<u32>,
    remaining: Option<u32>,
    reset_seconds: Option<u32>,
}

impl RateCase {
    /// The limits to run it with.
    pub fn limits(&self) -> RateLimits {
        let usual = RateLimits::default();
        let per_key = self.per_key.unwrap_or(usual.requests_per_minute_per_key);
        RateLimits { requests_per_minute_per_key: per_key, requests_per_minute: self.global }
    }

    /// Sends the requests to a limiter, and panics where it says something else than it must.
    pub fn run(&self, mut check: impl FnMut(Option<Digest>, u64) -> Verdict) {
        for (position, request) in self.request.iter().enumerate() {
            let place = format!("`{}`, request {}", self.name, position + 1);
            let key = request.key.as_deref().map(|key| Digest::of(&[key]));
            let mut last = None;
            for _ in 0..request.times.unwrap_or(1) {
                let verdict = check(key, request.at_ms);
                assert_eq!(verdict.allowed, request.allowed, "{place}: {verdict:?}");
                last = Some(verdict);
            }
            let last = last.expect("a request is sent once at least");
            let expected = Verdict {
                allowed: request.allowed,
                limit: request.limit.unwrap_or(last.limit),
                remaining: request.remaining.unwrap_or(last.remaining),
                reset_seconds: request.reset_seconds.unwrap_or(last.reset_seconds),
            };
            assert_eq!(last, expected, "{place}");
        }
    }
}

/// Every case, with the name of its file.
pub fn cases() -> Vec<(String, RateCase)> {
    let mut cases = Vec::new();
    for path in files_under(&crate::repository().join("conformance/rate")) {
        let file = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        let text = fs::read_to_string(&path).expect("a case file");
        let raw: RawFile = toml::from_str(&text).unwrap_or_else(|error| panic!("conformance/rate/{file}: {error}"));
        for case in raw.case {
            let is_new =
                !cases.iter().any(|(known, other): &(String, RateCase)| *known == file && other.name == case.name);
            assert!(is_new, "conformance/rate/{file}: `{}` stands twice", case.name);
            cases.push((file.clone(), case));
        }
    }
    cases
}
