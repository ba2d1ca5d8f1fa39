//! Where a reply is.

use super::markers::Seen;
use super::seq::Thread;
use super::space::Space;
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
    /// White space before a call that must come: it has an end.
    pub(super) space: Space,
}

impl State {
    pub(crate) fn start() -> Self {
        Self { at: free(Region::Fresh), called: false, space: Space::default() }
    }

    /// Where the reply begins after the prompt's text before it.
    pub(crate) fn after_prelude(&mut self) {
        if matches!(self.at, At::Free(Region::Outside | Region::Header, _)) {
            self.at = free(Region::Fresh);
        }
        (self.called, self.space) = (false, Space::default());
    }

    /// Where text goes that is held here.
    pub(crate) fn region(&self) -> Region {
        match self.at {
            At::Free(region, _) | At::Threads(Home::Free(region), _) => region,
            At::Threads(..) | At::Arguments(..) => Region::Outside,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum At {
    Free(Region, Seen),
    Threads(Home, Vec<Thread>),
    Arguments(u16, ArgsState),
}

/// Where threads came from, and where text goes if none of them is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    Free(Region),
    Tail,
    After,
    AfterList,
}

pub(super) fn free(region: Region) -> At {
    At::Free(region, Seen::default())
}
