//! The command `interlock`: reads arguments, calls the rules, prints what they said.
//!
//! Exit codes everywhere: 0 verified or clean, 1 blocked or findings, 2 usage or fault.

mod explain;
mod input;
mod snippet;
mod state;
mod style;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

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
    /// Verify agent states and their transitions, and commit them to files
    State {
        #[command(subcommand)]
        command: state::StateCommand,
    },
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

/// Why a command could not answer: said on standard error, exit code 2.
struct Fault {
    message: String,
}

impl Fault {
    fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into() }
    }
}

impl From<std::io::Error> for Fault {
    fn from(reason: std::io::Error) -> Fault {
        Fault::new(format!("cannot write the output: {reason}"))
    }
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::State { command } => state::run(command),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions { shell } => completions(shell),
    };
    match outcome {
        Ok(Outcome::Clean) => ExitCode::from(0),
        Ok(Outcome::Refused) => ExitCode::from(1),
        Err(fault) => {
            let _ = writeln!(anstream::stderr(), "{}error:{} {}", style::BAD, style::RESET, fault.message);
            ExitCode::from(2)
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
    let mut out = anstream::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(reason) if reason.kind() != std::io::ErrorKind::BrokenPipe => Err(reason.into()),
        _ => Ok(()),
    }
}
