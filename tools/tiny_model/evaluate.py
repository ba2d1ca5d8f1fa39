"""Every figure of the table, on held-out questions; also writes `heldout.jsonl`.

python evaluate.py --out out
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from drawn import heldout
from drawn.chat import CALL_OPEN, IM_END, call
from drawn.heldout import Question
from net.checkpoint import load
from net.model import TinyLlama
from net.packing import EncodedDocument, Row, collate


def choice_scores(model: TinyLlama, tokenizer: Tokenizer, question: Question) -> tuple[list[list[int]], list[Tensor]]:
    """Token ids of each choice and, for each of its tokens, the scores over the vocabulary before it.

    One forward pass: the prompt is the head of a document, the choices are its branches. The scores after the
    last prompt token are the first row of every choice.
    """
    prompt = tokenizer.encode(question.prompt).ids
    choices = [e.ids for e in tokenizer.encode_batch(question.choices)]
    row = Row()
    length = len(prompt) + sum(map(len, choices))
    assert row.add(EncodedDocument(prompt, [[] for _ in choices], choices, [[] for _ in choices]), length, 0.0)
    batch = collate([row], length)
    with torch.no_grad():
        scores = model.logits(model(batch.tokens, batch.positions, batch.mask)[0])[0].log_softmax(-1)
    rows, start = [], len(prompt)
    for choice in choices:
        rows.append(torch.cat([scores[len(prompt) - 1][None], scores[start : start + len(choice) - 1]]))
        start += len(choice)
    return choices, rows


def exact(choices: list[list[int]], scores: list[Tensor]) -> int:
    """The choice of the highest probability as a whole sequence."""
    sums = [float(s[range(len(c)), c].sum()) for c, s in zip(choices, scores, strict=True)]
    return max(range(len(sums)), key=sums.__getitem__)


def walk(choices: list[list[int]], scores: list[Tensor]) -> int:
    """The choice that a constrained greedy walk ends in (no choice is a prefix of another)."""
    alive, depth = list(range(len(choices))), 0
    while len(alive) > 1:
        row = scores[alive[0]][depth]
        best = max({choices[i][depth] for i in alive}, key=lambda token: float(row[token]))
        alive = [i for i in alive if choices[i][depth] == best]
        depth += 1
        if any(len(choices[i]) == depth for i in alive):
            break
    return alive[0]


def judge_call(model: TinyLlama, tokenizer: Tokenizer, question: Question) -> tuple[bool, bool]:
    """Judges whether free greedy text after the opening tag names the right tool, and whether the whole call is right.

    Greedy text equals the expected one exactly when each of its tokens is the best after those before it, so one
    pass over the expected text answers both.
    """
    assert question.expected is not None
    text = call(question.answer, question.expected["arguments"]).removeprefix(CALL_OPEN) + IM_END
    name_ends = text.index('",')
    asked = replace(question, prompt=question.prompt + CALL_OPEN, choices=[text])
    [ids], [scores] = choice_scores(model, tokenizer, asked)
    right = (scores.argmax(-1) == torch.tensor(ids)).tolist()
    name_tokens = len(tokenizer.encode(text[:name_ends]).ids)
    return all(right[:name_tokens]), all(right)


def evaluate(model: TinyLlama, tokenizer: Tokenizer, drawn: list[Question]) -> dict[str, dict[str, float]]:
    """Shares of right answers by task and measure."""
    hits: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for question in drawn:
        result = hits[question.task]
        if question.expected is not None:
            name, whole = judge_call(model, tokenizer, question)
            result["call: name"].append(name)
            result["call: whole"].append(whole)
            continue
        choices, scores = choice_scores(model, tokenizer, question)
        result["exact"].append(question.choices[exact(choices, scores)] == question.answer)
        result["walk"].append(question.choices[walk(choices, scores)] == question.answer)
    return {task: {m: sum(v) / len(v) for m, v in by.items()} for task, by in hits.items()}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("out"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--per-task", type=int, default=200)
    parser.add_argument("--only", default="", help="only tasks whose name starts like this")
    parser.add_argument("--rows", type=int, default=0, help="write this many rows a task to heldout.jsonl")
    options = parser.parse_args()
    torch.set_num_threads(2)
    model, tokenizer = load(options.out)
    drawn = list(heldout.questions(options.seed, options.per_task))
    heldout.check_disjoint(drawn)
    if options.rows:
        heldout.write(drawn, options.rows)
    chosen = [q for q in drawn if q.task.startswith(options.only)]
    for task, measures in evaluate(model, tokenizer, chosen).items():
        print(f"{task:32}" + "  ".join(f"{m} {100 * v:5.1f} %" for m, v in measures.items()), flush=True)


if __name__ == "__main__":
    main()
