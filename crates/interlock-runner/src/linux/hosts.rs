//! Which hosts a bound names, and which addresses one of them may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ports that a name without one stands for.
const PORTS: [u16; 2] = [80, 443];
/// The longest name there is.
const NAME_LEN_MAX: usize = 253;

/// A host as a bound names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    name: Name,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Exactly(String),
    /// Every name that ends in a dot and this.
    Beneath(String),
    Address(IpAddr),
}

/// The hosts of a bound.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Vec<Named>);

/// A host that somebody asks for: a name in lower case without a dot at its end, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Name(String),
    Address(IpAddr),
}

impl Asked {
    /// Reads a host; `None` if it is neither a name nor an address.
    pub(crate) fn parse(text: &str) -> Option<Asked> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Asked::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_name = !name.is_empty()
            && name.len() <= NAME_LEN_MAX
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            && name.split('.').all(|label| !label.is_empty());
        // `0x7f.1` and `127.1` are addresses to some readers.
        let last = name.rsplit('.').next().unwrap_or("");
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        (is_name && !is_number).then_some(Asked::Name(name))
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Asked::Name(name) => f.write_str(name),
            Asked::Address(address) => address.fmt(f),
        }
    }
}

impl Hosts {
    /// Reads the hosts of a bound. One that cannot be read allows nothing.
    pub(crate) fn read(entries: &[String]) -> Hosts {
        Hosts(entries.iter().filter_map(|entry| Named::read(entry)).collect())
    }

    /// Whether a host may be asked for at a port.
    pub(crate) fn allow(&self, asked: &Asked, port: u16) -> bool {
        self.0.iter().any(|named| {
            let is_named = match (&named.name, asked) {
                (Name::Exactly(name), Asked::Name(asked)) => name == asked,
                (Name::Beneath(name), Asked::Name(asked)) => {
                    asked.strip_suffix(name.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                }
                (Name::Address(address), Asked::Address(asked)) => address == asked,
                (Name::Exactly(_) | Name::Beneath(_), Asked::Address(_)) | (Name::Address(_), Asked::Name(_)) => false,
            };
            is_named && named.port.map_or(PORTS.contains(&port), |named| named == port)
        })
    }
}

impl Named {
    fn read(entry: &str) -> Option<Named> {
        let (host, port) = split_port(entry)?;
        let name = match host.strip_prefix("*.") {
            Some(beneath) => match Asked::parse(beneath)? {
                Asked::Name(name) => Name::Beneath(name),
                Asked::Address(_) => return None,
            },
            None => match Asked::parse(host)? {
                Asked::Name(name) => Name::Exactly(name),
                Asked::Address(address) => Name::Address(address),
            },
        };
        Some(Named { name, port })
    }
}

/// A host and the port behind it, if there is one.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            Some((host, Some(port.parse().ok().filter(|port| is_number && *port != 0)?)))
        }
        Some(_) if !text.ends_with(']') => None,
        _ => Some((text, None)),
    }
}

/// Whether an address is one that everybody can have: not of this machine, this network or a private one. A name that is
/// allowed must not lead there.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => is_public_v4(four),
        IpAddr::V6(six) => {
            let [first, second, ..] = six.segments();
            let embedded = six.to_ipv4().or_else(|| {
                // 64:ff9b::/96 and 2002::/16 carry an address of the older kind.
                let [.., seventh, eighth] = six.segments();
                let [_, high, low, ..] = six.segments();
                let of = |high: u16, low: u16| {
                    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                    Ipv4Addr::new(a, b, c, d)
                };
                match (first, second) {
                    (0x64, 0xFF9B) => Some(of(seventh, eighth)),
                    (0x2002, _) => Some(of(high, low)),
                    _ => None,
                }
            });
            let is_local = (first & 0xFE00) == 0xFC00 || (first & 0xFFC0) == 0xFE80 || (first & 0xFFC0) == 0xFEC0;
            !(six.is_loopback() || six.is_unspecified() || six.is_multicast() || is_local)
                && embedded.is_none_or(is_public_v4)
        }
    }
}

fn is_public_v4(four: Ipv4Addr) -> bool {
    let [first, second, third, _] = four.octets();
    let is_special = match (first, second) {
        (0 | 127, _) | (240.., _) => true,
        (100, 64..=127) | (198, 18 | 19) => true,
        (192, 0) => third == 0,
        _ => false,
    };
    !(is_special || four.is_private() || four.is_link_local() || four.is_multicast() || four.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_allowed_by_name_and_port() {
        let hosts = Hosts::read(
            &[
                "example.org",
                "*.crates.io",
                "Registry.Example.COM:8443",
                "127.0.0.1:9000",
                "[::1]:9000",
                "10.0.0.1",
                "*.1",
            ]
            .map(str::to_owned),
        );
        for (asked, port, expected) in [
            ("example.org", 443, true),
            ("EXAMPLE.org.", 80, true),
            ("example.org", 22, false),
            ("www.example.org", 443, false),
            ("example.org.evil.com", 443, false),
            ("index.crates.io", 443, true),
            ("a.b.crates.io", 443, true),
            ("crates.io", 443, false),
            ("xcrates.io", 443, false),
            (".crates.io", 443, false),
            ("registry.example.com", 8443, true),
            ("registry.example.com", 443, false),
            ("127.0.0.1", 9000, true),
            ("127.0.0.1", 80, false),
            ("[::1]", 9000, true),
            ("10.0.0.1", 443, true),
            ("10.0.0.2", 443, false),
            ("0x0a.1", 443, false),
            ("10.1", 443, false),
            ("exa mple.org", 443, false),
            ("", 443, false),
        ] {
            let allowed = Asked::parse(asked).is_some_and(|asked| hosts.allow(&asked, port));
            assert_eq!(allowed, expected, "{asked}:{port}");
        }
    }

    #[test]
    fn addresses_of_this_machine_and_its_networks_are_not_public() {
        for (text, expected) in [
            ("1.1.1.1", true),
            ("2606:4700::1", true),
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("64:ff9b::a00:1", false),
            ("2002:7f00:1::", false),
        ] {
            assert_eq!(is_public(text.parse().expect("an address")), expected, "{text}");
        }
    }

    #[test]
    fn a_host_and_its_port_are_told_apart() {
        for (text, expected) in [
            ("a.b", Some(("a.b", None))),
            ("a.b:80", Some(("a.b", Some(80)))),
            ("[::1]:80", Some(("[::1]", Some(80)))),
            ("[::1]", Some(("[::1]", None))),
            ("::1", Some(("::1", None))),
            ("a:b:80", None),
            ("a:", None),
            ("a:0", None),
            ("a:+80", None),
            ("a:99999", None),
        ] {
            assert_eq!(split_port(text), expected, "{text}");
        }
    }
}
