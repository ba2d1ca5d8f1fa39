use super::guard::Guard;
use super::reader::Step;
use super::{Out, ShapeId};

#[derive(Debug)]
pub(crate) struct Elements {}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ElementsAt {}

impl Elements {
    pub(crate) fn new(_mark: &str, _after: &str) -> Self {
        Self {}
    }

    pub(crate) fn begin(_shape: ShapeId) -> ElementsAt {
        ElementsAt {}
    }

    pub(crate) fn step(&self, _state: &mut ElementsAt, _byte: u8, _guard: &mut Guard, _out: &mut impl Out) -> Step {
        Step::Dead
    }
}
