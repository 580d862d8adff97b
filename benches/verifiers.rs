//! What a verdict costs: time, growth with the text, and what is added to the bare parser.
//!
//!     cargo bench --bench verifiers                  everything; instruction counts if valgrind is installed
//!     … -- --repeat ENGINE PARTS COUNT               what is run under valgrind

mod limits;

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use interlock_core::action::ActionText;
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits, quote};
use interlock_verifiers::math::Math;
use interlock_verifiers::shell::Shell;
use interlock_verifiers::sql::Sql;
use interlock_verifiers::{Ground, Verifier};

/// The one the product uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A text of a size, made of so many parts.
struct Shape {
    engine: &'static str,
    name: &'static str,
    before: &'static str,
    part: &'static str,
    between: &'static str,
    after: &'static str,
    /// Parts of a typical text.
    typical: usize,
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    Shape { engine: "shell", name: "pipeline",      before: "", part: "grep -rn 'TODO' src/ 2>/dev/null | sort | uniq -c | sort -rn | head -5", between: " && ", after: "", typical: 2 },
    Shape { engine: "shell", name: "script",        before: "", part: "for f in src/*.rs; do echo \"== $f\"; sed -n '1,20p' \"$f\"; awk '{ print $1 }' \"$f\"; done", between: "\n", after: "", typical: 8 },
    Shape { engine: "shell", name: "substitutions", before: "echo", part: " \"$(git log --oneline | wc -l)\" ${x:-'a b'} $((1 + 2))", between: "", after: "", typical: 10 },
    Shape { engine: "shell", name: "here-document", before: "cat <<'END' > out\n", part: "a line of text that is written to a file, as agents do it\n", between: "", after: "END\n", typical: 30 },
    Shape { engine: "math", name: "sum",            before: "", part: "12.50 * 3 + 7", between: " + ", after: "", typical: 10 },
    Shape { engine: "math", name: "prices",         before: "", part: "$1,234.56", between: " + ", after: " = $1,000", typical: 10 },
    Shape { engine: "math", name: "mean",           before: "mean(", part: "17.25", between: ", ", after: ")", typical: 40 },
    Shape { engine: "math", name: "identity",       before: "(x + y)^2 - (x - y)^2 = ", part: "x y", between: " + ", after: "", typical: 4 },
    Shape { engine: "math", name: "irrational",     before: "sqrt(2) * sqrt(3) < ", part: "0.5", between: " + ", after: "", typical: 8 },
    Shape { engine: "math", name: "system",         before: "2x + 3y = 12, x - y = 1 => x = 3, y = ", part: "1", between: " + ", after: "", typical: 2 },
    Shape { engine: "sql", name: "select",          before: "SELECT o.id, o.total FROM orders o JOIN customers c ON c.id = o.customer_id WHERE ", part: "o.total > 10 AND c.city = 'x'", between: " OR ", after: " ORDER BY o.total DESC LIMIT 20", typical: 4 },
    Shape { engine: "sql", name: "columns",         before: "SELECT ", part: "lower(a.name), count(a.id)", between: ", ", after: " FROM accounts a GROUP BY a.name", typical: 20 },
    Shape { engine: "sql", name: "insert",          before: "INSERT INTO t (a, b) VALUES ", part: "(1, 'x')", between: ", ", after: "", typical: 40 },
];

impl Shape {
    fn text(&self, parts: usize) -> String {
        format!("{}{}{}", self.before, vec![self.part; parts].join(self.between), self.after)
    }

    fn verifier(&self) -> &'static dyn Verifier {
        match self.engine {
            "shell" => &Shell,
            "math" => &Math,
            _ => &Sql,
        }
    }
}

fn ground() -> Ground {
    let bundle = Bundle::built_in().expect("a bundle");
    Ground { trusts_action: true, ..Ground::load(&bundle).expect("sound") }
}

/// Judges one text so many times.
fn judge(shape: &Shape, parts: usize, ground: &Ground, mut each: impl FnMut(&mut dyn FnMut())) {
    let dialect = if shape.engine == "sql" { "{\"dialect\":\"postgres\"}" } else { "{}" };
    let text = format!("{{\"query\":{},\"parameters\":{dialect}}}", quote(&shape.text(parts)));
    let document = json::parse(&text, &Limits::STATE).expect("JSON");
    let root = document.root();
    let action =
        ActionText { kind: "", query: root.get("query"), code: None, target: None, parameters: root.get("parameters") };
    let verifier = shape.verifier();
    each(&mut || {
        let _ = black_box(verifier.verify(black_box(&action), ground));
    });
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The median time of a call, in microseconds.
fn p50(count: usize, once: &mut dyn FnMut()) -> f64 {
    median((0..count).map(|_| time(once)).collect())
}

fn time(once: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    once();
    start.elapsed().as_secs_f64() * 1e6
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let ground = ground();
    if let [repeat, name, parts, count] = arguments.as_slice()
        && repeat == "--repeat"
    {
        let shape = SHAPES.iter().find(|shape| shape.name == name).expect("a shape");
        let count: usize = count.parse().expect("a number");
        judge(shape, parts.parse().expect("a number"), &ground, |once| (0..count).for_each(|_| once()));
        return;
    }
    println!("| engine | text | bytes | p50 | limit | 10x the text, in instructions | limit |");
    println!("|---|---|---|---|---|---|---|");
    for shape in SHAPES {
        let mut time = 0.0;
        judge(shape, shape.typical, &ground, |once| time = p50(2_000, once));
        let bytes = |parts| shape.text(parts).len() as f64;
        // The frame of a text does not grow, so ten times the parts are less than ten times the text.
        let small = shape.typical.max(4);
        let large = (small..).find(|parts| bytes(*parts) >= 10.0 * bytes(small)).expect("it grows");
        let growth = instructions(shape, small).zip(instructions(shape, large)).map(|(few, many)| many / few);
        let factor = bytes(large) / bytes(small);
        let grown = growth.map(|growth| limits::judge("verifier-growth", growth)).unwrap_or_default();
        let growth = growth.map_or_else(|| "-".to_owned(), |growth| format!("{growth:.1}x for {factor:.1}x"));
        let (size, kept) = (bytes(shape.typical), kept(shape.engine, time));
        println!("| {} | {} | {size} | {time:.1} µs | {kept} | {growth} | {grown} |", shape.engine, shape.name);
    }
    conformance_texts(&ground);
    against_the_bare_parser(&ground);
    limits::end();
}

/// What the time of a verdict is held to; a SQL verdict is held to its parser instead.
fn kept(engine: &str, time: f64) -> String {
    if engine == "sql" { String::new() } else { limits::judge("verifier-time", time) }
}

/// Every conformance text of 100 bytes to 2 KB, once each after a warm-up: what people and agents write.
fn conformance_texts(ground: &Ground) {
    println!("\n| engine | conformance texts of 100 B to 2 KB | p50 | limit | p90 |\n|---|---|---|---|---|");
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    for (engine, verifier) in [("shell", &Shell as &dyn Verifier), ("math", &Math), ("sql", &Sql)] {
        let mut times = Vec::new();
        for entry in std::fs::read_dir(top.join(engine)).expect("a folder of cases") {
            let path = entry.expect("an entry").path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for line in text.lines().filter(|line| line.starts_with('{')) {
                let document = json::parse(line, &Limits::STATE).expect("JSON");
                let root = document.root();
                let action = root.get("action").unwrap_or(root);
                let query = action.get("query").or_else(|| root.get("cmd"));
                let size = query.and_then(|query| query.as_str()).map_or(0, |text| text.text().len());
                if !(100..=2_000).contains(&size) {
                    continue;
                }
                let parameters = action.get("parameters");
                let action = ActionText { kind: "", query, code: None, target: None, parameters };
                let mut once = || {
                    let _ = black_box(verifier.verify(black_box(&action), ground));
                };
                once();
                times.push(median((0..5).map(|_| time(&mut once)).collect()));
            }
        }
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(f64::NAN);
        println!("| {engine} | {} | {:.1} µs | {} | {:.1} µs |", times.len(), at(50), kept(engine, at(50)), at(90));
    }
}

/// The verifier and the parser it stands on, on the same text, turn by turn.
fn against_the_bare_parser(ground: &Ground) {
    println!("\n| sql | bare parser | verifier | ratio | limit |\n|---|---|---|---|---|");
    for shape in SHAPES.iter().filter(|shape| shape.engine == "sql") {
        let text = shape.text(shape.typical);
        let dialect = sqlparser::dialect::PostgreSqlDialect {};
        let mut bare = || {
            let _ = black_box(sqlparser::parser::Parser::parse_sql(&dialect, black_box(&text)));
        };
        let (mut parser, mut verifier) = (Vec::new(), Vec::new());
        judge(shape, shape.typical, ground, |once| {
            for _ in 0..3_000 {
                parser.push(time(&mut bare));
                verifier.push(time(once));
            }
        });
        let (parser, verifier) = (median(parser), median(verifier));
        let (ratio, name) = (verifier / parser, shape.name);
        let limit = limits::judge("verifier-parser", ratio);
        println!("| {name} | {parser:.1} µs | {verifier:.1} µs | {ratio:.2}x | {limit} |");
    }
}

/// Instructions of one verdict: the difference between many and few, so that loading does not count.
fn instructions(shape: &Shape, parts: usize) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let count = |repeats: usize| {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args(["--repeat", shape.name, &parts.to_string(), &repeats.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse::<f64>().ok())
    };
    Some((count(12)? - count(2)?) / 10.0)
}
