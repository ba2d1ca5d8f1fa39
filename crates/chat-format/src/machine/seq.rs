//! A sequence of literals and names: one way to write the beginning or the end of a call, or a marker.

use super::Region;
use super::members::{Members, Side};
use super::names::NamePrefix;
use super::space::Space;
use super::thread::{ReadMode, Thread, Threads};
use crate::values::CONTROL;
use std::ops::Deref;

/// Longest name, id or other open text that is read.
const LONGEST: u16 = 256;

/// The reasoning markers that are control tokens of a vocabulary. Text with the same spelling is not a marker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct ByToken {
    pub starts: bool,
    pub ends: bool,
}

impl ByToken {
    pub(super) fn any(self) -> bool {
        self.starts || self.ends
    }
}

/// Atoms that follow each other, and the meaning of the whole sequence.
#[derive(Debug, Clone)]
pub(crate) struct Seq {
    pub atoms: Vec<Atom>,
    /// Index of the first atom from which on the sequence is certain. In a constraint there is no way back from there.
    pub committed: usize,
    pub then: Outcome,
    /// True if it counts only when a control token begins it.
    pub by_token: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Atom {
    /// This text; white space may stand before it.
    Text(Literal),
    /// This text and nothing before it.
    Exactly(Literal),
    /// White space, or none.
    Blank,
    /// The name of a tool, up to the text after it.
    Name,
    /// An id, up to the text after it.
    Id,
    /// Digits, up to the text after them.
    Index,
    /// Anything, up to the text after it.
    Anything,
    /// The id begins or ends here: it holds what is written between.
    WholeId,
    /// Members of an object that say nothing of the call, or none.
    Members(Side),
    /// One of these bytes comes next, and is not part of the sequence; white space may stand before it.
    Ahead(Box<[u8]>),
}

impl Outcome {
    /// Returns the region of free text after it.
    pub(crate) fn region(self) -> Region {
        match self {
            Self::Reasoning => Region::Reasoning,
            Self::ReasoningOver | Self::Joint => Region::Fresh,
            Self::Content => Region::Content,
            Self::Stop => Region::Over,
            Self::Elsewhere => Region::Elsewhere,
            Self::ContentOver | Self::Arguments(_) | Self::CallOver | Self::ListOver | Self::CallsOver => {
                Region::Outside
            }
        }
    }

    /// Returns whether it begins a call.
    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Arguments(_))
    }
}

/// A text, with the white space that the template writes before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    text: Box<[u8]>,
    pub(super) blanks: Box<[u8]>,
}

impl Literal {
    /// Builds a literal whose leading white space is required and whose trailing white space is optional.
    pub(crate) fn new(text: &str) -> Self {
        Self::with_blanks(&text[..text.len() - text.trim_start().len()], text)
    }

    /// After this white space.
    pub(crate) fn with_blanks(blanks: &str, text: &str) -> Self {
        Self { text: text.trim().as_bytes().into(), blanks: blanks.as_bytes().into() }
    }

    /// Returns whether its last sign is part of a word.
    pub(crate) fn ends_with_word(&self) -> bool {
        self.text.last().is_some_and(u8::is_ascii_alphanumeric)
    }

    /// White space counts: it is the text.
    pub(crate) fn exactly(text: &str) -> Self {
        Self { text: text.as_bytes().into(), blanks: Box::default() }
    }
}

impl Deref for Literal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

/// Meaning of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// The beginning of reasoning.
    Reasoning,
    /// The end of reasoning.
    ReasoningOver,
    /// The beginning of content.
    Content,
    /// The end of content.
    ContentOver,
    /// The reply continues as at its beginning.
    Joint,
    /// The reply ends here: what comes after it is not part of it.
    Stop,
    /// Text that is not for the user, up to the next joint.
    Elsewhere,
    /// The arguments of a call come next: the number of the form of the call.
    Arguments(u16),
    /// A call was written to its end.
    CallOver,
    /// Calls are over, but for what may follow the list.
    ListOver,
    /// The end of calls.
    CallsOver,
}

impl Seq {
    /// A marker that is certain once all of it is written. White space after a word of it ends the word.
    pub(crate) fn marker(text: &str, then: Outcome) -> Option<Self> {
        let rest = text.trim_end();
        let ends_word = rest.ends_with(char::is_alphanumeric);
        let after = text[rest.len()..].bytes().next().filter(|_| ends_word && then == Outcome::Content);
        let mut atoms = vec![Atom::Text(Literal::new(text))];
        atoms.extend(after.map(|byte| Atom::Ahead([byte].into())));
        let committed = atoms.len();
        (!rest.is_empty()).then_some(Self { atoms, committed, then, by_token: false })
    }

    /// The same for a marker that begins like a call: it is certain from that beginning on. Readers accept white space
    /// there, as before the name of a call.
    pub(crate) fn certain_after(mut self, head: &str, strict: bool) -> Self {
        if let Some(Atom::Text(text)) = self.atoms.first().cloned()
            && let Some(rest) = text.strip_prefix(head.as_bytes()).filter(|rest| !rest.is_empty())
        {
            let begun = Literal { text: head.as_bytes().into(), blanks: text.blanks.clone() };
            let rest = Literal { text: rest.into(), blanks: Box::default() };
            self.atoms.splice(0..1, [Atom::Text(begun), if strict { Atom::Exactly(rest) } else { Atom::Text(rest) }]);
            self.committed = 1;
        }
        self
    }

    /// Returns whether it begins with a text of its own.
    pub(crate) fn begins_with_text(&self) -> bool {
        self.head().is_some_and(|head| !head.is_empty())
    }

    pub(crate) fn head(&self) -> Option<&[u8]> {
        match self.atoms.first()? {
            Atom::Text(text) | Atom::Exactly(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether it contains the name of a call.
    pub(crate) fn names_tool(&self) -> bool {
        self.atoms.contains(&Atom::Name)
    }

    /// The thread before the first byte of the sequence.
    pub(crate) fn thread(&self, seq: u16) -> Thread {
        let (space, name) = (Space::default(), NamePrefix::default());
        self.past_marks(Thread { seq, atom: 0, at: 0, space, name, tool: None })
    }

    /// Returns whether it is certainly meant, and not another one that begins alike.
    pub(crate) fn is_committed(&self, thread: Thread) -> bool {
        usize::from(thread.atom) >= self.committed
    }

    /// Returns whether part of a name is written, or of other open text.
    pub(crate) fn is_in_name(&self, thread: Thread) -> bool {
        let open = !matches!(self.atoms.get(usize::from(thread.atom)), Some(Atom::Text(_) | Atom::Exactly(_)) | None);
        self.then.is_call() && open && (thread.at > 0 || thread.name != NamePrefix::default())
    }

    /// Returns whether white space may precede a name: after a marker, not after a quote or in a word.
    fn may_stand_apart(&self, thread: Thread) -> bool {
        let before = usize::from(thread.atom).checked_sub(1).and_then(|before| self.atoms.get(before));
        let last = match before {
            Some(Atom::Text(text)) => text.last(),
            _ => None,
        };
        last.is_some_and(|&last| b">])|:}".contains(&last) || last >= 0x80)
    }

    /// The texts that end names in it.
    pub(crate) fn ends_of_names(&self) -> Vec<String> {
        let pairs = self.atoms.windows(2).filter(|pair| pair[0] == Atom::Name);
        let ends = |pair: &[Atom]| match &pair[1] {
            Atom::Ahead(bytes) => bytes.iter().map(|&byte| char::from(byte).to_string()).collect(),
            other => Vec::from_iter(other.literal()),
        };
        pairs.flat_map(ends).collect()
    }

    /// Returns whether its last byte is not part of it.
    pub(crate) fn hands_on(&self) -> bool {
        matches!(self.atoms.last(), Some(Atom::Ahead(_)))
    }

    /// Returns whether it is complete except for its lookahead.
    pub(crate) fn is_but_for_its_end(&self, thread: Thread) -> bool {
        matches!(self.atoms.get(usize::from(thread.atom)), Some(Atom::Ahead(_)))
    }

    /// Returns whether the name of a call and its end are written.
    pub(crate) fn is_named(&self, thread: Thread) -> bool {
        let name = self.atoms.iter().position(|atom| *atom == Atom::Name);
        self.then.is_call() && name.is_some_and(|name| usize::from(thread.atom) > name + 1)
    }

    /// Returns whether it is skipping members that do not describe the call, or ended just here.
    pub(crate) fn is_in_members(&self, thread: Thread) -> bool {
        let is_members = |atom: usize| matches!(self.atoms.get(atom), Some(Atom::Members(_)));
        let atom = usize::from(thread.atom);
        is_members(atom) || (thread.at == 0 && atom.checked_sub(1).is_some_and(is_members))
    }

    /// The bytes of the text that stands here which are written.
    pub(crate) fn written_bytes(&self, thread: Thread) -> &[u8] {
        match self.atoms.get(usize::from(thread.atom)) {
            Some(Atom::Text(text) | Atom::Exactly(text)) => &text[..usize::from(thread.at)],
            _ => &[],
        }
    }

    /// The next byte of the text that stands here, where the template writes it: white space included.
    pub(crate) fn written_next(&self, thread: Thread) -> Option<u8> {
        let (Atom::Text(text) | Atom::Exactly(text)) = self.atoms.get(usize::from(thread.atom))? else { return None };
        let blank = thread.space.next_in(&text.blanks).filter(|_| thread.at == 0);
        blank.or_else(|| text.get(usize::from(thread.at)).copied())
    }

    fn past_marks(&self, mut thread: Thread) -> Thread {
        while self.atoms.get(usize::from(thread.atom)) == Some(&Atom::WholeId) {
            thread.atom += 1;
        }
        thread
    }

    /// The threads after a byte, and that of the whole sequence if it is complete.
    pub(crate) fn step(&self, thread: Thread, byte: u8, how: ReadMode<'_>, next: &mut Threads) -> Option<Thread> {
        let done = |thread: Thread, next: &mut Threads| {
            let thread = self.past_marks(thread);
            if usize::from(thread.atom) == self.atoms.len() {
                return Some(thread);
            }
            next.push(thread);
            None
        };
        match self.atoms.get(usize::from(thread.atom))? {
            atom @ (Atom::Text(text) | Atom::Exactly(text)) => {
                let spaced = thread.at == 0 && matches!(atom, Atom::Text(_));
                if byte == CONTROL && how.strict {
                    // What follows is the text of a control token: it goes on here, or this is not meant.
                    next.push(thread);
                } else if spaced && byte.is_ascii_whitespace() && text.first() != Some(&byte) {
                    let space = how.space(thread.space, byte, &text.blanks)?;
                    next.push(Thread { space, ..thread });
                } else if text.get(usize::from(thread.at)) == Some(&byte) {
                    let at = thread.at + 1;
                    if usize::from(at) == text.len() {
                        return done(thread.after_atom(), next);
                    }
                    next.push(Thread { at, space: Space::default(), ..thread });
                }
                None
            }
            // Who reads takes white space before a name; who writes, the name.
            Atom::Name
                if thread.at == 0 && !how.strict && byte.is_ascii_whitespace() && self.may_stand_apart(thread) =>
            {
                next.push(thread);
                None
            }
            Atom::Name if let Some(names) = how.names => {
                if let (Some(tool), Outcome::CallOver) = (thread.tool, self.then) {
                    // The arguments before it are this tool's.
                    if let Some(name) = names.step_of(tool, thread.name, byte) {
                        next.push(Thread { name, ..thread });
                    }
                    names.is_whole(tool, thread.name).then_some(())?;
                    return self.step(self.past_marks(thread.after_atom()), byte, how, next);
                }
                if let Some(name) = names.step(thread.name, byte) {
                    next.push(Thread { name, ..thread });
                }
                let tool = names.tool(thread.name)?;
                self.step(self.past_marks(Thread { tool: Some(tool), ..thread.after_atom() }), byte, how, next)
            }
            Atom::WholeId => None,
            Atom::Members(side) => {
                let members = Members::unpack(thread.at);
                let after = members.step(*side, byte);
                next.extend(after.map(|members| Thread { at: members.pack(), ..thread }));
                members.may_end(*side).then(|| self.step(self.past_marks(thread.after_atom()), byte, how, next))?
            }
            Atom::Ahead(bytes) => {
                if bytes.contains(&byte) {
                    return done(thread.after_atom(), next);
                }
                if byte == CONTROL && how.strict {
                    next.push(thread);
                } else if byte.is_ascii_whitespace() {
                    let space = how.space(thread.space, byte, b"")?;
                    next.push(Thread { space, ..thread });
                }
                None
            }
            Atom::Blank => {
                if byte.is_ascii_whitespace() && !(how.strict && thread.space != Space::default()) {
                    // One is what templates write.
                    let space = how.space(thread.space, byte, &[byte])?;
                    next.push(Thread { space, ..thread });
                    return None;
                }
                self.step(self.past_marks(thread.after_atom()), byte, how, next)
            }
            open @ (Atom::Index | Atom::Id | Atom::Anything) if byte == CONTROL && how.strict => {
                if thread.at == 0 && *open != Atom::Anything {
                    return None;
                }
                next.push(self.past_marks(thread.after_atom()));
                None
            }
            open => {
                let ends = match self.atoms.get(usize::from(thread.atom) + 1) {
                    Some(Atom::Text(end) | Atom::Exactly(end)) => **end == [byte],
                    Some(Atom::Ahead(ends)) => ends.contains(&byte),
                    _ => false,
                };
                if thread.at < LONGEST && !ends && open.takes(byte, how.strict) {
                    next.push(Thread { at: thread.at + 1, ..thread });
                }
                if thread.at == 0 && *open != Atom::Anything {
                    return None;
                }
                self.step(self.past_marks(thread.after_atom()), byte, how, next)
            }
        }
    }
}

impl Atom {
    /// The text, where it is one.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) | Self::Exactly(text) => Some(text),
            _ => None,
        }
    }

    /// The same as characters.
    pub(crate) fn literal(&self) -> Option<String> {
        self.text().map(|text| String::from_utf8_lossy(text).into_owned())
    }

    fn takes(&self, byte: u8, strict: bool) -> bool {
        match self {
            Self::Index => byte.is_ascii_digit(),
            Self::Id if strict => byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte),
            _ => true,
        }
    }
}
