//! HTTPS by the real server: certificates made by `openssl`, spoken to by `curl` and `openssl`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use interlock_testkit::wait::HANG;

const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");
const KEY: &str = "operator-key-of-this-test";

struct Served {
    child: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(Path::new(PROGRAM).parent().expect("a directory")).expect("a directory")
}

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output().expect("openssl");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A certificate for 127.0.0.1 that signs itself, and its key.
fn certificate(directory: &Path, name: &str, kind: &[&str]) -> (PathBuf, PathBuf) {
    let path = |end: &str| directory.join(format!("{name}.{end}"));
    let (certificate, key) = (path("crt"), path("key"));
    let mut arguments = vec!["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=interlock test"];
    arguments.extend([
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-newkey",
    ]);
    arguments.extend(kind);
    arguments.extend(["-keyout", key.to_str().expect("UTF-8"), "-out", certificate.to_str().expect("UTF-8")]);
    openssl(&arguments);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
    (certificate, key)
}

const ELLIPTIC: &[&str] = &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

fn command(data: &Path, certificate: &Path, key: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
    command.env("INTERLOCK_OPERATOR_KEY", KEY).env_remove("INTERLOCK_HOME").env_remove("LD_LIBRARY_PATH");
    command
}

fn start(mut command: Command) -> Served {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let address = line.split("https://").nth(1).and_then(|rest| rest.split('"').next()).map(str::parse);
    let Some(Ok(address)) = address else { panic!("it does not say https: {line}") };
    Served { child, address }
}

fn curl(address: SocketAddr, trusted: Option<&Path>, path: &str, more: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["-s", "-S", "--max-time", "20", "--noproxy", "*"]).args(more);
    if let Some(trusted) = trusted {
        command.arg("--cacert").arg(trusted);
    }
    command.arg(format!("https://{address}{path}")).output().expect("curl")
}

#[test]
fn curl_and_openssl_speak_to_it() {
    let scratch = scratch();
    let kinds = [("ec", ELLIPTIC), ("rsa", &["rsa:2048"]), ("sec1", ELLIPTIC)];
    for (name, kind) in kinds {
        let (certificate, key) = certificate(scratch.path(), name, kind);
        if name == "sec1" {
            let path = key.to_str().expect("UTF-8");
            openssl(&["ec", "-in", path, "-out", path]);
            assert!(fs::read_to_string(&key).expect("a key").contains("BEGIN EC PRIVATE KEY"));
        }
        let served = start(command(&scratch.path().join(format!("data-{name}")), &certificate, &key));
        let body = r#"{"name":"a","type":"supervised","principal_id":"p"}"#;
        let bearer = format!("Authorization: Bearer {KEY}");
        let output = curl(served.address, Some(&certificate), "/agents/register", &["-H", &bearer, "-d", body]);
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(answer.contains("qwed_agent_"), "{name}: {answer}{}", String::from_utf8_lossy(&output.stderr));
        // So does our own client, if it is told whom to believe.
        let url = format!("https://{}", served.address);
        let ask = |trusted: Option<&Path>| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
            command.args(["agents", "list", "--server", &url]).env("INTERLOCK_OPERATOR_KEY", KEY);
            command.env_remove("INTERLOCK_CA_FILE");
            if let Some(trusted) = trusted {
                command.arg("--ca-file").arg(trusted);
            }
            command.output().expect("it runs")
        };
        let listed = ask(Some(&certificate));
        assert!(String::from_utf8_lossy(&listed.stdout).contains("agent_"), "{name}: {listed:?}");
        let doubted = ask(None);
        assert_eq!(doubted.status.code(), Some(2), "{name}: {doubted:?}");
        assert!(String::from_utf8_lossy(&doubted.stderr).contains("certificate"), "{name}: {doubted:?}");
        // Nobody is made to trust it.
        let untrusted = curl(served.address, None, "/healthz", &[]);
        assert_eq!(untrusted.status.code(), Some(60), "{name}");

        for (version, says) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
            let mut command = Command::new("openssl");
            command.args(["s_client", version, "-alpn", "h2,http/1.1", "-verify_return_error", "-CAfile"]);
            command.arg(&certificate).arg("-connect").arg(served.address.to_string()).stdin(Stdio::null());
            let output = command.output().expect("openssl");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            for part in [says, "ALPN protocol: http/1.1", "Verification: OK"] {
                assert!(said.contains(part), "{name} {version}: no `{part}` in {said}");
            }
        }
    }
}

#[test]
fn a_certificate_that_is_not_believed_is_told_with_what_helps() {
    let scratch = scratch();
    let directory = scratch.path();
    let made = |name: &str, constraints: &str, names: &str, purpose: &str| {
        let path = |end: &str| directory.join(format!("{name}.{end}"));
        let (certificate, key) = (path("crt"), path("key"));
        let mut arguments = vec!["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=interlock test", "-newkey"];
        arguments.extend(ELLIPTIC);
        arguments.extend(["-addext", constraints, "-addext", names, "-addext", purpose]);
        arguments.extend(["-keyout", key.to_str().expect("UTF-8"), "-out", certificate.to_str().expect("UTF-8")]);
        openssl(&arguments);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
        (certificate, key)
    };
    let (leaf, authority) = ("basicConstraints=critical,CA:FALSE", "basicConstraints=critical,CA:TRUE");
    let (here, there) = ("subjectAltName=IP:127.0.0.1", "subjectAltName=IP:127.0.0.2");
    let (server, client) = ("extendedKeyUsage=serverAuth", "extendedKeyUsage=clientAuth");
    for (name, made, trusted, what, next) in [
        ("unknown", made("unknown", leaf, here, server), false, "nobody signed", "--ca-file"),
        ("authority", made("authority", authority, here, server), true, "of an authority", "CA:FALSE"),
        ("elsewhere", made("elsewhere", leaf, there, server), true, "for another name", "subjectAltName"),
        ("client", made("client", leaf, here, client), true, "not made for servers", "serverAuth"),
    ] {
        let served = start(command(&directory.join(name), &made.0, &made.1));
        let mut asking = Command::new(PROGRAM);
        asking.args(["agents", "list", "--server", &format!("https://{}", served.address)]);
        asking.env("INTERLOCK_OPERATOR_KEY", KEY).env_remove("INTERLOCK_CA_FILE");
        if trusted {
            asking.arg("--ca-file").arg(&made.0);
        }
        let output = asking.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(what) && said.contains(next), "{name}: {said}");
        assert!(!said.contains("not HTTP"), "{name}: {said}");
    }
}

#[test]
fn the_welcome_text_says_https() {
    let scratch = scratch();
    let (certificate, key) = certificate(scratch.path(), "a", ELLIPTIC);
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(scratch.path().join("data"));
    command.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key);
    command.env("INTERLOCK_OPERATOR_KEY", KEY).env_remove("INTERLOCK_HOME").env_remove("LD_LIBRARY_PATH");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the server");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines().take(9);
    let text = lines.map(|line| line.expect("a line")).collect::<Vec<_>>().join("\n");
    let (_, said) = (child.kill(), child.wait());
    assert!(said.is_ok() && text.matches("https://127.0.0.1:").count() == 2 && !text.contains("http://"), "{text}");
}

#[test]
fn it_does_not_start_with_a_pair_that_cannot_serve() {
    let scratch = scratch();
    let (certificate_a, key_a) = certificate(scratch.path(), "a", ELLIPTIC);
    let (_, key_b) = certificate(scratch.path(), "b", ELLIPTIC);
    let (_, key_rsa) = certificate(scratch.path(), "r", &["rsa:2048"]);
    let file = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path
    };
    let garbage = file("garbage", "-----BEGIN CERTIFICATE-----\nsecret words *\n-----END CERTIFICATE-----\n");
    let no_certificate = file("no-certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let (empty, large) = (file("empty", ""), file("large", &"x".repeat(1024 * 1024 + 1)));
    let nowhere = scratch.path().join("nowhere");
    let data = scratch.path().join("data");
    let refused = |certificate: &Path, key: &Path, parts: &[&str]| {
        let output = command(&data, certificate, key).output().expect("the server");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in parts {
            assert!(said.contains(part), "no `{part}` in {said}");
        }
        assert!(!said.contains("secret words"), "{said}");
    };
    refused(&certificate_a, &key_b, &["INTERLOCK-CONFIG-001", "a.crt and the key", "b.key cannot be used together"]);
    refused(&certificate_a, &key_rsa, &["INTERLOCK-CONFIG-001", "cannot be used together"]);
    refused(&certificate_a, &certificate_a_as_key(&certificate_a, &file), &["holds no private key in PEM"]);
    refused(&key_a, &key_a, &["holds no certificate in PEM"]);
    refused(&garbage, &key_a, &["holds no certificate in PEM"]);
    refused(&no_certificate, &key_a, &["cannot be used together", "invalid peer certificate"]);
    refused(&empty, &key_a, &["holds no certificate in PEM"]);
    refused(&certificate_a, &empty, &["holds no private key in PEM"]);
    refused(&large, &key_a, &["has more than 1048576 bytes"]);
    refused(&nowhere, &key_a, &["nowhere cannot be read"]);
    refused(&certificate_a, &nowhere, &["nowhere cannot be read"]);
    for mode in [0o640, 0o604] {
        fs::set_permissions(&key_a, fs::Permissions::from_mode(mode)).expect("a mode");
        refused(&certificate_a, &key_a, &["INTERLOCK-ENV-002", "a.key can be read by others"]);
    }
    fs::set_permissions(&key_a, fs::Permissions::from_mode(0o620)).expect("a mode");
    refused(&certificate_a, &key_a, &["INTERLOCK-ENV-002", "a.key can be written by others"]);
    assert!(!data.exists(), "the pair is looked at before anything is made");

    // One without the other is a mistake in the command.
    for flag in ["--tls-cert", "--tls-key"] {
        let output = Command::new(PROGRAM).args(["serve", flag, "file"]).output().expect("the server");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("--tls-"), "{said}");
    }
}

fn certificate_a_as_key(certificate: &Path, file: &dyn Fn(&str, &str) -> PathBuf) -> PathBuf {
    file("certificate-as-key", &fs::read_to_string(certificate).expect("a certificate"))
}

#[test]
fn who_does_not_shake_hands_gets_nothing_and_stops_nobody() {
    let scratch = scratch();
    let (certificate, key) = certificate(scratch.path(), "a", ELLIPTIC);
    let mut served = start(command(&scratch.path().join("data"), &certificate, &key));
    let connect = || {
        let stream = TcpStream::connect(served.address).expect("a connection");
        stream.set_read_timeout(Some(HANG)).expect("a timeout");
        stream
    };
    // Plain HTTP is closed, with nothing of HTTP in the answer.
    let mut plain = connect();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.len() < 16 && !answer.starts_with(b"HTTP"), "{answer:?}");

    // Many that say nothing, and one that stops in the middle of its first word.
    let begun = Instant::now();
    let crowd = || {
        let mut silent: Vec<TcpStream> = (0..64).map(|_| connect()).collect();
        silent[0].write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).expect("sent");
        let output = curl(served.address, Some(&certificate), "/healthz", &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
        // Somebody else was answered while they still had time; who was slow to ask has shown nothing, and asks again.
        let is_open = |stream: &TcpStream| {
            stream.set_nonblocking(true).expect("a socket");
            let nothing = stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            stream.set_nonblocking(false).expect("a socket");
            nothing
        };
        silent.iter().all(is_open).then_some(silent)
    };
    let mut silent = (0..10).find_map(|_| crowd()).expect("an answer before their time was up");
    // After ten seconds their time is up.
    for stream in &mut silent {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
    }
    assert!(begun.elapsed() > Duration::from_secs(8), "{:?}", begun.elapsed());

    // One that is still about to shake hands does not hold up the end.
    let _waiting = connect();
    Command::new("kill").args(["-TERM", &served.child.id().to_string()]).status().expect("kill");
    assert!(served.child.wait().expect("an end").success());
}
