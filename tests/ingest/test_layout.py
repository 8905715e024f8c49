"""A stored source is cut anew without its file, and comes out as if the file had been read again."""

from dataclasses import replace
from pathlib import Path

import pytest

from leadline.drafts import SourceDraft
from leadline.ingest.layout import recut
from leadline.ingest.prepare import prepare
from leadline.models import open_embedder
from leadline.models.base import Embedder

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "documents").iterdir())
NOTES = (
    "# Harbour\n\nThe quay is long. It was built in 1907.\n\n## Cranes\n\n- Nine cranes\n- Two of them electric\n\n"
    "| crane | tonnes |\n|---|---|\n| A | 40 |\n| B | 63 |\n\n```\nlift(40)\nlower(40)\n```\n\n### Empty\n"
)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    """The embedded model, whose tokens chunks are measured by."""
    return open_embedder("embedded")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_cutting_anew_is_reading_anew(path: Path, embedder: Embedder) -> None:
    """For every format, with smaller and with larger chunks: same chunks, notes and layout."""
    stored = prepare(path, path.name, embedder, chunk_tokens=120)
    for tokens in (40, 250):
        assert recut(stored, embedder, tokens) == prepare(path, path.name, embedder, chunk_tokens=tokens)


def test_cutting_twice_ends_where_it_began(embedder: Embedder) -> None:
    """Nothing is lost on the way: headings, list items, tables and code come back."""
    stored = prepare(NOTES.encode(), "notes.md", embedder, chunk_tokens=200)
    finer = recut(stored, embedder, 32)
    assert len(finer.chunks) > len(stored.chunks)
    assert recut(finer, embedder, 200) == stored


def test_a_source_without_a_layout_stays_as_it_is(embedder: Embedder) -> None:
    """One that was put in through the library in chunks of the caller's own."""
    stored: SourceDraft = replace(prepare(NOTES.encode(), "notes.md", embedder), layout=None)
    assert recut(stored, embedder, 32) is stored
