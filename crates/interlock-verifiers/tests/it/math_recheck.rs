//! Certificates of the math engine, checked again by code that shares nothing with it: its own reader of normal text,
//! its own fractions, floating point numbers where a value is irrational, and its own elimination.

use std::collections::BTreeMap;

use interlock_core::json::{self, Limits, Value};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Checks a certificate from the certificate alone.
pub(crate) fn recheck(certificate: &str) {
    let document = json::parse(certificate, &Limits::CONFIG).expect("a certificate is JSON");
    assert_eq!(json::canonical(document.root()), certificate, "a certificate is canonical");
    let text =
        |name: &str| document.root().get(name).and_then(|member| member.as_str()).map(|text| text.text().to_owned());
    let (kind, status, expression) = (text("kind"), text("status"), text("expression"));
    let (kind, status, expression) = (kind.expect("kind"), status.expect("status"), expression.expect("expression"));
    match kind.as_str() {
        "arithmetic" | "interval" => calculated(document.root(), &status, &expression, &kind),
        "identity" => identity(document.root(), &status, &expression),
        "system" => system(document.root(), &status, &expression),
        other => panic!("kind {other}"),
    }
}

fn calculated(root: Value<'_>, status: &str, expression: &str, kind: &str) {
    let claim = Claim::read(expression);
    let stated: Vec<Stated> =
        root.get("values").expect("values").as_array().expect("a list").map(Stated::read).collect();
    let undefined = root.get("undefined").is_some();
    assert_eq!(stated.len() == claim.sides.len(), !undefined || stated.len() == claim.sides.len(), "{expression}");
    let point = BTreeMap::new();
    for (side, stated) in claim.sides.iter().zip(&stated) {
        for base in [10.0, std::f64::consts::E] {
            let value = evaluate(side, &point, base);
            match (stated, value) {
                (Stated::Nothing, None) => {}
                // Divided by a zero that floating point numbers miss.
                (Stated::Nothing, Some(value)) => assert!(value.to_f64().abs() > 1e14, "{side} has a value"),
                (Stated::Exact(stated), Some(Number::Exact(value))) => assert_eq!(*stated, value, "{side}"),
                (Stated::Exact(stated), Some(Number::Float(value))) => close(stated.to_f64(), value, side),
                (Stated::Between(low, high, _), Some(value)) => {
                    assert!(low.minus(high).0.is_negative() || low == high, "{side}: bounds in the wrong order");
                    let (value, low, high) = (value.to_f64(), low.to_f64(), high.to_f64());
                    let slack = 1e-9 * (1.0 + value.abs());
                    assert!(low - slack <= value && value <= high + slack, "{side}: {value} is not in {low}..{high}");
                }
                (Stated::Exact(_) | Stated::Between(..), None) => panic!("{side} has no value"),
            }
        }
    }
    assert_eq!(kind == "interval", stated.iter().any(|stated| matches!(stated, Stated::Between(..))), "{expression}");
    if undefined {
        assert_eq!(status, "FAILED");
        assert!(matches!(stated.last(), Some(Stated::Nothing)));
        return;
    }
    let same: Vec<usize> = root
        .get("same_form")
        .map(|list| list.as_array().expect("a list").map(|number| number.source().parse().expect("a number")).collect())
        .unwrap_or_default();
    let holds = |index: usize| {
        if same.contains(&index) {
            // Equal up to what a floating point number shows.
            let float = |side: &String| evaluate(side, &point, 10.0).expect("a value").to_f64();
            close(float(&claim.sides[index]), float(&claim.sides[index + 1]), expression);
            return true;
        }
        let is_last = index + 1 == claim.relations.len();
        let rounding = claim.rounding.filter(|_| is_last);
        let texts = (claim.sides[index].as_str(), claim.sides[index + 1].as_str());
        relation_holds(&claim.relations[index], &stated[index], &stated[index + 1], rounding, texts)
    };
    let all = (0..claim.relations.len()).all(holds);
    assert_eq!(all, status == "VERIFIED", "{expression}: {status}");
}

/// Whether a relation follows from what is stated about both sides; panics if it does not follow and its contrary
/// does not either.
fn relation_holds(
    relation: &str,
    left: &Stated,
    right: &Stated,
    rounding: Option<(u32, bool)>,
    texts: (&str, &str),
) -> bool {
    let (low, high) = left.bounds();
    let (other_low, other_high) = right.bounds();
    if let Some((digits, figures)) = rounding {
        let rounds = |value: &Fraction| {
            let places = if figures { i64::from(digits) - 1 - value.leading_place() } else { i64::from(digits) };
            value.rounded(places).contains(&other_low)
        };
        assert_eq!(rounds(&low), rounds(&high), "the bounds do not decide");
        return rounds(&low);
    }
    if relation == "~=" {
        let fits = |value: (&Fraction, &Fraction), digits: &str, stated: &Fraction| {
            let Some(places) = written_places(digits) else { return false };
            let (one, other) = (value.0.rounded(places).contains(stated), value.1.rounded(places).contains(stated));
            assert_eq!(one, other, "the bounds do not decide");
            one
        };
        return fits((&low, &high), texts.1, &other_low) || fits((&other_low, &other_high), texts.0, &low);
    }
    if let (Stated::Between(_, _, Some(form)), Stated::Between(_, _, Some(other))) = (left, right)
        && form == other
    {
        return matches!(relation, "=" | "<=" | ">=");
    }
    // 1 where the left side is larger, -1 where it is smaller, 0 where both are the same number.
    let order = if high.less(&other_low) {
        -1
    } else if other_high.less(&low) {
        1
    } else {
        assert!(low == high && other_low == other_high && low == other_low, "the bounds do not decide");
        0
    };
    match relation {
        "=" => order == 0,
        "!=" => order != 0,
        "<" => order < 0,
        "<=" => order <= 0,
        ">" => order > 0,
        ">=" => order >= 0,
        other => panic!("relation {other}"),
    }
}

fn identity(root: Value<'_>, status: &str, expression: &str) {
    let claim = Claim::read(expression);
    let mut names: Vec<String> = claim.sides.iter().flat_map(|side| unknowns(side)).collect();
    names.sort();
    names.dedup();
    if let Some(counterexample) = root.get("counterexample") {
        assert_eq!(status, "FAILED");
        let point = assignment(counterexample);
        let index: usize = root.get("relation").expect("relation").source().parse().expect("a number");
        let stated: Vec<Stated> =
            root.get("values").expect("values").as_array().expect("a list").map(Stated::read).collect();
        let values: Vec<f64> = claim.sides[index..=index + 1]
            .iter()
            .map(|side| evaluate(side, &point, 10.0).expect("a value").to_f64())
            .collect();
        for (stated, value) in stated.iter().zip(&values) {
            let (low, high) = stated.bounds();
            let slack = 1e-9 * (1.0 + value.abs());
            assert!(low.to_f64() - slack <= *value && *value <= high.to_f64() + slack, "{expression}");
        }
        assert!(!relation_holds(&claim.relations[index], &stated[0], &stated[1], None, ("", "")), "{expression}");
        return;
    }
    // At points that the engine did not choose.
    let mut values = 0;
    for number in 1..30_i64 {
        let coordinate = |place: usize| {
            let place = i64::try_from(place).expect("few");
            Fraction::of((number * 37 + place * 101) % 61 - 20, (number * 7 + place * 3) % 9 + 1)
        };
        let point = names.iter().enumerate().map(|(place, name)| (name.clone(), coordinate(place))).collect();
        let sides: Option<Vec<Number>> = claim.sides.iter().map(|side| evaluate(side, &point, 10.0)).collect();
        let Some(sides) = sides else { continue };
        values += 1;
        for (pair, relation) in sides.windows(2).zip(&claim.relations) {
            match (&pair[0], &pair[1]) {
                (Number::Exact(left), Number::Exact(right)) => {
                    let exact = |value: &Fraction| Stated::Exact(value.clone());
                    assert!(relation_holds(relation, &exact(left), &exact(right), None, ("", "")), "{expression}");
                }
                (left, right) if relation == "=" => close(left.to_f64(), right.to_f64(), expression),
                (_, _) => {}
            }
        }
    }
    if root.get("undefined").is_some() {
        assert_eq!((status, values), ("FAILED", 0), "{expression}");
    } else {
        assert_eq!(status, "VERIFIED");
        assert!(values > 0, "{expression} has no value anywhere");
    }
}

fn system(root: Value<'_>, status: &str, expression: &str) {
    let (premises, conclusions) = expression.split_once(" => ").expect("an arrow");
    let claims = |text: &str| text.split("; ").map(Claim::read).collect::<Vec<_>>();
    let (premises, conclusions) = (claims(premises), claims(conclusions));
    let mut names: Vec<String> = premises
        .iter()
        .chain(&conclusions)
        .flat_map(|claim| claim.sides.iter().flat_map(|side| unknowns(side)))
        .collect();
    names.sort();
    names.dedup();
    let rows: Vec<Vec<Fraction>> = premises
        .iter()
        .flat_map(|claim| linear_rows(claim, &names).unwrap_or_else(|| panic!("{expression} is not linear")))
        .collect();
    let without = |rows: &[Vec<Fraction>]| rows.iter().map(|row| row[..names.len()].to_vec()).collect::<Vec<_>>();
    let (rank, rank_with) = (rank(without(&rows)), rank(rows.clone()));
    let solution = root.get("solution").expect("solution");
    if solution.source() == "null" {
        assert!(rank < rank_with, "{expression} has a solution");
        assert_eq!(status, "FAILED");
        return;
    }
    assert_eq!(rank, rank_with, "{expression} has no solution");
    let solution = assignment(solution);
    for (place, name) in names.iter().enumerate() {
        // `name = value` adds nothing to the equations exactly if they determine it.
        let mut row = vec![Fraction::of(0, 1); names.len() + 1];
        row[place] = Fraction::of(1, 1);
        let mut more = without(&rows);
        more.push(row[..names.len()].to_vec());
        assert_eq!(self::rank(more) == rank, solution.contains_key(name), "{expression}: {name}");
        if let Some(value) = solution.get(name) {
            row[names.len()] = value.negated();
            let mut more = rows.clone();
            more.push(row);
            assert_eq!(self::rank(more), rank_with, "{expression}: {name} is not {value:?}");
        }
    }
    let follows = conclusions.iter().all(|claim| {
        if claim.sides.iter().flat_map(|side| unknowns(side)).all(|name| solution.contains_key(&name)) {
            let sides: Vec<Number> =
                claim.sides.iter().map(|side| evaluate(side, &solution, 10.0).expect("a value")).collect();
            return sides.windows(2).enumerate().all(|(index, pair)| {
                let (Number::Exact(left), Number::Exact(right)) = (&pair[0], &pair[1]) else { panic!("{expression}") };
                let is_last = index + 2 == sides.len();
                let (left, right) = (Stated::Exact(left.clone()), Stated::Exact(right.clone()));
                let texts = (claim.sides[index].as_str(), claim.sides[index + 1].as_str());
                relation_holds(&claim.relations[index], &left, &right, claim.rounding.filter(|_| is_last), texts)
            });
        }
        let mut more = rows.clone();
        more.extend(linear_rows(claim, &names).expect("linear"));
        self::rank(more) == rank_with
    });
    assert_eq!(follows, status == "VERIFIED", "{expression}");
}

/// The coefficients of a linear claim, found by evaluating it.
fn linear_rows(claim: &Claim, names: &[String]) -> Option<Vec<Vec<Fraction>>> {
    let at = |chosen: Option<&String>, factor: i64| -> Option<Vec<Fraction>> {
        let value = |name: &String| Fraction::of(if Some(name) == chosen { factor } else { 0 }, 1);
        let point = names.iter().map(|name| (name.clone(), value(name))).collect();
        let sides: Option<Vec<Number>> = claim.sides.iter().map(|side| evaluate(side, &point, 10.0)).collect();
        sides?
            .windows(2)
            .map(|pair| match (&pair[0], &pair[1]) {
                (Number::Exact(left), Number::Exact(right)) => Some(left.minus(right)),
                (_, _) => None,
            })
            .collect()
    };
    let origin = at(None, 0)?;
    let mut rows: Vec<Vec<Fraction>> = origin.iter().map(|_| Vec::new()).collect();
    for name in names {
        let (one, five) = (at(Some(name), 1)?, at(Some(name), 5)?);
        for (index, row) in rows.iter_mut().enumerate() {
            let slope = one[index].minus(&origin[index]);
            assert_eq!(five[index].minus(&origin[index]), slope.times(&Fraction::of(5, 1)), "linear");
            row.push(slope);
        }
    }
    for (row, number) in rows.iter_mut().zip(origin) {
        row.push(number);
    }
    Some(rows)
}

fn rank(mut rows: Vec<Vec<Fraction>>) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let mut rank = 0;
    for column in 0..columns {
        let Some(pivot) = (rank..rows.len()).find(|row| !rows[*row][column].0.is_zero()) else { continue };
        rows.swap(rank, pivot);
        let pivot = rows[rank].clone();
        for row in rows.iter_mut().skip(rank + 1) {
            let factor = row[column].over(&pivot[column]);
            for (value, other) in row.iter_mut().zip(&pivot) {
                *value = value.minus(&other.times(&factor));
            }
        }
        rank += 1;
    }
    rank
}

fn assignment(value: Value<'_>) -> BTreeMap<String, Fraction> {
    let members = value.as_object().expect("an object");
    members
        .map(|(name, value)| (name.text().to_owned(), Fraction::read(value.as_str().expect("text").text())))
        .collect()
}

/// What a certificate says about a side.
enum Stated {
    Exact(Fraction),
    Between(Fraction, Fraction, Option<String>),
    Nothing,
}

impl Stated {
    fn read(value: Value<'_>) -> Stated {
        if let Some(text) = value.as_str() {
            return Stated::Exact(Fraction::read(text.text()));
        }
        let Some(parts) = value.as_array() else { return Stated::Nothing };
        let parts: Vec<String> = parts.map(|part| part.as_str().expect("text").text().to_owned()).collect();
        Stated::Between(Fraction::read(&parts[0]), Fraction::read(&parts[1]), parts.get(2).cloned())
    }

    fn bounds(&self) -> (Fraction, Fraction) {
        match self {
            Stated::Exact(value) => (value.clone(), value.clone()),
            Stated::Between(low, high, _) => (low.clone(), high.clone()),
            Stated::Nothing => panic!("no value"),
        }
    }
}

/// Normal text, taken apart at its relations.
struct Claim {
    sides: Vec<String>,
    relations: Vec<String>,
    /// Digits, and whether they are significant figures.
    rounding: Option<(u32, bool)>,
}

impl Claim {
    fn read(text: &str) -> Claim {
        let (text, rounding) = match text.rsplit_once(" to ") {
            None => (text, None),
            Some((text, rounding)) => {
                let (digits, unit) = rounding.split_once(' ').expect("digits and unit");
                (text, Some((digits.parse().expect("digits"), unit == "sf")))
            }
        };
        let mut claim = Claim { sides: vec![String::new()], relations: Vec::new(), rounding };
        for word in text.split(' ') {
            if matches!(word, "=" | "!=" | "<" | "<=" | ">" | ">=" | "~=") {
                claim.relations.push(word.to_owned());
                claim.sides.push(String::new());
            } else {
                let side = claim.sides.last_mut().expect("a side");
                side.push_str(word);
                side.push(' ');
            }
        }
        claim
    }
}

fn unknowns(side: &str) -> Vec<String> {
    tokens(side)
        .into_iter()
        .filter(|token| token.starts_with(|first: char| first.is_ascii_alphabetic()))
        .filter(|token| (token.len() == 1 && token != "e") || token.contains('_'))
        .collect()
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < characters.len() {
        let start = at;
        let first = characters[at];
        if first == ' ' {
            at += 1;
            continue;
        }
        if first.is_ascii_digit() {
            while at < characters.len() && (characters[at].is_ascii_digit() || characters[at] == '.') {
                at += 1;
            }
            if at < characters.len() && characters[at] == 'e' {
                at += 2;
                while at < characters.len() && characters[at].is_ascii_digit() {
                    at += 1;
                }
            }
        } else if first.is_ascii_alphabetic() {
            while at < characters.len() && (characters[at].is_ascii_alphanumeric() || characters[at] == '_') {
                at += 1;
            }
        } else {
            at += if characters[at..].starts_with(&['*', '*']) || characters[at..].starts_with(&['/', '/']) {
                2
            } else {
                1
            };
        }
        tokens.push(characters[start..at].iter().collect());
    }
    tokens
}

/// The value of a side; `None` where it has none.
fn evaluate(side: &str, point: &BTreeMap<String, Fraction>, base: f64) -> Option<Number> {
    let mut reader = Reader { tokens: tokens(side), at: 0, point, base };
    let value = reader.sum()?;
    assert_eq!(reader.at, reader.tokens.len(), "{side} is not normal text");
    Some(value)
}

struct Reader<'p> {
    tokens: Vec<String>,
    at: usize,
    point: &'p BTreeMap<String, Fraction>,
    base: f64,
}

impl Reader<'_> {
    fn take(&mut self, wanted: &[&str]) -> Option<String> {
        let token = self.tokens.get(self.at).filter(|token| wanted.contains(&token.as_str()))?.clone();
        self.at += 1;
        Some(token)
    }

    fn sum(&mut self) -> Option<Number> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&["+", "-"]) {
            let right = self.product()?;
            value = if sign == "+" { value.plus(&right) } else { value.plus(&right.negated()) };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<Number> {
        let mut value = self.signed()?;
        while let Some(sign) = self.take(&["*", "/", "//", "%"]) {
            let right = self.signed()?;
            value = match sign.as_str() {
                "*" => value.times(&right),
                "/" => value.over(&right)?,
                "//" => value.over(&right)?.floor(),
                _ => value.plus(&value.over(&right)?.floor().times(&right).negated()),
            };
        }
        Some(value)
    }

    fn signed(&mut self) -> Option<Number> {
        if self.take(&["-"]).is_some() {
            return self.signed().map(|value| value.negated());
        }
        let base = self.atom()?;
        if self.take(&["**"]).is_some() {
            let exponent = self.signed()?;
            return base.power(&exponent);
        }
        Some(base)
    }

    fn atom(&mut self) -> Option<Number> {
        let token = self.tokens[self.at].clone();
        self.at += 1;
        if token == "(" {
            let value = self.sum()?;
            self.take(&[")"]).expect("a closing parenthesis");
            return Some(value);
        }
        if token.starts_with(|first: char| first.is_ascii_digit()) {
            return Some(Number::Exact(Fraction::read(&token)));
        }
        if self.take(&["("]).is_some() {
            let mut operands = vec![self.sum()?];
            while self.take(&[","]).is_some() {
                operands.push(self.sum()?);
            }
            self.take(&[")"]).expect("a closing parenthesis");
            return call(&token, &operands, self.base);
        }
        match token.as_str() {
            "pi" => Some(Number::Float(std::f64::consts::PI)),
            "e" => Some(Number::Float(std::f64::consts::E)),
            name => Some(Number::Exact(self.point.get(name).expect("an unknown").clone())),
        }
    }
}

fn call(name: &str, operands: &[Number], base: f64) -> Option<Number> {
    let first = operands[0].clone();
    let float = first.to_f64();
    let zero = Number::Exact(Fraction::of(0, 1));
    let some = |value: f64| Some(Number::Float(value));
    let sorted = || {
        let mut sorted = operands.to_vec();
        sorted.sort_by(|left, right| left.to_f64().total_cmp(&right.to_f64()));
        sorted
    };
    let integers = || operands.iter().map(|operand| operand.integer().expect("an integer").abs());
    match name {
        "sqrt" if float < 0.0 => None,
        "sqrt" => match &first {
            Number::Exact(Fraction(numer, denom)) if is_square(numer) && is_square(denom) => {
                Some(Number::Exact(Fraction(numer.sqrt(), denom.sqrt())))
            }
            Number::Exact(_) | Number::Float(_) => some(float.sqrt()),
        },
        "cbrt" => some(float.cbrt()),
        "abs" if float < 0.0 => Some(first.negated()),
        "abs" => Some(first),
        "min" => sorted().into_iter().next(),
        "max" => sorted().into_iter().last(),
        "sum" => Some(operands.iter().fold(zero, |sum, operand| sum.plus(operand))),
        "mean" => {
            let count = Number::Exact(Fraction::of(i64::try_from(operands.len()).expect("few"), 1));
            operands.iter().fold(zero, |sum, operand| sum.plus(operand)).over(&count)
        }
        "median" => {
            let sorted = sorted();
            let half = sorted.len() / 2;
            if sorted.len() % 2 == 1 {
                return Some(sorted[half].clone());
            }
            sorted[half - 1].plus(&sorted[half]).over(&Number::Exact(Fraction::of(2, 1)))
        }
        "floor" => Some(first.floor()),
        "ceil" => Some(first.negated().floor().negated()),
        "round" => {
            let places = operands.get(1).map_or(0, |places| places.integer().expect("digits").to_i64().expect("few"));
            let Number::Exact(value) = first else {
                let scale = 10_f64.powi(i32::try_from(places).expect("few"));
                return some((float * scale).round() / scale);
            };
            value.rounded(places).into_iter().next().map(Number::Exact)
        }
        "factorial" => {
            let number = first.integer().filter(|number| !number.is_negative())?.to_u64().expect("small");
            Some(Number::Exact(Fraction((1..=number).map(BigInt::from).product(), BigInt::one())))
        }
        "gcd" => {
            Some(Number::Exact(Fraction(integers().fold(BigInt::zero(), |one, two| one.gcd(&two)), BigInt::one())))
        }
        "lcm" => Some(Number::Exact(Fraction(integers().fold(BigInt::one(), |one, two| one.lcm(&two)), BigInt::one()))),
        "mod" => Some(first.plus(&first.over(&operands[1])?.floor().times(&operands[1]).negated())),
        "exp" => some(float.exp()),
        "ln" | "log" | "log10" | "log2" if float <= 0.0 => None,
        "ln" => some(float.ln()),
        "log10" => some(float.log10()),
        "log2" => some(float.log2()),
        "log" => match operands.get(1).map(Number::to_f64) {
            None => some(float.log(base)),
            Some(base) if base <= 0.0 || (base - 1.0).abs() < 1e-12 => None,
            Some(base) => some(float.log(base)),
        },
        "sin" => some(float.sin()),
        "cos" => some(float.cos()),
        "tan" if float.cos().abs() < 1e-12 => None,
        "tan" => some(float.tan()),
        other => panic!("function {other}"),
    }
}

fn is_square(number: &BigInt) -> bool {
    number.sqrt().pow(2) == *number
}

/// A number: a fraction as long as it is one.
#[derive(Clone)]
enum Number {
    Exact(Fraction),
    Float(f64),
}

impl Number {
    fn to_f64(&self) -> f64 {
        match self {
            Number::Exact(value) => value.to_f64(),
            Number::Float(value) => *value,
        }
    }

    fn integer(&self) -> Option<BigInt> {
        match self {
            Number::Exact(Fraction(numer, denom)) if denom.is_one() => Some(numer.clone()),
            Number::Exact(_) | Number::Float(_) => None,
        }
    }

    fn negated(&self) -> Number {
        match self {
            Number::Exact(value) => Number::Exact(value.negated()),
            Number::Float(value) => Number::Float(-value),
        }
    }

    fn plus(&self, other: &Number) -> Number {
        match (self, other) {
            (Number::Exact(left), Number::Exact(right)) => Number::Exact(left.minus(&right.negated())),
            (left, right) => Number::Float(left.to_f64() + right.to_f64()),
        }
    }

    fn times(&self, other: &Number) -> Number {
        match (self, other) {
            (Number::Exact(left), Number::Exact(right)) => Number::Exact(left.times(right)),
            (left, right) => Number::Float(left.to_f64() * right.to_f64()),
        }
    }

    fn over(&self, other: &Number) -> Option<Number> {
        match (self, other) {
            (_, Number::Exact(Fraction(zero, _))) if zero.is_zero() => None,
            (Number::Exact(left), Number::Exact(right)) => Some(Number::Exact(left.over(right))),
            (left, right) => Some(Number::Float(left.to_f64() / right.to_f64())),
        }
    }

    fn floor(&self) -> Number {
        match self {
            Number::Exact(Fraction(numer, denom)) => Number::Exact(Fraction(numer.div_floor(denom), BigInt::one())),
            Number::Float(value) => Number::Float(value.floor()),
        }
    }

    fn power(&self, exponent: &Number) -> Option<Number> {
        let Number::Exact(base) = self else { return Some(Number::Float(self.to_f64().powf(exponent.to_f64()))) };
        let Some(whole) = exponent.integer() else {
            if base.0.is_zero() {
                return (exponent.to_f64() > 0.0).then(|| self.clone());
            }
            return Some(Number::Float(self.to_f64().powf(exponent.to_f64())));
        };
        if whole.is_negative() && base.0.is_zero() {
            return None;
        }
        let power = |number: &BigInt| match number.bits() {
            0 | 1 if whole.is_even() => {
                if whole.is_zero() {
                    BigInt::one()
                } else {
                    number.abs()
                }
            }
            0 | 1 => number.clone(),
            _ => number.pow(whole.abs().to_u32().expect("a small exponent")),
        };
        let raised = Fraction(power(&base.0), power(&base.1));
        Some(Number::Exact(if whole.is_negative() { Fraction::of(1, 1).over(&raised) } else { raised }))
    }
}

/// Numerator and denominator in lowest terms, the second one positive.
#[derive(Debug, Clone, PartialEq)]
struct Fraction(BigInt, BigInt);

impl Fraction {
    fn of(numer: i64, denom: i64) -> Fraction {
        Fraction(BigInt::from(numer), BigInt::from(denom)).reduced()
    }

    fn reduced(self) -> Fraction {
        let common = self.0.gcd(&self.1) * self.1.signum();
        Fraction(self.0 / &common, self.1 / common)
    }

    /// `n`, `n/d`, `1.5`, `15e-1`.
    fn read(text: &str) -> Fraction {
        if let Some((numer, denom)) = text.split_once('/') {
            return Fraction(numer.parse().expect("digits"), denom.parse().expect("digits"));
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: BigInt = format!("{whole}{fraction}").parse().expect("digits");
        let shift = exponent.parse::<i32>().expect("an exponent") - i32::try_from(fraction.len()).expect("short");
        let scale = BigInt::from(10).pow(shift.unsigned_abs());
        if shift < 0 { Fraction(digits, scale).reduced() } else { Fraction(digits * scale, BigInt::one()) }
    }

    fn negated(&self) -> Fraction {
        Fraction(-&self.0, self.1.clone())
    }

    fn minus(&self, other: &Fraction) -> Fraction {
        Fraction(&self.0 * &other.1 - &other.0 * &self.1, &self.1 * &other.1).reduced()
    }

    fn times(&self, other: &Fraction) -> Fraction {
        Fraction(&self.0 * &other.0, &self.1 * &other.1).reduced()
    }

    fn over(&self, other: &Fraction) -> Fraction {
        Fraction(&self.0 * &other.1, &self.1 * &other.0).reduced()
    }

    fn less(&self, other: &Fraction) -> bool {
        self.minus(other).0.is_negative()
    }

    /// Both may be far beyond the range of a floating point number.
    fn to_f64(&self) -> f64 {
        let shift = self.1.bits().max(self.0.bits()).saturating_sub(900);
        let scaled = (self.0.clone() >> shift, self.1.clone() >> shift);
        if scaled.1.is_zero() {
            return if self.0.is_negative() { f64::MIN } else { f64::MAX };
        }
        scaled.0.to_f64().expect("in range") / scaled.1.to_f64().expect("in range")
    }

    /// What it may be rounded to: away from zero and to even.
    fn rounded(&self, places: i64) -> Vec<Fraction> {
        let ten = BigInt::from(10).pow(u32::try_from(places.unsigned_abs()).expect("few"));
        let scale = if places < 0 { Fraction(BigInt::one(), ten) } else { Fraction(ten, BigInt::one()) };
        let scaled = self.times(&scale);
        let below = scaled.0.div_floor(&scaled.1);
        let rest = scaled.minus(&Fraction(below.clone(), BigInt::one()));
        let half = Fraction::of(1, 2);
        let back = |number: BigInt| Fraction(number, BigInt::one()).over(&scale);
        if rest.less(&half) {
            vec![back(below)]
        } else if half.less(&rest) {
            vec![back(below + 1)]
        } else {
            let above: BigInt = &below + 1;
            let even = if below.is_even() { below.clone() } else { above.clone() };
            let away = if self.0.is_negative() { below } else { above };
            vec![back(away), back(even)]
        }
    }

    fn leading_place(&self) -> i64 {
        if self.0.is_zero() {
            return 0;
        }
        let mut place = 0;
        let size = Fraction(self.0.abs(), self.1.clone());
        let power = |place: i64| {
            let ten = BigInt::from(10).pow(u32::try_from(place.unsigned_abs()).expect("few"));
            if place < 0 { Fraction(BigInt::one(), ten) } else { Fraction(ten, BigInt::one()) }
        };
        while !size.less(&power(place + 1)) {
            place += 1;
        }
        while size.less(&power(place)) {
            place -= 1;
        }
        place
    }
}

/// How many places a side is written with, if it is a number: `3.14`, `-2`, `33e-2` from `33%`.
fn written_places(side: &str) -> Option<i64> {
    let side = side.trim().trim_start_matches('-');
    let (mantissa, exponent) = side.split_once('e').unwrap_or((side, "0"));
    if !mantissa.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some(i64::try_from(fraction).ok()? - exponent.parse::<i64>().ok()?)
}

fn close(left: f64, right: f64, text: &str) {
    assert!((left - right).abs() <= 1e-9 * (1.0 + left.abs().max(right.abs())), "{text}: {left} is not {right}");
}

#[test]
#[should_panic(expected = "1 / 3")]
fn a_certificate_with_a_wrong_value_is_seen() {
    recheck(r#"{"expression":"1 / 3","kind":"arithmetic","status":"VERIFIED","values":["1/2"]}"#);
}

#[test]
#[should_panic(expected = "1 = 2: VERIFIED")]
fn a_certificate_with_a_wrong_status_is_seen() {
    recheck(r#"{"expression":"1 = 2","kind":"arithmetic","status":"VERIFIED","values":["1","2"]}"#);
}

#[test]
#[should_panic(expected = "the bounds do not decide")]
fn a_certificate_with_bounds_that_are_too_wide_is_seen() {
    recheck(r#"{"expression":"sqrt(2) < 1.5","kind":"interval","status":"VERIFIED","values":[["1","2"],"3/2"]}"#);
}

#[test]
#[should_panic(expected = "x ** 2 = x")]
fn a_certificate_of_a_false_identity_is_seen() {
    recheck(r#"{"expression":"x ** 2 = x","kind":"identity","status":"VERIFIED","where":"everywhere"}"#);
}

#[test]
#[should_panic(expected = "is not")]
fn a_certificate_with_a_wrong_solution_is_seen() {
    recheck(r#"{"expression":"2 * x = 4 => x = 3","kind":"system","solution":{"x":"3"},"status":"VERIFIED"}"#);
}
