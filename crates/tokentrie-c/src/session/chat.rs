//! Chats: a conversation is answered inside the format of the model.

use super::generate::Sink;
use super::{Last, Session};
use crate::error::{Error, Result};
use crate::status::*;
use crate::turn::CHAT;
use std::sync::Arc;
use tokentrie::chat::{
    ChatError, ChatFinish, ChatRequest, ChatWatch, Event, ModelFormat, NO_TEMPLATE, ReadyChat, event_json,
};
use trie_core::TokenId;

struct Told<'a> {
    session: &'a Session,
    sink: Sink<'a>,
}

impl ChatWatch for Told<'_> {
    fn stop(&mut self) -> bool {
        self.session.gives_up()
    }

    fn tell(&mut self, events: Vec<Event>) {
        for event in &events {
            (self.sink)(TokenId::default(), &event_json(event));
        }
    }
}

impl Session {
    /// The prompt of a request, in tokens.
    pub(crate) fn chat_prompt(&self, json: &[u8]) -> Result<Vec<TokenId>> {
        let (format, request, _) = self.request(json)?;
        Ok(request.prompt(&format)?.tokens)
    }

    /// Answers a request on a thread of the library; [`Session::next`] takes the events.
    pub(crate) fn chat_start(self: &Arc<Self>, json: &[u8]) -> Result<()> {
        let turn = self.turns.begin(CHAT)?;
        let (format, request, is_missing) = self.request(json)?;
        let ready = request.ready(&format)?;
        let mut state = self.state();
        // The context goes on after another text.
        (state.last, state.message) = (Last::default(), None);
        state.prompt.clear();
        drop(state);
        self.on_thread(turn, move |session, sink| session.answer(ready, is_missing, sink))
    }

    /// The reply of the last chat as JSON, if it is over.
    pub(crate) fn chat_message(&self) -> Option<String> {
        self.state().message.clone()
    }

    fn request(&self, json: &[u8]) -> Result<(Arc<ModelFormat>, ChatRequest, bool)> {
        let (format, is_missing) = self.model.format()?;
        let request = ChatRequest::from_json(json, format.format().template().text())?;
        Ok((format, request, is_missing))
    }

    fn answer(&self, ready: ReadyChat, is_missing: bool, sink: Sink<'_>) -> Result<()> {
        let told = is_missing.then(|| NO_TEMPLATE.to_owned());
        let warnings: Vec<String> = told.into_iter().chain(ready.warnings.iter().cloned()).collect();
        let vocab = Arc::clone(self.model.model.vocab());
        let mut watch = Told { session: self, sink };
        let slot = Arc::clone(&self.own);
        let reply = self.with_context(&slot, |context| ready.reply(context, &vocab, &mut watch));
        let mut state = self.state();
        match reply {
            Ok(reply) => {
                state.last.finish = match reply.finish {
                    ChatFinish::Stop | ChatFinish::ToolCalls => TOKENTRIE_FINISH_END_OF_GENERATION,
                    ChatFinish::Length => TOKENTRIE_FINISH_MAX_TOKENS,
                    ChatFinish::Cancelled => TOKENTRIE_FINISH_CANCELLED,
                };
                (state.last.tokens, state.last.seconds) = (reply.stats.tokens, reply.stats.seconds);
                state.message = Some(reply.to_json(&warnings));
                Ok(())
            }
            Err(error) if error.status == TOKENTRIE_ERROR_CANCELLED => {
                state.last.finish = TOKENTRIE_FINISH_CANCELLED;
                Ok(())
            }
            Err(error) => {
                state.last.finish = TOKENTRIE_FINISH_ERROR;
                Err(error)
            }
        }
    }
}

impl From<ChatError> for Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Vocab(error) => error.into(),
            ChatError::Rules(error) => error.into(),
            ChatError::Runtime(error) => error.into(),
            error @ (ChatError::Template(_) | ChatError::Format(_) | ChatError::Constraint(_)) => {
                Self::new(TOKENTRIE_ERROR_ARGUMENT, error.to_string())
            }
        }
    }
}
