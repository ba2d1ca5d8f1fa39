//! Objects: allowed names, their order and values, and whether the required members are still possible.

use super::normal::{Said, Way};
use super::possible::{Search, TEXTS};
use super::scalar::{TextShape, both, outside};
use super::{COPIES, Engine, Goal, Refused};
use crate::formula::{ANY, Literal, NONE, Names, Texts};
use crate::json::quoted;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, OnceLock};
use trie_core::work::{hold, over, spend};
use trie_rules::{TextMachine, TextSet};

/// Sets of names that patterns tell apart at most.
const MOST_CLASSES: usize = 256;
/// Turns of one search for ways to complete an object at most.
const MOST_TURNS: usize = 100_000;

/// Numbers of clauses, or of names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    pub(crate) fn set(&mut self, bit: usize) {
        if self.0.len() <= bit / 64 {
            self.0.resize(bit / 64 + 1, 0);
        }
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }
}

/// A name that the schema says itself.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    /// As it is written, behind the first quote.
    pub(crate) text: Box<[u8]>,
    pub(crate) goal: Arc<Goal>,
    /// True if it has its place in the order of names.
    pub(crate) is_ordered: bool,
    pub(crate) is_required: bool,
    /// Clauses that are met by such a value.
    ways: Vec<(usize, Literal)>,
    /// Clauses that are met where the name does not come.
    absent: Vec<usize>,
}

/// Names that the schema does not say itself, and that it does not tell apart.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) set: TextSet,
    pub(crate) text: Arc<TextShape>,
    /// Number of names, as far as anybody counts.
    count: OnceLock<usize>,
    /// True if it has all names, but for those that the schema says.
    pub(crate) is_all: bool,
    pub(crate) goal: Arc<Goal>,
    ways: Vec<(usize, Literal)>,
}

impl Class {
    fn count(&self) -> usize {
        if let Some(&known) = self.count.get() {
            return known;
        }
        let count = self.text.machine.count(TEXTS);
        // What was given up is counted again.
        if over().is_none() {
            self.count.get_or_init(|| count);
        }
        count
    }
}

/// An object.
#[derive(Debug)]
pub(crate) struct ObjectShape {
    /// Declared names; those with a fixed place come first, in their order.
    pub(crate) names: Vec<Named>,
    pub(crate) ordered: usize,
    /// Places of those that must come.
    required: Vec<usize>,
    /// By their names.
    pub(crate) by_name: BTreeMap<Arc<str>, usize>,
    pub(crate) classes: Vec<Class>,
    clauses: Vec<Clause>,
    least: usize,
    most: usize,
    /// True if it may be completed from its beginning: 0 where that is not known.
    pub(crate) possible: AtomicU8,
}

#[derive(Debug, Default)]
struct Clause {
    /// Names without which it is met.
    absent: Vec<usize>,
    named: Vec<(usize, Literal)>,
    open: Vec<(usize, Literal)>,
}

/// Members of an object that were written so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Members {
    /// The next name that has a place.
    pub(crate) next: u32,
    /// Names that were written and whose order is free.
    pub(crate) written: Bits,
    /// Other names that were written, in order.
    pub(crate) others: Option<Arc<[Arc<str>]>>,
    pub(crate) count: u32,
    /// Clauses that are met.
    pub(crate) met: Bits,
}

impl Members {
    pub(crate) fn others(&self) -> &[Arc<str>] {
        self.others.as_deref().unwrap_or(&[])
    }

    /// Other names that were written and begin with some bytes.
    pub(crate) fn names_from<'s>(&'s self, begun: &'s [u8]) -> impl Iterator<Item = &'s str> {
        let all = self.others();
        let from = all.partition_point(|name| name.as_bytes() < begun);
        all[from..].iter().map(|name| &**name).take_while(move |name| name.as_bytes().starts_with(begun))
    }
}

/// A member that comes next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Member {
    Named(u32),
    Other(u32, Arc<str>),
}

/// Sets of values, each with the clauses that they meet.
type Cells = Vec<(Arc<Goal>, Bits)>;

struct Building<'e> {
    engine: &'e Engine,
    names: Vec<(Arc<str>, bool)>,
    places: HashMap<Arc<str>, usize>,
    patterns: Vec<(Names, TextSet)>,
}

impl Building<'_> {
    fn name(&mut self, name: &Arc<str>, declares: bool) {
        if let Some(&at) = self.places.get(name) {
            self.names[at].1 |= declares;
            return;
        }
        self.places.insert(Arc::clone(name), self.names.len());
        self.names.push((Arc::clone(name), declares));
    }

    fn matching(&mut self, texts: &Arc<Texts>) {
        let names = Names::Matching(Arc::clone(texts));
        if !self.patterns.iter().any(|(own, _)| *own == names) {
            self.patterns.push((names, texts.set.clone()));
        }
    }

    fn gather(&mut self, names: &Names, declares: bool) -> Result<(), Refused> {
        match names {
            Names::Exact(name) => self.name(name, declares),
            Names::Matching(texts) => self.matching(texts),
            Names::Outside(outside) => {
                outside.names.iter().for_each(|name| self.name(name, false));
                outside.matching.iter().for_each(|texts| self.matching(texts));
            }
            Names::Denied(node, is_sure) => {
                if !self.patterns.iter().any(|(own, _)| own == names) {
                    let set = if *is_sure {
                        self.engine.name_set(Literal::IsNot(*node))?
                    } else {
                        self.engine.name_set(Literal::Is(*node))?.complement()
                    };
                    self.patterns.push((names.clone(), set));
                }
            }
        }
        Ok(())
    }

    /// Returns whether names of a class are among some; `kinds` says which patterns it matches.
    fn is_among(&self, names: &Names, kinds: &[bool]) -> bool {
        let is = |of: &Names| self.patterns.iter().zip(kinds).any(|((own, _), is)| own == of && *is);
        match names {
            Names::Exact(_) => false,
            Names::Outside(outside) => !outside.matching.iter().any(|texts| is(&Names::Matching(Arc::clone(texts)))),
            other => is(other),
        }
    }
}

impl Engine {
    /// Returns whether objects can satisfy all of these constraints, by a quick check; `true` if that is not clear.
    pub(super) fn may_be(&self, all: &[Said]) -> Result<bool, Refused> {
        let mut asked: HashMap<&Arc<str>, Vec<Literal>> = HashMap::new();
        let mut needed: Vec<&Arc<str>> = Vec::new();
        for said in all {
            match said {
                Said::Each { names: Names::Exact(name), value, .. } => {
                    asked.entry(name).or_default().push(value.clone());
                }
                Said::Clause(ways) => match &ways[..] {
                    [Way::Some(Names::Exact(name), value)] => {
                        needed.push(name);
                        asked.entry(name).or_default().push(value.clone());
                    }
                    [Way::Absent(name)] => asked.entry(name).or_default().push(Literal::Is(NONE)),
                    _ => {}
                },
                _ => {}
            }
        }
        for name in needed {
            spend(1)?;
            let goal = self.goal(asked.get(name).into_iter().flatten().cloned());
            if *goal.literals == [Literal::Is(NONE)] || self.lists_nothing(&goal)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether a goal lists values, none of which it allows.
    fn lists_nothing(&self, goal: &Goal) -> Result<bool, Refused> {
        let Some(values) = self.listed(goal) else { return Ok(false) };
        if values.all.len() > 64 {
            return Ok(false);
        }
        for value in &values.all {
            if self.allows(goal, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the shape of the objects that satisfy all of these constraints; `None` if there are certainly none.
    #[allow(clippy::too_many_lines, clippy::similar_names, reason = "names, needed ones, and sets of them")]
    pub(super) fn object(&self, all: &[Said]) -> Result<Option<ObjectShape>, Refused> {
        let mut building = Building { engine: self, names: Vec::new(), places: HashMap::new(), patterns: Vec::new() };
        let (mut least, mut most) = (0, usize::MAX);
        let mut eachs: Vec<(&Names, &Literal)> = Vec::new();
        let mut clauses: Vec<&[Way]> = Vec::new();
        let mut needed: Vec<(&Arc<str>, &Literal)> = Vec::new();
        let none = Literal::Is(NONE);
        let mut exact: HashMap<&Arc<str>, Vec<&Literal>> = HashMap::new();
        for said in all {
            spend(2)?;
            match said {
                Said::Each { names, value, declares } => {
                    building.gather(names, *declares)?;
                    match names {
                        Names::Exact(name) => exact.entry(name).or_default().push(value),
                        names => eachs.push((names, value)),
                    }
                }
                Said::Clause(ways) => {
                    for way in ways {
                        match way {
                            Way::Absent(name) => building.name(name, false),
                            Way::Some(names, _) => building.gather(names, false)?,
                        }
                    }
                    match &ways[..] {
                        [Way::Some(Names::Exact(name), value)] => needed.push((name, value)),
                        [Way::Absent(name)] => exact.entry(name).or_default().push(&none),
                        ways => clauses.push(ways),
                    }
                }
                Said::Least(bound) => least = least.max(*bound),
                Said::Most(bound) => most = most.min(*bound),
                _ => {}
            }
        }
        let any_order = self.written.any_order;
        let mut order: Vec<usize> = (0..building.names.len()).collect();
        order.sort_by_key(|&at| (any_order || !building.names[at].1, at));
        let mut names: Vec<Named> = Vec::with_capacity(order.len());
        let mut by_name = BTreeMap::new();
        for at in order {
            let (name, declares) = building.names[at].clone();
            spend(1 + eachs.len())?;
            let mut literals: Vec<Literal> = exact.get(&name).into_iter().flatten().map(|&one| one.clone()).collect();
            for (names, value) in &eachs {
                if self.has_name(names, &name)? {
                    literals.push((*value).clone());
                }
            }
            if self.written.writable.as_ref().is_some_and(|writable| !writable.names.is_match(&name)) {
                literals.push(none.clone());
            }
            // A goal keeps them, and those of its shapes are as many.
            hold(COPIES * literals.len() * size_of::<Literal>())?;
            let mut text = Vec::new();
            quoted(&name, &mut text);
            by_name.insert(Arc::clone(&name), names.len());
            names.push(Named {
                text: text[1..].into(),
                goal: self.goal(literals),
                is_ordered: declares && !any_order,
                is_required: false,
                ways: Vec::new(),
                absent: Vec::new(),
                name,
            });
        }
        for (name, value) in needed {
            let named = &mut names[by_name[name]];
            named.is_required = true;
            if *value != Literal::Is(ANY) {
                named.goal = self.with(&named.goal, value.clone());
            }
        }
        if names.iter().any(|named| named.is_required && *named.goal.literals == [Literal::Is(NONE)]) {
            return Ok(None);
        }
        let classes = self.classes(&building, &eachs, &names)?;
        let ordered = names.iter().filter(|named| named.is_ordered).count();
        let (clauses, possible) = (Vec::new(), AtomicU8::new(0));
        let (required, none) = (Vec::new(), Vec::new());
        let mut shape =
            ObjectShape { names, ordered, required, by_name, classes: none, clauses, least, most, possible };
        let kinds: Vec<Vec<bool>> = classes.iter().map(|(_, kinds)| kinds.clone()).collect();
        shape.classes = classes.into_iter().map(|(class, _)| class).collect();
        let mut more = Vec::new();
        for said in all {
            if let Said::Clause(ways) = said
                && ways.len() != 1
            {
                more.push(&ways[..]);
            }
            if let Said::Clause(ways) = said
                && let [Way::Some(names, _)] = &ways[..]
                && !matches!(names, Names::Exact(_))
            {
                more.push(&ways[..]);
            }
        }
        for ways in more {
            if !self.add_clause(&building, &kinds, &mut shape, ways)? {
                return Ok(None);
            }
        }
        shape.required = (0..shape.names.len()).filter(|&at| shape.names[at].is_required).collect();
        Ok(Some(shape))
    }

    /// Sets of names that the schema does not say.
    fn classes(
        &self,
        building: &Building<'_>,
        eachs: &[(&Names, &Literal)],
        names: &[Named],
    ) -> Result<Vec<(Class, Vec<bool>)>, Refused> {
        // Most schemas of tools allow no other names, and tell none apart.
        let others = || self.goal(eachs.iter().map(|(_, value)| (*value).clone()));
        if building.patterns.is_empty() && *others().literals == [Literal::Is(NONE)] {
            return Ok(Vec::new());
        }
        let mut sets: Vec<(TextSet, Vec<bool>)> = vec![(TextSet::full(), Vec::new())];
        for (_, set) in &building.patterns {
            let not = set.complement();
            let mut next = Vec::new();
            for (own, kinds) in sets {
                spend(8)?;
                for (part, is) in [(set, true), (&not, false)] {
                    let part = both(&own, part)?;
                    if !part.is_empty() {
                        next.push((part, kinds.iter().copied().chain([is]).collect()));
                    }
                }
            }
            sets = next;
            if sets.len() > MOST_CLASSES {
                let why = format!("its patterns tell more than {MOST_CLASSES} sets of names apart");
                return Err(Refused::TooLarge { at: "".into(), keyword: "the combination of patterns of names", why });
            }
        }
        let mut classes: Vec<(Class, Vec<bool>)> = Vec::new();
        for (set, kinds) in sets {
            let literals = eachs.iter().filter(|(names, _)| building.is_among(names, &kinds));
            let goal = self.goal(literals.map(|(_, value)| (*value).clone()));
            if *goal.literals == [Literal::Is(NONE)] {
                continue;
            }
            let is_all = set.is_all();
            let set = match self.written.writable.as_ref().filter(|_| !is_all) {
                Some(writable) => both(&set, &writable.names)?,
                None => set,
            };
            let set = if is_all || names.is_empty() {
                set
            } else {
                both(&set, &outside(names.iter().map(|named| &*named.name))?)?
            };
            let text = if set.is_all() {
                self.text(&[])?
            } else {
                let escapes = self.written.escapes;
                TextMachine::new(&set, 0, None).map(|machine| TextShape::new(machine, escapes, false))
            };
            let Some(text) = text else { continue };
            let (count, ways) = (OnceLock::new(), Vec::new());
            classes.push((Class { set, text, count, is_all, goal, ways }, kinds));
        }
        Ok(classes)
    }

    /// Adds a clause, as far as it is not met anyway; `false` where it cannot be met.
    #[allow(clippy::similar_names, reason = "names, and one of them")]
    fn add_clause(
        &self,
        building: &Building<'_>,
        kinds: &[Vec<bool>],
        shape: &mut ObjectShape,
        ways: &[Way],
    ) -> Result<bool, Refused> {
        let mut clause = Clause::default();
        for way in ways {
            spend(1)?;
            match way {
                Way::Absent(name) => {
                    let at = shape.by_name[name];
                    let named = &shape.names[at];
                    // It never comes.
                    if *named.goal.literals == [Literal::Is(NONE)] {
                        return Ok(true);
                    }
                    if !named.is_required {
                        clause.absent.push(at);
                    }
                }
                Way::Some(names, value) => {
                    let exact = match names {
                        Names::Exact(name) => vec![shape.by_name[name]],
                        names => {
                            let mut some = Vec::new();
                            for (at, named) in shape.names.iter().enumerate() {
                                if self.has_name(names, &named.name)? {
                                    some.push(at);
                                }
                            }
                            some
                        }
                    };
                    for at in exact {
                        let named = &shape.names[at];
                        match self.compared(&named.goal, value)? {
                            Some(false) => {}
                            Some(true) if named.is_required => return Ok(true),
                            _ => clause.named.push((at, value.clone())),
                        }
                    }
                    for (at, kinds) in kinds.iter().enumerate() {
                        if building.is_among(names, kinds) {
                            clause.open.push((at, value.clone()));
                        }
                    }
                }
            }
        }
        let number = shape.clauses.len();
        match (&clause.absent[..], &clause.named[..], &clause.open[..]) {
            ([], [], []) => return Ok(false),
            // The only way is asked for.
            ([], [(at, value)], []) => {
                let named = &mut shape.names[*at];
                named.is_required = true;
                named.goal = self.with(&named.goal, value.clone());
                return Ok(true);
            }
            _ => {}
        }
        for &at in &clause.absent {
            shape.names[at].absent.push(number);
        }
        for (at, value) in &clause.named {
            shape.names[*at].ways.push((number, value.clone()));
        }
        for (at, value) in &clause.open {
            shape.classes[*at].ways.push((number, value.clone()));
        }
        shape.clauses.push(clause);
        Ok(true)
    }

    /// Compares a goal with a literal: `Some(true)` if all values of the goal satisfy it, `Some(false)` if none does,
    /// and `None` if some do or it is not clear.
    fn compared(&self, goal: &Arc<Goal>, literal: &Literal) -> Result<Option<bool>, Refused> {
        if *literal == Literal::Is(ANY) || goal.literals.contains(literal) {
            return Ok(Some(true));
        }
        let with = self.with(goal, literal.clone());
        if with == *goal {
            return Ok(Some(true));
        }
        if *with.literals == [Literal::Is(NONE)] {
            return Ok(Some(false));
        }
        if let Some(values) = self.listed(goal).filter(|values| values.all.len() <= 64) {
            let (mut some, mut all) = (false, true);
            for value in &values.all {
                if self.allows(goal, value)? {
                    let fits = self.fits(literal, value)?;
                    some |= fits;
                    all &= fits;
                }
            }
            return Ok(if all {
                Some(true)
            } else if some {
                None
            } else {
                Some(false)
            });
        }
        Ok(None)
    }

    /// Sets of values of a goal, each with the clauses that they meet.
    fn cells(&self, goal: &Arc<Goal>, ways: &[(usize, Literal)], met: &Bits, search: &mut Search) -> Cells {
        let mut cells = vec![(Arc::clone(goal), Bits::default())];
        for (clause, literal) in ways.iter().filter(|(clause, _)| !met.has(*clause)) {
            let mut next = Vec::new();
            for (goal, claims) in cells {
                let mut with_it = claims.clone();
                with_it.set(*clause);
                if *literal == Literal::Is(ANY) {
                    next.push((goal, with_it));
                    continue;
                }
                let (is, is_not) = (self.with(&goal, literal.clone()), self.with(&goal, literal.negated()));
                if self.is_possible(&is, search) {
                    next.push((is, with_it));
                }
                if self.is_possible(&is_not, search) {
                    next.push((is_not, claims));
                }
            }
            cells = next;
            if cells.len() > super::MOST_CELLS {
                search.refuse(Refused::cells("anyOf"));
                return Vec::new();
            }
        }
        cells.retain(|(goal, _)| self.is_possible(goal, search));
        cells
    }

    /// The ways in which a member may go on.
    pub(crate) fn member_cells(
        &self,
        shape: &ObjectShape,
        members: &Members,
        member: &Member,
        search: &mut Search,
    ) -> Vec<(Arc<Goal>, Members)> {
        let (goal, ways) = match member {
            Member::Named(at) => {
                let named = &shape.names[*at as usize];
                (&named.goal, &named.ways)
            }
            Member::Other(class, _) => {
                let class = &shape.classes[*class as usize];
                (&class.goal, &class.ways)
            }
        };
        let after = shape.after(members, member);
        let mut found = Vec::new();
        for (goal, claims) in self.cells(goal, ways, &after.met, search) {
            let mut members = after.clone();
            members.met.add(&claims);
            if self.may_complete(shape, &members, search) {
                found.push((goal, members));
            }
        }
        found
    }

    /// Returns whether a member may come next, and all of it still be completed.
    pub(crate) fn may_come(
        &self,
        shape: &ObjectShape,
        members: &Members,
        member: &Member,
        search: &mut Search,
    ) -> bool {
        if shape.clauses.is_empty() {
            let goal = match member {
                Member::Named(at) => &shape.names[*at as usize].goal,
                Member::Other(class, _) => &shape.classes[*class as usize].goal,
            };
            return self.is_possible(goal, search)
                && (shape.is_plain() || self.may_complete(shape, &shape.after(members, member), search));
        }
        !self.member_cells(shape, members, member, search).is_empty()
    }

    /// Names of a class that were not written, up to some; `usize::MAX` for more than anybody counts.
    #[allow(clippy::unused_self, reason = "beside the others")]
    fn left_of(&self, class: &Class, members: &Members, most: usize) -> usize {
        if class.is_all {
            return usize::MAX;
        }
        let written = members.others().iter().filter(|name| class.set.is_match(name)).count();
        class.count().min(most.saturating_add(written)).saturating_sub(written)
    }

    /// Returns whether a name of a class may begin.
    pub(crate) fn may_open(&self, shape: &ObjectShape, members: &Members, class: usize, search: &mut Search) -> bool {
        if !self.is_possible(&shape.classes[class].goal, search) {
            return false;
        }
        if shape.is_plain() {
            return self.left_of(&shape.classes[class], members, 1) > 0;
        }
        let mut skipped = members.clone();
        shape.skip(members, shape.ordered, &mut skipped);
        skipped.next = shape.ordered as u32;
        self.may_complete_with(shape, &skipped, vec![(class, Vec::new())], search)
    }

    /// Returns whether an object that has these members may be completed.
    pub(crate) fn may_complete(&self, shape: &ObjectShape, members: &Members, search: &mut Search) -> bool {
        self.may_complete_with(shape, members, Vec::new(), search)
    }

    fn may_complete_with(
        &self,
        shape: &ObjectShape,
        members: &Members,
        others: Vec<(usize, Vec<Literal>)>,
        search: &mut Search,
    ) -> bool {
        let count = members.count as usize;
        let required = shape.required.iter().copied().filter(|&at| shape.is_left(members, at));
        let required: Vec<usize> = required.collect();
        if count.saturating_add(required.len()) > shape.most
            || required.iter().any(|&at| !self.is_possible(&shape.names[at].goal, search))
        {
            return false;
        }
        let open: Vec<usize> = (0..shape.clauses.len()).filter(|&clause| !members.met.has(clause)).collect();
        let chosen = required.iter().map(|&at| (at, Vec::new())).collect();
        let mut way = Completing { shape, members, open, chosen, forbidden: Vec::new(), others, turns: 0 };
        self.complete(&mut way, 0, search)
    }

    /// Meets clauses one after the other.
    fn complete(&self, way: &mut Completing<'_>, nth: usize, search: &mut Search) -> bool {
        let (shape, members) = (way.shape, way.members);
        way.turns += 1;
        if way.turns > MOST_TURNS || spend(4).is_err() {
            search.refuse(Refused::TooLarge {
                at: "".into(),
                keyword: "anyOf",
                why: format!("more than {MOST_TURNS} ways to complete an object"),
            });
            return false;
        }
        let coming = members.count as usize + way.chosen.len() + way.others.len();
        if coming > shape.most {
            return false;
        }
        let Some(&clause) = way.open.get(nth) else { return self.fills(way, coming, search) };
        let clause = &shape.clauses[clause];
        for &at in &clause.absent {
            if shape.is_left(members, at) && !way.chosen.contains_key(&at) {
                way.forbidden.push(at);
                let done = self.complete(way, nth + 1, search);
                way.forbidden.pop();
                if done {
                    return true;
                }
            }
        }
        for (at, value) in &clause.named {
            if !shape.is_left(members, *at) || way.forbidden.contains(at) {
                continue;
            }
            let before = way.chosen.get(at).cloned();
            let mut literals = before.clone().unwrap_or_default();
            literals.push(value.clone());
            let goal = self.goal(shape.names[*at].goal.literals.iter().chain(&literals).cloned());
            if !self.is_possible(&goal, search) {
                continue;
            }
            way.chosen.insert(*at, literals);
            if self.complete(way, nth + 1, search) {
                return true;
            }
            match before {
                Some(before) => way.chosen.insert(*at, before),
                None => way.chosen.remove(at),
            };
        }
        for (at, value) in &clause.open {
            let class = &shape.classes[*at];
            // One that comes anyway, or another one.
            for nth_other in 0..=way.others.len() {
                let mut literals = match way.others.get(nth_other) {
                    Some((own, literals)) if own == at => literals.clone(),
                    Some(_) => continue,
                    None => Vec::new(),
                };
                literals.push(value.clone());
                let goal = self.goal(class.goal.literals.iter().chain(&literals).cloned());
                if !self.is_possible(&goal, search) {
                    continue;
                }
                let before = way.others.get(nth_other).cloned();
                if before.is_some() {
                    way.others[nth_other] = (*at, literals);
                } else {
                    way.others.push((*at, literals));
                }
                if self.complete(way, nth + 1, search) {
                    return true;
                }
                match before {
                    Some(before) => way.others[nth_other] = before,
                    None => drop(way.others.pop()),
                }
            }
        }
        false
    }

    /// Returns whether there are enough names for what was chosen, and for the fewest members.
    fn fills(&self, way: &Completing<'_>, coming: usize, search: &mut Search) -> bool {
        let (shape, members) = (way.shape, way.members);
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (class, _) in &way.others {
            *counts.entry(*class).or_default() += 1;
        }
        for (&class, &count) in &counts {
            if self.left_of(&shape.classes[class], members, count) < count {
                return false;
            }
        }
        let mut missing = shape.least.saturating_sub(coming);
        if missing == 0 {
            return true;
        }
        let is_free =
            |at: usize| shape.is_left(members, at) && !way.chosen.contains_key(&at) && !way.forbidden.contains(&at);
        for at in (0..shape.names.len()).filter(|&at| is_free(at)) {
            if missing == 0 {
                return true;
            }
            missing -= usize::from(self.is_possible(&shape.names[at].goal, search));
        }
        for (at, class) in shape.classes.iter().enumerate() {
            if missing == 0 {
                return true;
            }
            if self.is_possible(&class.goal, search) {
                let used = counts.get(&at).copied().unwrap_or(0);
                let left = self.left_of(class, members, missing + used).saturating_sub(used);
                missing = missing.saturating_sub(left);
            }
        }
        missing == 0 && coming.max(shape.least) <= shape.most
    }
}

/// Search for a completion of an object.
struct Completing<'s> {
    shape: &'s ObjectShape,
    members: &'s Members,
    /// Clauses that are not met.
    open: Vec<usize>,
    /// Names that come, with what is asked of their values beside what always is.
    chosen: BTreeMap<usize, Vec<Literal>>,
    /// Names that do not come.
    forbidden: Vec<usize>,
    /// Members of classes.
    others: Vec<(usize, Vec<Literal>)>,
    turns: usize,
}

/// Goals of the required members of an object.
pub(crate) struct Needs {
    pub(crate) all: Vec<Arc<Goal>>,
    /// One of each of these.
    pub(crate) any: Vec<Vec<Arc<Goal>>>,
    /// So many more, of names that the schema says or of others.
    pub(crate) more: usize,
    pub(crate) named: Vec<Arc<Goal>>,
    pub(crate) endless: Vec<Arc<Goal>>,
}

impl ObjectShape {
    /// Returns the goals of the required members.
    pub(crate) fn needs(&self, engine: &Engine) -> Needs {
        let own = |at: usize| &self.names[at].goal;
        let clauses = self.clauses.iter().filter(|clause| clause.absent.is_empty());
        let any = clauses.map(|clause| {
            let named = clause.named.iter().map(|(at, value)| engine.with(own(*at), value.clone()));
            let open = clause.open.iter().map(|(at, value)| engine.with(&self.classes[*at].goal, value.clone()));
            named.chain(open).collect()
        });
        let free = (0..self.names.len()).filter(|at| !self.required.contains(at));
        Needs {
            all: self.required.iter().map(|&at| Arc::clone(own(at))).collect(),
            any: any.collect(),
            more: self.least.saturating_sub(self.required.len()),
            named: free.map(|at| Arc::clone(own(at))).collect(),
            endless: self.classes.iter().map(|class| Arc::clone(&class.goal)).collect(),
        }
    }

    /// Returns whether any member may come wherever its value may be.
    pub(super) fn is_plain(&self) -> bool {
        self.clauses.is_empty() && self.most == usize::MAX && self.least == 0
    }

    /// Returns whether a name may still come, as far as its place goes.
    fn is_left(&self, members: &Members, at: usize) -> bool {
        if self.names[at].is_ordered { at >= members.next as usize } else { !members.written.has(at) }
    }

    /// The members with one more; what it skips does not come.
    fn after(&self, members: &Members, member: &Member) -> Members {
        let mut after = members.clone();
        after.count = if self.most == usize::MAX {
            (after.count + 1).min(u32::try_from(self.least).unwrap_or(u32::MAX))
        } else {
            after.count + 1
        };
        let skipped = match member {
            Member::Named(at) if self.names[*at as usize].is_ordered => *at as usize,
            _ => self.ordered,
        };
        self.skip(members, skipped, &mut after);
        match member {
            Member::Named(at) if self.names[*at as usize].is_ordered => after.next = at + 1,
            Member::Named(at) => {
                after.next = self.ordered as u32;
                after.written.set(*at as usize);
            }
            Member::Other(_, name) => {
                after.next = self.ordered as u32;
                let mut others = members.others().to_vec();
                let at = others.partition_point(|own| own < name);
                others.insert(at, Arc::clone(name));
                after.others = Some(others.into());
            }
        }
        after
    }

    /// Marks the clauses that are met because names before the next one are left out.
    fn skip(&self, members: &Members, before: usize, after: &mut Members) {
        for named in self.names.get(members.next as usize..before).unwrap_or(&[]) {
            named.absent.iter().for_each(|&clause| after.met.set(clause));
        }
    }

    /// About how many bytes of names and values must still come.
    pub(crate) fn missing(&self, members: &Members) -> usize {
        let left = self.required.iter().filter(|&&at| self.is_left(members, at));
        let (count, bytes) =
            left.fold((0, 0), |(count, bytes), &at| (count + 1, bytes + self.names[at].text.len() + 5));
        bytes + 8 * self.least.saturating_sub(members.count as usize + count)
    }

    /// Returns whether the object may end here.
    pub(crate) fn may_end(&self, members: &Members) -> bool {
        let count = members.count as usize;
        count >= self.least
            && count <= self.most
            && !self.required.iter().any(|&at| self.is_left(members, at))
            && self.clauses.iter().enumerate().all(|(number, clause)| {
                members.met.has(number) || clause.absent.iter().any(|&at| self.is_left(members, at))
            })
    }

    /// Returns whether a class has more names than anybody counts, so that one that was written leaves enough of them.
    pub(crate) fn is_wide(&self, class: u32) -> bool {
        self.classes[class as usize].count() >= TEXTS
    }

    /// Names that the schema says and that begin with some bytes.
    pub(crate) fn names_from<'s>(&'s self, begun: &'s [u8]) -> impl Iterator<Item = &'s str> {
        let from = std::str::from_utf8(begun).unwrap_or_default();
        let bounds = (Bound::Included(from), Bound::Unbounded);
        let all = self.by_name.range::<str, _>(bounds).map(|(name, _)| &**name);
        all.take_while(move |name| name.as_bytes().starts_with(begun))
    }

    /// The next name with a place that must come.
    fn next_required(&self, next: usize) -> Option<usize> {
        let at = self.required.partition_point(|&at| at < next);
        self.required.get(at).copied().filter(|&at| at < self.ordered)
    }

    /// Names that may come next, as far as their order goes.
    pub(crate) fn candidates<'s>(&'s self, members: &'s Members) -> impl Iterator<Item = usize> + 's {
        let next = members.next as usize;
        let needed = self.next_required(next);
        let ordered = next..needed.map_or(self.ordered, |at| at + 1);
        let free = if needed.is_some() { self.names.len() } else { self.ordered };
        ordered.chain((free..self.names.len()).filter(|&at| !members.written.has(at)))
    }

    /// Returns whether names may come next whose order is free.
    pub(crate) fn is_open(&self, members: &Members) -> bool {
        self.next_required(members.next as usize).is_none()
    }

    /// Returns whether a name is one that the schema says, or that was written.
    pub(crate) fn is_taken(&self, members: &Members, name: &str) -> bool {
        self.by_name.contains_key(name) || members.others().binary_search_by(|own| (**own).cmp(name)).is_ok()
    }
}
