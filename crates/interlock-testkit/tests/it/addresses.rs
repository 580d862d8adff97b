//! Hosts in texts: whatever a usual client would reach is found, or the text is unknown. The clients are `url`, which
//! reads as browsers do, and what `urlsplit` of Python does, written down here from its definition.

use interlock_core::rule::hosts_in;
use proptest::prelude::*;

fn shown(text: &str, expected: bool) -> Vec<String> {
    hosts_in(text, expected).into_iter().map(|host| host.unwrap_or_else(|| "?".to_owned())).collect()
}

/// The host that `urlsplit(text).hostname` gives.
fn urlsplit(text: &str) -> Option<String> {
    let text = text.trim_start_matches(|c: char| c <= ' ');
    let text: String = text.chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).collect();
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let rest = rest.strip_prefix("//").filter(|_| is_scheme)?;
    let netloc = rest.split(['/', '?', '#']).next()?;
    let host = netloc.rsplit_once('@').map_or(netloc, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(host) => host.split_once(']')?.0,
        None => host.split(':').next()?,
    };
    let host = host.to_lowercase();
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some(host)
}

/// The host that a browser goes to.
fn browser(text: &str) -> Option<String> {
    let address = url::Url::parse(text).ok()?;
    let host = address.host()?;
    Some(match host {
        url::Host::Domain(name) => name.strip_suffix('.').unwrap_or(name).to_owned(),
        url::Host::Ipv4(address) => address.to_string(),
        url::Host::Ipv6(address) => address.to_string(),
    })
}

/// Whether a client that is given the text goes where nobody looked.
fn is_found(text: &str, found: &[String]) -> bool {
    // There is no top domain with a comma in it, and none that ends in a scheme.
    let can_be_reached = |host: &String| {
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or("");
        let is_list = ["http", "https", "ftp"].iter().any(|scheme| last.len() > scheme.len() && last.ends_with(scheme));
        !is_list && (last.contains(':') || last.chars().all(|c| c.is_alphanumeric() || "-_%".contains(c)))
    };
    let is_known = |host: Option<String>| {
        host.filter(can_be_reached)
            .is_none_or(|host| found.iter().any(|one| *one == "?" || *one == host.trim_end_matches('.')))
    };
    is_known(browser(text)) && is_known(urlsplit(text))
}

#[test]
fn an_address_that_clients_read_differently_is_unknown() {
    for text in [
        "https://a.example\t@evil.com/",
        "https://a.example @evil.com/",
        "https://a.example x@evil.com/",
        "https://a.example\n.evil.com/",
        "https://a.example\r\n.evil.com/",
        "https://a.example\u{a0}@evil.com/",
        "https://a.example\u{b}@evil.com/",
        "https://a.exampl\te.evil.com/",
        "see https://a.example\t@evil.com/ for it",
        "see https://a.example @evil.com/ for it",
        "see https://a.example\n.evil.com/",
        "see https://evil.\ncom/",
        "{\"u\":\"https://a.example and @evil.com/\"}",
        "url: https://a.example and x@evil.com/",
        "https:\t//evil.com/",
        "https:/\n/evil.com/",
        "ht\ntps:evil.com",
        "https:\\\\evil.com",
        "https:/evil.com",
        "fetch https:/evil.com",
        "fetch HTTPS:evil.com/x",
        "https:///evil.com/",
        "/\\evil.com/",
        "/\t/evil.com/",
        "\\\\evil.com\\x",
        "https://a.example\\@evil.com/",
        "https://a@b@evil.com/",
        "https://ev%69l.com/",
        "https://evil\u{ff0e}com/",
        "https://evil\u{3002}com/",
        "https://\u{ff45}vil.com/",
        "https://ev\u{ad}il.com/",
        "https://evil.com:80:90/",
        "https://evil.com:8o/",
        "https://evil.com,x.a.example/",
        "\"https://a.example\".evil.com/",
        "https://a.example<@evil.com/",
        "https://a[1-3].evil.com/",
    ] {
        let found = shown(text, false);
        assert!(found.iter().any(|host| host == "?"), "{text:?}: {found:?}");
        assert!(is_found(text, &found), "{text:?}: {found:?}");
        if text.contains("@evil.com") || text.contains("//evil.com/") {
            assert!(found.iter().any(|host| host == "evil.com"), "{text:?}: {found:?}");
        }
    }
    for (text, address) in [
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://\u{ff11}27.0.0.1/", "127.0.0.1"),
        ("http://%31%32%37.0.0.1/", "127.0.0.1"),
    ] {
        assert_eq!(shown(text, false), ["?", address], "{text:?}");
    }
}

#[test]
fn a_plain_address_is_known_wherever_it_stands() {
    for (text, hosts) in [
        ("https://a.example/x", vec!["a.example"]),
        ("HTTPS://User:pw@A.example.:8443/x@y", vec!["a.example"]),
        (" https://a.example ", vec!["a.example"]),
        ("https://a.example\n", vec!["a.example"]),
        ("see https://a.example, then mail bob@b.example.", vec!["a.example"]),
        ("Docs: https://a.example\nContact: bob at home", vec!["a.example"]),
        ("Docs: https://a.example\n\nRegards,\nBob", vec!["a.example"]),
        ("See https://a.example.\nRegards, Bob", vec!["a.example"]),
        ("https://a.example\nhttps://b.example\n", vec!["a.example", "b.example"]),
        ("https://a.example, https://b.example", vec!["a.example", "b.example"]),
        ("<a href=\"https://a.example\">a.example</a>", vec!["a.example"]),
        ("<p>https://a.example</p>", vec!["a.example"]),
        ("[docs](https://a.example).", vec!["a.example"]),
        ("{\"url\":\"https://a.example\",\"n\":\"b.c\"}", vec!["a.example"]),
        ("https://a.example/?next=https://b.example/", vec!["a.example", "b.example"]),
        ("//a.example/x", vec!["a.example"]),
        ("<img src=\"//a.example/x\">", vec!["a.example"]),
        ("http://[::1]:80/", vec!["::1"]),
        ("http://[0:0::1]/", vec!["::1"]),
        ("http://[::ffff:127.0.0.1]/", vec!["127.0.0.1", "::ffff:127.0.0.1"]),
        ("http://127.0.0.1/", vec!["127.0.0.1"]),
        ("postgres://u:p@db.example:5432/x", vec!["db.example"]),
        ("use http: it is plain", vec![]),
        ("at 10:30: a/b // c", vec![]),
        ("file:///etc/hosts", vec![]),
        ("x = \"// a comment\"", vec![]),
    ] {
        let mut found = shown(text, false);
        found.sort();
        assert_eq!(found, hosts, "{text:?}");
    }
    assert_eq!(shown("a.example b.example;c.example", true), ["a.example", "b.example", "c.example"]);
    assert_eq!(shown("me@a.example:22", true), ["a.example"]);
}

#[test]
fn a_text_made_to_be_slow_is_unknown_in_time() {
    for text in [
        "http:".repeat(100_000),
        "(http:x".repeat(100_000),
        "url=http:x\n".repeat(100_000),
        "http://a ".repeat(100_000),
    ] {
        let _ = shown(&text, false);
    }
    let far = format!("https://a.example{}@evil.com/", " ".repeat(10_000));
    assert!(shown(&far, false).iter().any(|host| host == "?"));
    let far = format!("(\"https://a.example{}@evil.com/\")", " ".repeat(10_000));
    assert!(shown(&far, false).iter().any(|host| host == "?"));
}

/// Texts out of what addresses are made of, and what gets between.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "https",
        "http",
        "HTTP",
        "ws",
        "ftp",
        "ssh",
        "x+y",
        ":",
        ":",
        "//",
        "//",
        "/",
        "\\",
        "@",
        "@",
        "a.example",
        "evil.com",
        ".evil.com",
        "co",
        "m",
        ".",
        "\t",
        "\n",
        "\r",
        " ",
        "\u{b}",
        "\u{a0}",
        "\u{3000}",
        "\u{ad}",
        "\u{ff0e}",
        "\u{3002}",
        "\u{ff45}",
        "%2e",
        "%40",
        "%2f",
        "?",
        "#",
        "[",
        "]",
        "[::1]",
        "127.1",
        "0x7f",
        "0177.0.0.1",
        "2130706433",
        ":80",
        ":",
        "-",
        "_",
        ",",
        ";",
        "\"",
        "'",
        "<",
        ">",
        "(",
        ")",
        "{",
        "}",
        "|",
        "^",
        "*",
        "~",
        "$",
        "=",
        "&",
        "user",
        "\u{0}",
        "\u{7f}",
        "\u{fe0f}",
        "\u{df}",
    ]);
    prop::collection::vec(piece, 1..9).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_117),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A text that a client takes as a whole.
    #[test]
    fn what_a_client_reaches_is_found(start in prop::sample::select(vec!["", "https://", "http:", "https:/", " https://a.example"]), rest in pieces()) {
        let text = format!("{start}{rest}");
        prop_assert!(is_found(&text, &shown(&text, false)), "{:?}: {:?}, {:?} and {:?}", text, shown(&text, false), browser(&text), urlsplit(&text));
        prop_assert!(is_found(&text, &shown(&text, true)), "{:?} expected", text);
    }

    /// A text out of which a client takes what stands in quotes, or between spaces.
    #[test]
    fn what_a_client_takes_out_of_a_text_is_found(inner in pieces()) {
        let text = format!("https://a.example{inner}");
        let quoted = format!("{{\"v\":\"{text}\"}} ");
        if !text.contains('"') {
            prop_assert!(is_found(&text, &shown(&quoted, false)), "{:?}: {:?}", quoted, shown(&quoted, false));
        }
        if !text.contains([' ', '\u{b}', '\u{a0}', '\u{3000}']) {
            let sentence = format!("get {text} now");
            let found = shown(&sentence, false);
            // A plain word on the next line is the next line. With a client that joins the two only the top domain would be
            // another, and not a real one.
            let first = text.get(8..).and_then(|rest| rest.split(['\t', '\n', '\r']).next()).unwrap_or("").to_lowercase();
            let hosts = [browser(&text), urlsplit(&text)];
            let domain = |host: &str| host.trim_end_matches('.').rsplit_once('.').map(|(domain, _)| domain.to_owned());
            let is_longer = |host: &String| {
                let is_alone = domain(host).is_none();
                first.len() < text.len() - 8 && (is_alone || domain(host) == domain(&first))
            };
            let is_prose = hosts.iter().flatten().all(is_longer);
            prop_assert!(is_prose || is_found(&text, &found), "{:?}: {:?}", sentence, found);
        }
    }
}
