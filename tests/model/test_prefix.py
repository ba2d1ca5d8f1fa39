"""Beginnings of prompts in files: saved by one process, held by the next."""

from __future__ import annotations

import hashlib
import random
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from budget import cases
from models import TINY
from tokentrie import Model
from tokentrie.errors import ContextError, ModelError

pytestmark = pytest.mark.model

BEGINNING = "You sort letters into folders: bills, friends, work and the rest. Answer with one word. " * 3
PROMPT = BEGINNING + "A letter of the bank says that I owe it money. Bills: the folder is bills. The folder is "
FOLDERS = ["bills", "friends", "work", "the rest"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prefix") / "letters.prefix"
    with Model(n_ctx=512, precise=True) as model:
        model.save_prefix(path, BEGINNING)
    return path


def test_another_process_goes_on_with_the_same_bits(saved: Path) -> None:
    with Model(n_ctx=512, precise=True) as model:
        model.logits(BEGINNING)
        expected = model.logits(PROMPT)
    code = f"""
import sys, tokentrie
model = tokentrie.Model(n_ctx=512, precise=True)
held = model.load_prefix({str(saved)!r})
assert held == len(model.vocab.tokenize({BEGINNING!r}, add_special=True, parse_special=True)), held
sys.stdout.buffer.write(model.logits({PROMPT!r}).tobytes())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert np.array_equal(np.frombuffer(done.stdout, np.float32), expected)


@pytest.mark.parametrize("slots", [1, 3])
def test_what_it_holds_is_not_decoded_again(saved: Path, slots: int) -> None:
    with Model(n_ctx=512, precise=True) as fresh, Model(n_ctx=512, precise=True, slots=slots) as model:
        expected = fresh.choose(PROMPT, FOLDERS)
        held = model.load_prefix(saved)
        first = model.generate(PROMPT, FOLDERS)
        assert first.stats.prompt_tokens_reused == held
        assert first.value == fresh.generate(PROMPT, FOLDERS).value
        model.load_prefix(saved)
        choice = model.choose(PROMPT, FOLDERS)
        assert choice.probabilities == pytest.approx(expected.probabilities, abs=1e-4)
        model.clear()
        assert model.generate(PROMPT, FOLDERS).stats.prompt_tokens_reused == 0


def test_calls_of_an_engine_wait_and_go_on(saved: Path, tmp_path: Path) -> None:
    with Model(n_ctx=512, precise=True, slots=2) as model:
        expected = model.generate(PROMPT, FOLDERS).value
        found: list[str] = []
        callers = [
            threading.Thread(target=lambda: found.extend(model.generate(PROMPT, FOLDERS).value for _ in range(6)))
            for _ in range(3)
        ]
        for caller in callers:
            caller.start()
        for number in range(4):
            model.save_prefix(tmp_path / f"{number}.prefix", BEGINNING)
            model.load_prefix(saved)
        for caller in callers:
            caller.join()
        assert found == [expected] * 18
        assert model.engine.running == 0
    for number in range(4):
        with Model(n_ctx=512, precise=True) as model:
            held = model.load_prefix(tmp_path / f"{number}.prefix")
            out = model.generate(PROMPT, FOLDERS)
            assert (out.value, out.stats.prompt_tokens_reused) == (expected, held)


LETTERS = [
    BEGINNING + text + " The folder is "
    for text in ("A bill of the power company.", "Ann asks how I am.", "The boss wants numbers.", "")
]
BEGINNINGS = [
    BEGINNING,
    BEGINNING[:60],
    BEGINNING + "A letter",
    LETTERS[1],
    "Something else that is not about letters.",
]
"""Some begin others, one has nothing in common with them."""


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_saved_file_holds_what_a_fresh_one_does(slots: int, precise: bool, tmp_path: Path) -> None:
    # How many tokens are decoded at once moves the last bits; a cache that lacks some moves logits by whole numbers.
    tolerance = 5e-3 if precise else 0.3
    files = [tmp_path / f"fresh-{number}.prefix" for number in range(len(BEGINNINGS))]
    rows, choices = [], []
    with Model(n_ctx=512, precise=precise) as fresh:
        for path, beginning in zip(files, BEGINNINGS, strict=True):
            fresh.clear()
            fresh.save_prefix(path, beginning)
        for letter in LETTERS:
            fresh.clear()
            rows.append(fresh.logits(letter))
            choices.append(fresh.choose(letter, FOLDERS).probabilities)

    def check(model: Model, number: int) -> None:
        assert np.allclose(model.logits(LETTERS[number]), rows[number], atol=tolerance)
        found = model.choose(LETTERS[number], FOLDERS).probabilities
        assert found == pytest.approx(choices[number], abs=tolerance / 5)

    for seed in range(cases(30)):
        draw, done = random.Random(seed), []
        with Model(n_ctx=512, precise=precise, slots=slots) as model, Model(n_ctx=512, precise=precise) as other:
            for step in range(12):
                kind = draw.choice(["load", "load", "save", "save", "generate", "choose", "clear"])
                number = draw.randrange(len(BEGINNINGS) if kind in ("load", "save") else len(LETTERS))
                done.append((kind, number))
                if kind == "load":
                    model.load_prefix(files[number])
                elif kind == "generate":
                    model.generate(LETTERS[number], FOLDERS)
                elif kind == "choose":
                    check(model, number)
                elif kind == "clear":
                    model.clear()
                else:
                    path = tmp_path / f"{seed}-{step}.prefix"
                    model.save_prefix(path, BEGINNINGS[number])
                    assert path.stat().st_size == files[number].stat().st_size, done
                    assert other.load_prefix(path) == len(
                        model.vocab.tokenize(BEGINNINGS[number], add_special=True, parse_special=True)
                    )
                    check(other, draw.randrange(len(LETTERS)))


def test_a_file_that_holds_less_than_it_says_is_refused(saved: Path, tmp_path: Path) -> None:
    head, short = 16 + 32, tmp_path / "short.prefix"
    with Model(n_ctx=512, precise=True) as model:
        model.save_prefix(short, BEGINNING[:60])

    def parts(path: Path) -> tuple[bytes, list[int], bytes, bytes]:
        body = path.read_bytes()[head:]
        precise, first, last, tokens, state = struct.unpack_from("<IIIIQ", body, 68)
        names = body[92 : 92 + 4 * tokens]
        assert len(body) == 92 + 4 * tokens + state
        return body[:68], [precise, first, last], names, body[92 + 4 * tokens :]

    before, figures, names, state = parts(saved)
    _, of_short, short_names, short_state = parts(short)
    assert (figures[1], figures[2]) == (0, len(names) // 4 - 1)
    assert (of_short[1], of_short[2]) == (0, len(short_names) // 4 - 1)
    lies = [
        (figures, names, short_state),  # as version 1 could be
        (of_short, short_names, state),
        (of_short, names, short_state),
        (figures, short_names, state),
        ([1, 1, figures[2]], names, state),
        ([1, 0, figures[2] - 1], names, state),
        ([1, 0, 2**32 - 1], names, state),
        ([1, figures[2] + 1, figures[2]], names, state),
        (figures, names, state[: len(state) // 2]),
        (figures, names, b""),
    ]
    path = tmp_path / "lies.prefix"
    for slots in (1, 2):
        with Model(n_ctx=512, precise=True, slots=slots) as model:
            expected = model.logits(PROMPT)
            for lie, of_tokens, of_state in lies:
                size = struct.pack("<IIIIQ", *lie, len(of_tokens) // 4, len(of_state))
                body = before + size + of_tokens + of_state
                path.write_bytes(b"tokentrie-prefix" + hashlib.sha256(body).digest() + body)
                with pytest.raises(ModelError, match=r"position|does not take it"):
                    model.load_prefix(path)
                assert np.allclose(model.logits(PROMPT), expected, atol=0.05)


def test_a_prefix_that_is_longer_or_other_than_a_prompt(saved: Path) -> None:
    # What a model says that goes back to these prompts itself: how many tokens are decoded at once moves the last bits.
    with Model(n_ctx=512, precise=True) as model:
        model.logits(BEGINNING)
        whole = model.logits(BEGINNING)
        begun = model.logits(BEGINNING[:90])
    with Model(n_ctx=512, precise=True) as model:
        model.load_prefix(saved)
        assert np.allclose(model.logits(BEGINNING[:90]), begun, atol=5e-3)
        model.load_prefix(saved)
        assert np.allclose(model.logits(BEGINNING), whole, atol=5e-3)


def test_a_file_that_is_damaged_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    draw = random.Random(3)
    places = {
        0,
        16,
        48,
        52,
        84,
        116,
        120,
        124,
        len(whole) - 1,
        *(draw.randrange(len(whole)) for _ in range(cases(300))),
    }
    path = tmp_path / "damaged.prefix"
    with Model(n_ctx=512, precise=True) as model:
        expected = model.logits(PROMPT)
        for place in places:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :])
            with pytest.raises(ModelError, match=r"holds no prefix|is damaged"):
                model.load_prefix(path)
        for length in (0, 15, 16, 47, 48, 131, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(ModelError, match=r"holds no prefix|is damaged"):
                model.load_prefix(path)
        path.write_bytes(whole + b"\0")
        with pytest.raises(ModelError, match="is damaged"):
            model.load_prefix(path)
        assert np.allclose(model.logits(PROMPT), expected, atol=1e-3)


def test_files_of_others_are_refused(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    shutil.copy(TINY, other)
    weights = bytearray(other.read_bytes())
    weights[-4096:] = bytes(4096)
    other.write_bytes(weights)
    with Model(other, n_ctx=512, precise=True) as model, pytest.raises(ModelError, match="of another model"):
        model.load_prefix(saved)
    with Model(n_ctx=512) as model, pytest.raises(ModelError, match="precise"):
        model.load_prefix(saved)
    with Model(n_ctx=32, precise=True) as model, pytest.raises(ContextError, match="do not fit"):
        model.load_prefix(saved)
    with Model(n_ctx=512, precise=True) as model:
        for wrong in (tmp_path / "missing", tmp_path, Path(TINY)):
            with pytest.raises(ModelError, match="not a prefix that can be used"):
                model.load_prefix(wrong)
        with pytest.raises(ModelError, match="missing"):
            model.save_prefix(tmp_path / "missing" / "x.prefix", BEGINNING)
        with pytest.raises(ContextError):
            model.save_prefix(tmp_path / "long.prefix", BEGINNING * 20)
        assert not list(tmp_path.glob("*.prefix"))
    with Model(n_ctx=512, batching="fixed", slots=2) as model:
        for call in (lambda: model.load_prefix(saved), lambda: model.save_prefix(saved, "a")):
            with pytest.raises(ModelError, match="free batching"):
                call()
    with pytest.raises(ModelError, match="closed"):
        model.load_prefix(saved)
