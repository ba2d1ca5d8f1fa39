//! Spellings of options: texts that a model may write for the same option.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trie_core::log_add;
use trie_text::TextValues;

/// Questions with more options are scored in their own spelling alone.
const MOST_SPELLED: usize = 256;

/// The texts that are scored for the options of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spellings {
    /// Texts, all different: first those of the options themselves, in their order.
    pub(super) texts: Arc<[String]>,
    /// Index of the option of each text.
    pub(super) options: Arc<[usize]>,
    /// Number of options, each of which has at least one text.
    count: usize,
}

impl Spellings {
    /// The options' own texts.
    pub(super) fn of_texts(texts: Vec<String>) -> Self {
        let count = texts.len();
        Self { options: (0..count).collect(), texts: texts.into(), count }
    }

    /// The options' own texts, and each with a space before it, with a capital letter, in capital letters and in small
    /// ones. Options that differ in their case alone are not spelled in another case.
    pub(super) fn variants(own: Vec<String>) -> Self {
        if own.len() > MOST_SPELLED {
            return Self::of_texts(own);
        }
        let mut count_of: HashMap<String, usize> = HashMap::new();
        for text in &own {
            *count_of.entry(fold_case(text)).or_default() += 1;
        }
        let mut seen: HashSet<String> = own.iter().cloned().collect();
        let mut options: Vec<usize> = (0..own.len()).collect();
        let mut texts = own.clone();
        for (option, text) in own.iter().enumerate() {
            let is_alone = count_of[&fold_case(text)] == 1;
            for variant in variants_of(text, is_alone) {
                if seen.insert(variant.clone()) {
                    texts.push(variant);
                    options.push(option);
                }
            }
        }
        Self { texts: texts.into(), options: options.into(), count: own.len() }
    }

    /// Returns the options' own texts alone, if there are others; else `None`.
    pub(super) fn without_variants(&self) -> Option<Self> {
        (self.texts.len() > self.count).then(|| Self::of_texts(self.texts[..self.count].to_vec()))
    }

    /// Returns the texts as values.
    pub(super) fn values(&self) -> TextValues {
        TextValues::new(&*self.texts).with_distinct(true)
    }

    /// Sums the log-probabilities of the texts of each option. NaN where none of them is known.
    pub(super) fn sum(&self, logprobs: &[f64]) -> Vec<f64> {
        let mut sums = vec![f64::NAN; self.count];
        for (&option, &logprob) in self.options.iter().zip(logprobs).filter(|(_, logprob)| !logprob.is_nan()) {
            let sum = &mut sums[option];
            *sum = if sum.is_nan() { logprob } else { log_add(*sum, logprob) };
        }
        sums
    }
}

/// The text without its case, and without spaces before it.
fn fold_case(text: &str) -> String {
    text.trim_start_matches(' ').to_lowercase()
}

/// The text after a space, and where it may have another case in each case, after a space and without.
fn variants_of(text: &str, in_other_case: bool) -> Vec<String> {
    let text = text.trim_start_matches(' ');
    if !in_other_case {
        return vec![format!(" {text}")];
    }
    let mut letters = text.chars();
    let capitalised = letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>());
    let cases = [Some(text.to_owned()), capitalised, Some(text.to_uppercase()), Some(text.to_lowercase())];
    cases.into_iter().flatten().flat_map(|text| [format!(" {text}"), text]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(own: &[&str]) -> Vec<(String, usize)> {
        let spellings = Spellings::variants(own.iter().map(|&text| text.to_owned()).collect());
        spellings.texts.iter().cloned().zip(spellings.options.iter().copied()).collect()
    }

    #[test]
    fn each_case_of_an_option_is_the_same_option() {
        let found = variants(&["yes", "No"]);
        let texts: Vec<&str> = found.iter().map(|(text, _)| &text[..]).collect();
        let expected = ["yes", "No", " yes", " Yes", "Yes", " YES", "YES", " No", " NO", "NO", " no", "no"];
        assert_eq!(texts, expected);
        assert!(found.iter().all(|(text, option)| text.trim().to_lowercase() == ["yes", "no"][*option]));
    }

    #[test]
    fn options_that_differ_in_case_alone_are_spelled_in_their_own() {
        let found = variants(&["us", "US", "ub"]);
        let of = |option: usize| -> Vec<&str> {
            found.iter().filter(|(_, of)| *of == option).map(|(text, _)| &text[..]).collect()
        };
        assert_eq!((of(0), of(1)), (vec!["us", " us"], vec!["US", " US"]));
        assert_eq!(of(2), ["ub", " ub", " Ub", "Ub", " UB", "UB"]);
        let texts: Vec<String> = variants(&[" a"]).into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, [" a", "a", " A", "A"], "no text is listed twice");
        let many: Vec<String> = (0..300).map(|number| format!("option{number}")).collect();
        assert_eq!(Spellings::variants(many.clone()), Spellings::of_texts(many));
    }

    #[test]
    fn probabilities_of_spellings_add_up() {
        let spellings = Spellings { texts: Arc::default(), options: [0, 1, 0, 1, 2].into(), count: 3 };
        let logs = [0.25_f64.ln(), f64::NAN, 0.5_f64.ln(), f64::NEG_INFINITY, f64::NAN];
        let sums = spellings.sum(&logs);
        assert!((sums[0].exp() - 0.75).abs() < 1e-12 && sums[1] == f64::NEG_INFINITY && sums[2].is_nan());
    }
}
