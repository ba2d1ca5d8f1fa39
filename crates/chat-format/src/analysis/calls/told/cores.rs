//! Calls in a text that tells of them: each way to write a name and its arguments.

use super::words::{
    closes_brace, has_letters, has_word, is_of_arguments, is_placeholder, is_sign_of_word, is_word, last_word,
    number_after, prepend_text, push_text, quote_piece, slot, string_end,
};
use crate::analysis::calls::ends::ends;
use crate::analysis::calls::example::{ArgumentSyntax, Piece};
use crate::analysis::text::{Segment, floor, segments};

/// From a name to the end of its arguments, or a JSON object that holds both.
pub(super) struct Core {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) pieces: Vec<Piece>,
}

/// Description of tools in a prompt.
pub(super) struct PromptTools<'a> {
    pub(super) text: &'a str,
    /// Segments, each with its start.
    pub(super) segments: Vec<(usize, Segment<'a>)>,
}

/// A field of an object that need be no JSON: a key, and where its value is.
struct Loose<'a> {
    key: &'a str,
    start: usize,
    end: usize,
}

/// The most bytes of a value that is not JSON, and between a name and its arguments.
const MOST_BETWEEN: usize = 160;

/// The most bytes of an object, and objects in each other.
const MOST_OBJECT: usize = 2000;
const DEEPEST: usize = 6;

impl<'a> PromptTools<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut at = 0;
        let place = |segment: Segment<'a>| {
            at += segment.text().len();
            // A list of calls of Python looks like a marker.
            let is_list = matches!(segment, Segment::Marker(marker) if marker.starts_with('[') && marker.contains('('));
            (at - segment.text().len(), if is_list { Segment::Text(segment.text()) } else { segment })
        };
        Self { text, segments: segments(text).into_iter().map(place).collect() }
    }

    /// All calls that may be meant, the likeliest first.
    pub(super) fn cores(&self) -> impl Iterator<Item = Core> + '_ {
        let braces = || self.text.match_indices('{').map(|(at, _)| at);
        let brackets = || self.text.match_indices('(').map(|(at, _)| at);
        let numbers = || 0..self.segments.len();
        let objects = braces().filter_map(|at| self.object(at));
        let keyed = braces().filter_map(|at| self.name_as_key(at));
        let named = braces().chain(self.placeholders()).filter_map(|at| self.json(at));
        let tagged = numbers().filter_map(|number| self.find_tagged(number));
        let elements = numbers().filter_map(|number| self.element(number));
        let pairs = braces().filter_map(|at| self.pairs(at));
        let keywords = brackets().filter_map(|at| self.keywords(at));
        let all = objects.chain(keyed).chain(named).chain(tagged).chain(elements).chain(pairs).chain(keywords);
        all.chain(self.lines())
    }

    /// The fields of the object that begins here, and where it ends. Values may be words for what stands there.
    fn fields(&self, at: usize) -> Option<(Vec<Loose<'a>>, usize)> {
        self.fields_within(at, DEEPEST)
    }

    fn fields_within(&self, at: usize, deep: usize) -> Option<(Vec<Loose<'a>>, usize)> {
        let text = &self.text[..at + floor(&self.text[at..], MOST_OBJECT)];
        let blank = |at: usize| text.len() - text[at..].trim_start().len();
        let mut at = blank(at + 1);
        let mut fields = Vec::new();
        loop {
            if text[at..].starts_with('}') {
                return Some((fields, at + 1));
            }
            let key_end = at + string_end(&text[at..])?;
            let key = &text[at + 1..key_end - 1];
            at = blank(key_end);
            let start = blank(at + text[at..].strip_prefix(':').map(|_| 1)?);
            at = self.value_end(text, start, deep)?;
            fields.push(Loose { key, start, end: at });
            at = blank(at);
            if text[at..].starts_with(',') {
                at = blank(at + 1);
            }
        }
    }

    fn value_end(&self, text: &str, start: usize, deep: usize) -> Option<usize> {
        let rest = &text[start..];
        match rest.chars().next()? {
            '"' => string_end(rest).map(|end| start + end),
            '{' if rest[1..].trim_start().starts_with(['"', '}']) => {
                self.fields_within(start, deep.checked_sub(1)?).map(|(_, end)| end)
            }
            '[' => rest.find(']').map(|end| start + end + 1),
            // Words: up to the next field or the end of the object, not over signs that belong to no words.
            _ => {
                let rest = &rest[..floor(rest, MOST_BETWEEN)];
                let end = rest.char_indices().find(|(at, sign)| {
                    (*sign == ',' && rest[at + 1..].trim_start().starts_with('"'))
                        || (*sign == '}' && !closes_brace(rest, *at))
                });
                end.map(|(at, _)| start + rest[..at].trim_end().len())
            }
        }
    }

    /// An object with a name and arguments.
    fn object(&self, at: usize) -> Option<Core> {
        let (fields, end) = self.fields(at)?;
        let inner =
            fields.iter().find(|field| self.text[field.start..].starts_with('{') && !is_of_arguments(field.key));
        let inside = inner.and_then(|field| self.fields(field.start)).map(|(fields, _)| fields).unwrap_or_default();
        let all: Vec<&Loose> = fields.iter().chain(&inside).collect();
        let value = |field: &Loose| &self.text[field.start..field.end];
        let is_text = |field: &&&Loose| !value(field).starts_with(['{', '[']) || is_placeholder(value(field));
        let name = all.iter().filter(is_text).find(|field| has_word(field.key, &["name"]));
        let name = name.or_else(|| {
            all.iter().filter(is_text).find(|field| has_word(field.key, &["function", "tool", "action"]))
        })?;
        let arguments = all
            .iter()
            .find(|field| is_of_arguments(field.key) && field.key != name.key && (!value(field).starts_with('[')))?;
        let id = all.iter().filter(is_text).find(|field| has_word(field.key, &["id"]));
        let is_text_of_object = value(arguments).starts_with('"') && value(arguments).contains('{');
        let given = if is_text_of_object { ArgumentSyntax::JsonText } else { ArgumentSyntax::Json };
        let mut spans: Vec<(usize, usize, Vec<Piece>)> = vec![
            (name.start, name.end, quote_piece(Piece::Name)),
            (arguments.start, arguments.end, vec![Piece::Arguments(given)]),
        ];
        spans.extend(id.map(|id| (id.start, id.end, quote_piece(Piece::Id))));
        Some(Core { start: at, end, pieces: self.replace_spans(at, end, spans) })
    }

    /// An object whose one key says that it is a name.
    fn name_as_key(&self, at: usize) -> Option<Core> {
        let (fields, end) = self.fields(at)?;
        let [field] = &fields[..] else { return None };
        let is_name = has_word(field.key, &["name"]) && self.text[field.start..].starts_with('{');
        let key = self.text[at..].find('"')? + at;
        let spans = vec![
            (key, key + field.key.len() + 2, quote_piece(Piece::Name)),
            (field.start, field.end, vec![Piece::Arguments(ArgumentSyntax::Json)]),
        ];
        is_name.then(|| Core { start: at, end, pieces: self.replace_spans(at, end, spans) })
    }

    /// The text between two places, with pieces instead of some of it.
    fn replace_spans(&self, start: usize, end: usize, mut spans: Vec<(usize, usize, Vec<Piece>)>) -> Vec<Piece> {
        spans.sort_by_key(|(start, ..)| *start);
        let (mut at, mut pieces) = (start, Vec::new());
        for (from, to, piece) in spans {
            push_text(&mut pieces, &self.text[at..from]);
            pieces.extend(piece);
            at = to;
        }
        push_text(&mut pieces, &self.text[at..end]);
        pieces
    }

    /// Returns the positions of words for arguments in the syntax of a placeholder.
    fn placeholders(&self) -> impl Iterator<Item = usize> + '_ {
        let said = self.segments.iter().filter(|(_, segment)| is_placeholder(segment.text()));
        said.filter(|(_, segment)| is_of_arguments(segment.text())).map(|(at, _)| *at)
    }

    /// A name, and then a JSON object.
    fn json(&self, at: usize) -> Option<Core> {
        let end = if let Some((_, end)) = self.fields(at) {
            end
        } else {
            let close = if self.text[at..].starts_with('{') { '}' } else { '>' };
            let end = at + self.text[at..].find(close)? + 1;
            let word = &self.text[at..end];
            (is_placeholder(word) && is_of_arguments(word)).then_some(end)?
        };
        let (start, mut pieces) = self.name_before(at)?;
        pieces.push(Piece::Arguments(ArgumentSyntax::Json));
        Some(Core { start, end, pieces })
    }

    fn marker(&self, number: usize) -> Option<&'a str> {
        match self.segments.get(number)?.1 {
            Segment::Marker(marker) => Some(marker),
            Segment::Text(_) => None,
        }
    }

    fn piece(&self, number: usize) -> Option<&'a str> {
        match self.segments.get(number)?.1 {
            Segment::Text(text) => Some(text),
            Segment::Marker(_) => None,
        }
    }

    /// Returns the end of a segment, including the white space after it if a marker follows.
    fn end_of(&self, number: usize) -> usize {
        let (at, segment) = self.segments[number];
        let end = at + segment.text().len();
        match self.piece(number + 1).filter(|text| text.trim().is_empty() && !text.contains("\n\n")) {
            Some(text) if self.marker(number + 2).is_some() => end + text.len(),
            _ => end,
        }
    }

    /// A name, and then keys and values between tags: `<w=KEY>VALUE</w>`, `<k>KEY</k><v>VALUE</v>`.
    fn find_tagged(&self, number: usize) -> Option<Core> {
        let (at, _) = self.segments[number];
        let tag = self.marker(number)?;
        if let Some((from, to)) = slot(tag) {
            let value = self.piece(number + 1)?;
            let close = self.marker(number + 2).filter(|close| ends(tag, close))?;
            if value.trim().is_empty()
                || value.trim().starts_with('{') && self.fields(self.place(value, '{')?).is_some()
            {
                return None;
            }
            return self.core_of_tags(at, &tag[..from], &tag[to..], value, close, number + 2);
        }
        self.piece(number + 1).filter(|key| !key.trim().is_empty())?;
        let key_end = self.marker(number + 2).filter(|close| ends(tag, close))?;
        let space = self.piece(number + 3).filter(|space| space.trim().is_empty());
        let next = number + 3 + usize::from(space.is_some());
        let opens = self.marker(next).filter(|opens| has_word(opens, &["value", "val", "v"]))?;
        let value = self.piece(next + 1)?;
        let close = self.marker(next + 2).filter(|close| ends(opens, close))?;
        let between = format!("{key_end}{}{opens}", space.unwrap_or_default());
        self.core_of_tags(at, tag, &between, value, close, next + 2)
    }

    /// Returns the position of a sign in this part of the text.
    fn place(&self, part: &str, sign: char) -> Option<usize> {
        let from = part.as_ptr() as usize - self.text.as_ptr() as usize;
        Some(from + part.find(sign)?)
    }

    fn core_of_tags(&self, at: usize, key: &str, between: &str, value: &str, close: &str, last: usize) -> Option<Core> {
        let (start, mut pieces) = self.name_before_tags(at)?;
        let end = self.end_of(last);
        let close_at = self.segments[last].0;
        let lead = &value[..value.len() - value.trim_start().len()];
        let trail = &value[value.trim_end().len()..];
        let given = ArgumentSyntax::Tagged {
            key: key.to_owned(),
            value: format!("{}{lead}", between.replace("true|false", "true")),
            end: format!("{trail}{close}{}", &self.text[close_at + close.len()..end]),
        };
        pieces.push(Piece::Arguments(given));
        Some(Core { start, end, pieces })
    }

    /// A name, and then elements named as the keys.
    fn element(&self, number: usize) -> Option<Core> {
        let (at, _) = self.segments[number];
        let tag = self.marker(number)?;
        let word = tag.strip_prefix('<')?.strip_suffix('>').filter(|word| is_word(word))?;
        let value = self.piece(number + 1).filter(|value| !value.contains(['{', '\n']))?;
        let close = self.marker(number + 2).filter(|close| *close == format!("</{word}>"))?;
        if value.trim().is_empty()
            || has_word(word, &["name"]) && !has_word(word, &["key", "param", "parameter", "arg"])
        {
            return None;
        }
        let (start, mut pieces) = self.name_before_tags(at)?;
        let end = self.end_of(number + 2);
        let close_at = self.segments[number + 2].0;
        pieces.push(Piece::Arguments(ArgumentSyntax::Elements {
            after: self.text[close_at + close.len()..end].to_owned(),
        }));
        Some(Core { start, end, pieces })
    }

    /// Reads a call of the form `NAME(key='value')`.
    fn keywords(&self, at: usize) -> Option<Core> {
        let (start, mut pieces) = self.name_before(at).filter(|(_, pieces)| pieces.len() == 1)?;
        let rest = &self.text[at + 1..];
        let key = rest.len() - rest.trim_start_matches(is_sign_of_word).len();
        let value = rest[key..].strip_prefix('=').filter(|_| key > 0)?;
        let end = rest[..floor(rest, MOST_BETWEEN)].rfind(')').filter(|&end| end > key);
        let end = at + 1 + end?;
        // Up to the first bracket that no quote holds.
        let mut inside = None;
        let end = self.text[at..=end].char_indices().find(|(_, sign)| match (inside, *sign) {
            (None, ')') => true,
            (None, '"' | '\'') => {
                inside = Some(*sign);
                false
            }
            (Some(quote), sign) if quote == sign => {
                inside = None;
                false
            }
            _ => false,
        });
        let end = at + end?.0 + 1;
        let quote = value.chars().next().filter(|sign| matches!(sign, '"' | '\'')).unwrap_or('"');
        pieces.extend([
            Piece::Text("(".into()),
            Piece::Arguments(ArgumentSyntax::Keywords { quote }),
            Piece::Text(")".into()),
        ]);
        Some(Core { start, end, pieces })
    }

    /// `NAME{key:<q>value<q>}`.
    fn pairs(&self, at: usize) -> Option<Core> {
        let rest = &self.text[at + 1..];
        let key = rest.len() - rest.trim_start_matches(is_sign_of_word).len();
        let value = rest[key..].strip_prefix(':').filter(|_| key > 0)?;
        let quote = value.split(|sign: char| sign.is_alphanumeric()).next()?;
        let quote = match segments(value).first()? {
            Segment::Marker(marker) => marker,
            Segment::Text(_) => quote,
        };
        let value = &value[..floor(value, MOST_OBJECT)];
        let again = value.get(quote.len()..)?.find(quote).filter(|_| !quote.trim().is_empty() && *quote != *"\"")?;
        let value_end = quote.len() + again + quote.len();
        let end = value[value_end..].find('}').filter(|&end| end < MOST_BETWEEN)?;
        let end = at + 1 + key + 1 + value_end + end + 1;
        let (start, mut pieces) = self.name_before(at)?;
        let given = ArgumentSyntax::Pairs { quote: quote.to_owned() };
        push_text(&mut pieces, "{");
        pieces.extend([Piece::Arguments(given), Piece::Text("}".into())]);
        Some(Core { start, end, pieces })
    }

    /// The name before arguments that are tags: more than a blank stands between.
    fn name_before_tags(&self, at: usize) -> Option<(usize, Vec<Piece>)> {
        let apart = |piece: &Piece| matches!(piece, Piece::Text(text) if *text == *" ");
        self.name_before(at).filter(|(_, pieces)| !pieces.last().is_some_and(apart))
    }

    /// The last segment that begins before a place.
    pub(super) fn segment_before(&self, at: usize) -> Option<usize> {
        self.segments.partition_point(|(from, _)| *from < at).checked_sub(1)
    }

    /// The name before arguments: where it or the tag around it begins, and the pieces up to the arguments.
    fn name_before(&self, at: usize) -> Option<(usize, Vec<Piece>)> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut has_id = false;
        let first = self.segment_before(at)?;
        let mut until = at;
        for number in (0..=first).rev() {
            let (from, segment) = self.segments[number];
            let text = &self.text[from..until];
            if at - from > MOST_BETWEEN && segment.text().len() < MOST_BETWEEN {
                return None;
            }
            let found = match segment {
                Segment::Marker(marker) if is_placeholder(marker) => Some((from, from + marker.len())),
                Segment::Marker(marker) => slot(marker).map(|(start, end)| (from + start, from + end)),
                Segment::Text(_) => last_word(text).map(|(start, end)| (from + start, from + end)),
            };
            let Some((start, end)) = found else {
                if text.contains("\n\n") || (matches!(segment, Segment::Text(_)) && has_letters(text)) {
                    return None;
                }
                prepend_text(&mut pieces, text);
                until = from;
                continue;
            };
            let mut rest = &self.text[end..until];
            if let Some(after) = number_after(rest) {
                prepend_text(&mut pieces, &rest[after..]);
                pieces.insert(0, Piece::Index);
                rest = &rest[..1];
            }
            prepend_text(&mut pieces, rest);
            let is_id = has_word(&self.text[start..end], &["id"]) && !has_id;
            pieces.insert(0, if is_id { Piece::Id } else { Piece::Name });
            let begin = match segment {
                Segment::Marker(_) => from,
                Segment::Text(_) => start,
            };
            if begin < start {
                prepend_text(&mut pieces, &self.text[begin..start]);
            }
            if !is_id {
                return Some((begin, pieces));
            }
            has_id = true;
            until = begin;
        }
        None
    }
}
