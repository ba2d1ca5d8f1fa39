//! Filling a form: its constraint is walked as any other, and tokens that say more than a part holds are taken back.

use super::generated::{Field, Finish, GenerateOptions, Generated};
use super::{Generation, chain};
use crate::runtime::context::Context;
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{
    After, Allowed, ChooseOptions, Constraint, Leaf, LeafId, Mode, RowChooser, SamplerError, SamplerOptions, Scratch,
    SpanRules, SpanState, TokenId,
};
use trie_text::{Form, FormConstraint, FormError, FormOptions, FormState, LastToken, Overshoot, SlotSet};

/// The form that these rules are, if nothing follows it and nothing else ends it: it is filled, and free text in it is
/// as the model would write it. Elsewhere it is walked as any constraint.
pub(super) fn form_of(rules: &SpanRules) -> Option<&Arc<Form>> {
    let [(_, constraint)] = rules.constraints() else { return None };
    let alone = rules.after() == After::Stop && rules.end_tokens().is_empty();
    constraint.downcast_ref::<FormConstraint>().filter(|_| alone).map(FormConstraint::form)
}

impl Context {
    /// Fills a form after `prompt`. A slot whose set begins inside the text before it
    /// ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)) spells the end of that literal again, or, where it is the
    /// beginning of the form, the end of the prompt.
    /// The most tokens, and how to skip ahead, do not matter: a form is filled to its end, and only branch points cost
    /// a pass.
    ///
    /// # Errors
    /// As [`Context::generate`], and what the vocabulary cannot spell.
    pub fn fill(
        &mut self,
        prompt: &[TokenId],
        form: &Arc<Form>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        options.sampling.draw.check()?;
        let mut generation = Generation::before(self, prompt, form.begins_with(), watch)?;
        generation.tentative = true;
        if let Some(set) = form.begins_with().filter(|set| set.heal_bytes() > 0) {
            generation.vocab.healed_text(set, prompt)?;
        }
        let seed = chain::seed_of(&options.sampling);
        generation.stats.seed = if options.sampling.mode == Mode::Sampled { seed } else { 0 };
        let walk = FormOptions::default().with_overshoot(Overshoot::TakenBack);
        let walk = walk.with_listed(options.exact || options.probabilities);
        let constraint = FormConstraint::new(Arc::clone(form), &generation.vocab, walk)?;
        let rules = SpanRules::new(vec![(String::new(), constraint)], generation.vocab.len())?;
        let sampling = SamplerOptions { seed: Some(seed), ..options.sampling };
        let filler = Filler {
            at: rules.start(),
            rules,
            options,
            generation,
            chooser: (0, RowChooser::new(sampling)?),
            seed,
            carried: None,
            scores: BTreeMap::new(),
            scratch: Scratch::default(),
        };
        filler.fill()
    }
}

/// A form on its way.
struct Filler<'r, 'f> {
    rules: SpanRules<FormConstraint>,
    at: SpanState<FormState>,
    options: &'f GenerateOptions,
    generation: Generation<'r>,
    /// The number of the field that it chooses for. Each draws from its own seed.
    chooser: (usize, RowChooser),
    seed: u32,
    /// A token that the model chose beyond a value's end, where others go on.
    carried: Option<TokenId>,
    /// The probabilities of the values of slots, by the number of the field.
    scores: BTreeMap<usize, Vec<f64>>,
    scratch: Scratch,
}

impl Filler<'_, '_> {
    fn fill(mut self) -> Result<Generated, RuntimeError> {
        let stopped = match self.run() {
            Err(RuntimeError::Stopped { .. }) => true,
            ended => ended.map(|()| false)?,
        };
        let Self { at, mut generation, chooser, mut scores, .. } = self;
        let filled = at.position();
        generation.stats.starved += chooser.1.starved();
        let canonical = !stopped
            && generation.vocab.tokenize_inside(filled.text()).is_some_and(|tokens| tokens == generation.tokens);
        let (tokens, text, stats) = generation.finish()?;
        let text = if stopped { text } else { filled.text()[stats.healed_bytes..].to_owned() };
        let field = |(number, field): (usize, &trie_text::FilledField)| Field {
            name: field.name.clone(),
            value: field.value.clone(),
            index: field.index,
            probabilities: scores.remove(&number),
            tokens: field.tokens.clone(),
        };
        let fields: Vec<Field> = filled.fields().into_iter().enumerate().map(field).collect();
        let leaf = |field: &Field| Leaf {
            index: LeafId::new(field.index.unwrap_or_default() as u32),
            name: Some(field.value.clone()),
            tokens: field.tokens.clone(),
        };
        let leaves: Vec<Leaf> = fields.iter().map(leaf).collect();
        let leaf = if stopped { None } else { leaves.last().cloned() };
        let value = (!stopped).then(|| text.clone());
        let finish = if stopped { Finish::Stopped } else { Finish::Form };
        let partial_token = Vec::new();
        Ok(Generated {
            tokens,
            text,
            leaf,
            leaves,
            fields,
            value,
            value_tokens: 0,
            partial_token,
            canonical,
            finish,
            stats,
        })
    }

    fn run(&mut self) -> Result<(), RuntimeError> {
        while !self.at.position().is_over() {
            let set = self.at.position().begun_set().filter(|_| self.options.exact || self.options.probabilities);
            match set.map(Arc::clone) {
                Some(set) => {
                    let best = self.choose(&set)?;
                    match best.filter(|_| self.options.exact) {
                        Some(best) => self.write_leaf(&set, best)?,
                        None => self.step()?,
                    }
                }
                None => self.step()?,
            }
            let written = self.at.position().written();
            if written < self.generation.tokens.len() {
                self.generation.take_back(written);
            }
            self.generation.settle(self.at.position().certain());
        }
        Ok(())
    }

    /// Writes the token that must come, or the model's choice.
    fn step(&mut self) -> Result<(), RuntimeError> {
        let at = self.at.position();
        let (depth, before_part, field) = (at.depth(), at.is_before_part(), at.filled());
        if let Some(token) = self.rules.forced(&self.at, &mut self.scratch) {
            self.advance(token)?;
            if !before_part {
                self.chooser(field)?.skip();
            }
            return self.write_forced(token, depth);
        }
        let token = match self.carried.take().filter(|&token| self.goes_on(token)) {
            Some(token) => token,
            None => self.choose_token(field)?,
        };
        self.advance(token)?;
        match self.at.position().last_token() {
            LastToken::Written => self.generation.write(token, false, depth, true),
            LastToken::Ended => self.carried = Some(token),
            LastToken::Dropped => {}
        }
        Ok(())
    }

    /// Whether a token can be written here.
    fn goes_on(&self, token: TokenId) -> bool {
        let step = self.rules.step(&self.at, token);
        step.is_some_and(|step| step.state.position().last_token() != LastToken::Ended)
    }

    /// The model's choice for the field with this number. Nothing is written.
    fn choose_token(&mut self, field: usize) -> Result<TokenId, RuntimeError> {
        self.chooser(field)?;
        let allowed = self.rules.allowed(&self.at, &mut self.scratch);
        if allowed == Allowed::Nothing {
            return Err(self.nothing());
        }
        self.generation.ready()?;
        let shown = if self.at.position().is_free() { Allowed::All } else { allowed };
        self.generation.consider(&shown, None)?;
        let started = Instant::now();
        let row = self.generation.context.logits()?;
        let row = row.get(..self.rules.n_vocab()).ok_or(RuntimeError::NoLogits)?;
        let token = self.chooser.1.choose(row, allowed).ok_or(RuntimeError::NothingSelected)?;
        self.generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        Ok(token)
    }

    fn write_forced(&mut self, token: TokenId, depth: usize) -> Result<(), RuntimeError> {
        if self.carried.take() == Some(token) {
            // The model chose it, when it ended the value before.
            self.generation.write(token, false, depth, true);
            return Ok(());
        }
        self.generation.write_forced(token, depth)
    }

    fn advance(&mut self, token: TokenId) -> Result<(), RuntimeError> {
        let role = self.rules.advance(&mut self.at, token);
        role.map(|_| ()).ok_or(RuntimeError::DamagedSet)
    }

    /// Why nothing may come.
    fn nothing(&self) -> RuntimeError {
        let (constraint, at) = (self.rules.constraint(&self.at), self.at.position());
        let Some(problem) = constraint.problem(at) else { return RuntimeError::DamagedSet };
        match problem.downcast_ref::<FormError>() {
            Some(error) => error.clone().into(),
            None => SamplerError::Problem { path: String::new(), depth: at.depth(), problem }.into(),
        }
    }

    /// Who chooses for the field with this number.
    fn chooser(&mut self, field: usize) -> Result<&mut RowChooser, RuntimeError> {
        if self.chooser.0 != field {
            let seed = Some(self.seed.wrapping_add(field as u32));
            let next = RowChooser::new(SamplerOptions { seed, ..self.options.sampling })?;
            self.generation.stats.starved += std::mem::replace(&mut self.chooser, (field, next)).1.starved();
        }
        Ok(&mut self.chooser.1)
    }

    /// The most probable value of the slot that begins here; its probabilities are kept.
    fn choose(&mut self, set: &SlotSet) -> Result<Option<LeafId>, RuntimeError> {
        let prompt = [self.generation.prompt, &self.generation.tokens].concat();
        let options = ChooseOptions::new().with_end_tokens(set.rules.end_tokens());
        let choice = self.generation.context.choose(&prompt, set.values()?.clone(), &options, self.generation.watch)?;
        self.generation.stats.tokens_decoded += choice.stats.tokens_decoded;
        let mut shares = choice.probabilities();
        // Values that are listed are numbered as they are there.
        for (&index, share) in set.order.iter().zip(shares.clone()) {
            shares[index] = share;
        }
        if self.options.probabilities {
            self.scores.insert(self.at.position().filled(), shares);
        }
        Ok(choice.ranking.first().copied())
    }

    /// Writes a value that was chosen as a whole.
    fn write_leaf(&mut self, set: &SlotSet, leaf: LeafId) -> Result<(), RuntimeError> {
        let after = self.rules.constraint(&self.at).taken(self.at.position(), leaf)?;
        let mut state = set.rules.start();
        for token in set.values()?.leaf(leaf).ok_or(RuntimeError::DamagedSet)?.tokens {
            let depth = state.depth();
            if set.rules.forced(&state, &mut self.scratch) == Some(token) {
                self.write_forced(token, depth)?;
            } else {
                self.generation.write(token, false, depth, true);
            }
            set.rules.advance(&mut state, token).ok_or(RuntimeError::DamagedSet)?;
        }
        self.at.set_position(after);
        Ok(())
    }
}
