//! What the tests of the linked llama.cpp share.
#![allow(dead_code, unreachable_pub)]

use super::plain::Applied;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_sys_2::{LLAMA_FTYPE_ALL_F32, llama_model_quantize, llama_model_quantize_default_params};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub fn apply(sampler: &mut LlamaSampler, candidates: &[(i32, f32)], sorted: bool) -> Applied {
    let data = candidates.iter().map(|&(id, logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
    let mut array = LlamaTokenDataArray::from_iter(data, sorted);
    array.apply_sampler(sampler);
    let plain = |data: &[LlamaTokenData]| data.iter().map(|one| (one.id().0, one.logit())).collect();
    let kept = plain(&array.data);
    // SAFETY: the first `candidates.len()` elements were initialised, and a sampler only permutes and shortens.
    unsafe { array.data.set_len(candidates.len()) };
    Applied { kept, backing: plain(&array.data), sorted: array.sorted, selected: array.selected }
}

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The model inside the Python package.
pub fn tiny_model() -> PathBuf {
    repository().join("python/tokentrie/models/tiny.gguf")
}

/// The same with f32 weights. With f16 weights llama.cpp rounds activations to f16 too, and a batch of another shape
/// rounds some of them the other way: logits then differ by 1e-3, here by 1e-5.
pub fn precise_model() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(concat!(env!("CARGO_CRATE_NAME"), ".gguf"));
        let name = |path: &Path| CString::new(path.to_str().unwrap()).unwrap();
        let (from, to) = (name(&tiny_model()), name(&path));
        // SAFETY: it takes nothing and gives plain values.
        let mut params = unsafe { llama_model_quantize_default_params() };
        params.ftype = LLAMA_FTYPE_ALL_F32;
        params.nthread = 1;
        // SAFETY: two strings that end with a zero and parameters that llama.cpp filled in, all alive during the call.
        let failed = unsafe { llama_model_quantize(from.as_ptr(), to.as_ptr(), &raw const params) };
        assert_eq!(failed, 0);
        path
    };
    PATH.get_or_init(make).clone()
}

/// GGUF files to test with as well, in the folder that `TOKENTRIE_VOCAB_DIR` names.
pub fn vocab_files() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("TOKENTRIE_VOCAB_DIR") else {
        println!("skipped the wide vocabularies: TOKENTRIE_VOCAB_DIR is not set");
        return Vec::new();
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "gguf")).collect()
}

/// Runs a test in a process of its own, where an abort or a leak cannot reach the others. `module` is the test's
/// `module_path!()`.
pub fn in_child(module: &str, name: &str, body: impl FnOnce()) {
    const VARIABLE: &str = "TOKENTRIE_TEST_CHILD";
    // The harness leaves the crate's name out.
    let name = &format!("{}::{name}", module.split_once("::").unwrap().1);
    if std::env::var(VARIABLE).as_ref() == Ok(name) {
        return body();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, name)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(child.status.success(), "{name}: {}\n{}\n{}", child.status, text(&child.stdout), text(&child.stderr));
    assert!(text(&child.stdout).contains("1 passed"), "no test is called {name}");
}
