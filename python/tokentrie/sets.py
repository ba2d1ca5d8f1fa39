"""Sets of values: tries, what is filtered, changed and kept of them, and choices among their leaves.

`choose` and `beam_search` take logits from any function; with a `Model`, `Model.choose` and `Model.beam` compute them.

Example:
    >>> from tokentrie import Trie, sets
    >>> colours = sets.LiveSet(Trie.from_sequences([[1, 2], [4, 2]]))
    >>> len(colours)
    2
"""

from tokentrie._native import (
    Choices,
    FilteredTrie,
    Leaf,
    LeafSet,
    LiveSet,
    Trie,
    TrieArrays,
    TrieCache,
    beam_search,
    choose,
)

__all__ = [
    "Choices",
    "FilteredTrie",
    "Leaf",
    "LeafSet",
    "LiveSet",
    "Trie",
    "TrieArrays",
    "TrieCache",
    "beam_search",
    "choose",
]
