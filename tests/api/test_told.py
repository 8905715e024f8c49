"""What a client is told that did something wrong: what it was, in plain words, and what to do."""

import json
from typing import Any

import httpx
import pytest

BLANK = {
    "code": "question",
    "message": "Nothing is asked: the question is empty.",
    "hint": "Write what you want to know.",
}


TOO_LONG = {
    "code": "question",
    "message": "The question has 20,001 characters; it may have 20,000.",
    "hint": "Put long texts in as documents and ask about them.",
}


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error in the one shape."""
    return dict(response.json()["error"])


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_question_is_refused_alike(client: httpx.Client, blank: str) -> None:
    """By both doors, streamed or not, in the code and the words of the command line."""
    for stream in (True, False):
        answer = client.post("/chat", json={"question": blank, "stream": stream})
        assert (answer.status_code, error_of(answer)) == (422, BLANK)
    body = {"model": "leadline", "messages": [{"role": "user", "content": blank}]}
    answer = client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, error_of(answer)) == (
        400,
        {**BLANK, "type": "invalid_request_error", "param": "messages"},
    )


def test_a_too_long_question_is_refused_alike(client: httpx.Client) -> None:
    """With the limit and what to do, in the words of every surface; white space around it counts for nothing."""
    question = "x" * 20_001
    for stream in (True, False):
        answer = client.post("/chat", json={"question": f" {question}\n", "stream": stream})
        assert (answer.status_code, error_of(answer)) == (422, TOO_LONG)
    body = {"model": "leadline", "messages": [{"role": "user", "content": question}]}
    answer = client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, error_of(answer)) == (
        400,
        {**TOO_LONG, "type": "invalid_request_error", "param": "messages"},
    )
    schema = client.get("/openapi.json").json()["components"]["schemas"]["ChatRequest"]["properties"]["question"]
    assert (schema["minLength"], schema["maxLength"]) == (1, 20_000)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_without_its_header_is_told_which(client: httpx.Client, kind: str | None) -> None:
    """What is JSON and isn't said to be is not called an invalid dictionary."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = client.post("/chat", content=json.dumps({"question": "Hello!"}), headers=headers)
    assert (answer.status_code, error_of(answer)["code"]) == (422, "invalid_request")
    assert "Content-Type" in error_of(answer)["message"]
    assert "application/json" in error_of(answer)["hint"]
    listed = client.post("/chat", json=["Hello!"])
    assert "Content-Type" not in error_of(listed)["message"] + error_of(listed)["hint"]


def test_a_field_that_there_is_not_is_named_plainly(client: httpx.Client) -> None:
    """Not as inputs that aren't permitted."""
    answer = client.post("/chat", json={"question": "Hello!", "colour": "red"})
    assert error_of(answer)["message"] == "body.colour: there is no such field."


def test_what_is_not_there_comes_with_what_to_do(client: httpx.Client) -> None:
    """A document, a passage, a collection, an LLM: each hint says where to look, or who decides."""
    assert "GET /documents" in error_of(client.get("/documents/nothing"))["hint"]
    assert "chunk_id" in error_of(client.get("/chunks/nothing"))["hint"]
    for answer in (
        client.get("/documents", params={"collection": "nope"}),
        client.post("/chat", json={"question": "Hello!", "collection": "nope"}),
    ):
        assert (answer.status_code, error_of(answer)["code"]) == (404, "collection_unknown")
        assert "GET /collections" in error_of(answer)["hint"]
    unoffered = client.post("/chat", json={"question": "Hello!", "llm": "openai/other"})
    assert "LEADLINE_LLMS" in error_of(unoffered)["hint"]


@pytest.mark.parametrize(
    "filters", [{"nofield": 1}, {"$or": [{"file_name": "x.md"}, {"$not": {"nofield": {"$gt": 3}}}]}]
)
def test_a_filter_on_a_field_of_no_document_is_refused(client: httpx.Client, filters: dict[str, Any]) -> None:
    """By name, with the fields that there are; a field of every passage that fits none is no fault."""
    for path, body in (
        ("/chat", {"question": "How deep is the fairway?", "filters": filters}),
        (
            "/v1/chat/completions",
            {
                "model": "leadline",
                "messages": [{"role": "user", "content": "How deep is the fairway?"}],
                "leadline": {"filters": filters},
            },
        ),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, error_of(answer)["code"]) == (422, "invalid_filter"), answer.text
        assert "has the field nofield" in error_of(answer)["message"]
        assert path == "/chat" or error_of(answer)["param"] == "leadline.filters"
        assert {"file_name,", "page,", "title,"} <= {*error_of(answer)["hint"].replace(".", ",").split()}
    body = {"question": "How deep is the fairway?", "filters": {"page": 4711}, "stream": False}
    assert client.post("/chat", json=body).json()["status"] == "abstained"
