//! Rows of a table: the ids of each key and of its list, one after the other in one array.

use super::problem::{PrefixTableReport, SkippedWhy};
use trie_core::TokenId;

/// The rows of one dictionary. Where a row ends the next begins.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// For each row, the ids of its key, those of its list, ascending, and, if there are weights, the bits of each as
    /// an f32.
    words: Vec<u32>,
    list: Vec<Row>,
    /// Separator between the ids of the first key with several ids, and the rows with another separator.
    separator: Option<Box<str>>,
    others: Vec<(u32, Box<str>)>,
    /// Rows whose list has no usable token, ascending.
    emptied: Vec<u32>,
    /// Keys that gave no row, and ids and weights that belong to no row.
    pub(super) left_out: PrefixTableReport,
    weighted: bool,
}

/// Sixteen bytes, because there may be millions of rows.
#[derive(Debug, Clone, Copy)]
struct Row {
    begin: u64,
    key: u32,
    list: u32,
}

/// One key with its list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'r> {
    /// The ids of the key, the start token's included.
    pub(super) path: &'r [u32],
    /// The tokens that may follow, ascending, each once.
    pub(super) tokens: &'r [u32],
    /// The bits of their weights; none where the table has none.
    pub(super) weights: &'r [u32],
    /// True if tokens were listed but none of them can be used.
    pub(super) emptied: bool,
}

/// A key while its list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Its ids are the last words.
    Read { begin: usize },
    /// The key is invalid: its list is read and dropped.
    Bad,
}

impl Rows {
    pub(super) fn new(weighted: bool) -> Self {
        Self { weighted, ..Self::default() }
    }

    /// Returns the number of rows so far.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether lists have weights.
    pub(super) fn has_weights(&self) -> bool {
        self.weighted
    }

    /// Keys that were read.
    pub(super) fn keys(&self) -> usize {
        self.list.len() + self.left_out.bad_keys
    }

    /// Takes a key: ids with always the same text without digits between them.
    pub(super) fn begin(&mut self, key: &str) -> Key {
        let begin = self.words.len();
        if let Some(separator) = self.read_key(key) {
            self.note_separator(separator);
            Key::Read { begin }
        } else {
            self.words.truncate(begin);
            self.left_out.skip(SkippedWhy::BadKey, || (key.to_owned(), None));
            Key::Bad
        }
    }

    /// Appends the ids of a key. Returns the text between them, empty if there is only one.
    fn read_key<'k>(&mut self, key: &'k str) -> Option<&'k str> {
        let mut separator: Option<&str> = None;
        let mut rest = key;
        loop {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            self.words.push(id_of(&rest[..digits])?.get());
            rest = &rest[digits..];
            if rest.is_empty() {
                return Some(separator.unwrap_or_default());
            }
            let (between, after) = rest.split_at(rest.bytes().position(|byte| byte.is_ascii_digit())?);
            if separator.is_some_and(|separator| separator != between) {
                return None;
            }
            separator = Some(between);
            rest = after;
        }
    }

    fn note_separator(&mut self, separator: &str) {
        match &self.separator {
            _ if separator.is_empty() => {}
            None => self.separator = Some(separator.into()),
            Some(usual) if **usual == *separator => {}
            Some(_) => self.others.push((self.list.len() as u32, separator.into())),
        }
    }

    /// Takes the list of a key: `items` are its tokens with their weights, in any order, and `read` is their number in
    /// the JSON.
    pub(super) fn end(&mut self, key: Key, text: &str, items: &mut Vec<(TokenId, f32)>, read: usize) {
        let Key::Read { begin } = key else { return };
        if !items.is_sorted_by(|one, other| one.0 < other.0) {
            // Stable: the first of equal tokens stays.
            items.sort_by_key(|&(token, _)| token);
            items.dedup_by(|later, first| {
                if later.0 == first.0 && later.1.to_bits() != first.1.to_bits() {
                    self.left_out.skip(SkippedWhy::TwoWeights, || (text.to_owned(), Some(later.0.to_string())));
                }
                later.0 == first.0
            });
        }
        let row = Row { begin: begin as u64, key: (self.words.len() - begin) as u32, list: items.len() as u32 };
        if items.is_empty() && read > 0 {
            self.emptied.push(self.list.len() as u32);
        }
        self.words.extend(items.iter().map(|(token, _)| token.get()));
        if self.weighted {
            self.words.extend(items.iter().map(|(_, weight)| weight.to_bits()));
        }
        self.list.push(row);
    }

    pub(super) fn entry(&self, row: u32) -> Entry<'_> {
        let Row { begin, key, list } = self.list[row as usize];
        let words = &self.words[begin as usize..];
        let (path, words) = words.split_at(key as usize);
        let (tokens, words) = words.split_at(list as usize);
        let weights = if self.weighted { &words[..list as usize] } else { &[] };
        Entry { path, tokens, weights, emptied: list == 0 && self.emptied.binary_search(&row).is_ok() }
    }

    fn path(&self, row: u32) -> &[u32] {
        let Row { begin, key, .. } = self.list[row as usize];
        &self.words[begin as usize..][..key as usize]
    }

    /// The key of a row.
    pub(super) fn key(&self, row: u32, sep: &str) -> String {
        key_text(self.path(row), sep)
    }

    /// The numbers of the rows in the order of their keys, each key once: of equal keys the last. Rows that are left
    /// out are recorded.
    pub(super) fn put_in_order(&self, sep: &str, report: &mut PrefixTableReport) -> Vec<u32> {
        let PrefixTableReport { bad_keys, bad_ids, two_weights, skipped, .. } = &self.left_out;
        (report.bad_keys, report.bad_ids, report.two_weights) = (*bad_keys, *bad_ids, *two_weights);
        report.skipped.clone_from(skipped);
        let usual = self.separator.as_deref().is_none_or(|usual| usual == sep);
        let fits = |row: u32| match self.others.binary_search_by_key(&row, |&(row, _)| row) {
            Ok(at) => *self.others[at].1 == *sep,
            Err(_) => usual || self.path(row).len() == 1,
        };
        // Two ids decide mostly, and lie beside the number: keys need not be fetched from everywhere.
        let mut keyed: Vec<(u64, u32)> = Vec::with_capacity(self.list.len());
        for row in 0..self.list.len() as u32 {
            if fits(row) {
                let path = self.path(row);
                let id = |nth: usize| path.get(nth).map_or(0, |&id| u64::from(id) + 1);
                keyed.push((id(1) << 32 | id(2), row));
            } else {
                report.skip(SkippedWhy::BadKey, || (self.key_text(row), None));
            }
        }
        // Keys with another start lie among the others, in their own order.
        let paths = |one: u32, other: u32| self.path(one).cmp(self.path(other));
        keyed.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| paths(one.1, other.1)).then(one.1.cmp(&other.1))
        });
        let mut rows: Vec<u32> = Vec::with_capacity(keyed.len());
        for (_, row) in keyed {
            match rows.last_mut() {
                Some(last) if self.path(*last) == self.path(row) => {
                    report.skip(SkippedWhy::Duplicate, || (key_text(self.path(row), sep), None));
                    *last = row;
                }
                _ => rows.push(row),
            }
        }
        rows
    }

    /// The key of a row as it was written.
    fn key_text(&self, row: u32) -> String {
        let other = self.others.binary_search_by_key(&row, |&(row, _)| row);
        let separator = other.map_or(self.separator.as_deref(), |at| Some(&*self.others[at].1));
        key_text(self.path(row), separator.unwrap_or_default())
    }
}

/// A key with these ids.
pub(super) fn key_text(path: &[u32], sep: &str) -> String {
    path.iter().map(u32::to_string).collect::<Vec<_>>().join(sep)
}

/// A token id in the form that keys use: without sign or leading zero. Any other text is never looked up.
pub(super) fn id_of(digits: &str) -> Option<TokenId> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
    if plain { digits.parse().ok().and_then(TokenId::new) } else { None }
}
