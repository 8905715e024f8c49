"""How fast a vector index is built again from the catalog, against embedding its chunks once more.

    python benchmarks/rebuild.py [--chunks 100000]

Fills a data folder with the chunks of `made_up.py`, whose vectors come from a table: embedding so many takes an hour.
Then, without another call of that embedder (one would end the benchmark), the vector index is built four times:
`repair` after its folder was moved away, as `leadline verify --repair` does it, and `reindex` from the other backend.
Each is timed from opening the data folder to the report, and what it says and finds is checked.

Prints JSON: `faster` is the time of embedding over that of building, `processor` the same of the processor's time,
which says more on a machine that does other things as well. The time of embedding is scaled from a few hundred passages
of 128 tokens that the embedded model is given before and after each build.
"""

import argparse
import asyncio
import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the clock, and of the processor, all threads together."""

    clock: float
    processor: float


class Watch:
    """Runs from where it is made."""

    def __init__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> Spent:
        """What was spent since."""
        return Spent(time.perf_counter() - self._clock, time.process_time() - self._processor)


class Pace:
    """What the embedded model takes, measured again and again."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._passages = [text[: embedder.token_spans(text)[:TOKENS][-1][1]] for text in texts]
        embedder.embed_query("loads the model")
        self._last = self._measure()

    def for_chunks(self, chunks: int) -> Spent:
        """What so many take, by the mean of before and now."""
        before, self._last = self._last, self._measure()
        share = chunks / len(self._passages) / 2
        return Spent(share * (before.clock + self._last.clock), share * (before.processor + self._last.processor))

    def _measure(self) -> Spent:
        watch = Watch()
        self._embedder.embed_passages(self._passages)
        return watch.read()


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


async def repair(settings: Settings, table: Table, texts: Sequence[str]) -> Spent:
    """Moves the vector index away and has it made again; what that took."""
    async with open_library(settings) as library:
        build = current_builds(library.catalog, "default")["vector"]
    lost = index_folder(settings.data_dir, "default", "vector", build)
    lost.rename(settings.data_dir / f"lost-{settings.vector_backend}")
    watch = Watch()
    async with open_library(settings) as library:
        library.embedder = table
        report = await (await library.collection()).repair()
        spent = watch.read()
        assert (report.after.ok, report.added["vector"]) == (True, len(texts)), report
        await look_up(library, texts)
    return spent


async def reindex(settings: Settings, table: Table, texts: Sequence[str]) -> Spent:
    """Builds the vector index of another backend; what that took."""
    watch = Watch()
    async with open_library(settings) as library:
        library.embedder = table
        report = await library.reindex(recut=lambda draft: draft)
        spent = watch.read()
        assert (report.legs, report.chunks) == (("vector",), len(texts)), report
        await look_up(library, texts)
    return spent


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
    figures: dict[str, object] = {"chunks": len(texts)}
    for work, settings in ((repair, faiss), (reindex, chroma), (repair, chroma), (reindex, faiss)):
        built = await work(settings, table, texts)
        embedded = pace.for_chunks(len(texts))
        figures[f"{work.__name__}-{settings.vector_backend}"] = {
            "faster": embedded.clock / built.clock,
            "processor": embedded.processor / built.processor,
            "built": asdict(built),
            "embedded": asdict(embedded),
        }
    return figures


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(asyncio.run(measure(Path(place), chosen.chunks))))


if __name__ == "__main__":
    main()
