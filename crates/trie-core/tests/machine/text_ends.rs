//! Text that may not come, where it says that the output is over.

use crate::common::{id, ids};
use std::sync::Arc;
use trie_core::{
    AnyConstraint, Constraint, DrawSettings, Ending, Mode, Next, NotListed, Role, Sampler, SamplerOptions, Scratch,
    SpanRules, Special, TokenId, Tokens, Trie,
};

const VOCABULARY: usize = 10;

/// Calls of two tokens, 1 and 2, in any number. Behind each the output may end.
#[derive(Debug, Clone)]
struct Calls;

impl Constraint for Calls {
    type State = u32;

    fn start(&self) -> u32 {
        0
    }

    fn next<'a>(&'a self, at: &'a u32, scratch: &'a mut Scratch) -> Next<'a> {
        let ending = if self.text_ends(at) { Ending::May } else { Ending::No };
        Next { tokens: Tokens::Ids(scratch.keep_ids(ids(&[1, 2]).into())), ending }
    }

    fn advance(&self, at: &mut u32, token: TokenId) -> Option<Role> {
        *at += 1;
        matches!(token.get(), 1 | 2).then_some(Role::Value)
    }

    fn max_token(&self) -> Option<TokenId> {
        TokenId::new(2)
    }

    fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for Calls {
    fn text_ends(&self, at: &u32) -> bool {
        at.is_multiple_of(2) && *at > 0
    }
}

fn sampler(options: SamplerOptions) -> Sampler {
    let rules = SpanRules::for_constraint(AnyConstraint::new(Calls), VOCABULARY)
        .unwrap()
        .with_end_tokens(ids(&[8, 9]))
        .unwrap();
    Sampler::new(Arc::new(rules), options).unwrap()
}

/// A row in which these tokens have these logits, and others −5.
fn row(given: &[(usize, f32)]) -> Vec<f32> {
    let mut row = vec![-5.0; VOCABULARY];
    for &(token, logit) in given {
        row[token] = logit;
    }
    row
}

#[test]
fn other_text_behind_a_call_ends_the_output() {
    let mut sampler = sampler(SamplerOptions::default());
    let prose = row(&[(5, 3.0), (1, 2.0), (2, 1.0), (8, -2.0), (9, -1.0)]);
    let chosen = |sampler: &mut Sampler, row: &[f32]| sampler.sample_or_end(row).unwrap();
    assert_eq!(chosen(&mut sampler, &prose), id(1), "a call must come");
    sampler.accept(id(1)).unwrap();
    assert_eq!(chosen(&mut sampler, &prose), id(1), "inside of a call");
    sampler.accept(id(2)).unwrap();
    assert_eq!(sampler.sample(&prose).unwrap(), id(1), "among what may come");
    assert_eq!(chosen(&mut sampler, &prose), id(9), "the better end token");
    assert_eq!(chosen(&mut sampler, &row(&[(5, 1.0), (2, 1.5)])), id(2), "the model calls again");
    assert_eq!(chosen(&mut sampler, &row(&[(5, 1.0), (8, 1.5)])), id(8));
    sampler.accept(id(9)).unwrap();
}

#[test]
fn the_end_is_as_probable_as_all_that_may_not_come() {
    let options = SamplerOptions { mode: Mode::Sampled, draw: DrawSettings::default(), seed: Some(7) };
    let mut sampler = sampler(options);
    sampler.accept_all(&ids(&[1, 2])).unwrap();
    let row = row(&[(1, 2.0), (5, 1.0), (6, 1.5), (9, 0.0)]);
    let total: f32 = row.iter().map(|logit| logit.exp()).sum();
    let on = (row[1].exp() + row[2].exp()) / total;
    let draws = 20_000;
    let mut went_on = 0;
    for _ in 0..draws {
        match sampler.sample_or_end(&row).unwrap().get() {
            1 | 2 => went_on += 1,
            token => assert!(matches!(token, 8 | 9)),
        }
    }
    let share = went_on as f32 / draws as f32;
    assert!((share - on).abs() < 0.015, "{share} of the draws went on, which has probability {on}");
}
