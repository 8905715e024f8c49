"""The search engine that the settings name. A new one is a module, a line here and a name in the setting."""

from leadline.config import Settings
from leadline.errors import ConfigError
from leadline.web.duckduckgo import DdgsSearch
from leadline.web.results import WebSearch
from leadline.web.searxng import SearxngSearch


def open_search(settings: Settings) -> WebSearch:
    """The engine; nothing is sent. Raises ConfigError where its address is missing or none."""
    if settings.web_provider == "ddgs":
        return DdgsSearch(timeout_s=settings.web_timeout_s)
    if settings.web_url is None:
        raise ConfigError("web_provider searxng needs the address of the server.", hint="Set LEADLINE_WEB_URL.")
    return SearxngSearch(settings.web_url, timeout_s=settings.web_timeout_s)
