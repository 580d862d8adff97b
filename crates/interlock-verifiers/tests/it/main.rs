//! The verifiers from outside.

mod conformance;
mod fuel;
mod math;
mod math_claims;
mod math_recheck;
mod policy_words;
mod shell;
mod sql;
mod sql_conformance;
mod sql_sizes;
