//! Tables for what the math engine knows besides plain arithmetic, and what it must not take long over.

use interlock_verifiers::Status::{self, Corrected, Failed, Uncertain, Verified};
use interlock_verifiers::math::{STATEMENTS_MAX, verify};

use crate::math::check_shape;
use crate::math_recheck::recheck;

/// The query, the expected value if any, the status, and what is corrected or which check did not pass.
type Case = (&'static str, Option<&'static str>, Status, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Per cent.
    ("20% of 80 = 16",                          None, Verified,  ""),
    ("20% of 80 = 15",                          None, Corrected, "20% of 80 = 16"),
    ("80 + 15% = 92",                           None, Verified,  ""),
    ("80 - 25% = 60",                           None, Verified,  ""),
    ("80 + 15% = 80.15",                        None, Corrected, "80 + 15% = 92"),
    ("100 + 10% - 10% = 99",                    None, Verified,  ""),
    ("10% + 5% = 15%",                          None, Verified,  ""),
    ("x + 10% = 1.1x",                          None, Verified,  ""),
    ("100 / 20% of 50",                         None, Uncertain, "parsed"),
    // Units.
    ("$5 + $3 = $8",                            None, Verified,  ""),
    ("$5 + $3 = $9",                            None, Corrected, "$5 + $3 = $8"),
    ("$3 - $5 = $2",                            None, Corrected, "$3 - $5 = -$2"),
    ("5 m + 3 m = 9 m",                         None, Corrected, "5 m + 3 m = 8 metre"),
    ("15% of $80 = 12",                         None, Verified,  ""),
    ("60 km / 2 h = 30 km/h",                   None, Verified,  ""),
    ("3 m * 4 m = 12 m^2",                      None, Verified,  ""),
    ("5 km + 3 m = 8 km",                       None, Uncertain, "same_units"),
    ("3 m * 4 m = 12 m",                        None, Uncertain, "same_units"),
    ("5 km = 5000 m",                           None, Uncertain, "same_units"),
    ("€5 = $5",                                 None, Uncertain, "same_units"),
    ("2m + 3 = 5m",                             None, Uncertain, "same_units"),
    ("2m = 2",                                  None, Uncertain, "same_units"),
    ("sin(30 degrees) = 0.5",                   None, Uncertain, "same_units"),
    ("5 km * x = 10 km",                        None, Uncertain, "same_units"),
    // Functions.
    ("sqrt(16) = 4",                            None, Verified,  ""),
    ("√(1/4) = 0.5",                            None, Verified,  ""),
    ("8^(1/3) = 2",                             None, Verified,  ""),
    ("cbrt(-27) = -3",                          None, Verified,  ""),
    ("abs(-3/4) = 0.75",                        None, Verified,  ""),
    ("min(3, 1, 2) + max(3,1,2) = 4",           None, Verified,  ""),
    ("mean(1, 2, 3, 4) = 2.5",                  None, Verified,  ""),
    ("median(5, 1, 3, 2) = 2.5",                None, Verified,  ""),
    ("sum([1, 2, 3]) = 6",                      None, Verified,  ""),
    ("floor(-2.5) + ceil(-2.5) = -5",           None, Verified,  ""),
    ("round(2.6) = 3",                          None, Verified,  ""),
    ("round(3.14159, 2) = 3.14",                None, Verified,  ""),
    ("round(2.5) = 3",                          None, Uncertain, "parsed"),
    ("5! = 120",                                None, Verified,  ""),
    ("20! = 2432902008176640000",               None, Verified,  ""),
    ("gcd(12,180) * lcm(4, 6) = 144",           None, Verified,  ""),
    ("mod(-7, 3) = -7 mod 3 = 2",               None, Verified,  ""),
    ("log10(0.001) = -3",                       None, Verified,  ""),
    ("log(8, 4) = 3/2",                         None, Verified,  ""),
    ("log(1) = 0",                              None, Verified,  ""),
    ("log(100) = 2",                            None, Uncertain, "parsed"),
    ("log(100)",                                None, Uncertain, "parsed"),
    ("log(2) < 1",                              None, Verified,  ""),
    ("log(100) = 5",                            None, Failed,    "value_matches"),
    ("exp(0) + ln(1) + sin(0) + cos(0) = 2",    None, Verified,  ""),
    ("(-8)^(1/3) = -2",                         None, Uncertain, "parsed"),
    // Rounded values.
    ("10/3 = 3.33 to 2 dp",                     None, Verified,  ""),
    ("10/3 = 3.34 to 2 decimal places",         None, Corrected, "10/3 = 3.33 to 2 dp"),
    ("2/3 = 0.667 to 3 sf",                     None, Verified,  ""),
    ("123456 = 123000 to 3 significant figures", None, Verified, ""),
    ("0.00123456 = 0.0012 to 2 sf",             None, Verified,  ""),
    ("9.996 = 10.0 to 3 sf",                    None, Verified,  ""),
    ("2.5 = 3 to 0 dp",                         None, Verified,  ""),
    ("2.5 = 2 to 0 dp",                         None, Verified,  ""),
    ("-2.5 = -3 to 0 dp",                       None, Verified,  ""),
    ("-2.5 = -2 to 0 dp",                       None, Verified,  ""),
    ("2.51 = 2 to 0 dp",                        None, Corrected, "2.51 = 3 to 0 dp"),
    ("22/7 ≈ 3.14",                             None, Verified,  ""),
    ("22/7 ~= 3.15",                            None, Corrected, "22/7 ≈ 3.14"),
    ("1/3 ≈ 33%",                               None, Verified,  ""),
    ("1234 ≈ 1200",                             None, Uncertain, "parsed"),
    ("1234 ≈ 1.2e3",                            None, Verified,  ""),
    ("1234 ≈ 1.3e3",                            None, Corrected, "1234 ≈ 12e2"),
    ("pi ≈ 22/7",                               None, Uncertain, "parsed"),
    ("10/3",                                    Some("3.33 to 2 dp"), Verified, ""),
    ("10/3 to 2 dp",                            None, Uncertain, "parsed"),
    // Irrational values.
    ("sqrt(2) = 1.41 to 2 dp",                  None, Verified,  ""),
    ("sqrt(2) = 1.42 to 2 dp",                  None, Corrected, "sqrt(2) = 1.41 to 2 dp"),
    ("sqrt(2) = 1.41421356",                    None, Failed,    "value_matches"),
    ("sqrt(2) != 1.41421356",                   None, Verified,  ""),
    ("pi ≈ 3.14159265358979323846264338327950288419716939937510582097494459", None, Verified, ""),
    ("pi ≈ 3.14159265358979323846264338327950288419716939937510582097494458", None, Corrected, "pi ≈ 3.14159265358979323846264338327950288419716939937510582097494459"),
    ("e ≈ 2.718281828",                         None, Verified,  ""),
    ("e^pi > pi^e",                             None, Verified,  ""),
    ("exp(pi*sqrt(163)) = 262537412640768744",  None, Failed,    "value_matches"),
    ("exp(pi*sqrt(163)) ≈ 262537412640768744",  None, Verified,  ""),
    ("ln(2) + ln(3) ≈ 1.791759469",             None, Verified,  ""),
    ("sin(1)^2 + cos(1)^2 ≈ 1.0000000000",      None, Verified,  ""),
    ("tan(10^20) ≈ -0.84",                      None, Verified,  ""),
    ("exp(-50) > 0",                            None, Verified,  ""),
    ("sqrt(2) * sqrt(8) = 4",                   None, Verified,  ""),
    ("sqrt(8) + sqrt(2) = 3sqrt(2)",            None, Verified,  ""),
    ("sin(pi/6) = 1/2",                         None, Verified,  ""),
    ("cos(pi/3) = 1/2",                         None, Verified,  ""),
    ("tan(3pi/4) = -1",                         None, Verified,  ""),
    ("tan(1/2pi) = 1",                          None, Uncertain, "parsed"),
    ("1,000 ≈ 64^9",                            None, Failed,    "value_matches"),
    ("3.14 ≈ pi",                               None, Verified,  ""),
    ("tan(3*pi/4) = -1",                        None, Verified,  ""),
    ("ln(e^2) = 2",                             None, Verified,  ""),
    ("2^0.5 = sqrt(2)",                         None, Verified,  ""),
    ("1/3 + sqrt(2) - sqrt(2) = 1/3",           None, Verified,  ""),
    ("sqrt(3) + sqrt(2) = sqrt(5 + 2sqrt(6))",  None, Uncertain, "decided"),
    ("floor(pi * 10^20) = 314159265358979323846", None, Verified, ""),
    // Outside a domain.
    ("sqrt(-1)",                                None, Failed,    "in_domain"),
    ("ln(0) = 1",                               None, Failed,    "in_domain"),
    ("log(8, 1)",                               None, Failed,    "in_domain"),
    ("factorial(-1)",                           None, Failed,    "in_domain"),
    ("tan(pi/2)",                               None, Failed,    "in_domain"),
    ("1/(2 - sqrt(4))",                         None, Failed,    "no_division_by_zero"),
    ("0^(-1/2)",                                None, Failed,    "no_division_by_zero"),
    ("1 = ln(-1)",                              None, Failed,    "in_domain"),
    // Identities.
    ("(x + y)^2 = x^2 + 2xy + y^2",             None, Verified,  ""),
    ("(a+b)^3 = a^3 + 3a^2b + 3ab^2 + b^3",     None, Verified,  ""),
    ("(x^2 - 1)/(x - 1) = x + 1",               None, Verified,  ""),
    ("1/x + 1/y = (x + y)/(xy)",                None, Verified,  ""),
    ("x^-2 = 1/x^2",                            None, Verified,  ""),
    ("x_1 + x_2 = x_2 + x_1",                   None, Verified,  ""),
    ("pi r^2 + pi r^2 = 2 pi r^2",              None, Verified,  ""),
    ("(x + y)^2 = x^2 + y^2",                   None, Failed,    "value_matches"),
    ("x^2 = x",                                 None, Failed,    "value_matches"),
    ("x(x-1)(x-2)(x-3)(x+1) = 0",               None, Failed,    "value_matches"),
    ("sqrt(x^2) = x",                           None, Failed,    "value_matches"),
    ("2x = 2x = 3x",                            None, Failed,    "value_matches"),
    ("x + 1 > x",                               None, Verified,  ""),
    ("x > 3",                                   None, Uncertain, "decided"),
    ("x = 5",                                   None, Uncertain, "decided"),
    ("y = 2x + 1",                              None, Uncertain, "decided"),
    ("x + 1",                                   None, Uncertain, "decided"),
    ("sin(x)^2 + cos(x)^2 = 1",                 None, Uncertain, "decided"),
    ("1/(x - x) = 1",                           None, Failed,    "no_division_by_zero"),
    ("x = x + sqrt(-1)",                        None, Failed,    "in_domain"),
    ("x + x",                                   Some("2x"), Verified, ""),
    ("i^2 = -1",                                None, Uncertain, "parsed"),
    ("f(x) = x",                                None, Uncertain, "parsed"),
    ("1/2x = x/2",                              None, Uncertain, "parsed"),
    // Linear equations.
    ("2x + 3 = 7 => x = 2",                     None, Verified,  ""),
    ("2x + 3 = 7 ⇒ x = 3",                      None, Corrected, "2x + 3 = 7 => x = 2"),
    ("3x = 1 -> x = 0.33",                      None, Corrected, "3x = 1 => x = 1/3"),
    ("x + y = 3, x - y = 1 => x = 2, y = 1",    None, Verified,  ""),
    ("x + y = 3; x - y = 1, therefore y = 1",   None, Verified,  ""),
    ("x + y = 3 and x - y = 1 => x = 1 and y = 2", None, Corrected, "x + y = 3 and x - y = 1 => x = 2, y = 1"),
    ("x + y = 3, x + y = 4 => x = 1",           None, Failed,    "consistent"),
    ("x + y = 3 => x = 1",                      None, Failed,    "value_matches"),
    ("x + y = 3 => 2x + 2y = 6",                None, Verified,  ""),
    ("x + y = 3, x + y + z = 5 => z = 2",       None, Verified,  ""),
    ("x = 2 => x^2 + 1 = 5",                    None, Verified,  ""),
    ("x = 2 => x > 1",                          None, Verified,  ""),
    ("3x = 10 => x = 3.33 to 2 dp",             None, Verified,  ""),
    ("2x = 4 => y = 2",                         None, Failed,    "value_matches"),
    ("x^2 = 4 => x = 2",                        None, Uncertain, "decided"),
    ("1/x = 2 => x = 1/2",                      None, Uncertain, "decided"),
    ("2x + 3 = 7",                              Some("x = 2"), Verified, ""),
    ("2x + 3 = 7",                              Some("x = 3"), Corrected, "2x + 3 = 7 => x = 2"),
    ("x = 1, y = 2",                            None, Uncertain, "parsed"),
    ("2x = 4 => x",                             None, Uncertain, "parsed"),
];

#[test]
fn every_claim_of_the_table() {
    for (query, expected, status, answer) in CASES {
        let outcome = verify(query, *expected);
        assert_eq!(outcome.status, *status, "{query}: {outcome:?}");
        check_shape(query, &outcome);
        if outcome.status != Uncertain {
            recheck(&outcome.certificate);
        }
        let found = match outcome.status {
            Verified => String::new(),
            Corrected => outcome.corrected.clone().expect("a corrected text"),
            Failed | Uncertain => outcome.checks.last().expect("a check").name.to_owned(),
        };
        assert_eq!(found, *answer, "{query}: {outcome:?}");
    }
}

/// None of these may be computed; none may take long.
#[test]
fn what_is_too_large_is_refused_at_once() {
    let equations = |count: usize| {
        let rows: Vec<String> = (1..=count)
            .map(|row| {
                (1..=count).map(|column| format!("{}x_{column}", row * column % 97 + 1)).collect::<Vec<_>>().join(" + ")
            })
            .map(|row| format!("{row} = 1"))
            .collect();
        format!("{} => x_1 = 1", rows.join(", "))
    };
    let megabytes = 10 * 1024 * 1024;
    let cases: Vec<String> = vec![
        "9**9**9".into(),
        "factorial(10^8)".into(),
        "factorial(factorial(20))".into(),
        "5000! * 5000!".into(),
        "2^(2^40)".into(),
        "0.1^1000000".into(),
        "(x + y + z)^500 = 1".into(),
        "(x + y + z + w)^90 = (w + x + y + z)^90".into(),
        "x^(10^30) = x".into(),
        "(x + 1)^99999 = x".into(),
        "1/(x+y+1) + 1/(x+y+2) + 1/(x+y+3) + 1/(x+y+4) + 1/(x+y+5) + 1/(x-y+6) + 1/(x-y+7) + 1/(x-2y+8) = 1".into(),
        "exp(exp(exp(10)))".into(),
        "sin(2^60000)".into(),
        "ln(2^60000) ~= 1".into(),
        "sqrt(2)^60000 = 3^100000".into(),
        "round(pi, 100000)".into(),
        "(sqrt(2) + sqrt(3))^100000 = 1".into(),
        equations(12),
        equations(STATEMENTS_MAX),
        equations(STATEMENTS_MAX + 1),
        "(".repeat(megabytes),
        "sqrt(".repeat(10_000) + "2" + &")".repeat(10_000),
        "√".repeat(10_000) + "2",
        "√".repeat(megabytes / 3),
        "9".repeat(megabytes),
        "x".repeat(megabytes),
        "max(".to_owned() + &"1,".repeat(1_000_000) + "1)",
        "$".repeat(megabytes),
        "x + ".repeat(megabytes / 4) + "1",
        "1, ".repeat(megabytes / 3),
        "5 km/".repeat(3_000) + "h",
        "median(".to_owned()
            + &(0..1_500).map(|number| (number * 7919 % 1500).to_string()).collect::<Vec<_>>().join(", ")
            + ")",
        "1 + 1% ".to_owned() + &"+ 1% ".repeat(2_000),
    ];
    for query in cases {
        let name: String = query.chars().take(40).collect();
        // Where a limit is gone this does not end.
        let outcome = verify(&query, None);
        assert!(outcome.certificate.len() < 100_000, "{name}");
        check_shape(&name, &outcome);
        let huge = query.len() > 1_000_000;
        assert!(!huge || outcome.status == Uncertain, "{name}");
    }
    for refused in ["9**9**9", "factorial(10^8)", "2^(2^40)", "0.1^1000000", "(x + y + z)^500 = 1", "sin(2^60000)"] {
        let outcome = verify(refused, None);
        assert_eq!(outcome.checks.last().expect("a check").name, "within_limits", "{refused}");
    }
}
