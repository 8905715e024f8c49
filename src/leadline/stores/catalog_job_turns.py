"""In which order jobs that wait have their turns: no collection's uploads hold up those of another.

Jobs don't know who uploaded them, so turns are fair between collections: the one that has waited longest since any of
its jobs was worked at comes first, and of its jobs the one that has. Times are those that the jobs have anyway.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, exists, func, select

from leadline.stores.catalog_job_rows import ACTIVE
from leadline.stores.catalog_schema import job_items, jobs

_LOOKED_AT: Final = 200  # of the jobs of a collection that have not ended, the oldest


def in_turn(connection: Connection, now: float) -> Sequence[Row[Any]]:
    """The jobs that have not ended, the one whose turn it is first."""
    nth = func.row_number().over(partition_by=jobs.c.collection, order_by=jobs.c.number).label("nth")
    ranked = select(jobs, nth).where(jobs.c.status.in_(ACTIVE)).subquery()
    rows = connection.execute(select(ranked).where(ranked.c.nth <= _LOOKED_AT)).all()
    since = _last_turns(connection) if len(rows) > 1 else {}
    for name in {row.collection for row in rows}:  # one that had its last turn before this upload waits since then
        since[name] = max(since.get(name, 0.0), min(row.created for row in rows if row.collection == name))
    # A time to come is of a clock that was put back: it counts as now.
    return sorted(rows, key=lambda row: (min(since[row.collection], now), min(row.updated, now), row.number))


def waits_for_another(connection: Connection, number: int) -> bool:
    """Whether an earlier job is about one of the documents that this one has left."""
    earlier = job_items.alias()
    same = (earlier.c.doc_id == job_items.c.doc_id) & (earlier.c.job < number) & earlier.c.status.in_(ACTIVE)
    left = (job_items.c.job == number) & job_items.c.status.in_(ACTIVE)
    return bool(connection.execute(select(exists().where(left & same))).scalar_one())


def _last_turns(connection: Connection) -> dict[str, float]:
    """Collection → when one of its jobs was worked at last, of the collections that have some left."""
    waiting = select(jobs.c.collection).where(jobs.c.status.in_(ACTIVE))
    worked_at = (jobs.c.updated > jobs.c.created) & jobs.c.collection.in_(waiting)
    query = select(jobs.c.collection, func.max(jobs.c.updated)).where(worked_at).group_by(jobs.c.collection)
    return {str(name): float(last) for name, last in connection.execute(query)}
