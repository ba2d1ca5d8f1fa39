//! States of an LR(1) parser, by Pager's method: states with the same core are merged, unless that would create a
//! conflict that LR(1) does not have. (D. Pager, "A Practical General Method for Constructing LR(k) Parsers", Acta
//! Informatica 7, 1977.)

use super::names::{Part, ResolvedGrammar, RuleOf, made_of};
use super::sets::{EMPTY, Sets};
use std::collections::{BTreeMap, HashMap, VecDeque};
use trie_core::work::{LimitExceeded, hold, spend};

/// An alternative of a rule, or the whole grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Production {
    /// `None` for the whole grammar.
    pub(super) rule: Option<u32>,
    pub(super) parts: Vec<Part>,
}

/// An alternative, and how many of its parts stand before the text that is to come.
pub(super) type Item = (u32, u32);

/// Key of a state: its items, ascending, each with its lookahead set.
type Kernel = Vec<(Item, u32)>;

pub(super) struct States {
    pub(super) kernels: Vec<Kernel>,
    /// Transitions of each state, ascending by part.
    pub(super) edges: Vec<Vec<(Part, u32)>>,
    pub(super) sets: Sets,
}

/// Grammar data from which states are built.
pub(super) struct Plan<'g> {
    pub(super) productions: &'g [Production],
    /// Numbers of the alternatives of each rule: the first one, and how many.
    alternatives: Vec<(u32, u32)>,
    /// For each alternative, from each of its parts on: its first set, and whether it is nullable.
    pub(super) begins: Vec<Vec<(u32, bool)>>,
}

/// Rules that some rule begins with, with the terminals that may follow them there.
type Closure = BTreeMap<u32, u32>;

/// Computes the first sets of all rules; or, from the other side, their last sets.
pub(super) fn borders(
    rules: &[RuleOf],
    empty: &[bool],
    ends: bool,
    sets: &mut Sets,
) -> Result<Vec<u32>, LimitExceeded> {
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); rules.len()];
    for (number, rule) in rules.iter().enumerate() {
        for part in rule.alternatives.iter().flatten() {
            if let Part::Rule(used) = *part
                && users[used as usize].last() != Some(&(number as u32))
            {
                users[used as usize].push(number as u32);
            }
        }
    }
    let mut first = vec![EMPTY; rules.len()];
    let mut queue: VecDeque<u32> = bottom_up(rules).into();
    let mut waits = vec![true; rules.len()];
    while let Some(number) = queue.pop_front() {
        waits[number as usize] = false;
        let mut all = vec![first[number as usize]];
        for parts in &rules[number as usize].alternatives {
            spend(1)?;
            let count = parts.len();
            let ordered = (0..count).map(|at| if ends { &parts[count - 1 - at] } else { &parts[at] });
            for part in ordered {
                spend(1)?;
                let begins = match *part {
                    Part::Terminal(terminal) => sets.one(terminal)?,
                    Part::Rule(rule) => first[rule as usize],
                };
                all.push(begins);
                if !matches!(part, Part::Rule(rule) if empty[*rule as usize]) {
                    break;
                }
            }
        }
        let all = sets.union_all(&mut all)?;
        if all != first[number as usize] {
            first[number as usize] = all;
            for &user in &users[number as usize] {
                if !std::mem::replace(&mut waits[user as usize], true) {
                    queue.push_back(user);
                }
            }
        }
    }
    Ok(first)
}

/// Returns the rules in an order in which used rules come before their users, where possible.
pub(super) fn bottom_up(rules: &[RuleOf]) -> Vec<u32> {
    let mut known = vec![false; rules.len()];
    let mut order = Vec::with_capacity(rules.len());
    let parts_of = |rule: u32| rules[rule as usize].alternatives.iter().flatten();
    for root in 0..rules.len() as u32 {
        if std::mem::replace(&mut known[root as usize], true) {
            continue;
        }
        let mut stack = vec![(root, parts_of(root))];
        while let Some((rule, parts)) = stack.last_mut() {
            match parts.next() {
                Some(&Part::Rule(used)) if !std::mem::replace(&mut known[used as usize], true) => {
                    stack.push((used, parts_of(used)));
                }
                Some(_) => {}
                None => {
                    order.push(*rule);
                    stack.pop();
                }
            }
        }
    }
    order
}

impl<'g> Plan<'g> {
    pub(super) fn build(
        grammar: &ResolvedGrammar,
        productions: &'g [Production],
        sets: &mut Sets,
    ) -> Result<Self, LimitExceeded> {
        let empty = made_of(&grammar.rules, false);
        let first = borders(&grammar.rules, &empty, false, sets)?;
        let mut alternatives = Vec::with_capacity(grammar.rules.len());
        let mut from = 0;
        for rule in &grammar.rules {
            alternatives.push((from, rule.alternatives.len() as u32));
            from += rule.alternatives.len() as u32;
        }
        let mut begins = Vec::with_capacity(productions.len());
        for production in productions {
            let mut from_end = vec![(EMPTY, true)];
            for part in production.parts.iter().rev() {
                let (after, may) = from_end[from_end.len() - 1];
                from_end.push(match *part {
                    Part::Terminal(terminal) => (sets.one(terminal)?, false),
                    Part::Rule(rule) if empty[rule as usize] => (sets.union(first[rule as usize], after)?, may),
                    Part::Rule(rule) => (first[rule as usize], false),
                });
            }
            from_end.reverse();
            begins.push(from_end);
        }
        Ok(Self { productions, alternatives, begins })
    }

    fn part(&self, (production, dot): Item) -> Option<Part> {
        self.productions[production as usize].parts.get(dot as usize).copied()
    }

    /// The rules that a state begins, and what may follow each.
    pub(super) fn closure(&self, kernel: &Kernel, sets: &mut Sets) -> Result<Closure, LimitExceeded> {
        let mut found = Closure::new();
        let mut queue = VecDeque::new();
        let mut add = |item: Item, follows: u32, found: &mut Closure, queue: &mut VecDeque<u32>| {
            spend(1)?;
            let Some(Part::Rule(rule)) = self.part(item) else { return Ok(()) };
            let (begins, may) = self.begins[item.0 as usize][item.1 as usize + 1];
            let after = if may { sets.union(begins, follows)? } else { begins };
            match found.entry(rule) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(after);
                    queue.push_back(rule);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let all = sets.union(*entry.get(), after)?;
                    if all != *entry.get() {
                        entry.insert(all);
                        queue.push_back(rule);
                    }
                }
            }
            Ok(())
        };
        for &(item, follows) in kernel {
            add(item, follows, &mut found, &mut queue)?;
        }
        while let Some(rule) = queue.pop_front() {
            let follows = found[&rule];
            for production in self.numbers(rule) {
                add((production, 0), follows, &mut found, &mut queue)?;
            }
        }
        Ok(found)
    }

    pub(super) fn numbers(&self, rule: u32) -> std::ops::Range<u32> {
        let (first, count) = self.alternatives[rule as usize];
        first..first + count
    }

    /// The states that follow one, by the part between.
    fn successors(&self, kernel: &Kernel, closure: &Closure) -> Result<BTreeMap<Part, Kernel>, LimitExceeded> {
        let mut after: BTreeMap<Part, Kernel> = BTreeMap::new();
        let begun = closure.iter().flat_map(|(&rule, &follows)| self.numbers(rule).map(move |of| ((of, 0), follows)));
        for (item, follows) in kernel.iter().copied().chain(begun) {
            spend(1)?;
            if let Some(part) = self.part(item) {
                after.entry(part).or_default().push(((item.0, item.1 + 1), follows));
            }
        }
        for kernel in after.values_mut() {
            kernel.sort_unstable();
        }
        Ok(after)
    }

    /// All states, from the alternative `whole`, behind which `end` comes.
    pub(super) fn states(&self, whole: u32, end: u32, mut sets: Sets) -> Result<States, LimitExceeded> {
        let end = sets.one(end)?;
        let mut kernels: Vec<Kernel> = vec![vec![((whole, 0), end)]];
        let mut edges: Vec<Vec<(Part, u32)>> = vec![Vec::new()];
        let mut by_core: HashMap<Vec<Item>, Vec<u32>> = HashMap::new();
        let (mut queue, mut waits) = (VecDeque::from([0u32]), vec![true]);
        while let Some(state) = queue.pop_front() {
            waits[state as usize] = false;
            let kernel = kernels[state as usize].clone();
            let closure = self.closure(&kernel, &mut sets)?;
            let mut out = Vec::new();
            for (part, kernel) in self.successors(&kernel, &closure)? {
                let alike = by_core.entry(kernel.iter().map(|&(item, _)| item).collect()).or_default();
                let mut found = alike.iter().copied().find(|&other| kernels[other as usize] == kernel);
                if found.is_none() {
                    for &other in &*alike {
                        if compatible(&kernels[other as usize], &kernel, &sets)? {
                            found = Some(other);
                            break;
                        }
                    }
                }
                let Some(to) = found else {
                    hold(kernel.len() * 96 + 256)?;
                    let fresh = kernels.len() as u32;
                    alike.push(fresh);
                    kernels.push(kernel);
                    edges.push(Vec::new());
                    waits.push(true);
                    queue.push_back(fresh);
                    out.push((part, fresh));
                    continue;
                };
                let mut more = false;
                for (own, (_, follows)) in kernels[to as usize].iter_mut().zip(&kernel) {
                    let all = sets.union(own.1, *follows)?;
                    more |= std::mem::replace(&mut own.1, all) != all;
                }
                if more && !std::mem::replace(&mut waits[to as usize], true) {
                    queue.push_back(to);
                }
                out.push((part, to));
            }
            hold(out.len() * size_of::<(Part, u32)>())?;
            edges[state as usize] = out;
        }
        Ok(States { kernels, edges, sets }.keep_reachable())
    }
}

/// Returns whether two kernels of one core can be merged without a conflict that neither has.
fn compatible(one: &Kernel, other: &Kernel, sets: &Sets) -> Result<bool, LimitExceeded> {
    let meet = |one, other| sets.table().meet(one, other);
    for (at, (_, a)) in one.iter().enumerate() {
        for later in at + 1..one.len() {
            spend(1 + sets.len(*a))?;
            let (b, x, y) = (one[later].1, other[at].1, other[later].1);
            if (meet(*a, y) || meet(b, x)) && !meet(*a, b) && !meet(x, y) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

impl States {
    /// Keeps the reachable states: later merges may have left others behind.
    fn keep_reachable(mut self) -> Self {
        let mut number = vec![u32::MAX; self.kernels.len()];
        number[0] = 0;
        let mut order = vec![0u32];
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            for &(_, to) in &self.edges[state as usize] {
                if number[to as usize] == u32::MAX {
                    number[to as usize] = order.len() as u32;
                    order.push(to);
                }
            }
        }
        let mut taken = |state: &u32| {
            let mut edges = std::mem::take(&mut self.edges[*state as usize]);
            for (_, to) in &mut edges {
                *to = number[*to as usize];
            }
            (std::mem::take(&mut self.kernels[*state as usize]), edges)
        };
        let (kernels, edges) = order.iter().map(&mut taken).unzip();
        Self { kernels, edges, sets: self.sets }
    }
}
