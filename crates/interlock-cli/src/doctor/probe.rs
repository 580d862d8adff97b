//! Tries a hook as its host would run it: the exact command, an event on its input, and a look at what was recorded.
//!
//! Probes have a session and a directory of their own, so they leave one project behind, and never touch another's run.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use interlock_core::json::quote;
use interlock_core::{Cause, visible};
use interlock_hosts::Host;
use interlock_hosts::settings::HookCommand;
use interlock_http::hooks::{DOCTOR_PROJECT, DOCTOR_SESSION};
use interlock_runtime::clock::{Entropy, SystemEntropy, hex};
use interlock_runtime::coding_agents::agent_id;
use interlock_runtime::startup::make_directory;
use interlock_wire::RefusedCalls;

use crate::client::encode;
use crate::daemon::Daemon;
use crate::table::cell;

/// How long a hook may take. It starts the daemon if none runs.
const HOOK_TIME_MAX: Duration = Duration::from_secs(50);
/// How long the daemon may take to say what it recorded.
const LOOK_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a hook that runs is looked at.
const PAUSE: Duration = Duration::from_millis(5);
/// How much of what a hook says is read.
const SAID_BYTES_MAX: u64 = 4096;
/// A file that is nowhere; reading it is harmless.
const NOWHERE: &str = "/nonexistent/interlock-doctor";

/// Where probes come from and how their records are read.
pub(super) struct Prober {
    home: PathBuf,
    directory: PathBuf,
    /// The operator's key, if it may be read.
    key: Option<String>,
}

/// What the daemon recorded of a host's probes.
#[derive(Default)]
struct Recorded {
    passed: u64,
    /// Decision, session and id of what was last refused.
    refused: Option<(String, String, String)>,
}

impl Prober {
    pub(super) fn new(home: &Path, key_file: &Path) -> Result<Prober, Cause> {
        let directory = home.join(DOCTOR_PROJECT);
        make_directory(&directory).map_err(|fault| Cause::from(fault.message))?;
        let directory = fs::canonicalize(&directory).map_err(Cause::of)?;
        let key = fs::read_to_string(key_file).ok().map(|key| key.trim().to_owned());
        let key = key.filter(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()));
        Ok(Prober { home: home.to_owned(), directory, key })
    }

    /// Runs a hook twice: for something harmless, and for something that must be refused. Says what is wrong, if
    /// anything is; else whether the records could be looked at.
    pub(super) fn try_hook(&self, host: Host, command: &HookCommand) -> Result<bool, Cause> {
        let before = self.recorded(host);
        let harmless = self.run(host, command, NOWHERE)?;
        if harmless.exit != Some(0) {
            return Err(format!("it refused something harmless: {}", harmless.told()).into());
        }
        let forbidden = self.home.join("operator.key").to_string_lossy().into_owned();
        let refused = self.run(host, command, &forbidden)?;
        if !matches!(refused.exit, Some(0 | 2)) {
            return Err(format!("it failed: {}", refused.told()).into());
        }
        let (Some(before), Some(after)) = (before, self.recorded(host)) else { return Ok(false) };
        if after.passed <= before.passed {
            return Err("it answered, and the daemon recorded nothing".into());
        }
        let id = |recorded: &Recorded| recorded.refused.as_ref().map(|(_, _, id)| id.clone());
        match &after.refused {
            Some((decision, session, _)) if id(&after) != id(&before) && session == DOCTOR_SESSION => {
                if decision == "DENIED" {
                    Ok(true)
                } else {
                    Err(format!("reading the operator's key was {}, not DENIED", cell(decision, 20)).into())
                }
            }
            Some(_) | None => Err("reading the operator's key was not refused".into()),
        }
    }

    fn run(&self, host: Host, command: &HookCommand, file: &str) -> Result<Ran, Cause> {
        let mut random = [0; 8];
        SystemEntropy::new().fill(&mut random).map_err(Cause::of)?;
        let event = event(host, &self.directory.to_string_lossy(), file, &hex(&random));
        let mut process = match command {
            HookCommand::Words(words) => {
                let mut process = Command::new(words.first().map_or("", String::as_str));
                process.args(words.iter().skip(1));
                process
            }
            HookCommand::Line(line) => {
                let mut process = Command::new("sh");
                process.args(["-c", line]);
                process
            }
        };
        process.current_dir(&self.directory).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = process.spawn().map_err(|error| Cause::while_doing("it cannot be run", error))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A hook that does not read is judged by how it ends.
            let _ = stdin.write_all(event.as_bytes());
        }
        let stderr = child.stderr.take();
        let reading = thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.map(|stderr| stderr.take(SAID_BYTES_MAX).read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        });
        let ended = wait(&mut child)?;
        let said = reading.join().unwrap_or_default();
        Ok(Ran { exit: ended.code(), said })
    }

    fn recorded(&self, host: Host) -> Option<Recorded> {
        let key = self.key.as_ref()?;
        let agent = agent_id(host.as_str(), self.directory.to_str()?);
        let bearer = format!("Bearer {key}");
        let daemon = Daemon::of(&self.home);
        let deadline = Instant::now() + LOOK_TIME_MAX;
        daemon.ensure(deadline).ok()?;
        let path = format!("/runs/{}/refusals?limit=1", encode(&agent));
        let told = daemon.request("GET", &path, &[], &[("authorization", &bearer)], deadline).ok()?;
        if told.status == 404 {
            return Some(Recorded::default());
        }
        let RefusedCalls { refusals, passed } = interlock_wire::read(&told.body).ok()?;
        let refused = refusals.into_iter().next();
        let refused = refused.and_then(|last| Some((last.decision, last.session?, last.decision_id)));
        Some(Recorded { passed, refused })
    }
}

struct Ran {
    exit: Option<i32>,
    said: String,
}

impl Ran {
    fn told(&self) -> String {
        let exit = self.exit.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"));
        format!("{exit}, {}", cell(&visible(self.said.trim()), 300))
    }
}

fn wait(child: &mut Child) -> Result<ExitStatus, Cause> {
    let deadline = Instant::now() + HOOK_TIME_MAX;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not answer within {} seconds", HOOK_TIME_MAX.as_secs()).into());
            }
            Err(error) => return Err(Cause::of(error)),
        }
    }
}

/// An event before a tool reads a file, as the host sends it.
fn event(host: Host, directory: &str, file: &str, id: &str) -> String {
    let (session, cwd, id) = (quote(DOCTOR_SESSION), quote(directory), quote(id));
    let path = quote(file);
    match host {
        Host::ClaudeCode => format!(
            "{{\"session_id\":{session},\"transcript_path\":\"/dev/null\",\"cwd\":{cwd},\"permission_mode\":\"default\",\
             \"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Read\",\"tool_input\":{{\"file_path\":{path}}},\
             \"tool_use_id\":{id}}}"
        ),
        Host::Codex => {
            let line = quote(&format!("cat {}", crate::serve::shell_word(file)));
            format!(
                "{{\"session_id\":{session},\"turn_id\":{id},\"transcript_path\":null,\"cwd\":{cwd},\
                 \"hook_event_name\":\"PreToolUse\",\"model\":\"none\",\"permission_mode\":\"default\",\
                 \"tool_name\":\"Bash\",\"tool_input\":{{\"command\":{line}}},\"tool_use_id\":{id}}}"
            )
        }
        Host::Cursor => format!(
            "{{\"conversation_id\":{session},\"generation_id\":{id},\"model\":\"none\",\"hook_event_name\":\
             \"preToolUse\",\"workspace_roots\":[{cwd}],\"transcript_path\":null,\"tool_name\":\"Read\",\
             \"tool_input\":{{\"file_path\":{path}}},\"tool_use_id\":{id},\"cwd\":{cwd}}}"
        ),
        Host::Gemini => format!(
            "{{\"session_id\":{session},\"transcript_path\":\"/dev/null\",\"cwd\":{cwd},\"hook_event_name\":\
             \"BeforeTool\",\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"tool_name\":\"read_file\",\
             \"tool_input\":{{\"file_path\":{path}}}}}"
        ),
    }
}
