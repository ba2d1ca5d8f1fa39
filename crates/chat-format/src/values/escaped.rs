//! Text as JSON strings write it.

use crate::values::Out;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Returns whether JSON strings write a byte otherwise than as it is.
#[inline]
pub(crate) const fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

/// Writes a byte of a text into a JSON string.
#[inline]
pub(crate) fn write_byte(byte: u8, out: &mut impl Out) {
    match byte {
        b'"' => out.json(b"\\\""),
        b'\\' => out.json(b"\\\\"),
        b'\n' => out.json(b"\\n"),
        b'\r' => out.json(b"\\r"),
        b'\t' => out.json(b"\\t"),
        0..=0x1f => out.json(&unit(u16::from(byte))),
        _ => out.json(&[byte]),
    }
}

/// Writes a text into a JSON string.
pub(crate) fn write(text: &[u8], out: &mut impl Out) {
    for &byte in text {
        write_byte(byte, out);
    }
}

/// Writes a UTF-16 unit as an escape.
pub(crate) fn unit(value: u16) -> [u8; 6] {
    let digit = |shift: u16| HEX[usize::from(value >> shift & 15)];
    [b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]
}
