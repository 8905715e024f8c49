"""What an agent calls a text, and what it asks without words: the tools in this process, with the SDK's own client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client
from tests.api.mcp_tools import call, fault

from leadline import load_settings
from leadline.api.mcp import build_server
from leadline.graph.run import open_app


@asynccontextmanager
async def agent_at(folder: Path) -> AsyncIterator[Client]:
    """A client of a server that may write, over a new data folder."""
    async with (
        open_app(load_settings(data_dir=folder / "data")) as app,
        Client(build_server(app, allow_write=True)) as client,
    ):
        yield client


async def test_texts_of_one_name_in_different_folders_are_different_documents(tmp_path: Path) -> None:
    """An agent that keeps the folders of what it read doesn't lose one to the other; the same name replaces its own."""
    names = ("2024/report.md", "2025/report.md", "report.md")
    async with agent_at(tmp_path) as agent:
        added = [await call(agent, "add_document", name=name, text=f"The {name} of the yard.") for name in names]
        assert [each["uri"] for each in added] == [*names]
        assert {(each["status"], each["file_name"]) for each in added} == {("added", "report.md")}
        again = await call(agent, "add_document", name="2025\\report.md", text="The yard built ten hulls.")
        assert (again["status"], again["doc_id"]) == ("replaced", added[1]["doc_id"])
        listed = (await call(agent, "list_documents"))["documents"]
        assert sorted(each["uri"] for each in listed) == sorted(names)
        removed = await call(agent, "delete_document", document="2024/report.md")
        assert removed["doc_id"] == added[0]["doc_id"]
        assert len((await call(agent, "list_documents"))["documents"]) == 2


async def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    """Steps up, a root, and characters that can't be seen are left out of what a text is called; where nothing is left
    of it or of a folder in it, or it is too long, it is refused."""
    called = {
        "../../x.md": "x.md",
        "/etc/./y.md": "etc/y.md",
        "a/../b//x.md": "b/x.md",
        "a\u202e/x\x00.md": "a/x.md",
    }
    async with agent_at(tmp_path) as agent:
        for name, uri in called.items():
            assert (await call(agent, "add_document", name=name, text=f"This is {uri}."))["uri"] == uri
        for name in ("..", "/", "a/\u200b/x.md", "x" * 1001):
            await fault(agent, "add_document", name=name, text="Some words.")
        listed = (await call(agent, "list_documents"))["documents"]
        assert sorted(each["uri"] for each in listed) == sorted(called.values())


async def test_a_question_without_words_is_none(tmp_path: Path) -> None:
    """Blanks are refused as an empty text is: what would be found for them is anything."""
    async with agent_at(tmp_path) as agent:
        for tool, argument in (("ask", "question"), ("search", "query")):
            for blank in ("", "  \n"):
                assert "Nothing is asked" in await fault(agent, tool, **{argument: blank})
