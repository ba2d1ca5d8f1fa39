//! Where a reply is.

use super::markers::Seen;
use super::seq::Outcome;
use super::space::Space;
use super::thread::Thread;
use crate::values::ArgsState;

/// Where free text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    /// Nothing but white space was written: anything may begin.
    Fresh,
    /// Between marked parts, or in content without marks.
    Outside,
    /// A header that says nothing yet.
    Header,
    /// In reasoning.
    Reasoning,
    /// In marked content.
    Content,
    /// In a message for somebody else.
    Elsewhere,
    /// After the end.
    Over,
}

impl Region {
    pub(super) const COUNT: usize = 7;
    pub(super) const ALL: [Self; Self::COUNT] =
        [Self::Fresh, Self::Outside, Self::Header, Self::Reasoning, Self::Content, Self::Elsewhere, Self::Over];
}

/// Where a reply is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) at: At,
    /// Whether a call was written.
    pub(super) called: bool,
    /// Where a call must come before anything is said: what of that is written.
    pub(super) must_call: Option<BeforeCall>,
    /// White space before a call that must come: it has an end.
    pub(super) space: Space,
}

impl State {
    pub(crate) fn start() -> Self {
        let at = free(Region::Fresh);
        Self { at, called: false, must_call: None, space: Space::default() }
    }

    /// Whether text may be said here: not where a call must come first.
    pub(super) fn may_say(&self, region: Region) -> bool {
        self.must_call.is_none() || region == Region::Reasoning
    }

    /// Whether free text stands here.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.at, At::Free(region, _) if self.may_say(region))
    }

    /// Whether the arguments of a call are written, and not what ends it.
    pub(crate) fn in_tail(&self) -> bool {
        matches!(self.at, At::Threads(Home::Tail, _))
    }

    /// Where text goes that is held here.
    pub(crate) fn region(&self) -> Region {
        match self.at {
            At::Free(region, _) | At::Threads(Home::Free(region) | Home::Marked(region), _) => region,
            At::Threads(..) | At::Arguments(..) | At::Unnamed(..) => Region::Outside,
        }
    }
}

/// What is written before a call that must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct BeforeCall {
    last: Before,
    markers: u8,
}

/// The marker before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Before {
    #[default]
    Nothing,
    Reasoning,
    Joint,
    /// So many that only the call may follow.
    Enough,
}

impl BeforeCall {
    /// Markers that may come before it: reasoning and joints end some time.
    const MOST: u8 = 8;

    pub(super) fn and(self, outcome: Outcome) -> Self {
        let last = match outcome {
            Outcome::ReasoningOver => Before::Reasoning,
            Outcome::Joint => Before::Joint,
            _ => return self,
        };
        let markers = self.markers + 1;
        Self { last: if markers < Self::MOST { last } else { Before::Enough }, markers }
    }

    pub(super) fn last(self) -> Before {
        self.last
    }
}

impl Before {
    pub(super) const COUNT: usize = 4;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::Nothing, Self::Reasoning, Self::Joint, Self::Enough];
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum At {
    Free(Region, Seen),
    Threads(Home, Vec<Thread>),
    Arguments(u16, ArgsState),
    /// Arguments before the name: of each tool whose they may be.
    Unnamed(u16, Vec<(u32, ArgsState)>),
}

/// Where threads came from, and where text goes if none of them is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    Free(Region),
    /// From a header, where a control token begins: one of them is meant.
    Marked(Region),
    Tail,
    After,
    AfterList,
}

pub(super) fn free(region: Region) -> At {
    At::Free(region, Seen::default())
}
