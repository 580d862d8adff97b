//! Words, ids and numbers that many messages have. Which words there are is the core's to say.

use interlock_core::action::{self, AgentKind, Mode, Risk, Status};
use interlock_core::{Code, ledger};

use crate::schema::{NOT_BLANK, integer, list, map, text, words};

named! {
    /// Why, for machines. `interlock explain CODE` prints the page of a code.
    ErrorCode = words(Code::ALL.iter().filter(|code| is_answered(**code)).map(|code| code.as_str()));

    /// Why a state is blocked, for machines.
    StateCode = {
        let codes = Code::ALL.iter().filter(|code| Code::is_of_state(**code)).chain([&Code::FaultInternal]);
        words(codes.map(|code| code.as_str()))
    };

    /// The answer to an action. Only APPROVED and CORRECTED let it run, CORRECTED in its corrected form only.
    Decision = words(action::Decision::ALL.iter().map(|word| word.as_str()));

    /// What an action may do at worst.
    RiskLevel = words(Risk::ALL.iter().map(|word| word.as_str()));

    /// What a verifier found.
    VerificationStatus = words(Status::ALL.iter().map(|word| word.as_str()));

    /// What verified an action.
    Engine = words(action::Engine::ALL.iter().map(|word| word.as_str()));

    /// An engine that a permission can name; tools are governed by their own lists.
    AllowedEngine = {
        let engines = action::Engine::ALL.iter().filter(|engine| **engine != action::Engine::ToolControl);
        words(engines.map(|word| word.as_str()))
    };

    /// What kind of agent it is; sets its trust level, unless one is given: supervised 1, autonomous 2, trusted 3.
    AgentType = words(AgentKind::ALL.iter().map(|word| word.as_str()));

    /// Whether the agent may ask at all.
    AgentStatus = words(action::AgentStatus::ALL.iter().map(|word| word.as_str()));

    /// Whether rulings are binding for the agent, or only shown (`observe`).
    AgentMode = words(Mode::ALL.iter().map(|word| word.as_str()));

    /// What a key may be used for: an admin may do everything; an approver decides on tickets and reads agents, rulings
    /// and tickets; a registrar registers agents up to its trust ceiling and reads those.
    Role = words(ledger::Role::ALL.iter().map(|word| word.as_str()));

    /// How far an agent is trusted.
    TrustLevel = integer().min(0).max(3);

    /// `agent_` and 32 hexadecimal digits.
    AgentId = text().length(38).pattern("^agent_[0-9a-f]{32}$").example("agent_5f0c2b9e7d314a86b1c0e4f2a9d86375");

    /// `dec_` and 32 hexadecimal digits.
    DecisionId = text().pattern("^dec_[0-9a-f]{32}$");

    /// `appr_` and 32 hexadecimal digits.
    ApprovalId = text().length(37).pattern("^appr_[0-9a-f]{32}$").example("appr_3e8d1c7b5a9f42608b4e6d0c2f7a9138");

    /// `key_` and 32 hexadecimal digits.
    KeyId = text().length(36).pattern("^key_[0-9a-f]{32}$").example("key_91b4c6e2d8f05a3791b4c6e2d8f05a37");

    /// A SHA-256: `sha256:` and 64 hexadecimal digits.
    Digest = text().pattern("^sha256:[0-9a-f]{64}$");

    /// A time in UTC, with milliseconds.
    Time = text().format("date-time").example("2026-11-15T12:00:30.000Z");

    /// A name for people: not blank, at most 1024 bytes of UTF-8.
    AgentName = text().max_length(1024).pattern(NOT_BLANK);

    /// Who answers for the agent: not blank, at most 128 bytes of UTF-8.
    PrincipalId = text().max_length(128).pattern(NOT_BLANK);

    /// A remark for people, at most 1024 bytes of UTF-8.
    AgentText = text().max_length(1024).or_null();

    /// At most 1000 names, each of at most 128 bytes of UTF-8. Absent or null is none.
    ToolNames = list(text().max_length(128)).max_items(1000).or_null();

    /// Whose key it is, for people: not blank, at most 128 bytes of UTF-8.
    KeyName = text().max_length(128).pattern(NOT_BLANK);

    /// Any strict JSON object: no duplicate keys (also after Unicode normalisation), no lone surrogates, at most 4096
    /// digits in a number. A fault in here is QWED-AGENT-STATE-004.
    Parameters = map().of_anything().or_null();

    /// What kind of event an entry tells of.
    EntryKind = words([
        "registered", "ruled", "bundle_activated", "unauthenticated", "state_intent", "state_outcome",
        "trust_requested", "approval_resolved", "executed", "trust_changed", "status_changed", "mode_changed",
        "token_rotated", "texts_erased", "key_created", "key_revoked", "signing_key_rotated", "run_started",
        "run_steered", "transitioned", "call_ended", "turn_ended", "session_bound", "allowance_given",
        "allowance_taken", "workflow_registered", "refusals_repeated", "passed", "exec_started", "exec_ended",
        "kept", "undo_started", "undo_ended", "pruned"
    ]);

    /// A JWT of the type `qwed-attestation+jwt` that can be checked with /.well-known/jwks.json alone. It is there for
    /// what may run if the risk is high or critical, or if it was asked for; the header QWED-Attestation has it as
    /// well.
    Attestation = text().max_length(8192).pattern(r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$");

    /// How a key signs.
    AttestationAlgorithm = words(["ES256", "EdDSA"]);

    /// A host of coding agents.
    HostName = words(["claude-code", "codex", "cursor", "gemini"]);

    /// The id of a workflow, as its text has it.
    WorkflowId = text().min_length(1).max_length(128);

    /// A path by object keys, such as `$.agent_id`.
    RulePath = text().pattern(r"^\$(\.[^.\[\]]+)+$");
}

/// A request can meet it. The others stop a start or a command.
fn is_answered(code: Code) -> bool {
    use Code::*;
    let is_of_start = matches!(code, EnvironmentLoader | EnvironmentFiles | EnvironmentClock | EnvironmentInUse);
    let is_of_command = matches!(code, ContainSetup | ContainTicket | ContainRecord);
    !code.is_of_state() && !is_of_start && !is_of_command
}
