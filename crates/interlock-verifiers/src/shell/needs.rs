//! What a command needs of what the profiles of a runner give, as the table knows it. It tells which profile is of use to a
//! line; what the line may do in it, the kernel holds.

use super::git_touches;
use super::options;
use super::reduce::Argument;
use super::table::{self, Commands, Spec};
use super::traits::Language;

/// What a command needs, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// The project, and nothing that is known beside it.
    Project,
    /// Packages, from the hosts that the operator lists for them.
    Packages,
    /// More than any profile gives: another user's rights, another machine, a daemon, credentials, or to go on when the
    /// call is over.
    Beyond,
}

impl Needs {
    /// What a call needs: by its name, by its verb, or by the module that it runs.
    pub(super) fn of(commands: &Commands, name: &str, arguments: &[Argument]) -> Needs {
        let traits = commands.traits(name);
        let by_name = by_verb(commands, name, arguments);
        let spec = table::grammar(name).filter(|_| !traits.module.is_empty());
        let Some((module, rest)) = spec.and_then(|spec| module_of(spec, arguments, &traits.module)) else {
            return by_name;
        };
        let fetches = traits.packages_by.split_ascii_whitespace().any(|listed| listed == module);
        let by_module = if fetches { Needs::Packages } else { by_verb(commands, module, rest) };
        by_name.max(by_module)
    }
}

fn by_verb(commands: &Commands, name: &str, arguments: &[Argument]) -> Needs {
    let traits = commands.traits(name);
    let by_name = commands.needs(name);
    if traits.speaks(Language::Git) {
        let subcommand = git_touches::subcommand(arguments);
        return by_name.max(subcommand.map_or(Needs::Project, |(name, _)| table::git_needs(name)));
    }
    let spec = table::grammar(name).filter(|_| !traits.beyond_by.is_empty());
    if spec.is_some_and(|spec| has_verb(spec, arguments, &traits.beyond_by)) { Needs::Beyond } else { by_name }
}

/// Whether the verb of a call is one of these. Behind an option that is not listed, it may be any word.
fn has_verb(spec: &Spec, arguments: &[Argument], verbs: &str) -> bool {
    let call = options::read_until_verb(spec, arguments);
    let words = call.first_operand.and_then(|at| arguments.get(at..)).unwrap_or_default();
    // `cargo +nightly publish`
    let words = words.iter().filter_map(Argument::known_text).skip_while(|word| word.starts_with('+'));
    let most = if call.has_unlisted { usize::MAX } else { 1 };
    words.take(most).any(|word| verbs.split_ascii_whitespace().any(|verb| verb == word))
}

/// The module that a call runs, and the arguments of that: `python3 -m pip install x`. What stands behind code (`-c`) or
/// behind a file is no option of the interpreter.
fn module_of<'a>(spec: &Spec, arguments: &'a [Argument], option: &str) -> Option<(&'a str, &'a [Argument])> {
    let call = options::read_until_verb(spec, arguments);
    let ends = |name: &str| name == option || name == "-c";
    let given = call.given.into_iter().find(|given| ends(given.name)).filter(|given| given.name == option)?;
    let word = given.next.checked_sub(1).and_then(|at| arguments.get(at)).and_then(Argument::known_text)?;
    let module = given.value.as_ref().and_then(Argument::known_text)?;
    // It may be attached: `-mpip`.
    let module = word.get(word.len().checked_sub(module.len())?..)?;
    Some((module, arguments.get(given.next..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{Setting, examine};

    fn needs(line: &str) -> Needs {
        let (_, words) = examine(line, &Setting::built_in().expect("the table is sound"));
        words.commands.iter().map(|command| command.needs).max().expect("a command")
    }

    #[test]
    fn what_a_line_needs_is_read_as_the_shell_reads_it() {
        let packages = [
            "npm test",
            "env CI=1 npm ci",
            "nice -n 5 cargo build",
            "timeout 60 pip install x",
            "bash -c 'npm test'",
            "python3 -m pip install x",
            "python -Im pip install x",
            "python3 -mpip list",
            "python3 -m build",
            "./gradlew build",
            ".venv/bin/pip install x",
            "find . -name package.json -execdir npm ci ';'",
            "xargs npm install",
            "(cd a && yarn)",
            "npm run publish",
            "cargo test publish",
            "npm install publish",
            "echo $(npm ci)",
        ];
        for line in packages {
            assert_eq!(needs(line), Needs::Packages, "{line}");
        }
        let beyond = [
            "sudo true",
            "/usr/bin/sudo true",
            "env sudo npm ci",
            "docker ps",
            "npm publish",
            "npm --tag x publish",
            "yarn publish",
            "cargo publish",
            "cargo +nightly publish",
            "cargo --config x publish",
            "uv publish",
            "poetry publish --build",
            "python3 -m twine upload x",
            "python3 -m poetry publish",
            "git push",
            "git -C a push",
            "git -c a.b=c push origin main",
            "nohup claude -p x",
            "gem push x.gem",
            "bash -c 'git push'",
            "sh -c \"npm publish\"",
        ];
        for line in beyond {
            assert_eq!(needs(line), Needs::Beyond, "{line}");
        }
        let project = [
            "ls",
            "frobnicate publish",
            "git stash push",
            "git commit -m push",
            "python3 x.py -m pip",
            "python3 -c 1 -m pip",
            "python3 -m pytest",
            "./build",
            "echo sudo docker npm",
            "node x.js publish",
            "$x publish",
        ];
        for line in project {
            assert_eq!(needs(line), Needs::Project, "{line}");
        }
    }
}
