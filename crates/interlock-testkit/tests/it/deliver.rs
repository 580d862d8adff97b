//! Webhooks against receivers on real sockets that are slow, gone, rude or hostile: nothing is lost, the order is kept,
//! and no destination waits for another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use interlock_core::Cause;
use interlock_core::ledger::EntryName;
use interlock_http::deliver::{
    CHECKPOINT_DESTINATION, Checkpoints, Deliveries, Destination, Destinations, Outbox, Outgoing, Schedule, keep_file,
    replace_file,
};
use interlock_runtime::clock::{Clock, SystemClock, SystemEntropy};
use interlock_runtime::ledger::Turn;
use interlock_testkit::wait::{HANG, until};
use tokio::runtime::Runtime;

const SECRET: &str = "a secret of twenty-four bytes and more";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Waits in milliseconds, in the proportions of the real ones; a receiver has all the time it needs.
fn schedule() -> Schedule {
    Schedule {
        first_retry: Duration::from_millis(20),
        longest_retry: Duration::from_millis(160),
        failures_before_giving_up: 3,
        look_every: Duration::from_millis(50),
        look_pause: Duration::from_millis(2),
        connect_time_max: HANG,
        exchange_time_max: HANG,
        stop_time_max: Duration::from_millis(600),
        ..Schedule::default()
    }
}

/// The same for receivers that never answer. On a busy machine others may be late as well.
fn impatient() -> Schedule {
    Schedule { exchange_time_max: Duration::from_secs(1), ..schedule() }
}

/// An outbox in memory that remembers what it was told.
#[derive(Default)]
struct TestOutbox {
    rows: Mutex<BTreeMap<u64, Outgoing>>,
    delivered: Mutex<Vec<u64>>,
    abandoned: Mutex<Vec<(u64, String)>>,
    /// So many of the next calls fail.
    failing: AtomicU32,
}

impl TestOutbox {
    fn put(&self, id: u64, destination: &str, opened_at: u64) {
        let body = format!(r#"{{"specversion":"1.0","id":"{id}","data":"Grüße an {destination}"}}"#);
        let event_id = format!("evt_{id}");
        let ids = vec![EntryName::of_service(id)];
        let row = Outgoing { ids, destination: destination.to_owned(), event_id, body, opened_at };
        self.rows.lock().unwrap().insert(id, row);
    }

    fn put_new(&self, ids: impl IntoIterator<Item = u64>, destination: &str) {
        ids.into_iter().for_each(|id| self.put(id, destination, SystemClock.now()));
    }

    fn fails(&self) -> Result<(), String> {
        let less = self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if less.is_ok() { Err("the store is gone".to_owned()) } else { Ok(()) }
    }

    fn is_empty(&self) -> bool {
        self.rows.lock().unwrap().is_empty()
    }

    fn delivered(&self) -> Vec<u64> {
        self.delivered.lock().unwrap().clone()
    }

    fn abandoned(&self) -> Vec<(u64, String)> {
        self.abandoned.lock().unwrap().clone()
    }
}

impl Outbox for TestOutbox {
    fn backlog(&self) -> Result<Vec<(String, u64)>, Cause> {
        self.fails()?;
        let mut counts = BTreeMap::new();
        for row in self.rows.lock().unwrap().values() {
            *counts.entry(row.destination.clone()).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }

    fn next(&self, destination: &str, turn: Turn) -> Result<(Turn, Option<Outgoing>), Cause> {
        self.fails()?;
        let rows = self.rows.lock().unwrap();
        let next = rows.values().find(|row| row.destination == destination).cloned();
        Ok((turn, next))
    }

    fn older(&self, destination: &str, before: u64, limit: usize) -> Result<Vec<EntryName>, Cause> {
        self.fails()?;
        let rows = self.rows.lock().unwrap();
        let old = rows.iter().filter(|(_, row)| row.destination == destination && row.opened_at < before);
        Ok(old.map(|(id, _)| EntryName::of_service(*id)).take(limit).collect())
    }

    fn delivered(&self, ids: &[EntryName]) -> Result<(), Cause> {
        self.fails()?;
        for EntryName { seq: id, .. } in ids {
            self.rows.lock().unwrap().remove(id).expect("a row that waits");
            self.delivered.lock().unwrap().push(*id);
        }
        Ok(())
    }

    fn abandoned(&self, ids: &[EntryName], reason: &str) -> Result<(), Cause> {
        self.fails()?;
        for EntryName { seq: id, .. } in ids {
            self.rows.lock().unwrap().remove(id).expect("a row that waits");
            self.abandoned.lock().unwrap().push((*id, reason.to_owned()));
        }
        Ok(())
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Seen {
    fn id(&self) -> u64 {
        self.headers["webhook-id"].strip_prefix("evt_").expect("an id").parse().expect("a number")
    }
}

/// A receiver that does what it is told with each request, by number.
struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    ended: Arc<AtomicBool>,
}

type Behaviour = dyn Fn(usize, &mut TcpStream) + Send + Sync;

impl Receiver {
    fn new(behaviour: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> Receiver {
        Receiver::on(TcpListener::bind("127.0.0.1:0").expect("a port"), behaviour)
    }

    fn on(listener: TcpListener, behaviour: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> Receiver {
        let address = listener.local_addr().expect("an address");
        let (seen, ended): (Arc<Mutex<Vec<Seen>>>, Arc<AtomicBool>) = Default::default();
        let receiver = Receiver { address, seen: Arc::clone(&seen), ended: Arc::clone(&ended) };
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (seen, behaviour) = (Arc::clone(&seen), Arc::clone(&behaviour));
                thread::spawn(move || {
                    let mut stream = stream.expect("a connection");
                    let Some(request) = read_request(&mut stream) else { return };
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request);
                        seen.len() - 1
                    };
                    behaviour(number, &mut stream);
                });
            }
        });
        receiver
    }

    /// One that takes everything.
    fn good() -> Receiver {
        Receiver::new(|_, stream| answer(stream, "200 OK"))
    }

    fn url(&self) -> String {
        format!("http://{}/hook?of=test", self.address)
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn ids(&self) -> Vec<u64> {
        self.seen().iter().map(Seen::id).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        assert!(headers.insert(name.to_owned(), value.to_owned()).is_none(), "{name} came twice");
    }
    let mut body = vec![0; headers["content-length"].parse().expect("a length")];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).expect("UTF-8");
    Some(Seen { at: Instant::now(), line: line.trim_end().to_owned(), headers, body })
}

fn answer(stream: &mut TcpStream, status: &str) {
    let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
}

/// Says nothing until the other side gives up.
fn silent(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 1]);
}

fn destinations(receivers: &[(&str, &str)]) -> Destinations {
    let mut destinations = Destinations::default();
    for (name, url) in receivers {
        destinations.add(name, Destination::parse(url, SECRET).expect("a destination")).expect("a new name");
    }
    destinations
}

fn start(runtime: &Runtime, outbox: &Arc<TestOutbox>, destinations: Destinations, schedule: Schedule) -> Deliveries {
    let _entered = runtime.enter();
    let outbox: Arc<dyn Outbox> = Arc::<TestOutbox>::clone(outbox);
    let entropy = Arc::new(SystemEntropy::new());
    Deliveries::start(outbox, destinations, schedule, Arc::new(SystemClock), entropy).expect("a start")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
}

/// Runs a command with some input, and returns its output.
fn piped(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new(program);
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
    child.stdin.take().expect("a pipe").write_all(input).expect("written");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success());
    output.stdout
}

#[test]
fn an_event_is_signed_as_others_compute_it() {
    let (runtime, outbox, receiver) = (runtime(), Arc::<TestOutbox>::default(), Receiver::good());
    let key: Vec<u8> = (0..32).map(|byte| byte * 7).collect();
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let base64 = String::from_utf8(piped("openssl", &["base64", "-A"], &key)).expect("ASCII");
    let mut destinations = destinations(&[("plain", &receiver.url())]);
    let coded = Destination::parse(&receiver.url(), &format!("whsec_{base64}")).expect("a destination");
    destinations.add("coded", coded).expect("a new name");
    outbox.put_new([1], "plain");
    let begun = SystemClock.now() / 1_000;
    let deliveries = start(&runtime, &outbox, destinations, schedule());
    until("the first arrives", || outbox.is_empty());
    outbox.put_new([2], "coded");
    deliveries.wake().wake();
    until("the second arrives", || outbox.is_empty());

    let seen = receiver.seen();
    for (request, key) in seen.iter().zip([format!("key:{SECRET}"), format!("hexkey:{hex}")]) {
        let header = |name: &str| request.headers[name].as_str();
        assert_eq!(request.line, "POST /hook?of=test HTTP/1.1");
        assert_eq!(header("content-type"), "application/cloudevents+json");
        assert_eq!(header("host"), receiver.address.to_string());
        let now = SystemClock.now() / 1_000;
        let timestamp: u64 = header("webhook-timestamp").parse().expect("seconds");
        assert!((begun..=now).contains(&timestamp), "{timestamp}");
        let signed = format!("{}.{timestamp}.{}", header("webhook-id"), request.body);
        let mac = piped("openssl", &["dgst", "-sha256", "-mac", "HMAC", "-macopt", &key, "-binary"], signed.as_bytes());
        let mac = String::from_utf8(piped("openssl", &["base64", "-A"], &mac)).expect("ASCII");
        assert_eq!(header("webhook-signature"), format!("v1,{mac}"));
    }
    assert_eq!(receiver.ids(), [1, 2]);
    assert!(seen[0].body.contains("Grüße an plain"));
}

#[test]
fn a_receiver_that_is_down_gets_everything_later_and_in_order() {
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let place = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let other = Receiver::good();
    // Id 0 is an id like any other.
    outbox.put_new(0..50, "down");
    outbox.put_new(50..100, "up");
    let both = destinations(&[("down", &format!("http://{place}/")), ("up", &other.url())]);
    let deliveries = start(&runtime, &outbox, both, schedule());
    let metrics = Arc::clone(deliveries.metrics());
    until("three attempts failed", || metrics.failed.load(Ordering::SeqCst) >= 3);
    until("the other has all", || outbox.delivered() == (50..100).collect::<Vec<_>>());
    until("the backlog was seen", || metrics.waiting.load(Ordering::SeqCst) == 50);

    let receiver = Receiver::on(TcpListener::bind(place).expect("the same port"), |_, stream| answer(stream, "202 Ok"));
    until("all arrived", || outbox.is_empty());
    assert_eq!(receiver.ids(), (0..50).collect::<Vec<_>>());
    assert_eq!(other.ids(), (50..100).collect::<Vec<_>>());
    until("all are counted", || metrics.delivered.load(Ordering::SeqCst) == 100);
    assert_eq!(metrics.abandoned.load(Ordering::SeqCst), 0);
    until("nothing waits", || metrics.waiting.load(Ordering::SeqCst) == 0);
}

type Fault = Box<dyn Fn(&mut TcpStream) + Send + Sync>;

#[test]
fn what_a_receiver_does_wrong_is_tried_again_and_delays_nobody_else() {
    // A second listener, which nobody may ever reach.
    let elsewhere = Receiver::good();
    let away = format!("http://{}/elsewhere", elsewhere.address);
    let redirect = move |status: &'static str| {
        let away = away.clone();
        move |stream: &mut TcpStream| {
            let _ = write!(stream, "HTTP/1.1 {status}\r\nlocation: {away}\r\ncontent-length: 0\r\n\r\n");
        }
    };
    fn endless(head: &'static str, unit: &'static str) -> impl Fn(&mut TcpStream) + Send + Sync {
        move |stream| {
            let unit = unit.repeat(1_000);
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(unit.as_bytes()).is_ok() {}
        }
    }
    fn once(text: String) -> impl Fn(&mut TcpStream) + Send + Sync {
        move |stream| drop(stream.write_all(text.as_bytes()))
    }
    let faults: Vec<(&str, Fault)> = vec![
        ("closed", Box::new(|_| ())),
        ("status 500", Box::new(|stream| answer(stream, "500 No"))),
        ("status 404", Box::new(|stream| answer(stream, "404 No"))),
        ("status 429", Box::new(|stream| answer(stream, "429 No"))),
        ("status 101", Box::new(|stream| answer(stream, "101 Switching Protocols"))),
        ("redirected 301", Box::new(redirect("301 Moved"))),
        ("redirected 302", Box::new(redirect("302 Found"))),
        ("redirected 307", Box::new(redirect("307 Temporary Redirect"))),
        ("redirected 308", Box::new(redirect("308 Permanent Redirect"))),
        ("closed in the head", Box::new(once("HTTP/1.1 200 OK\r\ncontent-len".to_owned()))),
        ("a long header", Box::new(once(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(100_000))))),
        ("many headers", Box::new(once(format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(1_000))))),
        ("an endless head", Box::new(endless("HTTP/1.1 200 OK\r\nx: ", "x"))),
        ("endless headers", Box::new(endless("HTTP/1.1 200 OK\r\n", "x: y\r\n"))),
        ("no HTTP", Box::new(once("220 smtp.example ESMTP\r\n".to_owned()))),
        ("an endless refusal", Box::new(endless("HTTP/1.1 500 No\r\n\r\n", "no "))),
    ];
    tried_again(faults, schedule());
    // Only time tells these.
    let mute: Vec<(&str, Fault)> = vec![
        ("silent", Box::new(silent)),
        ("endless promises", Box::new(endless("", "HTTP/1.1 100 Continue\r\n\r\n"))),
    ];
    tried_again(mute, impatient());
    assert_eq!(elsewhere.seen().len(), 0, "a redirect was followed");
}

/// The second event of each meets the fault; all arrive in order, and somebody else's without delay.
fn tried_again(faults: Vec<(&'static str, Fault)>, schedule: Schedule) {
    let is_exact = schedule.exchange_time_max == HANG;
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let mut receivers = Vec::new();
    for (number, (name, fault)) in faults.into_iter().enumerate() {
        // The second event meets the fault, at its first attempt.
        let receiver = Receiver::new(move |request, stream| match request {
            1 => fault(stream),
            _ => answer(stream, "200 OK"),
        });
        let first = number as u64 * 100;
        outbox.put_new(first..first + 4, name);
        receivers.push((name, first, receiver));
    }
    let good = Receiver::good();
    outbox.put_new(90_000..90_100, "good");
    let urls: Vec<(&str, String)> = receivers.iter().map(|(name, _, receiver)| (*name, receiver.url())).collect();
    let mut all: Vec<(&str, &str)> = urls.iter().map(|(name, url)| (*name, url.as_str())).collect();
    let good_url = good.url();
    all.push(("good", &good_url));
    let deliveries = start(&runtime, &outbox, destinations(&all), schedule);
    until("all arrived", || outbox.is_empty());
    for (name, first, receiver) in &receivers {
        let expected = [*first, first + 1, first + 1, first + 2, first + 3];
        let mut ids = receiver.ids();
        assert!(ids == expected || !is_exact && ids.is_sorted(), "{name}: {ids:?}");
        ids.dedup();
        assert_eq!(ids, (*first..first + 4).collect::<Vec<_>>(), "{name}");
        let attempts: Vec<_> = receiver.seen().into_iter().filter(|seen| seen.id() == first + 1).collect();
        // An attempt that is repeated is signed anew, under the same id and with the same body.
        assert_eq!(attempts[0].body, attempts[1].body, "{name}");
    }
    assert!(!is_exact || good.ids() == (90_000..90_100).collect::<Vec<_>>(), "{:?}", good.ids());
    let failed = deliveries.metrics().failed.load(Ordering::SeqCst);
    assert!(failed == receivers.len() as u64 || !is_exact && failed > receivers.len() as u64, "{failed}");
    assert_eq!(deliveries.metrics().abandoned.load(Ordering::SeqCst), 0);
}

#[test]
fn a_success_is_one_whatever_its_body_does() {
    type Body = fn(&mut TcpStream);
    let bodies: [(&str, Body); 3] = [
        ("endless", |stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        }),
        ("closed", |stream| drop(stream.write_all(b"HTTP/1.1 204 OK\r\ncontent-length: 100\r\n\r\nxx"))),
        ("broken", |stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"))),
    ];
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let mut receivers = Vec::new();
    for (number, (name, body)) in bodies.into_iter().enumerate() {
        outbox.put_new([number as u64 * 10, number as u64 * 10 + 1], name);
        receivers.push((name, Receiver::new(move |_, stream| body(stream))));
    }
    let urls: Vec<(&str, String)> = receivers.iter().map(|(name, receiver)| (*name, receiver.url())).collect();
    let all: Vec<(&str, &str)> = urls.iter().map(|(name, url)| (*name, url.as_str())).collect();
    let deliveries = start(&runtime, &outbox, destinations(&all), schedule());
    until("all arrived", || outbox.is_empty());
    for (name, receiver) in &receivers {
        assert_eq!(receiver.seen().len(), 2, "{name}");
    }
    assert_eq!(deliveries.metrics().failed.load(Ordering::SeqCst), 0);
    // One that stalls is given up by its time, and is a success all the same.
    let stalls = Receiver::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nxx");
        silent(stream);
    });
    outbox.put_new([100, 101], "stalls");
    let deliveries = start(&runtime, &outbox, destinations(&[("stalls", &stalls.url())]), impatient());
    until("both arrived", || outbox.is_empty());
    assert_eq!(stalls.ids().len() as u64, 2 + deliveries.metrics().failed.load(Ordering::SeqCst));
}

#[test]
fn receivers_that_hang_delay_nobody() {
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    // One accepts and says nothing, one does not even accept, one is not there.
    let mute = Receiver::new(|_, stream| silent(stream));
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a port");
    let deaf_at = deaf.local_addr().expect("an address");
    let good = Receiver::good();
    // A port that no other test is given.
    let gone = "http://127.0.0.1:9/".to_owned();
    let urls = [format!("http://{deaf_at}/"), gone, "http://name.invalid/".to_owned()];
    let all = [
        ("mute", mute.url()),
        ("deaf", urls[0].clone()),
        ("gone", urls[1].clone()),
        ("nobody", urls[2].clone()),
        ("good", good.url()),
    ];
    let all: Vec<(&str, &str)> = all.iter().map(|(name, url)| (*name, url.as_str())).collect();
    for (number, (name, _)) in all.iter().enumerate() {
        outbox.put_new((0..100).map(|id| number as u64 * 1_000 + id), name);
    }
    // Longer than anything is waited for here, so whoever waited for the mute one would wait for ever.
    let patient = Schedule { exchange_time_max: 2 * HANG, ..schedule() };
    let deliveries = start(&runtime, &outbox, destinations(&all), patient);
    until("the good one has all", || good.ids().len() == 100);
    until("each was tried", || mute.seen().len() == 1 && deliveries.metrics().failed.load(Ordering::SeqCst) > 2);
    until("all are recorded", || outbox.delivered() == (4_000..4_100).collect::<Vec<_>>());
    assert_eq!(outbox.rows.lock().unwrap().len(), 400, "what has not arrived still waits");
    // A stop does not wait for them either.
    runtime.block_on(async { tokio::time::timeout(HANG, deliveries.stop()).await }).expect("an end");
    assert_eq!(mute.seen().len(), 1);
}

#[test]
fn waits_grow_up_to_the_longest() {
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let receiver = Receiver::new(|request, stream| answer(stream, if request < 7 { "503 No" } else { "200 OK" }));
    outbox.put_new([1, 2], "slow");
    let _deliveries = start(&runtime, &outbox, destinations(&[("slow", &receiver.url())]), schedule());
    until("both arrived", || outbox.is_empty());
    let seen = receiver.seen();
    let gaps: Vec<Duration> = seen.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    for (failures, (gap, expected)) in (1..).zip(gaps.iter().zip([20, 40, 80, 160, 160, 160, 160])) {
        let expected = Duration::from_millis(expected);
        assert_eq!(schedule().wait_after(failures), expected);
        // Up to a half less, by chance; how much later it is seen is the machine's affair.
        assert!(*gap >= expected / 2, "{gaps:?}");
    }
    assert_eq!(schedule().wait_after(u32::MAX), Duration::from_millis(160));
}

#[test]
fn old_events_are_given_up_once_the_destination_has_failed_often_enough() {
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let works = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&works);
    let receiver = Receiver::new(move |_, stream| {
        answer(stream, if switch.load(Ordering::SeqCst) { "200 OK" } else { "500 No" });
    });
    let now = SystemClock.now();
    (0..40).for_each(|id| outbox.put(id, "a", now - 4 * DAY_MS));
    outbox.put(40, "a", now - 3 * DAY_MS + 600_000);
    outbox.put_new([41], "a");
    // For this one there is no webhook any more; the old event is given up, the new one kept.
    outbox.put(50, "former", now - 4 * DAY_MS);
    outbox.put_new([51], "former");
    let deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), schedule());
    until("the old ones are given up", || outbox.abandoned().len() == 41);
    // No request for each of them: three failures in a row were enough for all.
    assert_eq!(receiver.ids().iter().filter(|id| **id < 40).count(), 3);
    for (id, reason) in outbox.abandoned() {
        match id {
            50 => assert_eq!(reason, "no webhook is configured for this destination"),
            _ => assert_eq!(reason, "given up: the receiver answered 500"),
        }
    }
    until("the next one is tried", || receiver.ids().contains(&40));
    works.store(true, Ordering::SeqCst);
    until("the new ones arrived", || outbox.delivered() == [40, 41]);
    assert_eq!(outbox.rows.lock().unwrap().keys().copied().collect::<Vec<_>>(), [51]);
    until("all are counted", || deliveries.metrics().abandoned.load(Ordering::SeqCst) == 41);
}

#[test]
fn an_old_event_is_delivered_if_the_receiver_takes_it() {
    let (runtime, outbox, receiver) = (runtime(), Arc::<TestOutbox>::default(), Receiver::good());
    (0..5).for_each(|id| outbox.put(id, "a", SystemClock.now() - 9 * DAY_MS));
    let _deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), schedule());
    until("all arrived", || outbox.is_empty());
    assert_eq!((outbox.delivered(), outbox.abandoned().len()), (vec![0, 1, 2, 3, 4], 0));
}

#[test]
fn gone_means_gone_at_once() {
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let receiver = Receiver::new(|request, stream| answer(stream, if request == 0 { "410 Gone" } else { "200 OK" }));
    outbox.put_new([1, 2], "a");
    outbox.rows.lock().unwrap().get_mut(&2).expect("a row").event_id = "evt_2\n".to_owned();
    outbox.put_new([3], "a");
    let deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), schedule());
    until("all are settled", || outbox.is_empty());
    let abandoned = outbox.abandoned();
    assert_eq!(abandoned[0], (1, "the receiver answered 410: it wants no more events".to_owned()));
    assert_eq!(abandoned[1], (2, "the event's id does not fit into a header".to_owned()));
    assert_eq!((receiver.ids(), outbox.delivered()), (vec![1, 3], vec![3]));
    assert_eq!(deliveries.metrics().failed.load(Ordering::SeqCst), 0);
}

#[test]
fn an_outbox_that_fails_loses_nothing_and_repeats_nothing() {
    let (runtime, outbox) = (runtime(), Arc::<TestOutbox>::default());
    let failing = Arc::clone(&outbox);
    // The store fails just when it should record what arrived.
    let receiver = Receiver::new(move |request, stream| {
        if request % 3 == 1 {
            failing.failing.store(4, Ordering::SeqCst);
        }
        answer(stream, "200 OK");
    });
    outbox.failing.store(3, Ordering::SeqCst);
    outbox.put_new(0..10, "a");
    let deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), schedule());
    until("all arrived", || outbox.is_empty());
    assert_eq!(receiver.ids(), (0..10).collect::<Vec<_>>());
    assert!(deliveries.metrics().faults.load(Ordering::SeqCst) >= 6);
}

#[test]
fn across_stops_nothing_is_lost_and_the_order_is_kept() {
    let outbox = Arc::<TestOutbox>::default();
    let receiver = Receiver::new(|_, stream| {
        thread::sleep(Duration::from_millis(3));
        answer(stream, "200 OK");
    });
    outbox.put_new(0..200, "a");
    let mut starts = 0;
    while !outbox.is_empty() {
        let runtime = runtime();
        let deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), schedule());
        let before = receiver.ids().len();
        until("some more arrived", || outbox.is_empty() || receiver.ids().len() >= before + 15);
        match starts % 2 {
            // Told to stop, it records what is under way.
            0 => runtime.block_on(deliveries.stop()),
            // Dropped, it may have sent what it did not record.
            _ => drop(deliveries),
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
        starts += 1;
        assert!(starts < 200, "nothing moves");
    }
    assert!(starts > 2, "{starts}");
    assert_eq!(outbox.delivered(), (0..200).collect::<Vec<_>>());
    let mut ids = receiver.ids();
    assert!(ids.is_sorted(), "{ids:?}");
    assert!(ids.len() <= 200 + starts, "more than one repeated for each stop");
    ids.dedup();
    assert_eq!(ids, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_wake_is_heard_without_waiting_for_the_next_look() {
    let (runtime, outbox, receiver) = (runtime(), Arc::<TestOutbox>::default(), Receiver::good());
    let rarely = Schedule { look_every: Duration::from_secs(3_600), ..schedule() };
    let deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), rarely);
    let wake = deliveries.wake();
    for id in 0..20 {
        outbox.put_new([id], "a");
        wake.wake();
        // Some find it at work, some at rest.
        if id % 3 == 0 {
            until("it arrived", || outbox.is_empty());
        }
    }
    until("all arrived", || outbox.is_empty());
    assert_eq!(receiver.ids(), (0..20).collect::<Vec<_>>());
}

#[test]
fn a_large_event_arrives_whole() {
    let (runtime, outbox, receiver) = (runtime(), Arc::<TestOutbox>::default(), Receiver::good());
    outbox.put_new([1], "a");
    let large = format!("{{\"data\":\"{}\"}}", "ab".repeat(1_000_000));
    outbox.rows.lock().unwrap().get_mut(&1).expect("a row").body.clone_from(&large);
    let _deliveries = start(&runtime, &outbox, destinations(&[("a", &receiver.url())]), schedule());
    until("it arrived", || outbox.is_empty());
    assert!(receiver.seen()[0].body == large);
}

#[test]
fn addresses_and_secrets_are_checked() {
    let long = format!("https://example.com/{}", "x".repeat(2_048));
    for (url, secret, part) in [
        ("example.com/hook", SECRET, "is not an address"),
        ("ftp://example.com/", SECRET, "must begin with"),
        ("file:///etc/passwd", SECRET, "is not an address"),
        ("/hook", SECRET, "must begin with"),
        ("", SECRET, "is not an address"),
        ("https://", SECRET, "is not an address"),
        ("http://user:word@example.com/", SECRET, "user or password"),
        ("https://example.com/#part", SECRET, "fragment"),
        ("https://example.com:0/", SECRET, "port"),
        ("https://example.com:70000/", SECRET, "port"),
        ("https://exa mple.com/", SECRET, "is not an address"),
        ("https://example.com/\r\nx: y", SECRET, "is not an address"),
        ("https://-/", SECRET, "a host that is none"),
        (&long, SECRET, "2048 bytes at most"),
        ("https://example.com/", "", "24 bytes at least"),
        ("https://example.com/", "twenty-three bytes long", "24 bytes at least"),
        ("https://example.com/", "whsec_!!!", "must be base64"),
        ("https://example.com/", "whsec_AAAA", "24 bytes at least"),
    ] {
        let error = Destination::parse(url, secret).expect_err(url).to_string();
        assert!(error.contains(part), "{url}: {error}");
    }
    for url in
        ["https://example.com", "http://[::1]:8080/x", "https://[2001:db8::1]/", "https://example.com:8443/a?b=c"]
    {
        let destination = Destination::parse(url, "exactly 24 bytes, no more").expect(url);
        let shown = format!("{destination:?}");
        assert!(!shown.contains("exactly") && !shown.contains("b=c"), "{shown}");
    }
    let mut destinations = destinations(&[("a", "http://127.0.0.1/")]);
    let again = Destination::parse("http://127.0.0.1/", SECRET).expect("a destination");
    assert!(destinations.add("a", again).expect_err("a name twice").to_string().contains("same name"));
}

/// A receiver with TLS, in Python; it answers 200 and prints the body of each request on a line.
struct TlsReceiver {
    child: Child,
    port: u16,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl TlsReceiver {
    fn new(certificate: &str, key: &str) -> TlsReceiver {
        const PROGRAM: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200); self.end_headers()
        print(body.decode(), flush=True)
    def log_message(self, *_): pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_): pass
server = Server(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;
        let mut command = Command::new("python3");
        let mut child =
            command.args(["-c", PROGRAM, certificate, key]).stdout(Stdio::piped()).spawn().expect("python3");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let port = lines.next().expect("a line").expect("a line").parse().expect("a port");
        let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&bodies);
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line)));
        TlsReceiver { child, port, bodies }
    }
}

impl Drop for TlsReceiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn https_needs_a_certificate_that_is_believed_for_that_name() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).output().expect("openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let new = ["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let (authority, authority_key) = (path("authority.crt"), path("authority.key"));
    openssl(&[&new[..], &["-subj", "/CN=authority", "-keyout", &authority_key, "-out", &authority]].concat());
    let (certificate, key) = (path("server.crt"), path("server.key"));
    let signed = ["-CA", &authority, "-CAkey", &authority_key, "-subj", "/CN=server", "-keyout", &key, "-out"];
    let extensions = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
    openssl(&[&new[..], &signed, &[&certificate], &extensions].concat());
    let receiver = TlsReceiver::new(&certificate, &key);
    let plain = Receiver::good();

    let runtime = runtime();
    let try_once = |host: &str, port: u16, trusted: Option<&str>| {
        let outbox = Arc::<TestOutbox>::default();
        outbox.put_new([1], "a");
        let mut to = destinations(&[("a", &format!("https://{host}:{port}/hook"))]);
        if let Some(trusted) = trusted {
            to.also_trust(trusted.as_ref());
        }
        let deliveries = start(&runtime, &outbox, to, schedule());
        let settled = || outbox.is_empty() || deliveries.metrics().failed.load(Ordering::SeqCst) >= 2;
        until("it is settled", settled);
        outbox.is_empty()
    };
    assert!(!try_once("127.0.0.1", receiver.port, None), "an authority nobody knows was believed");
    assert!(!try_once("localhost", receiver.port, Some(&authority)), "a certificate for another name was believed");
    assert!(!try_once("127.0.0.1", plain.address.port(), Some(&authority)), "plain HTTP was spoken to https");
    assert!(receiver.bodies.lock().unwrap().is_empty() && plain.seen().is_empty(), "something was sent all the same");
    assert!(try_once("127.0.0.1", receiver.port, Some(&authority)), "a certificate that is sound was not believed");
    until("the receiver has it", || receiver.bodies.lock().unwrap().len() == 1);
    assert!(receiver.bodies.lock().unwrap()[0].contains("Grüße an a"));

    let mut missing = destinations(&[("a", "https://127.0.0.1/")]);
    missing.also_trust(path("nowhere").as_ref());
    let _entered = runtime.enter();
    let outbox: Arc<dyn Outbox> = Arc::<TestOutbox>::default();
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy::new()));
    let fault = Deliveries::start(outbox, missing, schedule(), clock, entropy).expect_err("no file");
    assert!(fault.to_string().contains("INTERLOCK-CONFIG-001") && fault.to_string().contains("cannot be read"));
}

#[test]
fn checkpoints_go_to_a_webhook_the_newest_one_and_not_too_often() {
    let (runtime, receiver) = (runtime(), Receiver::good());
    let note: Arc<Mutex<Option<String>>> = Arc::default();
    let source = Arc::clone(&note);
    let every = Duration::from_millis(300);
    let newest = Arc::new(move || source.lock().unwrap().clone());
    let outbox: Arc<dyn Outbox> = Arc::new(Checkpoints::new(newest, "interlock:test", every, Arc::new(SystemClock)));
    let to = destinations(&[(CHECKPOINT_DESTINATION, &receiver.url())]);
    let _entered = runtime.enter();
    let entropy = Arc::new(SystemEntropy::new());
    let _deliveries = Deliveries::start(outbox, to, schedule(), Arc::new(SystemClock), entropy).expect("a start");
    let begun = Instant::now();
    let mut count = 0;
    while receiver.seen().len() < 3 {
        count += 1;
        *note.lock().unwrap() = Some(format!("interlock\n{count}\n\u{2014} signature\n"));
        thread::sleep(Duration::from_millis(5));
    }
    let last = interlock_core::json::quote(&format!("interlock\n{count}\n\u{2014} signature\n"));
    let last = format!(r#""data":{last}}}"#);
    until("the newest arrived", || receiver.seen().iter().any(|seen| seen.body.ends_with(&last)));
    thread::sleep(every);
    let seen = receiver.seen();
    let often = begun.elapsed().as_millis() / every.as_millis() + 2;
    assert!(seen.len() as u128 <= often, "{} of {often}", seen.len());
    let ids: BTreeSet<_> = seen.iter().map(|seen| seen.headers["webhook-id"].clone()).collect();
    assert_eq!(ids.len(), seen.len(), "one was sent twice");
    assert!(seen[0].body.starts_with(r#"{"specversion":"1.0","id":"checkpoint-"#), "{}", seen[0].body);
}

#[test]
fn checkpoints_go_to_a_file_that_is_always_whole() {
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = scratch.path().join("elsewhere");
    fs::create_dir(&directory).expect("a directory");
    let path = directory.join("checkpoint");
    let text = |number: u32| format!("{number}\n").repeat(10_000);
    let count = Arc::new(AtomicU32::new(0));
    let (counted, faults) = (Arc::clone(&count), Arc::new(AtomicU32::new(0)));
    let newest = Arc::new(move || Some(text(counted.fetch_add(1, Ordering::SeqCst))));
    let (runtime, heard) = (runtime(), Arc::clone(&faults));
    let (every, begun) = (Duration::from_millis(10), Instant::now());
    let kept = keep_file(newest, path.clone(), every, move |_| {
        heard.fetch_add(1, Ordering::SeqCst);
    });
    let kept = runtime.spawn(kept);
    until("it is there", || path.exists());
    while count.load(Ordering::SeqCst) < 20 {
        let read = fs::read_to_string(&path).expect("the file");
        let number: u32 = read.lines().next().expect("a line").parse().expect("a number");
        assert!(read == text(number), "half a file");
    }
    let often = begun.elapsed().as_millis() / every.as_millis() + 2;
    assert!(u128::from(count.load(Ordering::SeqCst)) <= often, "{count:?} of {often}");
    assert_eq!(faults.load(Ordering::SeqCst), 0);
    // Where it cannot be written, that is heard of, and tried again.
    fs::rename(&directory, scratch.path().join("gone")).expect("gone");
    until("it failed twice", || faults.load(Ordering::SeqCst) >= 2);
    fs::create_dir(&directory).expect("back");
    until("it is there again", || path.exists());
    kept.abort();
    until("it ended", || kept.is_finished());

    // What a crash left behind is no obstacle, and a link that was put there is not followed.
    let (target, temporary) = (directory.join("target"), directory.join(".checkpoint.tmp"));
    fs::write(&target, "untouched").expect("a file");
    let _ = fs::remove_file(&temporary);
    std::os::unix::fs::symlink(&target, &temporary).expect("a link");
    replace_file(&path, "new").expect("written");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "new");
    assert_eq!(fs::read_to_string(&target).expect("the file"), "untouched");
    assert!(!temporary.exists());
    assert!(replace_file("/".as_ref(), "new").is_err());
}
