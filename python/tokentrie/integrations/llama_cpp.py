"""A set of values inside the sampler chain of llama-cpp-python, in *its* llama.cpp.

Our callbacks link no llama.cpp: they get the address of `llama_sampler_init` in the library that llama-cpp-python has
loaded. So this works in a package built without llama.cpp too. Names of llama-cpp-python that are not public are used
in `_install` alone.
"""

from __future__ import annotations

import copy
import ctypes
import inspect
import weakref
from collections.abc import Callable, Iterable
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tokentrie
from tokentrie._native import _InChain, _into_chain
from tokentrie.integrations import _llama_cpp_host as host
from tokentrie.integrations.logits import LogitsConstraint

Processor = Callable[[NDArray[np.intc], NDArray[np.single]], NDArray[np.single]]


def vocab_of(llm: Any) -> tokentrie.Vocab:
    """The vocabulary of a loaded model, read and tokenised through its own llama.cpp.

    It equals the one of `Vocab.from_gguf` (the fingerprint is the same), which makes sets of more than some ten
    thousand texts faster. It is read once for a model and can be used until that is closed. Cost: O(tokens).

    Args:
        llm: a llama_cpp.Llama.

    Returns:
        Vocab.

    Raises:
        ImportError: llama-cpp-python is not installed.
        TypeError: it is not a Llama.
        ModelError: it is closed, or this version of llama-cpp-python is unknown.
        VocabularyError: the model has no vocabulary.

    Example:
        >>> import llama_cpp
        >>> from tokentrie.integrations.llama_cpp import vocab_of
        >>> llm = llama_cpp.Llama("tiny.gguf", verbose=False)
        >>> tokentrie.Trie.from_strings(vocab_of(llm), ["yes", "no"]).find(vocab_of(llm).tokenize("no"))
        0
    """
    return host.vocab(llm)


class TokenTrieSampler(list[Processor]):
    """A set of values as a sampler of llama-cpp-python: give it as `logits_processor=` of any call that has that.

    It goes first into the chain that llama-cpp-python makes for each generation, and shortens the array of candidates:
    every sampler behind it works on the legal tokens only, and no Python runs for a token. Each generation begins at
    the root; the chain owns its sampler and frees it.

    Args:
        llm: a llama_cpp.Llama; the object is for this one.
        constraint: what `Sampler` takes: a Trie, a list of str, a payload, a Sequence.
        mode: "sampled": the chain draws among the legal tokens, with its own settings (temperature 0 takes the best).
            "greedy": the best legal token, whatever the settings.
        end_tokens: ids that close the span at the end of a leaf. None: those of the set; where it has none, and the
            call is to end with the value, those that end a generation.
        after: what follows a value: "stop" allows only end of generation, which ends the call; "free" leaves the rest
            of the output alone.
        vocab: the vocabulary; None: `vocab_of(llm)`.

    Raises:
        ImportError: llama-cpp-python is not installed.
        TypeError: `llm` is not a Llama.
        ModelError: it is closed, or this version of llama-cpp-python is unknown: `TokenTrieLogitsProcessor` needs less.
        VocabularyError, PayloadError, TrieError, OptionError: as `Sampler`.

    Example:
        >>> import llama_cpp
        >>> from tokentrie.integrations.llama_cpp import TokenTrieSampler
        >>> llm = llama_cpp.Llama("tiny.gguf", verbose=False)
        >>> colour = TokenTrieSampler(llm, [" blue", " red and white", " red"])
        >>> out = llm.create_completion("The sky is", logits_processor=colour, temperature=0.0)
        >>> out["choices"][0]["text"] == colour.leaf.name
        True
    """

    def __init__(
        self,
        llm: Any,
        constraint: Any,
        *,
        mode: str = "sampled",
        end_tokens: ArrayLike | None = None,
        after: str = "stop",
        vocab: tokentrie.Vocab | None = None,
    ) -> None:
        # Called only by a model that does not know this object: the row then allows only an end of generation.
        super().__init__([self._refuse])
        vocab = _checked_vocab(llm, vocab)
        self._init = host.sampler_init()
        # Checks mode, constraint and end tokens.
        ends = _ends(constraint, end_tokens, after, vocab)
        self._start = tokentrie.Sampler(vocab, constraint, mode, ends, after)  # type: ignore[arg-type]
        self._mode, self._eog = mode, vocab.eog
        self._llm = weakref.ref(llm)
        self._others: list[Processor] = []
        # Shared with the copies that `extend` makes.
        self._last = SimpleNamespace(handle=None)
        _install(llm)

    @property
    def state(self) -> str:
        """str: of the last generation: "active" inside a value, "complete" after it, "off" after something else."""
        return self._start.state if self._handle is None else self._handle.state

    @property
    def leaf(self) -> tokentrie.sets.Leaf | None:
        """Leaf | None: the value of the last generation, once complete; of a Sequence the last."""
        return None if self._handle is None else self._handle.leaf

    @property
    def leaves(self) -> list[tokentrie.sets.Leaf]:
        """list[Leaf]: the values of the last generation so far."""
        return [] if self._handle is None else self._handle.leaves

    @property
    def counts(self) -> dict[str, int]:
        """dict[str, int]: counts of events in the last generation.

        `applied` rows and `accepted` tokens; `ignored` and `turned_off`: illegal tokens from outside, at the root and
        behind it; `starved`: rows in which no legal token had a usable logit; `poisoned` and `damaged`, 0 or 1: a fault
        of ours or a damaged set closed it. Empty before the first generation.
        """
        return {} if self._handle is None else self._handle.counts

    def activate(self, path: str) -> None:
        """Lets generations begin in the trie of a payload with this path.

        Raises:
            OptionError: there is no such path; it names those there are.
        """
        self._start.activate(path)

    def put_first(self, chain: Any) -> None:
        """Puts a new sampler, at the root, before all others of a chain, which owns it from then on.

        Calls with `logits_processor=` do it by themselves; this is for a chain of one's own. Samplers written in Python
        that the chain begins with stay before it, since they change logits by token id.

        Args:
            chain: a llama_cpp._internals.LlamaSampler.

        Raises:
            TypeError: it is not a chain.
            ModelError: it is closed.
        """
        lib = host.lib()
        if not isinstance(chain, host.internals().LlamaSampler):
            raise TypeError(f"a chain must be a llama_cpp._internals.LlamaSampler, not {type(chain).__name__}")
        if not chain.sampler:
            raise tokentrie.errors.ModelError("the chain is closed")
        written_here = {place for place, _ in chain.custom_samplers}
        at = next(place for place in count() if place not in written_here)
        address, handle = _into_chain(self._start, self._mode, self._init)
        later = lib.llama_sampler_chain_n(chain.sampler) - at
        behind = [lib.llama_sampler_chain_remove(chain.sampler, at) for _ in range(later)]
        for sampler in (ctypes.cast(address, lib.llama_sampler_p_ctypes), *behind):
            lib.llama_sampler_chain_add(chain.sampler, sampler)
        # Those written in Python are taken out by their place before the chain is freed.
        chain.custom_samplers = [(place + (place > at), sampler) for place, sampler in chain.custom_samplers]
        self._last.handle = handle

    def extend(self, others: Iterable[Processor]) -> TokenTrieSampler:  # type: ignore[override]
        """Returns a copy that calls these processors first; both share one state, so `leaf` and others agree.

        llama-cpp-python calls this where a request has `logit_bias=`, and goes on with what it returns.

        Args:
            others: callables of ids and a row, which return a row.

        Returns:
            TokenTrieSampler.
        """
        more = copy.copy(self)
        more._others = [*self._others, *others]
        return more

    @property
    def _handle(self) -> _InChain | None:
        handle: _InChain | None = self._last.handle
        return handle

    def _refuse(self, ids: NDArray[np.intc], row: NDArray[np.single]) -> NDArray[np.single]:
        del ids
        _close(row, self._eog)
        raise tokentrie.errors.OptionError("this TokenTrieSampler was made for another model")


class TokenTrieLogitsProcessor(list[Processor]):
    """Constraint of one request through Python: llama-cpp-python only has to call `logits_processor`.

    Slower: Python masks a whole row for every token. ctypes swallows exceptions in such a callback and leaves the row
    as it was; so after an error the row allows only end of generation, and `error` keeps it.

    Args:
        llm: a llama_cpp.Llama, without `draft_model`.
        constraint, end_tokens, after, vocab: as for `TokenTrieSampler`.

    Raises:
        OptionError: the model has a draft model: the ids then do not belong to the row.
        ImportError, TypeError, ModelError, VocabularyError, PayloadError, TrieError: as `TokenTrieSampler`.

    Example:
        >>> import llama_cpp
        >>> from tokentrie.integrations.llama_cpp import TokenTrieLogitsProcessor
        >>> llm = llama_cpp.Llama("tiny.gguf", verbose=False)
        >>> colour = TokenTrieLogitsProcessor(llm, [" blue", " red and white", " red"])
        >>> out = llm.create_completion("The sky is", logits_processor=colour, temperature=0.0)
        >>> out["choices"][0]["text"] == colour.leaf.name
        True
    """

    def __init__(
        self,
        llm: Any,
        constraint: Any,
        *,
        end_tokens: ArrayLike | None = None,
        after: str = "stop",
        vocab: tokentrie.Vocab | None = None,
    ) -> None:
        super().__init__([self._mask_row])
        vocab = _checked_vocab(llm, vocab)
        if getattr(llm, "draft_model", None) is not None:
            problem = "a model with a draft model calls processors with ids that are not accepted yet"
            raise tokentrie.errors.OptionError(f"{problem}: use TokenTrieSampler")
        ends = _ends(constraint, end_tokens, after, vocab)
        self._constraint = LogitsConstraint(vocab, constraint, end_tokens=ends, after=after)
        self._eog, self._ends = vocab.eog, [] if ends is None else np.asarray(ends).tolist()
        self.error: Exception | None = None
        """Error of a call, if any: the rows since then allow only end of generation."""

    @property
    def leaf(self) -> tokentrie.sets.Leaf | None:
        """Leaf | None: the value of a call that ended with it (`finish_reason` "stop"). The last token is unknown."""
        ended = self._constraint.sampler.clone()
        if ended.state == "active" and (ends := set(self._ends) & set(ended.allowed().tolist())):
            ended.accept(min(ends))
        return ended.leaf

    @property
    def sampler(self) -> tokentrie.Sampler:
        """Sampler: where it stands before the token that was sampled last."""
        return self._constraint.sampler

    def extend(self, others: Iterable[Processor]) -> list[Processor]:  # type: ignore[override]
        """The processors of a request that has others too: these first, this last. llama-cpp-python calls it.

        Args:
            others: callables of ids and a row, which return a row.

        Returns:
            list.
        """
        return [*others, *self]

    def _mask_row(self, ids: NDArray[np.intc], row: NDArray[np.single]) -> NDArray[np.single]:
        if self.error is None:
            try:
                return self._constraint(ids, np.ascontiguousarray(row))
            except Exception as error:
                self.error = error
        _close(row, self._eog)
        raise self.error


def _close(row: NDArray[np.single], eog: list[int]) -> None:
    """Leaves nothing but an end of generation in a row; where there is none, the first token alone."""
    row[:] = -np.inf
    row[eog[0] if eog and eog[0] < len(row) else 0] = 0.0


def _ends(constraint: Any, end_tokens: ArrayLike | None, after: str, vocab: tokentrie.Vocab) -> ArrayLike | None:
    """Returns the end tokens; if nothing else ends a value, the end of generation, so that no free text follows."""
    if end_tokens is not None or after != "stop" or len(getattr(constraint, "end_tokens", ())):
        return end_tokens
    return vocab.eog or None


def _checked_vocab(llm: Any, vocab: tokentrie.Vocab | None) -> tokentrie.Vocab:
    size = host.size(llm)
    vocab = host.vocab(llm) if vocab is None else vocab
    if len(vocab) != size:
        raise tokentrie.errors.VocabularyError(f"the vocabulary has {len(vocab):,} tokens, the model {size:,}")
    return vocab


def _install(llm: Any) -> None:
    """Lets the model make chains with a sampler of ours in front, where a request asks for it. Nothing else changes."""
    if "_init_sampler" in vars(llm):
        return
    made_by: Any = getattr(type(llm), "_init_sampler", None)
    signature = inspect.signature(made_by) if made_by else None
    if signature is None or not {"logits_processor", "grammar"} <= signature.parameters.keys():
        raise tokentrie.errors.ModelError(
            f"{host.version()} makes its chains in an unknown way: use TokenTrieLogitsProcessor, which needs less"
        )
    # Without a reference to the model, which would keep it from being freed when it is no longer used.
    model = weakref.ref(llm)

    def init_sampler(*args: Any, **settings: Any) -> Any:
        given = signature.bind(model(), *args, **settings)
        processors = given.arguments.get("logits_processor")
        trie = processors if isinstance(processors, TokenTrieSampler) else None
        if trie is None:
            if any(isinstance(part, TokenTrieSampler) for part in processors or ()):
                raise tokentrie.errors.OptionError(
                    "give a TokenTrieSampler itself as logits_processor=; others go before it by its extend()"
                )
            return made_by(*given.args, **given.kwargs)
        if trie._llm() is not model():
            raise tokentrie.errors.OptionError("this TokenTrieSampler was made for another model")
        if given.arguments.get("grammar") is not None:
            # llama.cpp ends the process where two constraints have no allowed token in common.
            raise tokentrie.errors.OptionError(
                "a grammar (grammar=, response_format=, tools) beside a TokenTrieSampler"
            )
        given.arguments["logits_processor"] = trie._others or None
        chain = made_by(*given.args, **given.kwargs)
        trie.put_first(chain)
        return chain

    llm._init_sampler = init_sampler
