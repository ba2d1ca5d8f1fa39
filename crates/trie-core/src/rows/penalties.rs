//! What was written makes its tokens less probable: llama.cpp's penalties, before anything else of a choice.

use crate::rows::settings::DrawSettings;
use crate::set::ids::TokenId;

/// How often the tokens that count were written, ascending.
pub(crate) struct Penalties<'s> {
    settings: &'s DrawSettings,
    counts: Vec<(TokenId, u32)>,
}

impl<'s> Penalties<'s> {
    /// Of what was written, oldest first. `O(n log n)` in the tokens that count.
    pub(crate) fn of(settings: &'s DrawSettings, written: &[TokenId]) -> Self {
        let last = usize::try_from(settings.penalty_last_n).unwrap_or(usize::MAX);
        let last = if settings.has_penalties() { last } else { 0 };
        let mut window = written[written.len().saturating_sub(last)..].to_vec();
        window.sort_unstable();
        let counts = window.chunk_by(TokenId::eq).map(|same| (same[0], same.len() as u32)).collect();
        Self { settings, counts }
    }

    /// The logits of tokens that come ascending, after the penalties. `O(k)` in all.
    pub(crate) fn apply(&self, logits: impl Iterator<Item = (TokenId, f32)>) -> impl Iterator<Item = (TokenId, f32)> {
        let mut left = self.counts.as_slice();
        logits.map(move |(token, logit)| {
            while let [(counted, _), rest @ ..] = left
                && *counted < token
            {
                left = rest;
            }
            match left {
                [(counted, count), ..] if *counted == token => (token, self.penalised(logit, *count)),
                _ => (token, logit),
            }
        })
    }

    /// As llama.cpp has it, to the bit.
    fn penalised(&self, logit: f32, count: u32) -> f32 {
        let &DrawSettings { repeat_penalty, presence_penalty, frequency_penalty, .. } = self.settings;
        // Dividing would make negative logits more probable.
        let logit = if logit <= 0.0 { logit * repeat_penalty } else { logit / repeat_penalty };
        logit - (count as f32 * frequency_penalty + presence_penalty)
    }
}
