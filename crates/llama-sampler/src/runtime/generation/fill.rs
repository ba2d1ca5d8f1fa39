//! Filling a form, as a task. The constraint of the form is walked like any other, and tokens that spell more than a
//! part holds are taken back.

use super::ahead::RulesAhead;
use super::deadline::FormDeadline;
use super::drafting::Drafting;
use super::generated::{Field, Finish, GenerateOptions, Generated};
use super::likely::Likely;
use super::trail::Trail;
use super::{Generation, Output, chain};
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::Watch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{
    After, Allowed, ChooseOptions, Constraint, DecodeCost, Host, Job, Leaf, LeafId, Mode, RowChooser, SamplerError,
    SamplerOptions, Scoring, Scratch, SpanError, SpanRules, SpanState, TokenId, WantedRows,
};
use trie_text::{Form, FormConstraint, FormError, FormState, KeptTokens, LastToken, Listing, Part, SlotSet, Vocab};

/// The form of these rules, if nothing follows it and nothing else ends it. Such a form is filled, and free text in it
/// is as the model would write it. Any other form is walked like a constraint.
#[must_use]
pub fn form_of(rules: &SpanRules) -> Option<&Arc<Form>> {
    let [(_, constraint)] = rules.constraints() else { return None };
    let alone = rules.after_value() == After::Stop && rules.end_tokens().is_empty();
    constraint.downcast_ref::<FormConstraint>().filter(|_| alone).map(FormConstraint::form)
}

/// A form on its way, as a task.
pub(super) struct Filler<W> {
    rules: SpanRules<FormConstraint>,
    at: SpanState<FormState>,
    options: GenerateOptions,
    pub(super) generation: Generation<W>,
    /// The number of the current field, and its sampler. Each field draws from its own seed.
    chooser: (usize, RowChooser),
    seed: u32,
    /// A token that the model chose beyond a value's end, where others go on.
    carried: Option<TokenId>,
    /// The probabilities of the values of slots, by the number of the field.
    scores: BTreeMap<usize, Vec<(String, f64)>>,
    /// Trail of every token that was accepted, and the tokens among them that stay.
    trail: Option<(Trail, KeptTokens)>,
    asking: Asking,
    deadline: FormDeadline,
    scratch: Scratch,
}

/// Purpose of the next row of logits.
enum Asking {
    Nothing,
    Token,
    /// The values of a slot.
    Slot(Box<Scoring>, Arc<SlotSet>),
}

impl<W: Watch> Filler<W> {
    pub(super) fn new(
        vocab: &Arc<Vocab>,
        host: Host,
        prompt: &[TokenId],
        form: &Arc<Form>,
        options: &GenerateOptions,
        watch: W,
    ) -> Result<Self, RuntimeError> {
        options.sampling.draw.check()?;
        let mut generation = Generation::with_healed_prompt(vocab, host, prompt, form.begins_with(), watch)?;
        generation.tentative = true;
        generation.add(&options.logit_bias)?;
        generation.likely = options.logprobs.filter(|_| !options.exact).map(Likely::new);
        if let Some(set) = form.begins_with().filter(|set| set.heal_bytes() > 0) {
            generation.vocab.healed_text(set, prompt)?;
        }
        let seed = chain::seed_of(&options.sampling);
        generation.stats.seed = if options.sampling.mode == Mode::Sampled { seed } else { 0 };
        let listed = match (options.exact, options.probabilities) {
            (true, _) => Listing::Always,
            (false, true) => Listing::WhereFew,
            (false, false) => Listing::Never,
        };
        let rules = FormConstraint::rules_for_filling(Arc::clone(form), &generation.vocab, listed)?;
        let sampling = SamplerOptions { seed: Some(seed), ..options.sampling };
        let literals = (0..form.parts().len()).map(|part| form.literal(part).len()).sum();
        let deadline = FormDeadline::new(generation.host.room, literals);
        Ok(Self {
            at: rules.start(),
            rules,
            options: options.clone(),
            generation,
            chooser: (0, RowChooser::new(sampling)?),
            seed,
            carried: None,
            scores: BTreeMap::new(),
            trail: options.trail.then(Default::default),
            asking: Asking::Nothing,
            deadline,
            scratch: Scratch::default(),
        })
    }

    /// Returns the filled form; if it was stopped, the part filled so far.
    pub(super) fn finish(self, stopped: bool) -> Result<(Generated, W), RuntimeError> {
        let Self { at, mut generation, chooser, mut scores, trail, deadline, .. } = self;
        let filled = at.position();
        generation.stats.starved += chooser.1.starved_count();
        let canonical = !stopped
            && generation.vocab.tokenize_inside(filled.text()).is_some_and(|tokens| tokens == generation.tokens());
        let trail = trail.map(|(trail, kept)| trail.finish_filled(&kept)).unwrap_or_default();
        let Output { tokens, text, logprobs, stats, watch, .. } = generation.finish()?;
        let text = if stopped { text } else { filled.text()[stats.healed_bytes..].to_owned() };
        let field = |(number, field): (usize, &trie_text::FilledField)| Field {
            name: field.name.clone(),
            value: field.value.clone(),
            index: field.index,
            probabilities: scores.remove(&number),
            tokens: field.tokens.clone(),
            completed: deadline.has_completed(number),
        };
        let fields: Vec<Field> = filled.fields().into_iter().enumerate().map(field).collect();
        let completed = fields.iter().any(|field| field.completed);
        let leaves: Vec<Leaf> = filled.fields().into_iter().map(trie_text::FilledField::leaf).collect();
        let leaf = if stopped { None } else { leaves.last().cloned() };
        let value = (!stopped).then(|| text.clone());
        let finish = if stopped { Finish::Cancelled } else { Finish::Span };
        let partial_token = Vec::new();
        let generated = Generated {
            tokens,
            text,
            leaf,
            leaves,
            fields,
            value,
            value_tokens: 0,
            partial_token,
            canonical,
            completed,
            logprobs,
            trail,
            finish,
            stats,
            correction: None,
        };
        Ok((generated, watch))
    }

    /// Drafts what comes after the text, if a token is chosen there.
    pub(super) fn draft(&mut self, drafting: &mut Drafting) -> Result<(), RuntimeError> {
        if self.deadline.of_value.next().is_some() || !matches!(self.asking, Asking::Token) {
            return Ok(());
        }
        let (most, vocab) = (self.generation.room_left(), Arc::clone(&self.generation.vocab));
        let is_written = |at: &FormState| at.last_token() == LastToken::Written;
        let mut ahead = RulesAhead::new(&vocab, &self.rules, &self.at, is_written);
        let Generation { text, watch, .. } = &mut self.generation;
        drafting.propose(text, most, &mut ahead, &mut || watch.stop())
    }

    /// Continues the current part up to the place where a row of logits is needed.
    fn go_on(&mut self) -> Result<(), RuntimeError> {
        // Beside slots that are scored others may have values without end; only one that is to be exact cannot.
        let scored = |set: &&Arc<SlotSet>| self.options.exact || self.options.probabilities && set.values().is_ok();
        let set = self.at.position().begun_set().filter(scored);
        match set.map(Arc::clone) {
            Some(set) => self.asking = Asking::Slot(Box::new(self.scoring(&set)?), set),
            None => self.step()?,
        }
        Ok(())
    }

    /// Writes the forced token, or the token that the model chose before; else requests a row of logits.
    fn step(&mut self) -> Result<(), RuntimeError> {
        let at = self.at.position();
        let (depth, before_part, field) = (at.depth(), at.is_before_part(), at.filled_count());
        let (way, forced) = (self.deadline.of_value.next(), self.rules.forced(&self.at, &mut self.scratch));
        self.carried.take_if(|_| way.is_some());
        if let Some(token) = way.filter(|&way| forced != Some(way) && !self.generation.is_watched()) {
            self.follow(token, depth)?;
        } else if let Some(token) = forced.filter(|_| way.is_none() || way == forced) {
            self.deadline.of_value.follow();
            self.advance(token)?;
            if !before_part {
                self.chooser(field)?.skip();
            }
            self.write_forced(token, depth);
        } else if let Some(token) = self.carried.take().filter(|&token| self.goes_on(token)) {
            self.check_in_time(token);
            if self.deadline.of_value.next().is_some() {
                return self.step();
            }
            self.write_choice(token, depth)?;
        } else if self.rules.allowed(&self.at, &mut self.scratch) == Allowed::Nothing {
            return Err(self.dead_end_error());
        } else {
            if way.is_none() {
                let form = self.rules.constraint(&self.at);
                self.deadline.look(form, self.at.position(), self.generation.room_left());
            }
            if self.generation.text.len() > self.generation.host.room {
                self.check_begun()?;
            }
            self.generation.ask();
            self.asking = Asking::Token;
            return Ok(());
        }
        self.settle();
        Ok(())
    }

    /// Writes what the model chose.
    fn write_choice(&mut self, token: TokenId, depth: usize) -> Result<(), RuntimeError> {
        self.advance(token)?;
        match self.at.position().last_token() {
            LastToken::Written => self.generation.write(token, false, depth, true),
            LastToken::Ended => self.carried = Some(token),
            LastToken::Dropped => {}
        }
        Ok(())
    }

    /// Writes a token that ends the value in time, whatever the model says.
    fn follow(&mut self, token: TokenId, depth: usize) -> Result<(), RuntimeError> {
        self.deadline.of_value.follow();
        self.advance(token)?;
        if self.at.position().last_token() == LastToken::Written {
            self.generation.write_forced(token, depth);
        }
        Ok(())
    }

    /// Checks whether the form can still end in time after this token; if not, other tokens end the value.
    fn check_in_time(&mut self, token: TokenId) {
        if !self.deadline.of_value.is_near() {
            return;
        }
        if let Some(step) = self.rules.step(&self.at, token) {
            let (form, at) = (self.rules.constraint(&self.at), self.at.position());
            self.deadline.check(form, at, step.state.position(), self.generation.room_left());
        }
    }

    /// Takes back tokens that spell more than a part holds, and reports those that stay.
    fn settle(&mut self) {
        let written = self.at.position().written_count();
        if written < self.generation.tokens().len() {
            self.generation.take_back(written);
        }
        self.generation.settle(self.at.position().certain());
    }

    /// Returns whether a token can be written here.
    fn goes_on(&self, token: TokenId) -> bool {
        let step = self.rules.step(&self.at, token);
        step.is_some_and(|step| step.state.position().last_token() != LastToken::Ended)
    }

    /// The model's choice for the current field, or the token that ends its value in time. Nothing is written.
    fn choose_token(&mut self, row: &[f32]) -> Result<TokenId, RuntimeError> {
        self.chooser(self.at.position().filled_count())?;
        let allowed = self.rules.allowed(&self.at, &mut self.scratch);
        let shown = if self.at.position().is_free() { Allowed::All } else { allowed };
        self.generation.consider(row, &shown);
        if let Some((trail, _)) = &mut self.trail {
            trail.consider(row, &allowed, &self.generation.vocab);
        }
        if let Some(token) = self.deadline.of_value.next() {
            return Ok(token);
        }
        let started = Instant::now();
        self.chooser.1.wrote_all(self.generation.tokens());
        let row = row.get(..self.rules.n_vocab()).ok_or(RuntimeError::NoLogits)?;
        let token = self.chooser.1.choose(row, allowed).ok_or(RuntimeError::NothingSelected)?;
        self.generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        self.check_in_time(token);
        Ok(self.deadline.of_value.next().unwrap_or(token))
    }

    fn write_forced(&mut self, token: TokenId, depth: usize) {
        if self.carried.take() == Some(token) {
            // The model chose it, when it ended the value before.
            self.generation.write(token, false, depth, true);
        } else {
            self.generation.write_forced(token, depth);
        }
    }

    fn advance(&mut self, token: TokenId) -> Result<(), RuntimeError> {
        self.rules.advance(&mut self.at, token).ok_or(RuntimeError::DamagedSet)?;
        if let Some((trail, kept)) = &mut self.trail {
            trail.write(token);
            kept.accept(self.at.position());
        }
        Ok(())
    }

    /// The error of a dead end, with its cause.
    fn dead_end_error(&self) -> RuntimeError {
        let (constraint, at) = (self.rules.constraint(&self.at), self.at.position());
        let Some(problem) = constraint.problem(at) else { return RuntimeError::DamagedSet };
        match problem.downcast_ref::<FormError>() {
            Some(error) => error.clone().into(),
            None => SamplerError::from(SpanError::Problem { path: String::new(), depth: at.depth(), problem }).into(),
        }
    }

    /// Checks that the context is not full inside a value.
    fn check_begun(&self) -> Result<(), RuntimeError> {
        let (form, at, n_ctx) = (self.rules.constraint(&self.at), self.at.position(), self.generation.host.room);
        let name = form.form().parts().iter().filter_map(Part::name).nth(at.filled_count());
        match (name, form.tokens_begun(at)) {
            (None, _) | (_, 0) => Ok(()),
            (Some(name), tokens) => Err(RuntimeError::FieldTooLong { name: name.to_owned(), tokens, n_ctx }),
        }
    }

    /// Returns the sampler of the field with this number.
    fn chooser(&mut self, field: usize) -> Result<&mut RowChooser, RuntimeError> {
        if self.chooser.0 != field {
            let seed = Some(self.seed.wrapping_add(field as u32));
            let next = RowChooser::new(SamplerOptions { seed, ..self.options.sampling })?;
            self.generation.stats.starved += std::mem::replace(&mut self.chooser, (field, next)).1.starved_count();
        }
        Ok(&mut self.chooser.1)
    }

    /// The scoring of the slot that begins here: its values together with the text after them.
    fn scoring(&self, set: &SlotSet) -> Result<Scoring, RuntimeError> {
        let generation = &self.generation;
        let continuation = self.rules.constraint(&self.at).continuation(self.at.position(), set)?;
        let mut options = ChooseOptions::new().with_end_tokens(&continuation.ends);
        if continuation.is_usual && !self.options.probabilities {
            // The best is enough, and nothing adds up.
            options = options.with_top(1);
        }
        generation.vocab.check_set(set.values()?)?;
        let prompt = generation.vocab.before_set(&generation.text, &continuation.trie)?;
        let values = continuation.trie.clone().into();
        let scoring = Scoring::new::<RuntimeError>(generation.host, &[prompt], &values, &options);
        scoring.map_err(|error| RuntimeError::from(error).of_the_only_prompt())
    }

    /// Takes the finished scoring of a slot: keeps its probabilities, and with `exact` writes the most probable value.
    fn take_scoring(&mut self, scoring: Scoring, set: &SlotSet) -> Result<(), RuntimeError> {
        let choice = scoring.finish(0).pop().ok_or(RuntimeError::DamagedSet)?;
        let continuation = self.rules.constraint(&self.at).continuation(self.at.position(), set)?;
        let choice = continuation.choice(choice, set.values()?.len());
        if self.options.probabilities {
            self.scores.insert(self.at.position().filled_count(), set.by_name(&choice.probabilities())?);
        }
        match choice.ranking.first().filter(|_| self.options.exact) {
            Some(&best) => {
                self.write_leaf(set, best)?;
                self.settle();
                Ok(())
            }
            None => self.step(),
        }
    }

    /// Writes a value that was chosen as a whole.
    fn write_leaf(&mut self, set: &SlotSet, leaf: LeafId) -> Result<(), RuntimeError> {
        let after = self.rules.constraint(&self.at).take_value(self.at.position(), leaf)?;
        let mut state = set.rules.start();
        for token in set.values()?.leaf(leaf).ok_or(RuntimeError::DamagedSet)?.tokens {
            let depth = state.depth();
            if set.rules.forced(&state, &mut self.scratch) == Some(token) {
                self.write_forced(token, depth);
            } else {
                self.generation.write(token, false, depth, true);
            }
            set.rules.advance(&mut state, token).ok_or(RuntimeError::DamagedSet)?;
        }
        self.at.set_position(after);
        Ok(())
    }
}

impl<W: Watch> Job for Filler<W> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        loop {
            match &mut self.asking {
                Asking::Token => return Ok(true),
                Asking::Slot(scoring, _) => {
                    if scoring.advance()? {
                        return Ok(true);
                    }
                    if let Asking::Slot(scoring, set) = std::mem::replace(&mut self.asking, Asking::Nothing) {
                        self.take_scoring(*scoring, &set)?;
                    }
                }
                Asking::Nothing if self.at.position().is_over() => return Ok(false),
                Asking::Nothing => self.go_on()?,
            }
        }
    }

    fn want(&self) -> WantedRows<'_> {
        match &self.asking {
            Asking::Slot(scoring, _) => scoring.want(),
            _ => WantedRows::row_after(&self.generation.text),
        }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        if let Asking::Slot(scoring, _) = &mut self.asking {
            return Ok(scoring.take(node, row)?);
        }
        self.generation.note_rows_read();
        let depth = self.at.position().depth();
        let mut bias = std::mem::take(&mut self.generation.bias);
        let token = self.choose_token(bias.adjust_row(row))?;
        self.generation.bias = bias;
        self.asking = Asking::Nothing;
        let completes = self.deadline.of_value.next().is_some();
        self.write_choice(token, depth)?;
        if completes {
            self.deadline.of_value.follow();
            self.carried = None;
        }
        self.settle();
        Ok(())
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        let WantedRows { prompt, tree, .. } = self.want();
        // What of it was not decoded, but for a tree that was decoded in several waves.
        let known = (prompt.len() + tree.nodes().len()).saturating_sub(decoded.tokens);
        if let Asking::Slot(scoring, _) = &mut self.asking {
            scoring.finish_batch(decoded);
        }
        self.generation.add_cost(known, decoded);
    }
}

impl<W: Watch> Task for Filler<W> {
    fn stop(&mut self) -> bool {
        self.generation.watch.stop()
    }
}
