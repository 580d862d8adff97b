//! Jobs in the background: whether the line waits for them.

use super::syntax::{AndOr, Command, CommandKind, Script, Word};

/// Commands that neither end the line nor fail.
const BETWEEN: [&str; 4] = ["echo", "printf", "true", ":"];

/// Whether a job is certainly waited for by what follows it: `wait`, with nothing before it that could end the line.
pub(super) fn is_waited_for(rest: &[AndOr]) -> bool {
    for (at, list) in rest.iter().enumerate() {
        if list.background {
            continue;
        }
        // `a && wait` waits perhaps; `wait || true` does.
        let commands = list.pipelines.first().map(|pipeline| pipeline.commands.as_slice());
        let Some([command]) = commands.filter(|commands| commands.iter().all(|it| it.redirects.is_empty())) else {
            return false;
        };
        let CommandKind::Simple { assignments, words } = &command.kind else { return false };
        if !assignments.is_empty() {
            return false;
        }
        let texts: Vec<Option<String>> = words.iter().map(Word::text).collect();
        match texts.split_first() {
            Some((Some(name), [])) if name == "wait" => return true,
            // `wait $!` means the last one.
            Some((Some(name), [None])) if name == "wait" => return at == 0 && words.get(1).is_some_and(is_last_job),
            Some((Some(name), others)) => {
                let is_plain = list.pipelines.len() == 1 && others.iter().all(Option::is_some);
                if !is_plain || !BETWEEN.contains(&name.as_str()) {
                    return false;
                }
            }
            Some((None, _)) | None => return false,
        }
    }
    false
}

/// Whether what runs beside the line is one command. It is judged as it is; several may take their time.
pub(super) fn is_simple(command: &Command) -> bool {
    matches!(command.kind, CommandKind::Simple { .. })
}

/// The same for a script.
pub(super) fn is_one_command(script: &Script) -> bool {
    let [list] = script.lists.as_slice() else { return script.lists.is_empty() };
    let [pipeline] = list.pipelines.as_slice() else { return false };
    !list.background && pipeline.commands.iter().all(is_simple)
}

/// `$!`
fn is_last_job(word: &Word) -> bool {
    use super::syntax::Part;
    matches!(word.parts.as_slice(), [Part::Parameter(parameter)] if parameter.name == "!" && parameter.plain)
}
