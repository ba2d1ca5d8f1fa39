//! The bytes behind the text that ends a value, which decide: it ended, or all of it is text of the value.

use crate::values::blanks::is_blank;
use crate::values::marker::{Choices, Chooses, Chosen, Finder};
use crate::values::styles::guard::Guard;
use crate::values::styles::slot::{Slot, Slotted};
use crate::values::{CONTROL, Nobody, Out};

/// The bytes read so far after the text that ends a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct After {
    blanks: Trail,
    chosen: Chosen,
    /// `true` where the value may end before that text.
    may_close: bool,
    control: Control,
}

/// `true` where a control token came, which is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Control {
    No,
    /// Right after the white space: it may be of another text that ends the value.
    First,
    Inside,
}

/// White space that may be text: at most twelve bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Trail(u32);

impl Trail {
    const SIGNS: [u8; 4] = [b' ', b'\n', b'\t', b'\r'];
    const MOST: u32 = 12;

    fn len(self) -> u32 {
        self.0 >> (2 * Self::MOST)
    }

    pub(crate) fn and(self, byte: u8) -> Option<Self> {
        let sign = Self::SIGNS.iter().position(|&sign| sign == byte)? as u32;
        let len = self.len();
        (len < Self::MOST).then(|| Self((self.0 + (1 << (2 * Self::MOST))) | sign << (2 * len)))
    }

    pub(crate) fn bytes(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |at| Self::SIGNS[(self.0 >> (2 * at) & 3) as usize])
    }
}

impl After {
    pub(crate) fn new(may_close: bool) -> Self {
        Self { blanks: Trail::default(), chosen: Chosen::default(), may_close, control: Control::No }
    }

    pub(crate) fn chosen(self) -> Chosen {
        self.chosen
    }
}

/// The decision of a byte after the text that ends a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    More(After),
    /// The value is over: one of the texts came that may follow it.
    Over(Chooses),
    /// The value is over: so much white space is none of a value that goes on.
    Blank,
    /// The bytes before this one are text of the value.
    Text,
    Dead,
}

/// The text that ends a value, and the texts that may follow it.
pub(crate) struct Ends<'a> {
    pub(crate) end: &'a Finder,
    /// `true` where a newline before the end is not part of the value.
    pub(crate) newline: bool,
    pub(crate) follow: &'a Choices,
}

impl Ends<'_> {
    /// Reads a byte. `decides`: whether what a byte is to the texts that may follow says that one of them came, and
    /// which; `may`: whether it may come, in strict use, with what is known once the value is over.
    #[expect(clippy::too_many_arguments, reason = "where it is, and what every step has")]
    pub(crate) fn step(
        &self,
        slot: &mut Slot,
        after: After,
        byte: u8,
        guard: &mut Guard,
        out: &mut impl Out,
        decides: impl Fn(Chooses) -> Option<usize>,
        may: impl Fn(usize, &Guard) -> bool,
    ) -> Follows {
        let strict = guard.is_strict();
        if is_blank(byte) && Choices::is_untouched(after.chosen) {
            let next = after.blanks.and(byte).map(|blanks| After { blanks, ..after });
            return match next {
                Some(next) if !strict || after.may_close || self.may_be_text(*slot, next, guard) => Follows::More(next),
                None if !strict => Follows::Blank,
                _ => Follows::Dead,
            };
        }
        let mut over = if after.may_close { guard.after_value() } else { None };
        let follows = |what: usize, over: Option<Guard>| !strict || over.is_some_and(|over| may(what, &over));
        // What reads it takes it for the end wherever it may come.
        let chooses = self.follow.step(after.chosen, byte, strict, |_| true);
        if let Some(what) = decides(chooses) {
            let may = follows(what, over.as_mut().map(|over| guard.with(over)));
            return if may { Follows::Over(chooses) } else { Follows::Dead };
        }
        let is_control = strict && byte == CONTROL;
        if let Chooses::More(chosen) = chooses {
            let control = match after.control {
                Control::No if is_control && Choices::is_untouched(after.chosen) => Control::First,
                Control::No | Control::First if is_control => Control::Inside,
                control => control,
            };
            let next = After { chosen, control, ..after };
            if !strict {
                return Follows::More(next);
            }
            // It may become what follows, or text.
            let may: [bool; 3] = over.as_mut().map_or([false; 3], |over| {
                let over = guard.with(over);
                [0, 1, 2].map(|what| may(what, &over))
            });
            let goes_on = self.follow.step(after.chosen, byte, strict, |what| may.get(what) == Some(&true));
            let fits = matches!(goes_on, Chooses::More(_) | Chooses::Is(_)) || self.may_be_text(*slot, next, guard);
            return if fits { Follows::More(next) } else { Follows::Dead };
        }
        if after.control == Control::Inside || is_control {
            return Follows::Dead;
        }
        if self.resume(slot, after, guard, out) { Follows::Text } else { Follows::Dead }
    }

    /// Returns whether all that was read may be text, or text and the beginning of another end.
    fn may_be_text(&self, mut slot: Slot, after: After, guard: &Guard) -> bool {
        let known = if after.control == Control::Inside { None } else { guard.known() };
        known.is_some_and(|mut known| self.resume(&mut slot, after, &mut guard.with(&mut known), &mut Nobody))
    }

    /// The value goes on with what was read.
    fn resume(&self, slot: &mut Slot, after: After, guard: &mut Guard, out: &mut impl Out) -> bool {
        let begun = self.follow.begun(after.chosen).iter().copied();
        let control = (after.control == Control::First).then_some(CONTROL);
        let rest: Vec<u8> = after.blanks.bytes().chain(control).chain(begun).collect();
        slot.push(self.end.text(0), guard, out)
            && rest.iter().all(|&byte| slot.step_up_to(self.end, self.newline, byte, guard, out) == Slotted::Inside)
    }
}
