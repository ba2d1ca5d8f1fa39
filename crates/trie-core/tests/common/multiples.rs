//! A kind of constraint as another crate would write one: its states are no integers, and it lends bits.

use trie_core::{Constraint, Ending, Leaf, Mask, Next, NotListed, Role, Scratch, Special, TokenId, Tokens, Trie};

pub const VOCABULARY: usize = 70;

/// `count` tokens, each a multiple of `modulus`, lent as bits.
#[derive(Debug)]
pub struct Multiples {
    words: Vec<u32>,
    count: usize,
}

impl Multiples {
    pub fn new(modulus: usize, count: usize) -> Self {
        let mut words = vec![0u32; VOCABULARY.div_ceil(32)];
        (0..VOCABULARY).step_by(modulus).for_each(|token| words[token / 32] |= 1 << (token % 32));
        Self { words, count }
    }
}

impl Constraint for Multiples {
    type State = Vec<TokenId>;

    fn start(&self) -> Vec<TokenId> {
        Vec::new()
    }

    fn next<'a>(&'a self, at: &'a Vec<TokenId>, _: &'a mut Scratch) -> Next<'a> {
        if at.len() == self.count {
            return Next { tokens: Tokens::default(), ending: Ending::Must };
        }
        Next { tokens: Tokens::Mask(Mask::new(&self.words, VOCABULARY).unwrap()), ending: Ending::No }
    }

    fn advance(&self, at: &mut Vec<TokenId>, token: TokenId) -> Option<Role> {
        let legal = self.next(at, &mut Scratch::default()).tokens.contains(token);
        legal.then(|| {
            at.push(token);
            Role::Value
        })
    }

    fn values(&self, at: &Vec<TokenId>, over: bool) -> Vec<Leaf> {
        let leaf = || Leaf { index: trie_core::LeafId::new(0), name: None, tokens: at.clone(), field: None };
        (over && at.len() == self.count).then(leaf).into_iter().collect()
    }

    fn max_token(&self) -> Option<TokenId> {
        TokenId::new(VOCABULARY as u32 - 1)
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        let tokens: Vec<TokenId> = Mask::new(&self.words, VOCABULARY).unwrap().iter().collect();
        if tokens.len().pow(self.count as u32) > limit {
            return Err(NotListed::TooMany { limit });
        }
        let mut values = vec![Vec::new()];
        for _ in 0..self.count {
            let longer = |value: &Vec<TokenId>| {
                let after = |&token: &TokenId| [value.as_slice(), &[token]].concat();
                tokens.iter().map(after).collect::<Vec<_>>()
            };
            values = values.iter().flat_map(longer).collect();
        }
        let mut builder = Trie::builder();
        for value in &values {
            builder.push(None, value);
        }
        builder.build().map_err(|_| NotListed::Damaged)
    }
}

impl Special for Multiples {}
