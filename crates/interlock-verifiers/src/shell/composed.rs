//! Names of files that a command puts together: from a directory and a name, from a name and a suffix, from an address.
//! Where the line tells all of it, the name is a path like any other; where it does not, the path cannot be told.

use super::Effect;
use super::options;
use super::reduce::Argument;
use super::table::Spec;
use super::unnamed::texts;
use super::words::is_below_home;

/// Suffixes of copies and of compressed files. What they make is no file that anybody waits for.
const USUAL_SUFFIXES: [&str; 13] =
    ["", "~", ".bak", ".orig", ".old", ".tmp", ".gz", ".bz2", ".xz", ".zst", ".lz4", ".lzma", ".br"];
/// What is taken away from the name of a compressed file.
#[rustfmt::skip]
const COMPRESSED: [&str; 15] = [
    ".gz", "-gz", ".z", "-z", "_z", ".bz2", ".bz", ".xz", ".lzma", ".zst", ".lz4", ".br", ".bak", ".tmp", "~",
];
/// Commands that replace files by compressed ones, and back.
#[rustfmt::skip]
const COMPRESSORS: &[&str] = &[
    "gzip", "ggzip", "pigz", "compress", "bzip2", "pbzip2", "xz", "lzma", "zstd", "zstdmt", "lz4", "brotli", "gunzip",
    "unpigz", "uncompress", "bunzip2", "unxz", "unlzma", "unzstd", "unlz4",
];
/// Commands that put files into a directory under the names they have.
const INTO_DIRECTORIES: &[&str] =
    &["cp", "gcp", "mv", "gmv", "ln", "gln", "link", "install", "ginstall", "rsync", "scp"];

/// The most names of one command.
const NAMES_MAX: usize = 1_024;

/// What a command writes under names that it puts together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Composed {
    /// Names that can be told.
    pub(super) paths: Vec<String>,
    /// There is one that cannot.
    pub(super) is_unknown: bool,
}

impl Composed {
    fn unknown() -> Composed {
        Composed { is_unknown: true, ..Composed::default() }
    }

    /// Names that can be told, if they are not too many.
    fn of(paths: impl Iterator<Item = String>) -> Composed {
        let paths: Vec<String> = paths.take(NAMES_MAX).collect();
        Composed { is_unknown: paths.len() >= NAMES_MAX, paths }
    }

    fn unknown_if(is_unknown: bool) -> Composed {
        Composed { is_unknown, ..Composed::default() }
    }
}

/// A call with what the table knows of its command.
#[derive(Clone, Copy)]
struct Given<'a> {
    spec: Option<&'a Spec>,
    arguments: &'a [Argument],
}

impl Given<'_> {
    fn values(&self, letter: Option<char>, long: &str) -> Vec<Option<String>> {
        options::values(self.spec, self.arguments, letter, long)
    }

    fn has(&self, letter: Option<char>, long: &str) -> bool {
        !self.values(letter, long).is_empty()
    }

    fn operands(&self) -> Vec<&Argument> {
        self.spec.map_or_else(Vec::new, |spec| options::read_until_verb(spec, self.arguments).operands)
    }
}

/// What a command writes under names that it puts together.
pub(super) fn writes(name: &str, arguments: &[Argument], spec: Option<&Spec>, label: Effect) -> Composed {
    if label == Effect::ReadOnly {
        return Composed::default();
    }
    let given = Given { spec, arguments };
    match name {
        _ if COMPRESSORS.contains(&name) => compressed(name, given),
        _ if INTO_DIRECTORIES.contains(&name) => copied(name, given),
        "wget" => fetched_by_wget(given),
        "curl" => fetched_by_curl(given),
        "http" | "https" | "xh" => Composed::unknown_if(given.has(Some('d'), "download")),
        "split" | "gsplit" => split(given),
        "csplit" | "gcsplit" => Composed::unknown_if(given.has(Some('b'), "suffix-format")),
        // The name is in what is decoded.
        "uudecode" => Composed::unknown_if(!given.has(Some('o'), "output-file") && !given.has(Some('p'), "p")),
        "yq" => Composed::unknown_if(given.has(Some('s'), "split-exp")),
        "git" => Composed::of(super::git_config::elsewhere(arguments).into_iter()),
        _ => Composed::default(),
    }
}

/// Whether a suffix is one of those that everybody uses.
pub(super) fn is_usual(suffix: Option<&str>) -> bool {
    suffix.is_some_and(|suffix| USUAL_SUFFIXES.contains(&suffix))
}

/// Whether a suffix is given that may make any name of another.
fn has_odd_suffix(given: Given<'_>, letter: Option<char>) -> bool {
    given.values(letter, "suffix").iter().any(|suffix| !is_usual(suffix.as_deref()))
}

fn compressed(name: &str, given: Given<'_>) -> Composed {
    let unpacks = name.starts_with("un")
        || matches!(name, "gunzip" | "bunzip2")
        || given.has(Some('d'), "decompress")
        || given.has(None, "uncompress");
    let has_suffix_letter = !matches!(name, "bzip2" | "bunzip2" | "zstd" | "zstdmt" | "unzstd" | "lz4" | "unlz4");
    // Names from a list, and names that are put into a directory with another ending.
    let elsewhere = ["--file", "--output-dir"];
    let leads_elsewhere = texts(given.arguments).any(|text| elsewhere.iter().any(|option| text.starts_with(option)));
    if has_odd_suffix(given, has_suffix_letter.then_some('S')) || leads_elsewhere {
        return Composed::unknown();
    }
    if !unpacks {
        return Composed::default();
    }
    let operands = given.operands();
    let is_pattern = operands.iter().any(|operand| operand.has_glob);
    let names_itself = !name.ends_with("zstd") && given.has(Some('N'), "name");
    if names_itself || given.has(Some('r'), "recursive") || is_pattern {
        return Composed::unknown();
    }
    let whole = operands.iter().flat_map(|operand| operand.texts());
    let paths = whole.flat_map(|path| {
        let shorter = COMPRESSED.iter().filter_map(|suffix| strip_suffix(path, suffix));
        shorter.chain(path.rsplit_once('.').map(|(before, _)| before)).map(str::to_owned)
    });
    Composed::of(paths.filter(|path| !path.is_empty()))
}

/// A text without a suffix, in whatever case.
fn strip_suffix<'t>(text: &'t str, suffix: &str) -> Option<&'t str> {
    let at = text.len().checked_sub(suffix.len())?;
    text.get(at..).filter(|end| end.eq_ignore_ascii_case(suffix)).and_then(|_| text.get(..at))
}

fn copied(name: &str, given: Given<'_>) -> Composed {
    let letter = (name != "rsync" && name != "scp").then_some('S');
    if name != "scp" && has_odd_suffix(given, letter) {
        return Composed::unknown();
    }
    let mut sources = given.operands();
    let named = if name == "rsync" || name == "scp" { Vec::new() } else { given.values(Some('t'), "target-directory") };
    let mut targets: Vec<String> = if named.is_empty() {
        sources.pop().map(paths_of).unwrap_or_default()
    } else {
        named.into_iter().flatten().collect()
    };
    if matches!(name, "ln" | "gln" | "link") {
        // A link that is yet to be made is no directory, and what is beneath it could be anything.
        targets.retain(|target| target.ends_with('/') || last_name(target).starts_with('.'));
    }
    let keeps_directories = given.has(None, "parents") || name == "rsync" && given.has(Some('R'), "relative");
    let mut composed = Composed::default();
    for source in sources {
        let paths = paths_of(source);
        let patterns: Vec<&str> = match &source.partly {
            _ if source.has_glob => vec![source.prefix()],
            Some(partly) if paths.is_empty() => partly.names.iter().map(String::as_str).collect(),
            Some(_) | None => Vec::new(),
        };
        // Patterns for hidden names; what others can be is expanded where it is read.
        composed.is_unknown |= patterns.iter().any(|pattern| last_name(pattern).starts_with('.'));
        composed.is_unknown |= paths.is_empty() && patterns.is_empty();
        for path in &paths {
            for target in &targets {
                if composed.paths.len() >= NAMES_MAX {
                    return Composed::unknown();
                }
                let name = last_name(path);
                if !matches!(name, "" | "." | "..") {
                    composed.paths.push(format!("{target}/{name}"));
                }
                if keeps_directories {
                    composed.paths.push(format!("{target}/{path}"));
                }
            }
        }
    }
    composed
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

fn fetched_by_wget(given: Given<'_>) -> Composed {
    if given.has(None, "spider") || given.has(Some('O'), "output-document") {
        return Composed::default();
    }
    let decides_later = [
        (None, "content-disposition"),
        (None, "trust-server-names"),
        (Some('i'), "input-file"),
        (Some('r'), "recursive"),
        (Some('m'), "mirror"),
        (Some('p'), "page-requisites"),
        (Some('x'), "force-directories"),
    ];
    let escapes = texts(given.arguments).any(|text| is_address(text) && text.contains('%'));
    if escapes || decides_later.iter().any(|(letter, long)| given.has(*letter, long)) {
        return Composed::unknown();
    }
    below(given, given.values(Some('P'), "directory-prefix"))
}

fn fetched_by_curl(given: Given<'_>) -> Composed {
    let is_pattern = |value: &Option<String>| value.as_ref().is_none_or(|value| value.contains('#'));
    let is_composed = given.values(Some('o'), "output").iter().any(is_pattern);
    if is_composed || given.has(Some('J'), "remote-header-name") || given.has(Some('K'), "config") {
        return Composed::unknown();
    }
    if !given.has(Some('O'), "remote-name") && !given.has(None, "remote-name-all") {
        return Composed::default();
    }
    // `{a,b}` and `[1-9]` in an address are several.
    if texts(given.arguments).any(|text| is_address(text) && text.contains(['{', '['])) {
        return Composed::unknown();
    }
    below(given, given.values(None, "output-dir"))
}

/// The names in addresses, in directories that options name.
fn below(given: Given<'_>, directories: Vec<Option<String>>) -> Composed {
    let directories: Vec<String> =
        if directories.is_empty() { vec![".".to_owned()] } else { directories.into_iter().flatten().collect() };
    let names = texts(given.arguments).filter(|text| is_address(text)).filter_map(name_in);
    let paths = names.flat_map(|name| directories.iter().map(move |directory| format!("{directory}/{name}")));
    Composed::of(paths)
}

/// `split FILE PREFIX` appends letters or numbers: with few of them every ending can be reached.
fn split(given: Given<'_>) -> Composed {
    let operands = given.operands();
    let Some(prefix) = operands.get(1) else { return Composed::default() };
    let numbers = given.has(Some('d'), "numeric-suffixes") && !given.has(None, "additional-suffix");
    let is_plain = |prefix: &String| {
        let name = prefix.rsplit('/').next().unwrap_or("");
        // `big.tar.`: no name that means something goes on behind a second dot.
        let ends_plainly = name.ends_with(['-', '_']) || name.ends_with('.') && name.matches('.').count() > 1;
        ends_plainly && !name.starts_with('.') && !name.to_ascii_lowercase().starts_with("id_")
    };
    Composed::unknown_if(!numbers && !prefix.texts().iter().all(is_plain))
}
