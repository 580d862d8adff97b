//! `interlock keys`: the keys of people and programs that operate the server, by role.

use clap::{Args, Subcommand, ValueEnum};
use interlock_wire::{Key, KeyList, KeyRequest, write};

use crate::client::{Client, ServerArguments, encode, reason_body};
use crate::style::{GOOD, RESET};
use crate::table::{Table, cell, optional, time};
use crate::{Fault, Outcome, prefix, print};

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key; it is shown this once
    Create(CreateArguments),
    /// List the keys, without their secrets
    List(ListArguments),
    /// End a key
    Revoke(RevokeArguments),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// Everything
    Admin,
    /// Decides on approvals, reads agents and activity
    Approver,
    /// Registers agents up to a trust, and reads those
    Registrar,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock keys create --name 'Ada' --role approver
  interlock keys create --name ci --role registrar --max-trust 1 --json | jq -r .key > registrar.key")]
pub(crate) struct CreateArguments {
    /// Whose key it is; decisions carry this name
    #[arg(long)]
    name: String,
    /// What it may do
    #[arg(long, value_enum)]
    role: Role,
    /// The highest trust a registrar may give, 0 to 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=3))]
    max_trust: Option<u8>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock keys list")]
pub(crate) struct ListArguments {
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock keys revoke key_1f0c --reason 'left the team'")]
pub(crate) struct RevokeArguments {
    /// The key's id, not the key; its beginning will do
    id: String,
    /// Why; it goes on record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

impl KeysCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            KeysCommand::Create(arguments) => arguments.server.json,
            KeysCommand::List(arguments) => arguments.server.json,
            KeysCommand::Revoke(arguments) => arguments.server.json,
        }
    }
}

pub(crate) fn run(command: &KeysCommand) -> Result<Outcome, Fault> {
    match command {
        KeysCommand::Create(arguments) => create(arguments),
        KeysCommand::List(arguments) => list(arguments),
        KeysCommand::Revoke(arguments) => revoke(arguments),
    }
}

fn create(arguments: &CreateArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let role = match arguments.role {
        Role::Admin => "admin",
        Role::Approver => "approver",
        Role::Registrar => "registrar",
    };
    let body = KeyRequest { name: arguments.name.clone(), role: role.to_owned(), max_trust: arguments.max_trust };
    let answer = client.post("/keys", &write(&body))?;
    if arguments.server.json {
        print(answer.json().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let key: Key = answer.read()?;
    let output = format!(
        "{GOOD}CREATED{RESET} {}: {}, {}\n  key {}\n  It is shown this once. Keep it in a file that only its owner can \
         read, and name that with --key-file.\n",
        cell(&key.key_id, 80),
        cell(&key.name, 60),
        role_of(&key),
        optional(key.key.as_deref(), 200),
    );
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

fn role_of(key: &Key) -> String {
    let role = cell(&key.role, 12);
    key.max_trust.map_or_else(|| role.clone(), |trust| format!("{role} up to trust {trust}"))
}

fn list(arguments: &ListArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let answer = client.get("/keys")?;
    if arguments.server.json {
        print(answer.json().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let KeyList { keys } = answer.read()?;
    let mut table = Table::new(&["ID", "STATUS", "ROLE", "CREATED", "BY", "NAME"]);
    for key in &keys {
        table.row(vec![
            cell(&key.key_id, prefix::SHORT_COLUMNS),
            cell(&key.status, 10),
            role_of(key),
            time(&key.created_at),
            cell(&key.created_by, 24),
            cell(&key.name, 40),
        ]);
    }
    print(table.render().as_bytes())?;
    Ok(Outcome::Clean)
}

fn revoke(arguments: &RevokeArguments) -> Result<Outcome, Fault> {
    let client = Client::open(&arguments.server)?;
    let id = prefix::key(&client, &arguments.id)?;
    let answer = client.post(&format!("/keys/{}/revoke", encode(&id)), &reason_body(arguments.reason.as_deref()))?;
    let output = if arguments.server.json {
        answer.json()
    } else {
        let key: Key = answer.read()?;
        let (id, name) = (cell(&key.key_id, 80), cell(&key.name, 60));
        format!("{GOOD}{}{RESET} {id}: {name}, {}\n", cell(&key.status, 12).to_uppercase(), role_of(&key))
    };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}
