//! Reports to a watcher: the tokens of the output in order, each once it is certain, with the text that it completes.

use crate::runtime::watch::{Step, Watch};
use trie_text::LossyText;

#[derive(Debug, Default)]
pub(super) struct Report {
    /// Bytes at the beginning of the output that stand in the prompt already.
    pub(super) healed: usize,
    text: LossyText,
    /// Tokens that may still be taken back, without their text, and the bytes that they add to the output.
    uncertain: Vec<(Step, Vec<u8>)>,
}

impl Report {
    /// Takes a token, which stays uncertain until [`Report::settle`] reaches it.
    pub(super) fn add(&mut self, step: Step, bytes: Vec<u8>) {
        self.uncertain.push((step, bytes));
    }

    /// Forgets the tokens from this index on.
    pub(super) fn take_back(&mut self, index: usize) {
        self.uncertain.retain(|(step, _)| step.index < index);
    }

    /// Tells of the tokens before this index, as long as the watcher wants to hear of them.
    pub(super) fn settle(&mut self, index: usize, watch: &mut dyn Watch) {
        let certain = self.uncertain.iter().take_while(|(step, _)| step.index < index).count();
        for (mut step, bytes) in self.uncertain.drain(..certain) {
            let healed = self.healed.min(bytes.len());
            self.healed -= healed;
            step.text = self.text.push(&bytes[healed..]);
            if watch.wants_steps() {
                watch.step(&step);
            }
        }
    }
}
