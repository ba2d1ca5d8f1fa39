//! Members of a call's object that do not describe the call. Readers skip them, whatever they contain.

/// Side of such members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before a known member: each ends with a comma.
    Before,
    /// After the last known member: each begins with a comma.
    After,
}

/// Progress in the members.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Members {
    depth: u8,
    /// The quote that ends the string that is open, or 0.
    quote: u8,
    escaped: bool,
    /// True if one is begun.
    begun: bool,
}

impl Members {
    /// As a number that [`Members::pack`] gave.
    pub(super) fn unpack(packed: u16) -> Self {
        let [flags, depth] = packed.to_be_bytes();
        let quote = [0, b'"', b'\''][usize::from(flags & 3) % 3];
        Self { depth, quote, escaped: flags & 4 != 0, begun: flags & 8 != 0 }
    }

    pub(super) fn pack(self) -> u16 {
        let quote = match self.quote {
            b'"' => 1,
            b'\'' => 2,
            _ => 0,
        };
        u16::from_be_bytes([quote | u8::from(self.escaped) << 2 | u8::from(self.begun) << 3, self.depth])
    }

    /// Returns whether the text after them may come.
    pub(super) fn may_end(self, side: Side) -> bool {
        match side {
            Side::Before => !self.begun,
            Side::After => self.depth == 0 && self.quote == 0,
        }
    }

    /// After a byte of them.
    pub(super) fn step(mut self, side: Side, byte: u8) -> Option<Self> {
        if self.quote != 0 {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == self.quote {
                self.quote = 0;
            }
            return Some(self);
        }
        if byte.is_ascii_whitespace() {
            return Some(self);
        }
        if !self.begun {
            let begins = match side {
                Side::Before => matches!(byte, b'"' | b'\''),
                Side::After => byte == b',',
            };
            self.begun = true;
            self.quote = if side == Side::Before { byte } else { 0 };
            return begins.then_some(self);
        }
        match byte {
            b'"' | b'\'' => self.quote = byte,
            b'{' | b'[' => self.depth = self.depth.checked_add(1)?,
            b'}' | b']' => self.depth = self.depth.checked_sub(1)?,
            b',' if self.depth == 0 && side == Side::Before => self = Self::default(),
            _ => {}
        }
        Some(self)
    }

    /// Returns the rest of a text behind them, given the text that comes next.
    pub(super) fn skip_members<'t>(side: Side, text: &'t [u8], next: &[u8]) -> Option<&'t [u8]> {
        let mut members = Self::default();
        for (at, &byte) in text.iter().enumerate() {
            if members.may_end(side) && text[at..].starts_with(next) {
                return Some(&text[at..]);
            }
            members = members.step(side, byte)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_end_where_their_object_goes_on() {
        let before = |text: &'static str| Members::skip_members(Side::Before, text.as_bytes(), b"\"name\"");
        let rest = Some(&b"\"name\": 1"[..]);
        assert_eq!(before("\"name\": 1"), rest);
        assert_eq!(before("\"a\": {\"name\": \"}\"}, 'b': [1, \"\\\"\", 2], \"name\": 1"), rest);
        assert_eq!(before("\"a\": 1} \"name\": 1"), None);
        assert_eq!(before("a: 1, \"name\": 1"), None);
        let after = |text: &'static str| Members::skip_members(Side::After, text.as_bytes(), b"}");
        assert_eq!(after("}"), Some(&b"}"[..]));
        assert_eq!(after(", \"a\": {\"b\": \"}\"}, \"c\": 1}>"), Some(&b"}>"[..]));
        assert_eq!(after("\"a\": 1}"), None);
    }
}
