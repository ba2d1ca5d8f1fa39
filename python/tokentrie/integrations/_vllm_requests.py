"""Requests of vLLM before they reach a logits processor, and what vLLM needs so that they reach it at all.

vLLM does not call a logits processor in every configuration, and the processor cannot notice that. With speculative
decoding the model runner V1 drops the processors that it found by entry point; with asynchronous scheduling it hides
the tokens from them; beam search over HTTP loses the arguments of a request. `register`, which vLLM calls in each of
its processes (`vllm.general_plugins`), works around these cases where it can, and refuses requests where it cannot.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tokentrie.integrations._shared.request_sets import RequestError, RequestSets, asks

PLUGIN = "tokentrie"
"""The name of the entry in `vllm.general_plugins`."""

PROCESSOR = "tokentrie.integrations.vllm:TokenTrieProcessor"
"""Name in `logits_processors` of a server."""

BEAM_SEARCHES = (
    "vllm.entrypoints.openai.completion.protocol:CompletionRequest",
    "vllm.entrypoints.openai.chat_completion.protocol:ChatCompletionRequest",
    "vllm.entrypoints.speech_to_text.transcription.protocol:TranscriptionRequest",
    "vllm.entrypoints.speech_to_text.translation.protocol:TranslationRequest",
)
"""Requests over HTTP with arguments of their own that may ask for beam search."""

SETS: list[RequestSets] = []
FAULTS: list[str] = []
"""Features that vLLM lacks, for which requests with sets are refused."""


def sets_of_requests() -> RequestSets:
    """The sets of this process, by its environment when a request first asked for one."""
    if not SETS:
        SETS.append(RequestSets.of_environment())
    return SETS[0]


def validate(sampling_params: Any) -> None:
    """Refuses a request whose set is not there, and every request with a set where vLLM was not prepared.

    Raises:
        RequestError: it says what is wrong.
    """
    extra = getattr(sampling_params, "extra_args", None)
    if not asks(extra):
        return
    plugins = os.environ.get("VLLM_PLUGINS")
    if plugins is not None and PLUGIN not in plugins.split(","):
        raise RequestError(
            f"tokentrie: sets are not supported: VLLM_PLUGINS is {plugins!r} and leaves out {PLUGIN!r}; add it and"
            " start the server again"
        )
    if FAULTS:
        raise RequestError(
            f"tokentrie: sets are not supported by this version of vLLM: {FAULTS[0]}; install 0.32 or 0.33"
        )
    sets_of_requests().asked(extra)


def validate_for(config: Any, sampling_params: Any) -> None:
    """Refuses a request whose set this server cannot hold.

    Args:
        config: vLLM's.
        sampling_params: those of the request.

    Raises:
        RequestError: it says what is wrong, and what to do.
    """
    extra = getattr(sampling_params, "extra_args", None)
    if not asks(extra):
        return
    if not config.use_v2_model_runner:
        from vllm.platforms import current_platform  # type: ignore[import-not-found, unused-ignore]

        if config.speculative_config is not None:
            raise RequestError(
                "tokentrie: a set with speculative decoding is not supported: the model runner V1 drops logits"
                " processors there; start the server with VLLM_USE_V2_MODEL_RUNNER=1 or without speculative_config"
            )
        if current_platform.is_tpu():
            raise RequestError(
                "tokentrie: sets are not supported: the model runner V1 has no logits processors on TPUs"
            )
    asked = sets_of_requests().asked(extra)
    assert asked is not None
    asked.check(config.model_config.get_vocab_size())


def name_processor(config: Any) -> None:
    """Names our processor where V1 then lets it see all tokens; an entry point alone does not bring that about."""
    model = config.model_config
    if model is None or model.runner_type == "pooling":
        return
    if config.use_v2_model_runner or config.speculative_config is not None:
        return
    if not is_named(config):
        model.logits_processors = [*(model.logits_processors or ()), PROCESSOR]


def is_named(config: Any) -> bool:
    """Returns whether a configuration names our processor: by its place, or as the class."""

    def is_ours(one: Any) -> bool:
        return (f"{one.__module__}:{one.__qualname__}" if isinstance(one, type) else one) == PROCESSOR

    named = getattr(getattr(config, "model_config", None), "logits_processors", None) or ()
    return any(map(is_ours, named))


def refuse_beam_search(request: Any) -> None:
    """Refuses a beam search with a set: vLLM hands the arguments of the request to none of its beams.

    Raises:
        RequestError: the request has a set.
    """
    if asks(getattr(request, "vllm_xargs", None)):
        raise RequestError(
            "tokentrie: a set with use_beam_search is not supported: vLLM passes vllm_xargs on to no beam; leave"
            " use_beam_search out"
        )


def register() -> None:
    """Prepares this process of vLLM: the entry of `vllm.general_plugins`, which vLLM calls in each.

    Where a version of vLLM has other functions than those that are wrapped here, requests with sets are refused, and
    the server goes on without them.
    """
    try:
        _prepare()
    except (ImportError, AttributeError) as error:
        FAULTS.append(str(error))


def _prepare() -> None:
    from vllm.engine.arg_utils import EngineArgs  # type: ignore[import-not-found, unused-ignore]
    from vllm.exceptions import VLLMValidationError  # type: ignore[import-not-found, unused-ignore]
    from vllm.v1.engine.input_processor import InputProcessor  # type: ignore[import-not-found, unused-ignore]

    def refusing(check: Callable[..., None], *arguments: Any) -> None:
        try:
            check(*arguments)
        except RequestError as error:
            raise VLLMValidationError(str(error)) from error

    def check_requests(processor: Any, _: Any) -> None:
        others, config = processor.validate_logits_processors_params, processor.vllm_config

        def check(sampling_params: Any) -> None:
            others(sampling_params)
            refusing(validate_for, config, sampling_params)

        processor.validate_logits_processors_params = check

    _wrap(EngineArgs, "create_engine_config", after=lambda _, config: name_processor(config))
    _wrap(InputProcessor, "__init__", after=check_requests)
    for place in BEAM_SEARCHES:
        module, name = place.split(":")
        try:
            request = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "vllm":
                raise
            continue  # it needs a package that is not there, so it is not served
        _wrap(request, "to_beam_search_params", before=lambda asked: refusing(refuse_beam_search, asked))


def _wrap(
    owner: type,
    name: str,
    *,
    before: Callable[[Any], None] | None = None,
    after: Callable[[Any, Any], None] | None = None,
) -> None:
    """Calls something of ours around a method, however often this is done."""
    method = getattr(owner, name)
    if getattr(method, "_of_tokentrie", False):
        return

    @functools.wraps(method)
    def call_wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        if before is not None:
            before(self)
        result = method(self, *arguments, **named)
        if after is not None:
            after(self, result)
        return result

    call_wrapped._of_tokentrie = True  # type: ignore[attr-defined]
    setattr(owner, name, call_wrapped)
