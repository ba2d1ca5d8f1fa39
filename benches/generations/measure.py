"""Samples: every mode in turn after the same prompt, so that what else the machine does hits all of them alike."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import tokentrie

from benches.generations.engines import FREE, GRAMMAR, LLGUIDANCE, NO_SKIP, TRIE, CannotRunError, Engine, engine
from benches.generations.sets import Prompt, ValueSet

AGAIN = 0.05


class CheckError(Exception):
    """An output that is wrong."""


@dataclass(frozen=True)
class Walk:
    """Properties of the way to a leaf of a trie."""

    branch_points: int
    """Positions at which more than one thing could come: several tokens, or a token and the end of the value."""
    masked: list[int]
    """At each step, the tokens of the vocabulary that could not come."""


def walk(trie: tokentrie.Trie, tokens: list[int], vocabulary: int) -> Walk:
    """Counted with the trie at every prefix. A value that others go on from can end there: then nothing is masked."""
    branch_points = 0
    masked = []
    for depth in range(len(tokens) + 1):
        prefix = tokens[:depth]
        children = len(trie.allowed(prefix))
        ends = depth > 0 and prefix in trie
        if children == 0:
            break
        branch_points += children > 1 or ends
        masked.append(0 if ends else vocabulary - children)
    return Walk(branch_points, masked)


class Checker:
    """Checks outputs of one set."""

    def __init__(self, model: tokentrie.Model, values: ValueSet) -> None:
        self._model = model
        self._values = values
        self._passes: dict[tuple[int, ...], int] = {}

    def check(self, mode: str, prompt: list[int], out: tokentrie.Generated) -> None:
        """Raises CheckError if the output is not what it must be."""
        if mode == FREE:
            return
        if mode in (GRAMMAR, LLGUIDANCE):
            self._check_text(out, "end_of_generation")
        elif self._values.trie is None:
            self._check_text(out, "span")
        else:
            self._check_leaf(self._values.trie, out)
            self._check_passes(self._values.trie, mode, prompt, out)

    def prompt_passes(self, tokens: list[int]) -> int:
        """The forward passes that these tokens take as a prompt: more than one if they are more than a batch."""
        key = tuple(tokens)
        if key not in self._passes:
            self._model.clear()
            self._passes[key] = self._model.generate(tokens, None, max_tokens=1).stats.forward_passes
        return self._passes[key]

    def _check_text(self, out: tokentrie.Generated, finish: str) -> None:
        if out.finish != finish:
            raise CheckError(f"the output {out.text!r} ended with {out.finish} and not with {finish}")
        if not self._values.allows(out.text):
            raise CheckError(f"the output {out.text!r} is not one of the values")

    def _check_leaf(self, trie: tokentrie.Trie, out: tokentrie.Generated) -> None:
        leaf = out.leaf
        if out.finish != "span" or leaf is None:
            raise CheckError(f"the output {out.text!r} ended with {out.finish} and no value")
        if leaf.tokens != out.tokens or trie.find(out.tokens) != leaf.index:
            raise CheckError(f"the output {out.tokens} is not the value {leaf.tokens} that it should be")

    def _check_passes(self, trie: tokentrie.Trie, mode: str, prompt: list[int], out: tokentrie.Generated) -> None:
        """With skip-ahead one pass a branch point, and the first shares the prompt's; without, one a token."""
        if mode == TRIE:
            needed = walk(trie, out.tokens, len(self._model.vocab)).branch_points
            first = self.prompt_passes([*prompt, *trie.forced().tolist()]) if needed else 0
            what = f"{needed} branch points"
        else:
            assert mode == NO_SKIP
            needed = out.stats.sampled_tokens + out.stats.forced_tokens
            first = self.prompt_passes(prompt)
            what = f"{needed} tokens"
        expected = first + max(needed - 1, 0)
        if out.stats.forward_passes != expected:
            made = out.stats.forward_passes
            raise CheckError(f"{made} forward passes and not {expected} for {what} in {out.text!r}")


@dataclass(frozen=True)
class Sample:
    """One timed generation. Seconds."""

    prompt: int
    out: tokentrie.Generated

    @property
    def tokens(self) -> int:
        """All that were chosen or forced, one that only ends the output included."""
        return self.out.stats.sampled_tokens + self.out.stats.forced_tokens

    def generation(self) -> float:
        """After the prompt: the forward passes and the choosing."""
        return self.out.stats.decode_seconds + self.out.stats.sample_seconds

    def whole(self) -> float:
        """Duration of the whole call."""
        return self.out.stats.seconds

    def own(self) -> float:
        """All that is neither the prompt's forward pass nor a later one."""
        return self.out.stats.seconds - self.out.stats.prompt_seconds - self.out.stats.decode_seconds


@dataclass
class Track:
    """Results of one mode on one set."""

    mode: str
    planned: int
    samples: list[Sample] = field(default_factory=list)
    spent: float = 0.0
    skipped: str | None = None
    error: str | None = None
    out_of_time: bool = False

    @property
    def over(self) -> bool:
        """Returns whether nothing more shall be run."""
        return self.out_of_time or self.skipped is not None or self.error is not None

    def outputs(self) -> dict[int, tokentrie.Generated]:
        """For each prompt that was finished its first output."""
        found: dict[int, tokentrie.Generated] = {}
        for sample in self.samples:
            found.setdefault(sample.prompt, sample.out)
        return found


@dataclass(frozen=True)
class SetResult:
    """Results of all modes on one set."""

    values: ValueSet
    prompts: Sequence[Prompt]
    vocabulary: int
    tracks: dict[str, Track]
    walks: list[Walk]
    """For each prompt, the way of the trie's output."""
    prompt_passes: list[int]


@dataclass(frozen=True)
class Plan:
    """Amount of measuring to do. `step` is called after each generation, made or given up."""

    repeats: int
    budget: float
    step: Callable[[str, str], None] = lambda _set, _mode: None


def measure(
    model: tokentrie.Model, values: ValueSet, prompts: Sequence[Prompt], modes: Sequence[str], plan: Plan
) -> SetResult:
    """Checks the trie's outputs, then times every mode. What fails or is too slow ends with its reason, alone."""
    tracks = {mode: Track(mode, plan.repeats * len(prompts)) for mode in modes}
    checker = Checker(model, values)
    passes: list[int] = []
    walks: list[Walk] = []
    lengths: list[int] = []
    try:
        for prompt in prompts:
            passes.append(checker.prompt_passes(prompt.tokens))
            found, length = _untimed(model, values, prompt, checker)
            walks.append(found)
            lengths.append(length)
    except (CheckError, tokentrie.TokenTrieError) as error:
        for track in tracks.values():
            track.error = f"the trie's own run failed: {error}"
    engines = [made for mode in modes if (made := _engine(tracks[mode], model, values, prompts, lengths))]
    for _ in range(plan.repeats):
        for number, prompt in enumerate(prompts):
            for made in engines:
                track = tracks[made.mode]
                if not track.over:
                    _run_once(model, made, number, prompt, track, plan.budget, checker)
                plan.step(values.name, made.mode)
    return SetResult(values, prompts, len(model.vocab), tracks, walks, passes)


def _untimed(model: tokentrie.Model, values: ValueSet, prompt: Prompt, checker: Checker) -> tuple[Walk, int]:
    """The trie's output before anything is timed: whether it is right, the way to it and its length."""
    steps: list[tokentrie.results.Step] = []
    model.clear()
    out = model.generate(prompt.tokens, values.constraint, max_tokens=values.max_tokens, on_step=steps.append)
    checker.check(TRIE, prompt.tokens, out)
    length = out.stats.sampled_tokens + out.stats.forced_tokens
    vocabulary = len(model.vocab)
    if values.trie is not None:
        return walk(values.trie, out.tokens, vocabulary), length
    masked = [vocabulary - len(step.allowed) for step in steps]
    return Walk(sum(not step.forced for step in steps), masked), length


def _engine(
    track: Track, model: tokentrie.Model, values: ValueSet, prompts: Sequence[Prompt], lengths: Sequence[int]
) -> Engine | None:
    if track.over:
        return None
    try:
        return engine(track.mode, model, values, prompts, lengths)
    except CannotRunError as reason:
        track.skipped = str(reason)
        return None


def _run_once(
    model: tokentrie.Model, made: Engine, number: int, prompt: Prompt, track: Track, budget: float, checker: Checker
) -> None:
    """One generation from an empty context, ended when the time of the mode is over."""
    if track.spent >= budget:
        track.out_of_time = True
        return
    model.clear()
    started = time.perf_counter()
    try:
        with stopped_after(model, budget - track.spent):
            out = made.run(number)
        if made.mode != FREE:
            checker.check(made.mode, prompt.tokens, out)
        track.samples.append(Sample(number, out))
    except CannotRunError as reason:
        track.skipped = str(reason)
    except tokentrie.errors.CancelledError:
        track.out_of_time = True
    except (CheckError, tokentrie.TokenTrieError) as error:
        track.error = str(error)
    track.spent += time.perf_counter() - started


@contextmanager
def stopped_after(model: tokentrie.Model, seconds: float) -> Iterator[None]:
    """Cancels what the model does in the block when the time is over, between two of its forward passes."""
    done = threading.Event()

    def watch() -> None:
        # Again and again, for a call that has not begun yet does not hear of it.
        wait = seconds
        while not done.wait(max(wait, 0.0)):
            model.cancel()
            wait = AGAIN

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of `mallopt`, from malloc.h."""
DEFAULT = 128 * 1024
KEPT = {TRIM_THRESHOLD: 1 << 30, MMAP_THRESHOLD: 1 << 25}


@contextmanager
def kept_memory() -> Iterator[bool]:
    """Keeps freed memory in the process for the block; False elsewhere than under glibc, where nothing is changed.

    llama.cpp's grammar sampler takes and frees much memory at each step, and glibc gives freed memory back to the
    system by sizes that depend on what the process did before: the same step then takes twice the time in one process
    and not in the next, most of it page faults. That would flatter the trie. So all modes keep their memory.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not (hasattr(library, "mallopt") and hasattr(library, "gnu_get_libc_version")):
        yield False
        return
    assert library is not None
    try:
        yield all(library.mallopt(number, size) == 1 for number, size in KEPT.items())
    finally:
        for number in KEPT:
            library.mallopt(number, DEFAULT)
        library.malloc_trim(0)
