"""Conversations of every kind, as chat templates meet them."""

from __future__ import annotations

from typing import Any

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather \u2014 \u201ctoday\u201d <now> & 'then'",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": 'A "city"', "enum": ["Paris", "Z\u00fcrich"]},
                "days": {"type": ["integer", "null"], "default": 1e-07, "minimum": 0.1},
                "flag": {"type": "boolean", "default": True},
                "nest": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
                },
            },
            "required": ["city"],
        },
    },
}
TIME: dict[str, Any] = {
    "type": "function",
    "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
}
USER = {"role": "user", "content": "What is the weather?"}
SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "Sunny."}


def call(args: Any, i: str = "call_123456", name: str = "get_weather") -> dict[str, Any]:
    """A tool call."""
    return {"id": i, "type": "function", "function": {"name": name, "arguments": args}}


ARGS: dict[str, Any] = {
    "city": "Z\u00fcrich",
    "days": 3,
    "nest": [{"x": 0.1}, {"x": 1e-07}, {"x": 12345678901234567890}],
    "flag": False,
    "none": None,
}


def result(c: Any = '{"temp": 21.5}', i: str = "call_123456", n: str = "get_weather") -> dict[str, Any]:
    """What a tool gave."""
    return {"role": "tool", "tool_call_id": i, "name": n, "content": c}


def calls(*cs: Any, content: str | None = "") -> dict[str, Any]:
    """A message with tool calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(cs)}


def talk(**arguments: Any) -> dict[str, Any]:
    """What a template is rendered with."""
    return arguments


CONVERSATIONS: dict[str, dict[str, Any]] = {}
# Arguments of a rendering by what is special about them.
CONVERSATIONS["user"] = talk(messages=[USER])
CONVERSATIONS["no answer"] = talk(messages=[USER], add_generation_prompt=False)
CONVERSATIONS["system"] = talk(messages=[SYSTEM, USER])
CONVERSATIONS["multi turn"] = talk(
    messages=[
        SYSTEM,
        USER,
        ANSWER,
        {"role": "user", "content": "And tomorrow?"},
        {"role": "assistant", "content": "Rain."},
        {"role": "user", "content": "Thanks"},
    ]
)
CONVERSATIONS["ends with assistant"] = talk(messages=[USER, ANSWER], add_generation_prompt=False)
CONVERSATIONS["tools"] = talk(messages=[SYSTEM, USER], tools=[WEATHER, TIME])
CONVERSATIONS["tools no system"] = talk(messages=[USER], tools=[WEATHER])
CONVERSATIONS["empty tools"] = talk(messages=[USER], tools=[])
CONVERSATIONS["call dict"] = talk(messages=[USER, calls(call(ARGS)), result()], tools=[WEATHER])
CONVERSATIONS["call text"] = talk(
    messages=[USER, calls(call('{"city": "Paris", "days": 2}')), result()], tools=[WEATHER]
)
CONVERSATIONS["call answered"] = talk(
    messages=[USER, calls(call(ARGS)), result(), ANSWER, {"role": "user", "content": "ok"}], tools=[WEATHER]
)
CONVERSATIONS["parallel"] = talk(
    messages=[
        SYSTEM,
        USER,
        calls(
            call(ARGS, "call_000000001"), call({"city": "Paris"}, "call_000000002"), call({}, "call_000000003", "now")
        ),
        result("1", "call_000000001"),
        result("2", "call_000000002"),
        result("3", "call_000000003", "now"),
    ],
    tools=[WEATHER, TIME],
)
CONVERSATIONS["nine char ids"] = talk(
    messages=[USER, calls(call({"city": "Paris"}, "abcdefghi")), result("1", "abcdefghi")], tools=[WEATHER]
)
CONVERSATIONS["call without tools"] = talk(messages=[USER, calls(call(ARGS)), result()])
CONVERSATIONS["null content"] = talk(messages=[USER, calls(call(ARGS), content=None), result()], tools=[WEATHER])
CONVERSATIONS["missing content"] = talk(
    messages=[USER, {"role": "assistant", "tool_calls": [call(ARGS)]}, result()], tools=[WEATHER]
)
CONVERSATIONS["reasoning"] = talk(
    messages=[
        USER,
        {"role": "assistant", "reasoning_content": "Let me think.\nHm.", "content": "Sunny."},
        {"role": "user", "content": "Sure?"},
    ]
)
CONVERSATIONS["reasoning and call"] = talk(
    messages=[
        USER,
        {"role": "assistant", "reasoning_content": "think", "content": "", "tool_calls": [call(ARGS)]},
        result(),
    ],
    tools=[WEATHER],
)
CONVERSATIONS["think tags"] = talk(
    messages=[
        USER,
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSunny."},
        {"role": "user", "content": "Sure?"},
    ]
)
CONVERSATIONS["parts"] = talk(
    messages=[
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": " two"}]},
    ]
)
CONVERSATIONS["image"] = talk(
    messages=[{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what?"}]}]
)
CONVERSATIONS["developer"] = talk(messages=[{"role": "developer", "content": "Be brief."}, USER])
CONVERSATIONS["unicode"] = talk(
    messages=[
        SYSTEM,
        {"role": "user", "content": "\u00dc\u00f1\u00ef \U0001f600 \u200b \u2028 \x00\x07\x1b \t\r\n \u4f60\u597d"},
        {"role": "assistant", "content": "\ufeff\u00a0x"},
        {"role": "user", "content": "'\"\\ {{ x }} {% if %} {# #}"},
    ]
)
CONVERSATIONS["empty"] = talk(
    messages=[
        {"role": "system", "content": ""},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": ""},
    ]
)
CONVERSATIONS["blanks"] = talk(
    messages=[
        {"role": "system", "content": "  \n sys \n\n"},
        {"role": "user", "content": "  a  \n"},
        {"role": "assistant", "content": "\n\n b "},
        {"role": "user", "content": "\t c\n"},
    ]
)
CONVERSATIONS["numbers"] = talk(
    messages=[
        USER,
        calls(
            call(
                {
                    "a": 1e-07,
                    "b": 0.1,
                    "c": 10**17,
                    "d": 1e16,
                    "e": -0.0,
                    "f": 1.0,
                    "g": 123456789012345678,
                    "h": 1e22,
                    "i": [1, [2, [3, {}]], []],
                    "j": {"k": {"l": None}},
                    "m": 5e-324,
                    "n": 1.7976931348623157e308,
                    "o": 0.0001,
                    "p": 123456.789,
                }
            )
        ),
        result(),
    ],
    tools=[WEATHER],
)
CONVERSATIONS["thinking on"] = talk(messages=[SYSTEM, USER], variables={"enable_thinking": True})
CONVERSATIONS["thinking off"] = talk(messages=[SYSTEM, USER], variables={"enable_thinking": False})
CONVERSATIONS["thinking off tools"] = talk(
    messages=[SYSTEM, USER, ANSWER, USER],
    tools=[WEATHER],
    variables={"enable_thinking": False, "thinking": False, "reasoning_effort": "low"},
)
CONVERSATIONS["effort"] = talk(
    messages=[USER],
    tools=[WEATHER],
    variables={
        "reasoning_effort": "high",
        "builtin_tools": ["python", "browser"],
        "model_identity": "You are me.",
        "thinking": True,
    },
)
CONVERSATIONS["no messages"] = talk(messages=[])
CONVERSATIONS["only system"] = talk(messages=[SYSTEM])
CONVERSATIONS["assistant first"] = talk(messages=[ANSWER, USER])
CONVERSATIONS["two users"] = talk(messages=[USER, USER])
CONVERSATIONS["late system"] = talk(messages=[USER, ANSWER, SYSTEM, USER])
CONVERSATIONS["unknown role"] = talk(messages=[{"role": "critic", "content": "x"}, USER])
CONVERSATIONS["tool parts result"] = talk(
    messages=[USER, calls(call(ARGS)), result([{"type": "text", "text": "21"}])], tools=[WEATHER]
)
CONVERSATIONS["tool dict result"] = talk(
    messages=[USER, calls(call(ARGS)), result({"temp": 21.5, "ok": True, "n": None})], tools=[WEATHER]
)
CONVERSATIONS["bare tools"] = talk(messages=[USER], tools=[WEATHER["function"]])
CONVERSATIONS["bare calls"] = talk(
    messages=[USER, calls({"name": "get_weather", "arguments": ARGS}), result()], tools=[WEATHER]
)
CONVERSATIONS["consecutive results"] = talk(
    messages=[
        USER,
        calls(call(ARGS)),
        result("1"),
        result("2"),
        {"role": "assistant", "content": "done"},
        USER,
        calls(call({"city": "x"}), content="I look it up."),
        result("x"),
    ],
    tools=[WEATHER],
)
CONVERSATIONS["documents"] = talk(
    messages=[USER],
    variables={
        "documents": [{"title": "T", "text": "body", "doc_id": 1}],
        "date_string": "26 July 2024",
        "citations": True,
    },
)
CONVERSATIONS["everything"] = talk(
    messages=[
        SYSTEM,
        {"role": "user", "content": "Hi 'there' \"you\""},
        {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [call(ARGS)]},
        result(),
        {"role": "assistant", "content": "Fine.", "extra": [1, "a", {"b": (1.0)}]},
        {"role": "user", "content": "Bye"},
    ],
    tools=[WEATHER, TIME],
)
