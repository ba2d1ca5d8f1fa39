//! Regular sets of texts: the meaning of JSON Schema's patterns and formats.

mod alphabet;
mod char_set;
pub(crate) mod formats;
mod kinds;
mod looking;
mod machine;
mod nfa;
mod of_bytes;
mod raw;
mod syntax;

pub use formats::TextFormat;
pub use kinds::{CharKinds, CharRun};
pub use machine::{TextMachine, TextState};

use crate::automaton::regex::RegexError;
use crate::automaton::table::DEAD;
use crate::automaton::{AutomatonError, AutomatonLimits};
use alphabet::{Alphabet, Utf8};
use char_set::CharSet;
use kinds::{KindGroups, Levels};
use lru::{DefaultHasher, LruCache};
use nfa::Nfa;
use raw::Raw;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use trie_core::work::{Limits, Work, spend};

/// A regular set of texts, each a sequence of Unicode characters. It is a minimal automaton over classes of characters,
/// so that sets of the same texts compare equal. It may be empty. A clone costs one reference count.
///
/// ```
/// use trie_rules::TextSet;
///
/// let words = TextSet::pattern(r"^\w+$")?;
/// let both = words.and(&TextSet::pattern(r"(?<!\d)\d$")?.complement())?;
/// assert!(both.is_match("a12") && both.is_match("a") && !both.is_match("a1") && !both.is_match("é"));
/// assert_eq!(both.and(&both.complement())?, TextSet::none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TextSet(Arc<Characters>);

/// Automaton whose input are characters, not bytes.
struct Characters {
    alphabet: Alphabet,
    raw: Raw,
    utf8: OnceLock<Utf8>,
    kinds: OnceLock<KindGroups>,
    /// States to which texts of some kinds lead from a state: found as far as somebody asked.
    levels: Mutex<HashMap<u32, Arc<Levels>>>,
}

impl PartialEq for TextSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.raw == other.0.raw && self.0.alphabet == other.0.alphabet)
    }
}

impl Eq for TextSet {}

impl Hash for TextSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.raw.hash(state);
        self.0.alphabet.hash(state);
    }
}

impl fmt::Debug for TextSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextSet").field("states", &self.states()).field("classes", &self.0.raw.width).finish()
    }
}

impl TextSet {
    fn new(alphabet: &Alphabet, raw: Raw) -> Self {
        let (alphabet, raw) = raw.canonical(alphabet);
        let (utf8, kinds, levels) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self(Arc::new(Characters { alphabet, raw, utf8, kinds, levels }))
    }

    /// Returns the set of all texts.
    pub fn full() -> Self {
        Self::new(&Alphabet::one(), Raw { next: vec![0], ends: vec![true], width: 1 })
    }

    /// Returns the empty set.
    pub fn none() -> Self {
        Self::new(&Alphabet::one(), Raw { next: Vec::new(), ends: Vec::new(), width: 1 })
    }

    /// Returns the texts in which a pattern matches anywhere, as in JSON Schema: a pattern of ECMA-262 with the flag
    /// `u`.
    ///
    /// Look-ahead, look-behind and `\b` are supported. Beyond the standard, unneeded escapes of punctuation are
    /// accepted, and so are single `]`, `{` and `}`, `(?i)` at the beginning and `(?i:…)`.
    ///
    /// ```
    /// use trie_rules::TextSet;
    /// let password = TextSet::pattern(r"^(?=.*\d)(?=.*\p{Lu}).{8,}$")?;
    /// assert!(password.is_match("Ärger4711") && !password.is_match("ärger4711"));
    /// # Ok::<(), trie_rules::RegexError>(())
    /// ```
    ///
    /// # Errors
    /// A pattern that is not valid, or has a back reference; an automaton that is too large, or too much work.
    pub fn pattern(pattern: &str) -> Result<Self, RegexError> {
        /// Sets of patterns that are kept, the last ones used: many schemas of a process have the same patterns, and
        /// what walks find out about a set stays with it.
        static KNOWN: Mutex<Option<LruCache<Box<str>, TextSet>>> = Mutex::new(None);
        const MOST: NonZeroUsize = NonZeroUsize::new(64).unwrap();
        const MOST_BYTES: usize = 64 << 10;
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().as_mut().and_then(|known| known.get(pattern)) {
            return Ok(known.clone());
        }
        let made = Self::pattern_with(pattern, AutomatonLimits::default())?;
        if pattern.len() + made.nbytes() <= MOST_BYTES {
            lock().get_or_insert_with(|| LruCache::sparse(MOST)).put(pattern.into(), made.clone());
        }
        Ok(made)
    }

    /// [`TextSet::pattern`] with other limits. The set is not kept.
    ///
    /// # Errors
    /// As [`TextSet::pattern`].
    pub fn pattern_with(pattern: &str, limits: AutomatonLimits) -> Result<Self, RegexError> {
        const SHOWN: usize = 200;
        // A character of a pattern takes so much memory.
        const BYTE: usize = 100;
        let named = || pattern.chars().take(SHOWN).collect::<String>();
        let automaton = |problem| RegexError::Automaton { pattern: named(), problem };
        if pattern.len() > limits.bytes / BYTE {
            return Err(automaton(AutomatonError::TooLarge { limit: limits.bytes }));
        }
        Work::run_bounded(Limits::default(), || {
            let node = syntax::parse(pattern).map_err(|problem| {
                let syntax::Problem { position, text: problem, is_unsupported } = problem;
                let pattern = pattern.to_owned();
                if is_unsupported {
                    RegexError::Unsupported { pattern, position, problem }
                } else {
                    RegexError::Syntax { pattern, position, problem }
                }
            })?;
            Self::from_node(&node, limits).map_err(automaton)
        })
    }

    fn from_node(node: &syntax::Node, limits: AutomatonLimits) -> Result<Self, AutomatonError> {
        let nfa = Nfa::from_node(node, limits)?;
        let classes = Alphabet::of_sets(&nfa.sets);
        let width = classes.alphabet.width;
        let raw = if nfa.is_plain {
            raw::determinise(&nfa, &classes.of, width, limits)?
        } else {
            let has = |of: &Vec<u32>| (0..width as u32).map(|class| of.contains(&class)).collect();
            looking::determinise(&nfa, classes.of.iter().map(has).collect(), width, limits)?
        };
        Ok(Self::new(&classes.alphabet, raw))
    }

    /// Returns the set of these texts.
    ///
    /// # Errors
    /// An automaton that is too large.
    pub fn one_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, AutomatonError> {
        let limits = AutomatonLimits::default();
        let texts: Vec<&str> = texts.into_iter().collect();
        let mut chars: Vec<u32> = texts.iter().flat_map(|text| text.chars()).map(u32::from).collect();
        chars.sort_unstable();
        chars.dedup();
        let sets: Vec<CharSet> = chars.iter().map(|&char| CharSet::one(char)).collect();
        let alphabet = Alphabet::of_sets(&sets).alphabet;
        let width = alphabet.width;
        let (mut next, mut ends) = (vec![DEAD; width], vec![false]);
        for text in &texts {
            spend(1 + text.len())?;
            let mut state = 0;
            for char in text.chars() {
                let at = state * width + alphabet.class(u32::from(char)) as usize;
                if next[at] == DEAD {
                    if size_of::<u32>() * (next.len() + width) > limits.bytes {
                        return Err(AutomatonError::TooLarge { limit: limits.bytes });
                    }
                    next[at] = ends.len() as u32;
                    ends.push(false);
                    next.resize(next.len() + width, DEAD);
                }
                state = next[at] as usize;
            }
            ends[state] = true;
        }
        Ok(Self::new(&alphabet, Raw { next, ends, width }))
    }

    /// Returns the complement: all texts that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        if self.is_empty() {
            return Self::full();
        }
        let Raw { next, ends, width } = &self.0.raw;
        let all = ends.len() as u32;
        let mut next: Vec<u32> = next.iter().map(|&to| if to == DEAD { all } else { to }).collect();
        next.resize(next.len() + width, all);
        let ends = ends.iter().map(|&end| !end).chain([true]).collect();
        Self::new(&self.0.alphabet, Raw { next, ends, width: *width })
    }

    /// Returns the intersection: the texts in both sets.
    ///
    /// # Errors
    /// An automaton that is too large, or too much work.
    pub fn and(&self, other: &Self) -> Result<Self, AutomatonError> {
        if self == other || other.is_all() || self.is_empty() {
            return Ok(self.clone());
        }
        if self.is_all() || other.is_empty() {
            return Ok(other.clone());
        }
        self.together(other, |one, other| one != DEAD && other != DEAD, |one, other| one && other)
    }

    /// Returns the union: the texts in either set.
    ///
    /// # Errors
    /// As [`TextSet::and`].
    pub fn or(&self, other: &Self) -> Result<Self, AutomatonError> {
        if self == other || other.is_empty() || self.is_all() {
            return Ok(self.clone());
        }
        if self.is_empty() || other.is_all() {
            return Ok(other.clone());
        }
        self.together(other, |one, other| one != DEAD || other != DEAD, |one, other| one || other)
    }

    fn together(
        &self,
        other: &Self,
        goes: impl Fn(u32, u32) -> bool,
        ends_with: impl Fn(bool, bool) -> bool,
    ) -> Result<Self, AutomatonError> {
        const PAIR: usize = 40;
        let limits = AutomatonLimits::default();
        let (alphabet, classes) = self.0.alphabet.with(&other.0.alphabet);
        let mut known = HashMap::<(u32, u32), u32, DefaultHasher>::from_iter([((0, 0), 0)]);
        let mut order = vec![(0, 0)];
        let (mut next, mut ends) = (Vec::new(), Vec::new());
        let step = |raw: &Raw, state: u32, class| if state == DEAD { DEAD } else { raw.step(state, class) };
        let is_end = |raw: &Raw, state: u32| state != DEAD && raw.ends[state as usize];
        let mut at = 0;
        while let Some(&(one, two)) = order.get(at) {
            at += 1;
            spend(classes.len())?;
            ends.push(ends_with(is_end(&self.0.raw, one), is_end(&other.0.raw, two)));
            for &(class, of) in &classes {
                let after = (step(&self.0.raw, one, class), step(&other.0.raw, two, of));
                next.push(if goes(after.0, after.1) {
                    *known.entry(after).or_insert_with(|| {
                        order.push(after);
                        order.len() as u32 - 1
                    })
                } else {
                    DEAD
                });
            }
            if size_of::<u32>() * next.len() + PAIR * order.len() > limits.bytes {
                return Err(AutomatonError::TooLarge { limit: limits.bytes });
            }
        }
        Ok(Self::new(&alphabet, Raw { next, ends, width: classes.len() }))
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.raw.ends.is_empty()
    }

    /// Returns whether it holds every text.
    pub fn is_all(&self) -> bool {
        self.0.raw.ends == [true] && self.0.raw.next == [0]
    }

    /// Returns the number of states of its automaton.
    pub fn states(&self) -> usize {
        self.0.raw.ends.len()
    }

    /// Returns the approximate number of bytes held.
    pub fn nbytes(&self) -> usize {
        size_of::<u32>() * self.0.raw.next.len() + self.0.raw.ends.len()
    }

    /// Returns whether a text is in it.
    pub fn is_match(&self, text: &str) -> bool {
        let mut state = if self.is_empty() { DEAD } else { 0 };
        for char in text.chars() {
            if state == DEAD {
                return false;
            }
            state = self.0.raw.step(state, self.0.alphabet.class(u32::from(char)));
        }
        state != DEAD && self.0.raw.ends[state as usize]
    }

    /// Returns a text of the set with the fewest characters; `None` if the set is empty.
    pub fn shortest(&self) -> Option<String> {
        let raw = &self.0.raw;
        let mut from: Vec<Option<(u32, u32)>> = vec![None; raw.ends.len()];
        let mut queue = VecDeque::from_iter((!self.is_empty()).then_some(0u32));
        while let Some(state) = queue.pop_front() {
            if raw.ends[state as usize] {
                let examples = self.0.alphabet.examples();
                let mut chars = Vec::new();
                let mut at = state;
                while at != 0 {
                    let (before, class) = from[at as usize]?;
                    chars.push(examples[class as usize]);
                    at = before;
                }
                return Some(chars.into_iter().rev().collect());
            }
            for (class, &to) in raw.row(state).iter().enumerate() {
                if to != DEAD && to != 0 && from[to as usize].is_none() {
                    from[to as usize] = Some((state, class as u32));
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

impl Characters {
    fn levels(&self, state: u32) -> Arc<Levels> {
        const MOST: usize = 1024;
        let mut known = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        let made = || Arc::new(Levels::new(&self.raw, self.kinds(), state));
        Arc::clone(known.entry(state).or_insert_with(made))
    }

    fn utf8(&self) -> &Utf8 {
        self.utf8.get_or_init(|| Utf8::new(&self.alphabet))
    }

    fn kinds(&self) -> &KindGroups {
        self.kinds.get_or_init(|| KindGroups::new(&self.alphabet))
    }
}
