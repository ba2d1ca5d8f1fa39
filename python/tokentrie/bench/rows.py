"""The figures of a report. Each is defined where it is declared, and the report carries the definitions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _is(definition: str, default: Any = None) -> Any:
    """A field that says what it means."""
    return field(default=default, metadata={"definition": definition})


@dataclass
class Row:
    """One mode on one set. A figure that cannot be had is None and `reasons` says why; `reason` speaks for the row."""

    mode: str = _is("how the model was held; see `modes`", "")
    model: str = _is("file name of the model", "")
    set: str = _is("name of the set of legal values; see `sets`", "")
    status: str = _is(
        "ok: all planned generations; partial: the time budget ended it; skipped: cannot be run here; error: a check "
        "or a call failed",
        "ok",
    )
    reason: str | None = _is("why the status is not ok")
    generations: int = _is("timed generations that finished", 0)
    generations_planned: int = _is("prompts times repeats", 0)
    prompts: int = _is("different prompts among the finished generations; sums below take each of them once", 0)
    tokens: int | None = _is(
        "sum over prompts of the tokens of a generation: all that were chosen or forced, one that only ends the output "
        "included"
    )
    skip_ratio_mean: float | None = _is("mean over prompts of: tokens without a forward pass of their own / tokens")
    skip_ratio_std: float | None = _is("population standard deviation of the same over prompts")
    tokens_per_second: float | None = _is(
        "tokens / seconds of generation, each summed over prompts, of the repeats the median. Generation is the "
        "forward passes after the prompt's, and the choosing. The prompt's own pass is not in it: it serves the first "
        "choice, and with skip-ahead it also decodes the tokens that are forced before that choice. A value with one "
        "branch point needs no forward pass after the prompt's: there the figure is that of choosing alone, and "
        "tokens_per_second_whole and tokens_per_forward_pass say more"
    )
    tokens_per_second_best: float | None = _is("the same with the minimum of the repeats, for machines that are busy")
    tokens_per_second_whole: float | None = _is("as tokens_per_second, over whole calls with their prompts")
    tokens_per_second_vs_grammar: float | None = _is(
        "tokens_per_second / that of strict-guided, on the prompts that both finished"
    )
    tokens_per_second_vs_unconstrained: float | None = _is(
        "tokens_per_second / that of unconstrained, on the prompts that both finished. The free model gets as many "
        "tokens as the trie gave; it may end its output earlier"
    )
    tokens_per_second_whole_vs_grammar: float | None = _is("the same ratio of tokens_per_second_whole")
    tokens_per_second_whole_vs_unconstrained: float | None = _is("the same ratio of tokens_per_second_whole")
    tokens_per_forward_pass: float | None = _is("tokens / forward_passes_total")
    token_accuracy: float | None = _is(
        "share of positions with the same token as strict-guided, over the longer output of each prompt. A grammar "
        "takes any tokenisation in tokens, so that the same value may have others"
    )
    value_accuracy: float | None = _is("share of prompts with the same text as strict-guided")
    mask_ratio: float | None = _is("share of the vocabulary that could not come, mean over all steps of all prompts")
    forced_ratio: float | None = _is("share of tokens that had no alternative, sums over prompts")
    branch_points: int | None = _is(
        "sum over prompts of the steps with more than one way to go on, counted in the trie along the output; of a "
        "form the steps that were not forced"
    )
    forward_passes_saved: int | None = _is("sum over prompts of the tokens without a forward pass of their own")
    forward_passes_total: int | None = _is("sum over prompts of the forward passes, the prompt's included")
    forward_passes_after_prompt: int | None = _is("the same without those that the prompts alone take")
    latency_per_token_us_min: float | None = _is(
        "of each generation its microseconds after the prompt / tokens: the minimum"
    )
    latency_per_token_us_p50: float | None = _is("the median of the same")
    latency_per_token_us_p99: float | None = _is("the 99th percentile; of fewer than 100 generations the maximum")
    generation_us_min: float | None = _is("microseconds of a generation after its prompt: the minimum")
    generation_us_p50: float | None = _is("the median of the same")
    generation_us_p99: float | None = _is("the 99th percentile; of fewer than 100 generations the maximum")
    whole_us_min: float | None = _is("microseconds of a whole call, prompt and set-up included: the minimum")
    whole_us_p50: float | None = _is("the median of the same")
    whole_us_p99: float | None = _is("the 99th percentile; of fewer than 100 generations the maximum")
    own_us_per_token_min: float | None = _is(
        "of each call the microseconds outside llama.cpp's forward passes (set-up, walking, choosing, text) / tokens: "
        "the minimum. Without skip-ahead llama.cpp's sampler chain is in it"
    )
    own_us_per_token_p50: float | None = _is("the median of the same")
    sample_us_per_token_p50: float | None = _is(
        "of each generation the microseconds of choosing, which is sampler and grammar, / tokens: the median"
    )
    setup_us_p50: float | None = _is(
        "of each call the microseconds that are neither forward passes nor choosing, such as reading the grammar, "
        "walking forced tokens and joining the text: the median"
    )
    decode_us_per_pass_p50: float | None = _is(
        "of each generation the microseconds of the forward passes after the prompt's / their number: the median"
    )
    outputs: list[dict[str, Any]] = field(
        default_factory=list,
        metadata={"definition": "for each prompt that was finished: its number, the text and its number of tokens"},
    )
    reasons: dict[str, str] = field(
        default_factory=dict, metadata={"definition": "for each figure that is null in a measured row: why"}
    )


DEFINITIONS: dict[str, str] = {entry.name: entry.metadata["definition"] for entry in fields(Row)}
