//! The description of the service, as OpenAPI 3.1: made from the wire types and one table of routes.
//!
//! Its components are what the routes lead to. Members stand in one order, so the same tables yield the same bytes.

mod examples;
mod parameters;
mod refusals;
mod routes;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::schema::{Members, Node, Schema, answer, list, map, only};
use examples::Examples;
use refusals::Refusal;
use routes::{Answer, Body, Link, Route};

named! {
    /// This document.
    Description = answer()
        .always("openapi", "", only(VERSION))
        .always("info", "", map().of_anything())
        .always("servers", "", list(map().of_anything()))
        .always("tags", "", list(map().of_anything()))
        .always("paths", "", map().of_anything())
        .always("components", "", map().of_anything());
}

/// The version of OpenAPI.
const VERSION: &str = "3.1.0";

const ABOUT: &str = "Requests are read strictly: bodies are strict JSON of at most 1 MiB and a depth below 64, unknown \
    fields are refused, and a member that is null counts as absent unless its description says otherwise. Lengths are \
    checked in bytes of UTF-8; `maxLength` is the bound that one-byte characters reach. Answers of all routes but \
    /healthz and /readyz, except to admins and approvers, who have no limit, say in RateLimit-Limit, \
    RateLimit-Remaining and RateLimit-Reset how far the limit of requests a minute is.";

#[rustfmt::skip]
const TAGS: [(&str, &str); 10] = [
    ("service", "The service itself."),
    ("agents", "Who may ask, and what they have asked and spent."),
    ("rulings", "What an agent may do."),
    ("approvals", "What waits for a person, and what was decided and done."),
    ("keys", "Who may operate the service."),
    ("audit", "The ledger for outsiders."),
    ("state", "The state guard."),
    ("attestation", "Decisions as tokens that others can check."),
    ("workflows", "Workflows that are registered under their ids."),
    ("runs", "Coding agents, their workflows, what they were refused and what passes"),
];

const OPERATORS_KEY: &str =
    "An operator's key: the first one (`operator.key`), or one of `POST /keys`. Its role says what it may do.";
const AGENTS_TOKEN: &str = "The agent's token. If it is given in several places, all must be equal.";

/// The document, made when it is first asked for.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| crate::write(&make()));
    &DOCUMENT
}

fn make() -> Node {
    let examples = Examples::read();
    let (routes, refusals) = (routes::routes(), refusals::refusals());
    let mut paths: Vec<(Cow<'static, str>, Members)> = Vec::new();
    for route in &routes {
        let operation = (route.method.into(), operation(route, &refusals, &examples));
        match paths.iter_mut().find(|(path, _)| path == route.path) {
            Some((_, operations)) => operations.push(operation),
            None => paths.push((route.path.into(), vec![operation])),
        }
    }
    let paths = Node::Object(paths.into_iter().map(|(path, operations)| (path, Node::Object(operations))).collect());
    let parameters = parameters::parameters().into_iter().map(|(key, parameter)| (key.into(), parameter)).collect();
    let refusals = refusals.iter().map(|refusal| (refusal.key.into(), refusal.node(&examples))).collect();
    let (parameters, refusals) = (Node::Object(parameters), Node::Object(refusals));
    let schemas = schemas(&[&paths, &parameters, &refusals]);
    let license = object([("name", text("Apache-2.0")), ("identifier", text("Apache-2.0"))]);
    let tags = TAGS.map(|(name, about)| object([("name", text(name)), ("description", text(about))]));
    object([
        ("openapi", text(VERSION)),
        (
            "info",
            object([
                ("title", text("Interlock")),
                ("version", text(env!("CARGO_PKG_VERSION"))),
                ("summary", text("A safety interlock for AI agents: nothing takes effect until it is verified.")),
                ("description", text(ABOUT)),
                ("license", license),
            ]),
        ),
        (
            "servers",
            Node::List(vec![object([("url", text("/")), ("description", text("Wherever this document was read."))])]),
        ),
        ("tags", Node::List(tags.into())),
        ("paths", paths),
        (
            "components",
            object([
                ("securitySchemes", credentials()),
                ("parameters", parameters),
                ("responses", refusals),
                ("schemas", schemas),
            ]),
        ),
    ])
}

/// Everything with a name that these lead to, by name.
fn schemas(roots: &[&Node]) -> Node {
    let mut waiting = Vec::new();
    roots.iter().for_each(|root| root.references(&mut waiting));
    let mut found = BTreeMap::new();
    while let Some(named) = waiting.pop() {
        if !found.contains_key(named.name) {
            let schema = (named.make)().node();
            schema.references(&mut waiting);
            found.insert(named.name, schema);
        }
    }
    Node::Object(found.into_iter().map(|(name, schema)| (name.into(), schema)).collect())
}

fn credentials() -> Node {
    let bearer = |about| object([("type", text("http")), ("scheme", text("bearer")), ("description", text(about))]);
    let header = |name, about| {
        object([("type", text("apiKey")), ("in", text("header")), ("name", text(name)), ("description", text(about))])
    };
    object([
        ("operatorBearer", bearer(OPERATORS_KEY)),
        ("operatorKey", header("X-API-Key", OPERATORS_KEY)),
        ("agentToken", header("X-Agent-Token", AGENTS_TOKEN)),
        ("agentBearer", bearer(AGENTS_TOKEN)),
    ])
}

fn operation(route: &Route, refusals: &[Refusal], examples: &Examples) -> Node {
    let mut responses: BTreeMap<u16, Node> = BTreeMap::new();
    for answer in &route.answers {
        responses.insert(answer.status, response(answer, examples));
    }
    for (status, key) in &route.refusals {
        let known = refusals.iter().find(|refusal| refusal.key == *key).map(|refusal| refusal.status);
        responses.insert(status.or(known).unwrap_or_default(), reference("responses", key));
    }
    let responses = responses.into_iter().map(|(status, response)| (status.to_string().into(), response)).collect();
    let credentials = route
        .by
        .credentials()
        .iter()
        .map(|name| Node::Object(name.iter().map(|name| (Cow::from(*name), Node::List(Vec::new()))).collect()));
    let mut members = vec![
        ("operationId", text(route.operation)),
        ("tags", Node::List(vec![text(route.tag)])),
        ("summary", text(route.summary)),
        ("description", text(route.description)),
        ("security", Node::List(credentials.collect())),
    ];
    if !route.parameters.is_empty() {
        let parameters = route.parameters.iter().map(|key| reference("parameters", key));
        members.push(("parameters", Node::List(parameters.collect())));
    }
    if let Some(Body { required, schema, shown }) = &route.body {
        let content = content("application/json", schema, examples.shown(shown));
        members.push(("requestBody", object([("required", Node::Raw(required.to_string())), ("content", content)])));
    }
    members.push(("responses", Node::Object(responses)));
    object(members)
}

fn response(answer: &Answer, examples: &Examples) -> Node {
    let Answer { status: _, description, media, schema, shown, headers, links } = answer;
    let mut members = vec![("description", text(description))];
    if !headers.is_empty() {
        let headers = headers.iter().map(|(name, header)| ((*name).into(), header.clone()));
        members.push(("headers", Node::Object(headers.collect())));
    }
    members.push(("content", content(media, schema, examples.shown(shown))));
    if !links.is_empty() {
        members.push(("links", Node::Object(links.iter().map(|link| (link.key.into(), link_to(link))).collect())));
    }
    object(members)
}

fn link_to(link: &Link) -> Node {
    let place = |place: &str| Node::Text(format!("$response.body#{place}").into());
    let mut members = vec![
        ("operationId", text(link.operation)),
        ("description", text(link.description)),
        ("parameters", object([("id", place(link.id))])),
    ];
    if link.with_token {
        let body = object([("agent_id", place(link.id)), ("agent_token", place("/agent_token"))]);
        members.push(("requestBody", body));
    }
    object(members)
}

fn header(description: &'static str, required: bool, schema: impl Into<Schema>) -> Node {
    object([
        ("description", text(description)),
        ("required", Node::Raw(required.to_string())),
        ("schema", schema.into().node()),
    ])
}

fn content(media: &'static str, schema: &Schema, examples: Option<Node>) -> Node {
    let mut members = vec![("schema", schema.clone().node())];
    members.extend(examples.map(|examples| ("examples", examples)));
    object([(media, object(members))])
}

fn reference(kind: &str, key: &str) -> Node {
    object([("$ref", Node::Text(format!("#/components/{kind}/{key}").into()))])
}

fn object(members: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    Node::Object(members.into_iter().map(|(key, node)| (key.into(), node)).collect())
}

fn text(text: &'static str) -> Node {
    Node::Text(text.into())
}
