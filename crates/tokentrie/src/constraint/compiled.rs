//! Compiled specs: the rule of a spec, and its built constraint for each vocabulary.

use super::build::{Built, Over, Spans};
use super::error::SpecError;
use super::object::Object;
use super::{Host, Part, Spec};
use crate::json::MOST_DEPTH;
use crate::json::place::Place;
use lru::LruCache;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use trie_core::SequenceError;
use trie_core::work::{Limits, Work};
use trie_rules::{AnyRule, MaskLimits, MaskStats, Regular, Rule, Value};
use trie_text::{Form, Vocab};

type Result<T> = std::result::Result<T, SpecError>;

/// For how many vocabularies a spec keeps what was built.
const VOCABULARIES: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// A spec with its compiled rule, and with its built constraints for the vocabularies used last.
///
/// Constraints can share it ([`Object::Compiled`]), so that it is compiled once. It compares by its data.
#[derive(Debug)]
pub struct CompiledSpec {
    /// As it was given, with names.
    written: Spec,
    /// Without names and files.
    spec: Spec,
    rule: OnceLock<Option<MadeRule>>,
    /// Form that was compiled without a vocabulary.
    form: OnceLock<Arc<Form>>,
    /// By the address of the vocabulary, which its entry keeps, or by the size alone.
    built: Mutex<LruCache<(usize, usize), Entry>>,
    /// `true` if building it again gives the same.
    is_fixed: bool,
}

#[derive(Debug)]
struct Entry {
    built: Built,
    _vocab: Option<Arc<Vocab>>,
}

/// A compiled rule, with facts about it.
#[derive(Debug, Clone)]
pub struct MadeRule {
    /// Rule of the constraint.
    pub rule: Arc<dyn AnyRule>,
    /// The rule as a finite automaton, if it is one.
    pub regular: Option<Regular>,
    /// Facts about the rule.
    pub facts: Arc<RuleFacts>,
}

/// Facts about a rule that was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleFacts {
    /// States of the automaton, of the parser of an LR(1) grammar, or of a grammar in GBNF.
    pub states: Option<usize>,
    /// States of the automaton that reads the terminals of a grammar.
    pub lexer_states: Option<usize>,
    /// The most digits of a number: before the point, after it, and of the exponent.
    pub digits: Option<[u32; 3]>,
    /// Terminals of an LR(1) grammar, as they were written.
    pub terminals: Vec<String>,
    /// JSON pointers and keywords of a schema that are not enforced.
    pub unheld: Vec<(String, String)>,
}

/// Transition table of an automaton: for each state, whether a text may end there, and the targets of bytes.
pub type ByteTable = Vec<(bool, Vec<ByteRanges>)>;

/// Ranges of bytes, first and last included, and the number of the state that they lead to.
pub type ByteRanges = (Vec<(u8, u8)>, usize);

impl MadeRule {
    pub(super) fn new(rule: impl AnyRule + 'static, facts: RuleFacts) -> Self {
        Self { rule: Arc::new(rule), regular: None, facts: Arc::new(facts) }
    }

    /// Returns the range of each item in a text of a repetition: see [`Regular::items`].
    pub fn items(&self, text: &[u8]) -> Option<Vec<std::ops::Range<usize>>> {
        self.regular.as_ref()?.items(text)
    }

    /// Returns the transition table of the automaton, from state 0 on: for each state, whether a text may end there,
    /// and the targets of bytes. `None` for a rule that is not a single automaton. `O(256 · states)`.
    pub fn table(&self) -> Option<ByteTable> {
        let trie_rules::Machine::Automaton(automaton) = self.regular.as_ref()?.machine() else { return None };
        let start = automaton.start();
        let (mut numbers, mut order, mut rows) = (HashMap::from([(start, 0)]), vec![start], Vec::new());
        while let Some(state) = order.get(rows.len()).copied() {
            let mut ways: Vec<ByteRanges> = Vec::new();
            for byte in 0..=255 {
                let Some(after) = automaton.step(&state, byte) else { continue };
                let to = *numbers.entry(after).or_insert_with(|| {
                    order.push(after);
                    order.len() - 1
                });
                match ways.iter_mut().find(|(_, known)| *known == to) {
                    Some((ranges, _)) => match ranges.last_mut() {
                        Some((_, last)) if *last + 1 == byte => *last = byte,
                        _ => ranges.push((byte, byte)),
                    },
                    None => ways.push((vec![(byte, byte)], to)),
                }
            }
            rows.push((automaton.is_end(&state), ways));
        }
        Some(rows)
    }
}

impl From<Arc<dyn AnyRule>> for MadeRule {
    fn from(rule: Arc<dyn AnyRule>) -> Self {
        Self { rule, regular: None, facts: Arc::default() }
    }
}

impl From<Regular> for MadeRule {
    fn from(regular: Regular) -> Self {
        let states = match regular.machine() {
            trie_rules::Machine::Automaton(automaton) => Some(automaton.states()),
            _ => None,
        };
        let facts = RuleFacts { states, ..RuleFacts::default() };
        Self { rule: regular.any(), regular: Some(regular), facts: Arc::new(facts) }
    }
}

impl CompiledSpec {
    /// Takes a spec, and resolves its names and files with the host. Nothing is compiled yet.
    ///
    /// # Errors
    /// As [`Spec::resolve`].
    pub fn new(written: Spec, host: &dyn Host) -> Result<Self> {
        let spec = written.resolve(host)?;
        let is_fixed = spec.is_fixed();
        Ok(Self {
            written,
            spec,
            rule: OnceLock::new(),
            form: OnceLock::new(),
            built: Mutex::new(LruCache::new(VOCABULARIES)),
            is_fixed,
        })
    }

    /// Returns the spec as it was given.
    pub fn original(&self) -> &Spec {
        &self.written
    }

    /// Returns the spec without names and files.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the rule of the spec, which is compiled on first use; `None` if its values are not the texts of a rule.
    ///
    /// # Errors
    /// As [`Spec::rule`].
    pub fn made_rule(&self, host: &dyn Host) -> Result<Option<&MadeRule>> {
        self.made_at(&Place::ROOT, host, MOST_DEPTH)
    }

    /// Compiles and checks the parts that need no vocabulary: a rule, a form, the order of a sequence.
    ///
    /// # Errors
    /// As [`Spec::build`].
    pub fn make(&self, host: &dyn Host) -> Result<()> {
        if let Spec::Sequence(parts) = &self.spec {
            return sequence_problem(parts).map_or(Ok(()), |error| Err(SpecError::new(&Place::ROOT, error)));
        }
        if matches!(self.spec, Spec::Form(_))
            && let Built::Form(form) = self.spec.build(&Over::size(MOST_TOKENS), host)?
        {
            // Whoever was first made the same.
            let _ = self.form.set(form);
        }
        self.made_rule(host).map(|_| ())
    }

    pub(super) fn made_at(&self, place: &Place<'_>, host: &dyn Host, deeper: usize) -> Result<Option<&MadeRule>> {
        if let Some(made) = self.rule.get() {
            return Ok(made.as_ref());
        }
        let made = self.spec.made_at(place, host, deeper)?;
        Ok(self.rule.get_or_init(|| made).as_ref())
    }

    pub(super) fn regular_at(&self, place: &Place<'_>, host: &dyn Host, deeper: usize) -> Result<Regular> {
        match self.made_at(place, host, deeper)?.and_then(|made| made.regular.clone()) {
            Some(regular) => Ok(regular),
            None => self.spec.regular(place, host, deeper),
        }
    }

    /// Returns the value of a text, as [`Spec::value`] does.
    ///
    /// # Errors
    /// As [`Spec::value`].
    pub fn value(&self, text: &str, host: &dyn Host) -> Result<Option<Value>> {
        let regular = self.made_rule(host)?.and_then(|made| made.regular.as_ref());
        Ok(regular.and_then(|regular| regular.value(text.as_bytes())))
    }

    /// Builds the spec as [`Spec::build`] does, once for each vocabulary.
    ///
    /// # Errors
    /// As [`Spec::build`]; errors are not kept.
    pub fn build(&self, over: &Over<'_>, host: &dyn Host) -> Result<Built> {
        self.build_at(&Place::ROOT, over, host, MOST_DEPTH)
    }

    /// Returns constraints as [`Spec::constraint`] does, from what was built once.
    ///
    /// # Errors
    /// As [`Spec::constraint`].
    pub fn constraint(&self, over: &Over<'_>, host: &dyn Host) -> Result<Spans> {
        self.build(over, host)?.spans(over, host)
    }

    pub(super) fn build_at(&self, place: &Place<'_>, over: &Over<'_>, host: &dyn Host, deeper: usize) -> Result<Built> {
        let key = (over.vocab.map_or(0, |vocab| Arc::as_ptr(vocab) as usize), over.n_vocab);
        // Only whole entries are behind this lock, and nothing is locked while a host is asked.
        if let Some(entry) = self.entries().get(&key) {
            return Ok(entry.built.clone());
        }
        if let Some(form) = self.form.get() {
            self.check_replies(place, over)?;
            return Ok(Built::Form(Arc::clone(form)));
        }
        let built = match self.made_at(place, host, deeper)? {
            Some(made) => {
                let vocab = over.need(self.spec.kind(), "the bytes of each token");
                let vocab = vocab.map_err(|problem| SpecError::new(place, problem))?;
                // Of a rule that was made within its limits this is the first mask.
                let limits = Limits::default().seconds(20.0).steps(u64::MAX);
                let spelled = Work::new(limits).run(|| made.rule.compile_for(vocab.spelling(), MaskLimits::default()));
                Built::Rule(spelled.map_err(|error| SpecError::new(place, error))?)
            }
            None => self.spec.build_at(place, over, host, deeper)?,
        };
        if self.is_fixed {
            let entry = Entry { built: built.clone(), _vocab: over.vocab.cloned() };
            self.entries().put(key, entry);
        }
        Ok(built)
    }

    /// Checks that a form over this vocabulary has no constraint that a host made for another vocabulary.
    fn check_replies(&self, place: &Place<'_>, over: &Over<'_>) -> Result<()> {
        let (Spec::Form(parts), Some(vocab)) = (&self.spec, over.vocab) else { return Ok(()) };
        for part in parts {
            if let Part::Text { name, pattern: Some(Spec::Object(Object::Constraint(reply))), .. } = part {
                reply.check(name, vocab).map_err(|problem| SpecError::new(place, problem))?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, LruCache<(usize, usize), Entry>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the statistics of its mask cache for a vocabulary; zeros if it was not built for that vocabulary.
    pub fn stats(&self, vocab: &Arc<Vocab>) -> MaskStats {
        let key = (Arc::as_ptr(vocab) as usize, vocab.len());
        match self.entries().peek(&key).map(|entry| &entry.built) {
            Some(Built::Rule(spelled)) => spelled.stats(),
            _ => MaskStats::default(),
        }
    }
}

/// Size of the largest possible vocabulary. What is built for this size fits every vocabulary.
pub const MOST_TOKENS: usize = 1 << 31;

/// Checks the order of a sequence, as far as possible without a vocabulary.
fn sequence_problem(parts: &[Spec]) -> Option<SequenceError> {
    fn plain(spec: &Spec) -> &Spec {
        match spec {
            Spec::Object(Object::Compiled(compiled)) => plain(&compiled.spec),
            other => other,
        }
    }
    let healed = |part: &Spec| matches!(plain(part), Spec::Object(Object::Set(set)) if set.heal_bytes() > 0);
    let Some(last) = parts.len().checked_sub(1) else { return Some(SequenceError::NoParts) };
    if let Some(part) = parts[..last].iter().position(|part| *plain(part) == Spec::Any) {
        return Some(SequenceError::NeverEnds { part, parts: parts.len() });
    }
    parts.iter().skip(1).position(healed).map(|part| SequenceError::Healed { part: part + 1 })
}

impl PartialEq for CompiledSpec {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.spec.data() == other.spec.data()
    }
}

impl Eq for CompiledSpec {}

impl Hash for CompiledSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.spec.data().hash(state);
    }
}

impl Spec {
    /// Returns whether a host gives the same for it each time: what it makes for each vocabulary may change.
    fn is_fixed(&self) -> bool {
        match self {
            Self::Object(Object::Constraint(_)) => return false,
            Self::Object(Object::Compiled(compiled)) => return compiled.is_fixed,
            _ => {}
        }
        let mut is_fixed = true;
        // The walk is one that changes what it finds; what is cloned is shared.
        let walked = self.clone().for_each_inside(&Place::ROOT, &mut |_, inside| {
            is_fixed &= inside.is_fixed();
            Ok(())
        });
        walked.is_ok() && is_fixed
    }
}
