//! A command line as bash reads it: what is left when quotes and operators have done their work.

use core::ops::Range;

/// Commands in a row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) lists: Vec<AndOr>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AndOr {
    pub(super) pipelines: Vec<Pipeline>,
    /// Ended by `&`.
    pub(super) background: bool,
}

/// Commands joined by `|`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
}

/// One command with its redirects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) kind: CommandKind,
    pub(super) redirects: Vec<Redirect>,
    pub(super) span: Range<usize>,
}

/// What kind of command it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    /// Assignments, then words.
    Simple { assignments: Vec<Assignment>, words: Vec<Word> },
    /// `{ …; }`, in this shell.
    Group(Script),
    /// `( … )`, in a copy of it.
    Subshell(Script),
    /// `if`, `while`, `until`, `for`, `select`, `case`: scripts of which any may run, any number of times.
    Branches { scripts: Vec<Script>, words: Vec<Word>, binds: Option<Binding>, arithmetic: Vec<Arithmetic> },
    /// `name() …`
    Function { name: String, body: Box<Command> },
    /// `(( … ))`
    Arithmetic(Arithmetic),
    /// `[[ … ]]`
    Condition(Vec<ConditionToken>),
    /// `coproc …`, with the variable its descriptors are kept in.
    Coprocess { kept_in: String, body: Box<Command> },
}

/// The variable of a loop, and what it runs through; nothing where it takes the positional parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) values: Option<Vec<Word>>,
}

/// A piece of `[[ … ]]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConditionToken {
    /// `&&`, `||`, `(`, `)`, `<`, `>`.
    Operator(&'static str),
    /// An operand, or an operator written as a word.
    Word(Word),
}

/// `name=value`, `name+=value`, `name[subscript]=value`, `name=( … )`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) subscript: Option<Arithmetic>,
    pub(super) values: Vec<Word>,
    /// `name=( … )`
    pub(super) is_array: bool,
    /// `+=`
    pub(super) appends: bool,
    pub(super) span: Range<usize>,
}

/// A redirect with its target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: Word,
    /// The descriptor it changes, where one is written.
    pub(super) descriptor: Option<u32>,
    /// The variable its descriptor is kept in: `{name}>`.
    pub(super) kept_in: Option<String>,
    pub(super) span: Range<usize>,
}

/// What a redirect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    /// `<`
    Input,
    /// `>`, `>>`, `>|`, `&>`, `&>>`
    Output,
    /// `<>`
    Both,
    /// `<&`
    DuplicateInput,
    /// `>&`
    DuplicateOutput,
    /// `<<`, with the body as target; the flag says that the body is data.
    HereDocument { quoted: bool },
    /// `<<<`
    HereString,
}

/// A word: parts in a row, before any expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    pub(super) span: Range<usize>,
    /// `name=( … )` as the argument of a builtin that declares.
    pub(super) is_compound: bool,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Characters; those not quoted can still be a pattern, a brace or a tilde.
    Text { text: String, quoted: bool },
    /// `$name`, `${…}`.
    Parameter(Parameter),
    /// `$( … )`, backquotes.
    Command { script: std::rc::Rc<Script>, quoted: bool },
    /// `$(( … ))`, `$[ … ]`
    Arithmetic(Arithmetic),
    /// `<( … )`, `>( … )`
    Process(std::rc::Rc<Script>),
}

/// `$name`, `${…}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) quoted: bool,
    /// `$x` or `${x}`, `${x[@]}`: the value as it is.
    pub(super) plain: bool,
    /// `${x[@]}`: every element a word of its own.
    pub(super) is_list: bool,
    /// `${!x}`: the value names another one.
    pub(super) indirect: bool,
    /// `${x@P}`: the value is expanded once more.
    pub(super) evaluated: bool,
    /// `${x:=…}`: may assign.
    pub(super) assigns: bool,
    /// `${x:-…}`: the value, or the rest.
    pub(super) has_default: bool,
    /// `${#x}`: a number.
    pub(super) counts: bool,
    pub(super) subscript: Option<Arithmetic>,
    /// The rest: default, pattern, replacement.
    pub(super) rest: Option<Word>,
    /// The rest is an offset and a length.
    pub(super) offsets: Option<Arithmetic>,
}

/// An arithmetic expression: what runs in it and what it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Arithmetic {
    /// Expansions in it.
    pub(super) parts: Vec<Part>,
    /// The names of variables in its text, whose values are expressions themselves.
    pub(super) names: Vec<String>,
    /// Something in its text that is no plain expression, such as a quote.
    pub(super) odd: bool,
    /// An assignment in it.
    pub(super) assigns: bool,
    /// How many `;` are in it.
    pub(super) separators: u32,
    pub(super) span: Range<usize>,
}

impl Word {
    /// A word of one quoted text.
    pub(super) fn of_text(text: String, span: Range<usize>) -> Word {
        Word { parts: vec![Part::Text { text, quoted: true }], span, is_compound: false }
    }

    /// The text, if the word is made of nothing else: quotes removed, nothing expanded.
    pub(super) fn text(&self) -> Option<String> {
        let mut whole = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => whole.push_str(text),
                Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => {
                    return None;
                }
            }
        }
        Some(whole)
    }

    /// The text, if the word is one run of unquoted characters.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}
