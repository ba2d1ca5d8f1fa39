"""From samples to rows of figures. Each is defined where it is declared, and the report carries the definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from benches.generations.engines import FREE, GRAMMAR, NO_SKIP, TRIE
from benches.generations.measure import Sample, SetResult, Track

MICRO = 1e6
NO_TIME = "nothing had to be decoded or chosen after the prompt"


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


def rows(measured: SetResult, model: str) -> list[dict[str, Any]]:
    """The rows of a set, one a mode."""
    return [asdict(_row(track, measured, model)) for track in measured.tracks.values()]


def _row(track: Track, measured: SetResult, model: str) -> Row:
    row = Row(track.mode, model, measured.values.name)
    row.generations, row.generations_planned = len(track.samples), track.planned
    row.status, row.reason = _status(track)
    if row.status not in ("ok", "partial"):
        row.generations = 0
        return row
    outputs = track.outputs()
    row.prompts = len(outputs)
    row.outputs = [
        {"prompt": number, "text": out.text, "tokens": len(out.tokens)} for number, out in sorted(outputs.items())
    ]
    _count(row, track, measured)
    _time(row, track.samples, measured)
    _compare(row, track, measured)
    return row


def _status(track: Track) -> tuple[str, str | None]:
    if track.error is not None:
        return "error", track.error
    if track.skipped is not None:
        return "skipped", track.skipped
    if not track.out_of_time:
        return "ok", None
    if not track.samples:
        return "skipped", f"no generation finished within its budget ({track.spent:.1f} s spent)"
    return (
        "partial",
        f"{len(track.samples)} of {track.planned} generations within the budget ({track.spent:.1f} s spent)",
    )


def _count(row: Row, track: Track, measured: SetResult) -> None:
    """Adds the counts that do not depend on the clock: each prompt once."""
    outputs = track.outputs()
    stats = [out.stats for out in outputs.values()]
    tokens = [stat.sampled_tokens + stat.forced_tokens for stat in stats]
    ratios = [stat.forward_passes_saved / count for stat, count in zip(stats, tokens, strict=True)]
    row.tokens = sum(tokens)
    row.skip_ratio_mean, row.skip_ratio_std = float(np.mean(ratios)), float(np.std(ratios))
    row.forward_passes_saved = sum(stat.forward_passes_saved for stat in stats)
    row.forward_passes_total = sum(stat.forward_passes for stat in stats)
    prompts = sum(measured.prompt_passes[number] for number in outputs)
    # A value without any choice takes no forward pass at all, not even the prompt's.
    row.forward_passes_after_prompt = max(row.forward_passes_total - prompts, 0)
    if row.forward_passes_total:
        row.tokens_per_forward_pass = row.tokens / row.forward_passes_total
    else:
        row.reasons["tokens_per_forward_pass"] = "there was no forward pass"
    if track.mode in (TRIE, NO_SKIP):
        walks = [measured.walks[number] for number in outputs]
        row.forced_ratio = sum(stat.forced_tokens for stat in stats) / row.tokens
        row.branch_points = sum(walk.branch_points for walk in walks)
        masked = [count for walk in walks for count in walk.masked]
        row.mask_ratio = float(np.mean(masked)) / measured.vocabulary
    elif track.mode == FREE:
        row.forced_ratio = row.mask_ratio = 0.0
        row.reasons["branch_points"] = "nothing is ruled out"
    else:
        for name in ("forced_ratio", "mask_ratio", "branch_points"):
            row.reasons[name] = "a grammar does not tell what it allows"


def _time(row: Row, samples: list[Sample], measured: SetResult) -> None:
    row.tokens_per_second = _rate(samples, np.median, Sample.generation)
    row.tokens_per_second_best = _rate(samples, np.min, Sample.generation)
    row.tokens_per_second_whole = _rate(samples, np.median, Sample.whole)
    if row.tokens_per_second is None:
        row.reasons |= dict.fromkeys(("tokens_per_second", "tokens_per_second_best"), NO_TIME)
    latency = [MICRO * sample.generation() / sample.tokens for sample in samples]
    row.latency_per_token_us_min, row.latency_per_token_us_p50, row.latency_per_token_us_p99 = _spread(latency)
    generation = [MICRO * sample.generation() for sample in samples]
    row.generation_us_min, row.generation_us_p50, row.generation_us_p99 = _spread(generation)
    whole = [MICRO * sample.whole() for sample in samples]
    row.whole_us_min, row.whole_us_p50, row.whole_us_p99 = _spread(whole)
    row.sample_us_per_token_p50 = _median(MICRO * s.out.stats.sample_seconds / s.tokens for s in samples)
    row.setup_us_p50 = _median(MICRO * (s.own() - s.out.stats.sample_seconds) for s in samples)
    if row.mode in (TRIE, NO_SKIP):
        own = [MICRO * sample.own() / sample.tokens for sample in samples]
        row.own_us_per_token_min, row.own_us_per_token_p50, _ = _spread(own)
    else:
        for name in ("own_us_per_token_min", "own_us_per_token_p50"):
            row.reasons[name] = "the choosing is llama.cpp's own"
    passes = [(s, s.out.stats.forward_passes - measured.prompt_passes[s.prompt]) for s in samples]
    each = [MICRO * sample.out.stats.decode_seconds / count for sample, count in passes if count > 0]
    if each:
        row.decode_us_per_pass_p50 = _median(each)
    else:
        row.reasons["decode_us_per_pass_p50"] = "no forward pass was needed after the prompt's"


def _compare(row: Row, track: Track, measured: SetResult) -> None:
    """The figures that another mode's result is needed for."""
    for other, name in ((GRAMMAR, "grammar"), (FREE, "unconstrained")):
        figures = [f"tokens_per_second_vs_{name}", f"tokens_per_second_whole_vs_{name}"]
        if other == GRAMMAR:
            figures += ["token_accuracy", "value_accuracy"]
        yardstick = measured.tracks.get(other)
        reason = _missing(track, yardstick, other)
        if reason or yardstick is None:
            row.reasons |= dict.fromkeys(figures, reason)
            continue
        shared = track.outputs().keys() & yardstick.outputs().keys()
        values = [_ratio(track, yardstick, shared, one) for one in (Sample.generation, Sample.whole)]
        if other == GRAMMAR:
            pairs = [(track.outputs()[number], yardstick.outputs()[number]) for number in shared]
            same = sum(a == b for one, two in pairs for a, b in zip(one.tokens, two.tokens, strict=False))
            values.append(same / sum(max(len(one.tokens), len(two.tokens)) for one, two in pairs))
            values.append(sum(one.text == two.text for one, two in pairs) / len(pairs))
        for figure, value in zip(figures, values, strict=True):
            setattr(row, figure, value)
            if value is None:
                row.reasons[figure] = NO_TIME


def _ratio(track: Track, other: Track, prompts: Set[int], seconds: Callable[[Sample], float]) -> float | None:
    """Computes the ratio of the rates on these prompts."""
    one, two = ([s for s in which.samples if s.prompt in prompts] for which in (track, other))
    mine, others = _rate(one, np.median, seconds), _rate(two, np.median, seconds)
    return mine / others if mine and others else None


def _missing(track: Track, other: Track | None, name: str) -> str:
    if track is other:
        return "this row is the yardstick"
    if other is None:
        return f"{name} was not asked for"
    if _status(other)[0] not in ("ok", "partial"):
        return f"{name} has no result on this set"
    if not track.outputs().keys() & other.outputs().keys():
        return f"{name} finished none of the same prompts"
    return ""


def _rate(samples: list[Sample], middle: Callable[[Any], Any], seconds: Callable[[Sample], float]) -> float | None:
    """Tokens a second: sums over prompts of what the repeats have in the middle. None if it took no time at all."""
    groups: dict[int, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.prompt, []).append(sample)
    tokens = sum(float(np.median([sample.tokens for sample in group])) for group in groups.values())
    total = sum(float(middle([seconds(sample) for sample in group])) for group in groups.values())
    return tokens / total if total > 0 else None


def _median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Minimum, median, 99th percentile: one of the values, never one between two."""
    return min(values), _median(values), float(np.percentile(values, 99, method="higher"))
