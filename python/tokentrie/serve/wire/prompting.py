"""Prompt of a request that asks about what may come after it: text, token ids, or a conversation."""

from __future__ import annotations

from typing import Any

from tokentrie.serve.errors import WireError
from tokentrie.serve.models import ServedModel
from tokentrie.serve.wire.asking import RequestPart
from tokentrie.serve.wire.chatting import prompt_of, template_options


class AfterPrompt(RequestPart):
    """The model of a request, and one of `prompt` and `messages`."""

    model: str | None = None
    prompt: str | list[int] | None = None
    messages: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    def check_prompt(self) -> None:
        """Refuses both or none of the two.

        Raises:
            WireError: as it says.
        """
        if (self.prompt is None) == (self.messages is None):
            raise WireError("give one of prompt and messages", param="prompt")

    def prompt_for(self, served: ServedModel) -> str | list[int]:
        """Returns the prompt as the library takes it."""
        if self.messages is None:
            assert self.prompt is not None
            return self.prompt
        return prompt_of(served, self.messages, template_options(self.chat_template_kwargs, thinks=False))


def prompt_tokens(served: ServedModel, prompt: str | list[int]) -> list[int]:
    """The tokens of a prompt."""
    return prompt if isinstance(prompt, list) else [*map(int, served.model.vocab.tokenize(prompt))]
