//! Identity of a calibration's questions.

use crate::decide::balance::balanced_sequence;
use crate::decide::options::ListOrder;
use crate::decide::options::{Decide, Prior};
use crate::decide::prompt::{
    Listing, branch_lines, canonical_order, example_turns, filling, lists_branches, messages, orders, read_texts,
    spell, without_content,
};
use crate::decide::question::Question;
use llama_sampler::model_digest;
use lru::LruCache;
use sha2::{Digest, Sha256};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;
use trie_core::work::LimitExceeded;
use trie_text::hexadecimal;

/// A file as it was when it was read.
type FileStamp = (PathBuf, u64, Option<SystemTime>);

/// Returns the fingerprint of a model file, in hexadecimal: [`model_digest`]. The fingerprint of an unchanged file is
/// cached, because reading the file takes as long as a short decision.
///
/// # Errors
/// The file cannot be read.
pub fn model_fingerprint(path: &Path) -> io::Result<String> {
    const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);
    static KNOWN: LazyLock<Mutex<LruCache<FileStamp, String>>> = LazyLock::new(|| Mutex::new(LruCache::new(KEPT)));
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let metadata = path.metadata()?;
    let seen = (path.to_owned(), metadata.len(), metadata.modified().ok());
    if let Some(fingerprint) = known().get(&seen) {
        return Ok(fingerprint.clone());
    }
    let fingerprint = hexadecimal(&model_digest(path)?);
    known().put(seen, fingerprint.clone());
    Ok(fingerprint)
}

/// Returns the fingerprint of a question: a hash of its prompts for a state without content in each order, the texts
/// that are scored, and the prior.
pub(super) fn of_question(question: &Question, options: &Decide) -> Result<String, LimitExceeded> {
    let mut hash = Sha256::new();
    let mut say = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    say(match options.prior {
        Prior::Nothing => "none",
        Prior::ContentFree => "content-free",
        Prior::Batch => "batch",
    });
    say(options.end.name());
    say(options.prefix.as_deref().unwrap_or("the model's own"));
    let texts = question.kind.texts();
    let is_independent = options.order == ListOrder::Independent && lists_branches(question, options);
    if options.order != ListOrder::Given {
        say(options.order.name());
        say(&options.order_confidence.to_string());
    }
    let listings = if is_independent {
        // Their order changes nothing but the sequence of the probabilities, which a calibration is about.
        let lines = branch_lines(question)?;
        canonical_order(question).into_iter().for_each(|option| say(&lines[option]));
        vec![Listing::Branches]
    } else {
        let all = if options.order == ListOrder::Balanced {
            balanced_sequence(question, texts.len(), options)
        } else {
            orders(question, texts.len(), options)
        };
        all.into_iter().map(Listing::Ordered).collect()
    };
    for listing in listings {
        let plain: Vec<usize> = (0..texts.len()).collect();
        let order = if let Listing::Ordered(order) = &listing { order } else { &plain };
        let read = read_texts(question, &texts, options.readout, order);
        let filled = filling(question, &texts, &read, options, &listing)?;
        let examples = if is_independent {
            let unlisted = filling(question, &texts, &read, options, &Listing::Unlisted)?;
            example_turns(question, &read, &unlisted, options)
        } else {
            example_turns(question, &read, &filled, options)
        };
        let filling = filled;
        for message in messages(&without_content(), &filling, &examples, options) {
            say(&message.to_string());
        }
        for text in &*spell(read, options).texts {
            say(text);
        }
    }
    Ok(hexadecimal(&hash.finalize()))
}
