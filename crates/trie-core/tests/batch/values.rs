//! Values that are text, and rows that nothing constrains.

use crate::common::{id, ids};
use std::sync::Arc;
use trie_core::{
    After, Allowed, AnyConstraint, Batch, Constraint, Ending, Next, NotListed, Role, SamplerOptions, Scratch,
    SpanRules, Special, TokenId, Tokens, Trie,
};

const VOCABULARY: usize = 10;

/// Tokens 1 to 3 in any number, and a marker, 7, wherever it comes.
#[derive(Debug, Clone)]
struct Text;

impl Constraint for Text {
    type State = u32;

    fn start(&self) -> u32 {
        0
    }

    fn next<'a>(&'a self, _: &'a u32, scratch: &'a mut Scratch) -> Next<'a> {
        Next { tokens: Tokens::Ids(scratch.keep_ids(ids(&[1, 2, 3, 7]).into())), ending: Ending::May }
    }

    fn advance(&self, written: &mut u32, token: TokenId) -> Option<Role> {
        *written += 1;
        match token.get() {
            1..=3 => Some(Role::Value),
            7 => Some(Role::Marker),
            _ => None,
        }
    }

    fn max_token(&self) -> Option<TokenId> {
        TokenId::new(7)
    }

    fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for Text {}

#[test]
fn the_text_of_a_rule_is_what_was_accepted_of_its_value() {
    let text =
        SpanRules::for_constraint(AnyConstraint::new(Text), VOCABULARY).unwrap().with_end_tokens(ids(&[9])).unwrap();
    let mut leaf = Trie::builder();
    leaf.push(Some("a"), &ids(&[1]));
    let set = SpanRules::for_constraint(leaf.build().unwrap(), VOCABULARY).unwrap();
    let rows = [text, set].map(|rules| Some(Arc::new(rules)));
    let mut batch = Batch::of_rows(rows.clone(), VOCABULARY, SamplerOptions::default()).unwrap();
    let of = |batch: &Batch, row| batch.value_tokens(row).unwrap();
    batch.accept_in(0, &ids(&[7, 2])).unwrap();
    assert!(batch.accept_in(0, &ids(&[3, 8])).is_err(), "what is refused was not written");
    assert_eq!(of(&batch, 0), None, "it may go on");
    batch.reorder(&[0, 0, 1]).unwrap();
    batch.accept(&ids(&[3, 1, 1])).unwrap();
    batch.accept(&ids(&[9, 1, 4])).unwrap();
    assert_eq!(of(&batch, 0), Some(ids(&[2, 3])));
    assert_eq!((of(&batch, 1), of(&batch, 2)), (None, None), "one is not complete, and one is a leaf");
    batch.rollback(1).unwrap();
    batch.accept(&ids(&[9, 9, 4])).unwrap();
    assert_eq!((of(&batch, 0), of(&batch, 1)), (Some(ids(&[2, 3])), Some(ids(&[2, 1]))));
    batch.accept(&ids(&[5, 1, 5])).unwrap();
    assert_eq!(of(&batch, 1), Some(ids(&[2, 1])), "what follows it is none of it");
    batch.assign(1, rows[0].clone()).unwrap();
    batch.accept_in(1, &ids(&[9])).unwrap();
    assert_eq!(of(&batch, 1), Some(Vec::new()));
    batch.reset();
    assert_eq!(of(&batch, 0), None);
    assert!(batch.value_tokens(3).is_err());
}

#[test]
fn a_free_row_ends_with_an_end_of_generation_token() {
    for after in [After::Stop, After::Free] {
        let free = SpanRules::free(VOCABULARY, &ids(&[4, 9]), after).unwrap();
        let mut batch = Batch::new(Arc::new(free), 2, SamplerOptions::default()).unwrap();
        let mut scratch = Scratch::default();
        assert_eq!(batch.allowed(0, &mut scratch).unwrap(), Allowed::All);
        batch.accept(&ids(&[5, 4])).unwrap();
        assert_eq!(batch.finished_rows().collect::<Vec<_>>(), [false, true]);
        assert_eq!((batch.leaf(1).unwrap(), batch.value_tokens(1).unwrap()), (None, None));
        let allowed = batch.allowed(1, &mut scratch).unwrap().to_vec(VOCABULARY);
        assert_eq!(allowed.len(), if after == After::Stop { 2 } else { VOCABULARY });
        assert_eq!(batch.accept(&ids(&[5, 5])).is_ok(), after == After::Free);
        batch.reset();
        assert_eq!(batch.finished_rows().collect::<Vec<_>>(), [false, false]);
    }
    let endless = SpanRules::free(VOCABULARY, &[], After::Stop).unwrap();
    assert_eq!(endless.after_value(), After::Free);
    assert!(SpanRules::free(VOCABULARY, &[id(10)], After::Stop).is_err());
}
