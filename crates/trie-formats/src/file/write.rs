//! Saving: a new file is written beside the old one, and replaces it when it is complete and on disk.

use super::{Counts, FileError, FileProblem, Header, Kind, check_vocabulary};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use trie_core::Trie;
use trie_core::VocabularyId;
use trie_core::storage::LeafTable;

/// Content of each section, in the order of their kinds.
type Parts<'a> = Vec<(Kind, &'a [u8])>;

/// Writes a file for [`TrieFile::save`](super::TrieFile::save).
pub(super) fn save(trie: &Trie, path: &Path, vocabulary: Option<VocabularyId<'_>>) -> Result<(), FileError> {
    let (header, parts) = image(trie, vocabulary).map_err(|problem| problem.with_path(path))?;
    replace_whole(path, |file| write(file, &header, &parts))
}

/// Writes a file for [`TrieFile::write_to`](super::TrieFile::write_to).
pub(super) fn write_to(trie: &Trie, out: &mut impl Write, vocabulary: Option<VocabularyId<'_>>) -> io::Result<()> {
    let (header, parts) =
        image(trie, vocabulary).map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
    write(out, &header, &parts)
}

fn image<'a>(trie: &'a Trie, vocabulary: Option<VocabularyId<'a>>) -> Result<(Header, Parts<'a>), FileProblem> {
    if cfg!(target_endian = "big") {
        return Err(FileProblem::ByteOrder);
    }
    // Damage would get checksums that are right.
    trie.verify()?;
    let (store, own) = (trie.store(), trie.vocabulary());
    let fingerprints = (own.and_then(|own| own.fingerprint), vocabulary.and_then(|given| given.fingerprint));
    if let (Some(found), Some(expected)) = fingerprints
        && found != expected
    {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        return Err(FileProblem::OtherVocabulary { found, expected });
    }
    // What it was made for stays in the file where nothing else is said.
    let vocabulary = match vocabulary {
        Some(given) => Some(VocabularyId { fingerprint: given.fingerprint.or(fingerprints.0), ..given }),
        None => own,
    };
    vocabulary.map_or(Ok(()), |vocabulary| check_vocabulary(vocabulary, store.max_token))?;
    let mut parts: Parts<'_> = vec![
        (Kind::Tokens, bytemuck::cast_slice(&store.tokens)),
        (Kind::FirstChild, bytemuck::cast_slice(&store.first_child)),
        (Kind::InnerTerminals, bytemuck::cast_slice(&store.inner_terminals)),
    ];
    if let LeafTable::Table { nodes, by_node } = &store.leaves {
        parts.push((Kind::LeafNodes, bytemuck::cast_slice(nodes)));
        parts.push((Kind::LeavesByNode, bytemuck::cast_slice(by_node)));
    }
    if let Some(names) = &store.names {
        parts.push((Kind::NameText, &names.text));
        parts.push((Kind::NameEnds, bytemuck::cast_slice(&names.ends)));
    }
    if let Some(fingerprint) = vocabulary.and_then(|vocabulary| vocabulary.fingerprint) {
        parts.push((Kind::Fingerprint, fingerprint.as_bytes()));
    }
    if let (Some(graph), LeafTable::Ends { nodes, leaves, .. }) = (&store.graph, &store.leaves) {
        parts.extend([
            (Kind::Targets, bytemuck::cast_slice(&graph.targets)),
            (Kind::Forced, bytemuck::cast_slice(&graph.forced)),
            (Kind::LeavesEnd, bytemuck::cast_slice(&graph.leaves_end)),
            (Kind::EndNodes, bytemuck::cast_slice(nodes)),
            (Kind::EndLeaves, bytemuck::cast_slice(leaves)),
            (Kind::Canonical, bytemuck::cast_slice(&graph.canonical)),
            (Kind::CanonicalEnds, bytemuck::cast_slice(&graph.canonical_ends)),
        ]);
    }
    let info = trie.info();
    if info.heal_bytes > 0 {
        parts.push((Kind::HealBytes, bytemuck::bytes_of(&info.heal_bytes)));
    }
    if let Some(words) = info.end_words() {
        parts.push((Kind::EndTokens, bytemuck::cast_slice(words)));
    }
    if let Some(weights) = info.weights() {
        parts.push((Kind::Weights, bytemuck::cast_slice(&weights.edges)));
        parts.extend(weights.ends.as_ref().map(|ends| (Kind::EndWeights, bytemuck::cast_slice(ends))));
    }
    let counts = Counts {
        leaves: trie.len() as u32,
        nodes: trie.nodes() as u32,
        max_token: store.max_token.get(),
        max_depth: store.max_depth,
        n_vocab: vocabulary.map_or(0, VocabularyId::stored_size),
    };
    Ok((Header::new(counts, &parts), parts))
}

/// Writes a file that appears at this path only when it is complete and on disk; an error leaves nothing behind.
///
/// # Errors
/// An error of the system, with the path.
pub fn replace_whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), FileError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Renaming would put a file in the place of a device, such as /dev/null.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(FileError::io(path, "replace")(source));
    }
    let mut prefix = OsString::from(".");
    // With what is added to it, a longer name could be too long.
    prefix.push(path.file_name().filter(|name| name.len() <= 200).unwrap_or("set.ttrie".as_ref()));
    // As any new file: what the umask leaves.
    let made =
        tempfile::Builder::new().prefix(&prefix).suffix(".partial").make_in(folder, |path| File::create_new(path));
    let mut partial = made.map_err(FileError::io(folder, "create a file there"))?;
    write(partial.as_file_mut()).map_err(FileError::io(path, "write"))?;
    partial.as_file().sync_all().map_err(FileError::io(path, "write"))?;
    partial.persist(path).map_err(|error| FileError::io(path, "replace")(error.error))?;
    // The new name, too, must outlive a power failure; a folder that may be written but not read cannot be flushed.
    #[cfg(unix)]
    if let Ok(opened) = File::open(folder) {
        opened.sync_all().map_err(FileError::io(folder, "flush the folder"))?;
    }
    Ok(())
}

fn write(out: &mut impl Write, header: &Header, parts: &[(Kind, &[u8])]) -> io::Result<()> {
    let head = header.to_bytes();
    out.write_all(&head)?;
    let mut at = head.len();
    for (section, (_, bytes)) in header.sections().iter().zip(parts) {
        out.write_all(&[0; super::header::ALIGNMENT][..section.bytes.start - at])?;
        out.write_all(bytes)?;
        at = section.bytes.end;
    }
    out.flush()
}
