//! Parsers that have read a text: few of them, moved to the texts that are asked about.
//!
//! A parser of llguidance changes as it reads. It can go back by bytes and be copied. States are texts; for each that
//! is asked about, the parser is taken that has the most of it already. So one walk never reads its text again, and
//! walks that part cost one copy.

use crate::compiled::Shared;
use crate::guard::caught;
use crate::path::Path;
use crate::vocab::Vocab;
use llguidance::earley::{BiasComputer, Parser, ParserRecognizer};
use llguidance::toktrie::{Recognizer, SimpleVob, TokTrie};
use std::sync::Arc;
use trie_core::TokenId;
use trie_rules::{Spelling, TokenBytes};

/// States that a lexer may have before all parsers are made anew.
pub(crate) const LEXER_STATES: usize = 200_000;
/// Tokens within which a parser that only has to go on is taken, without a look at what the others share.
const NEAR: usize = 64;
/// Bytes that are read with the fuel of one mask: llguidance gives its lexer fuel for each mask, not for what is read.
pub(crate) const PIECE: usize = 64;
/// Masks between two looks at it: it goes through all that the lexer holds.
const BETWEEN_LOOKS: u32 = 256;

/// What parsers are made of, how many, and how many bytes their lexer may have grown by, as it counts them, before all
/// are made anew.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) compiled: Shared,
    pub(crate) tokens: Arc<TokenBytes>,
    pub(crate) vocab: Arc<Vocab>,
    pub(crate) most: usize,
    pub(crate) lexer_bytes: usize,
}

pub(crate) struct Pool {
    source: Source,
    /// Has read nothing, and shares the lexer of those that have, where there are any.
    origin: Option<Parser>,
    /// All share one lexer, which remembers what it found.
    live: Vec<Live>,
    clock: u64,
    /// The parser that was asked last.
    last: usize,
    until_look: u32,
    words: Vec<u32>,
    /// Bytes that were read since a mask.
    read: usize,
    /// How often texts were read again from the start, and parsers copied. For tests.
    pub(crate) copies: usize,
}

struct Live {
    parser: Parser,
    at: Arc<Path>,
    used: u64,
}

/// What may come, as bits, and whether a text ends here.
pub(crate) struct Answer<'a> {
    pub(crate) words: &'a [u32],
    pub(crate) ends: bool,
}

impl Pool {
    /// With the first parser, where it was made already.
    pub(crate) fn new(source: Source, first: Option<Parser>) -> Self {
        let words = vec![0; source.tokens.n_vocab().div_ceil(32)];
        let (live, until_look) = (Vec::new(), BETWEEN_LOOKS);
        Self { source, origin: first, live, clock: 0, last: 0, until_look, words, read: 0, copies: 0 }
    }

    /// What may come after a text.
    pub(crate) fn next(&mut self, at: &Arc<Path>) -> Result<Answer<'_>, String> {
        let ends = self.twice(|pool| pool.mask(at))?;
        Ok(Answer { words: &self.words, ends })
    }

    /// Whether these bytes may come after a text.
    pub(crate) fn allows(&mut self, at: &Arc<Path>, bytes: &[u8]) -> Result<bool, String> {
        self.twice(|pool| {
            pool.read += bytes.len();
            let fuel = pool.read >= PIECE;
            if fuel {
                pool.read = 0;
            }
            let vocab = Arc::clone(&pool.source.vocab);
            let parser = &mut pool.reach(at)?.parser;
            if fuel {
                refuel(parser, &vocab);
            }
            let allowed = goes_on(parser, bytes);
            healthy(parser).map(|()| allowed)
        })
    }

    /// The first of the tokenizer's tokens of the bytes that must come after a text, if it is certain.
    pub(crate) fn forced(&mut self, at: &Arc<Path>, spelling: &Spelling) -> Result<Option<TokenId>, String> {
        self.twice(|pool| {
            // It reads ahead, and is thrown away.
            let mut parser = pool.reach(at)?.parser.clone();
            let bytes = parser.force_bytes().to_vec();
            healthy(&parser)?;
            let token = spelling.certain_token(&bytes, false, &mut |rest| goes_on(&mut parser, rest));
            healthy(&parser).map(|()| token)
        })
    }

    /// What failed is done once more with new parsers: a lexer may only have been full, and after a panic none of those
    /// that share it can be used.
    fn twice<T>(&mut self, run: impl Fn(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let again = |pool: &mut Self| caught(|| run(pool).map_err(anyhow::Error::msg));
        again(self).or_else(|_| {
            self.clear();
            let done = again(self);
            if done.is_err() {
                self.clear();
            }
            done
        })
    }

    fn mask(&mut self, at: &Arc<Path>) -> Result<bool, String> {
        let vocab = Arc::clone(&self.source.vocab);
        let tokens = Arc::clone(&self.source.tokens);
        let live = self.reach(at)?;
        let found = live.parser.compute_bias(&*vocab.factory.slicer(), &[]);
        healthy(&live.parser)?;
        let long = vocab.long.iter().filter(|&&token| goes_on(&mut live.parser, tokens.bytes(token)));
        let long: Vec<TokenId> = long.copied().collect();
        let ends = live.parser.is_accepting();
        healthy(&live.parser)?;
        self.until_look -= 1;
        let full = self.until_look == 0 && {
            self.until_look = BETWEEN_LOOKS;
            let stats = self.live[self.last].parser.lexer_stats();
            stats.num_bytes > self.source.lexer_bytes || stats.num_states > LEXER_STATES
        };
        let words = self.words.len();
        self.words.copy_from_slice(&found.as_slice()[..words]);
        if let (tail @ 1.., Some(last)) = (tokens.n_vocab() % 32, self.words.last_mut()) {
            *last &= (1 << tail) - 1;
        }
        for token in long {
            self.words[token.index() / 32] |= 1 << (token.index() % 32);
        }
        if full {
            self.clear();
        }
        Ok(ends)
    }

    /// A parser that has read just this text.
    fn reach(&mut self, at: &Arc<Path>) -> Result<&mut Live, String> {
        let nth = self.nearest(at)?;
        let found = &self.live[nth];
        let shared = Path::shared(&found.at, at, u64::MAX).unwrap_or_else(Path::start);
        let mut back = (found.at.key.bytes - shared.key.bytes) as usize;
        let nth = match back {
            0 => nth,
            // One that has read nothing is smaller.
            _ if shared.last.is_none() => {
                back = 0;
                let fresh = self.fresh()?;
                self.place(nth, fresh)
            }
            _ => {
                let copy = self.live[nth].copy();
                self.place(nth, copy)
            }
        };
        self.clock += 1;
        self.last = nth;
        let live = &mut self.live[nth];
        live.used = self.clock;
        // Until all of it is done, it stands nowhere.
        let done = move_to(live, back, &shared, at, &self.source.tokens, &self.source.vocab);
        if let Err(problem) = done {
            self.live.swap_remove(nth);
            return Err(problem);
        }
        Ok(&mut self.live[nth])
    }

    /// The parser with the fewest bytes left to read.
    fn nearest(&mut self, at: &Arc<Path>) -> Result<usize, String> {
        if self.live.is_empty() {
            let fresh = self.fresh()?;
            self.live.push(fresh);
        }
        // Mostly one stands a token or a few before.
        for before in Path::back(at).take(NEAR) {
            if let Some(nth) = self.live.iter().position(|live| live.at.key == before.key) {
                return Ok(nth);
            }
        }
        let (mut best, mut left) = (0, u64::MAX);
        for (nth, live) in self.live.iter().enumerate() {
            let Some(shared) = Path::shared(&live.at, at, left) else { continue };
            let (to_read, back) = (at.key.bytes - shared.key.bytes, live.at.key.bytes - shared.key.bytes);
            if to_read < left || back == 0 {
                (best, left) = (nth, to_read);
            }
            if to_read == 0 && back == 0 {
                break;
            }
        }
        Ok(best)
    }

    /// One that has read nothing. It shares the lexer of the others, if there are any.
    fn fresh(&mut self) -> Result<Live, String> {
        let origin = match self.origin.take() {
            Some(origin) => origin,
            None => self.source.compiled.parser(&self.source.vocab)?,
        };
        let parser = origin.clone();
        self.origin = Some(origin);
        Ok(Live { parser, at: Path::start(), used: 0 })
    }

    /// All parsers go, and with them the lexer that they share.
    fn clear(&mut self) {
        self.live.clear();
        self.origin = None;
    }

    /// A place for what came from parser `nth`: where there are enough, that of the one that was not used for longest.
    fn place(&mut self, nth: usize, live: Live) -> usize {
        self.copies += 1;
        if self.live.len() < self.source.most {
            self.live.push(live);
            return self.live.len() - 1;
        }
        let oldest = (0..self.live.len()).min_by_key(|&nth| self.live[nth].used).unwrap_or(nth);
        self.live[oldest] = live;
        oldest
    }
}

impl Live {
    fn copy(&self) -> Self {
        Self { parser: self.parser.clone(), at: Arc::clone(&self.at), used: self.used }
    }
}

/// Looks at no token.
struct NoMask<'v>(&'v Vocab);

impl BiasComputer for NoMask<'_> {
    fn compute_bias(&self, _parser: &mut ParserRecognizer<'_>, _start: &[u8]) -> SimpleVob {
        self.trie().alloc_token_set()
    }

    fn trie(&self) -> &TokTrie {
        self.0.factory.tok_env().tok_trie()
    }
}

/// Gives the lexer fuel again, as for a mask.
pub(crate) fn refuel(parser: &mut Parser, vocab: &Vocab) {
    // With a beginning it is not kept as the mask of this place.
    let _ = parser.compute_bias(&NoMask(vocab), b" ");
}

fn move_to(
    live: &mut Live,
    back: usize,
    shared: &Arc<Path>,
    to: &Arc<Path>,
    tokens: &TokenBytes,
    vocab: &Vocab,
) -> Result<(), String> {
    if back > 0 {
        live.parser.rollback(back).map_err(|error| error.to_string())?;
        // Its last mask is known by its row and lexer state, which another text that is as long may have, too.
        live.parser.invalidate_bias_cache();
    }
    let mut read = 0;
    for token in shared.tokens_to(to) {
        read += tokens.bytes(token).len();
        if read >= PIECE {
            refuel(&mut live.parser, vocab);
            read = 0;
        }
        let taken_back =
            live.parser.apply_token(tokens.bytes(token), vocab.no_token).map_err(|error| error.to_string())?;
        if taken_back > 0 {
            return Err("the grammar takes text back".to_owned());
        }
    }
    live.at = Arc::clone(to);
    healthy(&live.parser)
}

fn goes_on(parser: &mut Parser, bytes: &[u8]) -> bool {
    parser.with_recognizer(|recognizer| {
        recognizer.trie_started("tokentrie");
        let legal = bytes.iter().all(|&byte| recognizer.try_push_byte(byte));
        recognizer.trie_finished();
        legal
    })
}

pub(crate) fn healthy(parser: &Parser) -> Result<(), String> {
    parser.get_error().map_or(Ok(()), |error| Err(error.message()))
}
