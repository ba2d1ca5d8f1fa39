"""What strangers send: it costs seconds at most, never ends the process, and Ctrl-C ends it."""

from __future__ import annotations

import gc
import json
import pickle
import resource
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import tokentrie
from tokentrie import JsonSchema, Limits, Regex, RuleError, Sampler
from tokentrie.errors import OptionError
from tokentrie.rules import Gbnf, Grammar, Lark

pytestmark = pytest.mark.model

SECONDS = 300
"""Far more than any of them takes, and far less than they took."""

MEMORY = 6 << 30

RULES = {
    "alternatives": 'Grammar("s : " + " | ".join(f\'"a{i}x" "b{i}y"\' for i in range(20000)) + ";")',
    "subsets": """
n = 22
lines = ["s : " + " | ".join(f"p{i}" for i in range(n)) + ";"]
for i in range(n):
    others = " | ".join(f'"a{j}" q{i}' for j in range(n) if j != i)
    lines.append(f'p{i} : q{i} "e{i}" ; q{i} : {others} | "z" ;')
Grammar("\\n".join(lines))""",
    "ambiguous": 'Grammar("s : " + " | ".join(f"r{i}" for i in range(1000)) + ";"'
    ' + "".join(f\'r{i} : "a" | "a" s ;\' for i in range(1000)), lenient=True)',
    "nullable": 'Grammar("s : " + " ".join(f"r{i}" for i in range(3000)) + ";"'
    ' + "".join(f\'r{i} : "a{i}x" | ;\' for i in range(3000)))',
    "chain": 'Grammar("".join(f"r{i} : r{i+1} ;" for i in range(20000)) + \'r20000 : "x" ;\')',
    "chain of terminals": 'Grammar("".join(f\'r{i} : "a{i}" r{i+1} ;\' for i in range(10000)) + \'r10000 : "x" ;\')',
    "keyword": "Grammar('s : \"' + 'a' * 10_000_000 + '\" ;')",
    "classes in a grammar": "Grammar('s : \"/' + r'\\\\pL' * 1_000_000 + '/\" ;')",
    "gbnf times": "Gbnf('root ::= \"a\"{2000000000}')",
    "gbnf times of times": "Gbnf('root ::= (([^a]{1000}){1000}){1000}')",
    "gbnf groups": "Gbnf('root ::= ' + '(' * 1_000_000 + '\"x\"' + ')' * 1_000_000)",
    "gbnf options": "Gbnf('root ::= ' + '(\"a\" ' * 60_000 + ')?' * 60_000)",
    "gbnf rules": 'Gbnf("root ::= r0\\n" + "".join(f\'r{i} ::= "a" r{i+1} r{i+1}\\n\' for i in range(100_000))'
    " + 'r100000 ::= \"x\"')",
    "gbnf calls": 'Gbnf("root ::= " + "r " * 1_000_000 + \'\\nr ::= "a" r "b" | ""\')',
    "gbnf alternatives": 'Gbnf("root ::= " + " | ".join(f"r{i}" for i in range(50_000)) + "\\n"'
    ' + "".join(f\'r{i} ::= "a{i}" root?\\n\' for i in range(50_000)))',
    "gbnf subsets": "Gbnf('root ::= [a-z]* \"x\" [a-z]{40}')",
    "gbnf literal": "Gbnf('root ::= \"' + 'a' * 10_000_000 + '\"')",
    "gbnf mask": """
sampler = Sampler(vocab, Gbnf('root ::= "a" root root | "a" root "b"? | "a"'))
for _ in range(300):
    sampler.accept(sampler.allowed()[0])""",
    "lark rules": 'Lark("start: r0\\n" + "".join(f\'r{i}: "a" r{i+1}\\n\' for i in range(100_000)) + \'r100000: "x"\')',
    "lark alternatives": 'Lark("start: " + " | ".join(f"r{i}" for i in range(100_000)) + "\\n"'
    ' + "".join(f\'r{i}: "a{i}"\\n\' for i in range(100_000)))',
    "lark classes": 'Lark("start: /" + r"\\\\pL" * 1_000_000 + "/")',
    "lark literal": "Lark('start: \"' + 'a' * 10_000_000 + '\"')",
    "max_bytes": 'Regex("(a|b)*a(a|b){40}", max_bytes=2**62)',
    "pattern": 'Regex("a" * 100_000_000)',
    "classes": 'Regex(r"\\\\pL" * 3_000_000)',
    "enum of objects": 'JsonSchema({"enum": [{"a": i, "b": [i]} for i in range(1_000_000)]})',
    "enum of objects in a list": 'JsonSchema({"items": {"enum": [{"a": i} for i in range(1_000_000)]}})',
    "remainders": 'Sampler(vocab, JsonSchema({"type": "integer", "multipleOf": 999983})).allowed()',
    "concatenation": """
rule = Regex("a")
for _ in range(20_000):
    rule = rule + Regex("b")""",
    "choices in choices": """
rule = Regex("a")
for _ in range(100_000):
    rule = tokentrie.rules.OneOf(rule, "b")""",
    "gates in gates": """
gate = ["a"]
for _ in range(100_000):
    gate = tokentrie.rules.ThinkGate("<a>", "</a>", then=gate)""",
    "gates in samplers": """
gate = tokentrie.rules.ThinkGate([7], [8], vocab=16)
for _ in range(100_000):
    gate = tokentrie.rules.ThinkGate([7], [8], then=Sampler(16, tokentrie.Trie.from_sequences([[1]]) + gate))""",
    "allowed_bytes": """
class Endless(tokentrie.rules.Rule):
    start = lambda self: 0
    step = lambda self, state, byte: state
    is_end = lambda self, state: True
    def allowed_bytes(self, state):
        while True:
            yield 97
Sampler(vocab, Endless()).allowed()""",
    "states": 'Grammar(\'s : x ; x : "(" x ")" | "y" ;\').check(states=10**9)',
    "name of a tool": """
tools = [{"type": "function", "function": {"name": "a" * 1_000_000, "parameters": {"type": "object"}}}]
tokentrie.Model().chat_format.constraint(tools, vocab, tool_choice="required")""",
    "blanks as a marker": """
blanks = " " * 100_000
tokentrie.ChatFormat(
    "{% for m in messages %}<|s|>{{ m.role }}\\\\n{{ m.content }}{% for c in m.tool_calls or [] %}" + blanks
    + "{{ c.function | tojson }}" + blanks + "{% endfor %}<|e|>{% endfor %}"
    "{% if add_generation_prompt %}<|s|>assistant\\\\n{% endif %}{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
)""",
    "long text of a template": """
tokentrie.ChatFormat(
    "{% for m in messages %}<|s|>{{ m.role }}\\\\n{{ m.content }}{{ 'abc' * 5000000 }}<|e|>{% endfor %}"
)""",
}

HEAD = """
import tokentrie
from tokentrie import JsonSchema, Regex, Sampler
from tokentrie.rules import Gbnf, Grammar, Lark
vocab = tokentrie.Model().vocab
print("ready", flush=True)
"""


def some(names: Iterable[str], now: set[str]) -> list[Any]:
    """Those that are tried on each push, one of a kind, and the others at night."""
    return [name if name in now else pytest.param(name, marks=pytest.mark.nightly) for name in names]


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


OF_A_KIND = {"subsets", "gbnf times of times", "lark rules", "pattern", "remainders", "gates in gates", "allowed_bytes"}
OF_A_KIND |= {"blanks as a marker"}


@pytest.mark.parametrize("name", some(RULES, OF_A_KIND))
def test_a_bomb_costs_seconds_and_no_process(name: str) -> None:
    code = HEAD + "try:\n" + "".join(f"    {line}\n" for line in RULES[name].strip().splitlines())
    code += "except tokentrie.TokenTrieError as error:\n    assert len(str(error)) < 3000, len(str(error))\n"
    code += "print('done', flush=True)\nimport os\nos._exit(0)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, preexec_fn=limit_memory
    )
    assert (done.returncode, done.stdout.split()) == (0, ["ready", "done"]), done.stderr[-2000:]


LONG = {
    "Regex": 'Regex("(a|b)*a(a|b){40}", max_bytes=2**62, limits=none)',
    "Grammar": RULES["subsets"].replace("n = 22", "n = 60").replace(".join(lines))", ".join(lines), limits=none)"),
    "Lark": """
parts = " ".join(f"/[a-z]{{{n}}}x/" for n in range(1, 40))
Lark("start: r0\\n" + "".join(f"r{i}: {parts} r{i + 1}\\n" for i in range(9_000)) + "r9000: /x/", limits=none)""",
    "Gbnf": "Gbnf('root ::= [a-z]* \"x\" [a-z]{40}', limits=none)",
    "JsonSchema": """
patterns = [f"^[a-z]{{1,{i % 50 + 1}}}x.{{30}}y$" for i in range(8_000)]
properties = {f"p{i}": {"type": "string", "pattern": pattern} for i, pattern in enumerate(patterns)}
JsonSchema({"type": "object", "properties": properties}, limits=none)""",
    "a mask": 'Sampler(vocab, JsonSchema({"type": "integer", "multipleOf": 999983})).allowed()',
    "a sample": """
import numpy as np
row = np.zeros(len(vocab), dtype=np.float32)
Sampler(vocab, JsonSchema({"type": "integer", "multipleOf": 999983})).sample(row)""",
    "words of a mask": """
import numpy as np
words = np.zeros((len(vocab) + 31) // 32, dtype=np.int32)
Sampler(vocab, JsonSchema({"type": "integer", "multipleOf": 999983})).fill_bitmask(words)""",
    "a batch": """
rows = tokentrie.Batch(JsonSchema({"type": "integer", "multipleOf": 999983}), rows=2, vocab=vocab)
rows.bitmask()""",
    "from_strings": 'tokentrie.Trie.from_strings(vocab, [f"value number {i} {i * 7919}" for i in range(3_000_000)])',
    "from_sequences": """
import numpy as np
rows = np.random.randint(0, 100_000, (12_000_000, 8), dtype=np.int32)
print("made", flush=True)
tokentrie.Trie.from_sequences(rows)""",
    "tokenize": 'vocab.tokenize("hello world " * 20_000_000)',
    "a long prompt": 'tokentrie.Model().generate("hello world " * 20_000_000)',
    "check": """
class Tree(tokentrie.rules.Rule):
    start = lambda self: 1
    step = lambda self, state, byte: state * 2 + byte - 97 if byte in b"ab" else None
    is_end = lambda self, state: True
Tree().check(states=10**9)""",
    "matches": 'Regex("(a|b)*").matches("ab" * 200_000_000)',
    "matches of a schema": """
schema = JsonSchema({"type": "array", "items": {"type": "string", "pattern": "^a*$"}})
text = "[" + '"aaaa", ' * 20_000_000
print("made", flush=True)
schema.matches(text)""",
    "reply": """
template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% for c in m.tool_calls %}<call>"
template += "{{ c.function | tojson }}</call>{% endfor %}\\n{% endfor %}"
format = tokentrie.ChatFormat(template)
text = "<call>" + " " * 300_000_000
print("made", flush=True)
format.parse(text)""",
    "tools": """
values = [str(number) for number in range(6_000_000)]
tool = {"name": "ring", "parameters": {"properties": {"a": {"enum": values}}}}
print("made", flush=True)
tokentrie.Tools([tool])""",
}


@pytest.mark.parametrize("name", some(LONG, {"Regex", "a mask", "from_strings", "check", "matches of a schema"}))
def test_ctrl_c_ends_what_takes_long(name: str) -> None:
    """The signal comes while the call runs; what is left of the process then ends at once."""
    code = HEAD + "none = tokentrie.Limits(bytes=2**62, steps=2**62, seconds=float('inf'))\nimport os, time\ntry:\n"
    code += "".join(f"    {line}\n" for line in LONG[name].strip().splitlines())
    code += "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n    os._exit(0)\n"
    code += "except tokentrie.TokenTrieError as error:\n    assert 'more than' in str(error), error\n"
    code += "print('too fast', flush=True)\nos._exit(0)\n"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if "made" in code:
            assert process.stdout.readline() == "made\n"
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SECONDS)
    assert said in ("interrupted\n", "too fast\n")
    if said == "too fast\n":
        pytest.skip("this machine is too fast for the example")


def test_limits_are_said() -> None:
    chain = "".join(f"r{i} : r{i + 1} ;" for i in range(2000)) + 'r2000 : "x" ;'
    assert Grammar(chain).matches("x")
    with pytest.raises(RuleError, match=r"takes more than 1000 steps: say less with it, or raise the limit \(steps\)"):
        Grammar(chain, limits=Limits(steps=1000))
    with pytest.raises(RuleError, match=r"takes more than 5000 bytes"):
        Grammar(chain, limits=Limits(bytes=5000))
    with pytest.raises(RuleError, match=r"takes more than 0ns"):
        Grammar(chain, limits=Limits(seconds=0))
    with pytest.raises(RuleError, match=r"takes more than 1000 steps"):
        Regex("(a|b)*a(a|b){12}", limits=Limits(steps=1000))
    small = {"pattern": "a"}
    for made in (lambda limits: Lark('start: "a"', limits=limits), lambda limits: JsonSchema(small, limits=limits)):
        with pytest.raises(RuleError, match=r"too large"):
            made(Limits(seconds=0))
    assert Lark("\n".join(f'r{i}: "a"' for i in range(19999)) + "\nstart: r0").matches("a")
    with pytest.raises(RuleError, match=r"takes more than 1000 bytes"):
        Lark('start: "' + "a" * 100 + '"', limits=Limits(bytes=1000))
    with pytest.raises(RuleError, match=r"1025 parts: at most 1024"):
        tokentrie.rules.Concatenation(*["a"] * 1025)
    for wrong in ({"bytes": 2**63}, {"seconds": -1.0}, {"seconds": float("nan")}):
        with pytest.raises((OptionError, OverflowError)):
            Limits(**wrong)


def test_limits_go_with_the_rule() -> None:
    """Into its spec and over to another process: what needs more than the usual limits can be made there too."""
    limits = Limits(bytes=1 << 30, steps=200_000_000, seconds=20.5)
    rules = (
        Regex("[ab]+", limits=limits),
        Grammar('s : "a" ;', limits=limits),
        Lark('start: "a"', limits=limits),
        Gbnf('root ::= "a"', limits=limits),
        JsonSchema({"enum": [1]}, limits=limits),
    )
    for rule in rules:
        again = pickle.loads(pickle.dumps(rule))
        assert again == rule
        assert again.limits == rule.limits == limits
        spec = tokentrie.constraint(rule).to_json()
        assert json.loads(spec)["limits"] == {"bytes": 1 << 30, "steps": 200_000_000, "seconds": 20.5}
        assert tokentrie.constraint(spec).to_json() == spec
    assert Regex("a").limits == Limits()
    assert "limits" not in tokentrie.constraint(Regex("a")).to_json()
    with pytest.raises(RuleError, match=r"\$.regex: .* more than 1000 steps"):
        tokentrie.Model().generate("x", {"regex": "(a|b)*a(a|b){12}", "limits": {"steps": 1000}})


def test_new_rules_of_users_are_given_back() -> None:
    class Digits(tokentrie.rules.Rule):
        def start(self) -> int:
            return 0

        def step(self, state: int, byte: int) -> int | None:
            return state + 1 if 48 <= byte < 58 and state < 3 else None

        def is_end(self, state: int) -> bool:
            return state > 0

    vocab = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)])
    made = []
    gc.disable()
    try:
        for _ in range(1024):
            rule = Digits()
            Sampler(vocab, rule).allowed()
            made.append(weakref.ref(rule))
    finally:
        gc.enable()
    assert sum(rule() is not None for rule in made) <= 300


def test_a_schema_over_many_texts_keeps_what_it_may() -> None:
    vocab = tokentrie.Model().vocab
    schema = JsonSchema({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    for number in range(400):
        sampler = Sampler(vocab, schema)
        for token in vocab.tokenize(f'{{"a": "{number * 7919} and {number}"}}'):
            sampler.allowed()
            sampler.accept(token)
    assert schema.stats(vocab).bytes <= 64 << 20


def test_the_time_of_a_call_ends_what_is_made_for_it() -> None:
    """The grammar alone takes far longer than the call has."""
    size = 60
    lines = ["s : " + " | ".join(f"p{i}" for i in range(size)) + ";"]
    for i in range(size):
        others = " | ".join(f'"a{j}" q{i}' for j in range(size) if j != i)
        lines.append(f'p{i} : q{i} "e{i}" ; q{i} : {others} | "z" ;')
    spec = {"grammar": "\n".join(lines), "limits": {"bytes": 16 << 30, "seconds": 60}}
    model = tokentrie.Model()
    calls = (
        lambda: model.generate("Once", spec, timeout=0.2),
        lambda: model.chat([{"role": "user", "content": "Hello"}], constraint=spec, timeout=0.2),
    )
    for call in calls:
        with pytest.raises(tokentrie.errors.TimedOutError, match=r"timeout of 0.2 s"):
            call()


def test_the_time_of_a_call_begins_before_its_arguments_are_read() -> None:
    """An iterator of millions is not read to its end, and of a list only what there is time for."""
    many, taken = 20_000_000, 0

    def texts() -> Iterator[str]:
        nonlocal taken
        for number in range(many):
            taken = number
            yield f"value number {number}"

    model = tokentrie.Model()
    calls: tuple[Callable[[], object], ...] = (
        lambda: model.choose("It is ", texts(), timeout=0.2),
        lambda: model.generate("It is ", texts(), timeout=0.2),
        lambda: model.decide("It is.", {"what": texts()}, timeout=0.2),
        lambda: model.decide("It is.", {"what": tokentrie.decisions.Question("score", options=texts())}, timeout=0.2),
        lambda: model.decide_many(texts(), {"what": bool}, timeout=0.2),
    )
    for call in calls:
        with pytest.raises(tokentrie.errors.TimedOutError, match=r"the timeout of 0.2 s was over"):
            call()
        assert 0 < taken < many - 1


def test_the_time_of_a_call_holds_while_its_set_is_made() -> None:
    texts = [f"value number {number} {number * 7919}" for number in range(500_000)]
    model = tokentrie.Model()
    began = time.process_time()
    tokentrie.Trie.from_strings(model.vocab, texts[: len(texts) // 5])
    part = time.process_time() - began
    calls: tuple[Callable[[], object], ...] = (
        lambda: model.choose("It is ", texts, timeout=0.1),
        lambda: model.choose([1, 2, 3], texts, timeout=0.1),
        lambda: model.decide("It is.", {"what": texts}, timeout=0.1),
    )
    for call in calls:
        began = time.process_time()
        with pytest.raises(tokentrie.errors.TimedOutError, match=r"the timeout of 0.1 s was over"):
            call()
        assert time.process_time() - began < part


def test_times_that_cannot_be_are_refused_by_decide_as_elsewhere() -> None:
    model = tokentrie.Model()
    for wrong in (-1.0, float("nan")):
        with pytest.raises(OptionError, match=r"timeout is .*: it must be a number of seconds, from 0 up"):
            model.decide("It is.", {"on": bool}, timeout=wrong)
        with pytest.raises(OptionError, match=r"timeout is .*: it must be a number of seconds, from 0 up"):
            model.choose("It is ", ["a"], timeout=wrong)
