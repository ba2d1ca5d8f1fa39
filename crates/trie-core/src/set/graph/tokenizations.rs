//! Every tokenisation of some texts, as a graph over the byte positions in them.

use super::positions::{Positions, Sequence};
use crate::set::builder::BuildError;
use crate::set::byte_trie::{ByteNode, ByteTrie};
use crate::set::ids::TokenId;
use crate::set::trie::Trie;
use crate::work::ErrorKind;

/// One text of [`Trie::all_tokenizations`].
#[derive(Debug, Clone, Copy)]
pub struct TokenizedLeaf<'a> {
    /// Name of the leaf.
    pub name: &'a str,
    /// Bytes that its tokens spell.
    pub bytes: &'a [u8],
    /// The sequence that represents the leaf where one is needed: that of the tokenizer.
    pub canonical: &'a [TokenId],
}

impl Sequence for TokenizedLeaf<'_> {
    type Item = u8;

    fn items(&self) -> &[u8] {
        self.bytes
    }

    fn name(&self) -> &str {
        self.name
    }

    fn canonical(&self) -> &[TokenId] {
        self.canonical
    }
}

/// Bytes that are forced at a position for which the canonical sequences do not give the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForcedText<'a> {
    /// The bytes as text.
    pub text: &'a str,
    /// True if a leaf ends with these bytes and no leaf continues beyond them. Otherwise there is a choice after them.
    pub ends: bool,
}

/// Texts that make no set of tokenisations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizationError {
    /// No text, an empty one, or more than 32 bits count.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The vocabulary lacks some of its bytes.
    #[error("no tokens spell the text of row {row}")]
    NoTokenization {
        /// Number of the row.
        row: usize,
    },
}

impl TokenizationError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Build(error) => error.kind(),
            Self::NoTokenization { .. } => ErrorKind::Set,
        }
    }
}

/// Texts that are asked about together.
const PORTION: usize = 1 << 14;
/// Largest number of forced bytes asked about: the first token of a tokenizer hardly depends on bytes further away.
const RUN: usize = 256;

impl Trie {
    /// A set of these texts that allows every tokenisation with the tokens of `vocab`.
    ///
    /// Each different text is one leaf, numbered by its bytes; equal texts get the smallest name. The nodes are byte
    /// positions: the set takes 12 bytes for each position and 8 for each token that can begin there, however many
    /// tokenisations there are.
    ///
    /// If only one text can follow up to the next choice, its tokens are forced. They come from the canonical
    /// sequences if all that pass the position agree. After another tokenisation they come from `first`, which
    /// returns, for each text that it is asked about, the first token of its canonical sequence, if there is one.
    ///
    /// `stop` is asked now and then. `O(positions · tokens there)`, one thread.
    ///
    /// # Errors
    /// See [`TokenizationError`].
    pub fn all_tokenizations(
        texts: &[TokenizedLeaf<'_>],
        vocab: &ByteTrie,
        mut first: impl FnMut(&[ForcedText<'_>]) -> Vec<Option<TokenId>>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, TokenizationError> {
        let positions = Positions::new(texts, false)?;
        let mut draft = positions.draft(texts);
        draft.forced = Some(positions.forced_tokens(texts, vocab, &mut first, stop));
        let packed = draft.pack(stop, |position, edges| positions.edges(position, vocab, edges))?;
        packed.map_err(|leaf| TokenizationError::NoTokenization { row: positions.input_rows[leaf as usize] as usize })
    }
}

impl Positions<u8> {
    /// Tokens whose bytes continue from a position, and where they end.
    fn edges(&self, position: u32, vocab: &ByteTrie, edges: &mut Vec<(TokenId, u32)>) {
        let mut open: Vec<(u32, ByteNode)> = vec![(position, vocab.root())];
        while let Some((position, at)) = open.pop() {
            for next in self.successors(position) {
                if let Some(at) = vocab.child(at, self.items[next as usize]) {
                    edges.extend(vocab.tokens_at(at).iter().map(|&token| (token, next)));
                    open.push((next, at));
                }
            }
        }
    }

    /// The token that must follow each position.
    fn forced_tokens(
        &self,
        texts: &[TokenizedLeaf<'_>],
        vocab: &ByteTrie,
        first: &mut impl FnMut(&[ForcedText<'_>]) -> Vec<Option<TokenId>>,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Option<TokenId>> {
        let agreed = self.agreed(texts, vocab);
        let mut forced: Vec<Option<TokenId>> = agreed
            .iter()
            .map(|agreed| match agreed {
                Agreed::On(token) => Some(*token),
                Agreed::Nothing | Agreed::Split => None,
            })
            .collect();
        // Another tokenisation could lead to a position from which a text cannot be ended, unless every byte is a
        // token.
        if !self.items[1..].iter().all(|&byte| !vocab.equal(&[byte]).is_empty()) {
            return forced;
        }
        let mut asked: Vec<(u32, Vec<u8>, bool)> = Vec::new();
        for position in (0..self.items.len() as u32).rev() {
            if agreed[position as usize] == Agreed::Nothing {
                let (run, ends) = self.run(position);
                // A character may have been begun before, and may be ended after.
                let valid = std::str::from_utf8(&run).map_or_else(|error| error.valid_up_to(), str::len);
                if valid > 0 {
                    let ends = ends && valid == run.len();
                    asked.push((position, run[..valid].to_vec(), ends));
                }
            }
            if asked.len() == PORTION && stop() {
                // Nothing will be packed.
                return forced;
            }
            if asked.len() == PORTION || position == 0 {
                let questions: Vec<ForcedText<'_>> = asked
                    .iter()
                    .filter_map(|(_, text, ends)| {
                        Some(ForcedText { text: std::str::from_utf8(text).ok()?, ends: *ends })
                    })
                    .collect();
                for ((position, text, ends), token) in asked.iter().zip(first(&questions)) {
                    // A last token could reach into what is chosen next.
                    let whole = || token.is_some_and(|token| vocab.equal(text).contains(&token));
                    forced[*position as usize] = token.filter(|_| *ends || !whole());
                }
                asked.clear();
            }
        }
        forced
    }

    /// A limited number of the bytes that are forced after a position, and whether a text ends with them that no other
    /// text continues.
    fn run(&self, position: u32) -> (Vec<u8>, bool) {
        let mut run = Vec::new();
        let mut at = position;
        loop {
            let mut after = self.successors(at);
            match (after.next(), after.next()) {
                (None, _) => return (run, true),
                (Some(only), None) if run.len() < RUN && !self.is_end(at) => {
                    run.push(self.items[only as usize]);
                    at = only;
                }
                _ => return (run, false),
            }
        }
    }

    /// Returns the common token of the canonical sequences at each position.
    fn agreed(&self, texts: &[TokenizedLeaf<'_>], vocab: &ByteTrie) -> Vec<Agreed> {
        let mut agreed = vec![Agreed::Nothing; self.items.len()];
        let mut seen = vec![0u32; self.items.len()];
        self.for_each_leaf(texts, |row, path| {
            let TokenizedLeaf { bytes, canonical, .. } = texts[row];
            let mut at = 0;
            for token in canonical {
                let here = path[at] as usize;
                let mut begins = vocab.prefixes(&bytes[at..]);
                // Some vocabularies write text with a token of another kind.
                let Some((length, _)) = begins.find(|(_, tokens)| tokens.binary_search(token).is_ok()) else { break };
                seen[here] += 1;
                agreed[here] = match agreed[here] {
                    Agreed::Nothing => Agreed::On(*token),
                    Agreed::On(other) if other == *token => Agreed::On(*token),
                    _ => Agreed::Split,
                };
                at += length;
            }
        });
        for (position, agreed) in agreed.iter_mut().enumerate() {
            let leaves = self.leaves(position as u32);
            let is_end = self.is_end(position as u32);
            *agreed = match *agreed {
                // Some texts pass here in the middle of a token.
                Agreed::On(_) if seen[position] < leaves => Agreed::Split,
                Agreed::Nothing if is_end => Agreed::Split,
                agreed => agreed,
            };
        }
        agreed
    }
}

/// Common token of the canonical sequences of all leaves at and below a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreed {
    /// None has the end of a token there.
    Nothing,
    /// All of them have this token next.
    On(TokenId),
    /// The sequences have different tokens.
    Split,
}
