//! Text to tokens, with the white space that Jinja2 strips under `trim_blocks` and `lstrip_blocks`.

use super::ast::Ident;
use super::numbers::{number, unescape};
use crate::error::{Fault, Kind, Res};
use crate::meter::TOKENS;
use crate::value::is_space;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Data(Arc<str>),
    BlockBegin,
    BlockEnd,
    PrintBegin,
    PrintEnd,
    Name(Ident),
    Str(Arc<str>),
    Int(i128),
    Float(f64),
    /// An operator, as it is written.
    Op(&'static str),
    End,
}

impl TokenKind {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Data(_) => "text".into(),
            Self::BlockBegin => "'{%'".into(),
            Self::BlockEnd => "'%}'".into(),
            Self::PrintBegin => "'{{'".into(),
            Self::PrintEnd => "'}}'".into(),
            Self::Name(name) => format!("'{name}'"),
            Self::Str(_) => "a string".into(),
            Self::Int(_) | Self::Float(_) => "a number".into(),
            Self::Op(operator) => format!("'{operator}'"),
            Self::End => "the end of the template".into(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) line: u32,
    pub(super) what: TokenKind,
}

/// All operators, longest first.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    line: u32,
    tokens: Vec<Token>,
    /// True if the last tag ended with its line's end, so that the text after it begins a line.
    line_starting: bool,
}

pub(super) fn tokenize(source: &str) -> Res<Vec<Token>> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer = Lexer { source: &source, at: 0, line: 1, tokens: Vec::new(), line_starting: true };
    lexer.run()?;
    Ok(lexer.tokens)
}

impl<'s> Lexer<'s> {
    fn remaining(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn fail<T>(&self, reason: impl Into<String>) -> Res<T> {
        Err(Fault::new(Kind::Syntax, reason).with_line(self.line))
    }

    fn push(&mut self, what: TokenKind) {
        self.tokens.push(Token { line: self.line, what });
    }

    /// Goes on by so many bytes.
    fn take(&mut self, bytes: usize) -> &'s str {
        let taken = &self.remaining()[..bytes];
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count() as u32;
        self.at += bytes;
        if let Some(last) = taken.bytes().last() {
            self.line_starting = last == b'\n';
        }
        taken
    }

    fn spaces(text: &str) -> usize {
        text.len() - text.trim_start_matches(is_space).len()
    }

    fn run(&mut self) -> Res<()> {
        while self.at < self.source.len() {
            let rest = self.remaining();
            let Some((start, kind)) = next_tag(rest) else {
                let text = self.text(rest, Tag::Print, None);
                self.push_text(text, rest.len());
                break;
            };
            let sign = rest[start + 2..].chars().next().filter(|sign| "+-".contains(*sign));
            let raw = if kind == Tag::Block { raw_begin(&rest[start..]) } else { None };
            let text = self.text(&rest[..start], kind, sign);
            self.push_text(text, start);
            if let Some(bytes) = raw {
                self.take(bytes);
                self.raw()?;
                continue;
            }
            self.take(2 + sign.map_or(0, |_| 1));
            match kind {
                Tag::Comment => self.comment()?,
                Tag::Block => {
                    self.push(TokenKind::BlockBegin);
                    self.code(true)?;
                }
                Tag::Print => {
                    self.push(TokenKind::PrintBegin);
                    self.code(false)?;
                }
            }
        }
        Ok(())
    }

    /// Text before a tag, without what the tag strips.
    fn text(&self, text: &'s str, kind: Tag, sign: Option<char>) -> &'s str {
        match sign {
            Some('-') => text.trim_end_matches(is_space),
            None if kind != Tag::Print => {
                let line = text.rfind('\n').map_or(0, |at| at + 1);
                let begins = line > 0 || self.line_starting;
                if begins && text[line..].chars().all(is_space) { &text[..line] } else { text }
            }
            _ => text,
        }
    }

    fn push_text(&mut self, text: &str, bytes: usize) {
        if !text.is_empty() {
            self.push(TokenKind::Data(text.into()));
        }
        self.take(bytes);
    }

    fn comment(&mut self) -> Res<()> {
        let rest = self.remaining();
        if rest.is_empty() {
            return Ok(());
        }
        let Some(end) = rest.find("#}") else { return self.fail("missing end of comment tag") };
        // `+#}` and `-#}` belong together, but not in `{#-#}`, whose sign was taken.
        let sign = rest[..end].chars().next_back().filter(|sign| "+-".contains(*sign));
        self.take(end + 2);
        self.after_end(sign, true);
        Ok(())
    }

    /// Skips the whitespace that an end of a tag consumes.
    fn after_end(&mut self, sign: Option<char>, block: bool) {
        match sign {
            Some('-') => {
                let bytes = Self::spaces(self.remaining());
                self.take(bytes);
            }
            None if block && self.remaining().starts_with('\n') => {
                self.take(1);
            }
            _ => {}
        }
    }

    /// Reads the text after `{% raw %}`.
    fn raw(&mut self) -> Res<()> {
        let rest = self.remaining();
        let mut from = 0;
        while let Some(found) = rest[from..].find("{%") {
            let start = from + found;
            if let Some((bytes, open, close)) = raw_end(&rest[start..]) {
                let text = self.text(&rest[..start], Tag::Block, open);
                self.push_text(text, start);
                self.take(bytes);
                self.after_end(close, true);
                return Ok(());
            }
            from = start + 2;
        }
        // Jinja2 takes a template that ends right here.
        if rest.is_empty() { Ok(()) } else { self.fail("missing end of raw directive") }
    }

    /// The tokens of a tag, and its end.
    fn code(&mut self, block: bool) -> Res<()> {
        let mut open: Vec<&'static str> = Vec::new();
        let end = if block { "%}" } else { "}}" };
        loop {
            let spaces = Self::spaces(self.remaining());
            self.take(spaces);
            if self.tokens.len() > TOKENS {
                let reason = format!("the template has more than {TOKENS} tokens");
                return Err(Fault::new(Kind::Limit, reason).with_line(self.line));
            }
            let rest = self.remaining();
            if open.is_empty() {
                let sign = rest.chars().next().filter(|sign| *sign == '-' || (block && *sign == '+'));
                if let Some(bytes) = [sign, None].into_iter().find_map(|sign| {
                    let skipped = sign.map_or(0, |_| 1);
                    rest[skipped..].starts_with(end).then_some((skipped, sign))
                }) {
                    self.push(if block { TokenKind::BlockEnd } else { TokenKind::PrintEnd });
                    self.take(bytes.0 + 2);
                    self.after_end(bytes.1, block);
                    return Ok(());
                }
            }
            let Some(first) = rest.chars().next() else {
                return self.fail(format!("unexpected end of template, expected '{end}'"));
            };
            if first.is_ascii_digit() {
                let (what, bytes) =
                    number(rest).map_err(|reason| Fault::new(Kind::Syntax, reason).with_line(self.line))?;
                self.push(what);
                self.take(bytes);
            } else if first == '_' || first.is_alphabetic() {
                let name = |character: char| character == '_' || character.is_alphanumeric();
                let bytes = rest.find(|character| !name(character)).unwrap_or(rest.len());
                self.push(TokenKind::Name(rest[..bytes].into()));
                self.take(bytes);
            } else if first == '"' || first == '\'' {
                self.string(first)?;
            } else if let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) {
                match operator {
                    "(" => open.push(")"),
                    "[" => open.push("]"),
                    "{" => open.push("}"),
                    ")" | "]" | "}" => match open.pop() {
                        Some(expected) if expected == operator => {}
                        Some(expected) => {
                            return self.fail(format!("unexpected '{operator}', expected '{expected}'"));
                        }
                        None => return self.fail(format!("unexpected '{operator}'")),
                    },
                    _ => {}
                }
                self.push(TokenKind::Op(operator));
                self.take(operator.len());
            } else {
                return self.fail(format!("unexpected character {first:?}"));
            }
        }
    }

    fn string(&mut self, quote: char) -> Res<()> {
        let rest = self.remaining();
        let mut escaped = false;
        let end = rest[1..].char_indices().find(|&(_, character)| {
            let ends = character == quote && !escaped;
            escaped = character == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else { return self.fail(format!("unexpected character {quote:?}: no end of string")) };
        let text = unescape(&rest[1..=end]).map_err(|reason| Fault::new(Kind::Syntax, reason).with_line(self.line))?;
        self.push(TokenKind::Str(text.into()));
        self.take(end + 2);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Block,
    Print,
    Comment,
}

fn next_tag(text: &str) -> Option<(usize, Tag)> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = text[from..].find('{') {
        let at = from + found;
        let kind = match bytes.get(at + 1) {
            Some(b'%') => Some(Tag::Block),
            Some(b'{') => Some(Tag::Print),
            Some(b'#') => Some(Tag::Comment),
            _ => None,
        };
        if let Some(kind) = kind {
            return Some((at, kind));
        }
        from = at + 1;
    }
    None
}

/// Bytes of `{% raw %}` with what its end strips, if the text begins with it.
fn raw_begin(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("{%")?;
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let rest = rest.trim_start_matches(is_space).strip_prefix("raw")?.trim_start_matches(is_space);
    let rest = match rest.strip_prefix("-%}") {
        Some(rest) => rest.trim_start_matches(is_space),
        None => rest.strip_prefix("%}")?,
    };
    Some(text.len() - rest.len())
}

/// Bytes of `{% endraw %}` and the signs of its two ends.
fn raw_end(text: &str) -> Option<(usize, Option<char>, Option<char>)> {
    let sign = |text: &str| text.chars().next().filter(|sign| "+-".contains(*sign));
    let rest = text.strip_prefix("{%")?;
    let open = sign(rest);
    let rest = &rest[open.map_or(0, |_| 1)..];
    let rest = rest.trim_start_matches(is_space).strip_prefix("endraw")?.trim_start_matches(is_space);
    let close = sign(rest);
    let rest = rest[close.map_or(0, |_| 1)..].strip_prefix("%}")?;
    Some((text.len() - rest.len(), open, close))
}
