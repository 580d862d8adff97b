//! The command `interlock`: reads arguments, calls the rules, prints what they said.
//!
//! Exit codes everywhere: 0 verified or clean, 1 blocked or findings, 2 usage or fault.

mod activity;
mod agents;
mod approvals;
mod attest;
mod audit;
mod backup;
mod client;
mod config;
mod doctor;
mod engine;
mod exec_arguments;
mod explain;
mod gateway;
mod hook;
mod init;
mod input;
mod install;
mod keys;
mod lines;
mod moment;
mod prefix;
mod run;
mod serve;
mod shell;
mod snippet;
mod state;
mod style;
mod table;
mod telemetry;
mod top;
mod workflow;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use interlock_cli::{Fault, daemon, version};
use interlock_core::json::quote;
use interlock_core::{Code, visible};

/// A request is read by one thread and recorded by another; the C library's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXIT_CODES: &str = "Exit codes: 0 verified or clean, 1 blocked or findings, 2 usage or fault.";

/// Nothing an agent does takes effect until it is verified.
#[derive(Debug, Parser)]
#[command(name = "interlock", version, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service: agents register, ask before they act, and get answers that are on record
    Serve(serve::ServeArguments),
    /// Check attestations without asking a server, or print the keys to check them with
    Attest {
        #[command(subcommand)]
        command: attest::AttestCommand,
    },
    /// See and decide what waits for a person
    Approvals {
        #[command(subcommand)]
        command: approvals::ApprovalsCommand,
    },
    /// See, register, suspend and otherwise steer agents
    Agents {
        #[command(subcommand)]
        command: agents::AgentsCommand,
    },
    /// Make, list and revoke the keys of those who operate the server
    Keys {
        #[command(subcommand)]
        command: keys::KeysCommand,
    },
    /// Print what was ruled, once or as it happens
    Activity(activity::ActivityArguments),
    /// Watch the server on one screen: rates, queue, what waits, last rulings
    Top(top::TopArguments),
    /// Let refusals hold for the coding agents of a project
    Enforce(run::mode::ModeArguments),
    /// Only show refusals: everything is judged and recorded, nothing is blocked
    Observe(run::mode::ModeArguments),
    /// Look at what was refused, or would have been, and what would let it pass
    Review(run::review::ReviewArguments),
    /// Let a call pass that was refused by mistake, as narrowly as the case
    Allow(run::allow::AllowArguments),
    /// Say why a decision is as it is, and what would change it
    Decision {
        #[command(subcommand)]
        command: run::decision::DecisionCommand,
    },
    /// Show what a call changed
    Changes(run::changes::ChangesArguments),
    /// Bring back what calls changed
    Undo(run::undo::UndoArguments),
    /// See and drop the states that are kept of a project
    Snapshots {
        #[command(subcommand)]
        command: run::snapshots::SnapshotsCommand,
    },
    /// Only show refusals for a while
    Pause(run::pause::PauseArguments),
    /// Accept the workflow of a repository, as it is now, and put it in force
    Trust(run::trust::TrustArguments),
    /// Set a repository up: hosts, and a workflow if wanted; shown first, undone as easily
    Init(init::InitArguments),
    /// Have a coding agent's host ask Interlock before it acts
    Install(install::InstallArguments),
    /// Take that back
    Uninstall(install::UninstallArguments),
    /// Answer an event of a coding agent's host; hosts run this
    Hook(hook::HookArguments),
    /// Run a command held by the kernel to what was decided about it; hosts run this, and so can you
    Exec(exec_arguments::ExecArguments),
    /// Check a ledger, decide everything in it again, prove what is in it, export it
    Audit {
        #[command(subcommand)]
        command: audit::AuditCommand,
    },
    /// Verify agent states and their transitions, and commit them to files
    State {
        #[command(subcommand)]
        command: state::StateCommand,
    },
    /// Give an agent the tools to see its phase and to move on, over MCP
    Gateway(gateway::GatewayArguments),
    /// Check workflows, draw them, prove properties of them, step through them, test them, run agents under them
    Workflow {
        #[command(subcommand)]
        command: workflow::WorkflowCommand,
    },
    /// Judge command lines by what they do, without running them
    Shell {
        #[command(subcommand)]
        command: shell::ShellCommand,
    },
    /// Ask a verifier about a calculation or a database statement
    Engine(engine::EngineArguments),
    /// Copy a data directory, beside a running server too
    Backup(backup::BackupArguments),
    /// Make a data directory from a backup, and verify it
    Restore(backup::RestoreArguments),
    /// Show the settings of the server, their values and where they come from
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// Check installation, files, ledger and server, and say how to fix what is wrong
    Doctor(doctor::DoctorArguments),
    /// Print what a code means and what to do about it
    Explain(explain::ExplainArguments),
    /// Print a completion script for a shell
    ///
    /// For example: interlock completions bash > ~/.local/share/bash-completion/completions/interlock
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// How a command ended, when it could answer at all.
enum Outcome {
    Clean,
    Refused,
}

/// How a fault is told.
trait Report {
    /// For people on standard error; with `--json` for programs on standard output, if that can be written.
    fn report(&self, json: bool);
}

impl Report for Fault {
    fn report(&self, json: bool) {
        if json {
            let member = |name: &str, text: &Option<String>| {
                text.as_ref().map_or_else(String::new, |text| format!("{}:{},", quote(name), quote(text)))
            };
            let (code, next) = (member("code", &self.code), member("next", &self.next));
            let own = || format!("{{\"error\":{{{code}{next}\"message\":{}}}}}\n", quote(&self.message));
            let answer = self.document.clone().unwrap_or_else(own);
            if print(answer.as_bytes()).is_ok() {
                return;
            }
        }
        if self.said {
            return;
        }
        let code = self.code.as_ref().map_or_else(String::new, |code| format!(" {}:", visible(code)));
        let message = visible(&self.message);
        let _ = writeln!(anstream::stderr(), "{}error:{}{code} {message}", style::BAD, style::RESET);
        if let Some(next) = &self.next {
            let _ = writeln!(anstream::stderr(), "  {}{}{}", style::FAINT, visible(next), style::RESET);
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Its exit codes are the host's, not ours.
    if let Command::Hook(arguments) = &arguments.command {
        return hook::run(arguments);
    }
    if let Command::Exec(arguments) = &arguments.command {
        return exec_arguments::run(arguments);
    }
    let json = arguments.command.wants_json();
    // A panic is a fault like any other: it must not look like an answer.
    let outcome = std::panic::catch_unwind(|| match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Attest { command } => attest::run(&command),
        Command::Approvals { command } => approvals::run(&command),
        Command::Agents { command } => agents::run(&command),
        Command::Keys { command } => keys::run(&command),
        Command::Activity(arguments) => activity::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Enforce(arguments) => run::mode::run(&arguments, run::mode::Wanted::Enforce),
        Command::Observe(arguments) => run::mode::run(&arguments, run::mode::Wanted::Observe),
        Command::Review(arguments) => run::review::run(&arguments),
        Command::Allow(arguments) => run::allow::run(&arguments),
        Command::Decision { command } => run::decision::run(&command),
        Command::Changes(arguments) => run::changes::run(&arguments),
        Command::Undo(arguments) => run::undo::run(&arguments),
        Command::Snapshots { command } => run::snapshots::run(&command),
        Command::Pause(arguments) => run::pause::run(&arguments),
        Command::Trust(arguments) => run::trust::run(&arguments),
        Command::Audit { command } => audit::run(&command),
        Command::State { command } => state::run(command),
        Command::Gateway(arguments) => gateway::run(&arguments),
        Command::Init(arguments) => init::run(&arguments),
        Command::Install(arguments) => install::run_install(&arguments),
        Command::Uninstall(arguments) => install::run_uninstall(&arguments),
        Command::Hook(_) | Command::Exec(_) => Err(Fault::new("hooks and commands are answered before this")),
        Command::Workflow { command } => workflow::run(&command),
        Command::Shell { command } => shell::run(&command),
        Command::Engine(arguments) => engine::run(&arguments),
        Command::Backup(arguments) => backup::run_backup(&arguments),
        Command::Restore(arguments) => backup::run_restore(&arguments),
        Command::Config { command } => config::run(&command),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions { shell } => completions(shell),
    });
    match outcome {
        Ok(Ok(Outcome::Clean)) => ExitCode::from(0),
        Ok(Ok(Outcome::Refused)) => ExitCode::from(1),
        Ok(Err(fault)) => {
            fault.report(json);
            ExitCode::from(fault.exit)
        }
        Err(_) => {
            Fault::with_code(Code::FaultInternal, "internal fault; nothing was approved").report(json);
            ExitCode::from(2)
        }
    }
}

impl Command {
    fn wants_json(&self) -> bool {
        match self {
            Command::Serve(arguments) => arguments.json,
            Command::Attest { command } => command.wants_json(),
            Command::Approvals { command } => command.wants_json(),
            Command::Agents { command } => command.wants_json(),
            Command::Keys { command } => command.wants_json(),
            Command::Activity(arguments) => arguments.server.json,
            Command::Top(arguments) => arguments.server.json,
            Command::Enforce(arguments) | Command::Observe(arguments) => arguments.server.json,
            Command::Review(arguments) => arguments.server.json,
            Command::Allow(arguments) => arguments.server.json,
            Command::Decision { command } => command.wants_json(),
            Command::Changes(arguments) => arguments.server.json,
            Command::Undo(arguments) => arguments.server.json,
            Command::Snapshots { command } => command.wants_json(),
            Command::Pause(arguments) => arguments.server.json,
            Command::Trust(arguments) => arguments.server.json,
            Command::Init(arguments) => arguments.json,
            Command::Install(arguments) => arguments.json,
            Command::Uninstall(arguments) => arguments.json,
            Command::Audit { command } => command.wants_json(),
            Command::State { command } => command.wants_json(),
            Command::Workflow { command } => command.wants_json(),
            Command::Shell { command } => command.wants_json(),
            Command::Engine(arguments) => arguments.wants_json(),
            Command::Backup(arguments) => arguments.json,
            Command::Restore(arguments) => arguments.json,
            Command::Config { command } => command.wants_json(),
            Command::Doctor(arguments) => arguments.json,
            Command::Explain(arguments) => arguments.json,
            // Standard output is the client's.
            Command::Gateway(_) | Command::Hook(_) | Command::Exec(_) | Command::Completions { .. } => false,
        }
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Outcome, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "interlock", &mut script);
    print(&script)?;
    Ok(Outcome::Clean)
}

/// Writes to standard output; a reader that has seen enough is no fault.
fn print(bytes: &[u8]) -> Result<(), Fault> {
    print_open(bytes).map(|_| ())
}

/// The same; says whether anyone still reads.
fn print_open(bytes: &[u8]) -> Result<bool, Fault> {
    let mut out = anstream::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(reason) if reason.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(reason) => Err(reason.into()),
    }
}
