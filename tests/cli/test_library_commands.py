"""`leadline search`, `ls`, `rm`, `verify` and `stats` on real indexes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def test_search_shows_where_each_leg_ranked_a_passage(leadline: Any, filled: Path) -> None:
    """The passage found by its code comes first, with the file, the page and the ranks of the legs."""
    done = leadline("search", "E-217", "-k", "3", "--data-dir", filled)
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first.startswith("  1. tide-gauge-manual.pdf, page 3  (")
    assert "bm25 1" in first
    results = json.loads(leadline("search", "E-217", "-k", "3", "--data-dir", filled, "--json").out)["results"]
    assert len(results) == 3
    assert set(results[0]) == {"content", "metadata", "score", "source", "rerank_score"}


def test_ls_lists_every_document(leadline: Any, filled: Path) -> None:
    """A line a document; an empty collection says how to fill it."""
    done = leadline("ls", "--data-dir", filled)
    assert len(done.out.splitlines()) == 16
    assert "harbour-handbook.md" in done.out
    assert leadline("ls", "--data-dir", filled, "--collection", "nope").code == 1


def test_ls_of_nothing_says_how_to_begin(leadline: Any, nothing_in_it: Path) -> None:
    """An empty collection is no error."""
    done = leadline("ls", "--data-dir", nothing_in_it)
    assert done.code == 0
    assert "leadline ingest" in done.err


def test_rm_needs_consent(leadline: Any, filled: Path) -> None:
    """In a pipe without --yes nothing is removed and the exit code says bad usage."""
    done = leadline("rm", "harbour-history.md", "--data-dir", filled)
    assert done.code == 2
    assert "--yes" in done.err
    assert "harbour-history.md" in leadline("ls", "--data-dir", filled).out


def test_rm_removes_a_document_everywhere(leadline: Any, filled: Path) -> None:
    """Neither list nor any leg knows it afterwards, and catalog and indexes agree."""
    done = leadline("rm", "harbour-history.md", "--yes", "--data-dir", filled, "--json")
    assert done.code == 0
    assert json.loads(done.out)["file_names"] == ["harbour-history.md"]
    assert "harbour-history.md" not in leadline("ls", "--data-dir", filled).out
    found = json.loads(leadline("search", "great flood of 1953", "--data-dir", filled, "--json").out)["results"]
    assert "harbour-history.md" not in {document["metadata"]["file_name"] for document in found}
    assert leadline("verify", "--data-dir", filled).code == 0


def test_rm_of_something_unknown_is_an_error(leadline: Any, filled: Path) -> None:
    """Exit code 1 and where to look."""
    done = leadline("rm", "nothing.md", "--yes", "--data-dir", filled)
    assert done.code == 1
    assert "leadline ls" in done.err


def test_rm_of_an_ambiguous_name_removes_nothing(leadline: Any, tmp_path: Path) -> None:
    """Two documents of one name: the ids are named, and both stay."""
    for folder in ("a", "b"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
        (tmp_path / "docs" / folder / "same.md").write_text(f"Text of {folder}.", encoding="utf-8")
    data = ("--data-dir", tmp_path / "data")
    leadline("ingest", tmp_path / "docs", *data)
    done = leadline("rm", "same.md", "--yes", *data)
    assert done.code == 1
    assert "a/same.md" in done.err
    assert len(json.loads(leadline("ls", *data, "--json").out)) == 2


def test_verify_agrees_on_a_healthy_folder(leadline: Any, filled: Path) -> None:
    """Exit code 0, every index and the texts complete."""
    done = leadline("verify", "--data-dir", filled, "--json")
    assert done.code == 0
    legs = json.loads(done.out)["default"]["legs"]
    assert legs.keys() == {"vector", "bm25", "graph", "content"}
    assert all(leg["expected"] == leg["found"] > 0 for leg in legs.values())


def test_answers_from_an_index_that_lost_chunks_say_so(leadline: Any, filled: Path) -> None:
    """Where an index doesn't hold all chunks, an answer and a search name it; nothing is said of a whole one."""
    for words in (["ask", "How deep is the fairway dredged?"], ["search", "tide"]):
        assert "Not everything" not in leadline(*words, "--data-dir", filled).err
    shutil.rmtree(filled / "indexes" / "default" / "vector")
    for words in (["ask", "How deep is the fairway dredged?"], ["search", "tide"]):
        done = leadline(*words, "--data-dir", filled)
        assert "Not everything was searched: the vector index holds 0 chunks" in done.err
        assert "verify --repair" in done.err


def test_stats_show_every_index(leadline: Any, filled: Path) -> None:
    """Documents, chunks, the model and what each index says of itself."""
    figures = json.loads(leadline("stats", "--data-dir", filled, "--json").out)["default"]
    assert figures["sources"] == 15
    assert figures["indexes"]["vector"]["count"] == figures["chunks"]
    assert "sources\t15" in leadline("stats", "--data-dir", filled).out


def test_a_second_process_is_told_who_has_the_folder(leadline: Any, filled: Path) -> None:
    """While another process changes the data folder, a command that changes it too waits, then names the owner; one
    that only reads doesn't wait."""
    holder = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom leadline import load_settings, open_library\n"
        "async def main():\n"
        "    async with open_library(load_settings(data_dir=Path(sys.argv[1]))) as library, library.gate.hold():\n"
        "        print('held', flush=True)\n        sys.stdin.read()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(filled)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        done = leadline("rm", "tide-gauge-manual.pdf", "--yes", "--lock-timeout", "0.2", "--data-dir", filled)
        assert done.code == 1
        assert str(process.pid) in done.err
        for command in (["ls"], ["search", "tide"], ["stats"]):
            assert leadline(*command, "--data-dir", filled).code == 0
        process.communicate("")
