//! Where terminals meet: which may follow which, and which cannot because the first would swallow the beginning of the
//! second. `1` and `2` never stand next to each other where `12` is a number, unless SKIP comes between.
//!
//! Most grammars have a SKIP that keeps all neighbours apart, or no such neighbours. For the others, each rule is a
//! relation between how the terminal before it ended and how its own last one ends; the state of the parser's stack
//! carries with which ends it can be completed. So no byte is allowed that only leads to such a meeting.

use super::bits::Bits;
use super::lexer::{Lexer, NONE};
use super::names::{Part, Resolved};
use super::tables::Tables;
use std::collections::HashMap;

/// How ends lead to ends, over all texts of something.
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
    fn then(&self, other: &Self) -> Self {
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
    pub(super) fn before(&self, ends: &Bits) -> Bits {
        let mut found = Bits::none(self.0.len());
        self.0.iter().enumerate().filter(|(_, row)| row.meets(ends)).for_each(|(from, _)| found.set(from));
        found
    }
}

/// What the stack must carry where neighbours can run into each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joints {
    /// Terminal and class of end of each kind of end.
    pub(super) kinds: Vec<(u32, usize)>,
    pub(super) classes: usize,
    /// Of each production, what is left from each of its parts on.
    pub(super) rest: Vec<Vec<Relation>>,
}

/// Which terminals stand next to each other.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// Behind each terminal, with nothing but SKIP between.
    pub(super) behind: Vec<Bits>,
    /// At the beginning of a text.
    first: Bits,
}

impl Neighbours {
    #[inline]
    pub(super) fn are(&self, one: u32, next: u32) -> bool {
        self.behind[one as usize].has(next as usize)
    }
}

pub(super) fn neighbours(grammar: &Resolved) -> Neighbours {
    let (rules, terminals) = (grammar.rules.len(), grammar.terminals.len());
    let mut first = vec![Bits::none(terminals); rules];
    let mut last = first.clone();
    let mut empty = vec![false; rules];
    loop {
        let mut more = false;
        for (number, rule) in grammar.rules.iter().enumerate() {
            for parts in &rule.alternatives {
                let is_empty = |part: &Part| matches!(part, Part::Rule(rule) if empty[*rule as usize]);
                more |= parts.iter().all(is_empty) && !std::mem::replace(&mut empty[number], true);
                let reaches = |sets: &mut Vec<Bits>, parts: &mut dyn Iterator<Item = &Part>| {
                    let mut all = sets[number].clone();
                    for part in parts {
                        add_part(&mut all, *part, sets);
                        if !matches!(part, Part::Rule(rule) if empty[*rule as usize]) {
                            break;
                        }
                    }
                    sets[number].add(&all)
                };
                more |= reaches(&mut first, &mut parts.iter());
                more |= reaches(&mut last, &mut parts.iter().rev());
            }
        }
        if !more {
            break;
        }
    }
    let mut behind = vec![Bits::none(terminals); terminals];
    for parts in grammar.rules.iter().flat_map(|rule| &rule.alternatives) {
        for (at, part) in parts.iter().enumerate() {
            let mut ends = Bits::none(terminals);
            add_part(&mut ends, *part, &last);
            for follower in &parts[at + 1..] {
                for end in ends.iter() {
                    add_part(&mut behind[end], *follower, &first);
                }
                if !matches!(follower, Part::Rule(rule) if empty[*rule as usize]) {
                    break;
                }
            }
        }
    }
    let first = first.swap_remove(grammar.start as usize);
    Neighbours { behind, first }
}

fn add_part(set: &mut Bits, part: Part, of_rules: &[Bits]) {
    match part {
        Part::Terminal(terminal) => set.set(terminal as usize),
        Part::Rule(rule) => {
            set.add(&of_rules[rule as usize]);
        }
    }
}

impl Joints {
    /// `None` if no neighbours run into each other. Otherwise the lexer tells the ends of terminals apart as well.
    pub(super) fn of(grammar: &Resolved, tables: &Tables, lexer: &mut Lexer, neighbours: &Neighbours) -> Option<Self> {
        // States at whose end the same bytes begin what follows are of one class; the first is the start of the text.
        let mut classes: Vec<Bits> = Vec::new();
        let mut class_of = |state: u32| {
            let mut free = Bits::none(lexer.width());
            let begins = |class: &usize| lexer.step_class(lexer.start(), *class).is_some();
            let goes_on = |class: usize| state != lexer.start() && lexer.step_class(state, class).is_some();
            (0..lexer.width()).filter(begins).filter(|&class| !goes_on(class)).for_each(|class| free.set(class));
            classes.iter().position(|known| *known == free).unwrap_or_else(|| {
                classes.push(free);
                classes.len() - 1
            })
        };
        class_of(lexer.start());
        let mut known: HashMap<(u32, usize), u32> = HashMap::new();
        let mut kinds = Vec::new();
        let mut of_state = vec![NONE; lexer.states()];
        for state in 0..lexer.states() as u32 {
            let Some(terminal) = lexer.reads(state) else { continue };
            let kind = (terminal, class_of(state));
            of_state[state as usize] = *known.entry(kind).or_insert_with(|| {
                kinds.push(kind);
                kinds.len() as u32 - 1
            });
        }
        lexer.name_ends(&of_state, kinds.len());
        let after = after_classes(lexer, &classes, &kinds, grammar.skip);
        let terminals = |class: usize| {
            let mut set = Bits::none(grammar.terminals.len());
            after[class].iter().for_each(|kind| set.set(kinds[kind].0 as usize));
            set
        };
        // SKIP may stand before all of them.
        let mut all = neighbours.first.clone();
        neighbours.behind.iter().for_each(|behind| {
            all.add(behind);
        });
        let apart = kinds.iter().all(|&(terminal, class)| {
            let must = if grammar.skip == Some(terminal) { &all } else { &neighbours.behind[terminal as usize] };
            must.within(&terminals(class))
        });
        if apart {
            let of_state: Vec<u32> = (0..lexer.states() as u32).map(|s| lexer.reads(s).unwrap_or(NONE)).collect();
            lexer.name_ends(&of_state, grammar.terminals.len());
            return None;
        }
        let rest = relations(grammar, tables, &kinds, &after);
        Some(Self { kinds, classes: classes.len(), rest })
    }
}

/// The kinds of ends that the next terminal may have behind each class of ends, SKIP between them or not.
fn after_classes(lexer: &Lexer, classes: &[Bits], kinds: &[(u32, usize)], skip: Option<u32>) -> Vec<Bits> {
    let directly = classes.iter().map(|free| {
        let mut all = Bits::none(kinds.len());
        for class in free.iter() {
            let set = lexer.step_class(lexer.start(), class).and_then(|state| lexer.set(lexer.reach(state)));
            if let Some(set) = set {
                all.add(set);
            }
        }
        all
    });
    let mut after: Vec<Bits> = directly.collect();
    loop {
        let mut more = false;
        for class in 0..classes.len() {
            let mut all = after[class].clone();
            for kind in after[class].iter().filter(|&kind| Some(kinds[kind].0) == skip) {
                all.add(&after[kinds[kind].1]);
            }
            more |= after[class].add(&all);
        }
        if !more {
            return after;
        }
    }
}

fn relations(grammar: &Resolved, tables: &Tables, kinds: &[(u32, usize)], after: &[Bits]) -> Vec<Vec<Relation>> {
    let classes = after.len();
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
    loop {
        let mut more = false;
        for production in &tables.productions {
            let Some(rule) = production.rule else { continue };
            let whole =
                production.parts.iter().fold(Relation::identity(classes), |all, part| all.then(&of(part, &rules)));
            more |= rules[rule as usize].add(&whole);
        }
        if !more {
            break;
        }
    }
    let rest = |parts: &Vec<Part>| {
        let mut from_end = vec![Relation::identity(classes)];
        for part in parts.iter().rev() {
            let before = of(part, &rules).then(&from_end[from_end.len() - 1]);
            from_end.push(before);
        }
        from_end.reverse();
        from_end
    };
    tables.productions.iter().map(|production| rest(&production.parts)).collect()
}
