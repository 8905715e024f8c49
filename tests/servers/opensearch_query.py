"""Query DSL over documents in memory: the parts that the OpenSearch stand-in takes, and a 400 for every other.

Filters are exact; k-NN is computed over all documents, with the scores that OpenSearch documents. Of words it only
counts those shared: BM25 is tried elsewhere.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import Stemmer

WINDOW = 10_000
ENGLISH = Stemmer.Stemmer("english")
SCORES: Mapping[str, Callable[[Any, Any], float]] = {
    "cosinesimil": lambda a, b: (1 + float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))) / 2,
    "l2": lambda a, b: 1 / (1 + float(((a - b) ** 2).sum())),
    "innerproduct": lambda a, b: 1 + float(a @ b) if a @ b >= 0 else 1 / (1 - float(a @ b)),
}

Document = dict[str, Any]


class Refused(Exception):
    """An answer that is an error: status, type, reason."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.error = {"type": kind, "reason": reason}

    def body(self) -> Document:
        return {"error": {"root_cause": [self.error], **self.error}, "status": self.status}


def bad(reason: str) -> Refused:
    """What the stand-in says to a request that isn't in the documented form."""
    return Refused(400, "parsing_exception", reason)


def only(body: Document, *keys: str) -> None:
    """Refuses a body with other keys than these."""
    if unknown := set(body) - set(keys):
        raise bad(f"unknown: {sorted(unknown)}")


def nearest(documents: Iterable[Document], properties: Document, query: Document) -> list[tuple[Document, float]]:
    """The documents that a knn query finds, each with its score."""
    only(query, "knn")
    [(name, knn)] = query["knn"].items()
    only(knn, "vector", "k", "filter")
    mapping = properties[name]
    if mapping["type"] != "knn_vector" or len(knn["vector"]) != mapping["dimension"] or not 0 < knn["k"] <= WINDOW:
        raise bad("a knn query names a vector field, a vector of its width and a k within the window")
    score = SCORES[mapping["method"]["space_type"]]
    vector = np.array(knn["vector"])
    narrowed = knn.get("filter", {"match_all": {}})
    passing = [each for each in documents if name in each and passes(narrowed, each)]
    scored = [(each, score(vector, np.array(each[name]))) for each in passing]
    return sorted(scored, key=lambda hit: -hit[1])[: knn["k"]]


def sharing(documents: Iterable[Document], query: Document) -> list[tuple[Document, float]]:
    """The documents that share words with a match query, each with how many of its words it has: no BM25."""
    only(query["bool"], "must", "filter")
    [words] = query["bool"]["must"]
    only(words, "match")
    [(name, match)] = words["match"].items()
    asked = {ENGLISH.stemWord(word) for word in match["query"].lower().split()}
    found = []
    for each in documents:
        if all(passes(narrowed, each) for narrowed in query["bool"].get("filter", [])):
            held = {ENGLISH.stemWord(word.strip(".,?!")) for word in each.get(name, "").lower().split()}
            found += [(each, float(len(asked & held)))] if asked & held else []
    return found


def passes(query: Document, document: Document) -> bool:
    """Whether a filter in Query DSL lets a document through."""
    [(kind, body)] = query.items()
    match kind:
        case "match_all":
            return True
        case "term":
            [(name, term)] = body.items()
            return term in values(document, name)
        case "terms":
            [(name, terms)] = body.items()
            return not set(terms).isdisjoint(values(document, name))
        case "range":
            [(name, bounds)] = body.items()
            return any(all(within(value, *bound) for bound in bounds.items()) for value in values(document, name))
        case "bool":
            only(body, "filter", "must_not", "should", "minimum_should_match")
            should = body.get("should", [])
            if should and body["minimum_should_match"] != 1:
                raise bad("should asks for one of its clauses")
            return (
                all(passes(each, document) for each in body.get("filter", []))
                and not any(passes(each, document) for each in body.get("must_not", []))
                and (not should or any(passes(each, document) for each in should))
            )
    raise bad(f"unknown query [{kind}]")


def values(document: Document, name: str) -> list[Any]:
    """What a field holds: OpenSearch takes one value as a list of one."""
    found = document.get(name, [])
    return found if isinstance(found, list) else [found]


def within(value: Any, operator: str, bound: Any) -> bool:
    """One bound of a range; text is in the order of its UTF-8 bytes."""
    left, right = (each.encode() if isinstance(each, str) else each for each in (value, bound))
    match operator:
        case "gt":
            return bool(left > right)
        case "gte":
            return bool(left >= right)
        case "lt":
            return bool(left < right)
        case "lte":
            return bool(left <= right)
    raise bad(f"unknown bound [{operator}]")
