"""Rules in WebAssembly: every face of one, what means harm, and the examples as their compilers build them."""

from __future__ import annotations

import base64
import os
import pickle
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tokentrie import Form, Limits, Model, RuleError, Sampler, Slot, Vocab, constraint
from tokentrie.errors import OptionError
from tokentrie.rules import OneOf, WasmRule
from wasm_modules import IMEI, LETTERS, stepping

EXAMPLES = Path(__file__).parents[2] / "examples" / "wasm"
FAULTS = {
    "never ends": ("03400c000b42000b", "takes more than 250000 units of fuel"),
    "traps": ("000b", r"step\(0, \d+\) trapped"),
    "calls itself": ("2000200110010b", r"step\(0, \d+\) trapped"),
    "divides by nothing": ("420142007f0b", r"step\(0, \d+\) trapped"),
}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=512, n_threads=1)


def luhn(text: str) -> bool:
    digits = [int(digit) * (1 + number % 2) for number, digit in enumerate(text)]
    return len(text) == 15 and sum(digit % 10 + digit // 10 for digit in digits) % 10 == 0


def test_its_faces(tmp_path: Path) -> None:
    rule = WasmRule(IMEI)
    path = tmp_path / "imei.wasm"
    path.write_bytes(IMEI)
    assert rule == WasmRule(path) == WasmRule(str(path)) == pickle.loads(pickle.dumps(rule))
    assert (rule != WasmRule(LETTERS), hash(rule)) == (True, hash(WasmRule(path)))
    assert (rule.module, rule.limits) == (IMEI, Limits())
    assert repr(rule).startswith("tokentrie.rules.WasmRule(b")
    assert rule.matches("490154203237518")
    assert not rule.matches("490154203237519")
    assert not rule.matches("49015420323751")
    assert (rule.check(states=200), WasmRule(LETTERS).check()) == (True, True)
    spec = constraint(rule)
    assert spec.to_dict() == {"wasm": base64.b64encode(IMEI).decode()}
    assert spec == constraint(spec.to_json()) == pickle.loads(pickle.dumps(spec))
    limits = Limits(steps=10_000_000)
    assert constraint(WasmRule(IMEI, limits=limits)).to_dict()["limits"] == {"steps": 10_000_000}
    assert pickle.loads(pickle.dumps(WasmRule(IMEI, limits=limits))).limits == limits
    with pytest.raises(RuleError, match="language is infinite"):
        WasmRule(LETTERS).texts()
    with pytest.raises(TypeError, match="WasmRule, not a finite automaton"):
        OneOf(rule)
    with pytest.raises(FileNotFoundError):
        WasmRule(tmp_path / "none.wasm")
    with pytest.raises(RuleError, match=r"wasm: the module has 86 bytes: it may have 4\."):
        WasmRule(LETTERS, limits=Limits(bytes=1024))
    with pytest.raises(OptionError, match=r"\$\.wasm: invalid base64"):
        constraint({"wasm": "=="})


@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_ends_the_call_and_nothing_else(fault: str) -> None:
    code, says = FAULTS[fault]
    rule, vocab = WasmRule(stepping(code)), Vocab.from_tokens([b"a", b"b"])
    began = time.process_time()
    for _ in range(2):
        with pytest.raises(RuleError, match=says):
            rule.matches("a")
        with pytest.raises(RuleError, match=says):
            rule.texts()
        with pytest.raises(RuleError, match=says):
            rule.check()
        with pytest.raises(RuleError, match=says):
            Sampler(vocab, rule)
    assert time.process_time() - began < 1
    assert WasmRule(LETTERS).matches("aaa")


@pytest.mark.model
def test_it_generates(model: Model) -> None:
    rule = WasmRule(IMEI)
    for seed in range(5):
        out = model.generate("My phone is ", rule, mode="sampled", seed=seed)
        assert luhn(out.value), out.value
    form = Form('{"imei": "', Slot("imei", rule), '"}')
    filled = model.generate("A phone: ", form)
    assert luhn(filled.values["imei"])
    assert filled.text == f'{{"imei": "{filled.values["imei"]}"}}'
    # A module that traps after a few letters ends the generation, which says so, and the model goes on.
    fourth = WasmRule(stepping("2000420351044000 0b 200042017c 427f 200141e100461b0b".replace(" ", "")))
    with pytest.raises(RuleError, match=r"step\(3, \d+\) trapped"):
        model.generate("a", fourth)
    assert luhn(model.generate("My phone is ", rule).value)


def example(name: str) -> Path:
    if not (EXAMPLES / name).is_file():
        pytest.skip("not run: the examples are not here")
    return EXAMPLES / name


def built(command: list[str | Path], module: Path) -> WasmRule:
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return WasmRule(module)


def is_imei(rule: WasmRule) -> None:
    texts = ["490154203237518", "356938035643809", "000000000000000", "35693803564380", "356938035643808", "a"]
    assert [rule.matches(text) for text in texts] == [luhn(text) if text.isdigit() else False for text in texts]
    assert rule.check(states=200)


def test_the_example_in_rust(tmp_path: Path) -> None:
    target = "wasm32-unknown-unknown"
    if (rustc := shutil.which("rustc")) is None:
        pytest.skip("not run: no rustc")
    libraries = subprocess.run([rustc, "--print", "target-libdir", "--target", target], capture_output=True, text=True)
    if not Path(libraries.stdout.strip()).is_dir():
        pytest.skip(f"not run: rustup target add {target}")
    module, options = tmp_path / "imei.wasm", ["-O", "-Cpanic=abort", "-Cstrip=symbols", "--crate-type=cdylib"]
    is_imei(built([rustc, *options, "--edition=2024", f"--target={target}", example("imei.rs"), "-o", module], module))


def test_the_example_in_assemblyscript(tmp_path: Path) -> None:
    asc = os.environ.get("TOKENTRIE_ASC") or shutil.which("asc")
    if not asc:
        pytest.skip("not run: no asc (npm install assemblyscript, 100 MB; TOKENTRIE_ASC names it)")
    module = tmp_path / "imei.wasm"
    command = [asc, example("imei.ts"), "-o", module, "-O", "--runtime", "stub", "--noExportMemory"]
    is_imei(built(command, module))
