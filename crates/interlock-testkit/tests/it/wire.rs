//! The wire types against the description of the service: every type has the members of its schema, and those that are
//! always there are those that the schema requires.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use interlock_core::json::{self, Limits, Value};
use interlock_testkit::repository;
use interlock_wire as wire;
use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};

/// Gives whatever is asked for, except one member of the outermost object.
#[derive(Clone, Copy)]
struct Anything<'a> {
    without: Option<&'a str>,
    /// Hears the names of that object's members.
    names: Option<&'a std::cell::RefCell<Vec<String>>>,
}

const INNER: Anything<'static> = Anything { without: None, names: None };

impl IntoDeserializer<'_, Error> for Anything<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! gives {
    ($($method:ident $visit:ident $($value:expr)?;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($($value)?)
        })*
    };
}

impl<'de> Deserializer<'de> for Anything<'_> {
    type Error = Error;

    gives! {
        deserialize_any visit_unit;
        deserialize_bool visit_bool false;
        deserialize_u8 visit_u64 0;
        deserialize_u64 visit_u64 0;
        deserialize_str visit_str "";
        deserialize_string visit_str "";
        deserialize_option visit_none;
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<&str>()))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Some(names) = self.names {
            names.borrow_mut().extend(fields.iter().map(|name| (*name).to_owned()));
        }
        let given = fields.iter().filter(|name| Some(**name) != self.without).map(|name| (*name, INNER));
        visitor.visit_map(MapDeserializer::new(given))
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct map enum
        identifier ignored_any
    }
}

/// All members of a type, and those it cannot be read without.
fn shape<T: wire::Message>() -> (BTreeSet<String>, BTreeSet<String>) {
    let names = std::cell::RefCell::default();
    T::deserialize(Anything { without: None, names: Some(&names) }).unwrap_or_else(|error| panic!("{error}"));
    let all: BTreeSet<String> = names.into_inner().into_iter().collect();
    let needed = |name: &&String| T::deserialize(Anything { without: Some(name), names: None }).is_err();
    let required = all.iter().filter(needed).cloned().collect();
    (all, required)
}

fn texts(list: Option<Value<'_>>) -> BTreeSet<String> {
    let items = list.and_then(|list| list.as_array()).into_iter().flatten();
    items.map(|item| item.as_str().expect("a name").text().to_owned()).collect()
}

/// A type stands for one schema, or for several that differ in what they have: `Key`, `Ticket.trust`.
fn check<T: wire::Message>(name: &str, described: &[&str], checked: &mut BTreeSet<String>) {
    let document = json::parse(interlock_http::OPENAPI, &Limits::CONFIG).expect("strict JSON");
    let schemas = document.root().get("components").and_then(|components| components.get("schemas")).expect("schemas");
    let (mut all, mut required) = (BTreeSet::new(), None::<BTreeSet<String>>);
    for path in described {
        let mut parts = path.split('.');
        let mut schema = parts.next().and_then(|name| schemas.get(name)).unwrap_or_else(|| panic!("no schema {path}"));
        for part in parts {
            let found = if part == "items" { Some(schema) } else { schema.get("properties") };
            schema = found.and_then(|known| known.get(part)).unwrap_or_else(|| panic!("no {path}"));
        }
        let members = schema.get("properties").and_then(|members| members.as_object()).expect("members");
        all.extend(members.map(|(name, _)| name.text().to_owned()));
        let own = texts(schema.get("required"));
        required = Some(required.map_or(own.clone(), |known| known.intersection(&own).cloned().collect()));
    }
    assert_eq!(shape::<T>(), (all, required.unwrap_or_default()), "{name} and {described:?}");
    assert!(checked.insert(name.to_owned()), "{name} stands twice");
}

#[test]
fn every_wire_type_is_what_the_description_says() {
    let mut checked = BTreeSet::new();
    macro_rules! types {
        ($($name:ident: $($schema:literal)+;)*) => { $(check::<wire::$name>(stringify!($name), &[$($schema),+], &mut checked);)* };
    }
    types! {
        Activity: "Activity" "ServiceActivity";
        ActivityPage: "ActivityPage" "ServiceActivityPage";
        ActivitySummary: "ActivitySummary";
        Agent: "Agent" "RegisteredAgent";
        AgentPage: "AgentPage";
        AllowRequest: "AllowRequest";
        Allowance: "Allowance";
        AskedTransition: "TransitionTicket.transition";
        AskedTrust: "TrustTicket.trust";
        Budget: "Budget";
        BudgetLimits: "BudgetLimits";
        CallDecision: "CallDecision";
        CostBudget: "Budget.cost";
        DisallowRequest: "DisallowRequest";
        ErasedTexts: "ErasedTexts";
        FlatRegistration: "FlatRegistration";
        ForceRequest: "ForceRequest";
        Key: "Key" "CreatedKey";
        KeyList: "KeyList";
        KeyRequest: "RegistrarKeyRequest" "PlainKeyRequest";
        Merits: "Merits";
        PauseRequest: "PauseRequest";
        Permissions: "Permissions";
        ReasonRequest: "ReasonRequest";
        RefusedCall: "RefusedCall" "RulingAtAnyDoor";
        RefusedCalls: "RefusedCalls";
        RegisterRequest: "RegisterRequest";
        RegisteredWorkflow: "RegisteredWorkflow" "Workflow";
        Repeats: "Repeats";
        ReportedExecution: "ReportedExecution";
        RequestBudget: "Budget.requests";
        Run: "Run";
        RunPage: "RunPage";
        RunState: "RunState";
        StartRequest: "StartRequest";
        Ticket: "ActionTicket" "TrustTicket" "TransitionTicket";
        TicketPage: "TicketPage";
        TokenBudget: "Budget.tokens";
        TrustAnswer: "TrustAnswer";
        TrustRequest: "TrustRequest";
        WayOut: "RunState.transitions.items";
        WorkflowFinding: "WorkflowFinding";
        WorkflowPage: "WorkflowPage";
    }
    let mut written = BTreeSet::new();
    // What runner and daemon say to each other, no public description has.
    let is_public = |path: &PathBuf| !path.ends_with("exec.rs");
    let files = fs::read_dir(repository().join("crates/interlock-wire/src")).expect("sources");
    for path in files.map(|file| file.expect("a file").path()).filter(is_public) {
        let text = fs::read_to_string(path).expect("a source");
        let names = text.lines().filter_map(|line| line.strip_prefix("pub struct "));
        written.extend(names.map(|name| name.split([' ', '<']).next().expect("a name").to_owned()));
    }
    assert_eq!(checked, written, "a type that no schema was compared with");
}
