//! Sets of slots: made where they stand, kept, and never behind a lock while the tokenizer works.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;
use trie_core::TokenId;
use trie_text::{Form, FormError, Part, SlotValues, TokenKind, Tokenizer, TokenizerError, Vocab, WrittenTokens};

/// Long enough for threads that may go on, short enough for a test that fails.
const PATIENCE: Duration = Duration::from_secs(10);

fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().filter_map(|byte| TokenId::new(byte.into())).collect()
}

fn vocab(tokenizer: Arc<dyn Tokenizer>) -> Arc<Vocab> {
    Vocab::new((0..=255u8).map(|byte| ([byte], TokenKind::Text)), Vec::new(), Some(tokenizer)).unwrap().into()
}

fn literal(text: &str) -> Part {
    Part::Literal(text.to_owned())
}

fn slot(name: &str, values: &[&str]) -> Part {
    let values = values.iter().map(|&value| value.to_owned()).collect();
    Part::Slot { name: name.to_owned(), values: SlotValues::Texts(values) }
}

/// Where a text is still to be written.
fn before(text: &str) -> WrittenTokens {
    WrittenTokens { text: text.to_owned(), rest: text.len(), tokens: Vec::new() }
}

/// One token a byte.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Tokenizer for Counting {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(bytes(text))
    }
}

#[test]
fn what_stands_around_a_value_is_in_its_tokens() {
    let counting = Arc::new(Counting::default());
    let vocab = vocab(Arc::clone(&counting) as Arc<dyn Tokenizer>);
    let form = Form::new([literal("a=\""), slot("a", &["go", "gone"]), literal("\"")]).unwrap();
    let set = form.set(1, &before("a=\""), &vocab).unwrap();
    let leaves: Vec<_> = set.values().unwrap().leaves().map(|leaf| leaf.tokens).collect();
    assert_eq!(leaves, [bytes("a=\"go"), bytes("a=\"gone")]);
    assert_eq!(set.order, [0, 1]);
    // "go" ends where the quote comes, since "gone" goes on from it.
    assert_eq!(set.rules.end_tokens(), bytes("\""));
    assert!(matches!(form.set(0, &before(""), &vocab), Err(FormError::NoSlot { index: 0 })));

    let asked = counting.0.load(Ordering::Relaxed);
    let again = form.set(1, &before("a=\""), &vocab).unwrap();
    assert!(Arc::ptr_eq(&set, &again));
    assert_eq!(counting.0.load(Ordering::Relaxed), asked, "a set that is kept is not made again");
}

/// Waits, while it tokenizes, until a second thread tokenizes too.
#[derive(Debug, Default)]
struct Meeting {
    open: AtomicBool,
    inside: Mutex<usize>,
    came: Condvar,
    missed: AtomicBool,
}

impl Tokenizer for Meeting {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        if self.open.load(Ordering::Relaxed) {
            let mut inside = self.inside.lock().unwrap();
            *inside += 1;
            self.came.notify_all();
            let met = self.came.wait_timeout_while(inside, PATIENCE, |inside| *inside < 2).unwrap();
            self.missed.fetch_or(met.1.timed_out(), Ordering::Relaxed);
        }
        Ok(bytes(text))
    }
}

#[test]
fn two_threads_tokenize_at_once() {
    let meeting = Arc::new(Meeting::default());
    let vocab = vocab(Arc::clone(&meeting) as Arc<dyn Tokenizer>);
    let form = Form::new([slot("a", &["1", "2"]), literal(";")]).unwrap();
    meeting.open.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        for text in ["x", "y"] {
            let (form, vocab) = (&form, &vocab);
            scope.spawn(move || form.set(0, &before(text), vocab).unwrap());
        }
    });
    assert!(!meeting.missed.load(Ordering::Relaxed), "one thread waited for the other to finish");
}

/// Tokenizes through a thread that needs another set of the same form first.
#[derive(Debug, Default)]
struct Nested {
    house: OnceLock<Arc<(Form, Arc<Vocab>)>>,
    begun: AtomicBool,
    answered: AtomicBool,
}

impl Tokenizer for Nested {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        if let Some(house) = self.house.get().filter(|_| !self.begun.swap(true, Ordering::Relaxed)) {
            let (house, (done, wait)) = (Arc::clone(house), mpsc::channel());
            thread::spawn(move || done.send(house.0.set(0, &before("other"), &house.1).is_ok()));
            self.answered.store(wait.recv_timeout(PATIENCE) == Ok(true), Ordering::Relaxed);
        }
        Ok(bytes(text))
    }
}

#[test]
fn a_tokenizer_may_use_the_form() {
    let nested = Arc::new(Nested::default());
    let vocab = vocab(Arc::clone(&nested) as Arc<dyn Tokenizer>);
    let house = Arc::new((Form::new([slot("a", &["1", "2"]), literal(";")]).unwrap(), vocab));
    nested.house.set(Arc::clone(&house)).unwrap();
    let set = house.0.set(0, &before("one"), &house.1).unwrap();
    assert_eq!(set.values().unwrap().len(), 2);
    assert!(nested.answered.load(Ordering::Relaxed), "the other thread waited for this one");
}
