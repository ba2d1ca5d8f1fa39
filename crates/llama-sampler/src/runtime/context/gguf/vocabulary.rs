//! Preconditions of the tokenizers of llama.cpp, which assert, or throw exceptions that nobody catches
//! (`llama.cpp/src/llama-vocab.cpp`).

use super::{Header, Texts, Value, charsmap};
use crate::runtime::error::RuntimeError;
use std::collections::HashMap;
use trie_text::quote;

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";

/// Number of `LLAMA_TOKEN_TYPE_BYTE` in `llama.h`.
const BYTE: i64 = 6;

impl Header {
    pub(super) fn check_vocabulary(&self) -> Result<(), RuntimeError> {
        let model = self.text(MODEL).unwrap_or_default();
        let Some(Value::Texts(tokens)) = self.metadata.get(TOKENS) else { return Ok(()) };
        if matches!(model, "" | "none" | "no_vocab") {
            return Ok(());
        }
        self.check_distinct(tokens)?;
        match model {
            "llama" => self.check_bytes(tokens),
            "bert" => self.check_no_bytes(),
            "rwkv" => self.check_newline(tokens),
            "t5" => match self.metadata.get(CHARSMAP) {
                Some(Value::Wholes(bytes)) => {
                    // As llama.cpp takes them: of any type of one byte.
                    let bytes: Vec<u8> = bytes.iter().map(|&byte| byte as u8).collect();
                    let wrong = |what| self.refuse(CHARSMAP, &format!("{} bytes", bytes.len()), what);
                    charsmap::check(&bytes).map_err(wrong)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Checks that no two tokens have the same text.
    fn check_distinct(&self, tokens: &Texts) -> Result<(), RuntimeError> {
        let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(tokens.ends.len());
        // llama.cpp gives names to tokens without text.
        let named: Vec<(usize, String)> = (tokens.iter().enumerate())
            .filter(|(_, text)| text.is_empty())
            .map(|(token, _)| (token, format!("[EMPTY_{token}]")))
            .collect();
        let texts = tokens.iter().enumerate().filter(|(_, text)| !text.is_empty());
        for (token, text) in texts.chain(named.iter().map(|(token, name)| (*token, name.as_bytes()))) {
            if let Some(other) = seen.insert(text, token) {
                let text = quote(&String::from_utf8_lossy(text));
                return Err(self.refuse(
                    format!("{TOKENS}[{token}]"),
                    &text,
                    format!("token {other} has the same text"),
                ));
            }
        }
        Ok(())
    }

    /// Checks that `SentencePiece` has a token for each byte, because it spells unknown text byte by byte.
    fn check_bytes(&self, tokens: &Texts) -> Result<(), RuntimeError> {
        let mut missing = [true; 256];
        for text in tokens.iter() {
            if let &[byte] = text {
                missing[usize::from(byte)] = false;
            }
            let digits = text.strip_prefix(b"<0x").and_then(|rest| rest.strip_suffix(b">"));
            // As llama.cpp writes them: with capital letters.
            let digits = digits.filter(|digits| digits.len() == 2 && !digits.iter().any(u8::is_ascii_lowercase));
            let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
            if let Some(byte) = byte {
                missing[usize::from(byte)] = false;
            }
        }
        match missing.iter().position(|&missing| missing) {
            Some(byte) => {
                let count = missing.iter().filter(|&&missing| missing).count();
                let what = format!(
                    "texts with bytes that have no token cannot be tokenized: {count} have none, such as <0x{byte:02X}>"
                );
                Err(self.refuse(TOKENS, &format!("a list of {}", tokens.ends.len()), what))
            }
            None => Ok(()),
        }
    }

    /// Checks that `WordPiece` has no tokens for bytes.
    fn check_no_bytes(&self) -> Result<(), RuntimeError> {
        let Some(Value::Wholes(types)) = self.metadata.get(TYPES) else { return Ok(()) };
        match types.iter().position(|&kind| kind == BYTE) {
            Some(token) => {
                let what = "the tokenizer \"bert\" has no tokens of the type byte";
                Err(self.refuse(format!("{TYPES}[{token}]"), &BYTE, what))
            }
            None => Ok(()),
        }
    }

    /// Checks that RWKV's tokenizer has a token for a newline.
    fn check_newline(&self, tokens: &Texts) -> Result<(), RuntimeError> {
        let newline = |text: &[u8]| matches!(text, b"\n" | b"\\n" | b"\\x0a" | b"\\x0A");
        if tokens.iter().any(newline) {
            return Ok(());
        }
        Err(self.refuse(TOKENS, &format!("a list of {}", tokens.ends.len()), "none of them is a newline"))
    }
}
