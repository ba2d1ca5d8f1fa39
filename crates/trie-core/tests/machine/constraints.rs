//! Every kind of constraint through the one machine: against sets of the same values, and against plain rules.

use crate::common::multiples::{Multiples, VOCABULARY};
use crate::common::{Naive, id, ids};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{
    After, Allowed, AnyConstraint, Constraint, DrawSettings, Ending, Mode, NotListed, Observation, Role, Sampler,
    SamplerOptions, Scratch, Sequence, SequenceError, Span, SpanRules, Special, Status, TokenId, Trie, Unconstrained,
};

/// Two constraints with the same values do the same at every step of a random walk, whatever the rules around them.
fn in_step(
    one: AnyConstraint,
    other: AnyConstraint,
    ends: &[u32],
    after: After,
    mode: Mode,
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut random = seed;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below.max(1)
    };
    let draw = DrawSettings { temperature: 0.8, top_k: 5, ..DrawSettings::default() };
    let options = SamplerOptions { mode, draw, seed: Some(seed as u32) };
    let sampler = |constraint| {
        let rules = SpanRules::for_constraint(constraint, VOCABULARY).unwrap().with_end_tokens(ids(ends)).unwrap();
        let rules = rules.with_end_of_generation(ids(&[69])).unwrap().with_after(after).unwrap();
        Sampler::new(Arc::new(rules), options).unwrap()
    };
    let (mut one, mut other) = (sampler(one), sampler(other));
    for _ in 0..12 {
        let row: Vec<f32> = (0..VOCABULARY).map(|_| [f32::NAN, f32::NEG_INFINITY, 0.0, 1.0, 2.0][next(5)]).collect();
        prop_assert_eq!(one.status(), other.status());
        let kind = |allowed: Allowed<'_>| match allowed {
            Allowed::All => 0,
            Allowed::Open { .. } => 1,
            Allowed::Only { .. } => 2,
            Allowed::Nothing => 3,
        };
        prop_assert_eq!(kind(one.allowed()), kind(other.allowed()));
        let legal: Vec<TokenId> = one.allowed().iter().collect();
        prop_assert_eq!(&legal, &other.allowed().iter().collect::<Vec<_>>());
        prop_assert_eq!(one.allowed().first(), legal.first().copied());
        for listed in [one.allowed().ids(), other.allowed().ids()].into_iter().flatten() {
            prop_assert_eq!(listed, &legal[..]);
        }
        prop_assert_eq!(one.span().forced().collect::<Vec<_>>(), other.span().forced().collect::<Vec<_>>());
        let masked = |sampler: &mut Sampler| {
            let (mut row, mut words) = (row.clone(), vec![0; VOCABULARY.div_ceil(32)]);
            sampler.mask(&mut row).unwrap();
            sampler.fill_bitmask(&mut words).unwrap();
            (row.into_iter().map(f32::to_bits).collect::<Vec<_>>(), words)
        };
        prop_assert_eq!(masked(&mut one), masked(&mut other));
        let chosen = one.sample(&row).unwrap();
        prop_assert_eq!(chosen, other.sample(&row).unwrap());
        prop_assert_eq!((one.starved_count(), one.span().accepted()), (other.starved_count(), other.span().accepted()));
        // Now and then something else than the choice, legal or not.
        let token = if next(3) == 0 { id(next(VOCABULARY) as u32) } else { chosen };
        prop_assert_eq!(one.span_mut().accept(token).ok(), other.span_mut().accept(token).ok());
        if next(4) == 0 {
            let back = next(one.span().accepted() + 1);
            one.span_mut().rollback(back).unwrap();
            other.span_mut().rollback(back).unwrap();
        }
        if next(9) == 0 {
            prop_assert_eq!(one.span_mut().observe(token), other.span_mut().observe(token));
        }
        let tokens = |span: &Span| span.leaves().into_iter().flat_map(|leaf| leaf.tokens).collect::<Vec<_>>();
        if one.status() == Status::Complete {
            prop_assert_eq!(tokens(one.span()), tokens(other.span()));
        }
    }
    Ok(())
}

fn sets() -> impl Strategy<Value = Naive> {
    let tokens = prop::collection::vec(prop_oneof![3 => 0..4u32, 1 => 0..60u32], 1..4);
    prop::collection::vec(("[a-d]{1,2}", tokens), 1..6).prop_map(|rows| Naive { rows })
}

fn after() -> impl Strategy<Value = After> {
    prop_oneof![Just(After::Free), Just(After::Stop)]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Greedy), Just(Mode::Sampled)]
}

fn ends() -> impl Strategy<Value = &'static [u32]> {
    prop_oneof![Just(&[][..]), Just(&[3][..]), Just(&[5, 60][..])]
}

proptest! {
    #[test]
    fn a_sequence_is_the_set_of_its_values(
        parts in prop::collection::vec(sets(), 1..4), ends in ends(), after in after(), mode in mode(),
        seed in any::<u64>()
    ) {
        let sequence = Sequence::new(parts.iter().map(|part| part.trie().into())).unwrap();
        let set = sequence.to_trie(1 << 16).unwrap();
        // A value of the set is one way through the parts. Where one could go on as a longer value, that wins.
        let naive: usize = parts.iter().map(|part| part.leaves().len()).product();
        prop_assert!(set.len() <= naive);
        in_step(AnyConstraint::new(sequence), set.into(), ends, after, mode, seed)?;
    }

    #[test]
    fn bits_do_what_ids_do(
        modulus in 1..40usize, count in 1..3usize, ends in ends(), after in after(), mode in mode(),
        seed in any::<u64>()
    ) {
        let bits = Multiples::new(modulus, count);
        let set = bits.to_trie(1 << 16).unwrap();
        in_step(AnyConstraint::new(bits), set.into(), ends, after, mode, seed)?;
    }

    #[test]
    fn a_trie_behind_a_pointer_is_a_trie(
        set in sets(),
        ends in ends(),
        after in after(),
        mode in mode(),
        seed in any::<u64>(),
    ) {
        // One part is a sequence of one: the walk goes through the pointer, and remembers in another way.
        let behind = Sequence::new([set.trie().into()]).unwrap();
        in_step(AnyConstraint::new(behind), set.trie().into(), ends, after, mode, seed)?;
    }

    #[test]
    fn a_state_of_another_constraint_allows_nothing(set in sets()) {
        let (trie, free) = (AnyConstraint::from(set.trie()), AnyConstraint::new(Unconstrained));
        for (constraint, stranger) in [(&trie, free.start()), (&free, trie.start())] {
            let mut scratch = Scratch::default();
            let next = constraint.next(&stranger, &mut scratch);
            // Nothing would be read of it but that.
            prop_assert!(next.tokens.is_empty() && next.ending == Ending::No);
            prop_assert!(constraint.step(&stranger, id(1)).is_none());
        }
    }
}

fn set(rows: &[(&str, &[u32])]) -> AnyConstraint {
    Naive { rows: rows.iter().map(|&(name, tokens)| (name.to_owned(), tokens.to_vec())).collect() }.trie().into()
}

fn names(span: &Span) -> Vec<String> {
    span.leaves().into_iter().filter_map(|leaf| leaf.name).collect()
}

#[test]
fn roles_are_told() {
    let sequence = Sequence::new([set(&[("a", &[1]), ("ab", &[1, 2])]), AnyConstraint::new(Unconstrained)]).unwrap();
    let rules = SpanRules::for_constraint(AnyConstraint::new(sequence), VOCABULARY)
        .unwrap()
        .with_end_tokens(ids(&[60]))
        .unwrap();
    let mut span = Span::new(Arc::new(rules));
    assert_eq!(span.accept(id(1)).unwrap(), Role::Value);
    assert!(names(&span).is_empty(), "it may go on");
    // Anything may follow: 2 goes on, all else is free text.
    assert_eq!(span.allowed(&mut Scratch::default()), Allowed::All);
    let mut longer = span.clone();
    assert_eq!(longer.accept(id(2)).unwrap(), Role::Value);
    assert_eq!(names(&longer), ["ab"]);
    assert_eq!(span.accept(id(33)).unwrap(), Role::Free);
    assert_eq!((names(&span), span.status()), (vec!["a".to_owned()], Status::Active));
    assert_eq!(span.accept(id(60)).unwrap(), Role::End);
    assert_eq!(span.status(), Status::Complete);
    span.rollback(3).unwrap();
    assert_eq!(span.allowed(&mut Scratch::default()).iter().collect::<Vec<_>>(), ids(&[1]));
}

#[test]
fn no_constraint_at_all() {
    let rules = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), VOCABULARY).unwrap();
    let mut sampler = Sampler::new(Arc::new(rules.clone()), SamplerOptions::default()).unwrap();
    let row: Vec<f32> = (0..VOCABULARY + 5).map(|token| (token as f32 - 40.0).abs()).collect();
    let (mut masked, mut words) = (row.clone(), vec![0; 4]);
    sampler.mask(&mut masked).unwrap();
    assert_eq!(masked, row, "logits are left alone");
    sampler.fill_bitmask(&mut words).unwrap();
    assert_eq!(words, [-1, -1, 0b11_1111, 0]);
    assert_eq!(sampler.sample(&row).unwrap(), id(0), "beyond the vocabulary nothing is legal");
    for token in [3, 69, 0] {
        assert_eq!(sampler.span_mut().accept(id(token)).unwrap(), Role::Free);
    }
    assert!(sampler.span_mut().accept(id(70)).is_err());
    assert_eq!((sampler.span().accepted(), sampler.span().leaf(), sampler.span().forced().count()), (3, None, 0));
    sampler.span_mut().rollback(3).unwrap();
    assert_eq!(&rules.start(), sampler.span().state());
    assert!(AnyConstraint::new(Unconstrained).to_trie(1000).is_err());

    let ends = rules.with_end_tokens(ids(&[7])).unwrap();
    let mut span = Span::new(Arc::new(ends));
    assert_eq!(span.observe(id(7)), Observation::Accepted(Role::End));
    assert_eq!(span.status(), Status::Complete);
}

#[test]
fn sequences_that_cannot_be() {
    let (free, one) = (|| AnyConstraint::new(Unconstrained), || set(&[("x", &[1])]));
    assert_eq!(Sequence::new([]).unwrap_err(), SequenceError::NoParts);
    let error = Sequence::new([one(), free(), one()]).unwrap_err();
    assert_eq!(error, SequenceError::NeverEnds { part: 1, parts: 3 });
    assert!(error.to_string().contains("must be the last"), "{error}");
    // A sequence among the parts counts as its own parts.
    let inner = || AnyConstraint::new(Sequence::new([one(), free()]).unwrap());
    assert_eq!(Sequence::new([one(), inner()]).unwrap().parts().len(), 3);
    assert_eq!(Sequence::new([inner(), one()]).unwrap_err(), SequenceError::NeverEnds { part: 1, parts: 3 });
    let healed = Naive { rows: vec![("x".into(), vec![1])] }.trie().with_heal_bytes(2);
    assert_eq!(Sequence::new([one(), healed.clone().into()]).unwrap_err(), SequenceError::Healed { part: 1 });
    let first = Sequence::new([healed.into(), one()]).unwrap();
    assert_eq!(first.first_set().map(Trie::heal_bytes), Some(2));
    assert_eq!(first.to_trie(10).unwrap().heal_bytes(), 2);
    let ended = Naive { rows: vec![("y".into(), vec![2])] }.trie().with_end_tokens(ids(&[9]));
    assert_eq!(Sequence::new([one(), ended.into()]).unwrap().to_trie(10).unwrap().end_tokens(), ids(&[9]));
    assert_eq!(Sequence::new([one(), free()]).unwrap().to_trie(10).unwrap_err(), NotListed::Endless);
    let many = Sequence::new([set(&[("x", &[1]), ("y", &[2])]), set(&[("x", &[1]), ("y", &[2])])]).unwrap();
    assert_eq!(many.to_trie(3).unwrap_err(), NotListed::TooMany { limit: 3 });
    assert_eq!(
        many.to_trie(4).unwrap().leaves().map(|leaf| leaf.name.unwrap()).collect::<Vec<_>>(),
        ["xx", "xy", "yx", "yy"]
    );
}

#[test]
fn states_are_values() {
    let trie = Naive { rows: vec![("a".into(), vec![1, 2]), ("b".into(), vec![1, 3])] }.trie();
    let rules = SpanRules::new(vec![(String::new(), trie)], VOCABULARY).unwrap();
    let start = rules.start();
    let after = rules.step(&start, id(1)).unwrap();
    assert_eq!(after.role, Role::Value);
    // `Copy`: a beam keeps both, and rows are reordered by copying integers.
    let beams = [start, after.state, after.state];
    let last = beams.map(|state| rules.step(&state, id(3)).map(|step| step.state.status()));
    assert_eq!(last, [None, Some(Status::Complete), Some(Status::Complete)]);
    assert_eq!(rules.forced(&start, &mut Scratch::default()), Some(id(1)));
    assert_eq!(size_of_val(&start), 44);
}

#[test]
fn sets_bring_their_own_end_tokens() {
    let with = |tokens: &[u32]| Naive { rows: vec![("a".into(), vec![1])] }.trie().with_end_tokens(ids(tokens));
    let rules = SpanRules::new(
        vec![("x".to_owned(), AnyConstraint::from(with(&[9, 8, 9]))), ("y".to_owned(), with(&[7]).into())],
        VOCABULARY,
    );
    let mut span = Span::new(Arc::new(rules.unwrap()));
    let next = |span: &Span| span.allowed(&mut Scratch::default()).iter().collect::<Vec<_>>();
    span.accept(id(1)).unwrap();
    assert_eq!((next(&span), span.status()), (ids(&[8, 9]), Status::Active));
    span.activate("y").unwrap();
    span.accept(id(1)).unwrap();
    assert_eq!(next(&span), ids(&[7]));
    let given = SpanRules::for_constraint(with(&[9]), VOCABULARY).unwrap().with_end_tokens(ids(&[6])).unwrap();
    let mut span = Span::new(Arc::new(given));
    span.accept(id(1)).unwrap();
    assert_eq!(next(&span), ids(&[6]), "those of its user come first");
    assert!(SpanRules::for_constraint(with(&[70]), VOCABULARY).is_err());
}
