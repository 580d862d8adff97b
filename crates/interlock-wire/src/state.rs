//! The state guard over HTTP: states and transitions to check, and what is answered.

use interlock_core::json::RawJson;

use crate::schema::{
    NOT_BLANK, Node, Object, Schema, answer, any, array, integer, list, map, number, of, one_of, only, only_json, text,
    words,
};
use crate::words::{Digest, RulePath, StateCode};

wire! {
    /// A state, or a transition between two, to check.
    request StateRequest {
        /// The name of a guard in the server's bundle, or a guard.
        guard: RawJson = one_of([text().titled("Name"), of::<InlineGuard>()]),
        /// The current state, a string of JSON text. Absent or null: the proposed state alone is checked, not a
        /// transition. Anything else is answered with BLOCKED.
        current_state_json?: RawJson,
        /// The proposed state, a string of JSON text. Anything else, or nothing, is answered with BLOCKED,
        /// QWED-AGENT-STATE-101.
        proposed_state_json?: RawJson,
        /// Commit the proposed state to this file. Only with the name of a guard of the bundle, beneath its commit
        /// roots, and with current_state_json.
        target_path?: String,
    }

    /// A guard of the request's own.
    request InlineGuard [InlineGuard::members().titled("Inline")] {
        required_schema: RawJson = StateSchema,
        transition_rules?: RawJson = TransitionRules,
        /// Directories for commits: absolute paths without `..`. Nothing is committed through this service.
        allowed_commit_roots?: Vec<String> = list(text().pattern(r"^/[^\u0000]*$")),
    }

    /// What the guard says.
    answer StateAnswer [one_of([
        VerifiedState.into(), VerifiedTransition.into(), BlockedState.into(), CommittedState.into(),
    ])] {
        verified: bool,
        status: String,
        /// What was proven, in a sentence.
        proof?: String,
        /// The SHA-256 of the canonical text of what was proven.
        proof_ref?: String = Digest,
        developer_fields?: DeveloperFields = DeveloperFields::members(),
        /// The proposed state in canonical form.
        normalized_state?: RawJson,
        /// The current state in canonical form.
        normalized_previous_state?: RawJson,
        error_code?: String = StateCode,
        /// Why, for people. Names paths and types, never the state's values.
        message?: String = text().pattern("^Blocked: "),
        /// The SHA-256 of the canonical text of both states.
        transition_proof_ref?: String = Digest,
        /// The file.
        committed_path?: String,
        /// Its length.
        committed_bytes?: u64 = integer().min(1),
    }

    // What is said once more.
    answer DeveloperFields {
        /// The same sentence.
        proof_reason: String,
    }
}

named! {
    /// A state that its guard accepts.
    VerifiedState = verified("State").without(OF_TRANSITIONS).without(OF_COMMITS);

    /// A transition that its guard accepts.
    VerifiedTransition = verified("Transition").requiring(OF_TRANSITIONS).without(OF_COMMITS);

    /// A transition that was committed; intent and outcome are on record.
    CommittedState = verified("Commit").requiring(OF_TRANSITIONS).requiring(OF_COMMITS);

    /// A state or a transition that its guard refuses.
    BlockedState = StateAnswer::members()
        .titled("Blocked")
        .always("verified", "", only_json(false))
        .always("status", "", only("BLOCKED"))
        .requiring(OF_REFUSALS)
        .without(OF_SUCCESSES)
        .without(OF_TRANSITIONS)
        .without(OF_COMMITS);

    /// A schema in the supported part of JSON Schema: each value declares one type, unknown keywords are refused.
    StateSchema = one_of([
        ObjectStateSchema.into(),
        ArrayStateSchema.into(),
        StringStateSchema.into(),
        NumberStateSchema.into(),
        OtherStateSchema.into(),
    ]);

    ObjectStateSchema = state_schema("object", only("object"))
        .always("properties", "The members, by name.", map().of_members(any().min_length(1), StateSchema))
        .maybe("required", "Names of members that must be there; each is one of `properties`.", list(text()))
        .maybe("additionalProperties", "Whether other members are allowed; false unless said.", of::<bool>());

    ArrayStateSchema = state_schema("array", only("array"))
        .always("items", "", StateSchema)
        .maybe("minItems", "The fewest items.", of::<u64>())
        .maybe("maxItems", "The most items, not below `minItems`.", of::<u64>())
        .maybe("uniqueItems", "Whether no two items may be equal.", of::<bool>());

    StringStateSchema = state_schema("string", only("string"))
        .maybe("minLength", "The fewest characters.", of::<u64>())
        .maybe("maxLength", "The most characters, not below `minLength`.", of::<u64>())
        .maybe("pattern", "A regular expression that can be matched in linear time.", text());

    NumberStateSchema = state_schema("integer or number", words(["integer", "number"]))
        .maybe("minimum", "", number())
        .maybe("maximum", "Not below `minimum`.", number())
        .maybe("exclusiveMinimum", "", number())
        .maybe("exclusiveMaximum", "Not below `exclusiveMinimum`.", number());

    OtherStateSchema = state_schema("boolean or null", words(["boolean", "null"]));

    /// What may change from one state to the next.
    TransitionRules = answer()
        .or_null()
        .maybe("immutable_paths", "Values that never change.", list(RulePath))
        .maybe("monotonic_integer_paths", "Integers that never fall.", list(RulePath))
        .maybe("ordered_enum_paths", "Values that only move forward in a list, by path.", {
            let order = array().min_items(2).with("uniqueItems", Node::Raw("true".to_owned()));
            map().of_members(RulePath, order)
        })
        .maybe("keyed_object_array_paths", "Lists whose items are told apart by a key and never vanish, by path.", {
            let fields = "Members that never turn from true to false; the key is none of them.";
            let items = answer()
                .always("key", "The member that tells items apart; not blank.", text().pattern(NOT_BLANK))
                .maybe("monotonic_boolean_fields", fields, list(text().min_length(1)))
                .maybe("allow_new_items", "Whether items may be added.", of::<bool>().or_else(true))
                .maybe("allow_new_fields", "Whether items may get new members.", of::<bool>().or_else(false));
            map().of_members(RulePath, items)
        });
}

const OF_SUCCESSES: &[&str] = &["proof", "proof_ref", "developer_fields", "normalized_state"];
const OF_TRANSITIONS: &[&str] = &["normalized_previous_state"];
const OF_COMMITS: &[&str] = &["transition_proof_ref", "committed_path", "committed_bytes"];
const OF_REFUSALS: &[&str] = &["error_code", "message"];

fn verified(title: &'static str) -> Object {
    StateAnswer::members()
        .titled(title)
        .always("verified", "", only_json(true))
        .always("status", "", only("VERIFIED"))
        .requiring(OF_SUCCESSES)
        .without(OF_REFUSALS)
}

fn state_schema(title: &'static str, types: Schema) -> Object {
    answer()
        .titled(title)
        .always("type", "", types)
        .maybe("title", "", text())
        .maybe("description", "", text())
        .maybe("$schema", "", text())
        .maybe("$id", "", text())
        .maybe("default", "Carried; decides nothing.", any())
        .maybe("examples", "Carried; decides nothing.", any())
        .maybe("const", "The one value allowed.", any())
        .maybe("enum", "The values allowed.", array().min_items(1))
}
