//! Prefixes of prompts in files: the tokens, and the state of llama.cpp's KV cache for them.
//!
//! | bytes | what |
//! | --- | --- |
//! | 16 | `tokentrie-prefix` |
//! | 32 | SHA-256 of all that follows |
//! | 4 | version of this layout |
//! | 32 | SHA-256 of the name of the llama.cpp that wrote the state |
//! | 32 | the model: SHA-256 of [`model_digest`] |
//! | 4 | 1 for a cache that is precise, else 0 |
//! | 4, 4 | the first and the last position that the state has |
//! | 4, 8 | number of tokens, bytes of the state |
//! | | the tokens, 4 bytes each; the state |
//!
//! Numbers are little-endian. llama.cpp trusts a state that it reads, so the file is checked here first. After the
//! state was read, the positions in the cache are compared with those in the file. The last position must be that of
//! the last token, and the first must be 0 unless the model forgets (a window of attention, a recurrent state).

use super::gguf::model_digest;
use super::{Context, Model, TRUNK, fits};
use crate::runtime::error::RuntimeError;
use llama_cpp_2::context::session::LlamaStateSeqFlags;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::Path;
use trie_core::TokenId;
use trie_formats::replace_whole;

const MAGIC: &[u8; 16] = b"tokentrie-prefix";
/// Version 1 did not say which positions its state has, and some of its files had fewer than tokens.
const VERSION: u32 = 2;
const DIGEST: usize = 32;
/// Bytes before the tokens.
const HEAD: usize = MAGIC.len() + DIGEST + 4 + DIGEST + DIGEST + 4 + 4 + 4 + 4 + 8;
/// Version of llama.cpp that wrote these states. Another version may write them differently.
const LLAMA: &str = "llama-cpp-2 0.1.160";

/// A prefix that was decoded: made by [`Context::prefix`], or read from a file that is complete.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefix {
    tokens: Vec<TokenId>,
    state: Vec<u8>,
    /// The first and the last position of the state.
    positions: (u32, u32),
    is_precise: bool,
}

impl std::fmt::Debug for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prefix {{ tokens: {}, bytes: {} }}", self.tokens.len(), self.state.len())
    }
}

impl Prefix {
    /// Returns the tokens of the prefix.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Writes the prefix to a file, which appears only when it is complete.
    ///
    /// # Errors
    /// The file cannot be written, or the model's file cannot be read.
    pub fn write(&self, path: impl AsRef<Path>, model: &Model) -> Result<(), RuntimeError> {
        let path = path.as_ref();
        let refused = |what: String| RuntimeError::Prefix { path: path.to_owned(), what };
        let digest = digest_of(model).map_err(refused)?;
        let mut body = Vec::with_capacity(HEAD + 4 * self.tokens.len() + self.state.len());
        body.extend(VERSION.to_le_bytes());
        body.extend(Sha256::digest(LLAMA));
        body.extend(digest);
        body.extend(u32::from(self.is_precise).to_le_bytes());
        body.extend(self.positions.0.to_le_bytes());
        body.extend(self.positions.1.to_le_bytes());
        body.extend((self.tokens.len() as u32).to_le_bytes());
        body.extend((self.state.len() as u64).to_le_bytes());
        body.extend(self.tokens.iter().flat_map(|token| token.get().to_le_bytes()));
        body.extend(&self.state);
        let written = replace_whole(path, |file| {
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(&body))?;
            file.write_all(&body)
        });
        written.map_err(|error| refused(error.to_string()))
    }

    /// Reads a file that [`Prefix::write`] wrote for this model.
    ///
    /// # Errors
    /// The file cannot be read, has another format, is damaged, is of another model, or of another llama.cpp.
    pub fn read(path: impl AsRef<Path>, model: &Model) -> Result<Self, RuntimeError> {
        let path = path.as_ref();
        Self::parse(path, model).map_err(|what| RuntimeError::Prefix { path: path.to_owned(), what })
    }

    fn parse(path: &Path, model: &Model) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        if bytes.len() < HEAD || !bytes.starts_with(MAGIC) {
            return Err("it holds no prefix".to_owned());
        }
        let (digest, body) = bytes[MAGIC.len()..].split_at(DIGEST);
        if Sha256::digest(body)[..] != *digest {
            return Err("it is damaged: its digest is another".to_owned());
        }
        let mut rest = body;
        let version = number(&mut rest);
        if version != VERSION {
            return Err(format!("its layout is of version {version}, and this library reads {VERSION}: save it again"));
        }
        let (of_llama, after) = rest.split_at(DIGEST);
        if Sha256::digest(LLAMA)[..] != *of_llama {
            return Err("another version of llama.cpp wrote it: save it again".to_owned());
        }
        let (of_model, after) = after.split_at(DIGEST);
        if digest_of(model)? != of_model {
            return Err(format!("it is of another model than {}", model.path().display()));
        }
        rest = after;
        let is_precise = number(&mut rest) != 0;
        let positions = (number(&mut rest), number(&mut rest));
        let tokens = number(&mut rest) as usize;
        let (low, high) = (number(&mut rest), number(&mut rest));
        let state = u64::from(low) | u64::from(high) << 32;
        if (4 * tokens as u64).checked_add(state) != Some(rest.len() as u64) {
            return Err("it is damaged: its lengths do not fit".to_owned());
        }
        let (tokens, state) = rest.split_at(4 * tokens);
        let tokens: Option<Vec<TokenId>> =
            tokens.chunks_exact(4).map(|mut four| TokenId::new(number(&mut four))).collect();
        let tokens = tokens.ok_or("it is damaged: it names a token that there is not")?;
        if tokens.len() as u64 != u64::from(positions.1) + 1 || positions.0 > positions.1 {
            let (first, last) = positions;
            let count = tokens.len();
            return Err(format!("it names {count} tokens, and holds the positions {first} to {last}: save it again"));
        }
        Ok(Self { tokens, state: state.to_vec(), positions, is_precise })
    }
}

fn digest_of(model: &Model) -> Result<[u8; DIGEST], String> {
    model_digest(model.path()).map_err(|error| format!("{}: {error}", model.path().display()))
}

/// Takes four bytes, of which there are enough.
fn number(rest: &mut &[u8]) -> u32 {
    let (four, after) = rest.split_at(4);
    *rest = after;
    four.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

impl Context {
    /// Returns the cached prefix of these tokens, which are decoded unless the cache has them.
    ///
    /// # Errors
    /// As [`Context::prefill`]; the KV cache does not hold exactly these tokens.
    pub fn prefix(&mut self, tokens: &[TokenId], stop: &mut dyn FnMut() -> bool) -> Result<Prefix, RuntimeError> {
        self.prefill(tokens, stop)?;
        let positions = self.trunk_positions().filter(|&(_, last)| last as usize + 1 == tokens.len());
        let positions = positions.ok_or_else(|| {
            self.clear();
            RuntimeError::Failed {
                reason: format!("the cache does not hold the {} tokens of the prefix", tokens.len()),
            }
        })?;
        let context = self.cell.borrow_dependent();
        let flags = LlamaStateSeqFlags::empty();
        let mut state = vec![0; context.state_seq_get_size_ext(TRUNK, flags)];
        // SAFETY: llama.cpp writes as many bytes as it said a line above that it would, to a vector of that length.
        let written = unsafe { context.state_seq_get_data_ext(state.as_mut_ptr(), TRUNK, flags) };
        state.truncate(written);
        Ok(Prefix { tokens: tokens.to_vec(), state, positions, is_precise: self.is_precise })
    }

    /// Restores the tokens of a prefix, in place of those that the context held.
    ///
    /// # Errors
    /// The prefix does not fit, or was made in a context with the other `precise`. llama.cpp refuses its state, or
    /// finds other positions in it than the file says: then nothing is held.
    pub fn restore(&mut self, prefix: &Prefix) -> Result<(), RuntimeError> {
        let Prefix { tokens, state, positions, is_precise } = prefix;
        let refused = |reason: &str| RuntimeError::Restore { tokens: tokens.len(), reason: reason.to_owned() };
        if *is_precise != self.is_precise {
            return Err(refused("one of both is precise and the other is not"));
        }
        self.vocab.check_tokens(tokens)?;
        fits(0, tokens.len(), self.n_ctx)?;
        self.keep(0);
        // SAFETY: a context of the same model wrote the state: `read` has compared the digests, and the fields can be
        // made nowhere else. llama.cpp looks whether it fits the cache, and says so.
        let done = self.cell.with_dependent_mut(|_, context| unsafe {
            context.state_seq_set_data_ext(state, TRUNK, LlamaStateSeqFlags::empty())
        });
        let found = self.trunk_positions();
        if !done || found != Some(*positions) {
            self.clear();
            let (first, last) = positions;
            let found = found.map_or("none".to_owned(), |(first, last)| format!("{first} to {last}"));
            let reason = format!("its state has the positions {found}, and the file says {first} to {last}");
            return Err(refused(if done { &reason } else { "llama.cpp does not take it" }));
        }
        self.row = None;
        self.held.clone_from(tokens);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_llama_is_that_of_the_manifest() {
        let manifest = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
        let (name, version) = LLAMA.split_once(' ').unwrap();
        assert!(manifest.contains(&format!("{name} = {{ version = \"={version}\"")));
    }
}
