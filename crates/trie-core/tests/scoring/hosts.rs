//! What hosts, prompts and constraints may be: odd logits, rows that nobody asked for, refusals.

use crate::common::{Naive, id, ids};
use crate::scoring::table::{Model, Stopped, Table, VOCABULARY};
use crate::scoring::twin::{Sequences, all_close, check_whole, exact, graph, partial_token, set};
use std::convert::Infallible;
use trie_core::{
    AnyConstraint, ChooseError, ChooseOptions, DecodeCost, NotListed, PrefixRows, PrefixRowsError, PromptProblem,
    RowProblem, Sequence, TokenId, TokenTree, TreeDecoder, Trie, Unconstrained, choose, choose_many,
};

/// What one row says where logits are no numbers.
#[test]
fn logits_that_are_no_numbers() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let trie = Naive { rows: vec![("a".into(), vec![0]), ("ab".into(), vec![0, 1]), ("c".into(), vec![2])] }.trie();
    let chosen = |first: [f32; 4], second: [f32; 4], ends: &[TokenId]| {
        let mut rows = PrefixRows::new(4, |prefixes: &[&[TokenId]]| {
            let row = |prefix: &&[TokenId]| if prefix.len() == 1 { first } else { second };
            Ok::<_, Infallible>(prefixes.iter().flat_map(row).collect::<Vec<f32>>())
        });
        let options = ChooseOptions::new().with_end_tokens(ends);
        choose(&mut rows, &[id(3)], &trie, &options)
    };
    let logprobs = |first: [f32; 4], second: [f32; 4], ends: &[TokenId]| {
        let choice = chosen(first, second, ends).unwrap();
        let shares: f64 = choice.probabilities().iter().sum();
        assert!((shares - 1.0).abs() < 1e-9 && choice.mass_high <= 1.0);
        choice.logprobs.iter().map(|logprob| logprob.exp()).collect::<Vec<f64>>()
    };
    // An infinite logit is certainty, shared by all that have it; the second row matters after "a" alone.
    all_close(&logprobs([inf, 0.0, 0.0, 0.0], [nan, inf, 0.0, 5.0], &[]), &[0.0, 1.0, 0.0]);
    all_close(&logprobs([inf, nan, inf, 0.0], [nan, 0.0, inf, 5.0], &[]), &[0.5, 0.0, 0.5]);
    all_close(&logprobs([inf, 0.0, 0.0, inf], [inf, inf, 0.0, -inf], &[]), &[0.25, 0.25, 0.0]);
    all_close(&logprobs([inf, 0.0, 0.0, 0.0], [0.0, inf, inf, 0.0], &[id(2), id(3)]), &[0.5, 0.25, 0.0]);
    // A row without a usable logit says nothing: no value is preferred in silence.
    let refused = |first, second, ends: &[TokenId]| match chosen(first, second, ends) {
        Err(ChooseError::NoLogits(row)) => row.to_string(),
        other => panic!("{other:?}"),
    };
    let said = |after: &str, found: &str| {
        format!("the row of logits after {after} says nothing: all of its 4 entries are {found}")
    };
    assert_eq!(refused([inf, 0.0, 0.0, 0.0], [nan; 4], &[]), said("[3, 0]", "NaN"));
    assert_eq!(refused([-inf; 4], [0.0; 4], &[]), said("[3]", "-inf"));
    assert_eq!(refused([nan, -inf, nan, -inf], [0.0; 4], &[id(3)]), said("[3]", "NaN or -inf"));
    // What never comes may have any row.
    all_close(&logprobs([-inf, 0.0, 0.0, 0.0], [nan; 4], &[]), &[0.0, 0.0, 1.0 / 3.0]);
}

#[test]
fn constraints_of_other_kinds_become_sets() {
    let model = Model { seed: 9, odd: false, starved: false };
    let prompt = ids(&[3, 3]);
    let choose = |constraint: AnyConstraint| choose(&mut Table::new(model), &prompt, constraint, &ChooseOptions::new());
    let verbs = set(&[("get", &[1]), ("set", &[2, 2])]);
    let objects = set(&[(" name", &[7]), (" names", &[7, 1]), (" color", &[9, 1])]).with_end_tokens(ids(&[20, 21]));
    let parts = Sequence::new([AnyConstraint::from(&verbs), AnyConstraint::from(&objects)]).unwrap();
    let choice = choose(AnyConstraint::new(parts)).unwrap();
    let joined = [[1, 7].as_slice(), &[1, 7, 1], &[1, 9, 1], &[2, 2, 7], &[2, 2, 7, 1], &[2, 2, 9, 1]];
    let all = joined.iter().map(|tokens| ids(tokens));
    let all: Sequences = all.zip(0..).collect();
    check_whole(&choice, &exact(model, &prompt, &all, 6, &ids(&[20, 21])));

    // Alone, each part is as before.
    let alone = AnyConstraint::new(Sequence::new([AnyConstraint::from(&verbs)]).unwrap());
    assert_eq!(choose(alone).unwrap().logprobs, choose(verbs.into()).unwrap().logprobs);

    let endless = choose(AnyConstraint::new(Unconstrained)).unwrap_err();
    assert_eq!(endless, ChooseError::NotListed(NotListed::Endless));
    let many =
        Naive { rows: (0..20 * 60).map(|row| (String::new(), vec![row / 60, row % 20, row / 20 % 20])).collect() };
    let many = AnyConstraint::from(many.trie());
    let parts = Sequence::new([many.clone(), many.clone(), many]).unwrap();
    let too_many = choose(AnyConstraint::new(parts)).unwrap_err();
    assert_eq!(too_many, ChooseError::NotListed(NotListed::TooMany { limit: 1 << 20 }));
    let parts = Sequence::new([AnyConstraint::from(&partial_token()), AnyConstraint::from(&objects)]).unwrap();
    assert_eq!(choose(AnyConstraint::new(parts)).unwrap_err(), ChooseError::ManySequences);
}

#[test]
fn refused_before_anything_is_asked() {
    let trie = set(&[("short", &[1]), ("long", &[1, 2, 3])]);
    let far = ids(&[24]);
    let plain = ChooseOptions::new();
    let mut table = Table { room: 6, left: 0, ..Table::new(Model { seed: 1, odd: false, starved: false }) };
    let mut refused = |prompt: &[u32], trie: &Trie, options: &ChooseOptions<'_>| {
        choose(&mut table, &ids(prompt), trie, options).unwrap_err()
    };
    let of_prompt = |problem| ChooseError::Prompt { number: 0, problem };
    assert_eq!(refused(&[], &trie, &plain), of_prompt(PromptProblem::Empty));
    let outside = PromptProblem::OutsideVocabulary { position: 1, token: far[0], n_vocab: VOCABULARY };
    assert_eq!(refused(&[3, 24], &trie, &plain), of_prompt(outside));
    assert_eq!(refused(&[3; 7], &trie, &plain), of_prompt(PromptProblem::TooLong { tokens: 7, room: 6 }));
    let value =
        |prompt| of_prompt(PromptProblem::ValueTooLong { value: Some("long".into()), tokens: 3, prompt, room: 6 });
    assert_eq!(refused(&[3; 5], &trie, &plain), value(5));
    // An end token must have room as well.
    assert_eq!(refused(&[3; 4], &trie, &plain.with_end_tokens(&ids(&[5]))), value(4));
    assert_eq!(refused(&[3; 4], &trie, &plain), ChooseError::Host(Stopped), "there is room");
    let position = ChooseError::EndTokenOutsideVocabulary { position: 0, token: far[0], n_vocab: VOCABULARY };
    assert_eq!(refused(&[3], &trie, &plain.with_end_tokens(&far)), position);
    assert_eq!(refused(&[3], &trie.clone().with_end_tokens(far.clone()), &plain), position);
    let outside = ChooseError::SetOutsideVocabulary { max_token: far[0], n_vocab: VOCABULARY };
    assert_eq!(refused(&[3], &set(&[("far", &[24])]), &plain), outside);
    assert_eq!(refused(&[3], &trie, &plain.with_top(0)), ChooseError::Zero { what: "top" });
    assert_eq!(refused(&[3], &trie, &plain.with_max_rows(0)), ChooseError::Zero { what: "max_rows" });
    assert_eq!(refused(&[3], &trie, &plain.with_beam(0)), ChooseError::Zero { what: "beam" });
    let (good, bad) = (ids(&[3]), ids(&[]));
    let error = choose_many(&mut table, &[&good, &good, &bad], &trie, &plain).unwrap_err();
    assert_eq!(error, ChooseError::Prompt { number: 2, problem: PromptProblem::Empty });
    assert!(choose_many(&mut table, &[], &trie, &plain).unwrap().is_empty());
    assert_eq!(table.asked.len(), 1, "the one with room");
    assert_eq!(ChooseError::Host(Stopped).to_string(), "told to stop");
    assert!(value(5).to_string().contains("no room for a value of 3 tokens (\"long\") after the 5 of the prompt"));
}

/// A host that gives rows as it likes.
struct Careless(Vec<(Option<usize>, usize)>);

impl TreeDecoder for Careless {
    type Error = Infallible;

    fn n_vocab(&self) -> usize {
        VOCABULARY
    }

    fn room(&self) -> usize {
        100
    }

    fn rows_at_once(&self) -> usize {
        1
    }

    fn decode(
        &mut self,
        _: &[TokenId],
        _: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<DecodeCost, Infallible> {
        self.0.iter().for_each(|&(node, length)| each(node, &vec![0.0; length]));
        Ok(DecodeCost::default())
    }
}

#[test]
fn rows_that_were_not_asked_for_are_no_probabilities() {
    // The last token of the prompt, 1, 2 and 3 below it: of each a row is wanted, and of no more.
    let trie = set(&[("a", &[1, 2, 3, 4])]);
    let with = |rows: &[(Option<usize>, usize)], top: Option<usize>| {
        choose(&mut Careless(rows.to_vec()), &ids(&[5, 6]), &trie, &ChooseOptions::new().with_top(top))
    };
    let row = |node| (Some(node), VOCABULARY);
    assert!(with(&[row(0), row(1), row(2), row(3)], None).is_ok());
    let problem = |rows: &[(Option<usize>, usize)], top| match with(rows, top) {
        Err(ChooseError::Rows(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let n_vocab = VOCABULARY;
    assert_eq!(problem(&[row(0), row(1), row(2)], None), RowProblem::Missing { missing: 1 });
    assert_eq!(problem(&[], None), RowProblem::Missing { missing: 4 });
    assert_eq!(problem(&[row(0), row(0)], None), RowProblem::Unwanted { node: Some(0) });
    assert_eq!(problem(&[row(4)], None), RowProblem::Unwanted { node: Some(4) });
    assert_eq!(problem(&[(None, n_vocab)], None), RowProblem::Unwanted { node: None });
    assert_eq!(problem(&[row(1), row(0)], None), RowProblem::BeforeParent { node: 1 });
    for found in [0, n_vocab - 1, n_vocab + 1] {
        assert_eq!(problem(&[row(0), (Some(1), found), row(2), row(3)], None), RowProblem::Length { found, n_vocab });
    }
    // A search asks for the row after the prompt first.
    assert_eq!(problem(&[row(0)], Some(1)), RowProblem::Unwanted { node: Some(0) });
    assert_eq!(problem(&[], Some(1)), RowProblem::Missing { missing: 1 });
    assert_eq!(problem(&[(None, n_vocab), (None, n_vocab)], Some(1)), RowProblem::Unwanted { node: None });
    let trie = graph(&["ab".to_owned()].into(), true).0;
    let early = Careless(vec![row(0), (None, n_vocab)]);
    let early = choose(&mut { early }, &ids(&[5]), &trie, &ChooseOptions::new().with_top(1)).unwrap_err();
    assert_eq!(early, ChooseError::Rows(RowProblem::BeforeParent { node: 0 }));

    let mut short = PrefixRows::new(VOCABULARY, |prefixes: &[&[TokenId]]| {
        Ok::<_, Infallible>(vec![0.0; prefixes.len() * (VOCABULARY + 1)])
    });
    let error = choose(&mut short, &ids(&[5]), set(&[("a", &[1])]), &ChooseOptions::new()).unwrap_err();
    let length = PrefixRowsError::Length { found: VOCABULARY + 1, prefixes: 1, n_vocab: VOCABULARY };
    assert_eq!(error, ChooseError::Host(length));
    let mut refuses = PrefixRows::new(VOCABULARY, |_: &[&[TokenId]]| Err::<Vec<f32>, _>(Stopped)).with_room(2);
    let error = choose(&mut refuses, &ids(&[5]), set(&[("a", &[1])]), &ChooseOptions::new()).unwrap_err();
    assert_eq!(error, ChooseError::Host(PrefixRowsError::Function(Stopped)));
    let error = choose(&mut refuses, &ids(&[5, 5, 5]), set(&[("a", &[1])]), &ChooseOptions::new()).unwrap_err();
    assert!(matches!(error, ChooseError::Prompt { problem: PromptProblem::TooLong { tokens: 3, room: 2 }, .. }));
}
