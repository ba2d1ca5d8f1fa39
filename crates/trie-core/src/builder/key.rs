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
    places: [Place; WINDOW],
    begin: usize,
    /// One after the last place in the key.
    pub(super) end: usize,
    /// Bits of a key.
    pub(super) bits: u32,
    /// Whether a key has all tokens of a row that begins where the window does.
    pub(super) whole: bool,
    /// For the highest bit in which two keys differ, plus one, the tokens that the rows share.
    shared: [u32; 65],
}

/// Where a token stands in a key. One that is not in the key has no bits.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    base: u32,
    mask: u32,
    shift: u32,
    optional: bool,
}

impl Packing {
    /// The key of as many places of the window as fit in `room` bits, at most 63; one place takes at most 32.
    pub(super) fn new(extent: &Extent, begin: usize, room: u32) -> Self {
        let mut places = [Place::default(); WINDOW];
        let (mut count, mut bits) = (0, 0);
        while count < WINDOW && begin + count < extent.longest {
            let optional = extent.shortest <= begin + count;
            // Wraps where 0 is a token and some rows have none: then 0 becomes 1.
            let base = extent.low[count].wrapping_sub(u32::from(optional));
            let mask = u32::MAX.checked_shr(extent.high[count].wrapping_sub(base).leading_zeros()).unwrap_or(0);
            if bits + mask.count_ones() > room {
                break;
            }
            bits += mask.count_ones();
            places[count] = Place { base, mask, shift: 0, optional };
            count += 1;
        }
        let end = begin + count;
        let mut shared = [end as u32; 65];
        let mut above = bits;
        for (place, at) in places[..count].iter_mut().zip(begin..) {
            place.shift = above - place.mask.count_ones();
            shared[place.shift as usize + 1..=above as usize].fill(at as u32);
            above = place.shift;
        }
        Self { places, begin, end, bits, whole: end >= extent.longest, shared }
    }

    /// The key of a row.
    #[inline]
    pub(super) fn key(&self, row: &[TokenId]) -> u64 {
        let window = row.get(self.begin..).unwrap_or_default();
        self.places.iter().zip(window).fold(0, |key, (place, token)| {
            key | u64::from(token.get().wrapping_sub(place.base) & place.mask) << place.shift
        })
    }

    /// The tokens that gave a key, and how many.
    #[inline]
    pub(super) fn tokens(&self, key: u64) -> ([TokenId; WINDOW], usize) {
        let mut tokens = [TokenId::default(); WINDOW];
        let places = &self.places[..self.end - self.begin];
        for (at, (token, place)) in tokens.iter_mut().zip(places).enumerate() {
            let code = (key >> place.shift) as u32 & place.mask;
            if place.optional && code == 0 {
                return (tokens, at);
            }
            *token = TokenId::new(code.wrapping_add(place.base)).unwrap_or(TokenId::MAX);
        }
        (tokens, places.len())
    }

    /// How many tokens two rows share whose keys differ.
    #[inline]
    pub(super) fn shared(&self, a: u64, b: u64) -> u32 {
        self.shared[(u64::BITS - (a ^ b).leading_zeros()) as usize]
    }
}
