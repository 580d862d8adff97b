//! Commands that take the names of files from elsewhere: a stream, a list in a file, an expression. What they read, the
//! line does not name.

use super::options;
use super::reduce::Argument;
use super::table::Spec;
use super::walk::Run;
use super::{tar, unnamed};

/// How options for lists begin, whoever has them; most programs take an abbreviation.
const LISTS: [&str; 5] = ["files0", "files-f", "filelist", "stdin-p", "pathspec-f"];

/// Options of one letter, and written out, that mean a list for one command.
#[rustfmt::skip]
const OWN_LISTS: &[(&[&str], Option<char>, &str)] = &[
    (&["sort", "gsort", "wc", "gwc", "du", "gdu"], None, "files0-from"),
    (&["file"], Some('f'), "files-from"),
    (&["zip"], Some('@'), "names-stdin"),
    (&["wget"], Some('i'), "input-file"),
    (&["curl"], Some('K'), "config"),
    (&["cpio", "gcpio", "bsdcpio"], Some('o'), "create"),
    (&["cpio", "gcpio", "bsdcpio"], Some('p'), "pass-through"),
    (&["pax"], Some('w'), "write"),
    // It follows what a script says that it loads.
    (&["shellcheck"], Some('x'), "external-sources"),
];

/// Commands that compare sums with those in a list.
#[rustfmt::skip]
const SUMS: &[&str] = &[
    "cksum", "sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "b3sum",
    "gmd5sum", "gsha1sum", "gsha256sum", "gsha512sum", "xxhsum", "xxh64sum", "xxh128sum", "shasum",
];

/// Commands that take more arguments from a file: `@FILE`.
#[rustfmt::skip]
const WITH_RESPONSES: &[&str] = &[
    "ar", "gar", "nm", "strings", "objdump", "readelf", "size", "ranlib", "strip", "objcopy", "addr2line", "c++filt",
    "ld",
];

/// The names of `xz`, each of which takes a list: `--files=LIST`.
const WITH_FILES: &[&str] =
    &["xz", "xzcat", "unxz", "lzma", "unlzma", "lzcat", "xzless", "xzmore", "xzgrep", "lzgrep", "lzless"];
/// Verbs of git that show what a stream names, with `--stdin`.
const SHOWING: &[&str] = &["log", "show", "diff-tree", "whatchanged", "rev-list", "format-patch", "shortlog"];

/// Words in programs of `jq` and `yq` that read other files.
const LOADING: [&str; 8] =
    ["import", "include", "modulemeta", "load", "load_str", "load_xml", "load_props", "load_base64"];

/// Whether a command reads files that the line does not name.
pub(super) fn reads_unnamed(name: &str, run: &Run<'_>, spec: Option<&Spec>) -> bool {
    let arguments = run.arguments;
    let begins = |beginning: &str| unnamed::texts(arguments).any(|text| text.starts_with(beginning));
    let has_list = LISTS.iter().any(|list| begins(&format!("--{list}")));
    match name {
        "tar" | "gtar" | "bsdtar" => tar::stores(run) && (has_list || tar::has_list(run)),
        // Without an action it prints names and nothing else.
        "find" | "gfind" => begins("-files0") && unnamed::sweeps(name, run),
        // `a x.7z @names`, `-i@names`
        "7z" | "7za" | "7zr" | "7zz" | "p7zip" => {
            begins("@") || unnamed::texts(arguments).any(|text| text.starts_with("-i") && text.contains('@'))
        }
        "jq" | "gojq" | "jaq" | "yq" => {
            loads(arguments) || begins("--run-tests") || is_given(spec, arguments, Some('f'), "from-file")
        }
        // Names of objects and files, one a line.
        "git" => has_list || reads_names(arguments),
        _ if WITH_FILES.contains(&name) => has_list || begins("--files"),
        _ if SUMS.contains(&name) => has_list || is_given(spec, arguments, Some('c'), "check"),
        _ if WITH_RESPONSES.contains(&name) => begins("@"),
        _ => {
            let own = OWN_LISTS.iter().filter(|(names, ..)| names.contains(&name));
            has_list || own.into_iter().any(|(_, letter, long)| is_given(spec, arguments, *letter, long))
        }
    }
}

fn is_given(spec: Option<&Spec>, arguments: &[Argument], letter: Option<char>, long: &str) -> bool {
    !options::values(spec, arguments, letter, long).is_empty()
}

/// Whether a program reads other files: `import "x" as $x;`, `load("x")`.
fn loads(arguments: &[Argument]) -> bool {
    let is_between = |character: char| !character.is_ascii_alphanumeric() && !"_.$\"".contains(character);
    let mut words = unnamed::texts(arguments).flat_map(|text| text.split(is_between));
    words.any(|word| LOADING.contains(&word.split('"').next().unwrap_or("")))
}

/// Whether git shows what a stream names: `cat-file --batch`, `log --stdin`. Only the sizes are harmless.
fn reads_names(arguments: &[Argument]) -> bool {
    let has = |word: &str| unnamed::texts(arguments).any(|text| text == word);
    let mut options = unnamed::texts(arguments).filter(|text| text.starts_with("--"));
    if has("cat-file") {
        return options.any(|text| {
            let name = text.split('=').next().unwrap_or("");
            name.starts_with("--batch") && !matches!(name, "--batch-check" | "--batch-all-objects")
        });
    }
    options.any(|text| text.starts_with("--std")) && SHOWING.iter().any(|verb| has(verb))
}
