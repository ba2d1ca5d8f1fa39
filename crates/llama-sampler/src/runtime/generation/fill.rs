//! Filling a form: literals are forced text, slots are walked as constraints, free text is sampled until its stop.

use super::ahead::select;
use super::free_text::FreeText;
use super::generated::GenerateStats;
use super::{Generation, chain};
use crate::runtime::context::Context;
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{
    Allowed, ChooseOptions, Constraint, Ending, Leaf, LeafId, Mode, Role, Sampler, SamplerError, SamplerOptions,
    Scratch, TokenId, Trie,
};
use trie_text::{Form, Part, SlotSet, SlotValues, Written};

/// How to fill a form.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct FillOptions {
    /// How a token is chosen among the allowed ones. Each slot and text draws from its own seed: this one plus its
    /// number.
    pub sampling: SamplerOptions,
    /// Whether to take of each slot the most probable value as a whole, instead of walking token by token.
    pub exact: bool,
    /// Whether to give the probability of every value of every slot, after what stands before it.
    pub probabilities: bool,
}

impl FillOptions {
    /// With [`FillOptions::sampling`].
    #[must_use]
    pub fn with_sampling(self, sampling: SamplerOptions) -> Self {
        Self { sampling, ..self }
    }

    /// With [`FillOptions::exact`].
    #[must_use]
    pub fn with_exact(self, exact: bool) -> Self {
        Self { exact, ..self }
    }

    /// With [`FillOptions::probabilities`].
    #[must_use]
    pub fn with_probabilities(self, probabilities: bool) -> Self {
        Self { probabilities, ..self }
    }
}

/// A slot or text that was filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the form.
    pub name: String,
    /// The value that was chosen, or the text that was written.
    pub value: String,
    /// The value's number; `None` for text, and where the values are no set.
    pub index: Option<usize>,
    /// Probability of each value of a slot among them, if it was asked for; where the values are no set, in the order
    /// of [`SlotSet::values`].
    pub probabilities: Option<Vec<f64>>,
}

/// A form that was filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// Slots and texts in their order.
    pub values: Vec<Field>,
    /// The whole text, literals included, without what a first slot spells again of the prompt.
    pub text: String,
    /// Its tokens, which follow the prompt without what the first slot spells again.
    pub tokens: Vec<TokenId>,
    /// Whether these are the tokens that the tokenizer writes for this text. Sets of tokens, and free text that ends
    /// inside a token, can have others.
    pub canonical: bool,
    /// Whether the watcher stopped it: then only the first slots and texts have values.
    pub stopped: bool,
    /// What it took.
    pub stats: GenerateStats,
}

impl Context {
    /// Fills a form after `prompt`. A slot whose set begins inside the text before it
    /// ([`Trie::heal_bytes`]) spells the end of that literal again, or, where it is the beginning of the form, the end
    /// of the prompt.
    ///
    /// # Errors
    /// As [`Context::generate`], and what the vocabulary cannot spell.
    pub fn fill(
        &mut self,
        prompt: &[TokenId],
        form: &Form,
        options: &FillOptions,
        watch: &mut dyn Watch,
    ) -> Result<Filled, RuntimeError> {
        options.sampling.draw.check()?;
        let mut generation = Generation::before(self, prompt, form.begins_with(), watch)?;
        let seed = chain::seed_of(&options.sampling);
        generation.stats.seed = if options.sampling.mode == Mode::Sampled { seed } else { 0 };
        let text = match form.begins_with() {
            Some(set) if set.heal_bytes() > 0 => generation.vocab.healed_text(set, prompt)?,
            _ => form.literal(0).to_owned(),
        };
        let mut filler = Filler { form, options, generation, seed, text, bytes: 0, carried: None, values: Vec::new() };
        let mut parts = form.parts().iter().enumerate();
        match parts.try_for_each(|(index, part)| filler.part(index, part)).and_then(|()| filler.write_rest()) {
            Err(RuntimeError::Stopped { .. }) => filler.stopped(),
            ended => ended.and_then(|()| filler.finish()),
        }
    }
}

/// A form on its way.
pub(super) struct Filler<'r, 'f> {
    pub(super) form: &'f Form,
    options: &'f FillOptions,
    pub(super) generation: Generation<'r>,
    seed: u32,
    /// The text up to the next slot or text: written, and what must follow.
    pub(super) text: String,
    /// Bytes of it that are written.
    bytes: usize,
    /// A token that the model chose beyond a value's end, where others go on.
    carried: Option<TokenId>,
    pub(super) values: Vec<Field>,
}

impl Filler<'_, '_> {
    fn part(&mut self, index: usize, part: &Part) -> Result<(), RuntimeError> {
        match part {
            // Written with what stands before it, because tokens may cross the boundary.
            Part::Literal(_) => Ok(()),
            Part::Slot { name, values: SlotValues::Rule(_) } if !self.options.exact && !self.options.probabilities => {
                self.rule(index, name, None)
            }
            Part::Slot { name, values } => self.slot(index, name, values),
            Part::Text { name, pattern: Some(_), max_tokens, .. } => self.rule(index, name, Some(*max_tokens)),
            Part::Held { name, constraint, max_tokens } => self.held(index, name, constraint, *max_tokens),
            Part::Text { name, stop, max_tokens, .. } => self.free(index, name, stop, *max_tokens),
        }
    }

    pub(super) fn written(&self) -> Written {
        Written { text: self.text.clone(), rest: self.text.len() - self.bytes, tokens: self.generation.tokens.clone() }
    }

    pub(super) fn sampling(&self) -> SamplerOptions {
        let seed = Some(self.seed.wrapping_add(self.values.len() as u32));
        SamplerOptions { seed, ..self.options.sampling }
    }

    fn length(&self, token: TokenId) -> usize {
        self.generation.vocab.piece(token).map_or(0, <[u8]>::len)
    }

    fn write_forced(&mut self, token: TokenId, depth: usize) -> Result<(), RuntimeError> {
        if self.carried.take() == Some(token) {
            // The model chose it, when it ended the value before.
            self.write_chosen(token, depth);
        } else {
            self.generation.write_forced(token, depth)?;
            self.bytes += self.length(token);
        }
        Ok(())
    }

    pub(super) fn write_chosen(&mut self, token: TokenId, depth: usize) {
        self.generation.write(token, false, depth, true);
        self.bytes += self.length(token);
    }

    pub(super) fn write_rest(&mut self) -> Result<(), RuntimeError> {
        let rest = self.written().rest_tokens(&self.generation.vocab)?;
        rest.into_iter().try_for_each(|token| self.write_forced(token, 0))
    }

    fn slot(&mut self, index: usize, name: &str, values: &SlotValues) -> Result<(), RuntimeError> {
        let set = self.form.set(index, &self.written(), &self.generation.vocab)?;
        let chosen = self.choose(&set)?;
        for &token in &set.lead {
            self.write_forced(token, 0)?;
        }
        let leaves = match &chosen {
            Some((leaf, _)) if self.options.exact => self.write_leaf(&set, *leaf)?,
            _ => self.walk(&set)?,
        };
        let number = set.trie().and_then(|_| leaves.last()).map(|leaf| set.order[leaf.index.index()]);
        let value = match (values, number) {
            (SlotValues::Texts(values), Some(number)) => values[number].clone(),
            // Its texts were listed, and each leaf has its text for a name.
            (SlotValues::Rule(_), Some(_)) => leaves.last().and_then(|leaf| leaf.name.clone()).unwrap_or_default(),
            (SlotValues::Texts(_) | SlotValues::Rule(_), None) => return Err(RuntimeError::DamagedSet),
            (SlotValues::Tokens(constraint), _) => {
                let tokens: Vec<TokenId> = leaves.iter().flat_map(|leaf| leaf.tokens.iter().copied()).collect();
                let healed = constraint.first_set().map_or(0, Trie::heal_bytes);
                let bytes = self.generation.vocab.join(&tokens)?;
                String::from_utf8_lossy(bytes.get(healed..).unwrap_or_default()).into_owned()
            }
        };
        self.text.push_str(&value);
        self.text.push_str(self.form.literal(index + 1));
        let probabilities = chosen.filter(|_| self.options.probabilities).map(|(_, shares)| shares);
        // A set of tokens is called by its names.
        let names: Option<String> = leaves.into_iter().map(|leaf| leaf.name).collect();
        self.values.push(Field { name: name.to_owned(), value: names.unwrap_or(value), index: number, probabilities });
        Ok(())
    }

    /// The most probable value and all probabilities, where they are wanted.
    fn choose(&mut self, set: &SlotSet) -> Result<Option<(LeafId, Vec<f64>)>, RuntimeError> {
        if !self.options.exact && !self.options.probabilities {
            return Ok(None);
        }
        let prompt = [self.generation.prompt, &self.generation.tokens, &set.lead].concat();
        let options = ChooseOptions::new().with_end_tokens(set.rules.end_tokens());
        let choice = self.generation.context.choose(&prompt, set.values()?.clone(), &options, self.generation.watch)?;
        self.generation.stats.tokens_decoded += choice.stats.tokens_decoded;
        let mut shares = choice.probabilities();
        // Values that are listed are numbered as they are there.
        for (&index, share) in set.order.iter().zip(shares.clone()) {
            shares[index] = share;
        }
        Ok(choice.ranking.first().map(|&best| (best, shares)))
    }

    /// Writes a value that was chosen as a whole.
    fn write_leaf(&mut self, set: &SlotSet, leaf: LeafId) -> Result<Vec<Leaf>, RuntimeError> {
        let mut scratch = Scratch::default();
        let mut state = set.rules.start();
        let leaf = set.values()?.leaf(leaf).ok_or(RuntimeError::DamagedSet)?;
        for &token in &leaf.tokens {
            let depth = state.depth();
            if set.rules.forced(&state, &mut scratch) == Some(token) {
                self.write_forced(token, depth)?;
            } else {
                self.write_chosen(token, depth);
            }
            set.rules.advance(&mut state, token).ok_or(RuntimeError::DamagedSet)?;
        }
        Ok(vec![leaf])
    }

    /// Walks the values token by token.
    fn walk(&mut self, set: &SlotSet) -> Result<Vec<Leaf>, RuntimeError> {
        let mut sampler = Sampler::new(Arc::clone(&set.rules), self.sampling())?;
        let mut scratch = Scratch::default();
        while sampler.span().ending() != Ending::Must && self.step(&mut sampler, &mut scratch)?.is_some() {}
        self.generation.stats.starved += sampler.starved();
        let span = sampler.span();
        let leaves = span.constraint().values(span.state().position(), true);
        if leaves.is_empty() { Err(RuntimeError::DamagedSet) } else { Ok(leaves) }
    }

    /// Writes one token more of a slot: the forced one, or the model's choice. `None` where that ends the value: it
    /// stands in the text after it, and is written with that.
    pub(super) fn step(
        &mut self,
        sampler: &mut Sampler,
        scratch: &mut Scratch,
    ) -> Result<Option<TokenId>, RuntimeError> {
        if let Some(token) = self.step_forced(sampler, scratch)? {
            return Ok(Some(token));
        }
        let depth = sampler.span().depth();
        let token = self.select(sampler, scratch, |role| role == Role::Value)?;
        if sampler.span_mut().accept(token).map_err(SamplerError::from)? != Role::Value {
            self.carried = Some(token);
            return Ok(None);
        }
        self.write_chosen(token, depth);
        Ok(Some(token))
    }

    /// Writes the token that must come, if one must.
    pub(super) fn step_forced(
        &mut self,
        sampler: &mut Sampler,
        scratch: &mut Scratch,
    ) -> Result<Option<TokenId>, RuntimeError> {
        let depth = sampler.span().depth();
        let Some(token) = sampler.span().forced_token(scratch) else { return Ok(None) };
        sampler.accept_forced(token).map_err(SamplerError::from)?;
        self.write_forced(token, depth)?;
        Ok(Some(token))
    }

    /// The model's choice, or the one that it made before, where its role here `fits`. Nothing is written.
    pub(super) fn select(
        &mut self,
        sampler: &mut Sampler,
        scratch: &mut Scratch,
        fits: impl Fn(Role) -> bool,
    ) -> Result<TokenId, RuntimeError> {
        let goes_on = |token: &TokenId| sampler.span().role_of(*token).is_some_and(&fits);
        if let Some(token) = self.carried.take().filter(goes_on) {
            return Ok(token);
        }
        self.generation.ready()?;
        self.generation.consider(&sampler.span().allowed(scratch), None)?;
        let started = Instant::now();
        let token = sampler.sample(self.generation.context.logits()?)?;
        self.generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        Ok(token)
    }

    fn free(&mut self, index: usize, name: &str, stop: &str, max_tokens: usize) -> Result<(), RuntimeError> {
        self.write_rest()?;
        let vocab = Arc::clone(&self.generation.vocab);
        let allowed = self.form.text_tokens(index, &vocab);
        let mut chain = chain::build(None, &self.sampling())?.sampler;
        let begin = self.generation.tokens.len();
        let mut free = FreeText::new(stop);
        let mut length = None;
        self.generation.tentative = true;
        while length.is_none() && self.generation.tokens.len() - begin < max_tokens {
            let carried = self.carried.take().filter(|token| allowed.binary_search(token).is_ok());
            let token = if let Some(token) = carried {
                token
            } else {
                self.generation.ready()?;
                self.generation.consider(&Allowed::All, None)?;
                let started = Instant::now();
                let (token, _) = select(&mut chain, self.generation.context.logits()?, allowed.iter().copied())?;
                self.generation.stats.sample_seconds += started.elapsed().as_secs_f64();
                token
            };
            if vocab.is_end_of_generation(token) {
                break;
            }
            chain.accept(llama_cpp_2::token::LlamaToken(token.as_i32()));
            self.generation.write(token, false, free.bytes.len(), true);
            length = free.push(vocab.piece(token).unwrap_or_default());
            self.generation.settle(begin + free.certain);
        }
        self.generation.tentative = false;
        let value = free.value(length);
        self.keep(begin, 0, &format!("{value}{}", self.form.literal(index + 1)));
        self.values.push(Field { name: name.to_owned(), value, index: None, probabilities: None });
        Ok(())
    }

    /// Goes on by a text, of which some is written in the tokens from `begin` on, after `rest` bytes of the text before
    /// it. What they spell beyond it is taken back.
    pub(super) fn keep(&mut self, begin: usize, rest: usize, ahead: &str) {
        self.text.push_str(ahead);
        let from = self.text.len() - ahead.len() - rest;
        let ahead = &self.text.as_bytes()[from..];
        let (mut spelled, mut kept) = (0, begin);
        while let Some(piece) = self.generation.tokens.get(kept).and_then(|&token| self.generation.vocab.piece(token)) {
            if !ahead[spelled..].starts_with(piece) {
                break;
            }
            spelled += piece.len();
            kept += 1;
        }
        self.generation.take_back(kept);
        self.generation.settle(kept);
        self.bytes = from + spelled;
    }

    fn finish(mut self) -> Result<Filled, RuntimeError> {
        let canonical =
            self.generation.vocab.tokenize_inside(&self.text).is_some_and(|tokens| tokens == self.generation.tokens);
        let (tokens, _, stats) = self.generation.finish()?;
        let text = self.text.split_off(stats.healed_bytes);
        Ok(Filled { values: self.values, text, tokens, canonical, stopped: false, stats })
    }

    /// As far as it came.
    fn stopped(self) -> Result<Filled, RuntimeError> {
        let (tokens, text, stats) = self.generation.finish()?;
        Ok(Filled { values: self.values, text, tokens, canonical: false, stopped: true, stats })
    }
}
