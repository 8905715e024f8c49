"""How often Python's threads take turns while text is taken in."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

HANDOVER_S: Final = 0.0005


@asynccontextmanager
async def quick_handover() -> AsyncIterator[None]:
    """Lets Python's threads take turns every half millisecond while the block runs.

    The embedder's threads need the interpreter for a moment after each text; at the usual five milliseconds they wait
    for the threads that prepare and store, and a core stands still (a twentieth of the throughput, measured).
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, HANDOVER_S))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
