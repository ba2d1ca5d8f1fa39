"""llama.cpp: its grammar sampler, through llama-cpp-python's bindings."""

from __future__ import annotations

import ctypes
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from gguf import GGUFWriter

from loop import Clock, Engine, RefusedError, bits, serve
from reference.notation import gbnf
from reference.vocabulary import byte_characters

NORMAL, CONTROL = 1, 3


class LlamaCpp(Engine):
    name = "llama.cpp"
    version = metadata.version("llama-cpp-python")
    settings = "GBNF; the version is that of llama-cpp-python"

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self._eog, self._size = eog, len(pieces)
        with tempfile.TemporaryDirectory() as folder:
            write_vocabulary(path := Path(folder) / "vocabulary.gguf", pieces, eog)
            settings = llama_cpp.llama_model_default_params()
            settings.vocab_only = True
            self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        if not self._model:
            raise RuntimeError("llama.cpp does not load the vocabulary")
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        data = np.zeros(
            self._size, dtype=np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True)
        )
        self._blank, self._data = data, data.copy()
        self._blank["id"] = np.arange(self._size)
        self._ids = self._blank["id"].tolist()

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        if kind == "set" and constraint["values"]:
            self._grammar = gbnf({"or": [{"text": value} for value in constraint["values"]]}, {})
        elif kind == "regex" and "language" in constraint:
            self._grammar = gbnf(constraint["language"], {})
        elif kind == "grammar":
            self._grammar = constraint["gbnf"]
        else:
            raise RefusedError(f"no constraints of kind {kind}")
        self._trail: list[Any] = []
        self.begin()

    def begin(self) -> None:
        for sampler in self._trail:
            llama_cpp.llama_sampler_free(sampler)
        sampler = llama_cpp.llama_sampler_init_grammar(self._vocab, self._grammar.encode(), b"root")
        if not sampler:
            raise RefusedError("llama.cpp does not read the grammar")
        self._trail = [sampler]

    def _apply(self) -> np.ndarray:
        self._data[:] = self._blank
        pointer = self._data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        candidates = llama_cpp.llama_token_data_array(pointer, self._size, -1, False)
        llama_cpp.llama_sampler_apply(self._trail[-1], ctypes.byref(candidates))
        return self._data["id"][np.isfinite(self._data["logit"])]

    def mask(self) -> tuple[bytes, float]:
        with Clock() as clock:
            legal = self._apply()
        return bits(legal.tolist(), self._size), clock.us

    def advance(self, token: int) -> bool:
        # Another token would end the process.
        if token not in self._apply():
            return False
        following = llama_cpp.llama_sampler_clone(self._trail[-1])
        llama_cpp.llama_sampler_accept(following, token)
        self._trail.append(following)
        return True

    def rollback(self, count: int) -> None:
        for sampler in self._trail[-count:]:
            llama_cpp.llama_sampler_free(sampler)
        del self._trail[-count:]


@llama_cpp.llama_log_callback
def _silent(*_: object) -> None:
    """Drops what llama.cpp logs."""


def write_vocabulary(path: Path, pieces: list[bytes], eog: list[int]) -> None:
    """A file with these tokens and no weights, as byte-level BPE without merges: it can spell any bytes."""
    spelled = {byte: character for character, byte in byte_characters().items()}
    writer = GGUFWriter(path, "llama")
    for add in (
        writer.add_context_length,
        writer.add_embedding_length,
        writer.add_block_count,
        writer.add_feed_forward_length,
    ):
        add(32)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(
        ["".join(spelled[byte] for byte in piece) or f"<|{token}|>" for token, piece in enumerate(pieces)]
    )
    writer.add_token_types([NORMAL if piece and token not in eog else CONTROL for token, piece in enumerate(pieces)])
    writer.add_token_merges(["Ġ t"])
    writer.add_eos_token_id(eog[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    serve(LlamaCpp())
