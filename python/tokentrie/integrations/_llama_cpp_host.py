"""Interface of `llama_cpp` to llama-cpp-python and the llama.cpp that it has loaded."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import tokentrie
from tokentrie._native import _host_vocab, _into_chain
from tokentrie.integrations._shared.require import require

TABLE = (
    *("name", "accept", "apply", "reset", "clone", "free"),
    *("backend_init", "backend_accept", "backend_apply", "backend_set_input"),
    *("backend_reset", "copy_state"),
)
"""The fields of llama.cpp's table of callbacks, in the order in which versions added them."""
VERSIONS = (6, 10, 12)
"""Number of callbacks in the versions that were looked at. We set the first six, and zeroes follow."""
LAYOUT = {
    "llama_token_data": ({"id": 0, "logit": 4, "p": 8}, 12),
    "llama_token_data_array": ({"data": 0, "size": 8, "selected": 16, "sorted": 24}, 32),
    "llama_sampler": ({"iface": 0, "ctx": 8}, 16),
}
"""Offsets of fields and sizes of what both sides read and write."""
UNKNOWN, UNUSED, CONTROL, BYTE = 1 << 0, 1 << 1, 1 << 3, 1 << 5
NO_VOCABULARY = 0

_proved: dict[Any, int] = {}
_vocabularies: weakref.WeakKeyDictionary[Any, tokentrie.Vocab] = weakref.WeakKeyDictionary()


def lib() -> Any:
    """The C functions of its llama.cpp."""
    return require("llama_cpp.llama_cpp", "llama-cpp-python")


def internals() -> Any:
    """Its classes over chains and models."""
    return require("llama_cpp._internals", "llama-cpp-python")


def version() -> str:
    """Returns the version for messages."""
    package = require("llama_cpp", "llama-cpp-python")
    named = getattr(lib(), "llama_version", None)
    of = f" with llama.cpp {named().decode()}" if named else ""
    return f"llama-cpp-python {getattr(package, '__version__', '?')}{of}"


def sampler_init() -> int:
    """The address of `llama_sampler_init`, once its library is known to be laid out as our callbacks are.

    Raises:
        ModelError: it is not, or this cannot be told.
    """
    library = lib()
    if library not in _proved:
        check_layout(library)
        address = ctypes.cast(library.llama_sampler_init, ctypes.c_void_p).value or 0
        _prove(library, address)
        _proved[library] = address
    return _proved[library]


def check_layout(library: Any) -> None:
    """Compares the types that llama-cpp-python declares for its llama.cpp with ours.

    Raises:
        ModelError: something differs or is missing.
    """
    fields = tuple(name for name, _ in getattr(getattr(library, "llama_sampler_i", None), "_fields_", ()))
    if len(fields) not in VERSIONS or fields != TABLE[: len(fields)]:
        _refuse(f"its table of callbacks has the fields {', '.join(fields) or 'of no known version'}")
    for name, (offsets, size) in LAYOUT.items():
        declared: Any = getattr(library, name, None)
        found = {field: getattr(declared, field).offset for field, _ in getattr(declared, "_fields_", ())}
        if found != offsets or ctypes.sizeof(declared) != size:
            _refuse(f"its {name} is laid out as {found}")
    wanted = ("init", "name", "apply", "free", "chain_add", "chain_n", "chain_remove")
    if missing := [name for name in wanted if not hasattr(library, f"llama_sampler_{name}")]:
        _refuse(f"it has no llama_sampler_{missing[0]}")


def _prove(library: Any, address: int) -> None:
    """Lets that library call our callbacks once, before a model depends on them."""
    sampler = tokentrie.Sampler(4, tokentrie.Trie.from_sequences([[2]]))
    made, _ = _into_chain(sampler, "greedy", address)
    raw = ctypes.cast(made, library.llama_sampler_p_ctypes)
    data = (library.llama_token_data * 4)(*((token, float(-token), 0.0) for token in range(4)))
    array = library.llama_token_data_array(data, 4, -1, False)
    named = library.llama_sampler_name(raw)
    library.llama_sampler_apply(raw, ctypes.byref(array))
    library.llama_sampler_free(raw)
    found = (named, array.size, array.data[0].id, array.selected)
    if found != (b"token-trie", 1, 2, 0):
        _refuse(f"its samplers do not call ours as llama.h says: {found}")


def _refuse(problem: str) -> None:
    hint = "use TokenTrieLogitsProcessor, which needs less"
    raise tokentrie.errors.ModelError(f"{version()} is unknown: {problem}; {hint}")


def _model(llm: Any) -> Any:
    """Its wrapper over a `llama_model`, which is open."""
    if not isinstance(llm, require("llama_cpp", "llama-cpp-python").Llama):
        raise TypeError(f"llm must be a llama_cpp.Llama, not {type(llm).__name__}")
    model = getattr(llm, "_model", None)
    if model is None or not model.model:
        raise tokentrie.errors.ModelError("the Llama is closed")
    return model


def size(llm: Any) -> int:
    """Returns the number of tokens in the vocabulary."""
    return int(lib().llama_vocab_n_tokens(_model(llm).vocab))


def vocab(llm: Any) -> tokentrie.Vocab:
    """The vocabulary of a model, read once."""
    model = _model(llm)
    found = _vocabularies.get(llm)
    if found is None:
        found = _vocabularies[llm] = _read(model)
    return found


def _read(model: Any) -> tokentrie.Vocab:
    library, vocab = lib(), model.vocab
    # Every call about a vocabulary of this type ends the process.
    if library.llama_vocab_type(vocab) == NO_VOCABULARY:
        raise tokentrie.errors.VocabularyError("the model has no vocabulary")
    tokens, eog = [], []
    for token in range(library.llama_vocab_n_tokens(vocab)):
        tokens.append((_piece(library, vocab, token), _kind(library, vocab, token)))
        if library.llama_vocab_is_eog(vocab, token):
            eog.append(token)
    return _host_vocab(tokens, eog, Tokenizer(model))


def _piece(library: Any, vocab: Any, token: int) -> bytes:
    """The bytes of a token of any length; those of a control token are its name."""
    room = 64
    while True:
        buffer = ctypes.create_string_buffer(room)
        length = library.llama_token_to_piece(vocab, token, buffer, room, 0, True)
        if length >= 0:
            return buffer.raw[:length]
        room = -length


def _kind(library: Any, vocab: Any, token: int) -> str:
    """As `Vocab.from_gguf` calls it."""
    attributes = library.llama_vocab_get_attr(vocab, token)
    # The tokenizer reads the name of the unknown token as it reads those of control tokens.
    if attributes & UNKNOWN:
        return "unknown"
    if library.llama_vocab_is_control(vocab, token):
        return "control"
    if attributes & UNUSED:
        return "unused"
    return "byte" if attributes & BYTE else "text"


class Tokenizer:
    """Tokenises through the functions of a loaded llama.cpp."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def tokenize(self, text: str, add_special: bool, parse_special: bool) -> list[int]:
        """The ids of a text."""
        library, vocab = lib(), self._vocab()
        if add_special:
            # llama.cpp ends the process where a token that it is told to add does not exist.
            for name, told in (("bos", "bos"), ("eos", "eos"), ("sep", "sep")):
                asked = getattr(library, f"llama_vocab_get_add_{told}", None)
                if asked and asked(vocab) and getattr(library, f"llama_vocab_{name}")(vocab) < 0:
                    raise ValueError(f"the model adds a {name} token, but defines none")
        content = text.encode()
        room = len(content) + 8
        while True:
            ids = (library.llama_token * room)()
            found = library.llama_tokenize(vocab, content, len(content), ids, room, add_special, parse_special)
            if found >= 0:
                return list(ids[:found])
            room = -found

    def detokenize(self, tokens: list[int]) -> bytes:
        """The bytes of a whole text."""
        library, vocab = lib(), self._vocab()
        ids = (library.llama_token * len(tokens))(*tokens)
        room = 8 * len(tokens) + 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            length = library.llama_detokenize(vocab, ids, len(tokens), buffer, room, False, True)
            if length >= 0:
                return buffer.raw[:length]
            room = -length

    def _vocab(self) -> Any:
        if not self._model.model:
            raise tokentrie.errors.ModelError("the Llama that this vocabulary belongs to is closed")
        return self._model.vocab
