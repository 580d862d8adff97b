//! Texts and their normal form, or the byte that is not understood.

use super::*;
use crate::math::claim::Statement;
use crate::math::limits::TOKENS_MAX;
use crate::math::normal::normal;
use crate::math::statement::parse;

/// The claim in normal form, or the byte that is not understood.
fn read(query: &str) -> Result<String, usize> {
    written(parse(query, None)).map_err(|no_value| no_value.at)
}

fn written(statement: Result<Statement, NoValue>) -> Result<String, NoValue> {
    match statement? {
        Statement::Claim(claim) => normal(&claim),
        Statement::System(system) => panic!("a system: {system:?}"),
    }
}

#[test]
fn operators_bind_as_in_python() {
    #[rustfmt::skip]
    let cases = [
        ("1+2*3",          "1 + 2 * 3"),
        ("(1+2)*3",        "(1 + 2) * 3"),
        ("1-(2-3)",        "1 - (2 - 3)"),
        ("(1-2)-3",        "1 - 2 - 3"),
        ("8/(4/2)",        "8 / (4 / 2)"),
        ("2^3^2",          "2 ** 3 ** 2"),
        ("(2^3)^2",        "(2 ** 3) ** 2"),
        ("-2^2",           "-2 ** 2"),
        ("(-2)**2",        "(-2) ** 2"),
        ("2^-1",           "2 ** -1"),
        ("2^-3^2",         "2 ** -3 ** 2"),
        ("2^(-3)^2",       "2 ** (-3) ** 2"),
        ("-2^-3^2",        "-2 ** -3 ** 2"),
        ("2*-3",           "2 * -3"),
        ("- -+3",          "3"),
        ("-(-3)",          "-(-3)"),
        ("2--3",           "2 - -3"),
        ("(((7)))",        "7"),
        ("7//2%3",         "7 // 2 % 3"),
        ("1 = 2 <= 3",     "1 = 2 <= 3"),
        ("1 == 2 ≠ 3",     "1 = 2 != 3"),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query).as_deref(), Ok(expected), "{query}");
    }
}

#[test]
fn per_cent_or_modulo() {
    #[rustfmt::skip]
    let cases = [
        ("20%",            Ok("20 / 100")),
        ("20% * 5",        Ok("20 / 100 * 5")),
        ("5 / 20%",        Err(2)),
        ("5 / -20%",       Err(2)),
        ("5 / (20%)",      Ok("5 / (20 / 100)")),
        ("5 ÷ 20%",        Ok("5 / (20 / 100)")),
        ("20%^2",          Ok("(20 / 100) ** 2")),
        ("(20%)",          Ok("20 / 100")),
        ("20% = 1",        Ok("20 / 100 = 1")),
        ("20%5",           Ok("20 % 5")),
        ("20 % 5",         Ok("20 % 5")),
        ("20% (5)",        Err(2)),
        ("20% 5",          Err(2)),
        ("50%x",           Err(2)),
        ("50 % x",         Ok("50 % x")),
        ("20% + 5",        Ok("20 / 100 + 5")),
        ("20% - 5",        Ok("20 / 100 - 5")),
        ("20 % -5",        Ok("20 % -5")),
        ("20 % --5",       Ok("20 % 5")),
        ("20%(-5)",        Err(2)),
        ("20 % (-5)",      Ok("20 % -5")),
        ("(20%)-5",        Ok("20 / 100 - 5")),
        ("20%-5",          Err(2)),
        ("20%+5",          Err(2)),
        ("20 %-5",         Err(3)),
        ("20 % - 5",       Err(3)),
        ("20% -5",         Err(2)),
        ("20%- 5",         Err(2)),
        ("20%%",           Err(3)),
        ("20% % 5",        Err(4)),
        ("20% -",          Err(2)),
        ("%",              Err(0)),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query), expected.map(str::to_owned), "{query}");
    }
}

#[test]
fn what_is_not_understood_has_a_place() {
    #[rustfmt::skip]
    let cases = [
        ("", 0), ("   ", 3), ("+", 1), ("1 +", 3), ("1 2", 2), ("(2)3", 3), ("(1", 2), ("1)", 1), ("()", 1),
        ("1 = ", 4), ("= 1", 0), ("1 = = 1", 4), ("1 * / 2", 4), ("1 *** 2", 4), ("(1 = 1)", 3), ("1 =< 2", 3),
        ("5!!", 2), ("5!=120", 1), ("5!= 120", 1), ("tau", 0), ("1 < > 2", 4),
    ];
    for (query, at) in cases {
        assert_eq!(read(query), Err(at), "{query}");
    }
    assert_eq!(read("5 !=120").as_deref(), Ok("5 != 120"));
    assert_eq!(read("5≠120").as_deref(), Ok("5 != 120"));
}

#[test]
fn an_expected_value_is_one_expression_for_a_query_that_has_a_value() {
    let read = |query, expected| written(parse(query, Some(expected)));
    assert_eq!(read("1+1", "2").as_deref(), Ok("1 + 1 = 2"));
    assert_eq!(read("1+1 = 2", "4/2").as_deref(), Ok("1 + 1 = 2 = 4 / 2"));
    for (query, expected, at) in [("1+1", "2 = 2", 2), ("1 < 2", " 2", 1), ("1+1", "", 0), ("1+1", "two", 0)] {
        let no_value = read(query, expected).expect_err(expected);
        assert_eq!(no_value, NoValue { reason: Reason::NotUnderstood, text: Text::Expected, at });
    }
}

#[test]
fn parentheses_nest_to_the_limit_and_rows_do_not_nest() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(read(&nested(DEPTH_MAX)).as_deref(), Ok("1"));
    let no_value = parse(&nested(DEPTH_MAX + 1), None).expect_err("too deep");
    assert_eq!((no_value.reason, no_value.at), (Reason::Limit(Limit::Depth), DEPTH_MAX));
    let pairs = TOKENS_MAX / 2 - 1;
    assert!(read(&format!("1{}", "^1".repeat(pairs))).is_ok());
    assert!(read(&format!("{}1", "-".repeat(TOKENS_MAX - 1))).is_ok());
    assert!(read(&format!("1{}", "=1".repeat(pairs))).is_ok());
    assert!(read(&format!("1{}", "+(1)".repeat(TOKENS_MAX / 4 - 1))).is_ok());
}

#[test]
fn factors_may_stand_side_by_side_where_nobody_could_read_them_otherwise() {
    #[rustfmt::skip]
    let cases = [
        ("2(3 + 4)",       Ok("2 * (3 + 4)")),
        ("(1)(2)",         Ok("1 * 2")),
        ("3x",             Ok("3 * x")),
        ("2xy^2",          Ok("2 * x * y ** 2")),
        ("x^2y",           Ok("x ** 2 * y")),
        ("x²y³",           Ok("x ** 2 * y ** 3")),
        ("2 pi r",         Ok("2 * pi * r")),
        ("2sqrt(3)",       Ok("2 * sqrt(3)")),
        ("a(b + c) + abc", Ok("a * (b + c) + a * b * c")),
        ("2x/3",           Ok("2 * x / 3")),
        ("1/(2x)",         Ok("1 / (2 * x)")),
        ("-2x",            Ok("-2 * x")),
        ("1/2x",           Err(3)),
        ("x/2y",           Err(3)),
        ("6/2(1 + 2)",     Err(3)),
        ("2^3x",           Err(3)),
        ("e^2x",           Err(3)),
        ("x^-2y",          Err(4)),
        ("x^y(2)",         Err(3)),
        ("√2x",            Err("√2".len())),
        ("3 x 4",          Err(2)),
        ("3 x (4)",        Err(2)),
        ("x2",             Err(0)),
        ("x 2",            Err(2)),
        ("f(x)",           Err(1)),
        ("e(2)",           Err(1)),
        ("i^2",            Err(0)),
        ("tax",            Err(0)),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query), expected.map(str::to_owned), "{query}");
    }
}

#[test]
fn per_cent_of_something() {
    #[rustfmt::skip]
    let cases = [
        ("20% of 80",          Ok("20 / 100 * 80")),
        ("20 percent of 80",   Ok("20 / 100 * 80")),
        ("5 + 20% of 80",      Ok("5 + 20 / 100 * 80")),
        ("80 + 15%",           Ok("80 * (1 + 15 / 100)")),
        ("80 - (15%)",         Err(3)),
        ("80 + -15%",          Err(3)),
        ("80 * (15%)",         Ok("80 * (15 / 100)")),
        ("(10%) + (5%)",       Ok("10 / 100 + 5 / 100")),
        ("-10% + 5%",          Ok("-(10 / 100) + 5 / 100")),
        ("1 + 2 + 15%",        Ok("(1 + 2) * (1 + 15 / 100)")),
        ("100 + 10% - 10%",    Ok("100 * (1 + 10 / 100) * (1 - 10 / 100)")),
        ("10% + 5%",           Ok("10 / 100 + 5 / 100")),
        ("10% + 5% + 2",       Ok("10 / 100 + 5 / 100 + 2")),
        ("10% + 2 + 5%",       Ok("(10 / 100 + 2) * (1 + 5 / 100)")),
        ("80 + 15% * 2",       Ok("80 + 15 / 100 * 2")),
        ("x + 10%",            Ok("x * (1 + 10 / 100)")),
        ("2 of 80",            Err(2)),
        ("100 / 20% of 50",    Err(4)),
        ("5% x",               Err(1)),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query), expected.map(str::to_owned), "{query}");
    }
}

#[test]
fn commas_in_lists() {
    #[rustfmt::skip]
    let cases = [
        ("gcd(12,180)",        Ok("gcd(12, 180)")),
        ("max(1,200,300)",     Err(0)),
        ("max(1,20,300)",      Err(0)),
        ("max(1,20,30)",       Ok("max(1, 20, 30)")),
        ("lcm(100,200,300)",   Err(0)),
        ("mod(17,500)",        Ok("mod(17, 500)")),
        ("sum([1, 2, 3])",     Ok("sum(1, 2, 3)")),
        ("sqrt(1,600)",        Ok("sqrt(1600)")),
        ("max((1,200), 3)",    Ok("max(1200, 3)")),
        ("round(2.345,2)",     Ok("round(2.345, 2)")),
        ("average(1,2)",       Ok("mean(1, 2)")),
        ("max(1,200, 3)",      Err(0)),
        ("round(2,345)",       Err(0)),
        ("log(1,000)",         Err(6)),
        ("gcd(12)",            Err(0)),
        ("sqrt(1, 2)",         Err(0)),
        ("sqrt 4",             Err(0)),
        ("max()",              Err(4)),
        ("max(1, )",           Err(7)),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query), expected.map(str::to_owned), "{query}");
    }
}

#[test]
fn letters_are_units_or_unknowns_but_never_both() {
    #[rustfmt::skip]
    let cases = [
        ("5 m + 3 m = 8 m",        Ok("5 + 3 = 8")),
        ("2m + 3n = 3n + 2m",      Ok("2 * m + 3 * n = 3 * n + 2 * m")),
        ("2m = m + m",             Ok("2 * m = m + m")),
        ("60 km / 2 h = 30 km/h",  Ok("60 / 2 = 30")),
        ("$5 + 3 USD",             Ok("5 + 3")),
        ("5 min + min(1, 2)",      Ok("5 + min(1, 2)")),
        ("5 min(1, 2)",            Ok("5 * min(1, 2)")),
        ("3 m²",                   Ok("3")),
        ("$x",                     Err(1)),
        ("km",                     Err(0)),
        ("5 m^x",                  Ok("5 * m ** x")),
    ];
    for (query, expected) in cases {
        assert_eq!(read(query), expected.map(str::to_owned), "{query}");
    }
}
