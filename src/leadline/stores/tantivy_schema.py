"""What a tantivy index of chunks looks like: its fields, its documents and its queries.

`terms` holds the analyser's terms, `facts` one whole term for each field and value (for the equality part of a
filter), `fields` the filter fields as JSON to test the rest of a filter on. Only `chunk_id` and `fields` can be read
back. User text never reaches tantivy's query parser.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from leadline.drafts import FieldValue
from leadline.stores import filters
from leadline.stores.base import ChunkRecord, Where

if TYPE_CHECKING:
    import tantivy

# Longer facts are hashed: tantivy leaves terms of tens of kilobytes out without a word.
LONGEST_FACT = 200


def schema() -> tantivy.Schema:
    """The fields of the index."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("chunk_id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="terms", index_option="freq")
    builder.add_text_field("facts", tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("fields", stored=True)
    return builder.build()


def document(record: ChunkRecord, terms: Sequence[str]) -> tantivy.Document:
    """A chunk as the index takes it in."""
    import tantivy

    values = filters.fields_of(record)
    made = tantivy.Document()
    made.add_text("chunk_id", record.chunk_id)
    made.add_text("terms", " ".join(terms))
    for key, value in values.items():
        made.add_text("facts", _fact(key, value))
    made.add_bytes("fields", json.dumps(values).encode())
    return made


def fields(stored: tantivy.Document) -> dict[str, FieldValue]:
    """The filter fields of a document that was read back."""
    return cast("dict[str, FieldValue]", json.loads(bytes(stored["fields"][0])))


def query(terms: Sequence[str], where: Where | None) -> tantivy.Query | None:
    """Chunks with any of the terms that may pass the filter; None where there are no terms."""
    import tantivy

    shape = schema()
    tests = [tantivy.Query.term_query(shape, "terms", term, index_option="freq") for term in dict.fromkeys(terms)]
    if not tests:
        return None
    wanted = _any_of(tests)
    allowed = filters.narrow(where, leaf=_test, all_of=_all_of, any_of=_any_of)
    return wanted if allowed is None else _all_of([wanted, tantivy.Query.const_score_query(allowed, 0.0)])


def any_id(chunk_ids: Sequence[str]) -> tantivy.Query:
    """The chunks with these ids."""
    import tantivy

    return tantivy.Query.term_set_query(schema(), "chunk_id", chunk_ids)


def ids(searcher: tantivy.Searcher, wanted: tantivy.Query, limit: int) -> set[str]:
    """The ids of at most `limit` chunks that `wanted` finds."""
    hits = searcher.search(wanted, limit=limit, count=False).hits
    return {searcher.doc(address)["chunk_id"][0] for _, address in hits}


def _test(key: str, operator: str, operand: Any) -> tantivy.Query | None:
    import tantivy

    match operator:
        case "$eq":
            values = [operand]
        case "$in":
            values = list(operand)
        case _:
            return None
    return tantivy.Query.term_set_query(schema(), "facts", [_fact(key, value) for value in values])


def _fact(key: str, value: FieldValue) -> str:
    """One term for a field and its value; equal values give the equal term, other types another."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    fact = json.dumps([key, value])
    return fact if len(fact) <= LONGEST_FACT else hashlib.sha256(fact.encode()).hexdigest()


def _all_of(parts: list[tantivy.Query]) -> tantivy.Query:
    import tantivy

    return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])


def _any_of(parts: list[tantivy.Query]) -> tantivy.Query:
    import tantivy

    return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])
