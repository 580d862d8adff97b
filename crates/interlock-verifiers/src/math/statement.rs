//! Tokens to statements: claims, how far a value is rounded, and systems of equations with what follows from them.
//!
//! ```text
//! statement = claim [ rounding ] | claims implies claims
//! claims    = claim { ( "," | ";" | "and" ) claim }
//! claim     = sum { relation sum }
//! rounding  = [ "rounded" ] "to" digits ( "dp" | "decimal places" | "sf" | "significant figures" )
//! implies   = "=>" | "->" | "therefore" | …
//! ```

use super::claim::{Claim, Link, Rounding, Statement, StepKind, System};
use super::letters::Letters;
use super::lex::{Relation, Token, TokenKind, lex};
use super::limits::{ROUNDING_DIGITS_MAX, STATEMENTS_MAX};
use super::no_value::{NoValue, Reason, Text};
use super::parse::Parser;
use super::vocabulary::implies;

/// Reads a query and, where one is given, the value that is expected of it.
pub(super) fn parse<'t>(query: &'t str, expected: Option<&'t str>) -> Result<Statement<'t>, NoValue> {
    let query_tokens = lex(Text::Query, query)?;
    let expected_tokens = expected.map(|expected| lex(Text::Expected, expected)).transpose()?;
    let letters = Letters::of(&[&query_tokens, expected_tokens.as_deref().unwrap_or(&[])]);
    let query_tokens = letters.split(query_tokens);
    let statement = read(Text::Query, &query_tokens, query.len(), &letters)?;
    let (Some(expected), Some(tokens)) = (expected, expected_tokens) else { return finish(statement, None) };
    let tokens = letters.split(tokens);
    let value = read(Text::Expected, &tokens, expected.len(), &letters)?;
    finish(statement, Some(value))
}

/// What a text says, before it is known whether something is expected of it.
struct Read<'t> {
    claims: Vec<Claim<'t>>,
    conclusions: Vec<Claim<'t>>,
    implies: bool,
    text: Text,
    span: core::ops::Range<usize>,
}

fn read<'t>(text: Text, tokens: &[Token<'t>], end: usize, letters: &Letters<'t>) -> Result<Read<'t>, NoValue> {
    let mut parser = Parser { text, tokens, next: 0, end, depth: 0, letters, steps: Vec::new() };
    let start = parser.peek().map_or(end, |token| token.at);
    let claims = parser.claims()?;
    let span = start..parser.end_before();
    let follows = parser.takes_implies();
    let conclusions = if follows { parser.claims()? } else { Vec::new() };
    if parser.peek().is_some() {
        return Err(parser.refuse_here());
    }
    Ok(Read { claims, conclusions, implies: follows, text, span })
}

/// Puts together what the query says and what is expected of it.
fn finish<'t>(query: Read<'t>, expected: Option<Read<'t>>) -> Result<Statement<'t>, NoValue> {
    let refuse = |text, at| Err(NoValue { reason: Reason::NotUnderstood, text, at });
    let Some(expected) = expected else {
        if query.implies {
            return system(query.claims, query.conclusions, query.span);
        }
        let end = query.span.end;
        let mut claims = query.claims.into_iter();
        return match (claims.next(), claims.next()) {
            (Some(claim), None) => Ok(Statement::Claim(claim)),
            (Some(_), Some(second)) => refuse(query.text, second.first.span.start),
            (None, _) => refuse(query.text, end),
        };
    };
    let start = expected.span.start;
    if query.implies || expected.implies {
        return refuse(Text::Expected, start);
    }
    // Equations with unknowns, and what they should come to.
    let is_equation = |claim: &Claim<'_>| !claim.links.is_empty() && claim.only_equates();
    let has_unknown = |claim: &Claim<'_>| claim.has(|kind| matches!(kind, StepKind::Variable(_)));
    let states = expected.claims.iter().all(is_equation);
    if states && query.claims.iter().all(is_equation) && query.claims.iter().any(has_unknown) {
        return system(query.claims, expected.claims, query.span);
    }
    let mut claims = query.claims.into_iter();
    let mut values = expected.claims.into_iter();
    match (claims.next(), claims.next(), values.next(), values.next()) {
        (Some(mut claim), None, Some(value), None) => {
            // The expected value is one value, and only what has a value can be equal to it: `2 < 3` has none.
            if let Some(link) = value.links.first() {
                return refuse(Text::Expected, link.at.unwrap_or_default());
            }
            if !claim.only_equates() || claim.rounding.is_some() || (has_unknown(&claim) && !claim.links.is_empty()) {
                return refuse(Text::Expected, start);
            }
            claim.rounding = value.rounding;
            claim.links.push(Link { relation: Relation::Equal, at: None, side: value.first });
            Ok(Statement::Claim(claim))
        }
        _ => refuse(Text::Expected, start),
    }
}

/// Equations and what follows. Between them, the comma of `2x = 4,600y = 1200` may separate two.
fn system<'t>(
    premises: Vec<Claim<'t>>,
    conclusions: Vec<Claim<'t>>,
    span: core::ops::Range<usize>,
) -> Result<Statement<'t>, NoValue> {
    let is_grouped = |kind: &StepKind<'_>| matches!(kind, StepKind::Number(number) if number.is_grouped());
    if premises.iter().chain(&conclusions).any(|claim| claim.has(is_grouped)) {
        return Err(NoValue { reason: Reason::NotUnderstood, text: Text::Query, at: span.start });
    }
    Ok(Statement::System(System { premises, conclusions, span }))
}

impl<'t> Parser<'_, 't> {
    fn claims(&mut self) -> Result<Vec<Claim<'t>>, NoValue> {
        let mut claims = vec![self.claim()?];
        while self.takes_separator() {
            if claims.len() == STATEMENTS_MAX {
                return Err(self.refuse_here());
            }
            claims.push(self.claim()?);
        }
        Ok(claims)
    }

    fn claim(&mut self) -> Result<Claim<'t>, NoValue> {
        let first = self.expression()?;
        let mut links = Vec::new();
        while let Some(Token { kind: TokenKind::Relation(relation), at, end }) = self.peek() {
            let touches = *at == self.end_before();
            // `5!=100` may be meant as a factorial, and then it is false; `5 != 100` cannot.
            if *relation == Relation::NotEqual && touches && end.saturating_sub(*at) == "!=".len() {
                return Err(self.refuse_here());
            }
            self.advance();
            links.push(Link { relation: *relation, at: Some(*at), side: self.expression()? });
        }
        let at = self.peek().map_or(self.end, |token| token.at);
        let rounding = self.rounding()?;
        let mut claim = Claim { first, links, rounding };
        claim.count_places_of_percentages().map_err(|reason| NoValue { reason, text: self.text, at })?;
        Ok(claim)
    }

    /// `to 2 dp`, `to 3 significant figures`, `rounded to 1 decimal place`.
    fn rounding(&mut self) -> Result<Option<Rounding>, NoValue> {
        let start = self.next;
        if self.takes_word("rounded") {
            self.advance();
        }
        if !self.takes_word("to") {
            return if self.next == start { Ok(None) } else { Err(self.refuse_here()) };
        }
        self.advance();
        let Some(Token { kind: TokenKind::Number(digits), .. }) = self.peek() else { return Err(self.refuse_here()) };
        let digits = digits.small().and_then(|digits| u32::try_from(digits).ok());
        let Some(digits) = digits.filter(|digits| *digits <= ROUNDING_DIGITS_MAX) else {
            return Err(self.refuse_here());
        };
        self.advance();
        const PLACES: [&[&str]; 4] = [&["dp"], &["decimal", "places"], &["decimal", "place"], &["decimals"]];
        #[rustfmt::skip]
        const FIGURES: [&[&str]; 5] = [
            &["sf"], &["significant", "figures"], &["significant", "figure"],
            &["significant", "digits"], &["sig", "figs"],
        ];
        let rounding = if PLACES.iter().any(|phrase| self.takes_phrase(phrase)) {
            Rounding::DecimalPlaces(digits)
        } else if digits > 0 && FIGURES.iter().any(|phrase| self.takes_phrase(phrase)) {
            Rounding::SignificantFigures(digits)
        } else {
            return Err(self.refuse_here());
        };
        Ok(Some(rounding))
    }

    fn takes_phrase(&mut self, words: &[&str]) -> bool {
        let start = self.next;
        for word in words {
            if !self.takes_word(word) {
                self.next = start;
                return false;
            }
            self.advance();
        }
        true
    }

    fn takes_separator(&mut self) -> bool {
        let separates = self.takes_word("and")
            || matches!(self.peek(), Some(Token { kind: TokenKind::Comma(_) | TokenKind::Semicolon, .. }));
        if separates {
            self.advance();
            // `x = 1, and y = 2`
            if self.takes_word("and") {
                self.advance();
            }
            // `2x = 4, therefore x = 2`
            return !self.implies_here();
        }
        false
    }

    fn takes_implies(&mut self) -> bool {
        let found = self.implies_here();
        if found {
            self.advance();
        }
        found
    }

    fn implies_here(&self) -> bool {
        match self.peek().map(|token| &token.kind) {
            Some(TokenKind::Implies) => true,
            Some(TokenKind::Word(word)) => implies(word),
            Some(_) | None => false,
        }
    }
}
