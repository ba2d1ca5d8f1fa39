//! The texts of an automaton over bytes, as an automaton over characters.

use super::TextSet;
use super::alphabet::Alphabet;
use super::char_set::{CharSet, LAST};
use super::raw::Raw;
use crate::automaton::table::{DEAD, Table};
use crate::automaton::{Automaton, AutomatonError, AutomatonLimits};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use trie_core::work::spend;

/// Characters from one to another, and the state behind each.
type Range = (u32, u32, u32);

/// Walk over the characters of an automaton's bytes.
struct Characters<'t> {
    table: &'t Table,
    /// Ranges behind a state that has so many bytes of a character to come, counted from the first such character.
    inside: HashMap<(u32, u32), Rc<[Range]>>,
}

impl TextSet {
    /// Returns the texts of an automaton. Those that are not UTF-8 are left out.
    ///
    /// ```
    /// use trie_rules::{Regex, TextSet};
    ///
    /// let texts = TextSet::of_automaton(Regex::new("(ab|é)+")?.automaton())?;
    /// assert!(texts.is_match("abéab") && !texts.is_match("a"));
    /// assert_eq!(texts, TextSet::pattern("^(ab|é)+$")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An automaton that is too large, or too much work.
    pub fn of_automaton(automaton: &Automaton) -> Result<Self, AutomatonError> {
        let limits = AutomatonLimits::default();
        let table = &*automaton.0;
        let mut walk = Characters { table, inside: HashMap::new() };
        let mut number = HashMap::from([(table.start, 0u32)]);
        let mut order = vec![table.start];
        let (mut sets, mut number_of_set): (Vec<CharSet>, HashMap<CharSet, usize>) = (Vec::new(), HashMap::new());
        // From each state: a set of characters, and the state behind them.
        let mut edges: Vec<Vec<(usize, u32)>> = Vec::new();
        while let Some(&state) = order.get(edges.len()) {
            let mut behind: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
            for (low, high, to) in walk.ranges(state)? {
                behind.entry(to).or_default().push((low, high));
            }
            let mut own = Vec::with_capacity(behind.len());
            for (to, ranges) in behind {
                let to = *number.entry(to).or_insert_with(|| {
                    order.push(to);
                    order.len() as u32 - 1
                });
                let set = CharSet::ranges(ranges);
                let set = *number_of_set.entry(set.clone()).or_insert_with(|| {
                    sets.push(set);
                    sets.len() - 1
                });
                own.push((set, to));
            }
            edges.push(own);
        }
        let classes = Alphabet::of_sets(&sets);
        let width = classes.alphabet.width;
        if size_of::<u32>() * width * order.len() > limits.bytes {
            return Err(AutomatonError::TooLarge { limit: limits.bytes });
        }
        let mut next = vec![DEAD; width * order.len()];
        for (state, own) in edges.iter().enumerate() {
            for &(set, to) in own {
                classes.of[set].iter().for_each(|&class| next[state * width + class as usize] = to);
            }
        }
        let ends = order.iter().map(|&state| table.is_end(state)).collect();
        Ok(Self::new(&classes.alphabet, Raw { next, ends, width }))
    }
}

impl Characters<'_> {
    /// The states behind each character from a state.
    fn ranges(&mut self, state: u32) -> Result<Vec<Range>, AutomatonError> {
        let mut found = Vec::new();
        for byte in 0..0xF5u8 {
            let (more, first) = match byte {
                0..=0x7F => (0, u32::from(byte)),
                0xC2..=0xDF => (1, u32::from(byte & 0x1F)),
                0xE0..=0xEF => (2, u32::from(byte & 0xF)),
                0xF0..=0xF4 => (3, u32::from(byte & 7)),
                _ => continue,
            };
            let Some(to) = self.table.step(state, byte) else { continue };
            // Overlong forms and what is behind the last character are none.
            let least = [0, 0x80, 0x800, 0x1_0000][more as usize];
            let begin = first << (6 * more);
            for &(low, high, to) in &*self.inner_ranges(to, more)? {
                let (low, high) = ((begin + low).max(least), (begin + high).min(LAST));
                if low <= high {
                    push(&mut found, (low, high, to));
                }
            }
        }
        Ok(found)
    }

    fn inner_ranges(&mut self, state: u32, more: u32) -> Result<Rc<[Range]>, AutomatonError> {
        if more == 0 {
            return Ok(Rc::new([(0, 0, state)]));
        }
        if let Some(known) = self.inside.get(&(state, more)) {
            return Ok(Rc::clone(known));
        }
        let (mut found, size) = (Vec::new(), 1 << (6 * (more - 1)));
        for byte in 0x80..=0xBFu8 {
            let Some(to) = self.table.step(state, byte) else { continue };
            let begin = u32::from(byte & 0x3F) * size;
            let inside = self.inner_ranges(to, more - 1)?;
            spend(inside.len())?;
            inside.iter().for_each(|&(low, high, to)| push(&mut found, (begin + low, begin + high, to)));
        }
        let found: Rc<[Range]> = found.into();
        self.inside.insert((state, more), Rc::clone(&found));
        Ok(found)
    }
}

/// Adds a range behind those before it.
fn push(ranges: &mut Vec<Range>, (low, high, to): Range) {
    match ranges.last_mut() {
        Some(last) if last.2 == to && last.1 + 1 == low => last.1 = high,
        _ => ranges.push((low, high, to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::regex::Regex;

    #[test]
    fn patterns_over_bytes_and_over_characters_are_one_set() {
        let patterns = [
            r"",
            r"a",
            r"[a-z]*",
            r"é+x?",
            r"[\u{0}-\u{7f}]",
            r"(?s:.)*",
            r"[^\n]*",
            r"\p{L}{2}",
            r"[\u{d7ff}\u{e000}]",
            r"\u{10ffff}|\u{10000}",
            r"[\u{800}-\u{10fffe}]{0,3}",
            r"(a|ab)(c|bcd)(d*)",
            r"(\+|-| ).*\n",
        ];
        for pattern in patterns {
            let bytes = Regex::new(&pattern.replace(r"\u{", r"\x{")).unwrap();
            let texts = TextSet::of_automaton(bytes.automaton()).unwrap();
            let anchored = format!("^(?:{})$", pattern.replace("(?s:.)", r"[\s\S]").replace('.', r"[^\n]"));
            assert_eq!(texts, TextSet::pattern(&anchored).unwrap(), "{pattern}");
        }
    }
}
