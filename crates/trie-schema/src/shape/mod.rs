//! Shapes of values: the constraints on a value, sorted by its kind, with all keywords of one kind together.

pub(crate) mod array;
mod normal;
pub(crate) mod object;
mod possible;
mod scalar;
mod valid;
mod values;

use crate::formula::{Formula, Kind, Literal, NONE, Node, Types};
use crate::json::Json;
use crate::machine::Steps;
use crate::writable::Writable;
use array::{ArrayShape, Items};
use lru::LruCache;
use normal::Said;
use object::ObjectShape;
pub(crate) use possible::Search;
pub(crate) use scalar::TextShape;
use scalar::{MOST_SHARED, NumberKey, TextKey, keep};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use trie_core::work::LimitExceeded;
use trie_rules::{Automaton, NumberMachine, Rule};

/// Approximate number of copies of a formula, or of a goal's literals, that exist while shapes are computed. Their
/// memory is counted this many times.
const COPIES: usize = 8;

/// Goals that are shared at most; later ones are made anew.
const MOST_GOALS: usize = 200_000;
/// The same of goals that leave out what was written.
const MOST_PASSING: usize = 1024;

/// Reason why the constraints on a value could not be decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Refused {
    /// A keyword at a place, and why.
    TooLarge {
        at: Arc<str>,
        keyword: &'static str,
        why: String,
    },
    Over(LimitExceeded),
}

/// Sets of values that counts and clauses tell apart at most.
const MOST_CELLS: usize = 512;

impl Refused {
    /// Returns the refusal of more than [`MOST_CELLS`] sets of values, whose place is not known.
    fn cells(keyword: &'static str) -> Self {
        let why = format!("more than {MOST_CELLS} sets of values are told apart at once");
        Self::TooLarge { at: "".into(), keyword, why }
    }
}

impl From<LimitExceeded> for Refused {
    fn from(over: LimitExceeded) -> Self {
        Self::Over(over)
    }
}

/// Goal of one value: it must match all of some schemas, and none of others.
pub(crate) struct Goal {
    pub(crate) literals: Box<[Literal]>,
    hash: u64,
    shapes: Mutex<Option<Result<Arc<Shapes>, Refused>>>,
    /// True if some value is of it: 0 where that is not known yet, 1 for one, 2 for none.
    possible: AtomicU8,
    /// One more than the levels that a value of it needs; 0 where that is not known yet.
    levels: AtomicU8,
}

impl PartialEq for Goal {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.hash == other.hash && self.literals == other.literals
    }
}

impl Eq for Goal {}

impl Hash for Goal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Goal").field(&self.literals.len()).finish()
    }
}

impl Goal {
    fn of(literals: Vec<Literal>) -> Self {
        let mut hash = DefaultHasher::new();
        literals.hash(&mut hash);
        let (shapes, possible, levels) = (Mutex::new(None), AtomicU8::new(0), AtomicU8::new(0));
        Self { hash: hash.finish(), literals: literals.into(), shapes, possible, levels }
    }
}

/// The ways in which a value of a goal may look.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    pub(crate) null: bool,
    pub(crate) is_true: bool,
    pub(crate) is_false: bool,
    pub(crate) numbers: Vec<Arc<NumberMachine>>,
    pub(crate) texts: Vec<Arc<TextShape>>,
    pub(crate) arrays: Vec<Arc<ArrayShape>>,
    pub(crate) objects: Vec<Arc<ObjectShape>>,
    pub(crate) listed: Option<Arc<Listed>>,
}

/// Values that are listed, as texts with a mark where blanks may stand.
#[derive(Debug)]
pub(crate) struct Listed {
    /// In order.
    pub(crate) texts: Vec<Box<[u8]>>,
}

/// Stands where blanks may; no byte of any text.
pub(crate) const MARK: u8 = 0xff;

/// Characters of whitespace in a row where it is flexible, at most.
pub(crate) const MOST_FLEXIBLE: usize = 8;

/// Whitespace allowed between the parts of a document.
#[derive(Debug, Clone, Default)]
pub(crate) enum Blanks {
    None,
    /// One space behind a comma or a colon, or none.
    #[default]
    Compact,
    /// A few of any, or a line break and as much indentation as the depth allows.
    Flexible,
    Any,
    Pattern(Automaton),
}

/// In flexible whitespace: a line break and nothing but spaces behind it, whose number is added. Other whitespace is
/// the number of its characters.
const INDENTED: u32 = 1 << 16;

impl Blanks {
    /// Returns whether blanks may be over; 0 is outside of them.
    pub(crate) fn is_end(&self, blank: u32) -> bool {
        match self {
            Self::None | Self::Compact | Self::Flexible | Self::Any => true,
            Self::Pattern(automaton) => blank == 0 || automaton.is_end(&(blank - 1)),
        }
    }

    /// Returns the state after one more byte; `depth` is the number of arrays and objects that are open.
    pub(crate) fn step(&self, blank: u32, byte: u8, depth: impl Fn() -> usize) -> Option<u32> {
        const MOST: u32 = MOST_FLEXIBLE as u32;
        match self {
            Self::None => None,
            Self::Compact => (blank == 0 && byte == b' ').then_some(1),
            Self::Flexible => match (blank.checked_sub(INDENTED), byte) {
                (None, b'\n') if blank == 0 => Some(INDENTED),
                (None, _) => (blank < MOST).then_some(blank + 1),
                (Some(spaces), b' ') => {
                    let is_indentation = spaces + 1 < MOST || (spaces as usize) < 2 * depth();
                    is_indentation.then_some(blank + 1)
                }
                (Some(spaces), _) => (spaces + 1 < MOST).then_some(spaces + 2),
            },
            Self::Any => Some(0),
            Self::Pattern(automaton) => {
                let from = blank.checked_sub(1).unwrap_or_else(|| automaton.start());
                automaton.step(&from, byte).map(|at| at + 1)
            }
        }
    }
}

/// Spelling of documents: the freedom that a writer has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    pub(crate) blanks: Blanks,
    /// True if any character may be written as an escape.
    pub(crate) escapes: bool,
    /// True if members come in any order.
    pub(crate) any_order: bool,
    /// True if whole numbers may have a fraction or an exponent.
    pub(crate) any_spelling: bool,
    /// Limits on the texts that can be written, however values are spelled; `None` if there are none.
    pub(crate) writable: Option<Arc<Writable>>,
}

/// A schema whose goals are decided while documents are written.
pub(crate) struct Engine {
    pub(crate) nodes: Vec<Node>,
    pub(crate) written: Written,
    pub(crate) goals: Mutex<HashMap<Box<[Literal]>, Arc<Goal>>>,
    /// Levels that a value of one of so many goals needs at most.
    pub(crate) deepest: Mutex<(usize, usize)>,
    /// Goals without values that were written: the last of them.
    passing: Mutex<LruCache<Box<[Literal]>, Arc<Goal>>>,
    /// Ways in which items go on that are told apart by what was written, of the last places that were asked about.
    cells: Mutex<LruCache<(usize, Items), Known>>,
    /// Steps that were made.
    pub(crate) steps: Steps,
    common: Arc<Common>,
}

/// Alternatives for the next item of an array, kept with the array.
type Known = (Arc<ArrayShape>, Arc<[(Arc<Goal>, Items)]>);

/// Shapes and machines that many goals share.
#[derive(Default)]
pub(crate) struct Common {
    any: OnceLock<Arc<Shapes>>,
    /// By the texts of leaves.
    leaves: Mutex<HashMap<Arc<str>, Arc<Shapes>>>,
    /// The shape of all texts.
    text: OnceLock<Option<Arc<TextShape>>>,
    texts: Mutex<HashMap<TextKey, Option<Arc<TextShape>>>>,
    numbers: Mutex<HashMap<NumberKey, Option<Arc<NumberMachine>>>>,
}

impl Common {
    /// Returns whether some of it has no more room.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.leaves).len().max(lock(&self.texts).len()).max(lock(&self.numbers).len()) >= MOST_SHARED
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("schemas", &self.nodes.len()).finish_non_exhaustive()
    }
}

impl Drop for Engine {
    /// Goals hold shapes, which hold goals.
    fn drop(&mut self) {
        for goal in lock(&self.goals).values() {
            drop(lock(&goal.shapes).take());
        }
        for (_, goal) in &*lock(&self.passing) {
            drop(lock(&goal.shapes).take());
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    pub(crate) fn new(nodes: Vec<Node>, written: Written) -> Self {
        Self::sharing(nodes, written, &Arc::default())
    }

    /// Builds an engine that shares what others have that write values alike.
    pub(crate) fn sharing(nodes: Vec<Node>, written: Written, common: &Arc<Common>) -> Self {
        let common = Arc::clone(common);
        // With a bound of their own they would hold all of their memory from the beginning.
        let passing = Mutex::new(LruCache::unbounded());
        let cells = Mutex::new(LruCache::unbounded());
        let (goals, deepest, steps) = (Mutex::default(), Mutex::default(), Steps::default());
        Self { nodes, written, goals, deepest, passing, cells, steps, common }
    }

    /// The goal of some literals.
    pub(crate) fn goal(&self, literals: impl IntoIterator<Item = Literal>) -> Arc<Goal> {
        let mut plain = Vec::new();
        let mut open: Vec<Literal> = literals.into_iter().collect();
        let mut turns = 0;
        while let Some(literal) = open.pop() {
            turns += 1;
            let (node, sign) = match &literal {
                Literal::Is(node) => (*node, true),
                Literal::IsNot(node) => (*node, false),
                _ => {
                    plain.push(literal);
                    continue;
                }
            };
            match (&self.nodes[node as usize].formula, sign) {
                (Formula::True, true) | (Formula::False, false) | (Formula::Unheld, _) => {}
                (Formula::False, true) | (Formula::True, false) => return self.known(vec![Literal::Is(NONE)]),
                // Not for ever, where one leads back to itself.
                (Formula::Schema(other), _) if turns < 10_000 => {
                    open.push(if sign { Literal::Is(*other) } else { Literal::IsNot(*other) });
                }
                (Formula::Not(inner), _) if turns < 10_000 => match &**inner {
                    Formula::Schema(other) => {
                        open.push(if sign { Literal::IsNot(*other) } else { Literal::Is(*other) });
                    }
                    _ => plain.push(literal),
                },
                (Formula::All(all), true)
                    if turns < 10_000 && all.iter().all(|one| matches!(one, Formula::Schema(_))) =>
                {
                    open.extend(all.iter().filter_map(|one| match one {
                        Formula::Schema(other) => Some(Literal::Is(*other)),
                        _ => None,
                    }));
                }
                _ => plain.push(literal),
            }
        }
        plain.sort_unstable();
        plain.dedup();
        let is_denied = |literal: &Literal| plain.binary_search(&literal.negated()).is_ok();
        if plain.iter().any(is_denied) {
            plain = vec![Literal::Is(NONE)];
        }
        self.known(plain)
    }

    fn known(&self, literals: Vec<Literal>) -> Arc<Goal> {
        // Values that were written are others in each document.
        if literals.iter().any(|literal| matches!(literal, Literal::NotIn(_) | Literal::In(_))) {
            let made = || Arc::new(Goal::of(literals.clone()));
            let mut passing = lock(&self.passing);
            let goal = Arc::clone(passing.get_or_insert(literals.clone().into(), made));
            if passing.len() > MOST_PASSING {
                passing.pop_lru();
            }
            return goal;
        }
        let mut goals = lock(&self.goals);
        if let Some(goal) = goals.get(&*literals) {
            return Arc::clone(goal);
        }
        let goal = Arc::new(Goal::of(literals));
        if goals.len() < MOST_GOALS {
            goals.insert(goal.literals.clone(), Arc::clone(&goal));
        }
        goal
    }

    /// With one literal more.
    pub(crate) fn with(&self, goal: &Goal, literal: Literal) -> Arc<Goal> {
        self.goal(goal.literals.iter().cloned().chain([literal]))
    }

    /// The shapes of a goal.
    pub(crate) fn shapes(&self, goal: &Goal) -> Result<Arc<Shapes>, Refused> {
        if let Some(known) = &*lock(&goal.shapes) {
            return known.clone();
        }
        let made = self.made(goal);
        // What was given up for want of time is asked again.
        if !matches!(made, Err(Refused::Over(_))) {
            *lock(&goal.shapes) = Some(made.clone());
        }
        made
    }

    fn made(&self, goal: &Goal) -> Result<Arc<Shapes>, Refused> {
        if goal.literals.is_empty() {
            if let Some(any) = self.common.any.get() {
                return Ok(Arc::clone(any));
            }
            let mut shapes = Shapes { null: true, is_true: true, is_false: true, ..Shapes::default() };
            shapes.numbers = self.numbers(&[])?.into_iter().collect();
            shapes.texts = self.text(&[])?.into_iter().collect();
            shapes.arrays.extend(self.array(&[])?.map(Arc::new));
            shapes.objects.extend(self.object(&[])?.map(Arc::new));
            return Ok(Arc::clone(self.common.any.get_or_init(|| Arc::new(shapes))));
        }
        if *goal.literals == [Literal::Is(NONE)] {
            return Ok(Arc::default());
        }
        let leaf = match &*goal.literals {
            [Literal::Is(node)] => self.nodes[*node as usize].leaf.as_ref(),
            _ => None,
        };
        if let Some(known) = leaf.and_then(|leaf| lock(&self.common.leaves).get(leaf).cloned()) {
            return Ok(known);
        }
        let made = self.made_anew(goal)?;
        if let Some(leaf) = leaf {
            keep(&self.common.leaves, Arc::clone(leaf), &made);
        }
        Ok(made)
    }

    fn made_anew(&self, goal: &Goal) -> Result<Arc<Shapes>, Refused> {
        if let Some(values) = self.listed(goal).filter(|values| !self.writes_freely(values)) {
            let listed = self.some_of(goal, [&*values])?;
            return Ok(Arc::new(Shapes { listed, ..Shapes::default() }));
        }
        let types = self.types_said(goal);
        let mut shapes = Shapes {
            null: types.has(Kind::Null) && self.allows(goal, &Json::Null)?,
            is_true: types.has(Kind::Bool) && self.allows(goal, &Json::Bool(true))?,
            is_false: types.has(Kind::Bool) && self.allows(goal, &Json::Bool(false))?,
            ..Shapes::default()
        };
        let mut listed = Vec::new();
        for kind in [Kind::Number, Kind::Text, Kind::Array, Kind::Object] {
            if !(types.has(kind) || kind == Kind::Number && types.has_integer()) {
                continue;
            }
            for all in self.alternatives(goal, kind)? {
                let values =
                    all.iter().find_map(|said| if let Said::OneOf(values) = said { Some(values) } else { None });
                if let Some(values) = values {
                    if !listed.contains(values) {
                        listed.push(Arc::clone(values));
                    }
                    continue;
                }
                match kind {
                    Kind::Number => shapes.numbers.extend(self.numbers(&all)?),
                    Kind::Text => shapes.texts.extend(self.text(&all)?),
                    Kind::Array => shapes.arrays.extend(self.array(&all)?.map(Arc::new)),
                    _ => shapes.objects.extend(self.object(&all)?.map(Arc::new)),
                }
            }
        }
        if !listed.is_empty() {
            shapes.listed = self.some_of(goal, listed.iter().map(|values| &**values))?;
        }
        Ok(Arc::new(shapes))
    }

    /// Returns the listed values that a goal allows.
    fn some_of<'v>(
        &self,
        goal: &Goal,
        all: impl IntoIterator<Item = &'v crate::formula::Values>,
    ) -> Result<Option<Arc<Listed>>, Refused> {
        let mut texts: Vec<Box<[u8]>> = Vec::new();
        for values in all {
            for value in &values.all {
                trie_core::work::spend(4)?;
                let is_written = self.written.writable.as_ref().is_none_or(|writable| writable.writes(value));
                if is_written && self.allows_of(values, goal, value)? {
                    let mut text = Vec::with_capacity(value.as_str().map_or(0, |text| text.len() + 2));
                    value.parts(MARK, &mut text);
                    trie_core::work::hold(2 * text.len() + 64)?;
                    texts.push(text.into());
                }
            }
        }
        texts.sort_unstable();
        texts.dedup();
        Ok((!texts.is_empty()).then(|| Arc::new(Listed { texts })))
    }

    /// Returns whether values that are listed may be written in all of their ways. Of many there is one way each.
    fn writes_freely(&self, values: &crate::formula::Values) -> bool {
        const FEW: usize = 64;
        let in_any_order = self.written.any_order && values.all.iter().any(has_members);
        (in_any_order || self.written.any_spelling) && values.all.len() <= FEW
    }

    /// The types that a goal says by itself: its values have no others.
    fn types_said(&self, goal: &Goal) -> Types {
        fn said(engine: &Engine, formula: &Formula, deep: usize) -> Types {
            match formula {
                Formula::Types(types) => *types,
                Formula::All(all) => all.iter().fold(Types::ALL, |types, one| types.and(said(engine, one, deep))),
                Formula::AssertOnly(inner) => said(engine, inner, deep),
                // Both of two that hold at once may have two in them.
                Formula::Schema(node) if deep < 8 => said(engine, &engine.nodes[*node as usize].formula, deep + 1),
                _ => Types::ALL,
            }
        }
        goal.literals.iter().fold(Types::ALL, |types, literal| match literal {
            Literal::Is(node) => types.and(said(self, &self.nodes[*node as usize].formula, 0)),
            _ => types,
        })
    }

    /// The values that a goal lists, whatever else it asks of them.
    fn listed(&self, goal: &Goal) -> Option<Arc<crate::formula::Values>> {
        fn of<'f>(engine: &'f Engine, formula: &'f Formula, deep: usize) -> Option<&'f Arc<crate::formula::Values>> {
            match formula {
                Formula::OneOf(values) => Some(values),
                Formula::All(all) => all.iter().find_map(|one| of(engine, one, deep)),
                Formula::Schema(node) if deep < 16 => of(engine, &engine.nodes[*node as usize].formula, deep + 1),
                _ => None,
            }
        }
        goal.literals.iter().find_map(|literal| match literal {
            Literal::In(values) => Some(Arc::clone(values)),
            Literal::Is(node) => of(self, &self.nodes[*node as usize].formula, 0).cloned(),
            _ => None,
        })
    }
}

/// Returns whether an object with several members is in a value.
fn has_members(value: &Json) -> bool {
    match value {
        Json::Object(members) => members.len() > 1 || members.iter().any(|(_, value)| has_members(value)),
        Json::Array(items) => items.iter().any(has_members),
        _ => false,
    }
}

impl Goal {
    fn known_possible(&self) -> Option<bool> {
        match self.possible.load(Ordering::Relaxed) {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        }
    }

    fn set_possible(&self, possible: bool) {
        self.possible.store(if possible { 1 } else { 2 }, Ordering::Relaxed);
    }

    /// The levels that a value of it needs.
    pub(crate) fn known_levels(&self) -> Option<usize> {
        usize::from(self.levels.load(Ordering::Relaxed)).checked_sub(1)
    }

    pub(crate) fn set_levels(&self, levels: usize) {
        self.levels.store(u8::try_from(levels + 1).unwrap_or(u8::MAX), Ordering::Relaxed);
    }
}
