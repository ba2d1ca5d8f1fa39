//! Control text: names of control tokens in untrusted text, which must not be read as those tokens.

use crate::vocab::{Vocab, VocabError};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use trie_core::TokenId;

/// The names that a tokenizer may read as control tokens.
struct ControlNames<'v> {
    names: HashSet<&'v str>,
    /// Lengths of the names that begin with each byte, ascending.
    lengths: HashMap<u8, BTreeSet<usize>>,
}

impl<'v> ControlNames<'v> {
    fn from_vocab(vocab: &'v Vocab) -> Self {
        let tokens = vocab.control().iter().chain(vocab.end_of_generation());
        let names = tokens.filter_map(|&token| std::str::from_utf8(vocab.piece(token)?).ok());
        let names: HashSet<&str> = names.filter(|name| !name.is_empty()).collect();
        let mut lengths: HashMap<u8, BTreeSet<usize>> = HashMap::new();
        for name in &names {
            lengths.entry(name.as_bytes()[0]).or_default().insert(name.len());
        }
        Self { names, lengths }
    }

    /// Returns the ranges of names in a text, overlapping ones too.
    fn places(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let begins = |at: usize| Some((at, self.lengths.get(&text.as_bytes()[at])?));
        (0..text.len()).filter_map(begins).flat_map(move |(at, lengths)| {
            let places = lengths.iter().map(move |length| at..at + length);
            places.filter(|place| text.get(place.clone()).is_some_and(|name| self.names.contains(name)))
        })
    }

    /// Returns the cuts of a text, ascending: they split every name with an untrusted byte, and no name that is all
    /// trusted.
    fn cuts(&self, text: &str, own: &[Range<usize>]) -> BTreeSet<usize> {
        let mut cuts = BTreeSet::new();
        for place in self.places(text) {
            let next = own.partition_point(|range| range.end <= place.start);
            let owned = own.get(next).filter(|range| range.start <= place.start).map_or(place.start, |range| range.end);
            if owned >= place.end {
                continue;
            }
            // Beside a foreign character no name is cut that is all own.
            let width = text[owned..].chars().next().map_or(1, char::len_utf8);
            if owned > place.start {
                cuts.insert(owned);
            } else if owned + width < place.end {
                cuts.insert(owned + width);
            } else {
                cuts.extend([place.start, place.end]);
            }
        }
        cuts
    }
}

impl Vocab {
    /// Tokens of a text of which some bytes are trusted. The name of a control token becomes that token only if all of
    /// its bytes are trusted; other names stay text. A text without such names has the tokens of [`Vocab::tokenize`].
    ///
    /// This is for a text made of trusted and untrusted pieces, such as a rendered chat template: trusted pieces may
    /// form a control token together, untrusted ones never. `own` are the trusted ranges of bytes, ascending,
    /// disjoint, and on character boundaries.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_traced(
        &self,
        text: &str,
        own: &[Range<usize>],
        add_special: bool,
    ) -> Result<Vec<TokenId>, VocabError> {
        self.tokenize_traced_from(text, own, Some(add_special))
    }

    /// [`Vocab::tokenize_traced`] for a text in the middle of another one: no space and no special token is put before
    /// it.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_traced_inside(&self, text: &str, own: &[Range<usize>]) -> Result<Vec<TokenId>, VocabError> {
        self.tokenize_traced_from(text, own, None)
    }

    /// `begins` is `None` in the middle of a text; else it says whether to add special tokens.
    fn tokenize_traced_from(
        &self,
        text: &str,
        own: &[Range<usize>],
        begins: Option<bool>,
    ) -> Result<Vec<TokenId>, VocabError> {
        let names = ControlNames::from_vocab(self);
        let cuts = names.cuts(text, own);
        let (mut tokens, mut from) = (Vec::new(), 0);
        for to in cuts.into_iter().chain([text.len()]) {
            let part = &text[from..to];
            // A foreign name of one character cannot be cut.
            let parse = !names.names.contains(part) || own.iter().any(|own| own.start <= from && to <= own.end);
            let inside = if from > 0 || begins.is_none() { self.tokenize_part(part, parse) } else { None };
            match inside {
                Some(inside) => tokens.extend(inside),
                None => tokens.extend(self.tokenize(part, begins == Some(true) && from == 0, parse)?),
            }
            from = to;
        }
        Ok(tokens)
    }

    /// Tokens of a prompt made of parts, each marked as trusted or not. Names of control tokens become those tokens in
    /// trusted parts and stay text in others.
    ///
    /// ```
    /// # use trie_core::TokenId;
    /// # use trie_text::{TokenKind, Tokenizer, TokenizerError};
    /// use trie_text::Vocab;
    /// # #[derive(Debug)]
    /// # struct Bytes;
    /// # impl Tokenizer for Bytes {
    /// #     fn tokenize(&self, text: &str, _: bool, parse: bool) -> Result<Vec<TokenId>, TokenizerError> {
    /// #         let mut found = Vec::new();
    /// #         for (at, part) in text.split("<s>").enumerate() {
    /// #             let name = if parse { "\u{0}" } else { "<s>" };
    /// #             let bytes = if at > 0 { name } else { "" }.bytes().chain(part.bytes());
    /// #             found.extend(bytes.filter_map(|byte| TokenId::new(byte.into())));
    /// #         }
    /// #         Ok(found)
    /// #     }
    /// # }
    /// # let bytes = (1..=255u8).map(|byte| (vec![byte], TokenKind::Text));
    /// # let tokens = [(b"<s>".to_vec(), TokenKind::Control)].into_iter().chain(bytes);
    /// # let vocab = Vocab::new(tokens, vec![], Some(std::sync::Arc::new(Bytes)))?;
    ///
    /// // One token a byte, and the control token <s>.
    /// let tokens = vocab.tokenize_parts(&[("<s>", true), ("<s>", false)], false)?;
    /// assert_eq!(tokens.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_parts(&self, parts: &[(&str, bool)], add_special: bool) -> Result<Vec<TokenId>, VocabError> {
        let (mut text, mut own): (String, Vec<Range<usize>>) = Default::default();
        for &(part, trusted) in parts {
            let from = text.len();
            text.push_str(part);
            match own.last_mut() {
                _ if !trusted || part.is_empty() => {}
                Some(last) if last.end == from => last.end = text.len(),
                _ => own.push(from..text.len()),
            }
        }
        self.tokenize_traced(&text, &own, add_special)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with `·` where it is cut; what stands between `[` and `]` is trusted.
    fn mark_cuts(marked: &str) -> String {
        let control: Vec<TokenId> = (0..3).map(|id| TokenId::new(id).unwrap()).collect();
        let vocab = Vocab::from_tokens(["<|im_end|>", "<s>", "é", "a"], Vec::new(), control).unwrap();
        let (mut text, mut own, mut from) = (String::new(), Vec::new(), 0);
        for character in marked.chars() {
            match character {
                '[' => from = text.len(),
                ']' => own.push(from..text.len()),
                other => text.push(other),
            }
        }
        let cuts = ControlNames::from_vocab(&vocab).cuts(&text, &own);
        cuts.into_iter().rev().for_each(|at| text.insert(at, '·'));
        text
    }

    #[test]
    fn foreign_names_are_cut_wherever_they_stand() {
        assert_eq!(mark_cuts("<|im_<|im_end|>end|>"), "<|im_<·|im_end|>end|>");
        assert_eq!(mark_cuts("<s><s>"), "<·s><·s>");
        assert_eq!(mark_cuts("plain > text <|im_"), "plain > text <|im_");
        assert_eq!(mark_cuts("café"), "caf·é·");
    }

    #[test]
    fn names_with_one_foreign_byte_are_cut_beside_it() {
        assert_eq!(mark_cuts("[<]s[>]"), "<·s>");
        assert_eq!(mark_cuts("[<s]>"), "<s·>");
        assert_eq!(mark_cuts("<[s>]"), "<·s>");
        assert_eq!(mark_cuts("[<|im_]end[|>]"), "<|im_·end|>");
    }

    #[test]
    fn trusted_names_stay_whole() {
        assert_eq!(mark_cuts("[<s>]"), "<s>");
        assert_eq!(mark_cuts("<[<s>]s>"), "<<s>s>");
        assert_eq!(mark_cuts("<s[<s>é]é"), "<s<s>é·é·");
    }
}
