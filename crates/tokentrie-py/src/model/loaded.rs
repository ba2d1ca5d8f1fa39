//! A model that generates inside a span.

use crate::call::{self, CancelToken, OpenCall, begun};
use crate::chat::format::ChatFormat;
use crate::chat::response_template::ResponseTemplate;
use crate::chat::template::ChatTemplate;
use crate::convert::data::list_of_dicts;
use crate::convert::gil::{asked_in, locked, made_in, released, turn};
use crate::convert::options::Options;
use crate::convert::results::{fields, result};
use crate::convert::words::{Batching, OnInvalid, unsigned};
use crate::errors::{Class, Error, Refused, Result, warn, with_partial};
use crate::exit::{called, module};
use crate::model::embedding::Embedding;
use crate::model::generated::generated_result;
use crate::model::meaning::{Meaning, Written, cut_off, meaning, promises_value};
use crate::model::rivals;
use crate::model::several::{Several, several, warn_of_same};
use crate::model::watch::{Watch, check_callable};
use crate::rows::sampling::Sampling;
use crate::rule::of_user::UserRule;
use crate::spec::payloads::{self, Cache};
use crate::spec::receipt::{self, Wanted};
use crate::spec::{Around, as_object, built};
use crate::vocab::Vocab;
use llama_cpp_2::sampling::LlamaSampler;
use llama_sampler::{Context, ContextOptions, Draft, GenerateOptions, ModelOptions};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokentrie::call::{Call, CallOptions, Generate, GenerateResult, ReadyCall, Turns, read_options};
use tokentrie::constraint::Over;
use tokentrie::engine::{Engine, EngineOptions, ModelDecoder, Runtime};
use trie_core::{AnyConstraint, SpanRules, TokenId, Trie, Unconstrained};
use trie_text::ValueSets;

/// The native part of `tokentrie.Model`: a GGUF model with one context, and the calls that need it.
#[pyclass(frozen, subclass, name = "NativeModel", module = "tokentrie._native")]
pub(crate) struct Model {
    /// None once it is closed.
    loaded: Mutex<Option<Loaded>>,
    /// Context with one slot.
    context: Mutex<Option<Context>>,
    /// Engine with several slots.
    engine: Mutex<Option<Arc<Engine>>>,
    turns: Turns,
    pub(crate) embedding: Embedding,
    /// Worked out when it is first asked for.
    pub(crate) chat_format: PyOnceLock<Py<ChatFormat>>,
    /// The response template that was given beside the file.
    pub(crate) response_template: Option<tokentrie::chat::ResponseTemplate>,
    /// Source of drafts of the calls of the engine.
    draft: Option<Draft>,
    /// pathlib.Path: the file it came from.
    #[pyo3(get)]
    path: PathBuf,
    /// int: tokens of context.
    #[pyo3(get)]
    pub(crate) n_ctx: usize,
    /// int: the most threads that a forward pass may get; `stats.n_threads` tells how many the last one got.
    #[pyo3(get)]
    n_threads: u32,
}

/// Data that stay in memory until the model is closed.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) model: llama_sampler::Model,
    /// Cached sets of recent texts: a loop over prompts tokenises its choices once.
    pub(crate) sets: Arc<ValueSets>,
}

impl Loaded {
    /// Returns the context in which constraints are built.
    pub(crate) fn around(&self) -> Around<'_> {
        Around { over: Over::vocab(self.model.vocab()), sets: Some(&self.sets), cache: Cache::Thread }
    }
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(
        signature = (
            path=None, n_ctx=None, n_gpu_layers=0, n_threads=None, precise=false, *, slots=1, max_queue=1024,
            batching=Batching(tokentrie::engine::Batching::Free), prefill_chunk=EngineOptions::PREFILL_CHUNK as i64,
            n_batch=512, cache_type=None, flash_attention=None, response_template=None, draft=None,
            device_sampling=false
        ),
        text_signature = "(path=None, n_ctx=None, n_gpu_layers=0, n_threads=None, precise=False, *, slots=1, \
                          max_queue=1024, batching=\"free\", prefill_chunk=64, n_batch=512, cache_type=None, \
                          flash_attention=None, response_template=None, draft=None, device_sampling=False)",
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        n_ctx: Option<i64>,
        n_gpu_layers: i64,
        n_threads: Option<i64>,
        precise: bool,
        slots: i64,
        max_queue: i64,
        batching: Batching,
        prefill_chunk: i64,
        n_batch: i64,
        cache_type: Option<&str>,
        flash_attention: Option<bool>,
        response_template: Option<&Bound<'_, PyAny>>,
        draft: Option<PathBuf>,
        device_sampling: bool,
    ) -> Result<Self> {
        let response_template = response_template.map(ResponseTemplate::of).transpose()?;
        let path = path.map_or_else(|| tiny(py), |path| located(py, path))?;
        let draft = draft.map(|draft| located(py, draft)).transpose()?;
        let number = |name, value: Option<i64>| value.map(|value| unsigned(name, value)).transpose();
        let n_gpu_layers = match n_gpu_layers {
            // More than any model has.
            -1 => i32::MAX as u32,
            layers => u32::try_from(layers).map_err(|_| {
                Class::Option
                    .error(format!("n_gpu_layers is {layers}: it must be from 0 to {}, or -1 for all", i32::MAX))
            })?,
        };
        if n_gpu_layers > 0 && !llama_sampler::supports_graphics_cards()? {
            warn(py, "n_gpu_layers has no effect: this build of tokentrie uses no graphics card")?;
        }
        let slots = unsigned("slots", slots)?;
        if let Some(tokens) = n_ctx.filter(|&tokens| (1..=i64::from(slots)).contains(&tokens)) {
            let least = slots + 1;
            let message = format!("a context of {tokens} tokens (n_ctx) is too small: it needs at least {least}");
            return Err(Class::Option.error(message));
        }
        let of_engine = EngineOptions::default().with_max_queue(unsigned("max_queue", max_queue)? as usize);
        let of_engine = of_engine.with_batching(batching.0);
        let of_engine = of_engine.with_prefill_chunk(unsigned("prefill_chunk", prefill_chunk)? as usize);
        let options = ContextOptions::default().with_precise(precise).with_slots(slots);
        let options = options.with_device_sampling(device_sampling);
        let options = options.with_n_batch(unsigned("n_batch", n_batch)?).with_flash_attention(flash_attention);
        let options = options.with_cache_type(cache_type.map(crate::convert::words::cache_type).transpose()?);
        let options = options.with_n_ctx(number("n_ctx", n_ctx)?).with_n_threads(number("n_threads", n_threads)?);
        // Loading a large file takes long enough for Ctrl-C.
        let unwatched = || Watch::new(&Call::default());
        let interrupted = Arc::new(Mutex::new(unwatched()));
        let watch = Arc::clone(&interrupted);
        let progress = move |_: f32| !watch.lock().is_ok_and(|mut watch| watch.wants_stop());
        let loaded = released(py, || {
            let options_of_model = ModelOptions::default().with_n_gpu_layers(n_gpu_layers).with_progress(progress);
            let model = llama_sampler::Model::load(path, options_of_model)?;
            let source = draft.as_deref().map(|source| Draft::open(source, &model, options)).transpose()?;
            let mut opened = ModelDecoder::new(&model, options, of_engine)?;
            match (&mut opened, &source) {
                (ModelDecoder::Alone(context), _) => context.set_draft(source.clone()),
                (ModelDecoder::Shared(engine), Some(source)) => engine.check_draft(source)?,
                (ModelDecoder::Shared(_), None) => {}
            }
            Ok((model, opened, source))
        });
        let watch = std::mem::replace(&mut *locked(py, &interrupted)?, unwatched());
        let (model, opened, draft) = watch.finish::<_, llama_sampler::RuntimeError>(loaded)?;
        let (n_ctx, n_threads) = (opened.n_ctx(), opened.most_threads());
        let (context, engine) = match opened {
            ModelDecoder::Alone(context) => (Some(*context), None),
            ModelDecoder::Shared(engine) => (None, Some(Arc::new(engine))),
        };
        Ok(Self {
            path: model.path().to_owned(),
            n_ctx,
            n_threads,
            engine: Mutex::new(engine),
            loaded: Mutex::new(Some(Loaded { sets: Arc::new(ValueSets::new(Arc::clone(model.vocab()))), model })),
            context: Mutex::new(context),
            turns: Turns::default(),
            embedding: Embedding::new(options),
            chat_format: PyOnceLock::new(),
            response_template,
            draft,
        })
    }

    /// Vocab: the model's vocabulary.
    #[getter]
    fn vocab(&self, py: Python<'_>) -> Result<Vocab> {
        Ok(Vocab::new(Arc::clone(self.loaded(py)?.model.vocab())))
    }

    /// EngineStats | None: what its engine does; None with one slot, where calls wait for each other.
    #[getter]
    fn engine<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        let stats = locked(py, &self.engine)?.as_ref().map(|engine| engine.stats());
        Ok(stats.map(|stats| result("EngineStats", fields(py, &stats)?)).transpose()?)
    }

    /// Ends the call that another thread has running, whichever that is, between two forward passes.
    ///
    /// It raises CancelledError there. Does nothing if no call is running. A CancelToken ends one call and no other.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> model.generate("Once", on_step=lambda step: model.cancel())  # or from another thread
    ///     Traceback (most recent call last):
    ///         ...
    ///     tokentrie.errors.CancelledError: stopped on request ...
    fn cancel(&self, py: Python<'_>) -> Result<()> {
        self.turns.cancel();
        self.embedding.turns.cancel();
        if let Some(engine) = &*locked(py, &self.engine)? {
            engine.cancel();
        }
        Ok(())
    }

    /// Cancels what is running, waits for it and gives the memory back.
    ///
    /// Weights go when their Vocab objects are gone, too. Later calls raise ModelError. May be repeated.
    ///
    /// Raises:
    ///     ModelError: called from `on_step` of the same model.
    ///
    /// Example:
    ///     >>> with tokentrie.Model() as model:
    ///     ...     row = model.logits("The sky")
    ///     >>> model.logits("The sky")
    ///     Traceback (most recent call last):
    ///         ...
    ///     tokentrie.errors.ModelError: the model is closed
    fn close(&self, py: Python<'_>) -> Result<()> {
        self.cancel(py)?;
        let busy = || Class::Model.error("the model is generating: on_step must not close it");
        let _turn = turn(py, &self.turns, "close", &Call::default(), busy)?;
        let _embeds_nothing = turn(py, &self.embedding.turns, "close", &Call::default(), busy)?;
        let embedder = self.embedding.take(py)?;
        let context = locked(py, &self.context)?.take();
        let engine = locked(py, &self.engine)?.take();
        let loaded = locked(py, &self.loaded)?.take();
        released(py, || {
            if let Some(engine) = engine {
                engine.close();
            }
            drop((context, embedder, loaded));
        });
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<()> {
        self.close(py)
    }

    /// One generation, or several: `Model.generate`.
    #[pyo3(
        signature = (
            prompt, constraint=None, *, n=None, on_step=None, on_invalid=OnInvalid::Raise, receipt=Wanted::default(),
            free_sampling=None, cancel=None, timeout=None, priority=0, **options
        ),
        text_signature = "($self, prompt, constraint=None, **options)",
    )]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments that are not data in Python")]
    fn _generate(
        &self,
        prompt: &Bound<'_, PyAny>,
        constraint: Option<&Bound<'_, PyAny>>,
        n: Option<i64>,
        on_step: Option<Py<PyAny>>,
        on_invalid: OnInvalid,
        receipt: Wanted,
        free_sampling: Option<&Bound<'_, Sampling>>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Several<Py<PyAny>>> {
        let py = prompt.py();
        let call = begun(cancel, CallOptions { timeout, priority })?;
        check_callable("on_step", on_step.as_ref().map(|on_step| on_step.bind(py)))?;
        let count = several(n, on_step.is_some())?;
        let Options { data, sampling, exact, stop, end_tokens, logit_bias } =
            Options::read(py, "generate", options, &TAKEN, read_options)?;
        let mut options: Generate = data;
        (options.sampling, options.exact, options.stop) = (sampling, exact, stop);
        (options.end_tokens, options.logit_bias) = (end_tokens, logit_bias);
        options.free_sampling = free_sampling.map(|sampling| sampling.get().used(py)).transpose()?;
        options.after = options.after.or(Some(trie_core::After::Stop));
        options.receipt = receipt.receipt;
        let (loaded, started) = (self.loaded(py)?, Instant::now());
        let (given, built, prompt) = made_in(py, &call, || {
            let mut given = constraint.map(as_object).transpose()?;
            if receipt.receipt {
                given = given.map(receipt::read_once).transpose()?;
            }
            let built = given.as_ref().map(|given| built("constraint", given, &loaded.around())).transpose()?;
            Ok((given, built, crate::convert::prompt::read(prompt)?))
        })?;
        let (sampling, max_tokens) = (options.sampling, options.max_tokens);
        let is_drawn_twice = options.free_sampling.is_some() || options.correct.is_some();
        let spec = receipt::data(given.as_ref().filter(|_| options.receipt));
        let ready = asked_in(py, &call, || options.ready(prompt, built.into(), spec.as_ref(), &loaded.sets))?;
        UserRule::raised()?;
        if call.ended().is_some() {
            return Err(call::ended(&call, "before there was a result"));
        }
        let ready = ready?;
        if !is_drawn_twice {
            warn_of_same(py, count, sampling.mode)?;
        }
        let ready = ready.with_n(count).with_key(receipt.key).begun_at(started);
        let (mut all, mut refused, mut stopped) = (Vec::new(), None, None);
        for result in self.run(py, &ready, Watch::new(&call).with_steps(on_step))? {
            let generated = &result.generated;
            let field = |field: &'_ llama_sampler::Field| (field.name.clone(), field.value.clone());
            let fields: Vec<(String, String)> = generated.fields.iter().map(field).collect();
            let fields = || fields.iter().map(|(name, value)| (name.clone(), value.as_str())).collect();
            let (text, leaves) = (generated.value.as_deref(), &generated.leaves[..]);
            let written = Written { fields: ready.is_form().then(fields), leaves, text };
            let (meaning, mut found) = meaning(py, written, given.as_ref())?;
            if found.is_none() && matches!(meaning, Meaning::Value(None)) && given.as_ref().is_some_and(promises_value)
            {
                found = cut_off(generated, max_tokens).map(|reason| Refused::truncated(py, &generated.text, reason));
            }
            let (reason, error) = found.map(|found| (found.reason, found.error)).unzip();
            refused = refused.or(error);
            if generated.finish.is_stopped() {
                stopped = stopped.or(Some(generated.tokens.len()));
            }
            let result = generated_result(py, result, meaning, reason)?;
            all.push(result.unbind());
        }
        let refused = refused.filter(|_| on_invalid == OnInvalid::Raise);
        Several::of(all, n.is_some()).unless(py, &call, stopped, refused)
    }

    /// Generates greedily under a grammar: what `benches/generations` compares with.
    fn _generate_with_grammar(
        &self,
        prompt: &Bound<'_, PyAny>,
        engine: &str,
        grammar: &str,
        max_tokens: i64,
    ) -> Result<Py<PyAny>> {
        let began = Instant::now();
        let (py, loaded, prompt) = (prompt.py(), self.loaded(prompt.py())?, self.prompt(prompt, None)?);
        let max_tokens = unsigned("max_tokens", max_tokens)? as usize;
        let vocab = loaded.model.vocab();
        let rules = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), vocab.len())?;
        let options = GenerateOptions::default().with_max_tokens(max_tokens);
        // A sampler of llama.cpp's must be made where it is used: it goes to no other thread.
        let call = Call::default();
        let generated = self.using(py, Watch::new(&call), |runtime, watch| {
            let Runtime::Alone(context) = runtime else {
                return Ok(Err(Class::Model.error("grammars of others need a model with one slot")));
            };
            let rival = match rivals::sampler(loaded.model.llama(), engine, grammar) {
                Ok(rival) => rival,
                Err(refused) => return Ok(Err(refused)),
            };
            let chain = LlamaSampler::chain([rival, LlamaSampler::greedy()], true);
            context.generate_with_chain(&prompt, &Arc::new(rules), chain, &options, watch).map(Ok)
        })?;
        let mut generated = generated?;
        generated.stats.seconds = began.elapsed().as_secs_f64();
        let (is_stopped, count) = (generated.finish.is_stopped(), generated.tokens.len());
        let result = GenerateResult { generated, receipt: None };
        let generated = generated_result(py, result, Meaning::Value(None), None)?;
        if is_stopped {
            let error = call::ended(&call, &format!("after {count} generated tokens"));
            return Err(with_partial(py, error, generated));
        }
        Ok(generated.unbind())
    }

    /// ChatTemplate: the template of the file, with the model's tokens for the beginning and the end of a text.
    /// ModelError if it has none.
    #[getter]
    fn chat_template(&self, py: Python<'_>) -> Result<ChatTemplate> {
        Ok(ChatTemplate(self.loaded(py)?.model.chat_template()?.clone()))
    }

    /// The token ids of a prompt in the model's own chat format.
    ///
    /// What messages, tools and variables contain is plain text, and so is `answer_prefix`: the name of a control token
    /// in it stays text. Messages that the template refuses are given to it in other shapes, see `ChatTemplate.render`.
    ///
    /// Args:
    ///     messages: a list of dict with "role" and "content".
    ///     tools: a list of tool definitions (dict), as the model's template expects them.
    ///     add_generation_prompt: end where the assistant's answer begins.
    ///     answer_prefix: text that opens the answer, as if the model had written it. What follows is chosen with the
    ///         same text as `prefix` of `choose`, or generated from a `Trie.from_strings(prefix=, heal=True)`: then a
    ///         token may cross the boundary.
    ///     now: the datetime that the template's `strftime_now` tells; with None that of the clock.
    ///     adapt: try other shapes; with False the template gets exactly these messages.
    ///     variables: what the template finds under other names, such as `enable_thinking=False`.
    ///
    /// Returns:
    ///     list[int], for `generate` and `choose`.
    ///
    /// Raises:
    ///     TemplateError: the template is faulty, or refuses the messages.
    ///     ModelError: the file has no template.
    ///     TypeError: something is not a list of dict, or no JSON.
    ///     OptionError: something is not JSON, or an answer is opened that does not begin.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> prompt = model.chat_prompt([{"role": "user", "content": "Hello"}], answer_prefix="It is")
    ///     >>> print(model.vocab.detokenize(prompt))
    ///     <|im_start|>user
    ///     Hello<|im_end|>
    ///     <|im_start|>assistant
    ///     It is
    ///     >>> model.choose(prompt, [" red", " blue"], prefix="It is").name in (" red", " blue")
    ///     True
    #[pyo3(signature = (
        messages, tools=None, add_generation_prompt=true, *, answer_prefix="", now=None, adapt=true, **variables
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn chat_prompt(
        &self,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        add_generation_prompt: bool,
        answer_prefix: &str,
        now: Option<&Bound<'_, PyAny>>,
        adapt: bool,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<Vec<u32>> {
        let py = messages.py();
        let loaded = self.loaded(py)?;
        let messages = list_of_dicts("messages", messages)?;
        let tools = tools.map(|tools| list_of_dicts("tools", tools)).transpose()?;
        if !answer_prefix.is_empty() && !add_generation_prompt {
            return Err(Class::Option.error("answer_prefix opens an answer, so add_generation_prompt must be True"));
        }
        if let Some(variables) = variables
            && variables.contains("tools_in")?
        {
            let message = "tools_in is not supported by chat_prompt, whose other keywords are variables of the \
                           template: use model.chat_format.with_tools_in(place).prompt(messages, tools)";
            return Err(Class::Option.error(message));
        }
        let options = crate::chat::template::options(add_generation_prompt, now, variables)?.with_adapt(adapt);
        let tokens = released(py, || loaded.model.chat_prompt(&messages, tools.as_ref(), &options, answer_prefix))?;
        Ok(tokens.into_iter().map(TokenId::get).collect())
    }

    /// The logits after some tokens. What the context holds of their beginning is not computed again.
    ///
    /// Args:
    ///     tokens: text or token ids, as the prompt of `generate`.
    ///
    /// Returns:
    ///     float32 [V], a copy.
    ///
    /// Raises:
    ///     ContextError: the tokens do not fit.
    ///     OptionError: there are none.
    ///     VocabularyError: ids are outside the vocabulary.
    ///     ModelError: the forward pass fails, or the model is closed.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> model.logits("The sky is").shape == (len(model.vocab),)
    ///     True
    fn logits<'py>(&self, tokens: &Bound<'py, PyAny>) -> Result<Bound<'py, PyArray1<f32>>> {
        let (py, tokens) = (tokens.py(), self.prompt(tokens, None)?);
        let row = self.using(py, Watch::new(&Call::default()), |runtime, watch| runtime.row(&tokens, watch))?;
        Ok(PyArray1::from_vec(py, row))
    }

    /// Computes the log probability of each token of a prompt but the first, with `top` alternatives.
    fn _prompt_logprobs(
        &self,
        tokens: &Bound<'_, PyAny>,
        top: u32,
        call: &Bound<'_, OpenCall>,
    ) -> Result<Vec<Py<PyAny>>> {
        let (py, tokens) = (tokens.py(), self.prompt(tokens, None)?);
        let known = self.using(py, Watch::new(&call.get().0), |runtime, watch| runtime.read(&tokens, top, watch))?;
        let known = known.iter().map(|one| Ok(result("TokenLogprob", fields(py, one)?)?.unbind()));
        Ok(known.collect::<PyResult<_>>()?)
    }

    /// Forgets the tokens in the context: for measurements.
    ///
    /// The next call decodes its prompt from the beginning.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> row = model.logits("The sky is")
    ///     >>> model.clear()
    fn clear(&self, py: Python<'_>) -> Result<()> {
        self.using(py, Watch::new(&Call::default()), |runtime, _| runtime.clear())
    }

    /// Forgets what was worked out for tools, sets and payloads, here and on other threads: the next calls do it again.
    fn _forget(&self, py: Python<'_>) -> Result<()> {
        let loaded = self.loaded(py)?;
        if let Some(format) = self.chat_format.get(py) {
            format.get().forget(py)?;
        }
        released(py, || {
            loaded.sets.clear();
            tokentrie::chat::forget_tools();
            payloads::forget();
        });
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Model: {}>", self.path.display())
    }
}

impl Model {
    pub(crate) fn loaded(&self, py: Python<'_>) -> Result<Loaded> {
        locked(py, &self.loaded)?.clone().ok_or_else(closed)
    }

    /// The tokens of a prompt before a set.
    pub(super) fn prompt(&self, prompt: &Bound<'_, PyAny>, set: Option<&Trie>) -> Result<Vec<TokenId>> {
        let (py, prompt, loaded) = (prompt.py(), crate::convert::prompt::read(prompt)?, self.loaded(prompt.py())?);
        Ok(released(py, || prompt.tokens(loaded.model.vocab(), set))?)
    }

    /// Runs a call that is ready.
    pub(crate) fn run<C: ReadyCall<Outcome: Send, Error: Send> + Send>(
        &self,
        py: Python<'_>,
        ready: C,
        watch: Watch,
    ) -> Result<C::Outcome>
    where
        Error: From<C::Error>,
    {
        self.using(py, watch, |runtime, watch| runtime.run(ready, watch))
    }

    /// Runs `work` on the context without the GIL; other threads wait for their turn.
    pub(crate) fn using<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        mut watch: Watch,
        work: impl FnOnce(&mut Runtime<'_>, &mut Watch) -> Result<T, E> + Send,
    ) -> Result<T>
    where
        Error: From<E>,
    {
        // In a statement of its own: the lock is not held while it runs.
        let engine = locked(py, &self.engine)?.clone();
        if let Some(engine) = engine {
            let done = released(py, || work(&mut Runtime::Shared(&engine, self.draft.as_ref()), &mut watch));
            return watch.finish(done);
        }
        let busy = || Class::Model.error("the model is generating: on_step must not use it");
        let turn = turn(py, &self.turns, "generate", &watch.call, busy)?;
        let mut context = locked(py, &self.context)?;
        let context = context.as_mut().ok_or_else(closed)?;
        watch.call = watch.call.with(turn.cancel());
        let call = watch.call.clone();
        let done = asked_in(py, &call, || work(&mut Runtime::Alone(context), &mut watch))?;
        watch.finish(done)
    }
}

/// The options of a generation that are objects in Python.
const TAKEN: [&str; 4] = ["sampling", "stop", "end_tokens", "logit_bias"];

fn closed() -> Error {
    Class::Model.error("the model is closed")
}

/// Returns the file of a model that is named rather than given, such as `hf:owner/model`: fetched where it is missing.
fn located(py: Python<'_>, path: PathBuf) -> Result<PathBuf> {
    let Some(name) = path.to_str().filter(|name| name.starts_with("hf:") || !name.contains(['.', '/'])) else {
        return Ok(path);
    };
    let hub = module(py, "tokentrie.hub")?;
    if !called(&hub.getattr("is_name")?, &(name,).into_pyobject(py)?, None)?.extract::<bool>()? {
        return Ok(path);
    }
    Ok(called(&hub.getattr("model_file")?, &(name,).into_pyobject(py)?, None)?.extract()?)
}

/// The model inside the package.
fn tiny(py: Python<'_>) -> Result<PathBuf> {
    let package = module(py, "importlib.resources")?.call_method1("files", ("tokentrie",))?;
    let file = package.call_method1("joinpath", ("models/tiny.gguf",))?;
    Ok(file.extract()?)
}
