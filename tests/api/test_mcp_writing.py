"""What an agent may change through `leadline mcp --allow-write`: which files it can put in, what they are called."""

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.api.mcp_tools import QUESTION, READING, call, command_line, fault, served

WRITING = {"add_document", "delete_document"}


async def test_a_text_that_is_json_is_a_text(tmp_path: Path) -> None:
    """A document may hold nothing but JSON: it isn't read as data on the way in."""
    async with served(tmp_path / "data", allow_write=True) as client:
        for number, text in enumerate(('{"tug": "Anvil"}', '["Anvil"]', "null")):
            added = await call(client, "add_document", name=f"{number}.txt", text=text)
            assert (added["status"], added["chunks"]) == ("added", 1)


async def test_documents_are_added_and_deleted_where_that_is_allowed(copied: Path, tmp_path: Path) -> None:
    """A text and a file go in, can be asked about, are replaced and deleted; a broken file says why it isn't in."""
    folder, opened = shutil.copytree(copied, tmp_path / "data"), tmp_path / "opened"
    opened.mkdir()
    (opened / "quokka.md").write_text("The quokka project has a budget of 42 pounds.\n")
    (opened / "broken.docx").write_bytes(b"PK nothing")
    async with served(folder, allow_write=True, folders=[opened]) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING | WRITING
        assert not any(tools[name].annotations.read_only_hint for name in WRITING)  # type: ignore[union-attr]
        added = await call(client, "add_document", path=str(opened / "quokka.md"))
        assert (added["status"], added["file_name"]) == ("added", "quokka.md")
        asked = await call(client, "ask", question="What budget does the quokka project have?")
        assert "42 pounds" in asked["answer"]
        again = await call(client, "add_document", name="quokka.md", text="The quokka project has 43 pounds as budget.")
        assert (again["status"], again["doc_id"]) == ("replaced", added["doc_id"])
        asked = await call(client, "ask", question="What budget does the quokka project have?")
        assert "43 pounds" in asked["answer"]
        assert "42" not in asked["answer"]
        assert (await call(client, "add_document", name="n.md", text="New.", collection="new"))["status"] == "added"
        assert "new" in (await call(client, "list_documents"))["collections"]
        removed = await call(client, "delete_document", document="quokka.md")
        assert removed["doc_id"] == added["doc_id"]
        asked = await call(client, "ask", question="What budget does the quokka project have?")
        assert asked["status"] == "abstained"
        assert "not what its name" in await fault(client, "add_document", path=str(opened / "broken.docx"))
        assert "no document" in await fault(client, "delete_document", document="quokka.md")
        assert "no document" in await fault(client, "delete_document", document="quok")
        for wrong in ({}, {"name": "a.md"}, {"text": "x"}, {"path": "x", "text": "y", "name": "z.md"}):
            assert "`name` with its `text`" in await fault(client, "add_document", **wrong)


async def test_only_opened_folders_are_read_from(copied: Path, tmp_path: Path) -> None:
    """A path elsewhere, above, through a link, or into the data folder is refused, and nothing of it is said."""
    folder, opened = shutil.copytree(copied, tmp_path / "data"), tmp_path / "opened"
    opened.mkdir()
    secret = tmp_path / "secret.md"
    secret.write_text("The password is swordfish.")
    (opened / "link.md").symlink_to(secret)
    tried = (secret, opened / ".." / "secret.md", opened / "link.md", Path("/etc/passwd"), folder / "catalog.db")
    async with served(folder, allow_write=True, folders=[opened]) as client:
        for path in tried:
            refused = await fault(client, "add_document", path=str(path))
            assert "no folder that may be read from" in refused
            assert "swordfish" not in refused
        for name in ("../../x.md", "/etc/x.md", "a\x00b.md"):
            added = await call(client, "add_document", name=name, text=f"Text of {name!r}.")
            assert "/" not in added["file_name"]
            assert "\x00" not in added["file_name"]
    assert not (tmp_path.parent / "x.md").exists()
    async with served(folder, allow_write=True) as client:
        assert "--add-from" in await fault(client, "add_document", path=str(opened / "x.md"))


async def test_files_of_one_name_in_different_folders_are_different_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is called as the command line calls it when it takes in the opened folder, so none replaces another."""
    opened = tmp_path / "opened"
    for year in ("2024", "2025"):
        (opened / year).mkdir(parents=True)
        (opened / year / "report.txt").write_text(f"The yard built {year} hulls.\n")
    async with served(tmp_path / "data", allow_write=True, folders=[opened]) as client:
        first = await call(client, "add_document", path=str(opened / "2024" / "report.txt"))
        second = await call(client, "add_document", path=str(opened / "2025" / "report.txt"))
        assert (first["uri"], second["uri"]) == ("2024/report.txt", "2025/report.txt")
        assert {each["status"] for each in (first, second)} == {"added"}
        listed = (await call(client, "list_documents"))["documents"]
        assert {each["doc_id"] for each in listed} == {first["doc_id"], second["doc_id"]}
        assert "2025/report.txt" in await fault(client, "delete_document", document="report.txt")
        removed = await call(client, "delete_document", document="2024/report.txt")
        assert removed["doc_id"] == first["doc_id"]
    await asyncio.to_thread(command_line, "ingest", str(opened), "--json", "--data-dir", str(tmp_path / "data"))
    status = {row["uri"]: row["status"] for row in json.loads(capsys.readouterr().out)["files"]}
    assert status == {"2024/report.txt": "added", "2025/report.txt": "unchanged"}


async def test_a_path_is_taken_from_the_opened_folders_in_turn(tmp_path: Path) -> None:
    """The path below a folder is enough; where two folders have one, the first's goes in and the other's is refused."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, names in ((one, ("both.txt",)), (two, ("both.txt", "sub/only.txt"))):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"The {folder.name} yard wrote {name}.\n")
    (tmp_path / "secret.txt").write_text("The password is swordfish.")
    (one / "loop.txt").symlink_to(one / "loop.txt")
    async with served(tmp_path / "data", allow_write=True, folders=[one, two]) as client:
        assert (await call(client, "add_document", path="sub/only.txt"))["uri"] == "sub/only.txt"
        both = await call(client, "add_document", path="both.txt")
        refused = await fault(client, "add_document", path=str(two / "both.txt"))
        assert "would both be called 'both.txt'" in refused
        assert (await call(client, "add_document", path="./both.txt"))["status"] == "unchanged"
        found = await call(client, "search", query="Which yard wrote both?")
        assert [p["text"] for p in found["passages"] if p["doc_id"] == both["doc_id"]] == [
            "The one yard wrote both.txt."
        ]
        for path in ("nowhere.txt", "", ".", "sub", "x" * 3000):
            assert "There is no file" in await fault(client, "add_document", path=path)
        for path in ("both\x00.txt", f"{one}/\x00"):
            assert "can't be the path of a file" in await fault(client, "add_document", path=path)
        assert "Error executing tool add_document: " in await fault(client, "add_document", path="loop.txt")
        refused = await fault(client, "add_document", path="../secret.txt")
        assert "no folder that may be read from" in refused
        assert "swordfish" not in refused


async def test_what_is_refused_leaves_no_collection(tmp_path: Path) -> None:
    """A path that may not be read, a file that isn't there, a bad name: no collection of the name that was given."""
    (tmp_path / "opened").mkdir()
    async with served(tmp_path / "data", allow_write=True, folders=[tmp_path / "opened"]) as client:
        wrong: list[dict[str, str]] = [
            {"path": "/etc/passwd"},
            {"path": "nowhere.txt"},
            {"name": "..", "text": "x"},
            {"name": "a.md"},
            {},
        ]
        for arguments in wrong:
            await fault(client, "add_document", collection="ghost", **arguments)
        assert (await call(client, "list_documents"))["collections"] == ["default"]
        assert "no collection ghost" in await fault(client, "list_documents", collection="ghost")


async def test_a_deleted_document_leaves_conversations_too(copied: Path, tmp_path: Path) -> None:
    """An answer kept in a conversation of the command line goes when an agent deletes what it was made from."""
    folder = shutil.copytree(copied, tmp_path / "data")
    asked = ("ask", QUESTION, "--thread", "t", "--data-dir", str(folder))
    await asyncio.to_thread(command_line, *asked)
    async with served(folder, allow_write=True) as client:
        removed = await call(client, "delete_document", document="pilotage-directions.md")
    assert removed["conversations"] == 1
    with sqlite3.connect(folder / "threads.db") as threads:
        stored = "".join(str(row) for row in threads.execute("SELECT * FROM checkpoints"))
    assert "32 tonnes" not in stored
