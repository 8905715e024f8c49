"""Models of the sentence-transformers library, by hub name or folder: an embedder and a reranker.

Needs the extra `sentence-transformers`. Knows the library; `folders.py` knows where weights come from. No code of a
model's repository is run. Construction does no I/O; the library is imported and the weights are read at the first use.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.errors import ModelUnavailable, RerankerRefused
from leadline.models.base import Vectors
from leadline.models.folders import find, first_line, identity
from leadline.models.sign import check_sign, signed
from leadline.models.windows import cut

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

# No code of a model's repository, no look-up at the hub, no pickle.
SAFE: dict[str, Any] = {
    "trust_remote_code": False,
    "local_files_only": True,
    "model_kwargs": {"use_safetensors": True},
}
# What a model reads when its own files don't say.
DEFAULT_WINDOW = 512
# Tokenizers without a limit give a number of thirty digits.
NO_LIMIT = 1_000_000
BATCH = 16


class SentenceTransformerEmbedder:
    """Any sentence-transformers model, with the prompts that its own files give for questions and for passages.

    Raises MissingExtra without the library, ModelUnavailable where there is no such model or it can't be used.
    """

    def __init__(self, setting: str) -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._model: SentenceTransformer | None = None

    @cached_property
    def name(self) -> str:
        """The setting and the hash, or the hub's revision, of its weights. Reads the weights, loads no model."""
        return identity(self._setting, find(self._setting))

    @property
    def dimension(self) -> int:
        with self._lock:
            dimension = self._load().get_embedding_dimension()
        if dimension is None:
            raise ModelUnavailable(f"The model {self._setting} doesn't say how wide its vectors are.")
        return int(dimension)

    @property
    def max_tokens(self) -> int:
        """Tokens of text that fit the window beside the special tokens and the longest of the model's prompts."""
        with self._lock:
            model = self._load()
            prompts = [len(model.tokenizer.encode(p, add_special_tokens=False)) for p in model.prompts.values()]
            return window(model) - int(model.tokenizer.num_special_tokens_to_add()) - max(prompts, default=0)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end character of each token of `text`, special tokens left out, nothing cut."""
        with self._lock:
            return spans(self._load().tokenizer, text)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), float32, each row of length 1, in the order given."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            vectors = self._load().encode_document(
                list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
            )
        return np.asarray(vectors, dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,), float32, length 1."""
        with self._lock:
            vector = self._load().encode_query(text, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vector, dtype=np.float32)

    def _load(self) -> "SentenceTransformer":
        """The caller holds the lock: the library's tokenizers change their settings while they run."""
        if self._model is None:
            folder = find(self._setting)
            from sentence_transformers import SentenceTransformer

            with loading(self._setting):
                self._model = SentenceTransformer(str(folder), **SAFE)
        return self._model


class HubCrossEncoder:
    """Any sentence-transformers cross-encoder with one output, read as a raw logit whatever its files ask for.

    `zero_point` is taken off every logit. Passages longer than the model reads are scored by overlapping windows, the
    best one counts; of a question longer than half the window, the end is kept. Raises MissingExtra, ModelUnavailable,
    and RerankerRefused if the sign of its output tells nothing.
    """

    def __init__(self, setting: str, *, zero_point: float = 0.0) -> None:
        self._setting = setting
        self._zero_point = zero_point
        self._lock = threading.Lock()
        self._model: CrossEncoder | None = None
        self._refusal: RerankerRefused | None = None

    @cached_property
    def name(self) -> str:
        """The setting and the hash, or the hub's revision, of its weights. Reads the weights, loads no model."""
        return identity(self._setting, find(self._setting))

    def load(self) -> None:
        """Loads the model and probes its sign now instead of at the first score."""
        with self._lock:
            if self._refusal is not None:
                raise self._refusal
            if self._model is None:
                self._model = self._probed()

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """One logit a passage; see `Reranker.score`."""
        self.load()
        with self._lock:
            assert self._model is not None
            logits = self._logits(self._model, question, passages)
        return [signed(logit - self._zero_point) for logit in logits]

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """The same as `score`: a cross-encoder reads a sentence as it reads a passage."""
        return self.score(question, sentences)

    def _probed(self) -> "CrossEncoder":
        folder = find(self._setting)
        import torch
        from sentence_transformers import CrossEncoder

        with loading(self._setting):
            model: CrossEncoder = CrossEncoder(str(folder), activation_fn=torch.nn.Identity(), **SAFE)
        try:
            if model.num_labels != 1:
                reason = f"The model {self._setting} has {model.num_labels} outputs; a reranker needs one."
                raise RerankerRefused(reason, hint="Name a cross-encoder trained for relevance.")
            check_sign(self._setting, partial(self._logits, model), self._zero_point)
        except RerankerRefused as refusal:
            self._refusal = refusal
            raise
        return model

    def _logits(self, model: "CrossEncoder", question: str, passages: Sequence[str]) -> list[float]:
        asked, room = fitted(model, question)
        cuts = [
            (row, piece) for row, text in enumerate(passages) for piece in cut(text, spans(model.tokenizer, text), room)
        ]
        if not cuts:
            return []
        logits = model.predict([(asked, piece) for _, piece in cuts], batch_size=BATCH, show_progress_bar=False)
        best = [-math.inf] * len(passages)
        for (row, _), logit in zip(cuts, logits, strict=True):
            value = float(logit)
            if math.isfinite(value):
                best[row] = max(best[row], value)
        return best


@contextmanager
def loading(setting: str) -> Iterator[None]:
    """Turns whatever the library raises over a model's files into ModelUnavailable."""
    try:
        yield
    except Exception as error:
        raise ModelUnavailable(
            f"The model {setting} could not be loaded: {first_line(error)}",
            hint="Check that it is a whole sentence-transformers model.",
        ) from error


def window(model: "CrossEncoder | SentenceTransformer") -> int:
    """How many tokens the model reads, special ones included."""
    stated = (model.max_seq_length, model.tokenizer.model_max_length)
    return min((int(value) for value in stated if value and value < NO_LIMIT), default=DEFAULT_WINDOW)


def spans(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Start and end character of each token, whatever the length of `text`."""
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    return [(int(start), int(end)) for start, end in encoding["offset_mapping"]]


def fitted(model: "CrossEncoder", question: str) -> tuple[str, int]:
    """The question, its end kept where it is longer than half the window, and the tokens left for a passage."""
    limit = window(model) - int(model.tokenizer.num_special_tokens_to_add(pair=True))
    asked = spans(model.tokenizer, question)
    if len(asked) > limit // 2:
        question = question[asked[-(limit // 2)][0] :]
    return question, limit - min(len(asked), limit // 2)
