//! A form as a constraint: the allowed tokens at each position of the form.

use super::state::{FormState, LastToken, PartPosition};
use super::{Form, FormError, FormOptions, Listing, Overshoot, Part};
use crate::vocab::Vocab;
use std::sync::Arc;
use trie_core::{
    AllExcept, AnyConstraint, AnyState, Constraint, Ending, Leaf, Next, NotListed, Problem, Role, Scratch, SpanRules,
    Special, TokenId, Tokens, Trie,
};

/// A form over a vocabulary, used like any other [`Constraint`]. Literals are forced, slots and texts are walked in
/// their place, and the form is over after its last part.
///
/// ```
/// # use trie_core::TokenId;
/// # use trie_text::{TokenKind, Tokenizer, TokenizerError};
/// use trie_core::{AnyConstraint, Span, SpanRules};
/// use trie_text::{Form, FormConstraint, FormOptions, Part, SlotValues, Vocab};
/// # #[derive(Debug)]
/// # struct Bytes;
/// # impl Tokenizer for Bytes {
/// #     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
/// #         Ok(text.bytes().filter_map(|byte| TokenId::new(byte.into())).collect())
/// #     }
/// # }
/// # let bytes = (0..=255u8).map(|byte| ([byte], TokenKind::Text));
/// # let vocab = std::sync::Arc::new(Vocab::new(bytes, vec![], Some(std::sync::Arc::new(Bytes)))?);
///
/// let values = SlotValues::Texts(vec!["yes".to_owned(), "no".to_owned()]);
/// let slot = Part::Slot { name: "answer".to_owned(), values };
/// let form = Form::new([Part::Literal("A: ".to_owned()), slot, Part::Literal(".".to_owned())])?;
/// let form = FormConstraint::new(form.into(), &vocab, FormOptions::default())?;
/// let mut span = Span::new(SpanRules::for_constraint(AnyConstraint::new(form), 256)?.into());
/// span.accept_all(&b"A: no.".map(|byte| TokenId::new(byte.into()).unwrap()))?;
/// assert_eq!(span.leaves()[0].name.as_deref(), Some("no"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct FormConstraint {
    pub(super) form: Arc<Form>,
    pub(super) vocab: Arc<Vocab>,
    pub(super) options: FormOptions,
    start: FormState,
}

impl FormConstraint {
    /// A form in the tokens of this vocabulary. If its first set begins inside the text before it, so does the form.
    ///
    /// # Errors
    /// A part that the vocabulary cannot spell; text that ends where the model ends its output, if other parts follow
    /// and tokens are not taken back; a first set for another vocabulary.
    pub fn new(form: Arc<Form>, vocab: &Arc<Vocab>, options: FormOptions) -> Result<Self, FormError> {
        let mut texts = form.parts().iter().rev().skip(1);
        if let Some(Part::Held { name, .. }) = texts.find(|part| matches!(part, Part::Held { .. }))
            && options.overshoot == Overshoot::Refused
        {
            return Err(FormError::NotLast { name: name.clone() });
        }
        check_spelled(&form, vocab)?;
        let begun = match form.begins_with() {
            Some(set) if set.heal_bytes() > 0 => {
                let healed = vocab.healed_text(set, &[]);
                healed.map_err(|error| FormError::Begins { reason: error.to_string() })?
            }
            _ => form.literal(0).to_owned(),
        };
        let unset = FormState {
            filled: None,
            before: Arc::default(),
            tokens: Vec::new(),
            part: 0,
            at: PartPosition::Over,
            last: LastToken::Written,
        };
        let mut made = Self { form, vocab: Arc::clone(vocab), options, start: unset };
        made.start = made.begin(begun)?;
        Ok(made)
    }

    /// The rules for a generation that fills a form and takes back tokens that extend beyond a part.
    ///
    /// # Errors
    /// As [`FormConstraint::new`].
    pub fn rules_for_filling(
        form: Arc<Form>,
        vocab: &Arc<Vocab>,
        listed: Listing,
    ) -> Result<SpanRules<Self>, FormError> {
        let walk = FormOptions::default().with_overshoot(Overshoot::TakenBack).with_listed(listed);
        Ok(SpanRules::new(vec![(String::new(), Self::new(form, vocab, walk)?)], vocab.len())?)
    }

    /// Returns the form of it.
    pub fn form(&self) -> &Arc<Form> {
        &self.form
    }

    pub(super) fn takes_back(&self) -> bool {
        self.options.overshoot == Overshoot::TakenBack
    }

    /// Returns whether the part is the last, and nothing stands behind it.
    fn is_last(&self, part: usize) -> bool {
        part + 1 >= self.form.parts().len()
    }

    /// Tokens of which any may end a value that could continue; text that such a token begins may be dropped.
    pub(super) fn end_tokens(state: &FormState) -> &[TokenId] {
        match &state.at {
            PartPosition::Set(set, _) => set.rules.end_tokens(),
            PartPosition::Rule { rule, .. } => rule.rules.end_tokens(),
            _ => &[],
        }
    }

    /// Returns whether the context of the form determines the end of a value that might continue: it ends with the
    /// form; or everything is allowed after it, and text that does not fit is dropped.
    fn is_open(&self, state: &FormState) -> bool {
        if self.takes_back() { Self::end_tokens(state).is_empty() } else { self.is_last(state.part) }
    }

    /// The state after a value that could have continued and a token of a later part, possibly with empty values
    /// between. If tokens are taken back, this token is not written, because the next part may not allow it.
    fn carry(&self, state: &FormState, token: TokenId) -> Option<FormState> {
        if self.takes_back() {
            inner(&state.at).filter(|(constraint, at)| constraint.ending(at) == Ending::May)?;
            let ends = self.is_open(state) || Self::end_tokens(state).binary_search(&token).is_ok();
            return ends.then(|| FormState { last: LastToken::Ended, ..self.end_value(state) });
        }
        let mut after = self.step_behind(state)?;
        while !self.goes_on(&mut after, token)? {
            if let Some(crossed) = self.cross(&after, token) {
                return Some(crossed);
            }
            after = self.step_behind(&after)?;
        }
        Some(after)
    }

    /// The state after a value that could continue, if the next part determines its end.
    fn step_behind(&self, state: &FormState) -> Option<FormState> {
        let (constraint, at) = inner(&state.at)?;
        (constraint.ending(at) == Ending::May && !self.is_open(state)).then(|| self.end_value(state))
    }
}

/// Checks the literals: a vocabulary without a tokenizer may lack tokens for one, which would be a dead end.
fn check_spelled(form: &Form, vocab: &Vocab) -> Result<(), FormError> {
    let literals =
        form.parts().iter().filter_map(|part| if let Part::Literal(text) = part { Some(text) } else { None });
    let unspellable = |text: &&String| !vocab.can_tokenize() && vocab.tokenize_inside(text).is_none();
    match literals.into_iter().find(unspellable) {
        Some(text) => Err(FormError::Unspellable { what: "literal".to_owned(), text: text.clone() }),
        None => Ok(()),
    }
}

/// The constraint of a slot or text, and the state in it.
pub(super) fn inner(at: &PartPosition) -> Option<(&AnyConstraint, &AnyState)> {
    match at {
        PartPosition::Set(set, at) => Some((set.constraint(), at)),
        PartPosition::Rule { rule, at, .. } => Some((rule.constraint(), at)),
        PartPosition::Held(rules, at) => Some((rules.constraint(at), at.position())),
        PartPosition::Lead(..) | PartPosition::Free(..) | PartPosition::Over | PartPosition::Failed(_) => None,
    }
}

const EVERYTHING: Tokens<'static> = Tokens::Except(AllExcept::new(&[]));
const NOTHING: Next<'static> = Next { tokens: Tokens::Ids(&[]), ending: Ending::No };

impl Constraint for FormConstraint {
    type State = FormState;

    fn start(&self) -> FormState {
        self.start.clone()
    }

    fn next<'a>(&'a self, state: &'a FormState, scratch: &'a mut Scratch) -> Next<'a> {
        match &state.at {
            PartPosition::Lead(tokens, _) => {
                let next = tokens.get(state.tokens.len()..).and_then(|left| left.get(..1)).unwrap_or_default();
                Next { tokens: Tokens::Ids(next), ending: Ending::No }
            }
            PartPosition::Free(_, allowed) => Next { tokens: Tokens::Ids(allowed), ending: Ending::No },
            PartPosition::Held(rules, at) if self.takes_back() => {
                let tokens = match rules.allowed(at, scratch) {
                    trie_core::Allowed::Only { tokens, .. } => tokens,
                    trie_core::Allowed::All | trie_core::Allowed::Open { .. } => EVERYTHING,
                    trie_core::Allowed::Nothing => return NOTHING,
                };
                Next { tokens, ending: Ending::No }
            }
            PartPosition::Held(rules, at) => rules.constraint(at).next(at.position(), scratch),
            PartPosition::Set(..) | PartPosition::Rule { .. } => {
                let Some((constraint, at)) = inner(&state.at) else { return NOTHING };
                if constraint.ending(at) != Ending::May {
                    return Next { ending: Ending::No, tokens: self.or_crossing(state, constraint, at, scratch) };
                }
                if self.is_open(state) {
                    return constraint.next(at, scratch);
                }
                self.or_after(state, constraint, at, scratch)
            }
            PartPosition::Over => Next { tokens: Tokens::default(), ending: Ending::Must },
            PartPosition::Failed(_) => NOTHING,
        }
    }

    fn advance(&self, state: &mut FormState, token: TokenId) -> Option<Role> {
        if !self.goes_on(state, token)? {
            // Perhaps a value ended that might have gone on, or the token goes beyond a stop.
            *state = self.cross(state, token).or_else(|| self.carry(state, token))?;
        }
        Some(Role::Value)
    }

    fn ending(&self, state: &FormState) -> Ending {
        match &state.at {
            PartPosition::Over => Ending::Must,
            PartPosition::Held(rules, at) if !self.takes_back() => rules.constraint(at).ending(at.position()),
            PartPosition::Set(..) | PartPosition::Rule { .. } => {
                match inner(&state.at).map(|(constraint, at)| constraint.ending(at)) {
                    Some(Ending::May) if self.is_open(state) => Ending::May,
                    _ => Ending::No,
                }
            }
            _ => Ending::No,
        }
    }

    fn forced_token(&self, state: &FormState, scratch: &mut Scratch) -> Option<TokenId> {
        match inner(&state.at) {
            Some((constraint, at)) if constraint.ending(at) == Ending::No => {
                let is_only = self.crossings_here(state).next().is_none();
                is_only.then(|| constraint.forced_token(at, scratch)).flatten()
            }
            _ => {
                let Next { tokens, ending } = self.next(state, scratch);
                (ending == Ending::No).then(|| tokens.single_token()).flatten()
            }
        }
    }

    fn values(&self, state: &FormState, over: bool) -> Vec<Leaf> {
        let ended;
        let state = if over && !state.is_over() && self.ending(state) != Ending::No {
            ended = self.end_value(state);
            &ended
        } else {
            state
        };
        state.fields().into_iter().map(super::FilledField::leaf).collect()
    }

    fn problem(&self, state: &FormState) -> Option<Problem> {
        match &state.at {
            PartPosition::Failed(problem) => Some(problem.clone()),
            _ => inner(&state.at).and_then(|(constraint, at)| constraint.problem(at)),
        }
    }

    fn max_token(&self) -> Option<TokenId> {
        self.sets().into_iter().map(Trie::max_token).max()
    }

    fn sets(&self) -> Vec<&Trie> {
        let parts = self.form.parts().iter();
        parts.flat_map(|part| part.constraint().map_or_else(Vec::new, Constraint::sets)).collect()
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        if self.form.parts().iter().any(|part| matches!(part, Part::Text { .. } | Part::Held { .. })) {
            return Err(NotListed::Endless);
        }
        // Rules as lists of their texts, and every token stays.
        let listed =
            Self::new(Arc::clone(&self.form), &self.vocab, FormOptions::default().with_listed(Listing::Always));
        let listed = listed.map_err(|_| NotListed::Endless)?;
        let healed = self.form.begins_with().map_or(0, Trie::heal_bytes);
        let set = list_values(&listed, |state| listed.end_value(state).text().get(healed..).map(str::to_owned), limit)?;
        Ok(set.with_heal_bytes(healed as u32))
    }
}

impl Special for FormConstraint {
    fn first_set(&self) -> Option<&Trie> {
        self.form.begins_with()
    }
}

impl FormConstraint {
    /// Takes a token of the part. Returns whether it belongs to the part; `None` if no part takes it.
    pub(super) fn goes_on(&self, state: &mut FormState, token: TokenId) -> Option<bool> {
        let goes_on = match &mut state.at {
            PartPosition::Lead(tokens, _) => tokens.get(state.tokens.len()) == Some(&token),
            PartPosition::Free(_, allowed) if allowed.binary_search(&token).is_err() => false,
            PartPosition::Free(..) if self.vocab.is_end_of_generation(token) => {
                *state = FormState { last: LastToken::Dropped, ..self.end_value(state) };
                return Some(true);
            }
            PartPosition::Free(text, _) => {
                let Some(Part::Text { stops, .. }) = self.form.parts().get(state.part) else { return None };
                text.push(self.vocab.piece(token).unwrap_or_default(), stops);
                true
            }
            PartPosition::Held(rules, at) => {
                let ends = self.takes_back()
                    && self.vocab.is_end_of_generation(token)
                    && rules.forced(at, &mut Scratch::default()) != Some(token);
                if ends {
                    *state = FormState { last: LastToken::Dropped, ..self.end_value(state) };
                    return Some(true);
                }
                rules.advance(at, token).is_some()
            }
            PartPosition::Set(set, at) => set.constraint().advance(at, token).is_some(),
            PartPosition::Rule { rule, at, whole } => {
                let accepted = rule.constraint().advance(at, token).is_some();
                if accepted && rule.may_end(at) {
                    *whole = Some(state.tokens.len() + 1);
                }
                accepted
            }
            PartPosition::Over | PartPosition::Failed(_) => return None,
        };
        if goes_on {
            state.tokens.push(token);
            state.last = LastToken::Written;
            self.settle(state);
        }
        Some(goes_on)
    }

    /// Returns the tokens that continue this value or end it.
    fn or_after<'a>(
        &self,
        state: &FormState,
        constraint: &AnyConstraint,
        at: &AnyState,
        scratch: &'a mut Scratch,
    ) -> Next<'a> {
        let (ids, weighted, scratch) = scratch.split_weighted();
        ids.clear();
        let tokens = constraint.next(at, scratch).tokens;
        let end = tokens.weights().map(|weighted| weighted.end());
        weighted.clear(end.unwrap_or_default());
        if end.is_some() {
            weighted.extend(tokens.weigh());
        }
        ids.extend(tokens.iter());
        if self.takes_back() {
            ids.extend(Self::end_tokens(state));
        } else {
            let mut after = self.step_behind(state);
            while let Some(state) = after {
                after = self.step_behind(&state);
                let tokens = match inner(&state.at).filter(|_| after.is_some()) {
                    Some((constraint, at)) => constraint.next(at, scratch).tokens,
                    None => self.next(&state, scratch).tokens,
                };
                ids.extend(tokens.iter());
            }
        }
        ids.retain(|token| token.index() < self.vocab.len());
        ids.sort_unstable();
        ids.dedup();
        if let Some(end) = end {
            weighted.extend(ids.iter().map(|&token| (token, end)));
            return Next { tokens: weighted.tokens(), ending: Ending::No };
        }
        Next { tokens: Tokens::Ids(ids), ending: Ending::No }
    }
}

/// Number of tokens that may be visited for each value that may be listed.
const TOKENS_A_VALUE: usize = 256;

/// One value for each path through a constraint, with a name from the state at its end. `O(tokens)`.
///
/// # Errors
/// More values than `limit`, so many paths that they may be endless, or a path that leads to a dead end.
fn list_values<C: Constraint>(
    constraint: &C,
    name: impl Fn(&C::State) -> Option<String>,
    limit: usize,
) -> Result<Trie, NotListed> {
    let (mut builder, mut count, mut looked_at) = (Trie::builder(), 0usize, 0usize);
    let mut begun: Vec<(C::State, Vec<TokenId>)> = vec![(constraint.start(), Vec::new())];
    let mut scratch = Scratch::default();
    while let Some((state, tokens)) = begun.pop() {
        looked_at += 1;
        if constraint.ending(&state) != Ending::No {
            count += 1;
            builder.push(name(&state).as_deref(), &tokens);
        }
        if count > limit || looked_at > limit.saturating_mul(TOKENS_A_VALUE) {
            return Err(NotListed::TooMany { limit });
        }
        if constraint.problem(&state).is_some() {
            return Err(NotListed::Damaged);
        }
        let next: Vec<TokenId> = constraint.next(&state, &mut scratch).tokens.iter().collect();
        for token in next {
            let step = constraint.step(&state, token).ok_or(NotListed::Damaged)?;
            begun.push((step.state, [tokens.as_slice(), &[token]].concat()));
        }
    }
    builder.build().map_err(|_| NotListed::Damaged)
}
