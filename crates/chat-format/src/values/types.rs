//! Sets of JSON types.

/// Which of the JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    /// Numbers without a fraction.
    pub(crate) const INTEGER: Self = Self(4);
    /// All numbers, integers too.
    pub(crate) const NUMBER: Self = Self(8 | 4);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ALL: Self = Self(127);

    /// By the name that JSON Schema has for it, and some that others have.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" | "none" | "None" => Self::NULL,
            "boolean" | "bool" => Self::BOOLEAN,
            "integer" | "int" => Self::INTEGER,
            "number" | "float" => Self::NUMBER,
            "string" | "str" => Self::STRING,
            "array" | "list" => Self::ARRAY,
            "object" | "dict" => Self::OBJECT,
            "any" => Self::ALL,
            _ => return None,
        })
    }

    /// All of these names; names that are none are left out, and without any name it is all types.
    pub(crate) fn of_names(names: &[String]) -> Self {
        let named = names.iter().filter_map(|name| Self::named(name)).fold(Self::NONE, Self::or);
        if named == Self::NONE { Self::ALL } else { named }
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether one of these is among them.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
