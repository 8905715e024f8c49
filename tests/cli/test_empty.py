"""What a person is told who asks before anything was put in."""

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(("words", "code"), [(("ask", "--web", "never"), 4), (("search",), 0)])
def test_an_empty_collection_is_named_with_what_to_do(
    leadline: Any, words: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    """Asking or searching in an empty store says that it is empty and how to fill it."""
    done = leadline(*words, "What is the rent?", "--data-dir", tmp_path)
    assert done.code == code
    assert "is empty" in done.err
    assert "leadline ingest" in done.err
