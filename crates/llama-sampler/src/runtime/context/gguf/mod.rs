//! Header of a GGUF file, read before llama.cpp reads the file. In untrusted files it may hold values that llama.cpp
//! asserts or takes for granted; they are refused here.
//!
//! `read.rs` reads the header. `vocabulary.rs`, `numbers.rs` and `tensors.rs` check the preconditions of the tokenizer,
//! of the model's numbers and of its weights. `preconditions.rs` lists them.

mod charsmap;
mod numbers;
mod read;
mod tensors;
mod vocabulary;

use crate::runtime::error::RuntimeError;
use read::Reader;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Versions whose header llama.cpp reads (`llama.cpp/ggml/src/gguf.cpp`).
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;

/// Architectures that give no logits for a next token: text encoders, and drafts of another model. From
/// `llama.cpp/src/llama-arch.cpp`; `llama_model_has_encoder` and the causal flag are not in the safe crate.
const NOT_DECODERS: [&str; 16] = [
    "bert",
    "modern-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "eurobert",
    "gemma-embedding",
    "t5",
    "t5encoder",
    "eagle3",
    "dflash",
    "clip",
    "wavtokenizer-dec",
    "gemma4-assistant",
];

/// A value of the metadata. Only the lists that a check reads are kept.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    /// An integer of any width.
    Whole(i128),
    Real(f64),
    Flag(bool),
    Text(Vec<u8>),
    Wholes(Vec<i64>),
    Texts(Texts),
    /// A list of another type, or one that no check reads.
    Other,
}

/// A list of texts in one piece of memory.
#[derive(Debug, Clone, Default, PartialEq)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.bytes[begin..end])
    }
}

/// An entry of the list of tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tensor {
    name: String,
    shape: Vec<u64>,
    kind: u32,
}

/// Metadata of a file.
#[derive(Debug)]
pub(super) struct Header {
    path: PathBuf,
    metadata: HashMap<String, Value>,
    tensors: Vec<Tensor>,
}

impl Header {
    /// Reads the header, and checks it as far as a vocabulary needs it.
    ///
    /// # Errors
    /// The path is not a readable file, the file is not GGUF of a version that llama.cpp reads, or its tokenizer is
    /// one that llama.cpp cannot use.
    pub(super) fn read(path: &Path) -> Result<Self, RuntimeError> {
        let file = |source| RuntimeError::File { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(file)?;
        if !metadata.is_file() {
            // Opening a pipe would wait for a writer, so this comes first.
            return Err(RuntimeError::Path { path: path.to_owned(), what: "it is a folder or a device" });
        }
        let input = BufReader::with_capacity(1 << 16, File::open(path).map_err(file)?);
        let (metadata, tensors) = Reader::new(input, metadata.len()).header().map_err(|error| error.with_path(path))?;
        let header = Self { path: path.to_owned(), metadata, tensors };
        header.check_vocabulary()?;
        Ok(header)
    }

    /// Checks the rest as far as a model needs it.
    ///
    /// # Errors
    /// There are no weights, or llama.cpp cannot use them.
    pub(super) fn check_model(&self) -> Result<(), RuntimeError> {
        if self.tensors.is_empty() {
            return Err(RuntimeError::VocabularyOnly { path: self.path.clone() });
        }
        let architecture = self.text("general.architecture").unwrap_or_default();
        if NOT_DECODERS.contains(&architecture) {
            return Err(RuntimeError::NotADecoder { path: self.path.clone(), architecture: architecture.to_owned() });
        }
        self.check_numbers(architecture)?;
        self.check_tensors()
    }

    /// Number of the pooling by which vectors of tokens become one of a text, if the file names one.
    pub(super) fn pooling(&self) -> Option<i128> {
        self.integer(&format!("{}.pooling_type", self.text("general.architecture")?))
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            Value::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    fn integer(&self, key: &str) -> Option<i128> {
        match self.metadata.get(key)? {
            Value::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the error about the value of a key.
    fn refuse(
        &self,
        key: impl Into<String>,
        value: &(impl ToString + ?Sized),
        what: impl Into<String>,
    ) -> RuntimeError {
        RuntimeError::Metadata { path: self.path.clone(), key: key.into(), value: value.to_string(), what: what.into() }
    }
}

/// Bytes of a model's file that are read at each place, and the number of places: 1 MB of a file of any size.
const BLOCK: u64 = 4096;
const PLACES: u64 = 256;

/// Fingerprint of a model's file: SHA-256 of its length and of 256 blocks of 4 KiB that lie evenly in it, the first and
/// the last among them. Further training changes the weights everywhere in the file, so the blocks differ too. Reading
/// all of a large file would take a minute.
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
