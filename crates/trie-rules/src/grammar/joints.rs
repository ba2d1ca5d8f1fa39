//! Adjacency of terminals: which pairs may be neighbours, and which cannot because the first would swallow the
//! beginning of the second. If `12` is a number, `1` and `2` never stand next to each other without SKIP between them.
//!
//! In most grammars SKIP keeps such neighbours apart, or there are none. In the others, each rule is a relation between
//! the end of the terminal before it and the end of its own last terminal. The parser's stack records the ends with
//! which it can be completed. So no byte is allowed that only leads to two terminals that would run into each other.

use super::bits::Bits;
use super::lexer::{Lexer, NONE};
use super::names::{Part, ResolvedGrammar, made_of};
use super::sets::{EMPTY, SetTable, Sets};
use super::states::{borders, bottom_up};
use super::tables::Tables;
use std::collections::{HashMap, VecDeque};
use trie_core::work::{LimitExceeded, hold, spend};

/// Relation between ends, over all texts of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation(Vec<Bits>);

impl Relation {
    fn none(count: usize) -> Self {
        Self(vec![Bits::none(count); count])
    }

    fn identity(count: usize) -> Self {
        let mut made = Self::none(count);
        made.0.iter_mut().enumerate().for_each(|(number, row)| row.set(number));
        made
    }

    /// First this one, then that one.
    fn compose(&self, other: &Self) -> Self {
        let mut made = Self::none(self.0.len());
        for (row, to) in made.0.iter_mut().zip(&self.0) {
            to.iter().for_each(|through| {
                row.add(&other.0[through]);
            });
        }
        made
    }

    fn add(&mut self, other: &Self) -> bool {
        self.0.iter_mut().zip(&other.0).fold(false, |more, (row, other)| row.add(other) | more)
    }

    /// The ends from which one of these is reached.
    pub(super) fn ends_before(&self, ends: &Bits) -> Bits {
        let mut found = Bits::none(self.0.len());
        self.0.iter().enumerate().filter(|(_, row)| row.meets(ends)).for_each(|(from, _)| found.set(from));
        found
    }
}

/// Data that the stack carries for neighbours that can run into each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joints {
    /// Terminal and class of end of each kind of end.
    pub(super) kinds: Vec<(u32, usize)>,
    pub(super) classes: usize,
    /// For each production, the relation of its remainder from each part on.
    pub(super) rest: Vec<Vec<Relation>>,
}

/// Pairs of terminals that may be neighbours.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// Behind each terminal, with nothing but SKIP between.
    behind: Vec<u32>,
    /// At the beginning of a text.
    first: u32,
    sets: SetTable,
}

impl Neighbours {
    #[inline]
    pub(super) fn are(&self, one: u32, next: u32) -> bool {
        self.sets.has(self.behind[one as usize], next)
    }
}

pub(super) fn neighbours(grammar: &ResolvedGrammar) -> Result<Neighbours, LimitExceeded> {
    let (rules, mut sets) = (&grammar.rules, Sets::new());
    let empty = made_of(rules, false);
    let first = borders(rules, &empty, false, &mut sets)?;
    let last = borders(rules, &empty, true, &mut sets)?;
    let mut behind: Vec<Vec<u32>> = vec![Vec::new(); grammar.terminals.len()];
    for parts in rules.iter().flat_map(|rule| &rule.alternatives) {
        // What comes behind each part, from the last one on.
        let mut next = EMPTY;
        for part in parts.iter().rev() {
            let (begins, ends, may) = match *part {
                Part::Terminal(terminal) => (sets.one(terminal)?, sets.one(terminal)?, false),
                Part::Rule(rule) => (first[rule as usize], last[rule as usize], empty[rule as usize]),
            };
            if next != EMPTY {
                for end in sets.table().members(ends) {
                    spend(1)?;
                    if behind[end as usize].last() != Some(&next) {
                        behind[end as usize].push(next);
                    }
                }
            }
            next = if may { sets.union(begins, next)? } else { begins };
        }
    }
    hold(behind.iter().map(|all| all.len() * size_of::<u32>()).sum())?;
    let behind = behind.iter_mut().map(|all| sets.union_all(all)).collect::<Result<_, _>>()?;
    Ok(Neighbours { behind, first: first[grammar.start as usize], sets: sets.finish() })
}

impl Joints {
    /// `None` if no neighbours run into each other. Otherwise the lexer tells the ends of terminals apart as well.
    pub(super) fn from_grammar(
        grammar: &ResolvedGrammar,
        tables: &Tables,
        lexer: &mut Lexer,
        neighbours: &Neighbours,
    ) -> Result<Option<Self>, LimitExceeded> {
        // States at whose end the same bytes begin what follows are of one class; the first is the start of the text.
        let mut classes: Vec<Bits> = Vec::new();
        let mut numbers: HashMap<Bits, usize> = HashMap::new();
        let mut class_of = |state: u32| {
            let mut free = Bits::none(lexer.width());
            let begins = |class: &usize| lexer.step_class(lexer.start(), *class).is_some();
            let goes_on = |class: usize| state != lexer.start() && lexer.step_class(state, class).is_some();
            (0..lexer.width()).filter(begins).filter(|&class| !goes_on(class)).for_each(|class| free.set(class));
            *numbers.entry(free).or_insert_with_key(|free| {
                classes.push(free.clone());
                classes.len() - 1
            })
        };
        class_of(lexer.start());
        let mut known: HashMap<(u32, usize), u32> = HashMap::new();
        let mut kinds = Vec::new();
        let mut of_state = vec![NONE; lexer.states()];
        for state in 0..lexer.states() as u32 {
            let Some(terminal) = lexer.reads(state) else { continue };
            spend(lexer.width())?;
            let kind = (terminal, class_of(state));
            of_state[state as usize] = *known.entry(kind).or_insert_with(|| {
                kinds.push(kind);
                kinds.len() as u32 - 1
            });
        }
        lexer.name_ends(&of_state)?;
        let after = after_classes(lexer, &classes, &kinds, grammar.skip)?;
        let terminals = |after: &Bits| {
            let mut set = Bits::none(grammar.terminals.len());
            after.iter().for_each(|kind| set.set(kinds[kind].0 as usize));
            set
        };
        let terminals: Vec<Bits> = after.iter().map(terminals).collect();
        // SKIP may stand before all of them.
        let all: Vec<u32> = neighbours.behind.iter().copied().chain([neighbours.first]).collect();
        let mut apart = true;
        for &(terminal, class) in &kinds {
            let must = if grammar.skip == Some(terminal) { &all[..] } else { &all[terminal as usize..][..1] };
            for &must in must {
                spend(1 + neighbours.sets.members(must).count())?;
                apart &= neighbours.sets.members(must).all(|next| terminals[class].has(next as usize));
            }
        }
        if apart {
            let of_state: Vec<u32> = (0..lexer.states() as u32).map(|s| lexer.reads(s).unwrap_or(NONE)).collect();
            lexer.name_ends(&of_state)?;
            return Ok(None);
        }
        let rest = relations(grammar, tables, &kinds, &after)?;
        Ok(Some(Self { kinds, classes: classes.len(), rest }))
    }
}

/// The kinds of ends that the next terminal may have behind each class of ends, SKIP between them or not.
fn after_classes(
    lexer: &Lexer,
    classes: &[Bits],
    kinds: &[(u32, usize)],
    skip: Option<u32>,
) -> Result<Vec<Bits>, LimitExceeded> {
    hold(classes.len() * kinds.len() / 8)?;
    let directly = classes.iter().map(|free| {
        let mut all = Bits::none(kinds.len());
        for class in free.iter() {
            if let Some(state) = lexer.step_class(lexer.start(), class) {
                lexer.ends(lexer.reach(state)).for_each(|end| all.set(end));
            }
        }
        all
    });
    let mut after: Vec<Bits> = directly.collect();
    loop {
        let mut more = false;
        for class in 0..classes.len() {
            let mut all = after[class].clone();
            spend(kinds.len())?;
            for kind in after[class].iter().filter(|&kind| Some(kinds[kind].0) == skip) {
                all.add(&after[kinds[kind].1]);
            }
            more |= after[class].add(&all);
        }
        if !more {
            return Ok(after);
        }
    }
}

fn relations(
    grammar: &ResolvedGrammar,
    tables: &Tables,
    kinds: &[(u32, usize)],
    after: &[Bits],
) -> Result<Vec<Vec<Relation>>, LimitExceeded> {
    let classes = after.len();
    // What one of them takes.
    let bytes = classes * (classes.div_ceil(64) * 8 + 24);
    hold(bytes.saturating_mul(grammar.terminals.len() + grammar.rules.len()))?;
    let mut terminals = vec![Relation::none(classes); grammar.terminals.len()];
    for (class, after) in after.iter().enumerate() {
        for (terminal, end) in after.iter().map(|kind| kinds[kind]) {
            terminals[terminal as usize].0[class].set(end);
        }
    }
    let mut rules = vec![Relation::none(classes); grammar.rules.len()];
    let of = |part: &Part, rules: &[Relation]| match *part {
        Part::Terminal(terminal) => terminals[terminal as usize].clone(),
        Part::Rule(rule) => rules[rule as usize].clone(),
    };
    let (mut own, mut users) = (vec![Vec::new(); rules.len()], vec![Vec::new(); rules.len()]);
    for production in &tables.productions {
        let Some(rule) = production.rule else { continue };
        own[rule as usize].push(&production.parts);
        for part in &production.parts {
            if let Part::Rule(used) = *part {
                users[used as usize].push(rule);
            }
        }
    }
    let mut queue: VecDeque<u32> = bottom_up(&grammar.rules).into();
    let mut waits = vec![true; rules.len()];
    while let Some(rule) = queue.pop_front() {
        waits[rule as usize] = false;
        let mut more = false;
        for parts in &own[rule as usize] {
            let mut whole = Relation::identity(classes);
            for part in *parts {
                spend(bytes / 8)?;
                whole = whole.compose(&of(part, &rules));
            }
            more |= rules[rule as usize].add(&whole);
        }
        for &user in users[rule as usize].iter().filter(|_| more) {
            if !std::mem::replace(&mut waits[user as usize], true) {
                queue.push_back(user);
            }
        }
    }
    let rest = |parts: &Vec<Part>| {
        let mut from_end = vec![Relation::identity(classes)];
        for part in parts.iter().rev() {
            spend(bytes / 8).and_then(|()| hold(bytes))?;
            let before = of(part, &rules).compose(&from_end[from_end.len() - 1]);
            from_end.push(before);
        }
        from_end.reverse();
        Ok(from_end)
    };
    tables.productions.iter().map(|production| rest(&production.parts)).collect()
}
