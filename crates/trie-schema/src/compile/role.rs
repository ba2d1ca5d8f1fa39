//! Roles of schemas.

/// Role of a schema among the schemas of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// One schema of several: the names that the others mention are not known here.
    Part,
    /// The only schema of the value.
    Value,
    /// The only schema of the value, except for its types.
    Typed,
}
