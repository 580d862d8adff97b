//! `interlock init`: sets a repository up in one go. It finds the hosts, shows every change, asks once, and says how to
//! undo it. Nothing is blocked afterwards: enforcing is a step of its own.

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::json::quote;
use interlock_core::places::{PROJECT_SETTINGS, WORKFLOW_FILES};
use interlock_hosts::Host;
use interlock_hosts::settings::{Scope, places};
use interlock_workflow::{Template, nearest, templates};

use crate::client::inert_json;
use crate::hook::parse_host;
use crate::install::{
    Ground, Site, Step, TargetFile, apply, askable, confirm, install, notes, path_text, scope, show, show_json, shown,
    undo, user_home,
};
use crate::serve::shell_word;
use crate::style::{FAINT, RESET};
use crate::{Fault, Outcome, print};

/// Which of its files a workflow is written to.
const WRITTEN: &str = "workflow.yaml";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock init --dry-run
  interlock init ./shop --template bugfix --host claude-code --yes

Hosts are installed for you, not for the repository: their files would name paths of this machine. --project does that all
the same. Nothing is blocked until `interlock enforce`.
Exit codes: 0 set up, or it was; 1 refused, or you said no; 2 usage or fault.")]
pub(crate) struct InitArguments {
    /// The repository
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Begin with this workflow: bugfix, feature, incident, migration, research or review
    #[arg(long, value_name = "NAME", value_parser = parse_template)]
    template: Option<&'static Template>,
    /// A host to install; repeat it for more [default: those that are found on this machine]
    #[arg(long, value_name = "HOST", value_parser = parse_host)]
    host: Vec<Host>,
    /// Install hosts in the settings of the repository, not in yours
    #[arg(long)]
    project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_template(name: &str) -> Result<&'static Template, String> {
    let names: Vec<&str> = templates().iter().map(|template| template.name).collect();
    templates().iter().find(|template| template.name == name).ok_or_else(|| {
        let meant = nearest(name, &names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        format!("a template is one of {}{meant}", names.join(", "))
    })
}

pub(crate) fn run(arguments: &InitArguments) -> Result<Outcome, Fault> {
    let (_, directory) = scope(Some(&arguments.directory))?;
    let (scope, base) = scope(arguments.project.then_some(arguments.directory.as_path()))?;
    let hosts = if arguments.host.is_empty() { found_hosts() } else { ordered(&arguments.host) };
    if hosts.is_empty() {
        let next = "name one with --host: claude-code, codex, cursor or gemini";
        return Err(Fault::new("no host of coding agents was found on this machine").and_then_do(next).refused());
    }
    let mut site = Site::find()?;
    let look = |site: &Site| -> Result<Vec<Step>, Fault> {
        let ground = Ground { scope, base: &base, home: &site.home };
        let mut steps = Vec::new();
        for host in &hosts {
            // Hosts share the programs that hand command lines to the runner.
            for step in install(*host, ground, &site.wanted()?)? {
                if !steps.iter().any(|known: &Step| known.file.path == step.file.path && known.next == step.next) {
                    steps.push(step);
                }
            }
        }
        steps.extend(arguments.template.map(|template| workflow_step(&directory, template)).transpose()?);
        Ok(steps)
    };
    let mut steps = look(&site)?;
    let is_change = steps.iter().any(Step::is_change);
    if is_change && !arguments.dry_run {
        askable(arguments.yes, arguments.json)?;
    }
    if !arguments.dry_run && site.make_key()? {
        steps = look(&site)?;
    }
    let undos = undo_commands(&hosts, scope, &base, &steps)?;
    if !arguments.json {
        print(show(&steps).as_bytes())?;
    }
    if !arguments.dry_run {
        if is_change && !confirm("Do all of this?", arguments.yes)? {
            print(b"nothing was changed\n")?;
            return Ok(Outcome::Refused);
        }
        site.prove_daemon()?;
        apply(&steps, &site.home)?;
    }
    let next = next_steps(arguments.template.is_some());
    if arguments.json {
        let texts = |all: &[String]| all.iter().map(|text| quote(text)).collect::<Vec<_>>().join(",");
        let names: Vec<String> = hosts.iter().map(|host| host.as_str().to_owned()).collect();
        let template = arguments.template.map_or_else(|| "null".to_owned(), |template| quote(template.name));
        let document = format!(
            "{{\"directory\":{},\"hosts\":[{}],\"scope\":{},\"template\":{template},\"mode\":\"observe\",\"dry_run\":{},\
             \"changed\":{},\"undo\":[{}],\"next\":[{}],\"files\":{}}}",
            quote(&shown(&directory)),
            texts(&names),
            quote(if scope == Scope::User { "user" } else { "project" }),
            arguments.dry_run,
            is_change && !arguments.dry_run,
            texts(&undos),
            texts(&next.iter().map(|(command, _)| (*command).to_owned()).collect::<Vec<_>>()),
            show_json(&steps)
        );
        print(inert_json(&document).as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let mut out = match (is_change, arguments.dry_run) {
        (false, _) => "all of this is there already; nothing to change\n".to_owned(),
        (true, true) => "a dry run: nothing was changed\n".to_owned(),
        (true, false) => "done: Interlock observes. It judges and records, and blocks nothing yet\n".to_owned(),
    };
    for host in &hosts {
        for note in notes(*host, scope) {
            out.push_str(&format!("  {FAINT}{host}: {note}{RESET}\n"));
        }
    }
    let next: Vec<String> = next.iter().map(|(command, why)| format!("{command:<19}{FAINT}{why}{RESET}")).collect();
    out.push_str(&format!("next:\n  {}\nundo:\n  {}\n", next.join("\n  "), undos.join("\n  ")));
    print(out.as_bytes())?;
    Ok(Outcome::Clean)
}

fn ordered(hosts: &[Host]) -> Vec<Host> {
    Host::ALL.into_iter().filter(|host| hosts.contains(host)).collect()
}

/// The hosts of this machine: their program is on the path, or their settings are in the user's directory.
fn found_hosts() -> Vec<Host> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&on_path).filter(|place| place.is_absolute()).collect();
    let home = user_home();
    let is_there = |host: &Host| {
        let programs: &[&str] = match host {
            Host::ClaudeCode => &["claude"],
            Host::Codex => &["codex"],
            Host::Cursor => &["cursor", "cursor-agent"],
            Host::Gemini => &["gemini"],
        };
        let program = |name: &&str| directories.iter().any(|place| place.join(name).is_file());
        let holds_settings = |home: &PathBuf| {
            let directories = places(*host, Scope::User).into_iter().filter_map(|place| place.path.split_once('/'));
            directories.into_iter().any(|(directory, _)| home.join(directory).is_dir())
        };
        programs.iter().any(program) || home.as_ref().is_some_and(holds_settings)
    };
    Host::ALL.into_iter().filter(is_there).collect()
}

/// A template becomes the repository's workflow; one that is there and says something else stays.
fn workflow_step(directory: &Path, template: &Template) -> Result<Step, Fault> {
    let file = TargetFile::look(directory, &format!("{PROJECT_SETTINGS}/{WRITTEN}"), false)?;
    let others = WORKFLOW_FILES.iter().filter(|name| **name != WRITTEN);
    let taken = others.map(|name| directory.join(PROJECT_SETTINGS).join(name)).find(|path| path.exists());
    let taken = taken.or_else(|| {
        let other = file.text().is_some_and(|text| text != template.text);
        other.then(|| file.path.clone())
    });
    if let Some(path) = taken {
        let next = "nothing was changed; leave --template out, or move the file away first";
        return Err(Fault::new(format!("{} is another workflow, and was left alone", shown(&path)))
            .refused()
            .and_then_do(next));
    }
    let what = format!("the workflow `{}`: {}", template.name, template.summary);
    Ok(Step::write(file, template.text.as_bytes().to_vec(), what))
}

fn undo_commands(hosts: &[Host], scope: Scope, base: &Path, steps: &[Step]) -> Result<Vec<String>, Fault> {
    let mut undos: Vec<String> = hosts.iter().map(|host| undo(*host, scope, base)).collect();
    for step in steps {
        if step.file.path.ends_with(Path::new(PROJECT_SETTINGS).join(WRITTEN)) {
            undos.push(format!("rm {}", shell_word(&path_text(&step.file.path)?)));
        }
    }
    Ok(undos)
}

/// What to run next, and why.
fn next_steps(has_template: bool) -> Vec<(&'static str, &'static str)> {
    let mut next = vec![("interlock doctor", "try that the hooks work")];
    if has_template {
        next.push(("interlock trust", "put the workflow in force, once you have read it"));
    }
    next.push(("interlock review", "after some work: what would have been refused"));
    next.push(("interlock enforce", "when that is what you want"));
    next
}
