"""Samples: every mode in turn after the same prompt, so that what else the machine does hits all of them alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import tokentrie
from tokentrie.bench.checks import Checker, CheckError, Walk, walk
from tokentrie.bench.engines import FREE, TRIE, CannotRunError, Engine, Prompt, engine
from tokentrie.bench.sets import ValueSet

AGAIN = 0.05


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
        """The whole call."""
        return self.out.stats.seconds

    def own(self) -> float:
        """All that is neither the prompt's forward pass nor a later one."""
        return self.out.stats.seconds - self.out.stats.prompt_seconds - self.out.stats.decode_seconds


@dataclass
class Track:
    """What one mode did on one set."""

    mode: str
    planned: int
    samples: list[Sample] = field(default_factory=list)
    spent: float = 0.0
    skipped: str | None = None
    error: str | None = None
    out_of_time: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more shall be run."""
        return self.out_of_time or self.skipped is not None or self.error is not None

    def outputs(self) -> dict[int, tokentrie.Generated]:
        """For each prompt that was finished its first output."""
        found: dict[int, tokentrie.Generated] = {}
        for sample in self.samples:
            found.setdefault(sample.prompt, sample.out)
        return found


@dataclass(frozen=True)
class Measured:
    """What all modes did on one set."""

    values: ValueSet
    prompts: Sequence[Prompt]
    vocabulary: int
    tracks: dict[str, Track]
    walks: list[Walk]
    """For each prompt, the way of the trie's output."""
    prompt_passes: list[int]


@dataclass(frozen=True)
class Plan:
    """How much to measure. `step` is called after each generation, made or given up."""

    repeats: int
    budget: float
    step: Callable[[str, str], None] = lambda _set, _mode: None


def measure(
    model: tokentrie.Model, values: ValueSet, prompts: Sequence[Prompt], modes: Sequence[str], plan: Plan
) -> Measured:
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
    return Measured(values, prompts, len(model.vocab), tracks, walks, passes)


def _untimed(model: tokentrie.Model, values: ValueSet, prompt: Prompt, checker: Checker) -> tuple[Walk, int]:
    """The trie's output before anything is timed: whether it is right, the way to it and its length."""
    steps: list[tokentrie.Step] = []
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
    except tokentrie.CancelledError:
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
