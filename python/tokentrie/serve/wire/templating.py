"""`POST /apply-template` and `GET /props`, in the shapes of llama-server."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field

import tokentrie
from tokentrie.results import ChatPrompt
from tokentrie.serve.models import Models, ServedModel
from tokentrie.serve.wire.asking import refuse_media
from tokentrie.serve.wire.chatting import template_options, tools_of, variables_of


class TemplateRequest(BaseModel):
    """A conversation that is rendered and not answered."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    tools: list[dict[str, Any]] | None = None
    tools_in: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


def apply_template(models: Models, said: TemplateRequest) -> dict[str, Any]:
    """The text of the prompt that a chat would have."""
    return {"prompt": prompt_of(models.get_or_first(said.model), said).text}


def prompt_of(served: ServedModel, said: TemplateRequest) -> ChatPrompt:
    """The prompt that a chat would have."""
    for number, message in enumerate(said.messages):
        refuse_media(message, f"messages[{number}].")
    tools, options = tools_of(said.tools), template_options(said.chat_template_kwargs)
    written = served.model.chat_format
    if tools is not None:
        # Another word is refused there.
        written = written.with_tools_in(cast("Any", said.tools_in or served.tools_in))
    return written.prompt(
        said.messages,
        None if tools is None else tools.definitions,
        enable_thinking=options["enable_thinking"],
        **variables_of(options),
    )


def properties(served: ServedModel) -> dict[str, Any]:
    """Returns the properties that clients of llama-server look up first, of the first model."""
    model = served.model
    template = model.chat_format.template
    engine = model.engine
    return {
        "default_generation_settings": {
            "n_ctx": model.n_ctx,
            "params": {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "n_predict": -1, "stream": False},
        },
        "total_slots": 1 if engine is None else engine.slots,
        "model_alias": served.name,
        "model_path": str(model.path),
        "chat_template": template.text,
        "bos_token": template.bos,
        "eos_token": template.eos,
        "modalities": {"vision": False, "audio": False},
        "build_info": f"tokentrie {tokentrie.__version__}",
    }
