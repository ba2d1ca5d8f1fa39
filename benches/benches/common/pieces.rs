//! The bytes of the tokens of a real vocabulary.

use std::path::PathBuf;
use std::sync::Arc;
use trie_core::TokenId;
use trie_rules::TokenBytes;

/// Returns the text of each token of qwen2; empty for tokens that are not text. `None` without a folder of
/// vocabularies.
pub(crate) fn pieces() -> Option<Vec<Vec<u8>>> {
    let folder = PathBuf::from(std::env::var_os("TOKENTRIE_VOCAB_DIR")?);
    let vocab = llama_sampler::vocab_from_gguf(folder.join("ggml-vocab-qwen2.gguf")).ok()?;
    let ids = (0..vocab.len()).filter_map(|id| TokenId::new(id as u32));
    let bytes = |id| vocab.piece(id).filter(|_| vocab.is_text(id)).unwrap_or_default().to_vec();
    Some(ids.map(bytes).collect())
}

/// Returns the tokens that are text.
pub(crate) fn text(pieces: &[Vec<u8>]) -> impl Iterator<Item = (&[u8], TokenId)> {
    let ids = (0..pieces.len()).filter_map(|id| TokenId::new(id as u32));
    pieces.iter().map(Vec::as_slice).zip(ids).filter(|(piece, _)| !piece.is_empty())
}

/// As rules walk them.
pub(crate) fn tokens(pieces: &[Vec<u8>]) -> Arc<TokenBytes> {
    Arc::new(TokenBytes::new(pieces.len(), text(pieces)).expect("a vocabulary"))
}
