use serde_json::Value;

/// Schemas, compiled.
#[derive(Debug, Default)]
pub(crate) struct Shapes {}

/// One of [`Shapes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ShapeId(u32);

/// What of a schema is not held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeWarning {
    /// JSON pointer of the schema in which it stands.
    pub pointer: String,
    /// The keyword.
    pub(crate) keyword: String,
    /// What holds instead.
    pub(crate) instead: String,
}

/// A schema that nothing satisfies, or that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("schema at {pointer:?}: {problem}")]
pub struct ShapeError {
    /// JSON pointer of the schema.
    pub pointer: String,
    /// Why.
    pub problem: String,
}

impl Shapes {
    /// Any JSON value; as arguments any object.
    pub(crate) const ANY: ShapeId = ShapeId(0);

    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the schema of the arguments of one tool.
    ///
    /// # Errors
    /// A schema that nothing satisfies, or that is none.
    pub(crate) fn add(&mut self, _schema: &Value) -> Result<(ShapeId, Vec<ShapeWarning>), ShapeError> {
        Ok((Self::ANY, Vec::new()))
    }
}
