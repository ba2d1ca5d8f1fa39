//! Whole texts, read in pieces: a byte alone costs as much as a piece.

use crate::compiled::Shared;
use crate::guard::caught;
use crate::pool::{LEXER_STATES, PIECE, healthy, refuel};
use crate::vocab::Vocab;
use llguidance::earley::Parser;
use llguidance::toktrie::TokTrie;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use trie_core::TokenId;
use trie_core::work::{apart, look};
use trie_rules::{Read, TokenBytes};

/// Bytes that are read between two looks at what the lexer keeps: a look goes through all of it.
const BETWEEN_LOOKS: usize = 1 << 16;
/// Bytes that the lexer may keep from one text to the next.
const KEPT: usize = 1 << 20;

/// All bytes, each with its number for an id.
static BYTES: LazyLock<Result<Arc<Vocab>, String>> = LazyLock::new(|| {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = bytes.iter().map(|byte| (&byte[..], TokenId::new(byte[0].into()).unwrap_or_default()));
    Vocab::new(&TokenBytes::new(256, tokens).map_err(|error| error.to_string())?).map(Arc::new)
});

/// What reads the texts of a grammar.
pub(crate) struct Reader {
    compiled: Shared,
    /// Has read nothing, and shares the lexer of those that have.
    origin: Mutex<Origin>,
}

struct Origin {
    parser: Option<Parser>,
    /// Bytes that were read with its lexer since the last look.
    read: usize,
}

impl Reader {
    pub(crate) fn new(compiled: &Shared) -> Self {
        Self { compiled: Arc::clone(compiled), origin: Mutex::new(Origin { parser: None, read: 0 }) }
    }

    fn origin(&self) -> MutexGuard<'_, Origin> {
        self.origin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read(&self, text: &[u8]) -> Read {
        let unread = |_| Read::Unread { at: 0 };
        let (parser, is_new) = match self.parser() {
            Ok(found) => found,
            Err(reason) => return unread(reason),
        };
        match self.read_with(parser, text) {
            // What the lexer keeps of other texts may only have been too much.
            Read::Unread { .. } if !is_new && look(0, 0).is_ok() => {
                self.origin().parser = None;
                self.parser().map_or_else(unread, |(parser, _)| self.read_with(parser, text))
            }
            read => read,
        }
    }

    /// One that has read nothing; whether its lexer has not either.
    fn parser(&self) -> Result<(Parser, bool), String> {
        if let Some(parser) = &self.origin().parser {
            return Ok((parser.clone(), false));
        }
        let bytes = BYTES.as_ref().map_err(Clone::clone)?;
        // Not under the lock, because it may take long.
        let made = self.compiled.parser(bytes)?;
        *self.origin() = Origin { parser: Some(made.clone()), read: 0 };
        Ok((made, true))
    }

    fn read_with(&self, mut parser: Parser, text: &[u8]) -> Read {
        let kept = parser.clone();
        let read = if self.compiled.is_slow {
            let text = text.to_vec();
            apart(move || read(&mut parser, &text)).unwrap_or_else(|_| {
                // It goes with the thread that has its lexer.
                self.origin().parser = None;
                Read::Unread { at: 0 }
            })
        } else {
            read(&mut parser, text)
        };
        let mut origin = self.origin();
        origin.read += text.len();
        if origin.read >= BETWEEN_LOOKS || matches!(read, Read::Unread { .. }) {
            origin.read = 0;
            drop(origin);
            let stats = kept.lexer_stats();
            if stats.error || stats.num_bytes > KEPT || stats.num_states > LEXER_STATES {
                self.origin().parser = None;
            }
        }
        read
    }
}

fn read(parser: &mut Parser, text: &[u8]) -> Read {
    let Ok(vocab) = &*BYTES else { return Read::Unread { at: 0 } };
    // No byte of any text; llguidance would read a special token.
    let end = text.iter().position(|&byte| byte == TokTrie::SPECIAL_TOKEN_MARKER);
    let (mut at, legal) = (0, &text[..end.unwrap_or(text.len())]);
    let done = caught(|| {
        for piece in legal.chunks(PIECE) {
            look(1, 0)?;
            refuel(parser, vocab);
            let taken = parser.apply_token(piece, vocab.no_token);
            let read = parser.get_bytes().len() - at;
            at += read;
            healthy(parser).map_err(anyhow::Error::msg)?;
            match taken {
                Err(_) if read < piece.len() => return Ok(Some(Read::Refused { at })),
                taken => anyhow::ensure!(taken? == 0, "the grammar takes text back"),
            }
        }
        if end.is_some() {
            return Ok(Some(Read::Refused { at }));
        }
        refuel(parser, vocab);
        let is_whole = parser.is_accepting();
        healthy(parser).map_err(anyhow::Error::msg)?;
        Ok(Some(if is_whole { Read::Whole } else { Read::Begun }))
    });
    done.ok().flatten().unwrap_or(Read::Unread { at })
}
