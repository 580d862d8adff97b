//! The language of properties: what may be asked about all runs of a workflow.
//!
//! ```text
//! property = "always eventually final"
//!          | "always final within" NUMBER
//!          | "never" thing "before" mark
//!          | "never" call "in" states
//!          | "no" call "after" STATE
//!          | thing "only after" mark
//!          | call "only in" states
//! thing    = call | state
//! call     = TOOL | "Bash(" COMMAND ")"          TOOL and COMMAND may hold a *
//! mark     = "approved" | guard | state
//! states   = STATE { "," STATE }
//! ```
//!
//! Names that could be two things are written with the kind in front: `state review`, `guard review`, `tool review`.

use core::fmt;
use core::ops::Range;

use interlock_core::call::Family;
use interlock_core::display;
use interlock_core::workflow::{StateId, ToolPattern, Workflow};

use super::command_set::CommandSet;
use super::suggest::nearest;

/// A question about all runs, every name resolved.
#[derive(Debug, Clone)]
pub struct Property {
    pub(crate) text: String,
    pub(crate) form: Form,
}

#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// Every run ends.
    EventuallyFinal,
    /// Every run ends within so many transitions.
    FinalWithin(u32),
    /// Not before a mark was set; the flag is up as soon as a marking state is entered.
    NotBefore(Thing, Mark),
    /// Only after a mark was set; the flag is up once a marking state was left.
    OnlyAfter(Thing, Mark),
    /// In no state but these.
    OnlyIn(Target, Vec<StateId>),
    /// In none of these states.
    NeverIn(Target, Vec<StateId>),
    /// Not once this state was left.
    NoneAfter(Target, StateId),
}

/// What is not to happen too early.
#[derive(Debug, Clone)]
pub(crate) enum Thing {
    Call(Target),
    State(StateId),
}

/// What is called.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Tool(ToolPattern),
    Command(CommandSet),
}

/// What must have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    Approved,
    /// An edge with the guard of this name was taken.
    Guard(String),
    State(StateId),
}

/// Why a property could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// The part of the text that is wrong, in bytes.
    pub span: Range<usize>,
}

impl fmt::Display for PropertyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

/// The forms, for people.
pub const FORMS: &[&str] = &[
    "TOOL only after approved",
    "TOOL only after STATE",
    "STATE only after STATE",
    "never STATE before GUARD",
    "TOOL only in STATE, STATE",
    "never TOOL in STATE",
    "no TOOL after STATE",
    "always eventually final",
    "always final within NUMBER",
];

impl Property {
    /// Reads a property of a workflow.
    pub fn parse(text: &str, workflow: &Workflow) -> Result<Property, PropertyError> {
        let words = words(text)?;
        let reader = Reader { text, workflow };
        let form = reader.form(&words)?;
        Ok(Property { text: text.trim().to_owned(), form })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What a name can be that of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    State,
    Tool,
    Guard,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::State, Kind::Tool, Kind::Guard];

    /// The kind that a word names.
    fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    fn as_str(self) -> &'static str {
        match self {
            Kind::State => "state",
            Kind::Tool => "tool",
            Kind::Guard => "guard",
        }
    }
}

/// Kinds as a sentence names them.
fn either(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or ")
}

/// A word of the text and where it stands. What is in parentheses belongs to the word before.
struct Word<'a> {
    text: &'a str,
    span: Range<usize>,
}

fn words(text: &str) -> Result<Vec<Word<'_>>, PropertyError> {
    let mut words = Vec::new();
    let mut start = None;
    let mut depth = 0_u32;
    let mut push = |start: usize, end: usize| {
        let found = text.get(start..end).unwrap_or_default();
        words.push(Word { text: found, span: start..end });
    };
    for (place, c) in text.char_indices() {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let separates = depth == 0 && (c.is_whitespace() || c == ',');
        match (separates, start) {
            (false, None) => start = Some(place),
            (true, Some(begun)) => {
                push(begun, place);
                start = None;
            }
            (false, Some(_)) | (true, None) => {}
        }
        if separates && c == ',' {
            push(place, place.saturating_add(1));
        }
    }
    if let Some(begun) = start {
        push(begun, text.len());
    }
    if depth > 0 {
        return Err(PropertyError {
            message: "a `(` is not closed".to_owned(),
            help: "write the command as in Bash(git push*)".to_owned(),
            span: text.find('(').unwrap_or(0)..text.len(),
        });
    }
    Ok(words)
}

struct Reader<'a> {
    text: &'a str,
    workflow: &'a Workflow,
}

impl Reader<'_> {
    fn form(&self, words: &[Word<'_>]) -> Result<Form, PropertyError> {
        let plain: Vec<&str> = words.iter().map(|word| word.text).collect();
        if plain == ["always", "eventually", "final"] {
            return Ok(Form::EventuallyFinal);
        }
        if let ["always", "final", "within", number, rest @ ..] = plain.as_slice() {
            let number = number.parse().ok().filter(|_| matches!(rest, [] | ["transitions"]));
            return number.map(Form::FinalWithin).ok_or_else(|| self.shape(words, 3));
        }
        if let Some(place) = plain.windows(2).position(|pair| pair == ["only", "after"]) {
            let (thing, mark) = self.around(words, 0, place, 2);
            return Ok(Form::OnlyAfter(self.thing(thing)?, self.mark(mark)?));
        }
        if let Some(place) = plain.windows(2).position(|pair| pair == ["only", "in"]) {
            let (call, states) = self.around(words, 0, place, 2);
            return Ok(Form::OnlyIn(self.call(call)?, self.states(states)?));
        }
        let place = |word: &str| plain.iter().position(|found| *found == word);
        match (plain.first().copied(), place("before"), place("in"), place("after")) {
            (Some("never"), Some(before), _, _) => {
                let (thing, mark) = self.around(words, 1, before, 1);
                Ok(Form::NotBefore(self.thing(thing)?, self.mark(mark)?))
            }
            (Some("never"), None, Some(within), _) => {
                let (call, states) = self.around(words, 1, within, 1);
                Ok(Form::NeverIn(self.call(call)?, self.states(states)?))
            }
            (Some("no"), _, _, Some(after)) => {
                let (call, state) = self.around(words, 1, after, 1);
                Ok(Form::NoneAfter(self.call(call)?, self.state(state)?))
            }
            (_, _, _, _) => Err(self.shape(words, 0)),
        }
    }

    /// The words before and after the ones that make the form.
    fn around<'w, 't>(
        &self,
        words: &'w [Word<'t>],
        from: usize,
        place: usize,
        count: usize,
    ) -> (&'w [Word<'t>], &'w [Word<'t>]) {
        let after = place.saturating_add(count);
        (words.get(from..place).unwrap_or_default(), words.get(after..).unwrap_or_default())
    }

    fn shape(&self, words: &[Word<'_>], from: usize) -> PropertyError {
        let start = words.get(from).or(words.last()).map_or(0, |word| word.span.start);
        PropertyError {
            message: "this is none of the properties that can be asked".to_owned(),
            help: format!("write one of: {}", FORMS.join("; ")),
            span: start..self.text.trim_end().len().max(start),
        }
    }

    /// A name with the kind that may stand before it.
    fn named<'t>(
        &self,
        words: &[Word<'t>],
        kinds: &[Kind],
    ) -> Result<(Option<Kind>, &'t str, Range<usize>), PropertyError> {
        let what = either(kinds);
        match words {
            [kind, word] if let Some(kind) = Kind::parse(kind.text) => Ok((Some(kind), word.text, word.span.clone())),
            [word] => Ok((None, word.text, word.span.clone())),
            [] => Err(PropertyError {
                message: format!("the name of a {what} is missing"),
                help: format!("write one of: {}", FORMS.join("; ")),
                span: self.text.trim_end().len()..self.text.trim_end().len(),
            }),
            [first, .., last] => Err(PropertyError {
                message: format!("one {what} is expected here, and these are several words"),
                help: format!("write one of: {}", FORMS.join("; ")),
                span: first.span.start..last.span.end,
            }),
        }
    }

    fn thing(&self, words: &[Word<'_>]) -> Result<Thing, PropertyError> {
        let (kind, name, span) = self.named(words, &[Kind::Tool, Kind::State])?;
        let (state, tool) = (self.workflow.find(name), self.is_tool(name));
        match (kind, state, tool) {
            (Some(Kind::State), Some(state), _) | (None, Some(state), false) => Ok(Thing::State(state)),
            (Some(Kind::Tool), _, _) | (None, None, true) => self.target(name, span).map(Thing::Call),
            (None, Some(_), true) => Err(self.two_things(name, span, "state", "tool")),
            (Some(_), _, _) | (None, None, false) => Err(self.unknown(name, span, &[Kind::Tool, Kind::State])),
        }
    }

    fn call(&self, words: &[Word<'_>]) -> Result<Target, PropertyError> {
        let (kind, name, span) = self.named(words, &[Kind::Tool])?;
        match (kind, self.is_tool(name)) {
            (Some(Kind::Tool), _) | (None, true) => self.target(name, span),
            (Some(_), _) | (None, false) => Err(self.unknown(name, span, &[Kind::Tool])),
        }
    }

    fn target(&self, name: &str, span: Range<usize>) -> Result<Target, PropertyError> {
        let error = |message: &str, help: &str| PropertyError {
            message: message.to_owned(),
            help: help.to_owned(),
            span: span.clone(),
        };
        if let Some((tool, rest)) = name.split_once('(') {
            if tool != Family::Bash.as_str() {
                return Err(error("only `Bash` takes a command in parentheses", "write Bash(git push*)"));
            }
            let Some(command) = rest.strip_suffix(')') else {
                return Err(error("the command does not end with `)`", "write Bash(git push*)"));
            };
            let pattern = CommandSet::asked(command.trim());
            if pattern.is_empty() {
                return Err(error("the parentheses hold no command", "write Bash(git push*), or Bash for all"));
            }
            return Ok(Target::Command(pattern));
        }
        let pattern = ToolPattern::parse(name);
        pattern.map(Target::Tool).ok_or_else(|| error("this is no name of a tool", "a `*` may stand at its end only"))
    }

    fn mark(&self, words: &[Word<'_>]) -> Result<Mark, PropertyError> {
        let (kind, name, span) = self.named(words, &[Kind::Guard, Kind::State])?;
        let state = self.workflow.find(name);
        let guard = self.workflow.guard_named(name).is_some();
        let approved = matches!(name, "approved" | "approval");
        match (kind, state, guard, approved) {
            (None, None, false, true) => Ok(Mark::Approved),
            (Some(Kind::State), Some(state), _, _) | (None, Some(state), false, false) => Ok(Mark::State(state)),
            (Some(Kind::Guard), _, true, _) | (None, None, true, false) => Ok(Mark::Guard(name.to_owned())),
            (None, Some(_), true, _) => Err(self.two_things(name, span, "state", "guard")),
            (None, Some(_), false, true) => Err(self.two_things(name, span, "state", "approval of a person")),
            (None, None, true, true) => Err(self.two_things(name, span, "guard", "approval of a person")),
            (_, _, _, _) => Err(self.unknown(name, span, &[Kind::Guard, Kind::State])),
        }
    }

    fn state(&self, words: &[Word<'_>]) -> Result<StateId, PropertyError> {
        let (kind, name, span) = self.named(words, &[Kind::State])?;
        let state = self.workflow.find(name).filter(|_| matches!(kind, None | Some(Kind::State)));
        state.ok_or_else(|| self.unknown(name, span, &[Kind::State]))
    }

    fn states(&self, words: &[Word<'_>]) -> Result<Vec<StateId>, PropertyError> {
        words.split(|word| word.text == ",").map(|part| self.state(part)).collect()
    }

    /// Whether a name means a tool without `tool` before it: a family, one the workflow names, or a pattern.
    fn is_tool(&self, name: &str) -> bool {
        let listed = |pattern: &ToolPattern| pattern.to_string() == name;
        Family::parse(name).is_some()
            || name.contains(['(', '*'])
            || name.starts_with("mcp__")
            || self.workflow.states().any(|(_, state)| {
                state.allowed_tools.iter().flatten().any(listed) || state.disallowed_tools.iter().any(listed)
            })
    }

    fn two_things(&self, name: &str, span: Range<usize>, one: &str, other: &str) -> PropertyError {
        let name = display(name);
        PropertyError {
            message: format!("`{name}` is the name of a {one} and of a {other}"),
            help: format!("write `{one} {name}`, or give one of them another name"),
            span,
        }
    }

    fn unknown(&self, name: &str, span: Range<usize>, kinds: &[Kind]) -> PropertyError {
        let mut known: Vec<&str> = Vec::new();
        // In the order in which they are proposed.
        for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
            match kind {
                Kind::State => known.extend(self.workflow.states().map(|(_, state)| state.name.as_str())),
                Kind::Tool => known.extend(Family::ALL.iter().map(|family| family.as_str())),
                Kind::Guard => {
                    known.extend(self.workflow.guards().map(|(_, guard)| guard.name.as_str()));
                    known.push("approved");
                }
            }
        }
        let help = match nearest(name, &known) {
            Some(near) => format!("did you mean `{}`?", display(near)),
            None if kinds.contains(&Kind::Tool) => format!("write `tool {}` if it is one", display(name)),
            None => {
                let shown: Vec<String> = known.iter().take(12).map(|name| format!("`{}`", display(name))).collect();
                format!("there are {}", shown.join(", "))
            }
        };
        PropertyError { message: format!("there is no {} `{}`", either(kinds), display(name)), help, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Limits, load};

    #[test]
    fn what_cannot_be_read_is_told_of_with_its_place() {
        let text = r#"{"id": "w", "initial": "planning", "states": {
            "planning": {"on": {"GO": {"target": "review", "guard": "review"}}}, "review": {"on": {"END": "done"}},
            "done": {"type": "final"}}, "guards": {"review": {"field": "x", "op": "exists"}}}"#;
        let workflow = load(text, Format::Json, &Limits::MAX).expect("it loads").workflow;
        #[rustfmt::skip]
        let cases = [
            // The property, the part that is wrong, the help.
            ("Write only in plannig",          "plannig",         "did you mean `planning`?"),
            ("never Wirte in planning",        "Wirte",           "did you mean `Write`?"),
            ("never done before review",       "review",          "write `state review`, or give one of them another name"),
            ("never done before aproved",      "aproved",         "did you mean `approved`?"),
            ("no Write after",                 "",                "write one of"),
            ("Write sometimes in planning",    "Write sometimes in planning", "write one of"),
            ("Bash(git push only after done",  "(git push only after done", "write the command as in"),
            ("Edit(x) only in planning",       "Edit(x)",         "write Bash(git push*)"),
            ("always final within soon",       "soon",            "write one of"),
            ("no Write Edit after planning",   "Write Edit",      "write one of"),
        ];
        for (property, part, help) in cases {
            let error = Property::parse(property, &workflow).expect_err(property);
            assert_eq!(property.get(error.span.clone()), Some(part), "{property}: {error}");
            assert!(error.help.starts_with(help), "{property}: {error}");
        }
        for property in [
            "never done before guard review",
            "state done only after state review",
            "tool frobnicate only in planning , review",
            "Bash( git push* ) only after approval",
            "  always eventually final ",
            "always final within 3 transitions",
        ] {
            assert!(Property::parse(property, &workflow).is_ok(), "{property}");
        }
    }
}
