//! What is wrong with a text, where, and what to do about it.

use core::fmt;
use core::ops::Range;

use interlock_core::display;
use interlock_core::json::push_key;

/// The most problems that are told of at once.
pub const PROBLEMS_MAX: usize = 200;

/// One thing that is wrong, or looks wrong, in the text of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The bytes of the text it is about.
    pub span: Range<usize>,
    /// The place in the document: `states.planning.on.READY`. Empty for the whole document.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, " ({help})"))
    }
}

/// The way from the root to a value, kept on the stack and written out only for a problem.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    pub(super) fn key(&'p self, key: &'p str) -> Path<'p> {
        Path::Key(self, key)
    }

    pub(super) fn item(&'p self, position: usize) -> Path<'p> {
        Path::Item(self, position)
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out.strip_prefix('.').map(str::to_owned).unwrap_or(out)
    }

    // As deep as the document, which is limited.
    fn write(&self, out: &mut String) {
        match self {
            Path::Root => {}
            Path::Key(parent, key) => {
                parent.write(out);
                push_key(out, key);
            }
            Path::Item(parent, position) => {
                parent.write(out);
                out.push_str(&format!("[{position}]"));
            }
        }
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) errors: ProblemList,
    pub(super) warnings: ProblemList,
}

/// Problems of one kind; their lines are not known yet.
#[derive(Debug, Default)]
pub(super) struct ProblemList {
    list: Vec<Problem>,
    count: usize,
}

impl ProblemList {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, those that are not shown included.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, span: &Range<usize>, path: &Path<'_>, message: impl Into<String>) {
        self.push(span, path, message.into(), None);
    }

    pub(super) fn add_with_help(
        &mut self,
        span: &Range<usize>,
        path: &Path<'_>,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.push(span, path, message.into(), help.into());
    }

    fn push(&mut self, span: &Range<usize>, path: &Path<'_>, message: String, help: Option<String>) {
        self.count = self.count.saturating_add(1);
        if self.list.len() >= PROBLEMS_MAX {
            return;
        }
        self.list.push(Problem { line: 1, column: 1, span: span.clone(), path: path.text(), message, help });
    }

    /// The problems in the order of the text, with their lines and columns.
    pub(super) fn finish(mut self, text: &str) -> Vec<Problem> {
        for problem in &mut self.list {
            problem.span = inside(&problem.span, text);
        }
        self.list.sort_by(|a, b| {
            (a.span.start, a.span.end, &a.path, &a.message).cmp(&(b.span.start, b.span.end, &b.path, &b.message))
        });
        self.list.dedup();
        // One walk over the text serves them all.
        let (mut line, mut column) = (1_usize, 1_usize);
        let mut characters = text.char_indices().peekable();
        for problem in &mut self.list {
            while let Some((_, c)) = characters.next_if(|(at, _)| *at < problem.span.start) {
                (line, column) = if c == '\n' { (line.saturating_add(1), 1) } else { (line, column.saturating_add(1)) };
            }
            (problem.line, problem.column) = (line, column);
        }
        if let Some(last) = self.list.last().filter(|_| self.count > PROBLEMS_MAX).cloned() {
            let message = format!("there are more than {PROBLEMS_MAX} problems; the others are not shown");
            self.list.push(Problem { message, help: None, path: String::new(), ..last });
        }
        self.list
    }
}

/// A span brought inside the text and onto its characters: what a parser of others says is not relied on.
fn inside(span: &Range<usize>, text: &str) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start = start.saturating_sub(1);
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_add(1);
    }
    start..end
}

/// A name from the text, to be shown in a message.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", display(name))
}
