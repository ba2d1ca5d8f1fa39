//! Chats: a conversation is answered inside the format of the model.

use super::errors::{finish, no_result};
use super::following::HostOfSession;
use super::generate::ended_by;
use super::turn::{CHAT, Running, Sink, made_unless_over};
use super::{Last, Session};
use crate::error::{Error, Result};
use crate::status::*;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tokentrie::call::Call;
use tokentrie::chat::{ChatRequest, ModelFormat, NO_TEMPLATE, ReadyChat, ResponseTemplate};
use tokentrie::constraint::Over;
use trie_core::TokenId;

impl Session {
    /// Sets the response template by which the replies of its chats are read; `None` is the model's own format again.
    pub(crate) fn set_response_template(self: &Arc<Self>, json: Option<&str>) -> Result<()> {
        let _turn = self.turn("set_response_template")?;
        let format = match json {
            None => None,
            Some(json) => {
                let said = ResponseTemplate::from_json(json)
                    .map_err(|error| Error::new(TOKENTRIE_ERROR_SPEC, error.to_string()))?;
                let (own, _) = self.model.format()?;
                let format = own.format().with_response_template(&said);
                Some(Arc::new(ModelFormat::new(format, Arc::clone(self.model.model.vocab()))))
            }
        };
        *self.format.lock().unwrap_or_else(PoisonError::into_inner) = format;
        Ok(())
    }

    /// Returns the format of its chats; `true` where the model's file has no template, and this is ChatML.
    pub(super) fn format(&self) -> Result<(Arc<ModelFormat>, bool)> {
        let (own, is_missing) = self.model.format()?;
        let given = self.format.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok((given.unwrap_or(own), is_missing))
    }

    /// The prompt of a request, in tokens.
    pub(crate) fn chat_prompt(&self, json: &[u8]) -> Result<Vec<TokenId>> {
        let (format, request, _) = self.request(json)?;
        Ok(request.prompt(&format)?.tokens)
    }

    /// Answers a request on a thread of the library; [`Session::next`] takes the events.
    pub(crate) fn chat_start(self: &Arc<Self>, json: &[u8]) -> Result<()> {
        let (turn, began) = (self.turn(CHAT)?, Instant::now());
        let (format, request, is_missing) = self.request(json)?;
        let call = Call::begun_at(began, request.call)?.with(turn.cancel());
        let over = Over::vocab(self.model.model.vocab());
        let ready =
            made_unless_over(&call, || Ok(request.build_content(&over, &HostOfSession::new(self))?.ready(&format)?))?;
        let mut state = self.state();
        // The context goes on after another text.
        (state.last, state.found) = (Last::default(), None);
        state.prompt.clear();
        let Some(ready) = ready else {
            state.last.finish = ended_by(&call);
            drop(state);
            return self.on_thread(turn, |_, _, _| Ok(()));
        };
        drop(state);
        self.on_thread(turn, move |session, _, sink| session.answer(ready, is_missing, &call, sink))
    }

    fn request(&self, json: &[u8]) -> Result<(Arc<ModelFormat>, ChatRequest, bool)> {
        let (format, is_missing) = self.format()?;
        let request = ChatRequest::from_json(json, format.format().template().text())?;
        Ok((format, request, is_missing))
    }

    fn answer(&self, ready: ReadyChat, is_missing: bool, call: &Call, sink: Sink<'_>) -> Result<()> {
        let told = is_missing.then(|| NO_TEMPLATE.to_owned());
        let warnings: Vec<String> = told.into_iter().chain(ready.warnings().iter().cloned()).collect();
        let mut running = Running::telling(call, sink);
        let replies = self.with_runtime(&self.own, call, |runtime| runtime.run(ready, &mut running));
        let mut state = self.state();
        match replies {
            Ok(replies) => {
                let [reply] = &replies[..] else { return Err(no_result()) };
                state.last.finish = finish(reply.finish);
                (state.last.tokens, state.last.seconds) = (reply.stats.tokens, reply.stats.seconds);
                state.found = Some(reply.to_json(&warnings));
                Ok(())
            }
            Err(error) if error.status == TOKENTRIE_ERROR_CANCELLED => {
                state.last.finish = ended_by(call);
                Ok(())
            }
            Err(error) => {
                state.last.finish = TOKENTRIE_FINISH_ERROR;
                Err(error)
            }
        }
    }
}
