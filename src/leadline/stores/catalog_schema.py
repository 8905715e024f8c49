"""The tables of the catalog: what is kept of sources, their versions, chunks and vectors, and of work not done yet.

Only the shape; `catalog` opens it, the other `catalog_*` modules read and write it. `metadata` is shared: the entity
graph adds its tables to it. Portable SQL types only, so that the same tables can be made in PostgreSQL.

A *source* is what a person put in. Each put makes a *version* of it: `pending` while its chunks go into the indexes,
then `ready` and live (`sources.live_version`), at last `retired` until its rows are swept. One that is made for new
indexes while the old ones are in use is `building` until those take their place. A *membership* places a
chunk in a version. A chunk belongs to one source and may be in several of its versions; its text is in a content
store, which need not be here.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import postgresql

FORMAT = "2"  # of the whole catalog; raised when old tables can't be read as they are
# What is told apart and sorted by its bytes, in either database.
ID = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
PENDING, BUILDING = "pending", "building"  # of versions

metadata = MetaData()

info = Table(
    "info",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

lease = Table(
    "lease",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("fence", Integer, nullable=False),
    Column("command", Text),
    Column("host", Text),
    Column("realm", Text),
    Column("pid", Integer),
    Column("process_start", Text),
    Column("acquired", Float),
    Column("heartbeat", Float),
    Column("expires", Float),
    Column("wanted", Float),  # when another process last tried in vain
)

collections = Table(
    "collections",
    metadata,
    Column("name", ID, primary_key=True),
    Column("generation", Integer, nullable=False),
    Column("created", Float, nullable=False),
)

manifests = Table(
    "manifests",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("leg", ID, primary_key=True),
    Column("manifest", JSON, nullable=False),
    Column("build", Integer, nullable=False),  # which of the indexes made for the leg, one after the other, is in use
)

# What the logits of a reranker mean on a collection: see `leadline.calibration`.
calibrations = Table(
    "calibrations",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("reranker", ID, primary_key=True),
    Column("calibration", JSON, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("doc_id", ID, primary_key=True),
    Column("collection", ForeignKey("collections.name"), nullable=False, index=True),
    Column("uri", ID, nullable=False),
    # Which ingested folder it came from, as a hash: a sync deletes what is gone from that folder only.
    Column("root", String(64), nullable=False),
    Column("live_version", Integer),
    Column("created", Float, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("doc_id", ForeignKey("sources.doc_id"), nullable=False, index=True),
    Column("file_name", ID, nullable=False),
    Column("file_hash", ID, nullable=False, index=True),
    Column("source_type", String(32), nullable=False),
    Column("status", String(16), nullable=False, index=True),
    Column("fingerprint", ID, nullable=False),  # of all that is stored of the version, to know it again
    Column("metadata", JSON, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("created", Float, nullable=False),
    sqlite_autoincrement=True,  # an id of a swept version is never given again
)

# What the chunks of a version leave out of the source's text, to cut it anew: see `leadline.drafts.Layout`.
layouts = Table(
    "layouts",
    metadata,
    Column("version", ForeignKey("versions.id"), primary_key=True),
    Column("layout", JSON, nullable=False),
)

chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", ID, primary_key=True),
    Column("doc_id", ForeignKey("sources.doc_id"), nullable=False, index=True),
    Column("prefix", Text, nullable=False),
    Column("content_hash", ID, nullable=False, index=True),
)

# The text of chunks, where the catalog is their content store. Nothing here refers to `chunks`: texts come after the
# rows that account for them, and go before those.
texts = Table(
    "texts",
    metadata,
    Column("collection", ID, primary_key=True),
    Column("chunk_id", ID, primary_key=True),
    Column("text", Text, nullable=False),
)

memberships = Table(
    "memberships",
    metadata,
    Column("version", ForeignKey("versions.id"), primary_key=True),
    Column("chunk_index", Integer, primary_key=True),
    Column("chunk_id", ForeignKey("chunks.chunk_id"), nullable=False, index=True),
    Column("page", Integer),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("headings", JSON, nullable=False),
)

vectors = Table(
    "vectors",
    metadata,
    Column("content_hash", ID, primary_key=True),
    Column("model", ID, primary_key=True),
    # Little-endian float32; empty where the model gave nothing usable for the text.
    Column("vector", LargeBinary, nullable=False),
)

# What the web gave: passages of pages, and which of them a search found. They expire; a search that failed may still
# be answered from expired ones. Of a query only its hash is kept.
web_passages = Table(
    "web_passages",
    metadata,
    Column("chunk_id", ID, primary_key=True),
    Column("url", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("passage", JSON, nullable=False),  # all else of it
    Column("retrieved_at", ID, nullable=False),
    Column("expires", Float, nullable=False, index=True),
)

web_searches = Table(
    "web_searches",
    metadata,
    Column("key", ID, primary_key=True),
    Column("chunk_ids", JSON, nullable=False),  # best first
    Column("expires", Float, nullable=False, index=True),
)

# Uploads to take in: a job each, a row for each of its files. Their bytes are in `stores.uploads`, by hash.
jobs = Table(
    "jobs",
    metadata,
    Column("number", Integer, primary_key=True),  # in the order they came
    Column("id", ID, nullable=False, unique=True),
    Column("collection", ID, nullable=False, index=True),  # need not be there yet
    Column("status", String(16), nullable=False, index=True),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text),
    Column("claim", ID),  # of whoever is at it: another one with every taker
    Column("host", Text),
    Column("realm", Text),
    Column("pid", Integer),
    Column("process_start", Text),
    Column("expires", Float, nullable=False),  # the claim; of a waiting job: not to be tried before
    sqlite_autoincrement=True,
)

job_items = Table(
    "job_items",
    metadata,
    Column("job", ForeignKey("jobs.number"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("doc_id", ID, nullable=False, index=True),
    Column("file_name", ID, nullable=False),
    Column("file_hash", ID, nullable=False, index=True),
    Column("bytes", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("error", Text),
    Column("deleted", Integer, nullable=False),  # 1: somebody deleted the document, so it isn't to be taken in
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("collection", ForeignKey("collections.name"), nullable=False),
    Column("leg", ID, nullable=False),
    Column("op", String(8), nullable=False),
    Column("version", Integer),  # of an upsert: all chunks of this version
    Column("chunk_ids", JSON),  # of a delete
    Index("ix_outbox_collection_leg", "collection", "leg"),
    sqlite_autoincrement=True,
)
