//! Constrained content of a reply: the text before the content stays free.

use crate::constraint::SpecError;
use crate::constraint::{ReplyWhitespace, Spec, SpecProblem};
use crate::json::place::Place;
use crate::json::{inner, read, refused_at};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use trie_core::{
    AllExcept, AnyConstraint, AnyState, Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, Thought,
    TokenId, Tokens, Trie,
};

/// Constraint on a reply without calls whose content obeys a constraint.
///
/// The text before the content and the content itself are followed side by side, because the bytes that begin a marker
/// may begin content, too.
#[derive(Debug, Clone)]
pub(crate) struct HeldContent {
    /// Constraint on the text before the content, which ends wherever content may begin; `None` if there is no such
    /// text.
    before: Option<AnyConstraint>,
    content: AnyConstraint,
}

/// State of such a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeldState {
    /// State before the content; `None` once content has certainly begun.
    before: Option<AnyState>,
    /// State inside the content, and the number of its tokens.
    content: Option<(AnyState, usize)>,
}

impl HeldState {
    /// Returns the number of content tokens, if the last token may be content.
    pub(crate) fn content_tokens(&self) -> Option<usize> {
        self.content.as_ref().map(|(_, tokens)| *tokens)
    }

    /// Returns whether only content is possible.
    pub(crate) fn is_certain(&self) -> bool {
        self.before.is_none()
    }
}

impl HeldContent {
    pub(crate) fn new(before: Option<AnyConstraint>, content: AnyConstraint) -> Self {
        Self { before, content }
    }

    /// Returns whether the content has begun, is complete and cannot continue.
    pub(crate) fn is_over(&self, at: &HeldState) -> bool {
        at.content.as_ref().is_some_and(|(inside, _)| self.content.ending(inside) == Ending::Must)
    }

    fn may_begin(&self, before: &AnyState) -> bool {
        self.before.as_ref().is_some_and(|rule| !matches!(rule.ending(before), Ending::No))
    }
}

impl Constraint for HeldContent {
    type State = HeldState;

    fn start(&self) -> HeldState {
        match &self.before {
            Some(before) => HeldState { before: Some(before.start()), content: None },
            None => HeldState { before: None, content: Some((self.content.start(), 0)) },
        }
    }

    fn next<'a>(&'a self, at: &'a HeldState, scratch: &'a mut Scratch) -> Next<'a> {
        let (Some(rule), Some(before)) = (&self.before, &at.before) else {
            return match &at.content {
                Some((content, _)) => self.content.next(content, scratch),
                None => Next { tokens: Tokens::default(), ending: Ending::No },
            };
        };
        let begins = self.may_begin(before);
        if !begins && at.content.is_none() {
            return rule.next(before, scratch);
        }
        let (ids, _, scratch) = scratch.split();
        ids.clear();
        let mut denied = None;
        match rule.next(before, scratch).tokens {
            Tokens::Except(but) => denied = Some(but.denied_tokens().to_vec()),
            few => ids.extend(few.iter()),
        }
        let mut ending = Ending::No;
        let start = begins.then(|| self.content.start());
        for (inside, begun) in at.content.iter().map(|(at, _)| (at, true)).chain(start.iter().map(|at| (at, false))) {
            let next = self.content.next(inside, scratch);
            if begun && next.ending != Ending::No {
                ending = Ending::May;
            }
            match (&mut denied, next.tokens) {
                (Some(denied), tokens) => denied.retain(|&token| !tokens.contains(token)),
                (none, Tokens::Except(but)) => {
                    *none = Some(but.denied_tokens().iter().copied().filter(|token| !ids.contains(token)).collect());
                }
                (None, few) => ids.extend(few.iter()),
            }
        }
        let all_but = denied.map(|denied| *ids = denied).is_some();
        ids.sort_unstable();
        ids.dedup();
        let tokens = if all_but { Tokens::Except(AllExcept::new(ids)) } else { Tokens::Ids(ids) };
        Next { tokens, ending }
    }

    fn advance(&self, at: &mut HeldState, token: TokenId) -> Option<Role> {
        let content = at.content.as_ref().and_then(|(inside, tokens)| {
            let mut inside = inside.clone();
            self.content.advance(&mut inside, token).map(|_| (inside, tokens + 1))
        });
        // Of two ways into content the one that began first counts: it can always go on.
        let content = content.or_else(|| {
            at.before.as_ref().filter(|before| self.may_begin(before))?;
            let mut inside = self.content.start();
            self.content.advance(&mut inside, token).map(|_| (inside, 1))
        });
        let mut role = None;
        let before = at.before.as_ref().and_then(|before| {
            let mut before = before.clone();
            role = Some(self.before.as_ref()?.advance(&mut before, token)?);
            Some(before)
        });
        role = role.or_else(|| content.is_some().then_some(Role::Value));
        if role.is_some() {
            *at = HeldState { before, content };
        }
        role
    }

    fn forced_token(&self, at: &HeldState, scratch: &mut Scratch) -> Option<TokenId> {
        match (&at.before, &at.content) {
            (None, Some((content, _))) => self.content.forced_token(content, scratch),
            (Some(before), None) if !self.may_begin(before) => self.before.as_ref()?.forced_token(before, scratch),
            _ => None,
        }
    }

    fn problem(&self, at: &HeldState) -> Option<Problem> {
        let of_content = at.content.as_ref().and_then(|(content, _)| self.content.problem(content));
        of_content.or_else(|| self.before.as_ref()?.problem(at.before.as_ref()?))
    }

    fn max_token(&self) -> Option<TokenId> {
        self.content.max_token().max(self.before.as_ref().and_then(Constraint::max_token))
    }

    fn sets(&self) -> Vec<&Trie> {
        self.content.sets()
    }

    fn values(&self, at: &HeldState, over: bool) -> Vec<trie_core::Leaf> {
        at.content.as_ref().map_or_else(Vec::new, |(content, _)| self.content.values(content, over))
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for HeldContent {
    fn never_ends(&self) -> bool {
        false
    }

    fn thought(&self, at: &HeldState) -> Thought {
        let before = self.before.as_ref().zip(at.before.as_ref());
        before.map_or_else(Thought::default, |(rule, before)| rule.thought(before))
    }
}

/// Converts `response_format` of chat APIs to a spec: `{"type": "text"}`, `{"type": "json_object"}`, or `{"type":
/// "json_schema", "json_schema": {"schema": ...}}`. `None` is text. A document has this white space between its parts.
///
/// # Errors
/// Another shape, with its place.
pub fn response_format(value: &Value, whitespace: ReplyWhitespace) -> Result<Option<Spec>, SpecError> {
    let format: ResponseFormat = read(&Place::ROOT.field("response_format"), value)?;
    Ok(format.with_whitespace(whitespace).0)
}

/// Constraint on the content; `None` is text.
pub(crate) struct ResponseFormat(pub(crate) Option<Spec>);

impl ResponseFormat {
    /// The same with this white space between the parts of a document.
    pub(crate) fn with_whitespace(mut self, whitespace: ReplyWhitespace) -> Self {
        if let Some(Spec::JsonSchema(schema)) = &mut self.0 {
            schema.whitespace = whitespace.into();
        }
        self
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FormatType {
    Text,
    JsonObject,
    JsonSchema,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    #[serde(rename = "type")]
    of: FormatType,
    json_schema: Option<NamedSchema>,
    /// Schema beside the type, which llama.cpp's server and others accept.
    schema: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedSchema {
    schema: Option<Value>,
    #[serde(rename = "name")]
    _name: Option<IgnoredAny>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(rename = "strict")]
    _strict: Option<IgnoredAny>,
}

impl<'de> Deserialize<'de> for ResponseFormat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        if value.is_object() && value.get("type").is_none_or(Value::is_null) {
            let types = "\"text\", \"json_object\" or \"json_schema\"".to_owned();
            return Err(refused_at("type", SpecProblem::Type { expected: types, given: "null".to_owned() }));
        }
        let Format { of, json_schema, schema } = inner(&value)?;
        let schema = match of {
            FormatType::Text => return Ok(Self(None)),
            FormatType::JsonObject => schema.unwrap_or_else(|| json!({"type": "object"})),
            FormatType::JsonSchema => {
                let missing = || SpecProblem::Value("the field \"schema\" is missing".to_owned());
                let given = json_schema.and_then(|named| named.schema).or(schema);
                given.ok_or_else(|| refused_at("json_schema", missing()))?
            }
        };
        inner(&json!({"json_schema": schema})).map(Some).map(Self)
    }
}
