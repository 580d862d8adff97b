//! `interlock attest`: checks attestations with public keys alone, beside a running server or far from any.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use interlock_core::action::Millis;
use interlock_core::instant::to_rfc3339;
use interlock_core::json::quote;
use interlock_core::visible;
use interlock_runtime::attestation::{AttestationKeys, Attested, Claims, FILE_NAME, Jwks, Reason, verify};
use interlock_runtime::clock::{Clock, SystemClock};

use crate::input::Inputs;
use crate::input::read_time;
use crate::serve::Places;
use crate::{Fault, Outcome, print, style};

#[derive(Debug, Subcommand)]
pub(crate) enum AttestCommand {
    /// Check an attestation offline: signature, form and time
    Verify(VerifyArguments),
    /// Print the public keys as a JSON Web Key Set
    Keys(KeysArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: curl -s http://127.0.0.1:7878/.well-known/jwks.json > keys.json
         interlock attest verify --jwks keys.json - < token")]
pub(crate) struct VerifyArguments {
    /// The token; `-` reads it from standard input
    #[arg(value_name = "TOKEN")]
    token: String,
    /// File with the public keys, as /.well-known/jwks.json has them [default: the keys of --data]
    #[arg(long, value_name = "FILE")]
    jwks: Option<String>,
    /// Where the ledger and its keys are kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR", conflicts_with = "jwks")]
    data: Option<PathBuf>,
    /// Check as of this time: RFC 3339, or milliseconds since 1970 [default: now]
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    at: Option<Millis>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock attest keys > keys.json")]
pub(crate) struct KeysArguments {
    /// Where the ledger and its keys are kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON, as it does anyway
    #[arg(long)]
    json: bool,
}

impl AttestCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            AttestCommand::Verify(arguments) => arguments.json,
            AttestCommand::Keys(arguments) => arguments.json,
        }
    }
}

pub(crate) fn run(command: &AttestCommand) -> Result<Outcome, Fault> {
    match command {
        AttestCommand::Verify(arguments) => run_verify(arguments),
        AttestCommand::Keys(arguments) => {
            print(format!("{}\n", own_keys(arguments.data.as_deref())?.to_json()).as_bytes())?;
            Ok(Outcome::Clean)
        }
    }
}

fn run_verify(arguments: &VerifyArguments) -> Result<Outcome, Fault> {
    let mut inputs = Inputs::default();
    let read = |input: crate::input::Input| {
        String::from_utf8(input.bytes).map_err(|_| Fault::new(format!("{} is not UTF-8", input.name)))
    };
    let token = match arguments.token.as_str() {
        "-" => read(inputs.read("TOKEN", "-")?)?,
        token => token.to_owned(),
    };
    let keys = match &arguments.jwks {
        Some(path) => {
            let text = read(inputs.read("--jwks", path)?)?;
            Jwks::parse(&text).map_err(|fault| Fault::new(format!("`{path}` is no key set: {fault}")))?
        }
        None => own_keys(arguments.data.as_deref())?,
    };
    let now = arguments.at.unwrap_or_else(|| SystemClock.now());
    // A token has one line, however it came.
    let verified = verify(token.trim_end_matches(['\r', '\n']), &keys, now.checked_div(1_000).unwrap_or(0));
    let text = if arguments.json { verified_json(&verified) } else { verified_text(&verified, now) };
    print(text.as_bytes())?;
    Ok(if verified.is_ok() { Outcome::Clean } else { Outcome::Refused })
}

/// The public parts of the keys in a data directory.
fn own_keys(data: Option<&Path>) -> Result<Jwks, Fault> {
    let data = Places::find(data)?.data;
    let keys = AttestationKeys::read_public(&data).map_err(|fault| Fault::with_code(fault.code, fault.message))?;
    keys.ok_or_else(|| Fault::new(format!("{} has no {FILE_NAME}; give --jwks or --data", data.display())))
}

fn verified_json(verified: &Result<Attested, Reason>) -> String {
    match verified {
        Ok(Attested { kid, algorithm, claims }) => format!(
            "{{\"valid\":true,\"kid\":{},\"alg\":\"{}\",\"claims\":{}}}\n",
            quote(kid),
            algorithm.as_str(),
            claims.to_json().unwrap_or_else(|| "null".to_owned()),
        ),
        Err(reason) => format!("{{\"valid\":false,\"reason\":{}}}\n", quote(&reason.to_string())),
    }
}

fn verified_text(verified: &Result<Attested, Reason>, now: Millis) -> String {
    let at = |seconds: u64| to_rfc3339(seconds.saturating_mul(1_000));
    let Attested { kid, algorithm, claims } = match verified {
        Ok(attested) => attested,
        Err(reason) => {
            let reason = match reason {
                Reason::NotYet { iat } => format!("it was decided at {}; checked as of {}", at(*iat), to_rfc3339(now)),
                Reason::Expired { exp } => format!("it expired at {}; checked as of {}", at(*exp), to_rfc3339(now)),
                Reason::TooLong
                | Reason::Form(_)
                | Reason::Header(_)
                | Reason::UnknownKey
                | Reason::Signature
                | Reason::Claims(_) => reason.to_string(),
            };
            return format!("{}NOT VALID{} {}\n", style::BAD, style::RESET, visible(&reason));
        }
    };
    let Claims { iss, sub, iat, exp, jti, qwed, agent, decision, decision_id, leaf_hash, risk_level, bundle, .. } =
        claims;
    let none = || "none".to_owned();
    let mut rows = vec![
        ("decision", format!("{decision} {} ({}, risk {risk_level})", visible(decision_id), qwed.result)),
        ("action", sub.to_string()),
        ("asked as", qwed.query_hash.to_string()),
        ("agent", visible(agent).to_string()),
        ("issuer", visible(iss).to_string()),
        ("key", format!("{kid} ({})", algorithm.as_str())),
        ("decided", at(*iat)),
        ("until", at(*exp)),
        ("entry", leaf_hash.to_string()),
        ("before it", qwed.previous_hash.map_or_else(none, |hash| hash.to_string())),
        ("proof", qwed.proof_hash.map_or_else(none, |hash| hash.to_string())),
        ("bundle", bundle.to_string()),
    ];
    if let (Some(ticket), Some(by)) = (&claims.approval_id, &claims.approved_by) {
        rows.insert(1, ("approved", format!("by {} ({})", interlock_core::display(by), visible(ticket))));
    }
    let mut text = format!("{}VALID{} {}\n", style::GOOD, style::RESET, visible(jti));
    for (name, value) in rows {
        text.push_str(&format!("  {name:<9} {value}\n"));
    }
    text
}
