"""Conversations over HTTP: one run at a time, one collection."""

import asyncio
import json

import httpx
import pytest

from leadline import Settings
from leadline.graph.conversations import open_conversations

QUESTION = "What does error E-217 mean?"


@pytest.mark.parametrize("stream", [True, False])
def test_a_busy_conversation_gets_409(address: str, api_settings: Settings, client: httpx.Client, stream: bool) -> None:
    """While another process has a run in it: before any event, in the one shape of errors; another thread goes on."""
    held, free = f"held-{stream}", f"free-{stream}"

    async def refused_while_held() -> httpx.Response:
        async with (
            open_conversations(api_settings) as conversations,
            conversations.turn(held, "default"),
            httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as other,
        ):
            beside = await other.post("/chat", json={"question": QUESTION, "thread_id": free, "stream": False})
            assert beside.status_code == 200
            return await other.post("/chat", json={"question": QUESTION, "thread_id": held, "stream": stream})

    refused = asyncio.run(refused_while_held())
    assert refused.status_code == 409
    assert json.loads(refused.text)["error"]["code"] == "thread_busy"
    body = {"question": QUESTION, "thread_id": held, "stream": False}
    assert client.post("/chat", json=body).status_code == 200


def test_a_conversation_is_listed_read_and_deleted(client: httpx.Client) -> None:
    """With its first question, its turns and collection, what was said, and the last result; then it is gone."""
    asked = {"thread_id": "kept", "web": "never", "stream": False}
    answers = [client.post("/chat", json={"question": q, **asked}).json() for q in (QUESTION, "And E-301?")]
    listed = client.get("/threads", params={"collection": "default"}).json()["threads"]
    (one,) = [each for each in listed if each["thread_id"] == "kept"]
    assert (one["turns"], one["question"], one["collection"]) == (2, QUESTION, "default")
    whole = client.get("/threads/kept").json()
    assert {key: whole[key] for key in one} == one
    assert [message["role"] for message in whole["messages"]] == ["user", "assistant", "user", "assistant"]
    assert whole["messages"][1]["text"] == answers[0]["answer"]
    assert (whole["result"]["answer"], whole["result"]["status"]) == (answers[1]["answer"], answers[1]["status"])
    assert client.delete("/threads/kept").status_code == 204
    assert client.get("/threads/kept").status_code == 404
    assert client.delete("/threads/kept").json()["error"]["code"] == "thread_unknown"
    assert "kept" not in [each["thread_id"] for each in client.get("/threads").json()["threads"]]


def test_the_list_of_a_collection_is_its_own(client: httpx.Client) -> None:
    """Conversations about another collection aren't in it."""
    client.post("/chat", json={"question": QUESTION, "thread_id": "here", "web": "never", "stream": False})
    assert client.get("/threads", params={"collection": "elsewhere"}).json() == {"threads": []}
    assert client.get("/threads").json()["threads"][0]["thread_id"] == "here"


@pytest.mark.parametrize("thread_id", ["nothing", "@ana/x", "%00", "a%0Ab", "x" * 201, "%F0%9F%98%80"])
def test_what_is_no_conversation_is_not_found(client: httpx.Client, thread_id: str) -> None:
    """Whatever is put in its place: 404, or 422 where it is too long; never a fault."""
    assert client.get(f"/threads/{thread_id}").status_code in (404, 422)
    assert client.delete(f"/threads/{thread_id}").status_code in (404, 422)


@pytest.mark.parametrize("query", ["collecton=default", "collection=default&collection=other", "collection="])
def test_a_misspelled_query_is_no_other_query(client: httpx.Client, query: str) -> None:
    """A parameter that isn't known, is given twice, or is empty is named, where it would have been left out."""
    answer = client.get(f"/threads?{query}")
    assert answer.status_code == 422
    assert f"query.{query.partition('=')[0]}" in answer.json()["error"]["message"]
