"""Constraints of server requests: a set by name, as a file, a payload, texts or ids; any spec. Needs no host."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

import tokentrie

KINDS = ("set", "path", "payload", "choices", "sequences", "constraint")
"""Fields by which a request names its set; exactly one of these."""

OPTIONS = ("end_tokens", "after", "descriptor", "prefix", "suffix")

PREFIX = "tokentrie_"
"""Arguments that a protocol passes on only as strings, numbers and lists begin so."""


class RequestError(ValueError, tokentrie.TokenTrieError):
    """Error of a request for a set that does not exist or cannot be made. Other requests go on.

    Example:
        >>> from tokentrie.integrations.vllm import RequestError
        >>> issubclass(RequestError, ValueError)
        True
    """


@dataclass(frozen=True)
class RequestedConstraint:
    """Constraint of a request: a Trie, or another kind over a vocabulary."""

    constraint: Any
    after: str
    vocab: tokentrie.Vocab | int | None = None

    @property
    def trie(self) -> tokentrie.Trie | None:
        """Trie | None: the set, if it is one."""
        return self.constraint if isinstance(self.constraint, tokentrie.Trie) else None

    def check(self, size: int) -> None:
        """Refuses what was made for another model. Cost: O(1), where it was not.

        Args:
            size: number of tokens of the model.

        Raises:
            RequestError: it names the ids.
        """
        trie = self.trie
        if trie is None:
            known = self.vocab if isinstance(self.vocab, int) or self.vocab is None else len(self.vocab)
            if known is not None and known > size:
                raise RequestError(
                    f"tokentrie: the constraint is over {known} tokens, the model has {size}: TOKENTRIE_TOKENIZER must"
                    " name the folder of this model"
                )
            return
        arrays = trie.arrays(verify=False)
        outside = {token for token in trie.end_tokens if token >= size}
        if arrays.max_token >= size:
            outside.update(np.unique(arrays.tokens[arrays.tokens >= size]).tolist())
        if outside:
            shown = ", ".join(map(str, sorted(outside)[:8])) + (" and others" if len(outside) > 8 else "")
            which = f"token id {shown} is" if len(outside) == 1 else f"token ids {shown} are"
            raise RequestError(
                f"tokentrie: {which} outside the vocabulary of {size}: make the set with the tokenizer of this model"
            )


class RequestSets:
    """Makes the sets that requests ask for, and keeps those that were asked for last.

    Args:
        folder: where files with sets are. A request reaches nothing outside it, by whatever path or link; None: no
            files.
        tokenizer: a `tokenizer.json` or a folder with one, for requests with texts; None: they are refused.
        vocab: number of tokens; None: not checked here.
        kept: sets to keep.
        most: most bytes of a payload, texts and ids of one request.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        tokenizer: str | Path | None = None,
        *,
        vocab: int | None = None,
        kept: int = 64,
        most: int = 16 << 20,
    ) -> None:
        self.folder = Path(folder).resolve() if folder else None
        self.tokenizer, self.vocab, self.kept, self.most = tokenizer, vocab, kept, most
        self._sets: OrderedDict[str, Any] = OrderedDict()
        self._texts: tokentrie.Vocab | None = None
        self._lock = Lock()

    @classmethod
    def of_environment(cls, vocab: int | None = None) -> RequestSets:
        """By `TOKENTRIE_SETS`, a folder, and `TOKENTRIE_TOKENIZER`, which all processes of a server share."""
        return cls(os.environ.get("TOKENTRIE_SETS"), os.environ.get("TOKENTRIE_TOKENIZER"), vocab=vocab)

    def asked(self, extra: Mapping[str, Any] | None) -> RequestedConstraint | None:
        """The set of a request with these arguments; None where it asks for none.

        Raises:
            RequestError: the arguments contradict each other, or there is no such set.
        """
        if not asks(extra):
            return None
        given = _arguments(extra)
        unknown = sorted(map(str, set(given) - {*KINDS, *OPTIONS}))
        if unknown:
            raise RequestError(f"tokentrie: no argument {unknown[0]!r}; there are {', '.join((*KINDS, *OPTIONS))}")
        kinds = [kind for kind in KINDS if kind in given]
        if len(kinds) != 1:
            raise RequestError(
                f"tokentrie: one of {', '.join(KINDS)} says which set, not {' and '.join(kinds) or 'none'}"
            )
        after = given.get("after", "stop")
        if after not in ("stop", "free"):
            raise RequestError(f'tokentrie: after must be "stop" or "free", not {after!r}')
        if kinds[0] == "constraint":
            return self._of_spec(given, after)
        try:
            trie = self._trie(kinds[0], given)
            ends = given.get("end_tokens")
            if ends is not None:
                trie = trie.with_end_tokens([ends] if isinstance(ends, int) else list(ends))
        except RequestError:
            raise
        except (tokentrie.TokenTrieError, OSError, TypeError, ValueError, OverflowError) as error:
            raise RequestError(f"tokentrie: {kinds[0]}: {error}") from error
        asked = RequestedConstraint(trie, after)
        if self.vocab is not None:
            asked.check(self.vocab)
        return asked

    def _of_spec(self, given: Mapping[str, Any], after: str) -> RequestedConstraint:
        """The constraint of a spec, given as an object or as JSON. A spec may not name files."""
        beside = sorted(set(given) & set(OPTIONS) - {"after"})
        if beside:
            raise RequestError(f"tokentrie: {beside[0]} does not go with a constraint")
        value = given["constraint"]
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > self.most:
            raise RequestError(f"tokentrie: a constraint of {len(text)} bytes: a request may bring {self.most}")
        key = f"constraint {text}"
        with self._lock:
            if key in self._sets:
                self._sets.move_to_end(key)
                return RequestedConstraint(self._sets[key], after, self._vocab())
        try:
            vocab = self._vocab()
            made = tokentrie.constraint(text, template=self._template() if '"reply"' in text else None)
            tokentrie.Sampler(vocab, made)  # an unusable constraint is refused when the request comes
        except RequestError:
            raise
        except (tokentrie.TokenTrieError, TypeError, ValueError) as error:
            raise RequestError(f"tokentrie: constraint: {error}") from error
        self._keep(key, made)
        return RequestedConstraint(made, after, vocab)

    def _keep(self, key: str, made: Any) -> None:
        with self._lock:
            self._sets[key] = made
            while len(self._sets) > self.kept:
                self._sets.popitem(last=False)

    def _trie(self, kind: str, given: Mapping[str, Any]) -> tokentrie.Trie:
        value = given[kind]
        if kind in ("set", "path"):
            path = self._file(kind, value)
            stamp = path.stat()
            key = f"{path} {stamp.st_mtime_ns} {stamp.st_size} {stamp.st_ino}"
        else:
            # Names, texts or ids: the same ones make the same set.
            key = json.dumps([kind, value, *(given.get(name) for name in ("descriptor", "prefix", "suffix"))])
            if len(key) > self.most:
                raise RequestError(f"tokentrie: {kind} of {len(key)} bytes: a request may bring {self.most}")
        with self._lock:
            if key in self._sets:
                self._sets.move_to_end(key)
                return self._sets[key]
        made = tokentrie.Trie.open(path) if kind in ("set", "path") else self._make_trie(kind, value, given)
        if kind in ("set", "path"):
            made.arrays()  # reads it once: a damaged file is refused here, and not in the middle of a batch
        self._keep(key, made)
        return made

    def _file(self, kind: str, value: Any) -> Path:
        if not isinstance(value, str) or not value:
            raise RequestError(f"tokentrie: {kind} must be a str, not {value!r}")
        if self.folder is None:
            raise RequestError(
                f"tokentrie: {kind} {value!r}: this server has no sets (TOKENTRIE_SETS names their folder)"
            )
        if kind == "set" and (Path(value).name != value or value.startswith(".")):
            raise RequestError(f"tokentrie: set {value!r} is a name, not a path")
        found = (self.folder / (f"{value}.ttrie" if kind == "set" else value)).resolve()
        # Links are followed first, so that the real place of the file is compared.
        if not found.is_relative_to(self.folder) or found.suffix != ".ttrie" or not found.is_file():
            known = sorted(path.stem for path in self.folder.glob("*.ttrie"))[:8]
            raise RequestError(f"tokentrie: unknown {kind} {value!r}: the folder has {', '.join(known) or 'none'}")
        return found

    def _make_trie(self, kind: str, value: Any, given: Mapping[str, Any]) -> tokentrie.Trie:
        if kind == "payload":
            return tokentrie.Trie.from_payload(value, given.get("descriptor"), vocab=self.vocab)
        if kind == "sequences":
            return tokentrie.Trie.from_sequences(value, vocab=self.vocab)
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise RequestError("tokentrie: choices must be a list of str")
        texts = {name: given.get(name, "") for name in ("prefix", "suffix")}
        return tokentrie.Trie.from_strings(self._vocab(), list(value), **texts)

    def _vocab(self) -> tokentrie.Vocab:
        if self._texts is None:
            if not self.tokenizer:
                raise RequestError(
                    "tokentrie: texts and constraints need a tokenizer: TOKENTRIE_TOKENIZER names the model's folder"
                )
            from tokentrie.integrations._shared.require import require

            file = self._beside_tokenizer("tokenizer.json") if Path(self.tokenizer).is_dir() else Path(self.tokenizer)
            self._texts = tokentrie.Vocab.from_tokenizer(require("tokenizers", "vllm").Tokenizer.from_file(str(file)))
        return self._texts

    def _beside_tokenizer(self, name: str) -> Path:
        path = Path(self.tokenizer or "")
        return (path if path.is_dir() else path.parent) / name

    def _template(self) -> tokentrie.ChatTemplate | None:
        """The chat template in the tokenizer's folder, as transformers writes it; None where there is none."""
        if not self.tokenizer:
            return None
        config, text = {}, None
        file = self._beside_tokenizer("tokenizer_config.json")
        if file.is_file():
            config = json.loads(file.read_text(encoding="utf-8"))
            text = config.get("chat_template")
        if isinstance(text, list):  # several, by name
            text = {one.get("name"): one.get("template") for one in text}.get("default")
        file = self._beside_tokenizer("chat_template.jinja")
        if file.is_file():
            text = file.read_text(encoding="utf-8")
        if text is None:
            return None
        markers = (config.get("bos_token"), config.get("eos_token"))
        bos, eos = (one.get("content") if isinstance(one, dict) else one for one in markers)
        return tokentrie.ChatTemplate(text, bos or "", eos or "")


def asks(extra: Mapping[str, Any] | None) -> bool:
    """Returns whether a request names a set or a constraint, even a malformed one: such a request is never ignored."""
    return any(map(_is_ours, extra or ()))


def _is_ours(name: Any) -> bool:
    return isinstance(name, str) and name.lower().replace("_", "").replace("-", "").startswith("tokentrie")


def _arguments(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """`{"tokentrie": ...}` with a name or a dict, or `tokentrie_set` and the like side by side."""
    found: dict[str, Any] = {}
    for name, value in (extra or {}).items():
        if not _is_ours(name):
            continue
        if name == "tokentrie":
            given = {"set": value} if isinstance(value, str) else value
            if not isinstance(given, Mapping):
                raise RequestError(f"tokentrie must be a name or a dict, not {type(value).__name__}")
        elif name.startswith(PREFIX):
            given = {name.removeprefix(PREFIX): value}
        else:
            raise RequestError(
                f"tokentrie: unknown argument {name!r}: it is tokentrie, {PREFIX}{KINDS[0]} and the like"
            )
        twice = sorted(map(str, set(found) & set(given)))
        if twice:
            raise RequestError(f"tokentrie: {twice[0]} is given twice, in tokentrie and as {PREFIX}{twice[0]}")
        found.update(given)
    return found
