//! Vocabularies of GGUF files, read without llama.cpp: the bytes of each token.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The files of the folder that `TOKENTRIE_VOCAB_DIR` names.
pub fn files() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("TOKENTRIE_VOCAB_DIR").filter(|name| !name.is_empty()) else {
        eprintln!("SKIPPED the wide vocabularies: TOKENTRIE_VOCAB_DIR is not set");
        return Vec::new();
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "gguf")).collect();
    files.sort();
    files
}

struct Reader<'b>(&'b [u8]);

enum Value {
    Text(Vec<u8>),
    Texts(Vec<Vec<u8>>),
    Numbers(Vec<i32>),
    Other,
}

impl Reader<'_> {
    fn take(&mut self, n: usize) -> &[u8] {
        let (taken, left) = self.0.split_at(n);
        self.0 = left;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> usize {
        u64::from_le_bytes(self.take(8).try_into().unwrap()) as usize
    }

    fn text(&mut self) -> Vec<u8> {
        let n = self.u64();
        self.take(n).to_vec()
    }

    fn value(&mut self, kind: u32) -> Value {
        match kind {
            8 => return Value::Text(self.text()),
            9 => {
                let (of, n) = (self.u32(), self.u64());
                return match of {
                    8 => Value::Texts((0..n).map(|_| self.text()).collect()),
                    4 | 5 => Value::Numbers((0..n).map(|_| self.u32() as i32).collect()),
                    _ => (0..n).map(|_| self.value(of)).last().unwrap_or(Value::Other),
                };
            }
            0 | 1 | 7 => _ = self.take(1),
            2 | 3 => _ = self.take(2),
            4..=6 => _ = self.take(4),
            10..=12 => _ = self.take(8),
            other => panic!("kind {other} of a value"),
        }
        Value::Other
    }
}

/// Bytes for which byte-level vocabularies write other characters.
fn of_char() -> HashMap<char, u8> {
    let plain = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut others = 256u32..;
    let char_of =
        |byte: u8| if plain(byte) { char::from(byte) } else { char::from_u32(others.next().unwrap()).unwrap() };
    (0..=255u8).map(char_of).collect::<Vec<_>>().into_iter().zip(0..=255).collect()
}

/// The bytes of each token; none for what is no text.
pub fn pieces(path: &Path) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let mut reader = Reader(&file);
    assert_eq!(reader.take(4), b"GGUF");
    let _version = reader.u32();
    let (_tensors, entries) = (reader.u64(), reader.u64());
    let mut values = HashMap::new();
    for _ in 0..entries {
        let (name, kind) = (String::from_utf8(reader.text()).unwrap(), reader.u32());
        values.insert(name, reader.value(kind));
    }
    let Some(Value::Text(model)) = values.get("tokenizer.ggml.model") else { panic!("no tokenizer") };
    let Some(Value::Texts(tokens)) = values.get("tokenizer.ggml.tokens") else { panic!("no tokens") };
    let Some(Value::Numbers(kinds)) = values.get("tokenizer.ggml.token_type") else { panic!("no kinds") };
    let of_char = of_char();
    let piece = |(token, &kind): (&Vec<u8>, &i32)| {
        let text = std::str::from_utf8(token).unwrap_or_default();
        match kind {
            6 => vec![u8::from_str_radix(&text[3..5], 16).unwrap()],
            1 if model == b"gpt2" => text.chars().map(|char| of_char[&char]).collect(),
            1 => text.replace('\u{2581}', " ").into_bytes(),
            4 => token.clone(),
            _ => Vec::new(),
        }
    };
    tokens.iter().zip(kinds).map(piece).collect()
}
