//! Constraint of the next generations: tries or a constraint, set before, until they are cleared.

use super::{Session, State};
use crate::abi::constraint::{Follows, Listening, follows};
use crate::abi::parts::{self, LeftOut};
use crate::error::{Error, Result};
use crate::status::TOKENTRIE_ERROR_SPEC;
use std::sync::Arc;
use tokentrie::call::Generate;
use tokentrie::chat::ChatFormat;
use tokentrie::constraint::{Built, Host, Spec};
use trie_core::{After, Mode, Problem, SpanRules, Trie};
use trie_formats::PayloadReport;
use trie_text::{TextValues, ValuesError, Vocab};

/// Constraint of the next generation.
pub(super) enum Following {
    Nothing,
    Rules {
        rules: Arc<SpanRules>,
        mode: Mode,
        /// For a prompt that is text.
        built: Option<Built>,
        /// The spec, which choices need.
        spec: Option<Spec>,
    },
    /// The constraint cannot be used, or the generation that followed it failed: going on without it would allow every
    /// token.
    Refused(Error),
}

/// Suffix of an error that rejected the constraint of a session.
pub(super) const REFUSED: &str = "what was set is not followed: set it again, or clear it";

impl Session {
    /// Sets the constraint of the next generations: a payload in JSON.
    pub(crate) fn set_token_trie(self: &Arc<Self>, json: &[u8], mode: i32) -> Result<()> {
        self.follow(mode, |state, vocab| {
            let payload = state.cache.payload(json, Some(vocab.len()))?;
            let left_out = LeftOut::of(&payload.report);
            Ok(Follows { spans: Arc::clone(&payload.constraints), built: None, spec: None, left_out })
        })
    }

    /// The same: tries or a constraint that were made before.
    pub(crate) fn set_trie(self: &Arc<Self>, trie: u64, mode: i32) -> Result<()> {
        self.follow(mode, |_, vocab| follows(trie, vocab))
    }

    /// The same, refused before it was read.
    pub(crate) fn refuse_token_trie(&self, error: &Error) {
        if let Ok(_turn) = self.turn("set_token_trie") {
            self.state().following = Following::Refused(error.clone());
        }
    }

    fn follow(self: &Arc<Self>, mode: i32, follows: impl FnOnce(&mut State, &Vocab) -> Result<Follows>) -> Result<()> {
        let _turn = self.turn("set_token_trie")?;
        let mut state = self.state();
        state.left_out = LeftOut::default();
        let following = parts::mode(mode).and_then(|mode| {
            let Follows { spans, built, spec, left_out } = follows(&mut state, self.model.model.vocab())?;
            let mut options = Generate::default();
            options.after = Some(self.after);
            let rules = Arc::new(options.rules(spans, self.model.model.vocab())?);
            state.left_out = left_out;
            // A form that free text follows is walked as it stands.
            let built = built.filter(|built| self.after == After::Stop || !matches!(built, Built::Form(_)));
            Ok(Following::Rules { rules, mode, built, spec })
        });
        let failed = following.as_ref().err().cloned();
        state.following = following.unwrap_or_else(Following::Refused);
        failed.map_or(Ok(()), Err)
    }

    /// Reads what the session follows, for a request without `field`.
    pub(super) fn followed<R>(
        &self,
        field: &str,
        read: impl FnOnce(&SpanRules, Option<&Built>) -> Result<R>,
    ) -> Result<R> {
        match &self.state().following {
            Following::Rules { rules, built, .. } => read(rules, built.as_ref()),
            Following::Refused(error) => Err(error.clone().of(REFUSED)),
            Following::Nothing => {
                let message = format!("$: the field {field:?} is missing, and the session follows nothing");
                Err(Error::new(TOKENTRIE_ERROR_SPEC, message))
            }
        }
    }

    pub(crate) fn clear_token_trie(self: &Arc<Self>) -> Result<()> {
        let _turn = self.turn("clear_token_trie")?;
        self.state().following = Following::Nothing;
        Ok(())
    }
}

/// Context of specs in a session: its chats, and texts that were tokenised before. It counts what is left out and notes
/// what a user should hear.
pub(super) struct HostOfSession<'s> {
    session: &'s Session,
    heard: Listening,
}

impl<'s> HostOfSession<'s> {
    pub(super) fn new(session: &'s Session) -> Self {
        Self { session, heard: Listening::new(session.model.model.vocab().len()) }
    }

    pub(super) fn left_out(&self) -> LeftOut {
        self.heard.left_out.get()
    }

    pub(super) fn warnings(self) -> Vec<String> {
        self.heard.warnings.into_inner()
    }
}

impl Host for HostOfSession<'_> {
    fn chat_format(&self) -> std::result::Result<Option<ChatFormat>, Problem> {
        let (format, _) = self.session.format().map_err(Problem::new)?;
        Ok(Some(format.format().clone()))
    }

    fn texts(&self, values: &TextValues, _: &Vocab) -> std::result::Result<Trie, ValuesError> {
        Ok(self.session.model.sets.get(values)?.trie().clone())
    }

    fn report_dropped(&self, report: &PayloadReport) {
        self.heard.report_dropped(report);
    }

    fn warn(&self, warning: &str) {
        self.heard.warn(warning);
    }
}
