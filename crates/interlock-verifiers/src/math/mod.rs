//! Arithmetic, exactly: is this calculation right?
//!
//! Integers and decimals are rational numbers here; nothing is rounded. An expression alone is verified with its value;
//! `lhs = rhs` and comparisons are verified if they hold. A false equation is corrected, a false comparison and a
//! division by zero have failed. What is not understood, or larger than the limits, is uncertain.
//!
//! | to find | look in |
//! |---|---|
//! | how a number may be written | `lex.rs` |
//! | the grammar, and what is ambiguous in it | `parse.rs` |
//! | what a claim is made of | `claim.rs` |
//! | arithmetic | `value.rs` |
//! | normal text and certificate | `normal.rs` |
//! | limits | `limits.rs` |
//!
//! ```
//! use interlock_verifiers::{Status, math};
//!
//! let outcome = math::verify("0.1 + 0.2 = 0.30000000000000004", None);
//! assert_eq!(outcome.status, Status::Corrected);
//! assert_eq!(outcome.corrected.as_deref(), Some("0.1 + 0.2 = 0.3"));
//! ```

mod claim;
mod lex;
mod limits;
mod normal;
mod parse;
mod refusal;
mod value;

use core::cmp::Ordering;

use claim::{Claim, Link};
use lex::Relation;
use limits::Fuel;
pub use limits::{
    DEPTH_MAX, EXPONENT_DIGITS_MAX, RESULT_BITS_MAX, TEXT_BYTES_MAX, TOKENS_MAX, VALUE_BITS_MAX, WORK_MAX,
};
use normal::{certificate, normal};
use refusal::{Reason, Refusal};
use value::{Exact, Value};

use interlock_core::action::{ActionText, Engine};

use crate::ground::Ground;
use crate::outcome::{Check, Outcome, Status, Verifier, text_of};

/// The version of this engine. Rises when a text could get another status or value.
pub const VERSION: u32 = 1;

/// The engine for actions: the claim is in `query`, and in `parameters.expected` if that is there.
#[derive(Debug, Clone, Copy)]
pub struct Math;

impl Verifier for Math {
    fn engine(&self) -> Engine {
        Engine::Math
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn verify(&self, action: &ActionText<'_>, _: &Ground) -> Outcome {
        let expected = action.parameters.and_then(|parameters| parameters.get("expected"));
        let expected = expected.map(|expected| expected.as_str().map_or(expected.source(), |text| text.text()));
        verify(text_of(action.query).unwrap_or(""), expected)
    }
}

const PARSED: Aim = Aim { name: "parsed", met: "the text is understood" };
const WITHIN_LIMITS: Aim = Aim { name: "within_limits", met: "every value is within the limits" };
const NO_DIVISION_BY_ZERO: Aim = Aim { name: "no_division_by_zero", met: "nothing is divided by zero" };
const VALUE_MATCHES: Aim = Aim { name: "value_matches", met: "every relation holds" };

/// Verifies a calculation: an expression, an equation or a comparison.
///
/// With `expected`, the claim is that the query equals it; it is an expression itself.
pub fn verify(query: &str, expected: Option<&str>) -> Outcome {
    judge(query, expected).unwrap_or_else(|refusal| uncertain(&refusal))
}

/// What is known for certain; an error where nothing is.
fn judge(query: &str, expected: Option<&str>) -> Result<Outcome, Refusal> {
    let claim = parse::parse(query, expected)?;
    let expression = normal(&claim)?;
    let mut fuel = Fuel::full();
    let mut sides = Vec::new();
    for side in claim.sides() {
        match side.fold(&mut Exact { fuel: &mut fuel }) {
            Ok(value) => {
                fuel.spend_result(value.bits()).map_err(|reason| side.refuse(reason, side.span.start))?;
                sides.push(value);
            }
            // Proof enough, whatever the other sides are: a claim about a value that does not exist cannot hold.
            Err(refusal) if refusal.reason == Reason::DivisionByZero => {
                let values: Vec<_> = sides.iter().map(|value| Some(value.to_string())).chain([None]).collect();
                let certificate = certificate(&expression, &values, Status::Failed);
                return Ok(found(Status::Failed, refused(&refusal), None, certificate));
            }
            Err(refusal) => return Err(refusal),
        }
    }
    let broken = first_broken(&claim, &sides, &mut fuel)?;
    let corrected = broken.and_then(|_| correction(query, &claim, &sides));
    let status = match (broken, &corrected) {
        (None, _) => Status::Verified,
        (Some(_), Some(_)) => Status::Corrected,
        (Some(_), None) => Status::Failed,
    };
    let values: Vec<_> = sides.iter().map(|value| Some(value.to_string())).collect();
    let certificate = certificate(&expression, &values, status);
    Ok(found(status, checks(&claim, broken), corrected, certificate))
}

/// A finding with a certificate. That a calculation is right says nothing about what is done with it: no risk.
fn found(status: Status, checks: Vec<Check>, corrected: Option<String>, certificate: String) -> Outcome {
    Outcome { status, risk: None, checks, corrected, certificate, hostile: false }
}

/// The first link that does not hold. A link without a value on each side would be a refusal, never a link that holds.
fn first_broken<'c>(claim: &'c Claim, sides: &[Value], fuel: &mut Fuel) -> Result<Option<&'c Link>, Refusal> {
    let mut sides = sides.iter();
    let mut left = sides.next();
    for link in &claim.links {
        let right = sides.next();
        let holds = match (left, right) {
            (Some(left), Some(right)) => holds(link.relation, left, right, fuel),
            (Some(_) | None, None) | (None, Some(_)) => Err(Reason::NotUnderstood),
        };
        if !holds.map_err(|reason| link.side.refuse(reason, link.side.span.start))? {
            return Ok(Some(link));
        }
        left = right;
    }
    Ok(None)
}

fn holds(relation: Relation, left: &Value, right: &Value, fuel: &mut Fuel) -> Result<bool, Reason> {
    Ok(match relation {
        Relation::Equal => left == right,
        Relation::NotEqual => left != right,
        Relation::Less => left.compare(right, fuel)? == Ordering::Less,
        Relation::LessOrEqual => left.compare(right, fuel)? != Ordering::Greater,
        Relation::Greater => left.compare(right, fuel)? == Ordering::Greater,
        Relation::GreaterOrEqual => left.compare(right, fuel)? != Ordering::Less,
    })
}

/// The first side as written, with its value; `None` for a comparison, which has no one right answer.
fn correction(query: &str, claim: &Claim, sides: &[Value]) -> Option<String> {
    let value = sides.first().filter(|_| claim.only_equates())?;
    Some(format!("{} = {}", query.get(claim.first.span.clone())?, value.shown()))
}

/// The checks of a claim that has values.
fn checks(claim: &Claim, broken: Option<&Link>) -> Vec<Check> {
    let mut checks: Vec<Check> = [PARSED, WITHIN_LIMITS, NO_DIVISION_BY_ZERO].map(|aim| aim.passed()).into();
    match broken.map(|link| link.at) {
        None if claim.links.is_empty() => {}
        None => checks.push(VALUE_MATCHES.passed()),
        Some(Some(at)) => checks.push(VALUE_MATCHES.failed(format!("the relation at byte {at} does not hold"))),
        Some(None) => checks.push(VALUE_MATCHES.failed("the query does not equal the expected value".to_owned())),
    }
    checks
}

fn uncertain(refusal: &Refusal) -> Outcome {
    Outcome::uncertain(refused(refusal))
}

/// The checks up to the one that a refusal is about.
fn refused(refusal: &Refusal) -> Vec<Check> {
    let (aim, before) = refusal.reason.checks();
    let mut checks: Vec<Check> = before.iter().map(Aim::passed).collect();
    checks.push(aim.failed(refusal.to_string()));
    checks
}

/// Something to check, and what is said when it is met.
struct Aim {
    name: &'static str,
    met: &'static str,
}

impl Aim {
    fn passed(&self) -> Check {
        Check::passed(self.name, self.met)
    }

    fn failed(&self, message: String) -> Check {
        Check::failed(self.name, message)
    }
}
