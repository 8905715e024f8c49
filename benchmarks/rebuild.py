"""How fast a vector index is built again from the catalog, against embedding its chunks once more.

    python benchmarks/rebuild.py [--chunks 100000]

Fills a data folder with the chunks of `made_up.py`, whose vectors come from a table: embedding so many takes an hour.
Then, without another call of that embedder (one would end the benchmark), the vector index is built four times:
`repair` after its folder was moved away, as `leadline verify --repair` does it, and `reindex` from the other backend.
Each is timed from opening the data folder to the report, and what it says and finds is checked.

Prints JSON: `faster` is the time of embedding over that of building. The time of embedding is scaled from a few hundred
passages of 128 tokens that the embedded model is given before and after each build.
"""

import argparse
import asyncio
import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

import made_up
from leadline import Library, Settings, load_settings, open_library
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.knowledge.places import folder as index_folder
from leadline.models import open_embedder
from leadline.models.base import Embedder, Vectors
from leadline.stores.catalog_collections import current_builds

PASSAGES, TOKENS = 256, 128
CHUNKS_A_SOURCE, CHUNKS_A_PUT = 10, 1000
LOOKED_UP = 20


class Table:
    """An embedder that has the vectors of all texts ready. When it is closed it embeds nothing any more."""

    name = "a table of ready vectors"
    dimension = made_up.WIDTH

    def __init__(self, texts: Sequence[str], vectors: Vectors, tokenizer: Embedder) -> None:
        self._rows: dict[str, Vectors] = dict(zip(texts, vectors, strict=True))
        self._tokenizer = tokenizer
        self.closed = False

    @property
    def max_tokens(self) -> int:
        """As the tokenizer's."""
        return self._tokenizer.max_tokens

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """As the tokenizer's."""
        return self._tokenizer.token_spans(text)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Their rows."""
        assert not self.closed, "the embedder was called"
        rows: Vectors = np.stack([self._rows[text] for text in texts])
        return rows

    def embed_query(self, text: str) -> Vectors:
        """The row of a text that is asked for."""
        return self._rows[text]


class Pace:
    """Passages a second of the embedded model, measured again and again."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._passages = [text[: embedder.token_spans(text)[:TOKENS][-1][1]] for text in texts]
        embedder.embed_query("loads the model")
        self.measured = [self._measure()]

    def seconds_for(self, chunks: int) -> float:
        """How long so many take at the mean pace of before and now."""
        self.measured.append(self._measure())
        return chunks / (sum(self.measured[-2:]) / 2)

    def _measure(self) -> float:
        begun = time.perf_counter()
        self._embedder.embed_passages(self._passages)
        return len(self._passages) / (time.perf_counter() - begun)


def drafts(texts: Sequence[str]) -> list[SourceDraft]:
    """Sources of these texts, as ingest hands them over."""
    made = []
    for start in range(0, len(texts), CHUNKS_A_SOURCE):
        chunks: list[ChunkDraft] = []
        for text in texts[start : start + CHUNKS_A_SOURCE]:
            at = chunks[-1].end_char + 1 if chunks else 0
            chunks.append(ChunkDraft(text, at, at + len(text)))
        digest = hashlib.sha256("\n".join(chunk.text for chunk in chunks).encode()).hexdigest()
        made.append(SourceDraft(f"{digest}.md", f"{digest}.md", digest, tuple(chunks)))
    return made


async def fill(settings: Settings, table: Table, texts: Sequence[str]) -> None:
    """Puts all of them in."""
    async with open_library(settings) as library:
        library.embedder = table
        base = await library.collection()
        for start in range(0, len(texts), CHUNKS_A_PUT):
            reports = await base.put(drafts(texts[start : start + CHUNKS_A_PUT]))
            assert all(report.status == "added" for report in reports)
    table.closed = True


async def repair(settings: Settings, table: Table, texts: Sequence[str]) -> float:
    """Moves the vector index away and has it made again; the time for that."""
    async with open_library(settings) as library:
        build = current_builds(library.catalog, "default")["vector"]
    lost = index_folder(settings.data_dir, "default", "vector", build)
    lost.rename(settings.data_dir / f"lost-{settings.vector_backend}")
    begun = time.perf_counter()
    async with open_library(settings) as library:
        library.embedder = table
        report = await (await library.collection()).repair()
        took = time.perf_counter() - begun
        assert (report.after.ok, report.added["vector"]) == (True, len(texts)), report
        await look_up(library, texts)
    return took


async def reindex(settings: Settings, table: Table, texts: Sequence[str]) -> float:
    """Builds the vector index of another backend; the time for that."""
    begun = time.perf_counter()
    async with open_library(settings) as library:
        library.embedder = table
        report = await library.reindex(recut=lambda draft: draft)
        took = time.perf_counter() - begun
        assert (report.legs, report.chunks) == (("vector",), len(texts)), report
        await look_up(library, texts)
    return took


async def look_up(library: Library, texts: Sequence[str]) -> None:
    """Raises unless the new index finds some chunks by their own vectors."""
    leg = (await library.retrievers())["vector"]
    for text in texts[:: max(1, len(texts) // LOOKED_UP)]:
        assert text in [found["content"] for found in await leg.search(text, k=10)]


async def measure(place: Path, chunks: int) -> dict[str, object]:
    """All figures."""
    texts = list(made_up.texts(chunks))
    faiss, chroma = (load_settings(data_dir=place / "data", vector_backend=name) for name in ("faiss", "chroma"))
    model = open_embedder("embedded")
    table = Table(texts, made_up.vectors(chunks), model)
    await fill(faiss, table, texts)
    import_module("chromadb")  # takes seconds, and so does loading the model
    pace = Pace(model, texts[:PASSAGES])
    faster, seconds = {}, {}
    for work, settings in ((repair, faiss), (reindex, chroma), (repair, chroma), (reindex, faiss)):
        what = f"{work.__name__}-{settings.vector_backend}"
        seconds[what] = await work(settings, table, texts)
        faster[what] = pace.seconds_for(len(texts)) / seconds[what]
    return {"chunks": len(texts), "embedder_passages_per_s": pace.measured, "seconds": seconds, "faster": faster}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(asyncio.run(measure(Path(place), chosen.chunks))))


if __name__ == "__main__":
    main()
