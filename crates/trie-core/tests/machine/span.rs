//! Every transition of the span, and that steps allocate nothing.

use crate::common::{id, ids};
use std::sync::Arc;
use trie_core::{
    After, Allowed, AnyConstraint, DrawSettings, Mode, Observation, Role, RulesError, Sampler, SamplerOptions, Scratch,
    Span, SpanError, SpanRules, Status, Tokens, Trie,
};

/// `REPLY` is a prefix of `REPLY_THREAD`; `STOP` shares nothing.
fn trie() -> Trie {
    let mut builder = Trie::builder();
    for (name, tokens) in [("REPLY", &[1, 2][..]), ("REPLY_THREAD", &[1, 2, 3]), ("STOP", &[9])] {
        builder.push(Some(name), &ids(tokens));
    }
    builder.build().unwrap()
}

fn rules() -> SpanRules {
    let mut lang = Trie::builder();
    lang.push(Some("en"), &ids(&[2]));
    let lang = lang.build().unwrap();
    SpanRules::new(vec![("action".to_owned(), trie().into()), ("lang".to_owned(), lang.into())], 64).unwrap()
}

fn span(rules: SpanRules) -> Span {
    Span::new(Arc::new(rules))
}

fn name(span: &Span) -> Option<String> {
    span.leaf().and_then(|leaf| leaf.name)
}

#[test]
fn armed_moving_complete() {
    let mut s = span(rules());
    assert_eq!((s.status(), s.depth(), s.path()), (Status::Active, 0, "action"));
    assert_eq!(s.allowed(&mut Scratch::default()), Allowed::Only { tokens: Tokens::Ids(&ids(&[1, 9])), ends: &[] });
    s.accept(id(9)).unwrap();
    assert_eq!((s.status(), name(&s).as_deref()), (Status::Complete, Some("STOP")));
    assert_eq!(s.allowed(&mut Scratch::default()), Allowed::All);
    s.accept(id(63)).unwrap();
    assert_eq!((s.status(), name(&s).as_deref(), s.accepted()), (Status::Complete, Some("STOP"), 2));
    assert_eq!(s.forced().count(), 0);
}

#[test]
fn an_open_prefix_leaf_ends_with_any_other_token() {
    let mut s = span(rules());
    s.accept_all(&ids(&[1, 2])).unwrap();
    assert!(s.is_open() && s.leaf().is_none() && s.status() == Status::Active);
    assert_eq!(s.allowed(&mut Scratch::default()), Allowed::Open { tokens: Tokens::Ids(&ids(&[3])) });
    assert_eq!(s.forced().count(), 0, "ending here is a choice");
    let mut longer = s.clone();
    longer.accept(id(3)).unwrap();
    assert_eq!(name(&longer).as_deref(), Some("REPLY_THREAD"));
    s.accept(id(50)).unwrap();
    assert_eq!((s.status(), name(&s).as_deref()), (Status::Complete, Some("REPLY")));
    s.rollback(1).unwrap();
    assert!(s.is_open());
}

#[test]
fn end_tokens_close_a_leaf() {
    let mut s = span(rules().with_end_tokens(ids(&[40])).unwrap());
    assert_eq!(s.forced().count(), 0);
    s.accept(id(9)).unwrap();
    assert_eq!((s.status(), s.leaf()), (Status::Active, None));
    assert_eq!(s.forced().collect::<Vec<_>>(), ids(&[40]), "a single end token is forced");
    assert!(matches!(s.accept(id(50)), Err(SpanError::NotAllowed(_))));
    s.accept(id(40)).unwrap();
    assert_eq!((s.status(), name(&s).as_deref()), (Status::Complete, Some("STOP")));

    s.reset();
    s.accept(id(1)).unwrap();
    assert_eq!(s.forced().collect::<Vec<_>>(), ids(&[2]), "never past a terminal that has a choice");
    s.accept(id(2)).unwrap();
    let listed = |s: &Span| s.allowed(&mut Scratch::default()).ids().map(<[_]>::to_vec);
    assert_eq!(s.allowed(&mut Scratch::default()).iter().collect::<Vec<_>>(), ids(&[3, 40]));
    assert_eq!(listed(&s), None, "two lists");
    assert!(!s.is_open());
    s.accept(id(3)).unwrap();
    assert_eq!(listed(&s), Some(ids(&[40])));
    s.rollback(2).unwrap();
    assert_eq!(listed(&s), Some(ids(&[2])));
}

#[test]
fn a_token_that_is_child_and_end_token_is_the_child() {
    let mut s = span(rules().with_end_tokens(ids(&[3])).unwrap());
    s.accept_all(&ids(&[1, 2])).unwrap();
    assert_eq!(s.allowed(&mut Scratch::default()).iter().collect::<Vec<_>>(), ids(&[3]));
    assert_eq!(s.forced().collect::<Vec<_>>(), ids(&[3, 3]));
    s.accept_all(&ids(&[3, 3])).unwrap();
    assert_eq!(name(&s).as_deref(), Some("REPLY_THREAD"));
}

#[test]
fn after_stop_allows_only_the_end() {
    assert_eq!(rules().with_after(After::Stop).unwrap_err(), RulesError::NothingToStopOn);
    let stop = rules().with_end_of_generation(ids(&[61, 60, 60])).unwrap().with_after(After::Stop).unwrap();
    let mut s = span(stop);
    s.accept(id(9)).unwrap();
    assert_eq!(s.allowed(&mut Scratch::default()), Allowed::Only { tokens: Tokens::Ids(&[]), ends: &ids(&[60, 61]) });
    assert!(s.accept(id(5)).is_err());
    assert_eq!(s.observe(id(5)), Observation::TurnedOff);
    assert_eq!(s.status(), Status::Off);
    s.rollback(1).unwrap();
    assert_eq!((s.status(), name(&s).as_deref()), (Status::Complete, Some("STOP")));
    s.accept(id(60)).unwrap();
    assert_eq!(s.status(), Status::Complete);
    // Without end-of-generation tokens, the end tokens stand in for them.
    let ends = rules().with_end_tokens(ids(&[40])).unwrap().with_after(After::Stop).unwrap();
    assert_eq!(ends.stop_tokens(), ids(&[40]));
}

#[test]
fn illegal_tokens_are_refused_and_change_nothing() {
    let mut s = span(rules());
    let error = s.accept(id(5)).unwrap_err().to_string();
    assert_eq!(error, "token 5 at position 0 is not allowed there: only [1, 9] may follow");
    assert_eq!(s.accept(id(64)).unwrap_err(), SpanError::OutsideVocabulary { token: id(64), n_vocab: 64 });
    assert!(s.accept_all(&ids(&[1, 2, 3, 64])).is_err());
    assert_eq!((s.status(), s.accepted()), (Status::Active, 0), "all or nothing");
    assert_eq!(s.rollback(1).unwrap_err(), SpanError::RollbackTooFar { asked: 1, accepted: 0 });
    let unknown = s.activate("color").unwrap_err().to_string();
    assert_eq!(unknown, r#"no trie has the path "color"; there are ["action", "lang"]"#);
}

#[test]
fn a_host_that_cannot_be_told() {
    let mut s = span(rules().with_patience(3));
    assert_eq!(s.observe(id(5)), Observation::Ignored);
    assert_eq!((s.status(), s.accepted()), (Status::Active, 1));
    assert_eq!(s.observe(id(1)), Observation::Accepted(Role::Value));
    assert_eq!(s.observe(id(77)), Observation::TurnedOff);
    assert_eq!((s.status(), s.allowed(&mut Scratch::default()), s.leaf()), (Status::Off, Allowed::All, None));
    assert_eq!(s.observe(id(5)), Observation::Accepted(Role::Free));
    s.rollback(1).unwrap();
    assert_eq!(s.status(), Status::Off);
    s.rollback(1).unwrap();
    assert_eq!((s.status(), s.depth()), (Status::Active, 1));
    s.rollback(2).unwrap();
    assert_eq!((s.status(), s.accepted()), (Status::Active, 0));

    for expected in [Observation::Ignored, Observation::Ignored, Observation::TurnedOff] {
        assert_eq!(s.observe(id(5)), expected, "patience is over after three");
    }
    assert_eq!(s.status(), Status::Off);
    s.reset();
    assert_eq!((s.status(), s.accepted()), (Status::Active, 0));
}

#[test]
fn several_tries_are_never_merged() {
    let mut s = span(rules());
    s.activate("lang").unwrap();
    assert!(s.accept(id(9)).is_err());
    s.accept(id(2)).unwrap();
    assert_eq!(name(&s).as_deref(), Some("en"));
    s.deactivate();
    assert_eq!((s.status(), s.allowed(&mut Scratch::default()), s.leaf()), (Status::Idle, Allowed::All, None));
    s.accept(id(33)).unwrap();
    assert_eq!((s.status(), s.accepted()), (Status::Idle, 1));
    s.rollback(1).unwrap();
    assert_eq!(s.status(), Status::Idle);
    s.activate("lang").unwrap();
    assert_eq!((s.status(), s.path()), (Status::Active, "lang"));
    s.reset();
    assert_eq!(s.path(), "action");
}

#[test]
fn rules_are_checked() {
    let spans = || vec![("a".to_owned(), AnyConstraint::from(trie()))];
    assert_eq!(SpanRules::<Trie>::new(vec![], 5).unwrap_err(), RulesError::NoConstraint);
    assert_eq!(SpanRules::new(spans(), 0).unwrap_err(), RulesError::VocabularySize { n_vocab: 0 });
    let outside = SpanRules::new(spans(), 9).unwrap_err().to_string();
    assert_eq!(outside, r#"trie "a": token id 9 is outside the vocabulary of 9 tokens"#);
    assert!(SpanRules::new(spans(), 10).unwrap().with_end_tokens(ids(&[10])).is_err());
    assert!(SpanRules::new(spans(), 10).unwrap().with_end_of_generation(ids(&[10])).is_err());
}

fn sampled(settings: DrawSettings) -> SamplerOptions {
    SamplerOptions { mode: Mode::Sampled, draw: settings, seed: Some(7) }
}

#[test]
fn draws_repeat_under_a_seed_and_stay_inside() {
    let rules = Arc::new(rules());
    let mut row = vec![9.0; 64];
    row[1] = 1.0;
    row[9] = 1.0;
    let draws = |sampler: &mut Sampler| (0..200).map(|_| sampler.sample(&row).unwrap().get()).collect::<Vec<_>>();
    let mut sampler = Sampler::new(rules.clone(), sampled(DrawSettings::default())).unwrap();
    let first = draws(&mut sampler);
    assert!(first.iter().all(|token| [1, 9].contains(token)));
    assert!(first.contains(&1) && first.contains(&9));
    let mut copy = sampler.clone();
    assert_eq!(draws(&mut sampler), draws(&mut copy), "a clone draws on independently");
    sampler.reset();
    assert_eq!(draws(&mut sampler), first, "reset begins the draws again");
    let cold = DrawSettings { temperature: 0.0, ..DrawSettings::default() };
    row[9] = 1.5;
    let mut cold = Sampler::new(rules.clone(), sampled(cold)).unwrap();
    assert_eq!(cold.sample(&row).unwrap(), id(9));
    row.fill(f32::NAN);
    assert_eq!((cold.sample(&row).unwrap(), cold.starved_count()), (id(1), 1));
    for (bad, word) in [
        (DrawSettings { temperature: -1.0, ..DrawSettings::default() }, "temperature"),
        (DrawSettings { temperature: f32::NAN, ..DrawSettings::default() }, "temperature"),
        (DrawSettings { top_p: 1.5, ..DrawSettings::default() }, "top_p"),
        (DrawSettings { min_p: -0.1, ..DrawSettings::default() }, "min_p"),
    ] {
        assert!(Sampler::new(rules.clone(), sampled(bad)).unwrap_err().to_string().contains(word));
    }
}

#[test]
fn infinite_logits_are_certain() {
    let mut sampler =
        Sampler::new(Arc::new(rules()), sampled(DrawSettings { top_p: 0.9, ..DrawSettings::default() })).unwrap();
    let mut row = vec![0.0; 64];
    row[9] = f32::INFINITY;
    for _ in 0..50 {
        assert_eq!(sampler.sample(&row).unwrap(), id(9));
    }
}

#[test]
fn short_rows_are_refused_before_anything_is_written() {
    let mut sampler = Sampler::new(Arc::new(rules()), SamplerOptions::default()).unwrap();
    let mut short = [1.0; 63];
    assert_eq!(
        sampler.sample(&short).unwrap_err().to_string(),
        "a row of logits has 63 entries: a vocabulary of 64 tokens needs at least 64"
    );
    assert!(sampler.mask(&mut short).is_err() && sampler.advance(&short, &mut Vec::new()).is_err());
    assert_eq!(short, [1.0; 63]);
    let mut words = [5; 1];
    assert!(sampler.fill_bitmask(&mut words).is_err());
    assert_eq!(words, [5]);
}

#[test]
fn advance_gives_everything_up_to_the_next_choice() {
    let mut sampler =
        Sampler::new(Arc::new(rules().with_end_tokens(ids(&[40])).unwrap()), SamplerOptions::default()).unwrap();
    let row = vec![0.0; 64];
    let mut tokens = Vec::new();
    sampler.advance(&row, &mut tokens).unwrap();
    assert_eq!(tokens, ids(&[1, 2]));
    sampler.advance(&row, &mut tokens).unwrap();
    assert_eq!(tokens, ids(&[1, 2, 3, 40]));
    assert_eq!(sampler.status(), Status::Complete);
}

#[test]
fn steps_allocate_nothing() {
    let mut sampler =
        Sampler::new(Arc::new(rules().with_end_tokens(ids(&[40])).unwrap()), SamplerOptions::default()).unwrap();
    let mut row = vec![0.5; 64];
    let mut words = [0; 2];
    let mut tokens = Vec::with_capacity(16);
    let mut host = sampler.span().clone();
    sampler.mask(&mut row.clone()).unwrap();
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            tokens.clear();
            sampler.fill_bitmask(&mut words).unwrap();
            sampler.mask(&mut row).unwrap();
            sampler.advance(&row, &mut tokens).unwrap();
            let trie = sampler.span().constraint().as_trie().unwrap();
            let at = sampler.span().state().position().as_trie().unwrap().cursor();
            std::hint::black_box((trie.leaves_below(at), trie.leaf_at(at), sampler.span().forced().count()));
            sampler.span_mut().rollback(tokens.len()).unwrap();
            row.fill(0.5);
            assert_eq!(host.observe(id(5)), Observation::Ignored);
            host.reset();
        }
    });
    assert_eq!(counted.count_total, 0);
}
