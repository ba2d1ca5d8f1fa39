//! Row storage of a build.

use crate::set::ids::TokenId;

/// Rows by number. An implementation returns the same rows every time.
pub(super) trait Source: Copy + Send + Sync {
    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Tokens of all rows.
    fn tokens(&self) -> usize;

    /// The tokens of one row.
    fn row(&self, row: usize) -> &[TokenId];

    /// The first row without tokens.
    fn empty_row(&self) -> Option<usize>;
}

/// Rows of one width, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Even<'a> {
    pub(super) tokens: &'a [TokenId],
    pub(super) width: usize,
}

/// The same where the compiler knows the width: passes over all rows are then a few vector instructions a row.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedRows<'a, const WIDTH: usize>(pub(super) &'a [[TokenId; WIDTH]]);

/// Rows of any length; each ends where the next begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct RaggedRows<'a> {
    pub(super) tokens: &'a [TokenId],
    pub(super) ends: &'a [usize],
}

/// One string with the end of each row's name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameList<'a> {
    pub(super) text: &'a str,
    pub(super) ends: &'a [usize],
}

impl Source for Even<'_> {
    fn len(&self) -> usize {
        self.tokens.len() / self.width
    }

    fn tokens(&self) -> usize {
        self.tokens.len()
    }

    #[inline]
    fn row(&self, row: usize) -> &[TokenId] {
        &self.tokens[row * self.width..][..self.width]
    }

    fn empty_row(&self) -> Option<usize> {
        None
    }
}

#[cfg(not(target_family = "wasm"))]
impl<const WIDTH: usize> Source for FixedRows<'_, WIDTH> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn tokens(&self) -> usize {
        self.0.len() * WIDTH
    }

    #[inline]
    fn row(&self, row: usize) -> &[TokenId] {
        &self.0[row]
    }

    fn empty_row(&self) -> Option<usize> {
        None
    }
}

impl Source for RaggedRows<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn tokens(&self) -> usize {
        self.tokens.len()
    }

    #[inline]
    fn row(&self, row: usize) -> &[TokenId] {
        &self.tokens[begin(self.ends, row)..self.ends[row]]
    }

    fn empty_row(&self) -> Option<usize> {
        let mut begin = 0;
        self.ends.iter().position(|&end| std::mem::replace(&mut begin, end) == end)
    }
}

impl<'a> NameList<'a> {
    /// The name of one row.
    pub(super) fn get(self, row: u32) -> &'a str {
        &self.text[begin(self.ends, row as usize)..self.ends[row as usize]]
    }
}

#[inline]
fn begin(ends: &[usize], row: usize) -> usize {
    row.checked_sub(1).map_or(0, |before| ends[before])
}
