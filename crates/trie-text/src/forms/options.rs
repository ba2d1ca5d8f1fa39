//! How a form is walked.

/// What becomes of tokens that say more than a part of a form holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overshoot {
    /// They never come, so every token stays: for whoever cannot take a token back.
    #[default]
    Refused,
    /// They end the part, and [`FormState::written`](super::FormState::written) says how many tokens stay. So free
    /// text is as the model would write it, and its stop need not stand in the text.
    TakenBack,
}

/// Which slots with rules are listed by their texts, so that they can be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Listing {
    /// None: they are walked.
    #[default]
    Never,
    /// Those with few texts.
    WhereFew,
    /// All: one with too many texts is an error.
    Always,
}

/// How a form is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct FormOptions {
    /// What becomes of tokens that say more than a part holds.
    pub overshoot: Overshoot,
    /// Which slots with rules are listed.
    pub listed: Listing,
}

impl FormOptions {
    /// With [`FormOptions::overshoot`].
    #[must_use]
    pub fn with_overshoot(self, overshoot: Overshoot) -> Self {
        Self { overshoot, ..self }
    }

    /// With [`FormOptions::listed`].
    #[must_use]
    pub fn with_listed(self, listed: Listing) -> Self {
        Self { listed, ..self }
    }
}
