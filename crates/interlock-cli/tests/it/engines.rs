//! `interlock shell classify` and `interlock engine`, run as a user runs them.

use std::fs;

use super::{path, run, run_with_input, text};

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn a_line_is_labelled_and_the_part_that_decides_underlined() {
    let found = run(&["shell", "classify", "ls src && rm -rf build"]);
    assert_eq!(found.status.code(), Some(1));
    let shown = text(&found.stdout);
    assert!(shown.starts_with("destructive\n"), "{shown}");
    assert!(shown.contains("ls src && rm -rf build") && shown.contains("^^^^^^^^^^^^"), "{shown}");
    assert!(shown.contains("`rm`"), "{shown}");
    let clean = run(&["shell", "classify", "git log --oneline | head -3"]);
    assert_eq!(clean.status.code(), Some(0));
    assert!(
        text(&clean.stdout).starts_with("read_only\n") && text(&clean.stdout).contains("assumes: plain repository")
    );
    // A line that begins with a dash is a line, and one from standard input too.
    assert_eq!(run(&["shell", "classify", "--", "-x"]).status.code(), Some(1));
    assert_eq!(run_with_input(&["shell", "classify", "-"], b"cat x\n").status.code(), Some(0));
    assert_eq!(run(&["shell", "classify"]).status.code(), Some(2));
    assert_eq!(run(&["shell", "classify", "ls", "--commands", "nowhere.toml"]).status.code(), Some(2));
}

#[test]
fn what_an_agent_wrote_does_not_move_the_cursor() {
    let found = run(&["shell", "classify", "echo \u{1b}[2J\u{202e} > out"]);
    assert!(!text(&found.stdout).contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn one_object_a_line_in_one_a_line_out() {
    let input = "{\"cmd\":\"ls\"}\n\n{\"cmd\":\"echo x > out\"}\nnot json\n{\"command\":\"ls\"}\n{\"cmd\":\"rm x\"}\n";
    let found = run_with_input(&["shell", "classify", "--jsonl"], input.as_bytes());
    assert_eq!(found.status.code(), Some(0));
    let lines: Vec<serde_json::Value> = text(&found.stdout).lines().map(|line| json(line.as_bytes())).collect();
    assert_eq!(lines.len(), 5);
    let labels: Vec<&str> = lines.iter().map(|line| line["label"].as_str().unwrap_or("")).collect();
    assert_eq!(labels, ["read_only", "write", "", "", "destructive"]);
    assert!(lines[2]["error"]["message"].is_string() && lines[3]["error"]["message"].is_string());
    let effect = &lines[1]["effects"][1];
    assert_eq!((&effect["effect"], &effect["span"]), (&"write".into(), &serde_json::json!([7, 12])));
}

#[test]
fn the_shell_the_table_and_the_repository_can_be_given() {
    let label = |arguments: &[&str]| {
        let whole: Vec<&str> = ["shell", "classify", "--json"].iter().chain(arguments).copied().collect();
        json(&run(&whole).stdout)["label"].as_str().map(str::to_owned)
    };
    assert_eq!(label(&["[[ a > b ]]"]).as_deref(), Some("read_only"));
    assert_eq!(label(&["[[ a > b ]]", "--shell", "sh"]).as_deref(), Some("unknown"));
    assert_eq!(label(&["ls", "--shell", "fish"]).as_deref(), Some("unknown"));

    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("commands.toml");
    fs::write(&table, "[mytool]\neffect = \"read_only\"\nopen = true\n").expect("written");
    assert_eq!(label(&["mytool x", "--commands", path(&table)]).as_deref(), Some("read_only"));
    fs::write(&table, "[rm]\neffect = \"read_only\"\n").expect("written");
    assert_eq!(run(&["shell", "classify", "rm x", "--commands", path(&table)]).status.code(), Some(2));

    let git = folder.path().join("repository/.git");
    fs::create_dir_all(&git).expect("a folder");
    let directory = git.parent().expect("a parent");
    let with = |config: &str| {
        fs::write(git.join("config"), config).expect("written");
        label(&["git status", "--directory", path(directory)])
    };
    assert_eq!(with("[core]\n\tbare = false\n").as_deref(), Some("read_only"));
    for named in [
        "[core]\n\tfsmonitor = ./run\n",
        "[diff \"x\"]\n\ttextconv = ./run\n",
        "[core]\n\tpager = ./run\n",
        "[filter \"x\"]\n\tclean = ./run\n",
        "[include]\n\tpath = ../more\n",
        "[core]\n\tfsmonitor = a\\\n  b\n",
        "not a configuration [",
    ] {
        fs::write(directory.join("more"), "[core]\n\tfsmonitor = ./run\n").expect("written");
        assert_eq!(with(named).as_deref(), Some("unknown"), "{named}");
    }
}

#[test]
fn a_verifier_answers_with_checks_and_evidence() {
    let found = run(&["engine", "math", "2 + 2 = 5", "--json"]);
    assert_eq!(found.status.code(), Some(1));
    let answer = json(&found.stdout);
    assert_eq!(answer["status"], "CORRECTED");
    assert_eq!(answer["corrected"], "2 + 2 = 4");
    assert_eq!(answer["risk"], "low");
    assert_eq!(answer["evidence"]["engine"], "math");
    assert_eq!(answer["evidence"]["format"], 1);
    assert!(answer["evidence"]["certificate"].is_object());
    assert!(answer["checks"].as_array().is_some_and(|checks| checks.iter().all(|check| check["message"].is_string())));
    assert_eq!(run(&["engine", "math", "2 + 2 = 4"]).status.code(), Some(0));
    assert_eq!(run(&["engine", "math", "2+2", "--expected", "4"]).status.code(), Some(0));
    assert_eq!(run(&["engine", "math", "-2 = 0 - 2"]).status.code(), Some(0));
    assert_eq!(run_with_input(&["engine", "math"], b"1 + 1 = 2\n").status.code(), Some(0));
    assert_eq!(run(&["engine", "fact", "x"]).status.code(), Some(2));

    let shown = run(&["engine", "sql", "DROP TABLE orders", "--dialect", "postgres"]);
    assert_eq!(shown.status.code(), Some(0), "understood, so VERIFIED");
    assert!(
        text(&shown.stdout).contains("critical risk") && text(&shown.stdout).contains("✗ no_destructive_operations")
    );
    assert_eq!(run(&["engine", "sql", "SELECT id FROM t WHERE 1=1"]).status.code(), Some(1));
}

#[test]
fn a_dialect_and_a_schema_typed_here_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = folder.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE orders (id INT, total INT);").expect("written");
    let status = |query: &str| {
        let found = run(&["engine", "sql", query, "--dialect", "postgres", "--schema", path(&schema), "--json"]);
        json(&found.stdout)["status"].as_str().map(str::to_owned)
    };
    assert_eq!(status("SELECT id FROM orders").as_deref(), Some("VERIFIED"));
    assert_eq!(status("SELECT name FROM orders").as_deref(), Some("FAILED"));
    assert_eq!(run(&["engine", "sql", "SELECT 1", "--schema", "nowhere.sql"]).status.code(), Some(2));
    let input = "{\"query\":\"SELECT id FROM t\",\"parameters\":{\"dialect\":\"sqlite\"}}\n{\"query\":1}\n{\"sql\":\"x\"}\n[]\n";
    let found = run_with_input(&["engine", "sql", "--jsonl"], input.as_bytes());
    let lines: Vec<serde_json::Value> = text(&found.stdout).lines().map(|line| json(line.as_bytes())).collect();
    assert_eq!((found.status.code(), lines.len()), (Some(0), 4));
    assert_eq!((&lines[0]["status"], &lines[0]["risk"]), (&"VERIFIED".into(), &"low".into()));
    assert!(lines.iter().skip(1).all(|line| line["error"]["message"].is_string()));
    // What the command says holds for every line; a line that says otherwise is not guessed about.
    let top = r#"{"query":"SELECT TOP 1 id FROM orders"}"#;
    let input = format!(
        "{top}\n{}\n{}\n",
        top.replace('}', r#","parameters":{"dialect":"mssql"}}"#),
        r#"{"query":"SELECT 1","parameters":{"dialect":"sqlite"}}"#
    );
    let statuses = |dialect: &str| -> Vec<Option<String>> {
        let found = run_with_input(&["engine", "sql", "--jsonl", "--dialect", dialect], input.as_bytes());
        text(&found.stdout).lines().map(|line| json(line.as_bytes())["status"].as_str().map(str::to_owned)).collect()
    };
    let of = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned)).to_vec();
    assert_eq!(statuses("mssql"), of([Some("VERIFIED"), Some("VERIFIED"), None]));
    assert_eq!(statuses("sqlite"), of([Some("UNCERTAIN"), None, Some("VERIFIED")]));
    let input = r#"{"query":"SELECT name FROM orders"}"#;
    let found = run_with_input(&["engine", "sql", "--jsonl", "--schema", path(&schema)], input.as_bytes());
    assert_eq!(json(&found.stdout)["status"], "FAILED", "the schema of the command is not ignored");
}
