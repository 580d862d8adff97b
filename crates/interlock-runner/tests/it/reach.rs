//! Hosts by name: through the proxy those that the bound names, and nothing else.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::support::{World, stderr, stdout, users};

/// A host that answers every request with what it was asked, and says how many it got.
struct Host {
    port: u16,
    requests: std::sync::mpsc::Receiver<String>,
}

impl Host {
    fn new() -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (send, requests) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut read = [0; 4096];
                let count = stream.read(&mut read).unwrap_or(0);
                let _ = send.send(String::from_utf8_lossy(&read[..count]).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
            }
        });
        Host { port, requests }
    }

    fn got(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

const ASK: &str = r"
import http.client, os, socket, sys, urllib.request
def attempt(call):
    try:
        print(call())
    except Exception as error:
        print(getattr(error, 'code', None) or type(error).__name__)
def tunnel(host, port):
    at = os.environ['https_proxy'].split('/')[2].split(':')
    one = http.client.HTTPConnection(at[0], int(at[1]))
    one.set_tunnel(host, port)
    one.request('GET', '/tunnel')
    return one.getresponse().read().decode()
port = int(sys.argv[1])
attempt(lambda: urllib.request.urlopen(f'http://127.0.0.1:{port}/direct', timeout=20).read().decode())
del os.environ['no_proxy'], os.environ['NO_PROXY']
attempt(lambda: urllib.request.urlopen(f'http://127.0.0.1:{port}/plain', timeout=20).read().decode())
attempt(lambda: tunnel('127.0.0.1', port))
attempt(lambda: tunnel('localhost', port))
attempt(lambda: tunnel('127.0.0.1', port + 1))
attempt(lambda: tunnel('elsewhere.example', 443))
attempt(lambda: urllib.request.urlopen('http://elsewhere.example/', timeout=20).read().decode())
attempt(lambda: socket.getaddrinfo('elsewhere.example', 80))
";

#[test]
fn named_hosts_are_reached_and_others_are_not() {
    for user in users() {
        let (world, host) = (World::new(user), Host::new());
        let port = host.port.to_string();
        let reach = format!(r#""reach": {{"hosts": ["127.0.0.1:{port}", "localhost:{port}", "*.example.org"]}}"#);
        let program = ["/usr/bin/python3", "-c", ASK, &port];
        let output = world.held(&world.bound(&reach), &program).output().expect("the runner");
        // Past the proxy there is nothing: `no_proxy` names the loopback, which is the command's own.
        let expected = "URLError\nhello\nhello\nOSError\nOSError\nOSError\n403\ngaierror\n";
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
        let got = host.got();
        assert_eq!(got.len(), 2, "{got:?}");
        assert!(got[0].starts_with("GET /plain HTTP/1.1\r\nHost: 127.0.0.1:"), "{got:?}");
        assert!(got[1].starts_with("GET /tunnel HTTP/1.1\r\n"), "{got:?}");
        let report = world.report();
        for (name, allowed) in [("127.0.0.1", true), ("localhost", false), ("elsewhere.example", false)] {
            let line = format!("host: \"{name}\",\n            allowed: {allowed}");
            assert!(report.contains(&line), "{name}: {report}");
        }
    }
}

#[test]
fn without_hosts_there_is_no_proxy() {
    for user in users() {
        let world = World::new(user);
        let output = world
            .line(&world.bound(""), "env | grep -ic proxy; ls /sys/class/net > /dev/null; cat /proc/net/dev | wc -l");
        assert_eq!(stdout(&output), "0\n3\n", "{}", stderr(&output));
    }
}
