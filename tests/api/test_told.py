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


CALLED = "it has to be 1 to {} of A-Z, a-z, 0-9, {}, with a letter or a digit first."


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[]", "body: it has to be a JSON object: fields in braces."),
        ('{"question": "Hello!"', "body: it is no JSON from character 22 on: Expecting ',' delimiter."),
        ("", "body: it is missing."),
        ('{"stream": false}', "body.question: it is missing."),
        ('{"question": 3}', "body.question: it has to be a text."),
        (r'{"question": "\ud800 x"}', "body.question: half of a surrogate pair is no character."),
        ('{"question": "x", "thread_id": "@ana/x"}', f"body.thread_id: {CALLED.format(128, '_ . : and -')}"),
        ('{"question": "x", "collection": "../x"}', f"body.collection: {CALLED.format(63, '_ and -')}"),
        ('{"question": "x", "stream": "no"}', "body.stream: it has to be true or false."),
        ('{"question": "x", "web_consent": "perhaps"}', "body.web_consent: it has to be 'yes' or 'no'."),
        ('{"question": "x", "llm": ""}', "body.llm: it has to have at least 1 character(s)."),
        ('{"question": "x", "filters": [1]}', "body.filters: it has to be a JSON object: fields in braces."),
    ],
)
def test_a_wrong_body_is_told_in_plain_words(client: httpx.Client, body: str, said: str) -> None:
    """What is wrong and what is allowed, without the words of a validator, at an address that is in the body."""
    answer = client.post("/chat", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, error_of(answer)["message"]) == (422, said)


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("/documents", {"collection": "../x"}, f"query.collection: {CALLED.format(63, '_ and -')}"),
        ("/documents/a%00", {}, "path.doc_id: it may have no control characters."),
        ("/documents/a", {"limit": "501"}, "query.limit: it may be at most 500."),
        ("/documents/a", {"limit": "many"}, "query.limit: it has to be a whole number."),
    ],
)
def test_a_wrong_address_is_told_in_plain_words(
    client: httpx.Client, path: str, query: dict[str, str], said: str
) -> None:
    """So is what is wrong with an id or a query."""
    answer = client.get(path, params=query)
    assert (answer.status_code, error_of(answer)["message"]) == (422, said)


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
