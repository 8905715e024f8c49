"""The catalog in PostgreSQL: who may come in, who waits for whom, and what a killed server and a lost lease leave."""

import asyncio
import signal
import sys
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import insert, select, update
from tests.servers.postgres import PostgresServer
from tests.stores.catalogs import live, put, writable

from leadline.errors import ConfigError, LeaseLost, MissingExtra, StoreDamaged, StoreError
from leadline.stores.catalog import Catalog, begin_immediate
from leadline.stores.catalog_collections import collection_names, create_collection
from leadline.stores.catalog_postgres import SCHEMA, PostgresDatabase
from leadline.stores.catalog_schema import collections, lease
from leadline.stores.lease import RETRY_S, hold_lease


def told(error: StoreError, *secrets: str) -> str:
    """What a person sees of an error, which is none of the secrets."""
    shown = f"{error} {error!r} {error.__cause__}"
    assert not [secret for secret in secrets if secret in shown]
    return str(error)


async def test_only_indexes_are_in_the_data_folder(tmp_path: Path, postgres: PostgresServer) -> None:
    """No file is made for a catalog that is elsewhere, and a second opening finds what the first one stored."""
    url = postgres.database()
    assert Catalog(tmp_path / "data", url).is_missing()
    async with writable(tmp_path / "data", url) as catalog:
        put(catalog, "d", "a text")
    assert not (tmp_path / "data").exists()
    assert not Catalog(tmp_path / "data", url).is_missing()
    async with writable(tmp_path / "another folder", url) as catalog:
        assert live(catalog, "d:a text") == ["a text"]


@pytest.mark.parametrize(
    ("database", "password", "hint"),
    [("postgres", "wrong-secret", "password"), ("nowhere", None, "LEADLINE_CATALOG_URL")],
)
def test_a_refused_connection_names_the_place_and_no_secret(
    tmp_path: Path, postgres: PostgresServer, database: str, password: str | None, hint: str
) -> None:
    """A wrong password or database is said in words that may be shown to anybody."""
    with pytest.raises(StoreError, match=hint) as caught:
        Catalog(tmp_path, postgres.address(database, password)).open()
    assert f"postgresql://127.0.0.1:{postgres.port}/{database}" in told(caught.value, "wrong-secret", postgres.password)


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Where nobody listens, the address is shown without the user's secrets, and what to check."""
    with pytest.raises(StoreError, match="Is the server running") as caught:
        Catalog(tmp_path, "postgresql://me:hidden-secret@127.0.0.1:1/db").open()
    told(caught.value, "hidden-secret")


@pytest.mark.parametrize(
    "url", ["mysql://me:hidden@host/db", "postgresql://me:hidden@host", "hidden", "postgresql://me:hidden@host:port/db"]
)
def test_an_address_of_something_else_is_refused_unseen(tmp_path: Path, url: str) -> None:
    """A mistyped address is an error of the settings that doesn't repeat it."""
    with pytest.raises(ConfigError, match="catalog_url") as caught:
        Catalog(tmp_path, url)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "query"),
    [
        ("postgresql://db.example.org/x", {"sslmode": "verify-full", "sslrootcert": "system"}),
        (
            "postgresql:///x?host=db.example.org",
            {"host": "db.example.org", "sslmode": "verify-full", "sslrootcert": "system"},
        ),
        ("postgres://db.example.org/x?sslmode=require", {"sslmode": "require"}),
        ("postgresql+psycopg://127.0.0.1/x", {}),
        ("postgresql:///x?host=/run/postgresql", {"host": "/run/postgresql"}),
    ],
)
def test_a_server_elsewhere_has_to_prove_who_it_is(
    url: str, query: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Certificates are checked unless the address says otherwise; on this machine there is nobody in between."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert dict(PostgresDatabase(url)._url.query) == query


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that installs it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"leadline\[postgres\]"):
        Catalog(tmp_path, "postgresql://127.0.0.1/x").open()


def test_a_server_without_a_certificate_is_not_trusted(tmp_path: Path, postgres: PostgresServer) -> None:
    """Where verification is asked for, a plain connection isn't made."""
    with pytest.raises(StoreError, match="SSL"):
        Catalog(tmp_path, f"{postgres.database()}?sslmode=verify-full&sslrootcert=system").open()


def test_a_schema_of_something_else_is_refused_and_kept(tmp_path: Path, postgres: PostgresServer) -> None:
    """Tables of another program under our schema's name are not mixed with ours."""
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(f"CREATE TABLE {SCHEMA}.photos (name text)")
    with pytest.raises(StoreDamaged, match="something else"):
        Catalog(tmp_path, url).open()
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [SCHEMA]).fetchall()
    assert tables == [("photos",)]


def test_a_user_may_be_given_the_schema_only(tmp_path: Path, postgres: PostgresServer) -> None:
    """Without the right to make schemas, one that was made for the user will do."""
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-secret'")
    guest = url.replace(f"leadline:{postgres.password}", "guest:guest-secret")
    with pytest.raises(StoreError, match="right to create the schema"):
        Catalog(tmp_path, guest).open()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA} AUTHORIZATION guest")
    catalog = Catalog(tmp_path, guest)
    catalog.open()
    assert collection_names(catalog) == []
    catalog.close()


async def test_two_writers_lose_nothing(tmp_path: Path, postgres: PostgresServer) -> None:
    """Processes that take the lease in turn add to each other's work; the fence rises with each."""
    url = postgres.database()
    fences: list[int] = []

    async def write(name: str) -> None:
        catalog = Catalog(tmp_path / name, url)
        await asyncio.to_thread(catalog.open)
        for number in range(5):
            async with hold_lease(catalog, 60) as held:
                fences.append(held.fence)
                await asyncio.to_thread(create_collection, catalog, f"{name}{number}", {})
        catalog.close()

    await asyncio.gather(write("a"), write("b"))
    catalog = Catalog(tmp_path, url)
    catalog.open()
    assert collection_names(catalog) == sorted(f"{name}{number}" for name in "ab" for number in range(5))
    assert fences == list(range(1, 11))
    catalog.close()


async def test_writers_without_a_lease_take_turns(tmp_path: Path, postgres: PostgresServer) -> None:
    """A transaction sees all that the one before it wrote, also where both began at the same time."""
    url = postgres.database()
    async with writable(tmp_path, url) as catalog:
        others = [Catalog(tmp_path, url) for _ in range(4)]
        for other in others:
            other.open()

        def add(other: Catalog) -> None:
            for _ in range(10):
                with begin_immediate(other.engine) as connection:
                    before = connection.execute(select(collections.c.generation)).scalar_one()
                    connection.execute(update(collections).values(generation=before + 1))

        await asyncio.gather(*(asyncio.to_thread(add, other) for other in others))
        with catalog.read() as connection:
            assert connection.execute(select(collections.c.generation)).scalar_one() == 40
        for other in others:
            other.close()


async def test_a_lost_lease_is_noticed_inside_the_transaction(tmp_path: Path, postgres: PostgresServer) -> None:
    """A writer that was declared dead writes nothing more, though its connection is alive."""
    url = postgres.database()
    async with writable(tmp_path, url) as catalog:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(f"UPDATE {SCHEMA}.lease SET fence = fence + 1")
        with pytest.raises(LeaseLost, match="took over the catalog"):
            create_collection(catalog, "after", {})
        assert collection_names(catalog) == ["c"]


async def test_a_reader_can_not_write(tmp_path: Path, postgres: PostgresServer) -> None:
    """What reads says so to the server, which holds it to that."""
    async with writable(tmp_path, postgres.database()) as catalog:
        with pytest.raises(StoreError, match="read-only"), catalog.read() as connection:
            connection.execute(insert(collections), {"name": "x", "generation": 0, "created": 0.0})


def refused(catalog: Catalog) -> StoreError:
    """The error of a catalog whose server was killed: the process of its connection lives on for a moment."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            collection_names(catalog)
        except StoreError as error:
            return error
        time.sleep(0.05)
    raise AssertionError("the killed server went on answering")


def nobodys(catalog: Catalog) -> bool:
    """Whether the lease is given back, sooner or later."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with catalog.read() as connection:
            if connection.execute(select(lease.c.pid)).scalar_one() is None:
                return True
        time.sleep(0.1)
    return False


async def test_a_lease_is_given_back_when_its_server_is_there_again(
    tmp_path: Path, own_postgres: PostgresServer
) -> None:
    """It was gone when the catalog was closed, for longer than one try: the next process need not wait it out."""
    url = own_postgres.database()
    async with writable(tmp_path, url) as catalog:
        put(catalog, "d", "acknowledged")
        own_postgres.stop(signal.SIGKILL)
        refused(catalog)
    await asyncio.sleep(3 * RETRY_S)
    own_postgres.start()
    again = Catalog(tmp_path, url)
    again.open()
    given_back = nobodys(again)
    again.close()
    assert given_back


async def test_a_killed_server_keeps_what_was_acknowledged(tmp_path: Path, own_postgres: PostgresServer) -> None:
    """Meanwhile there is a clear error; afterwards the same open catalog goes on."""
    url = own_postgres.database()
    async with writable(tmp_path, url) as catalog:
        put(catalog, "d", "acknowledged")
        own_postgres.stop(signal.SIGKILL)
        assert "could not be used" in told(refused(catalog), own_postgres.password)
        own_postgres.start()
        assert live(catalog, "d:acknowledged") == ["acknowledged"]
        put(catalog, "e", "later")
        assert live(catalog, "e:later") == ["later"]


async def test_the_lease_row_is_the_only_one(tmp_path: Path, postgres: PostgresServer) -> None:
    """However often it is taken."""
    url = postgres.database()
    for _ in range(3):
        async with writable(tmp_path, url):
            pass
    async with writable(tmp_path, url) as catalog:
        with catalog.read() as connection:
            assert [row.fence for row in connection.execute(select(lease))] == [4]
