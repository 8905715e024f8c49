"""Who is asking: what they see, and where their conversations are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.api.access import Caller
from leadline.api.schemas import THREAD_PATTERN
from leadline.errors import CollectionUnknown, Forbidden

IDS = st.from_regex(THREAD_PATTERN, fullmatch=True)
NAMES = st.from_regex(r"^[a-z0-9][a-z0-9_-]{0,20}$", fullmatch=True).filter(lambda name: name != "local")


def test_whoever_is_at_this_machine_sees_and_changes_all() -> None:
    """Without tokens there is one caller, with every right."""
    caller = Caller()
    caller.need("anything")
    caller.need_write()


def test_a_collection_of_others_is_not_there() -> None:
    """What a token may not see raises the error of what does not exist, in the same words."""
    caller = Caller("ana", frozenset({"mine"}), may_write=False)
    caller.need("mine")
    with pytest.raises(CollectionUnknown, match="There is no collection yours"):
        caller.need("yours")
    with pytest.raises(Forbidden):
        caller.need_write()


@given(NAMES, NAMES, IDS, IDS)
def test_no_id_reaches_the_conversation_of_another(one: str, other: str, first: str, second: str) -> None:
    """Two callers' conversations never share a stored id, whatever ids they choose; each finds its own again."""
    a, b, local = Caller(one), Caller(other), Caller()
    assert a.own_thread(a.thread(first)) == first
    assert local.own_thread(local.thread(first)) == first
    assert local.thread(second) != a.thread(first)
    assert local.own_thread(a.thread(first)) is None
    assert a.own_thread(local.thread(first)) is None
    if one != other:
        assert a.thread(first) != b.thread(second)
        assert b.own_thread(a.thread(first)) is None
