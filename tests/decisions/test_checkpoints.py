"""Models that were trained to decide: their own prompt, labels and temperatures, as llama-server reads them.

The judge renders the template with Jinja2 and computes the softmax of the labels' logits in float64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from models import copy_tiny
from tokentrie import Model
from tokentrie.decisions import Question, Score
from tokentrie.errors import OptionError

pytestmark = pytest.mark.model

TEMPLATE = """<|im_start|>user
{{ state if state is string else state | tojson }}
{% for other in questions | default([]) %}[{{ other.id }} {{ other.type }} {{ other.options | length }}]{% endfor %}
{{ id }}, {{ type }}: {{ instructions if instructions is string else instructions | tojson }}
{% for option in options %}{{ option.label | default("-") }}. {{ option.key }}: {%
if option.description is not none %}{{
option.description if option.description is string else option.description | tojson }}{% endif %}
{% endfor %}{{ images | length }}<|im_end|>
<|im_start|>assistant
"""
#: Labels of one token in the tiny model's vocabulary come first in both.
LETTERS = [chr(code) for code in range(65, 91)]
KEYS = {"noul": 1.7, "choice": 2.5, "choice.3_5": 0.6, "choice.small": 3.1, "score": 0.8}
STATE: Any = {"z": "It was lovely.", "a": {"y": 1, "b": [2, None]}}
QUESTIONS: dict[str, Any] = {
    "on": Question("predicate", instructions="Is it good?", options={True: "praise", False: "blame"}),
    "label": Question({"positive": "good", "negative": None, "neutral": {"x": 1}}, instructions="What is it?"),
    "two": Question(["b", "a"], instructions={"ask": "Which?"}),
    "level": Question(Score(["low", "middle", "high", "top"]), instructions="How much?"),
}


def checkpoint(kind: str, **changes: Any) -> Path:
    fields: dict[str, Any] = {f"llama.decision.temperature.{name}": value for name, value in KEYS.items()}
    fields |= {"llama.decision.type": kind, "tokenizer.chat_template.systemone": TEMPLATE}
    name = "-".join([kind, *sorted(changes)])
    return copy_tiny(f"checkpoint-{name}", f32=True, changes=fields | changes)


@pytest.fixture(scope="module", params=["openjev", "lev", "nimble", "pplx-decider"])
def model(request: pytest.FixtureRequest) -> Iterator[tuple[str, Model]]:
    with Model(checkpoint(request.param), n_threads=1, precise=True) as opened:
        yield request.param, opened


def asked(kind: str, name: str, labels: list[str]) -> dict[str, Any]:
    """A question as a template gets it."""
    options: list[tuple[str, Any]]
    if name == "on":
        of, options = "noul", [("false", "blame"), ("true", "praise")]
        options = options[::-1] if kind == "openjev" else options
        instructions: Any = "Is it good?"
    elif name == "label":
        of, options = "choice", [("positive", "good"), ("negative", None), ("neutral", {"x": 1})]
        instructions = "What is it?"
    elif name == "two":
        of, options, instructions = "choice", [("b", None), ("a", None)], {"ask": "Which?"}
    else:
        of, options = "score", [(str(place), level) for place, level in enumerate(["low", "middle", "high", "top"])]
        instructions = "How much?"
    listed = [{"key": key, "description": described} for key, described in options]
    if kind != "openjev":
        listed = [one | {"label": label} for one, label in zip(listed, labels, strict=False)]
    return {"id": name, "type": of, "instructions": instructions, "options": listed}


def sort_keys(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True))


def single_labels(model: Model) -> list[str]:
    codes = LETTERS + [first + second for first in LETTERS for second in LETTERS]
    return [code for code in codes if len(model.vocab.tokenize(code)) == 1]


def expected(kind: str, model: Model, name: str) -> list[float]:
    """The probabilities of the options of a question, in the order of the question."""
    labels = single_labels(model)
    question = asked(kind, name, labels)
    keys = [option["key"] for option in question["options"]]
    count = 9 if (kind, name) == ("lev", "on") else len(keys)
    buckets = "small" if kind == "lev" else "2" if len(keys) <= 2 else "3_5"
    temperature = KEYS.get(f"{question['type']}.{buckets}", KEYS[question["type"]])
    variants = [1, -1] if kind == "lev" and question["type"] == "choice" else [1]
    found = dict.fromkeys(keys, 0.0)
    for step in variants:
        turned = [
            option | ({"label": label} if kind != "openjev" else {})
            for option, label in zip(question["options"][::step], labels, strict=False)
        ]
        given = question | {"options": turned, "state": STATE, "images": []}
        if kind == "nimble":
            given["questions"] = [asked(kind, other, labels) for other in QUESTIONS]
        given = sort_keys(given) if kind == "lev" else given
        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        prompt = environment.from_string(TEMPLATE).render(**given)
        logits = model.logits(model.vocab.tokenize(prompt, parse_special=True))
        scores = [float(logits[model.vocab.tokenize(label)[0]]) / temperature for label in labels[:count]]
        weights = [math.exp(score - max(scores)) for score in scores]
        shares = [weight / sum(weights) for weight in weights]
        if count == 9:
            yes = sum(share * rating / 8 for rating, share in enumerate(shares))
            return [yes, 1 - yes]
        for option, share in zip(turned, shares, strict=True):
            found[option["key"]] += share / len(variants)
    return [found["true"], found["false"]] if name == "on" else [found[key] for key in keys]


def test_letters_are_read_in_the_model_s_own_prompt(model: tuple[str, Model]) -> None:
    kind, opened = model
    answers = opened.decide(STATE, QUESTIONS)
    for name, answer in answers.items():
        assert list(answer.probabilities.values()) == pytest.approx(expected(kind, opened, name), abs=1e-4), name
    assert len(answers["label"].prompts) == (2 if kind == "lev" else 1)
    assert all(0 < answer.mass <= 1 for answer in answers.values())


def test_names_of_control_tokens_stay_text(model: tuple[str, Model]) -> None:
    _, opened = model
    plain, named = (opened.decide(state, {"on": bool})["on"].prompts[0].tokens for state in ("x", "<|im_end|>x"))
    [end] = opened.vocab.tokenize("<|im_end|>", parse_special=True)
    assert plain.count(end) == named.count(end)


def test_what_the_prompt_has_no_place_for_is_refused(model: tuple[str, Model]) -> None:
    _, opened = model
    given: list[tuple[str, Any]] = [
        ("system", "Be brief."),
        ("prompt", "{state}"),
        ("prefix", "So:"),
        ("examples", [("s", {"on": True})]),
        ("list_options", False),
        ("end", "required"),
        ("escalate", 0.5),
    ]
    for name, value in given:
        with pytest.raises(OptionError, match=f"{name}.* is not supported: the model was trained to decide in its own"):
            opened.decide("s", {"on": bool}, **{name: value})
    many = {"many": [f"option {number}" for number in range(400)]}
    with pytest.raises(OptionError, match='the question "many": there are 400 options: this model has'):
        opened.decide("s", many)
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
    with pytest.raises(OptionError, match=r'a part of the type "image_url", which is not supported'):
        opened.decide(picture, {"on": bool})


@pytest.mark.parametrize("kind", ["kev", "laya", "clef", "lfm2-d1-omni"])
def test_types_that_read_hidden_states_are_refused_by_name(kind: str) -> None:
    with (
        Model(checkpoint(kind), n_threads=1) as opened,
        pytest.raises(
            OptionError, match=f'a decision checkpoint of the type "{kind}" is not supported: .* (states|head)'
        ),
    ):
        opened.decide("s", {"on": bool})


def test_faulty_files_say_what_is_wrong() -> None:
    faults: list[tuple[str, dict[str, Any], str]] = [
        ("jeff", {}, 'unknown decision.type "jeff".*expected openjev, lev, nimble or pplx-decider'),
        ("lev", {"tokenizer.chat_template.systemone": None}, 'has no template "systemone"'),
        ("lev", {"llama.decision.temperature.noul": -1.0}, r"invalid llama\.decision\.temperature\.noul: expected"),
        ("nimble", {"tokenizer.chat_template.systemone": "{% if %}"}, 'template "systemone": '),
    ]
    for kind, changes, said in faults:
        with Model(checkpoint(kind, **changes), n_threads=1) as opened, pytest.raises(OptionError, match=said):
            opened.decide("s", {"on": bool})


FILES_TEMPLATE = """<|im_start|>user
{{ state if state is string else state | tojson }}<|split|>
{{ question.type }} {{ question.name }}: {{ question.instructions }}
{% for option in question.options %}{{ question.labels[loop.index0] }}) {{ option }}{{
" " ~ question.descriptions[loop.index0] if question.descriptions[loop.index0] }}
{% endfor %}{{ messages | length }}<|im_end|>
<|im_start|>assistant
[decision]:<|mark|>{{ "" }}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.gguf").write_bytes(copy_tiny("beside", f32=True).read_bytes())
    settings = {
        "temperature": {"choice": 1.5},
        "labels": {"score": ["0", "1", "2"], "noul": ["B", "A"]},
        "adapter": None,
    }
    (tmp_path / "decision.json").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "decision_template.jinja").write_text(FILES_TEMPLATE, encoding="utf-8")
    return tmp_path


def test_decision_json_beside_a_model_is_read(folder: Path) -> None:
    with Model(folder / "model.gguf", n_threads=1, precise=True) as opened:
        vocab = opened.vocab
        answers = opened.decide(
            "It is <|mark|> on.",
            {"pick": Question({"red": "warm", "blue": None}, instructions="Which?"), "much": Score(["few", "many"])},
        )
        parts = [
            "<|im_start|>user\nIt is ",
            "<|mark|>",
            " on.",
            "\nchoice pick: Which?\nA) red warm\nB) blue\n1<|im_end|>\n<|im_start|>assistant\n[decision]:",
        ]
        assert opened.vocab.detokenize(answers["pick"].prompts[0].tokens) == "".join(parts)
        logits = opened.logits(answers["pick"].prompts[0].tokens)
        first, second = (float(logits[vocab.tokenize(label)[0]]) / 1.5 for label in "AB")
        assert answers["pick"].probabilities["red"] == pytest.approx(1 / (1 + math.exp(second - first)), abs=1e-4)
        assert "0) 0 few\n1) 1 many" in vocab.detokenize(answers["much"].prompts[0].tokens)
        assert answers["much"].prompts[0].values == ["0", "1"]
        with pytest.raises(OptionError, match="there are 4 options: this model has 3 labels"):
            opened.decide("s", {"much": Score(["a", "b", "c", "d"])})


def test_files_beside_a_model_are_read_once(folder: Path) -> None:
    with Model(folder / "model.gguf", n_threads=1, precise=True) as opened:
        first = opened.decide("It is on.", {"on": bool})["on"].probability
        (folder / "decision.json").write_text("{", encoding="utf-8")
        (folder / "decision_template.jinja").unlink()
        assert opened.decide("It is on.", {"on": bool})["on"].probability == first
    with Model(folder / "model.gguf", n_threads=1) as opened, pytest.raises(OptionError, match=r"decision\.json: EOF"):
        opened.decide("It is on.", {"on": bool})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("decision.json", "{", "decision.json: EOF while parsing"),
        ("decision.json", '{"noul_options": ["true"]}', 'noul_options must order "true" and "false"'),
        ("decision.json", '{"temperature": {"noul": 0}}', "invalid temperature.noul: expected a number above 0"),
        ("decision.json", '{"labels": {"noul": ["certainly not", "x"]}}', 'the label "certainly not" is not one token'),
        ("decision_template.jinja", None, "there is no decision_template.jinja beside it"),
        ("decision_template.jinja", "a<|mark|>b<|mark|>", "marks 2 places for one question, so hidden states"),
    ],
)
def test_faulty_files_beside_a_model_are_named(folder: Path, name: str, text: str | None, said: str) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text, encoding="utf-8")
    with Model(folder / "model.gguf", n_threads=1) as opened, pytest.raises(OptionError, match=said):
        opened.decide("s", {"on": bool})


def test_images_are_refused_by_name_by_a_plain_model() -> None:
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
    with Model(n_threads=1) as opened, pytest.raises(OptionError, match="image"):
        opened.decide(picture, {"on": bool})
