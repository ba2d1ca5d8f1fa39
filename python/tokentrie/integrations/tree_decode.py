"""Finds the prefix table that belongs to a model, by the rule of RTP-LLM's tree decoding.

The environment variable TREE_DECODE_CONFIG names the file, relative to the folder of the model. An absolute name stays
what it is. Unset or empty, there is none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tokentrie import Trie

__all__ = ["VARIABLE", "load_tree_decode", "tree_decode_config"]

VARIABLE = "TREE_DECODE_CONFIG"


def tree_decode_config(
    model_folder: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> Path | None:
    """The prefix table that the environment names for a model.

    Args:
        model_folder: the folder of the model. Where it is a file, such as a GGUF, the folder that it is in.
        environ: the variables to look in; those of the process if None.

    Returns:
        The path of the file, or None if the variable is unset or empty.

    Raises:
        FileNotFoundError: the variable names a file that is not there.

    Example:
        >>> from tokentrie.integrations.tree_decode import tree_decode_config
        >>> tree_decode_config("models/mine", environ={}) is None
        True
    """
    name = (os.environ if environ is None else environ).get(VARIABLE, "")
    if not name:
        return None
    folder = Path(model_folder)
    path = (folder.parent if folder.is_file() else folder) / name
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise FileNotFoundError(f"{VARIABLE} is {name!r}: {path} is {what}; the name is relative to the model's folder")
    return path


def load_tree_decode(
    model_folder: str | os.PathLike[str], *, strict: bool = True, environ: Mapping[str, str] | None = None
) -> Trie | None:
    """The set of the prefix table that the environment names for a model.

    Each call reads the file: keep the Trie and share it, between threads too.

    Args:
        model_folder, environ: as for `tree_decode_config`.
        strict: as for `Trie.from_prefix_table`.

    Returns:
        Trie, or None if the variable is unset or empty.

    Raises:
        FileNotFoundError: the variable names a file that is not there.
        PayloadError: the table cannot be used; it says which file and why.
        OSError: what the operating system says of the file.

    Example:
        >>> from pathlib import Path
        >>> from tokentrie.integrations.tree_decode import load_tree_decode
        >>> _ = Path("tree.json").write_text('{"prefix_dict": {"225": [7, 8]}}')
        >>> len(load_tree_decode(".", environ={"TREE_DECODE_CONFIG": "tree.json"}))
        2
    """
    path = tree_decode_config(model_folder, environ=environ)
    return None if path is None else Trie.from_prefix_table(path, strict=strict)
