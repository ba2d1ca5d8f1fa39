"""What may come, byte by byte: every way to read a text is kept, as the parts that are still to come.

A state is a set of stacks; a stack is what must still be read, the next part on top. No part of a language is empty of
texts, so whatever still has a stack can be finished: what the machine allows never leads into a dead end.
"""

from __future__ import annotations

from .language import Language, Rules, utf8_ranges

DEAD = 0
"""The state that nothing leads out of."""
ACCEPTED = 0
"""The stack of a text that is whole."""


class LeftRecursionError(ValueError):
    """A rule begins with itself: this machine would open it for ever."""


class Machine:
    """The states of one language, made as they are met. `start` is the first one."""

    MOST_OPEN = 100_000

    def __init__(self, start: Language, rules: Rules | None = None) -> None:
        self._rules = rules or {}
        self._parts: list[Language] = []
        self._numbers: dict[int, int] = {}
        self._stacks: list[tuple[int, int]] = [(-1, -1)]
        self._stack_numbers: dict[tuple[int, int], int] = {}
        self._states: list[tuple[dict[int, set[int]], bool]] = [({}, False)]
        self._state_numbers: dict[frozenset[int], int] = {frozenset(): DEAD}
        self._steps: dict[tuple[int, int], int] = {}
        self._repeats: dict[tuple[int, int, int | None], Language] = {}
        self._bytes: dict[tuple[int, int], Language] = {}
        self.start = self._state([self._push(start, ACCEPTED)])

    def step(self, state: int, byte: int) -> int:
        """The state after one more byte; `DEAD` where it may not come."""
        found = self._steps.get((state, byte))
        if found is None:
            found = self._state(sorted(self._states[state][0].get(byte, ())))
            self._steps[state, byte] = found
        return found

    def after(self, data: bytes, state: int | None = None) -> int:
        """The state after some bytes."""
        state = self.start if state is None else state
        for byte in data:
            state = self.step(state, byte)
        return state

    def may_end(self, state: int) -> bool:
        """Whether what was read is a text of the language."""
        return self._states[state][1]

    def next_bytes(self, state: int) -> list[int]:
        """The bytes that may come."""
        return sorted(self._states[state][0])

    def forced(self, state: int, most: int = 200) -> bytes:
        """What must come, whatever is written: to the first place where two bytes may, or the text may end."""
        found = bytearray()
        while not self.may_end(state) and len(found) < most:
            following = self.next_bytes(state)
            if len(following) != 1:
                break
            found.append(following[0])
            state = self.step(state, following[0])
        return bytes(found)

    def _push(self, part: Language, rest: int) -> int:
        number = self._numbers.setdefault(id(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        stack = self._stack_numbers.setdefault((number, rest), len(self._stacks))
        if stack == len(self._stacks):
            self._stacks.append((number, rest))
        return stack

    def _state(self, stacks: list[int]) -> int:
        """The state of some stacks, with everything on top of them opened down to bytes."""
        opened: set[int] = set()
        following: dict[int, set[int]] = {}
        left = list(stacks)
        while left:
            stack = left.pop()
            if stack in opened:
                continue
            opened.add(stack)
            if len(opened) > self.MOST_OPEN:
                raise LeftRecursionError("a rule begins with itself")
            if stack == ACCEPTED:
                continue
            number, rest = self._stacks[stack]
            part = self._parts[number]
            if "byte" in part:
                low, high = part["byte"]
                for byte in range(low, high + 1):
                    following.setdefault(byte, set()).add(rest)
            else:
                left.extend(self._open(part, rest))
        key = frozenset(stack for stack in opened if stack == ACCEPTED or "byte" in self._parts[self._stacks[stack][0]])
        state = self._state_numbers.setdefault(key, len(self._states))
        if state == len(self._states):
            self._states.append((following, ACCEPTED in opened))
        return state

    def _open(self, part: Language, rest: int) -> list[int]:
        """The stacks that a part on top of another stack stands for."""
        if "text" in part:
            return [self._bytes_before([(byte, byte) for byte in part["text"].encode()], rest)]
        if "chars" in part:
            return [
                self._bytes_before(spelled, rest)
                for first, last in part["chars"]
                for spelled in utf8_ranges(first, last)
            ]
        if "seq" in part:
            for inner in reversed(part["seq"]):
                rest = self._push(inner, rest)
            return [rest]
        if "or" in part:
            return [self._push(inner, rest) for inner in part["or"]]
        if "rule" in part:
            return [self._push(self._rules[part["rule"]], rest)]
        least, most = part["min"], part["max"]
        found = [] if least else [rest]
        if most != 0:
            again = self._push(
                self._repeat(part["repeat"], max(0, least - 1), None if most is None else most - 1), rest
            )
            found.append(self._push(part["repeat"], again))
        return found

    def _bytes_before(self, ranges: list[tuple[int, int]], rest: int) -> int:
        for one in reversed(ranges):
            rest = self._push(self._bytes.setdefault(one, {"byte": one}), rest)
        return rest

    def _repeat(self, part: Language, least: int, most: int | None) -> Language:
        """One object for what is the same, so that equal stacks are one."""
        made = {"repeat": part, "min": least, "max": most}
        return self._repeats.setdefault((id(part), least, most), made)
