//! Rows of halves, against the same numbers as singles.

use crate::batch::kinds::{Numbers, batch};
use crate::common::multiples::VOCABULARY;
use half::{bf16, f16};
use proptest::prelude::*;
use trie_core::{Batch, DrawSettings, Logit, Mode, Rows, RowsMut, SamplerOptions, ScoreMode, TokenId};

fn as_singles<L: Logit>(logits: &[L]) -> Result<(), TestCaseError> {
    let mut wide = Vec::new();
    let singles = L::widen(logits, &mut wide);
    let same = |(half, single): (&L, &f32)| half.to_f32().to_bits() == single.to_bits();
    prop_assert!(logits.iter().zip(singles).all(same));
    Ok(())
}

fn alike<L: Logit>(of: &Batch, logits: &[L], width: usize) -> Result<(), TestCaseError> {
    as_singles(logits)?;
    let singles: Vec<f32> = logits.iter().map(|logit| logit.to_f32()).collect();
    let rows = of.len();
    let (halves, wide) =
        (Rows::new(logits, rows, width, width).unwrap(), Rows::new(&singles, rows, width, width).unwrap());
    let (mut one, mut other) = (of.clone(), of.clone());
    let (mut a, mut b) = (vec![TokenId::default(); rows], vec![TokenId::default(); rows]);
    one.select(halves, &mut a).unwrap();
    other.select(wide, &mut b).unwrap();
    prop_assert_eq!(a, b);
    for mode in [ScoreMode::Model, ScoreMode::Renormalised, ScoreMode::AsGiven] {
        let best = one.top_children(halves, 7, None, mode).unwrap();
        prop_assert_eq!(best, other.top_children(wide, 7, None, mode).unwrap());
    }
    let (mut halves, mut wide) = (logits.to_vec(), singles);
    one.apply(RowsMut::new(&mut halves, rows, width, width).unwrap()).unwrap();
    other.apply(RowsMut::new(&mut wide, rows, width, width).unwrap()).unwrap();
    for (half, single) in halves.iter().zip(&wide) {
        prop_assert_eq!(half.to_f32().to_bits(), single.to_bits());
    }
    prop_assert_eq!(one.starved_count(), other.starved_count());
    Ok(())
}

proptest! {
    #[test]
    fn halves_are_singles(of in batch(), seed in any::<u64>(), sampled in any::<bool>()) {
        let mode = if sampled { Mode::Sampled } else { Mode::Greedy };
        let options = SamplerOptions { mode, draw: DrawSettings::default(), seed: Some(7) };
        let of = Batch::of_rows(of, VOCABULARY, options).unwrap();
        let mut numbers = Numbers(seed);
        let width = VOCABULARY + numbers.below(3);
        let logits = numbers.logits(of.len() * width);
        alike(&of, &logits.iter().map(|&logit| f16::from_f32(logit)).collect::<Vec<_>>(), width)?;
        alike(&of, &logits.iter().map(|&logit| bf16::from_f32(logit)).collect::<Vec<_>>(), width)?;
    }
}
