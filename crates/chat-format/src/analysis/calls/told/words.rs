//! Words of a text that tells how calls are written: which stand for something else, and where they end.

use crate::analysis::calls::ends::FENCE;
use crate::analysis::calls::example::Piece;

/// Returns the end of a string in double quotes.
pub(super) fn string_end(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    inner.char_indices().find_map(|(at, sign)| match sign {
        '\n' => Some(None),
        '"' if !escaped => Some(Some(at + 2)),
        _ => {
            escaped = sign == '\\' && !escaped;
            None
        }
    })?
}

/// Returns whether a closing brace closes one in the same words.
pub(super) fn closes_brace(words: &str, at: usize) -> bool {
    let opened = words[..at].matches('{').count();
    opened > words[..at].matches('}').count()
}

pub(super) fn quote_piece(piece: Piece) -> Vec<Piece> {
    vec![Piece::Text("\"".into()), piece, Piece::Text("\"".into())]
}

pub(super) fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => before.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

pub(super) fn prepend_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.first_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(after)) => after.insert_str(0, text),
        _ => pieces.insert(0, Piece::Text(text.to_owned())),
    }
}

pub(super) fn has_letters(text: &str) -> bool {
    let text = text.trim_end();
    let text = text.rfind(FENCE).map_or(text, |fence| &text[..fence]);
    text.contains(char::is_alphanumeric)
}

/// The words of a text: what is between signs that are no letters, and where a large letter follows a small one.
pub(super) fn has_word(text: &str, wanted: &[&str]) -> bool {
    let words = text.split(|sign: char| !sign.is_alphabetic());
    words.into_iter().any(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
}

pub(super) fn is_of_arguments(text: &str) -> bool {
    // A key and a value are one argument of several.
    if has_word(text, &["key", "value", "val", "name"]) {
        return false;
    }
    has_word(text, &["arguments", "argument", "args", "arg", "parameters", "params", "input", "json", "dict", "object"])
}

pub(super) fn is_sign_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '-' | '$')
}

pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_sign_of_word)
}

/// Returns whether the text is a placeholder: `<tool-name>`, `{name}`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let inner = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
    let tag =
        inner('<', '>').filter(|inner| inner.contains(['-', ' ']) || is_of_arguments(inner) && inner.contains('_'));
    let inner = tag.or_else(|| inner('{', '}'));
    inner.is_some_and(|inner| inner.chars().all(|sign| is_sign_of_word(sign) || sign == ' ') && inner.len() >= 2)
}

/// Returns whether a text contains words in braces.
pub(super) fn has_placeholder(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| {
        let word = text[at + 1..].trim_start_matches(is_sign_of_word);
        word.starts_with('}') && word.len() + 1 < text.len() - at
    })
}

/// Returns the position of a name or a key in a tag: `<w=KEY>`, `<w name="KEY" …>`.
pub(super) fn slot(tag: &str) -> Option<(usize, usize)> {
    let inner = tag.strip_suffix('>').filter(|inner| inner.starts_with('<') && !inner.starts_with("</"))?;
    let equals = inner.find('=')?;
    let value = &inner[equals + 1..];
    let quote = value.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    let (from, length) = match quote {
        Some(quote) => (equals + 2, value[1..].find(quote)?),
        None => (equals + 1, value.len()),
    };
    (length > 0).then_some((from, from + length))
}

/// The last word of a text, where nothing but signs comes after it and it is not part of a sentence.
pub(super) fn last_word(text: &str) -> Option<(usize, usize)> {
    let mut whole = text.trim_end();
    if let Some(fence) = whole.rfind(FENCE).filter(|at| is_word(&whole[at + FENCE.len()..])) {
        whole = whole[..fence].trim_end();
    }
    let bare = whole.trim_end_matches([':', '"', '(', '>']);
    let bare = match bare.rsplit_once(':') {
        Some((before, number)) if !number.is_empty() && number.chars().all(|sign| sign.is_ascii_digit()) => before,
        _ => bare,
    };
    let start = if bare.ends_with('}') { bare.rfind('{')? } else { bare.trim_end_matches(is_sign_of_word).len() };
    let word = &bare[start..];
    if word.trim_matches(['{', '}']).len() < 2 || !word.contains(char::is_alphabetic) {
        return None;
    }
    // Words of a sentence have blanks before them.
    let before = &bare[..start];
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let is_said =
        before[line..].trim_end().len() < before[line..].len() && before[line..].contains(char::is_alphanumeric);
    (!is_said).then_some((start, bare.len()))
}

/// Returns the end of the number of a call that follows its name directly: `:0`.
pub(super) fn number_after(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(':')?;
    let length = digits.len() - digits.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    (length > 0).then_some(1 + length)
}
