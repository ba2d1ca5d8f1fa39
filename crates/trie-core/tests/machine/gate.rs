//! Thinking before a value: against a plain reading of the tokens so far, and by hand.

use crate::common::{Naive, id, ids};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use trie_core::{
    After, Allowed, AnyConstraint, Batch, BatchError, Budget, Constraint, GateError, NotListed, Opening, Role, Rows,
    RulesError, Sampler, SamplerOptions, Scratch, Sequence, Span, SpanError, SpanRules, Status, ThinkGate,
    ThinkOptions, TokenId, Unconstrained,
};

const VOCABULARY: u32 = 12;
/// Closes a value, and may be thought like anything else.
const END: u32 = 11;

/// What may come after these tokens, from the tokens alone.
#[derive(Debug, Clone)]
struct Plain {
    begin: Vec<u32>,
    end: Vec<u32>,
    message: Vec<u32>,
    budget: Option<(u32, bool)>,
    opening: Opening,
    at_once: bool,
    masked: Vec<u32>,
    /// `None` is free text.
    then: Option<Naive>,
}

enum Legal {
    One(u32),
    AllBut(BTreeSet<u32>),
    Then(Vec<u32>),
    BeginOrThen,
}

impl Plain {
    fn options(&self) -> ThinkOptions {
        ThinkOptions {
            begin: ids(&self.begin),
            end: ids(&self.end),
            budget: self.budget.map(|(tokens, with_begin)| Budget { tokens, with_begin }),
            message: ids(&self.message),
            opening: self.opening,
            at_once: self.at_once,
            masked: ids(&self.masked),
        }
    }

    fn gate(&self) -> Result<ThinkGate, GateError> {
        let then = self.then.as_ref().map_or_else(|| AnyConstraint::new(Unconstrained), |then| then.trie().into());
        ThinkGate::new(self.options(), then)
    }

    /// How much of the end marker stands at the end of this text; never all of it.
    fn partial(&self, text: &[u32]) -> usize {
        (0..self.end.len()).rev().find(|&length| text.ends_with(&self.end[..length])).unwrap()
    }

    fn read(&self, tokens: &[u32]) -> Legal {
        let writes = self.opening != Opening::Written && !self.begin.is_empty();
        let begin: &[u32] = if writes { &self.begin } else { &[] };
        if writes && self.opening == Opening::Optional {
            match tokens.first() {
                None => return Legal::BeginOrThen,
                Some(first) if *first != self.begin[0] => return Legal::Then(tokens.to_vec()),
                Some(_) => {}
            }
        }
        if tokens.len() < begin.len() {
            return Legal::One(begin[tokens.len()]);
        }
        let tokens = &tokens[begin.len()..];
        for length in 0..=tokens.len() {
            let (text, rest) = tokens.split_at(length);
            let due = |script: &[u32], written: &[u32]| match script.get(written.len()) {
                Some(&due) => Legal::One(due),
                None => Legal::Then(written[script.len()..].to_vec()),
            };
            if !self.at_once && text.ends_with(&self.end) {
                return Legal::Then(rest.to_vec());
            }
            let spent = length as u32 + if self.budget.is_some_and(|b| b.1) { begin.len() as u32 } else { 0 };
            if self.budget.is_some_and(|(budget, _)| spent >= budget) {
                let matched = if self.at_once { 0 } else { self.partial(text) };
                return match matched {
                    0 => due(&[&self.message[..], &self.end].concat(), rest),
                    _ => due(&self.end[matched..], rest),
                };
            }
            if self.at_once && rest.first() == Some(&self.end[0]) {
                return due(&self.end, rest);
            }
        }
        let goes_on = |token: u32| {
            let text = [tokens, &[token]].concat();
            if self.at_once { token == self.end[0] } else { text.ends_with(&self.end) || self.partial(&text) > 0 }
        };
        let denied = self.masked.iter().chain(self.begin.first()).copied().filter(|&token| !goes_on(token));
        Legal::AllBut(denied.collect())
    }

    /// The legal tokens, and whether one of them may end the span.
    fn legal(&self, tokens: &[u32]) -> (BTreeSet<u32>, bool) {
        let but = |denied: &BTreeSet<u32>| (0..VOCABULARY).filter(|token| !denied.contains(token)).collect();
        let follows = |walked: &[u32]| match &self.then {
            None => {
                let marks: BTreeSet<u32> = self.begin.first().into_iter().chain(self.end.first()).copied().collect();
                let mut legal: BTreeSet<u32> = but(&marks);
                legal.insert(END);
                (legal, true)
            }
            Some(then) => {
                let mut legal = then.children(walked);
                let ends = then.is_leaf(walked);
                legal.extend(ends.then_some(END));
                (legal, ends)
            }
        };
        match self.read(tokens) {
            Legal::One(token) => ([token].into(), false),
            Legal::AllBut(denied) => (but(&denied), false),
            Legal::Then(walked) => follows(&walked),
            Legal::BeginOrThen => {
                let (mut legal, ends) = follows(&[]);
                legal.insert(self.begin[0]);
                (legal, ends)
            }
        }
    }
}

fn plain() -> impl Strategy<Value = Plain> {
    let few = || prop::collection::vec(0..4u32, 0..3);
    let opening = prop_oneof![Just(Opening::Written), Just(Opening::Forced), Just(Opening::Optional)];
    let value = prop::collection::vec(0..8u32, 1..4).prop_map(|tokens| ("x".to_owned(), tokens));
    let then = prop_oneof![
        3 => prop::collection::vec(value, 1..5).prop_map(|rows| Some(Naive { rows })),
        1 => Just(None),
    ];
    let budget = prop::option::of((0..6u32, any::<bool>()));
    let end = prop::collection::vec(0..4u32, 1..4);
    (few(), end, few(), budget, opening, any::<bool>(), few(), then).prop_map(
        |(begin, end, message, budget, opening, at_once, masked, then)| Plain {
            begin,
            end,
            message,
            budget,
            opening,
            at_once,
            masked,
            then,
        },
    )
}

fn span(gate: impl Into<AnyConstraint>) -> Span {
    let rules = SpanRules::for_constraint(gate, VOCABULARY as usize).unwrap().with_end_tokens(ids(&[END])).unwrap();
    Span::new(Arc::new(rules.with_after(After::Stop).unwrap()))
}

fn legal_in(span: &Span) -> BTreeSet<u32> {
    match span.allowed(&mut Scratch::default()) {
        Allowed::All => (0..VOCABULARY).collect(),
        some => some.iter().map(TokenId::get).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(2_000)))]
    #[test]
    fn it_is_a_plain_reading_of_the_tokens(plain in plain(), choices in prop::collection::vec(any::<u32>(), 0..24)) {
        let Ok(gate) = plain.gate() else { return Ok(()) };
        let mut span = span(AnyConstraint::new(gate.clone()));
        let mut tokens: Vec<u32> = Vec::new();
        for choice in choices {
            if span.status() == Status::Complete {
                break;
            }
            let (legal, ends) = plain.legal(&tokens);
            prop_assert_eq!(legal_in(&span), legal.clone(), "after {:?}", &tokens);
            for token in 0..VOCABULARY {
                let may = span.role_of(id(token)).is_some();
                prop_assert_eq!(may, legal.contains(&token), "{} after {:?}", token, &tokens);
            }
            let forced: Vec<u32> = span.forced().map(TokenId::get).collect();
            let one = legal.len() == 1 && !matches!(plain.read(&tokens), Legal::AllBut(_));
            prop_assert_eq!(forced.first().copied(), legal.first().copied().filter(|_| one));
            // Now and then back, and the same tokens again.
            if choice % 5 == 0 {
                let back = choice as usize / 5 % (tokens.len() + 1);
                let (before, again) = (span.clone(), ids(&tokens[tokens.len() - back..]));
                span.rollback(back).unwrap();
                prop_assert_eq!(legal_in(&span), plain.legal(&tokens[..tokens.len() - back]).0);
                span.accept_all(&again).unwrap();
                prop_assert_eq!(span.state(), before.state());
            }
            let token = *legal.iter().nth(choice as usize % legal.len()).unwrap();
            let role = span.accept(id(token)).unwrap();
            prop_assert_eq!(role == Role::End, ends && token == END && span.status() == Status::Complete);
            tokens.push(token);
        }
    }

    /// A batch row is a span, whatever stands in the rows beside it.
    #[test]
    fn a_part_of_a_sequence_thinks_too(plain in plain(), choices in prop::collection::vec(any::<u32>(), 0..16)) {
        let Ok(gate) = plain.gate() else { return Ok(()) };
        // "a" may go on or be over: what follows it may be anything but a few tokens.
        let first = Naive { rows: vec![("a".into(), vec![1]), ("ab".into(), vec![1, 2])] };
        let parts = [AnyConstraint::from(first.trie()), AnyConstraint::new(gate)];
        let mut span = span(AnyConstraint::new(Sequence::new(parts).unwrap()));
        for choice in choices {
            if span.status() == Status::Complete {
                break;
            }
            let legal = legal_in(&span);
            for token in 0..VOCABULARY {
                prop_assert_eq!(span.role_of(id(token)).is_some(), legal.contains(&token));
            }
            span.accept(id(*legal.iter().nth(choice as usize % legal.len()).unwrap())).unwrap();
        }
    }
}

fn answers() -> AnyConstraint {
    Naive { rows: vec![("yes".into(), vec![1, 2]), ("no".into(), vec![3])] }.trie().into()
}

fn with(options: ThinkOptions) -> Span {
    let gate = ThinkGate::new(options, answers()).unwrap();
    Span::new(SpanRules::for_constraint(AnyConstraint::new(gate), VOCABULARY as usize).unwrap().into())
}

#[test]
fn what_was_thought_is_counted() {
    let options = ThinkOptions { begin: ids(&[7]), end: ids(&[8, 9]), ..ThinkOptions::default() };
    let budget = |tokens| Some(Budget::tokens(tokens));
    let told = |span: &Span| {
        let thought = span.thought();
        (thought.tokens, thought.forced, thought.cut_short, thought.end_matched)
    };
    let mut own = with(ThinkOptions { budget: budget(5), ..options.clone() });
    own.accept_all(&ids(&[4, 5, 8])).unwrap();
    assert_eq!(told(&own), (2, 0, false, 1));
    own.accept_all(&ids(&[9, 1, 2])).unwrap();
    assert_eq!((told(&own), own.status()), ((2, 1, false, 2), Status::Complete));
    assert_eq!(own.leaf().unwrap().name.as_deref(), Some("yes"));

    let mut cut =
        with(ThinkOptions { budget: budget(2), message: ids(&[6]), opening: Opening::Forced, ..options.clone() });
    assert_eq!(cut.forced().collect::<Vec<_>>(), ids(&[7]));
    cut.accept_all(&ids(&[7, 4])).unwrap();
    assert_eq!(cut.forced().collect::<Vec<_>>(), ids(&[6, 8, 9]), "the begin marker counts among the tokens");
    cut.accept_all(&ids(&[6, 8, 9])).unwrap();
    assert_eq!((told(&cut), cut.leaf()), ((1, 4, true, 2), None));

    let after = Some(Budget::after_begin(2));
    let mut cut = with(ThinkOptions { budget: after, opening: Opening::Forced, ..options.clone() });
    cut.accept_all(&ids(&[7, 4])).unwrap();
    assert_eq!(cut.forced().count(), 0, "one more may be thought");

    // A marker of ordinary tokens that the model had begun when the budget was used up: no message inside it.
    let whole = ThinkOptions { at_once: false, budget: budget(3), message: ids(&[6]), ..options };
    let mut begun = with(whole);
    begun.accept_all(&ids(&[4, 5, 8])).unwrap();
    assert_eq!((told(&begun), begun.forced().collect::<Vec<_>>()), ((3, 0, false, 1), ids(&[9])));
    begun.accept(id(9)).unwrap();
    assert_eq!(told(&begun), (2, 1, false, 2));
}

#[test]
fn overlaps_of_the_marker_are_seen() {
    // Where the marker is looked for as a whole: how much of it stands after each token.
    let matched = |end: &[u32], tokens: &[u32]| {
        let mut span = with(ThinkOptions { end: ids(end), at_once: false, ..ThinkOptions::default() });
        span.accept_all(&ids(tokens)).unwrap();
        span.thought().end_matched
    };
    assert_eq!([matched(&[5, 5], &[0]), matched(&[5, 5], &[1]), matched(&[5, 5], &[5, 5])], [0, 0, 2]);
    assert_eq!([matched(&[5, 5], &[5, 9]), matched(&[5, 6], &[5, 5]), matched(&[5, 6], &[5, 5, 6])], [0, 1, 2]);
    assert_eq!([matched(&[5, 5, 6], &[5, 5, 5]), matched(&[5, 5, 6], &[5, 5, 5, 6])], [2, 3]);
}

#[test]
fn nothing_ends_while_thinking() {
    let options = ThinkOptions { end: ids(&[8]), masked: ids(&[10]), ..ThinkOptions::default() };
    let gate = ThinkGate::new(options, answers()).unwrap();
    let rules = SpanRules::for_constraint(AnyConstraint::new(gate), 12).unwrap().with_end_tokens(ids(&[11])).unwrap();
    let mut sampler = Sampler::new(Arc::new(rules), SamplerOptions::default()).unwrap();
    // End tokens are text like any other there; what is masked may not come, and a wider row has no tail.
    let mut row = [0.0f32; 15];
    row[10] = 9.0;
    row[11] = 5.0;
    row[14] = 99.0;
    assert_eq!(sampler.sample(&row).unwrap(), id(11));
    assert_eq!(sampler.span_mut().accept(id(11)).unwrap(), Role::Free);
    assert_eq!(sampler.status(), Status::Active);
    let refused = sampler.span_mut().accept(id(10)).unwrap_err();
    assert!(matches!(&refused, SpanError::NotAllowed(_)), "{refused}");
    let mut masked = row;
    sampler.mask(&mut masked).unwrap();
    assert_eq!(masked[10], f32::NEG_INFINITY);
    assert_eq!((&masked[..10], masked[11], &masked[12..]), (&row[..10], 5.0, &[f32::NEG_INFINITY; 3][..]));
    let mut words = [0];
    sampler.fill_bitmask(&mut words).unwrap();
    assert_eq!(words, [0b1011_1111_1111]);
    assert_eq!(sampler.span_mut().accept(id(8)).unwrap(), Role::Marker);
    let mut tokens = Vec::new();
    row[1] = 3.0;
    sampler.advance(&row, &mut tokens).unwrap();
    assert_eq!(tokens, ids(&[1, 2, 11]));
}

#[test]
fn gates_that_cannot_be() {
    let end = || ThinkOptions { end: ids(&[5, 5]), ..ThinkOptions::default() };
    let refused = |options| ThinkGate::new(options, answers()).unwrap_err();
    assert_eq!(refused(ThinkOptions::default()), GateError::NoEnd);
    let error = refused(ThinkOptions { message: ids(&[4, 5]), ..end() });
    assert_eq!(error, GateError::EndInMessage { closing: ids(&[4, 5, 5, 5]), end: ids(&[5, 5]), length: 3 });
    assert!(error.to_string().contains("after 3 tokens"), "{error}");
    let error = refused(ThinkOptions { begin: ids(&[3, 9]), opening: Opening::Optional, ..end() });
    assert_eq!(error, GateError::Ambiguous { token: id(3) });
    let healed = Naive { rows: vec![("x".into(), vec![1])] }.trie().with_heal_bytes(1);
    assert_eq!(ThinkGate::new(end(), healed.into()).unwrap_err(), GateError::Healed);

    let mut nested = AnyConstraint::new(ThinkGate::new(end(), AnyConstraint::new(Unconstrained)).unwrap());
    for _ in 1..32 {
        nested = AnyConstraint::new(ThinkGate::new(end(), nested).unwrap());
    }
    assert_eq!(ThinkGate::new(end(), nested.clone()).unwrap_err(), GateError::TooDeep { most: 32 });
    let after = AnyConstraint::new(Sequence::new([answers(), nested]).unwrap());
    assert_eq!(ThinkGate::new(end(), after).unwrap_err(), GateError::TooDeep { most: 32 });

    let gate = AnyConstraint::new(ThinkGate::new(end(), answers()).unwrap());
    assert_eq!(gate.to_trie(1000).unwrap_err(), NotListed::Endless);
    let outside = SpanRules::for_constraint(gate.clone(), 5).unwrap_err();
    assert!(matches!(outside, RulesError::OutsideVocabulary { token, .. } if token == id(5)), "{outside}");
    // What everything may follow cannot have a part after it.
    let free = AnyConstraint::new(ThinkGate::new(end(), AnyConstraint::new(Unconstrained)).unwrap());
    assert!(Sequence::new([free, answers()]).is_err());
    assert!(Sequence::new([gate, answers()]).is_ok());
}

#[test]
fn rows_think_each_at_its_own_pace() {
    let options = ThinkOptions { end: ids(&[8, 9]), budget: Some(Budget::tokens(2)), ..ThinkOptions::default() };
    let gate = AnyConstraint::new(ThinkGate::new(options, answers()).unwrap());
    let rules = Arc::new(SpanRules::for_constraint(gate, 12).unwrap());
    let mut batch = Batch::new(rules, 3, SamplerOptions::default()).unwrap();
    batch.accept(&ids(&[8, 4, 4])).unwrap();
    batch.accept(&ids(&[9, 8, 4])).unwrap();
    let error = batch.accept(&ids(&[3, 9, 4])).unwrap_err();
    assert!(matches!(error, BatchError::Refused { row: 2, .. }), "{error}");
    batch.reorder(&[2, 1, 0]).unwrap();
    batch.accept(&ids(&[8, 9, 3])).unwrap();
    assert_eq!(batch.finished_rows().collect::<Vec<_>>(), [false, false, true]);
    let thought = |row| batch.thought(row).unwrap();
    assert_eq!([0, 1, 2].map(|row| (thought(row).tokens, thought(row).cut_short)), [(2, true), (1, false), (0, false)]);
    let logits = vec![0.0f32; 36];
    let mut chosen = vec![id(0); 3];
    batch.select(Rows::new(&logits, 3, 12, 12).unwrap(), &mut chosen).unwrap();
    assert_eq!(chosen, ids(&[9, 1, 0]));
    batch.rollback(3).unwrap();
    assert!((0..3).all(|row| batch.thought(row).unwrap() == trie_core::Thought::default()));
}
