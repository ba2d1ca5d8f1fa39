//! Documents over the tokens of a vocabulary: text in strings is not walked, and names are not kept while it is.

use super::Place;
use crate::schema::JsonSchema;
use crate::shape::lock;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use trie_core::TokenId;
use trie_rules::{LazyWalk, Rule, TokenBytes, Walker};

/// The schema as walks ask it. Their places have no names that the schema does not say, lest each beginning of one is a
/// state of its own, and a length that is far from its bounds is one like all others.
#[derive(Debug)]
struct Forgetful(JsonSchema);

impl Rule for Forgetful {
    type State = Place;

    fn start(&self) -> Place {
        self.0.start()
    }

    fn step(&self, state: &Place, byte: u8) -> Option<Place> {
        self.0.step(state, byte)
    }

    fn is_end(&self, state: &Place) -> bool {
        self.0.is_end(state)
    }

    fn failing(&self) -> bool {
        self.0.failing()
    }
}

pub(crate) struct DocumentWalk {
    schema: JsonSchema,
    tokens: Arc<TokenBytes>,
    lazy: LazyWalk<Forgetful>,
    quotes: Arc<Quotes>,
}

/// What of a vocabulary may end a name.
struct Quotes {
    /// Tokens with a quote, by their bytes.
    all: Vec<TokenId>,
    /// Of them those with a backslash before it.
    escaped: Vec<TokenId>,
    /// Bytes of the longest token.
    longest: u32,
}

/// Those of vocabularies that were asked for last.
static KNOWN: Mutex<Vec<(Weak<TokenBytes>, Arc<Quotes>)>> = Mutex::new(Vec::new());

impl Quotes {
    fn of(tokens: &Arc<TokenBytes>) -> Arc<Self> {
        let is_own = |of: &Weak<TokenBytes>| std::ptr::eq(of.as_ptr(), Arc::as_ptr(tokens));
        if let Some((_, known)) = lock(&KNOWN).iter().find(|(of, _)| is_own(of)) {
            return Arc::clone(known);
        }
        let quote = |bytes: &[u8]| bytes.iter().position(|&byte| byte == b'"');
        let has_quote = |token: &TokenId| quote(tokens.bytes(*token)).is_some();
        let mut all: Vec<TokenId> = TokenId::all(tokens.n_vocab()).filter(has_quote).collect();
        all.sort_unstable_by(|&one, &other| tokens.bytes(one).cmp(tokens.bytes(other)));
        let is_escaped = |token: &TokenId| {
            let bytes = tokens.bytes(*token);
            bytes[..quote(bytes).unwrap_or(0)].contains(&b'\\')
        };
        let escaped = all.iter().copied().filter(is_escaped).collect();
        let longest = TokenId::all(tokens.n_vocab()).map(|token| tokens.bytes(token).len()).max().unwrap_or(0) as u32;
        let made = Arc::new(Self { all, escaped, longest });
        let mut known = lock(&KNOWN);
        known.retain(|(of, _)| of.strong_count() > 0);
        known.push((Arc::downgrade(tokens), Arc::clone(&made)));
        made
    }
}

impl fmt::Debug for DocumentWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentWalk").finish_non_exhaustive()
    }
}

impl DocumentWalk {
    pub(crate) fn new(schema: &JsonSchema, tokens: &Arc<TokenBytes>) -> Self {
        let lazy = LazyWalk::new(Arc::new(Forgetful(schema.clone())), Arc::clone(tokens));
        Self { schema: schema.clone(), tokens: Arc::clone(tokens), lazy, quotes: Quotes::of(tokens) }
    }

    /// Asks the schema itself for a token.
    fn ask(&self, place: &Place, token: TokenId, words: &mut [u32]) {
        let mut bytes = self.tokens.bytes(token).iter();
        let first = bytes.next().and_then(|&byte| self.schema.step(place, byte));
        let is_legal = first.and_then(|first| bytes.try_fold(first, |at, &byte| self.schema.step(&at, byte))).is_some();
        let (word, bit) = (&mut words[token.index() / 32], 1 << (token.index() % 32));
        *word = if is_legal { *word | bit } else { *word & !bit };
    }
}

impl Walker<Place> for DocumentWalk {
    fn tokens(&self, place: &Place, words: &mut [u32]) {
        let forgotten = place.forgetting(self.quotes.longest);
        let state = forgotten.as_ref().unwrap_or(place);
        if state.is_free(LazyWalk::<Forgetful>::FREE_CHARS) {
            self.lazy.tokens_in_text(state, words);
        } else {
            self.lazy.tokens(state, words);
        }
        // A name that must not come is whole where a quote ends it.
        let rests = place.rests_of_names();
        for rest in &rests {
            let begins = |token: &TokenId| self.tokens.bytes(*token) < &rest[..];
            let from = self.quotes.all.partition_point(begins);
            let with = |token: &&TokenId| self.tokens.bytes(**token).starts_with(rest);
            for &token in self.quotes.all[from..].iter().take_while(with) {
                self.ask(place, token, words);
            }
        }
        if !rests.is_empty() {
            self.quotes.escaped.iter().for_each(|&token| self.ask(place, token, words));
        }
    }

    fn nbytes(&self) -> usize {
        self.lazy.nbytes()
    }

    fn limit(&self, bytes: usize) {
        self.lazy.limit(bytes);
    }

    fn forget(&self) {
        self.lazy.forget();
    }
}
