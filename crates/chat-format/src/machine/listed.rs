//! Positions of listed texts: the name of a tool, a named key of arguments, a value of an enum.

use super::Machine;
use super::names::Names;
use super::seq::{Atom, Seq};
use super::state::{Home, Region, ReplyPhase, State};
use super::thread::Thread;
use crate::values::Rest;

impl Machine {
    /// Returns whether one text of a list must come here, or the rest of one, and nothing else may.
    pub(crate) fn is_listed(&self, state: &State) -> bool {
        match &state.at {
            ReplyPhase::Threads(home, threads) => self.is_held(state, *home, threads) && self.all_listed(threads, None),
            ReplyPhase::Arguments(_, args) => args.is_listed(),
            ReplyPhase::Unnamed(_, ways) => !ways.is_empty() && ways.iter().all(|(_, args)| args.is_listed()),
            ReplyPhase::Free(..) => false,
        }
    }

    /// Returns whether only known texts and white space are allowed here, up to a listed text or beyond. Then few
    /// tokens are allowed.
    pub(crate) fn leads_to_listed(&self, state: &State) -> bool {
        match &state.at {
            ReplyPhase::Threads(home, threads) => {
                let known = |thread: &Thread| self.seq(*thread).is_in_known(*thread);
                self.names.is_some() && self.is_held(state, *home, threads) && threads.iter().all(known)
            }
            ReplyPhase::Arguments(_, args) => args.leads_to_listed(&self.values),
            ReplyPhase::Unnamed(_, ways) => ways.iter().all(|(_, args)| args.leads_to_listed(&self.values)),
            ReplyPhase::Free(..) => false,
        }
    }

    /// Returns the rest of each text, if [`Machine::is_listed`] is true here and the texts are at most `most`.
    pub(crate) fn text_remainders(&self, state: &State, most: usize) -> Option<Vec<Rest>> {
        let mut rests = Vec::new();
        let fits = match &state.at {
            ReplyPhase::Threads(home, threads) => {
                self.is_held(state, *home, threads) && self.all_listed(threads, Some((&mut rests, most)))
            }
            ReplyPhase::Arguments(_, args) => args.listed(most, &mut rests),
            ReplyPhase::Unnamed(_, ways) => ways.iter().all(|(_, args)| args.listed(most, &mut rests)),
            ReplyPhase::Free(..) => false,
        };
        rests.sort_unstable();
        rests.dedup();
        (fits && !rests.is_empty()).then_some(rests)
    }

    /// Returns whether one of the sequences that have begun is certain, so that none of them can turn out to be text.
    fn is_held(&self, state: &State, home: Home, threads: &[Thread]) -> bool {
        let is_text = |region: Region| state.must_call.is_none() || region == Region::Reasoning;
        self.strict && !matches!(home, Home::Free(region) if is_text(region) && !self.any_committed(threads))
    }

    /// Returns whether all are names, or texts beside a name. `to` collects the rest of each.
    fn all_listed(&self, threads: &[Thread], to: Option<(&mut Vec<Rest>, usize)>) -> bool {
        let Some(names) = &self.names else { return false };
        let is_name = |thread: &Thread| self.seq(*thread).is_at_name(*thread);
        if !threads.iter().any(is_name) || !threads.iter().all(|at| is_name(at) || self.seq(*at).is_in_known(*at)) {
            return false;
        }
        let Some((rests, most)) = to else { return true };
        threads.iter().all(|thread| self.seq(*thread).rests(*thread, names, most, rests))
    }
}

impl Seq {
    fn is_at_name(&self, thread: Thread) -> bool {
        self.atoms.get(usize::from(thread.atom)) == Some(&Atom::Name)
    }

    /// Returns whether a known text stands here, white space, or a name.
    fn is_in_known(&self, thread: Thread) -> bool {
        let known = |atom: &Atom| {
            matches!(atom, Atom::Text(_) | Atom::Exactly(_) | Atom::Name | Atom::Blank | Atom::WholeId | Atom::Ahead(_))
        };
        self.atoms.get(usize::from(thread.atom)).is_some_and(known)
    }

    /// Adds the rests of the names or of the text at this position, and the text that the template writes after it.
    /// `false` if there are more than `most`.
    fn rests(&self, thread: Thread, names: &Names, most: usize, to: &mut Vec<Rest>) -> bool {
        let at = usize::from(thread.atom);
        if !self.is_at_name(thread) {
            let text = self.atoms[at].text().unwrap_or_default();
            let left = &text[text.len().min(usize::from(thread.at))..];
            to.push(Rest { text: left.into(), before: None, behind: Vec::new(), is_cut: true });
            return to.len() <= most;
        }
        let behind =
            self.atoms[at + 1..].iter().find(|atom| **atom != Atom::WholeId).map_or_else(Vec::new, known_bytes);
        for (name, written) in
            names.remaining_names(thread.tool.filter(|_| self.then == super::Outcome::CallOver), thread.name)
        {
            if to.len() >= most {
                return false;
            }
            let (before, text) = name.split_at(written);
            to.push(Rest { text: text.into(), before: before.last().copied(), behind: behind.clone(), is_cut: false });
        }
        true
    }
}

/// Returns the bytes that the template writes of an atom, as far as they are known.
fn known_bytes(atom: &Atom) -> Vec<u8> {
    match atom {
        Atom::Text(text) => [&*text.blanks, text].concat(),
        Atom::Exactly(text) => text.to_vec(),
        Atom::Ahead(bytes) if bytes.len() == 1 => bytes.to_vec(),
        _ => Vec::new(),
    }
}
