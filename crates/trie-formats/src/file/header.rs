//! Header of a file: 64 bytes, then one entry per section. All of it is checked whenever a file is opened.

use super::problem::FileProblem;
use std::ops::{Range, RangeInclusive};
use trie_core::{Damage, TokenId};

/// The first byte, above 127, and the line ends reveal transfers that change such bytes.
pub(super) const MAGIC: [u8; 8] = *b"\x89ttrie\r\n";
pub(super) const VERSION: u32 = 2;
const BYTE_ORDER: u32 = 0x0102_0304;
const HEADER: usize = 64;
const ENTRY: usize = 32;
/// Sections begin at multiples of this: a cache line, and more than any item needs.
pub(super) const ALIGNMENT: usize = 64;
/// Bytes of a vocabulary's fingerprint.
pub(super) const FINGERPRINT: RangeInclusive<usize> = 1..=256;

/// Content of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(crate) enum Kind {
    Tokens = 1,
    FirstChild,
    InnerTerminals,
    LeafNodes,
    LeavesByNode,
    NameText,
    NameEnds,
    Fingerprint,
    Targets,
    Forced,
    LeavesEnd,
    EndNodes,
    EndLeaves,
    Canonical,
    CanonicalEnds,
    HealBytes,
    EndTokens,
    Weights,
    EndWeights,
}

impl Kind {
    pub(super) const ALL: [Self; 19] = [
        Self::Tokens,
        Self::FirstChild,
        Self::InnerTerminals,
        Self::LeafNodes,
        Self::LeavesByNode,
        Self::NameText,
        Self::NameEnds,
        Self::Fingerprint,
        Self::Targets,
        Self::Forced,
        Self::LeavesEnd,
        Self::EndNodes,
        Self::EndLeaves,
        Self::Canonical,
        Self::CanonicalEnds,
        Self::HealBytes,
        Self::EndTokens,
        Self::Weights,
        Self::EndWeights,
    ];

    /// Returns the sections of a set in which several sequences stand for one leaf: all or none.
    fn of_graph() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| (Self::Targets..=Self::CanonicalEnds).contains(kind))
    }

    /// Name of the section in `docs/file-format.md`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::FirstChild => "first_child",
            Self::InnerTerminals => "inner_terminals",
            Self::LeafNodes => "leaf_nodes",
            Self::LeavesByNode => "leaves_by_node",
            Self::NameText => "name_text",
            Self::NameEnds => "name_ends",
            Self::Fingerprint => "fingerprint",
            Self::Targets => "targets",
            Self::Forced => "forced",
            Self::LeavesEnd => "leaves_end",
            Self::EndNodes => "end_nodes",
            Self::EndLeaves => "end_leaves",
            Self::Canonical => "canonical",
            Self::CanonicalEnds => "canonical_ends",
            Self::HealBytes => "heal_bytes",
            Self::EndTokens => "end_tokens",
            Self::Weights => "weights",
            Self::EndWeights => "end_weights",
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// The first damage of the contents, if there is any.
pub(super) type CheckResult = Result<(), Damage>;

/// Damage of an item of a section.
pub(super) fn wrong(kind: Kind, at: usize, reason: impl Into<String>) -> Damage {
    Damage::new(format!("section {}, item {at}", kind.name()), reason)
}

/// The numbers of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) leaves: u32,
    pub(crate) nodes: u32,
    pub(crate) max_token: u32,
    pub(crate) max_depth: u32,
    /// Size of the vocabulary, 0 where none was given.
    pub(crate) n_vocab: u32,
}

/// One part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: Kind,
    pub(super) bytes: Range<usize>,
    pub(super) checksum: u32,
}

/// A checked header: every section is inside the file and as long as the counts say.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) counts: Counts,
    sections: Vec<Section>,
}

impl Header {
    /// Sections in the order of their kinds, one after the other.
    pub(super) fn new(counts: Counts, parts: &[(Kind, &[u8])]) -> Self {
        let mut header = Self::layout(counts, parts.iter().map(|&(kind, bytes)| (kind, bytes.len())));
        for (section, (_, bytes)) in header.sections.iter_mut().zip(parts) {
            section.checksum = crc32fast::hash(bytes);
        }
        header
    }

    /// The same for sections of so many bytes that are yet to be written.
    pub(crate) fn layout(counts: Counts, lengths: impl ExactSizeIterator<Item = (Kind, usize)>) -> Self {
        let mut begin = (HEADER + ENTRY * lengths.len()).next_multiple_of(ALIGNMENT);
        let section = |(kind, length)| {
            let bytes = begin..begin + length;
            begin = bytes.end.next_multiple_of(ALIGNMENT);
            Section { kind, bytes, checksum: 0 }
        };
        Self { counts, sections: lengths.map(section).collect() }
    }

    /// Returns the position of a section, and its checksum once that is known.
    pub(crate) fn slot(&mut self, kind: Kind) -> Option<(usize, &mut u32)> {
        let section = self.sections.iter_mut().find(|section| section.kind == kind)?;
        Some((section.bytes.start, &mut section.checksum))
    }

    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(super) fn section(&self, kind: Kind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// Length of the file.
    pub(crate) fn end(&self) -> u64 {
        self.sections.last().map_or(0, |last| last.bytes.end as u64)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Counts { leaves, nodes, max_token, max_depth, n_vocab } = self.counts;
        let mut bytes = MAGIC.to_vec();
        let word = |bytes: &mut Vec<u8>, word: u32| bytes.extend(word.to_le_bytes());
        word(&mut bytes, BYTE_ORDER);
        word(&mut bytes, VERSION);
        bytes.extend(self.end().to_le_bytes());
        for number in [leaves, nodes, max_token, max_depth, n_vocab, self.sections.len() as u32] {
            word(&mut bytes, number);
        }
        bytes.resize(HEADER - 4, 0);
        let mut table = Vec::with_capacity(ENTRY * self.sections.len());
        for section in &self.sections {
            word(&mut table, section.kind as u32);
            word(&mut table, section.checksum);
            table.extend((section.bytes.start as u64).to_le_bytes());
            table.extend((section.bytes.len() as u64).to_le_bytes());
            table.extend([0; 8]);
        }
        let sum = checksum(&bytes, &table);
        word(&mut bytes, sum);
        bytes.extend(table);
        bytes
    }

    /// The bytes of the header and the section table of a file that was checked.
    pub(super) fn of_file(file: &[u8]) -> &[u8] {
        let sections = file.get(..HEADER).map_or(0, |header| u32_at(header, 44) as usize);
        file.get(..HEADER + ENTRY * sections).unwrap_or_default()
    }

    /// Reads and checks all of it. `O(1)`.
    pub(super) fn read(file: &[u8]) -> Result<Self, FileProblem> {
        let cut_off = |need: u64| FileProblem::Truncated { bytes: file.len(), need };
        let magic = &file[..file.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(FileProblem::NotATrie { found: magic.to_vec() });
        }
        let header = file.get(..HEADER).ok_or_else(|| cut_off(HEADER as u64))?;
        let word = |at| u32_at(header, at);
        match word(8) {
            BYTE_ORDER if cfg!(target_endian = "little") => {}
            order if order == BYTE_ORDER || order == BYTE_ORDER.swap_bytes() => return Err(FileProblem::ByteOrder),
            order => return Err(FileProblem::damage_in("header", format!("the byte order mark is {order:#010x}"))),
        }
        if word(12) != VERSION {
            return Err(FileProblem::Version { found: word(12), known: VERSION });
        }
        let count = word(44) as usize;
        if count > Kind::ALL.len() {
            return Err(FileProblem::damage_in("header", format!("{count} sections, at most {}", Kind::ALL.len())));
        }
        let end = HEADER + ENTRY * count;
        let table = file.get(HEADER..end).ok_or_else(|| cut_off(end as u64))?;
        let found = checksum(&header[..HEADER - 4], table);
        if found != word(60) {
            let reason = format!("the checksum is {found:#010x}, not {:#010x}", word(60));
            return Err(FileProblem::damage_in("header", reason));
        }
        let length = u64_at(header, 16);
        if length > file.len() as u64 {
            return Err(cut_off(length));
        }
        let header = Self {
            counts: Counts {
                leaves: word(24),
                nodes: word(28),
                max_token: word(32),
                max_depth: word(36),
                n_vocab: word(40),
            },
            sections: read_table(table, end, length)?,
        };
        if length != file.len() as u64 || length != header.end() {
            let reason = format!("{length} bytes in the header, {} in the file", file.len());
            return Err(FileProblem::damage_in("length", reason));
        }
        header.check_counts()?;
        header.check_lengths()?;
        Ok(header)
    }

    fn check_counts(&self) -> Result<(), FileProblem> {
        let Counts { leaves, nodes, max_token, max_depth, n_vocab } = self.counts;
        let wrong = |what: String| Err(FileProblem::damage_in("header", what));
        if nodes < 2 || nodes == u32::MAX {
            return wrong(format!("{nodes} nodes"));
        }
        if leaves == 0 || leaves >= nodes {
            return wrong(format!("{leaves} leaves in {nodes} nodes"));
        }
        if max_depth == 0 || max_depth >= nodes {
            return wrong(format!("leaves of {max_depth} tokens in {nodes} nodes"));
        }
        if TokenId::new(max_token).is_none() || (n_vocab > 0 && max_token >= n_vocab) {
            return wrong(format!("token id {max_token} in a vocabulary of {n_vocab}"));
        }
        Ok(())
    }

    /// Returns whether several sequences may stand for one leaf.
    pub(super) fn is_graph(&self) -> bool {
        Kind::of_graph().any(|kind| self.section(kind).is_some())
    }

    fn check_lengths(&self) -> Result<(), FileProblem> {
        let (leaves, nodes) = (self.counts.leaves as usize, self.counts.nodes as usize);
        let (has, is_graph) = (|kind| self.section(kind).is_some(), self.is_graph());
        let always = [Kind::Tokens, Kind::FirstChild, Kind::InnerTerminals].map(|kind| (kind, true));
        let pairs = [(Kind::LeafNodes, Kind::LeavesByNode), (Kind::NameText, Kind::NameEnds)];
        let pairs = pairs.into_iter().flat_map(|(one, other)| [(one, has(other)), (other, has(one))]);
        let graph = Kind::of_graph().map(|kind| (kind, is_graph));
        let weights = [(Kind::Weights, has(Kind::EndWeights))];
        if let Some((kind, _)) =
            always.into_iter().chain(pairs).chain(graph).chain(weights).find(|&(kind, needed)| needed && !has(kind))
        {
            return Err(FileProblem::damage_in("section table", format!("missing section {}", kind.name())));
        }
        let words = |kind| self.section(kind).map_or(0, |section| section.bytes.len() / 4);
        for section in &self.sections {
            let bytes = section.bytes.len();
            let whole = bytes.is_multiple_of(4);
            let fits = match section.kind {
                Kind::Tokens if is_graph => whole && bytes / 4 >= nodes,
                Kind::FirstChild if is_graph => bytes == 4 * (nodes + 1),
                Kind::FirstChild => whole && (8..=4 * nodes).contains(&bytes),
                Kind::LeafNodes | Kind::LeavesByNode => bytes == 4 * leaves && !is_graph,
                Kind::NameEnds | Kind::CanonicalEnds | Kind::EndWeights => bytes == 4 * leaves,
                Kind::InnerTerminals => whole && bytes < 4 * leaves,
                Kind::NameText => bytes < u32::MAX as usize,
                Kind::Fingerprint => FINGERPRINT.contains(&bytes),
                Kind::Targets => bytes == 4 * words(Kind::Tokens),
                Kind::Tokens | Kind::Forced | Kind::LeavesEnd => bytes == 4 * nodes,
                Kind::EndNodes => whole && (leaves..nodes).contains(&(bytes / 4)),
                Kind::EndLeaves => bytes == 4 * words(Kind::EndNodes),
                Kind::Canonical => whole && bytes / 4 >= leaves,
                Kind::HealBytes => bytes == 4,
                Kind::EndTokens => whole && bytes >= 8,
                Kind::Weights => bytes == 4 * nodes && !is_graph,
            };
            if !fits {
                let reason = format!("{bytes} bytes for {leaves} leaves and {nodes} nodes");
                return Err(FileProblem::damage_in(format!("section {}", section.kind.name()), reason));
            }
        }
        Ok(())
    }
}

/// Sections in ascending order of kind and offset, none reaching into another.
fn read_table(table: &[u8], begin: usize, length: u64) -> Result<Vec<Section>, FileProblem> {
    let mut sections: Vec<Section> = Vec::with_capacity(table.len() / ENTRY);
    for (number, entry) in table.chunks_exact(ENTRY).enumerate() {
        let wrong = |what: String| FileProblem::damage_in(format!("section table, entry {number}"), what);
        let raw = u32_at(entry, 0);
        let kind = Kind::from_number(raw).ok_or_else(|| wrong(format!("unknown kind {raw}")))?;
        let free = match sections.last() {
            Some(before) if before.kind >= kind => {
                return Err(wrong(format!("{} after {}", kind.name(), before.kind.name())));
            }
            Some(before) => before.bytes.end,
            None => begin,
        };
        let (start, bytes) = (u64_at(entry, 8), u64_at(entry, 16));
        let end = start.checked_add(bytes).filter(|&end| end <= length && start >= free as u64);
        // `length` is at most that of the mapped file, so both fit into a `usize`.
        let end =
            end.ok_or_else(|| wrong(format!("{bytes} bytes at {start} do not lie in {free}..{length}")))? as usize;
        let start = start as usize;
        if !start.is_multiple_of(ALIGNMENT) {
            return Err(wrong(format!("offset {start} is not a multiple of {ALIGNMENT}")));
        }
        sections.push(Section { kind, bytes: start..end, checksum: u32_at(entry, 4) });
    }
    Ok(sections)
}

fn checksum(header: &[u8], table: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(table);
    hasher.finalize()
}

/// Callers give slices that are long enough.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().copied().map_or(0, u64::from_le_bytes)
}
