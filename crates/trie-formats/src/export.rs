//! Sets of texts as grammars, for hosts that accept no other constraint: GBNF and regular expressions.
//!
//! Both are written from a trie of characters, so a common prefix of values is written once.

use std::fmt::Write;
use trie_core::BuildError;
use trie_core::LeafWalk;
use trie_core::TokenId;
use trie_core::{Cursor, Trie};

/// A set of texts, ready to be written as a grammar that accepts these texts and no other.
///
/// ```
/// use trie_formats::TextGrammar;
/// let grammar = TextGrammar::new(["REPLY", "REPLY_ALL", "STOP"])?;
/// assert_eq!(grammar.regex(), "(?:REPLY(?:_ALL)?|STOP)");
/// assert_eq!(grammar.gbnf()?, "root ::= (\"REPLY\" (\"_ALL\")? | \"STOP\")\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextGrammar {
    /// The texts that are not empty; its tokens are characters.
    characters: Option<Trie>,
    /// True if the empty text is one of them.
    empty: bool,
}

/// A text that GBNF cannot represent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("GBNF cannot spell the character NUL in {text:?}")]
pub struct NotInGbnf {
    /// Text of the export.
    pub text: String,
}

trie_core::error_kind!(NotInGbnf, Set);

/// Notation of alternatives and characters.
struct Notation {
    open: &'static str,
    or: &'static str,
    close: &'static str,
    /// Quotes around a run of characters.
    quote: &'static str,
    /// Separator between items in a sequence.
    space: &'static str,
    character: fn(char, &mut String),
    /// Characters that a class in brackets needs escaped, and how.
    in_class: &'static [(char, &'static str)],
}

const REGEX: Notation = Notation {
    open: "(?:",
    or: "|",
    close: ")",
    quote: "",
    space: "",
    character: regex_character,
    in_class: &[('-', "\\-")],
};
const GBNF: Notation = Notation {
    open: "(",
    or: " | ",
    close: ")",
    quote: "\"",
    space: " ",
    character: gbnf_character,
    in_class: &[('-', "\\-"), ('[', "\\["), (']', "\\]"), ('^', "\\x5E")],
};

/// Largest nesting depth of groups. Below it, values are listed one by one, because engines limit the depth of a
/// pattern, and so does the stack.
const MAX_NESTING: usize = 40;

impl TextGrammar {
    /// The set of these texts, in any order; equal ones count once. `O(n log n)` comparisons.
    ///
    /// # Errors
    /// No text at all, or more than a trie can hold.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, BuildError> {
        let (mut builder, mut empty) = (Trie::builder(), false);
        let mut characters = Vec::new();
        for text in texts {
            characters.clear();
            characters.extend(text.as_ref().chars().filter_map(|c| TokenId::new(c.into())));
            if characters.is_empty() {
                empty = true;
            } else {
                builder.push(None, &characters);
            }
        }
        let characters = if builder.is_empty() && empty { None } else { Some(builder.build()?) };
        Ok(Self { characters, empty })
    }

    /// A regular expression that matches these texts and no other if it has to match the whole input. It has no
    /// anchors.
    ///
    /// The expression uses only groups, alternatives, `?` and escapes that every common engine supports. If it may
    /// match a part of the input, it prefers the longest value.
    pub fn regex(&self) -> String {
        let mut out = String::new();
        match &self.characters {
            Some(trie) if self.empty => {
                out.push_str(REGEX.open);
                REGEX.row(trie, Cursor::ROOT, &mut String::new(), 1, &mut out);
                out.push_str(REGEX.close);
                out.push('?');
            }
            Some(trie) => REGEX.row(trie, Cursor::ROOT, &mut String::new(), 0, &mut out),
            None => {}
        }
        out
    }

    /// A grammar for llama.cpp with the rule `root`.
    ///
    /// # Errors
    /// A text that holds NUL, which ends a text in llama.cpp.
    pub fn gbnf(&self) -> Result<String, NotInGbnf> {
        let mut out = "root ::= ".to_owned();
        match &self.characters {
            Some(trie) => {
                check_gbnf(trie)?;
                if self.empty {
                    out.push_str("\"\" | ");
                }
                GBNF.row(trie, Cursor::ROOT, &mut String::new(), 0, &mut out);
            }
            None => out.push_str("\"\""),
        }
        out.push('\n');
        Ok(out)
    }
}

fn check_gbnf(trie: &Trie) -> Result<(), NotInGbnf> {
    let mut walk = trie.in_order();
    while walk.advance().is_some() {
        if walk.tokens().iter().any(|token| token.get() == 0) {
            return Err(NotInGbnf { text: text(&walk) });
        }
    }
    Ok(())
}

fn character(token: TokenId) -> char {
    char::from_u32(token.get()).unwrap_or_default()
}

fn text(walk: &LeafWalk<'_>) -> String {
    walk.tokens().iter().copied().map(character).collect()
}

impl Notation {
    /// Writes `held` and everything that may follow a position: characters up to the next choice, then the choice.
    ///
    /// `held` contains earlier characters that are not written yet; it is empty afterwards.
    fn row(&self, trie: &Trie, at: Cursor, held: &mut String, nesting: usize, out: &mut String) {
        let mut forced = trie.forced(at);
        held.extend(forced.by_ref().map(character));
        let at = forced.position();
        let literal = self.literal(held, out);
        held.clear();
        if trie.children(at).is_empty() {
            return;
        }
        if literal {
            out.push_str(self.space);
        }
        if nesting < MAX_NESTING {
            self.choice(trie, at, held, nesting, out);
        } else {
            self.list(trie, at, out);
        }
        if trie.is_terminal(at) {
            out.push('?');
        }
    }

    /// Writes the children of a position: those that nothing follows as one class, the others each with their
    /// continuations.
    fn choice(&self, trie: &Trie, at: Cursor, held: &mut String, nesting: usize, out: &mut String) {
        let children =
            trie.children(at).iter().enumerate().map(|(nth, &token)| (trie.child(at, nth), character(token)));
        let (last, more): (Vec<_>, Vec<_>) = children.partition(|&(child, _)| trie.children(child).is_empty());
        if more.is_empty() {
            return self.class(&last, out);
        }
        out.push_str(self.open);
        if !last.is_empty() {
            self.class(&last, out);
        }
        for (nth, (child, first)) in more.into_iter().enumerate() {
            if nth > 0 || !last.is_empty() {
                out.push_str(self.or);
            }
            held.push(first);
            self.row(trie, child, held, nesting + 1, out);
        }
        out.push_str(self.close);
    }

    fn class(&self, characters: &[(Cursor, char)], out: &mut String) {
        if let [(_, only)] = characters {
            self.literal(only.encode_utf8(&mut [0; 4]), out);
            return;
        }
        out.push('[');
        for &(_, character) in characters {
            match self.in_class.iter().find(|(escaped, _)| *escaped == character) {
                Some((_, escape)) => out.push_str(escape),
                None => (self.character)(character, out),
            }
        }
        out.push(']');
    }

    /// Writes the continuations of a position value by value, each value before its own prefixes.
    fn list(&self, trie: &Trie, at: Cursor, out: &mut String) {
        out.push_str(self.open);
        let mut walk = trie.in_order_below(at);
        let mut values = Vec::new();
        while walk.advance().is_some() {
            if !walk.tokens().is_empty() {
                values.push(text(&walk));
            }
        }
        for (nth, value) in values.iter().rev().enumerate() {
            if nth > 0 {
                out.push_str(self.or);
            }
            self.literal(value, out);
        }
        out.push_str(self.close);
    }

    /// Writes a literal, and returns whether it was not empty.
    fn literal(&self, text: &str, out: &mut String) -> bool {
        if text.is_empty() {
            return false;
        }
        out.push_str(self.quote);
        for character in text.chars() {
            (self.character)(character, out);
        }
        out.push_str(self.quote);
        true
    }
}

/// Syntax characters are escaped by a backslash, control characters by number; all else stands for itself.
fn regex_character(character: char, out: &mut String) {
    match character {
        '\\' | '.' | '^' | '$' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' => {
            out.push('\\');
            out.push(character);
        }
        '\0'..'\x20' | '\x7F'..'\u{A0}' => number(out, "\\x", character, 2),
        _ => out.push(character),
    }
}

/// Printable ASCII stands for itself, all else is escaped by its number.
fn gbnf_character(character: char, out: &mut String) {
    match character {
        '"' | '\\' => {
            out.push('\\');
            out.push(character);
        }
        '\x20'..'\x7F' => out.push(character),
        '\0'..'\u{100}' => number(out, "\\x", character, 2),
        '\u{100}'..'\u{10000}' => number(out, "\\u", character, 4),
        _ => number(out, "\\U", character, 8),
    }
}

fn number(out: &mut String, prefix: &str, character: char, digits: usize) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{prefix}{:0digits$X}", u32::from(character));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar(texts: &[&str]) -> TextGrammar {
        TextGrammar::new(texts).unwrap()
    }

    #[test]
    fn what_is_shared_is_written_once() {
        let set = grammar(&["REPLY", "REPLY_THREAD", "REPLY_ALL", "STOP", "STOP"]);
        assert_eq!(set.regex(), "(?:REPLY(?:_(?:ALL|THREAD))?|STOP)");
        assert_eq!(set.gbnf().unwrap(), "root ::= (\"REPLY\" (\"_\" (\"ALL\" | \"THREAD\"))? | \"STOP\")\n");
        assert_eq!(grammar(&["one"]).regex(), "one");
        let set = grammar(&["a-", "a]", "a^", "a^b", "a[", "a", "ac"]);
        assert_eq!(set.regex(), "a(?:[\\-\\[\\]c]|\\^b?)?");
        assert_eq!(set.gbnf().unwrap(), "root ::= \"a\" ([\\-\\[\\]c] | \"^\" \"b\"?)?\n");
        assert_eq!(grammar(&["", "a", "ab"]).regex(), "(?:ab?)?");
        assert_eq!(grammar(&[""]).regex(), "");
        assert_eq!(grammar(&["", "a"]).gbnf().unwrap(), "root ::= \"\" | \"a\"\n");
        assert_eq!(grammar(&[""]).gbnf().unwrap(), "root ::= \"\"\n");
    }

    #[test]
    fn characters_are_escaped() {
        let set = grammar(&["a\"\\\n\u{7f}é日🙂(.-]"]);
        assert_eq!(set.regex(), "a\"\\\\\\x0A\\x7Fé日🙂\\(\\.-\\]");
        assert_eq!(set.gbnf().unwrap(), "root ::= \"a\\\"\\\\\\x0A\\x7F\\xE9\\u65E5\\U0001F642(.-]\"\n");
        let refused = grammar(&["a", "b\0c"]).gbnf().unwrap_err();
        assert_eq!(refused.to_string(), "GBNF cannot spell the character NUL in \"b\\0c\"");
        assert_eq!(grammar(&["\0"]).regex(), "\\x00");
    }

    #[test]
    fn deep_sets_do_not_nest_deeper_and_deeper() {
        let texts: Vec<String> = (1..=MAX_NESTING + 3).map(|length| "a".repeat(length)).collect();
        let pattern = TextGrammar::new(&texts).unwrap().regex();
        assert_eq!(pattern.matches("(?:").count(), MAX_NESTING + 1);
        assert!(pattern.contains("(?:aa|a)?"), "{pattern}");
        assert!(TextGrammar::new([""; 0]).is_err());
    }
}
