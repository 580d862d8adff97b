//! The real server: what it refuses to start on, what it does when calls to the system fail, when it is killed, and
//! that nothing is answered before it is on the disk.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use interlock_testkit::gate::{TestAgent, register_with};
use interlock_testkit::generate::Random;
use interlock_testkit::service::{Answer, Client};
use interlock_testkit::trace;
use interlock_testkit::wait::until;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");
pub(crate) const KEY: &str = "operator-key-of-this-test";

pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn command(data: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    clean(&mut command);
    command
}

pub(crate) fn clean(command: &mut Command) {
    command.env("INTERLOCK_OPERATOR_KEY", KEY).env_remove("INTERLOCK_HOME").env_remove("LD_LIBRARY_PATH");
}

pub(crate) fn start(mut command: Command) -> Served {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let Some(address) = address else {
        let mut error = String::new();
        let _ = child.stderr.take().expect("its errors").read_to_string(&mut error);
        panic!("the server did not start: {line}{error}");
    };
    Served { child, address: address.parse().expect("an address") }
}

pub(crate) fn agent(served: &Served) -> TestAgent {
    let body = r#"{"name":"a","type":"supervised","principal_id":"p","budget":{"max_daily_cost_usd":null,
        "max_requests_per_hour":null,"max_requests_per_day":null}}"#;
    register_with(&mut Client::new(served.address), KEY, body).expect("an agent")
}

pub(crate) fn verify(client: &mut Client, agent: &TestAgent, conversation: &str, step: u64) -> std::io::Result<Answer> {
    let body = format!(
        r#"{{"action":{{"type":"calculate","query":"{step}+1"}},"context":{{"conversation_id":"{conversation}","step_number":{step}}}}}"#
    );
    client.send("POST", &format!("/agents/{}/verify", agent.id), &[("x-agent-token", &agent.token)], &body)
}

fn audit(data: &Path, what: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["audit", what, "--json", "--data"]).arg(data);
    clean(&mut command);
    command.output().expect("an audit")
}

pub(crate) fn is_sound(data: &Path) {
    for what in ["verify", "replay"] {
        let output = audit(data, what);
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Waits for a checkpoint over so many entries.
pub(crate) fn until_signed(data: &Path, size: u64) {
    let checkpoint = || fs::read_to_string(data.join("checkpoint")).unwrap_or_default();
    until("it is signed", || checkpoint().contains(&format!("\n{size}\n")));
}

/// A directory that passes the start-up checks: ours alone, in one that others cannot write.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(Path::new(PROGRAM).parent().expect("a directory")).expect("a directory")
}

#[test]
fn it_says_where_everything_is_and_stops_when_told() {
    let scratch = scratch();
    let data = scratch.path().join("an agent's data");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
    command.env_remove("INTERLOCK_HOME").env_remove("INTERLOCK_OPERATOR_KEY").env_remove("LD_LIBRARY_PATH");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the server");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines().map(|line| line.expect("a line"));
    let text: Vec<String> = lines.by_ref().take(9).collect();
    let text = text.join("\n");
    for part in ["listens on http://127.0.0.1:", "data", "operator.key", "built in", "curl -s http://127.0.0.1:"] {
        assert!(text.contains(part), "{text}");
    }
    let mode = |name: &str| fs::metadata(data.join(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode("operator.key"), mode("ledger.key"), mode(".")), (0o600, 0o600, 0o700));
    assert_eq!(mode("attestation.keys"), 0o600);
    assert!(fs::read_to_string(data.join("operator.key")).expect("a key").ends_with('\n'));
    // The first command it prints works as printed.
    let curl: String =
        text.split("Register an agent:").nth(1).expect("a command").split("Stop with").next().expect("it").to_owned();
    let output = Command::new("bash").args(["-c", &curl]).output().expect("bash and curl");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answer.contains("\"agent_token\":\"qwed_agent_"), "{curl}\n{answer}");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(child.wait().expect("an end").success());
    is_sound(&data);
    assert!(fs::read_to_string(data.join("checkpoint")).expect("a checkpoint").contains("\n2\n"));
}

#[test]
fn it_refuses_to_start_on_ground_that_is_not_its_own() {
    let refused = |mut command: Command, code: &str| {
        let output = command.output().expect("the server");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(code), "{code}: {:?} {said}", output.status);
    };
    let scratch = scratch();
    for variable in ["LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"] {
        let mut command = command(&scratch.path().join("env"));
        command.env(variable, "/nowhere/lib.so");
        refused(command, "INTERLOCK-ENV-001");
    }
    assert!(!scratch.path().join("env").exists(), "the environment is checked before anything is made");

    let open = scratch.path().join("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("a mode");
    refused(command(&open), "INTERLOCK-ENV-002");
    refused(command(&open.join("below")), "INTERLOCK-ENV-002");

    // A place that no rule could name could not be guarded.
    use std::os::unix::ffi::OsStrExt;
    let unnamed = scratch.path().join(std::ffi::OsStr::from_bytes(b"d\xff"));
    refused(command(&unnamed), "INTERLOCK-ENV-002");

    let data = scratch.path().join("data");
    let served = start(command(&data));
    refused(command(&data), "INTERLOCK-ENV-004");
    drop(served);
    for name in ["ledger.db", "ledger.key", "checkpoint", "attestation.keys"] {
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o666)).expect("a mode");
        refused(command(&data), "INTERLOCK-ENV-002");
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    // Keys that others can read, they can use.
    let mut with_file = command(&data);
    drop(start(std::mem::replace(with_file.env_remove("INTERLOCK_OPERATOR_KEY"), command(&data))));
    for name in ["ledger.key", "attestation.keys", "operator.key"] {
        for mode in [0o644, 0o640, 0o604] {
            fs::set_permissions(data.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
            let mut command = command(&data);
            command.env_remove("INTERLOCK_OPERATOR_KEY");
            refused(command, "can be read");
        }
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    drop(start(command(&data)));

    let bundle = scratch.path().join("bundle");
    fs::create_dir(&bundle).expect("a directory");
    fs::write(bundle.join("interlock.toml"), "[actions.file_delete]\nengine = \"tool_control\"\nrisk = \"low\"\n")
        .expect("a bundle");
    let mut loose = command(&data);
    loose.arg("--bundle").arg(&bundle);
    refused(loose, "INTERLOCK-CONFIG-001");
}

#[test]
fn a_generous_mask_does_not_lock_us_out() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    for round in 0..2 {
        let mut generous = Command::new("bash");
        generous
            .args(["-c", "umask 002; exec \"$0\" serve --json --listen 127.0.0.1:0 --data \"$1\"", PROGRAM])
            .arg(&data);
        clean(&mut generous);
        let served = start(generous);
        assert!(Client::new(served.address).send("GET", "/readyz", &[], "").is_ok(), "round {round}");
    }
}

#[test]
fn a_ledger_of_the_future_is_refused() {
    use interlock_runtime::clock::SystemEntropy;
    use interlock_runtime::ledger::{CheckpointFile, Ledger, LedgerKey, Ports, SqliteStore};
    let scratch = scratch();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).expect("a mode");
    let clock = interlock_testkit::service::ManualClock::new();
    clock.advance(20 * 365 * 86_400_000);
    let ports = Ports {
        store: Box::new(SqliteStore::open(scratch.path()).expect("a store")),
        clock,
        entropy: Arc::new(SystemEntropy::new()),
        checkpoint: Some(CheckpointFile::new(
            scratch.path(),
            LedgerKey::open(scratch.path(), &SystemEntropy::new()).expect("a key"),
        )),
    };
    let bundle = Arc::new(interlock_core::bundle::Bundle::built_in().expect("a bundle"));
    Ledger::start(ports, bundle).expect("a ledger").stop().expect("stopped");
    let output = command(scratch.path()).output().expect("the server");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("INTERLOCK-ENV-003"), "{said}");
}

/// The server under strace.
fn traced(data: &Path, options: &[&str], log: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(log).args(options);
    command.arg(PROGRAM).args(["serve", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    clean(&mut command);
    command
}

/// Ends a server under strace; strace ends with it.
fn end_traced(served: &mut Served, signal: &str) {
    let server = fs::read_to_string(format!("/proc/{}/task/{0}/children", served.child.id())).expect("its children");
    Command::new("kill").args([signal, server.trim()]).status().expect("kill");
    served.child.wait().expect("an end");
}

#[test]
fn nothing_is_answered_before_it_is_on_the_disk() {
    let scratch = scratch();
    let (data, log) = (scratch.path().join("data"), scratch.path().join("trace"));
    let mut served = start(traced(&data, &trace::SYNC_OPTIONS, &log));
    let agent = agent(&served);
    let mut client = Client::new(served.address);
    for step in 1..=20 {
        let answer = verify(&mut client, &agent, "c", step).expect("an answer");
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
    end_traced(&mut served, "-TERM");
    let traced = fs::read_to_string(&log).expect("a trace");
    // That the check can fail is shown in the testkit, on a store without syncs.
    assert_eq!(trace::answers_come_after_syncs(&traced), Ok(20));
}

#[test]
fn a_disk_that_is_full_denies_and_then_goes_on() {
    let scratch = scratch();
    let (data, log) = (scratch.path().join("data"), scratch.path().join("trace"));
    // From some call after the start on, for a while.
    for (call, error, when) in
        [("pwrite64", "ENOSPC", "30..60"), ("fsync,fdatasync", "EIO", "9..14"), ("pwrite64", "EROFS", "44..70")]
    {
        let _ = fs::remove_dir_all(&data);
        let agent = {
            let served = start(command(&data));
            agent(&served)
        };
        let inject = format!("inject={call}:error={error}:when={when}");
        let mut served = start(traced(&data, &["-e", &format!("trace={call}"), "-e", &inject], &log));
        let mut client = Client::new(served.address);
        let (mut faults, mut approved, mut step) = (0, Vec::new(), 1);
        for _ in 0..60 {
            let answer = verify(&mut client, &agent, "c", step).expect("an answer");
            match answer.status {
                200 if answer.body.contains("APPROVED") => {
                    approved.push(step);
                    step += 1;
                }
                // Answered as a fault, and recorded after all: never the reverse.
                200 if answer.body.contains("LOOP-002") => step += 1,
                503 => {
                    assert!(answer.body.contains("INTERLOCK-FAULT-002"), "{}", answer.body);
                    assert!(answer.body.contains("\"decision\":\"DENIED\""), "{}", answer.body);
                    faults += 1;
                }
                _ => panic!("{error}: {} {}", answer.status, answer.body),
            }
            if step > 12 {
                break;
            }
        }
        assert!(faults > 0, "{call} {error}: no call was made to fail");
        assert!(approved.len() > 2, "{call} {error}: it did not go on: {approved:?}");
        end_traced(&mut served, "-KILL");
        let again = start(command(&data));
        let mut client = Client::new(again.address);
        for step in approved {
            let answer = verify(&mut client, &agent, "c", step).expect("an answer");
            assert!(answer.body.contains("QWED-AGENT-LOOP-002"), "{error}: step {step} was lost: {}", answer.body);
        }
        is_sound(&data);
    }
}

/// Asks for what needs a person, until the server dies; the tickets that were acknowledged.
fn ask_persons(client: &mut Client, agent: &TestAgent, conversation: &str, stop: &AtomicBool) -> Vec<(String, u64)> {
    let mut done = Vec::new();
    // As many as may be open at a time.
    for step in 1..=20 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let body = format!(
            r#"{{"parameters":{{"n":{step}}},"context":{{"conversation_id":"{conversation}","step_number":{step}}}}}"#
        );
        let path = format!("/agents/{}/tools/drop_table", agent.id);
        let Ok(answer) = client.send("POST", &path, &[("x-agent-token", &agent.token)], &body) else { break };
        let ticket = answer.body.split("\"approval_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let ticket = ticket.unwrap_or_else(|| panic!("no ticket: {}", answer.body));
        done.push((format!("ticket:{ticket}"), step));
    }
    done
}

#[test]
fn fifty_kills_lose_nothing_that_was_acknowledged() {
    let scratch = scratch();
    let data: PathBuf = scratch.path().join("data");
    let mut random = Random::new(20_261_115);
    let mut served = start(command(&data));
    let mut acknowledged: Vec<(String, u64)> = Vec::new();
    for round in 0..50 {
        // One agent a round: so many refused replays would cost it its trust.
        let agent = agent(&served);
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let askers: Vec<_> = (0..6)
            .map(|asker| {
                let (address, agent, stop) = (served.address, agent.clone(), Arc::clone(&stop));
                let answered = Arc::clone(&answered);
                thread::spawn(move || {
                    let (mut client, mut done) = (Client::new(address), Vec::new());
                    let conversation = format!("r{round}-a{asker}");
                    // One of them asks for what a person has to decide on.
                    if asker == 0 {
                        return ask_persons(&mut client, &agent, &conversation, &stop);
                    }
                    for step in 1..=50 {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        match verify(&mut client, &agent, &conversation, step) {
                            Ok(answer) if answer.body.contains("APPROVED") => {
                                done.push((conversation.clone(), step));
                                answered.fetch_add(1, Ordering::Relaxed);
                            }
                            Ok(answer) => panic!("{}", answer.body),
                            Err(_) => break,
                        }
                    }
                    done
                })
            })
            .collect();
        let enough = 1 + random.below(100);
        until("enough was answered", || answered.load(Ordering::Relaxed) >= enough);
        served.child.kill().expect("killed");
        served.child.wait().expect("an end");
        stop.store(true, Ordering::Relaxed);
        let done: Vec<_> = askers.into_iter().flat_map(|asker| asker.join().expect("an asker")).collect();
        served = start(command(&data));
        let mut client = Client::new(served.address);
        for (conversation, step) in &done {
            if let Some(ticket) = conversation.strip_prefix("ticket:") {
                let path = format!("/approvals/{ticket}");
                let answer = client.send("GET", &path, &[("x-agent-token", &agent.token)], "").expect("an answer");
                assert!(answer.body.contains(r#""status":"pending""#), "{ticket} was lost: {}", answer.body);
                continue;
            }
            let answer = verify(&mut client, &agent, conversation, *step).expect("an answer");
            assert!(answer.body.contains("QWED-AGENT-LOOP-002"), "{conversation} {step} was lost: {}", answer.body);
        }
        acknowledged.extend(done);
    }
    assert!(acknowledged.len() > 500, "only {} were acknowledged", acknowledged.len());
    is_sound(&data);
}

#[test]
fn a_damaged_log_is_noticed() {
    // Bytes are lost from the write-ahead log after a kill: SQLite drops the rest of it silently, the checkpoint tells.
    let scratch = scratch();
    let data = scratch.path().join("data");
    let served = start(command(&data));
    let agent = agent(&served);
    let mut client = Client::new(served.address);
    for step in 1..=10 {
        verify(&mut client, &agent, "c", step).expect("an answer");
    }
    // A checkpoint is written within a second or so.
    until_signed(&data, 12);
    drop(served);
    let log = data.join("ledger.db-wal");
    let mut bytes = fs::read(&log).expect("a log");
    assert!(bytes.len() > 8_000, "the log is empty: {}", bytes.len());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&log, bytes).expect("damaged");
    let output = command(&data).output().expect("the server");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("INTERLOCK-LEDGER-001"), "{said}");
}

#[test]
fn an_audit_beside_a_running_server_and_with_another_bundle() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let served = start(command(&data));
    let agent = agent(&served);
    let mut client = Client::new(served.address);
    for step in 1..=5 {
        verify(&mut client, &agent, "c", step).expect("an answer");
    }
    is_sound(&data);
    let bundle = scratch.path().join("next");
    fs::create_dir(&bundle).expect("a directory");
    fs::write(bundle.join("interlock.toml"), "[actions.calculate]\nengine = \"math\"\nrisk = \"high\"\n")
        .expect("a bundle");
    let mut command = Command::new(PROGRAM);
    command.args(["audit", "replay", "--json", "--data"]).arg(&data).arg("--bundle").arg(&bundle);
    clean(&mut command);
    let output = command.output().expect("a replay");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("\"differences_count\":5") && said.contains("\"decided\":\"DENIED\""), "{said}");
    drop(served);
}

#[test]
fn no_agent_touches_the_servers_own_files() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let served = start(command(&data));
    let mut client = Client::new(served.address);
    let body = r#"{"name":"a","type":"trusted","principal_id":"p"}"#;
    let agent = register_with(&mut client, KEY, body).expect("an agent");
    let data = fs::canonicalize(&data).expect("the data");
    for (step, path) in [data.join("anything"), data.clone(), data.join("../data/ledger.db")].iter().enumerate() {
        let body = format!(
            r#"{{"action":{{"type":"file_write","parameters":{{"path":"{}"}}}},"context":{{"conversation_id":"c","step_number":{}}}}}"#,
            path.display(),
            step + 1
        );
        let headers = [("x-agent-token", agent.token.as_str())];
        let answer = client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer");
        assert!(answer.body.contains("denied by the rule `self`"), "{}: {}", path.display(), answer.body);
    }
}

#[test]
fn more_connections_than_files_take_nothing_down() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let mut limited = Command::new("bash");
    limited
        .args(["-c", "ulimit -n 160; exec \"$0\" serve --json --listen 127.0.0.1:0 --data \"$1\"", PROGRAM])
        .arg(&data);
    clean(&mut limited);
    let served = start(limited);
    let agent = agent(&served);
    let mut client = Client::new(served.address);
    assert!(verify(&mut client, &agent, "c", 1).expect("an answer").body.contains("APPROVED"));
    // As many as are taken in, and those that wait outside.
    let join = || std::net::TcpStream::connect_timeout(&served.address, Duration::from_millis(100)).ok();
    let crowd: Vec<_> = std::iter::from_fn(join).take(300).collect();
    assert!(crowd.len() > 96, "only {} connected", crowd.len());
    for step in 2..=4 {
        let answer = verify(&mut client, &agent, "c", step).expect("an answer");
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
        // A checkpoint is written meanwhile, which needs files of its own. The first two entries are bundle and agent.
        until_signed(&data, step + 2);
    }
    drop(crowd);
}

#[test]
fn without_a_checkpoint_nothing_more_is_approved() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let served = start(command(&data));
    let agent = agent(&served);
    let mut client = Client::new(served.address);
    assert!(verify(&mut client, &agent, "c", 1).expect("an answer").body.contains("APPROVED"));
    until_signed(&data, 3);
    // A directory in the place of the temporary file can be neither replaced nor removed as one.
    fs::create_dir(data.join(".checkpoint.tmp")).expect("a directory");
    // What comes in before the first checkpoint fails is approved, and nothing after it, however often it is tried.
    let mut step = 2;
    let mut is_approved = || {
        let answer = verify(&mut client, &agent, &format!("c{}", step / 40), step % 40 + 1).expect("an answer");
        let approved = answer.body.contains("APPROVED");
        assert!(approved || answer.status == 503 && answer.body.contains("INTERLOCK-FAULT-002"), "{}", answer.body);
        step += u64::from(approved);
        approved
    };
    until("a checkpoint fails", || !is_approved());
    for _ in 0..20 {
        assert!(!is_approved(), "approved without a checkpoint");
        thread::sleep(Duration::from_millis(100));
    }
    fs::remove_dir(data.join(".checkpoint.tmp")).expect("removed");
    let mut client = Client::new(served.address);
    // It recovers without being asked.
    until("it is ready", || client.send("GET", "/readyz", &[], "").expect("an answer").status == 200);
    assert!(verify(&mut client, &agent, "after", 1).expect("an answer").body.contains("APPROVED"));
    is_sound(&data);
}

/// What a start that is refused says.
fn refused(mut command: Command) -> String {
    let output = command.output().expect("it runs");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn a_bundle_has_nothing_written_over_the_server_s_own_files() {
    let scratch = scratch();
    let (data, bundle, elsewhere) =
        (scratch.path().join("data"), scratch.path().join("bundle"), scratch.path().join("elsewhere"));
    for directory in [&data, &bundle, &elsewhere, &data.join("deep")] {
        fs::create_dir_all(directory).expect("a directory");
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).expect("a mode");
    }
    std::os::unix::fs::symlink(&data, elsewhere.join("link")).expect("a link");
    let shown = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
    let serve = |text: String| {
        fs::write(bundle.join("interlock.toml"), text).expect("a bundle");
        let mut command = command(&data);
        command.arg("--bundle").arg(&bundle);
        command
    };
    for place in [
        data.join("ledger.key"),
        data.join("operator.key"),
        data.join("ledger.db"),
        data.join("copy"),
        data.join("deep/copy"),
        data.join("not/there/yet"),
        bundle.join("interlock.toml"),
        bundle.join("copy"),
        elsewhere.join("link/copy"),
        elsewhere.join("../data/copy"),
        elsewhere.join("nothing/../../data/copy"),
        data.clone(),
        scratch.path().to_owned(),
    ] {
        let said = refused(serve(format!("[checkpoints]\nfile = {:?}\n", shown(place.clone()))));
        assert!(said.contains("CONFIG-001") && said.contains("checkpoints.file"), "{}: {said}", place.display());
    }
    // Within them, and above them: what holds a key holds what is beside it.
    std::os::unix::fs::symlink(scratch.path(), elsewhere.join("above")).expect("a link");
    let within = [data.clone(), data.join("deep"), bundle.clone(), bundle.join("not/yet"), elsewhere.join("link")];
    let above = [scratch.path().to_owned(), PathBuf::from("/"), elsewhere.join("above"), scratch.path().join("./")];
    for root in within.into_iter().chain(above) {
        let text = format!(
            "[guards.g]\nrequired_schema = {{ type = \"object\", properties = {{}} }}\nallowed_commit_roots = [{:?}]\n",
            shown(root.clone())
        );
        let said = refused(serve(text));
        assert!(said.contains("CONFIG-001") && said.contains("allowed_commit_roots"), "{}: {said}", root.display());
    }
    // The home, with the socket in it, though the data is elsewhere.
    let home = scratch.path().join("home");
    let guard = "[guards.g]\nrequired_schema = { type = \"object\", properties = {} }\nallowed_commit_roots = ";
    let mut command = serve(format!("{guard}[{:?}]\n", shown(home.join("states"))));
    command.env("INTERLOCK_HOME", &home);
    let said = refused(command);
    assert!(said.contains("CONFIG-001") && said.contains("home"), "{said}");
    drop(start(serve(format!("{guard}[{:?}]\n", shown(elsewhere.join("states"))))));
    // Beside them is fine, also where a name begins alike.
    for place in [elsewhere.join("copy"), scratch.path().join("data-copy")] {
        drop(start(serve(format!("[checkpoints]\nfile = {:?}\n", shown(place)))));
    }
}

#[test]
fn a_key_in_the_environment_is_held_to_what_a_file_is() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let scratch = scratch();
    let data = scratch.path().join("data");
    let with = |value: OsString| {
        let mut command = command(&data);
        command.env("INTERLOCK_OPERATOR_KEY", value);
        command
    };
    for value in
        ["x", " ", "fifteen-letters", "                    ", "with blanks in between", "k\u{e4}y-of-the-operator"]
    {
        let said = refused(with(value.into()));
        assert!(said.contains("CONFIG-001") && said.contains("INTERLOCK_OPERATOR_KEY"), "{value:?}: {said}");
        assert!(value.trim().len() < 2 || !said.contains(value.trim()), "{said}");
        fs::create_dir_all(&data).expect("a directory");
        fs::write(data.join("operator.key"), value).expect("a file");
        fs::set_permissions(data.join("operator.key"), fs::Permissions::from_mode(0o600)).expect("a mode");
        let mut file = command(&data);
        file.env_remove("INTERLOCK_OPERATOR_KEY");
        assert!(refused(file).contains("holds no key"), "{value:?}");
        fs::remove_file(data.join("operator.key")).expect("removed");
    }
    let said = refused(with(OsString::from_vec(b"not-utf8-\xff-of-the-operator".to_vec())));
    assert!(said.contains("INTERLOCK_OPERATOR_KEY"), "{said}");
    // Blanks around it are no part of it, and sixteen are enough.
    let served = start(with(" sixteen-letters!\n".into()));
    let answer = Client::new(served.address).send("GET", "/keys", &[("x-api-key", "sixteen-letters!")], "");
    assert_eq!(answer.expect("an answer").status, 200);
    drop(served);
    // Empty is not set.
    drop(start(with("".into())));
    assert!(data.join("operator.key").exists());
}

#[test]
fn a_key_that_is_gone_is_told_by_the_audit_too() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let served = start(command(&data));
    agent(&served);
    until_signed(&data, 2);
    drop(served);
    fs::remove_file(data.join("ledger.key")).expect("removed");
    let said = refused(command(&data));
    assert!(said.contains("LEDGER-001") && said.contains("ledger.key is gone"), "{said}");
    assert!(!data.join("ledger.key").exists());
    let output = audit(&data, "verify");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("ledger.key is gone"), "{said}");
    // Where nothing is, nothing is wrong.
    let output = audit(&scratch.path().join("nowhere"), "verify");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.code() == Some(2) && said.contains("holds no ledger"), "{said}");
    assert!(!said.contains("LEDGER-001"), "{said}");
}

#[test]
fn a_secret_that_is_too_short_is_told_with_its_place() {
    let scratch = scratch();
    let (data, bundle) = (scratch.path().join("data"), scratch.path().join("bundle"));
    fs::create_dir_all(&bundle).expect("a directory");
    for (text, place) in [
        (
            "[principals.team]\nwebhook = \"https://a.example/x\"\nsecret = \"short\"\n",
            "interlock.toml: principals.team: ",
        ),
        ("[checkpoints]\nwebhook = \"https://a.example/x\"\nsecret = \"short\"\n", "interlock.toml: checkpoints: "),
    ] {
        fs::write(bundle.join("interlock.toml"), text).expect("a bundle");
        let mut command = command(&data);
        command.arg("--bundle").arg(&bundle);
        let said = refused(command);
        assert!(said.contains("CONFIG-001") && said.contains(place), "{said}");
        assert!(!said.contains("short"), "{said}");
    }
}
