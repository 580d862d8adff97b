//! Every code a ruling can carry, in one table. Each has a page under `docs/errors/`.

use core::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $title:literal;)*) => {
        /// The reason behind a ruling that is not an approval.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* #[doc = concat!("`", $text, "`: ", $title)] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code as it is sent and documented.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// What the code means, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }
        }
    };
}

codes! {
    // Action gate, in the order of the checks.
    AgentUnknown = "QWED-AGENT-001", "the agent is not registered";
    AgentToken = "QWED-AGENT-002", "the agent's token is missing or wrong";
    AgentSuspended = "QWED-AGENT-003", "the agent is suspended";
    ContextMissing = "QWED-AGENT-CTX-001", "conversation or step is missing";
    ContextStep = "QWED-AGENT-CTX-002", "the step is not a positive integer";
    StateFields = "QWED-AGENT-STATE-001", "state hash and source must come together";
    StateHash = "QWED-AGENT-STATE-002", "the state hash is malformed";
    StateSource = "QWED-AGENT-STATE-003", "the state source is unknown";
    StateParameters = "QWED-AGENT-STATE-004", "the parameters are not deterministic";
    LoopLength = "QWED-AGENT-LOOP-001", "the conversation is too long";
    LoopReplay = "QWED-AGENT-LOOP-002", "the step was used or passed";
    LoopRepetition = "QWED-AGENT-LOOP-003", "the same action three times in a row";
    LoopNoProgress = "QWED-AGENT-LOOP-004", "the same action on an unchanged state";
    ActionUnknown = "QWED-AGENT-ACTION-001", "the action type is not registered";
    BudgetCost = "QWED-AGENT-BUDGET-001", "a cost limit is reached";
    BudgetRate = "QWED-AGENT-BUDGET-002", "a request limit is reached";
    BudgetTokens = "QWED-AGENT-BUDGET-003", "a token limit is reached";
    ToolNotAllowed = "QWED-AGENT-004", "an engine, tool or argument is not allowed";
    VerificationFailed = "QWED-AGENT-005", "the verification failed";
    TrustTooLow = "QWED-AGENT-TRUST-001", "the agent is not trusted enough";
    TrustNeedsApproval = "QWED-AGENT-TRUST-002", "a person has to approve";
    // State guard.
    StateNotText = "QWED-AGENT-STATE-101", "the state is not a non-empty text";
    StateNotJson = "QWED-AGENT-STATE-102", "the state is not strict JSON";
    StateNotInSchema = "QWED-AGENT-STATE-103", "the state does not match the schema";
    StateNoRules = "QWED-AGENT-STATE-104", "no transition rules are configured";
    StateCurrentBad = "QWED-AGENT-STATE-105", "the current state fails verification";
    StateTransition = "QWED-AGENT-STATE-106", "the transition breaks a rule";
    StateTarget = "QWED-AGENT-STATE-107", "the commit target is not acceptable";
    StateWrite = "QWED-AGENT-STATE-108", "the state could not be written";
    // Our own.
    ConfigInvalid = "INTERLOCK-CONFIG-001", "a configuration is invalid";
    RequestMalformed = "INTERLOCK-REQUEST-001", "the request is malformed";
    RequestField = "INTERLOCK-REQUEST-002", "the request has an unknown field";
    RequestTooLarge = "INTERLOCK-REQUEST-003", "the request is too large";
    RequestKeyReused = "INTERLOCK-REQUEST-004", "an idempotency key was used for another request";
    RequestRoute = "INTERLOCK-REQUEST-005", "there is no such route or method";
    RequestSlow = "INTERLOCK-REQUEST-006", "the request took too long to arrive";
    Operator = "INTERLOCK-AUTH-001", "an operator key is needed";
    OperatorRole = "INTERLOCK-AUTH-002", "the key's role does not allow this";
    OperatorKeyUnknown = "INTERLOCK-AUTH-003", "there is no such key";
    ApprovalDecided = "INTERLOCK-APPROVAL-001", "the approval is decided already";
    ApprovalExpired = "INTERLOCK-APPROVAL-002", "the approval has expired";
    ApprovalsOpen = "INTERLOCK-APPROVAL-003", "too many approvals are open";
    ApprovalStale = "INTERLOCK-APPROVAL-004", "what was asked for is not the same any more";
    ApprovalUnknown = "INTERLOCK-APPROVAL-005", "there is no such approval";
    WorkflowTool = "INTERLOCK-WF-001", "the phase does not allow this tool";
    WorkflowEvent = "INTERLOCK-WF-002", "the phase has no such event";
    WorkflowGuard = "INTERLOCK-WF-003", "a guard of the transition is not met";
    WorkflowIterations = "INTERLOCK-WF-004", "the phase's tool calls are used up";
    WorkflowRevision = "INTERLOCK-WF-005", "the run has moved on since it was read";
    WorkflowParked = "INTERLOCK-WF-006", "a transition waits for a person";
    WorkflowNoRun = "INTERLOCK-WF-007", "no workflow runs here";
    WorkflowFrozen = "INTERLOCK-WF-008", "the run is frozen until an operator looked";
    WorkflowLimit = "INTERLOCK-WF-009", "a limit of the workflow is reached";
    WorkflowData = "INTERLOCK-WF-010", "the data of the transition is not acceptable";
    ShellEffect = "INTERLOCK-SHELL-001", "the phase does not allow what the command line does";
    ContainSetup = "INTERLOCK-CONTAIN-001", "the command cannot be contained";
    ContainTicket = "INTERLOCK-CONTAIN-002", "there is no ticket for this command";
    ContainRecord = "INTERLOCK-CONTAIN-003", "the command cannot be recorded";
    KeepFailed = "INTERLOCK-KEEP-001", "what the call may change cannot be kept";
    KeepDamaged = "INTERLOCK-KEEP-002", "the store of kept states is damaged";
    KeepConflict = "INTERLOCK-KEEP-003", "what is there now is not what the call left";
    ExecutionNotAllowed = "INTERLOCK-EXECUTION-001", "the decision lets nothing run";
    ExecutionReported = "INTERLOCK-EXECUTION-002", "the execution is reported already";
    ExecutionUnknown = "INTERLOCK-EXECUTION-003", "there is no such decision of this agent";
    RateLimited = "INTERLOCK-RATE-001", "too many requests a minute";
    EnvironmentLoader = "INTERLOCK-ENV-001", "the environment loads foreign code";
    EnvironmentFiles = "INTERLOCK-ENV-002", "files are open to other users";
    EnvironmentClock = "INTERLOCK-ENV-003", "the clock is behind the ledger";
    EnvironmentInUse = "INTERLOCK-ENV-004", "another process holds the data directory";
    LedgerDamaged = "INTERLOCK-LEDGER-001", "the ledger does not hold what it signed";
    FaultStore = "INTERLOCK-FAULT-002", "the store failed, answered as a denial";
    FaultBusy = "INTERLOCK-FAULT-004", "the server is full or stopping";
    FaultInternal = "INTERLOCK-FAULT-001", "an internal fault, answered as a denial";
}

impl Code {
    /// The code with this spelling, upper or lower case.
    ///
    /// ```
    /// use interlock_core::Code;
    ///
    /// assert_eq!(Code::parse("qwed-agent-state-106"), Some(Code::StateTransition));
    /// assert_eq!(Code::parse("QWED-AGENT-STATE-999"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether a phase of a workflow is the reason.
    #[rustfmt::skip]
    pub fn is_of_phase(self) -> bool {
        use Code::*;
        matches!(
            self,
            WorkflowTool | WorkflowEvent | WorkflowGuard | WorkflowIterations | WorkflowRevision | WorkflowParked
                | WorkflowNoRun | WorkflowFrozen | WorkflowLimit | WorkflowData | ShellEffect
        )
    }

    /// Whether a state is blocked by it: these are among the answers of the state guard alone.
    #[rustfmt::skip]
    pub fn is_of_state(self) -> bool {
        use Code::*;
        matches!(
            self,
            StateNotText | StateNotJson | StateNotInSchema | StateNoRules | StateCurrentBad | StateTransition
                | StateTarget | StateWrite
        )
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Code::parse(&text).ok_or_else(|| serde::de::Error::custom("expected a code of Interlock"))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
