//! The table of commands: what each does, by its options and operands. Data, which a bundle can extend.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use interlock_core::bundle::ShellSettings;
use serde::Deserialize;

use super::Effect;

/// The built-in table.
const TABLE: &str = include_str!("commands.toml");
/// The subcommands of git, likewise.
const GIT: &str = include_str!("git.toml");

/// How many entries an entry can be like, one after the other.
const LIKE_DEPTH_MAX: usize = 4;

/// What is known of commands.
#[derive(Debug, Clone)]
pub struct Commands {
    built_in: Table,
    /// The operator's, which add to the built-in ones and never take away.
    added: Table,
}

/// Commands by name.
type Table = Arc<BTreeMap<String, Arc<Spec>>>;

/// One command, or a subcommand of one.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) effect: Effect,
    pub(super) why: Option<String>,
    pub(super) options: BTreeMap<String, Opt>,
    pub(super) is_open: bool,
    pub(super) is_posix: bool,
    /// What lowers counts only before the first operand.
    pub(super) is_leading: bool,
    /// `--` does not end the options: what follows is handed on to another program, or read once more.
    pub(super) is_endless: bool,
    /// `--no-NAME` takes back what `--NAME` says.
    pub(super) negates: bool,
    pub(super) single_dash: bool,
    pub(super) dashless: bool,
    pub(super) operands: Operands,
    pub(super) skip: usize,
    pub(super) version: Vec<String>,
    pub(super) verbs: Vec<(String, Effect)>,
    pub(super) subcommands: BTreeMap<String, Spec>,
    pub(super) any: Option<Box<Spec>>,
}

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opt {
    pub(super) takes: Takes,
    pub(super) does: Does,
    /// It is one only as a word of its own, not in a bundle.
    pub(super) is_alone: bool,
}

/// Whether an option has an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// Attached, or the next word.
    Argument,
    /// Attached or none.
    MaybeAttached,
}

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Effect(Effect),
    /// It asks a person, or opens the editor that the person chose.
    Asks,
    /// Its argument names a file that is written.
    WritesArgument,
    /// The whole call reads only.
    Lowers,
    /// The whole call reads only, unless another mode is named as well.
    Mode,
    /// A mode in which the call does not only read.
    Raises,
}

/// What the operands of a command are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Operands {
    #[default]
    Inputs,
    /// Written, created or changed.
    Files,
    /// Written, and nothing else is.
    Outputs,
    /// The second one is written.
    SecondIsOutput,
    /// Each names something that is made.
    Made,
    /// The second one says what the first one is from now on.
    SecondIsMade,
    /// One with a host in it reaches out.
    Remote,
    /// There should be none.
    None,
    /// Only those that begin with `+` are harmless.
    Plus,
    /// A command with its arguments.
    Command,
}

/// An entry as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    effect: Option<String>,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    args: String,
    #[serde(default)]
    maybe: String,
    #[serde(default)]
    out: String,
    #[serde(default)]
    write: String,
    #[serde(default)]
    network: String,
    #[serde(default)]
    unknown: String,
    #[serde(default)]
    destructive: String,
    #[serde(default)]
    asks: String,
    #[serde(default)]
    lowers: String,
    #[serde(default)]
    modes: String,
    #[serde(default)]
    raises: String,
    #[serde(default)]
    alone: String,
    #[serde(default)]
    leading: bool,
    #[serde(default)]
    endless: bool,
    /// Another entry of the same table, whose options these are too.
    like: Option<String>,
    #[serde(default)]
    open: bool,
    operands: Option<String>,
    #[serde(default)]
    skip: usize,
    #[serde(default)]
    single_dash: bool,
    #[serde(default)]
    posix: bool,
    #[serde(default)]
    dashless: bool,
    #[serde(default)]
    aliases: String,
    #[serde(default)]
    version: String,
    why: Option<String>,
    verbs: Option<Verbs>,
    #[serde(default)]
    sub: BTreeMap<String, Entry>,
    any: Option<Box<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verbs {
    #[serde(default)]
    read_only: String,
    #[serde(default)]
    write: String,
    #[serde(default)]
    network: String,
    #[serde(default)]
    unknown: String,
    #[serde(default)]
    destructive: String,
}

impl Commands {
    /// The built-in table, and what a bundle adds to it.
    pub fn load(settings: Option<&ShellSettings>) -> Result<Commands, String> {
        let built_in = built_in()?;
        let added = match settings.and_then(|settings| settings.commands.as_deref()) {
            None => BTreeMap::new(),
            Some(text) => read(text, false)?,
        };
        for (name, spec) in &added {
            let known = built_in.get(name).map(|known| known.effect);
            let known = known.or_else(|| super::special::is_handled(name).then_some(Effect::ReadOnly));
            if let Some(known) = known
                && (spec.effect < known || known != Effect::ReadOnly && spec.options.values().any(lowers))
            {
                return Err(format!(
                    "`{name}` is in the built-in table as {known}; an entry for it can only tighten, not loosen"
                ));
            }
        }
        Ok(Commands { built_in, added: Arc::new(added) })
    }

    /// The entries for a name: the built-in one, the operator's, or both. Where there are both, both count.
    pub(super) fn get(&self, name: &str) -> [Option<&Arc<Spec>>; 2] {
        [self.built_in.get(name), self.added.get(name)]
    }

    /// How many names the built-in table has.
    pub fn len(&self) -> usize {
        self.built_in.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.built_in.is_empty()
    }
}

fn lowers(option: &Opt) -> bool {
    matches!(option.does, Does::Lowers | Does::Mode)
}

fn built_in() -> Result<Table, String> {
    static BUILT_IN: OnceLock<Result<Table, String>> = OnceLock::new();
    BUILT_IN.get_or_init(|| read(TABLE, false).map(Arc::new)).clone()
}

/// The entry for a subcommand of git. Most lines have no git in them, so the table is read when one does; a table that
/// is not sound has none, and every subcommand is unknown.
pub(super) fn git(subcommand: &str) -> Option<&'static Spec> {
    static BUILT_IN: OnceLock<Result<BTreeMap<String, Arc<Spec>>, String>> = OnceLock::new();
    let table = BUILT_IN.get_or_init(|| read(GIT, true)).as_ref().ok()?;
    table.get(subcommand).map(AsRef::as_ref)
}

/// What all entries of a table share.
struct Reading<'e> {
    entries: &'e BTreeMap<String, Entry>,
    /// `--no-NAME` takes back what `--NAME` says.
    negates: bool,
}

fn read(text: &str, negates: bool) -> Result<BTreeMap<String, Arc<Spec>>, String> {
    let entries: BTreeMap<String, Entry> =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let reading = Reading { entries: &entries, negates };
    let mut specs = BTreeMap::new();
    for (name, entry) in &entries {
        let spec = Arc::new(resolve(name, entry, None, &reading)?);
        for alias in core::iter::once(name.as_str()).chain(entry.aliases.split_ascii_whitespace()) {
            if specs.insert(alias.to_owned(), Arc::clone(&spec)).is_some() {
                return Err(format!("`{alias}` is there twice"));
            }
        }
    }
    Ok(specs)
}

fn resolve(name: &str, entry: &Entry, above: Option<Effect>, reading: &Reading<'_>) -> Result<Spec, String> {
    let label = |text: &str| Effect::parse(text).ok_or_else(|| format!("`{name}`: there is no effect `{text}`"));
    let effect = match (&entry.effect, above) {
        (Some(text), _) => label(text)?,
        (None, Some(above)) => above,
        (None, None) => return Err(format!("`{name}` has no effect")),
    };
    let mut options = BTreeMap::new();
    options_of(name, entry, &mut options)?;
    let mut from = entry;
    for _ in 0..LIKE_DEPTH_MAX {
        let Some(like) = &from.like else { break };
        from = reading.entries.get(like).ok_or_else(|| format!("`{name}`: there is no entry `{like}`"))?;
        let mut others = BTreeMap::new();
        options_of(like, from, &mut others)?;
        // What an entry says itself counts.
        others.append(&mut options);
        options = others;
    }
    if from.like.is_some() {
        return Err(format!("`{name}` is like too many others"));
    }
    let operands = match entry.operands.as_deref() {
        None | Some("inputs") => Operands::Inputs,
        Some("files") => Operands::Files,
        Some("outputs") => Operands::Outputs,
        Some("output-2") => Operands::SecondIsOutput,
        Some("made") => Operands::Made,
        Some("made-2") => Operands::SecondIsMade,
        Some("remote") => Operands::Remote,
        Some("none") => Operands::None,
        Some("plus") => Operands::Plus,
        Some("command") => Operands::Command,
        Some(other) => return Err(format!("`{name}`: there are no operands `{other}`")),
    };
    let mut verbs = Vec::new();
    if let Some(listed) = &entry.verbs {
        let lists = [
            (&listed.read_only, Effect::ReadOnly),
            (&listed.write, Effect::Write),
            (&listed.network, Effect::Network),
            (&listed.unknown, Effect::Unknown),
            (&listed.destructive, Effect::Destructive),
        ];
        for (words, label) in lists {
            verbs.extend(words.split_ascii_whitespace().map(|word| (word.to_owned(), label)));
        }
    }
    let mut subcommands = BTreeMap::new();
    for (verb, entry) in &entry.sub {
        for alias in core::iter::once(verb.as_str()).chain(entry.aliases.split_ascii_whitespace()) {
            if subcommands
                .insert(alias.to_owned(), resolve(&format!("{name} {alias}"), entry, Some(effect), reading)?)
                .is_some()
            {
                return Err(format!("`{name} {alias}` is there twice"));
            }
        }
    }
    let any = match &entry.any {
        Some(entry) => Some(Box::new(resolve(&format!("{name} *"), entry, Some(effect), reading)?)),
        None => None,
    };
    Ok(Spec {
        effect,
        why: entry.why.clone(),
        options,
        is_open: entry.open,
        is_posix: entry.posix || operands == Operands::Command,
        is_leading: entry.leading,
        is_endless: entry.endless,
        negates: reading.negates,
        single_dash: entry.single_dash,
        dashless: entry.dashless,
        operands,
        skip: entry.skip,
        version: entry.version.split_ascii_whitespace().map(str::to_owned).collect(),
        verbs,
        subcommands,
        any,
    })
}

/// The options that an entry lists.
fn options_of(name: &str, entry: &Entry, options: &mut BTreeMap<String, Opt>) -> Result<(), String> {
    let harmless = Does::Effect(Effect::ReadOnly);
    let lists = [
        (&entry.flags, Takes::Nothing, harmless),
        (&entry.args, Takes::Argument, harmless),
        (&entry.maybe, Takes::MaybeAttached, harmless),
        (&entry.out, Takes::Argument, Does::WritesArgument),
        (&entry.write, Takes::Nothing, Does::Effect(Effect::Write)),
        (&entry.network, Takes::Nothing, Does::Effect(Effect::Network)),
        (&entry.unknown, Takes::Nothing, Does::Effect(Effect::Unknown)),
        (&entry.destructive, Takes::Nothing, Does::Effect(Effect::Destructive)),
        (&entry.asks, Takes::Nothing, Does::Asks),
        (&entry.lowers, Takes::Nothing, Does::Lowers),
        (&entry.modes, Takes::Nothing, Does::Mode),
        (&entry.raises, Takes::Nothing, Does::Raises),
    ];
    for (words, takes, does) in lists {
        for word in words.split_ascii_whitespace() {
            let (option, takes) = match word.as_bytes().last() {
                Some(b'=') => (word.trim_end_matches('='), Takes::Argument),
                Some(b'?') if word.len() > 2 => (word.trim_end_matches('?'), Takes::MaybeAttached),
                Some(_) | None => (word, takes),
            };
            if !option.starts_with('-') && !option.starts_with('+') {
                return Err(format!("`{name}`: `{option}` is no option"));
            }
            if options.insert(option.to_owned(), Opt { takes, does, is_alone: false }).is_some() {
                return Err(format!("`{name}`: the option `{option}` is there twice"));
            }
        }
    }
    for word in entry.alone.split_ascii_whitespace() {
        let option = options.get_mut(word).ok_or_else(|| format!("`{name}`: there is no option `{word}`"))?;
        option.is_alone = true;
    }
    Ok(())
}

impl Spec {
    /// Whether it has subcommands.
    pub(super) fn has_verbs(&self) -> bool {
        !self.verbs.is_empty() || !self.subcommands.is_empty() || self.any.is_some()
    }

    /// Whether a subcommand of this name destroys.
    pub(super) fn verb_destroys(&self, name: &str) -> bool {
        let sub = self.subcommands.get(name).map(|sub| sub.effect);
        sub.or_else(|| self.verb(name)) == Some(Effect::Destructive)
    }

    /// The effect of a verb: one listed by name, else the strictest pattern.
    pub(super) fn verb(&self, verb: &str) -> Option<Effect> {
        let named = self.verbs.iter().filter(|(pattern, _)| pattern == verb).map(|(_, label)| *label).max();
        let matches = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(tail), _) => verb.ends_with(tail),
            (_, Some(head)) => verb.starts_with(head),
            (None, None) => false,
        };
        let by_pattern = || self.verbs.iter().filter(|(pattern, _)| matches(pattern)).map(|(_, label)| *label).max();
        named.or_else(by_pattern)
    }

    /// Whether an option can take back what made a call harmless.
    pub(super) fn can_raise(&self) -> bool {
        self.negates || self.options.values().any(|option| option.does == Does::Raises)
    }

    /// The worst that any listed option does.
    pub(super) fn worst_option(&self) -> Effect {
        self.options.values().map(|option| option.does.worst()).max().unwrap_or(Effect::ReadOnly)
    }
}

impl Does {
    /// The worst that such an option does by itself.
    pub(super) fn worst(self) -> Effect {
        match self {
            Does::Effect(label) => label,
            Does::WritesArgument => Effect::Write,
            // Whoever is asked can say no.
            Does::Asks | Does::Lowers | Does::Mode | Does::Raises => Effect::ReadOnly,
        }
    }
}
