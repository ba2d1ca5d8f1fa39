//! The tokens of a vocabulary as llguidance wants them: built once for each vocabulary, shared by all that walk it.

use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use trie_core::TokenId;
use trie_rules::TokenBytes;

/// More bytes in one token than llguidance's trie counts.
const LONGEST: usize = 1000;
/// What llguidance reads as the beginning of a special token. It is no byte of any UTF-8 text.
const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
/// Ids that its trie can hold.
const MOST: usize = 0x00ff_ffff;

/// A vocabulary, ready for parsers.
pub(crate) struct Vocab {
    pub(crate) factory: ParserFactory,
    /// Tokens that are longer than its trie can hold: looked at one by one.
    pub(crate) long: Vec<TokenId>,
    /// An id after all others: what is read with it is never taken for a special token.
    pub(crate) no_token: u32,
}

impl Vocab {
    /// That of these tokens: the one made before, while their vocabulary lives.
    pub(crate) fn of(tokens: &Arc<TokenBytes>) -> Result<Arc<Self>, String> {
        static KNOWN: Mutex<Vec<(Weak<TokenBytes>, Arc<Vocab>)>> = Mutex::new(Vec::new());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |known: &[(Weak<TokenBytes>, Arc<Self>)]| {
            let same = known.iter().find(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(tokens)));
            same.map(|(_, vocab)| Arc::clone(vocab))
        };
        if let Some(vocab) = find(&known()) {
            return Ok(vocab);
        }
        // Not under the lock: it takes a tenth of a second. Two threads may make it at once; one of them is kept.
        let made = Arc::new(Self::new(tokens)?);
        let mut known = known();
        known.retain(|(of, _)| of.strong_count() > 0);
        if let Some(vocab) = find(&known) {
            return Ok(vocab);
        }
        known.push((Arc::downgrade(tokens), Arc::clone(&made)));
        Ok(made)
    }

    pub(crate) fn new(tokens: &TokenBytes) -> Result<Self, String> {
        let n_vocab = tokens.n_vocab();
        if n_vocab >= MOST {
            return Err(format!("a vocabulary of {n_vocab} tokens; at most {} are taken", MOST - 1));
        }
        let mut long = Vec::new();
        let mut words: Vec<Vec<u8>> = TokenId::all(n_vocab)
            .map(|token| match tokens.bytes(token) {
                bytes if bytes.contains(&MARKER) => Vec::new(),
                bytes if bytes.len() > LONGEST => {
                    long.push(token);
                    Vec::new()
                }
                bytes => bytes.to_vec(),
            })
            .collect();
        // The end of generation is the business of whoever walks the constraint; this one has no bytes and never comes.
        words.push(Vec::new());
        let no_token = n_vocab as u32;
        crate::guard::caught(move || {
            let info = TokRxInfo::new(no_token + 1, no_token);
            // Not canonical: any tokenisation of a legal text is legal, and nothing is forced as tokens.
            let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
            let slices = SlicedBiasComputer::general_slices();
            let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)?;
            factory.quiet();
            Ok(Self { factory, long, no_token })
        })
    }
}
