"""Forms: literals, slots and free text become one text, with the tokens that the tokenizer gives it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models import VOCABULARIES, random_path
from support import payload
from tokentrie import Form, Model, Slot, Text, Trie

ACTIONS = ["REPLY", "REPLY_THREAD", "STOP", "SEND_MAIL"]
PEOPLE = ["ann", "anna", "bob", "Zoë"]
PROMPT = "<|im_start|>user\nTell Anna.<|im_end|>\n<|im_start|>assistant\n"
MAIL = Form('{"action": "', Slot("action", ACTIONS), '", "to": "', Slot("to", PEOPLE), '"}')


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=512, n_threads=1)


def spelled(model: Model, tokens: list[int]) -> str:
    return b"".join(model.vocab[token] for token in tokens).decode()


def draws(model: Model, form: Form, seeds: int = 20, temperature: float = 4.0) -> list[tokentrie.Generated]:
    return [model.generate(PROMPT, form, mode="sampled", seed=seed, temperature=temperature) for seed in range(seeds)]


@pytest.mark.model
def test_a_json_form_gives_json(model: Model) -> None:
    outs = [model.generate(PROMPT, MAIL), model.generate(PROMPT, MAIL, mode="exact"), *draws(model, MAIL, 40, 8.0)]
    for out in outs:
        assert out.values == json.loads(out.text)
        assert out.values["action"] in ACTIONS
        assert out.values["to"] in PEOPLE
        assert out.tokens == model.vocab.tokenize(out.text)
        assert out.canonical
        assert (out.finish, out.leaf) == ("span", None)
    assert {out.values["action"] for out in outs} == set(ACTIONS)
    assert {out.values["to"] for out in outs} == set(PEOPLE)


@pytest.mark.model
def test_a_sampler_walks_a_form(model: Model) -> None:
    """Token by token, as a host does that can take none back."""
    out, sampler, tokens = model.generate(PROMPT, MAIL), tokentrie.Sampler(model.vocab, MAIL), []
    prompt = model.vocab.tokenize(PROMPT, parse_special=True)
    assert sampler.values == {}
    while sampler.state == "active":
        tokens.append(sampler.sample(model.logits([*prompt, *tokens])))
        sampler.accept(tokens[-1])
    assert tokens == out.tokens
    assert [leaf.name for leaf in sampler.leaves] == list(out.values.values())
    assert sampler.values == out.values
    sampler.rollback(3)
    assert sampler.accept(tokens[-3:]) is None
    assert sampler.state == "complete"


@pytest.mark.model
def test_free_text_that_is_walked_stays_inside_its_part(model: Model) -> None:
    form = Form('{"note": "', Text("note", stop='"', max_tokens=6), '", "sure": ', Slot("sure", ["1", "10"]), "}")
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(30):
        sampler, tokens = tokentrie.Sampler(model.vocab, form), []
        while sampler.state == "active":
            tokens.append(sampler.sample(rng.normal(size=len(model.vocab)).astype(np.float32)))
            sampler.accept(tokens[-1])
        said = json.loads(spelled(model, tokens))
        assert [leaf.name for leaf in sampler.leaves] == [said["note"], str(said["sure"])]
        assert sampler.values == {"note": said["note"], "sure": str(said["sure"])}
        seen.add(said["note"])
    assert len(seen) > 10
    with pytest.raises(TypeError, match="a form needs a Vocab"):
        tokentrie.Sampler(len(model.vocab), form)


@pytest.mark.model
def test_forms_without_free_text_are_chosen_as_a_whole(model: Model) -> None:
    form = Form("<", Slot("a", ["x", "yy"]), ":", Slot("b", tokentrie.rules.Integer(1, 2)), ">")
    choice = model.choose(PROMPT, form)
    texts = ["<x:1>", "<x:2>", "<yy:1>", "<yy:2>"]
    assert sorted(choice.names) == texts
    listed = model.choose(PROMPT, texts)
    for name, share in choice.probabilities.items():
        assert abs(share - listed.probabilities[name]) < 1e-6
    with pytest.raises(tokentrie.errors.TrieError, match="cannot be listed"):
        model.choose(PROMPT, Form(Text("t", stop=".")))


@pytest.mark.model
def test_literals_cost_no_forward_pass(model: Model) -> None:
    out = model.generate(
        PROMPT, Form('{"action": "', Slot("action", ["STOP"]), '", "sure": ', Slot("sure", ["1"]), "}")
    )
    assert out.text == '{"action": "STOP", "sure": 1}'
    assert (out.stats.forward_passes, out.stats.sampled_tokens) == (0, 0)
    assert out.stats.forward_passes_saved == out.stats.forced_tokens == len(out.tokens)


@pytest.mark.model
def test_a_slot_is_walked_as_its_trie(model: Model) -> None:
    """The naive twin: the same walk, one set at a time, each with all that stands before it."""
    out = model.generate(PROMPT, MAIL)
    text = '{"action": "'
    for name, values, after in (("action", ACTIONS, '", "to": "'), ("to", PEOPLE, '"}')):
        before = model.vocab.tokenize(text)
        rows = [model.vocab.tokenize(text + value + after) for value in values]
        common = len(before)
        while any(row[:common] != before[:common] for row in rows):
            common -= 1
        prompt = model.vocab.tokenize(PROMPT, parse_special=True) + before[:common]
        walk = model.generate(prompt, Trie.from_sequences([row[common:] for row in rows], names=values))
        assert walk.leaf is not None
        assert walk.leaf.name == out.values[name]
        text += out.values[name] + after
    assert out.text == text


@pytest.mark.model
def test_probabilities_are_those_of_choose(model: Model) -> None:
    out = model.generate(PROMPT, MAIL, probabilities=True)
    prompt = model.vocab.tokenize(PROMPT, parse_special=True)
    before = '{"action": "' + out.values["action"] + '", "to": "'
    for name, values, text, suffix in (
        ("action", ACTIONS, '{"action": "', '", "to": "'),
        ("to", PEOPLE, before, '"}'),
    ):
        choice = model.choose(prompt + model.vocab.tokenize(text), values, suffix=suffix)
        assert [*out.probabilities[name]] == values
        assert abs(sum(out.probabilities[name].values()) - 1) < 1e-6
        assert out.probabilities[name] == pytest.approx(choice.probabilities, abs=0.05)
    exact = model.generate(PROMPT, MAIL, mode="exact", probabilities=True)
    for name in ("action", "to"):
        assert exact.values[name] == max(exact.probabilities[name], key=exact.probabilities[name].__getitem__)


@pytest.mark.model
def test_probabilities_beside_slots_of_endless_rules(model: Model) -> None:
    name, kind = Slot("name", tokentrie.Regex("[a-z]{1,9}")), Slot("kind", ["x", "y"])
    day = Slot("day", tokentrie.rules.Date())
    form = Form('{"name": "', name, '", "day": "', day, '", "kind": "', kind, '"}')
    plain = model.generate("A record: ", form)
    out = model.generate("A record: ", form, probabilities=True)
    assert out.values == plain.values
    assert out.tokens == plain.tokens
    assert list(out.probabilities) == ["kind"]
    assert sum(out.probabilities["kind"].values()) == pytest.approx(1)
    with pytest.raises(tokentrie.errors.OptionError, match=r'slot "name": .* has more than 65536 values'):
        model.generate("A record: ", form, mode="exact")


@pytest.mark.model
def test_forms_in_forms(model: Model) -> None:
    inner = Form("(", Slot("x", ["1", "2"]), ", ", Slot("y", tokentrie.rules.Integer(1, 9)), ")")
    form = Form("from ", inner, " to ", Slot("where", ["A", "B"]))
    flat = Form("from (", *inner.parts[1:], " to ", Slot("where", ["A", "B"]))
    assert len(form.parts) == 8
    out = model.generate("Move ", form)
    assert list(out.values) == ["x", "y", "where"]
    assert out.values == model.generate("Move ", flat).values
    assert tokentrie.constraint(form) == tokentrie.constraint({"form": ["from ", tokentrie.constraint(inner).to_dict(),
        " to ", {"slot": "where", "value": {"choice": ["A", "B"]}}]})  # fmt: skip
    with pytest.raises(tokentrie.errors.OptionError, match="two parts of the form have the name"):
        Form(inner, inner)
    with pytest.raises(TypeError, match="put it into this form as a part, without a slot"):
        Slot("inner", inner)


@pytest.mark.model
def test_a_form_after_thinking_has_its_values(model: Model) -> None:
    form = Form('{"day": "', Slot("day", tokentrie.rules.Date()), '", "n": ', Slot("n", int | None), "}")
    gate = tokentrie.rules.ThinkGate("<think>", "</think>", budget=3, then=form)
    out = model.generate("When? <think>", gate, max_tokens=80)
    assert list(out.values) == ["day", "n"]
    assert out.values["day"].isoformat() in out.text
    assert out.value is None
    cut = model.generate("When? <think>", gate, max_tokens=10)
    assert cut.values == {}
    with pytest.raises(TypeError, match="not object"):
        tokentrie.rules.ThinkGate("<think>", "</think>", then=object())


@pytest.mark.model
def test_optional_slots_and_values_that_others_go_on_from(model: Model) -> None:
    form = Form("say ", Slot("what", ["yes", "yes, please", "no"]), Slot("mark", ["", "!", "!!"]), "\n")
    outs = draws(model, form, 60, 8.0)
    for out in outs:
        assert out.text == f"say {out.values['what']}{out.values['mark']}\n"
    assert {out.values["what"] for out in outs} == {"yes", "yes, please", "no"}
    assert {out.values["mark"] for out in outs} == {"", "!", "!!"}


@pytest.mark.model
def test_a_form_may_end_with_a_slot(model: Model) -> None:
    form = Form("to ", Slot("to", ["ann", "anna"]))
    assert {out.values["to"] for out in draws(model, form, 40, 8.0)} == {"ann", "anna"}


@pytest.mark.model
def test_free_text_stops_and_keeps_json_whole(model: Model) -> None:
    form = Form('{"note": "', Text("note", stop='"', max_tokens=8), '", "to": "', Slot("to", PEOPLE), '"}')
    outs = draws(model, form, 60, 2.0)
    for out in outs:
        assert json.loads(out.text) == out.values
        assert spelled(model, out.tokens) == out.text
        assert not set('"\\\n') & set(out.values["note"])
    assert len({out.values["note"] for out in outs}) > 5
    greedy = model.generate(PROMPT, form)
    assert greedy.values == model.generate(PROMPT, form).values


@pytest.mark.model
def test_the_stop_is_no_part_of_the_text(model: Model) -> None:
    form = Form("a: ", Text("a", stop=" ", max_tokens=20), "; b: ", Text("b", stop="e", max_tokens=20, exclude="xyz"))
    for out in draws(model, form, 40, 1.5):
        assert out.text == f"a: {out.values['a']}; b: {out.values['b']}"
        assert " " not in out.values["a"]
        assert not set("exyz") & set(out.values["b"])


STOPS = st.lists(st.sampled_from([" ", "e", "th", ". ", "the ", "\n", "he"]), min_size=2, max_size=4, unique=True)


@pytest.mark.model
@settings(max_examples=cases(150), deadline=None)
@given(stops=STOPS, seed=st.integers(0, 99), pattern=st.sampled_from([None, "[ -~]{0,30}"]))
@example(stops=["the ", "e"], seed=97, pattern=None)
def test_the_first_of_several_stops_that_is_written_counts(
    model: Model, stops: list[str], seed: int, pattern: str | None
) -> None:
    def filled(stop: str | list[str]) -> str:
        form = Form("It is: ", Text("a", stop=stop, max_tokens=12, pattern=pattern), "; ", Slot("b", ["x", "y"]))
        out = model.generate(PROMPT, form, mode="sampled", seed=seed, temperature=1.5)
        assert out.text == f"It is: {out.values['a']}; {out.values['b']}"
        return str(out.values["a"])

    # What is drawn does not depend on what ends it. Of "the " and "e" the second is whole before the first; of those
    # that end together the longest counts.
    whole, together = filled("\x07"), filled(stops)
    if pattern is None:
        found = [(at + len(stop), at) for stop in stops if (at := whole.find(stop)) >= 0]
        assert together == (whole[: min(found)[1]] if found else whole)
    assert not any(stop in together for stop in stops)


@pytest.mark.model
@pytest.mark.parametrize("seed", range(20))
def test_a_sampler_ends_a_text_at_any_of_its_stops(model: Model, seed: int) -> None:
    """No token is taken back there: what ended the text stays, where the literal behind it does not begin with it."""
    form = Form("a: ", Text("a", stop=["; ", "e", "\n"], max_tokens=30), "; ", Slot("b", ["x", "y"]))
    sampler, tokens = tokentrie.Sampler(model.vocab, form, "sampled", temperature=2.0, seed=seed), []
    prompt = model.vocab.tokenize(PROMPT, parse_special=True)
    while sampler.state == "active":
        tokens += sampler.advance(model.logits([*prompt, *tokens]))
    text, (value, last) = spelled(model, tokens), [leaf.name or "" for leaf in sampler.leaves]
    assert text in [f"a: {value}{stop}{last}" for stop in ("; ", "e; ", "\n; ")]
    assert not any(stop in value for stop in ("; ", "e", "\n"))


def test_several_stops_are_kept_as_they_are() -> None:
    several, one = Text("a", stop=("x", "y")), Text("a", stop=["x"])
    assert (several.stop, one.stop) == (["x", "y"], "x")
    assert one == Text("a", stop="x")
    assert several != Text("a", stop=["y", "x"])
    for text in (several, one):
        assert pickle.loads(pickle.dumps(text)) == text
    assert tokentrie.constraint(Form(several)).to_dict() == {"form": [{"text": "a", "stop": ["x", "y"]}]}
    assert tokentrie.constraint(Form(one)) == tokentrie.constraint({"form": [{"text": "a", "stop": "x"}]})
    with pytest.raises(TypeError, match=r"stop\[1\] must be a str, not 5 of type int"):
        Text("a", stop=["x", 5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="stop must be a str or a list of str, not int"):
        Text("a", stop=5)  # type: ignore[arg-type]


@pytest.mark.model
def test_token_sets_and_payloads_by_path(model: Model) -> None:
    stop, go = model.vocab.tokenize("STOP"), model.vocab.tokenize("GO")
    both = payload({"halt": stop, "start": go})
    both["descriptors"].append({"path": "to", "leaves": [{"name": "A", "tokens": go}]})
    form = Form(
        "<", Slot("action", both), "|", Slot("to", json.dumps(both)), "|", Slot("x", Trie.from_sequences([go])), ">"
    )
    out = model.generate(PROMPT, form)
    assert out.values["action"] in ("halt", "start")
    assert (out.values["to"], out.values["x"]) == ("A", "GO")
    assert out.text in ("<STOP|GO|GO>", "<GO|GO|GO>")
    with pytest.raises(tokentrie.errors.OptionError, match=r'"nowhere"; there are \["action", "to"\]'):
        Slot("nowhere", both)


@pytest.mark.model
def test_control_tokens_stay_text(model: Model) -> None:
    out = model.generate(PROMPT, Form("<|im_end|> ", Slot("x", ["<|im_start|>", "b"]), "<|im_end|>"))
    assert not set(out.tokens) & set(model.vocab.control)
    assert out.text.startswith("<|im_end|> ")
    assert out.text.endswith("<|im_end|>")


@pytest.mark.model
@pytest.mark.parametrize("family", VOCABULARIES)
def test_every_vocabulary_spells_the_form_as_its_tokenizer_does(family: str) -> None:
    """A token such as `"RE` crosses the quote and the value: the set then begins inside the literal."""
    with Model(random_path(family), n_ctx=256, n_threads=1) as model:
        seen = set()
        for out in draws(model, MAIL, 12, 1.0):
            assert json.loads(out.text) == out.values
            assert spelled(model, out.tokens) == out.text
            assert out.canonical
            seen.add(tuple(out.values.values()))
        assert len(seen) > 2
        note = Form('{"note": "', Text("note", stop='"', max_tokens=5), '", "to": "', Slot("to", PEOPLE), '"}')
        for out in draws(model, note, 6, 1.0):
            assert json.loads(out.text) == out.values
            assert spelled(model, out.tokens) == out.text


WORDS = st.text(alphabet='ab_ ",:{é1', min_size=0, max_size=5)


@pytest.mark.model
@settings(max_examples=cases(150), deadline=None)
@given(
    literals=st.lists(WORDS, min_size=3, max_size=3),
    sets=st.lists(st.lists(WORDS, min_size=1, max_size=4, unique=True), min_size=2, max_size=2),
    seed=st.integers(0, 9),
)
def test_the_text_is_always_literals_and_values(
    model: Model, literals: list[str], sets: list[list[str]], seed: int
) -> None:
    form = Form(literals[0], Slot("a", sets[0]), literals[1], Slot("b", sets[1]), literals[2])
    try:
        out = model.generate(PROMPT, form, mode="sampled", seed=seed, temperature=9.0)
    except tokentrie.errors.TrieError as error:
        if "has no token here" not in str(error) and "cannot be told" not in str(error):
            raise
        return
    assert out.values["a"] in sets[0]
    assert out.values["b"] in sets[1]
    assert out.text == literals[0] + out.values["a"] + literals[1] + out.values["b"] + literals[2]
    assert spelled(model, out.tokens) == out.text
    assert out.canonical == (out.tokens == model.vocab.tokenize(out.text))


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ((), tokentrie.errors.OptionError, "at least one slot"),
        (("x",), tokentrie.errors.OptionError, "at least one slot"),
        ((Slot("a", ["x"]), Slot("a", ["y"])), tokentrie.errors.OptionError, 'two parts of the form have the name "a"'),
        ((Text("a", stop="x"), Text("b", stop="x")), tokentrie.errors.OptionError, "put a literal between"),
        ((Text("a", stop=""),), tokentrie.errors.OptionError, "needs a stop"),
        ((Text("a", stop="x", max_tokens=0),), tokentrie.errors.OptionError, "max_tokens of at least 1"),
        ((Text("a", stop=["x", ""]),), tokentrie.errors.OptionError, "needs a stop, none of which may be empty"),
        ((Text("a", stop=["x", "y", "x"]),), tokentrie.errors.OptionError, 'text "a": the stop "x" comes twice'),
        (
            (Text("a", stop=["x" * 90, "y" * 40]),),
            tokentrie.errors.OptionError,
            "2 stops have 130 bytes: several may have 126",
        ),
        (
            (Text("a", stop="y", pattern=tokentrie.Regex("x"), max_tokens=0),),
            tokentrie.errors.OptionError,
            "at least 1",
        ),
        ((Slot("a", []),), tokentrie.errors.TrieError, 'slot "a" has no values'),
        ((Slot("a", ["x", "y", "x"]),), tokentrie.errors.TrieError, 'value 2, "x", repeats value 0'),
        ((7,), TypeError, "part 0 of a form must be str, Slot, Text or Form, not 7 of type int"),
    ],
)
def test_parts_that_make_no_form(parts: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Form(*parts)


def test_bad_slots_and_texts() -> None:
    with pytest.raises(TypeError, match="value 1 must be a str, not 7 of type int"):
        Slot("a", ["x", 7])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Slot("a", 7)  # type: ignore[arg-type]
    with pytest.raises(tokentrie.errors.OptionError, match="max_tokens is -1"):
        Text("a", stop="x", max_tokens=-1)


@pytest.mark.model
def test_what_does_not_go_with_forms(model: Model) -> None:
    for wrong in ({"end_tokens": [1]}, {"after": "free"}):
        with pytest.raises(tokentrie.errors.OptionError, match="not for forms"):
            model.generate(PROMPT, MAIL, **wrong)
    for wrong in ({"mode": "exact"}, {"probabilities": True}):
        with pytest.raises(tokentrie.errors.OptionError, match="for forms: use `choose`"):
            model.generate(PROMPT, ["a"], **wrong)
    with pytest.raises(tokentrie.errors.ContextError):
        model.generate(PROMPT, Form("long " * 600, Slot("a", ["x", "y"])))
    far = Slot("a", Trie.from_sequences([[len(model.vocab)]]))
    with pytest.raises(tokentrie.errors.VocabularyError, match="outside the vocabulary"):
        model.generate(PROMPT, Form("a", far))
    assert json.loads(model.generate(PROMPT, MAIL).text)


def test_without_a_tokenizer_texts_are_spelled_in_the_fewest_tokens() -> None:
    pieces = [bytes([byte]) for byte in range(256)] + [b"<end>", b", b", b"b=", b", b="]
    vocab = tokentrie.Vocab.from_tokens(pieces, eog=[256])
    digit = Slot("a", tokentrie.rules.Integer(0, 9))
    number = Slot("b", tokentrie.rules.Integer(0, 9))
    for last, written in [(Slot("b", ["x", "y"]), "y"), (Text("b", stop="."), "no."), (number, "4")]:
        sampler = tokentrie.Sampler(vocab, Form("a=", digit, ", b=", last, "!"), after="stop")
        sampler.accept([*b"a=3", 259, *f"{written}!".encode()])
        assert sampler.state == "complete", written
    few = tokentrie.Vocab.from_tokens([b"a=", b"3", b";", b"<end>"], eog=[3])
    with pytest.raises(tokentrie.TokenTrieError, match='cannot spell "; "'):
        tokentrie.Sampler(few, Form("a=", Slot("a", tokentrie.Regex("3")), "; "))


@pytest.mark.model
def test_steps_are_seen(model: Model) -> None:
    steps: list[tokentrie.results.Step] = []
    out = model.generate(PROMPT, MAIL, on_step=steps.append)
    assert [step.token for step in steps] == out.tokens
    assert [step.index for step in steps] == list(range(len(steps)))
    assert sum(step.forced for step in steps) == out.stats.forced_tokens


def test_reprs() -> None:
    assert repr(MAIL).startswith('<tokentrie.Form: "{\\"action\\": \\"", Slot("action")')
    assert repr(Slot("a", ["x"])) == '<tokentrie.Slot "a": 1 values>'
    assert repr(Text("a", stop="x")) == '<tokentrie.Text "a">'
