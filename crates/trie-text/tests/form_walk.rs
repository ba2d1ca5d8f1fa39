//! Forms as constraints, over a vocabulary whose tokens cross every boundary: what may come is what is taken, no way is
//! a dead end, and what is written reads back as its fields.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use test_budget::cases;
use trie_core::{
    AnyConstraint, Constraint, Ending, Sampler, SamplerOptions, Scratch, Span, SpanRules, TokenId, Tokens,
};
use trie_rules::{AnyRule, Regex};
use trie_text::{
    Form, FormConstraint, FormError, FormOptions, LastToken, Overshoot, Part, SlotValues, TokenKind, Tokenizer,
    TokenizerError, Vocab,
};

/// Tokens of more than one byte: pieces that cross from literals into values and out of them.
const MERGED: [&str; 24] = [
    "\"}", "\", \"", "\": \"", "ann", "anna", "an", "RE", "PLY", "REPLY", "_TH", "ab", "a\"", " yes", "\n\n", "ye",
    "s\"", "12", "1\"", ", ", "no", "o\"", "\"a", "\"R", "é",
];

/// The longest piece that fits, again and again.
#[derive(Debug)]
struct Longest;

fn id(number: usize) -> TokenId {
    TokenId::new(number as u32).unwrap()
}

impl Tokenizer for Longest {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        let (mut rest, mut tokens) = (text, Vec::new());
        let mut bytes: &[u8] = &[];
        loop {
            if let Some((&byte, left)) = bytes.split_first() {
                tokens.push(id(byte.into()));
                bytes = left;
                continue;
            }
            let longest = (0..MERGED.len()).filter(|&n| rest.starts_with(MERGED[n])).max_by_key(|&n| MERGED[n].len());
            if let Some(number) = longest {
                tokens.push(id(256 + number));
                rest = &rest[MERGED[number].len()..];
            } else if let Some(char) = rest.chars().next() {
                bytes = &rest.as_bytes()[..char.len_utf8()];
                rest = &rest[char.len_utf8()..];
            } else {
                return Ok(tokens);
            }
        }
    }
}

const END: usize = 256 + MERGED.len();

fn vocab() -> Arc<Vocab> {
    let bytes = (0..=255u8).map(|byte| (vec![byte], TokenKind::Text));
    let merged = MERGED.iter().map(|piece| (piece.as_bytes().to_vec(), TokenKind::Text));
    let end = (b"<end>".to_vec(), TokenKind::Control);
    Vocab::new(bytes.chain(merged).chain([end]), vec![id(END)], Some(Arc::new(Longest))).unwrap().into()
}

fn piece() -> impl Strategy<Value = String> {
    let texts = [
        "{\"a\": \"",
        "\", \"",
        "\"}",
        "ann",
        "anna",
        "REPLY",
        "REPLY_TH",
        "ab",
        "a",
        "",
        " yes",
        "no",
        "12",
        "1",
        "é",
        "x",
    ];
    prop::sample::select(texts.to_vec()).prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = SlotValues> {
    let texts =
        prop::collection::btree_set(piece(), 1..5).prop_map(|texts| SlotValues::Texts(texts.into_iter().collect()));
    let rule = prop::sample::select(vec!["[0-9]{1,2}", "yes|no|ye", "(ab|a)*", "[a-z]{1,4}é?"]).prop_map(rule);
    prop_oneof![3 => texts, 1 => rule.prop_map(SlotValues::Rule)]
}

fn rule(pattern: &str) -> Arc<dyn AnyRule> {
    Arc::new(Regex::new(pattern).unwrap())
}

#[derive(Debug, Clone)]
enum Piece {
    Literal(String),
    Slot(SlotValues),
    Text { stops: Vec<String>, max_tokens: usize, pattern: Option<&'static str> },
}

fn parts(texts: bool) -> impl Strategy<Value = Vec<Piece>> {
    let stop = prop::sample::select(vec!["\"", "\n\n", ", ", "a", "é", "na", "\", \""]).prop_map(str::to_owned);
    let stops = prop::collection::btree_set(stop, 1..4).prop_map(|stops| stops.into_iter().collect());
    let pattern = prop::option::weighted(0.4, prop::sample::select(vec!["[a-z]+", "[0-9]{1,9}", "(ab|b)*"]));
    let text =
        (stops, 1..6usize, pattern).prop_map(|(stops, max_tokens, pattern)| Piece::Text { stops, max_tokens, pattern });
    let one = prop_oneof![
        3 => piece().prop_map(Piece::Literal),
        4 => values().prop_map(Piece::Slot),
        if texts { 2 } else { 0 } => text,
    ];
    prop::collection::vec(one, 1..6)
}

fn form(pieces: &[Piece]) -> Result<Form, FormError> {
    Form::new(pieces.iter().enumerate().map(|(at, piece)| match piece.clone() {
        Piece::Literal(text) => Part::Literal(text),
        Piece::Slot(values) => Part::Slot { name: at.to_string(), values },
        Piece::Text { stops, max_tokens, pattern } => match Part::text(at.to_string(), stops, max_tokens) {
            Part::Text { name, stops, max_tokens, exclude, .. } => {
                Part::Text { name, stops, max_tokens, exclude, pattern: pattern.map(rule) }
            }
            other => other,
        },
    }))
}

fn bytes(vocab: &Vocab, tokens: &[TokenId]) -> String {
    String::from_utf8(vocab.join(tokens).unwrap()).unwrap()
}

/// Whether a value may stand in a part.
fn fits(piece: &Piece, value: &str) -> bool {
    let is_whole = |rule: &Arc<dyn AnyRule>| rule.read(value.as_bytes()) == trie_rules::Read::Whole;
    match piece {
        Piece::Slot(SlotValues::Texts(values)) => values.iter().any(|text| text == value),
        Piece::Slot(SlotValues::Rule(rule)) => is_whole(rule),
        Piece::Literal(_) | Piece::Slot(SlotValues::Tokens(_)) => false,
        Piece::Text { pattern: Some(pattern), .. } => is_whole(&rule(pattern)),
        Piece::Text { stops, .. } => {
            let quotes = stops.iter().any(|stop| stop.starts_with('"'));
            // What is quoted has no line feed, and nothing has its stop.
            let quotes = quotes && value.contains(['\\', '\n']);
            !quotes && !stops.iter().any(|stop| value.contains(stop.as_str()))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(600)))]

    #[test]
    fn what_may_come_is_what_is_taken_and_no_way_is_a_dead_end(
        pieces in parts(true),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let vocab = vocab();
        let Ok(form) = form(&pieces) else { return Ok(()) };
        let Ok(constraint) = FormConstraint::new(Arc::new(form), &vocab, FormOptions::default()) else { return Ok(()) };
        let (mut state, mut tokens, mut scratch) = (constraint.start(), Vec::new(), Scratch::default());
        let mut picks = picks.into_iter().cycle();
        while constraint.ending(&state) != Ending::Must && tokens.len() < 200 {
            let next = constraint.next(&state, &mut scratch);
            let (ending, next): (_, Vec<TokenId>) = (next.ending, next.tokens.iter().collect());
            if let Some(problem) = constraint.problem(&state) {
                // A vocabulary may not tell two values apart where they stand.
                let known = problem.downcast_ref();
                let known = matches!(known, Some(FormError::Ambiguous { .. } | FormError::NoTokens { .. }));
                prop_assert!(known, "{problem}");
                return Ok(());
            }
            prop_assert!(ending == constraint.ending(&state) && (!next.is_empty() || ending == Ending::May));
            prop_assert!(next.is_sorted());
            for token in TokenId::all(vocab.len()) {
                let taken = constraint.step(&state, token).is_some();
                prop_assert_eq!(taken, next.contains(&token), "{} after {:?}", token, bytes_lossy(&vocab, &tokens));
            }
            if let Some(forced) = constraint.forced_token(&state, &mut scratch) {
                prop_assert!(next.contains(&forced));
            }
            if next.is_empty() {
                break;
            }
            let token = *picks.next().unwrap().get(&next);
            prop_assert!(constraint.advance(&mut state, token).is_some());
            tokens.push(token);
        }
        if constraint.ending(&state) == Ending::No {
            return Ok(()); // a rule that never has to end
        }
        let fields = constraint.values(&state, true);
        let written = bytes(&vocab, &tokens);
        // Where one may be in what was written: after a text two stops may say the same.
        let mut places = vec![0];
        let names: Vec<_> = constraint.form().parts().iter().filter_map(Part::name).collect();
        prop_assert_eq!(fields.iter().filter_map(|field| field.field.as_deref()).collect::<Vec<_>>(), names);
        let mut fields_left = fields.iter();
        for (number, piece) in pieces.iter().enumerate() {
            let text = match piece {
                Piece::Literal(text) => text.as_str(),
                Piece::Slot(_) | Piece::Text { .. } => {
                    let value = fields_left.next().unwrap().name.as_deref().unwrap();
                    prop_assert!(fits(piece, value), "{value:?} in part {number}");
                    value
                }
            };
            let shown = format!("{text:?} at {places:?} of {written:?}");
            places.retain(|at| written[*at..].starts_with(text));
            prop_assert!(!places.is_empty(), "{shown}");
            for at in &mut places {
                *at += text.len();
            }
            // What ends a text stays, unless a literal begins with it.
            if let Piece::Text { stops, .. } = piece {
                let literal: String = pieces[number + 1..].iter().map_while(|piece| match piece {
                    Piece::Literal(text) => Some(text.as_str()),
                    _ => None,
                }).collect();
                let stays = |stop: &'_ String| if literal.starts_with(stop.as_str()) { 0 } else { stop.len() };
                let stays: BTreeSet<&str> = stops.iter().map(|stop| &stop[..stays(stop)]).collect();
                let before = std::mem::take(&mut places);
                for (at, stop) in before.into_iter().flat_map(|at| stays.iter().map(move |stop| (at, *stop))) {
                    places.extend(written[at..].starts_with(stop).then_some(at + stop.len()));
                }
            }
        }
        prop_assert!(places.contains(&written.len()), "{places:?} of {written:?}");
    }

    #[test]
    fn going_back_and_on_again_changes_nothing(
        pieces in parts(true),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize), 40),
    ) {
        let vocab = vocab();
        let Ok(form) = form(&pieces) else { return Ok(()) };
        let Ok(constraint) = FormConstraint::new(Arc::new(form), &vocab, FormOptions::default()) else { return Ok(()) };
        let rules = Arc::new(SpanRules::for_constraint(AnyConstraint::new(constraint), vocab.len()).unwrap());
        let (mut span, mut scratch) = (Span::new(Arc::clone(&rules)), Scratch::default());
        let mut taken: Vec<TokenId> = Vec::new();
        for (pick, back) in picks {
            let allowed: Vec<TokenId> = span.allowed(&mut scratch).iter().collect();
            if allowed.is_empty() || span.status() != trie_core::Status::Active {
                break;
            }
            let token = *pick.get(&allowed);
            span.accept(token).unwrap();
            taken.push(token);
            let back = back.min(taken.len());
            span.rollback(back).unwrap();
            taken.truncate(taken.len() - back);
            let mut again = Span::new(Arc::clone(&rules));
            again.accept_all(&taken).unwrap();
            prop_assert_eq!(again.state(), span.state());
            prop_assert_eq!(again.leaves(), span.leaves());
        }
    }

    #[test]
    fn every_value_of_a_form_is_listed(pieces in parts(false)) {
        let vocab = vocab();
        let Ok(form) = form(&pieces) else { return Ok(()) };
        let Ok(constraint) = FormConstraint::new(Arc::new(form), &vocab, FormOptions::default()) else { return Ok(()) };
        let endless = pieces.iter().any(|piece| matches!(piece, Piece::Slot(SlotValues::Rule(_))));
        let Ok(trie) = constraint.to_trie(400) else { return Ok(()) };
        prop_assume!(!endless);
        let mut texts = vec![String::new()];
        for piece in &pieces {
            let more = match piece {
                Piece::Literal(text) => vec![text.clone()],
                Piece::Slot(SlotValues::Texts(values)) => values.clone(),
                _ => unreachable!("no other parts"),
            };
            texts = texts.iter().flat_map(|text| more.iter().map(move |more| format!("{text}{more}"))).collect();
        }
        texts.sort_unstable();
        texts.dedup();
        let mut listed: Vec<String> = trie.leaves().map(|leaf| leaf.name.unwrap()).collect();
        listed.sort_unstable();
        listed.dedup();
        // Where longer values go on from a value, a token of those is taken as that: what follows cannot begin with it.
        let told_apart = |piece: &Piece| match piece {
            Piece::Slot(SlotValues::Texts(values)) => {
                values.iter().all(|one| values.iter().all(|other| one == other || !one.starts_with(other.as_str())))
            }
            _ => true,
        };
        if pieces.iter().all(told_apart) {
            prop_assert_eq!(listed, texts);
        } else {
            prop_assert!(listed.iter().all(|text| texts.contains(text)));
        }
        for leaf in trie.leaves() {
            prop_assert_eq!(bytes(&vocab, &leaf.tokens), leaf.name.unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(3000)))]

    /// Free text, its stop and what follows, in any tokens but those with something of all three.
    #[test]
    fn a_token_may_end_a_stop_and_begin_what_follows(
        written in prop::collection::vec(prop::sample::select(vec!["a", "n", "x", "\"", ", ", "é", " "]), 0..6),
        stops in prop::sample::subsequence(vec!["\"", "\n\n", ", ", "a", "é", "na", "\", \"", "x"], 1..4),
        literal in prop::sample::select(vec!["", "", "R", "\"a", " "]),
        value in prop::sample::select(vec!["ann", "yes", "anna", "ab", "no"]),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 30),
    ) {
        let (vocab, written) = (vocab(), written.concat());
        let end = |stop: &&str, text: &str| text.find(*stop).map(|at| (at + stop.len(), at, stop.len()));
        if stops.iter().any(|stop| end(stop, &written).is_some()) {
            return Ok(());
        }
        for stop in &stops {
            let then = if literal.starts_with(stop) { literal.to_owned() } else { format!("{stop}{literal}") };
            let text = format!("{written}{then}{value}");
            // The one that ends first, and of those that end at once the longest.
            let Some((over, begin, _)) = stops.iter().filter_map(|stop| end(stop, &text)).min() else { unreachable!() };
            if (over, begin) != (written.len() + stop.len(), written.len()) {
                continue;
            }
            let parts = [
                Part::text("t", stops.iter().copied(), 30),
                Part::Literal(literal.to_owned()),
                Part::Slot { name: "s".to_owned(), values: SlotValues::Rule(rule("[a-z]{1,5}")) },
            ];
            let form = Form::new(parts).unwrap();
            let walk = FormConstraint::new(form.into(), &vocab, FormOptions::default()).unwrap();
            let (mut state, mut at, mut picks) = (walk.start(), 0, picks.iter().cycle());
            while at < text.len() {
                let fits = |token: &TokenId| {
                    let piece = vocab.piece(*token).unwrap();
                    let is_of_all = at < begin && at + piece.len() > over;
                    vocab.is_text(*token) && text.as_bytes()[at..].starts_with(piece) && !is_of_all
                };
                let tokens: Vec<TokenId> = TokenId::all(vocab.len()).filter(fits).collect();
                let token = *picks.next().unwrap().get(&tokens);
                prop_assert!(walk.advance(&mut state, token).is_some(), "{token} at {at} of {text:?}, {stops:?}");
                at += vocab.piece(token).unwrap().len();
            }
            let values: Vec<_> = walk.values(&state, true).into_iter().map(|field| field.name.unwrap()).collect();
            prop_assert_eq!(values, [written.as_str(), value]);
        }
    }
}

fn bytes_lossy(vocab: &Vocab, tokens: &[TokenId]) -> String {
    String::from_utf8_lossy(&vocab.join(tokens).unwrap()).into_owned()
}

#[test]
fn a_sampler_fills_a_form() {
    let vocab = vocab();
    let actions = SlotValues::Texts(vec!["REPLY".to_owned(), "REPLY_TH".to_owned()]);
    let slot = Part::Slot { name: "action".to_owned(), values: actions };
    let form = Form::new([
        Part::Literal("{\"a\": \"".to_owned()),
        slot,
        Part::Literal("\", \"".to_owned()),
        Part::text("note", ["\""], 3),
        Part::Literal("\"}".to_owned()),
    ]);
    let form = Arc::new(form.unwrap());
    let constraint = FormConstraint::new(Arc::clone(&form), &vocab, FormOptions::default()).unwrap();
    let rules = Arc::new(SpanRules::for_constraint(AnyConstraint::new(constraint), vocab.len()).unwrap());
    let mut sampler = Sampler::new(rules, SamplerOptions::default()).unwrap();
    let (mut tokens, mut row) = (Vec::new(), vec![0.0; vocab.len()]);
    row[256 + MERGED.iter().position(|piece| *piece == "_TH").unwrap()] = 9.0;
    row[256 + 1] = 5.0;
    while sampler.status() == trie_core::Status::Active {
        let token = sampler.sample(&row).unwrap();
        sampler.span_mut().accept(token).unwrap();
        tokens.push(token);
    }
    let text = bytes(&vocab, &tokens);
    assert_eq!(text, "{\"a\": \"REPLY_TH\", \"_TH_TH_TH\"}", "three tokens");
    let names: Vec<String> = sampler.span().leaves().into_iter().map(|leaf| leaf.name.unwrap()).collect();
    assert_eq!(names, ["REPLY_TH", "_TH_TH_TH"]);

    let kept = FormOptions::default().with_overshoot(Overshoot::TakenBack);
    let walk = FormConstraint::new(form, &vocab, kept).unwrap();
    let mut state = walk.start();
    let all = vocab.tokenize("{\"a\": \"REPLY\", \"ab", false, false).unwrap();
    for &token in &all {
        walk.advance(&mut state, token).unwrap();
        if state.last_token() == LastToken::Ended {
            // It ended a value that might have gone on, and is not written: it begins what follows.
            walk.advance(&mut state, token).unwrap();
        }
    }
    let written = state.written_count();
    assert_eq!((state.fields().len(), written), (1, all.len()));
    // `x", ` ends the text and says more than follows it: it goes.
    let stop = id(256 + MERGED.iter().position(|piece| *piece == "\", \"").unwrap());
    walk.advance(&mut state, stop).unwrap();
    assert_eq!((state.written_count(), state.fields()[1].value.as_str()), (written, "ab"));
    assert!(matches!(walk.next(&state, &mut Scratch::default()).tokens, Tokens::Ids([_])));
    assert!(state.text().ends_with("\"ab\"}"));
}

#[test]
fn many_slots_that_may_be_empty_are_walked_without_recursion() {
    let slots = |count: usize| {
        let slot = |number| Part::Slot { name: format!("s{number}"), values: SlotValues::Rule(rule("a?")) };
        Form::new((0..count).map(slot).chain([Part::Literal("x".to_owned())]))
    };
    let refused = slots(65).unwrap_err();
    assert!(matches!(&refused, FormError::TooManyEmpty { name, most: 64 } if name == "s64"), "{refused}");

    // A stack that a frame for each slot would not fit on.
    let walk = move || {
        let vocab = vocab();
        let form = FormConstraint::new(slots(64).unwrap().into(), &vocab, FormOptions::default()).unwrap();
        let rules = Arc::new(SpanRules::for_constraint(AnyConstraint::new(form), vocab.len()).unwrap());
        let mut span = Span::new(Arc::clone(&rules));
        for _ in 0..64 {
            span.accept(id(b'a'.into())).unwrap();
        }
        span.accept(id(b'a'.into())).unwrap_err();
        span.accept(id(b'x'.into())).unwrap();
        assert_eq!(span.leaves().iter().map(|leaf| leaf.name.as_deref()).collect::<Vec<_>>(), [Some("a"); 64]);

        let mut span = Span::new(rules);
        span.accept(id(b'x'.into())).unwrap();
        assert_eq!(span.leaves().iter().map(|leaf| leaf.name.as_deref()).collect::<Vec<_>>(), [Some(""); 64]);
    };
    std::thread::Builder::new().stack_size(96 << 10).spawn(walk).unwrap().join().unwrap();
}

/// Free text with several stops: as a constraint and where tokens are taken back, beside literals that begin with one.
#[test]
fn the_stop_that_is_written_first_ends_a_text() {
    let vocab = vocab();
    let walked = |stops: &[&str], literal: &str, overshoot: Overshoot, text: &str, pattern: Option<&str>| {
        let Part::Text { name, stops, max_tokens, exclude, .. } = Part::text("t", stops.iter().copied(), 20) else {
            unreachable!("a text")
        };
        let text_part = Part::Text { name, stops, max_tokens, exclude, pattern: pattern.map(rule) };
        let form = Form::new([text_part, Part::Literal(literal.to_owned())]).unwrap();
        let options = FormOptions::default().with_overshoot(overshoot);
        let walk = FormConstraint::new(form.into(), &vocab, options).unwrap();
        let mut state = walk.start();
        for byte in text.bytes() {
            walk.advance(&mut state, id(byte.into())).unwrap_or_else(|| panic!("{byte} of {text:?}"));
            if !state.fields().is_empty() {
                break;
            }
        }
        (state.fields()[0].value.clone(), state.text().to_owned())
    };
    for (stops, literal, text, value, whole) in [
        (&["!", "?"][..], ".", "so?", "so", "so?."),
        (&["!", "?"], ".", "so!", "so", "so!."),
        (&["!", "?"], "? ", "so?", "so", "so? "),
        (&["!", "?"], "? ", "so!", "so", "so!? "),
        (&["b", "ab"], ".", "xxab", "xx", "xxab."),
        (&["ab", "abc"], ".", "xabc", "x", "xab."),
        (&["xyz", "y"], ".", "axyz", "ax", "axy."),
    ] {
        for pattern in [None, Some("[a-z]*")] {
            let refused = walked(stops, literal, Overshoot::Refused, text, pattern);
            assert_eq!(refused, (value.to_owned(), whole.to_owned()), "{stops:?} {text:?}");
            let taken_back = walked(stops, literal, Overshoot::TakenBack, text, pattern);
            assert_eq!(taken_back, (value.to_owned(), format!("{value}{literal}")), "{stops:?} {text:?}");
        }
    }
}
