//! Roles of schemas.

/// Whether a schema is all that is said of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Others say something of it too: what they mention is not known here.
    Part,
    /// It is.
    Value,
    /// It is, but for the types of the value.
    Typed,
}
