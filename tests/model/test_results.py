"""Results and settings are pickled, copied, compared and shown; mistakes name a way out."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import tokentrie
from support import public_names
from tokentrie import ChatFormat, Form, JsonSchema, Message, Model, Regex, Sampler, Sampling, Slot, Text, Tools, Trie
from tokentrie.errors import ContextError, OptionError, TokenTrieWarning, TrieError
from tokentrie.results import ToolCall
from tokentrie.rules import Gbnf, Grammar, Integer, Lark, Number, OneOf, String
from tokentrie.sets import TrieCache
from wasm_modules import IMEI

pytestmark = pytest.mark.model
COLOURS = ["blue", "red", "green"]
CHAT = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=512, n_threads=1)


def form() -> Form:
    return Form("a ", Slot("colour", COLOURS), " thing: ", Text("note", stop="\n", max_tokens=3, exclude="x"))


ASKED: dict[str, Any] = {"on": bool, "size": tokentrie.decisions.Score(["small", "large"])}


def calibrated(model: Model) -> tokentrie.decisions.Calibration:
    return model.calibrate(["It is on.", "It is off."] * 5, {"on": bool}, {"on": [True, False] * 5})


MAKE: dict[str, Callable[[Model], Any]] = {
    "generated": lambda model: model.generate("The sky is ", COLOURS),
    "filled": lambda model: model.generate("The sky is ", form(), probabilities=True),
    "stats": lambda model: model.generate("The sky is ", COLOURS).stats,
    "step": lambda model: steps(model)[0],
    "token logprob": lambda model: model.generate("The sky is ", COLOURS, logprobs=2).logprobs[0],
    "choice": lambda model: model.choose("The sky is ", COLOURS),
    "choice of a few": lambda model: model.choose("The sky is ", [f"value {i}" for i in range(50)], top=2, max_rows=3),
    "choice without names": lambda model: model.choose("Hi ", Trie.from_sequences([[5], [6, 7]])),
    "choice stats": lambda model: model.choose("The sky is ", COLOURS).stats,
    "probability": lambda model: model.probability("The sky is ", COLOURS),
    "text probability": lambda model: model.probability("The sky is ", COLOURS, text="blue").text,
    "correction": lambda model: model.generate("The sky is ", COLOURS, correct=4, seed=1).correction,
    "leaf": lambda model: model.generate("The sky is ", COLOURS).leaf,
    "slot": lambda _: Slot("colour", COLOURS),
    "slot of a trie": lambda _: Slot("colour", Trie.from_sequences([[5], [6, 7]], names=["a", "b"])),
    "text": lambda _: Text("note", stop='"', max_tokens=9),
    "form": lambda _: form(),
    "cache info": lambda _: TrieCache().cache_info(),
    "form with rules": lambda _: Form(Slot("n", Regex("[0-9]")), Text("a", stop=";", pattern="[a-z]")),
    "regex": lambda _: Regex("[a-z]+"),
    "grammar": lambda _: Grammar.example("json"),
    "integer": lambda _: Integer(-1, 9),
    "number": lambda _: Number(fraction_digits=2),
    "number of a range": lambda _: Number(-1, 2.5, fraction_digits=2),
    "date": lambda _: tokentrie.rules.Date(),
    "time": lambda _: tokentrie.rules.Time("09:00", timespec="minutes"),
    "date time": lambda _: tokentrie.rules.DateTime(utc=True),
    "string": lambda _: String(max_chars=9),
    "one of": lambda _: OneOf(Integer(0, 9), ["many", "none"], "some"),
    "concatenation": lambda _: Integer(0, 9) + " kg",
    "schema": lambda _: JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}}),
    "lark": lambda _: Lark("start: /[a-z]+/"),
    "gbnf": lambda _: Gbnf('root ::= "(" root ")" | [a-z]+'),
    "rule stats": lambda model: Regex("a").stats(model.vocab),
    "sampling": lambda _: Sampling("sampled", temperature=0.5),
    "repeat": lambda _: tokentrie.rules.Repeat(["a", "b"], 1, 3, ", "),
    "date in a format": lambda _: tokentrie.rules.Date("2024-01-01", format="%d.%m.%Y"),
    "choice below a threshold": lambda model: model.choose("The sky is ", COLOURS, threshold=1),
    "message": lambda model: model.chat(CHAT, max_tokens=4),
    "message with calls": lambda _: Message(
        "a", "b", [ToolCall("1", "ring", "{}", 0.5, {"tone": 0.25})], ["odd"], "stop"
    ),
    "tool call": lambda _: ToolCall("1", "ring", "{}"),
    "chat stats": lambda model: model.chat(CHAT, max_tokens=4).stats,
    "chat event": lambda model: model.chat_format.parser().push("Ding")[0],
    "chat prompt": lambda model: model.chat_format.prompt(CHAT),
    "chat analysis": lambda model: model.chat_format.analysis,
    "answers": lambda model: model.decide("It is on.", ASKED),
    "answer": lambda model: model.decide("It is on.", ASKED)["on"],
    "asked prompt": lambda model: model.decide("It is on.", ASKED)["on"].prompts[0],
    "calibration": lambda model: calibrated(model),
    "fitted": lambda model: calibrated(model).questions["on"],
    "measures": lambda model: calibrated(model).questions["on"].before,
    "bin": lambda model: calibrated(model).questions["on"].before.bins[0],
    "decision stats": lambda model: model.decide("It is on.", ASKED).stats,
    "question": lambda _: tokentrie.decisions.Question(bool, instructions="Is it on?"),
    "score": lambda _: tokentrie.decisions.Score(["low", "high"]),
    "tools": lambda _: Tools([{"name": "ring"}]),
    "chat format": lambda _: ChatFormat("{% for m in messages %}{{ m.content }}{% endfor %}"),
    "chat constraint": lambda model: ChatFormat(model.chat_template).constraint([{"name": "ring"}], tool_choice="ring"),
}


def steps(model: Model) -> list[tokentrie.results.Step]:
    seen: list[tokentrie.results.Step] = []
    model.generate("The sky is ", COLOURS, on_step=seen.append)
    return seen


@pytest.mark.parametrize("name", MAKE)
def test_copies_are_equal(model: Model, name: str) -> None:
    made = MAKE[name](model)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(made, protocol))
        assert again == made
        assert repr(again) == repr(made)
        for member in dir(made):
            if not member.startswith("_") and not callable(getattr(made, member)):
                np.testing.assert_equal(getattr(again, member), getattr(made, member))
    assert copy.copy(made) == copy.deepcopy(made) == made
    assert made != 5
    assert made != copy.copy(MAKE["leaf"](model)) or name == "leaf"


@pytest.mark.parametrize("name", ["slot", "text", "form", "leaf", "sampling"])
def test_what_is_given_is_hashed_by_content(model: Model, name: str) -> None:
    assert len({MAKE[name](model), MAKE[name](model)}) == 1


def test_what_differs_is_not_equal(model: Model) -> None:
    assert Slot("a", ["x"]) != Slot("a", ["y"])
    assert Slot("a", ["x"]) != Slot("b", ["x"])
    assert Text("a", stop="x") != Text("a", stop="y")
    assert Form(Slot("a", ["x"])) != Form("b", Slot("a", ["x"]))
    one, other = (model.generate("The sky is ", [value]) for value in ("blue", "red"))
    assert one != other
    assert model.choose("The sky is ", ["a", "b"]) != model.choose("The sky is ", ["a", "c"])


def test_a_copied_form_works(model: Model) -> None:
    out, again = (model.generate("Next ", form) for form in (form(), pickle.loads(pickle.dumps(form()))))
    assert out.text == again.text


def test_every_class_shows_what_it_holds(model: Model) -> None:
    trie = Trie.from_strings(model.vocab, COLOURS)
    made = [make(model) for make in MAKE.values()]
    made += [model, model.vocab, trie, Sampler(model.vocab, trie), TrieCache(), tokentrie.CancelToken()]
    made += [trie.filtered(deny=[0]), trie.leaf_set([0]), tokentrie.rules.ThinkGate([1], [2], vocab=model.vocab)]
    made += [
        tokentrie.constraint({"date": {}}),
        tokentrie.rules.Rule(),
        tokentrie.Batch(trie, rows=1, vocab=model.vocab),
    ]
    made += [tokentrie.sets.LiveSet(trie), tokentrie.rules.WasmRule(IMEI)]
    made += [model.decide("It is on.", {"on": bool}, escalate=1.0, think_tokens=4)["on"].thought]
    made += [
        tokentrie.streaming.Detokenizer(model.vocab),
        model.choose_many(["a"], COLOURS),
        tokentrie.rules.Unconstrained(),
    ]
    made += (
        [tokentrie.rules.Sequence(trie, trie), tokentrie.ChatTemplate("x")]
        if hasattr(tokentrie, "ChatTemplate")
        else []
    )
    explanation = model.explain("The sky is ", COLOURS)
    made += [
        explanation,
        model.explain([{"role": "user", "content": "Is it blue?"}], COLOURS, thinking_budget=0),
        *explanation.tokens[:1],
        model.chat_format.parser(),
        tokentrie.run_tools(model, CHAT, [], max_tokens=4),
    ]
    with model.stream("a", COLOURS) as stream, tokentrie.Model().chat(CHAT, stream=True, max_tokens=4) as events:
        made += [stream, events, tokentrie.Limits(), tokentrie.Model(slots=2).engine]
    for value in made:
        assert " object at 0x" not in repr(value)
    classes = {type(value) for value in made}
    public = {
        found
        for found in public_names().values()
        if inspect.isclass(found) and not issubclass(found, BaseException | Warning)
    }
    assert {cls.__name__ for cls in public - classes} <= {
        "Sequence",
        "Choices",
        "ToolStream",
        "ResponseParser",
        "ResponseTemplate",
        "ChatTemplate",
        "Constraint",
        "Hypothesis",
        "TrieArrays",
    }


class TestChoice:
    def test_values_by_name_and_number(self, model: Model) -> None:
        choice = model.choose("The sky is ", COLOURS)
        assert choice.names == COLOURS
        assert len(choice) == 3
        for index, name in enumerate(COLOURS):
            assert choice[name] == choice[index] == choice[index - 3] == choice.probabilities[name]
        assert choice[choice.name] == choice.probability == max(choice.probabilities.values())
        assert [name for name, _ in choice.items()] == [COLOURS[i] for i in choice.ranking]
        assert dict(choice.items())["red"] == choice["red"]
        with pytest.raises(KeyError, match="no value has the name 'pink'"):
            choice["pink"]
        for index in (3, -4):
            with pytest.raises(IndexError, match=f"value {index} of 3"):
                choice[index]
        with pytest.raises(TypeError):
            choice[1.5]  # type: ignore[index]

    def test_as_json(self, model: Model) -> None:
        choice = model.choose("The sky is ", COLOURS)
        read = json.loads(json.dumps(choice.to_dict()))
        assert read["name"] == read["value"] == choice.name
        assert read["reason"] is None
        assert read["probabilities"] == dict(choice.items())
        assert read["stats"]["rows"] == choice.stats.rows

    def test_without_names(self, model: Model) -> None:
        choice = model.choose("Hi ", Trie.from_sequences([[5], [6, 7]]))
        assert choice.names is None
        assert sorted(index for index, _ in choice.items()) == [0, 1]

    def test_a_table(self, model: Model) -> None:
        values = [f"<b>&{number}" for number in range(30)]
        html = model.choose("The sky is ", values)._repr_html_()
        table = ElementTree.fromstring(html)
        assert len(table.findall("tr")) == 22
        assert table.findall("tr")[1].findall("td")[0].text in values
        assert table.findall("tr")[-1].findall("td")[0].text == "and 10 more"


def test_a_trie_is_drawn_in_notebooks(model: Model) -> None:
    trie = Trie.from_strings(model.vocab, COLOURS)
    assert trie._repr_svg_() == trie.to_svg()
    assert ElementTree.fromstring(trie._repr_svg_()).tag.endswith("svg")


@pytest.mark.parametrize(
    "given",
    [
        lambda: tuple(COLOURS),
        lambda: set(COLOURS),
        lambda: frozenset(COLOURS),
        lambda: dict.fromkeys(COLOURS).keys(),
        lambda: dict(enumerate(COLOURS)).values(),
        lambda: (colour for colour in COLOURS),
        lambda: iter(COLOURS),
        lambda: np.array(COLOURS),
        lambda: np.array(COLOURS, dtype=object),
    ],
)
def test_every_iterable_of_str_is_a_list(model: Model, given: Callable[[], Any]) -> None:
    expected = model.choose("The sky is ", COLOURS)
    choice = model.choose("The sky is ", given())
    assert choice.name == expected.name
    assert choice[choice.name] == expected[choice.name]
    out = model.generate("The sky is ", given())
    assert out.text == model.generate("The sky is ", COLOURS).text
    assert Sampler(model.vocab, given()).allowed().tolist() == Sampler(model.vocab, COLOURS).allowed().tolist()
    filled = model.generate("The sky is ", Form("very ", Slot("colour", given())))
    assert filled.values["colour"] in COLOURS
    assert len(Trie.from_strings(model.vocab, given())) == 3


def test_a_series_is_a_list(model: Model) -> None:
    pandas = pytest.importorskip("pandas", reason="the package pandas is not installed")
    assert model.choose("The sky is ", pandas.Series(COLOURS)).names == COLOURS


@pytest.mark.parametrize("wrong", ["blue", b"blue", 5, {"blue": 1}, [1, 2], {1}])
def test_what_is_no_list_is_refused_by_name(model: Model, wrong: Any) -> None:
    for call in (model.generate, model.choose):
        with pytest.raises((TypeError, tokentrie.TokenTrieError), match=r"list of str|payload|value 0|str"):
            call("The sky is ", wrong)


def calls(model: Model, values: list[str]) -> list[Callable[[], object]]:
    return [
        lambda: model.generate("The sky is ", values),
        lambda: model.choose("The sky is ", values),
        lambda: list(model.choose_many(["The sky is "], values)),
        lambda: model.generate("The sky is ", Form("very ", Slot("colour", values))),
    ]


def test_repeated_and_empty_values_are_refused_alike(model: Model) -> None:
    for call in calls(model, ["blue", "red", "blue"]):
        with pytest.raises(TrieError, match='value 2, "blue", repeats value 0'):
            call()
    made = [lambda: Trie.from_strings(model.vocab, ["blue", ""]), lambda: Sampler(model.vocab, ["blue", ""])]
    for call in [*calls(model, ["blue", ""])[:3], *made]:
        with pytest.raises(TrieError, match="value 1 is empty: leave it out, or give a suffix"):
            call()
    assert model.choose("The sky is ", ["blue", ""], suffix=".").names == ["blue", ""]


def test_a_prompt_of_which_nothing_would_be_left(model: Model) -> None:
    vocab = model.vocab
    first = next(
        text
        for token in range(len(vocab))
        if (text := vocab[token].decode(errors="replace")).isalpha()
        and len(text) > 1
        and len(vocab.tokenize(text[:1])) == 1
        and vocab.tokenize(text) == [token]
    )
    prompt, values = first[:1], [first[1:], "zz"]
    trie = Trie.from_strings(vocab, values, prefix=prompt, heal=True)
    for constraint in (values, trie):
        for call in (model.generate, model.choose):
            with pytest.raises(OptionError, match=r"that is all of the prompt.*put text before it"):
                call(prompt, constraint)
            call(f"a {prompt}", values)


def test_a_prefix_that_is_not_there(model: Model) -> None:
    tokens = model.vocab.tokenize("The sky is ")
    assert model.choose(tokens, COLOURS, prefix="is ").name in COLOURS
    with pytest.raises(OptionError, match='the prefix is "was ", but the prompt ends with'):
        model.choose(tokens, COLOURS, prefix="was ")


def test_settings_without_effect_are_warned_of(model: Model) -> None:
    for options, said in (
        ({"temperature": 0.5}, "temperature has"),
        ({"top_k": 5, "top_p": 0.5}, "top_k and top_p have"),
    ):
        with pytest.warns(TokenTrieWarning, match=f'{said} no effect with mode="greedy"'):
            model.generate("The sky is ", COLOURS, mode="greedy", **options)  # type: ignore[arg-type]
        with pytest.warns(TokenTrieWarning, match=said):
            Sampler(model.vocab, COLOURS, sampling=Sampling("greedy", **options))  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.generate("The sky is ", COLOURS, temperature=1.0, seed=5)
        model.generate("The sky is ", COLOURS, mode="sampled", temperature=0.5)
        Sampling(temperature=0.5).replace(mode="sampled")


def test_a_context_that_is_too_small_says_what_to_raise(tiny_path: Path) -> None:
    small = Model(tiny_path, n_ctx=32, n_threads=1)
    for call in (lambda: small.generate([5] * 33), lambda: small.choose([5] * 32, ["one more", "two"])):
        with pytest.raises(ContextError, match="a Model with a larger n_ctx has more"):
            call()


def test_rows_of_other_kinds(model: Model) -> None:
    n_vocab = len(model.vocab)
    row = np.random.default_rng(0).standard_normal(n_vocab).astype(np.float32)
    expected = Sampler(model.vocab, COLOURS).sample(row.astype(np.float16).astype(np.float32))
    assert Sampler(model.vocab, COLOURS).sample(row.astype(np.float16)) == expected
    assert Sampler(model.vocab, COLOURS).sample(row[None]) == Sampler(model.vocab, COLOURS).sample(row)
    assert Sampler(model.vocab, COLOURS).advance(row.astype(np.float16)[None])
    for wrong in (row.astype(np.float64), row.astype(np.int32)):
        with pytest.raises(TypeError, match=r'array\.astype\("float32"\)'):
            Sampler(model.vocab, COLOURS).sample(wrong)
    with pytest.raises(TypeError, match=r'array\.astype\("float32"\)'):
        Sampler(model.vocab, COLOURS).apply(row.astype(np.float16))
    with pytest.raises(ValueError, match="shape"):
        Sampler(model.vocab, COLOURS).sample(np.stack([row, row]))
