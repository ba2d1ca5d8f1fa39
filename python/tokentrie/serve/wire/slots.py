"""`POST /slots/{id}?action=save|restore`, in the shapes of llama-server: beginnings of prompts in files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

import tokentrie
from tokentrie.serve.errors import NO_RETRY, WireError, in_http
from tokentrie.serve.models import Models, ServedModel
from tokentrie.serve.store.folder import NAME
from tokentrie.serve.wire.chatting import tokens_of
from tokentrie.serve.wire.generating import MOST
from tokentrie.serve.wire.templating import TemplateRequest, prompt_of

TokenId = Annotated[int, Field(ge=0, le=MOST)]
ACTIONS = ("save", "restore")
NEEDS_FOLDER = "files of slots are not supported by this server: start it with --slot-save-path FOLDER"
NEEDS_PROMPT = (
    "prompt: it is missing: slots here belong to no client, so say which beginning is saved, as prompt or as messages"
)


class SlotRequest(BaseModel):
    """A file of the folder and, to save, the beginning of prompts that goes into it. Further fields change nothing."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str | None = None
    filename: str
    prompt: str | list[TokenId] | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None
    tools: list[dict[str, Any]] | None = None
    tools_in: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class SlotFiles:
    """The folder in which files of slots lie; None refuses every action. Raises OSError where it is not a folder."""

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(exist_ok=True)
        self._folder = folder

    def act(self, models: Models, slot: int, action: str | None, said: SlotRequest) -> dict[str, Any]:
        """Saves or restores.

        Raises:
            WireError: the server has no folder, the name of the file is none, or it is not there.
        """
        if self._folder is None:
            raise WireError(NEEDS_FOLDER, status=501, code="not_supported", headers=NO_RETRY)
        if action not in ACTIONS:
            may = (
                "slots are emptied when others need them" if action == "erase" else f"it may be {' or '.join(ACTIONS)}"
            )
            raise WireError(f"unknown action {action!r}: {may}", param="action")
        served = models.get_or_first(said.model)
        slots = 1 if served.model.engine is None else served.model.engine.slots
        if slot >= slots:
            raise WireError(f"unknown slot {slot}: {served.name} has slots 0 to {slots - 1}", param="id")
        if NAME.fullmatch(said.filename) is None:
            expected = "1 to 128 letters, digits, '.', '_' and '-' that begin with a letter or digit, without '..'"
            raise WireError(f"invalid filename: expected {expected}, got {said.filename!r}", param="filename")
        path = self._folder / said.filename
        began = time.monotonic()
        try:
            if action == "save":
                tokens = _tokens(served, said)
                served.model.save_prefix(path, tokens)
                size, done = ("n_saved", "n_written", "save_ms"), len(tokens)
            else:
                # A link may lead to a file outside the folder.
                if path.is_symlink() or not path.is_file():
                    raise WireError(
                        f"unknown file {said.filename!r}: action=save writes one", status=404, param="filename"
                    )
                size, done = ("n_restored", "n_read", "restore_ms"), served.model.load_prefix(path)
        except tokentrie.errors.ContextError:
            raise
        except tokentrie.errors.ModelError as error:
            raise self._file_error(served, action, said.filename, error) from None
        tokens_field, bytes_field, time_field = size
        return {
            "id_slot": slot,
            "filename": said.filename,
            tokens_field: done,
            bytes_field: path.stat().st_size,
            "timings": {time_field: (time.monotonic() - began) * 1000},
        }

    def _file_error(self, served: ServedModel, action: str, name: str, error: tokentrie.errors.ModelError) -> WireError:
        """The error of a model about a file, without the folder, which clients must not see."""
        if str(error).endswith("is closed"):
            return WireError("the server stops", status=503, code="stopping")
        told = in_http(str(error)).replace(f"{self._folder}/", "")
        if "fixed batching" in told:
            start = "start the server with --slots 2 or more, without --precise"
            told = f"{action} is not supported by {served.name}, whose passes are fixed: {start}"
            return WireError(told, status=501, code="not_supported", headers=NO_RETRY)
        return WireError(f"filename: {told}" if name not in told else told, param="filename")


def _tokens(served: ServedModel, said: SlotRequest) -> list[int]:
    """The tokens of the beginning, as a completion or a chat would have them."""
    vocab = served.model.vocab
    if (said.prompt is None) == (said.messages is None):
        if said.prompt is None:
            raise WireError(NEEDS_PROMPT, param="prompt")
        raise WireError("prompt and messages are both given: give one of them", param="messages")
    if said.prompt is not None and len(said.prompt) == 0:
        raise WireError("prompt: it is empty: nothing would be saved", param="prompt")
    if isinstance(said.prompt, str):
        served.check_room([said.prompt], "prompt")
        return [*vocab.tokenize(said.prompt, add_special=True, parse_special=True)]
    if said.prompt is not None:
        return said.prompt
    prompt = prompt_of(served, TemplateRequest.model_validate(said.model_dump(exclude={"filename", "prompt"})))
    # Conversations that go on have no reply where this one would.
    return tokens_of(served, prompt, len(prompt.text) - len(prompt.generation_prompt))
