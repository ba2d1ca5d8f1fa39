//! Markers looked for in free text.

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::automaton::StateID;
use aho_corasick::dfa::DFA;
use std::collections::HashMap;

/// Markers as an automaton over bytes. None begins another.
///
/// The library's automaton written out as one table: a state knows which marker is begun, and how much of it.
#[derive(Debug)]
pub(crate) struct Markers {
    /// Bytes that no marker has are one class.
    classes: Box<[u8; 256]>,
    n_classes: usize,
    /// The state after a class of bytes, state by state.
    next: Vec<u32>,
    states: Vec<MarkerProgress>,
    texts: Vec<Vec<u8>>,
}

/// Progress of a marker at a state.
#[derive(Debug, Clone, Copy, Default)]
struct MarkerProgress {
    marker: u32,
    length: u32,
    whole: bool,
}

/// Length of the matched prefix of a marker. The default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct MarkerState(u32);

/// Effect of a byte in free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkerStep {
    /// No marker is there.
    Text(MarkerState),
    /// A marker is there: which, and its length.
    Marker(usize, usize),
}

impl Markers {
    pub(crate) fn new(markers: Vec<Vec<u8>>) -> Self {
        let mut classes = Box::new([0; 256]);
        let mut used: Vec<u8> = markers.concat();
        used.sort_unstable();
        used.dedup();
        for (class, &byte) in (1..).zip(&used) {
            classes[usize::from(byte)] = class;
        }
        // A byte that no marker has stands for all of them.
        let other = (0..=255).find(|byte| !used.contains(byte)).unwrap_or(0);
        let bytes: Vec<u8> = std::iter::once(other).chain(used).collect();
        let mut made = Self {
            classes,
            n_classes: bytes.len(),
            next: vec![0; bytes.len()],
            states: vec![MarkerProgress::default()],
            texts: markers,
        };
        if let Ok(dfa) = DFA::new(&made.texts)
            && !made.texts.is_empty()
        {
            made.write_out(&dfa, &bytes);
        }
        made
    }

    fn write_out(&mut self, dfa: &DFA, bytes: &[u8]) {
        let Ok(start) = dfa.start_state(Anchored::No) else { return };
        let mut begun: HashMap<StateID, MarkerProgress> = HashMap::new();
        for (number, marker) in (0_u32..).zip(&self.texts) {
            let mut at = start;
            for (length, &byte) in (1_u32..).zip(marker) {
                at = dfa.next_state(Anchored::No, at, byte);
                let count = if dfa.is_match(at) { dfa.match_len(at) } else { 0 };
                let found = (0..count).map(|n| dfa.match_pattern(at, n).as_usize());
                let longest = found.max_by_key(|&found| self.texts[found].len());
                // What stands inside of a marker that is begun before it is part of that: `@` in `<@think>`.
                let longest = longest.filter(|&found| self.texts[found].len() >= length as usize);
                let of = match longest {
                    Some(found) => {
                        MarkerProgress { marker: found as u32, length: self.texts[found].len() as u32, whole: true }
                    }
                    None => MarkerProgress { marker: number, length, whole: false },
                };
                begun.insert(at, of);
            }
        }
        let mut numbers: HashMap<StateID, u32> = HashMap::from([(start, 0)]);
        let mut queue = vec![start];
        let mut done = 0;
        self.next.clear();
        while let Some(&at) = queue.get(done) {
            done += 1;
            for &byte in bytes {
                let after = dfa.next_state(Anchored::No, at, byte);
                // Whatever begins no marker is as the start.
                let after = if begun.contains_key(&after) { after } else { start };
                let number = *numbers.entry(after).or_insert_with(|| {
                    queue.push(after);
                    (queue.len() - 1) as u32
                });
                self.next.push(number);
            }
        }
        self.states = queue.iter().map(|at| begun.get(at).copied().unwrap_or_default()).collect();
    }

    /// Returns the texts of all markers.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().map(Vec::as_slice)
    }

    /// The bytes that may begin a marker.
    pub(crate) fn matched_bytes(&self, seen: MarkerState) -> &[u8] {
        let MarkerProgress { marker, length, .. } = self.states[seen.0 as usize];
        if length == 0 { &[] } else { &self.texts[marker as usize][..length as usize] }
    }

    #[inline]
    pub(crate) fn step(&self, seen: MarkerState, byte: u8) -> MarkerStep {
        let at = self.next[seen.0 as usize * self.n_classes + usize::from(self.classes[usize::from(byte)])];
        let MarkerProgress { marker, length, whole } = self.states[at as usize];
        if whole { MarkerStep::Marker(marker as usize, length as usize) } else { MarkerStep::Text(MarkerState(at)) }
    }

    /// Returns the number of leading bytes that begin no marker.
    pub(crate) fn plain(&self, bytes: &[u8]) -> usize {
        let plain = |byte: &u8| self.next[usize::from(self.classes[usize::from(*byte)])] == 0;
        bytes.iter().position(|byte| !plain(byte)).unwrap_or(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_may_become_a_marker() {
        let markers = Markers::new(vec![b"<call>".to_vec(), b"<think>".to_vec(), b"all".to_vec()]);
        let mut seen = MarkerState::default();
        for (byte, begun) in b"a<<ca<t".iter().zip([&b"a"[..], b"<", b"<", b"<c", b"<ca", b"<", b"<t"]) {
            let MarkerStep::Text(next) = markers.step(seen, *byte) else { panic!("no marker is whole") };
            assert_eq!(markers.matched_bytes(next), begun);
            seen = next;
        }
        assert_eq!(
            "hink>"
                .bytes()
                .map(|byte| {
                    let found = markers.step(seen, byte);
                    if let MarkerStep::Text(next) = found {
                        seen = next;
                    }
                    found
                })
                .last(),
            Some(MarkerStep::Marker(1, 7))
        );
    }

    #[test]
    fn what_begins_first_is_found() {
        let markers = Markers::new(vec![b"@".to_vec(), b"<@think>".to_vec()]);
        let found = |text: &str| {
            let mut seen = MarkerState::default();
            text.bytes().find_map(|byte| match markers.step(seen, byte) {
                MarkerStep::Text(next) => {
                    seen = next;
                    None
                }
                MarkerStep::Marker(marker, length) => Some((marker, length)),
            })
        };
        assert_eq!((found("<@think>"), found("<@t @"), found("< @")), (Some((1, 8)), Some((0, 1)), Some((0, 1))));
    }

    #[test]
    fn is_empty_without_markers() {
        let markers = Markers::new(Vec::new());
        assert_eq!(markers.step(MarkerState::default(), b'x'), MarkerStep::Text(MarkerState::default()));
    }
}
