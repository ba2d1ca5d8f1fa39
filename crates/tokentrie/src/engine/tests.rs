//! Tests of the engine without llama.cpp: random jobs at random times, compared with each job run alone.

use super::cells::Cells;
use super::core::Core;
use super::fake::{Fake, VOCABULARY, id, row_after};
use super::job::{Job, Place, QueuedJob, Seat};
use super::relay::Generating;
use super::relay::Stop;
use llama_sampler::{Draft, GenerateOptions, GenerateTask, Generated, GenerationConstraint, RuntimeError, Task, Watch};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use trie_core::work::{Limits, Work};
use trie_core::{
    AnyConstraint, Choice, ChooseOptions, DecodeCost, Host, Job as AsksForRows, PrefixRows, Scoring, ScoringRequest,
    SpanRules, TokenId, Trie, WantedRows, run,
};
use trie_text::Vocab;

const USUAL: usize = super::EngineOptions::PREFILL_CHUNK;

/// Request of a test.
#[derive(Debug, Clone)]
struct TestRequest {
    prompt: Vec<usize>,
    values: Vec<Vec<usize>>,
    kind: Kind,
    /// The pass before which it comes.
    comes: u64,
    priority: i32,
    /// After so many times that it is asked, it is stopped.
    stops: Option<u32>,
    /// Source of drafts beside other jobs; alone it has none.
    draft: Option<Draft>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Inside,
    Free,
    Choose,
    /// After a prompt with branches.
    Branched,
    Top,
}

#[derive(Debug, Clone, PartialEq)]
enum Gave {
    Text(Vec<TokenId>, llama_sampler::Finish),
    Choice(Vec<f64>),
}

/// Stops after being asked so often.
struct Patience(Option<u32>);

impl Patience {
    fn is_over(&mut self) -> bool {
        let Some(left) = &mut self.0 else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }
}

impl Watch for Patience {
    fn stop(&mut self) -> bool {
        self.is_over()
    }
}

fn vocab() -> Arc<Vocab> {
    let pieces: Vec<String> = (0..VOCABULARY).map(|id| char::from(b'a' + id as u8).to_string()).collect();
    Arc::new(Vocab::from_tokens(pieces, vec![id(VOCABULARY - 1)], vec![id(VOCABULARY - 1)]).unwrap())
}

impl TestRequest {
    fn set(&self) -> Trie {
        let mut builder = Trie::builder();
        for value in &self.values {
            builder.push(None, &value.iter().copied().map(id).collect::<Vec<_>>());
        }
        builder.build().unwrap()
    }

    fn prompt(&self) -> Vec<TokenId> {
        self.prompt.iter().copied().map(id).collect()
    }

    /// Branches of one, two and three tokens between the first and the last part of the prompt.
    fn branches(&self) -> Vec<Range<usize>> {
        let (mut from, tail) = (self.prompt.len() / 3, self.prompt.len().saturating_sub(1));
        let mut branches = Vec::new();
        while self.kind == Kind::Branched && from > 0 && from < tail {
            let end = (from + 1 + branches.len() % 3).min(tail);
            branches.push(from..end);
            from = end;
        }
        branches
    }

    /// Tokens that begin with the prompt, by their positions: those of branches are beside each other.
    fn by_position(&self, tokens: &[TokenId]) -> Vec<TokenId> {
        let branches = self.branches();
        let (Some(first), Some(last)) = (branches.first(), branches.last()) else { return tokens.to_vec() };
        let longest = branches.iter().map(Range::len).max().unwrap_or(0);
        let column = |at: usize| branches.iter().filter_map(move |run| tokens[run.clone()].get(at));
        let between = (0..longest).flat_map(column);
        tokens[..first.start].iter().chain(between).chain(&tokens[last.end..]).copied().collect()
    }

    fn generation<W: Watch>(&self, host: Host, watch: W) -> GenerateTask<W> {
        let vocab = vocab();
        let rules = || Arc::new(SpanRules::for_constraint(AnyConstraint::new(self.set()), VOCABULARY).unwrap());
        let inside =
            if self.kind == Kind::Free { GenerationConstraint::Nothing } else { GenerationConstraint::Rules(rules()) };
        let options = GenerateOptions::default().with_max_tokens(9);
        GenerateTask::new(&vocab, host, &self.prompt(), &inside, &options, watch).unwrap()
    }

    /// `is_alone` leaves the branches to the host.
    fn scoring(&self, host: Host, is_alone: bool) -> Scoring {
        let options = ChooseOptions::new().with_top((self.kind == Kind::Top).then_some(1));
        let (prompt, constraint, branches) = (self.prompt(), self.set().into(), self.branches());
        let branches = if is_alone { &[][..] } else { &branches };
        let asked = ScoringRequest { prompt: &prompt, branches, constraint: &constraint };
        Scoring::per_prompt::<RuntimeError>(host, &[asked], &options).unwrap()
    }

    /// Alone, on a host of its own.
    fn run_alone(&self, host: Host) -> Gave {
        let mut rows = PrefixRows::new(VOCABULARY, |prefixes: &[&[TokenId]]| {
            let row = |prefix: &&[TokenId]| row_after(&self.by_position(prefix));
            Ok::<_, std::convert::Infallible>(prefixes.iter().flat_map(row).collect::<Vec<_>>())
        });
        match self.kind {
            Kind::Inside | Kind::Free => {
                let mut task = self.generation(host, ());
                run(&mut task, &mut rows).unwrap();
                let (generated, ()) = task.finish(false, 1).unwrap();
                Gave::Text(generated.tokens, generated.finish)
            }
            Kind::Choose | Kind::Branched | Kind::Top => {
                let mut scoring = self.scoring(host, true);
                run(&mut scoring, &mut rows).unwrap();
                choice_outcome(&scoring.finish(1))
            }
        }
    }

    fn job(&self, host: Host, number: usize, tell: Sender<(usize, Result<Gave, RuntimeError>)>) -> Box<dyn Job> {
        match self.kind {
            Kind::Inside | Kind::Free => {
                let task = self.generation(host, Patience(self.stops)).with_draft(self.draft.as_ref());
                let done = move |done: Result<(Generated, Patience), RuntimeError>| {
                    let gave = done.map(|(generated, _)| Gave::Text(generated.tokens, generated.finish));
                    tell.send((number, gave)).unwrap();
                };
                Box::new(Generating { task, done })
            }
            Kind::Choose | Kind::Branched | Kind::Top => {
                Box::new(Choosing { scoring: self.scoring(host, false), patience: Patience(self.stops), number, tell })
            }
        }
    }
}

fn choice_outcome(choices: &[Choice]) -> Gave {
    // A value that was not scored has no number.
    Gave::Choice(choices[0].logprobs.iter().map(|p| if p.is_nan() { 1.0 } else { *p }).collect())
}

struct Choosing {
    scoring: Scoring,
    patience: Patience,
    number: usize,
    tell: Sender<(usize, Result<Gave, RuntimeError>)>,
}

impl Job for Choosing {
    fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, _: u32) {
        let Self { scoring, number, tell, .. } = *self;
        tell.send((number, ended.map(|()| choice_outcome(&scoring.finish(1))))).unwrap();
    }
}

impl Task for Choosing {
    fn stop(&mut self) -> bool {
        self.patience.is_over()
    }
}

impl AsksForRows for Choosing {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        Ok(self.scoring.advance()?)
    }

    fn want(&self) -> WantedRows<'_> {
        self.scoring.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        Ok(self.scoring.take(node, row)?)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.scoring.finish_batch(decoded);
    }
}

fn requests() -> impl Strategy<Value = TestRequest> {
    let token = || 0..VOCABULARY - 1;
    let value = prop::collection::vec(token(), 1..5);
    let kind =
        prop_oneof![Just(Kind::Inside), Just(Kind::Free), Just(Kind::Choose), Just(Kind::Branched), Just(Kind::Top)];
    // Prompts that begin alike, often: some of them long enough to be shared.
    let prompt = (0..3usize, 1..20usize, prop::collection::vec(token(), 0..8));
    let prompt = prompt.prop_map(|(base, length, tail)| (0..length).map(|n| (base * 7 + n) % 23).chain(tail).collect());
    let priority = prop_oneof![4 => Just(0), 1 => -1..2];
    (prompt, prop::collection::vec(value, 1..8), kind, 0..40u64, priority, prop::option::weighted(0.2, 1..12u32))
        .prop_map(|(prompt, values, kind, comes, priority, stops)| TestRequest {
            prompt,
            values,
            kind,
            comes,
            priority,
            stops,
            draft: None,
        })
}

/// The same requests with drafts from one source.
fn drafted(mut asked: Vec<TestRequest>, draft: Option<&Draft>) -> Vec<TestRequest> {
    for asked in &mut asked {
        asked.draft = draft.cloned();
    }
    asked
}

/// Branches are asked only of a cache that can be cut.
fn without_branches_unless(has_parts: bool, mut asked: Vec<TestRequest>) -> Vec<TestRequest> {
    for asked in asked.iter_mut().filter(|asked| !has_parts && asked.kind == Kind::Branched) {
        asked.kind = Kind::Choose;
    }
    asked
}

fn queue_job(job: Box<dyn Job>, priority: i32, number: u64) -> QueuedJob {
    let place = Arc::new(Place::take(&Arc::default(), 1).unwrap());
    QueuedJob { job, work: Work::new(Limits::NONE), priority, seat: Seat { place, number } }
}

/// Runs them all; what each gave.
fn together(core: &mut Core<Fake>, asked: &[TestRequest]) -> Vec<Result<Gave, RuntimeError>> {
    let (tell, said): (_, Receiver<_>) = channel();
    let host = core.cells.host();
    let mut gave: Vec<Option<Result<Gave, RuntimeError>>> = asked.iter().map(|_| None).collect();
    let mut passes = 0;
    loop {
        for (number, asked) in asked.iter().enumerate().filter(|(_, asked)| asked.comes == passes) {
            core.add(queue_job(asked.job(host, number, tell.clone()), asked.priority, number as u64));
        }
        let has_work = core.pass();
        assert!(has_work || core.running() == 0, "nothing goes on, and jobs run");
        for (number, result) in said.try_iter() {
            assert!(gave[number].replace(result).is_none(), "a job ends once");
        }
        passes += 1;
        assert!(passes < 20_000, "it never ends");
        if passes > 40 && core.is_idle() {
            break;
        }
    }
    for slot in 0..core.slots.len() {
        let lent = core.branches.lend(slot, core.branches.len()).map(|lent| core.branches.give_back(&lent));
        assert_eq!(lent, Some(()), "what was lent comes back");
    }
    gave.into_iter().map(|gave| gave.expect("each job ends")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(3000)))]

    #[test]
    fn together_as_each_alone(
        asked in prop::collection::vec(requests(), 1..12),
        (slots, branches, n_batch, chunk) in (1..6usize, 1..7usize, 1..30usize, 1..30usize),
        has_parts in prop::bool::weighted(0.8),
        is_drafted in any::<bool>(),
        token_cost in prop_oneof![Just(0.7_f32), Just(0.01)],
    ) {
        // At the least cost drafts have as many branches as they may.
        let draft = is_drafted.then(|| Draft::ngram().with_token_cost(token_cost));
        let asked = drafted(without_branches_unless(has_parts, asked), draft.as_ref());
        let recurrent = || Fake::new(slots, 1, n_batch).without_parts();
        let mut core = Core::new(if has_parts { Fake::new(slots, branches, n_batch) } else { recurrent() }, chunk);
        let host = core.cells.host();
        // The second time, drafts are right.
        let mut gave = together(&mut core, &asked);
        gave.extend(together(&mut core, &asked));
        for (asked, gave) in asked.iter().cycle().zip(gave) {
            match (asked.stops, gave) {
                (_, Ok(gave)) if !matches!(gave, Gave::Text(_, llama_sampler::Finish::Cancelled)) => {
                    prop_assert_eq!(gave, asked.run_alone(host));
                }
                (Some(_), Ok(Gave::Text(tokens, _))) => {
                    // What it wrote until then is how it begins alone.
                    let Gave::Text(all, _) = asked.run_alone(host) else { unreachable!() };
                    prop_assert!(all.starts_with(&tokens));
                }
                (Some(_), Err(RuntimeError::Stopped { .. })) => {}
                (_, gave) => panic!("{gave:?}"),
            }
        }
    }

    #[test]
    fn a_pass_that_fails_concerns_those_in_it(
        asked in prop::collection::vec(requests(), 1..8),
        fails in prop::collection::hash_set(1..40u64, 1..4),
    ) {
        let asked = drafted(asked, Some(&Draft::prompt().with_token_cost(0.01)));
        let mut core = Core::new(Fake::new(3, 4, 9).failing(fails), 4);
        let host = core.cells.host();
        for (asked, gave) in asked.iter().zip(together(&mut core, &asked)) {
            match gave {
                Ok(gave) if asked.stops.is_none() => prop_assert_eq!(gave, asked.run_alone(host)),
                Ok(_) | Err(RuntimeError::Stopped { .. } | RuntimeError::Decode { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn apart_as_on_an_engine_that_did_nothing_before(
        asked in prop::collection::vec(requests(), 1..12),
        fails in prop::option::weighted(0.3, prop::collection::hash_set(1..60u64, 1..4)),
        (slots, branches, n_batch, piece) in (1..6usize, 1..7usize, 1..30usize, 1..9usize),
        chunk in 1..30usize,
        has_parts in prop::bool::weighted(0.8),
        is_drafted in any::<bool>(),
    ) {
        let draft = is_drafted.then(Draft::prompt);
        let asked = drafted(without_branches_unless(has_parts, asked), draft.as_ref());
        let (branches, fails) = (if has_parts { branches } else { 1 }, fails.unwrap_or_default());
        let fake = |slots| {
            let fake = Fake::apart(slots, branches, n_batch, piece);
            if has_parts { fake } else { fake.without_parts() }
        };
        let mut core = Core::new(fake(slots).failing(fails), chunk);
        let gave = together(&mut core, &asked);
        for (asked, gave) in asked.into_iter().zip(gave) {
            match gave {
                Ok(gave) if asked.stops.is_none() => {
                    let first = TestRequest { comes: 0, ..asked };
                    let alone = together(&mut Core::new(fake(1), USUAL), &[first]).pop().unwrap();
                    prop_assert_eq!(gave, alone.unwrap());
                }
                Ok(_) | Err(RuntimeError::Stopped { .. } | RuntimeError::Decode { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn generation(prompt: std::ops::Range<usize>) -> TestRequest {
    let prompt = prompt.map(|token| token % 23).collect();
    TestRequest {
        prompt,
        values: vec![vec![1, 2], vec![3]],
        kind: Kind::Free,
        comes: 0,
        priority: 0,
        stops: None,
        draft: None,
    }
}

#[test]
fn a_long_prompt_stops_nobody() {
    let mut core = Core::new(Fake::new(3, 2, 6), USUAL);
    let (tell, said) = channel();
    let host = core.cells.host();
    core.add(queue_job(generation(0..30).job(host, 0, tell.clone()), 0, 0));
    core.pass();
    core.add(queue_job(generation(40..41).job(host, 1, tell), 0, 1));
    // Its prompt is one token: each pass gives it one more, whatever the other has to decode.
    for _ in 0..9 {
        assert!(said.try_iter().all(|(number, _)| number == 0));
        core.pass();
    }
    core.go_on();
    assert!(said.try_iter().any(|(number, _)| number == 1), "nine tokens in nine passes");
}

#[test]
fn a_long_prompt_makes_no_pass_long_for_a_short_reply() {
    let mut core = Core::new(Fake::new(3, 2, 16), 3);
    let (tell, said) = channel();
    let host = core.cells.host();
    core.add(queue_job(generation(0..30).job(host, 0, tell.clone()), 0, 0));
    core.add(queue_job(generation(40..41).job(host, 1, tell), 0, 1));
    let mut longest = 0;
    while !said.try_iter().any(|(number, _)| number == 1) {
        let before = core.counts.tokens;
        core.pass();
        longest = longest.max(core.counts.tokens - before);
    }
    assert_eq!(longest, 3 + 1, "a chunk and its own token");
}

#[test]
fn what_prompts_begin_with_is_decoded_once() {
    let mut core = Core::new(Fake::new(4, 2, 512), USUAL);
    let shared = generation(0..36);
    let mut other = shared.clone();
    other.prompt.push(22);
    let asked = [shared.clone(), other.clone(), shared];
    let gave = together(&mut core, &asked);
    let host = core.cells.host();
    assert!(asked.iter().zip(gave).all(|(asked, gave)| gave.unwrap() == asked.run_alone(host)));
    assert!(core.counts.tokens_reused >= 35 + 35, "{:?}", core.counts);
    let before = core.counts;
    other.comes = 0;
    together(&mut core, &[other]);
    assert!(core.counts.tokens - before.tokens < 12, "the slot that holds it is taken again");
}

#[test]
fn what_was_written_before_is_written_in_fewer_passes() {
    let mut core = Core::new(Fake::new(2, 2, 16), USUAL);
    let host = core.cells.host();
    let asked = drafted(vec![generation(0..20)], Some(&Draft::ngram()));
    let mut passes = || {
        let before = core.counts.passes;
        assert_eq!(together(&mut core, &asked).pop().unwrap().unwrap(), asked[0].run_alone(host));
        core.counts.passes - before
    };
    let (first, second) = (passes(), passes());
    assert!(second + 5 <= first, "{second} passes after {first}");
}

#[test]
fn the_branch_of_a_draft_that_is_right_goes_on() {
    // Eight positions, each with one of two tokens: a draft has both.
    let values = (0..256_usize).map(|value| (0..8).map(|at| 2 * at + (value >> at & 1)).collect()).collect();
    let whole = TestRequest { values, kind: Kind::Inside, ..generation(0..5) };
    let (mut plain, mut drafted) = (0, 0);
    for first in 0..9 {
        let asked = TestRequest { prompt: vec![first, 3, 5], ..whole.clone() };
        let passes = |asked: TestRequest, branches: usize| {
            let mut core = Core::new(Fake::new(2, branches, 30), USUAL);
            let alone = asked.run_alone(core.cells.host());
            assert_eq!(together(&mut core, &[asked]).pop().unwrap().unwrap(), alone);
            core.counts.passes
        };
        plain += passes(asked.clone(), 16);
        let with_draft = TestRequest { draft: Some(Draft::prompt().with_token_cost(0.01)), ..asked };
        drafted += passes(with_draft.clone(), 16);
        // Without free sequences the first path is drafted.
        assert!(passes(with_draft, 1) <= plain);
    }
    assert!(drafted * 2 <= plain, "{drafted} passes, {plain} without drafts");
}

#[test]
fn a_job_that_panics_is_alone_in_that() {
    /// Panics when it gets a row.
    struct Bad(Arc<Mutex<Option<RuntimeError>>>, Vec<TokenId>);
    impl Task for Bad {
        fn stop(&mut self) -> bool {
            false
        }
    }
    impl AsksForRows for Bad {
        type Error = RuntimeError;
        fn advance(&mut self) -> Result<bool, RuntimeError> {
            Ok(true)
        }
        fn want(&self) -> WantedRows<'_> {
            WantedRows::row_after(&self.1)
        }
        fn take(&mut self, _: Option<usize>, _: &[f32]) -> Result<(), RuntimeError> {
            panic!("as told")
        }
        fn finish_batch(&mut self, _: DecodeCost) {}
    }
    impl Job for Bad {
        fn finish(self: Box<Self>, ended: Result<(), RuntimeError>, _: u32) {
            *self.0.lock().unwrap() = ended.err();
        }
    }
    let mut core = Core::new(Fake::new(2, 2, 8), USUAL);
    let heard = Arc::new(Mutex::new(None));
    core.add(queue_job(Box::new(Bad(Arc::clone(&heard), vec![id(3)])), 0, 99));
    let asked = [generation(0..5)];
    let host = core.cells.host();
    assert_eq!(together(&mut core, &asked).pop().unwrap().unwrap(), asked[0].run_alone(host));
    assert_eq!(heard.lock().unwrap().take().unwrap().to_string(), "a job failed inside: as told");
}

#[test]
fn stops_reach_who_waits() {
    let stop = Stop::default();
    assert!(!stop.is_stopped());
    stop.clone().stop();
    assert!(stop.is_stopped());
}
