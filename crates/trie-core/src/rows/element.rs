//! Element types of a row of logits: 32-bit floats, and the two 16-bit formats, which are widened when read.

use crate::machine::span::Allowed;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Type of a logit in memory. A 32-bit float represents every half exactly, so choosing among halves equals choosing
/// among singles.
pub trait Logit: Copy + Send + Sync + 'static {
    /// Logit of a token that cannot be chosen.
    const NEG_INFINITY: Self;
    /// Neutral logit, positive zero.
    const ZERO: Self;

    /// Converts to 32 bits, exactly.
    fn to_f32(self) -> f32;

    /// Rounds to the nearest representable number.
    fn from_f32(logit: f32) -> Self;

    /// The whole row as singles; `wide` is a buffer.
    fn widen<'a>(row: &'a [Self], wide: &'a mut Vec<f32>) -> &'a [f32];

    /// A row that is only valid at the allowed tokens; other entries may hold anything. `wide` is a buffer.
    fn widen_allowed<'a>(row: &'a [Self], allowed: Allowed<'_>, wide: &'a mut Vec<f32>) -> &'a [f32];
}

impl Logit for f32 {
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
    const ZERO: Self = 0.0;

    #[inline]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline]
    fn from_f32(logit: f32) -> Self {
        logit
    }

    #[inline]
    fn widen<'a>(row: &'a [Self], _wide: &'a mut Vec<f32>) -> &'a [f32] {
        row
    }

    #[inline]
    fn widen_allowed<'a>(row: &'a [Self], _allowed: Allowed<'_>, _wide: &'a mut Vec<f32>) -> &'a [f32] {
        row
    }
}

macro_rules! half {
    ($half:ty) => {
        impl Logit for $half {
            const NEG_INFINITY: Self = <$half>::NEG_INFINITY;
            const ZERO: Self = <$half>::ZERO;

            #[inline]
            fn to_f32(self) -> f32 {
                <$half>::to_f32(self)
            }

            #[inline]
            fn from_f32(logit: f32) -> Self {
                <$half>::from_f32(logit)
            }

            fn widen<'a>(row: &'a [Self], wide: &'a mut Vec<f32>) -> &'a [f32] {
                wide.resize(row.len(), 0.0);
                row.convert_to_f32_slice(wide);
                wide
            }

            fn widen_allowed<'a>(row: &'a [Self], allowed: Allowed<'_>, wide: &'a mut Vec<f32>) -> &'a [f32] {
                if !matches!(allowed, Allowed::Only { .. }) {
                    return Self::widen(row, wide);
                }
                wide.resize(row.len(), 0.0);
                allowed.iter().for_each(|token| wide[token.index()] = row[token.index()].to_f32());
                wide
            }
        }
    };
}

half!(f16);
half!(bf16);
