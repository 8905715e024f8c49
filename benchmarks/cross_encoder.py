"""How fast the embedded cross-encoder reads pairs, beside onnxruntime alone, 32-bit weights and sentence-transformers.

    python benchmarks/cross_encoder.py [--pairs 120] [--rounds 3]

All read the same pairs, of 20 to 200 tokens, in the same process and by turns. `onnxruntime` is given ready inputs, one
pair a run, from as many threads as there are cores: what is left when nothing is tokenised, sorted or collected.
`batches` is the same file given the pairs sorted by length, 16 a run. The 32-bit model and sentence-transformers' are
made of the shipped file by `training/export_cross_encoder.py`. Needs the packages of the test extra. Prints JSON: pairs
a second, each over the cross-encoder's own.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime
import torch
from sentence_transformers import CrossEncoder as TorchCrossEncoder
from transformers import BertForSequenceClassification

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))

import made_up
from export_cross_encoder import plain_export, write_folder
from leadline.models.cross_encoder import WEIGHTS, CrossEncoder, Ids
from leadline.models.minilm import MiniLM, usable_cores

QUESTIONS = 4
BATCH = 16
NAMES = ("input_ids", "token_type_ids", "attention_mask")

Inputs = dict[str, Ids]


def session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """A model of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])


def asked(count: int) -> dict[str, list[str]]:
    """Questions, each with its share of passages of mixed lengths."""
    texts = list(made_up.texts(count))
    chance = random.Random(5)
    passages = [" ".join(text.split()[: chance.randint(15, 150)]) for text in texts]
    return {texts[n][:60]: passages[n::QUESTIONS] for n in range(QUESTIONS)}


def single(model: CrossEncoder, questions: dict[str, list[str]]) -> list[Inputs]:
    """Ready inputs of one pair each."""
    pairs = [pair for question, passages in questions.items() for pair in model.pairs(question, passages)]
    return [dict(zip(NAMES, (ids[None], types[None], np.ones_like(ids)[None]), strict=True)) for ids, types in pairs]


def batched(rows: Sequence[Inputs]) -> list[Inputs]:
    """Ready inputs of BATCH pairs each, of about the same length."""
    order = sorted(rows, key=lambda row: row["input_ids"].shape[1])
    made = []
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        width = max(row["input_ids"].shape[1] for row in part)
        made.append(
            {
                name: np.vstack([np.pad(row[name], ((0, 0), (0, width - row[name].shape[1]))) for row in part])
                for name in NAMES
            }
        )
    return made


def side_by_side(model: onnxruntime.InferenceSession, rows: Sequence[Inputs]) -> None:
    """Runs each on its own, on all cores."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        list(pool.map(lambda row: model.run(["logit"], row), rows))


def in_order(model: onnxruntime.InferenceSession, rows: Sequence[Inputs]) -> None:
    """Runs one after the other."""
    for row in rows:
        model.run(["logit"], row)


def contenders(folder: Path, count: int) -> dict[str, Callable[[], object]]:
    """Name → what reads all pairs once."""
    ours, questions = CrossEncoder(MiniLM()), asked(count)
    write_folder(WEIGHTS / "model.onnx", folder / "model")
    plain = folder / "plain.onnx"
    plain_export(BertForSequenceClassification.from_pretrained(folder / "model", attn_implementation="eager"), plain)
    theirs = TorchCrossEncoder(str(folder / "model"), activation_fn=torch.nn.Identity())
    rows = single(ours, questions)
    together = batched(rows)
    pairs = [(question, text) for question, passages in questions.items() for text in passages]
    small, wide, small_wide = session(WEIGHTS / "model.onnx", 1), session(plain, 1), session(WEIGHTS / "model.onnx", 0)
    return {
        "cross-encoder": lambda: [ours.logits(question, passages) for question, passages in questions.items()],
        "onnxruntime": lambda: side_by_side(small, rows),
        "onnxruntime, batches": lambda: in_order(small_wide, together),
        "onnxruntime, 32 bits": lambda: side_by_side(wide, rows),
        "sentence-transformers": lambda: theirs.predict(pairs, batch_size=BATCH, show_progress_bar=False),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        readers = contenders(Path(name), chosen.pairs)
        seconds: dict[str, list[float]] = {reader: [] for reader in readers}
        for number in range(chosen.rounds + 1):
            for reader, read in readers.items():
                begun = time.perf_counter()
                read()
                if number:  # the first loads
                    seconds[reader].append(time.perf_counter() - begun)
    pace = {reader: chosen.pairs / median(spent) for reader, spent in seconds.items()}
    own = pace["cross-encoder"]
    print(json.dumps({"pairs a second": round(own, 1), **{k: round(v / own, 2) for k, v in pace.items()}}))


if __name__ == "__main__":
    main()
