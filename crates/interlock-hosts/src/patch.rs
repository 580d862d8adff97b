//! What a patch of Codex changes: its paths, and how many lines of each.
//!
//! Only what the published grammar says, exactly. The host reads more kindly (indented headers, here-documents,
//! preambles); whatever it might understand in another way is not understood here at all.

use interlock_core::call::FileChange;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// The changes a patch makes, or nothing if there is a line whose meaning is in doubt.
pub(crate) fn read(text: &str) -> Option<Vec<FileChange>> {
    let mut lines = text.trim().lines();
    (lines.next()? == BEGIN).then_some(())?;
    let mut changes = Vec::new();
    let mut body = Body::None;
    while let Some(line) = lines.next() {
        if line == END {
            let nothing_follows = lines.next().is_none();
            return (nothing_follows && !changes.is_empty()).then_some(changes);
        }
        if let Some(path) = line.strip_prefix(ADD) {
            changes.push(FileChange { path: named(path)?, lines: Some(0), whole: None, deletes: false });
            body = Body::Added;
        } else if let Some(path) = line.strip_prefix(DELETE) {
            changes.push(FileChange { path: named(path)?, lines: None, whole: None, deletes: true });
            body = Body::None;
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            changes.push(FileChange { path: named(path)?, lines: Some(0), whole: None, deletes: false });
            body = Body::Header;
        } else if let Some(path) = line.strip_prefix(MOVE) {
            // Only right after the header of an update: anywhere else it would move something we did not note.
            (body == Body::Header).then_some(())?;
            changes.last_mut()?.deletes = true;
            changes.push(FileChange { path: named(path)?, lines: Some(0), whole: None, deletes: false });
            body = Body::Hunks;
        } else {
            let counts = within(body, line)?;
            if counts {
                let lines = &mut changes.last_mut()?.lines;
                *lines = lines.map(|lines| lines.saturating_add(1));
            }
            if body == Body::Header {
                body = Body::Hunks;
            }
        }
    }
    None
}

/// Which lines may come.
#[derive(Clone, Copy, PartialEq)]
enum Body {
    /// Only headers.
    None,
    /// Lines of a new file.
    Added,
    /// A new path, or hunks.
    Header,
    /// Hunks.
    Hunks,
}

/// Whether a line that is no header writes or takes away one; nothing if it may not stand here.
fn within(body: Body, line: &str) -> Option<bool> {
    match body {
        Body::None => None,
        Body::Added => line.starts_with('+').then_some(true),
        Body::Header | Body::Hunks => match line.as_bytes() {
            [b'+' | b'-', ..] => Some(true),
            // A header, were the space in front of it dropped.
            [b' ' | b'\t', ..] if line.trim_start().starts_with("***") => None,
            [] | [b' ', ..] | [b'@', b'@', ..] => Some(false),
            _ => (line == END_OF_FILE).then_some(false),
        },
    }
}

/// A path that everybody spells alike.
fn named(path: &str) -> Option<String> {
    (!path.is_empty() && path.trim() == path && !path.contains(char::is_control)).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str) -> Option<Vec<(String, Option<u64>, bool)>> {
        Some(read(text)?.into_iter().map(|change| (change.path, change.lines, change.deletes)).collect())
    }

    #[test]
    fn every_path_is_found_with_its_lines() {
        let lines = [
            "*** Begin Patch",
            "*** Add File: new.txt",
            "+one",
            "+two",
            "*** Update File: src/a.rs",
            "*** Move to: src/b.rs",
            "@@ fn main",
            " context",
            "",
            "-old",
            "+new",
            "+more",
            "*** End of File",
            "*** Delete File: gone.txt",
            "*** End Patch",
            "",
        ];
        let expected = [
            ("new.txt", Some(2), false),
            ("src/a.rs", Some(0), true),
            ("src/b.rs", Some(3), false),
            ("gone.txt", None, true),
        ];
        assert_eq!(
            summary(&lines.join("\n")),
            Some(expected.map(|(path, lines, gone)| (path.to_owned(), lines, gone)).to_vec())
        );
    }

    #[test]
    fn a_line_in_doubt_makes_the_patch_unread() {
        let wrap = |body: &str| format!("*** Begin Patch\n{body}\n*** End Patch");
        assert!(read(&wrap("*** Update File: a\n@@\n-x")).is_some());
        for body in [
            "",
            "@@\n-x",
            "*** Add File: a\n+x\n  *** Delete File: b",
            "*** Update File: a\n *** Delete File: b",
            "*** Update File: a\n\t*** Delete File: b",
            "*** Add File: a\nx",
            "*** Add File: \n+x",
            "*** Add File:  a\n+x",
            "*** Delete File: a\n+x",
            "*** Move to: b",
            "*** Update File: a\n@@\n*** Move to: b",
            "*** Update File: a\n*** Rename to: b",
            "*** Add File: a\n+x\n*** End Patch\n*** Delete File: b",
        ] {
            assert_eq!(read(&wrap(body)), None, "{body:?}");
        }
        assert_eq!(read("*** Begin Patch\n*** Delete File: a\n"), None, "without an end");
        assert_eq!(read("<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF"), None, "a here-document");
    }
}
