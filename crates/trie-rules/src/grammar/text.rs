//! Parser of a grammar's text in the notation of yacc: words, and rules made of them.

use super::error::{GrammarError, GrammarProblem, Place};
use std::iter::Peekable;

/// A grammar as it was written.
#[derive(Debug, Default)]
pub(super) struct ParsedGrammar {
    pub(super) start: Option<(String, Place)>,
    pub(super) rules: Vec<WrittenRule>,
}

#[derive(Debug)]
pub(super) struct WrittenRule {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) alternatives: Vec<Vec<Symbol>>,
}

#[derive(Debug, Clone)]
pub(super) struct Symbol {
    pub(super) place: Place,
    pub(super) what: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Name(String),
    /// Content of quotes, verbatim: a backslash is a backslash.
    Quoted(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Name(String),
    Quoted(String),
    /// `%start` and the like.
    Directive(String),
    /// The separator `%%` between sections.
    Separator,
    Colon,
    Bar,
    Semicolon,
}

fn syntax(place: Place, problem: impl Into<String>) -> GrammarError {
    GrammarProblem::Syntax { problem: problem.into() }.into_error(place)
}

struct Characters<'t> {
    left: Peekable<std::str::Chars<'t>>,
    place: Place,
}

impl Characters<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.left.next()?;
        if character == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(character)
    }

    fn while_is(&mut self, is: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) = self.left.next_if(|&character| is(character)) {
            self.place.column += 1;
            taken.push(character);
        }
        taken
    }
}

fn in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '.'
}

fn words(text: &str) -> Result<Vec<(Word, Place)>, GrammarError> {
    let mut from = Characters { left: text.chars().peekable(), place: Place { line: 1, column: 1 } };
    let mut words = Vec::new();
    loop {
        let place = from.place;
        let Some(&character) = from.left.peek() else { return Ok(words) };
        if character.is_ascii_alphabetic() || character == '_' {
            words.push((Word::Name(from.while_is(in_name)), place));
            continue;
        }
        from.next();
        let word = match character {
            _ if character.is_whitespace() => continue,
            '/' => {
                comment(&mut from, place)?;
                continue;
            }
            ':' => Word::Colon,
            '|' => Word::Bar,
            ';' => Word::Semicolon,
            '"' | '\'' => Word::Quoted(read_quoted(&mut from, character, place)?),
            '%' if from.left.peek() == Some(&'%') => {
                from.next();
                Word::Separator
            }
            '%' => Word::Directive(from.while_is(in_name)),
            '{' => return Err(syntax(place, "rules have no actions here: remove what stands in braces")),
            other => return Err(syntax(place, format!("unexpected {other:?} in a grammar"))),
        };
        words.push((word, place));
    }
}

fn comment(from: &mut Characters<'_>, place: Place) -> Result<(), GrammarError> {
    match from.next() {
        Some('/') => {
            from.while_is(|character| character != '\n');
            Ok(())
        }
        Some('*') => {
            let mut before = ' ';
            loop {
                match from.next() {
                    Some('/') if before == '*' => return Ok(()),
                    Some(character) => before = character,
                    None => return Err(syntax(place, "the comment never ends: */ is missing")),
                }
            }
        }
        _ => Err(syntax(place, "'/' begins a comment, // or /*, or stands in quotes: \"/pattern/\"")),
    }
}

fn read_quoted(from: &mut Characters<'_>, quote: char, place: Place) -> Result<String, GrammarError> {
    let inner = from.while_is(|character| character != quote && character != '\n');
    match from.next() {
        Some(end) if end == quote && inner.is_empty() => {
            Err(syntax(place, "an empty text is not a terminal: leave the alternative empty instead"))
        }
        Some(end) if end == quote => Ok(inner),
        _ => Err(syntax(place, format!("{quote} is missing at the end of the line"))),
    }
}

impl ParsedGrammar {
    pub(super) fn parse(text: &str) -> Result<Self, GrammarError> {
        let end = Place {
            line: text.lines().count().max(1),
            column: text.lines().last().map_or(1, |l| l.chars().count() + 1),
        };
        let mut words = words(text)?.into_iter().peekable();
        let mut written = Self::default();
        let mut separated = false;
        while let Some((word, place)) = words.next() {
            match word {
                Word::Separator if separated => break,
                Word::Separator if written.rules.is_empty() => separated = true,
                // What follows the rules is code of other tools.
                Word::Separator => break,
                Word::Directive(name) if name == "start" => match words.next() {
                    Some((Word::Name(name), place)) if written.start.is_none() => written.start = Some((name, place)),
                    Some((Word::Name(_), place)) => return Err(syntax(place, "%start comes twice")),
                    _ => return Err(syntax(place, "%start needs the name of a rule")),
                },
                Word::Directive(name) if name == "token" => {
                    // Terminals are known by where they are defined.
                    while words.next_if(|(word, at)| matches!(word, Word::Name(_)) && at.line == place.line).is_some() {
                    }
                }
                Word::Directive(name) if ["left", "right", "nonassoc", "precedence", "prec"].contains(&&*name) => {
                    return Err(syntax(
                        place,
                        format!("%{name}: say which operator binds first by rules, one for each level"),
                    ));
                }
                Word::Directive(name) => {
                    return Err(syntax(place, format!("%{name} is not known: there are %start and %token")));
                }
                Word::Name(name) => match words.next() {
                    Some((Word::Colon, _)) => {
                        let alternatives = alternatives(&mut words, &name, place)?;
                        written.rules.push(WrittenRule { name, place, alternatives });
                    }
                    other => {
                        let place = other.map_or(end, |(_, place)| place);
                        return Err(syntax(place, format!("a colon must follow {name}")));
                    }
                },
                _ => return Err(syntax(place, "a rule begins with its name: name : \"text\" | other ;")),
            }
        }
        Ok(written)
    }
}

fn alternatives(
    words: &mut Peekable<impl Iterator<Item = (Word, Place)>>,
    name: &str,
    begin: Place,
) -> Result<Vec<Vec<Symbol>>, GrammarError> {
    let mut done = Vec::new();
    let mut current = Vec::new();
    for (word, place) in words.by_ref() {
        let what = match word {
            Word::Name(name) => Kind::Name(name),
            Word::Quoted(text) => Kind::Quoted(text),
            Word::Directive(name) if name == "empty" => continue,
            Word::Bar => {
                done.push(std::mem::take(&mut current));
                continue;
            }
            Word::Semicolon => {
                done.push(current);
                return Ok(done);
            }
            Word::Colon => return Err(syntax(place, format!("the rule {name} misses its ; before this colon"))),
            Word::Directive(other) => return Err(syntax(place, format!("%{other} cannot stand in a rule"))),
            Word::Separator => break,
        };
        current.push(Symbol { place, what });
    }
    Err(syntax(begin, format!("the rule {name} never ends: ; is missing")))
}
