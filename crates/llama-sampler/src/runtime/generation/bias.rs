//! Rows of logits after what is added to them.

use trie_core::LogitBias;

/// A row of logits that was changed. Its memory is used again.
#[derive(Default)]
pub(super) struct BiasedRow {
    bias: LogitBias,
    row: Vec<f32>,
}

impl BiasedRow {
    pub(super) fn new(bias: LogitBias) -> Self {
        Self { bias, row: Vec::new() }
    }

    /// The row after what is added. `O(vocabulary)`; without anything to add it is the row itself.
    pub(super) fn of<'r>(&'r mut self, row: &'r [f32]) -> &'r [f32] {
        if self.bias.is_empty() {
            return row;
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.bias.add_to(&mut self.row);
        &self.row
    }
}
