//! Which hosts a text names, read as the strictest of the usual clients would read it.
//!
//! Browsers, `urlsplit`, curl and their like agree about plain addresses only: `scheme://[user@]host[:port]` in plain
//! characters. About all else one of them may go elsewhere: it drops tabs and line breaks, takes a backslash for a
//! slash, decodes the host, counts in octal. Such an address is unknown, and beside that names every host that one of
//! them would read. A text may also be more than an address; so what stands behind a blank counts if it could belong
//! to it.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization;

use crate::field_names::holds_path_or_address;

/// Schemes after which clients find a host whatever slashes there are.
const SPECIAL_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];
/// What ends an address within a text, if what is behind it cannot belong to a host.
const SOFT_ENDS: [char; 15] = ['<', '>', '"', '\'', '`', ')', ']', '}', '|', ',', ';', '*', '!', '&', '('];
/// No name is longer; in a longer text up to its first slash nobody looks for one.
const AUTHORITY_BYTES_MAX: usize = 2_048;
/// How much of a text is looked at, over and over; who wants more may name any host.
const LOOKED_AT_BYTES_MAX: usize = 4 << 20;
/// How much before an address is looked at for a name.
const NAME_BYTES_MAX: usize = 64;
/// The longest name of a host.
const HOST_BYTES_MAX: usize = 253;

/// Calls back with every host that a text names; `None` is one that two clients could read differently. All of the
/// text is an address, or a list of them, where one is expected.
pub(super) fn hosts_in(text: &str, expected: bool, mut found: impl FnMut(Option<String>)) {
    if !expected && !text.contains([':', '/', '\\']) {
        return;
    }
    let text = text.trim_matches(|c: char| c <= ' ');
    let first = beginning(text);
    if let Some(first) = &first {
        let _ = first.hosts(&mut found);
    }
    let at_start = first.map_or(0, |first| text.len().saturating_sub(first.rest.len()));
    let mut looked_at = 0_usize;
    for (position, _) in text.match_indices(':').filter(|(position, _)| *position >= at_start) {
        let Some(address) = within(text, position) else { continue };
        looked_at = looked_at.saturating_add(address.hosts(&mut found));
        if looked_at > LOOKED_AT_BYTES_MAX {
            return found(None);
        }
    }
    for (position, _) in text.match_indices("//").filter(|(position, _)| *position >= at_start) {
        without_scheme(text, position).into_iter().for_each(&mut found);
    }
    if expected {
        let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|');
        for one in text.split(is_between).filter(|one| !one.is_empty()) {
            let scheme = one.split_once(':').map_or("", |(scheme, _)| scheme);
            if !one.contains("://") && !is_special(scheme) && !one.starts_with("//") && !one.starts_with('\\') {
                let _ = Address::new(one.trim_start_matches('/')).hosts(&mut found);
            }
        }
    }
}

/// A host as it is compared: addresses of the network in their usual spelling, no final dot, small letters.
pub(super) fn canonical(host: &str) -> String {
    let host = host.to_lowercase();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    match bare.parse::<Ipv6Addr>() {
        Ok(address) => address.to_string(),
        Err(_) => host.strip_suffix('.').map_or_else(|| host.clone(), str::to_owned),
    }
}

/// A place in a text at which an address begins.
#[derive(Debug, Clone, Copy)]
struct Address<'a> {
    /// What follows the slashes.
    rest: &'a str,
    extent: Extent,
    /// Not every client finds a host behind what it begins with.
    is_irregular: bool,
}

/// How far an address may go, with the blanks that are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// To the next blank, unless what follows looks as if it belonged to it.
    Word,
    /// To the end of the line.
    Line,
    /// To this character.
    Closed(char),
    /// All of the text is the address.
    Text,
}

/// The address that a text begins with.
fn beginning(text: &str) -> Option<Address<'_>> {
    let (slashes, rest) = skip_slashes(text);
    if slashes.chars().filter(|c| !is_dropped(*c)).count() >= 2 {
        return Some(Address { extent: Extent::Text, is_irregular: slashes != "//", ..Address::new(rest) });
    }
    let (before, after) = text.split_once(':')?;
    if before.len() > 64 {
        return None;
    }
    let scheme: String = before.chars().filter(|c| !is_dropped(*c)).collect();
    if !scheme.chars().all(is_in_scheme) {
        return None;
    }
    let (slashes, rest) = skip_slashes(after);
    let has_host = slashes.chars().filter(|c| !is_dropped(*c)).take(2).eq(['/', '/']);
    let is_address =
        !scheme.eq_ignore_ascii_case("file") && (has_host || is_special(&scheme) || scheme.eq_ignore_ascii_case("ssh"));
    let is_irregular = slashes != "//" || scheme.len() != before.len();
    is_address.then_some(Address { extent: Extent::Text, is_irregular, ..Address::new(rest) })
}

/// The address whose scheme ends at a colon somewhere in a text.
fn within(text: &str, colon: usize) -> Option<Address<'_>> {
    let (before, after) = (text.get(..colon)?, text.get(colon.saturating_add(1)..)?);
    let scheme = trailing(before, is_in_scheme);
    let word = trailing(before, |c| c.is_ascii_alphanumeric());
    let (slashes, rest) = skip_slashes(after);
    let is_special = is_special(word);
    if scheme.eq_ignore_ascii_case("file") || !(slashes.starts_with("//") || is_special) {
        return None;
    }
    // `http:` at the end of a word is no address, and neither is `http:` before the next line.
    let begins = |c: char| c.is_alphanumeric() || matches!(c, '[' | '@' | '%' | '/' | '\\') || !c.is_ascii();
    let has_slash = slashes.contains(['/', '\\']);
    if !(has_slash || slashes.is_empty() && rest.starts_with(begins)) {
        return None;
    }
    let before = before.get(..before.len().saturating_sub(scheme.len())).unwrap_or("");
    let extent = match before.chars().next_back().and_then(closing) {
        Some(close) => Extent::Closed(close),
        None if is_value_of_address(before) => Extent::Line,
        None => Extent::Word,
    };
    Some(Address { rest, extent, is_irregular: slashes != "//" })
}

/// The host of `//host` where it stands in quotes or brackets, or behind `=`. What is not a whole name there is
/// something else: a comment, a path of XML.
fn without_scheme(text: &str, position: usize) -> Option<Option<String>> {
    let before = text.get(..position)?.chars().next_back()?;
    let is_set_off = closing(before).is_some() || before == '=';
    let rest = text.get(position.saturating_add(2)..).filter(|_| is_set_off)?;
    let mut host = None;
    let _ = Address::new(rest).hosts(&mut |one| host = one);
    host.filter(|host| host.contains(['.', ':'])).map(Some)
}

impl<'a> Address<'a> {
    fn new(rest: &'a str) -> Address<'a> {
        Address { rest, extent: Extent::Word, is_irregular: false }
    }

    /// Calls back with the hosts that it names, and returns how much of the text was looked at.
    fn hosts(&self, found: &mut impl FnMut(Option<String>)) -> usize {
        let window = if self.extent == Extent::Text { self.rest } else { cut(self.rest) };
        let long = window.split(['/', '?', '#']).next().unwrap_or("");
        let looked_at = long.len();
        let tight = first_word(long);
        let is_cut = window.len() < self.rest.len() && long.len() == window.len();
        // What is in quotes may be an address with blanks; what is behind them is not of it.
        let (long, tight, is_closed) = match self.extent {
            Extent::Closed(close) => match long.split_once(close) {
                Some((inner, behind)) if ends_address(behind) => (inner, first_word(inner), true),
                Some(_) => (long, tight, false),
                None => (long, tight, !is_cut),
            },
            Extent::Word | Extent::Line | Extent::Text => (long, tight, false),
        };
        let behind = long.get(tight.len()..).unwrap_or("");
        let is_whole = is_closed || self.extent == Extent::Text;
        let line = behind.split(['\n', '\r']).next().unwrap_or("");
        // The next one of a list of addresses. No top domain ends in these.
        let is_next = |word: &str| ["http:", "https:", "ftp:"].iter().any(|known| word.eq_ignore_ascii_case(known));
        let is_list = is_next(behind.trim()) && window.get(looked_at..).is_some_and(|rest| rest.starts_with("//"));
        let goes_on =
            !is_list && continues(tight, behind, is_whole) || self.extent == Extent::Line && line.contains('@');
        // Where the end is not in sight it may be anywhere.
        let is_endless =
            is_cut && !is_closed && (tight.len() == long.len() || matches!(self.extent, Extent::Closed(_)));
        match plain_host(tight).filter(|_| !self.is_irregular && !goes_on && !is_endless) {
            Some(host) => {
                if let Some(mapped) = host.parse::<Ipv6Addr>().ok().and_then(|address| address.to_ipv4_mapped()) {
                    found(Some(mapped.to_string()));
                }
                found(Some(host));
            }
            None => {
                found(None);
                let joined = [tight, until_space(behind)].concat();
                for text in [tight, &joined, long] {
                    readings(cut(text), |host| found(Some(host)));
                }
            }
        }
        looked_at
    }
}

/// A text up to its first blank.
fn first_word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or("")
}

/// A text up to its first blank that no client drops.
fn until_space(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() && !is_dropped(c)).next().unwrap_or("")
}

/// Whether what stands behind a blank could belong to an address.
fn continues(tight: &str, behind: &str, is_whole: bool) -> bool {
    let behind = behind.trim_end();
    if behind.is_empty() {
        return false;
    }
    let next = behind.trim_start();
    if is_whole && next.contains(['@', '\\']) {
        return true;
    }
    // Behind a space clients that take it at all take it for a part of the user.
    if first_word(next).contains('@') {
        return true;
    }
    // Tabs and line breaks are dropped, and what they parted becomes one name.
    let joined = until_space(behind);
    if is_whole && joined.len() == behind.len() {
        return true;
    }
    let joined: String = cut(joined).chars().filter(|c| !c.is_control()).collect();
    let is_label = joined.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    !joined.is_empty() && (tight.is_empty() || tight.ends_with('.') && is_label) || may_be_of_host(&joined)
}

/// Whether a word could be more than a word: the end of a name, a user, a port.
fn may_be_of_host(word: &str) -> bool {
    let mut characters = word.chars().peekable();
    while let Some(character) = characters.next() {
        let more = characters.peek().is_some_and(|next| next.is_alphanumeric() || matches!(next, '-' | '_'));
        if matches!(character, '@' | '%' | '[' | '\\') || is_dot(character) && more || character == ':' && more {
            return true;
        }
    }
    false
}

/// Whether what follows a closing quote or bracket is certainly not of the address before it.
fn ends_address(behind: &str) -> bool {
    let mut characters = behind.chars();
    match characters.next() {
        None => true,
        Some('.') => !characters.next().is_some_and(char::is_alphanumeric),
        Some(character) => {
            character.is_whitespace() || SOFT_ENDS.contains(&character) || matches!(character, ':' | '\\')
        }
    }
}

/// The host of an authority that every client reads the same.
fn plain_host(authority: &str) -> Option<String> {
    let authority = authority.trim_end_matches(['.', ':']);
    if let Some(rest) = authority.rsplit_once('@').map_or(authority, |(_, host)| host).strip_prefix('[') {
        let (user, (address, port)) = (authority.split_once('@').map(|(user, _)| user), rest.split_once(']')?);
        let port = port.trim_end_matches(SOFT_ENDS).trim_end_matches(['.', ':']);
        let is_plain = user.is_none_or(is_user) && port.strip_prefix(':').map_or(port.is_empty(), is_port);
        let address = address.parse::<Ipv6Addr>().ok()?;
        return is_plain.then(|| address.to_string());
    }
    let end = authority.find(SOFT_ENDS).unwrap_or(authority.len());
    let (authority, behind) = authority.split_at_checked(end)?;
    if may_be_of_host(behind) || !behind.is_ascii() {
        return None;
    }
    let authority = authority.trim_end_matches(['.', ':']);
    let host = match authority.split_once('@') {
        Some((user, host)) => Some(host).filter(|_| is_user(user))?,
        None => authority,
    };
    let host = match host.split_once(':') {
        Some((host, port)) => Some(host).filter(|_| is_port(port))?,
        None => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_name = is_name(&host) && (!ends_in_number(&host) || host.parse::<Ipv4Addr>().is_ok());
    is_name.then_some(host)
}

fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    host.len() <= HOST_BYTES_MAX && host.split('.').all(is_label)
}

fn is_user(user: &str) -> bool {
    user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~$+=:%".contains(&byte))
}

fn is_port(port: &str) -> bool {
    port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether clients take a name for a number, and so for an address of the network.
fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let hexadecimal = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Every host that some client reads in an authority: behind any `@`, with a backslash as an end and without, decoded.
fn readings(authority: &str, mut found: impl FnMut(String)) {
    let joined: String = authority.chars().filter(|c| !is_dropped(*c)).collect();
    for one in [joined.split('\\').next().unwrap_or(""), joined.as_str()] {
        for part in one.split('@') {
            let host = match part.trim().strip_prefix('[').and_then(|part| part.split_once(']')) {
                Some((address, _)) => address,
                None => part.split(':').next().unwrap_or(""),
            };
            if let Some(host) = decoded(host) {
                found(host);
            }
        }
    }
}

/// A host as the clients read it that decode most.
fn decoded(host: &str) -> Option<String> {
    let bytes: Vec<u8> = percent_decode_str(host.trim()).collect();
    let text: String = core::str::from_utf8(&bytes).ok()?.nfkc().filter(|c| !is_unseen(*c)).collect();
    let text: String = text.to_lowercase().nfkc().map(|c| if is_dot(c) { '.' } else { c }).collect();
    let text = text.trim_matches(|c: char| c.is_whitespace() || SOFT_ENDS.contains(&c));
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(|| address.to_string(), |it| it.to_string()),
        });
    }
    if ends_in_number(text) {
        return numbered(text).map(|address| address.to_string());
    }
    is_name(text).then(|| text.to_owned())
}

/// `0x7f.1`, `0177.0.0.1`, `2130706433`: as the oldest clients count.
fn numbered(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last().filter(|(_, leading)| leading.len() <= 3)?;
    let mut address = 0_u64;
    for part in leading {
        address = address.checked_mul(256)?.checked_add(*part).filter(|_| *part <= 255)?;
    }
    let rest = u32::try_from(4_usize.checked_sub(leading.len())?).ok()?;
    let size = 256_u64.checked_pow(rest)?;
    let address = address.checked_mul(size)?.checked_add(*last).filter(|_| *last < size)?;
    u32::try_from(address).ok().map(Ipv4Addr::from)
}

fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 16).ok() };
    }
    let digits = text.strip_prefix('0').filter(|digits| !digits.is_empty());
    digits.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 8).ok())
}

/// Whether the line before an address says that an address follows: `url: …`, `base_url = …`.
fn is_value_of_address(before: &str) -> bool {
    let start = before.len().saturating_sub(NAME_BYTES_MAX);
    let near = (start..=before.len()).find_map(|start| before.get(start..)).unwrap_or("");
    let line = near.rsplit(['\n', '\r']).next().unwrap_or(near);
    let Some(name) = line.trim_end().strip_suffix([':', '=']) else { return false };
    !name.trim().contains(char::is_whitespace) && holds_path_or_address(name).1
}

fn is_special(scheme: &str) -> bool {
    SPECIAL_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn is_in_scheme(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.')
}

/// What most clients leave out wherever it stands.
fn is_dropped(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r')
}

/// What is not seen in a name, and left out when names are compared.
fn is_unseen(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}')
        || matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

fn is_dot(character: char) -> bool {
    matches!(character, '.' | '\u{3002}' | '\u{ff0e}' | '\u{ff61}')
}

fn closing(open: char) -> Option<char> {
    Some(match open {
        '"' | '\'' | '`' => open,
        '<' => '>',
        '(' => ')',
        '[' => ']',
        '{' => '}',
        _ => return None,
    })
}

/// The slashes, backslashes and what is dropped between them at the beginning of a text; and the rest.
fn skip_slashes(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !matches!(c, '/' | '\\') && !is_dropped(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn trailing(text: &str, is_of_it: impl Fn(char) -> bool) -> &str {
    let start = text.char_indices().rev().take_while(|(_, c)| is_of_it(*c)).last().map_or(text.len(), |(at, _)| at);
    text.get(start..).unwrap_or("")
}

/// The beginning of a text, no longer than anybody looks at.
fn cut(text: &str) -> &str {
    let end = (0..=AUTHORITY_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}
