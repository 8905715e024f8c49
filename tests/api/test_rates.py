"""How often each of many may do something."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.api.rates import MOST_NAMES, Rates


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(1, 60), st.lists(st.floats(0, 30), max_size=200))
def test_no_minute_sees_more_than_its_share(per_minute: int, pauses: list[float]) -> None:
    """Whatever the rhythm: within 60 seconds at most twice the rate (a full bucket and its refill), never more."""
    clock = Clock()
    rates = Rates(per_minute, clock)
    taken: list[float] = []
    for pause in pauses:
        clock.now += pause
        if not rates.take("ana"):
            taken.append(clock.now)
    for at in taken:
        assert sum(at <= other < at + 60 for other in taken) <= 2 * per_minute


@given(st.integers(1, 1000))
def test_the_wait_that_is_told_is_enough(per_minute: int) -> None:
    """After so many seconds there is one again; another name has not waited at all."""
    clock = Clock()
    rates = Rates(per_minute, clock)
    while not (wait_s := rates.take("ana")):
        pass
    assert not rates.take("ben")
    clock.now += wait_s
    assert not rates.take("ana")


def test_many_names_take_no_more_memory() -> None:
    """The least used are forgotten; whoever keeps asking is not."""
    clock = Clock()
    rates = Rates(1, clock)
    assert not rates.take("busy")
    for n in range(3 * MOST_NAMES):
        rates.take(f"address {n}")
        assert rates.take("busy")
    assert len(rates._buckets) == MOST_NAMES
