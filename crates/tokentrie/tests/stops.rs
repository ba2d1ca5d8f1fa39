//! Stop texts beside a search for them in the whole text.

use proptest::prelude::*;
use tokentrie::call::{StopError, StopFilter, Stops};

/// What comes before the stop text that is written first; of those that end together the longest counts.
fn naive<'t>(text: &'t str, stops: &[String]) -> (&'t str, bool) {
    for (at, c) in text.char_indices() {
        let written = &text[..at + c.len_utf8()];
        let ends = stops.iter().filter(|stop| written.ends_with(stop.as_str())).map(String::len).max();
        if let Some(length) = ends {
            return (&text[..written.len() - length], true);
        }
    }
    (text, false)
}

/// The most of the end of a text that a stop text may begin with.
fn begun(text: &str, stops: &[String]) -> usize {
    let begins = |length: &usize| {
        stops
            .iter()
            .any(|stop| stop.len() > *length && stop.as_bytes().starts_with(&text.as_bytes()[text.len() - length..]))
    };
    (0..=text.len()).rev().find(begins).unwrap_or(0)
}

proptest! {
    #[test]
    fn nothing_of_a_stop_text_is_shown_and_nothing_else_is_held(
        parts in prop::collection::vec("[abä]{0,4}", 0..12),
        stops in prop::collection::vec("[abä]{1,5}", 0..4),
    ) {
        let mut filter = StopFilter::new(&Stops::new(&stops).unwrap());
        let (whole, mut shown) = (parts.concat(), String::new());
        let (wanted, found) = naive(&whole, &stops);
        let mut read = String::new();
        for part in &parts {
            read.push_str(part);
            shown.push_str(&filter.push(part));
            if !filter.is_found() {
                prop_assert_eq!(shown.len(), read.len() - begun(&read, &stops));
            }
        }
        shown.push_str(&filter.finish());
        prop_assert_eq!((shown.as_str(), filter.is_found()), (wanted, found));
    }
}

#[test]
fn what_is_no_stop_text_is_refused() {
    assert_eq!(Stops::new(&["a", ""]).unwrap_err(), StopError::Empty(1));
    assert_eq!(Stops::new(&vec!["a"; 257]).unwrap_err(), StopError::TooMany(257));
    assert!(matches!(Stops::new(&["a".repeat(70_000)]), Err(StopError::TooLong { number: 0, bytes: 70_000 })));
    assert!(Stops::new::<&str>(&[]).unwrap().is_empty());
}
