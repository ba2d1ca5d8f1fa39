"""Names and their contents, versions, quotas."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie import CancelToken, Model
from tokentrie.rules import Spec
from tokentrie.serve.errors import WireError
from tokentrie.serve.store import contents, uploads
from tokentrie.serve.store.contents import Constraint, Content
from tokentrie.serve.store.folder import Folder, StoredFile
from tokentrie.serve.store.references import resolve_names

#: A grammar of a request is made, or refused, in this time; what it allows is worked out while it is used.
MOST_SECONDS = 5


@dataclass(frozen=True)
class Quota:
    """Quota of kept contents: names, and bytes of all contents, each counted once."""

    names: int = 1000
    nbytes: int = 4 << 30


@dataclass(frozen=True)
class Entry:
    """Content of a name now. Requests that have it keep it when the name gets another."""

    name: str
    version: int
    """Counts the contents of the name."""
    content: Content
    path: Path | None = None
    """The file that it is in."""

    def to_json(self) -> dict[str, Any]:
        """As clients read it."""
        of = self.content
        found: dict[str, Any] = {"name": self.name, "object": "constraint", "kind": of.kind}
        if of.size is not None:
            found["size"] = of.size
        return found | {"version": self.version, "digest": of.digest, "bytes": of.nbytes}


#: Raises where the entry, or None, is not what a request expects to change.
Condition = Callable[[Entry | None], None]


def unconditional(_: Entry | None) -> None:
    """Condition that any entry meets."""


class Store:
    """Named constraints, in memory or in a folder. May be used from several threads; only changes wait for each other.

    Args:
        folder: where they are kept; None: in memory. A damaged file is told of on standard error and left out.
        models: those that answer; a constraint must be for one of them.
        quota: how much may be kept.
        is_fixed: nothing is put or taken away: several servers read the folder.

    Raises OSError where the folder cannot be used, or another server has it.
    """

    def __init__(
        self, folder: Path | None, models: Sequence[Model], quota: Quota | None = None, *, is_fixed: bool = False
    ) -> None:
        self._models, self._quota, self._changing = models, quota or Quota(), threading.Lock()
        self._is_fixed = is_fixed
        self._folder = None if folder is None else Folder(folder, is_shared=is_fixed)
        self._last: dict[str, int] = {}
        """The last version of names, of files that cannot be read too."""
        # Both are replaced and never changed, so that readers need no lock.
        self._entries: dict[str, Entry] = {}
        self._names: dict[str, Any] = {}
        if self._folder is not None:
            self._load(self._folder)

    def close(self) -> None:
        """Lets go of the folder."""
        if self._folder is not None:
            self._folder.close()

    def names(self) -> dict[str, Any]:
        """A constraint for each name as of now, for `tokentrie.constraint(spec, names=...)`. Not to be changed."""
        return self._names

    def constraint(self, spec: Any) -> Constraint:
        """The constraint that a request means by a spec as data, such as `{"name": "colours"}`.

        `{"name": ...}` and `{"set": ...}` stand for what is kept under a name as of now. What a name alone
        stands for keeps what was worked out for it.

        Raises:
            WireError, OptionError: it is not a spec, names nothing, or raises the limits of the library; with the
                place, such as `$.form[1].value`.
        """
        names = self._names
        if not isinstance(spec, dict):
            raise WireError("a constraint must be an object of one kind")
        spec, has_names = resolve_names(spec, names, MOST_SECONDS)
        if [*spec] == ["name"] and (known := names.get(str(spec["name"]))) is not None:
            return known  # type: ignore[no-any-return]
        text = json.dumps(spec, ensure_ascii=False)
        return tokentrie.constraint(text, names=names) if has_names else _read_rule(text)

    def get(self, name: str) -> Entry | None:
        """Returns the entry of a name."""
        return self._entries.get(name)

    def list_entries(self) -> list[Entry]:
        """Returns the entries in the order of their names."""
        return [self._entries[name] for name in sorted(self._entries)]

    def read(self, media: str, body: bytes, column: str | None = None) -> tuple[Content, bytes]:
        """Returns the content of an upload, for `check` and `put`. Raises as `uploads.read`."""
        return uploads.read(media, body, column, self._models, self._names)

    def check(self, content: Content, *, timeout: float | None = None, cancel: CancelToken | None = None) -> None:
        """Raises what is wrong with it for the models here; TimedOutError after so many seconds."""
        content.check(self._models, timeout=timeout, cancel=cancel)

    @property
    def is_kept(self) -> bool:
        """Returns True if constraints are kept in a folder."""
        return self._folder is not None

    def check_changes(self) -> None:
        """Raises WireError, 403, where nothing is put or taken away."""
        if self._is_fixed:
            message = "the constraints of this server are those that its folder had when it began: put a file there"
            raise WireError(message, status=403, code="fixed")

    def store_content(
        self, name: str, content: Content, data: bytes, condition: Condition = unconditional
    ) -> tuple[Entry, bool]:
        """Keeps it under a name; also whether the name is new. The same content again changes nothing.

        Raises WireError: 403 where nothing is put, 412 for the condition, 413 for the quota, 507 where the disk does
        not take it. Then everything is as it was.
        """
        self.check_changes()
        with self._changing:
            before = self._entries.get(name)
            condition(before)
            if before is not None and before.content.digest == content.digest:
                return before, False
            same = next((one for one in self._entries.values() if one.content.digest == content.digest), None)
            self._afford(name, content, is_new=before is None, is_kept=same is not None)
            version = self._last.get(name, 0) + 1
            path = self._write(name, version, content, data, None if same is None else same.path)
            if same is not None:
                content = same.content
            elif path is not None:
                # If that fails, the content in memory is used.
                with contextlib.suppress(OSError, tokentrie.TokenTrieError):
                    content = content.map_trie(path)
            entry = Entry(name, version, content, path)
            self._last[name] = version
            self._set({**self._entries, name: entry})
            if self._folder is not None:
                # Older files may stay, since the last version counts.
                with contextlib.suppress(OSError):
                    self._folder.remove(name, before=version)
            return entry, before is None

    def remove(self, name: str, condition: Condition = unconditional) -> None:
        """Forgets a name; raises WireError, 404 where there is none, and as `put`."""
        self.check_changes()
        with self._changing:
            before = self._entries.get(name)
            if before is None:
                raise WireError(
                    f"unknown constraint {name!r}: GET /v1/constraints lists them", status=404, param="name"
                )
            condition(before)
            if self._folder is not None:
                try:
                    self._folder.remove(name)
                except OSError as error:
                    raise _not_kept(error) from None
            self._last.pop(name, None)
            self._set({one: entry for one, entry in self._entries.items() if one != name})

    def _set(self, entries: dict[str, Entry]) -> None:
        self._entries, self._names = entries, {name: entry.content.constraint for name, entry in entries.items()}

    def _afford(self, name: str, content: Content, *, is_new: bool, is_kept: bool) -> None:
        if is_new and len(self._entries) >= self._quota.names:
            message = f"{self._quota.names:,} constraints are kept, which is the limit (--max-sets): take one away"
            raise WireError(message, status=413, code="quota_exceeded")
        if is_kept:
            return
        others = {one.content.digest: one.content.nbytes for one in self._entries.values() if one.name != name}
        if (total := sum(others.values()) + content.nbytes) > self._quota.nbytes:
            message = (
                f"{content.nbytes:,} bytes more make {total:,}, and the limit of all constraints is "
                f"{self._quota.nbytes:,} (--max-sets-bytes): take one away"
            )
            raise WireError(message, status=413, code="quota_exceeded")

    def _write(self, name: str, version: int, content: Content, data: bytes, same: Path | None) -> Path | None:
        if self._folder is None:
            return None
        try:
            return self._folder.write(name, version, content.suffix, data, same)
        except OSError as error:
            raise _not_kept(error) from None

    def _load(self, folder: Folder) -> None:
        last: dict[str, StoredFile] = {kept.name: kept for kept in folder.files()}
        entries: dict[str, Entry] = {}
        same: dict[str, Content] = {}
        for name, kept in last.items():
            self._last[name] = version = max(kept.version, 1)
            try:
                content = contents.of_file(kept.path, self._models)
            except (tokentrie.TokenTrieError, OSError, TypeError, ValueError, WireError) as error:
                said = " ".join(str(error).split())
                print(f"{kept.path}: left out: {said}", file=sys.stderr, flush=True)
                continue
            content = same.setdefault(content.digest, content)
            entries[name] = Entry(name, version, content, kept.path)
        self._set(entries)


def _not_kept(error: OSError) -> WireError:
    return WireError(f"the file could not be written: {error.strerror or error}", status=507, code="storage")


@functools.lru_cache(maxsize=128)
def _read_rule(text: str) -> Spec:
    # The next request with the same text finds the compiled constraint again.
    return tokentrie.constraint(text)


def forget_specs() -> None:
    """Forgets the constraints of requests that were kept for those that come again."""
    _read_rule.cache_clear()
