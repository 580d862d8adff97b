//! What the action gate costs, on the real binary over real sockets, client and server on the same cores.
//!
//!     cargo build --release && cargo bench --bench gate [-- PART...]
//!
//! Parts: `throughput`, `everything`, `open-loop`, `one-connection`, `history`, `memory`, `approvers`, `audit`, `restart`,
//! `activity`. All of them by default.
//! Rates are medians of three alternating ten-second pairs; absolute figures are of this machine, ratios travel.

mod closed_loop;
mod limits;

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use closed_loop::Load;
use interlock_testkit::gate::{TestAgent, register_with};
use interlock_testkit::service::Client;
use ring::hmac;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 256;
const AGENTS: usize = 16;
const KEY: &str = "operator-key-of-the-benchmark";

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with("--")).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let seconds: u64 = std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
    println!("| measure | figure | limit |\n|---|---|---|");
    if wants("throughput") {
        throughput(seconds);
    }
    if wants("everything") {
        everything(seconds);
    }
    if wants("approvers") {
        runtime.block_on(approvers());
    }
    if wants("open-loop") {
        runtime.block_on(open_loop(seconds));
    }
    if wants("one-connection") {
        runtime.block_on(one_connection());
    }
    if wants("history") {
        history();
    }
    if wants("memory") {
        runtime.block_on(memory());
    }
    if wants("audit") || wants("restart") || wants("activity") {
        audit();
    }
    limits::end();
}

fn row(measure: &str, figure: impl std::fmt::Display, limit: &str) {
    println!("| {measure} | {figure} | {limit} |");
}

/// A row whose figure is held to a limit.
fn held(measure: &str, figure: impl std::fmt::Display, id: &str, value: f64) {
    row(measure, figure, &limits::judge(id, value));
}

/// The server as a process of its own, on a fresh directory beside the build.
struct Served {
    child: Child,
    address: SocketAddr,
    data: PathBuf,
    agents: Vec<TestAgent>,
}

fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("this program");
    path.pop();
    path.pop();
    path.join("interlock")
}

fn fresh_directory() -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = program().with_file_name(format!("bench-data-{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

/// Sixteen agents ask for more than one may; the limit itself stays on.
const BUNDLE: &str = "[limits]\nrequests_per_minute_per_key = 4000000000\n";

fn serve(data: &Path) -> (Child, SocketAddr) {
    serve_with(data, BUNDLE, &[])
}

fn serve_with(data: &Path, bundle: &str, more: &[&str]) -> (Child, SocketAddr) {
    let directory = data.join("bundle");
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).expect("a directory");
    fs::write(directory.join("interlock.toml"), bundle).expect("a bundle");
    let mut child = Command::new(program())
        .args(["serve", "--json", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .args(more)
        .env("INTERLOCK_OPERATOR_KEY", KEY)
        .env_remove("INTERLOCK_HOME")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("cargo build --release first");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('"').next()).expect("an address");
    (child, address.parse().expect("an address"))
}

impl Served {
    fn start() -> Served {
        Served::start_with(BUNDLE, &[])
    }

    fn start_with(bundle: &str, more: &[&str]) -> Served {
        let data = fresh_directory();
        let (child, address) = serve_with(&data, bundle, more);
        let mut client = Client::new(address);
        let body = r#"{"name":"load","type":"trusted","principal_id":"bench","budget":{"max_daily_cost_usd":null,
            "max_requests_per_hour":null,"max_requests_per_day":null,"max_tokens_per_request":null}}"#;
        let agents = (0..AGENTS).map(|_| register_with(&mut client, KEY, body).expect("an agent")).collect();
        Served { child, address, data, agents }
    }

    /// CPU time in microseconds.
    fn cpu(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its state");
        let fields: Vec<u64> = stat
            .rsplit(") ")
            .next()
            .expect("fields")
            .split(' ')
            .skip(11)
            .take(2)
            .map(|n| n.parse().expect("a number"))
            .collect();
        fields.iter().sum::<u64>() * 10_000
    }

    /// Calculations that are approved, in conversations that nobody had before.
    fn approvals(&self) -> Load {
        static ROUND: AtomicU64 = AtomicU64::new(0);
        let (round, data) = (ROUND.fetch_add(1, Ordering::Relaxed), self.data.file_name().expect("a name"));
        let agents = self.agents.iter().map(|agent| (agent.id.clone(), agent.token.clone())).collect();
        Load::Approvals { agents, name: format!("{}-{round}", data.to_string_lossy()) }
    }

    fn written(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).expect("its state");
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).expect("a figure");
        line.parse().expect("a number")
    }

    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("its state");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// One connection that asks and waits, with conversations of its own.
struct Asker {
    stream: TcpStream,
    buffer: Vec<u8>,
    agent: TestAgent,
    name: String,
    conversation: u64,
    step: u64,
}

impl Asker {
    async fn connect(served: &Served, number: usize) -> Asker {
        let stream = TcpStream::connect(served.address).await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let agent = served.agents[number % served.agents.len()].clone();
        let name = format!("{}-{number}", served.data.file_name().expect("a name").to_string_lossy());
        Asker { stream, buffer: vec![0; 4096], agent, name, conversation: 0, step: 0 }
    }

    fn request(&mut self) -> Vec<u8> {
        self.step += 1;
        if self.step > 50 {
            (self.conversation, self.step) = (self.conversation + 1, 1);
        }
        let (step, conversation) = (self.step, format!("{}-{}", self.name, self.conversation));
        let body = format!(
            "{{\"action\":{{\"type\":\"calculate\",\"query\":\"{step} + 2 * 3\"}},\"context\":{{\"conversation_id\":\"{conversation}\",\"step_number\":{step}}}}}"
        );
        format!(
            "POST /agents/{}/verify HTTP/1.1\r\nhost: x\r\nx-agent-token: {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.agent.id,
            self.agent.token,
            body.len()
        )
        .into_bytes()
    }

    /// Sends bytes and reads one answer; tells whether it is an approval.
    async fn exchange(&mut self, request: &[u8]) -> bool {
        self.stream.write_all(request).await.expect("sent");
        let mut length = 0;
        loop {
            length += self.stream.read(&mut self.buffer[length..]).await.expect("an answer");
            let text = &self.buffer[..length];
            let Some(head) = text.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head_text = std::str::from_utf8(&text[..head]).expect("a head");
            let body: usize = head_text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ").map(|n| n.parse().expect("a number")))
                .expect("a length");
            if length >= head + 4 + body {
                return text[head..length].starts_with(b"\r\n\r\n{\"decision\":\"APPROVED\"");
            }
        }
    }

    async fn ask(&mut self) {
        let request = self.request();
        assert!(self.exchange(&request).await, "not approved: {}", String::from_utf8_lossy(&self.buffer));
    }
}

/// Requests a second over all connections.
fn rate(served: &Served, seconds: u64, health: bool) -> f64 {
    let load = if health { Load::Health } else { served.approvals() };
    closed_loop::run(served.address, CONNECTIONS, &load, Duration::from_secs(seconds))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn throughput(seconds: u64) {
    let served = Served::start();
    let (mut approvals, mut health, mut cpu, mut disk, mut raw) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..3 {
        let (cpu_before, written) = (served.cpu(), served.written());
        let count_before = entries(&served);
        approvals.push(rate(&served, seconds, false));
        let count = (entries(&served) - count_before) as f64;
        cpu.push((served.cpu() - cpu_before) as f64 / count);
        disk.push((served.written() - written) as f64 / count);
        health.push(rate(&served, seconds.div_ceil(3), true));
        let batch =
            metric(&served, "interlock_ledger_commands_total") / metric(&served, "interlock_ledger_batches_total");
        raw.push(raw_batches(batch as usize, seconds.div_ceil(3)));
    }
    let (approvals, health, raw) = (median(approvals), median(health), median(raw));
    let (cpu, disk) = (median(cpu), median(disk) / 1000.0);
    let of_health = format!("1/{:.1} ({health:.0}/s)", health / approvals);
    let of_raw = format!("{:.0} % ({raw:.0}/s)", approvals / raw * 100.0);
    held("durable approvals a second, 256 connections", format!("{approvals:.0}"), "gate-approvals", approvals);
    held("server CPU per approval", format!("{cpu:.0} µs"), "gate-cpu", cpu);
    held("disk per approval", format!("{disk:.1} KB"), "gate-disk", disk);
    held("of `/healthz` on the same server", of_health, "gate-healthz", approvals / health);
    held("of raw SQLite batches of the same rows", of_raw, "gate-raw", approvals / raw);
}

/// The same with what an operator can switch on: a principal with a webhook, a line of the log and a span for each
/// ruling, and every text kept. Webhooks and spans go to a receiver in this process.
fn everything(seconds: u64) {
    let receiver = Receiver::start();
    let webhook = format!(
        "[limits]\nrequests_per_minute_per_key = 4000000000\n\
         [principals.bench]\nwebhook = 'http://{}/hook'\nsecret = '{SECRET}'\n",
        receiver.address
    );
    let full = format!("payloads = 'all'\n{webhook}");
    let traces = format!("http://{}/v1/traces", receiver.address);
    let servers = [
        Served::start(),
        Served::start_with(&webhook, &[]),
        Served::start_with(&full, &["--log", "json", "--otlp", &traces]),
    ];
    let (mut rates, mut costs) = (vec![vec![]; 3], vec![vec![]; 3]);
    for _ in 0..3 {
        for (position, served) in servers.iter().enumerate() {
            let (cpu, before) = (served.cpu(), entries(served));
            rates[position].push(while_told(served, || rate(served, seconds, false)));
            costs[position].push((served.cpu() - cpu) as f64 / (entries(served) - before) as f64);
        }
    }
    let rates: Vec<f64> = rates.into_iter().map(median).collect();
    let costs: Vec<f64> = costs.into_iter().map(median).collect();
    for (position, what, id) in [
        (1, "with webhooks", "gate-webhooks"),
        (2, "with webhooks, a log, traces and every text kept", "gate-everything"),
    ] {
        let ratio = rates[position] / rates[0];
        let figure =
            format!("{ratio:.2}x ({:.0}/s; CPU {:.0} µs of {:.0} µs)", rates[position], costs[position], costs[0]);
        held(&format!("approvals a second {what}, of those without"), figure, id, ratio);
    }
    for (served, what) in [(&servers[1], "with webhooks"), (&servers[2], "with everything")] {
        let delivered = metric(served, "interlock_webhooks_delivered_total");
        assert!(delivered > 0, "no webhook was delivered {what}");
        row(&format!("webhooks delivered meanwhile {what}"), delivered, "");
    }
    let (seen, spans) = (receiver.signed.load(Ordering::SeqCst), receiver.spans.load(Ordering::SeqCst));
    assert_eq!(receiver.wrong.load(Ordering::SeqCst), 0, "a signature is wrong");
    assert!(seen > 0 && spans > 0, "{seen} webhooks and {spans} requests with spans were received");
    row("webhooks received, each signature checked; requests with spans", format!("{seen}; {spans}"), "");
}

/// While something is measured, an operator suspends an agent and takes that back, a hundred times a second; its
/// principal is told of each, where there is a webhook.
fn while_told<T>(served: &Served, measured: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut client, key) = (Client::new(served.address), format!("Bearer {KEY}"));
            let body = r#"{"name":"told","type":"trusted","principal_id":"bench"}"#;
            let agent = register_with(&mut client, KEY, body).expect("an agent");
            for deed in ["suspend", "reactivate"].into_iter().cycle() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let path = format!("/agents/{}/{deed}", agent.id);
                let headers = [("authorization", key.as_str())];
                let answer = client.send("POST", &path, &headers, r#"{"reason":"to tell of it"}"#).expect("an answer");
                assert_eq!(answer.status, 200, "{}", answer.body);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let measured = measured();
        ended.store(true, Ordering::SeqCst);
        measured
    })
}

const SECRET: &str = "a secret of the benchmark, long enough";

/// Takes webhooks, whose signatures it checks, and spans.
struct Receiver {
    address: SocketAddr,
    signed: Arc<AtomicU64>,
    wrong: Arc<AtomicU64>,
    spans: Arc<AtomicU64>,
}

impl Receiver {
    fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let receiver = Receiver {
            address: listener.local_addr().expect("an address"),
            signed: Arc::default(),
            wrong: Arc::default(),
            spans: Arc::default(),
        };
        let counters = [&receiver.signed, &receiver.wrong, &receiver.spans].map(Arc::clone);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, counters) = (stream.expect("a connection"), counters.clone());
                std::thread::spawn(move || take(stream, &counters));
            }
        });
        receiver
    }
}

/// Answers every request of a connection.
fn take(stream: std::net::TcpStream, [signed, wrong, spans]: &[Arc<AtomicU64>; 3]) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
        };
        let mut body = vec![0; header("content-length").parse().expect("a length")];
        stream.read_exact(&mut body).expect("a body");
        let counter = if head.starts_with("POST /v1/traces ") {
            spans
        } else {
            let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
            let before = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
            let tag = header("webhook-signature").strip_prefix("v1,").unwrap_or_default();
            let tag = BASE64_STANDARD.decode(tag).unwrap_or_default();
            if hmac::verify(&key, &[before.as_bytes(), body.as_slice()].concat(), &tag).is_ok() {
                signed
            } else {
                wrong
            }
        };
        counter.fetch_add(1, Ordering::SeqCst);
        if stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// What a thousand people who wait for one ticket each cost.
async fn approvers() {
    let served = Served::start();
    let agent = &served.agents[0];
    let mut client = Client::new(served.address);
    let body = r#"{"parameters":{},"context":{"conversation_id":"approvers","step_number":1}}"#;
    let path = format!("/agents/{}/tools/drop_table", agent.id);
    let asked = client.send("POST", &path, &[("x-agent-token", &agent.token)], body).expect("an answer").body;
    let ticket = asked.split("\"approval_id\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a ticket");
    let before = served.resident();
    let request = format!("GET /approvals/{ticket}?wait=60 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n");
    let mut waiting = Vec::new();
    for _ in 0..1_000 {
        let mut stream = TcpStream::connect(served.address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        waiting.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let more = served.resident().saturating_sub(before) as f64 / 1048576.0;
    held("a thousand approvers that wait", format!("{more:.1} MiB more"), "gate-approvers", more);
    let start = Instant::now();
    let headers = [("authorization", &*format!("Bearer {KEY}"))];
    client.send("POST", &format!("/approvals/{ticket}/approve"), &headers, "").expect("an answer");
    let mut buffer = [0; 4096];
    for stream in &mut waiting {
        let length = stream.read(&mut buffer).await.expect("an answer");
        assert!(buffer[..length].windows(8).any(|window| window == b"approved"), "not told");
    }
    row("all of them told", format!("{:.0} ms after the approval", start.elapsed().as_secs_f64() * 1e3), "");
}

fn entries(served: &Served) -> u64 {
    metric(served, "interlock_ledger_entries")
}

fn metric(served: &Served, name: &str) -> u64 {
    let mut client = Client::new(served.address);
    let headers = [("authorization", &*format!("Bearer {KEY}"))];
    let text = client.send("GET", "/metrics", &headers, "").expect("metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
    line.trim().parse().expect("a number")
}

/// The same rows written by nothing but SQLite, in batches as large as the server's were on average.
fn raw_batches(batch: usize, seconds: u64) -> f64 {
    let path = program().with_file_name(format!("bench-raw-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).expect("a directory");
    let rate = interlock_testkit::load::raw_sqlite_rate(&path, batch, Duration::from_secs(seconds));
    let _ = fs::remove_dir_all(&path);
    rate
}

/// Requests arrive on their own schedule, 5,000 a second, whether or not earlier ones are answered.
async fn open_loop(seconds: u64) {
    const RATE: f64 = 5_000.0;
    let served = Served::start();
    let (mut p50, mut p99, mut probes) = (vec![], vec![], vec![]);
    for round in 0..7 {
        let lanes = 128;
        let start = Instant::now() + Duration::from_millis(100);
        let mut tasks = Vec::new();
        for lane in 0..lanes {
            let mut asker = Asker::connect(&served, lane).await;
            asker.name = format!("{}-open-{round}", asker.name);
            let count = (RATE * seconds as f64 / 2.0 / lanes as f64) as u64;
            tasks.push(tokio::spawn(async move {
                let mut times = Vec::new();
                for turn in 0..count {
                    let due = start + Duration::from_secs_f64((turn as f64 * lanes as f64 + lane as f64) / RATE);
                    tokio::time::sleep_until(due.into()).await;
                    asker.ask().await;
                    times.push(due.elapsed().as_secs_f64() * 1e3);
                }
                times
            }));
        }
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.expect("a task"));
        }
        times.sort_by(f64::total_cmp);
        p50.push(times[times.len() / 2]);
        p99.push(times[times.len() * 99 / 100]);
        probes.push(interlock_testkit::load::sync_probe(&program().with_file_name("bench-probe"), 200));
    }
    let (p50, p99) = (median(p50), median(p99));
    held("open loop at 5,000/s, p50", format!("{p50:.2} ms"), "gate-open-p50", p50);
    held("open loop at 5,000/s, p99, median of seven runs", format!("{p99:.2} ms"), "gate-open-p99", p99);
    row("a bare synced write beside it, p50", format!("{:.2} ms", median(probes)), "");
}

async fn one_connection() {
    let served = Served::start();
    let mut asker = Asker::connect(&served, 0).await;
    let (mut asks, mut health, mut commits) = (vec![], vec![], vec![]);
    let path = program().with_file_name(format!("bench-raw-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).expect("a directory");
    let mut commit = interlock_testkit::load::one_row_commits(&path);
    for _ in 0..1_000 {
        let start = Instant::now();
        asker.ask().await;
        asks.push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        asker.exchange(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        health.push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        commit();
        commits.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let _ = fs::remove_dir_all(&path);
    let (asks, health, commits) = (median(asks), median(health), median(commits));
    let limit = commits + 4.0 * health;
    let figure =
        format!("{asks:.0} µs of {limit:.0} µs (a commit of {commits:.0} µs + 4x `/healthz` of {health:.0} µs)");
    held("one connection, p50", figure, "gate-one-connection", asks / limit);
}

/// Whether a request costs more once there is much history.
fn history() {
    let served = Served::start();
    let mut figures = Vec::new();
    for target in [1_000_u64, 1_000_000] {
        while entries(&served) < target {
            let left = target - entries(&served);
            rate(&served, if left > 100_000 { 10 } else { 1 }, false);
        }
        let mut costs = Vec::new();
        for _ in 0..5 {
            let (cpu, before) = (served.cpu(), entries(&served));
            rate(&served, 3, false);
            costs.push((served.cpu() - cpu) as f64 / (entries(&served) - before) as f64);
        }
        figures.push(median(costs));
    }
    let ratio = figures[1] / figures[0];
    let figure = format!("{ratio:.2}x ({:.0} µs, {:.0} µs)", figures[1], figures[0]);
    held("CPU per approval at 10^6 entries, of that at 10^3", figure, "gate-history", ratio);
}

async fn memory() {
    let served = Served::start();
    let mut tasks = Vec::new();
    for number in 0..100 {
        let mut asker = Asker::connect(&served, number).await;
        tasks.push(tokio::spawn(async move {
            for conversation in 0..1_000 {
                (asker.conversation, asker.step) = (conversation, 0);
                asker.ask().await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a task");
    }
    let resident = served.resident() as f64 / 1048576.0;
    held("resident with 100,000 live conversations", format!("{resident:.0} MiB"), "gate-memory", resident);
}

fn audit() {
    let mut served = Served::start();
    while entries(&served) < 1_000_000 {
        rate(&served, 5, false);
    }
    for command in ["verify", "replay"] {
        let start = Instant::now();
        let output = Command::new(program())
            .args(["audit", command, "--json", "--data"])
            .arg(&served.data)
            .env_remove("INTERLOCK_HOME")
            .output()
            .expect("an audit");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let per_minute = entries(&served) as f64 / start.elapsed().as_secs_f64() * 60.0;
        let name = format!("`audit {command}`, entries a minute");
        let id = if command == "verify" { "gate-audit-verify" } else { "gate-audit-replay" };
        held(&name, format!("{per_minute:.0}"), id, per_minute);
    }
    let _ = served.child.kill();
    let _ = served.child.wait();
    let start = Instant::now();
    let (child, address) = serve(&served.data);
    served.child = child;
    let ready = Client::new(address).send("GET", "/readyz", &[], "").expect("an answer");
    assert_eq!(ready.status, 200);
    let took = start.elapsed().as_secs_f64();
    let size = entries(&Served {
        child: Command::new("true").spawn().expect("a process"),
        address,
        data: fresh_name(),
        agents: vec![],
    });
    let name = format!("restart after a kill with {size} entries, to ready");
    held(&name, format!("{took:.2} s"), "gate-restart", took);
    activity(&served, address);
}

/// Pages of a hundred rulings, of one agent and of all.
fn activity(served: &Served, address: SocketAddr) {
    let agent = &served.agents[0];
    for (what, path) in [
        ("one agent's", format!("/agents/{}/activity?limit=100", agent.id)),
        ("all agents'", "/activity?limit=100".to_owned()),
    ] {
        let mut client = Client::new(address);
        let times = (0..21).map(|_| {
            let start = Instant::now();
            let headers = [("authorization", &*format!("Bearer {KEY}"))];
            let page = client.send("GET", &path, &headers, "").expect("an answer");
            assert_eq!((page.status, page.body.matches("\"timestamp\"").count()), (200, 100));
            start.elapsed().as_secs_f64() * 1e3
        });
        let time = median(times.collect());
        let name = format!("a page of 100 of {what} activity, 10^6 entries");
        held(&name, format!("{time:.1} ms"), "gate-activity", time);
    }
}

/// A name that is nobody's directory.
fn fresh_name() -> PathBuf {
    program().with_file_name("bench-nothing")
}
