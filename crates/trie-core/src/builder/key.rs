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
    base: [u32; WINDOW],
    shift: [u32; WINDOW],
    begin: usize,
    /// One after the last place in the key.
    pub(super) end: usize,
    /// Bits of a key.
    pub(super) bits: u32,
    /// For the highest bit in which two keys differ, plus one, the tokens that the rows share.
    shared: [u32; 65],
}

impl Packing {
    /// The key of as many places of the window as fit in `room` bits; one place takes at most 32.
    pub(super) fn new(extent: &Extent, begin: usize, room: u32) -> Self {
        let mut base = [0; WINDOW];
        let mut width = [0; WINDOW];
        let (mut places, mut bits) = (0, 0);
        while places < WINDOW && begin + places < extent.longest {
            let absent = u32::from(extent.shortest <= begin + places);
            // Wraps where 0 is a token and some rows have none: then 0 becomes 1.
            base[places] = extent.low[places].wrapping_sub(absent);
            width[places] = u32::BITS - extent.high[places].wrapping_sub(base[places]).leading_zeros();
            if bits + width[places] > room {
                break;
            }
            bits += width[places];
            places += 1;
        }
        let mut shift = [0; WINDOW];
        let mut shared = [(begin + places) as u32; 65];
        let mut above = bits;
        for place in 0..places {
            shared[above as usize - width[place] as usize + 1..=above as usize].fill((begin + place) as u32);
            above -= width[place];
            shift[place] = above;
        }
        Self { base, shift, begin, end: begin + places, bits, shared }
    }

    /// The key of a row.
    #[inline]
    pub(super) fn key(&self, row: &[TokenId]) -> u64 {
        let window = &row[self.begin.min(row.len())..self.end.min(row.len())];
        let places = self.base.iter().zip(&self.shift).zip(window);
        places.fold(0, |key, ((base, shift), token)| key | u64::from(token.get().wrapping_sub(*base)) << shift)
    }

    /// How many tokens two rows share whose keys differ.
    #[inline]
    pub(super) fn shared(&self, a: u64, b: u64) -> u32 {
        self.shared[(u64::BITS - (a ^ b).leading_zeros()) as usize]
    }
}
