//! The math engine from outside: a table of claims, hostile texts, and what must hold of every outcome.

use interlock_verifiers::math::{DEPTH_MAX, TEXT_BYTES_MAX, TOKENS_MAX, verify};
use interlock_verifiers::{Outcome, Status};

use crate::math_recheck::recheck;

use Status::{Corrected, Failed, Uncertain, Verified};

/// The query, the expected value if any, the status, and then: the values of the sides for VERIFIED, the corrected text
/// for CORRECTED, the check that did not pass for FAILED and UNCERTAIN.
type Case = (&'static str, Option<&'static str>, Status, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // An expression alone.
    ("2+2",                          None,            Verified,  "4"),
    (" 2 + 3 * 4 ",                  None,            Verified,  "14"),
    ("(2 + 3) * 4",                  None,            Verified,  "20"),
    ("-5",                           None,            Verified,  "-5"),
    ("+5",                           None,            Verified,  "5"),
    ("--5",                          None,            Verified,  "5"),
    ("10 - 4 - 3",                   None,            Verified,  "3"),
    ("100 / 10 / 5",                 None,            Verified,  "2"),
    ("1/3",                          None,            Verified,  "1/3"),
    ("1/3 + 1/6",                    None,            Verified,  "1/2"),
    ("0.1 + 0.2",                    None,            Verified,  "3/10"),
    (".5 + .25",                     None,            Verified,  "3/4"),
    ("1e3",                          None,            Verified,  "1000"),
    ("1.5e-3",                       None,            Verified,  "3/2000"),
    ("1,000 + 1",                    None,            Verified,  "1001"),
    ("1,234,567.5 * 2",              None,            Verified,  "2469135"),
    ("2 × 3 · 4 ÷ 6 − 1",            None,            Verified,  "3"),
    ("17 // 5",                      None,            Verified,  "3"),
    ("-17 // 5",                     None,            Verified,  "-4"),
    ("17 % 5",                       None,            Verified,  "2"),
    ("-17 % 5",                      None,            Verified,  "3"),
    ("17 % -5",                      None,            Verified,  "-3"),
    ("20%",                          None,            Verified,  "1/5"),
    ("50% * 80",                     None,            Verified,  "40"),
    ("80 * 12.5%",                   None,            Verified,  "10"),
    ("20% + 5",                      None,            Verified,  "26/5"),
    ("2^10",                         None,            Verified,  "1024"),
    ("2**10",                        None,            Verified,  "1024"),
    ("2^3^2",                        None,            Verified,  "512"),
    ("-2^2",                         None,            Verified,  "-4"),
    ("(-2)^2",                       None,            Verified,  "4"),
    ("2^-2",                         None,            Verified,  "1/4"),
    ("2 ** -1 * 4",                  None,            Verified,  "2"),
    ("4^(1/2*2)",                    None,            Verified,  "4"),
    ("0^0",                          None,            Verified,  "1"),
    ("99999999999999999999 + 1",     None,            Verified,  "100000000000000000000"),
    ("0.1^20",                       None,            Verified,  "1/100000000000000000000"),
    // Equations.
    ("2 + 2 = 4",                    None,            Verified,  "4,4"),
    ("2+2==4",                       None,            Verified,  "4,4"),
    ("0.1 + 0.2 = 0.3",              None,            Verified,  "3/10,3/10"),
    ("1/4 = 25%",                    None,            Verified,  "1/4,1/4"),
    ("1/3 = 2/6 = 3/9",              None,            Verified,  "1/3,1/3,1/3"),
    ("1,000 = 1e3",                  None,            Verified,  "1000,1000"),
    ("2 + 2 = 5",                    None,            Corrected, "2 + 2 = 4"),
    ("  2+2=5  ",                    None,            Corrected, "2+2 = 4"),
    ("10 / 4 = 2",                   None,            Corrected, "10 / 4 = 2.5"),
    ("1/3 = 0.333",                  None,            Corrected, "1/3 = 1/3"),
    ("(1 + 2) × 3 = 7",              None,            Corrected, "(1 + 2) × 3 = 9"),
    ("-1/8 = 1",                     None,            Corrected, "-1/8 = -0.125"),
    ("1 + 1 = 2 = 3",                None,            Corrected, "1 + 1 = 2"),
    ("15% * 1,200 = 200",            None,            Corrected, "15% * 1,200 = 180"),
    ("2^64 = 18446744073709551615",  None,            Corrected, "2^64 = 18446744073709551616"),
    // Comparisons.
    ("1 < 2",                        None,            Verified,  "1,2"),
    ("2 <= 2",                       None,            Verified,  "2,2"),
    ("3 > 2",                        None,            Verified,  "3,2"),
    ("3 >= 3.0",                     None,            Verified,  "3,3"),
    ("3 != 4",                       None,            Verified,  "3,4"),
    ("3≠4",                          None,            Verified,  "3,4"),
    ("1 < 2 < 3",                    None,            Verified,  "1,2,3"),
    ("1 ≤ 2 = 2",                    None,            Verified,  "1,2,2"),
    ("1/3 > 0.333",                  None,            Verified,  "1/3,333/1000"),
    ("2^100 < 3^64",                 None,            Verified,  "1267650600228229401496703205376,3433683820292512484657849089281"),
    ("2 < 1",                        None,            Failed,    "value_matches"),
    ("2 != 2",                       None,            Failed,    "value_matches"),
    ("1 >= 2",                       None,            Failed,    "value_matches"),
    ("1 < 2 < 2",                    None,            Failed,    "value_matches"),
    ("1 < 2 = 3",                    None,            Failed,    "value_matches"),
    // With an expected value.
    ("2+2",                          Some("4"),       Verified,  "4,4"),
    ("2+2",                          Some(" 8/2 "),   Verified,  "4,4"),
    ("2+2 = 4",                      Some("4"),       Verified,  "4,4,4"),
    (" 2+2 ",                        Some("5"),       Corrected, "2+2 = 4"),
    ("7/2",                          Some("3"),       Corrected, "7/2 = 3.5"),
    ("2+2 = 4",                      Some("5"),       Corrected, "2+2 = 4"),
    ("2+2",                          Some(""),        Uncertain, "parsed"),
    ("2+2",                          Some("four"),    Uncertain, "parsed"),
    ("2+2",                          Some("4 = 4"),   Uncertain, "parsed"),
    ("2 < 3",                        Some("3"),       Uncertain, "parsed"),
    ("2+2",                          Some("1/0"),     Failed,    "no_division_by_zero"),
    // Division by zero.
    ("1/0",                          None,            Failed,    "no_division_by_zero"),
    ("1 // (2 - 2)",                 None,            Failed,    "no_division_by_zero"),
    ("5 % 0",                        None,            Failed,    "no_division_by_zero"),
    ("0^-1",                         None,            Failed,    "no_division_by_zero"),
    ("0 * (1/0)",                    None,            Failed,    "no_division_by_zero"),
    ("1/0 = 1/0",                    None,            Failed,    "no_division_by_zero"),
    ("1 != 1/0",                     None,            Failed,    "no_division_by_zero"),
    // Not understood.
    ("",                             None,            Uncertain, "parsed"),
    (" \t\n",                        None,            Uncertain, "parsed"),
    ("two plus two",                 None,            Uncertain, "parsed"),
    ("2 +",                          None,            Uncertain, "parsed"),
    ("2 + 2 = 4.",                   None,            Uncertain, "parsed"),
    ("2 + 2 = ?",                    None,            Uncertain, "parsed"),
    ("2 2",                          None,            Uncertain, "parsed"),
    ("(2)3",                         None,            Uncertain, "parsed"),
    ("(2",                           None,            Uncertain, "parsed"),
    ("2)",                           None,            Uncertain, "parsed"),
    ("1,00",                         None,            Uncertain, "parsed"),
    ("1.000,5",                      None,            Uncertain, "parsed"),
    ("010 = 10",                     None,            Uncertain, "parsed"),
    ("1_000",                        None,            Uncertain, "parsed"),
    ("root(4) = 2",                  None,            Uncertain, "parsed"),
    ("(-2) ^ 0.5",                   None,            Uncertain, "parsed"),
    ("20%-5",                        None,            Uncertain, "parsed"),
    ("5!=120",                       None,            Uncertain, "parsed"),
    ("1\n+ 1",                       None,            Uncertain, "parsed"),
    ("1 + 1; 2",                     None,            Uncertain, "parsed"),
    ("1 <> 2",                       None,            Uncertain, "parsed"),
    ("２ + ２",                      None,            Uncertain, "parsed"),
    ("2 + 2\u{202e} = 4",            None,            Uncertain, "parsed"),
    // Too large.
    ("9**9**9",                      None,            Uncertain, "within_limits"),
    ("2^(10^8)",                     None,            Uncertain, "within_limits"),
    ("2^65536",                      None,            Uncertain, "within_limits"),
    ("2^-65536",                     None,            Uncertain, "within_limits"),
    ("1e1000000000",                 None,            Uncertain, "within_limits"),
    ("1e-1000000000",                None,            Uncertain, "within_limits"),
    ("1e99999999999999999999999999", None,            Uncertain, "within_limits"),
    ("9^9^9 = 9^9^9",                None,            Uncertain, "within_limits"),
    ("9^9^9 != 1",                   None,            Uncertain, "within_limits"),
];

#[test]
fn every_case_of_the_table() {
    for (query, expected, status, answer) in CASES {
        let outcome = verify(query, *expected);
        check_shape(query, &outcome);
        if outcome.status != Uncertain {
            recheck(&outcome.certificate);
        }
        assert_eq!(outcome.status, *status, "{query}: {outcome:?}");
        let found = match outcome.status {
            Verified => values(&outcome),
            Corrected => outcome.corrected.clone().expect("a corrected text"),
            Failed | Uncertain => outcome.checks.last().expect("a check").name.to_owned(),
        };
        assert_eq!(found, *answer, "{query}: {outcome:?}");
    }
    assert!(CASES.len() >= 80);
}

#[test]
fn certificates_byte_for_byte() {
    #[rustfmt::skip]
    let cases = [
        ("20% × 1,000", r#"{"expression":"20 / 100 * 1000","kind":"arithmetic","status":"VERIFIED","values":["200"]}"#),
        ("1/3 = .5",    r#"{"expression":"1 / 3 = 0.5","kind":"arithmetic","status":"CORRECTED","values":["1/3","1/2"]}"#),
        ("2 < 1^-1",    r#"{"expression":"2 < 1 ** -1","kind":"arithmetic","status":"FAILED","values":["2","1"]}"#),
        ("1 = 1/0 = 2", r#"{"expression":"1 = 1 / 0 = 2","kind":"arithmetic","status":"FAILED","undefined":"division_by_zero","values":["1",null]}"#),
        ("sqrt(1/4) = 2^-1", r#"{"expression":"sqrt(1 / 4) = 2 ** -1","kind":"arithmetic","status":"VERIFIED","values":["1/2","1/2"]}"#),
        ("√2 > 1",      r#"{"expression":"sqrt(2) > 1","kind":"interval","status":"VERIFIED","values":[["3260954456333195553/2305843009213693952","26087635650665564425/18446744073709551616","sqrt(2)"],"1"]}"#),
        ("2x = x + x",  r#"{"expression":"2 * x = x + x","kind":"identity","status":"VERIFIED","where":"everywhere"}"#),
        ("x/x = 1",     r#"{"expression":"x / x = 1","kind":"identity","status":"VERIFIED","where":"every denominator is not zero and every function has a value"}"#),
        ("2x = xx",     r#"{"counterexample":{"x":"1"},"expression":"2 * x = x * x","kind":"identity","relation":0,"status":"FAILED","values":["2","1"]}"#),
        ("2x = 4 => x = 3", r#"{"expression":"2 * x = 4 => x = 3","kind":"system","solution":{"x":"2"},"status":"CORRECTED"}"#),
        ("x = 1; x = 2 => x = 1", r#"{"expression":"x = 1; x = 2 => x = 1","kind":"system","solution":null,"status":"FAILED"}"#),
        ("one",         ""),
    ];
    for (query, certificate) in cases {
        assert_eq!(verify(query, None).certificate, certificate);
    }
}

#[test]
fn messages_say_where_and_never_what() {
    let message = |query, expected| verify(query, expected).checks.pop().expect("a check").message;
    assert_eq!(message("2 + 2 = secrets", None), "not understood at byte 8");
    assert_eq!(message("2 + 2", Some("secrets")), "not understood at byte 0 of the expected value");
    assert_eq!(message("1 + 4/0", None), "division by zero at byte 5");
    assert_eq!(message("(-2) ^ 0.5", None), "a fractional power of a negative number at byte 5");
    assert_eq!(message("ln(1 - 1)", None), "a function outside its domain at byte 0");
    assert_eq!(message("5 km + 3 m", None), "different units at byte 5");
    assert_eq!(message("log(100) = 2", None), "a logarithm without a base at byte 9");
    assert_eq!(message("x = 1 => x = 2", None), "conclusion 1 does not follow");
    assert_eq!(message("1 = 2", None), "the relation at byte 2 does not hold");
    assert_eq!(message("1", Some("2")), "the query does not equal the expected value");
    assert_eq!(message("2^99999", None), "a value of more than 65536 bits at byte 1");
}

#[test]
fn any_string_of_the_alphabet_is_judged_soundly() {
    #[rustfmt::skip]
    const ALPHABET: [&str; 66] = [
        "0", "1", "2", "3", "5", "7", "9", "10", "64", "1,000", ".", ",", "e", "E", "+", "-", "*", "/", "%", "^", "**", "//", "(", ")",
        "(", ")", "=", "==", "!=", "<", "<=", ">", ">=", " ", " ", "×", "÷", "−", "·", "x",
        "y", "sqrt(", "ln(", "max(", "pi", "e", "!", "²", "≈", "=>", "->", ", ", "; ", " of ", "$", " km", " m", " and ", " to 2 dp",
        "√", "[", "]", "|", "log(", "round(", "sin(",
    ];
    const NUMBERS: usize = 10;
    let mut random = XorShift(0x2545_f491_4f6c_dd1d);
    let mut understood = 0_u32;
    for _ in 0..50_000 {
        // Half of the strings have a number at every other place; pure chance is seldom understood.
        let (length, steered) = (random.below(24) + 1, random.below(2) == 0);
        let bound = |place: usize| if steered && place.is_multiple_of(2) { NUMBERS } else { ALPHABET.len() };
        let text: String = (0..length).map(|place| ALPHABET[random.below(bound(place))]).collect();
        let (query, expected) = match random.below(4) {
            0 => (text.as_str(), text.get(..text.len() / 2)),
            _ => (text.as_str(), None),
        };
        let outcome = verify(query, expected);
        check_shape(query, &outcome);
        understood += u32::from(outcome.status != Uncertain);
    }
    assert!(understood > 1_000, "only {understood} strings were understood: the alphabet tests nothing");
}

/// Claims that are well formed, so that most of them reach the arithmetic.
#[test]
fn random_claims_are_judged_soundly() {
    let mut random = XorShift(0x9e37_79b9_7f4a_7c15);
    for _ in 0..5_000 {
        let query = random_sum(&mut random, 4);
        let outcome = verify(&query, None);
        check_shape(&query, &outcome);
        if outcome.status != Uncertain && outcome.certificate.len() < 2_000 {
            recheck(&outcome.certificate);
        }
        // A value may be longer than a text may be.
        if outcome.status == Verified && values(&outcome).len() < TEXT_BYTES_MAX / 2 {
            let value = values(&outcome);
            assert_eq!(verify(&query, Some(&value)).status, Verified, "{query}");
            let wrong = format!("{value} + 1");
            let corrected = verify(&query, Some(&wrong));
            assert_eq!(corrected.status, Corrected, "{query}");
            check_shape(&query, &corrected);
        }
    }
}

#[test]
fn hostile_sizes_are_answered() {
    let pairs = TOKENS_MAX / 2 - 1;
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    let fraction = "(2^30000+1)/(3^19000+2)";
    #[rustfmt::skip]
    let cases = [
        (nested(DEPTH_MAX),                                    Verified),
        (nested(DEPTH_MAX + 1),                                Uncertain),
        ("(".repeat(TEXT_BYTES_MAX),                           Uncertain),
        ("(".repeat(1_000_000),                                Uncertain),
        ("-".repeat(TOKENS_MAX),                               Uncertain),
        (format!("{}1", "-".repeat(TOKENS_MAX - 1)),           Verified),
        (format!("1{}", "+1".repeat(pairs)),                   Verified),
        (format!("1{}", "+1".repeat(pairs + 1)),               Uncertain),
        (format!("1{}", "=1".repeat(pairs)),                   Verified),
        (format!("1{}", "^1".repeat(pairs)),                   Verified),
        (format!("9{}", "^9".repeat(pairs)),                   Uncertain),
        (format!("9{}", "*9".repeat(pairs)),                   Verified),
        (format!("1{}", "/3".repeat(pairs)),                   Verified),
        (format!("1{}", "+1/7".repeat(pairs / 2)),             Verified),
        (format!("1{}", "%".repeat(pairs)),                    Uncertain),
        ("9".repeat(TEXT_BYTES_MAX),                           Verified),
        ("9".repeat(TEXT_BYTES_MAX + 1),                       Uncertain),
        (format!("0.{}", "1".repeat(TEXT_BYTES_MAX - 2)),      Verified),
        (format!("1e{}", "0".repeat(TEXT_BYTES_MAX - 2)),      Verified),
        (format!("1e{}", "9".repeat(TEXT_BYTES_MAX - 2)),      Uncertain),
        ([fraction; 100].join("+"),                            Uncertain),
        ([fraction; 100].join("<"),                            Uncertain),
        ([fraction; 100].join("="),                            Uncertain),
        (["3^41000"; 400].join("="),                           Uncertain),
        (["3^41000"; 4].join("="),                             Verified),
        (["3^41000//3^20000"; 200].join("+"),                  Uncertain),
    ];
    for (query, status) in cases {
        // Where a limit is gone this does not end.
        let outcome = verify(&query, None);
        let name: String = query.chars().take(40).collect();
        assert_eq!(outcome.status, status, "{name}: {:?}", outcome.checks);
        assert!(outcome.certificate.len() < 100_000, "{name}");
    }
}

/// What holds of every outcome, whatever was asked.
pub(crate) fn check_shape(query: &str, outcome: &Outcome) {
    let (last, before) = outcome.checks.split_last().expect("at least one check");
    assert!(before.iter().all(|check| check.passed), "{query}: {outcome:?}");
    assert_eq!(last.passed, outcome.status == Verified, "{query}: {outcome:?}");
    assert_eq!(outcome.certificate.is_empty(), outcome.status == Uncertain, "{query}: {outcome:?}");
    assert_eq!(outcome.corrected.is_some(), outcome.status == Corrected, "{query}: {outcome:?}");
    if let Some(corrected) = outcome.corrected.as_ref().filter(|text| text.len() <= TEXT_BYTES_MAX) {
        assert_eq!(verify(corrected, None).status, Verified, "{query} was corrected to {corrected}");
    }
    // Normal text is its own normal text and leads to the same values and the same status.
    if let Some(expression) = field(outcome, "\"expression\":\"", '"').filter(|text| text.len() < TEXT_BYTES_MAX / 8) {
        // Without units a value can be written that could not be with them: FAILED may become CORRECTED.
        let again = verify(expression, None).certificate;
        assert_eq!(again.replace("CORRECTED", "FAILED"), outcome.certificate.replace("CORRECTED", "FAILED"), "{query}");
    }
    assert!(outcome.certificate.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\'), "{query}");
}

/// The values in a certificate, without their quotation marks.
fn values(outcome: &Outcome) -> String {
    field(outcome, "\"values\":[", ']').expect("values").replace('"', "")
}

fn field<'o>(outcome: &'o Outcome, before: &str, after: char) -> Option<&'o str> {
    let (_, rest) = outcome.certificate.split_once(before)?;
    rest.split(after).next()
}

fn random_sum(random: &mut XorShift, depth: usize) -> String {
    const OPERATORS: [&str; 9] = [" + ", " - ", "*", " / ", " // ", " % ", " × ", "+", "-"];
    let mut text = random_atom(random, depth);
    for _ in 0..random.below(3) {
        text += OPERATORS[random.below(OPERATORS.len())];
        text += &random_atom(random, depth);
    }
    text
}

fn random_atom(random: &mut XorShift, depth: usize) -> String {
    if depth == 0 {
        return random.below(100).to_string();
    }
    match random.below(10) {
        0 => format!("({})", random_sum(random, depth - 1)),
        1 => format!("-{}", random_atom(random, depth - 1)),
        2 => format!("({})^{}", random_sum(random, depth - 1), random.below(9)),
        3 => format!("({})^-{}", random_sum(random, depth - 1), random.below(9)),
        4 => format!("({}%)", random_atom(random, 0)),
        5 => format!("{}.{}", random.below(1_000), random.below(1_000)),
        6 => format!("{},{:03}", random.below(999) + 1, random.below(1_000)),
        7 => format!("{}e{}", random.below(10), random.below(30)),
        _ => random.below(1_000).to_string(),
    }
}

/// Marsaglia's generator: the same strings on every machine.
struct XorShift(u64);

impl XorShift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 33) % bound as u64).expect("below a bound")
    }
}
