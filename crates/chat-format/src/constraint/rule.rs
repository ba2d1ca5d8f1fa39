//! The machine as a rule over bytes.

use crate::machine::{Machine, Nobody, State};
use std::fmt;
use std::sync::Arc;
use trie_rules::{LazyWalk, Rule, TokenBytes, Walker};

/// What a reply may be, from where a prompt left it. Free text is legal wherever nothing says otherwise.
#[derive(Clone)]
pub(crate) struct ReplyRule {
    pub machine: Arc<Machine>,
    pub start: State,
}

impl fmt::Debug for ReplyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyRule").field("start", &self.start).finish_non_exhaustive()
    }
}

impl Rule for ReplyRule {
    type State = State;

    fn start(&self) -> State {
        self.start.clone()
    }

    fn step(&self, state: &State, byte: u8) -> Option<State> {
        let mut state = state.clone();
        self.machine.step(&mut state, byte, false, &mut Nobody).ok()?;
        Some(state)
    }

    fn is_end(&self, state: &State) -> bool {
        self.machine.is_end(state)
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<State>>> {
        Some(Arc::new(LazyWalk::new(Arc::new(self.clone()), Arc::clone(tokens))))
    }
}
