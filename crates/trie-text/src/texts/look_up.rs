//! The leaves of a set by the bytes of their tokens, whatever the tokens are.

use crate::vocab::{Vocab, VocabError};
use std::collections::HashSet;
use trie_core::work::{over, spend};
use trie_core::{Cursor, LeafId, Trie};

impl Vocab {
    /// The leaves of a set whose bytes begin with `text`, ordered by their bytes, equal ones by number. `text` may end
    /// inside a token or inside a character.
    ///
    /// The bytes of a leaf are those of its tokens, without the bytes of the prompt that a healed set spells again
    /// ([`Trie::heal_bytes`]). Every sequence of a leaf is searched; its canonical one determines the order. The
    /// search does not go past a token that is not text. Cost: the children of the nodes on the way, and the leaves
    /// that are found.
    ///
    /// # Errors
    /// A set for another vocabulary, or with tokens that this one does not have; or the work was ended.
    pub fn leaves_starting_with(&self, trie: &Trie, text: &[u8]) -> Result<Vec<LeafId>, VocabError> {
        let mut found: Vec<u32> = Vec::new();
        walk(self, trie, text, |at, _| found.extend(trie.leaves_below(at).take_while(|_| spend(1).is_ok())))?;
        over().map_or(Ok(()), Err)?;
        found.sort_unstable();
        found.dedup();
        let mut found: Vec<(Vec<u8>, u32)> =
            found.into_iter().map(|leaf| Ok((bytes_of(self, trie, leaf)?, leaf))).collect::<Result<_, VocabError>>()?;
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, leaf)| LeafId::new(leaf)).collect())
    }

    /// The leaf of a set with exactly these bytes, counted as in [`Vocab::leaves_starting_with`]; of several leaves
    /// the first.
    ///
    /// # Errors
    /// As [`Vocab::leaves_starting_with`].
    pub fn leaf_spelling(&self, trie: &Trie, text: &[u8]) -> Result<Option<LeafId>, VocabError> {
        let mut found: Option<LeafId> = None;
        walk(self, trie, text, |at, beyond| {
            let leaf = trie.leaf_at(at).filter(|_| beyond == 0);
            found = found.into_iter().chain(leaf).min();
        })?;
        Ok(found)
    }
}

/// Calls `each` with every position where the text is spelled, and the number of bytes by which the last token extends
/// beyond it.
fn walk(vocab: &Vocab, trie: &Trie, text: &[u8], mut each: impl FnMut(Cursor, usize)) -> Result<(), VocabError> {
    vocab.check_set(trie)?;
    vocab.check_tokens(&[trie.max_token()])?;
    // Every leaf of a healed set begins with the same bytes.
    let mut whole = bytes_of_whole(vocab, trie, 0)?;
    whole.truncate(trie.heal_bytes());
    whole.extend_from_slice(text);
    let mut open = vec![(trie.root(), 0)];
    // Sequences of one text meet again.
    let mut seen = HashSet::new();
    while let Some((at, spelled)) = open.pop() {
        let rest = &whole[spelled..];
        if rest.is_empty() {
            each(at, 0);
            continue;
        }
        for &token in trie.children(at) {
            spend(1)?;
            let Some(piece) = vocab.piece(token).filter(|_| vocab.is_text(token)) else {
                continue;
            };
            let Some(below) = trie.step(at, token) else { continue };
            if rest.starts_with(piece) {
                if seen.insert((below.node(), spelled + piece.len())) {
                    open.push((below, spelled + piece.len()));
                }
            } else if piece.starts_with(rest) {
                each(below, piece.len() - rest.len());
            }
        }
    }
    Ok(())
}

fn bytes_of(vocab: &Vocab, trie: &Trie, leaf: u32) -> Result<Vec<u8>, VocabError> {
    spend(8)?;
    let mut bytes = bytes_of_whole(vocab, trie, leaf)?;
    bytes.drain(..trie.heal_bytes().min(bytes.len()));
    Ok(bytes)
}

fn bytes_of_whole(vocab: &Vocab, trie: &Trie, leaf: u32) -> Result<Vec<u8>, VocabError> {
    trie.leaf(LeafId::new(leaf)).map_or(Ok(Vec::new()), |leaf| vocab.join(&leaf.tokens))
}
