//! The machine of a format with tools.

use super::forms::{CallForm, add_blanks, call_forms};
use super::names::Names;
use super::seq::{Atom, ByToken, Literal, Outcome, Seq};
use super::state::CallStage;
use super::thread::{ReadMode, Threads};
use super::{Entries, EntryThreads, Form, Machine, Markers, Region};
use crate::dialect::{Calls, ContentMode, Dialect, Part, Pattern, ReasoningMode};
use crate::tools::Tools;
use crate::values::{Gaps, Reader};
use std::sync::Arc;
use trie_schema::{ValueId, Values};

/// Permission or requirement to call tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model may call tools.
    #[default]
    Auto,
    /// The model must not call tools.
    None,
    /// The model must call a tool.
    Required,
    /// The model must call this tool.
    Tool(String),
    /// The model may call these of the tools, or must call one of them. It is told of all of them.
    Allowed {
        /// Names of the tools.
        names: Vec<String>,
        /// True if one of them must be called.
        required: bool,
    },
}

impl ToolChoice {
    /// Returns whether a call is required.
    pub fn is_required(&self) -> bool {
        match self {
            Self::Required | Self::Tool(_) => true,
            Self::Allowed { required, .. } => *required,
            Self::Auto | Self::None => false,
        }
    }

    /// Returns whether a tool of this name may be called.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Tool(only) => only == name,
            Self::Allowed { names, .. } => names.iter().any(|allowed| allowed == name),
        }
    }
}

/// Input of the compiler of machines.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub dialect: &'a Dialect,
    /// The tools; `None` where any may be called.
    pub tools: Option<&'a Tools>,
    pub values: Arc<Values>,
    /// Schema of the arguments of each tool.
    pub arguments: Vec<ValueId>,
    pub choice: &'a ToolChoice,
    pub parallel: bool,
    pub strict: bool,
    pub by_token: ByToken,
    /// White space in the gaps of a call, where it is written.
    pub gaps: Gaps,
}

/// Limit on the number of ways to write a call that are tried.
const MOST_WAYS: usize = 200;

impl Plan<'_> {
    pub(crate) fn compile(self) -> Machine {
        let Self { dialect, tools, strict, .. } = self;
        let addressed = dialect.content.is_addressed();
        let by_token = self.by_token;
        let gaps = self.gaps;
        let mut seqs = Seqs { recipients: recipients(dialect), addressed, strict, by_token, gaps, ..Seqs::default() };
        let may_call = tools.is_none_or(|tools| !tools.is_empty()) && *self.choice != ToolChoice::None;
        let calls = dialect.calls.as_ref().filter(|_| may_call || strict);
        let entries = calls.map_or_else(Vec::new, |calls| seqs.calls(calls, strict));
        let marked = seqs.add_sequences(dialect, &entries);
        let names = strict.then(|| {
            let offered =
                // Names are known where no call may come, too: its beginning is text there.
                (0_u32..)
                    .zip(tools.into_iter().flat_map(Tools::iter))
                    .filter(|(_, tool)| *self.choice == ToolChoice::None || self.choice.allows(&tool.name));
            Names::new(offered.map(|(number, tool)| (&tool.name[..], number)))
        });
        Machine {
            regions: marked.regions.map(|of| seqs.entries(of)),
            before_call: marked.before_call.map(|of| seqs.entries(of)),
            after: std::mem::take(&mut seqs.after),
            after_list: std::mem::take(&mut seqs.after_list),
            seqs: seqs.all,
            forms: seqs.forms,
            names,
            values: self.values,
            arguments: self.arguments,
            strict,
            gaps,
            required: self.choice.is_required(),
            may_call,
            parallel: self.parallel,
            again: entries.iter().any(|entry| entry.at_start_only),
            only_ended: dialect.reasoning.mode == ReasoningMode::OnlyEnded,
            by_token,
            headed: !dialect.joints.is_empty() && dialect.content.mode == ContentMode::Wrapped,
        }
    }
}

#[derive(Default)]
struct Seqs {
    all: Vec<Seq>,
    forms: Vec<Form>,
    after: Vec<u16>,
    after_list: Vec<u16>,
    recipients: Vec<String>,
    /// True if a mark begins all content, so that any other beginning of a reply names its recipient.
    addressed: bool,
    strict: bool,
    by_token: ByToken,
    gaps: Gaps,
}

/// Texts right before a name: those that begin a call, and those that address another recipient.
fn recipients(dialect: &Dialect) -> Vec<String> {
    let patterns = dialect.calls.iter().flat_map(|calls| &calls.patterns);
    let addressed = dialect.content.is_addressed();
    let begins = |pattern: &Pattern, head: &str| is_marker(head.as_bytes()) || (addressed && pattern.at_start_only);
    let mut found: Vec<String> = patterns
        .filter_map(|pattern| match &pattern.parts[..] {
            [Part::Text(head), Part::Name, ..] if begins(pattern, head.trim()) => Some(head.trim().to_owned()),
            _ => None,
        })
        .collect();
    found.dedup();
    found
}

/// Sequences that may begin at each position.
struct SequenceStarts {
    regions: [Vec<u16>; Region::COUNT],
    /// Sequences that may begin a required call, by the text before it.
    before_call: [Vec<u16>; CallStage::COUNT],
}

/// A call where it may begin.
struct Entry {
    seq: u16,
    at_start_only: bool,
}

impl Seqs {
    fn add(&mut self, seq: Seq) -> u16 {
        self.all.push(seq);
        (self.all.len() - 1) as u16
    }

    fn marker(&mut self, text: &str, then: Outcome) -> Option<u16> {
        let marker = Seq::marker(text, then)?;
        let mut made = self.recipients.iter().fold(marker, |made, head| made.certain_after(head, self.strict));
        made.by_token = match then {
            Outcome::Reasoning => self.by_token.starts,
            Outcome::ReasoningOver => self.by_token.ends,
            _ => false,
        };
        Some(self.add(made))
    }

    fn add_sequences(&mut self, dialect: &Dialect, calls: &[Entry]) -> SequenceStarts {
        let Dialect { reasoning, content, .. } = dialect;
        let thinks = reasoning.mode != ReasoningMode::None;
        let only_ended = reasoning.mode == ReasoningMode::OnlyEnded;
        let marks = content.mode != ContentMode::Plain;
        let opened = self.marker(&reasoning.start, Outcome::Reasoning).filter(|_| thinks);
        let closed = self.marker(&reasoning.end, Outcome::ReasoningOver).filter(|_| thinks);
        let starts: Vec<u16> = std::iter::once(&content.start)
            .chain(&content.other_starts)
            .filter(|_| marks)
            .filter_map(|text| self.marker(text, Outcome::Content))
            .collect();
        let over = self.marker(&content.end, Outcome::ContentOver).filter(|_| marks);
        let mut joints: Vec<u16> = dialect.joints.iter().filter_map(|text| self.marker(text, Outcome::Joint)).collect();
        let turn_end = self.marker(&dialect.turns.end, Outcome::Joint);
        joints.extend(turn_end);
        let stops = dialect.stops.iter().chain(std::iter::once(&dialect.turns.end_of_calls));
        let stops: Vec<u16> = stops.filter_map(|text| self.marker(text, Outcome::Stop)).collect();
        // A message whose header says nobody that is known.
        let elsewhere = content.start.trim().rfind(['<', '[', '\n']).map(|at| content.start.trim()[at..].to_owned());
        let elsewhere = elsewhere.and_then(|text| self.marker(&text, Outcome::Elsewhere));
        let anywhere = || calls.iter().filter(|entry| !entry.at_start_only).map(|entry| entry.seq);
        let anything = |region: Region| -> Vec<u16> {
            let mut of = Vec::new();
            match region {
                Region::Fresh => {
                    of.extend(opened);
                    of.extend(closed);
                    of.extend(&starts);
                    of.extend(over);
                    of.extend(calls.iter().map(|entry| entry.seq));
                }
                Region::Outside => {
                    of.extend(opened);
                    of.extend(&starts);
                    of.extend(over);
                    of.extend(anywhere());
                }
                Region::Header => of.extend(elsewhere),
                Region::Reasoning => {
                    of.extend(closed);
                    of.extend(&starts);
                    of.extend(calls.iter().filter(|_| reasoning.calls_end_it || only_ended).map(|entry| entry.seq));
                }
                Region::Content => {
                    of.extend(over);
                    of.extend(anywhere());
                }
                Region::Elsewhere => {}
                Region::Over => return of,
            }
            of.extend(&joints);
            of.extend(&stops);
            of
        };
        let before_call = CallStage::ALL.map(|before| {
            let calls = || calls.iter().map(|entry| entry.seq);
            let all_of = |markers: &[&[u16]]| calls().chain(markers.concat()).collect();
            match before {
                CallStage::Nothing => all_of(&[opened.as_slice()]),
                CallStage::Reasoning | CallStage::Quiet => all_of(&[&joints]),
                CallStage::Joint => all_of(&[opened.as_slice(), &joints]),
                CallStage::Enough => all_of(&[]),
                CallStage::Called => all_of(&[&joints, &stops]),
                CallStage::CalledOnce => turn_end.iter().chain(&stops).copied().collect(),
                CallStage::Over => Vec::new(),
            }
        });
        SequenceStarts { regions: Region::ALL.map(anything), before_call }
    }

    /// Sequences by the shortest texts that begin them.
    fn entries(&self, mut seqs: Vec<u16>) -> Entries {
        let head = |seq: u16| self.all[usize::from(seq)].head().unwrap_or_default();
        let mut heads: Vec<&[u8]> = seqs.iter().map(|&seq| head(seq)).filter(|head| !head.is_empty()).collect();
        heads.sort_unstable();
        let mut markers: Vec<Vec<u8>> = Vec::new();
        for head in heads {
            if !markers.last().is_some_and(|shorter| head.starts_with(shorter)) {
                markers.push(head.to_vec());
            }
        }
        let mut begins: Vec<EntryThreads> = markers.iter().map(|_| EntryThreads::default()).collect();
        for &seq in &seqs {
            let Some(marker) = markers.iter().position(|marker| head(seq).starts_with(marker)) else { continue };
            let sequence = &self.all[usize::from(seq)];
            let how = ReadMode { names: None, strict: false, gaps: self.gaps };
            let (mut open, mut whole) = (Threads::from_elem(sequence.thread(seq), 1), None);
            for &byte in &markers[marker] {
                let mut next = Threads::new();
                for thread in open {
                    whole = sequence.step(thread, byte, how, &mut next).or(whole);
                }
                open = next;
            }
            begins[marker].open.extend(open);
            begins[marker].whole.extend(whole);
        }
        seqs.retain(|&seq| !head(seq).is_empty());
        Entries { markers: Markers::new(markers), begins, seqs }
    }

    /// All ways in which calls may begin in free text. The text after a call is kept apart.
    fn calls(&mut self, calls: &Calls, strict: bool) -> Vec<Entry> {
        // What is open where it should be one of few texts is read, but not written.
        let is_open = |pattern: &&Pattern| pattern.parts.contains(&Part::Anything);
        let closed = calls.patterns.iter().any(|pattern| !is_open(&pattern));
        let patterns = calls.patterns.iter().filter(|pattern| !(strict && closed && is_open(pattern)));
        let in_section = !calls.section.start.trim().is_empty();
        let is_marked =
            |pattern: &Pattern| in_section || pattern.head().is_some_and(|head| is_marker(head.trim().as_bytes()));
        let ways = patterns.flat_map(|pattern| call_forms(pattern, strict, is_marked(pattern)));
        let ways: Vec<CallForm> = ways.take(MOST_WAYS).collect();
        let section = calls.section.start.trim();
        let apart = calls.section.start.len() - calls.section.start.trim_end().len();
        let text = |text: &str| (!text.trim().is_empty()).then(|| Atom::Text(Literal::new(text)));
        let list = |mark: &str| text(mark).filter(|_| calls.list);
        let mut entries = Vec::new();
        let addressed = self.addressed;
        let has_end = calls.list || !calls.section.end.trim().is_empty() || !calls.between.trim().is_empty();
        for way in ways {
            let form = self.form(&way, strict);
            // A name may stand so far from what is before it.
            let begin = |seqs: &mut Self, lead: Vec<Atom>, apart: usize| {
                let blanks = if way.before.first() == Some(&Atom::Name) { apart } else { 0 };
                let blanks = std::iter::repeat_n(Atom::Blank, blanks);
                let mut atoms: Vec<Atom> = lead.into_iter().chain(blanks).chain(way.before.iter().cloned()).collect();
                if let Some((Atom::Text(text), rest)) = atoms.split_first_mut()
                    && !section.is_empty()
                    && **text == *section.as_bytes()
                {
                    add_blanks(&calls.section.start[calls.section.start.trim_end().len()..], rest);
                }
                // A name that nothing ends goes up to where the arguments can begin.
                if atoms.last() == Some(&Atom::Name) {
                    atoms.push(Atom::Ahead(way.first_bytes()));
                }
                let told = addressed && way.at_start_only && matches!(atoms[..], [Atom::Text(_), Atom::Name, ..]);
                let committed = if told { 1 } else { committed_from(&atoms) };
                seqs.add(Seq { atoms, committed, then: Outcome::Arguments(form), by_token: false })
            };
            let lead: Vec<Atom> = text(section).into_iter().chain(list("[")).collect();
            entries.push(Entry {
                seq: begin(self, lead, if calls.list { 0 } else { apart }),
                at_start_only: way.at_start_only,
            });
            // A list of one without its brackets, and a call without the start of its section.
            if calls.list && !section.is_empty() && !strict {
                let seq = begin(self, text(section).into_iter().collect(), apart);
                entries.push(Entry { seq, at_start_only: way.at_start_only });
            }
            let marked = matches!(way.before.first(), Some(Atom::Text(head)) if is_marker(head));
            if !section.is_empty() && !calls.list && marked {
                entries.push(Entry { seq: begin(self, Vec::new(), 0), at_start_only: way.at_start_only });
            }
            if has_end {
                let lead = list(",").or_else(|| text(&calls.between));
                let seq = begin(self, lead.into_iter().collect(), 1);
                self.after.push(seq);
            }
        }
        if has_end {
            let end = text(&calls.section.end);
            if calls.list {
                let atoms = vec![Atom::Text(Literal::new("]"))];
                let seq = self.add(Seq { atoms, committed: 1, then: Outcome::ListOver, by_token: false });
                self.after.push(seq);
            }
            if let Some(end) = end {
                let (atoms, then) = (vec![end], Outcome::CallsOver);
                let seq = self.add(Seq { atoms, committed: 1, then, by_token: false });
                if calls.list { self.after_list.push(seq) } else { self.after.push(seq) }
            }
        }
        entries
    }

    fn form(&mut self, way: &CallForm, strict: bool) -> u16 {
        // All but objects end with the text after them, which their reader takes.
        let taken = usize::from(!way.arguments.is_object() && !way.after.is_empty());
        let after = way.after.first().filter(|_| taken == 1).and_then(Atom::literal).unwrap_or_default();
        let atoms = way.after[taken..].to_vec();
        let tail = (!atoms.is_empty())
            .then(|| self.add(Seq { atoms, committed: 0, then: Outcome::CallOver, by_token: false }));
        self.forms.push(Form { reader: Reader::new(&way.arguments, &after, strict, self.gaps), tail });
        (self.forms.len() - 1) as u16
    }
}

/// The first atom from which on a call is certain: after a marker, or after enough text that shows it.
fn committed_from(atoms: &[Atom]) -> usize {
    let mut literal = 0;
    for (number, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Text(text) if is_label(text) => {}
            Atom::Text(text) if is_marker(text) => return number + 1,
            Atom::Text(text) | Atom::Exactly(text) => literal += text.len(),
            Atom::Name if literal >= 6 => return number,
            Atom::Name => return number + 2,
            _ => {}
        }
    }
    atoms.len()
}

/// Returns whether a text is words and a colon, as anybody writes them.
fn is_label(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b' ' || byte == b':')
}

/// Returns whether a text is unlikely to be written by accident.
fn is_marker(text: &[u8]) -> bool {
    text.len() >= 3
        && !text.starts_with(b"\"")
        && (is_set_off(text) || text.iter().any(|byte| b"<>[]{}|=`:".contains(byte) || !byte.is_ascii()))
}

/// Returns whether a word stands between signs, as in `**CALL**`.
pub(crate) fn is_set_off(text: &[u8]) -> bool {
    let is_sign = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_punctuation);
    text.len() >= 5 && !text.starts_with(b"\"") && is_sign(text.first()) && is_sign(text.last())
}
