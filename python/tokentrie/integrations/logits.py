"""A callable for loops that hand over the token ids so far and a row of logits, as many libraries do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tokentrie


class LogitsConstraint:
    """Masks rows of logits so that the ids after the prompt spell a value of the set.

    Called with all ids so far and the row that follows them. It finds out by itself which ids are new, and goes back
    where ids were taken back. One object is for one sequence.

    Args:
        vocab: a Vocab, or the vocabulary size as an int.
        constraint: what `Sampler` takes: a Trie, a list of str, a payload, a Sequence.
        prompt: how many ids the prompt has. None: all ids of the first call are the prompt.
        end_tokens: ids that close the span at the end of a leaf; None: those of the set.
        after: what follows a value: "stop" allows only end of generation, "free" leaves rows alone.

    Raises:
        VocabularyError, PayloadError, TrieError, OptionError: as `Sampler`.

    Example:
        >>> from tokentrie.integrations.logits import LogitsConstraint
        >>> constrain = LogitsConstraint(4, tokentrie.Trie.from_sequences([[1, 0], [2]]), after="free")
        >>> constrain([3, 3], np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
        array([-inf,  1.5,  2.5, -inf], dtype=float32)
        >>> constrain([3, 3, 1], np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
        array([ 0.5, -inf, -inf, -inf], dtype=float32)
    """

    def __init__(
        self,
        vocab: tokentrie.Vocab | int,
        constraint: Any,
        *,
        prompt: int | None = None,
        end_tokens: ArrayLike | None = None,
        after: str = "stop",
    ) -> None:
        if prompt is not None and prompt < 0:
            raise tokentrie.errors.OptionError(f"prompt is {prompt}: it must be 0 or more, or None")
        settings: dict[str, Any] = {"end_tokens": end_tokens, "after": after}
        self._sampler = tokentrie.Sampler(vocab, constraint, **settings)
        self._given = self._prompt = prompt
        self._taken: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def sampler(self) -> tokentrie.Sampler:
        """Sampler: where it stands: `sampler.leaf`, `sampler.state`, `sampler.forced()`."""
        return self._sampler

    def __call__(self, ids: ArrayLike, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """Takes the new ids and masks the row.

        Args:
            ids: the ids so far, of prompt and output: a list or an integer array [n].
            row: float32 [V], the logits that follow them; may be wider than the vocabulary. Masked in place where it is
                contiguous and writable.

        Returns:
            The masked row: the same array, or a copy where it could not be written.

        Raises:
            TokenNotAllowedError: a new id may not come there. The state is as before.
            OptionError: there are fewer ids than the prompt has.
            TypeError, ValueError: the row or the ids have another type or shape.
        """
        self._follow(_ids(ids))
        row = np.asarray(row)
        if not (row.flags.c_contiguous and row.flags.writeable):
            row = row.copy()
        self._sampler.apply(row)
        return row

    def reset(self) -> None:
        """Makes it as it was created, for another sequence."""
        self._sampler.reset()
        self._prompt, self._taken = self._given, self._taken[:0]

    def _follow(self, ids: NDArray[np.int64]) -> None:
        if self._prompt is None:
            self._prompt = len(ids)
        if len(ids) < self._prompt:
            raise tokentrie.errors.OptionError(
                f"{len(ids)} ids were given, the prompt has {self._prompt}: one object is for one sequence, "
                "reset() makes it ready for another"
            )
        output = ids[self._prompt :]
        both = min(len(output), len(self._taken))
        different = np.flatnonzero(output[:both] != self._taken[:both])
        same = int(different[0]) if len(different) else both
        ahead, back = self._sampler.clone(), len(self._taken) - same
        ahead.rollback(back)
        ahead.accept(output[same:])
        # Nothing has changed so far.
        self._sampler, self._taken = ahead, output.copy()


def _ids(ids: ArrayLike) -> NDArray[np.int64]:
    found = np.asarray(ids)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and found.size):
        raise TypeError(f"ids must be integers of shape [n], not {found.dtype} of shape {list(found.shape)}")
    return found.astype(np.int64)
