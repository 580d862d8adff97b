//! What a third party can check again: parse the statement, and see that kind, tables and functions are as stated.

use interlock_core::Digest;
use interlock_core::json::quote;

use super::dialect::Dialect;
use super::reading::Reading;
use crate::outcome::Risk;

/// The certificate of a reading in these dialects; `failed` names the checks that did not pass.
pub(super) fn certificate(text: &str, dialects: &[Dialect], reading: &Reading, failed: &[&'static str]) -> String {
    let mut out = String::with_capacity(256);
    out.push_str("{\"dialects\":");
    list(&mut out, dialects.iter().map(|dialect| dialect.name()));
    if !failed.is_empty() {
        out.push_str(",\"failed\":");
        list(&mut out, failed.iter().copied());
    }
    if reading.is_parsed() {
        out.push_str(",\"functions\":");
        list(&mut out, reading.functions.iter().map(String::as_str));
        out.push_str(",\"kind\":\"");
        out.push_str(reading.kind);
        out.push_str("\",\"read_only\":");
        out.push_str(if reading.risk == Some(Risk::Low) { "true" } else { "false" });
        out.push_str(",\"reads\":");
        list(&mut out, reading.reads.iter().map(String::as_str));
    }
    out.push_str(",\"statement_sha256\":\"");
    let digest = Digest::of(&[text]).to_ascii();
    out.push_str(digest.get(7..).and_then(|digits| core::str::from_utf8(digits).ok()).unwrap_or_default());
    out.push('"');
    if reading.is_parsed() {
        out.push_str(",\"writes\":");
        list(&mut out, reading.writes.iter().map(String::as_str));
    }
    out.push('}');
    out
}

fn list<'n>(out: &mut String, names: impl Iterator<Item = &'n str>) {
    out.push('[');
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&quote(name));
    }
    out.push(']');
}
