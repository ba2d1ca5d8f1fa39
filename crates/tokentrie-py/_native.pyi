"""The native part of tokentrie; import `tokentrie` instead.

Signatures are written by hand; builds put in the docstrings of the module (build_backend/stubs.py).
"""

import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Any as _Any
from typing import (
    Final,
    Generic,
    Literal,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    _SpecialForm,
    final,
    overload,
    type_check_only,
)

import numpy as np
from numpy.typing import NDArray
from tokentrie.calibration import Calibration
from tokentrie.chat_analysis import ChatAnalysis
from tokentrie.constraints import Form, Rule, Sequence, Unconstrained
from tokentrie.decisions import Answers
from tokentrie.explaining import Explanation
from tokentrie.streaming import ChatStream, Stream
from typing_extensions import Buffer, Self, TypeForm, TypeVar, Unpack, disjoint_base

__all__ = [
    "Batch",
    "CacheInfo",
    "CancelToken",
    "CancelledError",
    "ChatConstraint",
    "ChatEvent",
    "ChatFormat",
    "ChatParser",
    "ChatPrompt",
    "ChatStats",
    "ChatTemplate",
    "Choice",
    "ChoiceStats",
    "Choices",
    "Constraint",
    "ContextError",
    "Detokenizer",
    "EngineStats",
    "FilteredTrie",
    "Generated",
    "Hypothesis",
    "InvalidValueError",
    "Leaf",
    "LeafSet",
    "Limits",
    "LiveSet",
    "Message",
    "Model",
    "ModelError",
    "OpenCall",
    "OptionError",
    "PayloadError",
    "QueueFullError",
    "ReceiptError",
    "RuleError",
    "RuleStats",
    "Sampler",
    "Sampling",
    "Spec",
    "Stats",
    "Step",
    "TemplateError",
    "ThinkGate",
    "TimedOutError",
    "TokenLogprob",
    "TokenNotAllowedError",
    "TokenTrieError",
    "TokenTrieWarning",
    "ToolCall",
    "Tools",
    "Trie",
    "TrieArrays",
    "TrieCache",
    "TrieError",
    "TruncatedError",
    "Vocab",
    "VocabularyError",
    "_InChain",
    "_Typed",
    "__version__",
    "_grammar_example",
    "_host_vocab",
    "_into_chain",
    "_is_list",
    "_levels",
    "_listed_texts",
    "_outline",
    "_read_constraint",
    "_slot_size",
    "beam_search",
    "choose",
    "constraint",
    "verify_receipt",
]

__version__: Final[str]

_Ids: TypeAlias = Iterable[SupportsIndex] | NDArray[np.integer[_Any]]
_Payload: TypeAlias = str | bytes | dict[str, _Any]
# What a value is; what a name is.
_V = TypeVar("_V", default=_Any)
_D = TypeVar("_D")
_Value = TypeVar("_Value", covariant=True, default=_Any)
_Name = TypeVar("_Name", covariant=True, default=str | None)
_Item = TypeVar("_Item", covariant=True, default=Choice)

@type_check_only
class _Adapter(Protocol[_Value]):
    """pydantic's TypeAdapter, which need not be installed."""

    def json_schema(self) -> dict[str, _Any]: ...
    def validate_json(self, data: str, /) -> _Value: ...

# A type as it is: `int`, `Literal["a", "b"]`, `int | None`, a class. In a union mypy knows the first of these alone.
_Type: TypeAlias = TypeForm[_Any] | _SpecialForm | UnionType | GenericAlias | re.Pattern[str] | _Adapter
_Untyped: TypeAlias = (
    _Payload
    | Trie
    | FilteredTrie
    | LiveSet
    | Unconstrained
    | Sequence
    | ThinkGate
    | ChatConstraint
    | Spec
    | Form
    | _Adapter
)
# What is listed by its texts, which are names.
_Listed: TypeAlias = Rule | _Type | Iterable[str]
_Constraint: TypeAlias = _Untyped | _Listed
_Tokens: TypeAlias = (
    dict[str, _Any]
    | Trie
    | FilteredTrie
    | LiveSet
    | list[str]
    | tuple[str, ...]
    | Unconstrained
    | Sequence
    | ThinkGate
    | ChatConstraint
    | Spec
)
_Part: TypeAlias = _Tokens | Rule | Form
_Messages: TypeAlias = _Sequence[dict[str, _Any] | Message]
_Asked: TypeAlias = str | _Mapping[str, _Any] | _Sequence[_Any]
_Tools: TypeAlias = _Sequence[dict[str, _Any] | Callable[..., _Any]] | Tools
_ToolChoice: TypeAlias = str | dict[str, _Any]
_Continued: TypeAlias = Literal["auto", "reasoning", "content"]
_ToolsIn: TypeAlias = Literal["template", "system", "messages"]
_OnEvent: TypeAlias = Callable[[ChatEvent], object]
_OnInvalid: TypeAlias = Literal["raise", "none"]
_Stop: TypeAlias = str | list[str] | tuple[str, ...]
_EventKind: TypeAlias = Literal[
    "reasoning", "content", "call_begins", "arguments", "call_ends", "warning", "message_ends"
]
_Leaves: TypeAlias = (
    Iterable[int | str | Leaf | _Ids] | _Sequence[bool] | NDArray[np.integer[_Any]] | NDArray[np.bool_] | LeafSet
)
_Values: TypeAlias = Iterable[str] | Iterable[_Ids] | Trie
_Score: TypeAlias = Literal["model", "renormalised", "given"]
_Seed: TypeAlias = int | _Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator
_Mode: TypeAlias = Literal["greedy", "sampled", 0, 1]
_FillMode: TypeAlias = Literal["greedy", "sampled", "exact", 0, 1]
_After: TypeAlias = Literal["free", "stop"]
_State: TypeAlias = Literal["active", "complete", "idle", "off"]
_Finish: TypeAlias = Literal["form", "span", "end_of_generation", "stop_text", "max_tokens", "context_full"]
_Logits: TypeAlias = NDArray[np.float32] | Buffer
_Words: TypeAlias = NDArray[np.int32] | Buffer
# Tensors of torch, too, which need not be installed.
_Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float16] | _Any
_Answer: TypeAlias = _Rows | list[dict[int, float]]

class TokenTrieError(Exception): ...
class PayloadError(TokenTrieError, ValueError): ...
class RuleError(TokenTrieError, ValueError): ...
class TrieError(TokenTrieError, ValueError): ...
class ReceiptError(TokenTrieError, ValueError): ...

class InvalidValueError(TokenTrieError, ValueError):
    partial: Generated | Message | None
    text: str | None

class TruncatedError(TokenTrieError):
    partial: Generated[_Any] | Message | list[Generated[_Any]] | list[Message] | None
    text: str | None

class VocabularyError(TokenTrieError): ...
class TokenNotAllowedError(TokenTrieError): ...
class OptionError(TokenTrieError, ValueError): ...
class ModelError(TokenTrieError): ...
class ContextError(ModelError): ...
class TemplateError(ModelError): ...

class CancelledError(ModelError):
    partial: Generated | None

class TimedOutError(CancelledError, TimeoutError): ...
class QueueFullError(ModelError): ...
class TokenTrieWarning(UserWarning): ...

@final
class Hypothesis:
    __match_args__: Final = ("leaf", "tokens", "logprob")
    def __new__(cls, leaf: Leaf, tokens: list[int], logprob: float) -> Hypothesis: ...
    @property
    def leaf(self) -> Leaf: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def logprob(self) -> float: ...
    __hash__: None  # type: ignore[assignment]

@final
class LeafSet:
    def __and__(self, other: LeafSet, /) -> LeafSet: ...
    def __or__(self, other: LeafSet, /) -> LeafSet: ...
    def __sub__(self, other: LeafSet, /) -> LeafSet: ...
    def __rand__(self, other: LeafSet, /) -> LeafSet: ...
    def __ror__(self, other: LeafSet, /) -> LeafSet: ...
    def __rsub__(self, other: LeafSet, /) -> LeafSet: ...
    def __invert__(self) -> LeafSet: ...
    def __len__(self) -> int: ...
    def __contains__(self, leaf: int, /) -> bool: ...
    def __iter__(self) -> Iterator[int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]
    @property
    def ids(self) -> NDArray[np.int64]: ...

@final
class FilteredTrie:
    @property
    def trie(self) -> Trie: ...
    @property
    def allowed_leaves(self) -> LeafSet: ...
    def filtered(self, allow: _Leaves | None = None, deny: _Leaves | None = None) -> FilteredTrie: ...
    def allowed(self, prefix: _Ids | None = None) -> NDArray[np.int32]: ...
    def forced(self, prefix: _Ids | None = None) -> NDArray[np.int32]: ...
    def to_trie(self) -> Trie: ...
    def __len__(self) -> int: ...
    def __contains__(self, sequence: str | _Ids, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class LiveSet:
    def __new__(cls, trie: Trie, vocab: Vocab | None = None) -> Self: ...
    def change(self, add: _Values | None = None, remove: _Values | None = None) -> tuple[int, int]: ...
    def compact(self) -> None: ...
    def copy(self) -> LiveSet: ...
    def to_trie(self) -> Trie: ...
    def allowed(self, prefix: _Ids | None = None) -> NDArray[np.int32]: ...
    @property
    def patches(self) -> int: ...
    def __len__(self) -> int: ...
    def __contains__(self, value: str | _Ids, /) -> bool: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Leaf:
    __match_args__: Final = ("index", "name", "tokens")
    def __new__(cls, index: int, name: str | None, tokens: _Sequence[int]) -> Leaf: ...
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def tokens(self) -> list[int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Vocab:
    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> Vocab: ...
    @staticmethod
    def from_tokenizer(tokenizer: _Any, eog: _Ids | None = None, n_vocab: int | None = None) -> Vocab: ...
    @staticmethod
    def from_tiktoken(encoding: _Any, eog: _Ids | None = None, n_vocab: int | None = None) -> Vocab: ...
    @staticmethod
    def from_tokens(pieces: Iterable[bytes], eog: _Ids | None = None, control: _Ids | None = None) -> Vocab: ...
    def __len__(self) -> int: ...
    def __getitem__(self, token: int, /) -> bytes: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def kind(self, token: int) -> Literal["text", "byte", "control", "unknown", "unused"]: ...
    @property
    def eog(self) -> list[int]: ...
    @property
    def control(self) -> list[int]: ...
    @property
    def fingerprint(self) -> str: ...
    def tokenize(self, text: str, add_special: bool = False, parse_special: bool = False) -> list[int]: ...
    def tokenize_parts(self, parts: Iterable[tuple[str, bool]], add_special: bool = False) -> list[int]: ...
    def detokenize(self, ids: _Ids) -> str: ...
    def detokenize_bytes(self, ids: _Ids) -> bytes: ...
    def tokens_with_prefix(self, prefix: bytes) -> NDArray[np.int32]: ...
    def prefix_tokens(self, text: bytes) -> NDArray[np.int32]: ...

@final
class Trie:
    @staticmethod
    def from_payload(payload: _Payload, path: str | None = None, *, vocab: Vocab | int | None = None) -> Trie: ...
    @staticmethod
    def from_prefix_table(table: str | bytes | _Mapping[str, _Any] | PathLike[str], *, strict: bool = True) -> Trie: ...
    @property
    def is_weighted(self) -> bool: ...
    def weights(self, prefix: _Ids | None = None) -> NDArray[np.float32]: ...
    def end_weight(self, tokens: _Ids) -> float: ...
    def without_weights(self) -> Trie: ...
    @staticmethod
    def from_sequences(
        sequences: Iterable[_Ids | NDArray[np.integer[_Any]]] | NDArray[np.integer[_Any]],
        names: Iterable[str] | None = None,
        vocab: Vocab | int | None = None,
        *,
        memory: int | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Trie: ...
    @staticmethod
    def from_strings(
        vocab: Vocab,
        values: Iterable[str],
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        heal: bool = False,
        *,
        memory: int | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Trie: ...
    @classmethod
    def from_numpy(
        cls,
        tokens: _Ids,
        offsets: _Sequence[int] | NDArray[np.integer[_Any]],
        names: _Sequence[str] | None = None,
        heal_bytes: int = 0,
    ) -> Trie: ...
    @property
    def heal_bytes(self) -> int: ...
    @property
    def end_tokens(self) -> NDArray[np.int32]: ...
    def with_end_tokens(self, ids: _Ids) -> Trie: ...
    @property
    def report(self) -> dict[str, _Any] | None: ...
    def save(self, path: str | PathLike[str], vocab: Vocab | int | None = None) -> None: ...
    @staticmethod
    def open(path: str | PathLike[str], *, vocab: Vocab | int | None = None, verify: bool = False) -> Trie: ...
    def to_bytes(self, vocab: Vocab | int | None = None) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes, *, vocab: Vocab | int | None = None) -> Trie: ...
    @property
    def fingerprint(self) -> str | None: ...
    @property
    def is_tree(self) -> bool: ...
    @property
    def nodes(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def input_rows(self) -> NDArray[np.int64]: ...
    def find(self, tokens: _Ids | str | bytes, *, vocab: Vocab | None = None) -> int | None: ...
    def complete(self, text: str | bytes, k: int | None = 10, *, vocab: Vocab | None = None) -> list[Leaf]: ...
    def leaf(self, index: int) -> Leaf | None: ...
    def allowed(self, prefix: _Ids | None = None) -> NDArray[np.int32]: ...
    def forced(self, prefix: _Ids | None = None) -> NDArray[np.int32]: ...
    def leaves(self, prefix: _Ids | None = None) -> Iterator[Leaf]: ...
    def union(self, *others: Trie) -> Trie: ...
    def intersection(self, *others: Trie) -> Trie: ...
    def difference(self, *others: Trie) -> Trie: ...
    def symmetric_difference(self, other: Trie) -> Trie: ...
    def issubset(self, other: Trie) -> bool: ...
    def issuperset(self, other: Trie) -> bool: ...
    def isdisjoint(self, other: Trie) -> bool: ...
    def leaf_set(self, leaves: _Leaves) -> LeafSet: ...
    def filtered(self, allow: _Leaves | None = None, deny: _Leaves | None = None) -> FilteredTrie: ...
    def filter(self, keep: Callable[[Leaf], object] | _Sequence[bool] | NDArray[np.bool_]) -> Trie: ...
    def sample(self, n: int, seed: _Seed | None = None) -> Trie: ...
    def arrays(self, *, verify: bool = True) -> TrieArrays: ...
    @overload
    def to_numpy(self, *, table: Literal[False] = False) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    @overload
    def to_numpy(self, *, table: Literal[True]) -> NDArray[np.int32]: ...
    def to_gbnf(self, vocab: Vocab | None = None) -> str: ...
    def to_regex(self, vocab: Vocab | None = None) -> str: ...
    def to_json_schema_enum(self, vocab: Vocab | None = None) -> dict[str, _Any]: ...
    def to_mermaid(
        self, vocab: Vocab | None = None, max_depth: int | None = None, max_children: int | None = None
    ) -> str: ...
    def to_dot(
        self, vocab: Vocab | None = None, max_depth: int | None = None, max_children: int | None = None
    ) -> str: ...
    def _repr_svg_(self) -> str: ...
    def to_svg(
        self, vocab: Vocab | None = None, max_depth: int | None = None, max_children: int | None = None
    ) -> str: ...
    def __len__(self) -> int: ...
    def __contains__(self, leaf: str | bytes | _Ids, /) -> bool: ...
    def __iter__(self) -> Iterator[Leaf]: ...
    def __or__(self, other: Trie, /) -> Trie: ...
    def __ror__(self, other: Trie, /) -> Trie: ...
    def __and__(self, other: Trie, /) -> Trie: ...
    def __rand__(self, other: Trie, /) -> Trie: ...
    def __sub__(self, other: Trie, /) -> Trie: ...
    def __rsub__(self, other: Trie, /) -> Trie: ...
    def __xor__(self, other: Trie, /) -> Trie: ...
    def __rxor__(self, other: Trie, /) -> Trie: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __le__(self, other: Trie, /) -> bool: ...
    def __lt__(self, other: Trie, /) -> bool: ...
    def __ge__(self, other: Trie, /) -> bool: ...
    def __gt__(self, other: Trie, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __reduce__(self) -> tuple[_Any, ...]: ...
    @classmethod
    def _reopen(cls, path: str | PathLike[str], stamp: bytes, verify: bool) -> Self: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

def _levels(trie: Trie) -> list[list[int]]: ...
def _outline(
    trie: Trie, max_depth: int | None = None, max_children: int | None = None
) -> list[tuple[int | None, list[int], bool, str | None, int, int, int]]: ...
def _listed_texts(values: object) -> list[str] | None: ...
def _is_list(values: object) -> bool: ...
def _grammar_example(name: str) -> str: ...
def _read_constraint(given: object) -> _Any: ...
def _slot_size(name: str, values: object) -> int | None: ...

@final
class _InChain:
    @property
    def state(self) -> str: ...
    @property
    def leaf(self) -> Leaf | None: ...
    @property
    def leaves(self) -> list[Leaf]: ...
    @property
    def depth(self) -> int: ...
    @property
    def is_in_chain(self) -> bool: ...
    @property
    def counts(self) -> dict[str, int]: ...

def _into_chain(sampler: Sampler, mode: str | int, init: int) -> tuple[int, _InChain]: ...
def _host_vocab(tokens: Iterable[tuple[bytes, str]], eog: Iterable[int], tokenizer: object) -> Vocab: ...

def verify_receipt(
    receipt: dict[str, _Any] | str | bytes,
    constraint: _Constraint | None = None,
    *,
    vocab: Vocab,
    key: bytes | None = None,
) -> None: ...
def constraint(
    spec: _Constraint,
    *,
    names: dict[str, _Any] | None = None,
    sets: str | PathLike[str] | None = None,
    template: ChatTemplate | None = None,
) -> Spec: ...

@disjoint_base
class Constraint:
    def __new__(cls, *args: _Any, **keywords: _Any) -> Self: ...
    def _hold(self, json: str, objects: list[_Any], unlimited: bool = False) -> list[str]: ...
    def _table(self) -> list[tuple[bool, list[tuple[list[tuple[int, int]], int]]]] | None: ...
    def _items(self, text: str) -> list[str] | None: ...
    @property
    def _facts(self) -> dict[str, _Any]: ...
    @property
    def _is_rule(self) -> bool: ...
    def _part_value(self, name: str, text: str) -> _Any: ...
    @property
    def kind(self) -> str: ...
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, _Any]: ...
    def matches(self, text: str | bytes) -> bool: ...
    def parse(self, text: str) -> _Any: ...
    def texts(self, limit: int = 10_000) -> list[str]: ...
    def samples(self, count: int, seed: int = 0) -> list[str]: ...
    def check(self, states: int = 1000) -> bool: ...
    def stats(self, vocab: Vocab) -> RuleStats: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, ...]: ...
    def __add__(self, other: _Any, /) -> _Any: ...
    def __radd__(self, other: _Any, /) -> _Any: ...

@final
class Spec(Constraint):
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class RuleStats:
    @property
    def masks(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def misses(self) -> int: ...
    __hash__: None  # type: ignore[assignment]

@final
class _Typed:
    def __new__(cls, kind: _Any, held: list[str] | Rule) -> _Typed: ...
    @staticmethod
    def is_type(given: object) -> bool: ...
    def parse(self, text: str) -> _Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[_Any], _Any], tuple[_Any]]: ...

@type_check_only
class _Settings(TypedDict, total=False):
    """Settings of the draw that came after the others."""

    typical_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_last_n: int

@type_check_only
class _AllSettings(_Settings, total=False):
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int | None

@final
class Sampling:
    __match_args__: Final = (
        "mode",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "seed",
        "typical_p",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
        "penalty_last_n",
    )
    def __new__(
        cls,
        mode: _Mode = "greedy",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
        typical_p: float = 1.0,
        repeat_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        penalty_last_n: int = 64,
    ) -> Sampling: ...
    @staticmethod
    def settings() -> list[tuple[str, int | float, str, str]]: ...
    @property
    def mode(self) -> Literal["greedy", "sampled"]: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def top_p(self) -> float: ...
    @property
    def min_p(self) -> float: ...
    @property
    def typical_p(self) -> float: ...
    @property
    def repeat_penalty(self) -> float: ...
    @property
    def presence_penalty(self) -> float: ...
    @property
    def frequency_penalty(self) -> float: ...
    @property
    def penalty_last_n(self) -> int: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def without_effect(self) -> list[str]: ...
    def replace(self, *, mode: _Mode = ..., **settings: Unpack[_AllSettings]) -> Sampling: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...

@disjoint_base
class Sampler:
    def __new__(
        cls,
        vocab: Vocab | int,
        constraint: _Constraint,
        mode: _Mode = "greedy",
        end_tokens: _Ids | None = None,
        after: _After = "free",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
        *,
        sampling: Sampling | None = None,
        **settings: Unpack[_Settings],
    ) -> Sampler: ...
    def allowed(self) -> NDArray[np.int32]: ...
    def forced(self) -> NDArray[np.int32]: ...
    def apply(self, logits: _Logits) -> None: ...
    def sample(self, logits: _Logits) -> int: ...
    def advance(self, logits: _Logits) -> list[int]: ...
    def accept(self, tokens: SupportsIndex | _Ids) -> None: ...
    def rollback(self, n: int) -> None: ...
    def reset(self) -> None: ...
    def clone(self) -> Sampler: ...
    def activate(self, path: str) -> None: ...
    def deactivate(self) -> None: ...
    def fill_bitmask(self, words: _Words) -> None: ...
    @property
    def state(self) -> _State: ...
    @property
    def leaf(self) -> Leaf | None: ...
    @property
    def leaves(self) -> list[Leaf]: ...
    @property
    def values(self) -> dict[str, str]: ...
    @property
    def depth(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def open(self) -> bool: ...
    @property
    def thinking(self) -> int: ...
    @property
    def starved(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def paths(self) -> list[str]: ...
    @property
    def trie(self) -> Trie: ...
    @property
    def seed(self) -> int: ...

@final
class Batch:
    def __new__(
        cls,
        constraint: _Constraint | _Sequence[_Constraint | None],
        rows: int | None = None,
        *,
        vocab: Vocab | int,
        mode: _Mode = "greedy",
        end_tokens: _Ids | None = None,
        after: _After = "stop",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
        sampling: Sampling | None = None,
        allow: _Leaves | None = None,
        deny: _Leaves | None = None,
        no_repeat: bool | Literal["row", "siblings"] | None = None,
        **settings: Unpack[_Settings],
    ) -> Batch: ...
    def __len__(self) -> int: ...
    @property
    def n_vocab(self) -> int: ...
    def allowed(self, row: int) -> NDArray[np.int32]: ...
    def forced(self, row: int) -> NDArray[np.int32]: ...
    @property
    def finished(self) -> NDArray[np.bool_]: ...
    @property
    def nodes(self) -> NDArray[np.int32]: ...
    @property
    def accepted(self) -> NDArray[np.int32]: ...
    @property
    def thinking(self) -> NDArray[np.int32]: ...
    def next_item(self, groups: int | _Ids | None = None) -> int: ...
    def items(self, row: int) -> list[Leaf]: ...
    @property
    def unbound(self) -> NDArray[np.bool_]: ...
    @property
    def mode(self) -> str: ...
    def _warn_of_weights(self) -> None: ...
    def _select_listed(self, listed: NDArray[np.float32]) -> NDArray[np.int32]: ...
    def _top_listed(
        self,
        listed: NDArray[np.float32],
        k: int,
        scores: Iterable[float] | NDArray[np.floating[_Any]] | None,
        groups: int | Iterable[int] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    def leaf(self, row: int) -> Leaf | None: ...
    def value(self, row: int) -> _Any: ...
    @property
    def values(self) -> list[_Any]: ...
    def leaves(self, row: int) -> list[Leaf]: ...
    def apply(self, logits: _Rows) -> None: ...
    def fill_bitmask(self, words: _Words) -> None: ...
    def bitmask(self) -> NDArray[np.int32]: ...
    def select(self, logits: _Rows) -> NDArray[np.int32]: ...
    def accept(self, tokens: _Ids, *, row: int | None = None) -> None: ...
    def reorder(self, parents: _Ids) -> None: ...
    def rollback(self, n: int, *, row: int | None = None) -> None: ...
    def reset(self) -> None: ...
    def assign(self, row: int, constraint: _Constraint | None) -> None: ...
    def verify(
        self, drafts: Iterable[_Ids] | NDArray[np.integer[_Any]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
    def children(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...
    def top_children(
        self,
        logits: _Rows,
        k: int,
        scores: Iterable[float] | NDArray[np.floating[_Any]] | None = None,
        score: _Score = "model",
        groups: int | Iterable[int] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    def clone(self) -> Batch: ...
    @property
    def starved(self) -> int: ...
    @property
    def seed(self) -> int: ...

@final
class TrieArrays:
    @property
    def tokens(self) -> NDArray[np.int32]: ...
    @property
    def first_child(self) -> NDArray[np.uint32]: ...
    @property
    def targets(self) -> NDArray[np.uint32] | None: ...
    @property
    def inner_terminals(self) -> NDArray[np.uint32]: ...
    @property
    def weights(self) -> NDArray[np.float32] | None: ...
    @property
    def end_weights(self) -> NDArray[np.float32] | None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def leaves(self) -> int: ...
    @property
    def max_token(self) -> int: ...
    @property
    def end_tokens(self) -> list[int]: ...
    @property
    def trie(self) -> Trie: ...
    def end_nodes(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    def leaf_at(self, node: int) -> int | None: ...

@final
class CacheInfo:
    @property
    def hits(self) -> int: ...
    @property
    def content_hits(self) -> int: ...
    @property
    def misses(self) -> int: ...
    @property
    def evictions(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class TrieCache:
    def __new__(cls, capacity: int = 128) -> TrieCache: ...
    def sampler(
        self,
        vocab: Vocab | int,
        constraint: _Constraint,
        mode: _Mode = "greedy",
        end_tokens: _Ids | None = None,
        after: _After = "free",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
        *,
        sampling: Sampling | None = None,
        **settings: Unpack[_Settings],
    ) -> Sampler: ...
    def cache_info(self) -> CacheInfo: ...
    def clear(self) -> None: ...

@type_check_only
class _GenerateOptions(_AllSettings, total=False):
    mode: _FillMode
    max_tokens: int | None
    skip_ahead: bool
    end_tokens: _Ids | None
    after: _After
    probabilities: bool
    logprobs: int | None
    receipt: bool | bytes
    logit_bias: dict[int, float] | None
    on_step: Callable[[Step], object] | None
    sampling: Sampling | None
    free_sampling: Sampling | None
    stop: _Stop | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int

@type_check_only
class _ChatOptions(_AllSettings, total=False):
    parallel_tool_calls: bool
    tools_in: _ToolsIn
    enable_thinking: bool
    thinking_budget: int | None
    stop: _Stop | None
    constraint: _Constraint | None
    response_format: dict[str, _Any] | _Type | None
    show_schema: bool
    on_invalid: _OnInvalid
    retries: int
    mode: _Mode
    sampling: Sampling | None
    max_tokens: int | None
    probabilities: bool
    logprobs: int | None
    receipt: bool | bytes
    logit_bias: dict[int, float] | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int
    continue_final_message: _Continued | None
    template_variables: _Mapping[str, _Any] | None

@type_check_only
class _ChooseOptions(TypedDict, total=False):
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

@type_check_only
class _ChooseManyOptions(_ChooseOptions, total=False):
    on_error: Literal["raise", "skip", "return"]
    progress: Callable[[int, int | None], object] | None

@type_check_only
class _BeamOptions(TypedDict, total=False):
    width: int | None
    prefix: str
    suffix: str
    tokenization: Literal["canonical", "all"]
    open_end: bool
    end_tokens: _Ids | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int

@type_check_only
class _DecideOptions(TypedDict, total=False):
    instructions: str | _Mapping[str, _Any] | _Sequence[_Any] | None
    readout: Literal["text", "label"]
    list_options: bool
    permute: int
    prior: Literal["none", "content-free", "batch"]
    threshold: float | None
    top: int
    calibration: Calibration | str | PathLike[str] | None
    system: str | None
    prompt: str | None
    cancel: CancelToken | None
    timeout: float | None
    priority: int

@final
class Limits:
    def __new__(cls, *, bytes: int = 268_435_456, steps: int = 100_000_000, seconds: float = 10.0) -> Self: ...
    @property
    def bytes(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    __hash__: None  # type: ignore[assignment]

@final
class CancelToken:
    def __new__(cls) -> Self: ...
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

@final
class OpenCall:
    def __new__(cls, cancel: CancelToken | None, timeout: float | None, priority: int) -> Self: ...
    def check(self) -> None: ...

@final
class Detokenizer:
    def __new__(cls, vocab: Vocab) -> Self: ...
    def push(self, tokens: SupportsIndex | _Ids, /) -> str: ...
    def finish(self) -> str: ...

@final
class EngineStats:
    @property
    def slots(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def queued(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def tokens_per_pass(self) -> float: ...
    @property
    def tokens_reused(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def failed_passes(self) -> int: ...
    @property
    def decode_seconds(self) -> float: ...
    @property
    def own_seconds(self) -> float: ...

@final
class Model:
    def __new__(
        cls,
        path: str | PathLike[str] | None = None,
        n_ctx: int | None = None,
        n_gpu_layers: int = 0,
        n_threads: int | None = None,
        precise: bool = False,
        *,
        slots: int = 1,
        max_queue: int = 1024,
        batching: Literal["free", "fixed"] = "free",
        prefill_chunk: int = 64,
        n_batch: int = 512,
        cache_type: Literal["f32", "f16", "bf16", "q8_0", "q5_0", "q4_0"] | None = None,
        flash_attention: bool | None = None,
    ) -> Model: ...
    @property
    def engine(self) -> EngineStats | None: ...
    @property
    def vocab(self) -> Vocab: ...
    @property
    def path(self) -> Path: ...
    @property
    def n_ctx(self) -> int: ...
    @property
    def n_threads(self) -> int: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        mode: _FillMode = "greedy",
        max_tokens: int | None = None,
        skip_ahead: bool = True,
        *,
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        end_tokens: _Ids | None = None,
        after: _After = "stop",
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        on_step: Callable[[Step], object] | None = None,
        sampling: Sampling | None = None,
        free_sampling: Sampling | None = None,
        stop: _Stop | None = None,
        on_invalid: Literal["raise"] = "raise",
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        n: None = None,
        **settings: Unpack[_Settings],
    ) -> Generated[_V]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: _Untyped | None = None,
        mode: _FillMode = "greedy",
        max_tokens: int | None = None,
        skip_ahead: bool = True,
        *,
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        end_tokens: _Ids | None = None,
        after: _After = "stop",
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        on_step: Callable[[Step], object] | None = None,
        sampling: Sampling | None = None,
        free_sampling: Sampling | None = None,
        stop: _Stop | None = None,
        on_invalid: _OnInvalid = "raise",
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        n: None = None,
        **settings: Unpack[_Settings],
    ) -> Generated: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        mode: _FillMode = "greedy",
        max_tokens: int | None = None,
        skip_ahead: bool = True,
        *,
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        end_tokens: _Ids | None = None,
        after: _After = "stop",
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        on_step: Callable[[Step], object] | None = None,
        sampling: Sampling | None = None,
        free_sampling: Sampling | None = None,
        stop: _Stop | None = None,
        on_invalid: Literal["raise"] = "raise",
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        n: None = None,
        **settings: Unpack[_Settings],
    ) -> Generated[str]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        mode: _FillMode = "greedy",
        max_tokens: int | None = None,
        skip_ahead: bool = True,
        *,
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        end_tokens: _Ids | None = None,
        after: _After = "stop",
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        on_step: Callable[[Step], object] | None = None,
        sampling: Sampling | None = None,
        free_sampling: Sampling | None = None,
        stop: _Stop | None = None,
        on_invalid: Literal["raise"] = "raise",
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        n: None = None,
        **settings: Unpack[_Settings],
    ) -> Generated[_V]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        mode: _FillMode = "greedy",
        max_tokens: int | None = None,
        skip_ahead: bool = True,
        *,
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        end_tokens: _Ids | None = None,
        after: _After = "stop",
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        on_step: Callable[[Step], object] | None = None,
        sampling: Sampling | None = None,
        free_sampling: Sampling | None = None,
        stop: _Stop | None = None,
        on_invalid: Literal["raise"] = "raise",
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        n: None = None,
        **settings: Unpack[_Settings],
    ) -> Generated[str]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[_V]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: _Untyped | None = None,
        *,
        n: int,
        on_invalid: _OnInvalid = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[str]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[_V]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[str]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Generated[_V | None]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Generated[str | None]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Generated[_V | None]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Generated[str | None]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[_V | None]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[str | None]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[_V | None]]: ...
    @overload
    def generate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> list[Generated[str | None]]: ...
    @overload
    def decide(
        self,
        state: _Asked,
        questions: _Mapping[str, _Any],
        *,
        instructions: str | _Mapping[str, _Any] | _Sequence[_Any] | None = None,
        readout: Literal["text", "label"] = "text",
        list_options: bool = True,
        permute: int = 1,
        prior: Literal["none", "content-free", "batch"] = "none",
        threshold: float | None = None,
        top: int = 10,
        system: str | None = None,
        prompt: str | None = None,
        calibration: Calibration | str | PathLike[str] | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> Answers[dict[str, _Any]]: ...
    @overload
    def decide(
        self,
        state: _Asked,
        questions: type[_D],
        *,
        instructions: str | _Mapping[str, _Any] | _Sequence[_Any] | None = None,
        readout: Literal["text", "label"] = "text",
        list_options: bool = True,
        permute: int = 1,
        prior: Literal["none", "content-free", "batch"] = "none",
        threshold: float | None = None,
        top: int = 10,
        system: str | None = None,
        prompt: str | None = None,
        calibration: Calibration | str | PathLike[str] | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> Answers[_D]: ...
    @overload
    def decide_many(
        self, states: Iterable[_Asked], questions: _Mapping[str, _Any], **options: Unpack[_DecideOptions]
    ) -> list[Answers[dict[str, _Any]]]: ...
    @overload
    def decide_many(
        self, states: Iterable[_Asked], questions: type[_D], **options: Unpack[_DecideOptions]
    ) -> list[Answers[_D]]: ...
    @overload
    def adecide(
        self, state: _Asked, questions: _Mapping[str, _Any], **options: Unpack[_DecideOptions]
    ) -> Coroutine[_Any, _Any, Answers[dict[str, _Any]]]: ...
    @overload
    def adecide(
        self, state: _Asked, questions: type[_D], **options: Unpack[_DecideOptions]
    ) -> Coroutine[_Any, _Any, Answers[_D]]: ...
    def calibrate(
        self,
        states: Iterable[_Asked],
        questions: _Mapping[str, _Any] | type[_Any],
        gold: _Mapping[str, Iterable[_Any]],
        **options: Unpack[_DecideOptions],
    ) -> Calibration: ...
    def _calibrated(self, request: str, examples: str) -> str: ...
    def _decide(self, request: str, first: int = 0, call: OpenCall | None = None) -> str: ...
    def _prompt_logprobs(self, tokens: str | _Ids, top: int, call: OpenCall) -> list[TokenLogprob]: ...
    def _generate_with_grammar(
        self, prompt: str | _Ids, engine: Literal["gbnf", "llguidance"], grammar: str, max_tokens: int
    ) -> Generated: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def save_prefix(self, path: str | PathLike[str], prompt: str | _Ids) -> None: ...
    def load_prefix(self, path: str | PathLike[str]) -> int: ...
    def clear(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _kind: object, _error: object, _traceback: object) -> None: ...
    def stream(
        self,
        prompt: str | _Ids,
        constraint: _Constraint | None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Stream: ...
    def explain(
        self,
        prompt: str | _Ids,
        constraint: _Constraint | None = None,
        *,
        top: int = 5,
        **options: Unpack[_GenerateOptions],
    ) -> Explanation: ...
    @property
    def chat_format(self) -> ChatFormat: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        parallel_tool_calls: bool = True,
        tools_in: _ToolsIn = "template",
        enable_thinking: bool = True,
        thinking_budget: int | None = None,
        stream: Literal[True],
        stop: _Stop | None = None,
        constraint: _Constraint | None = None,
        response_format: dict[str, _Any] | _Type | None = None,
        show_schema: bool = True,
        on_invalid: _OnInvalid = "raise",
        retries: int = 0,
        mode: _Mode = "greedy",
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        continue_final_message: _Continued | None = None,
        template_variables: _Mapping[str, _Any] | None = None,
        **settings: Unpack[_Settings],
    ) -> ChatStream: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        parallel_tool_calls: bool = True,
        tools_in: _ToolsIn = "template",
        enable_thinking: bool = True,
        thinking_budget: int | None = None,
        stream: _OnEvent | Literal[False] | None = None,
        n: None = None,
        stop: _Stop | None = None,
        constraint: _Constraint | None = None,
        response_format: dict[str, _Any] | _Type | None = None,
        show_schema: bool = True,
        on_invalid: _OnInvalid = "raise",
        retries: int = 0,
        mode: _Mode = "greedy",
        seed: int | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        probabilities: bool = False,
        logprobs: int | None = None,
        receipt: bool | bytes = False,
        logit_bias: dict[int, float] | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        continue_final_message: _Continued | None = None,
        template_variables: _Mapping[str, _Any] | None = None,
        **settings: Unpack[_Settings],
    ) -> Message: ...
    @overload
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        n: int,
        **options: Unpack[_ChatOptions],
    ) -> list[Message]: ...
    def _chat(self, messages: _Any, tools: _Any = None, tool_choice: _Any = None, **options: _Any) -> _Any: ...
    @staticmethod
    def _response_format(given: dict[str, _Any]) -> Constraint | None: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: Literal[True],
        **options: Unpack[_ChatOptions],
    ) -> ChatStream: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        stream: _OnEvent | Literal[False] | None = None,
        n: None = None,
        **options: Unpack[_ChatOptions],
    ) -> Coroutine[_Any, _Any, Message]: ...
    @overload
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        n: int,
        **options: Unpack[_ChatOptions],
    ) -> Coroutine[_Any, _Any, list[Message]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[_V]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: _Untyped | None = None,
        *,
        on_invalid: _OnInvalid = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[str]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[_V]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[str]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[_V]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: _Untyped | None = None,
        *,
        n: int,
        on_invalid: _OnInvalid = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[str]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[_V]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        n: int,
        on_invalid: Literal["raise"] = "raise",
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[str]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[_V | None]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[str | None]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[_V | None]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        on_invalid: Literal["none"],
        n: None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated[str | None]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Rule[_V],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[_V | None]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: re.Pattern[str],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[str | None]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: TypeForm[_V],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[_V | None]]]: ...
    @overload
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: Iterable[str],
        *,
        n: int,
        on_invalid: Literal["none"],
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, list[Generated[str | None]]]: ...
    @overload
    def achoose(  # type: ignore[overload-overlap]
        self, prompt: str | _Ids, choices: _Untyped, **options: Unpack[_ChooseOptions]
    ) -> Coroutine[_Any, _Any, Choice]: ...
    @overload
    def achoose(
        self, prompt: str | _Ids, choices: TypeForm[_Any], **options: Unpack[_ChooseOptions]
    ) -> Coroutine[_Any, _Any, Choice[str]]: ...
    @overload
    def achoose(
        self, prompt: str | _Ids, choices: _Listed, **options: Unpack[_ChooseOptions]
    ) -> Coroutine[_Any, _Any, Choice[str]]: ...
    @overload
    def achoose_many(  # type: ignore[overload-overlap]
        self, prompts: Iterable[str | _Ids], choices: _Untyped, **options: Unpack[_ChooseManyOptions]
    ) -> Coroutine[_Any, _Any, list[Choice]]: ...
    @overload
    def achoose_many(
        self, prompts: Iterable[str | _Ids], choices: TypeForm[_Any], **options: Unpack[_ChooseManyOptions]
    ) -> Coroutine[_Any, _Any, list[Choice[str]]]: ...
    @overload
    def achoose_many(
        self, prompts: Iterable[str | _Ids], choices: _Listed, **options: Unpack[_ChooseManyOptions]
    ) -> Coroutine[_Any, _Any, list[Choice[str]]]: ...
    def beam(
        self,
        prompt: str | _Ids,
        choices: _Constraint,
        k: int = 10,
        *,
        width: int | None = None,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> list[Hypothesis]: ...
    def abeam(
        self, prompt: str | _Ids, choices: _Constraint, k: int = 10, **options: Unpack[_BeamOptions]
    ) -> Coroutine[_Any, _Any, list[Hypothesis]]: ...
    @overload
    def choose(  # type: ignore[overload-overlap]
        self,
        prompt: str | _Ids,
        choices: _Untyped,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> Choice: ...
    @overload
    def choose(
        self,
        prompt: str | _Ids,
        choices: TypeForm[_Any],
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> Choice[str]: ...
    @overload
    def choose(
        self,
        prompt: str | _Ids,
        choices: _Listed,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
    ) -> Choice[str]: ...
    @overload
    def choose_many(  # type: ignore[overload-overlap]
        self,
        prompts: Iterable[str | _Ids],
        choices: _Untyped,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        on_error: Literal["raise", "skip"] = "raise",
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices[Choice]: ...
    @overload
    def choose_many(
        self,
        prompts: Iterable[str | _Ids],
        choices: TypeForm[_Any],
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        on_error: Literal["raise", "skip"] = "raise",
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices[Choice[str]]: ...
    @overload
    def choose_many(
        self,
        prompts: Iterable[str | _Ids],
        choices: _Listed,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        on_error: Literal["raise", "skip"] = "raise",
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices[Choice[str]]: ...
    @overload
    def choose_many(  # type: ignore[overload-overlap]
        self,
        prompts: Iterable[str | _Ids],
        choices: _Untyped,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        on_error: Literal["return"],
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices[Choice | Exception]: ...
    @overload
    def choose_many(
        self,
        prompts: Iterable[str | _Ids],
        choices: TypeForm[_Any],
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        on_error: Literal["return"],
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices[Choice[str] | Exception]: ...
    @overload
    def choose_many(
        self,
        prompts: Iterable[str | _Ids],
        choices: _Listed,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        beam: int | None = None,
        threshold: float | None = None,
        system: str | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        priority: int = 0,
        on_error: Literal["return"],
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices[Choice[str] | Exception]: ...
    @property
    def chat_template(self) -> ChatTemplate: ...
    def chat_prompt(
        self,
        messages: _Sequence[dict[str, _Any]],
        tools: _Sequence[dict[str, _Any]] | None = None,
        add_generation_prompt: bool = True,
        *,
        answer_prefix: str = "",
        now: datetime | None = None,
        adapt: bool = True,
        **variables: _Any,
    ) -> list[int]: ...
    def logits(self, tokens: str | _Ids) -> NDArray[np.float32]: ...

@final
class ToolCall:
    __match_args__: Final = ("id", "name", "arguments")
    def __new__(
        cls,
        id: str,
        name: str,
        arguments: str,
        probability: float | None = None,
        probabilities: dict[str, float] | None = None,
    ) -> Self: ...
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def parsed(self) -> _Any: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def probabilities(self) -> dict[str, float]: ...
    def to_dict(self) -> dict[str, _Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class Message:
    def __new__(
        cls,
        content: str = "",
        reasoning: str = "",
        tool_calls: _Sequence[ToolCall] = (),
        warnings: _Sequence[str] = (),
        finish: str | None = None,
        stats: ChatStats | None = None,
        parsed: _Any = None,
        invalid: str | None = None,
    ) -> Self: ...
    def _repr_html_(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def tool_calls(self) -> list[ToolCall]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def finish(self) -> Literal["stop", "tool_calls", "length", "cancelled"] | None: ...
    @property
    def completed(self) -> bool: ...
    @property
    def stats(self) -> ChatStats | None: ...
    @property
    def logprobs(self) -> list[TokenLogprob]: ...
    @property
    def parsed(self) -> _Any: ...
    @property
    def invalid(self) -> str | None: ...
    @property
    def receipt(self) -> dict[str, _Any] | None: ...
    def to_dict(self) -> dict[str, _Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class ChatStats:
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def prompt_tokens_reused(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def reasoning_tokens(self) -> int: ...
    @property
    def forced_tokens(self) -> int: ...
    @property
    def forward_passes(self) -> int: ...
    @property
    def forward_passes_saved(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def prompt_seconds(self) -> float: ...
    @property
    def tokens_per_second(self) -> float: ...
    def to_dict(self) -> dict[str, int | float]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class ChatEvent:
    __match_args__: Final = ("kind", "text")
    @property
    def kind(self) -> _EventKind: ...
    @property
    def text(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class ChatPrompt:
    @property
    def text(self) -> str: ...
    @property
    def generation_prompt(self) -> str: ...
    @property
    def parts(self) -> list[tuple[str, bool]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class Tools:
    def __new__(cls, tools: _Tools) -> Self: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def definitions(self) -> list[dict[str, _Any]]: ...
    @property
    def functions(self) -> dict[str, Callable[..., _Any]]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...

@final
class ChatFormat:
    def __new__(
        cls,
        template: str | ChatTemplate,
        vocab: Vocab | None = None,
        bos: str = "",
        eos: str = "",
        tools_in: _ToolsIn = "template",
    ) -> Self: ...
    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> ChatFormat: ...
    @property
    def template(self) -> ChatTemplate: ...
    @property
    def vocab(self) -> Vocab | None: ...
    @property
    def tools_in(self) -> _ToolsIn: ...
    @property
    def _shows_tools(self) -> bool: ...
    def with_tools_in(self, tools_in: _ToolsIn) -> ChatFormat: ...
    @property
    def analysis(self) -> ChatAnalysis: ...
    def render(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        *,
        add_generation_prompt: bool = True,
        enable_thinking: bool = True,
        **variables: _Any,
    ) -> str: ...
    def prompt(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        *,
        enable_thinking: bool = True,
        continue_final_message: _Continued | None = None,
        **variables: _Any,
    ) -> ChatPrompt: ...
    def parse(
        self,
        text: str | bytes | _Ids,
        tools: _Tools | None = None,
        *,
        generation_prompt: str | None = None,
        tool_choice: _ToolChoice = "auto",
        parallel_tool_calls: bool = False,
        reasoning_format: Literal["auto", "deepseek", "none"] = "auto",
        partial: bool = False,
        json_content: bool = False,
    ) -> Message: ...
    def parser(
        self,
        tools: _Tools | None = None,
        *,
        generation_prompt: str | None = None,
        tool_choice: _ToolChoice = "auto",
        parallel_tool_calls: bool = False,
        reasoning_format: Literal["auto", "deepseek", "none"] = "auto",
        json_content: bool = False,
    ) -> ChatParser: ...
    def constraint(
        self,
        tools: _Tools | None,
        vocab: Vocab | None = None,
        tool_choice: _ToolChoice = "auto",
        parallel_tool_calls: bool = False,
        generation_prompt: str | None = None,
        *,
        thinking_budget: int | None = None,
    ) -> ChatConstraint: ...
    def _with_schema(self, given: _Any, constraint: _Any) -> list[dict[str, _Any]]: ...
    def _verify_receipt(
        self, receipt: _Any, messages: _Any, tools: _Any, tool_choice: _Any, **options: _Any
    ) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...

@final
class ChatParser:
    def push(self, part: str | bytes) -> list[ChatEvent]: ...
    def finish(self, partial: bool = False) -> Message: ...
    @property
    def message(self) -> Message: ...
    @property
    def last_events(self) -> list[ChatEvent]: ...

@final
class ChatConstraint:
    @property
    def format(self) -> ChatFormat: ...
    @property
    def tools(self) -> Tools: ...
    @property
    def vocab(self) -> Vocab | None: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def thinking_budget(self) -> int | None: ...
    @property
    def tool_choice(self) -> str: ...
    @property
    def parallel_tool_calls(self) -> bool: ...
    @property
    def generation_prompt(self) -> str | None: ...
    def parse(self, text: str | bytes | _Ids) -> Message: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class ChatTemplate:
    def __new__(cls, text: str, bos: str = "", eos: str = "") -> Self: ...
    def render(
        self,
        messages: _Sequence[dict[str, _Any]],
        tools: _Sequence[dict[str, _Any]] | None = None,
        *,
        add_generation_prompt: bool = True,
        now: datetime | None = None,
        adapt: bool = True,
        **variables: _Any,
    ) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def bos(self) -> str: ...
    @property
    def eos(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...

@final
class Choice(Generic[_Name]):
    @classmethod
    def __class_getitem__(cls, of: _Any) -> GenericAlias: ...
    @property
    def name(self) -> _Name: ...
    @property
    def value(self) -> _Name | int | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def probability(self) -> float: ...
    @property
    def names(self) -> list[str] | None: ...
    def items(self) -> list[tuple[str | int, float]]: ...
    def to_dict(self) -> dict[str, _Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, value: str | SupportsIndex, /) -> float: ...
    def _repr_html_(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def logprobs(self) -> NDArray[np.float64]: ...
    @property
    def logprobs_high(self) -> NDArray[np.float64]: ...
    @property
    def probabilities(self) -> NDArray[np.float64]: ...
    @property
    def ranking(self) -> NDArray[np.int64]: ...
    @property
    def mass(self) -> float: ...
    @property
    def mass_bounds(self) -> tuple[float, float]: ...
    @property
    def certain(self) -> bool: ...
    @property
    def stats(self) -> ChoiceStats: ...

@final
class ChoiceStats:
    @property
    def forward_passes(self) -> int: ...
    @property
    def tokens_decoded(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def healed_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def n_threads(self) -> int: ...
    def to_dict(self) -> dict[str, int | float]: ...

@final
class Choices(Generic[_Item]):
    @classmethod
    def __class_getitem__(cls, of: _Any) -> GenericAlias: ...
    @property
    def skipped(self) -> list[int]: ...
    def to_arrow(self) -> _Any: ...
    def to_pandas(self) -> _Any: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> _Item: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[_Item]: ...
    def __iter__(self) -> Iterator[_Item]: ...
    def __reversed__(self) -> Iterator[_Item]: ...
    def __next__(self) -> _Item: ...

@final
class ThinkGate(Sampler):
    def __new__(
        cls,
        begin: str | _Ids,
        end: str | _Ids,
        budget: int | None = None,
        then: _Constraint | Sampler | None = None,
        *,
        started: bool = True,
        optional: bool = False,
        message: str | _Ids = (),
        budget_from: Literal["start", "begin"] = "start",
        at_once: bool = True,
        masked: _Ids | None = None,
        vocab: Vocab | int | None = None,
        mode: _Mode = "greedy",
        end_tokens: _Ids | None = None,
        after: _After = "free",
        sampling: Sampling | None = None,
    ) -> ThinkGate: ...
    def clone(self) -> ThinkGate: ...
    def __reduce__(self) -> tuple[Callable[[dict[str, _Any]], ThinkGate], tuple[dict[str, _Any]]]: ...
    @property
    def forced_tokens(self) -> int: ...
    @property
    def cut_short(self) -> bool: ...
    @property
    def end_matched(self) -> int: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Generated(Generic[_Value]):
    @classmethod
    def __class_getitem__(cls, of: _Any) -> GenericAlias: ...
    def _repr_html_(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def leaf(self) -> Leaf | None: ...
    @property
    def leaves(self) -> list[Leaf]: ...
    @property
    def value(self) -> _Value: ...
    @property
    def invalid(self) -> str | None: ...
    @property
    def partial_token(self) -> bytes: ...
    @property
    def values(self) -> dict[str, _Any]: ...
    @property
    def probabilities(self) -> dict[str, NDArray[np.float64]]: ...
    @property
    def canonical(self) -> bool: ...
    @property
    def completed(self) -> bool: ...
    @property
    def completed_fields(self) -> list[str]: ...
    @property
    def logprobs(self) -> list[TokenLogprob]: ...
    @property
    def receipt(self) -> dict[str, _Any] | None: ...
    @property
    def finish(self) -> _Finish: ...
    @property
    def stats(self) -> Stats: ...

@final
class Stats:
    @property
    def forward_passes(self) -> int: ...
    @property
    def tokens_decoded(self) -> int: ...
    @property
    def forced_tokens(self) -> int: ...
    @property
    def sampled_tokens(self) -> int: ...
    @property
    def forward_passes_saved(self) -> int: ...
    @property
    def thinking_tokens(self) -> int: ...
    @property
    def starved(self) -> int: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def prompt_tokens_reused(self) -> int: ...
    @property
    def healed_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def prompt_seconds(self) -> float: ...
    @property
    def decode_seconds(self) -> float: ...
    @property
    def sample_seconds(self) -> float: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def seed(self) -> int: ...
    def to_dict(self) -> dict[str, int | float]: ...

@final
class Step:
    @property
    def index(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def token(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def forced(self) -> bool: ...
    @property
    def allowed(self) -> NDArray[np.int32]: ...
    @property
    def probabilities(self) -> NDArray[np.float32]: ...
    @property
    def logprob(self) -> TokenLogprob | None: ...

@final
class TokenLogprob:
    @property
    def token(self) -> int: ...
    @property
    def logprob(self) -> float: ...
    @property
    def top(self) -> list[tuple[int, float]]: ...
    def texts(self, vocab: Vocab) -> list[tuple[str, float]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

def beam_search(
    step: Callable[[list[list[int]]], _Answer],
    constraint: _Constraint,
    width: int,
    *,
    vocab: Vocab | int | None = None,
    score: _Score = "model",
    num_return: int | None = None,
    length_penalty: float = 0.0,
    end_tokens: _Ids | None = None,
    sample: bool = False,
    seed: int | None = None,
    reorder: Callable[[NDArray[np.int64]], object] | None = None,
    cancel: CancelToken | None = None,
    timeout: float | None = None,
    progress: bool | Callable[[int, None], object] | None = None,
) -> list[Hypothesis]: ...
@overload
def choose(  # type: ignore[overload-overlap]
    scorer: Callable[[list[list[int]]], _Answer],
    values: _Untyped,
    *,
    vocab: Vocab | int | None = None,
    end_tokens: _Ids | None = None,
    top: int | None = None,
    max_rows: int | None = None,
    rows_at_once: int = 128,
    cancel: CancelToken | None = None,
    timeout: float | None = None,
    progress: bool | Callable[[int, int | None], object] | None = None,
) -> Choice: ...
@overload
def choose(
    scorer: Callable[[list[list[int]]], _Answer],
    values: TypeForm[_Any],
    *,
    vocab: Vocab | int | None = None,
    end_tokens: _Ids | None = None,
    top: int | None = None,
    max_rows: int | None = None,
    rows_at_once: int = 128,
) -> Choice[str]: ...
@overload
def choose(
    scorer: Callable[[list[list[int]]], _Answer],
    values: _Listed,
    *,
    vocab: Vocab | int | None = None,
    end_tokens: _Ids | None = None,
    top: int | None = None,
    max_rows: int | None = None,
    rows_at_once: int = 128,
) -> Choice[str]: ...
