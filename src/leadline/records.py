"""The plain records of a run: what a retrieved chunk, a citation, a verdict and a result look like.

JSON types only, so that they can be stored, sent and shown anywhere. They stand apart from `state`, which takes seconds
to import since it knows the graph's library.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # typing's own can't be validated by pydantic before Python 3.12

Leg = str  # "vector", "bm25", "graph", "web", or the name of a retriever somebody adds
Evidence = Literal["relevant", "irrelevant", "unranked", "nothing"]
Grounding = Literal["grounded", "ungrounded", "no_answer", "unverified", "not_attempted", "not_applicable"]
Action = Literal["finish", "retry", "escalate", "abstain"]
Status = Literal["answered", "abstained", "interrupted", "error"]
Flag = Literal["weak_evidence", "unverified", "unranked"]
Route = Literal["search", "direct"]


class Found(TypedDict):
    """What one leg said of a chunk: its own score (never compared across legs) and 0-based rank."""

    rank: int
    score: float


class Document(TypedDict):
    """One retrieved chunk (a source as a whole is a *source*).

    `metadata` has chunk_id, doc_id, file_name, file_hash, chunk_index, total_chunks, source_type, start_char,
    end_char, headings, `found_by` (leg → Found), page where known, url and title for the web; `also_in` lists the
    other sources that hold the same text. `score` is the finding leg's own; `rerank_score` is a logit, 0.0 = not
    scored.
    """

    content: str
    metadata: dict[str, Any]
    score: float
    source: str
    rerank_score: float


class Origin(TypedDict):
    """A chunk of a document that a text was made from, and the hash of the document's bytes at that time."""

    chunk_id: str
    doc_id: str
    file_hash: str


class EvidenceBlock(TypedDict):
    """A numbered passage as the writer sees it: `[n]` ↔ chunk_id, fixed before anything is dropped.

    `sentences` are (start, end, text) slices of the chunk's own text, in order, offsets into that text; what is
    left out for the token budget is missing here, the number stays.
    """

    n: int
    chunk_id: str
    sentences: list[tuple[int, int, str]]
    document: Document


class Citation(TypedDict):
    """One marker of one answer sentence, and the exact place it points to."""

    n: int
    chunk_id: str
    doc_id: str
    file_name: str
    page: int | None
    start_char: int
    end_char: int
    quote: str
    sentence: str
    verified: bool
    source_type: str
    url: str | None


class Verdict(TypedDict):
    """What reflection decided and why."""

    evidence: Evidence
    grounding: Grounding
    action: Action
    reason: str


class Pass(TypedDict):
    """One search that was made; a retry must differ from all of them."""

    query: str
    width: int
    sources: list[str]


class ContextRow(TypedDict):
    """One line of the evidence table of a result."""

    chunk_id: str
    file_name: str
    rerank_score: float
    found_by: dict[str, Found]
    kept: bool
    why: str


class Usage(TypedDict, total=False):
    """What a run spent. Each key adds up."""

    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    web_calls: int
    seconds: float


class Result(TypedDict):
    """The outcome of a run: the same object on the command line, over HTTP, in a notebook and in Studio."""

    question: str
    status: Status
    answer: str
    citations: list[Citation]
    verdict: Verdict
    flags: list[Flag]
    context: list[ContextRow]
    queries: list[str]
    web_used: bool
    degraded: list[str]
    usage: Usage
    models: dict[str, str]
    generation: int
    error: NotRequired[dict[str, str]]
