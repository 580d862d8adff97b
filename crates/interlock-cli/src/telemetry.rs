//! What `interlock serve` says about itself while it runs: the flags, where lines and spans go, and which words of the
//! command become lines of the log. What a line or a span holds is decided by the service.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use interlock_http::{Exporter, Level, Log, LogFormat, OtlpUrl, Telemetry};
use interlock_runtime::ledger::Ledger;

use crate::{Fault, style};

/// How long the last lines and spans may take when the server stops.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a panic waits for its line to be written: the process may end right after it.
const PANIC_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub(crate) struct TelemetryArguments {
    /// What to write to standard error: nothing, warnings and faults, or every request and event as a line of JSON
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log: LogChoice,
    /// Send a span for each ruling to an OpenTelemetry collector, such as http://127.0.0.1:4318/v1/traces
    #[arg(long, value_name = "URL")]
    otlp: Option<OtlpUrl>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogChoice {
    Off,
    Text,
    Json,
}

/// Where the command's own words go.
pub(crate) struct Reports {
    pub(crate) telemetry: Telemetry,
    choice: LogChoice,
}

impl Reports {
    pub(crate) fn start(arguments: &TelemetryArguments) -> Result<Reports, Fault> {
        let fault = |error: io::Error| Fault::new(format!("cannot start the log: {error}"));
        let choice = arguments.log;
        let format = match choice {
            LogChoice::Off => None,
            LogChoice::Text => Some(LogFormat::Text),
            LogChoice::Json => Some(LogFormat::Json),
        };
        // A descriptor of its own: a log that is stuck must not hold the lock others need to say their last words.
        let out = || io::stderr().as_fd().try_clone_to_owned().map(File::from);
        let log = format.map(|format| out().and_then(|out| Log::start(format, out))).transpose().map_err(fault)?;
        if let Some(log) = log.clone().filter(|_| choice == LogChoice::Json) {
            std::panic::set_hook(Box::new(move |panic| {
                // Where it happened, and not what it says: that may hold anything.
                let place = panic.location().map(ToString::to_string).unwrap_or_default();
                log.event(Level::Error, "panic", &place, &[]);
                thread::sleep(PANIC_PAUSE);
            }));
        }
        let exporter = arguments.otlp.clone().map(|url| Exporter::start(url, log.clone()));
        let exporter = exporter.transpose().map_err(fault)?;
        Ok(Reports { telemetry: Telemetry { log, exporter }, choice })
    }

    /// Something worth a word before serving begins.
    pub(crate) fn word(&self, word: &str) {
        match self.choice {
            LogChoice::Off => {}
            LogChoice::Text => {
                let _ = writeln!(anstream::stderr(), "{}note:{} {word}", style::FAINT, style::RESET);
            }
            LogChoice::Json => self.event(Level::Warn, "environment", word, &[]),
        }
    }

    /// Something happened.
    pub(crate) fn event(&self, level: Level, event: &'static str, message: &str, fields: &[(&str, &str)]) {
        if let Some(log) = &self.telemetry.log {
            log.event(level, event, message, fields);
        }
    }

    /// Faults of the ledger become lines from here on.
    pub(crate) fn listen_to(&self, ledger: &Ledger) {
        let log = self.telemetry.log.clone();
        ledger.on_fault(move |message| {
            if let Some(log) = &log {
                log.event(Level::Error, "ledger_fault", message, &[]);
            }
        });
        let log = self.telemetry.log.clone();
        ledger.on_clock(move |message| {
            if let Some(log) = &log {
                log.event(Level::Warn, "clock", message, &[]);
            }
        });
    }

    /// A fault that ends the command; a log of JSON has a line for it, so nobody needs it as text as well.
    pub(crate) fn fault(&self, fault: Fault) -> Fault {
        if self.choice != LogChoice::Json {
            return fault;
        }
        let code = fault.code.as_deref().map(|code| ("code", code));
        self.event(Level::Error, "fault", &fault.message, code.as_slice());
        Fault { said: true, ..fault }
    }

    /// Writes and sends what waits.
    pub(crate) fn close(&self) {
        self.telemetry.close(CLOSE_TIME_MAX);
    }
}
