"""What OpenAI's clients add to a request by habit is let pass under `/v1`, and there alone."""

import httpx
import pytest

ASKED = {"model": "leadline", "messages": [{"role": "user", "content": "Hello!"}]}


@pytest.mark.parametrize("query", ["api-version=2024-10-21", "api-version=a&api-version=b", "limit=20&order=asc"])
def test_a_clients_own_query_is_let_pass(client: httpx.Client, query: str) -> None:
    """A version as for Azure, or a page of a list: nothing of it is read here, so none of it can be misspelled."""
    assert client.post(f"/v1/chat/completions?{query}", json=ASKED).status_code == 200
    assert client.get(f"/v1/models?{query}").json()["data"][0]["id"] == "leadline"
    assert client.get(f"/v1/models/leadline?{query}").status_code == 200


def test_elsewhere_an_unknown_query_is_refused(client: httpx.Client) -> None:
    """A misspelled name of a collection would be answered from another one."""
    refused = client.get("/documents?collecton=papers")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_request")
    assert "collecton" in refused.json()["error"]["message"]
    assert client.post("/chat?api-version=1", json={"question": "Hello!", "stream": False}).status_code == 422
