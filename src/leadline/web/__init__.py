"""The web: search engines, and pages fetched from public addresses only.

Knows how a query and a fetch go out and what comes back. Whether anything may go out is decided by the caller. Chunks
nothing and keeps nothing.
"""

from leadline.web.duckduckgo import DdgsSearch
from leadline.web.engines import open_search
from leadline.web.pages import PageFetcher, WebPage
from leadline.web.patience import resting
from leadline.web.results import Resting, WebResult, WebSearch, plain_text
from leadline.web.searxng import SearxngSearch

__all__ = [
    "DdgsSearch",
    "PageFetcher",
    "Resting",
    "SearxngSearch",
    "WebPage",
    "WebResult",
    "WebSearch",
    "open_search",
    "plain_text",
    "resting",
]
