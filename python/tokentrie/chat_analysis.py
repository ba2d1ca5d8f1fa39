"""Analysis of a chat template: `ChatFormat.analysis`."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ReasoningMarkers:
    """Markers of reasoning, by mode: "none", "optional", "opened-by-prompt" or "only-ended"."""

    mode: str
    start: str
    end: str
    calls_end_it: bool
    in_tool_turns_only: bool


@dataclass(frozen=True)
class ContentMarkers:
    """Markers of content, by mode: "plain", "wrapped" or "wrapped-with-reasoning"."""

    mode: str
    start: str
    end: str
    other_starts: list[str]


@dataclass(frozen=True)
class CallMarkers:
    """Markers and notation of tool calls.

    `function` and `arguments` say it in a word, `patterns` part by part; `section` is what stands around all calls,
    (start, end), `between` between two; `lines` says that calls are written over several lines.
    """

    function: str
    arguments: str
    section: tuple[str, str]
    list: bool
    between: Any
    parallel: bool
    lines: bool
    patterns: Any


@dataclass(frozen=True)
class GenerationPrompts:
    """Generation prompts: the text that begins a reply, with thinking on and off."""

    thinking: str
    not_thinking: str
    not_thinking_closes_reasoning: bool


@dataclass(frozen=True)
class TurnMarkers:
    """Markers that begin a turn."""

    user: str
    assistant: str


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a template."""

    object_arguments: bool
    parallel_tool_calls: bool
    preserve_reasoning: bool
    reasoning_effort: bool
    string_content: bool
    system_role: bool
    tool_calls: bool
    tools: bool
    typed_content: bool


class ChatAnalysis:
    """Findings about a chat template, made by comparing its renderings; from `ChatFormat.analysis`.

    Compares by content; can be pickled.

    Example:
        >>> analysis = tokentrie.Model().chat_format.analysis
        >>> (analysis.calls.function, analysis.calls.arguments)
        ('json-object', 'json')
        >>> analysis.generation_prompts.thinking
        '<|im_start|>assistant\\n'
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    @classmethod
    def from_json(cls, text: str) -> ChatAnalysis:
        """An analysis from its JSON.

        Args:
            text: what `json.dumps(analysis.to_dict())` gives.

        Returns:
            ChatAnalysis.

        Example:
            >>> import json
            >>> analysis = tokentrie.Model().chat_format.analysis
            >>> tokentrie.chat.ChatAnalysis.from_json(json.dumps(analysis.to_dict())) == analysis
            True
        """
        return cls(json.loads(text))

    def to_dict(self) -> dict[str, Any]:
        """All of it as a dict, for JSON.

        Returns:
            dict[str, Any].

        Example:
            >>> tokentrie.Model().chat_format.analysis.to_dict()["content"]["mode"]
            'plain'
        """
        return copy.deepcopy(self._found)

    @property
    def reasoning(self) -> ReasoningMarkers:
        """ReasoningMarkers: how reasoning is written."""
        return ReasoningMarkers(**self._found["reasoning"])

    @property
    def content(self) -> ContentMarkers:
        """ContentMarkers: how content is written."""
        return ContentMarkers(**self._found["content"])

    @property
    def calls(self) -> CallMarkers | None:
        """CallMarkers | None: how calls of tools are written; None where the template renders none."""
        found = self._found["tool_calls"]
        if found is None:
            return None
        section = (found["section"]["start"], found["section"]["end"])
        return CallMarkers(**{**found, "section": section})

    @property
    def generation_prompts(self) -> GenerationPrompts:
        """GenerationPrompts: what begins a reply, with thinking on and off."""
        return GenerationPrompts(**self._found["generation_prompt"])

    @property
    def turns(self) -> TurnMarkers:
        """TurnMarkers: what begins a turn."""
        return TurnMarkers(**self._found["turns"])

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities: what the template takes."""
        return Capabilities(**self._found["capabilities"])

    @property
    def joints(self) -> list[str]:
        """list[str]: texts between the messages of one reply."""
        return list(self._found["joints"])

    @property
    def stops(self) -> list[str]:
        """list[str]: texts that end a reply besides the end of its turn."""
        return list(self._found["stops"])

    @property
    def triggers(self) -> list[str]:
        """list[str]: texts that begin a call."""
        return list(self._found["triggers"])

    @property
    def preserved_tokens(self) -> list[str]:
        """list[str]: markers that must not be lost when tokens become text."""
        return list(self._found["preserved_tokens"])

    @property
    def families(self) -> list[str]:
        """list[str]: descriptions of facts that come from a table of formats, not from comparing."""
        return list(self._found["families"])

    @property
    def warnings(self) -> list[str]:
        """list[str]: oddities of the template."""
        return list(self._found["warnings"])

    @property
    def degraded(self) -> str | None:
        """str | None: the reply that a check of the analysis could not read; None if the check passed."""
        return self._found["degraded"]

    @property
    def differences(self) -> list[str]:
        """list[str]: replies that the response template reads differently, and parts of it that are not followed."""
        return list(self._found.get("differences", ()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChatAnalysis) and self._found == other._found

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        calls = self.calls
        written = f"calls as {calls.function} with arguments as {calls.arguments}" if calls else "no calls"
        return f"<tokentrie.chat.ChatAnalysis: reasoning {self.reasoning.mode}, content {self.content.mode}, {written}>"
