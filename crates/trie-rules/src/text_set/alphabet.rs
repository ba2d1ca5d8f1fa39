//! Classes of characters that an automaton does not distinguish, and the bytes of UTF-8 that lead to each class.

use super::char_set::{CharSet, LAST};
use lru::DefaultHasher;
use std::collections::HashMap;
use std::hash::Hash;

/// Classes of characters, every character in one of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Alphabet {
    /// First characters of ranges and the classes of these, in order; neighbours differ. Surrogates count as what
    /// stands before them.
    ranges: Vec<(u32, u32)>,
    pub(super) width: usize,
}

/// Counts sets of characters that were numbered.
pub(super) struct Classes {
    pub(super) alphabet: Alphabet,
    /// Classes of each set.
    pub(super) of: Vec<Vec<u32>>,
}

impl Alphabet {
    /// All characters in one class.
    pub(super) fn one() -> Self {
        Self { ranges: vec![(0, 0)], width: 1 }
    }

    /// Builds classes from ranges that begin with characters, each with a key: equal keys are one class. Classes are
    /// numbered in the order of their first characters.
    pub(super) fn by_keys<K: Clone + Eq + Hash>(begins: impl IntoIterator<Item = (u32, K)>) -> (Self, Vec<K>) {
        let (mut known, mut keys) = (HashMap::<K, u32, DefaultHasher>::default(), Vec::new());
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (begin, key) in begins {
            let class = *known.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            });
            if ranges.last().is_none_or(|last| last.1 != class) {
                ranges.push((begin, class));
            }
        }
        (Self { ranges, width: keys.len() }, keys)
    }

    /// The classes of some sets: characters that are in the same sets are one class.
    pub(super) fn of_sets(sets: &[CharSet]) -> Classes {
        let mut events: Vec<(u32, u32)> = Vec::new();
        for (number, set) in sets.iter().enumerate() {
            events.extend(set.iter().flat_map(|(low, high)| [(low, number as u32), (high + 1, number as u32)]));
        }
        // The surrogates begin and end nothing: a range that ends before them ends where they end.
        events.iter_mut().filter(|event| event.0 == 0xD800).for_each(|event| event.0 = 0xE000);
        events.sort_unstable();
        let mut inside = vec![0u64; sets.len().div_ceil(64)];
        let mut begins = Vec::new();
        if events.first().is_none_or(|first| first.0 > 0) {
            begins.push((0, inside.clone()));
        }
        for at in 0..events.len() {
            let (begin, set) = events[at];
            inside[set as usize / 64] ^= 1 << (set % 64);
            if begin <= LAST && events.get(at + 1).is_none_or(|next| next.0 != begin) {
                begins.push((begin, inside.clone()));
            }
        }
        let (alphabet, keys) = Self::by_keys(begins);
        let of = |set: usize| {
            let has = |key: &Vec<u64>| key[set / 64] >> (set % 64) & 1 == 1;
            (0..keys.len() as u32).filter(|&class| has(&keys[class as usize])).collect()
        };
        Classes { of: (0..sets.len()).map(of).collect(), alphabet }
    }

    /// The classes of two alphabets together, and for each the classes in both.
    pub(super) fn with(&self, other: &Self) -> (Self, Vec<(u32, u32)>) {
        if self == other {
            return (self.clone(), (0..self.width as u32).map(|class| (class, class)).collect());
        }
        let (mut at, mut of) = (0, 0);
        let mut begins = Vec::with_capacity(self.ranges.len() + other.ranges.len());
        let mut begin = 0;
        loop {
            begins.push((begin, (self.ranges[at].1, other.ranges[of].1)));
            let nexts = [self.ranges.get(at + 1), other.ranges.get(of + 1)].map(|next| next.map(|next| next.0));
            let Some(next) = nexts.iter().flatten().min().copied() else { break };
            at += usize::from(nexts[0] == Some(next));
            of += usize::from(nexts[1] == Some(next));
            begin = next;
        }
        Self::by_keys(begins)
    }

    /// With classes that are one where `as_one` numbers them alike, in the order of their first characters.
    pub(super) fn merge_classes(&self, as_one: &[u32]) -> (Self, Vec<u32>) {
        Self::by_keys(self.ranges.iter().map(|&(begin, class)| (begin, as_one[class as usize])))
    }

    #[inline]
    pub(super) fn class(&self, char: u32) -> u32 {
        let at = self.ranges.partition_point(|&(begin, _)| begin <= char);
        self.ranges[at - 1].1
    }

    /// The class of each of some characters, in ascending order, the first of them `begin` or behind it.
    fn from(&self, begin: u32) -> impl FnMut(u32) -> u32 + use<'_> {
        let mut at = self.ranges.partition_point(|&(first, _)| first <= begin) - 1;
        move |char| {
            while self.ranges.get(at + 1).is_some_and(|next| next.0 <= char) {
                at += 1;
            }
            self.ranges[at].1
        }
    }

    /// The classes of characters from one to another.
    pub(super) fn classes(&self, low: u32, high: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.ranges.partition_point(|&(begin, _)| begin <= low) - 1;
        self.ranges[first..].iter().take_while(move |&&(begin, _)| begin <= high).map(|&(_, class)| class)
    }

    /// Returns the number of characters of each class.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.width];
        for (at, &(begin, class)) in self.ranges.iter().enumerate() {
            let end = self.ranges.get(at + 1).map_or(LAST + 1, |next| next.0);
            let surrogates = end.clamp(0xD800, 0xE000) - begin.clamp(0xD800, 0xE000);
            sizes[class as usize] += (end - begin - surrogates) as usize;
        }
        sizes
    }

    /// A character of each class: the first, or a letter or digit where one is in it.
    pub(super) fn examples(&self) -> Vec<char> {
        let mut found: Vec<Option<char>> = vec![None; self.width];
        let plain = ('a'..='z').chain('A'..='Z').chain('0'..='9');
        for char in plain {
            found[self.class(u32::from(char)) as usize].get_or_insert(char);
        }
        for &(begin, class) in &self.ranges {
            if let Some(char) = char::from_u32(begin) {
                found[class as usize].get_or_insert(char);
            }
        }
        found.into_iter().map(|char| char.unwrap_or('\u{FFFD}')).collect()
    }

    /// Returns the class of the range, if no other class begins in `low + 1..=high`.
    pub(super) fn uniform(&self, low: u32, high: u32) -> Option<u32> {
        let at = self.ranges.partition_point(|&(begin, _)| begin <= low);
        let ends = self.ranges.get(at).is_none_or(|next| next.0 > high);
        ends.then(|| self.ranges[at - 1].1)
    }
}

/// Target of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ByteTarget {
    /// No character of UTF-8 has such a byte there.
    No,
    /// The character is over: its class.
    Class(u32),
    /// More bytes: the place between them.
    Inside(u32),
}

/// The bytes of characters.
#[derive(Debug)]
pub(super) struct Utf8 {
    /// After the first byte.
    first: [ByteTarget; 256],
    /// After bytes 0x80 to 0xBF, from each place inside characters.
    inside: Vec<[ByteTarget; 64]>,
    /// The classes of characters that go through each place.
    below: Vec<Vec<u32>>,
}

struct Builder<'a> {
    alphabet: &'a Alphabet,
    inside: Vec<[ByteTarget; 64]>,
    below: Vec<Vec<u32>>,
    known: HashMap<[ByteTarget; 64], u32, DefaultHasher>,
    /// Places all of whose characters are of one class, by the bytes that are left.
    uniform: HashMap<(u32, u32), u32, DefaultHasher>,
}

impl Utf8 {
    pub(super) fn new(alphabet: &Alphabet) -> Self {
        let (inside, below) = (Vec::new(), Vec::new());
        let mut builder = Builder { alphabet, inside, below, known: HashMap::default(), uniform: HashMap::default() };
        let mut first = [ByteTarget::No; 256];
        for byte in 0..0xF5u32 {
            first[byte as usize] = match byte {
                0..=0x7F => ByteTarget::Class(alphabet.class(byte)),
                0xC2..=0xDF => ByteTarget::Inside(builder.place(1, (byte & 0x1F) << 6)),
                0xE0..=0xEF => ByteTarget::Inside(builder.place(2, (byte & 0xF) << 12)),
                0xF0..=0xF4 => ByteTarget::Inside(builder.place(3, (byte & 7) << 18)),
                _ => ByteTarget::No,
            };
        }
        Self { first, inside: builder.inside, below: builder.below }
    }

    /// After a byte, from before a character (`None`) or from a place inside one.
    #[inline]
    pub(super) fn step(&self, place: Option<u32>, byte: u8) -> ByteTarget {
        match place {
            None => self.first[usize::from(byte)],
            Some(place) if byte & 0xC0 == 0x80 => self.inside[place as usize][usize::from(byte & 0x3F)],
            Some(_) => ByteTarget::No,
        }
    }

    #[inline]
    pub(super) fn children(&self, place: u32) -> &[u32] {
        &self.below[place as usize]
    }
}

impl Builder<'_> {
    /// The place before so many bytes, of which the first character is `begin`.
    fn place(&mut self, bytes: u32, begin: u32) -> u32 {
        let final_char = begin + (1 << (6 * bytes)) - 1;
        // Overlong forms, surrogates and what is behind the last character are left out byte by byte.
        let least = [0, 0x80, 0x800, 0x1_0000][bytes as usize];
        let is_complete = begin >= least && final_char <= LAST && (final_char < 0xD800 || begin > 0xDFFF);
        let class_of_all = self.alphabet.uniform(begin, final_char).filter(|_| is_complete);
        if let Some(&known) = class_of_all.and_then(|class| self.uniform.get(&(bytes, class))) {
            return known;
        }
        let mut after = [ByteTarget::No; 64];
        let size = 1 << (6 * (bytes - 1));
        let mut chars = self.alphabet.from(begin);
        for (at, after) in after.iter_mut().enumerate() {
            let from = begin + at as u32 * size;
            let is_char = from + size > least && from <= LAST && !(0xD800..=0xDFFF).contains(&from);
            *after = match bytes {
                _ if !is_char => ByteTarget::No,
                1 => ByteTarget::Class(chars(from)),
                _ => ByteTarget::Inside(self.place(bytes - 1, from)),
            };
        }
        let place = self.number_node(&after);
        if let Some(class) = class_of_all {
            self.uniform.insert((bytes, class), place);
        }
        place
    }

    fn number_node(&mut self, after: &[ByteTarget; 64]) -> u32 {
        if let Some(&known) = self.known.get(after) {
            return known;
        }
        let mut below: Vec<u32> = Vec::new();
        for &after in after {
            match after {
                ByteTarget::No => {}
                ByteTarget::Class(class) => below.push(class),
                ByteTarget::Inside(place) => below.extend(&self.below[place as usize]),
            }
        }
        below.sort_unstable();
        below.dedup();
        let place = self.inside.len() as u32;
        self.inside.push(*after);
        self.below.push(below);
        self.known.insert(*after, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_in_the_class_of_its_sets_by_its_bytes_too() {
        let sets = [
            CharSet::ranges([(0x41, 0x5A), (0xE9, 0xD7FF), (0x1_F600, 0x1_F64F)]),
            CharSet::property("L").unwrap(),
            CharSet::one(0xE000),
            CharSet::one(LAST),
            CharSet::default(),
        ];
        let classes = Alphabet::of_sets(&sets);
        let utf8 = Utf8::new(&classes.alphabet);
        for char in ('\0'..=char::MAX).filter(|&char| u32::from(char) % 7 == 0 || u32::from(char) < 0x3000) {
            let class = classes.alphabet.class(u32::from(char));
            for (set, of) in sets.iter().zip(&classes.of) {
                let has = set.iter().any(|(low, high)| (low..=high).contains(&u32::from(char)));
                assert_eq!(of.contains(&class), has, "{char:?}");
            }
            let mut buffer = [0; 4];
            let mut place = None;
            let mut found = ByteTarget::No;
            for byte in char.encode_utf8(&mut buffer).bytes() {
                found = utf8.step(place, byte);
                if let ByteTarget::Inside(inside) = found {
                    assert!(utf8.children(inside).contains(&class));
                    place = Some(inside);
                }
            }
            assert_eq!(found, ByteTarget::Class(class), "{char:?}");
        }
        for none in
            [&[0xC0u8][..], &[0xC1], &[0xE0, 0x9F], &[0xED, 0xA0], &[0xF0, 0x8F], &[0xF4, 0x90], &[0xF5], &[0x80]]
        {
            let mut place = None;
            let last = none.iter().map(|&byte| {
                let after = utf8.step(place, byte);
                place = if let ByteTarget::Inside(inside) = after { Some(inside) } else { None };
                after
            });
            assert_eq!(last.last(), Some(ByteTarget::No), "{none:x?}");
        }
    }
}
