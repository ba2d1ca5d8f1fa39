//! Vocabularies and model files, good and bad.

use crate::common::{id, in_child, tiny_model, vocab_files};
use llama_sampler::{Model, ModelOptions, RuntimeError, vocab_from_gguf};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use trie_text::VocabError;

fn model() -> Model {
    Model::load(tiny_model(), ModelOptions::default()).unwrap()
}

#[test]
fn text_to_tokens_and_back() {
    let vocab = vocab_from_gguf(tiny_model()).unwrap();
    for text in ["", "a", "The quick brown fox", "  two  spaces ", "naïve Ünïcödé 😀 漢字", "a\0b\n\t\"'"] {
        let tokens = vocab.tokenize(text, false, false).unwrap();
        assert_eq!(vocab.detokenize(&tokens).unwrap(), text.as_bytes(), "{text:?}");
        assert_eq!(vocab.join(&tokens).unwrap(), text.as_bytes(), "{text:?}");
    }
    assert!(!vocab.end_of_generation().is_empty());
    let end = vocab.end_of_generation()[0];
    assert!(vocab.is_end_of_generation(end) && vocab.control().contains(&end));
    let name = String::from_utf8(vocab.piece(end).unwrap().to_vec()).unwrap();
    assert_eq!(vocab.tokenize(&name, false, true).unwrap(), [end]);
    assert!(!vocab.tokenize(&name, false, false).unwrap().contains(&end), "plain text makes no control token");
    assert_eq!(vocab.fingerprint(), model().vocab().fingerprint());
    assert_eq!(vocab.piece(id(vocab.len() as u32)), None);
    let outside = vocab.detokenize(&[id(0), id(1 << 30)]).unwrap_err();
    assert!(matches!(outside, VocabError::OutsideVocabulary { position: 1, .. }), "{outside}");
    assert!(vocab.join(&[id(1 << 30)]).is_err());
}

#[test]
fn wide_vocabularies() {
    for path in vocab_files() {
        let vocab = vocab_from_gguf(&path).unwrap();
        let longest =
            (0..vocab.len() as u32).filter_map(|token| vocab.piece(id(token))).map(<[u8]>::len).max().unwrap();
        println!("{}: {} tokens, longest piece {longest} bytes", path.display(), vocab.len());
        assert!(longest > 10);
        for text in ["get_weather", "Straße 😀", " leading"] {
            let tokens = vocab.tokenize(text, false, false).unwrap();
            assert_eq!(vocab.detokenize(&tokens).unwrap(), text.as_bytes(), "{} {text:?}", path.display());
        }
        let error = Model::load(&path, ModelOptions::default()).unwrap_err();
        assert!(matches!(error, RuntimeError::VocabularyOnly { .. }), "{error}");
    }
}

/// A file of these bytes, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tokentrie-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn refused(path: &Path) -> String {
    let vocab = vocab_from_gguf(path).unwrap_err().to_string();
    let model = Model::load(path, ModelOptions::default()).unwrap_err().to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(vocab.contains(name) && model.contains(name), "{vocab} | {model}");
    model
}

#[test]
fn files_that_are_no_models() {
    assert!(refused(Path::new("/nowhere/model.gguf")).contains("No such file"));
    assert!(refused(&std::env::temp_dir()).contains("folder"));
    for (name, bytes, expected) in [
        ("empty.gguf", &b""[..], "starts with \"\""),
        ("text.gguf", b"Hello, world, this is no model", "\"Hell\""),
        ("magic.gguf", b"GGUF", "ends after 4 bytes"),
        ("old.gguf", b"GGUF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "version is 1"),
        ("new.gguf", b"GGUF\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "version is 99"),
        ("big.gguf", b"GGUF\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "big-endian"),
        ("short.gguf", b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0", "ends after 18 bytes"),
    ] {
        let file = Scratch::new(name, bytes);
        let message = refused(&file.0);
        assert!(message.contains(expected), "{message}");
    }
    // Nothing but a header: a vocabulary without tokens.
    let file = Scratch::new("none.gguf", b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    refused(&file.0);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::env::temp_dir().join(std::ffi::OsStr::from_bytes(b"tokentrie-\xff.gguf"));
        std::fs::copy(tiny_model(), &name).unwrap();
        let error = Model::load(&name, ModelOptions::default()).unwrap_err();
        std::fs::remove_file(&name).unwrap();
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}

/// The tiny model with some of its bytes replaced: `old` occurs once and is as long as `new`.
fn patched(name: &str, old: &[u8], new: &[u8]) -> Scratch {
    let mut bytes = std::fs::read(tiny_model()).unwrap();
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    bytes[at..at + new.len()].copy_from_slice(new);
    Scratch::new(name, &bytes)
}

#[test]
fn files_without_weights_or_without_a_vocabulary() {
    in_child(module_path!(), "files_without_weights_or_without_a_vocabulary", || {
        let header = &std::fs::read(tiny_model()).unwrap()[..16];
        let file = patched("vocabulary.gguf", header, &[&header[..8], &[0; 8]].concat());
        let error = Model::load(&file.0, ModelOptions::default()).unwrap_err();
        assert!(matches!(error, RuntimeError::VocabularyOnly { .. }), "{error}");
        assert_eq!(vocab_from_gguf(&file.0).unwrap().fingerprint(), model().vocab().fingerprint());

        let file = patched("none.gguf", b"\x04\0\0\0\0\0\0\0gpt2", b"\x04\0\0\0\0\0\0\0none");
        assert!(refused(&file.0).contains("holds no vocabulary"));
    });
}

#[test]
fn a_special_token_that_the_tokenizer_adds_but_the_file_does_not_define() {
    const FALSE: &[u8] = b"\x07\0\0\0\0";
    const TRUE: &[u8] = b"\x07\0\0\0\x01";
    in_child(module_path!(), "a_special_token_that_the_tokenizer_adds_but_the_file_does_not_define", || {
        let (old, new) = ([b"add_eos_token", FALSE].concat(), [b"add_sep_token", TRUE].concat());
        let file = patched("separator.gguf", &old, &new);
        let vocab = vocab_from_gguf(&file.0).unwrap();
        let error = vocab.tokenize("text", true, false).unwrap_err();
        assert_eq!(error.to_string(), "the tokenizer: it adds a separator token, but the model file defines none");
        assert!(!vocab.tokenize("text", false, false).unwrap().is_empty());
    });
}

/// What llama.cpp asserts; `tests/model/files/test_hostile_gguf.py` has all of it.
#[test]
fn values_that_llama_cpp_takes_for_granted() {
    let (old, new) = (b"block_count\x04\0\0\0\x05", b"block_count\x04\0\0\0\0");
    let file = patched("layers.gguf", old, new);
    let error = Model::load(&file.0, ModelOptions::default()).unwrap_err();
    let RuntimeError::Metadata { path, key, value, .. } = &error else { panic!("{error}") };
    assert_eq!((path, key.as_str(), value.as_str()), (&file.0, "llama.block_count", "0"));
    assert!(error.to_string().ends_with("llama.block_count is 0: it must be in 1..=512"), "{error}");
    // A vocabulary does not need it.
    assert_eq!(vocab_from_gguf(&file.0).unwrap().fingerprint(), model().vocab().fingerprint());
}

#[test]
fn truncated_and_damaged_files() {
    in_child(module_path!(), "truncated_and_damaged_files", || {
        let whole = std::fs::read(tiny_model()).unwrap();
        let cuts =
            (0..60).map(|n| 24 + n * n * n).chain((1..20).map(|n| whole.len() * n / 20)).chain([whole.len() - 1]);
        for cut in cuts.filter(|&cut| cut < whole.len()) {
            let file = Scratch::new("cut.gguf", &whole[..cut]);
            let error = Model::load(&file.0, ModelOptions::default()).unwrap_err();
            let of_a_kind = matches!(error, RuntimeError::Load { .. } | RuntimeError::NotGguf { .. });
            assert!(of_a_kind, "cut at {cut}: {error}");
            assert!(!error.to_string().contains("null result"), "cut at {cut}: no reason in {error}");
        }
        // Huge counts where the header has small ones.
        for at in [8, 16] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].fill(0x7f);
            let file = Scratch::new("counts.gguf", &bytes);
            let error = Model::load(&file.0, ModelOptions::default()).unwrap_err();
            assert!(matches!(error, RuntimeError::NotGguf { .. }), "{error}");
        }
    });
}

#[test]
fn loading_reports_progress_and_can_be_stopped() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let progress = move |share: f32| {
        assert!((0.0..=1.0).contains(&share));
        counted.fetch_add(1, Ordering::Relaxed);
        true
    };
    Model::load(tiny_model(), ModelOptions::default().with_progress(progress)).unwrap();
    assert!(calls.load(Ordering::Relaxed) > 1);
    let stops = ModelOptions::default().with_progress(|_| false);
    assert!(matches!(Model::load(tiny_model(), stops), Err(RuntimeError::Stopped { .. })));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let panics = ModelOptions::default().with_progress(|_| panic!("in a callback"));
    let error = Model::load(tiny_model(), panics).unwrap_err();
    std::panic::set_hook(hook);
    assert!(matches!(error, RuntimeError::Stopped { .. }), "{error}");
}
