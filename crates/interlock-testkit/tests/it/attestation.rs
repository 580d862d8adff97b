//! Attestations: which answers carry one, that it says what is on record, that nothing but the token itself verifies,
//! and that keys survive and are never silently replaced.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use interlock_core::action::{ActionText, fingerprint};
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits};
use interlock_core::{Code, Digest};
use interlock_runtime::attestation::{
    Algorithm, AttestationKeys, Attested, FILE_NAME, Jwks, KEYS_LEN_MAX, LIFETIME_SECONDS, Reason, RotationFault,
    TOKEN_BYTES_MAX, verify,
};
use interlock_runtime::ledger::MemoryStore;
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{Answer, Client, OPERATOR_KEY, START_MS, Server};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};

const NOW: u64 = START_MS / 1_000;
const ORIGIN: &str = "interlock/0123456789abcdef";
const TRUSTED: &str = r#"{"name":"a","type":"trusted","principal_id":"p","permissions":{"allowed_engines":["math"]}}"#;

fn bundle() -> Bundle {
    Bundle::built_in().expect("a bundle")
}

fn text(answer: &Answer, key: &str) -> Option<String> {
    let document = json::parse(&answer.body, &Limits::STATE).expect("JSON");
    document.root().get(key)?.as_str().map(|text| text.text().to_owned())
}

fn digest(answer: &Answer, key: &str) -> Digest {
    Digest::parse(&text(answer, key).expect("a member")).expect("a digest")
}

/// The token of the body, which the head must have as well, or neither.
fn token(answer: &Answer) -> Option<String> {
    let in_head = answer.head.lines().find_map(|line| {
        let (name, token) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("QWED-Attestation").then(|| token.trim().to_owned())
    });
    let in_body = text(answer, "attestation");
    assert_eq!(in_head, in_body, "{}\n{}", answer.head, answer.body);
    in_body
}

fn ask(client: &mut Client, agent: &TestAgent, step: u32, action: &str, options: &str, key: Option<&str>) -> Answer {
    let body = format!(
        r#"{{"action":{action},"context":{{"conversation_id":"c","step_number":{step}}},"options":{options}}}"#
    );
    let mut headers = vec![("x-agent-token", agent.token.as_str())];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer")
}

fn published(client: &mut Client) -> Jwks {
    let answer = client.send("GET", "/.well-known/jwks.json", &[], "").expect("an answer");
    assert_eq!(answer.status, 200);
    let keys = Jwks::parse(&answer.body).expect("a key set");
    assert_eq!(keys.to_json(), answer.body, "read as it was written");
    keys
}

fn rotate(client: &mut Client, body: &str) -> Answer {
    client.send("POST", "/attestation/rotate", &[("x-api-key", OPERATOR_KEY)], body).expect("an answer")
}

const CALCULATE: &str = r#"{"type":"calculate","query":"1+1"}"#;
const WRITE: &str = r#"{"type":"file_write","parameters":{"path":"a.txt"}}"#;
const REQUIRED: &str = r#"{"require_attestation":true}"#;

#[test]
fn it_says_what_is_on_record() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    let agent = register(&mut client, TRUSTED).expect("an agent");
    let before = ask(&mut client, &agent, 1, CALCULATE, "{}", None);
    assert_eq!(token(&before), None, "low risk, and nobody asked");

    let answer = ask(&mut client, &agent, 2, WRITE, "{}", None);
    let keys = published(&mut client);
    let Attested { kid, algorithm, claims } =
        verify(&token(&answer).expect("high risk is attested"), &keys, NOW).expect("it holds");
    assert_eq!((kid.as_str(), algorithm), (keys.keys()[0].kid(), Algorithm::Es256));
    let document = json::parse(WRITE, &Limits::STATE).expect("JSON");
    let part = |key| document.root().get(key);
    let (query, code, target, parameters) = (part("query"), part("code"), part("target"), part("parameters"));
    let action = fingerprint(&ActionText { kind: "file_write", query, code, target, parameters });
    assert_eq!((claims.sub, claims.qwed.query_hash), (action, action));
    assert_eq!((claims.iss.as_str(), claims.iat, claims.exp), ("did:qwed:node:0123456789abcdef", NOW, NOW + 86_400));
    assert_eq!(claims.agent, format!("did:qwed:agent:{}", agent.id));
    assert_eq!(claims.decision.as_str(), text(&answer, "decision").expect("a decision"));
    assert_eq!(claims.decision_id, text(&answer, "decision_id").expect("an id"));
    assert_eq!(claims.leaf_hash, digest(&answer, "leaf_hash"));
    assert_eq!(claims.jti, format!("att_{}", &claims.leaf_hash.to_string()[7..39]));
    assert_eq!(claims.qwed.previous_hash, Some(digest(&before, "leaf_hash")), "the agent's entry before");
    assert!(claims.qwed.proof_hash.is_some());
    assert_eq!((claims.qwed.result.as_str(), claims.risk_level.as_str()), ("VERIFIED", "high"));
    assert_eq!(claims.bundle, bundle().digest());

    let asked = ask(&mut client, &agent, 3, r#"{"type":"calculate","query":"2+2"}"#, REQUIRED, None);
    let claims = verify(&token(&asked).expect("asked for"), &keys, NOW).expect("it holds").claims;
    assert_eq!((claims.risk_level.as_str(), claims.qwed.previous_hash), ("low", Some(digest(&answer, "leaf_hash"))));

    let body = r#"{"context":{"conversation_id":"c","step_number":4},"options":{"require_attestation":true}}"#;
    let path = format!("/agents/{}/tools/get_weather", agent.id);
    let tool = client.send("POST", &path, &[("x-agent-token", &agent.token)], body).expect("an answer");
    let claims = verify(&token(&tool).expect("asked for"), &keys, NOW).expect("it holds").claims;
    assert_eq!(claims.decision_id, text(&tool, "decision_id").expect("an id"));
}

#[test]
fn a_corrected_action_is_attested_and_not_the_wrong_one() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    let agent = register(&mut client, TRUSTED).expect("an agent");
    let wrong = r#"{"type":"calculate","query":"2+2","parameters":{"expected":5,"unit":"m"}}"#;
    let answer = ask(&mut client, &agent, 1, wrong, REQUIRED, Some("k"));
    assert_eq!(text(&answer, "decision").as_deref(), Some("CORRECTED"), "{}", answer.body);
    let claims = verify(&token(&answer).expect("asked for"), &published(&mut client), NOW).expect("it holds").claims;
    let of = |action: &str| {
        let document = json::parse(action, &Limits::STATE).expect("JSON");
        let part = |key| document.root().get(key);
        fingerprint(&ActionText {
            kind: "calculate",
            query: part("query"),
            code: part("code"),
            target: part("target"),
            parameters: part("parameters"),
        })
    };
    let document = json::parse(&answer.body, &Limits::STATE).expect("JSON");
    let corrected = document.root().get("corrected_action").expect("a corrected action").source();
    assert_eq!((claims.sub, claims.qwed.query_hash), (of(corrected), of(wrong)));
    assert_ne!(claims.sub, claims.qwed.query_hash);
    let again = ask(&mut client, &agent, 1, wrong, REQUIRED, Some("k"));
    let same = verify(&token(&again).expect("again"), &published(&mut client), NOW).expect("it holds").claims;
    assert_eq!(same, claims);
}

#[test]
fn an_answer_that_is_asked_for_again_carries_it_again() {
    let server = Server::in_memory(bundle());
    let mut client = server.client();
    let agent = register(&mut client, TRUSTED).expect("an agent");
    let first = token(&ask(&mut client, &agent, 1, WRITE, "{}", Some("k"))).expect("a token");
    let old = published(&mut client);
    server.clock.advance(60_000);
    assert_eq!(rotate(&mut client, r#"{"alg":"EdDSA"}"#).status, 200);
    let again = ask(&mut client, &agent, 1, WRITE, "{}", Some("k"));
    assert!(again.body.contains("\"replayed\":true"), "{}", again.body);
    let again = token(&again).expect("a token");
    let new = published(&mut client);
    let (first, again) = (verify(&first, &new, NOW).expect("old"), verify(&again, &new, NOW).map_err(|_| again));
    let again = again.expect("new");
    assert_eq!(first.claims, again.claims, "said again, it says the same");
    assert_eq!((first.algorithm, again.algorithm), (Algorithm::Es256, Algorithm::EdDsa));
    assert_eq!((old.keys().len(), new.keys().len()), (1, 2));
    assert_eq!(new.keys()[0].kid(), again.kid, "the key that signs comes first");
}

#[test]
fn no_approval_leaves_without_the_attestation_it_needs() {
    let server = Server::start_with(Box::new(MemoryStore::default()), None, bundle(), None);
    let mut client = server.client();
    let agent = register(&mut client, TRUSTED).expect("an agent");
    assert_eq!(ask(&mut client, &agent, 1, CALCULATE, "{}", None).status, 200, "nothing is due");
    for (step, action, options) in [(2, CALCULATE, REQUIRED), (3, WRITE, "{}")] {
        let answer = ask(&mut client, &agent, step, action, options, None);
        assert_eq!((answer.status, text(&answer, "decision").as_deref()), (503, Some("DENIED")), "{}", answer.body);
        assert!(answer.body.contains(Code::FaultInternal.as_str()) && token(&answer).is_none(), "{}", answer.body);
    }
    let pending = ask(&mut client, &agent, 4, r#"{"type":"delete_database"}"#, REQUIRED, None);
    assert_eq!((pending.status, text(&pending, "decision").as_deref()), (200, Some("PENDING")), "{}", pending.body);
    assert!(published(&mut client).keys().is_empty());
    assert_eq!(rotate(&mut client, "{}").status, 503);
}

/// A token of one second after the start, and the keys it verifies with.
fn sample(algorithm: Algorithm) -> (String, Jwks) {
    let keys = Arc::new(AttestationKeys::in_memory(ORIGIN, algorithm).expect("a key"));
    let server = Server::start_with(Box::new(MemoryStore::default()), None, bundle(), Some(Arc::clone(&keys)));
    server.clock.advance(1_000);
    let mut client = server.client();
    let agent = register(&mut client, TRUSTED).expect("an agent");
    (token(&ask(&mut client, &agent, 1, WRITE, "{}", None)).expect("a token"), keys.jwks())
}

#[test]
fn a_changed_byte_anywhere_fails() {
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let (token, keys) = sample(algorithm);
        verify(&token, &keys, NOW + 1).expect("it holds");
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        for (position, byte) in token.bytes().enumerate() {
            let ends_part = matches!(token.as_bytes().get(position + 1), None | Some(b'.'));
            let place = letters.iter().position(|letter| *letter == byte);
            // At the end of a part are the bits that belong to no byte, so everything is tried there.
            let others: Vec<u8> = match place {
                Some(_) if ends_part => letters.iter().copied().filter(|letter| *letter != byte).collect(),
                Some(place) => vec![letters[(place + 1) % 64], letters[place ^ 32], b'.', b'=', b' '],
                None => vec![b'A', b',', b'\n'],
            };
            for other in others {
                let mut changed = token.clone().into_bytes();
                changed[position] = other;
                let changed = String::from_utf8(changed).expect("ASCII");
                assert!(verify(&changed, &keys, NOW + 1).is_err(), "{position}: {}", char::from(other));
            }
            assert!(verify(&format!("{}{}", &token[..position], &token[position + 1..]), &keys, NOW + 1).is_err());
            assert!(verify(&token[..position], &keys, NOW + 1).is_err());
        }
        for more in ["=", ".", "A", "AA", "\n", " ", "\0", ".e30"] {
            assert!(verify(&format!("{token}{more}"), &keys, NOW + 1).is_err(), "{more:?}");
            assert!(verify(&format!("{more}{token}"), &keys, NOW + 1).is_err(), "{more:?}");
        }
    }
}

#[test]
fn times_are_kept_to_the_second() {
    let (token, keys) = sample(Algorithm::Es256);
    let iat = NOW + 1;
    let exp = iat + LIFETIME_SECONDS;
    assert_eq!(verify(&token, &keys, iat - 1), Err(Reason::NotYet { iat }));
    assert!(verify(&token, &keys, iat).is_ok() && verify(&token, &keys, exp - 1).is_ok());
    for late in [exp, exp + 1, u64::MAX] {
        assert_eq!(verify(&token, &keys, late), Err(Reason::Expired { exp }));
    }
}

/// A key of the test's own, to sign what no server would.
struct Forger {
    pair: Ed25519KeyPair,
    kid: String,
    keys: Jwks,
}

impl Forger {
    fn new() -> Forger {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
        let x = BASE64URL.encode(pair.public_key().as_ref());
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        let kid = BASE64URL.encode(Digest::of(&[&members]).bytes());
        let set = format!(
            r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"{kid}","alg":"EdDSA","use":"sig"}}]}}"#
        );
        Forger { pair, kid, keys: Jwks::parse(&set).expect("a key set") }
    }

    fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", BASE64URL.encode(header.replace("KID", &self.kid)), BASE64URL.encode(claims));
        format!("{signed}.{}", BASE64URL.encode(self.pair.sign(signed.as_bytes())))
    }
}

const HEADER: &str = r#"{"alg":"EdDSA","kid":"KID","typ":"qwed-attestation+jwt"}"#;

fn claims_text() -> String {
    let (token, _) = sample(Algorithm::Es256);
    String::from_utf8(BASE64URL.decode(token.split('.').nth(1).expect("claims")).expect("base64")).expect("UTF-8")
}

#[test]
fn a_signature_alone_makes_no_attestation() {
    let (forger, claims) = (Forger::new(), claims_text());
    let check = |header: &str, claims: &str| verify(&forger.sign(header, claims), &forger.keys, NOW + 1);
    check(HEADER, &claims).expect("the frame of this test holds");
    let swap = |from: &str, to: &str| {
        assert!(claims.contains(from), "{from} is not in {claims}");
        claims.replacen(from, to, 1)
    };
    let leaf = claims.split("\"leaf_hash\":\"sha256:").nth(1).expect("a leaf").get(..64).expect("64 digits");
    for wrong in [
        swap("\"decision\":\"APPROVED\"", "\"decision\":\"PENDING\""),
        swap("\"decision\":\"APPROVED\"", "\"decision\":\"YES\""),
        swap("did:qwed:node:", "did:web:"),
        swap("did:qwed:agent:", "did:web:"),
        swap("\"jti\":\"att_", "\"jti\":\"att_0"),
        swap(&format!("\"leaf_hash\":\"sha256:{leaf}"), &format!("\"leaf_hash\":\"sha256:{}", "0".repeat(64))),
        swap("\"query_hash\":\"sha256:", "\"query_hash\":\"sha512:"),
        swap("\"version\":\"1.0\"", "\"version\":\"1.1\""),
        swap("\"version\":\"1.0\"", "\"version\":1.0"),
        swap("\"result\":\"VERIFIED\",", ""),
        swap("\"iat\":", "\"nbf\":0,\"iat\":"),
        swap("\"iat\":", "\"iat\":0,\"iat\":"),
        swap("\"iat\":", "\"iat\":1e"),
        swap("\"exp\":", "\"exp\":-"),
        swap("\"exp\":1", "\"exp\":0"),
        format!("[{claims}]"),
        format!("{claims} {{}}"),
        "null".to_owned(),
        String::new(),
    ] {
        assert!(matches!(check(HEADER, &wrong), Err(Reason::Claims(_))), "{wrong}: {:?}", check(HEADER, &wrong));
    }
    // An APPROVED token must not name another action than the one asked for.
    let sub = claims.split("\"sub\":\"sha256:").nth(1).expect("a subject").get(..64).expect("64 digits");
    assert!(matches!(check(HEADER, &swap(sub, &"0".repeat(64))), Err(Reason::Claims(_))));
    for (header, expected) in [
        (r#"{"alg":"EdDSA","kid":"KID"}"#, "`alg`, `kid` and `typ`"),
        (r#"{"alg":"EdDSA","kid":"KID","typ":"JWT"}"#, "`typ`"),
        (r#"{"alg":"EdDSA","kid":"KID","typ":"application/qwed-attestation+jwt"}"#, "`typ`"),
        (r#"{"alg":"none","kid":"KID","typ":"qwed-attestation+jwt"}"#, "`alg`"),
        (r#"{"alg":"ES256","kid":"KID","typ":"qwed-attestation+jwt"}"#, "`alg`"),
        (r#"{"alg":"HS256","kid":"KID","typ":"qwed-attestation+jwt"}"#, "`alg`"),
        (r#"{"alg":"eddsa","kid":"KID","typ":"qwed-attestation+jwt"}"#, "`alg`"),
        (r#"{"alg":"EdDSA","kid":"KID","typ":"qwed-attestation+jwt","crit":[]}"#, "`crit`"),
        (r#"{"alg":"EdDSA","kid":"KID","typ":"qwed-attestation+jwt","jku":"http://x"}"#, "a member other"),
        (r#"{"alg":"EdDSA","kid":"KID","typ":"qwed-attestation+jwt","b64":false}"#, "a member other"),
        (r#"{"alg":"EdDSA","kid":7,"typ":"qwed-attestation+jwt"}"#, "strings"),
        (r#"{"alg":"EdDSA","alg":"EdDSA","kid":"KID","typ":"qwed-attestation+jwt"}"#, "the header"),
        (r#"["EdDSA"]"#, "an object"),
        ("", "the header"),
    ] {
        let reason = check(header, &claims).expect_err(header);
        assert!(matches!(&reason, Reason::Header(_)) && reason.to_string().contains(expected), "{header}: {reason}");
    }
    let other = HEADER.replace("KID", &"A".repeat(43));
    assert_eq!(check(&other, &claims), Err(Reason::UnknownKey));
    let own = forger.sign(HEADER, &claims);
    assert_eq!(verify(&own, &sample(Algorithm::EdDsa).1, NOW + 1), Err(Reason::UnknownKey));
    assert_eq!(verify(&"A".repeat(TOKEN_BYTES_MAX + 1), &forger.keys, 0), Err(Reason::TooLong));
    assert!(matches!(verify(&"A".repeat(TOKEN_BYTES_MAX), &forger.keys, 0), Err(Reason::Form(_))));
    for form in ["", ".", "..", "...", "a.b", "\u{e9}.\u{e9}.\u{e9}"] {
        assert!(verify(form, &forger.keys, 0).is_err(), "{form}");
    }
}

#[test]
fn key_sets_are_read_strictly() {
    let (_, keys) = sample(Algorithm::Es256);
    let text = keys.to_json();
    assert_eq!(Jwks::parse(&text), Ok(keys));
    // RFC 7638 and RFC 8037 give the thumbprint of this key.
    let rfc = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k","alg":"EdDSA","use":"sig"}]}"#;
    assert_eq!(Jwks::parse(rfc).expect("a key set").to_json().len(), rfc.len());
    let key = text.strip_prefix("{\"keys\":[").and_then(|text| text.strip_suffix("]}")).expect("one key");
    for wrong in [
        format!("{{\"keys\":[{key},{key}]}}"),
        format!("{{\"keys\":[{}]}}", vec![key; KEYS_LEN_MAX + 1].join(",")),
        text.replace("\"use\":\"sig\"", "\"use\":\"enc\""),
        text.replace("\"use\":\"sig\"", "\"use\":\"sig\",\"d\":\"AA\""),
        text.replace("\"alg\":\"ES256\"", "\"alg\":\"EdDSA\""),
        text.replace("\"alg\":\"ES256\"", "\"alg\":\"HS256\""),
        text.replace("P-256", "P-384"),
        text.replace("\"kid\":\"", "\"kid\":\"A"),
        text.replace("\"x\":\"", "\"x\":\"A"),
        text.replace("\"x\":", "\"z\":"),
        "{}".to_owned(),
        key.to_owned(),
    ] {
        assert_ne!(wrong, text);
        assert!(Jwks::parse(&wrong).is_err(), "{wrong}");
    }
}

fn refused(directory: &Path) -> String {
    let fault = AttestationKeys::open(directory, ORIGIN).expect_err("it must not be used");
    assert_eq!(fault.code, Code::EnvironmentFiles, "{fault}");
    assert!(fault.message.contains(FILE_NAME), "{fault}");
    fault.message
}

#[test]
fn keys_are_made_once_and_kept() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join(FILE_NAME);
    assert_eq!(AttestationKeys::read_public(scratch.path()).expect("no fault"), None);
    let keys = AttestationKeys::open(scratch.path(), ORIGIN).expect("keys");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(keys.jwks().keys()[0].algorithm(), Algorithm::Es256);
    assert_eq!(keys.rotate(Some(Algorithm::EdDsa)).expect("rotated").algorithm(), Algorithm::EdDsa);
    assert_eq!(keys.rotate(None).expect("rotated").algorithm(), Algorithm::EdDsa, "like the one before");
    let kept = keys.jwks();
    assert_eq!(kept.keys().len(), 3);
    // Left by a crash between the two steps of a rotation.
    let left = scratch.path().join(".attestation.keys.tmp");
    fs::write(&left, "half a li").expect("written");
    assert_eq!(AttestationKeys::open(scratch.path(), ORIGIN).expect("keys").jwks(), kept);
    assert!(!left.exists());
    assert_eq!(AttestationKeys::read_public(scratch.path()).expect("no fault"), Some(kept.clone()));

    // A rotation that cannot be kept does not happen.
    fs::create_dir(&left).expect("a directory in the way");
    assert!(matches!(keys.rotate(None), Err(RotationFault::Write(_))));
    assert_eq!(
        (keys.jwks(), AttestationKeys::read_public(scratch.path()).expect("no fault")),
        (kept.clone(), Some(kept))
    );
}

#[test]
fn a_damaged_key_file_is_a_fault_and_no_new_key() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join(FILE_NAME);
    let keys = AttestationKeys::open(scratch.path(), ORIGIN).expect("keys");
    keys.rotate(Some(Algorithm::EdDsa)).expect("rotated");
    let sound = fs::read(&path).expect("a file");
    let put = |bytes: &[u8]| fs::write(&path, bytes).expect("written");
    for position in 0..sound.len() {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128] {
            let mut damaged = sound.clone();
            damaged[position] ^= flip;
            put(&damaged);
            let said = refused(scratch.path());
            assert_eq!(fs::read(&path).expect("a file"), damaged, "it is left as it is");
            let secret = String::from_utf8_lossy(&sound[..]).split("pkcs8\":\"").nth(1).expect("it")[30..50].to_owned();
            assert!(!said.contains(&secret), "{said}");
        }
    }
    let line = sound.split(|byte| *byte == b'\n').next().expect("a line").to_vec();
    let newer = String::from_utf8_lossy(&sound).replacen("\"format\":1", "\"format\":2", 1);
    let twice = [line.as_slice(), b"\n", line.as_slice(), b"\n"].concat();
    let mut many = Vec::new();
    for bytes in [b"".as_slice(), b"\n", b"{}\n", &sound[..sound.len() - 1], &twice, newer.as_bytes(), &[0; 300_000]] {
        put(bytes);
        many.push(refused(scratch.path()));
    }
    assert!(many[5].contains("newer"), "{}", many[5]);
    put(&sound);
    assert_eq!(AttestationKeys::open(scratch.path(), ORIGIN).expect("keys").jwks(), keys.jwks());
}

#[test]
fn a_key_file_in_foreign_hands_is_refused() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join(FILE_NAME);
    AttestationKeys::open(scratch.path(), ORIGIN).expect("keys");
    for mode in [0o640, 0o604, 0o660, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        refused(scratch.path());
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    // Only root can give files away.
    if chown(&path, Some(12_345), None).is_ok() {
        assert!(refused(scratch.path()).contains("another user"));
        chown(&path, Some(0), None).expect("taken back");
    }
    AttestationKeys::open(scratch.path(), ORIGIN).expect("keys");
    let elsewhere = scratch.path().join("elsewhere");
    fs::rename(&path, &elsewhere).expect("moved");
    symlink(&elsewhere, &path).expect("a link");
    refused(scratch.path());
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a directory");
    refused(scratch.path());
    fs::remove_dir(&path).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    refused(scratch.path());
}

#[test]
fn the_number_of_keys_is_limited() {
    let scratch = tempfile::tempdir().expect("a directory");
    let keys = AttestationKeys::open(scratch.path(), ORIGIN).expect("keys");
    let first = keys.jwks().keys()[0].kid().to_owned();
    for _ in 1..KEYS_LEN_MAX {
        keys.rotate(None).expect("rotated");
    }
    assert!(keys.jwks().get(&first).is_some() && keys.jwks().keys().len() == KEYS_LEN_MAX);
    let current = keys.rotate(None).expect("rotated");
    let published = keys.jwks();
    assert!(published.get(&first).is_none() && published.keys()[0] == current, "the oldest goes");
    assert_eq!(published.keys().len(), KEYS_LEN_MAX);
    assert_eq!(Jwks::parse(&published.to_json()), Ok(published.clone()));
    assert_eq!(AttestationKeys::open(scratch.path(), ORIGIN).expect("keys").jwks(), published);
}
