"""The embedded embedder: all-MiniLM-L6-v2 on onnxruntime, its weights shipped with the package.

Knows the two files under `weights/minilm`, their hashes, and how to run them fast on a CPU. Knows nothing of chunks,
stores or settings. Construction does no I/O: the files are read, checked and loaded at the first use.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.models import shipped
from leadline.models.base import Vectors

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

WEIGHTS = Path(__file__).parent / "weights" / "minilm"
SHA256 = {
    "model.onnx": "f61b7282501a797463c626ba831d33fbe8d6dffb5a325889b14480cd6833ca30",
    "tokenizer.json": "9114256b104cca80e04367526f03f46aa3c443c2ed174904142a73bbf13b9fbb",
}
MAX_TOKENS = 254
CLS, SEP = 101, 102

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in memory once the files were checked."""

    session: "onnxruntime.InferenceSession"
    tokenizer: "tokenizers.Tokenizer"


@dataclass(frozen=True, slots=True)
class Encoded:
    """What late interaction needs of one text: its vector, shape (384,); its n token vectors, shape (n, 384); its
    n token ids. All vectors have length 1. Special tokens are left out, so an empty text has n = 0; what lies beyond
    the window is cut."""

    sentence: Vectors
    tokens: Vectors
    token_ids: Ids


class MiniLM:
    """all-MiniLM-L6-v2 (Apache-2.0), English, 384 dimensions, a window of 254 tokens beside the two special ones.

    The weights are int8, which keeps the vectors within a cosine of 0.99 of the original's. Loading takes about
    0.2 s; a short query three milliseconds; one core embeds some 40 passages of 200 tokens a second.
    Raises ModelUnavailable at the first use if a file is missing or is not the one that was shipped.
    """

    name = f"all-MiniLM-L6-v2/int8-{SHA256['model.onnx'][:12]}"
    dimension = 384
    max_tokens = MAX_TOKENS

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: Loaded | None = None

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end character of each token of `text`, special tokens left out, nothing cut."""
        encoding = self._load().tokenizer.encode(encodable(text), add_special_tokens=False)
        return list(encoding.offsets)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384), float32, each row of length 1, in the order given.

        A text has the same vector whatever else is in the call, down to the last bit.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, (sentence,) in enumerate(self._run(self.token_ids(texts), ["sentence"])):
            vectors[row] = sentence
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Shape (384,), float32, length 1. The model has one form for questions and passages."""
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """For each text its vector and those of its tokens, at the cost of `embed_passages`."""
        ids = self.token_ids(texts)
        return [
            Encoded(sentence, tokens[1:-1] / np.linalg.norm(tokens[1:-1], axis=1, keepdims=True), row[1:-1])
            for (tokens, sentence), row in zip(self._run(ids, ["tokens", "sentence"]), ids, strict=True)
        ]

    def token_ids(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of each text, cut to the window, between `[CLS]` and `[SEP]`."""
        readable = [encodable(text) for text in texts]
        encodings = self._load().tokenizer.encode_batch_fast(readable, add_special_tokens=False)
        return [np.array([CLS, *encoding.ids[:MAX_TOKENS], SEP], dtype=np.int64) for encoding in encodings]

    def _run(self, ids: Sequence[Ids], outputs: list[str]) -> Iterator[list[Vectors]]:
        """One text a run, the runs side by side on all cores.

        The int8 kernels take one scale for all activations of a run. Texts that share a run would change each
        other's vectors (cosine down to 0.993), and on a CPU a shared run isn't any faster.
        """
        session = self._load().session

        def run(row: Ids) -> list[Vectors]:
            inputs = {"input_ids": row[np.newaxis], "attention_mask": np.ones((1, len(row)), dtype=np.int64)}
            return [output[0] for output in session.run(outputs, inputs)]

        if len(ids) == 1:
            yield run(ids[0])
            return
        with ThreadPoolExecutor(usable_cores()) as pool:
            yield from pool.map(run, ids)

    def _load(self) -> Loaded:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = load(self._folder)
        return self._loaded


def encodable(text: str) -> str:
    """`text` with a `?` for each lone surrogate, which the tokenizer would refuse; offsets stay the same."""
    return text.encode("utf-8", "replace").decode("utf-8")


def load(folder: Path) -> Loaded:
    """Reads both files, checks their hashes, and loads what was checked."""
    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = shipped.read(folder / "model.onnx", SHA256["model.onnx"])
    words = shipped.read(folder / "tokenizer.json", SHA256["tokenizer.json"])
    return Loaded(
        session=onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]),
        tokenizer=tokenizers.Tokenizer.from_buffer(words),
    )


def usable_cores() -> int:
    """Cores that this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
