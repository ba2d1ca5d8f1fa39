//! Documents over the tokens of a vocabulary.
//!
//! A token stays in the innermost value, or ends it and continues in the value around it. The tokens that stay depend
//! on the innermost value alone, and are cached for it. The other tokens are cached as remainders: the bytes of each
//! token after the end of the value. Remainders are then checked in the value around it, in the same way. The tokens of
//! free text are the same under all schemas.

use super::escape::TextAt;
use super::place::{Frame, Level, MemberSet, PlaceHash, Record, Stack};
use super::steps::new_table;
use super::text_tokens::{TextTokens, may_follow};
use super::{ArrayAt, Known, ObjectAt, Other, Place, UNKEPT};
use crate::schema::{JsonSchema, SchemaOptions};
use crate::shape::object::{Member, ObjectShape};
use crate::shape::{Blanks, Engine, Search, TextShape, lock};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use trie_core::TokenId;
use trie_core::work::{quiet, spend};
use trie_rules::{Legal, Rule, TextMachine, TextSet, TextState, TokenBytes, TokenTree, Walker};

/// No way on, and a way that was not asked yet. Numbers of places are less.
const DEAD: u32 = u32::MAX;
const UNKNOWN: u32 = u32::MAX - 1;
/// Places that are met in one walk at most; then it goes on without their ways.
const MOST_IN_A_WALK: usize = 16_384;
/// Bytes that ways and findings take before all are forgotten, where no limit is set.
const MOST_BYTES: usize = 32 << 20;
/// Bytes that a place takes, beside what it shares with others.
const PLACE: usize = size_of::<[u32; 256]>() + 256;

/// Remainders below some nodes, by these.
type RestsByNodes = HashMap<Vec<usize>, Option<Arc<Rests>>>;
/// Tokens found of a text, and its shape, which is held so that its address stays.
type TextFound = (Arc<TextShape>, Arc<ValueTokens>);

/// Token remainders: the bytes of tokens that are left where a value ends.
pub(super) struct Rests {
    /// No two have the same.
    number: u64,
    /// `None` for all of all tokens.
    tree: Option<TokenTree>,
    /// The same tokens with all of their bytes.
    whole: OnceLock<TokenTree>,
    /// Cache of the remainders below some nodes of the tree: of all tokens, and of those after which a document may go
    /// on behind a value.
    below: [Mutex<RestsByNodes>; 2],
    /// Tokens that end a text, from between two characters on, with their decoded text and its quote, in order.
    ending: OnceLock<Vec<(Box<[u8]>, TokenId)>>,
    /// The remainders in which nothing begins behind a comma, and the others.
    by_comma: OnceLock<[Option<Arc<Self>>; 2]>,
}

impl Rests {
    fn numbered(tree: Option<TokenTree>) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (whole, below) = (OnceLock::new(), Default::default());
        Arc::new(Self { number, tree, whole, below, ending: OnceLock::new(), by_comma: OnceLock::new() })
    }

    /// Returns the remainders of some tokens; `None` if there are none.
    pub(super) fn of(rows: Vec<(&[u8], TokenId)>) -> Option<Arc<Self>> {
        let tree = TokenTree::new(rows);
        (!tree.is_empty()).then(|| Self::numbered(Some(tree)))
    }

    pub(super) fn tree<'t>(&'t self, tokens: &'t TokenBytes) -> &'t TokenTree {
        self.tree.as_ref().unwrap_or_else(|| tokens.tree())
    }

    fn whole<'t>(&'t self, tokens: &'t TokenBytes) -> &'t TokenTree {
        let Some(tree) = &self.tree else { return tokens.tree() };
        self.whole.get_or_init(|| TokenTree::new(tree.tokens().iter().map(|&one| (tokens.bytes(one), one)).collect()))
    }

    /// Returns the remainders below some nodes: all, or those that may follow a value.
    pub(super) fn below(&self, tokens: &TokenBytes, nodes: Vec<usize>, follow: bool) -> Option<Arc<Self>> {
        /// Sets of nodes whose remainders are kept at most.
        const MOST: usize = 1024;
        if nodes.is_empty() {
            return None;
        }
        let below = &self.below[usize::from(follow)];
        if let Some(known) = lock(below).get(&nodes) {
            return known.clone();
        }
        let tree = self.tree(tokens);
        let mut all: Vec<_> = nodes.iter().flat_map(|at| rows(tree, at + 1, tokens)).collect();
        all.retain(|(rest, _)| !follow || may_follow(rest));
        let made = Self::of(all);
        let mut below = lock(below);
        if below.len() >= MOST {
            below.clear();
        }
        below.insert(nodes, made.clone());
        made
    }

    /// Returns the remainders in which nothing begins behind a comma, and the others.
    fn by_comma(&self, tokens: &TokenBytes) -> &[Option<Arc<Self>>; 2] {
        self.by_comma.get_or_init(|| {
            // A comma that is not the last byte but for blanks.
            let begins = |rest: &[u8]| {
                let rest = rest.trim_ascii_end();
                rest[..rest.len().saturating_sub(1)].contains(&b',')
            };
            let all = rows(self.tree(tokens), 0, tokens);
            let (others, ended) = all.into_iter().partition(|(rest, _)| begins(rest));
            [Self::of(ended), Self::of(others)]
        })
    }

    fn ending(&self, tokens: &TokenBytes) -> &[(Box<[u8]>, TokenId)] {
        self.ending.get_or_init(|| {
            let Some(machine) = TextMachine::new(&TextSet::full(), 0, None) else { return Vec::new() };
            let meant = |(rest, token): (&[u8], TokenId)| Some((super::escape::meant(&machine, rest)?, token));
            let meant = |row: (&[u8], TokenId)| if row.0.contains(&b'"') { meant(row) } else { None };
            let mut ending: Vec<(Box<[u8]>, TokenId)> = match &self.tree {
                Some(tree) => rows(tree, 0, tokens).into_iter().filter_map(meant).collect(),
                None => tokens.tree().tokens().iter().filter_map(|&one| meant((tokens.bytes(one), one))).collect(),
            };
            ending.sort_unstable();
            ending
        })
    }

    fn nbytes(&self) -> usize {
        self.tree.as_ref().map_or(0, TokenTree::nbytes)
    }
}

/// Allowed tokens and remainders of a value taken alone.
pub(super) struct ValueTokens {
    /// Tokens that go on in it, or end just where it does.
    pub(super) legal: Legal,
    /// Remainders of tokens that go on after the value.
    pub(super) rests: Vec<Arc<Rests>>,
    /// Remainders of tokens at the beginnings of names that the schema does not declare.
    pub(super) names: Vec<(Stack, Arc<Rests>)>,
}

impl ValueTokens {
    pub(super) fn new(legal: Legal, rests: Vec<Arc<Rests>>) -> Self {
        Self { legal, rests, names: Vec::new() }
    }
}

/// Tables of a vocabulary, shared by the documents of all schemas.
struct Vocabulary {
    all: Arc<Rests>,
    /// Tokens as contents of strings.
    text: OnceLock<Option<TextTokens>>,
    /// Tokens with a quote.
    quoted: OnceLock<TokenTree>,
}

/// Cache of the tables of each vocabulary in use.
static KNOWN: Mutex<Vec<(Weak<TokenBytes>, Arc<Vocabulary>)>> = Mutex::new(Vec::new());

impl Vocabulary {
    fn of(tokens: &Arc<TokenBytes>) -> Arc<Self> {
        let mut known = lock(&KNOWN);
        let is_own = |of: &Weak<TokenBytes>| std::ptr::eq(of.as_ptr(), Arc::as_ptr(tokens));
        if let Some((_, known)) = known.iter().find(|(of, _)| is_own(of)) {
            return Arc::clone(known);
        }
        let made = Arc::new(Self { all: Rests::numbered(None), text: OnceLock::new(), quoted: OnceLock::new() });
        known.retain(|(of, _)| of.strong_count() > 0);
        known.push((Arc::downgrade(tokens), Arc::clone(&made)));
        made
    }

    fn text(&self, tokens: &TokenBytes) -> Option<&TextTokens> {
        self.text.get_or_init(|| TextTokens::new(tokens)).as_ref()
    }

    fn quoted(&self, tokens: &TokenBytes) -> &TokenTree {
        self.quoted.get_or_init(|| {
            let all = tokens.tree().tokens().iter().map(|&token| (tokens.bytes(token), token));
            TokenTree::new(all.filter(|(bytes, _)| bytes.contains(&b'"')).collect())
        })
    }
}

/// Makes the tables of a vocabulary that all schemas share, and its tokens of free text, before the first schema asks
/// for them: some 10 ms for 150,000 tokens. A rule that needs a table meanwhile waits for it.
pub fn prepare_vocabulary(tokens: &Arc<TokenBytes>) {
    let Ok(text) = JsonSchema::new(r#"{"type": "string"}"#, SchemaOptions::default()) else { return };
    let Some(inside) = text.step(&text.start(), b'"') else { return };
    DocumentWalk::new(&text, tokens).legal(&inside, &mut vec![0; tokens.n_vocab().div_ceil(32)]);
}

/// Values alone that were met, and what was found of them.
struct ValueCache {
    table: u32,
    numbers: HashMap<Place, u32, PlaceHash>,
    states: Vec<State>,
    /// By the numbers of what is left of tokens and of a place.
    found: HashMap<(u64, u32), Arc<ValueTokens>, PlaceHash>,
    /// By the address of the shape of a text, and a state between two characters.
    texts: HashMap<(usize, TextState), TextFound, PlaceHash>,
    nbytes: usize,
    path: Vec<WalkedState>,
}

/// Position of a walk in the value that it looks at.
#[derive(Clone, Copy)]
enum WalkedState {
    Place(u32),
    /// In a name that the schema says, of those of a place: there the bytes of names are all that counts.
    Name {
        of: u32,
        known: (u32, u32, u32),
    },
}

struct State {
    /// Without the ways that begin a name; `None` without others.
    place: Option<Place>,
    row: Box<[u32; 256]>,
    /// True if the value may end here.
    is_end: bool,
    /// Ways that begin a name that the schema does not say.
    names: Box<[Stack]>,
    /// True if all that is there is a name that the schema says.
    is_name: bool,
    /// Places behind names that were begun here.
    named: Vec<(u32, u32)>,
}

impl Default for ValueCache {
    fn default() -> Self {
        let (numbers, states, path) = (HashMap::default(), Vec::new(), Vec::new());
        let (found, texts) = (HashMap::default(), HashMap::default());
        Self { table: new_table(), numbers, states, found, texts, nbytes: 0, path }
    }
}

/// The walk of a schema over a vocabulary.
pub(crate) struct DocumentWalk {
    schema: JsonSchema,
    tokens: Arc<TokenBytes>,
    vocabulary: Arc<Vocabulary>,
    floor: Arc<Level>,
    alone: Mutex<ValueCache>,
    most_bytes: AtomicU64,
}

impl fmt::Debug for DocumentWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentWalk").finish_non_exhaustive()
    }
}

/// There was no room for another place.
struct Full;

impl DocumentWalk {
    pub(crate) fn new(schema: &JsonSchema, tokens: &Arc<TokenBytes>) -> Self {
        Self {
            schema: schema.clone(),
            tokens: Arc::clone(tokens),
            vocabulary: Vocabulary::of(tokens),
            floor: Level::new(Frame::Floor(0), None),
            alone: Mutex::default(),
            most_bytes: AtomicU64::new(MOST_BYTES as u64),
        }
    }

    /// Computes the tokens of an alternative's innermost value, and the alternatives that follow that value.
    fn top(
        &self,
        alone: &mut ValueCache,
        stack: &Stack,
        blank: u32,
        rests: &Arc<Rests>,
    ) -> (Arc<ValueTokens>, Vec<Stack>) {
        let engine = self.schema.engine();
        let Some(level) = &stack.top else {
            return (Arc::new(ValueTokens::new(Legal::from_mask(&[]), Vec::new())), Vec::new());
        };
        let mut behind = Vec::new();
        if let Some((shape, members, other)) = name_of(level) {
            if !other.at.is_between() {
                return (self.in_character(alone, stack, other), behind);
            }
            // All names but some are all texts, but for the tokens that end one of these.
            let free = engine.free_text().filter(|_| shape.classes[other.class as usize].is_all);
            let found = match free {
                Some(free) => self.text(alone, level, (free, TextAt::start(&free.machine)), rests),
                None => self.text(alone, level, (&other.shape, other.at), rests),
            };
            let member = Member::Other(other.class, UNKEPT.into());
            let mut search = Search::new();
            let may_come = engine.may_come(shape, &members.members, &member, &mut search);
            search.refused().unwrap_or_else(|refused| engine.fail(refused));
            if may_come {
                let (shape, members) = (Arc::clone(shape), Arc::clone(members));
                let frame = Frame::Object { shape, members, at: ObjectAt::Named(member) };
                let top = Some(Level::new(frame, level.below.clone()));
                behind.push(Stack { top, record: stack.record.clone() });
            }
            return (self.but_taken(&found, rests, level, may_come), behind);
        }
        let found = match &level.frame {
            Frame::Text { shape, at } => self.text(alone, level, (shape, *at), rests),
            frame => {
                // Outside of all values there is nothing behind one.
                let below = || level.below.as_ref().map(|below| self.floor(below));
                let number = self.number_alone(alone, level, blank, || Place::alone(frame.clone(), below(), blank));
                self.found(alone, rests, number)
            }
        };
        if !found.rests.is_empty() && !stack.record.is_on() {
            engine.behind(level.below.as_ref(), stack.record.clone(), &mut behind);
        }
        (found, behind)
    }

    /// Returns the stack behind a text of an item that is compared with others, if what is allowed there is the same
    /// whatever the text is, up to where another item begins.
    fn behind_any(&self, stack: &Stack) -> Option<Stack> {
        let level = stack.top.as_ref().filter(|level| matches!(level.frame, Frame::Text { .. }))?;
        let around = level.below.as_ref()?;
        let mut search = Search::new();
        for outer in std::iter::successors(Some(around), |outer| outer.below.as_ref()) {
            let start = match &outer.frame {
                Frame::Array { shape, items, at: ArrayAt::Item(start) } => {
                    // The text itself differs from those before it; of what it is part of that is not known.
                    let is_first = items.seen.as_ref().is_none_or(|seen| seen.all.is_empty());
                    let differs = Arc::ptr_eq(outer, around) || is_first;
                    if shape.keeps(items) && !(differs && self.schema.engine().has_others(shape, items, &mut search)) {
                        return None;
                    }
                    *start
                }
                Frame::Object { at: ObjectAt::Value, .. } => continue,
                _ => return None,
            };
            if start == 0 {
                break;
            }
        }
        search.refused().ok()?;
        let frame = match &around.frame {
            Frame::Array { shape, items, .. } => {
                Frame::Array { shape: Arc::clone(shape), items: items.clone(), at: ArrayAt::After }
            }
            Frame::Object { shape, members, .. } => {
                Frame::Object { shape: Arc::clone(shape), members: Arc::clone(members), at: ObjectAt::After }
            }
            _ => return None,
        };
        // Nothing is compared before another item begins.
        Some(Stack { top: Some(Level::new(frame, around.below.clone())), record: Record::default() })
    }

    /// Returns what stands below a value that is looked at alone.
    fn floor(&self, below: &Level) -> Arc<Level> {
        match self.schema.engine().written.blanks {
            Blanks::Flexible if below.depth > 0 => Level::new(Frame::Floor(below.depth), None),
            _ => Arc::clone(&self.floor),
        }
    }

    /// Computes the tokens of a text alone, which is all of a level.
    fn text(
        &self,
        alone: &mut ValueCache,
        level: &Level,
        (shape, at): (&Arc<TextShape>, TextAt),
        rests: &Arc<Rests>,
    ) -> Arc<ValueTokens> {
        if rests.tree.is_none()
            && let Some(state) = at.between()
            && let Some(text) = self.vocabulary.text(&self.tokens)
        {
            let key = (Arc::as_ptr(shape) as usize, state);
            if let Some((_, known)) = alone.texts.get(&key) {
                return Arc::clone(known);
            }
            let found = text.found(&self.tokens, shape, state);
            if !self.schema.failing() {
                alone.nbytes += found.legal.nbytes() + 64;
                alone.texts.insert(key, (Arc::clone(shape), Arc::clone(&found)));
            }
            return found;
        }
        let number = self.number_alone(alone, level, 0, || self.text_alone(shape, at));
        self.found(alone, rests, number)
    }

    fn text_alone(&self, shape: &Arc<TextShape>, at: TextAt) -> Place {
        Place::alone(Frame::Text { shape: Arc::clone(shape), at }, Some(Arc::clone(&self.floor)), 0)
    }

    /// Returns the tokens of an undeclared name without those that complete it to a name that is not allowed, or,
    /// unless `may_end`, without all that end it.
    fn but_taken(&self, found: &Arc<ValueTokens>, rests: &Rests, level: &Level, may_end: bool) -> Arc<ValueTokens> {
        let Some((shape, members, other)) = name_of(level) else { return Arc::clone(found) };
        let begun = other.text.as_deref().unwrap_or(&[]);
        // Of all tokens only those end a text that may.
        let special = self.vocabulary.text(&self.tokens).and_then(TextTokens::special);
        let ending = special.filter(|_| rests.tree.is_none()).unwrap_or(rests).ending(&self.tokens);
        let mut denied: Vec<TokenId> = Vec::new();
        if !may_end {
            denied.extend(ending.iter().map(|&(_, one)| one));
        }
        for name in shape.names_from(begun).chain(members.members.names_from(begun)) {
            let rest = [&name.as_bytes()[begun.len()..], b"\""].concat();
            let from = ending.partition_point(|(text, _)| **text < *rest);
            denied.extend(ending[from..].iter().take_while(|(text, _)| **text == *rest).map(|&(_, one)| one));
        }
        if denied.is_empty() {
            return Arc::clone(found);
        }
        denied.sort_unstable();
        let is_denied = |one: &TokenId| denied.binary_search(one).is_ok();
        let legal = match &found.legal {
            Legal::Ids(ids) => Legal::Ids(ids.iter().copied().filter(|one| !is_denied(one)).collect()),
            Legal::Words(words) => {
                let mut words = words.to_vec();
                for one in &denied {
                    words[one.index() / 32] &= !(1 << (one.index() % 32));
                }
                Legal::Words(words.into())
            }
        };
        let left = found.rests.iter().filter_map(|rests| {
            let tree = rests.tree(&self.tokens);
            if !tree.tokens().iter().any(is_denied) {
                return Some(Arc::clone(rests));
            }
            let mut left = rows(tree, 0, &self.tokens);
            left.retain(|(_, one)| !is_denied(one));
            Rests::of(left)
        });
        Arc::new(ValueTokens::new(legal, left.collect()))
    }

    /// Computes the allowed tokens inside a character of an undeclared name. The beginning of the name matters only for
    /// tokens that end it.
    fn in_character(&self, alone: &mut ValueCache, stack: &Stack, other: &Other) -> Arc<ValueTokens> {
        let number = alone.number(self, self.text_alone(&other.shape, other.at));
        let found = self.found(alone, &self.vocabulary.all, number);
        let mut words = vec![0; self.tokens.n_vocab().div_ceil(32)];
        found.legal.add_to(&mut words);
        let quoted = self.vocabulary.quoted(&self.tokens);
        quoted.tokens().iter().for_each(|one| words[one.index() / 32] &= !(1 << (one.index() % 32)));
        for one in self.walked(stack, 0, quoted) {
            words[one.index() / 32] |= 1 << (one.index() % 32);
        }
        Arc::new(ValueTokens::new(Legal::from_mask(&words), Vec::new()))
    }

    /// Returns the number of a level taken alone, without the levels around it.
    fn number_alone(&self, alone: &mut ValueCache, level: &Level, blank: u32, place: impl FnOnce() -> Place) -> u32 {
        if blank != 0 {
            return alone.number(self, place());
        }
        level.number.of(alone.table).unwrap_or_else(|| {
            let number = alone.number(self, place());
            level.number.set(alone.table, number);
            number
        })
    }

    fn found(&self, alone: &mut ValueCache, rests: &Arc<Rests>, from: u32) -> Arc<ValueTokens> {
        if let Some(known) = alone.found.get(&(rests.number, from)) {
            return Arc::clone(known);
        }
        let Ok(found) = self.scan(alone, rests, from) else {
            let place = alone.states[from as usize].place.clone();
            let nothing = || ValueTokens::new(Legal::from_mask(&[]), Vec::new());
            return Arc::new(place.map_or_else(nothing, |place| self.scan_once(rests, place)));
        };
        let found = Arc::new(found);
        if !self.schema.failing() {
            alone.nbytes += found.legal.nbytes() + found.rests.iter().map(|rests| rests.nbytes()).sum::<usize>() + 64;
            alone.found.insert((rests.number, from), Arc::clone(&found));
        }
        found
    }

    /// Looks at what is left of tokens in a value.
    fn scan(&self, alone: &mut ValueCache, rests: &Arc<Rests>, from: u32) -> Result<ValueTokens, Full> {
        let tree = rests.tree(&self.tokens);
        let mut path = std::mem::take(&mut alone.path);
        path.clear();
        let mut found = ValueScan::new(rests, &self.tokens, alone.states[from as usize].is_end);
        // Where names begin that the schema does not say, by the place.
        let mut begun: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let (nodes, start) = (tree.nodes(), alone.walked(from));
        let mut at = 0;
        while let Some(&node) = nodes.get(at) {
            if spend(1).is_err() {
                break;
            }
            path.truncate(node.depth());
            let next = match path.last().copied().unwrap_or(start) {
                WalkedState::Place(state) => {
                    let next = match alone.states[state as usize].row[usize::from(node.byte())] {
                        UNKNOWN => alone.step(self, state, node.byte())?,
                        known => known,
                    };
                    (next != DEAD).then(|| (alone.walked(next), Some(next)))
                }
                WalkedState::Name { of, known } => {
                    alone.step_name(self, of, known, node.byte())?.map(|next| (next, None))
                }
            };
            let Some((next, number)) = next else {
                at = node.subtree_end();
                continue;
            };
            // In a name, and just behind it, no value may end and no name may begin.
            let state = number.map(|number| &alone.states[number as usize]);
            found.node(at, state.is_some_and(|state| state.is_end));
            if let (Some(state), Some(number)) = (state, number)
                && !state.names.is_empty()
            {
                begun.entry(number).or_default().push(at);
            }
            path.push(next);
            at += 1;
        }
        alone.path = path;
        for (state, nodes) in begun {
            let Some(rests) = rests.below(&self.tokens, nodes, false) else { continue };
            let names = alone.states[state as usize].names.iter();
            found.names.extend(names.map(|name| (name.clone(), Arc::clone(&rests))));
        }
        Ok(found.done())
    }

    /// The same without remembering ways.
    fn scan_once(&self, rests: &Arc<Rests>, from: Place) -> ValueTokens {
        let tree = rests.tree(&self.tokens);
        let mut found = ValueScan::new(rests, &self.tokens, is_end(&from));
        let mut path = vec![from];
        let mut at = 0;
        while let Some(&node) = tree.nodes().get(at) {
            path.truncate(node.depth() + 1);
            let next = path.last().and_then(|place| self.schema.engine().step(place, node.byte()));
            let Some(next) = next.filter(|_| spend(1).is_ok()) else {
                at = node.subtree_end();
                continue;
            };
            found.node(at, is_end(&next));
            path.push(next);
            at += 1;
        }
        found.done()
    }

    /// The tokens of a tree that go on in a way, whatever stands around it.
    fn walked(&self, stack: &Stack, blank: u32, tree: &TokenTree) -> Vec<TokenId> {
        let mut path = vec![Place::of_one(stack.clone(), blank)];
        let (mut ids, mut at) = (Vec::new(), 0);
        while let Some(&node) = tree.nodes().get(at) {
            path.truncate(node.depth() + 1);
            let next = path.last().and_then(|place| self.schema.engine().step(place, node.byte()));
            let Some(next) = next.filter(|_| spend(1).is_ok()) else {
                at = node.subtree_end();
                continue;
            };
            ids.extend_from_slice(tree.ending(at..at + 1));
            path.push(next);
            at += 1;
        }
        ids
    }

    fn room(&self) -> std::sync::MutexGuard<'_, ValueCache> {
        let mut alone = lock(&self.alone);
        let most = self.most_bytes.load(Ordering::Relaxed) as usize;
        if alone.nbytes + alone.states.len() * PLACE > most || alone.states.len() > MOST_IN_A_WALK / 2 {
            *alone = ValueCache::default();
        }
        alone
    }

    fn parts(&self, place: &Place) -> Vec<Legal> {
        let alone = &mut *self.room();
        let mut parts: Vec<Legal> = Vec::new();
        for whole in place.stacks() {
            let mut open = vec![(whole.clone(), place.blank(), Arc::clone(&self.vocabulary.all))];
            while let Some((stack, blank, rests)) = open.pop() {
                let (found, behind) = self.top(alone, &stack, blank, &rests);
                if !found.legal.is_empty() {
                    parts.push(found.legal.clone());
                }
                let mut walk = |rests: &Rests| {
                    let ids = self.walked(whole, place.blank(), rests.whole(&self.tokens));
                    parts.push(Legal::of_ids(ids, self.tokens.n_vocab()));
                };
                // What comes behind a value that is compared with others depends on all of its text.
                let is_compared = stack.record.is_on();
                let behind_any = if is_compared { self.behind_any(&stack) } else { None };
                for rests in &found.rests {
                    if !is_compared {
                        open.extend(behind.iter().map(|stack| (stack.clone(), 0, Arc::clone(rests))));
                    } else if let Some(behind) = &behind_any {
                        let [ended, others] = rests.by_comma(&self.tokens);
                        open.extend(ended.iter().map(|rests| (behind.clone(), 0, Arc::clone(rests))));
                        if let Some(rests) = others {
                            walk(rests);
                        }
                    } else {
                        walk(rests);
                    }
                }
                let below = stack.top.as_ref().and_then(|level| level.below.as_ref());
                for (name, rests) in &found.names {
                    // And so does a name behind one that was not kept.
                    let is_second = name.top.as_ref().is_some_and(|level| {
                        name_of(level).is_some_and(|(_, members, _)| {
                            members.members.names_from(UNKEPT.as_bytes()).next().is_some()
                        })
                    });
                    if is_compared || is_second {
                        walk(rests);
                        continue;
                    }
                    let top = name.top.as_ref().and_then(|level| grafted(level, below));
                    open.push((Stack { top, record: Record::default() }, 0, Arc::clone(rests)));
                }
            }
        }
        parts
    }
}

/// A name that the schema does not say, if a level is in one of more than anybody counts.
fn name_of(level: &Level) -> Option<(&Arc<ObjectShape>, &Arc<MemberSet>, &Other)> {
    match &level.frame {
        Frame::Object { shape, members, at: ObjectAt::Other(other) } if shape.is_wide(other.class) => {
            Some((shape, members, other))
        }
        _ => None,
    }
}

/// A name that the schema says, if that is all that a place is in: with its level.
fn known_of(place: &Place) -> Option<(&Level, &Arc<ObjectShape>, &Arc<MemberSet>, &Known)> {
    let level = place.only()?;
    match &level.frame {
        Frame::Object { shape, members, at: ObjectAt::Known(known) } => Some((level, shape, members, known)),
        _ => None,
    }
}

/// A level with what stands around it instead of the floor.
fn grafted(level: &Level, below: Option<&Arc<Level>>) -> Option<Arc<Level>> {
    match &level.frame {
        Frame::Floor(_) => below.cloned(),
        frame => Some(Level::new(frame.clone(), level.below.as_ref().and_then(|own| grafted(own, below)))),
    }
}

/// Returns the tokens of a tree from a node on, below the node before it, with the bytes that are below that one.
fn rows<'t>(tree: &TokenTree, from: usize, tokens: &'t TokenBytes) -> Vec<(&'t [u8], TokenId)> {
    let nodes = tree.nodes();
    let (end, depth) = match from.checked_sub(1) {
        Some(above) => (nodes[above].subtree_end(), nodes[above].depth() + 1),
        None => (nodes.len(), 0),
    };
    let mut rows = Vec::new();
    for (at, node) in nodes.iter().enumerate().take(end).skip(from) {
        let length = node.depth() + 1 - depth;
        rows.extend(tree.ending(at..at + 1).iter().map(|&token| (last(tokens, token, length), token)));
    }
    rows
}

/// So many last bytes of a token.
fn last(tokens: &TokenBytes, token: TokenId, length: usize) -> &[u8] {
    let bytes = tokens.bytes(token);
    &bytes[bytes.len() - length..]
}

/// Returns whether the value that is looked at alone may end.
fn is_end(place: &Place) -> bool {
    place.stacks().filter_map(|stack| stack.top.as_ref()).any(|level| {
        let is_last = level.below.as_ref().is_some_and(|below| matches!(below.frame, Frame::Floor(_)));
        matches!(level.frame, Frame::Floor(_)) || is_last && Engine::may_be_over(&level.frame)
    })
}

/// Accumulated result of a scan.
struct ValueScan<'t> {
    tokens: &'t TokenBytes,
    scanned: &'t Arc<Rests>,
    tree: &'t TokenTree,
    ids: Vec<TokenId>,
    /// Nodes at which the value ends, with tokens below them.
    over: Vec<usize>,
    rests: Vec<Arc<Rests>>,
    names: Vec<(Stack, Arc<Rests>)>,
}

impl<'t> ValueScan<'t> {
    fn new(scanned: &'t Arc<Rests>, tokens: &'t TokenBytes, is_end: bool) -> Self {
        // Where it may end before the first byte, all is left.
        let rests = if is_end { vec![Arc::clone(scanned)] } else { Vec::new() };
        let tree = scanned.tree(tokens);
        Self { tokens, scanned, tree, ids: Vec::new(), over: Vec::new(), rests, names: Vec::new() }
    }

    /// A node that goes on.
    fn node(&mut self, at: usize, is_end: bool) {
        self.ids.extend_from_slice(self.tree.ending(at..at + 1));
        if is_end && self.tree.nodes()[at].subtree_end() > at + 1 {
            self.over.push(at);
        }
    }

    fn done(mut self) -> ValueTokens {
        self.rests.extend(self.scanned.below(self.tokens, self.over, true));
        ValueTokens { legal: Legal::of_ids(self.ids, self.tokens.n_vocab()), rests: self.rests, names: self.names }
    }
}

impl ValueCache {
    fn number(&mut self, walk: &DocumentWalk, place: Place) -> u32 {
        if let Some(&number) = self.numbers.get(&place) {
            return number;
        }
        let number = self.states.len() as u32;
        self.numbers.insert(place.clone(), number);
        let is_name = |stack: &&Stack| stack.top.as_ref().is_some_and(|level| name_of(level).is_some());
        let names: Box<[Stack]> = place.stacks().filter(is_name).cloned().collect();
        let (is_end, place) = if names.is_empty() {
            (is_end(&place), Some(place))
        } else {
            let others = place.stacks().filter(|stack| !is_name(stack)).cloned().collect();
            (is_end(&place), Place::of(others, place.blank()))
        };
        let mut row = Box::new([DEAD; 256]);
        if let Some(place) = &place {
            walk.schema.engine().bytes_from(place, &mut |byte| row[usize::from(byte)] = UNKNOWN);
        }
        let is_name = place.as_ref().is_some_and(|place| known_of(place).is_some());
        self.states.push(State { place, row, is_end, names, is_name, named: Vec::new() });
        number
    }

    /// Returns how a walk goes on from a state.
    fn walked(&self, state: u32) -> WalkedState {
        let State { place, is_name, .. } = &self.states[state as usize];
        match place.as_ref().filter(|_| *is_name).and_then(known_of) {
            Some((.., known)) => WalkedState::Name { of: state, known: (known.from, known.to, known.depth) },
            None => WalkedState::Place(state),
        }
    }

    /// Takes one more byte of a name that begins in a state.
    fn step_name(
        &mut self,
        walk: &DocumentWalk,
        of: u32,
        (from, to, depth): (u32, u32, u32),
        byte: u8,
    ) -> Result<Option<WalkedState>, Full> {
        let State { place, named, .. } = &self.states[of as usize];
        let Some((level, shape, members, known)) = place.as_ref().and_then(known_of) else { return Ok(None) };
        let Some((known, name)) = known.step_from(shape, (from, to, depth), byte) else { return Ok(None) };
        let Some(name) = name else { return Ok(Some(WalkedState::Name { of, known })) };
        if let Some(&(_, number)) = named.iter().find(|(own, _)| *own == name) {
            return Ok(Some(WalkedState::Place(number)));
        }
        let (shape, members) = (Arc::clone(shape), Arc::clone(members));
        let frame = Frame::Object { shape, members, at: ObjectAt::Named(Member::Named(name)) };
        let next = Place::alone(frame, level.below.clone(), 0);
        if self.states.len() >= MOST_IN_A_WALK && !self.numbers.contains_key(&next) {
            return Err(Full);
        }
        let number = self.number(walk, next);
        self.states[of as usize].named.push((name, number));
        Ok(Some(WalkedState::Place(number)))
    }

    fn step(&mut self, walk: &DocumentWalk, from: u32, byte: u8) -> Result<u32, Full> {
        let Some(place) = &self.states[from as usize].place else { return Ok(DEAD) };
        let next = walk.schema.engine().step(place, byte);
        // What failed is asked again.
        if next.is_none() && walk.schema.failing() {
            return Ok(DEAD);
        }
        let is_new = next.as_ref().is_some_and(|next| !self.numbers.contains_key(next));
        if is_new && self.states.len() >= MOST_IN_A_WALK {
            return Err(Full);
        }
        let next = next.map_or(DEAD, |next| self.number(walk, next));
        let State { place, row, .. } = &mut self.states[from as usize];
        row[usize::from(byte)] = next;
        // Characters that nothing tells apart lead to the same.
        let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
        if let Some(text) = place.as_ref().and_then(Place::text).filter(|_| is_plain(byte)) {
            let class = text.class(byte);
            (b' '..0x7f).filter(|&other| is_plain(other) && text.class(other) == class).for_each(|other| {
                row[usize::from(other)] = next;
            });
        }
        Ok(next)
    }
}

impl Walker<Place> for DocumentWalk {
    fn tokens(&self, place: &Place, words: &mut [u32]) {
        for part in quiet(|| self.parts(place)) {
            part.add_to(words);
        }
    }

    fn legal(&self, place: &Place, words: &mut [u32]) -> Legal {
        let mut parts = quiet(|| self.parts(place));
        if parts.len() == 1 {
            return parts.remove(0);
        }
        if parts.iter().all(|part| matches!(part, Legal::Ids(_))) {
            let ids = parts.iter().filter_map(|part| if let Legal::Ids(ids) = part { Some(&**ids) } else { None });
            return Legal::of_ids(ids.flatten().copied().collect(), self.tokens.n_vocab());
        }
        for part in parts {
            part.add_to(words);
        }
        Legal::Words((&*words).into())
    }

    fn nbytes(&self) -> usize {
        let alone = lock(&self.alone);
        alone.nbytes + alone.states.len() * PLACE
    }

    fn limit(&self, bytes: usize) {
        self.most_bytes.store(bytes.max(64 * PLACE) as u64, Ordering::Relaxed);
    }

    fn forget(&self) {
        // One that is just walking keeps what it has.
        if let Ok(mut alone) = self.alone.try_lock() {
            *alone = ValueCache::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_vocabulary_has_the_tables_of_texts() {
        let rows = [(&b"\""[..], 0), (b"a", 1), (b"\",", 2)];
        let rows = rows.map(|(bytes, id)| (bytes, TokenId::new(id).unwrap()));
        let tokens = Arc::new(TokenBytes::new(3, rows).unwrap());
        assert!(Vocabulary::of(&tokens).text.get().is_none());
        prepare_vocabulary(&tokens);
        assert!(Vocabulary::of(&tokens).text.get().is_some());
    }
}
