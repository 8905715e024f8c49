"""What the killed processes were doing, and what a later one finds: sources in versions, told apart by their words.

A version's text names `Quokkaville` in each of its chunks, so that each leg of retrieval finds all of them when asked
for it, and a word of its own, such as `plan2`.
"""

import asyncio
import itertools
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from leadline.config import Settings
from leadline.drafts import SourceDraft
from leadline.ingest.layout import recut
from leadline.ingest.prepare import prepare
from leadline.knowledge import KnowledgeBase, Library, open_library
from leadline.models.minilm import MiniLM
from leadline.stores import open_vector_store
from leadline.stores.base import Policy

State = dict[str, int]  # name of a source → its version
Told = Callable[[State], None]
Action = Callable[[Library, Told], Awaitable[None]]

GONE: Final = 0  # the version of a source that isn't there
TOWN: Final = "Quokkaville"
TOKENS: Final = 40  # a chunk is a paragraph
EVERYTHING: Final = 200
VERSIONS: Final = 12
NAMES: Final = ("plan", "tide", "crane", "fees", "gulls", "ferry")
STORED: Final[State] = {"plan": 1, "tide": 1, "crane": 1}
TOKENIZER: Final = MiniLM()


def text(name: str, version: int) -> str:
    """The text of a version of a source: two to four paragraphs, of which two are in every version."""
    same = [f"In {TOWN} the paragraph {n} about {name} is the same in all of its versions." for n in range(2)]
    own = [f"The port of {TOWN} has the word {name}{version} in its paragraph {n}." for n in range(version % 3)]
    return "\n\n".join([f"{TOWN} begins with {name}{version}.", *own, *same])


@cache
def draft(name: str, version: int, tokens: int = TOKENS) -> SourceDraft:
    """The version of the source, as ingest prepares it."""
    return prepare(text(name, version).encode(), f"{name}.md", TOKENIZER, chunk_tokens=tokens)


def texts(name: str, version: int, tokens: int) -> list[str]:
    """The chunks of it, sorted."""
    return sorted(chunk.text for chunk in draft(name, version, tokens).chunks)


async def put(library: Library, told: Told, *, state: State) -> None:
    """Puts the versions in, all at once."""
    kb = await library.collection()
    reports = await kb.put([draft(*item) for item in state.items()])
    assert [report.error for report in reports] == [None] * len(state), reports
    told(state)


async def delete(library: Library, told: Told, *, name: str) -> None:
    """Deletes one source, if it is there."""
    kb = await library.collection()
    for source in await kb.find_sources(f"{name}.md"):
        await kb.delete(source.doc_id)
    told({name: GONE})


async def sync(library: Library, told: Told, *, state: State) -> None:
    """Puts the versions in, in batches of two, and removes all other sources. Tells of each when it is reported."""
    kb = await library.collection()

    async def upstream() -> AsyncIterator[SourceDraft]:
        for item in state.items():
            yield draft(*item)

    others = [source.file_name for source in await kb.list_sources()]
    async for report in (step := kb.sync(upstream(), policy=Policy(batch_size=4))):
        assert report.error is None
        told({name: version for name, version in state.items() if f"{name}.md" == report.uri})
    assert step.summary.pruned is not None
    assert not step.summary.pruned.skipped, step.summary
    told({name.removesuffix(".md"): GONE for name in others if name.removesuffix(".md") not in state})


async def clear(library: Library, told: Told) -> None:
    """Removes all."""
    kb = await library.collection()
    names = [source.file_name.removesuffix(".md") for source in await kb.list_sources()]
    await kb.clear()
    told(dict.fromkeys(names, GONE))


async def damage(library: Library, told: Told) -> None:
    """Takes two vectors and all of the words out of the indexes, behind the catalog's back."""
    indexes = library.settings.data_dir / "indexes" / "default"
    async with open_vector_store(library.settings.vector_backend, path=indexes / "vector") as store:
        await store.delete(sorted(await store.all_ids())[:2])
    await asyncio.to_thread(shutil.rmtree, indexes / "bm25")
    told({})


async def repair(library: Library, told: Told) -> None:
    """Puts back what the indexes lack."""
    report = await (await library.collection()).repair()
    assert report.after.ok, report.after
    told({})


async def reindex(library: Library, told: Told) -> None:
    """Builds the indexes as the settings say."""
    cut = partial(recut, tokenizer=library.embedder, chunk_tokens=library.settings.chunk_tokens)
    report = await library.reindex(recut=cut)
    assert not report.left
    told(STORED)


async def first_opening(library: Library, told: Told) -> None:
    """Makes the collection, where there is none."""
    await library.collection()
    told({})


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of these sources at random, for ever or so many."""

    names: Sequence[str]
    kinds: Sequence[str]
    seed: int
    count: int | None


async def change_at_random(library: Library, plan: Changes, begun: Told, done: Told) -> None:
    """Makes one change after the other. Says what each is to come to, before and after it."""
    dice = random.Random(plan.seed)
    for turn in itertools.count() if plan.count is None else range(plan.count):
        some = dict.fromkeys(dice.sample(plan.names, dice.randint(1, 3)), turn % VERSIONS + 1)
        kind = dice.choice(plan.kinds)
        after = some
        if kind == "delete":
            after = dict.fromkeys(list(some)[:1], GONE)
        elif kind == "sync":
            after = dict.fromkeys(plan.names, GONE) | some
        begun(after)
        if kind == "delete":
            await delete(library, _nobody, name=next(iter(after)))
        else:
            await {"put": put, "sync": sync}[kind](library, _nobody, state=some)
        done(after)


def _nobody(_: State) -> None:
    """Is told what is told otherwise."""


ACTIONS: Final[Mapping[str, Action]] = {
    "fill": partial(put, state=STORED),
    "put": partial(put, state={"ferry": 2}),
    "replace": partial(put, state={"plan": 2}),
    "delete": partial(delete, name="plan"),
    "sync": partial(sync, state={"plan": 2, "tide": 1, "ferry": 2}),
    "clear": clear,
    "damage": damage,
    "repair": repair,
    "reindex": reindex,
    "open": first_opening,
}


async def look(settings: Settings) -> dict[str, Any]:
    """What a process that opens the folder finds: each source's version, and all that is wrong with it."""
    async with open_library(settings) as library:
        kb = await library.collection()
        found = await state_of(kb, settings.chunk_tokens)
    found["problems"] += [*kb.problems, *await asyncio.to_thread(_left, settings, found["versions"])]
    return found


async def state_of(kb: KnowledgeBase, tokens: int = TOKENS) -> dict[str, Any]:
    """Each source's version, as all indexes and answers have it, and all that is wrong with the collection."""
    problems = list((await kb.verify()).problems)
    found = await _found(kb)
    chunks = {source.file_name.removesuffix(".md"): source.chunks for source in await kb.list_sources()}
    versions: State = {}
    for name in sorted({*chunks, *(name for leg in found.values() for name in leg)}):
        of_legs = {leg: sorted(of_leg.get(name, [])) for leg, of_leg in found.items()}
        same = [v for v in range(1, VERSIONS + 1) if texts(name, v, tokens) == of_legs["bm25"]]
        if (
            same
            and all(leg == of_legs["bm25"] for leg in of_legs.values())
            and chunks.get(name) == len(of_legs["bm25"])
        ):
            versions[name] = same[0]
        else:
            problems.append(f"{name} is not whole: {of_legs}, {chunks.get(name)} chunks")
    return {"versions": versions, "problems": problems}


async def _found(kb: KnowledgeBase) -> dict[str, dict[str, list[str]]]:
    """Leg → source → the texts of the chunks it finds, when asked for all."""
    found: dict[str, dict[str, list[str]]] = {}
    for leg, retriever in kb.retrievers().items():
        of_leg = found.setdefault(leg, {})
        for document in await retriever.search(TOWN, k=EVERYTHING):
            name = str(document["metadata"]["file_name"]).removesuffix(".md")
            of_leg.setdefault(name, []).append(document["content"])
    return found


def _left(settings: Settings, versions: State) -> list[str]:
    """Words of versions that are not there any more and still stand in the catalog's files."""
    files = [(path.name, path.read_bytes()) for path in settings.data_dir.glob("catalog.db*")]
    return [
        f"{name}{version} is gone and still in {file}"
        for file, content in files
        for name in NAMES
        for version in range(1, VERSIONS + 1)
        if version != versions.get(name) and f"begins with {name}{version}.".encode() in content
    ]
