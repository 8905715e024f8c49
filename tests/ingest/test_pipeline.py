"""Folders into a collection: a bad file stops no other, an edit replaces, a sync deletes only what is surely gone."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from leadline.config import Settings, load_settings
from leadline.drafts import SourceDraft
from leadline.errors import ConfigError, ModelUnavailable, UnreadableFile
from leadline.events import DocumentSaved, DocumentsPruned, Event, ItemFailed
from leadline.ingest import pipeline
from leadline.ingest.pipeline import IngestReport, Progress, ingest_paths
from leadline.knowledge import KnowledgeBase, PutReport, open_library, put
from leadline.knowledge.opened import Opened


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Defaults, in a fresh data folder."""
    return load_settings(data_dir=tmp_path / "data")


@pytest.fixture
async def kb(settings: Settings) -> AsyncIterator[KnowledgeBase]:
    """The default collection, empty."""
    async with open_library(settings) as library:
        yield await library.collection()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three documents, one of them in a folder below."""
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "zoo.md").write_text("# Zoo\n\nDana Fox feeds the otters at noon.\n", encoding="utf-8")
    (folder / "fee.txt").write_text("The mooring fee at Quokka Pier is 10 euros.\n", encoding="utf-8")
    (folder / "deep" / "parts.csv").write_text("part,torque\nM8,25\nM10,49\n", encoding="utf-8")
    return folder


def statuses(report: IngestReport) -> dict[str, str]:
    """URI → what became of the file."""
    return {row.uri: row.status for row in report.rows}


async def test_a_folder_goes_in_with_a_row_for_each_file(kb: KnowledgeBase, docs: Path, settings: Settings) -> None:
    """Sorted, by paths relative to the folder; progress counts to the end; each chunk is told of."""
    seen: list[Progress] = []
    events: list[Event] = []
    report = await ingest_paths(kb, [docs], settings, on_progress=seen.append, on_event=events.append)
    assert statuses(report) == {"fee.txt": "added", "zoo.md": "added", "deep/parts.csv": "added"}
    assert [(p.done, p.total) for p in seen] == [(1, 3), (2, 3), (3, 3)]
    assert (report.failed, report.chunks, report.pruned) == (0, await kb.count(), None)
    assert len([e for e in events if isinstance(e, DocumentSaved)]) == report.chunks
    assert "otters" in (await kb.search("who feeds the otters"))[0]["content"]


async def test_a_bad_file_is_a_row_and_the_others_go_in(kb: KnowledgeBase, docs: Path, settings: Settings) -> None:
    """Random bytes, an empty file, a file of spaces: each with its own reason."""
    (docs / "broken.docx").write_bytes(b"PK\x03\x04 nothing like a document")
    (docs / "empty.md").touch()
    (docs / "spaces.txt").write_text("   \n \n", encoding="utf-8")
    events: list[Event] = []
    report = await ingest_paths(kb, [docs], settings, on_event=events.append)
    assert report.failed == 3
    failed = {row.uri: row.error for row in report.rows if row.status == "failed"}
    assert set(failed) == {"broken.docx", "empty.md", "spaces.txt"}
    assert all(failed.values())
    assert {e.item for e in events if isinstance(e, ItemFailed)} == set(failed)
    assert sorted(source.uri for source in await kb.list_sources()) == ["deep/parts.csv", "fee.txt", "zoo.md"]


async def test_a_fault_in_a_parser_is_that_files_own(
    kb: KnowledgeBase, docs: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even an error nobody thought of; but a model that is missing stops the run."""
    real = pipeline.prepare

    def faulty(path: Path, *args: object, **options: object) -> object:
        if path.name == "fee.txt":
            raise RecursionError("too deep")
        return real(path, *args, **options)  # type: ignore[arg-type] - handed through

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "prepare", faulty)
        report = await ingest_paths(kb, [docs], settings)
    assert statuses(report) == {"fee.txt": "failed", "zoo.md": "added", "deep/parts.csv": "added"}

    def without_model(*_: object, **__: object) -> None:
        raise ModelUnavailable("no tokenizer")

    monkeypatch.setattr(pipeline, "prepare", without_model)
    with pytest.raises(ModelUnavailable):
        await ingest_paths(kb, [docs], settings)


async def test_a_second_run_changes_nothing_and_an_edit_replaces(
    kb: KnowledgeBase, docs: Path, settings: Settings
) -> None:
    """By content, not by name or time: what was edited answers with its new text only."""
    await ingest_paths(kb, [docs], settings)
    generation = await kb.generation()
    assert set(statuses(await ingest_paths(kb, [docs], settings)).values()) == {"unchanged"}
    assert await kb.generation() == generation
    (docs / "fee.txt").write_text("The mooring fee at Numbat Pier is 20 euros.\n", encoding="utf-8")
    report = await ingest_paths(kb, [docs], settings)
    assert statuses(report) == {"fee.txt": "replaced", "zoo.md": "unchanged", "deep/parts.csv": "unchanged"}
    assert "20 euros" in (await kb.search("mooring fee"))[0]["content"]
    assert await kb.retrievers()["bm25"].search("quokka", k=5) == []


async def test_a_sync_deletes_what_is_gone_from_its_folder_only(
    kb: KnowledgeBase, docs: Path, settings: Settings, tmp_path: Path
) -> None:
    """A file given by name, and what came from another folder, stay."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "else.txt").write_text("Of another folder.", encoding="utf-8")
    single = tmp_path / "single.txt"
    single.write_text("Given by name.", encoding="utf-8")
    await ingest_paths(kb, [docs, other, single], settings)
    (docs / "fee.txt").unlink()
    rehearsal = await ingest_paths(kb, [docs], settings, sync=True, dry_run=True)
    assert [(row.uri, row.status) for row in rehearsal.removed] == [("fee.txt", "removed")]
    assert await kb.search("mooring fee quokka") != []
    events: list[Event] = []
    report = await ingest_paths(kb, [docs], settings, sync=True, on_event=events.append)
    assert events[-1] == DocumentsPruned(deleted=1, kept=2, items=("fee.txt",))
    assert report.removed == rehearsal.removed
    assert sorted(s.uri for s in await kb.list_sources()) == ["deep/parts.csv", "else.txt", "single.txt", "zoo.md"]
    assert (await kb.verify()).ok


async def test_a_sync_deletes_nothing_when_it_can_not_be_sure(
    kb: KnowledgeBase, docs: Path, settings: Settings
) -> None:
    """After a failed file, or when the folder came out empty, nothing is taken for gone; the reason is told."""
    await ingest_paths(kb, [docs], settings)
    (docs / "zoo.md").write_bytes(b"")
    (docs / "fee.txt").unlink()
    report = await ingest_paths(kb, [docs], settings, sync=True)
    assert report.pruned is not None
    assert (report.pruned.deleted, report.pruned.reason) == (
        0,
        "1 items failed, so what is missing may not be gone",
    )
    (docs / "zoo.md").unlink()
    shutil.rmtree(docs / "deep")
    report = await ingest_paths(kb, [docs], settings, sync=True)
    assert report.pruned == DocumentsPruned(deleted=0, kept=0, skipped=True, reason="a folder held no supported file")
    assert len(await kb.list_sources()) == 3


async def test_a_sync_without_a_folder_says_so(kb: KnowledgeBase, docs: Path, settings: Settings) -> None:
    """A file alone tells nothing about what is missing beside it."""
    report = await ingest_paths(kb, [docs / "fee.txt"], settings, sync=True)
    assert report.pruned is not None
    assert "no folder was given" in report.pruned.reason


async def test_a_dry_run_changes_nothing(kb: KnowledgeBase, docs: Path, settings: Settings) -> None:
    """It says what would go in."""
    report = await ingest_paths(kb, [docs], settings, dry_run=True)
    assert set(statuses(report).values()) == {"added"}
    assert report.dry_run
    assert await kb.count() == 0


async def test_paths_that_can_not_be_told_apart_or_found_are_refused_before_anything(
    kb: KnowledgeBase, docs: Path, settings: Settings
) -> None:
    """Nothing goes in half."""
    with pytest.raises(UnreadableFile, match="nowhere"):
        await ingest_paths(kb, [docs, docs / "nowhere"], settings)
    twin = docs.parent / "twin"
    twin.mkdir()
    (twin / "fee.txt").write_text("Another fee.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"fee\.txt"):
        await ingest_paths(kb, [docs, twin], settings)
    assert await kb.count() == 0


async def test_many_small_files_share_puts(
    kb: KnowledgeBase, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files go in together, in their order, none left out or put twice."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02}.txt").write_text(f"Fact number {number}.", encoding="utf-8")
    sizes: list[int] = []
    real = put.put

    async def counted(opened: Opened, drafts: list[SourceDraft], *args: Any, **options: Any) -> list[PutReport]:
        sizes.append(len(drafts))
        return await real(opened, drafts, *args, **options)

    monkeypatch.setattr(put, "put", counted)
    report = await ingest_paths(kb, [folder], settings)
    assert [row.uri for row in report.rows] == [f"{number:02}.txt" for number in range(60)]
    assert sum(sizes) == 60
    assert len(sizes) < 30
    assert await kb.count() == 60


async def test_a_failure_in_one_folder_keeps_another_from_being_pruned(
    kb: KnowledgeBase, docs: Path, settings: Settings, tmp_path: Path
) -> None:
    """What is missing from one may be what could not be read in the other: files move between folders."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "else.txt").write_text("Of another folder.", encoding="utf-8")
    await ingest_paths(kb, [docs, other], settings)
    (docs / "fee.txt").unlink()
    (other / "else.txt").write_bytes(b"")
    report = await ingest_paths(kb, [docs, other], settings, sync=True)
    assert report.pruned is not None
    assert (report.pruned.deleted, report.pruned.skipped) == (0, True)
    (other / "else.txt").write_text("Of another folder, again.", encoding="utf-8")
    report = await ingest_paths(kb, [docs, other], settings, sync=True)
    assert [row.uri for row in report.removed] == ["fee.txt"]
    assert (await kb.verify()).ok


CODE = "".join(f"    total_{n} = compute_interest(account_{n}, rate_{n % 7})\n" for n in range(32))
CHINESE = "".join(f"第{n}号仓库的货物每周检查一次，记录由值班员保存在办公室。" for n in range(60))


@pytest.mark.parametrize(
    ("name", "text", "question"),
    [
        ("bank.py", f'def run():\n{CODE}    open_vault(code="7719")\n', "Which code opens the vault?"),
        ("store.txt", f"{CHINESE}金库的密码是7719。", "金库的密码是什么？"),
    ],
)
async def test_the_end_of_a_long_text_is_found_by_meaning(
    name: str, text: str, question: str, kb: KnowledgeBase, docs: Path, settings: Settings
) -> None:
    """What stands last in a text longer than the embedder reads at once, and takes many tokens, is in a vector."""
    assert len(text) > 1500
    (docs / name).write_text(text, encoding="utf-8")
    await ingest_paths(kb, [docs], settings)
    best, *_ = await kb.retrievers()["vector"].search(question, k=3)
    assert best["metadata"]["file_name"] == name
    assert "7719" in best["content"]
