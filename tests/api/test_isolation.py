"""What one token may not see isn't there for it, on any route, whatever it guesses."""

import asyncio
import random
from typing import Any

import httpx
import pytest
from tests.servers.guarded_server import SECRETS, Guarded

OPEN = {"/health", "/about"}  # nothing of anybody's is there
ABOUT_ALL = {"/metrics"}
NOWHERE = "0" * 32


class Others:
    """What ana has, as ben might guess it; and the same of what nobody has."""

    def __init__(self, ana: httpx.Client) -> None:
        (document,) = ana.get("/documents", params={"collection": "ana"}).json()["documents"]
        (job,) = ana.get("/jobs", params={"collection": "ana"}).json()["jobs"]
        passages = ana.get(f"/documents/{document['doc_id']}").json()["passages"]
        self.params = {
            "doc_id": document["doc_id"],
            "job_id": job["id"],
            "chunk_id": passages[0]["chunk_id"],
            "thread_id": "of-ana",
            "model": "leadline/ana",
        }

    def requests(self, path: str, method: str, operation: dict[str, Any]) -> list[httpx.Request]:
        """Two requests: for what is ana's, and for what isn't anybody's. A new kind of parameter fails here."""
        names = {p["name"]: p["in"] for p in operation.get("parameters", [])}
        made = []
        for collection in ("ana", "nowhere"):
            filled = path
            for name in (name for name, where in names.items() if where == "path"):
                filled = filled.replace(f"{{{name}}}", self.params[name] if collection == "ana" else NOWHERE)
            query = {"collection": collection} if names.get("collection") == "query" else {}
            body = self._body(path, collection) if "requestBody" in operation else {}
            made.append(httpx.Request(method.upper(), f"http://x{filled}", params=query, **body))
        return made

    def _body(self, path: str, collection: str) -> dict[str, Any]:
        question = "What is the code word of ana?"
        return {
            "/chat": {"json": {"question": question, "collection": collection, "stream": False}},
            "/documents": {"files": {"files": ("x.txt", "y")}},
            "/v1/chat/completions": {
                "json": {
                    "model": f"leadline/{collection}",
                    "messages": [{"role": "user", "content": question}],
                }
            },
        }[path]


def test_every_route_hides_what_is_anothers(guarded: Guarded) -> None:
    """Walked through the schema, so that none is forgotten: what is ana's is answered like what is nobody's.

    A route that takes neither an id nor a collection lists nothing of hers.
    """
    asked = 0
    with guarded.client("ana") as ana, guarded.client("ben") as ben:
        others = Others(ana)
        for path, operations in ana.get("/openapi.json").json()["paths"].items():
            for method, operation in operations.items():
                if path in OPEN:
                    continue
                answers = [_sent(ben, request) for request in others.requests(path, method, operation)]
                names = {p["name"] for p in operation.get("parameters", [])}
                if "{" in path or "collection" in names or "requestBody" in operation:
                    assert [a.status_code for a in answers] == [404, 404], (method, path)
                    hers, nobodys = [_without_names(a.text, others) for a in answers]
                    assert hers == nobodys, (method, path)
                else:
                    assert answers[0].status_code == (403 if path in ABOUT_ALL else 200), path
                    words = {SECRETS["ana"], "ana.txt", '"ana"', "of-ana", *others.params.values()}
                    assert not [word for word in words if word in answers[0].text], path
                asked += 1
    assert asked > 12


def _sent(client: httpx.Client, request: httpx.Request) -> httpx.Response:
    body = request.read()
    request.headers.update({**client.headers, "host": client.base_url.netloc.decode()})
    url = client.base_url.copy_with(raw_path=request.url.raw_path)
    return client.send(httpx.Request(request.method, url, headers=request.headers, content=body))


def _without_names(text: str, others: Others) -> str:
    for name in (*others.params.values(), NOWHERE, "leadline/nowhere", "nowhere", "ana"):
        text = text.replace(name, "")
    return text


def test_the_default_collection_is_no_way_in(guarded: Guarded) -> None:
    """The server's own, which this token may not see, isn't there by its name, and isn't meant where none is given."""
    question = {"question": "What does error E-217 mean?", "stream": False}
    with guarded.client("ben") as ben:
        for answer in (
            ben.post("/chat", json={**question, "collection": "default"}),
            ben.get("/documents?collection=default"),
            ben.get("/jobs?collection=default"),
            ben.post("/documents?collection=default", files={"files": ("x.txt", "y")}),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "collection_unknown")
            assert answer.json()["error"]["hint"] == "GET /collections lists those that you may ask."
        unnamed = (ben.post("/chat", json=question), ben.get("/documents"), ben.get("/jobs"))
        assert not [answer for answer in unnamed if "tide-gauge-manual" in answer.text or "11.4 volts" in answer.text]


def test_what_is_mine_and_not_made_yet_names_nobody_elses(copied: Any, guarded: Guarded) -> None:
    """An error about a collection that a token may see, and that isn't there, lists no others and no folder."""
    with guarded.client("admin") as admin:
        answer = admin.get("/stats", params={"collection": "not-made"})
        assert answer.status_code == 404
        assert str(guarded.folder) not in answer.text


async def test_two_clients_at_once_share_nothing(guarded: Guarded) -> None:
    """200 mixed turns, side by side, in conversations of the same name: neither ever sees a word of the other."""
    random.seed(13)
    plan = [
        random.choice(["ask", "ask", "thread", "threads", "documents", "collections", "search"]) for _ in range(100)
    ]
    await asyncio.gather(*(_turns(guarded, me, other, plan) for me, other in (("ana", "ben"), ("ben", "ana"))))


async def _turns(guarded: Guarded, me: str, other: str, plan: list[str]) -> None:
    headers = {"Authorization": f"Bearer {guarded.tokens[me]}"}
    async with httpx.AsyncClient(base_url=guarded.url, timeout=60, trust_env=False, headers=headers) as client:
        for number, what in enumerate(plan):
            body: dict[str, Any] = {"question": f"What is the code word of {me}?", "collection": me, "stream": False}
            if what == "ask":
                answer = await client.post("/chat", json={**body, "thread_id": f"mixed-{number % 3}"})
                assert SECRETS[me] in answer.json()["answer"]
            elif what == "search":  # for the other's, in one's own
                answer = await client.post("/chat", json={**body, "question": f"Who has the code word {other}?"})
            elif what == "thread":
                answer = await client.get(f"/threads/mixed-{number % 3}")
            elif what == "threads":
                answer = await client.get("/threads")
            else:
                answer = await client.get(f"/{what}", params={"collection": me} if what == "documents" else None)
            assert answer.status_code == 200 or (what == "thread" and answer.status_code == 404), answer.text
            assert SECRETS[other] not in answer.text
            assert f"{other}.txt" not in answer.text


@pytest.mark.parametrize("thread_id", ["@ana/of-ana", "%40ana%2Fof-ana", "@ben/@ana/of-ana", "../of-ana", "ana/of-ana"])
def test_no_spelling_of_an_id_reaches_another_conversation(guarded: Guarded, thread_id: str) -> None:
    """To read, to delete, or to go on with."""
    with guarded.client("ben") as ben, guarded.client("ana") as ana:
        before = ana.get("/threads/of-ana").json()
        assert ben.get(f"/threads/{thread_id}").status_code == 404
        assert ben.delete(f"/threads/{thread_id}").status_code == 404
        body = {"question": "And of ana?", "collection": "ben", "thread_id": thread_id, "stream": False}
        assert ben.post("/chat", json=body).status_code == 422
        assert ana.get("/threads/of-ana").json() == before


def test_a_request_that_names_no_collection_is_about_ones_own(guarded: Guarded) -> None:
    """What `GET /about` says of it holds for questions, uploads, lists, and the model of OpenAI's clients."""
    with guarded.client("ana") as ana:
        assert ana.get("/about").json()["collection"] == "ana"
        assert ana.get("/documents").json()["collection"] == "ana"
        question = "What is the code word of ana?"
        assert SECRETS["ana"] in ana.post("/chat", json={"question": question, "stream": False}).json()["answer"]
        asked = {"model": "leadline", "messages": [{"role": "user", "content": question}]}
        reply = ana.post("/v1/chat/completions", json=asked).json()
        assert SECRETS["ana"] in reply["choices"][0]["message"]["content"]
