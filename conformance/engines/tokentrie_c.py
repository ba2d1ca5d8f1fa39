"""tokentrie, through its C interface: the library that TOKENTRIE_LIB names."""

from __future__ import annotations

import ctypes
import json
import os
from array import array
from typing import Any

from loop import Clock, Engine, RefusedError, serve
from tokentrie_specs import spec

NORMAL, CONTROL, END_OF_GENERATION = 0, 1, 2
ACTIVE, COMPLETE = 0, 1


class CallError(RefusedError):
    """A function of the library said no."""


class TokentrieC(Engine):
    name = "tokentrie, C"
    settings = "JSON without white space"

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["TOKENTRIE_LIB"])
        self._library.tokentrie_last_error.restype = ctypes.c_char_p
        self.version = f"ABI {self._library.tokentrie_abi_version()}"
        self._vocab, self._constraint, self._sampler = (ctypes.c_uint64(0) for _ in range(3))

    def _call(self, function: str, *arguments: Any) -> None:
        if getattr(self._library, f"tokentrie_{function}")(*arguments) < 0:
            raise CallError(self._library.tokentrie_last_error().decode())

    def _free(self, kind: str, handle: ctypes.c_uint64) -> None:
        if handle.value:
            self._call(f"{kind}_free", handle)
            handle.value = 0

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        data, ends, length = b"".join(pieces), array("Q"), 0
        for piece in pieces:
            ends.append(length := length + len(piece))
        kinds = bytes(
            END_OF_GENERATION if token in eog else NORMAL if piece else CONTROL for token, piece in enumerate(pieces)
        )
        self._free("vocab", self._vocab)
        self._call(
            "vocab_from_pieces",
            data,
            ctypes.c_size_t(length),
            (ctypes.c_uint64 * len(ends)).from_buffer(ends),
            kinds,
            ctypes.c_size_t(len(pieces)),
            ctypes.byref(self._vocab),
        )
        self._eog = (ctypes.c_int32 * len(eog))(*eog)
        self._words = (ctypes.c_uint32 * -(-len(pieces) // 32))()
        self._size = len(pieces)

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        text = json.dumps(spec(kind, constraint)).encode()
        self._free("constraint", self._constraint)
        length = ctypes.c_size_t(len(text))
        self._call("constraint_from_json", text, length, self._vocab, ctypes.byref(self._constraint))
        self.begin()

    def begin(self) -> None:
        self._free("sampler", self._sampler)
        count = ctypes.c_size_t(len(self._eog))
        self._call("sampler_new", self._constraint, self._vocab, None, self._eog, count, ctypes.byref(self._sampler))

    def _state(self) -> int:
        state = ctypes.c_int32()
        self._call("sampler_state", self._sampler, ctypes.byref(state), None)
        return state.value

    def mask(self) -> tuple[bytes, float]:
        if self._state() != ACTIVE:
            return bytes(4 * len(self._words)), 0.0
        with Clock() as clock:
            self._call("sampler_bitmask", self._sampler, self._words, ctypes.c_size_t(len(self._words)))
        return bytes(self._words), clock.us

    def may_end(self) -> bool | None:
        return True if self._state() == COMPLETE else None

    def advance(self, token: int) -> bool:
        try:
            self._call("sampler_accept", self._sampler, (ctypes.c_int32 * 1)(token), ctypes.c_size_t(1))
        except CallError:
            return False
        return True

    def rollback(self, count: int) -> None:
        self._call("sampler_rollback", self._sampler, ctypes.c_size_t(count))

    def forced(self) -> bytes | None:
        tokens, count = (ctypes.c_int32 * 4096)(), ctypes.c_size_t()
        self._call("sampler_forced", self._sampler, tokens, ctypes.c_size_t(4096), ctypes.byref(count))
        data, length = (ctypes.c_uint8 * 65536)(), ctypes.c_size_t()
        self._call("vocab_bytes", self._vocab, tokens, count, data, ctypes.c_size_t(65536), ctypes.byref(length))
        return bytes(data[: length.value])


if __name__ == "__main__":
    serve(TokentrieC())
