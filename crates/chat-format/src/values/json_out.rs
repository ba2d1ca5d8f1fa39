//! The JSON text of arguments, as it becomes certain.

use super::types::Types;
use super::{Out, ShapeId, Shapes};
use std::sync::Arc;

/// Assembles the JSON text of arguments. Text is only ever added to its end.
#[derive(Debug, Clone)]
pub(crate) struct JsonOut {
    shapes: Arc<Shapes>,
    text: Vec<u8>,
    raw: Option<(ShapeId, Types, Vec<u8>)>,
}

impl JsonOut {
    pub(crate) fn new(shapes: Arc<Shapes>) -> Self {
        Self { shapes, text: Vec::new(), raw: None }
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

impl Out for JsonOut {
    fn json(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    fn raw_begin(&mut self, shape: ShapeId, types: Types) {
        self.raw = Some((shape, types, Vec::new()));
    }

    fn raw(&mut self, bytes: &[u8]) {
        if let Some((_, _, raw)) = &mut self.raw {
            raw.extend_from_slice(bytes);
        }
    }

    fn raw_end(&mut self) {
        let _ = (&self.shapes, self.raw.take());
    }
}
