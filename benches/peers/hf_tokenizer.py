"""The tokenizer of a GGUF as one of Hugging Face's `tokenizers`: the same tokens and merges, other code.

For plain text only: control tokens are left out. The patterns are those of the models' published tokenizer.json files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {
    "gpt-2": GPT2,
    "qwen2": CL100K.replace("DIGITS", ""),
    "llama-bpe": CL100K.replace("DIGITS", "{1,3}"),
}


def load(path: Path) -> Any:
    """A `tokenizers.Tokenizer`.

    Raises ImportError without that package, NotImplementedError for a vocabulary of another kind.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    fields = gguf.GGUFReader(path).fields
    kind, tokens = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("model", "tokens"))
    vocab = {token: number for number, token in enumerate(tokens)}
    if kind == "gpt2":
        family = fields["tokenizer.ggml.pre"].contents()
        if family not in PATTERNS:
            raise NotImplementedError(f"the pre-tokenizer {family!r} has no pattern here")
        made = Tokenizer(models.BPE(vocab, _merges(fields), ignore_merges=family == "llama-bpe"))
        split = pre_tokenizers.Split(Regex(PATTERNS[family]), "isolated")
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        made.decoder = decoders.ByteLevel()
        return made
    if kind not in ("gemma4", "llama"):
        raise NotImplementedError(f"a tokenizer of the kind {kind!r} is not made here")
    merges = _merges(fields) if kind == "gemma4" else _merges_by_score(vocab, fields)
    made = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    spaces = normalizers.Replace(" ", "▁")
    made.normalizer = spaces if kind == "gemma4" else normalizers.Sequence([normalizers.Prepend("▁"), spaces])
    return made


def _merges(fields: dict[str, Any]) -> list[tuple[str, str]]:
    return [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"].contents()]


def _merges_by_score(vocab: dict[str, int], fields: dict[str, Any]) -> list[tuple[str, str]]:
    """SentencePiece has scores in place of merges: any two tokens that make a third, the best third first."""
    scores, merges = fields["tokenizer.ggml.scores"].contents(), []
    for token, number in vocab.items():
        halves = [(token[:at], token[at:]) for at in range(1, len(token))]
        known = [(left, right) for left, right in halves if left in vocab and right in vocab]
        merges += [(-scores[number], vocab[left], vocab[right], (left, right)) for left, right in known]
    return [pair for *_, pair in sorted(merges)]
