//! Preconditions of llama.cpp. Misuse there aborts the process or corrupts memory, so each row is refused here, before
//! the call.
//!
//! | misuse that kills the process or corrupts memory | why it cannot happen |
//! | --- | --- |
//! | a batch larger than `n_batch` (clamped to the context) | `Context` cuts into pieces of what the context reports |
//! | `n_seq_max` over `n_batch`, or over what the build has | `Context` asks the build, and raises the batch to it |
//! | a sequence out of range; more of a token than a batch has room for | `Context::fork` checks; one constant sizes
//! both |
//! | logits of a row without output flag | `Context` flags the last token and remembers the row; else `NoLogits` |
//! | a token id out of range | `Vocab::check_tokens` before every decode and detokenize |
//! | positions with gaps or repeats; an empty batch | `Context` alone counts positions; [`not_empty`] |
//! | a full context | [`fits`] before the first piece |
//! | a vocabulary used as a model | the GGUF header has no tensors: `VocabularyOnly`, before loading |
//! | a model without vocabulary | refused after loading, before the first use |
//! | a model without a decoder | the header names the architecture: `NotADecoder`, before loading |
//! | two tokens of one text | `gguf/vocabulary.rs`, before loading |
//! | `SentencePiece` without a token for each byte, `WordPiece` with one, RWKV without a newline | the same |
//! | a `precompiled_charsmap` that leads out of itself | `gguf/charsmap.rs`, before loading |
//! | a context length over 2^31−1, no layers or over 512 | `gguf/numbers.rs`, before loading |
//! | experts, their groups, epsilons and RoPE scaling out of range | the same |
//! | weights of types that can be loaded but not computed with | `gguf/tensors.rs`, before loading |
//! | more threads than the system gives | `threads::startable`, when the context is made; a later limit still aborts |
//! | `encode`; partial `seq_cp`; attached or empty chains; `NULL` samplers | not reachable: chains are built in
//! `chain.rs` |
//! | a grammar that accepts an illegal token | what the grammar ruled out is refused before it is accepted |
//! | a Rust panic in a callback | caught: the sampler's, log and progress callbacks |
//! | text over 2^31−1 bytes, or not UTF-8 | `Vocab::tokenize` looks at the length; `&str` is UTF-8 |
//! | a missing special token that the tokenizer adds | `LlamaTokenizer::tokenize` asks first |

use crate::runtime::error::RuntimeError;
use trie_core::TokenId;

/// Branches that are scored at once: a set of a hundred labels in one pass. With the trunk, fewer than llama.cpp's
/// limit of 256 sequences.
pub(super) const BRANCHES: u32 = 127;

/// A number that must lie in a range.
pub(in crate::runtime) fn in_range(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), RuntimeError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(RuntimeError::OutOfRange { what, value, least, most }) }
}

/// At least one token.
pub(in crate::runtime) fn not_empty(tokens: &[TokenId]) -> Result<(), RuntimeError> {
    if tokens.is_empty() { Err(RuntimeError::EmptyPrompt) } else { Ok(()) }
}

/// Room for `asked` more tokens.
pub(in crate::runtime) fn fits(held: usize, asked: usize, n_ctx: usize) -> Result<(), RuntimeError> {
    if asked > n_ctx.saturating_sub(held) { Err(RuntimeError::ContextFull { held, asked, n_ctx }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_say_what_was_given() {
        assert!(in_range("n_ctx", 8, 1, 8).is_ok());
        let message = in_range("n_ctx", 9, 1, 8).unwrap_err().to_string();
        assert_eq!(message, "n_ctx is 9: it must be from 1 to 8");
        assert!(in_range("n_batch", 0, 1, 8).is_err());
    }

    #[test]
    fn a_first_pass_needs_a_token() {
        assert!(not_empty(&[]).is_err());
        assert!(not_empty(&[TokenId::default()]).is_ok());
    }

    #[test]
    fn room_is_counted_without_overflow() {
        assert!(fits(3, 5, 8).is_ok());
        let message = fits(3, 6, 8).unwrap_err().to_string();
        assert_eq!(message, "6 tokens after 3 do not fit: the context has room for 8");
        assert!(fits(9, 1, 8).is_err());
        assert!(fits(1, usize::MAX, 8).is_err());
    }
}
