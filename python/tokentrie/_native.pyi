"""The native part of tokentrie; import `tokentrie` instead.

Signatures are written by hand, docstrings by tools/stubs.py.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from datetime import date, datetime
from os import PathLike
from pathlib import Path
from typing import Any as _Any
from typing import Final, Literal, SupportsIndex, TypeAlias, TypedDict, final, overload, type_check_only

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, Self, Unpack, disjoint_base

from tokentrie.chat_analysis import ChatAnalysis
from tokentrie.streaming import Stream

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
    "Concatenation",
    "ContextError",
    "Date",
    "Detokenizer",
    "FilteredTrie",
    "Form",
    "Generated",
    "Grammar",
    "Hypothesis",
    "Integer",
    "JsonSchema",
    "Lark",
    "Leaf",
    "LeafSet",
    "Message",
    "Model",
    "ModelError",
    "Number",
    "OneOf",
    "OptionError",
    "PayloadError",
    "Regex",
    "Rule",
    "RuleError",
    "RuleStats",
    "Sampler",
    "Sampling",
    "Sequence",
    "Slot",
    "Spec",
    "Stats",
    "Step",
    "String",
    "TemplateError",
    "Text",
    "ThinkGate",
    "TimedOutError",
    "TokenNotAllowedError",
    "TokenTrieError",
    "TokenTrieWarning",
    "ToolCall",
    "Tools",
    "Trie",
    "TrieArrays",
    "TrieCache",
    "TrieError",
    "Unconstrained",
    "Vocab",
    "VocabularyError",
    "_InChain",
    "__version__",
    "_host_vocab",
    "_into_chain",
    "_levels",
    "_outline",
    "_samples",
    "beam_search",
    "choose",
    "constraint",
]

__version__: Final[str]

_Ids: TypeAlias = Iterable[SupportsIndex] | NDArray[np.integer[_Any]]
_Payload: TypeAlias = str | bytes | dict[str, _Any]
_Constraint: TypeAlias = (
    _Payload
    | Trie
    | FilteredTrie
    | Iterable[str]
    | Unconstrained
    | Sequence
    | ThinkGate
    | Rule
    | ChatConstraint
    | Spec
    | Form
)
_Tokens: TypeAlias = (
    dict[str, _Any]
    | Trie
    | FilteredTrie
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
_Tools: TypeAlias = _Sequence[dict[str, _Any] | Callable[..., _Any]] | Tools
_ToolChoice: TypeAlias = str | dict[str, _Any]
_Continued: TypeAlias = Literal["auto", "reasoning", "content"]
_EventKind: TypeAlias = Literal[
    "reasoning", "content", "call_begins", "arguments", "call_ends", "warning", "message_ends"
]
_Leaves: TypeAlias = (
    Iterable[int | str | _Ids] | _Sequence[bool] | NDArray[np.integer[_Any]] | NDArray[np.bool_] | LeafSet
)
_Score: TypeAlias = Literal["model", "renormalised", "given"]
_Seed: TypeAlias = int | _Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator
_Mode: TypeAlias = Literal["greedy", "sampled", 0, 1]
_FillMode: TypeAlias = Literal["greedy", "sampled", "exact", 0, 1]
_After: TypeAlias = Literal["free", "stop"]
_State: TypeAlias = Literal["active", "complete", "idle", "off"]
_Finish: TypeAlias = Literal["form", "span", "end_of_generation", "max_tokens", "context_full"]
_Logits: TypeAlias = NDArray[np.float32] | Buffer
_Words: TypeAlias = NDArray[np.int32] | Buffer
# Tensors of torch, too, which need not be installed.
_Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float16] | _Any
_Answer: TypeAlias = _Rows | list[dict[int, float]]

class TokenTrieError(Exception):
    """Base of every error that tokentrie defines.

    Example:
        >>> try:
        ...     tokentrie.Trie.from_sequences([])
        ... except tokentrie.TokenTrieError as error:
        ...     print(type(error).__name__)
        TrieError
    """

class PayloadError(TokenTrieError, ValueError):
    """A payload that is not JSON, not of the documented form, or has no usable leaf; it says line, column and field.

    Also a ValueError.

    Example:
        >>> tokentrie.Trie.from_payload('{"descriptors": 5}')
        Traceback (most recent call last):
            ...
        tokentrie.PayloadError: payload, line 1, column 17, field descriptors: ...
    """

class RuleError(TokenTrieError, ValueError):
    """A pattern, grammar or schema that makes no rule, or a rule that leads into a dead end.

    It says where, and what is wrong there. Also a ValueError.

    Example:
        >>> tokentrie.Regex('[0-9')
        Traceback (most recent call last):
            ...
        tokentrie.RuleError: ...
    """

class TrieError(TokenTrieError, ValueError):
    """Sequences, texts or sets that make no trie, or a file that holds none.

    None at all, an empty one, names that do not match, texts that cannot be written. Also a ValueError.

    Example:
        >>> tokentrie.Trie.from_sequences([[1], []])
        Traceback (most recent call last):
            ...
        tokentrie.TrieError: row 1 is empty: a leaf needs at least one token
    """

class VocabularyError(TokenTrieError):
    """A token id that the vocabulary does not have, or a vocabulary that cannot be used for what is asked.

    Example:
        >>> tokentrie.Trie.from_sequences([[1, 10]], vocab=10)
        Traceback (most recent call last):
            ...
        tokentrie.VocabularyError: row 0, position 1: token id 10 is outside the vocabulary of 10 tokens
    """

class TokenNotAllowedError(TokenTrieError):
    """A token that may not come next; it says which, where, and what was allowed. The state is as before.

    Example:
        >>> tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[2], [5]])).accept(3)
        Traceback (most recent call last):
            ...
        tokentrie.TokenNotAllowedError: token 3 at position 0 is not allowed there: only [2, 5] may follow
    """

class OptionError(TokenTrieError, ValueError):
    """A setting or request out of range; it says which, its value and what it may be.

    Also a ValueError.

    Example:
        >>> tokentrie.Sampling(top_p=1.5)
        Traceback (most recent call last):
            ...
        tokentrie.OptionError: top_p is 1.5: it must be from 0 to 1
    """

class ModelError(TokenTrieError):
    """A model file that cannot be used, or a decode that failed.

    Example:
        >>> tokentrie.Model('missing.gguf')
        Traceback (most recent call last):
            ...
        tokentrie.ModelError: cannot read the model file "missing.gguf": ...
    """

class ContextError(ModelError):
    """The context window is too small for the prompt or the output.

    Example:
        >>> tokentrie.Model(n_ctx=32).generate([5] * 33)
        Traceback (most recent call last):
            ...
        tokentrie.ContextError: ... the context has room for 32 ...
    """

class TemplateError(ModelError):
    """A chat template that is no Jinja, refuses the messages, fails, or does more than it may; it says the line.

    Example:
        >>> tokentrie.ChatTemplate('{{ raise_exception("no tools") }}').render([])
        Traceback (most recent call last):
            ...
        tokentrie.TemplateError: refused in line 1: no tools
    """

class CancelledError(ModelError):
    """The call was ended by a CancelToken or `Model.cancel`; the model can be used again.

    `partial` is the Generated so far, whose `finish` is 'stopped'; of `Model.chat` the Message so far, whose `finish`
    is 'cancelled'; None where nothing was generated.

    Example:
        >>> model = tokentrie.Model()
        >>> model.generate('Once', on_step=lambda step: model.cancel())
        Traceback (most recent call last):
            ...
        tokentrie.CancelledError: stopped on request ...
    """

    partial: Generated | None

class TimedOutError(CancelledError, TimeoutError):
    """The call took longer than its `timeout`; the model can be used again.

    Also a TimeoutError. `partial` is as for CancelledError.

    Example:
        >>> try:
        ...     tokentrie.Model().generate('Once', max_tokens=1000, timeout=0.0)
        ... except tokentrie.TimedOutError as error:
        ...     print(error, error.partial.finish)
        the timeout of 0 s was over after 0 generated tokens stopped
    """

class TokenTrieWarning(UserWarning):
    """Something was left out, such as leaves whose ids the vocabulary does not have.

    Example:
        >>> import warnings
        >>> leaves = [{'name': 'IN', 'tokens': [1]}, {'name': 'OUT', 'tokens': [10]}]
        >>> payload = {'descriptors': [{'path': 'action', 'leaves': leaves}]}
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter('always')
        ...     trie = tokentrie.Trie.from_payload(payload, vocab=10)
        >>> (trie.names, [warning.category.__name__ for warning in caught])
        (['IN'], ['TokenTrieWarning'])
    """

@final
class Hypothesis:
    """A value that `beam_search` found. Compares by content; can be pickled.

    Args:
        leaf: the value.
        tokens: the tokens that were walked, without those that only end the value.
        logprob: its score: the log of its probability, in the sense of `score`.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1], [2]], names=["a", "b"])
        >>> best, other = tokentrie.beam_search(lambda prefixes: np.zeros((len(prefixes), 4)).astype("f4"), trie, 2)
        >>> best.leaf.name, best.tokens, round(best.logprob, 3)
        ('a', [1], -1.386)
    """

    __match_args__: Final = ("leaf", "tokens", "logprob")
    def __new__(cls, leaf: Leaf, tokens: list[int], logprob: float) -> Hypothesis: ...
    @property
    def leaf(self) -> Leaf:
        """Leaf: the value; of a Sequence the last one."""
    @property
    def tokens(self) -> list[int]:
        """list[int]: the tokens that were walked, without those that only end the value."""
    @property
    def logprob(self) -> float:
        """float: its score, before any penalty for length."""
    __hash__: None  # type: ignore[assignment]

@final
class LeafSet:
    """Some of the leaves of a trie, by number. Made by `Trie.leaf_set`; immutable.

    `a & b`, `a | b`, `a - b` and `~a` combine them, `leaf in a` asks for a number, `len(a)` counts them, and iterating
    gives their numbers in order. A few leaves, or all but a few, take four bytes each, others a bit for every leaf.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1], [2], [3]], names=["a", "b", "c"])
        >>> sold_out, cheap = trie.leaf_set(["b"]), trie.leaf_set([0, 1])
        >>> list(cheap & ~sold_out)
        [0]
    """
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
    def ids(self) -> NDArray[np.int64]:
        """numpy.ndarray: int64 [n], the numbers of the leaves, ascending."""

@final
class FilteredTrie:
    """A trie of which only some leaves may come: a constraint wherever a Trie is one. Made by `Trie.filtered`.

    A child is legal exactly where an allowed leaf lies at or below it, at any depth: so nothing leads into a dead
    end, and where one leaf is left all of it is forced. The arrays are those of the trie, and leaves keep their
    numbers. Only what is named is looked at when it is made; a step costs what it does in the trie, and up to twice
    that where some children may not come. Immutable; compares by content; can be pickled.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
        >>> left = trie.filtered(deny=["c"])
        >>> sampler = tokentrie.Sampler(6, left)
        >>> sampler.forced()
        array([1], dtype=int32)
        >>> left.filtered(deny=["a"]).forced()
        array([1, 3], dtype=int32)
    """
    @property
    def trie(self) -> Trie:
        """Trie: the trie with all of its leaves."""
    @property
    def allowed_leaves(self) -> LeafSet:
        """LeafSet: the leaves that may come."""
    def filtered(self, allow: _Leaves | None = None, deny: _Leaves | None = None) -> FilteredTrie:
        """Some of the leaves that are left. Cost: as `Trie.filtered`.

        Args:
            allow, deny: as for `Trie.filtered`.

        Returns:
            FilteredTrie.

        Raises:
            TrieError: nothing is left.
            OptionError, ValueError, TypeError: as `Trie.leaf_set`.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1], [2], [3]])
            >>> list(trie.filtered(deny=[0]).filtered(deny=[2]).allowed_leaves)
            [1]
        """
    def allowed(self, prefix: _Ids | None = None) -> NDArray[np.int32]:
        """Tokens that may follow a prefix. Cost: O(length · log children).

        Args:
            prefix: token ids; the start if None.

        Returns:
            int32 [k], ascending.

        Raises:
            TokenNotAllowedError: the prefix leaves what is left of the trie.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]])
            >>> trie.filtered(deny=[2]).allowed()
            array([1], dtype=int32)
        """
    def forced(self, prefix: _Ids | None = None) -> NDArray[np.int32]:
        """Tokens that must follow a prefix, because exactly one may at each step. Cost: O(length).

        Args:
            prefix: token ids; the start if None.

        Returns:
            int32 [length], empty where there is a choice, or where a leaf ends.

        Raises:
            TokenNotAllowedError: the prefix leaves what is left of the trie.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]])
            >>> trie.filtered(allow=[1]).forced()
            array([1, 3], dtype=int32)
        """
    def to_trie(self) -> Trie:
        """The leaves that are left as a Trie of their own, with other numbers. Cost: O(leaves).

        Returns:
            Trie.

        Raises:
            TrieError: several sequences stand for one leaf.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]])
            >>> len(trie.filtered(deny=[0]).to_trie())
            2
        """
    def __len__(self) -> int: ...
    def __contains__(self, sequence: _Ids, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Leaf:
    """One legal value of a trie: its number, its name and its tokens. Compares and hashes by content.

    Args:
        index: its number, from 0; leaves are numbered by the order of their token sequences.
        name: its name, or None.
        tokens: its token ids.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
        >>> trie.leaf(0)
        Leaf(index=0, name="stop", tokens=[2])
    """

    __match_args__: Final = ("index", "name", "tokens")
    def __new__(cls, index: int, name: str | None, tokens: _Sequence[int]) -> Leaf: ...
    @property
    def index(self) -> int:
        """int: its number, from 0; leaves are numbered by the order of their token sequences."""
    @property
    def name(self) -> str | None:
        """str | None: its name, where names were given."""
    @property
    def tokens(self) -> list[int]:
        """list[int]: its token ids, at least one."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Vocab:
    """A vocabulary: which token ids there are, the bytes of each, and which of them end a generation.

    Made by `from_gguf`, `from_tokenizer`, `from_tiktoken` or `from_tokens`, or taken from `Model.vocab`. `len`
    counts its tokens, and `vocab[i]` gives the bytes of one (IndexError outside 0 to len - 1). Immutable; may be
    used from several threads at once. Can be pickled, unless it comes from a GGUF.

    Example:
        >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"bc", b"</s>"], eog=[2], control=[2])
        >>> (len(vocab), vocab[1], vocab.eog)
        (3, b'bc', [2])
    """
    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> Vocab:
        """The vocabulary of a GGUF file, through llama.cpp; the file may hold weights or not.

        Cost: O(tokens), a tenth of a second for big ones.

        Args:
            path: the file.

        Returns:
            Vocab.

        Raises:
            ModelError: the file is missing, truncated or no GGUF.

        Example:
            >>> path = tokentrie.Model().path  # the tiny model inside the package
            >>> tokentrie.Vocab.from_gguf(path).detokenize([1930])
            ' is'
        """
    @staticmethod
    def from_tokenizer(tokenizer: _Any, eog: _Ids | None = None, n_vocab: int | None = None) -> Vocab:
        """The vocabulary of a Hugging Face tokenizer, which then tokenises all texts: every method gives its ids.

        Names of control tokens in plain text stay text: all tokens that are added and special, that look it
        ("<|...|>"), or that end a generation. Cost: O(bytes of the JSON).

        Args:
            tokenizer: a tokenizers.Tokenizer, a fast tokenizer of transformers, or the path of a tokenizer.json;
                needs the Python package tokenizers. It is copied, without truncation, padding and dropout.
            eog: ids that end a generation. If None, those with a name that llama.cpp knows (llama-vocab.cpp), such
                as "<|im_end|>" or "</s>", and the tokenizer's eos_token_id if it is one of transformers.
            n_vocab: number of ids, where the model has more than the tokenizer; the others are unused.

        Returns:
            Vocab.

        Raises:
            VocabularyError: the file cannot be read, the decoder does not say what bytes a token stands for, the
                library raises (its exception is the cause), or it is not installed.
            OptionError: `n_vocab` is out of range.
            TypeError: it is no tokenizer.

        Example:
            >>> from tokenizers import Tokenizer, decoders, models, pre_tokenizers
            >>> tokenizer = Tokenizer(models.BPE({"n": 0, "o": 1, "no": 2}, [("n", "o")]))
            >>> tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            >>> tokenizer.decoder = decoders.ByteLevel()
            >>> tokentrie.Vocab.from_tokenizer(tokenizer).tokenize("noon")
            [2, 1, 0]
        """
    @staticmethod
    def from_tiktoken(encoding: _Any, eog: _Ids | None = None, n_vocab: int | None = None) -> Vocab:
        """The vocabulary of a tiktoken encoding, which then tokenises all texts: every method gives its ids.

        Special tokens are control tokens: their names in plain text stay text. Nothing is added around a prompt.
        Cost: O(tokens).

        Args:
            encoding: a tiktoken.Encoding or its name; needs the Python package tiktoken, and a name may need the
                network.
            eog, n_vocab: as in `from_tokenizer`; by name only special tokens end a generation.

        Returns:
            Vocab.

        Raises:
            VocabularyError: the encoding cannot be had, or the library is not installed.
            OptionError: `n_vocab` is out of range.
            TypeError: it is no encoding.

        Example:
            >>> import tiktoken
            >>> ranks = {b"n": 0, b"o": 1, b"no": 2}
            >>> encoding = tiktoken.Encoding("toy", pat_str=".+", mergeable_ranks=ranks, special_tokens={})
            >>> tokentrie.Vocab.from_tiktoken(encoding).tokenize("noon")
            [2, 1, 0]
        """
    @staticmethod
    def from_tokens(pieces: Iterable[bytes], eog: _Ids | None = None, control: _Ids | None = None) -> Vocab:
        """A vocabulary from the bytes of its tokens. It cannot tokenise.

        Args:
            pieces: one bytes object a token.
            eog: ids that end a generation.
            control: ids that are no text.

        Returns:
            Vocab.

        Raises:
            VocabularyError: the list does not have an id.
            OptionError: the list is empty.
            TypeError: a piece is no bytes.

        Example:
            >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"bc", b"</s>"], eog=[2], control=[2])
            >>> vocab.detokenize([0, 1])
            'abc'
        """
    def __len__(self) -> int: ...
    def __getitem__(self, token: int, /) -> bytes: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    def kind(self, token: int) -> Literal["text", "byte", "control", "unknown", "unused"]:
        """What a token is for.

        Args:
            token: its id.

        Returns:
            "text"; "byte", one byte of a character without a token of its own; "control", no text, such as "<s>";
            "unknown", for text that has no tokens; or "unused", never produced or without bytes.

        Raises:
            IndexError: the id is outside 0 to len - 1.

        Example:
            >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"<s>"], control=[1])
            >>> (vocab.kind(0), vocab.kind(1))
            ('text', 'control')
        """
    @property
    def eog(self) -> list[int]:
        """list[int]: ids that end a generation, ascending."""
    @property
    def control(self) -> list[int]:
        """list[int]: ids that are no text, ascending: control tokens and the unknown one."""
    @property
    def fingerprint(self) -> str:
        """str: SHA-256 in hexadecimal over the tokens' bytes and kinds: equal vocabularies have equal fingerprints."""
    def tokenize(self, text: str, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """The ids of a text.

        Args:
            text: a str, at most 2**30 bytes.
            add_special: add what the model wants around a prompt.
            parse_special: read names of control tokens in the text as those tokens; only for text that is trusted.

        Returns:
            list[int].

        Raises:
            VocabularyError: the vocabulary was made from bytes, a tokenizer of Python fails, or it reads the name
                of a control token as that token against `parse_special`.
            OptionError: the text is too long.

        Example:
            >>> vocab = tokentrie.Model().vocab
            >>> vocab.detokenize(vocab.tokenize("The sky is blue"))
            'The sky is blue'
            >>> len(vocab.tokenize("<|im_end|>")) > 1  # text stays text
            True
            >>> len(vocab.tokenize("<|im_end|>", parse_special=True))
            1
        """
    def tokenize_parts(self, parts: Iterable[tuple[str, bool]], add_special: bool = False) -> list[int]:
        """The ids of a prompt made of parts of which only some are trusted.

        Args:
            parts: pairs of a text and whether it is trusted. Names of control tokens in trusted parts are those
                tokens; in the others they stay text.
            add_special: add what the model wants around a prompt.

        Returns:
            list[int].

        Raises:
            VocabularyError: as for `tokenize`.
            OptionError: the text is too long.

        Example:
            >>> vocab = tokentrie.Model().vocab
            >>> ids = vocab.tokenize_parts([("<|im_start|>", True), ("user says <|im_end|>", False)])
            >>> [vocab.kind(token) for token in ids].count("control")
            1
        """
    def detokenize(self, ids: _Ids) -> str:
        """The text of these ids; bytes that are no UTF-8 become U+FFFD.

        Args:
            ids: a list or an integer array of one dimension.

        Returns:
            str.

        Raises:
            VocabularyError: the vocabulary does not have an id.

        Example:
            >>> tokentrie.Vocab.from_tokens([b"a", b"bc"]).detokenize([0, 1])
            'abc'
        """
    def detokenize_bytes(self, ids: _Ids) -> bytes:
        """The bytes of these ids.

        Args:
            ids: a list or an integer array of one dimension.

        Returns:
            bytes.

        Raises:
            VocabularyError: the vocabulary does not have an id.

        Example:
            >>> tokentrie.Vocab.from_tokens([b"a", b"bc"]).detokenize_bytes([0, 1])
            b'abc'
        """
    def tokens_with_prefix(self, prefix: bytes) -> NDArray[np.int32]:
        """Text tokens whose bytes begin with these.

        Text tokens are all but control tokens, those marked as unused, those that end a generation and those
        without bytes. Cost: O(len(prefix) + found · log found); the first call sorts the vocabulary, some 30 ms.

        Args:
            prefix: bytes.

        Returns:
            int32 [found], ascending.

        Example:
            >>> tokentrie.Vocab.from_tokens([b"yes", b"no", b"y"]).tokens_with_prefix(b"y")
            array([0, 2], dtype=int32)
        """
    def prefix_tokens(self, text: bytes) -> NDArray[np.int32]:
        """Text tokens, as in `tokens_with_prefix`, that these bytes begin with. Cost: O(longest token).

        Args:
            text: bytes.

        Returns:
            int32 [found], shortest first, equally long ones ascending.

        Example:
            >>> tokentrie.Vocab.from_tokens([b"yes", b"no", b"y"]).prefix_tokens(b"yes, sir")
            array([2, 0], dtype=int32)
        """

@final
class Trie:
    """An immutable set of values, each a token sequence with or without a name.

    Made by `from_payload`, `from_sequences`, `from_strings`, `from_prefix_table`, `from_numpy` or `open`, or
    from other tries by `|`, `&`, `-`, `^`, `filter` and `sample`. `len` counts its leaves, `in` asks for a
    token sequence, and a loop gives each Leaf. Leaves are numbered by the order of their token sequences, so
    the same set gives the same trie whatever the order of the input. `==` compares sequences, names, end tokens
    and weights; `<=` and the like compare the sequences. Cheap to share, also between threads. Can be pickled:
    an open file by its path, anything else whole.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
        >>> (len(trie), [5, 6] in trie, [5] in trie)
        (2, True, False)
        >>> [leaf.name for leaf in trie]
        ['stop', 'think']
    """
    @staticmethod
    def from_payload(payload: _Payload, path: str | None = None, *, vocab: Vocab | int | None = None) -> Trie:
        """Reads one descriptor of a payload. Cost: one pass over the text and one sort of the leaves.

        Args:
            payload: JSON text (str or bytes), or the same as a dict.
            path: the descriptor to take; the first one with a usable leaf if None.
            vocab: a Vocab or a vocabulary size; leaves with ids outside it are dropped.

        Returns:
            Trie.

        Raises:
            PayloadError: the JSON is bad (it says line, column and field), or no leaf is usable.
            OptionError: there is no such path; it names those there are.

        Warns:
            TokenTrieWarning: leaves were dropped.

        Example:
            >>> leaves = [{"name": "THINK", "tokens": [5, 6]}, {"name": "STOP", "tokens": [2]}]
            >>> payload = {"descriptors": [{"path": "action", "leaves": leaves}]}
            >>> tokentrie.Trie.from_payload(payload).names
            ['STOP', 'THINK']
        """
    @staticmethod
    def from_prefix_table(table: str | bytes | _Mapping[str, _Any] | PathLike[str], *, strict: bool = True) -> Trie:
        """Reads a prefix table, the JSON from which RTP-LLM's tree decoding is run.

        It has `start_token_id` (225), `end_token_id` (2), `sep` ("_") and `prefix_dict`, which lists for each
        path, as "225_64000", the tokens that may follow. A listed token without a list of its own, or with an
        empty one, allows only the end token. The end token in a list says that a value may end there.
        `prefix_weight_dict` lists "token:weight" and then counts alone: each weight is added to the logit of
        its token. Other fields are skipped. Cost: one pass over the text and one sort of the keys; a file is
        read as it comes and never held as text.

        Args:
            table: JSON text (str or bytes), the same as a mapping, or a path (os.PathLike) of a file.
            strict: refuse what could not mean what its writer meant: no key of the start, a key that cannot be
                reached, is none or comes twice, an id outside 0 to 2**31 - 1, a token with two weights. If False, the
                start's tokens are taken from the keys of depth one where it has no key, the rest is skipped, and
                `report` counts.

        Returns:
            Trie. Its leaves are the paths without start and end token, its `end_tokens` the end token.

        Raises:
            PayloadError: the JSON is bad (it says line, column and key), `strict` refuses an entry (it says key and
                value), or nothing but the end could be said.
            OSError: what the operating system says of the file.
            TypeError: `table` is something else.

        Example:
            >>> table = {"start_token_id": 1, "end_token_id": 2, "prefix_dict": {"1": [5, 6], "1_5": [7]}}
            >>> trie = tokentrie.Trie.from_prefix_table(table)
            >>> [leaf.tokens for leaf in trie], trie.end_tokens.tolist()
            ([[5, 7], [6]], [2])
        """
    @property
    def is_weighted(self) -> bool:
        """bool: whether tokens have weights, which `Sampler`, `Model.generate` and callbacks add to their logits. Only
        `from_prefix_table` gives some. Bit masks and `Model.choose` know nothing of them, and warn. Files, pickles,
        `filter` and the set operations keep them.
        """
    def weights(self, prefix: _Ids | None = None) -> NDArray[np.float32]:
        """What is added to the logits of the tokens that may follow a prefix.

        Args:
            prefix: token ids; the root if None.

        Returns:
            float32 [k], one for each id of `allowed(prefix)`; zeros where the set has no weights.

        Raises:
            TokenNotAllowedError: the prefix leaves the trie.

        Example:
            >>> table = {"prefix_weight_dict": {"225": ["7:0.5", "8:-1"]}}
            >>> tokentrie.Trie.from_prefix_table(table).weights()
            array([ 0.5, -1. ], dtype=float32)
        """
    def end_weight(self, tokens: _Ids) -> float:
        """What is added to the logit of an end token after these tokens.

        Args:
            tokens: token ids.

        Returns:
            float; 0.0 where no value ends or the set has no weights.

        Raises:
            TokenNotAllowedError: the tokens leave the trie.

        Example:
            >>> table = {"prefix_weight_dict": {"225": ["7:0.5"], "225_7": ["2:3.5", "8:1"]}}
            >>> tokentrie.Trie.from_prefix_table(table).end_weight([7])
            3.5
        """
    def without_weights(self) -> Trie:
        """The same values without weights. Cost: O(1).

        Returns:
            Trie. It is equal only to tries without weights.

        Example:
            >>> trie = tokentrie.Trie.from_prefix_table({"prefix_weight_dict": {"225": ["7:0.5", "8:-1"]}})
            >>> trie.without_weights().is_weighted
            False
        """
    @staticmethod
    def from_sequences(
        sequences: Iterable[_Ids | NDArray[np.integer[_Any]]] | NDArray[np.integer[_Any]],
        names: Iterable[str] | None = None,
        vocab: Vocab | int | None = None,
        *,
        memory: int | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Trie:
        """Builds a trie from token sequences. Cost: O(n log n).

        Args:
            sequences: lists of int, or an integer array of shape [rows, length]; an int32 array in C order is read
                fastest. Or an iterator of either, which is read as it goes: its items are dropped one after the
                other. Equal rows become one leaf.
            names: one str a row, as a list or an iterator, or None. Of equal rows the smallest name stays, by code
                point.
            vocab: a Vocab or a vocabulary size to check the ids against.
            memory: bytes of rows to hold at once; what is above that is sorted in temporary files, in the folder
                that the variable TMPDIR names. The trie comes on top of it, unless it goes to `path`. None: all
                rows.
            path: write the trie there, as `save` would, and open it. With `memory` it is never held as a whole.

        Returns:
            Trie.

        Raises:
            TrieError: there are no rows, one is empty (it says which), or the names do not match.
            VocabularyError: an id is out of range; it says row, position and id.
            TypeError: something is no integer.
            OSError: what the operating system says of a file. Then nothing is left behind, and `path` is as it was.

        Example:
            >>> trie = tokentrie.Trie.from_sequences(np.array([[7, 8], [7, 9], [1, 2]]))
            >>> trie.allowed([7])
            array([8, 9], dtype=int32)
        """
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
    ) -> Trie:
        r"""Builds a trie from texts; they become the names.

        Uses all cores; a part of a text that comes again is tokenised once.

        Args:
            vocab: a Vocab that can tokenise; any Vocab with tokenization="all" and without heal.
            values: one str each, as a list or an iterator; an iterator is read as it goes (canonical, not healed).
                Equal values become one leaf, one may be a prefix of another, and an empty one needs a suffix. Any
                character may stand in them; different Unicode forms of a letter are different values.
            prefix, suffix: the text around them. The prefix is the prompt, or its end from where a token begins.
            tokenization: "canonical": the tokens that the tokenizer writes for prefix + value + suffix as plain
                text, without those of the prefix. Where nothing comes before, a space that the tokenizer puts
                before a text stays. Or "all": every sequence of text tokens with the same bytes. That is a graph
                over the positions between bytes: 12 bytes a position and 8 for each token that can begin there,
                with leaves in the order of their bytes. `forced` then gives the canonical tokens of text that must
                come, and `Model.choose` the probability of the text, in whatever tokens.
            open_end: with "canonical", also allow a token that holds the last bytes of value + suffix and goes on;
                it ends the value: `yes.` for "yes", or `",` where the suffix is `"`. `Model.generate` gives what is
                beyond as `partial_token`. 8 bytes for each such token at each position, so values should end with a
                suffix that few tokens begin with.
            heal: token healing: where a token crosses the boundary between prefix and value, begin the set before
                that token. Every leaf then begins with the last `trie.heal_bytes` bytes of the prompt, which
                `Model` takes off the prompt by itself.
            memory, path: as in `from_sequences`; canonical, not healed and without open ends.

        Returns:
            Trie. Its `report` says how many values have a token that crosses the boundary.

        Raises:
            VocabularyError: the tokens of a value do not give its text back (a tokenizer that normalises), or,
                canonical and not healed, one crosses the boundary. It names the value.
            TrieError: there is no value, one is empty (it says which), or the set is too large.
            OptionError: the tokenization is another, or arguments do not go together.
            TypeError: a value is no str, or `values` is one str.

        Example:
            >>> vocab = tokentrie.Model().vocab
            >>> trie = tokentrie.Trie.from_strings(vocab, ["yes", "no"], suffix="\n")
            >>> sorted(vocab.detokenize(leaf.tokens) for leaf in trie)
            ['no\n', 'yes\n']
        """
    @classmethod
    def from_numpy(
        cls,
        tokens: _Ids,
        offsets: _Sequence[int] | NDArray[np.integer[_Any]],
        names: _Sequence[str] | None = None,
        heal_bytes: int = 0,
    ) -> Trie:
        """Builds a trie from flat arrays: the inverse of `to_numpy`. Cost: O(n log n).

        Args:
            tokens: token ids, one sequence after the other.
            offsets: integers of shape [sequences + 1]: where each begins and, after the last, where it ends. They
                start at 0, ascend and end at the number of tokens.
            names: one str a sequence, or None.
            heal_bytes: bytes at the end of the prompt with which every sequence begins, 0 to 2**32 - 1.

        Returns:
            Trie.

        Raises:
            TrieError: the offsets are otherwise, or as for `from_sequences`.
            VocabularyError: an integer is no token id.
            TypeError: something is no integer.
            OptionError: `heal_bytes` is out of range.

        Example:
            >>> trie = tokentrie.Trie.from_numpy([2, 5, 6], [0, 1, 3], names=["stop", "think"])
            >>> trie.leaf(1)
            Leaf(index=1, name="think", tokens=[5, 6])
        """
    @property
    def heal_bytes(self) -> int:
        """int: bytes at the end of the prompt with which every leaf begins; 0 unless made with `heal=True`. `Model`
        takes them off the prompt by itself; with a Sampler in a loop of your own, do so. Where a tokenizer puts a
        space before a text, that space counts as well if nothing of the prefix is kept. Files, pickles, `filter`
        and `|` keep it.
        """
    @property
    def end_tokens(self) -> NDArray[np.int32]:
        """numpy.ndarray: int32 [k], ids that end a value where `Sampler` and `Model.generate` are given no others,
        ascending; empty unless set by `with_end_tokens`.
        """
    def with_end_tokens(self, ids: _Ids) -> Trie:
        """The same values, ended by these tokens where their user names no others. Cost: O(1).

        Pickles keep them. Of a mapped file the result is pickled whole.

        Args:
            ids: token ids; none takes them away.

        Returns:
            Trie. It is equal only to tries with the same end tokens.

        Raises:
            TypeError: something is no integer.
            VocabularyError: an integer is no token id (0 to 2**31 - 1).

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5], [5, 6]]).with_end_tokens([9])
            >>> sampler = tokentrie.Sampler(10, trie)
            >>> sampler.accept(5)
            >>> sampler.allowed()
            array([6, 9], dtype=int32)
        """
    @property
    def report(self) -> dict[str, _Any] | None:
        """dict | None: what `from_strings` found: "values", their number; "crossing", how many have a token that
        crosses the boundary to the prefix; "first_crossing", the rows of the first eight of them. What
        `from_prefix_table` found: "keys"; "weighted"; "derived_root"; how many entries were left out, by reason:
        "bad_keys", "bad_ids", "duplicate_keys", "two_weights", "unreachable", "empty_values"; "dead_ends", keys of
        whose tokens none can be used; "after_end", keys of what comes after the end; "ignored_keys", those of
        `prefix_dict` where there are weights; and "skipped", the first few in words.
        """
    def save(self, path: str | PathLike[str], vocab: Vocab | int | None = None) -> None:
        """Saves the trie as a .ttrie file, for `open`. Cost: O(bytes).

        At every moment the path names the old file or the whole new one. `input_rows` are not saved.

        Args:
            path: the file.
            vocab: a Vocab or a vocabulary size that the ids must fit; the file remembers a Vocab's fingerprint.

        Raises:
            VocabularyError: the vocabulary does not have an id.
            OSError: what the operating system says. The old file is as it was.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]])
            >>> trie.save("set.ttrie", vocab=10)
            >>> tokentrie.Trie.open("set.ttrie") == trie
            True
        """
    @staticmethod
    def open(path: str | PathLike[str], *, vocab: Vocab | int | None = None, verify: bool = False) -> Trie:
        """Opens a .ttrie file by mapping it: nothing is copied, and processes share its pages.

        While it is open the file may be replaced or removed, but not changed in place. Cost: O(children of the
        root), with `verify` O(bytes).

        Args:
            path: the file.
            vocab: a Vocab or a vocabulary size that the ids must fit; a Vocab must be the one that the file was
                saved for.
            verify: read all of it and check every checksum and array. Without it, damage gives wrong sets but no
                crash.

        Returns:
            Trie.

        Raises:
            TrieError: the file is damaged, cut off, of another version or no .ttrie.
            VocabularyError: it is for another vocabulary.
            OSError: what the operating system says.

        Example:
            >>> tokentrie.Trie.from_sequences([[5, 6], [2]]).save("set.ttrie")
            >>> len(tokentrie.Trie.open("set.ttrie", vocab=10, verify=True))
            2
        """
    def to_bytes(self, vocab: Vocab | int | None = None) -> bytes:
        """The bytes of the file that `save` writes. Cost: O(bytes).

        Args:
            vocab: a Vocab or a vocabulary size that the ids must fit.

        Returns:
            bytes.

        Raises:
            VocabularyError: the vocabulary does not have an id.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]])
            >>> tokentrie.Trie.from_bytes(trie.to_bytes()) == trie
            True
        """
    @staticmethod
    def from_bytes(data: bytes, *, vocab: Vocab | int | None = None) -> Trie:
        """The inverse of `to_bytes`. The bytes are copied, and all of them checked. Cost: O(bytes).

        Args:
            data: the bytes of a .ttrie file.
            vocab: as for `open`.

        Returns:
            Trie.

        Raises:
            TrieError: the bytes are damaged, cut off, of another version or no .ttrie.
            VocabularyError: they are for another vocabulary.

        Example:
            >>> data = tokentrie.Trie.from_sequences([[5, 6], [2]]).to_bytes()
            >>> len(tokentrie.Trie.from_bytes(data))
            2
        """
    @property
    def fingerprint(self) -> str | None:
        """str | None: `Vocab.fingerprint` of the vocabulary that the ids are of, where the trie is from a file that
        was saved for one. It is refused with another vocabulary.
        """
    @property
    def is_tree(self) -> bool:
        """bool: whether one token sequence stands for each leaf. Not after `from_strings` with `tokenization="all"` or
        `open_end=True`: then the tokens of a leaf are the canonical ones, `in` and `find` know the others too, and
        `|`, `filter` and the like raise.
        """
    @property
    def nodes(self) -> int:
        """int: number of nodes, the root included."""
    @property
    def nbytes(self) -> int:
        """int: bytes held, names included."""
    @property
    def names(self) -> list[str] | None:
        """list[str] | None: the names of all leaves in order, where names were given."""
    @property
    def input_rows(self) -> NDArray[np.int64]:
        """numpy.ndarray: int64 [leaves], the first input row that gave each leaf; -1 where it came from a file."""
    def find(self, tokens: _Ids) -> int | None:
        """The number of the leaf with these tokens. Cost: O(length · log children).

        Args:
            tokens: a list of token ids, or an integer array of one dimension.

        Returns:
            int, or None if there is no such leaf.

        Raises:
            TypeError: something is no integer.
            VocabularyError: an integer is no token id (0 to 2**31 - 1).

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]])
            >>> trie.find([5, 6])
            1
            >>> trie.find([5]) is None
            True
        """
    def leaf(self, index: int) -> Leaf | None:
        """The leaf with this number. Cost: O(depth · log nodes).

        Args:
            index: its number, from 0.

        Returns:
            Leaf, or None if there is none.

        Example:
            >>> tokentrie.Trie.from_sequences([[5, 6], [2]]).leaf(1).tokens
            [5, 6]
        """
    def allowed(self, prefix: _Ids | None = None) -> NDArray[np.int32]:
        """Tokens that may follow a prefix. Cost: O(length · log children).

        Args:
            prefix: token ids; the root if None.

        Returns:
            int32 [k], ascending; empty at the end of a leaf that is no prefix of another.

        Raises:
            TokenNotAllowedError: the prefix leaves the trie.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5, 6], [5, 7], [2]])
            >>> trie.allowed()
            array([2, 5], dtype=int32)
            >>> trie.allowed([5])
            array([6, 7], dtype=int32)
        """
    def forced(self, prefix: _Ids | None = None) -> NDArray[np.int32]:
        """Tokens that must follow a prefix whatever the model says, up to the next choice or the end of a leaf.

        Cost: O(length · log children).

        Args:
            prefix: token ids; the root if None.

        Returns:
            int32 [length], empty where there is a choice.

        Raises:
            TokenNotAllowedError: the prefix leaves the trie.

        Example:
            >>> tokentrie.Trie.from_sequences([[5, 6, 7], [2]]).forced([5])
            array([6, 7], dtype=int32)
        """
    def leaves(self, prefix: _Ids | None = None) -> Iterator[Leaf]:
        """The leaves that begin with a prefix, in order. A leaf that is the prefix itself comes first.

        Cost: O(length · log children), then O(depth · log nodes) a leaf.

        Args:
            prefix: token ids; all leaves if None.

        Returns:
            An iterator of Leaf.

        Raises:
            TokenNotAllowedError: the prefix leaves the trie.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5], [5, 6], [2]])
            >>> [leaf.tokens for leaf in trie.leaves([5])]
            [[5], [5, 6]]
        """
    def union(self, *others: Trie) -> Trie:
        """The leaves of this trie and of all others: `a | b`. Cost: one pass over the nodes of both.

        Only token sequences decide what is equal; of equal leaves the smaller name stays, by code point.
        `input_rows` of the result counts its leaves.

        Args:
            others: any number of Trie.

        Returns:
            Trie.

        Raises:
            TrieError: some have names and some have none.
            TypeError: something is no Trie.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
            >>> [leaf.tokens for leaf in a.union(b)]
            [[1], [2], [3]]
        """
    def intersection(self, *others: Trie) -> Trie:
        """The leaves that this trie and all others have: `a & b`. Equality and cost as for `union`.

        Of two names the smaller stays; where only one of two tries has names, its names stay.

        Args:
            others: any number of Trie.

        Returns:
            Trie.

        Raises:
            TrieError: there is no such leaf, and a trie has at least one; `isdisjoint` asks without raising.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
            >>> [leaf.tokens for leaf in a.intersection(b)]
            [[2]]
        """
    def difference(self, *others: Trie) -> Trie:
        """The leaves of this trie that no other one has, with their names: `a - b`. Equality and cost as for `union`.

        Args:
            others: any number of Trie.

        Returns:
            Trie.

        Raises:
            TrieError: there is no such leaf, and a trie has at least one; `issubset` asks without raising.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
            >>> [leaf.tokens for leaf in a.difference(b)]
            [[1]]
        """
    def symmetric_difference(self, other: Trie) -> Trie:
        """The leaves that exactly one of both tries has: `a ^ b`. Equality and cost as for `union`.

        Args:
            other: a Trie.

        Returns:
            Trie.

        Raises:
            TrieError: there is no such leaf, and a trie has at least one; or only one of them has names.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1], [2]]), tokentrie.Trie.from_sequences([[2], [3]])
            >>> [leaf.tokens for leaf in a.symmetric_difference(b)]
            [[1], [3]]
        """
    def issubset(self, other: Trie) -> bool:
        """Whether the other trie has all leaves of this one: `a <= b`. Names do not count, as they do in `==`.

        Cost: at most one pass over the nodes of both; it ends at the first leaf that the other one does not have.

        Args:
            other: a Trie.

        Returns:
            bool.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1]]), tokentrie.Trie.from_sequences([[1], [2]])
            >>> a.issubset(b)
            True
        """
    def issuperset(self, other: Trie) -> bool:
        """Whether this trie has all leaves of the other one: `a >= b`. Names do not count. Cost as for `issubset`.

        Args:
            other: a Trie.

        Returns:
            bool.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1]]), tokentrie.Trie.from_sequences([[1], [2]])
            >>> a.issuperset(b)
            False
        """
    def isdisjoint(self, other: Trie) -> bool:
        """Whether no leaf is in both. Names do not count.

        Cost: at most one pass over the nodes of both; it ends at the first leaf of both.

        Args:
            other: a Trie.

        Returns:
            bool.

        Example:
            >>> a, b = tokentrie.Trie.from_sequences([[1]]), tokentrie.Trie.from_sequences([[1], [2]])
            >>> a.isdisjoint(b)
            False
        """
    def leaf_set(self, leaves: _Leaves) -> LeafSet:
        """Some of the leaves, to filter by. Cost: O(n log n) in what is named; names take one pass over all names.

        Args:
            leaves: numbers of leaves, names (all leaves of that name), or token sequences, also mixed; an integer array
                of numbers, or one of two dimensions with a sequence in each row; a bool array with one entry for each
                leaf; a LeafSet of this trie.

        Returns:
            LeafSet.

        Raises:
            OptionError: an entry is no leaf; it says which, and why.
            ValueError: a bool array has another length.
            TypeError: an entry is something else.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
            >>> list(trie.leaf_set(["a", 1, [4, 2]]))
            [0, 1, 2]
            >>> list(~trie.leaf_set(np.array([True, False, False])))
            [1, 2]
        """
    def filtered(self, allow: _Leaves | None = None, deny: _Leaves | None = None) -> FilteredTrie:
        """The same trie, of which only some leaves may come: without dead ends, and without making another trie.

        Cost: O(d log n) for d leaves that are named, so a thousandth of a second for ten thousand of a million.

        Args:
            allow: the leaves that may come, as for `leaf_set`; all if None.
            deny: those that may not, also where they are allowed.

        Returns:
            FilteredTrie.

        Raises:
            TrieError: nothing is left.
            OptionError, ValueError, TypeError: as `leaf_set`.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
            >>> left = trie.filtered(allow=["a", "b"], deny=[[1, 2]])
            >>> left.forced()
            array([1, 3], dtype=int32)
        """
    def filter(self, keep: Callable[[Leaf], object] | _Sequence[bool] | NDArray[np.bool_]) -> Trie:
        """The leaves that are wanted, as a trie. Cost: one pass over the nodes, and a call a leaf for a function.

        Args:
            keep: a function that is given each Leaf and says whether to keep it, or a bool array (or list) of shape
                [leaves].

        Returns:
            Trie.

        Raises:
            TrieError: none is wanted, and a trie has at least one leaf.
            ValueError: the mask has another length.
            TypeError: `keep` is neither.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5], [5, 6], [2]])
            >>> [leaf.tokens for leaf in trie.filter(lambda leaf: len(leaf.tokens) == 1)]
            [[2], [5]]
            >>> len(trie.filter(np.array([True, False, False])))
            1
        """
    def sample(self, n: int, seed: _Seed | None = None) -> Trie:
        """A trie of `n` different leaves chosen at random, all equally likely. Cost: one pass over the nodes.

        Args:
            n: how many, 1 to the number of leaves.
            seed: whatever `numpy.random.default_rng` takes; with None they are others each time. The leaves are
                those with the numbers `default_rng(seed).choice(len(trie), n, replace=False, shuffle=False)`, so
                the same numpy gives the same leaves.

        Returns:
            Trie.

        Raises:
            OptionError: `n` is out of range.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[token] for token in range(100)])
            >>> part = trie.sample(10, seed=1)
            >>> (len(part), part <= trie, part == trie.sample(10, seed=1))
            (10, True, True)
        """
    def arrays(self, *, verify: bool = True) -> TrieArrays:
        """The arrays of the trie as they lie in memory, for kernels of your own.

        Cost: O(1); the first time for a file that was opened without `verify`, one pass over all of it.

        Args:
            verify: look at all of a file that nobody has looked at: numbers that index other arrays must not be
                believed. Without it, whoever reads them must expect any.

        Returns:
            TrieArrays.

        Raises:
            TrieError: the file is damaged.

        Example:
            >>> arrays = tokentrie.Trie.from_sequences([[5, 6], [5, 7]]).arrays()
            >>> first, last = arrays.first_child[1:3]  # the edges of node 1, which follows the token 5
            >>> arrays.tokens[first:last]
            array([6, 7], dtype=int32)
        """
    @overload
    def to_numpy(self, *, table: Literal[False] = False) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All token sequences in order as arrays, without names. Cost: one pass over the nodes.

        Where several sequences stand for one leaf these are the canonical ones. `from_numpy` is the inverse,
        `from_sequences` that of a table.

        Args:
            table: give one array of shape [leaves, length], which needs leaves of one length.

        Returns:
            Two arrays: int32 tokens, one leaf after the other, and int64 offsets of shape [leaves + 1]; leaf i is
            `tokens[offsets[i]:offsets[i + 1]]`. With `table` one array, int32 [leaves, length].

        Raises:
            TrieError: a table is asked for and two leaves differ in length.

        Example:
            >>> tokens, offsets = tokentrie.Trie.from_sequences([[5, 6], [2]]).to_numpy()
            >>> (tokens.tolist(), offsets.tolist())
            ([2, 5, 6], [0, 1, 3])
        """
    @overload
    def to_numpy(self, *, table: Literal[True]) -> NDArray[np.int32]:
        """All token sequences in order as arrays, without names. Cost: one pass over the nodes.

        Where several sequences stand for one leaf these are the canonical ones. `from_numpy` is the inverse,
        `from_sequences` that of a table.

        Args:
            table: give one array of shape [leaves, length], which needs leaves of one length.

        Returns:
            Two arrays: int32 tokens, one leaf after the other, and int64 offsets of shape [leaves + 1]; leaf i is
            `tokens[offsets[i]:offsets[i + 1]]`. With `table` one array, int32 [leaves, length].

        Raises:
            TrieError: a table is asked for and two leaves differ in length.

        Example:
            >>> tokens, offsets = tokentrie.Trie.from_sequences([[5, 6], [2]]).to_numpy()
            >>> (tokens.tolist(), offsets.tolist())
            ([2, 5, 6], [0, 1, 3])
        """
    def to_gbnf(self, vocab: Vocab | None = None) -> str:
        r"""A GBNF grammar (llama.cpp's) with the rule `root`, which allows the texts of the leaves and nothing else.

        What texts share in front is written once. A grammar knows text only: any tokenisation of a text is legal.
        Cost: O(n log n) comparisons of text.

        Args:
            vocab: the text of a leaf is that of its tokens; if None, its name.

        Returns:
            str.

        Raises:
            TrieError: there are neither names nor a vocab, a leaf's tokens are no UTF-8 (it says which), or a text
                holds NUL.
            VocabularyError: tokens are outside the vocabulary.

        Example:
            >>> tokentrie.Trie.from_sequences([[1], [2]], names=["list_files", "open_file"]).to_gbnf()
            'root ::= ("list_files" | "open_file")\n'
        """
    def to_regex(self, vocab: Vocab | None = None) -> str:
        """A regular expression that matches the texts of the leaves and nothing else, as in `re.fullmatch`.

        It has no anchors and uses only groups, alternatives, `?` and escapes that all common engines share. What
        texts share in front is written once. Cost: O(n log n) comparisons of text.

        Args:
            vocab: the text of a leaf is that of its tokens; if None, its name.

        Returns:
            str.

        Raises:
            TrieError: there are neither names nor a vocab, or a leaf's tokens are no UTF-8 (it says which).
            VocabularyError: tokens are outside the vocabulary.

        Example:
            >>> tokentrie.Trie.from_sequences([[1], [2]], names=["open", "opener"]).to_regex()
            'open(?:er)?'
        """
    def to_json_schema_enum(self, vocab: Vocab | None = None) -> dict[str, _Any]:
        """The JSON schema `{"type": "string", "enum": [...]}` of the texts of the leaves in order, each once.

        Cost: one pass over the leaves.

        Args:
            vocab: the text of a leaf is that of its tokens; if None, its name.

        Returns:
            dict.

        Raises:
            TrieError: there are neither names nor a vocab, or a leaf's tokens are no UTF-8 (it says which).
            VocabularyError: tokens are outside the vocabulary.

        Example:
            >>> tokentrie.Trie.from_sequences([[5], [2]], names=["think", "stop"]).to_json_schema_enum()
            {'type': 'string', 'enum': ['stop', 'think']}
        """
    def to_mermaid(
        self, vocab: Vocab | None = None, max_depth: int | None = None, max_children: int | None = None
    ) -> str:
        """The trie as a Mermaid flowchart.

        A box holds the tokens up to the next choice, what they end, and the leaves below. Cost: O(boxes · depth ·
        log nodes).

        Args:
            vocab: show the tokens' text instead of their numbers.
            max_depth: choices below each other; all for up to 200 leaves, 2 for more.
            max_children: children of a box; all for up to 200 leaves, 12 for more. The rest is counted in one box.

        Returns:
            str.

        Raises:
            OptionError: a limit is negative.
            VocabularyError: tokens are outside the vocabulary.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
            >>> print(trie.to_mermaid().rstrip())
            flowchart LR
                n0["(2 leaves)"]
                n0 --> n1(["2 → stop"])
                n0 --> n2(["5 6 → think"])
        """
    def to_dot(self, vocab: Vocab | None = None, max_depth: int | None = None, max_children: int | None = None) -> str:
        """The trie as a Graphviz digraph, text for `dot -Tsvg`. Boxes and cost as for `to_mermaid`.

        Args:
            vocab, max_depth, max_children: as for `to_mermaid`.

        Returns:
            str.

        Raises:
            OptionError: a limit is negative.
            VocabularyError: tokens are outside the vocabulary.

        Example:
            >>> tokentrie.Trie.from_sequences([[5, 6], [2]]).to_dot().splitlines()[0]
            'digraph trie {'
        """
    def _repr_svg_(self) -> str: ...
    def to_svg(self, vocab: Vocab | None = None, max_depth: int | None = None, max_children: int | None = None) -> str:
        """The trie as an SVG picture: boxes from left to right, joined by lines. Boxes and cost as for `to_mermaid`.

        A label of more than 60 characters is cut; its tooltip has all of it. The same trie gives the same text.

        Args:
            vocab, max_depth, max_children: as for `to_mermaid`.

        Returns:
            str: a document of its own.

        Raises:
            OptionError: a limit is negative.
            VocabularyError: tokens are outside the vocabulary.

        Example:
            >>> picture = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"]).to_svg()
            >>> (picture.startswith("<svg "), picture.count("<rect"))
            (True, 3)
        """
    def __len__(self) -> int: ...
    def __contains__(self, tokens: _Ids, /) -> bool: ...
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
def _samples(rule: Rule, count: int, seed: int) -> list[str]: ...

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

@final
class Unconstrained:
    """No constraint: every token may come.

    Given where a constraint is wanted, it leaves the output free; as the last part of a Sequence it is the free text
    after a value. It never completes: `Sampler.state` stays "active" until an end token comes, if there are any.

    Example:
        >>> sampler = tokentrie.Sampler(4, tokentrie.rules.Unconstrained())
        >>> sampler.sample(np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
        3
        >>> tokentrie.rules.Unconstrained() == tokentrie.rules.Unconstrained()
        True
    """
    def __new__(cls) -> Unconstrained: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Unconstrained], tuple[()]]: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Sequence:
    """One constraint after the other: each part begins where a value of the part before ends.

    `a + b` of two constraints is one too. Where a value ends that longer ones go on from, a token of a longer one is
    taken as that. Each part has tokens of its own; in rules put together with `+`, and in a Form, tokens may cross from
    one into the next. `leaf` is the value of the last set, `leaves` those of all sets in their order. Compares by
    content; can be pickled.

    Args:
        parts: constraints of any kind but payloads: a Trie, a Rule, a Form, a ThinkGate, a ChatConstraint, a spec; a
            list of str, which is tokenised alone and needs a Vocab where the sequence is used; Unconstrained, as the
            last part; or another Sequence, which counts as its parts.

    Raises:
        OptionError: there is no part, something follows Unconstrained, or a healed Trie is not the first.
        TypeError: a part is something else, such as a payload: give `Trie.from_payload` of it.

    Example:
        >>> verbs = tokentrie.Trie.from_sequences([[1], [2]], names=["get", "set"])
        >>> nouns = tokentrie.Trie.from_sequences([[7], [8, 9]], names=["name", "colour"])
        >>> sampler = tokentrie.Sampler(10, verbs + nouns)
        >>> sampler.accept([2, 8, 9])
        >>> [leaf.name for leaf in sampler.leaves]
        ['set', 'colour']
        >>> door = tokentrie.Sequence(["open", "shut"], tokentrie.Regex(" (now|at [0-9]{2}:00)"))
        >>> tokentrie.Model().generate("The door is ", door).text[:4] in ("open", "shut")
        True
    """
    def __new__(cls, *parts: _Part) -> Sequence: ...
    @property
    def parts(self) -> tuple[_Part, ...]:
        """tuple[Constraint, ...]: the parts, those of a Sequence among them one by one."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Sequence], tuple[_Part, ...]]: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Spec:
    """A constraint as data: one JSON form for every host. Made by `tokentrie.constraint`.

    Stands wherever a constraint does: for `Sampler`, `Batch`, `Model.generate`, a `Slot`, and for `Model.choose` where
    its values can be listed. It is bound to no vocabulary; what it works out for one, it keeps. Compares by content;
    can be pickled where it is data.

    Example:
        >>> spec = tokentrie.constraint({"integer": {"min": 0, "max": 9}})
        >>> spec == tokentrie.constraint(tokentrie.Integer(0, 9))
        True
        >>> spec.to_json()
        '{"integer":{"min":0,"max":9}}'
    """
    @property
    def kind(self) -> str:
        """str: the kind, as it is called in JSON."""
    def to_json(self) -> str:
        """The JSON form: one text for one content.

        Returns:
            str.

        Raises:
            OptionError: a part is an object of this program, such as a Trie or a rule of your own.

        Example:
            >>> tokentrie.constraint(tokentrie.rules.Date() + "!").to_json()
            '{"then":[{"date":{}},"!"]}'
        """
    def to_dict(self) -> dict[str, object]:
        """The JSON form as Python's dict.

        Returns:
            dict.

        Raises:
            OptionError: as for `to_json`.

        Example:
            >>> tokentrie.constraint(["yes", "no"]).to_dict()
            {'choice': ['yes', 'no']}
        """
    def parse(self, text: str) -> object:
        """What a text stands for: an int of an integer, a float, a date, the document of a JSON Schema; else itself.

        Args:
            text: str, one of the texts that the spec allows.

        Returns:
            Any.

        Example:
            >>> tokentrie.constraint({"integer": {}}).parse("12")
            12
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[str], Spec], tuple[str]]: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

def constraint(
    spec: _Constraint,
    *,
    names: dict[str, _Any] | None = None,
    sets: str | PathLike[str] | None = None,
) -> Spec:
    """A constraint from data, or data from a constraint.

    A dictionary with one kind of spec may also be given directly where a constraint is wanted; this says at once what
    is wrong with it, keeps what is worked out, and finds names and files.

    Args:
        spec: a dict or JSON text in the form of docs/specs.md; or whatever else is a constraint: a payload, a list of
            str, a Rule, a Trie, a Form, …
        names: what {"name": ...} stands for: a dict from names to constraints. None: nothing.
        sets: the folder in which {"set": ...} is a file. None: no file is read.

    Returns:
        Spec.

    Raises:
        OptionError: it is no spec; the message begins with the place, such as $.form[1].value.integer.min. Also a
            ValueError.
        TypeError: it is nothing that is a constraint.

    Example:
        >>> model = tokentrie.Model()
        >>> size = tokentrie.constraint('{"then": [{"integer": {"min": 1, "max": 99}}, " kg"]}')
        >>> model.generate("The weight is ", size).text.endswith(" kg")
        True
        >>> tokentrie.constraint({"integer": {"min": 9, "max": 1}})
        Traceback (most recent call last):
        tokentrie.OptionError: $.integer: no integer is in the range: min is 9, max is 1
    """

@disjoint_base
class Rule:
    """A rule says byte by byte what may be written; its texts are the ones that it allows as a whole.

    Regex, Grammar and the others are rules. Write one of your own by extending this class: `start`, `step` and
    `is_end` say what is legal, and everything that takes a constraint takes it. States are what you like: equal ones
    must answer alike, and they must be hashable, because each is asked only once. `step` says None exactly where no
    text begins so. What they raise ends the call that asked, with that exception. A method `allowed_bytes(state)`, if
    there is one, gives the only bytes (ints) for which `step` need be asked.

    A rule is bound to no vocabulary. What it works out for one it keeps, and shares between all who use it there.

    Args:
        args, keywords: those of what extends it; Rule itself uses none.

    Example:
        >>> class Balanced(tokentrie.Rule):  # as many ( as ), at least one, at most 5 open
        ...     def start(self):
        ...         return (0, False)
        ...     def step(self, state, byte):
        ...         depth, begun = state
        ...         if byte == ord("(") and depth < 5:
        ...             return (depth + 1, True)
        ...         return (depth - 1, True) if byte == ord(")") and depth else None
        ...     def is_end(self, state):
        ...         return state == (0, True)
        >>> vocab = tokentrie.Vocab.from_tokens([b"(", b")", b"))", b"x"])
        >>> sampler = tokentrie.Sampler(vocab, Balanced())
        >>> sampler.accept([0, 0])
        >>> sampler.allowed()
        array([0, 1, 2], dtype=int32)
    """
    def __new__(cls, *args: _Any, **keywords: _Any) -> Self: ...
    def start(self) -> _Any:
        """The state before the first byte: any hashable object.

        Returns:
            Any.

        Raises:
            NotImplementedError: what extends Rule defines it.

        Example:
            >>> class Yes(tokentrie.Rule):
            ...     def start(self):
            ...         return b"yes"
            ...     def step(self, state, byte):
            ...         return state[1:] if state[:1] == bytes([byte]) else None
            ...     def is_end(self, state):
            ...         return state == b""
            >>> Yes().matches("yes")
            True
        """
    def step(self, state: _Any, byte: int) -> _Any:
        """The state after one byte more, or None if no text begins so.

        Args:
            state: what `start` or `step` gave.
            byte: int, 0 to 255.

        Returns:
            Any | None.

        Raises:
            NotImplementedError: what extends Rule defines it.

        Example:
            >>> class Dots(tokentrie.Rule):  # one to three dots
            ...     start = lambda self: 0
            ...     step = lambda self, state, byte: state + 1 if byte == ord(".") and state < 3 else None
            ...     is_end = lambda self, state: state > 0
            >>> (Dots().matches("..."), Dots().matches("...."))
            (True, False)
        """
    def is_end(self, state: _Any) -> bool:
        """Whether a text ends at a state; longer ones may go on.

        Args:
            state: what `start` or `step` gave.

        Returns:
            bool.

        Raises:
            NotImplementedError: what extends Rule defines it.

        Example:
            >>> class Even(tokentrie.Rule):  # an even number of letters a, not none
            ...     start = lambda self: 2
            ...     step = lambda self, state, byte: 1 - state % 2 if byte == ord("a") else None
            ...     is_end = lambda self, state: state == 0
            >>> (Even().matches("aa"), Even().matches("aaa"))
            (True, False)
        """
    def matches(self, text: str | bytes) -> bool:
        """Whether a text is legal as a whole. Cost: O(bytes).

        Args:
            text: str or bytes.

        Returns:
            bool.

        Raises:
            TypeError: it is neither.

        Example:
            >>> tokentrie.Regex("[0-9]{2}").matches("42")
            True
        """
    def parse(self, text: str) -> _Any:
        """What a text stands for: the text itself, unless the rule has a type.

        `Generated.value` and the values of a form are what it gives. Extend it where your rule has a type.

        Args:
            text: str, legal as a whole.

        Returns:
            Any.

        Example:
            >>> tokentrie.Regex("[a-z]+").parse("word")
            'word'
        """
    def texts(self, limit: int = 10_000) -> list[str]:
        """All texts of it, if there are few.

        Args:
            limit: the most texts.

        Returns:
            list[str], shorter ones first, those of equal length in the order of their bytes.

        Raises:
            RuleError: there are more, or there is no end of them.

        Example:
            >>> tokentrie.Regex("yes|no?").texts()
            ['n', 'no', 'yes']
        """
    def check(self, states: int = 1000) -> bool:
        """Looks for laws that a rule breaks: whether answers repeat, and whether every text can be completed.

        For rules of your own. States are looked at, shortest texts first, by all 256 bytes: O(256 · states) calls.

        Args:
            states: the most states to look at.

        Returns:
            bool: whether there are no more states, so that nothing was missed.

        Raises:
            RuleError: a law is broken; it says which, and after which text.

        Example:
            >>> tokentrie.Regex("[a-z]{3}").check()
            True
        """
    @overload
    def __add__(self, other: Rule | str, /) -> Concatenation: ...
    @overload
    def __add__(self, other: _Tokens | Form, /) -> Sequence: ...
    @overload
    def __radd__(self, other: str, /) -> Concatenation: ...
    @overload
    def __radd__(self, other: list[str] | tuple[str, ...], /) -> Sequence: ...
    def stats(self, vocab: Vocab) -> RuleStats:
        """What is kept of it for a vocabulary, and how often that was of use.

        Args:
            vocab: Vocab.

        Returns:
            RuleStats. All zeros where it was not used with that vocabulary.

        Example:
            >>> tokentrie.Regex("[0-9]+").stats(tokentrie.Model().vocab)
            RuleStats(masks=0, bytes=0, hits=0, misses=0)
        """

@final
class RuleStats:
    """What a rule keeps for a vocabulary.

    Example:
        >>> vocab = tokentrie.Model().vocab
        >>> digits = tokentrie.Regex("[0-9]+")
        >>> sampler = tokentrie.Sampler(vocab, digits)
        >>> digits.stats(vocab).masks >= 1
        True
    """
    @property
    def masks(self) -> int:
        """int: masks kept, one for each state that was visited."""
    @property
    def bytes(self) -> int:
        """int: bytes of them."""
    @property
    def hits(self) -> int:
        """int: how often a mask was there already."""
    @property
    def misses(self) -> int:
        """int: how often one had to be worked out."""
    __hash__: None  # type: ignore[assignment]

@final
class Regex(Rule):
    """A regular expression as a rule: the whole text matches, and every way to match counts.

    Syntax of the Rust crate `regex` (docs.rs/regex): Unicode classes, flags such as (?i), no look-around and no
    back-references. Text is UTF-8. A finite automaton decides, so that nothing that is allowed leads into a dead end;
    one object serves any number of samplers and threads. Compares by pattern; can be pickled.

    Args:
        pattern: str.
        max_bytes: the most memory that its automaton may take, and the most in which it is made.

    Raises:
        RuleError: it is no regular expression (with position), looks around or back, matches nothing, or makes an
            automaton that is too large. Also a ValueError.

    Example:
        >>> model = tokentrie.Model()
        >>> year = tokentrie.Regex("(19|20)[0-9]{2}")
        >>> year.matches(model.generate("The year was ", year).value)
        True
    """
    def __new__(cls, pattern: str, *, max_bytes: int = 33_554_432) -> Regex: ...
    @property
    def pattern(self) -> str:
        """str: the pattern."""
    @property
    def max_bytes(self) -> int:
        """int: the most memory that its automaton may take."""
    @property
    def states(self) -> int:
        """int: states of its automaton."""
    def table(self) -> list[tuple[bool, list[tuple[list[tuple[int, int]], int]]]]:
        """The table of its automaton, shortest beginnings first: state 0 is the start. O(256 · states).

        Returns:
            list[tuple[bool, list[tuple[list[tuple[int, int]], int]]]]: for each state whether a text may end there, and
                where bytes lead: ranges of bytes, first and last included, with the state after them. Other bytes are
                not legal. The automaton is minimal, and every state leads to an end.

        Example:
            >>> tokentrie.Regex("a[0-9]*").table()
            [(False, [([(97, 97)], 1)]), (True, [([(48, 57)], 1)])]
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Integer(Rule):
    """The integers of a range in decimal, without leading zeros: "0", "-12", and not "007", "-0" or "+1".

    Its values are int. Compares by bounds; can be pickled.

    Args:
        lo, hi: the smallest and the largest, both included. None: no bound, so that digits may come for ever.

    Raises:
        RuleError: no integer is in the range.
        OptionError: a bound does not fit 128 bits.

    Example:
        >>> model = tokentrie.Model()
        >>> model.generate("A number from one to ten: ", tokentrie.Integer(1, 10)).value in range(1, 11)
        True
    """
    def __new__(cls, lo: int | None = None, hi: int | None = None) -> Integer: ...
    @property
    def lo(self) -> int | None:
        """int | None: the smallest."""
    @property
    def hi(self) -> int | None:
        """int | None: the largest."""
    def parse(self, text: str) -> int:
        """The integer that a text stands for.

        Args:
            text: str, one of the rule's texts.

        Returns:
            int.

        Raises:
            RuleError: the text is none of the rule's.

        Example:
            >>> tokentrie.Integer(-5, 5).parse("-3")
            -3
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Number(Rule):
    """Numbers as JSON writes them: "-1.5", "2e10", "0". Its values are float. Compares by its settings; can be pickled.

    Args:
        integer_digits: the most digits before the point, at least 1.
        fraction_digits: the most after it; 0 for numbers without a point.
        exponent_digits: the most of the exponent; 0 for numbers without one.

    Raises:
        RuleError: no digit may come before the point.

    Example:
        >>> price = tokentrie.Number(integer_digits=4, fraction_digits=2, exponent_digits=0)
        >>> (price.matches("12.50"), price.matches("12.505"), price.parse("12.50"))
        (True, False, 12.5)
    """
    def __new__(cls, *, integer_digits: int = 20, fraction_digits: int = 17, exponent_digits: int = 2) -> Number: ...
    @property
    def integer_digits(self) -> int:
        """int: the most digits before the point."""
    @property
    def fraction_digits(self) -> int:
        """int: the most digits after it."""
    @property
    def exponent_digits(self) -> int:
        """int: the most digits of the exponent."""
    def parse(self, text: str) -> float:
        """The number that a text stands for.

        Args:
            text: str, one of the rule's texts.

        Returns:
            float: the nearest one.

        Raises:
            RuleError: the text is none of the rule's.

        Example:
            >>> tokentrie.Number().parse("2e3")
            2000.0
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Date(Rule):
    """Days as "YYYY-MM-DD", from 0001-01-01 to 9999-12-31, only those that there are. Its values are datetime.date.

    Example:
        >>> (tokentrie.rules.Date().matches("2024-02-29"), tokentrie.rules.Date().matches("2023-02-29"))
        (True, False)
        >>> tokentrie.rules.Date().parse("2024-02-29")
        datetime.date(2024, 2, 29)
    """
    def __new__(cls) -> Date: ...
    def parse(self, text: str) -> date:
        """The day that a text stands for.

        Args:
            text: str, one of the rule's texts.

        Returns:
            datetime.date.

        Raises:
            RuleError: the text is no day.

        Example:
            >>> tokentrie.rules.Date().parse("1999-12-31").year
            1999
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class String(Rule):
    r"""JSON strings with their escapes: valid UTF-8, no half of a surrogate pair. Its values are str without escapes.

    Compares by its settings; can be pickled.

    Args:
        min_chars, max_chars: fewest and most characters: an escape counts as one. None: no limit.
        quotes: whether the text has the quotes around the string; else they stand around the rule.

    Raises:
        RuleError: no string is that long and that short, or `max_chars` is beyond some 15,000.

    Example:
        >>> tokentrie.String(max_chars=3).matches("four")
        False
        >>> tokentrie.String(max_chars=3, quotes=True).parse(r'"a\u0041b"')
        'aAb'
    """
    def __new__(cls, *, min_chars: int = 0, max_chars: int | None = None, quotes: bool = False) -> String: ...
    @property
    def min_chars(self) -> int:
        """int: the fewest characters."""
    @property
    def max_chars(self) -> int | None:
        """int | None: the most characters."""
    @property
    def quotes(self) -> bool:
        """bool: whether the quotes are part of the text."""
    def parse(self, text: str) -> str:
        r"""What a text says, without quotes and escapes.

        Args:
            text: str, one of the rule's texts.

        Returns:
            str.

        Raises:
            RuleError: the text is none of the rule's.

        Example:
            >>> tokentrie.String().parse(r"caf\u00e9")
            'café'
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class OneOf(Rule):
    """A text of any of several rules, or one of a list.

    Its values are what the rule that takes the text gives; those of a list are str.
    Lists of any length stay tries: a million texts are sorted once. Compares by its parts; can be pickled.

    Args:
        choices: a Rule that is no Grammar and none of your own, a str, or a list or other iterable of str.

    Raises:
        RuleError: there is nothing to choose from, or the rules make an automaton that is too large.
        TypeError: a part is something else.

    Example:
        >>> when = tokentrie.OneOf(tokentrie.rules.Date(), ["today", "tomorrow"], "never")
        >>> (when.parse("2024-05-01"), when.parse("today"))
        (datetime.date(2024, 5, 1), 'today')
    """
    def __new__(cls, *choices: Rule | str | Iterable[str]) -> OneOf: ...
    @property
    def choices(self) -> tuple[Rule | str | list[str], ...]:
        """tuple[Rule | str | list[str], ...]: what may be chosen."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Concatenation(Rule):
    """One rule after the other: what + makes of rules and str.

    Every way to split a text between the parts counts. Its values are str. Compares by its parts; can be pickled.

    Args:
        parts: a Rule that is no Grammar and none of your own, or a str, which stands there as it is.

    Raises:
        RuleError: there is no part, or they make an automaton that is too large.
        TypeError: a part is something else.

    Example:
        >>> weight = tokentrie.Integer(1, 999) + " " + tokentrie.OneOf("kg", "lb")
        >>> (weight.matches("70 kg"), weight.matches("70kg"))
        (True, False)
    """
    def __new__(cls, *parts: Rule | str) -> Concatenation: ...
    @property
    def parts(self) -> tuple[Rule | str, ...]:
        """tuple[Rule | str, ...]: what follows each other."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Grammar(Rule):
    """An LR(1) grammar as a rule, written as for yacc.

    `%start` names the rule to begin with, else the first one is. A rule is `name : first | "(" second ")" | ;`, with
    comments as in C. "text" is a keyword, "/pattern/" a regular expression (syntax of the Rust crate `regex`), and a
    name in capitals whose alternatives are such texts is a terminal. SKIP is the terminal that may stand between all
    others: blanks, comments. Terminals are read byte by byte: the longest match counts, then keywords before patterns.

    What is allowed is exact: every allowed text can be completed. Compares by text; can be pickled.

    Args:
        text: the grammar.
        lenient: decide conflicts as yacc does (shift first, then the rule that comes first) and pass over what is never
            used, with a warning each. What is allowed may then lead into a dead end.

    Raises:
        RuleError: the text is no grammar, or not LR(1); it says line, column and what is wrong. Also a ValueError.

    Example:
        >>> text = 'NUMBER : "/[0-9]+/" ; sum : NUMBER | sum "+" NUMBER ;'
        >>> sums = tokentrie.Grammar(text)
        >>> (sums.matches("1+20+3"), sums.matches("1+"))
        (True, False)
        >>> tokentrie.Grammar.example("json").matches('{"a": [1, 2]}')
        True
    """
    def __new__(cls, text: str, *, lenient: bool = False) -> Grammar: ...
    @staticmethod
    def example(name: Literal["json", "arithmetic", "c", "sql"]) -> Grammar:
        """A grammar that comes with the package.

        Args:
            name: "json" (RFC 8259), "arithmetic", "c" (declarations, statements and expressions of C) or "sql"
                (SELECT).

        Returns:
            Grammar.

        Raises:
            OptionError: there is none of that name.

        Example:
            >>> tokentrie.Grammar.example("sql").matches("SELECT name FROM users WHERE id = 1")
            True
        """
    @property
    def text(self) -> str:
        """str: its text."""
    @property
    def lenient(self) -> bool:
        """bool: whether conflicts were decided."""
    @property
    def terminals(self) -> list[str]:
        """list[str]: its terminals as they were written."""
    @property
    def parser_states(self) -> int:
        """int: states of its parser."""
    @property
    def lexer_states(self) -> int:
        """int: states of the automaton that reads its terminals."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class JsonSchema(Rule):
    r"""A JSON Schema as a rule: the text is a JSON document that is valid under it.

    `Generated.value` and the values of a form are the document itself, as `json.loads` gives it; of a pydantic model
    or a dataclass they are objects of that class. Every text is valid, but not every valid document can be written:
    properties come in the order in which the schema names them. The library llguidance decides; any tokenisation is
    legal. In a form a document stands between tokens: end the text before it where a token may end.

    As JSON Schema says, an object may have properties that it does not name, unless "additionalProperties" is false. A
    class that ignores what it does not know gets its own fields and no others. Compares by content; can be pickled
    where its class can.

    Args:
        schema: dict, bool, or JSON as str or bytes; a pydantic model or TypeAdapter; or a dataclass, whose fields are
            converted by pydantic if it is installed. Without it they may be str, int, float, bool, None, Any, list,
            dict with keys of str, Literal, Enum, datetime.date, dataclasses, and unions of these.
        whitespace: blanks between the parts of a document. None takes a space, or a line break with up to 40 blanks;
            True any number, of which a model may write more and more; False none; a str those that this regular
            expression matches.
        unicode_escapes: whether any character in a string may be written as \\uXXXX, not only those that must be.
        lenient: leave out keywords that are not supported, with a warning, instead of refusing them. Then documents may
            come that the schema does not allow.

    Raises:
        RuleError: the schema is no JSON (with line and column) or no schema, has keywords that are not supported, is
            too large or allows nothing; it names the place as a JSON pointer. Also a ValueError.
        TypeError: it is something else, or a field of a dataclass has a type that cannot be converted.

    Example:
        >>> person = tokentrie.JsonSchema({
        ...     "type": "object",
        ...     "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"enum": [1, 2, 3]}},
        ...     "required": ["name", "age"],
        ...     "additionalProperties": False,
        ... })
        >>> (person.matches('{"name": "Ann", "age": 3}'), person.matches('{"name": "Ann"}'))
        (True, False)
        >>> out = tokentrie.Model().generate("A person: ", person)
        >>> out.value["age"] in (1, 2, 3)
        True
    """
    def __new__(
        cls,
        schema: _Any,
        *,
        whitespace: bool | str | None = None,
        unicode_escapes: bool = True,
        lenient: bool = False,
    ) -> JsonSchema: ...
    @property
    def schema(self) -> _Any:
        """dict | bool: the schema, as it was read: of a class the one that was made for it."""
    @property
    def whitespace(self) -> bool | str | None:
        """None | bool | str: which blanks may stand between the parts of a document."""
    @property
    def unicode_escapes(self) -> bool:
        """bool: whether any character may be written as an escape."""
    @property
    def lenient(self) -> bool:
        """bool: whether keywords that are not supported were left out."""
    def parse(self, text: str) -> _Any:
        """The document that a text is; of a pydantic model or a dataclass an object of that class.

        Args:
            text: str, legal as a whole.

        Returns:
            Any.

        Raises:
            ValueError: it is no JSON, or the class refuses it, as pydantic's own validators may.

        Example:
            >>> tokentrie.JsonSchema({"type": "array"}).parse("[1, null]")
            [1, None]
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Lark(Rule):
    r"""A grammar in Lark as a rule, of the variant that the library llguidance reads.

    It begins with the rule `start`. Rules are in small letters, terminals in capitals; `%ignore` names what may stand
    between terminals, `%import common.INT` and `%json {...}` bring others. Terminals are regular expressions, also with
    & (and) and ~ (not), and take the longest match: where they run into each other, a text may be begun that nothing
    completes, which ends with a RuleError. Syntax: docs/syntax.md of github.com/guidance-ai/llguidance. What counts
    tokens or names them is refused. Compares by text; can be pickled.

    Unlike a Grammar it may be ambiguous, and need not be LR(1). In a form its text stands between tokens: end the text
    before it where a token may end.

    Args:
        text: the grammar.

    Raises:
        RuleError: the text is no grammar (with line and column), is too large, or allows nothing. Also a ValueError.

    Example:
        >>> call = tokentrie.Lark('start: NAME "(" [NUMBER ("," NUMBER)*] ")"\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/')
        >>> (call.matches("max(1,20)"), call.matches("max(1"))
        (True, False)
    """
    def __new__(cls, text: str) -> Lark: ...
    @property
    def text(self) -> str:
        """str: its text."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@type_check_only
class _Settings(TypedDict, total=False):
    """Settings of the draw that came after the others."""

    typical_p: float

@type_check_only
class _AllSettings(_Settings, total=False):
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int | None

@final
class Sampling:
    """How the next token is chosen among the legal ones, as one value.

    Give it as `sampling=` in place of the single keywords. It cannot change, compares and hashes by content, and
    can be pickled.

    Args:
        mode: "greedy" or 0: the highest logit, ties to the lowest id. "sampled" or 1: a seeded draw, for which the
            others count.
        temperature: divides the logits, finite and at least 0; 0 takes the highest.
        top_k: keep the k highest logits, 0 to 2**32 - 1; 0 keeps all.
        top_p: keep the fewest tokens whose probabilities add up to this, 0 to 1; 1 keeps all.
        min_p: keep tokens at least this times as probable as the best, 0 to 1; 0 keeps all.
        seed: seed of the draw, 0 to 2**32 - 1; with None each sampler takes one from the operating system.
        typical_p: keep the tokens whose surprise, -log p, is nearest to the mean one, until their probabilities add
            up to this, 0 to 1; 1 keeps all.

    Truncation and draw are those of llama.cpp, in its order: top_k, typical_p, top_p, min_p, temperature, draw.

    Raises:
        OptionError: a setting is out of range.

    Example:
        >>> sampling = tokentrie.Sampling("sampled", temperature=0.7, seed=1)
        >>> sampling == tokentrie.Sampling(mode=1, temperature=0.7, seed=1)
        True
        >>> trie = tokentrie.Trie.from_sequences([[2], [5, 6]])
        >>> tokentrie.Sampler(10, trie, sampling=sampling).seed
        1
    """

    __match_args__: Final = ("mode", "temperature", "top_k", "top_p", "min_p", "seed", "typical_p")
    def __new__(
        cls,
        mode: _Mode = "greedy",
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
        typical_p: float = 1.0,
    ) -> Sampling: ...
    @staticmethod
    def settings() -> list[tuple[str, int | float, str, str]]:
        """All settings of a draw but mode and seed, with defaults and ranges.

        Returns:
            A list of (name, default, range, what it does), with an int as default where only whole numbers are taken.

        Example:
            >>> [(name, default) for name, default, _, _ in tokentrie.Sampling.settings()][:2]
            [('temperature', 1.0), ('top_k', 0)]
        """
    @property
    def mode(self) -> Literal["greedy", "sampled"]:
        """str: "greedy" or "sampled"."""
    @property
    def temperature(self) -> float:
        """float: divides the logits; 0 takes the highest."""
    @property
    def top_k(self) -> int:
        """int: how many of the highest logits are kept; 0 keeps all."""
    @property
    def top_p(self) -> float:
        """float: the fewest tokens are kept whose probabilities add up to this; 1 keeps all."""
    @property
    def min_p(self) -> float:
        """float: tokens at least this times as probable as the best are kept; 0 keeps all."""
    @property
    def typical_p(self) -> float:
        """float: tokens nearest to the mean surprise are kept until their probabilities add up to this; 1 keeps all."""
    @property
    def seed(self) -> int | None:
        """int | None: seed of the draw; with None each sampler takes one from the operating system."""
    def replace(self, *, mode: _Mode = ..., **settings: Unpack[_AllSettings]) -> Sampling:
        """The same value with some settings changed.

        Args:
            mode: as for `Sampling`; what is not given stays.
            settings: temperature, seed and all others, as for `Sampling`.

        Returns:
            A new Sampling.

        Raises:
            OptionError: a setting is out of range.
            TypeError: there is no such setting.

        Example:
            >>> tokentrie.Sampling("sampled", seed=1).replace(temperature=0.5)
            Sampling(mode="sampled", temperature=0.5, top_k=0, top_p=1.0, min_p=0.0, seed=1, typical_p=1.0)
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...

@disjoint_base
class Sampler:
    """A position in a set of values that chooses the next token from a row of logits.

    Args:
        vocab: a Vocab, or the vocabulary size as an int, which then has no end-of-generation tokens.
        constraint: payload JSON (str or bytes), a payload as a dict, a Trie, a FilteredTrie, a list of str, a
            Sequence, a ThinkGate, a Rule, a ChatConstraint, or Any. Of several descriptors the first with a usable
            leaf is active; `activate` selects another. Payloads come from the cache of the calling thread. A list of
            str is tokenised at each call as by `Trie.from_strings`: for many samplers make the Trie once.
        mode: "greedy" or 0: the highest logit, ties to the lowest id. "sampled" or 1: a seeded draw.
        end_tokens: ids that close the span at the end of a leaf. None: those of the set (`Trie.end_tokens`), which
            has mostly none; then a leaf that cannot go on is complete at once.
        after: what follows a complete leaf: "free" leaves logits alone, "stop" allows only end of generation.
        temperature, top_k, top_p, min_p, seed: settings of the draw, as for `Sampling`.
        sampling: a Sampling in place of mode and all settings.
        settings: all other settings of the draw, as for `Sampling`.

    One object may be used from several threads: calls take turns.

    Raises:
        PayloadError: the payload cannot be used; it says line, column and field.
        VocabularyError: ids are outside the vocabulary, or texts are given and it cannot tokenise.
        TrieError: a list of str makes no set.
        OptionError: a setting is out of range, a keyword stands beside `sampling`, or `after="stop"` has nothing to
            stop on.

    Warns:
        TokenTrieWarning: leaves of a payload were dropped, because the vocabulary does not have their ids.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[5, 6], [5, 7], [2]], names=["think", "talk", "stop"])
        >>> sampler = tokentrie.Sampler(10, trie)
        >>> logits = np.arange(10, dtype=np.float32)  # 9 is liked best, but only 2 and 5 may come
        >>> sampler.sample(logits)
        5
        >>> sampler.accept([5, 6])
        >>> sampler.leaf.name
        'think'
    """
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
    def allowed(self) -> NDArray[np.int32]:
        """Tokens that may come next. Cost: O(children).

        Returns:
            int32 [k], ascending. At an open leaf (`open`) the tokens that go on to a longer value. Where the
            sampler leaves logits alone, the whole vocabulary.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
            >>> sampler.allowed()
            array([2, 5], dtype=int32)
        """
    def forced(self) -> NDArray[np.int32]:
        """Tokens that must come next, because exactly one is allowed at each step. Cost: O(length).

        They need no forward pass.

        Returns:
            int32 [length], empty where there is a choice. A single end token is included.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
            >>> sampler.accept(5)
            >>> sampler.forced()
            array([6, 7], dtype=int32)
        """
    def apply(self, logits: _Logits) -> None:
        """Masks logits in place: what may not come becomes -inf, the others keep their exact bits.

        Where the set has weights (`Trie.is_weighted`), they are added to the others: call it once a row. Cost:
        O(rows · V). Changes nothing else at an open leaf, and nothing where everything may come. If every legal
        logit is -inf or NaN, the lowest legal id gets 0.0 and `starved` counts it.

        Args:
            logits: float32 [V] or [rows, V], writable, last axis contiguous. Rows may be strided, and wider than
                the vocabulary: what is beyond it is masked too.

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order, is too short or read-only. Nothing was written.

        Example:
            >>> sampler = tokentrie.Sampler(4, tokentrie.Trie.from_sequences([[1], [2]]))
            >>> logits = np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32)
            >>> sampler.apply(logits)
            >>> logits
            array([-inf,  1.5,  2.5, -inf], dtype=float32)
        """
    def sample(self, logits: _Logits) -> int:
        """Chooses the next token without accepting it, by the logits with the weights of the set, if it has some.

        Cost: O(k) in the number of legal tokens, whatever the size of the vocabulary; O(V) at an open leaf and
        where everything may come.

        Args:
            logits: float32 [V], contiguous; may be wider than the vocabulary.

        Returns:
            The token id.

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order, or is too short.

        Example:
            >>> sampler = tokentrie.Sampler(4, tokentrie.Trie.from_sequences([[1], [2]]))
            >>> sampler.sample(np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
            2
        """
    def advance(self, logits: _Logits) -> list[int]:
        """Chooses a token, accepts it, and accepts what is forced after it: everything to append, one call a branch.

        Args:
            logits: float32 [V], as for `sample`.

        Returns:
            list[int], at least one token id.

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order, or is too short. Nothing was accepted.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
            >>> sampler.advance(np.arange(10, dtype=np.float32))
            [5, 6, 7]
            >>> sampler.state
            'complete'
        """
    def accept(self, tokens: SupportsIndex | _Ids) -> None:
        """Takes a token, or several as a whole or not at all. Cost: O(log children) a token.

        Args:
            tokens: a token id, a list of them, or an integer array of one dimension.

        Raises:
            TokenNotAllowedError: a token may not come; it says which, where, and what may. The state is as before.
            VocabularyError: the vocabulary does not have a token. The state is as before.
            TypeError: something is no integer.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
            >>> sampler.accept([5, 6])
            >>> sampler.depth
            2
        """
    def rollback(self, n: int) -> None:
        """Takes back the last n accepted tokens, those after a complete leaf included.

        Args:
            n: how many, 0 or more.

        Raises:
            OptionError: fewer were accepted since the span was armed.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6, 7], [2]]))
            >>> sampler.accept([5, 6])
            >>> sampler.rollback(1)
            >>> sampler.depth
            1
        """
    def reset(self) -> None:
        """Makes it as it was created: armed at the root of the first trie, and the draws begin again. Cost: O(1).

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
            >>> sampler.accept(2)
            >>> sampler.reset()
            >>> sampler.state
            'active'
        """
    def clone(self) -> Sampler:
        """An independent copy at the same position; the trie is shared. Cost: O(1).

        Returns:
            Sampler.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
            >>> copy = sampler.clone()
            >>> copy.accept(5)
            >>> (copy.depth, sampler.depth)
            (1, 0)
        """
    def activate(self, path: str) -> None:
        """Arms the root of the trie with this path.

        Args:
            path: one of `paths`.

        Raises:
            OptionError: there is no such path; it names those there are.

        Example:
            >>> leaves = [{"name": "A", "tokens": [1]}]
            >>> payload = {"descriptors": [{"path": path, "leaves": leaves} for path in ("action", "colour")]}
            >>> sampler = tokentrie.Sampler(10, payload)
            >>> sampler.activate("colour")
            >>> sampler.path
            'colour'
        """
    def deactivate(self) -> None:
        """Stops constraining until a path is activated or the sampler is reset.

        Example:
            >>> sampler = tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[5, 6], [2]]))
            >>> sampler.deactivate()
            >>> (sampler.state, len(sampler.allowed()))
            ('idle', 10)
        """
    def fill_bitmask(self, words: _Words) -> None:
        """Writes the legal tokens as bits: bit i % 32 of word i // 32 is 1 where token i may come. Cost: O(rows · W).

        At an open leaf and where everything may come, every bit of the vocabulary is set. A bit has no weight: where
        the set has some (`Trie.is_weighted`), that is a TokenTrieWarning.

        Args:
            words: int32 [W] or [rows, W], writable, last axis contiguous, W at least ceil(V / 32). Words beyond are
                cleared.

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order, is too short or read-only. Nothing was written.

        Example:
            >>> sampler = tokentrie.Sampler(40, tokentrie.Trie.from_sequences([[1], [3], [32]]))
            >>> words = np.zeros(2, dtype=np.int32)
            >>> sampler.fill_bitmask(words)
            >>> words
            array([10,  1], dtype=int32)
        """
    @property
    def state(self) -> _State:
        """str: "active" inside a value, "complete" after it, "idle" when deactivated, "off" after something else was
        accepted.
        """
    @property
    def leaf(self) -> Leaf | None:
        """Leaf | None: the value, once complete; of a Sequence the last."""
    @property
    def leaves(self) -> list[Leaf]:
        """list[Leaf]: the values known so far, in their order: of a Sequence one for each set that is complete."""
    @property
    def depth(self) -> int:
        """int: tokens walked from the root of the trie."""
    @property
    def accepted(self) -> int:
        """int: tokens accepted since the span was armed, those after a complete leaf included."""
    @property
    def open(self) -> bool:
        """bool: whether a leaf ends here that may also go on, with no end token to tell: the whole row competes."""
    @property
    def thinking(self) -> int:
        """int: tokens thought so far behind a ThinkGate, without its markers; 0 for other constraints."""
    @property
    def starved(self) -> int:
        """int: how often every legal logit was -inf or NaN, so that the lowest legal id was chosen."""
    @property
    def path(self) -> str:
        """str: path of the trie that is walked; empty where the constraint is no payload."""
    @property
    def paths(self) -> list[str]:
        """list[str]: the paths that `activate` knows."""
    @property
    def trie(self) -> Trie:
        """Trie | None: the trie that is walked; None for another kind of constraint."""
    @property
    def seed(self) -> int:
        """int: seed of the draw: the one given, or the one taken from the operating system."""

@final
class Batch:
    """Rows that are decoded together, each in its own place of its own constraint: requests, beams, drafts.

    A row is a state of a few bytes, so `reorder` copies integers, and `rollback` crosses it. Every call over rows does
    all of them or none, lets other Python threads run, and uses all cores where that pays.

    Args:
        constraint: what all rows follow, as for `Sampler`; or a list with one for each row, None for a free row. A list
            of str is one constraint.
        rows: number of rows; not needed with a list.
        vocab: a Vocab, or the vocabulary size as an int, which then has no end-of-generation tokens.
        mode: "greedy" or 0, or "sampled" or 1: what `select` does.
        end_tokens: ids that close a row at the end of a leaf. None: those of the set (`Trie.end_tokens`).
        after: what a finished row allows: "stop" only end of generation or, where the vocabulary names none, the end
            tokens; where no such token is known the row is left alone, as with "free".
        temperature, top_k, top_p, min_p, seed: settings of the draw, as for `Sampling`. Each place has a generator of
            its own, made from the seed: it stays when rows are reordered.
        sampling: a Sampling in place of mode and all settings.
        allow, deny: which leaves may come, as for `Trie.filtered`, where all rows follow one Trie. For rows with
            filters of their own give a list of `Trie.filtered`.
        no_repeat: what a row may not write again after `next_item`: "row" (or True) its own items, "siblings" those of
            all rows of its group, but for the first row of the group, which is held back by its own only.
        settings: all other settings of the draw, as for `Sampling`.

    Logits are [rows, V] or wider: float32, float16 or bfloat16, a numpy array, a tensor of torch, or anything with the
    buffer protocol, never copied. Rows may be strided, the last axis is contiguous. What lies beyond the vocabulary may
    never come. Tensors on another device stay there: see `tokentrie.integrations.device`.

    One object may be used from several threads: calls take turns. An array must not be written while a call reads it.

    Raises:
        PayloadError, VocabularyError, TrieError, TypeError: as for `Sampler`, naming the row.
        OptionError: a setting is out of range, or `rows` does not fit.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
        >>> rows = tokentrie.Batch(trie, rows=2, vocab=6)
        >>> logits = np.array([[0, 3, 0, 0, 2, 9], [0, 2, 0, 0, 3, 9]], dtype=np.float32)
        >>> rows.select(logits)
        array([1, 4], dtype=int32)
        >>> rows.accept([1, 4])
        >>> rows.allowed(0)
        array([2, 3], dtype=int32)
    """
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
    def n_vocab(self) -> int:
        """int: number of token ids."""
    def allowed(self, row: int) -> NDArray[np.int32]:
        """Tokens that may come next in a row. Cost: O(children).

        Args:
            row: its number; a negative one counts from the end.

        Returns:
            int32 [k], ascending. At an open leaf the tokens that go on to a longer value; in a free row the whole
            vocabulary.

        Raises:
            IndexError: there is no such row.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=3, vocab=10)
            >>> rows.allowed(2)
            array([2, 5], dtype=int32)
        """
    def forced(self, row: int) -> NDArray[np.int32]:
        """Tokens that must come next in a row, because exactly one is allowed at each step. Cost: O(length).

        Args:
            row: its number; a negative one counts from the end.

        Returns:
            int32 [length], empty where there is a choice.

        Raises:
            IndexError: there is no such row.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6, 7], [2]]), rows=1, vocab=10)
            >>> rows.accept([5])
            >>> rows.forced(0)
            array([6, 7], dtype=int32)
        """
    @property
    def finished(self) -> NDArray[np.bool_]:
        """bool [rows]: whether each row has its value. The value is kept, whatever follows."""
    @property
    def nodes(self) -> NDArray[np.int32]:
        """int32 [rows]: where each row is: the number of its node in its trie, -1 for other kinds of constraint."""
    @property
    def accepted(self) -> NDArray[np.int32]:
        """int32 [rows]: tokens that each row has accepted, those after its value included."""
    @property
    def thinking(self) -> NDArray[np.int32]:
        """int32 [rows]: tokens that each row has thought behind a ThinkGate, without its markers."""
    def next_item(self, groups: int | _Ids | None = None) -> int:
        """Finished rows begin their next item.

        With `no_repeat`, what was written until now is not legal there any more, so nothing leads to it. Rows in the
        middle of an item go on as they are. `rollback` does not cross it.

        Args:
            groups: siblings, as for `top_children`; all rows if None.

        Returns:
            int: how many rows have begun.

        Raises:
            TrieError: a finished row has written all of its items. No row has changed.
            OptionError: with `no_repeat`, a finished row follows no trie; or groups do not fit.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
            >>> rows = tokentrie.Batch(trie, rows=1, vocab=6, no_repeat=True)
            >>> rows.accept([4])
            >>> rows.accept([2])
            >>> rows.next_item()
            1
            >>> (rows.allowed(0), [leaf.name for leaf in rows.items(0)])
            (array([1], dtype=int32), ['c'])
        """
    def items(self, row: int) -> list[Leaf]:
        """The items that a row has written before the one at which it is: see `next_item`.

        Args:
            row: its number; a negative one counts from the end.

        Returns:
            list[Leaf], in the order in which they were written.

        Raises:
            IndexError: there is no such row.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
            >>> rows.accept([2])
            >>> rows.items(0)
            []
            >>> rows.next_item()
            1
            >>> [leaf.index for leaf in rows.items(0)]
            [1]
        """
    @property
    def unbound(self) -> NDArray[np.bool_]:
        """bool [rows]: whether anything may come in each row: in a free one, at an open leaf, after a value that
        nothing has to follow.
        """
    @property
    def mode(self) -> str:
        """str: "greedy" or "sampled": what `select` does."""
    def _warn_of_weights(self) -> None: ...
    def _select_listed(self, listed: NDArray[np.float32]) -> NDArray[np.int32]: ...
    def _top_listed(
        self,
        listed: NDArray[np.float32],
        k: int,
        scores: Iterable[float] | NDArray[np.floating[_Any]] | None,
        groups: int | Iterable[int] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    def leaf(self, row: int) -> Leaf | None:
        """The value of a row, once complete.

        Args:
            row: its number; a negative one counts from the end.

        Returns:
            Leaf | None; of a Sequence the last value.

        Raises:
            IndexError: there is no such row.

        Example:
            >>> trie = tokentrie.Trie.from_sequences([[5, 6], [2]], names=["think", "stop"])
            >>> rows = tokentrie.Batch(trie, rows=2, vocab=10)
            >>> rows.accept([5, 2])
            >>> rows.leaf(1).name
            'stop'
        """
    def leaves(self, row: int) -> list[Leaf]:
        """The values of a row known so far: of a Sequence one for each set that is complete.

        Args:
            row: its number; a negative one counts from the end.

        Returns:
            list[Leaf], in their order.

        Raises:
            IndexError: there is no such row.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5]], names=["go"]), rows=1, vocab=10)
            >>> rows.accept([5])
            >>> [leaf.name for leaf in rows.leaves(0)]
            ['go']
        """
    def apply(self, logits: _Rows) -> None:
        """Masks logits in place: what may not come becomes -inf, the others keep their exact bits.

        Cost: O(rows · V); `select` and `top_children` need no mask. If every legal logit of a row is -inf or NaN, the
        lowest legal id gets 0.0 and `starved` counts it.

        Args:
            logits: [rows, V] or wider, writable; see the class.

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order, or is read-only. Nothing was written.
            OptionError: it has another number of rows.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
            >>> logits = np.array([[0.5, 1.5, 2.5, 3.5]], dtype=np.float32)
            >>> rows.apply(logits)
            >>> logits
            array([[-inf,  1.5,  2.5, -inf]], dtype=float32)
        """
    def fill_bitmask(self, words: _Words) -> None:
        """Writes the legal tokens as bits: bit i % 32 of word i // 32 is 1 where token i may come.

        Cost: O(rows · W), as it writes every word; `bitmask` writes only what has changed. At an open leaf and in a
        free row every bit of the vocabulary is set.

        Args:
            words: int32 [rows, W], writable, W at least ceil(V / 32). Words beyond are cleared.

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order, is too narrow or read-only. Nothing was written.
            OptionError: it has another number of rows.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [3], [32]]), rows=1, vocab=40)
            >>> words = np.zeros((1, 2), dtype=np.int32)
            >>> rows.fill_bitmask(words)
            >>> words
            array([[10,  1]], dtype=int32)
        """
    def bitmask(self) -> NDArray[np.int32]:
        """The bit mask of all rows, in memory of the batch's own.

        It is brought up to date: only bits that have changed are written. Cost: O(k) a row in the number of legal
        tokens.

        Returns:
            int32 [rows, ceil(V / 32)], read-only, laid out as by `fill_bitmask`. The next call writes into the same
            memory: copy what must stay.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1, 3], [2]]), rows=1, vocab=40)
            >>> rows.bitmask()
            array([[6, 0]], dtype=int32)
            >>> rows.accept([1])
            >>> rows.bitmask()
            array([[8, 0]], dtype=int32)
        """
    def select(self, logits: _Rows) -> NDArray[np.int32]:
        """The token to take in each row, without taking it: the best of those that may come, or one drawn.

        Cost: O(k) a row in the number of legal tokens, whatever the size of the vocabulary; O(V) at an open leaf and in
        a free row.

        Args:
            logits: [rows, V] or wider; see the class.

        Returns:
            int32 [rows].

        Raises:
            TypeError: the array has another dtype.
            ValueError: it has another shape or order.
            OptionError: it has another number of rows. Nothing was drawn.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
            >>> rows.select(np.array([[0.5, 1.5, 2.5, 3.5]], dtype=np.float32))
            array([2], dtype=int32)
        """
    def accept(self, tokens: _Ids, *, row: int | None = None) -> None:
        """Takes a token in each row: in all of them or in none. Cost: O(log children) a row.

        Args:
            tokens: one id a row: a list, an integer array, or a tensor on the CPU.
            row: takes them in this row alone instead, one after the other, all or none.

        Raises:
            TokenNotAllowedError: a token may not come in its row; it says which, where, and what may. No row has moved.
            VocabularyError: the vocabulary does not have a token. No row has moved.
            OptionError: not one token a row.
            TypeError: something is no integer.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
            >>> rows.accept([5, 2])
            >>> rows.finished
            array([False,  True])
            >>> rows.accept([6], row=0)
            >>> rows.finished
            array([ True,  True])
        """
    def reorder(self, parents: _Ids) -> None:
        """Row i goes on where row parents[i] is. Rows may come again, be left out, and become more or fewer.

        What is needed to go back moves along, so `rollback` crosses it. Cost: O(rows).

        Args:
            parents: row numbers: a list, an integer array, or a tensor on the CPU.

        Raises:
            OptionError: a parent is no row. No row has moved.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
            >>> rows.accept([5, 2])
            >>> rows.reorder([0, 0, 1])
            >>> rows.finished
            array([False, False,  True])
        """
    def rollback(self, n: int, *, row: int | None = None) -> None:
        """Takes back the last n accepted tokens of each row: in all of them or in none.

        Args:
            n: how many, 0 or more.
            row: in this row alone.

        Raises:
            OptionError: a row has accepted fewer; it is named. No row has moved.
            IndexError: there is no such row.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
            >>> rows.accept([5, 5])
            >>> rows.rollback(1)
            >>> rows.accepted
            array([0, 0], dtype=int32)
        """
    def reset(self) -> None:
        """Each row at the start of its constraint; draws begin again.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=1, vocab=10)
            >>> rows.accept([2])
            >>> rows.reset()
            >>> rows.finished
            array([False])
        """
    def assign(self, row: int, constraint: _Constraint | None) -> None:
        """Gives a row to another request: at the start of this constraint. Other rows stay as they are.

        Args:
            row: its number; a negative one counts from the end. The number of rows adds one.
            constraint: as for `Batch`, for one row; None makes the row free.

        Raises:
            PayloadError, VocabularyError, TrieError, TypeError: as for `Sampler`. The row is as before.
            IndexError: there is no such row.

        Example:
            >>> rows = tokentrie.Batch([None, None], vocab=10)
            >>> rows.assign(1, tokentrie.Trie.from_sequences([[5, 6], [2]]))
            >>> rows.allowed(1)
            array([2, 5], dtype=int32)
        """
    def verify(self, drafts: Iterable[_Ids] | NDArray[np.integer[_Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How many draft tokens each row would accept, one after the other, and the mask at each position.

        No row changes. Behind a draft that is refused the masks repeat the one that refused it: no mask is ever empty.

        Args:
            drafts: a list of token ids for each row, or an integer array [rows, n].

        Returns:
            (accepted, masks): int32 [rows], and int32 [rows, n + 1, ceil(V / 32)] with n the most drafts of a row:
            masks[r, i] says what may come in row r after its first i drafts.

        Raises:
            OptionError: not one list a row.
            TypeError: something is no integer.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
            >>> accepted, masks = rows.verify([[5, 7], [2]])
            >>> accepted
            array([1, 1], dtype=int32)
            >>> masks[0, :, 0]
            array([36, 64, 64], dtype=int32)
        """
    def children(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """What may come in each row as ragged lists, end tokens included: for those who write kernels.

        Cost: O(total). A row in which everything may come lists those that go on in its constraint: often none.

        Returns:
            (offsets, tokens, next): int64 [rows + 1], int32 [total], int32 [total]. Row r has the entries
            offsets[r] .. offsets[r + 1]: tokens, ascending, and the node each leads to (as `nodes`; -1 where the
            constraint is no trie). An end token stays at its node.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=2, vocab=10)
            >>> rows.accept([5], row=1)
            >>> offsets, tokens, following = rows.children()
            >>> offsets.tolist(), tokens.tolist(), following.tolist()
            ([0, 2, 3], [2, 5, 6], [1, 2, 3])
        """
    def top_children(
        self,
        logits: _Rows,
        k: int,
        scores: Iterable[float] | NDArray[np.floating[_Any]] | None = None,
        score: _Score = "model",
        groups: int | Iterable[int] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """The k best continuations over all rows, best first; ties by row, then by token.

        Fewer where there are fewer, never a filler. They are those of a full top-k over the masked matrix, without the
        mask. A finished row has none, and neither has one whose score is -inf, as when a search begins with one beam.

        Args:
            logits: [rows, V] or wider; see the class.
            k: how many at most, for each group.
            scores: what each row has so far, added to what a token adds; numbers or -inf. None: 0.
            score: what a token adds. "model": the log of its probability under the whole vocabulary, exact, O(V) a row.
                "renormalised": the log of its share among the legal tokens, O(k) a row. "given": its logit, for rows of
                log-probabilities.
            groups: k for each group of rows: a number of groups of one size, or a list of their sizes.

        Returns:
            (parents, tokens, scores): int64 [n], int32 [n], float64 [n], n at most k for each group, group after group.

        Raises:
            TypeError, ValueError: as for `select`.
            OptionError: another number of rows or scores, a score that is NaN or +inf, or groups that are not the rows.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2], [3]]), rows=1, vocab=4)
            >>> logits = np.array([[9.0, 1.0, 3.0, 3.0]], dtype=np.float32)
            >>> parents, tokens, scores = rows.top_children(logits, 2, score="renormalised")
            >>> tokens, scores.round(2)
            (array([2, 3], dtype=int32), array([-0.76, -0.76]))
        """
    def clone(self) -> Batch:
        """An independent copy at the same places; the tries are shared.

        Returns:
            Batch.

        Example:
            >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[5, 6], [2]]), rows=1, vocab=10)
            >>> copy = rows.clone()
            >>> copy.accept([2])
            >>> rows.finished, copy.finished
            (array([False]), array([ True]))
        """
    @property
    def starved(self) -> int:
        """int: how often every legal logit of a row was -inf or NaN, so that its lowest legal id was taken."""
    @property
    def seed(self) -> int:
        """int: the seed that was given, or the one taken from the operating system; that of the first place."""

@final
class TrieArrays:
    """The arrays of a trie as they lie in memory: what a kernel of your own needs to walk it. Made by `Trie.arrays`.

    They are read-only numpy arrays over the trie's own memory, or over its file: nothing is copied, and each keeps the
    trie alive. Node 0 is the root. The edges of node n are `first_child[n]` up to `first_child[n + 1]`; a node after
    the last that this array knows has none. Edge e writes `tokens[e]` and leads to node `targets[e]`, in a tree, where
    `targets` is None, to node e. The tokens of a node's edges ascend. Entry 0 of `tokens` and `targets` means nothing.
    A node ends a leaf if it has no edges or is one of `inner_terminals`.

    Example:
        >>> arrays = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [9]]).arrays()
        >>> (arrays.tokens[1:].tolist(), arrays.first_child.tolist(), arrays.inner_terminals.tolist())
        ([1, 9, 2, 3], [1, 3, 4, 4, 5], [3])
    """
    @property
    def tokens(self) -> NDArray[np.int32]:
        """np.ndarray: int32 [edges + 1], the token of each edge."""
    @property
    def first_child(self) -> NDArray[np.uint32]:
        """np.ndarray: uint32 [parents + 1], where the edges of each node begin, and at last where the last ones end."""
    @property
    def targets(self) -> NDArray[np.uint32] | None:
        """np.ndarray | None: uint32 [edges + 1], the node each edge leads to; None in a tree: that of its number."""
    @property
    def inner_terminals(self) -> NDArray[np.uint32]:
        """np.ndarray: uint32 [n], ascending: the nodes that end a leaf although they have children."""
    @property
    def weights(self) -> NDArray[np.float32] | None:
        """np.ndarray | None: float32 [edges + 1], what is added to each edge's logit; None in a set without weights."""
    @property
    def end_weights(self) -> NDArray[np.float32] | None:
        """np.ndarray | None: float32 [leaves], what is added to an end token after each; None where ends have none."""
    @property
    def nodes(self) -> int:
        """int: number of nodes, the root among them."""
    @property
    def leaves(self) -> int:
        """int: number of leaves."""
    @property
    def max_token(self) -> int:
        """int: the largest token id of any edge."""
    @property
    def end_tokens(self) -> list[int]:
        """list[int]: the end tokens that the set brings, ascending."""
    @property
    def trie(self) -> Trie:
        """Trie: the trie they belong to."""
    def end_nodes(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Which node ends which leaf. Cost: O(leaves), copied.

        Returns:
            Two arrays, uint32 [n]: the nodes that end a leaf, ascending, and the leaf of each. Where several sequences
            stand for one leaf, several nodes may end it.

        Example:
            >>> nodes, leaves = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [9]]).arrays().end_nodes()
            >>> (nodes.tolist(), leaves.tolist())
            ([2, 3, 4], [2, 0, 1])
        """
    def leaf_at(self, node: int) -> int | None:
        """The leaf that ends at a node. Cost: O(log leaves); nothing is copied.

        Args:
            node: the number of a node.

        Returns:
            int | None: the number of the leaf, None where none ends or there is no such node.

        Example:
            >>> arrays = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [9]]).arrays()
            >>> [arrays.leaf_at(node) for node in (1, 2, 4)]
            [None, 2, 1]
        """

@final
class CacheInfo:
    """What a `TrieCache` did so far. Compares by content.

    Example:
        >>> tokentrie.TrieCache().cache_info()
        CacheInfo(hits=0, content_hits=0, misses=0, evictions=0, size=0, capacity=128)
    """
    @property
    def hits(self) -> int:
        """int: payloads found by their text."""
    @property
    def content_hits(self) -> int:
        """int: payloads with other text and the same content; the tries are shared."""
    @property
    def misses(self) -> int:
        """int: payloads built anew."""
    @property
    def evictions(self) -> int:
        """int: payloads that had to leave."""
    @property
    def size(self) -> int:
        """int: payloads held."""
    @property
    def capacity(self) -> int:
        """int: payloads that can be held."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class TrieCache:
    """A cache of tries: the same payload text, or the same content in other words, is built once.

    The least recently used payload leaves first; samplers in use keep their tries. A Sampler that is made without one
    uses the cache of its thread. One cache may be used from several threads: calls take turns.

    Args:
        capacity: payloads to hold, 1 to 2**20.

    Raises:
        OptionError: the capacity is out of range.

    Example:
        >>> cache = tokentrie.TrieCache(capacity=32)
        >>> payload = '{"descriptors": [{"path": "action", "leaves": [{"name": "STOP", "tokens": [2]}]}]}'
        >>> samplers = [cache.sampler(10, payload) for _ in range(3)]
        >>> (cache.cache_info().misses, cache.cache_info().hits)
        (1, 2)
    """
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
    ) -> Sampler:
        """Makes a Sampler whose payload comes from this cache.

        Cost: from the cache one SHA-256 of the text and a few small allocations.

        Args:
            vocab, constraint, mode, end_tokens, after: as for `Sampler`.
            temperature, top_k, top_p, min_p, seed, sampling, settings: as for `Sampler`.

        Returns:
            Sampler.

        Raises:
            TokenTrieError: as for `Sampler`.

        Example:
            >>> cache = tokentrie.TrieCache()
            >>> payload = {"descriptors": [{"path": "action", "leaves": [{"name": "STOP", "tokens": [2]}]}]}
            >>> cache.sampler(10, payload).forced()
            array([2], dtype=int32)
        """
    def cache_info(self) -> CacheInfo:
        """Counts so far.

        Returns:
            CacheInfo.

        Example:
            >>> tokentrie.TrieCache(capacity=8).cache_info().capacity
            8
        """
    def clear(self) -> None:
        """Forgets all payloads; the counts stay.

        Example:
            >>> cache = tokentrie.TrieCache()
            >>> cache.clear()
            >>> cache.cache_info().size
            0
        """

@type_check_only
class _GenerateOptions(_AllSettings, total=False):
    mode: _FillMode
    max_tokens: int
    skip_ahead: bool
    end_tokens: _Ids | None
    after: _After
    probabilities: bool
    on_step: Callable[[Step], object] | None
    sampling: Sampling | None
    cancel: CancelToken | None
    timeout: float | None

@type_check_only
class _ChooseOptions(TypedDict, total=False):
    prefix: str
    suffix: str
    tokenization: Literal["canonical", "all"]
    open_end: bool
    end_tokens: _Ids | None
    top: int | None
    max_rows: int | None
    cancel: CancelToken | None
    timeout: float | None

@final
class CancelToken:
    """A handle that ends the calls it is given to, from any thread: those that run and those that wait for their turn.

    It stays cancelled, so every call wants a new one.

    Example:
        >>> cancel = tokentrie.CancelToken()
        >>> cancel.cancel()  # from another thread, mostly
        >>> tokentrie.Model().generate("Once", cancel=cancel)
        Traceback (most recent call last):
            ...
        tokentrie.CancelledError: stopped on request ...
    """

    def __new__(cls) -> Self: ...
    def cancel(self) -> None:
        """Ends the calls between two forward passes: they raise CancelledError. May be repeated.

        Example:
            >>> cancel = tokentrie.CancelToken()
            >>> cancel.cancel()
            >>> cancel.cancelled
            True
        """

    @property
    def cancelled(self) -> bool:
        """bool: whether `cancel` was called."""

@final
class Detokenizer:
    r"""Gives the text of tokens as they come, in whole characters: what it gave is never taken back.

    All texts together are the text of all tokens, as `Generated.text`: bytes that are no UTF-8 become U+FFFD.

    Args:
        vocab: the vocabulary.

    Example:
        >>> vocab = tokentrie.Vocab.from_tokens([b"a", b"\xc3", b"\xa4b"])
        >>> text = tokentrie.Detokenizer(vocab)
        >>> [text.push(0), text.push(1), text.push(2), text.finish()]
        ['a', '', 'äb', '']
    """

    def __new__(cls, vocab: Vocab) -> Self: ...
    def push(self, tokens: SupportsIndex | _Ids, /) -> str:
        """The text that the next tokens complete; "" where a character is only begun. Cost: O(bytes of the tokens).

        Args:
            tokens: a token id, a list of them, or an integer array of one dimension.

        Returns:
            str.

        Raises:
            VocabularyError: the vocabulary does not have a token; those before it are taken.
            TypeError: something is no integer.

        Example:
            >>> text = tokentrie.Detokenizer(tokentrie.Vocab.from_tokens([b"a", b"b"]))
            >>> text.push([0, 1])
            'ab'
        """

    def finish(self) -> str:
        r"""What is left at the end: U+FFFD for a character that was not completed. The next token begins a new text.

        Returns:
            str.

        Example:
            >>> text = tokentrie.Detokenizer(tokentrie.Vocab.from_tokens([b"\xc3"]))
            >>> [text.push(0), text.finish()]
            ['', '\ufffd']
        """

@final
class Model:
    """A GGUF model with one context.

    One object may be used from several threads: calls take turns, and other Python threads run while it computes.
    Ctrl-C stops a call between two forward passes. `with Model(...) as model:` closes it at the end.

    Args:
        path: the file; the tiny model inside the package if None.
        n_ctx: tokens of context; None takes 4096, or what the model was trained on if that is less.
        n_gpu_layers: layers to put on a graphics card; a build without support for one warns that it does nothing.
        n_threads: kept where it is given. None takes one or all of the physical cores that the process may use:
            forward passes are timed as they happen, so that a busy machine never makes them slower than one thread.
        precise: keep keys and values in float32 and switch flash attention off. With float32 weights
            log-probabilities of values are then good to some 1e-4, however they are batched; without it, mostly to
            1e-2.

    Raises:
        ModelError: the file is missing, truncated, no GGUF or a vocabulary only.
        OptionError: a number is out of range.

    Example:
        >>> model = tokentrie.Model()
        >>> tools = ["open_file", "list_files", "search"]
        >>> model.generate("Find it: ", tools).leaf.name in tools
        True
    """
    def __new__(
        cls,
        path: str | PathLike[str] | None = None,
        n_ctx: int | None = None,
        n_gpu_layers: int = 0,
        n_threads: int | None = None,
        precise: bool = False,
    ) -> Model: ...
    @property
    def vocab(self) -> Vocab:
        """Vocab: the model's vocabulary."""
    @property
    def path(self) -> Path:
        """pathlib.Path: the file it came from."""
    @property
    def n_ctx(self) -> int:
        """int: tokens of context."""
    @property
    def n_threads(self) -> int:
        """int: the most threads that a forward pass may get; `stats.n_threads` tells how many the last one got."""
    def generate(
        self,
        prompt: str | _Ids,
        constraint: _Constraint | None = None,
        mode: _FillMode = "greedy",
        max_tokens: int = 64,
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
        on_step: Callable[[Step], object] | None = None,
        sampling: Sampling | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        **settings: Unpack[_Settings],
    ) -> Generated:
        """Generates after a prompt, inside a constraint.

        Forced tokens are decoded together with what follows them, so forward passes are branch points. Token
        healing: the texts of a list are tokenised as the tokenizer would go on from a prompt that is text. Where a
        token crosses the boundary, the last tokens of the prompt are taken back and the set begins with their bytes
        (`stats.healed_bytes`); `text` still goes on where the prompt ends. So it is with a healed Trie, whatever
        the prompt is.

        Args:
            prompt: text, tokenised with the special tokens the model asks for and those named in it; or token ids.
            constraint: payload JSON (str or bytes), a payload as a dict, a Trie, a list or other iterable of distinct
                str, a FilteredTrie, a Sequence, a ThinkGate, a Rule such as a Regex, a ChatConstraint, a Form, or None,
                which is Any.
            mode: "greedy" or "sampled"; for a Form also "exact", which takes the most probable value of each slot
                as a whole.
            max_tokens: the most tokens to generate, at least 1; a Form is always filled to its end.
            skip_ahead: decode forced tokens together with what follows them. The tokens are the same either way;
                but in a set with tokenization="all" only this takes text that must come in the tokenizer's own
                tokens. Forms always do.
            seed, temperature, top_k, top_p, min_p: settings of the draw, as for `Sampling`.
            end_tokens: ids that close the span at the end of a leaf, as for `Sampler`; not for forms.
            after: "stop" ends with the span, "free" goes on until the model ends its output; not for forms.
            probabilities: of a Form, also score every value of every slot.
            on_step: called with a Step for each token of the output, in order and once it is certain; what it raises
                ends the generation. It must not use this model, except for `cancel`.
            sampling: a Sampling in place of mode and all settings.
            cancel: a CancelToken that ends this call.
            timeout: the seconds that it may take, waiting for its turn included.
            settings: all other settings of the draw, as for `Sampling`.

        Returns:
            Generated. Its text goes on where the prompt ends; a Form's has values by name.

        Raises:
            ContextError: the prompt does not fit.
            OptionError: a setting is out of range, a keyword stands beside `sampling`, or the prompt does not end
                as a healed Trie begins.
            PayloadError: the payload cannot be used; it says line, column and field.
            VocabularyError: ids are outside the vocabulary.
            CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did. `error.partial` has what
                was generated before.
            ModelError: a forward pass fails, or the model is closed.

        Example:
            >>> model = tokentrie.Model()
            >>> out = model.generate("The sky is ", ["blue", "red"], mode="sampled", seed=1)
            >>> (out.leaf.name in ("blue", "red"), out.text == out.leaf.name)
            (True, True)
        """
    def _generate_with_grammar(
        self, prompt: str | _Ids, engine: Literal["gbnf", "llguidance"], grammar: str, max_tokens: int
    ) -> Generated: ...
    def cancel(self) -> None:
        """Ends the call that another thread has running, whichever that is, between two forward passes.

        It raises CancelledError there. Does nothing if no call is running. A CancelToken ends one call and no other.

        Example:
            >>> model = tokentrie.Model()
            >>> model.generate("Once", on_step=lambda step: model.cancel())  # or from another thread
            Traceback (most recent call last):
                ...
            tokentrie.CancelledError: stopped on request ...
        """
    def close(self) -> None:
        """Cancels what is running, waits for it and gives the memory back.

        Weights go when their Vocab objects are gone, too. Later calls raise ModelError. May be repeated.

        Raises:
            ModelError: called from `on_step` of the same model.

        Example:
            >>> with tokentrie.Model() as model:
            ...     row = model.logits("The sky")
            >>> model.logits("The sky")
            Traceback (most recent call last):
                ...
            tokentrie.ModelError: the model is closed
        """
    def clear(self) -> None:
        """Forgets the tokens in the context: for measurements.

        The next call decodes its prompt from the beginning.

        Example:
            >>> model = tokentrie.Model()
            >>> row = model.logits("The sky is")
            >>> model.clear()
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, _kind: object, _error: object, _traceback: object) -> None: ...
    def stream(
        self,
        prompt: str | _Ids,
        constraint: _Constraint | None = None,
        **options: Unpack[_GenerateOptions],
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

    @property
    def chat_format(self) -> ChatFormat:
        """ChatFormat: the format of its chats, from the template in the file; of a file without one ChatML, with a
        warning.
        """
    def chat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        *,
        parallel_tool_calls: bool = True,
        enable_thinking: bool = True,
        thinking_budget: int | None = None,
        stream: Callable[[ChatEvent], object] | None = None,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        probabilities: bool = False,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        continue_final_message: _Continued | None = None,
        **variables: _Any,
    ) -> Message:
        """Answers a conversation: renders it, generates a reply that calls tools rightly, and reads it.

        The name of a call is one of the tools' and its arguments follow their schema, whatever the model; text that
        must come costs no forward pass. What messages and tools contain is plain text: a control token's name in it
        stays text. Of a conversation that goes on only new tokens are decoded.

        Args:
            messages: a list of dict with "role" and "content", and of Message, such as earlier replies.
            tools: a list of definitions and Python functions, or Tools.
            tool_choice: "auto"; "none"; "required"; or the name of the tool to call.
            parallel_tool_calls: whether there may be several calls.
            enable_thinking: whether the model may think, where its template knows this.
            thinking_budget: the most tokens of reasoning; then its end marker is forced.
            stream: called with each ChatEvent as soon as it is certain; what it raises ends the chat. It must not use
                this model, except for `cancel`.
            sampling: a Sampling; None is greedy.
            max_tokens: the most tokens of the reply. None takes what the context has room for.
            probabilities: tell of each call how probable its name was, and its enum and boolean arguments.
            cancel: a CancelToken that ends this call.
            timeout: the seconds that it may take, waiting for its turn included.
            continue_final_message: go on with the last message, which is the assistant's: as in `ChatFormat.prompt`.
            variables: what the template finds under other names.

        Returns:
            Message: with `finish` and `stats`. Append it to the messages to go on.

        Raises:
            TemplateError: the template refuses the messages.
            OptionError: a message has an unknown role or shape, a tool cannot be called, there is no such tool, or a
                setting is out of range.
            RuleError: nothing satisfies a tool's schema.
            ContextError: the prompt does not fit.
            CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did. `error.partial` is the
                Message so far.
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
        """
    def achat(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        tool_choice: _ToolChoice = "auto",
        **options: _Any,
    ) -> Coroutine[_Any, _Any, Message]:
        """`chat` for asyncio: the event loop goes on meanwhile, and cancelling the task ends the chat.

        Args:
            messages, tools, tool_choice: as for `chat`.
            options: the keywords of `chat`. `stream` is called on another thread.

        Returns:
            An awaitable of Message.

        Raises:
            TokenTrieError: as for `chat`, when it is awaited.

        Example:
            >>> import asyncio
            >>> model = tokentrie.Model()
            >>> asyncio.run(model.achat([{"role": "user", "content": "Hello"}], max_tokens=4)).stats.tokens <= 4
            True
        """
    def agenerate(
        self,
        prompt: str | _Ids,
        constraint: _Constraint | None = None,
        **options: Unpack[_GenerateOptions],
    ) -> Coroutine[_Any, _Any, Generated]:
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

    def achoose(
        self, prompt: str | _Ids, choices: _Constraint, **options: Unpack[_ChooseOptions]
    ) -> Coroutine[_Any, _Any, Choice]:
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

    def choose(
        self,
        prompt: str | _Ids,
        choices: _Constraint,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
    ) -> Choice:
        """The exact probability of every value after a prompt, and the most probable value.

        A greedy walk may end in another one. Small sets take one forward pass after the prompt. Token healing is as
        in `generate`: texts of a list are tokenised as the tokenizer would go on from a prompt that is text.

        Args:
            prompt: text or token ids, as for `generate`.
            choices: a list or other iterable of distinct str, a Trie, a payload (its first descriptor), or a Sequence
                without Any, whose values are listed.
            prefix, suffix: text around the values of a list, as for `Trie.from_strings` with `heal=True`: what a
                prompt of ids ends with, or another boundary than that of a text.
            tokenization, open_end: which token sequences stand for a value of a list, as for `Trie.from_strings`.
                With "all" the probability is that of the text, in whatever tokens.
            end_tokens: ids of which one must follow a value; its probability then counts that as well. None: those of
                the set (`Trie.end_tokens`), which has mostly none.
            top: score only what the best so many values need, at least 1. None scores all of a set that needs at
                most 4096 rows of logits, and of a larger one what the best value needs.
            max_rows: read at most so many rows of logits, at least 1, and give bounds where that was too few:
                `logprobs` are then lower and `logprobs_high` upper ones. None is 4096 where several sequences stand
                for one value, otherwise no limit.
            cancel: a CancelToken that ends this call.
            timeout: the seconds that it may take, waiting for its turn included.

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
        """
    @overload
    def choose_many(
        self,
        prompts: Iterable[str | _Ids],
        choices: _Constraint,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        cancel: CancelToken | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Choices:
        """`choose` for many prompts. What they begin with alike is decoded once, the rest in common forward passes.

        Args:
            prompts: an iterable of prompts; 32 are read at a time.
            choices, prefix, suffix, tokenization, open_end, end_tokens, top, max_rows, cancel: as for `choose`.
            on_error: what becomes of a prompt that cannot be used, such as one that does not fit. "raise" ends the
                iteration with its error, which names it by its number from 0; "return" gives the error, a
                TokenTrieError, TypeError or ValueError, in place of its Choice; "skip" leaves it out, and
                `Choices.skipped` tells which.
            progress: called after each group with the prompts done so far and how many there are, None where
                `prompts` has no length.

        Returns:
            Choices: an iterator of Choice, in the order of the prompts.

        Raises:
            TypeError: `prompts` is one str.
            OptionError: `on_error` is another word.
            TokenTrieError: as for `choose`. What is wrong with a prompt is raised when its turn comes.

        Example:
            >>> model = tokentrie.Model()
            >>> prompts = ["Is it on? ", "Is it off? "]
            >>> [choice.name in ("yes", "no") for choice in model.choose_many(prompts, ["yes", "no"])]
            [True, True]
        """
    @overload
    def choose_many(
        self,
        prompts: Iterable[str | _Ids],
        choices: _Constraint,
        *,
        prefix: str = "",
        suffix: str = "",
        tokenization: Literal["canonical", "all"] = "canonical",
        open_end: bool = False,
        end_tokens: _Ids | None = None,
        top: int | None = None,
        max_rows: int | None = None,
        cancel: CancelToken | None = None,
        on_error: Literal["return"],
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Iterator[Choice | Exception]:
        """`choose` for many prompts. What they begin with alike is decoded once, the rest in common forward passes.

        Args:
            prompts: an iterable of prompts; 32 are read at a time.
            choices, prefix, suffix, tokenization, open_end, end_tokens, top, max_rows, cancel: as for `choose`.
            on_error: what becomes of a prompt that cannot be used, such as one that does not fit. "raise" ends the
                iteration with its error, which names it by its number from 0; "return" gives the error, a
                TokenTrieError, TypeError or ValueError, in place of its Choice; "skip" leaves it out, and
                `Choices.skipped` tells which.
            progress: called after each group with the prompts done so far and how many there are, None where
                `prompts` has no length.

        Returns:
            Choices: an iterator of Choice, in the order of the prompts.

        Raises:
            TypeError: `prompts` is one str.
            OptionError: `on_error` is another word.
            TokenTrieError: as for `choose`. What is wrong with a prompt is raised when its turn comes.

        Example:
            >>> model = tokentrie.Model()
            >>> prompts = ["Is it on? ", "Is it off? "]
            >>> [choice.name in ("yes", "no") for choice in model.choose_many(prompts, ["yes", "no"])]
            [True, True]
        """
    @property
    def chat_template(self) -> ChatTemplate:
        """ChatTemplate: the template of the file, with the model's tokens for the beginning and the end of a text.
        ModelError if it has none.
        """
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
    ) -> list[int]:
        """The token ids of a prompt in the model's own chat format.

        What messages, tools and variables contain is plain text, and so is `answer_prefix`: the name of a control token
        in it stays text. Messages that the template refuses are given to it in other shapes, see `ChatTemplate.render`.

        Args:
            messages: a list of dict with "role" and "content".
            tools: a list of tool definitions (dict), as the model's template expects them.
            add_generation_prompt: end where the assistant's answer begins.
            answer_prefix: text that opens the answer, as if the model had written it. What follows is chosen with the
                same text as `prefix` of `choose`, or generated from a `Trie.from_strings(prefix=, heal=True)`: then a
                token may cross the boundary.
            now: the datetime that the template's `strftime_now` tells; with None that of the clock.
            adapt: try other shapes; with False the template gets exactly these messages.
            variables: what the template finds under other names, such as `enable_thinking=False`.

        Returns:
            list[int], for `generate` and `choose`.

        Raises:
            TemplateError: the template is faulty, or refuses the messages.
            ModelError: the file has no template.
            TypeError: something is no list of dict, or no JSON.
            OptionError: something is no JSON, or an answer is opened that does not begin.

        Example:
            >>> model = tokentrie.Model()
            >>> prompt = model.chat_prompt([{"role": "user", "content": "Hello"}], answer_prefix="It is")
            >>> print(model.vocab.detokenize(prompt))
            <|im_start|>user
            Hello<|im_end|>
            <|im_start|>assistant
            It is
            >>> model.choose(prompt, [" red", " blue"], prefix="It is").name in (" red", " blue")
            True
        """
    def logits(self, tokens: str | _Ids) -> NDArray[np.float32]:
        """The logits after some tokens. What the context holds of their beginning is not computed again.

        Args:
            tokens: text or token ids, as the prompt of `generate`.

        Returns:
            float32 [V], a copy.

        Raises:
            ContextError: the tokens do not fit.
            OptionError: there are none.
            VocabularyError: ids are outside the vocabulary.
            ModelError: the forward pass fails, or the model is closed.

        Example:
            >>> model = tokentrie.Model()
            >>> model.logits("The sky is").shape == (len(model.vocab),)
            True
        """

@final
class ToolCall:
    """A call of a tool, as a model asked for it.

    Args:
        id: its id; "" where the format of the model has none.
        name: the tool.
        arguments: its arguments as JSON text.
        probability: how probable the name was, where that was asked for.
        probabilities: the same for arguments with an enum or a boolean, by their names.

    Example:
        >>> call = tokentrie.ToolCall("", "ring", '{"times": 2}')
        >>> (call.name, call.parsed["times"])
        ('ring', 2)
    """

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
    def id(self) -> str:
        """str: its id; "" where the format of the model has none."""
    @property
    def name(self) -> str:
        """str: the tool."""
    @property
    def arguments(self) -> str:
        """str: its arguments as JSON text; cut off where the reply was cut off inside them."""
    @property
    def parsed(self) -> _Any:
        """Any: the arguments as `json.loads` reads them, mostly a dict; ValueError where they were cut off."""
    @property
    def probability(self) -> float | None:
        """float | None: the probability of the name's tokens among what was legal; None where it was not asked for, or
        where the name began inside a token of free text.
        """
    @property
    def probabilities(self) -> dict[str, float]:
        """dict[str, float]: the probabilities of arguments with an enum or a boolean, by their names, where they were
        asked for.
        """
    def to_dict(self) -> dict[str, _Any]:
        """The call as chat APIs write it.

        Returns:
            dict[str, Any].

        Example:
            >>> tokentrie.ToolCall("c1", "ring", "{}").to_dict()
            {'id': 'c1', 'type': 'function', 'function': {'name': 'ring', 'arguments': '{}'}}
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class Message:
    """What a model replied. Goes on into the next request: `messages.append(message)`.

    Args:
        content: what it says.
        reasoning: what it thought.
        tool_calls: what it calls.
        warnings: what in the text was not as the format has it.
        finish: why it ended.
        stats: what it took.

    Example:
        >>> message = tokentrie.Message("It rings.", tool_calls=[tokentrie.ToolCall("", "ring", "{}")])
        >>> [call.name for call in message.tool_calls]
        ['ring']
        >>> message.to_dict()["role"]
        'assistant'
    """
    def __new__(
        cls,
        content: str = "",
        reasoning: str = "",
        tool_calls: _Sequence[ToolCall] = (),
        warnings: _Sequence[str] = (),
        finish: str | None = None,
        stats: ChatStats | None = None,
    ) -> Self: ...
    @property
    def content(self) -> str:
        """str: what it says."""
    @property
    def reasoning(self) -> str:
        """str: what it thought."""
    @property
    def tool_calls(self) -> list[ToolCall]:
        """list[ToolCall]: what it calls, in its order."""
    @property
    def warnings(self) -> list[str]:
        """list[str]: what in the text was not as the format has it."""
    @property
    def finish(self) -> Literal["stop", "tool_calls", "length", "cancelled"] | None:
        """str | None: why it ended: "stop", "tool_calls" where it calls something, "length" where no more tokens
        fitted, "cancelled" in the `partial` of a CancelledError; None of a text that was parsed.
        """
    @property
    def stats(self) -> ChatStats | None:
        """ChatStats | None: what it took; None of a text that was parsed."""
    def to_dict(self) -> dict[str, _Any]:
        """The message as chat APIs write it, for a list of messages.

        Returns:
            dict[str, Any] with "role" and "content", and "reasoning_content" and "tool_calls" where there are any.

        Example:
            >>> tokentrie.Message("Ding.").to_dict()
            {'role': 'assistant', 'content': 'Ding.'}
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class ChatStats:
    """What a reply of `Model.chat` took.

    Example:
        >>> stats = tokentrie.Model().chat([{"role": "user", "content": "Hello"}], max_tokens=4).stats
        >>> stats.tokens <= 4
        True
    """
    @property
    def prompt_tokens(self) -> int:
        """int: tokens of the prompt."""
    @property
    def prompt_tokens_reused(self) -> int:
        """int: those of them that the model's context held already, from earlier turns: not decoded again."""
    @property
    def tokens(self) -> int:
        """int: tokens of the reply."""
    @property
    def reasoning_tokens(self) -> int:
        """int: those of them in the reasoning."""
    @property
    def forced_tokens(self) -> int:
        """int: those of them that the constraint left no choice about."""
    @property
    def forward_passes(self) -> int:
        """int: calls of llama.cpp's decode."""
    @property
    def forward_passes_saved(self) -> int:
        """int: tokens that needed no forward pass of their own, because they were forced."""
    @property
    def seconds(self) -> float:
        """float: seconds in all."""
    @property
    def prompt_seconds(self) -> float:
        """float: seconds for the prompt."""
    @property
    def tokens_per_second(self) -> float:
        """float: tokens of the reply a second, without the time for the prompt."""
    def to_dict(self) -> dict[str, int | float]:
        """The same as a dict, for JSON.

        Returns:
            dict[str, int | float].

        Example:
            >>> message = tokentrie.Model().chat([{"role": "user", "content": "Hello"}], max_tokens=4)
            >>> "tokens_per_second" in message.stats.to_dict()
            True
        """
    def as_dict(self) -> dict[str, int | float]:
        """Deprecated: the former name of `to_dict`.

        Returns:
            dict[str, int | float].
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class ChatEvent:
    """A part of a reply, as soon as it is certain. All events together are the message; none is ever taken back.

    Example:
        >>> def told(event):
        ...     match event:
        ...         case tokentrie.ChatEvent("content", text):
        ...             return f"says {text}"
        ...         case tokentrie.ChatEvent("call_begins", name=name):
        ...             return f"calls {name}"
        >>> format = tokentrie.Model().chat_format
        >>> [told(event) for event in format.parser().push("Hi there ")]
        ['says Hi there']
    """

    __match_args__: Final = ("kind", "text")
    @property
    def kind(self) -> _EventKind:
        """str: "reasoning", "content", "call_begins", "arguments", "call_ends", "warning" or "message_ends"."""
    @property
    def text(self) -> str:
        """str: more of the reasoning, of the content, or of a call's arguments as JSON text; the warning."""
    @property
    def index(self) -> int | None:
        """int | None: which call of the message it is about, from 0."""
    @property
    def id(self) -> str:
        """str: the id of a call that begins or ends, where the format has one and it is known."""
    @property
    def name(self) -> str:
        """str: the tool of a call that begins."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class ChatPrompt:
    r"""The prompt of a conversation.

    Example:
        >>> format = tokentrie.Model().chat_format
        >>> format.prompt([{"role": "user", "content": "Hello"}]).generation_prompt
        '<|im_start|>assistant\n'
    """
    @property
    def text(self) -> str:
        """str: all of it."""
    @property
    def generation_prompt(self) -> str:
        """str: the end of it with which the reply's turn begins, for `ChatFormat.parse` and `constraint`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    __hash__: None  # type: ignore[assignment]

@final
class Tools:
    """The tools that a model may call, prepared once.

    Wherever tools are taken, a list will do too. What was worked out for one of these objects is found again at once,
    however many tools there are.

    Args:
        tools: a list of definitions as chat APIs have them (dict with "type" and "function", or what stands in
            "function" alone), of Python functions with type hints, or of both. A function's name, docstring and
            hints say what it does and takes; `Args:` in the docstring describes the arguments, and so does
            `Annotated[str, "..."]`. pydantic converts the hints where it is installed.

    Raises:
        OptionError: a tool has no name, two have the same, or its parameters are no JSON Schema.
        TypeError: it is no list of tools, or a function takes what cannot be named or converted.

    Example:
        >>> def ring(times: int = 1) -> str:
        ...     '''Rings the bell.'''
        ...     return "ding " * times
        >>> tools = tokentrie.Tools([ring, {"name": "stop", "description": "Stops it."}])
        >>> tools.names
        ['ring', 'stop']
        >>> tools.definitions[0]["function"]["parameters"]["properties"]["times"]["type"]
        'integer'
    """
    def __new__(cls, tools: _Tools) -> Self: ...
    @property
    def names(self) -> list[str]:
        """list[str]: their names, in order."""
    @property
    def definitions(self) -> list[dict[str, _Any]]:
        """list[dict[str, Any]]: their definitions, as templates get them."""
    @property
    def functions(self) -> dict[str, Callable[..., _Any]]:
        """dict[str, Callable]: those that were given as functions, by name."""
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...

@final
class ChatFormat:
    """The format of a model's chats, worked out from its chat template by comparing what it renders.

    It renders conversations, reads replies while they come, and constrains them: a call that begins becomes a right
    one. No template is known by its name; what is odd about one stands in `analysis.warnings`. Cannot change; may be
    used from several threads. What is worked out for a list of tools is kept. Compares by template; can be pickled
    where its vocabulary can.

    Args:
        template: the Jinja text, or a ChatTemplate.
        vocab: the Vocab for constraints that are given none.
        bos, eos: what the template finds as `bos_token` and `eos_token`; not beside a ChatTemplate.

    Raises:
        TemplateError: it is no Jinja, or cannot even render a message of a user.
        OptionError: bos or eos stand beside a ChatTemplate.

    Example:
        >>> format = tokentrie.ChatFormat(
        ...     "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}"
        ...     "<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}"
        ...     "{% if add_generation_prompt %}<|assistant|>{% endif %}"
        ... )
        >>> message = format.parse('Ding.<call>{"name": "ring", "arguments": {"times": 2}}</call>')
        >>> (message.content, message.tool_calls[0].name, message.tool_calls[0].arguments)
        ('Ding.', 'ring', '{"times": 2}')
    """
    def __new__(
        cls, template: str | ChatTemplate, vocab: Vocab | None = None, bos: str = "", eos: str = ""
    ) -> Self: ...
    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> ChatFormat:
        """The format of a GGUF file's chats, with its vocabulary; no weights are loaded, and the file needs none.

        Of a file without a template ChatML, with a warning. Cost: a tenth of a second for big vocabularies.

        Args:
            path: the file.

        Returns:
            ChatFormat.

        Raises:
            ModelError: the file is missing, truncated or no GGUF.
            TemplateError: its template is faulty.

        Example:
            >>> path = tokentrie.Model().path  # the tiny model inside the package
            >>> tokentrie.ChatFormat.from_gguf(path).analysis.calls.function
            'json-object'
        """

    @property
    def template(self) -> ChatTemplate:
        """ChatTemplate: the template."""
    @property
    def vocab(self) -> Vocab | None:
        """Vocab | None: the vocabulary of constraints that are given none."""
    @property
    def analysis(self) -> ChatAnalysis:
        """ChatAnalysis: what was found out: markers of reasoning and content, how calls are written, what the template
        can do, warnings.
        """
    def render(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        *,
        add_generation_prompt: bool = True,
        enable_thinking: bool = True,
        **variables: _Any,
    ) -> str:
        r"""The text of a conversation, its messages brought into the shape that the template takes.

        Args:
            messages: a list of dict with "role" and "content", and of Message, such as replies of the model.
            tools: a list of tools, or Tools.
            add_generation_prompt: end where the assistant's answer begins.
            enable_thinking: what the template finds under this name.
            variables: what it finds under other names.

        Returns:
            str.

        Raises:
            TemplateError: the template refuses the messages.
            OptionError: a message has an unknown role or shape; it says which.
            TypeError: something is no list of messages or tools.

        Example:
            >>> format = tokentrie.ChatFormat("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
            >>> format.render([{"role": "user", "content": "Ring!"}, tokentrie.Message("Ding.")]).splitlines()
            ['[user] Ring!', '[assistant] Ding.']
        """
    def prompt(
        self,
        messages: _Messages,
        tools: _Tools | None = None,
        *,
        enable_thinking: bool = True,
        continue_final_message: _Continued | None = None,
        **variables: _Any,
    ) -> ChatPrompt:
        r"""The prompt of a conversation, with the part of it that begins the reply's turn.

        Args:
            messages, tools: as for `render`.
            enable_thinking: whether the model may think.
            continue_final_message: None answers the last message. "auto" goes on with it, which is the assistant's:
                with its content if it has some, else with its reasoning; "content" and "reasoning" say with which.
            variables: what the template finds under other names.

        Returns:
            ChatPrompt.

        Raises:
            TokenTrieError: as for `render`.

        Example:
            >>> format = tokentrie.Model().chat_format
            >>> begun = [{"role": "user", "content": "Ring!"}, {"role": "assistant", "content": "Ding"}]
            >>> format.prompt(begun, continue_final_message="auto").generation_prompt
            '<|im_start|>assistant\nDing'
        """
    def parse(
        self,
        text: str | bytes,
        tools: _Tools | None = None,
        *,
        generation_prompt: str | None = None,
        tool_choice: _ToolChoice = "auto",
        parallel_tool_calls: bool = False,
        reasoning_format: Literal["auto", "deepseek", "none"] = "auto",
        partial: bool = False,
        json_content: bool = False,
    ) -> Message:
        r"""The message that a whole reply is. What fits nothing is content: never an error.

        Args:
            text: str or bytes.
            tools: the tools that may be called, which type arguments without types of their own. None takes calls of
                any name, an empty list none.
            generation_prompt: what of the prompt begins the reply's turn; None is what the template writes there.
            tool_choice: "auto", "none", "required" or the name of a tool.
            parallel_tool_calls: for symmetry with `constraint`; all calls that there are, are read.
            reasoning_format: "auto" or "deepseek" puts reasoning into `message.reasoning`; "none" leaves it in the
                content with its markers.
            partial: the reply was cut off: what may have become a marker is left out.
            json_content: the content is JSON: a code fence around it is left out.

        Returns:
            Message.

        Raises:
            OptionError: an argument has no such value, or a tool is none.
            TypeError: the text is neither str nor bytes.

        Example:
            >>> format = tokentrie.Model().chat_format
            >>> message = format.parse('<tool_call>\n{"name": "ring", "arguments": {"times": 2}}\n</tool_call>')
            >>> message.tool_calls
            [ToolCall('', 'ring', '{"times": 2}')]
        """
    def parser(
        self,
        tools: _Tools | None = None,
        *,
        generation_prompt: str | None = None,
        tool_choice: _ToolChoice = "auto",
        parallel_tool_calls: bool = False,
        reasoning_format: Literal["auto", "deepseek", "none"] = "auto",
        json_content: bool = False,
    ) -> ChatParser:
        """A parser of a reply that comes in parts.

        Args:
            tools, generation_prompt, tool_choice, parallel_tool_calls: as for `parse`.
            reasoning_format, json_content: as for `parse`.

        Returns:
            ChatParser.

        Raises:
            OptionError: an argument has no such value, or a tool is none.

        Example:
            >>> parser = tokentrie.Model().chat_format.parser()
            >>> [event.text for part in ("Ding", " dong") for event in parser.push(part)]
            ['Ding', ' dong']
            >>> parser.finish().content
            'Ding dong'
        """
    def constraint(
        self,
        tools: _Tools | None,
        vocab: Vocab | None = None,
        tool_choice: _ToolChoice = "auto",
        parallel_tool_calls: bool = False,
        generation_prompt: str | None = None,
        *,
        thinking_budget: int | None = None,
    ) -> ChatConstraint:
        r"""A constraint on a reply: free text, in which a call that begins becomes a right one.

        Its name is one of the tools', its arguments follow the tool's schema. It stands wherever a constraint does:
        `Model.generate`, `Sampler`, `Batch`, `ThinkGate`, processors of logits; not in a slot of a Form. What is made
        for a Tools object is kept: asking again costs microseconds.

        Args:
            tools: a list of tools, or Tools.
            vocab: the Vocab that it is made for. None takes that of the format; without one it is made where it is
                used.
            tool_choice: "auto"; "none": no call; "required": a call at once, after reasoning if there is any; or the
                name of the tool to call.
            parallel_tool_calls: whether there may be several calls.
            generation_prompt: what of the prompt begins the reply's turn (`ChatPrompt.generation_prompt`); None is
                what the template writes there with thinking on.
            thinking_budget: the most tokens of reasoning; then its end marker is forced.

        Returns:
            ChatConstraint.

        Raises:
            OptionError: there is no such tool, two have one name, a name cannot be written in this format, or a call
                is required where the template has none.
            RuleError: nothing satisfies a tool's schema.
            VocabularyError: the vocabulary cannot spell it.

        Example:
            >>> model = tokentrie.Model()
            >>> tools = [{"name": "ring", "parameters": {"properties": {"loud": {"type": "boolean"}}}}]
            >>> required = model.chat_format.constraint(tools, tool_choice="required")
            >>> sampler = tokentrie.Sampler(model.vocab, required)
            >>> sampler.accept(model.vocab.tokenize('<tool_call>\n{"name": "r', parse_special=True))
            >>> model.vocab.detokenize(sampler.forced()).startswith('ing')
            True
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...

@final
class ChatParser:
    r"""Reads a reply as it comes, in parts of any size; from `ChatFormat.parser`.

    Nothing is taken back: what may still become a marker is held until it is certain, and all events together are the
    message. Cost: O(bytes).

    Example:
        >>> parser = tokentrie.Model().chat_format.parser()
        >>> parser.push('Ding.<tool_call>\n{"name": "ri')
        [ChatEvent("content", "Ding.")]
        >>> parser.push('ng", "arguments": {}}\n</tool_call>')[0]
        ChatEvent("call_begins", index=0, name="ring")
        >>> parser.finish().tool_calls[0].arguments
        '{}'
    """
    def push(self, part: str | bytes) -> list[ChatEvent]:
        """Reads more of the reply.

        Args:
            part: str or bytes; a character may be cut in two.

        Returns:
            list[ChatEvent]: what became certain with it.

        Raises:
            OptionError: the reply is finished.
            TypeError: it is neither str nor bytes.

        Example:
            >>> tokentrie.Model().chat_format.parser().push(b"Ding")
            [ChatEvent("content", "Ding")]
        """
    def finish(self, partial: bool = False) -> Message:
        """Says that the reply is over. May be repeated.

        Args:
            partial: it was cut off: what may have become a marker is left out.

        Returns:
            Message. The last events are in `last_events`.

        Example:
            >>> parser = tokentrie.Model().chat_format.parser()
            >>> events = parser.push("Ding<tool")
            >>> parser.finish(partial=True).content
            'Ding'
        """
    @property
    def message(self) -> Message:
        """Message: what is certain of it so far."""
    @property
    def last_events(self) -> list[ChatEvent]:
        """list[ChatEvent]: what became certain when the reply was over; [] before."""

@final
class ChatConstraint:
    r"""What a reply may be: free text, in which a call that begins becomes a right one; from `ChatFormat.constraint`.

    Stands wherever a constraint does, and is made anew for each vocabulary that it is used with. Compares by what it
    was made of; can be pickled where its vocabulary can.

    Example:
        >>> model = tokentrie.Model()
        >>> free = model.chat_format.constraint([{"name": "ring"}])
        >>> sampler = tokentrie.Sampler(model.vocab, free)
        >>> sampler.accept(model.vocab.tokenize('Ding.<tool_call>\n{"name": "', parse_special=True))
        >>> set(model.vocab.detokenize(sampler.allowed()[-1:])) <= set('ring"')
        True
    """
    @property
    def format(self) -> ChatFormat:
        """ChatFormat: the format of the replies."""
    @property
    def tools(self) -> Tools:
        """Tools: the tools that may be called."""
    @property
    def vocab(self) -> Vocab | None:
        """Vocab | None: the vocabulary that it was made for."""
    @property
    def warnings(self) -> list[str]:
        """list[str]: what of the tools' schemas is not held."""
    @property
    def thinking_budget(self) -> int | None:
        """int | None: the most tokens of reasoning."""
    @property
    def tool_choice(self) -> str:
        """str: "auto", "none", "required" or the name of the tool that must be called."""
    @property
    def parallel_tool_calls(self) -> bool:
        """bool: whether there may be several calls."""
    @property
    def generation_prompt(self) -> str | None:
        """str | None: what of the prompt begins the reply's turn; None is what the template writes there."""
    def parse(self, text: str | bytes) -> Message:
        r"""Reads a reply that was written under this constraint.

        Args:
            text: str or bytes; where it was cut off, what there is of it counts.

        Returns:
            Message.

        Raises:
            TypeError: the text is neither str nor bytes.

        Example:
            >>> reply = tokentrie.Model().chat_format.constraint([{"name": "ring"}])
            >>> reply.parse('<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>').tool_calls
            [ToolCall('', 'ring', '{}')]
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[_Any, tuple[_Any, ...]]: ...
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class ChatTemplate:
    """A chat template: the Jinja that comes with a model and turns messages into a prompt.

    Rendered as Jinja2 renders it under the settings of transformers, byte for byte, and safe against templates of
    strangers: rendering ends soon, with a text or an error. It cannot change, compares and hashes by content, and can
    be pickled.

    Args:
        text: the template.
        bos: what the template finds as `bos_token`.
        eos: what the template finds as `eos_token`.

    Raises:
        TemplateError: it is no Jinja; the message says the line.

    Example:
        >>> template = tokentrie.ChatTemplate("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}")
        >>> template.render([{"role": "user", "content": "Hello"}])
        '[user] Hello'
    """

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
    ) -> str:
        """The text of a conversation.

        Where the template refuses the messages as they are, other shapes of the same conversation are tried, fewest
        changes first: arguments of tool calls as dict instead of JSON text, and the other way round; "" for content
        that is None or missing; content parts as one str, and the other way round; "developer" as "system"; the system
        message at the head of the first user message.

        Args:
            messages: a list of dict with "role" and "content".
            tools: a list of tool definitions (dict), as the template expects them.
            add_generation_prompt: end where the assistant's answer begins.
            now: the datetime that `strftime_now` tells; with None that of the clock.
            adapt: try other shapes; with False the template gets exactly these messages.
            variables: what the template finds under other names, such as `enable_thinking=False`.

        Returns:
            str: the prompt.

        Raises:
            TemplateError: the template refuses the messages, fails, or does more than it may: six million steps, 32 MB
                of values and output. The message says the line.
            TypeError: something is no list of dict, or no JSON.
            OptionError: something is no JSON.

        Example:
            >>> template = tokentrie.ChatTemplate("{{ messages[0].content }}{{ ' /think' if deep }}")
            >>> template.render([{"role": "user", "content": "Why?"}], deep=True)
            'Why? /think'
        """
    @property
    def text(self) -> str:
        """str: the template as it was given."""
    @property
    def bos(self) -> str:
        """str: what the template finds as `bos_token`."""
    @property
    def eos(self) -> str:
        """str: what the template finds as `eos_token`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...

@final
class Choice:
    """What `Model.choose` returns. Values are numbered as they were given (those of a trie or payload: by leaf).

    Example:
        >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red", "green"])
        >>> (choice.ranking.tolist()[0] == choice.index, round(float(choice.probabilities.sum()), 6))
        (True, 1.0)
    """
    @property
    def name(self) -> str | None:
        """str | None: the name of the most probable value; None where the set has no names."""
    @property
    def probability(self) -> float:
        """float: the probability of the most probable value among the values."""

    @property
    def names(self) -> list[str] | None:
        """list[str] | None: the names of the values, in their order; None where the set has no names."""

    def items(self) -> list[tuple[str | int, float]]:
        """Values and their probabilities, the most probable first: those that were ranked.

        Returns:
            list[tuple[str | int, float]]: the name of a value, or its number where the set has no names.

        Example:
            >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red"])
            >>> [name for name, probability in choice.items() if probability == choice.probability] == [choice.name]
            True
        """

    def to_dict(self) -> dict[str, _Any]:
        """The choice as a dict, for JSON.

        Returns:
            dict: "name", "index", "probability", "mass", "certain", "probabilities" (a dict by name, or by number where
                the set has no names, the most probable first) and "stats".

        Example:
            >>> sorted(tokentrie.Model().choose("The sky is ", ["blue", "red"]).to_dict()["probabilities"])
            ['blue', 'red']
        """

    def __len__(self) -> int: ...
    def __getitem__(self, value: str | SupportsIndex, /) -> float: ...
    def _repr_html_(self) -> str: ...
    @property
    def index(self) -> int:
        """int: the number of the most probable value."""
    @property
    def logprobs(self) -> NDArray[np.float64]:
        """numpy.ndarray: float64 [values], the log of each value's probability under the whole vocabulary; NaN for a
        value that was not scored (see `top`). With `tokenization="all"` or `open_end=True` that of all its
        sequences together, and a lower bound unless all were scored.
        """
    @property
    def logprobs_high(self) -> NDArray[np.float64]:
        """numpy.ndarray: float64 [values], upper bounds; the same as `logprobs` where all were scored. They hold as
        far as double precision adds up.
        """
    @property
    def probabilities(self) -> NDArray[np.float64]:
        """numpy.ndarray: float64 [values], the same among the values: they add up to 1. Where not all were scored,
        lower bounds.
        """
    @property
    def ranking(self) -> NDArray[np.int64]:
        """numpy.ndarray: int64 [k], numbers of the values, the most probable first: all of them, or `top`."""
    @property
    def mass(self) -> float:
        """float: the probability that the output is any of the values; its lower bound where not all were scored."""
    @property
    def mass_bounds(self) -> tuple[float, float]:
        """tuple[float, float]: lower and upper bound of `mass`; equal where all values were scored."""
    @property
    def certain(self) -> bool:
        """bool: whether no value can be more probable than the first. Where a budget ended the search, it may be
        False.
        """
    @property
    def stats(self) -> ChoiceStats:
        """ChoiceStats: what it took."""

@final
class ChoiceStats:
    """What a choice took. Several prompts that were decoded together share one.

    Example:
        >>> stats = tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats
        >>> stats.forward_passes
        2
    """
    @property
    def forward_passes(self) -> int:
        """int: calls of llama.cpp's decode, the prompt included."""
    @property
    def tokens_decoded(self) -> int:
        """int: tokens in them."""
    @property
    def rows(self) -> int:
        """int: rows of logits that were read."""
    @property
    def healed_bytes(self) -> int:
        """int: bytes at the end of the prompt that were taken back, because the values begin with them."""
    @property
    def seconds(self) -> float:
        """float: seconds in all."""
    @property
    def n_threads(self) -> int:
        """int: threads of the last forward pass."""
    def to_dict(self) -> dict[str, int | float]:
        """The same as a dict, for JSON.

        Returns:
            dict[str, int | float].

        Example:
            >>> "rows" in tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats.to_dict()
            True
        """
    def as_dict(self) -> dict[str, int | float]:
        """Deprecated: the former name of `to_dict`.

        Returns:
            dict[str, int | float].
        """

@final
class Choices:
    """Iterator over the choices of `Model.choose_many`, in the order of the prompts.

    Threads may share one: each choice goes to one of them. What a bad prompt raises comes after the choices of the
    prompts before it; with `on_error="return"` it stands in their order.

    Example:
        >>> choices = tokentrie.Model().choose_many(["The sky is ", "Roses are "], ["blue", "red"])
        >>> len([choice.name for choice in choices])
        2
    """
    @property
    def skipped(self) -> list[int]:
        """list[int]: the prompts that `on_error="skip"` has passed over so far, by their numbers from 0."""
    def __iter__(self) -> Choices: ...
    def __next__(self) -> Choice: ...

@final
class Slot:
    """The part of a form that takes one value of a set.

    Texts are tokenised together with what stands around them, so that the whole text of the form has the tokens
    that the tokenizer gives it; token sequences are taken as they are. An empty str makes a slot optional.

    Args:
        name: what the value is called in `Generated.values`.
        values: a list or other iterable of distinct str; or a Trie; or a Sequence of tries, whose value is their
            names together; or a Rule, such as a Regex; or a payload, whose descriptor with the path `name` is taken.

    Raises:
        PayloadError: the payload cannot be used; for one str it says that a list is wanted.
        OptionError: no descriptor has the path `name`, or a Sequence has a list of str in it.
        TypeError: a value is no str, or `values` is something else.

    Example:
        >>> tokentrie.Slot("colour", ["red", "green", "blue"])
        <tokentrie.Slot "colour": 3 values>
    """
    def __new__(cls, name: str, values: Iterable[str] | Trie | Sequence | Rule | Spec | _Payload) -> Slot: ...
    @property
    def name(self) -> str:
        """str: its name."""
    def __add__(self, other: str | Slot | Text | Form, /) -> Form: ...
    def __radd__(self, other: str, /) -> Form: ...

@final
class ThinkGate(Sampler):
    """Thinking before a value: free text up to the end marker, or up to a budget, and then another constraint.

    It has the methods of a Sampler, and is a constraint itself: for `Sampler`, `Batch` and `Model.generate`, where
    it begins anew. While thinking everything may come but the first token of the begin marker. Once the model writes
    the first token of the end marker, the rest of it is forced. When the budget is used up, `message` and the end
    marker are forced, on top of it; forced tokens cost no forward pass, and a token against them raises. After
    thinking, also after the value, the first tokens of both markers may not come in free text; what a set names
    stays legal.

    Args:
        begin: the begin marker: token ids, or a str, which is tokenised with its control tokens; may be empty.
        end: the end marker, likewise; not empty.
        budget: the most tokens thought. None: no limit. 0: the end marker comes at once.
        then: what follows: whatever is a constraint for `Sampler`, or a Sampler, whose vocabulary, mode, seed and other
            options are taken over. None: anything.
        started: whether the begin marker is in the prompt already. If not it is forced.
        optional: with `started=False`: the model may write the begin marker, or go straight to `then`.
        message: what is said before the end marker when the budget is used up: token ids or a str.
        budget_from: "start" counts a begin marker that is written here, "begin" counts from its end.
        at_once: False looks for the end marker as a whole, for markers whose tokens are ordinary text: "<", "/think".
        masked: ids that may not come while thinking. None: those that end a generation, where the vocabulary is known,
            so that there is always a value.
        vocab: a Vocab or the vocabulary size, to use it by itself. Not needed where `then` is a Sampler, or where it is
            given to something as a constraint.
        mode, end_tokens, after, sampling: as for `Sampler`, which only counts where it is used by itself.

    Raises:
        OptionError: there is no end marker, the message holds it, a setting is out of range, `then` is a Sampler and
            options stand beside it, or a token begins both the optional begin marker and what follows.
        VocabularyError: ids are outside the vocabulary, or a str is given and nothing tokenises it.

    Example:
        >>> answers = tokentrie.Trie.from_sequences([[1], [2]], names=["yes", "no"])
        >>> gate = tokentrie.ThinkGate([7], [8, 9], budget=3, then=answers, vocab=16)
        >>> gate.accept([4, 5, 4])
        >>> gate.forced()
        array([8, 9], dtype=int32)
        >>> gate.accept([8, 9, 2])
        >>> (gate.leaf.name, gate.thinking, gate.forced_tokens, gate.cut_short)
        ('no', 3, 2, True)
        >>> gate = tokentrie.ThinkGate("<think>", "</think>", budget=4, then=["yes", "no"])
        >>> tokentrie.Model().generate("Yes or no? ", gate).leaf.name in ("yes", "no")
        True
    """
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
    def clone(self) -> ThinkGate:
        """An independent copy at the same position. Cost: O(1).

        Returns:
            ThinkGate.

        Example:
            >>> gate = tokentrie.ThinkGate([7], [8], budget=3, vocab=16)
            >>> copy = gate.clone()
            >>> copy.accept([4, 5])
            >>> (copy.thinking, gate.thinking)
            (2, 0)
        """
    @property
    def forced_tokens(self) -> int:
        """int: tokens of markers and message that were forced: they need no forward pass."""
    @property
    def cut_short(self) -> bool:
        """bool: whether the budget closed it, and not the model."""
    @property
    def end_matched(self) -> int:
        """int: tokens of the end marker that the last tokens are; all of them once thinking is over."""
    def __add__(self, other: _Part | str, /) -> Sequence: ...
    def __radd__(self, other: str | list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Text:
    """The part of a form that the model writes freely. The end of the model's output ends it as well.

    Args:
        name: what the text is called in `Generated.values`.
        stop: text that ends it and is no part of it; it stands in the output only where the literal after it begins
            with it. None only with a ChatConstraint.
        max_tokens: the most tokens of it, at least 1.
        exclude: characters that may not occur in it. None excludes, where `stop` begins with a double quote,
            backslash and control characters, so that JSON stays JSON; else nothing.
        pattern: what it must be as a whole: a Regex or another Rule, or the str of a Regex. The text is over at the
            first `stop` after one. Where `max_tokens` cut it off, its longest beginning that matches stays. Or a
            ChatConstraint of the model's vocabulary: then the text is a reply, which ends when the model ends it, and
            its value is a Message.

    Raises:
        OptionError: `max_tokens` is out of range, `exclude` stands beside `pattern`, there is no `stop`, or there is
            one for a reply.
        RuleError: the pattern is no regular expression.
        TypeError: the pattern is nothing of these, or a ChatConstraint without a vocabulary.

    Example:
        >>> form = tokentrie.Form('"', tokentrie.Text("note", stop='"', max_tokens=8), '"')
        >>> out = tokentrie.Model().generate("A note: ", form)
        >>> out.text == '"' + out.values["note"] + '"'
        True
    """
    def __new__(
        cls,
        name: str,
        *,
        stop: str | None = None,
        max_tokens: int = 64,
        exclude: str | None = None,
        pattern: str | Rule | Spec | ChatConstraint | dict[str, _Any] | None = None,
    ) -> Text: ...
    @property
    def pattern(self) -> Rule | ChatConstraint | None:
        """Rule | ChatConstraint | None: what it must be as a whole."""
    @property
    def stop(self) -> str | None:
        """str | None: what ends it; None for a reply."""

    @property
    def max_tokens(self) -> int:
        """int: the most tokens of it."""

    @property
    def exclude(self) -> str | None:
        """str | None: characters that may not occur in it."""

    @property
    def name(self) -> str:
        """str: its name."""
    def __add__(self, other: str | Slot | Text | Form, /) -> Form: ...
    def __radd__(self, other: str, /) -> Form: ...

@final
class Form:
    """Text with parts to fill in: literals (str), Slot and Text, in their order.

    Give it to `Model.generate` as the constraint. Literals are never sampled, each slot gets one of its values, and
    the result has the values by name. It is bound to no model; what it works out for a vocabulary, it keeps. A Sampler,
    a Batch or a gate with a Vocab walks it as any constraint: `leaves` are its values in order, and free text ends with
    its stop to the byte, which stays in the text unless the literal behind it begins with it.

    Args:
        parts: str, Slot or Text, at least one of them no str.

    Raises:
        OptionError: the parts make no form: no slot, a name that comes twice, text right after text, Any in a slot.
        TrieError: a slot has no values, or repeats one.
        TypeError: a part is something else.

    Example:
        >>> colours, sizes = tokentrie.Slot("colour", ["red", "blue"]), tokentrie.Slot("size", ["big", "small"])
        >>> form = tokentrie.Form('{"colour": "', colours, '", "size": "', sizes, '"}')
        >>> out = tokentrie.Model().generate("A big red balloon: ", form)
        >>> sorted(out.values)
        ['colour', 'size']
    """
    def __new__(cls, *parts: str | Slot | Text) -> Form: ...
    @property
    def parts(self) -> tuple[str | Slot | Text, ...]:
        """tuple[str | Slot | Text, ...]: its parts."""
    @overload
    def __add__(self, other: str | Slot | Text | Form, /) -> Form: ...
    @overload
    def __add__(self, other: _Tokens | Rule, /) -> Sequence: ...
    @overload
    def __radd__(self, other: str, /) -> Form: ...
    @overload
    def __radd__(self, other: list[str] | tuple[str, ...], /) -> Sequence: ...

@final
class Generated:
    """What `Model.generate` returns.

    Example:
        >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"])
        >>> (out.leaf.name == out.text, out.finish)
        (True, 'span')
    """
    @property
    def text(self) -> str:
        """str: the generated text, so that the prompt and this are the whole text. What the set takes back of the
        prompt is not in it. Bytes that are no UTF-8 became U+FFFD.
        """
    @property
    def tokens(self) -> list[int]:
        """list[int]: the generated tokens, end tokens of the span included, end of generation excluded. They follow
        the prompt's tokens without the last ones, whose `stats.healed_bytes` bytes they begin with.
        """
    @property
    def leaf(self) -> Leaf | None:
        """Leaf | None: the value, if the span was completed; of a Sequence the last."""
    @property
    def leaves(self) -> list[Leaf]:
        """list[Leaf]: all values in their order: of a Sequence one for each set that was completed."""
    @property
    def value(self) -> _Any:
        """Any: the value, if it was completed: the name of a leaf, or what a rule makes of its text (`Rule.parse`): an
        int, a date, a str. None where it was not, for a form, and where nothing was constrained.
        """
    @property
    def partial_token(self) -> bytes:
        """bytes: the partial token at the end: what the last token of the value holds beyond it, in a set with
        `open_end=True`. It begins the free text.
        """
    @property
    def values(self) -> dict[str, _Any]:
        """dict[str, Any]: what a form was filled with, by the names of its slots and texts: str, or what a rule makes
        of its text; empty for other constraints.
        """
    @property
    def probabilities(self) -> dict[str, NDArray[np.float64]]:
        """dict[str, numpy.ndarray]: float64 [values], the probability of each value of a slot among them, by the names
        of the slots; empty unless it was asked for.
        """
    @property
    def canonical(self) -> bool:
        """bool: whether these are the tokens that the tokenizer writes for the text of a form; True for other
        constraints.
        """
    @property
    def finish(self) -> _Finish:
        """str: why it ended: "form", "span", "end_of_generation", "max_tokens" or "context_full"; "stopped" in the
        `partial` of a CancelledError.
        """
    @property
    def stats(self) -> Stats:
        """Stats: what it took."""

@final
class Stats:
    """What a generation took.

    Example:
        >>> stats = tokentrie.Model().generate("The sky is ", ["blue", "red"]).stats
        >>> stats.forced_tokens + stats.sampled_tokens >= 1
        True
    """
    @property
    def forward_passes(self) -> int:
        """int: calls of llama.cpp's decode."""
    @property
    def tokens_decoded(self) -> int:
        """int: tokens in them, the prompt included."""
    @property
    def forced_tokens(self) -> int:
        """int: tokens of which exactly one was allowed."""
    @property
    def sampled_tokens(self) -> int:
        """int: tokens with a choice."""
    @property
    def forward_passes_saved(self) -> int:
        """int: tokens that needed no forward pass of their own, because they were forced."""
    @property
    def thinking_tokens(self) -> int:
        """int: tokens thought before a ThinkGate closed, without its markers."""
    @property
    def starved(self) -> int:
        """int: how often no legal token had a usable logit."""
    @property
    def prompt_tokens_reused(self) -> int:
        """int: tokens of the prompt that the model's context held already, so that they were not decoded again."""
    @property
    def healed_bytes(self) -> int:
        """int: bytes at the end of the prompt that were taken back, because the set begins with them."""
    @property
    def seconds(self) -> float:
        """float: seconds in all."""
    @property
    def prompt_seconds(self) -> float:
        """float: seconds for the prompt."""
    @property
    def decode_seconds(self) -> float:
        """float: seconds in the forward passes after it."""
    @property
    def sample_seconds(self) -> float:
        """float: seconds in choosing tokens."""
    @property
    def n_threads(self) -> int:
        """int: threads of the last forward pass."""
    @property
    def seed(self) -> int:
        """int: seed of the draw."""
    def to_dict(self) -> dict[str, int | float]:
        """The same as a dict, for JSON.

        Returns:
            dict[str, int | float].

        Example:
            >>> "forward_passes" in tokentrie.Model().generate("The sky is ", ["blue"]).stats.to_dict()
            True
        """
    def as_dict(self) -> dict[str, int | float]:
        """Deprecated: the former name of `to_dict`.

        Returns:
            dict[str, int | float].
        """

@final
class Step:
    """One step of a generation, as `on_step` of `Model.generate` sees it.

    Example:
        >>> steps = []
        >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"], on_step=steps.append)
        >>> [step.token for step in steps] == out.tokens
        True
    """
    @property
    def index(self) -> int:
        """int: its number, from 0."""
    @property
    def depth(self) -> int:
        """int: tokens walked in the trie before the step."""
    @property
    def token(self) -> int:
        """int: the token that was taken."""
    @property
    def text(self) -> str:
        """str: the text that it completes; "" where a character is only begun. All of them together are
        `Generated.text`, but for a character that the output does not end.
        """

    @property
    def forced(self) -> bool:
        """bool: whether no other could come."""
    @property
    def allowed(self) -> NDArray[np.int32]:
        """numpy.ndarray: int32 [k], the tokens that could come, ascending; empty where all could. At an open leaf
        those that go on.
        """
    @property
    def probabilities(self) -> NDArray[np.float32]:
        """numpy.ndarray: float32 [k], their probabilities among each other, before temperature and truncation; at an
        open leaf among all tokens, so that what is missing to 1 is the probability of ending there.
        """

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
) -> list[Hypothesis]:
    """The most probable values of a set under a model that is a function, by a beam search that never leaves the set.

    After each step the beam keeps the `width` best hypotheses, finished ones included; ties go to what is finished,
    then to the better parent, then to the lower token. With a width of at least the number of values all of them are
    found, each with its exact probability; there is never a filler.

    Args:
        step: gets the token lists of the live rows, those after the prompt only, and returns their logits: [rows, V] or
            wider, float32, float16 or bfloat16, as for `Batch`; or, where only some are known, a list with a dict
            {token id: log-probability} for each row: what is not in it counts as impossible. At first it is asked for
            [[]].
        constraint: as for `Sampler`; it must end.
        width: how many hypotheses are kept, at least 1.
        vocab: a Vocab, or the vocabulary size. None: as many tokens as the first row has entries.
        score: what a token adds. "model": the log of its probability under the whole vocabulary. "renormalised": the
            log of its share among the legal tokens; steps that are forced in every row are skipped then. "given": its
            logit.
        num_return: how many to return at most. None: all that are kept.
        length_penalty: ranks by score / length ** length_penalty; 0 ranks by the score.
        end_tokens: ids that may close a value; their probabilities add up. None: those of the set.
        sample: draws hypotheses without replacement instead, each in proportion to the product of its tokens' shares,
            and returns them in the order in which they were drawn.
        seed: seed of the draw, 0 to 2**32 - 1; None takes one from the operating system.
        reorder: called before each step but the first with int64 [rows]: the row of the step before that each row comes
            from. For functions that keep what they computed.

    Cost: O(rows · V) a step with score="model", O(Σ children) with "renormalised".

    Returns:
        list[Hypothesis], best first: at most `width` and at most one for each value.

    Raises:
        OptionError: a setting is out of range, `seed` stands without `sample`, or a row is not one for each prefix.
        TypeError, ValueError: `step` returned something else; its own exceptions come out as they are.
        TrieError: the constraint has no end, as that of Any.
        PayloadError, VocabularyError: as for `Sampler`.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])
        >>> logits = np.arange(6, dtype=np.float32)  # a model that likes high ids, whatever came before
        >>> step = lambda prefixes: np.tile(logits, (len(prefixes), 1))
        >>> [found.leaf.name for found in tokentrie.beam_search(step, trie, width=2, score="renormalised")]
        ['c', 'b']
    """

def choose(
    scorer: Callable[[list[list[int]]], _Answer],
    values: _Constraint,
    *,
    vocab: Vocab | int | None = None,
    end_tokens: _Ids | None = None,
    top: int | None = None,
    max_rows: int | None = None,
    rows_at_once: int = 128,
) -> Choice:
    """The exact probability of every value under a model that is a function: `Model.choose` for any host.

    Args:
        scorer: gets token lists, those after the prompt only, and returns a row of logits for each, as `step` of
            `beam_search` does. A whole tree of prefixes comes in calls of up to `rows_at_once`, so a host that can
            decode a batch does so. At first it is asked for [[]].
        values: a list of distinct str, which needs a Vocab, a Trie, a payload (its first descriptor), or a Sequence
            without Any.
        vocab: a Vocab, or the vocabulary size. None: as many tokens as the first row has entries.
        end_tokens: ids of which one must follow a value; its probability then counts that as well. None: those of the
            set.
        top: score only what the best so many values need, at least 1; None scores all of a set that needs at most 4096
            rows.
        max_rows: read at most so many rows of logits, at least 1, and give bounds where that was too few.
        rows_at_once: prefixes of one call at most, at least 1.

    Returns:
        Choice, as of `Model.choose`. With a scorer that lists log-probabilities, what it does not list is impossible.

    Raises:
        TypeError, ValueError: `scorer` returned something else; its own exceptions come out as they are.
        TrieError, PayloadError, VocabularyError, OptionError: as for `Model.choose`.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1, 2], [3]], names=["yes", "no"])
        >>> scorer = lambda prefixes: np.zeros((len(prefixes), 4), dtype=np.float32)  # all tokens alike
        >>> choice = tokentrie.choose(scorer, trie)
        >>> choice.name, choice.probabilities.round(2)
        ('no', array([0.2, 0.8]))
    """
