"""Byte-level BPE in the form that llama.cpp calls `gpt-2`, trained on the corpus itself.

All bytes are in the vocabulary, so any text round-trips. Merges are learned on words without their leading
space; for frequent words one merge "space + word" is appended at the end. A rare word (a name, a value) is
therefore spelled by the same tokens wherever it stands, and can be copied without knowing it.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from drawn.chat import SPECIALS

SPACE = "Ġ"
VOCABULARY = 2560
SPACED_WORDS = 640
RARE = 12
CASED_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^A-Za-z]+")


def train(texts: list[str]) -> Tokenizer:
    """Train on texts of the corpus; the special tokens come first, then bytes, then merges."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    counts: Counter[str] = Counter()
    for text in texts:
        for special in SPECIALS:
            text = text.replace(special, "\n")
        counts.update(piece for piece, _ in split.pre_tokenize_str(text))
    bare: Counter[str] = Counter()
    for piece, n in counts.items():
        for word in CASED_WORD.findall(piece.removeprefix(SPACE)):
            bare[word] += n
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learner = Tokenizer(models.BPE())
    # Invented words occur once or twice and get no token of their own; the weight of the rest is
    # flattened so that whole words of the lexicon come in before fragments of the most frequent ones.
    learner.train_from_iterator(
        (word for word, n in sorted(bare.items()) if n >= RARE for _ in range(min(int(n**0.5), 40))),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY - len(SPECIALS) - SPACED_WORDS, initial_alphabet=alphabet, show_progress=False
        ),
    )
    return _assemble(json.loads(learner.to_str())["model"]["merges"], counts, alphabet)


def _assemble(learned: list[list[str]], counts: Counter[str], alphabet: list[str]) -> Tokenizer:
    merges = [(left, right) for left, right in learned]
    pieces = [*alphabet, *("".join(m) for m in merges)]
    pieces = list(dict.fromkeys(pieces))
    known = set(pieces)
    spaced = [
        p
        for p, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if p.startswith(SPACE) and p[1:] in known and len(p) > 1 and p[1:].isalpha() and p[1:].islower()
    ]
    room = VOCABULARY - len(SPECIALS) - len(pieces)
    for piece in spaced[:room]:
        merges.append((SPACE, piece[1:]))
        pieces.append(piece)
    return assemble([*SPECIALS, *pieces], merges)


def assemble(tokens: list[str], merges: list[tuple[str, str]]) -> Tokenizer:
    """The tokenizer with these tokens, in the order of their numbers."""
    vocabulary = {t: i for i, t in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIALS])
    return tokenizer
