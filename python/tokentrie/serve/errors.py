"""Errors as clients read them: OpenAI's envelope, Anthropic's, and `detail` where System One is called."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from starlette.responses import JSONResponse

import tokentrie

#: Errors of the library that a request can cause.
REFUSALS = (tokentrie.TokenTrieError, TypeError, ValueError, OverflowError, RecursionError)
SYSTEM_ONE = "/v1/systemone"
MESSAGES = "/v1/messages"
RETRY_AFTER = "1"
#: Clients of OpenAI's API ask again where a status is 500 or more, unless they are told not to.
NO_RETRY = {"x-should-retry": "false"}
#: Names by which pydantic tells the type of a union: not steps of the path.
MEMBER = re.compile(r"(str|int|float|bool|dict|list)(\[.*\])?")
#: Beginning of messages that name the wrong option.
PLACE = re.compile(r"(([a-z_]+)(?:\[\d+\])*)(?:: | is | has )")


#: Names of the library, and those of HTTP fields and options of the server.
IN_HTTP = (
    (re.compile(r" \((a Model with a larger n_ctx has more|Trie\.open with verify=True)\)"), ""),
    (re.compile(r"or raise max_queue$"), "or start the server with a larger --max-queue"),
    (re.compile(r"give a larger n_ctx\b"), "start the server with a larger --ctx"),
    (re.compile(r"\bpenalty_last_n\b"), "repeat_last_n"),
    (re.compile(r"^texts\["), "input["),
    (re.compile(r'\btools_in="(\w+)"'), r'"tools_in": "\1"'),
    (re.compile(r"\ba str\b"), "a string"),
    (re.compile(r"\ba dict\b"), "an object"),
)


def in_http(message: str) -> str:
    """Returns a message of the library in the names of requests and options."""
    for pattern, name in IN_HTTP:
        message = pattern.sub(name, message)
    return message


class WireError(Exception):
    """Error of a request: its status, its text, and the field."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code
        self.headers, self.details = headers or {}, details

    @property
    def kind(self) -> str:
        """The `type` of the envelope."""
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return kinds.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")

    def envelope(self) -> dict[str, Any]:
        """The error as OpenAI's clients read it."""
        return {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}

    def anthropic_envelope(self) -> dict[str, Any]:
        """Returns the error as Anthropic's clients read it, with the field and the code that OpenAI's have."""
        kinds = {413: "request_too_large", 503: "overloaded_error"}
        kind = kinds.get(self.status, "api_error" if self.status >= 500 else self.kind)
        details = {} if self.details is None else {"details": self.details}
        return {"type": "error", "error": {**self.envelope(), "type": kind, **details}}

    def response(self, path: str, detail: list[dict[str, Any]] | None = None) -> JSONResponse:
        """The answer to a request to this path; `detail` is what System One's clients read of a faulty one."""
        if path.startswith(MESSAGES):
            return JSONResponse(self.anthropic_envelope(), self.status, self.headers)
        body: dict[str, Any] = {"error": self.envelope()}
        if path.rstrip("/") != SYSTEM_ONE:
            return JSONResponse(body, self.status, self.headers)
        if self.status != 400:
            body["detail"] = {"error_type": self.kind, "message": self.message}
            return JSONResponse(body, self.status, self.headers)
        place = ["body", *(self.param.split(".") if self.param else [])]
        body["detail"] = detail or [{"loc": place, "msg": self.message, "type": "value_error"}]
        return JSONResponse(body, 422, self.headers)


def of_validation(problems: Sequence[Any], path: str) -> JSONResponse:
    """The answer where a body is not what the format says; problems are those of pydantic."""
    place, message = _describe_problems(problems)
    detail = [{"loc": list(one["loc"]), "msg": one["msg"], "type": one["type"]} for one in problems]
    return WireError(message, param=place).response(path, detail)


def _describe_problems(problems: Sequence[Any]) -> tuple[str | None, str]:
    """The field that is wrong, and what is wrong with it."""

    first = problems[0]
    if first["type"] == "json_invalid":
        return None, f"invalid JSON in the body: {first['ctx']['error']}, at character {first['loc'][-1]}"
    # A value of a union has an error for each of its types; the error furthest inside the value is reported.
    own = [(_place(one), one["msg"]) for one in problems if one["loc"][:2] == first["loc"][:2]]
    place = max((steps for steps, _ in own), key=lambda steps: (len(steps), [int(s) for s in steps if s.isdecimal()]))
    said = list(dict.fromkeys(message for steps, message in own if steps == place))
    ways = " or ".join([said[0], *(message.removeprefix("Input should be ") for message in said[1:])])
    param = ".".join(place)
    return param or None, f"{param or 'the body'}: {ways}"


def _place(problem: Any) -> list[str]:
    return [str(step) for step in problem["loc"][1:] if not MEMBER.fullmatch(str(step))]


def of_library(error: Exception, fields: Collection[str] = ()) -> WireError:
    """Returns the answer to an error of the library: the request is invalid, or the server cannot serve it now.

    `fields` are those that a request may have: it is told which of them is wrong.
    """
    message = in_http(str(error))
    if isinstance(error, tokentrie.errors.QueueFullError):
        return WireError(message, status=429, code="queue_full", headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, tokentrie.errors.TimedOutError):
        return WireError(message, status=503, code="timeout", headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, tokentrie.errors.ContextError):
        message += ": shorten it, or start the server with a larger --ctx"
        return WireError(message, code="context_length_exceeded")
    if isinstance(error, tokentrie.errors.CancelledError):
        return WireError(message, status=503, code="cancelled", headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, tokentrie.TemplateError):
        # The message is that of the template about the conversation.
        return WireError(message, code="template_error")
    if isinstance(error, tokentrie.errors.ModelError):
        # Models are closed when the time to drain is over.
        if str(error).endswith("is closed"):
            return WireError("the server stops", status=503, code="stopping", headers={"Retry-After": RETRY_AFTER})
        return WireError(message, status=500)
    if isinstance(error, UnicodeEncodeError):
        return WireError("invalid text: half a surrogate pair")
    place = PLACE.match(message)
    return WireError(message, param=place[1] if place and place[2] in fields else None)
