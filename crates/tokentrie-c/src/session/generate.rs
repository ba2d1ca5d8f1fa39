//! A generation: what it is told, what it follows, and what came of it.

use super::errors::{finish, no_result};
use super::following::{Following, HostOfSession, REFUSED};
use super::shared::InCallback;
use super::turn::{GENERATE, Running, Sink, made_unless_over};
use super::{Last, Session};
use crate::error::{Error, Result, panicked};
use crate::status::*;
use ::llama_sampler::{Finish, Generated};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokentrie::call::{Call, CallOptions, Ended, Follows, Generate, GenerateRequest, ReadyGeneration, Turn};
use tokentrie::constraint::{Built, Over};
use tokentrie::engine::Runtime;
use trie_core::{After, DrawSettings, Mode, SamplerOptions, Status};
use trie_text::Prompt;

/// Plan of a generation.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    request: GenerateRequest,
    /// The settings of the draw, where the mode is that of the set.
    draw: Option<DrawSettings>,
    /// When its time began.
    began: Instant,
}

impl Plan {
    /// After the prompt of the session, inside what it follows, in the mode of that.
    pub(crate) fn new(max_tokens: u32, temperature: f32, top_p: f32) -> Result<Self> {
        let draw = DrawSettings { temperature, top_p, ..DrawSettings::default() };
        draw.check()?;
        let mut options = Generate::default();
        options.max_tokens = Some(max_tokens);
        let call = CallOptions::default();
        let request = GenerateRequest { prompt: None, constraint: None, options, has_sampling: false, call };
        Self { request, draw: Some(draw), began: Instant::now() }.checked()
    }

    /// As a request says it.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self> {
        let began = Instant::now();
        Self { request: GenerateRequest::from_json(json)?, draw: None, began }.checked()
    }

    fn checked(self) -> Result<Self> {
        if let Some(most) = self.request.options.max_tokens.filter(|&most| most == 0 || most > i32::MAX as u32) {
            return Err(Error::argument(format!("max_tokens is {most}: it must be from 1 to {}", i32::MAX)));
        }
        Ok(self)
    }
}

/// A generation that may begin.
struct CheckedGeneration {
    ready: ReadyGeneration,
    call: Call,
    /// True if it has a prompt of its own: if it fails, none goes on after another than that.
    brings_prompt: bool,
}

impl Session {
    /// Generates on this thread. `told` is called for each token. The session is free again when it returns.
    pub(crate) fn generate(self: &Arc<Self>, plan: Plan, told: Sink<'_>) -> Result<()> {
        let turn = self.turn(GENERATE)?;
        let Some(prepared) = self.prepare(plan, &turn)? else { return Ok(()) };
        self.run(prepared, &mut |token, text| {
            let _here = InCallback::enter();
            told(token, text);
        })
    }

    /// Generates on another thread; [`Session::next`] takes the tokens.
    pub(crate) fn start(self: &Arc<Self>, plan: Plan) -> Result<()> {
        let turn = self.turn(GENERATE)?;
        let prepared = self.prepare(plan, &turn)?;
        self.on_thread(turn, move |session, _, sink| prepared.map_or(Ok(()), |prepared| session.run(prepared, sink)))
    }

    /// The prompt that was taken, and what was generated after it.
    pub(super) fn own_prompt(&self) -> Result<Prompt> {
        let state = self.state();
        if state.prompt.is_empty() {
            return Err(no_prompt());
        }
        Ok(state.text.clone().map_or_else(|| Prompt::Tokens(state.prompt.clone()), Prompt::Text))
    }

    /// Prepares a generation; `None` if its time was over first. Whatever is wrong here, none begins.
    fn prepare(&self, plan: Plan, turn: &Turn) -> Result<Option<CheckedGeneration>> {
        let Plan { request, draw, began } = plan;
        let call = Call::begun_at(began, request.call)?.with(turn.cancel());
        let prepared = made_unless_over(&call, || self.prepared(request, draw, call.clone()))?;
        if prepared.is_none() {
            let mut state = self.state();
            (state.last, state.found) = (Last { finish: ended_by(&call), ..Last::default() }, None);
        }
        Ok(prepared)
    }

    fn prepared(&self, request: GenerateRequest, draw: Option<DrawSettings>, call: Call) -> Result<CheckedGeneration> {
        let GenerateRequest { prompt, constraint, mut options, has_sampling, .. } = request;
        let vocab = self.model.model.vocab();
        let host = HostOfSession::new(self);
        let built = constraint.as_ref().map(|spec| spec.build(&Over::vocab(vocab), &host)).transpose()?;
        let brings_prompt = prompt.is_some();
        let prompt = prompt.map_or_else(|| self.own_prompt(), Ok)?;
        let mut state = self.state();
        state.warnings.clear();
        let free = |draw: DrawSettings| {
            let mode = if draw.temperature > 0.0 { Mode::Sampled } else { Mode::Greedy };
            SamplerOptions { mode, draw, seed: self.seed }
        };
        for sampling in [Some(&mut options.sampling), options.free_sampling.as_mut()].into_iter().flatten() {
            sampling.seed = sampling.seed.or(self.seed);
        }
        let follows = if built.is_some() {
            state.left_out = host.left_out();
            state.warnings = host.warnings();
            built.into()
        } else {
            match &state.following {
                Following::Nothing => {
                    options.sampling = draw.map_or(options.sampling, free);
                    Follows::Nothing
                }
                Following::Rules { rules, mode, built, .. } => {
                    if !has_sampling {
                        options.sampling.mode = *mode;
                    }
                    if let Some(draw) = draw {
                        options.sampling = SamplerOptions { mode: *mode, draw, seed: self.seed };
                        options.free_sampling = (self.after == After::Free).then(|| free(draw));
                    }
                    let own_end = options.end_tokens.is_some() || options.after.is_some_and(|end| end != self.after);
                    let spans = || Built::Spans(rules.constraints().to_vec().into());
                    match (&prompt, built) {
                        (_, Some(form @ Built::Form(_))) => Follows::Built(form.clone()),
                        (Prompt::Tokens(_), _) if !own_end => Follows::Rules(Arc::clone(rules)),
                        (_, built) => Follows::Built(built.clone().unwrap_or_else(spans)),
                    }
                }
                Following::Refused(error) => return Err(error.clone().of(REFUSED)),
            }
        };
        if !matches!(follows, Follows::Nothing) && !follows.is_form() {
            options.after = options.after.or(Some(self.after));
        }
        let ready = options.ready(prompt, follows, constraint.as_ref(), &self.model.sets)?;
        (state.last, state.found) = (Last::default(), None);
        Ok(CheckedGeneration { ready, call, brings_prompt })
    }

    fn run(&self, prepared: CheckedGeneration, sink: Sink<'_>) -> Result<()> {
        let CheckedGeneration { ready, call, brings_prompt } = prepared;
        let decoder = self.state().decoder.clone();
        let began = Instant::now();
        let mut running = Running::telling(&call, sink);
        // Also in the middle of a mask.
        let work = || {
            let ready = ready.begun_at(began);
            let run = |runtime: &mut Runtime<'_>| runtime.run(&ready, &mut running);
            let results = call.run_work(|| self.with_runtime(&decoder, &call, run))?;
            results.into_iter().next().map(|result| (ready, result)).ok_or_else(no_result)
        };
        let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)));
        let mut state = self.state();
        state.last.seconds = began.elapsed().as_secs_f64();
        match result {
            Ok((ready, result)) => {
                let Generated { tokens, leaf, finish: ended, .. } = &result.generated;
                state.last.finish = finish(*ended);
                // The text of a rule is not a leaf.
                state.last.state = match (ready.is_constrained(), leaf.is_some() || *ended == Finish::Span) {
                    (false, _) => Status::Idle,
                    (true, true) => Status::Complete,
                    (true, false) => Status::Active,
                };
                let kept = ready.kept_tokens(self.model.model.vocab());
                state.prompt = [&ready.prompt()[..kept], tokens].concat();
                state.text = None;
                state.last.tokens = tokens.len();
                state.last.generated = Some(result);
                Ok(())
            }
            Err(error) => {
                if brings_prompt {
                    state.prompt.clear();
                }
                if error.status == TOKENTRIE_ERROR_CANCELLED || call.ended().is_some() {
                    state.last.finish = ended_by(&call);
                    return Ok(());
                }
                state.last.finish = TOKENTRIE_FINISH_ERROR;
                if matches!(state.following, Following::Rules { .. }) {
                    let failed = error.clone().of("the generation that followed it failed");
                    state.following = Following::Refused(failed);
                }
                Err(error)
            }
        }
    }
}

pub(super) fn no_prompt() -> Error {
    Error::new(TOKENTRIE_ERROR_NOT_ALLOWED, "there is no prompt: give one, or call prefill first")
}

/// Returns the finish code of a call that was ended from outside.
pub(super) fn ended_by(call: &Call) -> i32 {
    match call.ended() {
        Some(Ended::TimedOut(_)) => TOKENTRIE_FINISH_TIMED_OUT,
        Some(Ended::Cancelled) | None => TOKENTRIE_FINISH_CANCELLED,
    }
}
