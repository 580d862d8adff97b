//! The shell engine from outside: labelled lines, wrappers around them, hostile texts, and what must hold of every
//! analysis.

use std::fs;
use std::path::{Path, PathBuf};

use interlock_core::bundle::ShellSettings;
use interlock_core::call::Effect;
use interlock_verifiers::shell::{
    Analysis, Assumption, Commands, Executor, GitBlame, GitPrograms, Hooks, Setting, TEXT_BYTES_MAX, classify,
};

fn setting() -> Setting {
    Setting::built_in().expect("the table is sound")
}

fn label(text: &str) -> Effect {
    classify(text, &setting()).label
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/shell")
}

/// The lines of a file, each an object.
fn lines(name: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder().join(name)).expect("a file of cases");
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

fn text<'v>(case: &'v serde_json::Value, key: &str) -> &'v str {
    case.get(key).and_then(serde_json::Value::as_str).unwrap_or_else(|| panic!("no `{key}` in {case}"))
}

/// Files whose lines have a label that the rules give without doubt.
fn labelled_files() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).expect("the folder of cases") {
        let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
        // Pairs have a test of their own; where the rules leave a label open, there is nothing to hold us to.
        if name != "pairs.jsonl" && name != "debatable.jsonl" {
            assert!(name.ends_with(".jsonl"), "nobody reads {name}");
            names.push(name);
        }
    }
    names.sort();
    names
}

#[test]
fn every_labelled_line_gets_its_label() {
    let setting = setting();
    let (mut harmless, mut others, mut wrong) = (0, 0, Vec::new());
    for name in labelled_files() {
        for case in lines(&name) {
            let (line, expected) = (text(&case, "cmd"), text(&case, "expect"));
            let analysis = classify(line, &setting);
            check_analysis(line, &analysis);
            *if expected == "read_only" { &mut harmless } else { &mut others } += 1;
            if analysis.label.as_str() != expected {
                wrong.push(format!("{name}: {line:?} is {}, not {expected}", analysis.label));
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(harmless >= 400 && others >= 1_000, "{harmless} harmless and {others} other lines are too few");
}

/// What a third party can check of an analysis without the analyser: the label is the strictest effect, every effect
/// has a place in the text, and the command it names stands in the text.
fn check_analysis(line: &str, analysis: &Analysis) {
    let printed: serde_json::Value = serde_json::from_str(&analysis.to_json()).expect("JSON");
    let order = ["read_only", "write", "network", "unknown", "destructive"];
    let rank = |word: &str| order.iter().position(|known| *known == word).expect("a known effect");
    let effects = printed["effects"].as_array().expect("effects");
    let strictest = effects.iter().map(|effect| rank(text(effect, "effect"))).max().unwrap_or(0);
    assert_eq!(strictest, rank(text(&printed, "label")), "the label of {line:?} is not its strictest effect");
    for effect in effects {
        let span: Vec<usize> = effect["span"]
            .as_array()
            .expect("a span")
            .iter()
            .map(|at| at.as_u64().expect("a number") as usize)
            .collect();
        let part = line.get(span[0]..span[1]).unwrap_or_else(|| panic!("{span:?} is no part of {line:?}"));
        assert!(!text(effect, "why").is_empty(), "an effect of {line:?} without a reason");
        // Without quotes and escapes the name is readable, unless it is spelled in codes or comes from braces.
        let plain: String = line.chars().filter(|letter| !"'\"\\\n{},".contains(*letter)).collect();
        let name = text(effect, "command").split(' ').next().unwrap_or("");
        let coded = line.contains("$'") || line.contains("..");
        assert!(!part.is_empty() && (coded || plain.contains(name)), "`{name}` is not in {line:?}");
    }
}

#[test]
fn no_wrapper_lowers_what_destroys() {
    let setting = setting();
    for case in lines("pairs.jsonl") {
        for key in ["base", "wrapped"] {
            assert_eq!(classify(text(&case, key), &setting).label, Effect::Destructive, "{}", text(&case, key));
        }
    }
    let around = [
        "{}; ls",
        "ls; {}",
        "ls && {}",
        "ls || {}",
        "ls | {}",
        "{} | cat",
        "( {} )",
        "{ {}; }",
        "if true; then {}; fi",
        "if {}; then :; fi",
        "while {}; do :; done",
        "for x in a b; do {}; done",
        "case a in a) {};; esac",
        "f() { {}; }; f",
        "f() { {}; }",
        "echo \"$( {} )\"",
        "echo $( {} ) >/dev/null",
        "x=$( {} )",
        "cat <( {} )",
        "! {}",
        "time {}",
        "{} &",
        "coproc {}",
        "ls\n{}",
        "ls # comment\n{}",
        "until ls; do {}; done",
        "cat <<E\n$( {} )\nE",
        "echo \"${x:-$( {} )}\"",
        "[[ -n $( {} ) ]]",
        "echo $(( $( {} ) ))",
        "a[$( {} )]=1",
    ];
    let bases = lines("destructive.jsonl");
    // Comments, here-documents and continued lines take the words around them along.
    let plain = bases.iter().map(|case| text(case, "cmd")).filter(|line| {
        !line.contains(['\n', '#']) && !line.ends_with('&') && !line.starts_with('!') && !line.starts_with("time")
    });
    let mut tried = 0;
    for base in plain {
        for wrapper in around {
            // `{}` of `find` stays as it is: only the first one is ours.
            let line = wrapper.replacen("{}", base, 1);
            // A definition is no command that can be a coprocess.
            if wrapper.starts_with("coproc") && (base.contains("()") || base.starts_with("function")) {
                continue;
            }
            assert_eq!(classify(&line, &setting).label, Effect::Destructive, "{line}");
            tried += 1;
        }
    }
    assert!(tried > 5_000, "only {tried} lines");
}

#[test]
fn a_program_run_by_a_wrapper_keeps_its_effect() {
    let wrappers = [
        "env",
        "env -i",
        "env -u X",
        "nohup",
        "nice",
        "nice -n 5",
        "ionice -c3",
        "timeout 5",
        "timeout -k 1 5",
        "stdbuf -oL",
        "setsid",
        "command",
        "command -p",
        "exec",
        "exec -a x",
        "sudo",
        "sudo -u root",
        "doas",
        "xargs",
        "xargs -n1",
        "xargs -0 -P4",
        "busybox",
        "watch -n1",
        "watch -x",
        "parallel",
        "flock /dev/null",
        "find . -exec",
        "time -p",
        "chrt 1",
        "\\env",
        "/usr/bin/env",
        "'nice'",
        "env nice timeout 5 stdbuf -o0",
    ];
    for wrapper in wrappers {
        assert_eq!(label(&format!("{wrapper} rm x")), Effect::Destructive, "{wrapper} rm x");
        assert_eq!(label(&format!("{wrapper} /bin/rm -rf x")), Effect::Destructive, "{wrapper} /bin/rm -rf x");
        assert!(label(&format!("{wrapper} touch x")) >= Effect::Write, "{wrapper} touch x");
        assert!(label(&format!("{wrapper} ./x")) >= Effect::Unknown, "{wrapper} ./x");
    }
}

#[test]
fn a_line_is_understood_only_if_every_part_is() {
    for line in ["rm y", "ls; rm y", "bash -c 'rm y'", "curl https://example.com"] {
        assert!(classify(line, &setting()).understood, "{line}");
    }
    let many = format!("{}python3 x.py; rm y", "rm z; ".repeat(3_000));
    for line in ["python3 x.py; rm y", "rm y; $X", "sudo rm y", "rm y; bash -c 'if'", "bash -c \"rm $x\"", &many] {
        let analysis = classify(line, &setting());
        assert_eq!(analysis.label, Effect::Destructive);
        assert!(!analysis.understood, "{}", line.get(..40).unwrap_or(line));
    }
}

#[test]
fn what_was_found_before_the_fuel_ran_out_stays_found() {
    // The export at the end makes a second walk of it, for which there is not enough fuel.
    let line = format!("{}rm y; export A=1", "ls; ".repeat(6_000));
    assert_eq!(label(&line), Effect::Destructive);
    let without = format!("{}rm y", "ls; ".repeat(6_000));
    assert!(classify(&without, &setting()).understood, "one walk has enough");
}

#[test]
fn a_text_that_is_walked_twice_lists_its_effects_once() {
    let effects = classify("ls | cat; rm y; export A=1", &setting()).causes;
    for (at, effect) in effects.iter().enumerate() {
        assert!(!effects[..at].contains(effect), "{effect:?} is there twice");
    }
    assert_eq!(effects.iter().filter(|effect| effect.effect == Effect::Destructive).count(), 1);
}

#[test]
fn other_shells_are_not_taken_for_bash() {
    let with = |text: &str, executor: Executor| classify(text, &Setting { executor, ..setting() }).label;
    assert_eq!(with("ls | head", Executor::Other), Effect::ReadOnly);
    for text in ["[[ b > a ]]", "ls |& cat", "echo $'\\x72'", "cat <(ls)", "a=(1 2)", "ls &>/dev/null", "(( 1 > 2 ))"] {
        assert_eq!(with(text, Executor::Bash), Effect::ReadOnly, "{text}");
        assert_eq!(with(text, Executor::Other), Effect::Unknown, "{text}");
    }
    assert_eq!(with("ls *(e:'rm x':)", Executor::Other), Effect::Unknown);
    assert_eq!(with("ls ${(e)x}", Executor::Other), Effect::Unknown);
    assert_eq!(with("ls", Executor::Foreign), Effect::Unknown);
    for (name, executor) in
        [("bash", Executor::Bash), ("zsh", Executor::Other), ("fish", Executor::Foreign), ("pwsh", Executor::Foreign)]
    {
        assert_eq!(Executor::named(name), executor);
    }
}

#[test]
fn what_zsh_reads_differently_is_unknown_unless_it_is_bash() {
    let with = |text: &str, executor: Executor| classify(text, &Setting { executor, ..setting() }).label;
    let otherwise = [
        "echo x >! out",
        "echo x >>! out",
        "ls >&! out",
        "ls &>! out",
        "x=.enX; cat $x:s,X,v,",
        "x=.mcp.json.bak; cp b.txt $x:r",
        "x=.ENVY; cat \"$x:l\"",
        "set -- .ENVY; cat $1:l",
        "x=.envX; cat $x[1,4]",
        "x=.ENV; cat ${x:l}",
        "x=a; cat ${x::=.env}",
        "x='.e?v'; cat $~x",
        "x='b.txt .env'; cat $=x",
        "x='s/a/b/ f'; sed $x",
        "x='-n 5'; head $x f",
        "cat =x",
        "x=/srv/.ssh; cat ~x/id_rsa",
        "cat .en<1-9>v",
        "cd a b; cat x",
        "cd -1; cat x",
        "hash -d x=/srv/.ssh",
        "path=(./evil); ls",
        "for path in ./evil; do ls; done",
        "read path < f; ls",
        "x=`y=.ENV; cat $y:l`",
        "cat <<E\n$x:l\nE",
    ];
    for text in otherwise {
        assert!(with(text, Executor::BashOrZsh) >= Effect::Unknown, "{text}");
        assert!(with(text, Executor::Bash) < Effect::Unknown, "{text}");
    }
    let alike = [
        "ls | head",
        "[[ -f x ]] && cat x",
        "a=(1 2); echo \"${a[@]}\"",
        "x=a; cat \"$x\" ${x}:r",
        "echo \"$x: done\"",
        "echo \"total $x:\"",
        "[ \"$x\" = y ] || cat ~/x",
        "grep 'a$' x",
        "diff <(ls a) <(ls b)",
        "x=abc; echo ${x:0:2} ${x:-d} ${x: -1}",
        "cd src && ls",
        "files='a.py b.txt'; wc -l $files",
        "x='a b'; for i in $x; do echo $i; done",
    ];
    for text in alike {
        assert_eq!(with(text, Executor::BashOrZsh), Effect::ReadOnly, "{text}");
    }
}

#[test]
fn a_repository_that_names_programs_makes_git_unknown() {
    let with = |line: &str, git: Option<GitPrograms>| classify(line, &Setting { git, ..setting() });
    let plain = GitPrograms::default;
    assert_eq!(with("git status", None).label, Effect::ReadOnly);
    assert_eq!(with("git status", None).assumes, [Assumption::PlainRepository]);
    assert_eq!(with("git status", Some(plain())).label, Effect::ReadOnly);
    assert!(with("git status", Some(plain())).assumes.is_empty());
    let always = GitPrograms { always: Some("core.fsmonitor".to_owned()), ..plain() };
    let found = with("git status", Some(always));
    assert_eq!(found.label, Effect::Unknown);
    let deciding = found.deciding().expect("an effect");
    assert_eq!(deciding.blame, Some(GitBlame::Program("core.fsmonitor".to_owned())));
    assert!(deciding.why.contains("`core.fsmonitor`"), "{found:?}");
}

#[test]
fn what_else_a_configuration_of_git_says_is_about_some_subcommands() {
    let with = |line: &str, git: &GitPrograms| classify(line, &Setting { git: Some(git.clone()), ..setting() }).label;
    let hooks = |are_guarded| GitPrograms {
        hooks: Some(Hooks { setting: "core.hookspath".to_owned(), are_guarded, present: None }),
        ..GitPrograms::default()
    };
    for line in ["git commit -m x", "git checkout main", "git rebase main", "git stash"] {
        assert_eq!(with(line, &hooks(true)), Effect::Unknown, "{line}");
    }
    for line in ["git status", "git diff", "git log -3", "git branch"] {
        assert_eq!(with(line, &hooks(true)), Effect::ReadOnly, "{line}");
    }
    assert_eq!(with("git add -A", &hooks(true)), Effect::Write);
    // Anybody can put a hook for the index there.
    for line in ["git status", "git diff", "git add -A"] {
        assert_eq!(with(line, &hooks(false)), Effect::Unknown, "{line}");
    }
    assert_eq!(with("git log -3", &hooks(false)), Effect::ReadOnly);
    let alias = GitPrograms { aliases: ["lfs".to_owned()].into(), ..GitPrograms::default() };
    assert_eq!(with("git lfs status", &alias), Effect::Unknown);
    assert_eq!(with("git status", &alias), Effect::ReadOnly);
    let promisor = GitPrograms { fetches: Some("remote.p.promisor".to_owned()), ..GitPrograms::default() };
    assert_eq!(with("git cat-file -p HEAD", &promisor), Effect::Network);
    assert_eq!(with("git --no-lazy-fetch cat-file -p HEAD", &promisor), Effect::ReadOnly);
    assert_eq!(with("git config --list", &promisor), Effect::ReadOnly);
}

#[test]
fn a_bundle_can_add_commands_and_never_loosens() {
    let load =
        |text: &str| Commands::load(Some(&ShellSettings { commands: Some(text.to_owned()), commands_file: None }));
    let added =
        load("[tool]\neffect = \"read_only\"\nflags = \"-a\"\nout = \"-o\"\n").map(Setting::with).expect("sound");
    assert_eq!(classify("tool -a x", &added).label, Effect::ReadOnly);
    assert_eq!(classify("tool -o out x", &added).label, Effect::Write);
    assert_eq!(classify("tool -z", &added).label, Effect::Unknown);
    assert_eq!(classify("tool", &setting()).label, Effect::Unknown);
    let tighter = load("[cat]\neffect = \"unknown\"\n").map(Setting::with).expect("sound");
    assert_eq!(classify("cat x", &tighter).label, Effect::Unknown);
    let with_git = load("[git]\neffect = \"network\"\nopen = true\n").map(Setting::with).expect("sound");
    assert_eq!(classify("git status", &with_git).label, Effect::Network);
    // The same effect with fewer questions asked takes nothing away: both entries count.
    let same = load("[sort]\neffect = \"read_only\"\nopen = true\n").map(Setting::with).expect("sound");
    assert_eq!(classify("sort -o out x", &same).label, Effect::Write);
    for loose in [
        "[rm]\neffect = \"read_only\"\n",
        "[curl]\neffect = \"write\"\n",
        "[x]\neffect = \"harmless\"\n",
        "[x]\n",
        "[x]\neffect = \"write\"\nflag = \"-a\"\n",
        "[x]\neffect = \"write\"\nflags = \"a\"\n",
        "[x]\neffect = \"write\"\noperands = \"some\"\n",
        "[x]\neffect = \"write\"\nflags = \"-a\"\nargs = \"-a\"\n",
        "[echo]\neffect = \"read_only\"\ntraits = { is = [\"without-paths\"] }\n",
        "[x]\neffect = \"unknown\"\nanswers = \"x\"\n",
        "[x]\ntraits = {}\n",
    ] {
        assert!(load(loose).is_err(), "{loose}");
    }
}

#[test]
fn a_group_has_commands_and_is_none() {
    let load =
        |text: &str| Commands::load(Some(&ShellSettings { commands: Some(text.to_owned()), commands_file: None }));
    let table = "[ours]\neffect = \"write\"\nflags = \"-a\"\nnames = \"one two\"\n[ours.because]\n\"it says so\" = \"three\"\n\
        [four]\nas = \"ours\"\n";
    let added = load(table).map(Setting::with).expect("sound");
    for name in ["one", "two", "three", "four"] {
        assert_eq!(classify(&format!("{name} -a"), &added).label, Effect::Write, "{name}");
        assert_eq!(classify(&format!("{name} -b"), &added).label, Effect::Unknown, "{name}");
    }
    assert_eq!(classify("ours -a", &added).label, Effect::Unknown);
    assert_eq!(classify("three -a", &added).deciding().expect("an effect").why, "it says so");
    let twice = "[a]\neffect = \"write\"\nnames = \"x\"\n[x]\neffect = \"write\"\n";
    let both = "[a]\neffect = \"write\"\nnames = \"x\"\naliases = \"y\"\n";
    let loosens = "[a]\neffect = \"read_only\"\nnames = \"rm\"\n";
    for wrong in [twice, both, loosens, "[a]\nas = \"b\"\n"] {
        assert!(load(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_table_is_large_enough() {
    let count = Commands::load(None).expect("sound").len();
    assert!(count >= 250, "{count} commands");
}

#[test]
fn hostile_sizes_are_answered() {
    let repeated = [
        "(",
        ")",
        "((",
        "$(",
        "$((",
        "`",
        "\"",
        "'",
        "{",
        "}",
        "{a,",
        "[[ ",
        "${x:-",
        "$'",
        "<(",
        "case x in ",
        "if ",
        "while ",
        "f() { ",
        "<<E ",
        "a[",
        "a=(",
        "!",
        "!  ",
        "time ",
        "\\",
        "\\\n",
        ";",
        "&",
        "&&",
        "|",
        "#",
        "$",
        "~",
        "*",
        "ls;",
        "ls|",
        "ls&&",
        "-",
        "--",
        "{1..9}",
        "{a,b}{c,d}",
        "x=1;",
        "export A=1;",
        "eval ",
        "bash -c '",
        "env ",
        "sudo ",
        "((;))",
        "( ( ; ) )",
        "( case",
        "if ( case",
        "case x in x) ",
        "declare a[",
        "cat <<E\n",
        "$[",
        "\u{a0}",
        "é",
        "\0",
    ];
    for part in repeated {
        for size in [100, 10_000, TEXT_BYTES_MAX] {
            let line = part.repeat(size / part.len() + 1);
            let analysis = classify(&line, &setting());
            assert!(Effect::ALL.contains(&analysis.label));
        }
    }
    // A command, and what it is given over and over.
    for (before, part, after) in [
        ("declare ", "a=1 ", ""),
        ("declare -A ", "a ", ""),
        ("typeset -x ", "a[1]=1 ", ""),
        ("export ", "a=1 ", ""),
        ("f() { local ", "a=1 ", "; }; f"),
        ("readonly ", "a=1 ", ""),
        ("read ", "-a b ", ""),
        ("unset ", "a[1] ", ""),
        ("mapfile ", "-t a ", ""),
        ("trap '", "ls;", "' INT"),
        ("alias ", "a ", ""),
        ("wait ", "-p a ", ""),
        ("let ", "a=a+1 ", ""),
        ("sort ", "-Q$x ", ""),
        ("a=(", "{1..200} ", ")"),
        ("echo ", "{1..200} ", ""),
        ("echo {1..200}", "a", ""),
        ("x=a; x=b; echo ", "\"$x$x\" ", ""),
    ] {
        let line = format!("{before}{}{after}", part.repeat((TEXT_BYTES_MAX - 100) / part.len()));
        assert!(Effect::ALL.contains(&classify(&line, &setting()).label));
    }
    assert_eq!(label(&"a".repeat(10_000_000)), Effect::Unknown);
    assert_eq!(label(&format!("echo {}", "x ".repeat(20_000))), Effect::ReadOnly);
    assert_eq!(
        label(&format!("{}ls{}", "(".repeat(30), ")".repeat(30))),
        Effect::ReadOnly,
        "an expression in parentheses"
    );
    assert_eq!(label(&format!("{}ls{}", "( ".repeat(15), " )".repeat(15))), Effect::ReadOnly);
    assert_eq!(label(&format!("{}ls{}", "( ".repeat(10_000), " )".repeat(10_000))), Effect::Unknown);
}

#[test]
fn what_is_read_often_is_paid_for_often() {
    // One half of the line is long, the other half has it read over and over: without fuel for that, minutes each.
    let half = TEXT_BYTES_MAX / 2 - 100;
    let numbered: String = (0..12_000).map(|number| format!("a{number}=1;")).collect();
    let f = ["f;"].as_slice();
    let longs = [
        (format!("cd {}", "a/".repeat(half / 2)), ["ls > b;", "( cd b; ls > c );"].as_slice()),
        (format!("x={}", "a".repeat(half)), &["ls >\"$x\";", "echo $x$x;"]),
        (numbered, &["eval 'a=1';", "trap 'a=b' INT;"]),
        (format!("f() {{ echo {}; }}", "a ".repeat(half / 2)), f),
        (format!("f() {{ echo {}; }}", "a".repeat(half)), f),
        (format!("f() {{ bash -c '# {}'; }}", "a".repeat(half)), f),
        (format!("f() {{ cat <<E\n{}\nE\n}}", "$x".repeat(half / 2)), f),
        (format!("f() {{ [[ {} a ]]; }}", "a && ".repeat(half / 5)), f),
        (format!("f() {{ a=({}); }}", "x ".repeat(half / 2)), f),
    ];
    for (long, readers) in &longs {
        for reader in *readers {
            let line = format!("{long}\n{}", reader.repeat(half / reader.len()));
            assert_eq!(label(&line), Effect::Unknown, "more than is paid for is not looked at");
        }
    }
    let short = format!("f() {{ echo {}; }}\n{}", "a ".repeat(100), "f;".repeat(1_000));
    assert_eq!(label(&short), Effect::ReadOnly);
    assert_eq!(label("cd ./././a/..; cd .; ls > b"), Effect::Write);
    assert_eq!(label("cd ./././.git/x/..; cd hooks; ls > pre-commit"), Effect::Unknown);
    assert_eq!(label(&format!("cd {}.git; cd hooks; ls > pre-commit", "./".repeat(4_000))), Effect::Unknown);
    assert_eq!(label(&format!("cd {}; ls", "a".repeat(1_024))), Effect::ReadOnly);
    assert_eq!(label(&format!("cd {}; ls", "a".repeat(1_025))), Effect::Unknown);
}

#[test]
fn calls_that_call_cost_no_more_than_they_may() {
    // Each function calls the one before twice: doubling is cut off, and what is cut off is unknown.
    let mut line = "f0() { ls; }; ".to_owned();
    for at in 1..40 {
        line.push_str(&format!("f{at}() {{ f{}; f{}; }}; ", at - 1, at - 1));
    }
    line.push_str("f39");
    assert_eq!(label(&line), Effect::Unknown);
}

#[test]
fn the_deepest_line_fits_on_a_small_stack() {
    // Texts in texts, each with as many levels and wrappers as are read: the deepest that recursion goes.
    let deep = |texts: usize, (open, close): (&str, &str), levels: usize, wrapper: &str, wrappers: usize| {
        let mut line = "ls".to_owned();
        for depth in 0..texts {
            let (open, close, wrapper) = (open.repeat(levels), close.repeat(levels), wrapper.repeat(wrappers));
            line = format!("{open}{wrapper}bash <<'E{depth}'\n{line}\nE{depth}\n{close}");
        }
        line
    };
    let judge = move || {
        let parentheses = ("( ", " )");
        assert_eq!(label(&deep(6, parentheses, 40, "env ", 39)), Effect::ReadOnly);
        assert_eq!(label(&deep(6, parentheses, 39, "env ", 40)), Effect::Unknown);
        assert_eq!(label(&deep(6, parentheses, 41, "env ", 39)), Effect::Unknown);
        assert_eq!(label(&deep(7, parentheses, 39, "env ", 39)), Effect::Unknown);
        let around =
            [parentheses, ("{ ", " }\n"), ("if ls; then ", " fi\n"), ("echo $( ", " )"), ("f() { ", " }; f\n")];
        for brackets in around {
            for wrapper in ["command ", "timeout 5 ", "sudo ", "xargs ", "find . -exec ", "env -S 'nice' ", "git "] {
                for levels in [12, 18, 19, 38, 39] {
                    assert!(Effect::ALL.contains(&label(&deep(6, brackets, levels, wrapper, 39))));
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(judge).expect("a thread");
    thread.join().expect("the labels hold");
}
