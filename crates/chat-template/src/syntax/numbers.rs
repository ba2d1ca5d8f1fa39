//! Literals as Python reads them: numbers, and what a backslash means in a string.

use super::lexer::TokenKind;

/// A number at the beginning of a text, and its bytes.
pub(super) fn number(text: &str) -> Result<(TokenKind, usize), String> {
    let digits = |text: &str, radix: u32| {
        let mut end = 0;
        for (at, character) in text.char_indices() {
            if character.is_digit(radix) {
                end = at + 1;
            } else if !(character == '_' && at == end && at > 0) {
                break;
            }
        }
        end
    };
    let prefix = text.as_bytes().get(1).map(u8::to_ascii_lowercase);
    let radix = match (text.as_bytes()[0], prefix) {
        (b'0', Some(b'b')) => 2,
        (b'0', Some(b'o')) => 8,
        (b'0', Some(b'x')) => 16,
        _ => 10,
    };
    if radix != 10 {
        let after = text[2..].strip_prefix('_').unwrap_or(&text[2..]);
        let bytes = digits(after, radix);
        if bytes > 0 {
            let value = i128::from_str_radix(&after[..bytes].replace('_', ""), radix);
            return Ok((TokenKind::Int(value.map_err(|_| too_long())?), text.len() - after.len() + bytes));
        }
    }
    let mut end = digits(text, 10);
    let whole = end;
    if text[end..].starts_with('.') {
        let fraction = digits(&text[end + 1..], 10);
        end += if fraction > 0 { 1 + fraction } else { 0 };
    }
    let exponent = &text[end..];
    if exponent.starts_with(['e', 'E']) {
        let sign = usize::from(exponent[1..].starts_with(['+', '-']));
        let bytes = digits(&exponent[1 + sign..], 10);
        end += if bytes > 0 { 1 + sign + bytes } else { 0 };
    }
    let plain = text[..end].replace('_', "");
    if end > whole {
        return Ok((TokenKind::Float(plain.parse().map_err(|_| format!("invalid number {plain}"))?), end));
    }
    if plain.starts_with('0') && plain.bytes().any(|byte| byte != b'0') {
        // `012` is 0 and then 12, which no grammar takes.
        return Ok((TokenKind::Int(0), text[..end].find(|digit| digit != '0' && digit != '_').unwrap_or(end)));
    }
    Ok((TokenKind::Int(plain.parse().map_err(|_| too_long())?), end))
}

fn too_long() -> String {
    "an integer of more than 127 bits".into()
}

/// Decodes escapes as Python's `unicode-escape`.
pub(super) fn unescape(text: &str) -> Result<String, String> {
    let Some(first) = text.find('\\') else { return Ok(text.to_owned()) };
    let mut out = text[..first].to_owned();
    let mut rest = &text[first..];
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character != '\\' {
            out.push(character);
            continue;
        }
        let Some(what) = rest.chars().next() else { break };
        rest = &rest[what.len_utf8()..];
        let hex = |digits: usize| -> Result<char, String> {
            let code = rest.get(..digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let code = code.ok_or_else(|| format!("truncated \\{what} escape in a string"))?;
            char::from_u32(code).ok_or_else(|| format!("\\{what}{} is not a character", &rest[..digits]))
        };
        let (escaped, bytes) = match what {
            '\n' => continue,
            '\\' | '\'' | '"' => (what, 0),
            'a' => ('\x07', 0),
            'b' => ('\x08', 0),
            'f' => ('\x0C', 0),
            'n' => ('\n', 0),
            'r' => ('\r', 0),
            't' => ('\t', 0),
            'v' => ('\x0B', 0),
            'x' => (hex(2)?, 2),
            'u' => match surrogates(rest) {
                Some(character) => (character, 10),
                None => (hex(4)?, 4),
            },
            'U' => (hex(8)?, 8),
            'N' => return Err("names of characters (\\N) are not supported".into()),
            '0'..='7' => {
                let more = rest.bytes().take(2).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                let code = u32::from_str_radix(&format!("{what}{}", &rest[..more]), 8).unwrap_or_default();
                (char::from_u32(code).unwrap_or_default(), more)
            }
            other => {
                out.push('\\');
                (other, 0)
            }
        };
        out.push(escaped);
        rest = &rest[bytes..];
    }
    Ok(out)
}

/// `\uD83D\uDE00`, whose first `\u` was read: one character in JSON, and meant as one.
fn surrogates(text: &str) -> Option<char> {
    let code = |digits: Option<&str>| u16::from_str_radix(digits?, 16).ok();
    let (high, low) = (code(text.get(..4))?, code(text.get(4..)?.strip_prefix("\\u")?.get(..4))?);
    char::decode_utf16([high, low]).next()?.ok().filter(|_| (0xD800..0xDC00).contains(&high))
}
