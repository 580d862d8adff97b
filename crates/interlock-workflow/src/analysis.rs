//! What is wrong, or looks wrong, with a workflow that loads: what `workflow check` says beside load errors.
//!
//! Only what is true of every run is claimed. That a guard always holds is never claimed: agents can take any value out
//! of the context, and what is observed need not be there.

use interlock_core::call::Family;
use interlock_core::workflow::{AfterFinal, CommandJudge, Edge, Guard, Reach, State, StateId, StateKind, Workflow};

use super::command_set::CommandSet;
use super::permits::{Permits, ShellLines};
use super::property::Target;
use super::satisfy::can_hold;
use super::ways::{Way, Ways};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot be meant so.
    Error,
    /// It is probably not meant so.
    Warning,
    /// It is worth knowing.
    Note,
}

impl Severity {
    /// The word as it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl core::fmt::Display for Severity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A name for the kind, to be looked up and to be talked about.
    pub name: &'static str,
    /// The place in the document.
    pub place: Vec<PlacePart>,
    /// What is found.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// A step from the root of the document to a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacePart {
    /// A member.
    Key(String),
    /// An item of a list; the value itself, where it is no list.
    Item(usize),
}

impl Finding {
    /// The place as it is written: `states.planning.on.READY[0]`.
    pub fn path(&self) -> String {
        let mut out = String::new();
        for part in &self.place {
            match part {
                PlacePart::Key(key) => interlock_core::json::push_key(&mut out, key),
                PlacePart::Item(item) => out.push_str(&format!("[{item}]")),
            }
        }
        out.strip_prefix('.').map(str::to_owned).unwrap_or(out)
    }
}

/// Everything that is found, errors first, then in the order of states and events.
pub fn analyse(workflow: &Workflow, judge: &dyn CommandJudge) -> Vec<Finding> {
    let mut analysis = Analysis { workflow, judge, ways: Ways::of(workflow), found: Vec::new() };
    analysis.guards();
    analysis.rows();
    analysis.graph();
    analysis.commands();
    analysis.privileges();
    analysis.tools();
    analysis.environment();
    analysis.cycles();
    analysis.found.sort_by_key(|finding| finding.severity);
    analysis.found
}

struct Analysis<'a> {
    workflow: &'a Workflow,
    judge: &'a dyn CommandJudge,
    ways: Ways<'a>,
    found: Vec<Finding>,
}

/// What a state lets an agent do beyond reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Power {
    Write,
    Shell,
    Web,
}

impl Power {
    fn words(self) -> &'static str {
        match self {
            Power::Write => "change files",
            Power::Shell => "run commands that do more than read",
            Power::Web => "fetch from the network",
        }
    }
}

fn key(text: &str) -> PlacePart {
    PlacePart::Key(text.to_owned())
}

fn at_state(state: &State) -> Vec<PlacePart> {
    vec![key("states"), key(&state.name)]
}

fn at_row(state: &State, event: &str, row: usize) -> Vec<PlacePart> {
    vec![key("states"), key(&state.name), key("on"), key(event), PlacePart::Item(row)]
}

impl Analysis<'_> {
    fn add(&mut self, severity: Severity, name: &'static str, place: Vec<PlacePart>, message: String, help: &str) {
        self.found.push(Finding { severity, name, place, message, help: help.to_owned() });
    }

    /// Guards that no value of their field satisfies.
    fn guards(&mut self) {
        let workflow = self.workflow;
        for (id, guard) in workflow.guards() {
            if can_hold(workflow, &[id]) {
                continue;
            }
            let message = format!("the guard `{}` can never hold", guard.name);
            let help = if guard.is_observed() {
                "nothing of this kind is ever observed there: compare the exit code of a declared fact, or \
                 `observed.last_command.exit_code`"
            } else {
                "no value of its field satisfies it"
            };
            self.add(Severity::Error, "never-holds", vec![key("guards"), key(&guard.name)], message, help);
        }
    }

    /// Rows whose guards exclude each other, and rows that earlier ones leave nothing to.
    fn rows(&mut self) {
        let workflow = self.workflow;
        for (id, state) in workflow.states().filter(|(_, state)| state.kind == StateKind::Active) {
            for (event, rows) in &state.on {
                for place in 0..rows.len() {
                    self.row(id, state, event, rows, place);
                }
            }
        }
    }

    fn row(&mut self, id: StateId, state: &State, event: &str, rows: &[Edge], place: usize) {
        let Some(row) = rows.get(place) else { return };
        let each_can_hold = row.guards.iter().all(|guard| can_hold(self.workflow, &[*guard]));
        let names: Vec<&str> =
            row.guards.iter().filter_map(|id| self.workflow.guard(*id)).map(|guard| guard.name.as_str()).collect();
        let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if each_can_hold && !can_hold(self.workflow, &row.guards) {
            let message = format!("the guards {names} contradict each other: this way can never be taken");
            let help = "take one of them away, or split them over several rows";
            self.add(Severity::Error, "contradiction", at_row(state, event, place), message, help);
            return;
        }
        // That a row asks for nothing more than an earlier one is what the loader tells of.
        let told = rows.iter().take(place).any(|other| other.guards.iter().all(|guard| row.guards.contains(guard)));
        let taken = |way: &Way<'_>| std::ptr::eq(way.edge, row);
        if each_can_hold && !told && !self.ways.out(id).iter().any(taken) {
            let message = format!("row {place} is never taken: whatever it asks for, an earlier row takes");
            let help = "rows are tried in order, from row 0";
            self.add(Severity::Warning, "row-never-taken", at_row(state, event, place), message, help);
        }
    }

    /// States that the guards make unreachable, or that they lock.
    fn graph(&mut self) {
        let (reached, finishing) = (self.ways.reached(), self.ways.finishing());
        let workflow = self.workflow;
        for (id, state) in workflow.states() {
            if !reached.contains(&id) {
                let message = format!("no run can reach `{}`", state.name);
                let help = "every way there has guards that cannot hold, or is longer than `max_transitions`";
                self.add(Severity::Warning, "unreachable", at_state(state), message, help);
            } else if !finishing.contains(&id) {
                let message = format!("a run that enters `{}` never ends", state.name);
                let help = "every way to a final state has guards that cannot hold";
                self.add(Severity::Error, "dead-end", at_state(state), message, help);
            }
        }
    }

    /// Commands that are listed and do not pass, and facts that nobody can come to know.
    fn commands(&mut self) {
        let workflow = self.workflow;
        for (_, state) in workflow.states() {
            let Some(listed) = &state.allowed_commands else { continue };
            let shell = Permits::new(workflow, state, self.judge).shell_lines();
            if matches!(shell, ShellLines::None) && !listed.is_empty() && state.kind == StateKind::Active {
                let mut place = at_state(state);
                place.push(key("allowed_commands"));
                let message = format!("`{}` lists commands and does not allow `Bash`", state.name);
                let help = "add `Bash` to `allowed_tools`, or leave `allowed_commands` out";
                self.add(Severity::Warning, "commands-without-shell", place, message, help);
            }
        }
        for fact in workflow.facts() {
            let command = Target::Command(CommandSet::listed(&fact.command));
            let passes = |state: &State| {
                state.kind == StateKind::Active && Permits::new(workflow, state, self.judge).passes(&command)
            };
            let reads = |guard: &Guard| guard.is_observed() && guard.field.get(1) == Some(&fact.name);
            let read = workflow.guards().any(|(_, guard)| reads(guard));
            if read && !workflow.states().any(|(_, state)| passes(state)) {
                let message = format!("the fact `{}` is never observed: no state lets its command pass", fact.name);
                let help = "list the command in a state that allows `Bash`";
                self.add(Severity::Warning, "fact-never-observed", vec![key("facts"), key(&fact.name)], message, help);
            }
        }
    }

    /// Ways to more power that nobody but the agent decides on.
    fn privileges(&mut self) {
        let workflow = self.workflow;
        let mut found = Vec::new();
        for (id, state) in workflow.states() {
            let (mine, restricted) =
                (self.powers(state), state.allowed_tools.is_some() || !state.disallowed_tools.is_empty());
            for way in self.ways.out(id) {
                let Some(target) = workflow.state(way.edge.target) else { continue };
                if way.approved || self.is_observed(way) {
                    continue;
                }
                let row = row_of(state, way);
                let claimed = !way.edge.guards.is_empty();
                let open = matches!(target.kind, StateKind::Final(_));
                if open && workflow.after_final() == AfterFinal::Open && restricted {
                    found.push(open_final(state, target, at_row(state, way.event, row), claimed));
                } else if !open {
                    let gained: Vec<&str> = self
                        .powers(target)
                        .into_iter()
                        .filter(|power| !mine.contains(power))
                        .map(Power::words)
                        .collect();
                    if !gained.is_empty() {
                        found.push(jump(state, target, at_row(state, way.event, row), &gained, claimed));
                    }
                }
            }
        }
        self.found.extend(found);
    }

    fn is_observed(&self, way: &Way<'_>) -> bool {
        let mut guards = way.edge.guards.iter().filter_map(|id| self.workflow.guard(*id));
        guards.any(Guard::is_observed)
    }

    fn powers(&self, state: &State) -> Vec<Power> {
        let permits = Permits::new(self.workflow, state, self.judge);
        let passes = |family: Family| permits.family_passes(family);
        let mut powers = Vec::new();
        if passes(Family::Write) || passes(Family::Edit) {
            powers.push(Power::Write);
        }
        let more = |lines: &[String]| lines.iter().any(|line| permits.reach(&CommandSet::listed(line)) > Reach::Reads);
        let shell = match permits.shell_lines() {
            ShellLines::None | ShellLines::ReadOnly => false,
            ShellLines::Listed(lines) => more(lines),
            ShellLines::All => true,
        };
        if shell {
            powers.push(Power::Shell);
        }
        if passes(Family::WebFetch) {
            powers.push(Power::Web);
        }
        powers
    }

    /// Families that no state allows.
    fn tools(&mut self) {
        let workflow = self.workflow;
        let active = || workflow.states().map(|(_, state)| state).filter(|state| state.kind == StateKind::Active);
        let passes = |state: &State, family: Family| Permits::new(workflow, state, self.judge).family_passes(family);
        let nowhere: Vec<String> = Family::ALL
            .iter()
            .filter(|family| !active().any(|state| passes(state, **family)))
            .map(|family| format!("`{family}`"))
            .collect();
        if !nowhere.is_empty() && active().next().is_some() {
            let message = format!("no state allows {}", nowhere.join(", "));
            self.add(Severity::Note, "tool-nowhere", vec![key("states")], message, "that is fine if none is needed");
        }
    }

    /// Settings that hold only where a runner runs.
    fn environment(&mut self) {
        let workflow = self.workflow;
        for (_, state) in workflow.states() {
            let Some(setting) = state.needs_runner() else { continue };
            let mut place = at_state(state);
            place.push(key(setting));
            let message = format!("`{setting}` of `{}` holds only where a runner runs command lines", state.name);
            let help = "where there is none (Cursor, a host that is not installed) no run is started with it";
            self.add(Severity::Note, "needs-runner", place, message, help);
        }
    }

    /// Cycles in which nothing presses an agent to go on.
    fn cycles(&mut self) {
        let workflow = self.workflow;
        for cycle in self.ways.components() {
            let states: Vec<&State> = cycle.iter().filter_map(|id| workflow.state(*id)).collect();
            let (Some(first), true) = (states.first(), states.iter().all(|state| state.max_iterations.is_none()))
            else {
                continue;
            };
            let names = states.iter().take(8).map(|state| format!("`{}`", state.name)).collect::<Vec<_>>().join(", ");
            let message = format!(
                "a run can go round in {names} until `max_transitions` ({}) ends it; no state there has \
                 `max_iterations`",
                workflow.max_transitions()
            );
            let place = at_state(first);
            self.add(Severity::Note, "cycle-without-limit", place, message, "give one of them `max_iterations`");
        }
    }
}

/// The place of a way among the rows of its event.
fn row_of(state: &State, way: &Way<'_>) -> usize {
    let rows = state.on.iter().find(|(event, _)| event == way.event);
    let place = rows.and_then(|(_, rows)| rows.iter().position(|row| std::ptr::eq(row, way.edge)));
    place.unwrap_or(0)
}

fn open_final(from: &State, target: &State, place: Vec<PlacePart>, claimed: bool) -> Finding {
    let how = if claimed { "on its own word" } else { "at any time" };
    Finding {
        severity: Severity::Warning,
        name: "open-final",
        place,
        message: format!(
            "in `{}` an agent can go to `{}` {how}, and every tool passes there (`after_final` is `open`)",
            from.name, target.name
        ),
        help: "set `after_final: closed`, or give this way `requires_approval` or an observed guard".to_owned(),
    }
}

fn jump(from: &State, target: &State, place: Vec<PlacePart>, gained: &[&str], claimed: bool) -> Finding {
    let gained = gained.join(" and to ");
    let (name, message) = if claimed {
        let message = format!(
            "from `{}` to `{}` an agent gains the power to {gained}, and the guard rests on what it says itself",
            from.name, target.name
        );
        ("claimed-privilege", message)
    } else {
        let message = format!(
            "from `{}` to `{}` an agent gains the power to {gained}, and nobody is asked",
            from.name, target.name
        );
        ("privilege-jump", message)
    };
    let help =
        "that may be what you want; otherwise `requires_approval`, or a guard with `source: observed`".to_owned();
    Finding { severity: Severity::Note, name, place, message, help }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Limits, load};

    struct Table;

    impl CommandJudge for Table {
        fn reach(&self, line: &str) -> Reach {
            if line.starts_with("cat") { Reach::Reads } else { Reach::Anything }
        }
    }

    fn names(text: &str) -> Vec<(&'static str, String)> {
        let loaded = load(text, Format::Json, &Limits::MAX).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        analyse(&loaded.workflow, &Table).iter().map(|finding| (finding.name, finding.path())).collect()
    }

    /// A workflow of two working states and an end, with the parts that matter put in.
    fn with(first: &str, second: &str, rest: &str) -> String {
        format!(
            r#"{{"id": "w", "initial": "one", "states": {{
                "one": {{"max_iterations": 5, {first}}}, "two": {{"max_iterations": 5, {second}}},
                "end": {{"type": "final"}}}}, "after_final": "closed" {rest}}}"#
        )
    }

    #[test]
    fn every_finding_is_found_where_it_is_and_nowhere_else() {
        let quiet_one = r#""allowed_tools": ["Read"], "on": {"GO": {"target": "two", "requires_approval": true}}"#;
        let quiet_two = r#""allowed_tools": ["Read", "Grep", "Glob", "Edit", "Write", "Bash", "WebFetch", "Agent"],
            "on": {"END": "end"}"#;
        assert_eq!(names(&with(quiet_one, quiet_two, "")), [], "nothing is wrong here");
        #[rustfmt::skip]
        let cases: &[(&str, &str, &str, &str, &str)] = &[
            // The first state, the second, the rest, what is found, where.
            ("", r#""on": {"END": {"target": "end", "guards": ["a", "b"]}, "X": "end"}"#,
             r#", "guards": {"a": {"field": "x", "op": "eq", "value": 1}, "b": {"field": "x", "op": "eq", "value": 2}}"#,
             "contradiction", "states.two.on.END[0]"),
            ("", r#""on": {"END": {"target": "end", "guards": ["a", "b"]}}"#,
             r#", "guards": {"a": {"field": "x", "op": "gt", "value": 5}, "b": {"field": "x", "op": "lt", "value": 3}}"#,
             "dead-end", "states.two"),
            ("", r#""on": {"END": {"target": "end", "guard": "a"}, "X": "end"}"#,
             r#", "guards": {"a": {"field": "observed.files_changed", "op": "eq", "value": 1}}"#,
             "never-holds", "guards.a"),
            ("", r#""on": {"END": [{"target": "end", "guard": "a"}, {"target": "end", "guard": "b"}, "one"]}"#,
             r#", "guards": {"a": {"field": "x", "op": "exists"}, "b": {"field": "x", "op": "not_exists"}}"#,
             "row-never-taken", "states.two.on.END[2]"),
            (r#""allowed_tools": ["Read"], "on": {"GO": "two"}"#, "", "", "privilege-jump", "states.one.on.GO[0]"),
            (r#""allowed_tools": ["Read"], "on": {"GO": {"target": "two", "guard": "a"}}"#, "",
             r#", "guards": {"a": {"field": "x", "op": "exists"}}"#, "claimed-privilege", "states.one.on.GO[0]"),
            ("", r#""allowed_tools": ["Read"], "allowed_commands": ["make test"], "on": {"END": "end"}"#, "",
             "commands-without-shell", "states.two.allowed_commands"),
            ("", r#""allowed_tools": ["Read", "Bash"], "on": {"END": {"target": "end", "guard": "a"}}"#,
             r#", "facts": {"tests": {"command": "make test"}},
                "guards": {"a": {"field": "observed.tests", "op": "eq", "value": 0}}"#,
             "fact-never-observed", "facts.tests"),
            ("", r#""allowed_tools": ["Read"], "on": {"END": "end"}"#, "", "tool-nowhere", "states"),
            ("", r#""env_overrides": {"CI": "1"}, "on": {"END": "end"}"#, "", "needs-runner", "states.two.env_overrides"),
        ];
        for (first, second, rest, name, place) in cases {
            let first = if first.is_empty() { quiet_one } else { first };
            let second = if second.is_empty() { quiet_two } else { second };
            let found = names(&with(first, second, rest));
            assert!(found.contains(&(*name, (*place).to_owned())), "{name} at {place}: {found:?}");
        }
    }

    #[test]
    fn an_open_end_is_told_of_unless_somebody_else_decides() {
        let text = |way: &str| {
            format!(
                r#"{{"id": "w", "initial": "one", "states": {{"one": {{"allowed_tools": ["Read"], "max_iterations": 3,
                    "on": {{"END": {way}}}}}, "end": {{"type": "final"}}}},
                    "facts": {{"tests": {{"command": "cat x"}}}},
                    "guards": {{"seen": {{"field": "observed.tests", "op": "eq", "value": 0}},
                                "told": {{"field": "x", "op": "exists"}}}}}}"#
            )
        };
        let open = |way: &str| names(&text(way)).iter().any(|(name, _)| *name == "open-final");
        assert!(open(r#""end""#) && open(r#"{"target": "end", "guard": "told"}"#));
        assert!(!open(r#"{"target": "end", "guard": "seen"}"#));
        assert!(!open(r#"{"target": "end", "requires_approval": true}"#));
    }

    #[test]
    fn a_cycle_without_a_limit_is_told_of_once() {
        let text = r#"{"id": "w", "initial": "one", "after_final": "closed", "states": {
            "one": {"on": {"GO": "two"}}, "two": {"on": {"BACK": "one", "END": "end"}}, "end": {"type": "final"}}}"#;
        assert_eq!(names(text), [("cycle-without-limit", "states.one".to_owned())]);
        assert_eq!(names(&text.replace(r#""one": {"#, r#""one": {"max_iterations": 2, "#)), []);
    }
}
