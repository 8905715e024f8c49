"""What loading LiteLLM does to its process, and whose certificate a server must show."""

import gc
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from leadline.models import providers


@pytest.fixture
def collector() -> Iterator[None]:
    """Whatever a test does to the garbage collector ends with it."""
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_as_it_was(collector: None, was_on: bool) -> None:
    """It rests while LiteLLM is imported, and whoever had it on or off finds it so, even after a failed import."""
    (gc.enable if was_on else gc.disable)()
    with suppress(ImportError), providers._no_collections():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled() is was_on


def test_two_threads_leave_the_garbage_collector_on(collector: None) -> None:
    """The second doesn't take the first's rest for how it was."""
    gc.enable()
    begun, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with providers._no_collections():
            begun.set()
            go_on.wait(10)

    def second() -> None:
        with providers._no_collections():
            pass

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert gc.isenabled()


@pytest.mark.parametrize("address", ["https://llm.example.org/v1", "HTTPS://127.0.0.1:8000", "llm.example.org/v1"])
def test_a_certificate_is_checked_wherever_one_may_be_shown(address: str) -> None:
    """However the scheme is written, and the list of authorities is read once."""
    checked = providers.authorities(address)
    assert isinstance(checked, ssl.SSLContext)
    assert checked.verify_mode is ssl.CERT_REQUIRED
    assert checked.check_hostname
    assert checked is providers.authorities("https://another.example.org")


def test_a_server_without_tls_shows_none() -> None:
    """Reading the list of authorities for it would only take time."""
    assert providers.authorities("http://127.0.0.1:8000/v1") is False
