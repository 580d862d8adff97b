//! Where a request goes: a URL taken apart. What a sender does not want of it, a query or one of the schemes, it refuses
//! itself.

/// A URL, `https://HOST[:PORT][/PATH][?QUERY]` or the same with `http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// It is `https`.
    pub is_encrypted: bool,
    /// A name or a number; one of IPv6 without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Host and port, as the `host` header wants them.
    pub authority: String,
    /// Path and query, as they were written.
    pub target: String,
}

/// Why a text is no URL that anything can be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFault {
    /// It holds a blank, a backslash, or other than visible ASCII.
    Characters,
    /// It begins with neither `http://` nor `https://`.
    Scheme,
    /// It holds a user or a password.
    User,
    /// It has a fragment.
    Fragment,
    /// It names no host.
    Host,
    /// Its port is no number from 1 to 65535.
    Port,
}

impl Address {
    /// Takes a URL apart.
    ///
    /// ```
    /// use interlock_http::client::{Address, AddressFault};
    ///
    /// let address = Address::parse("http://[::1]:7878/below?x=1").unwrap();
    /// assert_eq!((address.host.as_str(), address.port, address.target.as_str()), ("::1", 7878, "/below?x=1"));
    /// assert_eq!(Address::parse("http://a:b@host/"), Err(AddressFault::User));
    /// ```
    pub fn parse(url: &str) -> Result<Address, AddressFault> {
        // All of it goes into the head of a request as it is.
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(AddressFault::Characters);
        }
        let (scheme, rest) = url.split_once("://").ok_or(AddressFault::Scheme)?;
        let is_encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(AddressFault::Scheme),
        };
        if rest.contains('#') {
            return Err(AddressFault::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(AddressFault::User);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or(AddressFault::Host)?,
            None => {
                authority.split_at_checked(authority.find(':').unwrap_or(authority.len())).unwrap_or((authority, ""))
            }
        };
        if host.is_empty() {
            return Err(AddressFault::Host);
        }
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok(),
            Some(_) => None,
            None if !port.is_empty() => None,
            None if is_encrypted => Some(443),
            None => Some(80),
        };
        let port = port.filter(|port| *port > 0).ok_or(AddressFault::Port)?;
        let (host, authority, target) = (host.to_owned(), authority.to_owned(), target.to_owned());
        Ok(Address { is_encrypted, host, port, authority, target })
    }
}
