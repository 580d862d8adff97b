//! The table of commands: what each does, by its options and operands. Data, which a bundle can extend.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use interlock_core::Cause;
use interlock_core::bundle::ShellSettings;
use serde::Deserialize;

use super::Effect;
use super::built_in::{self, BuiltIn};
use super::needs::Needs;
use super::traits::Traits;

/// How many entries an entry can be like, one after the other.
const LIKE_DEPTH_MAX: usize = 4;

/// What is known of commands.
#[derive(Debug, Clone)]
pub struct Commands {
    /// The operator's, which add to the built-in ones and never take away.
    added: Arc<BTreeMap<String, Known>>,
}

/// What is known of a command that is not listed.
pub(super) static UNLISTED: LazyLock<Traits> = LazyLock::new(Traits::default);

/// What is known of a name.
#[derive(Debug)]
pub(super) struct Known {
    spec: Arc<Spec>,
    /// It says its version, or how it is used, before it looks at the project.
    answers: bool,
    needs: Needs,
}

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
    pub(super) subcommands: BTreeMap<String, Arc<Spec>>,
    pub(super) any: Option<Arc<Spec>>,
    /// Its effects are told here, and not by code alone.
    is_judged: bool,
    pub(super) traits: Traits,
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
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Entry {
    effect: Option<String>,
    flags: String,
    args: String,
    maybe: String,
    out: String,
    write: String,
    network: String,
    unknown: String,
    destructive: String,
    asks: String,
    lowers: String,
    modes: String,
    raises: String,
    alone: String,
    leading: bool,
    endless: bool,
    /// Another entry of the same table, whose options these are too.
    like: Option<String>,
    /// Another entry of the same table, which this one is under other names: only traits are its own.
    #[serde(rename = "as")]
    same_as: Option<String>,
    /// The names of a group: its heading is none.
    names: String,
    /// The names of a group, each under its reason.
    because: BTreeMap<String, String>,
    /// Those of its names that say their version, or how they are used, before they look at the project.
    answers: String,
    /// Those that fetch packages.
    packages: String,
    /// Those that need more than any profile of the runner gives.
    beyond: String,
    /// What is known beside effects; for built-in commands only.
    traits: Option<Traits>,
    open: bool,
    operands: Option<String>,
    skip: usize,
    single_dash: bool,
    posix: bool,
    dashless: bool,
    aliases: String,
    version: String,
    why: Option<String>,
    verbs: Option<Verbs>,
    sub: BTreeMap<String, Entry>,
    any: Option<Box<Entry>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Verbs {
    read_only: String,
    write: String,
    network: String,
    unknown: String,
    destructive: String,
}

impl Commands {
    /// The built-in table, and what a bundle adds to it.
    pub fn load(settings: Option<&ShellSettings>) -> Result<Commands, Cause> {
        let added = match settings.and_then(|settings| settings.commands.as_deref()) {
            None => BTreeMap::new(),
            Some(text) => read(text)?,
        };
        for (name, Known { spec, .. }) in &added {
            // What code judges may read only; the code says more.
            let known = built_in::COMMANDS.get(name).map(|known| &known.spec);
            let known = known.map(|known| if known.is_judged { known.effect } else { Effect::ReadOnly });
            if let Some(known) = known
                && (spec.effect < known || known != Effect::ReadOnly && spec.options.values().any(lowers))
            {
                return Err(format!(
                    "`{name}` is in the built-in table as {known}; an entry for it can only tighten, not loosen"
                )
                .into());
            }
        }
        Ok(Commands { added: Arc::new(added) })
    }

    /// The entries that tell the effects of a name: the built-in one, the operator's, or both. Where there are both,
    /// both count.
    pub(super) fn get(&self, name: &str) -> [Option<&Arc<Spec>>; 2] {
        let added = self.added.get(name).map(|known| &known.spec);
        [built_in::COMMANDS.get(name).map(|known| &known.spec).filter(|spec| spec.is_judged), added]
    }

    /// What is known of a name beside its effects.
    pub(super) fn traits(&self, name: &str) -> &'static Traits {
        built_in::COMMANDS.get(name).map_or(&UNLISTED, |known| &known.spec.traits)
    }

    /// Whether anything is known of a name.
    pub(super) fn lists(&self, name: &str) -> bool {
        grammar(name).is_some() || self.added.contains_key(name)
    }

    /// Whether a program says its version, or how it is used, before it looks at the project.
    pub(super) fn answers(&self, name: &str) -> bool {
        built_in::COMMANDS.get(name).is_some_and(|known| known.answers)
    }

    /// What a command of this name needs, whatever it is told to do.
    pub(super) fn needs(&self, name: &str) -> Needs {
        built_in::COMMANDS.get(name).map_or(Needs::Project, |known| known.needs)
    }

    /// How many names the built-in table tells the effects of.
    pub fn len(&self) -> usize {
        built_in::COMMANDS.names().filter(|name| grammar(name).is_some_and(|spec| spec.is_judged)).count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn lowers(option: &Opt) -> bool {
    matches!(option.does, Does::Lowers | Does::Mode)
}

/// The options of a built-in command.
pub(super) fn grammar(name: &str) -> Option<&'static Spec> {
    built_in::COMMANDS.get(name).map(|known| known.spec.as_ref())
}

/// The entry for a subcommand of git, if it tells its effects.
pub(super) fn git(subcommand: &str) -> Option<&'static Spec> {
    git_entry(subcommand).filter(|spec| spec.is_judged)
}

/// What is known of a subcommand of git beside its effects.
pub(super) fn git_traits(subcommand: &str) -> &'static Traits {
    git_entry(subcommand).map_or(&UNLISTED, |spec| &spec.traits)
}

/// What a subcommand of git needs.
pub(super) fn git_needs(subcommand: &str) -> Needs {
    built_in::GIT.get(subcommand).map_or(Needs::Project, |known| known.needs)
}

/// The entry for a subcommand of git, whoever tells its effects.
pub(super) fn git_entry(subcommand: &str) -> Option<&'static Spec> {
    built_in::GIT.get(subcommand).map(|known| known.spec.as_ref())
}

/// Whose entry it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    BuiltIn,
    /// The subcommands of git, where `--no-NAME` takes back what `--NAME` says.
    Git,
    Operator,
}

/// Where the entries stand that another one is like.
pub(super) enum Source<'s> {
    BuiltIn(&'static BuiltIn),
    Operator(&'s BTreeMap<String, Entry>),
}

/// Reads an operator's table.
fn read(text: &str) -> Result<BTreeMap<String, Known>, Cause> {
    let entries = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let source = Source::Operator(&entries);
    let mut known_as = BTreeMap::new();
    for (heading, entry) in &entries {
        let Some(group) = names_of(heading, entry) else {
            return Err(format!("`{heading}` has names and aliases").into());
        };
        for (why, name) in group.iter().flat_map(|(why, names)| names.iter().map(move |name| (*why, *name))) {
            if known_as.insert(name.to_owned(), known(name, why, (heading, entry), &source)?).is_some() {
                return Err(format!("`{name}` is there twice").into());
            }
        }
    }
    Ok(known_as)
}

/// What an entry says of one of its names, which may have a reason of its own.
pub(super) fn known(
    name: &str,
    why: Option<&str>,
    (heading, entry): (&str, &Entry),
    source: &Source<'_>,
) -> Result<Known, Cause> {
    let of = entry.same_as.as_ref().map(|other| source.entry(heading, other)).transpose()?;
    let mut spec = resolve(heading, of.as_deref().unwrap_or(entry), None, source)?;
    spec.traits = source.traits(heading, entry)?;
    spec.check_columns(heading)?;
    spec.why = why.map(str::to_owned).or(spec.why);
    let needs = if lists(&entry.beyond, name) {
        Needs::Beyond
    } else if lists(&entry.packages, name) {
        Needs::Packages
    } else {
        Needs::Project
    };
    Ok(Known { spec: Arc::new(spec), answers: lists(&entry.answers, name), needs })
}

fn lists(column: &str, name: &str) -> bool {
    column.split_ascii_whitespace().any(|listed| listed == name)
}

/// The names that an entry is about, with the reason where there is one for each.
fn names_of<'e>(name: &'e str, entry: &'e Entry) -> Option<Vec<(Option<&'e str>, Vec<&'e str>)>> {
    let words = |text: &'e str| -> Vec<&'e str> { text.split_ascii_whitespace().collect() };
    if entry.names.is_empty() && entry.because.is_empty() {
        let names = core::iter::once(name).chain(entry.aliases.split_ascii_whitespace()).collect();
        return Some(vec![(None, names)]);
    }
    let by_reason = entry.because.iter().map(|(why, names)| (Some(why.as_str()), words(names)));
    let named = core::iter::once((None, words(&entry.names)));
    entry.aliases.is_empty().then(|| named.chain(by_reason).collect())
}

impl Source<'_> {
    fn origin(&self) -> Origin {
        match self {
            Source::BuiltIn(table) => table.origin,
            Source::Operator(_) => Origin::Operator,
        }
    }

    /// The entry under another heading, which the one under `heading` names.
    fn entry(&self, heading: &str, other: &str) -> Result<Cow<'_, Entry>, Cause> {
        let found = match self {
            Source::BuiltIn(table) => table.entry(other)?.map(Cow::Owned),
            Source::Operator(entries) => entries.get(other).map(Cow::Borrowed),
        };
        found.ok_or_else(|| format!("`{heading}`: there is no entry `{other}`").into())
    }

    /// What an entry says beside effects. That is for built-in commands: it can take away what is looked at.
    fn traits(&self, name: &str, entry: &Entry) -> Result<Traits, Cause> {
        let lists = [&entry.answers, &entry.packages, &entry.beyond];
        let has_any = entry.traits.is_some() || lists.iter().any(|names| !names.is_empty());
        if matches!(self, Source::Operator(_)) && has_any {
            return Err(
                format!("`{name}`: `traits`, `answers`, `packages` and `beyond` are for built-in commands").into()
            );
        }
        Ok(entry.traits.clone().unwrap_or_default())
    }
}

fn resolve(name: &str, entry: &Entry, above: Option<Effect>, source: &Source<'_>) -> Result<Spec, Cause> {
    let label = |text: &str| Effect::parse(text).ok_or_else(|| format!("`{name}`: there is no effect `{text}`"));
    // Code tells the effects of a built-in entry that has only traits.
    let is_judged = matches!(source, Source::Operator(_)) || entry.effect.is_some() || entry.traits.is_none();
    let effect = match (&entry.effect, above) {
        (Some(text), _) => label(text)?,
        (None, Some(above)) => above,
        (None, None) if !is_judged => Effect::Unknown,
        (None, None) => return Err(format!("`{name}` has no effect").into()),
    };
    let options = all_options(name, entry, source)?;
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
        Some(other) => return Err(format!("`{name}`: there are no operands `{other}`").into()),
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
        let sub = Arc::new(resolve(&format!("{name} {verb}"), entry, Some(effect), source)?);
        for alias in core::iter::once(verb.as_str()).chain(entry.aliases.split_ascii_whitespace()) {
            if subcommands.insert(alias.to_owned(), Arc::clone(&sub)).is_some() {
                return Err(format!("`{name} {alias}` is there twice").into());
            }
        }
    }
    let any = match &entry.any {
        Some(entry) => Some(Arc::new(resolve(&format!("{name} *"), entry, Some(effect), source)?)),
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
        negates: matches!(source.origin(), Origin::Git),
        single_dash: entry.single_dash,
        dashless: entry.dashless,
        operands,
        skip: entry.skip,
        version: entry.version.split_ascii_whitespace().map(str::to_owned).collect(),
        verbs,
        subcommands,
        any,
        is_judged,
        traits: Traits::default(),
    })
}

/// The options that an entry has: its own, and those of the entries it is like.
fn all_options(name: &str, entry: &Entry, source: &Source<'_>) -> Result<BTreeMap<String, Opt>, Cause> {
    let mut options = BTreeMap::new();
    options_of(name, entry, &mut options)?;
    let mut from = Cow::Borrowed(entry);
    for _ in 0..LIKE_DEPTH_MAX {
        let Some(like) = from.like.clone() else { break };
        from = source.entry(name, &like)?;
        let mut others = BTreeMap::new();
        options_of(&like, &from, &mut others)?;
        // What an entry says itself counts.
        others.append(&mut options);
        options = others;
    }
    if from.like.is_some() {
        return Err(format!("`{name}` is like too many others").into());
    }
    Ok(options)
}

/// The options that an entry lists.
fn options_of(name: &str, entry: &Entry, options: &mut BTreeMap<String, Opt>) -> Result<(), Cause> {
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
                return Err(format!("`{name}`: `{option}` is no option").into());
            }
            if options.insert(option.to_owned(), Opt { takes, does, is_alone: false }).is_some() {
                return Err(format!("`{name}`: the option `{option}` is there twice").into());
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
    /// Whether every option that a column of the traits names is listed: only those are read.
    fn check_columns(&self, name: &str) -> Result<(), Cause> {
        let Traits { makes_by, suffix, keeps, lists, module, .. } = &self.traits;
        let mut named =
            [makes_by, suffix, keeps, lists, module].into_iter().flat_map(|column| column.split_ascii_whitespace());
        match named.find(|option| !self.options.contains_key(*option)) {
            Some(option) => Err(format!("`{name}`: the option `{option}` of its traits is not listed").into()),
            None => Ok(()),
        }
    }

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
