//! Patterns of ECMA-262, which JSON Schema takes its patterns from, as regular expressions of this crate.

/// White space of ECMA-262, as it stands in a class.
const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// A pattern with `\d`, `\w` and `\s`, and those that are not, as ECMA-262 has them: digits and words are ASCII; the
/// byte order mark is white space, and U+0085 is none.
///
/// ```
/// use trie_rules::schema::ecma_classes;
///
/// assert_eq!(ecma_classes(r"^[a\d]\D$"), "^[a0-9][^0-9]$");
/// ```
pub fn ecma_classes(pattern: &str) -> String {
    let mut said = String::with_capacity(pattern.len());
    let (mut chars, mut classes) = (pattern.chars().peekable(), 0_usize);
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(name @ ('d' | 'D' | 'w' | 'W' | 's' | 'S')) => {
                    let members = match name.to_ascii_lowercase() {
                        'd' => "0-9",
                        'w' => "0-9A-Za-z_",
                        _ => SPACE,
                    };
                    match (name.is_ascii_uppercase(), classes) {
                        (true, _) => said.extend(["[^", members, "]"]),
                        (false, 0) => said.extend(["[", members, "]"]),
                        (false, _) => said.push_str(members),
                    }
                }
                other => said.extend([Some('\\'), other].into_iter().flatten()),
            },
            '[' => {
                classes += 1;
                said.push(char);
                said.extend(chars.next_if_eq(&'^'));
                // The first one is a character of the class.
                said.extend(chars.next_if_eq(&']'));
            }
            ']' => {
                classes = classes.saturating_sub(1);
                said.push(char);
            }
            other => said.push(other),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_said_in_and_outside_of_others() {
        let of = |pattern: &str| ecma_classes(pattern).replace(SPACE, "SPACE");
        for (pattern, said) in [
            (r"^\s*a\S", "^[SPACE]*a[^SPACE]"),
            (r"[^\s\d][]\S]", r"[^SPACE0-9][][^SPACE]]"),
            (r"[a[\s]b]\s", "[a[SPACE]b][SPACE]"),
            (r"\\s\[\s", r"\\s\[[SPACE]"),
            (r"\w\W[\w\W]", "[0-9A-Za-z_][^0-9A-Za-z_][0-9A-Za-z_[^0-9A-Za-z_]]"),
            (r"\b\", r"\b\"),
            (r"\s\", r"[SPACE]\"),
        ] {
            assert_eq!(of(pattern), said);
        }
    }
}
