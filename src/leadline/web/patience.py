"""How often an engine is asked: one more try after a short pause, and none for a while once it says it is too often."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from leadline.errors import WebRateLimited, WebUnavailable

T = TypeVar("T")

PAUSE_S = 0.5
RATE_LIMIT_PAUSE_S = 2.0
MAX_PAUSE_S = 5.0
"""An engine that wants a longer pause than this isn't waited for."""
COOL_DOWN_S = 60.0


class Patience:
    """Of one engine. Keeps to `retry_after_s` where the engine names it."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def rest_s(self) -> float:
        """The seconds for which the engine is left alone; 0.0: it can be asked."""
        return max(0.0, self._not_before - time.monotonic())

    async def ask(self, one_try: Callable[[], Awaitable[T]]) -> T:
        """What a try gives, the second one at the latest. Raises WebUnavailable.

        While the engine is left alone after a rate limit, nothing is sent at all.
        """
        if (rest := self.rest_s()) > 0:
            raise resting(rest)
        try:
            return await one_try()
        except WebUnavailable as error:
            pause = _pause_after(error)
            if pause > MAX_PAUSE_S:
                self._leave_alone(error)
                raise
        await asyncio.sleep(pause)
        try:
            return await one_try()
        except WebRateLimited as error:
            self._leave_alone(error)
            raise

    def _leave_alone(self, error: WebUnavailable) -> None:
        named = error.retry_after_s if isinstance(error, WebRateLimited) else None
        self._not_before = time.monotonic() + max(COOL_DOWN_S, named or 0.0)


def resting(seconds: float) -> WebRateLimited:
    """What is said instead of asking an engine that is left alone."""
    return WebRateLimited(f"The web search was limited a moment ago; it is asked again in {seconds:.0f} s.")


def _pause_after(error: WebUnavailable) -> float:
    if not isinstance(error, WebRateLimited):
        return PAUSE_S
    return RATE_LIMIT_PAUSE_S if error.retry_after_s is None else max(PAUSE_S, error.retry_after_s)
