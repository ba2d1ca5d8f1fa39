//! Penalties, against choices without any from rows that were penalised by hand.

use crate::common::{id, ids};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{
    AnyConstraint, Batch, DrawSettings, Mode, Rows, Sampler, SamplerOptions, SpanRules, TokenId, Trie, Unconstrained,
};

const VOCABULARY: usize = 9;
const ENDS: [u32; 2] = [3, 7];

/// Every sequence of up to four of these tokens, so that they come again.
fn trie() -> Trie {
    let (mut builder, mut rows) = (Trie::builder(), vec![vec![]]);
    for _ in 0..4 {
        let longer = |row: &Vec<TokenId>| [1, 2, 3, 5, 8].map(|next| [row.clone(), ids(&[next])].concat());
        rows = rows.iter().flat_map(longer).collect();
        for row in &rows {
            builder.push(None, row);
        }
    }
    builder.build().unwrap()
}

/// A set with and without end tokens, and nothing that constrains.
fn rules() -> Vec<Arc<SpanRules>> {
    let set = || SpanRules::for_constraint(trie(), VOCABULARY).unwrap();
    let free = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), VOCABULARY).unwrap();
    [set(), set().with_end_tokens(ids(&ENDS)).unwrap(), free].map(Arc::new).into()
}

/// What a row is after the penalties, token by token.
fn penalised(row: &[f32], written: &[TokenId], draw: &DrawSettings) -> Vec<f32> {
    let last = if draw.penalty_last_n < 0 { written.len() } else { written.len().min(draw.penalty_last_n as usize) };
    let window = &written[written.len() - last..];
    let one = |(token, &logit): (usize, &f32)| {
        let count = window.iter().filter(|written| written.index() == token).count();
        if count == 0 {
            return logit;
        }
        let logit = if logit > 0.0 { logit / draw.repeat_penalty } else { logit * draw.repeat_penalty };
        logit - (count as f32 * draw.frequency_penalty + draw.presence_penalty)
    };
    row.iter().enumerate().map(one).collect()
}

fn settings() -> impl Strategy<Value = DrawSettings> {
    let repeat = prop_oneof![2 => Just(1.0f32), 3 => 0.5..3.0f32];
    let penalty = || prop_oneof![1 => Just(0.0f32), 1 => -1.0..2.0f32];
    let last = prop::sample::select(vec![-1, 0, 1, 2, 5, 64]);
    (repeat, penalty(), penalty(), last).prop_map(
        |(repeat_penalty, presence_penalty, frequency_penalty, penalty_last_n)| DrawSettings {
            repeat_penalty,
            presence_penalty,
            frequency_penalty,
            penalty_last_n,
            ..DrawSettings::default()
        },
    )
}

fn rows() -> impl Strategy<Value = Vec<Vec<f32>>> {
    prop::collection::vec(prop::collection::vec(-3.0..3.0f32, VOCABULARY), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(600)))]

    #[test]
    fn a_choice_is_one_from_a_row_that_was_penalised(
        draw in settings(), rows in rows(), seed in 0..99u32, backs in prop::collection::vec(0..5usize, 12)
    ) {
        for rules in rules() {
            for mode in [Mode::Greedy, Mode::Sampled] {
                let options = |draw| SamplerOptions { mode, draw, seed: Some(seed) };
                let of = |draw| Sampler::new(Arc::clone(&rules), options(draw)).unwrap();
                let (mut sampler, mut plain) = (of(draw), of(DrawSettings::default()));
                let mut written: Vec<TokenId> = Vec::new();
                for (row, &back) in rows.iter().zip(&backs) {
                    let wanted = plain.sample(&penalised(row, &written, &draw)).unwrap();
                    prop_assert_eq!(sampler.clone().sample(row).unwrap(), wanted, "a clone; after {:?}", &written);
                    prop_assert_eq!(sampler.sample(row).unwrap(), wanted, "after {:?}", &written);
                    sampler.accept(wanted).unwrap();
                    plain.accept(wanted).unwrap();
                    written.push(wanted);
                    if back == 4 && written.len() > 1 {
                        sampler.rollback(2).unwrap();
                        plain.rollback(2).unwrap();
                        written.truncate(written.len() - 2);
                    }
                    // What is refused was not written.
                    prop_assert!(sampler.accept(id(VOCABULARY as u32)).is_err());
                    prop_assert!(sampler.accept_all(&[wanted, id(VOCABULARY as u32)]).is_err());
                }
                sampler.reset();
                plain.reset();
                prop_assert_eq!(sampler.sample(&rows[0]).unwrap(), plain.sample(&rows[0]).unwrap());
            }
        }
    }

    #[test]
    fn each_row_of_a_batch_counts_what_it_wrote(
        draw in settings(), rows in rows(), steps in prop::collection::vec(0..8usize, 12)
    ) {
        let options = SamplerOptions { mode: Mode::Greedy, draw, seed: Some(1) };
        let of: Vec<_> = rules();
        let mut batch = Batch::of_rows(of.iter().cloned().map(Some), VOCABULARY, options).unwrap();
        let mut twin: Vec<Sampler> = of.iter().map(|of| Sampler::new(Arc::clone(of), options).unwrap()).collect();
        for (row, &step) in rows.iter().zip(&steps) {
            let logits = row.repeat(batch.len());
            let mut chosen = vec![TokenId::default(); batch.len()];
            batch.select(Rows::new(&logits, batch.len(), VOCABULARY, VOCABULARY).unwrap(), &mut chosen).unwrap();
            let wanted: Vec<TokenId> = twin.iter_mut().map(|twin| twin.sample(row).unwrap()).collect();
            prop_assert_eq!(&chosen, &wanted);
            batch.accept(&chosen).unwrap();
            twin.iter_mut().zip(&chosen).for_each(|(twin, &token)| assert!(twin.accept(token).is_ok()));
            prop_assert!(batch.accept(&vec![id(VOCABULARY as u32); twin.len()]).is_err());
            match step {
                0 => {
                    let parents = [batch.len() - 1, 0, 0];
                    batch.reorder(&parents).unwrap();
                    twin = parents.map(|parent| twin[parent].clone()).into();
                }
                1 => {
                    batch.rollback(1).unwrap();
                    for twin in &mut twin {
                        twin.rollback(1).unwrap();
                    }
                }
                2 => {
                    batch.assign(0, Some(Arc::clone(&of[2]))).unwrap();
                    twin[0] = Sampler::new(Arc::clone(&of[2]), options).unwrap();
                    batch.accept_in(0, &ids(&[4, 4, 6])).unwrap();
                    twin[0].accept_all(&ids(&[4, 4, 6])).unwrap();
                }
                3 => {
                    batch.reset();
                    twin.iter_mut().for_each(Sampler::reset);
                }
                _ => {}
            }
        }
    }
}

/// As in llama.cpp, where biases come before penalties.
#[test]
fn weights_are_added_first() {
    let mut builder = Trie::builder();
    for row in [[1, 1], [1, 2]] {
        builder.push(None, &ids(&row));
    }
    let trie = builder.build().unwrap();
    let mut edges = vec![0.0; trie.nodes()];
    edges[trie.walk(&ids(&[1, 1])).unwrap().node().index()] = 1.0;
    let rules = Arc::new(SpanRules::for_constraint(trie.with_weights(edges, Vec::new()).unwrap(), 4).unwrap());
    let draw = DrawSettings { repeat_penalty: 3.0, ..DrawSettings::default() };
    let mut sampler = Sampler::new(rules, SamplerOptions { draw, ..SamplerOptions::default() }).unwrap();
    sampler.accept(id(1)).unwrap();
    // (1 + 1) / 3 is less than 1; 1 / 3 + 1 would be more.
    assert_eq!(sampler.sample(&[1.0; 4]).unwrap(), id(2));
}

#[test]
fn settings_are_checked() {
    for (draw, says) in [
        (
            DrawSettings { repeat_penalty: 0.0, ..DrawSettings::default() },
            "repeat_penalty is 0: it must be finite and more",
        ),
        (DrawSettings { repeat_penalty: f32::NAN, ..DrawSettings::default() }, "repeat_penalty is NaN"),
        (
            DrawSettings { presence_penalty: f32::INFINITY, ..DrawSettings::default() },
            "presence_penalty is inf: it must be",
        ),
        (DrawSettings { frequency_penalty: f32::NAN, ..DrawSettings::default() }, "frequency_penalty is NaN"),
        (
            DrawSettings { penalty_last_n: -2, ..DrawSettings::default() },
            "penalty_last_n is -2: it must be an integer from -1",
        ),
    ] {
        let error = Sampler::new(Arc::clone(&rules()[0]), SamplerOptions { draw, ..SamplerOptions::default() });
        assert!(error.unwrap_err().to_string().contains(says), "{says}");
    }
    assert!(!DrawSettings::default().has_penalties());
}
