"""Prompts of choices: a text as it is, or as a message in the model's chat template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import typer

import tokentrie


@dataclass(frozen=True)
class Turn:
    """Turn of a chat: the text is the user's message, after the system message if there is one."""

    chat: bool = False
    system: str | None = None
    prefix: str = ""
    """Text that begins the answer; values come after it."""

    def __post_init__(self) -> None:
        if self.system == "":
            raise typer.BadParameter(
                "it is empty: leave it out, --chat alone has no system message", param_hint="--system"
            )

    @property
    def is_chat(self) -> bool:
        """Returns True if the model's chat template is around the text."""
        return self.chat or self.system is not None

    def tokens(self, model: tokentrie.Model, text: Sequence[tuple[str, bool]]) -> list[int]:
        """The prompt of a text in parts, each with whether it is trusted. In a chat none is: all of it is content.

        Raises:
            TemplateError: the model's template refuses the messages.
        """
        if not self.is_chat:
            return model.vocab.tokenize_parts(text, add_special=True)
        messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        said = {"role": "user", "content": "".join(part for part, _ in text)}
        return model.chat_prompt([*messages, said], answer_prefix=self.prefix)
