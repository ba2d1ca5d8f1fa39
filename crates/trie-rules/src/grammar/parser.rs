//! Actions on a stack: shifts after pending reductions, and the terminals that are allowed at all.

use super::bits::Bits;
use super::joints::Joints;
use super::stack::{Ends, Live, Stack};
use super::tables::{Action, Tables};
use std::sync::LazyLock;
use trie_core::work::{over, spend};

#[derive(Debug)]
pub(super) struct Parser {
    tables: Tables,
    terminals: usize,
    skip: Option<u32>,
    joints: Option<Joints>,
    bottom: Stack,
}

/// A stack after the reductions that a terminal asks for: some of its nodes, and states above them.
struct ReducedStack<'s> {
    base: &'s Stack,
    above: Vec<u32>,
    shift: Option<u32>,
}

impl Parser {
    pub(super) fn new(tables: Tables, terminals: usize, skip: Option<u32>, joints: Option<Joints>) -> Self {
        let bottom = Stack::bottom(tables.start, None);
        let mut parser = Self { tables, terminals, skip, joints, bottom };
        parser.bottom = Stack::bottom(parser.tables.start, parser.ends(parser.tables.start, None));
        parser
    }

    pub(super) fn states(&self) -> usize {
        self.tables.states()
    }

    pub(super) fn bottom(&self) -> &Stack {
        &self.bottom
    }

    /// The stack after a terminal.
    pub(super) fn shift(&self, stack: &Stack, terminal: u32) -> Option<Stack> {
        let reduced = self.reduce(stack, terminal)?;
        let mut after = reduced.base.clone();
        for state in reduced.above.into_iter().chain(reduced.shift) {
            let made = after.with(state, || self.ends(state, Some(&after)));
            after = made;
        }
        Some(after)
    }

    /// Returns the allowed terminals; an empty set if the budget is used up, which is not cached.
    pub(super) fn live<'s>(&self, stack: &'s Stack) -> &'s Live {
        static NOTHING: LazyLock<Live> = LazyLock::new(|| Live { kinds: Bits::none(0), end: false });
        if let Some(known) = stack.live.get() {
            return known;
        }
        let found = self.find(stack);
        if over().is_some() { &NOTHING } else { stack.live.get_or_init(|| found) }
    }

    fn find(&self, stack: &Stack) -> Live {
        let end = self.reduce(stack, self.tables.end()).is_some();
        let Some(joints) = &self.joints else {
            let mut kinds = Bits::none(self.terminals);
            // What does nothing in the state on top does nothing at all.
            let columns = self.tables.columns(stack.state()).filter(|&column| column != self.tables.end());
            let takes = |terminal: &u32| self.reduce(stack, *terminal).is_some();
            columns.filter(takes).chain(self.skip).for_each(|terminal| kinds.set(terminal as usize));
            return Live { kinds, end };
        };
        let mut kinds = Bits::none(joints.kinds.len());
        let mut after: Option<(u32, Option<Stack>)> = None;
        for (kind, &(terminal, class)) in joints.kinds.iter().enumerate() {
            let shifted = match &after {
                Some((known, shifted)) if *known == terminal => shifted.clone(),
                _ if self.skip == Some(terminal) => Some(stack.clone()),
                _ => self.shift(stack, terminal),
            };
            if shifted.as_ref().and_then(|shifted| shifted.ends.as_ref()).is_some_and(|ends| ends.here.has(class)) {
                kinds.set(kind);
            }
            after = Some((terminal, shifted));
        }
        Live { kinds, end }
    }

    /// Reduces until the terminal can be shifted, or the end be accepted.
    fn reduce<'s>(&self, stack: &'s Stack, terminal: u32) -> Option<ReducedStack<'s>> {
        let mut base = stack;
        let mut above: Vec<u32> = Vec::new();
        loop {
            spend(1).ok()?;
            let top = above.last().copied().unwrap_or_else(|| base.state());
            match self.tables.action(top, terminal)? {
                Action::Shift(state) => return Some(ReducedStack { base, above, shift: Some(state) }),
                Action::Accept => return Some(ReducedStack { base, above, shift: None }),
                Action::Reduce(production) => {
                    let production = self.tables.productions.get(production as usize)?;
                    let parts = production.parts.len();
                    let left = above.len().saturating_sub(parts);
                    base = base.without_top(parts - (above.len() - left))?;
                    above.truncate(left);
                    let top = above.last().copied().unwrap_or_else(|| base.state());
                    above.push(self.tables.goto(top, production.rule?)?);
                }
            }
        }
    }

    /// Returns the ends with which a stack can be completed if it has this state on top.
    fn ends(&self, state: u32, below: Option<&Stack>) -> Option<Ends> {
        let joints = self.joints.as_ref()?;
        let all = || {
            (0..joints.classes).fold(Bits::none(joints.classes), |mut all, class| {
                all.set(class);
                all
            })
        };
        // Every alternative that the state stands in is completed, and goes on where it began.
        let kernel = |of: u32, begun: &dyn Fn(usize, u32) -> Option<Bits>| {
            let mut found = Bits::none(joints.classes);
            for &(production, dot) in self.tables.kernels.get(of as usize).into_iter().flatten() {
                let ends = match self.tables.productions[production as usize].rule {
                    Some(rule) => begun(dot as usize, rule),
                    None => Some(all()),
                };
                // What is given up here is thrown away by who asked.
                spend(joints.classes * joints.classes.div_ceil(64)).ok();
                if let Some(ends) = ends {
                    found.add(&joints.rest[production as usize][dot as usize].ends_before(&ends));
                }
            }
            found
        };
        let known = |stack: &Stack, rule: u32| {
            let with_rule = &stack.ends.as_ref()?.with_rule;
            with_rule.iter().find(|(known, _)| *known == rule).map(|(_, ends)| ends.clone())
        };
        let here = kernel(state, &|dot, rule| known(below?.without_top(dot - 1)?, rule));
        let gotos = self.tables.gotos(state);
        let mut with_rule: Vec<(u32, Bits)> =
            gotos.iter().map(|&(rule, _)| (rule, Bits::none(joints.classes))).collect();
        loop {
            let mut more = false;
            for (at, &(_, to)) in gotos.iter().enumerate() {
                let found = kernel(to, &|dot, rule| match dot {
                    1 => with_rule.iter().find(|(known, _)| *known == rule).map(|(_, ends)| ends.clone()),
                    _ => known(below?.without_top(dot - 2)?, rule),
                });
                more |= with_rule[at].1.add(&found);
            }
            if !more || over().is_some() {
                return Some(Ends { here, with_rule });
            }
        }
    }
}
