//! Mathematics, exactly: is this calculation right?
//!
//! Integers, decimals and percentages are rational numbers here; nothing is rounded. An expression alone is verified
//! with its value; equations, comparisons, rounded values, identities with unknowns and solutions of linear equations
//! are verified if they hold. A wrong value is corrected; what cannot be put right, and what has no value, has failed.
//! What is not understood, could be read in two ways, or is larger than the limits, is uncertain.
//!
//! | to find | look in |
//! |---|---|
//! | how a number may be written | `lex.rs` |
//! | the words that are known | `words.rs` |
//! | the grammar, and what is ambiguous in it | `parse.rs`, `signs.rs`, `suffix.rs`, `letters.rs`, `statement.rs` |
//! | what a claim is made of | `claim.rs` |
//! | exact arithmetic | `value.rs`, `big.rs` |
//! | irrational numbers and their bounds | `real.rs`, `functions.rs`, `interval.rs`, `elementary.rs` |
//! | what rounded means | `rounding.rs` |
//! | what units are compared | `units.rs` |
//! | claims with numbers only | `arithmetic.rs` |
//! | identities | `identity.rs`, `poly.rs` |
//! | linear equations | `system.rs` |
//! | normal text and certificate | `normal.rs`, `certificate.rs` |
//! | limits | `limits.rs` |
//!
//! ```
//! use interlock_verifiers::{Status, math};
//!
//! let outcome = math::verify("0.1 + 0.2 = 0.30000000000000004", None);
//! assert_eq!(outcome.status, Status::Corrected);
//! assert_eq!(outcome.corrected.as_deref(), Some("0.1 + 0.2 = 0.3"));
//! ```

mod arithmetic;
mod big;
mod certificate;
mod claim;
mod elementary;
mod functions;
mod identity;
mod interval;
mod letters;
mod lex;
mod limits;
mod no_value;
mod normal;
mod parse;
mod poly;
mod real;
mod rounding;
mod signs;
mod statement;
mod suffix;
mod system;
mod units;
mod value;
mod vocabulary;

use std::collections::BTreeMap;

use arithmetic::{Broken, Evaluated, evaluate};
use claim::{Claim, Expression, Operator, Rounding, Statement, Step, StepKind, System};
use lex::Relation;
use limits::Fuel;
pub use limits::{
    DEPTH_MAX, EXPONENT_DIGITS_MAX, PRECISION_BITS_MAX, RESULT_BITS_MAX, ROUNDING_DIGITS_MAX, STATEMENTS_MAX,
    TERMS_MAX, TEXT_BYTES_MAX, TOKENS_MAX, UNKNOWNS_MAX, VALUE_BITS_MAX, WORK_MAX,
};
use no_value::{NoValue, Reason};
use normal::normal;
use real::Real;
use value::Value;
use vocabulary::Function;

use interlock_core::action::{ActionText, Engine};

use crate::ground::Ground;
use crate::outcome::{Check, Outcome, Status, Verifier, text_of};

/// The version of this engine. Rises when a text could get another status or value.
pub const VERSION: u32 = 2;

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

    fn verify_within(&self, action: &ActionText<'_>, _: &Ground, given: &mut crate::Fuel) -> Outcome {
        let expected = action.parameters.and_then(|parameters| parameters.get("expected"));
        // `Expected` is meant to say something; without it, the query alone would be judged.
        let members = action.parameters.and_then(|parameters| parameters.as_object());
        let misspelt = |name: &str| name != "expected" && name.eq_ignore_ascii_case("expected");
        if members.is_some_and(|mut members| members.any(|(name, _)| misspelt(name.text()))) {
            return uncertain(&NoValue { reason: Reason::NotUnderstood, text: no_value::Text::Expected, at: 0 });
        }
        let expected = expected.map(|expected| expected.as_str().map_or(expected.source(), |text| text.text()));
        let mut fuel = Fuel::of(given.left());
        let outcome = verify_with(text_of(action.query).unwrap_or(""), expected, &mut fuel);
        given.pay(fuel.spent());
        if fuel.fell_short() {
            given.fall_short();
        }
        outcome
    }
}

const PARSED: Aim = Aim { name: "parsed", met: "the text is understood" };
const WITHIN_LIMITS: Aim = Aim { name: "within_limits", met: "every value is within the limits" };
const NO_DIVISION_BY_ZERO: Aim = Aim { name: "no_division_by_zero", met: "nothing is divided by zero" };
const IN_DOMAIN: Aim = Aim { name: "in_domain", met: "every function has a value" };
const SAME_UNITS: Aim = Aim { name: "same_units", met: "numbers of the same thing are added and compared" };
const CONSISTENT: Aim = Aim { name: "consistent", met: "the equations do not contradict each other" };
const DECIDED: Aim = Aim { name: "decided", met: "it is known whether every relation holds" };
const VALUE_MATCHES: Aim = Aim { name: "value_matches", met: "every relation holds" };

/// Verifies a calculation: an expression, an equation, a comparison, an identity, or a solution of linear equations.
///
/// With `expected`, the claim is that the query equals it; it is an expression itself. Of equations with unknowns, it
/// is what follows from them.
pub fn verify(query: &str, expected: Option<&str>) -> Outcome {
    verify_with(query, expected, &mut Fuel::full())
}

fn verify_with(query: &str, expected: Option<&str>, fuel: &mut Fuel) -> Outcome {
    judge(query, expected, fuel).unwrap_or_else(|no_value| uncertain(&no_value))
}

/// What is known for certain; an error where nothing is.
fn judge(query: &str, expected: Option<&str>, fuel: &mut Fuel) -> Result<Outcome, NoValue> {
    match statement::parse(query, expected)? {
        Statement::System(system) => judge_system(query, &system, fuel),
        Statement::Claim(claim) => {
            units::check(&claim)?;
            if claim.has(|kind| matches!(kind, StepKind::Variable(_))) {
                judge_identity(&claim, fuel)
            } else {
                judge_values(query, &claim, fuel)
            }
        }
    }
}

/// A claim about numbers.
fn judge_values(query: &str, claim: &Claim, fuel: &mut Fuel) -> Result<Outcome, NoValue> {
    // `10/3 to 2 dp` does not say what it is.
    if claim.links.is_empty() && claim.rounding.is_some() {
        return Err(claim.first.refuse(Reason::NoDigits, claim.first.span.start));
    }
    // `1 - 10% - 20% = 70%`: where the result is a percentage, the others may be shares of one whole.
    if claim.sides().any(|side| side.percentage().is_some())
        && let Some(side) = claim.sides().find(|side| side.adds_percentage())
    {
        return Err(side.refuse(Reason::NotUnderstood, side.span.start));
    }
    let expression = normal(claim)?;
    let has_log = claim.has(|kind| matches!(kind, StepKind::Call(Function::Log, 1)));
    let evaluated = evaluate(claim, &BTreeMap::new(), fuel).map_err(|no_value| {
        let reason = if has_log && no_value.reason == Reason::Inseparable { Reason::NoBase } else { no_value.reason };
        NoValue { reason, ..no_value }
    })?;
    // `17 = 5 mod 12` is a congruence to some readers, and holds.
    let by_word = |side: &Expression<'_>| match side.steps.last() {
        Some(Step { kind: StepKind::Binary(Operator::Modulo), at }) if side.text == no_value::Text::Query => {
            query.get(*at..).is_some_and(|rest| rest.starts_with("mod"))
        }
        Some(_) | None => false,
    };
    if evaluated.broken.is_some()
        && let Some(link) = claim.links.iter().find(|link| by_word(&link.side))
    {
        return Err(link.side.refuse(Reason::NotUnderstood, link.side.span.start));
    }
    // What bounds the logarithms of two bases decides some claims; it is the value of none.
    let is_open = |side: &Real| !matches!(side, Real::Exact(_));
    if has_log && claim.links.is_empty() && evaluated.sides.iter().any(is_open) {
        return Err(claim.first.refuse(Reason::NoBase, claim.first.span.start));
    }
    let corrected = evaluated.broken.as_ref().and_then(|broken| correction(query, claim, &evaluated, broken));
    let status = match (&evaluated.broken, &evaluated.undefined, &corrected) {
        (None, None, _) => Status::Verified,
        (Some(_), None, Some(_)) => Status::Corrected,
        (Some(_), None, None) | (_, Some(_), _) => Status::Failed,
    };
    let certificate = certificate::calculated(&expression, &evaluated, status, fuel)
        .map_err(|reason| claim.first.refuse(reason, claim.first.span.start))?;
    let checks = match &evaluated.undefined {
        Some(no_value) => refused(no_value),
        None => checks(claim, evaluated.broken.as_ref().map(|broken| broken.link)),
    };
    Ok(found(status, checks, corrected, certificate))
}

/// A claim about all numbers.
fn judge_identity(claim: &Claim, fuel: &mut Fuel) -> Result<Outcome, NoValue> {
    let refuse = |reason| claim.first.refuse(reason, claim.first.span.start);
    // An expression with unknowns has no value, and nothing that is rounded holds for all numbers.
    if claim.links.is_empty() || claim.rounding.is_some() {
        return Err(refuse(Reason::Undecided));
    }
    let expression = normal(claim)?;
    match identity::examine(claim, fuel) {
        Ok(identity::Finding::Holds { partial }) => {
            let certificate = certificate::identity(&expression, partial);
            Ok(found(Status::Verified, checks(claim, None), None, certificate))
        }
        Ok(identity::Finding::Fails { link, point, left, right, bits }) => {
            let certificate =
                certificate::refuted(&expression, link, &point, [&left, &right], bits, fuel).map_err(refuse)?;
            Ok(found(Status::Failed, checks(claim, Some(link)), None, certificate))
        }
        // It divides by zero, or leaves a domain, whatever the unknowns are.
        Err(no_value) => match no_value.reason.undefined() {
            Some(why) => {
                let certificate = certificate::undefined(&expression, why);
                Ok(found(Status::Failed, refused(&no_value), None, certificate))
            }
            None => Err(no_value),
        },
    }
}

/// A claim about what follows from equations.
fn judge_system(query: &str, system: &System, fuel: &mut Fuel) -> Result<Outcome, NoValue> {
    let texts =
        |claims: &[Claim]| claims.iter().map(normal).collect::<Result<Vec<_>, _>>().map(|texts| texts.join("; "));
    let expression = format!("{} => {}", texts(&system.premises)?, texts(&system.conclusions)?);
    let mut checks: Vec<Check> = [PARSED, WITHIN_LIMITS].map(|aim| aim.passed()).into();
    let (solution, fails) = match system::examine(system, fuel)? {
        system::Finding::Contradiction => {
            checks.push(CONSISTENT.failed("the equations have no solution".to_owned()));
            let certificate = certificate::system(&expression, None, Status::Failed);
            return Ok(found(Status::Failed, checks, None, certificate));
        }
        system::Finding::Solved { solution, fails } => (solution, fails),
    };
    for value in solution.values() {
        fuel.spend_result(value.bits()).map_err(|reason| NoValue { reason, text: no_value::Text::Query, at: 0 })?;
    }
    checks.push(CONSISTENT.passed());
    let Some(index) = fails else {
        checks.push(VALUE_MATCHES.passed());
        let certificate = certificate::system(&expression, Some(&solution), Status::Verified);
        return Ok(found(Status::Verified, checks, None, certificate));
    };
    checks.push(VALUE_MATCHES.failed(format!("conclusion {} does not follow", index.saturating_add(1))));
    let premises = query.get(system.span.clone());
    let corrected =
        system::corrected(system, &solution).zip(premises).map(|(text, premises)| format!("{premises} => {text}"));
    let status = if corrected.is_some() { Status::Corrected } else { Status::Failed };
    let certificate = certificate::system(&expression, Some(&solution), status);
    Ok(found(status, checks, corrected, certificate))
}

/// A finding with a certificate. That a calculation is right says nothing about what is done with it: no risk.
fn found(status: Status, checks: Vec<Check>, corrected: Option<String>, certificate: String) -> Outcome {
    Outcome { status, risk: None, checks, corrected, certificate, hostile: false }
}

/// The first side as written, with its value; `None` where there is no one right answer, or none that can be written.
fn correction(query: &str, claim: &Claim, evaluated: &Evaluated, broken: &Broken) -> Option<String> {
    let first = query.get(claim.first.span.clone())?;
    let is_last = broken.link.saturating_add(1) == claim.links.len();
    let (before, link) = (claim.links.get(..broken.link)?, claim.links.get(broken.link)?);
    let equal_before = before.iter().all(|link| link.relation == Relation::Equal);
    if let Some((value, places)) = broken.rounded.as_ref().filter(|_| is_last && equal_before) {
        let percentage = claim.rounding.is_some() && link.side.percentage().is_some();
        let shown = if percentage {
            let hundredfold = value.multiply(&Value::small(100), &mut Fuel::full()).ok()?;
            format!("{}%", rounding::shown(&hundredfold, places.saturating_sub(2).max(0)))
        } else {
            units::measured(&claim.first, &rounding::shown(value, *places))?
        };
        let sign = if link.relation == Relation::Approximate { "≈" } else { "=" };
        let suffix = match claim.rounding {
            None => String::new(),
            Some(Rounding::DecimalPlaces(digits)) if percentage => format!(" to {} dp", digits.saturating_sub(2)),
            Some(Rounding::DecimalPlaces(digits)) => format!(" to {digits} dp"),
            Some(Rounding::SignificantFigures(digits)) => format!(" to {digits} sf"),
        };
        return Some(format!("{first} {sign} {shown}{suffix}"));
    }
    match evaluated.sides.first() {
        Some(Real::Exact(value)) if claim.only_equates() => {
            Some(format!("{first} = {}", units::measured(&claim.first, &value.shown())?))
        }
        Some(_) | None => None,
    }
}

/// The checks of a claim that was decided.
fn checks(claim: &Claim, broken: Option<usize>) -> Vec<Check> {
    let mut checks: Vec<Check> = [PARSED, WITHIN_LIMITS, NO_DIVISION_BY_ZERO].map(|aim| aim.passed()).into();
    if claim.has(|kind| matches!(kind, StepKind::Call(..))) {
        checks.push(IN_DOMAIN.passed());
    }
    if claim.has(|kind| matches!(kind, StepKind::Unit(_))) {
        checks.push(SAME_UNITS.passed());
    }
    match broken.map(|index| claim.links.get(index).and_then(|link| link.at)) {
        None if claim.links.is_empty() => {}
        None => checks.push(VALUE_MATCHES.passed()),
        Some(Some(at)) => checks.push(VALUE_MATCHES.failed(format!("the relation at byte {at} does not hold"))),
        Some(None) => checks.push(VALUE_MATCHES.failed("the query does not equal the expected value".to_owned())),
    }
    checks
}

fn uncertain(no_value: &NoValue) -> Outcome {
    Outcome::uncertain(refused(no_value))
}

/// The checks up to the one that says why there is no value.
fn refused(no_value: &NoValue) -> Vec<Check> {
    let (aim, before) = no_value.reason.checks();
    let mut checks: Vec<Check> = before.iter().map(Aim::passed).collect();
    checks.push(aim.failed(no_value.to_string()));
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
