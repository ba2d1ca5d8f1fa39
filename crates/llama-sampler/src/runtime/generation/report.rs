//! What a watcher is told: the tokens of the output in order, each once it is certain, with the text that it completes.

use crate::runtime::watch::{Step, Watch};
use trie_core::TokenId;
use trie_text::LossyText;

/// A token on its way to the watcher.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) index: usize,
    pub(super) depth: usize,
    pub(super) allowed: Vec<(TokenId, f32)>,
    pub(super) token: TokenId,
    pub(super) forced: bool,
    pub(super) kept: bool,
    /// The bytes that it adds to the output.
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Report {
    /// Bytes at the beginning of the output that stand in the prompt already.
    pub(super) healed: usize,
    text: LossyText,
    /// Tokens that may still be taken back.
    uncertain: Vec<Written>,
}

impl Report {
    /// Takes a token, which stays uncertain until [`Report::settle`] reaches it.
    pub(super) fn add(&mut self, written: Written) {
        self.uncertain.push(written);
    }

    /// Forgets the tokens from this index on.
    pub(super) fn take_back(&mut self, index: usize) {
        self.uncertain.retain(|written| written.index < index);
    }

    /// Tells of the tokens before this index, as long as the watcher wants to hear of them.
    pub(super) fn settle(&mut self, index: usize, watch: &mut dyn Watch) {
        let certain = self.uncertain.iter().take_while(|written| written.index < index).count();
        for Written { index, depth, allowed, token, forced, kept, bytes } in self.uncertain.drain(..certain) {
            let healed = self.healed.min(bytes.len());
            self.healed -= healed;
            let text = self.text.push(&bytes[healed..]);
            if watch.wants_steps() {
                watch.step(&Step { index, depth, allowed: &allowed, token, forced, kept, text: &text });
            }
        }
    }
}
