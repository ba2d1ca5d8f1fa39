//! A generation: on the calling thread, told to a callback; or on a thread of the library, kept until `next` asks.

use super::shared::InCallback;
use super::{Following, Last, Session, finish};
use crate::error::{Error, Result, panicked, spec_status};
use crate::status::*;
use crate::turn::{GENERATE, Turn};
use ::llama_sampler::{Finish, GenerateOptions, Generated, Step, Watch};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trie_core::{DrawSettings, Mode, SamplerOptions, SpanRules, Status, TokenId};
use trie_text::Prompt;

/// How to generate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    max_tokens: usize,
    draw: DrawSettings,
}

impl Plan {
    pub(crate) fn new(max_tokens: u32, temperature: f32, top_p: f32) -> Result<Self> {
        let draw = DrawSettings { temperature, top_p, ..DrawSettings::default() };
        draw.check()?;
        if max_tokens == 0 || max_tokens > i32::MAX as u32 {
            return Err(Error::argument(format!("max_tokens is {max_tokens}: it must be from 1 to {}", i32::MAX)));
        }
        Ok(Self { max_tokens: max_tokens as usize, draw })
    }

    fn sampling(&self, mode: Mode, seed: Option<u32>) -> SamplerOptions {
        SamplerOptions { mode, draw: self.draw, seed }
    }
}

/// Hears of every token.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(TokenId, &str);

/// What `next` gives.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Token(TokenId, String),
    /// The generation is over; with what went wrong.
    Done(Option<Error>),
}

/// Tokens of a generation that was started, until they are asked for.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    /// A generation was started, and its end was not taken yet.
    open: bool,
}

impl Events {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Event) {
        self.queue().events.push_back(event);
        self.more.notify_all();
    }
}

struct Told<'a> {
    session: &'a Session,
    sink: Sink<'a>,
}

impl Watch for Told<'_> {
    fn stop(&mut self) -> bool {
        self.session.gives_up()
    }

    fn wants_steps(&self) -> bool {
        true
    }

    fn wants_shares(&self) -> bool {
        false
    }

    fn step(&mut self, step: &Step<'_>) {
        (self.sink)(step.token, step.text);
    }
}

impl Session {
    /// Generates on this thread. `told` is called for each token, and `done` once at the end, when the session is free
    /// again; not at all where no generation began.
    pub(crate) fn generate(self: &Arc<Self>, plan: Plan, told: Sink<'_>, done: &mut dyn FnMut()) -> Result<()> {
        let turn = self.turns.begin(GENERATE)?;
        let prepared = self.prepare(plan)?;
        let result = self.run(prepared, &mut |token, text| {
            let _here = InCallback::enter();
            told(token, text);
        });
        drop(turn);
        done();
        result
    }

    /// Generates on another thread; [`Session::next`] takes the tokens.
    pub(crate) fn start(self: &Arc<Self>, plan: Plan) -> Result<()> {
        let turn = self.turns.begin(GENERATE)?;
        let prepared = self.prepare(plan)?;
        self.on_thread(turn, move |session, sink| session.run(prepared, sink))
    }

    /// Goes on with a turn on a thread of its own; [`Session::next`] takes what it says.
    pub(super) fn on_thread(
        self: &Arc<Self>,
        turn: Turn<'_>,
        run: impl FnOnce(&Self, Sink<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        *self.events.queue() = Queue { events: VecDeque::new(), open: true };
        let session = Arc::clone(self);
        let work = move || {
            let told = |token, text: &str| session.events.push(Event::Token(token, text.to_owned()));
            let result = catch_unwind(AssertUnwindSafe(|| run(&session, &mut { told })));
            session.turns.end();
            session.events.push(Event::Done(result.unwrap_or_else(|panic| Err(panicked(&*panic))).err()));
        };
        let spawned = std::thread::Builder::new().name("tokentrie".to_owned()).spawn(work);
        if let Err(error) = spawned {
            *self.events.queue() = Queue::default();
            return Err(Error::new(TOKENTRIE_ERROR_MODEL, format!("no thread could be started: {error}")));
        }
        // The thread ends the turn.
        std::mem::forget(turn);
        Ok(())
    }

    /// Gives the next event to `take`, which may leave it; waits for one as long as `timeout`, or for ever. `None`
    /// where none came.
    pub(crate) fn next<R>(
        &self,
        timeout: Option<Duration>,
        mut take: impl FnMut(&Event) -> Result<R>,
    ) -> Result<Option<R>> {
        let began = Instant::now();
        let mut queue = self.events.queue();
        loop {
            if let Some(event) = queue.events.front() {
                let taken = take(event)?;
                if matches!(event, Event::Done(_)) {
                    queue.open = false;
                }
                queue.events.pop_front();
                return Ok(Some(taken));
            }
            if !queue.open {
                return Err(Error::new(
                    TOKENTRIE_ERROR_NOT_ALLOWED,
                    "next: no generation was started, or its end was taken",
                ));
            }
            queue = match timeout {
                None => self.events.more.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let Some(left) = timeout.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
                        return Ok(None);
                    };
                    self.events.more.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Whether a generation was started whose end nobody has taken.
    pub(crate) fn is_open(&self) -> bool {
        self.events.queue().open
    }

    /// What a generation begins with. Whatever is wrong here, none begins.
    fn prepare(&self, plan: Plan) -> Result<Prepared> {
        let mut state = self.state();
        if state.prompt.is_empty() {
            return Err(Error::new(TOKENTRIE_ERROR_NOT_ALLOWED, "there is no prompt: call prefill first"));
        }
        let greedy = self.free_sampling(plan);
        let mut prompt = state.prompt.clone();
        let (rules, options) = match &state.following {
            Following::Nothing => (None, GenerateOptions::default().with_sampling(greedy)),
            Following::Rules { rules, mode, built } => {
                let sampling = plan.sampling(*mode, self.seed);
                let mut options = GenerateOptions::default().with_sampling(sampling).with_free(greedy);
                let mut rules = Arc::clone(rules);
                if let Some((text, built)) = state.text.clone().zip(built.clone()) {
                    let placed = built.after(Prompt::Text(text), &self.model.sets);
                    let placed = placed.map_err(|problem| Error::new(spec_status(&problem), problem.to_string()))?;
                    (prompt, rules) = (placed.prompt, self.rules(placed.spans)?);
                    options = options.with_healed_bytes(placed.healed_bytes);
                }
                (Some(rules), options)
            }
            Following::Refused(error) => {
                let error = error.clone().of("the trie that was set was refused");
                state.following = Following::Nothing;
                return Err(error);
            }
        };
        state.last = Last::default();
        let options = options.with_max_tokens(plan.max_tokens);
        Ok(Prepared { prompt, rules, options })
    }

    /// How free text is chosen.
    fn free_sampling(&self, plan: Plan) -> SamplerOptions {
        let mode = if plan.draw.temperature > 0.0 { Mode::Sampled } else { Mode::Greedy };
        plan.sampling(mode, self.seed)
    }

    fn run(&self, prepared: Prepared, sink: Sink<'_>) -> Result<()> {
        let Prepared { prompt, rules, options } = prepared;
        let slot = Arc::clone(&self.state().slot);
        let began = Instant::now();
        let mut watch = Told { session: self, sink };
        let work =
            || self.with_context(&slot, |context| context.generate(&prompt, rules.as_ref(), &options, &mut watch));
        let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)));
        let mut state = self.state();
        state.last.seconds = began.elapsed().as_secs_f64();
        match result {
            Ok(generated) => {
                let Generated { tokens, leaf, fields, finish: ended, stats, .. } = generated;
                state.last.finish = finish(ended);
                // The text of a rule is no leaf.
                let is_whole = leaf.is_some() || ended == Finish::Span;
                state.last.state = match (&rules, is_whole) {
                    (None, _) => Status::Idle,
                    (Some(_), true) => Status::Complete,
                    (Some(_), false) => Status::Active,
                };
                let values: Map<String, Value> =
                    fields.into_iter().map(|field| (field.name, field.value.into())).collect();
                state.last.values = (!values.is_empty()).then(|| Value::Object(values).to_string());
                (state.last.tokens, state.last.leaf, state.last.stats) = (tokens.len(), leaf, stats);
                // A set that spells the end of the prompt again begins before it.
                let kept = self.kept(&prompt, rules.as_deref());
                state.prompt = [&prompt[..kept], &tokens].concat();
                state.text = None;
                Ok(())
            }
            Err(error) if error.status == TOKENTRIE_ERROR_CANCELLED => {
                state.last.finish = TOKENTRIE_FINISH_CANCELLED;
                Ok(())
            }
            Err(error) => {
                state.last.finish = TOKENTRIE_FINISH_ERROR;
                state.following = Following::Nothing;
                Err(error)
            }
        }
    }

    fn kept(&self, prompt: &[TokenId], rules: Option<&SpanRules>) -> usize {
        let set = rules.and_then(SpanRules::first_set).filter(|set| set.heal_bytes() > 0);
        let before = set.and_then(|set| self.model.model.vocab().before_set(prompt, set).ok());
        before.map_or(prompt.len(), <[TokenId]>::len)
    }
}

/// A generation that may begin.
struct Prepared {
    prompt: Vec<TokenId>,
    rules: Option<Arc<SpanRules>>,
    options: GenerateOptions,
}
