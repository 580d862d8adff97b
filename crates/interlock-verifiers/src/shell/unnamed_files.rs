//! Files that a command touches and the line does not name: those in an archive or a patch, those that a list names, all
//! that is in a directory. The table says by which words a command does so.

use super::Effect;
use super::options::{self, has_any, is_option, texts};
use super::reduce::Argument;
use super::table;
use super::traits::{Fact, Language, Makes, Script, Traits};
use super::walk::Run;
use super::{git_touches, tar};

/// How options for lists begin, whoever has them; most programs take an abbreviation.
const LISTS: &str = "--files0* --files-f* --filelist* --stdin-p* --pathspec-f*";

/// Words in programs of `jq` and `yq` that read other files.
const LOADING: [&str; 8] =
    ["import", "include", "modulemeta", "load", "load_str", "load_xml", "load_props", "load_base64"];

/// Whether a command writes files that the line does not name.
pub(super) fn writes_unnamed(traits: &Traits, run: &Run<'_>, label: Effect) -> bool {
    let writes = match traits.language {
        Some(Language::Tar) => tar::extracts(run),
        Some(Language::Git) => git_touches::writes_unnamed(run.arguments),
        Some(_) | None => has_any(run.arguments, &traits.unpacks),
    };
    writes && label > Effect::ReadOnly
}

/// Whether a command reads files that a stream, a list in a file or an expression names.
pub(super) fn reads_unnamed(traits: &Traits, run: &Run<'_>, spec: Option<&table::Spec>) -> bool {
    let arguments = run.arguments;
    let has_list = has_any(arguments, LISTS);
    match traits.language {
        Some(Language::Tar) => tar::stores(run) && (has_list || tar::has_list(run)),
        // Without an action it prints names and nothing else.
        Some(Language::Find) => has_any(arguments, "-files0*") && sweeps(traits, run),
        Some(Language::Git) => has_list || git_touches::reads_names(arguments),
        Some(_) | None => {
            has_list
                || traits.script == Some(Script::Loads) && loads(arguments)
                || spec.is_some_and(|spec| {
                    !traits.lists.is_empty() && options::read_until_verb(spec, arguments).has(&traits.lists)
                })
                || has_any(arguments, &traits.list_words)
        }
    }
}

/// Whether a program reads other files: `import "x" as $x;`, `load("x")`.
fn loads(arguments: &[Argument]) -> bool {
    let is_between = |character: char| !character.is_ascii_alphanumeric() && !"_.$\"".contains(character);
    let mut words = texts(arguments).flat_map(|text| text.split(is_between));
    words.any(|word| LOADING.contains(&word.split('"').next().unwrap_or("")))
}

/// Whether a command reads all that is in the directories it is given.
pub(super) fn sweeps(traits: &Traits, run: &Run<'_>) -> bool {
    if traits.speaks(Language::Tar) { tar::stores(run) } else { has_any(run.arguments, &traits.sweeps) }
}

/// Whether a command that goes through directories is given none, and takes the one it is in.
pub(super) fn sweeps_here(
    traits: &Traits,
    arguments: &[Argument],
    spec: Option<&table::Spec>,
    has_script: bool,
) -> bool {
    if traits.speaks(Language::Find) {
        return texts(arguments).next().is_none_or(|first| first.starts_with(['-', '(', '!']));
    }
    let operands = || spec.map_or(0, |spec| options::read_until_verb(spec, arguments).operands.len());
    traits.is(Fact::Searches) && operands() <= usize::from(!has_script)
}

/// The argument that a copy is written to, if it can be told: it is the only one that is not read.
pub(super) fn destination(traits: &Traits, arguments: &[Argument]) -> Option<usize> {
    let last = || arguments.iter().rposition(|argument| !is_option(argument.prefix()));
    if traits.makes == Some(Makes::Transfers) {
        return last().filter(|at| at.saturating_add(1) == arguments.len());
    }
    let is_odd = |argument: &Argument| argument.splits || argument.known_text() == Some("--");
    let is_plain = || !has_any(arguments, "-t -S --t* --s*") && !arguments.iter().any(is_odd);
    (traits.makes == Some(Makes::Copies) && is_plain()).then(last).flatten()
}
