//! Probabilities of whole constraints, and draws from them, beside sums over all texts.

use crate::common::{Naive, id, ids};
use crate::scoring::endless::Automaton;
use crate::scoring::table::{Model, Stopped, Table, VOCABULARY};
use crate::scoring::twin::{exact, mass, sequences};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use trie_core::{
    AnyConstraint, CorrectedDraw, CorrectionJob, CorrectionOptions, DecodeCost, Host, LogitBias, Probability,
    ProbabilityJob, ProbabilityOptions, RunError, SpanRules, TokenId, TokenTree, TreeDecoder, Trie, run,
};

const LIMIT: usize = 5;

fn rules(constraint: AnyConstraint, ends: &[TokenId]) -> Arc<SpanRules> {
    let rules = SpanRules::for_constraint(constraint, VOCABULARY).unwrap();
    Arc::new(rules.with_end_tokens(ends).unwrap())
}

fn probability(
    table: &mut Table,
    rules: &Arc<SpanRules>,
    text: Option<AnyConstraint>,
    options: ProbabilityOptions,
) -> Probability {
    let host = Host::from_decoder(table);
    let job = ProbabilityJob::new::<Stopped>(host, &ids(&[3, 1]), Arc::clone(rules), text, options);
    let mut job = job.unwrap();
    run(&mut job, table).unwrap();
    job.finish(1)
}

fn draw(table: &mut Table, rules: &Arc<SpanRules>, options: CorrectionOptions) -> CorrectedDraw {
    let job = CorrectionJob::new::<Stopped>(Host::from_decoder(table), &ids(&[3, 1]), Arc::clone(rules), options);
    let mut job = job.unwrap();
    run(&mut job, table).unwrap();
    job.finish(1)
}

fn bounds(max_rows: usize, samples: usize, seed: u32) -> ProbabilityOptions {
    ProbabilityOptions { tolerance: 0.0, max_rows, samples, max_tokens: LIMIT, seed }
}

fn particles(particles: usize, seed: u32) -> CorrectionOptions {
    CorrectionOptions { particles, seed, temperature: 1.0, bias: LogitBias::default(), max_tokens: LIMIT }
}

fn model(seed: u64) -> Model {
    Model { seed, odd: false, starved: false }
}

fn automata() -> impl Strategy<Value = Automaton> {
    let ways = prop::collection::vec((0..VOCABULARY as u32, 0..4usize), 0..3);
    prop::collection::vec((any::<bool>(), ways), 2..5).prop_map(|rows| Automaton::new(&rows))
}

fn ends() -> impl Strategy<Value = Vec<TokenId>> {
    prop_oneof![Just(Vec::new()), Just(ids(&[23])), Just(ids(&[0, 7, 23]))]
}

/// Half the sum of the differences to what was drawn.
fn total_variation(drawn: &BTreeMap<Vec<TokenId>, f64>, expected: &BTreeMap<Vec<TokenId>, f64>) -> f64 {
    let all: std::collections::BTreeSet<_> = drawn.keys().chain(expected.keys()).collect();
    let of = |map: &BTreeMap<Vec<TokenId>, f64>, text: &Vec<TokenId>| map.get(text).copied().unwrap_or(0.0);
    all.into_iter().map(|text| (of(drawn, text) - of(expected, text)).abs()).sum::<f64>() / 2.0
}

fn shares(texts: &BTreeMap<Vec<TokenId>, f64>) -> BTreeMap<Vec<TokenId>, f64> {
    let all: f64 = texts.values().sum();
    texts.iter().map(|(text, probability)| (text.clone(), probability / all)).collect()
}

fn one_text(tokens: &[TokenId]) -> AnyConstraint {
    let mut builder = Trie::builder();
    builder.push(None, tokens);
    builder.build().unwrap().into()
}

/// Words that often lead out of the texts after a good beginning.
fn treacherous() -> Automaton {
    Automaton::new(&[(false, vec![(4, 1), (9, 2)]), (false, vec![(5, 1), (6, 2)]), (true, vec![(7, 0), (8, 2)])])
}

proptest! {
    #[test]
    fn bounds_hold_for_endless_texts(
        automaton in automata(),
        ends in ends(),
        seed in any::<u64>(),
        (max_rows, samples) in (1..60usize, 0..5usize),
    ) {
        let model = model(seed);
        let texts = automaton.texts(model, &ids(&[3, 1]), &ends, LIMIT);
        let expected: f64 = texts.values().sum();
        let rules = rules(AnyConstraint::new(automaton), &ends);
        let text = texts.keys().find(|text| text.len() > 1).or(texts.keys().find(|text| !text.is_empty()));
        let text = text.cloned();
        let found = probability(
            &mut Table::new(model), &rules, text.as_deref().map(one_text), bounds(max_rows, samples, seed as u32),
        );
        let near = 1e-5 * expected + 1e-12;
        prop_assert!(found.lower <= expected + near && expected <= found.upper + near, "{found:?} {expected}");
        prop_assert!(found.lower <= found.estimate && found.estimate <= found.upper, "{found:?}");
        prop_assert!(found.interval[0] >= found.lower && found.interval[1] <= found.upper, "{found:?}");
        prop_assert!(!found.is_exact || (found.estimate - expected).abs() <= near, "{found:?} {expected}");
        let is_known = found.standard_error == 0.0 && found.interval == [found.lower, found.upper];
        prop_assert!(found.samples > 0 || is_known, "{found:?}");
        if let (Some(text), Some(found)) = (text, found.text) {
            let (text, near) = (texts[&text], 1e-5 * texts[&text] + 1e-12);
            prop_assert!(found.bounds[0] <= text + near && text <= found.bounds[1] + near, "{found:?} {text}");
            // Of texts that the model cannot write there is no share.
            if expected > 0.0 {
                let (share, [low, high]) = (text / expected, found.share_bounds);
                prop_assert!(low <= share + 1e-4 && share <= high + 1e-4, "{found:?} {share}");
            }
        }
    }

    #[test]
    fn few_texts_are_read_to_the_end(
        rows in prop::collection::vec(("[a-d]{0,3}", prop::collection::vec(0..5u32, 1..5)), 1..20),
        ends in ends(),
        seed in any::<u64>(),
    ) {
        let (naive, model) = (Naive { rows }, model(seed));
        let all = sequences(&naive);
        let expected = exact(model, &ids(&[3, 1]), &all, all.len(), &ends);
        let rules = rules(naive.trie().into(), &ends);
        let options = ProbabilityOptions { tolerance: 0.5, ..bounds(4096, 10, 1) };
        let (tokens, &leaf) = all.iter().next_back().unwrap();
        let found = probability(&mut Table::new(model), &rules, Some(one_text(tokens)), options);
        prop_assert!(found.is_exact && found.samples == 0 && found.standard_error == 0.0);
        prop_assert!((found.estimate - mass(&expected)).abs() <= 1e-5 * mass(&expected), "{found:?} {expected:?}");
        let text = found.text.unwrap();
        prop_assert!((text.logprob - expected[leaf]).abs() < 2e-5, "{text:?} {}", expected[leaf]);
        prop_assert!((text.share - expected[leaf].exp() / mass(&expected)).abs() < 2e-5, "{text:?}");
    }
}

#[test]
fn draws_are_unbiased_and_know_their_error() {
    const SEEDS: u32 = 400;
    for (seed, end) in [(11, vec![id(23)]), (12, vec![]), (13, vec![id(0), id(23)])] {
        let (model, automaton) = (model(seed), treacherous());
        let expected: f64 = automaton.texts(model, &ids(&[3, 1]), &end, LIMIT).values().sum();
        let rules = rules(AnyConstraint::new(automaton), &end);
        let found: Vec<Probability> =
            (0..SEEDS).map(|seed| probability(&mut Table::new(model), &rules, None, bounds(1, 24, seed))).collect();
        assert!(found.iter().all(|found| found.samples == 24 && !found.is_exact));
        let mean = found.iter().map(|found| found.estimate).sum::<f64>() / f64::from(SEEDS);
        let error = (found.iter().map(|found| (found.estimate - mean).powi(2)).sum::<f64>()).sqrt() / f64::from(SEEDS);
        assert!((mean - expected).abs() < 4.5 * error + 1e-9, "{mean} {expected} ± {error}");
        let told = (found.iter().map(|found| found.standard_error.powi(2)).sum::<f64>() / f64::from(SEEDS)).sqrt();
        let real = error * f64::from(SEEDS).sqrt();
        // One draw from each stretch: what is told is rather too much.
        assert!(told > 0.85 * real && told < 4.0 * real, "told {told}, real {real}");
        let inside = |found: &&Probability| found.interval[0] <= expected && expected <= found.interval[1];
        assert!(found.iter().filter(inside).count() as f64 > 0.88 * f64::from(SEEDS));
        // The same seed draws the same.
        let again = probability(&mut Table::new(model), &rules, None, bounds(1, 24, 7));
        assert_eq!((again.estimate, again.standard_error), (found[7].estimate, found[7].standard_error));
    }
}

#[test]
fn particles_draw_from_the_whole() {
    const DRAWS: u32 = 4000;
    for (seed, end, count) in [(21, vec![id(23)], 4), (21, vec![id(23)], 1), (22, vec![], 3), (23, vec![id(0)], 6)] {
        let (model, automaton) = (model(seed), treacherous());
        let texts = automaton.texts(model, &ids(&[3, 1]), &end, LIMIT);
        let (normalizer, expected) = (texts.values().sum::<f64>(), shares(&texts));
        let masked = total_variation(&automaton.masked(model, &ids(&[3, 1]), &end, LIMIT), &expected);
        let rules = rules(AnyConstraint::new(automaton), &end);
        let (mut drawn, mut weighed, mut estimates, mut resamplings) =
            (BTreeMap::new(), BTreeMap::new(), Vec::new(), 0);
        for seed in 0..DRAWS {
            let draw = draw(&mut Table::new(model), &rules, particles(count, seed));
            assert!(draw.correction.particles == count && draw.tokens.len() <= LIMIT);
            assert_eq!(draw.end.is_some(), draw.is_whole && !end.is_empty());
            assert_eq!(draw.is_whole, draw.correction.log_normalizer > f64::NEG_INFINITY);
            assert!(draw.correction.rows <= 1 + LIMIT * count);
            resamplings += draw.correction.resamplings;
            let estimate = draw.correction.log_normalizer.exp();
            estimates.push(estimate);
            if !draw.is_whole {
                // The only beginning came to the limit.
                assert!(count == 1 && estimate == 0.0);
                continue;
            }
            *weighed.entry(draw.tokens.clone()).or_insert(0.0) += estimate / f64::from(DRAWS) / normalizer;
            *drawn.entry(draw.tokens).or_insert(0.0) += 1.0 / f64::from(DRAWS);
        }
        // Half the expected sum of the differences of that many draws.
        let noise: f64 = expected.values().map(|share| (share / f64::from(DRAWS) / 1.57).sqrt()).sum::<f64>() / 2.0;
        let corrected = total_variation(&drawn, &expected);
        assert!(count < 4 || corrected < masked / 4.0 + 2.0 * noise, "{corrected} {masked} {noise}");
        let mean = estimates.iter().sum::<f64>() / f64::from(DRAWS);
        let error = estimates.iter().map(|one| (one - mean).powi(2)).sum::<f64>().sqrt() / f64::from(DRAWS);
        assert!((mean - normalizer).abs() < 4.5 * error, "{mean} ± {error}, and not {normalizer}");
        // A draw with its weight is unbiased with any number of particles.
        let weighed = total_variation(&weighed, &expected);
        assert!(weighed < 0.15, "{weighed} {noise}");
        assert!(resamplings > 0);
    }
}

/// Of two beginnings the probable one has nothing to end with: what was read of the first row says so.
#[test]
fn beginnings_are_kept_for_what_they_may_become() {
    const DRAWS: u32 = 400;
    /// The same row after each prefix.
    #[derive(Debug)]
    struct Alike(Vec<f32>);
    impl TreeDecoder for Alike {
        type Error = Stopped;
        fn n_vocab(&self) -> usize {
            self.0.len()
        }
        fn room(&self) -> usize {
            1000
        }
        fn rows_at_once(&self) -> usize {
            40
        }
        fn decode(
            &mut self,
            _: &[TokenId],
            tree: &TokenTree,
            each: &mut dyn FnMut(Option<usize>, &[f32]),
        ) -> Result<DecodeCost, Stopped> {
            let wanted = (0..tree.nodes().len()).filter(|&node| tree.nodes()[node].wanted).map(Some);
            tree.wants_root().then_some(None).into_iter().chain(wanted).for_each(|node| each(node, &self.0));
            Ok(DecodeCost::default())
        }
    }
    // After 11 come 12 and 13 as often as one likes, and 14, that never comes, leads out of it; after 15 comes 16.
    let automaton = Automaton::new(&[
        (false, vec![(11, 1), (15, 2)]),
        (false, vec![(12, 1), (13, 1), (14, 3)]),
        (false, vec![(16, 3)]),
        (true, vec![(17, 0)]),
    ]);
    let mut row = vec![-20.0; VOCABULARY];
    for (token, share) in [(11, 0.5_f32), (12, 0.15), (13, 0.1), (15, 0.05), (16, 0.1), (23, 0.1)] {
        row[token] = share.ln();
    }
    let rules = rules(AnyConstraint::new(automaton), &[id(23)]);
    let estimates: Vec<f64> = (0..DRAWS)
        .map(|seed| {
            let mut host = Alike(row.clone());
            let job = CorrectionJob::new::<Stopped>(
                Host::from_decoder(&host),
                &ids(&[3, 1]),
                Arc::clone(&rules),
                particles(2, seed),
            );
            let mut job = job.unwrap();
            run(&mut job, &mut host).unwrap();
            job.finish(1).correction.log_normalizer.exp()
        })
        .collect();
    let mean = estimates.iter().sum::<f64>() / f64::from(DRAWS);
    let spread = (estimates.iter().map(|one| (one / mean - 1.0).powi(2)).sum::<f64>() / f64::from(DRAWS)).sqrt();
    // 15, 16 and the end; all other texts together are below a part in a hundred thousand.
    assert!((mean / 5e-4 - 1.0).abs() < 0.01 && spread < 0.05, "{mean} {spread}");
}

/// As many particles as there are beginnings of one length are no draw but a sum.
#[test]
fn enough_particles_are_exact() {
    let (model, automaton) = (model(61), treacherous());
    let expected: f64 = automaton.texts(model, &ids(&[3, 1]), &[id(23)], LIMIT).values().sum();
    let rules = rules(AnyConstraint::new(automaton), &[id(23)]);
    let draw = draw(&mut Table::new(model), &rules, particles(256, 1));
    assert_eq!(draw.correction.resamplings, 0);
    assert!((draw.correction.log_normalizer.exp() / expected - 1.0).abs() < 1e-5);
}

#[test]
fn few_texts_are_drawn_exactly() {
    const DRAWS: u32 = 4000;
    let naive = Naive {
        rows: [vec![1, 2], vec![1, 2, 3], vec![4], vec![5, 6, 7]].map(|tokens| (String::new(), tokens)).into(),
    };
    for end in [vec![], vec![id(9)]] {
        let (model, all) = (model(31), sequences(&naive));
        let expected = exact(model, &ids(&[3, 1]), &all, all.len(), &end);
        let rules = rules(naive.trie().into(), &end);
        let mut counts = vec![0.0; all.len()];
        for seed in 0..DRAWS {
            let draw = draw(&mut Table::new(model), &rules, particles(8, seed));
            assert!((draw.correction.log_normalizer - mass(&expected).ln()).abs() < 1e-5);
            assert_eq!((draw.correction.particles, draw.is_whole), (0, true));
            counts[all[&draw.tokens]] += 1.0;
        }
        let chi: f64 = counts
            .iter()
            .zip(&expected)
            .map(|(count, logprob)| {
                let expected = f64::from(DRAWS) * logprob.exp() / mass(&expected);
                (count - expected) * (count - expected) / expected
            })
            .sum();
        // The quantile of 1 - 1e-6 with three degrees of freedom.
        assert!(chi < 30.7, "{counts:?} {expected:?}");
    }
}

/// The colder model is another one: its texts are weighed by it.
#[test]
fn temperature_and_bias_are_part_of_the_model() {
    let (automaton, model) = (treacherous(), model(41));
    let rules = rules(AnyConstraint::new(automaton.clone()), &[id(23)]);
    let bias = LogitBias::new([(id(9), 3.0)]);
    let options = |seed| CorrectionOptions { temperature: 0.5, bias: bias.clone(), ..particles(3, seed) };
    let share = |prefix: &[TokenId], token: TokenId| {
        let mut row = model.row(prefix);
        row[9] += 3.0;
        let weights: Vec<f64> = row.iter().map(|&logit| (2.0 * f64::from(logit)).exp()).collect();
        weights[token.index()] / weights.iter().sum::<f64>()
    };
    let prompt = ids(&[3, 1]);
    let texts = automaton.texts(model, &prompt, &[id(23)], LIMIT);
    let expected: f64 = texts
        .keys()
        .map(|text| {
            let written = [&text[..], &[id(23)]].concat();
            let each = written.iter().enumerate();
            each.map(|(depth, &token)| share(&[&prompt, &text[..depth]].concat(), token)).product::<f64>()
        })
        .sum();
    let found: Vec<f64> = (0..200)
        .map(|seed| draw(&mut Table::new(model), &rules, options(seed)).correction.log_normalizer.exp())
        .collect();
    let mean = found.iter().sum::<f64>() / 200.0;
    let error = found.iter().map(|one| (one - mean).powi(2)).sum::<f64>().sqrt() / 200.0;
    assert!((mean - expected).abs() < 4.5 * error + 1e-6 * expected, "{mean} ± {error}, and not {expected}");
}

#[test]
fn a_stopped_job_keeps_its_bounds() {
    let (automaton, model) = (treacherous(), model(51));
    let texts = automaton.texts(model, &ids(&[3, 1]), &[id(23)], LIMIT);
    let expected: f64 = texts.values().sum();
    let rules = rules(AnyConstraint::new(automaton), &[id(23)]);
    for left in 0..40 {
        let mut table = Table { left, ..Table::new(model) };
        let host = Host::from_decoder(&table);
        let job = ProbabilityJob::new::<Stopped>(host, &ids(&[3, 1]), Arc::clone(&rules), None, bounds(12, 6, 1));
        let mut job = job.unwrap();
        match run(&mut job, &mut table) {
            Err(RunError::Host(Stopped)) | Ok(()) => {}
            error => panic!("{error:?}"),
        }
        let found = job.finish(1);
        assert!(found.lower <= expected + 1e-7 && expected <= found.upper + 1e-7, "{left} {found:?} {expected}");
        assert!(left > 0 || (found.lower, found.upper) == (0.0, 1.0));
    }
}
