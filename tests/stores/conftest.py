"""Fixtures that open each engine of the contract in turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores.engines import ENGINES, HERE, Backend, OpenAt, Opener, opened


@pytest.fixture(params=HERE)
def open_at(request: pytest.FixtureRequest) -> OpenAt:
    """Each backend in turn: opens it over a folder."""
    engine = ENGINES[request.param]
    served = request.getfixturevalue(engine.server) if engine.server else {}
    return lambda folder: opened(engine, folder, {**engine.options, **served})


@pytest.fixture
def open_store(open_at: OpenAt, tmp_path: Path) -> Opener:
    """Opens the backend over a folder that lasts for the test: calling it again is a restart."""
    return lambda: open_at(tmp_path)


@pytest.fixture
async def backend(open_store: Opener) -> AsyncIterator[Backend]:
    """The backend, empty, open and ready."""
    async with open_store() as backend:
        yield backend


@pytest.fixture(params=[name for name, engine in HERE.items() if engine.kind == "vector"])
async def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Each backend of vectors, empty, open and ready."""
    engine = ENGINES[request.param]
    served = request.getfixturevalue(engine.server) if engine.server else {}
    async with opened(engine, tmp_path, {**engine.options, **served}) as backend:
        yield backend
