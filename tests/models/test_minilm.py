"""The embedded embedder."""

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.errors import ModelUnavailable
from leadline.models import open_embedder
from leadline.models.minilm import WEIGHTS, MiniLM

TEXTS = [
    "The pump must not run dry for more than thirty seconds.",
    "Short.",
    "Invoices are paid within 30 days of receipt. " * 12,
    "",
    "Wie lange darf die Pumpe trocken laufen?",
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    """One loaded model for the module."""
    return MiniLM()


def test_vectors_have_length_one_in_the_order_given(model: MiniLM) -> None:
    """Each row belongs to the text at its place and has length 1, an empty text included."""
    vectors = model.embed_passages(TEXTS)
    assert vectors.shape == (len(TEXTS), model.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.array_equal(model.embed_passages(TEXTS[::-1])[::-1], vectors)


def test_a_vector_does_not_depend_on_its_company(model: MiniLM) -> None:
    """Alone, in a batch, or twice: the same text has the same vector to the last bit."""
    together = model.embed_passages(TEXTS)
    alone = np.stack([model.embed_query(text) for text in TEXTS])
    assert np.array_equal(together, alone)
    assert np.array_equal(MiniLM().embed_query(TEXTS[0]), alone[0])


def test_no_texts_give_no_rows(model: MiniLM) -> None:
    """An empty list is legal."""
    assert model.embed_passages([]).shape == (0, model.dimension)


def test_likeness_follows_meaning(model: MiniLM) -> None:
    """A question is nearer to its answer than to another topic."""
    question = model.embed_query("How long may the pump run without liquid?")
    answer, other = model.embed_passages([TEXTS[0], TEXTS[2]])
    assert question @ answer > 0.5 > question @ other


def test_tokens_come_with_unit_vectors_and_ids(model: MiniLM) -> None:
    """Token vectors match the token spans one to one; an empty text has none."""
    for text, encoded in zip(TEXTS, model.encode(TEXTS), strict=True):
        count = min(len(model.token_spans(text)), model.max_tokens)
        assert encoded.tokens.shape == (count, model.dimension)
        assert encoded.token_ids.shape == (count,)
        assert np.allclose(np.linalg.norm(encoded.tokens, axis=1), 1.0, atol=1e-5)
        assert np.array_equal(encoded.sentence, model.embed_query(text))


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=200))
def test_token_spans_index_the_text(model: MiniLM, text: str) -> None:
    """Spans lie inside the text, in order, and cover every ASCII letter and digit."""
    spans = model.token_spans(text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert {place for place, sign in enumerate(text) if sign.isascii() and sign.isalnum()} <= covered


def test_spans_of_words_are_the_words(model: MiniLM) -> None:
    """Accents and case don't shift the offsets."""
    text = "Größe ÉTÉ pump"
    starts = [start for start, _ in model.token_spans(text)]
    assert {0, 6, 10} <= set(starts)
    assert model.token_spans(text)[-1] == (10, 14)


def test_spans_are_never_cut(model: MiniLM) -> None:
    """Text beyond the window is counted in full, while its vector is that of the window."""
    text = "word " * 1000
    assert len(model.token_spans(text)) == 1000
    assert np.array_equal(model.embed_query(text), model.embed_query("word " * model.max_tokens))


def test_a_lone_surrogate_is_one_character_as_any_other(model: MiniLM) -> None:
    """Half a character, as broken JSON brings it, neither raises nor shifts the offsets."""
    assert model.token_spans("a \ud800 b")[-1] == (4, 5)
    assert np.isfinite(model.embed_query("a \ud800 b")).all()


@pytest.mark.parametrize("text", ["a" * 300_000, "京" * 50_000])
def test_a_huge_line_is_embedded(model: MiniLM, text: str) -> None:
    """One endless word or line takes linear time."""
    assert np.isfinite(model.embed_query(text)).all()


def test_many_threads_load_once_and_agree() -> None:
    """Threads that meet at the first use get the same vectors."""
    shared, found = MiniLM(), []
    threads = [threading.Thread(target=lambda: found.append(shared.embed_query("pump"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(np.array_equal(vector, found[0]) for vector in found)


def test_weights_that_were_touched_are_refused(tmp_path: Path) -> None:
    """A changed or missing file is an error that names it; opening alone reads nothing."""
    opened = MiniLM(tmp_path)
    with pytest.raises(ModelUnavailable, match=r"model\.onnx can't be read"):
        opened.embed_query("x")
    (tmp_path / "model.onnx").write_bytes((WEIGHTS / "model.onnx").read_bytes()[:-1] + b"x")
    with pytest.raises(ModelUnavailable, match=r"model\.onnx is not the one"):
        opened.embed_query("x")


def test_the_setting_embedded_opens_it() -> None:
    """The default setting needs no name and no network, and its identity carries the hash of the weights."""
    opened = open_embedder("embedded")
    assert isinstance(opened, MiniLM)
    assert opened.name.startswith("all-MiniLM-L6-v2/int8-")
