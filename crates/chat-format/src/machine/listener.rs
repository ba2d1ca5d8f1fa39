//! Listeners, which learn the meaning of the bytes of a reply.

use super::{Outcome, Region, Seq};
use crate::values::{Nobody, Out};
use trie_schema::{Types, ValueId};

/// Holds the bytes of a reply until their meaning is reported.
pub(crate) trait Listener: Out {
    /// All held bytes but the last `keep` are text of a region.
    fn text(&mut self, region: Region, keep: usize);
    /// The held bytes were this marker.
    fn marker(&mut self, outcome: Outcome);
    /// The held bytes may begin a call; the tool is given where only names of tools could be written.
    fn call(&mut self, seq: &Seq, tool: Option<u32>) -> CallDecision;
    /// The open call is over before its end; the argument is the reason.
    fn broke(&mut self, _what: &str) {}
    /// The held bytes begin like a call, but do not continue as one.
    fn no_call(&mut self) {}
    /// The held bytes are arguments, which the reader has already reported.
    fn arguments(&mut self);
    /// The call is over. Where its end was read, the held bytes are that end.
    fn call_over(&mut self, tail: Option<&Seq>);
}

/// Decision of a listener about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallDecision {
    /// This tool is called.
    Tool(u32),
    /// A tool is called whose arguments are unknown.
    Unknown,
    /// No tool is called: the bytes are text.
    Text,
}

/// Hears whether the last thought is over.
#[derive(Debug, Default)]
pub(crate) struct LastThought {
    pub is_over: bool,
}

impl Out for LastThought {
    fn json(&mut self, _text: &[u8]) {}
    fn raw_begin(&mut self, _shape: ValueId, _types: Types) {}
    fn raw(&mut self, _bytes: &[u8]) {}
    fn raw_end(&mut self) {}
}

impl Listener for LastThought {
    fn text(&mut self, _region: Region, _keep: usize) {}
    fn marker(&mut self, outcome: Outcome) {
        self.is_over = match outcome {
            Outcome::Reasoning => false,
            Outcome::ReasoningOver => true,
            _ => self.is_over,
        };
    }
    fn call(&mut self, _seq: &Seq, tool: Option<u32>) -> CallDecision {
        tool.map_or(CallDecision::Unknown, CallDecision::Tool)
    }
    fn arguments(&mut self) {}
    fn call_over(&mut self, _tail: Option<&Seq>) {}
}

impl Listener for Nobody {
    fn text(&mut self, _region: Region, _keep: usize) {}
    fn marker(&mut self, _outcome: Outcome) {}
    fn call(&mut self, _seq: &Seq, tool: Option<u32>) -> CallDecision {
        tool.map_or(CallDecision::Unknown, CallDecision::Tool)
    }
    fn arguments(&mut self) {}
    fn call_over(&mut self, _tail: Option<&Seq>) {}
}
