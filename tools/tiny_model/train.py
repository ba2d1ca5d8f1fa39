"""Train the tiny model: one uninterrupted run over a corpus that is drawn on the fly from the seed.

Two stages. From random weights it learns to choose, copy and label; from a GGUF, to chat with calls and thoughts:

    python train.py --out base --tokens 22000000
    python export.py --out base --to base.gguf
    python train.py --start base.gguf --out out --tokens 20000000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as functional
from tokenizers import Tokenizer
from torch import Tensor

from drawn import mix
from drawn.mix import GROWTH
from net import start
from net import tokenizer as bpe
from net.checkpoint import save
from net.guide import guide_loss
from net.induction import plant
from net.model import Shape, TinyLlama
from net.optimizer import Muon, split_parameters
from net.packing import Batch, Row, collate, encode

TOKENS_PER_STEP = 3072
WARM_UP = 60_000
HEAD_SHARE = 0.1
HEAD_WEIGHT = 0.3


@dataclass
class Schedule:
    """Learning rate and list size by the number of tokens seen."""

    total: int
    peak: float
    chats: bool
    stop: int

    def rate(self, seen: int) -> float:
        """Warm up, then decay linearly to nothing; a higher rate is too noisy for so small a batch."""
        return self.peak * min((seen + 1) / WARM_UP, max(0.0, 1 - seen / self.total))

    def guidance(self, seen: int) -> float:
        """Weight of the attention's own loss."""
        return max(0.1, 1 - 2 * seen / self.total)

    def done(self, seen: int) -> bool:
        """True when nothing is left to do."""
        return seen >= min(self.total, self.stop)


def rows(rng: Random, tokenizer: Tokenizer, length: int, count: int, seen: int, chats: bool) -> list[Row]:
    """`count` rows filled with documents."""
    filled = []
    for _ in range(count):
        row = Row()
        while (room := length - len(row.tokens)) > 40:
            [document] = encode(tokenizer, [mix.chat(rng, room) if chats else mix.draw(rng, seen, room)])
            head_weight = HEAD_WEIGHT if rng.random() < HEAD_SHARE else 0.0
            # As if the list were longer than it is: what is far away must still be found.
            far = (chats or seen > GROWTH) and document.head and rng.random() < 0.1
            if not row.add(document, length, head_weight, rng.randrange(4000) if far else 0):
                break
        filled.append(row)
    return filled


def batches(seed: int, tokenizer: Tokenizer, chats: bool) -> Iterator[Batch]:
    """Endless batches; short rows while lists are short, now and then long ones at the end."""
    rng = Random(seed)
    seen = 0
    while True:
        if chats:
            length = 768 if rng.random() < 0.9 else 1024
        else:
            length = 256 if seen < 0.6 * GROWTH else 512 if seen < GROWTH or rng.random() < 0.96 else 1024
        yield collate(rows(rng, tokenizer, length, TOKENS_PER_STEP // length, seen, chats), length)
        seen += TOKENS_PER_STEP


def learn_tokenizer(seed: int) -> Tokenizer:
    """Train the tokenizer on a sample of the corpus."""
    rng = Random(seed)
    documents = [mix.draw(rng, GROWTH + 1, 512) for _ in range(4000)]
    return bpe.train([d.head + "".join(b.prompt + b.answer for b in d.branches) for d in documents])


def loss_of(model: TinyLlama, batch: Batch, guidance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Weighted mean loss, the share of answer tokens predicted right and of guided places looked at rightly."""
    hidden, looks = model(batch.tokens, batch.positions, batch.mask)
    guide, found = guide_loss(looks, batch)
    scores = model.logits(hidden.flatten(0, 1)[batch.predict]).float()
    losses = functional.cross_entropy(scores, batch.targets, reduction="none")
    answers = batch.target_weight == 1
    right = (scores.argmax(-1) == batch.targets)[answers].float().mean()
    loss = (losses * batch.target_weight).sum() / batch.target_weight.sum()
    return loss + guidance * guide, right, found


def train(model: TinyLlama, tokenizer: Tokenizer, schedule: Schedule, seed: int, out: Path) -> None:
    """Run the schedule; the checkpoint in `out` is renewed every 200 steps."""
    for block in model.blk:
        block.compile(dynamic=False)
    matrices, rest = split_parameters(model)
    muon = Muon(matrices, learning_rate=0.02)
    adam = torch.optim.AdamW(rest, lr=4e-3, betas=(0.9, 0.98), weight_decay=0.0)
    begin, seen = time.monotonic(), 0
    for step, batch in enumerate(batches(seed + 1 + schedule.chats, tokenizer, schedule.chats)):
        if schedule.done(seen):
            break
        muon.scale = schedule.rate(seen)
        adam.param_groups[0]["lr"] = 4e-3 * muon.scale
        with torch.autocast("cpu", torch.bfloat16):
            loss, right, found = loss_of(model, batch, schedule.guidance(seen))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        muon.step()
        adam.step()
        model.zero_grad(set_to_none=True)
        seen += TOKENS_PER_STEP
        if step % 50 == 0:
            seconds = time.monotonic() - begin
            print(
                f"tokens {seen} of {schedule.total} rate {muon.scale:.2f} loss {loss.item():.3f} "
                f"right {right.item():.3f} found {' '.join(f'{f.item():.3f}' for f in found)} "
                f"seconds {seconds:.0f} tokens/s {seen / seconds:.0f}",
                flush=True,
            )
        if step % 200 == 199:
            save(out, model, tokenizer)
    save(out, model, tokenizer)
    print(f"{seen} tokens in {time.monotonic() - begin:.0f} seconds", flush=True)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("out"))
    parser.add_argument("--start", type=Path, help="a GGUF of the first stage, to teach it chats")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--tokens", type=int, default=22_000_000, help="token slots to train on")
    parser.add_argument("--stop", type=int, help="stop after so many, in the middle of the schedule")
    parser.add_argument("--rate", type=float, help="the highest learning rate: 0.4, and 0.3 with --start")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    if options.start:
        model, tokenizer = start.from_gguf(options.start)
    else:
        tokenizer = learn_tokenizer(options.seed)
        model = TinyLlama(Shape(tokenizer.get_vocab_size()))
        plant(model)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {model.shape}", flush=True)
    chats = options.start is not None
    peak = options.rate or (0.3 if chats else 0.4)
    schedule = Schedule(options.tokens, peak, chats, options.stop or options.tokens)
    train(model, tokenizer, schedule, options.seed, options.out)


if __name__ == "__main__":
    main()
