//! The resources and anchors of a document.

use super::role::Role;
use super::{Draft, Source, meta, uri};
use crate::json::Json;
use crate::schema::SchemaError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use trie_core::work::spend;

/// Keywords whose value is a schema.
pub(super) const ONE: [&str; 15] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
    "disallow",
    "dependencies",
];
/// Keywords whose value lists schemas.
const LISTED: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value has schemas by name.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"];
/// Members from which on names are looked up.
const MANY: usize = 32;

pub(super) struct Resource<'a> {
    pub(super) json: &'a Json,
    pub(super) base: Arc<str>,
    at: Arc<str>,
    draft: Draft,
}

impl<'a> Resource<'a> {
    pub(super) fn source(&self) -> Source<'a> {
        let (base, draft) = (Arc::clone(&self.base), self.draft);
        Source { json: self.json, at: Arc::clone(&self.at), base, draft, scope: 0, role: Role::Part, is_top: false }
    }
}

pub(super) struct Anchor<'a> {
    pub(super) json: &'a Json,
    pub(super) at: Arc<str>,
    pub(super) is_dynamic: bool,
}

type Members<'a> = HashMap<&'a str, &'a Json>;

pub(super) struct Index<'a> {
    pub(super) base: Arc<str>,
    pub(super) draft: Draft,
    /// True if references depend on how a schema was reached.
    pub(super) is_dynamic: bool,
    resources: HashMap<Arc<str>, Arc<Resource<'a>>>,
    anchors: HashMap<(Arc<str>, String), Arc<Anchor<'a>>>,
    /// Large objects by name.
    members: RefCell<HashMap<*const Json, Members<'a>>>,
}

/// The base and the draft of a schema that says its own.
pub(super) fn identified(json: &Json, base: &Arc<str>, draft: Draft) -> Option<(Arc<str>, Draft)> {
    let members = json.as_object()?;
    let said = json.get("$schema").and_then(Json::as_str).and_then(|uri| Draft::of(uri));
    let draft_here = said.unwrap_or(draft);
    if draft_here <= Draft::Old && members.iter().any(|(name, _)| &**name == "$ref") {
        return None;
    }
    let id = json.get(if draft_here == Draft::Old4 { "id" } else { "$id" }).and_then(Json::as_str);
    let (document, _) = uri::split(id.map_or("", |id| id));
    let base = if document.is_empty() { Arc::clone(base) } else { uri::resolved(base, document).into() };
    (id.is_some() || said.is_some()).then_some((base, draft_here))
}

impl<'a> Index<'a> {
    pub(super) fn of(root: &'a Json) -> Result<Self, SchemaError> {
        let said = root.get("$schema").and_then(Json::as_str).and_then(|uri| Draft::of(uri));
        let draft = said.unwrap_or(Draft::Draft2020);
        let none: Arc<str> = "".into();
        let base = identified(root, &none, draft).map_or_else(|| Arc::clone(&none), |(base, _)| base);
        let mut index = Self {
            base: Arc::clone(&base),
            draft,
            is_dynamic: false,
            resources: HashMap::new(),
            anchors: HashMap::new(),
            members: RefCell::default(),
        };
        let whole = Arc::new(Resource { json: root, base: Arc::clone(&base), at: Arc::clone(&none), draft });
        index.resources.insert(none.clone(), Arc::clone(&whole));
        index.resources.insert(Arc::clone(&base), whole);
        let mut left = vec![(root, none, base, draft)];
        // Meta-schemas are read where something refers to them.
        let mut referred: Vec<&'static Json> = Vec::new();
        loop {
            let Some((json, at, mut base, mut draft)) = left.pop() else {
                let Some(json) = referred.pop() else { break };
                let Some((base, draft)) = identified(json, &Arc::from(""), draft) else { continue };
                if !index.resources.contains_key(&base) {
                    let at: Arc<str> = format!("{base}#").into();
                    let made = Resource { json, base: Arc::clone(&base), at: Arc::clone(&at), draft };
                    index.resources.insert(Arc::clone(&base), Arc::new(made));
                    left.push((json, at, base, draft));
                }
                continue;
            };
            spend(1).map_err(super::too_much)?;
            let Some(members) = json.as_object() else { continue };
            if let Some((own, own_draft)) = identified(json, &base, draft) {
                draft = own_draft;
                if own != base {
                    base = own;
                    let made = Resource { json, base: Arc::clone(&base), at: Arc::clone(&at), draft };
                    index.resources.entry(Arc::clone(&base)).or_insert_with(|| Arc::new(made));
                }
            }
            for (keyword, value) in members {
                let anchor = |name: &str, is_dynamic| {
                    ((Arc::clone(&base), name.to_owned()), Arc::new(Anchor { json, at: Arc::clone(&at), is_dynamic }))
                };
                match (&**keyword, value) {
                    ("$anchor", Json::String(name)) => {
                        let (key, anchor) = anchor(name, false);
                        index.anchors.entry(key).or_insert(anchor);
                    }
                    ("$dynamicAnchor", Json::String(name)) => {
                        let (key, anchor) = anchor(name, true);
                        index.anchors.insert(key, anchor);
                    }
                    ("$id" | "id", Json::String(id)) if !uri::split(id).1.is_empty() && draft <= Draft::Old => {
                        let (key, anchor) = anchor(uri::split(id).1, false);
                        index.anchors.entry(key).or_insert(anchor);
                    }
                    ("$ref" | "$dynamicRef" | "$recursiveRef", value) => {
                        index.is_dynamic |= &**keyword != "$ref";
                        let to = value.as_str().map(|to| uri::resolved(&base, to));
                        referred.extend(to.and_then(|to| meta::named(uri::split(&to).0)));
                    }
                    (name, Json::Array(all)) if LISTED.contains(&name) => {
                        let each = all.iter().enumerate();
                        left.extend(
                            each.map(|(nth, one)| (one, format!("{at}/{name}/{nth}").into(), Arc::clone(&base), draft)),
                        );
                    }
                    (name, Json::Object(all)) if NAMED.contains(&name) => {
                        left.extend(all.iter().map(|(own, one)| {
                            (one, format!("{at}/{name}/{}", escaped(own)).into(), Arc::clone(&base), draft)
                        }));
                    }
                    (name, Json::Object(_)) if ONE.contains(&name) => {
                        left.push((value, format!("{at}/{name}").into(), Arc::clone(&base), draft));
                    }
                    _ => {}
                }
            }
        }
        Ok(index)
    }

    pub(super) fn resource(&self, uri: &str) -> Option<Arc<Resource<'a>>> {
        self.resources.get(uri).cloned()
    }

    pub(super) fn anchor(&self, base: &Arc<str>, name: &str) -> Option<Arc<Anchor<'a>>> {
        self.anchors.get(&(Arc::clone(base), name.to_owned())).cloned()
    }

    /// The value behind one part of a JSON pointer.
    pub(super) fn step(&self, json: &'a Json, part: &str) -> Option<&'a Json> {
        let Some(members) = json.as_object().filter(|members| members.len() >= MANY) else { return json.step(part) };
        let mut known = self.members.borrow_mut();
        let by_name = known
            .entry(std::ptr::from_ref(json))
            .or_insert_with(|| members.iter().map(|(name, value)| (&**name, value)).collect());
        by_name.get(&*part.replace("~1", "/").replace("~0", "~")).copied()
    }
}

/// A name as a part of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
