"""A response template that is given for a model: by the argument of `Model`, by the option of `tokentrie serve`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokentrie
import typer
from models import copy_tiny
from tokentrie import Model, ResponseTemplate
from tokentrie.cli.serving.serve import response_templates
from tokentrie.errors import TemplateError

pytestmark = pytest.mark.model

#: It shows no call, and has no reasoning.
PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SAID: dict[str, Any] = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "content": {"close": "<|im_end|>"},
        "reasoning_content": {"open": "<thoughts>", "close": "</thoughts>"},
    },
}


@pytest.fixture(scope="module")
def path() -> Path:
    return copy_tiny("plain-for-response-templates", changes={"tokenizer.chat_template": PLAIN})


@pytest.mark.parametrize("given", [SAID, json.dumps(SAID), ResponseTemplate(SAID)], ids=["dict", "JSON", "object"])
def test_a_model_reads_its_replies_by_it(path: Path, given: Any) -> None:
    with Model(path, n_ctx=512, n_threads=1, response_template=given) as model:
        assert model.chat_format.analysis.reasoning.start == "<thoughts>"
        read = model.chat_format.parse("<thoughts>Three.</thoughts>3")
        assert (read.reasoning, read.content) == ("Three.", "3")
        message = model.chat([{"role": "user", "content": "Hi"}], constraint=["yes", "no"], max_tokens=40)
        assert message.parsed in ("yes", "no")
    with Model(path, n_ctx=512, n_threads=1) as model:
        assert model.chat_format.analysis.reasoning.mode == "none"


def test_what_is_no_response_template(path: Path) -> None:
    with pytest.raises(TypeError, match="response_template must be a dict, a str or a ResponseTemplate, not int"):
        Model(path, response_template=5)  # type: ignore[arg-type]
    for faulty in ({"fields": 5}, "{", {"fields": {"content": {"open": 3}}}):
        with pytest.raises(TemplateError):
            Model(path, response_template=faulty)  # type: ignore[arg-type]


def test_the_option_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "said.json"
    file.write_text(json.dumps(SAID), "utf-8")
    (only,) = response_templates([str(file)], ["tiny"]).items()
    assert (only[0], only[1].source) == ("tiny", SAID)
    assert [*response_templates([f"b={file}"], ["a", "b"])] == ["b"]
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"eos_token": "</s>", "response_template": SAID}), "utf-8")
    assert response_templates([f"a={config}"], ["a", "b"])["a"].source == SAID
    faulty = tmp_path / "faulty.json"
    faulty.write_text('{"fields": 5}', "utf-8")
    for given, names, says in (
        ([str(file)], ["a", "b"], "there are several models"),
        ([str(file), f"a={file}"], ["a"], "a has two"),
        ([str(faulty)], ["a"], "faulty.json: "),
    ):
        with pytest.raises(typer.BadParameter, match=says):
            response_templates(given, names)
    with pytest.raises((OSError, tokentrie.TokenTrieError)):
        response_templates([str(tmp_path / "none.json")], ["a"])
