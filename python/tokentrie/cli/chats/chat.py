"""`tokentrie chat`: a conversation with a model, on the terminal, a message a line, or a single message."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.chats import chat_tools
from tokentrie.cli.chats.chat_shown import EventPrinter, json_of
from tokentrie.cli.lines import Lines
from tokentrie.cli.loading import open_model
from tokentrie.cli.source import Hardware
from tokentrie.files import replacing
from tokentrie.results import CUT

ROUNDS = 8
HELP = "/reset begins anew, /save FILE.json writes the conversation, /quit ends"
Ask = Callable[[tokentrie.results.ToolCall], str | None]


@dataclass(frozen=True)
class Settings:
    """Settings of replies, from the options."""

    tool_choice: str
    tools_in: str
    thinking: bool
    thinking_budget: int | None
    max_tokens: int | None
    system: str | None
    temperature: float
    seed: int | None
    as_json: bool

    def options(self) -> dict[str, Any]:
        """Returns the keyword arguments of `Model.chat`."""
        if self.seed is not None and self.temperature == 0:
            raise typer.BadParameter("a seed needs a temperature: give --temperature", param_hint="--seed")
        options: dict[str, Any] = {
            "tools_in": self.tools_in,
            "enable_thinking": self.thinking,
            "thinking_budget": self.thinking_budget,
            "max_tokens": self.max_tokens,
        }
        if self.temperature != 0:
            options["sampling"] = tokentrie.Sampling("sampled", self.temperature, seed=self.seed)
        return options


class Session:
    """A conversation. `ask` gives results of tools that are not functions; None: nobody can be asked."""

    def __init__(
        self,
        model: tokentrie.Model,
        tools: tokentrie.Tools | None,
        settings: Settings,
        shown: EventPrinter,
        ask: Ask | None,
    ) -> None:
        self._model, self._tools, self._settings = model, tools, settings
        self._shown, self._ask = shown, ask
        self._options = settings.options()
        self._warned: set[str] = set()
        self.stoppable = False
        """True while Ctrl-C ends a reply and not the program."""
        self.said: list[Any] = []
        self.reset()

    def reset(self) -> None:
        """Begins a new conversation."""
        self.said = [{"role": "system", "content": self._settings.system}] if self._settings.system else []

    def turn(self, text: str) -> tokentrie.Message | None:
        """Answers a message; None if the user ended the reply. After an error the conversation is as before."""
        before = list(self.said)
        self.said.append({"role": "user", "content": text})
        try:
            message = self._answer()
        except tokentrie.errors.CancelledError as error:
            partial = error.partial
            # A tool call that was cut off cannot be rendered, and earlier calls of the reply have no results yet.
            if isinstance(partial, tokentrie.Message) and (partial.content or partial.reasoning):
                self.said.append(tokentrie.Message(partial.content, partial.reasoning))
            else:
                self.said = before
            self._shown.note("the reply was ended")
            return None
        except BaseException:
            self.said = before
            self._shown.end_line()
            raise
        if message.tool_calls and (self._ask is not None or self._runs):
            self._shown.note("calls that have no result are left out of the conversation")
            place = next(place for place, one in enumerate(self.said) if one is message)
            self.said[place:] = [tokentrie.Message(message.content, message.reasoning)]
        return message

    @property
    def _runs(self) -> bool:
        return self._tools is not None and bool(self._tools.functions)

    def _answer(self) -> tokentrie.Message:
        if self._runs:
            choice = self._settings.tool_choice
            # The toolbox calls `chat` below, so that every reply is shown.
            model: Any = self
            run = tokentrie.run_tools(model, self.said, self._tools, max_rounds=ROUNDS, tool_choice=choice)
            self.said = list(run.messages)
            return run.message
        choice = self._settings.tool_choice
        for number in range(ROUNDS):
            message = self.chat(self.said, self._tools, choice)
            self.said.append(message)
            if message.finish != "tool_calls" or self._ask is None or number == ROUNDS - 1:
                break
            for call in message.tool_calls:
                result = self._ask(call)
                if result is None:
                    return message
                self.said.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result})
            choice = "none" if choice == "none" else "auto"
        return message

    def chat(self, messages: list[Any], tools: tokentrie.Tools | None, choice: str) -> tokentrie.Message:
        """One reply, shown while it comes."""
        # It has the results of functions even if an error or Ctrl-C ends the reply.
        self.said = messages
        try:
            with console.collected_warnings() as warnings, self._stopping() as cancel:
                message = self._model.chat(
                    messages, tools, choice, stream=self._shown.event, cancel=cancel, **self._options
                )
        finally:
            self._shown.end_line()
        for warning in [*warnings, *message.warnings]:
            if warning not in self._warned:
                self._warned.add(warning)
                console.say(f"warning: {warning}")
        if message.finish in CUT and message.reasoning and not message.content:
            self._shown.note(_cut_off(message))
        self._shown.stats(message.stats)
        return message

    @contextmanager
    def _stopping(self) -> Iterator[tokentrie.CancelToken | None]:
        """Makes Ctrl-C end the reply that is being written; the text so far is kept."""
        if not self.stoppable:
            yield None
            return
        cancel = tokentrie.CancelToken()
        before = signal.signal(signal.SIGINT, lambda *_: cancel.cancel())
        try:
            yield cancel
        finally:
            signal.signal(signal.SIGINT, before)


def _cut_off(message: tokentrie.Message) -> str:
    """Advice for the line after a reply that was cut off before its content."""
    tokens = console.count(message.stats.tokens if message.stats else 0, "token", "tokens")
    return f"cut off while reasoning, after {tokens}: raise --max-tokens, or give a --thinking-budget below it"


def run(
    path: Path | None,
    tools_file: Path | None,
    may_run: bool,
    settings: Settings,
    prompt: str | None,
    hardware: Hardware,
) -> None:
    """Chats until there is nothing more to say."""
    watched = prompt is None and sys.stdin is not None and sys.stdin.isatty()
    if settings.as_json and watched:
        raise typer.BadParameter("it needs --prompt, or messages on standard input", param_hint="--json")
    if may_run and tools_file is None:
        raise typer.BadParameter("there is nothing to run: give --tools FILE.py", param_hint="--run")
    if prompt is None and str(tools_file) == "-":
        raise typer.BadParameter("standard input has the messages: give --prompt, or a file", param_hint="--tools")
    settings.options()
    shown: EventPrinter | None = None

    def show_result(name: str, result: str) -> None:
        if shown is not None:
            shown.result(name, result)

    tools = chat_tools.from_file(tools_file, may_run, show_result) if tools_file else None
    if may_run and not (tools and tools.functions):
        raise typer.BadParameter("--tools has no functions", param_hint="--run")
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers, hardware.draft)
    shown = EventPrinter(tools, settings.as_json)
    if prompt is not None:
        _say(Session(opened.model, tools, settings, shown, None), prompt, settings.as_json)
    elif watched:
        session = Session(opened.model, tools, settings, shown, _ask_for_result)
        session.stoppable = True
        shown.note(opened.line())
        if path is None:
            shown.note("it is the toy model inside the package: --model takes a GGUF model")
        shown.note(HELP)
        _talk(session, shown)
    else:
        with Lines(Path("-")) as lines:
            texts = (text.rstrip("\r\n") for _, text in lines.texts())
            session = Session(opened.model, tools, settings, shown, lambda call: next(texts, None))
            for text in texts:
                if text:
                    _say(session, text, settings.as_json)


def _say(session: Session, text: str, as_json: bool) -> None:
    message = session.turn(text)
    if as_json and message is not None:
        console.print_json(message.to_dict())


def _talk(session: Session, shown: EventPrinter) -> None:
    """On a terminal: messages and commands. An error there ends a turn, not the chat."""
    # It edits the line.
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401
    while True:
        try:
            text = input("> ").strip()
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            continue
        command, _, rest = text.partition(" ")
        try:
            if command == "/quit":
                return
            if command == "/reset":
                session.reset()
                shown.note("the conversation begins anew")
            elif command == "/save":
                _save(Path(rest.strip()), session) if rest.strip() else console.say("/save FILE.json: which file?")
            elif command.startswith("/"):
                console.say(f"no command {command}: {HELP}")
            elif text:
                session.turn(text)
        except KeyboardInterrupt:
            shown.note("interrupted: the message was not said")
        except BrokenPipeError:
            raise
        except OSError as error:
            console.say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except tokentrie.TokenTrieError as error:
            console.say(str(error))


def _save(path: Path, session: Session) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps(json_of(session.said), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    console.say(f"{path}: {console.count(len(session.said), 'message', 'messages')}")


def _ask_for_result(call: tokentrie.results.ToolCall) -> str | None:
    """The result of a call, from the user; None at the end of the input."""
    try:
        return input(f"result of {console.printable(call.name)}: ")
    except EOFError:
        print()
        return None
