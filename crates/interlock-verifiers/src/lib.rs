//! The verifiers of Interlock: pure functions from a claim to evidence that can be checked again.
//!
//! A verifier proves, disproves or abstains. It says [`Status::Verified`] only together with a certificate that a third
//! party can check without it; whatever it does not understand is [`Status::Uncertain`]. It stops on counted work,
//! never on a clock, so the same text gives the same outcome on every machine. What an outcome permits is not decided
//! here.
//!
//! | to find | look in |
//! |---|---|
//! | what every verifier is asked and hands back | [`Verifier`], [`Outcome`] |
//! | what an operator says that a verdict may rest on | [`Ground`] |
//! | how much work a text makes | [`Fuel`] |
//! | arithmetic, exact | [`math`] |
//! | database statements | [`sql`] |
//! | command lines | [`shell`] |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    clippy::float_arithmetic
)]

mod fuel;
mod ground;
pub mod math;
mod outcome;
pub mod shell;
pub mod sql;

pub use fuel::Fuel;
pub use ground::Ground;
pub use outcome::{Check, Outcome, Risk, Status, Verifier};
