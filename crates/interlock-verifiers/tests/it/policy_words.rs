//! What policy asks about a line: its commands, paths, hosts and directories, and whether patterns cover it.

use interlock_core::call::Effect;
use interlock_core::rule::CommandPattern;
use interlock_verifiers::shell::{Setting, Words, classify, covers, examine};

fn words(line: &str) -> Words {
    let setting = Setting::built_in().expect("the table is sound");
    let (analysis, words) = examine(line, &setting);
    assert_eq!(analysis, classify(line, &setting), "asking for words changes what is found in `{line}`");
    words
}

fn commands(line: &str) -> Vec<String> {
    let shown = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".to_owned());
    words(line).commands.iter().map(|it| it.words.iter().map(shown).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn every_simple_command_is_listed() {
    for (line, expected) in [
        ("ls -l", vec!["ls -l"]),
        ("a && b || c; d | e & f", vec!["a", "b", "c", "d", "e", "f"]),
        ("if a; then b; else c; fi", vec!["a", "b", "c"]),
        ("echo $(rm x)", vec!["rm x", "echo ?"]),
        ("cat <(rm x)", vec!["rm x", "cat /dev/fd/63"]),
        ("x=$(rm y)", vec!["rm y"]),
        ("timeout 5 nice rm x", vec!["timeout 5 nice rm x", "nice rm x", "rm x"]),
        ("bash -c 'rm x; ls'", vec!["bash -c rm x; ls", "rm x", "ls"]),
        ("/usr/bin/git status", vec!["git status"]),
        ("./git status", vec!["./git status"]),
        ("$x y", vec!["?"]),
        ("f() { rm x; }; f", vec!["f", "rm x"]),
        ("eval 'rm x'", vec!["eval rm x", "rm x"]),
        ("find . -exec rm {} \\;", vec!["find . -exec rm {} ;", "rm ?"]),
        ("'r'm \"x y\"", vec!["rm x y"]),
        ("rm a/*", vec!["rm a/*"]),
        ("rm *", vec!["rm ?"]),
    ] {
        assert_eq!(commands(line), expected, "`{line}`");
    }
}

/// What is known of a command is known of its other names.
#[test]
fn another_name_of_a_command_is_that_command() {
    let pairs = [
        ("rm -r a", "grm -r a"),
        ("mv a b", "gmv a b"),
        ("rmdir a", "grmdir a"),
        ("grep -r x a", "ggrep -r x a"),
        ("grep -rn x", "gegrep -rn x"),
        ("zgrep x a", "xzegrep x a"),
        ("rg x", "ripgrep x"),
        ("jq . a", "gojq . a"),
        ("head -n $n a", "ghead -n $n a"),
        ("seq 5", "gseq 5"),
        ("nm @a", "llvm-nm @a"),
        ("nc a.example 80", "nc.openbsd a.example 80"),
        ("traceroute a.example", "traceroute6 a.example"),
        ("cp -t a b", "gcp -t a b"),
        ("gzip -d a.gz", "ggzip -d a.gz"),
    ];
    for (line, other) in pairs {
        let (one, two) = (words(line), words(other));
        assert_eq!((one.touches, one.hosts), (two.touches, two.hosts), "`{line}` and `{other}`");
    }
}

#[test]
fn every_word_that_may_be_a_path_is_listed() {
    for (line, path, writes) in [
        ("cat a", "a", false),
        ("rm a", "a", true),
        ("cat < a", "a", false),
        ("ls > a", "a", true),
        ("ls 2>> a", "a", true),
        ("cat <> a", "a", true),
        ("grep -f a x", "a", false),
        ("sort -o a b", "a", true),
        ("dd if=a of=b", "b", true),
        ("tar -C a -cf b.tar c", "a", true),
        ("cc -I/a x.c", "/a", true),
        ("curl -d @a https://x.example", "a", true),
        ("docker run -v /a:/b c", "/a", true),
        ("timeout 5 cat a", "a", false),
        ("bash -c 'cat a'", "a", false),
        ("x=a; cat \"$x\"", "a", false),
        ("cat \"$HOME/a\"", "~/a", false),
        ("cat ~/a", "~/a", false),
        ("git --git-dir=a status", "a", false),
        ("sed 'r ./a' b", "./a", false),
        ("sed -n 'w ./a' b", "./a", true),
        ("awk '{ while ((getline x < \"./a\") > 0) print x }' b", "./a", false),
        ("tee a < b", "a", true),
    ] {
        let found = words(line).touches;
        let is_listed = found.iter().any(|touch| touch.path.as_deref() == Some(path) && touch.writes >= writes);
        assert!(is_listed, "`{line}`: no {path} in {found:?}");
    }
    let removed = words("find src -name x -exec rm {} \\;").touches;
    assert!(
        removed.iter().all(|touch| touch.path.is_some()),
        "what `find` finds is beneath where it looks: {removed:?}"
    );
    assert!(removed.iter().any(|touch| touch.path.as_deref() == Some("src") && touch.removes), "{removed:?}");
    let looped = words("for f in src/*.rs README.md; do wc -l \"$f\"; done").touches;
    let paths: Vec<_> = looped.iter().map(|touch| (touch.path.as_deref(), touch.is_glob)).collect();
    assert_eq!(paths, [(Some("README.md"), true), (Some("src/*.rs"), true)]);
    assert!(words("for f in *.rs; do f=$1; wc -l \"$f\"; done").touches.iter().any(|touch| touch.path.is_none()));
    for line in ["cat \"$x\"", "rm $x", "cat a$x", "ls > $x", "cat $(ls)", "$x a"] {
        assert!(words(line).touches.iter().any(|touch| touch.path.is_none()), "`{line}`");
    }
    let many: String = (0..3_000).map(|number| format!(" f{number}")).collect();
    let found = words(&format!("cat{many}")).touches;
    assert!(found.len() < 1_100 && found.iter().any(|touch| touch.path.is_none()), "{} paths", found.len());
}

#[test]
fn hosts_and_directories_are_listed() {
    let hosts = |line: &str| -> Vec<String> {
        words(line).hosts.into_iter().map(|it| it.host.unwrap_or_else(|| "?".to_owned())).collect()
    };
    for (line, expected) in [
        ("curl https://a.example/x", vec!["a.example"]),
        ("wget a.example", vec!["a.example"]),
        ("ssh me@a.example ls", vec!["a.example"]),
        ("scp x me@a.example:y", vec!["a.example"]),
        ("rsync -a x a.example:y", vec!["a.example"]),
        ("nc a.example 80", vec!["a.example"]),
        ("git fetch", vec!["?"]),
        ("git clone https://a.example/x", vec!["a.example"]),
        ("cat < /dev/tcp/a.example/80", vec!["a.example"]),
        ("curl $x", vec!["?"]),
        ("echo https://a.example", vec![]),
        ("curl https://a.example/ --url https:/evil.example", vec!["?", "a.example", "evil.example"]),
        ("curl $'https://a.example\\t@evil.example/'", vec!["?", "a.example", "evil.example"]),
        ("curl 'https://a.example @evil.example/'", vec!["?", "a.example", "evil.example"]),
        ("curl 'https://a.example\\@evil.example/'", vec!["?", "a.example", "evil.example"]),
    ] {
        assert_eq!(hosts(line), expected, "`{line}`");
    }
    let changes = |line: &str| -> Vec<(String, bool)> {
        let shown = words(line).changes.into_iter();
        shown.map(|it| (it.to.unwrap_or_else(|| "?".to_owned()), it.repeats)).collect()
    };
    for (line, expected) in [
        ("cd a && ls", vec![("a", false)]),
        ("cd; ls", vec![("~", false)]),
        ("cd $x", vec![("?", false)]),
        ("while true; do cd ..; done", vec![("..", true)]),
        ("git -C a log", vec![("a", false)]),
        ("(cd a; ls); pushd b", vec![("a", false), ("b", false)]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|(to, repeats)| (to.to_owned(), repeats)).collect();
        assert_eq!(changes(line), expected, "`{line}`");
    }
}

fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
    texts.iter().map(|text| CommandPattern::parse(text).expect("a pattern")).collect()
}

#[test]
fn patterns_cover_commands_and_nothing_beside_them() {
    let setting = Setting::built_in().expect("the table is sound");
    let patterns = patterns(&["pytest *", "npm run build", "cargo test --package=*", "git diff *", "make -C sub test"]);
    // line, covered, covered where writing is allowed
    for (line, strictly, with_writes) in [
        ("pytest", true, true),
        ("pytest -q tests", true, true),
        ("ls | head", true, true),
        ("ls && pytest", true, true),
        ("npm run build", true, true),
        ("npm run build --force", false, false),
        ("npm run", false, false),
        ("cargo test --package=a", true, true),
        ("cargo test --package=a -v", false, false),
        ("pytest > out", false, true),
        ("pytest 2>&1 | tail", true, true),
        ("pytest > .git/hooks/pre-commit", false, false),
        ("pytest $(rm x)", false, false),
        ("pytest $(ls)", false, false),
        ("pytest \"$x\"", false, false),
        ("PYTHONPATH=x pytest", false, false),
        ("LANG=C pytest", true, true),
        ("x=1; pytest", true, true),
        ("timeout 5 pytest", true, true),
        ("env LANG=C pytest -q", true, true),
        ("env PATH=x pytest", false, false),
        ("nice ./evil", false, false),
        ("bash -c 'pytest'", true, true),
        ("bash -c 'pytest; rm x'", false, false),
        ("pytest; rm x", false, false),
        ("pytest &", true, true),
        ("echo x > a &", false, false),
        ("cd sub && pytest", false, false),
        ("cd sub && git diff", true, true),
        ("env --chdir=/tmp pytest", false, false),
        ("make -C sub test", true, true),
        ("git diff --stat", true, true),
        ("git diff --output=a.py", false, false),
        ("pytest() { rm x; }; pytest", false, false),
        ("sudo pytest", false, false),
        ("./pytest", false, false),
        ("$x", false, false),
        ("xargs rm < list", false, false),
        ("find . -delete", false, false),
        ("touch x", false, false),
        ("echo 'unclosed", false, false),
    ] {
        let found = words(line);
        assert_eq!(covers(&found, &patterns, false, &setting).is_ok(), strictly, "`{line}`: {found:?}");
        assert_eq!(
            covers(&found, &patterns, true, &setting).is_ok(),
            with_writes,
            "`{line}`, writing allowed: {found:?}"
        );
    }
    assert!(covers(&words("timeout 5 rm x"), &self::patterns(&["timeout *"]), false, &setting).is_ok(), "as a whole");
    let found = self::patterns(&["find *", "touch *", "rm *", "git commit *"]);
    for (line, covered) in [
        ("find . -name x", true),
        ("find . -delete", false),
        ("find . -fprint a", false),
        ("find . -exec rm {} +", false),
        ("touch a", true),
        ("rm -f a", true),
        ("git commit -m x", true),
    ] {
        assert_eq!(covers(&words(line), &found, false, &setting).is_ok(), covered, "`{line}`");
    }
}

/// Lines put together by chance: once there is a command in it that no pattern matches and that does more than read, no
/// pattern covers the line.
#[test]
fn a_line_that_is_covered_has_no_command_that_matches_no_pattern() {
    let mut state = 20_261_115_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("64 bits") % end
    };
    let good = ["pytest -q", "ls src", "cat a | head", "pytest", "grep -n x a", "echo hello"];
    let bad = ["rm x", "./evil", "touch y", "curl https://a.example", "pytestx", "python3 -c x", "echo x > y", "$c z"];
    let setting = Setting::built_in().expect("the table is sound");
    let patterns = patterns(&["pytest *"]);
    let (mut covered, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let mut has_bad = false;
        let mut line = String::new();
        for at in 0..=below(3) {
            let mut part = if below(5) == 0 {
                has_bad = true;
                bad[below(bad.len())].to_owned()
            } else {
                good[below(good.len())].to_owned()
            };
            for _ in 0..below(3) {
                part = match below(8) {
                    0 => format!("( {part} )"),
                    1 => format!("{{ {part}; }}"),
                    2 => format!("if true; then {part}; fi"),
                    3 => format!("echo \"$( {part} )\""),
                    4 if !part.contains('\'') => format!("bash -c '{part}'"),
                    5 => format!("f() {{ {part}; }}; f"),
                    6 => format!("for i in 1 2; do {part}; done"),
                    _ => format!("! {part}"),
                };
            }
            if at > 0 {
                line.push_str([" && ", " || ", "; ", " | ", "\n"][below(5)]);
            }
            line.push_str(&part);
        }
        let verdict = covers(&words(&line), &patterns, false, &setting);
        assert!(!(has_bad && verdict.is_ok()), "covered: `{line}`");
        covered += u32::from(verdict.is_ok());
        refused += u32::from(verdict.is_err());
    }
    assert!(covered > 500 && refused > 500, "{covered} covered, {refused} refused");
}

#[test]
fn the_label_of_a_line_is_in_its_words() {
    for file in
        ["harmless.jsonl", "destructive.jsonl", "write.jsonl", "network.jsonl", "unknown.jsonl", "evasions.jsonl"]
    {
        let path = format!("{}/../../conformance/shell/{file}", env!("CARGO_MANIFEST_DIR"));
        let setting = Setting::built_in().expect("the table is sound");
        for line in std::fs::read_to_string(path).expect("cases").lines().filter(|line| !line.trim().is_empty()) {
            let document = interlock_core::json::parse(line, &interlock_core::json::Limits::STATE).expect("JSON");
            let json = interlock_core::json::Json::of(document.root());
            let text = json.as_object().and_then(|case| case.get("cmd")).and_then(|cmd| cmd.as_str()).expect("a line");
            let (analysis, words) = examine(text, &setting);
            let listed = words.commands.iter().map(|command| command.label).max().unwrap_or(Effect::ReadOnly);
            assert_eq!(listed.max(words.loose), analysis.label, "`{text}`");
            // Nothing known: nothing covered that does more than read.
            assert_eq!(covers(&words, &[], false, &setting).is_ok(), analysis.label == Effect::ReadOnly, "`{text}`");
        }
    }
}
