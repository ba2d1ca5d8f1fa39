"""Keeps the names of control tokens in foreign text from being read as those tokens."""

from __future__ import annotations

import re

import tokentrie

# Half a surrogate pair: no text has it.
MARK = "\ud800"


class Guard:
    """Puts a mark inside each name; the text is then tokenized in the parts between marks, where no name is whole."""

    def __init__(self, vocab: tokentrie.Vocab) -> None:
        self._vocab = vocab
        names = {vocab[token].decode(errors="replace") for token in vocab.control} - {""}
        # Looking ahead finds overlapping names, too.
        self._begins = re.compile(f"(?=(?:{'|'.join(map(re.escape, sorted(names)))}))(.)", re.DOTALL) if names else None

    def protect(self, text: str) -> str:
        """Marks the names in `text`, which must have no halves of surrogate pairs."""
        return self._begins.sub(rf"\1{MARK}", text) if self._begins else text

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a prompt: names outside protected text are control tokens."""
        parts = enumerate(text.split(MARK))
        return [token for at, part in parts for token in self._vocab.tokenize(part, not at, parse_special=True)]
