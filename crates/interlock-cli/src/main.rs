//! The command `interlock`: reads arguments, calls the rules, prints what they said.
//!
//! Exit codes everywhere: 0 verified or clean, 1 blocked or findings, 2 usage or fault.

mod audit;
mod explain;
mod input;
mod serve;
mod snippet;
mod state;
mod style;
mod telemetry;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
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
    /// Check a ledger, or decide everything in it again
    Audit {
        #[command(subcommand)]
        command: audit::AuditCommand,
    },
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

/// Why a command could not answer: exit code 2.
struct Fault {
    code: Option<Code>,
    message: String,
    /// A log has it already.
    said: bool,
}

impl Fault {
    fn new(message: impl Into<String>) -> Fault {
        Fault { code: None, message: message.into(), said: false }
    }

    fn with_code(code: Code, message: impl Into<String>) -> Fault {
        Fault { code: Some(code), message: message.into(), said: false }
    }

    /// For people on standard error; with `--json` for programs on standard output, if that can be written.
    fn report(&self, json: bool) {
        if json {
            let code = self.code.map_or_else(String::new, |code| format!("\"code\":{},", quote(code.as_str())));
            let answer = format!("{{\"error\":{{{code}\"message\":{}}}}}\n", quote(&self.message));
            if print(answer.as_bytes()).is_ok() {
                return;
            }
        }
        if self.said {
            return;
        }
        let code = self.code.map_or_else(String::new, |code| format!(" {code}:"));
        let message = visible(&self.message);
        let _ = writeln!(anstream::stderr(), "{}error:{}{code} {message}", style::BAD, style::RESET);
    }
}

impl From<std::io::Error> for Fault {
    fn from(reason: std::io::Error) -> Fault {
        Fault::new(format!("cannot write the output: {reason}"))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let json = arguments.command.wants_json();
    // A panic is a fault like any other: it must not look like an answer.
    let outcome = std::panic::catch_unwind(|| match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Audit { command } => audit::run(&command),
        Command::State { command } => state::run(command),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions { shell } => completions(shell),
    });
    match outcome {
        Ok(Ok(Outcome::Clean)) => ExitCode::from(0),
        Ok(Ok(Outcome::Refused)) => ExitCode::from(1),
        Ok(Err(fault)) => {
            fault.report(json);
            ExitCode::from(2)
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
            Command::Audit { command } => command.wants_json(),
            Command::State { command } => command.wants_json(),
            Command::Explain(arguments) => arguments.json,
            Command::Completions { .. } => false,
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
