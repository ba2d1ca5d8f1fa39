"""Adapter of llama-server: the grammar that it makes of the tools, walked by llama.cpp's own grammar sampler.

The server tells its grammar with `-v`; LLAMA_SERVER is its address, http://127.0.0.1:8080 unless given. The walk needs
llama-cpp-python, whose LLAMA_CPP_LIB_PATH may name the libraries that the server was built with.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

import llama_cpp

URL = os.environ.get("LLAMA_SERVER", "http://127.0.0.1:8080")
#: What the template writes before a reply: the grammar begins with it.
BEFORE = "<|im_start|>assistant\n"


class LlamaServer:
    """Constrains a reply to calls of tools, after text or without."""

    name = "llama-server"

    def __init__(self, vocabulary: str | None) -> None:
        if vocabulary is None:
            raise SystemExit("--vocabulary is missing: the model of the server")
        llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        settings = llama_cpp.llama_model_default_params()
        settings.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(vocabulary.encode(), settings)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        with urllib.request.urlopen(f"{URL}/props", timeout=60) as answer:
            self.version = json.load(answer).get("build_info", "")
        self.settings = f"a vocabulary of {self._size:,} tokens"
        self.warnings: list[str] = []
        self._sampler: Any = None

    def compile(self, tools: list[dict[str, Any]]) -> None:
        """Raises RuntimeError with the reason if the tools cannot be held."""
        body = {
            "messages": [{"role": "user", "content": "Call a tool."}],
            "tools": tools,
            "tool_choice": "required",
            "max_tokens": 1,
            # Of the prompt only the time of its decoding is saved so: the grammar is the same.
            "chat_template_kwargs": {"show_tools": False},
        }
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{URL}/v1/chat/completions", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=600) as answer:
                reply = json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.code} {error.read().decode(errors='replace')}") from error
        if "__verbose" not in reply:
            raise SystemExit("the server does not tell its grammar: start it with -v")
        grammar = reply["__verbose"]["generation_settings"]["grammar"]
        if not grammar:
            raise RuntimeError("status 200, and no grammar")
        if self._sampler:
            llama_cpp.llama_sampler_free(self._sampler)
        self._sampler = llama_cpp.llama_sampler_init_grammar(self._vocab, grammar.encode(), b"root")
        if not self._sampler:
            raise RuntimeError("llama.cpp does not read the grammar")
        for token in self._tokens(BEFORE):
            llama_cpp.llama_sampler_accept(self._sampler, token)

    def masks(self) -> tuple[float, float]:
        """Returns the processor seconds of the mask of a reply's first token, and of that of a tool's name."""
        sampler = llama_cpp.llama_sampler_clone(self._sampler)
        first = self._mask(sampler, range(self._size))[1]
        for token in self._tokens('<tool_call>\n{"name": "'):
            llama_cpp.llama_sampler_accept(sampler, token)
        of_name = self._mask(sampler, range(self._size))[1]
        llama_cpp.llama_sampler_free(sampler)
        return first, of_name

    def accepts(self, name: str, arguments: str) -> bool:
        """Returns whether this call may be written, and the reply may end after it."""
        sampler = llama_cpp.llama_sampler_clone(self._sampler)
        text = f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        try:
            for token in self._tokens(text):
                # Another token would end the process.
                if not self._mask(sampler, [token])[0]:
                    return False
                llama_cpp.llama_sampler_accept(sampler, token)
            return self._mask(sampler, [llama_cpp.llama_vocab_eos(self._vocab)])[0]
        finally:
            llama_cpp.llama_sampler_free(sampler)

    def _mask(self, sampler: Any, tokens: Sequence[int]) -> tuple[bool, float]:
        """Masks some tokens; returns whether the first is allowed, and the processor seconds."""
        data = (llama_cpp.llama_token_data * len(tokens))(*((token, 0.0, 0.0) for token in tokens))
        candidates = llama_cpp.llama_token_data_array(data, len(tokens), -1, False)
        begun = time.process_time()
        llama_cpp.llama_sampler_apply(sampler, ctypes.byref(candidates))
        return bool(data[0].logit == 0), time.process_time() - begun

    def _tokens(self, text: str) -> list[int]:
        data = text.encode()
        found = (llama_cpp.llama_token * (len(data) + 1))()
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), found, len(found), False, True)
        return list(found[:count])


@llama_cpp.llama_log_callback
def _silent(*_: object) -> None:
    """Drops what llama.cpp logs."""
