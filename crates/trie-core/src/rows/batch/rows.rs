//! Rows in memory that the caller owns, with their number, width and stride.

/// `count` rows of `width` entries; row `i` begins at `i · stride`. Entries between two rows are ignored.
///
/// ```
/// use trie_core::Rows;
/// // Two rows of three, in a buffer whose rows are four apart.
/// let logits = [1.0, 2.0, 3.0, 99.0, 4.0, 5.0, 6.0];
/// let rows = Rows::new(&logits, 2, 3, 4)?;
/// assert_eq!(rows.row(1), [4.0, 5.0, 6.0]);
/// # Ok::<(), trie_core::RowsError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    data: &'a [T],
    shape: Shape,
}

/// [`Rows`] to write into. Entries between two rows are left unchanged.
#[derive(Debug)]
pub struct RowsMut<'a, T> {
    data: &'a mut [T],
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) count: usize,
    pub(super) width: usize,
    pub(super) stride: usize,
}

/// A shape that does not fit into the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// The last row ends after the memory.
    #[error("{count} rows of {width} entries, {stride} apart, need more than the {len} entries there are")]
    TooShort {
        /// Number of rows given.
        count: usize,
        /// Entries of a row.
        width: usize,
        /// Entries from the beginning of a row to that of the next.
        stride: usize,
        /// Number of entries given.
        len: usize,
    },
    /// Rows to write into that share entries.
    #[error("rows of {width} entries that are {stride} apart share memory: they cannot be written")]
    Overlapping {
        /// Entries of a row.
        width: usize,
        /// Entries from the beginning of a row to that of the next.
        stride: usize,
    },
}

crate::error_kind!(RowsError, Row);

impl Shape {
    fn check(self, len: usize) -> Result<Self, RowsError> {
        let Self { count, width, stride } = self;
        let last = count.saturating_sub(1).checked_mul(stride);
        let need = last.and_then(|last| last.checked_add(if count == 0 { 0 } else { width }));
        match need {
            Some(need) if need <= len => Ok(self),
            _ => Err(RowsError::TooShort { count, width, stride, len }),
        }
    }
}

impl<'a, T> Rows<'a, T> {
    /// Rows in `data`. A stride below the width is allowed: 0 gives every row the same entries.
    ///
    /// # Errors
    /// [`RowsError::TooShort`].
    pub fn new(data: &'a [T], count: usize, width: usize, stride: usize) -> Result<Self, RowsError> {
        Ok(Self { data, shape: Shape { count, width, stride }.check(data.len())? })
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.shape.count
    }

    /// Entries of a row.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// A row.
    ///
    /// # Panics
    /// If there are not that many.
    #[inline]
    pub fn row(&self, index: usize) -> &'a [T] {
        assert!(index < self.shape.count, "row {index} of {}", self.shape.count);
        &self.data[index * self.shape.stride..][..self.shape.width]
    }
}

impl<'a, T> RowsMut<'a, T> {
    /// Rows in `data`.
    ///
    /// # Errors
    /// [`RowsError`].
    pub fn new(data: &'a mut [T], count: usize, width: usize, stride: usize) -> Result<Self, RowsError> {
        if stride < width && count > 1 {
            return Err(RowsError::Overlapping { width, stride });
        }
        let shape = Shape { count, width, stride }.check(data.len())?;
        Ok(Self { data, shape })
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.shape.count
    }

    /// Entries of a row.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// The same rows to read.
    pub fn as_rows(&self) -> Rows<'_, T> {
        Rows { data: self.data, shape: self.shape }
    }

    /// The rows, one after the other.
    pub(super) fn into_iter(self) -> impl Iterator<Item = &'a mut [T]> {
        let Shape { count, width, stride } = self.shape;
        // A row of width 0 is in no chunk: there is nothing to write then.
        self.data.chunks_mut(stride.max(width).max(1)).take(count).map(move |row| &mut row[..width])
    }

    /// The first rows and the others.
    pub(super) fn split_at(self, first: usize) -> (Self, Self) {
        let Shape { count, width, stride } = self.shape;
        let first = first.min(count);
        let at = if first == count { self.data.len() } else { first * stride };
        let (one, other) = self.data.split_at_mut(at);
        let shape = |count| Shape { count, width, stride };
        (Self { data: one, shape: shape(first) }, Self { data: other, shape: shape(count - first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_do_not_fit() {
        let data = [0u8; 10];
        assert!(Rows::new(&data, 3, 4, 3).is_ok(), "the last row may end before its stride does");
        let short = RowsError::TooShort { count: 3, width: 4, stride: 4, len: 10 };
        assert_eq!(Rows::new(&data, 3, 4, 4).unwrap_err(), short);
        assert!(Rows::new(&data, usize::MAX, 2, usize::MAX).is_err(), "the product does not fit");
        assert!(Rows::new(&data, 0, 99, 99).is_ok(), "no rows need nothing");
        assert_eq!(Rows::new(&data, 5, 10, 0).unwrap().row(4).len(), 10);
        let mut data = data;
        let overlapping = RowsError::Overlapping { width: 4, stride: 3 };
        assert_eq!(RowsMut::new(&mut data, 3, 4, 3).unwrap_err(), overlapping);
        assert!(RowsMut::new(&mut data, 1, 10, 0).is_ok(), "one row shares nothing");
    }

    #[test]
    fn only_rows_are_written() {
        for split in 0..=4 {
            let mut data = [0u8; 11];
            let (one, other) = RowsMut::new(&mut data, 4, 2, 3).unwrap().split_at(split);
            assert_eq!((one.count(), other.count()), (split, 4 - split));
            for (row, number) in one.into_iter().chain(other.into_iter()).zip(1..) {
                row.fill(number);
            }
            assert_eq!(data, [1, 1, 0, 2, 2, 0, 3, 3, 0, 4, 4], "split at {split}");
        }
    }
}
