//! Token healing: sets that begin inside the prompt.
//!
//! A tokenizer cuts a text into tokens as a whole, so a value after a prompt may begin in the prompt's last token: "is
//! " and "blue" are `is| blue` and not `is| |blue`. A set made with
//! [`Texts::with_healing`](crate::Texts::with_healing) spells the end of the prompt again ([`Trie::heal_bytes`]), and
//! the prompt is decoded without that end. This file finds the end of a prompt that matters to a set, and takes it off
//! the prompt.

use crate::vocab::{Vocab, VocabError};
use trie_core::ErrorKind;
use trie_core::{TokenId, Trie};

/// Reasons why a set cannot follow a prompt.
#[derive(Debug, thiserror::Error)]
pub enum HealingError {
    /// The set has tokens that the vocabulary does not have.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// A set that begins inside a different prompt than this one.
    #[error(
        "the set begins inside its prompt and spells {spelled:?} again (heal_bytes), \
         but this prompt ends with the tokens {found:?}"
    )]
    NotHealed {
        /// Text that every value begins with.
        spelled: String,
        /// The last tokens of the prompt, at most four.
        found: Vec<String>,
    },
    /// A set that spells a whole prompt again.
    #[error(
        "token healing takes {spelled:?} off the end of the prompt, because the values may begin with it in one \
         token, and that is all of the prompt: the first forward pass needs a token, so put text before it"
    )]
    AllTakenBack {
        /// Text that every value begins with.
        spelled: String,
    },
}

impl HealingError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Vocab(error) => error.kind(),
            Self::NotHealed { .. } | Self::AllTakenBack { .. } => ErrorKind::Argument,
        }
    }
}

impl Vocab {
    /// Returns the prompt without the tokens that a set spells again ([`Trie::heal_bytes`]). Functions that take a
    /// trie and a prompt call this themselves.
    ///
    /// ```
    /// # use trie_core::TokenId;
    /// # use trie_text::{TokenKind, Tokenizer, TokenizerError};
    /// use trie_text::{Texts, Vocab};
    /// # const PIECES: [&str; 5] = ["is", " ", "blue", " blue", "red"];
    /// # /// The longest tokens, from left to right.
    /// # #[derive(Debug)]
    /// # struct Longest;
    /// # impl Tokenizer for Longest {
    /// #     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
    /// #         let (mut rest, mut found) = (text, Vec::new());
    /// #         let fits = |rest: &str| (0..5).filter(|&id| rest.starts_with(PIECES[id])).max_by_key(|&id|
    /// PIECES[id].len());
    /// #         while let Some(id) = fits(rest) {
    /// #             found.push(TokenId::new(id as u32).unwrap());
    /// #             rest = &rest[PIECES[id].len()..];
    /// #         }
    /// #         Ok(found)
    /// #     }
    /// # }
    /// # let tokenizer = std::sync::Arc::new(Longest);
    /// # let vocab = Vocab::new(PIECES.map(|piece| (piece, TokenKind::Text)), vec![], Some(tokenizer))?;
    ///
    /// // The tokens are "is", " ", "blue", " blue" and "red".
    /// let prompt = vocab.tokenize("is ", false, false)?;
    /// let end = vocab.prompt_end(&prompt, &["blue", "red"]);
    /// let set = Texts::default().with_prefix(&end).with_healing(true).trie(&vocab, &["blue", "red"])?.trie;
    /// // " blue" is one token, so both values begin with the space, and the prompt ends before it.
    /// assert_eq!(set.heal_bytes(), 1);
    /// assert_eq!(vocab.join(vocab.before_set(&prompt, &set)?)?, b"is");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HealingError::NotHealed`] if the prompt does not end with tokens of those bytes,
    /// [`HealingError::AllTakenBack`] if it has no other tokens, or an error for a trie outside the vocabulary.
    pub fn before_set<'p>(&self, prompt: &'p [TokenId], trie: &Trie) -> Result<&'p [TokenId], HealingError> {
        if trie.heal_bytes() == 0 {
            return Ok(prompt);
        }
        let spelled = self.healed_bytes(trie)?;
        match self.strip(prompt, &spelled) {
            Some([]) => Err(HealingError::AllTakenBack { spelled: String::from_utf8_lossy(&spelled).into_owned() }),
            Some(left) if spelled.len() == trie.heal_bytes() => Ok(left),
            _ => Err(self.not_healed(&spelled, prompt)),
        }
    }

    /// The tokens of a trusted prompt, given as text, with the special tokens that the model requires and those named
    /// in the text. If the prompt ends with the bytes that the set spells again ([`Trie::heal_bytes`]), a token begins
    /// where the set does. Otherwise functions that take both prompt and set refuse them.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_before(&self, prompt: &str, trie: &Trie) -> Result<Vec<TokenId>, VocabError> {
        let tokens = self.tokenize(prompt, true, true)?;
        if !matches!(self.before_set(&tokens, trie), Err(HealingError::NotHealed { .. })) {
            return Ok(tokens);
        }
        // A token of the prompt crosses that position: the text up to there alone.
        let spelled = String::from_utf8(self.healed_bytes(trie)?).ok();
        let parted = spelled
            .as_deref()
            .and_then(|spelled| Some((prompt.strip_suffix(spelled)?, self.tokenize_part(spelled, false)?)));
        let Some((before, again)) = parted else { return Ok(tokens) };
        Ok([self.tokenize(before, true, true)?, again].concat())
    }

    /// The end of a prompt that the tokens of these values depend on: the prefix for [`Texts`](crate::Texts). Empty if
    /// no token can cross the boundary.
    ///
    /// The end is as short as the tokenizer is known to allow, so that prompts with the same end share a set. If
    /// nothing is known about the tokenizer, it is a few words that have the same tokens on their own.
    pub fn prompt_end<S: AsRef<str>>(&self, prompt: &[TokenId], values: &[S]) -> String {
        let from = prompt.iter().rposition(|&token| self.stands_alone(token)).map_or(0, |at| at + 1);
        let tokens = &prompt[from..];
        let Some(text) = self.join(tokens).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
            return String::new();
        };
        let Some(points) = self.split_points() else { return self.last_words(tokens, text) };
        // The tokenizer writes this space again.
        let text = if points.own_space() { text.strip_prefix(' ').unwrap_or(&text) } else { &text };
        if points.opens(text) {
            return text.to_owned();
        }
        if values.iter().all(|value| points.parts_from(text, value.as_ref())) {
            return String::new();
        }
        points.parts(text).last().unwrap_or_default().to_owned()
    }

    /// A prompt before texts that begin with these characters (`None`: with many different ones). The last tokens,
    /// which a token of another tokenisation could replace by crossing into the texts, are left out; their bytes are
    /// returned too, and come first in the texts.
    pub fn before_texts<'p>(&self, prompt: &'p [TokenId], beginnings: Option<&[char]>) -> (&'p [TokenId], Vec<u8>) {
        // Nothing is known of where texts may be split before what may be anything.
        let beginnings = match (beginnings, self.split_points()) {
            (Some(characters), Some(_)) => characters.iter().map(char::to_string).collect(),
            (None, Some(_)) => vec!["a".to_owned(), "1".to_owned(), "\u{a0}".to_owned()],
            (_, None) => return (prompt, Vec::new()),
        };
        let end = self.prompt_end(prompt, &beginnings);
        match self.strip(prompt, end.as_bytes()) {
            Some(left) if !left.is_empty() => (left, end.into_bytes()),
            // A token crosses that position too, or the prompt is nothing else.
            _ => (prompt, Vec::new()),
        }
    }

    /// The end of a text, starting where a token begins, long enough that the text before it cannot matter.
    fn last_words(&self, tokens: &[TokenId], text: String) -> String {
        const ENOUGH: usize = 256;
        const TRIED: usize = 8;
        let mut at = text.len();
        let mut tried = 0;
        for (number, &token) in tokens.iter().enumerate().rev() {
            at = at.saturating_sub(self.piece(token).map_or(0, <[u8]>::len));
            let Some(end) = text.get(at..).filter(|end| end.len() >= ENOUGH) else { continue };
            if self.tokenize(end, false, false).is_ok_and(|found| found == tokens[number..]) {
                return end.to_owned();
            }
            tried += 1;
            if tried == TRIED {
                break;
            }
        }
        text
    }

    /// The bytes that every leaf of a healed set begins with, which the prompt also ends with.
    ///
    /// # Errors
    /// A trie outside the vocabulary.
    pub fn healed_bytes(&self, trie: &Trie) -> Result<Vec<u8>, VocabError> {
        let leaf = trie.leaves().next().map(|leaf| leaf.tokens).unwrap_or_default();
        let mut bytes = self.join(&leaf)?;
        bytes.truncate(trie.heal_bytes());
        Ok(bytes)
    }

    /// [`Vocab::healed_bytes`] as text.
    ///
    /// # Errors
    /// [`HealingError::NotHealed`] if they are not text, or an error for a trie outside the vocabulary.
    pub fn healed_text(&self, trie: &Trie, prompt: &[TokenId]) -> Result<String, HealingError> {
        String::from_utf8(self.healed_bytes(trie)?).map_err(|error| self.not_healed(error.as_bytes(), prompt))
    }

    /// These tokens without the last ones, if the last ones spell exactly these bytes.
    pub(crate) fn strip<'p>(&self, tokens: &'p [TokenId], mut bytes: &[u8]) -> Option<&'p [TokenId]> {
        let mut left = tokens;
        while !bytes.is_empty() {
            let (&last, before) = left.split_last()?;
            let piece =
                self.piece(last).filter(|piece| !piece.is_empty() && self.control().binary_search(&last).is_err());
            bytes = bytes.strip_suffix(piece?)?;
            left = before;
        }
        Some(left)
    }

    fn not_healed(&self, spelled: &[u8], tokens: &[TokenId]) -> HealingError {
        const SHOWN: usize = 4;
        let last = &tokens[tokens.len().saturating_sub(SHOWN)..];
        let text = |&token: &TokenId| String::from_utf8_lossy(self.piece(token).unwrap_or_default()).into_owned();
        HealingError::NotHealed {
            spelled: String::from_utf8_lossy(spelled).into_owned(),
            found: last.iter().map(text).collect(),
        }
    }
}

/// A prompt, as text or as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Trusted text: names of control tokens in it become those tokens.
    Text(String),
    /// Token ids, taken as they are.
    Tokens(Vec<TokenId>),
}

impl Prompt {
    /// The tokens of the prompt. In a text, a token begins where the set after it does ([`Vocab::tokenize_before`]).
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokens(self, vocab: &Vocab, set: Option<&Trie>) -> Result<Vec<TokenId>, VocabError> {
        match (self, set) {
            (Self::Tokens(tokens), _) => Ok(tokens),
            (Self::Text(text), Some(set)) => vocab.tokenize_before(&text, set),
            (Self::Text(text), None) => vocab.tokenize(&text, true, true),
        }
    }
}
