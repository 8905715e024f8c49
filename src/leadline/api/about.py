"""What this server is, what it allows, and who is asking: what a page needs before its first question."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from leadline import __version__
from leadline.api.access import NOBODY, Who
from leadline.config import MAX_QUESTION_CHARS, Consent, Settings, WebPolicy

router = APIRouter(tags=["health"])


class AboutLimits(BaseModel):
    """What one caller may ask for; more is refused by 413 or 429."""

    max_question_chars: int
    max_file_mb: float
    max_pages: int
    max_upload_files: int
    max_upload_mb: float
    rate_per_minute: int
    max_running: int


class AboutCaller(BaseModel):
    """Who is asking. `collections`: those that they may see; null: all."""

    name: str
    may_write: bool
    collections: list[str] | None


class About(BaseModel):
    """This server. `collection`, `web` and `llm` are what a question gets that names none."""

    name: Literal["Leadline"] = "Leadline"
    version: str
    collection: str
    web: WebPolicy
    web_consent: Consent
    llm: str | None
    llms: list[str]
    limits: AboutLimits
    caller: AboutCaller
    token_needed: bool


class TokenNeeded(BaseModel):
    """All that is said without a token, where one is needed."""

    name: Literal["Leadline"] = "Leadline"
    token_needed: Literal[True] = True


@router.get("/about")
async def about(request: Request, who: Who) -> About | TokenNeeded:
    """What this server is and allows. Without a token, where one is needed, only that."""
    if who == NOBODY:
        return TokenNeeded()
    settings: Settings = request.app.state.settings
    asked = settings.run
    return About(
        version=__version__,
        collection=who.default(asked.collection),
        web=asked.web,
        web_consent=asked.web_consent,
        llm=None if asked.llm is None else without_path(asked.llm),
        llms=settings.llms,
        limits=_limits(settings),
        caller=AboutCaller(
            name=who.name,
            may_write=who.may_write,
            collections=None if who.collections is None else sorted(who.collections),
        ),
        token_needed=bool(getattr(request.state, "token_needed", False)),
    )


def without_path(llm: str) -> str:
    """A model string as it may be shown: a file of weights is nobody's business but the server's."""
    return "local" if llm.startswith("local:") else llm


def _limits(settings: Settings) -> AboutLimits:
    given: dict[str, Any] = {name: getattr(settings, name, None) for name in AboutLimits.model_fields}
    return AboutLimits(**{**given, "max_question_chars": MAX_QUESTION_CHARS})
