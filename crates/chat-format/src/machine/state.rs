//! State of a reply.

use super::markers::MarkerState;
use super::seq::Outcome;
use super::space::Space;
use super::thread::Thread;
use crate::values::ArgsState;

/// Region of free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    /// Nothing but white space was written: anything may begin.
    Fresh,
    /// Between marked parts, or in content without marks.
    Outside,
    /// A header that says nothing yet.
    Header,
    /// Text of the reasoning.
    Reasoning,
    /// Text of marked content.
    Content,
    /// In a message for somebody else.
    Elsewhere,
    /// Text after the end.
    Over,
}

impl Region {
    pub(super) const COUNT: usize = 7;
    pub(super) const ALL: [Self; Self::COUNT] =
        [Self::Fresh, Self::Outside, Self::Header, Self::Reasoning, Self::Content, Self::Elsewhere, Self::Over];
}

/// State of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) at: ReplyPhase,
    /// True if a call was written.
    pub(super) called: bool,
    /// Progress of a required call that must come before any text.
    pub(super) must_call: Option<BeforeCall>,
    /// White space before a call that must come: it has an end.
    pub(super) space: Space,
    /// True if the prompt closed the reasoning, so that none may begin again.
    pub(super) quiet: bool,
    pub(super) mark: Mark,
}

/// Position of the last control token in text, in bytes before the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Mark {
    /// No marker that is begun began with one.
    #[default]
    Nowhere,
    Back(u8),
    /// Text of a prompt: its tokens are not known.
    Anywhere,
}

impl Mark {
    /// The mark where a control token begins after so many bytes of a marker.
    pub(super) fn at_control_token(self, begun: usize) -> Self {
        match self {
            Self::Back(back) if begun > 0 && usize::from(back) == begun => self,
            Self::Anywhere => self,
            _ => Self::Back(0),
        }
    }

    /// The mark after a byte with which so many bytes of a marker are begun.
    pub(super) fn after_byte(self, begun: usize) -> Self {
        match self {
            Self::Back(back) if usize::from(back) < begun && back < u8::MAX => Self::Back(back + 1),
            Self::Anywhere => self,
            _ => Self::Nowhere,
        }
    }

    /// Returns whether a marker whose last bytes are these began with a control token.
    pub(super) fn begins(self, length: usize) -> bool {
        match self {
            Self::Back(back) => usize::from(back) == length,
            Self::Anywhere => true,
            Self::Nowhere => false,
        }
    }
}

impl State {
    pub(crate) fn start() -> Self {
        let at = free(Region::Fresh);
        Self { at, called: false, must_call: None, space: Space::default(), quiet: false, mark: Mark::default() }
    }

    /// Notes that the prompt begins or is over. In its text, control tokens cannot be told apart.
    pub(crate) fn in_prompt(&mut self, begins: bool) {
        self.mark = if begins { Mark::Anywhere } else { Mark::Nowhere };
    }

    /// Returns whether text is allowed here: not before a required call.
    pub(super) fn may_say(&self, region: Region) -> bool {
        self.must_call.is_none() || region == Region::Reasoning
    }

    /// Returns whether the prompt closed the thought.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns whether the position is in free text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.at, ReplyPhase::Free(region, _) if self.may_say(region))
    }

    /// Returns whether the arguments of a call are complete, and its end is not.
    pub(crate) fn in_tail(&self) -> bool {
        matches!(self.at, ReplyPhase::Threads(Home::Tail, _))
    }

    /// Returns the region of text that is held here.
    pub(crate) fn region(&self) -> Region {
        match self.at {
            ReplyPhase::Free(region, _) | ReplyPhase::Threads(Home::Free(region) | Home::Marked(region), _) => region,
            ReplyPhase::Threads(..) | ReplyPhase::Arguments(..) | ReplyPhase::Unnamed(..) => Region::Outside,
        }
    }
}

/// Text before or after a required call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct BeforeCall {
    last: CallStage,
    markers: u8,
}

/// The marker before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum CallStage {
    #[default]
    Nothing,
    Reasoning,
    Joint,
    /// So many markers that only the call may follow.
    Enough,
    /// Reasoning that the prompt closed; no other may begin.
    Quiet,
    /// The call, which others may follow.
    Called,
    /// Behind the only call.
    CalledOnce,
    /// So many markers after the call that only the end may follow.
    Over,
}

impl BeforeCall {
    /// Most markers that may come before the call, so that reasoning and joints come to an end.
    const MOST: u8 = 8;

    /// Before anything is written.
    pub(super) fn begin(quiet: bool) -> Self {
        Self { last: if quiet { CallStage::Quiet } else { CallStage::Nothing }, markers: 0 }
    }

    /// Returns the state behind a call.
    pub(super) fn after_call(parallel: bool) -> Self {
        Self { last: if parallel { CallStage::Called } else { CallStage::CalledOnce }, markers: 0 }
    }

    /// Returns whether the call has come.
    pub(super) fn is_called(self) -> bool {
        matches!(self.last, CallStage::Called | CallStage::CalledOnce | CallStage::Over)
    }

    pub(super) fn and(self, outcome: Outcome) -> Self {
        let last = match (outcome, self.last) {
            (Outcome::ReasoningOver | Outcome::Joint, CallStage::Quiet | CallStage::Called | CallStage::CalledOnce) => {
                self.last
            }
            (Outcome::ReasoningOver, _) => CallStage::Reasoning,
            (Outcome::Joint, _) => CallStage::Joint,
            _ => return self,
        };
        let markers = self.markers + 1;
        let last = match (markers < Self::MOST, self.is_called()) {
            (true, _) => last,
            (false, true) => CallStage::Over,
            (false, false) => CallStage::Enough,
        };
        Self { last, markers }
    }

    pub(super) fn last(self) -> CallStage {
        self.last
    }
}

impl CallStage {
    pub(super) const COUNT: usize = 8;
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Nothing,
        Self::Reasoning,
        Self::Joint,
        Self::Enough,
        Self::Quiet,
        Self::Called,
        Self::CalledOnce,
        Self::Over,
    ];
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ReplyPhase {
    Free(Region, MarkerState),
    Threads(Home, Vec<Thread>),
    Arguments(u16, ArgsState),
    /// Arguments before the name, for each tool to which they may belong.
    Unnamed(u16, Vec<(u32, ArgsState)>),
}

/// Origin of threads, and destination of their text if none of them matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    Free(Region),
    /// From a header, where a control token begins: one of them is meant.
    Marked(Region),
    Tail,
    After,
    AfterList,
}

pub(super) fn free(region: Region) -> ReplyPhase {
    ReplyPhase::Free(region, MarkerState::default())
}
