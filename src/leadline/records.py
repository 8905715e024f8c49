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
Flag = Literal["weak_evidence", "unverified", "unranked", "shortened"]
Route = Literal["search", "direct"]


class Found(TypedDict):
    """What one leg said of a chunk: its own score (never compared across legs) and 0-based rank.

    `in_pass` is the search of the run, counted from 1, that it said so in: of several the one with the best rank.
    """

    rank: int
    score: float
    in_pass: NotRequired[int]


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
    left out is missing here and counted in `dropped`; the number stays. `orders` of those gave orders to a model, the
    others had no room in the token budget.
    """

    n: int
    chunk_id: str
    sentences: list[tuple[int, int, str]]
    document: Document
    dropped: NotRequired[int]
    orders: NotRequired[int]


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
    retrieved_at: NotRequired[str | None]  # of a page of the web: when, ISO 8601 in UTC


class Verdict(TypedDict):
    """What reflection decided and why."""

    evidence: Evidence
    grounding: Grounding
    action: Action
    reason: str


class Pass(TypedDict):
    """One search that was made; a retry must differ from all of them.

    `hops` are names of the passage `hops_from` that were searched for, each by itself. A search for names alone has
    them as its query. `web_query` is what was sent to the web's search engine; where it is missing, nothing was.
    """

    query: str
    width: int
    sources: list[str]
    web_query: NotRequired[str]
    hops: NotRequired[list[str]]
    hops_from: NotRequired[str]


class Sighting(TypedDict):
    """A chunk as one leg found it in one pass of a run (counted from 1), without its text.

    `rank` is 0-based; `score` the leg's own. `content_hash` tells the text from every other.
    """

    in_pass: int
    leg: Leg
    rank: int
    score: float
    chunk_id: str
    doc_id: str
    file_name: str
    file_hash: str
    chunk_index: int
    page: int | None
    source_type: str
    content_hash: str


# What became of a candidate, from the best to the worst; `why` of its row says it in words.
Fate = Literal[
    "cited",  # a sentence of the answer cites it, and the check confirms that
    "check_failed",  # a sentence cites it, or did in the draft, that the check doesn't confirm
    "not_cited",  # the writer saw it
    "no_room",  # among the best, but the token budget had no room for a sentence of it
    "orders",  # among the best, but all it holds are orders to a model
    "below_zero",  # among the best, but no passage is above zero, and nothing of it is in the answer
    "not_written",  # among the best, but no answer was written from it for another reason
    "beyond_top",  # ranked behind the passages that are given to the writer
    "same_text",  # another candidate has the same text and stands for it
    "fusion",  # found by a leg, cut when the legs were joined
]


class SentenceCounts(TypedDict):
    """How many sentences of a passage the writer was shown, how many had no room in the token budget, and how many
    were left out since they give orders to a model."""

    shown: int
    no_room: int
    orders: int


class ContextRow(TypedDict):
    """One candidate of the run: who found it, how it was ranked, and what became of it. Holds none of its text.

    `fused_rank` and `rank` are its 0-based places after fusion and after the reranker; `rerank_score` is 0.0 where it
    was not scored. `n` is its number in the evidence. `same_as` is the chunk that stands for it, `led_by` a name of
    another passage that a search for it came by. Not known, or not so: None.
    """

    chunk_id: str
    file_name: str
    rerank_score: float
    found_by: dict[str, Found]
    kept: bool
    why: str
    fate: Fate
    doc_id: str
    chunk_index: int | None
    page: int | None
    source_type: str
    content_hash: str
    fused_rank: int | None
    rank: int | None
    n: int | None
    sentences: SentenceCounts | None
    same_as: str | None
    led_by: str | None


class SourceSeen(TypedDict):
    """A source that a run found something of, and the hash of its bytes then."""

    file_name: str
    file_hash: str


class RunRecord(TypedDict):
    """What it takes to make the searches of a run again and see what is different. No text of a passage, no secret.

    `library` tells the documents' catalog from every other. `settings` are those of the installation that retrieval
    depends on, `settings_hash` tells them from others; `knobs` are the run's own. `passes` are the searches in their
    order, `path` what was decided after each; `judged_by` are the questions that the reranker scored against,
    `zero_point` what was taken off its logits. `sources` is doc_id → what it was. `result_hash` is that of the whole
    result, without itself: one that was edited has another.
    """

    format: int
    leadline: str
    library: str
    collection: str
    settings: dict[str, Any]
    settings_hash: str
    knobs: dict[str, Any]
    passes: list[Pass]
    path: list[Verdict]
    judged_by: list[str]
    zero_point: float
    sources: dict[str, SourceSeen]
    result_hash: NotRequired[str]


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
    limits: NotRequired[list[str]]  # the budgets that kept the run from something, by their names
    models: dict[str, str]
    generation: int
    indexing: list[str]  # names of the collection's files that were not in yet when the run began
    record: NotRequired[RunRecord]
    error: NotRequired[dict[str, str]]
