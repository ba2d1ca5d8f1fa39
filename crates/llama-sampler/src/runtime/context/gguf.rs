//! The first bytes of a GGUF file: enough to refuse what llama.cpp must not be given.

use crate::runtime::error::RuntimeError;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Magic, version, number of tensors, number of metadata entries.
const HEADER: usize = 24;

/// Versions whose header llama.cpp reads (`llama.cpp/ggml/src/gguf.cpp`).
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Tensors in the file; none in a vocabulary.
    pub(super) tensors: u64,
}

/// Reads and checks the header.
///
/// # Errors
/// The path is no readable file, or the file is no GGUF of a version that llama.cpp reads.
pub(super) fn read_header(path: &Path) -> Result<Header, RuntimeError> {
    let file = |source| RuntimeError::File { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(file)?;
    if !metadata.is_file() {
        // Opening a pipe would wait for a writer, so this comes first.
        return Err(RuntimeError::Path { path: path.to_owned(), what: "it is a folder or a device" });
    }
    let mut bytes = Vec::with_capacity(HEADER);
    File::open(path).map_err(file)?.take(HEADER as u64).read_to_end(&mut bytes).map_err(file)?;
    let not_gguf = |what: String| RuntimeError::NotGguf { path: path.to_owned(), what };
    if !bytes.starts_with(b"GGUF") {
        let found = &bytes[..bytes.len().min(4)];
        return Err(not_gguf(format!("it starts with \"{}\" instead of \"GGUF\"", found.escape_ascii())));
    }
    let (Some(version), Some(tensors)) = (word(&bytes, 4), word(&bytes, 8)) else {
        return Err(not_gguf(format!("it ends after {} bytes, inside its header", bytes.len())));
    };
    let version = u32::from_le_bytes(version);
    if !VERSIONS.contains(&version) {
        let hint = if VERSIONS.contains(&version.swap_bytes()) { ", written on a big-endian machine" } else { "" };
        return Err(not_gguf(format!("its version is {version}{hint}; {VERSIONS:?} can be read")));
    }
    if bytes.len() < HEADER {
        return Err(not_gguf(format!("it ends after {} bytes, inside its header", bytes.len())));
    }
    Ok(Header { tensors: u64::from_le_bytes(tensors) })
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}
