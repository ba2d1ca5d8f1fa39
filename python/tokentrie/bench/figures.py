"""From samples to rows: what the figures of `rows` are computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import asdict
from typing import Any

import numpy as np

from tokentrie.bench.engines import FREE, GRAMMAR, NO_SKIP, TRIE
from tokentrie.bench.measure import Measured, Sample, Track
from tokentrie.bench.rows import Row

MICRO = 1e6
NO_TIME = "nothing had to be decoded or chosen after the prompt"


def rows(measured: Measured, model: str) -> list[dict[str, Any]]:
    """The rows of a set, one a mode."""
    return [asdict(_row(track, measured, model)) for track in measured.tracks.values()]


def _row(track: Track, measured: Measured, model: str) -> Row:
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


def _count(row: Row, track: Track, measured: Measured) -> None:
    """What does not depend on the clock: each prompt once."""
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


def _time(row: Row, samples: list[Sample], measured: Measured) -> None:
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


def _compare(row: Row, track: Track, measured: Measured) -> None:
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
    """Of the rates on these prompts."""
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
