"""Retrieval over the entity graph: hops, order, exactness after deletions, figures, bounds."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, select
from tests.stores.plans import plans_of

from leadline.stores.base import ChunkRecord
from leadline.stores.catalog import Catalog
from leadline.stores.entity_graph import EntityGraphStore
from leadline.stores.entity_graph_schema import TABLES, graph_entities, graph_sizes, known_size
from leadline.stores.entity_walk import DAMPING, Mention, tie, walk
from leadline.stores.entity_walk import STEPS as WALK_STEPS
from leadline.stores.lease import hold_lease


def chunk(chunk_id: str, text: str, doc_id: str = "d", **fields: Any) -> ChunkRecord:
    """A chunk of text."""
    return ChunkRecord(chunk_id, doc_id, text=text, fields=fields)


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[Catalog]:
    """An open catalog that may be written."""
    catalog = Catalog(tmp_path)
    catalog.open()
    try:
        async with hold_lease(catalog, 5):
            yield catalog
    finally:
        catalog.close()


@pytest.fixture
async def graph(catalog: Catalog) -> AsyncIterator[EntityGraphStore]:
    """An empty graph."""
    async with EntityGraphStore(catalog, "default") as store:
        await store.ensure_ready()
        yield store


async def found(graph: EntityGraphStore, question: str, **options: Any) -> list[str]:
    """The ids found, best first."""
    return [hit.chunk_id for hit in await graph.search(question, k=10, **options)]


async def test_second_hop_goes_over_a_shared_entity(graph: EntityGraphStore) -> None:
    """A chunk that only shares an entity with one that mentions the question's is found, after it and below it."""
    await graph.upsert(
        [
            chunk("a", "It was Acme Corp that hired Dana Fox."),
            chunk("b", "Later on Dana Fox moved away."),
            chunk("c", "We saw Lyon."),
        ]
    )
    hits = await graph.search("what does acme corp do", k=10)
    assert [hit.chunk_id for hit in hits] == ["a", "b"]
    assert hits[0].score > 1 > hits[1].score > 0


@pytest.mark.parametrize(
    "question",
    ["what does acme pay bob", "WHAT DOES ACME CORP PAY", "Was zahlt die Acme Corp?", "acme corp's wages", "ACME"],
)
async def test_question_in_any_case_and_language(graph: EntityGraphStore, question: str) -> None:
    """A known name is found in lower case, in capitals and inside a German question."""
    await graph.upsert([chunk("a", "Acme Corp hired Dana Fox."), chunk("b", "They went to Lyon.")])
    assert await found(graph, question) == ["a"]


@pytest.mark.parametrize("question", ["Who?", "Wer hat was gesagt?", "what is it", "", "zebra"])
async def test_question_without_a_known_name_finds_nothing(graph: EntityGraphStore, question: str) -> None:
    """Question words are no entities, whatever the documents hold."""
    await graph.upsert([chunk("a", "Who knows? Wer weiß? What is it? Acme Corp knows.")])
    assert await found(graph, question) == []


async def test_unspaced_question(graph: EntityGraphStore) -> None:
    """Names in Japanese text are found inside a question without spaces."""
    await graph.upsert([chunk("a", "東京の本社は2019年に移転した"), chunk("b", "大阪の工場")])
    assert await found(graph, "本社はいつ移転した？") == ["a"]


async def test_more_mentions_rank_higher(graph: EntityGraphStore) -> None:
    """Repeated mention raises a chunk, so ties are rare; equal chunks come in the order of their ids."""
    await graph.upsert(
        [
            chunk("z", "We saw Lyon."),
            chunk("m", "We saw Lyon, then Lyon, then Lyon again."),
            chunk("b", "We saw Lyon."),
            chunk("a", "We saw Lyon."),
        ]
    )
    assert await found(graph, "lyon") == ["m", "a", "b", "z"]


async def test_direct_mentions_come_first(graph: EntityGraphStore) -> None:
    """However well connected, a chunk of the second hop stays behind one that mentions the question's entity."""
    await graph.upsert([chunk("a", "We saw Lyon, Acme Corp, Dana Fox, Omega Ltd.")])
    await graph.upsert([chunk("far", "Then Acme Corp, Dana Fox, Omega Ltd, Acme Corp, Dana Fox, Omega Ltd.")])
    await graph.upsert([chunk(f"n{n}", f"We saw Lyon and Place{n}X, Town{n}X, Road{n}X, Hill{n}X.") for n in range(5)])
    assert (await found(graph, "lyon"))[-1] == "far"
    assert len(await found(graph, "lyon")) == 7


async def test_very_common_entities_lead_nowhere(graph: EntityGraphStore) -> None:
    """An entity that a large share of the chunks mention is found when asked for, but isn't walked through."""
    await graph.upsert([chunk(f"c{n}", f"We at Acme Corp saw Town{n}X.") for n in range(60)])
    assert await found(graph, "town7x") == ["c7"]
    assert len(await graph.search("acme corp", k=100)) == 60


async def test_a_search_reads_no_more_than_the_neighbourhood(graph: EntityGraphStore, catalog: Catalog) -> None:
    """Nothing is looked for in all chunks or mentions of the collection, with or without a filter."""
    await graph.upsert([chunk(f"c{n}", f"We at Acme Corp saw Dana Fox{n % 3} and Town{n}X.") for n in range(30)])
    with plans_of(catalog) as steps:
        assert await found(graph, "acme corp in town7x")
        assert await found(graph, "acme corp in town7x", where={"doc_id": "d"})
    tables = ("graph_chunks", "graph_mentions", "graph_entities")
    wide = [step for step in steps if step.startswith("SCAN") or step.endswith("(collection=?)")]
    assert all(any(table in step for step in steps) for table in tables)
    assert [step for step in wide if step.split()[1] in tables] == []
    assert [step for step in steps if "TEMP B-TREE" in step] == []  # nothing is sorted: the indexes are in order


async def test_a_graph_without_a_noted_size(graph: EntityGraphStore, catalog: Catalog) -> None:
    """A graph of an earlier version is searched as it is, and its size is noted with the next change."""
    await graph.upsert([chunk("a", "It was Acme Corp that hired Dana Fox."), chunk("b", "Later on Dana Fox left.")])
    before = await graph.search("acme corp", k=10)
    with catalog.write() as connection:
        graph_sizes.drop(connection)
    async with EntityGraphStore(catalog, "default") as reopened:
        await reopened.ensure_ready()
        assert await reopened.search("acme corp", k=10) == before
        await reopened.upsert([chunk("c", "nothing")])
        with catalog.read() as connection:
            assert known_size(connection, "default") == await reopened.count() == 3


async def test_names_with_odd_signs(graph: EntityGraphStore, catalog: Catalog) -> None:
    """A name with quotes and backslashes leads on as any other does; one with a NUL does not, and goes with its
    chunks."""
    await graph.upsert([chunk("a", 'It was Acme Corp, 「"x\\y"」 and 「lyon\0x」.'), chunk("b", '「"x\\y"」 it was.')])
    await graph.upsert(
        [chunk("c", "「lyon\0x」 it was."), chunk("d", "it was 「lyon」."), chunk("e", "「lyon」 it was.")]
    )
    assert await found(graph, "acme corp") == ["a", "b"]
    await graph.delete(["a", "c"])
    with catalog.read() as connection:
        entities = connection.execute(select(graph_entities.c.entity)).scalars().all()
    assert sorted(entities) == ['"x\\y"', "lyon"]


async def test_filter_holds_for_neighbours_too(graph: EntityGraphStore) -> None:
    """A chunk that fails the filter is neither found nor walked through."""
    await graph.upsert(
        [
            chunk("a", "It was Acme Corp that hired Dana Fox.", year=1),
            chunk("b", "Later on Dana Fox joined Omega Ltd.", year=2),
            chunk("c", "There Omega Ltd grew.", year=1),
        ]
    )
    assert await found(graph, "acme corp", where={"year": 1}) == ["a"]
    assert await found(graph, "acme corp", where={"year": 2}) == []
    assert await found(graph, "dana fox", where={"year": {"$ne": 2}}) == ["a"]


async def test_stats_are_true_figures(graph: EntityGraphStore, catalog: Catalog) -> None:
    """Documents, entities and edges are counted from what is there, per source and per collection."""
    async with EntityGraphStore(catalog, "other") as other:
        await other.upsert([chunk("a", "We saw Lyon.")])
        await graph.upsert(
            [
                chunk("a", "We saw Lyon and Dana Fox.", "one"),
                chunk("b", "We saw Lyon.", "two"),
                chunk("c", "nothing", "three"),
            ]
        )
        assert await graph.stats() == {
            "backend": "sql",
            "count": 3,
            "documents": 3,
            "entities": 2,
            "edges": 3,
            "entities_per_source": {"one": 2, "two": 1, "three": 0},
        }
        await graph.clear()
        assert await graph.count() == 0
        assert await found(other, "lyon") == ["a"]


async def test_many_chunks_are_one_commit(graph: EntityGraphStore, catalog: Catalog) -> None:
    """Two hundred chunks are written together, replaced together and deleted together."""
    commits: list[Any] = []
    event.listen(catalog.engine, "commit", commits.append)
    chunks = [chunk(f"c{n}", f"We at Acme Corp saw Town{n}X.") for n in range(200)]
    for change in (graph.upsert(chunks), graph.upsert(chunks), graph.delete([each.chunk_id for each in chunks])):
        commits.clear()
        await change
        assert len(commits) == 1


async def test_reading_before_anything_was_made(catalog: Catalog) -> None:
    """A graph that was never written is an empty one."""
    async with EntityGraphStore(catalog, "default") as graph:
        assert await graph.count() == 0
        assert await graph.all_ids() == await graph.existing_ids(["a"]) == set()
        assert await graph.delete(["a"]) == 0
        assert await found(graph, "acme") == []
        assert (await graph.stats())["entities"] == 0


def contents(catalog: Catalog, collection: str) -> list[list[tuple[Any, ...]]]:
    """Every row of the graph of a collection."""
    with catalog.read() as connection:
        return [
            sorted(
                tuple(map(str, row[1:]))
                for row in connection.execute(select(table).where(table.c.collection == collection))
            )
            for table in TABLES
        ]


NAMES = st.sampled_from(["Acme Corp", "Dana Fox", "Fox", "Lyon", "GPT-4", "user_id"])
TEXTS = st.lists(NAMES, max_size=4).map(lambda names: "we saw " + ", ".join(names))
CHUNKS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), TEXTS)
STEPS = st.lists(st.one_of(CHUNKS, st.lists(st.sampled_from(["a", "b", "c", "d"]))), max_size=6)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_graph_never_drifts(graph: EntityGraphStore, catalog: Catalog, steps: list[Any]) -> None:
    """After any ingests and deletes the graph is the one made afresh of what is left."""
    left: dict[str, str] = {}
    await graph.clear()
    for step in steps:
        if isinstance(step, dict):
            await graph.upsert([chunk(chunk_id, text) for chunk_id, text in step.items()])
            left |= step
        else:
            await graph.delete(step)
            left = {chunk_id: text for chunk_id, text in left.items() if chunk_id not in step}
    async with EntityGraphStore(catalog, "fresh") as fresh:
        await fresh.clear()
        await fresh.upsert([chunk(chunk_id, text) for chunk_id, text in left.items()])
        assert contents(catalog, "default") == contents(catalog, "fresh")
        assert await found(graph, "fox and lyon") == await found(fresh, "fox and lyon")


EDGES = st.dictionaries(st.tuples(NAMES, NAMES), st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=12)
MENTIONS = EDGES.map(lambda edges: [Mention(*key, *value) for key, value in edges.items()])


@given(MENTIONS)
def test_walk_is_a_distribution(mentions: list[Mention]) -> None:
    """Shares are between 0 and 1 and don't depend on the order of the edges."""
    rarities = {mention.entity: 1.0 for mention in mentions}
    shares = walk(mentions, [mentions[0].entity], rarities)
    assert shares[mentions[0].chunk_id] > 0
    assert all(0 <= share <= 1 for share in shares.values())
    assert sum(shares.values()) < 1
    assert walk(mentions[::-1], [mentions[0].entity], rarities) == shares


@given(MENTIONS, st.data())
def test_walk_is_personalised_pagerank(mentions: list[Mention], data: st.DataObject) -> None:
    """From node to node as networkx's matrix of PageRank says: an edge in proportion to its weight, or a start anew."""
    names = sorted({mention.entity for mention in mentions})
    rarities = {entity: 1.0 + len(entity) for entity in names}
    seeds = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    graph = nx.Graph()
    for chunk_id, entity, times, part in mentions:
        graph.add_edge(("chunk", chunk_id), ("entity", entity), weight=tie(times, part) * rarities[entity])
    nodes = list(graph)
    starts = {("entity", seed): rarities[seed] for seed in seeds}
    step = np.asarray(nx.google_matrix(graph, DAMPING, personalization=starts, nodelist=nodes))
    share = np.full(len(nodes), 1 / len(nodes)) @ np.linalg.matrix_power(step, WALK_STEPS)
    expected = {name: part for (kind, name), part in zip(nodes, share, strict=True) if kind == "chunk"}
    assert walk(mentions, seeds, rarities) == pytest.approx(expected, abs=1e-9)
