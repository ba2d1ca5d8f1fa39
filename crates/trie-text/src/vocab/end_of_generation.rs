//! End-of-generation tokens, by their names, in vocabularies that do not declare them.

use std::collections::HashMap;
use trie_core::TokenId;

/// Names from `llama_vocab::impl::load` in `llama.cpp/src/llama-vocab.cpp`: ends of text, turn and message, and the
/// separators between files, which llama.cpp counts among them.
const NAMES: [&str; 33] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// The tokens that end the output, identified by the names that llama.cpp knows; ascending.
///
/// ```
/// use trie_core::TokenId;
/// use trie_text::end_of_generation_by_name;
///
/// let names = ["<s>", "</s>", "<|im_end|>"].into_iter().zip((0..).filter_map(TokenId::new));
/// assert_eq!(end_of_generation_by_name(names).iter().map(|token| token.get()).collect::<Vec<_>>(), [1, 2]);
/// ```
pub fn end_of_generation_by_name<'n>(names: impl IntoIterator<Item = (&'n str, TokenId)>) -> Vec<TokenId> {
    let mut found: HashMap<&str, TokenId> = names.into_iter().filter(|(name, _)| NAMES.contains(name)).collect();
    let has = |name| found.contains_key(name);
    // Where a turn has ends of its own, these two are something else; as in llama.cpp.
    let turns = (has("<|return|>") && has("<|call|>")) || (has("<|flush|>") && (has("<|call|>") || has("<|calls|>")));
    let tools = has("<|tool_response>");
    found.retain(|&name, _| !(turns && name == "<|end|>" || tools && name == "</s>"));
    let mut tokens: Vec<TokenId> = found.into_values().collect();
    tokens.sort_unstable();
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_ids(names: &[&str]) -> Vec<u32> {
        let tokens = names.iter().enumerate().map(|(id, &name)| (name, TokenId::new(id as u32).unwrap()));
        end_of_generation_by_name(tokens).into_iter().map(TokenId::get).collect()
    }

    #[test]
    fn names_that_end_the_output() {
        assert_eq!(find_ids(&["a", "</s>", "<|im_start|>", "<|im_end|>", "s"]), [1, 3]);
        assert_eq!(find_ids(&["<|end|>", "<|return|>"]), [0, 1]);
        assert_eq!(find_ids(&["<|end|>", "<|return|>", "<|call|>"]), [1, 2]);
        assert_eq!(find_ids(&["</s>", "<|tool_response>"]), [1]);
        assert!(find_ids(&["a"]).is_empty());
    }
}
