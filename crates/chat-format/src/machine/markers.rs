//! Markers looked for in free text.

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::automaton::StateID;
use aho_corasick::dfa::DFA;
use std::collections::HashMap;

/// A set of markers, none of which begins another, as an automaton over bytes.
#[derive(Debug)]
pub(crate) struct Markers {
    dfa: Option<DFA>,
    start: StateID,
    /// Which marker is begun at a state, and how many bytes of it are written.
    begun: HashMap<StateID, (u32, u32)>,
    markers: Vec<Vec<u8>>,
}

/// How much of a marker is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Seen(StateID);

/// What a byte of free text did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// No marker is there.
    Text(Seen),
    /// A marker is there: which, and its length.
    Marker(usize, usize),
}

impl Markers {
    pub(crate) fn new(markers: Vec<Vec<u8>>) -> Self {
        let dfa = if markers.is_empty() { None } else { DFA::new(&markers).ok() };
        let start = dfa.as_ref().and_then(|dfa| dfa.start_state(Anchored::No).ok()).unwrap_or(StateID::ZERO);
        let mut begun = HashMap::new();
        for (number, marker) in (0_u32..).zip(&markers) {
            let Some(dfa) = &dfa else { break };
            let mut at = start;
            for (length, &byte) in (1_u32..).zip(marker) {
                at = dfa.next_state(Anchored::No, at, byte);
                begun.insert(at, (number, length));
            }
        }
        Self { dfa, start, begun, markers }
    }

    pub(crate) fn start(&self) -> Seen {
        Seen(self.start)
    }

    /// The bytes that may begin a marker.
    pub(crate) fn begun(&self, seen: Seen) -> &[u8] {
        if seen.0 == self.start {
            return &[];
        }
        self.begun.get(&seen.0).map_or(&[], |&(marker, length)| &self.markers[marker as usize][..length as usize])
    }

    pub(crate) fn step(&self, seen: Seen, byte: u8) -> Found {
        let Some(dfa) = &self.dfa else { return Found::Text(seen) };
        let at = dfa.next_state(Anchored::No, seen.0, byte);
        if dfa.is_match(at) {
            let all = (0..dfa.match_len(at)).map(|n| dfa.match_pattern(at, n).as_usize());
            if let Some(marker) = all.max_by_key(|&marker| self.markers[marker].len()) {
                return Found::Marker(marker, self.markers[marker].len());
            }
        }
        Found::Text(Seen(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_may_become_a_marker() {
        let markers = Markers::new(vec![b"<call>".to_vec(), b"<think>".to_vec(), b"all".to_vec()]);
        let mut seen = markers.start();
        for (byte, begun) in b"a<<ca<t".iter().zip([&b"a"[..], b"<", b"<", b"<c", b"<ca", b"<", b"<t"]) {
            let Found::Text(next) = markers.step(seen, *byte) else { panic!("no marker is whole") };
            assert_eq!(markers.begun(next), begun);
            seen = next;
        }
        assert_eq!("hink>".bytes().map(|byte| {
            let found = markers.step(seen, byte);
            if let Found::Text(next) = found { seen = next }
            found
        }).last(), Some(Found::Marker(1, 7)));
    }

    #[test]
    fn is_empty_without_markers() {
        let markers = Markers::new(Vec::new());
        assert_eq!(markers.step(markers.start(), b'x'), Found::Text(markers.start()));
    }
}
