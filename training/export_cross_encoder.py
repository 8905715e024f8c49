"""Exports the trained cross-encoder as one int8 ONNX file, and the exported weights as a folder for other libraries.

    python training/export_cross_encoder.py [--source training/scratch/cross/model] [--target DIR]
    python training/export_cross_encoder.py --as-folder DIR

The first form writes `src/leadline/models/weights/cross/model.onnx` and prints what the code that loads it has to pin.
The second turns the shipped file back into a folder that transformers, and so sentence-transformers' `CrossEncoder`,
reads: the same 8-bit weights, as 32-bit numbers. It needs the package onnx beside the training packages.
"""

import argparse
import hashlib
import json
import logging
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from crossencoder import MAX_TOKENS, TOKENIZER

TARGET = Path(__file__).parent.parent / "src/leadline/models/weights/cross"
SOURCE = Path(__file__).parent / "scratch" / "cross" / "model"
# Entries of the file's own description: where each weight went, and the architecture.
PLACES, CONFIG = "leadline.places", "leadline.config"
NEAR = 0.99  # cosine of a weight and its 8-bit form

Floats = NDArray[np.float32]


class Logit(torch.nn.Module):
    """The model as a function of three tensors, with one number a row."""

    def __init__(self, model: BertForSequenceClassification) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, types: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(input_ids=ids, token_type_ids=types, attention_mask=mask).logits[:, 0]
        return found


def export(source: Path, target: Path) -> None:
    """Writes `target` from a folder that `train.py` left."""
    model = BertForSequenceClassification.from_pretrained(source, attn_implementation="eager").eval()
    with tempfile.TemporaryDirectory() as name:
        plain, fused = Path(name) / "plain.onnx", Path(name) / "fused.onnx"
        plain_export(model, plain)
        options = FusionOptions("bert")
        options.use_multi_head_attention = True  # else the weights of attention are in a node that has no blocks
        fused_model = optimizer.optimize_model(
            str(plain), model_type="bert", num_heads=12, hidden_size=384, opt_level=0, optimization_options=options
        )
        fused_model.save_model_to_file(str(fused))
        quantise(fused, target)
    described(target, model)


def quantise(fused: Path, target: Path) -> None:
    """Turns the weights into 8 bits, with one scale for each 32 of them, and of the activations they meet.

    One scale for all activations of a run, as `quantize_dynamic` has it, takes a third less time and moves a logit by
    0.10 on the mean, blocks of 32 by 0.015: the sign is worth more.
    """
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer  # needs onnxscript

    logging.getLogger("onnxruntime.quantization").setLevel(logging.WARNING)
    blocks = MatMulNBitsQuantizer(str(fused), bits=8, block_size=32, is_symmetric=True, accuracy_level=4)
    blocks.process()
    with tempfile.TemporaryDirectory() as name:
        part = Path(name) / "blocks.onnx"
        blocks.model.save_model_to_file(str(part))
        quantize_dynamic(  # the word vectors
            str(part),
            str(target),
            op_types_to_quantize=["EmbedLayerNormalization"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )


def plain_export(model: BertForSequenceClassification, target: Path) -> None:
    """The model as ONNX, with the weights as they are."""
    sample = torch.ones((2, 16), dtype=torch.int64)
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(
        Logit(model.eval()),
        (sample, torch.zeros_like(sample), sample),
        str(target),
        dynamo=False,
        input_names=["input_ids", "token_type_ids", "attention_mask"],
        output_names=["logit"],
        dynamic_axes={
            "input_ids": axes,
            "token_type_ids": axes,
            "attention_mask": axes,
            "logit": {0: "batch"},
        },
        opset_version=17,
        do_constant_folding=True,
    )


def described(path: Path, model: BertForSequenceClassification) -> None:
    """Notes in the file where each weight of the model went, so that they can be taken out again."""
    graph = onnx.load(path)
    held = weights(graph)
    places = {name: place(value.detach().numpy(), held) for name, value in model.named_parameters()}
    config = {key: value for key, value in model.config.to_dict().items() if not key.startswith("_")}
    onnx.helper.set_model_props(graph, {PLACES: json.dumps(places), CONFIG: json.dumps(config)})
    onnx.save(graph, path)


def weights(graph: onnx.ModelProto) -> dict[str, Floats]:
    """Every tensor of the file, those in 8 bits as the numbers they stand for."""
    tensors = {each.name: numpy_helper.to_array(each) for each in graph.graph.initializer}
    found: dict[str, Floats] = {}
    for name, tensor in tensors.items():
        if name.endswith("_quantized"):
            stem = name.removesuffix("_quantized")
            scale, zero = tensors[f"{stem}_scale"], tensors[f"{stem}_zero_point"]
            found[name] = (tensor.astype(np.float32) - zero.astype(np.float32)) * scale
        elif tensor.dtype == np.float32 and not name.endswith("_scale"):
            found[name] = tensor
    for node in graph.graph.node:
        if node.op_type == "MatMulNBits":
            found[node.input[1]] = unblocked(node, tensors)
    return found


def unblocked(node: onnx.NodeProto, tensors: dict[str, Floats]) -> Floats:
    """The matrix of a MatMulNBits, inputs by outputs: its bytes stand for themselves less 128, times their block's
    scale."""
    sizes = {each.name: each.i for each in node.attribute}
    scales = tensors[node.input[2]].reshape(sizes["N"], -1, 1)
    values = (tensors[node.input[1]].reshape(sizes["N"], scales.shape[1], -1).astype(np.float32) - 128) * scales
    return np.ascontiguousarray(values.reshape(sizes["N"], -1)[:, : sizes["K"]].T)


def place(weight: Floats, held: dict[str, Floats]) -> list[object]:
    """Which tensor holds `weight`: its name, whether it lies there on its side, and from which column on."""
    best: tuple[float, list[object]] = (-1.0, [])
    for name, tensor in held.items():
        for turned in (False, True) if weight.ndim == 2 else (False,):
            shape = weight.T.shape if turned else weight.shape
            if tensor.ndim != weight.ndim or tensor.shape[:-1] != shape[:-1]:
                continue
            for start in range(0, tensor.shape[-1] - shape[-1] + 1, shape[-1]):
                part = tensor[..., start : start + shape[-1]]
                best = max(best, (cosine(part, weight.T if turned else weight), [name, turned, start]))
    if best[0] < NEAR:
        raise SystemExit(f"no tensor of the file holds the weight of shape {weight.shape}: nearest {best}")
    return best[1]


def cosine(one: Floats, other: Floats) -> float:
    """Of two tensors of one shape, read as vectors; 1 where both are nothing but zeros."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float((one * other).sum()) / lengths if lengths else float(np.array_equal(one, other))


def write_folder(path: Path, folder: Path) -> None:
    """The model in the file `path` as config, safetensors and tokenizer in `folder`."""
    graph = onnx.load(path)
    notes = {each.key: json.loads(each.value) for each in graph.metadata_props}
    held = weights(graph)
    model = BertForSequenceClassification(BertConfig(**notes[CONFIG]))
    state = {}
    for name, value in model.named_parameters():
        tensor, turned, start = notes[PLACES][name]
        width = value.shape[0] if turned else value.shape[-1]
        part = held[tensor][..., start : start + width]
        state[name] = torch.from_numpy(np.array(part.T if turned else part))
    model.load_state_dict(state, strict=False)
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_file=str(TOKENIZER),
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    ).save_pretrained(folder)


def main() -> None:
    """Exports one way or the other."""
    parser = argparse.ArgumentParser(description="Exports the cross-encoder.")
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("--target", type=Path, default=TARGET)
    parser.add_argument("--as-folder", type=Path, help="write the shipped model as a folder instead")
    arguments = parser.parse_args()
    path = arguments.target / "model.onnx"
    if arguments.as_folder:
        shutil.rmtree(arguments.as_folder, ignore_errors=True)
        write_folder(path, arguments.as_folder)
        return
    arguments.target.mkdir(parents=True, exist_ok=True)
    export(arguments.source, path)
    content = path.read_bytes()
    print(f"model.onnx: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
