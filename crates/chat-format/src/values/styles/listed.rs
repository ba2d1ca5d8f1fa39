//! One of a sorted list of texts.

/// Position in a list: the range of texts that still match, and the number of bytes read of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Listed {
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) depth: u32,
}

impl Listed {
    /// Position at which no text matches.
    pub(crate) const NOWHERE: Self = Self { low: 0, high: 0, depth: 0 };

    pub(crate) const fn begin(texts: usize) -> Self {
        Self { low: 0, high: texts as u32, depth: 0 }
    }

    /// After one more byte; `None` where no text goes on so. `text` gives the texts, sorted by their bytes.
    pub(crate) fn step<'a>(self, byte: u8, text: impl Fn(u32) -> &'a [u8]) -> Option<Self> {
        let at = self.depth as usize;
        let here = |number: u32| text(number).get(at).copied();
        if self.low < self.high {
            // Most bytes go on nowhere, and most ranges are short.
            let most = here(self.high - 1);
            if most < Some(byte) || here(self.low) > Some(byte) {
                return None;
            }
            if self.high - self.low == 1 {
                return (most == Some(byte)).then_some(Self { depth: self.depth + 1, ..self });
            }
        }
        let first = |least: u16| {
            let (mut low, mut high) = (self.low, self.high);
            while low < high {
                let middle = low + (high - low) / 2;
                // A text that ends here comes first.
                let here = text(middle).get(at).map_or(0, |&byte| u16::from(byte) + 1);
                if here < least { low = middle + 1 } else { high = middle }
            }
            low
        };
        let (low, high) = (first(u16::from(byte) + 1), first(u16::from(byte) + 2));
        (low < high).then_some(Self { low, high, depth: self.depth + 1 })
    }

    /// The text that ends here.
    pub(crate) fn whole<'a>(self, text: impl Fn(u32) -> &'a [u8]) -> Option<u32> {
        (self.low < self.high && text(self.low).len() == self.depth as usize).then_some(self.low)
    }
}
