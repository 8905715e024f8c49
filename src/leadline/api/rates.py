"""How often each of many may do something: a bucket a name, filled again as time goes by."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_NAMES: Final = 10_000  # the least used is forgotten: its bucket was the fullest


class Rates:
    """So many a minute for each name, in one burst or spread. In memory: each process counts for itself."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was left, and when

    def take(self, name: str) -> int:
        """0, and one is taken; or the whole seconds after which there is one."""
        now = self._clock()
        left, at = self._buckets.pop(name, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - at) * self._per_minute / 60)
        wait_s = 0 if left >= 1 else math.ceil((1 - left) * 60 / self._per_minute)
        self._buckets[name] = (left if wait_s else left - 1, now)
        if len(self._buckets) > MOST_NAMES:
            self._buckets.popitem(last=False)
        return wait_s
