//! Several tokens of a row packed into one number that sorts in the same order, and rows sorted by such numbers.

use super::sequences::Source;
use crate::set::ids::TokenId;

/// Number of tokens that one key looks at.
pub(super) const WINDOW: usize = 8;
/// Marker for a code that no position is wide enough to have.
const NO_CODE: u32 = u32::MAX;

/// Range of the tokens of some rows, in each position of a window.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    low: [u32; WINDOW],
    high: [u32; WINDOW],
    /// Lengths of the shortest and of the longest row, counted from the beginning of the row, not of the window.
    shortest: usize,
    pub(super) longest: usize,
}

impl Extent {
    pub(super) const NOTHING: Self =
        Self { low: [u32::MAX; WINDOW], high: [0; WINDOW], shortest: usize::MAX, longest: 0 };

    /// Widens the extent to a row whose window begins at `begin`.
    #[inline]
    pub(super) fn add(&mut self, row: &[TokenId], begin: usize) {
        self.shortest = self.shortest.min(row.len());
        self.longest = self.longest.max(row.len());
        let Some(window) = row.get(begin..) else { return };
        for ((low, high), token) in self.low.iter_mut().zip(&mut self.high).zip(window) {
            *low = (*low).min(token.get());
            *high = (*high).max(token.get());
        }
    }

    /// The extent of these rows and, in each position, the narrower range of the common tokens, taken from some of the
    /// rows.
    pub(super) fn narrow(self, common: &Self) -> Common {
        let mut narrow = Common { low: self.low, high: self.high, all: self };
        for position in 0..WINDOW {
            let (low, high) = (common.low[position], common.high[position]);
            let span = high.saturating_sub(low);
            let bits = |span: u32| u32::BITS - span.leading_zeros();
            // A bit or two more are not worth the looking for tokens outside.
            if low <= high && bits(narrow.high[position] - narrow.low[position]) > bits(span) + 2 {
                narrow.low[position] = narrow.low[position].max(low.saturating_sub(span / 2 + 1));
                narrow.high[position] = narrow.high[position].min(high.saturating_add(span / 2 + 1));
            }
        }
        narrow
    }

    /// Widens the extent to another one.
    pub(super) fn merge(&mut self, other: &Self) {
        for position in 0..WINDOW {
            self.low[position] = self.low[position].min(other.low[position]);
            self.high[position] = self.high[position].max(other.high[position]);
        }
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
    }
}

/// Range that contains nearly all tokens, in each position, within the range of all.
#[derive(Debug)]
pub(super) struct Common {
    low: [u32; WINDOW],
    high: [u32; WINDOW],
    all: Extent,
}

/// Packing of the tokens from `begin` to `end` of a row into a key. Each token is stored as its distance from the
/// smallest one of its position, in as few bits as possible, the first token in the highest bits. A missing token is 0
/// and sorts first. All tokens below the common range of a position share one code, and all above it another. A key
/// ends with such a code and says nothing about later tokens.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    // One array each, so that a key is a few vector instructions. A position that is not in the key has an empty mask.
    base: [u32; WINDOW],
    floor: [u32; WINDOW],
    top: [u32; WINDOW],
    mask: [u32; WINDOW],
    shift: [u32; WINDOW],
    /// The codes that stand for more than one token; `NO_CODE` where there are none.
    below: [u32; WINDOW],
    above: [u32; WINDOW],
    /// True if there are such codes.
    narrow: bool,
    /// Number of window positions that every row has.
    present: usize,
    begin: usize,
    /// One after the last position in the key.
    pub(super) end: usize,
    /// Bits of a key.
    pub(super) bits: u32,
    /// True if no row continues behind the positions of the key.
    whole: bool,
    /// For each highest bit in which two keys differ, plus one, the number of tokens that the rows share.
    shared: [u32; 65],
}

impl Packing {
    /// The key of as many positions of the window as fit in `room` bits, at most 63; one position takes at most 32.
    pub(super) fn new(extent: Extent, begin: usize, room: u32) -> Self {
        Self::of_common(&Common { low: extent.low, high: extent.high, all: extent }, begin, room)
    }

    /// The same where positions are only as wide as common tokens need.
    pub(super) fn of_common(common: &Common, begin: usize, room: u32) -> Self {
        let extent = &common.all;
        let [mut base, mut floor, mut top, mut mask, mut shift] = [[0u32; WINDOW]; 5];
        let [mut below, mut above] = [[NO_CODE; WINDOW]; 2];
        let (mut count, mut bits) = (0, 0);
        while count < WINDOW && begin + count < extent.longest {
            let (low, high) = (common.low[count], common.high[count]);
            let none = u32::from(extent.shortest <= begin + count);
            let (lower, higher) = (extent.low[count] < low, extent.high[count] > high);
            // Wraps where 0 is a token and some rows have none: then 0 becomes 1.
            let first = low.wrapping_sub(none + u32::from(lower));
            let last = high.wrapping_sub(first) + u32::from(higher);
            let width = u32::BITS - last.leading_zeros();
            if bits + width > room {
                break;
            }
            bits += width;
            base[count] = first;
            floor[count] = low - u32::from(lower);
            top[count] = last;
            mask[count] = u32::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
            if lower {
                below[count] = none;
            }
            if higher {
                above[count] = last;
            }
            count += 1;
        }
        let narrow = [below, above] != [[NO_CODE; WINDOW]; 2];
        let end = begin + count;
        let mut shared = [end as u32; 65];
        let mut end_bit = bits;
        for position in 0..count {
            shift[position] = end_bit - mask[position].count_ones();
            shared[shift[position] as usize + 1..=end_bit as usize].fill((begin + position) as u32);
            end_bit = shift[position];
        }
        let present = extent.shortest.clamp(begin, end) - begin;
        let whole = end >= extent.longest;
        Self { base, floor, top, mask, shift, below, above, narrow, present, begin, end, bits, whole, shared }
    }

    /// The key of the tokens of a row from the beginning of the window on.
    #[inline]
    pub(super) fn key(&self, window: &[TokenId]) -> u64 {
        let positions = self.base.iter().zip(&self.floor).zip(&self.top).zip(&self.shift);
        let key = window.iter().zip(positions).fold(0, |key, (token, (((base, floor), top), shift))| {
            key | u64::from(token.get().max(*floor).wrapping_sub(*base).min(*top)) << shift
        });
        match self.uncommon(key) {
            Some(position) => key >> self.shift[position] << self.shift[position],
            None => key,
        }
    }

    /// The first position whose code stands for more than one token.
    #[inline]
    fn uncommon(&self, key: u64) -> Option<usize> {
        if self.narrow { self.find_uncommon(key) } else { None }
    }

    fn find_uncommon(&self, key: u64) -> Option<usize> {
        let is = |position: usize| -> bool {
            let code = self.code(key, position);
            code == self.below[position] || code == self.above[position]
        };
        let any = (0..WINDOW).fold(false, |any, position| any | is(position));
        if any { (0..WINDOW).find(|&position| is(position)) } else { None }
    }

    /// Returns the number of tokens of a row that its key determines.
    pub(super) fn decided_tokens(&self, key: u64) -> usize {
        self.uncommon(key).map_or(self.end, |position| self.begin + position)
    }

    /// The tokens that gave a key, and how many.
    #[inline]
    pub(super) fn tokens(&self, key: u64) -> ([TokenId; WINDOW], usize) {
        let tokens = std::array::from_fn(|position| {
            TokenId::new(self.code(key, position).wrapping_add(self.base[position])).unwrap_or_default()
        });
        let positions = self.end - self.begin;
        (tokens, (self.present..positions).find(|&position| self.code(key, position) == 0).unwrap_or(positions))
    }

    /// Returns whether [`Packing::is_whole`] is true of every key.
    pub(super) fn is_always_whole(&self) -> bool {
        self.whole && !self.narrow
    }

    /// Returns whether a key identifies one sequence: all of its tokens are in it.
    #[inline]
    pub(super) fn is_whole(&self, key: u64) -> bool {
        let positions = self.end - self.begin;
        (self.whole || self.present < positions && self.code(key, positions - 1) == 0) && self.uncommon(key).is_none()
    }

    #[inline]
    fn code(&self, key: u64, position: usize) -> u32 {
        (key >> self.shift[position]) as u32 & self.mask[position]
    }

    /// Returns the number of tokens shared by two rows with different keys.
    #[inline]
    pub(super) fn shared_tokens(&self, a: u64, b: u64) -> u32 {
        self.shared[(u64::BITS - (a ^ b).leading_zeros()) as usize]
    }
}

/// Below this many rows, rows are compared without keys.
pub(super) const FEW_IN_RUN: usize = 32;
/// Rows that are still equal after this many keys are compared, which limits the recursion.
pub(super) const MOST_ROUNDS: u32 = 16;

/// Sorts rows that share their first `from` tokens; equal ones by number.
pub(super) fn sort_from<S: Source>(source: &S, rows: &mut [u32], mut from: usize, rounds: u32) {
    let tail = |row: u32, from: usize| source.row(row as usize).get(from..).unwrap_or_default();
    if rows.len() < FEW_IN_RUN || rounds == 0 {
        rows.sort_unstable_by(|&a, &b| tail(a, from).cmp(tail(b, from)).then(a.cmp(&b)));
        return;
    }
    let row_bits = rows.iter().max().map_or(0, |&row| bits_for(row as usize + 1));
    let packing = loop {
        let mut extent = Extent::NOTHING;
        for &row in &*rows {
            extent.add(source.row(row as usize), from);
        }
        let longest = extent.longest;
        let packing = Packing::new(extent, from, (u64::BITS - row_bits).min(u64::BITS - 1));
        if packing.bits > 0 || packing.end >= longest {
            break packing;
        }
        // All rows go on alike.
        from = packing.end;
    };
    let mut entries: Vec<u64> =
        rows.iter().map(|&row| packing.key(tail(row, from)) << row_bits | u64::from(row)).collect();
    entries.sort_unstable();
    let mask = (1 << row_bits) - 1;
    for (row, entry) in rows.iter_mut().zip(&entries) {
        *row = (entry & mask) as u32;
    }
    let mut left = rows;
    for run in entries.chunk_by(|a, b| a >> row_bits == b >> row_bits) {
        let (rows, others) = left.split_at_mut(run.len());
        if rows.len() > 1 && !packing.is_whole(run[0] >> row_bits) {
            sort_from(source, rows, packing.end, rounds - 1);
        }
        left = others;
    }
}

/// Bits of the largest of so many row numbers.
pub(super) fn bits_for(rows: usize) -> u32 {
    usize::BITS - rows.saturating_sub(1).leading_zeros()
}
