"""The embedded reranker: how well a passage bears on a question, as one logit with a zero point that means something.

A logistic layer over what `features.py` measures, with vectors from the embedded embedder; a second layer for single
sentences. Weights, zero points and term weights were fitted on judged questions by `training/fit_evidence.py` and are
fixed. Knows nothing of stores, nodes or settings. It tells what is on topic well and near misses badly: the card beside
the weights gives the figures. Construction does no I/O.
"""

import hashlib
import io
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline.errors import ModelUnavailable, RerankerRefused
from leadline.models import features
from leadline.models.features import TermWeights
from leadline.models.minilm import Encoded, MiniLM
from leadline.models.sign import check_sign, signed
from leadline.models.windows import cut

WEIGHTS = Path(__file__).parent / "weights" / "evidence"
SHA256 = {
    "layers.json": "ce5310e006f359adeed2ce8aff54596726ce678b484092dbb3ac28f3eaccf0d2",
    "terms.npz": "64ae5b7d5ad144dd4955324958f51827e29765705532e8ad1551d8f3691dce5d",
}
# Tokens of a passage that are scored together: what the layers were fitted on, and within the embedder's window.
ROOM = 200
# Of a question longer than this, the sentences that ask are scored by themselves too.
LONG_QUESTION = 64
KEPT_TEXTS = 128

ASKING = re.compile(r"[^.!?。！？\n]+[?？]")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Layer:
    """One weight for each of `features.NAMES`, and the intercept."""

    weights: NDArray[np.float64]
    intercept: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What the training script wrote."""

    passages: Layer
    sentences: Layer
    terms: TermWeights


class EvidenceScorer:
    """Scores passages by cosine, late interaction and shared terms.

    Long passages are scored by overlapping windows, the best one counts; of a long question the whole and each
    sentence that asks. About one embedding a window, and nothing for the passages of the last calls. `zero_point`
    is taken off every logit of a passage. Raises ModelUnavailable if a weight file is damaged, RerankerRefused if its
    probe fails.
    """

    name = f"evidence-1/{SHA256['layers.json'][:12]}"

    def __init__(self, encoder: MiniLM, folder: Path = WEIGHTS, *, zero_point: float = 0.0) -> None:
        self._encoder = encoder
        self._folder = folder
        self._zero_point = zero_point
        self._lock = threading.Lock()
        self._fit: Fit | None = None
        self._encoded = EncodedTexts(encoder)

    def load(self) -> None:
        """Loads the weights and probes their sign now instead of at the first score."""
        self._loaded()

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """One logit a passage, above 0 where it holds the answer; see `Reranker.score`."""
        fit = self._loaded()
        return [signed(logit - self._zero_point) for logit in self._logits(fit, fit.passages, question, passages)]

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        """One logit a sentence, by the layer that was fitted on sentences."""
        fit = self._loaded()
        return [signed(logit) for logit in self._logits(fit, fit.sentences, question, sentences)]

    def _loaded(self) -> Fit:
        with self._lock:
            if self._fit is None:
                fit = read(self._folder)
                check_sign(self.name, partial(self._logits, fit, fit.passages), self._zero_point)
                check_sign(self.name, partial(self._logits, fit, fit.sentences))
                self._fit = fit
            return self._fit

    def _logits(self, fit: Fit, layer: Layer, question: str, passages: Sequence[str]) -> list[float]:
        asked = focuses(question, self._encoder.token_spans(question))
        pieces = [(row, piece) for row, text in enumerate(passages) for piece in self._pieces(text)]
        encoded = self._encoded.get([*asked, *(piece for _, piece in pieces)])
        best = [-np.inf] * len(passages)
        for focus in asked:
            terms = features.asked_terms(focus, fit.terms)
            for row, piece in pieces:
                numbers = compare(terms, encoded[focus], piece, encoded[piece], fit.terms)
                # Signs without a word are all one to the model: what looks alike to it then need not be.
                known = float(numbers @ layer.weights) if terms else 0.0
                best[row] = max(best[row], known + layer.intercept)
        return best

    def _pieces(self, text: str) -> list[str]:
        return cut(text, self._encoder.token_spans(text), ROOM)


class EncodedTexts:
    """The encodings of the last KEPT_TEXTS texts: a retry scores the same passages against another question."""

    def __init__(self, encoder: MiniLM) -> None:
        self._encoder = encoder
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Encoded] = OrderedDict()

    def get(self, texts: Sequence[str]) -> Mapping[str, Encoded]:
        """The encoding of each text; those not kept are made in one call."""
        with self._lock:
            found = {text: self._kept[text] for text in texts if text in self._kept}
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        found.update(zip(missing, self._encoder.encode(missing), strict=True))
        with self._lock:
            for text, encoded in found.items():
                self._kept[text] = encoded
                self._kept.move_to_end(text)
            while len(self._kept) > KEPT_TEXTS:
                self._kept.popitem(last=False)
        return found


def compare(
    terms: dict[str, float], question: Encoded, passage: str, encoded: Encoded, weights: TermWeights
) -> NDArray[np.float64]:
    """The numbers of `features.NAMES` for one question and one passage of at most one window."""
    return features.measure(
        terms,
        passage,
        cosine=float(question.sentence @ encoded.sentence),
        similarities=question.tokens @ encoded.tokens.T,
        token_weights=weights.token_ids[question.token_ids],
    )


def focuses(question: str, spans: list[tuple[int, int]]) -> list[str]:
    """What is held against a passage: the question, and of a long one also what in it asks, else its last sentence.

    A long question is mostly a story before the question; no passage repeats the story.
    """
    if len(spans) <= LONG_QUESTION:
        return [question]
    asking = [match.group().strip() for match in ASKING.finditer(question)][-3:]
    last = [part for part in SENTENCE_END.split(question) if part.strip()][-1:]
    short = [part for part in asking or last if len(features.analyzer.query_terms(part)) >= 3]
    return list(dict.fromkeys([question, *short])) if short else [question, question[spans[-LONG_QUESTION][0] :]]


def read(folder: Path) -> Fit:
    """Reads the two files and checks them."""
    layers = json.loads(checked_bytes(folder, "layers.json"))
    if layers["features"] != list(features.NAMES):
        raise RerankerRefused(f"The layers in {folder} were fitted on other features.", hint="Fit them again.")
    with np.load(io.BytesIO(checked_bytes(folder, "terms.npz")), allow_pickle=False) as tables:
        names = tables["terms"].tobytes().decode("utf-8").split("\n")
        terms = TermWeights(
            terms=dict(zip(names, tables["weights"].astype(float).tolist(), strict=True)),
            unknown=float(layers["unknown_term"]),
            token_ids=tables["tokens"].astype(np.float32),
        )
    passages, sentences = (
        Layer(np.array(layers[kind]["weights"], dtype=np.float64), float(layers[kind]["intercept"]))
        for kind in ("passages", "sentences")
    )
    return Fit(passages, sentences, terms)


def checked_bytes(folder: Path, name: str) -> bytes:
    """The content of a weight file, only if it is the one that was shipped."""
    hint = "Install leadline again: the file belongs to the package."
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise ModelUnavailable(
            f"The reranker's file {folder / name} can't be read: {error.strerror}.", hint=hint
        ) from error
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise ModelUnavailable(f"The reranker's file {folder / name} is not the one that was shipped.", hint=hint)
    return content
