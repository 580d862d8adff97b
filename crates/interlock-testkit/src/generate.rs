//! Random values, schemas and states. Everything comes from one seed, so a failure can be run again.

use proptest::prelude::*;

use crate::reference::Json;

/// Any JSON value, with shrinking.
pub fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any_number().prop_map(Json::Number),
        any_text().prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
            prop::collection::btree_map(any_text(), inner, 0..8).prop_map(|members| {
                let mut unique: Vec<(String, Json)> = Vec::new();
                for (key, value) in members {
                    if Json::Object(unique.clone()).get(&key).is_none() {
                        unique.push((key, value));
                    }
                }
                Json::Object(unique)
            }),
        ]
    })
}

/// Number literals of every form.
pub fn any_number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?"
}

/// Texts with characters that are escaped, composed, astral or controls.
pub fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]{0,3}", "\\PC{0,6}", "[e\u{e9}\u{301}\u{212a}K\u{0}\u{7f}\"\\\\/\u{1f600}\u{fb33}]{0,5}"]
}

/// A small generator for what depends on what was generated before.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % u64::try_from(end.max(1)).expect("small")).expect("small")
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A number that is often near, or equal to, others.
    pub fn number(&mut self) -> Json {
        const LITERALS: [&str; 14] = [
            "0",
            "-0",
            "0.0",
            "1",
            "1.0",
            "1e0",
            "10e-1",
            "2",
            "-1",
            "0.1",
            "0.10000000000000000000000000001",
            "1e2",
            "100",
            "99999999999999999999",
        ];
        Json::Number((*self.pick(&LITERALS)).to_owned())
    }

    /// A short text that is often equal to others, before or after NFC.
    pub fn text(&mut self) -> String {
        const TEXTS: [&str; 9] = ["", "a", "b", "ab", "\u{e9}", "e\u{301}", "K", "\u{212a}", "done"];
        (*self.pick(&TEXTS)).to_owned()
    }

    /// A value with no schema in mind.
    pub fn value(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Json::Null,
            1 => Json::Bool(self.one_in(2)),
            2 => self.number(),
            3 => Json::String(self.text()),
            4 => Json::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => {
                let members = (0..self.below(4)).map(|_| (self.text(), self.value(depth - 1))).collect();
                Json::Object(distinct(members))
            }
        }
    }

    /// A well-formed schema.
    pub fn schema(&mut self, depth: usize) -> Json {
        let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
        let kind = *self.pick(&kinds[if depth == 0 { 0..5 } else { 0..7 }]);
        let mut members = vec![("type".to_owned(), Json::text(kind))];
        let mut add = |name: &str, value: Json| members.push((name.to_owned(), value));
        if self.one_in(6) {
            add("enum", Json::Array((0..1 + self.below(3)).map(|_| self.value(1)).collect()));
        }
        if self.one_in(10) {
            add("const", self.value(1));
        }
        if self.one_in(6) {
            add("title", Json::text("a title"));
        }
        match kind {
            "integer" | "number" => {
                let names: &[&str] = if self.one_in(2) { &["minimum"] } else { &["exclusiveMaximum"] };
                for name in names {
                    if self.one_in(2) {
                        add(name, self.number());
                    }
                }
            }
            "string" if self.one_in(2) => add("minLength", Json::Number(self.below(3).to_string())),
            "string" if self.one_in(2) => add("maxLength", Json::Number(self.below(3).to_string())),
            "array" => {
                add("items", self.schema(depth - 1));
                if self.one_in(3) {
                    add("uniqueItems", Json::Bool(true));
                }
                if self.one_in(4) {
                    add("maxItems", Json::Number(self.below(4).to_string()));
                }
            }
            "object" => {
                let properties: Vec<_> = (0..self.below(4))
                    .map(|_| (self.text(), self.schema(depth - 1)))
                    .filter(|(key, _)| !key.is_empty())
                    .collect();
                let properties = distinct(properties);
                let required = properties.iter().filter(|_| self.one_in(2)).map(|(key, _)| Json::text(key)).collect();
                add("properties", Json::Object(properties));
                add("required", Json::Array(required));
                add("additionalProperties", Json::Bool(self.one_in(2)));
            }
            _ => {}
        }
        Json::Object(members)
    }

    /// A value that often matches a schema.
    pub fn value_for(&mut self, schema: &Json) -> Json {
        if self.one_in(12) {
            return self.value(2);
        }
        if let Some(Json::Array(allowed)) = schema.get("enum")
            && !self.one_in(4)
        {
            return self.pick(allowed).clone();
        }
        match schema.get("type") {
            Some(Json::String(kind)) => match kind.as_str() {
                "null" => Json::Null,
                "boolean" => Json::Bool(self.one_in(2)),
                "integer" | "number" => self.number(),
                "string" => Json::String(self.text()),
                "array" => {
                    let items = schema.get("items").expect("an array schema");
                    Json::Array((0..self.below(12)).map(|_| self.value_for(items)).collect())
                }
                _ => self.object_for(schema),
            },
            _ => self.value(2),
        }
    }

    fn object_for(&mut self, schema: &Json) -> Json {
        let Some(Json::Object(properties)) = schema.get("properties") else { return self.value(1) };
        let mut members = Vec::new();
        for (key, inner) in properties {
            if !self.one_in(8) {
                members.push((key.clone(), self.value_for(inner)));
            }
        }
        if self.one_in(4) {
            members.push((self.text(), self.value(1)));
        }
        if self.one_in(2) {
            members.reverse();
        }
        Json::Object(distinct(members))
    }

    /// A state for transition rules: few keys, small values, so that rules often hold and often do not.
    pub fn task_state(&mut self) -> Json {
        let ids: Vec<Json> = (0..self.below(5))
            .map(|at| if self.one_in(30) { self.value(0) } else { Json::text(&format!("t{at}")) })
            .collect();
        let tasks = ids
            .into_iter()
            .map(|id| {
                let mut members = vec![("id".to_owned(), id), ("done".to_owned(), Json::Bool(self.one_in(2)))];
                if self.one_in(6) {
                    members.push(("note".to_owned(), Json::String(self.text())));
                }
                if self.one_in(20) {
                    members.remove(1);
                }
                if self.one_in(4) {
                    members.reverse();
                }
                Json::Object(members)
            })
            .collect();
        let status = *self.pick(&["pending", "running", "completed", "lost"]);
        let mut state = vec![
            ("id".to_owned(), Json::text(if self.one_in(8) { "b" } else { "a" })),
            ("step".to_owned(), self.number()),
            ("status".to_owned(), Json::text(status)),
            ("tasks".to_owned(), Json::Array(tasks)),
        ];
        if self.one_in(15) {
            let at = self.below(4);
            state.remove(at);
        }
        Json::Object(state)
    }

    /// Another state, near one that exists.
    pub fn next_state(&mut self, state: &Json) -> Json {
        let other = self.task_state();
        let (Json::Object(members), keep) = (state, self.bits()) else { return other };
        let members = members.iter().enumerate().map(|(at, (key, value))| match (keep >> at & 1, other.get(key)) {
            (0, Some(new)) => (key.clone(), new.clone()),
            _ => (key.clone(), value.clone()),
        });
        Json::Object(members.collect())
    }

    /// Transition rules over [`task_state`](Random::task_state).
    pub fn rules(&mut self) -> Json {
        let mut rules = Vec::new();
        let mut add = |name: &str, value: Json| rules.push((name.to_owned(), value));
        if self.one_in(2) {
            add("immutable_paths", Json::Array(vec![Json::text("$.id")]));
        }
        if self.one_in(3) {
            add("monotonic_integer_paths", Json::Array(vec![Json::text("$.step")]));
        }
        if self.one_in(3) {
            let order = ["pending", "running", "completed"].map(Json::text).to_vec();
            add("ordered_enum_paths", Json::object([("$.status", Json::Array(order))]));
        }
        let rule = Json::object([
            ("key", Json::text("id")),
            ("monotonic_boolean_fields", Json::Array(if self.one_in(3) { vec![] } else { vec![Json::text("done")] })),
            ("allow_new_items", Json::Bool(!self.one_in(4))),
            ("allow_new_fields", Json::Bool(self.one_in(3))),
        ]);
        add("keyed_object_array_paths", Json::object([("$.tasks", rule)]));
        Json::Object(rules)
    }
}

/// The members without those whose key stands before, after NFC.
fn distinct(members: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let mut kept: Vec<(String, Json)> = Vec::new();
    for (key, value) in members {
        if Json::Object(kept.clone()).get(&key).is_none() {
            kept.push((key, value));
        }
    }
    kept
}
