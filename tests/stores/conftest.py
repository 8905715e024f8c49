"""Fixtures that open each engine of the contract in turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores.engines import ENGINES, Backend, OpenAt, Opener, opened


@pytest.fixture(params=ENGINES)
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
