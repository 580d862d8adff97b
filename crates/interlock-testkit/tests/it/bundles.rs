//! What a bundle may say, and what it may not.

use std::collections::BTreeMap;

use interlock_core::bundle::Bundle;

fn load(text: &str) -> Result<Bundle, String> {
    let guard = r#"{"required_schema": {"type": "object", "properties": {}}}"#;
    let files = BTreeMap::from([("tasks.json".to_owned(), guard.to_owned())]);
    Bundle::load(text, &files, false).map_err(|error| error.to_string())
}

#[test]
fn what_would_loosen_or_never_match_is_refused() {
    for (text, reason) in [
        ("[actions.file_delete]\nengine = \"tool_control\"\nrisk = \"low\"", "may only rise"),
        ("[actions.execute_code]\nengine = \"tool_control\"\nrisk = \"critical\"", "engine is fixed"),
        ("[tools]\nsafe = [\"drop_table\"]", "dangerous"),
        ("[tools]\nsafe = [\"execute_code\"]", "verified by an engine"),
        ("[[rule]]\naction = \"*\"\nthen = \"allow\"", "default into allow"),
        ("[[rule]]\naction = \"api_call\"\nhost = \"*\"\nthen = \"allow\"", "default into allow"),
        ("[[rule]]\naction = \"no_such_type\"\nthen = \"deny\"", "can never match"),
        ("[[rule]]\neffect = \"networking\"\nthen = \"deny\"", "can never match"),
        ("[[rule]]\neffect = \"network\"\nthen = \"allow\"", "default into allow"),
        ("[[rule]]\ntool = \"Bash\"\nthen = \"allow\"", "default into allow"),
        ("[[rule]]\ntool = \"Bash\"\ncommand = \"*\"\nthen = \"allow\"", "default into allow"),
        ("[[rule]]\ntool = \"Bash\"\npath = \"**\"\nthen = \"allow\"", "default into allow"),
        ("[[rule]]\ntool = \"a b\"\nthen = \"deny\"", "can never match"),
        ("[[rule]]\ntool = \"mcp__a__b__c\"\nhost = \"x.y\"\nthen = \"allow\"", "two servers"),
        ("[[rule]]\ntool = \"Bash\"\ncommand = \" \"\nthen = \"deny\"", "can never match"),
        ("[[rule]]\naction = \"file_read\"\ncommand = \"ls\"\nthen = \"deny\"", "only tool calls"),
        ("[[rule]]\ntool = \"Read\"\npath = \"/x\"\nlifts = [\"self\"]\nthen = \"allow\"", "cannot be lifted"),
        ("[[rule]]\ntool = \"Read\"\npath = \"/x\"\nlifts = [\"secrets\"]\nthen = \"ask\"", "lifts"),
        ("[[rule]]\naction = \"api_call\"\nhost = \"\"\nthen = \"deny\"", "can never match"),
        ("[[rule]]\naction = \"file_read\"\npath = \"/etc/../x\"\nthen = \"deny\"", "can never match"),
        ("[[rule]]\naction = \"file_read\"\ntool = \"file_read\"\nthen = \"deny\"", "exactly one"),
        ("[[rule]]\naction = \"file_read\"", "then"),
        ("[actions.\"a b\"]\nengine = \"math\"", "is not a name"),
        ("[actions.x]\nengine = \"magic\"", "unknown variant"),
        ("[actions.x]\nengine = \"math\"\nprice_usd = 0.0000001", "six places"),
        ("[actions.x]\nengine = \"math\"\nprice_usd = -1", "six places"),
        ("default = \"allow\"", "unknown field"),
        ("format = 2", "format 1"),
        ("[guards.tasks]\nfile = \"none.json\"", "no file"),
        ("[guards.tasks]\ntransition_rules = {}", "required_schema"),
        ("[guards.tasks]\nrequired_schema = {type = \"object\"}", "guards.tasks"),
        ("x = ", "line 1"),
    ] {
        let refused = load(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(refused.contains(reason), "{text}: {refused}");
    }
}

#[test]
fn what_extends_or_tightens_is_one_text_with_one_digest() {
    let text = r#"
        [actions.order_lookup]
        engine = "tool_control"
        risk = "low"
        price_usd = 0.10
        [actions.calculate]
        engine = "math"
        risk = "medium"
        [tools]
        dangerous = ["close_account"]
        [guards.tasks]
        file = "tasks.json"
        [guards.inline]
        required_schema = {type = "object", properties = {n = {type = "number", minimum = 0.5}}}
        transition_rules = {monotonic_integer_paths = ["$.n"]}
        [[rule]]
        action = "read_file"
        path = "/etc/**"
        then = "deny"
    "#;
    let bundle = load(text).expect("a bundle");
    assert_eq!(bundle.guards().len(), 2);
    assert!(bundle.guards()["inline"].verify_payload(r#"{"n": 0.4}"#).is_err());
    assert!(bundle.guards()["inline"].verify_payload(r#"{"n": 0.5}"#).is_ok());
    let respelled = text.replace("0.10", "0.1").replace("        ", "") + "\n# a comment\n";
    assert_eq!(load(&respelled).expect("a bundle").digest(), bundle.digest(), "spelling does not count");
    assert_ne!(load("").expect("a bundle").digest(), bundle.digest());
    let again = Bundle::from_text(bundle.text()).expect("a bundle");
    assert_eq!((again.text(), again.digest()), (bundle.text(), bundle.digest()));
}

#[test]
fn what_is_no_toml_is_told_in_one_line_and_shows_no_secret() {
    for (text, at, what) in [
        ("[tools]\nsafe = [\n\"a\" \"b\"]\n", "line 3, column 5: ", "comma"),
        ("foo = 1\n", "line 1, column 1: ", "unknown field `foo`"),
        ("[principals.p]\nwebhook = \"https://a.example/\"\nsecret = \"whsec_hidden\" x\n", "line 3, column ", ""),
        ("[principals.p]\nsecret = \"whsec_hidden\nwebhook = 1\n", "line 2, column ", ""),
        ("a = \"\u{e4}\u{e4}\" b", "line 1, column 10: ", ""),
    ] {
        let refused = load(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(refused.starts_with(at) && refused.contains(what), "{text}: {refused}");
        assert!(!refused.contains('\n') && !refused.contains("hidden"), "{text}: {refused}");
    }
}
