//! Little fuel changes no outcome: either it was enough, and the outcome is the one with all there is, or it fell short,
//! and says so.

use interlock_core::action::ActionText;
use interlock_core::json::{self, Limits};
use interlock_verifiers::math::Math;
use interlock_verifiers::shell::{Commands, Shell};
use interlock_verifiers::sql::{Databases, Sql};
use interlock_verifiers::{Fuel, Ground, Verifier};

const GIVEN: [u64; 9] = [0, 1, 50, 1_000, 5_000, 1 << 14, 1 << 16, 1 << 18, u64::MAX];

#[rustfmt::skip]
const TEXTS: [(&dyn Verifier, &[&str]); 3] = [
    (&Math, &[
        "2 + 2 = 4", "2 + 2 = 5", "1/0", "10% of 50", "300!", "1000! = 1000!", "2^5000 > 3^3000", "sqrt(2) + sqrt(3)",
        "sqrt(2)*sqrt(3) = sqrt(6)", "log(8, 2) = 3", "log(1000000007^3, 1000000007) = 3", "sin(1)^2 + cos(1)^2 = 1",
        "e^10 > 22026", "10/3 to 2 dp", "10/3 = 3.33 to 2 dp", "(x+1)^8 = x^8", "(x+y)^2 = x^2 + 2*x*y + y^2",
        "x + y = 10; x - y = 2 => x = 6", "x + y = 3; x + y = 4 => x = 1", "lcm(123456, 7890123)", "C(200, 100)",
        "5 km + 300 m = 5300 m", "2^(1/2) = 1.41421356237", "not a claim at all", "", "7 mod 3 = 1", "123456789^50 mod 97",
    ]),
    (&Shell, &[
        "ls", "rm -rf /", "git status && cargo test | tail -5", "for i in 1 2 3; do echo $i; done",
        "a(){ echo 1; }; b(){ a;a;a;a;a;a; }; c(){ b;b;b;b;b;b; }; c;c;c;c;c;c",
        "find . -name '*.rs' -exec sed -n s/x/y/p {} +", "bash -c 'bash -c \"rm x\"'", "x=1; eval \"echo $x\"", "((", "",
    ]),
    (&Sql, &[
        "SELECT 1", "DROP TABLE users", "SELECT a, b FROM t WHERE c = 1 ORDER BY d", "SELECT 1; SELECT 2", "not sql",
        "WITH a AS (SELECT 1) SELECT * FROM a JOIN b ON a.x = b.y", "",
    ]),
];

#[test]
fn an_outcome_is_the_one_with_all_the_fuel_or_none() {
    let databases = Databases::load(None).expect("the databases that are built in");
    let commands = Commands::load(None).expect("the commands that are built in");
    let ground = Ground { databases, commands, trusts_action: false };
    for (verifier, texts) in TEXTS {
        let (mut enough, mut short) = (0, 0);
        for text in texts {
            let document = json::quote(text);
            let document = json::parse(&document, &Limits::STATE).expect("a text");
            let action =
                ActionText { kind: "a", query: Some(document.root()), code: None, target: None, parameters: None };
            let whole = verifier.verify(&action, &ground);
            let mut fuel = Fuel::full();
            assert_eq!(verifier.verify_within(&action, &ground, &mut fuel), whole);
            let cost = fuel.spent();
            for given in GIVEN {
                let mut fuel = Fuel::of(given);
                let outcome = verifier.verify_within(&action, &ground, &mut fuel);
                assert!(fuel.spent() <= given, "`{text}` spends more than {given}");
                if fuel.fell_short() {
                    short += 1;
                    continue;
                }
                enough += 1;
                assert_eq!((outcome, fuel.spent()), (whole.clone(), cost), "`{text}` with {given}");
            }
            let mut exact = Fuel::of(cost);
            assert_eq!(verifier.verify_within(&action, &ground, &mut exact), whole, "`{text}`");
        }
        assert!(enough > 0 && short > 0, "both were seen: {enough}, {short}");
    }
}
