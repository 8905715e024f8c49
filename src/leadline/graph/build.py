"""The graph, every node and edge from top to bottom, and what its nodes depend on.

Builds only: opens no store, loads no model, reads no settings. Whoever compiles it gives a checkpointer or none.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from leadline.citations import check_answer
from leadline.config import RunContext
from leadline.decision import Remedies
from leadline.graph.clock import awake, clocked
from leadline.graph.person import Person, person_first
from leadline.graph.routing import after_planner, after_reflection, after_reranker
from leadline.graph.seal import sealing
from leadline.graph.speaking import as_spoken, speaking
from leadline.graph.tracing import Node, traced
from leadline.models.base import Reranker
from leadline.nodes.aggregator import aggregator
from leadline.nodes.allowance import remedies
from leadline.nodes.asking import OpenChat
from leadline.nodes.checking import CheckAnswer, check_draft
from leadline.nodes.compressor import CountTokens, compressor
from leadline.nodes.extractive import SentenceScorer
from leadline.nodes.hybrid import Retrievers, hybrid
from leadline.nodes.origins import StillThere
from leadline.nodes.outcome import Facts
from leadline.nodes.planner import Indexing, planner
from leadline.nodes.reasoning import reasoning
from leadline.nodes.reflection import reflection
from leadline.nodes.reranker import ZeroPoints, reranker
from leadline.nodes.spending import metered
from leadline.nodes.web import AskConsent, FoundBefore, ReadPages, web
from leadline.state import RAGInput, RAGState, RAGUpdate
from leadline.web import WebSearch

Step = Callable[[RAGState, Runtime[RunContext]], Awaitable[RAGUpdate]]
Graph = StateGraph[RAGState, RunContext, RAGInput, RAGState]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the nodes call. Loaders are called at each use: they answer from memory once something is loaded.

    `retrievers` is given the collection. `sentence_scorer` scores the sentences that are quoted.
    `still_there` says which chunks that an earlier answer was made from are neither deleted nor replaced.
    `indexing` names the files of a collection that are still being taken in; None: there are none.
    `refuse` raises what is wrong with a run's knobs that only the library can tell; None: nothing is.
    `zero_points` is given the collection and the reranker's name; None: no logit is shifted.
    `search` None: there is no web. `read_pages` None: its excerpts are the passages. `web_before`: what it said before.
    `ask_consent` None: nobody can be asked, so consent `ask` means no. `person` is asked where a run says `ask_person`.
    """

    retrievers: Retrievers
    reranker: Callable[[], Awaitable[Reranker]]
    sentence_scorer: Callable[[], Awaitable[SentenceScorer]]
    count_tokens: CountTokens
    chat: OpenChat
    facts: Callable[[], Awaitable[Facts]]
    still_there: StillThere
    indexing: Indexing | None = None
    refuse: Callable[[RunContext], Awaitable[None]] | None = None
    zero_points: ZeroPoints | None = None
    search: WebSearch | None = None
    read_pages: ReadPages | None = None
    web_before: FoundBefore | None = None
    ask_consent: AskConsent | None = None
    person: Person | None = None
    check: CheckAnswer = field(default=check_answer)
    rerank_timeout_s: float = 60.0

    def left(self, state: RAGState, context: RunContext) -> Remedies:
        """What a run can still try, now."""
        nobody = self.consent(context) is None and context.web_consent == "ask"
        reachable = self.search is not None
        return remedies(state, context, web_reachable=reachable, nobody_to_ask=nobody, now=time.time())

    def consent(self, context: RunContext) -> AskConsent | None:
        """What asks for consent to a web search in such a run; None: nobody can be asked."""
        return self.person.web_query if self.person is not None and context.ask_person else self.ask_consent


def search_nodes(deps: Dependencies) -> tuple[Node, Node]:
    """The two nodes of a search of the documents that have dependencies, hybrid and reranker; the aggregator has none.

    The graph's own, and those of everything that searches as it does.
    """
    rank = partial(reranker, load=deps.reranker, timeout_s=deps.rerank_timeout_s, zero_points=deps.zero_points)
    return partial(hybrid, retrievers=deps.retrievers), rank


def build_graph(deps: Dependencies) -> Graph:
    """The one graph of every surface, not compiled yet."""

    def route_evidence(state: RAGState, runtime: Runtime[RunContext]) -> str:
        return after_reranker(state, deps.left(awake(state), runtime.context))

    def plan(chat: OpenChat) -> Node:
        return partial(planner, chat=chat, still_there=deps.still_there, indexing=deps.indexing)

    def write(chat: OpenChat) -> Node:
        return partial(reasoning, chat=chat, sentence_scorer=deps.sentence_scorer)

    def reflect(chat: OpenChat) -> Node:
        check = partial(check_draft, check=deps.check, chat=chat, sentence_scorer=deps.sentence_scorer)
        return partial(reflection, check=check, chat=chat, facts=deps.facts, left=deps.left)

    graph: Graph = StateGraph(RAGState, context_schema=RunContext, input_schema=RAGInput)

    def add(name: str, node: Step, *, defer: bool = False) -> None:
        graph.add_node(name, clocked(traced(name, node)), defer=defer)

    add("planner", _refusing(deps, metered(plan, deps.chat, begins=True)))
    search, rank = search_nodes(deps)
    add("hybrid", person_first(search, deps.person))
    add("web", _web(deps))
    add("aggregator", aggregator, defer=True)
    add("reranker", rank)
    add("compressor", partial(compressor, count_tokens=deps.count_tokens, chat=deps.chat))
    add("reasoning", speaking(metered(write, deps.chat)))
    add("reflection", as_spoken(sealing(metered(reflect, deps.chat))))

    graph.add_edge(START, "planner")
    graph.add_conditional_edges("planner", after_planner, ["hybrid", "web", "reasoning"])
    graph.add_edge("hybrid", "aggregator")
    graph.add_edge("web", "aggregator")
    graph.add_edge("aggregator", "reranker")
    graph.add_conditional_edges("reranker", route_evidence, ["compressor", "reflection"])
    graph.add_edge("compressor", "reasoning")
    graph.add_edge("reasoning", "reflection")
    graph.add_conditional_edges("reflection", after_reflection, ["hybrid", "web", END])
    return graph


def _refusing(deps: Dependencies, plan: Step) -> Step:
    async def first(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        if deps.refuse is not None:
            await deps.refuse(runtime.context)
        return await plan(state, runtime)

    return first


def _web(deps: Dependencies) -> Node:
    async def look(state: RAGState, runtime: Runtime[RunContext]) -> RAGUpdate:
        ask = deps.consent(runtime.context)
        return await web(
            state, runtime, search=deps.search, ask_consent=ask, read_pages=deps.read_pages, before=deps.web_before
        )

    return look
