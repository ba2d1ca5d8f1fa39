use super::{Out, ShapeId, Shapes};
use crate::dialect::Arguments;

/// Reads arguments of one style.
#[derive(Debug)]
pub(crate) struct Reader {
    strict: bool,
}

/// Where a reader is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ArgsState {
    shape: ShapeId,
}

/// What a byte was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Part of the arguments; more must come.
    Inside,
    /// The last byte of the arguments.
    Done,
    /// The arguments were over before this byte, which is not part of them.
    DoneBefore,
    /// It cannot come here.
    Dead,
}

impl Reader {
    /// A reader of these arguments. `after` is the text after them, without the white space around it: the arguments
    /// end with it, and the reader takes it too; JSON alone ends at its own closing brace.
    pub(crate) fn new(_arguments: &Arguments, _after: &str, strict: bool) -> Self {
        Self { strict }
    }

    /// Where arguments of this shape begin.
    pub(crate) fn begin(&self, shape: ShapeId) -> ArgsState {
        ArgsState { shape }
    }

    /// Reads a byte.
    pub(crate) fn step(&self, _shapes: &Shapes, _state: &mut ArgsState, _byte: u8, _out: &mut impl Out) -> Step {
        Step::Dead
    }
}
