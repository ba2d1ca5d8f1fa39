//! An engine, with the interface by which calls reach its thread.

use super::cells::Cells;
use super::core::Core;
use super::inbox::{ExclusiveTask, SharedInbox, run};
use super::job::{Job, Place, QueuedJob, Seat};
use super::options::{Batching, EngineOptions, EngineStats};
use super::pool::Pool;
use super::relay::{Completing, Generating, JobEvent, Reading, Relay, Row, Stop, wait};
use llama_sampler::{
    CompletedJob, Context, ContextOptions, Draft, GenerateOptions, GenerateTask, Generated, GenerationConstraint,
    Model, Prefix, ReadingTask, RuntimeError, ScoringTask, Step, TokenLogprob, Watch,
};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use trie_core::work::{Limits, Work};
use trie_core::{Choice, ChooseError, ChooseOptions, Host, Scoring, ScoringError, ScoringRequest, TokenId};
use trie_text::Vocab;

/// Many calls of one model, from any threads: they share its forward passes. A call waits on its own thread.
///
/// Dropping the engine ends running calls with [`RuntimeError::Closed`].
#[derive(Debug)]
pub struct Engine {
    shared: Arc<SharedInbox>,
    host: Host,
    vocab: Arc<Vocab>,
    options: EngineOptions,
    slots: usize,
    most_threads: u32,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that the thread is in.
    process: u32,
}

/// The start of a generation: the prompt, the constraint, and the source of drafts.
#[derive(Debug, Clone, Copy)]
pub struct GenerationStart<'g> {
    /// Tokens before the output.
    pub prompt: &'g [TokenId],
    /// Constraint of the output.
    pub inside: &'g GenerationConstraint,
    /// Source of drafts of the generation, if it has any.
    pub draft: Option<&'g Draft>,
}

impl Engine {
    /// Returns an engine of a model. The options of the context give the number of slots.
    ///
    /// # Errors
    /// As [`Model::context`]; a thread that cannot be started.
    pub fn new(model: &Model, of_context: ContextOptions, options: EngineOptions) -> Result<Self, RuntimeError> {
        options.check()?;
        let pool = Pool::new(model, of_context, options.batching)?;
        let (host, vocab, slots, most_threads) =
            (pool.host(), Arc::clone(model.vocab()), pool.slots(), pool.most_threads());
        let shared = Arc::new(SharedInbox::default());
        shared.inbox().stats.slots = slots;
        let of_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("tokentrie-engine".into())
            .spawn(move || run(&of_thread, Core::new(pool, options.prefill_chunk)));
        let thread = thread.map_err(|error| RuntimeError::Backend { reason: format!("no thread: {error}") })?;
        let process = std::process::id();
        let thread = Mutex::new(Some(thread));
        Ok(Self { shared, host, vocab, options, slots, most_threads, thread, process })
    }

    /// Checks that the generations of this engine may have drafts from a source.
    ///
    /// # Errors
    /// With [`Batching::Fixed`], a source whose drafts depend on earlier calls.
    pub fn check_draft(&self, draft: &Draft) -> Result<(), RuntimeError> {
        match draft.is_unfixed().filter(|_| self.is_fixed()) {
            Some(reason) => {
                let reason = format!("this draft is not supported with fixed batching: {reason}");
                Err(RuntimeError::Draft { reason })
            }
            None => Ok(()),
        }
    }

    /// Returns the limits of a job's requests.
    pub fn host(&self) -> Host {
        self.host
    }

    /// Returns the largest number of threads of a forward pass.
    pub fn most_threads(&self) -> u32 {
        self.most_threads
    }

    /// Returns the vocabulary of the model.
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// Returns the state and statistics of the engine.
    pub fn stats(&self) -> EngineStats {
        let (stats, calls) = {
            let inbox = self.shared.inbox();
            (inbox.stats, inbox.calls)
        };
        // Who has heard of the end of its call has given its place back, and the thread may not have said so yet.
        let taken = self.shared.taken.load(Ordering::Relaxed);
        let running = stats.running.min(taken);
        let queued = taken - running;
        EngineStats { running, queued, calls: calls.saturating_sub(queued as u64), slots: self.slots, ..stats }
    }

    /// Runs a generation under its constraint; see [`Context::generate`]. `watch` is called on this thread, and may be
    /// told of a token after later tokens are already generated.
    ///
    /// # Errors
    /// As [`Context::generate`]; a full queue, a closed engine, another process.
    pub fn generate(
        &self,
        start: GenerationStart<'_>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        let each = std::slice::from_ref(options);
        let all = self.generate_each(start, each, |relay| relay, |_, generated| generated, watch)?;
        all.into_iter().next().ok_or(RuntimeError::Closed)
    }

    /// Returns a generation as a task for this engine.
    pub(crate) fn task<W: Watch>(
        &self,
        start: GenerationStart<'_>,
        options: &GenerateOptions,
        watch: W,
    ) -> Result<GenerateTask<W>, RuntimeError> {
        let task = GenerateTask::new(&self.vocab, self.host, start.prompt, start.inside, options, watch)?;
        Ok(task.with_draft(start.draft))
    }

    /// Runs a generation for each of these options, side by side after one prompt; see [`Engine::generate`]. Each has a
    /// watch of its own inside the engine: `wrap` builds it around the relay of tokens, and `unwrap` turns it and the
    /// output into the result. `watch` is not told which of several generations a token belongs to.
    pub(crate) fn generate_each<W: Watch + Send + 'static>(
        &self,
        start: GenerationStart<'_>,
        options: &[GenerateOptions],
        wrap: impl Fn(Relay<Generated>) -> W,
        unwrap: impl Fn(W, Generated) -> Generated + Copy + Send + 'static,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Generated>, RuntimeError> {
        let (wants_steps, wants_shares, priority) = (watch.wants_steps(), watch.wants_shares(), watch.priority());
        let make = |options: &GenerateOptions, tell: Sender<JobEvent<Step, Generated>>, stop| {
            let relay = wrap(Relay { stop, wants_steps, wants_shares, tell: tell.clone() });
            let task = self.task(start, options, relay)?;
            let done = move |done: Result<(Generated, W), RuntimeError>| {
                // Who does not listen any more has stopped it.
                let _ = tell.send(JobEvent::Done(done.map(|(generated, watch)| unwrap(watch, generated))));
            };
            Ok(Box::new(Generating { task, done }) as Box<dyn Job>)
        };
        let jobs = options.iter().map(|options| |tell, stop| make(options, tell, stop));
        self.call_each(priority, jobs, &mut |step: Option<Step>| {
            if let Some(step) = step {
                watch.step(&step);
            }
            watch.stop()
        })
    }

    /// The values of a constraint after each prompt; see [`trie_core::choose_many`]. With [`Batching::Fixed`] each
    /// prompt is a job of its own, one after the other in the place of one call.
    ///
    /// # Errors
    /// As [`trie_core::choose_many`]; a full queue, a closed engine, another process.
    pub(super) fn score(
        &self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        if !self.is_fixed() || asked.len() < 2 {
            let scoring = Scoring::per_prompt::<RuntimeError>(self.host, asked, options)?;
            return self.score_in(&self.seat()?, scoring, watch);
        }
        let scorings = asked.iter().enumerate().map(|(number, asked)| {
            Scoring::per_prompt::<RuntimeError>(self.host, std::slice::from_ref(asked), options).map_err(|error| {
                match error {
                    ChooseError::Prompt { problem, .. } => ChooseError::Prompt { number, problem },
                    error => error,
                }
            })
        });
        // All are made before the first is asked: a prompt that is refused costs nothing.
        let scorings: Vec<Scoring> = scorings.collect::<Result<_, _>>()?;
        let seat = self.seat()?;
        let mut choices = Vec::with_capacity(scorings.len());
        for scoring in scorings {
            choices.append(&mut self.score_in(&seat, scoring, watch)?);
        }
        Ok(choices)
    }

    fn score_in(&self, seat: &Seat, scoring: Scoring, watch: &mut dyn Watch) -> Result<Vec<Choice>, RuntimeError> {
        let (scoring, n_threads) = self.complete_in(seat, scoring, watch)?.into_whole()?;
        Ok(scoring.finish(n_threads))
    }

    /// Runs a job to its end, or until `watch` stops it.
    ///
    /// # Errors
    /// Its own; a full queue, a closed engine, another process.
    pub(super) fn complete<J: trie_core::Job<Error = ScoringError> + Send + 'static>(
        &self,
        job: J,
        watch: &mut dyn Watch,
    ) -> Result<CompletedJob<J>, RuntimeError> {
        self.complete_in(&self.seat()?, job, watch)
    }

    fn complete_in<J: trie_core::Job<Error = ScoringError> + Send + 'static>(
        &self,
        seat: &Seat,
        job: J,
        watch: &mut dyn Watch,
    ) -> Result<CompletedJob<J>, RuntimeError> {
        let ((tell, said), stop) = (channel(), Stop::default());
        let of_work = stop.clone();
        let work = Work::stopped_by(Limits::NONE, move || of_work.is_stopped());
        let job = Box::new(Completing { task: ScoringTask { job, watch: stop.clone() }, tell });
        self.submit_to(seat, job, work, watch.priority())?;
        wait(&said, &stop, &mut |_: Option<()>| watch.stop())
    }

    /// Returns whether the logits of a call never depend on other calls.
    pub(super) fn is_fixed(&self) -> bool {
        self.options.batching == Batching::Fixed
    }

    /// The row after some tokens.
    ///
    /// # Errors
    /// Tokens that do not fit; a full queue, a closed engine, another process.
    pub(super) fn row(&self, tokens: &[TokenId], watch: &mut dyn Watch) -> Result<Vec<f32>, RuntimeError> {
        let tokens = tokens.to_vec();
        let job = |tell, stop| Ok(Box::new(Row { tokens, found: None, stop, tell }) as Box<dyn Job>);
        self.call(watch.priority(), job, &mut |_: Option<()>| watch.stop())
    }

    /// Computes the log-probability of each token of a prompt but the first.
    ///
    /// # Errors
    /// As [`ReadingTask::new`]; a full queue, a closed engine, another process.
    pub(super) fn read(
        &self,
        tokens: &[TokenId],
        top: u32,
        watch: &mut dyn Watch,
    ) -> Result<Vec<TokenLogprob>, RuntimeError> {
        let job = |tell, stop| {
            let task = ReadingTask::new(self.host, tokens, top, stop)?;
            Ok(Box::new(Reading { task, tell }) as Box<dyn Job>)
        };
        self.call(watch.priority(), job, &mut |_: Option<()>| watch.stop())
    }

    /// Clears the cache of all that no call uses, for measurements.
    ///
    /// # Errors
    /// As [`Engine::run_exclusively`].
    pub fn clear(&self) -> Result<(), RuntimeError> {
        self.run_exclusively(|_| ())
    }

    /// Returns the KV cache of some tokens, which are decoded for it once everything that runs now is over.
    ///
    /// # Errors
    /// As [`Context::prefix`] and [`Engine::run_exclusively`]; slots that are fixed: they decode otherwise.
    pub(super) fn prefix(&self, tokens: &[TokenId], watch: &mut dyn Watch) -> Result<Prefix, RuntimeError> {
        self.check_shares()?;
        let ((tell, said), stop, tokens) = (channel(), Stop::default(), tokens.to_vec());
        let stopped = stop.clone();
        self.submit_alone(Box::new(move |core| {
            let _ =
                tell.send(JobEvent::Done(core.with_first(|first| first.prefix(&tokens, &mut || stopped.is_stopped()))));
        }))?;
        wait(&said, &stop, &mut |_: Option<()>| watch.stop())
    }

    /// Lets a slot hold a prefix, for calls that begin with it, once all that runs now is over.
    ///
    /// # Errors
    /// As [`Context::restore`] and [`Engine::run_exclusively`]; slots that are fixed.
    pub(super) fn restore(&self, prefix: Prefix) -> Result<(), RuntimeError> {
        self.check_shares()?;
        let (tell, said) = channel();
        self.submit_alone(Box::new(move |core| {
            let _ = tell.send(core.restore(&prefix));
        }))?;
        said.recv().map_err(|_| RuntimeError::Closed)?
    }

    fn check_shares(&self) -> Result<(), RuntimeError> {
        if self.is_fixed() { Err(RuntimeError::FixedPrefix) } else { Ok(()) }
    }

    /// Runs a job of a priority, and waits for its end. `hear` gets what it says on the way, or nothing from time to
    /// time, and says whether it is to stop.
    pub(crate) fn call<M: Send + 'static, T: Send + 'static>(
        &self,
        priority: i32,
        make: impl FnOnce(Sender<JobEvent<M, T>>, Stop) -> Result<Box<dyn Job>, RuntimeError>,
        hear: &mut dyn FnMut(Option<M>) -> bool,
    ) -> Result<T, RuntimeError> {
        self.call_each(priority, [make], hear)?.pop().ok_or(RuntimeError::Closed)
    }

    /// Runs jobs side by side, and waits for all of them. The first that fails ends the others, and is the error.
    pub(crate) fn call_each<M: Send + 'static, T: Send + 'static>(
        &self,
        priority: i32,
        jobs: impl IntoIterator<Item = impl FnOnce(Sender<JobEvent<M, T>>, Stop) -> Result<Box<dyn Job>, RuntimeError>>,
        hear: &mut dyn FnMut(Option<M>) -> bool,
    ) -> Result<Vec<T>, RuntimeError> {
        let (stop, mut failed, mut running, mut all) = (Stop::default(), None, Vec::new(), Vec::new());
        for make in jobs {
            let ((tell, said), of_work) = (channel(), stop.clone());
            let work = Work::stopped_by(Limits::NONE, move || of_work.is_stopped());
            if let Err(error) = make(tell, stop.clone()).and_then(|job| self.submit(job, work, priority)) {
                stop.stop();
                failed = Some(error);
                break;
            }
            running.push(said);
        }
        for said in running {
            match wait(&said, &stop, hear) {
                Ok(done) => all.push(done),
                Err(error) => {
                    stop.stop();
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(all), Err)
    }

    fn submit(&self, job: Box<dyn Job>, work: Work, priority: i32) -> Result<(), RuntimeError> {
        self.submit_to(&self.seat()?, job, work, priority)
    }

    /// A place among those that run and wait, for the jobs of one call.
    fn seat(&self) -> Result<Seat, RuntimeError> {
        self.check()?;
        let mut inbox = self.shared.inbox();
        if inbox.is_closing {
            return Err(RuntimeError::Closed);
        }
        let most = self.options.max_queue.saturating_add(self.slots);
        let place = Place::take(&self.shared.taken, most)
            .map_err(|taken| RuntimeError::QueueFull { queued: taken.saturating_sub(self.slots) })?;
        inbox.calls += 1;
        Ok(Seat { place: Arc::new(place), number: inbox.calls })
    }

    fn submit_to(&self, seat: &Seat, job: Box<dyn Job>, work: Work, priority: i32) -> Result<(), RuntimeError> {
        self.check()?;
        let mut inbox = self.shared.inbox();
        if inbox.is_closing {
            return Err(RuntimeError::Closed);
        }
        inbox.arrived.push(QueuedJob { job, work, priority, seat: seat.clone() });
        drop(inbox);
        self.shared.came.notify_one();
        Ok(())
    }

    /// Runs work with exclusive use of the context, once all running calls are over. New calls wait meanwhile.
    ///
    /// # Errors
    /// A closed engine, another process.
    pub fn run_exclusively<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Context) -> T + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let (tell, said) = channel();
        self.submit_alone(Box::new(move |core| {
            let _ = tell.send(core.with_first(work));
        }))?;
        said.recv().map_err(|_| RuntimeError::Closed)
    }

    fn submit_alone(&self, work: ExclusiveTask) -> Result<(), RuntimeError> {
        self.check()?;
        let mut inbox = self.shared.inbox();
        if inbox.is_closing {
            return Err(RuntimeError::Closed);
        }
        inbox.alone.push_back(work);
        drop(inbox);
        self.shared.came.notify_one();
        Ok(())
    }

    /// Stops all calls that were submitted before: they end as if each had been stopped.
    pub fn cancel(&self) {
        self.shared.inbox().cancelled = true;
        self.shared.came.notify_one();
    }

    /// Ends running calls, and refuses new ones. May be repeated.
    pub fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        self.shared.inbox().is_closing = true;
        self.shared.came.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It panics no more than a job does.
            let _ = thread.join();
        }
    }

    fn check(&self) -> Result<(), RuntimeError> {
        if self.process == std::process::id() { Ok(()) } else { Err(RuntimeError::Forked) }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}
