"""The embedded reranker: how well a passage bears on a question, as one logit with a zero point that means something.

A logistic layer over the logit of the embedded cross-encoder and what `features.py` measures with vectors from the
embedded embedder; a second layer, without the former, for single sentences. Weights, zero points and term weights were
fitted on judged questions by `training/fit_evidence.py` and are fixed. Knows nothing of stores, nodes or settings. The
cards beside the weights say how well it tells near misses. Construction does no I/O.
"""

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

from leadline.errors import RerankerRefused
from leadline.models import cross_encoder, features, shipped
from leadline.models.cross_encoder import CrossEncoder
from leadline.models.features import TermWeights
from leadline.models.minilm import Encoded, MiniLM
from leadline.models.sign import check_sign, signed
from leadline.models.windows import cut

WEIGHTS = Path(__file__).parent / "weights" / "evidence"
SHA256 = {
    "layers.json": "bbe8099eb262ce0847d1e818d7955d071579c888c9d9e544d91b55fee2c2e9d8",
    "terms.npz": "64ae5b7d5ad144dd4955324958f51827e29765705532e8ad1551d8f3691dce5d",
}
# Tokens of a passage that are scored together: what the layers were fitted on, and within the embedder's window.
ROOM = 200
# Of a question longer than this, the sentences that ask are scored by themselves too.
LONG_QUESTION = 64
KEPT_TEXTS = 128
CROSS = "cross"  # what a layer calls the cross-encoder's logit

# Read from a sentence's start only, and never twice: a long one without its mark would take time by its square.
ASKING = re.compile(r"(?<![^.!?。！？\n])[^.!?。！？\n]++[?？]")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Layer:
    """One weight for each of the numbers that `names` says, and the intercept."""

    names: tuple[str, ...]
    weights: NDArray[np.float64]
    intercept: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What the training script wrote."""

    passages: Layer
    sentences: Layer
    terms: TermWeights


class EvidenceScorer:
    """Scores passages by a cross-encoder, cosine, late interaction and shared terms.

    Long passages are scored by overlapping windows, the best one counts; of a long question the whole and each
    sentence that asks. A window costs one run of the cross-encoder and one embedding, the latter not for the passages
    of the last calls. `zero_point` is taken off every logit of a passage. Raises ModelUnavailable if a weight file is
    damaged, RerankerRefused if its probe fails.
    """

    name = f"evidence-2/{SHA256['layers.json'][:12]}+{cross_encoder.SHA256[:12]}"

    def __init__(self, encoder: MiniLM, folder: Path = WEIGHTS, *, zero_point: float = 0.0) -> None:
        self._encoder = encoder
        self._folder = folder
        self._zero_point = zero_point
        self._lock = threading.Lock()
        self._fit: Fit | None = None
        self._encoded = EncodedTexts(encoder)
        self._cross = CrossEncoder(encoder)

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
        read: dict[str, NDArray[np.float64]] = {}
        for focus in asked:
            terms = features.asked_terms(focus, fit.terms)
            numbers = [compare(terms, encoded[focus], piece, encoded[piece], fit.terms) for _, piece in pieces]
            if CROSS in layer.names:
                # The cross-encoder reads short questions: in place of a long one what it asks, which stands last.
                short = asked[-1] if focus is question else focus
                if short not in read:
                    read[short] = self._cross.logits(short, [piece for _, piece in pieces])
                numbers = [np.append(row, logit) for row, logit in zip(numbers, read[short], strict=True)]
            for (row, _), number in zip(pieces, numbers, strict=True):
                # Signs without a word are all one to the model: what looks alike to it then need not be.
                known = float(number @ layer.weights) if terms else 0.0
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
    layers = json.loads(shipped.read(folder / "layers.json", SHA256["layers.json"]))
    with np.load(io.BytesIO(shipped.read(folder / "terms.npz", SHA256["terms.npz"])), allow_pickle=False) as tables:
        names = tables["terms"].tobytes().decode("utf-8").split("\n")
        terms = TermWeights(
            terms=dict(zip(names, tables["weights"].astype(float).tolist(), strict=True)),
            unknown=float(layers["unknown_term"]),
            token_ids=tables["tokens"].astype(np.float32),
        )
    passages, sentences = (
        Layer(
            tuple(layers[kind]["features"]),
            np.array(layers[kind]["weights"], dtype=np.float64),
            float(layers[kind]["intercept"]),
        )
        for kind in ("passages", "sentences")
    )
    if passages.names != (*features.NAMES, CROSS) or sentences.names != features.NAMES:
        raise RerankerRefused(f"The layers in {folder} were fitted on other features.", hint="Fit them again.")
    return Fit(passages, sentences, terms)
