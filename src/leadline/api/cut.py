"""The last event of a stream that the server cuts because it ends itself."""

from leadline.config import RunContext
from leadline.events import FinalEvent

REASON = "The server ended before the run did."


def cut_off(question: str, context: RunContext) -> FinalEvent:
    """A result `interrupted`: nothing of the run is kept in it, since none of it was checked."""
    verdict = {"evidence": "nothing", "grounding": "not_attempted", "action": "finish", "reason": REASON}
    result = {
        "question": question,
        "status": "interrupted",
        "answer": "",
        "citations": [],
        "verdict": verdict,
        "flags": [],
        "context": [],
        "queries": [],
        "web_used": False,
        "degraded": [],
        "usage": {},
        "models": {"llm": context.llm or "extractive"},
        "generation": 0,
        "indexing": [],
        "error": {"code": "interrupted", "message": REASON, "hint": "Ask again."},
    }
    return FinalEvent(result=result)
