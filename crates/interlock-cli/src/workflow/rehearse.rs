//! `interlock workflow run` and `interlock workflow test`: a workflow without an agent.

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

use clap::Args;
use interlock_core::Code;
use interlock_core::json::{self, Json, quote};
use interlock_core::visible;
use interlock_core::workflow::{Context, MachineRefusal, Source as Believed, StateKind, Workflow};
use interlock_workflow::scenario::{self, Report, Scenario, all_ways};
use interlock_workflow::{Done, PlacePart, Rehearsal, document, locate};

use super::{Source, judge};
use crate::input::Inputs;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::{Fault, Outcome, print, print_open, snippet};

#[derive(Debug, Args)]
#[command(after_help = "Lines on standard input:
  READY                            an event, as an agent would ask for it
  READY {\"data\": {\"plan\": \"…\"}}    the same with data
  tool Write                       may this tool be called?
  ! git push                       may this line be run? It is not.
  observe tests 0                  the command of the fact `tests` ended so
  approve, deny                    a person decides about what waits
  state, quit

Example: printf 'tool Write\\nquit\\n' | interlock workflow run bugfix")]
pub(crate) struct RunArguments {
    /// The workflow: a file, or the name of a template
    file: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow test .interlock/workflow.yaml
  interlock workflow test deploy.yaml deploy.scenarios.toml more.json

Without SCENARIOS the file beside the workflow is read: deploy.scenarios.toml, .yaml or .json for deploy.yaml.
Exit codes: 0 all as expected, 1 something else happened, 2 usage or fault.")]
pub(crate) struct TestArguments {
    /// The workflow: a file, or the name of a template
    file: String,
    /// Files of scenarios
    scenarios: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(arguments: &RunArguments) -> Result<Outcome, Fault> {
    if arguments.file == "-" {
        return Err(Fault::new("the commands come from standard input, so the workflow cannot"));
    }
    let workflow = Source::read(&mut Inputs::default(), &arguments.file)?.load()?;
    let judge = judge()?;
    let mut rehearsal = Rehearsal::new(&workflow, &judge);
    let stdin = std::io::stdin();
    let asks = stdin.is_terminal();
    print(shown(&workflow, &rehearsal).as_bytes())?;
    let mut line = String::new();
    loop {
        if asks {
            print(b"> ")?;
        }
        line.clear();
        let read = stdin.lock().read_line(&mut line);
        if read.map_err(|reason| Fault::new(format!("cannot read standard input: {reason}")))? == 0 {
            return Ok(Outcome::Clean);
        }
        let command = line.trim();
        if command == "quit" || command == "exit" {
            return Ok(Outcome::Clean);
        }
        if command.is_empty() || command.starts_with('#') {
            continue;
        }
        let echo = if asks { String::new() } else { format!("> {}\n", visible(command)) };
        let answer = match step(&mut rehearsal, command) {
            Ok(Some(done)) => said(&workflow, &rehearsal, &done),
            Ok(None) => shown(&workflow, &rehearsal),
            Err(refusal) => format!("{BAD}refused{RESET} {}: {}\n", refusal.code, visible(&refusal.message)),
        };
        if !print_open(format!("{echo}{answer}").as_bytes())? {
            return Ok(Outcome::Clean);
        }
    }
}

/// `None` shows where the run is.
fn step(rehearsal: &mut Rehearsal<'_>, line: &str) -> Result<Option<Done>, MachineRefusal> {
    let (word, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let done = match (word, rest) {
        ("state" | "help", "") => return Ok(None),
        ("approve", "") => rehearsal.decide(true)?,
        ("deny", "") => rehearsal.decide(false)?,
        ("tool", name) if !name.is_empty() => rehearsal.tool(name)?,
        ("observe", rest) if !rest.is_empty() => {
            let (fact, code) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let code = code.trim().parse().map_err(|_| wrong("write `observe FACT EXIT_CODE`"))?;
            rehearsal.observe(fact, code)?
        }
        (_, _) if line.starts_with('!') => rehearsal.command(line.trim_start_matches('!').trim(), None)?,
        (event, rest) => {
            let data = data(rest)?;
            rehearsal.event(event, &data)?
        }
    };
    Ok(Some(done))
}

fn wrong(message: &str) -> MachineRefusal {
    MachineRefusal { code: Code::WorkflowData, message: message.to_owned(), unmet: Vec::new() }
}

/// An object, with or without `data` around it.
fn data(text: &str) -> Result<Context, MachineRefusal> {
    if text.is_empty() {
        return Ok(Context::default());
    }
    let parsed =
        json::parse(text, &json::Limits::STATE).map_err(|error| wrong(&format!("the data is not JSON: {error}")))?;
    let Json::Object(mut members) = Json::of(parsed.root()) else { return Err(wrong("the data is no object")) };
    if members.len() == 1
        && let Some(Json::Object(data)) = members.get_mut("data")
    {
        return Ok(Context::from(std::mem::take(data)));
    }
    Ok(Context::from(members))
}

fn said(workflow: &Workflow, rehearsal: &Rehearsal<'_>, done: &Done) -> String {
    match done {
        Done::Moved(_) | Done::Denied => shown(workflow, rehearsal),
        Done::Asks { target, message } => {
            let message = message.as_ref().map_or_else(String::new, |message| format!(": {}", visible(message)));
            format!("a person is asked about `{}`{message}\n  {FAINT}approve or deny{RESET}\n", visible(target))
        }
        Done::Passed => {
            let used = rehearsal.run().position.as_ref().map_or(0, |position| position.iterations);
            let left = rehearsal.state().and_then(|state| state.max_iterations).map(|max| max.saturating_sub(used));
            let left = left.map_or_else(String::new, |left| format!(" {FAINT}({left} calls left){RESET}"));
            format!("{GOOD}passes{RESET}{left}\n")
        }
        Done::Observed => format!("{GOOD}observed{RESET}\n"),
    }
}

fn shown(workflow: &Workflow, rehearsal: &Rehearsal<'_>) -> String {
    let mut out = String::new();
    let Some(state) = rehearsal.state() else { return out };
    let _ = write!(out, "{GOOD}{}{RESET}", visible(&state.name));
    if let StateKind::Final(outcome) = state.kind {
        let _ = writeln!(out, " final, {outcome}; after the end `{}`", workflow.after_final());
        return out;
    }
    let tools = match &state.allowed_tools {
        None => "all".to_owned(),
        Some(list) if list.is_empty() => "none".to_owned(),
        Some(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let _ = writeln!(out, " {FAINT}tools{RESET} {}", visible(&tools));
    if !state.disallowed_tools.is_empty() {
        let tools: Vec<String> = state.disallowed_tools.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "  {FAINT}not{RESET} {}", visible(&tools.join(", ")));
    }
    if let Some(commands) = &state.allowed_commands {
        let _ = writeln!(out, "  {FAINT}commands beside reading ones{RESET} {}", visible(&commands.join(", ")));
    }
    if let Some(instructions) = &state.instructions {
        let _ = writeln!(out, "  {}", visible(instructions.trim()));
    }
    if let Some((event, target)) = rehearsal.waiting() {
        let _ = writeln!(out, "  {} to `{}` waits for a person", visible(event), visible(target));
    }
    for way in rehearsal.ways_out() {
        let asks = if way.asks { " (asks a person)" } else { "" };
        let unmet: Vec<String> = way.unmet.iter().map(|name| believed(workflow, name)).collect();
        let unmet =
            if unmet.is_empty() { String::new() } else { format!(" {FAINT}unmet: {}{RESET}", unmet.join(", ")) };
        let _ = writeln!(out, "  {} -> {}{asks}{unmet}", visible(&way.event), visible(&way.target));
    }
    out
}

/// A guard with whose word it believes.
fn believed(workflow: &Workflow, name: &str) -> String {
    let whose = match workflow.guard_named(name).map(|guard| guard.source) {
        Some(Believed::Observed) => " (observed)",
        Some(Believed::Context) => " (data)",
        None => "",
    };
    format!("{}{whose}", visible(name))
}

pub(super) fn test(arguments: &TestArguments) -> Result<Outcome, Fault> {
    let mut inputs = Inputs::default();
    let workflow = Source::read(&mut inputs, &arguments.file)?.load()?;
    let judge = judge()?;
    let files = if arguments.scenarios.is_empty() { beside(&arguments.file)? } else { arguments.scenarios.clone() };
    let mut whole = Report::default();
    let (mut out, mut rows) = (String::new(), Vec::new());
    for file in &files {
        let source = Source::read(&mut inputs, file)?;
        let scenarios = read(&source, &workflow)?;
        let report = scenario::rehearse(&workflow, &scenarios, &judge);
        tell(&mut out, &mut rows, &source, &scenarios, &report);
        whole.scenarios += report.scenarios;
        whole.failures.extend(report.failures);
        whole.states.extend(report.states);
        whole.ways.extend(report.ways);
    }
    let output =
        if arguments.json { coverage_json(&workflow, &whole, &rows) } else { out + &coverage(&workflow, &whole) };
    print(output.as_bytes())?;
    Ok(if whole.failures.is_empty() { Outcome::Clean } else { Outcome::Refused })
}

/// The scenarios that stand beside a workflow.
fn beside(file: &str) -> Result<Vec<String>, Fault> {
    let stem = Path::new(file).with_extension("");
    let candidates = ["toml", "yaml", "yml", "json"].map(|ending| format!("{}.scenarios.{ending}", stem.display()));
    let found: Vec<String> = candidates.iter().filter(|path| Path::new(path).exists()).cloned().collect();
    if found.is_empty() {
        let fault = Fault::new(format!("there are no scenarios beside `{file}`"));
        return Err(fault.and_then_do(format!("write {}, or name the files", candidates.join(", "))));
    }
    Ok(found)
}

fn read(source: &Source, workflow: &Workflow) -> Result<Vec<Scenario>, Fault> {
    let fault = |line: usize, column: usize, message: &str, more: usize| {
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        Fault::with_code(Code::ConfigInvalid, format!("{}:{line}:{column}: {message}{more}", source.name))
    };
    let document = document(&source.text, source.format).map_err(|problems| {
        let more = problems.len().saturating_sub(1);
        problems.first().map_or_else(
            || Fault::new(format!("`{}` cannot be read", source.name)),
            |problem| fault(problem.line, problem.column, &problem.message, more),
        )
    })?;
    scenario::scenarios(&document, workflow).map_err(|errors| {
        let Some(first) = errors.first() else { return Fault::new("the scenarios cannot be read") };
        let span = locate(&source.text, source.format, &[&first.place]).pop().unwrap_or(0..0);
        let before = source.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        fault(line, column, &first.message, errors.len().saturating_sub(1))
    })
}

fn tell(out: &mut String, rows: &mut Vec<String>, source: &Source, scenarios: &[Scenario], report: &Report) {
    for (place, scenario) in scenarios.iter().enumerate() {
        let name = visible(&scenario.name);
        let failure = report.failures.iter().find(|failure| failure.scenario == place);
        let Some(failure) = failure else {
            let _ = writeln!(out, "{GOOD}ok{RESET}    {name} {FAINT}({} steps){RESET}", scenario.steps.len());
            rows.push(format!(
                "{{\"file\":{},\"name\":{},\"passed\":true}}",
                quote(&source.name),
                quote(&scenario.name)
            ));
            continue;
        };
        let at = ["scenario", "steps"].map(|key| PlacePart::Key(key.to_owned()));
        let [first, second] = at;
        let place = [first, PlacePart::Item(place), second, PlacePart::Item(failure.step)];
        let span = locate(&source.text, source.format, &[&place]).pop().unwrap_or(0..0);
        let _ = writeln!(out, "{BAD}FAIL{RESET}  {name}");
        let _ = writeln!(out, "  step {}: {}", failure.step + 1, visible(&failure.action));
        out.push_str(&snippet::render(&source.name, &source.text, span));
        let _ = writeln!(out, "  expected {}\n  got      {}", visible(&failure.expected), visible(&failure.got));
        rows.push(format!(
            "{{\"file\":{},\"name\":{},\"passed\":false,\"step\":{},\"action\":{},\"expected\":{},\"got\":{}}}",
            quote(&source.name),
            quote(&scenario.name),
            failure.step,
            quote(&failure.action),
            quote(&failure.expected),
            quote(&failure.got)
        ));
    }
}

fn coverage(workflow: &Workflow, report: &Report) -> String {
    let mut out = String::new();
    let (states, ways) = (report.states_missed(workflow), report.ways_missed(workflow));
    let (all_states, all_ways) = (workflow.states().count(), all_ways(workflow).len());
    let _ = writeln!(
        out,
        "{} scenarios, {} failed; states {} of {all_states}, ways {} of {all_ways}",
        report.scenarios,
        report.failures.len(),
        all_states - states.len(),
        all_ways - ways.len()
    );
    if !states.is_empty() {
        let _ = writeln!(out, "  {FAINT}not entered: {}{RESET}", visible(&states.join(", ")));
    }
    for (from, event, to) in ways.iter().take(20) {
        let _ = writeln!(out, "  {FAINT}not taken: {} -{}-> {}{RESET}", visible(from), visible(event), visible(to));
    }
    if ways.len() > 20 {
        let _ = writeln!(out, "  {FAINT}and {} more{RESET}", ways.len() - 20);
    }
    out
}

fn coverage_json(workflow: &Workflow, report: &Report, rows: &[String]) -> String {
    let states: Vec<String> = report.states_missed(workflow).into_iter().map(quote).collect();
    let ways: Vec<String> = report
        .ways_missed(workflow)
        .into_iter()
        .map(|(from, event, to)| {
            format!("{{\"from\":{},\"event\":{},\"to\":{}}}", quote(&from), quote(&event), quote(&to))
        })
        .collect();
    format!(
        "{{\"scenarios\":[{}],\"failed\":{},\"states\":{},\"ways\":{},\"states_missed\":[{}],\"ways_missed\":[{}]}}\n",
        rows.join(","),
        report.failures.len(),
        workflow.states().count(),
        all_ways(workflow).len(),
        states.join(","),
        ways.join(",")
    )
}
