//! Compiler from a JSON schema to formulas: keywords are read, and references resolved.

mod annotate;
mod asked;
mod index;
mod keywords;
mod leaf;
mod meta;
mod role;
mod uri;

use crate::formula::{ANY, ArraySaid, Formula, NONE, Names, Node, NodeId, ObjectSaid, Texts};
use crate::json::Json;
use crate::schema::{SchemaError, SchemaOptions, SchemaWarning};
use index::Index;
use role::Role;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use trie_core::work::{LimitExceeded, spend};

/// Draft of JSON Schema that a schema is written in. Drafts that share a variant are told apart by their keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Draft {
    /// Draft 4: nothing beside `$ref` counts.
    Old4,
    /// Drafts 6 and 7: nothing beside `$ref` counts.
    Old,
    Draft2019,
    Draft2020,
}

impl Draft {
    fn of(uri: &str) -> Option<Self> {
        let is = |part: &str| uri.contains(part);
        if is("draft-03") || is("draft-04") {
            Some(Self::Old4)
        } else if is("draft-06") || is("draft-07") {
            Some(Self::Old)
        } else if is("2019-09") {
            Some(Self::Draft2019)
        } else if is("2020-12") {
            Some(Self::Draft2020)
        } else {
            None
        }
    }
}

/// Result of compiling a schema.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// Keywords that were left out.
    pub(crate) unheld: Vec<SchemaWarning>,
    /// Warnings about keywords that have no effect though they may be meant to.
    pub(crate) notes: Vec<SchemaWarning>,
    /// Warnings about values and names that the format cannot write, which are therefore not allowed.
    pub(crate) unwritten: Vec<SchemaWarning>,
}

/// A schema at its place in the document, with the context in which it is read.
#[derive(Clone)]
struct Source<'a> {
    json: &'a Json,
    at: Arc<str>,
    base: Arc<str>,
    draft: Draft,
    /// Resources that were entered on the way, outermost first, where that matters.
    scope: u32,
    role: Role,
    /// True if it is about the value itself, not one in it.
    is_top: bool,
}

/// Stands where a schema was not written by anybody.
static NULL: Json = Json::Null;

struct Compiler<'a> {
    index: Index<'a>,
    options: &'a SchemaOptions,
    sources: Vec<Option<Source<'a>>>,
    formulas: Vec<Option<Formula>>,
    known: HashMap<(*const Json, Arc<str>, u32, Role, bool), NodeId>,
    /// Leaves by their text: the same are one schema.
    leaves: HashMap<Arc<str>, NodeId>,
    /// Numbers of schemas that are still to be read.
    open: Vec<NodeId>,
    scopes: Vec<Vec<Arc<str>>>,
    /// Patterns and formats, or why one is left out.
    texts: HashMap<String, Result<Arc<Texts>, String>>,
    /// Patterns that were too large.
    too_large: usize,
    unheld: BTreeSet<SchemaWarning>,
    notes: Vec<SchemaWarning>,
    unwritten: Vec<SchemaWarning>,
    /// Schemas made of choices, and the keywords that make them.
    choosing: Vec<(NodeId, &'static str)>,
}

/// Compiles a schema.
///
/// # Errors
/// A value that is not a schema, a reference to nothing, or a keyword that is not supported.
pub(crate) fn compiled(root: &Json, options: &SchemaOptions) -> Result<Compiled, SchemaError> {
    compiled_part(root, root, "", options)
}

/// Compiles a schema that stands at some place of a document, or that has some of the keywords there.
///
/// # Errors
/// As [`compiled`].
pub(crate) fn compiled_part<'a>(
    root: &'a Json,
    part: &'a Json,
    at: &str,
    options: &'a SchemaOptions,
) -> Result<Compiled, SchemaError> {
    let index = Index::of(root)?;
    let mut compiler = Compiler {
        options,
        sources: vec![None, None],
        formulas: vec![Some(Formula::True), Some(Formula::False)],
        known: HashMap::new(),
        leaves: HashMap::new(),
        open: Vec::new(),
        scopes: vec![Vec::new()],
        texts: HashMap::new(),
        too_large: 0,
        unheld: BTreeSet::new(),
        notes: Vec::new(),
        unwritten: Vec::new(),
        choosing: Vec::new(),
        index,
    };
    let (base, draft) = (Arc::clone(&compiler.index.base), compiler.index.draft);
    let scope = compiler.entered(0, &base);
    let is_top = at.is_empty();
    let first = compiler.node(Source { json: part, at: at.into(), base, draft, scope, role: Role::Value, is_top });
    let mut at = 0;
    while let Some(&node) = compiler.open.get(at) {
        at += 1;
        spend(8).map_err(too_much)?;
        let Some(source) = compiler.sources[node as usize].clone() else { continue };
        let formula = compiler.formula(node, &source)?;
        compiler.formulas[node as usize] = Some(formula);
    }
    let at = |source: &Option<Source<'_>>| source.as_ref().map_or_else(|| "".into(), |source| Arc::clone(&source.at));
    let formulas = compiler.formulas.into_iter().map(|formula| formula.unwrap_or(Formula::True));
    let nodes = compiler.sources.iter().map(at).zip(formulas).map(|(at, formula)| Node::new(at, formula));
    let mut nodes: Vec<Node> = nodes.collect();
    for (text, node) in compiler.leaves {
        nodes[node as usize].leaf = Some(text);
    }
    for (node, keyword) in compiler.choosing {
        nodes[node as usize].keyword = Some(keyword);
    }
    shorten(&mut nodes);
    refer_at_once(&mut nodes);
    let unheld = compiler.unheld.into_iter().collect();
    Ok(Compiled { nodes, root: first, unheld, notes: compiler.notes, unwritten: compiler.unwritten })
}

pub(crate) fn too_much(over: LimitExceeded) -> SchemaError {
    SchemaError::TooLarge { reason: over.to_string() }
}

/// Replaces schemas that are only a reference by their target, through chains of any length. A chain that leads back to
/// itself allows nothing, because it allows no value in finitely many steps.
fn shorten(nodes: &mut [Node]) {
    for start in 0..nodes.len() {
        let mut way = Vec::new();
        let mut at = start;
        let end = loop {
            match nodes[at].formula {
                Formula::Schema(_) if way.contains(&at) && way.len() < 64 => break Formula::False,
                Formula::Schema(next) => {
                    way.push(at);
                    if way.len() > nodes.len() {
                        break Formula::False;
                    }
                    at = next as usize;
                }
                Formula::True | Formula::False => break nodes[at].formula.clone(),
                _ => break Formula::Schema(at as NodeId),
            }
        };
        for at in way {
            nodes[at].formula = end.clone();
        }
    }
}

/// Replaces references to references by their final targets, so that equal schemas have equal numbers.
fn refer_at_once(nodes: &mut [Node]) {
    fn name(formula: &mut Formula, meant: &[NodeId]) {
        let set = |node: &mut NodeId| *node = meant[*node as usize];
        match formula {
            Formula::Schema(node) => set(node),
            Formula::Object(ObjectSaid::Each { names, value, .. }) => {
                set(value);
                if let Names::Denied(node, _) = names {
                    set(node);
                }
            }
            Formula::Array(ArraySaid::Each { value, .. } | ArraySaid::Contains { value, .. }) => set(value),
            Formula::All(parts) | Formula::Any(parts) | Formula::One(parts) => {
                for part in parts {
                    name(part, meant);
                }
            }
            Formula::Not(inner) | Formula::AssertOnly(inner) => name(inner, meant),
            _ => {}
        }
    }
    let meant = |(at, node): (usize, &Node)| match node.formula {
        Formula::Schema(to) => to,
        Formula::True => ANY,
        Formula::False => NONE,
        _ => at as NodeId,
    };
    let meant: Vec<NodeId> = nodes.iter().enumerate().map(meant).collect();
    for node in nodes {
        name(&mut node.formula, &meant);
    }
}

impl<'a> Compiler<'a> {
    /// The number of a schema, which is read later.
    fn node(&mut self, source: Source<'a>) -> NodeId {
        match source.json {
            Json::Bool(true) => return ANY,
            Json::Bool(false) => return NONE,
            Json::Object(members) if members.is_empty() => return ANY,
            _ => {}
        }
        let mut source = self.placed(source);
        if !self.options.asks_more() {
            (source.role, source.is_top) = (Role::Part, false);
        }
        if let Some(text) = leaf::text(&source) {
            if let Some(&known) = self.leaves.get(&*text) {
                return known;
            }
            let node = self.opened(source);
            self.leaves.insert(text.into(), node);
            return node;
        }
        let json = std::ptr::from_ref(source.json);
        let key = (json, Arc::clone(&source.base), source.scope, source.role, source.is_top);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let node = self.opened(source);
        self.known.insert(key, node);
        node
    }

    /// The number of a schema that has none yet.
    fn opened(&mut self, source: Source<'a>) -> NodeId {
        let node = self.sources.len() as NodeId;
        self.sources.push(Some(source));
        self.formulas.push(None);
        self.open.push(node);
        node
    }

    /// With the base and the draft of its own that a schema has by its identifier.
    fn placed(&mut self, mut source: Source<'a>) -> Source<'a> {
        if let Some((base, draft)) = index::identified(source.json, &source.base, source.draft) {
            source.draft = draft;
            if base != source.base {
                source.scope = self.entered(source.scope, &base);
                source.base = base;
            }
        }
        source
    }

    /// The scope behind a resource.
    fn entered(&mut self, scope: u32, base: &Arc<str>) -> u32 {
        if !self.index.is_dynamic || self.scopes[scope as usize].contains(base) {
            return scope;
        }
        let mut longer = self.scopes[scope as usize].clone();
        longer.push(Arc::clone(base));
        let known = self.scopes.iter().position(|scope| *scope == longer);
        known.unwrap_or_else(|| {
            self.scopes.push(longer);
            self.scopes.len() - 1
        }) as u32
    }

    /// A schema that stands in another.
    fn child(&mut self, source: &Source<'a>, json: &'a Json, way: &str) -> NodeId {
        let (role, is_top) = source.role_of(way);
        let at = format!("{}/{way}", source.at).into();
        self.node(Source { json, at, role, is_top, ..source.clone() })
    }

    /// A formula under a number of its own.
    fn made(&mut self, at: &Arc<str>, formula: Formula) -> NodeId {
        let node = self.sources.len() as NodeId;
        let json = &NULL;
        let (base, draft) = (Arc::clone(&self.index.base), self.index.draft);
        let (scope, role, is_top) = (0, Role::Part, false);
        self.sources.push(Some(Source { json, at: Arc::clone(at), base, draft, scope, role, is_top }));
        self.formulas.push(Some(formula));
        node
    }

    /// Returns the node that a reference resolves to.
    fn target(&mut self, source: &Source<'a>, keyword: &str, to: &str) -> Result<NodeId, SchemaError> {
        let whole = uri::resolved(&source.base, to);
        let (document, fragment) = uri::split(&whole);
        let Some(resource) = self.index.resource(document) else {
            let reason = format!(
                "{keyword} {to:?} is not supported: it refers to another document, and nothing is fetched; put that \
                 one under $defs, with its $id"
            );
            return Err(SchemaError::Invalid { at: source.at.to_string(), reason });
        };
        let nothing = || {
            let reason =
                format!("invalid {keyword}: expected what is in this document, got {to:?}, which leads nowhere");
            SchemaError::Invalid { at: source.at.to_string(), reason }
        };
        let fragment = uri::decoded(fragment);
        let mut target = resource.source();
        if let Some(pointer) = fragment.strip_prefix('/') {
            for part in pointer.split('/') {
                target.json = self.index.step(target.json, part).ok_or_else(nothing)?;
                target.at = format!("{}/{part}", target.at).into();
                if let Some((base, draft)) = index::identified(target.json, &target.base, target.draft) {
                    (target.base, target.draft) = (base, draft);
                }
            }
        } else if !fragment.is_empty() {
            let anchor = self.index.anchor(&resource.base, &fragment).ok_or_else(nothing)?;
            target.json = anchor.json;
            target.at = Arc::clone(&anchor.at);
        }
        // Resources on the way of a pointer are not entered.
        target.scope = self.entered(source.scope, &target.base);
        (target.role, target.is_top) = source.role_of(keyword);
        Ok(self.node(target))
    }

    /// Returns the node that a `$dynamicRef` resolves to.
    fn dynamic(&mut self, source: &Source<'a>, to: &str) -> Result<NodeId, SchemaError> {
        let whole = uri::resolved(&source.base, to);
        let (document, fragment) = uri::split(&whole);
        let fragment = uri::decoded(fragment);
        let is_dynamic = self.index.resource(document).is_some_and(|resource| {
            self.index.anchor(&resource.base, &fragment).is_some_and(|anchor| anchor.is_dynamic)
        });
        if is_dynamic {
            let scope = self.scopes[source.scope as usize].clone();
            for base in scope {
                let Some(anchor) = self.index.anchor(&base, &fragment).filter(|anchor| anchor.is_dynamic) else {
                    continue;
                };
                let (json, at) = (anchor.json, Arc::clone(&anchor.at));
                let Some(resource) = self.index.resource(&base) else { continue };
                let (role, is_top) = source.role_of("$dynamicRef");
                return Ok(self.node(Source { json, at, scope: source.scope, role, is_top, ..resource.source() }));
            }
        }
        self.target(source, "$dynamicRef", to)
    }

    /// Returns the node that a `$recursiveRef` resolves to.
    fn recursive(&mut self, source: &Source<'a>, to: &str) -> Result<NodeId, SchemaError> {
        let recurs = |json: &Json| matches!(json.get("$recursiveAnchor"), Some(Json::Bool(true)));
        let own = self.index.resource(&source.base).filter(|resource| recurs(resource.json));
        if to == "#" && own.is_some() {
            let scope = self.scopes[source.scope as usize].clone();
            for base in scope {
                if let Some(resource) = self.index.resource(&base).filter(|resource| recurs(resource.json)) {
                    let (role, is_top) = source.role_of("$recursiveRef");
                    return Ok(self.node(Source { scope: source.scope, role, is_top, ..resource.source() }));
                }
            }
        }
        self.target(source, "$recursiveRef", to)
    }
}
