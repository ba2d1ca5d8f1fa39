"""Asks one engine all cases, and judges its answers."""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reference.masks import Tokens, digest
from reference.vocabulary import read_gguf, sha256

RIGHT, STRICT, LOOSE, BOTH = "right", "too strict", "too loose", "too strict and too loose"
REFUSED, CRASHED, HUNG = "refused", "crashed", "hung"
OUTCOMES = (RIGHT, REFUSED, STRICT, LOOSE, BOTH, CRASHED, HUNG)
CLOSE = 1e-3
"""How far a log-probability may be from that of the case: rows are single precision."""


class HungError(Exception):
    """No answer in time; the process was killed."""


class CrashedError(Exception):
    """The process ended, or answered with an error."""


class RefusedError(Exception):
    """The engine said no."""


@dataclass
class Verdict:
    """How a case ended, and what showed it."""

    outcome: str
    detail: str = ""
    states: int = 0
    mask_us: list[float] = field(default_factory=list)
    compile_us: float | None = None


class Process:
    """An adapter that runs, and is started again where it ended."""

    def __init__(self, command: list[str], seconds: float, env: dict[str, str] | None = None) -> None:
        self._command = command
        self._seconds = seconds
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, seconds: float | None = None, **what: Any) -> dict[str, Any]:
        """One question. Raises what `HungError`, `CrashedError` and `RefusedError` stand for."""
        process = self._process or self._start()
        try:
            print(json.dumps(what), file=process.stdin, flush=True)
            line = self._lines.get(timeout=seconds or self._seconds)
        except queue.Empty:
            self.stop()
            raise HungError(f"no answer to {what['do']} in {seconds or self._seconds:.0f} s") from None
        except OSError:
            line = ""
        if not line:
            code = process.wait()
            self.stop()
            raise CrashedError(f"the process ended at {what['do']} with {code}")
        try:
            said: dict[str, Any] = json.loads(line)
        except ValueError:
            raise CrashedError(f"no JSON in answer to {what['do']}: {line[:80]!r}") from None
        if "refused" in said:
            raise RefusedError(said["refused"])
        if "error" in said:
            raise CrashedError(said["error"])
        return said

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()
            process.wait()
            self._reader.join()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=self._env,
        )
        self._process, self._lines = process, queue.Queue[str]()
        self._reader = threading.Thread(target=self._read, args=(process, self._lines), daemon=True)
        self._reader.start()
        return process

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            lines.put(line)
        lines.put("")


class Judge:
    """One engine over one vocabulary after the other."""

    def __init__(self, process: Process, vocabularies: dict[str, Path]) -> None:
        self._process = process
        self._vocabularies = vocabularies
        self._loaded: object = None

    def judge_file(self, path: Path) -> Iterator[tuple[dict[str, Any], Verdict]]:
        """All cases of a file."""
        vocabulary: dict[str, Any] = {}
        with path.open(encoding="utf-8") as file:
            for line in file:
                case = json.loads(line)
                if "case" not in case:
                    vocabulary = self._found(case["vocabulary"])
                    if not vocabulary:
                        return
                    continue
                own = case.get("vocabulary")
                yield case, self.judge(case, {"tokens": own["tokens"], "eog": own["eog"]} if own else vocabulary)

    def judge(self, case: dict[str, Any], vocabulary: dict[str, Any]) -> Verdict:
        """Returns the verdict on one case."""
        verdict = Verdict(RIGHT)
        try:
            self._load(vocabulary)
            self._judge(case, verdict)
        except RefusedError as refused:
            verdict.outcome, verdict.detail = REFUSED, str(refused)
        except CrashedError as crashed:
            verdict.outcome, verdict.detail = CRASHED, str(crashed)
        except HungError as hung:
            verdict.outcome, verdict.detail = HUNG, str(hung)
        if verdict.outcome == REFUSED and (case.get("expect") or allows_nothing(case)):
            verdict.outcome = RIGHT
        return verdict

    def _found(self, about: dict[str, Any]) -> dict[str, Any]:
        if "tokens" in about:
            return about
        path = self._vocabularies.get(about["name"])
        if path is None:
            return {}
        found = read_gguf(path)
        if sha256(found.pieces) != about["sha256"]:
            return {}
        return {"tokens": [piece.hex() for piece in found.pieces], "eog": found.eog}

    def _load(self, vocabulary: dict[str, Any]) -> None:
        if self._loaded is vocabulary["tokens"] and self._process.is_running:
            return
        pieces = [bytes.fromhex(piece) for piece in vocabulary["tokens"]]
        self._eog = vocabulary["eog"]
        self._size = len(pieces)
        self._tokens = Tokens(pieces, others=self._eog)
        self._process.ask(60, do="vocabulary", tokens=vocabulary["tokens"], eog=self._eog)
        self._loaded = vocabulary["tokens"]

    def _judge(self, case: dict[str, Any], verdict: Verdict) -> None:
        if case["kind"] == "score":
            self._judge_score(case, verdict)
            return
        verdict.compile_us = self._process.ask(do="compile", kind=case["kind"], constraint=case["constraint"])["us"]
        if "walk" in case:
            self._judge_walk(case["walk"], verdict)
        elif "texts" in case:
            self._judge_texts(case["texts"], verdict)
        else:
            legal, end, _ = self._mask(verdict)
            if case["expect"] == "nothing" and (len(legal) or end):
                verdict.outcome, verdict.detail = LOOSE, f"{len(legal)} tokens may come where no text fits"

    def _judge_walk(self, steps: list[dict[str, Any]], verdict: Verdict) -> None:
        for number, step in enumerate(steps):
            if "take" in step:
                if "refused_at" in self._process.ask(do="advance", tokens=[step["take"]]):
                    verdict.outcome, verdict.detail = STRICT, f"step {number}: token {step['take']} is refused"
                    return
            elif "back" in step:
                self._process.ask(do="rollback", tokens=step["back"])
            legal, end, forced = self._mask(verdict, forced="forced" in step)
            if wrong := difference(step, legal, end):
                verdict.outcome, verdict.detail = wrong[0], f"step {number}: {wrong[1]}"
                return
            expected = bytes.fromhex(step.get("forced", ""))
            if forced is not None and not expected.startswith(bytes.fromhex(forced)):
                detail = f"step {number}: {bytes.fromhex(forced)!r} is said to be forced, where {expected!r} is"
                verdict.outcome, verdict.detail = STRICT, detail
                return
            verdict.states += 1

    def _judge_texts(self, texts: dict[str, list[str]], verdict: Verdict) -> None:
        wrong = {STRICT: "", LOOSE: ""}
        for text in texts["accept"]:
            if not self._accepts(text, verdict):
                wrong[STRICT] = wrong[STRICT] or f"{text!r} is refused"
        for text in texts["refuse"]:
            if self._accepts(text, verdict):
                wrong[LOOSE] = wrong[LOOSE] or f"{text!r} is accepted"
        found = [one for one in (STRICT, LOOSE) if wrong[one]]
        if found:
            verdict.outcome = BOTH if len(found) == 2 else found[0]
            verdict.detail = "; ".join(wrong[one] for one in found)

    def _accepts(self, text: str, verdict: Verdict) -> bool:
        self._process.ask(do="begin")
        tokens = self._tokens.spelled(text.encode())
        assert tokens is not None, "vocabularies of texts have every byte"
        if "refused_at" in self._process.ask(do="advance", tokens=tokens):
            return False
        verdict.states += 1
        return self._mask(verdict)[1]

    def _judge_score(self, case: dict[str, Any], verdict: Verdict) -> None:
        asked = {"constraint": case["constraint"], "model": case["model"], "size": self._size}
        found = np.array(self._process.ask(do="score", **asked)["logprobs"])
        expected = np.array(case["logprobs"])
        if found.shape != expected.shape or not np.allclose(found, expected, atol=CLOSE):
            verdict.outcome, verdict.detail = STRICT, f"{found[:4]} where {expected[:4]} is right"
        verdict.states = len(expected)

    def _mask(self, verdict: Verdict, forced: bool = False) -> tuple[np.ndarray, bool, str | None]:
        said = self._process.ask(do="mask", forced=forced)
        verdict.mask_us.append(said["us"])
        bits = np.unpackbits(np.frombuffer(base64.b64decode(said["bits"]), np.uint8), bitorder="little")[: self._size]
        end = said.get("end") or bool(bits[self._eog].any())
        bits[self._eog] = 0
        return np.flatnonzero(bits), end, said.get("forced")


def allows_nothing(case: dict[str, Any]) -> bool:
    """Whether no text of a constraint can be written in its vocabulary: who refuses it is right."""
    first = case.get("walk", [{"end": True}])[0]
    return not first["end"] and first["legal"] == []


def difference(step: dict[str, Any], legal: np.ndarray, end: bool) -> tuple[str, str] | None:
    """In which way an answer is wrong, and what shows it."""
    expected = step["legal"]
    strict = loose = ""
    if isinstance(expected, list):
        missing, extra = set(expected) - set(legal.tolist()), set(legal.tolist()) - set(expected)
        strict = f"token {min(missing)} is missing" if missing else ""
        loose = f"token {min(extra)} may come" if extra else ""
    elif digest(legal.tolist()) != expected["sha256"]:
        # A digest does not tell which; the count mostly tells in which way.
        counts = f"{len(legal)} tokens may come, where {expected['count']} are right"
        strict = counts if len(legal) <= expected["count"] else ""
        loose = counts if len(legal) >= expected["count"] else ""
    if end != step["end"]:
        strict, loose = (strict, loose or "it may end") if end else (strict or "it may not end", loose)
    if strict and loose:
        return BOTH, f"{strict}; {loose}"
    return (STRICT, strict) if strict else (LOOSE, loose) if loose else None


def run(process: Process, files: list[Path], vocabularies: dict[str, Path]) -> dict[str, Any]:
    """All cases of some files: what came of each, by kind."""
    about = process.ask(120, do="hello")
    kinds: dict[str, dict[str, Any]] = {}
    cases: dict[str, str] = {}
    judge = Judge(process, vocabularies)
    for path in files:
        for case, verdict in judge.judge_file(path):
            kind = "hostile" if case.get("expect") else case["case"].split(" ")[0]
            told = kinds.setdefault(
                kind, {"outcomes": dict.fromkeys(OUTCOMES, 0), "states": 0, "mask_us": [], "compile_us": []}
            )
            told["outcomes"][verdict.outcome] += 1
            told["states"] += verdict.states
            told["mask_us"] += verdict.mask_us
            told["compile_us"] += [verdict.compile_us] if verdict.compile_us is not None else []
            if verdict.outcome != RIGHT:
                detail = f": {verdict.detail[:120]}" if verdict.outcome != REFUSED else ""
                cases[case["case"]] = f"{verdict.outcome}{detail}"
    for told in kinds.values():
        for name in ("mask_us", "compile_us"):
            times = told.pop(name)
            told[name] = (
                {str(share): round(float(np.quantile(times, share)), 2) for share in (0.5, 0.99)} if times else None
            )
    process.stop()
    return {**about, "kinds": kinds, "files": " ".join(path.stem for path in files), "cases": cases}
