//! Arrays: the goal of each item, the counts of items, and whether the required items are still possible.

use super::normal::Said;
use super::possible::Search;
use super::{Engine, Goal, Refused};
use crate::formula::{Literal, NONE, Values};
use crate::json::Json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use trie_core::work::spend;

/// Items that must be told apart at most.
pub(crate) const MOST_UNIQUE: usize = 4096;
/// Items that must come and differ, for which it is found out whether there are enough values.
const MOST_MATCHED: usize = 256;

/// An array.
#[derive(Debug)]
pub(crate) struct ArrayShape {
    /// Goals of the first items, one each.
    pub(crate) prefix: Vec<Arc<Goal>>,
    /// Goal of all other items.
    pub(crate) rest: Arc<Goal>,
    counts: Vec<Count>,
    least: usize,
    most: usize,
    pub(crate) is_unique: bool,
    /// True if some two items must be equal.
    repeats: bool,
    /// True if it may be completed from its beginning: 0 where that is not known.
    pub(crate) possible: AtomicU8,
}

/// So many items between two places are what a literal says.
#[derive(Debug)]
struct Count {
    from: usize,
    to: usize,
    value: Literal,
    least: usize,
    most: usize,
}

/// Items of an array that were written so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Items {
    pub(crate) index: usize,
    /// Number of items that match each count, as far as that matters.
    have: Box<[usize]>,
    /// Items that were written, in order, where they must differ, or some must come again.
    pub(crate) seen: Option<Arc<Values>>,
    /// True if one came again.
    has_repeated: bool,
}

impl ArrayShape {
    pub(crate) fn start(&self) -> Items {
        Items { have: vec![0; self.counts.len()].into(), ..Items::default() }
    }

    /// Returns whether the values of items must be kept.
    pub(crate) fn keeps(&self, items: &Items) -> bool {
        self.is_unique || self.repeats && !items.has_repeated
    }

    pub(crate) fn goal(&self, index: usize) -> &Arc<Goal> {
        self.prefix.get(index).unwrap_or(&self.rest)
    }

    /// Returns whether the array may have any number of items after those with goals of their own.
    pub(super) fn is_endless(&self) -> bool {
        self.is_plain() && self.most == usize::MAX
    }

    /// Returns the least number of items of an array that is not empty, if all items are of one goal and nothing is
    /// said of them together, but that they must differ.
    pub(super) fn items_alike(&self) -> Option<usize> {
        let is_alike = self.prefix.is_empty() && self.counts.is_empty() && !self.repeats && self.most > 0;
        is_alike.then_some(self.least.max(1))
    }

    /// Returns whether nothing but the place of an item says what it must be.
    fn is_plain(&self) -> bool {
        self.counts.is_empty() && !self.is_unique && !self.repeats
    }

    /// The array with one item more, which was counted here.
    fn after(&self, items: &Items, claims: &[bool]) -> Items {
        let mut after = items.clone();
        after.index = if self.most == usize::MAX {
            (items.index + 1).min(self.prefix.len().max(self.least))
        } else {
            items.index + 1
        };
        for ((have, count), claimed) in after.have.iter_mut().zip(&self.counts).zip(claims) {
            *have += usize::from(*claimed);
            if count.most == usize::MAX {
                *have = (*have).min(count.least);
            }
        }
        after
    }

    /// Returns the goals of the required items, each kind once.
    pub(crate) fn needs(&self, engine: &Engine) -> Vec<Arc<Goal>> {
        let first = (0..self.least.min(self.prefix.len() + 1)).map(|index| Arc::clone(self.goal(index)));
        let counts = self.counts.iter().filter(|count| count.least > 0);
        first.chain(counts.map(|count| engine.with(self.goal(count.from), count.value.clone()))).collect()
    }

    /// Returns the number of items that are still required.
    pub(crate) fn missing(&self, items: &Items) -> usize {
        self.least.saturating_sub(items.index)
    }

    pub(crate) fn may_end(&self, items: &Items) -> bool {
        items.index >= self.least
            && items.index <= self.most
            && (!self.repeats || items.has_repeated)
            && items.have.iter().zip(&self.counts).all(|(have, count)| *have >= count.least)
    }
}

impl Engine {
    /// Returns the shape of the arrays that satisfy all of these constraints; `None` if there are certainly none.
    pub(super) fn array(&self, all: &[Said]) -> Result<Option<ArrayShape>, Refused> {
        let (mut least, mut most, mut is_unique, mut repeats) = (0, usize::MAX, false, false);
        let mut counts = Vec::new();
        let mut bounds = 0;
        let mut each = Vec::new();
        for said in all {
            spend(2)?;
            match said {
                Said::Items { from, to, value } => {
                    bounds = bounds.max(*from).max(if *to == usize::MAX { 0 } else { *to });
                    each.push((*from, *to, value));
                }
                Said::Count { from, to, value, least: at_least, most: at_most } => {
                    bounds = bounds.max(*from).max(if *to == usize::MAX { 0 } else { *to });
                    least = least.max(if *at_least > 0 { from.saturating_add(*at_least) } else { 0 });
                    if (*at_least, *at_most) == (1, usize::MAX) && *to == *from + 1 {
                        // It is that one item.
                        each.push((*from, *to, value));
                    } else if (*at_least, *at_most) != (0, usize::MAX) {
                        let (from, to, value) = (*from, *to, value.clone());
                        counts.push(Count { from, to, value, least: *at_least, most: *at_most });
                    }
                }
                Said::Least(bound) => least = least.max(*bound),
                Said::Most(bound) => most = most.min(*bound),
                Said::Unique => is_unique = true,
                Said::Repeats => {
                    repeats = true;
                    least = least.max(2);
                }
                _ => {}
            }
        }
        if is_unique && repeats {
            return Ok(None);
        }
        if is_unique || repeats {
            if least > MOST_UNIQUE {
                let why = format!("{least} items are compared, and {MOST_UNIQUE} are the most that may");
                return Err(Refused::TooLarge { at: "".into(), keyword: "uniqueItems", why });
            }
            most = most.min(MOST_UNIQUE);
        }
        if least > most {
            return Ok(None);
        }
        let mut prefix: Vec<Vec<Literal>> = Vec::new();
        for at in 0..bounds.min(most) {
            spend(each.len())?;
            let here = each.iter().filter(|(from, to, _)| (*from..*to).contains(&at));
            prefix.push(here.map(|(_, _, value)| (*value).clone()).collect());
        }
        let prefix: Vec<Arc<Goal>> = prefix.into_iter().map(|literals| self.goal(literals)).collect();
        let rest = each.iter().filter(|(_, to, _)| *to == usize::MAX).map(|(_, _, value)| (*value).clone());
        let rest = self.goal(rest);
        // What nothing can be ends the array.
        let is_nothing = |goal: &Goal| *goal.literals == [Literal::Is(NONE)];
        if let Some(end) = prefix.iter().position(|goal| is_nothing(goal)) {
            most = most.min(end);
        } else if is_nothing(&rest) {
            most = most.min(prefix.len());
        }
        if least > most {
            return Ok(None);
        }
        let possible = AtomicU8::new(0);
        Ok(Some(ArrayShape { prefix, rest, counts, least, most, is_unique, repeats, possible }))
    }

    /// Returns the alternatives for the next item: its goal, and the array after it.
    pub(crate) fn item_cells(
        &self,
        shape: &Arc<ArrayShape>,
        items: &Items,
        search: &mut Search,
    ) -> Arc<[(Arc<Goal>, Items)]> {
        if shape.is_plain() {
            return self.found_cells(shape, items, search).into();
        }
        let key = (Arc::as_ptr(shape) as usize, items.clone());
        if let Some((_, known)) = super::lock(&self.cells).get(&key) {
            return Arc::clone(known);
        }
        let found: Arc<[(Arc<Goal>, Items)]> = self.found_cells(shape, items, search).into();
        if search.is_sure() {
            let mut cells = super::lock(&self.cells);
            cells.put(key, (Arc::clone(shape), Arc::clone(&found)));
            if cells.len() > super::MOST_PASSING {
                cells.pop_lru();
            }
        }
        found
    }

    fn found_cells(&self, shape: &ArrayShape, items: &Items, search: &mut Search) -> Vec<(Arc<Goal>, Items)> {
        if items.index >= shape.most {
            return Vec::new();
        }
        let mut goal = Arc::clone(shape.goal(items.index));
        if shape.is_unique {
            let mut taken: Vec<Json> = items.seen.as_ref().map_or_else(Vec::new, |seen| seen.all.clone());
            match self.kept_for_later(shape, items, search) {
                Some(kept) => taken.extend(kept),
                None => return Vec::new(),
            }
            if !taken.is_empty() {
                taken.sort_unstable();
                taken.dedup();
                goal = self.with(&goal, Literal::NotIn(Arc::new(Values::new(taken))));
            }
        }
        if !self.is_possible(&goal, search) {
            return Vec::new();
        }
        if shape.is_plain() {
            // That items which must come are possible was found at its beginning.
            return vec![(goal, shape.after(items, &[]))];
        }
        let mut found = Vec::new();
        for (goal, has_repeated) in self.repeating(shape, items, goal, search) {
            for (goal, claims) in self.counted(shape, items, goal, search) {
                let mut after = shape.after(items, &claims);
                if has_repeated {
                    (after.has_repeated, after.seen) = (true, None);
                }
                // What is left to come again was found already.
                let later = Items { has_repeated: true, ..after.clone() };
                if self.array_may_complete_after(shape, &later, search) {
                    found.push((goal, after));
                }
            }
        }
        found
    }

    /// Returns sets of values for the next item where some two items must be equal, each with whether the item is a
    /// repeated one.
    fn repeating(
        &self,
        shape: &ArrayShape,
        items: &Items,
        goal: Arc<Goal>,
        search: &mut Search,
    ) -> Vec<(Arc<Goal>, bool)> {
        if !shape.repeats || items.has_repeated {
            return vec![(goal, false)];
        }
        let mut found = Vec::new();
        let mut other = Arc::clone(&goal);
        if let Some(seen) = &items.seen {
            found.push((self.with(&goal, Literal::In(Arc::clone(seen))), true));
            other = self.with(&goal, Literal::NotIn(Arc::clone(seen)));
        }
        let after = Items { index: items.index + 1, ..items.clone() };
        if self.may_repeat(shape, &after, search) {
            found.push((other, false));
        } else {
            // It is this one that comes again.
            for index in after.index..shape.most.min(after.index.max(shape.prefix.len()) + 1) {
                found.push((self.goal(other.literals.iter().chain(&shape.goal(index).literals).cloned()), false));
            }
        }
        found.retain(|(goal, _)| self.is_possible(goal, search));
        found
    }

    /// Returns whether one of the items that were written may come again, or one that comes may come twice.
    fn may_repeat(&self, shape: &ArrayShape, items: &Items, search: &mut Search) -> bool {
        let end = shape.most.min(items.index.max(shape.prefix.len()) + 2);
        for first in items.index..end {
            if spend(4).is_err() || !self.is_possible(shape.goal(first), search) {
                return false;
            }
            if let Some(seen) = &items.seen {
                let goal = self.with(shape.goal(first), Literal::In(Arc::clone(seen)));
                if self.is_possible(&goal, search) {
                    return true;
                }
            }
            for second in first + 1..end {
                let literals = shape.goal(first).literals.iter().chain(&shape.goal(second).literals);
                let goal = self.goal(literals.cloned());
                let between = (first + 1..=second).all(|at| self.is_possible(shape.goal(at), search));
                if between && self.is_possible(&goal, search) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns sets of values for the next item, each with the counts that it adds to.
    fn counted(
        &self,
        shape: &ArrayShape,
        items: &Items,
        goal: Arc<Goal>,
        search: &mut Search,
    ) -> Vec<(Arc<Goal>, Vec<bool>)> {
        let mut cells = vec![(goal, vec![false; shape.counts.len()])];
        for (nth, count) in shape.counts.iter().enumerate() {
            let is_settled = count.most == usize::MAX && items.have[nth] >= count.least;
            if is_settled || !(count.from..count.to).contains(&items.index) {
                continue;
            }
            let mut next = Vec::new();
            for (goal, claims) in cells {
                let is = self.with(&goal, count.value.clone());
                let is_not = self.with(&goal, count.value.negated());
                if items.have[nth] < count.most && self.is_possible(&is, search) {
                    let mut claims = claims.clone();
                    claims[nth] = true;
                    next.push((is, claims));
                }
                if self.is_possible(&is_not, search) {
                    next.push((is_not, claims));
                }
            }
            cells = next;
            if cells.len() > super::MOST_CELLS {
                search.refuse(Refused::cells("contains"));
                return Vec::new();
            }
        }
        cells
    }

    /// Returns whether an array that has these items may be completed.
    pub(crate) fn array_may_complete(&self, shape: &ArrayShape, items: &Items, search: &mut Search) -> bool {
        if shape.is_unique && !self.has_enough(shape, items, None, search) {
            return false;
        }
        if shape.repeats && !items.has_repeated && !self.may_repeat(shape, items, search) {
            return false;
        }
        self.array_may_complete_after(shape, &Items { has_repeated: true, ..items.clone() }, search)
    }

    /// The same, whatever was written before.
    fn array_may_complete_after(&self, shape: &ArrayShape, items: &Items, search: &mut Search) -> bool {
        let mut seen: HashSet<(usize, Box<[usize]>)> = HashSet::new();
        let mut open = vec![items.clone()];
        while let Some(items) = open.pop() {
            if spend(2).is_err() {
                return false;
            }
            if shape.may_end(&items) {
                return true;
            }
            if items.index >= shape.most {
                continue;
            }
            let goal = shape.goal(items.index);
            if !self.is_possible(goal, search) {
                continue;
            }
            let is_satisfied = shape.counts.iter().zip(&items.have).all(|(count, have)| *have >= count.least);
            let is_uncounted = shape.counts.iter().all(|count| count.most == usize::MAX);
            // All others are alike.
            if items.index >= shape.prefix.len() && is_satisfied && is_uncounted {
                return true;
            }
            if !seen.insert((items.index, items.have.clone())) {
                continue;
            }
            for (_, claims) in self.counted(shape, &items, Arc::clone(goal), search) {
                open.push(shape.after(&items, &claims));
            }
        }
        false
    }

    /// Values that the next item must leave to items that come later; `None` where there are not enough.
    fn kept_for_later(&self, shape: &ArrayShape, items: &Items, search: &mut Search) -> Option<Vec<Json>> {
        let later = shape.least.saturating_sub(items.index + 1);
        if later == 0 {
            return Some(Vec::new());
        }
        let after = Items { index: items.index + 1, ..items.clone() };
        let mut candidates: Vec<Json> = Vec::new();
        for index in after.index..shape.least.min(after.index + MOST_MATCHED) {
            if index > shape.prefix.len() {
                break;
            }
            // Where there are more, some are left whatever comes here.
            let enough = later + 1 + items.seen.as_ref().map_or(0, |seen| seen.all.len());
            if let Some(values) = self.few_values(shape.goal(index), enough, search) {
                candidates.extend(values);
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        let mut kept = Vec::new();
        for value in candidates {
            if !self.has_enough(shape, &after, Some(&value), search) {
                kept.push(value);
            }
        }
        if kept.is_empty() || self.has_enough(shape, &after, None, search) { Some(kept) } else { None }
    }

    /// Returns whether other items are left whatever comes next, since all items are of one goal with more values than
    /// were written and must come.
    pub(crate) fn has_others(&self, shape: &ArrayShape, items: &Items, search: &mut Search) -> bool {
        let written = items.seen.as_ref().map_or(0, |seen| seen.all.len());
        let enough = shape.least.saturating_add(written + 2);
        shape.items_alike().is_some() && self.has_many(&shape.rest, enough, 0, search)
    }

    /// Returns whether the items that must come may all differ, from what was written and from one value more.
    fn has_enough(&self, shape: &ArrayShape, items: &Items, but: Option<&Json>, search: &mut Search) -> bool {
        let needed = shape.least.saturating_sub(items.index);
        if needed == 0 {
            return true;
        }
        let is_taken = |value: &Json| but == Some(value) || items.seen.as_ref().is_some_and(|seen| seen.has(value));
        let taken = usize::from(but.is_some()) + items.seen.as_ref().map_or(0, |seen| seen.all.len());
        // Each item that must come, with its values where those are few.
        let mut places: Vec<Arc<Vec<Json>>> = Vec::new();
        let mut rest = None;
        for index in items.index..shape.least {
            let values = if index < shape.prefix.len() {
                self.few_values(&shape.prefix[index], needed + taken, search).map(Arc::new)
            } else {
                let find = || self.few_values(&shape.rest, needed + taken, search).map(Arc::new);
                rest.get_or_insert_with(find).clone()
            };
            match values {
                Some(values) => places.push(values),
                None if index >= shape.prefix.len() => break,
                None => {}
            }
            if places.len() > MOST_MATCHED {
                // All of one kind: the number decides.
                let left = shape.least - index.max(shape.prefix.len());
                let free = rest.clone().flatten().map_or(usize::MAX, |values: Arc<Vec<Json>>| {
                    values.iter().filter(|value| !is_taken(value)).count()
                });
                if free < left {
                    return false;
                }
                break;
            }
        }
        // Each place takes a value of its own.
        let mut owner: std::collections::BTreeMap<&Json, usize> = std::collections::BTreeMap::new();
        for place in 0..places.len() {
            let mut tried = HashSet::new();
            if !matched(place, &places, &is_taken, &mut owner, &mut tried) {
                return false;
            }
        }
        true
    }
}

/// Gives a place a value, by moving others where that is needed.
fn matched<'p>(
    place: usize,
    places: &'p [Arc<Vec<Json>>],
    is_taken: &impl Fn(&Json) -> bool,
    owner: &mut std::collections::BTreeMap<&'p Json, usize>,
    tried: &mut HashSet<&'p Json>,
) -> bool {
    for value in places[place].iter().filter(|value| !is_taken(value)) {
        if !tried.insert(value) {
            continue;
        }
        let other = owner.get(value).copied();
        if other.is_none_or(|other| matched(other, places, is_taken, owner, tried)) {
            owner.insert(value, place);
            return true;
        }
    }
    false
}
