//! `interlock review`: what was refused, or would have been, in groups, with the narrowest thing that lets each pass.
//!
//! It proposes and never applies. What no allowance can lift, Interlock's own files above all, gets a reason instead.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::Args;
use interlock_core::action::AgentKind;
use interlock_core::call::Family;
use interlock_core::json::quote;
use interlock_wire::Agent;

use super::refusals::{Refused, Shell, of_agent};
use super::{Agents, Known, ProjectArguments, shell_word};
use crate::client::{Client, ServerArguments, encode, inert_json};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, moment, print};

/// How many refusals of an agent are looked at.
const LOOKED_AT_MAX: usize = 1_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock review
  interlock review --project ~/src/shop --json

Nothing is changed; the lines it proposes are for you to run, or not. It looks at the last 1000 refusals of each agent.
Exit codes: 0 nothing was refused, 1 something was or would have been, 2 usage or fault.")]
pub(crate) struct ReviewArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// How many groups to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Refusals with the same code, tool and shape, newest first.
struct Group {
    code: String,
    tool: String,
    shape: String,
    refused: Vec<Refused>,
}

pub(crate) fn run(arguments: &ReviewArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let agents = Agents::find(&client, &arguments.project)?.or_none()?;
    let shell = Shell::of_project(&agents.project)?;
    let (mut refused, mut passed) = (Vec::new(), 0_u64);
    let mut fallen = String::new();
    for agent in &agents.list {
        fallen.push_str(&fallen_trust(&client, agent)?);
        let (more, let_through) = of_agent(&client, agent, LOOKED_AT_MAX)?;
        refused.extend(more);
        passed = passed.saturating_add(let_through);
    }
    let total = refused.len();
    let groups = groups(refused, &shell);
    let output = if arguments.server.json {
        let rows: Vec<String> = groups.iter().take(arguments.limit).map(|group| group.json(&shell)).collect();
        inert_json(&format!(
            "{{\"project\":{},\"passed\":{passed},\"refused\":{total},\"groups\":[{}],\"more_groups\":{}}}",
            quote(&agents.project),
            rows.join(","),
            groups.len().saturating_sub(rows.len())
        ))
    } else {
        text(&groups, arguments.limit, total, passed, &shell) + &fallen
    };
    print(output.as_bytes())?;
    Ok(if total == 0 { Outcome::Clean } else { Outcome::Refused })
}

/// What trust an agent has lost, and how a person restores it.
fn fallen_trust(client: &Client, agent: &Known) -> Result<String, Fault> {
    let answer = client.get(&format!("/agents/{}", encode(&agent.agent_id)))?;
    let Agent { trust_level: level, .. } = answer.read()?;
    let begun = u8::from(AgentKind::Autonomous.trust());
    Ok(match Some(level).filter(|level| *level < begun) {
        Some(level) => format!(
            "\n{BAD}TRUST {level}{RESET} in {}: it fell by itself\n        {FAINT}why{RESET}      interlock activity \
             --agent {}\n        {FAINT}restore{RESET}  interlock agents trust {} {begun}\n",
            agent.name(),
            agent.agent_id,
            agent.agent_id
        ),
        None => String::new(),
    })
}

fn groups(refused: Vec<Refused>, shell: &Shell) -> Vec<Group> {
    let mut by_key: BTreeMap<(String, String, String), Vec<Refused>> = BTreeMap::new();
    for refused in refused {
        let key = (refused.code.clone(), refused.tool.clone(), refused.shape(shell));
        by_key.entry(key).or_default().push(refused);
    }
    let mut groups: Vec<Group> = by_key
        .into_iter()
        .map(|((code, tool, shape), mut refused)| {
            refused.sort_by(|one, other| other.at.cmp(&one.at));
            Group { code, tool, shape, refused }
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.refused.len()));
    groups
}

impl Group {
    /// The narrowest allowance for all of it, or why there is none.
    fn proposal(&self, shell: &Shell) -> Result<String, &'static str> {
        let newest = self.refused.first().ok_or("nothing was refused")?;
        if let Some(reason) = self.refused.iter().find_map(Refused::firm) {
            return Err(reason);
        }
        if newest.call.is_none() {
            return Err("its input is not kept any more; wait until it happens again");
        }
        let id = &newest.decision_id;
        if self.refused.len() == 1 {
            return Ok(format!("interlock allow {id}"));
        }
        if self.refused.iter().all(|other| other.same_call(newest)) {
            return Ok(format!("interlock allow {id} --project"));
        }
        // An allowance from this decision answers for its rules alone.
        let alike = self.refused.iter().all(|other| other.is_lifted_with(&newest.rules));
        let all: Vec<&Refused> = self.refused.iter().collect();
        if let Some(pattern) = shell.pattern(&all).filter(|_| alike).as_deref().and_then(shell_word) {
            return Ok(format!("interlock allow {id} --project --command {pattern}"));
        }
        let is_edit = matches!(newest.family(), Some(Family::Edit | Family::Write));
        if let (true, true, Some([path])) = (is_edit, alike, newest.writes().as_deref())
            && let Some(path) = shell_word(path)
        {
            return Ok(format!("interlock allow {id} --project --path {path}"));
        }
        // They differ too much for one narrow pattern.
        Ok(format!("interlock allow {id}"))
    }

    fn json(&self, shell: &Shell) -> String {
        let newest = self.refused.first();
        let text = |of: fn(&Refused) -> &str| quote(newest.map_or("", of));
        let (proposal, reason) = match self.proposal(shell) {
            Ok(line) => (quote(&line), "null".to_owned()),
            Err(reason) => ("null".to_owned(), quote(reason)),
        };
        let ids: Vec<String> = self.refused.iter().map(|refused| quote(&refused.decision_id)).collect();
        format!(
            "{{\"code\":{},\"tool\":{},\"shape\":{},\"count\":{},\"message\":{},\"last_at\":{},\"example\":{},\
             \"proposal\":{proposal},\"no_proposal\":{reason},\"decision_ids\":[{}]}}",
            quote(&self.code),
            quote(&self.tool),
            quote(&self.shape),
            self.refused.len(),
            text(|refused| &refused.message),
            text(|refused| &refused.at),
            quote(&newest.map_or_else(String::new, Refused::wanted)),
            ids.join(",")
        )
    }
}

fn text(groups: &[Group], limit: usize, total: usize, passed: u64, shell: &Shell) -> String {
    if total == 0 {
        return format!("{GOOD}NOTHING REFUSED{RESET}: {passed} calls passed\n");
    }
    let mut out = format!("{BAD}{total} refused{RESET} or would have been, {passed} passed\n");
    for group in groups.iter().take(limit) {
        let Some(newest) = group.refused.first() else { continue };
        let _ = writeln!(
            out,
            "\n{:>4} ×  {}  {}  {FAINT}{}{RESET}",
            group.refused.len(),
            cell(&group.tool, 30),
            cell(&group.shape, 60),
            cell(&group.code, 30)
        );
        let _ = writeln!(out, "        {FAINT}why{RESET}      {}", cell(&newest.message, 90));
        let _ = writeln!(out, "        {FAINT}example{RESET}  {}", cell(&newest.wanted(), 90));
        let (when, effects) = (cell(&moment::short(&newest.at), 20), newest.effects.join(", "));
        let _ = writeln!(out, "        {FAINT}last{RESET}     {when}, effects: {}", cell(&effects, 60));
        if let Some(changes) = group.refused.iter().find_map(|refused| refused.changes.as_ref()) {
            let _ = writeln!(out, "        {FAINT}changed{RESET}  {}", cell(changes, 60));
        }
        let _ = match group.proposal(shell) {
            Ok(line) => writeln!(out, "        {FAINT}to allow{RESET} {line}"),
            Err(reason) => writeln!(out, "        {FAINT}to allow{RESET} nothing: {reason}"),
        };
    }
    let more = groups.len().saturating_sub(limit);
    if more > 0 {
        let _ = writeln!(out, "\n… {more} more groups: --limit {}", groups.len());
    }
    let _ = writeln!(out, "\n{FAINT}Nothing was changed; these lines are for you to run, or not.{RESET}");
    out
}
