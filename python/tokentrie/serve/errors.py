"""Errors as clients read them: OpenAI's envelope, and `detail` beside it where System One is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse

import tokentrie

#: What a request can make the library raise.
REFUSALS = (tokentrie.TokenTrieError, TypeError, ValueError, OverflowError, RecursionError)
SYSTEM_ONE = "/v1/systemone"
RETRY_AFTER = "1"


class WireError(Exception):
    """What is wrong with a request: its status, in words, and which field."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code
        self.headers = headers or {}

    @property
    def kind(self) -> str:
        """The `type` of the envelope."""
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return kinds.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")

    def envelope(self) -> dict[str, Any]:
        """The error as OpenAI's clients read it."""
        return {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}

    def response(self, path: str, detail: list[dict[str, Any]] | None = None) -> JSONResponse:
        """The answer to a request to this path; `detail` is what System One's clients read of a faulty one."""
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
    first = problems[0]
    place = [str(step) for step in first["loc"] if step != "body"]
    message = f"{'.'.join(place) or 'the body'}: {first['msg']}"
    detail = [{"loc": list(one["loc"]), "msg": one["msg"], "type": one["type"]} for one in problems]
    return WireError(message, param=".".join(place) or None).response(path, detail)


def of_library(error: Exception) -> WireError:
    """What the library raised: what the request asks for cannot be, or the server cannot do it now."""
    if isinstance(error, tokentrie.QueueFullError):
        return WireError(str(error), status=429, code="queue_full", headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, tokentrie.TimedOutError):
        return WireError(str(error), status=503, code="timeout", headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, tokentrie.ContextError):
        return WireError(str(error), code="context_length_exceeded")
    if isinstance(error, tokentrie.CancelledError):
        return WireError(str(error), status=503, code="cancelled", headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, tokentrie.ModelError):
        return WireError(str(error), status=500)
    return WireError(str(error))
