//! Several tokens of a row in one number that sorts as they do.

use crate::ids::TokenId;

/// As many tokens as are looked at for one key.
pub(super) const WINDOW: usize = 8;

/// What the tokens of some rows span, in each place of a window.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    low: [u32; WINDOW],
    high: [u32; WINDOW],
    /// Tokens of the shortest and of the longest row, from its beginning and not from that of the window.
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

    /// Widens the extent to another one.
    pub(super) fn merge(&mut self, other: &Self) {
        for place in 0..WINDOW {
            self.low[place] = self.low[place].min(other.low[place]);
            self.high[place] = self.high[place].max(other.high[place]);
        }
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
    }
}

/// How the tokens from `begin` to `end` of a row become a key: each less the smallest of its place, in no more bits than
/// needed, the first one highest. A token that a row does not have is 0 and sorts first.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    // One array each, so that a key is a few vector instructions. A place that is not in the key has an empty mask.
    base: [u32; WINDOW],
    mask: [u32; WINDOW],
    shift: [u32; WINDOW],
    /// Places of the window that every row has.
    present: usize,
    begin: usize,
    /// One after the last place in the key.
    pub(super) end: usize,
    /// Bits of a key.
    pub(super) bits: u32,
    /// Whether no row goes on behind the places of the key.
    whole: bool,
    /// For the highest bit in which two keys differ, plus one, the tokens that the rows share.
    shared: [u32; 65],
}

impl Packing {
    /// The key of as many places of the window as fit in `room` bits, at most 63; one place takes at most 32.
    pub(super) fn new(extent: &Extent, begin: usize, room: u32) -> Self {
        let (mut base, mut mask, mut shift) = ([0; WINDOW], [0u32; WINDOW], [0; WINDOW]);
        let (mut count, mut bits) = (0, 0);
        while count < WINDOW && begin + count < extent.longest {
            // Wraps where 0 is a token and some rows have none: then 0 becomes 1.
            let first = extent.low[count].wrapping_sub(u32::from(extent.shortest <= begin + count));
            let span = extent.high[count].wrapping_sub(first);
            let width = u32::BITS - span.leading_zeros();
            if bits + width > room {
                break;
            }
            bits += width;
            base[count] = first;
            mask[count] = u32::MAX.checked_shr(span.leading_zeros()).unwrap_or(0);
            count += 1;
        }
        let end = begin + count;
        let mut shared = [end as u32; 65];
        let mut above = bits;
        for place in 0..count {
            shift[place] = above - mask[place].count_ones();
            shared[shift[place] as usize + 1..=above as usize].fill((begin + place) as u32);
            above = shift[place];
        }
        let present = extent.shortest.clamp(begin, end) - begin;
        Self { base, mask, shift, present, begin, end, bits, whole: end >= extent.longest, shared }
    }

    /// The key of the tokens of a row from the beginning of the window on.
    #[inline]
    pub(super) fn key(&self, window: &[TokenId]) -> u64 {
        let places = self.base.iter().zip(&self.mask).zip(&self.shift);
        window.iter().zip(places).fold(0, |key, (token, ((base, mask), shift))| {
            key | u64::from(token.get().wrapping_sub(*base) & mask) << shift
        })
    }

    /// The tokens that gave a key, and how many.
    #[inline]
    pub(super) fn tokens(&self, key: u64) -> ([TokenId; WINDOW], usize) {
        let tokens = std::array::from_fn(|place| {
            TokenId::new(self.code(key, place).wrapping_add(self.base[place])).unwrap_or_default()
        });
        let places = self.end - self.begin;
        (tokens, (self.present..places).find(|&place| self.code(key, place) == 0).unwrap_or(places))
    }

    /// Whether a key is that of one sequence only: all of its tokens are in it.
    #[inline]
    pub(super) fn is_whole(&self, key: u64) -> bool {
        let places = self.end - self.begin;
        self.whole || self.present < places && self.code(key, places - 1) == 0
    }

    #[inline]
    fn code(&self, key: u64, place: usize) -> u32 {
        (key >> self.shift[place]) as u32 & self.mask[place]
    }

    /// How many tokens two rows share whose keys differ.
    #[inline]
    pub(super) fn shared(&self, a: u64, b: u64) -> u32 {
        self.shared[(u64::BITS - (a ^ b).leading_zeros()) as usize]
    }
}
