//! Names of files that a command puts together: from a directory and a name, from a name and a suffix, from an address.
//! Where the line tells all of it, the name is a path like any other; where it does not, the path cannot be told.

use super::Effect;
use super::git_touches;
use super::options::{self, Call, has_any, texts};
use super::policy_words::is_below_home;
use super::reduce::Argument;
use super::table::Spec;
use super::traits::{Language, Makes, Traits};

/// Suffixes of copies and of compressed files. What they make is no file that anybody waits for.
const USUAL_SUFFIXES: [&str; 13] =
    ["", "~", ".bak", ".orig", ".old", ".tmp", ".gz", ".bz2", ".xz", ".zst", ".lz4", ".lzma", ".br"];
/// What is taken away from the name of a compressed file.
#[rustfmt::skip]
const COMPRESSED: [&str; 15] = [
    ".gz", "-gz", ".z", "-z", "_z", ".bz2", ".bz", ".xz", ".lzma", ".zst", ".lz4", ".br", ".bak", ".tmp", "~",
];

/// The most names of one command.
const NAMES_MAX: usize = 1_024;

/// What a command writes under names that it puts together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MadeNames {
    /// Names that can be told.
    pub(super) paths: Vec<String>,
    /// There is one that cannot.
    pub(super) is_unknown: bool,
}

impl MadeNames {
    fn unknown() -> MadeNames {
        MadeNames { is_unknown: true, ..MadeNames::default() }
    }

    /// Names that can be told, if they are not too many.
    fn of(paths: impl Iterator<Item = String>) -> MadeNames {
        let paths: Vec<String> = paths.take(NAMES_MAX).collect();
        MadeNames { is_unknown: paths.len() >= NAMES_MAX, paths }
    }

    fn unknown_if(is_unknown: bool) -> MadeNames {
        MadeNames { is_unknown, ..MadeNames::default() }
    }
}

/// A call with what the table knows of its command.
struct Given<'a> {
    traits: &'a Traits,
    call: Call<'a>,
    arguments: &'a [Argument],
}

impl Given<'_> {
    /// Whether a suffix is given that may make any name of another.
    fn has_odd_suffix(&self) -> bool {
        self.call.values(&self.traits.suffix).any(|suffix| !is_usual(suffix))
    }
}

/// What a command writes under names that it puts together.
pub(super) fn writes(traits: &Traits, arguments: &[Argument], spec: Option<&Spec>, label: Effect) -> MadeNames {
    if label == Effect::ReadOnly {
        return MadeNames::default();
    }
    if traits.speaks(Language::Git) {
        return MadeNames::of(git_touches::elsewhere(arguments).into_iter());
    }
    if traits.makes.is_none() && traits.makes_by.is_empty() {
        return MadeNames::default();
    }
    let call = spec.map_or_else(Call::default, |spec| options::read_until_verb(spec, arguments));
    let given = &Given { traits, call, arguments };
    if given.call.has(&traits.makes_by) {
        return MadeNames::unknown();
    }
    match traits.makes {
        None => MadeNames::default(),
        Some(Makes::Packed) => compressed(given, false),
        Some(Makes::Unpacked) => compressed(given, true),
        Some(Makes::Copies | Makes::Placed | Makes::Links | Makes::Transfers) => copied(given),
        Some(Makes::ByWget) => fetched_by_wget(given),
        Some(Makes::ByCurl) => fetched_by_curl(given),
        Some(Makes::Pieces) => split(given),
        Some(Makes::Decoded) => MadeNames::unknown_if(!given.call.has("-o --output-file -p")),
    }
}

/// Whether a suffix is one of those that everybody uses.
pub(super) fn is_usual(suffix: Option<&str>) -> bool {
    suffix.is_some_and(|suffix| USUAL_SUFFIXES.contains(&suffix))
}

fn compressed(given: &Given<'_>, always_unpacks: bool) -> MadeNames {
    // Names from a list, and names that are put into a directory with another ending.
    if given.has_odd_suffix() || has_any(given.arguments, "--file* --output-dir*") {
        return MadeNames::unknown();
    }
    if !always_unpacks && !given.call.has("-d --decompress --uncompress") {
        return MadeNames::default();
    }
    let operands = &given.call.operands;
    let is_pattern = operands.iter().any(|operand| operand.has_glob);
    if given.call.has("-N --name -r --recursive") || is_pattern {
        return MadeNames::unknown();
    }
    let whole = operands.iter().flat_map(|operand| operand.texts());
    let paths = whole.flat_map(|path| {
        let shorter = COMPRESSED.iter().filter_map(|suffix| strip_suffix(path, suffix));
        shorter.chain(path.rsplit_once('.').map(|(before, _)| before)).map(str::to_owned)
    });
    MadeNames::of(paths.filter(|path| !path.is_empty()))
}

/// A text without a suffix, in whatever case.
fn strip_suffix<'t>(text: &'t str, suffix: &str) -> Option<&'t str> {
    let at = text.len().checked_sub(suffix.len())?;
    text.get(at..).filter(|end| end.eq_ignore_ascii_case(suffix)).and_then(|_| text.get(..at))
}

/// Options that name the directory that is copied to.
const TARGET: &str = "-t --target-directory";

fn copied(given: &Given<'_>) -> MadeNames {
    if given.has_odd_suffix() {
        return MadeNames::unknown();
    }
    let mut sources = given.call.operands.as_slice();
    let is_named = given.traits.makes != Some(Makes::Transfers) && given.call.has(TARGET);
    let mut targets: Vec<String> = match sources.split_last() {
        _ if is_named => given.call.values(TARGET).flatten().map(str::to_owned).collect(),
        Some((last, others)) => {
            sources = others;
            paths_of(last)
        }
        None => Vec::new(),
    };
    if given.traits.makes == Some(Makes::Links) {
        // A link that is yet to be made is no directory, and what is beneath it could be anything.
        targets.retain(|target| target.ends_with('/') || last_name(target).starts_with('.'));
    }
    let keeps_directories = given.call.has(&given.traits.keeps);
    let mut made = MadeNames::default();
    for source in sources {
        let paths = paths_of(source);
        let patterns: Vec<&str> = match &source.partly {
            _ if source.has_glob => vec![source.prefix()],
            Some(partly) if paths.is_empty() => partly.names.iter().map(String::as_str).collect(),
            Some(_) | None => Vec::new(),
        };
        // Patterns for hidden names; what others can be is expanded where it is read.
        made.is_unknown |= patterns.iter().any(|pattern| last_name(pattern).starts_with('.'));
        made.is_unknown |= paths.is_empty() && patterns.is_empty();
        for path in &paths {
            for target in &targets {
                if made.paths.len() >= NAMES_MAX {
                    return MadeNames::unknown();
                }
                let name = last_name(path);
                if !matches!(name, "" | "." | "..") {
                    made.paths.push(format!("{target}/{name}"));
                }
                if keeps_directories {
                    made.paths.push(format!("{target}/{path}"));
                }
            }
        }
    }
    made
}

/// Every path that an argument can be, as far as that can be told.
fn paths_of(argument: &Argument) -> Vec<String> {
    if is_below_home(argument) { vec![argument.prefix().to_owned()] } else { argument.texts().to_vec() }
}

fn last_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

/// The name in an address, under which it is kept.
fn name_in(address: &str) -> Option<&str> {
    let path = address.split_once("://").map_or(address, |(_, rest)| rest);
    path.rsplit_once('/').map(|(_, name)| name).filter(|name| !name.is_empty())
}

fn is_address(text: &str) -> bool {
    !text.starts_with('-') && text.contains('/')
}

fn fetched_by_wget(given: &Given<'_>) -> MadeNames {
    const DECIDES_LATER: &str = "--content-disposition --trust-server-names -i --input-file -r --recursive -m --mirror \
        -p --page-requisites -x --force-directories";
    if given.call.has("--spider -O --output-document") {
        return MadeNames::default();
    }
    let escapes = texts(given.arguments).any(|text| is_address(text) && text.contains('%'));
    if escapes || given.call.has(DECIDES_LATER) {
        return MadeNames::unknown();
    }
    below(given, "-P --directory-prefix")
}

fn fetched_by_curl(given: &Given<'_>) -> MadeNames {
    let is_pattern = |value: Option<&str>| value.is_none_or(|value| value.contains('#'));
    let is_composed = given.call.values("-o --output").any(is_pattern);
    if is_composed || given.call.has("-J --remote-header-name -K --config") {
        return MadeNames::unknown();
    }
    if !given.call.has("-O --remote-name --remote-name-all") {
        return MadeNames::default();
    }
    // `{a,b}` and `[1-9]` in an address are several.
    if texts(given.arguments).any(|text| is_address(text) && text.contains(['{', '['])) {
        return MadeNames::unknown();
    }
    below(given, "--output-dir")
}

/// The names in addresses, in the directories that options name.
fn below(given: &Given<'_>, options: &str) -> MadeNames {
    let named: Vec<Option<&str>> = given.call.values(options).collect();
    let directories: Vec<&str> = if named.is_empty() { vec!["."] } else { named.into_iter().flatten().collect() };
    let names = texts(given.arguments).filter(|text| is_address(text)).filter_map(name_in);
    let paths = names.flat_map(|name| directories.iter().map(move |directory| format!("{directory}/{name}")));
    MadeNames::of(paths)
}

/// `split FILE PREFIX` appends letters or numbers: with few of them every ending can be reached.
fn split(given: &Given<'_>) -> MadeNames {
    let Some(prefix) = given.call.operands.get(1) else { return MadeNames::default() };
    let numbers = given.call.has("-d --numeric-suffixes") && !given.call.has("--additional-suffix");
    let is_plain = |prefix: &String| {
        let name = prefix.rsplit('/').next().unwrap_or("");
        // `big.tar.`: no name that means something goes on behind a second dot.
        let ends_plainly = name.ends_with(['-', '_']) || name.ends_with('.') && name.matches('.').count() > 1;
        ends_plainly && !name.starts_with('.') && !name.to_ascii_lowercase().starts_with("id_")
    };
    MadeNames::unknown_if(!numbers && !prefix.texts().iter().all(is_plain))
}
