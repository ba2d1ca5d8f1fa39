"""What /metrics counts is what happened, under our names and those of other servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn")
from models import TINY
from prometheus_client.parser import text_string_to_metric_families
from serve.server import Server, serving
from tokentrie import Vocab

pytestmark = pytest.mark.model

ASKED = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 7, "seed": 1}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


def values(server: Server) -> dict[str, float]:
    """Each sample by its name, those of several labels added up."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(server.ask("GET", "/metrics").body.decode()):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def test_the_names_of_other_servers_are_there(server: Server) -> None:
    found = values(server)
    for name in (
        "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
        "llamacpp:requests_processing", "llamacpp:requests_deferred", "llamacpp:n_decode_total",
    ):  # fmt: skip
        assert name in found, name
    text = server.ask("GET", "/metrics").body.decode()
    for name in (
        "vllm:prompt_tokens", "vllm:generation_tokens", "vllm:prefix_cache_queries", "vllm:prefix_cache_hits",
        "vllm:request_success", "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
        "llamacpp:prompt_tokens", "llamacpp:tokens_predicted",
    ):  # fmt: skip
        assert f"# TYPE {name}" in text, name


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_tokens_are_those_of_the_answers(server: Server, path: str, stream: bool) -> None:
    # Free text may end before its first token, of which nothing is counted.
    on = {str(token): -1000 for token in Vocab.from_gguf(TINY).eog}
    several = {"prompt": ["One", "Two or three"], "max_tokens": 5, "n": 2, "logit_bias": on}
    asked = ASKED if "chat" in path else several
    before = values(server)
    usage = server.ask("POST", path, asked).json()["usage"]
    if stream:
        before = values(server)
        assert server.ask("POST", path, {**asked, "stream": True}).status == 200
    after = values(server)

    def more(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    choices = 1 if "chat" in path else 4
    prompts = usage["prompt_tokens"] * (1 if "chat" in path else 2)
    assert more("tokentrie_prompt_tokens_total") == more("vllm:prompt_tokens_total") == prompts
    assert more("llamacpp:tokens_predicted_total") == more("vllm:generation_tokens_total")
    # The seed of completions is not given.
    assert "chat" not in path or more("vllm:generation_tokens_total") == usage["completion_tokens"]
    assert more("vllm:request_success_total") == more("vllm:time_to_first_token_seconds_count") == choices
    assert more("llamacpp:n_decode_total") > 0
    assert 0 < more("vllm:time_to_first_token_seconds_sum") < 60
    assert after["vllm:num_requests_running"] == after["llamacpp:requests_processing"] == 0


def test_what_fails_counts_as_no_success(server: Server) -> None:
    before = values(server)
    assert server.ask("POST", "/v1/completions", {"prompt": "a", "constraint": {"regex": "("}}).status == 400
    after = values(server)
    assert after["vllm:request_success_total"] == before["vllm:request_success_total"]
    assert after["tokentrie_requests_total"] > before["tokentrie_requests_total"]
