"""How fast files go in, against the embedder alone on the same chunks, and whether time grows linearly.

Writes Markdown files of made-up sentences in words from the examples, ingests a fifth of them into one data folder and
all of them into another, and embeds the chunks of the smaller set without storing them, before and after. Prints one
JSON object: `throughput` is ingest over embedder (1.0: storing costs nothing), `growth` is the time for all over the
time for a fifth (5.0: linear). Usage: python benchmarks/ingest.py [chunks]
"""

import asyncio
import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from leadline import ingest_paths, load_settings, open_library
from leadline.ingest.prepare import prepare
from leadline.models import open_embedder

ROOT = Path(__file__).resolve().parents[1]
SECTIONS_PER_FILE = 10  # each becomes one chunk
SENTENCES_PER_SECTION = 9
WORDS_PER_SENTENCE = 12


def write_files(folder: Path, chunks: int) -> None:
    """Files that make about `chunks` chunks, the same ones every time."""
    found = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "examples").rglob("*.md")))
    words = re.findall(r"[a-z]{2,}", found)
    draw = random.Random(7)
    folder.mkdir()
    for number in range(chunks // SECTIONS_PER_FILE):
        sections = [section(draw, words, f"{number}.{part}") for part in range(SECTIONS_PER_FILE)]
        (folder / f"{number:04}.md").write_text("\n".join(sections), encoding="utf-8")


def section(draw: random.Random, words: list[str], name: str) -> str:
    """A heading with a paragraph under it."""
    sentences = (" ".join(draw.choices(words, k=WORDS_PER_SENTENCE)) for _ in range(SENTENCES_PER_SECTION))
    return f"## Section {name}\n\n" + " ".join(f"{sentence.capitalize()}." for sentence in sentences) + "\n"


def embedding_seconds(folder: Path) -> tuple[float, int]:
    """Time and number of chunks of the files, embedded in one call."""
    embedder = open_embedder("embedded")
    embedder.embed_query("loads the model")
    files = sorted(folder.iterdir())
    texts = [chunk.embedded_text for file in files for chunk in prepare(file, file.name, embedder).chunks]
    begun = time.perf_counter()
    embedder.embed_passages(texts)
    return time.perf_counter() - begun, len(texts)


async def ingest_seconds(folder: Path, data_dir: Path) -> tuple[float, int]:
    """Time and number of chunks of an ingest into a new data folder; opening it and loading the model not counted."""
    settings = load_settings(data_dir=data_dir)
    async with open_library(settings) as library:
        base = await library.collection()
        await asyncio.to_thread(library.embedder.embed_query, "loads the model")
        begun = time.perf_counter()
        await ingest_paths(base, [folder], settings)
        return time.perf_counter() - begun, await base.count()


def main(chunks: int) -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory() as place:
        small, large = Path(place) / "small", Path(place) / "large"
        write_files(small, chunks // 5)
        write_files(large, chunks)
        before, embedded = embedding_seconds(small)
        small_s, small_n = asyncio.run(ingest_seconds(small, Path(place) / "data-small"))
        after, _ = embedding_seconds(small)
        large_s, large_n = asyncio.run(ingest_seconds(large, Path(place) / "data-large"))
    embed_s = (before + after) / 2
    figures = {
        "chunks": [small_n, large_n],
        "embedder_chunks_per_s": embedded / embed_s,
        "ingest_chunks_per_s": small_n / small_s,
        "throughput": (small_n / small_s) / (embedded / embed_s),
        "growth": (large_s / large_n) / (small_s / small_n) * 5,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
