//! What a runner says behind a command's output where nothing else of it is heard: how the command ended, on a line of its
//! own, with a mark that only who knows the call's secret can make. Whether the mark is right is not known here.

use interlock_core::Digest;

/// How such a line begins. It may stand behind output that did not end its line.
const BEGINS: &str = "interlock:ended ";
/// How many of them are looked at, the last ones.
const TRAILERS_MAX: usize = 64;

/// What a line says of a command's end, and its mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// What is told: text without a line break.
    told: String,
    mark: Digest,
}

impl Trailer {
    /// The text, if its mark was made with this secret.
    pub fn opened(&self, secret: Digest) -> Option<&str> {
        secret.mark(&[&self.told]).same_as(self.mark).then_some(&*self.told)
    }
}

/// The line that tells something. It begins a line of its own, whatever the command left.
///
/// ```
/// use interlock_core::Digest;
/// use interlock_hosts::{trailer, trailers};
///
/// let secret = Digest::of(&["only the runner knows it"]);
/// let output = format!("no line break{}", trailer("{\"exit_code\":0}", secret));
/// let (rest, found) = trailers(&output);
/// assert_eq!((rest.as_str(), found.len()), ("no line break\n", 1));
/// assert_eq!(found[0].opened(secret), Some("{\"exit_code\":0}"));
/// assert_eq!(found[0].opened(Digest::of(&["a guess"])), None);
/// ```
pub fn trailer(told: &str, secret: Digest) -> String {
    format!("\n{BEGINS}{told} {}\n", secret.mark(&[told]))
}

/// Whether there may be one in a text.
pub(crate) fn may_be_in(text: &str) -> bool {
    text.contains(BEGINS)
}

/// A text without such lines, and the lines in their order.
pub fn trailers(text: &str) -> (String, Vec<Trailer>) {
    let (mut rest, mut found) = (String::with_capacity(text.len()), Vec::new());
    for line in text.split_inclusive('\n') {
        let said = line.rsplit_once(BEGINS).and_then(|(before, said)| Some((before, parse(said)?)));
        match said {
            Some((before, trailer)) => {
                rest.push_str(before);
                found.push(trailer);
            }
            None => rest.push_str(line),
        }
    }
    let over = found.len().saturating_sub(TRAILERS_MAX);
    found.drain(..over);
    (rest, found)
}

fn parse(said: &str) -> Option<Trailer> {
    let (told, mark) = said.trim_end_matches(['\r', '\n']).rsplit_once(' ')?;
    Some(Trailer { told: told.to_owned(), mark: Digest::parse(mark)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_wherever_they_stand_and_nothing_else_is_taken() {
        let secret = Digest::of(&["secret"]);
        let line = trailer("one", secret);
        for (text, rest, count) in [
            (format!("a{line}b"), "a\nb", 1),
            (format!("a\r\n{}", line.replace('\n', "\r\n")), "a\r\n\r\n", 1),
            (format!("{line}{line}"), "\n\n", 2),
            ("interlock:ended one sha256:00".to_owned(), "interlock:ended one sha256:00", 0),
            ("interlock:ended ".to_owned(), "interlock:ended ", 0),
        ] {
            let (found_rest, found) = trailers(&text);
            assert_eq!((found_rest.as_str(), found.len()), (rest, count), "{text}");
            assert!(found.iter().all(|one| one.opened(secret) == Some("one")), "{text}");
        }
        // Any byte of it changed, and it is nobody's word; the line breaks around it are not of it.
        for at in 1..line.len() - 1 {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            assert!(trailers(&text).1.iter().all(|one| one.opened(secret).is_none()), "{at}");
        }
        let many = trailers(&line.repeat(100)).1;
        assert_eq!(many.len(), TRAILERS_MAX);
    }
}
