"""How SQLite finds what it is asked for: read from its own plans, since a slow way shows only in large collections."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from leadline.stores.catalog import Catalog


@contextmanager
def plans_of(catalog: Catalog) -> Iterator[list[str]]:
    """The steps of the plans of what is selected in the block; filled when the block ends."""
    asked: list[tuple[str, Any]] = []
    steps: list[str] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        asked.append((statement, parameters))

    event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        yield steps
    finally:
        event.remove(catalog.engine, "before_cursor_execute", note)
    with catalog.read() as connection:
        for statement, parameters in asked:
            if statement.startswith("SELECT"):
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                steps.extend(row.detail for row in rows)
