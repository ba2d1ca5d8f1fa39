//! Patterns as nondeterministic automata over characters, with states for look-arounds.

use super::char_set::CharSet;
use super::syntax::Node;
use crate::automaton::{AutomatonError, AutomatonLimits};
use std::collections::HashMap;
use trie_core::work::spend;

/// Transition of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Reads a character of a set.
    Set {
        set: u32,
        next: u32,
    },
    Split(Vec<u32>),
    /// Goes on where a body matches what follows, or what stands before.
    Look {
        body: u32,
        negative: bool,
        next: u32,
    },
    /// Goes on before the first character.
    Start(u32),
    /// Goes on behind the last.
    End(u32),
    /// The body has matched.
    Accept,
    /// Everything matches from here on.
    All,
}

/// Assertion of a [`State::Look`].
#[derive(Debug)]
pub(super) struct Body {
    pub(super) is_ahead: bool,
    pub(super) entry: u32,
    pub(super) accept: u32,
    /// States of the body, without those of inner bodies: a state comes after its successors, except in loops.
    pub(super) states: Vec<u32>,
}

/// An automaton: its last body is the pattern itself, the others come before those that look for them.
#[derive(Debug, Default)]
pub(super) struct Nfa {
    pub(super) states: Vec<State>,
    pub(super) sets: Vec<CharSet>,
    pub(super) bodies: Vec<Body>,
    /// True if there is no assertion.
    pub(super) is_plain: bool,
}

struct Builder {
    nfa: Nfa,
    known_sets: HashMap<CharSet, u32>,
    /// Bodies by the nodes that they are made of: what is repeated looks for one.
    known_bodies: HashMap<*const Node, u32>,
    /// States of the body that is built.
    states: Vec<u32>,
    most: usize,
    limits: AutomatonLimits,
}

impl Nfa {
    /// Builds the automaton of the texts in which a pattern matches somewhere.
    pub(super) fn from_node(node: &Node, limits: AutomatonLimits) -> Result<Self, AutomatonError> {
        const STATE: usize = 2 * size_of::<State>();
        let mut builder = Builder {
            nfa: Self { is_plain: true, ..Self::default() },
            known_sets: HashMap::new(),
            known_bodies: HashMap::new(),
            states: Vec::new(),
            most: limits.bytes / STATE,
            limits,
        };
        let all = builder.push(State::All)?;
        let end = builder.push(State::Accept)?;
        let mut ways = Vec::new();
        for way in ways_of(node) {
            let (parts, from_start, to_end) = strip_anchors(way);
            let mut at = if to_end { end } else { all };
            for part in parts.iter().rev() {
                at = builder.build(part, at)?;
            }
            ways.push(if from_start { at } else { builder.anywhere(at)? });
        }
        let entry = if let [one] = ways[..] { one } else { builder.push(State::Split(ways))? };
        let states = std::mem::take(&mut builder.states);
        builder.nfa.bodies.push(Body { is_ahead: true, entry, accept: end, states });
        Ok(builder.nfa)
    }

    pub(super) fn main(&self) -> &Body {
        &self.bodies[self.bodies.len() - 1]
    }
}

/// Alternatives of a pattern, those in groups at its ends too, where an anchor stands in each.
fn ways_of(node: &Node) -> Vec<Node> {
    match node {
        Node::Either(all) => all.iter().flat_map(ways_of).collect(),
        Node::Concat(parts) => {
            let has_anchor =
                |part: Option<&Node>| matches!(part, Some(Node::Either(all)) if all.iter().any(is_anchored));
            let joined = |ways: &[Node], with: &dyn Fn(Vec<Node>) -> Vec<Node>| {
                let parts_of =
                    |way: &Node| if let Node::Concat(parts) = way { parts.clone() } else { vec![way.clone()] };
                ways.iter().flat_map(|way| ways_of(&Node::Concat(with(parts_of(way))))).collect()
            };
            match (parts.first(), parts.last()) {
                (Some(Node::Either(ways)), _) if has_anchor(parts.first()) => {
                    joined(ways, &|way| way.into_iter().chain(parts[1..].iter().cloned()).collect())
                }
                (_, Some(Node::Either(ways))) if has_anchor(parts.last()) => {
                    joined(ways, &|way| parts[..parts.len() - 1].iter().cloned().chain(way).collect())
                }
                _ => vec![node.clone()],
            }
        }
        other => vec![other.clone()],
    }
}

fn is_anchored(node: &Node) -> bool {
    match node {
        Node::Start | Node::End => true,
        Node::Concat(parts) => matches!(parts.first(), Some(Node::Start)) || matches!(parts.last(), Some(Node::End)),
        _ => false,
    }
}

/// A way without the anchors at its ends, and whether it had them.
fn strip_anchors(way: Node) -> (Vec<Node>, bool, bool) {
    let mut parts = if let Node::Concat(parts) = way { parts } else { vec![way] };
    let starts = parts.iter().take_while(|part| **part == Node::Start).count();
    parts.drain(..starts);
    let kept = parts.len() - parts.iter().rev().take_while(|part| **part == Node::End).count();
    let to_end = kept < parts.len();
    parts.truncate(kept);
    (parts, starts > 0, to_end)
}

impl Builder {
    fn push(&mut self, state: State) -> Result<u32, AutomatonError> {
        if self.nfa.states.len() >= self.most {
            return Err(AutomatonError::TooLarge { limit: self.limits.bytes });
        }
        spend(1)?;
        let number = self.nfa.states.len() as u32;
        self.nfa.states.push(state);
        self.states.push(number);
        Ok(number)
    }

    fn set(&mut self, set: &CharSet) -> u32 {
        if let Some(&known) = self.known_sets.get(set) {
            return known;
        }
        let number = self.nfa.sets.len() as u32;
        self.nfa.sets.push(set.clone());
        self.known_sets.insert(set.clone(), number);
        number
    }

    /// Adds a loop over any characters.
    fn anywhere(&mut self, next: u32) -> Result<u32, AutomatonError> {
        self.build(&Node::Repeat { node: Box::new(Node::Set(CharSet::full())), min: 0, max: None }, next)
    }

    /// The state that reads a node and goes on to the next.
    fn build(&mut self, node: &Node, next: u32) -> Result<u32, AutomatonError> {
        match node {
            Node::Empty => Ok(next),
            Node::Set(set) => {
                let set = self.set(set);
                self.push(State::Set { set, next })
            }
            Node::Concat(all) => all.iter().rev().try_fold(next, |next, node| self.build(node, next)),
            Node::Either(all) => {
                let ways = all.iter().map(|node| self.build(node, next)).collect::<Result<_, _>>()?;
                self.push(State::Split(ways))
            }
            Node::Repeat { node, min, max } => {
                let mut at = next;
                match max {
                    None => {
                        at = self.push(State::Split(vec![next]))?;
                        let again = self.build(node, at)?;
                        self.nfa.states[at as usize] = State::Split(vec![again, next]);
                    }
                    Some(max) => {
                        for _ in *min..*max {
                            let again = self.build(node, at)?;
                            if again == at {
                                // Nothing to repeat.
                                break;
                            }
                            at = self.push(State::Split(vec![again, next]))?;
                        }
                    }
                }
                for _ in 0..*min {
                    let again = self.build(node, at)?;
                    if again == at {
                        break;
                    }
                    at = again;
                }
                Ok(at)
            }
            Node::Start => {
                self.nfa.is_plain = false;
                self.push(State::Start(next))
            }
            Node::End => {
                self.nfa.is_plain = false;
                self.push(State::End(next))
            }
            Node::Look { ahead, negative, node } => {
                self.nfa.is_plain = false;
                let key: *const Node = &raw const **node;
                let body = if let Some(&known) = self.known_bodies.get(&key) {
                    known
                } else {
                    let outer = std::mem::take(&mut self.states);
                    let accept = self.push(State::Accept)?;
                    let entry = self.build(node, accept)?;
                    let states = std::mem::replace(&mut self.states, outer);
                    let number = self.nfa.bodies.len() as u32;
                    self.nfa.bodies.push(Body { is_ahead: *ahead, entry, accept, states });
                    self.known_bodies.insert(key, number);
                    number
                };
                self.push(State::Look { body, negative: *negative, next })
            }
        }
    }
}
