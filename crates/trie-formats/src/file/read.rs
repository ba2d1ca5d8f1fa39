//! Opening: map the file, check its header, lend its sections to a trie.

use super::{Contents, FileError, FileOptions, FileProblem, Header, Kind, check_vocabulary};
use crate::map;
use bytemuck::Pod;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use trie_core::Trie;
use trie_core::storage::Graph;
use trie_core::storage::PackedInts;
use trie_core::storage::Weights;
use trie_core::storage::{Array, Memory};
use trie_core::storage::{LeafTable, Names, SetInfo, Store};
use trie_core::storage::{PendingCheck, Verify as _};
use trie_core::{NodeId, TokenId};

/// Opens a file and returns the memory that it lies in beside the trie.
pub(super) fn open(path: &Path, options: FileOptions<'_>) -> Result<(Trie, Arc<Memory>), FileError> {
    let memory = map(path).map_err(FileError::io(path, "open"))?;
    match memory.map(Arc::new) {
        Some(memory) => trie(&memory, options).map(|trie| (trie, memory)),
        None => Err(FileProblem::Truncated { bytes: 0, need: 64 }),
    }
    .map_err(|problem| problem.with_path(path))
}

/// Copies the bytes and opens the copy.
pub(super) fn from_bytes(bytes: &[u8], options: FileOptions<'_>) -> Result<Trie, FileError> {
    let path = Path::new("");
    if bytes.is_empty() {
        return Err(FileProblem::Truncated { bytes: 0, need: 64 }.with_path(path));
    }
    let memory = map::of_bytes(bytes).map_err(FileError::io(path, "copy"))?;
    trie(&Arc::new(memory), options).map_err(|problem| problem.with_path(path))
}

/// The pages of a file, `None` where it has none.
fn map(path: &Path) -> io::Result<Option<Memory>> {
    // Asked before opening, because opening a pipe waits for a writer.
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        // Folders can be opened; reading says what is wrong in the system's own words.
        File::open(path)?.read_exact(&mut [0])?;
    }
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 { Ok(None) } else { map::of_file(&file).map(Some) }
}

/// A trie from a file that this program has just written.
pub(crate) fn of_written(file: &mut File, input_rows: PackedInts) -> Result<Trie, FileError> {
    let path = Path::new("");
    let map = map::of_contents(file).map_err(FileError::io(path, "read what was written"))?;
    let (store, _) = store(&Arc::new(map), FileOptions::default()).map_err(|problem| problem.with_path(path))?;
    Ok(Trie::from_store(Store { input_rows, verified: true, unread: None, ..store }))
}

fn trie(map: &Arc<Memory>, options: FileOptions<'_>) -> Result<Trie, FileProblem> {
    let (store, info) = store(map, options)?;
    Ok(Trie::from_store(store).with_info(info))
}

/// The arrays, and what belongs to the set beside them.
fn store(map: &Arc<Memory>, options: FileOptions<'_>) -> Result<(Store, SetInfo), FileProblem> {
    let header = Header::read(map.bytes())?;
    let counts = header.counts;
    let max_token = TokenId::new(counts.max_token).unwrap_or(TokenId::MAX);
    let fingerprint = fingerprint(map, &header)?;
    if let Some(vocabulary) = options.vocabulary {
        check_vocabulary(vocabulary, max_token)?;
        if let (Some(expected), Some(found)) = (vocabulary.fingerprint, &fingerprint)
            && found != expected.as_bytes()
        {
            let (found, expected) = (String::from_utf8_lossy(found).into_owned(), expected.to_owned());
            return Err(FileProblem::OtherVocabulary { found, expected });
        }
    }
    let store = Store {
        tokens: array(map, &header, Kind::Tokens)?,
        first_child: array(map, &header, Kind::FirstChild)?,
        inner_terminals: array(map, &header, Kind::InnerTerminals)?,
        leaves: if header.is_graph() {
            LeafTable::Ends {
                nodes: array(map, &header, Kind::EndNodes)?,
                leaves: array(map, &header, Kind::EndLeaves)?,
                count: counts.leaves,
            }
        } else if header.section(Kind::LeafNodes).is_some() {
            LeafTable::Table {
                nodes: array(map, &header, Kind::LeafNodes)?,
                by_node: array(map, &header, Kind::LeavesByNode)?,
            }
        } else {
            LeafTable::Tail(counts.nodes - counts.leaves, counts.leaves)
        },
        names: match header.section(Kind::NameText) {
            Some(_) => Some(Names::new(array(map, &header, Kind::NameText)?, array(map, &header, Kind::NameEnds)?)),
            None => None,
        },
        input_rows: PackedInts::default(),
        max_token,
        max_depth: counts.max_depth,
        verified: false,
        unread: None,
        graph: header.is_graph().then(|| graph(map, &header)).transpose()?,
    };
    let heal_bytes = match header.section(Kind::HealBytes) {
        Some(_) => array::<u32>(map, &header, Kind::HealBytes)?.first().copied().unwrap_or(0),
        None => 0,
    };
    let end_tokens = match header.section(Kind::EndTokens) {
        Some(_) => {
            array::<u32>(map, &header, Kind::EndTokens)?.iter().skip(1).filter_map(|&id| TokenId::new(id)).collect()
        }
        None => Vec::new(),
    };
    let weights = match header.section(Kind::Weights) {
        Some(_) => Some(Weights {
            edges: array(map, &header, Kind::Weights)?,
            ends: header.section(Kind::EndWeights).map(|_| array(map, &header, Kind::EndWeights)).transpose()?,
        }),
        None => None,
    };
    let vocabulary = fingerprint.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| (text, counts.n_vocab));
    let info = SetInfo::new(heal_bytes, end_tokens).with_weights(weights).with_vocabulary(vocabulary);
    if let Some(vocabulary) = options.vocabulary {
        info.end_tokens().last().map_or(Ok(()), |&last| check_vocabulary(vocabulary, last))?;
    }
    // A set without a beginning would allow everything or nothing.
    let root = store.children(NodeId::ROOT);
    if root.is_empty() || store.sound(root).len() < root.len() {
        return Err(FileProblem::damage_in("root", "its children are not nodes with tokens of the vocabulary"));
    }
    let contents = Contents::new(Arc::clone(map), header);
    if options.verify {
        contents.verify(&store)?;
        let verified = store.tokens.is_ours();
        return Ok((Store { verified, ..store }, info));
    }
    Ok((Store { unread: Some(Box::new(PendingCheck::new(contents))), ..store }, info))
}

/// The fingerprint, copied so that the compared bytes are those that the trie reports later.
fn fingerprint(map: &Arc<Memory>, header: &Header) -> Result<Option<Vec<u8>>, FileProblem> {
    if header.section(Kind::Fingerprint).is_none() {
        return Ok(None);
    }
    let bytes: Array<u8> = array(map, header, Kind::Fingerprint)?;
    Ok(bytes.copy_bytes(0..bytes.len()).map(Cow::into_owned))
}

fn graph(map: &Arc<Memory>, header: &Header) -> Result<Graph, FileProblem> {
    Ok(Graph {
        targets: array(map, header, Kind::Targets)?,
        forced: array(map, header, Kind::Forced)?,
        leaves_end: array(map, header, Kind::LeavesEnd)?,
        canonical: array(map, header, Kind::Canonical)?,
        canonical_ends: array(map, header, Kind::CanonicalEnds)?,
    })
}

fn array<T: Pod>(map: &Arc<Memory>, header: &Header, kind: Kind) -> Result<Array<T>, FileProblem> {
    let section = header.section(kind).and_then(|section| Array::of_memory(map, section.bytes.clone()));
    section.ok_or_else(|| FileProblem::damage_in(format!("section {}", kind.name()), "not in the file"))
}

/// Identity of the contents of a `.ttrie` file: the SHA-256 of its header and section table, which hold its length and
/// the checksum of every section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp(pub [u8; 32]);

impl FileStamp {
    /// The stamp of a file that was checked.
    pub(super) fn of_file(bytes: &[u8]) -> Self {
        Self(Sha256::digest(Header::of_file(bytes)).into())
    }
}
