"""Constraints, vocabularies and walks, drawn from a seed."""

from __future__ import annotations

import random
import string

from .language import Language, Rules, chars, either, repeat, rule, seq, text

WORDS = [
    "cancel", "cancel_all", "can", "get_weather", "get_time", "get", "billing", "bill", "access", "sales", "red",
    "reddish", "blue", "größe", "naïve", "日本", "日曜", "東京", "🙂", "🙃", "e\u0301", "true", "false", "null",
    "a", "b", "ab", "abc", "abd", "Yes", "yes", "No", "no", "2024", "20", "2", "-1", "3.5", "SEND_MESSAGE", "SEND",
    "x y", "tab\there",
]  # fmt: skip
ALPHABETS = [
    chars("az"), chars("AZ"), chars("09"), chars("az", "AZ", "09", "_"), chars("ab"), chars(" ", "az"),
    chars("ая"), chars("一龥"), chars("àÿ", "az"), chars("🌀🙏"), chars("!~"), chars("09", "af"),
]  # fmt: skip
PUNCTUATION = [
    ",", ", ", ":", ": ", "-", "/", ".", "\n", " ", "_", "::", " = ", "|", "\\",
    '"', "'", "[", "]", "(", ")",
]  # fmt: skip


class Draw(random.Random):
    """What a case is drawn from."""

    def value(self) -> str:
        """A value of a set."""
        kind = self.random()
        if kind < 0.5:
            return self.choice(WORDS)
        if kind < 0.8:
            return self.choice(["_", "-", " ", "."]).join(self.choices(WORDS, k=self.randint(2, 3)))
        return "".join(self.choices(string.ascii_lowercase + string.digits, k=self.randint(1, 12)))

    def values(self, most: int = 60) -> list[str]:
        """A set of values, in the order in which they were drawn."""
        found = [self.value() for _ in range(self.randint(2, most))]
        # Some begin with another one.
        found += [one + self.choice(["s", "_now", " 2", "é"]) for one in found if self.random() < 0.15]
        return list(dict.fromkeys(found))

    def regular(self, depth: int = 3) -> Language:
        """A language without rules."""
        kind = self.random()
        if depth == 0 or kind < 0.3:
            if self.random() < 0.5:
                return text(self.choice(WORDS + PUNCTUATION))
            return self.counted(self.choice(ALPHABETS))
        if kind < 0.6:
            return seq(*(self.regular(depth - 1) for _ in range(self.randint(2, 4))))
        if kind < 0.85:
            return either(*(self.regular(depth - 1) for _ in range(self.randint(2, 4))))
        inner = self.regular(depth - 1)
        return self.counted(inner) if "repeat" not in inner else inner

    def counted(self, part: Language) -> Language:
        """A part that may come several times."""
        least, most = self.choice([(0, None), (1, None), (0, 1), (1, 3), (2, 2), (0, 4), (3, 8), (1, 12), (2, None)])
        return repeat(part, least, most)

    def grammar(self) -> tuple[Language, Rules]:
        """A language with rules that hold each other: brackets, lists, expressions, calls, tags."""
        makers = [self.expression, self.nested, self.call, self.document, self.tags]
        return self.choice(makers)()

    def expression(self) -> tuple[Language, Rules]:
        number = self.choice([repeat(chars("09"), 1), seq(chars("19"), repeat(chars("09"), 0, 3))])
        name = seq(chars("az"), repeat(chars("az", "09"), 0, 4))
        signs = self.sample(["+", "-", "*", "/", " and ", "=="], self.randint(1, 3))
        sign = either(*map(text, signs)) if len(signs) > 1 else text(signs[0])
        return rule("sum"), {
            "sum": seq(rule("item"), repeat(seq(sign, rule("item")))),
            "item": either(number, name, seq(text("("), rule("sum"), text(")"))),
        }

    def nested(self) -> tuple[Language, Rules]:
        opening, closing = self.choice([("(", ")"), ("[", "]"), ("{", "}"), ("<a>", "</a>"), ("begin ", " end")])
        leaf = self.regular(1)
        joint = text(self.choice([",", ", ", ";", "\n"]))
        return rule("value"), {
            "value": either(leaf, rule("list")),
            "list": seq(
                text(opening), repeat(seq(rule("value"), repeat(seq(joint, rule("value")))), 0, 1), text(closing)
            ),
        }

    def call(self) -> tuple[Language, Rules]:
        """A tool call as models write them: the name of a tool, and its arguments in JSON."""
        begin, end = self.choice(
            [("<tool_call>\n", "\n</tool_call>"), ("[TOOL_CALLS]", ""), ("```json\n", "\n```"), ("", "")]
        )
        names = either(*(seq(text(f'"{name}", "arguments": '), rule("object")) for name in self.sample(WORDS[:10], 3)))
        rules = self.json_rules()
        parts = [text(begin + '{"name": ') if begin else text('{"name": '), names, text("}" + end)]
        return seq(*parts), rules

    def document(self) -> tuple[Language, Rules]:
        return rule("value"), self.json_rules()

    def json_rules(self) -> Rules:
        """JSON without white space but what is drawn, with strings, numbers, arrays and objects."""
        comma, colon = text(self.choice([",", ", "])), text(self.choice([":", ": "]))
        printable = {"chars": [[0x20, 0x21], [0x23, 0x5B], [0x5D, 0x7E], [0xA0, 0x2FF]]}
        escape = seq(text("\\"), chars('"', "\\", "/", "b", "f", "n", "r", "t"))
        characters = either(printable, escape)
        return {
            "value": either(rule("string"), rule("number"), rule("object"), rule("array"), text("true"), text("null")),
            "string": seq(text('"'), repeat(characters, 0, self.choice([None, 8])), text('"')),
            "number": seq(repeat(text("-"), 0, 1), either(text("0"), seq(chars("19"), repeat(chars("09"), 0, 6)))),
            "array": seq(text("["), repeat(seq(rule("value"), repeat(seq(comma, rule("value")))), 0, 1), text("]")),
            "object": seq(text("{"), repeat(seq(rule("pair"), repeat(seq(comma, rule("pair")))), 0, 1), text("}")),
            "pair": seq(rule("string"), colon, rule("value")),
        }

    def tags(self) -> tuple[Language, Rules]:
        names = self.sample(["a", "b", "item", "list", "p"], 2)
        elements = {
            name: seq(
                text(f"<{name}>"), repeat(either(rule("inner"), repeat(chars("az", " "), 1, 6))), text(f"</{name}>")
            )
            for name in names
        }
        return rule(names[0]), {**elements, "inner": either(*map(rule, names))}

    def vocabulary(self, near: list[str]) -> list[bytes]:
        """Every byte, and pieces of texts: words, halves of characters, tokens that cross from one word to the next."""
        pieces = [bytes([byte]) for byte in range(256)]
        for _ in range(self.randint(40, 240)):
            data = self.choice(near + WORDS).encode()
            first = self.randrange(len(data)) if data else 0
            pieces.append(data[first : first + self.randint(2, 6)])
        pieces += [(self.choice(WORDS) + self.choice(PUNCTUATION)).encode() for _ in range(30)]
        pieces += [
            one.encode()
            for one in ["the", " the", " of", "ing", "\n\n", "  ", "00", "12", '":', '", "', "{}", "[]", "</"]
        ]
        found = list(dict.fromkeys(piece for piece in pieces if piece))
        self.shuffle(found)
        return found
