"""The embedded cross-encoder: MiniLM-L6, fine-tuned to tell a passage that answers from one that doesn't.

It reads a question and a passage together and gives one logit. Knows its file under `weights/cross`, the form in which
it was trained to be asked, and how to run it fast on a CPU. Knows nothing of stores, nodes or settings. Construction
does no I/O: the file is read, checked and loaded at the first use. `training/README.md` says how it was made, the card
beside the weights what it can't do.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.models import shipped
from leadline.models.minilm import CLS, SEP, MiniLM, usable_cores

if TYPE_CHECKING:
    import onnxruntime

WEIGHTS = Path(__file__).parent / "weights" / "cross"
SHA256 = "a2d7fbb7f87ab5ee1e76ce0959692f24f49f804f94c25c5d96c6159aa570aaea"
# Tokens of a question and of a passage that are read, beside the three special ones. A longer question loses its
# beginning, since what it asks stands at its end; a longer passage its end.
MAX_QUESTION, MAX_PASSAGE = 64, 200

Ids = NDArray[np.int64]


class CrossEncoder:
    """One logit a pair. `encoder` is asked for token ids only: both models have the same tokens.

    Loading takes about 0.2 s; one core reads some 20 pairs of 190 tokens a second. Raises ModelUnavailable at the first
    use if the file is missing or is not the one that was shipped.
    """

    name = f"cross-encoder/int8-{SHA256[:12]}"

    def __init__(self, encoder: MiniLM, folder: Path = WEIGHTS) -> None:
        self._encoder = encoder
        self._folder = folder
        self._lock = threading.Lock()
        self._session: onnxruntime.InferenceSession | None = None

    def logits(self, question: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Shape (len(passages),): above 0 where the model takes the passage to hold the answer.

        One pair a run, since the int8 kernels take one scale for all activations of a run: so no pair changes
        another's logit and nothing is padded. The longest go first, so that all cores end at about the same time.
        """
        pairs = self.pairs(question, passages)
        found = np.zeros(len(pairs))
        session = self._load()

        def run(place: int) -> None:
            ids, types = pairs[place]
            inputs = {"input_ids": ids[None], "token_type_ids": types[None], "attention_mask": np.ones_like(ids)[None]}
            found[place] = session.run(["logit"], inputs)[0][0]

        order = sorted(range(len(pairs)), key=lambda place: -len(pairs[place][0]))
        if len(pairs) == 1:
            run(0)
        elif pairs:
            with ThreadPoolExecutor(usable_cores()) as pool:
                list(pool.map(run, order))
        return found

    def pairs(self, question: str, passages: Sequence[str]) -> list[tuple[Ids, Ids]]:
        """What the model reads of each pair: its token ids `[CLS] question [SEP] passage [SEP]`, and 1 where the
        passage is."""
        asked, *read = self._encoder.token_ids([question, *passages])
        first = np.array([CLS, *asked[1:-1][-MAX_QUESTION:], SEP])
        return [
            (
                np.concatenate([first, second[1:-1][:MAX_PASSAGE], [SEP]]),
                np.repeat(np.array([0, 1]), [len(first), min(len(second) - 2, MAX_PASSAGE) + 1]),
            )
            for second in read
        ]

    def _load(self) -> "onnxruntime.InferenceSession":
        with self._lock:
            if self._session is None:
                import onnxruntime

                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1
                content = shipped.read(self._folder / "model.onnx", SHA256)
                self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            return self._session
