//! Reads metadata and the list of tensors. Memory is allocated only for data that the file is long enough to hold.

use super::{Tensor, Texts, VERSIONS, Value};
use crate::runtime::error::RuntimeError;
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Seek};
use std::path::Path;
use trie_text::quote;

/// Longest list of numbers that is kept. Apart from those of the tokenizer, the longest has one number for each layer.
const KEPT: u64 = 4096;

/// Lists that are kept whatever their length.
const KEPT_KEYS: [&str; 3] =
    ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.precompiled_charsmap"];

/// Dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;

const TEXT: u32 = 8;
const LIST: u32 = 9;

/// Reason why a header was not read.
pub(super) enum Unread {
    Io(io::Error),
    /// First bytes that were found.
    NotGguf(String),
}

impl Unread {
    pub(super) fn with_path(self, path: &Path) -> RuntimeError {
        match self {
            Self::Io(source) => RuntimeError::File { path: path.to_owned(), source },
            Self::NotGguf(what) => RuntimeError::NotGguf { path: path.to_owned(), what },
        }
    }
}

type Result<T, E = Unread> = std::result::Result<T, E>;

/// Reads from the beginning of a file of a known length.
pub(super) struct Reader<R> {
    input: R,
    position: u64,
    length: u64,
    /// Position in the file, for messages.
    place: String,
}

impl<R: BufRead + Seek> Reader<R> {
    pub(super) fn new(input: R, length: u64) -> Self {
        Self { input, position: 0, length, place: "its header".to_owned() }
    }

    pub(super) fn header(mut self) -> Result<(HashMap<String, Value>, Vec<Tensor>)> {
        let mut magic = Vec::new();
        self.input.by_ref().take(4).read_to_end(&mut magic).map_err(Unread::Io)?;
        self.position = magic.len() as u64;
        if magic != b"GGUF" {
            return Err(not_gguf(format!("it starts with \"{}\" instead of \"GGUF\"", magic.escape_ascii())));
        }
        let version = self.u32()?;
        if !VERSIONS.contains(&version) {
            let hint = if VERSIONS.contains(&version.swap_bytes()) { ", written on a big-endian machine" } else { "" };
            return Err(not_gguf(format!("its version is {version}{hint}; {VERSIONS:?} can be read")));
        }
        let (n_tensors, n_metadata) = (self.u64()?, self.u64()?);
        let mut metadata = HashMap::new();
        for number in 0..n_metadata {
            self.place = format!("the name of metadata entry {number} of {n_metadata}");
            let key = self.name()?;
            self.place = format!("the value of {}", quote(&key));
            let value = self.value(&key)?;
            if metadata.contains_key(&key) {
                return Err(not_gguf(format!("it has the key {} twice", quote(&key))));
            }
            metadata.insert(key, value);
        }
        let mut tensors = Vec::new();
        for number in 0..n_tensors {
            self.place = format!("tensor {number} of {n_tensors}");
            tensors.push(self.tensor()?);
        }
        Ok((metadata, tensors))
    }

    fn tensor(&mut self) -> Result<Tensor> {
        let name = self.name()?;
        let dimensions = self.u32()?;
        if dimensions > MAX_DIMENSIONS {
            let name = quote(&name);
            return Err(not_gguf(format!(
                "the tensor {name} has {dimensions} dimensions: {MAX_DIMENSIONS} is the most"
            )));
        }
        let shape = (0..dimensions).map(|_| self.u64()).collect::<Result<_>>()?;
        let kind = self.u32()?;
        self.u64()?;
        Ok(Tensor { name, shape, kind })
    }

    fn value(&mut self, key: &str) -> Result<Value> {
        let kind = self.u32()?;
        if kind == TEXT {
            let length = self.u64()?;
            return Ok(Value::Text(self.text(length)?));
        }
        if kind == LIST {
            return self.list(key);
        }
        let size = self.size(kind)?;
        let mut bytes = [0; 8];
        self.exact(&mut bytes[..size])?;
        Ok(scalar(kind, bytes))
    }

    fn list(&mut self, key: &str) -> Result<Value> {
        let (kind, count) = (self.u32()?, self.u64()?);
        let kept = KEPT_KEYS.contains(&key);
        if kind == TEXT {
            // Each has its length in front of it.
            self.has(count.saturating_mul(8))?;
            let mut texts = Texts::default();
            for _ in 0..count {
                let length = self.u64()?;
                if kept {
                    let text = self.text(length)?;
                    texts.bytes.extend(text);
                    texts.ends.push(texts.bytes.len());
                } else {
                    self.skip(length)?;
                }
            }
            return Ok(if kept { Value::Texts(texts) } else { Value::Other });
        }
        let size = self.size(kind)?;
        let length = count.saturating_mul(size as u64);
        self.has(length)?;
        if !kept && count > KEPT {
            self.skip(length)?;
            return Ok(Value::Other);
        }
        let bytes = self.bytes(length)?;
        let whole = |item: &[u8]| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(item);
            match scalar(kind, bytes) {
                Value::Whole(number) => i64::try_from(number).ok(),
                Value::Flag(flag) => Some(flag.into()),
                _ => None,
            }
        };
        let wholes: Option<Vec<i64>> = bytes.chunks_exact(size).map(whole).collect();
        Ok(wholes.map_or(Value::Other, Value::Wholes))
    }

    /// Bytes of a number of this type.
    fn size(&self, kind: u32) -> Result<usize> {
        match kind {
            0 | 1 | 7 => Ok(1),
            2 | 3 => Ok(2),
            4..=6 => Ok(4),
            10..=12 => Ok(8),
            _ => Err(not_gguf(format!("{} has the unknown type {kind}", self.place))),
        }
    }

    fn name(&mut self) -> Result<String> {
        let length = self.u64()?;
        let bytes = self.text(length)?;
        if bytes.is_empty() {
            return Err(not_gguf(format!("{} is empty", self.place)));
        }
        // Names are only compared and shown.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn u32(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A text as llama.cpp sees it: up to the first zero.
    fn text(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = self.bytes(length)?;
        bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
        Ok(bytes)
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.has(length)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| self.ends())?];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    fn exact(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.has(bytes.len() as u64)?;
        self.input.read_exact(bytes).map_err(Unread::Io)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        self.has(length)?;
        self.input.seek_relative(length as i64).map_err(Unread::Io)?;
        self.position += length;
        Ok(())
    }

    /// Checks that the file has this many more bytes.
    fn has(&self, more: u64) -> Result<()> {
        if more > self.length.saturating_sub(self.position) { Err(self.ends()) } else { Ok(()) }
    }

    fn ends(&self) -> Unread {
        not_gguf(format!("it ends after {} bytes, inside {}", self.length, self.place))
    }
}

fn not_gguf(what: String) -> Unread {
    Unread::NotGguf(what)
}

/// The number in the first bytes.
fn scalar(kind: u32, bytes: [u8; 8]) -> Value {
    let [a, b, c, d, ..] = bytes;
    match kind {
        0 => Value::Whole(a.into()),
        1 => Value::Whole((a as i8).into()),
        2 => Value::Whole(u16::from_le_bytes([a, b]).into()),
        3 => Value::Whole(i16::from_le_bytes([a, b]).into()),
        4 => Value::Whole(u32::from_le_bytes([a, b, c, d]).into()),
        5 => Value::Whole(i32::from_le_bytes([a, b, c, d]).into()),
        6 => Value::Real(f32::from_le_bytes([a, b, c, d]).into()),
        7 => Value::Flag(a != 0),
        10 => Value::Whole(u64::from_le_bytes(bytes).into()),
        11 => Value::Whole(i64::from_le_bytes(bytes).into()),
        _ => Value::Real(f64::from_le_bytes(bytes)),
    }
}
