"""What is noted of entities: always what the mentions say when they are counted, in either database."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select
from tests.servers.postgres import PostgresServer
from tests.stores.catalogs import writable

from leadline.stores.base import ChunkRecord
from leadline.stores.catalog import Catalog
from leadline.stores.entity_degrees import are_counted
from leadline.stores.entity_graph import EntityGraphStore
from leadline.stores.entity_graph_schema import graph_entities, graph_mentions


def chunk(chunk_id: str, text: str) -> ChunkRecord:
    """A chunk of text."""
    return ChunkRecord(chunk_id, "d", text=text)


@pytest.fixture(params=["sqlite", "postgres"])
async def catalog(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Catalog]:
    """An open catalog that may be written, in each database in turn."""
    url = None
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    async with writable(tmp_path / "data", url) as catalog:
        yield catalog


@pytest.fixture
async def graph(catalog: Catalog) -> AsyncIterator[EntityGraphStore]:
    """An empty graph, beside one of another collection that mentions the same."""
    async with EntityGraphStore(catalog, "default") as store, EntityGraphStore(catalog, "other") as other:
        await other.upsert([chunk("a", "we saw Acme Corp, Dana Fox and Fox")])
        yield store


Degrees = dict[tuple[str, str], tuple[int, int]]


def noted(connection: Connection) -> Degrees:
    """What the table says: collection and entity → in how many chunks, in how many as a whole."""
    return {(row.collection, row.entity): (row.chunks, row.whole) for row in connection.execute(select(graph_entities))}


def counted(connection: Connection) -> Degrees:
    """What the mentions say, one by one."""
    chunks: Counter[tuple[str, str]] = Counter()
    whole: Counter[tuple[str, str]] = Counter()
    for row in connection.execute(select(graph_mentions)):
        chunks[row.collection, row.entity] += 1
        whole[row.collection, row.entity] += not row.part
    return {entity: (chunks[entity], whole[entity]) for entity in chunks}


NAMES = st.sampled_from(["Acme Corp", "Dana Fox", "Fox", "Lyon", "GPT-4", "user_id"])
TEXTS = st.lists(NAMES, max_size=4).map(lambda names: "we saw " + ", ".join(names))
IDS = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(st.one_of(st.dictionaries(IDS, TEXTS), st.lists(IDS), st.just("clear")), max_size=8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_what_is_noted_is_what_would_be_counted(
    graph: EntityGraphStore, catalog: Catalog, steps: list[Any]
) -> None:
    """After each of any ingests, replacements, deletes and clearings, with no row left of what nobody mentions."""
    for step in steps:
        if isinstance(step, dict):
            await graph.upsert([chunk(chunk_id, text) for chunk_id, text in step.items()])
        elif isinstance(step, list):
            await graph.delete(step)
        else:
            await graph.clear()
        with catalog.read() as connection:
            assert noted(connection) == counted(connection)


@pytest.mark.parametrize("change", ["upsert", "delete"])
async def test_a_graph_whose_entities_were_never_counted(
    graph: EntityGraphStore, catalog: Catalog, change: str
) -> None:
    """It is searched as it is, with the same hits; its first write counts them, and leaves other collections alone."""
    texts = ["It was Acme Corp that hired Dana Fox.", "Later on Dana Fox left.", "Then Fox met Acme Corp."]
    await graph.upsert([chunk(str(number), text) for number, text in enumerate(texts)])
    before = await graph.search("acme corp and fox", k=10)
    assert len(before) == 3
    with catalog.write() as connection:
        connection.execute(delete(graph_entities).where(graph_entities.c.collection == "default"))
    async with EntityGraphStore(catalog, "default") as reopened:
        assert await reopened.search("acme corp and fox", k=10) == before
        with catalog.read() as connection:
            assert not are_counted(connection, "default")
        await (reopened.upsert([chunk("0", "Lyon")]) if change == "upsert" else reopened.delete(["0"]))
        with catalog.read() as connection:
            assert are_counted(connection, "default")
            assert noted(connection) == counted(connection)
