"""Places of messages in the request that they were made from."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from tokentrie.serve.errors import REFUSALS, WireError, of_library

#: A message of a chat, as errors name it.
MESSAGE = re.compile(r"\bmessages\[(\d+)\]")


@contextlib.contextmanager
def in_places(places: list[str], response_format: str | None = None) -> Iterator[None]:
    """Names the field of the request that is wrong.

    `places` has that of each message of the chat, `response_format` that of the schema of its text.
    """

    def name_places(message: str) -> str:
        if response_format is not None:
            message = message.replace("response_format.json_schema", response_format)
        return MESSAGE.sub(lambda found: places[int(found[1])], message)

    try:
        yield
    except WireError as error:
        error.message, error.param = name_places(error.message), error.param and name_places(error.param)
        raise
    except REFUSALS as error:
        if not MESSAGE.match(str(error)):
            raise
        told = of_library(error)
        told.message = name_places(told.message)
        told.param = places[int(MESSAGE.match(str(error))[1])]  # type: ignore[index]
        raise told from None
