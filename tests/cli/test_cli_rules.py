"""Rules on the command line: what `inspect` shows of them, and what `generate` makes by them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tokentrie
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cli import Terminal, run
from tokentrie.cli.inspecting.automaton import Automaton, bytes_of, number, ranges_text

__all__ = ["run"]

MONTH = "(19|20)[0-9]{2}-(0[1-9]|1[0-2])"
SUMS = 'SKIP : "/ +/" ; NUMBER : "/[0-9]+/" ;\nsum : NUMBER | sum "+" NUMBER ;'
needs_schema = pytest.mark.skipif(not hasattr(tokentrie, "JsonSchema"), reason="this package has no JsonSchema")


def automaton(pattern: str) -> Automaton:
    found = Automaton.from_regex(tokentrie.Regex(pattern))
    assert found is not None
    return found


class TestAutomaton:
    def test_the_table_is_the_rule(self) -> None:
        """Every text of up to three letters is read by the table as the rule reads it."""
        for pattern in ("a(b|c)*", "[a-c]{2,3}", "ab|abc|c", "(a|b)?"):
            regex, table = tokentrie.Regex(pattern), tokentrie.Regex(pattern).table()
            steps = [{byte: to for ranges, to in ways for byte in bytes_of(ranges)} for _, ways in table]
            assert len(table) == regex.states
            texts = [b""]
            for _ in range(4):
                for text in texts:
                    state: int | None = 0
                    for byte in text:
                        state = None if state is None else steps[state].get(byte)
                    assert (state is not None and table[state][0]) == regex.matches(text), (pattern, text)
                texts = [text + bytes([byte]) for text in texts for byte in b"abcd"]

    @given(st.from_regex(r"[ab]{1,3}(\|[ab]{1,2}[ab]?(\{1,2\})?){0,3}", fullmatch=True))
    @settings(max_examples=cases(50), deadline=None)
    def test_texts_are_counted_as_they_are_listed(self, pattern: str) -> None:
        assert automaton(pattern).texts() == len(tokentrie.Regex(pattern).texts())

    def test_counts(self) -> None:
        assert automaton(MONTH).texts() == 2 * 100 * 12
        assert automaton("a*").texts() is None
        assert automaton("x(a|b)*y").texts() is None
        assert automaton("[a-z]{200}").texts() == 26**200
        assert automaton("é|e").texts() == 2
        assert automaton("[ab][bc]").classes() == 3
        assert automaton("[0-9]{4}").classes() == 1
        assert automaton("ab|ac").layers() == [[0], [1], [2]]
        assert Automaton.from_regex(tokentrie.Regex("[a-z]{60000}", max_bytes=1 << 30)) is None

    def test_numbers_for_people(self) -> None:
        assert [number(count) for count in (2400, 10**15)] == ["2,400", "some 10^15"]
        assert number(26**5000).startswith("some 10^70")

    def test_bytes_for_people(self) -> None:
        assert ranges_text([(48, 57), (65, 65), (97, 98)]) == "0-9 A a b"
        assert ranges_text([(32, 32), (45, 45), (92, 92), (128, 191), (10, 10)]) == r"' ' '-' \ \x80-\xBF \x0A"


class TestSamples:
    @pytest.mark.parametrize("name", ["json", "arithmetic", "c", "sql"])
    def test_texts_of_grammars_are_whole(self, name: str) -> None:
        grammar = tokentrie.rules.Grammar.example(name)  # type: ignore[arg-type]
        for seed in range(5):
            texts = grammar.samples(5, seed)
            assert len(texts) >= 3
            assert all(grammar.matches(text) for text in texts)
            if name == "json":
                assert len([json.loads(text) for text in texts]) == len(texts)

    def test_rules_of_all_kinds(self) -> None:
        class Faulty(tokentrie.rules.Rule):
            def start(self) -> int:
                raise LookupError("none")

        for rule in (
            tokentrie.rules.Date(),
            tokentrie.rules.Integer(0),
            tokentrie.rules.OneOf(["a", "b"], tokentrie.Regex("c+")),
        ):
            texts = rule.samples(4, 1)
            assert texts == sorted(texts, key=lambda text: (len(text.encode()), text.encode()))
            assert texts
            assert all(rule.matches(text) for text in texts)
            assert texts == rule.samples(4, 1)
        with pytest.raises(LookupError, match="none"):
            Faulty().samples(1, 0)


@pytest.mark.model
class TestProbability:
    RULE = ("generate", "--prompt", "The sky is ", "--regex", "[a-z]{3,5}", "--seed", "1")

    def test_the_rule_and_the_text_of_a_corrected_draw(self, run: Terminal) -> None:
        told = run(*self.RULE, "--correct", "8", "--probability", "--json").json
        rule = tokentrie.Regex("[a-z]{3,5}")
        found = tokentrie.Model().probability("The sky is ", rule, text=told["text"], seed=1)
        assert re.fullmatch("[a-z]{3,5}", told["text"])
        assert told["correction"]["rows"] > 0
        # Passes of other widths round otherwise, and other draws are made then.
        assert told["probability"]["upper"] == pytest.approx(found.upper, rel=0.05)
        assert told["probability"]["text"]["logprob"] == pytest.approx(found.text and found.text.logprob, abs=0.05)
        said = run(*self.RULE, "--correct", "8", "--probability")
        assert said.out == told["text"] + "\n"
        told = told["probability"]
        assert f"the constraint has the probability {told['estimate']:.4g}, between {told['lower']:.4g} and" in said.err
        assert f"{told['text']['share']:.2%} of it" in said.err

    def test_what_cannot_be_is_a_word_of_json(self, run: Terminal) -> None:
        told = run("generate", "--prompt", "x", "--regex", "[a-z]{9}", "--max-tokens", "1", "--probability", "--json")
        assert (told.code, told.json["probability"]["text"]["share"]) == (1, 0)
        assert told.json["probability"]["text"]["logprob"] is None
        assert "correction" not in told.json

    def test_free_text_behind_a_value_has_none(self, run: Terminal) -> None:
        refused = run(*self.RULE, "--probability", "--after", "free")
        assert (refused.code, refused.out) == (2, "")
        assert "--probability" in refused.err


class TestInspect:
    @pytest.mark.model
    def test_an_automaton(self, run: Terminal, tiny_path: Path) -> None:
        result = run("inspect", "--regex", MONTH)
        assert (result.code, result.err) == (0, "")
        lines = result.out.splitlines()
        vocab = tokentrie.Vocab.from_gguf(tiny_path)
        legal = tokentrie.Sampler(vocab, tokentrie.Regex(MONTH)).allowed()
        assert lines[0] == f"{MONTH}: 10 states, 6 classes of bytes, 2,400 texts"
        first = f"at the start {len(legal)} tokens of tiny.gguf's {len(vocab):,} are allowed: "
        assert lines[1] == first + "  ".join(json.dumps(vocab[int(token)].decode()) for token in legal)
        texts = [json.loads(line.removeprefix("such as ")) for line in lines if line.startswith("such as ")]
        assert len(texts) == 5
        assert all(re.fullmatch(MONTH, text) for text in texts)
        table = [line.split() for line in lines[lines.index("state  end  bytes  next") + 1 :]]
        assert table[:3] == [["0", "1", "1"], ["2", "2"], ["1", "9", "3"]]
        assert table[-1] == ["9", "end"]

    @pytest.mark.model
    def test_json(self, run: Terminal) -> None:
        document = run("inspect", "--regex", "ab|a", "--samples", "9", "--json").json
        assert document["table"] == [
            {"end": False, "ways": [{"bytes": [[97, 97]], "next": 1}]},
            {"end": True, "ways": [{"bytes": [[98, 98]], "next": 2}]},
            {"end": True, "ways": []},
        ]
        assert (document["finite"], document["texts"], document["samples"]) == (True, 2, ["a", "ab"])
        assert (document["states"], document["classes"]) == (3, 2)
        assert len(document["legal_tokens"]) <= document["legal"] < document["vocabulary"]
        endless = run("inspect", "--regex", "a+", "--json").json
        assert (endless["finite"], endless["texts"]) == (False, None)
        many = run("inspect", "--regex", "[a-z]{40}", "--json").json
        assert (many["finite"], many["texts"], many["table"]) == (True, None, None)

    @pytest.mark.model
    def test_the_seed_draws_the_texts(self, run: Terminal) -> None:
        def drawn(*options: str) -> list[str]:
            found = run("inspect", "--regex", "[a-z]{8}", "--json", *options).json["samples"]
            assert isinstance(found, list)
            return found

        assert drawn() == drawn("--seed", "0") != drawn("--seed", "1")
        assert drawn("--samples", "0") == []
        assert len(drawn("--samples", "20")) == 20

    @pytest.mark.model
    def test_large_automata_are_not_printed(self, run: Terminal, tmp_path: Path) -> None:
        result = run("inspect", "--regex", "[a-z]{300}")
        assert result.code == 0
        assert "301 states, 1 class of bytes, some 10^424 texts" in result.out
        assert "301 states: automata of up to 32 are printed" in result.out
        assert "state  end" not in result.out
        assert max(map(len, (line for line in result.out.splitlines() if line.startswith("such")))) < 100
        picture = tmp_path / "a.svg"
        run("inspect", "--regex", "[a-z]{300}", "--svg", picture).fails(1, "a.svg", "32 states", "301 states")
        assert not picture.exists()

    @pytest.mark.model
    @pytest.mark.parametrize("pattern", [MONTH, '"([^"\\\\]|\\\\.)*"', "<&>|.", "a*", "(a|b)*c"])
    def test_a_picture(self, run: Terminal, tmp_path: Path, pattern: str) -> None:
        picture = tmp_path / "automaton.svg"
        assert run("inspect", "--regex", pattern, "--svg", picture).code == 0
        root = ElementTree.parse(picture).getroot()
        space = "{http://www.w3.org/2000/svg}"
        table = tokentrie.Regex(pattern).table()
        texts = [text.text for text in root.iter(f"{space}text")]
        assert texts[0] == pattern
        assert {str(state) for state in range(len(table))} <= set(texts)
        circles = [circle.attrib for circle in root.iter(f"{space}circle")]
        assert len(circles) == len(table) + sum(end for end, _ in table)
        # One for each way, one into the first state, one for the tip of arrows.
        assert len([*root.iter(f"{space}path")]) == sum(len(ways) for _, ways in table) + 2
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        assert all(0 < float(one["cx"]) < width and 0 < float(one["cy"]) < height for one in circles)
        assert len({(one["cx"], one["cy"]) for one in circles}) == len(table)

    @pytest.mark.model
    def test_a_grammar(self, run: Terminal, tmp_path: Path) -> None:
        sums = tmp_path / "sums.y"
        sums.write_text(SUMS)
        for args, stdin in (([sums], ""), (["-"], SUMS)):
            result = run("inspect", "--grammar", *args, stdin=stdin)
            assert (result.code, result.err) == (0, "")
            assert re.search(r": 3 terminals, \d+ parser states, \d+ lexer states, no end of texts\n", result.out)
            assert 'terminals SKIP  NUMBER  "+"\n' in result.out
        few = run("inspect", "--grammar", "-", "--json", stdin='a : "x" b ; b : "y" | "z" "z" | ;').json
        assert (few["finite"], few["texts"], few["samples"]) == (True, 3, ["x", "xy", "xzz"])
        many = run("inspect", "--grammar", "-", stdin='a : "/[a-z]{5}/" ;')
        assert "more than 1,000 texts" in many.out
        for name in ("json", "arithmetic", "c", "sql"):
            document = run("inspect", "--grammar", name, "--json").json
            assert (document["finite"], document["grammar"]) == (False, name)
            grammar = tokentrie.rules.Grammar.example(name)  # type: ignore[arg-type]
            assert all(grammar.matches(text) for text in document["samples"])

    @pytest.mark.model
    def test_a_file_beside_the_name_of_an_example(
        self, run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "json").write_text(SUMS)
        monkeypatch.chdir(tmp_path)
        assert '"null"' in run("inspect", "--grammar", "json").out
        assert "NUMBER" in run("inspect", "--grammar", "./json").out

    @pytest.mark.parametrize(
        ("args", "parts"),
        [
            ([], ["FILE, --regex or --grammar"]),
            (["--regex", "a", "--grammar", "json"], ["only one", "--regex and --grammar"]),
            (["--regex", "a", "--depth", "2", "--find", "x"], ["--depth", "--find", "it goes with a payload"]),
            (["--grammar", "json", "--path", "x"], ["--path", "it goes with a payload"]),
            (["--grammar", "json", "--max-children", "2"], ["--max-children"]),
            (["--grammar", "json", "--svg", "x.svg"], ["--svg", "grammar"]),
            (["--regex", "a", "--svg", "x.svg", "--json"], ["--svg", "--json"]),
            (["--regex", "a(b"], ["--regex", "position 1: unclosed group"]),
            (["--regex", "(?=a)b"], ["--regex", "look-around"]),
            (["--regex", r"(?:\w{1,300}){1,300}"], ["--regex", "33554432 bytes"]),
            (["--regex", "a", "--samples", "1001"], ["--samples", "1000"]),
        ],
    )
    def test_wrong_usage(self, run: Terminal, args: list[str], parts: list[str]) -> None:
        run("inspect", *args).fails(2, *parts)

    @pytest.mark.parametrize(
        ("content", "args", "parts"),
        [
            ("{}", ["--regex", "a"], ["--regex", "it goes with a rule or a receipt, not with a payload"]),
            ("{}", ["--seed", "2", "--samples", "1"], ["--seed", "--samples", "it goes with a rule"]),
            ("{}", ["--key", "k", "--messages", "m"], ["--key", "--messages", "it goes with a receipt"]),
            ("{}", ["--find", "a"], ["--find", "it goes with a .ttrie file, not with a payload"]),
            ("{}", ["--parse", "r"], ["--parse", "it goes with a chat template"]),
            ("{}", ["--most", "3"], ["--most", "it goes with two .ttrie files"]),
            ("{{ messages }}", ["--depth", "3"], ["--depth", "not with a chat template"]),
            ("{{ messages }}", ["--choices", "a,b"], ["--choices", "it goes with a receipt"]),
            ('{"receipt": 1}', ["--svg", "p.svg"], ["--svg", "not with a receipt"]),
            ('{"receipt": 1}', ["--payload", "-", "--messages", "-"], ["--payload", "only once"]),
        ],
    )
    def test_options_of_other_kinds(
        self, run: Terminal, tmp_path: Path, content: str, args: list[str], parts: list[str]
    ) -> None:
        file = tmp_path / "file"
        file.write_text(content)
        run("inspect", file, *args).fails(2, *parts, "(see tokentrie inspect --help)")

    @pytest.mark.parametrize(
        ("name", "content", "part"),
        [
            ("a.json", '{"descriptors": [', "payload, line 1"),
            ("a.json", "", "payload, line 1"),
            ("a.json", "[" * 100_000, "payload, line 1"),
            pytest.param("a", '\ufeff {"receipt": 3}', "no receipt", marks=pytest.mark.model),
            pytest.param("a", '{"receipt": NaN}', "no receipt", marks=pytest.mark.model),
            ("a", "{%- if %}", "a: "),
            ("a", "\n {{ ", "a: "),
            ("a.jinja", '{"descriptors": []} {% if', "a.jinja: "),
            ("a", "\x89PNG", "a"),
        ],
    )
    def test_what_a_file_is_decides_who_reads_it(
        self, run: Terminal, tmp_path: Path, name: str, content: str, part: str
    ) -> None:
        file = tmp_path / name
        file.write_bytes(content.encode("latin-1" if content.startswith("\x89") else "utf-8"))
        run("inspect", file).fails(1, part)
        run("inspect", file, file, file).fails(2, "more than two files")
        run("inspect", file, file).fails(1, name)

    @pytest.mark.model
    def test_bad_files_and_rules(self, run: Terminal, tmp_path: Path) -> None:
        bad = tmp_path / "bad"
        bad.write_bytes(b"\xff\xff")
        run("inspect", "--grammar", "nope").fails(1, "nope: No such file", "json, arithmetic, c, sql")
        run("inspect", "--grammar", bad).fails(1, "bad, line 1: not UTF-8")
        run("inspect", "--grammar", tmp_path).fails(1, str(tmp_path))
        bad.write_text("a : b ;")
        run("inspect", "--grammar", bad).fails(1, f"{bad}: grammar, line 1, column 5", "named b")
        run("inspect", "--regex", "(?:)").fails(1, "empty text")
        run("inspect", "--regex", "a", "--vocab", bad).fails(1, "bad")
        nowhere = run("inspect", "--regex", "a", "--svg", tmp_path / "no" / "a.svg")
        assert nowhere.code == 1
        assert "No such file" in nowhere.err

    def test_a_vocabulary_that_cannot_begin(self, run: Terminal, tmp_path: Path) -> None:
        pytest.importorskip("tokenizers")
        vocab = tmp_path / "tokenizer.json"
        model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}
        vocab.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
        run("inspect", "--regex", "[xy]", "--vocab", vocab).fails(1, "x", "y")


@pytest.mark.model
class TestGenerate:
    def test_a_regular_expression(self, run: Terminal) -> None:
        result = run("generate", "-p", "Born on ", "--regex", MONTH)
        assert (result.code, result.err) == (0, "")
        assert re.fullmatch(MONTH, result.out.removesuffix("\n"))
        document = run("generate", "-p", "Born on ", "--regex", MONTH, "--json").json
        assert document["value"] == document["text"] == result.out.removesuffix("\n")
        assert (document["leaf"], document["finish"]) == (None, "span")

    def test_draws_repeat(self, run: Terminal) -> None:
        args = [
            "generate",
            "-p",
            "Hi",
            "--regex",
            "[a-z]{6}",
            "--mode",
            "sampled",
            "--temperature",
            "3",
            "--threads",
            "1",
        ]
        assert len({run(*args, "--seed", seed).out for seed in "0123"}) > 1
        assert run(*args, "--seed", "3").out == run(*args, "--seed", "3").out

    def test_a_grammar(self, run: Terminal, tmp_path: Path) -> None:
        sums = tmp_path / "sums.y"
        sums.write_text('sum : "1" | "1" "+" "2" "+" "3" ;')
        for args, stdin in (([sums], ""), (["-"], sums.read_text())):
            out = run("generate", "-p", "Hi", "--grammar", *args, stdin=stdin).out
            assert out in ("1\n", "1+2+3\n")
        sum_of = run("generate", "-p", "Count: ", "--grammar", "arithmetic", "--json").json
        assert tokentrie.rules.Grammar.example("arithmetic").matches(sum_of["value"])

    def test_sets_have_a_value_too(self, run: Terminal) -> None:
        document = run("generate", "-p", "Hi", "-c", "yes,no", "--json").json
        assert document["value"] == document["leaf"]["name"]

    def test_a_value_that_was_cut_off(self, run: Terminal) -> None:
        result = run("generate", "-p", "Hi", "--regex", "[a-z]{100}", "--max-tokens", "3")
        assert result.code == 1
        assert result.err == "tokentrie: no value was completed: the output ended with max_tokens after 3 tokens\n"
        result = run("generate", "-p", "Hi", "--regex", "[a-z]{100}", "--max-tokens", "3", "--json")
        assert (result.code, result.json["value"]) == (1, None)

    def test_the_empty_text_is_a_value(self, run: Terminal) -> None:
        result = run("generate", "-p", "The sky is ", "--regex", "(zq)?", "--json")
        assert (result.code, result.json["value"]) in ((0, ""), (0, "zq"))

    @needs_schema
    def test_a_schema(self, run: Terminal, tmp_path: Path) -> None:
        colours = {"properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
        schema = {"type": "object", "additionalProperties": False} | colours
        file = tmp_path / "schema.json"
        file.write_text(json.dumps(schema))
        for value, stdin in ((json.dumps(schema), ""), (str(file), ""), ("-", json.dumps(schema))):
            result = run("generate", "-p", "Call: ", "--json-schema", value, "--json", stdin=stdin)
            assert (result.code, result.err) == (0, "")
            assert result.json["value"] == json.loads(result.json["text"])
            assert result.json["value"]["colour"] in ("red", "blue")
        null = run("generate", "-p", "Call: ", "--json-schema", '{"type": "null"}')
        assert (null.code, null.out.strip()) == (0, "null")

    @needs_schema
    def test_bad_schemas(self, run: Terminal, tmp_path: Path) -> None:
        file = tmp_path / "schema.json"
        for text in ('{"type": ', '{"type": "colour"}'):
            run("generate", "-p", "Hi", "--json-schema", text).fails(2, "--json-schema")
            file.write_text(text)
            run("generate", "-p", "Hi", "--json-schema", file).fails(1, str(file))
        run("generate", "-p", "Hi", "--json-schema", "none.json").fails(1, "none.json: No such file")

    @pytest.mark.parametrize(
        ("args", "parts"),
        [
            (["--regex", "a", "-c", "b"], ["--choices and --regex"]),
            (["--regex", "a", "--grammar", "json"], ["--regex and --grammar"]),
            (["--grammar", "json", "--json-schema", "{}"], ["--grammar and --json-schema"]),
            (["--regex", "a", "--prefix", "x"], ["--prefix", "rule"]),
            (["--regex", "a", "--path", "x"], ["--path", "--payload"]),
            (["--regex", "a(b"], ["--regex", "position 1: unclosed group"]),
            (["--regex", ""], ["empty text"]),
        ],
    )
    def test_wrong_usage(self, run: Terminal, args: list[str], parts: list[str]) -> None:
        result = run("generate", "-p", "Hi", *args)
        result.fails(1 if args == ["--regex", ""] else 2, *parts)

    def test_bad_files(self, run: Terminal, tmp_path: Path) -> None:
        bad = tmp_path / "bad.y"
        bad.write_text('a : "x" a ;')
        # Before a model is loaded.
        run("generate", "-m", "none.gguf", "-p", "Hi", "--grammar", bad).fails(
            1, "bad.y: grammar, line 1", "never ends"
        )
        run("generate", "-p", "Hi", "--grammar", "nope").fails(1, "nope: No such file")
        run("generate", "--prompt-file", "-", "--grammar", "-").fails(2, "only once")


@pytest.mark.model
class TestSpec:
    def test_any_kind_is_generated(self, run: Terminal, tmp_path: Path) -> None:
        spec = {"then": [{"integer": {"min": 1, "max": 99}}, " kg"]}
        result = run("generate", "-p", "It weighs ", "--constraint", json.dumps(spec), "--json")
        assert re.fullmatch("[1-9][0-9]? kg", result.json["value"])
        day = run("generate", "-p", "The day: ", "--constraint", '{"date": {}}', "--json").json
        assert day["value"] == day["text"]
        form = {"form": ["n: ", {"slot": "n", "value": {"integer": {"min": 1, "max": 9}}}]}
        filled = run("generate", "-p", "A number. ", "--constraint", "-", "--json", stdin=json.dumps(form)).json
        assert filled["text"] == f"n: {filled['values']['n']}"
        tokentrie.Trie.from_sequences([[65, 66]], names=["x"]).save(tmp_path / "set.ttrie")
        (tmp_path / "spec.json").write_text('{"set": "set.ttrie"}')
        found = run("generate", "-p", "Hi ", "--constraint", str(tmp_path / "spec.json"), "--json").json
        assert found["leaf"]["name"] == "x"

    def test_what_is_wrong_has_its_place(self, run: Terminal, tmp_path: Path) -> None:
        file = tmp_path / "spec.json"
        file.write_text('{"one_of": ["a", {"integer": {"mni": 1}}]}')
        run("generate", "-p", "Hi", "--constraint", str(file)).fails(2, str(file), "$.one_of[1].integer.mni")
        run("generate", "-p", "Hi", "--constraint", '{"regexp": "a"}').fails(2, "--constraint")
        run("generate", "-p", "Hi", "--constraint", '{"any": {}}', "--regex", "a").fails(2, "--regex and --constraint")
