//! Drafted generations beside undrafted ones, over random rules, on a model that is a hash.

use super::drafting::Drafting;
use super::{Completion, GenerateOptions, GenerateTask, Generated, GenerationConstraint};
use crate::runtime::draft::{Ahead, Length, Proposer, TokenCost};
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::{Step, Watch};
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use test_budget::Random;
use trie_core::{
    After, AnyConstraint, DrawSettings, Host, LeafSet, LogitBias, Mode, PrefixRows, SamplerOptions, SpanRules, TokenId,
    Trie, Unconstrained, run,
};
use trie_rules::{ByRule, Regex};
use trie_text::{Form, Part, SlotValues, Vocab};

const PIECES: [&str; 20] =
    ["a", "b", "c", "d", "ab", "abc", "cd", "da", "\"", "{", "}", ": ", "1", "2", "12", " ", "x", ".", "\n", "<end>"];
const END: usize = PIECES.len() - 1;

const PATTERNS: [&str; 8] = [
    "(ab|cd)*x",
    "[ab]{2,9}",
    "\\{\"a\": (1|2)+, \"cd\": \"[a-d]*\"\\}|\\{\"a\": (1|2)+\\}",
    "abcdabcd(1|2)abcdabcdx?",
    "(a|b|c|d)+",
    "a{12}b?",
    "x( x)*",
    "(12|1|2)+\\.(12|1|2)+",
];

fn id(id: usize) -> TokenId {
    TokenId::new(id as u32).unwrap()
}

fn row_after(seed: u64, tokens: &[TokenId]) -> Vec<f32> {
    // The last tokens alone, so that texts repeat.
    let last = &tokens[tokens.len().saturating_sub(3)..];
    let logit = |next: usize| {
        let mut hasher = DefaultHasher::new();
        (seed, last, next).hash(&mut hasher);
        (hasher.finish() % 1000) as f32 / 100.0
    };
    (0..PIECES.len()).map(logit).collect()
}

/// Guesses the tokens that will come, and now and then any other.
struct Oracle {
    right: Vec<TokenId>,
    random: Random,
}

impl Proposer for Oracle {
    fn guess(
        &mut self,
        tokens: &[TokenId],
        most: usize,
        _: &mut dyn Ahead,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<TokenId>, RuntimeError> {
        let mut guesses = Vec::new();
        for _ in 0..most {
            let guess = match self.random.below(8) {
                // Also tokens that no vocabulary has.
                0 | 1 => Some(id(self.random.below(PIECES.len() + 2))),
                2 => None,
                _ => self.right.get(tokens.len()).copied(),
            };
            guesses.extend(guess.filter(|guess| !guesses.contains(guess)));
        }
        Ok(guesses)
    }
}

/// Hears of every token, and stops when it has heard of this many.
struct Listener {
    steps: Vec<Step>,
    most: usize,
}

impl Watch for Listener {
    fn stop(&mut self) -> bool {
        self.steps.len() >= self.most
    }

    fn wants_steps(&self) -> bool {
        true
    }

    fn step(&mut self, step: &Step) {
        self.steps.push(step.clone());
    }
}

/// A generation that can be repeated.
struct Case {
    seed: u64,
    vocab: Arc<Vocab>,
    prompt: Vec<TokenId>,
    inside: GenerationConstraint,
    options: GenerateOptions,
    room: usize,
    stops_after: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let vocab = Arc::new(Vocab::from_tokens(PIECES, vec![id(END)], vec![id(END)]).unwrap());
        let prompt: Vec<TokenId> = (0..=random.below(6)).map(|_| id(random.below(END))).collect();
        let inside = constraint(&mut random, &vocab);
        let mode = if random.one_in(2) { Mode::Greedy } else { Mode::Sampled };
        let plain = DrawSettings { temperature: 2.0, top_k: 8, ..Default::default() };
        let penalised = DrawSettings { repeat_penalty: 1.3, presence_penalty: 0.5, penalty_last_n: 5, ..plain };
        let draw = if random.one_in(3) { penalised } else { plain };
        let sampling = SamplerOptions { mode, draw, seed: Some(random.below(1000) as u32) };
        let complete = [Completion::Off, Completion::Whole, Completion::Closed][random.below(3)];
        let bias = LogitBias::new([(id(random.below(END)), 3.0)]);
        let options = GenerateOptions::default()
            .with_sampling(sampling)
            .with_max_tokens(1 + random.below(30))
            .with_complete(complete)
            .with_logprobs(random.one_in(3).then_some(2))
            .with_trail(random.one_in(3))
            .with_logit_bias(if random.one_in(3) { bias } else { LogitBias::default() });
        let room = prompt.len() + if random.one_in(3) { 10 + random.below(12) } else { 60 };
        let stops_after = if random.one_in(5) { random.below(9) } else { usize::MAX };
        Self { seed, vocab, prompt, inside, options, room, stops_after }
    }

    fn run(&self, drafting: Option<Drafting>) -> Result<(Generated, Vec<Step>), String> {
        let host = Host { n_vocab: PIECES.len(), room: self.room, rows_at_once: 8 };
        let rows = |prefixes: &[&[TokenId]]| {
            Ok::<_, std::convert::Infallible>(
                prefixes.iter().flat_map(|prefix| row_after(self.seed, prefix)).collect::<Vec<f32>>(),
            )
        };
        let mut rows = PrefixRows::new(PIECES.len(), rows).with_room(self.room);
        let listener = Listener { steps: Vec::new(), most: self.stops_after };
        let task = GenerateTask::new(&self.vocab, host, &self.prompt, &self.inside, &self.options, listener);
        let mut task = Stoppable { task: task.map_err(|error| error.to_string())?, is_stopped: false };
        task.task.drafting = drafting;
        run(&mut task, &mut rows).map_err(|error| format!("{error:?}"))?;
        let (generated, listener) = task.task.finish(task.is_stopped, 1).map_err(|error| error.to_string())?;
        Ok((generated, listener.steps))
    }
}

/// Ends where its watch says so, as on any host.
struct Stoppable<W> {
    task: GenerateTask<W>,
    is_stopped: bool,
}

impl<W: Watch> trie_core::Job for Stoppable<W> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        use crate::runtime::task::Task;
        let wants = self.task.advance()?;
        self.is_stopped = wants && self.task.stop();
        Ok(wants && !self.is_stopped)
    }

    fn want(&self) -> trie_core::WantedRows<'_> {
        self.task.want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.task.take(node, row)
    }

    fn finish_batch(&mut self, decoded: trie_core::DecodeCost) {
        self.task.finish_batch(decoded);
    }
}

fn constraint(random: &mut Random, vocab: &Arc<Vocab>) -> GenerationConstraint {
    let pattern = PATTERNS[random.below(PATTERNS.len())];
    let regex = || Regex::new(pattern).unwrap();
    let constraint = match random.below(5) {
        0 => return GenerationConstraint::Nothing,
        1 => return GenerationConstraint::Form(Arc::new(form(random, regex()))),
        2 => AnyConstraint::new(set(random)),
        3 => AnyConstraint::new(Unconstrained),
        _ => AnyConstraint::new(ByRule::new(regex(), vocab.spelling()).unwrap()),
    };
    rules(random, constraint, vocab)
}

fn set(random: &mut Random) -> Trie {
    let mut set = Trie::builder();
    for _ in 0..=random.below(6) {
        let value: Vec<TokenId> = (0..=random.below(8)).map(|_| id(random.below(3))).collect();
        set.push(None, &value);
    }
    set.build().unwrap()
}

fn rules(random: &mut Random, constraint: AnyConstraint, vocab: &Vocab) -> GenerationConstraint {
    let after = if random.one_in(2) { After::Stop } else { After::Free };
    let rules = SpanRules::for_constraint(constraint, vocab.len()).unwrap();
    let ends = if random.one_in(2) { vec![id(END)] } else { Vec::new() };
    let rules = rules.with_end_tokens(ends).and_then(|rules| rules.with_end_of_generation(vec![id(END)]));
    GenerationConstraint::Rules(Arc::new(rules.unwrap().with_after(after).unwrap()))
}

fn form(random: &mut Random, regex: Regex) -> Form {
    let name = |name: &str| name.to_owned();
    let mut parts = vec![Part::Literal(name("{\"a\": "))];
    let texts = vec![name("ab"), name("abc"), name("dada"), name("1")];
    let text = Part::Text {
        name: name("text"),
        stops: vec![name("\"")],
        max_tokens: 1 + random.below(9),
        exclude: vec!['x'],
        pattern: None,
    };
    let slots = [
        Part::Slot { name: name("set"), values: SlotValues::Texts(texts) },
        Part::Slot { name: name("rule"), values: SlotValues::Rule(Arc::new(regex)) },
        text,
    ];
    let skipped = random.below(4);
    for (number, slot) in slots.into_iter().enumerate().filter(|&(number, _)| number != skipped) {
        parts.extend([slot, Part::Literal(name(["\": ", "}{", "\"}"][number]))]);
    }
    Form::new(parts).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(100_000)))]

    #[test]
    fn a_draft_changes_the_cost_and_nothing_else(seed: u64) {
        let case = Case::new(seed);
        let plain = case.run(None);
        let right = match &plain {
            Ok((generated, _)) => {
                [&case.prompt[..generated.stats.prompt_tokens], &generated.tokens].concat()
            }
            Err(_) => case.prompt.clone(),
        };
        let oracle = Oracle { right, random: Random(seed ^ 1) };
        // At the least cost trees are as large as they may be.
        let cost = [TokenCost::PROCESSOR, TokenCost::CARD, TokenCost::LEAST][seed as usize % 3];
        let drafted = case.run(Some(Drafting::with_proposer(Box::new(oracle), Length::new(cost))));
        match (plain, drafted) {
            (Ok((plain, steps)), Ok((drafted, drafted_steps))) => {
                prop_assert_eq!(steps, drafted_steps);
                let (was, is) = (plain.stats, drafted.stats);
                prop_assert!(is.forward_passes <= was.forward_passes, "{is:?} {was:?}");
                prop_assert!(is.accepted_tokens <= is.drafted_tokens);
                let saved = (was.forward_passes - is.forward_passes) as usize;
                prop_assert!(saved <= is.accepted_tokens, "{is:?} {was:?}");
                if !matches!(case.inside, GenerationConstraint::Form(_)) {
                    // The row after the last token of all is of no use.
                    prop_assert!(is.accepted_tokens <= saved + 1, "{is:?} {was:?}");
                }
                prop_assert_eq!((is.forced_tokens, is.sampled_tokens), (was.forced_tokens, was.sampled_tokens));
                prop_assert_eq!(is.forward_passes_saved, was.forward_passes_saved);
                prop_assert_eq!(Generated { stats: was, ..drafted }, plain);
            }
            (plain, drafted) => prop_assert_eq!(plain.err(), drafted.err()),
        }
    }
}

#[test]
fn right_guesses_save_passes() {
    let mut saved = 0;
    for seed in 0..200 {
        let case = Case::new(seed);
        let Ok((plain, _)) = case.run(None) else { continue };
        let right = [&case.prompt[..plain.stats.prompt_tokens], &plain.tokens].concat();
        let oracle = Oracle { right, random: Random(seed) };
        let (drafted, _) =
            case.run(Some(Drafting::with_proposer(Box::new(oracle), Length::new(TokenCost::CARD)))).unwrap();
        saved += plain.stats.forward_passes - drafted.stats.forward_passes;
    }
    assert!(saved > 100, "{saved} passes saved");
}

#[test]
fn sets_whose_values_fit_end_as_those_that_are_searched() {
    let mut completed = 0;
    for seed in 0..u64::from(test_budget::cases(20_000)) {
        let mut case = Case::new(seed);
        let set = set(&mut Random(seed));
        // Of a filtered set it is not known how long its values are.
        let searched = set.filter(&LeafSet::full(set.len())).unwrap();
        let mut run = |constraint| {
            case.inside = rules(&mut Random(seed ^ 1), constraint, &case.vocab);
            case.run(None)
        };
        match (run(AnyConstraint::new(set)), run(AnyConstraint::new(searched))) {
            (Ok((known, steps)), Ok((searched, searched_steps))) => {
                completed += u32::from(searched.completed);
                assert_eq!(steps, searched_steps, "{seed}");
                assert_eq!(Generated { stats: searched.stats, ..known }, searched, "{seed}");
            }
            (known, searched) => assert_eq!(known.err(), searched.err(), "{seed}"),
        }
    }
    assert!(completed > 0);
}
