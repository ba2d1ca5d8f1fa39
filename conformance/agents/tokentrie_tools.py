"""Adapter of tokentrie's Python package: a required call under the chat template of Hermes."""

from __future__ import annotations

import time
import warnings
from typing import Any

import tokentrie

#: Calls as JSON in tags, which most open models were trained on. It shows no tools: nothing here is a prompt.
TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class Tokentrie:
    """Constrains a reply to one call of a tool."""

    name = "tokentrie"
    version = tokentrie.__version__

    def __init__(self, vocabulary: str | None) -> None:
        if vocabulary is None:
            self._vocab = tokentrie.Model().vocab
        else:
            self._vocab = tokentrie.ChatFormat.from_gguf(vocabulary).vocab
        self._format = tokentrie.ChatFormat(TEMPLATE, self._vocab, tools_in="messages")
        self.settings = f"a vocabulary of {len(self._vocab):,} tokens"
        self.warnings: list[str] = []

    def compile(self, tools: list[dict[str, Any]]) -> None:
        """Raises RuntimeError with the reason if the tools cannot be held."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                self._constraint = self._format.constraint(tools, self._vocab, "required")
            except tokentrie.TokenTrieError as error:
                raise RuntimeError(str(error)) from error
        self.warnings = [str(one.message) for one in told]

    def masks(self) -> tuple[float, float]:
        """Returns the processor seconds of the mask of a reply's first token, and of that of a tool's name."""
        sampler = tokentrie.Sampler(self._vocab, self._constraint)
        begun = time.process_time()
        sampler.allowed()
        first = time.process_time() - begun
        for token in self._vocab.tokenize('<tool_call>\n{"name": "', parse_special=True):
            sampler.accept(token)
        begun = time.process_time()
        sampler.allowed()
        return first, time.process_time() - begun

    def accepts(self, name: str, arguments: str) -> bool:
        """Returns whether this call may be written, and the reply may end after it."""
        sampler = tokentrie.Sampler(self._vocab, self._constraint)
        text = f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        try:
            for token in self._vocab.tokenize(text, parse_special=True):
                sampler.accept(token)
        except tokentrie.TokenTrieError:
            return False
        return sampler.state == "complete"
