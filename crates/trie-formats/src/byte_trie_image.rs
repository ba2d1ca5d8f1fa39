//! A byte trie as one buffer of bytes and back; `docs/file-format.md` describes it.

use trie_core::{ByteTrie, TokenId};

/// The first byte, above 127, and the line ends reveal transfers that change such bytes.
const MAGIC: [u8; 8] = *b"\x89btrie\r\n";
const VERSION: u32 = 1;
const HEADER: usize = 24;
/// Position of the checksum, which does not cover itself.
const CHECKSUM: usize = 20;

/// Reasons why bytes are not a valid byte trie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ByteTrieError {
    /// They do not begin as one does.
    #[error("not a byte trie: it begins with {found:02x?}")]
    NotAByteTrie {
        /// The first bytes found.
        found: Vec<u8>,
    },
    /// Another version of the format, probably a newer one.
    #[error("version {found} of the format: this program reads version {known}")]
    Version {
        /// Format version that was found.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// Too few or too many of them.
    #[error("{bytes} bytes, but {need} are needed")]
    Length {
        /// Number of bytes given.
        bytes: usize,
        /// Number of bytes required: the least number, if the header is cut off.
        need: u64,
    },
    /// An array with invalid contents.
    #[error("damaged: {part}: {reason}")]
    Damaged {
        /// Array, and position in it.
        part: String,
        /// Description of the defect.
        reason: String,
    },
}

trie_core::error_kind!(ByteTrieError, File);

fn damage_error(array: &str, item: usize, reason: impl Into<String>) -> ByteTrieError {
    ByteTrieError::Damaged { part: format!("{array}, item {item}"), reason: reason.into() }
}

/// Conversion of a [`ByteTrie`] to bytes and back.
pub trait ByteTrieImage: Sized {
    /// The trie as little-endian bytes: 24, then nine for each node and four for each token, and four more. Equal
    /// tries give equal bytes.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads the bytes of [`ByteTrieImage::to_bytes`]. Everything is checked: every accepted trie is one that
    /// [`ByteTrie::new`] can make. `O(length)`.
    ///
    /// # Errors
    /// See [`ByteTrieError`].
    fn from_bytes(image: &[u8]) -> Result<Self, ByteTrieError>;
}

impl ByteTrieImage for ByteTrie {
    fn to_bytes(&self) -> Vec<u8> {
        let (bytes, first_child, first_token, tokens) = self.parts();
        let mut out = Vec::with_capacity(HEADER + self.nbytes());
        out.extend(MAGIC);
        for number in [VERSION, bytes.len() as u32, tokens.len() as u32, 0] {
            out.extend(number.to_le_bytes());
        }
        let tokens = tokens.iter().map(|token| token.get());
        for number in first_child.iter().chain(first_token).copied().chain(tokens) {
            out.extend(number.to_le_bytes());
        }
        out.extend(bytes);
        let sum = checksum(&out);
        out[CHECKSUM..HEADER].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn from_bytes(image: &[u8]) -> Result<Self, ByteTrieError> {
        let magic = &image[..image.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(ByteTrieError::NotAByteTrie { found: magic.to_vec() });
        }
        let (Some(header), bytes) = (image.get(..HEADER), image.len()) else {
            return Err(ByteTrieError::Length { bytes: image.len(), need: HEADER as u64 });
        };
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (version, nodes, tokens, sum) = (word(8), word(12), word(16), word(CHECKSUM));
        if version != VERSION {
            return Err(ByteTrieError::Version { found: version, known: VERSION });
        }
        let need = HEADER as u64 + 4 * (2 * u64::from(nodes) + 1 + u64::from(tokens)) + u64::from(nodes);
        if bytes as u64 != need {
            return Err(ByteTrieError::Length { bytes, need });
        }
        let found = checksum(image);
        if found != sum {
            return Err(ByteTrieError::Damaged {
                part: "checksum".to_owned(),
                reason: format!("{found:#010x}, not {sum:#010x}"),
            });
        }
        // The arrays are as long as the buffer says, so these fit and nothing is left over.
        let (nodes, tokens) = (nodes as usize, tokens as usize);
        let mut words = image[HEADER..].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let first_child: Vec<u32> = words.by_ref().take(nodes + 1).collect();
        let first_token: Vec<u32> = words.by_ref().take(nodes).collect();
        let id = |(item, token)| {
            TokenId::new(token).ok_or_else(|| damage_error("tokens", item, format!("{token} is not a token id")))
        };
        let tokens: Vec<TokenId> = words.take(tokens).enumerate().map(id).collect::<Result<_, _>>()?;
        let bytes = image[image.len() - nodes..].to_vec();
        let read = Arrays { bytes, first_child, first_token, tokens };
        read.check_nodes()?;
        read.check_tokens()?;
        let Arrays { bytes, first_child, first_token, tokens } = read;
        Ok(Self::from_parts(bytes, first_child, first_token, tokens))
    }
}

/// The arrays of a byte trie that was read, before they are checked.
struct Arrays {
    bytes: Vec<u8>,
    first_child: Vec<u32>,
    first_token: Vec<u32>,
    tokens: Vec<TokenId>,
}

impl Arrays {
    /// Every node but the root is the child of one node before it, and siblings ascend.
    fn check_nodes(&self) -> Result<(), ByteTrieError> {
        let nodes = self.bytes.len();
        if self.bytes.first() != Some(&0) {
            return Err(damage_error("bytes", 0, "there is a root, and its byte is 0"));
        }
        let mut before = 1;
        for (node, &first) in self.first_child.iter().enumerate() {
            let first = first as usize;
            if first < before || first > nodes || (first <= node && node < nodes) {
                return Err(damage_error("first_child", node, format!("{first} after {before}, of {nodes} nodes")));
            }
            before = first;
        }
        if self.first_child[0] != 1 || before != nodes {
            return Err(damage_error("first_child", nodes, "the nodes are not numbered from the root to the last"));
        }
        for family in self.first_child.windows(2) {
            let (begin, end) = (family[0] as usize, family[1] as usize);
            if let Some(at) = self.bytes[begin..end].windows(2).position(|pair| pair[0] >= pair[1]) {
                return Err(damage_error("bytes", begin + at + 1, "siblings do not ascend"));
            }
        }
        Ok(())
    }

    /// Each node has the tokens at or below it, at least one; those that end at it come first and ascend.
    fn check_tokens(&self) -> Result<(), ByteTrieError> {
        let mut ends = vec![self.tokens.len() as u32; self.bytes.len()];
        if self.first_token[0] != 0 {
            return Err(damage_error("first_token", 0, "the root has all tokens"));
        }
        for node in 0..self.bytes.len() {
            let (first, end) = (self.first_token[node], ends[node]);
            // Only a trie without tokens has a node without.
            if first >= end && node > 0 || first > end {
                return Err(damage_error("first_token", node, format!("tokens {first}..{end}")));
            }
            let children = self.first_child[node] as usize..self.first_child[node + 1] as usize;
            let mut own = first..end;
            for child in children.clone() {
                let begin = self.first_token[child];
                if begin < first || begin > end {
                    return Err(damage_error(
                        "first_token",
                        child,
                        format!("{begin} is not in {first}..{end} of node {node}"),
                    ));
                }
                if child == children.start {
                    own.end = begin;
                } else {
                    ends[child - 1] = begin;
                }
                ends[child] = end;
            }
            let own = &self.tokens[own.start as usize..own.end as usize];
            if let Some(at) = own.windows(2).position(|pair| pair[0] > pair[1]) {
                return Err(damage_error("tokens", first as usize + at + 1, "tokens of the same bytes do not ascend"));
            }
        }
        Ok(())
    }
}

fn checksum(image: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&image[..CHECKSUM]);
    sum.update(&image[HEADER..]);
    sum.finalize()
}
