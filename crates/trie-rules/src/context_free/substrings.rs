//! Substrings of a text: runs of its pieces.

use crate::rule::Rule;
use std::collections::BTreeMap;
use std::fmt;

/// Runs of pieces that follow each other in a text, the empty one too: a suffix automaton over the pieces, whose steps
/// are walked byte by byte.
pub(super) struct Substrings {
    /// For each state the pieces that may follow, as bytes and ascending, and where they lead.
    edges: Vec<Vec<(Box<[u8]>, u32)>>,
}

/// A state of the automaton, the pieces that begin as what was read of the next one, and how much that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Reading {
    state: u32,
    first: u32,
    end: u32,
    read: u32,
}

impl Substrings {
    /// Returns the automaton of some pieces. `O(n log n)` for `n` pieces.
    pub(super) fn new(pieces: &[String]) -> Self {
        let (mut next, mut link, mut length) = (vec![BTreeMap::<&str, usize>::new()], vec![None], vec![0]);
        let mut last = 0;
        for piece in pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()) {
            let new = next.len();
            next.push(BTreeMap::new());
            link.push(None);
            length.push(length[last] + 1);
            let mut at = Some(last);
            while let Some(state) = at.filter(|&state| !next[state].contains_key(piece)) {
                next[state].insert(piece, new);
                at = link[state];
            }
            link[new] = Some(match at {
                None => 0,
                Some(state) => {
                    let known = next[state][piece];
                    if length[known] == length[state] + 1 {
                        known
                    } else {
                        let copy = next.len();
                        next.push(next[known].clone());
                        link.push(link[known]);
                        length.push(length[state] + 1);
                        let mut at = Some(state);
                        while let Some(state) = at.filter(|&state| next[state].get(piece) == Some(&known)) {
                            next[state].insert(piece, copy);
                            at = link[state];
                        }
                        link[known] = Some(copy);
                        copy
                    }
                }
            });
            last = new;
        }
        let edges = |steps: BTreeMap<&str, usize>| {
            steps.into_iter().map(|(piece, to)| (piece.as_bytes().into(), to as u32)).collect()
        };
        Self { edges: next.into_iter().map(edges).collect() }
    }

    fn begin(&self, state: u32) -> Reading {
        Reading { state, first: 0, end: self.edges[state as usize].len() as u32, read: 0 }
    }
}

impl Rule for Substrings {
    /// Ascending: a piece may be the beginning of another.
    type State = Vec<Reading>;

    fn start(&self) -> Vec<Reading> {
        vec![self.begin(0)]
    }

    fn step(&self, states: &Vec<Reading>, byte: u8) -> Option<Vec<Reading>> {
        let mut found = Vec::new();
        for reading in states {
            let edges = &self.edges[reading.state as usize][reading.first as usize..reading.end as usize];
            let read = reading.read as usize;
            let below = edges.partition_point(|(piece, _)| piece.get(read).is_none_or(|&next| next < byte));
            let upto = edges.partition_point(|(piece, _)| piece.get(read).is_none_or(|&next| next <= byte));
            if below == upto {
                continue;
            }
            let whole = edges[below..upto].iter().filter(|(piece, _)| piece.len() == read + 1);
            found.extend(whole.map(|&(_, to)| self.begin(to)));
            let (first, end) = (reading.first + below as u32, reading.first + upto as u32);
            if edges[below..upto].iter().any(|(piece, _)| piece.len() > read + 1) {
                found.push(Reading { first, end, read: reading.read + 1, ..*reading });
            }
        }
        found.sort_unstable();
        found.dedup();
        (!found.is_empty()).then_some(found)
    }

    fn is_end(&self, states: &Vec<Reading>) -> bool {
        states.iter().any(|reading| reading.read == 0)
    }
}

impl fmt::Debug for Substrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Substrings").field("states", &self.edges.len()).finish()
    }
}
