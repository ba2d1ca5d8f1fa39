//! Numbers as JSON writes them.

/// Position in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum NumberAt {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    E,
    Sign,
    /// Its value, as far as it matters.
    Exponent(u16),
}

impl NumberAt {
    /// After its first byte.
    pub(crate) const fn begin(byte: u8) -> Option<Self> {
        match byte {
            b'-' => Some(Self::Minus),
            b'0' => Some(Self::Zero),
            b'1'..=b'9' => Some(Self::Integer),
            _ => None,
        }
    }

    /// Returns the state after one more byte.
    pub(crate) const fn step(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => Self::Integer,
            (Self::Zero | Self::Integer, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Self::E,
            (Self::E, b'+' | b'-') => Self::Sign,
            (Self::E | Self::Sign, b'0'..=b'9') => Self::Exponent((byte - b'0') as u16),
            (Self::Exponent(value), b'0'..=b'9') if value < 1000 => Self::Exponent(value * 10 + (byte - b'0') as u16),
            (Self::Exponent(value), b'0'..=b'9') => Self::Exponent(value),
            _ => return None,
        })
    }

    /// Returns whether readers of JSON may take it for infinite: floating-point numbers end before.
    pub(crate) const fn is_too_large(self) -> bool {
        matches!(self, Self::Exponent(309..))
    }

    /// Returns whether it may end here.
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::Zero | Self::Integer | Self::Fraction | Self::Exponent(_))
    }
}
