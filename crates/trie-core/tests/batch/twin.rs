//! Whatever is done to a batch, each row is where a span of its own would be.

use crate::batch::kinds::{Numbers, Rules, batch, rules};
use crate::common::id;
use crate::common::multiples::VOCABULARY;
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{
    Allowed, AnyConstraint, Batch, BatchError, BatchMask, DrawSettings, Mode, Rows, RowsMut, Sampler, SamplerOptions,
    Scratch, Span, SpanRules, Status, TokenId, Unconstrained,
};

/// A span for each row, and a sampler for each place.
struct Twin {
    spans: Vec<Span>,
    samplers: Vec<Sampler>,
}

fn or_free(of: &Rules) -> Arc<SpanRules> {
    of.clone().unwrap_or_else(|| Arc::new(rules(AnyConstraint::new(Unconstrained))))
}

impl Twin {
    fn sampler(&mut self, batch: &Batch, place: usize, options: SamplerOptions) -> &mut Sampler {
        while self.samplers.len() <= place {
            let options = SamplerOptions { seed: Some(batch.seed(self.samplers.len())), ..options };
            self.samplers.push(Sampler::new(or_free(&None), options).unwrap());
        }
        let sampler = &mut self.samplers[place];
        *sampler.span_mut() = self.spans[place].clone();
        sampler
    }

    fn starved(&self) -> u64 {
        self.samplers.iter().map(Sampler::starved_count).sum()
    }
}

fn kind(allowed: &Allowed<'_>) -> u32 {
    match allowed {
        Allowed::All => 0,
        Allowed::Open { .. } => 1,
        Allowed::Only { .. } => 2,
        Allowed::Nothing => 3,
    }
}

/// Everything that can be asked of a batch, asked of the twin.
fn alike(batch: &mut Batch, twin: &mut Twin, mask: &mut BatchMask) -> Result<(), TestCaseError> {
    prop_assert_eq!(batch.len(), twin.spans.len());
    let finished: Vec<bool> = twin.spans.iter().map(|span| span.status() == Status::Complete).collect();
    prop_assert_eq!(batch.finished_rows().collect::<Vec<_>>(), finished);
    let (mut one, mut other) = (Scratch::default(), Scratch::default());
    let wanted = twin.spans.iter().flat_map(|span| bits(span, batch.mask_words())).collect::<Vec<_>>();
    let width = batch.mask_words() + 1;
    let mut words = vec![77; width * batch.len() + 1];
    batch.fill_bitmask(RowsMut::new(&mut words, twin.spans.len(), width, width).unwrap()).unwrap();
    prop_assert_eq!(words.pop(), Some(77));
    prop_assert!(words.chunks(width).all(|row| row[width - 1] == 0), "the tail is never legal");
    prop_assert_eq!(words.chunks(width).flat_map(|row| &row[..width - 1]).copied().collect::<Vec<_>>(), wanted.clone());
    batch.update(mask).unwrap();
    prop_assert_eq!(mask.words(), &wanted);
    for (row, span) in twin.spans.iter().enumerate() {
        let (allowed, want) = (batch.allowed(row, &mut one).unwrap(), span.allowed(&mut other));
        prop_assert_eq!(kind(&allowed), kind(&want));
        prop_assert_eq!(allowed.iter().collect::<Vec<_>>(), want.iter().collect::<Vec<_>>());
        prop_assert_eq!(batch.state(row).unwrap(), span.state());
        prop_assert_eq!(batch.leaf(row).unwrap(), span.leaf());
        prop_assert_eq!(batch.leaves(row).unwrap(), span.leaves());
    }
    Ok(())
}

fn bits(span: &Span, words: usize) -> Vec<i32> {
    let mut bits = vec![0; words];
    let mut scratch = Scratch::default();
    let allowed = span.allowed(&mut scratch);
    for token in TokenId::all(VOCABULARY).filter(|&token| allowed.contains(token)) {
        bits[token.index() / 32] |= 1 << (token.index() % 32);
    }
    bits
}

/// Masks rows in place, with a gap after each and entries beyond the vocabulary.
fn masked(batch: &mut Batch, twin: &mut Twin, numbers: &mut Numbers, options: SamplerOptions) -> TestCase {
    let (width, gap) = (VOCABULARY + numbers.below(4), numbers.below(3));
    let stride = width + gap;
    let logits = numbers.logits(stride * batch.len());
    let mut rows = logits.clone();
    batch.apply(RowsMut::new(&mut rows, twin.spans.len(), width, stride).unwrap()).unwrap();
    for (row, (got, before)) in rows.chunks(stride).zip(logits.chunks(stride)).enumerate() {
        let mut want = before.to_vec();
        twin.sampler(batch, row, options).mask(&mut want[..VOCABULARY]).unwrap();
        want[VOCABULARY..width].fill(f32::NEG_INFINITY);
        prop_assert_eq!(
            got.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            want.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        );
    }
    Ok(())
}

fn chosen(
    batch: &mut Batch,
    twin: &mut Twin,
    numbers: &mut Numbers,
    options: SamplerOptions,
) -> Result<Vec<TokenId>, TestCaseError> {
    let stride = VOCABULARY + numbers.below(4);
    let logits = numbers.logits(stride * batch.len());
    let mut chosen = vec![TokenId::default(); batch.len()];
    batch.select(Rows::new(&logits, batch.len(), VOCABULARY, stride).unwrap(), &mut chosen).unwrap();
    for (row, logits) in logits.chunks(stride).enumerate() {
        prop_assert_eq!(chosen[row], twin.sampler(batch, row, options).sample(logits).unwrap(), "row {}", row);
    }
    Ok(chosen)
}

/// Tokens in all rows or in none; the error names the first row that refuses, and its token.
fn accepted(batch: &mut Batch, twin: &mut Twin, tokens: &[TokenId]) -> TestCase {
    let mut next = twin.spans.clone();
    let results = next.iter_mut().zip(tokens).map(|(span, &token)| span.accept(token));
    match results.enumerate().find_map(|(row, result)| Some((row, result.err()?))) {
        None => {
            batch.accept(tokens).unwrap();
            twin.spans = next;
        }
        Some((row, source)) => {
            let error = batch.accept(tokens).unwrap_err();
            prop_assert_eq!((error.row(), error.token()), (Some(row), Some(tokens[row])));
            prop_assert_eq!(error, BatchError::Refused { row, source });
        }
    }
    Ok(())
}

/// Drafts that are legal for a while.
fn verified(batch: &Batch, twin: &Twin, row: usize, numbers: &mut Numbers) -> TestCase {
    let mut span = twin.spans[row].clone();
    let mut drafts = Vec::new();
    for _ in 0..numbers.below(5) {
        let mut scratch = Scratch::default();
        let legal: Vec<TokenId> = span.allowed(&mut scratch).iter().collect();
        let other = id(numbers.below(VOCABULARY + 3) as u32);
        let draft = if legal.is_empty() || numbers.below(4) == 0 { other } else { legal[numbers.below(legal.len())] };
        let _ = span.accept(draft);
        drafts.push(draft);
    }
    let width = batch.mask_words();
    let mut words = vec![77; width * (drafts.len() + 1)];
    let masks = RowsMut::new(&mut words, drafts.len() + 1, width, width).unwrap();
    let count = batch.verify(row, &drafts, masks).unwrap();
    let mut span = twin.spans[row].clone();
    let mut taken = 0;
    for (position, mask) in words.chunks(width).enumerate() {
        prop_assert_eq!(mask, bits(&span, width), "position {}", position);
        if position == taken && drafts.get(position).is_some_and(|&draft| span.accept(draft).is_ok()) {
            taken += 1;
        }
    }
    prop_assert_eq!(count, taken);
    Ok(())
}

type TestCase = Result<(), TestCaseError>;

fn walk(of: &[Rules], mode: Mode, seed: u64) -> TestCase {
    let draw = DrawSettings { temperature: 0.8, top_k: 5, ..DrawSettings::default() };
    let options = SamplerOptions { mode, draw, seed: Some(seed as u32) };
    let mut batch = Batch::of_rows(of.iter().cloned(), VOCABULARY, options).unwrap();
    let mut twin = Twin { spans: of.iter().map(|of| Span::new(or_free(of))).collect(), samplers: Vec::new() };
    let (mut numbers, mut mask) = (Numbers(seed), BatchMask::default());
    for _ in 0..16 {
        alike(&mut batch, &mut twin, &mut mask)?;
        let tokens = chosen(&mut batch, &mut twin, &mut numbers, options)?;
        let rows = batch.len();
        match numbers.below(12) {
            0..=4 => accepted(&mut batch, &mut twin, &tokens)?,
            5 => {
                let any = |numbers: &mut Numbers| id(numbers.below(VOCABULARY + 2) as u32);
                let some = tokens.iter().map(|&token| if numbers.below(3) == 0 { any(&mut numbers) } else { token });
                let some: Vec<TokenId> = some.collect();
                accepted(&mut batch, &mut twin, &some)?;
            }
            6 | 7 => {
                let parents: Vec<usize> = (0..=numbers.below(7)).map(|_| numbers.below(rows)).collect();
                batch.reorder(&parents).unwrap();
                twin.spans = parents.iter().map(|&parent| twin.spans[parent].clone()).collect();
            }
            8 => {
                let n = numbers.below(4);
                let mut next = twin.spans.clone();
                let short = next.iter_mut().position(|span| span.rollback(n).is_err());
                prop_assert_eq!(batch.rollback(n).err().and_then(|error| error.row()), short);
                twin.spans = if short.is_none() { next } else { twin.spans };
            }
            9 => {
                let row = numbers.below(rows);
                let tokens = [tokens[row], id(numbers.below(VOCABULARY) as u32)];
                prop_assert_eq!(batch.accept_in(row, &tokens).is_ok(), twin.spans[row].accept_all(&tokens).is_ok());
                let n = numbers.below(3);
                prop_assert_eq!(batch.rollback_in(row, n).is_ok(), twin.spans[row].rollback(n).is_ok());
            }
            10 => {
                let (row, other) = (numbers.below(rows), &of[numbers.below(of.len())]);
                batch.assign(row, other.clone()).unwrap();
                twin.spans[row] = Span::new(or_free(other));
            }
            _ if numbers.below(3) == 0 => {
                batch.reset();
                twin.spans.iter_mut().for_each(Span::reset);
                twin.samplers.iter_mut().for_each(Sampler::reset);
            }
            _ => masked(&mut batch, &mut twin, &mut numbers, options)?,
        }
        verified(&batch, &twin, numbers.below(batch.len()), &mut numbers)?;
        prop_assert_eq!(batch.starved_count(), twin.starved());
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_batch_is_a_span_for_each_row(of in batch(), sampled in any::<bool>(), seed in any::<u64>()) {
        walk(&of, if sampled { Mode::Sampled } else { Mode::Greedy }, seed)?;
    }
}
