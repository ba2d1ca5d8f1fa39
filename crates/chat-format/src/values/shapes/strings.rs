//! What a string may be.

use crate::values::shapes::bounded::{Bound, Bounds};
use crate::values::shapes::listed::Listed;
use crate::values::utf8::Utf8;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use trie_rules::{Automaton, Regular, Rule};

/// What a string may be: one of a list, of a pattern, or of a length.
#[derive(Debug, Clone)]
pub(crate) struct TextShape {
    pub(crate) texts: Option<Arc<[Box<str>]>>,
    /// A regular expression of the whole text.
    pub(crate) pattern: Option<Arc<str>>,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) automaton: OnceLock<Automaton>,
    /// Of a pattern. They follow from what it is, and from what can be written.
    pub(crate) bounds: Option<Arc<Bounds>>,
}

/// Where in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TextAt {
    Free,
    Listed(Listed),
    Automaton(u32),
    Bounded(u32, Bound),
    /// So many characters, as far as it matters.
    Count(u32),
}

impl PartialEq for TextShape {
    fn eq(&self, other: &Self) -> bool {
        (&self.texts, &self.pattern, self.min, self.max) == (&other.texts, &other.pattern, other.min, other.max)
    }
}

impl Eq for TextShape {}

impl Hash for TextShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.texts, &self.pattern, self.min, self.max).hash(state);
    }
}

impl TextShape {
    pub(crate) const fn free() -> Self {
        Self { texts: None, pattern: None, min: 0, max: None, automaton: OnceLock::new(), bounds: None }
    }

    /// One of these, in any order.
    pub(crate) fn of(mut texts: Vec<Box<str>>) -> Self {
        trie_core::work::sorting::sort(&mut texts);
        texts.dedup();
        Self { texts: Some(texts.into()), ..Self::free() }
    }

    pub(crate) fn begin(&self) -> TextAt {
        if let Some(texts) = &self.texts {
            TextAt::Listed(Listed::begin(texts.len()))
        } else if self.pattern.is_some() {
            let start = self.automaton().start();
            self.bounds.as_ref().map_or(TextAt::Automaton(start), |_| TextAt::Bounded(start, Bound::default()))
        } else if self.min > 0 || self.max.is_some() {
            TextAt::Count(0)
        } else {
            TextAt::Free
        }
    }

    #[inline]
    pub(crate) fn step(&self, at: TextAt, byte: u8) -> Option<TextAt> {
        match at {
            TextAt::Free => Some(at),
            TextAt::Listed(listed) => {
                let texts = self.texts.as_deref().unwrap_or_default();
                listed.step(byte, |text| texts[text as usize].as_bytes()).map(TextAt::Listed)
            }
            TextAt::Automaton(state) => self.automaton().step(&state, byte).map(TextAt::Automaton),
            TextAt::Bounded(state, bound) => {
                let state = self.automaton().step(&state, byte)?;
                self.bounds.as_ref()?.step(bound, byte, state).map(|bound| TextAt::Bounded(state, bound))
            }
            // Bytes inside of a character are not counted.
            TextAt::Count(_) if byte & 0xc0 == 0x80 => Some(at),
            TextAt::Count(count) => match self.max {
                Some(max) => (count < max).then_some(TextAt::Count(count + 1)),
                None => Some(TextAt::Count((count + 1).min(self.min))),
            },
        }
    }

    pub(crate) fn is_end(&self, at: TextAt) -> bool {
        match at {
            TextAt::Free => true,
            TextAt::Listed(listed) => {
                let texts = self.texts.as_deref().unwrap_or_default();
                listed.whole(|text| texts[text as usize].as_bytes()).is_some()
            }
            TextAt::Automaton(state) => self.automaton().is_end(&state),
            TextAt::Bounded(state, bound) => {
                self.automaton().is_end(&state) && self.bounds.as_ref().is_some_and(|bounds| bounds.is_end(bound))
            }
            TextAt::Count(count) => count >= self.min,
        }
    }

    /// Whether a text is one of it.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let end = text.bytes().try_fold(self.begin(), |at, byte| self.step(at, byte));
        end.is_some_and(|end| self.is_end(end))
    }

    /// How many texts it has that are none of these, up to so many.
    pub(crate) fn count(&self, enough: usize, others: impl Fn(&[u8]) -> bool) -> usize {
        let (mut count, mut open) = (0, vec![(self.begin(), Utf8::WHOLE, Vec::new())]);
        while !open.is_empty() && count < enough {
            let is_one = |(at, utf8, text): &&(_, Utf8, Vec<u8>)| self.is_end(*at) && utf8.is_whole() && !others(text);
            count += open.iter().filter(is_one).count();
            // Each of them can become a text of its own.
            if open.len() > enough {
                return enough;
            }
            let next = open.iter().flat_map(|(at, utf8, text)| {
                (0..=255).filter_map(|byte| {
                    let (at, utf8) = self.step(*at, byte).zip(utf8.step(byte))?;
                    Some((at, utf8, [text, &[byte][..]].concat()))
                })
            });
            open = next.collect();
        }
        count.min(enough)
    }

    pub(crate) fn automaton(&self) -> &Automaton {
        self.automaton.get_or_init(|| automaton_of(self.pattern.as_deref().unwrap_or_default()))
    }
}

/// Of a pattern that is known to make one.
fn automaton_of(pattern: &str) -> Automaton {
    if pattern == DATE
        && let trie_rules::Machine::Automaton(date) = Regular::date().machine()
    {
        return date.clone();
    }
    let any = || trie_rules::Regex::new("(?s:.)*").expect("it is one");
    trie_rules::Regex::new(pattern).unwrap_or_else(|_| any()).automaton().clone()
}

const DATE: &str = "date";

/// The pattern of a format; `None` for those that are not held.
pub(crate) fn format_pattern(format: &str) -> Option<Arc<str>> {
    // Of dates there is an automaton already.
    if format == DATE { Some(DATE.into()) } else { trie_rules::schema::format_pattern(format).map(Arc::from) }
}
