//! JSON Lines in, JSON Lines out: one answer for each line, in order, whatever a line holds.

use std::io::{BufRead, BufWriter, Read, Write};

use interlock_core::Cause;
use interlock_core::json::{self, Document, Limits, quote};

use crate::Fault;

/// Answers every line of standard input. A line that is not understood is answered with an error; it ends nothing.
pub(crate) fn each_line(answer: impl Fn(&Document<'_>) -> Result<String, Cause>) -> Result<(), Fault> {
    let mut input = std::io::stdin().lock();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|reason| Fault::new(format!("cannot read standard input: {reason}")))? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answered = json::parse_bytes(line.trim_ascii(), &Limits::STATE)
            .map_err(Cause::of)
            .and_then(|document| answer(&document));
        let text =
            answered.unwrap_or_else(|cause| format!("{{\"error\":{{\"message\":{}}}}}", quote(&cause.to_string())));
        let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
        match written {
            Ok(()) => {}
            Err(reason) if reason.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(reason) => return Err(reason.into()),
        }
    }
    match out.flush() {
        Err(reason) if reason.kind() != std::io::ErrorKind::BrokenPipe => Err(reason.into()),
        _ => Ok(()),
    }
}

/// Everything on standard input, as text.
pub(crate) fn whole_input() -> Result<String, Fault> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(16 << 20).read_to_string(&mut text);
    read.map_err(|reason| Fault::new(format!("cannot read standard input: {reason}")))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
