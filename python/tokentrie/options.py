"""Options of calls as TypedDicts, for `Unpack`: one list of names for every method that takes them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from typing_extensions import NotRequired

    from tokentrie._native import CancelToken, Sampling, _Constraint, _Ids, _Stop, _ToolsIn, _Type
    from tokentrie.calibration import Calibration
    from tokentrie.results import Step


class PenaltyOptions(TypedDict, total=False):
    """Settings of the draw that no method names by itself: as for `Sampling`."""

    typical_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_last_n: int


class SamplingOptions(PenaltyOptions, total=False):
    """All settings of the draw: as for `Sampling`."""

    seed: int | None
    temperature: float
    top_k: int
    top_p: float
    min_p: float


class GenerateOptions(SamplingOptions, total=False):
    """Options of a generation, but for n and on_invalid, which say what is returned."""

    mode: Literal["greedy", "sampled", "exact", 0, 1]
    max_tokens: int | None
    skip_ahead: bool
    end_tokens: _Ids | None
    after: Literal["free", "stop"]
    probabilities: bool
    logprobs: int | None
    receipt: bool | bytes
    correct: int | None
    logit_bias: dict[int, float] | None
    on_step: Callable[[Step], object] | None
    sampling: Sampling | None
    free_sampling: Sampling | None
    stop: _Stop | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int


class UncheckedOptions(GenerateOptions):
    """Options of a generation whose value may be missing."""

    on_invalid: Literal["none"]


class AnyOptions(GenerateOptions, total=False):
    """Options of a generation whose value has no type."""

    on_invalid: Literal["raise", "none"]


class CheckedOptions(GenerateOptions, total=False):
    """Options of a generation whose value is there, or an error."""

    on_invalid: Literal["raise"]


class _AnyReplyOptions(SamplingOptions, total=False):
    """Options of a reply, but for the constraint of its content and what becomes of an invalid one."""

    parallel_tool_calls: bool
    tools_in: _ToolsIn
    whitespace: Literal["compact", "flexible"]
    enable_thinking: bool
    thinking_budget: int | None
    stop: _Stop | None
    show_schema: bool
    retries: int
    mode: Literal["greedy", "sampled", 0, 1]
    sampling: Sampling | None
    max_tokens: int | None
    probabilities: bool
    logprobs: int | None
    receipt: bool | bytes
    logit_bias: dict[int, float] | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int
    complete: bool
    continue_final_message: Literal["auto", "reasoning", "content"] | None
    template_variables: Mapping[str, Any] | None


class ReplyOptions(_AnyReplyOptions, total=False):
    """Options of a reply, but for the constraint of its content."""

    response_format: dict[str, Any] | _Type | None
    on_invalid: Literal["raise", "none"]


class CheckedReplyOptions(_AnyReplyOptions, total=False):
    """Options of a reply whose content has a value, or is an error."""

    on_invalid: Literal["raise"]


class UncheckedReplyOptions(_AnyReplyOptions):
    """Options of a reply whose content may have no value."""

    on_invalid: Literal["none"]


class ChatOptions(ReplyOptions, total=False):
    """Options of a chat, but for stream and n, which say what is returned."""

    constraint: _Constraint | None


class ProbabilityOptions(TypedDict, total=False):
    """Options of a probability."""

    tolerance: float | None
    max_rows: int | None
    samples: int
    max_tokens: int | None
    seed: int | None
    end_tokens: _Ids | None
    text: str | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int


class ChooseOptions(TypedDict, total=False):
    """Options of a choice."""

    prefix: str
    suffix: str
    tokenization: Literal["canonical", "all"]
    open_end: bool
    end_tokens: _Ids | None
    top: int | None
    max_rows: int | None
    beam: int | None
    threshold: float | None
    system: str | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int


class ChooseManyOptions(ChooseOptions, total=False):
    """Options of choices over many prompts."""

    on_error: Literal["raise", "skip"]
    progress: Callable[[int, int | None], object] | None


class ReturnedErrorOptions(ChooseOptions):
    """Options of choices over many prompts, with errors in the place of choices."""

    on_error: Literal["return"]
    progress: NotRequired[Callable[[int, int | None], object] | None]


class BeamOptions(TypedDict, total=False):
    """Options of a beam search over a set."""

    width: int | None
    prefix: str
    suffix: str
    tokenization: Literal["canonical", "all"]
    open_end: bool
    end_tokens: _Ids | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int


class DecideOptions(TypedDict, total=False):
    """Options of `Model.decide` and its like."""

    instructions: str | Mapping[str, Any] | Sequence[Any] | None
    prefix: str | None
    examples: Iterable[tuple[Any, Mapping[str, Any]] | Mapping[str, Any]]
    readout: Literal["text", "label"]
    end: Literal["optional", "required"]
    spellings: bool
    none_of_these: bool
    list_options: bool
    permute: int
    order: Literal["given", "independent", "balanced"]
    order_confidence: float
    prior: Literal["none", "content-free", "batch"]
    threshold: float | None
    target_accuracy: float | None
    coverage: float | None
    out_of_scope: bool
    escalate: float | None
    think_tokens: int
    top: int
    max_rows: int
    calibration: Calibration | str | PathLike[str] | None
    system: str | None
    prompt: str | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int


class DecideManyOptions(DecideOptions, total=False):
    """Options of decisions about many states."""

    on_error: Literal["raise", "return", "skip"]
    progress: Callable[[int, int | None], object] | None


class DecideTableOptions(DecideManyOptions):
    """Options of decisions about the rows of a table."""

    column: str | Sequence[str]


def check_names(call: str, options: Iterable[str], known: type, and_then: str = "") -> None:
    """Checks that a call takes options of these names, those of a TypedDict.

    `and_then` ends the message, with the name in place of NAME.

    Raises:
        TypeError: it does not take one of them; the message names the nearest that it takes.
    """
    names = known.__annotations__
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            meant = f': did you mean "{near[0]}"?' if near else "." if and_then else ""
            then = and_then.replace("NAME", name)
            raise TypeError(f"{call}() got an unexpected keyword argument '{name}'{meant}{then}")
