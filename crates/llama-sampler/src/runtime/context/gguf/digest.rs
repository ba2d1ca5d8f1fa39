//! By what a model's file is known.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a model's file that are read at each place, and the number of places: 1 MB of a file of any size.
const BLOCK: u64 = 4096;
const PLACES: u64 = 256;

/// By which a model's file is known: SHA-256 of its length and of 256 blocks of 4 KiB that lie evenly in it, the first
/// and the last among them. A model that was trained further has other weights everywhere; reading all of a large file
/// would take a minute.
///
/// # Errors
/// The file cannot be read.
pub fn model_digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut hash = Sha256::new();
    hash.update(bytes.to_le_bytes());
    let last = bytes.saturating_sub(BLOCK);
    let mut block = Vec::new();
    for place in 0..PLACES {
        let at = (u128::from(last) * u128::from(place) / u128::from(PLACES - 1)) as u64;
        file.seek(SeekFrom::Start(at))?;
        block.clear();
        file.by_ref().take(BLOCK).read_to_end(&mut block)?;
        hash.update(&block);
    }
    Ok(hash.finalize().into())
}
