//! Files named on the command line, `-` being standard input.

use std::fs::File;
use std::io::Read;

use interlock_core::json::BYTES_MAX;

use crate::Fault;

/// A file that was read, with the name to show for it.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Reads files; standard input can be read once.
#[derive(Default)]
pub(crate) struct Inputs {
    stdin_used_for: Option<&'static str>,
}

impl Inputs {
    /// Reads the file for one option, up to just beyond what any text may have.
    pub(crate) fn read(&mut self, option: &'static str, path: &str) -> Result<Input, Fault> {
        let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        if path == "-" {
            if let Some(first) = self.stdin_used_for.replace(option) {
                return Err(Fault::new(format!("{first} and {option} cannot both be read from standard input")));
            }
            let read = std::io::stdin().lock().take(limit).read_to_end(&mut bytes);
            read.map_err(|reason| Fault::new(format!("cannot read {option} from standard input: {reason}")))?;
            return Ok(Input { name: "<stdin>".to_owned(), bytes });
        }
        let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
        read.map_err(|reason| Fault::new(format!("cannot read {option} `{path}`: {reason}")))?;
        Ok(Input { name: path.to_owned(), bytes })
    }
}

/// A time on the command line: RFC 3339, a date, or milliseconds since 1970.
pub(crate) fn read_time(text: &str) -> Result<interlock_core::action::Millis, String> {
    let read = interlock_core::instant::parse(text);
    read.ok_or_else(|| "not a time such as 2026-11-15T12:00:30Z or 2026-11-15, or milliseconds since 1970".to_owned())
}
