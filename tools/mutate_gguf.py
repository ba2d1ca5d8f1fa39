"""Feeds damaged GGUF files to tokentrie, each in a process of its own, and counts those that end the process.

    python tools/mutate_gguf.py python/tokentrie/models/tiny.gguf --random 2000

Metadata and tensor entries are changed one by one (types, counts, lengths, names, shapes, offsets, doubled and missing
keys), then at random and several at once. A typed error is what a mutation should end with; a signal, a hang or another
exception is a finding, and is printed with what llama.cpp said.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY, U32, I32, F32, BOOL, U64 = 8, 9, 4, 5, 6, 7, 10
ALIGNMENT = 32
SIZES = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
"""Items of a block, and bytes of a block, of each type of tensor."""

MEMORY = 8 << 30
SECONDS = 20


@dataclass
class Value:
    """A metadata value: its type, the type of its items if it is an array, and what it holds."""

    kind: int
    held: Any
    items: int | None = None

    def copy(self) -> Value:
        """Another one, so that a mutation leaves this one alone."""
        return Value(self.kind, list(self.held) if isinstance(self.held, list) else self.held, self.items)


@dataclass
class Tensor:
    """An entry of the list of tensors."""

    name: bytes
    shape: list[int]
    kind: int
    offset: int


@dataclass
class Gguf:
    """A file taken apart."""

    metadata: list[tuple[bytes, Value]] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    data: bytes = b""
    counts: tuple[int, int] | None = None
    """Numbers of tensors and of metadata entries that the header claims in place of the true ones."""

    @classmethod
    def read(cls, path: Path) -> Gguf:
        """Takes a sound file apart."""
        content = memoryview(path.read_bytes())
        at = 24
        n_tensors, n_metadata = struct.unpack_from("<QQ", content, 8)

        def take(code: str) -> Any:
            nonlocal at
            (value,) = struct.unpack_from(f"<{code}", content, at)
            at += struct.calcsize(f"<{code}")
            return value

        def text() -> bytes:
            nonlocal at
            length = take("Q")
            at += length
            return bytes(content[at - length : at])

        def value(kind: int) -> Any:
            return text() if kind == STRING else take(NUMBERS[kind])

        file = cls()
        for _ in range(n_metadata):
            key, kind = text(), take("I")
            if kind == ARRAY:
                items, length = take("I"), take("Q")
                file.metadata.append((key, Value(ARRAY, [value(items) for _ in range(length)], items)))
            else:
                file.metadata.append((key, Value(kind, value(kind))))
        for _ in range(n_tensors):
            name = text()
            shape = [take("Q") for _ in range(take("I"))]
            file.tensors.append(Tensor(name, shape, take("I"), take("Q")))
        file.data = bytes(content[-(-at // ALIGNMENT) * ALIGNMENT :])
        return file

    def copy(self) -> Gguf:
        """Another one; the data is shared."""
        tensors = [Tensor(one.name, list(one.shape), one.kind, one.offset) for one in self.tensors]
        return Gguf(list(self.metadata), tensors, self.data, self.counts)

    def get(self, key: bytes) -> Value | None:
        """The value of a key."""
        return next((value for name, value in self.metadata if name == key), None)

    def put(self, key: bytes, value: Value) -> Gguf:
        """Gives a key this value in its place, or at the end; returns the file."""
        at = next((at for at, (name, _) in enumerate(self.metadata) if name == key), len(self.metadata))
        self.metadata[at : at + 1] = [(key, value)]
        return self

    def drop(self, key: bytes) -> Gguf:
        """Leaves a key out; returns the file."""
        self.metadata = [entry for entry in self.metadata if entry[0] != key]
        return self

    def laid_out(self) -> Gguf:
        """Gives every tensor a place of its own size, so that its type and shape are not caught by its offset."""
        data = bytearray()
        for one in self.tensors:
            begin, items, block = one.offset, math.prod(one.shape), SIZES.get(one.kind, (1, 4))
            size = -(-items // block[0]) * block[1]
            one.offset = len(data)
            held = self.data[begin : begin + size] if size < 1 << 24 else b""
            data += held + bytes(-len(held) % 32 + (size - len(held) if size < 1 << 24 else 0))
            data += bytes(-len(data) % ALIGNMENT)
        self.data = bytes(data)
        return self

    def written(self) -> bytes:
        """The bytes of the file."""
        n_tensors, n_metadata = self.counts or (len(self.tensors), len(self.metadata))
        out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, n_tensors & (2**64 - 1), n_metadata & (2**64 - 1)))

        def text(value: bytes) -> None:
            out.extend(struct.pack("<Q", len(value)) + value)

        for key, value in self.metadata:
            text(key)
            out.extend(struct.pack("<I", value.kind))
            items: list[Any] = [value.held]
            kind = value.kind
            if value.kind == ARRAY:
                kind, items = value.items or 0, value.held
                out.extend(struct.pack("<IQ", kind, len(items)))
            if kind == STRING:
                for item in items:
                    text(item)
            elif kind in NUMBERS:
                out.extend(struct.pack(f"<{len(items)}{NUMBERS[kind]}", *(fitting(kind, item) for item in items)))
        for one in self.tensors:
            text(one.name)
            out.extend(struct.pack("<I", len(one.shape)))
            out.extend(b"".join(struct.pack("<Q", length & (2**64 - 1)) for length in one.shape))
            out.extend(struct.pack("<IQ", one.kind & 0xFFFFFFFF, one.offset & (2**64 - 1)))
        out.extend(bytes(-len(out) % ALIGNMENT))
        return bytes(out) + self.data


def fitting(kind: int, value: Any) -> Any:
    """The value, or what is left of it in a field of this type."""
    if kind in (F32, 12):
        number = float(value) if not isinstance(value, bytes) else 0.0
        return math.inf if kind == F32 and abs(number) > 3e38 and math.isfinite(number) else number
    if isinstance(value, bytes):
        return 0
    if kind == BOOL:
        return bool(value)
    number = int(value) if math.isfinite(value) else 0
    size = 8 * struct.calcsize(NUMBERS[kind])
    number &= (1 << size) - 1
    return number - (1 << size) if NUMBERS[kind].islower() and number >> (size - 1) else number


Mutation = tuple[str, Callable[[], Gguf]]

WHOLE = (0, 1, 2, 3, 7, 64, 4096, 2**16, 2**20, 2**27, 2**30, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
BROKEN = (0.0, -1.0, 1e-45, 1e30, math.nan, math.inf, -math.inf)
TEXTS = (b"", b"x", b"\xff\xfe", b"\0", b"llama", b"none", b"gpt2", b"x" * 70_000)
TOKENIZERS = (b"llama", b"gpt2", b"bert", b"t5", b"rwkv", b"plamo2", b"none", b"gemma4", b"hybriddna", b"whitespace")
FAMILIES = (
    *(b"llama", b"llama4", b"qwen2", b"qwen2moe", b"qwen3", b"qwen3next", b"gemma", b"gemma2", b"gemma3", b"gemma3n"),
    *(b"phi2", b"phi3", b"mamba", b"mamba2", b"jamba", b"rwkv6", b"rwkv7", b"gpt2", b"gptneox", b"falcon", b"bloom"),
    *(b"mpt", b"starcoder", b"deepseek", b"deepseek2", b"granite", b"command-r", b"olmo", b"chatglm", b"glm4", b"t5"),
    *(b"bert", b"nemotron", b"exaone4", b"minicpm3", b"lfm2", b"gpt-oss", b"grok", b"dbrx", b"baichuan", b"plamo2"),
    *(b"refact", b"stablelm", b"internlm2", b"orion", b"openelm", b"bitnet", b"wavtokenizer-dec", b"clip", b"dream"),
)
NEW_TOKENIZER_KEYS = tuple(
    b"tokenizer.ggml." + name + b"_token_id"
    for name in (
        *(b"bos", b"eos", b"eot", b"eom", b"unknown", b"separator", b"seperator", b"padding", b"cls", b"mask"),
        *(b"fim_pre", b"fim_suf", b"fim_mid", b"fim_pad", b"fim_rep", b"fim_sep", b"prefix", b"suffix", b"middle"),
    )
)
NEW_TOKENIZER_FLAGS = tuple(
    b"tokenizer.ggml." + name
    for name in (
        *(b"add_bos_token", b"add_eos_token", b"add_sep_token", b"add_space_prefix", b"remove_extra_whitespaces"),
        *(b"escape_whitespaces", b"normalizer.lowercase"),
    )
)
NEW_NUMBERS = (
    *(b"expert_count", b"expert_used_count", b"expert_shared_count", b"expert_group_count", b"expert_group_used_count"),
    *(b"attention.sliding_window", b"attention.key_length", b"attention.value_length", b"rope.dimension_count"),
    *(b"vocab_size", b"attention.head_count_kv", b"rope.scaling.original_context_length", b"nextn_predict_layers"),
    *(b"embedding_length_out", b"interleave_moe_layer_step", b"attention.indexer.top_k", b"pooling_type"),
    *(b"embedding_length_per_layer_input", b"features_length", b"leading_dense_block_count", b"logit_scale"),
)


def mutations(file: Gguf) -> Iterator[Mutation]:
    """Every change of one thing."""

    def changed(change: Callable[[Gguf], object]) -> Callable[[], Gguf]:
        def make() -> Gguf:
            copy = file.copy()
            change(copy)
            return copy

        return make

    def given(key: bytes, value: Value) -> Callable[[], Gguf]:
        return changed(lambda copy: copy.put(key, value))

    for key, value in file.metadata:
        name = key.decode("utf-8", "backslashreplace")
        yield f"{name}: left out", changed(lambda copy, key=key: copy.drop(key))
        yield f"{name}: twice", changed(lambda copy, entry=(key, value): copy.metadata.append(entry))
        for what, other in values(key, value):
            yield f"{name}: {what}", given(key, other)
    architecture = file.get(b"general.architecture")
    prefix = (architecture.held if architecture else b"llama") + b"."
    size = len(tokens.held) if (tokens := file.get(b"tokenizer.ggml.tokens")) else 0
    for key in NEW_TOKENIZER_KEYS:
        for number in (0, size - 1, size, 2**31, 2**32 - 1):
            yield f"{key.decode()}: new, {number}", given(key, Value(U32, number))
    for key in NEW_TOKENIZER_FLAGS:
        for flag in (False, True):
            yield f"{key.decode()}: new, {flag}", given(key, Value(BOOL, flag))
    for key in NEW_NUMBERS:
        for number in (0, 1, 3, 2**16, 2**31, 2**32 - 1):
            yield f"{key.decode()}: new, {number}", given(prefix + key, Value(U32, number))
        yield f"{key.decode()}: new, list", given(prefix + key, Value(ARRAY, [1, 2], U32))
    for kind in (b"linear", b"yarn", b"longrope", b"?"):
        yield f"rope.scaling.type: new, {kind.decode()}", given(prefix + b"rope.scaling.type", Value(STRING, kind))
    for length in (1, 13, 300):
        junk = Value(ARRAY, [(7 * at) % 256 for at in range(length)], 0)
        yield f"precompiled_charsmap: new, {length}", given(b"tokenizer.ggml.precompiled_charsmap", junk)
    yield from tensor_mutations(file, changed)
    for tensors, metadata in ((1, 0), (-1, 0), (0, 1), (0, -1), (2**40, 0), (0, 2**40), (2**63, 0), (0, 2**63)):
        counts = (len(file.tensors) + tensors, len(file.metadata) + metadata)
        yield f"header: {counts}", changed(lambda copy, counts=counts: setattr(copy, "counts", counts))


def values(key: bytes, value: Value) -> Iterator[tuple[str, Value]]:
    """Other values for a key."""
    kind, held = value.kind, value.held
    if kind == ARRAY:
        yield from lists(value)
        yield "a number instead of a list", Value(U32, 1)
        yield "a text instead of a list", Value(STRING, b"x")
        return
    for other in (*NUMBERS, STRING, 13, 255):
        if other != kind:
            yield f"type {other}", Value(other, b"x" if other == STRING else held)
    yield "a list instead of one", Value(ARRAY, [held], kind)
    yield "an empty list", Value(ARRAY, [], kind)
    if kind == STRING:
        known = {b"general.architecture": FAMILIES, b"tokenizer.ggml.model": TOKENIZERS}.get(key, ())
        for text in (*TEXTS, *known):
            yield f"{text[:20]!r}", Value(STRING, text)
    elif kind in (F32, 12):
        for number in BROKEN:
            yield f"{number}", Value(kind, number)
    elif kind == BOOL:
        yield f"{not held}", Value(BOOL, not held)
    else:
        for number in (*WHOLE, held - 1, held + 1, held * 2, held // 2):
            yield f"{number}", Value(kind, number)


def lists(value: Value) -> Iterator[tuple[str, Value]]:
    """Yields variants of a list value."""
    held: list[Any] = value.held
    kind = value.items or 0

    def of(items: list[Any]) -> Value:
        return Value(ARRAY, items, kind)

    yield "empty", of([])
    yield "first only", of(held[:1])
    yield "one less", of(held[:-1])
    yield "half", of(held[: len(held) // 2])
    yield "one more", of([*held, held[-1]] if held else [])
    yield "reversed", of(held[::-1])
    yield "all alike", of(held[:1] * len(held))
    for other in (*NUMBERS, STRING, ARRAY, 13):
        if other != kind:
            items = [b"x"] * len(held) if other == STRING else held
            yield f"items of type {other}", Value(ARRAY, items, other)
    for at in sorted({0, 1, len(held) // 3, len(held) - 1} & set(range(len(held)))):
        if kind == STRING:
            texts = [held[0], held[-1], b"", b" ", b"\xff", b"\0", b"a b c", b"<0x0A>", b"x" * 5000]
            for text in texts:
                yield f"item {at} is {text[:12]!r}", of([*held[:at], text, *held[at + 1 :]])
        else:
            for number in (0, 1, 2, 3, 4, 5, 6, 99, 2**31 - 1, 2**32 - 1, -1, math.nan, math.inf):
                yield f"item {at} is {number}", of([*held[:at], number, *held[at + 1 :]])
    if kind == STRING and len(held) > 20:
        yield "no bytes", of([b"z" + item if item.startswith(b"<0x") else item for item in held])
        yield "short ones renamed", of([b"zz%d" % at if len(item) < 3 else item for at, item in enumerate(held)])


def laid_out(make: Callable[[], Gguf]) -> Callable[[], Gguf]:
    """Wraps `make` so that every tensor gets a place of its own size."""
    return lambda: make().laid_out()


def tensor_mutations(
    file: Gguf, changed: Callable[[Callable[[Gguf], object]], Callable[[], Gguf]]
) -> Iterator[Mutation]:
    """Every change of one tensor, for the first tensors and for some of the others."""
    chosen = sorted({*range(14), len(file.tensors) // 2, len(file.tensors) - 1} & set(range(len(file.tensors))))
    for at in chosen:
        one = file.tensors[at]
        name = one.name.decode()

        def of(at: int = at, **fields: Any) -> Callable[[], Gguf]:
            def change(copy: Gguf) -> None:
                for key, held in fields.items():
                    setattr(copy.tensors[at], key, held)

            return changed(change)

        yield f"tensor {name}: left out", changed(lambda copy, at=at: copy.tensors.pop(at))
        yield f"tensor {name}: twice", changed(lambda copy, one=one: copy.tensors.append(one))
        for text in (b"", b"x", b"x" * 63, b"x" * 64, b"blk.0.x", b"blk.99.attn_q.weight", b"\xff"):
            yield f"tensor {name}: named {text[:9]!r}", of(name=text)
        for kind in (*range(42), 255, 2**31, 2**32 - 1):
            yield f"tensor {name}: type {kind}", of(kind=kind)
            if kind in SIZES:
                yield f"tensor {name}: type {kind}, laid out", laid_out(of(kind=kind))
        for offset in (1, 32, one.offset + 32, len(file.data), 2**40, 2**63, 2**64 - 32):
            yield f"tensor {name}: offset {offset}", of(offset=offset)
        shapes = [[], [1], [0], one.shape[::-1], [*one.shape, 1], [*one.shape, 2], [1] * 5, [2**32, 2**32], [2**62, 2]]
        for axis, length in enumerate(one.shape):
            others = (0, 1, length - 1, length + 1, length * 2, 2**31, 2**63, 2**64 - 1)
            shapes.extend([*one.shape[:axis], other, *one.shape[axis + 1 :]] for other in others)
        for shape in shapes:
            yield f"tensor {name}: shape {shape}", of(shape=shape)
            if math.prod(shape) < 1 << 22 and len(shape) < 5:
                yield f"tensor {name}: shape {shape}, laid out", laid_out(of(shape=shape))


def random_mutations(file: Gguf, count: int, seed: int) -> Iterator[Mutation]:
    """Several changes at once, and changed bytes."""
    draw = random.Random(seed)
    singles = list(mutations(file))
    for number in range(count):
        if number % 3 == 0:
            names, keys = [], []
            made = file.copy()
            for name, make in draw.sample(singles, draw.randint(2, 4)):
                other = make()
                names.append(name)
                for key, value in other.metadata:
                    if value is not file.get(key):
                        keys.append(key)
                        made.put(key, value)
            yield " + ".join(names), lambda made=made: made
            continue
        seed_of_bytes = draw.getrandbits(32)
        yield f"bytes {seed_of_bytes}", lambda seed=seed_of_bytes: Bytes(file, seed)  # type: ignore[return-value]


class Bytes:
    """A file with a few changed bytes in front of its data."""

    def __init__(self, file: Gguf, seed: int) -> None:
        """Draws the mutations of a file."""
        self._file, self._seed = file, seed

    def written(self) -> bytes:
        """The bytes of the file."""
        draw = random.Random(self._seed)
        content = bytearray(self._file.written())
        head = len(content) - len(self._file.data)
        for _ in range(draw.randint(1, 6)):
            # Half of them where the counts, numbers and names of the model are, not in the long lists.
            at = draw.randrange(24 if draw.random() < 0.1 else (2000 if draw.random() < 0.5 else head))
            at = head - 1 - at if draw.random() < 0.5 else at
            content[max(4, at % head)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        return bytes(content)


def use(path: Path) -> None:
    """Uses a file as a program does: its vocabulary, then its model."""
    import tokentrie

    expected = (tokentrie.TokenTrieError, OSError)
    text = "Next: open_file <s> 😀\n Straße\x01"
    try:
        vocab = tokentrie.Vocab.from_gguf(path)
        for marks in (False, True):
            tokens = vocab.tokenize(text, add_special=marks, parse_special=marks)
            vocab.detokenize_bytes(tokens)
        vocab.detokenize_bytes(list(range(min(len(vocab), 400))))
        tokentrie.Trie.from_strings(vocab, ["open_file", "close", "ä\n"])
    except expected as error:
        print(type(error).__name__, error)
    try:
        with tokentrie.Model(path, n_threads=1) as model:
            model.choose(text, ["yes", "no"])
            model.generate(text, max_tokens=3)
            model.chat_prompt([{"role": "user", "content": "Hello"}])
    except expected as error:
        print(type(error).__name__, error)


@dataclass
class Outcome:
    """End of the process that used a file: nothing, a signal's name, or the name of an exception."""

    end: str | None
    said: str

    @property
    def place(self) -> str:
        """The line that says most."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        for mark in ("GGML_ASSERT", "what():", "fatal error", "panicked", "Error"):
            for line in lines:
                if mark in line:
                    return line[-160:]
        return lines[-1][-160:] if lines else ""


def attempt(content: bytes, folder: Path) -> Outcome:
    """Uses a file of these bytes in a forked child."""
    path, log = folder / "mutated.gguf", folder / "log"
    path.write_bytes(content)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ["GGML_NO_BACKTRACE"] = "1"
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(SECONDS)
        code = 0
        try:
            use(path)
        except BaseException as error:
            print(f"Error: {type(error).__name__}: {error}"[:2000], flush=True)
            code = 3
        sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = log.read_text("utf-8", "backslashreplace")
    if code == 0:
        return Outcome(None, said)
    return Outcome(signal.Signals(-code).name if code < 0 else "exception", said)


def main() -> int:
    """Runs and reports; 1 if anything ended its process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="sound GGUF files")
    parser.add_argument(
        "--random", type=int, default=0, metavar="N", help="mutations at random, beside every single one"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one in so many of the single ones")
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in their name")
    parser.add_argument("--without", action="append", default=[], metavar="TEXT", help="not those with this")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep one file of each finding here")
    chosen = parser.parse_args()
    import tokentrie  # noqa: F401  (once, before the forks)

    found: Counter[str] = Counter()
    total, begun = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for path in chosen.files:
            file = Gguf.read(path)
            singles = [one for one in mutations(file) if chosen.only in one[0]][:: chosen.every]
            for what, make in [*singles, *random_mutations(file, chosen.random, chosen.seed)]:
                if any(text in what for text in chosen.without):
                    continue
                total += 1
                content = make().written()
                outcome = attempt(content, Path(name))
                if outcome.end is not None:
                    place = f"{outcome.end}: {outcome.place}"
                    print(f"{path.name}: {what[:150]}\n    {place}", flush=True)
                    if chosen.keep and place not in found:
                        (chosen.keep / f"{path.stem}-{len(found)}.gguf").write_bytes(content)
                    found[place] += 1
    print(f"\n{sum(found.values())} of {total} ended their process, in {time.monotonic() - begun:.0f} s")
    for place, count in found.most_common():
        print(f"{count:6} {place}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
